"""What the hazard checker needs of each instruction, worked out once: registers by number, roles, timing class, scoreboards.

Registers are numbered `file * 512 + index`. An instruction guarded by !PT never runs: it has time and scoreboards but touches no register.
"""

from __future__ import annotations

from dataclasses import dataclass

from sassay.isa.timing import TimingClass, TimingModel
from sassay.sass.cfg import ENDS
from sassay.sass.effects import effects
from sassay.sass.model import PT, Const, Control, File, Imm, Instruction, Mem, Name, Reg

STRIDE = 512
"""Register numbers of one file."""
GROUP_SB = 6
"""Number of the scoreboard that warpgroup MMAs use (gsb0), beside the six of the control bits."""
_LAST_WITH_YIELD_OFF = 11


@dataclass(slots=True)
class Touch:
    """What an instruction does apart from its control bits. `uses` are (register, role), `defs` (register, part)."""

    opcode: str
    mnemonic: str
    cls: TimingClass
    uses: tuple[tuple[int, str], ...]
    defs: tuple[tuple[int, str], ...]
    late: tuple[int, ...]
    """Registers read late (R file only)."""
    watched: tuple[int, ...]
    """Registers read at a known time that some later write must still keep a distance from."""
    guard: int
    """Register number of the guard times two, plus one if inverted; -1 without a guard."""
    group_write: bool
    """Whether it raises the warpgroup scoreboard."""
    wait: int
    """Scoreboards waited for by the operation itself (DEPBAR)."""
    partial: tuple[int, int] | None
    """(scoreboard, count) of a DEPBAR.LE that leaves some outstanding."""
    predicates: tuple[int, ...]
    """Predicate registers written."""
    transfers: bool
    """Whether it is a control transfer, whose target depends on its place."""


class Fact:
    """One instruction at its place: its touch, flattened, with its control bits."""

    __slots__ = (
        "cls", "cost", "defs", "drains", "guard", "index", "late", "leaves", "partial", "predicates", "read", "touch", "uses", "wait", "watched",
        "write",
    )  # fmt: skip

    def __init__(self, index: int, touch: Touch, control: Control) -> None:
        self.index = index
        self.touch = touch
        self.cls = touch.cls
        self.uses = touch.uses
        self.defs = touch.defs
        self.late = touch.late
        self.watched = touch.watched
        self.guard = touch.guard
        self.partial = touch.partial
        self.predicates = touch.predicates
        self.wait = control.wait | touch.wait
        self.write = GROUP_SB if touch.group_write else -1 if control.write is None else control.write
        self.read = -1 if control.read is None else control.read
        self.cost = issue_cost(control)
        """Cycles until the next instruction may issue."""
        self.drains = control.stall == 0 and control.yield_
        """Whether the next instruction waits until all before it is done: ptxas -O0 puts this code on everything and no scoreboards."""
        self.leaves = bool(touch.defs or touch.late or touch.watched or self.write >= 0 or self.read >= 0)
        """Whether anything is pending after it."""


def register_name(number: int) -> str:
    """`R4`, `UP2`, ... of a register number."""
    return f"{File(number // STRIDE).name}{number % STRIDE}"


def issue_cost(control: Control) -> int:
    """Cycles to the next issue of the warp: the stall; with yield and a stall of at most 1 at least 2 (silicon, Huerta et al.)."""
    if control.stall > 1:
        if not control.yield_ and control.stall > _LAST_WITH_YIELD_OFF:
            return 1  # such codes hold the warp 1 or 2 cycles only (silicon)
        return control.stall
    return 2 if control.yield_ else 1


class FactMaker:
    """What instructions touch, on one chip."""

    def __init__(self, timing: TimingModel) -> None:
        self.timing = timing
        self._watch: dict[tuple[int, int], bool] = {}

    def touch(self, instr: Instruction) -> Touch:
        """What one instruction touches. SassError where its effects or its timing class are not known."""
        cls = self.timing.classify(instr)
        wait, partial = _waits(instr)
        guard = instr.guard
        never = guard.index == PT and guard.invert
        uses: list[tuple[int, str]] = []
        defs: list[tuple[int, str]] = []
        late: list[int] = []
        watched: list[int] = []
        if not never:
            self._registers(instr, cls, uses, defs, late, watched)
        key = -1 if guard.is_zero else (int(guard.file) * STRIDE + guard.index) * 2 + guard.invert
        predicates = tuple([r for r, _ in defs if r // STRIDE in (2, 3)])
        return Touch(
            instr.opcode, instr.mnemonic, cls, tuple(uses), tuple(defs), tuple(late), tuple(watched), key, cls.group_sb and _names_group(instr),
            wait, partial, predicates, instr.opcode in ENDS,
        )  # fmt: skip

    def _registers(
        self, instr: Instruction, cls: TimingClass, uses: list[tuple[int, str]], defs: list[tuple[int, str]], late: list[int], watched: list[int]
    ) -> None:
        found = effects(instr)
        for (file, first, width), position in zip(found.uses, found.use_positions, strict=True):
            if file == File.SB:
                continue
            role = self._role(instr, position)
            base = int(file) * STRIDE + first
            for part in range(width):
                uses.append((base + part, "addend_hi" if role == "addend" and part else role))
            if cls.read_sb or cls.group_sb:
                if file == File.R:
                    late.extend(range(base, base + width))
            elif self._is_watched(cls, int(file)):
                watched.extend(range(base, base + width))
        split = cls.name == "wide"
        for file, first, width in found.defs:
            base = int(file) * STRIDE + first
            for part in range(width):
                defs.append((base + part, ("hi" if part else "lo") if split and file == File.R else ""))

    def _role(self, instr: Instruction, position: int) -> str:
        if position < 0:
            return "guard"
        operand = instr.operands[position]
        if isinstance(operand, Mem):
            return "address"
        if isinstance(operand, Const):
            return "bank"
        return self.timing.role(instr, position) if instr.opcode == "IMAD" else "operand"

    def _is_watched(self, cls: TimingClass, file: int) -> bool:
        key = (cls.index, file)
        known = self._watch.get(key)
        if known is None:
            known = self._watch[key] = file != int(File.B) and self.timing.largest("war", cls.name, file) > 1
        return known


def _names_group(instr: Instruction) -> bool:
    return any(isinstance(o, Name) and o.text.startswith("gsb") for o in instr.operands)


def _waits(instr: Instruction) -> tuple[int, tuple[int, int] | None]:
    """(mask of scoreboards the operation waits for until empty, partial wait)."""
    wait = 0
    if instr.opcode == "DEPBAR":
        for operand in instr.operands:
            if isinstance(operand, Name) and operand.text.startswith("{"):
                for number in operand.text.strip("{}").split(","):
                    wait |= 1 << int(number)
        board = next((o.index for o in instr.operands if isinstance(o, Reg) and o.file == File.SB), None)
        count = next((o.value for o in instr.operands if isinstance(o, Imm)), 0)
        if board is not None:
            if count:
                return wait, (board, count)
            wait |= 1 << board
    elif instr.opcode == "WARPGROUP" and "DEPBAR" in instr.modifiers:
        count = next((o.value for o in instr.operands if isinstance(o, Imm)), 0)
        if count:
            return wait, (GROUP_SB, count)
        wait |= 1 << GROUP_SB
    return wait, None
