"""Registers as dense numbers, liveness as integer bit masks.

A *unit* is one 32-bit register (one predicate, one barrier register) of one file, virtual or physical. All files share one numbering, so a live
set is one integer. A *group* is a set of units that must be consecutive: a tuple, or a single register.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sassay.errors import AllocationError
from sassay.sass.effects import Effects, effects
from sassay.sass.function import Function, Node
from sassay.sass.model import ALWAYS, VIRTUAL, File, Imm, Reg

FILES = (File.R, File.UR, File.P, File.UP, File.B)
_WIDE_READERS = frozenset({"HMMA", "IMMA", "DMMA", "QMMA", "BMMA", "OMMA"})
"""Matrix operations read their fragments over several cycles: results may not overlap sources except the accumulator itself."""


@dataclass(slots=True)
class Access:
    """Units written and read by a node. `kills`: the writes happen whatever the guard says."""

    defs: tuple[int, ...]
    uses: tuple[int, ...]
    kills: bool
    apart: tuple[tuple[int, int], ...] = ()
    """Pairs (result, source) that may not share a register although the source dies here."""


@dataclass(slots=True)
class Units:
    """The numbering, the accesses of every node block by block, and the tuples."""

    file: list[File]
    index: list[int]
    ids: dict[tuple[File, int], int]
    accesses: list[list[Access]]
    groups: list[tuple[int, int]]
    """(first unit, width) of each group of virtual units; the units of a group are consecutive numbers."""
    group_of: list[int]
    """Group of each unit; -1 for physical registers."""

    def width(self, unit: int) -> int:
        """Width of the group that a unit belongs to."""
        group = self.group_of[unit]
        return 1 if group < 0 else self.groups[group][1]

    def virtual(self, unit: int) -> bool:
        return self.group_of[unit] >= 0


def _guarded(node: Node) -> bool:
    guard = node.instruction.guard
    return not guard.is_zero or guard.invert


def number(fn: Function) -> Units:
    """Numbers the registers of a function. Units of a tuple get consecutive numbers."""
    units = Units([], [], {}, [], [], [])
    ids = units.ids
    inside: dict[tuple[File, int], tuple[int, int]] = {}
    for (file, first), width in fn.tuples.items():
        for i in range(width):
            inside[file, first + i] = (first, width)

    def add(file: File, index: int) -> int:
        found = ids.get((file, index))
        if found is not None:
            return found
        first, width = inside.get((file, index), (index, 1))
        if index < VIRTUAL:
            group = -1
        else:
            group = len(units.groups)
            units.groups.append((len(units.file), width))
        for i in range(width):
            ids[file, first + i] = len(units.file)
            units.file.append(file)
            units.index.append(first + i)
            units.group_of.append(group)
        return ids[file, index]

    cache: dict[tuple[File, int, int], tuple[int, ...]] = {}

    def expand(entry: tuple[File, int, int]) -> tuple[int, ...]:
        found = cache.get(entry)
        if found is None:
            file, first, width = entry
            if width > 1 and first >= VIRTUAL:
                home, size = inside.get((file, first), (first, 1))
                if first + width > home + size:
                    raise AllocationError(f"{fn.name}: {file.name}{first} is read or written {width} wide but its tuple ends sooner")
            found = cache[entry] = tuple([add(file, first + i) for i in range(width)])
        return found

    for block in fn.blocks:
        row = []
        for node in block.nodes:
            seen = effects(node.instruction)
            defs: list[int] = []
            uses: list[int] = []
            for entry in seen.defs:
                if entry[0] != File.SB:
                    defs.extend(expand(entry))
            for entry in seen.uses:
                if entry[0] != File.SB:
                    uses.extend(expand(entry))
            access = Access(tuple(defs), tuple(uses), not _guarded(node))
            if node.instruction.opcode in _WIDE_READERS:
                access.apart = _apart(seen, expand)
            row.append(access)
        units.accesses.append(row)
    return units


def _apart(seen: Effects, expand: Callable[[tuple[File, int, int]], tuple[int, ...]]) -> tuple[tuple[int, int], ...]:
    """Matrix operations: A and B (operands 1 and 2) stay clear of the result, C (operand 3) coincides with it wholly or not at all."""
    results = [d for entry in seen.defs for d in expand(entry)]
    pairs: list[tuple[int, int]] = []
    for entry, position in zip(seen.uses, seen.use_positions, strict=True):
        if entry[0] != File.R:
            continue
        for j, u in enumerate(expand(entry)):
            pairs.extend((d, u) for i, d in enumerate(results) if d != u and (position != 3 or i != j))
    return tuple(pairs)


def live_out(fn: Function, units: Units) -> list[int]:
    """For each block, the mask of units live at its end: backward data flow to a fixed point."""
    where = {b.label: i for i, b in enumerate(fn.blocks)}
    successors = [[where[s] for s in b.successors] for b in fn.blocks]
    gen: list[int] = []
    kill: list[int] = []
    for row in units.accesses:
        g = k = 0
        for access in reversed(row):
            if access.kills:
                for d in access.defs:
                    bit = 1 << d
                    k |= bit
                    g &= ~bit
            for u in access.uses:
                g |= 1 << u
        gen.append(g)
        kill.append(k)
    count = len(fn.blocks)
    live_in = gen[:]
    out = [0] * count
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for i, row_s in enumerate(successors):
        for s in row_s:
            predecessors[s].append(i)
    work = list(range(count))
    queued = [True] * count
    while work:
        i = work.pop()
        queued[i] = False
        new = 0
        for s in successors[i]:
            new |= live_in[s]
        out[i] = new
        entering = gen[i] | (new & ~kill[i])
        if entering != live_in[i]:
            live_in[i] = entering
            for p in predecessors[i]:
                if not queued[p]:
                    queued[p] = True
                    work.append(p)
    return out


def is_copy(node: Node) -> tuple[Reg, Reg] | None:
    """(destination, source) of a plain unguarded copy between registers of one file: MOV, UMOV, or PLOP3 of a predicate and true."""
    instr = node.instruction
    if instr.opcode not in _COPIES or _guarded(node) or node.relocation is not None or len(instr.operands) < 2:
        return None
    operands = instr.operands
    to, source = operands[0], operands[1]
    if instr.opcode == "PLOP3":
        if len(operands) != 7 or operands[1:2] + operands[3:] != _PREDICATE_COPY:
            return None
        source = operands[2]
    elif instr.modifiers:
        return None
    if not isinstance(to, Reg) or not isinstance(source, Reg) or to.file != source.file or source.is_zero or to.is_zero:
        return None
    plain = not (source.neg or source.absolute or source.invert or source.suffix or to.suffix)
    return (to, source) if plain else None


_COPIES = frozenset({"MOV", "UMOV", "PLOP3"})
_PREDICATE_COPY = (ALWAYS, ALWAYS, ALWAYS, Imm(0x80), Imm(0x8))
"""Operands of PLOP3.LUT beside the destination and the copied predicate: p and true and true."""
