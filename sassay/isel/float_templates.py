"""Float operations that take several instructions: correctly rounded division and roots, approximate functions with scaling.

The quick paths are the ones that ptxas emits (read from its output); the slow paths are ours, in line: f32 goes through f64, f64 through
normalised operands and one integer rounding.
"""

from __future__ import annotations

from collections.abc import Callable

from sassay.isel.build import Lowering
from sassay.isel.builder import Builder
from sassay.isel.ir import Value

ONE = 0x3F800000
F64_ONE = 0x3FF0000000000000
TINY = 0x00800000  # 2^-126
HUGE = 0x7E800000  # 2^126
TWO24 = 0x4B800000
QUARTER = 0x3E800000
INF = 0x7F800000
NAN32 = 0x7FFFFFFF


def fadd(b: Builder, x: Value, y: Value, *mods: str, neg: str = "") -> Value:
    return b.op("FADD", [x, y], mods=mods, amods=["", neg])


def fmul(b: Builder, x: Value, y: Value, *mods: str) -> Value:
    return b.op("FMUL", [x, y], mods=mods)


def ffma(b: Builder, x: Value, y: Value, z: Value, *mods: str, neg: str = "", negz: str = "") -> Value:
    return b.op("FFMA", [x, y, z], mods=mods, amods=[neg, "", negz])


def dfma(b: Builder, x: Value, y: Value, z: Value, neg: str = "") -> Value:
    return b.op("DFMA", [x, y, z], 2, amods=[neg, "", ""])


def dmul(b: Builder, x: Value, y: Value) -> Value:
    return b.op("DMUL", [x, y], 2)


def mufu(b: Builder, kind: str, x: Value) -> Value:
    return b.op("MUFU", [x], mods=(kind,))


def fcmp(b: Builder, cmp: str, x: Value, y: int, absolute: bool = False, ftz: bool = False) -> Value:
    mods = (cmp, *(("FTZ",) if ftz else ()), "AND")
    return b.op("FSETP", [x, b.const(y), b.true()], 0, mods=mods, amods=["|" if absolute else "", "", ""])


def slow_path(lo: Lowering, condition: Value, quick: list[Value], slow: Callable[[], list[Value]]) -> list[Value]:
    """`quick`, or what `slow` computes where the condition holds; the slow code stands out of line."""
    b = lo.b
    side, join = b.new_block("slow"), b.new_block("fast")
    side.cold = True
    b.branch(condition, side, join, likely=False)
    lo.start(side)
    repaired = slow()
    b.block.cold = True
    b.jump(join)
    lo.start(join)
    return [b.phi([q, r]) for q, r in zip(quick, repaired, strict=True)]


# Approximate functions ------------------------------------------------------------------------------------------------------------------


def approximate(b: Builder, opcode: str, x: Value, ftz: bool) -> Value:
    """MUFU functions with the scaling that the non-ftz forms need around them (MUFU flushes subnormals)."""
    c = b.const
    if opcode in ("sin", "cos"):
        return mufu(b, opcode.upper(), fmul(b, x, c(0x3E22F983), "RZ"))
    if opcode == "tanh":
        return mufu(b, "TANH", x)
    kind = {"ex2": "EX2", "lg2": "LG2", "rcp": "RCP", "rsqrt": "RSQ", "sqrt": "SQRT"}[opcode]
    if ftz:
        return mufu(b, kind, x)
    if opcode == "ex2":
        normal = fcmp(b, "GEU", x, 0xC2FC0000)
        y = mufu(b, kind, b.sel(normal, x, fmul(b, x, c(0x3F000000))))
        return b.sel(normal, y, fmul(b, y, y))
    normal = fcmp(b, "GEU", x, TINY, absolute=True)
    if opcode == "rcp":
        large = fcmp(b, "GT", x, HUGE, absolute=True)
        scale = b.sel(large, c(QUARTER), b.sel(normal, c(ONE), c(TWO24)))
        return fmul(b, scale, mufu(b, kind, fmul(b, x, scale)))
    y = mufu(b, kind, b.sel(normal, x, fmul(b, x, c(TWO24))))
    if opcode == "lg2":
        return b.sel(normal, y, fadd(b, y, c(0xC1C00000)))
    return b.sel(normal, y, fmul(b, y, c(0x45800000 if opcode == "rsqrt" else 0x39800000)))


