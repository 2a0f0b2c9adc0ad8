"""Programs for the emulator's tests: decoded by our own codec, by nvdisasm where a chip's tables do not hold all of it yet."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from sassay.cubin import read
from sassay.emu.loader import load_program
from sassay.emu.program import Program
from sassay.errors import SassayError
from sassay.sass.codec import decode
from support import oracle

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
SPECS: dict[str, Any] = importlib.import_module("specs").SPECS


def program(data: bytes, name: str) -> Program:
    """The program of a cubin's kernel."""
    cubin = read(data)
    try:
        return load_program(cubin, name, decode(cubin.kernel(name).code, cubin.target))
    except SassayError:
        listed = oracle.vendor_disassemble(data)[name]
        return load_program(cubin, name, listed)
