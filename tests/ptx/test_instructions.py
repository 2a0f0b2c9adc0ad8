"""The instruction table against ptxas 13.5's recorded verdicts on one-liners, and against itself."""

from __future__ import annotations

from importlib import import_module

import pytest

from sassay.errors import ErrorList, PtxError, SassayError
from sassay.ptx.ast import Instruction
from sassay.ptx.instructions.checker import entries
from sassay.ptx.instructions.opcodes import CHAPTERS
from sassay.ptx.parser import parse
from tests.ptx.one_liners import ask_all, kind, module, rows
from tests.support.oracle import needs_ptxas

ROWS = rows()
LEGAL = [row for row in ROWS if row[2] == "ok"]
WRONG = [row for row in ROWS if row[2] != "ok"]


def verdict(row: tuple[str, str, str, str]) -> str:
    try:
        parse(module(row))
    except SassayError as error:
        return kind(str(error), True)
    return "ok"


def test_there_are_enough_lines() -> None:
    assert len(LEGAL) >= 300 and len(WRONG) >= 300
    opcodes = {word.split(".")[0] for row in LEGAL for word in row[3].replace(";", " ").split()}
    assert set(CHAPTERS) - opcodes == {"spcompress", "spdecompress"}, "no spelling of these is known that ptxas takes"


def test_legal_lines_are_accepted() -> None:
    assert [row for row in LEGAL if verdict(row) != "ok"] == []


def test_wrong_lines_are_refused_for_the_same_kind_of_reason() -> None:
    assert [(row, found) for row in WRONG if (found := verdict(row)) != row[2]] == []


@pytest.mark.slow
@needs_ptxas
def test_verdicts_are_those_of_ptxas() -> None:
    assert [(row, found) for row, found in zip(ROWS, ask_all(ROWS), strict=True) if row[2] != found] == []


def test_opcodes_name_their_chapters() -> None:
    chapters = {name for names in CHAPTERS.values() for name in names}
    found: dict[str, set[str]] = {}
    for chapter in chapters:
        for opcode in import_module(f"sassay.ptx.instructions.{chapter}").ROWS:
            found.setdefault(opcode, set()).add(chapter)
    assert {opcode: set(names) for opcode, names in CHAPTERS.items()} == found


def test_names_of_entries_are_unique() -> None:
    names = [entry.name for opcode in CHAPTERS for entry in entries(opcode)]
    assert len(names) == len(set(names))


def test_several_errors_in_one_run_each_with_its_place() -> None:
    text = ".version 9.0\n.target sm_90a\n.address_size 64\n.entry k() { .reg .b32 %r<9>; .reg .f32 %f<9>;\nadd.s32 %r1, %f1, 2;\nfoo.s32 %r1;\n"
    text += "add.s32.bogus %r1, %r2, %r3;\nadd.f32x2 %r1, %r2, %r3;\n}\n"
    with pytest.raises(ErrorList) as caught:
        parse(text, "a.ptx")
    assert [str(error) for error in caught.value.errors] == [
        "a.ptx:5:1: error: 'add.s32': operand 2: expected a register or constant of type .s32, found a .f32 register",
        "a.ptx:6:1: error: 'foo.s32': unknown instruction 'foo'",
        "a.ptx:7:1: error: 'add.s32.bogus': unknown modifier '.bogus'",
        "a.ptx:8:1: error: 'add.f32x2': operand 1: expected a register of type .f32x2, found a .b32 register",
    ]


def test_instructions_carry_the_name_of_their_entry() -> None:
    found = parse(module(("9.5", "sm_90a", "ok", "mad.wide.u32 %rd1, %r2, %r3, %rd4;"))).functions[-1].body or []
    assert [item.key for item in found if isinstance(item, Instruction)] == ["mad.wide", "ret"]


@pytest.mark.parametrize(
    ("version", "target", "chip", "message"),
    [
        ("6.3", "sm_90a", None, "target sm_90a needs PTX version 8.0 or newer"),
        ("9.0", "sm_73", None, "unknown target"),
        ("9.5", "sm_90a", "sm_100a", "cannot be compiled for sm_100a"),
        ("9.5", "sm_100", "sm_90", "older sm_90"),
        ("9.5", "sm_100f", "sm_120a", "family"),
        ("9.5", "sm_90", "sm_120a", ""),
        ("9.5", "sm_100f", "sm_103a", ""),
    ],
)
def test_targets(version: str, target: str, chip: str | None, message: str) -> None:
    text = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ ret; }}\n"
    if not message:
        assert parse(text, target=chip).target == target
        return
    with pytest.raises(PtxError, match=message):
        parse(text, target=chip)
