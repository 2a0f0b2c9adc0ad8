"""What a launch does wrong without stopping: reads of registers and shared memory never written, races on shared memory.

Registers: a shadow entry per register says in which lanes it has been written. Shared memory: per byte, who wrote it last and who read it last
(warp and that warp's barrier epoch); two accesses of different warps race when one writes, they are not both atomic, and no barrier that both
warps passed lies between (vector clocks over the warps of a CTA). Lanes of one warp are taken to be ordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sassay.emu.machine import Array, Machine, Step
from sassay.emu.values import fetch_of, guard_of, spread
from sassay.errors import SassError
from sassay.isa.semantics.numpy_algebra import NUMPY
from sassay.sass.effects import effects
from sassay.sass.meaning import compile_instruction
from sassay.sass.model import File, Instruction, Reg

LIMIT = 100
"""Findings kept; each place in the code and each kind is reported once."""
SPIN_REACH = 32
"""How many instructions before an ATOMS.CAST its load is looked for."""
Shadow = list[Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: `kind` is "uninitialised register", "uninitialised shared", "shared race", or "unwatched" (an instruction
    whose registers are not known to the sanitizer); `thread` by block and thread coordinates."""

    kind: str
    kernel: str
    offset: int
    thread: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kernel}+{self.offset:#x}: {self.kind}: {self.detail}; {self.thread}"


class Sanitizer:
    """Watches one launch."""

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self.findings: list[Finding] = []
        self.seen: set[tuple[str, int]] = set()
        self.index = 0
        self.spins: set[int] = set()
        self.written: dict[File, Shadow] = {f: [False] * 256 for f in (File.R, File.UR, File.P, File.UP)}
        machine.new_batch.append(self.new_batch)
        machine.barrier_passed.append(self.barrier)

    def report(self, kind: str, index: int, lane: int, detail: str) -> None:
        """Adds a finding unless this place has one of this kind."""
        if (kind, index) in self.seen or len(self.findings) >= LIMIT:
            return
        self.seen.add((kind, index))
        self.findings.append(Finding(kind, self.m.program.kernel, 16 * index, self.m.thread_name(lane), detail))

    def watch_program(self, instructions: Sequence[Instruction]) -> None:
        """Finds the loads of compare-and-swap loops (ATOMS.CAST of what LDS gave): they are part of an atomic and race with plain writes only."""
        for at, instr in enumerate(instructions):
            if "CAST" not in instr.modifiers:
                continue
            compare = next((o for o in instr.operands[2:] if isinstance(o, Reg)), None)
            for back in range(at - 1, max(at - SPIN_REACH, -1), -1):
                load = instructions[back]
                if load.opcode == "LDS" and load.operands[0] == compare:
                    self.spins.add(back)
                    break

    def new_batch(self) -> None:
        """Fresh shadow state."""
        m = self.m
        for shadow in self.written.values():
            shadow[:] = [False] * len(shadow)
        size = m.shared.bytes.size
        self.shared_written = np.zeros(size, np.bool_)
        self.writer = np.full(size, -1, np.int32)
        self.writer_clock = np.zeros(size, np.int32)
        self.writer_atomic = np.zeros(size, np.bool_)
        self.reader = np.full(size, -1, np.int32)
        self.reader_clock = np.zeros(size, np.int32)
        n = m.warps_per_cta
        self.clocks = np.zeros((m.warps, n), np.int32)
        self.clocks[np.arange(m.warps), np.arange(m.warps) % n] = 1

    # --- registers ---
    def guarded(self, index: int, instr: Instruction, step: Step) -> Step:
        """The step, preceded by a look at the registers it reads and followed by a note of those it writes."""
        try:
            effect = effects(instr)
        except SassError as error:
            message = error.message

            def unwatched() -> None:
                self.index = index
                self.report("unwatched", index, int(self.m.mask.reshape(-1).argmax()), message)
                step()

            return unwatched
        uses = [(self.written[f], f, first + k) for f, first, width in effect.uses if f in self.written for k in range(width)]
        if instr.opcode == "STL":  # a callee saves its caller's registers, written or not
            data = instr.operands[-1]
            uses = [u for u in uses if not (isinstance(data, Reg) and u[1] is data.file and 0 <= u[2] - data.index < 4)]
        merged = instr.operands[0] if instr.operands else None
        if instr.opcode == "PRMT" and isinstance(merged, Reg):  # part of a register is replaced: its rest may be anything
            uses = [u for u in uses if (u[1], u[2]) != (merged.file, merged.index)]
        defs = [(self.written[f], first + k) for f, first, width in effect.defs if f in self.written for k in range(width)]
        if instr.opcode == "SHFL":
            return self._shuffled(index, instr, step, uses, defs)
        guard = guard_of(self.m, instr.guard)
        m = self.m
        if not uses and not defs:
            return step

        def watched() -> None:
            self.index = index
            for shadow, file, register in uses:
                if shadow[register] is not True:
                    self._check(index, shadow[register], file, register, guard)
            step()
            for shadow, register in defs:
                if shadow[register] is not True:
                    if guard is None and m.free:
                        shadow[register] = True
                    else:
                        mask = m.mask if guard is None else m.mask & guard()
                        shadow[register] = mask if shadow[register] is False else shadow[register] | mask

        return watched

    def _shuffled(self, index: int, instr: Instruction, step: Step, uses: list[Any], defs: list[Any]) -> Step:
        """SHFL reads one lane's value: that one must have been written, so the shadow travels with the value."""
        m = self.m
        compiled = compile_instruction(instr, NUMPY)
        data = next((o for o in instr.operands[2:3] if isinstance(o, Reg) and not o.is_zero), None)
        if data is None or not compiled.reads or compiled.reads[0].operand != 2:
            return step
        others = [u for u in uses if (u[1], u[2]) != (data.file, data.index)]
        fetches = [fetch_of(m, instr, access) for access in compiled.reads]
        source, guard = self.written[data.file], guard_of(m, instr.guard)
        place = next((k for k, a in enumerate(compiled.writes) if a.operand == 1), None)

        def watched() -> None:
            self.index = index
            for shadow, file, register in others:
                if shadow[register] is not True:
                    self._check(index, shadow[register], file, register, guard)
            state = source[data.index]
            mask = m.mask if guard is None else m.mask & guard()
            came: Any = True
            if state is not True and place is not None:
                values = [registers[at] for registers, at in (f if isinstance(f, tuple) else ([f()], 0) for f in fetches)]
                told = np.broadcast_to(np.asarray(state), (m.warps, 32)).astype(np.uint32)
                came = compiled.run(mask, told, *(spread(m, v) for v in values[1:]))[place] != 0
            step()
            for shadow, register in defs:
                if shadow[register] is True and came is True:
                    continue
                old = np.broadcast_to(np.asarray(shadow[register]), (m.warps, 32))
                is_result = shadow is self.written[File.R]
                shadow[register] = np.where(mask, came if is_result else True, old)

        return watched

    def _check(self, index: int, state: Any, file: File, register: int, guard: Any) -> None:
        mask = self.m.mask if guard is None else self.m.mask & guard()
        if file in (File.UR, File.UP) and state is not False:
            state = state.any(axis=1, keepdims=True)
        bad = mask if state is False else mask & ~state
        if bad.any():
            self.report("uninitialised register", index, int(bad.reshape(-1).argmax()), f"{file.name}{register} is read before it is written")

    # --- shared memory ---
    def barrier(self, waited: Array, came: Array) -> None:
        """Warps that waited at a barrier know the past of all that came there."""
        n = self.m.warps_per_cta
        for cta in range(len(self.m.ctas)):
            rows = np.flatnonzero(waited[cta * n : (cta + 1) * n]) + cta * n
            everyone = np.flatnonzero(came[cta * n : (cta + 1) * n]) + cta * n
            if everyone.size:
                self.clocks[rows] = self.clocks[everyone].max(axis=0)
                self.clocks[everyone, everyone % n] += 1

    def watch(self, space: str, how: str, positions: Array, lanes: Array, size: int) -> None:
        """An access to shared memory."""
        if space != "shared" or not positions.size:
            return
        at = (positions[:, None] + np.arange(0, size, min(size, 4))).reshape(-1)
        who = np.repeat(lanes, at.size // lanes.size)
        warp = who >> 5
        clock = self.clocks[warp, warp % self.m.warps_per_cta]
        index = self.index
        if how != "write":
            bad = ~self.shared_written[at]
            if bad.any():
                lane = int(bad.argmax())
                self.report("uninitialised shared", index, int(who[lane]), f"byte {self._offset(at[lane])} is read before it is written")
        spins = index in self.spins
        self._race(at, who, warp, self.writer, self.writer_clock, self.writer_atomic if how == "atomic" or spins else None, "written")
        if how != "read":
            self._race(at, who, warp, self.reader, self.reader_clock, None, "read")
            self.shared_written[at] = True
            if size < 4:
                self.shared_written[at + (size - 1)] = True
            else:
                for k in range(1, 4):
                    self.shared_written[at + k] = True
            self.writer[at], self.writer_clock[at], self.writer_atomic[at] = warp, clock, how == "atomic"
        if how == "read" and not spins:
            self.reader[at], self.reader_clock[at] = warp, clock

    def _offset(self, position: Any) -> str:
        return f"{int(position) % self.m.shared_bytes:#x}"

    def _race(self, at: Array, who: Array, warp: Array, other: Array, clock: Array, atomic: Array | None, verb: str) -> None:
        before = other[at]
        bad = (before >= 0) & (before != warp)
        if not bad.any():
            return
        known = self.clocks[warp, np.maximum(before, 0) % self.m.warps_per_cta]
        bad &= known < clock[at]
        if atomic is not None:
            bad &= ~atomic[at]
        if bad.any():
            lane = int(bad.argmax())
            detail = f"byte {self._offset(at[lane])} was {verb} by warp {int(before[lane]) % self.m.warps_per_cta} with no barrier between"
            self.report("shared race", self.index, int(who[lane]), detail)
