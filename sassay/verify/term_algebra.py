"""The algebra of operations over terms: what turns an operation's one definition into a formula.

Floating point is uninterpreted, by operation, format, rounding and modes, with the rewrites below; each holds for every bit pattern under the
rules of `FloatOp` (one canonical NaN in f32 and narrower; f64 keeps NaN payloads, so its operations neither commute nor move signs) and is
checked against the concrete interpreter in the tests:

- a - b is a + (-b); addition, multiplication, minimum, maximum and equality commute;
- signs of factors are gathered on the first factor: (-a) * b = a * (-b), (-a) * (-b) = a * b, the same inside fma;
- fma(a, 1, c) is a + c, and fma(0, k, c) with a finite constant k is c + 0 with the product's sign;
- a + (-0) as an argument of another operation is a (they differ on NaNs only, which all operations treat alike);
- a + (-0), where a is the result of an operation in that format, is a: its NaN is the canonical one already;
- saturating what an addition, product or multiply-add gave is that operation saturating;
- comparisons are brought to LT, LE, EQ, NE and NUM or the negation of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sassay.isa.semantics.algebra import Exchange, FloatOp, Opaque, width_of
from sassay.verify.terms import Term, Terms

_ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000, "f64": 0x3FF0000000000000}
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000}
_SWAPPED = {"GT": "LT", "GE": "LE", "GTU": "LTU", "GEU": "LEU"}
_NEGATED = {"LEU": "GT", "LTU": "GE", "EQU": "NE", "NEU": "EQ", "NAN": "NUM"}


class TermAlgebra:
    """`sassay.isa.semantics.algebra.Algebra` with terms as values."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def const(self, value: int, w: int) -> Term:
        return self.terms.const(value, w)

    def add(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.add(a, b)

    def sub(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.sub(a, b)

    def neg(self, a: Term, w: int) -> Term:
        return self.terms.neg(a)

    def mul(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.mul(a, b)

    def and_(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.and_(a, b)

    def or_(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.or_(a, b)

    def xor(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.xor(a, b)

    def not_(self, a: Term, w: int) -> Term:
        return self.terms.not_(a)

    def shl(self, a: Term, n: Term, w: int) -> Term:
        return self.terms.shl(a, n)

    def lshr(self, a: Term, n: Term, w: int) -> Term:
        return self.terms.lshr(a, n)

    def ashr(self, a: Term, n: Term, w: int) -> Term:
        return self.terms.ashr(a, n)

    def extract(self, a: Term, high: int, low: int, w: int) -> Term:
        return self.terms.extract(a, high, low)

    def concat(self, high: Term, low: Term, high_width: int, low_width: int) -> Term:
        return self.terms.concat(high, low)

    def zext(self, a: Term, w: int, to: int) -> Term:
        return self.terms.zext(a, to)

    def sext(self, a: Term, w: int, to: int) -> Term:
        return self.terms.sext(a, to)

    def eq(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.eq(a, b)

    def ult(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.ult(a, b)

    def ule(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.ule(a, b)

    def slt(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.slt(a, b)

    def sle(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.sle(a, b)

    def ite(self, p: Term, a: Term, b: Term, w: int) -> Term:
        return self.terms.ite(p, a, b)

    def clz(self, a: Term, w: int) -> Term:
        if a.is_const:
            return self.terms.const(w - a.value.bit_length(), w)
        if w == 64:  # by halves, as hardware counts
            high, low = (self.clz(self.terms.extract(a, i + 31, i), 32) for i in (32, 0))
            empty = self.terms.eq(self.terms.extract(a, 63, 32), self.terms.const(0, 32))
            both = self.terms.add(low, self.terms.const(32, 32))
            return self.terms.zext(self.terms.ite(empty, both, high), 64)
        return self.terms.opaque("clz", (a,), w)

    def popcount(self, a: Term, w: int) -> Term:
        if a.is_const:
            return self.terms.const(a.value.bit_count(), w)
        if w == 64:
            high, low = (self.popcount(self.terms.extract(a, i + 31, i), 32) for i in (32, 0))
            return self.terms.zext(self.terms.add(high, low), 64)
        return self.terms.opaque("popcount", (a,), w)

    def reverse(self, a: Term, w: int) -> Term:
        return self.terms.concat(*(self.terms.extract(a, i, i) for i in range(w)))

    def udiv(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.udiv(a, b)

    def urem(self, a: Term, b: Term, w: int) -> Term:
        return self.terms.urem(a, b)

    def opaque(self, op: Opaque) -> Callable[..., tuple[Term, ...]]:
        return self._named("opaque." + op.name, op.params, op.widths)

    def exchange(self, op: Exchange) -> Callable[..., tuple[Term, ...]]:
        if op.name == "redux" and op.params[0] in ("SUM", "AND", "OR", "XOR"):
            op = replace(op, params=(op.params[0], "U32", ""))
        return self._named("exchange." + op.name, op.params, op.widths)

    def _named(self, name: str, params: tuple[str, ...], widths: tuple[int, ...]) -> Callable[..., tuple[Term, ...]]:
        def apply(*args: Term) -> tuple[Term, ...]:
            return tuple(self.terms.opaque(name, args, w, (*params, i)) for i, w in enumerate(widths))

        return apply

    def float_op(self, op: FloatOp) -> Callable[..., Term]:
        def apply(*args: Term) -> Term:
            if all(a.is_const for a in args):
                return self._constant(op, args)
            return self._float(op, args)

        return apply

    def _constant(self, op: FloatOp, args: tuple[Term, ...]) -> Term:
        from sassay.isa.semantics.numpy_algebra import NUMPY

        width = _result_width(op)
        result = NUMPY.float_op(op)(*(np.array([a.value], dtype=_dtype(a.width)) for a in args))
        return self.terms.const(int(result[0]), width)

    def _plain(self, a: Term) -> Term:
        """The argument without the addition of -0 that settles NaNs."""
        sign = 1 << (a.width - 1)
        if a.op == "anf" and len(a.args) == 1 and self.terms.constant_part(a) == sign:
            inner = self._plain(self._negate(a))
            return self._negate(inner) if inner is not a.args[0] else a
        return unsettled(a) or a

    def _float(self, op: FloatOp, args: tuple[Term, ...]) -> Term:
        if op.name == "to_int":
            op = replace(op, format="")
        if op.name == "add":
            changed = self._saturated(op, args)
            if changed is None:
                changed = self._settled(op, args)
            if changed is not None:
                return changed
        if op.name not in ("convert", "round"):
            args = tuple(self._plain(a) for a in args)
        if op.name == "convert" and op.format == op.source and op.format != "f64" and (op.saturate or op.ftz) and not (op.relu or op.finite):
            return self._settle(op, args[0])
        if op.name == "sub":
            return self._float(replace(op, name="add"), (args[0], self._negate(args[1])))
        if op.name in ("mul", "fma") and op.format != "f64":
            return self._multiply(op, args)
        if op.name == "compare":
            return self._compare(op, *args)
        if op.name in ("add", "min", "max") and op.format != "f64":
            args = tuple(sorted(args, key=lambda t: t.ident))
        return self.terms.opaque("float", args, _result_width(op), op)

    def _settle(self, op: FloatOp, a: Term) -> Term:
        """A conversion of a format to itself that saturates or flushes: the operation before it with that mode, or the addition of -0."""
        sign = self.terms.const(1 << (a.width - 1), a.width)
        return self._float(FloatOp("add", op.format, ftz=op.ftz, saturate=op.saturate), (a, sign))

    def _settled(self, op: FloatOp, args: tuple[Term, ...]) -> Term | None:
        """x for x + (-0), where x is the result of an operation of that format: its NaN is the canonical one already."""
        sign = 1 << (args[0].width - 1)
        rest = [x for x in args if not (x.is_const and x.value == sign)]
        if op.saturate or op.relu or op.format == "f64" or op.rounding == "RM" or len(rest) != 1:
            return None
        before = rest[0].data
        if rest[0].op != "fn:float" or not isinstance(before, FloatOp) or before.name not in _SETTLES or before.format != op.format:
            return None
        return rest[0] if before.ftz or not op.ftz else None

    def _saturated(self, op: FloatOp, args: tuple[Term, ...]) -> Term | None:
        """x + (-0) saturating, where x is an operation that can saturate by itself."""
        sign = 1 << (args[0].width - 1)
        rest = [x for x in args if not (x.is_const and x.value == sign)]
        if not op.saturate or op.ftz or op.relu or op.format == "f64" or len(rest) != 1:
            return None
        before = rest[0].data
        if rest[0].op != "fn:float" or not isinstance(before, FloatOp) or before.name not in ("add", "mul", "fma") or before.format != op.format:
            return None
        if before.saturate or before.relu or before.finite:
            return None
        return self.terms.opaque("float", rest[0].args, rest[0].width, replace(before, saturate=True))

    def _negate(self, a: Term) -> Term:
        return self.terms.xor(a, self.terms.const(1 << (a.width - 1), a.width))

    def _strip(self, a: Term) -> tuple[Term, bool]:
        """The term without a flip of its sign bit, and whether there was one."""
        if a.is_const:
            flipped = bool(a.value >> (a.width - 1))
        else:
            flipped = a.op == "anf" and self.terms.constant_part(a) >> (a.width - 1) == 1
        return (self._negate(a), True) if flipped else (a, False)

    def _multiply(self, op: FloatOp, args: tuple[Term, ...]) -> Term:
        (a, flip_a), (b, flip_b) = self._strip(args[0]), self._strip(args[1])
        if a.ident > b.ident:
            a, b = b, a
        negative = flip_a != flip_b
        if op.name == "fma" and a.is_const and b.is_const and not (a.value and b.value) and op.rounding != "RM":
            zero = self.terms.const(int(negative) << (a.width - 1), a.width)
            finite = all((x.value << 1) & ((1 << x.width) - 1) < _INFINITY[op.format] << 1 for x in (a, b))
            if finite:
                return self._float(replace(op, name="add"), (zero, args[2]))
        if op.name == "fma":
            one = _ONE.get(op.format)
            for factor, other in ((a, b), (b, a)):
                if factor.is_const and factor.value == one:
                    return self._float(replace(op, name="add"), (self._negate(other) if negative else other, args[2]))
        return self.terms.opaque("float", (self._negate(a) if negative else a, b, *args[2:]), _result_width(op), op)

    def _compare(self, op: FloatOp, a: Term, b: Term) -> Term:
        relation = op.relation
        if relation in ("T", "F"):
            return self.terms.const(int(relation == "T"), 1)
        if relation in _SWAPPED:
            return self._compare(replace(op, relation=_SWAPPED[relation]), b, a)
        if relation in _NEGATED:
            return self.terms.not_(self._compare(replace(op, relation=_NEGATED[relation]), a, b))
        if relation in ("EQ", "NE", "NUM") and a.ident > b.ident:
            a, b = b, a
        return self.terms.opaque("float", (a, b), 1, op)


_SETTLES = frozenset({"add", "mul", "fma", "div", "sqrt", "convert", "round", "from_int"})
"""Operations whose NaN results are canonical."""


def unsettled(a: Term) -> Term | None:
    """x when `a` is x + (-0), which differs from x in the NaN alone."""
    if a.op != "fn:float" or not isinstance(a.data, FloatOp):
        return None
    op = a.data
    if op.name != "add" or op.format == "f64" or op.ftz or op.saturate or op.relu or op.rounding == "RM":
        return None
    sign = 1 << (a.width - 1)
    rest = [x for x in a.args if not (x.is_const and x.value == sign)]
    return rest[0] if len(rest) == 1 else None


def _dtype(width: int) -> type[np.generic]:
    return np.bool_ if width == 1 else np.uint8 if width <= 8 else np.uint16 if width <= 16 else np.uint32 if width <= 32 else np.uint64


def _result_width(op: FloatOp) -> int:
    if op.name == "compare":
        return 1
    return op.bits if op.name == "to_int" else width_of(op.format)
