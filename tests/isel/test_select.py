"""What selection promises to the passes after it, on the test kernels; and its parts by themselves."""

from __future__ import annotations

import random

import pytest
from support.kernels import names, ptx

from sassay.errors import UnsupportedError
from sassay.isa.target import target
from sassay.isel import select
from sassay.isel.builder import Builder
from sassay.isel.ir import Graph, dominators, loops, postdominators, reverse_postorder
from sassay.isel.numbers import compare, lut_apply, lut_exchange, prmt_apply, signed
from sassay.isel.templates import divide_constant, divide_constant_signed
from sassay.ptx.parser import parse
from sassay.sass.function import Function
from sassay.sass.model import VIRTUAL, File, Mem, Reg, Target

UNSUPPORTED = {
    "recursion", "indirect_call", "virtual_calls",  # calls by the ABI
    "f64_poly",  # f64 division rounded other than to nearest
    "cas_loops", "half_reduce", "mma_variants", "ptx_half_forms", "simd_bytes", "wmma_bf16",
}  # fmt: skip
CHIPS = ("sm_90a", "sm_100a", "sm_120a")


def selected(name: str, chip: str) -> Function:
    module = parse(ptx(name))
    entry = next(f for f in module.functions if f.is_entry)
    return select(module, entry, target(chip))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", [n for n in names() if n not in UNSUPPORTED])
def test_shape_of_the_result(name: str, chip: str) -> None:
    """Labels are unique, branches go to blocks that exist, control transfers stand last, successors agree with them, registers are virtual."""
    fn = selected(name, chip)
    labels = [b.label for b in fn.blocks]
    assert len(set(labels)) == len(labels)
    for i, b in enumerate(fn.blocks):
        following = labels[i + 1] if i + 1 < len(labels) else None
        for node in b.nodes[:-1]:
            assert node.instruction.opcode not in ("BRA", "EXIT"), f"{b.label}: transfer inside"
        last = b.nodes[-1].instruction if b.nodes else None
        if last is not None and last.opcode == "BRA":
            to = next(o.to for o in last.operands if isinstance(o, Target))
            assert b.successors[0] == to
            if not last.guard.is_zero:
                assert b.successors[1] == following
        elif last is not None and last.opcode == "EXIT" and last.guard.is_zero:
            assert not b.successors
        else:
            assert b.successors == [following]
        for node in b.nodes:
            for o in node.instruction.operands:
                if isinstance(o, Target):
                    assert o.to in labels
                if isinstance(o, Reg) and o.file in (File.R, File.UR, File.P) and not o.is_zero and o.index != 1:
                    assert o.is_virtual, node.instruction


def uniform_defs(fn: Function) -> dict[int, int]:
    count: dict[int, int] = {}
    for b in fn.blocks:
        for node in b.nodes:
            o = node.instruction.operands[0] if node.instruction.operands else None
            if isinstance(o, Reg) and o.file is File.UR and o.index >= VIRTUAL:
                count[o.index] = count.get(o.index, 0) + 1
    return count


@pytest.mark.parametrize("name", [n for n in names() if n not in UNSUPPORTED])
def test_uniform_registers_are_written_once_and_never_under_a_guard(name: str) -> None:
    fn = selected(name, "sm_90a")
    assert all(n == 1 for n in uniform_defs(fn).values())
    for b in fn.blocks:
        for node in b.nodes:
            o = node.instruction.operands[0] if node.instruction.operands else None
            if isinstance(o, Reg) and o.file is File.UR:
                assert node.instruction.guard.is_zero


@pytest.mark.parametrize("name", [n for n in names() if n not in UNSUPPORTED])
def test_every_use_is_defined_on_every_path(name: str) -> None:
    """A forward data-flow: a register read is written on all ways to it, except results of guarded operations that nothing presets."""
    from sassay.sass.effects import effects

    fn = selected(name, "sm_90a")
    by_label = {b.label: b for b in fn.blocks}
    preds: dict[str, list[str]] = {b.label: [] for b in fn.blocks}
    for b in fn.blocks:
        for s in b.successors:
            preds[s].append(b.label)
    out: dict[str, set[tuple[File, int]] | None] = {b.label: None for b in fn.blocks}
    changed = True

    def transfer(label: str, check: bool) -> set[tuple[File, int]]:
        known = [out[p] for p in preds[label] if out[p] is not None]
        have: set[tuple[File, int]] = set.intersection(*known) if known else set()  # type: ignore[arg-type]
        have = set(have)
        for node in by_label[label].nodes:
            e = effects(node.instruction)
            if check:
                for file, first, width in e.uses:
                    for i in range(width):
                        if first >= VIRTUAL:
                            assert (file, first + i) in have, f"{label}: {node.instruction.mnemonic} reads an undefined register"
            for file, first, width in e.defs:
                have.update((file, first + i) for i in range(width))
        return have

    while changed:
        changed = False
        for b in fn.blocks:
            new = transfer(b.label, False)
            if out[b.label] != new:
                out[b.label] = new
                changed = True
    for b in fn.blocks:
        transfer(b.label, True)


