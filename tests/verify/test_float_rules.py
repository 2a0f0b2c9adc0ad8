"""Rewrites of floating-point terms keep the value: random expressions, rewritten and not, on edge values and random ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.numpy_algebra import NUMPY
from sassay.verify.evaluate import evaluate
from sassay.verify.term_algebra import TermAlgebra
from sassay.verify.terms import Term, Terms

WIDTH = {"f16": 16, "bf16": 16, "f32": 32}
DTYPE = {16: np.uint16, 32: np.uint32}
EDGES = {
    "f16": [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0x7E01, 0xFFFF, 0x7FFF],
    "bf16": [0, 0x8000, 1, 0x807F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0x7F80, 0xFF80, 0x7F81, 0x7FC1, 0xFFFF, 0x7FFF],
    "f32": [0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC12345,
            0xFFFFFFFF, 0x7FFFFFFF],
}  # fmt: skip


def random_op(rng: random.Random, format_: str) -> FloatOp:
    name = rng.choice(["add", "add", "sub", "mul", "fma", "min", "max", "convert", "from_f16"])
    rounding = rng.choice(["RN", "RN", "RN", "RZ", "RM", "RP"]) if format_ == "f32" else "RN"
    ftz = rng.random() < 0.2 and format_ == "f32"
    saturate = rng.random() < 0.2
    if name == "from_f16":
        return FloatOp("convert", "f32", source="f16")
    if name == "convert":
        return FloatOp("convert", format_, source=format_, ftz=ftz, saturate=saturate or not ftz)
    if name in ("min", "max"):
        return FloatOp(name, format_, ftz=ftz, nan_wins=rng.random() < 0.3)
    return FloatOp(name, format_, rounding=rounding, ftz=ftz, saturate=saturate)


class Expressions:
    """Random expressions of one format: as terms, which rewrite, and as numbers, which do not."""

    def __init__(self, seed: int, format_: str) -> None:
        self.rng = random.Random(f"{seed}/{format_}")
        self.format = format_
        self.terms = Terms()
        self.algebra = TermAlgebra(self.terms)
        self.leaves: dict[Term, int] = {}
        for i in range(4):
            self.leaf(f"x{i}", format_)
        self.halves = [self.leaf(f"h{i}", "f16") for i in range(2)]

    def leaf(self, name: str, format_: str) -> Term:
        term = self.terms.var(name, WIDTH[format_])
        value = self.rng.choice(EDGES[format_]) if self.rng.random() < 0.7 else self.rng.getrandbits(WIDTH[format_])
        self.leaves[term] = value
        return term

    def build(self, depth: int) -> tuple[Term, int]:
        width = WIDTH[self.format]
        if depth == 0 or self.rng.random() < 0.15:
            if self.rng.random() < 0.4:
                value = self.rng.choice(EDGES[self.format])
                return self.terms.const(value, width), value
            term = self.rng.choice([t for t in self.leaves if t.width == width and t not in self.halves])
            return term, self.leaves[term]
        if self.rng.random() < 0.2:
            term, value = self.build(depth - 1)
            return self.terms.xor(term, self.terms.const(1 << (width - 1), width)), value ^ 1 << (width - 1)
        op = random_op(self.rng, self.format)
        if op.source == "f16" and op.format == "f32":
            if self.format != "f32":
                return self.build(depth)
            half = self.rng.choice(self.halves)
            arguments = [(half, self.leaves[half])]
        else:
            count = {"fma": 3, "convert": 1}.get(op.name, 2)
            arguments = [self.build(depth - 1) for _ in range(count)]
        numbers = [np.array([v], DTYPE[t.width]) for t, v in arguments]
        with np.errstate(all="ignore"):
            value = int(NUMPY.float_op(op)(*numbers)[0])
        return self.algebra.float_op(op)(*[t for t, _ in arguments]), value


@pytest.mark.parametrize("format_", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("seed", range(12))
def test_value_is_kept(seed: int, format_: str) -> None:
    with np.errstate(all="ignore"):
        for n in range(60):
            made = Expressions(1000 * seed + n, format_)
            term, value = made.build(3)
            assert evaluate((term,), made.leaves.__getitem__)[term] == value, term


def test_minus_zero_goes_where_a_nan_is_settled() -> None:
    terms = Terms()
    algebra = TermAlgebra(terms)
    half = terms.var("h", 16)
    wide = algebra.float_op(FloatOp("convert", "f32", source="f16"))(half)
    assert algebra.float_op(FloatOp("add", "f32"))(wide, terms.const(1 << 31, 32)) is wide
    assert algebra.float_op(FloatOp("add", "f32", rounding="RM"))(wide, terms.const(1 << 31, 32)) is not wide
    assert algebra.float_op(FloatOp("add", "f32"))(wide, terms.const(0, 32)) is not wide
