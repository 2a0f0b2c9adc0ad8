"""Float formats as data, and the exact scalar arithmetic that the array code falls back on where double precision does not suffice."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: exponent and mantissa bits, smallest exponent, codes of the largest finite magnitude, infinity and canonical NaN.

    `infinity` is None in formats without one, `nan` None in formats without NaN. `low` is the number of unused low bits of the container.
    """

    name: str
    exponent: int
    mantissa: int
    emin: int
    largest: int
    infinity: int | None
    nan: int | None
    low: int = 0

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent + self.mantissa + self.low)


FORMATS = {
    f.name: f
    for f in (
        Format("f64", 11, 52, -1022, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF8000000000000),
        Format("f32", 8, 23, -126, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF),
        Format("tf32", 8, 10, -126, 0x3FBFF, 0x3FC00, 0x3FFFF, 13),
        Format("bf16", 8, 7, -126, 0x7F7F, 0x7F80, 0x7FFF),
        Format("f16", 5, 10, -14, 0x7BFF, 0x7C00, 0x7FFF),
        Format("e5m2", 5, 2, -14, 0x7B, 0x7C, 0x7F),
        Format("e4m3", 4, 3, -6, 0x7E, None, 0x7F),
        Format("e3m2", 3, 2, -2, 0x1F, None, None),
        Format("e2m3", 2, 3, 0, 0x1F, None, None),
        Format("e2m1", 2, 1, 0, 0x07, None, None),
    )
}
"""Magnitude codes are counted without the `low` unused bits. Source of the NaN codes: PTX cvt text and the measurements named in numpy_float."""


def unpack(bits: int, f: Format) -> tuple[int, int, int] | None:
    """(sign, significand, exponent) with value = significand * 2**exponent, or None for infinities and NaN. `bits` without low bits."""
    magnitude = bits & ((1 << (f.exponent + f.mantissa)) - 1)
    sign = bits >> (f.exponent + f.mantissa) & 1
    if f.infinity is not None and magnitude >= f.infinity:
        return None
    field, fraction = magnitude >> f.mantissa, magnitude & ((1 << f.mantissa) - 1)
    if field == 0:
        return sign, fraction, f.emin - f.mantissa
    return sign, fraction | 1 << f.mantissa, f.emin + field - 1 - f.mantissa


def pack(sign: int, significand: int, exponent: int, sticky: bool, f: Format, rounding: str) -> int:
    """The code nearest to +-(significand + a bit more if sticky) * 2**exponent under `rounding` (RN RZ RM RP RA). Overflow: IEEE's."""
    top = f.exponent + f.mantissa
    if significand == 0 and not sticky:
        return sign << top
    e = max(significand.bit_length() - 1 + exponent, f.emin)
    shift = e - f.mantissa - exponent
    if shift <= 0:
        code, rest, half = significand << -shift, 0, 1
    else:
        code, rest, half = significand >> shift, significand & ((1 << shift) - 1), 1 << (shift - 1)
    inexact = rest != 0 or sticky
    if rounding == "RN":
        up = rest > half or (rest == half and (sticky or code & 1 == 1))
    elif rounding == "RA":
        up = rest >= half
    else:
        up = inexact and ((rounding == "RP" and not sign) or (rounding == "RM" and sign == 1))
    code = ((e - f.emin) << f.mantissa) + code + up
    if code > f.largest:
        away = rounding in ("RN", "RA") or ((rounding == "RP") == (not sign) and rounding != "RZ")
        code = f.infinity if away and f.infinity is not None else f.largest
    return sign << top | code


def exact_fma(a: int, b: int, c: int, f: Format, rounding: str) -> int:
    """a * b + c for finite codes, one rounding."""
    x, y, z = unpack(a, f), unpack(b, f), unpack(c, f)
    assert x is not None and y is not None and z is not None
    sign, product, e = x[0] ^ y[0], x[1] * y[1], x[2] + y[2]
    low = min(e, z[2])
    p, q = product << (e - low), z[1] << (z[2] - low)
    total = (-p if sign else p) + (-q if z[0] else q)
    if total == 0:
        negative = sign & z[0] if rounding != "RM" else sign | z[0]
        return pack(negative, 0, 0, False, f, rounding)
    return pack(int(total < 0), abs(total), low, False, f, rounding)


def exact_div(a: int, b: int, f: Format, rounding: str) -> int:
    """a / b for finite codes, b not zero."""
    x, y = unpack(a, f), unpack(b, f)
    assert x is not None and y is not None
    up = 2 * f.mantissa + 8
    q, r = divmod(x[1] << up, y[1])
    return pack(x[0] ^ y[0], q, x[2] - y[2] - up, r != 0, f, rounding)


def exact_sqrt(a: int, f: Format, rounding: str) -> int:
    """Square root of a finite code that is not negative."""
    x = unpack(a, f)
    assert x is not None and not (x[0] and x[1])
    up = 2 * f.mantissa + 8 + (x[2] & 1)
    root = isqrt(x[1] << up)
    return pack(x[0], root, (x[2] - up) // 2, root * root != x[1] << up, f, rounding)
