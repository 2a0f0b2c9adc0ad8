"""How operations become instructions: operand layouts of SASS opcodes as data, and rules for the pseudo operations."""

from __future__ import annotations

from sassay.isel.builder import SWAPPED, lut_exchange, signed
from sassay.isel.emit import NOT_TRUE, TRUE, Emitter, fail, rule
from sassay.isel.ir import Op, Value
from sassay.sass.model import ALWAYS, R_ZERO, File, Imm, ImmKind, Mem, Name, Operand, Reg

FORMS = {
    "FADD": "d a b", "FMUL": "d a b", "FFMA": "d a b c", "FMNMX": "d a b p", "FSETP": "P T a b p", "DADD": "d a b", "DMUL": "d a b",
    "DFMA": "d a b c", "DSETP": "P P a b p", "MUFU": "d a", "FCHK": "P a a", "FRND": "d a", "F2F": "d a", "F2I": "d a", "I2F": "d a",
    "I2FP": "d a", "F2FP": "d a b c", "POPC": "d a", "FLO": "d a", "BREV": "d a", "IABS": "d a", "SGXT": "d a b", "BMSK": "d a b",
    "PRMT": "d a b a", "SHF": "d a b a", "IDP": "d a b a", "HADD2": "d a b", "HMUL2": "d a b", "HFMA2": "d a b c", "HMNMX2": "d a b p",
    "HSETP2": "P P a b p", "HSET2": "d a b p", "VIADD": "d a a", "FMNMX3": "d a b c p", "FHADD": "d a a", "FHFMA": "d a a a",
    "FADD2": "d a a", "FMUL2": "d a a", "FFMA2": "d a a a", "HMMA": "d a a a", "IMMA": "d a a a", "DMMA": "d a a a", "IMAD": "d a b c",
    "SHFL": "P d a i i", "NANOSLEEP": "i", "ACQBULK": "", "PREEXIT": "", "ERRBAR": "", "CGAERRBAR": "", "MEMBAR": "", "FENCE": "",
    "LDGDEPBAR": "", "MOVM": "d a",
}  # fmt: skip
"""Operands in the order of nvdisasm's text. d, P: results (register, predicate); a: register; b, c: register, immediate or uniform, c only when b is
a register; i: register or immediate; p: predicate; T: PT. Corroborated by ptxas output for sm_90a, sm_100a and sm_120a."""

COMMUTATIVE = ("FADD", "FMUL", "FFMA", "FMNMX", "DADD", "DMUL", "DFMA", "HADD2", "HMUL2", "HFMA2", "IMAD", "HMNMX2")
KINDS = {"F": "f32", "D": "f64"}


def value_kind(op: Op) -> str:
    """How constants of the operation read: f32 for FADD and its like, f64 for DADD, integers else."""
    if op.name in ("FADD", "FMUL", "FFMA", "FMNMX", "FSETP", "FCHK"):
        return "f32"
    if op.name in ("DADD", "DMUL", "DFMA", "DSETP"):
        return "f64"
    if op.name in ("HSET2", "HADD2", "HMUL2", "HFMA2", "HMNMX2", "HSETP2"):
        return "half"
    return "int" if op.name == "IMAD" else "bits"


def fold_float_modifiers(op: Op) -> tuple[list[Value], list[str]]:
    """Arguments with negations and absolute values of f32 and f64 moved into the operand."""
    args, amods = list(op.args), list(op.amods)
    if op.name not in ("FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA", "FSETP", "DSETP", "FMNMX", "MUFU", "FCHK"):
        return args, amods
    no_abs = op.name in ("FFMA", "DFMA")
    for i, v in enumerate(args):
        while v.op.name in ("fneg", "fabs", "fneg64", "fabs64"):
            absolute = v.op.name.startswith("fabs")
            if absolute and no_abs:
                break
            if absolute:
                if "|" not in amods[i]:
                    amods[i] += "|"
            elif "|" not in amods[i]:
                amods[i] = amods[i].replace("-", "") if "-" in amods[i] else "-" + amods[i]
            v = v.op.args[0]
        args[i] = v
    return args, amods


def half_immediate(v: Value, bf16: bool) -> list[Operand]:
    """A packed constant: two immediates, high half first."""
    c = v.const or 0
    kind = ImmKind.BF16 if bf16 else ImmKind.F16
    return [Imm(c >> 16, kind), Imm(c & 0xFFFF, kind)]


def is_leaf_operand(e: Emitter, v: Value) -> bool:
    return v.const is not None or e.is_uniform_leaf(v)


