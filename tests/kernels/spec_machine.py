"""What a machine must do right: calls, atomics, votes, barriers, matrix products, carries."""

from __future__ import annotations

import numpy as np
from launches import F32, F64, I32, I64, U32, U64, Launch, floats, fma32, ints, spec, words, wrap


@spec("int", "calls", "recursion", "divergence", "local")
def recursion(rng: np.random.Generator) -> Launch:
    n = 40
    data = ints(rng, n, 0, 11)
    table = [0, 1]
    for _ in range(10):
        table.append(table[-1] + table[-2])
    return Launch((1, 1, 1), (64, 1, 1), [data, np.zeros(n, I32), I32(n)], {1: np.array([table[k] for k in data], I32)})


@spec("int", "switch", "divergence")
def switch_table(rng: np.random.Generator) -> Launch:
    n = 200
    op, a, b = ints(rng, n, 0, 11), ints(rng, n), ints(rng, n)
    out = np.zeros(2 * n, I32)
    for i in range(n):
        x, y, o = int(a[i]), int(b[i]), int(op[i])
        results = [x + y, x - y, x * y, x & y, x | y, x ^ int(b[(i + 1) % n]), x << (y & 31), x >> (y & 31)]
        results += [(x & 0xFFFFFFFF).bit_count() + int(a[n - 1 - i]), max(x, y), -1]
        out[i] = wrap(results[o])
        extra = {1: 1, 3: int(a[(i * 3) % n]), 6: 6, 9: int(b[n - 1 - i])}
        out[n + i] = extra.get(o, 0)
    return Launch((2, 1, 1), (128, 1, 1), [op, a, b, np.zeros(2 * n, I32), I32(n)], {3: out})


@spec("int", "local", "loop")
def local_array(rng: np.random.Generator) -> Launch:
    n = 100
    data = ints(rng, n)
    want = []
    for v in (int(x) & 0xFFFFFFFF for x in data):
        digits = [0] * 16
        for k in range(8):
            digits[(v >> 4 * k) & 15] += k + 1
        s = 0
        for k in range(16):
            s = s * 5 + digits[(k * 7 + v) & 15]
        want.append(wrap(s))
    return Launch((2, 1, 1), (64, 1, 1), [data, np.zeros(n, I32), I32(n)], {1: np.array(want, I32)})


@spec("int", "shared", "atomics", "barrier")
def shared_atomics(rng: np.random.Generator) -> Launch:
    blocks, threads = 2, 64
    data = ints(rng, blocks * threads, -1000, 1000)
    want = []
    for part in data.reshape(blocks, threads):
        bins = [int((part[(part & 15) == k] >> 4).sum()) for k in range(16)]
        bits = wrap(int(np.bitwise_or.reduce(1 << (part & 31).astype(I64))))
        want += [*bins, int(part.min()), int(part.max()), bits, 2 * threads]
    return Launch((blocks, 1, 1), (threads, 1, 1), [data, np.zeros(20 * blocks, I32), I32(data.size)], {1: np.array(want, I32)})


@spec("int", "shared", "barrier", "loop")
def scan(rng: np.random.Generator) -> Launch:
    data = ints(rng, 512, -1000, 1000)
    return Launch((2, 1, 1), (256, 1, 1), [data, np.zeros(512, I32)], {1: data.reshape(2, 256).cumsum(1).astype(I32).reshape(-1)})


@spec("int", "shared", "barrier", "loop")
def bitonic_sort(rng: np.random.Generator) -> Launch:
    keys = words(rng, 256)
    return Launch((2, 1, 1), (128, 1, 1), [keys.copy()], {0: np.sort(keys.reshape(2, 128), 1).reshape(-1)}, shared_bytes=512)


@spec("int", "vote")
def warp_votes(rng: np.random.Generator) -> Launch:
    n = 128
    data = ints(rng, n, -50, 50)
    data[32:64] = ints(rng, 32, 0x500, 0x600)
    rows: list[list[int]] = [[] for _ in range(8)]
    for warp in (data[i : i + 32].astype(int) for i in range(0, n, 32)):
        ballot = lambda mask: sum(1 << i for i, bit in enumerate(mask) if bit)  # noqa: E731
        odd = warp & 1 == 1
        same = bool((warp >> 8 == warp[0] >> 8).all())
        for v in warp:
            rows[0].append(ballot(warp > 0))
            rows[1].append(int((warp == 7).any()) | int((warp < 100).all()) << 1)
            rows[2].append(ballot(warp & 7 == v & 7))
            rows[3].append((0xFFFFFFFF + 1) & 0xFFFFFFFF if same else 0)
            rows[4].append(int(warp.sum()) & 0xFFFFFFFF)
            rows[5].append(int(warp.max()) & 0xFFFFFFFF)
            rows[6].append(int(np.bitwise_xor.reduce(warp)) & 0xFFFFFFFF)
            rows[7].append(ballot(odd) if v & 1 else int((~odd).sum()))
    return Launch((2, 1, 1), (64, 1, 1), [data, np.zeros(8 * n, U32), I32(n)], {1: np.array(rows, U32).reshape(-1)})


