"""Symbolic execution of a region: from one cut point to the next ones, all paths at once.

A region is the acyclic part of a control-flow graph between cut points. Its blocks are executed once each in topological order; where paths
meet, registers merge by selects on the paths' conditions, and events stand in one order, each guarded by its path's condition.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from sassay.errors import ProofError
from sassay.ptx.ast import Register
from sassay.verify.memory import Memory
from sassay.verify.terms import Term, Terms

EXIT = "<exit>"
Key = Hashable


def label(key: Key) -> str:
    """Text that names a register uniquely within its side."""
    if isinstance(key, Register):
        return f"{key.name}#{key.uid}"
    return "".join(getattr(part, "name", str(part)) for part in key) if isinstance(key, tuple) else str(key)


class State:
    """Values of registers by key. Reading one that was never written makes a variable that names it."""

    __slots__ = ("name", "terms", "values")

    def __init__(self, terms: Terms, name: str, values: dict[Key, Term] | None = None) -> None:
        self.terms = terms
        self.name = name
        self.values: dict[Key, Term] = values if values is not None else {}

    def read(self, key: Key, width: int) -> Term:
        value = self.values.get(key)
        if value is None:
            value = self.values[key] = self.terms.var(f"{self.name}.{label(key)}", width)
        return value

    def copy(self) -> State:
        return State(self.terms, self.name, dict(self.values))


@dataclass(slots=True)
class Edge:
    """A way out of a block: to a label, when `condition` holds, given that the block was reached."""

    target: str
    condition: Term


class Side(Protocol):
    """A program that can be executed block by block."""

    def successors(self, label: str) -> Iterable[str]:
        """Labels that control may reach next; EXIT among them where the program may end."""
        ...

    def execute(self, label: str, state: State, condition: Term, memory: Memory, trace: Trace) -> list[Edge]:
        """Run one block under a path condition (for its events), changing `state`, `memory` and `trace`."""
        ...


@dataclass(slots=True)
class Trace:
    """What a region does besides registers and memory: barriers and warp exchanges, in order."""

    events: list[tuple[str, Term, tuple[Term, ...]]] = field(default_factory=list)


@dataclass(slots=True)
class Exit:
    """The merged state with which a region reaches a cut point, and when."""

    condition: Term
    state: State


@dataclass(slots=True)
class Region:
    """The result of executing a region: exits by label, final memory, events."""

    exits: dict[str, Exit]
    memory: Memory
    trace: Trace


def order(side: Side, start: str, cuts: frozenset[str]) -> list[str]:
    """Blocks of the region from `start`, topologically. ProofError when a cycle has no cut point in it."""
    done: list[str] = []
    status: dict[str, int] = {}
    stack: list[tuple[str, list[str]]] = [(start, [s for s in side.successors(start) if s not in cuts and s != EXIT])]
    status[start] = 1
    while stack:
        label, rest = stack[-1]
        if not rest:
            status[label] = 2
            done.append(label)
            stack.pop()
            continue
        following = rest.pop()
        if status.get(following) == 1:
            raise ProofError(f"a cycle through {following} has no cut point")
        if following not in status:
            status[following] = 1
            stack.append((following, [s for s in side.successors(following) if s not in cuts and s != EXIT]))
    return done[::-1]


class Shape:
    """Dominance in a region's graph, cut points and exits included as its sinks. One node dominates another when all ways lead through it."""

    def __init__(self, side: Side, start: str, cuts: frozenset[str]) -> None:
        self.blocks = order(side, start, cuts)
        inside = set(self.blocks)
        self.successors: dict[str, list[str]] = {}
        sinks: dict[str, None] = {}
        for block in self.blocks:
            targets = [t if t in inside and t != start and t not in cuts else "->" + t for t in dict.fromkeys(side.successors(block))]
            self.successors[block] = targets
            sinks.update(dict.fromkeys(t for t in targets if t not in inside))
        nodes = [*self.blocks, *sinks, "<end>"]
        for sink in sinks:
            self.successors[sink] = ["<end>"]
        self.successors["<end>"] = []
        predecessors: dict[str, list[str]] = {n: [] for n in nodes}
        for n in nodes:
            for t in self.successors[n]:
                predecessors[t].append(n)
        self.dominator = _immediate(nodes, predecessors)
        self._after = _immediate(nodes[::-1], self.successors)

    def always_reached(self, node: str, above: str) -> bool:
        """Whether every way from `above` to the end leads through `node`."""
        current: str | None = above
        while current is not None and current != node:
            current = self._after.get(current)
        return current == node


