"""Threads that depend on each other: atomics of every type, locks, flags, barriers by name, tiles, calls through tables."""

from __future__ import annotations

import numpy as np
from launches import F32, F64, I32, I64, U32, U64, Launch, ints, spec, words


class Tickets(Launch):
    """Atomics: `order` holds, by memory, each thread's ticket, in any order."""

    def check(self, args: list) -> None:
        super().check(args)
        tickets = args[5]
        np.testing.assert_array_equal(np.sort(tickets[:128]), np.arange(128))
        for block in (tickets[256:320], tickets[320:384]):
            np.testing.assert_array_equal(np.sort(block), np.arange(64))


@spec("atomics", "shared", "int", "int64", "f32", "f64", "barrier")
def atomics_all(rng: np.random.Generator) -> Launch:
    v = words(rng, 128)
    wide = v.astype(U64) * v.astype(U64)
    fold = lambda ufunc, x: ufunc.reduce(x)  # noqa: E731
    parts = v.reshape(2, 64)
    w0 = np.array([0, 0xFFFFFFFF, 0, 5, 0, 0xFFFFFFFF, 0, 0], U32)
    w = [128, fold(np.bitwise_and, v | U32(1)), fold(np.bitwise_or, v), fold(np.bitwise_xor, v) ^ U32(5), v.max(), v.min(), 0, 0]
    for p in parts:
        down = 0
        for _ in range(64):
            down = 99 if down in (0,) or down > 99 else down - 1
        s = p.view(I32)
        w += [64, fold(np.bitwise_and, ~p), fold(np.bitwise_or, p), fold(np.bitwise_xor, p), p.max(), down]
        w += [min(int(s.min()), 0), max(int(s.max()), 0)]
    x0 = np.array([0, 0, 2**64 - 1, 0, 2**64 - 1, 0, *[0] * 8], U64)
    x = [wide.sum(), wide.max(), wide.min(), fold(np.bitwise_xor, wide), fold(np.bitwise_and, ~wide), fold(np.bitwise_or, wide)]
    for p in wide.reshape(2, 64):
        x += [p.sum(), p.max(), p.min(), fold(np.bitwise_xor, p)]
    small, half = (v & U32(1023)).astype(F64), (v & U32(0xFFFF)).astype(F64) * 0.5
    f, d = (np.array([q.sum(), *q.reshape(2, 64).sum(1)]) for q in (small, half))
    low = np.array([v.view(I32).min(), v.view(I32).max()], I64)
    args = [v, np.concatenate([w0, np.zeros(16, U32)]), x0, np.zeros(3, F32), np.zeros(3), np.zeros(384, U32), np.array([2**62, -(2**62)], I64)]
    expected = {1: np.array([int(q) & 0xFFFFFFFF for q in w], U32), 2: np.array([int(q) for q in x], U64), 3: f.astype(F32), 4: d, 6: low}
    return Tickets((2, 1, 1), (64, 1, 1), args, expected)


@spec("atomics", "int16", "int64", "f64", "divergence", "spin")
def cas_loops(rng: np.random.Generator) -> Launch:
    n = 80
    v = np.abs(rng.standard_normal(n)).astype(F32)
    i = np.arange(n)
    args = [v, np.zeros(1, F32), np.array([0.5]), np.zeros(2, np.uint16), np.zeros(n + 1, U32), I32(n)]
    expected = {1: np.array([v.max()]), 2: np.array([0.5 + (i & 7).sum()]), 3: np.array([120, 120], np.uint16), 4: np.array([0, *i], U32)}
    return Launch((2, 1, 1), (64, 1, 1), args, expected)


@spec("int", "shuffle", "shared", "barrier", "atomics", "order", "spin")
def lookback_scan(rng: np.random.Generator) -> Launch:
    blocks = 5
    data = words(rng, 128 * blocks)
    args = [data, np.zeros(128 * blocks, U32), np.zeros(blocks, U64), np.zeros(1, U32)]
    return Launch((blocks, 1, 1), (128, 1, 1), args, {1: data.cumsum(dtype=U32)})


@spec("int64", "shuffle", "shared", "barrier", "atomics", "order")
def last_block(rng: np.random.Generator) -> Launch:
    blocks = 4
    data = ints(rng, 128 * blocks)
    wide = data.astype(I64)
    pairs = (wide.reshape(-1, 2)[:, 0] * wide.reshape(-1, 2)[:, 1]).repeat(2)
    partial = pairs.reshape(blocks, 128).sum(1)
    args = [data, np.zeros(blocks, I64), np.zeros(1, U32), np.zeros(1, I64)]
    return Launch((blocks, 1, 1), (128, 1, 1), args, {1: partial, 2: np.zeros(1, U32), 3: np.array([partial.sum()])})


