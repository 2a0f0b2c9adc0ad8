"""Latencies as data: least issue distances between two instructions, by class of operation, register file and role.

Distances are in issue cycles: a producer at cycle t and a consumer at t + n with n below the figure reads (or overwrites) too early. Each
figure has two readings: `schedule`, the least that a schedule may use, and `accuse`, below which a checker calls it wrong (at most the
smallest distance seen in vendor code). The data files name the sources. A figure that is not in them is an error, never a guess.

Roles of a use: `guard`; `address` (registers of a memory operand, descriptors); `bank` (index or handle of a constant); `addend` and
`addend_hi` (third operand of IMAD.WIDE and IMAD.HI, low and high half); `operand` otherwise. Roles of a definition: `""`, and for IMAD.WIDE's pair
`lo` and `hi`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from sassay.errors import SassError, UnsupportedError
from sassay.isa.target import Target
from sassay.isa.timing.classes import Classifier, load

CHIPS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")
"""Chips with timing data."""
FILES = ("R", "UR", "P", "UP", "B", "SB")
"""Names of the register files, by the number that the SASS model gives them."""


class Operation(Protocol):
    """What timing needs of an instruction."""

    @property
    def opcode(self) -> str: ...

    @property
    def modifiers(self) -> tuple[str, ...]: ...

    @property
    def operands(self) -> tuple[object, ...]: ...


@dataclass(frozen=True, slots=True)
class TimingClass:
    """A class of operations on one chip.

    `write_sb`: results come after an unknown time and need a write scoreboard. `read_sb`: sources are read late, so that overwriting them
    needs a read scoreboard (or waiting for the write one). `ordered_writes`, `ordered_reads`: number of the group in which results come
    back (sources are read) in issue order, or -1. `latency` is typical, for priorities; `issue` is the pipe's interval in cycles.
    """

    name: str
    index: int
    pipe: str
    issue: int
    latency: int
    write_sb: bool
    read_sb: bool
    group_sb: bool
    min_stall: int
    ordered_writes: int
    ordered_reads: int


Cell = tuple[int, int]
Row = dict[tuple[str, str], Cell]


def _parse_row(text: str, sets: dict[str, list[str]], where: str) -> Row:
    """`alu=4 xu:guard=13/8 queued=5` as a map (class, role) -> (schedule, accuse)."""
    row: Row = {}
    for item in text.split():
        consumer, _, figure = item.partition("=")
        name, _, role = consumer.partition(":")
        schedule, _, accuse = figure.partition("/")
        if not schedule.isdigit():
            raise SassError(f"{where}: bad figure '{item}'")
        cell = (int(schedule), int(accuse or schedule))
        for member in sets.get(name, [name]):
            row[member, role] = cell
    return row


class TimingModel:
    """All figures of one chip. Get it from `model(target)`."""

    def __init__(self, chip: str) -> None:
        data = load(f"{chip}.toml")
        self.chip = chip
        sets = {name: words.split() for name, words in _strings(data, "sets").items()}
        self.classifier = Classifier(_strings(data, "moved"))
        order = data["order"]
        assert isinstance(order, dict)
        self.classes = _classes(data, order["writes"], order["reads"])
        self._tables = {
            kind: {file: {p: _parse_row(t, sets, f"{chip} {kind}.{file}") for p, t in rows.items()} for file, rows in _tables(data, kind).items()}
            for kind in ("raw", "war", "waw")
        }
        self.longest = max(cell[0] for table in self._tables.values() for rows in table.values() for row in rows.values() for cell in row.values())
        """The largest distance of any pair: accesses longer ago than that matter no more."""
        self._by_shape: dict[tuple[str, tuple[str, ...]], TimingClass] = {}
        self._cells: dict[tuple[str, str, str, int, str], Cell] = {}

    def classify(self, instr: Operation) -> TimingClass:
        """The class of an instruction; SassError for an operation without one."""
        key = (instr.opcode, instr.modifiers)
        found = self._by_shape.get(key)
        if found is None:
            name = self.classifier.name(*key)
            if name not in self.classes:
                raise SassError(f"{self.chip}: no timing data for class '{name}' ({'.'.join((instr.opcode, *instr.modifiers))})")
            found = self._by_shape[key] = self.classes[name]
        return found

    def role(self, instr: Operation, position: int) -> str:
        """The role of the use at an operand position (-1: the guard). The scheduler's reading: one role for both halves of a pair."""
        if position < 0:
            return "guard"
        kind = type(instr.operands[position]).__name__
        if kind == "Mem":
            return "address"
        if kind == "Const":
            return "bank"
        if instr.opcode == "IMAD" and position >= 3 and position == _last_register(instr.operands) and {"WIDE", "HI"} & set(instr.modifiers):
            return "addend"
        return "operand"

    def cell(self, kind: str, producer: str, consumer: str, file: int, role: str) -> Cell:
        """(schedule, accuse) figure of a pair of class names; `producer` may end in .lo or .hi."""
        key = (kind, producer, consumer, file, role)
        found = self._cells.get(key)
        if found is None:
            found = self._cells[key] = self._look_up(kind, producer, consumer, file, role)
        return found

    def _look_up(self, kind: str, producer: str, consumer: str, file: int, role: str) -> Cell:
        rows = self._tables[kind].get(FILES[file], {})
        base = producer.partition(".")[0]
        names: Sequence[str] = [n for n in (producer, base) if n in rows] or ["any"]
        if producer == base and base not in rows and f"{base}.lo" in rows:
            names = [f"{base}.lo", f"{base}.hi"]
            cells = [self._look_up(kind, n, consumer, file, role) for n in names]
            return max(c[0] for c in cells), min(c[1] for c in cells)
        for name in (*names, "any"):
            row = rows.get(name, {})
            wanted = [(consumer, role)] if role == "guard" and kind == "raw" else [(consumer, role), (consumer, "")]
            for key in wanted:
                if key in row:
                    return row[key]
        raise SassError(f"{self.chip}: no {kind} figure for {producer} -> {consumer} ({FILES[file]}, {role or 'result'})")

    def largest(self, kind: str, producer: str, file: int) -> int:
        """The largest accusing figure of a producer in a file over all its consumers and parts; 0 if it has none there."""
        rows = self._tables[kind].get(FILES[file], {})
        named = [row for name, row in rows.items() if name.partition(".")[0] == producer] or [rows.get("any", {})]
        return max((cell[1] for row in named for cell in row.values()), default=0)

    def raw(self, producer: TimingClass, consumer: TimingClass, file: int, role: str = "operand", part: str = "") -> int:
        """Least distance from a fixed-latency write to a read of it."""
        return self.cell("raw", f"{producer.name}.{part}" if part else producer.name, consumer.name, file, role)[0]

    def war(self, reader: TimingClass, writer: TimingClass, file: int) -> int:
        """Least distance from a read (not late) to a write of the register."""
        return self.cell("war", reader.name, writer.name, file, "")[0]

    def waw(self, first: TimingClass, second: TimingClass, file: int) -> int:
        """Least distance from a fixed-latency write to another write of the register."""
        return self.cell("waw", first.name, second.name, file, "")[0]

    def needs_write_barrier(self, instr: Operation) -> bool:
        """Whether results of the instruction must be waited for by a scoreboard."""
        return self.classify(instr).write_sb

    def needs_read_barrier(self, instr: Operation) -> bool:
        """Whether sources of the instruction are read late."""
        return self.classify(instr).read_sb

    def min_stall(self, instr: Operation) -> int:
        """Least stall the instruction may carry whatever follows."""
        return self.classify(instr).min_stall


