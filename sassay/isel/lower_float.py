"""f32, f64, f16 and bf16 arithmetic, scalar and packed."""

from __future__ import annotations

from sassay.isel import float_templates as ft
from sassay.isel.build import Lowering, rule
from sassay.isel.ir import Value
from sassay.ptx import ast as ptx

ROUNDING = {"rn": (), "rz": ("RZ",), "rm": ("RM",), "rp": ("RP",)}


def float_type(s: ptx.Instruction) -> str:
    return s.modifiers[-1]


def rounding(s: ptx.Instruction) -> tuple[str, ...]:
    for m in s.modifiers:
        if m in ROUNDING:
            return ROUNDING[m]
    return ()


def flags(s: ptx.Instruction) -> tuple[str, ...]:
    """.ftz, rounding and .sat as FADD, FMUL and FFMA spell them, in their order."""
    return (("FTZ",) if "ftz" in s.modifiers else ()) + rounding(s) + (("SAT",) if "sat" in s.modifiers else ())


def stripped(v: Value) -> tuple[Value, str]:
    """A value without a negation that an arithmetic operand can carry, and that modifier."""
    if v.op.name == "fneg":
        return v.op.args[0], "-"
    if v.op.name == "fabs":
        return v.op.args[0], "|"
    return v, ""


def half_flags(s: ptx.Instruction, bf16: bool) -> tuple[str, ...]:
    return (
        (("BF16_V2",) if bf16 else ()) + (("FTZ",) if "ftz" in s.modifiers and not bf16 else ())
        + (("SAT",) if "sat" in s.modifiers else ()) + (("RELU",) if "relu" in s.modifiers else ())
    )  # fmt: skip


def half_operand(v: Value, scalar: bool) -> tuple[Value, str]:
    """A 16-bit operand: a scalar one picks the half of the word that it sits in."""
    if not scalar:
        return v, ""
    if v.op.name == "half":
        return v.op.args[0], ".H1_H1"
    return v, ".H0_H0"


def half_op(
    lo: Lowering, s: ptx.Instruction, name: str, values: list[Value], type_: str, negate: tuple[bool, ...], extra: tuple[str, ...] = (),
) -> Value:  # fmt: skip
    bf16 = type_.startswith("bf16")
    scalar = not type_.endswith("x2")
    args: list[Value] = []
    amods: list[str] = []
    for i, v in enumerate(values):
        if v.width == 0:
            args.append(v)
            amods.append("!" if negate[i] else "")
            continue
        w, suffix = half_operand(v, scalar)
        if scalar and w.const is not None:
            w, suffix = lo.b.const((w.const & 0xFFFF) * 0x10001), ""
        args.append(w)
        amods.append(("-" if i < len(negate) and negate[i] else "") + suffix)
    return lo.b.op(name, args, 1, mods=half_flags(s, bf16) + extra, amods=amods)


@rule("__float_binary")
def lower_float_binary(lo: Lowering, s: ptx.Instruction) -> None:
    """add, sub, mul of floats."""
    b = lo.b
    type_ = float_type(s)
    if len(s.modifiers) >= 2 and s.modifiers[-2] == "f32" and type_ in ("f16", "bf16"):
        lower_mixed(lo, s, type_)
        return
    if type_ == "f32x2":
        lower_f32x2(lo, s)
        return
    x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
    subtract = s.opcode == "sub"
    if type_ == "f64":
        name = "DMUL" if s.opcode == "mul" else "DADD"
        lo.dst(s.operands[0], b.op(name, [x, y], 2, mods=rounding(s), amods=["", "-" if subtract else ""]))
        return
    if type_ == "f32":
        name = "FMUL" if s.opcode == "mul" else "FADD"
        lo.dst(s.operands[0], b.op(name, [x, y], 1, mods=flags(s), amods=["", "-" if subtract else ""]))
        return
    if s.opcode == "mul":
        v = half_op(lo, s, "HMUL2", [x, y], type_, (False, False))
    else:
        v = half_op(lo, s, "HADD2", [x, y], type_, (False, subtract))
    lo.dst(s.operands[0], v)


def lower_mixed(lo: Lowering, s: ptx.Instruction, type_: str) -> None:
    """add, sub, fma of 16-bit floats with an f32 sum, one rounding."""
    b = lo.b
    if not lo.target.has("fhadd") or s.opcode not in ("add", "sub", "fma"):
        raise lo.unsupported("mixed precision")
    count = 2 if s.opcode == "fma" else 1
    halves = [lo.src(o, type_) for o in s.operands[1 : 1 + count]]
    halves = [b.shr(v.op.args[0], b.const(16), False) if v.op.name == "half" else v for v in halves]
    z = lo.src(s.operands[1 + count], "f32")
    mods = (("BF16",) if type_ == "bf16" else ()) + flags(s)
    amods = [""] * count + ["-" if s.opcode == "sub" else ""]
    lo.dst(s.operands[0], b.op("FHFMA" if count == 2 else "FHADD", [*halves, z], 1, mods=mods, amods=amods))


