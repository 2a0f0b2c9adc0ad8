"""Lemmas about multi-instruction expansions: division, remainder, square root, reciprocal.

A solver cannot see that a Newton iteration around a hardware approximation is a correctly rounded division. So a term of the SASS side that
depends on the operands of such an operation alone is compared with it on many samples: edge values, values close to the rounding boundaries and
random ones, with the hardware's approximations off by up to one unit in the last place either way and with the slow path forced. Agreement on
all makes it a *sampled lemma*: it is used, counted and listed, and the verdict says so. It is evidence, no proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sassay.isa.semantics.algebra import FloatOp
from sassay.verify.arrays import TooWide, closed_over, dtype_of, evaluate_arrays
from sassay.verify.evaluate import postorder
from sassay.verify.terms import Term, Terms

FEW, MANY = 256, 60_000
"""Samples to find a candidate with, and to accept it with."""


@dataclass(frozen=True, slots=True)
class Lemma:
    """`expansion` equals `operation` on all `samples`."""

    name: str
    operation: Term
    """The operation, or a word of its result."""
    expansion: Term
    samples: int

    def __str__(self) -> str:
        return f"an expansion of {len(postorder((self.expansion,)))} terms is {self.name}: sampled {self.samples} times, not proved"


def name_of(term: Term) -> str | None:
    """The name of an operation that hardware expands, or None."""
    if term.op in ("udiv", "urem"):
        return f"{term.op}.{term.width}"
    if term.op == "fn:float" and isinstance(term.data, FloatOp) and term.data.name in ("div", "sqrt"):
        op = term.data
        return f"{op.name}.{op.rounding.lower()}{'.ftz' if op.ftz else ''}.{op.format}"
    return None


def find(terms: Terms, ptx: list[Term], sass: list[Term], known: dict[Term, Term]) -> list[Lemma]:
    """Lemmas for the hard operations among the PTX side's terms that have an expansion among the SASS side's."""
    found: list[Lemma] = []
    done: set[Term] = set(known.values())
    present = set(postorder(tuple(sass)))
    for operation in postorder(tuple(ptx)):
        name = name_of(operation)
        if name is None or operation in done or operation in present:
            continue
        leaves = tuple(a for a in operation.args if not a.is_const)
        if not leaves:
            continue
        parts = _parts(terms, operation)
        lemmas = [_search(terms, name, operation, part, leaves, sass) for part in parts]
        if len(parts) > 1 and None in lemmas:
            lemmas = [_search(terms, name, operation, operation, leaves, sass)]
        if None not in lemmas:
            found += [lemma for lemma in lemmas if lemma is not None]
            done.add(operation)
    return found


def _parts(terms: Terms, operation: Term) -> tuple[Term, ...]:
    """The words of a result: hardware computes those of a 64-bit one apart."""
    if operation.width <= 32:
        return (operation,)
    return terms.extract(operation, 31, 0), terms.extract(operation, 63, 32)


def _words(terms: Terms, leaves: tuple[Term, ...]) -> dict[Term, tuple[Term, int]]:
    """What expansions read: each leaf, and the words of wide ones; with the leaf and the bit that each starts at."""
    found: dict[Term, tuple[Term, int]] = {}
    for leaf in leaves:
        found[leaf] = (leaf, 0)
        if leaf.width == 64:
            for low in (0, 32):
                word = terms.extract(leaf, low + 31, low)
                if not word.is_const:
                    found[word] = (leaf, low)
    return found


@dataclass(frozen=True, slots=True)
class Sum:
    """A leaf that is a sum: `const` plus the `parts` times their factors plus `rest` times its odd factor. Sums run into one another (n - q * d
    has no n in it when n is a sum), so an expansion may read the parts instead."""

    const: int
    parts: tuple[tuple[Term, int], ...]
    rest: Term
    inverse: int
    """Of the factor of `rest`, modulo 2**width."""

    def values(self, total: NDArray[Any], rng: np.random.Generator) -> dict[Term, NDArray[Any]]:
        """Random values of the parts, and what `rest` must be for the sum to be `total`."""
        mask = np.uint64((1 << self.rest.width) - 1)
        left: NDArray[Any] = total.astype(np.uint64) - np.uint64(self.const)
        found: dict[Term, NDArray[Any]] = {}
        for part, factor in self.parts:
            value = _integers(rng, part.width, total.size)
            left = left - value * np.uint64(factor)
            found[part] = value.astype(dtype_of(part.width))
        found[self.rest] = (left * np.uint64(self.inverse) & mask).astype(dtype_of(self.rest.width))
        return found


def _sums(leaves: tuple[Term, ...]) -> dict[Term, Sum]:
    """The leaves that are sums with a part of their own width that can make up for the others; parts are not shared between leaves."""
    found: dict[Term, Sum] = {}
    used: set[Term] = set(leaves)
    for leaf in leaves:
        if leaf.op != "lin" or leaf.width > 64:
            continue
        const, factors = cast("tuple[int, tuple[int, ...]]", leaf.data)
        pairs = [(t.args[0] if t.op == "zext" else t, c) for t, c in zip(leaf.args, factors, strict=True)]
        whole = [i for i, (t, c) in enumerate(pairs) if t.width == leaf.width and c & 1]
        if whole and not used & {t for t, _ in pairs}:
            used |= {t for t, _ in pairs}
            rest, factor = pairs.pop(whole[0])
            found[leaf] = Sum(const, tuple(pairs), rest, pow(factor, -1, 1 << leaf.width))
    return found


def _search(terms: Terms, name: str, operation: Term, part: Term, leaves: tuple[Term, ...], sass: list[Term]) -> Lemma | None:
    words = _words(terms, leaves)
    shapes = ("zext", "extract", "concat") if part is operation else ("zext",)
    sums = _sums(leaves)
    read = (*words, *(t for s in sums.values() for t in (s.rest, *(p for p, _ in s.parts))))
    candidates = [t for t in closed_over(sass, read) if t.width == part.width and t.op not in shapes]
    if not candidates:
        return None
    samples = _spread(_samples(operation, leaves, FEW), words, sums)
    try:
        values = evaluate_arrays((part, *candidates), samples)
    except TooWide:
        return None
    want = np.broadcast_to(values[part], (FEW,))
    agreeing = [t for t in candidates if t is not part and np.array_equal(np.broadcast_to(values[t], (FEW,)), want)]
    for candidate in agreeing[::-1]:
        if _holds(operation, part, candidate, leaves, words, sums):
            return Lemma(name, part, candidate, 4 * MANY)
    return None


def _spread(
    samples: dict[Term, NDArray[Any]], words: dict[Term, tuple[Term, int]], sums: dict[Term, Sum]
) -> dict[Term, NDArray[Any]]:
    """Samples of leaves, of their words, and of what sums are made of."""
    found = dict(samples)
    rng = np.random.default_rng(11)
    for leaf, parts in sums.items():
        found.update(parts.values(samples[leaf], rng))
    for word, (leaf, low) in words.items():
        if word is not leaf:
            found[word] = (samples[leaf].astype(np.uint64) >> np.uint64(low)).astype(np.uint32)
    return found


def _holds(
    operation: Term,
    part: Term,
    candidate: Term,
    leaves: tuple[Term, ...],
    words: dict[Term, tuple[Term, int]],
    sums: dict[Term, Sum],
) -> bool:
    """Agreement on many samples, under every disturbance of the hardware's approximations."""
    samples = _spread(_samples(operation, leaves, MANY), words, sums)
    want = evaluate_arrays((part,), samples)[part]
    rng = np.random.default_rng(7)
    for ulp, slow in ((None, False), (rng.integers(-1, 2, MANY), False), (rng.integers(0, 2, MANY) * 2 - 1, False), (None, True)):
        got = evaluate_arrays((candidate,), samples, ulp, slow)[candidate]
        if not np.array_equal(np.broadcast_to(got, (MANY,)), np.broadcast_to(want, (MANY,))):
            return False
    return True


