"""Launches of the kernels in this directory and what numpy says they must compute. `LAUNCHES[name](rng)` gives a `Launch`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
Dim = tuple[int, int, int]
F32, F64, I32, U32, U64 = np.float32, np.float64, np.int32, np.uint32, np.uint64


@dataclass
class Launch:
    """Arguments in order (arrays are device buffers) and, by argument, the contents expected afterwards: equal bit for bit unless `rtol` is set."""

    grid: Dim
    block: Dim
    args: list[Any]
    expected: dict[int, np.ndarray]
    shared_bytes: int = 0
    rtol: float = 0.0

    def wrong(self) -> int:
        """Number of elements that are not as expected after the launch."""
        bad = 0
        for index, want in self.expected.items():
            got = self.args[index]
            if self.rtol:
                bad += int((~np.isclose(got, want, rtol=self.rtol, atol=self.rtol)).sum())
            else:
                bad += int((~((got == want) | ((got != got) & (want != want)))).sum())
        return bad


def ptx(name: str) -> str:
    """PTX text of a kernel."""
    return (HERE / f"{name}.ptx").read_text()


def floats(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal(n).astype(F32)


def ints(rng: np.random.Generator, n: int, low: int = -(2**31), high: int = 2**31) -> np.ndarray:
    return rng.integers(low, high, n, dtype=np.int64).astype(I32)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c in f32, rounded once (the product is exact in extended precision)."""
    return (a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)).astype(F32)


def vector_add(rng: np.random.Generator) -> Launch:
    n = 1000
    a, b = floats(rng, n), floats(rng, n)
    return Launch((4, 1, 1), (256, 1, 1), [a, b, np.zeros(n, F32), I32(n)], {2: a + b})


def saxpy(rng: np.random.Generator) -> Launch:
    """A grid-stride loop."""
    n = 3001
    alpha, x, y = F32(1.7), floats(rng, n), floats(rng, n)
    return Launch((3, 1, 1), (128, 1, 1), [alpha, x, y.copy(), U32(n)], {2: fused(np.full(n, alpha), x, y)})


def hash64(rng: np.random.Generator) -> Launch:
    """64-bit multiplies, rotates and shifts."""
    n, seed = 300, U64(0x9E3779B97F4A7C15)
    data = rng.integers(0, 2**64, n, dtype=U64)

    def rotate(x: np.ndarray, r: int) -> np.ndarray:
        return (x << U64(r)) | (x >> U64(64 - r))

    k, h = data.copy(), np.full(n, seed)
    for _ in range(3):
        k = rotate(k * U64(0x87C37B91114253D5), 31) * U64(0x4CF5AD432745937F)
        h = rotate(h ^ k, 27) * U64(5) + U64(0x52DCE729)
        k = k + h
    h = (h ^ (h >> U64(33))) * U64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> U64(29))) * U64(0xC4CEB9FE1A85EC53)
    return Launch((3, 1, 1), (128, 1, 1), [data, np.zeros(n, U64), seed, I32(n)], {1: h ^ (h >> U64(32))})


def histogram(rng: np.random.Generator) -> Launch:
    """Global atomics."""
    n = 5000
    data = (rng.standard_normal(n) * 30 + 128).clip(0, 255).astype(np.uint8)
    return Launch((2, 1, 1), (256, 1, 1), [data, np.zeros(256, U32), I32(n)], {1: np.bincount(data, minlength=256).astype(U32)})


def block_reduce(rng: np.random.Generator) -> Launch:
    """Shared memory, a barrier and shuffles."""
    n, threads, blocks = 1000, 256, 4
    data = ints(rng, n)
    padded = np.zeros(threads * blocks, np.int64)
    padded[:n] = data
    want = padded.reshape(blocks, threads).sum(1).astype(I32)
    return Launch((blocks, 1, 1), (threads, 1, 1), [data, np.zeros(blocks, I32), I32(n)], {1: want})