@spec("f32", "async", "shared", "barrier", "loop")
def cp_async(rng: np.random.Generator) -> Launch:
    blocks, tiles = 3, 5
    data = floats(rng, blocks * tiles * 128)
    want = np.zeros((blocks, 32), F32)
    for k in range(tiles):
        for j in range(4):
            want = want + data.reshape(blocks, tiles, 4, 32)[:, k, j]
    return Launch((blocks, 1, 1), (32, 1, 1), [data, np.zeros(blocks * 32, F32), I32(tiles)], {1: want.reshape(-1)})


@spec("f16", "mma", "shared")
def mma_f16(rng: np.random.Generator) -> Launch:
    tiles = 3
    a = rng.integers(-8, 9, (16, 16 * tiles)).astype(np.float16) / np.float16(4)
    b = rng.integers(-8, 9, (16 * tiles, 8)).astype(np.float16) / np.float16(4)
    want = a.astype(F32) @ b.astype(F32)
    return Launch((1, 1, 1), (32, 1, 1), [a.reshape(-1), b.reshape(-1), np.zeros(128, F32), I32(tiles)], {2: want.reshape(-1)})


@spec("int", "shared", "barrier")
def transpose(rng: np.random.Generator) -> Launch:
    rows, columns = 50, 70
    data = ints(rng, rows * columns)
    args = [data, np.zeros(rows * columns, I32), I32(rows), I32(columns)]
    return Launch((3, 2, 1), (32, 8, 1), args, {1: data.reshape(rows, columns).T.reshape(-1)})


@spec("int", "calls", "indirect", "divergence")
def indirect_call(rng: np.random.Generator) -> Launch:
    n = 100
    which, a, b = ints(rng, n, 0, 3), ints(rng, n), ints(rng, n)
    with np.errstate(over="ignore"):
        want = np.choose(which, [a + b, a * b, (a << 3) ^ (b >> 2)])
    return Launch((2, 1, 1), (64, 1, 1), [which, a, b, np.zeros(n, I32), I32(n)], {3: want.astype(I32)})


@spec("int", "carry", "int64")
def big_add(rng: np.random.Generator) -> Launch:
    n = 60
    a, b = words(rng, 8 * n), words(rng, 8 * n)
    a[8:16], b[8:16] = 0xFFFFFFFF, (1, 0, 0, 0, 0, 0, 0, 0)
    total, product = [], []
    for i in range(0, 8 * n, 8):
        x, y = (sum(int(w) << 32 * k for k, w in enumerate(v[i : i + 8])) for v in (a, b))
        total += [((x + y) >> 32 * k) & 0xFFFFFFFF for k in range(8)]
        p = (x % 2**64) * (y % 2**64)
        product += [p % 2**64, p >> 64]
    args = [a, b, np.zeros(8 * n, U32), np.zeros(2 * n, U64), I32(n)]
    return Launch((2, 1, 1), (32, 1, 1), args, {2: np.array(total, U32), 3: np.array(product, U64)})


@spec("f32", "f64", "division", "mufu", "calls")
def float_div_sqrt(rng: np.random.Generator) -> Launch:
    n = 128
    a, b = ((rng.standard_normal(n) * np.exp2(rng.integers(-60, 60, n))).astype(F32) for _ in range(2))
    c, d = (rng.standard_normal(n) * np.exp2(rng.integers(-300, 300, n)) for _ in range(2))
    a[:6], b[:6] = (0, 1, -1, np.inf, 1e-40, 3e38), (1, 3, 1e-41, 2, 7, 1e-3)
    with np.errstate(all="ignore"):
        want = np.concatenate([a / b, np.sqrt(np.abs(a)), F32(1) / b]).astype(F32)
        dwant = np.concatenate([c / d, np.sqrt(np.abs(c)), 1.0 / d])
    args = [a, b, np.zeros(3 * n, F32), c, d, np.zeros(3 * n), I32(n)]
    return Launch((2, 1, 1), (64, 1, 1), args, {2: want, 5: dwant})


