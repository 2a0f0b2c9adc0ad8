"""Matrix products in pipelines and in every type, packed halves and bfloat16, 8-bit floats, Triton's kernels."""

from __future__ import annotations

import numpy as np
from launches import F32, F64, I32, U32, Launch, floats, ints, spec, words

F16 = np.float16
LANE = np.arange(32)
ROW, QUAD = LANE // 4, LANE % 4


def bf16(x: np.ndarray) -> np.ndarray:
    """Floats to bfloat16 (bits), to nearest even; one rounding from f64 inputs that f32 holds."""
    bits = np.asarray(x, F32).view(U32).astype(np.uint64)
    out = (bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(x), 0x7FFF, out).astype(np.uint16)


def wide(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bits as f64."""
    return (bits.astype(U32) << U32(16)).view(F32).astype(F64)


@spec("f16", "mma", "async", "ldmatrix", "shared", "barrier", "loop")
def gemm_f16_pipeline(rng: np.random.Generator) -> Launch:
    m, n, k = 64, 128, 96
    a, b = (rng.integers(-16, 17, s).astype(F16) / F16(8) for s in ((m, k), (k, n)))
    want = a.astype(F32) @ b.astype(F32)
    return Launch((2, 1, 1), (128, 1, 1), [a.reshape(-1), b.reshape(-1), np.zeros(m * n, F32), I32(k), I32(n)], {2: want.reshape(-1)})


@spec("bf16", "mma", "loop")
def wmma_bf16(rng: np.random.Generator) -> Launch:
    k = 48
    a, b = (rng.integers(-20, 21, (16, k)).astype(F32) / F32(4) for _ in range(2))
    want = (a @ b.T + F32(0.5)) * 2
    return Launch((1, 1, 1), (32, 1, 1), [bf16(a).reshape(-1), bf16(b).reshape(-1), np.zeros(256, F32), I32(k)], {2: want.reshape(-1)})


@spec("mma", "f16", "int", "bits", "tf32")
def mma_variants(rng: np.random.Generator) -> Launch:
    a, b = words(rng, 128).reshape(32, 4), words(rng, 64).reshape(32, 2)
    places = [(ROW, QUAD * 2), (ROW, QUAD * 2 + 1), (ROW + 8, QUAD * 2), (ROW + 8, QUAD * 2 + 1)]
    pick = lambda m: np.stack([m[r, c] for r, c in places], 1)  # noqa: E731
    x, y = np.zeros((16, 8)), np.zeros((8, 8))
    for i, (dr, dc) in enumerate(((0, 0), (8, 0), (0, 4), (8, 4))):
        x[ROW + dr, QUAD + dc] = a[:, i] % 64 - 32.0
    for i in range(2):
        y[QUAD + 4 * i, ROW] = (b[:, i] % 64) * 0.25
    h, g = np.zeros((16, 8)), np.zeros((8, 8))
    for i in range(2):
        pair = (U32(0x3C003C00) + (a[:, i] & U32(0x03000300))).view(F16).reshape(32, 2)
        for j in range(2):
            h[ROW + 8 * i, QUAD * 2 + j] = pair[:, j]
    pair = (U32(0x40004000) + (b[:, 0] & U32(0x01000200))).view(F16).reshape(32, 2)
    for j in range(2):
        g[QUAD * 2 + j, ROW] = pair[:, j]
    halves = pick((h @ g).astype(F16)).view(U32)
    u, s = np.zeros((16, 32), int), np.zeros((32, 8), int)
    p, q = np.zeros((16, 256), int), np.zeros((256, 8), int)
    for i, (dr, dc) in enumerate(((0, 0), (8, 0), (0, 1), (8, 1))):
        for j in range(4):
            u[ROW + dr, 16 * dc + QUAD * 4 + j] = a[:, i] >> U32(8 * j) & U32(255)
        for j in range(32):
            p[ROW + dr, 128 * dc + QUAD * 32 + j] = a[:, i] >> U32(j) & U32(1)
    for i in range(2):
        for j in range(4):
            s[16 * i + QUAD * 4 + j, ROW] = (b[:, i] >> U32(8 * j) & U32(255)).astype(np.uint8).view(np.int8)
        for j in range(32):
            q[128 * i + QUAD * 32 + j, ROW] = b[:, i] >> U32(j) & U32(1)
    octets = (pick(u @ s) + np.array([0x7FFFFF00, -5, 7, 0x80000100 - 2**32])).clip(-(2**31), 2**31 - 1).astype(I32)
    bits = pick(p @ q) + np.array([0, 0, 0, 1])
    moved = np.ascontiguousarray(np.ascontiguousarray(a[:, 0]).view(np.uint16).reshape(8, 8).T).reshape(-1).view(U32)
    args = [a.reshape(-1), b.reshape(-1), np.zeros(128, F32), np.zeros(64, U32), np.zeros(128, I32), np.zeros(128, I32), np.zeros(32, U32)]
    expected = {2: pick(x @ y).astype(F32).reshape(-1), 3: halves.reshape(-1), 4: octets.reshape(-1), 5: bits.astype(I32).reshape(-1), 6: moved}
    return Launch((1, 1, 1), (32, 1, 1), args, expected)


@spec("ldmatrix", "stmatrix", "shared")
def stmatrix_transpose(rng: np.random.Generator) -> Launch:
    data = rng.integers(0, 2**16, (16, 16)).astype(np.uint16)
    want = np.ascontiguousarray(data.T).reshape(-1).view(U32)
    return Launch((1, 1, 1), (32, 1, 1), [data.reshape(-1).view(U32), np.zeros(128, U32)], {1: want})


@spec("bf16", "packed", "convert", "division")
def bf16_math(rng: np.random.Generator) -> Launch:
    n = 64
    a, b = bf16(floats(rng, 2 * n) * np.exp2(rng.integers(-5, 6, 2 * n))), bf16(floats(rng, 2 * n) * 3)
    a[:2], b[2:4] = 0x7FC0, 0x7FC0
    b[4:8] = a[4:8]
    x, y = wide(a), wide(b)
    nan = np.isnan(x) | np.isnan(y)
    fused = x * y + x
    f32 = lambda v: np.asarray(v, F64).astype(F32)  # noqa: E731
    scaled = f32(x.reshape(n, 2)).copy()
    converted = np.stack([scaled[:, 0] * F32(1.01), scaled[:, 1] / F32(3)], 1)
    seventeen = scaled * F32(1.7)
    toward_zero = np.where(np.isnan(seventeen), U32(0x7FFF), seventeen.view(U32) >> U32(16))
    up = toward_zero + ((seventeen.view(U32) & U32(0xFFFF) != 0) & (seventeen > 0))
    relu = np.where(np.isnan(x * y + y), np.nan, np.maximum(x * y + y, 0.0))
    rows = [
        bf16(f32(x + y)), bf16(f32(x * y)), bf16_exact(fused), bf16(f32(np.fmax(x, y))), bf16(f32(np.where(nan, np.nan, np.minimum(x, y)))),
        a & np.uint16(0x7FFF), bf16_exact(relu), bf16(f32(y - x)), bf16(converted.reshape(-1)),
        np.stack([toward_zero[:, 0], up[:, 1]], 1).reshape(-1).astype(np.uint16),
    ]  # fmt: skip
    with np.errstate(invalid="ignore"):
        greater = np.where(x > y, 0xFFFF, 0).astype(np.uint16).view(U32)
        x2, y2 = x.reshape(n, 2), y.reshape(n, 2)
        unordered = np.isnan(x2[:, 0]) | np.isnan(y2[:, 1])
        flags = (x2 == y2).all(1) | np.isnan(y2[:, 0]) << 1 | (x2[:, 1] < y2[:, 1]) << 2 | ((x2[:, 0] == y2[:, 1]) | unordered) << 3
    args = [a.view(U32), b.view(U32), np.zeros(10 * n, U32), np.zeros(2 * n, F32), np.zeros(2 * n, U32), I32(n)]
    return Quiet((2, 1, 1), (32, 1, 1), args, {2: np.concatenate(rows), 3: f32(x), 4: np.concatenate([greater, flags.astype(U32)])})


def bf16_exact(x: np.ndarray) -> np.ndarray:
    """f64 sums of products of bfloat16 (exact there for the exponents drawn) to bfloat16 by one rounding: odd rounding to f32 first."""
    low = x.astype(F32)
    away = np.abs(low.astype(F64)) > np.abs(x)
    truncated = np.where(away, low.view(U32) - U32(1), low.view(U32))
    inexact = truncated.view(F32).astype(F64) != x
    return np.where(np.isnan(x), 0x7FFF, bf16(np.where(inexact, truncated | U32(1), truncated).view(F32)))


class Quiet(Launch):
    """bfloat16 results as words: any NaN is as good as another."""

    def check(self, args: list) -> None:
        got, want = args[2].view(np.uint16), self.expected[2]
        nan = lambda v: v & 0x7FFF > 0x7F80  # noqa: E731
        np.testing.assert_array_equal(np.where(nan(got), 0x7FFF, got), np.where(nan(want), 0x7FFF, want))
        np.testing.assert_array_equal(args[3], self.expected[3])
        np.testing.assert_array_equal(args[4], self.expected[4])


@spec("f16", "bf16", "packed", "shuffle", "atomics")
def half_reduce(rng: np.random.Generator) -> Launch:
    n = 64
    v = rng.integers(-24, 25, (n, 2)).astype(F16) / F16(4)
    whole = np.rint(v)
    warps = v.reshape(2, 32, 2)
    args = [v.reshape(-1), np.zeros(4, F16), np.zeros(2, F16), np.zeros(2, F16), np.zeros(2, F16), np.zeros(2, np.uint16), I32(n)]
    expected = {1: warps.sum(1, dtype=F32).astype(F16).reshape(-1), 2: warps.max((1, 2)), 3: whole.sum(0, dtype=F32).astype(F16),
                4: np.array([whole[:, 0].sum(dtype=F32), 0], F16), 5: bf16(np.array([n / 2, n]))}  # fmt: skip
    return Launch((1, 1, 1), (n, 1, 1), args, expected)


def nearest(values: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Codes of the nearest finite numbers of a table of 128 magnitudes by code (ties to even codes), saturating."""
    finite = table[np.isfinite(table)]
    magnitude = np.minimum(np.abs(values), finite[-1])
    low = (np.searchsorted(finite, magnitude, side="right") - 1).clip(0, finite.size - 1)
    high = np.minimum(low + 1, finite.size - 1)
    down, up = magnitude - finite[low], finite[high] - magnitude
    code = np.where(down < up, low, np.where(up < down, high, np.where(low & 1, high, low)))
    return (code | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


def eight_bit(exponent_bits: int) -> np.ndarray:
    """Values of the 128 positive codes of e4m3 (4) or e5m2 (5)."""
    m, bias = 7 - exponent_bits, (1 << exponent_bits - 1) - 1
    code = np.arange(128)
    e, f = code >> m, code & (1 << m) - 1
    value = np.where(e == 0, f / 2.0 ** (m + bias - 1), (1 + f / 2.0**m) * np.exp2(e - float(bias)))
    if exponent_bits == 4:
        value[127] = np.nan
    else:
        value[124], value[125:] = np.inf, np.nan
    return value


@spec("f8", "f16", "convert")
def fp8_convert(rng: np.random.Generator) -> Launch:
    n = 64
    x = (rng.standard_normal(2 * n) * np.exp2(rng.integers(-14, 17, 2 * n))).astype(F32)
    x[:6] = (0, -0.0, 1.0625, 464, -465, 1e9)
    codes = [nearest(x.astype(F64), eight_bit(k)) for k in (4, 5)]
    back = [np.copysign(eight_bit(k)[c & 127], x).astype(F16) for k, c in zip((4, 5), codes, strict=True)]
    args = [x, *(np.zeros(n, np.uint16) for _ in range(2)), *(np.zeros(2 * n, F16) for _ in range(2)), I32(n)]
    expected = {1: codes[0].view(np.uint16), 2: codes[1].view(np.uint16), 3: back[0], 4: back[1]}
    return Launch((2, 1, 1), (32, 1, 1), args, expected)


# --- Triton: 128 threads a program, and two pointers of its own behind the arguments ---
EXTRA = [np.uint64(0), np.uint64(0)]


@spec("triton", "f32", "mufu", "division", "shuffle", "shared", "barrier")
def triton_softmax(rng: np.random.Generator) -> Launch:
    x = (floats(rng, 3 * 450) * 3).reshape(3, 450)
    e = np.exp(x.astype(F64) - x.max(1, keepdims=True))
    want = (e / e.sum(1, keepdims=True)).astype(F32).reshape(-1)
    args = [x.reshape(-1), np.zeros(3 * 450, F32), I32(450), I32(450), *EXTRA]
    return Launch((3, 1, 1), (128, 1, 1), args, {1: want}, shared_bytes=16, rtol=1e-5, atol=1e-9)


@spec("triton", "f16", "mma", "ldmatrix", "shared", "barrier", "loop")
def triton_matmul(rng: np.random.Generator) -> Launch:
    m, n, k = 64, 128, 96
    a, b = (rng.integers(-16, 17, s).astype(F16) / F16(8) for s in ((m, k), (k, n)))
    args = [a.reshape(-1), b.reshape(-1), np.zeros(m * n, F32), I32(k), *EXTRA]
    return Launch((1, 2, 1), (128, 1, 1), args, {2: (a.astype(F32) @ b.astype(F32)).reshape(-1)}, shared_bytes=16384)


class Brain(Launch):
    """bfloat16 results within one unit in the last place and a little."""

    def check(self, args: list) -> None:
        np.testing.assert_allclose(wide(args[3]), self.expected[3], rtol=2**-8 + 1e-5, atol=1e-5)


@spec("triton", "bf16", "f32", "mufu", "division", "shuffle", "shared", "barrier")
def triton_layer_norm(rng: np.random.Generator) -> Launch:
    rows, n = 3, 200
    x, gain, bias = bf16(floats(rng, rows * n)), floats(rng, n), floats(rng, n)
    v = wide(x).reshape(rows, n)
    want = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * gain + bias
    args = [x, gain, bias, np.zeros(rows * n, np.uint16), I32(n), *EXTRA]
    return Brain((rows, 1, 1), (128, 1, 1), args, {3: want.reshape(-1)}, shared_bytes=16)


@spec("triton", "int", "loop")
def triton_dropout(rng: np.random.Generator) -> Launch:
    n, seed = 900, 1234
    x = ints(rng, n, -1000, 1000)
    keep = []
    for i in range(n):
        c, k = [i, 0, 0, 0], [seed, 0]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        keep.append(0 < c[0] < 2**31)
    args = [x, np.zeros(n, I32), I32(seed), I32(n), *EXTRA]
    return Launch((4, 1, 1), (128, 1, 1), args, {1: np.where(keep, x * 2, 0).astype(I32)})


@spec("triton", "int", "shuffle", "shared", "barrier", "select")
def triton_sort_scan(rng: np.random.Generator) -> Launch:
    x = ints(rng, 256, -100000, 100000)
    order = np.sort(x.reshape(2, 128), 1)
    args = [x, np.zeros(256, I32), np.zeros(256, I32), *EXTRA]
    expected = {1: order.reshape(-1), 2: order.cumsum(1).astype(I32).reshape(-1)}
    return Launch((2, 1, 1), (128, 1, 1), args, expected, shared_bytes=512)
