"""Instructions that do more than compute: memory, barriers, control. Described as data; emulator and prover interpret them.

Operand positions index the instruction's operands. A `MemoryOp` says what is moved and how; which registers it takes is in its accesses (raw values,
as in `Compiled`). The arithmetic of an atomic is `compile_atomic`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sassay.errors import SassError
from sassay.isa.semantics.algebra import Algebra, FloatOp
from sassay.isa.semantics.shape import Access, Shape


@dataclass(frozen=True, slots=True)
class MemoryOp:
    """One access to memory.

    `action`: load, store, atomic (gives the old value), reduce, copy (global to shared, LDGSTS), load_matrix, store_matrix,
    query (no access: whether the generic address lies in `space`).
    `space`: generic, global, shared, local. `size`: bytes of one element; `count`: elements, in registers of 32 bits (64-bit atomics: one element of
    8 bytes, one 64-bit access). `signed`: narrow loads extend the sign. A narrow store takes the low bits.
    `address`: operand position of the address; `source`: of the second address (the global one of a copy). `wide`: the address is 64 bits.
    `data`: what is stored, or the atomic's operands (for compare-and-swap: compare, then new value).
    `result`: where the loaded or old value goes. `predicate_result`: a predicate destination (CAST: whether it swapped; a
    register result of CAST is that as 1 or 0, as wide as its operands). With packed halves: whether the address was global; nothing is done
    elsewhere.
    `predicate`: a condition operand: a copy with a false one writes zeros (`inverted`: negated in the text).
    `operation` of atomics: ADD MIN MAX INC DEC AND OR XOR EXCH CAS CAST POPC_INC; `type`: U32 S32 U64 S64 F32 F64 F16x2 BF16x2 (`lanes` of them
    side by side).
    `order`: WEAK, CONSTANT, STRONG, MMIO; `scope`: CTA (the text's SM), GPU, SYS or "". `cache`: the hints in the text.
    Matrices: `count` 8x8 matrices of 16-bit elements, `transposed` or not; lane i holds the address of row i % 8 of matrix i / 8.
    """

    action: str
    space: str
    size: int
    count: int = 1
    signed: bool = False
    address: int = -1
    source: int = -1
    wide: bool = False
    data: tuple[Access, ...] = ()
    result: tuple[Access, ...] = ()
    predicate_result: Access | None = None
    predicate: int = -1
    inverted: bool = False
    operation: str = ""
    type: str = ""
    lanes: int = 1
    ftz: bool = False
    order: str = "WEAK"
    scope: str = ""
    cache: tuple[str, ...] = ()
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class BarrierOp:
    """Synchronisation: `name` (BAR, MEMBAR, DEPBAR, LDGDEPBAR, ERRBAR, CGAERRBAR, CCTL, WARPSYNC, FENCE ...) with its modifiers and operand count."""

    name: str
    modifiers: tuple[str, ...]
    operands: int


@dataclass(frozen=True, slots=True)
class ControlOp:
    """A control transfer or convergence operation: BRA, BRX, CALL, RET, EXIT, BSSY, BSYNC, BREAK, YIELD, NOP ...

    `condition`: position of a predicate operand besides the guard (`inverted`: negated), or -1. `target`: position of the branch target, or -1.
    """

    name: str
    modifiers: tuple[str, ...]
    condition: int
    inverted: bool
    target: int


BARRIERS = frozenset({
    "BAR", "MEMBAR", "DEPBAR", "LDGDEPBAR", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "WARPSYNC", "FENCE", "B2R", "ARRIVES", "UCGABAR_ARV",
    "UCGABAR_WAIT", "WARPGROUP", "SYNCS", "ENDCOLLECTIVE", "ACQBULK", "UTMACMDFLUSH", "UTMACCTL", "PREEXIT", "ACQSHMINIT",
})  # fmt: skip
CONTROL = frozenset({
    "BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "RET", "EXIT", "KILL", "BSSY", "BSYNC", "BREAK", "BMOV", "YIELD", "NOP", "NANOSLEEP", "BPT",
    "LEPC", "PMTRIG", "RPCMOV", "USETMAXREG", "UVIRTCOUNT",
})  # fmt: skip
_SPACES = {
    "LD": "generic", "ST": "generic", "ATOM": "generic", "RED": "generic", "LDG": "global", "STG": "global", "ATOMG": "global", "REDG": "global",
    "LDS": "shared", "STS": "shared", "ATOMS": "shared", "LDL": "local", "STL": "local", "LDGSTS": "shared", "LDSM": "shared", "STSM": "shared",
    "REDS": "shared", "QSPC": "generic",
}  # fmt: skip
MEMORY = frozenset(_SPACES)
_SIZES = {"U8": (1, 1), "S8": (1, 1), "U16": (2, 1), "S16": (2, 1), "32": (4, 1), "64": (4, 2), "128": (4, 4), "256": (4, 8)}
_ATOMS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS", "CAST")
_TYPES = {
    "U32": 4, "S32": 4, "U64": 8, "S64": 8, "64": 8, "F32": 4, "F64": 8, "F16x2": 4, "BF16x2": 4, "F16X2": 4, "BF16X2": 4, "F16x2_V2": 4, "128": 16,
}  # fmt: skip
_VECTORS = {
    "F32x2": ("F32", 2), "F32x4": ("F32", 4), "F32_V2": ("F32", 2), "F32_V4": ("F32", 4), "F16x4": ("F16x2", 2), "F16x8": ("F16x2", 4),
    "F16_V4": ("F16x2", 2), "F16_V8": ("F16x2", 4), "BF16_V4": ("BF16x2", 2), "BF16_V8": ("BF16x2", 4), "BF16x4": ("BF16x2", 2),
    "BF16x8": ("BF16x2", 4), "F16_V2": ("F16x2", 1), "BF16_V2": ("BF16x2", 1),
}  # fmt: skip
_CACHE = frozenset({
    "EF", "EL", "LU", "NA", "EN", "EU", "IL", "LTC64B", "LTC128B", "LTC256B", "BYPASS", "ACCESS", "ENL2", "EFL2", "NAL2", "ELL2", "U", "ZD",
    "SPIN", "ZFILL",
    "PRIVATE",
})  # fmt: skip
_SCOPES = {"CTA": "CTA", "SM": "CTA", "GPU": "GPU", "SYS": "SYS", "VC": "SYS"}


def kind(shape: Shape) -> str:
    """"memory", "barrier" or "control" for operations with effects, "" for those that only compute."""
    for name, group in (("memory", MEMORY), ("barrier", BARRIERS), ("control", CONTROL)):
        if shape.opcode in group:
            return name
    return ""


def event(shape: Shape) -> MemoryOp | BarrierOp | ControlOp:
    """The instruction's effect as data. SassError names what is not known."""
    what = kind(shape)
    if what == "memory":
        return memory(shape)
    if what == "barrier":
        return BarrierOp(shape.opcode, shape.modifiers, len(shape.operands))
    if what == "control":
        condition = next((i for i, s in enumerate(shape.operands) if s.kind in ("P", "UP")), -1)
        target = next((i for i, s in enumerate(shape.operands) if s.kind == "target"), -1)
        inverted = condition >= 0 and shape.operands[condition].invert
        return ControlOp(shape.opcode, shape.modifiers, condition, inverted, target)
    raise SassError(f"no event for {shape.mnemonic}")


@dataclass(slots=True)
class _Words:
    """The modifiers not yet read."""

    shape: Shape
    left: list[str]

    def take(self, *names: str) -> str:
        for m in self.left:
            if m in names:
                self.left.remove(m)
                return m
        return ""

    def fail(self, why: str) -> SassError:
        return SassError(f"no semantics for {self.shape.mnemonic}: {why}")


def memory(shape: Shape) -> MemoryOp:
    """A memory instruction as data."""
    words = _Words(shape, list(shape.modifiers))
    opcode = shape.opcode
    if opcode in ("LDSM", "STSM"):
        return _matrix(shape, words)
    if opcode == "QSPC":
        return _query(shape, words)
    common = _common(words)
    if opcode.startswith(("ATOM", "RED")):
        op = _atomic(shape, words, common)
    elif opcode == "LDGSTS":
        op = _copy(shape, words, common)
    else:
        op = _plain(shape, words, common)
    if words.left:
        raise words.fail(f"unknown modifier {words.left[0]}")
    return op


def _common(words: _Words) -> dict[str, Any]:
    """Ordering, scope and cache hints."""
    words.take("E")
    order = words.take("STRONG", "CONSTANT", "WEAK", "MMIO") or "WEAK"
    scope = words.take(*_SCOPES)
    cache = tuple(m for m in words.left if m in _CACHE)
    words.left[:] = [m for m in words.left if m not in _CACHE]
    return {"order": order, "scope": _SCOPES.get(scope, ""), "cache": cache}


def _address(shape: Shape, words: _Words, which: int = 0) -> int:
    found = [i for i, s in enumerate(shape.operands) if s.kind == "mem"]
    if len(found) <= which:
        raise words.fail("the address is missing")
    return found[which]


def _is_wide(shape: Shape) -> bool:
    return "E" in shape.modifiers


def _parts(operand: int, size: int, count: int) -> tuple[Access, ...]:
    """Accesses of a register operand."""
    width = 64 if size == 8 else 32
    return tuple(Access(operand, width, part) for part in range(count))


def _plain(shape: Shape, words: _Words, common: dict[str, Any]) -> MemoryOp:
    store = shape.opcode.startswith("ST")
    name = words.take(*_SIZES)
    size, count = _SIZES[name] if name else (4, 1)
    address = _address(shape, words)
    registers = [i for i, s in enumerate(shape.operands) if s.kind in ("R", "UR")]
    predicates = [i for i, s in enumerate(shape.operands) if s.kind in ("P", "UP")]
    if any(not shape.operands[i].zero for i in predicates):
        raise words.fail("a predicate operand is not known")
    if len(registers) == 2 and count == 8:
        parts = _parts(registers[0], 4, 4) + _parts(registers[1], 4, 4)
    elif len(registers) == 1:
        parts = _parts(registers[0], size, count)
    else:
        raise words.fail("the register operands are not known")
    if not store:
        parts = tuple(p for p in parts if not shape.operands[p.operand].zero)
    return MemoryOp(
        "store" if store else "load", _SPACES[shape.opcode], size, count, name in ("S8", "S16"), address, wide=_is_wide(shape),
        data=parts if store else (), result=() if store else parts, **common,
    )  # fmt: skip


def _copy(shape: Shape, words: _Words, common: dict[str, Any]) -> MemoryOp:
    name = words.take(*_SIZES)
    size, count = _SIZES[name] if name else (4, 1)
    predicate = next((i for i, s in enumerate(shape.operands) if s.kind == "P"), -1)
    inverted = predicate >= 0 and shape.operands[predicate].invert
    return MemoryOp(
        "copy", "shared", size, count, address=_address(shape, words), source=_address(shape, words, 1), wide=_is_wide(shape),
        predicate=predicate, inverted=inverted, **common,
    )  # fmt: skip


def _atomic(shape: Shape, words: _Words, common: dict[str, Any]) -> MemoryOp:
    reduce = shape.opcode.startswith("RED")
    if words.take("POPC"):
        return _count_lanes(shape, words, common)
    operation = words.take(*_ATOMS)
    if not operation:
        raise words.fail("the operation is missing")
    vector = words.take(*_VECTORS)
    type_ = words.take(*_TYPES)
    if vector:
        type_, lanes = _VECTORS[vector]
    else:
        type_, lanes = {"": "U32", "64": "U64", "F16X2": "F16x2", "BF16X2": "BF16x2"}.get(type_, type_), 1
    words.take("RN")
    ftz = bool(words.take("FTZ"))
    size = _TYPES[type_]
    if size == 16:
        raise words.fail("128-bit atomics are not known")
    address = _address(shape, words)
    before = [i for i in range(address) if shape.operands[i].kind in ("R", "UR")]
    after = [i for i in range(address + 1, len(shape.operands)) if shape.operands[i].kind in ("R", "UR")]
    cast = operation == "CAST"
    flag = next((i for i in range(address) if shape.operands[i].kind == "P"), -1)
    wanted = 2 if operation == "CAS" or cast else 1
    if len(after) != wanted or len(before) != (0 if reduce or (cast and flag >= 0) else 1):
        raise words.fail("the register operands are not known")
    live = flag >= 0 and not shape.operands[flag].zero
    if live and not cast and type_ not in ("F16x2", "BF16x2"):
        raise words.fail("the predicate result is not known")
    result = tuple(a for i in before for a in _parts(i, size, lanes) if not shape.operands[i].zero)
    return MemoryOp(
        "reduce" if reduce else "atomic", _SPACES[shape.opcode], size, lanes, address=address, wide=_is_wide(shape),
        data=tuple(a for i in after for a in _parts(i, size, lanes)), result=result,
        predicate_result=Access(flag, 1) if live else None, operation=operation, type=type_, lanes=lanes, ftz=ftz, **common,
    )  # fmt: skip


def _count_lanes(shape: Shape, words: _Words, common: dict[str, Any]) -> MemoryOp:
    """ATOMS.POPC.INC: each active lane adds one. Known only with its result dropped."""
    if not words.take("INC") or not words.take("32") or not shape.operands[0].zero:
        raise words.fail("only .POPC.INC.32 without a result is known")
    return MemoryOp("reduce", _SPACES[shape.opcode], 4, address=_address(shape, words), wide=False, operation="POPC_INC", type="U32", **common)


def _query(shape: Shape, words: _Words) -> MemoryOp:
    """Whether a generic address lies in a space."""
    words.take("E")
    space = {"S": "shared", "L": "local", "G": "global", "C": "const"}.get(words.take("S", "L", "G", "C"), "")
    result, dropped = shape.operands[0], shape.operands[1]
    if words.left or not space or result.kind != "P" or not dropped.zero:
        raise words.fail("only the predicate result of a space query is known")
    flag = None if result.zero else Access(0, 1)
    return MemoryOp("query", space, 0, 0, address=_address(shape, words), wide=_is_wide(shape), predicate_result=flag)


def _matrix(shape: Shape, words: _Words) -> MemoryOp:
    words.take("16")
    layout = words.take("M88", "MT88")
    count = int(words.take("1", "2", "4") or "1")
    if words.left or not layout:
        raise words.fail(f"unknown modifier {words.left[0]}" if words.left else "the layout is missing")
    load = shape.opcode == "LDSM"
    register = next((i for i, s in enumerate(shape.operands) if s.kind == "R"), -1)
    if register < 0:
        raise words.fail("the register operand is missing")
    parts = _parts(register, 4, count)
    return MemoryOp(
        "load_matrix" if load else "store_matrix", "shared", 2, count, address=_address(shape, words), data=() if load else parts,
        result=parts if load else (), transposed=layout == "MT88",
    )  # fmt: skip


def compile_atomic(op: MemoryOp, alg: Algebra[Any]) -> Callable[..., Any]:
    """(old, operand) -> new value of one element, (old, compare, new) for CAS and CAST, (old) for
    POPC_INC. Values are 32 or 64 bits wide.

    Source: ptx atom/red; f32 additions in global memory flush subnormals (.FTZ in the text).
    """
    w = 64 if op.size == 8 else 32
    if op.operation == "POPC_INC":
        return lambda old: alg.add(old, alg.const(1, w), w)
    if op.operation in ("CAS", "CAST"):
        return lambda old, compare, new: alg.ite(alg.eq(old, compare, w), new, old, w)
    if op.type in ("F32", "F64"):
        return _float_atomic(op, alg)
    if op.type in ("F16x2", "BF16x2"):
        return _packed_atomic(op, alg)
    signed = op.type in ("S32", "S64")
    less = alg.slt if signed else alg.ult
    one, zero = alg.const(1, w), alg.const(0, w)
    table: dict[str, Callable[[Any, Any], Any]] = {
        "ADD": lambda old, v: alg.add(old, v, w),
        "AND": lambda old, v: alg.and_(old, v, w),
        "OR": lambda old, v: alg.or_(old, v, w),
        "XOR": lambda old, v: alg.xor(old, v, w),
        "EXCH": lambda old, v: v,
        "MIN": lambda old, v: alg.ite(less(v, old, w), v, old, w),
        "MAX": lambda old, v: alg.ite(less(old, v, w), v, old, w),
        "INC": lambda old, v: alg.ite(alg.ult(old, v, w), alg.add(old, one, w), zero, w),
        "DEC": lambda old, v: alg.ite(alg.or_(alg.eq(old, zero, w), alg.ult(v, old, w), 1), v, alg.sub(old, one, w), w),
    }
    return table[op.operation]


_FLOAT_ATOMS = {"ADD": "add", "MIN": "min", "MAX": "max"}


def _float_atomic(op: MemoryOp, alg: Algebra[Any]) -> Callable[..., Any]:
    if op.operation == "EXCH":
        return lambda old, v: v
    if op.operation not in _FLOAT_ATOMS:
        raise SassError(f"no semantics for atomic {op.operation} in {op.type}")
    return alg.float_op(FloatOp(_FLOAT_ATOMS[op.operation], op.type.lower(), ftz=op.ftz))


def _packed_atomic(op: MemoryOp, alg: Algebra[Any]) -> Callable[..., Any]:
    if op.operation == "EXCH":
        return lambda old, v: v
    if op.operation not in _FLOAT_ATOMS:
        raise SassError(f"no semantics for atomic {op.operation} in {op.type}")
    f = alg.float_op(FloatOp(_FLOAT_ATOMS[op.operation], op.type[:-2].lower()))

    def fn(old: Any, v: Any) -> Any:
        low = f(alg.extract(old, 15, 0, 32), alg.extract(v, 15, 0, 32))
        return alg.concat(f(alg.extract(old, 31, 16, 32), alg.extract(v, 31, 16, 32)), low, 16, 16)

    return fn