@spec("f32", "mufu", "calls", "local")
def trig_gelu(rng: np.random.Generator) -> Launch:
    n = 128
    x = (rng.standard_normal(n) * np.exp2(rng.integers(-3, 8, n))).astype(F32)
    x[5] = F32(250000.0)  # the slow path of range reduction
    v = x.astype(F64)
    gelu = 0.5 * v * (1 + np.tanh(float(F32(0.7978845608)) * (v + float(F32(0.044715)) * v**3)))
    with np.errstate(over="ignore"):
        rows = [np.sin(v), np.cos(v), gelu, np.log(np.abs(v) + float(F32(1e-3))), np.exp(v * 0.25)]
        want = np.concatenate(rows).astype(F32)
    return Launch((2, 1, 1), (64, 1, 1), [x, np.zeros(5 * n, F32), I32(n)], {1: want}, rtol=3e-6, atol=2e-6)


@spec("int", "constant", "globals", "atomics")
def constants_globals(rng: np.random.Generator) -> Launch:
    n = 100
    data = ints(rng, n, -1000, 1000)
    weights = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3], I32)
    bias = np.array([10, 20, 30, 40], I32)
    want = np.append(data * weights[data & 15] + weights[2] + bias[np.arange(n) & 3], 30).astype(I32)
    return Launch((2, 1, 1), (64, 1, 1), [data, np.zeros(n + 1, I32), I32(n)], {1: want})


@spec("atomics", "int", "int64", "f32", "f64")
def global_atomics(rng: np.random.Generator) -> Launch:
    n = 128
    data = ints(rng, n, -1000, 1000)
    ints0 = np.array([5, 100, -100, 0x7FFFF0FF, 0, 3, 4, 9, 0], I32)
    wide = data.astype(I64)
    up, down = 3, 4
    for _ in range(n):
        up = 0 if up >= 100 else up + 1
        down = 77 if down == 0 or down > 77 else down - 1
    chain = 7
    for _ in range(n):
        chain = (chain * 3 + 1) % 2**64
    anded = int(ints0[3]) & int(np.bitwise_and.reduce(data | 0xFF))
    want = [wrap(5 + int(wide.sum())), min(100, int(data.min())), max(-100, int(data.max())), wrap(anded), int(np.bitwise_xor.reduce(data))]
    want += [up, down, wrap(9 - int(wide.sum())), 0]
    longs = np.array([int(wide.sum()) % 2**64, int((data.view(U32).astype(U64) << U64(20)).max()), chain], U64)
    fsum, dsum = np.array([float((data & 255).sum())], F32), np.array([wide.sum() * 0.5])
    args = [data, ints0, np.array([0, 0, 7], U64), np.zeros(1, F32), np.zeros(1)]
    return Launch((2, 1, 1), (64, 1, 1), args, {1: np.array(want, I32), 2: longs, 3: fsum, 4: dsum})


@spec("int", "packed")
def dot_int8(rng: np.random.Generator) -> Launch:
    n = 128
    a, b = ints(rng, n), ints(rng, n)
    sa, sb = a.view(np.int8).reshape(n, 4).astype(I64), b.view(np.int8).reshape(n, 4).astype(I64)
    ua, ub = a.view(np.uint8).reshape(n, 4).astype(I64), b.view(np.uint8).reshape(n, 4).astype(I64)
    au, bu = a.view(U32).astype(U64), b.view(U32).astype(U64)
    rows = [(sa * sb).sum(1) + np.arange(n), (ua * ub).sum(1) + 5, np.abs(a.astype(I64) - b) + 9, (a.astype(I64) * b) >> 32]
    rows.append(((au * bu) >> U64(32)).astype(I64))
    want = np.concatenate([(row & 0xFFFFFFFF).astype(U32).view(I32) for row in rows])
    return Launch((2, 1, 1), (64, 1, 1), [a, b, np.zeros(5 * n, I32), I32(n)], {2: want})


@spec("f32", "shared", "barrier", "divergence")
def stencil2d(rng: np.random.Generator) -> Launch:
    w, h = 50, 21
    x = floats(rng, w * h).reshape(h, w)
    p = np.zeros((h + 2, w + 2), F32)
    p[1:-1, 1:-1] = x
    around = (p[:-2, 1:-1] + p[2:, 1:-1]) + (p[1:-1, :-2] + p[1:-1, 2:])
    want = fma32(np.full_like(x, 0.5), x, F32(0.125) * around)
    args = [x.reshape(-1), np.zeros(w * h, F32), I32(w), I32(h)]
    return Launch((2, 3, 1), (32, 8, 1), args, {1: want.reshape(-1)}, rtol=1e-6, atol=1e-7)


