"""Sorting, searching, strings, graphs, dynamic programming."""

from __future__ import annotations

import base64 as codec
import itertools

import numpy as np
from launches import F32, I32, I64, U32, Launch, floats, ints, spec, words


@spec("int", "shared", "vote", "shuffle", "barrier", "loop")
def radix_sort(rng: np.random.Generator) -> Launch:
    keys, values = words(rng, 512), np.arange(512, dtype=U32)
    keys[:40] = keys[40:80]
    order = np.argsort(keys.reshape(2, 256), 1, kind="stable")
    sort = lambda v: np.take_along_axis(v.reshape(2, 256), order, 1).reshape(-1)  # noqa: E731
    return Launch((2, 1, 1), (256, 1, 1), [keys.copy(), values.copy()], {0: sort(keys), 1: sort(values)})


@spec("int", "divergence", "loop")
def merge_path(rng: np.random.Generator) -> Launch:
    a, b = np.sort(ints(rng, 300, -90, 90)), np.sort(ints(rng, 173, -90, 90))
    args = [a, b, np.zeros(473, I32), I32(300), I32(173), I32(5)]
    return Launch((2, 1, 1), (64, 1, 1), args, {2: np.sort(np.concatenate([a, b]))})


@spec("int64", "divergence", "loop")
def binary_search(rng: np.random.Generator) -> Launch:
    table = np.sort(rng.integers(-(2**62), 2**62, 1000, dtype=I64))
    needles = np.concatenate([rng.integers(-(2**63), 2**63 - 1, 100, dtype=I64), rng.choice(table, 90)])
    args = [table, needles, np.zeros(190, U32), U32(1000), U32(190)]
    return Launch((2, 1, 1), (128, 1, 1), args, {2: np.searchsorted(table, needles).astype(U32)})


@spec("f32", "shuffle", "divergence", "loop")
def top_k(rng: np.random.Generator) -> Launch:
    rows, columns = 3, 200
    x = rng.permutation(rows * columns).astype(F32).reshape(rows, columns) / F32(7)
    where = np.argsort(-x, 1)[:, :8]
    args = [x.reshape(-1), np.zeros(rows * 8, F32), np.zeros(rows * 8, I32), I32(columns)]
    return Launch((rows, 1, 1), (32, 1, 1), args, {1: np.take_along_axis(x, where, 1).reshape(-1), 2: where.astype(I32).reshape(-1)})


@spec("int", "bytes", "shared", "barrier", "vote", "atomics")
def string_match(rng: np.random.Generator) -> Launch:
    text = rng.integers(97, 100, 700).astype(np.uint8)
    pattern = np.frombuffer(b"ab?a", np.uint8).copy()
    n, m = text.size, pattern.size
    hits = np.zeros(n, np.uint8)
    for i in range(n - m + 1):
        hits[i] = all(p in (ord("?"), c) for p, c in zip(pattern, text[i : i + m], strict=True))
    args = [text, pattern, np.full(n, 9, np.uint8), np.zeros(1, U32), I32(n), I32(m)]
    return Launch((3, 1, 1), (256, 1, 1), args, {2: hits, 3: np.array([hits.sum()], U32)})


def distance(a: bytes, b: bytes) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


@spec("int", "bytes", "shared", "barrier", "loop")
def levenshtein(rng: np.random.Generator) -> Launch:
    pairs, pitch = 4, 48
    a, b = rng.integers(97, 101, (pairs, pitch)).astype(np.int8), rng.integers(97, 101, (pairs, pitch)).astype(np.int8)
    la, lb = ints(rng, pairs, 1, pitch + 1), ints(rng, pairs, 1, pitch + 1)
    la[0] = 0
    want = [distance(a[i, : la[i]].tobytes(), b[i, : lb[i]].tobytes()) for i in range(pairs)]
    args = [a.reshape(-1), b.reshape(-1), la, lb, np.zeros(pairs, I32), I32(pitch)]
    return Launch((pairs, 1, 1), (32, 1, 1), args, {4: np.array(want, I32)})


@spec("int", "shared", "barrier", "loop")
def knapsack(rng: np.random.Generator) -> Launch:
    items, capacity = 14, 150
    weight, value = ints(rng, items, 1, 60), ints(rng, items, 1, 1000)
    best = np.zeros(capacity + 1, I64)
    for w, v in zip(weight, value, strict=True):
        taken = best.copy()
        taken[w:] = np.maximum(best[w:], best[: capacity + 1 - w] + v)
        best = taken
    args = [weight, value, np.zeros(capacity + 1, U32), I32(items), I32(capacity)]
    return Launch((1, 1, 1), (64, 1, 1), args, {2: best.astype(U32)}, shared_bytes=8 * (capacity + 1))


