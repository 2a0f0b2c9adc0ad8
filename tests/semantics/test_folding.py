"""ptxas against itself under our semantics: its code for an operation on parameters, run here, must give what it folds the operation to on constants.

This is what "corroborated" in the evidence ledger rests on: two different parts of ptxas agree through the model. A case counts only where ptxas
did fold (the constant kernel computes nothing). Left out: neg and abs of floats, whose NaN ptxas folds by the sign bit and computes by an addition.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from support import oracle

from sassay.isa.target import target
from semantics.run import EDGES32
from semantics.straight import Branches, listing, parameters, run

INTEGER = [
    "add.u32 r0,r1,r2;", "sub.u32 r0,r1,r2;", "mul.lo.u32 r0,r1,r2;", "mad.lo.s32 r0,r1,r2,r3;", "mul.hi.u32 r0,r1,r2;", "mul.hi.s32 r0,r1,r2;",
    "mad.hi.s32 r0,r1,r2,r3;", "mul.wide.s32 d0,r1,r2;", "mad.wide.u32 d0,r1,r2,d3;", "add.u64 d0,d1,d2;", "sub.u64 d0,d1,d2;",
    "mul.lo.u64 d0,d1,d2;",
    "mul.hi.u64 d0,d1,d2;", "mul.hi.s64 d0,d1,d2;", "shl.b32 r0,r1,r2;", "shr.u32 r0,r1,r2;", "shr.s32 r0,r1,r2;", "shl.b64 d0,d1,r2;",
    "shr.u64 d0,d1,r2;", "shr.s64 d0,d1,r2;", "shf.l.clamp.b32 r0,r1,r2,r3;", "shf.r.clamp.b32 r0,r1,r2,r3;", "shf.l.wrap.b32 r0,r1,r2,r3;",
    "shf.r.wrap.b32 r0,r1,r2,r3;", "and.b32 r0,r1,r2;", "or.b64 d0,d1,d2;", "xor.b32 r0,r1,r2;", "not.b32 r0,r1;", "lop3.b32 r0,r1,r2,r3,0x1e;",
    "lop3.b32 r0,r1,r2,r3,0xb2;", "prmt.b32 r0,r1,r2,r3;", "prmt.b32 r0,r1,r2,0x2741;", "prmt.b32 r0,r1,r2,0xb9f0;", "prmt.b32.f4e r0,r1,r2,r3;",
    "prmt.b32.rc16 r0,r1,r2,r3;", "popc.b32 r0,r1;", "popc.b64 r0,d1;", "clz.b32 r0,r1;", "clz.b64 r0,d1;", "bfind.u32 r0,r1;", "bfind.s32 r0,r1;",
    "bfind.shiftamt.u32 r0,r1;", "bfind.shiftamt.s64 r0,d1;", "brev.b32 r0,r1;", "brev.b64 d0,d1;", "bfe.u32 r0,r1,r2,r3;", "bfe.s32 r0,r1,r2,r3;",
    "bfe.s64 d0,d1,r2,r3;", "bfi.b32 r0,r1,r2,r3,r4;", "bmsk.clamp.b32 r0,r1,r2;", "bmsk.wrap.b32 r0,r1,r2;", "szext.clamp.s32 r0,r1,r2;",
    "szext.wrap.u32 r0,r1,r2;", "min.s32 r0,r1,r2;", "max.u32 r0,r1,r2;", "min.s64 d0,d1,d2;", "max.u64 d0,d1,d2;", "abs.s32 r0,r1;",
    "abs.s64 d0,d1;",
    "neg.s32 r0,r1;", "sad.s32 r0,r1,r2,r3;", "sad.u32 r0,r1,r2,r3;", "dp4a.s32.u32 r0,r1,r2,r3;", "dp2a.lo.s32.u32 r0,r1,r2,r3;",
    "dp2a.hi.u32.s32 r0,r1,r2,r3;", "add.sat.s32 r0,r1,r2;", "sub.sat.s32 r0,r1,r2;", "set.lt.u32.s32 r0,r1,r2;", "set.ge.u32.u32 r0,r1,r2;",
    "setp.lt.s64 p1,d1,d2; selp.u32 r0,1,2,p1;", "setp.hi.u64 p1,d1,d2; selp.u32 r0,1,2,p1;", "setp.eq.u64 p1,d1,d2; selp.u32 r0,1,2,p1;",
    "setp.ne.and.s32 p1|p2,r1,r2,p3; selp.u32 r0,1,2,p1;", "add.cc.u32 r0,r1,r2; addc.u32 r0,r3,r4;", "sub.cc.u32 r0,r1,r2; subc.u32 r0,r3,r4;",
    "mad.lo.cc.u32 r0,r1,r2,r3; madc.hi.u32 r0,r4,r1,r2;", "cvt.s32.s8 r0,r1;", "cvt.u32.u16 r0,r1;", "cvt.sat.s8.s32 r0,r1;",
    "cvt.sat.u16.s32 r0,r1;",
    "cvt.s64.s32 d0,r1;", "add.u16x2 r0,r1,r2;", "min.s16x2 r0,r1,r2;", "max.u16x2 r0,r1,r2;", "cvt.pack.sat.s8.s32.b32 r0,r1,r2,r3;",
    "slct.s32.s32 r0,r1,r2,r3;", "mul24.lo.s32 r0,r1,r2;", "mul24.hi.u32 r0,r1,r2;", "mul.lo.u32 r0,r1,5; add.u32 r0,r0,r2;",
    "shl.b32 r0,r1,3; add.u32 r0,r0,r2;", "shl.b64 d0,d1,4; add.u64 d0,d0,d2;", "not.b32 r0,r1; add.u32 r0,r0,r2; add.u32 r0,r0,1;",
]  # fmt: skip
FLOAT = [
    "add.rn.f32 f0,f1,f2;", "sub.rn.f32 f0,f1,f2;", "mul.rn.f32 f0,f1,f2;", "fma.rn.f32 f0,f1,f2,f3;", "add.rz.f32 f0,f1,f2;", "add.rm.f32 f0,f1,f2;",
    "mul.rp.f32 f0,f1,f2;", "fma.rz.f32 f0,f1,f2,f3;", "fma.rm.f32 f0,f1,f2,f3;", "add.ftz.f32 f0,f1,f2;", "mul.ftz.f32 f0,f1,f2;",
    "fma.rn.ftz.f32 f0,f1,f2,f3;", "add.sat.f32 f0,f1,f2;", "min.f32 f0,f1,f2;", "max.f32 f0,f1,f2;", "max.NaN.f32 f0,f1,f2;",
    "add.rn.f64 d0,d1,d2;", "mul.rn.f64 d0,d1,d2;", "fma.rn.f64 d0,d1,d2,d3;", "add.rp.f64 d0,d1,d2;", "mul.rz.f64 d0,d1,d2;",
    "fma.rm.f64 d0,d1,d2,d3;", "min.f64 d0,d1,d2;", "max.f64 d0,d1,d2;",
    "setp.lt.f32 p1,f1,f2; selp.u32 r0,1,2,p1;", "setp.geu.f32 p1,f1,f2; selp.u32 r0,1,2,p1;", "setp.num.f32 p1,f1,f2; selp.u32 r0,1,2,p1;",
    "setp.ne.f64 p1,d1,d2; selp.u32 r0,1,2,p1;", "setp.ltu.f64 p1,d1,d2; selp.u32 r0,1,2,p1;",
    "cvt.rn.f32.s32 f0,r1;", "cvt.rz.f32.u32 f0,r1;", "cvt.rn.f32.s64 f0,d1;", "cvt.rp.f32.u64 f0,d1;", "cvt.rn.f64.s32 d0,r1;",
    "cvt.rn.f64.u64 d0,d1;",
    "cvt.rni.s32.f32 r0,f1;", "cvt.rzi.u32.f32 r0,f1;", "cvt.rmi.s64.f32 d0,f1;", "cvt.rpi.u64.f64 d0,d1;", "cvt.rzi.s32.f64 r0,d1;",
    "cvt.rn.f32.f64 f0,d1;", "cvt.rz.f32.f64 f0,d1;", "cvt.f64.f32 d0,f1;", "cvt.rni.f32.f32 f0,f1;", "cvt.rmi.f32.f32 f0,f1;",
    "cvt.rpi.f64.f64 d0,d1;",
    "cvt.rn.f16x2.f32 r0,f1,f2;", "cvt.rn.bf16x2.f32 r0,f1,f2;", "cvt.rz.bf16x2.f32 r0,f1,f2;", "add.rn.f16x2 r0,r1,r2;", "mul.rn.f16x2 r0,r1,r2;",
    "fma.rn.f16x2 r0,r1,r2,r3;", "fma.rn.bf16x2 r0,r1,r2,r3;", "add.rn.bf16x2 r0,r1,r2;", "min.f16x2 r0,r1,r2;", "max.bf16x2 r0,r1,r2;",
    "copysign.f32 f0,f1,f2;", "fma.rn.relu.f16x2 r0,r1,r2,r3;", "add.sat.f16x2 r0,r1,r2;",
    "cvt.rna.tf32.f32 r0,f1;", "cvt.rn.satfinite.e4m3x2.f32 h0,f1,f2; cvt.u32.u16 r0,h0;", "testp.subnormal.f32 p1,f1; selp.u32 r0,1,2,p1;",
]  # fmt: skip
_HEAD = ".reg .b32 %r<6>;\n.reg .f32 %f<6>;\n.reg .b64 %d<6>;\n.reg .b64 %out;\n.reg .b16 %h<4>;\n.reg .pred %p<4>;\n"
SETS = 8


def spell(op: str) -> str:
    return re.sub(r"(?<![\w%.])([rfdph])(\d)(?!\w)", r"%\1\2", op)


def stores(at: int) -> str:
    return f"st.global.b32 [%out+{at}], %r0;\nst.global.f32 [%out+{at + 4}], %f0;\nst.global.b64 [%out+{at + 8}], %d0;\n"


def define(rng: random.Random, floats: bool) -> list[int]:
    """Values of registers 1 to 4, as 64 bits: the low half serves the 32-bit ones."""
    values = []
    for _ in range(4):
        low, high = (rng.choice(EDGES32) if rng.random() < 0.5 else rng.getrandbits(32) for _ in range(2))
        if floats:
            low = rng.randint(100, 160) << 23 | rng.getrandbits(23) | rng.getrandbits(1) << 31
            if rng.random() < 0.3:
                low = rng.choice([0, 0x80000000, 1, 0x007FFFFF, 0x3F800000, 0xBF800001, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x7FC00000])
            high = rng.choice([low, rng.randint(1000, 1090) << 20 | rng.getrandbits(20) | rng.getrandbits(1) << 31])
        elif rng.random() < 0.3:
            low = rng.randint(0, 70)
        values.append(high << 32 | low)
    return values


def kernels(ops: list[str], chip: str, sets: list[list[int]]) -> str:
    """For each operation a kernel over parameters (v) and one over all the constant sets (c)."""
    text = f".version 9.0\n.target {chip}\n.address_size 64\n"
    zero = "mov.b32 %r0,0; mov.b32 %f0,0f00000000; mov.b64 %d0,0; setp.ne.u32 %p3,%r0,0;\n"
    for i, op in enumerate(ops):
        names = ", ".join(f".param .u64 a{k}" for k in range(5))
        text += f".visible .entry v{i}({names}) {{\n{_HEAD}ld.param.u64 %out,[a0];\n{zero}"
        for k in range(1, 5):
            text += f"ld.param.b32 %r{k},[a{k}]; ld.param.f32 %f{k},[a{k}]; ld.param.b64 %d{k},[a{k}];\n"
        text += spell(op) + "\n" + stores(0) + "ret;\n}\n"
        text += f".visible .entry c{i}({names}) {{\n{_HEAD}ld.param.u64 %out,[a0];\n"
        for s, values in enumerate(sets):
            text += zero
            for k, v in enumerate(values, 1):
                text += f"mov.b32 %r{k},{v & 0xFFFFFFFF:#x}; mov.b32 %f{k},0f{v & 0xFFFFFFFF:08x}; mov.b64 %d{k},{v:#x};\n"
            text += spell(op) + "\n" + stores(16 * (s + 1))
        text += "ret;\n}\n"
    return text


def compare(ops: list[str], chip: str, floats: bool, directory: Path) -> tuple[set[str], list[str], int]:
    """(cells corroborated, operations not folded or not straight, comparisons made)."""
    rng = random.Random(len(ops))
    sets = [define(rng, floats) for _ in range(SETS)]
    code = listing(oracle.ptxas(kernels(ops, chip, sets), chip), directory)
    base = target(chip).constants.params
    cells: set[str] = set()
    left, made = [], 0
    for i, op in enumerate(ops):
        try:
            folded = run(code[f"c{i}"], parameters(base, [0] * 5))
            if folded.computed:
                left.append(op)
                continue
            for s, values in enumerate(sets):
                lane = run(code[f"v{i}"], parameters(base, [0, *values]))
                for at in range(0, 16, 4):
                    got, want = lane.stored[at], folded.stored[16 * (s + 1) + at]
                    assert got == want, (op, chip, [hex(v) for v in values], at, hex(got), hex(want), lane.computed)
                made += 1
                cells |= lane.cells
        except Branches:
            left.append(op)
    return cells, left, made


@oracle.needs_tools
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("kind", ["integer", "float"])
def test_folding(chip: str, kind: str, tmp_path: Path) -> None:
    cells, _, made = compare(INTEGER if kind == "integer" else FLOAT, chip, kind == "float", tmp_path)
    assert made > (400 if kind == "integer" else 150)
    assert len(cells) > 10
