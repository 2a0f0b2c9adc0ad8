"""From a PTX body to SSA: blocks, values of PTX registers (Braun et al.: local value numbering with phis made on demand), calls inlined.

Rules that lower single instructions register themselves with `rule`; see the `lower_*` modules.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from sassay.errors import Location, UnsupportedError
from sassay.isa.target import Target
from sassay.isel.builder import Builder
from sassay.isel.ir import Block, Graph, Op, Value, link, reverse_postorder
from sassay.isel.liveness import live_in, loop_writes
from sassay.ptx import ast as ptx
from sassay.sass.function import MemoryFact

Key = tuple[int, object]
RULES: dict[str, Callable[[Lowering, ptx.Instruction], None]] = {}


def rule(*opcodes: str) -> Callable[[Callable[[Lowering, ptx.Instruction], None]], Callable[[Lowering, ptx.Instruction], None]]:
    """Registers a lowering rule for PTX opcodes."""

    def register(f: Callable[[Lowering, ptx.Instruction], None]) -> Callable[[Lowering, ptx.Instruction], None]:
        for opcode in opcodes:
            RULES[opcode] = f
        return f

    return register


@dataclass(slots=True)
class Options:
    """What the selector may be told. `level` 0 keeps to plain expansion without clean-ups."""

    level: int = 3
    fast_division: bool = False


@dataclass(eq=False, slots=True)
class Scope:
    """A body being translated: the kernel itself, or an inlined function."""

    function: ptx.Function
    number: int
    exit: Block | None = None
    blocks: dict[int, Block] = field(default_factory=dict)
    labels: dict[str, Block] = field(default_factory=dict)
    parent: Scope | None = None


def narrow_double(bits: int) -> int:
    """f64 bits to f32 bits, to nearest even."""
    value = struct.unpack("<d", struct.pack("<Q", bits))[0]
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0xFF800000 if bits >> 63 else 0x7F800000


class Layout:
    """Where the kernel's variables live: offsets of shared and local variables, in order of first need."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.shared: dict[ptx.Variable, int] = {}
        self.local: dict[tuple[int, ptx.Variable], int] = {}
        self.shared_size = 0
        self.local_size = 0
        self.dynamic: list[ptx.Variable] = []
        self.dynamic_align = 16

    def shared_offset(self, v: ptx.Variable) -> int:
        """Offset behind the reserved part; unsized extern arrays all start after the static ones (fixed up by `Lowering.finish`)."""
        if v not in self.shared:
            self.shared_size = (self.shared_size + v.align - 1) // v.align * v.align
            self.shared[v] = self.shared_size
            self.shared_size += v.size
        return self.shared[v]

    def local_offset(self, scope: int, v: ptx.Variable) -> int:
        key = (scope, v)
        if key not in self.local:
            self.local_size = (self.local_size + v.align - 1) // v.align * v.align
            self.local[key] = self.local_size
            self.local_size += v.size
        return self.local[key]


