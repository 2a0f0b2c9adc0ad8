"""nvdisasm's -plr listing: which registers each instruction writes and reads, in columns beside the text."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator

from support import oracle

from sassay.sass.model import File, Instruction
from sassay.sass.text import parse_instruction

_FILES = {"GPR": File.R, "PRED": File.P, "UGPR": File.UR, "UPRED": File.UP}
_FIRST = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?);?\s+/\* 0x[0-9a-f]{16} \*/")
_SECOND = re.compile(r"^\s+/\* 0x[0-9a-f]{16} \*/")
Registers = set[tuple[File, int]]


def _columns(line: str) -> list[tuple[int, int, int, int]]:
    """(start, end, group, register) of each number in a heading."""
    out = []
    group = -1
    for found in re.finditer(r"\||#|\d+", line):
        if found.group() == "|":
            group += 1
        elif found.group() != "#":
            out.append((found.start(), found.end(), group, int(found.group())))
    return out


def listing(cubin: bytes) -> Iterator[tuple[Instruction, Registers, Registers]]:
    """(instruction, registers written, registers read) of every instruction of a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = oracle.run_tool("nvdisasm", "-plr", "-hex", "-c", file.name)
    assert done.returncode == 0, done.stderr
    names: list[str] = []
    columns: list[tuple[int, int, int, int]] = []
    text = None
    for line in done.stdout.splitlines():
        code, mark, marks = line.partition("// ")
        if mark and "#" in marks:
            columns = _columns(marks)
        elif mark and re.search(r"GPR|PRED", marks):
            names = re.findall(r"[A-Z]+", marks)
        first = _FIRST.match(code)
        if first:
            text = re.sub(r"\(\*.*?\*\)", "", first.group(1))
            text = re.sub(r"\b32@(lo|hi)\(.*?\)+(?=[ ,]|$)", "0x0", text)  # an address that the linker fills in
        elif text is not None and mark and _SECOND.match(code):
            written: Registers = set()
            read: Registers = set()
            for start, end, group, number in columns:
                sign = marks[start:end].strip()
                if sign in ("^", "x"):
                    written.add((_FILES[names[group]], number))
                if sign in ("v", "x"):
                    read.add((_FILES[names[group]], number))
            yield parse_instruction(text), written, read
            text = None
