"""Is one term always equal to another, given that a condition holds? By normal form, by evaluation, by sweeping, by a solver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from sassay.isa.semantics.algebra import FloatOp
from sassay.verify.evaluate import evaluate, postorder, random_value
from sassay.verify.solver import Answer, satisfiable
from sassay.verify.term_algebra import TermAlgebra
from sassay.verify.terms import Term, Terms

SAMPLES = 24
MAX_MISMATCHES = 24


@dataclass(frozen=True, slots=True)
class Result:
    """`status`: "equal", "different" (with an assignment to the variables that shows it) or "unknown" (with the reason)."""

    status: str
    method: str
    seconds: float = 0.0
    witness: dict[Term, int] | None = None
    reason: str = ""


@dataclass(slots=True)
class Budget:
    """Limits on solver time: per question and in all, in CPU seconds."""

    per_query: float = 2.0
    total: float = 60.0
    spent: float = 0.0
    queries: int = 0
    methods: dict[str, int] = field(default_factory=dict)

    @property
    def exhausted(self) -> bool:
        return self.spent >= self.total


def equal(terms: Terms, a: Term, b: Term, condition: Term, budget: Budget) -> Result:
    """Decide whether `a` equals `b` whenever `condition` is true."""
    result = _equal(terms, a, b, condition, budget)
    budget.methods[result.method] = budget.methods.get(result.method, 0) + 1
    return result


def _equal(terms: Terms, a: Term, b: Term, condition: Term, budget: Budget) -> Result:
    if a is b or (condition.is_const and not condition.value):
        return Result("equal", "normal form")
    a, b = assume(terms, a, condition), assume(terms, b, condition)
    if a is b:
        return Result("equal", "normal form")
    counterexample = refute(a, b, condition)
    if counterexample is not None:
        return Result("different", "evaluation", 0.0, counterexample)
    if congruent(terms, a, b, budget):
        return Result("equal", "congruence")
    swept = sweep(terms, a, b, budget)
    if swept is not None:
        a, b = swept
        if a is b:
            return Result("equal", "sweeping")
    return _solve(terms, a, b, condition, budget)


def _solve(terms: Terms, a: Term, b: Term, condition: Term, budget: Budget) -> Result:
    if budget.exhausted:
        return Result("unknown", "solver", reason="the budget for solver time is spent")
    query = terms.and_(condition, terms.not_(terms.eq(a, b)))
    if _follows_loosely(terms, query, budget, budget.per_query):
        return Result("equal", "solver, products abstract")
    answer = satisfiable(query, seconds=budget.per_query)
    budget.spent += answer.seconds
    budget.queries += 1
    if answer.status == "unsat":
        return Result("equal", answer.solver, answer.seconds)
    if answer.status == "sat":
        return _replay(a, b, condition, answer)
    return Result("unknown", answer.solver, answer.seconds, reason=f"{answer.solver} gave no answer in {budget.per_query} s")


def _follows_loosely(terms: Terms, query: Term, budget: Budget, seconds: float) -> bool:
    """Whether `query` is unsatisfiable even with products and quotients replaced by unknowns. False when it has none."""
    hard = [t for t in postorder((query,)) if t.op in ("prod", "udiv", "urem", "sdiv", "srem")]
    if not hard:
        return False
    loose = rewrite(terms, query, {t: terms.var(f"abstract#{t.ident}", t.width) for t in hard})
    answer = satisfiable(loose, seconds=seconds)
    budget.spent += answer.seconds
    budget.queries += 1
    return answer.status == "unsat"


def _replay(a: Term, b: Term, condition: Term, answer: Answer) -> Result:
    """A solver's model counts only if evaluation, which knows floating point, confirms it."""
    model = answer.model or {}
    values = evaluate((a, b, condition), lambda t: model.get(t, 0))
    if values[condition] and values[a] != values[b]:
        return Result("different", answer.solver, answer.seconds, model)
    return Result("unknown", answer.solver, answer.seconds, reason="equal as far as evaluation shows, but not proved")


def refute(a: Term, b: Term, condition: Term) -> dict[Term, int] | None:
    """Values on which `a` and `b` differ while `condition` holds, if a few samples show one."""
    roots = (a, b, condition)
    for sample in range(SAMPLES):
        values = evaluate(roots, lambda t, salt=sample: random_value(t.data, salt, t.width))  # type: ignore[misc]
        if values[condition] and values[a] != values[b]:
            return {t: v for t, v in values.items() if t.op == "var"}
    return None


def assume(terms: Terms, term: Term, condition: Term) -> Term:
    """Replace conjuncts of `condition` that are leaves of it by what they must be, inside `term`."""
    facts = _facts(terms, condition)
    return rewrite(terms, term, facts) if facts else term


def _facts(terms: Terms, condition: Term) -> dict[Term, Term]:
    if condition.is_const:
        return {}
    if terms.is_negated(condition) and len(condition.args) == 1:
        return {condition.args[0]: terms.const(0, 1)}
    if condition.op == "anf":
        rows = condition.data[0]  # type: ignore[index]
        if len(rows) == 1:
            return {t: terms.const(1, 1) for t in condition.args}
        return {}
    return {condition: terms.const(1, 1)}


