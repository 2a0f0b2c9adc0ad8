"""Evaluation of terms on concrete values, to refute equalities cheaply and to check the rules of the normal form.

Floating point and hardware approximations are computed by the concrete interpreter; functions that remain uninterpreted (loads, exchanges)
get the values of a fixed pseudo-random function of their name and arguments, so equal applications agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from sassay.isa.semantics.algebra import FloatOp, Opaque
from sassay.isa.semantics.numpy_algebra import NUMPY
from sassay.verify.terms import Term, divide, signed

Assignment = Mapping[Term, int]


def postorder(roots: tuple[Term, ...]) -> list[Term]:
    """Every term under `roots`, arguments before their users, without recursion."""
    seen: set[Term] = set()
    order: list[Term] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        term, expanded = stack.pop()
        if expanded:
            order.append(term)
        elif term not in seen:
            seen.add(term)
            stack.append((term, True))
            stack.extend((a, False) for a in term.args if a not in seen)
    return order


def random_value(name: object, salt: int, width: int) -> int:
    """A reproducible value of `width` bits for a variable or a function application; small and extreme values are frequent."""
    digest = hashlib.blake2b(repr((name, salt, width)).encode(), digest_size=32).digest()
    number = int.from_bytes(digest[8:], "little")
    while number.bit_length() < width:
        number = number << 192 | number
    mask = (1 << width) - 1
    choice = digest[0]
    if choice < 20:
        return digest[1] & mask
    if choice < 32:
        return -digest[1] & mask
    if choice < 44:
        return (1 << (digest[1] % width)) & mask
    return number & mask


def evaluate(roots: tuple[Term, ...], assignment: Callable[[Term], int]) -> dict[Term, int]:
    """Values of all terms under `roots`, given those of the variables."""
    values: dict[Term, int] = {}
    for term in postorder(roots):
        values[term] = assignment(term) if term.op == "var" else _apply(term, [values[a] for a in term.args])
    return values


def _apply(term: Term, args: list[int]) -> int:
    mask = (1 << term.width) - 1
    handler = _HANDLERS.get(term.op)
    if handler is not None:
        return handler(term, args) & mask
    if term.op in ("fn:float", "fn:clz", "fn:popcount") or term.op.startswith("fn:opaque."):
        return _computed(term, args) & mask
    if term.op.startswith("fn:"):
        return random_value((term.op, term.data, tuple(args)), 0, term.width)
    raise ValueError(f"no evaluation for {term.op}")


def _computed(term: Term, args: list[int]) -> int:
    """An operation that terms leave opaque, by the concrete interpreter."""
    if term.op == "fn:clz":
        return term.width - args[0].bit_length()
    if term.op == "fn:popcount":
        return args[0].bit_count()
    arrays = [np.array([a], _dtype(t.width)) for a, t in zip(args, term.args, strict=True)]
    with np.errstate(all="ignore"):
        if term.op == "fn:float":
            return int(NUMPY.float_op(cast(FloatOp, term.data))(*arrays)[0])
        *params, position = cast("tuple[object, ...]", term.data)
        op = Opaque(term.op.removeprefix("fn:opaque."), (term.width,), tuple(str(p) for p in params))
        return int(NUMPY.opaque(op)(*arrays)[cast(int, position)][0])


def _dtype(width: int) -> type[np.generic]:
    return np.bool_ if width == 1 else np.uint8 if width <= 8 else np.uint16 if width <= 16 else np.uint32 if width <= 32 else np.uint64


def _linear(term: Term, args: list[int]) -> int:
    const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
    return const + sum(c * a for c, a in zip(coefficients, args, strict=True))


def _product(_term: Term, args: list[int]) -> int:
    result = 1
    for a in args:
        result *= a
    return result


def _anf(term: Term, args: list[int]) -> int:
    rows, masks = cast("tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]", term.data)
    result = 0
    for row, mask in zip(rows, masks, strict=True):
        for index in row:
            mask &= args[index]
        result ^= mask
    return result


def _concat(term: Term, args: list[int]) -> int:
    result = 0
    for part, value in zip(term.args, args, strict=True):
        result = result << part.width | value
    return result


_HANDLERS: dict[str, Callable[[Term, list[int]], int]] = {
    "const": lambda t, _: t.value,
    "lin": _linear,
    "prod": _product,
    "anf": _anf,
    "xor": lambda _, a: a[0] ^ a[1],
    "and": lambda _, a: a[0] & a[1],
    "udiv": lambda t, a: divide("udiv", a[0], a[1], t.width),
    "urem": lambda t, a: divide("urem", a[0], a[1], t.width),
    "sdiv": lambda t, a: divide("sdiv", a[0], a[1], t.width),
    "srem": lambda t, a: divide("srem", a[0], a[1], t.width),
    "extract": lambda t, a: a[0] >> cast(int, t.data),
    "concat": _concat,
    "zext": lambda _, a: a[0],
    "sext": lambda t, a: signed(a[0], t.args[0].width),
    "shl": lambda t, a: a[0] << a[1] if a[1] < t.width else 0,
    "lshr": lambda t, a: a[0] >> a[1] if a[1] < t.width else 0,
    "ashr": lambda t, a: signed(a[0], t.width) >> min(a[1], t.width - 1),
    "eq": lambda _, a: int(a[0] == a[1]),
    "ult": lambda _, a: int(a[0] < a[1]),
    "slt": lambda t, a: int(signed(a[0], t.args[0].width) < signed(a[1], t.args[1].width)),
    "ite": lambda _, a: a[1] if a[0] else a[2],
}
