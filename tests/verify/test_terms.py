"""The normal form keeps meaning: every constructor agrees with Python arithmetic on random values."""

from __future__ import annotations

import random

import pytest

from sassay.verify import equality
from sassay.verify.evaluate import evaluate
from sassay.verify.solver import available, satisfiable
from sassay.verify.terms import Term, Terms, divide, signed


def reference(op: str, a: int, b: int, w: int) -> int:
    mask = (1 << w) - 1
    return {
        "add": a + b, "sub": a - b, "mul": a * b, "and_": a & b, "or_": a | b, "xor": a ^ b,
        "shl": a << b if b < w else 0, "lshr": a >> b if b < w else 0, "ashr": signed(a, w) >> min(b, w - 1),
        "udiv": divide("udiv", a, b, w), "urem": divide("urem", a, b, w), "sdiv": divide("sdiv", a, b, w), "srem": divide("srem", a, b, w),
        "eq": int(a == b), "ult": int(a < b), "ule": int(a <= b), "slt": int(signed(a, w) < signed(b, w)), "sle": int(signed(a, w) <= signed(b, w)),
    }[op] & mask  # fmt: skip


BINARY = ["add", "sub", "mul", "and_", "or_", "xor", "shl", "lshr", "ashr", "udiv", "urem", "sdiv", "srem", "eq", "ult", "ule", "slt", "sle"]


