"""Float operations over arrays against exact rational arithmetic: edge values crossed, random patterns, and hard cases of double rounding."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.numpy_algebra import NUMPY, quiet
from semantics import reference as ref

DTYPE = {"f64": np.uint64, "f32": np.uint32, "f16": np.uint16, "bf16": np.uint16}
MODES = ("RN", "RZ", "RM", "RP")


def edges(name: str) -> list[int]:
    e, m = ref.SHAPES[name]
    top = 1 << (e + m)
    bias = (1 << (e - 1)) - 1
    one = bias << m
    positive = [
        0, 1, (1 << m) - 1, 1 << m, (1 << m) + 1, one, one + 1, one - 1, (bias + 1) << m, ((1 << e) - 1 << m) - 1, (1 << e) - 1 << m,
        ((1 << e) - 1 << m) + 1, (2 << e) - 1 << (m - 1), (bias + m) << m, (bias + m + 1) << m, (bias - m) << m, (bias - m - 1) << m,
    ]  # fmt: skip
    return positive + [p | top for p in positive]


def patterns(name: str, count: int, seed: int) -> list[int]:
    """Random codes, half of them with exponents near each other so that cancellation and ties happen."""
    rng = random.Random(seed)
    e, m = ref.SHAPES[name]
    out = []
    for i in range(count):
        code = rng.getrandbits(1 + e + m)
        if i % 2:
            field = ((1 << (e - 1)) - 1 + rng.randint(-m - 2, m + 2)) % (1 << e)
            fraction = rng.choice([rng.getrandbits(m), 0, (1 << m) - 1, 1 << rng.randrange(m), rng.getrandbits(m) & ~((1 << (m // 2)) - 1)])
            code = rng.getrandbits(1) << (e + m) | field << m | fraction
        out.append(code)
    return out


def check(op: FloatOp, args: list[list[int]], expected: list[int], names: list[str]) -> None:
    arrays = [np.array(a, DTYPE[n]) for a, n in zip(args, names, strict=True)]
    with quiet():
        got = NUMPY.float_op(op)(*arrays)
    wrong = [i for i, (g, w) in enumerate(zip(got.tolist(), expected, strict=True)) if g != w]
    assert not wrong, [(tuple(hex(a[i]) for a in args), hex(int(got[i])), hex(expected[i])) for i in wrong[:5]]


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
def test_fma(name: str, mode: str) -> None:
    few = edges(name)[::3] if mode != "RN" else edges(name)[::2]
    triples = list(itertools.product(few, few, few))[:3000]
    a, b, c = (patterns(name, 3000, s) for s in (1, 2, 3))
    # Addends that nearly cancel the product, or lie half a unit from it.
    for i in range(0, 3000, 3):
        c[i] = ref.mul(a[i], b[i], name, "RZ") ^ (1 << sum(ref.SHAPES[name])) ^ (i % 2)
    triples += list(zip(a, b, c, strict=True))
    want = [ref.fma(*t, name, mode) for t in triples]
    check(FloatOp("fma", name, mode), [list(x) for x in zip(*triples, strict=True)], want, [name] * 3)


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
def test_add_and_mul(name: str, mode: str) -> None:
    pairs = list(itertools.product(edges(name), edges(name))) + list(zip(patterns(name, 2000, 4), patterns(name, 2000, 5), strict=True))
    a, b = (list(x) for x in zip(*pairs, strict=True))
    check(FloatOp("add", name, mode), [a, b], [ref.add(*p, name, mode) for p in pairs], [name] * 2)
    check(FloatOp("mul", name, mode), [a, b], [ref.mul(*p, name, mode) for p in pairs], [name] * 2)


def test_fma_ties_of_single_precision() -> None:
    """Sums that fall on a tie of f32 in double precision, with a tail that decides."""
    rng = random.Random(7)
    triples = []
    for _ in range(2000):
        # c is a large number; the product a tie's worth of it plus or minus something far below.
        c = 0x3F800000 + rng.getrandbits(23)
        a = (127 - 24) << 23
        b = rng.choice([0x3F800000, 0x3F800001, 0x3F7FFFFF]) | rng.getrandbits(1) << 31
        triples.append((a, b, c))
        k = rng.randint(1, 148)
        triples.append(((127 - 12) << 23 | rng.getrandbits(23), (127 - k) << 23 if k < 127 else 1 << (148 - k), c))
    want = [ref.fma(*t, "f32", "RN") for t in triples]
    check(FloatOp("fma", "f32"), [list(x) for x in zip(*triples, strict=True)], want, ["f32"] * 3)


def test_fma_subnormal_results() -> None:
    rng = random.Random(8)
    triples = []
    for _ in range(3000):
        ea = rng.randint(1, 126)
        eb = rng.randint(max(1, 127 - 149 - ea + 127), max(1, min(254, 130 - ea)))
        c = rng.getrandbits(24) | rng.getrandbits(1) << 31
        triples.append((ea << 23 | rng.getrandbits(23), eb << 23 | rng.getrandbits(23), c))
    for mode in MODES:
        want = [ref.fma(*t, "f32", mode) for t in triples]
        check(FloatOp("fma", "f32", mode), [list(x) for x in zip(*triples, strict=True)], want, ["f32"] * 3)


@pytest.mark.parametrize("name", ["f32"])
def test_flush_and_saturate(name: str) -> None:
    pairs = list(itertools.product(edges(name), edges(name))) + list(zip(patterns(name, 1000, 9), patterns(name, 1000, 10), strict=True))
    a, b = (list(x) for x in zip(*pairs, strict=True))
    want = [ref.flush(ref.add(ref.flush(x, name), ref.flush(y, name), name, "RN"), name) for x, y in pairs]
    check(FloatOp("add", name, ftz=True), [a, b], want, [name] * 2)

    def clamp(code: int) -> int:
        v = ref.decode(code, name)
        if ref.is_nan(v) or ref.negative(v):
            return 0
        return min(code, 0x3F800000)

    check(FloatOp("mul", name, saturate=True), [a, b], [clamp(ref.mul(*p, name, "RN")) for p in pairs], [name] * 2)


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(ref.SHAPES, 2)))
def test_convert(source: str, target: str) -> None:
    values = edges(source) + patterns(source, 2000, 11)
    for mode in MODES:
        want = [ref.convert(v, source, target, mode) for v in values]
        check(FloatOp("convert", target, mode, source=source), [values], want, [source])


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_to_int(source: str, bits: int) -> None:
    values = edges(source) + patterns(source, 400, 12)
    rng = random.Random(13)
    for _ in range(200):
        n = rng.choice([1 << (bits - 1), 1 << bits, 0, 1]) + rng.choice([0, 1, -1, 0.5, -0.5, 1.5])
        values.append(ref.encode(ref.Fraction(n), False, source, "RN"))
        values.append(ref.encode(-ref.Fraction(n), False, source, "RN"))
    for signed, mode, zero in itertools.product((True, False), MODES, (True, False)):
        want = [ref.to_int(v, source, mode, bits, signed, zero) for v in values]
        op = FloatOp("to_int", "s", mode, source=source, bits=bits, signed=signed, nan_zero=zero)
        check(op, [values], want, [source])


@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_from_int(target: str, bits: int) -> None:
    rng = random.Random(14)
    values = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1]
    for _ in range(1500):
        n = rng.getrandbits(rng.randint(1, bits))
        values.append(n)
        values.append((n << rng.randint(0, bits) | rng.getrandbits(2)) & ((1 << bits) - 1))
    dtype = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]
    for signed, mode in itertools.product((True, False), MODES):
        numbers = [v - (1 << bits) if signed and v >> (bits - 1) else v for v in values]
        want = [ref.encode(ref.Fraction(n), False, target, mode) for n in numbers]
        with quiet():
            got = NUMPY.float_op(FloatOp("from_int", target, mode, bits=bits, signed=signed))(np.array(values, dtype)).tolist()
        wrong = [i for i in range(len(values)) if got[i] != want[i]]
        assert not wrong, (signed, mode, [(numbers[i], hex(got[i]), hex(want[i])) for i in wrong[:5]])


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16"])
def test_min_max_and_compare(name: str) -> None:
    pairs = list(itertools.product(edges(name), edges(name)))
    e, m = ref.SHAPES[name]
    sign = 1 << (e + m)
    nan = 0x7FFFFFFFFFFFFFFF if name == "f64" else ref.NAN[name]

    def key(code: int) -> tuple[float, int]:
        v = ref.decode(code, name)
        return (float("-inf"), 0) if v == float("-inf") else (v, 0 if code & sign else 1)  # type: ignore[return-value]

    def pick(a: int, b: int, least: bool, wins: bool) -> int:
        na, nb = ref.is_nan(ref.decode(a, name)), ref.is_nan(ref.decode(b, name))
        if (na and nb) or (wins and (na or nb)):
            return nan
        if na or nb:
            return b if na else a
        return min(a, b, key=key) if least else max(a, b, key=key)

    a, b = (list(x) for x in zip(*pairs, strict=True))
    for least, wins in itertools.product((True, False), (True, False)):
        op = FloatOp("min" if least else "max", name, nan_wins=wins)
        check(op, [a, b], [pick(x, y, least, wins) for x, y in pairs], [name] * 2)
    base = {"LT": lambda x, y: x < y, "EQ": lambda x, y: x == y, "LE": lambda x, y: x <= y, "GT": lambda x, y: x > y, "GE": lambda x, y: x >= y,
            "NE": lambda x, y: x != y}  # fmt: skip
    for relation, test in base.items():
        for unordered in (False, True):
            want = []
            for x, y in pairs:
                u, v = ref.decode(x, name), ref.decode(y, name)
                want.append(unordered if ref.is_nan(u) or ref.is_nan(v) else test(u, v))
            check(FloatOp("compare", name, relation=relation + "U" * unordered), [a, b], want, [name] * 2)


def test_eight_bit_floats() -> None:
    """Conversions from f32 to fp8: ties to even, saturation, NaN; and back through every code."""
    to = NUMPY.float_op(FloatOp("convert", "e4m3", finite=True, source="f32"))
    back = NUMPY.float_op(FloatOp("convert", "f32", source="e4m3"))
    codes = np.array([c for c in range(256) if c & 0x7F != 0x7F], np.uint8)
    assert (to(back(codes)) == codes).all()
    f = np.array([448.0, 449.0, 464.0, 465.0, 1e9, np.inf, -np.inf, np.nan, 17.0, 19.0, 2.0**-10, 3 * 2.0**-10], np.float32)
    want = [0x7E, 0x7E, 0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x7F, 0x58, 0x5A, 0x00, 0x02]
    assert to(f.view(np.uint32)).tolist() == want
    e5 = NUMPY.float_op(FloatOp("convert", "e5m2", finite=True, source="f32"))
    assert e5(np.array([np.inf, -np.inf, 1e9, np.nan], np.float32).view(np.uint32)).tolist() == [0x7B, 0xFB, 0x7B, 0x7F]
    e2 = NUMPY.float_op(FloatOp("convert", "e2m1", finite=True, source="f32"))
    assert e2(np.array([0.25, 0.75, 5.0, 7.0, -9.0, np.nan], np.float32).view(np.uint32)).tolist() == [0, 2, 6, 7, 15, 7]


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_division_and_root(name: str) -> None:
    pairs = list(zip(patterns(name, 1500, 15), patterns(name, 1500, 16), strict=True))
    finite = [(a, b) for a, b in pairs if not any(isinstance(ref.decode(x, name), float) for x in (a, b)) and ref.decode(b, name) != 0]
    sign = 1 << sum(ref.SHAPES[name])
    for mode in MODES:
        want = [ref.encode(ref.exact(ref.decode(a, name)) / ref.exact(ref.decode(b, name)), bool((a ^ b) & sign), name, mode) for a, b in finite]
        check(FloatOp("div", name, mode), [[a for a, _ in finite], [b for _, b in finite]], want, [name] * 2)
        roots = [a & ~sign for a, _ in finite]
        got = NUMPY.float_op(FloatOp("sqrt", name, mode))(np.array(roots, DTYPE[name])).tolist()
        for a, r in zip(roots, got, strict=True):
            x, low = ref.exact(ref.decode(a, name)), ref.exact(ref.decode(r, name))
            above, below = ref.exact(ref.decode(r + 1, name)), ref.exact(ref.decode(r - 1, name)) if r else ref.Fraction(0)
            if mode == "RN":
                assert ((low + below) / 2) ** 2 <= x <= ((low + above) / 2) ** 2
            elif mode == "RP":
                assert below**2 < x <= low**2 or x == 0
            else:
                assert low**2 <= x < above**2