def test_addresses_take_constants_and_divergent_branches_meet() -> None:
    fn = selected("saxpy", "sm_90a")
    opcodes = [n.instruction.opcode for b in fn.blocks for n in b.nodes]
    assert opcodes.count("IMAD") <= 4 and "IADD3" in opcodes
    fn = selected("stencil2d", "sm_90a")
    assert any(isinstance(o, Mem) and o.offset for b in fn.blocks for n in b.nodes for o in n.instruction.operands)
    fn = selected("nested_branches", "sm_90a")
    opcodes = [n.instruction.opcode for b in fn.blocks for n in b.nodes]
    assert opcodes.count("BSSY") == opcodes.count("BSYNC") > 0


def test_short_branches_are_predicated() -> None:
    source = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .pred %q; .reg .b32 %r<4>; .reg .b64 %a;
  ld.param.u64 %a, [p]; mov.u32 %r1, %tid.x; setp.lt.s32 %q, %r1, 7; mov.u32 %r2, 5; @%q bra L; add.s32 %r2, %r1, 3;
L: st.global.u32 [%a], %r2; ret; }"""
    module = parse(source)
    fn = select(module, module.functions[0], target("sm_90a"))
    assert not any(n.instruction.opcode in ("BRA", "BSSY") for b in fn.blocks for n in b.nodes)


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_what_cannot_be_selected_is_named_with_its_place(name: str) -> None:
    with pytest.raises(UnsupportedError, match="cannot select '") as caught:
        selected(name, "sm_90a")
    assert caught.value.location is not None and caught.value.location.line > 0


def test_same_input_same_output() -> None:
    def text(fn: Function) -> list[str]:
        return [repr(n.instruction) for b in fn.blocks for n in b.nodes]

    assert text(selected("layer_norm", "sm_120a")) == text(selected("layer_norm", "sm_120a"))


# Parts ---------------------------------------------------------------------------------------------------------------------------------------


def test_division_by_constants_folds_to_the_quotient() -> None:
    """The multiplications that replace a division, folded for constant dividends, give the quotient: edge and random dividends and divisors."""
    rng = random.Random(1)
    edges = [0, 1, 2, 3, 5, 6, 7, 9, 10, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF]
    odd, even = [rng.getrandbits(rng.randint(1, 32)) | 1 for _ in range(150)], [rng.getrandbits(30) * 2 + 2 for _ in range(50)]
    for d in [x for x in edges if x] + odd + even:
        b = Builder(Graph("t"))
        near = [v & 0xFFFFFFFF for k in (1, 2, 0xFFFFFFFF // d) for v in (k * d - 1, k * d, k * d + 1)]
        for x in edges + near + [rng.getrandbits(32) for _ in range(10)]:
            assert divide_constant(b, b.const(x), d).const == x // d, (x, d)
            sx, sd = signed(x), signed(d & 0xFFFFFFFF)
            want = abs(sx) // abs(sd) * (1 if (sx < 0) == (sd < 0) else -1)
            assert divide_constant_signed(b, b.const(x), sd).const == want & 0xFFFFFFFF, (sx, sd)


def test_logic_tables() -> None:
    rng = random.Random(2)
    for _ in range(200):
        lut = rng.getrandbits(8)
        a, b, c = (rng.getrandbits(32) for _ in range(3))
        assert lut_apply(lut, a, b, c) == lut_apply(lut_exchange(lut, 0, 2), c, b, a)
        builder = Builder(Graph("t"))
        x = builder.op("opaque", [], 1, attr=(1,))
        v = builder.lop3(x, builder.const(b), builder.const(c), lut)
        if v.op.name == "lop3":
            args = [a if u is x else u.const or 0 for u in v.op.args]
            assert lut_apply(int(v.op.attr[0]), *args) == lut_apply(lut, a, b, c)  # type: ignore[call-overload]


def test_prmt_and_compare_helpers() -> None:
    assert prmt_apply(0x03020100, 0x07060504, 0x7531) == 0x07050301
    assert prmt_apply(0x80, 0, 0x8880) == 0xFFFFFF80
    assert compare("LE", 3, 3) and not compare("GT", 3, 3)


def test_dominators_and_loops() -> None:
    from sassay.isel.ir import link

    g = Graph("t")
    a, b, c, d, e = (g.block(n) for n in "abcde")
    for x, y in ((a, b), (b, c), (b, d), (c, e), (d, e), (e, b)):
        link(x, y)
    f = g.block("f")
    link(e, f)
    order = reverse_postorder(a)
    idom = dominators(order)
    assert idom[e] is b and idom[f] is e and idom[c] is b
    assert postdominators(order)[b] is e and postdominators(order)[f] is None
    assert loops(order, idom)[c].header is b and f not in loops(order, idom)
