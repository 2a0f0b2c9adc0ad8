"""How to launch each kernel of this directory and what it must compute. Tests, benchmarks and examples share these.

Each kernel NAME lives in NAME.cu with its PTX in NAME.ptx, and its entry is called NAME too. `SPECS[NAME].make(rng)` draws inputs and gives a
`Launch`: the arguments in order (arrays are device buffers, scalars have the parameter's type) and, by argument index, what each buffer
must hold afterwards, from numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
Dim = tuple[int, int, int]
F32, F64, I32, U32, I64, U64 = np.float32, np.float64, np.int32, np.uint32, np.int64, np.uint64


@dataclass
class Launch:
    """One launch. Results are compared bit for bit (NaNs equal NaNs) unless `rtol` or `atol` is set."""

    grid: Dim
    block: Dim
    args: list[Any]
    expected: dict[int, np.ndarray]
    shared_bytes: int = 0
    rtol: float = 0.0
    atol: float = 0.0

    def check(self, args: list[Any]) -> None:
        """Raises AssertionError where a buffer of `args` (the arguments after the launch) is not as expected."""
        for index, want in self.expected.items():
            got = args[index]
            if (self.rtol or self.atol) and want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, rtol=self.rtol, atol=self.atol, err_msg=f"argument {index}")
            else:
                np.testing.assert_array_equal(got, want, err_msg=f"argument {index}")


@dataclass
class Spec:
    """A kernel and how to launch it; `tags` name what it exercises ("f32", "shared", "shuffle", "calls" ...)."""

    name: str
    make: Callable[[np.random.Generator], Launch]
    tags: frozenset[str] = field(default_factory=frozenset)

    @property
    def ptx(self) -> str:
        """The kernel's PTX text."""
        return (HERE / f"{self.name}.ptx").read_text()


SPECS: dict[str, Spec] = {}


def spec(*tags: str) -> Callable[[Callable[[np.random.Generator], Launch]], Callable[[np.random.Generator], Launch]]:
    """Registers a function that makes a launch under the function's own name."""

    def register(make: Callable[[np.random.Generator], Launch]) -> Callable[[np.random.Generator], Launch]:
        SPECS[make.__name__] = Spec(make.__name__, make, frozenset(tags))
        return make

    return register


def ints(rng: np.random.Generator, n: int, low: int = -(2**31), high: int = 2**31) -> np.ndarray:
    return rng.integers(low, high, n, dtype=np.int64).astype(I32)


def words(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 2**32, n, dtype=np.uint64).astype(U32)


def floats(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal(n).astype(F32)


def fma32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Fused multiply-add in f32 (through extended precision: the product is exact there, double rounding is as good as impossible)."""
    return (a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)).astype(F32)


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


def wrap(x: int) -> int:
    """To a signed 32-bit integer."""
    return (x + 2**31) % 2**32 - 2**31


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
