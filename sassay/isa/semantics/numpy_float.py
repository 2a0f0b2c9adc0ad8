"""IEEE operations over numpy arrays of bit patterns, each rounded once from the exact result.

Rules and where they come from (the sources' own measurements were made on sm_75 to sm_120 cards):

- f32, f16, bf16: every NaN result is canonical (0x7fffffff, 0x7fff); documented by PTX, measured by others.
- f64: an invalid operation gives 0xfff8000000000000; an input NaN is passed on quieted, the first operand's before the second's before the third's.
  Which operand wins is not published: weak evidence. Conversions to f64 keep a NaN's sign and payload and make it quiet.
- .ftz flushes subnormal inputs, and results that are subnormal after rounding, to zero of their sign. .sat: NaN gives +0.

Callers run under `numpy_algebra.quiet()`: numpy would warn of the overflows and invalid operations that are ordinary here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sassay.errors import UnsupportedError
from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.formats import FORMATS, Format, exact_div, exact_fma, exact_sqrt

Array = Any
U32, U64, F32, F64 = np.uint32, np.uint64, np.float32, np.float64
_NAN32 = U32(0x7FFFFFFF)
_DIRECTED = ("RZ", "RM", "RP")


@cache
def resolve(op: FloatOp) -> Callable[..., Array]:
    """The array function of a float operation."""
    maker = _MAKERS.get(op.name)
    if maker is None:
        raise UnsupportedError(f"float operation {op.name} is not known")
    return maker(op)


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


def _clamp(name: str) -> Callable[[Array], Array]:
    """Clamp to [0, 1]; NaN and negative numbers give +0."""
    ones: dict[str, Any] = {"f64": U64(0x3FF0000000000000), "f32": U32(0x3F800000), "f16": np.uint16(0x3C00), "bf16": np.uint16(0x3F80)}
    one = ones[name]

    def fn(a: Array) -> Array:
        negative = (a & one.dtype.type(FORMATS[name].sign)) != 0
        return np.where(negative | is_nan(a, name), one.dtype.type(0), np.minimum(a, one))

    return fn


def _relu(name: str) -> Callable[[Array], Array]:
    """Negative numbers and -0 to +0; NaN stays."""
    f = FORMATS[name]

    def fn(a: Array) -> Array:
        t = a.dtype.type
        return np.where(((a & t(f.sign << f.low)) != 0) & ~is_nan(a, name), t(0), a)

    return fn


def _dress(op: FloatOp, core: Callable[..., Array], inputs: str = "") -> Callable[..., Array]:
    """Put input and result flushing, saturation and relu around a core."""
    after: list[Callable[[Array], Array]] = []
    if op.ftz and op.format in ("f32", "f16"):
        after.append(flush(op.format))
    if op.saturate:
        after.append(_clamp(op.format))
    if op.relu:
        after.append(_relu(op.format))
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


def _canonical32(r: Array) -> Array:
    """Bits of f32 results with NaN made canonical."""
    nan = r != r
    bits: Array = r.view(U32)
    return np.where(nan, _NAN32, bits) if nan.any() else bits


def _down_zero(bits: Array, signs: Array, sign: int) -> Array:
    """Rounding down, an exact zero sum is -0 unless all terms were +0: `signs` is the OR of the terms' sign bits."""
    t = bits.dtype.type
    zero = (bits & t(sign - 1)) == 0
    return np.where(zero, bits | (signs & t(sign)), bits)


# f32


def _fma32(op: FloatOp) -> Callable[..., Array]:
    rounding = op.rounding
    tie, low = np.int64(0x10000000), np.int64(0x1FFFFFFF)
    tiny = F32(2.0**-125)

    def nearest(a: Array, b: Array, c: Array) -> Array:
        p = a.view(F32).astype(F64) * b.view(F32).astype(F64)  # exact: 48 bits
        z = c.view(F32).astype(F64)
        s = p + z
        r = s.astype(F32)
        # Rounding twice differs from once only where s sits on a tie of f32, or f32 keeps fewer bits (subnormals).
        hard = ((s.view(np.int64) & low) == tie) | (np.abs(r) < tiny)
        if hard.any():
            r = odd_sum(p, z).astype(F32)
        return _canonical32(r)

    def directed(a: Array, b: Array, c: Array) -> Array:
        p = a.view(F32).astype(F64) * b.view(F32).astype(F64)
        z = c.view(F32).astype(F64)
        s = odd_sum(p, z)
        bits = narrow32(s, rounding)
        if rounding == "RM":
            signs = (a ^ b) | c
            bits = np.where(s == 0, _down_zero(bits, signs, 1 << 31), bits)
        return np.where(s != s, _NAN32, bits)

    return nearest if rounding == "RN" else directed


