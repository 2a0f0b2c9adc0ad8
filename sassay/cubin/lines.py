"""Line tables (DWARF 2) of built kernels: which source line each instruction came from."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from sassay.cubin.frames import sleb, uleb
from sassay.cubin.model import Fixup

_OPCODE_BASE = 10
_LINE_BASE, _LINE_RANGE = -1, 4
_STANDARD_LENGTHS = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))


@dataclass(frozen=True, slots=True)
class LineRow:
    """From the code offset on, instructions belong to `line` of file number `file` (from 1)."""

    offset: int
    file: int
    line: int


def debug_line(files: Sequence[str], functions: Sequence[tuple[str, int, Sequence[LineRow]]]) -> tuple[bytes, list[Fixup]]:
    """.debug_line for (name, code bytes, rows in order of offset) functions, and its relocations."""
    tables = struct.pack("<BBbBB", 1, 1, _LINE_BASE, _LINE_RANGE, _OPCODE_BASE) + _STANDARD_LENGTHS + b"\0"
    for path in files:
        tables += path.encode() + b"\0" + uleb(0) + uleb(0) + uleb(0)
    tables += b"\0"
    program = bytearray()
    fixups = []
    start = 4 + 2 + 4 + len(tables)
    for name, size, rows in functions:
        if not rows:
            continue
        program += b"\0" + uleb(9) + b"\x02"
        fixups.append(Fixup(start + len(program), "R_CUDA_64", name))
        program += bytes(8)
        address, file, line = 0, 1, 1
        for row in rows:
            if row.file != file:
                program += b"\x04" + uleb(row.file)
            if row.line != line:
                program += b"\x03" + sleb(row.line - line)
            if row.offset != address:
                program += b"\x02" + uleb(row.offset - address)
            program += b"\x01"
            address, file, line = row.offset, row.file, row.line
        program += b"\x02" + uleb(size - address) + b"\0\x01\x01"
    body = struct.pack("<HI", 2, len(tables)) + tables + bytes(program)
    return struct.pack("<I", len(body)) + body, fixups