def _immediate(nodes: list[str], predecessors: dict[str, list[str]]) -> dict[str, str | None]:
    """Immediate dominators of an acyclic graph, `nodes` in topological order."""
    depth: dict[str, int] = {nodes[0]: 0}
    found: dict[str, str | None] = {nodes[0]: None}
    for node in nodes[1:]:
        known = [p for p in predecessors[node] if p in depth]
        if not known:
            continue
        common = known[0]
        for other in known[1:]:
            while common != other:
                if depth[common] >= depth[other]:
                    up = found[common]
                    assert up is not None
                    common = up
                else:
                    up = found[other]
                    assert up is not None
                    other = up
        found[node] = common
        depth[node] = depth[common] + 1
    return found


class _Runner:
    """Execution of one region: conditions are kept relative to immediate dominators, so that they stay small."""

    def __init__(self, terms: Terms, side: Side, start: str, cuts: frozenset[str], memory: Memory) -> None:
        self.terms, self.side, self.start, self.cuts = terms, side, start, cuts
        self.shape = Shape(side, start, cuts)
        self.memory = memory
        self.trace = Trace()
        self.relative: dict[str, Term] = {start: terms.const(1, 1)}
        self.path: dict[str, Term] = {start: terms.const(1, 1)}
        self.arriving: dict[str, list[tuple[str, Term, State]]] = {}

    def run(self, state: State) -> Region:
        exits: dict[str, Exit] = {}
        for label in self.shape.blocks:
            if label != self.start:
                merged = self._enter(label)
                if merged is None:
                    continue
                state = merged
            edges = self.side.execute(label, state, self.path[label], self.memory, self.trace)
            live = [e for e in edges if not (e.condition.is_const and e.condition.value == 0)]
            for position, edge in enumerate(live):
                name = edge.target if edge.target in self.shape.successors[label] else "->" + edge.target
                if name not in self.shape.successors[label]:
                    raise ProofError(f"control goes from {label} to {edge.target}, which is no successor of it")
                self.arriving.setdefault(name, []).append((label, edge.condition, state if position == len(live) - 1 else state.copy()))
        for name in list(self.arriving):
            target = name.removeprefix("->")
            merged = self._enter(name)
            if merged is not None:
                exits[target] = Exit(self.path[name], merged)
        return Region(exits, self.memory, self.trace)

    def _enter(self, node: str) -> State | None:
        """Merge what arrives at a node; None if nothing can."""
        incoming = self.arriving.pop(node, [])
        if not incoming:
            return None
        above = self.shape.dominator[node]
        assert above is not None
        ways = [(self._since(above, block, condition), state) for block, condition, state in incoming]
        total = ways[0][0]
        for condition, _ in ways[1:]:
            total = self.terms.or_(total, condition)
        if self.shape.always_reached(node, above) and above in self.path:
            total = self.terms.const(1, 1)
        self.relative[node] = total
        path = self.path[node] = self.terms.and_(self.path[above], total)
        return None if path.is_const and path.value == 0 else merge(self.terms, ways)

    def _since(self, above: str, block: str, condition: Term) -> Term:
        """When control comes from `block` by an edge, given that it was at `above`, which dominates it."""
        current: str | None = block
        while current is not None and current != above:
            condition = self.terms.and_(self.relative[current], condition)
            current = self.shape.dominator[current]
        return condition


def execute(terms: Terms, side: Side, start: str, cuts: frozenset[str], state: State, memory: Memory) -> Region:
    """Execute the region from `start` (a cut point itself) up to `cuts`."""
    return _Runner(terms, side, start, cuts, memory).run(state)


def merge(terms: Terms, incoming: list[tuple[Term, State]]) -> State:
    """One state for several ways that meet: selects on their conditions where they differ. The last way needs no condition."""
    if len(incoming) == 1:
        return incoming[0][1]
    result = incoming[-1][1].copy()
    for path, other in reversed(incoming[:-1]):
        keys = dict.fromkeys(other.values)
        keys.update(dict.fromkeys(result.values))
        for key in keys:
            mine, theirs = result.values.get(key), other.values.get(key)
            if mine is theirs:
                continue
            known = mine if mine is not None else theirs
            assert known is not None
            mine, theirs = result.read(key, known.width), other.read(key, known.width)
            result.values[key] = terms.ite(path, theirs, mine)
    return result
