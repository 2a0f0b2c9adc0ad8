"""The cycle model on code whose cycles can be counted by hand."""

from __future__ import annotations

from sassay.sched.model import DRAIN, simulate, trace
from timing.test_hazards import END, program


def cycles(text: str, warps: int = 1, trips: int = 8) -> int:
    return simulate(program(text), "sm_90a", warps=warps, trips=trips).cycles


def test_straight_code_is_the_sum_of_its_stalls() -> None:
    """Cycle of the last issue, plus one."""
    assert cycles("4 FADD R0, R1, R2\n5 FFMA R3, R0, R0, R0\n2 LOP3.LUT R4, R3, R3, RZ, 0xc0, !PT" + END) == 4 + 5 + 2 + 1


def test_a_pipe_takes_an_operation_every_other_cycle() -> None:
    assert cycles("1 FADD R0, R1, R2\n1 FADD R3, R1, R2\n1 FADD R4, R1, R2" + END) == 2 + 2 + 1 + 1
    assert cycles("1 FADD R0, R1, R2\n1 LOP3.LUT R3, R1, R2, RZ, 0xc0, !PT\n1 FADD R4, R1, R2" + END) == 4


def test_scoreboards_hold() -> None:
    report = simulate(program("2,w0 LDS R4, [R2]\n1,b0 FADD R0, R4, R1" + END), "sm_90a")
    assert report.cycles == 1 + 30 + 1 + 1
    assert report.stalls["scoreboard"] > 20
    free = simulate(program("2,w0 LDS R4, [R2]\n1,b1 FADD R0, R4, R1" + END), "sm_90a")
    assert "scoreboard" not in free.stalls


def test_partial_waits() -> None:
    loads = "2,w0 LDS R4, [R2]\n2,w0 LDG.E R5, desc[UR4][R2.64]\n4 DEPBAR.LE SB0, {}" + END
    assert cycles(loads.format("0x0")) > 400
    assert cycles(loads.format("0x1")) < 100


def test_the_memory_queue_fills() -> None:
    short = cycles("1 STS [R2], R3\n" * 5 + END)
    long = cycles("1 STS [R2], R3\n" * 15 + END)
    assert short <= 7
    assert long >= 35  # five at once, then one every four cycles


def test_warps_hide_each_other() -> None:
    text = "2,w0 LDG.E R4, desc[UR4][R2.64]\n1,b0 FADD R0, R4, R1" + END
    assert cycles(text, warps=8) < 8 * cycles(text) // 4


def test_draining() -> None:
    assert cycles("0 FADD R0, R1, R2" + END) == DRAIN + 1


def test_path_is_fixed_by_rule() -> None:
    text = """
        1 MOV R0, RZ
        TOP:
        1 FADD R0, R0, R1
        5 @P0 BRA `SKIP
        1 FADD R2, R0, R1
        SKIP:
        5 @P1 BRA `TOP
        5 @P2 EXIT
        5 EXIT
    """
    code = program(text)
    assert trace(code, trips=2) == [0, *[1, 2, 3, 4] * 3, 5, 6]
    assert cycles(text, trips=4) > cycles(text, trips=2)


def test_timeline() -> None:
    report = simulate(program("4 FADD R0, R1, R2" + END), "sm_90a", warps=2, timeline=True)
    assert [(warp, index) for _, warp, index in report.timeline if index == 0] == [(0, 0), (1, 0)]
    assert report.issued == 4
