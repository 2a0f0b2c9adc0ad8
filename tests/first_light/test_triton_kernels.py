"""Triton kernels, their PTX committed: compiled for three chips they compute what numpy does, as ptxas's code does in the same emulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import oracle

import sassay

HERE = Path(__file__).with_name("from_triton")
CHIPS = ("sm_90a", "sm_100a", "sm_120a")
Run = Callable[[bytes, int], None]


def launch(name: str, cubin: bytes, grid: tuple[int, int, int], block: int, args: list[Any], shared: int) -> None:
    """Runs a kernel; the parameters that Triton adds behind the declared ones are null pointers. ptxas moves registers about that nobody has
    written yet, where Triton leaves the masked-off lanes of a load open; nothing else may be found."""
    extra = [np.uint64(0)] * (len(sassay.read_cubin(cubin).kernel(name).params) - len(args))
    result = sassay.emulate(cubin, name, grid, (block, 1, 1), [*args, *extra], shared_bytes=shared)
    assert {f.kind for f in result.findings} <= {"uninitialised register"}


def softmax(cubin: bytes, shared: int) -> None:
    x = (np.random.default_rng(1).standard_normal((3, 700)) * 4).astype(np.float32)
    out = np.zeros(2100, np.float32)
    launch("softmax", cubin, (3, 1, 1), 128, [x.reshape(-1), out, np.int32(700), np.int32(700)], shared)
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.reshape(3, 700), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-9)


def layer_norm(cubin: bytes, shared: int) -> None:
    rng = np.random.default_rng(2)
    x, w, b = (rng.standard_normal(n).astype(np.float16) for n in (4 * 300, 300, 300))
    out = np.zeros(1200, np.float16)
    launch("layer_norm", cubin, (4, 1, 1), 128, [x, w, b, out, np.int32(300), np.float32(1e-5)], shared)
    rows = x.reshape(4, 300).astype(float)
    want = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5) * w.astype(float) + b.astype(float)
    np.testing.assert_allclose(out.reshape(4, 300).astype(float), want, rtol=2e-3, atol=2e-3)


def philox(seed: int, offsets: np.ndarray) -> np.ndarray:
    """First word of Philox 4x32-10 for counters (offset, 0, 0, 0) and the key of a non-negative 32-bit seed."""
    c0, c1, c2, c3 = offsets.astype(np.uint64), *(np.zeros(offsets.size, np.uint64) for _ in range(3))
    k0, k1, low = seed, 0, np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c2, c1, c3 = (b >> np.uint64(32)) ^ c1 ^ np.uint64(k0), (a >> np.uint64(32)) ^ c3 ^ np.uint64(k1), b & low, a & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0.astype(np.uint32)


def dropout(cubin: bytes, shared: int) -> None:
    n, p, seed = 1500, np.float32(0.3), 12345
    x = np.random.default_rng(3).standard_normal(n).astype(np.float32)
    out = np.zeros(n, np.float32)
    launch("dropout", cubin, (3, 1, 1), 128, [x, out, np.int32(n), p, np.int32(seed)], shared)
    signed = philox(seed, np.arange(n)).view(np.int32)
    uniform = np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)
    keep = uniform > p
    assert 900 < keep.sum() < 1200
    np.testing.assert_array_equal(out != 0, keep)
    np.testing.assert_allclose(out[keep], x[keep] / (1 - p), rtol=1e-6)


def running_sum(cubin: bytes, shared: int) -> None:
    x = np.random.default_rng(4).integers(-1000, 1000, (2, 200)).astype(np.int32)
    out = np.zeros(400, np.int32)
    launch("running_sum", cubin, (2, 1, 1), 128, [x.reshape(-1), out, np.int32(200)], shared)
    np.testing.assert_array_equal(out.reshape(2, 200), np.cumsum(x, axis=1))


def matmul(cubin: bytes, shared: int) -> None:
    rng, m, n, k = np.random.default_rng(5), 40, 50, 48
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros(m * n, np.float32)
    launch("matmul", cubin, (2, 2, 1), 32, [a.reshape(-1), b.reshape(-1), c, np.int32(m), np.int32(n), np.int32(k)], shared)
    np.testing.assert_allclose(c.reshape(m, n), a.astype(float) @ b.astype(float), rtol=1e-4, atol=1e-4)


RUNS: dict[str, Run] = {f.__name__: f for f in (softmax, layer_norm, dropout, running_sum, matmul)}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", RUNS)
def test_ours(name: str, chip: str, tmp_path: Path) -> None:
    text = (HERE / f"{name}.{chip}.ptx").read_text()
    cubin = sassay.compile(text, chip).cubin
    assert sassay.check(cubin) == []
    RUNS[name](cubin, int(text.split()[2]))
    if oracle.tool("cuobjdump") is not None:
        path = tmp_path / "ours.cubin"
        path.write_bytes(cubin)
        assert oracle.complaints(path) == []


@oracle.needs_ptxas
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", RUNS)
def test_ptxas_code_in_the_same_emulator(name: str, chip: str) -> None:
    text = (HERE / f"{name}.{chip}.ptx").read_text()
    RUNS[name](oracle.ptxas(text, chip), int(text.split()[2]))
