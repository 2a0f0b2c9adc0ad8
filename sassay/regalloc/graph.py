"""Interference, coalescing and colouring (Chaitin-Briggs) over groups of units.

A *cluster* is a set of units laid out over consecutive slots: a group, or groups merged by coalescing. Two units in one slot share a register.
Adjacency is kept twice: as bit masks (tests of whole sets) and as lists (walks).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from sassay.sass.function import Function
from sassay.sass.model import File
from sassay.sass.units import FILES, Units, is_copy

MAX_SLOTS = 8
"""Coalescing makes no cluster wider than this: wide ones are hard to place."""


@dataclass(slots=True)
class Interference:
    """Which units are live together, the most that ever are per file, and the copies (weight, destination, source) in the code."""

    masks: list[int]
    lists: list[list[int]]
    pressure: dict[File, int]
    copies: list[tuple[int, int, int]]
    cost: list[int]
    """Weighted number of definitions and uses of each unit."""

    def join(self, a: int, b: int) -> None:
        """Makes two units interfere."""
        _edge(a, b, self.masks, self.lists)


GAPS = 2
"""Registers past the most that are ever live at which other colouring orders are worth a try (R1, reserved, is one)."""


def weight(depth: int) -> int:
    """How much more a block counts for each loop around it."""
    return int(8 ** min(depth, 6))


def interference(fn: Function, units: Units, live_outs: list[int]) -> Interference:
    """Walks every block backwards with its live set. A copy's source does not interfere with its destination."""
    count = len(units.file)
    masks = [0] * count
    lists: list[list[int]] = [[] for _ in range(count)]
    pressure = dict.fromkeys(FILES, 0)
    copies: list[tuple[int, int, int]] = []
    cost = [0] * count
    file = units.file
    bits = [1 << i for i in range(count)]
    for block, row, out in zip(fn.blocks, units.accesses, live_outs, strict=True):
        live: dict[File, set[int]] = {f: set() for f in FILES}
        mask = out
        while mask:
            low = mask & -mask
            unit = low.bit_length() - 1
            live[file[unit]].add(unit)
            mask ^= low
        price = weight(block.loop_depth)
        for f in FILES:
            pressure[f] = max(pressure[f], len(live[f]))
        for node, access in zip(reversed(block.nodes), reversed(row), strict=True):
            copied = -1
            defs, uses = access.defs, access.uses
            if len(defs) == 1 and len(uses) == 1 and is_copy(node) is not None:
                copied = uses[0]
                copies.append((price, defs[0], copied))
            for d in defs:
                cost[d] += price
                around = live[file[d]]
                bit = bits[d]
                row_d = lists[d]
                mask_d = masks[d]
                for l in around:
                    if not mask_d & bits[l] and l != d and l != copied:
                        mask_d |= bits[l]
                        row_d.append(l)
                        masks[l] |= bit
                        lists[l].append(d)
                masks[d] = mask_d
            if len(defs) > 1:
                _pairwise(defs, file, masks, lists)
                for d in defs:
                    pressure[file[d]] = max(pressure[file[d]], len(live[file[d]] | {x for x in defs if file[x] is file[d]}))
            if len(access.kills) < len(defs):
                for d in defs:
                    live[file[d]].add(d)
            for d in access.kills:
                live[file[d]].discard(d)
            for d, u in access.apart:
                _edge(d, u, masks, lists)
            for u in uses:
                cost[u] += price
                live[file[u]].add(u)
            for f in FILES:
                if len(live[f]) > pressure[f]:
                    pressure[f] = len(live[f])
    return Interference(masks, lists, pressure, copies, cost)


def _edge(a: int, b: int, masks: list[int], lists: list[list[int]]) -> None:
    if a != b and not masks[a] >> b & 1:
        masks[a] |= 1 << b
        masks[b] |= 1 << a
        lists[a].append(b)
        lists[b].append(a)


def _pairwise(defs: tuple[int, ...], file: list[File], masks: list[int], lists: list[list[int]]) -> None:
    for i, a in enumerate(defs):
        for b in defs[:i]:
            if file[a] is file[b]:
                _edge(a, b, masks, lists)


