"""Operations over the lanes of a warp: votes, shuffles, matches, reductions.

Values only: who takes part is the machine's business. The lanes named by the member mask are taken to be the active ones, as the ISA demands.
Lane arithmetic of `shfl` is the exchange's, described with the SASS operation (`isa.semantics.exchange`).
"""

from __future__ import annotations

from sassay.isa.semantics.algebra import Exchange
from sassay.ptx.ast import PairOperand, VectorOperand
from sassay.ptx.semantics.compiled import Context, Getter, Value, Values, defines
from sassay.ptx.semantics.events import WMMA_SHAPES


def _set_exchange(c: Context, op: Exchange, *sources: object) -> None:
    call = c.alg.exchange(op)

    def run(active: Value, values: Values) -> Values:
        return call(active, *(s(values) for s in sources))  # type: ignore[operator]

    c.exchange = run


@defines("shfl")
def shuffle(c: Context) -> None:
    """d|p = value of the source lane (its own if out of range), and whether it was in range."""
    mode = c.pick("up", "down", "bfly", "idx").upper()
    _set_exchange(c, Exchange("shfl", (32, 1), (mode,)), c.source(1, 32), c.source(2, 32), c.source(3, 32))
    c.pair(c.shared_result(0), 32, c.shared_result(1))


@defines("vote")
def vote(c: Context) -> None:
    """.all, .any, .uni give a predicate; .ballot the mask of lanes whose predicate holds."""
    mode = c.pick("all", "any", "uni", "ballot")
    p = c.source(1, 1)
    _set_exchange(c, Exchange("vote", (32, 1), ({"uni": "EQ", "all": "ALL"}.get(mode, "ANY"),)), p)
    if mode == "ballot":
        c.result(c.shared_result(0), width=32, signed=False)
    else:
        c.result(c.shared_result(1), width=1)


@defines("activemask")
def active_mask(c: Context) -> None:
    _set_exchange(c, Exchange("vote", (32, 1), ("ANY",)), c.constant(1, 1))
    c.result(c.shared_result(0), width=32, signed=False)


@defines("match")
def match(c: Context) -> None:
    """.any: the lanes with this lane's value; .all: all members if every value is the same, else none, and whether."""
    width = c.bits
    if "any" in c.flags:
        _set_exchange(c, Exchange("match_any", (32,), (str(width),)), c.source(1, width))
        c.result(c.shared_result(0), width=32, signed=False)
        return
    _set_exchange(c, Exchange("match_all", (32, 1), (str(width),)), c.source(1, width))
    c.pair(c.shared_result(0), 32, c.shared_result(1))


@defines("redux")
def reduce(c: Context) -> None:
    operation = c.pick("add", "min", "max", "and", "or", "xor")
    mode = {"add": "SUM"}.get(operation, operation.upper())
    kind = {"s32": "S32", "f32": "F32"}.get(c.type, "U32")
    if operation in ("add", "and", "or", "xor"):
        kind = "U32"
    x, alg = c.source(1, 32), c.alg
    magnitude: Getter = lambda v: alg.and_(x(v), alg.const(0x7FFFFFFF, 32), 32)  # noqa: E731
    _set_exchange(c, Exchange("redux", (32,), (mode, kind, "NAN" if "NaN" in c.flags else "")), magnitude if "abs" in c.flags else x)
    c.result(c.shared_result(0), width=32, signed=False)


@defines("elect")
def elect(c: Context) -> None:
    """d|p = the number of one member (the lowest), and whether this lane is it."""
    _set_exchange(c, Exchange("elect", (1, 32)), c.constant(1, 1))
    operand = c.operands[0]
    if not isinstance(operand, PairOperand):
        raise c.unsupported("one destination")
    c.assign(operand.first, c.shared_result(1), 32)
    c.assign(operand.second, c.shared_result(0), 1)


@defines("movmatrix")
def move_matrix(c: Context) -> None:
    _set_exchange(c, Exchange("movm", (32,), ("16", "T")), c.source(1, 32))
    c.result(c.shared_result(0), width=32, signed=False)


_SHAPES = {
    "m16n8k16": "16816", "m16n8k8": "1688", "m16n8k4": "1684", "m16n8k32": "16832", "m8n8k16": "8816", "m8n8k4": "8x8x4", "m16n8k64": "16864",
}  # fmt: skip


@defines("mma")
def matrix_product(c: Context) -> None:
    """mma.sync without sparsity or scaling: D = A * B + C over fragments spread over the warp."""
    words = c.instruction.modifiers
    if "m16n8k256" in words and c.types == ["s32", "b1", "b1", "s32"] and "popc" in words:
        _bit_product(c)
        return
    shape = next((w for w in words if w in _SHAPES), "")
    if not shape or "sp" in c.flags or "block_scale" in c.flags or len(c.types) != 4 or any("::" in w for w in words):
        raise c.unsupported("this kind of matrix product")
    d, a, b, addend = c.types
    if d != addend:
        raise c.unsupported("different accumulator types")
    operands = [o if isinstance(o, VectorOperand) else VectorOperand((o,)) for o in c.operands]
    unit = 64 if d == "f64" else 32
    sources = [c.leaf(e, unit) for o in operands[1:4] for e in o.elements]
    options = ("RN",) if d == "f64" else ("SAT",) if "satfinite" in c.flags else ()
    count = len(operands[0].elements)
    names = {"s32": "S32"}
    op = Exchange("mma", (unit,) * count, (_sass_shape(shape, d), *(names.get(t, t.upper()) for t in (d, a, b, d)), *options))
    _set_exchange(c, op, *sources)
    for index, element in enumerate(operands[0].elements):
        c.assign(element, c.shared_result(index), unit)


@defines("wmma")
def warp_matrix_product(c: Context) -> None:
    """wmma.mma: D = A * B + C over fragments whose layout is open."""
    words = c.instruction.modifiers
    shape = next((w for w in words if w in WMMA_SHAPES), "")
    if words[0] != "mma" or not shape or len(c.types) not in (2, 4):
        raise c.unsupported("this kind of matrix product")
    d, a, b, addend = c.types if len(c.types) == 4 else (c.types[0], "f16", "f16", c.types[1])
    if a not in ("f16", "bf16", "tf32", "f64", "s8", "u8"):
        raise c.unsupported("this kind of matrix product")
    operands = [o if isinstance(o, VectorOperand) else VectorOperand((o,)) for o in c.operands]
    unit = 64 if d == "f64" else 32
    counts = [str(len(o.elements)) for o in operands[1:3]]
    params = (shape, d, a, b, addend, *counts, "satfinite" if "satfinite" in c.flags else "")
    op = Exchange("wmma", (unit,) * len(operands[0].elements), params)
    _set_exchange(c, op, *(c.leaf(e, unit) for o in operands[1:4] for e in o.elements))
    for index, element in enumerate(operands[0].elements):
        c.assign(element, c.shared_result(index), unit)


def _bit_product(c: Context) -> None:
    """D = popcount(A and B) + C, or of their difference."""
    operands = [o if isinstance(o, VectorOperand) else VectorOperand((o,)) for o in c.operands]
    op = Exchange("mma", (32,) * 4, ("168256", "S32", "B1", "B1", "S32", c.pick("and", "xor").upper()))
    _set_exchange(c, op, *(c.leaf(e, 32) for o in operands[1:4] for e in o.elements))
    for index, element in enumerate(operands[0].elements):
        c.assign(element, c.shared_result(index), 32)


def _sass_shape(shape: str, type_: str) -> str:
    if type_ == "f64":
        return shape.replace("m", "").replace("n", "x").replace("k", "x")
    return _SHAPES[shape]
