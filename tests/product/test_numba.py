"""numba-cuda as a source of PTX text: `compile_ptx`, then our cubin. SASSAY_NUMBA_PYTHON may name an interpreter that has numba-cuda, NVVM and
NVRTC; skipped where none has. (numba-cuda itself links through nvJitLink, a library, so ptxas's place cannot be taken there.)"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sassay
from sassay.ptx.parser import parse

PYTHON = os.environ.get("SASSAY_NUMBA_PYTHON") or (sys.executable if importlib.util.find_spec("numba_cuda") else "")
SOURCE = """
import sys
from numba import cuda, float32

def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]

open(sys.argv[1], "w").write(cuda.compile_ptx(saxpy, (float32, float32[::1], float32[::1]), cc=(9, 0))[0])
"""


@pytest.mark.skipif(not PYTHON, reason="numba-cuda is not installed")
def test_numba_ptx_computes(tmp_path: Path) -> None:
    out = tmp_path / "k.ptx"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([PYTHON, "-c", SOURCE, str(out)], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    text = out.read_text()
    name = next(f.name for f in parse(text).functions if f.is_entry)
    cubin = sassay.compile(text, "sm_90").cubin
    assert sassay.check(cubin) == []
    n = 100
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    null, count, item = np.uint64(0), np.int64(n), np.int64(4)
    descriptor = lambda array: [null, null, count, item, array, count, item]  # noqa: E731  numba's: meminfo, parent, items, bytes, data, shape, stride
    sassay.emulate(cubin, name, (4, 1, 1), (32, 1, 1), [np.float32(2), *descriptor(x), *descriptor(y)])
    np.testing.assert_array_equal(y, 2 * x + 1)
