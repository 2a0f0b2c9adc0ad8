"""The machine on hand-written code: faults, deadlocks, hangs, divergence, barriers, findings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sassay.emu import EmulationResult, run_program
from sassay.emu.program import Parameter, Program
from sassay.errors import EmulationError
from sassay.isa.target import target
from sassay.sass.model import Control, Instruction
from sassay.sass.text import parse_instruction

TID = "S2R R0, SR_TID.X"
STORE = ["LDC.64 R2, c[0x0][0x210]", "ULDC.64 UR4, c[0x0][0x208]", "IMAD.WIDE R2, R0, 0x4, R2", "STG.E desc[UR4][R2.64], R4", "EXIT"]


def program(lines: list[str], shared: int = 2048) -> Program:
    code: list[Instruction] = [parse_instruction(line) for line in lines]
    return Program("k", target("sm_90a"), [i if i.control else Instruction(i.opcode, control=Control()) for i in code],
                   [Parameter(0, 8)], shared, 256)  # fmt: skip


def run(lines: list[str], threads: int = 32, size: int | None = None, **options: Any) -> tuple[np.ndarray, EmulationResult]:
    out = np.zeros(threads if size is None else size, np.uint32)
    result = run_program(program(lines), (1,), (threads,), [out], **options)
    return out, result


def test_store_of_thread_number() -> None:
    out, result = run([TID, "IMAD R4, R0, 0x3, RZ", *STORE], 96)
    np.testing.assert_array_equal(out, 3 * np.arange(96))
    assert result.thread_instructions == 7 * 96 and result.warp_instructions == 7 * 3
    assert not result.findings


def test_out_of_bounds_names_kernel_offset_and_thread() -> None:
    with pytest.raises(EmulationError) as caught:
        run([TID, "MOV R4, R0", *STORE], 64, size=40)
    text = str(caught.value)
    assert "k+0x50" in text and "thread (40, 0, 0)" in text and "out of bounds" in text


def test_misaligned() -> None:
    lines = [TID, "MOV R4, R0", *STORE]
    lines[4] = "IMAD.WIDE R2, R0, 0x2, R2"
    with pytest.raises(EmulationError, match=r"misaligned global access.*thread \(1, 0, 0\)"):
        run(lines)


def test_barrier_deadlock() -> None:
    lines = [TID, "ISETP.GE.U32.AND P0, PT, R0, 0x20, PT", "@P0 BRA 0x40", "BAR.SYNC.DEFER_BLOCKING 0x0, 0x40", "EXIT"]
    with pytest.raises(EmulationError, match=r"deadlock: 32 threads.*barrier.*thread \(0, 0, 0\)"):
        run(lines, 96)


def test_hang() -> None:
    with pytest.raises(EmulationError, match="no end after 1000 instructions"):
        run(["BRA 0x0"], max_steps=1000)


def test_running_past_the_end() -> None:
    with pytest.raises(EmulationError, match="past the end"):
        run([TID])


def test_unknown_instruction_fails_by_name_only_when_reached() -> None:
    assert run(["BRA 0x20", "UTMALDG.1D [UR8], [UR4]", "EXIT"])[1].warp_instructions == 2
    with pytest.raises(EmulationError, match="UTMALDG"):
        run(["UTMALDG.1D [UR8], [UR4]", "EXIT"])


def test_divergence_reconverges_at_bsync() -> None:
    lines = [
        TID, "LOP3.LUT R1, R0, 0x1, RZ, 0xc0, !PT", "ISETP.EQ.AND P0, PT, R1, RZ, PT", "MOV R4, 0x7", "BSSY B0, 0x90",
        "@P0 BRA 0x80", "IMAD R4, R0, 0x2, RZ", "BRA 0x80", "BSYNC B0", "VOTE.ANY R5, PT, PT", "IMAD.IADD R4, R4, 0x1, R5", *STORE,
    ]  # fmt: skip
    out, result = run(lines)
    lane = np.arange(32)
    np.testing.assert_array_equal(out, (np.where(lane % 2 == 0, 7, 2 * lane) + 0xFFFFFFFF) % 2**32)
    assert not result.findings


def test_waiting_for_another_lane_ends() -> None:
    """Lane 0 sets a flag in shared memory after the others began to spin on it."""
    lines = [
        TID, "MOV R6, 0x400", "MOV R4, RZ", "ISETP.NE.AND P0, PT, R0, RZ, PT", "STS [R6], RZ", "@!P0 BRA 0x90",
        "LDS R4, [R6]", "ISETP.NE.AND P1, PT, R4, RZ, PT", "@P1 BRA 0xb0", "@P0 BRA 0x60", "MOV R4, 0x5",
    ]  # fmt: skip
    tail = ["@!P0 STS [R6], R4", *STORE]
    lines[5] = "@!P0 BRA 0xa0"
    out, _ = run([*lines, *tail])
    np.testing.assert_array_equal(out, np.full(32, 5))


def test_uninitialised_register() -> None:
    out, result = run([TID, "IADD3 R4, R9, 0x1, RZ", *STORE])
    assert [(f.kind, f.offset) for f in result.findings] == [("uninitialised register", 0x10)]
    assert "R9" in str(result.findings[0]) and "thread (0, 0, 0)" in str(result.findings[0])
    assert (out == 1).all()


def test_register_written_in_some_lanes_only() -> None:
    lines = [TID, "ISETP.LT.AND P0, PT, R0, 0xa, PT", "@P0 MOV R9, 0x1", "@P0 MOV R4, R9", "MOV R4, R9", *STORE]
    _, result = run(lines)
    assert [(f.offset, f.thread) for f in result.findings] == [(0x40, "block (0, 0, 0) thread (10, 0, 0)")]


SHARE = [
    TID, "IMAD R6, R0, 0x4, RZ", "STS [R6+0x400], R0", "BAR.SYNC.DEFER_BLOCKING 0x0", "LOP3.LUT R7, R6, 0x80, RZ, 0x3c, !PT", "LDS R4, [R7+0x400]",
]  # fmt: skip


def test_race_is_found_and_a_barrier_ends_it() -> None:
    out, result = run([*SHARE, *STORE], 64)
    np.testing.assert_array_equal(out, np.arange(64) ^ 32)
    assert not result.findings
    _, result = run([*SHARE[:3], "NOP", *SHARE[4:], *STORE], 64)
    assert [(f.kind, f.offset) for f in result.findings] == [("shared race", 0x50)]


def test_uninitialised_shared() -> None:
    _, result = run(["MOV R0, RZ", "MOV R6, 0x500", "LDS R4, [R6]", *STORE])
    assert [(f.kind, f.offset) for f in result.findings] == [("uninitialised shared", 0x20)]


def test_partial_barriers_count_threads() -> None:
    """Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2; then all at barrier 0."""
    lines = [
        TID, "SHF.R.U32.HI R1, RZ, 0x6, R0", "IADD3 R1, R1, 0x1, RZ", "BAR.SYNC.DEFER_BLOCKING R1, 0x40", "BAR.SYNC.DEFER_BLOCKING 0x0",
        "MOV R4, R1", *STORE,
    ]  # fmt: skip
    out, _ = run(lines, 128)
    np.testing.assert_array_equal(out, np.repeat([1, 2], 64))
