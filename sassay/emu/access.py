"""Memory instructions as steps. What an instruction moves is `isa.semantics.events.MemoryOp`; here are addresses, spaces, lanes and order.

Lanes of one instruction are served in order of their number: of stores that meet the highest lane's stays, atomics that meet follow each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassay.emu.machine import Array, Machine, Step
from sassay.emu.memory import LOCAL_WINDOW, SHARED_WINDOW, Fault, Store, Words, aligned
from sassay.emu.values import Fetch, Slot, file_of, guard_of, slots_of, spread, write_masked
from sassay.errors import EmulationError
from sassay.isa.semantics.events import MemoryOp, compile_atomic
from sassay.isa.semantics.numpy_algebra import NUMPY
from sassay.isa.semantics.shape import Access
from sassay.sass.meaning import event_of
from sassay.sass.model import Instruction, Mem, Reg

WINDOW = 1 << 24
"""Size of the shared and local windows in the generic address space."""
Watch = Callable[[str, str, Array, Array, int], None]
"""Observer of accesses: (space, "read" | "write" | "atomic", byte positions, lanes, size)."""
BASES = {"global": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
SCALES = {"X4": 4, "X8": 8, "X16": 16}


def address_of(machine: Machine, operand: Mem, wide: bool) -> Fetch:
    """An address as unsigned 64-bit numbers; 32-bit spaces wrap at 32 bits."""
    terms = [_term(machine, part, wide) for part in operand.parts if not part.is_zero]
    offset = np.array([[operand.offset & 0xFFFFFFFFFFFFFFFF]], np.uint64)
    mask = np.uint64(0xFFFFFFFFFFFFFFFF if wide else 0xFFFFFFFF)

    def fetch() -> Array:
        total = offset
        for term in terms:
            total = total + term()
        return total if wide else total & mask

    return fetch


def _term(machine: Machine, part: Reg, wide: bool) -> Fetch:
    registers, index = file_of(machine, part.file), part.index
    if wide and "U32" not in part.suffix and "S32" not in part.suffix:
        return lambda: NUMPY.concat(registers[index + 1], registers[index], 32, 32)
    if "S32" in part.suffix:
        return lambda: registers[index].astype(np.int32).astype(np.int64).view(np.uint64)
    scale = np.uint64(next((SCALES[s] for s in part.suffix if s in SCALES), 1))
    return lambda: registers[index].astype(np.uint64) * scale


class Accessor:
    """One memory instruction: finds stores and positions for its active lanes."""

    def __init__(self, machine: Machine, op: MemoryOp, watch: Watch | None) -> None:
        self.machine, self.op, self.watch = machine, op, watch
        self.bytes = op.size * op.count

    def places(self, space: str, address: Array, lanes: Array, size: int, how: str) -> tuple[Store, Array]:
        """The store and the byte positions in it of 64-bit addresses in one space; Fault where one is bad."""
        m = self.machine
        if space == "global":
            positions = m.memory.locate(address, size)
            aligned(positions, size, space)
            if self.watch is not None:
                self.watch(space, how, positions, lanes, size)
            return m.memory, positions
        offset = address.view(np.int64)
        aligned(offset, size, space)
        limit = m.shared_bytes if space == "shared" else m.local_bytes
        bad = (offset < 0) | (offset + size > limit)
        if bad.any():
            lane = int(bad.argmax())
            raise Fault(f"{space} access of {size} bytes out of bounds at {int(address[lane]):#x} of {limit:#x}", lane, int(address[lane]))
        if space == "shared":
            cta = m.cta_of_warp.reshape(-1)[lanes >> 5]
            positions = offset + cta * m.shared_bytes
            if self.watch is not None:
                self.watch(space, how, positions, lanes, size)
            return m.shared, positions
        width = m.local.stride
        return m.local, (((offset >> 2) * width + lanes) << 2) | (offset & 3)

    def split(self, address: Array) -> list[tuple[str, Array, Array | None]]:
        """Generic addresses by space: (space, address in it, which lanes; None for all)."""
        out: list[tuple[str, Array, Array | None]] = []
        for space, which in spaces_of(address).items():
            base = BASES[space]
            if which.all():
                return [(space, address - np.uint64(base), None)]
            if which.any():
                out.append((space, address[which] - np.uint64(base), which))
        return out

    def each(self, address: Array, lanes: Array, how: str, work: Callable[[Store, Array, Array | None], None]) -> None:
        """Calls `work(store, positions, which lanes)` for every space met; faults come out with the lane of the batch."""
        spaces = self.split(address) if self.op.space == "generic" else [(self.op.space, address, None)]
        for space, where, which in spaces:
            own = lanes if which is None else lanes[which]
            try:
                store, positions = self.places(space, where, own, self.bytes if how != "atomic" else self.op.size, how)
            except Fault as fault:
                fault.lane = int(own[fault.lane])
                raise
            work(store, positions, which)


def active_lanes(machine: Machine, guard: Fetch | None) -> tuple[Array | None, Array]:
    """The mask of lanes that execute (None: all of the batch) and their numbers."""
    if guard is None:
        if machine.full:
            return None, machine.lane_numbers
        mask = machine.mask
    else:
        mask = machine.mask & guard()
    return mask, np.flatnonzero(mask)


def pick(machine: Machine, value: Array, mask: Array | None) -> Array:
    """A value's elements in the active lanes, one-dimensional."""
    value = spread(machine, value)
    return value.reshape(-1) if mask is None else value[mask]