def row_softmax(rng: np.random.Generator) -> Launch:
    rows, columns = 4, 300
    x = (floats(rng, rows * columns) * 3).reshape(rows, columns)
    e = np.exp(x.astype(F64) - x.max(1, keepdims=True))
    want = (e / e.sum(1, keepdims=True)).astype(F32).reshape(-1)
    return Launch((rows, 1, 1), (128, 1, 1), [x.reshape(-1), np.zeros(rows * columns, F32), I32(columns)], {1: want}, rtol=2e-5)


def layer_norm(rng: np.random.Generator) -> Launch:
    rows, columns, eps = 6, 100, F32(1e-5)
    x, gamma, beta = floats(rng, rows * columns), floats(rng, columns), floats(rng, columns)
    d = x.astype(F64).reshape(rows, columns)
    want = (d - d.mean(1, keepdims=True)) / np.sqrt(d.var(1, keepdims=True) + float(eps)) * gamma + beta
    args = [x, gamma, beta, np.zeros(rows * columns, F32), I32(columns), eps]
    return Launch((rows, 1, 1), (32, 1, 1), args, {3: want.astype(F32).reshape(-1)}, rtol=1e-4)


def matmul_tiled(rng: np.random.Generator) -> Launch:
    m, n, k = 32, 48, 64
    a, b = floats(rng, m * k).reshape(m, k), floats(rng, k * n).reshape(k, n)
    want = np.zeros((m, n), F32)
    for i in range(k):
        want = fused(a[:, i : i + 1], b[i : i + 1, :], want)
    args = [a.reshape(-1), b.reshape(-1), np.zeros(m * n, F32), I32(m), I32(n), I32(k)]
    return Launch((n // 16, m // 16, 1), (16, 16, 1), args, {2: want.reshape(-1)})


def collatz(rng: np.random.Generator) -> Launch:
    """A loop whose end depends on the data, another for each thread."""
    n = 100
    data = rng.integers(1, 5000, n).astype(U32)

    def steps(x: int) -> int:
        count = 0
        while x > 1:
            x, count = (3 * x + 1 if x & 1 else x >> 1), count + 1
        return count

    return Launch((2, 1, 1), (64, 1, 1), [data, np.zeros(n, U32), I32(n)], {1: np.array([steps(int(x)) for x in data], U32)})


def clamp_select(rng: np.random.Generator) -> Launch:
    n, lo, hi = 200, F32(-0.75), F32(1.25)
    x, k = floats(rng, n), ints(rng, n, -40, 40)
    x[::17] = np.nan
    c = np.fmin(np.fmax(x, lo), hi)
    out = np.where(k > 10, c, np.where(k < -10, -c, x * F32(0.5)))
    iout = np.where(np.isnan(x), -1, np.where(x > c, k.clip(-20, 20), np.where(x == c, k, np.abs(k)))).astype(I32)
    args = [x, k, np.zeros(n, F32), np.zeros(n, I32), lo, hi, I32(n)]
    return Launch((2, 1, 1), (128, 1, 1), args, {2: out.astype(F32), 3: iout})


def dot_f64(rng: np.random.Generator) -> Launch:
    n, threads, blocks = 900, 128, 2
    x, y = rng.standard_normal(n), rng.standard_normal(n)
    padded = np.zeros((n + threads * blocks - 1) // (threads * blocks) * threads * blocks)
    padded[:n] = x * y
    want = padded.reshape(-1, blocks, threads).sum((0, 2))
    args = [x, y, np.zeros(blocks), I32(n)]
    return Launch((blocks, 1, 1), (threads, 1, 1), args, {2: want}, shared_bytes=threads * 8, rtol=1e-12)


LAUNCHES: dict[str, Callable[[np.random.Generator], Launch]] = {
    f.__name__: f
    for f in (vector_add, saxpy, hash64, histogram, block_reduce, row_softmax, layer_norm, matmul_tiled, collatz, clamp_select, dot_f64)
}
