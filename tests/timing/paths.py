"""A second, plain look at control codes: random walks through a function, every access checked on the way. Slow, and blind to paths not walked.

It shares the figures and the effects with the checker, and none of its data flow: here a walk has one history, and scoreboards are sets.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from sassay.isa.timing import SB_VISIBLE, TimingModel, model
from sassay.sass.cfg import JUMPS, LEAVES, is_conditional
from sassay.sass.effects import effects
from sassay.sass.model import PT, File, Imm, Instruction, Name, Reg, Target


@dataclass(eq=False)
class Op:
    """An instruction issued on the walk. `boards_*`: scoreboards, with their sequence number, that show its writes (reads) finished."""

    index: int
    instr: Instruction
    time: int
    written: bool = False
    read: bool = False
    parts: dict[tuple[File, int], str] = field(default_factory=dict)


def walk(code: Sequence[Instruction], chip: str, rng: random.Random, steps: int = 4000) -> set[tuple[str, int, int]]:
    """(kind, producer, consumer) of the hazards met on one random walk."""
    timing = model(chip)
    found: set[tuple[str, int, int]] = set()
    writers: dict[tuple[File, int], list[Op]] = {}
    readers: dict[tuple[File, int], list[Op]] = {}
    boards: list[list[tuple[int, list[tuple[Op, str]]]]] = [[] for _ in range(7)]
    history: list[Op] = []
    calls: list[int] = []
    now = at = 0
    for _ in range(steps):
        if at >= len(code):
            break
        instr = code[at]
        _wait(instr, boards, now)
        if not (instr.guard.index == PT and instr.guard.invert):
            op = Op(at, instr, now)
            _access(op, timing, writers, readers, found)
            history.append(op)
            _raise(op, timing, history, boards)
        stall = instr.control.stall
        if stall == 0 and instr.control.yield_:  # drains
            writers, readers, boards, history = {}, {}, [[] for _ in range(7)], []
        now += stall if stall > 1 else 2 if instr.control.yield_ else 1
        following = _next(code, at, calls, rng)
        if following is None:
            break
        at = following
    return found


def _wait(instr: Instruction, boards: list[list[tuple[int, list[tuple[Op, str]]]]], now: int) -> None:
    for board in range(7):
        keep = None
        if board < 6 and instr.control.wait >> board & 1:
            keep = 0
        if instr.opcode == "DEPBAR":
            named = [o.index for o in instr.operands if isinstance(o, Reg) and o.file == File.SB]
            count = [o.value for o in instr.operands if isinstance(o, Imm)]
            extra = [o.text for o in instr.operands if isinstance(o, Name) and o.text.startswith("{")]
            if board in named:
                keep = count[0] if count else 0
            if any(str(board) in text for text in extra):
                keep = 0
        if instr.opcode == "WARPGROUP" and "DEPBAR" in instr.modifiers and board == 6:
            keep = next(o.value for o in instr.operands if isinstance(o, Imm))
        if keep is None:
            continue
        rows = boards[board]
        for time, shown in rows[: len(rows) - keep]:
            if time <= now - SB_VISIBLE:
                for op, what in shown:
                    setattr(op, what, True)


def _exclusive(a: Op, b: Op) -> bool:
    return a.instr.guard.file == b.instr.guard.file and a.instr.guard.index == b.instr.guard.index and a.instr.guard.invert != b.instr.guard.invert


def _access(
    op: Op,
    timing: TimingModel,
    writers: dict[tuple[File, int], list[Op]],
    readers: dict[tuple[File, int], list[Op]],
    found: set[tuple[str, int, int]],
) -> None:
    cls = timing.classify(op.instr)
    seen = effects(op.instr)
    for (file, first, width), position in zip(seen.uses, seen.use_positions, strict=True):
        role = timing.role(op.instr, position)
        for part in range(width):
            for other in writers.get((file, first + part), []):
                if _exclusive(other, op):
                    continue
                theirs = timing.classify(other.instr)
                if theirs.write_sb or theirs.group_sb:
                    if not other.written and not (theirs.group_sb and cls.group_sb):
                        found.add(("raw", other.index, op.index))
                else:
                    name = theirs.name + other.parts[file, first + part]
                    use = "addend_hi" if role == "addend" and part else role
                    if op.time - other.time < timing.cell("raw", name, cls.name, file, use)[1]:
                        found.add(("raw", other.index, op.index))
    for file, first, width in seen.defs:
        for part in range(width):
            key = (file, first + part)
            op.parts[key] = (".hi" if part else ".lo") if cls.name == "wide" and file == File.R else ""
            for other in writers.get(key, []):
                theirs = timing.classify(other.instr)
                same = theirs.ordered_writes >= 0 and theirs.ordered_writes == cls.ordered_writes
                if (theirs.write_sb or theirs.group_sb) and not other.written and not same and not (theirs.group_sb and cls.group_sb):
                    if not _exclusive(other, op):
                        found.add(("waw", other.index, op.index))
            for other in readers.get(key, []):
                theirs = timing.classify(other.instr)
                same = theirs.ordered_reads >= 0 and theirs.ordered_reads == cls.ordered_reads
                if not other.read and not same and not _exclusive(other, op) and not (theirs.group_sb and cls.group_sb):
                    found.add(("war", other.index, op.index))
            writers[key] = [op] if op.instr.guard.is_zero else [*writers.get(key, [])[-3:], op]
            if op.instr.guard.is_zero:
                readers.pop(key, None)
        for file_, number in [(file, first)] if file in (File.P, File.UP) else []:
            _forget(file_, number, writers, readers)
    if cls.read_sb or cls.group_sb:
        for file, first, width in seen.uses:
            if file == File.R:
                for part in range(width):
                    readers.setdefault((file, first + part), []).append(op)


def _forget(file: File, number: int, writers: dict[tuple[File, int], list[Op]], readers: dict[tuple[File, int], list[Op]]) -> None:
    """A predicate got a new value: what it guarded before counts as unguarded, like the checker has it."""
    for table in (writers, readers):
        for ops in table.values():
            for op in ops:
                if op.instr.guard.file == file and op.instr.guard.index == number:
                    op.instr = Instruction(op.instr.opcode, op.instr.modifiers, op.instr.operands, control=op.instr.control)


def _raise(op: Op, timing: TimingModel, history: list[Op], boards: list[list[tuple[int, list[tuple[Op, str]]]]]) -> None:
    cls = timing.classify(op.instr)
    names_group = any(isinstance(o, Name) and o.text.startswith("gsb") for o in op.instr.operands)
    write = 6 if cls.group_sb and names_group else op.instr.control.write
    shown_w: list[tuple[Op, str]] = [(op, "written"), (op, "read")]
    shown_r: list[tuple[Op, str]] = [(op, "read")]
    for other in history[-400:-1]:
        theirs = timing.classify(other.instr)
        if cls.group_sb and theirs.group_sb:
            shown_w += [(other, "written"), (other, "read")]
        if theirs.ordered_writes >= 0 and theirs.ordered_writes == cls.ordered_writes:
            shown_w.append((other, "written"))
        if theirs.ordered_reads >= 0 and theirs.ordered_reads == cls.ordered_reads:
            shown_w.append((other, "read"))
            shown_r.append((other, "read"))
    if write is not None:
        boards[write].append((op.time, shown_w))
    if op.instr.control.read is not None:
        boards[op.instr.control.read].append((op.time, shown_r))


def _next(code: Sequence[Instruction], at: int, calls: list[int], rng: random.Random) -> int | None:
    instr = code[at]
    target = next((o.to for o in instr.operands if isinstance(o, Target) and isinstance(o.to, int)), None)
    falls = is_conditional(instr)
    if instr.opcode == "CALL" and target is not None and "REL" in instr.modifiers:
        calls.append(at + 1)
        return target // 16
    if instr.opcode == "RET" and calls and not (falls and rng.random() < 0.5):
        return calls.pop()
    if instr.opcode in JUMPS:
        if falls and rng.random() < 0.5:
            return at + 1
        return None if target is None else target // 16
    if instr.opcode in LEAVES:
        return at + 1 if falls and rng.random() < 0.8 else None
    return at + 1


def hazards(code: Sequence[Instruction], chip: str, walks: int, seed: int = 0) -> set[tuple[str, int, int]]:
    """Hazards met on a number of walks."""
    rng = random.Random(seed)
    out: set[tuple[str, int, int]] = set()
    for _ in range(walks):
        out |= walk(code, chip, rng)
    return out
