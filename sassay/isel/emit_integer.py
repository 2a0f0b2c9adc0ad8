"""Emission of integer, logic, predicate and select operations."""

from __future__ import annotations

from sassay.isel.emit import NOT_TRUE, TRUE, Emitter, fail, rule
from sassay.isel.forms import SHARED, is_leaf_operand
from sassay.isel.ir import Op, Value
from sassay.isel.numbers import SWAPPED, lut_exchange, signed
from sassay.sass.model import R_ZERO, File, Imm, Operand, Reg


def alone(e: Emitter, v: Value) -> bool:
    """The value has one use, and its operation may be taken into that."""
    if e.count.get(v, 0) != 1 or e.needed(v) or v.op.guard:
        return False
    return same_loop(e, v)


def same_loop(e: Emitter, v: Value) -> bool:
    """The value is made in the innermost loop of the place at hand: computing it again there costs no more often."""
    return v.op.block is not None and e.loops.get(v.op.block) is e.loops.get(e.at[0])


def iadd3(e: Emitter, d: Reg, carry_out: list[Reg], words: list[Operand], carry_in: list[Reg] | None = None) -> None:
    """IADD3 with carries as the chip spells them."""
    extended = carry_in is not None
    operands: list[Operand] = [d]
    outs = list(carry_out)
    if e.chip.has("iadd3_preds"):
        outs += [TRUE] * (2 - len(outs))
    operands += outs
    operands += words
    if extended and carry_in is not None:
        operands += [*carry_in, *[NOT_TRUE] * (2 - len(carry_in))]
    e.ins("IADD3", ("X",) if extended else (), operands)


def sum_operands(e: Emitter, x: tuple[Value, str], y: tuple[Value, str], z: tuple[Value, str] | None) -> list[Operand]:
    """Three summands with the one that is immediate or uniform in the middle."""
    zero = (e.graph.const(0), "")
    terms = [x, y, z or zero]
    special = [t for t in terms if e.is_flexible(t[0])]
    if special:
        others = [t for t in terms if t is not special[0]]
        return [e.a(*others[0]), e.flexible(*special[0]), e.a(*others[1])]
    return [e.a(*terms[0]), e.a(*terms[1]), e.a(*terms[2])]


@rule("iadd")
def emit_iadd(e: Emitter, op: Op) -> None:
    (x, y), (mx, my) = op.args, op.amods
    d = e.dest(op.results[0])
    for p, q, mp, mq in ((x, y, mx, my), (y, x, my, mx)):
        if p.op.name == "imul" and alone(e, p) and not mp:
            emit_imad(e, d, p.op.args[0], p.op.args[1], q, mq)
            return
        if p.op.name == "imul" and alone(e, p) and mp == "-" and not mq and p.op.args[1].const is not None:
            emit_imad(e, d, p.op.args[0], e.graph.const(-p.op.args[1].const), q, "")
            return
        if p.op.name == "shl" and alone(e, p) and p.op.args[1].const is not None and not mp:
            if q.const is None:
                emit_lea(e, d, p.op.args[0], q, mq, p.op.args[1].const)
            else:
                emit_imad(e, d, p.op.args[0], e.graph.const(1 << p.op.args[1].const), q, mq)
            return
    for p, q, mp, mq in ((x, y, mx, my), (y, x, my, mx)):
        if p.op.name == "iadd" and alone(e, p) and not mp and not (p.op.args[0].op.name == "imul" or p.op.args[1].op.name == "imul"):
            terms = [(p.op.args[0], p.op.amods[0]), (p.op.args[1], p.op.amods[1]), (q, mq)]
            if sum(e.is_flexible(t[0]) for t in terms) <= 1 and not any(t[0].op.name == "shl" and alone(e, t[0]) for t in terms):
                iadd3(e, d, [], sum_operands(e, *terms))
                return
    iadd3(e, d, [], sum_operands(e, (x, mx), (y, my), None))


def emit_imad(e: Emitter, d: Reg, x: Value, y: Value, z: Value, mz: str) -> None:
    if x.const is not None or e.is_uniform_leaf(x):
        x, y = y, x
    b = e.flexible(y)
    taken = not (isinstance(b, Reg) and b.file is File.R)
    e.ins("IMAD", (), [d, e.a(x), b, e.a(z, mz) if taken else e.flexible(z, mz)])


def emit_lea(e: Emitter, d: Reg, x: Value, y: Value, my: str, shift: int) -> None:
    """d = (x << shift) + y."""
    e.ins("LEA", (), [d, e.a(x), e.flexible(y, my), Imm(shift)])


@rule("imul")
def emit_imul(e: Emitter, op: Op) -> None:
    emit_imad(e, e.dest(op.results[0]), op.args[0], op.args[1], e.graph.const(0), "")