SB_VISIBLE = 2
"""Least distance from the instruction that takes a scoreboard to one that waits for it: the count rises one cycle after issue.
Source: silicon (Huerta et al., MICRO 2025) and the smallest distance in ptxas output on all four chips."""


def _last_register(operands: tuple[object, ...]) -> int:
    """Position of the addend among IMAD's operands: the last operand that is no trailing predicate."""
    last = len(operands) - 1
    while last > 0 and getattr(operands[last], "file", None) in (2, 3):
        last -= 1
    return last


def _strings(data: dict[str, object], name: str) -> dict[str, str]:
    table = data.get(name, {})
    assert isinstance(table, dict)
    return {str(k): str(v) for k, v in table.items()}


def _tables(data: dict[str, object], kind: str) -> dict[str, dict[str, str]]:
    table = data[kind]
    assert isinstance(table, dict)
    return {str(file): {str(p): str(t) for p, t in rows.items()} for file, rows in table.items()}


def _classes(data: dict[str, object], writes: list[list[str]], reads: list[list[str]]) -> dict[str, TimingClass]:
    stalls = data["stall"]
    assert isinstance(stalls, dict)
    order_w = {name: i for i, group in enumerate(writes) for name in group}
    order_r = {name: i for i, group in enumerate(reads) for name in group}
    out = {}
    for index, (name, words) in enumerate(_strings(data, "classes").items()):
        pipe, issue, latency, *flags = words.split()
        flag = "".join(flags)
        out[name] = TimingClass(
            name, index, pipe, int(issue), int(latency), "w" in flag, "r" in flag, "g" in flag, int(stalls.get(name, 1)),
            order_w.get(name, -1), order_r.get(name, -1),
        )  # fmt: skip
    return out


@cache
def _model(chip: str) -> TimingModel:
    return TimingModel(chip)


def model(target: Target | str) -> TimingModel:
    """The figures of a target's chip; UnsupportedError for a chip without data."""
    chip = target if isinstance(target, str) else target.chip
    if chip not in CHIPS:
        raise UnsupportedError(f"no timing data for '{chip}'; known: {', '.join(CHIPS)}")
    return _model(chip)
