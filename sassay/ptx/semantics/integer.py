"""Integer arithmetic of PTX (ISA section "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic Instructions").

Rules beyond the obvious: .wide multiplies give twice the width; .hi the upper half; min and max saturate nothing; abs of the least number is
itself; division by zero is unspecified in PTX and taken as the quotient all ones, remainder the dividend (what ptxas's code gives for unsigned
32-bit is corroborated by its expansion); bfe and bfi take the low eight bits of position and length; shifts past the width give zero or sign.
"""

from __future__ import annotations

from sassay.ptx.ast import TYPE_BITS
from sassay.ptx.semantics.compiled import Context, Getter, Values, defines

PACKED = {"u16x2": (2, 16), "s16x2": (2, 16), "u8x4": (4, 8), "s8x4": (4, 8)}


def is_float(type_: str) -> bool:
    return type_.startswith(("f", "bf", "e", "tf", "ue"))


def lanes(c: Context, position: int, count: int, width: int) -> list[Getter]:
    """The parts of a packed source, lowest first."""
    whole, alg = c.source(position), c.alg

    def part(low: int) -> Getter:
        return lambda v: alg.extract(whole(v), low + width - 1, low, count * width)

    return [part(i * width) for i in range(count)]


def packed_result(c: Context, parts: list[Getter], width: int) -> None:
    """Set the destination to packed parts, lowest first."""
    alg = c.alg

    def pack(values: Values) -> object:
        result, have = parts[0](values), width
        for part in parts[1:]:
            result = alg.concat(part(values), result, width, have)
            have += width
        return result

    c.result(pack)


def saturate_signed(c: Context, wide: Getter, width: int, to: int) -> Getter:
    """Clamp a signed value of `width` bits to the signed range of `to` bits."""
    alg = c.alg
    low, high = alg.const(-(1 << (to - 1)), width), alg.const((1 << (to - 1)) - 1, width)

    def clamp(v: Values) -> object:
        x = wide(v)
        x = alg.ite(alg.slt(x, low, width), low, x, width)
        return alg.extract(alg.ite(alg.slt(high, x, width), high, x, width), to - 1, 0, width)

    return clamp


def saturate_unsigned(c: Context, wide: Getter, width: int, to: int) -> Getter:
    """Clamp a signed value of `width` bits to the unsigned range of `to` bits."""
    alg = c.alg
    zero, high = alg.const(0, width), alg.const((1 << to) - 1, width)

    def clamp(v: Values) -> object:
        x = wide(v)
        x = alg.ite(alg.slt(x, zero, width), zero, x, width)
        return alg.extract(alg.ite(alg.slt(high, x, width), high, x, width), to - 1, 0, width)

    return clamp


@defines("add", "sub")
def add_sub(c: Context) -> None:
    if is_float(c.type):
        from sassay.ptx.semantics.floating import arithmetic

        arithmetic(c)
        return
    w, op = c.bits, c.instruction.opcode
    if c.type in PACKED:
        count, part = PACKED[c.type]
        a, b = lanes(c, 1, count, part), lanes(c, 2, count, part)
        packed_result(c, [_sum(c, x, y, part, op, c.is_signed, "sat" in c.flags) for x, y in zip(a, b, strict=True)], part)
        return
    x, y = c.source(1), c.source(2)
    if "cc" in c.flags:
        _carry_chain(c, x, y, c.constant(0 if op == "add" else 1, 1), subtract=op == "sub")
        return
    c.result(_sum(c, x, y, w, op, c.is_signed, "sat" in c.flags))


def _sum(c: Context, x: Getter, y: Getter, w: int, op: str, signed: bool, saturate: bool) -> Getter:
    alg = c.alg
    apply = alg.add if op == "add" else alg.sub
    if not saturate:
        return lambda v: apply(x(v), y(v), w)
    wide = w + 2
    extend = alg.sext if signed else alg.zext

    def exact(v: Values) -> object:
        return apply(extend(x(v), w, wide), extend(y(v), w, wide), wide)

    return saturate_signed(c, exact, wide, w) if signed else saturate_unsigned(c, exact, wide, w)