def divide_approx(b: Builder, x: Value, y: Value, ftz: bool) -> Value:
    if ftz:
        return fmul(b, mufu(b, "RCP", y), x, "FTZ")
    normal = fcmp(b, "GEU", y, TINY, absolute=True)
    r = mufu(b, "RCP", b.sel(normal, y, fmul(b, y, b.const(TWO24))))
    return fmul(b, r, b.sel(normal, x, fmul(b, x, b.const(TWO24))))


def divide_full(b: Builder, x: Value, y: Value, ftz: bool) -> Value:
    c = b.const
    large = fcmp(b, "GT", y, HUGE, absolute=True, ftz=ftz)
    mods = ("FTZ",) if ftz else ()
    d = b.sel(large, fmul(b, y, c(QUARTER), *mods), y)
    n = b.sel(large, fmul(b, x, c(QUARTER), *mods), x)
    if not ftz:
        normal = fcmp(b, "GEU", y, TINY, absolute=True)
        d = b.sel(normal, d, fmul(b, d, c(TWO24)))
        n = b.sel(normal, n, fmul(b, n, c(TWO24)))
    return fmul(b, mufu(b, "RCP", d), n, *mods)


# Correctly rounded f32 -------------------------------------------------------------------------------------------------------------------


def to64(b: Builder, x: Value) -> Value:
    return b.op("F2F", [x], 2, mods=("F64", "F32"))


def to32(b: Builder, x: Value) -> Value:
    return b.op("F2F", [x], 1, mods=("F32", "F64"))


def flush(b: Builder, x: Value) -> Value:
    """Subnormals to zero of the same sign."""
    return fadd(b, x, b.const(0x80000000), "FTZ")


def directed32(lo: Lowering, opcode: str, x: Value, y: Value, mode: str, ftz: bool) -> Value:
    """x / y, or the root of x, rounded by `mode` (RZ, RM, RP), through the f64 result rounded to nearest. An inexact quotient or root of 24-bit
    fractions differs from every 24-bit number by more than 2**-50 of itself, so the first rounding leaves it on its side of them all."""
    b = lo.b
    if ftz:
        x, y = flush(b, x), flush(b, y)
    wide = divide64(lo, to64(b, x), to64(b, y)) if opcode != "sqrt" else sqrt64(lo, to64(b, x))
    v = lo.b.op("F2F", [wide], 1, mods=("F32", "F64", mode))
    return flush(lo.b, v) if ftz else v


def divide32(lo: Lowering, x: Value, y: Value, ftz: bool) -> Value:
    """x / y, to nearest even. FCHK says where the refinement of the estimate may fail."""
    b = lo.b
    mods = ("FTZ",) if ftz else ()
    r = mufu(b, "RCP", y)
    check = b.op("FCHK", [x, y], 0)
    e = ffma(b, y, r, b.const(ONE), *mods, neg="-")
    r = ffma(b, r, e, r, *mods)
    q = ffma(b, x, r, b.const(0), *mods)
    e = ffma(b, y, q, x, *mods, neg="-")
    q = ffma(b, r, e, q, *mods)
    return slow_path(lo, check, [q], lambda: [divide32_slow(lo.b, x, y, ftz)])[0]


def divide32_slow(b: Builder, x: Value, y: Value, ftz: bool) -> Value:
    """Through f64: a quotient of 24-bit numbers is no nearer than 2^-49 to a rounding boundary without being on it, so a faithful f64 quotient,
    rounded once more, is right, subnormal results included. Zeros, infinities and NaNs are products with the scaled reciprocal."""
    c = b.const
    if ftz:
        x, y = flush(b, x), flush(b, y)
    n, d = to64(b, x), to64(b, y)
    r = b.pack(c(1), mufu(b, "RCP64H", b.hi(d)))
    e = dfma(b, d, r, c(F64_ONE, 2), "-")
    e = dfma(b, e, e, e)
    r = dfma(b, r, e, r)
    q = dmul(b, n, r)
    q = dfma(b, r, dfma(b, d, q, n, "-"), q)
    usual = to32(b, q)
    scaled = b.sel(fcmp(b, "GT", y, HUGE, absolute=True), fmul(b, y, c(QUARTER)), fmul(b, y, c(TWO24)))
    scaled = b.sel(b.pand(fcmp(b, "GEU", y, TINY, absolute=True), fcmp(b, "LE", y, HUGE, absolute=True)), y, scaled)
    special = fmul(b, x, mufu(b, "RCP", scaled))
    odd: Value | None = None
    for v in (x, y):
        magnitude = b.and_(v, c(0x7FFFFFFF))
        p = b.icmp("GE", b.iadd(magnitude, c(-1)), c(INF - 1), False)  # zero wraps round to the largest number
        odd = p if odd is None else b.por(odd, p)
    assert odd is not None
    v = b.sel(odd, special, usual)
    return flush(b, v) if ftz else v


