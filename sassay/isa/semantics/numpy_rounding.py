"""Rounding over arrays: doubles as exact carriers, widening and narrowing of formats, NaN rules, flushing and clamping. Used by numpy_float."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.formats import FORMATS, Format

Array = Any
U32, U64, F32, F64 = np.uint32, np.uint64, np.float32, np.float64
NAN32 = U32(0x7FFFFFFF)


# Doubles as exact carriers


def odd_sum(p: Array, c: Array) -> Array:
    """p + c in double precision, rounded to odd: rounding the result once more to at most 51 bits is exact single rounding."""
    s = p + c
    t = s - p
    error = (p - (s - t)) + (c - t)
    inexact = np.abs(error) > 0  # false for the NaNs that infinities leave
    if not inexact.any():
        return s
    bits = np.ascontiguousarray(s).view(np.int64)
    step = np.where((error > 0) == (s > 0), 1, -1)
    return np.where(inexact & (bits & 1 == 0), bits + step, bits).view(F64)


def narrow32(s: Array, rounding: str) -> Array:
    """f32 bits of doubles (exact or rounded to odd)."""
    r = s.astype(F32)
    bits: Array = r.view(U32)
    if rounding == "RN":
        return bits
    back = r.astype(F64)
    negative = (bits >> U32(31)) == 1
    if rounding == "RZ":
        return np.where(np.abs(back) > np.abs(s), bits - U32(1), bits)
    if rounding == "RM":
        return np.where(back > s, np.where(negative, bits + U32(1), bits - U32(1)), bits)
    return np.where(back < s, np.where(negative, bits - U32(1), bits + U32(1)), bits)


def narrow(s: Array, f: Format, rounding: str, finite: bool = False) -> Array:
    """Codes in a format of at most 32 bits from doubles (exact or rounded to odd); NaN gives the format's NaN, or its largest number."""
    if rounding == "RN" and f.name in ("f16", "bf16"):
        return _nearest16(s, f, finite)
    bits = np.ascontiguousarray(s).view(U64)
    sign = (bits >> U64(63)).astype(np.int64)
    field = (bits >> U64(52) & U64(0x7FF)).astype(np.int64)
    fraction = (bits & U64((1 << 52) - 1)).astype(np.int64)
    significand = np.where(field > 0, fraction | (1 << 52), fraction)
    e = np.maximum(np.maximum(field, 1) - 1023, f.emin)
    shift = np.minimum(52 - f.mantissa + (e - (np.maximum(field, 1) - 1023)), 62)
    code = significand >> shift
    rest = significand & ((np.int64(1) << shift) - 1)
    half = np.int64(1) << (shift - 1)
    if rounding == "RN":
        up = (rest > half) | ((rest == half) & (code & 1 == 1))
    elif rounding == "RA":
        up = rest >= half
    elif rounding == "RZ":
        up = np.zeros(rest.shape, bool)
    else:
        up = (rest > 0) & (sign == (rounding == "RM"))
    code = ((e - f.emin) << f.mantissa) + code + up
    over = code > f.largest
    if over.any():
        if finite or f.infinity is None:
            limit: Array = f.largest
        elif rounding in ("RN", "RA"):
            limit = f.infinity
        elif rounding == "RZ":
            limit = f.largest
        else:
            limit = np.where(sign == (rounding == "RM"), f.infinity, f.largest)
        if f.infinity is not None and not finite:
            limit = np.where(field == 0x7FF, f.infinity, limit)
        code = np.where(over, limit, code)
    code = code | sign << (f.exponent + f.mantissa)
    nan = (field == 0x7FF) & (fraction != 0)
    if nan.any():
        code = np.where(nan, f.largest if f.nan is None else f.nan, code)
    if f.low:
        code = code << f.low
        if nan.any() and f.nan is not None:
            code = np.where(nan, f.nan << f.low | ((1 << f.low) - 1), code)
    size = f.exponent + f.mantissa + f.low + 1
    return code.astype(U32 if size > 16 else np.uint16 if size > 8 else np.uint8)


def _nearest16(s: Array, f: Format, finite: bool) -> Array:
    """`narrow` to nearest for the 16-bit formats: f16 by numpy's own conversion, bf16 through f32 rounded to odd."""
    if f.name == "f16":
        code: Array = s.astype(np.float16).view(np.uint16)
    else:
        r = s.astype(F32)
        bits = r.view(U32)
        back = r.astype(F64)
        inexact = (back != s) & (np.abs(s) < np.inf)
        if inexact.any():
            away = np.abs(back) > np.abs(s)
            bits = np.where(inexact, np.where(away, bits - U32(1), bits) | U32(1), bits)
        code = ((bits + U32(0x7FFF) + (bits >> U32(16) & U32(1))) >> U32(16)).astype(np.uint16)
    if finite:
        code = np.where((code & np.uint16(0x7FFF)) == f.infinity, code - np.uint16(1), code)
    nan = s != s
    return np.where(nan, np.uint16(0x7FFF), code) if nan.any() else code


@cache
def _table(name: str) -> Array:
    """Values of all codes of a format of 8 bits or fewer, as doubles."""
    values = []
    for code in range(256):
        if name == "ue8m0":
            values.append(float("nan") if code == 255 else 2.0 ** (code - 127))
            continue
        f = FORMATS[name]
        code &= (f.sign << 1) - 1
        magnitude = code & (f.sign - 1)
        sign = -1.0 if code & f.sign else 1.0
        if magnitude > f.largest:
            values.append(sign * float("inf") if magnitude == f.infinity else float("nan"))
            continue
        field, fraction = magnitude >> f.mantissa, magnitude & ((1 << f.mantissa) - 1)
        significand = fraction + ((1 << f.mantissa) if field else 0)
        values.append(sign * significand * 2.0 ** (f.emin - f.mantissa + max(field - 1, 0)))
    return np.array(values, F64)


