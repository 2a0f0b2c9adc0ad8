"""SASS, decoded from bytes, as a side of a proof: one thread's view of its instructions, over the one semantics.

Control codes play no part here: that the hardware behaves as if instructions ran in order is the hazard check's theorem. Convergence barriers
are no-ops for one thread. What a proof takes for granted is entered in the environment's assumptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sassay.errors import Location, SassError, UnsupportedError
from sassay.isa.semantics.events import BarrierOp, ControlOp, MemoryOp
from sassay.isa.target import Target as Chip
from sassay.sass.meaning import Access, Compiled, compile_instruction, event_of, kind_of
from sassay.sass.model import RZ, Const, File, Imm, Instruction, Mem, Name, Reg, Target
from sassay.verify.environment import Environment
from sassay.verify.memory import Memory
from sassay.verify.regions import EXIT, Edge, State, Trace
from sassay.verify.term_algebra import TermAlgebra
from sassay.verify.terms import Term

WORD = 16

_SPECIAL = {
    **{f"SR_{n}.{a.upper()}": f"{n.lower()}.{a}" for n in ("TID", "CTAID") for a in "xyz"},
    "SR_LANEID": "laneid", "SR_CgaCtaId": "cluster_ctarank", "SR_EQMASK": "lanemask_eq", "SR_LTMASK": "lanemask_lt", "SR_LEMASK": "lanemask_le",
    "SR_GTMASK": "lanemask_gt", "SR_GEMASK": "lanemask_ge", "SR_VIRTUALSMID": "smid",
}  # fmt: skip
_SKIPPED_BARRIERS = frozenset({"ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "DEPBAR"})
"""Completion and cache maintenance: they accompany fences, which stand for them."""
_SKIPPED_CONTROL = frozenset({"BSSY", "BSYNC", "NOP", "YIELD", "BREAK", "BMOV", "NANOSLEEP", "PMTRIG"})
_ENDS = frozenset({"BRA", "BRX", "BRXU", "JMP", "EXIT", "RET", "CALL", "KILL"})


class SassSide:
    """One kernel's instructions. Blocks are named by the byte offset of their first instruction."""

    def __init__(
        self,
        instructions: Sequence[Instruction],
        chip: Chip,
        environment: Environment,
        symbols: Mapping[tuple[int, int], tuple[str, int]] | None = None,
        tables: Mapping[int, Sequence[int]] | None = None,
        extra_leaders: Iterable[int] = (),
    ) -> None:
        self.instructions = instructions
        self.chip = chip
        self.environment = environment
        self.terms = environment.terms
        self.algebra = TermAlgebra(self.terms)
        self.symbols = symbols or {}
        self.tables = tables or {}
        self._compiled: dict[int, Compiled | MemoryOp | BarrierOp | ControlOp] = {}
        self.leaders = sorted(self._leaders(set(extra_leaders)))
        ends = [*self.leaders[1:], len(instructions) * WORD]
        self.blocks = {str(start): range(start // WORD, end // WORD) for start, end in zip(self.leaders, ends, strict=True)}

    def _leaders(self, leaders: set[int]) -> set[int]:
        leaders.add(0)
        for index, instruction in enumerate(self.instructions):
            if instruction.opcode in _ENDS:
                if index + 1 < len(self.instructions):
                    leaders.add((index + 1) * WORD)
                leaders.update(self._targets(index))
        return leaders

    def _targets(self, index: int) -> list[int]:
        instruction = self.instructions[index]
        if instruction.opcode in ("BRX", "BRXU"):
            if index * WORD not in self.tables:
                raise self._unsupported(index, "its targets are not known")
            return list(self.tables[index * WORD])
        if instruction.opcode not in ("BRA", "JMP"):
            return []
        return [int(o.to) for o in instruction.operands if isinstance(o, Target) and not isinstance(o.to, str)]

    def _unsupported(self, index: int, why: str) -> UnsupportedError:
        return UnsupportedError(f"{self.instructions[index].mnemonic}: {why}", Location(offset=index * WORD))

    def _falls_through(self, index: int) -> bool:
        instruction = self.instructions[index]
        if instruction.opcode not in _ENDS:
            return True
        conditional = not instruction.guard.is_zero or instruction.guard.invert
        return conditional or any(
            isinstance(o, Reg) and o.file in (File.P, File.UP) and (o.invert or not o.is_zero) for o in instruction.operands
        )

    def successors(self, label: str) -> Iterable[str]:
        last = self.blocks[label][-1]
        found = [str(t) for t in self._targets(last)]
        if self.instructions[last].opcode in ("EXIT", "KILL"):
            found.append(EXIT)
        if self._falls_through(last):
            found.append(str((last + 1) * WORD))
        return found

    # execution

    def execute(self, label: str, state: State, condition: Term, memory: Memory, trace: Trace) -> list[Edge]:
        block = self.blocks[label]
        for index in block:
            instruction = self.instructions[index]
            guard = self._predicate(instruction.guard, state)
            here = self.terms.and_(condition, guard)
            ends = instruction.opcode in _ENDS
            if here.is_const and here.value == 0 and not ends:
                continue
            try:
                edges = self._step(index, state, here, guard, memory, trace)
            except SassError as error:
                raise UnsupportedError(error.message, Location(offset=index * WORD)) from None
            if edges is not None:
                return edges
        return [Edge(str(block[-1] * WORD + WORD), self.terms.const(1, 1))]

    def _predicate(self, register: Reg, state: State) -> Term:
        if register.is_zero:
            return self.terms.const(0 if register.invert else 1, 1)
        value = state.read((register.file, register.index), 1)
        return self.terms.not_(value) if register.invert else value

    def _step(self, index: int, state: State, here: Term, guard: Term, memory: Memory, trace: Trace) -> list[Edge] | None:
        instruction = self.instructions[index]
        plan = self._compiled.get(index)
        if plan is None:
            plan = compile_instruction(instruction, self.algebra) if kind_of(instruction) == "value" else event_of(instruction)
            self._compiled[index] = plan
        if isinstance(plan, Compiled):
            self._value(instruction, plan, state, here, guard)
        elif isinstance(plan, MemoryOp):
            self._access(instruction, plan, state, here, guard, memory)
        elif isinstance(plan, BarrierOp):
            self._barrier(instruction, plan, state, here, memory, trace)
        else:
            return self._control(index, instruction, plan, state, here, guard, memory, trace)
        return None

    # values

    def _value(self, instruction: Instruction, plan: Compiled, state: State, here: Term, guard: Term) -> None:
        values = [self._read(instruction, access, state) for access in plan.reads]
        if instruction.opcode == "R2UR":
            self.environment.assumptions.add("values moved to uniform registers by R2UR are the same in all lanes")
            results: tuple[Term | None, ...] = (values[0],)
        else:
            results = plan.run(here, *values) if plan.lanes else plan.run(*values)
        for access, value in zip(plan.writes, results, strict=True):
            assert value is not None
            self._write(instruction, access, value, state, guard)

    def _read(self, instruction: Instruction, access: Access, state: State) -> Term:
        operand = instruction.operands[access.operand]
        if isinstance(operand, Reg):
            if access.width == 1:
                return state.read((operand.file, operand.index), 1)
            return self._register(operand, access.width, access.part, state)
        if isinstance(operand, Const):
            return self._constant(operand, access.width, access.part, state)
        if isinstance(operand, Name):
            if operand.text in ("PR", "UPR"):
                return state.read((File.P if operand.text == "PR" else File.UP, access.part), 1)
            return self._special(operand.text, access.width)
        raise SassError(f"operand {access.operand} of {instruction.mnemonic} cannot be read")

    def _register(self, register: Reg, width: int, part: int, state: State) -> Term:
        if register.index == RZ:
            return self.terms.const(0, width)
        first = register.index + part * (2 if width == 64 else 1)
        words = [state.read((register.file, first + i), 32) for i in range(max(1, width // 32))]
        return self.terms.concat(*reversed(words))

    def _write(self, instruction: Instruction, access: Access, value: Term, state: State, guard: Term) -> None:
        operand = instruction.operands[access.operand]
        if isinstance(operand, Name):
            self._put((File.P if operand.text == "PR" else File.UP, access.part), value, state, guard)
            return
        if not isinstance(operand, Reg):
            raise SassError(f"operand {access.operand} of {instruction.mnemonic} cannot be written")
        if access.width == 1:
            self._put((operand.file, operand.index), value, state, guard)
            return
        first = operand.index + access.part * (2 if access.width == 64 else 1)
        for i in range(max(1, access.width // 32)):
            self._put((operand.file, first + i), self.terms.extract(value, 32 * i + 31, 32 * i), state, guard)

    def _put(self, key: tuple[File, int], value: Term, state: State, guard: Term) -> None:
        if guard.is_const and guard.value:
            state.values[key] = value
        else:
            state.values[key] = self.terms.ite(guard, value, state.read(key, value.width))

    def _special(self, name: str, width: int) -> Term:
        if name == "SRZ":
            return self.terms.const(0, width)
        if name == "SR_SWINHI":
            return self.terms.extract(self.environment.special("window.shared", 64), 63, 32)
        return self.environment.special(_SPECIAL.get(name, name), width)

    def _constant(self, operand: Const, width: int, part: int, state: State) -> Term:
        if isinstance(operand.bank, Reg):
            raise SassError("bindless constant banks are not modelled")
        offset = operand.offset + 4 * part
        if operand.base is not None:
            if operand.base.index == RZ:
                return self._bank(operand.bank, offset, width // 8)
            base = state.read((operand.base.file, operand.base.index), 32)
            return self.environment.indexed_constant(operand.bank, self.terms.add(base, self.terms.const(offset, 32)), width // 8)
        return self._bank(operand.bank, offset, width // 8)

    def _bank(self, bank: int, offset: int, size: int) -> Term:
        places = self.chip.constants
        if bank != 0:
            found = self.symbols.get((bank, offset & ~7))
            if found is not None:
                address = self.terms.add(self.environment.address(found[0], "global"), self.terms.const(found[1], 64))
                low = 8 * (offset & 7)
                return self.terms.extract(address, low + 8 * size - 1, low)
            return self.environment.constant(bank, offset, size)
        if offset >= places.params:
            return self.environment.parameter(offset - places.params, size)
        if size == 8:
            return self.terms.concat(self._bank(bank, offset + 4, 4), self._bank(bank, offset, 4))
        for base, name in ((places.ntid, "ntid"), (places.nctaid, "nctaid")):
            if base <= offset < base + 12 and size <= 4:
                axis, rest = divmod(offset - base, 4)
                word = self.environment.special(f"{name}.{'xyz'[axis]}", 32)
                return self.terms.extract(word, 8 * (rest + size) - 1, 8 * rest)
        if offset == places.stack_top:
            return self.environment.stack(32)
        if places.local_window <= offset < places.local_window + 8:
            window = self.environment.special("window.local", 64)
            return self.terms.extract(window, 8 * (offset - places.local_window) + 31, 8 * (offset - places.local_window))
        return self.environment.constant(0, offset, size)

    # memory

    def _address(self, mem: Mem, wide: bool, state: State) -> Term:
        width = 64 if wide else 32
        total = self.terms.const(mem.offset, width)
        for part in mem.parts:
            if part.index == RZ:
                continue
            total = self.terms.add(total, self._address_part(part, width, state))
        return total

    def _address_part(self, part: Reg, width: int, state: State) -> Term:
        scale = 1
        is_pair = width == 64
        for suffix in part.suffix:
            if suffix == "64":
                is_pair = True
            elif suffix in ("U32", "32"):
                is_pair = False
            elif suffix in ("X4", "X8", "X16"):
                scale = int(suffix[1:])
            else:
                raise SassError(f"address part .{suffix} is not modelled")
        value = self._register(part, 64 if is_pair else 32, 0, state)
        value = self.terms.zext(value, width) if value.width < width else self.terms.extract(value, width - 1, 0)
        return self.terms.scale(value, scale)

    def _memory_operand(self, instruction: Instruction, position: int) -> Mem:
        operand = instruction.operands[position]
        if not isinstance(operand, Mem):
            raise SassError(f"operand {position} of {instruction.mnemonic} is no address")
        return operand

    def _access(self, instruction: Instruction, op: MemoryOp, state: State, here: Term, guard: Term, memory: Memory) -> None:
        if op.action not in ("load", "store", "atomic", "reduce") or op.predicate_result is not None or op.lanes != 1:
            raise SassError(f"{instruction.mnemonic} is not modelled in proofs")
        wide = op.wide or op.space in ("global", "generic")
        address = self._address(self._memory_operand(instruction, op.address), wide, state)
        if op.space == "local" and self._stack_cell(instruction, op, address, state, guard):
            return
        strong = op.order in ("STRONG", "MMIO")
        if op.action == "load":
            self._load(instruction, op, address, state, here, guard, memory)
        elif op.action == "store":
            values = tuple(self._narrow(self._read(instruction, a, state), op.size) for a in op.data)
            memory.store(op.space, here, address, op.size * op.count, values, strong=strong)
        else:
            operands = tuple(self._read(instruction, a, state) for a in op.data)
            name = atomic_name(op.operation, op.type)
            old = memory.atomic(op.space, here, address, op.size, operands, name)
            for access in op.result:
                self._write(instruction, access, old, state, guard)

    def _narrow(self, value: Term, size: int) -> Term:
        return self.terms.extract(value, 8 * size - 1, 0) if value.width > 8 * size else value

    def _load(self, instruction: Instruction, op: MemoryOp, address: Term, state: State, here: Term, guard: Term, memory: Memory) -> None:
        for access in op.result:
            step = access.part * op.size
            value = memory.load(op.space, here, self.terms.add(address, self.terms.const(step, address.width)), op.size)
            if value.width < 32:
                value = self.terms.sext(value, 32) if op.signed else self.terms.zext(value, 32)
            self._write(instruction, access, value, state, guard)

    def _stack_cell(self, instruction: Instruction, op: MemoryOp, address: Term, state: State, guard: Term) -> bool:
        """Spill slots, at known places of the frame that no PTX variable has, are private: plain values of the state."""
        distance = self.terms.sub(address, self.environment.stack(32))
        if not distance.is_const or self.environment.in_local(distance.value, op.size * op.count) or op.size != 4:
            return False
        accesses = op.data if op.action == "store" else op.result
        for access in accesses:
            key = ("stack", (distance.value + 4 * access.part) & 0xFFFFFFFF)
            if op.action == "store":
                value = self._read(instruction, access, state)
                state.values[key] = value if guard.is_const and guard.value else self.terms.ite(guard, value, state.read(key, 32))
            else:
                self._write(instruction, access, state.read(key, 32), state, guard)
        return True

    # barriers and control

    def _barrier(
        self, instruction: Instruction, op: BarrierOp, state: State, here: Term, memory: Memory, trace: Trace
    ) -> None:
        if op.name in _SKIPPED_BARRIERS:
            return
        if op.name == "BAR" and op.modifiers and op.modifiers[0] == "SYNC":
            name = "bar.sync"
            operands = tuple(self._barrier_operand(o, state) for o in instruction.operands)
        elif op.name == "MEMBAR":
            scope = next((s for m, s in _SCOPES.items() if m in op.modifiers), "")
            if not scope:
                raise SassError(f"{instruction.mnemonic}: the scope is not known")
            name, operands = f"fence.{scope}", ()
        elif op.name == "WARPSYNC":
            name, operands = "bar.warp.sync", ()
        elif op.name == "ACQBULK":
            name, operands = "griddepcontrol.wait", ()
        elif op.name == "PREEXIT":
            return
        else:
            raise SassError(f"{instruction.mnemonic} is not modelled in proofs")
        memory.fence(name, here, operands)
        trace.events.append((name, here, operands))

    def _barrier_operand(self, operand: object, state: State) -> Term:
        if isinstance(operand, Imm):
            return self.terms.const(operand.value, 32)
        if isinstance(operand, Reg):
            return self._register(operand, 32, 0, state)
        raise SassError("barrier operand is not modelled")

    def _control(
        self, index: int, instruction: Instruction, op: ControlOp, state: State, here: Term, guard: Term, memory: Memory, trace: Trace
    ) -> list[Edge] | None:
        if op.name in _SKIPPED_CONTROL:
            return None
        if op.condition >= 0:
            condition = instruction.operands[op.condition]
            assert isinstance(condition, Reg)
            guard = self.terms.and_(guard, self._predicate(condition, state))
        rest = [Edge(str((index + 1) * WORD), self.terms.not_(guard))] if self._falls_through(index) else []
        if op.name in ("EXIT", "KILL"):
            return [Edge(EXIT, guard), *rest]
        if op.name in ("BRA", "JMP") and not {"DIV", "CONV"} & set(op.modifiers):
            return [Edge(str(self._targets(index)[0]), guard), *rest]
        if op.name == "BPT":
            memory.fence("trap", here)
            trace.events.append(("trap", here, ()))
            return None
        raise SassError(f"{instruction.mnemonic} is not modelled in proofs")


_SCOPES = {"SM": "cta", "CTA": "cta", "GPU": "gpu", "SYS": "sys", "VC": "sys"}


def atomic_name(operation: str, type_: str) -> str:
    """One name for an atomic operation, whatever side spells it: signs only where they matter."""
    operation, type_ = operation.lower(), type_.lower()
    if operation in ("add", "and", "or", "xor", "exch", "cas", "inc", "dec") and type_ in ("u32", "s32", "b32", "u64", "s64", "b64"):
        type_ = "b" + type_[1:]
    return f"{operation}.{type_}"
