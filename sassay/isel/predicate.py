"""Which short branches become predicated code: triangles and diamonds whose sides are a few simple operations."""

from __future__ import annotations

from dataclasses import dataclass

from sassay.isel.ir import Block, Graph, Op
from sassay.isel.uniform import is_stub

LIMIT = 6
"""Operations that a side may have; ptxas predicates up to about as many."""

FREE = ("pack", "part", "half")
ALLOWED_EFFECTS = ("load", "store", "atomic", "reduce", "ATOMS")
NOT_GUARDED = ("REDUX", "CREDUX", "ELECT", "LDSM", "STSM", "LDGSTS", "QSPC")


@dataclass(eq=False, slots=True)
class Conversion:
    """A branch at the end of a block that becomes guards on the operations of `sides` (block, runs when the condition is false), before `join`."""

    join: Block
    sides: list[tuple[Block, bool]]


def conversions(graph: Graph) -> dict[Block, Conversion]:
    """The branches to convert, by the block that they end; no block takes part in two."""
    found: dict[Block, Conversion] = {}
    used: set[Block] = set()
    for a in graph.blocks:
        made = shape(a)
        if made is None:
            continue
        taking = [b for b, _ in made.sides]
        if a in used or any(b in used or b in found for b in taking):
            continue
        found[a] = made
        used.update(taking)
        used.add(a)
    return found


def shape(a: Block) -> Conversion | None:
    if a.term != "cond" or a.succs[0] is a.succs[1]:
        return None
    yes, no = a.succs
    sides: list[tuple[Block, bool]] = []
    join: Block | None = None
    if is_side(yes, a) and is_side(no, a) and yes.succs[0] is no.succs[0]:
        join, sides = yes.succs[0], [(yes, a.negated), (no, not a.negated)]
    elif is_side(yes, a) and yes.succs[0] is no:
        join, sides = no, [(yes, a.negated)]
    elif is_side(no, a) and no.succs[0] is yes:
        join, sides = yes, [(no, not a.negated)]
    if join is None or join is a or is_stub(join) or any(phi.results[0] is a.cond for phi in join.phis):
        return None
    if any(s.term != "jump" for s, _ in sides) or len(join.phis) > LIMIT:
        return None
    return Conversion(join, sides)


def is_side(b: Block, a: Block) -> bool:
    if b.preds != [a] or b.term != "jump" or b.phis or b.cold:
        return False
    return sum(weight(op) for op in b.ops) <= LIMIT


def weight(op: Op) -> int:
    if op.guard is not None or op.name in NOT_GUARDED or (op.effect and op.name not in ALLOWED_EFFECTS):
        return LIMIT + 1
    if op.name in FREE:
        return 0
    if op.name in ("add64", "icmp64"):
        return 2
    if op.name in ("DADD", "DMUL", "DFMA", "MUFU", "IMMA", "HMMA", "DMMA", "F2I", "I2F"):
        return 3
    return 1
