"""Instruction selection proper: from SSA operations to nodes over virtual registers.

Blocks are walked against the direction of control, operations from last to first, so that every use is seen before its definition: an operation
whose results nobody asked for has been taken into its users and is left out. Leaves (constants, parameters, special registers) and the memory
descriptor get their instructions at the end, where all uses are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sassay.errors import UnsupportedError
from sassay.isa.target import Target as Chip
from sassay.isel.ir import Block, Graph, Loop, Op, Value, common_dominator, dominators, loops
from sassay.isel.numbers import signed
from sassay.isel.optimise import LEAVES, use_counts
from sassay.isel.uniform import UNIFORM_REGISTERS, Divergence, is_stub
from sassay.sass import model
from sassay.sass.function import Function, MemoryFact, Node
from sassay.sass.model import ALWAYS, PT, RZ, UNIFORM_ALWAYS, Const, File, Imm, ImmKind, Instruction, Name, Operand, Reg, Target

R_ZERO = model.R_ZERO
TRUE = ALWAYS
NOT_TRUE = Reg(File.P, PT, invert=True)
Rule = Callable[["Emitter", Op], None]
RULES: dict[str, Rule] = {}

HOIST_LIMIT = 16
"""Constants that one loop may keep in registers."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(f: Rule) -> Rule:
        for name in names:
            RULES[name] = f
        return f

    return register


