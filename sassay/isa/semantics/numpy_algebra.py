"""The concrete interpreter: one numpy array element per lane.

Values of width 1, 8, 16, 32 and 64 are arrays of bool, uint8, uint16, uint32 and uint64; other widths sit in the next wider of these with zero high
bits, and past 64 bits in object arrays of Python integers. Arrays of any shapes that broadcast may meet; a uniform value is an array of
shape (1,). (Arrays, never numpy scalars: those warn of the overflow that wraps here by intent.) Plain integers are served by `evaluate` below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sassay.isa.semantics import numpy_float, numpy_opaque, numpy_warp
from sassay.isa.semantics.algebra import Exchange, FloatOp, Opaque

Array = Any
"""An array; its element type follows the width, which the type checker cannot see."""

_SIGNED: dict[Any, Any] = {
    np.dtype(np.uint8): np.int8, np.dtype(np.uint16): np.int16, np.dtype(np.uint32): np.int32, np.dtype(np.uint64): np.int64,
}  # fmt: skip
_NATURAL = (1, 8, 16, 32, 64)


def dtype_of(w: int) -> Any:
    """The container of a `w`-bit value."""
    if w == 1:
        return np.bool_
    if w <= 8:
        return np.uint8
    if w <= 16:
        return np.uint16
    if w <= 32:
        return np.uint32
    if w <= 64:
        return np.uint64
    return np.object_


def _cut(a: Array, w: int) -> Array:
    """Clear the container's bits from `w` up."""
    if w in _NATURAL:
        return a
    if w > 64:
        return a & ((1 << w) - 1)
    return a & a.dtype.type((1 << w) - 1)


def _signed(a: Array, w: int) -> Array:
    """The value as a signed number: a signed view, or a sign-extended copy for odd widths."""
    if w in _NATURAL:
        return a.view(_SIGNED[a.dtype])
    if w > 64:
        half = 1 << (w - 1)
        return (a ^ half) - half
    up = a.dtype.itemsize * 8 - w
    shift = a.dtype.type(up)
    return (a << shift).view(_SIGNED[a.dtype]) >> _SIGNED[a.dtype](up)


