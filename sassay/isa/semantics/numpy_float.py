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

import numpy as np

from sassay.errors import UnsupportedError
from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.formats import FORMATS, exact_div, exact_fma, exact_sqrt
from sassay.isa.semantics.numpy_convert import convert, from_int, round_integral, to_int
from sassay.isa.semantics.numpy_rounding import (
    F32,
    F64,
    NAN32,
    U32,
    U64,
    Array,
    canonical32,
    clamp,
    direct64,
    down_zero,
    dress,
    flush,
    nan64,
    narrow,
    narrow32,
    odd_sum,
    widen,
)


@cache
def resolve(op: FloatOp) -> Callable[..., Array]:
    """The array function of a float operation."""
    maker = _MAKERS.get(op.name)
    if maker is None:
        raise UnsupportedError(f"float operation {op.name} is not known")
    return maker(op)


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
        return canonical32(r)

    def directed(a: Array, b: Array, c: Array) -> Array:
        p = a.view(F32).astype(F64) * b.view(F32).astype(F64)
        z = c.view(F32).astype(F64)
        s = odd_sum(p, z)
        bits = narrow32(s, rounding)
        if rounding == "RM":
            signs = (a ^ b) | c
            bits = np.where(s == 0, down_zero(bits, signs, 1 << 31), bits)
        return np.where(s != s, NAN32, bits)

    return nearest if rounding == "RN" else directed


def _add32(op: FloatOp) -> Callable[..., Array]:
    if op.rounding == "RN":
        return lambda a, b: canonical32(a.view(F32) + b.view(F32))
    rounding = op.rounding

    def directed(a: Array, b: Array) -> Array:
        s = odd_sum(a.view(F32).astype(F64), b.view(F32).astype(F64))
        bits = narrow32(s, rounding)
        if rounding == "RM":
            bits = np.where(s == 0, down_zero(bits, a | b, 1 << 31), bits)
        return np.where(s != s, NAN32, bits)

    return directed


def _mul32(op: FloatOp) -> Callable[..., Array]:
    if op.rounding == "RN" and not op.scale:
        return lambda a, b: canonical32(a.view(F32) * b.view(F32))
    rounding, factor = op.rounding, F64(2.0**op.scale)

    def general(a: Array, b: Array) -> Array:
        s = a.view(F32).astype(F64) * b.view(F32).astype(F64) * factor
        return np.where(s != s, NAN32, narrow32(s, rounding))

    return general


# f16, bf16


def _small(op: FloatOp, terms: int) -> Callable[..., Array]:
    """add, mul, fma in a 16-bit format, through exact doubles."""
    name, f, rounding = op.format, FORMATS[op.format], op.rounding

    def finish(p: Array, c: Array | None, signs: Array) -> Array:
        s = p if c is None else odd_sum(p, c)
        bits = narrow(s, f, rounding, op.finite)
        if rounding == "RM" and c is not None:
            bits = np.where(s == 0, down_zero(bits, signs, f.sign), bits)
        return bits

    if terms == 3:
        return lambda a, b, c: finish(widen(a, name) * widen(b, name), widen(c, name), (a ^ b) | c)
    if op.name == "add":
        return lambda a, b: finish(widen(a, name), widen(b, name), a | b)
    return lambda a, b: finish(widen(a, name) * widen(b, name), None, a)


# f64


def _add64(op: FloatOp) -> Callable[..., Array]:
    rounding = op.rounding
    if rounding == "RN":
        return lambda a, b: nan64((a.view(F64) + b.view(F64)).view(U64), a, b)

    def directed(a: Array, b: Array) -> Array:
        x, y = a.view(F64), b.view(F64)
        s = x + y
        t = s - x
        error = (x - (s - t)) + (y - t)
        bits = direct64(s, error, np.isfinite(x) & np.isfinite(y), rounding)
        if rounding == "RM":
            bits = np.where(s == 0, down_zero(bits, a | b, 1 << 63), bits)
        return nan64(bits, a, b)

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
            return nan64(bits, a, b, c)
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
        return nan64(bits, a, b, c)

    return fn