def emit_form(e: Emitter, op: Op) -> None:
    """An operation whose opcode has a layout."""
    if op.name not in FORMS:
        raise fail(op, "no rule")
    kind = value_kind(op)
    args, amods = fold_float_modifiers(op)
    if op.name in COMMUTATIVE and len(args) >= 2 and args[0].width and "F32" not in op.mods:
        if is_leaf_operand(e, args[0]) and not is_leaf_operand(e, args[1]):
            args[0], args[1] = args[1], args[0]
            amods[0], amods[1] = amods[1], amods[0]
    operands: list[Operand] = []
    results = iter(op.results)
    k = 0
    taken = False
    for letter in FORMS[op.name].split():
        if letter in "dP":
            r = next(results, None)
            operands.append((TRUE if letter == "P" else R_ZERO) if r is None else e.dest(r))
            continue
        if letter == "T":
            operands.append(TRUE)
            continue
        if k >= len(args):
            break
        v, mod = args[k], amods[k]
        k += 1
        if letter == "p":
            operands.append(e.pred(v, mod == "!"))
        elif letter == "i":
            operands.append(Imm(v.const) if v.const is not None and v.const else e.reg(v))
        elif letter in "bc" and kind == "half":
            if v.const and not taken:
                if "-" in mod:
                    v = e.graph.const(v.const ^ 0x80008000)
                operands.extend(half_immediate(v, "BF16_V2" in op.mods))
                taken = True
            else:
                operands.append(e.a(v, mod))
        elif letter == "b" or (letter == "c" and not taken):
            o = e.flexible(v, mod, kind) if v.width <= (2 if kind == "f64" else 1) else e.a(v, mod)
            taken = taken or not (isinstance(o, Reg) and o.file is File.R)
            operands.append(o)
        else:
            operands.append(e.a(v, mod))
    e.ins(op.name, op.mods, operands, op.memory)


# Integers ----------------------------------------------------------------------------------------------------------------------------------


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


# Floats without an operation of their own ----------------------------------------------------------------------------------------------------


@rule("fneg", "fabs")
def emit_fneg(e: Emitter, op: Op) -> None:
    mod = "-" if op.name == "fneg" else "|"
    x = op.args[0]
    if x.op.name == "fabs" and op.name == "fneg":
        x, mod = x.op.args[0], "-|"
    e.ins("FADD", (), [e.dest(op.results[0]), e.a(x, mod), e.modified(R_ZERO, "-")])


@rule("fneg64", "fabs64")
def emit_fneg64(e: Emitter, op: Op) -> None:
    e.ins("DADD", (), [e.dest(op.results[0]), e.modified(R_ZERO, "-"), e.a(op.args[0], "-" if op.name == "fneg64" else "|")])


# Tuples --------------------------------------------------------------------------------------------------------------------------------------


@rule("pack")
def emit_pack(e: Emitter, op: Op) -> None:
    """Words are made in place where this is their only use and they have no register yet; others are copied."""
    file, base = e.home(op.results[0])
    at = 0
    for v in op.args:
        fresh = v.op.name not in (*SHARED, "part") and e.count.get(v, 0) == 1 and v not in e.place and v.width in (1, 2) and not aligned_badly(v, at)
        if fresh and v.op.guard is None and len(v.op.results) == 1:
            e.place[v] = (file, base + at)
            e.wanted.add(v)
        else:
            for word in range(v.width):
                e.ins("MOV", (), [Reg(File.R, base + at + word), e.word_operand(v, word)])
        at += v.width


SHARED = ("const", "param", "undef", "sr", "sp", "phi")


def aligned_badly(v: Value, at: int) -> bool:
    return v.width == 2 and at % 2 == 1


@rule("part")
def emit_part(e: Emitter, op: Op) -> None:
    e.home(op.args[0])


# Memory --------------------------------------------------------------------------------------------------------------------------------------


def descriptor(e: Emitter) -> Reg:
    """The global memory descriptor's uniform pair."""
    if e.descriptor is None:
        e.descriptor = e.fn.new(File.UR, 2)
    e.descriptor_uses.append(e.at)
    return Reg(File.UR, e.descriptor)


def fold_address(base: Value, offset: int) -> tuple[Value, int]:
    while base.op.name in ("add64", "iadd") and base.op.amods == ["", ""] and base.op.args[1].const is not None:
        total = offset + signed(base.op.args[1].const, 32 * base.width)
        if not -(1 << 23) <= total < 1 << 23:
            break
        base, offset = base.op.args[0], total
    return base, offset


def memory_operand(e: Emitter, space: str, base: Value, offset: int, bare: bool = False) -> tuple[Mem, str, int]:
    """The address operand, the name of its base and the offset from it."""
    base, offset = fold_address(base, offset)
    name = f"v{base.uid}"
    wide = space in ("global", "generic")
    if base.const is not None:
        total = base.const + offset
        if 0 <= total < 1 << 23 and not wide:
            return Mem((), total), "0", total
    if base.op.name == "sp":
        e.uses_stack = True
    r = e.reg(base)
    if wide:
        return Mem((Reg(File.R, r.index, () if bare else ("64",)),), offset, "" if bare else "desc", None if bare else descriptor(e)), name, offset
    return Mem((r,), offset), name, offset


