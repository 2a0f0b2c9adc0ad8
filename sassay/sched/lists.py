"""List scheduling of one block: critical path first, with register pressure in view when registers are still virtual."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from sassay.sass.dag import Dag
from sassay.sass.effects import Effects
from sassay.sass.model import File

SCAN = 48
"""Candidates looked at when pressure decides: the most urgent ones."""


@dataclass(slots=True)
class Pressure:
    """Live registers of one file while a block is scheduled. Units are (file, index) registers.

    `left[u]`: uses of u in the block not scheduled yet; `stays`: registers live at the end of the block.
    """

    file: File
    limit: int
    stays: set[int]
    live: set[int]
    left: dict[int, int]
    defs: list[tuple[int, ...]]
    uses: list[tuple[int, ...]]

    def change(self, i: int) -> int:
        """Registers that node i adds to the live set, less those that die with it."""
        delta = 0
        for u in self.uses[i]:
            if self.left[u] == 1 and u not in self.stays and u in self.live:
                delta -= 1
        for d in self.defs[i]:
            if d not in self.live:
                delta += 1
        return delta

    def take(self, i: int) -> None:
        for u in self.uses[i]:
            self.left[u] -= 1
            if not self.left[u] and u not in self.stays:
                self.live.discard(u)
        for d in self.defs[i]:
            if self.left.get(d) or d in self.stays:
                self.live.add(d)


def pressure_of(file: File, seen: Sequence[Effects], live_in: set[int], live_out: set[int], limit: int) -> Pressure:
    """The bookkeeping of one file for a block; `limit` is raised to what the given order itself needs."""
    defs: list[tuple[int, ...]] = []
    uses: list[tuple[int, ...]] = []
    left: dict[int, int] = {}
    for effect in seen:
        d = tuple({first + k for f, first, width in effect.defs if f == file for k in range(width)})
        u = tuple({first + k for f, first, width in effect.uses if f == file for k in range(width)})
        defs.append(d)
        uses.append(u)
        for x in u:
            left[x] = left.get(x, 0) + 1
    return Pressure(file, limit, live_out, set(live_in), left, defs, uses)


def order(dag: Dag, heights: Sequence[int], pressures: Sequence[Pressure] = (), width: int = 1) -> list[int]:
    """A topological order of the nodes. Each step takes, of the nodes whose operands are ready, the one with the longest way to go.

    When a file is at its limit, the node that adds least to it goes first, ready or not; `width` is the number of cycles an issue takes.
    """
    count = dag.count
    waiting = list(dag.waiting)
    earliest = [0] * count
    ready: list[tuple[int, int]] = []
    later: list[tuple[int, int, int]] = []
    for i in range(count):
        if not waiting[i]:
            heapq.heappush(ready, (-heights[i], i))
    result: list[int] = []
    goals: list[int] | None = None
    cycle = 0
    while len(result) < count:
        while later and later[0][0] <= cycle:
            _, key, i = heapq.heappop(later)
            heapq.heappush(ready, (key, i))
        if pressures and any(len(p.live) >= p.limit for p in pressures):
            if goals is None:
                goals = _goals(dag, pressures)
            i = _relieve(ready, later, pressures, goals)
        elif ready:
            i = heapq.heappop(ready)[1]
        else:
            cycle = max(cycle + 1, later[0][0])
            continue
        cycle = max(cycle, earliest[i])
        result.append(i)
        for p in pressures:
            p.take(i)
        for j, latency in dag.successors[i].items():
            at = cycle + max(latency, 0)
            if at > earliest[j]:
                earliest[j] = at
            waiting[j] -= 1
            if not waiting[j]:
                heapq.heappush(later, (earliest[j], -heights[j], j))
        cycle += width
    return result


def _goals(dag: Dag, pressures: Sequence[Pressure]) -> list[int]:
    """For each node the first place, in the order given, where something that it leads to ends more registers than it makes."""
    goals = [0] * dag.count
    for i in range(dag.count - 1, -1, -1):
        makes = sum([len(p.defs[i]) for p in pressures])
        ends = sum([len(p.uses[i]) for p in pressures])
        goals[i] = i if ends > makes else min([goals[j] for j in dag.successors[i]], default=i)
    return goals


def _relieve(ready: list[tuple[int, int]], later: list[tuple[int, int, int]], pressures: Sequence[Pressure], goals: Sequence[int]) -> int:
    """Removes and returns the candidate that adds least to the files at their limit: the most urgent ready one
    that adds none, else by growth, on the way to the nearest goal."""
    tight = [p for p in pressures if len(p.live) >= p.limit]

    def growth(i: int) -> int:
        return sum([p.change(i) for p in tight])

    def goal(entry: tuple[int, ...]) -> int:
        return goals[entry[-1]]

    for _, i in heapq.nsmallest(SCAN, ready):
        if growth(i) <= 0:
            return _take(ready, later, i)
    best: tuple[int, int, int] | None = None
    for _, i in heapq.nsmallest(SCAN, ready, key=goal):
        candidate = (growth(i), goals[i], i)
        if best is None or candidate < best:
            best = candidate
    if best is None or best[0] > 0:
        for _, _, i in heapq.nsmallest(SCAN, later, key=goal):
            candidate = (growth(i), goals[i], i)
            if best is None or candidate < best:
                best = candidate
    assert best is not None
    return _take(ready, later, best[2])


def _take(ready: list[tuple[int, int]], later: list[tuple[int, int, int]], i: int) -> int:
    """Removes node i from the queue that it stands in, and returns it."""
    for k, entry in enumerate(ready):
        if entry[1] == i:
            ready[k] = ready[-1]
            ready.pop()
            heapq.heapify(ready)
            return i
    for k, waiting in enumerate(later):
        if waiting[2] == i:
            later[k] = later[-1]
            later.pop()
            heapq.heapify(later)
            return i
    raise AssertionError("the candidate stands in neither queue")