def _mul64(op: FloatOp) -> Callable[..., Array]:
    if op.rounding == "RN":
        return lambda a, b: nan64((a.view(F64) * b.view(F64)).view(U64), a, b)
    f, rounding = FORMATS["f64"], op.rounding

    def fn(a: Array, b: Array) -> Array:
        p = a.view(F64) * b.view(F64)
        finite = np.isfinite(a.view(F64)) & np.isfinite(b.view(F64)) & (a << U64(1) != 0) & (b << U64(1) != 0)

        def exact(x: int, y: int) -> int:
            return exact_fma(x, y, (x ^ y) & 1 << 63, f, rounding)

        return nan64(_by_lane((a, b), finite, exact, p.view(U64)), a, b)

    return fn


# The makers


def _add(op: FloatOp) -> Callable[..., Array]:
    core = {"f32": _add32, "f64": _add64}.get(op.format, lambda o: _small(o, 2))(op)
    return dress(op, core)


def _sub(op: FloatOp) -> Callable[..., Array]:
    from dataclasses import replace

    add = _add(replace(op, name="add"))
    f = FORMATS[op.format]
    return lambda a, b: add(a, b ^ b.dtype.type(f.sign << f.low))


def _mul(op: FloatOp) -> Callable[..., Array]:
    core = {"f32": _mul32, "f64": _mul64}.get(op.format, lambda o: _small(o, 2))(op)
    return dress(op, core)


def _fma(op: FloatOp) -> Callable[..., Array]:
    if op.source:
        return _mixed_fma(op)
    core = {"f32": _fma32, "f64": _fma64}.get(op.format, lambda o: _small(o, 3))(op)
    return dress(op, core)


def _mixed_fma(op: FloatOp) -> Callable[..., Array]:
    """f16 or bf16 factors, f32 addend and result."""
    source, rounding = op.source, op.rounding

    def core(a: Array, b: Array, c: Array) -> Array:
        s = odd_sum(widen(a, source) * widen(b, source), widen(c, "f32"))
        bits = narrow32(s, rounding)
        if rounding == "RM":
            signs = ((a ^ b).astype(U32) << U32(16)) | c
            bits = np.where(s == 0, down_zero(bits, signs, 1 << 31), bits)
        return np.where(s != s, NAN32, bits)

    finish = clamp("f32") if op.saturate else None
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

    return dress(op, core)


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


# Division and square root: for PTX, no SASS operation does them in one step


def _div(op: FloatOp) -> Callable[..., Array]:
    name, rounding, f = op.format, op.rounding, FORMATS[op.format]

    def single(a: Array, b: Array) -> Array:
        # A quotient of 24-bit numbers is never closer to a 25-bit number than 2**-49 of it, so the double decides as the exact one.
        q = widen(a, name) / widen(b, name)
        if name != "f32":
            return narrow(q, f, rounding)
        return np.where(q != q, NAN32, narrow32(q, rounding))

    def double(a: Array, b: Array) -> Array:
        x, y = a.view(F64), b.view(F64)
        bits = (x / y).view(U64)
        if rounding != "RN":
            bits = _by_lane((a, b), np.isfinite(x) & np.isfinite(y) & (y != 0), lambda m, n: exact_div(m, n, f, rounding), bits)
        return nan64(bits, a, b)

    return dress(op, double if name == "f64" else single)


def _sqrt(op: FloatOp) -> Callable[..., Array]:
    name, rounding, f = op.format, op.rounding, FORMATS[op.format]

    def single(a: Array) -> Array:
        q = np.sqrt(widen(a, name))
        if name != "f32":
            return narrow(q, f, rounding)
        return np.where(q != q, NAN32, narrow32(q, rounding))

    def double(a: Array) -> Array:
        x = a.view(F64)
        bits = np.sqrt(x).view(U64)
        if rounding != "RN":
            bits = _by_lane((a,), np.isfinite(x) & (x >= 0), lambda m: exact_sqrt(m, f, rounding), bits)
        return nan64(bits, a)

    return dress(op, double if name == "f64" else single)


_MAKERS: dict[str, Callable[[FloatOp], Callable[..., Array]]] = {
    "add": _add, "sub": _sub, "mul": _mul, "fma": _fma, "div": _div, "sqrt": _sqrt, "min": _min_max, "max": _min_max, "compare": _compare,
    "convert": convert, "round": round_integral, "to_int": to_int, "from_int": from_int,
}  # fmt: skip