class Emitter:
    """Selects for one function. `out` collects the nodes of the operation at hand; `at` is its place (block, index)."""

    def __init__(self, graph: Graph, fn: Function, chip: Chip, divergence: Divergence, barriers_convergent: bool = True) -> None:
        self.graph = graph
        self.fn = fn
        self.chip = chip
        self.divergence = divergence
        self.order = graph.blocks
        for i, b in enumerate(self.order):
            b.index = i
        self.idom = dominators(self.order)
        self.loops: dict[Block, Loop] = loops(self.order, self.idom)
        self.count = use_counts(graph)
        self.place: dict[Value, tuple[File, int]] = {}
        self.wanted: set[Value] = set()
        self.out: list[Node] = []
        self.at: tuple[Block, int] = (self.order[0], 0)
        self.op: Op | None = None
        self.leaf_uses: dict[tuple[Value, File], list[tuple[Block, int]]] = {}
        self.leaf_place: dict[tuple[Value, File], int] = {}
        self.constants: dict[tuple[Block, Value], tuple[int, int]] = {}
        self.hoisted: dict[Block, int] = {}
        self.descriptor_uses: list[tuple[Block, int]] = []
        self.descriptor: int | None = None
        self.lists: dict[Block, list[list[Node]]] = {}
        self.uses_stack = False
        self.sides: set[Block] = set()
        """Blocks whose instructions will get a guard: nothing in them may have one of its own."""
        self.done: set[Op] = set()
        """Operations emitted before their turn, with one that uses them."""

    # Output ----------------------------------------------------------------------------------------------------------------------------

    def ins(self, opcode: str, mods: tuple[str, ...], operands: list[Operand], memory: MemoryFact | None = None, remat: bool = False) -> Node:
        """Appends an instruction for the operation at hand, under its guard."""
        guard = ALWAYS
        op = self.op
        if op is not None and op.guard is not None:
            guard = self.pred(op.guard[0], op.guard[1])
        node = Node(Instruction(opcode, mods, tuple(operands), guard), memory=memory, remat=remat)
        if op is not None:
            node.line, node.source = op.line, op.source
        self.out.append(node)
        return node

    # Registers -------------------------------------------------------------------------------------------------------------------------

    def home(self, v: Value) -> tuple[File, int]:
        """The register of a value (the first one of several), made on first demand."""
        self.wanted.add(v)
        found = self.place.get(v)
        if found is not None:
            return found
        if v.op.name == "part":
            whole = self.home(v.op.args[0])
            found = (whole[0], whole[1] + int(v.op.attr[0]))  # type: ignore[call-overload]
        elif v.width == 0:
            found = (File.P, self.fn.new(File.P))
        else:
            found = (File.R, self.fn.new(File.R, v.width))
        self.place[v] = found
        return found

    def dest(self, v: Value) -> Reg:
        """The destination operand of a result: RZ or PT where nobody asked for it."""
        if v not in self.wanted and v not in self.place:
            return TRUE if v.width == 0 else R_ZERO
        file, index = self.home(v)
        return Reg(file, index)

    def needed(self, v: Value) -> bool:
        return v in self.wanted

    def pred(self, v: Value, invert: bool = False) -> Reg:
        if v.const is not None:
            return Reg(File.P, PT, invert=bool(v.const) == invert)
        if v.op.name == "undef":
            return Reg(File.P, PT, invert=invert)
        if v.op.name == "plop" and v.op.attr == (0x0F,):
            return self.pred(v.op.args[0], not invert)
        file, index = self.home(v)
        return Reg(file, index, invert=invert)

    def reg(self, v: Value, word: int = 0) -> Reg:
        """A general register that holds the value, or its part from `word` on."""
        name = v.op.name
        if name == "part":
            return self.reg(v.op.args[0], word + int(v.op.attr[0]))  # type: ignore[call-overload]
        if name == "undef":
            return R_ZERO
        if name == "sp":
            self.uses_stack = True
            return Reg(File.R, 1)
        if name == "const":
            if v.const == 0 and v.width == 1:
                return R_ZERO
            return Reg(File.R, self.constant(v) + word)
        if name in LEAVES:
            return Reg(File.R, self.leaf(v, File.R) + word)
        file, index = self.home(v)
        assert file is File.R
        return Reg(file, index + word)

    def loop_exit_place(self, block: Block) -> Block:
        """The block before the outermost loop around `block`, or itself."""
        loop = self.loops.get(block)
        while loop is not None:
            block = self.idom[loop.header]
            loop = self.loops.get(block)
        return block

    def constant(self, v: Value) -> int:
        block, index = self.at
        place = block
        if block in self.loops:
            outside = self.loop_exit_place(block)
            if (outside, v) in self.constants or self.hoisted.get(outside, 0) < HOIST_LIMIT:
                place = outside
                if (outside, v) not in self.constants:
                    self.hoisted[outside] = self.hoisted.get(outside, 0) + 1
        where = index if place is block else 1 << 30
        known = self.constants.get((place, v))
        if known is None:
            known = (self.fn.new(File.R, v.width), where)
        self.constants[place, v] = (known[0], min(known[1], where))
        return known[0]

    def leaf(self, v: Value, file: File) -> int:
        """The register in which a parameter or special register will have been loaded."""
        key = (v, file)
        if key not in self.leaf_place:
            self.leaf_place[key] = self.fn.new(file, v.width)
        self.leaf_uses.setdefault(key, []).append(self.at)
        return self.leaf_place[key]

    # Operands --------------------------------------------------------------------------------------------------------------------------

    def modified(self, r: Operand, mod: str) -> Operand:
        """An operand with its modifiers: `-`, `|`, `~`, `!` and suffixes."""
        if not mod:
            return r
        suffix = tuple(mod[mod.index(".") + 1 :].split(".")) if "." in mod else ()
        flags = mod.split(".")[0]
        if isinstance(r, Reg):
            invert = r.invert ^ ("~" in flags or "!" in flags)
            return replace(r, neg=r.neg ^ ("-" in flags), absolute=r.absolute or "|" in flags, invert=invert, suffix=suffix or r.suffix)
        if isinstance(r, Const):
            return replace(r, neg="-" in flags, absolute="|" in flags, invert="~" in flags)
        return r

    def a(self, v: Value, mod: str = "") -> Operand:
        return self.modified(self.reg(v), mod)

    def is_uniform_leaf(self, v: Value) -> bool:
        return (v.op.name == "param" and v.op.attr[0] in (0, 4)) or (v.op.name == "sr" and v.op.attr[0] in UNIFORM_REGISTERS)

    def flexible(self, v: Value, mod: str = "", kind: str = "int") -> Operand:
        """The operand as an immediate or a uniform register where it is one, else a register. `kind`: int, bits, f32, f64."""
        c = v.const
        if c is not None and not (c == 0 and kind in ("int", "bits") and "~" not in mod):
            made = immediate(c, mod, kind)
            if made is not None:
                return made
        if self.is_uniform_leaf(v) and (v.width == 1 or kind == "f64"):
            return self.modified(Reg(File.UR, self.leaf(v, File.UR)), mod)
        return self.a(v, mod)

    def is_flexible(self, v: Value, kind: str = "int") -> bool:
        """Whether the value would be an immediate or uniform operand."""
        return (v.const is not None and v.const != 0 and immediate(v.const, "", kind) is not None) or self.is_uniform_leaf(v)

    # The walk --------------------------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        for b in self.order:
            for phi in b.phis:
                for v in (*phi.args, phi.results[0]):
                    self.want(v)
            if b.cond is not None and b.cond.op.name not in LEAVES:
                self.pred(b.cond)
        self.assign_phis()
        for b in reversed(self.order):
            groups: list[list[Node]] = [[] for _ in b.ops]
            self.lists[b] = groups
            for i in range(len(b.ops) - 1, -1, -1):
                op = b.ops[i]
                if op in self.done or (not op.effect and not any(self.needed(r) for r in op.results)):
                    continue
                self.at, self.op, self.out = (b, i), op, []
                self.one(op)
                groups[i] = self.out
            self.op = None

    def want(self, v: Value) -> None:
        """The value will be copied word by word: a pack with no other use is not built for that."""
        if v.op.name in LEAVES:
            return
        if v.op.name == "pack" and self.count.get(v, 0) == 1:
            for p in v.op.args:
                self.want(p)
            return
        if v.op.name == "part":
            self.want(v.op.args[0])
        self.wanted.add(v)

    def assign_phis(self) -> None:
        for b in self.order:
            for phi in b.phis:
                self.home(phi.results[0])

    def one(self, op: Op) -> None:
        if op.guard is not None and op.results:
            self.keep_old(op)
        found = RULES.get(op.name)
        if found is not None:
            found(self, op)
            return
        from sassay.isel.forms import emit_form

        emit_form(self, op)

    def keep_old(self, op: Op) -> None:
        """Results of a guarded operation start as their values under a false guard."""
        for r, old in zip(op.results, op.tied, strict=True):
            if old.op.name == "undef" or not self.needed(r):
                continue
            saved, self.op = self.op, None
            self.copy_into(r, old)
            self.op = saved

    def copy_into(self, v: Value, old: Value) -> None:
        file, index = self.home(v)
        for word in range(max(1, v.width)):
            if file is File.P:
                self.out.append(copy_predicate(index, self.pred(old)))
            else:
                source = self.word_operand(old, word)
                self.out.append(Node(Instruction("MOV", (), (Reg(File.R, index + word), source))))

    def word_operand(self, v: Value, word: int) -> Operand:
        """One word of a value as the source of a MOV."""
        if v.const is not None:
            c = (v.const >> (32 * word)) & 0xFFFFFFFF
            return Imm(c) if c else R_ZERO
        if v.op.name == "pack" and v not in self.wanted:
            at = 0
            for p in v.op.args:
                if word < at + p.width:
                    return self.word_operand(p, word - at)
                at += p.width
        return self.reg(v, word)