def build(terms: Terms, rng: random.Random, leaves: dict[Term, int], depth: int) -> tuple[Term, int]:
    """A random term and its value under `leaves`, computed apart from the term."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.3:
            width = rng.choice([1, 8, 16, 32, 64])
            value = rng.getrandbits(width)
            return terms.const(value, width), value
        leaf = rng.choice(list(leaves))
        return leaf, leaves[leaf]
    kind = rng.random()
    a, x = build(terms, rng, leaves, depth - 1)
    if kind < 0.55:
        b, y = build(terms, rng, leaves, depth - 1)
        if b.width < a.width:
            b = terms.zext(b, a.width)
        elif b.width > a.width:
            b, y = terms.extract(b, a.width - 1, 0), y & ((1 << a.width) - 1)
        op = rng.choice(BINARY)
        return getattr(terms, op)(a, b), reference(op, x, y, a.width) & ((1 << (1 if op in ("eq", "ult", "ule", "slt", "sle") else a.width)) - 1)
    if kind < 0.7:
        low = rng.randrange(a.width)
        high = rng.randrange(low, a.width)
        return terms.extract(a, high, low), x >> low & ((1 << (high - low + 1)) - 1)
    if kind < 0.8:
        b, y = build(terms, rng, leaves, depth - 1)
        if a.width + b.width > 128:
            return a, x
        return terms.concat(a, b), x << b.width | y
    if kind < 0.9:
        width = a.width + rng.choice([0, 1, 8, 32])
        if rng.random() < 0.5:
            return terms.zext(a, width), x
        return terms.sext(a, width), signed(x, a.width) & ((1 << width) - 1)
    c, z = build(terms, rng, leaves, depth - 1)
    c, z = terms.extract(c, 0, 0), z & 1
    b, y = build(terms, rng, leaves, depth - 1)
    b = terms.zext(b, a.width) if b.width <= a.width else terms.extract(b, a.width - 1, 0)
    return terms.ite(c, a, b), x if z else y & ((1 << a.width) - 1)


@pytest.mark.parametrize("seed", range(60))
def test_constructors_keep_the_value(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        terms = Terms()
        leaves = {terms.var(f"x{i}", w): rng.choice([rng.getrandbits(w), 0, (1 << w) - 1]) for i, w in enumerate([1, 8, 16, 32, 32, 64])}
        term, expected = build(terms, rng, leaves, 5)
        assert evaluate((term,), lambda t, m=leaves: m[t])[term] == expected, term


@pytest.mark.parametrize("solver", available())
@pytest.mark.parametrize("seed", range(6))
def test_solvers_agree_with_evaluation(solver: str, seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(8):
        terms = Terms()
        leaves = {terms.var(f"x{i}", w): rng.getrandbits(w) for i, w in enumerate([1, 8, 16, 16])}
        term, expected = build(terms, rng, leaves, 3)
        condition = terms.const(1, 1)
        for leaf, value in leaves.items():
            condition = terms.and_(condition, terms.eq(leaf, terms.const(value, leaf.width)))
        assert satisfiable(terms.and_(condition, terms.eq(term, terms.const(expected, term.width))), solver=solver).status == "sat"
        assert satisfiable(terms.and_(condition, terms.not_(terms.eq(term, terms.const(expected, term.width)))), solver=solver).status == "unsat"


def test_lop3_meets_two_input_logic() -> None:
    terms = Terms()
    a, b, c = (terms.var(n, 32) for n in "abc")
    one = terms.or_(terms.and_(a, b), terms.and_(terms.not_(a), c))
    other = terms.xor(c, terms.and_(a, terms.xor(b, c)))
    assert one is other


def test_equality_of_different_shapes_is_proved_or_refuted() -> None:
    terms = Terms()
    x, n = terms.var("x", 32), terms.var("n", 5)
    amount = terms.zext(n, 32)
    rotate = terms.or_(terms.shl(x, amount), terms.lshr(x, terms.sub(terms.const(32, 32), amount)))
    double = terms.concat(x, x)
    funnel = terms.extract(terms.shl(double, terms.zext(n, 64)), 63, 32)
    budget = equality.Budget()
    assert equality.equal(terms, rotate, funnel, terms.const(1, 1), budget).status == "equal"
    wrong = equality.equal(terms, rotate, terms.add(funnel, terms.const(1, 32)), terms.const(1, 1), budget)
    assert wrong.status == "different" and wrong.witness is not None


def carry_add(terms: Terms, x: Term, y: Term) -> Term:
    """x + y of 64 bits by two 32-bit additions with a carry, as IADD3 and IADD3.X do."""
    low = [terms.extract(t, 31, 0) for t in (x, y)]
    high = [terms.extract(t, 63, 32) for t in (x, y)]
    wide = terms.add(terms.zext(low[0], 33), terms.zext(low[1], 33))
    carry = terms.zext(terms.extract(wide, 32, 32), 32)
    return terms.concat(terms.add(terms.add(high[0], high[1]), carry), terms.add(low[0], low[1]))


def test_carry_chains_meet_wide_additions() -> None:
    terms = Terms()
    x, y = terms.var("x", 64), terms.var("y", 64)
    assert carry_add(terms, x, y) is terms.add(x, y)
    assert carry_add(terms, x, terms.const(-8, 64)) is terms.sub(x, terms.const(8, 64))


def test_borrow_chains_meet_wide_subtractions() -> None:
    terms = Terms()
    x, y = terms.var("x", 64), terms.var("y", 64)
    (xl, yl), (xh, yh) = [(terms.extract(x, h, lo), terms.extract(y, h, lo)) for h, lo in ((31, 0), (63, 32))]
    wide = terms.add(terms.add(terms.zext(xl, 34), terms.zext(terms.not_(yl), 34)), terms.const(1, 34))
    carry = terms.zext(terms.extract(wide, 32, 32), 32)
    high = terms.add(terms.add(xh, terms.not_(yh)), carry)
    assert terms.concat(high, terms.extract(wide, 31, 0)) is terms.sub(x, y)


def test_limb_products_meet_wide_products() -> None:
    terms = Terms()
    x, y = terms.var("x", 64), terms.var("y", 64)
    (xl, yl), (xh, yh) = [(terms.extract(x, h, lo), terms.extract(y, h, lo)) for h, lo in ((31, 0), (63, 32))]
    wide = terms.mul(terms.zext(xl, 64), terms.zext(yl, 64))
    high = terms.add(terms.add(terms.extract(wide, 63, 32), terms.mul(xh, yl)), terms.mul(xl, yh))
    assert equality.equal(
        terms, terms.concat(high, terms.extract(wide, 31, 0)), terms.mul(x, y), terms.const(1, 1), equality.Budget()
    ).method == "normal form"
