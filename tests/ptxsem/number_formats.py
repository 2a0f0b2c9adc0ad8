"""Arithmetic by definition for the instruction cases: Python integers and fractions, nothing of the package."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
NAN, INF = "nan", "inf"
Number = Fraction | str
"""A fraction, "nan", or "inf", "-inf", "-0"."""


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def clamp(value: int, bits: int, is_signed: bool) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def number(bits: int, format_: str) -> Number:
    """What a bit pattern stands for."""
    exponent, fraction = FORMATS[format_]
    sign = -1 if bits >> (exponent + fraction) & 1 else 1
    e, f = bits >> fraction & ((1 << exponent) - 1), bits & ((1 << fraction) - 1)
    if e == (1 << exponent) - 1:
        return NAN if f else INF if sign > 0 else "-inf"
    bias = (1 << exponent - 1) - 1
    if e == 0:
        return Fraction(sign * f) * Fraction(2) ** (1 - bias - fraction) if f else (Fraction(0) if sign > 0 else "-0")
    return Fraction(sign * (f | 1 << fraction)) * Fraction(2) ** (e - bias - fraction)


def special(name: str, format_: str) -> int:
    exponent, fraction = FORMATS[format_]
    sign = 1 << (exponent + fraction)
    infinity = ((1 << exponent) - 1) << fraction
    return {INF: infinity, "-inf": sign | infinity, "-0": sign, NAN: {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}.get(format_, -1)}[name]


def integral(value: Fraction, mode: str, negative: bool) -> int:
    """The magnitude |value| rounded to an integer: mode rn (even), rna (away), rz, rm, rp."""
    value = abs(value)
    low = value.numerator // value.denominator
    rest = value - low
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low & 1),
        "rna": rest >= Fraction(1, 2),
        "rz": False,
        "rm": bool(rest) and negative,
        "rp": bool(rest) and not negative,
    }[mode]
    return low + int(up)


def encode(value: Number, format_: str, mode: str = "rn", ftz: bool = False) -> int:
    """Bits of a number rounded to a format."""
    if isinstance(value, str):
        return special(value, format_)
    exponent, fraction = FORMATS[format_]
    if value == 0:
        return 0
    bias = (1 << exponent - 1) - 1
    negative = value < 0
    sign = int(negative) << (exponent + fraction)
    magnitude = abs(value)
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    while Fraction(2) ** e > magnitude:
        e -= 1
    while Fraction(2) ** (e + 1) <= magnitude:
        e += 1
    e = max(e, 1 - bias)
    whole = integral(magnitude / Fraction(2) ** (e - fraction), mode, negative)
    bits = whole if e == 1 - bias else whole + ((e + bias - 1) << fraction)
    limit = ((1 << exponent) - 1) << fraction
    if bits >= limit:
        away = mode in ("rn", "rna") or (mode == "rp" and not negative) or (mode == "rm" and negative)
        bits = limit if away else limit - 1
    if ftz and bits < 1 << fraction:
        bits = 0
    return sign | bits


def zero(mode: str, a_negative: bool, b_negative: bool) -> Number:
    """The sign of an exact zero sum."""
    if a_negative and b_negative:
        return "-0"
    return "-0" if a_negative != b_negative and mode == "rm" else Fraction(0)


def is_negative(x: Number) -> bool:
    return x in ("-0", "-inf") if isinstance(x, str) else x < 0


def finite(x: Number) -> Fraction:
    return Fraction(0) if x == "-0" else Fraction(x)


def add(x: Number, y: Number, mode: str = "rn") -> Number:
    if NAN in (x, y) or {x, y} == {INF, "-inf"}:
        return NAN
    for v in (x, y):
        if v in (INF, "-inf"):
            return v
    total = finite(x) + finite(y)
    if total:
        return total
    if finite(x):
        return zero(mode, True, False)
    return zero(mode, is_negative(x), is_negative(y))


def multiply(x: Number, y: Number) -> Number:
    if NAN in (x, y):
        return NAN
    minus = is_negative(x) != is_negative(y)
    if x in (INF, "-inf") or y in (INF, "-inf"):
        if any(v not in (INF, "-inf") and not finite(v) for v in (x, y)):
            return NAN
        return "-inf" if minus else INF
    result = finite(x) * finite(y)
    return result if result else "-0" if minus else Fraction(0)


def divide(x: Number, y: Number) -> Number:
    if NAN in (x, y):
        return NAN
    minus = is_negative(x) != is_negative(y)
    infinite_x, infinite_y = x in (INF, "-inf"), y in (INF, "-inf")
    if infinite_x or infinite_y:
        if infinite_x and infinite_y:
            return NAN
        return ("-inf" if minus else INF) if infinite_x else "-0" if minus else Fraction(0)
    if not finite(y):
        return NAN if not finite(x) else "-inf" if minus else INF
    result = finite(x) / finite(y)
    return result if result else "-0" if minus else Fraction(0)


def root(x: Number) -> Number:
    """A square root, to far more digits than any format has, with a sticky last one."""
    if isinstance(x, str):
        return {"-inf": NAN}.get(x, x)
    if x < 0:
        return NAN
    scale = 1 << 1400
    whole = isqrt(x.numerator * scale * scale // x.denominator)
    exact = Fraction(whole, scale) ** 2 == x
    return Fraction(whole, scale) if exact else Fraction(2 * whole + 1, 2 * scale)


def flush(bits: int, format_: str = "f32") -> int:
    exponent, fraction = FORMATS[format_]
    return bits if bits >> fraction & ((1 << exponent) - 1) else bits & 1 << (exponent + fraction)


def to_integer(bits: int, format_: str, mode: str, width: int, is_signed: bool) -> int:
    """cvt to an integer: clamped; NaN is 0, or the top bit where source or destination has 64 bits (ISA, cvt)."""
    x = number(bits, format_)
    if x == NAN:
        return 1 << (width - 1) if format_ == "f64" or width == 64 else 0
    if x in (INF, "-inf"):
        return clamp((1 << 80) * (1 if x == INF else -1), width, is_signed)
    value = finite(x)
    whole = integral(value, mode, value < 0) * (-1 if value < 0 else 1)
    return clamp(whole, width, is_signed)
