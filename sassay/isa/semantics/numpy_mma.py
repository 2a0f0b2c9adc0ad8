"""Matrix products over numpy arrays, in the best published models.

Floats (measured by others on H100, H200, B200 and RTX PRO 6000): the products of a block of k and C are aligned to the greatest exponent (of
unnormalised products, not below -133), each cut toward zero at 25 bits below it, summed exactly, and the sum cut to f32 (or rounded to f16). NaN and
infinities as in IEEE sums, NaN canonical. Double precision: a chain of multiply-adds from C in order of k. Integers: exact, then wrap or clamp.

Fragments are 32-bit registers of all lanes, shape (..., 32); PTX gives which lane holds which element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassay.errors import UnsupportedError
from sassay.isa.semantics.algebra import Exchange, FloatOp
from sassay.isa.semantics.formats import FORMATS
from sassay.isa.semantics.numpy_float import resolve as resolve_float
from sassay.isa.semantics.numpy_rounding import F64, U32, narrow, narrow32, widen

Array = Any
_SHAPES = {
    "16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "16832": (16, 8, 32), "8816": (8, 8, 16), "8832": (8, 8, 32),
    "8x8x4": (8, 8, 4), "16x8x4": (16, 8, 4), "16x8x8": (16, 8, 8), "16x8x16": (16, 8, 16),
}  # fmt: skip
_FLOATS = {"F16": "f16", "BF16": "bf16", "TF32": "tf32", "E4M3": "e4m3", "E5M2": "e5m2", "E3M2": "e3m2", "E2M3": "e2m3", "E2M1": "e2m3"}
"""An e2m1 operand of QMMA reads as the e2m3 made of its byte's low six bits."""
_LANE = np.arange(32)
_GROUP, _PLACE = _LANE >> 2, _LANE & 3


