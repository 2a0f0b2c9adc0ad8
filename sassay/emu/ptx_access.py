"""Memory accesses of the PTX interpreter: loads, stores, atomics, asynchronous copies, matrix loads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sassay.emu.memory import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW, Fault, Store, aligned
from sassay.errors import EmulationError, UnsupportedError
from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.numpy_algebra import NUMPY
from sassay.ptx.ast import TYPE_BITS, AddressOperand, PtxOperand, Register, RegOperand, SinkOperand, Variable, VectorOperand
from sassay.ptx.semantics.events import CopyEvent, FragmentEvent, MatrixEvent, MemoryEvent

if TYPE_CHECKING:
    from sassay.emu.ptx_cta import Cta

Array = NDArray[Any]


def dtype(bits: int) -> type[Any]:
    """The numpy type that holds values of `bits` bits."""
    if bits > 64:
        return object
    return np.bool_ if bits == 1 else np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64


def access(cta: Cta, event: MemoryEvent, mask: Array) -> None:
    """Do a load, store, atomic or reduction for the lanes `mask`."""
    if event.space == "param" and isinstance(event.address.base, Variable):
        _parameter(cta, event, event.address.base, mask)
        return
    address = addresses(cta, event.address, mask)
    lanes = np.flatnonzero(mask)
    for space, chosen in _split("global" if event.space == "param" else event.space, address):
        _in_space(cta, event, space, address[chosen], lanes[chosen], mask, chosen)


def addresses(cta: Cta, operand: AddressOperand, mask: Array) -> Array:
    """An address operand's 64-bit value in each lane of `mask`."""
    base = operand.base
    address = np.full(int(mask.sum()), operand.offset & (2**64 - 1), np.uint64)
    if isinstance(base, Register):
        return np.asarray(address + cta.read(base)[mask].astype(np.uint64))
    if isinstance(base, Variable):
        return np.asarray(address + np.broadcast_to(cta.address_of(base), (cta.lanes,))[mask])
    return address


def _split(space: str, address: Array) -> list[tuple[str, Array]]:
    """The state spaces that generic addresses fall into, with the positions of each."""
    if space != "generic":
        return [("global" if space == "const" else space, np.arange(address.size))]
    upper = address >> np.uint64(32)
    shared, local = upper == SHARED_WINDOW >> 32, upper == LOCAL_WINDOW >> 32
    groups = (("shared", shared), ("local", local), ("global", ~shared & ~local))
    return [(name, np.flatnonzero(chosen)) for name, chosen in groups if chosen.any()]


def positions(cta: Cta, space: str, address: Array, lanes: Array, size: int) -> tuple[Store, Array]:
    """The store behind a space and byte positions in it, checked for bounds and alignment."""
    if space == "global":
        aligned((address - np.uint64(GLOBAL_BASE)).view(np.int64), size, space)
        return cta.program.memory, cta.program.memory.locate(address, size)
    at = (address & np.uint64(0xFFFFFFFF)).astype(np.int64)
    aligned(at, size, space)
    layout = cta.program.layout
    bad = at + size > (layout.shared_bytes if space == "shared" else layout.local_bytes)
    if bad.any():
        lane = int(bad.argmax())
        raise Fault(f"{space} access of {size} bytes out of bounds at {int(at[lane]):#x}", lane, int(at[lane]))
    return (cta.shared, at) if space == "shared" else (cta.local, at + lanes * cta.local_stride)


def _in_space(cta: Cta, event: MemoryEvent, space: str, address: Array, lanes: Array, mask: Array, chosen: Array) -> None:
    size = event.size * event.count
    store, at = positions(cta, space, address, lanes, size)
    here = np.zeros(cta.lanes, bool)
    here[lanes] = True
    bits = 8 * event.size
    if event.kind == "load":
        for i, target in enumerate(event.targets):
            loaded(cta, target, _join(store.load(at + i * event.size, event.size), bits), event.type, here)
    elif event.kind == "store":
        for i, source in enumerate(event.sources):
            store.store(at + i * event.size, event.size, _words(_stored(cta, source, bits, mask)[chosen], bits))
    else:
        _atomics(cta, event, space, (store, at), mask, chosen, here)


def _stored(cta: Cta, source: PtxOperand | None, bits: int, mask: Array) -> Array:
    if isinstance(source, VectorOperand):
        part = bits // len(source.elements)
        values = [cta.operand(e, part, mask) for e in source.elements]
        return np.array([sum(int(v[i]) << (part * k) for k, v in enumerate(values)) for i in range(int(mask.sum()))], dtype(bits))
    return cta.operand(source, bits, mask)


