"""Debug frames of built kernels (DWARF 3, 64-bit form): the call frame address is the stack pointer throughout, so debuggers can stop in them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sassay.cubin.model import Fixup

_GPR = 0x05000000
"""CUDA's DWARF numbers of 32-bit registers: this plus the index. Probed: ptxas names R1 (the stack pointer) so."""
_NO_RETURN_REGISTER = 0xFFFFFFFF


def uleb(value: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def sleb(value: int) -> bytes:
    """Signed LEB128."""
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        done = (value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40)
        out.append(byte | (0 if done else 0x80))
        if done:
            return bytes(out)


def _entry(content: bytes) -> bytes:
    content += bytes(-len(content) % 4)
    return b"\xff\xff\xff\xff" + struct.pack("<Q", len(content)) + content


def debug_frame(functions: Sequence[tuple[str, int]]) -> tuple[bytes, list[Fixup]]:
    """.debug_frame for (name, code bytes) functions, and its relocations."""
    out = bytearray()
    fixups = []
    for name, size in functions:
        cie = len(out)
        content = b"\xff" * 8 + b"\x03\0" + uleb(4) + sleb(-4) + uleb(_NO_RETURN_REGISTER)
        content += b"\x0c" + uleb(_GPR + 1) + uleb(0)  # DW_CFA_def_cfa R1, 0
        content += b"\x08" + uleb(_GPR + 1)  # DW_CFA_same_value R1
        out += _entry(content)
        fixups.append(Fixup(len(out) + 20, "R_CUDA_64", name))
        out += _entry(struct.pack("<QQQ", cie, 0, size))
    return bytes(out), fixups
