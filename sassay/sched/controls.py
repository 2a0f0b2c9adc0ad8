"""Control codes of code in its final order: scoreboards, waits and stalls that hold over the whole flow graph.

Scoreboards are given out in one sweep. Then data flow runs to a fixed point: which registers are written or read by operations in flight, how many
cycles ago, and which scoreboards guard what, at the start of every block. States only grow (ages only shrink), so the fixed point is reached and
covers every path. Waits and stalls follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sassay.isa.timing import SB_VISIBLE, TimingClass, TimingModel
from sassay.sass.effects import Effects, effects
from sassay.sass.function import Function, Node
from sassay.sass.model import Control, File, Instruction

SCOREBOARDS = 6
MAX_STALL = 15
MAX_STALL_BIT109 = 11
"""Bit 109 set goes with stalls of 1 to 11 only; past that the encoding is illegal (probed with nvdisasm)."""
FAR = 1 << 30
_ALL = (1 << SCOREBOARDS) - 1
_DRAIN_ALL = frozenset({"MEMBAR", "ERRBAR", "CCTL", "CALL", "RET", "CGAERRBAR"})
"""Wait for everything in flight: fences (as ptxas does) and calls, whose other side is not known."""
Events = dict[int, dict[int, int]]
"""Register -> class number -> cycle of the last such access."""
_NONE: dict[int, int] = {}
_BASES = {File.R: 0, File.UR: 256, File.P: 512, File.UP: 520, File.B: 528}


@dataclass(slots=True)
class Item:
    """An instruction with what its control code depends on. Registers are numbers: file base + index; masks have a bit for each."""

    node: Node
    kind: TimingClass
    defs: tuple[tuple[int, File, int], ...]
    """(register, file, number of the class and part that writes it)."""
    uses: tuple[tuple[int, File, str], ...]
    def_mask: int
    use_mask: int
    late_mask: int
    """Sources still being read after issue: all but predicates of operations that need a read scoreboard."""
    partial: bool
    write: int | None = None
    read: int | None = None
    wait: int = 0
    stall: int = 1
    pad: int = 0
    """Further cycles that do not fit into the stall count: NOPs after it."""


@dataclass(slots=True)
class State:
    """What is in flight at a program point. `writes`, `reads`: (register, class number) -> cycles since issue; masks per scoreboard."""

    writes: dict[tuple[int, int], int] = field(default_factory=dict)
    reads: dict[tuple[int, int], int] = field(default_factory=dict)
    written: list[int] = field(default_factory=lambda: [0] * SCOREBOARDS)
    """Registers that an operation in flight will write, per scoreboard."""
    sources: list[int] = field(default_factory=lambda: [0] * SCOREBOARDS)
    """Registers that an operation in flight has still to read, per scoreboard."""
    busy: int = 0
    """Scoreboards set and not yet waited for."""
    fresh: int = 0
    """Scoreboards set by the instruction issued just before, one cycle ago."""

    def absorb(self, other: State) -> bool:
        """Joins another path's state; whether anything changed."""
        changed = False
        for mine, theirs in ((self.writes, other.writes), (self.reads, other.reads)):
            for key, age in theirs.items():
                old = mine.get(key)
                if old is None or age < old:
                    mine[key] = age
                    changed = True
        for rows, more in ((self.written, other.written), (self.sources, other.sources)):
            for k in range(SCOREBOARDS):
                if more[k] & ~rows[k]:
                    rows[k] |= more[k]
                    changed = True
        if other.busy & ~self.busy or other.fresh & ~self.fresh:
            self.busy |= other.busy
            self.fresh |= other.fresh
            changed = True
        return changed


def distance(model: TimingModel, what: str, producer: TimingClass, consumer: TimingClass, file: File, role: str, part: str = "") -> int:
    """Least issue distance between two accesses of a register: "raw" (role of the use, part of the result), "war" or "waw"."""
    if what == "raw":
        return model.raw(producer, consumer, file, role, part)
    return model.war(producer, consumer, file) if what == "war" else model.waw(producer, consumer, file)


