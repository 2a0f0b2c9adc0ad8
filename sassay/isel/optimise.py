"""Clean-ups over the SSA form: shared values, merged logic, moved invariants, dead operations."""

from __future__ import annotations

from sassay.isel.build import drop_unreachable, remove_trivial_phis
from sassay.isel.ir import Block, Graph, Op, Value, dominators, loops
from sassay.isel.numbers import MASK32, NEGATED, lut_apply, lut_depends

LEAVES = ("const", "param", "undef", "sr", "sp")


def optimise(graph: Graph, entry: Block, level: int) -> None:
    """All passes, in order. Level 0 only removes what the construction left over."""
    drop_unreachable(graph, entry)
    remove_trivial_phis(graph)
    dead_code(graph)
    if level == 0:
        return
    for _ in range(2):
        share(graph)
        remove_trivial_phis(graph)
        dead_code(graph)
        narrow_sums(graph)
        dead_code(graph)
        merge_logic(graph)
        merge_compares(graph)
        narrow(graph)
        dead_code(graph)
    hoist(graph)


def use_counts(graph: Graph) -> dict[Value, int]:
    count: dict[Value, int] = {}
    for b in graph.blocks:
        for op in (*b.phis, *b.ops):
            for v in op.uses():
                count[v] = count.get(v, 0) + 1
        if b.cond is not None:
            count[b.cond] = count.get(b.cond, 0) + 1
    return count


def dead_code(graph: Graph) -> None:
    """Removes operations without effect whose results reach none with one."""
    needed: set[Op] = set()
    work: list[Op] = []

    def want(op: Op) -> None:
        if op not in needed:
            needed.add(op)
            work.append(op)

    for b in graph.blocks:
        for op in b.ops:
            if op.effect and op.effect not in ("read", "warp"):
                want(op)
        if b.cond is not None:
            want(b.cond.op)
    while work:
        for v in work.pop().uses():
            want(v.op)
    for b in graph.blocks:
        b.ops = [op for op in b.ops if op in needed]
        b.phis = [op for op in b.phis if op in needed]


def share(graph: Graph) -> None:
    """Global value numbering over the dominator tree."""
    order = graph.blocks
    for i, b in enumerate(order):
        b.index = i
    idom = dominators(order)
    children: dict[Block, list[Block]] = {b: [] for b in order}
    for b in order[1:]:
        children[idom[b]].append(b)
    table: dict[tuple[object, ...], Op] = {}
    mapping: dict[Value, Value] = {}
    stack: list[tuple[Block, list[tuple[object, ...]] | None]] = [(order[0], None)]
    while stack:
        block, added = stack.pop()
        if added is not None:
            for key in added:
                del table[key]
            continue
        new: list[tuple[object, ...]] = []
        stack.append((block, new))
        kept: list[Op] = []
        for op in block.ops:
            op.args = [mapping.get(a, a) for a in op.args]
            if op.guard:
                op.guard = (mapping.get(op.guard[0], op.guard[0]), op.guard[1])
                op.tied = [mapping.get(a, a) for a in op.tied]
            if op.effect or op.guard:
                kept.append(op)
                continue
            key = (op.name, op.mods, tuple(a.uid for a in op.args), tuple(op.amods), op.attr, tuple(r.width for r in op.results))
            known = table.get(key)
            if known is not None:
                for mine, other in zip(op.results, known.results, strict=True):
                    mapping[mine] = other
            else:
                table[key] = op
                new.append(key)
                kept.append(op)
        block.ops = kept
        stack.extend((c, None) for c in children[block])
    graph.replace(mapping)


def merge_logic(graph: Graph) -> None:
    """LOP3 of LOP3s (and PLOP3 of PLOP3s) over at most three values become one, where the inner result has no other use."""
    count = use_counts(graph)
    for b in graph.blocks:
        for op in b.ops:
            if op.name not in ("lop3", "plop"):
                continue
            changed = True
            while changed:
                changed = False
                for i, a in enumerate(op.args):
                    if a.op.name == op.name and count.get(a) == 1 and lut_depends(int(op.attr[0]), i) and absorb(graph, op, i):  # type: ignore[call-overload]
                        for v in op.args:
                            count[v] = count.get(v, 0) + 1
                        changed = True
                        break