@spec("int", "atomics", "divergence", "spin")
def spin_lock(rng: np.random.Generator) -> Launch:
    rounds, threads, blocks = 2, 64, 2
    total = rounds * blocks * threads * (threads + 1) // 2
    return Launch((blocks, 1, 1), (threads, 1, 1), [np.zeros(1, I32), np.zeros(1, I32), I32(rounds)], {1: np.array([total], I32)})


@spec("int", "barrier", "shared")
def barriers(rng: np.random.Generator) -> Launch:
    data = ints(rng, 128, -900, 900)
    count = np.full(128, int((data > 0).sum()))
    flags = np.full(128, 1 + 2 * int((data > 0).all()) + 4)
    handed = np.concatenate([data[:64], data[:64][::-1] * 3])
    return Launch((1, 1, 1), (128, 1, 1), [data, np.zeros(384, I32)], {1: np.concatenate([count, flags, handed]).astype(I32)})


@spec("int", "generic", "shared", "local", "calls", "atomics")
def generic_pointers(rng: np.random.Generator) -> Launch:
    n = 6
    data = ints(rng, 64, 0, 100)
    after, out = data.copy(), np.zeros(64, I32)
    for t in range(64):
        own = [1, 2, 3, 4]
        kind, slot = t % 3, (t + n) & 3
        old = (int(data[t]), 10 * t, own[slot])[kind]
        own[slot] += t if kind == 2 else 0
        now = old + t + (0 if kind == 2 else 100)
        if kind == 0:
            after[t] = now
        out[t] = old * 1000 + now + own[t & 3] + (2000000, 1000000, 0)[kind]
    return Launch((1, 1, 1), (64, 1, 1), [data, np.zeros(64, I32), I32(n)], {0: after, 1: out})


@spec("mma", "f64", "int")
def mma_kinds(rng: np.random.Generator) -> Launch:
    lane = np.arange(32)
    row, quad = lane // 4, lane % 4
    a, b = rng.integers(-128, 128, (16, 32)).astype(np.int8), rng.integers(-128, 128, (32, 8)).astype(np.int8)
    pa = np.stack([a[row[:, None] + dr, quad[:, None] * 4 + dc + np.arange(4)] for dc in (0, 16) for dr in (0, 8)], 1)
    pb = np.stack([b[quad[:, None] * 4 + dk + np.arange(4), row[:, None]] for dk in (0, 16)], 1)
    product = a.astype(np.int32) @ b.astype(np.int32)
    places = [(row, quad * 2), (row, quad * 2 + 1), (row + 8, quad * 2), (row + 8, quad * 2 + 1)]
    c = np.stack([product[r, col] + i + 1 for i, (r, col) in enumerate(places)], 1)
    x, y = rng.integers(-9, 9, (8, 4)).astype(F64), rng.integers(-9, 9, (4, 8)).astype(F64)
    px, py = x[row, quad], y[quad, row]
    z = np.stack([(x @ y)[row, quad * 2] + 0.5, (x @ y)[row, quad * 2 + 1] - 0.5], 1)
    h, g = rng.integers(-8, 9, (16, 16)).astype(F32), rng.integers(-8, 9, (16, 8)).astype(F32)
    half = lambda v: (v.astype(F32).view(U32) >> U32(16)).astype(np.uint16)  # noqa: E731
    ph = np.stack([half(h[row[:, None] + dr, quad[:, None] * 2 + dc + np.arange(2)]) for dc in (0, 8) for dr in (0, 8)], 1)
    pg = np.stack([half(g[quad[:, None] * 2 + dk + np.arange(2), row[:, None]]) for dk in (0, 8)], 1)
    f = np.stack([(h @ g)[r, col] for r, col in places], 1)
    words32 = lambda v: np.ascontiguousarray(v).view(U32).reshape(-1)  # noqa: E731
    args = [words32(pa), words32(pb), np.zeros(128, I32), px, py, np.zeros(64), words32(ph), words32(pg), np.zeros(128, F32)]
    return Launch((1, 1, 1), (32, 1, 1), args, {2: c.astype(I32).reshape(-1), 5: z.reshape(-1), 8: f.astype(F32).reshape(-1)})
