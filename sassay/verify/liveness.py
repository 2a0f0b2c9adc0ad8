"""What is live at the start of each block, on both sides: the registers that a relation has to speak of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sassay.ptx.ast import (
    AddressOperand,
    BracketOperand,
    Instruction,
    ListOperand,
    PairOperand,
    PtxOperand,
    Register,
    RegOperand,
    VectorOperand,
)
from sassay.sass.effects import effects
from sassay.sass.model import File
from sassay.sass.model import Instruction as Sass
from sassay.verify.ptx_side import PtxSide
from sassay.verify.regions import EXIT, Key
from sassay.verify.sass_side import SassSide

_NO_DESTINATION = frozenset({
    "st", "red", "bar", "barrier", "bra", "brx", "ret", "exit", "membar", "fence", "prefetch", "prefetchu", "trap", "brkpt", "nanosleep", "call",
    "griddepcontrol", "pmevent", "discard", "applypriority",
})  # fmt: skip


def registers_in(operand: PtxOperand | None) -> Iterable[Register]:
    """All registers that an operand names."""
    if isinstance(operand, RegOperand):
        yield operand.register
    elif isinstance(operand, AddressOperand) and isinstance(operand.base, Register):
        yield operand.base
    elif isinstance(operand, VectorOperand | ListOperand | BracketOperand):
        for element in operand.elements:
            yield from registers_in(element)
    elif isinstance(operand, PairOperand):
        yield from registers_in(operand.first)
        yield from registers_in(operand.second)


def _ptx_block(body: Sequence[Instruction]) -> tuple[set[Register], set[Register]]:
    """Registers read before any write, and registers surely written."""
    uses: set[Register] = set()
    kills: set[Register] = set()
    for instruction in body:
        first = 0 if instruction.opcode in _NO_DESTINATION else 1
        reads = [r for o in instruction.operands[first:] for r in registers_in(o)]
        if instruction.guard is not None:
            reads.append(instruction.guard.register)
        writes = [r for o in instruction.operands[:first] for r in registers_in(o)]
        if instruction.opcode in ("bar", "barrier") and "red" in instruction.modifiers:
            writes = list(registers_in(instruction.operands[0]))
        uses.update(r for r in reads if r not in kills)
        if instruction.guard is None:
            kills.update(writes)
        else:
            uses.update(r for r in writes if r not in kills)
    return uses, kills


def _solve(successors: Mapping[str, list[str]], uses: Mapping[str, set[Key]], kills: Mapping[str, set[Key]]) -> dict[str, set[Key]]:
    live: dict[str, set[Key]] = {label: set(uses[label]) for label in successors}
    labels = list(successors)[::-1]
    changed = True
    while changed:
        changed = False
        for label in labels:
            after: set[Key] = set()
            for s in successors[label]:
                after |= live.get(s, set())
            new = uses[label] | (after - kills[label])
            if new != live[label]:
                live[label] = new
                changed = True
    return live


def ptx_liveness(side: PtxSide) -> dict[str, list[Register]]:
    """Live registers at the start of each PTX block, in order of declaration."""
    facts = {label: _ptx_block(body) for label, body in side.blocks.items()}
    successors = {label: [s for s in side.successors(label) if s != EXIT] for label in side.blocks}
    uses: dict[str, set[Key]] = {label: set(u) for label, (u, _) in facts.items()}
    kills: dict[str, set[Key]] = {label: set(k) for label, (_, k) in facts.items()}
    live = _solve(successors, uses, kills)
    return {label: sorted((r for r in found if isinstance(r, Register)), key=lambda r: r.uid) for label, found in live.items()}


def sass_liveness(side: SassSide, instructions: Sequence[Sass]) -> dict[str, list[tuple[Key, int]]]:
    """Live registers at the start of each SASS block, with their widths; stack cells are left to the relation."""
    uses: dict[str, set[Key]] = {}
    kills: dict[str, set[Key]] = {}
    for label, block in side.blocks.items():
        uses[label], kills[label] = set(), set()
        for index in block:
            instruction = instructions[index]
            found = effects(instruction)
            reads = {(file, first + i) for file, first, width in found.uses for i in range(width)}
            writes = {(file, first + i) for file, first, width in found.defs for i in range(width)}
            uses[label] |= {r for r in reads if r not in kills[label]}
            if instruction.guard.is_zero and not instruction.guard.invert:
                kills[label] |= writes
            else:
                uses[label] |= {w for w in writes if w not in kills[label]}
    successors = {label: [s for s in side.successors(label) if s != EXIT] for label in side.blocks}
    live = _solve(successors, uses, kills)
    return {label: _keys(found) for label, found in live.items()}


def _keys(found: set[Key]) -> list[tuple[Key, int]]:
    keys = [k for k in found if isinstance(k, tuple) and k[0] in (File.R, File.UR, File.P, File.UP)]
    return [(k, 1 if k[0] in (File.P, File.UP) else 32) for k in sorted(keys, key=lambda k: (int(k[0]), k[1]))]
