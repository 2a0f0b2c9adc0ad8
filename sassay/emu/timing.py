"""Timing mode: control codes count, as they do on silicon.

A fixed-latency result can be read only when its latency has passed, a variable-latency one only after a wait for its scoreboard (its own, or one
that a later operation of the same in-order group took). Who reads earlier gets the old value, and a finding says so. Time is counted per warp, from
stall counts alone: a wait for a scoreboard or for another warp takes no time, so no result is seen early by luck. Figures are the accusing ones
of `isa.timing`. Not modelled: late reads of sources (write after read) and writes that overtake each other (write after write).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sassay.emu.machine import Array, Machine
from sassay.emu.sanitizer import LIMIT, Finding
from sassay.emu.values import Fetch, file_of, guard_of
from sassay.errors import SassError
from sassay.isa.timing import SB_VISIBLE
from sassay.isa.timing.model import TimingClass, TimingModel
from sassay.sass.effects import effects
from sassay.sass.model import Const, Control, File, Imm, Instruction, Mem, Name, Reg

Key = tuple[File, int]
Swap = tuple[list[Array], int, Array, Array]
"""Registers, index, the old value put there, and the new one to put back."""
SETTLED = 64
"""Cycles after which every fixed-latency result is there (the largest figure of the tables is below 40)."""


@dataclass(slots=True, eq=False)
class Pending:
    """A register write on its way. `open`: (warps, 1), where no wait has been seen yet; `lanes`: who wrote; `old`: the value before."""

    index: int
    cls: TimingClass
    part: str
    time: Array
    open: Array
    lanes: Array
    old: Array


@dataclass(frozen=True, slots=True)
class Use:
    """A register read: where it lives, and its role in the tables' words."""

    file: File
    index: int
    role: str


def issue_distance(control: Control) -> int:
    """Cycles until the warp's next instruction. Sources as in `facts`: without yield a stall above 11 holds the warp one cycle only; 0 drains."""
    if control.stall:
        return 1 if control.stall > 11 and not control.yield_ else control.stall
    return 2 if control.yield_ else 1


