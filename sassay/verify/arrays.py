"""Evaluation of terms over arrays of samples at once, with the hardware's approximations allowed to be off by a unit in the last place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sassay.isa.semantics.algebra import FloatOp, Opaque
from sassay.isa.semantics.numpy_algebra import NUMPY
from sassay.verify.evaluate import postorder
from sassay.verify.terms import Term

Array = NDArray[Any]


def dtype_of(width: int) -> type[np.generic]:
    """The narrowest numpy type that holds `width` bits (at most 64)."""
    return np.bool_ if width == 1 else np.uint8 if width <= 8 else np.uint16 if width <= 16 else np.uint32 if width <= 32 else np.uint64


class TooWide(Exception):
    """A term of more than 64 bits, or an operation without an array form."""


def evaluate_arrays(roots: tuple[Term, ...], known: dict[Term, Array], ulp: Array | None = None, slow: bool = False) -> dict[Term, Array]:
    """Values of `roots` on all samples, given those of the terms in `known`.

    `ulp`: what to add to every result of a hardware approximation (-1, 0 or 1 a sample); `slow`: FCHK always asks for the slow path.
    """
    values: dict[Term, Array] = dict(known)
    with np.errstate(all="ignore"):
        for term in _needed(roots, known):
            values[term] = _apply(term, [values[a] for a in term.args], ulp, slow)
    return values


def _needed(roots: tuple[Term, ...], known: dict[Term, Array]) -> list[Term]:
    """Terms to compute, in order, not looking below known ones."""
    order: list[Term] = []
    seen: set[Term] = set(known)
    stack = [(r, False) for r in roots]
    while stack:
        term, expanded = stack.pop()
        if expanded:
            order.append(term)
        elif term not in seen:
            seen.add(term)
            stack.append((term, True))
            stack.extend((a, False) for a in term.args if a not in seen)
    return order


def _masked(value: Array, width: int) -> Array:
    if width in (1, 8, 16, 32, 64):
        return value.astype(dtype_of(width)) if width > 1 else (value.astype(np.uint64) & np.uint64(1)).astype(bool)
    return (value.astype(np.uint64) & np.uint64((1 << width) - 1)).astype(dtype_of(width))


def _apply(term: Term, args: list[Array], ulp: Array | None, slow: bool) -> Array:
    width, op = term.width, term.op
    if width > 64:
        raise TooWide(op)
    if op == "const":
        return np.array([term.value], dtype_of(width))
    if op == "fn:float":
        return np.asarray(NUMPY.float_op(cast(FloatOp, term.data))(*args))
    if op.startswith("fn:opaque."):
        return _opaque(term, args, ulp, slow)
    if op == "fn:clz":
        return np.asarray(NUMPY.clz(args[0], width))
    if op == "fn:popcount":
        return np.asarray(NUMPY.popcount(args[0], width))
    wide = [a.astype(np.uint64) for a in args]
    if op == "lin":
        const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
        total = np.full(1, const, np.uint64)
        for c, a in zip(coefficients, wide, strict=True):
            total = total + a * np.uint64(c)
        return _masked(total, width)
    if op == "prod":
        total = wide[0]
        for a in wide[1:]:
            total = total * a
        return _masked(total, width)
    if op == "anf":
        return _masked(_anf(term, wide), width)
    if op == "concat":
        total = wide[0]
        for part, a in zip(term.args[1:], wide[1:], strict=True):
            total = total << np.uint64(part.width) | a
        return _masked(total, width)
    if op == "extract":
        return _masked(wide[0] >> np.uint64(cast(int, term.data)), width)
    if op == "zext":
        return _masked(wide[0], width)
    if op == "ite":
        return np.where(args[0].astype(bool), args[1], args[2])
    if op in ("eq", "ult"):
        return np.asarray(args[0] == args[1] if op == "eq" else args[0] < args[1])
    if op == "slt":
        return np.asarray(NUMPY.slt(args[0], args[1], term.args[0].width))
    return _binary(op, args, wide, width)


def _binary(op: str, args: list[Array], wide: list[Array], width: int) -> Array:
    a, b = wide
    if op in ("xor", "and"):
        return _masked(a ^ b if op == "xor" else a & b, width)
    table: dict[str, Callable[..., Any]] = {
        "udiv": NUMPY.udiv, "urem": NUMPY.urem, "shl": NUMPY.shl, "lshr": NUMPY.lshr, "ashr": NUMPY.ashr,
    }  # fmt: skip
    if op not in table:
        raise TooWide(op)
    return np.asarray(table[op](args[0], args[1], width))


def _anf(term: Term, args: list[Array]) -> Array:
    rows, masks = cast("tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]", term.data)
    total = np.zeros(1, np.uint64)
    for row, mask in zip(rows, masks, strict=True):
        product = np.full(1, mask, np.uint64)
        for index in row:
            product = product & args[index]
        total = total ^ product
    return total


def _opaque(term: Term, args: list[Array], ulp: Array | None, slow: bool) -> Array:
    *params, position = cast("tuple[object, ...]", term.data)
    name = term.op.removeprefix("fn:opaque.")
    if name == "fchk" and slow:
        return np.ones(args[0].shape, bool)
    call = NUMPY.opaque(Opaque(name, (term.width,), tuple(str(p) for p in params)))
    result = np.asarray(call(*args)[cast(int, position)])
    if name != "mufu" or ulp is None or term.width != 32 or "64H" in str(params):
        return result
    finite = (result & np.uint32(0x7F800000) != np.uint32(0x7F800000)) & (result & np.uint32(0x7F800000) != 0)
    return np.where(finite, (result.astype(np.int64) + ulp).astype(np.uint32), result)


def closed_over(roots: list[Term], leaves: tuple[Term, ...]) -> list[Term]:
    """Terms under `roots` that depend on nothing but `leaves` and constants, and on at least one leaf; in order."""
    status: dict[Term, bool] = dict.fromkeys(leaves, True)
    constant: set[Term] = set()
    found: list[Term] = []
    for term in postorder(tuple(roots)):
        if term in status:
            continue
        if term.op == "const":
            constant.add(term)
            continue
        ok = bool(term.args) and term.width <= 64 and all(a in constant or status.get(a, False) for a in term.args)
        ok = ok and not term.op.startswith(("fn:load", "fn:old", "fn:exchange", "fn:access", "fn:event", "fn:fence", "fn:after", "fn:constant"))
        status[term] = ok
        if ok:
            found.append(term)
    return found
