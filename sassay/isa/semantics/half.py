"""Packed arithmetic in f16 and bf16."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sassay.isa.semantics.algebra import FloatOp
from sassay.isa.semantics.floating import RELATIONS, choice, extremum, rounding
from sassay.isa.semantics.shape import Function, Site, Source, operation, sign_steps

DOC = "documented"
Pair = tuple[Any, Any]
EVIDENCE = (
    ("", DOC, "ptx f16x2/bf16x2 arithmetic; f16 and bf16 fma measured by others on sm_86; lowering"),
)
_SELECT = {
    (): (0, 1), ("H1_H0",): (0, 1), ("H0_H0",): (0, 0), ("H1_H1",): (1, 1), ("H0_H1",): (1, 0), ("H0",): (0, 0), ("H1",): (1, 1), ("H0_NH1",): (0, 1),
}  # fmt: skip
"""Which half feeds (low, high). H0_NH1 negates the high one."""


def format_of(site: Site) -> str:
    """Take the format modifier."""
    return "bf16" if site.choose("BF16_V2", "BF16", "F16", "F16_V2").startswith("BF16") else "f16"


def _is_immediate_pair(site: Site) -> bool:
    a, b = site.peek(0), site.peek(1)
    return a is not None and b is not None and a.kind == "imm" and b.kind == "imm" and a.number in ("f16", "bf16") and b.number == a.number


def pair(site: Site, *, bars: bool = False) -> None:
    """The next operand as (low, high) halves with its selection and signs. An immediate is printed as two numbers, high half first.

    `bars`: the operation takes magnitude and sign apart and writes the operand in bars; its halves come raw.
    """
    alg = site.alg
    s = site.peek()
    if bars:
        if s is None or s.neg or s.invert or not s.absolute:
            raise site.fail(f"operand {site.at} without bars")
        s = replace(s, absolute=False)
    if s is None:
        raise site.fail(f"operand {site.at} is missing")
    if s.kind == "imm":
        value = s.value
        if _is_immediate_pair(site):
            site.skip()
            low = site.peek()
            value = (s.value & 0xFFFF) << 16 | ((low.value if low is not None else 0) & 0xFFFF)
        site.argument(32, lambda v: (alg.extract(v, 15, 0, 32), alg.extract(v, 31, 16, 32)), value)
        return
    if s.suffix not in _SELECT or s.invert:
        raise site.fail(f"operand {site.at}: suffix {'.'.join(s.suffix)} not known here")
    site.argument(32, splitter(alg, s))


def splitter(alg: Any, s: Source) -> Callable[[Any], Pair]:
    """From a 32-bit value to its selected halves, signs applied."""
    first, second = _SELECT[s.suffix]
    rest, sign = alg.const(0x7FFF, 16), alg.const(0x8000, 16)

    def half(v: Any, which: int, negate: bool) -> Any:
        h = alg.extract(v, 16 * which + 15, 16 * which, 32)
        if s.absolute:
            h = alg.and_(h, rest, 16)
        return alg.xor(h, sign, 16) if negate else h

    flip = s.suffix == ("H0_NH1",)

    def split(v: Any) -> Pair:
        low = half(v, first, s.neg)
        high = low if first == second else half(v, second, s.neg != flip)
        return low, high

    return split


def _arithmetic(site: Site, name: str, count: int) -> Function:
    alg = site.alg
    site.flag("MMA")
    format_ = format_of(site)
    wide = site.flag("F32")
    ftz = site.flag("FTZ")
    if site.flag("FMZ"):
        raise site.fail(".FMZ is not known")
    op = FloatOp(name, format_, ftz=ftz, saturate=site.flag("SAT"), relu=site.flag("RELU"))
    site.write()
    for _ in range(count):
        pair(site)
    if wide:
        return _widened(site, op, count)
    f = alg.float_op(op)

    def fn(*args: Pair) -> tuple[Any, ...]:
        low = f(*(a[0] for a in args))
        if all(a[0] is a[1] for a in args):
            return (alg.concat(low, low, 16, 16),)
        return (alg.concat(f(*(a[1] for a in args)), low, 16, 16),)

    return fn


def _widened(site: Site, op: FloatOp, count: int) -> Function:
    """The .F32 form: the low halves' result in f32. Only additions are known; they serve as conversions (the other addend is -0)."""
    if op.name != "add":
        raise site.fail("only HADD2.F32 is known")
    alg = site.alg
    up = alg.float_op(FloatOp("convert", "f32", source=op.format))
    add = alg.float_op(FloatOp("add", "f32", ftz=op.ftz, saturate=op.saturate))
    return lambda a, b: (add(up(a[0]), up(b[0])),)


