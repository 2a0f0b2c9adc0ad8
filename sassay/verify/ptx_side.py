"""A PTX function as a side of a proof: blocks from labels and branches, values from `ptx.semantics`, effects on the shared memory model."""

from __future__ import annotations

from collections.abc import Iterable

from sassay.errors import UnsupportedError
from sassay.ptx.ast import (
    AddressOperand,
    FloatOperand,
    Function,
    Guard,
    Instruction,
    IntOperand,
    Label,
    LabelOperand,
    PtxOperand,
    Register,
    RegOperand,
    SinkOperand,
    SpecialOperand,
    SymbolOperand,
    Variable,
    VectorOperand,
)
from sassay.ptx.semantics import Compiled, compile_instruction
from sassay.ptx.semantics.compiled import float_bits
from sassay.ptx.semantics.events import BarrierEvent, ControlEvent, HintEvent, MemoryEvent, event_of
from sassay.verify.environment import Environment
from sassay.verify.memory import Memory
from sassay.verify.regions import EXIT, Edge, State, Trace
from sassay.verify.sass_side import atomic_name
from sassay.verify.term_algebra import TermAlgebra
from sassay.verify.terms import Term

ENTRY = "<entry>"


class PtxSide:
    """An entry function. Registers are keyed by their object; blocks are named by the label that starts them, or by statement index."""

    def __init__(self, function: Function, environment: Environment) -> None:
        if function.body is None:
            raise UnsupportedError(f"'{function.name}' has no body")
        self.function = function
        self.environment = environment
        self.terms = environment.terms
        self.algebra = TermAlgebra(self.terms)
        self.blocks: dict[str, list[Instruction]] = {}
        self._next: dict[str, str] = {}
        self._compiled: dict[int, Compiled] = {}
        self._split(function)
        self.parameters = {p.name: offset for p, offset in parameter_offsets(function)}

    def _split(self, function: Function) -> None:
        label = ENTRY
        current: list[Instruction] = []
        self.blocks[label] = current
        assert function.body is not None
        for index, statement in enumerate(function.body):
            if isinstance(statement, Label):
                self._next[label] = statement.name
                label, current = statement.name, []
                self.blocks[label] = current
            elif isinstance(statement, Instruction):
                current.append(statement)
                if statement.opcode in ("bra", "brx", "ret", "exit"):
                    following = f"<{index + 1}>"
                    self._next[label] = following
                    label, current = following, []
                    self.blocks[label] = current
        self._next[label] = EXIT

    def successors(self, label: str) -> Iterable[str]:
        body = self.blocks[label]
        last = body[-1] if body else None
        if last is None or last.opcode not in ("bra", "brx", "ret", "exit"):
            return [self._next[label]]
        targets = self._targets(last)
        return [*targets, self._next[label]] if last.guard is not None or last.opcode == "brx" else targets

    def _targets(self, instruction: Instruction) -> list[str]:
        if instruction.opcode in ("ret", "exit"):
            return [EXIT]
        operand = instruction.operands[-1]
        if not isinstance(operand, LabelOperand):
            raise UnsupportedError(f"branch target of '{instruction.mnemonic}'", instruction.location)
        if instruction.opcode == "brx":
            return list(self.function.branch_targets[operand.name])
        return [operand.name]

    def execute(self, label: str, state: State, condition: Term, memory: Memory, trace: Trace) -> list[Edge]:
        for instruction in self.blocks[label]:
            guard = self._guard(instruction.guard, state)
            here = condition if guard is None else self.terms.and_(condition, guard)
            if here.is_const and here.value == 0 and instruction.opcode not in ("bra", "brx", "ret", "exit"):
                continue
            edges = self._step(instruction, label, state, here, guard, memory, trace)
            if edges is not None:
                return edges
        return [Edge(self._next[label], self.terms.const(1, 1))]

    def _guard(self, guard: Guard | None, state: State) -> Term | None:
        if guard is None:
            return None
        value = state.read(guard.register, 1)
        return self.terms.not_(value) if guard.negated else value

    def _step(
        self, instruction: Instruction, label: str, state: State, here: Term, guard: Term | None, memory: Memory, trace: Trace
    ) -> list[Edge] | None:
        event = event_of(instruction)
        if event is None:
            self._value(instruction, state, here, guard)
        elif isinstance(event, MemoryEvent):
            self._access(instruction, event, state, here, guard, memory)
        elif isinstance(event, BarrierEvent):
            self._barrier(instruction, event, state, here, memory, trace)
        elif isinstance(event, ControlEvent):
            return self._control(instruction, label, state, guard)
        elif not isinstance(event, HintEvent):
            raise UnsupportedError(f"no proofs over '{instruction.mnemonic}'", instruction.location)
        return None

    # values

    def _value(self, instruction: Instruction, state: State, here: Term, guard: Term | None) -> None:
        compiled = self._compiled.get(id(instruction))
        if compiled is None:
            compiled = self._compiled[id(instruction)] = compile_instruction(instruction, self.algebra)
        values = [self._leaf(leaf, width, state) for leaf, width in zip(compiled.reads, compiled.read_widths, strict=True)]
        results = compiled.run(here, *values) if compiled.exchange else compiled.run(*values)
        for register, value in zip(compiled.writes, results, strict=True):
            self._write(register, value, state, guard)

    def _write(self, register: Register, value: Term, state: State, guard: Term | None) -> None:
        state.values[register] = value if guard is None else self.terms.ite(guard, value, state.read(register, register.bits))

    def _leaf(self, leaf: Register | SpecialOperand | SymbolOperand, width: int, state: State) -> Term:
        if isinstance(leaf, Register):
            return state.read(leaf, leaf.bits)
        if isinstance(leaf, SpecialOperand):
            name = f"{leaf.name}.{leaf.component}" if leaf.component else leaf.name
            return self.environment.special(name, width)
        return self._symbol(leaf.symbol, leaf.offset)

    def _symbol(self, symbol: Variable | Function, offset: int) -> Term:
        if isinstance(symbol, Function):
            return self.terms.var(f"&{symbol.name}", 64)
        if symbol.space in ("param",):
            raise UnsupportedError(f"the address of parameter '{symbol.name}'", symbol.location)
        return self.terms.add(self.environment.address(symbol.name, symbol.space), self.terms.const(offset, 64))

    def operand(self, operand: PtxOperand | None, bits: int, state: State) -> Term:
        """A stored or passed operand as a value of `bits`."""
        if isinstance(operand, RegOperand):
            value = state.read(operand.register, operand.register.bits)
            if operand.negated:
                value = self.terms.not_(value)
            return self.terms.extract(value, bits - 1, 0) if value.width >= bits else self.terms.zext(value, bits)
        if isinstance(operand, IntOperand):
            return self.terms.const(operand.value, bits)
        if isinstance(operand, SpecialOperand | SymbolOperand):
            return self.terms.extract(self._leaf(operand, 32 if isinstance(operand, SpecialOperand) else 64, state), bits - 1, 0)
        if operand is not None and not isinstance(operand, SinkOperand | VectorOperand):
            if isinstance(operand, FloatOperand):
                return self.terms.const(float_bits(operand, "f64" if bits == 64 else "f32"), bits)
        raise UnsupportedError(f"operand {operand!r}")

    # memory

    def address(self, operand: AddressOperand, state: State) -> Term:
        offset = self.terms.const(operand.offset, 64)
        if operand.base is None:
            return offset
        if isinstance(operand.base, Register):
            return self.terms.add(self.terms.zext(state.read(operand.base, operand.base.bits), 64), offset)
        return self._symbol(operand.base, operand.offset)

    def _access(self, instruction: Instruction, event: MemoryEvent, state: State, here: Term, guard: Term | None, memory: Memory) -> None:
        if event.space == "param":
            self._parameter(instruction, event, state, guard)
            return
        if event.order in ("acquire", "release", "acq_rel", "sc") and event.kind in ("load", "store"):
            raise UnsupportedError(f"'{instruction.mnemonic}' in a proof: ordering is not modelled", instruction.location)
        address = self.address(event.address, state)
        if event.space in ("shared", "local"):
            address = self.terms.extract(address, 31, 0)
        bits = 8 * event.size
        if event.kind == "load":
            for index, target in enumerate(event.targets):
                place = self.terms.add(address, self.terms.const(index * event.size, address.width))
                if event.space == "const":
                    value = self.environment.load_constant(place, event.size)
                else:
                    value = memory.load(event.space, here, place, event.size)
                self._loaded(target, value, event.type, state, guard)
            return
        if event.kind != "store" and event.count > 1:
            raise UnsupportedError(f"no proofs over '{instruction.mnemonic}'", instruction.location)
        values = tuple(self.operand(s, bits, state) for s in event.sources)
        if event.kind == "store":
            memory.store(event.space, here, address, event.size * len(values), values, strong=event.strong)
            return
        old = memory.atomic(event.space, here, address, event.size, values, atomic_name(event.operation, event.type))
        if event.targets:
            self._loaded(event.targets[0], old, event.type, state, guard)

    def _loaded(self, target: PtxOperand | None, value: Term, type_: str, state: State, guard: Term | None) -> None:
        if target is None or isinstance(target, SinkOperand):
            return
        if not isinstance(target, RegOperand):
            raise UnsupportedError(f"destination {target!r}")
        register = target.register
        wide = self.terms.sext(value, register.bits) if type_.startswith("s") else self.terms.zext(value, register.bits)
        self._write(register, wide, state, guard)

    def _parameter(self, instruction: Instruction, event: MemoryEvent, state: State, guard: Term | None) -> None:
        base = event.address.base
        if event.kind != "load" or not isinstance(base, Variable) or base.name not in self.parameters:
            raise UnsupportedError(f"'{instruction.mnemonic}' on a call parameter", instruction.location)
        offset = self.parameters[base.name] + event.address.offset
        for index, target in enumerate(event.targets):
            value = self.environment.parameter(offset + index * event.size, event.size)
            self._loaded(target, value, event.type, state, guard)

    # barriers and control

    def _barrier(self, instruction: Instruction, event: BarrierEvent, state: State, here: Term, memory: Memory, trace: Trace) -> None:
        if event.target is not None:
            raise UnsupportedError(f"'{instruction.mnemonic}'", instruction.location)
        name = barrier_name(event.name)
        operands = tuple(self.operand(o, 32, state) for o in event.operands) if name == "bar.sync" else ()
        memory.fence(name, here, operands)
        trace.events.append((name, here, operands))

    def _control(self, instruction: Instruction, label: str, state: State, guard: Term | None) -> list[Edge]:
        taken = guard if guard is not None else self.terms.const(1, 1)
        rest = [] if guard is None else [Edge(self._next[label], self.terms.not_(guard))]
        if instruction.opcode in ("ret", "exit"):
            return [Edge(EXIT, taken), *rest]
        if instruction.opcode == "bra":
            return [Edge(self._targets(instruction)[0], taken), *rest]
        if instruction.opcode == "brx":
            index = self.operand(instruction.operands[0], 32, state)
            edges = [
                Edge(target, self.terms.and_(taken, self.terms.eq(index, self.terms.const(number, 32))))
                for number, target in enumerate(self._targets(instruction))
            ]
            return [*edges, *rest]
        raise UnsupportedError(f"'{instruction.mnemonic}' in a proof", instruction.location)


def barrier_name(mnemonic: str) -> str:
    """One name for spellings of the same barrier or fence, shared with the SASS side."""
    words = mnemonic.split(".")
    if words[0] in ("fence", "membar"):
        if "proxy" in words or "mbarrier_init" in words:
            raise UnsupportedError(f"'{mnemonic}' in a proof")
        scope = next((w for w in words if w in ("cta", "cluster", "gpu", "sys", "gl")), "cta")
        return f"fence.{'gpu' if scope == 'gl' else scope}"
    if "warp" in words:
        return "bar.warp.sync"
    if words[0] in ("bar", "barrier") and "sync" in words:
        return "bar.sync"
    if mnemonic == "griddepcontrol.wait":
        return mnemonic
    raise UnsupportedError(f"'{mnemonic}' in a proof")


def parameter_offsets(function: Function) -> list[tuple[Variable, int]]:
    """Kernel parameters with their byte offsets: in order, each at its alignment."""
    offset = 0
    result = []
    for parameter in function.params:
        offset = (offset + parameter.align - 1) // parameter.align * parameter.align
        result.append((parameter, offset))
        offset += parameter.size
    return result
