"""Scalar video instructions (ISA section "Scalar Video Instructions"): parts of words added, compared or shifted, then saturated and combined.

vmad, shifts and the packed forms (vadd2, vadd4 and their kin) have no definition here, nor have a third source with .sat, .min or .max: the code of
ptxas 13.5 for those does something else than the ISA's text. All others agree with it on 500 random instructions.
"""

from __future__ import annotations

from sassay.ptx.ast import RegOperand
from sassay.ptx.semantics.compiled import Context, Getter, Values, defines
from sassay.ptx.semantics.logic import comparison

WIDE = 34
"""Bits that hold any sum or difference of two 32-bit values, signed or not."""


def _part(component: str) -> tuple[int, int]:
    """Lowest bit and width of a selected part: .b0 to .b3, .h0, .h1, or the whole word."""
    if not component:
        return 0, 32
    width = {"b": 8, "h": 16}[component[0]]
    return int(component[1:]) * width, width


def _source(c: Context, position: int, type_: str) -> Getter:
    """A part of a source, extended by the type's sign to WIDE bits."""
    alg, operand = c.alg, c.operands[position]
    extend = alg.sext if type_.startswith("s") else alg.zext
    low, width = 0, 32
    if isinstance(operand, RegOperand) and operand.component:
        low, width = _part(operand.component)
        operand = RegOperand(operand.register)
    whole = c.leaf(operand, 32)
    return lambda v: extend(alg.extract(whole(v), low + width - 1, low, 32), width, WIDE)


@defines("vadd", "vsub", "vabsdiff", "vmin", "vmax")
def arithmetic(c: Context) -> None:
    alg, opcode = c.alg, c.instruction.opcode
    x, y = _source(c, 1, c.types[1]), _source(c, 2, c.types[2])

    def value(v: Values) -> object:
        a, b = x(v), y(v)
        if opcode in ("vadd", "vsub"):
            return (alg.add if opcode == "vadd" else alg.sub)(a, b, WIDE)
        less = alg.slt(a, b, WIDE)
        if opcode == "vabsdiff":
            return alg.ite(less, alg.sub(b, a, WIDE), alg.sub(a, b, WIDE), WIDE)
        return alg.ite(less, a, b, WIDE) if opcode == "vmin" else alg.ite(less, b, a, WIDE)

    _finish(c, value, c.types[0])


@defines("vabsdiff2", "vabsdiff4")
def packed_difference(c: Context) -> None:
    """Absolute differences part by part over whole words; .add sums them on top of the third source."""
    alg, count = c.alg, int(c.instruction.opcode[-1])
    width = 32 // count
    registers = all(not (isinstance(o, RegOperand) and o.component) for o in c.operands)
    if c.flags - {"add"} - set(c.types) or not registers or len(set(c.types[1:])) != 1 or c.types[0] != "u32":
        raise c.unsupported("parts, saturation or mixed signs")
    extend = alg.sext if c.types[1] == "s32" else alg.zext
    x, y, z = (c.leaf(o, 32) for o in c.operands[1:4])
    zero = alg.const(0, 32)

    def differences(v: Values) -> list[object]:
        out: list[object] = []
        for k in range(count):
            a, b = (extend(alg.extract(s(v), k * width + width - 1, k * width, 32), width, 32) for s in (x, y))
            out.append(alg.ite(alg.slt(a, b, 32), alg.sub(b, a, 32), alg.sub(a, b, 32), 32))
        return out

    def total(v: Values) -> object:
        value = z(v)
        for part in differences(v):
            value = alg.add(value, part, 32)
        return value

    def packed(v: Values) -> object:
        value = zero
        for k, part in enumerate(differences(v)):
            value = alg.or_(value, _placed(c, alg.extract(part, width - 1, 0, 32), k * width, width), 32)
        return value

    c.result(total if "add" in c.flags else packed, width=32, signed=False)


@defines("vset")
def comparison_value(c: Context) -> None:
    """1 where the comparison holds, else 0."""
    alg = c.alg
    x, y = _source(c, 1, c.types[0]), _source(c, 2, c.types[1])
    relation = c.pick("eq", "ne", "lt", "le", "gt", "ge")
    test = comparison(c, x, y, relation, "s", WIDE)
    _finish(c, lambda v: alg.zext(test(v), 1, WIDE), "u32")


def _finish(c: Context, value: Getter, type_: str) -> None:
    """Saturate to the destination part's range, then combine with the third source, or put the part into it."""
    alg = c.alg
    destination = c.operands[0]
    if not isinstance(destination, RegOperand):
        raise c.unsupported(f"destination {destination!r}")
    low, width = _part(destination.component)
    signed = type_.startswith("s")
    tmp = _clamped(c, value, width, signed) if "sat" in c.flags else lambda v: alg.extract(value(v), width - 1, 0, WIDE)
    target = RegOperand(destination.register)
    if len(c.operands) < 4:
        if destination.component:
            raise c.unsupported(f"part .{destination.component} without a third source")
        c.assign(target, tmp, 32)
        return
    if c.flags & {"sat", "min", "max"}:
        raise c.unsupported("a third source with .sat, .min or .max")
    third = c.leaf(c.operands[3], 32)
    if "add" in c.flags:
        extend = alg.sext if signed else alg.zext
        c.assign(target, lambda v: alg.add(extend(tmp(v), width, 32), third(v), 32), 32)
        return
    mask = ((1 << width) - 1) << low
    c.assign(target, lambda v: alg.or_(alg.and_(third(v), alg.const(~mask, 32), 32), _placed(c, tmp(v), low, width), 32), 32)


def _placed(c: Context, part: object, low: int, width: int) -> object:
    return c.alg.shl(c.alg.zext(part, width, 32), c.alg.const(low, 32), 32)


def _clamped(c: Context, value: Getter, width: int, signed: bool) -> Getter:
    alg = c.alg
    least = alg.const(-(1 << width - 1) if signed else 0, WIDE)
    most = alg.const((1 << width - 1) - 1 if signed else (1 << width) - 1, WIDE)

    def clamp(v: Values) -> object:
        x = value(v)
        x = alg.ite(alg.slt(x, least, WIDE), least, x, WIDE)
        return alg.extract(alg.ite(alg.slt(most, x, WIDE), most, x, WIDE), width - 1, 0, WIDE)

    return clamp
