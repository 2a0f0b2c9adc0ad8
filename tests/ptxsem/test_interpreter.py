"""The PTX interpreter on what a single instruction cannot show: calls, barriers, copies, matrices, stacks, refusals by name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from sassay.emu.ptx import emulate_ptx
from sassay.errors import EmulationError, UnsupportedError
from sassay.ptx.parser import parse

HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"
ENTRY = ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<9>; .reg .b64 %o, %a, %rd<5>; .reg .pred %p<4>;\n"
ENTRY += "ld.param.u64 %o, [out]; mov.u32 %r0, %tid.x;\n"
STORE = "mul.wide.u32 %a, %r0, 4; add.u64 %a, %a, %o; st.global.u32 [%a], %r1; ret; }\n"

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
SPECS = importlib.import_module("specs").SPECS


def run(body: str, threads: int = 64, before: str = "", head: str = HEAD) -> np.ndarray:
    out = np.zeros(threads, np.uint32)
    emulate_ptx(parse(head + before + ENTRY + body + STORE), "k", (1, 1, 1), (threads, 1, 1), [out])
    return out


@pytest.mark.parametrize("name", SPECS)
def test_kernel(name: str) -> None:
    launch = SPECS[name].make(np.random.default_rng(1))
    module = parse(SPECS[name].ptx if isinstance(SPECS[name].ptx, str) else SPECS[name].ptx.read_text())
    kernel = next(f.name for f in module.functions if f.is_entry)
    emulate_ptx(module, kernel, launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes)
    launch.check(launch.args)


def test_calls_with_registers_and_divergent_depth() -> None:
    """f(n) = n ? n + f(n - 1) : 0, by lanes of different depth."""
    function = """.func (.reg .u32 %res) f(.reg .u32 %n) { .reg .u32 %m; .reg .pred %z; mov.u32 %res, 0; setp.eq.u32 %z, %n, 0; @%z ret;
        sub.u32 %m, %n, 1; call (%res), f, (%m); add.u32 %res, %res, %n; ret; }\n"""
    got = run("and.b32 %r2, %r0, 15; call (%r1), f, (%r2);", before=function)
    assert got.tolist() == [n * (n + 1) // 2 for n in (t % 16 for t in range(64))]


def test_local_variables_of_each_call() -> None:
    function = """.func (.reg .u32 %res) f(.reg .u32 %n) { .local .u32 keep[2]; .reg .u32 %m; .reg .pred %z;
        st.local.u32 [keep+4], %n; mov.u32 %res, 1;
        setp.eq.u32 %z, %n, 0; @%z ret; sub.u32 %m, %n, 1; call (%res), f, (%m); ld.local.u32 %m, [keep+4]; mul.lo.u32 %res, %res, %m; ret; }\n"""
    got = run("and.b32 %r2, %r0, 7; call (%r1), f, (%r2);", before=function)
    assert got[:8].tolist() == [1, 1, 2, 6, 24, 120, 720, 5040]


def test_call_of_an_external_function_is_named() -> None:
    declared = ".extern .func (.reg .b32 r) vprintf(.reg .b64 a, .reg .b64 b);\n"
    with pytest.raises(UnsupportedError, match="vprintf"):
        run("call (%r1), vprintf, (%rd1, %rd2);", before=declared)


@pytest.mark.parametrize(("words", "expected"), [("popc.u32 %r1", 16), ("and.pred %p1", 0), ("or.pred %p1", 1)])
def test_barrier_reduction(words: str, expected: int) -> None:
    tail = "" if "popc" in words else "selp.u32 %r1, 1, 0, %p1;"
    got = run(f"and.b32 %r2, %r0, 3; setp.eq.u32 %p0, %r2, 1; barrier.red.{words}, 1, %p0; {tail}")
    assert set(got.tolist()) == {expected}


def test_producer_arrives_and_consumer_waits() -> None:
    """Warp 0 stores and arrives; warp 1 waits for 64 threads."""
    body = """.shared .u32 box[32]; and.b32 %r2, %r0, 31; shl.b32 %r2, %r2, 2; mov.u32 %r3, box; add.u32 %r3, %r3, %r2; setp.ge.u32 %p0, %r0, 32;
        mov.u32 %r1, 0; @%p0 bra WAIT; mad.lo.u32 %r4, %r0, 3, 1; st.shared.u32 [%r3], %r4; barrier.cta.arrive 2, 64; bra DONE;
        WAIT: barrier.cta.sync 2, 64; ld.shared.u32 %r1, [%r3]; DONE:"""
    assert run(body)[32:].tolist() == [3 * t + 1 for t in range(32)]


def test_deadlock_is_reported() -> None:
    with pytest.raises(EmulationError, match=r"deadlock.*32 threads arrived"):
        run("setp.lt.u32 %p0, %r0, 32; @!%p0 bra END; bar.sync 1, 96; END: mov.u32 %r1, 0;")


def test_warp_barrier_holds_lanes() -> None:
    body = """.shared .u32 cell; setp.ne.u32 %p0, %r0, 0; @%p0 bra OTHER; mov.u32 %r2, 9; st.shared.u32 [cell], %r2;
        bar.warp.sync 0xffffffff; bra END; OTHER: bar.warp.sync 0xffffffff; END: ld.shared.u32 %r1, [cell];"""
    assert set(run(body, 32).tolist()) == {9}


def test_partial_copy_fills_with_zero() -> None:
    body = """.shared .align 16 .b8 box[1024]; mov.u32 %r3, box; shl.b32 %r2, %r0, 4; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3+4], 7;
        cp.async.ca.shared.global [%r3], [%o], 8, 4; cp.async.commit_group; cp.async.wait_group 0; ld.shared.u32 %r1, [%r3+4];"""
    assert set(run(body).tolist()) == {0}


def test_matrix_load_transposes() -> None:
    body = """.shared .align 16 .b8 box[128]; shl.b32 %r2, %r0, 2; mov.u32 %r3, box; add.u32 %r4, %r3, %r2; shl.b32 %r5, %r0, 17;
        add.u32 %r5, %r5, 65536;
        shl.b32 %r6, %r0, 1; or.b32 %r5, %r5, %r6; st.shared.u32 [%r4], %r5; bar.warp.sync 0xffffffff; and.b32 %r2, %r0, 7; shl.b32 %r2, %r2, 4;
        add.u32 %r3, %r3, %r2; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%r3];"""
    grid = np.arange(64).reshape(8, 8).T.reshape(32, 2)
    assert run(body, 32).tolist() == [int(a) | int(b) << 16 for a, b in grid]


def test_alloca() -> None:
    body = """alloca.u64 %rd1, 16, 8; alloca.u64 %rd2, 8; st.local.u32 [%rd1], %r0; st.local.u32 [%rd2], 5; ld.local.u32 %r1, [%rd1];"""
    assert run(body).tolist() == list(range(64))


def test_spinning_lanes_do_not_starve_the_others() -> None:
    body = """.shared .u32 lock; setp.eq.u32 %p0, %r0, 0; @%p0 bra OPEN; SPIN: ld.volatile.shared.u32 %r1, [lock]; setp.eq.u32 %p1, %r1, 0;
        @%p1 bra SPIN; bra END; OPEN: mov.u32 %r1, 3; st.volatile.shared.u32 [lock], %r1; END:"""
    assert set(run(body, 32).tolist()) == {3}


@pytest.mark.parametrize("text", ["vmad.s32.s32.s32 %r1, %r2, %r3, %r4;", "barrier.cluster.arrive;", "cp.async.bulk.commit_group;"])
def test_refusals_name_the_instruction(text: str) -> None:
    with pytest.raises(UnsupportedError, match=text.split(".")[0]):
        run(text + "mov.u32 %r1, 0;", 32)


@pytest.mark.parametrize(("a", "b", "c", "low", "high"), [(3, 5, 7, 8, 7), (0, 0xABCDEF, 0x99, 0x99, 0x99), (2**63, 6, 1, 1, 2)])
def test_carry_less_multiplication(a: int, b: int, c: int, low: int, high: int) -> None:
    """Known answers by hand: 3 x 5 = 0b11 * 0b101 = 0b1111 without carries."""
    for part, expected in (("lo", low), ("hi", high)):
        body = f"mov.b64 %rd1, {a}; mov.b64 %rd2, {b}; clmad.{part}.u64 %rd3, %rd1, %rd2, {c}; cvt.u32.u64 %r1, %rd3;"
        assert set(run(body, 32, head=HEAD.replace("8.8", "9.3")).tolist()) == {expected}
