"""One CTA of the PTX interpreter: lanes, registers, calls and control.

Every lane has its own place in the program and its own depth of calls. The lanes deepest in calls and furthest behind run first, which brings
divergent lanes back together; now and then the furthest ahead do, so that lanes that spin cannot keep others from what they wait for. Values are
numpy arrays over the lanes of the CTA, padded to whole warps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sassay.emu.memory import LOCAL_WINDOW, SHARED_WINDOW, Fault, GlobalMemory, Store
from sassay.emu.ptx_access import Array, access, copy_async, dtype, fragment, matrix
from sassay.emu.ptx_barrier import WARP, Barriers
from sassay.emu.ptx_layout import Layout
from sassay.errors import EmulationError, SassayError, UnsupportedError
from sassay.ptx.ast import (
    FloatOperand,
    Function,
    Instruction,
    IntOperand,
    ListOperand,
    PtxOperand,
    Register,
    RegOperand,
    SinkOperand,
    SpecialOperand,
    SymbolOperand,
    Variable,
)
from sassay.ptx.semantics import Compiled
from sassay.ptx.semantics.compiled import float_bits
from sassay.ptx.semantics.events import BarrierEvent, ControlEvent, CopyEvent, Event, FragmentEvent, HintEvent, MatrixEvent, MemoryEvent, StackEvent

Dim = tuple[int, int, int]
DONE = 1 << 30
"""Program position of a lane that has ended."""
FAIR = 256
"""Every so many turns the lanes furthest ahead run."""


@dataclass(slots=True)
class PtxResult:
    """What a launch did: PTX instructions executed, counted by thread and by group of lanes."""

    thread_instructions: int = 0
    group_instructions: int = 0


@dataclass(slots=True)
class Step:
    """An instruction of `function` made ready; `error` is raised when it is reached."""

    instruction: Instruction
    event: Event | None
    compiled: Compiled | None
    function: Function
    targets: list[int] = field(default_factory=list)
    error: SassayError | None = None


@dataclass(slots=True)
class Program:
    """What all CTAs of a launch share. `functions`: by address; `entries`: index of a function's first step."""

    grid: Dim
    block: Dim
    memory: GlobalMemory
    layout: Layout
    parameters: bytes
    budget: int
    steps: list[Step] = field(default_factory=list)
    addresses: dict[Variable | Function, int] = field(default_factory=dict)
    functions: dict[int, Function] = field(default_factory=dict)
    entries: dict[Function, int] = field(default_factory=dict)
    result: PtxResult = field(default_factory=PtxResult)


@dataclass(slots=True)
class Frame:
    """One depth of calls: registers over all lanes, parameter space (lanes x bytes), and by lane the calling step, and the local frame's
    start and end."""

    lanes: int
    registers: dict[Register, Array] = field(default_factory=dict)
    parameters: dict[Variable, Array] = field(default_factory=dict)
    caller: Array = field(init=False)
    base: Array = field(init=False)
    top: Array = field(init=False)

    def __post_init__(self) -> None:
        self.caller, self.base, self.top = (np.zeros(self.lanes, np.int64) for _ in range(3))

    def parameter(self, variable: Variable) -> Array:
        """The bytes of a parameter, one row a lane."""
        data = self.parameters.get(variable)
        if data is None:
            data = self.parameters[variable] = np.zeros((self.lanes, max(variable.size, 8)), np.uint8)
        return data


