"""Questions to SMT solvers: is a predicate term satisfiable? bitwuzla answers when installed, z3 always can.

Terms become bit-vectors, opaque functions uninterpreted ones. Each question has a time limit; an answer past it is "unknown".
"""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from typing import Any, cast

from sassay.verify.evaluate import postorder
from sassay.verify.terms import Term


@dataclass(frozen=True, slots=True)
class Answer:
    """`status` is "unsat", "sat" or "unknown"; a model gives values to the variables of a satisfiable query."""

    status: str
    seconds: float
    solver: str
    model: dict[Term, int] | None = None


def available() -> list[str]:
    """Solvers that can be used here, best first."""
    return [name for name in ("bitwuzla", "z3") if importlib.util.find_spec(name) is not None]


def satisfiable(predicate: Term, *, seconds: float = 5.0, solver: str | None = None) -> Answer:
    """Whether some values make `predicate` (a term of one bit) true."""
    if predicate.is_const:
        return Answer("sat" if predicate.value else "unsat", 0.0, "none", {})
    name = solver or available()[0]
    start = time.process_time()
    status, model = _bitwuzla(predicate, seconds) if name == "bitwuzla" else _z3(predicate, seconds)
    return Answer(status, time.process_time() - start, name, model)


def _bitwuzla(predicate: Term, seconds: float) -> tuple[str, dict[Term, int] | None]:
    import bitwuzla as bw

    manager = bw.TermManager()
    translator = _Bitwuzla(bw, manager)
    options = bw.Options()
    options.set(bw.Option.PRODUCE_MODELS, True)
    options.set(bw.Option.TIME_LIMIT_PER, max(1, int(seconds * 1000)))
    engine = bw.Bitwuzla(manager, options)
    root = translator.term(predicate)
    engine.assert_formula(manager.mk_term(bw.Kind.EQUAL, [root, translator.number(1, 1)]))
    result = engine.check_sat()
    if result == bw.Result.UNSAT:
        return "unsat", None
    if result != bw.Result.SAT:
        return "unknown", None
    model = {t: int(engine.get_value(x).value(2), 2) for t, x in translator.done.items() if t.op == "var"}
    return "sat", model


class _Bitwuzla:
    """Terms into bitwuzla's."""

    def __init__(self, bw: Any, manager: Any) -> None:
        self.bw, self.manager = bw, manager
        self.done: dict[Term, Any] = {}
        self.functions: dict[tuple[object, ...], Any] = {}

    def number(self, value: int, width: int) -> Any:
        return self.manager.mk_bv_value(self.manager.mk_bv_sort(width), f"{value:b}", 2)

    def term(self, root: Term) -> Any:
        for term in postorder((root,)):
            if term not in self.done:
                self.done[term] = self._one(term, [self.done[a] for a in term.args])
        return self.done[root]

    def _bit(self, formula: Any) -> Any:
        return self.manager.mk_term(self.bw.Kind.ITE, [formula, self.number(1, 1), self.number(0, 1)])

    def _fold(self, kind: Any, parts: list[Any]) -> Any:
        return parts[0] if len(parts) == 1 else self.manager.mk_term(kind, parts)

    def _one(self, term: Term, args: list[Any]) -> Any:
        kind, make, width = self.bw.Kind, self.manager.mk_term, term.width
        op = term.op
        if op == "const":
            return self.number(term.value, width)
        if op == "var":
            return self.manager.mk_const(self.manager.mk_bv_sort(width), f"v{term.ident}")
        if op.startswith("fn:"):
            return self._function(term, args)
        if op == "lin":
            const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
            parts = [a if c == 1 else make(kind.BV_MUL, [a, self.number(c, width)]) for c, a in zip(coefficients, args, strict=True)]
            return self._fold(kind.BV_ADD, parts + ([self.number(const, width)] if const else []))
        if op == "anf":
            rows, masks = cast("tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]", term.data)
            full = (1 << width) - 1
            sums = []
            for row, mask in zip(rows, masks, strict=True):
                factors = [args[i] for i in row] + ([self.number(mask, width)] if mask != full or not row else [])
                sums.append(self._fold(kind.BV_AND, factors))
            return self._fold(kind.BV_XOR, sums)
        if op == "extract":
            low = cast(int, term.data)
            return make(kind.BV_EXTRACT, args, [low + width - 1, low])
        if op == "zext":
            return make(kind.BV_ZERO_EXTEND, args, [width - term.args[0].width])
        if op == "sext":
            return make(kind.BV_SIGN_EXTEND, args, [width - term.args[0].width])
        if op == "ite":
            return make(kind.ITE, [make(kind.EQUAL, [args[0], self.number(1, 1)]), args[1], args[2]])
        if op in ("eq", "ult", "slt"):
            return self._bit(make({"eq": kind.EQUAL, "ult": kind.BV_ULT, "slt": kind.BV_SLT}[op], args))
        names = {
            "prod": kind.BV_MUL, "xor": kind.BV_XOR, "and": kind.BV_AND, "udiv": kind.BV_UDIV, "urem": kind.BV_UREM,
            "sdiv": kind.BV_SDIV, "srem": kind.BV_SREM, "concat": kind.BV_CONCAT, "shl": kind.BV_SHL, "lshr": kind.BV_SHR,
            "ashr": kind.BV_ASHR,
        }  # fmt: skip
        return self._fold(names[op], args)

    def _function(self, term: Term, args: list[Any]) -> Any:
        key = (term.op, term.data, tuple(a.width for a in term.args), term.width)
        found = self.functions.get(key)
        if found is None:
            result = self.manager.mk_bv_sort(term.width)
            sorts = [self.manager.mk_bv_sort(a.width) for a in term.args]
            sort = self.manager.mk_fun_sort(sorts, result) if sorts else result
            found = self.functions[key] = self.manager.mk_const(sort, f"f{len(self.functions)}")
        return self.manager.mk_term(self.bw.Kind.APPLY, [found, *args]) if args else found


