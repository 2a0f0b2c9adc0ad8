"""Rewriting the register numbers of an instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sassay.sass.model import Const, File, Instruction, Mem, Operand, Reg

Renaming = Callable[[File, int], int]
"""New index of a register, given its file and index. RZ, PT and their like are never asked for."""


def _register(reg: Reg, new: Renaming) -> Reg:
    if reg.is_zero and reg.file not in (File.B, File.SB):
        return reg
    index = new(reg.file, reg.index)
    if index == reg.index:
        return reg
    return Reg(reg.file, index, reg.suffix, reg.neg, reg.absolute, reg.invert, reg.reuse)


def _operand(operand: Operand, new: Renaming) -> Operand:
    kind = type(operand)
    if kind is Reg:
        return _register(operand, new)  # type: ignore[arg-type]
    if kind is Mem:
        assert isinstance(operand, Mem)
        descriptor = None if operand.descriptor is None else _register(operand.descriptor, new)
        parts = tuple([_register(p, new) for p in operand.parts])
        if parts == operand.parts and descriptor == operand.descriptor:
            return operand
        return Mem(parts, operand.offset, operand.prefix, descriptor, operand.suffix)
    if kind is Const:
        assert isinstance(operand, Const)
        if operand.base is None and not isinstance(operand.bank, Reg):
            return operand
        bank = _register(operand.bank, new) if isinstance(operand.bank, Reg) else operand.bank
        return replace(operand, bank=bank, base=None if operand.base is None else _register(operand.base, new))
    return operand


def rename(instr: Instruction, new: Renaming) -> Instruction:
    """The instruction with every register, guard included, renumbered by `new`."""
    operands = tuple([_operand(o, new) for o in instr.operands])
    guard = instr.guard if instr.guard.is_zero else _register(instr.guard, new)
    return Instruction(instr.opcode, instr.modifiers, operands, guard, instr.control, instr.form)


def rename_slots(instr: Instruction, new: dict[tuple[int, int], int]) -> Instruction:
    """The instruction with the registers in some slots renumbered: keys are (operand position, part) as in `effects.Slot`, (-1, -1) is the guard."""
    operands = list(instr.operands)
    guard = instr.guard
    for (position, part), index in new.items():
        if position == -1:
            guard = replace(guard, index=index)
            continue
        operand = operands[position]
        if isinstance(operand, Reg):
            operands[position] = replace(operand, index=index)
        elif isinstance(operand, Mem):
            if part == -2:
                assert operand.descriptor is not None
                operands[position] = replace(operand, descriptor=replace(operand.descriptor, index=index))
            else:
                parts = list(operand.parts)
                parts[part] = replace(parts[part], index=index)
                operands[position] = replace(operand, parts=tuple(parts))
        elif isinstance(operand, Const):
            if part == -3:
                assert isinstance(operand.bank, Reg)
                operands[position] = replace(operand, bank=replace(operand.bank, index=index))
            else:
                assert operand.base is not None
                operands[position] = replace(operand, base=replace(operand.base, index=index))
    return Instruction(instr.opcode, instr.modifiers, tuple(operands), guard, instr.control, instr.form)
