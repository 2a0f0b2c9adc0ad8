"""Addresses of variables and of PTX address operands, and conversions between address spaces."""

from __future__ import annotations

from sassay.isel.build import Lowering, rule
from sassay.isel.ir import Value
from sassay.isel.numbers import signed
from sassay.ptx import ast as ptx

RESERVED = 0x400
"""Bytes at the start of shared memory that belong to the system (sm_90 and later; corroborated by ptxas output)."""


def shared_base(lo: Lowering) -> Value:
    """The rank of this CTA in its cluster, where shared-window addresses carry it (bits 24 up)."""
    from sassay.isel.special import system_register

    return lo.b.shl(system_register(lo, "SR_CgaCtaId"), lo.b.const(24))


def const_offset(lo: Lowering, v: ptx.Variable) -> int:
    """Offset of a .const variable in bank 3: module variables in order."""
    at = 0
    for other in lo.module.variables:
        if other.space == "const":
            at = (at + other.align - 1) // other.align * other.align
            if other is v:
                return at
            at += other.size
    raise lo.unsupported(f"constant variable '{v.name}'")


def address_slot(lo: Lowering, name: str, addend: int = 0) -> int:
    """Offset in bank 4 of the 64-bit address of a symbol; the loader fills it."""
    table: dict[tuple[str, int], int] = lo.notes.setdefault("address_table", {})  # type: ignore[assignment]
    return table.setdefault((name, addend), 8 * len(table))


def symbol_address(lo: Lowering, symbol: ptx.Variable | ptx.Function, offset: int = 0) -> Value:
    """The address of a variable in its own space (32 bits for shared and local, in a word), plus an offset."""
    b = lo.b
    if isinstance(symbol, ptx.Function):
        raise lo.unsupported(f"address of function '{symbol.name}'")
    if symbol.space == "global":
        return b.add64(lo.graph.leaf("param", 2, 4, address_slot(lo, symbol.name)), b.const(offset, 2))
    if symbol.space == "shared":
        return b.iadd(shared_base(lo), b.const(RESERVED + lo.layout.shared_offset(symbol) + offset))
    if symbol.space == "local":
        place = lo.layout.local_offset(lo.scope.number, symbol)
        return b.iadd(lo.graph.leaf("sp", 1), b.const(place + offset))
    if symbol.space == "const":
        return b.const(const_offset(lo, symbol) + offset)
    if symbol.space == "param" and symbol in lo.param_offsets:
        return b.const(lo.target.constants.params + lo.param_offsets[symbol] + offset)
    raise lo.unsupported(f"address of '{symbol.name}'")


def space_of(lo: Lowering, modifiers: tuple[str, ...], operand: ptx.PtxOperand) -> str:
    """The state space of an access: named, or that of the variable, or generic."""
    for m in modifiers:
        head = m.split("::")[0]
        if head in ("global", "shared", "local", "const", "param"):
            return head
    if isinstance(operand, ptx.AddressOperand) and isinstance(operand.base, ptx.Variable):
        return operand.base.space
    return "generic"


def address(lo: Lowering, operand: ptx.PtxOperand, space: str) -> tuple[Value, int]:
    """Base value (two words for global and generic, one for others) and constant offset of an address operand."""
    b = lo.b
    wide = space in ("global", "generic")
    if isinstance(operand, ptx.AddressOperand):
        offset = operand.offset
        if operand.base is None:
            base = b.const(0, 2 if wide else 1)
        elif isinstance(operand.base, ptx.Register):
            base = lo.read(operand.base)
        else:
            base = symbol_address(lo, operand.base)
            if wide and base.width == 1:
                base = generic_address(lo, base, operand.base.space)
    elif isinstance(operand, ptx.RegOperand):
        base, offset = lo.read(operand.register), 0
    else:
        raise lo.unsupported("address operand")
    base = lo.resize(base, 2 if wide else 1)
    return peel(base, offset)


def peel(base: Value, offset: int) -> tuple[Value, int]:
    """Moves constant summands from the base to the offset while it fits 24 signed bits."""
    while base.op.name in ("add64", "iadd") and base.op.amods == ["", ""]:
        c = base.op.args[1].const
        if c is None:
            break
        total = offset + signed(c, 32 * base.width)
        if not -(1 << 23) <= total < 1 << 23:
            break
        base, offset = base.op.args[0], total
    return base, offset


def generic_address(lo: Lowering, v: Value, space: str) -> Value:
    """From an address in a space to the generic one."""
    from sassay.isel.special import system_register

    b = lo.b
    if space in ("global", ""):
        return v
    if space == "shared":
        return b.pack(lo.resize(v, 1), system_register(lo, "SR_SWINHI"))
    if space == "local":
        window = lo.graph.leaf("param", 2, 0, lo.target.constants.local_window)
        return b.add64(window, b.zext(lo.resize(v, 1)))
    raise lo.unsupported(f"generic address of {space} memory")


@rule("cvta")
def lower_cvta(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    source = s.operands[1]
    space = next(m.split("::")[0] for m in s.modifiers if m != "to" and m != type_)
    v = lo.src(source, type_)
    if isinstance(source, ptx.AddressOperand) and source.base is not None and not isinstance(source.base, ptx.Variable):
        v = b.add64(lo.read(source.base), b.const(source.offset, 2))
    if "to" in s.modifiers:
        if space == "local":
            v = b.zext(b.isub(b.lo(v), lo.graph.leaf("param", 1, 0, lo.target.constants.local_window)))
        elif space == "shared":
            v = b.zext(b.lo(v))
        elif space != "global":
            raise lo.unsupported(f"{space} space")
        lo.dst(s.operands[0], v)
        return
    if space in ("const", "param"):
        symbol = source.symbol if isinstance(source, ptx.SymbolOperand) else None
        if space == "const" and isinstance(symbol, ptx.Variable):
            v = lo.graph.leaf("param", 2, 4, address_slot(lo, symbol.name))
            lo.dst(s.operands[0], b.add64(v, b.const(source.offset, 2)))  # type: ignore[union-attr]
            return
        raise lo.unsupported(f"generic address of {space} memory")
    lo.dst(s.operands[0], generic_address(lo, v, space))


@rule("isspacep")
def lower_isspacep(lo: Lowering, s: ptx.Instruction) -> None:
    """QSPC asks which window a generic address is in (read from ptxas output, which for global adds comparisons that are always false)."""
    b = lo.b
    space = s.modifiers[0].split("::")[0]
    v = lo.src(s.operands[1], "b64")
    letter = {"shared": "S", "local": "L", "global": "G"}.get(space)
    if letter is None or s.modifiers[0] == "shared::cluster":
        raise lo.unsupported()
    lo.dst(s.operands[0], b.op("QSPC", [v], 0, mods=("E", letter)))
