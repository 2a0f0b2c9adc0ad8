"""Control flow: blocks of a decoded list of instructions, and what ends a block.

Blocks are ranges of instruction indices. Edges: branch targets, fall-through (also past a guarded EXIT or RET, and past a CALL). Indirect
branches need their tables from the caller; without one the graph is refused, by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sassay.errors import Location, SassError
from sassay.sass.model import File, Instruction, Reg, Target

JUMPS = frozenset({"BRA", "JMP", "BRX", "BRXU", "JMX", "JMXU"})
"""Operations that transfer control to other blocks of the function."""
LEAVES = frozenset({"EXIT", "RET", "KILL", "RTT"})
"""Operations that leave the function."""
CALLS = frozenset({"CALL"})
INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
ENDS = JUMPS | LEAVES | CALLS
"""Operations that end a block. BSSY, BSYNC, WARPSYNC and BREAK change who runs, not where: they stay within one."""
WORD = 16
"""Bytes of an instruction."""


def is_conditional(instr: Instruction) -> bool:
    """Whether a control transfer may fall through: guarded, with a predicate operand, or testing convergence."""
    if not instr.guard.is_zero or instr.guard.invert:
        return True
    if {"DIV", "CONV"} & set(instr.modifiers):
        return True
    return any(isinstance(o, Reg) and o.file in (File.P, File.UP) and (o.invert or not o.is_zero) for o in instr.operands)


@dataclass(slots=True)
class Range:
    """A block: instructions `start` up to `end`, successors and predecessors as block numbers."""

    start: int
    end: int
    successors: list[int] = field(default_factory=list)
    predecessors: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Cfg:
    """Blocks in address order. `calls`: indices of call instructions with their target instruction index, -1 if it is outside or unknown."""

    blocks: list[Range]
    block_of: list[int]
    calls: dict[int, int]


def _target(instr: Instruction) -> int | None:
    for operand in instr.operands:
        if isinstance(operand, Target):
            return operand.to if isinstance(operand.to, int) else None
    return None


def build(instructions: Sequence[Instruction], tables: Mapping[int, Sequence[int]] | None = None, *, kernel: str = "") -> Cfg:
    """The CFG of one function's instructions, at byte offsets 0, 16, ... `tables`: byte offset of an indirect branch -> its target offsets."""
    count = len(instructions)
    leaders = {0}
    jumps: dict[int, list[int]] = {}
    calls: dict[int, int] = {}
    for i, instr in enumerate(instructions):
        opcode = instr.opcode
        if opcode not in ENDS:
            continue
        if i + 1 < count:
            leaders.add(i + 1)
        if opcode in CALLS:
            to = _target(instr)
            inside = to is not None and "REL" in instr.modifiers and 0 <= to < count * WORD
            calls[i] = to // WORD if inside and to is not None else -1
            if calls[i] >= 0:
                leaders.add(calls[i])
        elif opcode in INDIRECT:
            if tables is None or i * WORD not in tables:
                raise SassError(f"{instr.mnemonic}: its targets are not known", Location(kernel=kernel, offset=i * WORD))
            jumps[i] = [t // WORD for t in tables[i * WORD]]
        elif opcode in JUMPS:
            to = _target(instr)
            if to is None or not 0 <= to < count * WORD or to % WORD:
                raise SassError(f"{instr.mnemonic}: target {to} is not an instruction of this function", Location(kernel=kernel, offset=i * WORD))
            jumps[i] = [to // WORD]
        leaders.update(jumps.get(i, ()))
    starts = sorted(leaders)
    number = {s: n for n, s in enumerate(starts)}
    blocks = [Range(s, e) for s, e in zip(starts, [*starts[1:], count], strict=True)]
    block_of = [0] * count
    for n, block in enumerate(blocks):
        block_of[block.start : block.end] = [n] * (block.end - block.start)
        last = instructions[block.end - 1]
        targets = [number[t] for t in jumps.get(block.end - 1, ())]
        falls = last.opcode not in (JUMPS | LEAVES) or is_conditional(last)
        if falls and n + 1 < len(blocks):
            targets.append(n + 1)
        block.successors = list(dict.fromkeys(targets))
    for n, block in enumerate(blocks):
        for s in block.successors:
            blocks[s].predecessors.append(n)
    return Cfg(blocks, block_of, calls)
