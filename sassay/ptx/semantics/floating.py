"""Floating point arithmetic of PTX, in all formats, over the algebra's IEEE operations.

Approximate operations are written as the scaling around one hardware approximation (`Opaque("mufu", ...)`) that ptxas emits for them,
read from ptxas 13.5 on sm_90a to sm_120a: PTX only bounds their error, so this is one legal meaning, and the one to compare code with.
"""

from __future__ import annotations

from collections.abc import Callable

from sassay.isa.semantics.algebra import FloatOp, Opaque
from sassay.ptx.ast import TYPE_BITS
from sassay.ptx.semantics.compiled import Context, Getter, Values, defines
from sassay.ptx.semantics.integer import lanes, packed_result

ROUNDINGS = {"rn": "RN", "rz": "RZ", "rm": "RM", "rp": "RP", "rna": "RA"}
PACKED = {"f16x2": (2, 16, "f16"), "bf16x2": (2, 16, "bf16"), "f32x2": (2, 32, "f32")}


def rounding(c: Context) -> str:
    return ROUNDINGS[c.pick("rn", "rz", "rm", "rp", "rna", default="rn")]


def float_type(c: Context) -> tuple[int, int, str]:
    """Number of lanes, width of one and format of the instruction's type."""
    return PACKED.get(c.type, (1, c.bits, c.type))


def apply_lanes(c: Context, function: Callable[..., object], sources: int) -> None:
    """Apply a function of `sources` floats lane by lane."""
    count, part, format_ = float_type(c)
    if count == 1:
        getters = [c.source(i + 1, float_format=format_) for i in range(sources)]
        c.result(lambda v: function(*(g(v) for g in getters)), signed=False)
        return
    rows = list(zip(*(lanes(c, i + 1, count, part) for i in range(sources)), strict=True))

    def one(row: tuple[Getter, ...]) -> Getter:
        return lambda v: function(*(g(v) for g in row))

    packed_result(c, [one(row) for row in rows], part)


def arithmetic(c: Context) -> None:
    """add, sub, mul, fma and mad; mixed forms (add.f32.f16) widen the narrow operands exactly first."""
    _, _, format_ = float_type(c)
    name = {"mad": "fma"}.get(c.instruction.opcode, c.instruction.opcode)
    if len(c.types) == 2 and c.types[0] != c.types[1]:
        _mixed(c, name)
        return
    operation = c.alg.float_op(
        FloatOp(name, format_, rounding(c), ftz="ftz" in c.flags, saturate="sat" in c.flags, relu="relu" in c.flags)
    )
    if "oob" in c.flags:
        raise c.unsupported(".oob")
    apply_lanes(c, operation, 3 if name == "fma" else 2)


def _mixed(c: Context, name: str) -> None:
    alg, (to, narrow) = c.alg, c.types
    widen = alg.float_op(FloatOp("convert", to, source=narrow))
    operation = alg.float_op(FloatOp(name, to, rounding(c), saturate="sat" in c.flags))
    w, n = TYPE_BITS[to], TYPE_BITS[narrow]
    narrow_count = 2 if name == "fma" else 1
    sources = 3 if name == "fma" else 2
    getters: list[Getter] = []
    for i in range(sources):
        if i < narrow_count:
            getters.append(_after(widen, c.source(i + 1, n, float_format=narrow)))
        else:
            getters.append(c.source(i + 1, w, float_format=to))
    c.result(lambda v: operation(*(g(v) for g in getters)), width=w, signed=False)


def _after(function: Callable[[object], object], value: Getter) -> Getter:
    return lambda v: function(value(v))


@defines("fma")
def fused_multiply_add(c: Context) -> None:
    arithmetic(c)


def sign_operation(c: Context) -> None:
    """abs and neg: the sign bit cleared or flipped, then -0 added, which gives the canonical NaN for NaNs and flushes under .ftz.

    The ISA leaves the NaN open; this is what FADD and HADD2 do, to which ptxas 13.5 lowers both. f64 keeps its NaN's payload.
    """
    alg = c.alg
    _, w, format_ = float_type(c)
    negate = c.instruction.opcode == "neg"
    sign = alg.const(1 << (w - 1), w)
    settle = alg.float_op(FloatOp("add", format_, ftz="ftz" in c.flags)) if format_ != "f64" else None

    def function(x: object) -> object:
        bits = alg.xor(x, sign, w) if negate else alg.and_(x, alg.not_(sign, w), w)
        return settle(bits, sign) if settle is not None else bits

    apply_lanes(c, function, 1)


def minimum(c: Context) -> None:
    alg = c.alg
    _, w, format_ = float_type(c)
    operation = alg.float_op(FloatOp(c.instruction.opcode, format_, ftz="ftz" in c.flags, nan_wins="NaN" in c.flags))
    magnitude = alg.const((1 << (w - 1)) - 1, w)
    absolute, xorsign = "abs" in c.flags, "abs" in c.flags and "xorsign" in c.flags

    def two(a: object, b: object) -> object:
        if absolute or xorsign:
            sign = alg.and_(alg.xor(a, b, w), alg.not_(magnitude, w), w)
            result = operation(alg.and_(a, magnitude, w), alg.and_(b, magnitude, w))
            return alg.or_(result, sign, w) if xorsign else result
        return operation(a, b)

    if len(c.operands) == 4:
        apply_lanes(c, lambda a, b, d: two(two(a, b), d), 3)
        return
    apply_lanes(c, two, 2)