@spec("int16", "shared", "barrier", "loop")
def floyd_warshall(rng: np.random.Generator) -> Launch:
    d = rng.integers(1, 60000, (24, 24)).astype(np.uint16)
    np.fill_diagonal(d, 0)
    want = d.astype(I64)
    for k in range(24):
        want = np.minimum(want, want[:, k : k + 1] + want[k : k + 1, :])
    return Launch((1, 1, 1), (24, 24, 1), [d.reshape(-1).copy()], {0: want.astype(np.uint16).reshape(-1)})


@spec("int", "shared", "barrier", "atomics", "divergence", "loop")
def bfs_levels(rng: np.random.Generator) -> Launch:
    nodes = 120
    graph = [sorted(rng.choice(nodes, rng.integers(0, 4), replace=False)) for _ in range(nodes)]
    start = np.cumsum([0, *(len(out) for out in graph)]).astype(I32)
    level, front, depth = np.full(nodes, -1, I32), [3], 0
    level[3] = 0
    while front:
        depth += 1
        front = sorted({int(b) for a in front for b in graph[a] if level[b] < 0})
        level[front] = depth
    args = [start, np.array([b for out in graph for b in out], I32), np.zeros(nodes, I32), I32(nodes), I32(3)]
    return Launch((1, 1, 1), (64, 1, 1), args, {2: level})


@spec("int", "shared", "barrier", "atomics", "divergence", "loop")
def components(rng: np.random.Generator) -> Launch:
    nodes, edges = 100, 70
    a, b = ints(rng, edges, 0, nodes), ints(rng, edges, 0, nodes)
    label = list(range(nodes))
    for x, y in zip(a, b, strict=True):
        low, high = sorted((label[x], label[y]))
        label = [low if v == high else v for v in label]
    return Launch((1, 1, 1), (64, 1, 1), [a, b, np.zeros(nodes, I32), I32(nodes), I32(edges)], {2: np.array(label, I32)})


@spec("int", "local", "divergence", "loop")
def queens(rng: np.random.Generator) -> Launch:
    n = 6
    count = np.zeros(n * n, I32)
    for p in itertools.permutations(range(n)):
        if all(abs(p[i] - p[j]) != j - i for i in range(n) for j in range(i + 1, n)):
            count[p[0] * n + p[1]] += 1
    return Launch((1, 1, 1), (64, 1, 1), [np.zeros(n * n, I32), I32(n)], {0: count})


class Pieces(Launch):
    """A launch whose blocks may write their pieces in any order: `check` puts them together by the places they tell."""

    def check(self, args: list) -> None:
        data, out, blocks, top = args[:4]
        kept = [data[i : i + 128][data[i : i + 128] > 0] for i in range(0, data.size, 128)]
        assert int(top[0]) == sum(k.size for k in kept)
        used = np.zeros(out.size, bool)
        for (base, size), want in zip(blocks.reshape(-1, 2), kept, strict=True):
            assert size == want.size and not used[base : base + size].any()
            used[base : base + size] = True
            np.testing.assert_array_equal(out[base : base + size], want)


@spec("int", "vote", "shared", "barrier", "atomics")
def compaction(rng: np.random.Generator) -> Launch:
    n = 500
    return Pieces((4, 1, 1), (128, 1, 1), [ints(rng, n, -50, 60), np.zeros(n, I32), np.zeros(8, I32), np.zeros(1, I32), I32(n)], {})


@spec("int", "bytes", "shuffle", "shared", "barrier")
def run_length(rng: np.random.Generator) -> Launch:
    n = 230
    data = np.repeat(rng.integers(0, 9, n), rng.integers(1, 6, n))[:n].astype(np.uint8)
    runs = [(key, len(list(group))) for key, group in itertools.groupby(data.tolist())]
    symbol, length = np.zeros(256, np.uint8), np.zeros(256, I32)
    symbol[: len(runs)], length[: len(runs)] = zip(*runs, strict=True)
    args = [data, np.zeros(256, np.uint8), np.zeros(256, I32), np.zeros(1, I32), I32(n)]
    return Launch((1, 1, 1), (256, 1, 1), args, {1: symbol, 2: length, 3: np.array([len(runs)], I32)})