@dataclass(slots=True)
class Clusters:
    """Units laid out over slots. `of[unit]` is its cluster, `slot[unit]` its place; `members[c][s]` the units in slot s."""

    of: list[int]
    slot: list[int]
    members: list[list[list[int]]]
    align: list[int]
    present: list[list[int]] = field(default_factory=list)
    near: list[list[int]] = field(default_factory=list)
    """Per cluster and slot: mask of its units, and of the units adjacent to them."""


def alignment(file: File, width: int) -> int:
    """Where a tuple may start: multiples of 1, 2 or 4."""
    if width == 1 or file not in (File.R, File.UR):
        return 1
    return 2 if width == 2 else 4


def clusters(units: Units, graph: Interference) -> Clusters:
    """One cluster a group; physical units have none (-1)."""
    count = len(units.file)
    result = Clusters([-1] * count, [0] * count, [], [])
    for first, width in units.groups:
        number = len(result.members)
        for s in range(width):
            result.of[first + s] = number
            result.slot[first + s] = s
        result.members.append([[first + s] for s in range(width)])
        result.align.append(alignment(units.file[first], width))
        result.present.append([1 << (first + s) for s in range(width)])
        result.near.append([graph.masks[first + s] for s in range(width)])
    return result


def coalesce(units: Units, graph: Interference, found: Clusters) -> None:
    """Merges the clusters of copies wherever no two units of one slot would be live together; costliest copies first."""
    for _, to, source in sorted(graph.copies, key=lambda c: -c[0]):
        if units.virtual(to) and units.virtual(source):
            _merge(found, to, source)


def _merge(found: Clusters, to: int, source: int) -> bool:
    a, b = found.of[to], found.of[source]
    if a == b:
        return found.slot[to] == found.slot[source]
    shift = found.slot[to] - found.slot[source]  # slot of b's slot 0 in a
    if shift < 0:
        a, b, shift = b, a, -shift
    wide = max(len(found.members[a]), shift + len(found.members[b]))
    if wide > MAX_SLOTS and wide > len(found.members[a]):
        return False
    if shift % found.align[b]:
        return False
    if wide > len(found.members[a]) and wide > 4 and found.align[a] < 4:
        return False
    near, present = found.near[a], found.present[a]
    for s in range(len(found.members[b])):
        if shift + s < len(near) and near[shift + s] & found.present[b][s]:
            return False
    while len(found.members[a]) < wide:
        found.members[a].append([])
        present.append(0)
        near.append(0)
    for s, row in enumerate(found.members[b]):
        t = shift + s
        found.members[a][t].extend(row)
        present[t] |= found.present[b][s]
        near[t] |= found.near[b][s]
        for u in row:
            found.of[u] = a
            found.slot[u] = t
    found.members[b] = []
    found.align[a] = max(found.align[a], found.align[b])
    return True


@dataclass(slots=True)
class Colouring:
    """Physical index of each unit (-1: none), and the clusters that found no place."""

    colour: list[int]
    failed: list[int]
    highest: dict[File, int]


def colour(
    units: Units, graph: Interference, found: Clusters, limits: dict[File, int], reserved: dict[File, int], free_cost: set[int]
) -> Colouring:
    """Simplifies and selects. `limits`: registers a file has; `reserved`: masks of indices not to be given; `free_cost`: clusters never to spill.

    Where that order leaves gaps between tuples, others are tried (wide clusters first, program order), and the one with fewest R registers stays.
    """
    order = _simplify(units, graph, found, limits, free_cost)
    best = _select(units, graph, found, order, limits, reserved)
    if best.failed or best.highest[File.R] < graph.pressure[File.R] + GAPS:
        return best
    wide_first = sorted(order, key=lambda c: -len(found.members[c]))
    for other in (wide_first, sorted(wide_first), sorted(sorted(order), key=lambda c: -len(found.members[c]))):
        tried = _select(units, graph, found, other, limits, reserved)
        if not tried.failed and tried.highest[File.R] < best.highest[File.R]:
            best = tried
    return best


