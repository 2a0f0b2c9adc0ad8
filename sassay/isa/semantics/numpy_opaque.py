"""Concrete models of what hardware approximates: MUFU and FCHK.

MUFU here is the correctly rounded value of the function on the argument as the hardware sees it, with the documented special cases: subnormal
arguments and results flushed, SIN and COS of a phase of 25 bits in turns, RCP64H and RSQ64H on the high word. It lies within PTX's error bounds and
is not bit for bit the hardware's table interpolation, whose constants are only known from measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sassay.errors import UnsupportedError
from sassay.isa.semantics.algebra import Opaque
from sassay.isa.semantics.formats import FORMATS
from sassay.isa.semantics.numpy_rounding import F32, F64, U32, U64, flush, narrow, widen

Array = Any


@cache
def resolve(op: Opaque) -> Callable[..., tuple[Array, ...]]:
    """The array function of an opaque operation."""
    if op.name == "fchk":
        return _fchk
    if op.name == "mufu":
        if len(op.params) == 2:
            return _mufu_small(op.params[0], op.params[1])
        if op.params[0] in ("RCP64H", "RSQ64H"):
            return _mufu_high(op.params[0])
        return _mufu(op.params[0])
    raise UnsupportedError(f"opaque operation {op.name} has no concrete model")


def _phase(y: Array) -> Array:
    """The turns' fraction as the hardware keeps it: magnitude to 25 bits, the rest cut off."""
    return np.fmod(np.floor(np.abs(y) * 2.0**25), 2.0**25) / 2.0**25


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "RCP": lambda x: 1.0 / x,
    "RSQ": lambda x: 1.0 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": lambda y: np.where(np.signbit(y), -1.0, 1.0) * np.sin(2 * np.pi * _phase(y)),
    "COS": lambda y: np.cos(2 * np.pi * _phase(y)),
    "TANH": np.tanh,
}


def _exact_zeros(name: str, y: Array, r: Array) -> Array:
    """Sine and cosine at the quarter turns, where double precision leaves a residue."""
    quarter = _phase(y) * 4
    zero = (quarter == 0) | (quarter == 2) if name == "SIN" else (quarter == 1) | (quarter == 3)
    sign = np.where(np.signbit(y) ^ (quarter == 2), -0.0, 0.0) if name == "SIN" else 0.0
    return np.where(zero, sign, r)


def _mufu(name: str) -> Callable[..., tuple[Array, ...]]:
    f, flush32 = _FUNCTIONS[name], flush("f32")
    turns = name in ("SIN", "COS")

    def fn(a: Array) -> tuple[Array, ...]:
        if name != "TANH":
            a = flush32(a)
        x = a.view(F32).astype(F64)
        r = f(x)
        if name == "RSQ":
            # The root of -0 is -0 and its reciprocal -Inf; documented.
            r = np.where(x == 0, np.copysign(np.inf, x), r)
        if turns:
            r = np.where(np.isfinite(x), _exact_zeros(name, x, r), np.nan)
        s = r.astype(F32)
        bits = np.where(s != s, U32(0x7FFFFFFF), s.view(U32))
        return (bits if name == "TANH" else flush32(bits),)

    return fn


def _mufu_small(name: str, format_: str) -> Callable[..., tuple[Array, ...]]:
    if name not in ("EX2", "TANH"):
        raise UnsupportedError(f"MUFU.{name} in {format_} is not known")
    f, target = _FUNCTIONS[name], FORMATS[format_]
    enter = flush("bf16") if name == "EX2" and format_ == "bf16" else None

    def fn(a: Array) -> tuple[Array, ...]:
        if enter is not None:
            a = enter(a)
        bits = narrow(f(widen(a, format_)), target, "RN")
        return (bits if enter is None else enter(bits),)

    return fn


def _mufu_high(name: str) -> Callable[..., tuple[Array, ...]]:
    root = name == "RSQ64H"

    def fn(a: Array) -> tuple[Array, ...]:
        small = (a & U32(0x7FF00000)) == 0
        high = np.where(small, a & U32(0x80000000), a)
        x = (high.astype(U64) << U64(32)).view(F64)
        r = 1.0 / np.sqrt(x) if root else 1.0 / x
        if root:
            r = np.where(x == 0, np.copysign(np.inf, x), r)
        bits = (np.ascontiguousarray(r).view(U64) >> U64(32)).astype(U32)
        bits = np.where((bits & U32(0x7FF00000)) == 0, bits & U32(0x80000000), bits)
        return (np.where(r != r, U32(0x7FFFFFFF), bits),)

    return fn


def _fchk(a: Array, b: Array) -> tuple[Array, ...]:
    """Slow path unless both exponents are moderate: there reciprocal, quotient and residuals neither overflow nor lose bits."""
    ea = (a >> U32(23) & U32(0xFF)).astype(np.int32)
    eb = (b >> U32(23) & U32(0xFF)).astype(np.int32)
    fine = (ea > 67) & (ea < 187) & (eb > 67) & (eb < 187) & (np.abs(ea - eb) < 90)
    return (~fine,)
