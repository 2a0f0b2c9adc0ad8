"""Moves, logic, shifts, comparisons and selects (ISA sections "Logic and Shift", "Comparison and Selection", "Data Movement": values only)."""

from __future__ import annotations

from sassay.isa.semantics.algebra import FloatOp
from sassay.ptx.ast import TYPE_BITS, IntOperand
from sassay.ptx.semantics.compiled import Context, Getter, Values, defines
from sassay.ptx.semantics.integer import is_float, lanes, packed_result

FLOAT_LANES = {"f16x2": (2, 16, "f16"), "bf16x2": (2, 16, "bf16"), "f32x2": (2, 32, "f32")}


@defines("mov")
def move(c: Context) -> None:
    value = c.source(1)
    c.result(value, signed=False)


@defines("cvta")
def convert_address(c: Context) -> None:
    """Between an address in a state space and a generic one. Global and constant addresses are generic already."""
    alg, w = c.alg, c.bits
    x = c.source(1)
    space = c.pick("global", "shared", "local", "const", "param", "shared::cta", "shared::cluster", "param::entry")
    if space in ("global", "const", "param", "param::entry"):
        c.result(x, signed=False)
        return
    window = c.window(space)
    if "to" in c.flags:
        c.result(lambda v: alg.sub(x(v), window(v), w), signed=False)
    else:
        c.result(lambda v: alg.add(x(v), window(v), w), signed=False)


@defines("and", "or", "xor")
def bitwise(c: Context) -> None:
    alg, w = c.alg, c.bits
    x, y = c.source(1), c.source(2)
    apply = {"and": alg.and_, "or": alg.or_, "xor": alg.xor}[c.instruction.opcode]
    c.result(lambda v: apply(x(v), y(v), w), signed=False)


@defines("not")
def invert(c: Context) -> None:
    alg, w = c.alg, c.bits
    x = c.source(1)
    c.result(lambda v: alg.not_(x(v), w), signed=False)


@defines("lop3")
def logic_of_three(c: Context) -> None:
    """Any function of three bits, by its truth table: bit 4a+2b+c of the immediate. With .and/.or a predicate folds whether it is non-zero."""
    alg = c.alg
    offset = 1
    x, y, z = (c.source(offset + i, 32) for i in range(3))
    table = _immediate(c, 4)

    def value(v: Values) -> object:
        a, b, d = x(v), y(v), z(v)
        total = alg.const(0, 32)
        for row in range(8):
            if table >> row & 1:
                term = alg.and_(a if row & 4 else alg.not_(a, 32), b if row & 2 else alg.not_(b, 32), 32)
                total = alg.or_(total, alg.and_(term, d if row & 1 else alg.not_(d, 32), 32), 32)
        return total

    fold = c.pick("and", "or")
    if not fold:
        c.result(value, width=32, signed=False)
        return
    q = c.source(5, 1)
    combine = alg.and_ if fold == "and" else alg.or_
    c.pair(value, 32, lambda v: combine(alg.not_(alg.eq(value(v), alg.const(0, 32), 32), 1), q(v), 1))


def _immediate(c: Context, position: int) -> int:
    operand = c.operands[position]
    if not isinstance(operand, IntOperand):
        raise c.unsupported(f"operand {position} must be an immediate")
    return operand.value


@defines("shl", "shr")
def shift(c: Context) -> None:
    """Amounts are 32-bit; at or past the width they give zero, or the sign for .s types."""
    alg, w = c.alg, c.bits
    x, n = c.source(1), c.source(2, 32)
    apply = alg.shl if c.instruction.opcode == "shl" else alg.ashr if c.is_signed else alg.lshr

    def value(v: Values) -> object:
        amount = n(v)
        if w >= 32:
            return apply(x(v), alg.zext(amount, 32, w), w)
        capped = alg.ite(alg.ult(alg.const(w, 32), amount, 32), alg.const(w, 32), amount, 32)
        return apply(x(v), alg.extract(capped, w - 1, 0, 32), w)

    c.result(value, signed=False)


