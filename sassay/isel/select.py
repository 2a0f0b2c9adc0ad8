"""Entry point: one PTX function to a SASS function over virtual registers."""

from __future__ import annotations

import sys

from sassay.errors import UnsupportedError
from sassay.isa.target import Target
from sassay.isel import control, emit_integer, emit_memory, emit_threads, forms, lower_convert, lower_float, lower_int, lower_memory, lower_sync
from sassay.isel.build import Lowering, Options
from sassay.isel.emit import Emitter
from sassay.isel.finish import build_blocks, layout, split_critical_edges, stack_setup
from sassay.isel.ir import Block, Graph, dominators, loops, reverse_postorder
from sassay.isel.optimise import optimise
from sassay.isel.predicate import conversions
from sassay.isel.uniform import analyse, meetings, place_meetings
from sassay.ptx import ast as ptx
from sassay.sass.function import Function
from sassay.sass.model import File

_RULE_MODULES = (control, emit_integer, emit_memory, emit_threads, forms, lower_convert, lower_float, lower_int, lower_memory, lower_sync)
"""Imported for the rules that they register."""


def select(module: ptx.Module, function: ptx.Function, target: Target, options: Options | None = None) -> Function:
    """Selects SASS operations for a kernel. Raises UnsupportedError, with the place, for what it cannot."""
    options = options or Options()
    if function.body is None:
        raise UnsupportedError(f"function '{function.name}' has no body", function.location)
    if not function.is_entry:
        raise UnsupportedError(f"function '{function.name}': only kernels are compiled by themselves; functions are inlined", function.location)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 200_000))
    try:
        return _select(module, function, target, options)
    finally:
        sys.setrecursionlimit(limit)


def _select(module: ptx.Module, function: ptx.Function, target: Target, options: Options) -> Function:
    lowering = Lowering(module, function, target, options)
    lowering.run()
    graph, entry = lowering.graph, lowering.b.entry
    optimise(graph, entry, options.level)
    divergence = analyse(graph)
    converted = conversions(graph) if options.level else {}
    found = meetings(graph, divergence, converted)
    while clash := [a for a, c in converted.items() if any(side in (m.start, m.join) for side, _ in c.sides for m in found)]:
        for a in clash:  # A side cannot hold the start or the end of a meeting under its guard.
            del converted[a]
        found = meetings(graph, divergence, converted)
    place_meetings(graph, found)
    graph.blocks = reverse_postorder(entry)
    split_critical_edges(graph, divergence)
    graph.blocks = reverse_postorder(entry)
    fn = _shell(lowering, target)
    emitter = Emitter(graph, fn, target, divergence)
    emitter.sides = {side for c in converted.values() for side, _ in c.sides}
    emitter.run()
    depth = {b: lp.depth for b, lp in loops(graph.blocks, dominators(graph.blocks)).items()}
    order = layout(entry, depth)
    build_blocks(emitter, order, depth, converted)
    if emitter.uses_stack or lowering.layout.local_size:
        stack_setup(emitter, fn.frame_size)
    fn.notes["witness"] = _witness(emitter, graph)
    return fn


def _shell(lowering: Lowering, target: Target) -> Function:
    """The function with all that is known before its code."""
    f = lowering.function
    d = f.directives
    fn = Function(f.name, target, is_entry=f.is_entry, params_size=lowering.params_size, params=list(lowering.params))
    fn.frame_size = (lowering.layout.local_size + 7) // 8 * 8
    fn.shared_size = lowering.layout.shared_size
    fn.barriers = min(lowering.barriers, 16)
    fn.max_registers = d["maxnreg"][0] if "maxnreg" in d else None
    fn.max_threads = _three(d.get("maxntid"))
    fn.required_threads = _three(d.get("reqntid"))
    fn.min_ctas = d["minnctapersm"][0] if "minnctapersm" in d else None
    fn.callees = list(lowering.callees)
    fn.notes["address_table"] = lowering.notes.get("address_table", {})
    fn.notes["shared_offsets"] = {v.name: at for v, at in lowering.layout.shared.items()}
    fn.notes["constants"] = [v.name for v in lowering.module.variables if v.space == "const"]
    return fn


def _three(values: tuple[int, ...] | None) -> tuple[int, int, int] | None:
    if values is None:
        return None
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


Where = tuple[object, ...]


def _witness(e: Emitter, graph: Graph) -> dict[str, object]:
    """For the prover: SASS block label -> index of the PTX statement it starts with, and there PTX register uid -> where its value is.

    A place is ("R" | "P", first virtual index, words), ("const", number, words), ("param", bank, offset, words) or ("special", name). It may be wrong
    for a value that the code no longer keeps: a hint, not a promise.
    """
    labels = {b.label for b in e.fn.blocks}
    blocks: dict[str, int] = {}
    values: dict[str, dict[int, Where]] = {}
    for b in graph.blocks:
        if b.ptx < 0 or b.label not in labels:
            continue
        blocks[b.label] = b.ptx
        found = {uid: where for uid, v in b.entry_values.items() if (where := _where(e, v)) is not None}
        values[b.label] = found
    return {"blocks": blocks, "registers": values}


def _where(e: Emitter, v: object) -> Where | None:
    from sassay.isel.ir import Value

    assert isinstance(v, Value)
    if v.const is not None:
        return ("const", v.const, v.width)
    if v.op.name == "param":
        return ("param", v.op.attr[0], v.op.attr[1], v.width)
    if v.op.name == "sr":
        return ("special", v.op.attr[0])
    if v.op.name == "part" and v not in e.place:
        whole = e.place.get(v.op.args[0])
        return ("R", whole[1] + int(v.op.attr[0]), v.width) if whole else None  # type: ignore[call-overload]
    place = e.place.get(v)
    if place is None or v not in e.wanted:
        return None
    return ("R" if place[0] is File.R else "P", place[1], v.width)


__all__ = ["Block", "Options", "select"]
