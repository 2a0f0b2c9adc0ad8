"""wmma.mma over numpy arrays. PTX leaves open which lane holds which element; here element e, counted by rows, is the e-th of the warp's registers
in order of lanes, elements side by side in a register, and again from the start where a fragment has more places than elements.

The arithmetic is that of `numpy_mma`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassay.errors import UnsupportedError
from sassay.isa.semantics.algebra import Exchange, FloatOp
from sassay.isa.semantics.formats import FORMATS
from sassay.isa.semantics.numpy_float import resolve as resolve_float
from sassay.isa.semantics.numpy_mma import block_product, exponents
from sassay.isa.semantics.numpy_rounding import U32, widen

Array = Any
SHAPES = {"m16n16k16": (16, 16, 16), "m8n32k16": (8, 32, 16), "m32n8k16": (32, 8, 16), "m16n16k8": (16, 16, 8), "m8n8k4": (8, 8, 4)}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "s8": 8, "u8": 8}


def _collect(parts: tuple[Array, ...], bits: int, rows: int, columns: int) -> Array:
    """(..., rows, columns) elements of a fragment."""
    shape = np.broadcast_shapes(*(p.shape for p in parts), (32,))
    words = np.stack([np.broadcast_to(p, shape) for p in parts], axis=-1)
    if bits < 32:
        words = (words[..., None] >> np.arange(0, 32, bits, dtype=U32)).astype({8: np.uint8, 16: np.uint16}[bits])
    flat = words.reshape(*shape[:-1], -1)[..., : rows * columns]
    return flat.reshape(*shape[:-1], rows, columns)


def _spread(values: Array, bits: int, count: int) -> tuple[Array, ...]:
    """The `count` registers of a fragment."""
    flat = values.reshape(*values.shape[:-2], -1)
    per = max(32 // bits, 1)
    slots = np.arange(32 * count * per) % flat.shape[-1]
    places = flat[..., slots].reshape(*flat.shape[:-1], 32, count, per)
    if per == 1:
        return tuple(places[..., r, 0] for r in range(count))
    return tuple(sum((places[..., r, k].astype(U32) << U32(bits * k) for k in range(1, per)), places[..., r, 0].astype(U32)) for r in range(count))


def resolve(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    """The array function of a product. `params`: shape, types of d, a, b and c, numbers of registers of a and b, "satfinite" or ""."""
    shape, d, a, b, c, count_a, count_b, option = op.params
    rows, columns, depth = SHAPES[shape]
    na, nb = int(count_a), int(count_b)
    multiply = _float(a, d, depth) if d in ("f16", "f32") else _double(depth) if d == "f64" else _integer(a, b, option)
    if d != c:
        raise UnsupportedError("wmma with different accumulator types has no concrete model")

    def fn(active: Array, *parts: Array) -> tuple[Array, ...]:
        x = _collect(parts[:na], _BITS[a], rows, depth)
        y = np.swapaxes(_collect(parts[na : na + nb], _BITS[b], depth, columns), -1, -2)
        z = _collect(parts[na + nb :], _BITS[c], rows, columns)
        return _spread(multiply(x, y, z), _BITS[d], len(op.widths))

    return fn


def _float(a: str, d: str, depth: int) -> Callable[[Array, Array, Array], Array]:
    half, block = d == "f16", 8 if a == "tf32" else 16
    floor, emin = -21 if half else -133, FORMATS[a].emin

    def multiply(x: Array, y: Array, z: Array) -> Array:
        if a == "tf32":
            x, y = x & U32(0xFFFFE000), y & U32(0xFFFFE000)
        vx, vy = widen(np.ascontiguousarray(x), a), widen(np.ascontiguousarray(y), a)
        ex, ey = exponents(vx, emin), exponents(vy, emin)
        for k in range(0, depth, block):
            s = slice(k, k + block)
            exponent = ex[..., :, None, s] + ey[..., None, :, s]
            z = block_product(vx[..., :, None, s], vy[..., None, :, s], exponent, z, half, floor)
        return z

    return multiply


def _integer(a: str, b: str, option: str) -> Callable[[Array, Array, Array], Array]:
    def multiply(x: Array, y: Array, z: Array) -> Array:
        wide_x = (x.view(np.int8) if a == "s8" else x).astype(np.int64)
        wide_y = (np.ascontiguousarray(y).view(np.int8) if b == "s8" else y).astype(np.int64)
        total = wide_x @ np.swapaxes(wide_y, -1, -2) + z.view(np.int32)
        return (np.clip(total, -(1 << 31), (1 << 31) - 1) if option else total).astype(U32)

    return multiply


def _double(depth: int) -> Callable[[Array, Array, Array], Array]:
    fma = resolve_float(FloatOp("fma", "f64", "RN"))

    def multiply(x: Array, y: Array, z: Array) -> Array:
        for k in range(depth):
            z = fma(np.ascontiguousarray(x[..., :, None, k]), np.ascontiguousarray(y[..., None, :, k]), z)
        return z

    return multiply