@spec("int", "shared", "barrier", "named")
def named_barriers(rng: np.random.Generator) -> Launch:
    rounds = 6
    data = ints(rng, 64 * rounds, -1000, 1000)
    want = np.zeros(64, I64)
    for row in data.reshape(rounds, 64):
        want = want * 5 + row[::-1] * 3
    return Launch((1, 1, 1), (128, 1, 1), [data, np.zeros(64, I32), I32(rounds)], {1: want.astype(I32)})


@spec("int", "shuffle", "vote", "match", "redux", "divergence", "calls")
def cooperative_tiles(rng: np.random.Generator) -> Launch:
    n = 128
    v = ints(rng, n, 0, 1000)
    tiles = v.reshape(-1, 8)
    first = np.repeat(tiles.sum(1), 8)
    chosen = np.take_along_axis(tiles, tiles & 7, 1) * 2 + (tiles > 900).any(1, keepdims=True)
    odd, labels = [], []
    for warp in v.reshape(-1, 32):
        is_odd = warp & 1 == 1
        odd += list(np.where(is_odd, np.cumsum(is_odd) - 1 + 100 * is_odd.sum(), -1))
        labels += [warp[warp & 3 == x & 3].max() + 10000 * int((warp & 3 == x & 3).sum()) for x in warp]
    ranks = np.arange(n) % 64 + 1000 * (np.arange(n) // 64)
    rows = [first, tiles.cumsum(1).reshape(-1), chosen.reshape(-1), odd, labels, ranks]
    return Launch((2, 1, 1), (64, 1, 1), [v, np.zeros(6 * n, I32), I32(n)], {1: np.concatenate(rows).astype(I32)})


class Aggregate(Launch):
    """Counts by key: each key's tickets are 0, 1, 2 ... in any order."""

    def check(self, args: list) -> None:
        keys, counts, tickets = args[0] % U64(61), args[1], args[2]
        np.testing.assert_array_equal(counts, np.bincount(keys.astype(I64), minlength=61))
        for key in np.unique(keys):
            np.testing.assert_array_equal(np.sort(tickets[keys == key]), np.arange(counts[int(key)]))


@spec("int64", "match", "vote", "shuffle", "atomics", "division")
def warp_aggregate(rng: np.random.Generator) -> Launch:
    n = 100
    keys = rng.choice(rng.integers(0, 2**64, 9, dtype=U64), n)
    return Aggregate((1, 1, 1), (128, 1, 1), [keys, np.zeros(61, U32), np.zeros(n, U32), I32(n)], {})


@spec("int", "shared", "order", "spin", "divergence", "races")
def flag_passing(rng: np.random.Generator) -> Launch:
    blocks, warps = 2, 3
    k = np.arange(blocks * warps)
    args = [np.zeros(1, U32), np.zeros(k.size, U32), np.zeros(1, U32)]
    total = int((k + 1).sum())
    expected = {0: np.array([blocks], U32), 1: (k * (k + 1) // 2).astype(U32), 2: np.array([total], U32)}
    return Launch((blocks, 1, 1), (32 * warps, 1, 1), args, expected)


def calls(x: float, which: int) -> float:
    """By the kernel's own functions; products and sums of f64 fuse as the compiler's contraction does."""
    fma = lambda a, b, c: float(np.longdouble(a) * np.longdouble(b) + np.longdouble(c))  # noqa: E731
    square, halve = lambda v, k: fma(v, v, k), lambda v, k: fma(v, 0.5, -k)
    both = lambda v, k: halve(square(v, k), k - 1) if k > 2 else square(halve(v, k), k + 1)  # noqa: E731
    for k in range(5):
        x = (square, halve, both, halve)[which >> 2 * k & 3](x, k)
    return x


@spec("f64", "calls", "indirect", "divergence", "loop")
def virtual_calls(rng: np.random.Generator) -> Launch:
    n = 64
    x, which = rng.uniform(-2, 2, n), words(rng, n)
    with np.errstate(over="ignore"):
        want = np.array([calls(float(v), int(w)) for v, w in zip(x, which, strict=True)])
    return Launch((2, 1, 1), (32, 1, 1), [x, which, np.zeros(n), I32(n)], {2: want}, rtol=1e-12)


@spec("int", "grid", "struct")
def grid3d(rng: np.random.Generator) -> Launch:
    x, y, z = 11, 7, 5
    v = ints(rng, x * y * z, -1000, 1000).reshape(z, y, x)
    p = np.pad(v, 1)
    want = p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:] + p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1] + p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] - 6 * v
    k, j, i = np.indices((z, y, x))
    block, thread = ((k // 3) * 2 + j // 4) * 2 + i // 6, ((k % 3) * 4 + j % 4) * 6 + i % 6
    args = [v.reshape(-1), np.zeros(v.size, I32), np.zeros(v.size, I32), np.array([x, y, z], I32).tobytes()]
    return Launch((2, 2, 2), (6, 4, 3), args, {1: want.astype(I32).reshape(-1), 2: (block * 1000 + thread).astype(I32).reshape(-1)})
