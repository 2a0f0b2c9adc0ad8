"""From blocks to one list of instructions: empty blocks dropped, fall-throughs checked, labels to byte offsets, the tail of the section."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sassay.errors import UnsupportedError
from sassay.sass.cfg import ENDS, JUMPS, LEAVES, WORD, is_conditional
from sassay.sass.function import Block, Function, Node
from sassay.sass.model import Control, Instruction, Target

ALIGN = 128
"""Sections of code are padded to this many bytes (as ptxas does)."""


@dataclass(slots=True)
class Layout:
    """The finished order. `instructions[i]` stands at byte 16 * i; `nodes[i]` is what it came from, None in the tail; `starts`: label -> offset."""

    instructions: list[Instruction]
    nodes: list[Node | None]
    starts: dict[str, int]

    @property
    def exits(self) -> list[int]:
        """Byte offsets of all EXIT instructions."""
        return [WORD * i for i, instr in enumerate(self.instructions) if instr.opcode == "EXIT"]


def drop_empty(fn: Function) -> None:
    """Removes blocks without instructions, and jumps to the block that comes next anyway. In place."""
    changed = True
    while changed:
        changed = False
        for i, block in enumerate(fn.blocks):
            following = fn.blocks[i + 1].label if i + 1 < len(fn.blocks) else None
            last = block.nodes[-1].instruction if block.nodes else None
            jump = last is not None and last.opcode == "BRA" and not is_conditional(last) and block.successors == [following]
            if jump and last is not None and _label(last) == following:
                block.nodes.pop()
                changed = True
            if not block.nodes and block.successors and block.successors[0] != block.label and (i or block.successors[0] == following):
                _forward(fn, block, block.successors[0])
                fn.blocks.pop(i)
                changed = True
                break


def merge_chains(fn: Function) -> None:
    """Joins a block to the next one where nothing else leads there: straight code is scheduled as one piece. In place."""
    predecessors: dict[str, int] = {}
    for block in fn.blocks:
        for s in block.successors:
            predecessors[s] = predecessors.get(s, 0) + 1
        for node in block.nodes:
            if node.instruction.opcode == "BSSY":  # its label must stay the start of a block
                to = _label(node.instruction)
                if to is not None:
                    predecessors[to] = predecessors.get(to, 0) + 1
    merged: list[Block] = []
    for block in fn.blocks:
        before = merged[-1] if merged else None
        falls = before is not None and (not before.nodes or before.nodes[-1].instruction.opcode not in ENDS)
        only = falls and before is not None and before.successors == [block.label] and predecessors.get(block.label) == 1
        if before is not None and only and before.loop_depth == block.loop_depth:
            before.nodes.extend(block.nodes)
            before.successors = block.successors
        else:
            merged.append(block)
    fn.blocks = merged


def _label(instr: Instruction) -> str | None:
    for operand in instr.operands:
        if isinstance(operand, Target) and isinstance(operand.to, str):
            return operand.to
    return None


def _retarget(instr: Instruction, old: str, new: str) -> Instruction:
    if not any(isinstance(o, Target) and o.to == old for o in instr.operands):
        return instr
    operands = tuple([replace(o, to=new) if isinstance(o, Target) and o.to == old else o for o in instr.operands])
    return replace(instr, operands=operands)


def _forward(fn: Function, gone: Block, to: str) -> None:
    for block in fn.blocks:
        if gone.label in block.successors:
            block.successors = list(dict.fromkeys([to if s == gone.label else s for s in block.successors]))
        for node in block.nodes:
            node.instruction = _retarget(node.instruction, gone.label, to)


def flatten(fn: Function) -> Layout:
    """One list with byte offsets as targets. Behind the last instruction a branch to itself, and NOPs up to a whole number of 128 bytes."""
    instructions: list[Instruction] = []
    nodes: list[Node | None] = []
    starts: dict[str, int] = {}
    for i, block in enumerate(fn.blocks):
        starts[block.label] = WORD * len(instructions)
        for node in block.nodes:
            instructions.append(node.instruction)
            nodes.append(node)
        last = block.nodes[-1].instruction if block.nodes else None
        if last is None or last.opcode not in (JUMPS | LEAVES) or is_conditional(last):
            following = fn.blocks[i + 1].label if i + 1 < len(fn.blocks) else None
            if following is None or following not in block.successors:
                raise UnsupportedError(f"{fn.name}: block {block.label} falls through to {following}, which is not among {block.successors}")
    here = WORD * len(instructions)
    instructions.append(Instruction("BRA", (), (Target(here),), control=Control(stall=0, yield_=True)))
    while len(instructions) * WORD % ALIGN:
        instructions.append(Instruction("NOP", control=Control(stall=0, yield_=True)))
    nodes.extend([None] * (len(instructions) - len(nodes)))
    resolved = []
    for instr in instructions:
        label = _label(instr)
        if label is not None:
            if label not in starts:
                raise UnsupportedError(f"{fn.name}: {instr.mnemonic} goes to {label}, which is no block")
            operands = tuple([replace(o, to=starts[o.to]) if isinstance(o, Target) and isinstance(o.to, str) else o for o in instr.operands])
            instr = replace(instr, operands=operands)
        resolved.append(instr)
    return Layout(resolved, nodes, starts)
