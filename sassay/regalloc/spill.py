"""Spilling as a change of file, and rematerialisation.

UP goes to UR (USEL, UISETP), UR to R (MOV, R2UR), P to R (SEL, ISETP), R to local memory (STL, LDL through R1). A value whose every definition is
marked cheap and pure and reads no register is repeated before its uses instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sassay.errors import AllocationError
from sassay.sass.effects import shape, slot_register
from sassay.sass.function import Function, MemoryFact, Node
from sassay.sass.model import ALWAYS, PT, R_ZERO, UNIFORM_ALWAYS, UR_ZERO, File, Imm, Instruction, Mem, Reg
from sassay.sass.rename import rename_slots

SPILL_TO = {File.UP: File.UR, File.UR: File.R, File.P: File.R}
STACK = Reg(File.R, 1)


@dataclass(slots=True)
class Spills:
    """What has been spilled so far: short-lived registers made by spilling are never spilled again."""

    temporaries: set[tuple[File, int]] = field(default_factory=set)
    stores: int = 0
    loads: int = 0
    base: int = 0
    """First byte of the spill area in the frame."""


def spill(fn: Function, registers: set[tuple[File, int]], state: Spills) -> None:
    """Rewrites all nodes that touch the given virtual registers (first registers of tuples, or single ones)."""
    homes: dict[tuple[File, int], _Home] = {}
    definitions = _definitions(fn, registers)
    for file, first in sorted(registers):
        width = fn.tuples.get((file, first), 1)
        home = _Home(file, first, width, _repeatable(definitions.get((file, first), []), width))
        if home.repeat is None:
            if file == File.R:
                align = 4 * (1 if width == 1 else 2 if width == 2 else 4)
                fn.frame_size = -(-fn.frame_size // align) * align
                home.offset = fn.frame_size
                fn.frame_size += 4 * width
            else:
                home.copies = [fn.new(SPILL_TO[file]) for _ in range(width)]
        for i in range(width):
            homes[file, first + i] = home
    for block in fn.blocks:
        nodes: list[Node] = []
        for node in block.nodes:
            _rewrite(fn, node, homes, state, nodes)
        block.nodes = nodes
    for key, home in homes.items():
        if key == (home.file, home.first):
            fn.tuples.pop(key, None)


@dataclass(slots=True)
class _Home:
    """Where a spilled register lives: a frame offset, registers of another file, or an instruction to repeat."""

    file: File
    first: int
    width: int
    repeat: Node | None
    offset: int = 0
    copies: list[int] = field(default_factory=list)


def _definitions(fn: Function, registers: set[tuple[File, int]]) -> dict[tuple[File, int], list[Node]]:
    parts = {(f, i + k): (f, i) for f, i in registers for k in range(fn.tuples.get((f, i), 1))}
    found: dict[tuple[File, int], list[Node]] = {}
    for block in fn.blocks:
        for node in block.nodes:
            for slot in shape(node.instruction).defs:
                reg = slot_register(node.instruction, slot)
                if reg is not None and (reg.file, reg.index) in parts:
                    found.setdefault(parts[reg.file, reg.index], []).append(node)
    return found


def _repeatable(definitions: list[Node], width: int) -> Node | None:
    """The only definition of a register, if it may be repeated anywhere: marked so, unguarded, one result, no register read."""
    if len(definitions) != 1 or not definitions[0].remat or definitions[0].relocation is not None:
        return None
    instr = definitions[0].instruction
    shaped = shape(instr)
    reads = [slot_register(instr, s) for s in shaped.uses]
    if any(r is not None and not r.is_zero for r in reads) or not instr.guard.is_zero or instr.guard.invert:
        return None
    written = [s for s in shaped.defs if (r := slot_register(instr, s)) is not None and not r.is_zero]
    return definitions[0] if len(written) == 1 and written[0].width == width else None


def _rewrite(fn: Function, node: Node, homes: dict[tuple[File, int], _Home], state: Spills, out: list[Node]) -> None:
    """Appends `node` with its spilled registers replaced by short-lived ones, loads before it and stores after it."""
    instr = node.instruction
    shaped = shape(instr)
    news: dict[tuple[int, int], int] = {}
    before: list[Node] = []
    after: list[Node] = []
    loaded: dict[tuple[File, int, int], int] = {}
    for slot in shaped.uses:
        reg = slot_register(instr, slot)
        if reg is None or (home := homes.get((reg.file, reg.index))) is None:
            continue
        key = (reg.file, reg.index, slot.width)
        if key not in loaded:
            loaded[key] = _temporary(fn, reg.file, slot.width, state)
            before.extend(_load(home, reg.index - home.first, loaded[key], slot.width, node, state))
        news[slot.operand, slot.part] = loaded[key]
    guard = instr.guard
    if (home := homes.get((guard.file, guard.index))) is not None:
        key = (guard.file, guard.index, 1)
        if key not in loaded:
            loaded[key] = _temporary(fn, guard.file, 1, state)
            before.extend(_load(home, guard.index - home.first, loaded[key], 1, node, state))
        news[-1, -1] = loaded[key]
    drop = False
    for slot in shaped.defs:
        reg = slot_register(instr, slot)
        if reg is None or (home := homes.get((reg.file, reg.index))) is None:
            continue
        if home.repeat is not None:
            drop = True
            continue
        index = _temporary(fn, reg.file, slot.width, state)
        news[slot.operand, slot.part] = index
        stored = replace(guard, index=news[-1, -1]) if (-1, -1) in news else guard
        after.extend(_store(home, reg.index - home.first, index, slot.width, node, stored, state))
    if drop:
        return
    if news:
        node.instruction = rename_slots(instr, news)
    out.extend(before)
    out.append(node)
    out.extend(after)


def _temporary(fn: Function, file: File, width: int, state: Spills) -> int:
    index = fn.new(file, width)
    state.temporaries.add((file, index))
    return index


def _node(like: Node, instr: Instruction, memory: MemoryFact | None = None) -> Node:
    return Node(instr, memory=memory, line=like.line, source=like.source)


def _vector(width: int) -> tuple[str, ...]:
    return {1: (), 2: ("64",), 4: ("128",)}[width]


def _pieces(offset: int, width: int) -> list[tuple[int, int]]:
    """(first part, width) of the accesses that cover `width` words at a frame offset, each aligned to its size."""
    out = []
    part = 0
    while part < width:
        size = next(w for w in (4, 2, 1) if w <= width - part and (offset + 4 * part) % (4 * w) == 0 and part % w == 0)
        out.append((part, size))
        part += size
    return out


def _slot_fact(offset: int, size: int, reads: bool) -> MemoryFact:
    return MemoryFact("local", reads=reads, writes=not reads, base="spill", offset=offset, size=size)


def _load(home: _Home, part: int, to: int, width: int, like: Node, state: Spills) -> list[Node]:
    file = home.file
    if home.repeat is not None:
        again = home.repeat
        slot = shape(again.instruction).defs[0]
        written = [s for s in shape(again.instruction).defs if (r := slot_register(again.instruction, s)) is not None and not r.is_zero]
        slot = written[0]
        if part or width != home.width:
            raise AllocationError("a repeated tuple is read in part")
        return [Node(rename_slots(again.instruction, {(slot.operand, slot.part): to}), line=like.line, source=like.source)]
    if file == File.R:
        out = []
        for at, size in _pieces(home.offset + 4 * part, width):
            offset = home.offset + 4 * (part + at)
            instr = Instruction("LDL", _vector(size), (Reg(File.R, to + at), Mem((STACK,), offset)))
            out.append(_node(like, instr, _slot_fact(offset, 4 * size, True)))
            state.loads += 4 * size
        return out
    kept = [home.copies[part + i] for i in range(width)]
    if file == File.UR:
        return [_node(like, Instruction("R2UR", (), (Reg(File.UR, to + i), Reg(File.R, k)))) for i, k in enumerate(kept)]
    if file == File.P:
        always = ALWAYS
        return [_node(like, Instruction("ISETP", ("NE", "AND"), (Reg(File.P, to), Reg(File.P, PT), Reg(File.R, kept[0]), R_ZERO, always)))]
    if file == File.UP:
        operands = (Reg(File.UP, to), Reg(File.UP, PT), Reg(File.UR, kept[0]), UR_ZERO, UNIFORM_ALWAYS)
        return [_node(like, Instruction("UISETP", ("NE", "AND"), operands))]
    raise AllocationError(f"registers of file {file.name} cannot be spilled")


def _store(home: _Home, part: int, source: int, width: int, like: Node, guard: Reg, state: Spills) -> list[Node]:
    file = home.file
    if file == File.R:
        out = []
        for at, size in _pieces(home.offset + 4 * part, width):
            offset = home.offset + 4 * (part + at)
            instr = Instruction("STL", _vector(size), (Mem((STACK,), offset), Reg(File.R, source + at)), guard)
            out.append(_node(like, instr, _slot_fact(offset, 4 * size, False)))
            state.stores += 4 * size
        return out
    kept = [home.copies[part + i] for i in range(width)]
    if file == File.UR:
        return [_node(like, Instruction("MOV", (), (Reg(File.R, k), Reg(File.UR, source + i)), guard)) for i, k in enumerate(kept)]
    if file == File.P:
        return [_node(like, Instruction("SEL", (), (Reg(File.R, kept[0]), R_ZERO, Imm(1), Reg(File.P, source, invert=True)), guard))]
    if file == File.UP:
        return [_node(like, Instruction("USEL", (), (Reg(File.UR, kept[0]), UR_ZERO, Imm(1), Reg(File.UP, source, invert=True)), guard))]
    raise AllocationError(f"registers of file {file.name} cannot be spilled")