@operation("HADD2", evidence=(("F32", "assumed", "lowering of cvt.f32.f16; NaN taken as canonical"), *EVIDENCE))
def hadd2(site: Site) -> Function:
    """d = a + b in both halves."""
    return _arithmetic(site, "add", 2)


@operation("HMUL2", evidence=EVIDENCE)
def hmul2(site: Site) -> Function:
    """d = a * b in both halves."""
    return _arithmetic(site, "mul", 2)


@operation("HFMA2", evidence=EVIDENCE)
def hfma2(site: Site) -> Function:
    """d = a * b + c in both halves, one rounding each."""
    return _arithmetic(site, "fma", 3)


@operation("HMNMX2", evidence=[("XORSIGN", DOC, "ptx min/max.xorsign.abs.f16x2; lowering"), ("", DOC, "ptx min/max.f16x2; lowering")])
def hmnmx2(site: Site) -> Function:
    """d = min(a, b) where p, else max, in both halves."""
    alg = site.alg
    format_ = format_of(site)
    ftz, nan, xor = site.flag("FTZ"), site.flag("NAN"), site.flag("XORSIGN")
    site.write()
    pair(site, bars=xor)
    pair(site, bars=xor)
    p = choice(site)
    f = extremum(site, format_, 16, ftz=ftz, nan_wins=nan, xorsign=xor)
    if p is not None:
        return lambda a, b: (alg.concat(f(a[1], b[1], p), f(a[0], b[0], p), 16, 16),)
    return lambda a, b, q: (alg.concat(f(a[1], b[1], q), f(a[0], b[0], q), 16, 16),)


@operation("VHMNMX", evidence=[("", DOC, "ptx min/max.f16x2; lowering of two of them (sm_90a, sm_100a)")])
def vhmnmx(site: Site) -> Function:
    """d = the least of three where p, else the greatest, in both halves."""
    alg = site.alg
    format_ = format_of(site)
    ftz, nan = site.flag("FTZ"), site.flag("NAN")
    site.write()
    for _ in range(3):
        pair(site)
    p = choice(site)
    if p is None:
        raise site.fail("only a known minimum or maximum")
    f = extremum(site, format_, 16, ftz=ftz, nan_wins=nan, xorsign=False)

    def fn(*args: Pair) -> tuple[Any, ...]:
        low, high = (f(f(args[0][i], args[1][i], p), args[2][i], p) for i in (0, 1))
        return (alg.concat(high, low, 16, 16),)

    return fn


def _mixed(site: Site, count: int, halves: int) -> Function:
    """The first `halves` operands are single 16-bit floats, the rest f32; one rounding to f32."""
    alg = site.alg
    source = format_of(site)
    op = FloatOp("fma", "f32", rounding(site), saturate=site.flag("SAT"), source=source)
    site.write()
    for i in range(count):
        s = site.peek()
        if i >= halves or s is None:
            site.float(32)
            continue
        if s.suffix not in ((), ("H0",), ("H1",), ("H0_H0",), ("H1_H1",)) or s.invert or s.kind == "imm":
            raise site.fail(f"operand {site.at}: form not known here")
        site.argument(32, _one_half(alg, s))
    one = alg.const(0x3F80 if source == "bf16" else 0x3C00, 16)
    f = alg.float_op(op)
    if count == 3:
        return lambda a, b, c: (f(a, b, c),)
    return lambda a, b: (f(a, one, b),)


