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
    """A way out of a block: to a label, when `condition` (path included) holds."""

    target: str
    condition: Term


class Side(Protocol):
    """A program that can be executed block by block."""

    def successors(self, label: str) -> Iterable[str]:
        """Labels that control may reach next; EXIT among them where the program may end."""
        ...

    def execute(self, label: str, state: State, condition: Term, memory: Memory, trace: Trace) -> list[Edge]:
        """Run one block under a path condition, changing `state`, `memory` and `trace`."""
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


def execute(terms: Terms, side: Side, start: str, cuts: frozenset[str], state: State, memory: Memory) -> Region:
    """Execute the region from `start` (a cut point itself) up to `cuts`."""
    trace = Trace()
    arriving: dict[str, list[tuple[Term, State]]] = {start: [(terms.const(1, 1), state)]}
    blocks = order(side, start, cuts)
    exits: dict[str, list[tuple[Term, State]]] = {}
    inside = set(blocks)
    for label in blocks:
        incoming = arriving.pop(label, [])
        if not incoming:
            continue
        condition, merged = merge(terms, incoming)
        if condition.is_const and condition.value == 0:
            continue
        edges = side.execute(label, merged, condition, memory, trace)
        for position, edge in enumerate(edges):
            if edge.condition.is_const and edge.condition.value == 0:
                continue
            into = arriving if edge.target in inside and edge.target not in cuts and edge.target != start else exits
            last = position == len(edges) - 1
            into.setdefault(edge.target, []).append((edge.condition, merged if last else merged.copy()))
    return Region({label: Exit(*merge(terms, incoming)) for label, incoming in exits.items()}, memory, trace)


def merge(terms: Terms, incoming: list[tuple[Term, State]]) -> tuple[Term, State]:
    """One state for several paths that meet: selects on their conditions where they differ."""
    condition, state = incoming[-1]
    if len(incoming) == 1:
        return condition, state
    result = state.copy()
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
        condition = terms.or_(condition, path)
    return condition, result
