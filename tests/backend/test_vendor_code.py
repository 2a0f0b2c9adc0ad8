"""The vendor's code for the test kernels, its registers made virtual again, allocated and scheduled afresh: clean, and no worse."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import oracle
from virtualise import virtualise
from walk import hazards

from sassay.isa.target import target
from sassay.regalloc import AllocationOptions, allocate
from sassay.sched import schedule_final, schedule_virtual
from sassay.sched.layout import drop_empty, flatten
from sassay.verify.hazards import check_instructions

KERNELS = Path(__file__).parent.parent / "kernels"
NAMES = ("saxpy", "big_add", "matmul_tiled", "nested_branches", "block_reduce", "mma_f16", "dot_f64", "warp_votes")
pytestmark = oracle.needs_tools


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["fast", "serial", "spill"])
def test_rescheduled_and_reallocated_code_is_clean(name: str, chip: str, mode: str) -> None:
    data = oracle.ptxas((KERNELS / f"{name}.ptx").read_text(), chip)
    vendor = oracle.vendor_disassemble(data)[name]
    fn = virtualise(name, vendor, target(chip))
    drop_empty(fn)
    if mode == "fast":
        schedule_virtual(fn)
    allocate(fn, AllocationOptions(force_spill=mode == "spill"))
    schedule_final(fn, serial=mode == "serial")
    assert hazards(fn, paths=4, steps=1500) == []
    assert [f for f in check_instructions(flatten(fn).instructions, fn.target) if f.severity == "error"] == []
    if mode == "fast":
        assert fn.spill_bytes == (0, 0)
        assert sum(n.instruction.control.stall for b in fn.blocks for n in b.nodes) <= 1.05 * sum(i.control.stall for i in vendor)