@defines("copysign")
def copy_sign(c: Context) -> None:
    """The magnitude of the second operand with the sign of the first."""
    alg, w = c.alg, c.bits
    x, y = c.source(1), c.source(2)
    sign = alg.const(1 << (w - 1), w)
    c.result(lambda v: alg.or_(alg.and_(x(v), sign, w), alg.and_(y(v), alg.not_(sign, w), w), w))


@defines("testp")
def test_property(c: Context) -> None:
    alg, w = c.alg, c.bits
    x = c.source(1)
    fraction = {32: 23, 64: 52}[w]
    top = ((1 << (w - 1 - fraction)) - 1) << fraction

    def value(v: Values) -> object:
        bits = x(v)
        magnitude = alg.and_(bits, alg.const((1 << (w - 1)) - 1, w), w)
        infinity = alg.const(top, w)
        finite = alg.ult(magnitude, infinity, w)
        subnormal = alg.and_(alg.ult(magnitude, alg.const(1 << fraction, w), w), alg.not_(alg.eq(magnitude, alg.const(0, w), w), 1), 1)
        return {
            "finite": finite,
            "infinite": alg.eq(magnitude, infinity, w),
            "number": alg.ule(magnitude, infinity, w),
            "notanumber": alg.ult(infinity, magnitude, w),
            "normal": alg.and_(finite, alg.not_(subnormal, 1), 1),
            "subnormal": subnormal,
        }[c.pick("finite", "infinite", "number", "notanumber", "normal", "subnormal")]

    c.result(value, width=1)


def divide(c: Context) -> None:
    format_ = c.type
    if c.flags & {"approx", "full"}:
        _approximate_divide(c)
        return
    operation = c.alg.float_op(FloatOp("div", format_, rounding(c), ftz="ftz" in c.flags))
    apply_lanes(c, operation, 2)


def hardware(c: Context, *names: str, width: int = 32) -> Callable[[object], object]:
    """One hardware approximation, as the SASS operation MUFU names it: its function, and a format where it is not f32."""
    call = c.alg.opaque(Opaque("mufu", (width,), names))
    return lambda x: call(x)[0]


def _f32(c: Context, name: str, **modes: object) -> Callable[..., object]:
    return c.alg.float_op(FloatOp(name, "f32", **modes))  # type: ignore[arg-type]


TINY, HUGE = 0x00800000, 0x7E800000
"""2**-126 and 2**126 in f32."""


def _magnitude_below(c: Context, bound: int) -> Callable[[object], object]:
    """|x| < bound, ordered."""
    alg = c.alg
    less = _f32(c, "compare", relation="LT")
    return lambda x: less(alg.and_(x, alg.const(0x7FFFFFFF, 32), 32), alg.const(bound, 32))


def _magnitude_above(c: Context, bound: int) -> Callable[[object], object]:
    alg = c.alg
    less = _f32(c, "compare", relation="LT")
    return lambda x: less(alg.const(bound, 32), alg.and_(x, alg.const(0x7FFFFFFF, 32), 32))


def _scaled(c: Context, small: Callable[[object], object], x: object, factor: int) -> object:
    """x times `factor` where it is small."""
    alg, multiply = c.alg, _f32(c, "mul")
    return alg.ite(small(x), multiply(x, alg.const(factor, 32)), x, 32)


TWO_24, TWO_12, TWO_M12, QUARTER = 0x4B800000, 0x45800000, 0x39800000, 0x3E800000


def _approximate_divide(c: Context) -> None:
    alg = c.alg
    ftz = "ftz" in c.flags
    multiply = _f32(c, "mul", ftz=ftz)
    reciprocal = hardware(c, "RCP")
    small, large = _magnitude_below(c, TINY), _magnitude_above(c, HUGE)

    def function(a: object, b: object) -> object:
        tiny = small(b)
        if "full" in c.flags:
            big = large(b)
            a, b = (alg.ite(big, multiply(x, alg.const(QUARTER, 32)), x, 32) for x in (a, b))
        if not ftz:
            a, b = (alg.ite(tiny, multiply(x, alg.const(TWO_24, 32)), x, 32) for x in (a, b))
        return multiply(a, reciprocal(b))

    apply_lanes(c, function, 2)


