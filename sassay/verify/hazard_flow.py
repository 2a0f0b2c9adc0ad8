"""Data flow of pending reads and writes over a function, to a fixed point.

A block is walked with a clock that counts issue cycles. Every write that may not have landed and every read that may not have happened yet
is an `Entry`. Scoreboards are lists of increments, each with the entries that are finished once it has gone down again; an operation that
finishes in issue order with its group (`TimingClass.ordered_writes`, `ordered_reads`) covers the earlier ones of the group too. At the end
of a block what is pending becomes a set of items with their ages; a block is walked again whenever an item is new or younger than before.
Every path that control flow allows counts as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sassay.isa.timing import SB_VISIBLE, TimingModel
from sassay.sass.cfg import Cfg
from sassay.verify.hazard_facts import GROUP_SB, STRIDE, Fact

FOREVER = 1 << 60
GMMA_GROUP = 99
_BITS = tuple(tuple(b for b in range(GROUP_SB + 1) if mask >> b & 1) for mask in range(1 << (GROUP_SB + 1)))

Coverage: TypeAlias = tuple[tuple[int, int, int], ...]
"""(scoreboard, later increments of it, age of the increment up to SB_VISIBLE) for each scoreboard that stands for an entry."""
Item: TypeAlias = tuple[int, int, str, int, int, Coverage]
"""(register, what, part, producer index, guard, coverage): what is _WRITE, _LATE or _WATCHED."""
State: TypeAlias = dict[Item, int]
"""Pending items with their ages in cycles."""
_WRITE, _LATE, _WATCHED = 0, 1, 2


class Entry:
    """A pending write or read. `safe` is the cycle from which nothing can go wrong with it any more."""

    __slots__ = ("fact", "guard", "positions", "safe", "time")

    def __init__(self, fact: Fact, time: int, safe: int, guard: int) -> None:
        self.fact = fact
        self.time = time
        self.safe = safe
        self.guard = guard
        self.positions: dict[int, int] | None = None


Chain: TypeAlias = "tuple[Entry, str, Chain | None]"


@dataclass(slots=True)
class Increment:
    """One rise of a scoreboard, and what is finished when it has gone down."""

    time: int
    entries: list[Entry]


@dataclass(frozen=True, slots=True)
class Hit:
    """A hazard found: kind raw, war or waw, with the distance found and needed (needed 0: a scoreboard)."""

    kind: str
    producer: int
    consumer: int
    register: int
    role: str
    found: int
    needed: int


Report: TypeAlias = Callable[[Hit], None]


class Walker:
    """Walks blocks of one function. `report` is called for every hazard on every walk."""

    def __init__(self, facts: Sequence[Fact], timing: TimingModel, report: Report) -> None:
        self.facts = facts
        self.timing = timing
        self.report = report
        self.keep = dict.fromkeys(range(GROUP_SB + 1), 0)
        for fact in facts:
            if fact.partial is not None:
                board, count = fact.partial
                self.keep[board] = max(self.keep[board], count)
        self._safe: dict[tuple[int, int], int] = {}
        self._watch: dict[tuple[int, int], int] = {}

    # ---- one block ---------------------------------------------------------------------------------------------------------------

    def walk(self, start: int, end: int, state: State) -> State:
        """Walks instructions `start` up to `end` from the state before them; the state after."""
        self._enter(state)
        now = 0
        writes, late, watched = self.writes, self.late, self.watched
        for fact in self.facts[start:end]:
            if fact.wait:
                for board in _BITS[fact.wait]:
                    if self.boards[board]:
                        self._empty(board, now)
            if fact.partial is not None:
                self._lower(*fact.partial, now)
            for register, role in fact.uses:
                chain = writes.get(register)
                if chain is not None and (now < chain[0].safe or chain[2] is not None):
                    self._check_raw(chain, fact, register, role, now)
            if fact.defs:
                for register, _ in fact.defs:
                    chain = writes.get(register)
                    if chain is not None and (now < chain[0].safe or chain[2] is not None):
                        self._check_waw(chain, fact, register, now)
                    chain = late.get(register)
                    if chain is not None:
                        self._check_late(chain, fact, register, now)
                    if watched:
                        chain = watched.get(register)
                        if chain is not None:
                            self._check_watched(chain, fact, register, now)
            if fact.leaves:
                self._issue(fact, now)
            now += fact.cost
            if fact.drains:
                self._clear()
                writes, late, watched = self.writes, self.late, self.watched
        return self._leave(now)

    def _issue(self, fact: Fact, now: int) -> None:
        """Records what the instruction leaves pending."""
        cls = fact.cls
        write_entry: Entry | None = None
        if fact.defs:
            variable = cls.write_sb or cls.group_sb
            writes = self.writes
            entries: dict[int, Entry] = {}
            for register, part in fact.defs:
                file = register // STRIDE
                entry = entries.get(0 if variable else file)
                if entry is None:
                    safe = FOREVER if variable else now + self._landing(cls.index, cls.name, file)
                    entry = self._new(fact, now, safe, fact.guard)
                    entries[0 if variable else file] = entry
                    if variable:
                        write_entry = entry
                old = writes.get(register)
                if fact.guard < 0 or old is None:
                    writes[register] = (entry, part, None)
                else:
                    writes[register] = (entry, part, _pruned(old, now))
                if fact.guard < 0:
                    self.late.pop(register, None)
                    self.watched.pop(register, None)
        read_entry: Entry | None = None
        if fact.late:
            read_entry = self._new(fact, now, FOREVER, fact.guard)
            for register in fact.late:
                chain = self.late.get(register)
                keep = None
                if chain is not None:
                    same = cls.ordered_reads >= 0 and chain[0].fact.cls.ordered_reads == cls.ordered_reads
                    keep = _pruned(chain[2] if same else chain, now)
                self.late[register] = (read_entry, "", keep)
        for register in fact.watched:
            entry = self._new(fact, now, now + self._reading(cls.index, cls.name, register // STRIDE), fact.guard)
            old = self.watched.get(register)
            self.watched[register] = (entry, "", None if old is None else _pruned(old, now))
        self._raise(fact, write_entry, read_entry, now)
        for number in fact.predicates:
            self._forget_guard(number)

    def _raise(self, fact: Fact, write_entry: Entry | None, read_entry: Entry | None, now: int) -> None:
        """Adds the instruction to its groups, and its increments, with all they cover, to the scoreboards."""
        cls = fact.cls
        group_w = GMMA_GROUP if cls.group_sb else cls.ordered_writes
        group_r = GMMA_GROUP if cls.group_sb else cls.ordered_reads
        if write_entry is not None and group_w >= 0:
            self.groups.setdefault(group_w, []).append(write_entry)
        if read_entry is not None and group_r >= 0:
            self.groups.setdefault(-1 - group_r, []).append(read_entry)
        if fact.write >= 0:
            covered = [e for e in (write_entry, read_entry) if e is not None]
            if group_w >= 0:
                self._cover(group_w, fact.write, covered)
            if group_r >= 0:
                self._cover(-1 - group_r, fact.write, covered)
            self._increment(fact.write, covered, now)
        if fact.read >= 0:
            covered = [] if read_entry is None else [read_entry]
            if group_r >= 0:
                self._cover(-1 - group_r, fact.read, covered)
            self._increment(fact.read, covered, now)

    def _cover(self, group: int, board: int, covered: list[Entry]) -> None:
        """Appends the group's entries that this scoreboard does not stand for yet."""
        entries = self.groups.get(group, [])
        start = self.seen.get((group, board), 0)
        own = tuple(covered)
        for entry in entries[start:]:
            if entry.safe == FOREVER and (entry.positions is None or board not in entry.positions) and entry not in own:
                covered.append(entry)
        self.seen[group, board] = len(entries)

    def _increment(self, board: int, covered: list[Entry], now: int) -> None:
        increments = self.boards[board]
        for entry in covered:
            if entry.positions is None:
                entry.positions = {}
            entry.positions.setdefault(board, len(increments))
        increments.append(Increment(now, covered))

    def _empty(self, board: int, now: int) -> None:
        """A wait until the scoreboard is zero: done is all whose rise could be seen."""
        increments = self.boards[board]
        visible = now - SB_VISIBLE
        if increments[-1].time <= visible:
            for increment in increments:
                for entry in increment.entries:
                    entry.safe = -FOREVER
            self.boards[board] = []
            return
        for increment in increments:
            if increment.time <= visible:
                for entry in increment.entries:
                    entry.safe = -FOREVER

    def _lower(self, board: int, count: int, now: int) -> None:
        """A wait until at most `count` increments are outstanding; they go down in order."""
        for increment in self.boards[board][:-count]:
            if increment.time <= now - SB_VISIBLE:
                for entry in increment.entries:
                    entry.safe = -FOREVER

    def _new(self, fact: Fact, time: int, safe: int, guard: int) -> Entry:
        """An entry; one with a guard is found again when its predicate is written."""
        entry = Entry(fact, time, safe, guard)
        if guard >= 0:
            self.guarded.setdefault(guard >> 1, []).append(entry)
        return entry

    def _forget_guard(self, predicate: int) -> None:
        """After a write of a predicate, entries guarded by its old value can no longer be told from the other case."""
        for entry in self.guarded.pop(predicate, ()):
            entry.guard = -1

    # ---- checks ------------------------------------------------------------------------------------------------------------------

    def _check_raw(self, chain: Chain, fact: Fact, register: int, role: str, now: int) -> None:
        link: Chain | None = chain
        while link is not None:
            entry, part, link = link
            if now >= entry.safe or _exclusive(entry.guard, fact.guard):
                continue
            producer = entry.fact
            if entry.safe == FOREVER:
                if producer.cls.group_sb and fact.cls.group_sb:
                    continue
                self.report(Hit("raw", producer.index, fact.index, register, role, now - entry.time, 0))
                continue
            name = f"{producer.cls.name}.{part}" if part else producer.cls.name
            needed = self.timing.cell("raw", name, fact.cls.name, register // STRIDE, role)[1]
            if now - entry.time < needed:
                self.report(Hit("raw", producer.index, fact.index, register, role, now - entry.time, needed))

    def _check_waw(self, chain: Chain, fact: Fact, register: int, now: int) -> None:
        link: Chain | None = chain
        while link is not None:
            entry, _, link = link
            if now >= entry.safe or _exclusive(entry.guard, fact.guard):
                continue
            producer = entry.fact
            if entry.safe == FOREVER:
                group = producer.cls.ordered_writes
                if (group >= 0 and group == fact.cls.ordered_writes) or (producer.cls.group_sb and fact.cls.group_sb):
                    continue
                self.report(Hit("waw", producer.index, fact.index, register, "", now - entry.time, 0))
                continue
            needed = self.timing.cell("waw", producer.cls.name, fact.cls.name, register // STRIDE, "")[1]
            if now - entry.time < needed:
                self.report(Hit("waw", producer.index, fact.index, register, "", now - entry.time, needed))

    def _check_late(self, chain: Chain, fact: Fact, register: int, now: int) -> None:
        link: Chain | None = chain
        while link is not None:
            entry, _, link = link
            if now >= entry.safe or _exclusive(entry.guard, fact.guard):
                continue
            group = entry.fact.cls.ordered_reads
            if (group >= 0 and group == fact.cls.ordered_reads) or (entry.fact.cls.group_sb and fact.cls.group_sb):
                continue
            self.report(Hit("war", entry.fact.index, fact.index, register, "", now - entry.time, 0))

    def _check_watched(self, chain: Chain, fact: Fact, register: int, now: int) -> None:
        link: Chain | None = chain
        while link is not None:
            entry, _, link = link
            if now >= entry.safe or _exclusive(entry.guard, fact.guard):
                continue
            needed = self.timing.cell("war", entry.fact.cls.name, fact.cls.name, register // STRIDE, "")[1]
            if now - entry.time < needed:
                self.report(Hit("war", entry.fact.index, fact.index, register, "", now - entry.time, needed))

    def _landing(self, index: int, name: str, file: int) -> int:
        """Cycles after which a fixed-latency write is safe from every reader and writer."""
        key = (index, file)
        found = self._safe.get(key)
        if found is None:
            found = self._safe[key] = max(self.timing.largest("raw", name, file), self.timing.largest("waw", name, file))
            if not self.timing.largest("raw", name, file):
                self.timing.cell("raw", name, name, file, "operand")  # no figures at all: says so by name
        return found

    def _reading(self, index: int, name: str, file: int) -> int:
        key = (index, file)
        found = self._watch.get(key)
        if found is None:
            found = self._watch[key] = self.timing.largest("war", name, file)
        return found

    # ---- block boundaries --------------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        """Nothing is pending."""
        self.writes: dict[int, Chain] = {}
        self.late: dict[int, Chain] = {}
        self.watched: dict[int, Chain] = {}
        self.boards: list[list[Increment]] = [[] for _ in range(GROUP_SB + 1)]
        self.groups: dict[int, list[Entry]] = {}
        self.seen: dict[tuple[int, int], int] = {}
        self.guarded: dict[int, list[Entry]] = {}

    def _enter(self, state: State) -> None:
        """Sets up the pending entries of a state, at cycle 0."""
        self._clear()
        made: dict[tuple[int, int, int, int, Coverage], Entry] = {}
        pools = (self.writes, self.late, self.watched)
        for (register, what, part, index, guard, coverage), age in state.items():
            fact = self.facts[index]
            file = register // STRIDE
            key = (index, what * 16 + file, guard, age, coverage)
            entry = made.get(key)
            if entry is None:
                entry = made[key] = self._new(fact, -age, self._safe_from(fact, what, file, -age), guard)
            pool = pools[what]
            pool[register] = (entry, part, pool.get(register))
        self._enter_boards(made)

    def _enter_boards(self, made: dict[tuple[int, int, int, int, Coverage], Entry]) -> None:
        rows: list[dict[int, Increment]] = [{} for _ in range(GROUP_SB + 1)]
        for (_, what, _, _, coverage), entry in made.items():
            cls = entry.fact.cls
            if entry.safe == FOREVER:
                group = (cls.ordered_writes if what < 16 else cls.ordered_reads) if not cls.group_sb else GMMA_GROUP
                if group >= 0:
                    self.groups.setdefault(group if what < 16 else -1 - group, []).append(entry)
            for board, later, seen in coverage:
                row = rows[board].setdefault(later, Increment(-seen, []))
                row.time = max(row.time, -seen)
                row.entries.append(entry)
        for board, found in enumerate(rows):
            if not found:
                continue
            depth = max(found) + 1
            self.boards[board] = [found.get(depth - 1 - i) or Increment(-FOREVER, []) for i in range(depth)]
            for i, increment in enumerate(self.boards[board]):
                for entry in increment.entries:
                    if entry.positions is None:
                        entry.positions = {}
                    entry.positions[board] = i

    def _safe_from(self, fact: Fact, what: int, file: int, time: int) -> int:
        if what == _WATCHED:
            return time + self._reading(fact.cls.index, fact.cls.name, file)
        if what == _LATE or fact.cls.write_sb or fact.cls.group_sb:
            return FOREVER
        return time + self._landing(fact.cls.index, fact.cls.name, file)

    def _leave(self, now: int) -> State:
        """The pending items at the end of a block."""
        state: State = {}
        for what, pool in enumerate((self.writes, self.late, self.watched)):
            for register, chain in pool.items():
                link: Chain | None = chain
                while link is not None:
                    entry, part, link = link
                    if now >= entry.safe:
                        continue
                    endless = entry.safe == FOREVER
                    coverage = self._coverage(entry, now) if endless else ()
                    age = 0 if endless else now - entry.time
                    item = (register, what, part, entry.fact.index, entry.guard, coverage)
                    if age < state.get(item, FOREVER):
                        state[item] = age
        return state

    def _coverage(self, entry: Entry, now: int) -> Coverage:
        if entry.positions is None:
            return ()
        out = []
        for board, position in entry.positions.items():
            increments = self.boards[board]
            if position < len(increments):
                later = min(len(increments) - 1 - position, self.keep[board])
                out.append((board, later, min(SB_VISIBLE, now - increments[position].time)))
        out.sort()
        return tuple(out)


def _exclusive(first: int, second: int) -> bool:
    """Whether two guards can never both hold in a thread: the same predicate, once inverted."""
    return first >= 0 and second >= 0 and first ^ second == 1


def _pruned(chain: Chain | None, now: int) -> Chain | None:
    """The chain without entries that are safe."""
    while chain is not None and now >= chain[0].safe:
        chain = chain[2]
    if chain is None or chain[2] is None:
        return chain
    return (chain[0], chain[1], _pruned(chain[2], now))


def run(
    facts: Sequence[Fact], cfg: Cfg, edges: Sequence[Sequence[int]], timing: TimingModel, report: Report, entries: Sequence[int] = (0,)
) -> int:
    """Walks all blocks, from the entry blocks on, until nothing changes. `edges`: successors of each block. The number of walks."""
    walker = Walker(facts, timing, report)
    states: dict[int, State] = {block: {} for block in entries}
    todo = sorted(states, reverse=True)
    queued = set(todo)
    walks = 0
    while True:
        if not todo:  # code that no path from the entries reaches is walked by itself
            rest = next((b for b in range(len(cfg.blocks)) if b not in states), None)
            if rest is None:
                break
            states[rest] = {}
            todo.append(rest)
        block = todo.pop()
        queued.discard(block)
        walks += 1
        span = cfg.blocks[block]
        out = walker.walk(span.start, span.end, states[block])
        fresh = [s for s in edges[block] if _merge(states, s, out) and s not in queued]
        if fresh:
            queued.update(fresh)
            todo.extend(fresh)
            todo.sort(reverse=True)
    return walks


def _merge(states: dict[int, State], block: int, incoming: State) -> bool:
    """Adds a state to a block's; whether that changed it."""
    known = states.get(block)
    if known is None:
        states[block] = dict(incoming)
        return True
    changed = False
    for item, age in incoming.items():
        if age < known.get(item, FOREVER):
            known[item] = age
            changed = True
    return changed

