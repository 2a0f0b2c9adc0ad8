"""Integer arithmetic, logic, shifts and bit fields, 16 to 64 bits, with carries."""

from __future__ import annotations

from sassay.isel import templates
from sassay.isel.build import Lowering, rule
from sassay.isel.ir import Value
from sassay.isel.numbers import LUT_A, LUT_B
from sassay.ptx import ast as ptx

FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "f32x2", "tf32")


def is_float(type_: str) -> bool:
    return type_ in FLOATS


def bits_of(type_: str) -> int:
    return ptx.TYPE_BITS[type_]


def is_signed(type_: str) -> bool:
    return type_.startswith("s")


def operands(lo: Lowering, s: ptx.Instruction, type_: str) -> list[Value]:
    return [lo.src(o, type_) for o in s.operands[1:]]


def widened(lo: Lowering, v: Value, type_: str) -> Value:
    """A value of up to 32 bits with meaningful upper bits."""
    return lo.b.extend(v, bits_of(type_), is_signed(type_))


@rule("mov")
def lower_mov(lo: Lowering, s: ptx.Instruction) -> None:
    type_ = s.modifiers[-1]
    source, target = s.operands[1], s.operands[0]
    if isinstance(source, ptx.VectorOperand) and isinstance(target, ptx.VectorOperand):
        for t, e in zip(target.elements, source.elements, strict=True):
            lo.dst(t, lo.src(e, type_))
        return
    if isinstance(source, ptx.VectorOperand):
        lo.dst(target, lo.vector(source, type_))
        return
    lo.dst(target, lo.src(source, type_))


@rule("add", "sub")
def lower_add(lo: Lowering, s: ptx.Instruction) -> None:
    from sassay.isel.lower_float import lower_float_binary

    type_ = s.modifiers[-1]
    if any(is_float(m) for m in s.modifiers):
        lower_float_binary(lo, s)
        return
    if type_.endswith("x2"):
        lower_packed16(lo, s)
        return
    b = lo.b
    x, y = operands(lo, s, type_)
    subtract = s.opcode == "sub"
    if "cc" in s.modifiers:
        lo.dst(s.operands[0], carry_chain(lo, x, y, subtract, None, True))
        return
    if "sat" in s.modifiers:
        wide = (b.sub64 if subtract else b.add64)(b.sext(x), b.sext(y))
        lo.dst(s.operands[0], clamp64(lo, wide))
        return
    if bits_of(type_) == 64:
        lo.dst(s.operands[0], (b.sub64 if subtract else b.add64)(x, y))
    else:
        lo.dst(s.operands[0], (b.isub if subtract else b.iadd)(x, y))


def clamp64(lo: Lowering, v: Value) -> Value:
    """A signed 64-bit number clamped to s32."""
    b = lo.b
    top, bottom = b.const(0x7FFFFFFF, 2), b.const(-(1 << 31), 2)
    v = b.sel(b.icmp64("GT", v, top, True), top, v)
    return b.lo(b.sel(b.icmp64("LT", v, bottom, True), bottom, v))


def lower_packed16(lo: Lowering, s: ptx.Instruction) -> None:
    """add, min, max, neg of two 16-bit integers in a word, half by half."""
    b = lo.b
    type_ = s.modifiers[-1]
    one = type_[:-2]
    words = operands(lo, s, type_)
    if s.opcode == "add":
        lo.dst(s.operands[0], b.op("VIADD", words, mods=("16x2",)))
        return
    if s.opcode in ("min", "max") and "relu" not in s.modifiers:
        lo.dst(s.operands[0], b.op("minmax16", words, attr=(is_signed(one), s.opcode == "max")))
        return
    halves: list[Value] = []
    for i in range(2):
        parts = [lo.half(w, i) for w in words]
        if s.opcode == "sub":
            halves.append(b.isub(parts[0], parts[1]))
        elif s.opcode in ("min", "max"):
            x, y = (widened(lo, p, one) for p in parts)
            least = b.minmax(x, y, is_signed(one), s.opcode == "max")
            halves.append(b.minmax(least, b.const(0), True, True))
        elif s.opcode == "neg":
            halves.append(b.ineg(parts[0]))
        else:
            raise lo.unsupported()
    lo.dst(s.operands[0], lo.pair16(halves[0], halves[1]))


CARRY = "carry flag"


def carry_chain(lo: Lowering, x: Value, y: Value, subtract: bool, carry_in: Value | None, out: bool) -> Value:
    """x + y + carry or x + ~y + carry of 32 or 64 bits; the new carry goes to the flag when `out`. After a difference the flag means 'no borrow',
    and an addition that reads it then adds that, as ptxas's code does."""
    b = lo.b
    words: list[Value] = []
    carry = carry_in
    for i in range(x.width):
        args = [b.part(x, i), b.part(y, i)] + ([carry] if carry is not None else [])
        mods = ["", ("~" if carry is not None else "-") if subtract else ""] + ([""] if carry is not None else [])
        word, carry = b.ops("addc", args, (1, 0), amods=mods)
        words.append(word)
    assert carry is not None
    if out:
        lo.write(CARRY, carry)
    return b.pack(*words)