@spec("int", "bytes", "constant", "vector")
def base64(rng: np.random.Generator) -> Launch:
    groups = 150
    data = rng.integers(0, 256, 3 * groups).astype(np.uint8)
    want = np.frombuffer(codec.b64encode(data.tobytes()), np.uint8)
    return Launch((2, 1, 1), (128, 1, 1), [data, np.zeros(4 * groups, np.uint8), I32(groups)], {1: want})


@spec("int", "bytes", "divergence")
def utf8_decode(rng: np.random.Generator) -> Launch:
    points = [int(rng.integers(*r)) for _ in range(35) for r in ((1, 0x80), (0x80, 0x800), (0x800, 0xD800), (0x10000, 0x110000))]
    parts, want = [chr(p).encode() for p in points], list(points)
    parts += [b"\xff", b"\xc3(", b"\xe2\x82x", b"\x80"]
    want += [0xFFFD] * 4
    start = np.cumsum([0, *(len(p) for p in parts)])[:-1].astype(I32)
    text = np.frombuffer(b"".join(parts), np.uint8).copy()
    return Launch((2, 1, 1), (96, 1, 1), [text, start, np.zeros(len(want), U32), I32(len(want))], {2: np.array(want, U32)})


@spec("int", "shared", "barrier", "loop")
def life_bits(rng: np.random.Generator) -> Launch:
    rows, generations = 24, 5
    start = words(rng, 2 * rows)
    cells = (start.reshape(2, rows, 1) >> np.arange(32, dtype=U32) & U32(1)).astype(int)
    for _ in range(generations):
        around = sum(np.roll(cells, (dy, dx), (1, 2)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype(int)
    want = (cells.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(2).astype(U32).reshape(-1)
    args = [start, np.zeros(2 * rows, U32), I32(rows), I32(generations)]
    return Launch((2, 1, 1), (rows, 1, 1), args, {1: want}, shared_bytes=8 * rows)


@spec("int", "shared", "atomics", "int64", "division", "loop")
def k_means(rng: np.random.Generator) -> Launch:
    n, k = 300, 6
    p, c = ints(rng, 2 * n, -10000, 10000).reshape(n, 2), ints(rng, 2 * k, -10000, 10000).reshape(k, 2)
    label = ((p[:, None].astype(I64) - c[None]) ** 2).sum(2).argmin(1)
    mean = c.copy()
    for j in range(k):
        if (label == j).any():
            total, count = p[label == j].sum(0, dtype=I64), int((label == j).sum())
            mean[j] = [int(abs(t)) // count * (1 if t >= 0 else -1) for t in total]
    args = [p.reshape(-1), c.reshape(-1), np.zeros(n, I32), np.zeros(2 * k, I32), I32(n), I32(k)]
    return Launch((1, 1, 1), (128, 1, 1), args, {2: label.astype(I32), 3: mean.reshape(-1)})


@spec("int", "bytes", "mufu", "convert")
def sobel(rng: np.random.Generator) -> Launch:
    w, h = 45, 20
    image = rng.integers(0, 256, (h, w)).astype(np.uint8)
    p = np.pad(image, 1, mode="edge").astype(I64)
    right, left = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:], p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2]
    low, high = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:], p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:]
    want = np.minimum(np.floor(np.sqrt(((right - left) ** 2 + (low - high) ** 2).astype(np.float64))), 255)
    args = [image.reshape(-1), np.zeros(w * h, np.uint8), I32(w), I32(h)]
    return Launch((3, 3, 1), (16, 8, 1), args, {1: want.astype(np.uint8).reshape(-1)})


@spec("f32", "shuffle", "atomics", "loop")
def spmv_csr(rng: np.random.Generator) -> Launch:
    rows, columns = 40, 60
    dense = floats(rng, rows * columns).reshape(rows, columns)
    dense[rng.random((rows, columns)) > 0.3] = 0
    start = np.cumsum([0, *np.count_nonzero(dense, 1)]).astype(I32)
    row, column = (v.astype(I32) for v in np.nonzero(dense))
    x = floats(rng, columns)
    want = (dense.astype(np.float64) @ x).astype(F32)
    args = [start, column, row, dense[dense != 0], x, np.zeros(rows, F32), np.zeros(rows, F32), I32(rows)]
    return Launch((10, 1, 1), (128, 1, 1), args, {5: want, 6: want}, rtol=1e-4, atol=1e-5)
