"""Timing mode: what the control codes promise is what a reader gets."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support import oracle
from support.emulation import SPECS, program

from sassay.emu import EmulationResult, run_program
from sassay.emu.program import Parameter, Program
from sassay.emu.timing import issue_distance, waits
from sassay.errors import EmulationError
from sassay.isa.target import target
from sassay.sass.model import Control
from sassay.sass.text import parse_control, parse_instruction
from sassay.verify.hazards import check_instructions

START = [
    "[B------:R-:W0:-:S02] S2R R0, SR_TID.X", "[B------:R-:W1:-:S02] LDC.64 R2, c[0x0][0x210]",
    "[B------:R-:W-:-:S09] ULDC.64 UR4, c[0x0][0x208]", "[B01----:R-:W-:Y:S06] IMAD.WIDE R2, R0, 0x4, R2",
]  # fmt: skip
END = ["[B------:R-:W-:-:S02] STG.E desc[UR4][R2.64], R4", "[B------:R-:W-:-:S05] EXIT"]


def run(middle: list[str], timing: bool = True) -> tuple[np.ndarray, EmulationResult]:
    code = []
    for line in [*START, *middle, *END]:
        control, text = line.split("] ", 1)
        code.append(dataclasses.replace(parse_instruction(text), control=parse_control(control + "]")))
    out = np.zeros(32, np.uint32)
    return out, run_program(Program("k", target("sm_90a"), code, [Parameter(0, 8)], 2048, 64), (1,), (32,), [out], timing=timing)


def middle(distance: int) -> list[str]:
    return [
        "[B------:R-:W-:Y:S06] MOV R5, 0x7", f"[B------:R-:W-:-:S{distance:02}] IADD3 R5, R0, 0x64, RZ",
        "[B------:R-:W-:Y:S06] LOP3.LUT R4, R5, R5, RZ, 0xc0, !PT",
    ]  # fmt: skip


def test_enough_distance() -> None:
    out, result = run(middle(4))
    np.testing.assert_array_equal(out, np.arange(32) + 100)
    assert not result.findings


@pytest.mark.parametrize("distance", (1, 2, 3))
def test_too_short_a_stall_gives_the_old_value_and_a_report(distance: int) -> None:
    out, result = run(middle(distance))
    np.testing.assert_array_equal(out, np.full(32, 7))
    assert [(f.kind, f.offset) for f in result.findings] == [("stale read", 0x60)]
    assert "R5 of k+0x50" in str(result.findings[0])
    plain, quiet = run(middle(distance), timing=False)
    np.testing.assert_array_equal(plain, np.arange(32) + 100)
    assert not quiet.findings


@pytest.mark.parametrize(("stall", "wait", "good"), ((2, "B--2---", True), (1, "B--2---", False), (15, "B------", False), (2, "B---3--", False)))
def test_scoreboards(stall: int, wait: str, good: bool) -> None:
    out, result = run([
        "[B------:R-:W-:Y:S06] MOV R4, 0x7", f"[B------:R-:W2:Y:S{stall:02}] POPC R4, R0", f"[{wait}:R-:W-:Y:S06] IADD3 R4, R4, 0x1, RZ",
    ])  # fmt: skip
    expected = np.array([lane.bit_count() for lane in range(32)]) + 1 if good else np.full(32, 8)
    np.testing.assert_array_equal(out, expected)
    assert bool(result.findings) is not good


def test_lanes_that_did_not_write_read_nothing_stale() -> None:
    _, result = run([
        "[B------:R-:W-:Y:S06] MOV R4, 0x7", "[B------:R-:W-:Y:S13] ISETP.LT.AND P0, PT, R0, 0x10, PT",
        "[B------:R-:W-:-:S01] @P0 IADD3 R4, R0, 0x1, RZ", "[B------:R-:W-:Y:S06] @!P0 IADD3 R4, R4, 0x2, RZ",
    ])  # fmt: skip
    assert not result.findings


def test_reading_of_control_codes() -> None:
    assert [issue_distance(Control(stall=s, yield_=y)) for s, y in ((5, True), (0, True), (12, False), (11, False), (13, True))] == [5, 2, 1, 11, 13]
    instr = dataclasses.replace(parse_instruction("DEPBAR.LE SB0, 0x1, {4,3}"), control=Control(wait=0b100))
    assert waits(instr) == ([2, 4, 3], (0, 1))


def launch(code: Program, name: str) -> EmulationResult:
    case = SPECS[name].make(np.random.default_rng(1))
    return run_program(code, case.grid, case.block, case.args, shared_bytes=case.shared_bytes, timing=True, sanitize=False, max_steps=200_000)


def stale(code: Program, name: str) -> bool:
    """Whether a launch reports a stale read; one that comes down tells of it in its notes."""
    try:
        return any(f.kind == "stale read" for f in launch(code, name).findings)
    except EmulationError as error:
        return any("stale read" in note for note in getattr(error, "__notes__", []))


MUTATED = ("vector_add", "saxpy", "block_reduce", "row_softmax", "layer_norm", "matmul_tiled", "hash64", "scan", "big_add", "dot_f64")


@pytest.mark.slow
@oracle.needs("ptxas", "nvdisasm")
def test_damaged_control_codes_are_reported() -> None:
    """Mutants of vendor code, a stall cut to 1 or a wait dropped: of those where the static checker sees a read come too early in code that
    the launch executes, 95 % are reported."""
    rng = np.random.default_rng(0)
    made = caught = 0
    for name in MUTATED:
        code = program(oracle.ptxas(SPECS[name].ptx, "sm_90a"), name)
        clean = launch(code, name)
        assert not clean.findings
        good = code.instructions
        for index in rng.permutation(len(good))[:20]:
            control = good[index].control
            damaged = dataclasses.replace(control, wait=0) if control.wait else dataclasses.replace(control, stall=1)
            code.instructions = [*good[:index], dataclasses.replace(good[index], control=damaged), *good[index + 1 :]]
            found = [f for f in check_instructions(code.instructions, code.target) if f.kind == "raw" and f.severity == "error"]
            if any(f.offset in clean.by_offset and f.producer_offset in clean.by_offset for f in found):
                made += 1
                caught += stale(code, name)
        code.instructions = good
    assert made >= 40 and caught >= 0.95 * made, (caught, made)
    print(f"{caught} of {made} damaged control codes reported")
