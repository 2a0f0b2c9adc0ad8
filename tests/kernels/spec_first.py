"""The first kernels: arithmetic, conversions, reductions, loops."""

from __future__ import annotations

import numpy as np
from launches import F32, F64, I32, I64, U32, U64, Launch, floats, fma32, ints, spec, words, wrap


@spec("f32")
def vector_add(rng: np.random.Generator) -> Launch:
    n = 1000
    a, b = floats(rng, n), floats(rng, n)
    return Launch((4, 1, 1), (256, 1, 1), [a, b, np.zeros(n, F32), I32(n)], {2: a + b})


@spec("f32", "loop")
def saxpy(rng: np.random.Generator) -> Launch:
    n = 3001
    alpha, x, y = F32(1.7), floats(rng, n), floats(rng, n)
    return Launch((3, 1, 1), (128, 1, 1), [alpha, x, y.copy(), U32(n)], {2: fma32(np.full(n, alpha), x, y)})


@spec("int", "vector", "loop")
def strided_copy(rng: np.random.Generator) -> Launch:
    rows, columns, src_pitch, dst_pitch = 5, 203, 208, 212
    src, dst = ints(rng, rows * src_pitch), np.full(rows * dst_pitch, -1, I32)
    want = dst.copy().reshape(rows, dst_pitch)
    want[:, :columns] = src.reshape(rows, src_pitch)[:, :columns]
    return Launch((rows, 1, 1), (32, 1, 1), [src, dst, I32(columns), I32(src_pitch), I32(dst_pitch)], {1: want.reshape(-1)})


@spec("int64")
def hash64(rng: np.random.Generator) -> Launch:
    n, seed = 300, U64(0x9E3779B97F4A7C15)
    data = rng.integers(0, 2**64, n, dtype=U64)

    def rotl(x: np.ndarray, r: int) -> np.ndarray:
        return (x << U64(r)) | (x >> U64(64 - r))

    with np.errstate(over="ignore"):
        k, h = data.copy(), np.full(n, seed)
        for _ in range(3):
            k = rotl(k * U64(0x87C37B91114253D5), 31) * U64(0x4CF5AD432745937F)
            h = rotl(h ^ k, 27) * U64(5) + U64(0x52DCE729)
            k = k + h
        h = (h ^ (h >> U64(33))) * U64(0xFF51AFD7ED558CCD)
        h = (h ^ (h >> U64(29))) * U64(0xC4CEB9FE1A85EC53)
        h ^= h >> U64(32)
    return Launch((3, 1, 1), (128, 1, 1), [data, np.zeros(n, U64), seed, I32(n)], {1: h})


@spec("int", "atomics", "loop")
def histogram(rng: np.random.Generator) -> Launch:
    n = 5000
    data = (rng.standard_normal(n) * 30 + 128).clip(0, 255).astype(np.uint8)
    return Launch((2, 1, 1), (256, 1, 1), [data, np.zeros(256, U32), I32(n)], {1: np.bincount(data, minlength=256).astype(U32)})


@spec("int", "shared", "shuffle", "barrier")
def block_reduce(rng: np.random.Generator) -> Launch:
    n, threads, blocks = 1000, 256, 4
    data = ints(rng, n)
    padded = np.zeros(threads * blocks, np.int64)
    padded[:n] = data
    want = padded.reshape(blocks, threads).sum(1).astype(I32)
    return Launch((blocks, 1, 1), (threads, 1, 1), [data, np.zeros(blocks, I32), I32(n)], {1: want})


@spec("f32", "shared", "shuffle", "barrier", "mufu", "division")
def row_softmax(rng: np.random.Generator) -> Launch:
    rows, columns = 4, 300
    x = (floats(rng, rows * columns) * 3).reshape(rows, columns)
    e = np.exp(x.astype(F64) - x.max(1, keepdims=True))
    want = (e / e.sum(1, keepdims=True)).astype(F32).reshape(-1)
    return Launch((rows, 1, 1), (128, 1, 1), [x.reshape(-1), np.zeros(rows * columns, F32), I32(columns)], {1: want}, rtol=2e-5, atol=1e-9)


@spec("f32", "shuffle", "mufu", "division")
def layer_norm(rng: np.random.Generator) -> Launch:
    rows, columns, eps = 6, 100, F32(1e-5)
    x, gamma, beta = floats(rng, rows * columns), floats(rng, columns), floats(rng, columns)
    d = x.astype(F64).reshape(rows, columns)
    want = (d - d.mean(1, keepdims=True)) / np.sqrt(d.var(1, keepdims=True) + float(eps)) * gamma + beta
    args = [x, gamma, beta, np.zeros(rows * columns, F32), I32(columns), eps]
    return Launch((rows, 1, 1), (32, 1, 1), args, {3: want.astype(F32).reshape(-1)}, rtol=1e-4, atol=1e-5)


