"""clang with sassay-ptxas named by --ptxas-path. SASSAY_CLANG may name a clang++ (16 or newer, the first that knows sm_90); skipped where none is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sassay

ROOT = Path(__file__).resolve().parents[2]
CLANG = os.environ.get("SASSAY_CLANG") or shutil.which("clang++") or ""
SOURCE = """
extern "C" __attribute__((global)) void scale(float* x, float a, int n) {
    int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    if (i < n) x[i] *= a;
}
"""


def version() -> int:
    if not CLANG:
        return 0
    text = subprocess.run([CLANG, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\d+)", text)
    return int(found[1]) if found else 0


@pytest.mark.skipif(version() < 16, reason="no clang++ 16 or newer")
@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
def test_clang_makes_our_cubin(level: str, tmp_path: Path) -> None:
    tool, source, out = tmp_path / "ptxas", tmp_path / "k.cu", tmp_path / "k.cubin"
    tool.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m sassay.ptxas_cli "$@"\n')
    tool.chmod(0o755)
    source.write_text(SOURCE)
    toolkit = tmp_path / "toolkit"  # clang wants to see one, and uses nothing of it here
    for folder in ("bin", "include", "nvvm/libdevice", "lib64"):
        (toolkit / folder).mkdir(parents=True)
    (toolkit / "include" / "cuda.h").write_text("#define CUDA_VERSION 11080\n")
    words = [
        CLANG, "-x", "cuda", str(source), "--cuda-device-only", "--cuda-gpu-arch=sm_90", "-nocudainc", "-nocudalib", f"--cuda-path={toolkit}",
        level, "-c", "-o", str(out), f"--ptxas-path={tool}", "-Xclang", "-target-feature", "-Xclang", "+ptx78",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cubin = out.read_bytes()
    assert b"sassay" in cubin and sassay.check(cubin) == []
    x = np.arange(100, dtype=np.float32)
    sassay.emulate(cubin, "scale", (1, 1, 1), (128, 1, 1), [x, np.float32(2.5), np.int32(100)])
    np.testing.assert_array_equal(x, np.arange(100, dtype=np.float32) * np.float32(2.5))