class NumpyAlgebra:
    """Algebra over numpy arrays. Stateless: use the one instance `NUMPY`."""

    def const(self, value: int, w: int) -> Array:
        return np.array([value & ((1 << w) - 1)], dtype_of(w))

    def add(self, a: Array, b: Array, w: int) -> Array:
        return a ^ b if w == 1 else _cut(a + b, w)

    def sub(self, a: Array, b: Array, w: int) -> Array:
        return a ^ b if w == 1 else _cut(a - b, w)

    def neg(self, a: Array, w: int) -> Array:
        return a if w == 1 else _cut(-a, w)

    def mul(self, a: Array, b: Array, w: int) -> Array:
        return a & b if w == 1 else _cut(a * b, w)

    def and_(self, a: Array, b: Array, w: int) -> Array:
        return a & b

    def or_(self, a: Array, b: Array, w: int) -> Array:
        return a | b

    def xor(self, a: Array, b: Array, w: int) -> Array:
        return a ^ b

    def not_(self, a: Array, w: int) -> Array:
        if w > 64:
            return a ^ ((1 << w) - 1)
        return _cut(~a, w)

    def shl(self, a: Array, n: Array, w: int) -> Array:
        if w > 64:
            return _cut(np.where(n >= w, 0, a << np.minimum(n, w)), w)
        n, late = _amount(n, w)
        r = a << n
        if late is not None:
            r = np.where(late, r.dtype.type(0), r)
        return _cut(r, w)

    def lshr(self, a: Array, n: Array, w: int) -> Array:
        if w > 64:
            return np.where(n >= w, 0, a >> np.minimum(n, w))
        n, late = _amount(n, w)
        r = a >> n
        if late is not None:
            r = np.where(late, r.dtype.type(0), r)
        return r

    def ashr(self, a: Array, n: Array, w: int) -> Array:
        if w > 64:
            return _cut(_signed(a, w) >> np.minimum(n, w), w)
        signed = _signed(a, w)
        n = np.minimum(n, n.dtype.type(w - 1))
        return _cut((signed >> n.view(signed.dtype)).view(a.dtype), w)

    def extract(self, a: Array, high: int, low: int, w: int) -> Array:
        size = high - low + 1
        if w > 64:
            r = (a >> low) & ((1 << size) - 1)
            return r.astype(dtype_of(size)) if size <= 64 else r
        if low:
            a = a >> a.dtype.type(low)
        if size == 1:
            return (a & a.dtype.type(1)).astype(np.bool_)
        target = dtype_of(size)
        if a.dtype != target:
            a = a.astype(target)
        return _cut(a, size) if high != w - 1 else a

    def concat(self, high: Array, low: Array, high_width: int, low_width: int) -> Array:
        w = high_width + low_width
        if high_width == 32 and low_width == 32:
            if high.shape == low.shape:
                pair = np.empty((*high.shape, 2), np.uint32)
                pair[..., 0] = low
                pair[..., 1] = high
                return pair.view(np.uint64)[..., 0]
        target = dtype_of(w)
        if w > 64:
            return (high.astype(object) << low_width) | low.astype(object)
        wide = high.astype(target)
        wide = wide << wide.dtype.type(low_width)
        return wide | low.astype(target)

    def zext(self, a: Array, w: int, to: int) -> Array:
        target = dtype_of(to)
        return a if a.dtype == target else a.astype(target)

    def sext(self, a: Array, w: int, to: int) -> Array:
        if w == 1:
            r = self.neg(self.zext(a, 1, to), to) if to > 1 else a
            return r
        if w == to:
            return a
        if to > 64:
            return _cut(_signed(a, w).astype(object), to)
        target = np.dtype(dtype_of(to))
        return _cut(_signed(a, w).astype(_SIGNED[target]).view(target), to)

    def eq(self, a: Array, b: Array, w: int) -> Array:
        return a == b

    def ult(self, a: Array, b: Array, w: int) -> Array:
        return a < b

    def ule(self, a: Array, b: Array, w: int) -> Array:
        return a <= b

    def slt(self, a: Array, b: Array, w: int) -> Array:
        return a & ~b if w == 1 else _signed(a, w) < _signed(b, w)

    def sle(self, a: Array, b: Array, w: int) -> Array:
        return a | ~b if w == 1 else _signed(a, w) <= _signed(b, w)

    def ite(self, p: Array, a: Array, b: Array, w: int) -> Array:
        return np.where(p, a, b)

    def clz(self, a: Array, w: int) -> Array:
        if w > 64:
            return np.array([w - int(x).bit_length() for x in a.flat], object).reshape(a.shape)
        if w <= 32:
            # The exponent of an exact double is the place of the highest one; zero has exponent field 0.
            place = a.astype(np.float64).view(np.uint64) >> np.uint64(52)
            return (np.uint64(w - 1 + 1023) - np.maximum(place, np.uint64(1022))).astype(a.dtype)
        high = self.clz((a >> np.uint64(32)).astype(np.uint32), 32).astype(np.uint64)
        low = self.clz(a.astype(np.uint32), 32).astype(np.uint64)
        return np.where(high == 32, low + np.uint64(32), high) - np.uint64(64 - w)

    def popcount(self, a: Array, w: int) -> Array:
        if w > 64:
            return np.array([int(x).bit_count() for x in a.flat], object).reshape(a.shape)
        return a if w == 1 else np.bitwise_count(a).astype(a.dtype)

    def reverse(self, a: Array, w: int) -> Array:
        if w > 64:
            return np.array([int(f"{int(x):0{w}b}"[::-1], 2) for x in a.flat], object).reshape(a.shape)
        if w == 1:
            return a
        t = a.dtype.type
        for step, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
            m = t(mask & ((1 << (a.dtype.itemsize * 8)) - 1))
            a = ((a >> t(step)) & m) | ((a & m) << t(step))
        a = a.byteswap()
        return a >> t(a.dtype.itemsize * 8 - w)

    def udiv(self, a: Array, b: Array, w: int) -> Array:
        if w == 1:
            return a | ~b
        zero = b == 0
        ones = a.dtype.type((1 << w) - 1) if w <= 64 else (1 << w) - 1
        one = b.dtype.type(1) if w <= 64 else 1
        return np.where(zero, ones, a // np.where(zero, one, b))

    def urem(self, a: Array, b: Array, w: int) -> Array:
        if w == 1:
            return a & ~b
        zero = b == 0
        one = b.dtype.type(1) if w <= 64 else 1
        return np.where(zero, a, a % np.where(zero, one, b))

    def float_op(self, op: FloatOp) -> Callable[..., Array]:
        return numpy_float.resolve(op)

    def opaque(self, op: Opaque) -> Callable[..., tuple[Array, ...]]:
        return numpy_opaque.resolve(op)

    def exchange(self, op: Exchange) -> Callable[..., tuple[Array, ...]]:
        return numpy_warp.resolve(op)


def _amount(n: Array, w: int) -> tuple[Array, Array | None]:
    """A shift amount made safe for the container, and where it was `w` or more (None when nowhere, found out cheaply)."""
    late = n >= n.dtype.type(w)
    if not late.any():
        return n, None
    return np.where(late, n.dtype.type(0), n), late


def quiet() -> Any:
    """The context to evaluate in: overflow and invalid operations of floats are ordinary here, not warnings."""
    return np.errstate(all="ignore")


def evaluate(run: Callable[..., tuple[Any, ...]], values: Sequence[int], widths: Sequence[int]) -> tuple[int, ...]:
    """A compiled operation on plain integers: the raw values of its reads with their widths, to the results. For single evaluations."""
    with quiet():
        results = run(*(np.array([v], dtype_of(w)) for v, w in zip(values, widths, strict=True)))
    return tuple(int(r.flat[0]) for r in results)


NUMPY = NumpyAlgebra()
"""The one concrete interpreter."""
