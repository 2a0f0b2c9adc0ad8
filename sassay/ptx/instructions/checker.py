"""Holds each instruction of a module against the table. Answers are kept by mnemonic and operand signature: real kernels repeat few of them."""

from __future__ import annotations

from importlib import import_module

from sassay.ptx.ast import (
    AddressOperand,
    BracketOperand,
    FloatOperand,
    IntOperand,
    LabelOperand,
    ListOperand,
    PairOperand,
    PtxOperand,
    Register,
    RegOperand,
    SinkOperand,
    SpecialOperand,
    SymbolOperand,
    VectorOperand,
)  # fmt: skip
from sassay.ptx.instructions.entry import Entry, Problem, Row, Signature
from sassay.ptx.instructions.opcodes import CHAPTERS
from sassay.ptx.special import SPECIALS

_ENTRIES: dict[str, tuple[Entry, ...]] = {}


def entries(opcode: str) -> tuple[Entry, ...]:
    """The entries of an opcode; none for an unknown one."""
    found = _ENTRIES.get(opcode)
    if found is None:
        rows: list[Row] = []
        for chapter in CHAPTERS.get(opcode, ()):
            rows += import_module(f"sassay.ptx.instructions.{chapter}").ROWS[opcode]
        found = _ENTRIES[opcode] = tuple(Entry(row) for row in rows)
    return found


def signature(operand: PtxOperand | None) -> Signature:
    """What of an operand the table looks at."""
    kind = type(operand)
    if kind is RegOperand:
        assert isinstance(operand, RegOperand)
        text = operand.register.type
        if operand.component:
            vector = operand.register.vector > 1
            return text if vector else f"{text}.{operand.component}"
        if operand.register.vector > 1:
            text = f"{text}v{operand.register.vector}"
        return "!" + text if operand.negated else text
    if kind is IntOperand:
        return "i"
    if isinstance(operand, FloatOperand):
        return "D" if operand.double else "F"
    if isinstance(operand, AddressOperand):
        base = operand.base
        return "[" + (base.type if isinstance(base, Register) else base.space if base is not None else "")
    if isinstance(operand, VectorOperand):
        return ("{}", *map(signature, operand.elements))
    if isinstance(operand, PairOperand):
        return ("|", signature(operand.first), signature(operand.second))
    if isinstance(operand, BracketOperand):
        return ("[]", *map(signature, operand.elements))
    if isinstance(operand, ListOperand):
        return ("()",)
    if isinstance(operand, SpecialOperand):
        special = SPECIALS[operand.name]
        return f"S{special.type}" + ("v4" if special.vector and not operand.component else "")
    if isinstance(operand, SymbolOperand):
        return "&"
    if isinstance(operand, LabelOperand):
        return "L"
    assert operand is None or isinstance(operand, SinkOperand)
    return "_"


class Checker:
    """The table as seen by one module's version and target."""

    __slots__ = ("memo", "target", "version")

    def __init__(self, version: tuple[int, int], target: str) -> None:
        self.version = version
        self.target = target
        self.memo: dict[tuple[Signature, ...], str | Problem] = {}

    def check(self, opcode: str, modifiers: tuple[str, ...], operands: list[PtxOperand], word: str) -> str | Problem:
        """The name of the entry an instruction matches, or what is wrong with it."""
        key = (word, *map(signature, operands))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._look_up(opcode, modifiers, key[1:])
        return found

    def _look_up(self, opcode: str, modifiers: tuple[str, ...], operands: tuple[Signature, ...]) -> str | Problem:
        rows = entries(opcode)
        if not rows:
            return Problem(0, "unknown opcode", f"unknown instruction '{opcode}'")
        best: Problem | None = None
        for entry in rows:
            values = entry.bind(modifiers)
            problem = values if isinstance(values, Problem) else None
            if isinstance(values, dict):
                problem = entry.fit(values, operands) or entry.missing(values, self.version, self.target)
            if problem is None:
                return entry.name
            if best is None or problem.stage > best.stage:
                best = problem
        assert best is not None
        return best
