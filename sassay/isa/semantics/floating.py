"""Floating point in f32 and f64: arithmetic, minimum and maximum, comparisons, selects, approximations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sassay.isa.semantics.algebra import Exchange, FloatOp, Opaque
from sassay.isa.semantics.bits import set_predicates
from sassay.isa.semantics.shape import Function, Site, operation, sign_steps

DOC = "documented"
SEEN = "corroborated"
MODEL = "assumed"
IEEE = (
    ("RZ RM RP", DOC, "ptx rounding modifiers: IEEE 754, measured by others on sm_86"),
    ("", DOC, "ptx: IEEE 754, canonical NaN; ftz and sat text"),
)

RELATIONS = (
    "F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T",
)  # fmt: skip
_SCALES = {"D2": -1, "D4": -2, "D8": -3, "M2": 1, "M4": 2, "M8": 3}


def rounding(site: Site, *names: str) -> str:
    """Take the rounding modifier; to nearest even unless said."""
    return site.choose(*(names or ("RN", "RZ", "RM", "RP")), default="RN")


def _arithmetic(site: Site, name: str, count: int, format_: str) -> Function:
    width = 64 if format_ == "f64" else 32
    ftz = site.flag("FTZ") if format_ == "f32" else False
    scale = _SCALES.get(site.choose(*_SCALES), 0) if name == "mul" and format_ == "f32" else 0
    op = FloatOp(name, format_, rounding(site), ftz, saturate=site.flag("SAT") if format_ == "f32" else False, scale=scale)
    site.write(width)
    for _ in range(count):
        site.float(width)
    f = site.alg.float_op(op)
    return lambda *args: (f(*args),)


@operation("FADD", "UFADD", evidence=IEEE)
def fadd(site: Site) -> Function:
    """d = a + b in f32."""
    return _arithmetic(site, "add", 2, "f32")


@operation("FMUL", "UFMUL", evidence=(("D2 D4 D8 M2 M4 M8", DOC, "one rounding after scaling, measured by others on sm_86"), *IEEE))
def fmul(site: Site) -> Function:
    """d = a * b in f32."""
    return _arithmetic(site, "mul", 2, "f32")


@operation("FFMA", "UFFMA", evidence=IEEE)
def ffma(site: Site) -> Function:
    """d = a * b + c in f32, one rounding."""
    return _arithmetic(site, "fma", 3, "f32")


@operation("DADD", evidence=IEEE)
def dadd(site: Site) -> Function:
    """d = a + b in f64."""
    return _arithmetic(site, "add", 2, "f64")


@operation("DMUL", evidence=IEEE)
def dmul(site: Site) -> Function:
    """d = a * b in f64."""
    return _arithmetic(site, "mul", 2, "f64")


@operation("DFMA", evidence=IEEE)
def dfma(site: Site) -> Function:
    """d = a * b + c in f64, one rounding."""
    return _arithmetic(site, "fma", 3, "f64")


# Two f32 at once


def _pair(site: Site) -> None:
    """A pair of f32 as two arguments folded into one 64-bit read; an f32 immediate stands for both."""
    alg = site.alg
    s = site.peek()
    if s is None:
        raise site.fail(f"operand {site.at} is missing")
    if s.invert or s.suffix not in ((), ("F32x2", "HI_LO"), ("64",), ("F32",)):
        raise site.fail(f"operand {site.at}: suffix {'.'.join(s.suffix)} not known here")
    sign = sign_steps(alg, s, 32)
    both = s.suffix in ((), ("F32",)) and s.kind != "imm" and not s.zero

    def split(v: Any) -> tuple[Any, Any]:
        low = alg.extract(v, 31, 0, 64) if not both else v
        high = alg.extract(v, 63, 32, 64) if not both else v
        return (low, high) if sign is None else (sign(low), sign(high))

    value = None if s.kind != "imm" else (s.value & 0xFFFFFFFF) << 32 | (s.value & 0xFFFFFFFF)
    site.argument(32 if both else 64, split, value)


def _packed(site: Site, name: str, count: int) -> Function:
    alg = site.alg
    op = FloatOp(name, "f32", rounding(site), site.flag("FTZ"))
    site.write(64)
    for _ in range(count):
        _pair(site)
    f = alg.float_op(op)

    def fn(*args: Any) -> tuple[Any, ...]:
        return (alg.concat(f(*(a[1] for a in args)), f(*(a[0] for a in args)), 32, 32),)

    return fn


@operation("FADD2", evidence=[("", DOC, "ptx add.f32x2: two independent IEEE operations; lowering")])
def fadd2(site: Site) -> Function:
    """Two additions in f32."""
    return _packed(site, "add", 2)


@operation("FMUL2", evidence=[("", DOC, "ptx mul.f32x2: two independent IEEE operations; lowering")])
def fmul2(site: Site) -> Function:
    """Two products in f32."""
    return _packed(site, "mul", 2)


@operation("FFMA2", evidence=[("", DOC, "ptx fma.f32x2: two independent IEEE operations; lowering")])
def ffma2(site: Site) -> Function:
    """Two multiply-adds in f32."""
    return _packed(site, "fma", 3)


# Minimum, maximum, selection


def extremum(site: Site, format_: str, width: int, *, ftz: bool, nan_wins: bool, xorsign: bool) -> Callable[[Any, Any, Any], Any]:
    """(a, b, p) -> minimum where p, else maximum. .XORSIGN picks by magnitude and gives the product's sign, except to NaN."""
    alg = site.alg
    low = alg.float_op(FloatOp("min", format_, ftz=ftz, nan_wins=nan_wins))
    high = alg.float_op(FloatOp("max", format_, ftz=ftz, nan_wins=nan_wins))
    number = alg.float_op(FloatOp("compare", format_, relation="NUM"))
    sign, rest = alg.const(1 << (width - 1), width), alg.const((1 << (width - 1)) - 1, width)

    def pick(a: Any, b: Any, p: Any) -> Any:
        if p is True or p is False:
            return (low if p else high)(a, b)
        return alg.ite(p, low(a, b), high(a, b), width)

    if not xorsign:
        return pick

    def signed(a: Any, b: Any, p: Any) -> Any:
        r = pick(alg.and_(a, rest, width), alg.and_(b, rest, width), p)
        s = alg.and_(alg.xor(a, b, width), sign, width)
        return alg.ite(number(r, r), alg.or_(r, s, width), r, width)

    return signed