@rule("ineg")
def emit_ineg(e: Emitter, op: Op) -> None:
    iadd3(e, e.dest(op.results[0]), [], [e.a(op.args[0], "-"), R_ZERO, R_ZERO])


@rule("mulhi")
def emit_mulhi(e: Emitter, op: Op) -> None:
    x, y = op.args
    if x.const is not None or e.is_uniform_leaf(x):
        x, y = y, x
    e.ins("IMAD", ("HI",) if op.attr[0] else ("HI", "U32"), [e.dest(op.results[0]), e.a(x), e.flexible(y), R_ZERO])


def wide_product(e: Emitter, d: Reg, product: Op, z: Value | None) -> None:
    x, y = product.args
    if x.const is not None or e.is_uniform_leaf(x):
        x, y = y, x
    mods = ("WIDE",) if product.attr[0] else ("WIDE", "U32")
    e.ins("IMAD", mods, [d, e.a(x), e.flexible(y), e.a(z) if z is not None else R_ZERO])


@rule("mulw")
def emit_mulw(e: Emitter, op: Op) -> None:
    wide_product(e, e.dest(op.results[0]), op, None)


@rule("add64")
def emit_add64(e: Emitter, op: Op) -> None:
    (x, y), (mx, my) = op.args, op.amods
    r = op.results[0]
    d = e.dest(r)
    for p, q, mp, mq in ((x, y, mx, my), (y, x, my, mx)):
        if p.op.name == "mulw" and same_loop(e, p) and not mp and not mq:
            wide_product(e, d, p.op, q)
            return
    for p, q, mp, mq in ((x, y, mx, my), (y, x, my, mx)):
        if mp or mq or p.op.name != "pack" or len(p.op.args) != 2 or not same_loop(e, p):
            continue
        low, high = p.op.args
        if high.const == 0 and low.const is None:
            e.ins("IMAD", ("WIDE", "U32"), [d, e.a(low), Imm(1), e.a(q)])
            return
    for p, q, mp, mq in ((x, y, mx, my), (y, x, my, mx)):
        shifted = None if mp or mq or not alone(e, p) else shifted_pair(p)
        if shifted is not None and q.const is None:
            emit_lea64(e, d, *shifted, q)
            return
    if e.chip.has("int64_alu"):
        emit_iadd64(e, d, (x, mx), (y, my))
        return
    carry = Reg(File.P, e.fn.new(File.P))
    for word in range(2):
        high_mod = {"": "", "-": "~"}
        mods = (mx, my) if word == 0 else (high_mod[mx], high_mod[my])
        words = word_sum(e, x, y, mods, word)
        target = Reg(File.R, d.index + word) if not d.is_zero else d
        iadd3(e, target, [carry] if word == 0 else [], words, None if word == 0 else [carry])


def pair_operand(e: Emitter, v: Value, flexible: bool) -> Operand:
    """A 64-bit operand of a native 64-bit instruction: RZ, a short immediate, a uniform pair or a register pair."""
    if v.const == 0:
        return R_ZERO
    if flexible and v.const is not None and -(1 << 31) <= signed(v.const, 64) < 1 << 31:
        return Imm(signed(v.const, 64))
    if flexible and e.is_uniform_leaf(v):
        return Reg(File.UR, e.leaf(v, File.UR))
    return e.reg(v)


def emit_iadd64(e: Emitter, d: Reg, x: tuple[Value, str], y: tuple[Value, str]) -> None:
    """The first operand is a register pair and may be negated; the second one is flexible."""
    if y[1] or (is_leaf_operand(e, x[0]) and not is_leaf_operand(e, y[0])):
        x, y = y, x
    if y[1]:
        raise fail(e.op or y[0].op, "two negated summands")
    e.ins("IADD", ("64",), [d, e.modified(pair_operand(e, x[0], False), x[1]), pair_operand(e, y[0], True)])


def shifted_pair(v: Value) -> tuple[Value, Value, int] | None:
    """Low word, high word and amount of a 64-bit left shift by less than 32, as `Builder.shl64` builds it."""
    if v.op.name != "pack" or len(v.op.args) != 2:
        return None
    low, high = v.op.args
    if low.op.name != "shl" or high.op.name != "SHF" or high.op.mods != ("L", "U64", "HI"):
        return None
    x, n = low.op.args
    if n.const is None or high.op.args[0] is not x or high.op.args[1] is not n:
        return None
    return x, high.op.args[2], n.const


def emit_lea64(e: Emitter, d: Reg, low: Value, high: Value, shift: int, y: Value) -> None:
    """d = (high:low << shift) + y."""
    carry = Reg(File.P, e.fn.new(File.P))
    e.ins("LEA", (), [d, carry, e.a(low), word_operand(e, y, 0, True), Imm(shift)])
    e.ins("LEA", ("HI", "X"), [Reg(File.R, d.index + 1), e.a(low), word_operand(e, y, 1, True), e.a(high), Imm(shift), carry])


