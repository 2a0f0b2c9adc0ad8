"""Launching a cubin's kernel: arguments in, constant banks, batches of CTAs, results out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sassay.cubin import read
from sassay.emu.access import Watch, compile_memory
from sassay.emu.control import NOTHING, STEPS, compile_control, compile_move
from sassay.emu.loader import load_program
from sassay.emu.machine import Array, Machine
from sassay.emu.memory import LOCAL_WINDOW, SHARED_WINDOW, Buffer, GlobalMemory, Store
from sassay.emu.program import Program
from sassay.emu.sanitizer import Finding, Sanitizer
from sassay.emu.timing import Timing
from sassay.emu.values import compile_value
from sassay.errors import EmulationError, Location, SassayError
from sassay.isa.semantics.numpy_algebra import quiet
from sassay.isa.timing import model
from sassay.isa.timing.model import TimingModel
from sassay.sass.meaning import event_of, kind_of
from sassay.sass.model import Instruction

Dim = tuple[int, int, int]
LANES_AT_ONCE = 8192
"""CTAs run together until they have about this many lanes: enough to make numpy's overhead small, few enough for the caches."""
UNKNOWN_STACK = 16384
"""Local memory per thread, bytes, where the cubin cannot tell (recursion)."""
MODELLED = ("MUFU", "HMMA", "IMMA", "DMMA", "QMMA", "OMMA", "BMMA", "FCHK")
"""Operations whose results are hardware's own: the emulator computes them by a published model."""


@dataclass(frozen=True, slots=True)
class Record:
    """A structure argument: its bytes, with buffers whose 64-bit addresses stand at byte offsets within it."""

    data: bytes
    pointers: dict[int, Array]


@dataclass
class EmulationResult:
    """What a launch did. Counts are of executed instructions: by thread (lane) and by warp; `opcodes` by thread."""

    thread_instructions: int = 0
    warp_instructions: int = 0
    opcodes: Counter[str] = field(default_factory=Counter)
    by_offset: dict[int, int] = field(default_factory=dict)
    """Thread instructions by byte offset in the kernel; offsets never reached are left out."""
    modelled: list[str] = field(default_factory=list)
    """Operations that ran by a model of the hardware rather than by a rule."""
    findings: list[Finding] = field(default_factory=list)


def emulate(
    cubin: bytes, kernel: str | None, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_bytes: int = 0,
    timing: TimingModel | bool | None = None, sanitize: bool = True, max_steps: int = 20_000_000,
) -> EmulationResult:  # fmt: skip
    """Runs a kernel of a cubin on `grid` x `block` threads.

    `args`: numpy arrays are device buffers (copied in, and results copied back into them), a `Record` is a structure with buffers in it; scalars
    have their parameter's size. `shared_bytes` is the dynamic shared memory. `max_steps` bounds the instructions that one batch of CTAs may issue.
    `timing`: True or a TimingModel turns timing mode on (see `emu.timing`). EmulationError for bad accesses, hangs and deadlocks.
    """
    program = load_program(read(cubin), kernel)
    return run_program(program, grid, block, args, shared_bytes=shared_bytes, timing=timing, sanitize=sanitize, max_steps=max_steps)


def run_program(
    program: Program, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_bytes: int = 0,
    timing: TimingModel | bool | None = None, sanitize: bool = True, max_steps: int = 20_000_000,
) -> EmulationResult:  # fmt: skip
    """`emulate` for a program already loaded."""
    full_grid, full_block = _dim(grid, "grid"), _dim(block, "block")
    if full_block[0] * full_block[1] * full_block[2] > 1024:
        raise EmulationError(f"a block of {full_block} has more than 1024 threads")
    launch = _Launch(program, full_grid, full_block, shared_bytes, max_steps)
    with quiet():
        launch.bind(args)
        sanitizer = Sanitizer(launch.machine) if sanitize else None
        if sanitizer is not None:
            sanitizer.watch_program(program.instructions)
        timer: Timing | None = None
        if timing:
            timer = Timing(launch.machine, timing if isinstance(timing, TimingModel) else model(program.target))
        launch.compile(sanitizer, timer)
        try:
            launch.run()
        except EmulationError as error:
            for finding in _findings(sanitizer, timer):
                error.add_note(str(finding))
            raise
        launch.copy_back()
    return launch.result(_findings(sanitizer, timer))


