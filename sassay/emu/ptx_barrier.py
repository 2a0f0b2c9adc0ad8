"""CTA barriers of the PTX interpreter: bar and barrier with counts, arrivals and reductions, and the barrier of a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sassay.emu.ptx_access import Array, dtype
from sassay.errors import EmulationError, UnsupportedError
from sassay.ptx.ast import Instruction, RegOperand, SinkOperand
from sassay.ptx.semantics.events import BarrierEvent

if TYPE_CHECKING:
    from sassay.emu.ptx_cta import Cta

WARP = 32
DONE = 1 << 30
WARP_BARRIER = 16
"""Number in `Barriers.number` of lanes that wait at bar.warp.sync."""


class Barriers:
    """Which lanes wait at which barrier. `waiting` marks them; `arrived`, by barrier, also those that went on after bar.arrive."""

    def __init__(self, cta: Cta) -> None:
        self.cta = cta
        n = cta.lanes
        self.waiting, self.arrived = np.zeros(n, bool), np.zeros((16, n), bool)
        self.number = np.full(n, -1)
        self.count = np.zeros(16, np.int64)
        self.vote = np.zeros(n, bool)
        self.members = np.zeros(n, np.uint32)
        self.at: dict[int, tuple[BarrierEvent, Instruction]] = {}

    def arrive(self, event: BarrierEvent, instruction: Instruction, here: int, mask: Array) -> bool:
        """Lanes `mask` reach a barrier; whether they stop there (or went on already, released)."""
        words = event.name.split(".")
        if words[0] in ("fence", "membar") or not mask.any():
            return False
        if words[0] == "griddepcontrol" or "cluster" in words:
            raise UnsupportedError(f"'{event.name}'", instruction.location)
        cta = self.cta
        if "warp" in words:
            self.members[mask] = cta.operand(event.operands[0], 32, mask)
            self.number[mask] = WARP_BARRIER
            self.waiting |= mask
            cta.place[mask] = here
            self._settle_warps()
            return True
        numbers = cta.operand(event.operands[0], 32, mask).astype(np.int64)
        if (numbers > 15).any():
            raise EmulationError(f"{instruction.location}: barrier number {int(numbers.max())}")
        counts = event.operands[1:2] if event.target is None or len(event.operands) == 3 else ()
        wanted = cta.operand(counts[0], 32, mask).astype(np.int64) if counts else np.zeros(numbers.size, np.int64)
        lanes = np.flatnonzero(mask)
        for number in np.unique(numbers):
            here_too = lanes[numbers == number]
            if self.arrived[number, here_too].any():
                raise EmulationError(f"{instruction.location}: threads come to barrier {number} again before it is complete")
            self.arrived[number, here_too] = True
            self.count[number] = wanted[numbers == number].max()
        if event.target is not None:
            self.vote[mask] = cta.operand(event.operands[-1], 1, mask)
        if "arrive" in words:
            cta.place[mask] = here + 1
        else:
            self.at[here] = (event, instruction)
            self.number[mask] = numbers
            self.waiting |= mask
            cta.place[mask] = here
        for number in np.unique(numbers):
            self._complete(int(number))
        return True

    def settle(self) -> bool:
        """Release what can be released now that other lanes have ended; whether any lane was."""
        before = int(self.waiting.sum())
        self._settle_warps()
        for number in np.flatnonzero(self.arrived.any(1)):
            self._complete(int(number))
        return int(self.waiting.sum()) != before

    def describe(self) -> str:
        lane = int(self.waiting.argmax())
        step = self.cta.program.steps[int(self.cta.place[lane])]
        number = int(self.number[lane])
        came = int(self.arrived[number].sum()) if number < WARP_BARRIER else int((self.number == number).sum())
        return f"{step.instruction.location}: {step.instruction.mnemonic}, {came} threads arrived"

    def _complete(self, number: int) -> None:
        """Release a barrier's lanes once enough have come. Lanes that a warp lacks or that have ended count with those of their warp."""
        cta = self.cta
        came = self.arrived[number].copy()
        if not came.any():
            return
        live = (cta.place < DONE).reshape(-1, WARP)
        rows = came.reshape(-1, WARP)
        total = int((rows | (~live & rows.any(1, keepdims=True))).sum())
        wanted = int(self.count[number]) or int(live.any(1).sum()) * WARP
        if total < wanted:
            return
        waiting = came & self.waiting & (self.number == number)
        for here in np.unique(cta.place[waiting]):
            event, _ = self.at[int(here)]
            if event.target is not None:
                self._reduce(event, came, waiting & (cta.place == here))
        cta.place[waiting] += 1
        self.waiting[waiting] = False
        self.arrived[number] = False
        self.number[waiting] = -1

    def _reduce(self, event: BarrierEvent, came: Array, lanes: Array) -> None:
        words = event.name.split(".")
        votes = self.vote[came]
        value = int(votes.sum()) if "popc" in words else int(votes.all()) if "and" in words else int(votes.any())
        if isinstance(event.target, RegOperand):
            register = event.target.register
            current = self.cta.frame
            for depth in np.unique(self.cta.depth[lanes]):
                self.cta.frame = self.cta.frames[int(depth)]
                self.cta.write(register, np.array([value], dtype(register.bits)), lanes & (self.cta.depth == depth))
            self.cta.frame = current
        elif not isinstance(event.target, SinkOperand):
            raise UnsupportedError(f"destination of '{event.name}'")

    def _settle_warps(self) -> None:
        """A warp barrier opens when all live members wait at one."""
        cta = self.cta
        here = (self.waiting & (self.number == WARP_BARRIER)).reshape(-1, WARP)
        live = (cta.place < DONE).reshape(-1, WARP)
        for warp in np.flatnonzero(here.any(1)):
            bits = int(self.members[warp * WARP + int(here[warp].argmax())])
            members = (bits >> np.arange(WARP) & 1).astype(bool)
            if (here[warp] | ~live[warp] | ~members).all():
                lanes = warp * WARP + np.flatnonzero(here[warp] & members)
                cta.place[lanes] += 1
                self.waiting[lanes] = False
                self.number[lanes] = -1