def absorb(graph: Graph, op: Op, position: int) -> bool:
    """Rewrites `op` with the operation behind one argument inlined, if three values suffice."""
    inner = op.args[position].op
    ones = (MASK32, 1)[op.name == "plop"]
    leaves: list[Value] = []

    def table(v: Value) -> int | None:
        if v.const == 0:
            return 0
        if v.const == ones:
            return 0xFF
        if v not in leaves:
            leaves.append(v)
        k = leaves.index(v)
        return (0xF0, 0xCC, 0xAA)[k] if k < 3 else None

    inner_lut, outer_lut = int(inner.attr[0]), int(op.attr[0])  # type: ignore[call-overload]
    tables = [table(v) if lut_depends(inner_lut, k) else 0 for k, v in enumerate(inner.args)]
    outer = [0 if not lut_depends(outer_lut, k) or k == position else table(v) for k, v in enumerate(op.args)]
    if len(leaves) > 3 or sum(v.const is not None for v in leaves) > 1:
        return False
    outer[position] = lut_apply(inner_lut, tables[0] or 0, tables[1] or 0, tables[2] or 0, 8)
    lut = lut_apply(outer_lut, outer[0] or 0, outer[1] or 0, outer[2] or 0, 8)
    order = sorted(range(len(leaves)), key=lambda k: leaves[k].const is not None)
    picked = [leaves[k] for k in order]
    if len(picked) == 3 and picked[2].const is not None:
        picked = [picked[0], picked[2], picked[1]]
        order = [order[0], order[2], order[1]]
    final = 0
    for k in range(8):
        old = sum((4, 2, 1)[leaf] for slot, leaf in enumerate(order) if k & (4, 2, 1)[slot])
        final |= (lut >> old & 1) << k
    padding = graph.const(0) if op.name == "lop3" else graph.const(1, 0)
    op.args = picked + [padding] * (3 - len(picked))
    op.amods = ["", "", ""]
    op.attr = (final,)
    return True


def merge_compares(graph: Graph) -> None:
    """A comparison ANDed, ORed or XORed with a predicate is one instruction."""
    count = use_counts(graph)
    simple = {0xC0: ("AND", False), 0xFC: ("OR", False), 0x3C: ("XOR", False), 0x30: ("AND", True), 0xF3: ("OR", True)}
    for b in graph.blocks:
        for op in b.ops:
            if op.name != "plop" or op.args[2].const is None:
                continue
            for lut, first, second in ((int(op.attr[0]), 0, 1), (swap_lut(int(op.attr[0])), 1, 0)):  # type: ignore[call-overload]
                p, q = op.args[first], op.args[second]
                if lut not in simple or count.get(p) != 1 or not free_compare(p.op) or q.const is not None:
                    continue
                name, inverted = simple[lut]
                take_compare(op, p.op, q, name, inverted)
                break


def swap_lut(lut: int) -> int:
    return sum((lut >> (((k & 4) >> 1) | ((k & 2) << 1) | (k & 1)) & 1) << k for k in range(8))


def free_compare(op: Op) -> bool:
    if op.effect or op.guard or len(op.results) != 1:
        return False
    if op.name in ("icmp", "icmp64"):
        return len(op.args) == 2
    return op.name in ("FSETP", "DSETP") and op.args[2].const == 1


def take_compare(op: Op, compare: Op, q: Value, name: str, inverted: bool) -> None:
    op.name = compare.name
    op.args = [compare.args[0], compare.args[1], q]
    op.amods = [*compare.amods[:2], "!" if inverted else ""]
    if compare.name in ("icmp", "icmp64"):
        op.attr, op.mods = (compare.attr[0], compare.attr[1], name), ()
    else:
        op.attr, op.mods = (), (*compare.mods[:-1], name)


def narrow(graph: Graph) -> None:
    """Wide products of which only the low word is read become narrow ones; negated conditions turn into negated guards."""
    parts: dict[Value, set[tuple[object, ...]]] = {}
    for b in graph.blocks:
        for op in (*b.phis, *b.ops):
            for v in op.uses():
                if v.op.name == "mulw":
                    parts.setdefault(v, set()).add((op.attr if op.name == "part" else (), v.width, op.results[0].width if op.results else 0))
    mapping: dict[Value, Value] = {}
    for b in graph.blocks:
        for op in b.ops:
            if op.name == "part" and op.attr == (0,) and op.results[0].width == 1 and op.args[0].op.name == "mulw":
                if parts[op.args[0]] == {((0,), 2, 1)}:
                    product = op.args[0].op
                    op.name, op.attr, op.args, op.amods = "imul", (), list(product.args), ["", ""]
    graph.replace(mapping)
    for b in graph.blocks:
        while b.cond is not None and is_not(b.cond):
            b.cond, b.negated = b.cond.op.args[0], not b.negated
        for op in b.ops:
            while op.guard and is_not(op.guard[0]):
                op.guard = (op.guard[0].op.args[0], not op.guard[1])
            for i, a in enumerate(op.args):
                if a.width == 0 and is_not(a) and op.name != "plop":
                    op.args[i] = a.op.args[0]
                    op.amods[i] = "" if op.amods[i] == "!" else "!"