def sqrt32(lo: Lowering, x: Value, ftz: bool) -> Value:
    b = lo.b
    r = mufu(b, "RSQ", x)
    odd = b.icmp("GT", b.iadd(x, b.const(-0xD000000)), b.const(0x727FFFFF), False)
    return slow_path(lo, odd, [sqrt_step(b, x, r)], lambda: [sqrt32_slow(lo.b, x, ftz)])[0]


def sqrt_step(b: Builder, x: Value, r: Value) -> Value:
    g = fmul(b, x, r, "FTZ")
    h = fmul(b, r, b.const(0x3F000000), "FTZ")
    return ffma(b, ffma(b, g, g, x, neg="-"), h, g)


def sqrt32_slow(b: Builder, x: Value, ftz: bool) -> Value:
    """Small numbers scaled by 2^64 (the root by 2^-32, exactly); zeros and +infinity stay, negative ones and NaNs give NaN."""
    c = b.const
    if ftz:
        x = flush(b, x)
    y = fmul(b, x, c(0x5F800000))
    usual = fmul(b, sqrt_step(b, y, mufu(b, "RSQ", y)), c(0x2F800000))
    keep = b.por(b.icmp("EQ", x, c(INF), False), b.icmp("EQ", b.shl(x, c(1)), c(0), False))
    bad = b.icmp("GT", x, c(INF), False)  # as unsigned numbers: NaNs and negative ones
    return b.sel(keep, x, b.sel(bad, c(NAN32), usual))


# Correctly rounded f64 -------------------------------------------------------------------------------------------------------------------

SIGN64 = 0x8000000000000000


def newton64(b: Builder, y: Value, low: Value) -> Value:
    """1/y to about the last bit from RCP64H; `low` are the low bits that the estimate starts with."""
    r = b.pack(low, mufu(b, "RCP64H", b.hi(y)))
    one = b.const(F64_ONE, 2)
    e = dfma(b, y, r, one, "-")
    e = dfma(b, e, e, e)
    r = dfma(b, r, e, r)
    return dfma(b, r, dfma(b, y, r, one, "-"), r)


def divide64(lo: Lowering, x: Value, y: Value) -> Value:
    b = lo.b
    r = newton64(b, y, b.const(1))
    q = dmul(b, x, r)
    q = dfma(b, r, dfma(b, y, q, x, "-"), q)
    # The quick result holds when the high words say: x not tiny, the quotient neither tiny nor out of range (NaN comparisons send those here).
    probe = ffma(b, b.const(0), b.hi(y), b.hi(q))
    fine = b.pand(fcmp(b, "GT", probe, 0x00100000, absolute=True), fcmp(b, "GEU", b.hi(x), 0x03600000, absolute=True))
    parts = slow_path(lo, b.pnot(fine), [q], lambda: [divide64_slow(lo.b, x, y)])
    return parts[0]


def reciprocal64(lo: Lowering, x: Value) -> Value:
    b = lo.b
    low = b.iadd(b.hi(x), b.const(0x300402))
    r = newton64(b, x, low)
    fine = fcmp(b, "GEU", low, 0x00400402, absolute=True)
    return slow_path(lo, b.pnot(fine), [r], lambda: [divide64_slow(lo.b, b.const(F64_ONE, 2), x)])[0]


def exponent64(b: Builder, high: Value) -> Value:
    return b.and_(b.shr(high, b.const(20), False), b.const(0x7FF))


