"""Runs straight-line SASS on one lane: the smallest interpreter over the semantics, for comparing ptxas's code with ptxas's constant folding."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from pathlib import Path

from support import oracle

from sassay.isa.semantics.numpy_algebra import NUMPY, evaluate
from sassay.sass.meaning import Access, MemoryOp, compile_instruction, event_of, kind_of
from sassay.sass.model import Const, File, Instruction, Mem, Reg
from sassay.sass.text import parse_instruction


class Branches(Exception):
    """The code is not straight."""


class Lane:
    """Register values by (file, index), constant bank 0, and the words stored, by the store's immediate offset."""

    def __init__(self, bank: bytes) -> None:
        self.registers: dict[tuple[File, int], int] = {}
        self.bank = bank
        self.stored: dict[int, int] = {}
        self.cells: set[str] = set()
        self.computed: list[str] = []

    def read(self, instr: Instruction, access: Access) -> int:
        operand = instr.operands[access.operand]
        if isinstance(operand, Const):
            start = operand.offset + 4 * access.part
            return int.from_bytes(self.bank[start : start + access.width // 8], "little")
        assert isinstance(operand, Reg), operand
        if access.width == 1:
            return self.registers.get((operand.file, operand.index), 0)
        if operand.is_zero:
            return 0
        count = access.width // 32
        first = operand.index + access.part * count
        return sum(self.registers.get((operand.file, first + i), 0) << 32 * i for i in range(count))

    def write(self, instr: Instruction, access: Access, value: int) -> None:
        operand = instr.operands[access.operand]
        assert isinstance(operand, Reg), operand
        if access.width == 1:
            self.registers[operand.file, operand.index] = value
            return
        count = access.width // 32
        first = operand.index + access.part * count
        for i in range(count):
            self.registers[operand.file, first + i] = value >> 32 * i & 0xFFFFFFFF

    def step(self, instr: Instruction) -> bool:
        """Execute one instruction; false at the end."""
        guard = instr.guard
        if not guard.is_zero and bool(self.registers.get((guard.file, guard.index), 0)) == guard.invert:
            return True
        if guard.is_zero and guard.invert:
            return True
        if instr.opcode == "EXIT":
            return False
        if instr.opcode in ("NOP", "S2R", "S2UR"):
            return True
        kind = kind_of(instr)
        if kind == "value":
            c = compile_instruction(instr, NUMPY)
            if c.lanes and instr.opcode != "R2UR":
                raise Branches(instr.mnemonic)
            values = [self.read(instr, a) for a in c.reads]
            if c.lanes:
                results: tuple[int, ...] = (values[0],)
            else:
                results = evaluate(c.run, values, [a.width for a in c.reads])
            for access, value in zip(c.writes, results, strict=True):
                self.write(instr, access, value)
            self.cells.update(c.cells)
            if c.reads and instr.opcode not in ("MOV", "UMOV", "LDC", "LDCU", "ULDC", "CS2R", "R2UR") and "MOV" not in instr.modifiers:
                self.computed.append(instr.mnemonic)
            return True
        event = event_of(instr)
        if not isinstance(event, MemoryOp) or event.action != "store":
            raise Branches(instr.mnemonic)
        memory = instr.operands[event.address]
        assert isinstance(memory, Mem)
        for i, access in enumerate(event.data):
            self.stored[memory.offset + 4 * i] = self.read(instr, access) & ((1 << 8 * event.size) - 1)
        return True


def run(code: Iterable[Instruction], bank: bytes) -> Lane:
    """The lane after the code."""
    lane = Lane(bank)
    for instr in code:
        if not lane.step(instr):
            return lane
    return lane


def listing(cubin: bytes, directory: Path) -> dict[str, list[Instruction]]:
    """The functions of a cubin by nvdisasm's text, without control codes, in one call."""
    path = directory / "code.cubin"
    path.write_bytes(cubin)
    done = oracle.run_tool("nvdisasm", "-c", str(path))
    assert done.returncode == 0, done.stderr
    code: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in done.stdout.splitlines():
        if line.startswith(".text."):
            current = code.setdefault(line[6:].rstrip(":"), [])
        elif (found := re.search(r"/\*[0-9a-f]{4,}\*/\s+([^;]*;)", line)) is not None:
            current.append(parse_instruction(found[1].split("(*")[0].rstrip("; ") + " ;"))
    return code


def parameters(base: int, values: Iterable[int]) -> bytes:
    """Constant bank 0 with 64-bit parameters from `base` on."""
    return bytes(base) + b"".join(struct.pack("<Q", v) for v in values) + bytes(64)