def _select(
    units: Units, graph: Interference, found: Clusters, order: list[int], limits: dict[File, int], reserved: dict[File, int]
) -> Colouring:
    """Gives each cluster, in order, a place that its neighbours leave free."""
    count = len(units.file)
    result = [-1] * count
    for u in range(count):
        if not units.virtual(u):
            result[u] = units.index[u]
    hints: dict[int, list[int]] = {}
    for _, to, source in graph.copies:
        hints.setdefault(to, []).append(source)
        hints.setdefault(source, []).append(to)
    failed: list[int] = []
    highest = dict.fromkeys(FILES, -1)
    lists = graph.lists
    steps = {align: sum(1 << i for i in range(0, 256, align)) for align in (1, 2, 4)}
    for c in order:
        rows = found.members[c]
        file = units.file[_first(rows)]
        free = steps[found.align[c]] & ((1 << max(0, limits[file] - len(rows) + 1)) - 1)
        for s, row in enumerate(rows):
            taken = reserved[file]
            for u in row:
                for n in lists[u]:
                    k = result[n]
                    if k >= 0:
                        taken |= 1 << k
            free &= ~(taken >> s)
        if not free:
            failed.append(c)
            continue
        base = _choose(rows, free, result, hints)
        for s, row in enumerate(rows):
            for u in row:
                result[u] = base + s
        highest[file] = max(highest[file], base + len(rows) - 1)
    return Colouring(result, failed, highest)


def _first(rows: list[list[int]]) -> int:
    for row in rows:
        if row:
            return row[0]
    raise AssertionError("an empty cluster is never coloured")


def _choose(rows: list[list[int]], free: int, result: list[int], hints: dict[int, list[int]]) -> int:
    """The register of a copy's other end if it is free, otherwise the lowest."""
    for s, row in enumerate(rows):
        for u in row:
            for partner in hints.get(u, ()):
                wish = result[partner] - s
                if wish >= 0 and free >> wish & 1:
                    return wish
    return (free & -free).bit_length() - 1


def _simplify(units: Units, graph: Interference, found: Clusters, limits: dict[File, int], free_cost: set[int]) -> list[int]:
    """The order of colouring: the reverse of removing clusters that are certain to find a place, cheapest first when none is certain.

    The limit used here is the pressure, when that is lower than the file's: the order then keeps the number of registers down.
    """
    of, lists = found.of, graph.lists
    alive = [c for c, rows in enumerate(found.members) if rows]
    neighbours: dict[int, set[int]] = {}
    for c in alive:
        around: set[int] = set()
        for row in found.members[c]:
            for u in row:
                around.update([of[n] for n in lists[u]])
        around.discard(c)
        around.discard(-1)
        neighbours[c] = around
    width = [len(rows) for rows in found.members]
    align = found.align
    degree: dict[int, int] = {}
    room: dict[int, int] = {}
    keys: list[tuple[float, int]] = []
    for c in alive:
        file = units.file[_first(found.members[c])]
        a = align[c]
        degree[c] = sum([-(-width[n] // a) for n in neighbours[c]])
        room[c] = max(1, (min(limits[file], graph.pressure[file] + 1) - width[c]) // a + 1)
        price = sum(graph.cost[u] for row in found.members[c] for u in row)
        keys.append((float("inf") if c in free_cost else price / (degree[c] + 1), c))
    heapq.heapify(keys)
    stack: list[int] = []
    gone = [False] * len(found.members)
    easy = [c for c in reversed(alive) if degree[c] < room[c]]
    queued = set(easy)
    while True:
        if easy:
            c = easy.pop()
        else:
            while keys and gone[keys[0][1]]:
                heapq.heappop(keys)
            if not keys:
                break
            c = heapq.heappop(keys)[1]
        if gone[c]:
            continue
        gone[c] = True
        stack.append(c)
        w = width[c]
        for n in neighbours[c]:
            if not gone[n]:
                degree[n] -= -(-w // align[n])
                if degree[n] < room[n] and n not in queued:
                    queued.add(n)
                    easy.append(n)
    stack.reverse()
    return stack