def normalise(b: Builder, x: Value) -> tuple[Value, Value]:
    """The fraction in [1, 2) with the sign, and the exponent, of a finite nonzero number."""
    c = b.const
    subnormal = b.icmp("EQ", exponent64(b, b.hi(x)), c(0), False)
    scaled = b.sel(subnormal, dmul(b, x, c(0x4350000000000000, 2)), x)  # 2^54
    exponent = b.isub(exponent64(b, b.hi(scaled)), b.sel(subnormal, c(1023 + 54), c(1023)))
    return b.pack(b.lo(scaled), b.lop3(b.hi(scaled), c(0x800FFFFF), c(0x3FF00000), 0xEA)), exponent


def power_of_two(b: Builder, exponent: Value) -> Value:
    """2^exponent as f64, for -1022 to 1023."""
    return b.pack(b.const(0), b.shl(b.iadd(exponent, b.const(1023)), b.const(20)))


def divide64_slow(b: Builder, x: Value, y: Value) -> Value:
    """The quotient of the fractions, correctly rounded, then scaled: exactly where the result is normal, and by one integer rounding
    (to nearest even, with the remainder's sign as a sticky bit) where it is subnormal."""
    c = b.const
    n, en = normalise(b, x)
    d, ed = normalise(b, y)
    r = newton64(b, d, c(1))
    q = dmul(b, n, r)
    q = dfma(b, r, dfma(b, d, q, n, "-"), q)
    remainder = dfma(b, d, q, n, "-")
    exponent = b.isub(en, ed)
    # Past 1100 the result is infinite or subnormal anyway; two powers that are themselves numbers make the scale.
    bounded = b.minmax(b.minmax(exponent, c(-1100), True, True), c(1100), True, False)
    first = b.shr(bounded, c(1), True)
    scaled = dmul(b, dmul(b, q, power_of_two(b, first)), power_of_two(b, b.isub(bounded, first)))
    total = b.iadd(exponent64(b, b.hi(q)), exponent)  # biased exponent of the result
    subnormal = b.icmp("LE", total, c(0), True)
    sign = b.and_(b.xor(b.hi(x), b.hi(y)), c(0x80000000))
    rounded = round_subnormal(b, q, remainder, d, b.isub(c(3), total))
    usual = b.sel(subnormal, b.pack(b.lo(rounded), b.or_(b.hi(rounded), sign)), scaled)
    return divide64_special(b, x, y, sign, usual)


def round_subnormal(b: Builder, q: Value, remainder: Value, d: Value, count: Value) -> Value:
    """The fraction of |q| with two bits more and a sticky correction, shifted right by `count` (3 to 63) and rounded to nearest even."""
    c = b.const
    fraction = b.pack(b.lo(q), b.lop3(b.hi(q), c(0x000FFFFF), c(0x00100000), 0xEA))
    more = b.icmp("GE", b.xor(b.xor(b.hi(remainder), b.hi(q)), b.hi(d)), c(0), True)  # |exact| above |q|
    zero = b.icmp64("EQ", b.bit64(remainder, c(SIGN64 - 1, 2), 0xC0), c(0, 2), False)
    sticky = b.sel(zero, c(0, 2), b.sel(more, c(1, 2), c(-1, 2)))
    wide = b.add64(b.shl64(fraction, c(2)), sticky)
    count = b.minmax(count, c(60), True, False)
    kept = b.shr64(wide, count, False)
    lost = b.sub64(wide, b.shl64(kept, count))
    half = b.shl64(c(1, 2), b.iadd(count, c(-1)))
    odd = b.icmp("NE", b.and_(b.lo(kept), c(1)), c(0), False)
    up = b.por(b.icmp64("GT", lost, half, False), b.pand(b.icmp64("EQ", lost, half, False), odd))
    return b.add64(kept, b.sel(up, c(1, 2), c(0, 2)))


def divide64_special(b: Builder, x: Value, y: Value, sign: Value, usual: Value) -> Value:
    c = b.const
    ax, ay = b.bit64(x, c(SIGN64 - 1, 2), 0xC0), b.bit64(y, c(SIGN64 - 1, 2), 0xC0)
    inf, zero = c(0x7FF0000000000000, 2), c(0, 2)
    x_inf, y_inf = b.icmp64("EQ", ax, inf, False), b.icmp64("EQ", ay, inf, False)
    x_zero, y_zero = b.icmp64("EQ", ax, zero, False), b.icmp64("EQ", ay, zero, False)
    signed_inf, signed_zero = b.pack(c(0), b.or_(sign, c(0x7FF00000))), b.pack(c(0), sign)
    v = b.sel(b.por(x_zero, y_inf), signed_zero, usual)
    v = b.sel(b.por(y_zero, x_inf), signed_inf, v)
    invalid = b.por(b.pand(x_zero, y_zero), b.pand(x_inf, y_inf))
    v = b.sel(invalid, c(0xFFF8000000000000, 2), v)
    nan = b.por(b.icmp64("GT", ax, inf, False), b.icmp64("GT", ay, inf, False))
    return b.sel(nan, b.op("DADD", [x, y], 2), v)


