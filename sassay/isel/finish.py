"""The end of selection: leaves get their loads, phis their copies, blocks their order and transfers."""

from __future__ import annotations

from dataclasses import replace

from sassay.isel.emit import Emitter, copy_predicate
from sassay.isel.ir import Block, Graph, Loop, Value, common_dominator, dominators, link, loops
from sassay.isel.predicate import Conversion
from sassay.isel.uniform import Divergence, is_stub
from sassay.sass import function as sass
from sassay.sass.function import Function, Node
from sassay.sass.model import ALWAYS, R_ZERO, Const, File, Imm, Instruction, Name, Operand, Reg, Target

END = 1 << 30


def split_critical_edges(graph: Graph, divergence: Divergence) -> None:
    """An edge from a branch to a block with phis gets a block for its copies, except where they may stand before the branch."""
    order = graph.blocks
    for i, b in enumerate(order):
        b.index = i
    inner = loops(order, dominators(order))
    outside = used_outside(graph, inner)
    for s in list(graph.blocks):
        if not s.phis or len(s.preds) < 2:
            continue
        for i, p in enumerate(s.preds):
            if len([q for q in p.succs if not is_stub(q)]) < 2 or before_branch(p, s, inner, outside):
                continue
            middle = graph.block(f"{s.label}.edge")
            graph.blocks.remove(middle)
            graph.blocks.insert(graph.blocks.index(p) + 1, middle)
            p.succs[p.succs.index(s)] = middle
            middle.preds.append(p)
            middle.succs.append(s)
            s.preds[i] = middle
            middle.cold = p.cold or s.cold
            if p in divergence.branches or p in divergence.blocks:
                divergence.blocks.add(middle)


FOLDED = ("part", "pack", "iadd", "add64", "fneg", "fabs", "fneg64", "fabs64", "plop")
"""Operations that may disappear into users in other blocks: address sums, signs, words, negated predicates."""


def used_outside(graph: Graph, inner: dict[Block, Loop]) -> set[Value]:
    """Phis of loop headers that are read outside the loop: themselves, or through operations that the emitter folds into their users."""
    out: set[Value] = set()
    seen: set[tuple[Value, Block]] = set()

    def see(v: Value, block: Block) -> None:
        if v.op.name == "phi" and v.op.block in inner:
            loop = inner[v.op.block]
            if v.op.block is loop.header and block not in loop.blocks:
                out.add(v)
        elif v.op.name in FOLDED and (v, block) not in seen:
            seen.add((v, block))
            for a in v.op.args:
                see(a, block)

    for b in graph.blocks:
        for op in (*b.phis, *b.ops):
            for v in op.uses():
                see(v, b)
        if b.cond is not None:
            see(b.cond, b)
    return out


def before_branch(p: Block, s: Block, inner: dict[Block, Loop], outside: set[Value]) -> bool:
    """A loop's last block may set the header's phis before it branches, if those are dead on the way out."""
    loop = inner.get(s)
    if loop is None or loop.header is not s or p not in loop.blocks or any(q in loop.blocks for q in p.succs if q is not s):
        return False
    return not any(phi.results[0] in outside or phi.results[0] is p.cond for phi in s.phis)


def layout(entry: Block, depth: dict[Block, int]) -> list[Block]:
    """Reverse postorder that keeps loops together (ways out are visited first, so they come last) with cold blocks at the end."""
    seen = {entry}
    post: list[Block] = []

    def order(b: Block) -> list[Block]:
        return sorted(b.succs, key=lambda s: depth.get(s, 0)) if len({depth.get(s, 0) for s in b.succs}) > 1 else list(b.succs)

    stack: list[tuple[Block, list[Block], int]] = [(entry, order(entry), 0)]
    while stack:
        b, succs, i = stack.pop()
        if i < len(succs):
            stack.append((b, succs, i + 1))
            if succs[i] not in seen:
                seen.add(succs[i])
                stack.append((succs[i], order(succs[i]), 0))
        else:
            post.append(b)
    post.reverse()
    return [b for b in post if not b.cold] + [b for b in post if b.cold]


def copies_for_edge(e: Emitter, pred: Block, succ: Block, position: int) -> list[Node]:
    """The parallel copy of one edge, in an order that reads before it overwrites."""
    e.at, e.op, e.out = (pred, END), None, []
    moves: list[tuple[Reg, Operand]] = []
    for phi in succ.phis:
        file, index = e.place[phi.results[0]]
        v = phi.args[position]
        if v.op.name == "undef":
            continue
        for word in range(max(1, v.width)):
            target = Reg(file, index + word)
            source = e.pred(v) if file is File.P else e.word_operand(v, word)
            if isinstance(source, Reg) and (source.file, source.index) == (file, index + word) and not source.invert:
                continue
            moves.append((target, source))
    return sequence(e.fn, moves)


