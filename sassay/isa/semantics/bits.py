"""Moves, selects, logic, shifts, permutations, bit counts, predicate logic and integer comparisons."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sassay.isa.semantics.shape import Access, Function, Site, operation

DOC = "documented"
SEEN = "corroborated"


@operation("MOV", "UMOV", evidence=[("", SEEN, "ptx mov; lowering")])
def mov(site: Site) -> Function:
    """d = a. A lane mask (0xf) is the only one known."""
    width = 64 if site.flag("64") else 32
    site.write(width)
    site.integer(width)
    s = site.peek()
    if s is not None:
        if s.kind != "imm" or s.value != 15:
            raise site.fail("byte mask is not known")
        site.skip()
    return lambda a: (a,)


@operation("CS2R", "S2R", "S2UR", "CS2UR", evidence=[("", SEEN, "ptx special registers; lowering")])
def s2r(site: Site) -> Function:
    """d = a special register, whose value the caller supplies; SRZ is zero."""
    wide = site.shape.opcode in ("CS2R", "CS2UR") and not site.flag("32")
    width = 64 if wide else 32
    site.write(width)
    s = site.peek()
    if s is not None and s.kind == "name" and s.text == "SRZ":
        site.skip()
        site.constant(0, width)
    else:
        site.argument(width, None)
    return lambda a: (a,)


_LOADS = {"": (32, False), "U8": (8, False), "S8": (8, True), "U16": (16, False), "S16": (16, True), "64": (64, False), "128": (128, False)}


@operation("LDC", "LDCU", "ULDC", evidence=[("", SEEN, "ptx ld.param/ld.const; lowering")])
def ldc(site: Site) -> Function:
    """d = a constant, extended; wide loads give their 32-bit parts. The caller reads the bank (with an index register, if any)."""
    alg = site.alg
    site.choose("IL", "IS", "ISL")
    width, signed = _LOADS[site.choose(*_LOADS)]
    if width <= 32:
        site.write()
        site.argument(width, None)
        if width == 32:
            return lambda a: (a,)
        extend = alg.sext if signed else alg.zext
        return lambda a: (extend(a, width, 32),)
    parts = width // 32
    site.write(32, parts)
    at = site.at
    site.skip()
    for part in range(parts):
        site.raw(32, part, operand=at)
    return lambda *values: values


@operation("SEL", "USEL", evidence=[("", SEEN, "ptx selp; lowering")])
def sel(site: Site) -> Function:
    """d = a where p, else b."""
    alg = site.alg
    width = 64 if site.flag("64") else 32
    site.write(width)
    site.integer(width)
    site.integer(width)
    site.predicate()
    return lambda a, b, p: (alg.ite(p, a, b, width),)


# Three-input logic


@lru_cache(maxsize=1)
def _formulas() -> dict[int, tuple[str, int, int]]:
    """A cheap formula for each truth table of (a, b, c) = (0xf0, 0xcc, 0xaa): operator and the tables of its arguments."""
    best: dict[int, tuple[str, int, int]] = {0xF0: ("a", 0, 0), 0xCC: ("b", 0, 0), 0xAA: ("c", 0, 0), 0: ("0", 0, 0), 255: ("1", 0, 0)}
    cost = dict.fromkeys(best, 0)
    levels: list[list[int]] = [list(best)]
    size = 0
    while len(best) < 256:
        size += 1
        found: dict[int, tuple[str, int, int]] = {}
        for x in levels[size - 1]:
            found.setdefault(x ^ 255, ("~", x, 0))
        for i in range(size):
            for x in levels[i]:
                for y in levels[size - 1 - i]:
                    for op, r in (("&", x & y), ("|", x | y), ("^", x ^ y)):
                        found.setdefault(r, (op, x, y))
        new = [r for r in found if r not in best]
        for r in new:
            best[r] = found[r]
            cost[r] = size
        levels.append(new)
    return best


def truth_table(alg: Any, lut: int, width: int) -> Callable[[Any, Any, Any], Any]:
    """The bitwise function of three values that the table `lut` gives: bit (4a + 2b + c) of it."""
    formulas = _formulas()
    const = {"0": alg.const(0, width), "1": alg.const((1 << width) - 1, width)}

    def build(table: int) -> Callable[[Any, Any, Any], Any]:
        op, x, y = formulas[table]
        if op in const:
            k = const[op]
            return lambda a, b, c: k
        if op == "a":
            return lambda a, b, c: a
        if op == "b":
            return lambda a, b, c: b
        if op == "c":
            return lambda a, b, c: c
        f = build(x)
        if op == "~":
            return lambda a, b, c: alg.not_(f(a, b, c), width)
        g = build(y)
        method = {"&": alg.and_, "|": alg.or_, "^": alg.xor}[op]
        return lambda a, b, c: method(f(a, b, c), g(a, b, c), width)

    return build(lut)


def _cofactor(lut: int, place: int, value: bool) -> int:
    """The table with input `place` (0: a, 1: b, 2: c) fixed, so that it no longer depends on it."""
    select = (0xF0, 0xCC, 0xAA)[place]
    shift = (4, 2, 1)[place]
    kept = lut & select if value else lut & ~select & 255
    return kept | (kept >> shift if value else kept << shift)


@operation(
    "LOP3", "ULOP3",
    evidence=[("PAND", DOC, "nak encoder: predicate and"), ("", SEEN, "ptx lop3, and/or/xor; lowering; predicate result by setp of a logic op")],
)  # fmt: skip
def lop3(site: Site) -> Function:
    """d = table(a, b, c) bitwise; the predicate result is (d != 0) or p (.PAND: and p)."""
    alg = site.alg
    if not site.flag("LUT"):
        raise site.fail("only .LUT is known")
    both = site.flag("PAND")
    width = 64 if site.flag("64") else 32
    live = site.write_predicates(1)[0]
    site.write(width)
    first = site.at
    for _ in range(3):
        site.integer(width, negate=False)
    table = site.skip()
    if table.kind != "imm":
        raise site.fail("the table must be an immediate")
    lut = table.value & 255
    for i in range(3):
        s = site.shape.operands[first + i]
        if s.zero and not s.invert:
            lut = _cofactor(lut, i, False)
    f = truth_table(alg, lut, width)
    neutral = _choice(site, 0) is both if site.rest() else True
    if site.rest() and neutral:
        site.skip()
    elif site.rest():
        site.predicate()
    zero = alg.const(0, width)
    combine = alg.and_ if both else alg.or_

    def fn(a: Any, b: Any, c: Any, p: Any = None) -> tuple[Any, ...]:
        d = f(a, b, c)
        if not live:
            return (None, d)
        t = alg.not_(alg.eq(d, zero, width), 1)
        return (t if p is None else combine(t, p, 1), d)

    return fn


def _choice(site: Site, offset: int) -> bool | None:
    s = site.peek(offset)
    return None if s is None or not s.zero else not s.invert


@operation("PLOP3", "UPLOP3", evidence=[("", SEEN, "ptx and/or/xor.pred; lowering")])
def plop3(site: Site) -> Function:
    """Two predicates from two tables over three predicates. A register with .SIGN gives its bit 31."""
    alg = site.alg
    if not site.flag("LUT"):
        raise site.fail("only .LUT is known")
    site.write_predicates(2)
    for _ in range(3):
        s = site.peek()
        if s is not None and s.kind in ("R", "UR") and s.suffix == ("SIGN",):
            site.argument(32, _sign_bit(alg, s.invert))
        else:
            site.predicate()
    tables = [site.skip() for _ in range(2)]
    if any(t.kind != "imm" for t in tables):
        raise site.fail("the tables must be immediates")
    f, g = (truth_table(alg, t.value & 255, 1) for t in tables)
    return lambda a, b, c: (f(a, b, c), g(a, b, c))


def _sign_bit(alg: Any, flip: bool) -> Callable[[Any], Any]:
    if flip:
        return lambda v: alg.not_(alg.extract(v, 31, 31, 32), 1)
    return lambda v: alg.extract(v, 31, 31, 32)


# Shifts


@operation(
    "SHF", "USHF",
    evidence=[("W", SEEN, "ptx shf.wrap; lowering"), ("", SEEN, "ptx shl/shr/shf.clamp for 32 and 64 bits; lowering; nak fold")],
)  # fmt: skip
def shf(site: Site) -> Function:
    """{hi:lo} shifted; the low word of it, or with .HI the high one. Amounts clamp at the type's width, or wrap (.W)."""
    alg = site.alg
    left = site.choose("L", "R") == "L"
    wrap = site.flag("W")
    kind = site.choose("U32", "S32", "U64", "S64")
    high = site.flag("HI")
    if not kind:
        raise site.fail("type is missing")
    bits, signed = int(kind[1:]), kind[0] == "S"
    site.write()
    lo_zero, hi_zero = site.is_zero(0), site.is_zero(2)
    site.integer()
    site.integer()
    site.integer()
    mask, limit = alg.const(bits - 1, 32), alg.const(bits, 32)
    over = alg.const(bits, 32)

    def amount(n: Any) -> Any:
        if wrap:
            return alg.and_(n, mask, 32)
        return alg.ite(alg.ult(limit, n, 32), over, n, 32)

    if left and not high:
        return lambda lo, n, hi: (alg.shl(lo, alg.and_(n, mask, 32) if wrap else n, 32),)
    if left and lo_zero and bits == 32:
        return lambda lo, n, hi: (alg.shl(hi, amount(n), 32),)
    if not left and high:
        shift = alg.ashr if signed else alg.lshr
        return lambda lo, n, hi: (shift(hi, alg.and_(n, mask, 32) if wrap else n if bits == 64 else amount(n), 32),)
    if not left and hi_zero:
        return lambda lo, n, hi: (alg.lshr(lo, amount(n), 32),)

    def fn(lo: Any, n: Any, hi: Any) -> tuple[Any, ...]:
        x = alg.concat(hi, lo, 32, 32)
        n = alg.zext(amount(n), 32, 64)
        if left:
            return (alg.extract(alg.shl(x, n, 64), 63, 32, 64),)
        return (alg.extract((alg.ashr if signed else alg.lshr)(x, n, 64), 31, 0, 64),)

    return fn


