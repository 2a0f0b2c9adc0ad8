"""Copies that need not be: a value made under a guard only to be copied under it is made in the copy's destination."""

from __future__ import annotations

from sassay.regalloc.graph import clusters, coalesce, interference
from sassay.sass.effects import effects, shape, slot_register
from sassay.sass.function import Function, Node
from sassay.sass.model import VIRTUAL, File, Reg
from sassay.sass.rename import rename, rename_slots
from sassay.sass.units import is_copy, live_out, number

Key = tuple[File, int]


def fold_guarded_copies(fn: Function) -> None:
    """`@P op x; @P MOV d, x` becomes `@P op d` where x is made and used nowhere else and nothing touches d or P in between. In place."""
    inside = {(f, first + k) for (f, first), width in fn.tuples.items() for k in range(width)}
    defs: dict[Key, int] = {}
    uses: dict[Key, int] = {}
    for block in fn.blocks:
        for node in block.nodes:
            seen = effects(node.instruction)
            for table, accesses in ((defs, seen.defs), (uses, seen.uses)):
                for f, first, width in accesses:
                    for k in range(first, first + width):
                        table[f, k] = table.get((f, k), 0) + 1
    for block in fn.blocks:
        made: dict[Key, Node] = {}
        touched: dict[Key, int] = {}
        place: dict[int, int] = {}
        gone: set[int] = set()
        for n, node in enumerate(block.nodes):
            pair = is_copy(node) if not node.instruction.guard.is_zero else None
            if pair is not None and _foldable(node, pair, made, touched, place, defs, uses, inside):
                maker = made[pair[1].file, pair[1].index]
                slot = next(s for s in shape(maker.instruction).defs if slot_register(maker.instruction, s) == pair[1])
                maker.instruction = rename_slots(maker.instruction, {(slot.operand, slot.part): pair[0].index})
                gone.add(n)
                touched[pair[0].file, pair[0].index] = n
                continue
            seen = effects(node.instruction)
            for accesses in (seen.defs, seen.uses):
                for f, first, width in accesses:
                    for k in range(first, first + width):
                        touched[f, k] = n
            if not node.instruction.guard.is_zero:
                for f, first, width in seen.defs:
                    if width == 1 and first >= VIRTUAL:
                        made[f, first] = node
                        place[id(node)] = n
            for f, first, width in seen.defs:
                if f in (File.P, File.UP):
                    for k in range(first, first + width):
                        for key in [key for key, m in made.items() if (m.instruction.guard.file, m.instruction.guard.index) == (f, k)]:
                            del made[key]
        block.nodes = [node for n, node in enumerate(block.nodes) if n not in gone]


def _foldable(
    node: Node, pair: tuple[Reg, Reg], made: dict[Key, Node], touched: dict[Key, int], place: dict[int, int], defs: dict[Key, int],
    uses: dict[Key, int], inside: set[Key],
) -> bool:  # fmt: skip
    to, source = (pair[0].file, pair[0].index), (pair[1].file, pair[1].index)
    maker = made.get(source)
    if maker is None or source in inside or defs.get(source) != 1 or uses.get(source) != 1 or to[1] < VIRTUAL:
        return False
    if maker.instruction.guard != node.instruction.guard or maker.instruction.opcode in ("HMMA", "IMMA", "DMMA"):
        return False
    return touched.get(to, -1) < place[id(maker)]


def coalesce_copies(fn: Function) -> None:
    """Gives both ends of a copy one virtual register wherever they are never alive with different values, and drops the copy. In place.

    Done before scheduling, so that pressure is counted without copies and nothing is ordered around them.
    """
    units = number(fn)
    graph = interference(fn, units, live_out(fn, units))
    found = clusters(units, graph)
    coalesce(units, graph, found)
    names: dict[Key, int] = {}
    for c, rows in enumerate(found.members):
        members = [(u, s) for s, row in enumerate(rows) for u in row]
        if len({units.group_of[u] for u, _ in members}) < 2:
            continue
        file = units.file[members[0][0]]
        base = fn.new(file, len(rows))
        assert found.of[members[0][0]] == c
        for u, s in members:
            names[file, units.index[u]] = base + s
            fn.tuples.pop((file, units.index[u]), None)
    if not names:
        return
    for block in fn.blocks:
        kept = []
        for node in block.nodes:
            node.instruction = rename(node.instruction, lambda file, index: names.get((file, index), index))
            pair = is_copy(node)
            if pair is None or pair[0].index != pair[1].index:
                kept.append(node)
        block.nodes = kept
    moved = fn.notes.setdefault("renamed", {})
    assert isinstance(moved, dict)
    moved.update(names)
