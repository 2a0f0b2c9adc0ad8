"""Conversions among floats and integers over arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.formats import FORMATS
from sassay.isa.semantics.numpy_rounding import (
    F32,
    F64,
    NAN32,
    U64,
    Array,
    canonical32,
    direct64,
    dress,
    flush,
    is_nan,
    nan64,
    narrow,
    narrow32,
    odd_sum,
    widen,
)


def convert(op: FloatOp) -> Callable[..., Array]:
    """Between float formats, one rounding."""
    source, name = op.source, op.format
    if name == "f64":

        def to_double(a: Array) -> Array:
            # The widened NaN keeps sign and payload and is quiet, as ptxas folds it (numpy's conversion does the same).
            bits = widen(a, source).view(U64)
            nan = is_nan(a, source)
            return np.where(nan, bits | U64(1 << 51), bits) if nan.any() else bits

        core: Callable[..., Array] = to_double
    elif name == "ue8m0":
        return _to_scale(op)
    elif name == "f32":

        def to_single(a: Array) -> Array:
            s = widen(a, source)
            return np.where(s != s, NAN32, narrow32(s, op.rounding))

        core = to_single
    else:
        f = FORMATS[name]

        def to_small(a: Array) -> Array:
            return narrow(widen(a, source), f, op.rounding, op.finite)

        core = to_small
    return dress(op, core, source)


def _to_scale(op: FloatOp) -> Callable[..., Array]:
    """To ue8m0: RZ or RP; NaN gives 0xff; without `finite` overflow does too. The sign is dropped (what hardware does is not known)."""
    up = op.rounding == "RP"

    def fn(a: Array) -> Array:
        s = np.abs(widen(a, op.source))
        mantissa, exponent = np.frexp(s)
        code = exponent.astype(np.int64) - 1 + 127 + (up & (mantissa != 0.5))
        code = np.where(s == 0, 0, np.clip(code, 0, 254 if op.finite else 255))
        code = np.where(np.isinf(s), 254 if op.finite else 255, code)
        return np.where(s != s, 255, code).astype(np.uint8)

    return fn


_TO_INTEGRAL: dict[str, Callable[[Array], Array]] = {"RN": np.rint, "RZ": np.trunc, "RM": np.floor, "RP": np.ceil}


def round_integral(op: FloatOp) -> Callable[..., Array]:
    """To an integral value in the same format."""
    step, name = _TO_INTEGRAL[op.rounding], op.format
    if name == "f64":
        return lambda a: nan64(step(a.view(F64)).view(U64), a)
    if name == "f32":
        return dress(op, lambda a: canonical32(step(a.view(F32))))
    return dress(op, lambda a: narrow(step(widen(a, name)), FORMATS[name], "RN"))


def to_int(op: FloatOp) -> Callable[..., Array]:
    """To an integer, clamped."""
    step, source, bits = _TO_INTEGRAL[op.rounding], op.source, op.bits
    low = -(2.0 ** (bits - 1)) if op.signed else 0.0
    high = 2.0 ** (bits - 1) if op.signed else 2.0**bits
    bottom = 1 << (bits - 1) if op.signed else 0
    top = (1 << (bits - 1)) - 1 if op.signed else (1 << bits) - 1
    invalid = 0 if op.nan_zero else 1 << (bits - 1)
    kind = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]
    enter = flush(source) if op.ftz and source in ("f32", "f16") else None

    def fn(a: Array) -> Array:
        if enter is not None:
            a = enter(a)
        x = step(widen(a, source))
        inside = (x > low) & (x < high)
        y = np.where(inside, x, 0.0)
        if bits == 64 and not op.signed:
            big = y >= 2.0**63
            n = np.where(big, y - 2.0**63, y).astype(np.int64).view(U64) + (big.astype(U64) << U64(63))
        else:
            n = y.astype(np.int64).view(U64)
        n = np.where(inside, n, np.where(x >= high, U64(top), U64(bottom)))
        return np.where(x != x, U64(invalid), n).astype(kind)

    return fn


def from_int(op: FloatOp) -> Callable[..., Array]:
    """From an integer, one rounding."""
    f, name, rounding, bits, signed = FORMATS[op.format], op.format, op.rounding, op.bits, op.signed
    kind = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}[bits]

    def fn(a: Array) -> Array:
        n = a.view(kind) if signed else a
        if bits <= 32:
            s = n.astype(F64)
        else:
            high = (n >> n.dtype.type(32)).astype(F64) * 4294967296.0
            low = (a & U64(0xFFFFFFFF)).astype(F64)
            if name == "f64":
                r = high + low
                return r.view(U64) if rounding == "RN" else direct64(r, low - (r - high), np.ones(r.shape, bool), rounding)
            s = odd_sum(high, low)
        if name == "f64":
            return s.view(U64)
        return narrow32(s, rounding) if name == "f32" else narrow(s, f, rounding, op.finite)

    return dress(op, fn, "f64") if op.saturate or op.relu else fn