class Controls:
    """Works out the control codes of a function."""

    def __init__(self, fn: Function, model: TimingModel, serial: bool = False) -> None:
        self.fn = fn
        self.model = model
        self.serial = serial
        self.kinds: list[tuple[TimingClass, str]] = []
        self.kind_number: dict[tuple[TimingClass, str], int] = {}
        self.distances: dict[tuple[str, int, int, File, str], int] = {}
        self.window = model.longest
        where = {b.label: i for i, b in enumerate(fn.blocks)}
        self.successors = [[where[s] for s in b.successors] for b in fn.blocks]
        self.blocks = [[self._item(n) for n in b.nodes] for b in fn.blocks]
        self.reserved = 1 if any(i.node.instruction.opcode == "LDGDEPBAR" for row in self.blocks for i in row) else 0
        self.later = self._later_definitions()

    def _item(self, node: Node) -> Item:
        instr = node.instruction
        kind = self.model.classify(instr)
        seen: Effects = effects(instr)
        whole = self._number(kind, "")
        halves = (self._number(kind, "lo"), self._number(kind, "hi")) if kind.name == "wide" else (whole, whole)
        defs = tuple(
            [
                (_BASES[f] + first + i, f, halves[i] if w == 2 else whole)
                for f, first, w in seen.defs
                if f in _BASES
                for i in range(w)
            ]
        )
        uses = tuple(
            [
                (_BASES[f] + first + i, f, "addend_hi" if i and role == "addend" else role)
                for (f, first, w), position in zip(seen.uses, seen.use_positions, strict=True)
                if f in _BASES
                for role in (self.model.role(instr, position),)
                for i in range(w)
            ]
        )
        def_mask = use_mask = late = 0
        for d, _, _ in defs:
            def_mask |= 1 << d
        for u, f, role in uses:
            use_mask |= 1 << u
            if kind.read_sb and role != "guard" and f in (File.R, File.UR):
                late |= 1 << u
        partial = not instr.guard.is_zero or instr.guard.invert
        return Item(node, kind, defs, uses, def_mask, use_mask, late, partial)

    def _number(self, kind: TimingClass, part: str) -> int:
        found = self.kind_number.get((kind, part))
        if found is None:
            found = self.kind_number[kind, part] = len(self.kinds)
            self.kinds.append((kind, part))
        return found

    def _later_definitions(self) -> list[int]:
        """Per block: registers written somewhere after it, itself included when it lies in a loop."""
        own = []
        for row in self.blocks:
            mask = 0
            for item in row:
                mask |= item.def_mask
            own.append(mask)
        later = [0] * len(own)
        changed = True
        while changed:
            changed = False
            for b in range(len(own) - 1, -1, -1):
                mask = 0
                for s in self.successors[b]:
                    mask |= own[s] | later[s]
                if mask != later[b]:
                    later[b] = mask
                    changed = True
        return later

    def run(self) -> None:
        """Fills in every node's control code and inserts the NOPs that long gaps need."""
        for b, row in enumerate(self.blocks):
            _Scoreboards(row, self.later[b], self.reserved, self.serial).assign()
        entries: list[State | None] = [None] * len(self.blocks)
        entries[0] = State()
        front = [0] * len(self.blocks)
        work = [0]
        while work:
            b = work.pop(0)
            entry = entries[b]
            assert entry is not None
            leaving, front[b] = self._walk(self.blocks[b], entry)
            for s in self.successors[b]:
                known = entries[s]
                if known is None:
                    known = entries[s] = State()
                    known.absorb(leaving)
                    work.append(s)
                elif known.absorb(leaving) and s not in work:
                    work.append(s)
        self._finish(front)

    def _distance(self, what: str, producer: int, consumer: int, file: File, role: str) -> int:
        key = (what, producer, consumer, file, role)
        found = self.distances.get(key)
        if found is None:
            first, part = self.kinds[producer]
            found = self.distances[key] = distance(self.model, what, first, self.kinds[consumer][0], file, role, part)
        return found

    def _walk(self, row: list[Item], entry: State) -> tuple[State, int]:
        """Issues a block's instructions from a state: sets waits and stalls, returns the state after it and the cycles it must be delayed."""
        writes: Events = {}
        reads: Events = {}
        for table, source in ((writes, entry.writes), (reads, entry.reads)):
            for (register, kind), age in source.items():
                table.setdefault(register, {})[kind] = -age
        written, sources = entry.written[:], entry.sources[:]
        busy = entry.busy
        set_at = [-1 if entry.fresh >> k & 1 else -FAR for k in range(SCOREBOARDS)]
        now = 0
        front = 0
        previous: Item | None = None
        for item in row:
            item.wait = self._waits(item, written, sources, busy)
            at = self._earliest(item, writes, reads, now if previous is None else now + previous.kind.min_stall)
            for k in range(SCOREBOARDS):
                if item.wait >> k & 1:
                    at = max(at, set_at[k] + SB_VISIBLE)
                    written[k] = sources[k] = 0
            if item.node.instruction.opcode == "DEPBAR":
                at = max([at, *[t + SB_VISIBLE for t in set_at]])
            busy &= ~item.wait
            if previous is None:
                front = at - now
            else:
                gap = max(at - now, previous.kind.min_stall, MAX_STALL if self.serial else 1)
                at = now + gap
                previous.stall, previous.pad = min(gap, MAX_STALL), max(0, gap - MAX_STALL)
            now = at
            busy |= self._issue(item, now, writes, reads, written, sources, set_at)
            previous = item
        if previous is not None:
            gap = max(previous.kind.min_stall, MAX_STALL if self.serial else 1)
            previous.stall, previous.pad = min(gap, MAX_STALL), max(0, gap - MAX_STALL)
            now += gap
        leaving = State(written=written, sources=sources, busy=busy)
        for found, kept in ((writes, leaving.writes), (reads, leaving.reads)):
            for register, events in found.items():
                for kind, when in events.items():
                    age = now - when
                    if age < self.window and age < kept.get((register, kind), FAR):
                        kept[register, kind] = age
        leaving.fresh = sum(1 << k for k in range(SCOREBOARDS) if busy >> k & 1 and now - set_at[k] < SB_VISIBLE)
        return leaving, front

    def _waits(self, item: Item, written: list[int], sources: list[int], busy: int) -> int:
        if self.serial or item.node.instruction.opcode in _DRAIN_ALL:
            return busy
        both = item.def_mask | item.use_mask
        wait = 0
        for k in range(SCOREBOARDS):
            if written[k] & both or sources[k] & item.def_mask:
                wait |= 1 << k
        return wait

    def _earliest(self, item: Item, writes: Events, reads: Events, floor: int) -> int:
        """First cycle at which the fixed distances allow the instruction."""
        at = floor
        consumer = self.kind_number[item.kind, ""]
        distance = self._distance
        for register, file, role in item.uses:
            for producer, when in writes.get(register, _NONE).items():
                need = when + distance("raw", producer, consumer, file, role)
                if need > at:
                    at = need
        for register, file, _ in item.defs:
            for producer, when in writes.get(register, _NONE).items():
                need = when + distance("waw", producer, consumer, file, "operand")
                if need > at:
                    at = need
            for producer, when in reads.get(register, _NONE).items():
                need = when + distance("war", producer, consumer, file, "operand")
                if need > at:
                    at = need
        if item.node.instruction.opcode in ("CALL", "RET"):
            for events in writes.values():
                for when in events.values():
                    at = max(at, when + self.window)
        return at

    def _issue(
        self, item: Item, now: int, writes: Events, reads: Events, written: list[int],
        sources: list[int], set_at: list[int],
    ) -> int:  # fmt: skip
        """Records an issued instruction; the mask of scoreboards it sets."""
        number = self.kind_number[item.kind, ""]
        busy = 0
        for register, _, role in item.uses:
            if not (item.late_mask >> register & 1) or role == "guard":
                reads.setdefault(register, {})[number] = now
        if item.write is not None:
            k = item.write
            written[k] |= item.def_mask
            if item.read is None:
                sources[k] |= item.late_mask
            set_at[k] = now
            busy |= 1 << k
        if item.read is not None:
            k = item.read
            sources[k] |= item.late_mask
            set_at[k] = now
            busy |= 1 << k
        for register, _, writer in item.defs:
            reads.pop(register, None)
            if item.kind.write_sb:
                if not item.partial:
                    writes.pop(register, None)
            elif item.partial:
                writes.setdefault(register, {})[writer] = now
            else:
                writes[register] = {writer: now}
        return busy

    def _finish(self, front: list[int]) -> None:
        """Moves the delays at block starts into the stalls of the blocks before them, then writes controls and NOPs."""
        predecessors: list[list[int]] = [[] for _ in self.blocks]
        for b, following in enumerate(self.successors):
            for s in following:
                predecessors[s].append(b)
        extra = [0] * len(self.blocks)
        lead = [0] * len(self.blocks)
        for b, delay in enumerate(front):
            if delay <= 0:
                continue
            room = [MAX_STALL - self.blocks[p][-1].stall if self.blocks[p] and not self.blocks[p][-1].pad else 0 for p in predecessors[b]]
            moved = min([delay, *room]) if room else 0
            lead[b] = delay - moved
            for p in predecessors[b]:
                extra[p] = max(extra[p], moved)
        for b, (block, row) in enumerate(zip(self.fn.blocks, self.blocks, strict=True)):
            if row:
                row[-1].stall += extra[b]
            nodes = _pads(lead[b], row[0].node if row else None)
            for item in row:
                item.node.instruction = replace(item.node.instruction, control=_control(item, self.serial))
                nodes.append(item.node)
                nodes.extend(_pads(item.pad, item.node))
            block.nodes = nodes