def scatter(machine: Machine, slot: Slot, words: Array, mask: Array | None) -> None:
    """Writes one word for each active lane."""
    registers, index = slot
    if mask is None:
        registers[index] = words.reshape(machine.warps, 32)
    else:
        new = spread(machine, registers[index]).copy()
        new[mask] = words
        registers[index] = new


def compile_memory(machine: Machine, instr: Instruction, watch: Watch | None) -> Step:
    """A memory instruction as a step."""
    op = event_of(instr)
    assert isinstance(op, MemoryOp)
    operand = instr.operands[op.address]
    assert isinstance(operand, Mem)
    address, guard = address_of(machine, operand, op.wide and op.action != "copy"), guard_of(machine, instr.guard)
    access = Accessor(machine, op, watch)
    makers = {"load": _load, "store": _store, "atomic": _atomic, "reduce": _atomic, "load_matrix": _load_matrix, "store_matrix": _store_matrix}
    if op.action == "query":
        return _query(machine, instr, op, address, guard)
    if op.action == "copy":
        return _copy(access, instr, address, guard)
    if op.action not in makers:
        raise EmulationError(f"no way to run a memory {op.action}")
    return makers[op.action](access, instr, address, guard)


def spaces_of(address: Array) -> dict[str, Array]:
    """Which generic addresses lie in which space; what is neither shared nor local is global."""
    shared = (address >= np.uint64(SHARED_WINDOW)) & (address < np.uint64(SHARED_WINDOW + WINDOW))
    local = (address >= np.uint64(LOCAL_WINDOW)) & (address < np.uint64(LOCAL_WINDOW + WINDOW))
    return {"global": ~(shared | local), "shared": shared, "local": local}


def _query(machine: Machine, instr: Instruction, op: MemoryOp, address: Fetch, guard: Fetch | None) -> Step:
    """QSPC: whether a generic address lies in a space."""
    if op.predicate_result is None:
        return lambda: None
    slot, space = slots_of(machine, instr, op.predicate_result)[0], op.space

    def step() -> None:
        where = address()
        inside = spaces_of(where).get(space, np.zeros(where.shape, np.bool_))
        write_masked(machine, slot, inside, guard() if guard is not None else None)

    return step


def _register_slots(machine: Machine, instr: Instruction, accesses: tuple[Access, ...]) -> list[Slot]:
    return [slot for a in accesses for slot in slots_of(machine, instr, a)]


def _load(access: Accessor, instr: Instruction, address: Fetch, guard: Fetch | None) -> Step:
    m, op = access.machine, access.op
    slots = _register_slots(m, instr, op.result)
    signed = op.signed
    narrow = np.int8 if op.size == 1 else np.int16

    def words_at(store: Store, positions: Array) -> Words:
        words = store.load(positions, access.bytes)
        return (words[0].astype(narrow).astype(np.int32).view(np.uint32),) if signed else words

    def step() -> None:
        mask, lanes = active_lanes(m, guard)
        if not lanes.size:
            return
        where = address()
        if where.size == 1 and op.space == "global":  # one address for all: one load
            store, positions = access.places("global", where.reshape(-1), lanes[:1], access.bytes, "read")
            condition = guard() if guard is not None else None
            for slot, word in zip(slots, words_at(store, positions), strict=False):
                write_masked(m, slot, word.reshape(1, 1), condition)
            return
        out: list[Array] = []

        def work(store: Store, positions: Array, which: Array | None) -> None:
            words = words_at(store, positions)
            if which is None:
                out.extend(words)
                return
            if not out:
                out.extend(np.zeros(lanes.size, np.uint32) for _ in words)
            for whole, part in zip(out, words, strict=True):
                whole[which] = part

        access.each(pick(m, where, mask), lanes, "read", work)
        for slot, word in zip(slots, out, strict=False):
            scatter(m, slot, word, mask)

    return step