def _findings(sanitizer: Sanitizer | None, timer: Timing | None) -> list[Finding]:
    return [*(sanitizer.findings if sanitizer else []), *(timer.findings if timer else [])]


def _dim(values: Sequence[int], what: str) -> Dim:
    if not 1 <= len(values) <= 3 or any(v < 1 for v in values):
        raise EmulationError(f"bad {what} {tuple(values)}")
    x, y, z = (*(int(v) for v in values), 1, 1)[:3]
    return x, y, z


class _Launch:
    def __init__(self, program: Program, grid: Dim, block: Dim, shared_bytes: int, max_steps: int) -> None:
        self.program = program
        self.memory = GlobalMemory()
        self.machine = Machine(program, grid, block, self.memory)
        self.machine.max_steps = max_steps
        self.shared = (program.shared_bytes or program.target.smem_reserved) + shared_bytes
        self.dynamic = shared_bytes
        stack = program.stack_bytes
        self.local = UNKNOWN_STACK if stack is None else -(-stack // 16) * 16
        self.arrays: list[tuple[Any, Buffer]] = []

    def bind(self, args: Sequence[Any]) -> None:
        """Places buffers and variables in global memory and fills the constant banks."""
        program, memory = self.program, self.memory
        if len(args) != len(program.parameters):
            raise EmulationError(f"{program.kernel} takes {len(program.parameters)} arguments, got {len(args)}")
        buffers: dict[int, Buffer] = {}
        records: dict[tuple[int, int], Buffer] = {}
        for index, value in enumerate(args):
            if isinstance(value, np.ndarray) and value.ndim > 0:
                buffers[index] = memory.allocate(f"argument {index}", value.nbytes)
                self.arrays.append((value, buffers[index]))
            elif isinstance(value, Record):
                for offset, array in value.pointers.items():
                    records[index, offset] = memory.allocate(f"argument {index}+{offset}", array.nbytes)
                    self.arrays.append((array, records[index, offset]))
        variables = {v.name: memory.allocate(v.name, len(v.data)) for v in program.variables}
        memory.commit()
        for value, buffer in self.arrays:
            memory.write(buffer, value.tobytes())
        for variable in program.variables:
            memory.write(variables[variable.name], variable.data)
        values = [value.data if isinstance(value, Record) else value for value in args]
        self.machine.banks[0] = self._bank0(values, buffers)
        for (index, offset), buffer in records.items():
            at = program.target.constants.params + program.parameters[index].offset + offset
            self.machine.banks[0].bytes[at : at + 8] = np.frombuffer(buffer.address.to_bytes(8, "little"), np.uint8)
        for bank, data in program.constants.items():
            self.machine.banks[bank] = _bank(data)
        for fixup in program.fixups:
            self._fix(fixup, variables)

    def _bank0(self, args: Sequence[Any], buffers: dict[int, Buffer]) -> Store:
        bank, layout, m = Store(0x10000 + 64), self.program.target.constants, self.machine

        def put(offset: int, value: int, size: int = 4) -> None:
            bank.bytes[offset : offset + size] = np.frombuffer((value & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)

        for k in range(3):
            put(layout.ntid + 4 * k, m.block[k])
            put(layout.nctaid + 4 * k, m.grid[k])
            put(layout.cluster_shape + 4 * k, 1)
            put(layout.cluster_count + 4 * k, m.grid[k])
        put(layout.cluster_nctarank, 1)
        put(layout.stack_top, self.local)
        put(layout.local_window, LOCAL_WINDOW, 8)
        put(layout.dynamic_smem, self.dynamic)
        put(layout.reserved_smem, self.program.target.smem_reserved)
        put(layout.nonglobal_bound, 1 << 63, 8)
        put(layout.nsmid, 1)
        for index, (parameter, value) in enumerate(zip(self.program.parameters, args, strict=True)):
            at = layout.params + parameter.offset
            if index in buffers:
                if parameter.size != 8:
                    raise EmulationError(f"argument {index} is an array, parameter {index} has {parameter.size} bytes")
                put(at, buffers[index].address, 8)
            else:
                data = scalar_bytes(value, parameter.size, index)
                bank.bytes[at : at + parameter.size] = np.frombuffer(data, np.uint8)
        return bank

    def _fix(self, fixup: Any, variables: dict[str, Buffer]) -> None:
        if fixup.symbol in variables:
            address = variables[fixup.symbol].address
        elif fixup.symbol in self.program.functions:
            address = self.program.functions[fixup.symbol]
        else:
            raise EmulationError(f"the address of '{fixup.symbol}' is not known", Location(kernel=self.program.kernel))
        data = np.frombuffer((address + fixup.addend & (1 << 64) - 1).to_bytes(8, "little"), np.uint8)
        if isinstance(fixup.where, int):
            self.machine.banks[fixup.where].bytes[fixup.offset : fixup.offset + 8] = data
        else:
            self.memory.write(variables[fixup.where], data.tobytes(), fixup.offset)

    def compile(self, sanitizer: Sanitizer | None, timer: Timing | None) -> None:
        """Makes a step or a transfer of every instruction."""
        m = self.machine
        m.start(range(1), 0, 0)
        _special_registers(m)
        watch = sanitizer.watch if sanitizer is not None else None
        for index, instr in enumerate(self.program.instructions):
            step, transfer = _compile_one(m, instr, index, watch)
            if sanitizer is not None and step is not None:
                step = sanitizer.guarded(index, instr, step)
            if timer is not None:
                step = timer.wrap(index, instr, step) if step is not None else None
                transfer = timer.wrap(index, instr, transfer) if transfer is not None else None
            m.steps.append(step or _nothing)
            m.transfers.append(transfer)
        following = len(m.steps)
        m.next_transfer = [0] * len(m.steps)
        for index in range(len(m.steps) - 1, -1, -1):
            if m.transfers[index] is not None or index == len(m.steps) - 1:
                following = index
            m.next_transfer[index] = following

    def run(self) -> None:
        m = self.machine
        total = m.grid[0] * m.grid[1] * m.grid[2]
        warps = -(-(m.block[0] * m.block[1] * m.block[2]) // 32)
        together = max(1, LANES_AT_ONCE // (32 * warps))
        for first in range(0, total, together):
            m.issued = 0
            m.start(range(first, min(first + together, total)), self.shared, self.local)
            _special_registers(m)
            m.run()

    def copy_back(self) -> None:
        """Writes buffers back into the caller's arrays."""
        for value, buffer in self.arrays:
            if value.flags.writeable:
                value[...] = np.frombuffer(self.memory.read(buffer), value.dtype).reshape(value.shape)

    def result(self, findings: list[Finding]) -> EmulationResult:
        m = self.machine
        threads, warps = np.cumsum(m.thread_edges[:-1]), np.cumsum(m.warp_edges[:-1])
        out = EmulationResult(int(threads.sum()), int(warps.sum()))
        for index, (instr, count) in enumerate(zip(self.program.instructions, threads, strict=True)):
            if count:
                out.opcodes[instr.opcode] += int(count)
                out.by_offset[16 * index] = int(count)
        out.modelled = sorted(o for o in out.opcodes if o in MODELLED)
        out.findings = findings
        return out


def _nothing() -> None:
    return None


def _compile_one(m: Machine, instr: Instruction, index: int, watch: Watch | None) -> tuple[Any, Any]:
    """(step, transfer) of one instruction, one of them None. What cannot be run fails when it is reached, by name."""
    try:
        kind = kind_of(instr)
        if instr.opcode in NOTHING:
            return _nothing, None
        if kind == "value":
            return compile_value(m, instr), None
        if kind == "memory":
            return compile_memory(m, instr, watch), None
        if instr.opcode in STEPS:
            return compile_move(m, instr, index), None
        return None, compile_control(m, instr, event_of(instr))  # type: ignore[arg-type]
    except SassayError as error:
        message = error.message

        def unknown() -> None:
            raise m.fail(index, f"{instr.mnemonic}: {message}")

        return unknown, None


def _bank(data: bytes) -> Store:
    """A constant bank of 64 KiB, and a little more so that the last word may be read as a wide one."""
    store = Store(0x10000 + 64)
    store.bytes[: len(data)] = np.frombuffer(data, np.uint8)
    return store


def scalar_bytes(value: Any, size: int, index: int) -> bytes:
    """A scalar argument as the bytes of its parameter."""
    if isinstance(value, (bytes, bytearray)):
        data = bytes(value)
    elif isinstance(value, (np.generic, np.ndarray)):
        data = value.tobytes()
    elif isinstance(value, float):
        data = np.array(value, {4: np.float32, 8: np.float64, 2: np.float16}.get(size, np.float64)).tobytes()
    elif isinstance(value, int):
        data = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    else:
        raise EmulationError(f"argument {index} is a {type(value).__name__}")
    if len(data) != size:
        raise EmulationError(f"argument {index} has {len(data)} bytes, parameter {index} has {size}")
    return data


def _special_registers(m: Machine) -> None:
    """Fills in the special registers of the batch."""
    bx, by, _ = m.block
    gx, gy, _ = m.grid
    thread = m.thread_of_lane.astype(np.uint32)
    cta = (m.cta_of_warp + m.ctas.start).astype(np.uint32)
    lane = np.arange(32, dtype=np.uint32).reshape(1, 32)
    one = np.uint32(1)
    bit = one << lane
    warp = (thread[:, :1] >> 5).astype(np.uint32)

    def number(v: int) -> Array:
        return np.array([[v]], np.uint32)

    values = {
        "SR_LANEID": np.broadcast_to(lane, (m.warps, 32)), "SR_TID.X": thread % bx, "SR_TID.Y": thread // bx % by, "SR_TID.Z": thread // (bx * by),
        "SR_CTAID.X": cta % gx, "SR_CTAID.Y": cta // gx % gy, "SR_CTAID.Z": cta // (gx * gy),
        "SR_TID": (thread % bx) | (thread // bx % by << np.uint32(16)) | (thread // (bx * by) << np.uint32(26)),
        "SR_NTID": number(m.block[0] | m.block[1] << 16 | m.block[2] << 26),
        "SR_CgaCtaId": number(0), "SR_CgaSize": number(0), "SR_SWINHI": number(SHARED_WINDOW >> 32), "SR_LMEMHIOFF": number(0),
        "SR_SMEMSZ": number(m.shared_bytes), "SR_VIRTID": warp << np.uint32(8), "SR_VIRTCFG": number(m.warps_per_cta << 8),
        "SR_VIRTUALSMID": number(0),
        "SR_EQMASK": np.broadcast_to(bit, (m.warps, 32)), "SR_LTMASK": np.broadcast_to(bit - one, (m.warps, 32)),
        "SR_LEMASK": np.broadcast_to((bit - one) | bit, (m.warps, 32)), "SR_GTMASK": np.broadcast_to(~((bit - one) | bit), (m.warps, 32)),
        "SR_GEMASK": np.broadcast_to(~(bit - one), (m.warps, 32)), "SR_REGALLOC": number(0),
    }  # fmt: skip
    for name, value in values.items():
        m.special.setdefault(name, [value])[0] = value