def resolve(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    """The array function of a matrix product."""
    shape, d, a = op.params[0], op.params[1], op.params[2]
    if a == "B1":
        return _bits(op)
    if shape not in _SHAPES:
        raise UnsupportedError(f"matrix product of shape {shape} has no concrete model")
    if d == "F64":
        return _double(op)
    if a in ("S8", "U8"):
        return _integer(op)
    return _float(op)


def _places(rows: int, depth: int, per: int) -> Array:
    """(register, element, lane) -> row * depth + k of an A fragment (or column of B), `per` elements to a 32-bit register."""
    groups = rows // 8
    places = []
    for k in range(0, depth, 4 * per):
        for g in range(groups):
            places.append([(8 * g + _GROUP) * depth + k + per * _PLACE + e for e in range(per)])
    return np.array(places)


def _gather(parts: tuple[Array, ...], rows: int, depth: int, bits: int) -> Array:
    """Elements (..., rows, depth) of an A fragment, or of B with its columns as rows."""
    per = 32 // bits
    places = _places(rows, depth, per)
    shape = np.broadcast_shapes(*(p.shape for p in parts), (32,))
    out = np.empty((*shape[:-1], rows * depth), {8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])
    for r, part in enumerate(parts):
        word = np.broadcast_to(part, shape)
        for e in range(per):
            out[..., places[r, e]] = (word >> U32(bits * e)).astype(out.dtype)
    return out.reshape(*shape[:-1], rows, depth)


def _result_places(rows: int) -> Array:
    """(element, lane) -> row * 8 + column of a C fragment: pairs of neighbours, eight rows at a time."""
    return np.array([(8 * g + _GROUP) * 8 + 2 * _PLACE + e for g in range(rows // 8) for e in range(2)])


def _gather_result(parts: tuple[Array, ...], rows: int, bits: int) -> Array:
    shape = np.broadcast_shapes(*(p.shape for p in parts), (32,))
    places = _result_places(rows)
    out = np.empty((*shape[:-1], rows * 8), np.uint16 if bits == 16 else np.uint32)
    for i, place in enumerate(places):
        if bits == 32:
            out[..., place] = np.broadcast_to(parts[i], shape)
        else:
            out[..., place] = (np.broadcast_to(parts[i // 2], shape) >> U32(16 * (i & 1))).astype(np.uint16)
    return out.reshape(*shape[:-1], rows, 8)


def _scatter_result(values: Array, rows: int, bits: int) -> tuple[Array, ...]:
    flat = values.reshape(*values.shape[:-2], rows * 8)
    places = _result_places(rows)
    if bits == 32:
        return tuple(flat[..., p].astype(U32) for p in places)
    return tuple(flat[..., places[i]].astype(U32) | flat[..., places[i + 1]].astype(U32) << U32(16) for i in range(0, len(places), 2))


def _split_parts(op: Exchange, parts: tuple[Array, ...], a_bits: int, b_bits: int) -> tuple[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]]:
    rows, columns, depth = _SHAPES[op.params[0]]
    na, nb = rows * depth * a_bits // 1024, columns * depth * b_bits // 1024
    return parts[:na], parts[na : na + nb], parts[na + nb :]


def exponents(values: Array, emin: int) -> Array:
    """Exponents of the significands as the format holds them: subnormals keep the smallest one."""
    return np.maximum(np.frexp(values)[1] - 1, emin)


_FRACTION = 25


def _float(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    rows, _, depth = _SHAPES[op.params[0]]
    d, fa, fb = op.params[1], _FLOATS[op.params[2]], _FLOATS[op.params[3]]
    bits = {"tf32": 32, "f16": 16, "bf16": 16}
    ba, bb = bits.get(fa, 8), bits.get(fb, 8)
    half = d == "F16"
    floor = -21 if half else -133
    block = 8 if fa == "tf32" else 16 if ba == 16 else 32

    def load(parts: tuple[Array, ...], count: int, width: int, name: str) -> tuple[Array, Array]:
        x = _gather(parts, count, depth, width)
        if name == "tf32":
            x = x & U32(0xFFFFE000)
        if name in ("e2m3", "e3m2"):
            x = x & np.uint8(0x3F)
        v = widen(x, name)
        return v, exponents(v, FORMATS[name].emin)

    def fn(active: Array, *parts: Array) -> tuple[Array, ...]:
        pa, pb, pc = _split_parts(op, parts, ba, bb)
        (va, ea), (vb, eb) = load(pa, rows, ba, fa), load(pb, 8, bb, fb)
        c = _gather_result(pc, rows, 16 if half else 32)
        for k in range(0, depth, block):
            s = slice(k, k + block)
            c = block_product(va[..., :, None, s], vb[..., None, :, s], ea[..., :, None, s] + eb[..., None, :, s], c, half, floor)
        return _scatter_result(c, rows, 16 if half else 32)

    return fn


def block_product(va: Array, vb: Array, exponent: Array, c: Array, half: bool, floor: int) -> Array:
    """C plus a block of products (last axis), in one step."""
    name = "f16" if half else "f32"
    products = va * vb
    addend = widen(c, name)
    plain = products.sum(axis=-1) + addend
    special = ~np.isfinite(plain)
    products = np.where(np.isfinite(products), products, 0.0)
    addend = np.where(np.isfinite(addend), addend, 0.0)
    top = np.where(products != 0, exponent, floor).max(axis=-1)
    top = np.maximum(top, np.where(addend != 0, exponents(addend, FORMATS[name].emin), floor))
    scale = _FRACTION - top
    total = np.trunc(np.ldexp(products, scale[..., None])).sum(axis=-1) + np.trunc(np.ldexp(addend, scale))
    value = np.where(special, plain, np.ldexp(total + 0.0, -scale))
    if half:
        return narrow(value, FORMATS["f16"], "RN")
    bits = narrow32(value, "RZ")
    bits = np.where(np.abs(value) >= 2.0**128, np.where(value < 0, U32(0xFF800000), U32(0x7F800000)), bits)
    return np.where(value != value, U32(0x7FFFFFFF), bits)


def _integer(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    rows, _, depth = _SHAPES[op.params[0]]
    signed_a, signed_b, clamp = op.params[2] == "S8", op.params[3] == "S8", "SAT" in op.params

    def fn(active: Array, *parts: Array) -> tuple[Array, ...]:
        pa, pb, pc = _split_parts(op, parts, 8, 8)
        a, b = _gather(pa, rows, depth, 8), _gather(pb, 8, depth, 8)
        x = (a.view(np.int8) if signed_a else a).astype(np.int64)
        y = (b.view(np.int8) if signed_b else b).astype(np.int64)
        total = x @ np.swapaxes(y, -1, -2) + _gather_result(pc, rows, 32).view(np.int32)
        if clamp:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return _scatter_result(total.astype(U32), rows, 32)

    return fn


def _bits(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    """Single bits: words of 32 along k take the part that elements have elsewhere."""
    combine: Any = np.bitwise_and if "AND" in op.params else np.bitwise_xor

    def fn(active: Array, *parts: Array) -> tuple[Array, ...]:
        a, b = _gather(parts[:4], 16, 8, 32), _gather(parts[4:6], 8, 8, 32)
        ones = np.bitwise_count(combine(a[..., :, None, :], b[..., None, :, :])).sum(axis=-1, dtype=U32)
        return _scatter_result(ones + _gather_result(parts[6:], 16, 32), 16, 32)

    return fn


def _double(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    rows, _, depth = _SHAPES[op.params[0]]
    fma = resolve_float(FloatOp("fma", "f64", op.params[-1]))
    a_places = np.array([(8 * g + _GROUP) * depth + k + _PLACE for k in range(0, depth, 4) for g in range(rows // 8)])
    b_places = np.array([_GROUP * depth + k + _PLACE for k in range(0, depth, 4)])
    c_places = _result_places(rows)

    def collect(parts: tuple[Array, ...], places: Array, count: int) -> Array:
        shape = np.broadcast_shapes(*(p.shape for p in parts), (32,))
        out = np.empty((*shape[:-1], count), np.uint64)
        for place, part in zip(places, parts, strict=True):
            out[..., place] = np.broadcast_to(part, shape)
        return out

    def fn(active: Array, *parts: Array) -> tuple[Array, ...]:
        na, nb = len(a_places), len(b_places)
        a = collect(parts[:na], a_places, rows * depth)
        b = collect(parts[na : na + nb], b_places, 8 * depth)
        c = collect(parts[na + nb :], c_places, rows * 8).view(F64)
        a, b = a.reshape(*a.shape[:-1], rows, depth), b.reshape(*b.shape[:-1], 8, depth)
        total = c.view(np.uint64).reshape(*c.shape[:-1], rows, 8)
        for k in range(depth):
            total = fma(np.ascontiguousarray(a[..., :, None, k]), np.ascontiguousarray(b[..., None, :, k]), total)
        flat = total.reshape(*total.shape[:-2], rows * 8)
        return tuple(flat[..., place] for place in c_places)

    return fn
