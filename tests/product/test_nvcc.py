"""nvcc with sassay-ptxas in ptxas's place: a view of the toolkit made of links, with ours as bin/ptxas."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import oracle

import sassay

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
extern "C" __global__ void scale(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"""


@pytest.fixture
def nvcc(tmp_path: Path) -> Path:
    home = oracle.tool("nvcc")
    assert home is not None
    toolkit = home.parents[1]
    view = tmp_path / "toolkit"
    (view / "bin").mkdir(parents=True)
    for entry in toolkit.iterdir():
        if entry.name != "bin":
            (view / entry.name).symlink_to(entry)
    for entry in (toolkit / "bin").iterdir():
        if entry.name == "nvcc":  # finds its parts beside its own real path
            shutil.copy(entry, view / "bin" / "nvcc")
        elif entry.name != "ptxas":
            (view / "bin" / entry.name).symlink_to(entry)
    tool = view / "bin" / "ptxas"
    tool.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m sassay.ptxas_cli "$@"\n')
    tool.chmod(0o755)
    return view / "bin" / "nvcc"


@pytest.mark.skipif(not shutil.which("g++"), reason="nvcc needs a host compiler")
@oracle.needs("nvcc")
def test_nvcc_makes_our_cubin(nvcc: Path, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SOURCE)
    out = tmp_path / "k.cubin"
    words = [str(nvcc), "-cubin", "-arch=sm_90a", "--ptxas-options", "-v", "-lineinfo", str(tmp_path / "k.cu"), "-o", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ptxas info    : Used" in done.stderr
    assert b"k.cu" in out.read_bytes()
    x = np.arange(100, dtype=np.float32)
    sassay.emulate(out.read_bytes(), "scale", (1, 1, 1), (128, 1, 1), [x, np.float32(2.5), np.int32(100)])
    np.testing.assert_array_equal(x, np.arange(100, dtype=np.float32) * np.float32(2.5))
