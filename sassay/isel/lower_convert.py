"""Comparisons, selections and conversions."""

from __future__ import annotations

from sassay.isel import float_templates as ft
from sassay.isel.build import Lowering, rule
from sassay.isel.float_templates import fcmp
from sassay.isel.ir import Value
from sassay.isel.lower_float import half_operand
from sassay.isel.lower_int import bits_of, is_float, is_signed
from sassay.isel.numbers import NEGATED
from sassay.ptx import ast as ptx

INT_CMP = {"eq": ("EQ", None), "ne": ("NE", None), "lt": ("LT", None), "le": ("LE", None), "gt": ("GT", None), "ge": ("GE", None),
           "lo": ("LT", False), "ls": ("LE", False), "hi": ("GT", False), "hs": ("GE", False)}  # fmt: skip
FLOAT_CMP = {c: c.upper() for c in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")}
FLOAT_NEGATED = {"EQ": "NEU", "NE": "EQU", "LT": "GEU", "LE": "GTU", "GT": "LEU", "GE": "LTU", "NUM": "NAN"}
FLOAT_NEGATED |= {v: k for k, v in FLOAT_NEGATED.items()}
LUTS = {"AND": 0xC0, "OR": 0xFC, "XOR": 0x3C}


def combine(lo: Lowering, p: Value, q: Value | None, op: str) -> Value:
    return p if q is None else lo.b.plop(p, q, lo.b.true(), LUTS[op])


def compare(lo: Lowering, s: ptx.Instruction, type_: str) -> tuple[Value, Value]:
    """The comparison of the first two sources of setp/set, and its negation, without the third operand."""
    b = lo.b
    code = s.modifiers[0]
    if is_float(type_):
        cmp = FLOAT_CMP[code]
        x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
        if type_ in ("f32", "f64"):
            name = "FSETP" if type_ == "f32" else "DSETP"
            ftz = ("FTZ",) if "ftz" in s.modifiers and type_ == "f32" else ()
            return (b.op(name, [x, y, b.true()], 0, mods=(cmp, *ftz, "AND")), b.op(name, [x, y, b.true()], 0, mods=(FLOAT_NEGATED[cmp], *ftz, "AND")))
        (u, su), (v, sv) = half_operand(x, True), half_operand(y, True)
        pre = (("BF16_V2",) if type_ == "bf16" else ())
        ftz = ("FTZ",) if "ftz" in s.modifiers and type_ == "f16" else ()
        made = [b.ops("HSETP2", [u, v, b.true()], (0, 0), mods=(*pre, c, *ftz, "AND"), amods=[su, sv, ""])[0] for c in (cmp, FLOAT_NEGATED[cmp])]
        return made[0], made[1]
    cmp, forced = INT_CMP[code]
    sign = is_signed(type_) if forced is None else forced
    if type_ == "pred":
        x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
        p = b.pxor(x, y) if cmp == "NE" else b.pnot(b.pxor(x, y))
        return p, b.pnot(p)
    x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
    if x.width == 2:
        return b.icmp64(cmp, x, y, sign), b.icmp64(NEGATED[cmp], x, y, sign)
    x, y = b.extend(x, bits_of(type_), sign), b.extend(y, bits_of(type_), sign)
    return b.icmp(cmp, x, y, sign), b.icmp(NEGATED[cmp], x, y, sign)


def third(lo: Lowering, s: ptx.Instruction) -> tuple[Value | None, str]:
    """The predicate that a setp or set combines with, and how."""
    if len(s.operands) < 4:
        return None, "AND"
    op = next(m for m in s.modifiers if m in ("and", "or", "xor"))
    return lo.src(s.operands[3], "pred"), op.upper()


@rule("setp")
def lower_setp(lo: Lowering, s: ptx.Instruction) -> None:
    type_ = s.modifiers[-1]
    target = s.operands[0]
    q, op = third(lo, s)
    if type_.endswith("x2"):
        if not isinstance(target, ptx.PairOperand):
            raise lo.unsupported()
        x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
        pre = ("BF16_V2",) if type_ == "bf16x2" else ()
        pair = lo.b.ops("HSETP2", [x, y, lo.b.true()], (0, 0), mods=(*pre, FLOAT_CMP[s.modifiers[0]], "AND"))
        lo.dst(target.first, combine(lo, pair[0], q, op))
        lo.dst(target.second, combine(lo, pair[1], q, op))
        return
    yes, no = compare(lo, s, type_)
    if isinstance(target, ptx.PairOperand):
        first, second = combine(lo, yes, q, op), combine(lo, no, q, op)
        lo.dst(target.first, first)
        lo.dst(target.second, second)
    else:
        lo.dst(target, combine(lo, yes, q, op))


@rule("set")
def lower_set(lo: Lowering, s: ptx.Instruction) -> None:
    type_, to = s.modifiers[-1], s.modifiers[-2]
    if type_.endswith("x2"):
        if len(s.operands) > 3:
            raise lo.unsupported()
        x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
        mods = (("BF16_V2",) if type_ == "bf16x2" else ()) + (("BF",) if is_float(to) else ()) + (FLOAT_CMP[s.modifiers[0]], "AND")
        lo.dst(s.operands[0], lo.b.op("HSET2", [x, y, lo.b.true()], mods=mods))
        return
    q, op = third(lo, s)
    yes, _ = compare(lo, s, type_)
    p = combine(lo, yes, q, op)
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(to, -1)
    lo.dst(s.operands[0], lo.b.sel(p, lo.b.const(one), lo.b.const(0)))


@rule("selp")
def lower_selp(lo: Lowering, s: ptx.Instruction) -> None:
    type_ = s.modifiers[-1]
    x, y, p = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_), lo.src(s.operands[3], "pred")
    lo.dst(s.operands[0], lo.b.sel(p, x, y))


