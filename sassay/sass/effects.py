"""What an instruction writes and reads: registers with their exact widths.

`effects(instr)` gives tuples of `(file, first index, width)`; RZ, PT, URZ and UPT are left out. Guards count as uses, address registers,
descriptors and carry predicates too. Widths depend on the shape alone (opcode, modifiers, operand kinds), which is worked out once a shape.
Virtual indices pass through like physical ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from sassay.errors import SassError
from sassay.isa.operands import ROWS, WIDTH_RULES, address_widths
from sassay.sass.model import Const, File, Imm, Instruction, Mem, Name, Operand, Reg, Target

Access: TypeAlias = tuple[File, int, int]
"""(register file, first index, number of registers)."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Registers written and read; a register may stand in both. The positions name the operand each access comes from, -1 the guard."""

    defs: tuple[Access, ...]
    uses: tuple[Access, ...]
    def_positions: tuple[int, ...]
    use_positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a register stands in an instruction: operand position, place within it, and how many registers it covers.

    `part` is -1 for the operand itself, 0.. for the registers of an address, -2 for a descriptor, -3 for a constant's bank.
    """

    operand: int
    part: int
    width: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The register slots of all instructions of one shape."""

    defs: tuple[Slot, ...]
    uses: tuple[Slot, ...]
    destinations: tuple[int, ...]