class Lowering:
    """The state of one function's translation; rules read operands with `src` and set destinations with `dst`."""

    def __init__(self, module: ptx.Module, function: ptx.Function, target: Target, options: Options) -> None:
        self.module = module
        self.function = function
        self.target = target
        self.options = options
        self.graph = Graph(function.name)
        self.b = Builder(self.graph)
        self.layout = Layout(target)
        self.instruction: ptx.Instruction | None = None
        self.scope = Scope(function, 0)
        self.scopes = 1
        self.inlining: list[ptx.Function] = [function]
        self.barriers = 0
        self.carry: Value | None = None
        self.param_offsets: dict[ptx.Variable, int] = {}
        self.params: list[tuple[int, int, int]] = []
        self.params_size = 0
        self.callees: list[str] = []
        self.notes: dict[str, object] = {}
        self._defs: dict[Block, dict[Key, Value]] = {self.b.entry: {}}
        self._sealed: set[Block] = {self.b.entry}
        self._incomplete: dict[Block, dict[Key, Op]] = {}
        self._expected: dict[Block, int] = {}
        self._made: list[Op] = []
        self._waiting: set[Block] = set()
        self._loop_writes: dict[Block, tuple[int, set[ptx.Register]]] = {}
        self._live: dict[int, set[ptx.Register]] = {}
        self.slots: dict[object, dict[int, int]] = {}
        self._place_params()
        self._place_shared()

    # Layout ----------------------------------------------------------------------------------------------------------------------------

    def _place_params(self) -> None:
        offset = 0
        for v in self.function.params:
            align = max(v.align, 1)
            offset = (offset + align - 1) // align * align
            self.param_offsets[v] = offset
            self.params.append((offset, v.size, align.bit_length() - 1))
            offset += v.size
        self.params_size = offset

    def _place_shared(self) -> None:
        """Static shared variables that this kernel (or a function it may inline) names, in order of declaration; then the dynamic ones."""
        named: set[ptx.Variable] = set()
        seen: set[ptx.Function] = set()
        self._collect_shared(self.function, named, seen)
        ordered = [v for v in self.module.variables if v in named]
        ordered += [v for f in self.module.functions if f in seen for v in f.variables if v.space == "shared"]
        for v in ordered:
            if v.size:
                self.layout.shared_offset(v)
        for v in ordered:
            if not v.size:
                align = max(v.align, 16)
                self.layout.shared[v] = (self.layout.shared_size + align - 1) // align * align
                self.layout.dynamic.append(v)

    def _collect_shared(self, f: ptx.Function, named: set[ptx.Variable], seen: set[ptx.Function]) -> None:
        if f in seen or f.body is None:
            return
        seen.add(f)

        def visit(o: object) -> None:
            if isinstance(o, ptx.SymbolOperand):
                if isinstance(o.symbol, ptx.Function):
                    self._collect_shared(o.symbol, named, seen)
                elif o.symbol.space == "shared":
                    named.add(o.symbol)
            elif isinstance(o, ptx.AddressOperand) and isinstance(o.base, ptx.Variable) and o.base.space == "shared":
                named.add(o.base)
            elif isinstance(o, (ptx.VectorOperand, ptx.ListOperand, ptx.BracketOperand)):
                for e in o.elements:
                    visit(e)

        for s in f.body:
            if isinstance(s, ptx.Instruction):
                for operand in s.operands:
                    visit(operand)

    # Errors ----------------------------------------------------------------------------------------------------------------------------

    def unsupported(self, what: str = "") -> UnsupportedError:
        """An error that names the instruction at hand."""
        i = self.instruction
        location: Location | None = i.location if i is not None else self.function.location
        name = i.mnemonic if i is not None else self.function.name
        return UnsupportedError(f"cannot select '{name}'" + (f": {what}" if what else ""), location)

    # Registers in SSA ------------------------------------------------------------------------------------------------------------------

    def write(self, register: object, value: Value) -> None:
        self._defs.setdefault(self.b.block, {})[self.scope.number, register] = value

    def read(self, register: ptx.Register) -> Value:
        width = 0 if register.type == "pred" else max(1, register.bits // 32)
        return self._read((self.scope.number, register), self.b.block, width)

    def read_slot(self, key: object, width: int) -> Value:
        return self._read((self.scope.number, key), self.b.block, width)

    def _read(self, key: Key, block: Block, width: int) -> Value:
        chain: list[Block] = []
        while True:
            found = self._defs.setdefault(block, {}).get(key)
            if found is not None:
                break
            if block not in self._sealed and len(block.preds) == 1 and self._invariant(key, block):
                chain.append(block)
                block = block.preds[0]
                continue
            if block not in self._sealed:
                op = self.graph.make("phi", (), [], None, (width,))
                op.block = block
                block.phis.append(op)
                self._incomplete.setdefault(block, {})[key] = op
                found = op.results[0]
                self._defs[block][key] = found
                break
            if not block.preds:
                found = self.graph.leaf("undef", width)
                break
            if len(block.preds) > 1:
                op = self.graph.make("phi", (), [], None, (width,))
                op.block = block
                block.phis.append(op)
                found = self._defs[block][key] = op.results[0]
                first = len(self._made)
                self._made.append(op)
                self._fill_phi(op, key, block, width)
                found = self._simplify_phi(op, key, block, first)
                break
            chain.append(block)
            block = block.preds[0]
        for b in chain:
            self._defs[b][key] = found
        return found

    def _invariant(self, key: Key, block: Block) -> bool:
        """Whether the loop that starts with this block, not translated to its end yet, leaves a register as it is."""
        known = self._loop_writes.get(block)
        return known is not None and key[0] == known[0] and isinstance(key[1], ptx.Register) and key[1] not in known[1]

    def _simplify_phi(self, op: Op, key: Key, block: Block, first: int) -> Value:
        """The one value that a new phi merges, instead of the phi, if no phi made meanwhile (`_made` from `first` on) refers to it."""
        mine = op.results[0]
        others = {a for a in op.args if a is not mine}
        later = self._made[first + 1 :]
        if len(others) == 1 and not any(mine in other.args for other in later):
            block.phis.remove(op)
            value = self._defs[block][key] = others.pop()
            for defs in self._defs.values() if mine in op.args else ():
                if defs.get(key) is mine:
                    defs[key] = value
            mine = value
        if first == 0:
            self._made.clear()
        return mine

    def _fill_phi(self, op: Op, key: Key, block: Block, width: int) -> None:
        op.args = [self._read(key, p, width) for p in block.preds]
        op.amods = [""] * len(op.args)

    def seal(self, block: Block) -> None:
        self._sealed.add(block)
        for key, op in self._incomplete.pop(block, {}).items():
            self._fill_phi(op, key, block, op.results[0].width)

    def defer(self, block: Block) -> None:
        """The number of edges into `block` is not known yet: it is sealed at the end of the function."""
        self._expected[block] = -1

    def start(self, block: Block, sealed: bool = True) -> None:
        """Makes `block` current; its predecessors are complete if `sealed`."""
        self.b.block = block
        self._defs.setdefault(block, {})
        if sealed:
            self.seal(block)

    # Operands --------------------------------------------------------------------------------------------------------------------------

    def width_of(self, type_: str) -> int:
        return 0 if type_ == "pred" else max(1, ptx.TYPE_BITS[type_] // 32)

    def src(self, operand: ptx.PtxOperand | None, type_: str) -> Value:
        """The value of a source operand, in the width of `type_`."""
        width = self.width_of(type_)
        if isinstance(operand, ptx.RegOperand):
            v = self.component(operand) if operand.component else self.read(operand.register)
            if operand.negated:
                v = self.b.pnot(v) if v.width == 0 else self.b.ineg(v)
            if v.width != width:
                v = self.resize(v, width)
            return v
        if isinstance(operand, ptx.IntOperand):
            if type_ == "pred":
                return self.b.const(int(operand.value != 0), 0)
            return self.b.const(operand.value & ((1 << ptx.TYPE_BITS[type_]) - 1), width)
        if isinstance(operand, ptx.FloatOperand):
            return self.b.const(self.float_bits(operand, type_), width)
        if isinstance(operand, ptx.SpecialOperand):
            from sassay.isel.special import read_special

            return self.resize(read_special(self, operand), width)
        if isinstance(operand, ptx.SymbolOperand):
            from sassay.isel.addresses import symbol_address

            return self.resize(symbol_address(self, operand.symbol, operand.offset), width)
        if isinstance(operand, ptx.AddressOperand) and isinstance(operand.base, ptx.Variable):
            from sassay.isel.addresses import symbol_address

            return self.resize(symbol_address(self, operand.base, operand.offset), width)
        if isinstance(operand, ptx.VectorOperand):
            return self.vector(operand, type_)
        raise self.unsupported(f"operand {type(operand).__name__}")

    def resize(self, v: Value, width: int) -> Value:
        if v.width == width:
            return v
        if v.width > width > 0:
            return self.b.part(v, 0, width)
        if 0 < v.width < width:
            return self.b.pack(v, *[self.b.const(0)] * (width - v.width))
        raise self.unsupported("a predicate where a number stands, or the reverse")

    def component(self, operand: ptx.RegOperand) -> Value:
        if operand.component in ("b0", "b1", "b2", "b3", "h0", "h1"):
            raise self.unsupported("video selector")
        return self.read_slot((operand.register, operand.component), max(1, operand.register.bits // 32))

    def float_bits(self, operand: ptx.FloatOperand, type_: str) -> int:
        bits = operand.bits
        size = ptx.TYPE_BITS[type_]
        if size == 64:
            if operand.double:
                return bits
            return int(struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]))[0])
        if size == 32:
            return narrow_double(bits) if operand.double else bits
        raise self.unsupported("float literal of this type")

    def vector(self, operand: ptx.VectorOperand, type_: str) -> Value:
        """`{a, b}` read as one number (mov.b64 {..})."""
        count = len(operand.elements)
        bits = ptx.TYPE_BITS[type_] // count
        parts = [self.src(e, f"b{bits}") for e in operand.elements]
        return self.join(parts, bits)

    def join(self, parts: list[Value], bits: int) -> Value:
        """Elements of `bits` each put side by side."""
        b = self.b
        if len(parts) == 1:
            return parts[0]
        if bits >= 32:
            return b.pack(*parts)
        if bits == 16:
            words = [self.pair16(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
            return b.pack(*words)
        if bits == 8:
            if len(parts) == 2:
                return b.prmt(parts[0], 0x3340, parts[1])
            words = []
            for i in range(0, len(parts), 4):
                low, high = b.prmt(parts[i], 0x0040, parts[i + 1]), b.prmt(parts[i + 2], 0x0040, parts[i + 3])
                words.append(b.prmt(low, 0x5410, high))
            return b.pack(*words)
        raise self.unsupported("vector of such elements")

    def pair16(self, low: Value, high: Value) -> Value:
        """Two 16-bit values in one word."""
        b = self.b
        if low.op is not high.op and low.op.name == "half" and high.op.name == "half":
            if low.op.args[0] is high.op.args[0] and low.op.attr == (0,) and high.op.attr == (1,):
                return low.op.args[0]
        if low.op.name == "half" or high.op.name == "half":
            x, i = (low.op.args[0], low.op.attr[0]) if low.op.name == "half" else (low, 0)
            y, j = (high.op.args[0], high.op.attr[0]) if high.op.name == "half" else (high, 0)
            return b.prmt(x, (0x10 if i == 0 else 0x32) | ((0x54 if j == 0 else 0x76) << 8), y)
        return b.prmt(low, 0x5410, high)

    def half(self, v: Value, index: int) -> Value:
        """The 16-bit half `index` of a word; the upper half of the result means nothing."""
        b = self.b
        if index == 0:
            return v if v.const is None else b.const(v.const & 0xFFFF)
        if v.const is not None:
            return b.const(v.const >> 16)
        if v.op.name == "PRMT" and v.op.args[1].const == 0x5410:
            return v.op.args[2]
        return b.op("half", [v], attr=(1,))

    def split(self, v: Value, bits: int, count: int) -> list[Value]:
        """The reverse of `join`."""
        b = self.b
        if count == 1:
            return [v]
        if bits >= 32:
            return [b.part(v, i * (bits // 32), bits // 32) for i in range(count)]
        words = [b.part(v, i) for i in range(v.width)]
        if bits == 16:
            return [self.half(words[i // 2], i % 2) for i in range(count)]
        if bits == 8:
            return [b.prmt(words[i // 4], 0x4440 | (i % 4), b.const(0)) for i in range(count)]
        raise self.unsupported("vector of such elements")

    def dst(self, operand: ptx.PtxOperand | None, value: Value) -> None:
        """Sets a destination, keeping the old value where the instruction's guard is false."""
        if operand is None or isinstance(operand, ptx.SinkOperand):
            return
        if isinstance(operand, ptx.VectorOperand):
            real = [e for e in operand.elements if isinstance(e, ptx.RegOperand)]
            bits = real[0].register.bits if real else 32
            for e, v in zip(operand.elements, self.split(value, bits, len(operand.elements)), strict=True):
                self.dst(e, v)
            return
        if not isinstance(operand, ptx.RegOperand):
            raise self.unsupported("destination")
        key: object = (operand.register, operand.component) if operand.component else operand.register
        width = 0 if operand.register.type == "pred" else max(1, operand.register.bits // 32)
        value = self.resize(value, width)
        if self.b.guard is not None:
            old = self.read_slot(key, width)
            if old.op.name != "undef" and value.op.guard != self.b.guard:
                p, negated = self.b.guard
                value = self.b.sel(p, old, value) if negated else self.b.sel(p, value, old)
        self.write(key, value)

    def old(self, operand: ptx.PtxOperand | None, width: int) -> Value:
        """What a destination holds before, for guarded operations with effects."""
        if isinstance(operand, ptx.RegOperand) and self.b.guard is not None:
            key: object = (operand.register, operand.component) if operand.component else operand.register
            own = 0 if operand.register.type == "pred" else max(1, operand.register.bits // 32)
            return self.resize(self.read_slot(key, own), width)
        return self.graph.leaf("undef", width)

    # Bodies ----------------------------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Translates the whole function."""
        self.body(self.scope)
        for b in self.graph.blocks:
            if b not in self._sealed:
                self.seal(b)

    def body(self, scope: Scope) -> None:
        """Translates a body into blocks from the current one on; leaves the last one's end in place."""
        f = scope.function
        assert f.body is not None
        leaders = self._leaders(f.body)
        first = self.b.block
        previous, self.scope = self.scope, scope
        for at in leaders:
            hint = next((s.name for s in f.body[at : at + 1] if isinstance(s, ptx.Label)), f"L{at}")
            scope.blocks[at] = self.graph.block(hint)
            if scope.number == 0:
                scope.blocks[at].ptx = at
        for at in leaders:
            i = at
            while i < len(f.body) and isinstance(f.body[i], (ptx.Label, ptx.LineMark, ptx.PragmaMark)):
                s = f.body[i]
                if isinstance(s, ptx.Label):
                    scope.labels[s.name] = scope.blocks[at]
                i += 1
        if leaders:
            link(first, scope.blocks[leaders[0]])
        for at, end in self._emission_order(f.body, leaders, scope):
            self._block(scope, f.body, at, end)
        self.scope = previous

    def _leaders(self, body: list[ptx.Statement]) -> list[int]:
        """Indices of first statements of blocks: the start, labels, and what follows a transfer."""
        out = [0] if body else []
        fresh = True
        for i, s in enumerate(body):
            if isinstance(s, ptx.Label) and not fresh:
                out.append(i)
                fresh = True
            elif isinstance(s, ptx.Instruction):
                fresh = False
                if s.opcode in ("bra", "brx", "ret", "exit") and i + 1 < len(body):
                    out.append(i + 1)
                    fresh = True
        return out

    def _emission_order(self, body: list[ptx.Statement], leaders: list[int], scope: Scope) -> list[tuple[int, int]]:
        """Blocks in reverse postorder of the control flow between them, so that definitions come before uses; unreachable ones left out."""
        ends = {at: (leaders[k + 1] if k + 1 < len(leaders) else len(body)) for k, at in enumerate(leaders)}
        succs: dict[int, list[int]] = {}
        where = {id(b): at for at, b in scope.blocks.items()}
        for at in leaders:
            last = next((s for s in reversed(body[at : ends[at]]) if isinstance(s, ptx.Instruction)), None)
            out: list[int] = []
            falls = True
            if last is not None and last.opcode == "bra":
                out.append(where[id(self.label_block(scope, last))])
                falls = last.guard is not None
            elif last is not None and last.opcode == "brx":
                out += list(dict.fromkeys(where[id(scope.labels[n])] for n in self.brx_targets(scope, last)))
                falls = last.guard is not None
            elif last is not None and last.opcode in ("ret", "exit"):
                falls = last.guard is not None
            if falls and ends[at] < len(body):
                out.insert(0, ends[at])
            succs[at] = out
        seen: set[int] = set()
        post: list[int] = []
        stack: list[tuple[int, int]] = []
        if leaders:
            stack.append((leaders[0], 0))
            seen.add(leaders[0])
        while stack:
            at, i = stack.pop()
            if i < len(succs[at]):
                stack.append((at, i + 1))
                n = succs[at][i]
                if n not in seen:
                    seen.add(n)
                    stack.append((n, 0))
            else:
                post.append(at)
        order = post[::-1]
        for at in order:
            self._expected[scope.blocks[at]] = int(at == leaders[0])
        for at in order:
            for n in succs[at]:
                self._expected[scope.blocks[n]] += 1
        blocks = [(at, ends[at]) for at in order]
        for at, registers in loop_writes(body, blocks, succs).items():
            self._loop_writes[scope.blocks[at]] = (scope.number, registers)
        if scope.number == 0:
            self._live = live_in(body, blocks, succs)
        return blocks

    def label_block(self, scope: Scope, instruction: ptx.Instruction) -> Block:
        target = instruction.operands[-1]
        if not isinstance(target, ptx.LabelOperand) or target.name not in scope.labels:
            self.instruction = instruction
            raise self.unsupported("branch target")
        return scope.labels[target.name]

    def brx_targets(self, scope: Scope, instruction: ptx.Instruction) -> tuple[str, ...]:
        name = instruction.operands[-1]
        if not isinstance(name, ptx.LabelOperand) or name.name not in scope.function.branch_targets:
            self.instruction = instruction
            raise self.unsupported("branch target list")
        return scope.function.branch_targets[name.name]

    def _block(self, scope: Scope, body: list[ptx.Statement], at: int, end: int) -> None:
        from sassay.isel.control import lower_transfer

        block = scope.blocks[at]
        self.start(block, sealed=False)
        if len(block.preds) == self._expected[block]:
            self.seal(block)
        else:
            self._waiting.add(block)
        if scope.number == 0:
            block.entry_values = {r.uid: self.read(r) for r in sorted(self._live[at], key=lambda r: r.uid)}
        ended = False
        for i in range(at, end):
            s = body[i]
            if isinstance(s, ptx.LineMark):
                self.b.line = (s.file, s.line, s.column)
            elif isinstance(s, ptx.Instruction):
                self.instruction = s
                self.b.source = i if scope.number == 0 else self.b.source
                if s.opcode in ("bra", "brx", "ret", "exit"):
                    following = scope.blocks.get(end)
                    ended = lower_transfer(self, scope, s, following)
                else:
                    self.one(s)
        if not ended:
            if end in scope.blocks:
                self.b.jump(scope.blocks[end])
            else:
                self.finish_body(scope)
        for b in list(self._waiting):
            if len(b.preds) == self._expected[b]:
                self._waiting.discard(b)
                self.seal(b)

    def finish_body(self, scope: Scope) -> None:
        """The end of a body: returns to the place of the call, or leaves the kernel."""
        if scope.exit is not None:
            self.b.jump(scope.exit)
        else:
            self.b.block.term = "exit" if self.function.is_entry else "ret"

    def one(self, s: ptx.Instruction) -> None:
        """One instruction that does not end a block."""
        found = RULES.get(s.opcode)
        if found is None:
            raise self.unsupported()
        if s.guard is not None:
            p = self.read(s.guard.register)
            if p.const is not None:
                if bool(p.const) == s.guard.negated:
                    return
            elif s.opcode == "call":
                self._guarded_region(s, found, p)
                return
            else:
                self.b.guard = (p, s.guard.negated)
        try:
            found(self, s)
        finally:
            self.b.guard = None

    def _guarded_region(self, s: ptx.Instruction, found: Callable[[Lowering, ptx.Instruction], None], p: Value) -> None:
        assert s.guard is not None
        inside, after = self.b.new_block("guarded"), self.b.new_block("after")
        if s.guard.negated:
            self.b.branch(p, after, inside)
        else:
            self.b.branch(p, inside, after)
        self.start(inside)
        found(self, s)
        self.b.jump(after)
        self.start(after)

    # Memory facts ----------------------------------------------------------------------------------------------------------------------

    def fact(self, space: str, reads: bool, writes: bool, **more: object) -> MemoryFact:
        return MemoryFact(space, reads, writes, **more)  # type: ignore[arg-type]


def remove_trivial_phis(graph: Graph) -> None:
    """Removes phis that merge one value with themselves, and then what follows from it."""
    while True:
        mapping: dict[Value, Value] = {}
        for b in graph.blocks:
            for phi in b.phis:
                others = {a for a in phi.args if a is not phi.results[0] and a.op.name != "undef"}
                whole = {a for a in phi.args if a is not phi.results[0]}
                if len(whole) <= 1 or (len(others) == 1 and next(iter(others)).op.name in ("const", "param")):
                    value = next(iter(others or whole), None)
                    mapping[phi.results[0]] = value if value is not None else graph.leaf("undef", phi.results[0].width)
        if not mapping:
            return
        for b in graph.blocks:
            b.phis = [p for p in b.phis if p.results[0] not in mapping]
        graph.replace(mapping)


def drop_unreachable(graph: Graph, entry: Block) -> list[Block]:
    """Keeps reachable blocks only (edges from others leave the phis); returns them in reverse postorder."""
    order = reverse_postorder(entry)
    alive = set(order)
    for b in order:
        keep = [i for i, p in enumerate(b.preds) if p in alive]
        if len(keep) != len(b.preds):
            b.preds = [b.preds[i] for i in keep]
            for phi in b.phis:
                phi.args = [phi.args[i] for i in keep]
                phi.amods = [""] * len(keep)
    graph.blocks = order
    return order
