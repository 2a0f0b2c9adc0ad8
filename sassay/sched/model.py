"""A cycle model: an in-order issue simulator of one sub-core, for comparing schedules.

Modelled: stalls and yield, scoreboards with their counts, DEPBAR's partial waits, issue intervals of pipes shared by the warps, the memory
queue (four operations and a latch, then one every four cycles), one issue a cycle, greedy then oldest warp. Latencies are the typical ones
of `sassay.isa.timing`; queue figures are from silicon (Huerta et al., MICRO 2025, Ampere). Left out: caches and their misses, register bank
conflicts, instruction fetch, barriers between warps, what other sub-cores do.

The path is fixed by rule, so that two schedules of one kernel walk the same blocks: a backward branch is taken `trips` times in a row, a
forward one that can fall through does, guarded exits and returns do not leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sassay.isa.target import Target as Chip
from sassay.isa.timing import TimingClass, TimingModel, model
from sassay.sass.cfg import INDIRECT, JUMPS, LEAVES, WORD, is_conditional
from sassay.sass.model import File, Imm, Instruction, Name, Reg, Target

BOARDS = 6
QUEUE = 5
"""Memory operations that issue back to back."""
QUEUE_INTERVAL = 4
"""Cycles between memory operations once the queue is full."""
READ_LATENCY = {"stg": 14, "sts": 12, "ldg": 11, "ldl": 11, "lds": 9, "atom": 14, "ldgsts": 13, "shfl": 9}
"""Cycles until the sources of memory operations are read (Huerta et al., Ampere)."""
OTHER_READ_LATENCY = 10
DRAIN = 45
"""Cycles the draining code held a warp on silicon (Huerta et al.)."""
MAX_TRACE = 200_000


@dataclass(slots=True)
class CycleReport:
    """What one simulation gave. `cycles` until the last warp has issued its last instruction; `stalls` cycles without issue, by cause."""

    cycles: int
    issued: int
    warps: int
    stalls: dict[str, int]
    timeline: list[tuple[int, int, int]] = field(default_factory=list)
    """(cycle, warp, instruction index) of each issue, if asked for."""


def _target(instr: Instruction) -> int | None:
    return next((o.to for o in instr.operands if isinstance(o, Target) and isinstance(o.to, int)), None)


def trace(instructions: Sequence[Instruction], *, trips: int = 8, tables: Mapping[int, Sequence[int]] | None = None) -> list[int]:
    """Indices of the instructions on the rule's path. An indirect branch takes the first of its targets."""
    out: list[int] = []
    left: dict[int, int] = {}
    calls: list[int] = []
    at = 0
    while 0 <= at < len(instructions) and len(out) < MAX_TRACE:
        instr = instructions[at]
        out.append(at)
        following: int | None = at + 1
        opcode = instr.opcode
        to = _target(instr)
        if opcode == "CALL" and to is not None and "REL" in instr.modifiers:
            calls.append(at + 1)
            following = to // WORD
        elif opcode == "RET" and calls:
            following = calls.pop()
        elif opcode in LEAVES:
            following = at + 1 if is_conditional(instr) else None
        elif opcode in INDIRECT:
            targets = (tables or {}).get(at * WORD, ())
            following = targets[0] // WORD if targets else None
        elif opcode in JUMPS and to is not None:
            following = _branch(at, to // WORD, is_conditional(instr), left, trips)
        if following is None:
            break
        at = following
    return out


def _branch(at: int, to: int, conditional: bool, left: dict[int, int], trips: int) -> int | None:
    if to > at:
        return at + 1 if conditional else to
    count = left.setdefault(at, trips)
    if count > 0:
        left[at] = count - 1
        return to
    left.pop(at)
    return at + 1 if conditional else None


@dataclass(slots=True)
class _Step:
    """An instruction as the simulator needs it."""

    index: int
    cls: TimingClass
    wait: int
    write: int
    read: int
    cost: int
    partial: tuple[int, int] | None


class _Warp:
    __slots__ = ("at", "boards", "ready")

    def __init__(self) -> None:
        self.at = 0
        self.ready = 0
        self.boards: list[list[int]] = [[] for _ in range(BOARDS)]


def _steps(instructions: Sequence[Instruction], timing: TimingModel) -> list[_Step]:
    out = []
    for index, instr in enumerate(instructions):
        control = instr.control
        wait = control.wait
        partial = None
        if instr.opcode == "DEPBAR":
            board = next((o.index for o in instr.operands if isinstance(o, Reg) and o.file == File.SB), None)
            count = next((o.value for o in instr.operands if isinstance(o, Imm)), 0)
            for name in (o.text for o in instr.operands if isinstance(o, Name) and o.text.startswith("{")):
                for number in name.strip("{}").split(","):
                    wait |= 1 << int(number)
            partial = None if board is None else (board, count)
        cost = control.stall if control.stall > 1 else DRAIN if control.stall == 0 else 2 if control.yield_ else 1
        write = -1 if control.write is None else control.write
        read = -1 if control.read is None else control.read
        out.append(_Step(index, timing.classify(instr), wait, write, read, cost, partial))
    return out


class _Core:
    """One sub-core: its pipes and its memory queue."""

    def __init__(self) -> None:
        self.pipes: dict[str, int] = {}
        self.queue: list[int] = []

    def free(self, cls: TimingClass) -> int:
        """The first cycle at which the pipe takes another operation."""
        at = self.pipes.get(cls.pipe, 0)
        if cls.pipe == "mio" and len(self.queue) >= QUEUE:
            at = max(at, self.queue[-QUEUE])
        return at

    def take(self, cls: TimingClass, now: int) -> int:
        """Occupies the pipe; the cycle at which the operation leaves the queue."""
        if cls.pipe == "mio":
            leaves = max(now + 1, self.queue[-1] + QUEUE_INTERVAL if self.queue else 0)
            self.queue.append(leaves)
            del self.queue[: -2 * QUEUE]
            return leaves
        self.pipes[cls.pipe] = now + cls.issue
        return now


def _when(step: _Step, warp: _Warp, core: _Core) -> tuple[int, str]:
    """(earliest issue cycle, what holds it back)."""
    at, cause = warp.ready, "stall"
    for board in range(BOARDS):
        pending = warp.boards[board]
        if pending and step.wait >> board & 1 and max(pending) > at:
            at, cause = max(pending), "scoreboard"
    if step.partial is not None:
        board, count = step.partial
        pending = sorted(warp.boards[board])
        if len(pending) > count and pending[len(pending) - 1 - count] > at:
            at, cause = pending[len(pending) - 1 - count], "scoreboard"
    pipe = core.free(step.cls)
    if pipe > at:
        at, cause = pipe, "memory queue" if step.cls.pipe == "mio" else "pipe"
    return at, cause


def _issue(step: _Step, warp: _Warp, core: _Core, now: int) -> None:
    for board in range(BOARDS):
        if warp.boards[board]:
            warp.boards[board] = [t for t in warp.boards[board] if t > now]
    start = core.take(step.cls, now)
    if step.write >= 0:
        warp.boards[step.write].append(start + step.cls.latency)
    if step.read >= 0:
        warp.boards[step.read].append(start + READ_LATENCY.get(step.cls.name, OTHER_READ_LATENCY))
    warp.ready = now + step.cost
    warp.at += 1


def simulate(
    instructions: Sequence[Instruction],
    target: Chip | str,
    *,
    warps: int = 1,
    trips: int = 8,
    tables: Mapping[int, Sequence[int]] | None = None,
    timeline: bool = False,
) -> CycleReport:
    """Cycles of `warps` warps of one sub-core over the path of `trace`. SassError where an operation's timing is not known."""
    steps = _steps(instructions, model(target))
    path = trace(instructions, trips=trips, tables=tables)
    crew = [_Warp() for _ in range(warps)]
    core = _Core()
    stalls: Counter[str] = Counter()
    issues: list[tuple[int, int, int]] = []
    now = 0
    last = 0
    current = 0
    while True:
        alive = [w for w in range(warps) if crew[w].at < len(path)]
        if not alive:
            break
        times = {w: _when(steps[path[crew[w].at]], crew[w], core) for w in alive}
        ready = [w for w in alive if times[w][0] <= now]
        if not ready:
            soonest = min(alive, key=lambda w: (times[w][0], w))
            stalls[times[soonest][1]] += times[soonest][0] - now
            now = times[soonest][0]
            ready = [w for w in alive if times[w][0] <= now]
        current = current if current in ready else min(ready)
        step = steps[path[crew[current].at]]
        if timeline:
            issues.append((now, current, step.index))
        _issue(step, crew[current], core, now)
        last = now
        now += 1
    return CycleReport(last + 1, len(path) * warps, warps, dict(stalls), issues)