def sequence(fn: Function, moves: list[tuple[Reg, Operand]]) -> list[Node]:
    out: list[Node] = []

    def key(o: Operand) -> tuple[File, int] | None:
        return (o.file, o.index) if isinstance(o, Reg) and not o.is_zero else None

    pending = list(moves)
    while pending:
        sources: dict[tuple[File, int], int] = {}
        for _, s in pending:
            k = key(s)
            if k is not None:
                sources[k] = sources.get(k, 0) + 1
        ready = [m for m in pending if sources.get((m[0].file, m[0].index), 0) == (1 if key(m[1]) == (m[0].file, m[0].index) else 0)]
        if not ready:
            target, source = pending[0]
            temp = Reg(target.file, fn.new(target.file))
            out.append(move(temp, Reg(target.file, target.index)))
            pending = [(t, replace_source(s, target, temp)) for t, s in pending]
            continue
        for target, source in ready:
            out.append(move(target, source))
        done = {id(m) for m in ready}
        pending = [m for m in pending if id(m) not in done]
    return out


def replace_source(s: Operand, old: Reg, new: Reg) -> Operand:
    if isinstance(s, Reg) and (s.file, s.index) == (old.file, old.index):
        return Reg(new.file, new.index, invert=s.invert)
    return s


def move(target: Reg, source: Operand) -> Node:
    if target.file is File.P:
        assert isinstance(source, Reg)
        return copy_predicate(target.index, source)
    return Node(Instruction("MOV", (), (target, source)), remat=isinstance(source, Imm) or source == R_ZERO)


def insert_leaves(e: Emitter) -> dict[Block, dict[int, list[Node]]]:
    """Loads of parameters, special registers, constants and the descriptor: block -> index of the operation to stand before -> nodes."""
    out: dict[Block, dict[int, list[Node]]] = {}

    def put(block: Block, index: int, nodes: list[Node]) -> None:
        index = min(index, len(block.ops))
        out.setdefault(block, {}).setdefault(index, []).extend(nodes)

    for (v, file), uses in e.leaf_uses.items():
        block, index = leaf_site(e, uses, file is File.UR)
        put(block, index, [leaf_load(e, v, Reg(file, e.leaf_place[v, file]))])
    if e.descriptor is not None:
        block, index = leaf_site(e, e.descriptor_uses, True)
        source = Const(0, e.chip.constants.global_descriptor)
        put(block, index, [uniform_load(e, Reg(File.UR, e.descriptor), source, 2)])
    for (block, v), (register, index) in e.constants.items():
        put(block, index, constant_nodes(v, register))
    return out


def leaf_site(e: Emitter, uses: list[tuple[Block, int]], uniform: bool) -> tuple[Block, int]:
    """A place that dominates all uses, outside loops, and for uniform registers where the whole warp passes."""
    block = uses[0][0]
    for b, _ in uses[1:]:
        block = common_dominator(e.idom, block, b)
    place = e.loop_exit_place(block)
    while uniform and place in e.divergence.blocks:
        place = e.loop_exit_place(e.idom[place])
    return place, min((i for b, i in uses if b is place), default=END)


def uniform_load(e: Emitter, target: Reg, source: Const, width: int) -> Node:
    return Node(Instruction("LDCU" if e.chip.has("ldcu") else "ULDC", ("64",) if width == 2 else (), (target, source)), remat=True)


def leaf_load(e: Emitter, v: Value, target: Reg) -> Node:
    if v.op.name == "sr":
        opcode = "S2R" if target.file is File.R else "S2UR"
        return Node(Instruction(opcode, (), (target, Name(str(v.op.attr[0])))))
    bank, offset = v.op.attr
    source = Const(int(bank), int(offset))  # type: ignore[call-overload]
    if target.file is File.UR:
        return uniform_load(e, target, source, v.width)
    if not source.offset:
        source = Const(source.bank, 0, R_ZERO)  # nvdisasm's spelling: an LDC without offset shows its index register
    return Node(Instruction("LDC", ("64",) if v.width == 2 else (), (target, source)), remat=True)


def constant_nodes(v: Value, register: int) -> list[Node]:
    assert v.const is not None
    if v.const == 0 and v.width == 2:
        return [Node(Instruction("CS2R", (), (Reg(File.R, register), Name("SRZ"))), remat=True)]
    out: list[Node] = []
    for word in range(v.width):
        c = (v.const >> (32 * word)) & 0xFFFFFFFF
        out.append(Node(Instruction("MOV", (), (Reg(File.R, register + word), Imm(c) if c else R_ZERO)), remat=True))
    return out