def _z3(predicate: Term, seconds: float) -> tuple[str, dict[Term, int] | None]:
    import z3

    translator = _Z3(z3)
    engine = z3.Solver(ctx=translator.context)
    engine.set("timeout", max(1, int(seconds * 1000)))
    engine.add(translator.term(predicate) == translator.number(1, 1))
    result = engine.check()
    if result == z3.unsat:
        return "unsat", None
    if result != z3.sat:
        return "unknown", None
    found = engine.model()
    model = {t: found.eval(x, model_completion=True).as_long() for t, x in translator.done.items() if t.op == "var"}
    return "sat", model


class _Z3:
    """Terms into z3's."""

    def __init__(self, z3: Any) -> None:
        self.z3 = z3
        self.context = z3.Context()
        self.done: dict[Term, Any] = {}

    def number(self, value: int, width: int) -> Any:
        return self.z3.BitVecVal(value, width, ctx=self.context)

    def term(self, root: Term) -> Any:
        for term in postorder((root,)):
            if term not in self.done:
                self.done[term] = self._one(term, [self.done[a] for a in term.args])
        return self.done[root]

    def _one(self, term: Term, args: list[Any]) -> Any:
        z3, op, width = self.z3, term.op, term.width
        if op == "const":
            return self.number(term.value, width)
        if op == "var":
            return z3.BitVec(f"v{term.ident}", width, ctx=self.context)
        if op.startswith("fn:"):
            name = f"{op}|{term.data!r}|{[a.width for a in term.args]}|{width}"
            sorts = [z3.BitVecSort(a.width, ctx=self.context) for a in term.args]
            return z3.Function(name, *sorts, z3.BitVecSort(width, ctx=self.context))(*args)
        if op == "lin":
            const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
            total = self.number(const, width)
            for c, a in zip(coefficients, args, strict=True):
                total = total + a * self.number(c, width)
            return total
        if op == "anf":
            return self._anf(term, args)
        if op == "extract":
            low = cast(int, term.data)
            return z3.Extract(low + width - 1, low, args[0])
        if op in ("zext", "sext"):
            return (z3.ZeroExt if op == "zext" else z3.SignExt)(width - term.args[0].width, args[0])
        if op in ("eq", "ult", "slt"):
            a, b = args
            formula = a == b if op == "eq" else z3.ULT(a, b) if op == "ult" else a < b
            return z3.If(formula, self.number(1, 1), self.number(0, 1))
        if op == "ite":
            return z3.If(args[0] == self.number(1, 1), args[1], args[2])
        if op == "concat":
            return z3.Concat(*args)
        if op == "prod":
            product = args[0]
            for a in args[1:]:
                product = product * a
            return product
        a, b = args
        return {
            "xor": lambda: a ^ b, "and": lambda: a & b, "udiv": lambda: z3.UDiv(a, b), "urem": lambda: z3.URem(a, b),
            "sdiv": lambda: a / b, "srem": lambda: z3.SRem(a, b), "shl": lambda: a << b, "lshr": lambda: z3.LShR(a, b),
            "ashr": lambda: a >> b,
        }[op]()  # fmt: skip

    def _anf(self, term: Term, args: list[Any]) -> Any:
        rows, masks = cast("tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]", term.data)
        total = self.number(0, term.width)
        for row, mask in zip(rows, masks, strict=True):
            product = self.number(mask, term.width)
            for index in row:
                product = product & args[index]
            total = total ^ product
        return total
