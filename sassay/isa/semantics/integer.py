"""Integer arithmetic: additions with carries, multiply-adds, shifts and adds, minimum and maximum, absolute value, dot products.

Sources named in the evidence: "ptx" is the PTX ISA text of the instruction that lowers to it, "lowering" ptxas 13.5 output read for such an
instruction, "nak" Mesa's evaluators, which are run against silicon by their authors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sassay.isa.semantics.shape import Function, Site, operation

DOC = "documented"
SEEN = "corroborated"


def _addend(site: Site, width: int, *, extended: bool) -> tuple[int, int]:
    """Take an addend. Gives (number of arguments it adds: 0 or 1, number of ones to add on top).

    A negated addend enters as its complement and a one, so that the carry out is the adder's: -0 carries.
    """
    s = site.peek()
    if s is None:
        raise site.fail("an addend is missing")
    if s.absolute or (s.neg and extended):
        raise site.fail(f"operand {site.at}: modifier not known here")
    if site.is_zero() and not s.neg and not s.invert:
        site.skip()
        return 0, 0
    if s.suffix and s.suffix != ("64",):
        raise site.fail(f"operand {site.at}: suffix not known here")
    alg = site.alg
    complement: Callable[[Any], Any] = lambda v: alg.not_(v, width)  # noqa: E731
    value = s.value if s.kind == "imm" else None
    site.argument(width, complement if s.neg or s.invert else None, value)
    return 1, int(s.neg)


def _carries_in(site: Site, count: int) -> int:
    """Take the carry-in predicates of an .X form; those known to be false are left out."""
    n = 0
    for _ in range(count):
        s = site.peek()
        if s is None:
            break
        if s.zero and s.invert:
            site.skip()
            continue
        site.predicate()
        n += 1
    return n


def adder(site: Site, width: int, terms: int, ones: int, carries: int, live: tuple[bool, ...]) -> Function:
    """The sum of `terms` width-bit values, `carries` width-1 values and `ones`; then a carry for each place in `live`.

    Two carries are the sum's two high bits counted in unary: the first is set from 2**width on, the second from 2 * 2**width on.
    """
    alg = site.alg
    w = width + 2 if any(live) else width
    base = alg.const(ones, w) if ones or not terms + carries else None
    first, second = alg.const((1 << width) - 1, w), alg.const((2 << width) - 1, w)
    one_bit = terms * ((1 << width) - 1) + carries + ones < 2 << width

    def fn(*args: Any) -> tuple[Any, ...]:
        total = base
        for i, a in enumerate(args):
            if i >= terms:
                a = alg.zext(a, 1, w)
            elif w != width:
                a = alg.zext(a, width, w)
            total = a if total is None else alg.add(total, a, w)
        if w == width:
            return (total, *(None for _ in live))
        outs = [alg.extract(total, width - 1, 0, w)]
        if live:
            outs.append(alg.extract(total, width, width, w) if one_bit else alg.ult(first, total, w))
        if len(live) > 1:
            outs.append(alg.ult(second, total, w))
        return tuple(outs)

    return fn


@operation(
    "IADD3", "UIADD3",
    evidence=[("X", DOC, "ptx addc/subc; nak fold for two carries"), ("", SEEN, "ptx add/sub/add.cc; lowering; nak fold")],
)  # fmt: skip
def iadd3(site: Site) -> Function:
    """d = a + b + c (+ carries in), with up to two carries out."""
    return _add(site, 3)


@operation("IADD", "UIADD", evidence=[("", DOC, "ptx add/addc; lowering (sm_100a, sm_120a)")])
def iadd(site: Site) -> Function:
    """d = a + b (+ carry in), with a carry out."""
    return _add(site, 2)


def _add(site: Site, count: int) -> Function:
    extended = site.flag("X")
    width = 64 if site.flag("64") else 32
    site.write(width)
    live = site.write_predicates(2 if count == 3 else 1)
    taken = [_addend(site, width, extended=extended) for _ in range(count)]
    carries = _carries_in(site, 2 if count == 3 else 1) if extended else 0
    return adder(site, width, sum(n for n, _ in taken), sum(k for _, k in taken), carries, live)


_PACKS = {"16x2": 16, "U16x2": 16, "S16x2": 16, "8x4": 8, "U8x4": 8, "S8x4": 8}


@operation(
    "VIADD", "UVIADD",
    evidence=[("ISAT", DOC, "ptx add.sat.s32; lowering"), ("16x2 U8x4 S8x4", DOC, "ptx add.u16x2; lowering"), ("", SEEN, "ptx add; lowering")],
)  # fmt: skip
def viadd(site: Site) -> Function:
    """d = a + b; packed, or clamped to the signed range (.ISAT)."""
    pack = site.choose(*_PACKS)
    site.choose("S32", "U32")
    clamped = site.flag("ISAT")
    if pack and clamped:
        raise site.fail("packed saturation is not known")
    site.write()
    if pack:
        return _packed_sum(site, _PACKS[pack])
    if clamped:
        return _clamped_sum(site)
    taken = [_addend(site, 32, extended=False) for _ in range(2)]
    return adder(site, 32, sum(n for n, _ in taken), sum(k for _, k in taken), 0, ())


def _packed_sum(site: Site, size: int) -> Function:
    alg = site.alg
    negated = []
    for _ in range(2):
        s = site.peek()
        if s is None or s.absolute or s.invert or s.suffix:
            raise site.fail("operand modifier not known here")
        negated.append(s.neg)
        site.argument(32, None, s.value if s.kind == "imm" else None)

    def one(a: Any, b: Any) -> Any:
        a = alg.neg(a, size) if negated[0] else a
        return alg.sub(a, b, size) if negated[1] else alg.add(a, b, size)

    return lambda a, b: (lanes(alg, one, size)(a, b),)


def _clamped_sum(site: Site) -> Function:
    """The exact signed sum, in 34 bits, clamped to 32."""
    alg = site.alg
    signs = []
    for _ in range(2):
        s = site.peek()
        if s is None or s.absolute or s.invert or s.suffix:
            raise site.fail("operand modifier not known here")
        signs.append(s.neg)
        site.argument(32, None, s.value if s.kind == "imm" else None)
    low, high = alg.const(-(1 << 31), 34), alg.const((1 << 31) - 1, 34)

    def fn(a: Any, b: Any) -> tuple[Any, ...]:
        x, y = alg.sext(a, 32, 34), alg.sext(b, 32, 34)
        x = alg.neg(x, 34) if signs[0] else x
        total = alg.sub(x, y, 34) if signs[1] else alg.add(x, y, 34)
        total = alg.ite(alg.slt(total, low, 34), low, alg.ite(alg.slt(high, total, 34), high, total, 34), 34)
        return (alg.extract(total, 31, 0, 34),)

    return fn


@operation(
    "IMAD", "UIMAD",
    evidence=[
        ("HI", SEEN, "lowering of integer division: the addend of .HI is a 64-bit pair"),
        ("WIDE+X", DOC, "ptx mad.wide with carries; lowering of 64-bit products"),
        ("X", SEEN, "lowering of addc as IMAD.X"),
        ("", SEEN, "ptx mul/mad lo, wide; lowering"),
    ],
)  # fmt: skip
def imad(site: Site) -> Function:
    """d = a * b + c: low word, .WIDE (64-bit c and d) or .HI (the high word of the 64-bit sum). MOV, SHL and IADD are spellings.

    The carry is the sum's, past 64 bits in .WIDE and .HI.
    """
    alg = site.alg
    site.choose("MOV", "SHL", "IADD")
    unsigned = site.flag("U32")
    site.flag("S32")
    wide, high, extended = site.flag("WIDE"), site.flag("HI"), site.flag("X")
    width = 64 if wide or high else 32
    site.write(64 if wide else 32)
    live = site.write_predicates(1)
    zero = site.is_zero(0) or site.is_zero(1)
    if zero:
        site.skip()
        site.skip()
    else:
        _factor(site)
        _factor(site)
    n, ones = _addend(site, width, extended=extended)
    carries = _carries_in(site, 1) if extended else 0
    factors = 0 if zero else 2
    add = adder(site, width, n + (not zero), ones, carries, live)
    extend = alg.zext if unsigned else alg.sext
    none = alg.const(0, 1)

    def fn(*args: Any) -> tuple[Any, ...]:
        if factors:
            a, b = args[0], args[1]
            if width == 64:
                a, b = extend(a, 32, 64), extend(b, 32, 64)
            args = (alg.mul(a, b, width), *args[2:])
        if not (n + carries + ones):
            return (args[0] if args else add()[0], none)
        return add(*args)

    if not high:
        return fn

    def top(*args: Any) -> tuple[Any, ...]:
        total, carry = fn(*args)
        return alg.extract(total, 63, 32, 64), carry

    return top


def _factor(site: Site) -> None:
    s = site.peek()
    if s is not None and s.invert:
        raise site.fail("complement of a factor is not known")
    site.integer(32)


@operation(
    "LEA", "ULEA",
    evidence=[
        ("HI", DOC, "published observations: the shifted pair is negated after the shift; nak fold"),
        ("SX32", DOC, "lowering of 64-bit address arithmetic"),
        ("", SEEN, "lowering of address arithmetic; nak fold"),
    ],
)  # fmt: skip
def lea(site: Site) -> Function:
    """d = (a << s) + b. .HI: the high word of {c:a} << s instead; .SX32: c is the sign of a. A minus on `a` acts after the shift."""
    alg = site.alg
    high, extended, signed = site.flag("HI"), site.flag("X"), site.flag("SX32")
    wide = site.flag("64")
    width = 64 if wide else 32
    if wide and (high or extended or signed):
        raise site.fail("modifiers with .64 are not known")
    site.write(width)
    live = site.write_predicates(1)
    s = site.peek()
    if s is None or s.absolute or (s.neg and extended):
        raise site.fail("operand modifier not known here")
    flip, ones = s.neg or s.invert, int(s.neg)
    site.argument(width, None, s.value if s.kind == "imm" else None)
    n, more = _addend(site, width, extended=extended)
    pair = high and not signed
    if pair:
        site.integer(32)
    amount = site.skip()
    if amount.kind != "imm":
        raise site.fail("the shift must be an immediate")
    shift = amount.value & 31 if not wide else amount.value
    carries = _carries_in(site, 1) if extended else 0
    add = adder(site, width, n + 1, ones + more, carries, live)
    count = alg.const(shift, width)
    up = alg.const(31, 32)

    def fn(*args: Any) -> tuple[Any, ...]:
        a, rest = args[0], args[1:]
        if not high:
            t = alg.shl(a, count, width) if shift else a
        else:
            at = n
            c = rest[at] if pair else alg.ashr(a, up, 32)
            rest = rest[:at] + rest[at + (1 if pair else 0) :]
            t = alg.extract(alg.concat(c, a, 32, 32), 63 - shift, 32 - shift, 64) if shift else c
        if flip:
            t = alg.not_(t, width)
        return add(t, *rest)

    return fn


def min_max(site: Site, width: int, signed: bool) -> Callable[[Any, Any, Any], Any]:
    """(p, a, b) -> minimum where p, else maximum."""
    alg = site.alg
    less = alg.slt if signed else alg.ult
    return lambda p, a, b: alg.ite(alg.eq(less(a, b, width), p, 1), a, b, width)


def _choice(site: Site, offset: int) -> bool | None:
    """Whether the predicate `offset` operands ahead is known: true (PT), false (!PT) or None."""
    s = site.peek(offset)
    return None if s is None or not s.zero else not s.invert


def _pick(site: Site, signed: bool, width: int, choice: bool | None) -> Callable[[Any, Any, Any], Any]:
    """(a, b, p) -> min or max, p known as `choice` where not None."""
    alg = site.alg
    less = alg.slt if signed else alg.ult
    if choice is True:
        return lambda a, b, p: alg.ite(less(a, b, width), a, b, width)
    if choice is False:
        return lambda a, b, p: alg.ite(less(a, b, width), b, a, width)
    general = min_max(site, width, signed)
    return lambda a, b, p: general(p, a, b)


def lanes(alg: Any, f: Callable[..., Any], size: int) -> Callable[..., Any]:
    """Apply a function of `size`-bit values to each lane of packed 32-bit arguments."""

    def fn(*args: Any) -> Any:
        result = None
        for at in range(0, 32, size):
            part = f(*(alg.extract(a, at + size - 1, at, 32) for a in args))
            result = part if result is None else alg.concat(part, result, size, at)
        return result

    return fn


def _min_max_type(site: Site) -> tuple[int, bool, int]:
    """(width of an operand, signed, width of a packed lane or 0) from the type modifier; S32 unless said."""
    kind = site.choose("S32", "U32", "S64", "U64", "S16x2", "U16x2", "S8x4", "U8x4", default="S32")
    return (64 if "64" in kind else 32), kind[0] == "S", _PACKS.get(kind, 0)


def _unused_predicates(site: Site) -> None:
    """Predicate results whose meaning is not known must be PT."""
    if any(site.write_predicates(2)):
        raise site.fail("predicate results are not known")


@operation("IMNMX", "UIMNMX", evidence=[("", DOC, "ptx min/max; lowering")])
def imnmx(site: Site) -> Function:
    """d = min(a, b) where p, else max. The 64-bit form names predicate results first and a second predicate (!PT) last."""
    width, signed, packed = _min_max_type(site)
    if packed:
        raise site.fail("packed form is not known")
    first = site.is_predicate()
    if first:
        _unused_predicates(site)
    site.write(width)
    fn = _two(site, width, signed, 0, False)
    return (lambda *args: (None, None, *fn(*args))) if first else fn


def _two(site: Site, width: int, signed: bool, packed: int, relu: bool) -> Function:
    alg = site.alg
    site.integer(width)
    site.integer(width)
    choice = _choice(site, 0)
    if choice is None:
        site.predicate()
    else:
        site.skip()
    if site.rest() and _choice(site, 0) is False:
        site.skip()
    size = packed or width
    pick = _pick(site, signed, size, choice)
    zero = alg.const(0, size)

    def one(a: Any, b: Any, p: Any) -> Any:
        r = pick(a, b, p)
        return alg.ite(alg.slt(r, zero, size), zero, r, size) if relu else r

    if not packed:
        return lambda a, b, p=None: (one(a, b, p),)
    return lambda a, b, p=None: (lanes(alg, lambda x, y: one(x, y, p), size)(a, b),)


@operation("VIMNMX", "UVIMNMX", evidence=[("RELU", DOC, "ptx min.relu; lowering"), ("", SEEN, "ptx min/max; lowering")])
def vimnmx(site: Site) -> Function:
    """d = min(a, b) where p, else max; .RELU then clamps at zero."""
    width, signed, packed = _min_max_type(site)
    relu = site.flag("RELU")
    site.write(width)
    if site.is_predicate():
        _unused_predicates(site)
    return _two(site, width, signed, packed, relu)


@operation("VIMNMX3", "UVIMNMX3", evidence=[("", DOC, "lowering of min(min(a, b), c) and its maximum")])
def vimnmx3(site: Site) -> Function:
    """d = the least of three where p, else the greatest."""
    alg = site.alg
    width, signed, packed = _min_max_type(site)
    relu = site.flag("RELU")
    site.write(width)
    if site.is_predicate():
        _unused_predicates(site)
    for _ in range(3):
        site.integer(width)
    choices = []
    while site.rest():
        choices.append(_choice(site, 0))
        site.skip()
    if not choices or None in choices or len(set(choices)) != 1:
        raise site.fail("only a known minimum or maximum of three")
    size = packed or width
    pick = _pick(site, signed, size, choices[0])
    zero = alg.const(0, size)

    def one(a: Any, b: Any, c: Any) -> Any:
        r = pick(pick(a, b, None), c, None)
        return alg.ite(alg.slt(r, zero, size), zero, r, size) if relu else r

    if packed:
        return lambda a, b, c: (lanes(alg, one, size)(a, b, c),)
    return lambda a, b, c: (one(a, b, c),)


@operation("VIADDMNMX", "UVIADDMNMX", evidence=[("RELU", DOC, "CUDA's __viaddmax_s32_relu"), ("", DOC, "lowering of min(a + b, c)")])
def viaddmnmx(site: Site) -> Function:
    """d = min(a + b, c) where p, else max; the sum wraps; .RELU then clamps at zero."""
    alg = site.alg
    width, signed, packed = _min_max_type(site)
    relu = site.flag("RELU")
    if width != 32:
        raise site.fail("64-bit form is not known")
    site.write()
    if site.is_predicate():
        _unused_predicates(site)
    for _ in range(3):
        site.integer(32)
    choice = _choice(site, 0)
    if choice is None:
        site.predicate()
    else:
        site.skip()
    size = packed or 32
    pick = _pick(site, signed, size, choice)
    zero = alg.const(0, size)

    def one(a: Any, b: Any, c: Any, p: Any) -> Any:
        r = pick(alg.add(a, b, size), c, p)
        return alg.ite(alg.slt(r, zero, size), zero, r, size) if relu else r

    if packed:
        return lambda a, b, c, p=None: (lanes(alg, lambda x, y, z: one(x, y, z, p), size)(a, b, c),)
    return lambda a, b, c, p=None: (one(a, b, c, p),)


@operation("IABS", "UIABS", evidence=[("", SEEN, "ptx abs.s32; lowering")])
def iabs(site: Site) -> Function:
    """d = |a| modulo 2**32."""
    alg = site.alg
    width = 64 if site.flag("64") else 32
    site.write(width)
    site.integer(width)
    zero = alg.const(0, width)
    return lambda a: (alg.ite(alg.slt(a, zero, width), alg.neg(a, width), a, width),)


@operation("IDP", "UIDP", evidence=[("", DOC, "ptx dp4a/dp2a; lowering")])
def idp(site: Site) -> Function:
    """d = c + the dot product of four bytes, or (2A) of two halves of `a` with the low or high two bytes of `b`."""
    alg = site.alg
    two = site.choose("4A", "2A") == "2A"
    high = site.choose("LO", "HI") == "HI"
    types = [site.choose("U8", "S8", "U16", "S16", default="") for _ in range(2)]
    site.write()
    for _ in range(3):
        site.integer(32)
    signs = [t.startswith("S") for t in types]

    def part(v: Any, index: int, size: int, signed: bool) -> Any:
        x = alg.extract(v, index * size + size - 1, index * size, 32)
        return alg.sext(x, size, 32) if signed else alg.zext(x, size, 32)

    def fn(a: Any, b: Any, c: Any) -> tuple[Any, ...]:
        total = c
        for i in range(2 if two else 4):
            x = part(a, i, 16 if two else 8, signs[0])
            y = part(b, i + (2 if two and high else 0), 8, signs[1])
            total = alg.add(total, alg.mul(x, y, 32), 32)
        return (total,)

    return fn


@operation("VABSDIFF", evidence=[("", DOC, "ptx sad.s32/.u32; lowering")])
def vabsdiff(site: Site) -> Function:
    """d = |a - b| + c."""
    alg = site.alg
    signed = site.choose("S32", "U32", default="S32") == "S32"
    site.write()
    for _ in range(3):
        site.integer()
    less = alg.slt if signed else alg.ult

    def fn(a: Any, b: Any, c: Any) -> tuple[Any, ...]:
        return (alg.add(alg.ite(less(a, b, 32), alg.sub(b, a, 32), alg.sub(a, b, 32), 32), c, 32),)

    return fn


@operation("VABSDIFF4", evidence=[("", DOC, "ptx vabsdiff4 with and without .add; lowering (sm_90a)")])
def vabsdiff4(site: Site) -> Function:
    """Differences' magnitudes byte by byte; .ACC: their sum plus c. Without it c plays no part."""
    alg = site.alg
    signed = site.choose("S8", "U8", default="S8") == "S8"
    total = site.flag("ACC")
    site.write()
    for _ in range(3):
        site.integer()
    less = alg.slt if signed else alg.ult

    def one(a: Any, b: Any) -> Any:
        return alg.ite(less(a, b, 8), alg.sub(b, a, 8), alg.sub(a, b, 8), 8)

    def fn(a: Any, b: Any, c: Any) -> tuple[Any, ...]:
        d = lanes(alg, one, 8)(a, b)
        if not total:
            return (d,)
        for at in range(0, 32, 8):
            c = alg.add(c, alg.zext(alg.extract(d, at + 7, at, 32), 8, 32), 32)
        return (c,)

    return fn
