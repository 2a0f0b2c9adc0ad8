"""Emission of barriers, warp-wide operations and convergence."""

from __future__ import annotations

from sassay.isel.emit import TRUE, Emitter, rule
from sassay.isel.ir import Op
from sassay.sass.model import R_ZERO, File, Imm, Name, Operand, Reg, Target


@rule("CS2R")
def emit_cs2r(e: Emitter, op: Op) -> None:
    e.ins("CS2R", op.mods, [e.dest(op.results[0]), Name(str(op.attr[0]))])


@rule("BPT")
def emit_bpt(e: Emitter, op: Op) -> None:
    e.ins("BPT", op.mods, [Imm(int(op.attr[0]))])  # type: ignore[call-overload]


@rule("DEPBAR")
def emit_depbar(e: Emitter, op: Op) -> None:
    e.ins("DEPBAR", op.mods, [Reg(File.SB, 0), Imm(int(op.attr[1]))], op.memory)  # type: ignore[call-overload]


@rule("BAR")
def emit_bar(e: Emitter, op: Op) -> None:
    operands: list[Operand] = []
    for v, m in zip(op.args, op.amods, strict=True):
        operands.append(e.pred(v, m == "!") if v.width == 0 else Imm(v.const) if v.const is not None else e.reg(v))
    e.ins("BAR", op.mods, operands, op.memory)


@rule("B2R")
def emit_b2r(e: Emitter, op: Op) -> None:
    r = op.results[0]
    e.ins("B2R", op.mods, [R_ZERO, e.dest(r)] if r.width == 0 else [e.dest(r)], op.memory)


@rule("VOTE")
def emit_vote(e: Emitter, op: Op) -> None:
    """The word of a ballot is left out of the text where nobody reads it."""
    word, p = (e.dest(r) for r in op.results)
    e.ins("VOTE", op.mods, [*([] if word.is_zero else [word]), p, e.pred(op.args[0], op.amods[0] == "!")])


@rule("MATCH")
def emit_match(e: Emitter, op: Op) -> None:
    results = [e.dest(r) for r in op.results]
    e.ins("MATCH", op.mods, [*results, e.a(op.args[0])])


@rule("REDUX", "CREDUX")
def emit_redux(e: Emitter, op: Op) -> None:
    """The result is uniform; it moves to a vector register at once."""
    u = Reg(File.UR, e.fn.new(File.UR))
    e.ins(op.name, op.mods, [u, e.a(op.args[0])])
    e.ins("MOV", (), [e.dest(op.results[0]), u])


@rule("ELECT")
def emit_elect(e: Emitter, op: Op) -> None:
    p, leader = op.results
    if not e.needed(leader):
        e.ins("ELECT", (), [e.dest(p), Reg(File.UR, 255), TRUE])
        return
    u = Reg(File.UR, e.fn.new(File.UR))
    e.ins("ELECT", (), [e.dest(p), u, TRUE])
    e.ins("MOV", (), [e.dest(leader), u])


@rule("converge")
def emit_converge(e: Emitter, op: Op) -> None:
    """WARPSYNC, left out where the whole warp runs here and all its threads are meant."""
    mask = op.args[0]
    divergent = e.at[0] in e.divergence.blocks or op.guard is not None
    saved, op.guard = op.guard, None
    if mask.const == 0xFFFFFFFF:
        if divergent and saved is None:
            e.ins("WARPSYNC", ("ALL",), [])
    elif saved is None:
        e.ins("WARPSYNC", op.mods, [e.reg(mask)])
    op.guard = saved


@rule("BSYNC")
def emit_bsync(e: Emitter, op: Op) -> None:
    mods = ("RECONVERGENT",) if e.chip.has("reconvergent") else ()
    e.ins("BSYNC", mods, [Reg(File.B, int(op.attr[0]))])  # type: ignore[call-overload]


@rule("BSSY")
def emit_bssy(e: Emitter, op: Op) -> None:
    mods = ("RECONVERGENT",) if e.chip.has("reconvergent") else ()
    e.ins("BSSY", mods, [Reg(File.B, int(op.attr[0])), Target(op.attr[1].label)])  # type: ignore[call-overload, attr-defined]
