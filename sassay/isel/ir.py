"""SSA over SASS operations: what the selector builds from PTX, improves, and turns into nodes over virtual registers.

A value is a predicate (width 0) or `width` consecutive 32-bit words. An operation is either a SASS opcode in nvdisasm's spelling with its
modifiers ("FADD", ("FTZ",)), emitted as it stands, or a small-letter pseudo operation ("iadd", "add64", "lop3", "pack") for which the emitter
picks the instructions. Constants and kernel parameters are leaves without a place; the emitter puts them where they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sassay.sass.function import MemoryFact, Relocation

Attr = tuple[object, ...]


class Value:
    """One result of an operation. `width` 0 is a predicate, otherwise 32-bit words."""

    __slots__ = ("index", "op", "uid", "width")

    def __init__(self, op: Op, index: int, width: int, uid: int) -> None:
        self.op = op
        self.index = index
        self.width = width
        self.uid = uid

    def __repr__(self) -> str:
        return f"v{self.uid}:{self.op.name}"

    @property
    def const(self) -> int | None:
        """The value's number if it is a constant (unsigned), else None."""
        return self.op.attr[0] if self.op.name == "const" else None  # type: ignore[return-value]


class Op:
    """An operation: arguments with modifiers (`-`, `|`, `~`, `!`, or a suffix such as `.H0_H0`), results, and for memory its facts.

    `guard` (value, negated) makes it conditional; then each result takes the matching value of `tied` when the guard is false.
    `effect`: it may not be removed, repeated or moved over others ("" for pure ones; "read" for loads of writable memory).
    """

    __slots__ = (
        "amods", "args", "attr", "block", "effect", "guard", "line", "memory", "mods", "name", "relocation", "results", "source", "tied", "uid",
    )  # fmt: skip

    def __init__(self, name: str, mods: tuple[str, ...], args: list[Value], amods: list[str], attr: Attr, uid: int) -> None:
        self.name = name
        self.mods = mods
        self.args = args
        self.amods = amods
        self.attr = attr
        self.uid = uid
        self.results: list[Value] = []
        self.block: Block | None = None
        self.effect = ""
        self.guard: tuple[Value, bool] | None = None
        self.tied: list[Value] = []
        self.memory: MemoryFact | None = None
        self.relocation: Relocation | None = None
        self.line: tuple[int, int, int] | None = None
        self.source = -1

    def __repr__(self) -> str:
        outs = ",".join(f"v{v.uid}" for v in self.results)
        ins = ", ".join(m + f"v{a.uid}" for a, m in zip(self.args, self.amods, strict=False))
        guard = f"@{'!' if self.guard[1] else ''}v{self.guard[0].uid} " if self.guard else ""
        return f"{guard}{outs} = {'.'.join((self.name, *self.mods))} {ins} {self.attr or ''}"

    def uses(self) -> Iterator[Value]:
        yield from self.args
        if self.guard:
            yield self.guard[0]
            yield from self.tied


@dataclass(eq=False, slots=True)
class Block:
    """A basic block. `term`: "jump", "cond" (branch to succs[0] if `cond`, else succs[1]), "exit", "switch", "ret", "trap"."""

    label: str
    ops: list[Op] = field(default_factory=list)
    phis: list[Op] = field(default_factory=list)
    preds: list[Block] = field(default_factory=list)
    succs: list[Block] = field(default_factory=list)
    term: str = "jump"
    cond: Value | None = None
    negated: bool = False
    uniform: bool = False
    """The branch was written `.uni`."""
    likely: bool | None = None
    line: tuple[int, int, int] | None = None
    source: int = -1
    index: int = -1
    ptx: int = -1
    """Index in the body of the first statement of the PTX block that starts here, or -1 for blocks inside an expansion."""
    entry_values: dict[int, Value] = field(default_factory=dict)
    """At the start of a PTX block: PTX register uid -> value holding it."""
    cold: bool = False