@operation("SHL", "USHL", evidence=[("", DOC, "ptx shl: amounts past the width give zero")])
def shl(site: Site) -> Function:
    """d = a << n; .W wraps the amount."""
    return _plain_shift(site, True)


@operation("SHR", "USHR", evidence=[("", DOC, "ptx shr: amounts past the width give the fill")])
def shr(site: Site) -> Function:
    """d = a >> n, arithmetic unless .U32; .W wraps the amount."""
    return _plain_shift(site, False)


def _plain_shift(site: Site, left: bool) -> Function:
    alg = site.alg
    kind = site.choose("U32", "S32", "U64", "S64", "64", default="S32")
    width = 64 if "64" in kind else 32
    wrap = site.flag("W")
    site.write(width)
    site.integer(width)
    site.integer(32)
    shift = alg.shl if left else alg.ashr if kind[0] == "S" else alg.lshr
    mask = alg.const(width - 1, width)

    def fn(a: Any, n: Any) -> tuple[Any, ...]:
        if width == 64:
            n = alg.zext(n, 32, 64)
        return (shift(a, alg.and_(n, mask, width) if wrap else n, width),)

    return fn


# Bytes


_PRMT_MODES = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""Selector by the low two bits of the control operand (PTX prmt modes; PTX's IDX mode is the plain one)."""


@operation("PRMT", "UPRMT", evidence=[("F4E B4E RC8 ECL ECR RC16", DOC, "ptx prmt modes"), ("", SEEN, "ptx prmt; lowering")])
def prmt(site: Site) -> Function:
    """Each byte of d is a byte of {b:a} chosen by a nibble of the selector, or (bit 3) eight copies of that byte's sign."""
    alg = site.alg
    mode = site.choose(*_PRMT_MODES, "IDX")
    site.write()
    site.integer()
    s = site.peek()
    fixed = s.value if s is not None and s.kind == "imm" else 0 if site.is_zero() else None
    if fixed is not None and mode in ("", "IDX"):
        site.skip()
        site.integer()
        return _fixed_permute(alg, fixed & 0xFFFF)
    site.integer()
    site.integer()
    if mode in ("", "IDX"):
        return lambda a, n, b: (_permute(alg, a, n, b),)
    tables = [alg.const(x, 32) for x in _PRMT_MODES[mode]]

    def fn(a: Any, n: Any, b: Any) -> tuple[Any, ...]:
        low, high = alg.extract(n, 0, 0, 32), alg.extract(n, 1, 1, 32)
        pick = alg.ite(high, alg.ite(low, tables[3], tables[2], 32), alg.ite(low, tables[1], tables[0], 32), 32)
        return (_permute(alg, a, pick, b),)

    return fn


def _permute(alg: Any, a: Any, n: Any, b: Any) -> Any:
    x = alg.concat(b, a, 32, 32)
    result = None
    seven = alg.const(7, 8)
    for i in range(4):
        nibble = alg.extract(n, 4 * i + 2, 4 * i, 32)
        up = alg.shl(alg.zext(nibble, 3, 64), alg.const(3, 64), 64)
        byte = alg.extract(alg.lshr(x, up, 64), 7, 0, 64)
        byte = alg.ite(alg.extract(n, 4 * i + 3, 4 * i + 3, 32), alg.ashr(byte, seven, 8), byte, 8)
        result = byte if result is None else alg.concat(byte, result, 8, 8 * i)
    return result


def _fixed_permute(alg: Any, selector: int) -> Function:
    """PRMT with a known selector: runs of neighbouring bytes are moved as one."""
    nibbles = [selector >> (4 * i) & 15 for i in range(4)]
    runs: list[tuple[int, int]] = []
    for n in nibbles:
        if runs and n < 8 and runs[-1][0] < 8 and n == runs[-1][0] + runs[-1][1] and n != 4:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((n, 1))
    seven = alg.const(7, 8)

    def fn(a: Any, b: Any) -> tuple[Any, ...]:
        result, size = None, 0
        for start, count in runs:
            word = b if start & 4 else a
            at = (start & 3) * 8
            part = word if count == 4 else alg.extract(word, at + 8 * count - 1, at, 32)
            if start & 8:
                part = alg.ashr(part, seven, 8)
            result = part if result is None else alg.concat(part, result, 8 * count, size)
            size += 8 * count
        return (result,)

    return fn


# Counting and masks


@operation("POPC", "UPOPC", evidence=[("", SEEN, "ptx popc; lowering")])
def popc(site: Site) -> Function:
    """d = number of ones."""
    alg = site.alg
    width = 64 if site.flag("64") else 32
    site.write()
    site.integer(width)
    return lambda a: (alg.extract(alg.popcount(a, width), 31, 0, width),)


@operation("BREV", "UBREV", evidence=[("", SEEN, "ptx brev; lowering")])
def brev(site: Site) -> Function:
    """d = a with its bits in reverse order."""
    alg = site.alg
    site.write()
    site.integer()
    return lambda a: (alg.reverse(a, 32),)


@operation("FLO", "UFLO", evidence=[("SH", SEEN, "ptx bfind.shiftamt, clz; lowering"), ("", SEEN, "ptx bfind; lowering")])
def flo(site: Site) -> Function:
    """d = place of the highest one (signed: of the highest bit unlike the sign), -1 if none; .SH: the shift that brings it to bit 31."""
    alg = site.alg
    unsigned = site.choose("U32", "S32") == "U32"
    shift = site.flag("SH")
    site.write()
    if site.is_predicate():
        site.write(1)
    else:
        site.keep.append(False)
    site.integer()
    top, none, zero = alg.const(31, 32), alg.const(-1, 32), alg.const(0, 32)

    def fn(a: Any) -> tuple[Any, ...]:
        if not unsigned:
            a = alg.xor(a, alg.ashr(a, top, 32), 32)
        n = alg.clz(a, 32)
        empty = alg.eq(a, zero, 32)
        return (alg.ite(empty, none, n if shift else alg.sub(top, n, 32), 32), alg.not_(empty, 1))

    return fn


@operation("BMSK", "UBMSK", evidence=[("W", DOC, "ptx bmsk.wrap; lowering"), ("", SEEN, "ptx bmsk; lowering of bfe")])
def bmsk(site: Site) -> Function:
    """d = `b` ones from bit `a` up. Amounts clamp at 32, or wrap modulo 32 (.W)."""
    alg = site.alg
    wrap = site.choose("W", "C") == "W"
    site.write()
    site.integer()
    site.integer()
    ones, mask, wide = alg.const(-1, 32), alg.const(31, 32), alg.const(32, 32)

    def fn(a: Any, b: Any) -> tuple[Any, ...]:
        if wrap:
            a, b = alg.and_(a, mask, 32), alg.and_(b, mask, 32)
        else:
            b = alg.ite(alg.ult(b, wide, 32), b, wide, 32)
        run = alg.not_(alg.shl(ones, b, 32), 32)
        return (alg.shl(run, a, 32),)

    return fn


@operation("SGXT", "USGXT", evidence=[("W", DOC, "ptx szext.wrap; lowering"), ("", SEEN, "ptx szext; lowering of bfe")])
def sgxt(site: Site) -> Function:
    """d = the low `n` bits of a, sign-extended (.U32: zero-extended). n clamps at 32, or wraps modulo 32 (.W)."""
    alg = site.alg
    unsigned = site.choose("U32", "S32") == "U32"
    wrap = site.choose("W", "C") == "W"
    site.write()
    site.integer()
    site.integer()
    wide, mask, zero = alg.const(32, 32), alg.const(31, 32), alg.const(0, 32)
    shift = alg.lshr if unsigned else alg.ashr

    def fn(a: Any, n: Any) -> tuple[Any, ...]:
        if wrap:
            n = alg.and_(n, mask, 32)
        else:
            n = alg.ite(alg.ult(n, wide, 32), n, wide, 32)
        up = alg.sub(wide, n, 32)
        r = shift(alg.shl(a, up, 32), up, 32)
        return (alg.ite(alg.eq(n, zero, 32), zero, r, 32),)

    return fn


# Comparisons and predicates


_RELATIONS = ("F", "LT", "EQ", "LE", "GT", "NE", "GE", "T")


def combiner(site: Site) -> Callable[[Any, Any], Any]:
    """Take .AND, .OR or .XOR."""
    alg = site.alg
    how = site.choose("AND", "OR", "XOR")
    if not how:
        raise site.fail("the combination is missing")
    method = {"AND": alg.and_, "OR": alg.or_, "XOR": alg.xor}[how]
    return lambda t, p: method(t, p, 1)


def set_predicates(site: Site, live: tuple[bool, ...], test: Callable[..., Any], arguments: int) -> Function:
    """The comparison's two results, (test op p) and (not test op p), after the compared operands have been taken; takes p from the site."""
    alg = site.alg
    how = next((m for m in site.shape.modifiers if m in ("AND", "OR", "XOR")), "")
    combine = combiner(site)
    neutral = _choice(site, 0) is (how == "AND") and (_choice(site, 0) is not None)
    if neutral:
        site.skip()
    else:
        site.predicate()

    def fn(*args: Any) -> tuple[Any, ...]:
        if neutral:
            t = test(*args)
            return (t, alg.not_(t, 1) if live[1] else None)
        p = args[arguments]
        t = test(*args[:arguments], *args[arguments + 1 :])
        return (combine(t, p), combine(alg.not_(t, 1), p) if live[1] else None)

    return fn


def compare_integers(alg: Any, relation: str, signed: bool, width: int) -> Callable[[Any, Any], Any]:
    """The relation of two integers as a function."""
    less, most = (alg.slt, alg.sle) if signed else (alg.ult, alg.ule)
    if relation in ("F", "T"):
        k = alg.const(int(relation == "T"), 1)
        return lambda a, b: k
    table: dict[str, Callable[[Any, Any], Any]] = {
        "LT": lambda a, b: less(a, b, width),
        "LE": lambda a, b: most(a, b, width),
        "GT": lambda a, b: less(b, a, width),
        "GE": lambda a, b: most(b, a, width),
        "EQ": lambda a, b: alg.eq(a, b, width),
        "NE": lambda a, b: alg.not_(alg.eq(a, b, width), 1),
    }
    return table[relation]


@operation("ISETP", "UISETP", evidence=[("EX", SEEN, "lowering of 64-bit comparisons; nak fold"), ("", SEEN, "ptx setp; lowering")])
def isetp(site: Site) -> Function:
    """Two predicates from an integer comparison. .EX compares high words, the low words' result decides where they are equal."""
    alg = site.alg
    relation = site.choose(*_RELATIONS)
    kind = site.choose("U32", "S32", "U64", "S64", default="S32")
    extended = site.flag("EX")
    width = int(kind[1:])
    if not relation:
        raise site.fail("the relation is missing")
    live = site.write_predicates(2)
    site.integer(width)
    site.integer(width)
    compare = compare_integers(alg, relation, kind[0] == "S", width)

    def test(a: Any, b: Any, low: Any = None) -> Any:
        if low is None or relation in ("F", "T"):
            return compare(a, b)
        return alg.ite(alg.eq(a, b, width), low, compare(a, b), 1)

    fn = set_predicates(site, live, test, 2)
    if extended:
        site.predicate()
    return fn


@operation("P2R", "UP2UR", evidence=[("", DOC, "lowering of predicate spills")])
def p2r(site: Site) -> Function:
    """d = a with the bits of the mask replaced by the predicates of the same number (in byte B0 to B3 of the word)."""
    alg = site.alg
    at = int(site.choose("B0", "B1", "B2", "B3", default="B0")[1]) * 8
    site.write()
    pr = site.at
    if site.skip().kind != "name":
        raise site.fail("the predicate file is missing")
    site.integer()
    s = site.skip()
    if s.kind != "imm":
        raise site.fail("the mask must be an immediate")
    bits = [i for i in range(7) if s.value >> i & 1]
    keep = alg.const(~((s.value & 0x7F) << at), 32)
    for i in bits:
        site.raw(1, i, operand=pr)
    counts = {i: alg.const(i + at, 32) for i in bits}

    def fn(a: Any, *predicates: Any) -> tuple[Any, ...]:
        r = alg.and_(a, keep, 32)
        for i, p in zip(bits, predicates, strict=True):
            r = alg.or_(r, alg.shl(alg.zext(p, 1, 32), counts[i], 32), 32)
        return (r,)

    return fn


@operation("R2P", "UR2UP", evidence=[("", DOC, "lowering of predicate refills")])
def r2p(site: Site) -> Function:
    """The predicates of the mask from the bits of a (byte B0 to B3 of it)."""
    alg = site.alg
    at = int(site.choose("B0", "B1", "B2", "B3", default="B0")[1]) * 8
    if site.skip().kind != "name":
        raise site.fail("the predicate file is missing")
    s = site.peek()
    if s is not None and s.suffix:
        if s.suffix not in (("B0",), ("B1",), ("B2",), ("B3",)):
            raise site.fail("suffix not known")
        at += int(s.suffix[0][1]) * 8
    site.argument(32, None, s.value if s is not None and s.kind == "imm" else None)
    m = site.skip()
    if m.kind != "imm":
        raise site.fail("the mask must be an immediate")
    bits = [i for i in range(7) if m.value >> i & 1]
    for i in bits:
        site.writes.append(Access(0, 1, i))
        site.keep.append(True)
    return lambda a: tuple(alg.extract(a, at + i, at + i, 32) for i in bits)