def word_of(e: Emitter, v: Value, word: int) -> Value:
    """One word of a 64-bit value, as a value: parts of packs and leaves are themselves."""
    if v.const is not None:
        return e.graph.const(v.const >> (32 * word))
    if v.op.name == "pack" and not e.needed(v):
        at = 0
        for p in v.op.args:
            if p.width == 1 and at == word:
                return p
            at += p.width
    return v


def word_sum(e: Emitter, x: Value, y: Value, mods: tuple[str, str], word: int) -> list[Operand]:
    terms = [(x, mods[0]), (y, mods[1])]
    operands: list[Operand] = []
    special: list[bool] = []
    for v, mod in terms:
        if v.const is not None:
            c = (v.const >> (32 * word)) & 0xFFFFFFFF
            w = e.graph.const(c)
            special.append(c != 0)
            operands.append(e.flexible(w, mod) if c else e.modified(R_ZERO, mod))
        elif e.is_uniform_leaf(v):
            special.append(True)
            operands.append(e.modified(Reg(File.UR, e.leaf(v, File.UR) + word), mod))
        else:
            w = word_of(e, v, word)
            special.append(False)
            operands.append(e.a(w, mod) if w is not v else e.modified(e.reg(v, word), mod))
    if special[0] and special[1]:
        v, mod = terms[0]
        operands[0] = e.modified(e.reg(v, word) if v.width == 2 else e.reg(v), mod)
    if special[0] and not special[1]:
        operands.reverse()
    return [*operands, R_ZERO]


@rule("addc")
def emit_addc(e: Emitter, op: Op) -> None:
    """x + y + carry with the carry out."""
    word, out = op.results
    e.wanted.update(r for r in (word, out) if e.count.get(r))
    carry_out = [e.dest(out)] if e.needed(out) else []
    carry_in = [e.pred(op.args[2], op.amods[2] == "!")] if len(op.args) > 2 else None
    if e.chip.has("int64_alu") and carry_in is not None:  # no uniform or immediate operand with a carry there
        words: list[Operand] = [e.a(op.args[0], op.amods[0]), e.a(op.args[1], op.amods[1]), R_ZERO]
    else:
        words = sum_operands(e, (op.args[0], op.amods[0]), (op.args[1], op.amods[1]), None)
    iadd3(e, e.dest(word), carry_out, words, carry_in)


@rule("shl")
def emit_shl(e: Emitter, op: Op) -> None:
    x, n = op.args
    d = e.dest(op.results[0])
    if n.const is not None and n.const < 31 and x.const is None:
        # nvdisasm calls a shift by 16 IMAD.U32 and the others IMAD.SHL.U32.
        e.ins("IMAD", ("U32",) if n.const == 16 else ("SHL", "U32"), [d, e.a(x), Imm(1 << n.const), R_ZERO])
    else:
        e.ins("SHF", ("L", "U32"), [d, e.a(x), e.flexible(n, "", "bits"), R_ZERO])


@rule("shr")
def emit_shr(e: Emitter, op: Op) -> None:
    x, n = op.args
    e.ins("SHF", ("R", "S32" if op.attr[0] else "U32", "HI"), [e.dest(op.results[0]), R_ZERO, e.flexible(n, "", "bits"), e.a(x)])


@rule("half")
def emit_half(e: Emitter, op: Op) -> None:
    e.ins("SHF", ("R", "U32", "HI"), [e.dest(op.results[0]), R_ZERO, Imm(16), e.a(op.args[0])])


@rule("lop3")
def emit_lop3(e: Emitter, op: Op) -> None:
    lut = int(op.attr[0])  # type: ignore[call-overload]
    args = list(op.args)
    for i in (0, 2):  # Only the second operand may be an immediate or a uniform register.
        if e.is_flexible(args[i]) and not e.is_flexible(args[1]):
            args[i], args[1] = args[1], args[i]
            lut = lut_exchange(lut, i, 1)
    e.ins("LOP3", ("LUT",), [e.dest(op.results[0]), e.a(args[0]), e.flexible(args[1], "", "bits"), e.a(args[2]), Imm(lut), NOT_TRUE])


@rule("plop")
def emit_plop(e: Emitter, op: Op) -> None:
    lut = int(op.attr[0])  # type: ignore[call-overload]
    operands: list[Operand] = [e.dest(op.results[0]), TRUE]
    operands += [e.pred(v) for v in op.args]
    e.ins("PLOP3", ("LUT",), [*operands, Imm(lut), Imm(0x8)])