def _store(access: Accessor, instr: Instruction, address: Fetch, guard: Fetch | None) -> Step:
    m, op = access.machine, access.op
    slots = _data_slots(m, instr, op)

    def step() -> None:
        mask, lanes = active_lanes(m, guard)
        if not lanes.size:
            return
        data = [pick(m, registers[index], mask) for registers, index in slots]

        def work(store: Store, positions: Array, which: Array | None) -> None:
            store.store(positions, access.bytes, tuple(data) if which is None else tuple(d[which] for d in data))

        access.each(pick(m, address(), mask), lanes, "write", work)

    return step


def _data_slots(machine: Machine, instr: Instruction, op: MemoryOp) -> list[Slot]:
    """Registers of stored data; every part of RZ is zero."""
    slots: list[Slot] = []
    for a in op.data:
        operand = instr.operands[a.operand]
        if isinstance(operand, Reg) and operand.is_zero:
            slots += [([np.zeros((1, 1), np.uint32)], 0)] * max(a.width // 32, 1)
        else:
            slots += slots_of(machine, instr, a)
    return slots


def _elements(slots: list[Slot], size: int, machine: Machine, mask: Array | None) -> list[Array]:
    """Atomic operands as whole elements of 4 or 8 bytes."""
    words = [pick(machine, registers[index], mask) for registers, index in slots]
    if size == 4:
        return words
    return [words[k].astype(np.uint64) | (words[k + 1].astype(np.uint64) << np.uint64(32)) for k in range(0, len(words), 2)]


def _atomic(access: Accessor, instr: Instruction, address: Fetch, guard: Fetch | None) -> Step:
    m, op = access.machine, access.op
    fn = compile_atomic(op, NUMPY)
    data, results = _data_slots(m, instr, op), _register_slots(m, instr, op.result)
    flag = slots_of(m, instr, op.predicate_result)[0] if op.predicate_result is not None else None
    per_element = 2 if op.operation in ("CAS", "CAST") else 1
    words_each = op.size // 4

    def step() -> None:
        mask, lanes = active_lanes(m, guard)
        if not lanes.size:
            return
        values = _elements(data, op.size, m, mask)
        where = pick(m, address(), mask)
        if flag is not None and op.operation != "CAST":  # packed halves: the code that follows does it in other spaces
            reached = spaces_of(where)["global"]
            scatter_flag(m, flag, reached, mask)
            if not reached.all():
                lanes, where, values = lanes[reached], where[reached], [v[reached] for v in values]
                mask = np.isin(m.lane_numbers, lanes).reshape(m.warps, 32)
                if not lanes.size:
                    return
        for element in range(op.lanes):
            operands = values[element * per_element : (element + 1) * per_element]
            old: Array = np.zeros(lanes.size, np.uint64 if op.size == 8 else np.uint32)

            def work(store: Store, positions: Array, which: Array | None, operands: Any = operands, old: Any = old) -> None:
                chosen = operands if which is None else [v[which] for v in operands]
                before = in_order(store, positions, op.size, fn, chosen)
                old[slice(None) if which is None else which] = before

            access.each(where + np.uint64(element * op.size), lanes, "atomic", work)
            if op.operation == "CAST":  # its result is whether it swapped
                old = (old == operands[0]).astype(old.dtype)
                if flag is not None:
                    scatter_flag(m, flag, old != 0, mask)
            for k, slot in enumerate(results[element * words_each : (element + 1) * words_each]):
                scatter(m, slot, (old >> np.uint64(32 * k)).astype(np.uint32) if op.size == 8 else old, mask)
    return step


def scatter_flag(machine: Machine, slot: Slot, truth: Array, mask: Array | None) -> None:
    """Writes one predicate for each active lane."""
    registers, index = slot
    if mask is None:
        registers[index] = truth.reshape(machine.warps, 32)
    else:
        new = spread(machine, registers[index]).copy()
        new[mask] = truth
        registers[index] = new


def in_order(store: Store, positions: Array, size: int, fn: Callable[..., Array], operands: list[Array]) -> Array:
    """Applies `new = fn(old, operands)` one lane after the other; gives the old values. Lanes that do not meet go side by side."""
    order = np.argsort(positions, kind="stable")
    place = positions[order]
    first = np.ones(place.size, np.bool_)
    first[1:] = place[1:] != place[:-1]
    starts = np.flatnonzero(first)
    rank = np.arange(place.size) - np.repeat(starts, np.diff(np.append(starts, place.size)))
    out = np.zeros(positions.size, np.uint64 if size == 8 else np.uint32)
    rounds = np.argsort(rank, kind="stable")
    edges = np.append(np.flatnonzero(np.diff(rank[rounds], prepend=-1)), rank.size)
    for k in range(edges.size - 1):
        lanes = order[rounds[edges[k] : edges[k + 1]]]
        at = positions[lanes]
        words = store.load(at, size)
        old = words[0] if size == 4 else words[0].astype(np.uint64) | (words[1].astype(np.uint64) << np.uint64(32))
        new = fn(old, *(v[lanes] for v in operands))
        out[lanes] = old
        parts = (new,) if size == 4 else (new.astype(np.uint32), (new >> np.uint64(32)).astype(np.uint32))
        store.store(at, size, parts)
    return out


def _copy(access: Accessor, instr: Instruction, address: Fetch, guard: Fetch | None) -> Step:
    """LDGSTS: global to shared. Its asynchrony is not modelled: the bytes are there at once."""
    m, op = access.machine, access.op
    source = instr.operands[op.source]
    assert isinstance(source, Mem)
    from_ = address_of(m, source, True)
    condition: Fetch | None = None
    if op.predicate >= 0:
        flag = instr.operands[op.predicate]
        assert isinstance(flag, Reg)
        condition = guard_of(m, flag)

    def step() -> None:
        mask, lanes = active_lanes(m, guard)
        if not lanes.size:
            return
        size = access.bytes
        try:
            shared, to = access.places("shared", pick(m, address(), mask), lanes, size, "write")
            wanted = pick(m, condition(), mask) if condition is not None else np.ones(lanes.size, np.bool_)
            words = [np.zeros(lanes.size, np.uint32) for _ in range(size // 4)]
            if wanted.any():
                store, at = access.places("global", pick(m, from_(), mask)[wanted], lanes[wanted], size, "read")
                for whole, part in zip(words, store.load(at, size), strict=True):
                    whole[wanted] = part
        except Fault as fault:
            fault.lane = int(lanes[min(fault.lane, lanes.size - 1)])
            raise
        shared.store(to, size, tuple(words))

    return step


def _rows(m: Machine, guard: Fetch | None) -> Array:
    """Warps that execute a matrix access."""
    mask = m.mask if guard is None else m.mask & guard()
    return np.flatnonzero(mask.any(axis=1))


def _matrix_places(access: Accessor, where: Array, warps: Array, k: int, how: str) -> tuple[Store, Array]:
    """Positions of the eight rows of matrix `k`, (warps, 8) flattened."""
    address = spread(access.machine, where)[warps, 8 * k : 8 * k + 8].reshape(-1)
    lanes = (warps[:, None] * 32 + np.arange(8 * k, 8 * k + 8)).reshape(-1)
    try:
        return access.places("shared", address, lanes, 16, how)
    except Fault as fault:
        fault.lane = int(lanes[fault.lane])
        raise


def _load_matrix(access: Accessor, instr: Instruction, address: Fetch, guard: Fetch | None) -> Step:
    m, op = access.machine, access.op
    slots = _register_slots(m, instr, op.result)

    def step() -> None:
        warps = _rows(m, guard)
        where = address()
        for k, (registers, index) in enumerate(slots):
            store, at = _matrix_places(access, where, warps, k, "read")
            words = np.stack(store.load(at, 16), axis=-1).reshape(warps.size, 8, 4)
            if op.transposed:
                halves = np.ascontiguousarray(words).view(np.uint16).reshape(warps.size, 8, 8)
                words = np.ascontiguousarray(halves.transpose(0, 2, 1)).view(np.uint32)
            new = spread(m, registers[index]).copy()
            new[warps] = words.reshape(warps.size, 32)
            registers[index] = new

    return step


def _store_matrix(access: Accessor, instr: Instruction, address: Fetch, guard: Fetch | None) -> Step:
    m, op = access.machine, access.op
    slots = _data_slots(m, instr, op)

    def step() -> None:
        warps = _rows(m, guard)
        where = address()
        for k, (registers, index) in enumerate(slots):
            store, at = _matrix_places(access, where, warps, k, "write")
            words = np.ascontiguousarray(spread(m, registers[index])[warps]).reshape(warps.size, 8, 4)
            if op.transposed:
                halves = words.view(np.uint16).reshape(warps.size, 8, 8)
                words = np.ascontiguousarray(halves.transpose(0, 2, 1)).view(np.uint32)
            flat = words.reshape(-1, 4)
            store.store(at, 16, tuple(flat[:, i] for i in range(4)))

    return step