@spec("f32", "shared", "barrier", "loop")
def matmul_tiled(rng: np.random.Generator) -> Launch:
    m, n, k = 32, 48, 64
    a, b = floats(rng, m * k).reshape(m, k), floats(rng, k * n).reshape(k, n)
    want = np.zeros((m, n), F32)
    for i in range(k):
        want = fma32(a[:, i : i + 1], b[i : i + 1, :], want)
    args = [a.reshape(-1), b.reshape(-1), np.zeros(m * n, F32), I32(m), I32(n), I32(k)]
    return Launch((n // 16, m // 16, 1), (16, 16, 1), args, {2: want.reshape(-1)})


@spec("int64", "divergence", "loop")
def collatz(rng: np.random.Generator) -> Launch:
    n = 100
    data = rng.integers(1, 5000, n).astype(U32)

    def steps(x: int) -> int:
        count = 0
        while x > 1:
            x, count = (3 * x + 1 if x & 1 else x >> 1), count + 1
        return count

    return Launch((2, 1, 1), (64, 1, 1), [data, np.zeros(n, U32), I32(n)], {1: np.array([steps(int(x)) for x in data], U32)})


@spec("int", "divergence", "loop")
def nested_branches(rng: np.random.Generator) -> Launch:
    n = 150
    data = ints(rng, n, 0, 10000)
    out = np.zeros(2 * n, I32)
    for i, v in enumerate(int(x) for x in data):
        r = 0
        if v & 1:
            if v & 2:
                for k in range(v & 15):
                    r = wrap(r * 3 + k + int(data[(i + k) % n]))
            else:
                r = v - 7
                if v & 4:
                    r = wrap(r * int(data[(i * 7) % n]))
                out[n + i] = r if v & 4 else -r
        elif v % 3 == 0:
            k = v & 63
            while True:
                r, k = r + k * k, k - 5
                if r > 3000 or k <= 0:
                    break
        elif v % 3 == 1:
            r = int(data[n - 1 - i]) ^ v
            if r < 0:
                out[n + i] = 1
        else:
            r = 12345
        out[i] = r
    return Launch((3, 1, 1), (64, 1, 1), [data, np.zeros(2 * n, I32), I32(n)], {1: out})


@spec("f32", "int", "select")
def clamp_select(rng: np.random.Generator) -> Launch:
    n, lo, hi = 200, F32(-0.75), F32(1.25)
    x, k = floats(rng, n), ints(rng, n, -40, 40)
    x[::17] = np.nan
    c = np.fmin(np.fmax(x, lo), hi)
    out = np.where(k > 10, c, np.where(k < -10, -c, x * F32(0.5)))
    with np.errstate(invalid="ignore"):
        iout = np.where(np.isnan(x), -1, np.where(x > c, k.clip(-20, 20), np.where(x == c, k, np.abs(k)))).astype(I32)
    args = [x, k, np.zeros(n, F32), np.zeros(n, I32), lo, hi, I32(n)]
    return Launch((2, 1, 1), (128, 1, 1), args, {2: out.astype(F32), 3: iout})


@spec("f64", "shared", "barrier", "loop")
def dot_f64(rng: np.random.Generator) -> Launch:
    n, threads, blocks = 900, 128, 2
    x, y = rng.standard_normal(n), rng.standard_normal(n)
    total = np.zeros(threads * blocks, np.longdouble)
    for start in range(0, n, threads * blocks):
        part = np.arange(start, min(n, start + threads * blocks))
        total[part - start] = (x[part].astype(np.longdouble) * y[part] + total[part - start]).astype(F64)
    tree = total.astype(F64).reshape(blocks, threads)
    while tree.shape[1] > 1:
        half = tree.shape[1] // 2
        tree = tree[:, :half] + tree[:, half:]
    args = [x, y, np.zeros(blocks), I32(n)]
    return Launch((blocks, 1, 1), (threads, 1, 1), args, {2: tree[:, 0]}, shared_bytes=threads * 8, rtol=1e-12)


@spec("int", "bits")
def bit_twiddle(rng: np.random.Generator) -> Launch:
    n = 256
    a, b = words(rng, n), words(rng, n)
    b[::5] >>= U32(20)
    a[:3], b[:3] = 0, (0, 0xFFFFFFFF, 1)
    rows = [_twiddle(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    want = np.array(rows, np.int64).T.reshape(-1) & 0xFFFFFFFF
    return Launch((1, 1, 1), (256, 1, 1), [a, b, np.zeros(6 * n, U32), I32(n)], {2: want.astype(U32)})


def _twiddle(x: int, y: int) -> list[int]:
    mask = 0xFFFFFFFF
    ffs = (x & -x).bit_length()
    brev = int(f"{x:032b}"[::-1], 2)
    both = [(x >> 8 * k) & 255 for k in range(4)] + [(y >> 8 * k) & 255 for k in range(4)]
    selector = 0x6240 + (y & 7)
    perm = sum(both[(selector >> 4 * k) & 7] << 8 * k for k in range(4))
    position, length = y & 31, (y >> 5) & 31
    unsigned = (x >> position) & ((1 << length) - 1)
    sign = (x >> min(position + length - 1, 31)) & 1 if length else 0
    field_bits = min(length, 32 - position)
    signed = unsigned | (-(1 << field_bits) if sign else 0)
    insert = (y & ~(0x7FF << 5)) | ((x & 0x7FF) << 5)
    pair = (y << 32) | x
    left = (pair << (y & 31) >> 32) & mask
    right = pair >> min(y & 63, 32) & mask
    low = ((x & 0xFF) << 16) | (y & 0xFF)
    return [
        x.bit_count() | (32 - y.bit_length()) << 8 | ffs << 16,
        brev ^ perm,
        unsigned + 3 * signed,
        x ^ y ^ insert,
        left ^ right,
        x.bit_count() + y.bit_count() + (64 - low.bit_length()) * 100,
    ]


@spec("convert", "f32", "f64", "int64")
def conversions(rng: np.random.Generator) -> Launch:
    n = 128
    f = (floats(rng, n) * np.exp2(rng.integers(-4, 28, n))).astype(F32)
    f[:8] = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 100.25)
    d = rng.standard_normal(n) * np.exp2(rng.integers(-4, 30, n))
    k, l = ints(rng, n), rng.integers(-(2**63), 2**63, n, dtype=I64)
    r, z = np.rint(f.astype(F64)), np.trunc(f.astype(F64))
    i32 = lambda x: x.clip(-(2**31), 2**31 - 1).astype(I64).astype(I32)  # noqa: E731
    u32 = lambda x: x.clip(0, 2**32 - 1).astype(I64).astype(U32).view(I32)  # noqa: E731
    oi = [i32(r), i32(z), i32(np.ceil(f.astype(F64))), i32(np.floor(f.astype(F64))), u32(z), i32(np.trunc(d)), i32(z).astype(np.int8).astype(I32)]
    unsigned = k.view(U32).astype(F64)
    down = unsigned.astype(F32)
    down = np.where(down.astype(F64) > unsigned, np.nextafter(down, F32(0)), down)
    of = [k.astype(F32), down, d.astype(F32), l.astype(F32), np.floor(f), np.rint(f), np.trunc(f)]
    od = [f.astype(F64), k.astype(F64), l.astype(F64), np.ceil(d)]
    ol = [np.trunc(f).astype(I64), np.trunc(d).astype(I64), np.trunc(d.clip(0)).astype(I64)]
    args = [f, d, k, l, np.zeros(7 * n, I32), np.zeros(7 * n, F32), np.zeros(4 * n), np.zeros(3 * n, I64), I32(n)]
    expected = {4: np.concatenate(oi), 5: np.concatenate(of).astype(F32), 6: np.concatenate(od), 7: np.concatenate(ol)}
    return Launch((2, 1, 1), (64, 1, 1), args, expected)


def truncated(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """C's quotient and remainder of signed integers, exactly."""
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    q = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
    r = [x - y * k for (x, y), k in zip(pairs, q, strict=True)]
    return np.array(q, a.dtype), np.array(r, a.dtype)


@spec("int", "division")
def int_div(rng: np.random.Generator) -> Launch:
    n = 256
    a, b = ints(rng, n), ints(rng, n)
    b[::2] >>= 20
    b[b == 0] = 3
    q, r = truncated(a, b)
    ua, ub = a.view(U32), b.view(U32)
    c7, _ = truncated(a, np.full(n, 7, I32))
    _, c10 = truncated(a, np.full(n, 10, I32))
    rows = [q, r, (ua // ub).view(I32), (ua % ub).view(I32), c7 + (ua // U32(641)).view(I32), c10 + (ua % U32(1000)).view(I32)]
    return Launch((2, 1, 1), (128, 1, 1), [a, b, np.zeros(6 * n, I32), I32(n)], {2: np.concatenate(rows)})


@spec("int64", "division", "calls")
def int_div64(rng: np.random.Generator) -> Launch:
    n = 128
    a, b = (rng.integers(-(2**63), 2**63, n, dtype=I64) for _ in range(2))
    b[::2] >>= 40
    a[::3] >>= 33
    b[b == 0] = 5
    q, r = truncated(a, b)
    ua, ub = a.view(U64), b.view(U64)
    rows = [q, r, (ua // ub).view(I64), (ua % ub).view(I64)]
    return Launch((2, 1, 1), (64, 1, 1), [a, b, np.zeros(4 * n, I64), I32(n)], {2: np.concatenate(rows)})


@spec("f16")
def half2_math(rng: np.random.Generator) -> Launch:
    n = 64
    a, b = (rng.standard_normal(2 * n).astype(np.float16) for _ in range(2))
    a[:4] = b[:4]
    product = a.astype(F32)[0::2] * b.astype(F32)[1::2]
    mixed = np.empty(2 * n, np.float16)
    mixed[0::2], mixed[1::2] = product.astype(np.float16), (b.astype(F32)[0::2] + F32(1.5)).astype(np.float16)
    fused = (a.astype(F64) * b.astype(F64) - a.astype(F64)).astype(np.float16)
    rows = [a + b, a * b, fused, np.fmax(a, b), (a > b).astype(np.float16), mixed]
    args = [a, b, np.zeros(12 * n, np.float16), np.zeros(n, F32), I32(n)]
    return Launch((1, 1, 1), (64, 1, 1), args, {2: np.concatenate(rows), 3: product})
