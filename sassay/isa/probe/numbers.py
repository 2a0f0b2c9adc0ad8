"""What numbers in nvdisasm's text stand for: bits of floating-point immediates."""

from __future__ import annotations

import math
import struct

FLOAT_BITS = {"F32": 32, "F64": 32, "F16": 16, "BF16": 16}


def float_value(kind: str, raw: int) -> float:
    """The number that `raw` bits of an immediate mean. F64 immediates hold the high 32 bits only."""
    if kind == "F64":
        return float(struct.unpack("<d", struct.pack("<Q", raw << 32))[0])
    if kind == "F32":
        return float(struct.unpack("<f", struct.pack("<I", raw))[0])
    if kind == "F16":
        return float(struct.unpack("<e", struct.pack("<H", raw))[0])
    return float(struct.unpack("<f", struct.pack("<I", raw << 16))[0])


def reads_as(kind: str, raw: int, text: str) -> bool:
    """Whether nvdisasm's `text` can stand for `raw`: equal numbers with equal signs, NaN for NaN, after rounding to the kind."""
    value = float_value(kind, raw)
    negative = math.copysign(1.0, value) < 0
    if text.lstrip("+-") in ("QNAN", "SNAN"):
        return math.isnan(value) and (text[0] == "-") == _sign(kind, raw)
    if text.lstrip("+-") == "INF":
        return math.isinf(value) and (text[0] == "-") == negative
    if math.isnan(value) or math.isinf(value):
        return False
    number = float(text)
    if (math.copysign(1.0, number) < 0) != negative:
        return False
    if kind == "F32":
        try:
            return bool(struct.unpack("<f", struct.pack("<f", number))[0] == value)
        except OverflowError:
            return False
    return math.isclose(number, value, rel_tol=1e-12 if kind == "F64" else 1e-4, abs_tol=0.0)


def _sign(kind: str, raw: int) -> bool:
    return bool(raw >> (FLOAT_BITS[kind] - 1))