class Cta:
    """One CTA's lanes and shared memory."""

    def __init__(self, program: Program, index: Dim) -> None:
        self.program, self.index = program, index
        bx, by, bz = program.block
        threads = bx * by * bz
        self.lanes = (threads + WARP - 1) // WARP * WARP
        linear = np.arange(self.lanes, dtype=np.uint32)
        self.special: dict[str, Array] = {
            "tid.x": linear % np.uint32(bx), "tid.y": linear // np.uint32(bx) % np.uint32(by), "tid.z": linear // np.uint32(bx * by),
            "laneid": linear % np.uint32(WARP), "warpid": linear // np.uint32(WARP),
        }  # fmt: skip
        self.place = np.zeros(self.lanes, np.int64)
        self.place[threads:] = DONE
        self.depth = np.zeros(self.lanes, np.int64)
        self.frames = [Frame(self.lanes)]
        self.frames[0].top[:] = program.layout.frames[next(iter(program.entries))]
        self.frame = self.frames[0]
        self.barriers = Barriers(self)
        self.shared = Store(program.layout.shared_bytes + 16)
        self.local_stride = (program.layout.local_bytes + 31) // 16 * 16
        self.local = Store(self.local_stride * self.lanes)
        self.turn = 0

    def run(self) -> None:
        """Until every lane has ended. EmulationError where all that are left wait for ever."""
        while True:
            running = (self.place < DONE) & ~self.barriers.waiting
            if running.any():
                self._turn(running)
            elif not self.barriers.waiting.any():
                return
            elif not self.barriers.settle():
                raise EmulationError(f"deadlock at {self.barriers.describe()} (CTA {self.index})")

    def _turn(self, running: Array) -> None:
        self.turn += 1
        depth = int(self.depth[running].max())
        if self.turn % FAIR:
            running = running & (self.depth == depth)
            here = int(self.place[running].min())
        else:
            here = int(self.place[running].max())
            depth = int(self.depth[running & (self.place == here)].max())
        self._group(here, depth, running & (self.place == here) & (self.depth == depth))

    def _group(self, here: int, depth: int, active: Array) -> None:
        """Run the lanes `active` from `here` until they part or meet others further on."""
        steps = self.program.steps
        self.frame = self.frames[depth]
        others = self.place[(self.place > here) & (self.place < DONE)]
        stop = int(others.min()) if others.size else DONE
        count = int(active.sum())
        while True:
            step = steps[here]
            self._count(step, count)
            if step.error is not None:
                raise step.error
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

    def _count(self, step: Step, count: int) -> None:
        result = self.program.result
        result.group_instructions += 1
        result.thread_instructions += count
        if result.group_instructions > self.program.budget:
            raise EmulationError(f"no end after {self.program.budget} steps, at {step.instruction.location}")

    def _guard(self, step: Step, active: Array) -> Array:
        guard = step.instruction.guard
        if guard is None:
            return active
        value = self.read(guard.register).astype(bool)
        return np.asarray(active & (~value if guard.negated else value))

    def _step(self, step: Step, here: int, active: Array, mask: Array) -> bool:
        """Execute one instruction for lanes `mask` of `active`; whether control left the straight line."""
        event = step.event
        if isinstance(event, ControlEvent):
            return self._control(step, here, active, mask)
        if isinstance(event, BarrierEvent):
            self.place[active & ~mask] = here + 1
            waits = self.barriers.arrive(event, step.instruction, here, mask)
            return waits
        if not mask.any() or isinstance(event, HintEvent):
            return False
        if event is None:
            self._value(step, mask)
        elif isinstance(event, MemoryEvent):
            access(self, event, mask)
        elif isinstance(event, CopyEvent):
            copy_async(self, event, mask)
        elif isinstance(event, MatrixEvent):
            matrix(self, event, mask)
        elif isinstance(event, FragmentEvent):
            fragment(self, event, mask)
        else:
            self._stack(event, mask)
        return False

    # values

    def read(self, register: Register) -> Array:
        """A register's value in all lanes, at this depth of calls; zero before the first write."""
        value = self.frame.registers.get(register)
        if value is None:
            value = self.frame.registers[register] = np.zeros(self.lanes, dtype(register.bits))
        return value

    def write(self, register: Register, value: Array, mask: Array) -> None:
        """Set a register in the lanes of `mask`."""
        value = np.broadcast_to(value, (self.lanes,))
        self.frame.registers[register] = np.where(mask, value, self.read(register)) if not mask.all() else value

    def address_of(self, symbol: Variable | Function) -> Array:
        """The address of a variable or function: generic for global and const ones, in its window for shared and local ones (by lane)."""
        if symbol in self.program.addresses:
            return np.array([self.program.addresses[symbol]], np.uint64)
        if isinstance(symbol, Variable) and symbol in self.program.layout.shared:
            return np.array([self.program.layout.shared[symbol]], np.uint64)
        if isinstance(symbol, Variable) and symbol in self.program.layout.local:
            return (self.frame.base + self.program.layout.local[symbol]).astype(np.uint64)
        raise UnsupportedError(f"the address of '{symbol.name}'", symbol.location)

    def _leaf(self, leaf: Register | SpecialOperand | SymbolOperand) -> Array:
        if isinstance(leaf, Register):
            return self.read(leaf)
        if isinstance(leaf, SpecialOperand):
            return self._special(leaf)
        return self.address_of(leaf.symbol) + np.uint64(leaf.offset & (1 << 64) - 1)

    def _special(self, leaf: SpecialOperand) -> Array:
        name = f"{leaf.name}.{leaf.component}" if leaf.component else leaf.name
        if name in self.special:
            return self.special[name]
        if leaf.name == "window":
            return np.array([SHARED_WINDOW if leaf.component == "shared" else LOCAL_WINDOW], np.uint64)
        axis = {"x": 0, "y": 1, "z": 2}.get(leaf.component, -1)
        table = {"ntid": self.program.block, "nctaid": self.program.grid, "ctaid": self.index, "clusterid": self.index,
                 "nclusterid": self.program.grid, "cluster_ctaid": (0, 0, 0), "cluster_nctaid": (1, 1, 1)}  # fmt: skip
        if leaf.name in table and axis >= 0:
            return np.array([table[leaf.name][axis]], np.uint32)
        if name.startswith("lanemask_"):
            return _lane_mask(name, self.special["laneid"])
        layout = self.program.layout
        fixed = {"cluster_ctarank": 0, "cluster_nctarank": 1, "nwarpid": self.lanes // WARP, "dynamic_smem_size": layout.dynamic_bytes,
                 "total_smem_size": layout.shared_bytes, "reserved_smem_offset_begin": 0}  # fmt: skip
        if name in fixed:
            return np.array([fixed[name]], np.uint32)
        if name == "is_explicit_cluster":
            return np.array([False])
        raise UnsupportedError(f"special register %{name}")

    def _value(self, step: Step, mask: Array) -> None:
        compiled = step.compiled
        assert compiled is not None
        values = [self._leaf(leaf) for leaf in compiled.reads]
        if compiled.exchange:
            shape = (self.lanes // WARP, WARP)
            wide = [np.broadcast_to(v, (self.lanes,)).reshape(shape) for v in values]
            for part in self._parties(step.instruction, mask):
                results = tuple(np.broadcast_to(r, shape).reshape(-1) for r in compiled.run(part.reshape(shape), *wide))
                for register, value in zip(compiled.writes, results, strict=True):
                    self.write(register, value, part)
            return
        for register, value in zip(compiled.writes, compiled.run(*values), strict=True):
            self.write(register, value, mask)

    def _parties(self, instruction: Instruction, mask: Array) -> list[Array]:
        """Lanes that exchange values with each other: those of one member mask, where a warp's lanes name several."""
        if instruction.opcode not in ("vote", "match", "redux", "shfl") or "sync" not in instruction.modifiers:
            return [mask]
        operand = instruction.operands[-1]
        if isinstance(operand, IntOperand):
            return [mask]
        members = np.zeros(self.lanes, np.uint32)
        members[mask] = self.operand(operand, 32, mask)
        rows, here = members.reshape(-1, WARP), mask.reshape(-1, WARP)
        top = np.where(here, rows, 0).max(1, keepdims=True)
        if ((rows == top) | ~here).all():
            return [mask]
        return [mask & (members == value) for value in np.unique(members[mask])]

    def operand(self, operand: PtxOperand | None, bits: int, mask: Array) -> Array:
        """A stored or passed operand, one value for each lane of `mask`."""
        count = int(mask.sum())
        if isinstance(operand, RegOperand):
            value = self.read(operand.register)[mask]
            if operand.negated:
                value = ~value
            return value.astype(dtype(bits))
        if isinstance(operand, IntOperand):
            return np.full(count, operand.value & ((1 << bits) - 1), dtype(bits))
        if isinstance(operand, FloatOperand):
            return np.full(count, float_bits(operand, "f64" if bits == 64 else "f32"), dtype(bits))
        if isinstance(operand, SpecialOperand | SymbolOperand):
            return np.broadcast_to(self._leaf(operand), (self.lanes,))[mask].astype(dtype(bits))
        raise UnsupportedError(f"operand {operand!r}")

    def _stack(self, event: StackEvent, mask: Array) -> None:
        """alloca, stacksave and stackrestore: a lane's stack grows upwards from its frame."""
        top = self.frame.top
        if event.name == "stackrestore":
            top[mask] = self.operand(event.operand, 64, mask).astype(np.int64)
            return
        assert isinstance(event.target, RegOperand)
        if event.name == "alloca":
            top[mask] = (top[mask] + event.align - 1) // event.align * event.align
        self.write(event.target.register, top.astype(dtype(event.target.register.bits)), mask)
        if event.name == "alloca":
            top[mask] += self.operand(event.operand, 64, mask).astype(np.int64)

    # control

    def _control(self, step: Step, here: int, active: Array, mask: Array) -> bool:
        opcode = step.instruction.opcode
        if not mask.any() and opcode != "brx":
            return False
        self.place[active & ~mask] = here + 1
        handler: dict[str, Callable[[Step, int, Array], None]] = {"bra": self._branch, "brx": self._branch, "call": self._call, "ret": self._return}
        if opcode == "exit":
            self.place[mask] = DONE
        elif opcode in handler:
            handler[opcode](step, here, mask)
        elif opcode == "trap":
            raise EmulationError(f"{step.instruction.location}: trap")
        else:
            raise UnsupportedError(f"'{step.instruction.mnemonic}'", step.instruction.location)
        return True

    def _branch(self, step: Step, here: int, mask: Array) -> None:
        if step.instruction.opcode == "bra":
            self.place[mask] = step.targets[0]
            return
        index = self.operand(step.instruction.operands[0], 32, mask).astype(np.int64)
        if (index >= len(step.targets)).any():
            raise EmulationError(f"{step.instruction.location}: brx.idx past its table")
        self.place[mask] = np.array(step.targets)[index]

    def _call(self, step: Step, here: int, mask: Array) -> None:
        operands = [o for o in step.instruction.operands if isinstance(o, RegOperand | SymbolOperand)]
        callee = operands[0]
        if isinstance(callee, SymbolOperand):
            assert isinstance(callee.symbol, Function)
            self._enter(step, here, callee.symbol, mask)
            return
        addresses = np.zeros(self.lanes, np.uint64)
        addresses[mask] = self.operand(callee, 64, mask)
        frame = self.frame
        for address in np.unique(addresses[mask]):
            function = self.program.functions.get(int(address))
            if function is None:
                raise EmulationError(f"{step.instruction.location}: call of {int(address):#x}, which is no function")
            self.frame = frame
            self._enter(step, here, function, mask & (addresses == address))

    def _enter(self, step: Step, here: int, function: Function, mask: Array) -> None:
        """Move lanes to a function's start: a frame one deeper, with the arguments copied."""
        if function not in self.program.entries:
            raise UnsupportedError(f"call of '{function.name}', which has no body here", step.instruction.location)
        depth = int(self.depth[mask][0]) + 1
        if depth == len(self.frames):
            self.frames.append(Frame(self.lanes))
        outer, inner = self.frame, self.frames[depth]
        operands = step.instruction.operands
        callee = next(i for i, o in enumerate(operands) if not isinstance(o, ListOperand))
        after = operands[callee + 1] if callee + 1 < len(operands) else None
        arguments = after.elements if isinstance(after, ListOperand) else ()
        if len(arguments) != len(function.params):
            raise EmulationError(f"{step.instruction.location}: '{function.name}' takes {len(function.params)} arguments")
        for variable, argument in zip(function.params, arguments, strict=True):
            self._pass(outer, argument, inner, self._own(function, variable), mask)
        inner.caller[mask] = here
        inner.base[mask] = (outer.top[mask] + 15) // 16 * 16
        inner.top[mask] = inner.base[mask] + self.program.layout.frames[function]
        if (inner.top[mask] > self.program.layout.local_bytes).any():
            raise EmulationError(f"{step.instruction.location}: call stack overflow")
        self.depth[mask] = depth
        self.place[mask] = self.program.entries[function]

    def _own(self, function: Function, variable: Variable) -> PtxOperand:
        """A function's own parameter as an operand: a register, or a symbol in parameter space."""
        if variable.space != "reg":
            return SymbolOperand(variable)
        return RegOperand(next(r for r in function.registers if r.name == variable.name))

    def _pass(self, source: Frame, value: PtxOperand, target: Frame, place: PtxOperand, mask: Array) -> None:
        """Copy an argument or result from one frame to another."""
        if isinstance(place, SinkOperand):
            return
        bits = place.register.bits if isinstance(place, RegOperand) else 64
        if isinstance(value, SymbolOperand) and isinstance(value.symbol, Variable) and value.symbol.space == "param":
            data = source.parameter(value.symbol)[mask]
        else:
            self.frame = source
            data = self.operand(value, bits, mask).astype(np.uint64)[:, None].view(np.uint8)
        self.frame = target
        if isinstance(place, RegOperand):
            full = np.zeros((self.lanes, 8), np.uint8)
            full[mask] = data[:, :8]
            self.write(place.register, full.view(np.uint64)[:, 0].astype(dtype(bits)), mask)
        else:
            assert isinstance(place, SymbolOperand) and isinstance(place.symbol, Variable)
            row = target.parameter(place.symbol)
            row[mask, : min(row.shape[1], data.shape[1])] = data[:, : row.shape[1]]

    def _return(self, step: Step, here: int, mask: Array) -> None:
        depth = int(self.depth[mask][0])
        if depth == 0:
            self.place[mask] = DONE
            return
        inner, outer = self.frames[depth], self.frames[depth - 1]
        for caller in np.unique(inner.caller[mask]):
            chosen = mask & (inner.caller == caller)
            first = self.program.steps[int(caller)].instruction.operands[0]
            results = first.elements if isinstance(first, ListOperand) else ()
            for variable, place in zip(step.function.returns, results, strict=False):
                self._pass(inner, self._own(step.function, variable), outer, place, chosen)
            self.place[chosen] = int(caller) + 1
        self.depth[mask] = depth - 1


def _lane_mask(name: str, lane: Array) -> Array:
    one = np.uint32(1)
    below = (one << lane) - one
    return {
        "lanemask_eq": one << lane, "lanemask_lt": below, "lanemask_le": below | one << lane, "lanemask_gt": ~(below | one << lane),
        "lanemask_ge": ~below,
    }[name]  # fmt: skip