def _samples(operation: Term, leaves: tuple[Term, ...], count: int) -> dict[Term, NDArray[Any]]:
    rng = np.random.default_rng(count)
    is_float = operation.op == "fn:float"
    found: dict[Term, NDArray[Any]] = {}
    for position, leaf in enumerate(leaves):
        values = _float_bits(rng, leaf.width, count) if is_float else _integers(rng, leaf.width, count)
        divisor = not is_float and leaf is operation.args[-1] and position == len(leaves) - 1
        if divisor:
            values = np.where(values == 0, np.ones_like(values), values)
        found[leaf] = values.astype(dtype_of(leaf.width))
    if len(leaves) == 2 and not is_float:
        _near_multiples(found[leaves[0]], found[leaves[1]], rng)
    return found


def _integers(rng: np.random.Generator, width: int, count: int) -> NDArray[Any]:
    """Numbers of all sizes: uniform bits shifted right by a random amount, with runs of ones among them."""
    values = rng.integers(0, 1 << 64, count, dtype=np.uint64) >> np.uint64(64 - width)
    values = values >> rng.integers(0, width, count).astype(np.uint64)
    ones = (np.uint64((1 << width) - 1)) >> rng.integers(0, width, count).astype(np.uint64)
    pick = rng.integers(0, 8, count)
    values = np.where(pick == 0, ones, values)
    return np.where(pick == 1, ones ^ (ones >> np.uint64(1)), values)


def _near_multiples(a: NDArray[Any], b: NDArray[Any], rng: np.random.Generator) -> None:
    """Make some dividends multiples of their divisors, give or take one: where quotients change."""
    chosen = rng.integers(0, 4, a.size) == 0
    multiples = (a // b) * b + rng.integers(0, 3, a.size).astype(a.dtype) - a.dtype.type(1)
    a[chosen] = multiples[chosen]


def _float_bits(rng: np.random.Generator, width: int, count: int) -> NDArray[Any]:
    """Random bit patterns, ordinary magnitudes, short significands, and the special values."""
    fraction = {16: 10, 32: 23, 64: 52}[width]
    top = width - 1 - fraction
    bits = rng.integers(0, 1 << 64, count, dtype=np.uint64) >> np.uint64(64 - width)
    bias = (1 << (top - 1)) - 1
    ordinary = (rng.integers(bias - 20, bias + 20, count).astype(np.uint64) << np.uint64(fraction)) | (bits & np.uint64((1 << fraction) - 1))
    short = ordinary & ~np.uint64((1 << (fraction - 4)) - 1)
    infinity = ((1 << top) - 1) << fraction
    special = np.array(
        [0, 1, (1 << fraction) - 1, 1 << fraction, bias << fraction, infinity - 1, infinity, infinity | 1 << (fraction - 1), infinity | 1], np.uint64
    )
    pick = rng.integers(0, 8, count)
    values = np.where(pick < 3, ordinary, np.where(pick == 3, short, bits))
    values = np.where(pick == 4, special[rng.integers(0, special.size, count)], values)
    sign = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(width - 1)
    return np.asarray(values ^ sign)
