"""Control codes: every distance and every wait holds on every path; faults planted in them are seen by the walker that says so."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from made import VECTOR_ADD, function
from walk import hazards

from sassay.isa.target import target
from sassay.regalloc import AllocationOptions, allocate
from sassay.sass import codec
from sassay.sass.function import Function
from sassay.sched import schedule_final, schedule_virtual
from sassay.sched.layout import drop_empty, flatten

LOOP = """
MOV R70000, RZ
LDC R70001, c[0x0][0x210]
.tuple R70002 2
LDC.64 R70002, c[0x0][0x218]
.tuple UR70000 2
ULDC.64 UR70000, c[0x0][0x208]
loop:
LDG.E R70005, desc[UR70000][R70002.64]
IADD3 R70006, R70000, 0x1, RZ
STG.E desc[UR70000][R70002.64+0x4], R70000
MOV R70000, R70006
MUFU.RCP R70007, R70005
ISETP.LT.AND P70000, PT, R70000, R70001, PT
@P70001 FADD R70005, R70007, 1
FMUL R70008, R70005, R70007
STG.E desc[UR70000][R70002.64], R70008
IADD3 R70002, P70002, R70002, 0x8, RZ
IADD3.X R70003, R70003, RZ, RZ, P70002, !PT
@P70000 BRA `(loop)
done:
EXIT
"""


def prepared(text: str, serial: bool = False, spill: bool = False) -> Function:
    fn = function(text)
    if not serial:
        schedule_virtual(fn)
    allocate(fn, AllocationOptions(force_spill=spill))
    schedule_final(fn, serial)
    return fn


@pytest.mark.parametrize("text", [VECTOR_ADD, LOOP], ids=["vector_add", "loop"])
@pytest.mark.parametrize(("serial", "spill"), [(False, False), (True, False), (False, True), (True, True)])
def test_distances_and_waits_hold_on_every_path(text: str, serial: bool, spill: bool) -> None:
    fn = prepared(text, serial, spill)
    assert hazards(fn) == []
    layout = flatten(fn)
    assert len(codec.encode(layout.instructions, fn.target)) % 128 == 0


def test_the_walker_sees_planted_faults() -> None:
    planted = seen = 0
    for b, block in enumerate(prepared(LOOP).blocks):
        for n in range(len(block.nodes)):
            for change in ("wait", "write", "read", "stall"):
                fn = prepared(LOOP)
                node = fn.blocks[b].nodes[n]
                control = node.instruction.control
                if change == "stall":
                    if control.stall < 3:
                        continue
                    control = replace(control, stall=1, yield_=False)
                elif not (control.wait if change == "wait" else getattr(control, change) is not None):
                    continue
                else:
                    control = replace(control, wait=0) if change == "wait" else replace(control, **{change: None})
                node.instruction = replace(node.instruction, control=control)
                planted += 1
                seen += bool(hazards(fn, paths=3, steps=200))
    assert planted > 15
    assert seen >= planted * 3 // 4  # some waits are covered by others, some stalls are the branch's own


def test_a_loop_carries_scoreboards_round() -> None:
    fn = prepared(LOOP)
    first = fn.blocks[1].nodes[0].instruction
    assert any(n.instruction.control.wait for n in fn.blocks[1].nodes), first


def test_waits_for_different_loads_are_separate() -> None:
    fn = function(
        """
        LDG.E R70000, desc[UR4][R2.64]
        LDG.E R70001, desc[UR4][R2.64+0x100]
        LDG.E R70002, desc[UR4][R2.64+0x200]
        FADD R70003, R70000, 1
        FADD R70004, R70001, R70003
        FADD R70005, R70002, R70004
        STG.E desc[UR4][R2.64], R70005
        EXIT
        """
    )
    allocate(fn)
    schedule_final(fn)
    loads = [n.instruction.control.write for n in fn.blocks[0].nodes if n.instruction.opcode == "LDG"]
    assert len(set(loads)) == 3


def test_many_loads_share_six_scoreboards() -> None:
    lines = [f"LDG.E R{70000 + i}, desc[UR4][R2.64+{i * 4:#x}]" for i in range(30)]
    lines += [f"STG.E desc[UR4][R2.64+{i * 4 + 256:#x}], R{70000 + i}" for i in range(30)]
    fn = prepared("\n".join([*lines, "EXIT"]))
    assert hazards(fn) == []


def test_long_gaps_get_nops() -> None:
    fn = function("HMMA.16816.F32 R8, R4, R16, R8\nFADD R20, R8, 1\nEXIT")
    schedule_final(fn)
    assert hazards(fn) == []
    assert any(n.instruction.opcode == "NOP" for n in fn.blocks[0].nodes)


def test_empty_blocks_and_needless_jumps_go() -> None:
    fn = function("@P0 BRA `(b)\na:\nBRA `(b)\nb:\nEXIT")
    drop_empty(fn)
    layout = flatten(fn)
    assert [i.opcode for i in layout.instructions[:2]] == ["EXIT", "BRA"] or layout.instructions[0].opcode == "BRA"
    assert layout.exits


def test_serial_code_waits_for_everything() -> None:
    fn = prepared(VECTOR_ADD, serial=True)
    nodes = [n.instruction for b in fn.blocks for n in b.nodes]
    for before, after in itertools.pairwise(nodes):
        if before.control.write is not None:
            assert after.control.wait >> before.control.write & 1
        assert before.control.stall == 15 or before.opcode == "EXIT"


def test_targets_need_timing_data() -> None:
    assert target("sm_90a").chip == "sm_90a"