@rule("slct")
def lower_slct(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_, by = s.modifiers[-2], s.modifiers[-1]
    x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
    c = lo.src(s.operands[3], by)
    p = b.icmp("GE", c, b.const(0), True) if by == "s32" else fcmp(b, "GE", c, 0, ftz="ftz" in s.modifiers)
    lo.dst(s.operands[0], b.sel(p, x, y))


# Conversions -------------------------------------------------------------------------------------------------------------------------------

INT_ROUND = {"rni": (), "rzi": ("TRUNC",), "rmi": ("FLOOR",), "rpi": ("CEIL",)}
FP_ROUND = {"rn": (), "rz": ("RZ",), "rm": ("RM",), "rp": ("RP",)}


def is_int(type_: str) -> bool:
    return type_[0] in "us" and type_[1:].isdigit()


@rule("cvt")
def lower_cvt(lo: Lowering, s: ptx.Instruction) -> None:
    if "pack" in s.modifiers:
        raise lo.unsupported()
    to, of = s.modifiers[-2], s.modifiers[-1]
    if to.endswith("x2") or of.endswith("x2") or to.endswith("x4"):
        v = pack_convert(lo, s, to, of)
    else:
        x = lo.src(s.operands[1], of)
        if is_int(to) and is_int(of):
            v = int_to_int(lo, s, x, to, of)
        elif is_int(to):
            v = float_to_int(lo, s, x, to, of)
        elif is_int(of):
            v = int_to_float(lo, s, x, to, of)
        else:
            v = float_to_float(lo, s, x, to, of)
    if is_int(to) and isinstance(s.operands[0], ptx.RegOperand) and bits_of(to) < s.operands[0].register.bits:
        v = lo.b.extend(lo.resize(v, 1), bits_of(to), is_signed(to))
        if s.operands[0].register.bits == 64:
            v = lo.b.sext(v) if is_signed(to) else lo.b.zext(v)
    lo.dst(s.operands[0], v)


def int_to_int(lo: Lowering, s: ptx.Instruction, x: Value, to: str, of: str) -> Value:
    b = lo.b
    sign = is_signed(of)
    if x.width == 1:
        x = b.extend(x, bits_of(of), sign)
    if "sat" in s.modifiers:
        x = saturate(lo, x, to, of)
    if bits_of(to) == 64:
        return x if x.width == 2 else b.sext(x) if sign else b.zext(x)
    return lo.resize(x, 1)


def saturate(lo: Lowering, x: Value, to: str, of: str) -> Value:
    """Clamps an integer of type `of` to the range of `to`."""
    b = lo.b
    sign = is_signed(of)
    n = bits_of(to)
    low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if is_signed(to) else (0, (1 << n) - 1)
    m = bits_of(of)
    own_low, own_high = (-(1 << (m - 1)), (1 << (m - 1)) - 1) if sign else (0, (1 << m) - 1)
    for bound, largest in ((low, True), (high, False)):
        if (largest and own_low >= bound) or (not largest and own_high <= bound):
            continue
        c = b.const(bound, x.width)
        if x.width == 2:
            x = b.sel(b.icmp64("LT" if largest else "GT", x, c, sign), c, x)
        else:
            x = b.minmax(x, c, sign, largest)
    return x


def float_to_int(lo: Lowering, s: ptx.Instruction, x: Value, to: str, of: str) -> Value:
    b = lo.b
    if of in ("bf16", "tf32"):
        x, of = widen_bf16(lo, x), "f32"
    if of not in ("f16", "f32", "f64"):
        raise lo.unsupported()
    amods = [""]
    if of == "f16":
        x, suffix = half_operand(x, True)
        if suffix == ".H1_H1":
            x = b.shr(x, b.const(16), False)
    kind = "S32" if to in ("s8", "s32") else "U32" if to in ("u8", "u32") else to.upper()
    mods: tuple[str, ...] = ("FTZ",) if "ftz" in s.modifiers and of == "f32" else ()
    mods += () if kind == "S32" else (kind,)
    mods += () if of == "f32" else (of.upper(),)
    mods += next((INT_ROUND[m] for m in s.modifiers if m in INT_ROUND), ())
    mods += () if of == "f64" or bits_of(to) == 64 else ("NTZ",)
    v = b.op("F2I", [x], 2 if bits_of(to) == 64 else 1, mods=mods, amods=amods)
    if bits_of(to) == 8:
        v = saturate(lo, v, to, "s32" if is_signed(to) else "u32")
    return v


def int_to_float(lo: Lowering, s: ptx.Instruction, x: Value, to: str, of: str) -> Value:
    b = lo.b
    sign = is_signed(of)
    mode = next((FP_ROUND[m] for m in s.modifiers if m in FP_ROUND), ())
    if x.width == 1:
        x = b.extend(x, bits_of(of), sign)
    wide = x.width == 2
    if to == "f32" and not wide and mode not in (("RM",), ("RP",)):  # I2FP rounds to nearest or towards zero
        v = b.op("I2FP", [x], 1, mods=("F32", "S32" if sign else "U32", *mode))
    else:
        mods: tuple[str, ...] = () if to == "f32" else (to.upper(),)
        mods += (("S64" if sign else "U64"),) if wide else () if sign else ("U32",)
        v = b.op("I2F", [x], 2 if to == "f64" else 1, mods=mods + mode)
    if "sat" in s.modifiers and to == "f32":
        v = b.op("FADD", [v, b.const(0)], mods=("SAT",))
    return v


def widen_bf16(lo: Lowering, x: Value) -> Value:
    if x.op.name == "half":
        return lo.b.and_(x.op.args[0], lo.b.const(0xFFFF0000))
    return lo.b.shl(x, lo.b.const(16))


def float_to_float(lo: Lowering, s: ptx.Instruction, x: Value, to: str, of: str) -> Value:
    b = lo.b
    m = s.modifiers
    ftz = ("FTZ",) if "ftz" in m else ()
    sat = "sat" in m
    whole = next((INT_ROUND[k] for k in m if k in INT_ROUND), None)
    mode = next((FP_ROUND[k] for k in m if k in FP_ROUND), ())
    if to == of:
        if whole is not None:
            kind = () if to == "f32" else (to.upper(),)
            x = b.op("FRND", [x], x.width, mods=(ftz if to == "f32" else ()) + kind + whole)
        if to == "f32" and (sat or (ftz and whole is None)):
            x = b.op("FADD", [x, b.const(0x80000000)], mods=ftz + (("SAT",) if sat else ()))
        elif sat:
            raise lo.unsupported("saturation")
        return x
    if of == "bf16":
        x, of = widen_bf16(lo, x), "f32"
        if to == "f32":
            return b.op("FADD", [x, b.const(0x80000000)], mods=("SAT",)) if sat else x
    if (to, of) == ("f32", "f16"):
        w, suffix = half_operand(x, True)
        v = b.op("HADD2", [b.const(0), w], 1, mods=("F32",), amods=["-", suffix])
        return b.op("FADD", [v, b.const(0x80000000)], mods=(*ftz, "SAT")) if sat else v
    if to in ("f16", "bf16") and of == "f32":
        if "relu" in m or "satfinite" in m or sat:
            pre = (("SATFINITE",) if "satfinite" in m else ()) + (("RELU",) if "relu" in m else ())
            if sat:
                x = b.op("FADD", [x, b.const(0x80000000)], mods=(*ftz, "SAT"))
        else:
            pre = ()
        if mode in (("RM",), ("RP",)):
            return b.op("F2F", [x], 1, mods=(to.upper(), "F32", *mode))
        return b.op("F2FP", [b.const(0), x], 1, mods=(*pre, to.upper(), "F32", "PACK_AB", *mode))
    if to == "tf32":
        return to_tf32(lo, s, x)
    if "f64" in (to, of):
        if of == "f16":
            w, suffix = half_operand(x, True)
            x = b.shr(w, b.const(16), False) if suffix == ".H1_H1" else w
        if ftz and of == "f32":
            x = ft.flush(b, x)
        v = b.op("F2F", [x], 2 if to == "f64" else 1, mods=(to.upper(), of.upper(), *mode))
        if ftz and to == "f32":
            v = ft.flush(b, v)
        if sat:
            raise lo.unsupported("saturation")
        return v
    raise lo.unsupported()


def to_tf32(lo: Lowering, s: ptx.Instruction, x: Value) -> Value:
    """.rna adds half a unit to the magnitude of finite numbers and clears the low bits (read from ptxas output)."""
    b = lo.b
    if "rna" in s.modifiers and "satfinite" not in s.modifiers:
        odd = fcmp(b, "GEU", x, 0x7F800000, absolute=True)
        return b.and_(b.sel(odd, x, b.iadd(x, b.const(0x1000))), b.const(0xFFFFE000))
    if "rn" in s.modifiers or "rz" in s.modifiers:
        if "relu" in s.modifiers or "satfinite" in s.modifiers:
            raise lo.unsupported()
        return b.op("F2FP", [x], 1, mods=("TF32", "F32", "PACK_B", *(("RZ",) if "rz" in s.modifiers else ())))
    raise lo.unsupported()


NARROW = {"e4m3x2": "E4M3", "e5m2x2": "E5M2", "e2m1x2": "E2M1", "e2m3x2": "E2M3", "e3m2x2": "E3M2", "ue8m0x2": "E8"}
"""Pairs of narrow floats, as F2FP spells them."""


def pack_convert(lo: Lowering, s: ptx.Instruction, to: str, of: str) -> Value:
    """Conversions of or to packed pairs: cvt.rn.f16x2.f32 d, high, low; fp8 pairs."""
    b = lo.b
    m = s.modifiers
    mode = next((FP_ROUND[k] for k in m if k in FP_ROUND), ())
    pre = (("SATFINITE",) if "satfinite" in m else ()) + (("RELU",) if "relu" in m else ())
    if to in ("f16x2", "bf16x2") and of == "f32":
        if mode not in ((), ("RZ",)) or len(s.operands) != 3:
            raise lo.unsupported("rounding")
        x, y = lo.src(s.operands[1], "f32"), lo.src(s.operands[2], "f32")
        return b.op("F2FP", [x, y], 1, mods=(*pre, to[:-2].upper(), "F32", "PACK_AB", *mode))
    if to in NARROW and of == "f32":
        x, y = lo.src(s.operands[1], "f32"), lo.src(s.operands[2], "f32")
        return b.op("F2FP", [x, y, b.const(0)], 1, mods=(*pre, NARROW[to], "F32", "PACK_AB_MERGE_C", *mode))
    if to in ("e4m3x2", "e5m2x2") and of == "f16x2":
        return b.op("F2FP", [lo.src(s.operands[1], "b32"), b.const(0)], 1, mods=(*pre, NARROW[to], "F16", "UNPACK_B_MERGE_C"))
    if to in ("f16x2", "bf16x2") and of in NARROW and not pre:
        return b.op("F2FP", [lo.src(s.operands[1], "b16")], 1, mods=(to[:-2].upper(), NARROW[of], "UNPACK_B"))
    raise lo.unsupported()