def rewrite(terms: Terms, root: Term, replacement: dict[Term, Term]) -> Term:
    """`root` with terms replaced, rebuilt in normal form; replaced terms are not looked into."""
    if not replacement:
        return root
    done: dict[Term, Term] = dict(replacement)
    stack = [(root, False)]
    while stack:
        term, expanded = stack.pop()
        if expanded:
            args = tuple(done[x] for x in term.args)
            done[term] = term if args == term.args else rebuild(terms, term, args)
        elif term not in done:
            stack.append((term, True))
            stack.extend((x, False) for x in term.args if x not in done)
    return done[root]


def rebuild(terms: Terms, term: Term, args: tuple[Term, ...]) -> Term:
    """The operation of `term` applied to other arguments."""
    op = term.op
    if op == "lin":
        const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
        total = terms.const(const, term.width)
        for c, a in zip(coefficients, args, strict=True):
            total = terms.add(total, terms.scale(a, c))
        return total
    if op == "anf":
        rows, masks = cast("tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]", term.data)
        total = terms.const(0, term.width)
        for row, mask in zip(rows, masks, strict=True):
            product = terms.const(mask, term.width)
            for index in row:
                product = terms.and_(product, args[index])
            total = terms.xor(total, product)
        return total
    if op == "prod":
        total = args[0]
        for a in args[1:]:
            total = terms.mul(total, a)
        return total
    if op == "extract":
        low = term.data
        assert isinstance(low, int)
        return terms.extract(args[0], low + term.width - 1, low)
    if op == "concat":
        return terms.concat(*args)
    if op in ("zext", "sext"):
        return terms.zext(args[0], term.width) if op == "zext" else terms.sext(args[0], term.width)
    if op == "ite":
        return terms.ite(*args)
    if op == "fn:float" and isinstance(term.data, FloatOp):
        return TermAlgebra(terms).float_op(term.data)(*args)
    if op.startswith("fn:"):
        if op in ("fn:clz", "fn:popcount") and args[0].is_const:
            return terms.const(args[0].width - args[0].value.bit_length() if op == "fn:clz" else args[0].value.bit_count(), term.width)
        return terms.make(op, args, term.data, term.width)
    simple = {
        "xor": terms.xor, "and": terms.and_, "udiv": terms.udiv, "urem": terms.urem, "sdiv": terms.sdiv, "srem": terms.srem,
        "shl": terms.shl, "lshr": terms.lshr, "ashr": terms.ashr, "eq": terms.eq, "ult": terms.ult, "slt": terms.slt,
    }  # fmt: skip
    return simple[op](args[0], args[1])


def mismatches(a: Term, b: Term) -> list[tuple[Term, Term]] | None:
    """Pairs of inner terms whose equality makes `a` equal to `b`: where the two shapes part. None when there are too many."""
    pairs = [(a, b)]
    seen: set[tuple[Term, Term]] = set()
    found: list[tuple[Term, Term]] = []
    while pairs:
        pair = pairs.pop()
        x, y = pair
        if x is y or pair in seen:
            continue
        seen.add(pair)
        if x.op == y.op and x.data == y.data and len(x.args) == len(y.args) and x.args:
            pairs.extend(zip(x.args, y.args, strict=True))
        elif x.width != y.width or len(found) == MAX_MISMATCHES:
            return None
        else:
            found.append(pair)
    return found


def congruent(terms: Terms, a: Term, b: Term, budget: Budget) -> bool:
    """Whether `a` and `b` have one shape but for inner terms that are each proved equal."""
    pairs = mismatches(a, b)
    if not pairs or (a, b) in pairs:
        return False
    for x, y in sorted(pairs, key=lambda p: len(postorder(p))):
        if budget.exhausted or refute(x, y, terms.const(1, 1)) is not None or not _merges(terms, x, y, budget):
            return False
    return True


def sweep(terms: Terms, a: Term, b: Term, budget: Budget) -> tuple[Term, Term] | None:
    """Merge inner terms that agree on all samples and are proved equal, from the leaves up; the rewritten pair."""
    order = postorder((a, b))
    if len(order) > 4000:
        return None
    runs = [evaluate((a, b), lambda t, salt=s: random_value(t.data, salt, t.width)) for s in range(SAMPLES)]  # type: ignore[misc]
    classes: dict[tuple[int, ...], Term] = {}
    replacement: dict[Term, Term] = {}
    for term in order:
        if term.op in ("const", "var"):
            replacement[term] = term
            continue
        args = tuple(replacement[x] for x in term.args)
        new = term if args == term.args else rebuild(terms, term, args)
        signature = (term.width, *(run[term] for run in runs))
        leader = classes.get(signature)
        mixed = term.width > 1 or len(set(signature[1:])) > 1
        if leader is not None and leader is not new and not budget.exhausted and mixed:
            if _merges(terms, leader, new, budget):
                new = leader
        classes.setdefault(signature, new)
        replacement[term] = new
    return replacement[a], replacement[b]


def _merges(terms: Terms, a: Term, b: Term, budget: Budget) -> bool:
    """Whether two inner terms are proved equal within a short time."""
    query = terms.not_(terms.eq(a, b))
    seconds = min(0.5, budget.per_query)
    if _follows_loosely(terms, query, budget, seconds):
        return True
    if any(t.op == "prod" for t in postorder((query,))):
        return False
    answer = satisfiable(query, seconds=seconds)
    budget.spent += answer.seconds
    budget.queries += 1
    return answer.status == "unsat"