@defines("shf")
def funnel_shift(c: Context) -> None:
    """Shift of the 64-bit value b:a; .l gives its upper half after a left shift, .r its lower half after a right one."""
    alg = c.alg
    low, high, n = c.source(1, 32), c.source(2, 32), c.source(3, 32)
    left, wrap = "l" in c.flags, "wrap" in c.flags

    def value(v: Values) -> object:
        amount = n(v)
        if wrap:
            amount = alg.and_(amount, alg.const(31, 32), 32)
        else:
            amount = alg.ite(alg.ult(alg.const(32, 32), amount, 32), alg.const(32, 32), amount, 32)
        both, wide = alg.concat(high(v), low(v), 32, 32), alg.zext(amount, 32, 64)
        if left:
            return alg.extract(alg.shl(both, wide, 64), 63, 32, 64)
        return alg.extract(alg.lshr(both, wide, 64), 31, 0, 64)

    c.result(value, signed=False)


@defines("prmt")
def permute(c: Context) -> None:
    """Pick four bytes of b:a by nibbles; a nibble's top bit replicates the byte's sign. Modes f4e, b4e, rc8, ecl, ecr, rc16 index by c[1:0]."""
    alg = c.alg
    a, b, selector = c.source(1, 32), c.source(2, 32), c.source(3, 32)
    mode = c.pick("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")

    def byte(both: object, index: object) -> object:
        return alg.extract(alg.lshr(both, alg.shl(alg.zext(index, 3, 64), alg.const(3, 64), 64), 64), 7, 0, 64)

    def plain(v: Values) -> object:
        both, s = alg.concat(b(v), a(v), 32, 32), selector(v)
        result = None
        for i in range(4):
            picked = byte(both, alg.extract(s, 4 * i + 2, 4 * i, 32))
            sign = alg.sext(alg.extract(picked, 7, 7, 8), 1, 8)
            piece = alg.ite(alg.extract(s, 4 * i + 3, 4 * i + 3, 32), sign, picked, 8)
            result = piece if result is None else alg.concat(piece, result, 8, 8 * i)
        return result

    def by_mode(v: Values) -> object:
        both, s = alg.concat(b(v), a(v), 32, 32), alg.extract(selector(v), 1, 0, 32)
        choices = []
        for k in range(4):
            parts = [alg.extract(both, 8 * j + 7, 8 * j, 64) for j in _MODES[mode][k]]
            word = parts[0]
            for i, part in enumerate(parts[1:], 1):
                word = alg.concat(part, word, 8, 8 * i)
            choices.append(word)
        low, high = alg.extract(s, 0, 0, 2), alg.extract(s, 1, 1, 2)
        return alg.ite(high, alg.ite(low, choices[3], choices[2], 32), alg.ite(low, choices[1], choices[0], 32), 32)

    c.result(by_mode if mode else plain, width=32, signed=False)


_MODES: dict[str, list[tuple[int, int, int, int]]] = {
    "f4e": [(k, k + 1, k + 2, k + 3) for k in range(4)],
    "b4e": [(k, (k - 1) % 8, (k - 2) % 8, (k - 3) % 8) for k in range(4)],
    "rc8": [(k, k, k, k) for k in range(4)],
    "ecl": [(0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)],
    "ecr": [(0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)],
    "rc16": [(0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)],
}
"""Source byte of each result byte, lowest first, for each value of the selector's two bits (ISA, prmt)."""

_RELATIONS = {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}


def comparison(c: Context, x: Getter, y: Getter, relation: str, type_: str, w: int) -> Getter:
    """A predicate getter for `x relation y` at an operand type."""
    alg = c.alg
    if is_float(type_):
        format_ = FLOAT_LANES.get(type_, (0, 0, type_))[2]
        compare = alg.float_op(FloatOp("compare", format_, ftz="ftz" in c.flags, relation=relation.upper()))
        return lambda v: compare(x(v), y(v))
    if relation in ("eq", "ne"):
        if relation == "eq":
            return lambda v: alg.eq(x(v), y(v), w)
        return lambda v: alg.not_(alg.eq(x(v), y(v), w), 1)
    signed = type_.startswith("s")
    less, most = (alg.slt, alg.sle) if signed else (alg.ult, alg.ule)
    kind = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(relation, relation)
    if kind == "lt":
        return lambda v: less(x(v), y(v), w)
    if kind == "le":
        return lambda v: most(x(v), y(v), w)
    if kind == "gt":
        return lambda v: less(y(v), x(v), w)
    if kind == "ge":
        return lambda v: most(y(v), x(v), w)
    raise c.unsupported(f"comparison .{relation} of .{type_}")