@rule("minmax")
def emit_minmax(e: Emitter, op: Op) -> None:
    sign, largest = op.attr
    pick = NOT_TRUE if largest else TRUE
    d, x, y = e.dest(op.results[0]), e.a(op.args[0]), e.flexible(op.args[1])
    kind = ("U32",) if not sign else ("S32",) if e.chip.has("vimnmx_s32") else ()
    e.ins("VIMNMX", kind, [d, TRUE, TRUE, x, y, pick] if e.chip.has("vimnmx_preds") else [d, x, y, pick])


@rule("minmax16")
def emit_minmax16(e: Emitter, op: Op) -> None:
    """Two 16-bit minima or maxima in a word."""
    sign, largest = op.attr
    outs: list[Operand] = [TRUE, TRUE] if e.chip.has("vimnmx_preds") else []
    e.ins("VIMNMX", ("S16x2" if sign else "U16x2",), [e.dest(op.results[0]), *outs, e.a(op.args[0]), e.a(op.args[1]), NOT_TRUE if largest else TRUE])


@rule("icmp")
def emit_icmp(e: Emitter, op: Op) -> None:
    cmp, sign, combine = (str(op.attr[0]), bool(op.attr[1]), str(op.attr[2]))
    x, y = op.args[:2]
    if e.is_uniform_leaf(x) and not e.is_uniform_leaf(y) and y.const is None:
        x, y, cmp = y, x, SWAPPED[cmp]
    q = e.pred(op.args[2], op.amods[2] == "!") if len(op.args) > 2 else TRUE
    mods = (cmp, *(() if sign else ("U32",)), combine)
    e.ins("ISETP", mods, [e.dest(op.results[0]), TRUE, e.a(x), e.flexible(y), q])


@rule("icmp64")
def emit_icmp64(e: Emitter, op: Op) -> None:
    """The low words unsigned, then the high words with that result (ISETP.EX)."""
    cmp, sign, combine = (str(op.attr[0]), bool(op.attr[1]), str(op.attr[2]))
    x, y = op.args[:2]
    q = e.pred(op.args[2], op.amods[2] == "!") if len(op.args) > 2 else TRUE
    if e.chip.has("int64_alu"):
        short = y.const is None or 0 <= y.const < 1 << 31
        operands = [pair_operand(e, x, False), pair_operand(e, y, short), q]
        e.ins("ISETP", (cmp, "S64" if sign else "U64", combine), [e.dest(op.results[0]), TRUE, *operands])
        return
    low = Reg(File.P, e.fn.new(File.P))
    xs = [word_operand(e, x, i, False) for i in range(2)]
    ys = [word_operand(e, y, i, True) for i in range(2)]
    e.ins("ISETP", (cmp, "U32", "AND"), [low, TRUE, xs[0], ys[0], TRUE])
    e.ins("ISETP", (cmp, *(() if sign else ("U32",)), combine, "EX"), [e.dest(op.results[0]), TRUE, xs[1], ys[1], q, low])


def word_operand(e: Emitter, v: Value, word: int, flexible: bool) -> Operand:
    w = word_of(e, v, word)
    if w is not v:
        return e.flexible(w) if flexible else e.reg(w)
    if flexible and e.is_uniform_leaf(v):
        return Reg(File.UR, e.leaf(v, File.UR) + word)
    return e.reg(v, word)


CONDITIONAL = ("FADD", "FMUL", "FFMA", "iadd", "ineg", "imul", "shl", "shr", "lop3", "fneg", "VIADD")


def in_place(e: Emitter, select: Op, changed: Value, kept: Value) -> bool:
    """A select between a value and what one operation makes of it, where nobody needs the old value later: the operation under a guard."""
    op = changed.op
    if select.block in e.sides or op.name not in CONDITIONAL or not alone(e, changed) or op.block is not select.block or op.effect:
        return False
    if kept.op.name in (*SHARED, "part") or kept.width != 1 or e.needed(kept):
        return False
    return e.count[kept] == sum(a is kept for a in select.args) + sum(a is kept for a in op.args)


def conditional(e: Emitter, select: Op, changed: Value, kept: Value, p: Value, when_false: bool) -> None:
    result = select.results[0]
    e.place[changed] = e.home(result)
    e.wanted.add(changed)
    op = changed.op
    op.guard, op.tied = (p, when_false), [kept]
    e.done.add(op)
    e.op = op
    e.one(op)


@rule("sel")
def emit_sel(e: Emitter, op: Op) -> None:
    p, x, y = op.args
    invert = op.amods[0] == "!"
    for changed, kept, when_false in ((x, y, invert), (y, x, not invert)):
        if in_place(e, op, changed, kept):
            conditional(e, op, changed, kept, p, when_false)
            return
    if (is_leaf_operand(e, x) and not is_leaf_operand(e, y)) or (x.const and y.const == 0):
        x, y, invert = y, x, not invert
    e.ins("SEL", (), [e.dest(op.results[0]), e.a(x), e.flexible(y, "", "bits"), e.pred(p, invert)])
