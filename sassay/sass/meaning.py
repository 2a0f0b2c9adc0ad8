"""What SASS instructions compute: `isa.semantics` with the SASS model's types at the door.

`compile_instruction` gives a value operation as a pure function over an algebra; `event_of` gives a memory, barrier or control instruction as data
for emulator and prover to interpret; `kind_of` says which of the two an instruction is.
"""

from __future__ import annotations

from typing import Any

from sassay.isa.semantics import Evidence, compile_shape, events, evidence_of
from sassay.isa.semantics.algebra import Algebra
from sassay.isa.semantics.events import BarrierOp, ControlOp, MemoryOp
from sassay.isa.semantics.shape import Access, Compiled, Shape, Source
from sassay.sass.model import Const, Imm, ImmKind, Instruction, Mem, Name, Operand, Reg

__all__ = ["Access", "BarrierOp", "Compiled", "ControlOp", "MemoryOp", "cell_evidence", "compile_instruction", "event_of", "kind_of", "shape_of"]

_NUMBERS = {ImmKind.INT: "int", ImmKind.DEC: "int", ImmKind.F32: "f32", ImmKind.F64: "f64", ImmKind.F16: "f16", ImmKind.BF16: "bf16"}


def source_of(operand: Operand) -> Source:
    """An operand without its register number."""
    if isinstance(operand, Reg):
        kind = operand.file.name
        return Source(kind, operand.is_zero, operand.neg, operand.absolute, operand.invert, operand.suffix)
    if isinstance(operand, Imm):
        return Source(
            "imm", False, operand.neg, operand.absolute, operand.invert, operand.suffix, operand.value, _NUMBERS[operand.kind]
        )
    if isinstance(operand, Const):
        return Source("const", False, operand.neg, operand.absolute, operand.invert, operand.suffix)
    if isinstance(operand, Mem):
        return Source("mem", suffix=operand.suffix, text=operand.prefix)
    if isinstance(operand, Name):
        return Source("name", text=operand.text)
    return Source("target", suffix=operand.suffix)


def shape_of(instr: Instruction) -> Shape:
    """The instruction without register numbers, guard and control."""
    return Shape(instr.opcode, instr.modifiers, tuple(source_of(o) for o in instr.operands))


def compile_instruction(instr: Instruction, alg: Algebra[Any]) -> Compiled:
    """The meaning of a value operation or exchange: see `Compiled`. SassError names what is not known."""
    return compile_shape(shape_of(instr), alg)


def kind_of(instr: Instruction) -> str:
    """"memory", "barrier" or "control" for instructions with effects (`event_of`), else "value" (`compile_instruction`)."""
    return events.kind(shape_of(instr)) or "value"


def event_of(instr: Instruction) -> MemoryOp | BarrierOp | ControlOp:
    """The effect of a memory, barrier or control instruction as data."""
    return events.event(shape_of(instr))


def cell_evidence(instr: Instruction) -> Evidence:
    """What the meaning of a value instruction rests on."""
    return evidence_of(shape_of(instr))