def build_blocks(e: Emitter, order: list[Block], depth: dict[Block, int], converted: dict[Block, Conversion]) -> None:
    """Fills fn.blocks in layout order; sides of converted branches follow their block under guards."""
    copies: dict[Block, list[Node]] = {}
    for b in order:
        for i, p in enumerate(b.preds):
            if b.phis:
                copies.setdefault(p, []).extend(copies_for_edge(e, p, b, i))
    leaves = insert_leaves(e)
    stubs = {b for b in order if is_stub(b) and b.preds}
    sides: dict[Block, list[tuple[Block, bool]]] = {}
    inlined: set[Block] = set()
    for a, c in converted.items():
        # Edges that were split for copies have become sides of their own.
        sides[a] = [(s, (s is a.succs[1]) != a.negated) for s in a.succs if s is not c.join]
        inlined.update(s for s, _ in sides[a])
    visible = [b for b in order if b not in stubs and b not in inlined]

    def nodes_of(b: Block) -> list[Node]:
        here = leaves.get(b, {})
        out: list[Node] = []
        for i, group in enumerate(e.lists.get(b, [])):
            out.extend(here.get(i, []))
            out.extend(group)
        out.extend(here.get(len(b.ops), []))
        out.extend(copies.get(b, []))
        return out

    for k, b in enumerate(visible):
        out = sass.Block(b.label, loop_depth=depth.get(b, 0))
        e.fn.blocks.append(out)
        out.nodes.extend(nodes_of(b))
        following = visible[k + 1] if k + 1 < len(visible) else None
        if b in converted:
            assert b.cond is not None
            for side, when_false in sides[b]:
                guard = e.pred(b.cond, when_false)
                for node in nodes_of(side):
                    assert node.instruction.guard == ALWAYS, "an instruction of a predicated side has a guard of its own"
                    if not node.instruction.opcode.startswith(("LDCU", "ULDC", "S2UR")):  # takes no guard of this file, and needs none
                        node.instruction = replace(node.instruction, guard=guard)
                    out.nodes.append(node)
            go(e, b, out, converted[b].join, following, stubs)
            continue
        transfer(e, b, out, following, stubs, depth)


def jump_node(b: Block, opcode: str, guard: Reg, target: Block | None = None) -> Node:
    return Node(Instruction(opcode, (), () if target is None else (Target(target.label),), guard), line=b.line, source=b.source)


def go(e: Emitter, b: Block, out: sass.Block, to: Block, following: Block | None, stubs: set[Block]) -> None:
    """Ends a SASS block with a way to `to`."""
    if to in stubs:
        out.nodes.append(jump_node(b, "EXIT", ALWAYS))
        return
    out.successors.append(to.label)
    if to is not following:
        out.nodes.append(jump_node(b, "BRA", ALWAYS, to))


def transfer(e: Emitter, b: Block, out: sass.Block, following: Block | None, stubs: set[Block], depth: dict[Block, int]) -> None:
    """The instructions that end a block; a second branch gets a block of its own."""

    if b.term in ("exit", "ret"):
        out.nodes.append(jump_node(b, "EXIT", ALWAYS))
        return
    if b.term == "jump":
        go(e, b, out, b.succs[0], following, stubs)
        return
    yes, no = b.succs
    assert b.cond is not None
    negated = b.negated
    if yes is no:
        go(e, b, out, yes, following, stubs)
        return
    if yes is following or no in stubs:
        yes, no, negated = no, yes, not negated
    if yes in stubs and no in stubs:
        out.nodes.append(jump_node(b, "EXIT", ALWAYS))
        return
    if yes in stubs and no is not following:
        yes, no, negated = no, yes, not negated
    guard = e.pred(b.cond, negated)
    if yes in stubs:
        out.nodes.append(jump_node(b, "EXIT", guard))
        out.successors.append(no.label)
        return
    out.nodes.append(jump_node(b, "BRA", guard, yes))
    out.successors.append(yes.label)
    if no is following:
        out.successors.append(no.label)
    else:
        go(e, b, extra(e, out, depth.get(b, 0)), no, following, stubs)


def extra(e: Emitter, out: sass.Block, depth: int) -> sass.Block:
    block = sass.Block(f"{out.label}.else", loop_depth=depth)
    out.successors.append(block.label)
    e.fn.blocks.append(block)
    return block


def stack_setup(e: Emitter, frame: int) -> None:
    """R1 points to the frame: the stack's top less its size. The allocator changes the second instruction when it spills."""
    first = e.fn.blocks[0]
    r1 = Reg(File.R, 1)
    load = Node(Instruction("LDC", (), (r1, Const(0, e.chip.constants.stack_top))))
    preds = (ALWAYS, ALWAYS) if e.chip.has("iadd3_preds") else ()
    adjust = Node(Instruction("IADD3", (), (r1, *preds, r1, Imm(-frame), R_ZERO)))
    first.nodes[:0] = [load, adjust] if frame else [load]
    e.fn.notes["stack_adjust"] = adjust if frame else None


__all__ = ["build_blocks", "layout", "link", "split_critical_edges", "stack_setup"]