def _carry_chain(c: Context, x: Getter, y: Getter, carry: Getter, *, subtract: bool, out: bool = True) -> None:
    """x + y + carry, or x + ~y + carry: the carry flag after a subtraction is set when there was no borrow."""
    alg, w = c.alg, c.bits

    def total(v: Values) -> object:
        right = alg.not_(y(v), w) if subtract else y(v)
        both = alg.add(alg.zext(x(v), w, w + 2), alg.zext(right, w, w + 2), w + 2)
        return alg.add(both, alg.zext(carry(v), 1, w + 2), w + 2)

    c.result(lambda v: alg.extract(total(v), w - 1, 0, w + 2), signed=False)
    if out:
        c.carry_out(lambda v: alg.extract(total(v), w, w, w + 2))


@defines("addc", "subc")
def add_with_carry(c: Context) -> None:
    _carry_chain(c, c.source(1), c.source(2), c.carry_in(), subtract=c.instruction.opcode == "subc", out="cc" in c.flags)


def product(c: Context, x: Getter, y: Getter, w: int, signed: bool) -> Getter:
    """The exact product, 2w bits wide, of two getters w bits wide."""
    alg = c.alg
    extend = alg.sext if signed else alg.zext
    return lambda v: alg.mul(extend(x(v), w, 2 * w), extend(y(v), w, 2 * w), 2 * w)


@defines("mul", "mad", "madc", "mul24", "mad24")
def multiply(c: Context) -> None:
    if is_float(c.type):
        from sassay.ptx.semantics.floating import arithmetic

        arithmetic(c)
        return
    alg, w, opcode = c.alg, c.bits, c.instruction.opcode
    x, y = c.source(1), c.source(2)
    if opcode in ("mul24", "mad24"):
        _multiply24(c, x, y)
        return
    mode = c.pick("wide", "hi", "lo", default="lo")
    if mode == "lo":
        value: Getter = lambda v: alg.mul(x(v), y(v), w)  # noqa: E731
        width = w
    else:
        exact = product(c, x, y, w, c.is_signed)
        width = 2 * w if mode == "wide" else w
        value = exact if mode == "wide" else lambda v: alg.extract(exact(v), 2 * w - 1, w, 2 * w)
    if opcode == "mul":
        c.result(value, width=width)
        return
    addend = c.source(3, width)
    if opcode == "madc" or "cc" in c.flags:
        _carry_chain(c, value, addend, c.carry_in() if opcode == "madc" else c.constant(0, 1), subtract=False, out="cc" in c.flags)
        return
    if "sat" in c.flags:
        wide = width + 2
        total: Getter = lambda v: alg.add(alg.sext(value(v), width, wide), alg.sext(addend(v), width, wide), wide)  # noqa: E731
        c.result(saturate_signed(c, total, wide, width), width=width)
        return
    c.result(lambda v: alg.add(value(v), addend(v), width), width=width)


def _multiply24(c: Context, x: Getter, y: Getter) -> None:
    alg = c.alg
    extend = alg.sext if c.is_signed else alg.zext
    low = 16 if c.pick("hi", "lo") == "hi" else 0

    def value(v: Values) -> object:
        exact = alg.mul(extend(alg.extract(x(v), 23, 0, 32), 24, 48), extend(alg.extract(y(v), 23, 0, 32), 24, 48), 48)
        return alg.extract(exact, low + 31, low, 48)

    if c.instruction.opcode == "mul24":
        c.result(value)
        return
    addend = c.source(3)
    if "sat" in c.flags:
        total: Getter = lambda v: alg.add(alg.sext(value(v), 32, 34), alg.sext(addend(v), 32, 34), 34)  # noqa: E731
        c.result(saturate_signed(c, total, 34, 32))
        return
    c.result(lambda v: alg.add(value(v), addend(v), 32))