class Graph:
    """A function in SSA form. Leaves (constants, parameters) are shared through `leaf`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.blocks: list[Block] = []
        self.exclusive: list[tuple[Block, Block, Block]] = []
        """Warp-wide operations that threads with different masks may reach together: the blocks before, of and after each."""
        self._uid = 0
        self._leaves: dict[tuple[object, ...], Value] = {}
        self._labels: dict[str, int] = {}

    def fresh(self) -> int:
        self._uid += 1
        return self._uid

    def block(self, hint: str) -> Block:
        n = self._labels.get(hint, 0)
        self._labels[hint] = n + 1
        b = Block(hint if n == 0 else f"{hint}.{n}")
        self.blocks.append(b)
        return b

    def make(self, name: str, mods: tuple[str, ...], args: list[Value], amods: list[str] | None, widths: tuple[int, ...], attr: Attr = ()) -> Op:
        op = Op(name, mods, args, amods if amods is not None else [""] * len(args), attr, self.fresh())
        op.results = [Value(op, i, w, self.fresh()) for i, w in enumerate(widths)]
        return op

    def leaf(self, name: str, width: int, *attr: object) -> Value:
        """The shared leaf of that name: "const" (number,), "param" (bank, offset), "undef", "sr" (name,)."""
        key = (name, width, *attr)
        found = self._leaves.get(key)
        if found is None:
            found = self._leaves[key] = self.make(name, (), [], None, (width,), attr).results[0]
        return found

    def const(self, value: int, width: int = 1) -> Value:
        mask = 1 if width == 0 else (1 << (32 * width)) - 1
        return self.leaf("const", width, value & mask)

    def zero(self, width: int) -> Value:
        return self.const(0, width)

    def replace(self, mapping: dict[Value, Value]) -> None:
        """Replaces values everywhere; chains are followed."""
        if not mapping:
            return

        def final(v: Value) -> Value:
            while (n := mapping.get(v)) is not None:
                v = n
            return v

        for b in self.blocks:
            for op in (*b.phis, *b.ops):
                op.args = [final(a) for a in op.args]
                if op.guard:
                    op.guard = (final(op.guard[0]), op.guard[1])
                    op.tied = [final(a) for a in op.tied]
            if b.cond is not None:
                b.cond = final(b.cond)
            if b.entry_values:
                b.entry_values = {k: final(v) for k, v in b.entry_values.items()}


def link(a: Block, b: Block) -> None:
    a.succs.append(b)
    b.preds.append(a)


def reverse_postorder(entry: Block) -> list[Block]:
    """Blocks reachable from the entry in reverse postorder; sets `index`."""
    seen = {entry}
    order: list[Block] = []
    stack: list[tuple[Block, int]] = [(entry, 0)]
    while stack:
        b, i = stack.pop()
        if i < len(b.succs):
            stack.append((b, i + 1))
            s = b.succs[i]
            if s not in seen:
                seen.add(s)
                stack.append((s, 0))
        else:
            order.append(b)
    order.reverse()
    for i, b in enumerate(order):
        b.index = i
    return order


def dominators(order: list[Block]) -> dict[Block, Block]:
    """Immediate dominators (Cooper, Harvey, Kennedy) of blocks given in reverse postorder; the entry is its own."""
    idom: dict[Block, Block] = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for b in order[1:]:
            new: Block | None = None
            for p in b.preds:
                if p not in idom:
                    continue
                if new is None:
                    new = p
                    continue
                x, y = p, new
                while x is not y:
                    while x.index > y.index:
                        x = idom[x]
                    while y.index > x.index:
                        y = idom[y]
                new = x
            assert new is not None
            if idom.get(b) is not new:
                idom[b] = new
                changed = True
    return idom


def common_dominator(idom: dict[Block, Block], a: Block, b: Block) -> Block:
    while a is not b:
        while a.index > b.index:
            a = idom[a]
        while b.index > a.index:
            b = idom[b]
    return a


def dominates(idom: dict[Block, Block], a: Block, b: Block) -> bool:
    while b.index > a.index:
        b = idom[b]
    return a is b


def postdominators(order: list[Block]) -> dict[Block, Block | None]:
    """Immediate post-dominators; None stands for the exit."""
    n = len(order)
    succ = [[s.index for s in b.succs] or [n] for b in order]
    pred: list[list[int]] = [[] for _ in range(n + 1)]
    for i, ss in enumerate(succ):
        for s in ss:
            pred[s].append(i)
    rank = [-1] * (n + 1)
    post: list[int] = []
    seen = {n}
    stack = [(n, 0)]
    roots = [n]
    while True:
        while stack:
            v, i = stack.pop()
            if i < len(pred[v]):
                stack.append((v, i + 1))
                p = pred[v][i]
                if p not in seen:
                    seen.add(p)
                    stack.append((p, 0))
            else:
                post.append(v)
        missing = [i for i in range(n - 1, -1, -1) if i not in seen]
        if not missing:
            break
        # An endless loop: treat its last block as leading to the exit.
        v = missing[0]
        succ[v].append(n)
        pred[n].append(v)
        roots.append(v)
        seen.add(v)
        stack.append((v, 0))
    post.reverse()
    if post[0] != n:  # the exit must come first
        post.remove(n)
        post.insert(0, n)
    for i, v in enumerate(post):
        rank[v] = i
    ip = {n: n}
    changed = True
    while changed:
        changed = False
        for v in post:
            if v == n:
                continue
            new = -1
            for s in succ[v]:
                if s not in ip:
                    continue
                if new < 0:
                    new = s
                    continue
                x, y = s, new
                while x != y:
                    while rank[x] > rank[y]:
                        x = ip[x]
                    while rank[y] > rank[x]:
                        y = ip[y]
                new = x
            if new >= 0 and ip.get(v) != new:
                ip[v] = new
                changed = True
    return {order[v]: (None if ip.get(v, n) == n else order[ip[v]]) for v in range(n)}


@dataclass(eq=False, slots=True)
class Loop:
    header: Block
    blocks: set[Block]
    parent: Loop | None = None

    @property
    def depth(self) -> int:
        d, p = 1, self.parent
        while p:
            d, p = d + 1, p.parent
        return d


def loops(order: list[Block], idom: dict[Block, Block]) -> dict[Block, Loop]:
    """The innermost natural loop of each block that is in one."""
    found: dict[Block, Loop] = {}
    for b in order:
        for s in b.succs:
            if dominates(idom, s, b):
                lp = found.setdefault(s, Loop(s, {s}))
                work = [b]
                while work:
                    x = work.pop()
                    if x not in lp.blocks:
                        lp.blocks.add(x)
                        work.extend(x.preds)
    inner: dict[Block, Loop] = {}
    for lp in sorted(found.values(), key=lambda q: len(q.blocks)):
        for b in sorted(lp.blocks, key=lambda q: q.index):
            if b in inner:
                top = inner[b]
                while top.parent is not None and top.parent is not lp:
                    top = top.parent
                if top is not lp and top.parent is None:
                    top.parent = lp
            else:
                inner[b] = lp
    return inner