def _relation(c: Context) -> str:
    for modifier in c.instruction.modifiers:
        if modifier in _RELATIONS:
            return modifier
    raise c.unsupported("no comparison operator")


def _combined(c: Context, test: Getter, position: int) -> tuple[Getter, Getter]:
    """The test and its negation, each combined with the predicate operand by the Boolean modifier where there is one."""
    alg = c.alg
    inverse: Getter = lambda v: alg.not_(test(v), 1)  # noqa: E731
    name = c.pick("and", "or", "xor")
    if not name:
        return test, inverse
    other = c.source(position, 1)
    apply = {"and": alg.and_, "or": alg.or_, "xor": alg.xor}[name]
    return (lambda v: apply(test(v), other(v), 1)), (lambda v: apply(inverse(v), other(v), 1))


@defines("setp")
def set_predicate(c: Context) -> None:
    type_ = c.type
    relation = _relation(c)
    if type_ in FLOAT_LANES:
        count, part, _ = FLOAT_LANES[type_]
        a, b = lanes(c, 1, count, part), lanes(c, 2, count, part)
        first, second = (_combined(c, comparison(c, x, y, relation, type_, part), 3)[0] for x, y in zip(a, b, strict=True))
        c.pair(first, 1, second)
        return
    test = comparison(c, c.source(1), c.source(2), relation, type_, c.bits)
    yes, no = _combined(c, test, 3)
    c.pair(yes, 1, no)


@defines("set")
def set_value(c: Context) -> None:
    """All ones (or 1.0 for float results) where the comparison holds."""
    alg = c.alg
    to, source = c.types[0], c.types[-1]
    relation = _relation(c)
    if source in FLOAT_LANES:
        count, part, _ = FLOAT_LANES[source]
        pairs = zip(lanes(c, 1, count, part), lanes(c, 2, count, part), strict=True)
        tests = [_combined(c, comparison(c, x, y, relation, source, part), 3)[0] for x, y in pairs]
        one = alg.const({"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(to, 0xFFFF), part)
        zero = alg.const(0, part)

        def chosen(test: Getter) -> Getter:
            return lambda v: alg.ite(test(v), one, zero, part)

        packed_result(c, [chosen(t) for t in tests], part)
        return
    test, _ = _combined(c, comparison(c, c.source(1), c.source(2), relation, source, TYPE_BITS[source]), 3)
    width = TYPE_BITS[to]
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(to, (1 << width) - 1)
    c.result(lambda v: alg.ite(test(v), alg.const(ones, width), alg.const(0, width), width), width=width, signed=False)


@defines("selp")
def select_by_predicate(c: Context) -> None:
    alg, w = c.alg, c.bits
    x, y, p = c.source(1), c.source(2), c.source(3, 1)
    c.result(lambda v: alg.ite(p(v), x(v), y(v), w), signed=False)


@defines("slct")
def select_by_sign(c: Context) -> None:
    """a where c >= 0, else b; for f32 selectors NaN takes b and -0 takes a."""
    alg = c.alg
    type_, selector = c.types[0], c.types[-1]
    w = TYPE_BITS[type_]
    x, y, z = c.source(1, w), c.source(2, w), c.source(3, 32)
    if selector == "f32":
        compare = alg.float_op(FloatOp("compare", "f32", ftz="ftz" in c.flags, relation="GE"))
        c.result(lambda v: alg.ite(compare(z(v), alg.const(0, 32)), x(v), y(v), w), width=w, signed=False)
        return
    c.result(lambda v: alg.ite(alg.slt(z(v), alg.const(0, 32), 32), y(v), x(v), w), width=w, signed=False)


@defines("isspacep")
def is_in_space(c: Context) -> None:
    """Whether a generic address lies in a window: its upper word is the window's. Global addresses lie in no window."""
    alg = c.alg
    space = c.pick("global", "shared", "local", "shared::cta")
    x = c.source(1, 64)
    if not space:
        raise c.unsupported("this state space")
    windows = [c.window(s) for s in (("shared", "local") if space == "global" else (space,))]

    def value(v: Values) -> object:
        upper = alg.extract(x(v), 63, 32, 64)
        found = alg.const(0, 1)
        for window in windows:
            found = alg.or_(found, alg.eq(upper, alg.extract(window(v), 63, 32, 64), 32), 1)
        return alg.not_(found, 1) if space == "global" else found

    c.result(value, width=1)
