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
from sassay.sass.model import ALWAYS, R_ZERO, VIRTUAL, File, Imm, Instruction, Reg

FILES = (File.R, File.UR, File.P, File.UP, File.B)
_WIDE_READERS = frozenset({"HMMA", "IMMA", "DMMA", "QMMA", "BMMA", "OMMA"})
"""Matrix operations read their fragments over several cycles: results may not overlap sources except the accumulator itself."""


@dataclass(slots=True)
class Access:
    """Units written and read by a node. `kills`: those written whose old value nobody sees afterwards, whatever the guard says."""

    defs: tuple[int, ...]
    uses: tuple[int, ...]
    kills: tuple[int, ...]
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
            access = Access(tuple(defs), tuple(uses), () if _guarded(node) else tuple(defs))
            if node.instruction.opcode in _WIDE_READERS:
                access.apart = _apart(seen, expand)
            row.append(access)
        units.accesses.append(row)
    _settle_guarded(fn, units)
    return units


def _settle_guarded(fn: Function, units: Units) -> None:
    """Finds guarded definitions whose register's old value nobody can see, and marks them as killing it.

    That is so when, from there on in the block, every use stands under the same guard until a definition under the opposite guard or none completes
    the value; or when all uses of the register in the function are such uses. Without this such registers would be alive from the entry on.
    """
    uses = [0] * len(units.file)
    for row in units.accesses:
        for access in row:
            for u in access.uses:
                uses[u] += 1
    for block, row in zip(fn.blocks, units.accesses, strict=True):
        version: dict[int, int] = {}
        same: dict[int, tuple[int, int]] = {}  # a predicate, or the register that keeps it: whose value, of which version, it is
        open_at: dict[int, _Partial] = {}
        settled: dict[int, set[int]] = {}
        for n, (node, access) in enumerate(zip(block.nodes, row, strict=True)):
            guard = node.instruction.guard
            sense = None
            if not guard.is_zero:
                p = units.ids[guard.file, guard.index]
                sense = (*same.get(p, (p, version.get(p, 0))), guard.invert)
            for u in access.uses:
                partial = open_at.get(u)
                if partial is not None:
                    if partial.sense == sense:
                        partial.uses += 1
                    else:
                        del open_at[u]
            for d in access.defs:
                partial = open_at.get(d)
                if sense is None:
                    if partial is not None:
                        settled.setdefault(partial.at, set()).add(d)
                        del open_at[d]
                elif partial is None:
                    open_at[d] = _Partial(n, sense)
                elif partial.sense[:2] == sense[:2] and partial.sense[2] != sense[2]:
                    settled.setdefault(partial.at, set()).add(d)
                    del open_at[d]
                version[d] = version.get(d, 0) + 1
                same.pop(d, None)
            home = predicate_home(node.instruction)
            if home is not None:
                predicate, register = units.ids[File.P, home[0]], units.ids[File.R, home[1]]
                to, source = (predicate, register) if node.instruction.opcode == "ISETP" else (register, predicate)
                same[to] = same.get(source, (source, version.get(source, 0)))
        for d, partial in open_at.items():
            if partial.uses == uses[d]:
                settled.setdefault(partial.at, set()).add(d)
        for n, registers in settled.items():
            row[n].kills = tuple([d for d in row[n].defs if d in registers])


@dataclass(slots=True)
class _Partial:
    """A guarded definition that nothing has completed yet: its place, (predicate, version, inverted), and uses under that guard so far."""

    at: int
    sense: tuple[int, int, bool]
    uses: int = 0


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
            for d in access.kills:
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
    """(destination, source) of a plain copy between registers of one file, guarded or not: MOV, UMOV, or PLOP3 of a predicate and true.

    A guarded copy may become nothing, too, when both ends share a register: if the destination's old value counts under a false guard, both are
    alive at once and will not share one.
    """
    instr = node.instruction
    if instr.opcode not in _COPIES or node.relocation is not None or len(instr.operands) < 2:
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


def predicate_home(instr: Instruction) -> tuple[int, int] | None:
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
