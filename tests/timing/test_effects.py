"""Effects against nvdisasm's own account of registers, and the cases that account leaves out."""

from __future__ import annotations

import random

import pytest
from support import oracle

from sassay.errors import SassError
from sassay.sass.effects import destinations, effects
from sassay.sass.model import VIRTUAL, File, Instruction, Reg
from sassay.sass.text import format_instruction, parse_instruction
from timing import plr

FILES = (File.R, File.UR, File.P, File.UP)
PACKED = {"P2R", "R2P"}
"""nvdisasm leaves the predicates behind PR out."""
CALLS = {"CALL", "RET"}
"""Marked with what the callee touches."""
CHIPS = ("sm_90a", "sm_100a", "sm_120a")


def flat(accesses: tuple[tuple[File, int, int], ...]) -> set[tuple[File, int]]:
    return {(file, first + i) for file, first, width in accesses if file in FILES for i in range(width)}


def disagreement(instr: Instruction, written: plr.Registers, read: plr.Registers) -> str:
    ours = effects(instr)
    if instr.opcode in PACKED:
        written, read = (written | {r for r in flat(ours.defs) if r[0] == File.P}), (read | {r for r in flat(ours.uses) if r[0] == File.P})
    if instr.opcode == "LDGSTS":  # its predicate is marked as written too; compiled code goes on using it
        written = {r for r in written if r[0] != File.P}
    if flat(ours.defs) == written and flat(ours.uses) == read:
        return ""
    return f"{format_instruction(instr)}: defs {ours.defs} not {sorted(written)}, uses {ours.uses} not {sorted(read)}"


def corpus_files(count: int, seed: int) -> list[tuple[str, str]]:
    root = oracle.corpus()
    if root is None:
        pytest.skip("no corpus")
    files = sorted(p for p in root.glob("*/*.ptx") if p.stat().st_size < 60_000 and ".sm_90." in p.name)
    return [(p.read_text(), p.name) for p in random.Random(seed).sample(files, min(count, len(files)))]


def compare(count: int, seed: int) -> tuple[int, list[str]]:
    total, bad = 0, []
    for text, _ in corpus_files(count, seed):
        for chip in CHIPS:
            for instr, written, read in plr.listing(oracle.ptxas(text, chip)):
                if instr.opcode in CALLS:
                    continue
                total += 1
                line = disagreement(instr, written, read)
                if line:
                    bad.append(line)
    return total, bad


@oracle.needs_tools
def test_agrees_with_nvdisasm() -> None:
    total, bad = compare(2, seed=11)
    assert total > 500
    assert not bad


@oracle.needs_tools
@pytest.mark.slow
def test_agrees_with_nvdisasm_widely() -> None:
    total, bad = compare(60, seed=12)
    assert total > 20_000
    assert not bad


@pytest.mark.parametrize(
    ("text", "defs", "uses"),
    [
        ("IADD3 R4, P0, P1, R6, R7, R8", {"R4", "P0", "P1"}, {"R6", "R7", "R8"}),
        ("IADD3.X R4, PT, PT, R6, R7, R8, P0, !PT", {"R4"}, {"R6", "R7", "R8", "P0"}),
        ("@!P2 IMAD.WIDE.U32 R2, R7, 0x4, R8", {"R2", "R3"}, {"R7", "R8", "R9", "P2"}),
        ("LDG.E.128 R4, desc[UR4][R2.64+UR8]", {"R4", "R5", "R6", "R7"}, {"R2", "R3", "UR4", "UR5", "UR8"}),
        ("STS.64 [R2+UR4+0x8], R6", set(), {"R2", "UR4", "R6", "R7"}),
        ("ATOMG.E.CAS.64.STRONG.GPU PT, R4, [R2], R6, R8", {"R4", "R5"}, {"R2", "R3", "R6", "R7", "R8", "R9"}),
        ("LDGSTS.E.128 [R3], desc[UR4][R8.64]", set(), {"R3", "R8", "R9", "UR4", "UR5"}),
        ("SHFL.IDX P1, R3, R2, R5, 0x1f", {"P1", "R3"}, {"R2", "R5"}),
        ("HMMA.16816.F32 R4, R8, R12, R4", {f"R{i}" for i in range(4, 8)}, {f"R{i}" for i in (*range(8, 14), *range(4, 8))}),
        ("IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4", {f"R{i}" for i in range(4, 8)}, {f"R{i}" for i in (*range(8, 14), *range(4, 8))}),
        ("DFMA R4, R6, R8, R10", {"R4", "R5"}, {f"R{i}" for i in range(6, 12)}),
        ("CS2R R4, SRZ", {"R4", "R5"}, set()),
        ("R2P PR, R5, 0x3", {"P0", "P1"}, {"R5"}),
        ("P2R R5, PR, RZ, 0x60", {"R5"}, {"P5", "P6"}),
        ("BSSY.RECONVERGENT B0, 0x40", {"B0"}, set()),
        ("DEPBAR.LE SB0, 0x1", set(), {"SB0"}),
        ("VOTE.ANY R4, PT, P0", {"R4"}, {"P0"}),
        ("FFMA2 R4, R6.F32x2.HI_LO, R8.F32, R10.F32x2.HI_LO", {"R4", "R5"}, {"R6", "R7", "R8", "R10", "R11"}),
        ("F2F.F64.F32 R4, R6", {"R4", "R5"}, {"R6"}),
        ("LDSM.16.M88.4 R4, [R8]", {f"R{i}" for i in range(4, 8)}, {"R8"}),
    ],
)
def test_widths(text: str, defs: set[str], uses: set[str]) -> None:
    found = effects(parse_instruction(text))
    assert {f"{f.name}{first + i}" for f, first, w in found.defs for i in range(w)} == defs
    assert {f"{f.name}{first + i}" for f, first, w in found.uses for i in range(w)} == uses


def test_virtual_registers_and_positions() -> None:
    r = [Reg(File.R, VIRTUAL + i) for i in range(4)]
    found = effects(Instruction("IMAD", ("WIDE",), (r[0], r[2], r[3], Reg(File.R, 255)), guard=Reg(File.P, VIRTUAL)))
    assert found.defs == ((File.R, VIRTUAL, 2),)
    assert found.uses == ((File.R, VIRTUAL + 2, 1), (File.R, VIRTUAL + 3, 1), (File.P, VIRTUAL, 1))
    assert found.def_positions == (0,)
    assert found.use_positions == (1, 2, -1)


def test_destinations() -> None:
    assert destinations(parse_instruction("LOP3.LUT P0, R2, R3, R4, R5, 0xc0, !PT")) == (0, 1)
    assert destinations(parse_instruction("STG.E desc[UR4][R2.64], R4")) == ()
    assert destinations(parse_instruction("ISETP.NE.AND P0, P1, R3, RZ, PT")) == (0, 1)


def test_unknown_operation_is_an_error() -> None:
    with pytest.raises(SassError, match="FROB"):
        effects(Instruction("FROB"))
    with pytest.raises(SassError, match="FADD"):
        effects(parse_instruction("FADD P0, R2, R3"))
