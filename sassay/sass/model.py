"""The SASS program as typed, immutable values, in nvdisasm's spelling.

An instruction is what nvdisasm prints, parsed: `@!P0 IMAD.WIDE.U32 R2, R7.reuse, 0x2, R2` has the opcode `IMAD`, the modifiers
`("WIDE", "U32")` and four operands. Everything that reads or writes SASS (text, words, selector, scheduler, checker, emulator, prover)
shares these types. Registers may be virtual: the selector numbers them from `VIRTUAL` up in each file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias


class File(IntEnum):
    """Register files. SB is the scoreboard named as an operand (DEPBAR.LE SB0)."""

    R = 0
    UR = 1
    P = 2
    UP = 3
    B = 4
    SB = 5


RZ = 255
"""Index of RZ and of URZ, whatever a chip's encoding of URZ is."""
PT = 7
"""Index of PT and UPT."""
VIRTUAL = 1 << 16
"""Indices from here up are virtual registers; tuples are named by their first register and have their width from the function."""


@dataclass(frozen=True, slots=True)
class Reg:
    """A register operand. `suffix` holds what follows the name except `.reuse`: ("64",), ("H0_H0",), ("X4",), ("ROW",).

    `neg` is a leading `-`, `absolute` bars, `invert` a leading `~` (integers) or `!` (predicates).
    """

    file: File
    index: int
    suffix: tuple[str, ...] = ()
    neg: bool = False
    absolute: bool = False
    invert: bool = False
    reuse: bool = False

    @property
    def is_zero(self) -> bool:
        """RZ, URZ; for predicates PT and UPT."""
        return self.index == (PT if self.file in (File.P, File.UP) else RZ)

    @property
    def is_virtual(self) -> bool:
        return self.index >= VIRTUAL


class ImmKind(IntEnum):
    """How an immediate's bits read in text."""

    INT = 0  # hexadecimal, signed where the form says so
    F32 = 1  # value holds the 32 bits of the number
    F64 = 2  # value holds the high 32 bits of the number, as the encoding does
    F16 = 3  # value holds 16 bits; packed immediates are two operands
    BF16 = 4
    DEC = 5  # a small decimal number


@dataclass(frozen=True, slots=True)
class Imm:
    """An immediate. For INT and DEC `value` is the (possibly negative) number printed; for floats the raw bits."""

    value: int
    kind: ImmKind = ImmKind.INT
    neg: bool = False
    absolute: bool = False
    invert: bool = False
    suffix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Const:
    """`c[bank][base+offset]`, or `cx[URn][offset]` when `bank` is a uniform register. `base` is an index register or None."""

    bank: int | Reg
    offset: int
    base: Reg | None = None
    suffix: tuple[str, ...] = ()
    neg: bool = False
    absolute: bool = False
    invert: bool = False
    spaced: bool = field(default=False, compare=False)
    """Spelt with a blank between the brackets, as nvdisasm does in forms that can select parts of the constant. No part of the meaning."""


@dataclass(frozen=True, slots=True)
class Mem:
    """An address: `[R2.64+UR4+0x10]`, `desc[UR4][R2.64]`, `gdesc[UR8].tnspB`, `tmem[UR4]`.

    `prefix` is the word before the bracket ("", "desc", "gdesc", "tmem", ...); `descriptor` the register in the first of two brackets;
    `parts` the registers added up inside the (last) bracket, in order; `offset` the immediate; `suffix` what follows the bracket.
    `offset_shown` keeps an explicitly printed zero offset apart from none.
    """

    parts: tuple[Reg, ...] = ()
    offset: int = 0
    prefix: str = ""
    descriptor: Reg | None = None
    suffix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Where a branch goes: a byte offset from the start of the function, or a label until offsets are known."""

    to: int | str
    suffix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """A bare word as operand: SR_TID.X, SRZ, PR, gsb0, 3D ..."""

    text: str


Operand: TypeAlias = Reg | Imm | Const | Mem | Target | Name


@dataclass(frozen=True, slots=True)
class Control:
    """Control bits 105 to 124. Barriers are 0 to 5 or None; `wait` is a mask of six bits; reuse flags stand on the operands.

    `yield_` is the meaning, not the bit: raw bit 109 is its negation. `batch` holds bits 122 to 124 where they are not reuse flags.
    """

    stall: int = 1
    yield_: bool = False
    write: int | None = None
    read: int | None = None
    wait: int = 0
    batch: int = 0


ALWAYS = Reg(File.P, PT)
UNIFORM_ALWAYS = Reg(File.UP, PT)
R_ZERO = Reg(File.R, RZ)
UR_ZERO = Reg(File.UR, RZ)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One SASS instruction. `guard` is a P register (PT: always), or UP where the form takes one."""

    opcode: str
    modifiers: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    guard: Reg = ALWAYS
    control: Control = field(default_factory=Control)
    form: str = ""
    """Name of the encoding class it was decoded from, or "" to let the encoder choose. No part of equality of meaning."""

    @property
    def mnemonic(self) -> str:
        return ".".join((self.opcode, *self.modifiers))