def _add32(op: FloatOp) -> Callable[..., Array]:
    if op.rounding == "RN":
        return lambda a, b: _canonical32(a.view(F32) + b.view(F32))
    rounding = op.rounding

    def directed(a: Array, b: Array) -> Array:
        s = odd_sum(a.view(F32).astype(F64), b.view(F32).astype(F64))
        bits = narrow32(s, rounding)
        if rounding == "RM":
            bits = np.where(s == 0, _down_zero(bits, a | b, 1 << 31), bits)
        return np.where(s != s, _NAN32, bits)

    return directed


def _mul32(op: FloatOp) -> Callable[..., Array]:
    if op.rounding == "RN" and not op.scale:
        return lambda a, b: _canonical32(a.view(F32) * b.view(F32))
    rounding, factor = op.rounding, F64(2.0**op.scale)

    def general(a: Array, b: Array) -> Array:
        s = a.view(F32).astype(F64) * b.view(F32).astype(F64) * factor
        return np.where(s != s, _NAN32, narrow32(s, rounding))

    return general


# f16, bf16


def _small(op: FloatOp, terms: int) -> Callable[..., Array]:
    """add, mul, fma in a 16-bit format, through exact doubles."""
    name, f, rounding = op.format, FORMATS[op.format], op.rounding

    def finish(p: Array, c: Array | None, signs: Array) -> Array:
        s = p if c is None else odd_sum(p, c)
        bits = narrow(s, f, rounding, op.finite)
        if rounding == "RM" and c is not None:
            bits = np.where(s == 0, _down_zero(bits, signs, f.sign), bits)
        return bits

    if terms == 3:
        return lambda a, b, c: finish(widen(a, name) * widen(b, name), widen(c, name), (a ^ b) | c)
    if op.name == "add":
        return lambda a, b: finish(widen(a, name), widen(b, name), a | b)
    return lambda a, b: finish(widen(a, name) * widen(b, name), None, a)


# f64


def _nan64(bits: Array, *args: Array) -> Array:
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


def _direct64(s: Array, error: Array, finite: Array, rounding: str) -> Array:
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


def _add64(op: FloatOp) -> Callable[..., Array]:
    rounding = op.rounding
    if rounding == "RN":
        return lambda a, b: _nan64((a.view(F64) + b.view(F64)).view(U64), a, b)

    def directed(a: Array, b: Array) -> Array:
        x, y = a.view(F64), b.view(F64)
        s = x + y
        t = s - x
        error = (x - (s - t)) + (y - t)
        bits = _direct64(s, error, np.isfinite(x) & np.isfinite(y), rounding)
        if rounding == "RM":
            bits = np.where(s == 0, _down_zero(bits, a | b, 1 << 63), bits)
        return _nan64(bits, a, b)

    return directed


def _by_lane(args: tuple[Array, ...], where: Array, exact: Callable[..., int], result: Array) -> Array:
    """`result` with the lanes `where` computed one by one in integers."""
    full = np.broadcast_arrays(where, *args)
    result = np.array(np.broadcast_to(result, full[0].shape))
    for at in zip(*np.nonzero(full[0]), strict=True):
        result[at] = exact(*(int(a[at]) for a in full[1:]))
    return result


_EXPONENT64 = U64(0x7FF)


def _split(x: Array) -> tuple[Array, Array]:
    t = x * 134217729.0
    high = t - (t - x)
    return high, x - high


def _fma64(op: FloatOp) -> Callable[..., Array]:
    rounding, f = op.rounding, FORMATS["f64"]

    def exact(a: int, b: int, c: int) -> int:
        return exact_fma(a, b, c, f, rounding)

    def fn(a: Array, b: Array, c: Array) -> Array:
        x, y, z = a.view(F64), b.view(F64), c.view(F64)
        p = x * y
        ea = (a >> U64(52) & _EXPONENT64).astype(np.int64)
        eb = (b >> U64(52) & _EXPONENT64).astype(np.int64)
        ec = (c >> U64(52) & _EXPONENT64).astype(np.int64)
        # Right already for zeros, infinities and NaN; a finite product that overflows must not meet an infinite addend.
        ordinary = np.where((ec == 2047) & (ea < 2047) & (eb < 2047), z, p + z)
        special = (ea == 2047) | (eb == 2047) | (ec == 2047) | (x == 0) | (y == 0)
        if rounding != "RN":
            bits = _by_lane((a, b, c), ~((ea == 2047) | (eb == 2047) | (ec == 2047)), exact, ordinary.view(U64))
            return _nan64(bits, a, b, c)
        product = ea + eb - 2046
        safe = (ea < 2010) & (eb < 2010) & (ec < 2040) & (product > -900) & (product < 1000) & (ea > 0) & (eb > 0)
        xh, xl = _split(x)
        yh, yl = _split(y)
        e = ((xh * yh - p) + xh * yl + xl * yh) + xl * yl  # x * y = p + e exactly
        u = z + e
        t = u - z
        low = (z - (u - t)) + (e - t)
        h = p + u
        t = h - p
        rest = (p - (h - t)) + (u - t)
        r = h + odd_sum(rest, low)
        bits = np.where(special, ordinary, r).view(U64)
        hard = ~(special | safe)
        if hard.any():
            bits = _by_lane((a, b, c), hard, exact, bits)
        return _nan64(bits, a, b, c)

    return fn


