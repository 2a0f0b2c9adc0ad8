"""A PTX interpreter: runs an entry function's grid over the PTX semantics, CTA by CTA, all of a CTA's lanes at once.

Every lane has its own place in the program; the lanes furthest behind run first, which brings divergent lanes back together. Values are numpy
arrays over the lanes of the CTA, padded to whole warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassay.emu.memory import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW, Buffer, Fault, GlobalMemory, Store, aligned
from sassay.emu.ptx_layout import Layout, lay_out
from sassay.errors import EmulationError, UnsupportedError
from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.numpy_algebra import NUMPY
from sassay.ptx.ast import (
    TYPE_BITS,
    FloatOperand,
    Function,
    Instruction,
    IntOperand,
    Label,
    LabelOperand,
    Module,
    PtxOperand,
    Register,
    RegOperand,
    SinkOperand,
    SpecialOperand,
    SymbolOperand,
    Variable,
)
from sassay.ptx.semantics import Compiled, compile_instruction
from sassay.ptx.semantics.compiled import float_bits
from sassay.ptx.semantics.events import BarrierEvent, ControlEvent, Event, HintEvent, MemoryEvent, event_of

Array = NDArray[Any]
Dim = tuple[int, int, int]
WARP = 32
DONE = 1 << 30
"""Program position of a lane that has ended."""


@dataclass(slots=True)
class PtxResult:
    """What a launch did: PTX instructions executed, counted by thread and by group of lanes."""

    thread_instructions: int = 0
    group_instructions: int = 0


@dataclass(slots=True)
class _Step:
    instruction: Instruction
    event: Event | None
    compiled: Compiled | None
    target: int = -1
    targets: list[int] = field(default_factory=list)


def emulate_ptx(
    module: Module, kernel: str, grid: Dim, block: Dim, args: Sequence[Any], *, shared_bytes: int = 0, max_steps: int = 50_000_000
) -> PtxResult:
    """Run an entry of `module`. `args` as for `sassay.emulate`: arrays are device buffers (changed in place), scalars are by value."""
    function = next((f for f in module.functions if f.name == kernel and f.is_entry and f.body is not None), None)
    if function is None:
        raise EmulationError(f"no entry '{kernel}' in the PTX")
    return _Launch(module, function, grid, block, args, shared_bytes, max_steps).run()


class _Launch:
    def __init__(
        self, module: Module, function: Function, grid: Dim, block: Dim, args: Sequence[Any], shared_bytes: int, max_steps: int
    ) -> None:
        self.function, self.grid, self.block = function, grid, block
        self.result = PtxResult()
        self.budget = max_steps
        self.memory = GlobalMemory()
        self.layout: Layout = lay_out(module, function, shared_bytes)
        self.buffers: list[tuple[Buffer, Array]] = []
        self.parameters = self._parameters(args)
        self.variables = {v.name: self.memory.allocate(v.name, max(v.size, 1)) for v in self.layout.globals}
        self.memory.commit()
        for buffer, array in self.buffers:
            self.memory.write(buffer, np.ascontiguousarray(array).view(np.uint8).reshape(-1).tobytes())
        self._initialise()
        self.steps = self._resolve()

    def run(self) -> PtxResult:
        for z in range(self.grid[2]):
            for y in range(self.grid[1]):
                for x in range(self.grid[0]):
                    _Cta(self, (x, y, z)).run()
        for buffer, array in self.buffers:
            array[...] = np.frombuffer(self.memory.read(buffer), array.dtype)[: array.size].reshape(array.shape)
        return self.result

    def _parameters(self, args: Sequence[Any]) -> bytes:
        if len(args) != len(self.function.params):
            raise EmulationError(f"'{self.function.name}' takes {len(self.function.params)} arguments, not {len(args)}")
        data = bytearray(self.layout.parameter_bytes)
        for variable, value in zip(self.function.params, args, strict=True):
            offset = self.layout.parameters[variable.name]
            if isinstance(value, np.ndarray) and value.ndim:
                buffer = self.memory.allocate(variable.name, value.nbytes)
                self.buffers.append((buffer, value))
                raw = buffer.address.to_bytes(8, "little")
            else:
                kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16}.get(variable.type)
                if kind is not None:
                    raw = np.array([value], kind).tobytes()
                elif isinstance(value, float | np.floating):
                    raw = np.array([value], np.float32 if variable.size == 4 else np.float64).tobytes()
                else:
                    raw = (int(value) & ((1 << (8 * variable.size)) - 1)).to_bytes(variable.size, "little")
            data[offset : offset + len(raw)] = raw
        return bytes(data)

    def _initialise(self) -> None:
        for v in self.layout.globals:
            buffer = self.variables[v.name]
            if v.init is not None:
                image = bytearray(v.init)
                for offset, symbol, addend, _ in v.relocations:
                    image[offset : offset + 8] = (self.address_of(symbol) + addend).to_bytes(8, "little")
                self.memory.write(buffer, bytes(image))

    def address_of(self, symbol: str) -> int:
        """The address of a variable: generic for global and const ones, an offset in its window for shared and local ones."""
        if symbol in self.variables:
            return self.variables[symbol].address
        for table in (self.layout.shared, self.layout.local):
            if symbol in table:
                return table[symbol]
        raise UnsupportedError(f"the address of '{symbol}'")

    def _resolve(self) -> list[_Step]:
        steps: list[_Step] = []
        labels: dict[str, int] = {}
        assert self.function.body is not None
        for statement in self.function.body:
            if isinstance(statement, Label):
                labels[statement.name] = len(steps)
            elif isinstance(statement, Instruction):
                event = event_of(statement)
                steps.append(_Step(statement, event, compile_instruction(statement, NUMPY) if event is None else None))
        for step in steps:
            if step.instruction.opcode in ("bra", "brx"):
                operand = step.instruction.operands[-1]
                assert isinstance(operand, LabelOperand)
                if step.instruction.opcode == "bra":
                    step.target = labels[operand.name]
                else:
                    step.targets = [labels[n] for n in self.function.branch_targets[operand.name]]
        return steps


class _Cta:
    """One CTA's lanes, registers and shared memory."""

    def __init__(self, launch: _Launch, index: Dim) -> None:
        self.launch, self.index = launch, index
        bx, by, bz = launch.block
        self.threads = bx * by * bz
        self.lanes = (self.threads + WARP - 1) // WARP * WARP
        linear = np.arange(self.lanes, dtype=np.uint32)
        self.special: dict[str, Array] = {
            "tid.x": linear % np.uint32(bx), "tid.y": linear // np.uint32(bx) % np.uint32(by), "tid.z": linear // np.uint32(bx * by),
            "laneid": linear % np.uint32(WARP), "warpid": linear // np.uint32(WARP),
        }  # fmt: skip
        self.place = np.zeros(self.lanes, np.int64)
        self.place[self.threads :] = DONE
        self.waiting = np.zeros(self.lanes, bool)
        self.registers: dict[Register, Array] = {}
        self.shared = Store(launch.layout.shared_bytes + 16)
        self.local = Store((launch.layout.local_bytes + 16) * self.lanes)
        self.local_size = launch.layout.local_bytes + 16

    def run(self) -> None:
        steps = self.launch.steps
        end = len(steps)
        while True:
            running = (self.place < end) & ~self.waiting
            if not running.any():
                if not self.waiting.any():
                    return
                self._release()
                continue
            here = int(self.place[running].min())
            self._group(here, running & (self.place == here))

    def _release(self) -> None:
        """All live lanes wait at the barrier: let them go on."""
        self.place[self.waiting] += 1
        self.waiting[:] = False

    def _group(self, here: int, active: Array) -> None:
        """Run the lanes `active` from `here` until they part or meet others further on."""
        steps, end = self.launch.steps, len(self.launch.steps)
        others = self.place[(self.place > here) & (self.place < end)]
        stop = int(others.min()) if others.size else end
        count = int(active.sum())
        while here < end:
            step = steps[here]
            self._count(step, count)
            guard = self._guard(step, active)
            try:
                jumped = self._step(step, here, active, guard)
            except Fault as fault:
                raise EmulationError(f"{step.instruction.location}: {fault.why} (CTA {self.index})") from None
            if jumped:
                return
            here += 1
            self.place[active] = here
            if here >= stop:
                return

    def _count(self, step: _Step, count: int) -> None:
        result = self.launch.result
        result.group_instructions += 1
        result.thread_instructions += count
        if result.group_instructions > self.launch.budget:
            raise EmulationError(f"no end after {self.launch.budget} steps, at {step.instruction.location}")

    def _guard(self, step: _Step, active: Array) -> Array:
        guard = step.instruction.guard
        if guard is None:
            return active
        value = self.read(guard.register).astype(bool)
        return np.asarray(active & (~value if guard.negated else value))

    def _step(self, step: _Step, here: int, active: Array, mask: Array) -> bool:
        """Execute one instruction for lanes `mask` of `active`; whether control left the straight line."""
        event = step.event
        if event is None:
            if mask.any():
                self._value(step, mask)
        elif isinstance(event, MemoryEvent):
            if mask.any():
                self._access(event, mask)
        elif isinstance(event, ControlEvent):
            return self._control(step, here, active, mask)
        elif isinstance(event, BarrierEvent):
            return self._barrier(step, event, here, active, mask)
        else:
            assert isinstance(event, HintEvent)
        return False

    # values

    def read(self, register: Register) -> Array:
        value = self.registers.get(register)
        if value is None:
            value = self.registers[register] = np.zeros(self.lanes, _dtype(register.bits))
        return value

    def write(self, register: Register, value: Array, mask: Array) -> None:
        value = np.broadcast_to(value, (self.lanes,))
        self.registers[register] = np.where(mask, value, self.read(register)) if not mask.all() else value

    def _leaf(self, leaf: Register | SpecialOperand | SymbolOperand) -> Array:
        if isinstance(leaf, Register):
            return self.read(leaf)
        if isinstance(leaf, SpecialOperand):
            return self._special(leaf)
        name = leaf.symbol.name
        return np.array([self.launch.address_of(name) + leaf.offset], np.uint64)

    def _special(self, leaf: SpecialOperand) -> Array:
        name = f"{leaf.name}.{leaf.component}" if leaf.component else leaf.name
        if name in self.special:
            return self.special[name]
        if leaf.name == "window":
            return np.array([SHARED_WINDOW if leaf.component == "shared" else LOCAL_WINDOW], np.uint64)
        axis = {"x": 0, "y": 1, "z": 2}.get(leaf.component, -1)
        table = {"ntid": self.launch.block, "nctaid": self.launch.grid, "ctaid": self.index}
        if leaf.name in table and axis >= 0:
            return np.array([table[leaf.name][axis]], np.uint32)
        lane = self.special["laneid"]
        one = np.uint32(1)
        masks = {
            "lanemask_eq": lambda: one << lane, "lanemask_lt": lambda: (one << lane) - one, "lanemask_le": lambda: (np.uint32(2) << lane) - one,
            "lanemask_gt": lambda: ~((np.uint32(2) << lane) - one), "lanemask_ge": lambda: ~((one << lane) - one),
        }  # fmt: skip
        if name in masks:
            return np.asarray(masks[name]())
        fixed = {"cluster_ctarank": 0, "nwarpid": self.lanes // WARP, "dynamic_smem_size": self.launch.layout.dynamic_bytes}
        if name in fixed:
            return np.array([fixed[name]], np.uint32)
        raise UnsupportedError(f"special register %{name}")

    def _value(self, step: _Step, mask: Array) -> None:
        compiled = step.compiled
        assert compiled is not None
        values = [self._leaf(leaf) for leaf in compiled.reads]
        if compiled.exchange:
            shape = (self.lanes // WARP, WARP)
            wide = [np.broadcast_to(v, (self.lanes,)).reshape(shape) for v in values]
            results = tuple(np.broadcast_to(r, shape).reshape(-1) for r in compiled.run(mask.reshape(shape), *wide))
        else:
            results = compiled.run(*values)
        for register, value in zip(compiled.writes, results, strict=True):
            self.write(register, value, mask)

    def operand(self, operand: PtxOperand | None, bits: int, mask: Array) -> Array:
        """A stored or passed operand, one value for each lane of `mask`."""
        count = int(mask.sum())
        if isinstance(operand, RegOperand):
            value = self.read(operand.register)[mask]
            if operand.negated:
                value = ~value
            return value.astype(_dtype(bits))
        if isinstance(operand, IntOperand):
            return np.full(count, operand.value & ((1 << bits) - 1), _dtype(bits))
        if isinstance(operand, FloatOperand):
            return np.full(count, float_bits(operand, "f64" if bits == 64 else "f32"), _dtype(bits))
        if isinstance(operand, SpecialOperand | SymbolOperand):
            return np.broadcast_to(self._leaf(operand), (self.lanes,))[mask].astype(_dtype(bits))
        raise UnsupportedError(f"operand {operand!r}")

    # memory

    def _access(self, event: MemoryEvent, mask: Array) -> None:
        if event.space == "param":
            self._parameter(event, mask)
            return
        base = event.address.base
        address = np.full(int(mask.sum()), event.address.offset & (2**64 - 1), np.uint64)
        if isinstance(base, Register):
            address = address + self.read(base)[mask].astype(np.uint64)
        elif isinstance(base, Variable):
            address = address + np.uint64(self.launch.address_of(base.name))
        lanes = np.flatnonzero(mask)
        for space, chosen in self._split(event.space, address):
            self._in_space(event, space, address[chosen], lanes[chosen], mask, chosen)

    def _split(self, space: str, address: Array) -> list[tuple[str, Array]]:
        """The state spaces that generic addresses fall into, with the positions of each."""
        if space != "generic":
            return [("global" if space == "const" else space, np.arange(address.size))]
        upper = address >> np.uint64(32)
        shared, local = upper == SHARED_WINDOW >> 32, upper == LOCAL_WINDOW >> 32
        groups = (("shared", shared), ("local", local), ("global", ~shared & ~local))
        return [(name, np.flatnonzero(chosen)) for name, chosen in groups if chosen.any()]

    def _positions(self, space: str, address: Array, lanes: Array, size: int) -> tuple[Store, Array]:
        if space == "global":
            aligned((address - np.uint64(GLOBAL_BASE)).view(np.int64), size, space)
            return self.launch.memory, self.launch.memory.locate(address, size)
        at = (address & np.uint64(0xFFFFFFFF)).astype(np.int64)
        aligned(at, size, space)
        limit = self.launch.layout.shared_bytes if space == "shared" else self.launch.layout.local_bytes
        bad = at + size > limit
        if bad.any():
            lane = int(bad.argmax())
            raise Fault(f"{space} access of {size} bytes out of bounds at {int(at[lane]):#x}", lane, int(at[lane]))
        if space == "shared":
            return self.shared, at
        stride = (self.local_size + 15) // 16 * 16
        if self.local.bytes.size < stride * self.lanes:
            self.local.resize(stride * self.lanes)
        return self.local, at + lanes * stride

    def _in_space(self, event: MemoryEvent, space: str, address: Array, lanes: Array, mask: Array, chosen: Array) -> None:
        size = event.size * event.count
        store, at = self._positions(space, address, lanes, size)
        here = np.zeros(self.lanes, bool)
        here[lanes] = True
        bits = 8 * event.size
        if event.kind == "load":
            for i, target in enumerate(event.targets):
                self._loaded(target, _join(store.load(at + i * event.size, event.size), bits), event.type, here)
        elif event.kind == "store":
            for i, source in enumerate(event.sources):
                store.store(at + i * event.size, event.size, _split_words(self.operand(source, bits, mask)[chosen], bits))
        else:
            old = np.zeros(at.size, _dtype(bits))
            operands = [self.operand(s, bits, mask)[chosen] for s in event.sources]
            for i in range(at.size):
                one = at[i : i + 1]
                old[i : i + 1] = _join(store.load(one, event.size), bits)
                new = _atomic(event, old[i : i + 1], [o[i : i + 1] for o in operands], bits)
                store.store(one, event.size, _split_words(new, bits))
            if event.targets:
                self._loaded(event.targets[0], old, event.type, here)

    def _loaded(self, target: PtxOperand | None, value: Array, type_: str, lanes: Array) -> None:
        if target is None or isinstance(target, SinkOperand):
            return
        if not isinstance(target, RegOperand):
            raise UnsupportedError(f"destination {target!r}")
        register, have = target.register, TYPE_BITS[type_]
        wide = NUMPY.sext(value, have, register.bits) if type_.startswith("s") and register.bits > have else value.astype(_dtype(register.bits))
        full = np.zeros(self.lanes, wide.dtype)
        full[lanes] = wide
        self.write(register, full, lanes)

    def _parameter(self, event: MemoryEvent, mask: Array) -> None:
        base = event.address.base
        parameters = self.launch.layout.parameters
        if event.kind != "load" or not isinstance(base, Variable) or base.name not in parameters:
            raise UnsupportedError("access to a call parameter")
        offset = parameters[base.name] + event.address.offset
        for i, target in enumerate(event.targets):
            raw = self.launch.parameters[offset + i * event.size : offset + (i + 1) * event.size]
            value = np.full(int(mask.sum()), int.from_bytes(raw, "little"), _dtype(8 * event.size))
            self._loaded(target, value, event.type, mask)

    # control

    def _control(self, step: _Step, here: int, active: Array, mask: Array) -> bool:
        opcode = step.instruction.opcode
        if opcode in ("ret", "exit"):
            self.place[mask] = DONE
        elif opcode == "bra":
            self.place[mask] = step.target
        elif opcode == "brx":
            index = np.zeros(self.lanes, np.int64)
            index[mask] = self.operand(step.instruction.operands[0], 32, mask)
            if (index[mask] >= len(step.targets)).any():
                raise EmulationError(f"{step.instruction.location}: brx.idx past its table")
            self.place[mask] = np.array(step.targets)[index[mask]]
        elif opcode == "trap" and mask.any():
            raise EmulationError(f"{step.instruction.location}: trap")
        elif opcode != "trap":
            raise UnsupportedError(f"'{step.instruction.mnemonic}'", step.instruction.location)
        rest = active & ~mask
        self.place[rest] = here + 1
        return bool(mask.any()) or opcode == "brx"

    def _barrier(self, step: _Step, event: BarrierEvent, here: int, active: Array, mask: Array) -> bool:
        words = event.name.split(".")
        if words[0] in ("fence", "membar", "griddepcontrol") or "warp" in words:
            return False
        if event.target is not None or len(event.operands) > 1 or "arrive" in words:
            raise UnsupportedError(f"'{event.name}' with a result or a thread count", step.instruction.location)
        self.waiting |= mask
        self.place[active & ~mask] = here + 1
        return True


def _dtype(bits: int) -> type[np.generic]:
    return np.bool_ if bits == 1 else np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64


def _join(words: tuple[Array, ...], bits: int) -> Array:
    if bits <= 32:
        return words[0].astype(_dtype(bits))
    return words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32)


def _split_words(value: Array, bits: int) -> tuple[Array, ...]:
    if bits <= 32:
        return (value.astype(np.uint32),)
    return ((value & np.uint64(0xFFFFFFFF)).astype(np.uint32), (value >> np.uint64(32)).astype(np.uint32))


def _atomic(event: MemoryEvent, old: Array, operands: list[Array], bits: int) -> Array:
    """The new value of an atomic operation."""
    name, type_ = event.operation, event.type
    a = operands[0]
    if name == "exch":
        return a
    if name == "cas":
        return np.where(old == a, operands[1], old)
    if type_.startswith(("f", "bf")):
        if name != "add" or type_.endswith("x2"):
            raise UnsupportedError(f"atomic .{name}.{type_}")
        return np.asarray(NUMPY.float_op(FloatOp("add", type_, ftz=type_ == "f32" and event.space == "global"))(old, a))
    if name in ("and", "or", "xor"):
        return old & a if name == "and" else old | a if name == "or" else old ^ a
    if name == "add":
        return old + a
    if name == "inc":
        return np.where(old >= a, np.zeros_like(old), old + 1).astype(old.dtype)
    if name == "dec":
        return np.where((old == 0) | (old > a), a, old - 1).astype(old.dtype)
    less = NUMPY.slt(old, a, bits) if type_.startswith("s") else NUMPY.ult(old, a, bits)
    return np.where(less == (name == "min"), old, a)
