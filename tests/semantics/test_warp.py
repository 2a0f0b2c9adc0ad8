"""Warp exchanges and matrix products against plain loops over lanes."""

from __future__ import annotations

import numpy as np
import pytest

from sassay.isa.semantics.numpy_algebra import quiet
from semantics.run import compiled

RNG = np.random.default_rng(3)
ALL = np.ones(32, bool)


def run(text: str, active: np.ndarray, *values: np.ndarray) -> list[list[int]]:
    with quiet():
        return [np.broadcast_to(r, (32,)).tolist() for r in compiled(text).run(active, *values)]


def test_shuffles() -> None:
    value = RNG.integers(0, 1 << 32, 32, dtype=np.uint32)
    for mode, move in (("UP", lambda i, n: i - n), ("DOWN", lambda i, n: i + n), ("BFLY", lambda i, n: i ^ n), ("IDX", lambda i, n: n)):
        for n in (0, 1, 5, 16, 31):
            clamp = 0 if mode == "UP" else 31
            p, d = run(f"SHFL.{mode} P0, R1, R2, {n:#x}, {clamp:#x}", ALL, value)
            for i in range(32):
                j = move(i, n)
                inside = 0 <= j < 32
                assert (p[i], d[i]) == (inside, value[j] if inside else value[i]), (mode, n, i)


def test_segmented_shuffle() -> None:
    value = np.arange(32, dtype=np.uint32)
    p, d = run("SHFL.DOWN P0, R1, R2, 0x3, 0x1807", ALL, value)
    for i in range(32):
        inside = i % 8 + 3 <= 7
        assert (p[i], d[i]) == (inside, i + 3 if inside else i)


def test_votes_and_reductions() -> None:
    active = RNG.integers(0, 2, 32).astype(bool)
    active[5] = True
    p = RNG.integers(0, 2, 32).astype(bool)
    ballot = sum(1 << i for i in range(32) if active[i] and p[i])
    assert run("VOTE.ANY R1, P1, P2", active, p) == [[ballot] * 32, [ballot != 0] * 32]
    assert run("VOTE.ALL P1, P2", active, p | active) == [[True] * 32]
    assert run("VOTE.ALL P1, P2", active, p & (np.arange(32) != 5)) == [[False] * 32]
    assert run("VOTE.EQ P1, P2", active, p & ~active) == [[True] * 32]
    value = RNG.integers(0, 1 << 32, 32, dtype=np.uint32)
    mine = [int(v) for v, a in zip(value, active, strict=True) if a]
    signed = [v - (1 << 32) if v >> 31 else v for v in mine]
    assert run("REDUX.SUM UR1, R2", active, value)[0][0] == sum(mine) & 0xFFFFFFFF
    assert run("REDUX.MIN.S32 UR1, R2", active, value)[0][0] == min(signed) & 0xFFFFFFFF
    assert run("REDUX.MAX UR1, R2", active, value)[0][0] == max(mine)
    assert run("REDUX UR1, R2", active, value | np.uint32(3))[0][0] & 3 == 3
    assert run("R2UR UR1, R2", active, value)[0][0] == mine[0]


def test_matches() -> None:
    active = RNG.integers(0, 4, 32) > 0
    value = RNG.integers(0, 3, 32, dtype=np.uint32)
    got = run("MATCH.ANY R1, R2", active, value)[0]
    for i in range(32):
        if active[i]:
            assert got[i] == sum(1 << j for j in range(32) if active[j] and value[j] == value[i])
    mask = sum(1 << j for j in range(32) if active[j])
    assert run("MATCH.ALL P0, R1, R2", active, np.where(active, np.uint32(7), value)) == [[True] * 32, [mask] * 32]
    value[np.flatnonzero(active)[:2]] = (8, 9)
    assert run("MATCH.ALL P0, R1, R2", active, value) == [[False] * 32, [0] * 32]


def fragment(matrix: np.ndarray, per: int) -> list[np.ndarray]:
    """Registers of an A fragment (rows by k), `per` elements each, as PTX lays them out; B's by its transpose."""
    rows, depth = matrix.shape
    unsigned = matrix.view({1: np.uint32, 2: np.uint16, 4: np.uint8}[per]).astype(np.uint32)
    parts = []
    for k in range(0, depth, 4 * per):
        for r in range(0, rows, 8):
            word = np.zeros(32, np.uint32)
            for lane in range(32):
                for e in range(per):
                    word[lane] |= unsigned[r + lane // 4, k + per * (lane % 4) + e] << np.uint32(32 // per * e)
            parts.append(word)
    return parts


def result(parts: list[list[int]], rows: int) -> np.ndarray:
    out = np.zeros((rows, 8), np.uint32)
    for i, part in enumerate(parts):
        for lane in range(32):
            out[8 * (i // 2) + lane // 4, 2 * (lane % 4) + i % 2] = part[lane]
    return out


@pytest.mark.parametrize("depth", [8, 16])
def test_hmma_of_small_integers(depth: int) -> None:
    """Sums of small integers are exact in every model."""
    a = RNG.integers(-8, 9, (16, depth)).astype(np.float16)
    b = RNG.integers(-8, 9, (depth, 8)).astype(np.float16)
    c = RNG.integers(-100, 100, (16, 8)).astype(np.float32)
    parts = [np.array([c[8 * (i // 2) + lane // 4, 2 * (lane % 4) + i % 2] for lane in range(32)], np.float32).view(np.uint32) for i in range(4)]
    shape = {8: "1688", 16: "16816"}[depth]
    got = run(f"HMMA.{shape}.F32 R4, R8, R12, R4", ALL, *fragment(a, 2), *fragment(np.ascontiguousarray(b.T), 2), *parts)
    want = a.astype(np.float32) @ b.astype(np.float32) + c
    assert (result(got, 16).view(np.float32) == want).all()


def test_hmma_truncates() -> None:
    """A term below 2**-25 of the largest is cut off; a sum is cut, not rounded (H100 model)."""
    a = np.zeros((16, 16), np.float16)
    b = np.zeros((16, 8), np.float16)
    a[0, 0], b[0, 0] = 1, 1
    a[0, 1], b[1, 0] = 2.0**-13, 2.0**-13  # 2**-26: lost
    a[1, 0], a[1, 1] = 1, 2.0**-12
    b[1, 1], b[0, 1] = 2.0**-13 * 1.5, 1  # 2**-25 * 1.5: within 25 bits only in part, then cut to 24
    zero = [np.zeros(32, np.uint32)] * 4
    got = run("HMMA.16816.F32 R4, R8, R12, RZ", ALL, *fragment(a, 2), *fragment(np.ascontiguousarray(b.T), 2), *zero[:0])
    assert result(got, 16).view(np.float32)[0, 0] == 1.0
    assert result(got, 16).view(np.float32)[1, 1] == 1.0


def test_imma() -> None:
    a = RNG.integers(-128, 128, (16, 32)).astype(np.int8)
    b = RNG.integers(0, 256, (32, 8)).astype(np.uint8)
    got = run("IMMA.16832.S8.U8 R4, R8.ROW, R12.COL, RZ", ALL, *fragment(a, 4), *fragment(np.ascontiguousarray(b.T), 4))
    assert (result(got, 16).view(np.int32) == a.astype(np.int64) @ b.astype(np.int64)).all()