def copy_predicate(index: int, source: Reg) -> Node:
    if source.is_zero:
        lut = (0x80, 0x8) if not source.invert else (0x8, 0x80)
        operands: tuple[Operand, ...] = (Reg(File.P, index), TRUE, TRUE, TRUE, TRUE, Imm(lut[0]), Imm(lut[1]))
    else:
        operands = (Reg(File.P, index), TRUE, source, TRUE, TRUE, Imm(0x80), Imm(0x8))
    return Node(Instruction("PLOP3", ("LUT",), operands))


def immediate(c: int, mod: str, kind: str) -> Imm | None:
    """A constant as an immediate with the modifier applied, or None when the form has none for it."""
    flags = mod.split(".")[0]
    if kind == "f32":
        if "|" in flags:
            c &= 0x7FFFFFFF
        if "-" in flags:
            c ^= 0x80000000
        return Imm(c, ImmKind.F32)
    if kind == "f64":
        if c & 0xFFFFFFFF:
            return None
        c >>= 32
        if "|" in flags:
            c &= 0x7FFFFFFF
        if "-" in flags:
            c ^= 0x80000000
        return Imm(c, ImmKind.F64)
    if c >> 32:
        return None
    if "-" in flags:
        c = -c & 0xFFFFFFFF
    if "~" in flags:
        c = ~c & 0xFFFFFFFF
    return Imm(signed(c) if kind == "int" else c)


def fail(op: Op, what: str) -> UnsupportedError:
    return UnsupportedError(f"cannot select {op.name}: {what}")


__all__ = ["NOT_TRUE", "RZ", "UNIFORM_ALWAYS", "Emitter", "Name", "Target", "common_dominator", "is_stub"]
