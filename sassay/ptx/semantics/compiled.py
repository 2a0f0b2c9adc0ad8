"""A PTX value instruction resolved once: what it reads, what it writes, and the function between them.

`compile_instruction` looks the opcode up in the families' registry. Registers are delivered whole, at their own width; immediates are folded
in. Results come back at the destination registers' widths. The carry flag of add.cc and its kin is the pseudo-register `CARRY`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from sassay.errors import UnsupportedError
from sassay.isa.semantics.algebra import AnyAlgebra
from sassay.ptx.ast import (
    TYPE_BITS,
    FloatOperand,
    Instruction,
    IntOperand,
    PairOperand,
    PtxOperand,
    Register,
    RegOperand,
    SinkOperand,
    SpecialOperand,
    SymbolOperand,
    VectorOperand,
)

Value: TypeAlias = Any
Values: TypeAlias = tuple[Value, ...]
Getter: TypeAlias = Callable[[Values], Value]

CARRY = Register("%cc", "pred", -1)
"""The condition code register's carry flag."""

Leaf: TypeAlias = Register | SpecialOperand | SymbolOperand


@dataclass(frozen=True, slots=True)
class Compiled:
    """`run(*values)` takes the values of `reads` in order and returns those of `writes`.

    Reads are registers (at their width), special registers (at `read_widths`) or addresses of variables (64 bits). `exchange` marks operations
    over the lanes of a warp: their `run` takes the active lanes' mask (one bit per lane) first.
    """

    reads: tuple[Leaf, ...]
    read_widths: tuple[int, ...]
    writes: tuple[Register, ...]
    run: Callable[..., tuple[Value, ...]]
    exchange: bool = False


class Context:
    """An instruction on its way to `Compiled`: the families' definitions fetch operands and set results through it."""

    def __init__(self, instruction: Instruction, algebra: AnyAlgebra) -> None:
        self.instruction = instruction
        self.alg = algebra
        self.flags = set(instruction.modifiers)
        self.types = [m for m in instruction.modifiers if m in TYPE_BITS]
        self._reads: list[Leaf] = []
        self._widths: list[int] = []
        self._writes: list[Register] = []
        self._results: list[Getter] = []
        self.exchange: Callable[[Value, Values], Values] | None = None

    # what the instruction says

    @property
    def type(self) -> str:
        """The instruction's type: its last type modifier."""
        if not self.types:
            raise self.unsupported("no type")
        return self.types[-1]

    @property
    def bits(self) -> int:
        return TYPE_BITS[self.type]

    @property
    def is_signed(self) -> bool:
        return self.type.startswith("s")

    @property
    def operands(self) -> tuple[PtxOperand, ...]:
        return self.instruction.operands

    def pick(self, *choices: str, default: str = "") -> str:
        """Which of the modifiers stands on the instruction."""
        for choice in choices:
            if choice in self.flags:
                return choice
        return default

    def unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"no semantics for '{self.instruction.mnemonic}': {what}", self.instruction.location)

    # sources

    def _read(self, leaf: Leaf, width: int) -> Getter:
        same = [i for i, known in enumerate(self._reads) if known is leaf or (not isinstance(leaf, Register) and known == leaf)]
        index = same[0] if same else len(self._reads)
        if not same:
            self._reads.append(leaf)
            self._widths.append(width)
        return lambda values: values[index]

    def fit(self, value: Getter, have: int, want: int, signed: bool = False) -> Getter:
        """A value of `have` bits cut or extended to `want`."""
        alg = self.alg
        if have == want:
            return value
        if have > want:
            return lambda v: alg.extract(value(v), want - 1, 0, have)
        if signed:
            return lambda v: alg.sext(value(v), have, want)
        return lambda v: alg.zext(value(v), have, want)

    def constant(self, number: int, width: int) -> Getter:
        value = self.alg.const(number, width)
        return lambda _v: value

    def source(self, position: int, width: int | None = None, *, float_format: str = "", signed: bool = False) -> Getter:
        """Operand `position` as a value of `width` bits (the instruction's, when not given)."""
        return self.leaf(self.operands[position], width or self.bits, float_format=float_format, signed=signed)

    def leaf(self, operand: PtxOperand | None, width: int, *, float_format: str = "", signed: bool = False) -> Getter:
        """Any source operand as a value of `width` bits; registers that are wider are cut, narrower ones extended."""
        if isinstance(operand, RegOperand):
            return self._register(operand, width, signed)
        if isinstance(operand, IntOperand):
            return self.constant(operand.value, width)
        if isinstance(operand, FloatOperand):
            return self.constant(float_bits(operand, float_format or _FORMAT_OF_WIDTH.get(width, "f32")), width)
        if isinstance(operand, SpecialOperand):
            have = special_width(operand)
            return self.fit(self._read(operand, have), have, width)
        if isinstance(operand, SymbolOperand):
            return self.fit(self._read(operand, 64), 64, width)
        if isinstance(operand, VectorOperand):
            return self._packed(operand, width)
        raise self.unsupported(f"operand {operand!r}")

    def _register(self, operand: RegOperand, width: int, signed: bool) -> Getter:
        alg, register = self.alg, operand.register
        if operand.component:
            raise self.unsupported(f"component .{operand.component}")
        value = self.fit(self._read(register, register.bits), register.bits, width, signed)
        if not operand.negated:
            return value
        if register.type == "pred":
            return lambda v: alg.not_(value(v), width)
        return lambda v: alg.neg(value(v), width)

    def _packed(self, operand: VectorOperand, width: int) -> Getter:
        """A vector as one value, its first element lowest."""
        alg, part = self.alg, width // len(operand.elements)
        getters = [self.leaf(e, part) for e in operand.elements]

        def pack(values: Values) -> Value:
            result, have = getters[0](values), part
            for getter in getters[1:]:
                result = alg.concat(getter(values), result, part, have)
                have += part
            return result

        return pack

    def predicate(self, position: int) -> Getter:
        return self.source(position, 1)

    # results

    def result(self, value: Getter, position: int = 0, width: int | None = None, *, signed: bool | None = None) -> None:
        """Set destination operand `position` to a value of `width` bits; wider registers take its extension by the type's sign."""
        have = width or self.bits
        extend = self.is_signed if signed is None and self.types else bool(signed)
        self.assign(self.operands[position], value, have, extend)

    def assign(self, operand: PtxOperand | None, value: Getter, have: int, signed: bool = False) -> None:
        """Write a value of `have` bits to a register, or spread it over a vector's elements from the lowest."""
        if operand is None or isinstance(operand, SinkOperand):
            return
        if isinstance(operand, RegOperand) and not operand.component:
            register = operand.register
            self._writes.append(register)
            self._results.append(self.fit(value, have, register.bits, signed))
        elif isinstance(operand, VectorOperand):
            part = have // len(operand.elements)
            for index, element in enumerate(operand.elements):
                self.assign(element, self._slice(value, index * part, part, have), part)
        else:
            raise self.unsupported(f"destination {operand!r}")

    def _slice(self, value: Getter, low: int, width: int, have: int) -> Getter:
        alg = self.alg
        return lambda v: alg.extract(value(v), low + width - 1, low, have)

    def pair(self, first: Getter, first_width: int, second: Getter, second_width: int = 1, position: int = 0) -> None:
        """Set `d|p`, or `d` alone."""
        operand = self.operands[position]
        if isinstance(operand, PairOperand):
            self.assign(operand.first, first, first_width)
            self.assign(operand.second, second, second_width)
        else:
            self.assign(operand, first, first_width)

    def window(self, space: str) -> Getter:
        """The generic address where a space's window starts, as the pseudo special register `window` (64 bits)."""
        return self._read(SpecialOperand("window", "shared" if space.startswith("shared") else space), 64)

    def carry_in(self) -> Getter:
        return self._read(CARRY, 1)

    def carry_out(self, value: Getter) -> None:
        self._writes.append(CARRY)
        self._results.append(value)

    def compiled(self) -> Compiled:
        results = tuple(self._results)
        if self.exchange is not None:
            exchange = self.exchange

            def run_exchange(active: Value, *values: Value) -> Values:
                shared = exchange(active, values)
                return tuple(r((*values, *shared)) for r in results)

            return Compiled(tuple(self._reads), tuple(self._widths), tuple(self._writes), run_exchange, True)

        def run(*values: Value) -> Values:
            return tuple(r(values) for r in results)

        return Compiled(tuple(self._reads), tuple(self._widths), tuple(self._writes), run)

    def shared_result(self, index: int) -> Getter:
        """Result `index` of the exchange, inside result getters."""
        return lambda values: values[len(self._reads) + index]