def root64(b: Builder, x: Value, low: Value) -> Value:
    """The square root of a number in a middle range from RSQ64H."""
    c = b.const
    r = b.pack(low, mufu(b, "RSQ64H", b.hi(x)))
    e = dfma(b, dmul(b, r, r), x, c(F64_ONE, 2), "-")
    p = dfma(b, e, c(0x3FD8000000000000, 2), c(0x3FE0000000000000, 2))
    r = dfma(b, p, dmul(b, r, e), r)
    g = dmul(b, x, r)
    h = b.pack(b.lo(r), b.iadd(b.hi(r), c(-0x100000)))
    return dfma(b, dfma(b, g, g, x, "-"), h, g)


def inverse_root64(b: Builder, x: Value) -> Value:
    """1 / sqrt(x) by RSQ64H and one third-order step; subnormals are scaled by 2^54 first, zero, infinity, negative numbers and NaN take RSQ64H's."""
    c = b.const
    small = b.icmp64("LT", x, c(1 << 52, 2), True)
    y = b.sel(small, dmul(b, x, c(0x4350000000000000, 2)), x)
    start = b.pack(c(0), mufu(b, "RSQ64H", b.hi(y)))
    e = dfma(b, dmul(b, start, start), y, c(F64_ONE, 2), "-")
    p = dfma(b, e, c(0x3FD8000000000000, 2), c(0x3FE0000000000000, 2))
    r = dfma(b, p, dmul(b, start, e), start)
    r = b.sel(small, dmul(b, r, c(0x41A0000000000000, 2)), r)
    ordinary = b.pand(b.icmp64("GT", x, c(0, 2), True), b.icmp64("LT", x, c(0x7FF0000000000000, 2), True))
    return b.sel(ordinary, r, start)


def sqrt64(lo: Lowering, x: Value) -> Value:
    b = lo.b
    low = b.iadd(b.hi(x), b.const(-0x3500000))
    quick = root64(b, x, low)
    odd = b.icmp("GE", low, b.const(0x7CA00000), False)
    return slow_path(lo, odd, [quick], lambda: [sqrt64_slow(lo.b, x)])[0]


def sqrt64_slow(b: Builder, x: Value) -> Value:
    """Small numbers scaled by 2^108 (the root by 2^-54, exactly); zeros and +infinity stay, negative ones give the default NaN."""
    c = b.const
    y = dmul(b, x, c(0x46B0000000000000, 2))
    usual = dmul(b, root64(b, y, c(0)), c(0x3C90000000000000, 2))
    magnitude = b.bit64(x, c(SIGN64 - 1, 2), 0xC0)
    inf = c(0x7FF0000000000000, 2)
    keep = b.por(b.icmp64("EQ", x, inf, False), b.icmp64("EQ", magnitude, c(0, 2), False))
    v = b.sel(b.icmp("LT", b.hi(x), c(0), True), c(0xFFF8000000000000, 2), usual)
    v = b.sel(keep, x, v)
    return b.sel(b.icmp64("GT", magnitude, inf, False), b.op("DADD", [x, x], 2), v)


def minmax64(b: Builder, x: Value, y: Value, largest: bool) -> Value:
    """f64 has no min instruction: DSETP.MIN says which operand it is, and whether both are NaN (its second predicate), to make that quiet."""
    first, both = b.ops("DSETP", [x, y, b.true()], (0, 0), mods=("MAX" if largest else "MIN", "AND"))
    low = b.sel(first, b.lo(x), b.lo(y))
    high = b.sel(first, b.hi(x), b.hi(y))
    quiet = b.or_(b.hi(y), b.const(0x80000))
    return b.pack(low, b.sel(both, quiet, high))
