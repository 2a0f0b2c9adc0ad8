"""Compiles the CUDA kernels beside this file to the PTX committed with them: `python tests/kernels/build.py [name ...]`.

Needs nvcc 13.5; kernels that include the headers of halves or cooperative groups need CCCL too (NVCC_APPEND_FLAGS=-I.../include/cccl).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCH = "sm_90"
"""One PTX serves every target: sm_90 code is legal on sm_90a, sm_100a and sm_120a."""


def nvcc() -> Path:
    return Path(sys.prefix) / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages/nvidia/cu13/bin/nvcc"


def build(name: str) -> None:
    """Writes NAME.ptx from NAME.cu, without the comment lines that name the compiler's build."""
    out = HERE / f"{name}.ptx"
    subprocess.run([nvcc(), "-ptx", f"-arch={ARCH}", "-o", str(out), str(HERE / f"{name}.cu")], check=True)
    lines = [line for line in out.read_text().splitlines() if not line.startswith("//")]
    out.write_text("\n".join(lines).strip("\n") + "\n")


if __name__ == "__main__":
    for stem in sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.cu")):
        build(stem)
