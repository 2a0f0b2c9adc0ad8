"""Value operations and warp exchanges as steps: fetch, compute by the one semantics, write under the mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassay.emu.machine import Array, Machine, Step
from sassay.emu.memory import Store
from sassay.errors import EmulationError
from sassay.isa.semantics.numpy_algebra import NUMPY, dtype_of
from sassay.isa.semantics.shape import Access
from sassay.sass.meaning import compile_instruction
from sassay.sass.model import Const, File, Instruction, Name, Reg

Fetch = Callable[[], Array]
Slot = tuple[list[Array], int]
"""A list and an index in it: where a 32-bit register or a predicate lives."""
EMPTY_BANK = Store(0x10000)


def file_of(machine: Machine, file: File) -> list[Array]:
    """The registers of a file."""
    files: dict[File, list[Array]] = {File.R: machine.R, File.UR: machine.UR, File.P: machine.P, File.UP: machine.UP}
    if file not in files:
        raise EmulationError(f"register file {file.name} is no value operand")
    return files[file]


def pair(registers: list[Array], index: int) -> Fetch:
    """Two registers as one 64-bit value."""
    return lambda: NUMPY.concat(registers[index + 1], registers[index], 32, 32)


def slots_of(machine: Machine, instr: Instruction, access: Access) -> list[Slot]:
    """The registers that a register access covers, low part first."""
    operand = instr.operands[access.operand]
    if isinstance(operand, Name):
        if operand.text not in ("PR", "UPR"):
            raise EmulationError(f"'{operand.text}' is no register")
        return [(machine.P if operand.text == "PR" else machine.UP, access.part)]
    if not isinstance(operand, Reg):
        raise EmulationError("the operand is no register")
    registers = file_of(machine, operand.file)
    first = operand.index + (2 * access.part if access.width == 64 else access.part)
    return [(registers, first + k) for k in range(max(access.width // 32, 1))]


def fetch_of(machine: Machine, instr: Instruction, access: Access) -> Slot | Fetch:
    """How to get a raw value: a slot to look at, or a function to call."""
    operand = instr.operands[access.operand]
    if isinstance(operand, Const):
        return constant(machine, operand, access)
    if isinstance(operand, Name) and operand.text not in ("PR", "UPR"):
        return special(machine, operand.text, access.width)
    slots = slots_of(machine, instr, access)
    if access.width == 64:
        return pair(slots[0][0], slots[0][1])
    return slots[0]


def special(machine: Machine, name: str, width: int) -> Slot | Fetch:
    """A special register."""
    if name == "SRZ":
        return [np.zeros((1, 1), dtype_of(width))], 0
    if name.startswith("SR_CLOCK") or name.startswith("SR_GLOBALTIMER"):
        shift = 32 if name.endswith("HI") else 0
        return lambda: (machine.now() >> shift).astype(dtype_of(width))
    slot = machine.special.get(name)
    if slot is None:
        raise EmulationError(f"special register {name} is not known to the emulator")
    if width == 64:
        wide: Fetch = lambda: slot[0].astype(np.uint64)  # noqa: E731
        return wide
    return slot, 0


def constant(machine: Machine, operand: Const, access: Access) -> Slot | Fetch:
    """A constant bank operand; reads past the end of a bank, or of none, give zeros."""
    width, size = access.width, max(access.width // 8, 1)
    offset = operand.offset + 4 * access.part

    def at(bank: Store, where: Array) -> Array:
        where = where.astype(np.int64) & 0xFFFF
        words = bank.load(where, size)
        value: Array = NUMPY.concat(words[1], words[0], 32, 32) if width == 64 else words[0].astype(dtype_of(width), copy=False)
        return value

    if isinstance(operand.bank, Reg):
        return _bindless(machine, operand.bank, operand, offset, at)
    bank = machine.banks.get(operand.bank, EMPTY_BANK)
    if operand.base is None or operand.base.is_zero:
        return [at(bank, np.array([[offset]]))], 0
    registers, index = file_of(machine, operand.base.file), operand.base.index
    return lambda: at(bank, registers[index].astype(np.int64) + offset)


def _bindless(machine: Machine, bank: Reg, operand: Const, offset: int, at: Callable[[Store, Array], Array]) -> Fetch:
    """cx[URn][offset]: the bank stands in the register pair's upper half, a byte offset in its low 16 bits."""
    registers, index = file_of(machine, bank.file), bank.index

    def fetch() -> Array:
        numbers = np.unique(registers[index + 1])
        if numbers.size != 1:
            raise EmulationError("a bindless constant access names several banks at once")
        return at(machine.banks.get(int(numbers[0]), EMPTY_BANK), registers[index].astype(np.int64) + offset)

    return fetch


