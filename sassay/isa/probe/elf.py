"""The instruction words in a cubin's code sections. The probe reads ELF on its own: `isa` stands below the cubin reader."""

from __future__ import annotations

import struct
from pathlib import Path


def code_words(data: bytes) -> set[int]:
    """All 128-bit words of sections named .text.*."""
    if data[:4] != b"\x7fELF":
        return set()
    table, entry, count, names = struct.unpack_from("<Q10xHHH", data, 40)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * entry) for i in range(count)]
    text = headers[names][4]
    words: set[int] = set()
    for name, _, _, _, offset, size in headers:
        start = text + name
        if data[start : start + 6] == b".text.":
            words |= {int.from_bytes(data[at : at + 16], "little") for at in range(offset, offset + size, 16)}
    return words


def words_of_files(paths: list[Path]) -> list[int]:
    words: set[int] = set()
    for path in paths:
        words |= code_words(path.read_bytes())
    return sorted(words)
