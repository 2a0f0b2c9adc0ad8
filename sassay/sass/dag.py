"""The dependence graph of a block.

Array form for the scheduler (`successors`, `waiting`), and the same as a `networkx.DiGraph` with edge attributes `kind` and `latency` for everything
else. Kinds: "raw", "war", "waw" (registers), "memory" (order of accesses that may touch the same bytes), "order" (barriers, control flow).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sassay.sass.cfg import ENDS
from sassay.sass.effects import Effects, effects
from sassay.sass.function import MemoryFact, Node
from sassay.sass.model import File

if TYPE_CHECKING:
    import networkx

Latency = Callable[[int, int, str, File, int], int]
"""(producer number, consumer number, "raw" | "war" | "waw", file, position of the use in the consumer, -1 for its guard) -> cycles."""

WALLS = frozenset(
    {"BSSY", "BSYNC", "WARPSYNC", "BREAK", "BMOV", "CALL", "YIELD", "NANOSLEEP", "ENDCOLLECTIVE", "BPT", "PREEXIT", "USETMAXREG", "ELECT"}
)
"""Nothing moves over these: they change which lanes run, or when."""
MEMORY_WALLS = frozenset(
    {"BAR", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "CCTLT", "DEPBAR", "LDGDEPBAR", "FENCE", "B2R", "ACQBULK", "UCGABAR_ARV",
     "UCGABAR_WAIT", "ARRIVES", "SYNCS", "WARPGROUP", "PMTRIG"}
)  # fmt: skip
"""No memory access moves over these."""
ACCESSES = frozenset(
    {"LDG", "LD", "LDS", "LDL", "STG", "ST", "STS", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS", "REDAS", "LDGSTS", "LDSM",
     "STSM", "LDTM", "STTM"}
)  # fmt: skip
_UNKNOWN = MemoryFact("generic", reads=True, writes=True, strong=True)
_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
LONG_LIST = 48
"""Accesses of one base remembered one by one; past that, an access is ordered after all of them and stands for them."""


@dataclass(slots=True)
class Dag:
    """Nodes 0..n-1 in program order. `successors[i]`: (j, latency) pairs, one per dependent node; `waiting[j]`: number of distinct predecessors."""

    count: int
    successors: list[dict[int, int]]
    waiting: list[int]
    kinds: dict[tuple[int, int], str] = field(default_factory=dict)

    def heights(self, tail: Sequence[int]) -> list[int]:
        """Longest latency from each node to the end of the block; `tail[i]` is the node's own latency to the outside."""
        height = list(tail)
        for i in range(self.count - 1, -1, -1):
            h = height[i]
            for j, latency in self.successors[i].items():
                if latency + height[j] > h:
                    h = latency + height[j]
            height[i] = h
        return height

    def graph(self) -> networkx.DiGraph:
        """The graph as a networkx.DiGraph."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(range(self.count))
        for i, row in enumerate(self.successors):
            for j, latency in row.items():
                graph.add_edge(i, j, latency=latency, kind=self.kinds.get((i, j), "order"))
        return graph


class _Builder:
    def __init__(self, nodes: Sequence[Node], seen: Sequence[Effects], latency: Latency) -> None:
        self.nodes = nodes
        self.seen = seen
        self.latency = latency
        self.successors: list[dict[int, int]] = [{} for _ in nodes]
        self.kinds: dict[tuple[int, int], str] = {}
        self.stores: dict[tuple[str, str | None], list[int]] = {}
        self.loads: dict[tuple[str, str | None], list[int]] = {}
        self.strong: int = -1
        self.wall: int = -1
        self.memory_wall: int = -1
        self.since_wall: list[int] = []
        self.accesses: list[int] = []

    def edge(self, i: int, j: int, cycles: int, kind: str) -> None:
        row = self.successors[i]
        old = row.get(j)
        if old is None or cycles > old:
            row[j] = cycles
            self.kinds[i, j] = kind

    def registers(self) -> None:
        writer: dict[tuple[File, int], list[int]] = {}
        readers: dict[tuple[File, int], list[tuple[int, int]]] = {}
        latency, edge = self.latency, self.edge
        for j, seen in enumerate(self.seen):
            for (file, first, width), position in zip(seen.uses, seen.use_positions, strict=True):
                for k in range(first, first + width):
                    for i in writer.get((file, k), ()):
                        edge(i, j, latency(i, j, "raw", file, position), "raw")
                    readers.setdefault((file, k), []).append((j, position))
            guard = self.nodes[j].instruction.guard
            partial = not guard.is_zero or guard.invert
            for file, first, width in seen.defs:
                for k in range(first, first + width):
                    key = (file, k)
                    for i in writer.get(key, ()):
                        edge(i, j, latency(i, j, "waw", file, 0), "waw")
                    for i, position in readers.get(key, ()):
                        if i != j:
                            edge(i, j, latency(i, j, "war", file, position), "war")
                    if partial:
                        writer[key] = [*writer.get(key, ()), j]
                    else:
                        writer[key] = [j]
                        readers[key] = []

    def memory(self) -> None:
        last = len(self.nodes) - 1
        for j, node in enumerate(self.nodes):
            opcode = node.instruction.opcode
            fact = node.memory
            if fact is None and opcode in ACCESSES:
                fact = _UNKNOWN
            if (opcode in ENDS and j == last) or opcode in WALLS:
                for i in self.since_wall:
                    self.edge(i, j, 0 if j == last else 1, "order")
                if self.wall >= 0:
                    self.edge(self.wall, j, 1, "order")
                self.wall = j
                self.since_wall = []
                self._close(j)
                continue
            if self.wall >= 0:
                self.edge(self.wall, j, 1, "order")
            self.since_wall.append(j)
            clock = opcode in ("CS2R", "S2R", "S2UR") and getattr(node.instruction.operands[-1], "text", "").startswith(_CLOCKS)
            if opcode in MEMORY_WALLS or clock or (fact is not None and fact.fence):
                for i in self.accesses:
                    self.edge(i, j, 1, "order")
                if self.memory_wall >= 0:
                    self.edge(self.memory_wall, j, 1, "order")
                self._close(j)
            elif fact is not None and not fact.readonly:
                self._access(j, fact)

    def _close(self, j: int) -> None:
        self.accesses = []
        self.stores.clear()
        self.loads.clear()
        self.strong = -1
        self.memory_wall = j

    def _access(self, j: int, fact: MemoryFact) -> None:
        if self.memory_wall >= 0:
            self.edge(self.memory_wall, j, 1, "order")
        self.accesses.append(j)
        if fact.strong:
            if self.strong >= 0:
                self.edge(self.strong, j, 1, "memory")
            self.strong = j
        self._against(j, fact, self.stores)
        if fact.writes:
            self._against(j, fact, self.loads)
            if fact.base is None:  # it may touch all of its space: whatever comes later and meets one of those meets this one too
                for table in (self.stores, self.loads):
                    for key in [k for k in table if fact.space in ("generic", k[0])]:
                        del table[key]
        for table, taking in ((self.stores, fact.writes), (self.loads, fact.reads)):
            if taking:
                row = table.setdefault((fact.space, fact.base), [])
                row.append(j)
                if len(row) > LONG_LIST:
                    for i in row[:-1]:
                        self.edge(i, j, 1, "memory")
                    table[fact.space, None] = [*table.get((fact.space, None), ()), j]
                    del row[:]

    def _against(self, j: int, fact: MemoryFact, table: dict[tuple[str, str | None], list[int]]) -> None:
        for (space, base), row in table.items():
            if space != fact.space and "generic" not in (space, fact.space):
                continue
            known = base is not None and base == fact.base and space == fact.space
            for i in row:
                other = self.nodes[i].memory
                if known and other is not None and other.size and fact.size and (
                    other.offset + other.size <= fact.offset or fact.offset + fact.size <= other.offset
                ):
                    continue
                self.edge(i, j, 1, "memory")


def build(nodes: Sequence[Node], latency: Latency, seen: Sequence[Effects] | None = None) -> Dag:
    """The dependence graph of a block's nodes. `seen`: their effects, where the caller has them already."""
    builder = _Builder(nodes, seen if seen is not None else [effects(n.instruction) for n in nodes], latency)
    builder.registers()
    builder.memory()
    waiting = [0] * len(nodes)
    for row in builder.successors:
        for j in row:
            waiting[j] += 1
    return Dag(len(nodes), builder.successors, waiting, builder.kinds)