@defines("sad")
def sum_of_absolute_difference(c: Context) -> None:
    alg, w = c.alg, c.bits
    x, y, z = c.source(1), c.source(2), c.source(3)
    less = alg.slt if c.is_signed else alg.ult

    def value(v: Values) -> object:
        a, b = x(v), y(v)
        return alg.add(z(v), alg.ite(less(a, b, w), alg.sub(b, a, w), alg.sub(a, b, w), w), w)

    c.result(value)


@defines("div", "rem")
def divide(c: Context) -> None:
    if is_float(c.type):
        from sassay.ptx.semantics.floating import divide as float_divide

        float_divide(c)
        return
    alg, w = c.alg, c.bits
    x, y = c.source(1), c.source(2)
    quotient = c.instruction.opcode == "div"
    unsigned = alg.udiv if quotient else alg.urem
    if not c.is_signed:
        c.result(lambda v: unsigned(x(v), y(v), w))
        return

    def value(v: Values) -> object:
        a, b = x(v), y(v)
        zero = alg.const(0, w)
        minus_a, minus_b = alg.slt(a, zero, w), alg.slt(b, zero, w)
        result = unsigned(alg.ite(minus_a, alg.neg(a, w), a, w), alg.ite(minus_b, alg.neg(b, w), b, w), w)
        flip = alg.xor(minus_a, minus_b, 1) if quotient else minus_a
        return alg.ite(flip, alg.neg(result, w), result, w)

    c.result(value)


@defines("abs", "neg")
def absolute_or_negated(c: Context) -> None:
    if is_float(c.type):
        from sassay.ptx.semantics.floating import sign_operation

        sign_operation(c)
        return
    alg, negate = c.alg, c.instruction.opcode == "neg"

    def one(x: Getter, w: int) -> Getter:
        if negate:
            return lambda v: alg.neg(x(v), w)
        return lambda v: alg.ite(alg.slt(x(v), alg.const(0, w), w), alg.neg(x(v), w), x(v), w)

    if c.type in PACKED:
        count, part = PACKED[c.type]
        packed_result(c, [one(x, part) for x in lanes(c, 1, count, part)], part)
        return
    c.result(one(c.source(1), c.bits))


@defines("min", "max")
def least_or_greatest(c: Context) -> None:
    if is_float(c.type):
        from sassay.ptx.semantics.floating import minimum

        minimum(c)
        return
    alg = c.alg
    less = alg.slt if c.is_signed else alg.ult
    least = c.instruction.opcode == "min"
    relu = "relu" in c.flags

    def one(x: Getter, y: Getter, w: int) -> Getter:
        def value(v: Values) -> object:
            a, b = x(v), y(v)
            result = alg.ite(less(a, b, w), a, b, w) if least else alg.ite(less(a, b, w), b, a, w)
            if relu:
                result = alg.ite(alg.slt(result, alg.const(0, w), w), alg.const(0, w), result, w)
            return result

        return value

    if c.type in PACKED:
        count, part = PACKED[c.type]
        packed_result(c, [one(x, y, part) for x, y in zip(lanes(c, 1, count, part), lanes(c, 2, count, part), strict=True)], part)
        return
    value = one(c.source(1), c.source(2), c.bits)
    if len(c.operands) == 4:
        value = one(value, c.source(3), c.bits)
    c.result(value)


@defines("popc", "clz", "brev")
def count_bits(c: Context) -> None:
    alg, w, opcode = c.alg, c.bits, c.instruction.opcode
    x = c.source(1)
    if opcode == "brev":
        c.result(lambda v: alg.reverse(x(v), w))
        return
    count = alg.popcount if opcode == "popc" else alg.clz
    c.result(c.fit(lambda v: count(x(v), w), w, 32), width=32, signed=False)


