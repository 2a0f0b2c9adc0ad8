"""Barriers, warp-wide exchanges and votes, matrix multiplication, and the rest of control over threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sassay.isel.build import Lowering, rule
from sassay.isel.ir import Value
from sassay.ptx import ast as ptx
from sassay.sass.function import MemoryFact

FULL = 0xFFFFFFFF
BARRIER = MemoryFact("generic", True, True, fence=True)


def converge(lo: Lowering, mask: Value) -> None:
    """The threads of the mask meet before a warp-wide operation: the emitter leaves the WARPSYNC out where they surely run together."""
    lo.b.effect("converge", [mask], (), "order")


def member_mask(lo: Lowering, s: ptx.Instruction) -> Value:
    mask = lo.src(s.operands[-1], "b32")
    converge(lo, mask)
    return mask


@contextmanager
def by_group(lo: Lowering, s: ptx.Instruction) -> Iterator[None]:
    """Round an operation on all threads that run together: where masks may differ between them, one group after the other (in a block of its
    own, between BSSY and BSYNC with WARPSYNC.EXCLUSIVE), as ptxas has it."""
    b = lo.b
    mask = lo.src(s.operands[-1], "b32")
    if mask.const is not None or mask.op.name == "param":
        converge(lo, mask)
        yield
        return
    if b.guard is not None:
        raise lo.unsupported("guarded, with a mask that threads may differ in")
    before, inside, after = b.block, b.new_block("group"), b.new_block("together")
    lo.graph.exclusive.append((before, inside, after))
    b.jump(inside)
    lo.start(inside)
    b.effect("converge", [mask], (), "order", mods=("EXCLUSIVE",))
    yield
    b.jump(after)
    lo.start(after)


@rule("bar", "barrier")
def lower_bar(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    m = [x for x in s.modifiers if x not in ("cta", "aligned")]
    if m[0] == "warp":
        b.effect("converge", [lo.src(s.operands[0], "b32")], (), "fence", memory=BARRIER)
        return
    if m[0] in ("cluster",):
        raise lo.unsupported()
    operands = list(s.operands)
    result = operands.pop(0) if m[0] == "red" else None
    negated_last = operands.pop() if m[0] == "red" else None
    index = lo.src(operands[0], "u32")
    count = lo.src(operands[1], "u32") if len(operands) > 1 else None
    lo.barriers = max(lo.barriers, index.const + 1 if index.const is not None else 16)
    args: list[Value] = []
    if index.const is not None and (count is None or count.const is not None):
        args = [index] + ([count] if count is not None else [])
    elif count is None:
        args = [index]
    elif index.const is not None:
        args = [index, count]
    else:
        args = [b.lop3(b.shl(count, b.const(16)), b.const(15), index, 0xF8)] * 2
    if m[0] == "sync":
        b.effect("BAR", args, (), "fence", mods=("SYNC", "DEFER_BLOCKING"), memory=BARRIER)
    elif m[0] == "arrive":
        b.effect("BAR", args, (), "fence", mods=("ARV",), memory=BARRIER)
    elif m[0] == "red":
        p = lo.src(negated_last, "pred")
        b.effect("BAR", [*args, p], (), "fence", mods=("RED", m[1].upper(), "DEFER_BLOCKING"), memory=BARRIER)
        popc = m[1] == "popc"
        op = b.effect("B2R", [], (1,) if popc else (0,), "fence", mods=("RESULT",), memory=BARRIER)
        lo.dst(result, op.results[0])
    else:
        raise lo.unsupported()


@rule("shfl")
def lower_shfl(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    if "sync" not in s.modifiers:
        raise lo.unsupported()
    mode = {"up": "UP", "down": "DOWN", "bfly": "BFLY", "idx": "IDX"}[s.modifiers[1]]
    target = s.operands[0]
    first, second = (target.first, target.second) if isinstance(target, ptx.PairOperand) else (target, None)
    member_mask(lo, s)
    x, lane, clamp = (lo.src(o, "b32") for o in s.operands[1:4])
    op = b.effect("SHFL", [x, lane, clamp], (0, 1), "warp", mods=(mode,), tied=[lo.old(second, 0), lo.old(first, 1)])
    p, v = op.results
    guard, b.guard = b.guard, None
    lo.dst(first, v)
    lo.dst(second, p)
    b.guard = guard


@rule("vote")
def lower_vote(lo: Lowering, s: ptx.Instruction) -> None:
    if "sync" in s.modifiers:
        with by_group(lo, s):
            vote(lo, s)
    else:
        vote(lo, s)


def vote(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    mode = next(m for m in s.modifiers if m in ("all", "any", "uni", "ballot"))
    p = lo.src(s.operands[1], "pred")
    if mode == "ballot":
        op = b.effect("VOTE", [p], (1, 0), "warp", mods=("ANY",), tied=[lo.old(s.operands[0], 1), b.true()])
        write_guarded(lo, s.operands[0], op.results[0])
    else:
        name = {"all": "ALL", "any": "ANY", "uni": "EQ"}[mode]
        op = b.effect("VOTE", [p], (1, 0), "warp", mods=(name,), tied=[b.const(0), lo.old(s.operands[0], 0)])
        write_guarded(lo, s.operands[0], op.results[1])


def write_guarded(lo: Lowering, target: ptx.PtxOperand | None, v: Value) -> None:
    guard, lo.b.guard = lo.b.guard, None
    lo.dst(target, v)
    lo.b.guard = guard


@rule("activemask")
def lower_activemask(lo: Lowering, s: ptx.Instruction) -> None:
    op = lo.b.effect("VOTE", [lo.b.true()], (1, 0), "warp", mods=("ANY",), tied=[lo.old(s.operands[0], 1), lo.b.true()])
    write_guarded(lo, s.operands[0], op.results[0])


@rule("match")
def lower_match(lo: Lowering, s: ptx.Instruction) -> None:
    with by_group(lo, s):
        match(lo, s)


def match(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    x = lo.src(s.operands[1], type_)
    wide = ("U64",) if x.width == 2 else ()
    target = s.operands[0]
    if s.modifiers[0] == "any":
        op = b.effect("MATCH", [x], (1,), "warp", mods=("ANY", *wide), tied=[lo.old(target, 1)])
        write_guarded(lo, target, op.results[0])
        return
    first, second = (target.first, target.second) if isinstance(target, ptx.PairOperand) else (target, None)
    op = b.effect("MATCH", [x], (0, 1), "warp", mods=("ALL", *wide), tied=[lo.old(second, 0), lo.old(first, 1)])
    write_guarded(lo, first, op.results[1])
    write_guarded(lo, second, op.results[0])


@rule("redux")
def lower_redux(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    if b.guard is not None or (type_ == "f32" and not lo.target.has("credux")):
        raise lo.unsupported()
    with by_group(lo, s):
        redux(lo, s)


def redux(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    kind, type_ = s.modifiers[1], s.modifiers[-1]
    x = lo.src(s.operands[1], "b32")
    name = {"add": "SUM"}.get(kind, kind.upper())
    if type_ == "f32":
        name += "ABS" if "abs" in s.modifiers else ""
        mods = (name, "F32", *(("NAN",) if "NaN" in s.modifiers else ()))
    else:
        # The default operation, AND, has no name in the text.
        mods = (() if name == "AND" else (name,)) + (("S32",) if type_ == "s32" and kind in ("min", "max", "add") else ())
    if kind in ("min", "max") and lo.target.has("credux"):
        op = b.effect("CREDUX", [x], (1,), "warp", mods=mods)
    else:
        op = b.effect("REDUX", [x], (1,), "warp", mods=mods)
    lo.dst(s.operands[0], op.results[0])


@rule("elect")
def lower_elect(lo: Lowering, s: ptx.Instruction) -> None:
    target = s.operands[0]
    first, second = (target.first, target.second) if isinstance(target, ptx.PairOperand) else (None, target)
    with by_group(lo, s):
        op = lo.b.effect("ELECT", [lo.b.true()], (0, 1), "warp")
    lo.dst(second, op.results[0])
    if first is not None and not isinstance(first, ptx.SinkOperand):
        lo.dst(first, op.results[1])


@rule("nanosleep")
def lower_nanosleep(lo: Lowering, s: ptx.Instruction) -> None:
    lo.b.effect("NANOSLEEP", [lo.src(s.operands[0], "u32")], (), "order")


@rule("griddepcontrol")
def lower_griddep(lo: Lowering, s: ptx.Instruction) -> None:
    lo.b.effect("ACQBULK" if s.modifiers[0] == "wait" else "PREEXIT", [], (), "fence", memory=BARRIER)


@rule("pmevent")
def lower_pmevent(lo: Lowering, s: ptx.Instruction) -> None:
    """A performance event without a listener changes nothing that a program can see."""


# Matrix multiplication ---------------------------------------------------------------------------------------------------------------------

MMA_SHAPES = {
    ("m16n8k16", "f16"): "16816", ("m16n8k16", "bf16"): "16816", ("m16n8k8", "f16"): "1688", ("m16n8k8", "bf16"): "1688",
    ("m16n8k4", "tf32"): "1684", ("m16n8k8", "tf32"): "1688",
    ("m16n8k16", "s8"): "16816", ("m16n8k32", "s8"): "16832", ("m16n8k32", "s4"): "16832", ("m16n8k64", "s4"): "16864", ("m8n8k16", "s8"): "8816",
}  # fmt: skip


@rule("mma")
def lower_mma(lo: Lowering, s: ptx.Instruction) -> None:
    m = [x for x in s.modifiers if x not in ("sync", "aligned")]
    shape = m[0]
    if m[1:3] != ["row", "col"]:
        raise lo.unsupported()
    types = [x for x in m[3:] if x in ptx.TYPE_BITS]
    if len(types) != 4 or any(x.startswith(("sp", "kind", "block_scale")) for x in m):
        raise lo.unsupported()
    d, a, bt, _ = types
    if a == "f64":
        lower_dmma(lo, s, shape)
        return
    family = a.replace("u", "s") if a[0] in "us" else a
    if (shape, family) not in MMA_SHAPES:
        raise lo.unsupported()
    code = MMA_SHAPES[shape, family]
    fragments = [fragment(lo, o) for o in s.operands[1:4]]
    if family[0] == "s":
        mods = (code, a.upper(), bt.upper()) + (("SAT",) if "satfinite" in m else ())
        v = lo.b.op("IMMA", fragments, fragments[2].width, mods=mods, amods=[".ROW", ".COL", ""])
    else:
        kind = {"f16": (), "bf16": ("BF16",), "tf32": ("TF32",)}[a]
        v = lo.b.op("HMMA", fragments, fragments[2].width, mods=(code, "F32" if d == "f32" else "F16", *kind))
    store_fragment(lo, s.operands[0], v)


def lower_dmma(lo: Lowering, s: ptx.Instruction, shape: str) -> None:
    if shape not in ("m8n8k4",):
        raise lo.unsupported()
    fragments = [fragment(lo, o, "f64") for o in s.operands[1:4]]
    store_fragment(lo, s.operands[0], lo.b.op("DMMA", fragments, 4, mods=("8x8x4",)), 2)


def fragment(lo: Lowering, operand: ptx.PtxOperand, type_: str = "b32") -> Value:
    elements = operand.elements if isinstance(operand, ptx.VectorOperand) else (operand,)
    return lo.b.pack(*(lo.src(e, type_) for e in elements))


def store_fragment(lo: Lowering, operand: ptx.PtxOperand, v: Value, words: int = 1) -> None:
    elements = operand.elements if isinstance(operand, ptx.VectorOperand) else (operand,)
    for i, e in enumerate(elements):
        lo.dst(e, lo.b.part(v, i * words, words))


@rule("movmatrix")
def lower_movmatrix(lo: Lowering, s: ptx.Instruction) -> None:
    op = lo.b.effect("MOVM", [lo.src(s.operands[1], "b32")], (1,), "warp", mods=("16", "MT88"))
    lo.dst(s.operands[0], op.results[0])
