"""PTX instructions with effects, as data for the interpreter and the prover: memory accesses, barriers, control."""

from __future__ import annotations

from dataclasses import dataclass

from sassay.errors import UnsupportedError
from sassay.ptx.ast import TYPE_BITS, AddressOperand, Instruction, IntOperand, PtxOperand, RegOperand, VectorOperand

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
        """Elements: of a vector, one after the other in memory."""
        return max(1, len(self.targets if self.kind == "load" else self.sources) // (2 if self.operation == "cas" else 1))

    def element(self, index: int) -> tuple[PtxOperand | None, ...]:
        """The operands of element `index` of an atomic."""
        return self.sources if self.operation == "cas" else self.sources[index : index + 1]


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


@dataclass(frozen=True, slots=True)
class CopyEvent:
    """cp.async: `size` bytes from global to shared memory, of which `length` are copied and the others zero; none where `ignore` holds."""

    name: str
    target: AddressOperand
    source: AddressOperand
    size: int
    length: PtxOperand | None = None
    ignore: PtxOperand | None = None


@dataclass(frozen=True, slots=True)
class MatrixEvent:
    """ldmatrix and stmatrix (`store`) of 8x8 matrices of 16-bit elements, one register a matrix."""

    name: str
    address: AddressOperand
    registers: tuple[PtxOperand | None, ...]
    transposed: bool
    store: bool


@dataclass(frozen=True, slots=True)
class FragmentEvent:
    """wmma.load and wmma.store: a matrix of `rows` x `columns` elements of `type`, `stride` elements from row to row (from column to column
    where `by_column`). Which lane holds which element is open: see `fragment_slots`."""

    name: str
    space: str
    address: AddressOperand
    registers: tuple[PtxOperand | None, ...]
    stride: PtxOperand | None
    rows: int
    columns: int
    type: str
    by_column: bool
    store: bool


@dataclass(frozen=True, slots=True)
class StackEvent:
    """alloca, stacksave, stackrestore. `operand`: bytes or the saved position."""

    name: str
    target: PtxOperand | None
    operand: PtxOperand | None = None
    align: int = 8


Event = MemoryEvent | BarrierEvent | ControlEvent | HintEvent | CopyEvent | MatrixEvent | FragmentEvent | StackEvent

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
    if opcode == "cp":
        return _copy(instruction)
    if opcode in ("ldmatrix", "stmatrix"):
        return _matrix(instruction)
    if opcode == "wmma" and instruction.modifiers[0] in ("load", "store"):
        return _fragment(instruction)
    if opcode in ("alloca", "stacksave", "stackrestore"):
        return _stack(instruction)
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
    if not operation:
        raise UnsupportedError(f"no semantics for '{instruction.mnemonic}'", instruction.location)
    order = order if order != "weak" else "relaxed"
    space, type_ = _space(instruction), _type(instruction)
    operands = list(instruction.operands)
    targets = () if instruction.opcode == "red" else _atomic_elements(operands.pop(0), type_)
    address = _address(instruction, operands[0])
    sources: tuple[PtxOperand | None, ...] = tuple(operands[1:3]) if operation == "cas" else _atomic_elements(operands[1], type_)
    kind = "atomic" if targets else "reduction"
    return MemoryEvent(kind, space, type_, address, targets, sources, operation, True, order, scope)


def _atomic_elements(operand: PtxOperand, type_: str) -> tuple[PtxOperand | None, ...]:
    """The elements of a vector atomic; the halves of a 128-bit value are one."""
    return (operand,) if type_ == "b128" else _elements(operand)


def _copy(instruction: Instruction) -> Event:
    """cp.async without a barrier; bulk and tensor copies have no semantics."""
    words = instruction.modifiers
    if words[:2] in (("async", "commit_group"), ("async", "wait_group"), ("async", "wait_all")):
        return HintEvent(instruction.mnemonic)
    if words[:2] not in (("async", "ca"), ("async", "cg")):
        raise UnsupportedError(f"no semantics for '{instruction.mnemonic}'", instruction.location)
    target, source, size, *rest = instruction.operands
    if not isinstance(size, IntOperand):
        raise UnsupportedError(f"size of '{instruction.mnemonic}'", instruction.location)
    predicate = [o for o in rest if isinstance(o, RegOperand) and o.register.type == "pred"]
    lengths = [o for o in rest if o not in predicate and "cache_hint" not in "".join(words)]
    return CopyEvent(
        instruction.mnemonic, _address(instruction, target), _address(instruction, source), size.value,
        lengths[0] if lengths else None, predicate[0] if predicate else None,
    )  # fmt: skip


def _matrix(instruction: Instruction) -> MatrixEvent:
    if "m8n8" not in instruction.modifiers or _type(instruction) != "b16":
        raise UnsupportedError(f"no semantics for '{instruction.mnemonic}'", instruction.location)
    store = instruction.opcode == "stmatrix"
    address, data = instruction.operands if store else instruction.operands[::-1]
    return MatrixEvent(instruction.mnemonic, _address(instruction, address), _elements(data), "trans" in instruction.modifiers, store)


WMMA_SHAPES = {"m16n16k16": (16, 16, 16), "m8n32k16": (8, 32, 16), "m32n8k16": (32, 8, 16), "m16n16k8": (16, 16, 8), "m8n8k4": (8, 8, 4)}


def _fragment(instruction: Instruction) -> FragmentEvent:
    words, type_ = instruction.modifiers, _type(instruction)
    shape = next((WMMA_SHAPES[w] for w in words if w in WMMA_SHAPES), None)
    if shape is None or type_ not in ("f16", "bf16", "tf32", "f32", "f64", "s32", "s8", "u8"):
        raise UnsupportedError(f"no semantics for '{instruction.mnemonic}'", instruction.location)
    m, n, k = shape
    rows, columns = {"a": (m, k), "b": (k, n)}.get(words[1], (m, n))
    store = words[0] == "store"
    operands = instruction.operands
    address, data = (operands[0], operands[1]) if store else (operands[1], operands[0])
    stride = operands[2] if len(operands) > 2 else None
    place = _address(instruction, address)
    return FragmentEvent(
        instruction.mnemonic, _space(instruction), place, _elements(data), stride, rows, columns, type_, "col" in words, store,
    )  # fmt: skip


def _stack(instruction: Instruction) -> StackEvent:
    operands = instruction.operands
    if instruction.opcode == "stackrestore":
        return StackEvent("stackrestore", None, operands[0])
    align = operands[2].value if len(operands) > 2 and isinstance(operands[2], IntOperand) else 8
    return StackEvent(instruction.opcode, operands[0], operands[1] if len(operands) > 1 else None, align)


def _barrier(instruction: Instruction) -> BarrierEvent | HintEvent:
    if instruction.mnemonic == "griddepcontrol.launch_dependents":
        return HintEvent(instruction.mnemonic)
    reduces = "red" in instruction.modifiers
    operands = instruction.operands[1:] if reduces else instruction.operands
    target = instruction.operands[0] if reduces else None
    memory = "arrive" not in instruction.modifiers
    return BarrierEvent(instruction.mnemonic, operands, target, memory)
