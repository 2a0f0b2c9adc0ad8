"""PTX instructions with effects, as data for the interpreter and the prover: memory accesses, barriers, control."""

from __future__ import annotations

from dataclasses import dataclass

from sassay.errors import UnsupportedError
from sassay.ptx.ast import TYPE_BITS, AddressOperand, Instruction, PtxOperand, VectorOperand

SPACES = {
    "global": "global", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared", "local": "local", "const": "const",
    "param": "param", "param::entry": "param", "param::func": "param",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """An access of `count` elements of `type` at `address`.

    `kind`: "load", "store", "atomic" (old value in `targets`), "reduction". `space`: global, shared, local, const, param or generic.
    `targets`: destination operands, one an element; `sources`: values stored or the atomic's operands. `operation`: add, cas, ... of an atomic.
    `strong`: volatile or ordered, so that it keeps its place among strong accesses; `order` and `scope` as spelled.
    """

    kind: str
    space: str
    type: str
    address: AddressOperand
    targets: tuple[PtxOperand | None, ...] = ()
    sources: tuple[PtxOperand | None, ...] = ()
    operation: str = ""
    strong: bool = False
    order: str = "weak"
    scope: str = ""

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return TYPE_BITS[self.type] // 8

    @property
    def count(self) -> int:
        return max(1, len(self.targets if self.kind == "load" else self.sources)) if self.kind in ("load", "store") else 1


@dataclass(frozen=True, slots=True)
class BarrierEvent:
    """bar, barrier, fence and membar: `name` is the mnemonic; `operands` the barrier number, thread count and predicate; `target` a result."""

    name: str
    operands: tuple[PtxOperand, ...]
    target: PtxOperand | None = None
    memory: bool = True
    spaces: tuple[str, ...] = ("global", "shared")


@dataclass(frozen=True, slots=True)
class ControlEvent:
    """bra, brx.idx, call, ret, exit, trap: `operands` as they stand."""

    name: str
    operands: tuple[PtxOperand, ...]


@dataclass(frozen=True, slots=True)
class HintEvent:
    """Nothing that a result can depend on: prefetches, nanosleep, griddepcontrol.launch_dependents, pmevent."""

    name: str


Event = MemoryEvent | BarrierEvent | ControlEvent | HintEvent

CONTROL = {"bra", "brx", "call", "ret", "exit", "trap", "brkpt"}
HINTS = {"prefetch", "prefetchu", "applypriority", "discard", "nanosleep", "pmevent", "createpolicy"}
BARRIERS = {"bar", "barrier", "fence", "membar", "griddepcontrol"}


def event_of(instruction: Instruction) -> Event | None:
    """The event of an instruction with effects; None for one that only computes values."""
    opcode = instruction.opcode
    if opcode in ("ld", "ldu", "st"):
        return _access(instruction)
    if opcode in ("atom", "red"):
        return _atomic(instruction)
    if opcode in CONTROL:
        return ControlEvent(opcode, instruction.operands)
    if opcode in HINTS:
        return HintEvent(instruction.mnemonic)
    if opcode in BARRIERS:
        return _barrier(instruction)
    return None


def _space(instruction: Instruction) -> str:
    for modifier in instruction.modifiers:
        if modifier in SPACES:
            return SPACES[modifier]
    return "generic"


def _type(instruction: Instruction) -> str:
    types = [m for m in instruction.modifiers if m in TYPE_BITS]
    if not types:
        raise UnsupportedError(f"'{instruction.mnemonic}' has no type", instruction.location)
    return types[-1]


def _order(instruction: Instruction) -> tuple[str, str]:
    order, scope = "weak", ""
    for modifier in instruction.modifiers:
        if modifier in ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc"):
            order = modifier
        elif modifier in ("cta", "cluster", "gpu", "sys"):
            scope = modifier
    return order, scope


def _elements(operand: PtxOperand) -> tuple[PtxOperand | None, ...]:
    return operand.elements if isinstance(operand, VectorOperand) else (operand,)


def _address(instruction: Instruction, operand: PtxOperand) -> AddressOperand:
    if not isinstance(operand, AddressOperand):
        raise UnsupportedError(f"address operand of '{instruction.mnemonic}'", instruction.location)
    return operand


def _access(instruction: Instruction) -> MemoryEvent:
    order, scope = _order(instruction)
    space, type_ = _space(instruction), _type(instruction)
    strong = order != "weak"
    if instruction.opcode == "st":
        address, data = instruction.operands[0], instruction.operands[1]
        return MemoryEvent("store", space, type_, _address(instruction, address), (), _elements(data), "", strong, order, scope)
    data, address = instruction.operands[0], instruction.operands[1]
    return MemoryEvent("load", space, type_, _address(instruction, address), _elements(data), (), "", strong, order, scope)


ATOMIC_OPERATIONS = {"and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"}


def _atomic(instruction: Instruction) -> MemoryEvent:
    order, scope = _order(instruction)
    operation = next((m for m in instruction.modifiers if m in ATOMIC_OPERATIONS), "")
    vector = any(m in ("v2", "v4", "v8") for m in instruction.modifiers)
    if not operation or vector:
        raise UnsupportedError(f"no semantics for '{instruction.mnemonic}'", instruction.location)
    order = order if order != "weak" else "relaxed"
    space, type_ = _space(instruction), _type(instruction)
    if instruction.opcode == "red":
        address, *sources = instruction.operands
        return MemoryEvent("reduction", space, type_, _address(instruction, address), (), tuple(sources[:1]), operation, True, order, scope)
    target, address, *sources = instruction.operands
    count = 2 if operation == "cas" else 1
    return MemoryEvent("atomic", space, type_, _address(instruction, address), (target,), tuple(sources[:count]), operation, True, order, scope)


def _barrier(instruction: Instruction) -> BarrierEvent | HintEvent:
    if instruction.mnemonic == "griddepcontrol.launch_dependents":
        return HintEvent(instruction.mnemonic)
    reduces = "red" in instruction.modifiers
    operands = instruction.operands[1:] if reduces else instruction.operands
    target = instruction.operands[0] if reduces else None
    memory = "arrive" not in instruction.modifiers
    return BarrierEvent(instruction.mnemonic, operands, target, memory)