def _pads(cycles: int, like: Node | None) -> list[Node]:
    out = []
    while cycles > 0:
        stall = min(cycles, MAX_STALL)
        cycles -= stall
        instr = Instruction("NOP", control=Control(stall=stall, yield_=stall > MAX_STALL_BIT109))
        out.append(Node(instr, line=like.line if like is not None else None, source=like.source if like is not None else -1))
    return out


_STAY = frozenset({"mio", "branch", "bar", "control", "cbu"})


def _control(item: Item, serial: bool) -> Control:
    """Yield as ptxas sets it: after ALU work whose result is waited for (stall of 3 and more), not after memory and control operations."""
    stall = item.stall
    keep = stall <= 2 or (stall <= MAX_STALL_BIT109 and item.kind.pipe in _STAY)
    return Control(stall=stall, yield_=not keep, write=item.write, read=item.read, wait=item.wait)


class _Scoreboards:
    """Gives out the scoreboards of one block. Those needed at one place share one; the rest go to free ones, or to the one needed nearest by."""

    def __init__(self, row: list[Item], later: int, reserved: int, serial: bool) -> None:
        self.row = row
        self.later = later
        self.serial = serial
        self.usable = [k for k in range(SCOREBOARDS) if not reserved >> k & 1]

    def _needs(self) -> tuple[list[int], list[int]]:
        """Per instruction: position of the first that touches its results, and of the first that overwrites its sources (FAR: none here)."""
        touch: dict[int, int] = {}
        overwrite: dict[int, int] = {}
        results = [FAR] * len(self.row)
        sources = [FAR] * len(self.row)
        for j in range(len(self.row) - 1, -1, -1):
            item = self.row[j]
            if item.kind.write_sb:
                for d, _, _ in item.defs:
                    results[j] = min(results[j], touch.get(d, FAR))
            if item.late_mask:
                for u, _, _ in item.uses:
                    if item.late_mask >> u & 1:
                        sources[j] = min(sources[j], overwrite.get(u, FAR))
            for u, _, _ in item.uses:
                touch[u] = j
            for d, _, _ in item.defs:
                touch[d] = overwrite[d] = j
        return results, sources

    def assign(self) -> None:
        results, sources = self._needs()
        pending: dict[int, list[int]] = {k: [] for k in self.usable}
        for j, item in enumerate(self.row):
            for k in self.usable:
                if pending[k] and min(pending[k]) <= j:
                    pending[k] = []  # instruction j, or one before it, waited for all of them
            item.write = item.read = None
            if item.node.instruction.opcode == "LDGDEPBAR":
                item.write = 0
                continue
            if item.kind.write_sb and item.defs:
                item.write = self._pick(pending, results[j])
            if item.late_mask and (self.serial or self._exposed(item, sources[j], results[j])):
                item.read = self._pick(pending, sources[j])

    def _exposed(self, item: Item, overwritten: int, touched: int) -> bool:
        """Whether a source is overwritten before the wait for the result, if there is one, has covered it."""
        if item.write is not None:
            return overwritten < touched
        return overwritten < FAR or bool(item.late_mask & self.later)

    def _pick(self, pending: dict[int, list[int]], need: int) -> int:
        def distance(k: int) -> tuple[int, int]:
            row = pending[k]
            if not row:
                return (1, k)
            nearest = min(row)
            return (0, k) if nearest == need else (2 + min(abs(nearest - need), FAR), k)

        best = min(self.usable, key=distance)
        pending[best].append(need)
        return best


def assign(fn: Function, model: TimingModel, serial: bool = False) -> None:
    """Gives every instruction of a function in final order its control code, in place."""
    Controls(fn, model, serial).run()