@cache
def _halves() -> Array:
    """All f16 values as doubles: a look-up is quicker than numpy's conversion."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(F64)


def widen(bits: Array, name: str) -> Array:
    """The doubles that codes stand for; exact."""
    if name in ("f32", "tf32"):
        return bits.view(F32).astype(F64)
    if name == "f64":
        return bits.view(F64)
    if name == "f16":
        return _halves()[bits]
    if name == "bf16":
        return (bits.astype(U32) << U32(16)).view(F32).astype(F64)
    return _table(name)[bits]


def is_nan(bits: Array, name: str) -> Array:
    """Where codes are NaN."""
    if name == "ue8m0":
        return bits == 255
    f = FORMATS[name]
    if f.nan is None:
        return np.zeros(bits.shape, bool)
    t = bits.dtype.type
    mask = t(((f.sign - 1) >> f.low) << f.low)
    limit = f.largest if f.infinity is None else f.infinity
    if name == "tf32":
        mask, limit = t(f.sign - 1), FORMATS["f32"].infinity or 0
    return (bits & mask) > t(limit)


# Flush, clamp, canonical NaN: small steps over bits


def flush(name: str) -> Callable[[Array], Array]:
    """Subnormals to zero of their sign."""
    f = FORMATS["f32" if name == "tf32" else name]
    t = {"f64": U64, "f32": U32, "tf32": U32}.get(name, np.uint16)
    field, sign = t(((1 << f.exponent) - 1) << f.mantissa), t(f.sign)

    def fn(a: Array) -> Array:
        small = (a & field) == 0
        return np.where(small, a & sign, a) if small.any() else a

    return fn


def clamp(name: str) -> Callable[[Array], Array]:
    """Clamp to [0, 1]; NaN and negative numbers give +0."""
    ones: dict[str, Any] = {"f64": U64(0x3FF0000000000000), "f32": U32(0x3F800000), "f16": np.uint16(0x3C00), "bf16": np.uint16(0x3F80)}
    one = ones[name]

    def fn(a: Array) -> Array:
        negative = (a & one.dtype.type(FORMATS[name].sign)) != 0
        return np.where(negative | is_nan(a, name), one.dtype.type(0), np.minimum(a, one))

    return fn


def relu(name: str) -> Callable[[Array], Array]:
    """Negative numbers and -0 to +0; NaN stays."""
    f = FORMATS[name]

    def fn(a: Array) -> Array:
        t = a.dtype.type
        return np.where(((a & t(f.sign << f.low)) != 0) & ~is_nan(a, name), t(0), a)

    return fn


def dress(op: FloatOp, core: Callable[..., Array], inputs: str = "") -> Callable[..., Array]:
    """Put input and result flushing, saturation and relu around a core."""
    after: list[Callable[[Array], Array]] = []
    if op.ftz and op.format in ("f32", "f16"):
        after.append(flush(op.format))
    if op.saturate:
        after.append(clamp(op.format))
    if op.relu:
        after.append(relu(op.format))
    source = inputs or op.format
    before = flush(source) if op.ftz and source in ("f32", "f16") else None
    if before is None and not after:
        return core
    if before is None:
        steps = tuple(after)

        def finish(*args: Array) -> Array:
            r = core(*args)
            for step in steps:
                r = step(r)
            return r

        return finish
    enter = before

    def fn(*args: Array) -> Array:
        r = core(*(enter(a) for a in args))
        for step in after:
            r = step(r)
        return r

    return fn


def canonical32(r: Array) -> Array:
    """Bits of f32 results with NaN made canonical."""
    nan = r != r
    bits: Array = r.view(U32)
    return np.where(nan, NAN32, bits) if nan.any() else bits


def down_zero(bits: Array, signs: Array, sign: int) -> Array:
    """Rounding down, an exact zero sum is -0 unless all terms were +0: `signs` is the OR of the terms' sign bits."""
    t = bits.dtype.type
    zero = (bits & t(sign - 1)) == 0
    return np.where(zero, bits | (signs & t(sign)), bits)


def nan64(bits: Array, *args: Array) -> Array:
    """Results with the NaN rule of f64: the first NaN operand quieted, else the default."""
    r = bits.view(F64)
    bad = r != r
    if not bad.any():
        return bits
    chosen: Array = U64(0xFFF8000000000000)
    for a in reversed(args):
        x = a.view(F64)
        chosen = np.where(x != x, a | U64(0x0008000000000000), chosen)
    return np.where(bad, chosen, bits)


def direct64(s: Array, error: Array, finite: Array, rounding: str) -> Array:
    """Bits of s = RN(exact), exact = s + error, under a directed rounding. `finite`: where the exact value is (s may have overflowed)."""
    bits = np.ascontiguousarray(s).view(U64)
    positive = (bits >> U64(63)) == 0
    over = np.isinf(s) & finite
    if rounding == "RZ":
        back = ((error < 0) & positive & (s != 0)) | ((error > 0) & ~positive & (s != 0)) | over
        return np.where(back, bits - U64(1), bits)
    if rounding == "RM":
        move = (error < 0) | (over & positive)
        return np.where(move, np.where(positive, bits - U64(1), bits + U64(1)), bits)
    move = (error > 0) | (over & ~positive)
    return np.where(move, np.where(positive, bits + U64(1), bits - U64(1)), bits)