def choice(site: Site) -> bool | None:
    """Take the min/max predicate: true for PT, false for !PT, else None and it becomes an argument."""
    s = site.peek()
    if s is not None and s.zero:
        site.skip()
        return not s.invert
    site.predicate()
    return None


@operation(
    "FMNMX", "UFMNMX",
    evidence=[
        ("XORSIGN NAN", DOC, "ptx min/max.xorsign.abs, .NaN"),
        ("", DOC, "ptx min/max.f32; lowering; NaN of two NaNs assumed"),
    ],
)  # fmt: skip
def fmnmx(site: Site) -> Function:
    """d = min(a, b) where p, else max, in f32."""
    ftz, nan, xor = site.flag("FTZ"), site.flag("NAN"), site.flag("XORSIGN")
    site.write()
    for _ in range(2):
        if xor:
            site.float_in_bars(32)
        else:
            site.float(32)
    p = choice(site)
    f = extremum(site, "f32", 32, ftz=ftz, nan_wins=nan, xorsign=xor)
    if p is not None:
        return lambda a, b: (f(a, b, p),)
    return lambda a, b, q: (f(a, b, q),)


@operation("FMNMX3", evidence=[("", DOC, "ptx min/max.f32 of three; lowering (sm_100a)")])
def fmnmx3(site: Site) -> Function:
    """d = the least of three where p, else the greatest, in f32."""
    ftz, nan, xor = site.flag("FTZ"), site.flag("NAN"), site.flag("XORSIGN")
    site.write()
    for _ in range(3):
        site.float(32)
    p = choice(site)
    f = extremum(site, "f32", 32, ftz=ftz, nan_wins=nan, xorsign=xor)
    if p is not None:
        return lambda a, b, c: (f(f(a, b, p), c, p),)
    return lambda a, b, c, q: (f(f(a, b, q), c, q),)


@operation("FSEL", "UFSEL", evidence=[("", DOC, "a select of bits; lowering of selp")])
def fsel(site: Site) -> Function:
    """d = a where p, else b; bits, NaN untouched."""
    alg = site.alg
    site.write()
    site.float(32)
    site.float(32)
    site.predicate()
    return lambda a, b, p: (alg.ite(p, a, b, 32),)


# Comparisons


def _setp(site: Site, format_: str) -> Function:
    width = 64 if format_ == "f64" else 32
    relation = site.choose(*RELATIONS)
    if not relation:
        raise site.fail("the relation is missing")
    ftz = site.flag("FTZ") if format_ == "f32" else False
    live = site.write_predicates(2)
    site.float(width)
    site.float(width)
    return set_predicates(site, live, site.alg.float_op(FloatOp("compare", format_, ftz=ftz, relation=relation)), 2)


@operation("FSETP", "UFSETP", evidence=[("", DOC, "ptx setp.f32; lowering")])
def fsetp(site: Site) -> Function:
    """Two predicates from a comparison in f32."""
    return _setp(site, "f32")


