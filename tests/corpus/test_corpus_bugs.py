"""Small programs, each of which once failed as part of a large one: they compile, pass the hazard checker, and compute what the rule says."""

from __future__ import annotations

import numpy as np
import pytest

from sassay.emu import emulate
from sassay.pipeline import compile_ptx
from sassay.verify.hazards import check

CHIPS = ("sm_90a", "sm_120a")
HEADER = ".version 8.7\n.target {target}\n.address_size 64\n"


def run(text: str, chip: str, args: list[object], threads: int = 32) -> None:
    cubin = compile_ptx(HEADER.format(target=chip) + text, chip).cubin
    assert not check(cubin)
    emulate(cubin, None, (1,), (threads,), args)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("pitch", [0, 3])
def test_uniform_parameter_inside_a_predicated_side(chip: str, pitch: int) -> None:
    """The load of a uniform value takes no per-thread guard: the side's product reads the parameter from a uniform register."""
    body = """
.visible .entry side(.param .u64 out, .param .u64 rows, .param .u32 pitch) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [rows]; ld.param.u32 %r1, [pitch];
  mov.u32 %r2, %tid.x;
  mov.u32 %r4, %r2;
  setp.eq.s32 %p, %r1, 0;
  @%p bra DONE;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r3, [%rd4];
  mul.lo.s32 %r4, %r3, %r1;
DONE:
  mul.wide.u32 %rd5, %r2, 4;
  add.s64 %rd6, %rd1, %rd5;
  st.global.u32 [%rd6], %r4;
  ret;
}
"""
    rows = np.arange(7, 39, dtype=np.uint32)
    out = np.zeros(32, np.uint32)
    run(body, chip, [out, rows, pitch])
    assert np.array_equal(out, rows * pitch if pitch else np.arange(32, dtype=np.uint32))


@pytest.mark.parametrize("chip", CHIPS)
def test_many_predicates_alive(chip: str) -> None:
    """More conditions than predicate registers: those kept in registers are fetched where needed, and no more often."""
    count = 14
    tests = "\n".join(f"  and.b32 %r3, %r2, {k + 3}; setp.gt.u32 %p{k}, %r3, {k // 2};" for k in range(count))
    sums = "\n".join(f"  @%p{k} add.s32 %r4, %r4, {3 * k + 1};\n  @%p{k} xor.b32 %r4, %r4, {k << 4};" for k in range(count))
    body = f"""
.visible .entry many(.param .u64 out) {{
  .reg .pred %p<{count}>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mad.lo.s32 %r2, %r1, 7, 1;
  mov.u32 %r4, %r1;
{tests}
{sums}
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;
}}
"""
    expected = []
    for tid in range(32):
        value, x = tid, tid * 7 + 1
        for k in range(count):
            if (x & (k + 3)) > k // 2:
                value = (value + 3 * k + 1) ^ (k << 4)
        expected.append(value)
    out = np.zeros(32, np.uint32)
    run(body, chip, [out])
    assert out.tolist() == expected