Definition: TypeAlias = Callable[[Context], None]
REGISTRY: dict[str, Definition] = {}
_FORMAT_OF_WIDTH = {16: "f16", 32: "f32", 64: "f64"}


def defines(*opcodes: str) -> Callable[[Definition], Definition]:
    """Enter a family's definition under its opcodes."""

    def register(definition: Definition) -> Definition:
        for opcode in opcodes:
            REGISTRY[opcode] = definition
        return definition

    return register


def compile_instruction(instruction: Instruction, algebra: AnyAlgebra) -> Compiled:
    """Resolve a value instruction. UnsupportedError names an instruction or modifier that has no definition."""
    _load()
    definition = REGISTRY.get(instruction.opcode)
    if definition is None:
        raise UnsupportedError(f"no semantics for '{instruction.mnemonic}'", instruction.location)
    context = Context(instruction, algebra)
    definition(context)
    return context.compiled()


def _load() -> None:
    if not REGISTRY:
        from sassay.ptx.semantics import convert, exchange, floating, integer, logic, video  # noqa: F401


def special_width(operand: SpecialOperand) -> int:
    """Width in bits of a special register."""
    wide = ("window", "clock64", "globaltimer", "current_graph_exec", "gridid")
    return 64 if operand.name in wide or operand.name.endswith("_64") else 1 if operand.name == "is_explicit_cluster" else 32


def float_bits(operand: FloatOperand, format_: str) -> int:
    """The immediate's bits in a format: f64 literals are rounded to nearest for narrower ones."""
    if format_ == "f64":
        return operand.bits if operand.double else _f64_bits(struct.unpack("<f", struct.pack("<I", operand.bits))[0])
    if format_ == "f32" and not operand.double:
        return operand.bits
    number = struct.unpack("<d", struct.pack("<Q", operand.bits))[0] if operand.double else struct.unpack("<f", struct.pack("<I", operand.bits))[0]
    if format_ == "f16":
        return int(struct.unpack("<H", struct.pack("<e", number))[0])
    try:
        return int(struct.unpack("<I", struct.pack("<f", number))[0])
    except OverflowError:
        return 0x7F800000 if number > 0 else 0xFF800000


def _f64_bits(number: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", number))[0])
