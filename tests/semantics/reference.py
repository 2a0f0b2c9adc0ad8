"""An exact, slow reference for float operations on bit patterns, in rationals. It shares no code with the package."""

from __future__ import annotations

import math
from fractions import Fraction

SHAPES = {"f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7)}
NAN = {"f64": 0xFFF8000000000000, "f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}


def decode(bits: int, name: str) -> Fraction | float:
    """A rational, or a Python float for infinities, NaN and -0."""
    e, m = SHAPES[name]
    sign = -1 if bits >> (e + m) else 1
    field, fraction = bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)
    if field == (1 << e) - 1:
        return math.nan if fraction else sign * math.inf
    if field == 0 and fraction == 0:
        return -0.0 if sign < 0 else Fraction(0)
    bias = (1 << (e - 1)) - 1
    if field == 0:
        return sign * Fraction(fraction) * Fraction(2) ** (1 - bias - m)
    return sign * Fraction(fraction | 1 << m) * Fraction(2) ** (field - bias - m)


def is_nan(x: Fraction | float) -> bool:
    return isinstance(x, float) and math.isnan(x)


def is_inf(x: Fraction | float) -> bool:
    return isinstance(x, float) and math.isinf(x)


def negative(x: Fraction | float) -> bool:
    return math.copysign(1.0, x) < 0 if isinstance(x, float) else x < 0


def exact(x: Fraction | float) -> Fraction:
    """The value of a finite number, -0 included."""
    return Fraction(0) if isinstance(x, float) else x


def encode(q: Fraction, zero_negative: bool, name: str, mode: str) -> int:
    """The code of the rational under a rounding mode."""
    e, m = SHAPES[name]
    top = e + m
    if q == 0:
        return (1 << top) if zero_negative else 0
    sign = q < 0
    a = abs(q)
    emin = 2 - (1 << (e - 1))
    exponent = a.numerator.bit_length() - a.denominator.bit_length()
    while Fraction(2) ** exponent > a:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= a:
        exponent += 1
    quantum = Fraction(2) ** (max(exponent, emin) - m)
    n = math.floor(a / quantum)
    rest = a / quantum - n
    toward = {"RZ": False, "RM": sign, "RP": not sign}
    if mode == "RN":
        n += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n % 2 == 1)
    elif rest and toward[mode]:
        n += 1
    value = n * quantum
    largest = (2 - Fraction(1, 2**m)) * Fraction(2) ** ((1 << (e - 1)) - 1)
    infinity = ((1 << e) - 1) << m
    if value > largest:
        code = infinity if mode == "RN" or toward.get(mode) else infinity - 1
    elif value == 0:
        code = 0
    elif value < Fraction(2) ** emin:
        code = int(value / quantum)
    else:
        k = exponent if value < Fraction(2) ** (exponent + 1) else exponent + 1
        code = (k - emin + 1 << m) + int(value / Fraction(2) ** (k - m)) - (1 << m)
    return code | sign << top


def flush(bits: int, name: str) -> int:
    e, m = SHAPES[name]
    return bits & 1 << (e + m) if bits >> m & ((1 << e) - 1) == 0 else bits


def fma(a: int, b: int, c: int, name: str, mode: str, c_is_nothing: bool = False) -> int:
    """a * b + c with one rounding; `c_is_nothing` makes it the product (whose zero keeps its sign)."""
    x, y, z = decode(a, name), decode(b, name), decode(c, name)
    if is_nan(x) or is_nan(y) or is_nan(z):
        if name != "f64":
            return NAN[name]
        return next(bits for bits, v in ((a, x), (b, y), (c, z)) if is_nan(v)) | 1 << 51
    product_negative = negative(x) != negative(y)
    infinite = is_inf(x) or is_inf(y)
    if infinite and (exact(x) == 0 if not is_inf(x) else exact(y) == 0 if not is_inf(y) else False):
        return NAN[name]
    e, m = SHAPES[name]
    infinity = ((1 << e) - 1) << m
    if infinite:
        if is_inf(z) and negative(z) != product_negative:
            return NAN[name]
        return infinity | product_negative << (e + m)
    if is_inf(z):
        return c
    product = exact(x) * exact(y)
    if c_is_nothing:
        return encode(product, product_negative, name, mode)
    total = product + exact(z)
    both = product == 0 and exact(z) == 0
    if both and product_negative == negative(z):
        zero_negative = product_negative
    else:
        zero_negative = mode == "RM"
    return encode(total, zero_negative, name, mode)


def add(a: int, b: int, name: str, mode: str) -> int:
    one = {"f64": 0x3FF0000000000000, "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}[name]
    x, y = decode(a, name), decode(b, name)
    if is_nan(x) or is_nan(y):
        return fma(a, one, b, name, mode)
    return fma(a, one, b, name, mode)


def mul(a: int, b: int, name: str, mode: str) -> int:
    return fma(a, b, 0, name, mode, True)


def convert(a: int, source: str, name: str, mode: str) -> int:
    x = decode(a, source)
    e, m = SHAPES[name]
    if is_nan(x):
        if name != "f64":
            return NAN[name]
        se, sm = SHAPES[source]
        sign, payload = a >> (se + sm), a & ((1 << sm) - 1)
        return sign << 63 | 0x7FF8 << 48 | payload << (52 - sm)
    if is_inf(x):
        return ((1 << e) - 1) << m | negative(x) << (e + m)
    return encode(exact(x), negative(x), name, mode)


def to_int(a: int, source: str, mode: str, bits: int, signed: bool, nan_zero: bool) -> int:
    x = decode(a, source)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if is_nan(x):
        return 0 if nan_zero else 1 << (bits - 1)
    if is_inf(x):
        return (low if negative(x) else high) & ((1 << bits) - 1)
    q = exact(x)
    n = {"RN": round, "RZ": math.trunc, "RM": math.floor, "RP": math.ceil}[mode](q)
    return min(max(n, low), high) & ((1 << bits) - 1)