def _mul64(op: FloatOp) -> Callable[..., Array]:
    if op.rounding == "RN":
        return lambda a, b: _nan64((a.view(F64) * b.view(F64)).view(U64), a, b)
    f, rounding = FORMATS["f64"], op.rounding

    def fn(a: Array, b: Array) -> Array:
        p = a.view(F64) * b.view(F64)
        finite = np.isfinite(a.view(F64)) & np.isfinite(b.view(F64)) & (a << U64(1) != 0) & (b << U64(1) != 0)

        def exact(x: int, y: int) -> int:
            return exact_fma(x, y, (x ^ y) & 1 << 63, f, rounding)

        return _nan64(_by_lane((a, b), finite, exact, p.view(U64)), a, b)

    return fn


# The makers


def _add(op: FloatOp) -> Callable[..., Array]:
    core = {"f32": _add32, "f64": _add64}.get(op.format, lambda o: _small(o, 2))(op)
    return _dress(op, core)


def _sub(op: FloatOp) -> Callable[..., Array]:
    from dataclasses import replace

    add = _add(replace(op, name="add"))
    f = FORMATS[op.format]
    return lambda a, b: add(a, b ^ b.dtype.type(f.sign << f.low))


def _mul(op: FloatOp) -> Callable[..., Array]:
    core = {"f32": _mul32, "f64": _mul64}.get(op.format, lambda o: _small(o, 2))(op)
    return _dress(op, core)


def _fma(op: FloatOp) -> Callable[..., Array]:
    if op.source:
        return _mixed_fma(op)
    core = {"f32": _fma32, "f64": _fma64}.get(op.format, lambda o: _small(o, 3))(op)
    return _dress(op, core)


def _mixed_fma(op: FloatOp) -> Callable[..., Array]:
    """f16 or bf16 factors, f32 addend and result."""
    source, rounding = op.source, op.rounding

    def core(a: Array, b: Array, c: Array) -> Array:
        s = odd_sum(widen(a, source) * widen(b, source), widen(c, "f32"))
        bits = narrow32(s, rounding)
        if rounding == "RM":
            signs = ((a ^ b).astype(U32) << U32(16)) | c
            bits = np.where(s == 0, _down_zero(bits, signs, 1 << 31), bits)
        return np.where(s != s, _NAN32, bits)

    finish = _clamp("f32") if op.saturate else None
    return core if finish is None else lambda a, b, c: finish(core(a, b, c))


def _min_max(op: FloatOp) -> Callable[..., Array]:
    name = op.format
    f = FORMATS[name]
    smallest = op.name == "min"

    def core(a: Array, b: Array) -> Array:
        x, y = _comparable(a, name), _comparable(b, name)
        less = x < y
        # Equal values differ at most in the sign of zero: OR gives -0, AND gives +0.
        same = a | b if smallest else a & b
        r = np.where(x == y, same, np.where(less if smallest else ~less, a, b))
        nx, ny = x != x, y != y
        if nx.any() or ny.any():
            t = a.dtype.type
            nan = t(0x7FFFFFFFFFFFFFFF if name == "f64" else f.nan)
            r = np.where(nx | ny, nan, r) if op.nan_wins else np.where(nx, np.where(ny, nan, b), np.where(ny, a, r))
        return r

    return _dress(op, core)


def _comparable(a: Array, name: str) -> Array:
    """Native floats that order as the codes do."""
    if name == "f32":
        return a.view(F32)
    if name == "f64":
        return a.view(F64)
    if name == "f16":
        return a.view(np.float16).astype(F32)
    if name == "bf16":
        return (a.astype(U32) << U32(16)).view(F32)
    return widen(a, name)


_RELATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "LT": lambda x, y: x < y,
    "EQ": lambda x, y: x == y,
    "LE": lambda x, y: x <= y,
    "GT": lambda x, y: x > y,
    "NE": lambda x, y: (x < y) | (x > y),
    "GE": lambda x, y: x >= y,
    "NUM": lambda x, y: (x == x) & (y == y),
    "NAN": lambda x, y: (x != x) | (y != y),
    "LTU": lambda x, y: ~(x >= y),
    "EQU": lambda x, y: ~((x < y) | (x > y)),
    "LEU": lambda x, y: ~(x > y),
    "GTU": lambda x, y: ~(x <= y),
    "NEU": lambda x, y: x != y,
    "GEU": lambda x, y: ~(x < y),
    "F": lambda x, y: np.zeros(np.broadcast_shapes(x.shape, y.shape), bool),
    "T": lambda x, y: np.ones(np.broadcast_shapes(x.shape, y.shape), bool),
}


def _compare(op: FloatOp) -> Callable[..., Array]:
    relation, name = _RELATIONS[op.relation], op.format
    if op.ftz and name in ("f32", "f16"):
        enter = flush(name)
        return lambda a, b: relation(_comparable(enter(a), name), _comparable(enter(b), name))
    return lambda a, b: relation(_comparable(a, name), _comparable(b, name))


# Conversions


def _convert(op: FloatOp) -> Callable[..., Array]:
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
            return np.where(s != s, _NAN32, narrow32(s, op.rounding))

        core = to_single
    else:
        f = FORMATS[name]

        def to_small(a: Array) -> Array:
            return narrow(widen(a, source), f, op.rounding, op.finite)

        core = to_small
    return _dress(op, core, source)


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


def _round(op: FloatOp) -> Callable[..., Array]:
    step, name = _TO_INTEGRAL[op.rounding], op.format
    if name == "f64":
        return lambda a: _nan64(step(a.view(F64)).view(U64), a)
    if name == "f32":
        return _dress(op, lambda a: _canonical32(step(a.view(F32))))
    return _dress(op, lambda a: narrow(step(widen(a, name)), FORMATS[name], "RN"))


def _to_int(op: FloatOp) -> Callable[..., Array]:
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


def _from_int(op: FloatOp) -> Callable[..., Array]:
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
                return r.view(U64) if rounding == "RN" else _direct64(r, low - (r - high), np.ones(r.shape, bool), rounding)
            s = odd_sum(high, low)
        if name == "f64":
            return s.view(U64)
        return narrow32(s, rounding) if name == "f32" else narrow(s, f, rounding, op.finite)

    return _dress(op, fn, "f64") if op.saturate or op.relu else fn


# Division and square root: for PTX, no SASS operation does them in one step


def _div(op: FloatOp) -> Callable[..., Array]:
    name, rounding, f = op.format, op.rounding, FORMATS[op.format]

    def single(a: Array, b: Array) -> Array:
        # A quotient of 24-bit numbers is never closer to a 25-bit number than 2**-49 of it, so the double decides as the exact one.
        q = widen(a, name) / widen(b, name)
        if name != "f32":
            return narrow(q, f, rounding)
        return np.where(q != q, _NAN32, narrow32(q, rounding))

    def double(a: Array, b: Array) -> Array:
        x, y = a.view(F64), b.view(F64)
        bits = (x / y).view(U64)
        if rounding != "RN":
            bits = _by_lane((a, b), np.isfinite(x) & np.isfinite(y) & (y != 0), lambda m, n: exact_div(m, n, f, rounding), bits)
        return _nan64(bits, a, b)

    return _dress(op, double if name == "f64" else single)


def _sqrt(op: FloatOp) -> Callable[..., Array]:
    name, rounding, f = op.format, op.rounding, FORMATS[op.format]

    def single(a: Array) -> Array:
        q = np.sqrt(widen(a, name))
        if name != "f32":
            return narrow(q, f, rounding)
        return np.where(q != q, _NAN32, narrow32(q, rounding))

    def double(a: Array) -> Array:
        x = a.view(F64)
        bits = np.sqrt(x).view(U64)
        if rounding != "RN":
            bits = _by_lane((a,), np.isfinite(x) & (x >= 0), lambda m: exact_sqrt(m, f, rounding), bits)
        return _nan64(bits, a)

    return _dress(op, double if name == "f64" else single)


_MAKERS: dict[str, Callable[[FloatOp], Callable[..., Array]]] = {
    "add": _add, "sub": _sub, "mul": _mul, "fma": _fma, "div": _div, "sqrt": _sqrt, "min": _min_max, "max": _min_max, "compare": _compare,
    "convert": _convert, "round": _round, "to_int": _to_int, "from_int": _from_int,
}  # fmt: skip
