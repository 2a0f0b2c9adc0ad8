"""Operations that take several instructions: integer division and its helpers. Each is a function of values, with no hidden state."""

from __future__ import annotations

from sassay.isel.build import Lowering
from sassay.isel.builder import Builder
from sassay.isel.ir import Value
from sassay.isel.numbers import signed


def abs64(b: Builder, x: Value) -> Value:
    negative = b.icmp("LT", b.hi(x), b.const(0), True)
    return b.sel(negative, negate64(b, x), x)


def negate64(b: Builder, x: Value) -> Value:
    return b.const(-x.const, 2) if x.const is not None else b.op("add64", [b.const(0, 2), x], 2, amods=["", "-"])


def mulhi64(b: Builder, x: Value, y: Value, sign: bool) -> Value:
    """Upper 64 bits of the 128-bit product: schoolbook in words; a signed one corrects the unsigned."""
    xl, xh, yl, yh = b.lo(x), b.hi(x), b.lo(y), b.hi(y)
    low = b.mulw(xl, yl, False)
    middle = b.add64(b.mulw(xh, yl, False), b.zext(b.hi(low)))
    other = b.add64(b.mulw(xl, yh, False), b.zext(b.lo(middle)))
    v = b.add64(b.add64(b.mulw(xh, yh, False), b.zext(b.hi(middle))), b.zext(b.hi(other)))
    if sign:
        zero = b.const(0, 2)
        v = b.sub64(v, b.sel(b.icmp("LT", xh, b.const(0), True), y, zero))
        v = b.sub64(v, b.sel(b.icmp("LT", yh, b.const(0), True), x, zero))
    return v


# 32-bit division ---------------------------------------------------------------------------------------------------------------------------


def divide32(b: Builder, x: Value, y: Value, sign: bool) -> tuple[Value, Value]:
    """Quotient and remainder of 32-bit numbers, truncated; what PTX leaves open (a zero divisor) gives all ones."""
    if y.const is not None and y.const != 0:
        q = divide_constant_signed(b, x, signed(y.const)) if sign else divide_constant(b, x, y.const)
        return q, b.isub(x, b.imul(q, y))
    if not sign:
        q, r = divide_unsigned(b, x, y)
        return q, r
    ax, ay = b.op("IABS", [x]), b.op("IABS", [y])
    q, r = divide_unsigned(b, ax, ay)
    opposite = b.icmp("LT", b.xor(x, y), b.const(0), True)
    negative = b.icmp("LT", x, b.const(0), True)
    return b.sel(opposite, b.ineg(q), q), b.sel(negative, b.ineg(r), r)


