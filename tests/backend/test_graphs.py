"""Flow graphs of decoded code, and dependence graphs of blocks."""

from __future__ import annotations

import networkx
import pytest
from made import function

from sassay.errors import SassError
from sassay.sass import cfg, dag
from sassay.sass.function import MemoryFact
from sassay.sass.text import parse_instruction


def code(text: str) -> list:  # type: ignore[type-arg]
    return [parse_instruction(line.strip()) for line in text.strip().splitlines()]


def test_guarded_exits_fall_through_and_loops_close() -> None:
    flow = cfg.build(code("MOV R0, RZ\n@P0 EXIT\nIADD3 R0, R0, 0x1, RZ\n@P1 BRA 0x20\nEXIT\nBRA 0x50"))
    assert [(b.start, b.end) for b in flow.blocks] == [(0, 2), (2, 4), (4, 5), (5, 6)]
    assert [b.successors for b in flow.blocks] == [[1], [1, 2], [], [3]]
    assert flow.blocks[1].predecessors == [0, 1]


def test_branches_out_of_the_function_and_without_tables_are_refused() -> None:
    with pytest.raises(SassError, match="target"):
        cfg.build(code("BRA 0x400\nEXIT"))
    with pytest.raises(SassError, match="not known"):
        cfg.build(code("BRX R2 -0x10\nEXIT"))


def edges(text: str, facts: dict[int, MemoryFact] | None = None) -> networkx.DiGraph:
    nodes = function(text + "\nEXIT").blocks[0].nodes
    for i, fact in (facts or {}).items():
        nodes[i].memory = fact
    return dag.build(nodes, lambda *_: 3).graph()


def test_register_dependences_have_their_kinds() -> None:
    graph = edges("FADD R4, R2, R3\nFADD R5, R4, R3\nFADD R4, R6, R6\nFADD R7, R4, R4")
    assert graph.edges[0, 1]["kind"] == "raw" and graph.edges[0, 1]["latency"] == 3
    assert graph.edges[1, 2]["kind"] == "war"
    assert graph.edges[0, 2]["kind"] == "waw"
    assert not graph.has_edge(0, 3) and networkx.is_directed_acyclic_graph(graph)


def test_accesses_are_ordered_only_where_they_may_meet() -> None:
    def access(offset: int, writes: bool, space: str = "global", base: str | None = "a") -> MemoryFact:
        return MemoryFact(space, not writes, writes, base, offset, 4)

    text = "STG.E desc[UR4][R2.64], R8\nLDG.E R9, desc[UR4][R2.64+0x4]\nLDG.E R10, desc[UR4][R2.64]\nLDS R11, [R3]\nLDG.E R12, desc[UR4][R6.64]"
    facts = {0: access(0, True), 1: access(4, False), 2: access(0, False), 3: access(0, False, "shared"), 4: access(0, False, base="b")}
    graph = edges(text, facts)
    assert [graph.has_edge(0, i) for i in (1, 2, 3, 4)] == [False, True, False, True]


def test_nothing_moves_over_barriers() -> None:
    graph = edges("STS [R3], R8\nBAR.SYNC.DEFER_BLOCKING 0x0\nLDS R9, [R3]\nFADD R1, R2, R2")
    assert graph.has_edge(0, 1) and graph.has_edge(1, 2) and not graph.has_edge(1, 3)