_LETTER = {File.R: "R", File.UR: "U", File.P: "P", File.UP: "Q", File.B: "B", File.SB: "S"}
_ALL_PREDICATES = (0, 7)
_GENERIC_ACCESS = frozenset({"LD", "LDG", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG", "CCTL"})
"""Accesses whose .E means a 64-bit address, in a register pair even where no descriptor shows `.64`."""


def _kind(operand: Operand) -> object:
    """The part of an operand that its shape depends on: hashable, and the same for every register number."""
    if type(operand) is Reg:
        return "R1" if "F32" in operand.suffix else _LETTER[operand.file]
    if type(operand) is Mem:
        return (
            operand.prefix,
            operand.descriptor is not None,
            tuple((_LETTER[p.file], p.suffix) for p in operand.parts),
        )
    if type(operand) is Const:
        return ("C", type(operand.bank) is Reg, operand.base.file if operand.base is not None else None)
    if type(operand) is Imm:
        return "I"
    if type(operand) is Target:
        return "T"
    return operand.text if type(operand) is Name and operand.text in ("PR", "UPR", "B") else "N"


def _letters(kinds: tuple[object, ...]) -> str:
    """One letter an operand, for the destination patterns."""
    out = []
    for kind in kinds:
        if isinstance(kind, tuple):
            out.append("C" if kind[0] == "C" and isinstance(kind[1], bool) and len(kind) == 3 and not isinstance(kind[2], tuple) else "M")
        else:
            out.append("R" if kind == "R1" else kind if isinstance(kind, str) and len(kind) == 1 else "N")
    return "".join(out)


def _widths(words: str, mods: tuple[str, ...], count: int) -> list[int]:
    """`count` widths from a row's words, the last one repeated."""
    out: list[int] = []
    names = words.split() or ["1"]
    for position in range(count):
        word = names[min(position, len(names) - 1)]
        out.append(int(word) if word.isdigit() else WIDTH_RULES[word](mods))
    return out


def _destination_count(pattern: str, letters: str) -> int:
    if pattern == "none":
        return 0
    if pattern == "butlast":
        return len(letters) - 1
    found = re.match(pattern, letters)
    return found.end() if found else -1


def _address_slots(position: int, kind: tuple[object, ...], mods: tuple[str, ...], opcode: str) -> list[Slot]:
    """Slots of a memory operand: address pairs for .64 and for generic addresses without a descriptor, descriptors as UR pairs."""
    prefix, described, parts = kind
    assert isinstance(parts, tuple)
    fixed = address_widths(opcode, mods)
    if fixed is not None:
        if position >= len(fixed) or described:
            raise SassError(f"{'.'.join((opcode, *mods))}: operand {position + 1} is not known")
        return [Slot(position, index, fixed[position] if index == 0 else 1) for index in range(len(parts))]
    slots = []
    if described:
        slots.append(Slot(position, -2, 2))
    for index, (letter, suffix) in enumerate(parts):
        width = 1
        if "64" in suffix:
            width = 2
        elif prefix == "gdesc":
            width = 2 if position > 1 else 4  # both matrices by descriptor, or B alone
        elif letter == "R" and opcode in _GENERIC_ACCESS and "E" in mods and not described and "U32" not in suffix:
            width = 2
        elif letter == "U" and "U32" in (parts[0][1] if index else ()) and not described:
            width = 2
        slots.append(Slot(position, index, width))
    return slots


@cache
def shape_of(opcode: str, mods: tuple[str, ...], kinds: tuple[object, ...]) -> Shape:
    """The slots of a shape; SassError for an operation or an operand list that is not known."""
    row = ROWS.get(opcode)
    if row is None:
        raise SassError(f"effects of {opcode} are not known")
    letters = _letters(kinds)
    count = _destination_count(row[0], letters)
    if count < 0:
        raise SassError(f"{'.'.join((opcode, *mods))}: operands {letters} do not fit the pattern {row[0]}")
    defs: list[Slot] = []
    uses: list[Slot] = []
    registers = [i for i in range(count) if letters[i] in "RU"]
    widths = dict(zip(registers, _widths(row[1], mods, len(registers)), strict=True))
    for position in range(count):
        defs.append(Slot(position, -1, widths.get(position, 1)))
    source_widths = _widths(row[2], mods, len(kinds) - count)
    for position in range(count, len(kinds)):
        kind = kinds[position]
        letter = letters[position]
        if letter == "M":
            assert isinstance(kind, tuple)
            uses.extend(_address_slots(position, kind, mods, opcode))
        elif letter == "C":
            assert isinstance(kind, tuple)
            if kind[1]:
                uses.append(Slot(position, -3, 2))
            if kind[2] is not None:
                uses.append(Slot(position, 0, 1))
        elif letter in "RU":
            # one half of a packed pair, broadcast (FFMA2 R2, R4.F32, ...)
            uses.append(Slot(position, -1, 1 if kind == "R1" else source_widths[position - count]))
        elif letter in "PQBS" or kind in ("PR", "UPR"):
            uses.append(Slot(position, -1, 1))
    return Shape(tuple(defs), tuple(uses), tuple(range(count)))


def shape(instr: Instruction) -> Shape:
    """The shape of an instruction."""
    return shape_of(instr.opcode, instr.modifiers, tuple([_kind(o) for o in instr.operands]))


def destinations(instr: Instruction) -> tuple[int, ...]:
    """Positions of the operands that the instruction writes."""
    return shape(instr).destinations


def slot_register(instr: Instruction, slot: Slot) -> Reg | None:
    """The register in a slot, or None for a named set of registers (PR)."""
    operand = instr.operands[slot.operand]
    if slot.part == -1:
        return operand if isinstance(operand, Reg) else None
    if isinstance(operand, Mem):
        return operand.descriptor if slot.part == -2 else operand.parts[slot.part]
    if isinstance(operand, Const):
        return operand.bank if slot.part == -3 and isinstance(operand.bank, Reg) else operand.base
    return None


def _packed(instr: Instruction, slot: Slot) -> tuple[Access, ...]:
    """Predicates behind PR and UPR; an immediate mask, the last operand, selects among them."""
    operand = instr.operands[slot.operand]
    if not isinstance(operand, Name) or operand.text not in ("PR", "UPR"):
        return ()
    file = File.P if operand.text == "PR" else File.UP
    last = instr.operands[-1]
    if not isinstance(last, Imm):
        return ((file, *_ALL_PREDICATES),)
    return tuple([(file, i, 1) for i in range(7) if last.value >> i & 1])


def _collect(instr: Instruction, slots: tuple[Slot, ...]) -> tuple[list[Access], list[int]]:
    out: list[Access] = []
    positions: list[int] = []
    for slot in slots:
        register = slot_register(instr, slot)
        if register is None:
            packed = _packed(instr, slot)
            out.extend(packed)
            positions.extend([slot.operand] * len(packed))
        elif not register.is_zero or register.file in (File.B, File.SB):
            out.append((register.file, register.index, slot.width))
            positions.append(slot.operand)
    return out, positions


def effects(instr: Instruction) -> Effects:
    """Registers that the instruction writes and reads."""
    shaped = shape(instr)
    defs, def_positions = _collect(instr, shaped.defs)
    uses, use_positions = _collect(instr, shaped.uses)
    if not instr.guard.is_zero:
        uses.append((instr.guard.file, instr.guard.index, 1))
        use_positions.append(-1)
    return Effects(tuple(defs), tuple(uses), tuple(def_positions), tuple(use_positions))
