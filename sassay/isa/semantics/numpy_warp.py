"""Warp exchanges over numpy arrays: the last axis is the 32 lanes. Results that are equal in all lanes keep a last axis of 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sassay.errors import UnsupportedError
from sassay.isa.semantics.algebra import Exchange, FloatOp
from sassay.isa.semantics.numpy_float import resolve as resolve_float

Array = Any
U32 = np.uint32
LANES = np.arange(32, dtype=U32)
_BITS = U32(1) << LANES


@cache
def resolve(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    """The array function of an exchange."""
    if op.name == "mma":
        from sassay.isa.semantics import numpy_mma

        return numpy_mma.resolve(op)
    if op.name == "wmma":
        from sassay.isa.semantics import numpy_wmma

        return numpy_wmma.resolve(op)
    maker = _MAKERS.get(op.name)
    if maker is None:
        raise UnsupportedError(f"warp exchange {op.name} has no concrete model")
    return maker(op)


def _wide(a: Array) -> Array:
    """The value in all 32 lanes."""
    return a if a.shape[-1] == 32 else np.broadcast_to(a, (*a.shape[:-1], 32))


def _ballot(p: Array) -> Array:
    return np.bitwise_or.reduce(np.where(p, _BITS, U32(0)), axis=-1, keepdims=True)


def _shfl(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    mode = op.params[0]

    def fn(active: Array, value: Array, lane: Array, clamp: Array) -> tuple[Array, ...]:
        value = _wide(value)
        n = (lane & U32(31)).astype(np.int32)
        segment = (clamp >> U32(8) & U32(31)).astype(np.int32)
        limit = (clamp & U32(31)).astype(np.int32)
        me = LANES.astype(np.int32)
        low = me & segment
        last = low | (limit & ~segment)
        if mode == "UP":
            source = me - n
            inside = source >= last
        elif mode == "DOWN":
            source = me + n
            inside = source <= last
        elif mode == "BFLY":
            source = me ^ n
            inside = source <= last
        else:
            source = low | (n & ~segment)
            inside = source <= last
        source = np.where(inside, source, me)
        if source.size == 32:
            taken = value[..., source.reshape(32)]
            return taken, np.broadcast_to(inside.reshape(32), taken.shape)
        shape = np.broadcast_shapes(value.shape, source.shape)
        taken = np.take_along_axis(np.broadcast_to(value, shape), np.broadcast_to(source, shape), axis=-1)
        return taken, np.broadcast_to(inside, shape)

    return fn


def _vote(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    mode = op.params[0]

    def fn(active: Array, p: Array) -> tuple[Array, ...]:
        here = active & p
        ballot = _ballot(here)
        some = ballot != 0
        if mode == "ANY":
            return ballot, some
        every = ballot == _ballot(active)
        return ballot, every if mode == "ALL" else every | ~some

    return fn


def _redux(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    mode, kind, nan = op.params
    if kind == "F32":
        if mode[:3] not in ("MIN", "MAX"):
            raise UnsupportedError(f"REDUX.{mode}.F32 has no concrete model")
        return _redux_float(mode, nan == "NAN")
    if mode.endswith("ABS"):
        raise UnsupportedError(f"REDUX.{mode}.{kind} has no concrete model")
    ufunc: Any = {"AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor, "SUM": np.add, "MIN": np.minimum, "MAX": np.maximum}[mode]
    signed = kind == "S32" and mode in ("MIN", "MAX")
    dtype = np.int32 if signed else U32
    info = np.iinfo(dtype)
    neutral = {"AND": info.max if not signed else -1, "MIN": info.max, "MAX": info.min}.get(mode, 0)

    def fn(active: Array, value: Array) -> tuple[Array, ...]:
        v = np.where(active, _wide(value).view(dtype), dtype(neutral))
        r = ufunc.reduce(v, axis=-1, keepdims=True, dtype=dtype)
        return (r.view(U32),)

    return fn


def _redux_float(mode: str, nan_wins: bool) -> Callable[..., tuple[Array, ...]]:
    least, magnitudes = mode.startswith("MIN"), mode.endswith("ABS")
    pick = resolve_float(FloatOp("min" if least else "max", "f32", nan_wins=nan_wins))
    # A quiet NaN is neutral where numbers win; where NaN wins, the infinity of the losing side is.
    neutral = U32((0x7F800000 if least else 0xFF800000) if nan_wins else 0x7FFFFFFF)

    def fn(active: Array, value: Array) -> tuple[Array, ...]:
        v = np.where(active, value & U32(0x7FFFFFFF) if magnitudes else value, neutral)
        while v.shape[-1] > 1:
            half = v.shape[-1] // 2
            v = pick(v[..., :half], v[..., half:])
        return (v,)

    return fn


def _match_any(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    def fn(active: Array, value: Array) -> tuple[Array, ...]:
        v = _wide(value)
        same = (v[..., :, None] == v[..., None, :]) & active[..., None, :]
        return (np.bitwise_or.reduce(np.where(same, _BITS, U32(0)), axis=-1),)

    return fn


def _match_all(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    def fn(active: Array, value: Array) -> tuple[Array, ...]:
        v = _wide(value)
        first = _first_value(active, v)
        every = ((v == first) | ~active).all(axis=-1, keepdims=True)
        return np.where(every, _ballot(active), U32(0)), every

    return fn


def _first_value(active: Array, value: Array) -> Array:
    v = _wide(value)
    index = np.argmax(np.broadcast_to(active, np.broadcast_shapes(active.shape, v.shape)), axis=-1)[..., None]
    return np.take_along_axis(np.broadcast_to(v, (*index.shape[:-1], 32)), index, axis=-1)


def _first(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    return lambda active, value: (_first_value(active, value),)


def _elect(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    def fn(active: Array, p: Array) -> tuple[Array, ...]:
        here = active & p
        index = np.argmax(_wide(here), axis=-1)[..., None].astype(U32)
        return (here & (index == LANES), index)

    return fn


def _nibbles(active: Array, value: Array) -> tuple[Array, ...]:
    """Four lanes hold a row of 32 nibbles; they get bytes 4q .. 4q+3 of its first half and of its second."""
    v = _wide(value)
    nibbles = (v[..., None] >> np.arange(0, 32, 4, dtype=U32) & U32(15)).astype(np.uint8)
    rows = nibbles.reshape(*v.shape[:-1], 8, 2, 16)
    return tuple(np.ascontiguousarray(rows[..., half, :]).reshape(*v.shape[:-1], 128).view(U32) for half in (0, 1))


def _movm(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    if op.params[0] == "U4TO8":
        return _nibbles

    def fn(active: Array, value: Array) -> tuple[Array, ...]:
        v = np.ascontiguousarray(_wide(value))
        halves = v.view(np.uint16).reshape(*v.shape[:-1], 8, 8)
        flipped = np.ascontiguousarray(np.swapaxes(halves, -1, -2)).reshape(*v.shape[:-1], 64)
        return (flipped.view(U32),)

    return fn


def _fswzadd(op: Exchange) -> Callable[..., tuple[Array, ...]]:
    pattern, rounding, ftz = op.params
    if len(pattern) not in (4, 8) or "Z" in pattern:
        raise UnsupportedError(f"FSWZADD pattern {pattern} has no concrete model")
    # Two letters a lane of the quad in the eight-letter spelling: the signs of a and of b.
    signs = [pattern[2 * i : 2 * i + 2] if len(pattern) == 8 else pattern[i] + "P" for i in range(4)]
    a_sign = np.array([0x80000000 if s[0] == "N" else 0 for s in signs] * 8, U32)
    b_sign = np.array([0x80000000 if s[1] == "N" else 0 for s in signs] * 8, U32)
    add = resolve_float(FloatOp("add", "f32", rounding, bool(ftz)))
    return lambda active, a, b: (add(a ^ a_sign, b ^ b_sign),)


_MAKERS: dict[str, Callable[[Exchange], Callable[..., tuple[Array, ...]]]] = {
    "shfl": _shfl, "vote": _vote, "redux": _redux, "match_any": _match_any, "match_all": _match_all, "first": _first, "elect": _elect,
    "movm": _movm, "fswzadd": _fswzadd,
}  # fmt: skip