def divide_unsigned(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """A reciprocal estimate from below, one Newton step, and two corrections.

    y is converted rounding up, so 1/y is not over-estimated; adding 0x0ffffffe to the float's bits scales it by 2^32 less two units in the
    last place, which covers the error of MUFU.RCP. The integer estimate e has 0 <= 2^32/y - e < 2^32/y * 2^-21; e + (e * -(e*y) >> 32) then lacks
    at most 2, so the quotient lacks at most 2.
    """
    f = b.op("I2F", [y], mods=("U32", "RP"))
    r = b.op("MUFU", [f], mods=("RCP",))
    e = b.op("F2I", [b.iadd(r, b.const(0x0FFFFFFE))], mods=("FTZ", "U32", "TRUNC", "NTZ"))
    e = b.iadd(b.mulhi(e, b.ineg(b.imul(e, y)), False), e)
    q = b.mulhi(e, x, False)
    rest = b.isub(x, b.imul(q, y))
    for _ in range(2):
        over = b.icmp("GE", rest, y, False)
        q = b.sel(over, b.iadd(q, b.const(1)), q)
        rest = b.sel(over, b.isub(rest, y), rest)
    zero = b.icmp("EQ", y, b.const(0), False)
    return b.sel(zero, b.const(-1), q), b.sel(zero, x, rest)


def divide_constant(b: Builder, x: Value, d: int) -> Value:
    """x // d by a multiplication (Granlund and Montgomery): the least shift whose multiplier is exact for 32 bits."""
    if d & (d - 1) == 0:
        return b.shr(x, b.const(d.bit_length() - 1), False)
    for shift in range(32):
        m = ((1 << (32 + shift)) + d - 1) // d
        if m >= 1 << 32:
            break
        if m * d - (1 << (32 + shift)) <= 1 << shift:
            return b.shr(b.mulhi(x, b.const(m), False), b.const(shift), False)
    if d % 2 == 0:
        zeros = (d & -d).bit_length() - 1
        # The shifted dividend has fewer bits: a narrower multiplier is exact.
        odd, bits = d >> zeros, 32 - zeros
        for shift in range(32):
            m = ((1 << (32 + shift)) + odd - 1) // odd
            if m < 1 << 32 and (m * odd - (1 << (32 + shift))) << bits <= 1 << (32 + shift):
                return b.shr(b.mulhi(b.shr(x, b.const(zeros), False), b.const(m), False), b.const(shift), False)
    shift = (d - 1).bit_length()
    m = ((1 << (32 + shift)) + d - 1) // d - (1 << 32)
    t = b.mulhi(x, b.const(m), False)
    return b.shr(b.iadd(b.shr(b.isub(x, t), b.const(1), False), t), b.const(shift - 1), False)


def divide_constant_signed(b: Builder, x: Value, d: int) -> Value:
    """Truncated x / d for a constant divisor (Hacker's Delight, chapter 10)."""
    if d == -(1 << 31):
        return b.sel(b.icmp("EQ", x, b.const(d), False), b.const(1), b.const(0))
    size = abs(d)
    if size == 1:
        q = x
    elif size & (size - 1) == 0:
        k = size.bit_length() - 1
        bias = b.shr(b.shr(x, b.const(31), True), b.const(32 - k), False)
        q = b.shr(b.iadd(x, bias), b.const(k), True)
    else:
        shift = 0
        while True:
            m = (1 << (32 + shift)) // size + 1
            if m * size - (1 << (32 + shift)) < 1 << (shift + 1):
                break
            shift += 1
        h = b.mulhi(x, b.const(m), True)
        if m & 0xFFFFFFFF >= 1 << 31:
            h = b.iadd(h, x)
        q = b.iadd(b.shr(h, b.const(shift), True), b.shr(x, b.const(31), False))
    return b.ineg(q) if d < 0 else q


# 64-bit division ---------------------------------------------------------------------------------------------------------------------------


def divide64(lo: Lowering, x: Value, y: Value, sign: bool) -> tuple[Value, Value]:
    """Quotient and remainder of 64-bit numbers; small operands take the 32-bit path at run time."""
    b = lo.b
    if y.const is not None and y.const and y.const & (y.const - 1) == 0 and not sign:
        k = y.const.bit_length() - 1
        q = b.shr64(x, b.const(k), False)
        return q, b.bit64(x, b.const(y.const - 1, 2), 0xC0)
    if sign:
        q, r = divide64(lo, abs64(b, x), abs64(b, y), False)
        b = lo.b
        opposite = b.icmp("LT", b.xor(b.hi(x), b.hi(y)), b.const(0), True)
        negative = b.icmp("LT", b.hi(x), b.const(0), True)
        return b.sel(opposite, negate64(b, q), q), b.sel(negative, negate64(b, r), r)
    small = b.icmp("EQ", b.or_(b.hi(x), b.hi(y)), b.const(0), False)
    if small.const == 1:
        q, r = divide32(b, b.lo(x), b.lo(y), False)
        return b.zext(q), b.zext(r)
    if y.const is not None and b.hi(y).const != 0:
        return divide_unsigned64(b, x, y)
    narrow, wide, join = b.new_block("narrow"), b.new_block("wide"), b.new_block("quotient")
    b.branch(small, narrow, wide)
    lo.start(narrow)
    q, r = divide32(b, b.lo(x), b.lo(y), False)
    first = (b.zext(q), b.zext(r))
    b.jump(join)
    lo.start(wide)
    second = divide_unsigned64(b, x, y)
    b.jump(join)
    lo.start(join)
    return b.phi([first[0], second[0]]), b.phi([first[1], second[1]])


def divide_unsigned64(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """As `divide_unsigned`: the estimate of 2^64/y has 21 good bits, two Newton steps make 64; the quotient then lacks at most 2."""
    f = b.op("I2F", [y], mods=("U64", "RP"))
    r = b.op("MUFU", [f], mods=("RCP",))
    e = b.op("F2I", [b.iadd(r, b.const(0x1FFFFFFE))], 2, mods=("U64", "TRUNC"))
    for _ in range(2):
        e = b.add64(mulhi64(b, e, negate64(b, b.mul64(e, y)), False), e)
    q = mulhi64(b, e, x, False)
    rest = b.sub64(x, b.mul64(q, y))
    for _ in range(2):
        over = b.icmp64("GE", rest, y, False)
        q = b.sel(over, b.add64(q, b.const(1, 2)), q)
        rest = b.sel(over, b.sub64(rest, y), rest)
    zero = b.icmp64("EQ", y, b.const(0, 2), False)
    return b.sel(zero, b.const(-1, 2), q), b.sel(zero, x, rest)