def carry_flag(lo: Lowering) -> Value:
    return lo.read_slot(CARRY, 0)


@rule("addc", "subc")
def lower_addc(lo: Lowering, s: ptx.Instruction) -> None:
    x, y = operands(lo, s, s.modifiers[-1])
    lo.dst(s.operands[0], carry_chain(lo, x, y, s.opcode == "subc", carry_flag(lo), "cc" in s.modifiers))


@rule("mul", "mad", "mul24", "mad24")
def lower_mul(lo: Lowering, s: ptx.Instruction) -> None:
    from sassay.isel.lower_float import lower_float_binary, lower_fma

    type_ = s.modifiers[-1]
    if any(is_float(m) for m in s.modifiers):
        (lower_float_binary if s.opcode == "mul" else lower_fma)(lo, s)
        return
    b = lo.b
    sign = is_signed(type_)
    x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
    if s.opcode.endswith("24"):
        x, y = b.extend(x, 24, sign), b.extend(y, 24, sign)
        if "hi" in s.modifiers:
            w = b.mulw(x, y, sign)
            v = b.funnel("R", "U32", b.lo(w), b.const(16), b.hi(w), False, False)
        else:
            v = b.imul(x, y)
    elif "wide" in s.modifiers:
        if bits_of(type_) == 16:
            v = b.imul(widened(lo, x, type_), widened(lo, y, type_))
        elif bits_of(type_) == 32:
            v = b.mulw(x, y, sign)
        else:
            raise lo.unsupported()
    elif "hi" in s.modifiers:
        if bits_of(type_) == 16:
            v = b.shr(b.imul(widened(lo, x, type_), widened(lo, y, type_)), b.const(16), sign)
        elif bits_of(type_) == 32:
            v = b.mulhi(x, y, sign)
        else:
            v = templates.mulhi64(b, x, y, sign)
    else:
        v = b.mul64(x, y) if bits_of(type_) == 64 else b.imul(x, y)
    if s.opcode.startswith("mad"):
        z = lo.src(s.operands[3], type_ if "wide" not in s.modifiers else type_[0] + str(2 * bits_of(type_)))
        if "sat" in s.modifiers:
            v = clamp64(lo, b.add64(b.sext(v), b.sext(z)))
        elif "cc" in s.modifiers:
            v = carry_chain(lo, v, z, False, None, True)
        else:
            v = b.add64(v, z) if v.width == 2 else b.iadd(v, z)
    lo.dst(s.operands[0], v)