def narrow_sums(graph: Graph) -> None:
    """64-bit sums and phis of which only the low word is ever read become 32-bit ones."""
    users: dict[Value, list[tuple[Op, int]]] = {}
    for b in graph.blocks:
        for op in (*b.phis, *b.ops):
            for i, v in enumerate(op.args):
                users.setdefault(v, []).append((op, i))
            for v in op.tied:
                users.setdefault(v, []).append((op, -1))
    candidates = {r for b in graph.blocks for op in (*b.phis, *b.ops) if op.name in ("phi", "add64") for r in op.results if r.width == 2}
    low = set(candidates)
    changed = True
    while changed:
        changed = False
        for v in list(low):
            for op, i in users.get(v, []):
                reads_low = op.name == "part" and op.attr == (0,) and op.results[0].width == 1
                if i < 0 or not (reads_low or (op.name in ("phi", "add64") and op.results[0] in low)):
                    low.discard(v)
                    changed = True
                    break
    if not low:
        return
    mapping: dict[Value, Value] = {}
    for v in sorted(low, key=lambda q: q.uid):
        v.width = 1
    for b in graph.blocks:
        for phi in b.phis:
            if phi.results[0] in low:
                for k, (a, p) in enumerate(zip(phi.args, b.preds, strict=True)):
                    phi.args[k] = low_word(graph, a, low, p, len(p.ops))
        k = 0
        while k < len(b.ops):
            op = b.ops[k]
            if op.name == "add64" and op.results[0] in low:
                before = len(b.ops)
                for i in range(2):
                    op.args[i] = low_word(graph, op.args[i], low, b, k)
                k += len(b.ops) - before
                op.name = "iadd"
            elif op.name == "part" and op.args[0] in low:
                mapping[op.results[0]] = op.args[0]
            k += 1
    graph.replace(mapping)


def low_word(graph: Graph, v: Value, low: set[Value], block: Block, at: int) -> Value:
    """The low word of an argument of a narrowed operation, as a new part before position `at` where it is not at hand."""
    if v in low:
        return v
    if v.const is not None:
        return graph.const(v.const)
    if v.op.name == "undef":
        return graph.leaf("undef", 1)
    if v.op.name == "param":
        return graph.leaf("param", 1, *v.op.attr)
    if v.op.name == "pack" and v.op.args[0].width == 1:
        return v.op.args[0]
    op = graph.make("part", (), [v], None, (1,), (0,))
    op.block = block
    block.ops.insert(at, op)
    return op.results[0]


def is_not(v: Value) -> bool:
    return v.op.name == "plop" and v.op.attr == (0x0F,)


def negated_compare(op: Op) -> tuple[object, ...]:
    return (NEGATED[str(op.attr[0])], *op.attr[1:])


def hoist(graph: Graph) -> None:
    """Moves invariant operations out of loops, to the end of the block that dominates the loop's header. Predicates stay: there are few."""
    order = graph.blocks
    for i, b in enumerate(order):
        b.index = i
    idom = dominators(order)
    inner = loops(order, idom)
    for b in order:
        if b not in inner:
            continue
        kept: list[Op] = []
        for op in b.ops:
            place: Block | None = None
            if not op.effect and not op.guard and op.name not in ("pack", "part", "half", "QSPC", "CS2R") and all(r.width for r in op.results):
                loop = inner.get(b)
                while loop is not None and all(a.op.name in LEAVES or (a.op.block is not None and a.op.block not in loop.blocks) for a in op.args):
                    place = idom[loop.header]
                    loop = loop.parent
            if place is not None and place is not b:
                op.block = place
                place.ops.append(op)
            else:
                kept.append(op)
        b.ops = kept
