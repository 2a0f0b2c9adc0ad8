"""The state of the CTAs that run together, and the scheduling of their lanes.

Shapes. A batch has `warps` rows of 32 lanes, all CTAs one after the other. A register holds an array that broadcasts to (warps, 32): (warps, 32),
or (warps, 1) or (1, 1) or (1,) for values that do not differ between lanes. Arrays are values: a write replaces the list entry and never changes an
array in place, so that moving a register is free and uniform code costs nothing per lane.

Scheduling. Every lane has a program counter. Lanes of the whole batch that stand at the lowest one run together as the current group until they
reach the place of others, or a control instruction parts them. That order brings diverged lanes back together; a group that keeps branching back
while others could run gives way to them, so that lanes may wait for each other. Lanes of a warp that leave a WARPSYNC with different masks stay
apart (`party`) although they stand at one place: votes and reductions that follow are each mask's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassay.emu.memory import Fault, GlobalMemory, Store
from sassay.emu.program import Program
from sassay.errors import EmulationError, Location

Array = NDArray[Any]
Step = Callable[[], None]
Transfer = Callable[[], bool]
RUNNING, EXITED, AT_BSYNC, AT_WARPSYNC, AT_BAR = range(5)
NOWHERE = 1 << 30
PATIENCE = 64
"""Backward branches of one group before others get their turn (the number is the emulator's own)."""
ZERO = np.zeros((1, 1), np.uint32)
FALSE = np.zeros((1, 1), np.bool_)


def pack(bits: Array) -> Array:
    """(warps, 32) bools as (warps, 1) masks."""
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint32)