def _atomics(cta: Cta, event: MemoryEvent, space: str, where: tuple[Store, Array], mask: Array, chosen: Array, here: Array) -> None:
    """Lane after lane, element after element."""
    store, at = where
    bits = 8 * event.size
    for k in range(event.count):
        olds = np.zeros(at.size, dtype(bits))
        operands = [_stored(cta, s, bits, mask)[chosen] for s in event.element(k)]
        for i in range(at.size):
            one = at[i : i + 1] + k * event.size
            olds[i : i + 1] = _join(store.load(one, event.size), bits)
            new = atomic(event, space, olds[i : i + 1], [o[i : i + 1] for o in operands], bits)
            store.store(one, event.size, _words(new, bits))
        if event.targets:
            loaded(cta, event.targets[k], olds, event.type, here)


def loaded(cta: Cta, target: PtxOperand | None, value: Array, type_: str, lanes: Array) -> None:
    """Set a destination to a value of memory, one for each lane of `lanes`; narrow ones are extended by the type's sign."""
    if target is None or isinstance(target, SinkOperand):
        return
    have = TYPE_BITS[type_]
    if isinstance(target, VectorOperand):
        part = have // len(target.elements)
        for k, element in enumerate(target.elements):
            piece = np.array([int(x) >> (part * k) & ((1 << part) - 1) for x in value], dtype(part))
            loaded(cta, element, piece, f"b{part}", lanes)
        return
    if not isinstance(target, RegOperand):
        raise UnsupportedError(f"destination {target!r}")
    register = target.register
    wide = NUMPY.sext(value, have, register.bits) if type_.startswith("s") and register.bits > have else value.astype(dtype(register.bits))
    full = np.zeros(cta.lanes, wide.dtype)
    full[lanes] = wide
    cta.write(register, full, lanes)


def _parameter(cta: Cta, event: MemoryEvent, base: Variable, mask: Array) -> None:
    """Parameters of the entry, and those of calls."""
    bits, entry = 8 * event.size, cta.program.layout.parameters.get(base)
    for i in range(event.count):
        at = event.address.offset + i * event.size
        if event.kind == "load" and entry is not None:
            raw = cta.program.parameters[entry + at : entry + at + event.size]
            value = np.full(int(mask.sum()), int.from_bytes(raw, "little"), dtype(bits))
            loaded(cta, event.targets[i], value, event.type, mask)
            continue
        row = cta.frame.parameter(base)
        if entry is not None or event.kind not in ("load", "store") or at + event.size > row.shape[1]:
            raise EmulationError(f"access of {event.size} bytes at offset {at} of parameter '{base.name}'")
        if event.kind == "load":
            whole = [int.from_bytes(r[at : at + event.size].tobytes(), "little") for r in row[mask]]
            loaded(cta, event.targets[i], np.array(whole, dtype(bits)), event.type, mask)
        else:
            values = [int(v).to_bytes(event.size, "little") for v in _stored(cta, event.sources[i], bits, mask)]
            row[mask, at : at + event.size] = np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -1)


