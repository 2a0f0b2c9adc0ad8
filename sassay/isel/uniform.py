"""Which values and branches are the same for all threads of a warp, which blocks run convergently, and where threads meet again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sassay.errors import UnsupportedError
from sassay.isel.ir import Block, Graph, Op, Value, common_dominator, dominators, link, postdominators

UNIFORM_REGISTERS = ("SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SR_CgaCtaId", "SR_SMEMSZ", "SR_SWINHI", "SR_CgaSize")
DIVERGENT_OPS = ("load", "atomic", "ATOMS", "SHFL", "MATCH", "LDSM", "MOVM", "CS2R", "B2R", "ELECT", "sp")


@dataclass(eq=False, slots=True)
class Divergence:
    """`values` may differ between threads; `branches` are blocks that end in a branch on such a value; `blocks` may run with part of a warp."""

    values: set[Value]
    branches: set[Block]
    blocks: set[Block]


def is_stub(b: Block) -> bool:
    """A block that only leaves the kernel: branches to it become predicated EXITs and split nothing."""
    return b.term == "exit" and not b.ops and not b.phis


def live_successors(b: Block) -> list[Block]:
    some = [s for s in b.succs if not is_stub(s)]
    return some or b.succs


def region(start: Block, join: Block | None) -> set[Block]:
    """Blocks that a branch may reach before the join."""
    out: set[Block] = set()
    work = [s for s in live_successors(start) if s is not join]
    while work:
        b = work.pop()
        if b in out:
            continue
        out.add(b)
        work.extend(s for s in live_successors(b) if s is not join and s not in out)
    return out


def join_points(graph: Graph) -> dict[Block, Block | None]:
    """Immediate post-dominators, where edges to stubs do not count."""
    order = graph.blocks
    saved = [b.succs for b in order]
    for b in order:
        b.succs = live_successors(b)
    try:
        return postdominators(order)
    finally:
        for b, s in zip(order, saved, strict=True):
            b.succs = s


def analyse(graph: Graph) -> Divergence:
    order = graph.blocks
    for i, b in enumerate(order):
        b.index = i
    joins = join_points(graph)
    users: dict[Value, list[Op]] = {}
    conditions: dict[Value, list[Block]] = {}
    for b in order:
        for op in (*b.phis, *b.ops):
            for v in op.uses():
                users.setdefault(v, []).append(op)
        if b.cond is not None:
            conditions.setdefault(b.cond, []).append(b)
    result = Divergence(set(), set(), set())
    work: list[Value] = []

    def mark(v: Value) -> None:
        if v not in result.values:
            result.values.add(v)
            work.append(v)

    def mark_branch(b: Block) -> None:
        if b in result.branches or len(set(live_successors(b))) < 2:
            return
        result.branches.add(b)
        join = joins[b]
        blocks = region(b, join)
        result.blocks |= blocks
        merged = blocks | ({join} if join is not None else set())
        for m in merged:
            for phi in m.phis:
                mark(phi.results[0])
        if b in blocks:  # a loop that threads leave at different times
            for m in blocks:
                for op in (*m.phis, *m.ops):
                    for r in op.results:
                        if any(u.block not in blocks for u in users.get(r, [])) or any(c not in blocks for c in conditions.get(r, [])):
                            mark(r)

    for v in users.keys() | conditions.keys():
        if v.op.name == "sr" and v.op.attr[0] not in UNIFORM_REGISTERS:
            mark(v)
        elif v.op.name in DIVERGENT_OPS:
            mark(v)
    while work:
        v = work.pop()
        for op in users.get(v, []):
            if op.name not in ("VOTE", "REDUX", "CREDUX"):
                for r in op.results:
                    mark(r)
        for b in conditions.get(v, []):
            mark_branch(b)
    return result


@dataclass(eq=False, slots=True)
class Meeting:
    """Threads that part after `start` meet in `join`: BSSY at the end of the one, BSYNC at the begin of the other."""

    start: Block
    join: Block
    blocks: set[Block]
    barrier: int = -1


def meetings(graph: Graph, divergence: Divergence, converted: Collection[Block] = ()) -> list[Meeting]:
    """One meeting for all divergent branches with the same join and a common place to start from; inner ones need none of their own."""
    order = graph.blocks
    idom = dominators(order)
    joins = join_points(graph)
    by_join: dict[Block, list[Block]] = {}
    for b in order:
        join = joins[b]
        if b in divergence.branches and b not in converted and join is not None and not is_stub(join):
            by_join.setdefault(join, []).append(b)
    out = [Meeting(before, after, {inside}) for before, inside, after in graph.exclusive]
    for join, branches in by_join.items():
        start = branches[0]
        for b in branches[1:]:
            start = common_dominator(idom, start, b)
        place = settle(start, join, idom, joins)
        if place is not None:
            out.append(Meeting(place, join, region(place, join)))
            continue
        for b in branches:
            place = settle(b, join, idom, joins)
            if place is not None:
                out.append(Meeting(place, join, region(place, join)))
            else:  # no place to start from: the threads may stay apart from here on
                divergence.blocks |= region(join, None) | {join}
    return out


def settle(start: Block, join: Block, idom: dict[Block, Block], joins: dict[Block, Block | None]) -> Block | None:
    """The nearest dominator of `start` outside any cycle that avoids the join, if the join lies on all its ways."""
    b = start
    while b in region(b, join):
        if idom[b] is b:
            return None
        b = idom[b]
    j = joins[b]
    seen = 0
    while j is not None and j is not join and seen < 10000:
        j = joins[j]
        seen += 1
    return b if j is join else None


def colour(found: list[Meeting]) -> None:
    """Barrier registers: meetings whose blocks overlap get different ones."""
    for m in found:
        taken = {o.barrier for o in found if o.barrier >= 0 and (o.blocks | {o.start, o.join}) & (m.blocks | {m.start, m.join})}
        m.barrier = next(i for i in range(len(found) + 1) if i not in taken)


def place_meetings(graph: Graph, found: list[Meeting]) -> None:
    """Puts BSSY and BSYNC into the graph. Ways into the join from outside the region do not pass the BSYNC: they get around a block of its own."""
    colour(found)
    if any(m.barrier > 15 for m in found):
        raise UnsupportedError(f"'{graph.name}': more than 16 nested places where threads meet")
    for m in sorted(found, key=lambda q: len(q.blocks)):
        inside = m.blocks | {m.start}
        join = m.join
        if all(p in inside for p in join.preds):
            target = join
        else:
            target = graph.block(f"{join.label}.sync")
            split_join(graph, join, target, inside)
            for other in found:
                if other is not m and join in other.blocks:
                    other.blocks.add(target)
                elif other is not m and other.join is join and m.start in other.blocks:
                    other.blocks.add(target)
        sync = graph.make("BSYNC", (), [], None, (), (m.barrier,))
        sync.effect, sync.block = "order", target
        target.ops.insert(0, sync)
        start = graph.make("BSSY", (), [], None, (), (m.barrier, target))
        start.effect, start.block = "order", m.start
        m.start.ops.append(start)


def split_join(graph: Graph, join: Block, target: Block, inside: set[Block]) -> None:
    """Moves the edges from `inside` to a new block before `join`, with phis for what they bring."""
    moved = [i for i, p in enumerate(join.preds) if p in inside]
    kept = [i for i, p in enumerate(join.preds) if p not in inside]
    for phi in join.phis:
        inner = graph.make("phi", (), [phi.args[i] for i in moved], None, (phi.results[0].width,))
        inner.block = target
        target.phis.append(inner)
        phi.args = [phi.args[i] for i in kept] + [inner.results[0]]
        phi.amods = [""] * len(phi.args)
    target.preds = [join.preds[i] for i in moved]
    for p in dict.fromkeys(target.preds):
        p.succs = [target if s is join else s for s in p.succs]
    join.preds = [join.preds[i] for i in kept]
    target.term = "jump"
    link(target, join)
    graph.blocks.insert(graph.blocks.index(join), target)