def _one_half(alg: Any, s: Source) -> Callable[[Any], Any]:
    at = 16 if s.suffix and s.suffix[0].startswith("H1") else 0
    sign = sign_steps(alg, s, 16)

    def take(v: Any) -> Any:
        h = alg.extract(v, at + 15, at, 32)
        return h if sign is None else sign(h)

    return take


@operation("FHADD", evidence=[("", DOC, "ptx add.f32.f16/.bf16: one rounding; lowering (sm_100a)")])
def fhadd(site: Site) -> Function:
    """d = a + b, a in f16 or bf16, b and d in f32."""
    return _mixed(site, 2, 1)


@operation("FHFMA", evidence=[("", DOC, "ptx fma.f32.f16/.bf16: one rounding; lowering (sm_100a)")])
def fhfma(site: Site) -> Function:
    """d = a * b + c, a and b in f16 or bf16, c and d in f32."""
    return _mixed(site, 3, 2)


def _relation(site: Site) -> str:
    relation = site.choose(*RELATIONS)
    if not relation:
        raise site.fail("the relation is missing")
    return relation


def _combine(site: Site) -> Callable[[Any, Any], Any]:
    alg = site.alg
    how = site.choose("AND", "OR", "XOR")
    if not how:
        raise site.fail("the combination is missing")
    method = {"AND": alg.and_, "OR": alg.or_, "XOR": alg.xor}[how]
    return lambda t, p: method(t, p, 1)


@operation(
    "HSETP2",
    evidence=[
        ("H_AND", DOC, "published: both halves must hold"),
        ("", DOC, "ptx setp.f16x2: results of the low and of the high halves; lowering"),
    ],
)  # fmt: skip
def hsetp2(site: Site) -> Function:
    """The comparison of the low halves and of the high halves, each combined with p. .H_AND: the first result is both."""
    alg = site.alg
    format_ = format_of(site)
    relation, ftz, both = _relation(site), site.flag("FTZ"), site.flag("H_AND")
    combine = _combine(site)
    site.write_predicates(2)
    pair(site)
    pair(site)
    site.predicate()
    test = alg.float_op(FloatOp("compare", format_, ftz=ftz, relation=relation))

    def fn(a: Pair, b: Pair, p: Any) -> tuple[Any, ...]:
        low, high = test(a[0], b[0]), test(a[1], b[1])
        if both:
            t = alg.and_(low, high, 1)
            return combine(t, p), combine(alg.not_(t, 1), p)
        return combine(low, p), combine(high, p)

    return fn


@operation("HSET2", evidence=[("", DOC, "ptx set.f16x2: 1.0 (.BF) or all ones; lowering")])
def hset2(site: Site) -> Function:
    """Each half: 1.0 (.BF) or all ones where the comparison, combined with p, holds; else 0."""
    alg = site.alg
    format_ = format_of(site)
    true = site.choose("BF", "BM")
    relation, ftz = _relation(site), site.flag("FTZ")
    combine = _combine(site)
    site.write()
    pair(site)
    pair(site)
    site.predicate()
    test = alg.float_op(FloatOp("compare", format_, ftz=ftz, relation=relation))
    one = alg.const((0x3F80 if format_ == "bf16" else 0x3C00) if true == "BF" else 0xFFFF, 16)
    zero = alg.const(0, 16)

    def fn(a: Pair, b: Pair, p: Any) -> tuple[Any, ...]:
        low, high = (alg.ite(combine(test(a[i], b[i]), p), one, zero, 16) for i in (0, 1))
        return (alg.concat(high, low, 16, 16),)

    return fn
