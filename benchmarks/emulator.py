"""Speed of the emulator in thread-instructions a second, on ptxas's cubins of the test kernels at larger sizes: `python benchmarks/emulator.py`."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/kernels"), str(ROOT)]
specs = importlib.import_module("specs")
oracle = importlib.import_module("support.oracle")
emulate = importlib.import_module("sassay.emu").emulate

F32, I32, U32 = np.float32, np.int32, np.uint32
Case = tuple[str, tuple[int, int, int], tuple[int, int, int], list[Any]]


def cases() -> list[tuple[str, Case]]:
    """(what it shows, launch)."""
    rng = np.random.default_rng(0)
    n = 1 << 20
    a, b = rng.standard_normal(n).astype(F32), rng.standard_normal(n).astype(F32)
    m = rng.standard_normal(64 * 64).astype(F32)
    numbers = rng.integers(1, 100000, 8192).astype(U32)
    mixed = rng.integers(0, 10000, 65536).astype(I32)
    m2, size = m.copy(), I32(64)
    keys = rng.integers(0, 2**64, 1 << 18, dtype=np.uint64)
    return [
        ("1024 x 1024 vector sum", ("vector_add", (n // 256, 1, 1), (256, 1, 1), [a, b, np.zeros(n, F32), I32(n)])),
        ("convergent 64-bit hashing", ("hash64", (1024, 1, 1), (256, 1, 1), [keys, np.zeros(1 << 18, np.uint64), np.uint64(7), I32(1 << 18)])),
        ("64 x 64 x 64 tiled matrix product", ("matmul_tiled", (4, 4, 1), (16, 16, 1), [m, m2, np.zeros(4096, F32), size, size, size])),
        ("one CTA of 256, reduction", ("block_reduce", (1, 1, 1), (256, 1, 1), [np.arange(256, dtype=I32), np.zeros(1, I32), I32(256)])),
        ("diverging loop (collatz)", ("collatz", (32, 1, 1), (256, 1, 1), [numbers, np.zeros(8192, U32), I32(8192)])),
        ("nested diverging branches", ("nested_branches", (256, 1, 1), (256, 1, 1), [mixed, np.zeros(131072, I32), I32(65536)])),
    ]


def main() -> None:
    print(f"{'case':36} {'sanitizer':9} {'seconds':>8} {'thread-instr.':>14} {'M/s':>8}")
    for what, (name, grid, block, args) in cases():
        cubin = oracle.ptxas(specs.SPECS[name].ptx, "sm_90a")
        for sanitize in (False, True):
            start = time.perf_counter()
            result = emulate(cubin, name, grid, block, args, sanitize=sanitize)
            seconds = time.perf_counter() - start
            rate = result.thread_instructions / seconds / 1e6
            print(f"{what:36} {'on' if sanitize else 'off':9} {seconds:8.3f} {result.thread_instructions:14,} {rate:8.1f}")


if __name__ == "__main__":
    main()