def fragment(cta: Cta, event: FragmentEvent, mask: Array) -> None:
    """wmma.load and wmma.store. Element e, counted by rows, is the e-th of the warp's registers in order of lanes (this interpreter's choice)."""
    bits, count = TYPE_BITS[event.type], event.rows * event.columns
    packed = 1 if event.type in ("tf32", "f32", "f64", "s32") else 32 // bits
    for warp in np.flatnonzero(mask.reshape(-1, 32).any(1)):
        here = np.zeros(cta.lanes, bool)
        here[warp * 32 : warp * 32 + 32] = True
        if (here & ~mask).any():
            raise EmulationError(f"'{event.name}' with lanes missing")
        start = addresses(cta, event.address, here)
        stride = event.rows if event.by_column else event.columns
        if event.stride is not None:
            stride = int(cta.operand(event.stride, 32, here)[0])
        slots = np.arange(32 * len(event.registers) * packed).reshape(32, len(event.registers), packed)
        element = slots % count
        row, column = element // event.columns, element % event.columns
        offset = (column * stride + row if event.by_column else row * stride + column) * (bits // 8)
        for r, operand in enumerate(event.registers):
            whole = np.zeros(32, np.uint64)
            value = cta.operand(operand, 32 if bits < 64 else 64, here) if event.store else whole
            for k in range(packed):
                place = start[:1] + offset[:, r, k].astype(np.uint64)
                lanes = np.arange(warp * 32, warp * 32 + 32)
                for space, which in _split(event.space, place):
                    store, at = positions(cta, space, place[which], lanes[which], bits // 8)
                    if event.store:
                        part = (value[which].astype(np.uint64) >> np.uint64(bits * k)) & np.uint64((1 << bits) - 1)
                        store.store(at, bits // 8, _words(part.astype(dtype(bits)), bits))
                    else:
                        got = _join(store.load(at, bits // 8), bits).astype(np.uint64)
                        whole[which] |= got << np.uint64(bits * k)
            if not event.store:
                loaded(cta, operand, whole.astype(dtype(max(bits, 32))), f"b{max(bits, 32)}", here)


def _join(words: tuple[Array, ...], bits: int) -> Array:
    if bits <= 32:
        return words[0].astype(dtype(bits))
    if bits == 64:
        return words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32)
    return np.array([sum(int(w[i]) << (32 * k) for k, w in enumerate(words)) for i in range(words[0].size)], object)


def _words(value: Array, bits: int) -> tuple[Array, ...]:
    if bits <= 32:
        return (value.astype(np.uint32),)
    return tuple(np.array([int(v) >> (32 * k) & 0xFFFFFFFF for v in value], np.uint32) for k in range(bits // 32))


def atomic(event: MemoryEvent, space: str, old: Array, operands: list[Array], bits: int) -> Array:
    """The new value of an atomic operation. f32 sums flush subnormals in global memory (and not in shared), as the ISA says."""
    name, type_ = event.operation, event.type
    a = operands[0]
    if name == "exch":
        return a
    if name == "cas":
        return np.where(old == a, operands[1], old)
    if name in ("and", "or", "xor"):
        return old & a if name == "and" else old | a if name == "or" else old ^ a
    if type_.startswith(("f", "bf")):
        format_ = type_.removesuffix("x2")
        operation = NUMPY.float_op(FloatOp(name, format_, ftz=type_ == "f32" and space == "global"))
        if format_ == type_:
            return np.asarray(operation(old, a))
        low, high = (operation((old >> s).astype(np.uint16), (a >> s).astype(np.uint16)) for s in (np.uint32(0), np.uint32(16)))
        return np.asarray(low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16))
    if name == "add":
        return old + a
    if name == "inc":
        return np.where(old >= a, np.zeros_like(old), old + 1).astype(old.dtype)
    if name == "dec":
        return np.where((old == 0) | (old > a), a, old - 1).astype(old.dtype)
    less = NUMPY.slt(old, a, bits) if type_.startswith("s") else NUMPY.ult(old, a, bits)
    return np.where(less == (name == "min"), old, a)


def copy_async(cta: Cta, event: CopyEvent, mask: Array) -> None:
    """cp.async, done at once: one of the moments that the ISA allows. Bytes beyond the source size become zero."""
    lanes = np.flatnonzero(mask)
    source, target = addresses(cta, event.source, mask), addresses(cta, event.target, mask)
    length = np.full(lanes.size, event.size)
    if event.length is not None:
        length = cta.operand(event.length, 32, mask).astype(np.int64)
    if event.ignore is not None:
        length = np.where(cta.operand(event.ignore, 1, mask), 0, length)
    if (length > event.size).any():
        raise Fault("cp.async with a source size above its size", int((length > event.size).argmax()), 0)
    to, at = positions(cta, "shared", target, lanes, event.size)
    for i in range(lanes.size):
        to.bytes[at[i] : at[i] + event.size] = 0
        if length[i]:
            store, start = positions(cta, "global", source[i : i + 1], lanes[i : i + 1], 1)
            positions(cta, "global", source[i : i + 1] + np.uint64(length[i] - 1), lanes[i : i + 1], 1)
            aligned(start, event.size, "global")
            to.bytes[at[i] : at[i] + length[i]] = store.bytes[start[0] : start[0] + length[i]]


def matrix(cta: Cta, event: MatrixEvent, mask: Array) -> None:
    """ldmatrix and stmatrix of 8x8 matrices of 16-bit elements: lane 8m+r holds the address of row r of matrix m; lane l's register of a
    matrix has elements 2(l%4) and 2(l%4)+1 of row l//4, or of that column with .trans."""
    rows = np.arange(32)
    for warp in np.flatnonzero(mask.reshape(-1, 32).any(1)):
        lanes = warp * 32 + rows
        if not mask[lanes].all():
            raise EmulationError(f"'{event.name}' with lanes missing")
        here = np.zeros(cta.lanes, bool)
        here[lanes] = True
        address = addresses(cta, event.address, here)
        for m, operand in enumerate(event.registers):
            chosen = slice(8 * m, 8 * m + 8)
            store, at = positions(cta, "shared", address[chosen], lanes[chosen], 16)
            places = at[:, None] // 2 + np.arange(8)
            first, second = (rows // 4, rows % 4 * 2), (rows // 4, rows % 4 * 2 + 1)
            if event.transposed:
                first, second = first[::-1], second[::-1]
            if event.store:
                value = cta.operand(operand, 32, here)
                store.halves[places[first]] = (value & np.uint32(0xFFFF)).astype(np.uint16)
                store.halves[places[second]] = (value >> np.uint32(16)).astype(np.uint16)
            else:
                cells = store.halves
                word = cells[places[first]].astype(np.uint32) | cells[places[second]].astype(np.uint32) << np.uint32(16)
                loaded(cta, operand, word, "b32", here)