@defines("bfind")
def find_leading(c: Context) -> None:
    """Position of the most significant one (for signed negatives, zero) bit, or with .shiftamt its distance from the top; all ones if none."""
    alg, w = c.alg, c.bits
    x = c.source(1)
    from_top = "shiftamt" in c.flags

    def value(v: Values) -> object:
        a = x(v)
        if c.is_signed:
            a = alg.ite(alg.slt(a, alg.const(0, w), w), alg.not_(a, w), a, w)
        zeros = alg.clz(a, w)
        position = zeros if from_top else alg.sub(alg.const(w - 1, w), zeros, w)
        found = alg.ite(alg.eq(a, alg.const(0, w), w), alg.const(-1, w), position, w)
        return alg.extract(found, 31, 0, w) if w > 32 else found

    c.result(value, width=32, signed=False)


def _field(c: Context, position: int) -> Getter:
    """A bit position or length: the low eight bits of the operand."""
    alg = c.alg
    x = c.source(position, 32)
    return lambda v: alg.and_(x(v), alg.const(0xFF, 32), 32)


@defines("bfe")
def extract_field(c: Context) -> None:
    """Bits from `pos`, `len` of them; for signed types extended by the bit min(pos+len-1, msb), and zero when len is 0."""
    alg, w = c.alg, c.bits
    x, pos, length = c.source(1), _field(c, 2), _field(c, 3)

    def value(v: Values) -> object:
        a, p, n = x(v), alg.zext(pos(v), 32, w) if w > 32 else pos(v), alg.zext(length(v), 32, w) if w > 32 else length(v)
        mask = alg.sub(alg.shl(alg.const(1, w), n, w), alg.const(1, w), w)
        field = alg.and_(alg.ashr(a, p, w) if c.is_signed else alg.lshr(a, p, w), mask, w)
        if not c.is_signed:
            return field
        last = alg.sub(alg.add(p, n, w), alg.const(1, w), w)
        last = alg.ite(alg.ult(alg.const(w - 1, w), last, w), alg.const(w - 1, w), last, w)
        sign = alg.extract(alg.lshr(a, last, w), 0, 0, w)
        empty = alg.eq(n, alg.const(0, w), w)
        filled = alg.or_(field, alg.not_(mask, w), w)
        return alg.ite(empty, alg.const(0, w), alg.ite(sign, filled, field, w), w)

    c.result(value)


@defines("bfi")
def insert_field(c: Context) -> None:
    """The low `len` bits of a put into b from `pos`; what falls past the top is lost."""
    alg, w = c.alg, c.bits
    x, y, pos, length = c.source(1), c.source(2), _field(c, 3), _field(c, 4)

    def value(v: Values) -> object:
        p, n = (alg.zext(pos(v), 32, w), alg.zext(length(v), 32, w)) if w > 32 else (pos(v), length(v))
        mask = alg.shl(alg.sub(alg.shl(alg.const(1, w), n, w), alg.const(1, w), w), p, w)
        return alg.or_(alg.and_(alg.shl(x(v), p, w), mask, w), alg.and_(y(v), alg.not_(mask, w), w), w)

    c.result(value)


@defines("szext")
def sign_or_zero_extend(c: Context) -> None:
    """Extend from bit n-1: .clamp takes n above 32 as 32, .wrap takes n modulo 32; n = 0 gives 0."""
    alg = c.alg
    x, n = c.source(1), c.source(2, 32)

    def value(v: Values) -> object:
        count = _amount(c, n(v))
        shift = alg.sub(alg.const(32, 32), count, 32)
        up = alg.shl(x(v), shift, 32)
        down = alg.ashr(up, shift, 32) if c.is_signed else alg.lshr(up, shift, 32)
        return alg.ite(alg.eq(count, alg.const(0, 32), 32), alg.const(0, 32), down, 32)

    c.result(value)


def _amount(c: Context, n: object) -> object:
    alg = c.alg
    if c.pick("clamp", "wrap") == "wrap":
        return alg.and_(n, alg.const(31, 32), 32)
    return alg.ite(alg.ult(alg.const(32, 32), n, 32), alg.const(32, 32), n, 32)


