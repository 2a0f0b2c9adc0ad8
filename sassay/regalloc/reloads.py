"""Predicates kept in registers are not fetched again while the predicate still holds them. Works on allocated code, block by block."""

from __future__ import annotations

from sassay.sass.effects import effects
from sassay.sass.function import Function
from sassay.sass.model import ALWAYS, R_ZERO, File, Imm, Instruction, Reg


def drop_reloads(fn: Function) -> None:
    """Drops `ISETP.NE.AND P, PT, R, RZ, PT` where P already says whether R is zero: by the same test before, or a SEL of P into R. In place."""
    for block in fn.blocks:
        known: dict[int, int] = {}  # predicate -> register that is 1 or 0 as it is true or false
        kept = []
        for node in block.nodes:
            instr = node.instruction
            fact = _fact(instr)
            if fact is not None and instr.opcode == "ISETP" and known.get(fact[0]) == fact[1]:
                continue
            kept.append(node)
            for file, first, width in effects(instr).defs:
                if file == File.P:
                    for p in range(first, first + width):
                        known.pop(p, None)
                elif file == File.R:
                    known = {p: r for p, r in known.items() if not first <= r < first + width}
            if fact is not None:
                known[fact[0]] = fact[1]
        block.nodes = kept


def _fact(instr: Instruction) -> tuple[int, int] | None:
    """(predicate, register) that an unconditional instruction makes agree."""
    o = instr.operands
    if instr.guard != ALWAYS or not o or not isinstance(o[0], Reg):
        return None
    if instr.opcode == "ISETP" and instr.modifiers == ("NE", "AND") and o[1] == ALWAYS and o[3:] == (R_ZERO, ALWAYS):
        if isinstance(o[2], Reg) and o[2] == Reg(File.R, o[2].index) and o[2] != R_ZERO:
            return o[0].index, o[2].index
    if instr.opcode == "SEL" and o[1:3] == (R_ZERO, Imm(1)) and isinstance(o[3], Reg):
        if o[3] == Reg(File.P, o[3].index, invert=True) and o[3].index != ALWAYS.index:
            return o[3].index, o[0].index
    return None