@operation(
    "DSETP",
    evidence=[
        ("MIN MAX", SEEN, "min/max.f64 and their folding: the second predicate guards the quieting of a NaN result"),
        ("", DOC, "ptx setp.f64; lowering"),
    ],
)  # fmt: skip
def dsetp(site: Site) -> Function:
    """Two predicates from a comparison in f64. MIN and MAX: whether `a` is the wanted operand, NaN losing; and whether both are NaN."""
    which = site.choose("MIN", "MAX")
    if not which:
        return _setp(site, "f64")
    if not site.flag("AND"):
        raise site.fail("only .AND is known")
    alg = site.alg
    site.write_predicates(2)
    site.float(64)
    site.float(64)
    if choice(site) is not True:
        raise site.fail("only a combination with PT is known")
    pick = alg.float_op(FloatOp("min" if which == "MIN" else "max", "f64"))
    nan = alg.float_op(FloatOp("compare", "f64", relation="NAN"))

    def fn(a: Any, b: Any) -> tuple[Any, ...]:
        bad = nan(a, a)
        first = alg.and_(alg.eq(pick(a, b), a, 64), alg.not_(bad, 1), 1)
        return first, alg.and_(bad, nan(b, b), 1)

    return fn


@operation("FSET", "UFSET", evidence=[("", DOC, "ptx set.f32; lowering")])
def fset(site: Site) -> Function:
    """d = 1.0f (.BF) or all ones where the comparison, combined with p, holds; else 0."""
    alg = site.alg
    one = alg.const(0x3F800000 if site.flag("BF") else -1, 32)
    relation = site.choose(*RELATIONS)
    ftz = site.flag("FTZ")
    site.write()
    site.float(32)
    site.float(32)
    test = set_predicates(site, (True, False), alg.float_op(FloatOp("compare", "f32", ftz=ftz, relation=relation)), 2)
    zero = alg.const(0, 32)
    return lambda *args: (alg.ite(test(*args)[0], one, zero, 32),)


@operation("FCHK", evidence=[("", MODEL, "true outside a range where the fast division is surely right; hardware's exact rule is not published")])
def fchk(site: Site) -> Function:
    """p = whether a / b must take the slow path."""
    if site.flag("DIVIDE"):
        pass
    site.write(1)
    site.float(32)
    site.float(32)
    return site.alg.opaque(Opaque("fchk", (1,)))


_FUNCTIONS = ("RCP", "RSQ", "SQRT", "EX2", "LG2", "SIN", "COS", "TANH", "RCP64H", "RSQ64H")


@operation(
    "MUFU", "UMUFU",
    evidence=[("", MODEL, "correctly rounded values with documented special cases, subnormals flushed; hardware's own tables are not reproduced")],
)  # fmt: skip
def mufu(site: Site) -> Function:
    """d = an approximation of a function of a, in f32 (or f16, bf16)."""
    alg = site.alg
    function = site.choose(*_FUNCTIONS)
    small = site.choose("F16", "BF16", "BF16_V2", "F16_V2")
    if not function:
        raise site.fail("the function is missing")
    site.write()
    if not small:
        site.float(32)
        f = alg.opaque(Opaque("mufu", (32,), (function,)))
        return f
    s = site.peek()
    format_ = "bf16" if small.startswith("BF16") else "f16"
    at = 16 if s is not None and s.suffix and s.suffix[0].startswith("H1") else 0
    sign = sign_steps(alg, s, 16) if s is not None else None
    value = s.value if s is not None and s.kind == "imm" else None

    def half(v: Any) -> Any:
        h = alg.extract(v, at + 15, at, 32)
        return h if sign is None else sign(h)

    site.argument(32, half, value)
    g = alg.opaque(Opaque("mufu", (16,), (function, format_)))
    return lambda a: (alg.zext(g(a)[0], 16, 32),)


@operation("FSWZADD", evidence=[("", DOC, "published descriptions of quad derivatives: signs by lane of the quad")])
def fswzadd(site: Site) -> Function:
    """d = +-a +- b by the lane's place in its quad: P is a + b, N is b - a, Z only b... the pattern operand names each lane's sign."""
    ftz, mode = site.flag("FTZ"), rounding(site)
    if site.flag("NDV"):
        raise site.fail(".NDV is not known")
    site.write()
    site.lanes = True
    site.float(32)
    site.float(32)
    pattern = site.skip().text
    if not pattern or set(pattern) - set("PNZ"):
        raise site.fail("the sign pattern is missing")
    return site.alg.exchange(Exchange("fswzadd", (32,), (pattern, mode, "ftz" if ftz else "")))