def lower_f32x2(lo: Lowering, s: ptx.Instruction) -> None:
    """Packed f32 pairs, one by one: two independent IEEE operations."""
    b = lo.b
    values = [lo.src(o, "b64") for o in s.operands[1:]]
    mods = flags(s)
    if lo.target.has("ffma2") and s.opcode != "sub":
        name = {"add": "FADD2", "mul": "FMUL2", "fma": "FFMA2"}[s.opcode]
        lo.dst(s.operands[0], b.op(name, values, 2, mods=mods, amods=[".F32x2.HI_LO"] * len(values)))
        return
    parts: list[Value] = []
    for i in range(2):
        args = [b.part(v, i) for v in values]
        if s.opcode == "fma":
            parts.append(b.op("FFMA", args, mods=mods))
        elif s.opcode == "mul":
            parts.append(b.op("FMUL", args, mods=mods))
        else:
            parts.append(b.op("FADD", args, mods=mods, amods=["", "-" if s.opcode == "sub" else ""]))
    lo.dst(s.operands[0], b.pack(*parts))


@rule("fma")
def lower_fma(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = float_type(s)
    if type_ == "f32x2":
        lower_f32x2(lo, s)
        return
    if len(s.modifiers) >= 2 and s.modifiers[-2] == "f32" and type_ in ("f16", "bf16"):
        lower_mixed(lo, s, type_)
        return
    if "oob" in s.modifiers:
        raise lo.unsupported("out-of-bounds NaN")
    values = [lo.src(o, type_) for o in s.operands[1:]]
    if type_ == "f64":
        v = b.op("DFMA", values, 2, mods=rounding(s))
    elif type_ == "f32":
        v = b.op("FFMA", values, 1, mods=flags(s))
    else:
        v = half_op(lo, s, "HFMA2", values, type_, (False, False, False))
    lo.dst(s.operands[0], v)


def lower_float_unary(lo: Lowering, s: ptx.Instruction) -> None:
    """neg and abs: additions of -0 that carry the sign change, as ptxas does."""
    b = lo.b
    type_ = float_type(s)
    x = lo.src(s.operands[1], type_)
    sign = "-" if s.opcode == "neg" else "|"
    if type_ == "f64":
        v = b.op("fneg64" if sign == "-" else "fabs64", [x], 2)
    elif type_ == "f32":
        if "ftz" in s.modifiers:
            v = b.op("FADD", [x, b.const(0x80000000)], 1, mods=("FTZ",), amods=[sign, ""])
        else:
            v = b.op("fneg" if sign == "-" else "fabs", [x])
    else:
        w, suffix = half_operand(x, not type_.endswith("x2"))
        zero = b.const(0)
        if type_.startswith("bf16"):
            v = b.op("HFMA2", [zero, zero, w], 1, mods=("BF16_V2",), amods=["-.H0_H0", ".H0_H0", sign + suffix])
        else:
            v = b.op("HADD2", [w, zero], 1, mods=("FTZ",) if "ftz" in s.modifiers else (), amods=[sign + suffix, "-.H0_H0"])
    lo.dst(s.operands[0], v)


def lower_float_minmax(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = float_type(s)
    values = [lo.src(o, type_) for o in s.operands[1:]]
    which = b.false() if s.opcode == "max" else b.true()
    if type_ == "f64":
        lo.dst(s.operands[0], ft.minmax64(b, values[0], values[1], s.opcode == "max"))
        return
    nan = ("NAN",) if "NaN" in s.modifiers else ()
    xor = ("XORSIGN",) if any(m.startswith("xorsign") for m in s.modifiers) else ()
    if type_ == "f32":
        mods = (("FTZ",) if "ftz" in s.modifiers else ()) + nan + xor
        bars = "|" if "abs" in s.modifiers else ""
        v = values[0]
        if len(values) == 3 and lo.target.has("fmnmx3") and not xor:
            lo.dst(s.operands[0], b.op("FMNMX3", [*values, which], 1, mods=mods, amods=[bars] * 3 + [""]))
            return
        for y in values[1:]:
            v = b.op("FMNMX", [v, y, which], 1, mods=mods, amods=[bars, bars, ""])
        lo.dst(s.operands[0], v)
        return
    if xor:
        raise lo.unsupported("xorsign of halves")
    lo.dst(s.operands[0], half_op(lo, s, "HMNMX2", [*values, which], type_, (False, False, False), nan + xor))


@rule("copysign")
def lower_copysign(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = float_type(s)
    sign, magnitude = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
    top = b.lop3(b.part(magnitude, magnitude.width - 1), b.const(0x7FFFFFFF), b.part(sign, sign.width - 1), 0xE2)
    lo.dst(s.operands[0], top if type_ == "f32" else b.pack(b.lo(magnitude), top))


def lower_float_div(lo: Lowering, s: ptx.Instruction) -> None:
    type_ = float_type(s)
    guard, lo.b.guard = lo.b.guard, None
    x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
    ftz = "ftz" in s.modifiers
    if type_ == "f64":
        if "rn" not in s.modifiers:
            raise lo.unsupported("rounding mode")
        v = ft.divide64(lo, x, y)
    elif "full" in s.modifiers:
        v = ft.divide_full(lo.b, x, y, ftz)
    elif "approx" in s.modifiers:
        v = ft.divide_approx(lo.b, x, y, ftz)
    elif "rn" in s.modifiers:
        v = ft.divide32(lo, x, y, ftz)
    else:
        v = ft.directed32(lo, "div", x, y, directed(s), ftz)
    lo.b.guard = guard
    lo.dst(s.operands[0], v)


def directed(s: ptx.Instruction) -> str:
    """The rounding mode other than to nearest that an instruction names, as SASS spells it."""
    return next(m.upper() for m in s.modifiers if m in ("rz", "rm", "rp"))


@rule("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def lower_transcendental(lo: Lowering, s: ptx.Instruction) -> None:
    type_ = float_type(s)
    b = lo.b
    guard, b.guard = b.guard, None
    x = lo.src(s.operands[1], type_)
    ftz = "ftz" in s.modifiers
    if type_ == "f64":
        if s.opcode == "rsqrt" and not ftz:
            v = ft.inverse_root64(b, x)
        elif "approx" in s.modifiers:
            v = b.pack(b.const(0), b.op("MUFU", [b.hi(x)], mods=({"rcp": "RCP64H", "rsqrt": "RSQ64H"}[s.opcode],)))
        elif "rn" in s.modifiers and s.opcode == "rcp":
            v = ft.reciprocal64(lo, x)
        elif "rn" in s.modifiers and s.opcode == "sqrt":
            v = ft.sqrt64(lo, x)
        else:
            raise lo.unsupported()
    elif type_ == "f32":
        if "approx" in s.modifiers:
            v = ft.approximate(b, s.opcode, x, ftz)
        elif "rn" in s.modifiers and s.opcode == "rcp":
            v = ft.divide32(lo, b.const(0x3F800000), x, ftz)
        elif "rn" in s.modifiers and s.opcode == "sqrt":
            v = ft.sqrt32(lo, x, ftz)
        elif s.opcode == "rcp":
            v = ft.directed32(lo, "div", b.const(0x3F800000), x, directed(s), ftz)
        elif s.opcode == "sqrt":
            v = ft.directed32(lo, "sqrt", x, x, directed(s), ftz)
        else:
            raise lo.unsupported()
    elif s.opcode in ("ex2", "tanh"):
        kind = "BF16" if type_.startswith("bf16") else "F16"
        name = s.opcode.upper()
        if type_.endswith("x2"):
            v = b.prmt(b.op("MUFU", [x], mods=(name, kind)), 0x5410, b.op("MUFU", [x], mods=(name, kind), amods=[".H1"]))
        elif x.op.name == "half":
            v = b.op("MUFU", [x.op.args[0]], mods=(name, kind), amods=[".H1"])
        else:
            v = b.op("MUFU", [x], mods=(name, kind))
    else:
        raise lo.unsupported()
    b.guard = guard
    lo.dst(s.operands[0], v)


@rule("testp")
def lower_testp(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    kind, type_ = s.modifiers[0], s.modifiers[-1]
    x = lo.src(s.operands[1], type_)
    top = b.part(x, x.width - 1)
    inf, smallest = (0x7F800000, 0x00800000) if type_ == "f32" else (0x7FF00000, 0x00100000)
    magnitude = b.and_(top, b.const(0x7FFFFFFF))
    rest = b.const(0) if x.width == 1 else b.lo(x)
    if kind in ("infinite", "number", "notanumber"):
        whole, limit = (magnitude, b.const(inf)) if x.width == 1 else (b.pack(rest, magnitude), b.const(inf << 32, 2))
        cmp = {"infinite": "EQ", "number": "LE", "notanumber": "GT"}[kind]
        p = b.icmp(cmp, whole, limit, False) if x.width == 1 else b.icmp64(cmp, whole, limit, False)
    elif kind == "finite":
        p = b.icmp("LT", magnitude, b.const(inf), False)
    elif kind in ("normal", "subnormal"):
        zero = b.icmp("EQ", b.or_(magnitude, rest), b.const(0), False)
        if kind == "normal":
            p = b.pand(b.icmp("GE", magnitude, b.const(smallest), False), b.icmp("LT", magnitude, b.const(inf), False))
            p = b.por(p, zero)
        else:
            p = b.pand(b.icmp("LT", magnitude, b.const(smallest), False), b.pnot(zero))
    else:
        raise lo.unsupported()
    lo.dst(s.operands[0], p)