OPCODES = {"global": ("LDG", "STG"), "shared": ("LDS", "STS"), "local": ("LDL", "STL"), "generic": ("LD", "ST")}


def fact(op: Op, name: str, offset: int) -> object:
    from dataclasses import replace

    assert op.memory is not None
    return replace(op.memory, base=name, offset=offset)


@rule("load")
def emit_load(e: Emitter, op: Op) -> None:
    space, offset = str(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    mem, name, at = memory_operand(e, space, op.args[0], offset)
    # 256 bits: two quads, the upper one printed first.
    e.ins(OPCODES[space][0], op.mods, [*(e.dest(r) for r in op.results), mem], fact(op, name, at))  # type: ignore[arg-type]


@rule("store")
def emit_store(e: Emitter, op: Op) -> None:
    space, offset = str(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    mem, name, at = memory_operand(e, space, op.args[0], offset)
    e.ins(OPCODES[space][1], op.mods, [mem, *(e.a(v) for v in op.args[1:])], fact(op, name, at))  # type: ignore[arg-type]


@rule("atomic")
def emit_atomic(e: Emitter, op: Op) -> None:
    space, offset, kind = str(op.attr[0]), int(op.attr[1]), str(op.attr[2])  # type: ignore[call-overload]
    cas = kind == "cas"
    if not e.needed(op.results[0]) and kind not in ("cas", "exch"):
        emit_reduce(e, op)
        return
    mem, name, at = memory_operand(e, space, op.args[0], offset, bare=cas)
    data = e.reg(op.args[1])
    width = op.results[0].width
    values: list[Operand] = [data, Reg(File.R, data.index + width)] if cas else [data]
    opcode = "ATOM" if space == "generic" else "ATOMG"
    e.ins(opcode, op.mods, [TRUE, e.dest(op.results[0]), mem, *values], fact(op, name, at))  # type: ignore[arg-type]


@rule("reduce")
def emit_reduce(e: Emitter, op: Op) -> None:
    space, offset = str(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    mem, name, at = memory_operand(e, space, op.args[0], offset)
    if space == "generic":
        e.ins("ATOM", op.mods, [TRUE, R_ZERO, mem, e.a(op.args[1])], fact(op, name, at))  # type: ignore[arg-type]
    else:
        e.ins("REDG", op.mods, [mem, e.a(op.args[1])], fact(op, name, at))  # type: ignore[arg-type]


@rule("ATOMS")
def emit_atoms(e: Emitter, op: Op) -> None:
    mem, name, at = memory_operand(e, "shared", op.args[0], int(op.attr[1]))  # type: ignore[call-overload]
    e.ins("ATOMS", op.mods, [e.dest(op.results[0]), mem, *[e.a(v) for v in op.args[1:]]], fact(op, name, at))  # type: ignore[arg-type]


@rule("LDSM")
def emit_ldsm(e: Emitter, op: Op) -> None:
    mem, name, at = memory_operand(e, "shared", op.args[0], int(op.attr[1]))  # type: ignore[call-overload]
    e.ins("LDSM", op.mods, [e.dest(op.results[0]), mem], fact(op, name, at))  # type: ignore[arg-type]


@rule("STSM")
def emit_stsm(e: Emitter, op: Op) -> None:
    mem, name, at = memory_operand(e, "shared", op.args[0], int(op.attr[1]))  # type: ignore[call-overload]
    e.ins("STSM", op.mods, [mem, e.a(op.args[1])], fact(op, name, at))  # type: ignore[arg-type]


@rule("LDGSTS")
def emit_ldgsts(e: Emitter, op: Op) -> None:
    to, of = int(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    shared, _, _ = memory_operand(e, "shared", op.args[0], to)
    source, _, _ = memory_operand(e, "global", op.args[1], of)
    guard: list[Operand] = [e.pred(op.args[2], op.amods[2] == "!")] if len(op.args) > 2 else []
    e.ins("LDGSTS", op.mods, [shared, source, *guard], op.memory)


@rule("LDC")
def emit_ldc(e: Emitter, op: Op) -> None:
    from sassay.sass.model import Const

    bank, offset = int(op.attr[0]), int(op.attr[1])  # type: ignore[call-overload]
    base, at = fold_address(op.args[0], offset)
    if not 0 < at < 1 << 15:
        base, at = op.args[0], offset
    e.ins("LDC", op.mods, [e.dest(op.results[0]), Const(bank, at, e.reg(base))])


@rule("CCTL")
def emit_cctl(e: Emitter, op: Op) -> None:
    if not op.args:
        e.ins("CCTL", op.mods, [], op.memory)
        return
    mem, name, at = memory_operand(e, "global", op.args[0], int(op.attr[1]), bare=True)  # type: ignore[call-overload]
    e.ins("CCTL", op.mods, [mem], fact(op, name, at))  # type: ignore[arg-type]


@rule("QSPC")
def emit_qspc(e: Emitter, op: Op) -> None:
    e.ins("QSPC", op.mods, [e.dest(op.results[0]), R_ZERO, Mem((e.reg(op.args[0]),))])


# Threads -------------------------------------------------------------------------------------------------------------------------------------


@rule("CS2R")
def emit_cs2r(e: Emitter, op: Op) -> None:
    e.ins("CS2R", op.mods, [e.dest(op.results[0]), Name(str(op.attr[0]))])


@rule("BPT")
def emit_bpt(e: Emitter, op: Op) -> None:
    e.ins("BPT", op.mods, [Imm(int(op.attr[0]))])  # type: ignore[call-overload]


@rule("DEPBAR")
def emit_depbar(e: Emitter, op: Op) -> None:
    e.ins("DEPBAR", op.mods, [Reg(File.SB, 0), Imm(int(op.attr[1]))], op.memory)  # type: ignore[call-overload]


@rule("BAR")
def emit_bar(e: Emitter, op: Op) -> None:
    operands: list[Operand] = []
    for v, m in zip(op.args, op.amods, strict=True):
        operands.append(e.pred(v, m == "!") if v.width == 0 else Imm(v.const) if v.const is not None else e.reg(v))
    e.ins("BAR", op.mods, operands, op.memory)


@rule("B2R")
def emit_b2r(e: Emitter, op: Op) -> None:
    r = op.results[0]
    e.ins("B2R", op.mods, [R_ZERO, e.dest(r)] if r.width == 0 else [e.dest(r)], op.memory)


@rule("VOTE")
def emit_vote(e: Emitter, op: Op) -> None:
    """The word of a ballot is left out of the text where nobody reads it."""
    word, p = (e.dest(r) for r in op.results)
    e.ins("VOTE", op.mods, [*([] if word.is_zero else [word]), p, e.pred(op.args[0], op.amods[0] == "!")])


@rule("MATCH")
def emit_match(e: Emitter, op: Op) -> None:
    results = [e.dest(r) for r in op.results]
    e.ins("MATCH", op.mods, [*results, e.a(op.args[0])])


@rule("REDUX", "CREDUX")
def emit_redux(e: Emitter, op: Op) -> None:
    """The result is uniform; it moves to a vector register at once."""
    u = Reg(File.UR, e.fn.new(File.UR))
    e.ins(op.name, op.mods, [u, e.a(op.args[0])])
    e.ins("MOV", (), [e.dest(op.results[0]), u])


@rule("ELECT")
def emit_elect(e: Emitter, op: Op) -> None:
    p, leader = op.results
    if not e.needed(leader):
        e.ins("ELECT", (), [e.dest(p), Reg(File.UR, 255), TRUE])
        return
    u = Reg(File.UR, e.fn.new(File.UR))
    e.ins("ELECT", (), [e.dest(p), u, TRUE])
    e.ins("MOV", (), [e.dest(leader), u])


@rule("converge")
def emit_converge(e: Emitter, op: Op) -> None:
    """WARPSYNC, left out where the whole warp runs here and all its threads are meant."""
    mask = op.args[0]
    divergent = e.at[0] in e.divergence.blocks or op.guard is not None
    saved, op.guard = op.guard, None
    if mask.const == 0xFFFFFFFF:
        if divergent and saved is None:
            e.ins("WARPSYNC", ("ALL",), [])
    elif saved is None:
        e.ins("WARPSYNC", (), [e.reg(mask)])
    op.guard = saved


@rule("BSYNC")
def emit_bsync(e: Emitter, op: Op) -> None:
    mods = ("RECONVERGENT",) if e.chip.has("reconvergent") else ()
    e.ins("BSYNC", mods, [Reg(File.B, int(op.attr[0]))])  # type: ignore[call-overload]


@rule("BSSY")
def emit_bssy(e: Emitter, op: Op) -> None:
    from sassay.sass.model import Target

    mods = ("RECONVERGENT",) if e.chip.has("reconvergent") else ()
    e.ins("BSSY", mods, [Reg(File.B, int(op.attr[0])), Target(op.attr[1].label)])  # type: ignore[call-overload, attr-defined]


__all__ = ["ALWAYS", "emit_form"]