@rule("madc")
def lower_madc(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    x, y, z = operands(lo, s, type_)
    sign = is_signed(type_)
    if bits_of(type_) == 64:
        v = templates.mulhi64(b, x, y, sign) if "hi" in s.modifiers else b.mul64(x, y)
    else:
        v = b.mulhi(x, y, sign) if "hi" in s.modifiers else b.imul(x, y)
    lo.dst(s.operands[0], carry_chain(lo, v, z, False, carry_flag(lo), "cc" in s.modifiers))


@rule("div", "rem")
def lower_div(lo: Lowering, s: ptx.Instruction) -> None:
    from sassay.isel.lower_float import lower_float_div

    type_ = s.modifiers[-1]
    if is_float(type_):
        lower_float_div(lo, s)
        return
    b = lo.b
    guard, b.guard = b.guard, None
    x, y = operands(lo, s, type_)
    sign = is_signed(type_)
    if bits_of(type_) == 64:
        q, r = templates.divide64(lo, x, y, sign)
    else:
        q, r = templates.divide32(b, widened(lo, x, type_), widened(lo, y, type_), sign)
    b.guard = guard
    lo.dst(s.operands[0], q if s.opcode == "div" else r)


@rule("neg", "abs")
def lower_neg(lo: Lowering, s: ptx.Instruction) -> None:
    from sassay.isel.lower_float import lower_float_unary

    type_ = s.modifiers[-1]
    if is_float(type_):
        lower_float_unary(lo, s)
        return
    if type_.endswith("x2"):
        lower_packed16(lo, s)
        return
    b = lo.b
    (x,) = operands(lo, s, type_)
    if s.opcode == "neg":
        v = templates.negate64(b, x) if x.width == 2 else b.ineg(x)
    elif x.width == 2:
        v = templates.abs64(b, x)
    else:
        v = b.op("IABS", [widened(lo, x, type_)])
    lo.dst(s.operands[0], v)


@rule("min", "max")
def lower_minmax(lo: Lowering, s: ptx.Instruction) -> None:
    from sassay.isel.lower_float import lower_float_minmax

    type_ = s.modifiers[-1]
    if is_float(type_):
        lower_float_minmax(lo, s)
        return
    if type_.endswith("x2"):
        lower_packed16(lo, s)
        return
    b = lo.b
    values = operands(lo, s, type_)
    largest = s.opcode == "max"
    v = values[0] if values[0].width == 2 else widened(lo, values[0], type_)
    for y in values[1:]:
        if y.width == 2:
            v = b.sel(b.icmp64("GT" if largest else "LT", v, y, is_signed(type_)), v, y)
        else:
            v = b.minmax(v, widened(lo, y, type_), is_signed(type_), largest)
    if "relu" in s.modifiers:
        v = b.minmax(v, b.const(0), True, True)
    lo.dst(s.operands[0], v)


LOGIC = {"and": LUT_A & LUT_B, "or": LUT_A | LUT_B, "xor": LUT_A ^ LUT_B}


@rule("and", "or", "xor")
def lower_logic(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    x, y = operands(lo, s, type_)
    lut = LOGIC[s.opcode]
    if type_ == "pred":
        v = b.plop(x, y, b.true(), lut)
    else:
        v = b.bit64(x, y, lut) if x.width == 2 else b.lop3(x, y, b.const(0), lut)
    lo.dst(s.operands[0], v)


@rule("not", "cnot")
def lower_not(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    (x,) = operands(lo, s, type_)
    if s.opcode == "cnot":
        zero = b.icmp64("EQ", x, b.const(0, 2), False) if x.width == 2 else b.icmp("EQ", b.zext_bits(x, bits_of(type_)), b.const(0), False)
        v = b.sel(zero, b.const(1, x.width), b.const(0, x.width))
    elif type_ == "pred":
        v = b.pnot(x)
    else:
        v = b.pack(*(b.not_(b.part(x, i)) for i in range(x.width)))
    lo.dst(s.operands[0], v)


@rule("lop3")
def lower_lop3(lo: Lowering, s: ptx.Instruction) -> None:
    lut = s.operands[4]
    if not isinstance(lut, ptx.IntOperand) or s.modifiers != ("b32",):
        raise lo.unsupported()
    x, y, z = (lo.src(o, "b32") for o in s.operands[1:4])
    lo.dst(s.operands[0], lo.b.lop3(x, y, z, lut.value & 0xFF))


@rule("shl", "shr")
def lower_shift(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    x, n = lo.src(s.operands[1], type_), lo.src(s.operands[2], "u32")
    sign = is_signed(type_)
    if x.width == 2:
        v = b.shl64(x, n) if s.opcode == "shl" else b.shr64(x, n, sign)
    elif s.opcode == "shl":
        v = b.shl(x, n)
    else:
        v = b.shr(widened(lo, x, type_), n, sign)
    lo.dst(s.operands[0], v)


@rule("shf")
def lower_shf(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    low, high, n = operands(lo, s, "b32")
    wrap = "wrap" in s.modifiers
    if s.modifiers[0] == "l":
        v = b.funnel("L", "U32", low, n, high, wrap, True)
    else:
        v = b.funnel("R", "U32", low, n, high, wrap, False)
    lo.dst(s.operands[0], v)


@rule("prmt")
def lower_prmt(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    x, y, sel = operands(lo, s, "b32")
    mode = [m.upper() for m in s.modifiers if m != "b32"]
    lo.dst(s.operands[0], b.op("PRMT", [x, sel, y], mods=tuple(mode)) if mode else b.prmt(x, sel, y))


@rule("bfe")
def lower_bfe(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    sign = is_signed(type_)
    x, pos, length = lo.src(s.operands[1], type_), lo.src(s.operands[2], "u32"), lo.src(s.operands[3], "u32")
    pos, length = b.and_(pos, b.const(0xFF)), b.and_(length, b.const(0xFF))
    if x.width == 2:
        v = b.shr64(x, pos, sign)
        spare = b.minmax(b.isub(b.const(64), length), b.const(0), True, True)
        v = b.shr64(b.shl64(v, spare), spare, sign)
    else:
        v = b.shr(x, pos, sign)
        if length.const is not None and length.const == 0:
            v = b.const(0)
        elif length.const is not None and length.const < 32:
            v = b.extend(v, length.const, sign)
        elif length.const is None:
            v = b.op("SGXT", [v, length], mods=() if sign else ("U32",))
    lo.dst(s.operands[0], v)


@rule("bfi")
def lower_bfi(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    x, y = lo.src(s.operands[1], type_), lo.src(s.operands[2], type_)
    pos, length = lo.src(s.operands[3], "u32"), lo.src(s.operands[4], "u32")
    pos, length = b.and_(pos, b.const(0xFF)), b.and_(length, b.const(0xFF))
    if x.width == 1:
        if pos.const is not None and length.const is not None:
            mask = b.const((((1 << length.const) - 1) << pos.const) & 0xFFFFFFFF)
        else:
            mask = b.op("BMSK", [pos, length])
        v = b.lop3(b.shl(x, pos), mask, y, 0xE2)
    else:
        ones = b.const(-1, 2)
        mask = b.shl64(b.bit64(ones, b.shl64(ones, length), LUT_A ^ LUT_B), pos)
        moved = b.shl64(x, pos)
        v = b.pack(*(b.lop3(b.part(moved, i), b.part(mask, i), b.part(y, i), 0xE2) for i in range(2)))
    lo.dst(s.operands[0], v)


@rule("bmsk")
def lower_bmsk(lo: Lowering, s: ptx.Instruction) -> None:
    x, y = operands(lo, s, "b32")
    lo.dst(s.operands[0], lo.b.op("BMSK", [x, y], mods=("W",) if "wrap" in s.modifiers else ()))


@rule("szext")
def lower_szext(lo: Lowering, s: ptx.Instruction) -> None:
    x, n = operands(lo, s, "b32")
    mods = (("W",) if "wrap" in s.modifiers else ()) + (() if s.modifiers[-1] == "s32" else ("U32",))
    lo.dst(s.operands[0], lo.b.op("SGXT", [x, n], mods=mods))


@rule("popc")
def lower_popc(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    (x,) = operands(lo, s, s.modifiers[-1])
    counts = [b.op("POPC", [b.part(x, i)]) for i in range(x.width)]
    lo.dst(s.operands[0], counts[0] if len(counts) == 1 else b.iadd(counts[0], counts[1]))


@rule("clz")
def lower_clz(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    (x,) = operands(lo, s, s.modifiers[-1])
    if x.width == 1:
        v = b.isub(b.const(31), b.op("FLO", [x], mods=("U32",)))
    else:
        upper = b.icmp("NE", b.hi(x), b.const(0), False)
        v = b.isub(b.sel(upper, b.const(31), b.const(63)), b.op("FLO", [b.sel(upper, b.hi(x), b.lo(x))], mods=("U32",)))
    lo.dst(s.operands[0], v)


@rule("bfind")
def lower_bfind(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    (x,) = operands(lo, s, type_)
    amount = "shiftamt" in s.modifiers
    kind = () if is_signed(type_) else ("U32",)
    if x.width == 1:
        v = b.op("FLO", [x], mods=kind + (("SH",) if amount else ()))
    else:
        if is_signed(type_):
            fill = b.shr(b.hi(x), b.const(31), True)
            x = b.pack(b.xor(b.lo(x), fill), b.xor(b.hi(x), fill))
        upper = b.icmp("NE", b.hi(x), b.const(0), False)
        found = b.op("FLO", [b.sel(upper, b.hi(x), b.lo(x))], mods=("U32",))
        v = b.iadd(found, b.sel(upper, b.const(32), b.const(0)))
        if amount:
            v = b.sel(b.icmp("EQ", found, b.const(-1), False), b.const(-1), b.isub(b.const(63), v))
    lo.dst(s.operands[0], v)


@rule("brev")
def lower_brev(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    (x,) = operands(lo, s, s.modifiers[-1])
    lo.dst(s.operands[0], b.pack(*(b.op("BREV", [b.part(x, x.width - 1 - i)]) for i in range(x.width))))


@rule("sad")
def lower_sad(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    x, y, z = operands(lo, s, type_)
    if bits_of(type_) == 64:
        less = b.icmp64("LT", x, y, is_signed(type_))
        lo.dst(s.operands[0], b.add64(b.sel(less, b.sub64(y, x), b.sub64(x, y)), z))
        return
    x, y = widened(lo, x, type_), widened(lo, y, type_)
    sign = is_signed(type_)
    lo.dst(s.operands[0], b.iadd(b.isub(b.minmax(x, y, sign, True), b.minmax(x, y, sign, False)), z))


@rule("dp4a", "dp2a")
def lower_dot(lo: Lowering, s: ptx.Instruction) -> None:
    kinds = s.modifiers[-2:]
    x, y, z = operands(lo, s, "b32")
    if s.opcode == "dp4a":
        mods = ("4A", *("S8" if k == "s32" else "U8" for k in kinds))
    else:
        mods = ("2A", "HI" if "hi" in s.modifiers else "LO", "S16" if kinds[0] == "s32" else "U16", "S8" if kinds[1] == "s32" else "U8")
    lo.dst(s.operands[0], lo.b.op("IDP", [x, y, z], mods=mods))