@defines("bmsk")
def bit_mask(c: Context) -> None:
    """Ones from bit a, b of them; .clamp limits both to 32, .wrap takes both modulo 32."""
    alg = c.alg
    a, b = c.source(1, 32), c.source(2, 32)

    def value(v: Values) -> object:
        first, count = _amount(c, a(v)), _amount(c, b(v))
        ones = alg.sub(alg.shl(alg.const(1, 32), count, 32), alg.const(1, 32), 32)
        return alg.shl(ones, first, 32)

    c.result(value, width=32, signed=False)


@defines("dp4a", "dp2a")
def dot_product(c: Context) -> None:
    alg = c.alg
    first, second = c.types[-2], c.types[-1]
    a, b, addend = c.source(1, 32), c.source(2, 32), c.source(3, 32)
    four = c.instruction.opcode == "dp4a"
    base = 0 if four or c.pick("lo", "hi") == "lo" else 2

    def part(x: object, low: int, width: int, type_: str) -> object:
        piece = alg.extract(x, low + width - 1, low, 32)
        return alg.sext(piece, width, 32) if type_.startswith("s") else alg.zext(piece, width, 32)

    def value(v: Values) -> object:
        total, x, y = addend(v), a(v), b(v)
        for i in range(4 if four else 2):
            left = part(x, 8 * i, 8, first) if four else part(x, 16 * i, 16, first)
            total = alg.add(total, alg.mul(left, part(y, 8 * (base + i), 8, second), 32), 32)
        return total

    c.result(value, width=32, signed=False)


@defines("clmad")
def carry_less(c: Context) -> None:
    """The lower or upper half of a product of polynomials over bits, exclusive-or a third operand."""
    alg, w = c.alg, c.bits
    x, y, z = c.source(1), c.source(2), c.source(3)
    upper = "hi" in c.flags

    def value(v: Values) -> object:
        a, b, total = x(v), y(v), z(v)
        none = alg.const(0, w)
        for i in range(1 if upper else 0, w):
            amount = alg.const(w - i if upper else i, w)
            term = alg.lshr(a, amount, w) if upper else alg.shl(a, amount, w)
            total = alg.xor(total, alg.ite(alg.extract(b, i, i, w), term, none, w), w)
        return total

    c.result(value, signed=False)


@defines("fns")
def find_nth_set(c: Context) -> None:
    """Position of the n-th set bit from `base` up (n > 0) or down (n < 0); n = 0 asks for bit `base` itself; all ones if none."""
    alg = c.alg
    mask, base, nth = c.source(1, 32), c.source(2, 32), c.source(3, 32)

    def value(v: Values) -> object:
        m, start, n = mask(v), base(v), nth(v)
        zero = alg.const(0, 32)
        up = alg.sle(zero, n, 32)
        wanted = alg.ite(alg.eq(n, zero, 32), alg.const(1, 32), alg.ite(up, n, alg.neg(n, 32), 32), 32)
        result = alg.const(-1, 32)
        only = alg.eq(n, zero, 32)
        for ascending in (True, False):
            seen = zero
            for i in range(32):
                index = i if ascending else 31 - i
                position = alg.const(index, 32)
                inside = alg.ule(start, position, 32) if ascending else alg.ule(position, start, 32)
                inside = alg.and_(inside, alg.or_(alg.not_(only, 1), alg.eq(position, start, 32), 1), 1)
                counted = alg.and_(alg.and_(alg.extract(m, index, index, 32), inside, 1), up if ascending else alg.not_(up, 1), 1)
                seen = alg.add(seen, alg.zext(counted, 1, 32), 32)
                hit = alg.and_(counted, alg.eq(seen, wanted, 32), 1)
                result = alg.ite(hit, position, result, 32)
        return result

    c.result(value, width=32, signed=False)


@defines("cnot")
def c_style_not(c: Context) -> None:
    alg, w = c.alg, TYPE_BITS[c.type]
    x = c.source(1)
    c.result(lambda v: alg.zext(alg.eq(x(v), alg.const(0, w), w), 1, w))
