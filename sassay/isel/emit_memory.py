"""Emission of memory operations: addresses folded into operands, the descriptor, facts for ordering."""

from __future__ import annotations

from dataclasses import replace

from sassay.isel.emit import TRUE, Emitter, rule
from sassay.isel.ir import Op, Value
from sassay.isel.numbers import signed
from sassay.sass.function import MemoryFact
from sassay.sass.model import R_ZERO, Const, File, Mem, Operand, Reg


def descriptor(e: Emitter) -> Reg:
    """The global memory descriptor's uniform pair."""
    if e.descriptor is None:
        e.descriptor = e.fn.new(File.UR, 2)
    e.descriptor_uses.append(e.at)
    return Reg(File.UR, e.descriptor)


def fold_address(base: Value, offset: int) -> tuple[Value, int]:
    while base.op.name in ("add64", "iadd") and base.op.amods == ["", ""] and base.op.args[1].const is not None:
        total = offset + signed(base.op.args[1].const, 32 * base.width)
        if not -(1 << 23) <= total < 1 << 23:
            break
        base, offset = base.op.args[0], total
    return base, offset


def memory_operand(e: Emitter, space: str, base: Value, offset: int, bare: bool = False) -> tuple[Mem, str, int]:
    """The address operand, the name of its base and the offset from it."""
    base, offset = fold_address(base, offset)
    name = f"v{base.uid}"
    wide = space in ("global", "generic")
    if base.const is not None:
        total = base.const + offset
        if 0 <= total < 1 << 23 and not wide:
            return Mem((), total), "0", total
    if base.op.name == "sp":
        e.uses_stack = True
    r = e.reg(base)
    if wide:
        return Mem((Reg(File.R, r.index, () if bare else ("64",)),), offset, "" if bare else "desc", None if bare else descriptor(e)), name, offset
    return Mem((r,), offset), name, offset


OPCODES = {"global": ("LDG", "STG"), "shared": ("LDS", "STS"), "local": ("LDL", "STL"), "generic": ("LD", "ST")}


def fact(op: Op, name: str, offset: int) -> MemoryFact:
    assert op.memory is not None
    return replace(op.memory, base=name, offset=offset)


@rule("load")
def emit_load(e: Emitter, op: Op) -> None:
    space, offset = str(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    mem, name, at = memory_operand(e, space, op.args[0], offset)
    # 256 bits: two quads, the upper one printed first.
    e.ins(OPCODES[space][0], op.mods, [*(e.dest(r) for r in op.results), mem], fact(op, name, at))


@rule("store")
def emit_store(e: Emitter, op: Op) -> None:
    space, offset = str(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    mem, name, at = memory_operand(e, space, op.args[0], offset)
    e.ins(OPCODES[space][1], op.mods, [mem, *(e.a(v) for v in op.args[1:])], fact(op, name, at))


@rule("atomic")
def emit_atomic(e: Emitter, op: Op) -> None:
    space, offset, kind = str(op.attr[0]), int(op.attr[1]), str(op.attr[2])  # type: ignore[call-overload]
    cas = kind == "cas"
    if not e.needed(op.results[0]) and kind not in ("cas", "exch"):
        emit_reduce(e, op)
        return
    mem, name, at = memory_operand(e, space, op.args[0], offset, bare=cas)
    data = e.reg(op.args[1])
    width = op.results[0].width
    values: list[Operand] = [data, Reg(File.R, data.index + width)] if cas else [data]
    opcode = "ATOM" if space == "generic" else "ATOMG"
    e.ins(opcode, op.mods, [TRUE, e.dest(op.results[0]), mem, *values], fact(op, name, at))


@rule("reduce")
def emit_reduce(e: Emitter, op: Op) -> None:
    space, offset = str(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    mem, name, at = memory_operand(e, space, op.args[0], offset)
    if space == "generic":
        e.ins("ATOM", op.mods, [TRUE, R_ZERO, mem, e.a(op.args[1])], fact(op, name, at))
    else:
        e.ins("REDG", op.mods, [mem, e.a(op.args[1])], fact(op, name, at))


@rule("ATOMS")
def emit_atoms(e: Emitter, op: Op) -> None:
    mem, name, at = memory_operand(e, "shared", op.args[0], int(op.attr[1]))  # type: ignore[call-overload]
    e.ins("ATOMS", op.mods, [e.dest(op.results[0]), mem, *[e.a(v) for v in op.args[1:]]], fact(op, name, at))


@rule("LDSM")
def emit_ldsm(e: Emitter, op: Op) -> None:
    mem, name, at = memory_operand(e, "shared", op.args[0], int(op.attr[1]))  # type: ignore[call-overload]
    e.ins("LDSM", op.mods, [e.dest(op.results[0]), mem], fact(op, name, at))


@rule("STSM")
def emit_stsm(e: Emitter, op: Op) -> None:
    mem, name, at = memory_operand(e, "shared", op.args[0], int(op.attr[1]))  # type: ignore[call-overload]
    e.ins("STSM", op.mods, [mem, e.a(op.args[1])], fact(op, name, at))


@rule("LDGSTS")
def emit_ldgsts(e: Emitter, op: Op) -> None:
    to, of = int(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    shared, _, _ = memory_operand(e, "shared", op.args[0], to)
    source, _, _ = memory_operand(e, "global", op.args[1], of)
    guard: list[Operand] = [e.pred(op.args[2], op.amods[2] == "!")] if len(op.args) > 2 else []
    e.ins("LDGSTS", op.mods, [shared, source, *guard], op.memory)


@rule("LDC")
def emit_ldc(e: Emitter, op: Op) -> None:
    bank, offset = int(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    base, at = fold_address(op.args[0], offset)
    if not 0 < at < 1 << 15:
        base, at = op.args[0], offset
    e.ins("LDC", op.mods, [e.dest(op.results[0]), Const(bank, at, e.reg(base))])


@rule("CCTL")
def emit_cctl(e: Emitter, op: Op) -> None:
    if not op.args:
        e.ins("CCTL", op.mods, [], op.memory)
        return
    mem, name, at = memory_operand(e, "global", op.args[0], int(op.attr[1]), bare=True)  # type: ignore[call-overload]
    e.ins("CCTL", op.mods, [mem], fact(op, name, at))


@rule("QSPC")
def emit_qspc(e: Emitter, op: Op) -> None:
    e.ins("QSPC", op.mods, [e.dest(op.results[0]), R_ZERO, Mem((e.reg(op.args[0]),))])