def guard_of(machine: Machine, guard: Reg) -> Callable[[], Array] | None:
    """A function that gives the guard's truth by lane; None when there is no guard."""
    if guard.is_zero and not guard.invert:
        return None
    registers, index = file_of(machine, guard.file), guard.index
    if guard.invert:
        return lambda: ~registers[index]
    return lambda: registers[index]


def spread(machine: Machine, value: Array) -> Array:
    """A value as (warps, 32)."""
    shape = (machine.warps, 32)
    return value if value.shape == shape else np.broadcast_to(value, shape)


def first_active(machine: Machine, value: Array, mask: Array) -> Array:
    """(warps, 1): the value of each warp's lowest active lane."""
    if value.ndim < 2 or value.shape[1] == 1:
        return value
    return np.take_along_axis(spread(machine, value), mask.argmax(axis=1)[:, None], axis=1)


def write_masked(machine: Machine, slot: Slot, value: Array, condition: Array | None) -> None:
    """Writes a register in the lanes of the group where `condition` (the guard) holds; lanes that have exited may be overwritten."""
    registers, index = slot
    uniform = registers is machine.UR or registers is machine.UP
    if uniform:
        mask = machine.mask if condition is None else machine.mask & condition
        value = first_active(machine, value, mask)
        if machine.free and condition is None:
            registers[index] = value
        else:
            registers[index] = np.where(mask.any(axis=1, keepdims=True), value, registers[index])
    elif condition is None:
        registers[index] = value if machine.free else np.where(machine.mask, value, registers[index])
    else:
        if not machine.free:
            condition = condition & machine.mask
        registers[index] = np.where(condition, value, registers[index])


def compile_value(machine: Machine, instr: Instruction) -> Step:
    """A value operation or exchange as a step."""
    compiled = compile_instruction(instr, NUMPY)
    fetches = [fetch_of(machine, instr, access) for access in compiled.reads]
    targets = [slots_of(machine, instr, access) for access in compiled.writes]
    run, guard = compiled.run, guard_of(machine, instr.guard)
    store = _storer(machine, targets)
    if compiled.lanes:
        return _exchange(machine, run, fetches, guard, store)
    gather = _gatherer(fetches)
    simple = guard is None and len(targets) == 1 and len(targets[0]) == 1 and targets[0][0][0] is machine.R
    if simple:
        registers, index = targets[0][0]

        def plain() -> None:
            value = run(*gather())[0]
            registers[index] = value if machine.free else np.where(machine.mask, value, registers[index])

        return plain
    if guard is None:
        return lambda: store(run(*gather()), None)

    def guarded() -> None:
        condition = guard()
        if not machine.free:
            condition = condition & machine.mask
        if condition.any():
            store(run(*gather()), condition)

    return guarded


def _gatherer(fetches: list[Slot | Fetch]) -> Callable[[], list[Array]]:
    """One function that fetches all operands."""
    if all(isinstance(f, tuple) for f in fetches):
        slots: list[Any] = fetches
        return lambda: [registers[index] for registers, index in slots]
    calls = [look(f) if isinstance(f, tuple) else f for f in fetches]
    return lambda: [call() for call in calls]


def look(slot: Slot) -> Fetch:
    """A function that gives a slot's value."""
    registers, index = slot
    return lambda: registers[index]


def _storer(machine: Machine, targets: list[list[Slot]]) -> Callable[[tuple[Array, ...], Array | None], None]:
    """One function that writes all results."""

    def store(values: tuple[Array, ...], condition: Array | None) -> None:
        for slots, value in zip(targets, values, strict=True):
            if len(slots) == 1:
                write_masked(machine, slots[0], value, condition)
            else:
                for part, slot in enumerate(slots):
                    word = (value >> np.uint64(32 * part)).astype(np.uint32)
                    write_masked(machine, slot, word, condition)

    return store


def _exchange(machine: Machine, run: Callable[..., Any], fetches: list[Slot | Fetch], guard: Fetch | None, store: Callable[..., None]) -> Step:
    """A warp-wide operation: it sees the mask of lanes that execute it."""
    gather = _gatherer(fetches)

    def step() -> None:
        condition = guard() if guard is not None else None
        active = machine.mask if condition is None else machine.mask & condition
        if condition is not None and not active.any():
            return
        store(run(active, *(spread(machine, v) for v in gather())), condition)

    return step