def unpack(masks: Array) -> Array:
    """(warps, 1) masks as (warps, 32) bools."""
    flat = np.ascontiguousarray(masks.reshape(-1, 1), np.uint32)
    return np.unpackbits(flat.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


class Machine:
    """One launch's CTAs of one batch. `steps` and `transfers` are filled in by the compiler of instructions (`operations.compile_program`)."""

    def __init__(self, program: Program, grid: tuple[int, int, int], block: tuple[int, int, int], memory: GlobalMemory) -> None:
        self.program, self.grid, self.block, self.memory = program, grid, block, memory
        self.shared = Store(0)
        self.local = Store(0)
        self.banks: dict[int, Store] = {}
        self.R: list[Array] = [ZERO] * 256
        self.UR: list[Array] = [ZERO] * 256
        self.P: list[Array] = [FALSE] * 8
        self.UP: list[Array] = [FALSE] * 8
        self.B: list[Array | None] = [None] * 16
        self.special: dict[str, list[Array]] = {}
        self.steps: list[Step] = []
        self.transfers: list[Transfer | None] = []
        self.next_transfer: list[int] = []
        self.thread_edges = [0] * (len(program.instructions) + 1)
        self.warp_edges = [0] * (len(program.instructions) + 1)
        self.issued = 0
        self.now: Callable[[], Array] = lambda: np.array([[self.issued]], np.int64)
        """What the clock registers show: instructions issued so far; in timing mode each warp's cycles."""
        self.max_steps = 0
        self.new_batch: list[Callable[[], None]] = []
        """Called when a batch starts (the sanitizer's shadow state)."""
        self.barrier_passed: list[Callable[[Array, Array], None]] = []
        """Called with the masks of warps that waited at a barrier and of warps that arrived there (these include those)."""

    # --- batches ---
    def start(self, ctas: range, shared_bytes: int, local_bytes: int) -> None:
        """Sets up the CTAs of the given linear numbers, all lanes at the first instruction."""
        threads = self.block[0] * self.block[1] * self.block[2]
        self.warps_per_cta = -(-threads // 32)
        self.ctas, self.warps = ctas, len(ctas) * self.warps_per_cta
        self.shared_bytes, self.local_bytes = shared_bytes, local_bytes
        self.shared.resize(len(ctas) * shared_bytes)
        lanes = self.warps * 32
        if self.local.stride != lanes or self.local.bytes.size != lanes * local_bytes:
            self.local = Store(lanes * local_bytes, lanes)
        else:
            self.local.words.fill(0)
        for registers, nothing in ((self.R, ZERO), (self.UR, ZERO), (self.P, FALSE), (self.UP, FALSE)):
            registers[:] = [nothing] * len(registers)
        self.P[7] = self.UP[7] = np.ones((1, 1), np.bool_)
        self.B[:] = [None] * 16
        self.cta_of_warp = np.repeat(np.arange(len(ctas)), self.warps_per_cta).reshape(-1, 1)
        self.thread_of_lane = np.tile(np.arange(self.warps_per_cta * 32).reshape(-1, 32), (len(ctas), 1))
        self.lane_numbers = np.arange(lanes, dtype=np.int64)
        self.status = np.where(self.thread_of_lane < threads, RUNNING, EXITED).astype(np.uint8)
        self.live_count = int((self.status == RUNNING).sum())
        self.pcs = np.zeros((self.warps, 32), np.int32)
        self.waiting_for = np.zeros((self.warps, 32), np.uint32)
        self.collective = np.full((self.warps, 32), -1, np.int32)
        self.arrived: dict[tuple[int, int], int] = {}
        self.expected: dict[tuple[int, int], int] = {}
        self.came: dict[tuple[int, int], Array] = {}
        self.votes: dict[tuple[int, int], list[int]] = {}
        self.barrier_result = np.zeros((self.warps, 32), np.uint32)
        self.yielded: Array | None = None
        self.gave_way = np.zeros((self.warps, 32), np.int64)
        self.turn = 0
        self.party: Array | None = None
        self.spin = 0
        for hook in self.new_batch:
            hook()

    # --- the current group ---
    def set_group(self, mask: Array, pc: int, next_pc: int) -> None:
        """Makes the lanes of `mask` the current group."""
        self.mask, self.pc, self.next_pc = mask, pc, next_pc
        self.active = int(np.count_nonzero(mask))
        self.full = self.active == mask.size
        self.free = self.active == self.live_count
        self.active_warps = int(np.count_nonzero(mask.any(axis=1)))
        self.patience = PATIENCE

    def park(self, pcs: Array | int) -> None:
        """Writes the group's program counters back."""
        self.pcs = np.where(self.mask, pcs, self.pcs).astype(np.int32, copy=False)

    def location(self, index: int) -> Location:
        """Where instruction `index` stands."""
        return Location(kernel=self.program.kernel, offset=16 * index)

    def thread_name(self, lane: int) -> str:
        """A lane of the batch, by block and thread coordinates."""
        warp, bit = divmod(lane, 32)
        cta, thread = divmod(warp, self.warps_per_cta)
        thread = thread * 32 + bit
        gx, gy, _ = self.grid
        bx, by, _ = self.block
        number = self.ctas[cta]
        at = (number % gx, number // gx % gy, number // (gx * gy))
        return f"block {at} thread {(thread % bx, thread // bx % by, thread // (bx * by))}"

    def fail(self, index: int, why: str, lane: int | None = None) -> EmulationError:
        """An error at instruction `index`, in the first active lane unless another is given."""
        if lane is None:
            lane = int(self.mask.reshape(-1).argmax())
        line = self.program.lines.get(16 * index)
        source = f" ({line[0]}:{line[1]})" if line else ""
        return EmulationError(f"{why}; {self.thread_name(lane)}{source}", self.location(index))

    # --- running ---
    def run(self) -> None:
        """Runs the batch to its end."""
        while self._pick():
            self._run_group()

    def _pick(self) -> bool:
        """Chooses the next group; False when all lanes have exited."""
        runnable = self.status == RUNNING
        if self.yielded is not None:  # those who have not given way, or did so longest ago, come next
            self.turn += 1
            self.gave_way[self.yielded] = self.turn
            self.yielded = None
            if runnable.any():
                runnable = runnable & (self.gave_way == self.gave_way[runnable].min())
        if not runnable.any():
            if self.live_count:
                raise self._deadlock()
            return False
        place = np.where(runnable, self.pcs, NOWHERE)
        pc = int(place.min())
        mask = place == pc
        if self.party is not None:
            chosen = np.where(mask, self.party, 32).min(axis=1, keepdims=True)
            alone = mask & (self.party == chosen)
            if not np.array_equal(alone, mask):
                rest = place[place > pc]
                self.set_group(alone, pc, int(rest.min()) if rest.size else NOWHERE)
                return True
        rest = place[~mask]
        self.set_group(mask, pc, int(rest.min()) if rest.size else NOWHERE)
        return True

    def _deadlock(self) -> EmulationError:
        stuck = self.status > EXITED
        lane = int(stuck.reshape(-1).argmax())
        what = {AT_BSYNC: "BSYNC", AT_WARPSYNC: "WARPSYNC", AT_BAR: "barrier"}[int(self.status.reshape(-1)[lane])]
        index = int(self.pcs.reshape(-1)[lane]) - 1
        return self.fail(index, f"deadlock: {int(stuck.sum())} threads wait and none can run; the first waits at a {what}", lane)

    def _run_group(self) -> None:
        steps, transfers, stops = self.steps, self.transfers, self.next_transfer
        threads, warps = self.thread_edges, self.warp_edges
        while True:
            pc = self.pc
            if pc >= len(steps) or pc < 0:
                raise self.fail(min(max(pc, 0), len(steps) - 1), "execution runs past the end of the code")
            stop = stops[pc]
            merges = self.next_pc <= stop
            if merges:
                stop = self.next_pc
            at = pc
            try:
                for step in steps[pc:stop]:
                    step()
                    at += 1
            except Fault as fault:
                raise self.fail(at, fault.why, fault.lane) from None
            end = stop if merges else stop + 1
            threads[pc] += self.active
            threads[end] -= self.active
            warps[pc] += self.active_warps
            warps[end] -= self.active_warps
            self.issued += end - pc
            if self.issued > self.max_steps:
                raise self.fail(at, f"no end after {self.max_steps} instructions: a hang, or max_steps is too small")
            if merges:
                self.park(stop)
                return
            self.pc = stop
            transfer = transfers[stop]
            if transfer is None:
                raise self.fail(stop, "execution runs past the end of the code")
            if transfer():
                return

    def go(self, target: int) -> bool:
        """The whole group goes to `target`; True when the scheduler must choose again."""
        if target <= self.pc and self.active != self.live_count:
            self.patience -= 1
            if self.patience <= 0:
                self.park(target)
                self.yielded = self.mask
                return True
        if target >= self.next_pc:
            self.park(target)
            return True
        self.pc = target
        return False

    def split(self, taken: Array, target: Array | int) -> bool:
        """Lanes of `taken` go to `target`, the others of the group go on."""
        self.park(np.where(taken, target, self.pc + 1))
        backward = target <= self.pc if isinstance(target, int) else bool((target <= self.pc).any())
        if backward:
            self.spin += 1
            if self.spin >= PATIENCE:
                self.spin = 0
                self.yielded = self.mask
        return True

    # --- waiting ---
    def live(self) -> Array:
        """(warps, 32): lanes that have not exited."""
        living: Array = self.status != EXITED
        return living

    def check_waits(self) -> None:
        """Releases lanes whose wait is over, after something that may have ended it."""
        if (self.status == AT_BSYNC).any():
            for number in range(len(self.B)):
                self.release_bsync(number)
        if (self.status == AT_WARPSYNC).any():
            self.release_warpsync()
        if (self.status == AT_BAR).any():
            self.release_barriers()

    def release_bsync(self, number: int) -> None:
        """Lets lanes at BSYNC `number` go where all live members of their warp have come, at whatever BSYNC of that number they wait; and those
        that are members no more (a function called meanwhile has taken the register)."""
        members = self.B[number]
        waiting = (self.status == AT_BSYNC) & (self.waiting_for == number)
        if members is None:
            released = waiting
        else:
            live = members & self.live()
            complete = ~(live & ~waiting).any(axis=1, keepdims=True)
            released = waiting & (~members | complete)
        if released.any():
            self.status[released] = RUNNING
            self.gather(released)
            if members is not None:
                left = members & ~released & self.live()
                self.B[number] = left if left.any() else None

    def release_warpsync(self) -> None:
        """Lets lanes at WARPSYNC go when every live lane of their mask waits there too."""
        waiting = self.status == AT_WARPSYNC
        missing = pack(self.live() & ~waiting)
        released = waiting & ((self.waiting_for & missing) == 0)
        if not released.any():
            return
        self.status[released] = RUNNING
        self.part(released)
        together = released & (self.collective >= 0)
        if together.any():  # a collective region runs once for all: everyone enters by the last door
            place = np.where(together, self.pcs, -1).max(axis=1, keepdims=True)
            self.pcs = np.where(together, place, self.pcs).astype(np.int32)

    def part(self, released: Array) -> None:
        """Lanes that leave a WARPSYNC go on with those of the same mask only, until they meet others at a barrier of any kind."""
        masks = np.where(released, self.waiting_for, 0)
        mixed = (masks != masks.max(axis=1, keepdims=True)) & released
        if not mixed.any() and self.party is None:
            return
        lowest = np.bitwise_count((masks & (~masks + np.uint32(1))) - np.uint32(1))
        party = self.party if self.party is not None else np.zeros((self.warps, 32), np.int64)
        apart = mixed.any(axis=1, keepdims=True) | ((pack(self.live()) & ~masks) != 0)
        party = np.where(released, np.where(apart, lowest + 1, 0), party)
        self.party = party if party.any() else None

    def gather(self, released: Array) -> None:
        """Lanes that leave BSYNC or a CTA barrier belong together again."""
        if self.party is not None:
            party = np.where(released, 0, self.party)
            self.party = party if party.any() else None

    def release_barriers(self) -> None:
        """Lets threads at a CTA barrier go when as many have come as it expects."""
        for cta, number in list(self.arrived):
            rows = slice(cta * self.warps_per_cta, (cta + 1) * self.warps_per_cta)
            count = self.arrived[cta, number]
            status, waiting_for = self.status[rows], self.waiting_for[rows]
            waiting = (status == AT_BAR) & (waiting_for == number)
            expected = self.expected[cta, number]
            if expected == 0:
                complete = count >= int((status != EXITED).sum())
            else:
                there = waiting.any(axis=1, keepdims=True)
                complete = count + int(((status == EXITED) & there).sum()) >= expected
            if complete and count:
                status[waiting] = RUNNING
                if self.party is not None:
                    released = np.zeros((self.warps, 32), np.bool_)
                    released[rows] = waiting
                    self.gather(released)
                del self.arrived[cta, number], self.expected[cta, number]
                votes = self.votes.pop((cta, number), None)
                if votes is not None:
                    self.barrier_result[rows] = np.where(waiting, votes[0], self.barrier_result[rows])
                passed = np.zeros(self.warps, np.bool_)
                passed[rows] = waiting.any(axis=1)
                came = self.came.pop((cta, number)) | passed
                for hook in self.barrier_passed:
                    hook(passed, came)