class Timing:
    """Watches one launch's registers and scoreboards."""

    def __init__(self, machine: Machine, tables: TimingModel) -> None:
        self.m, self.tables = machine, tables
        self.findings: list[Finding] = []
        self.seen: set[tuple[int, int]] = set()
        machine.new_batch.append(self.new_batch)
        machine.now = lambda: self.clock

    def new_batch(self) -> None:
        """Nothing is on its way."""
        self.clock = np.zeros((self.m.warps, 1), np.int64)
        self.pending: dict[Key, Pending] = {}
        self.boards: list[list[list[Pending]]] = [[] for _ in range(6)]
        self.groups: dict[int, list[Pending]] = {}

    def wrap(self, index: int, instr: Instruction, action: Callable[[], Any]) -> Callable[[], Any]:
        """The step or transfer, reading registers as they are at its time of issue."""
        try:
            cls, effect = self.tables.classify(instr), effects(instr)
        except SassError as error:
            return self._untimed(index, error.message)
        control = instr.control
        placed = zip(effect.uses, effect.use_positions, strict=True)
        uses = [Use(f, first + k, self._role(instr, at, k)) for (f, first, width), at in placed if f <= File.UP for k in range(width)]
        defs = [(f, first + k, self._part(cls, f, k)) for f, first, width in effect.defs if f <= File.UP for k in range(width)]
        guard = guard_of(self.m, instr.guard)
        boards, partial = waits(instr)
        distance = issue_distance(control)
        m = self.m

        def timed() -> Any:
            rows: Array = np.atleast_2d(m.mask.any(axis=1, keepdims=True))
            for board in boards:
                self._wait(board, 0, rows)
            if partial is not None:
                self._wait(partial[0], partial[1], rows)
            mask = m.mask
            swapped = self._old_values(index, cls, uses, guard, rows) if self.pending else []
            lanes = mask if guard is None or not defs else mask & guard()
            before = [file_of(m, f)[i] for f, i, _ in defs]
            result = action()
            for registers, i, stale, fresh in swapped:
                registers[i] = fresh if registers[i] is stale else np.where(lanes, registers[i], fresh)
            if defs or control.write is not None:
                self._issue(index, cls, defs, before, lanes, rows, control)
            self.clock = self.clock + distance * rows
            return result

        return timed

    def _untimed(self, index: int, why: str) -> Callable[[], Any]:
        """An instruction without figures fails when it is reached."""

        def fail() -> Any:
            raise self.m.fail(index, f"timing mode cannot follow this instruction: {why}")

        return fail

    def _role(self, instr: Instruction, position: int, part: int) -> str:
        if position < 0:
            return "guard"
        operand = instr.operands[position]
        if isinstance(operand, Mem):
            return "address"
        if isinstance(operand, Const):
            return "bank"
        role = self.tables.role(instr, position) if instr.opcode == "IMAD" else "operand"
        return "addend_hi" if role == "addend" and part else role

    @staticmethod
    def _part(cls: TimingClass, file: File, part: int) -> str:
        return ("hi" if part else "lo") if cls.name == "wide" and file == File.R else ""

    def _old_values(self, index: int, cls: TimingClass, uses: list[Use], guard: Fetch | None, rows: Array) -> list[Swap]:
        """Puts the old value in place of every one that is read too early; gives what to put back."""
        swapped: list[Swap] = []
        for use in uses:
            found = self.pending.get((use.file, use.index))
            if found is None:
                continue
            late = self._late(found, cls, use) & rows
            if not late.any():
                continue
            active = self.m.mask if guard is None or use.role == "guard" else self.m.mask & guard()
            lanes = active & found.lanes & late
            if lanes.any():
                self._report(index, found, use, lanes)
                registers = file_of(self.m, use.file)
                fresh = registers[use.index]
                registers[use.index] = np.where(late, found.old, fresh)
                swapped.append((registers, use.index, registers[use.index], fresh))
        return swapped

    def _late(self, found: Pending, cls: TimingClass, use: Use) -> Array:
        if found.cls.write_sb:
            if not found.open.any():
                del self.pending[use.file, use.index]
            return found.open
        name = f"{found.cls.name}.{found.part}" if found.part else found.cls.name
        needed = self.tables.cell("raw", name, cls.name, int(use.file), use.role)[1]
        passed = self.clock - found.time
        if int(passed.min()) >= SETTLED:
            del self.pending[use.file, use.index]
        late: Array = passed < needed
        return late

    def _report(self, index: int, found: Pending, use: Use, lanes: Array) -> None:
        if (index, found.index) in self.seen or len(self.findings) >= LIMIT:
            return
        self.seen.add((index, found.index))
        lane = int(lanes.reshape(-1).argmax())
        what = "no scoreboard wait has been seen" if found.cls.write_sb else f"only {int((self.clock - found.time)[lane >> 5, 0])} cycles have passed"
        detail = f"{use.file.name}{use.index} of {self.m.program.kernel}+{16 * found.index:#x} is read too early: {what}"
        self.findings.append(Finding("stale read", self.m.program.kernel, 16 * index, self.m.thread_name(lane), detail))

    def _issue(
        self, index: int, cls: TimingClass, defs: list[tuple[File, int, str]], before: list[Array], lanes: Array, rows: Array, control: Control
    ) -> None:
        new: list[Pending] = []
        for (file, register, part), old in zip(defs, before, strict=True):
            reach = rows if file in (File.UR, File.UP) else lanes
            time = np.where(rows, self.clock, -SETTLED)
            entry = Pending(index, cls, part, time, rows, reach, old)
            self.pending[file, register] = entry
            new.append(entry)
        if not cls.write_sb:
            return
        if cls.ordered_writes >= 0:
            group = [e for e in self.groups.get(cls.ordered_writes, []) if e.open.any()] + new
            self.groups[cls.ordered_writes] = group
            new = group
        if control.write is not None:
            self.boards[control.write].append(list(new))

    def _wait(self, board: int, left: int, rows: Array) -> None:
        """Warps of `rows` see all but the last `left` increments of a scoreboard go down, if they have been up long enough to be seen."""
        increments = self.boards[board]
        done = increments[: len(increments) - left] if left else increments
        for increment in done:
            if increment:
                seen = rows & (self.clock - increment[-1].time >= SB_VISIBLE)
                for entry in increment:
                    entry.open = entry.open & ~seen
        self.boards[board] = [i for i in increments if any(e.open.any() for e in i)]


def waits(instr: Instruction) -> tuple[list[int], tuple[int, int] | None]:
    """Scoreboards that an instruction waits for until they are zero, and for DEPBAR.LE (scoreboard, count that may be left)."""
    boards = [k for k in range(6) if instr.control.wait >> k & 1]
    if instr.opcode != "DEPBAR":
        return boards, None
    partial: tuple[int, int] | None = None
    for position, operand in enumerate(instr.operands):
        if isinstance(operand, Reg) and operand.file is File.SB:
            count = instr.operands[position + 1] if position + 1 < len(instr.operands) else None
            partial = (operand.index, count.value if isinstance(count, Imm) else 0)
        elif isinstance(operand, Name):
            boards += [int(word) for word in operand.text.strip("{}").split(",") if word.strip().isdigit()]
    return boards, partial