@defines("rcp", "sqrt", "rsqrt")
def reciprocal_and_root(c: Context) -> None:
    alg, opcode, ftz = c.alg, c.instruction.opcode, "ftz" in c.flags
    if "approx" not in c.flags:
        one = alg.const(0x3F800000 if c.bits == 32 else 0x3FF0000000000000, c.bits)
        if opcode == "rcp":
            divide_ = alg.float_op(FloatOp("div", c.type, rounding(c), ftz=ftz))
            apply_lanes(c, lambda x: divide_(one, x), 1)
        else:
            apply_lanes(c, alg.float_op(FloatOp("sqrt", c.type, rounding(c), ftz=ftz)), 1)
        return
    if c.type == "f64" and not ftz:
        _refined_root(c)
        return
    if c.type == "f64":
        _upper_half(c, {"rcp": "RCP64H", "rsqrt": "RSQ64H"}[opcode])
        return
    multiply = _f32(c, "mul")
    small, large = _magnitude_below(c, TINY), _magnitude_above(c, HUGE)
    call = hardware(c, {"rcp": "RCP", "sqrt": "SQRT", "rsqrt": "RSQ"}[opcode])

    def function(x: object) -> object:
        if ftz:
            return call(x)
        tiny = small(x)
        if opcode == "rcp":
            scale = alg.ite(tiny, alg.const(TWO_24, 32), alg.ite(large(x), alg.const(QUARTER, 32), alg.const(0x3F800000, 32), 32), 32)
            return multiply(scale, call(multiply(scale, x)))
        result = call(alg.ite(tiny, multiply(x, alg.const(TWO_24, 32)), x, 32))
        undo = TWO_12 if opcode == "rsqrt" else TWO_M12
        return alg.ite(tiny, multiply(result, alg.const(undo, 32)), result, 32)

    apply_lanes(c, function, 1)


def _upper_half(c: Context, name: str) -> None:
    """rcp and rsqrt.approx.ftz.f64: the approximation acts on the upper word, the lower is zero."""
    alg = c.alg
    call = hardware(c, name)
    x = c.source(1)
    c.result(lambda v: alg.concat(call(alg.extract(x(v), 63, 32, 64)), alg.const(0, 32), 32, 32))


def _refined_root(c: Context) -> None:
    """rsqrt.approx.f64: the approximation y and one third-order step, y + y e (1/2 + 3/8 e) with e = 1 - x y y; subnormals are scaled first.

    The steps are those of ptxas 13.5's code.
    """
    if c.instruction.opcode != "rsqrt":
        raise c.unsupported(".approx.f64 without .ftz")
    alg, x = c.alg, c.source(1)
    call = hardware(c, "RSQ64H")
    multiply, fma, less = (c.alg.float_op(FloatOp(n, "f64", relation="LT" if n == "compare" else "")) for n in ("mul", "fma", "compare"))
    one, half, three_eighths = (alg.const(n, 64) for n in (0x3FF0000000000000, 0x3FE0000000000000, 0x3FD8000000000000))
    zero, least, infinity = alg.const(0, 64), alg.const(1 << 52, 64), alg.const(0x7FF0000000000000, 64)

    def value(v: Values) -> object:
        number = x(v)
        small = less(number, least)
        scaled = alg.ite(small, multiply(number, alg.const(0x4350000000000000, 64)), number, 64)
        start = alg.concat(call(alg.extract(scaled, 63, 32, 64)), alg.const(0, 32), 32, 32)
        error = fma(scaled, alg.xor(multiply(start, start), alg.const(1 << 63, 64), 64), one)
        root = fma(fma(error, three_eighths, half), multiply(start, error), start)
        root = alg.ite(small, multiply(root, alg.const(0x41A0000000000000, 64)), root, 64)
        ordinary = alg.and_(less(zero, number), less(number, infinity), 1)
        return alg.ite(ordinary, root, start, 64)

    c.result(value)


@defines("ex2", "lg2", "sin", "cos", "tanh")
def transcendental(c: Context) -> None:
    alg, opcode, ftz = c.alg, c.instruction.opcode, "ftz" in c.flags
    count, part, format_ = float_type(c)
    if format_ in ("f16", "bf16"):
        call = hardware(c, {"ex2": "EX2", "tanh": "TANH"}[opcode], format_, width=16)
        apply_lanes(c, call, 1)
        return
    if (count, part) != (1, 32):
        raise c.unsupported(f".{c.type}")
    multiply, add = _f32(c, "mul"), _f32(c, "add")
    small = _magnitude_below(c, TINY)
    if opcode in ("sin", "cos"):
        if "2pi" in c.flags:
            raise c.unsupported(".2pi")
        turn = _f32(c, "mul", rounding="RZ")
        call = hardware(c, opcode.upper())
        apply_lanes(c, lambda x: call(turn(x, alg.const(0x3E22F983, 32))), 1)
        return
    call = hardware(c, {"ex2": "EX2", "lg2": "LG2", "tanh": "TANH"}[opcode])
    if ftz or opcode == "tanh":
        apply_lanes(c, call, 1)
        return
    less = _f32(c, "compare", relation="LT")

    def exponential(x: object) -> object:
        low = less(x, alg.const(0xC2FC0000, 32))
        result = call(alg.ite(low, multiply(x, alg.const(0x3F000000, 32)), x, 32))
        return alg.ite(low, multiply(result, result), result, 32)

    def logarithm(x: object) -> object:
        tiny = small(x)
        result = call(alg.ite(tiny, multiply(x, alg.const(TWO_24, 32)), x, 32))
        return alg.ite(tiny, add(result, alg.const(0xC1C00000, 32)), result, 32)

    apply_lanes(c, exponential if opcode == "ex2" else logarithm, 1)
