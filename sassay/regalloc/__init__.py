"""Register allocation: graph colouring over aligned tuples, all files at once, with spilling as a change of file."""

from __future__ import annotations

from dataclasses import dataclass

from sassay.errors import AllocationError
from sassay.regalloc.graph import Clusters, Colouring, Interference, clusters, coalesce, colour, interference
from sassay.regalloc.spill import Spills, spill
from sassay.sass.function import Function
from sassay.sass.model import VIRTUAL, File
from sassay.sass.rename import rename
from sassay.sass.units import FILES, Units, is_copy, live_out, number

ROUNDS = 24
"""Rounds of spilling before giving up: each one shortens live ranges, so real functions need two to four."""


@dataclass(frozen=True, slots=True)
class AllocationOptions:
    """`max_registers`: R registers per thread as the launch counts them (two are the hardware's); `force_spill`: spill whatever can be."""

    max_registers: int | None = None
    force_spill: bool = False


def limits(fn: Function, options: AllocationOptions) -> dict[File, int]:
    """Registers of each file that the function may use."""
    registers = fn.target.max_registers
    for bound in (options.max_registers, fn.max_registers):
        if bound is not None:
            registers = min(registers, bound)
    return {File.R: min(253, registers - 2), File.UR: fn.target.uniform_registers, File.P: 7, File.UP: 7, File.B: 16}


def allocate(fn: Function, options: AllocationOptions | None = None) -> None:
    """Replaces every virtual register by a physical one, in place; sets `registers_used`, `frame_size` and `spill_bytes`.

    AllocationError when the limits cannot be kept.
    """
    options = options or AllocationOptions()
    bounds = limits(fn, options)
    reserved = dict.fromkeys(FILES, 0)
    reserved[File.R] = 1 << 1  # R1 is the stack pointer
    state = Spills()
    if options.force_spill:
        _force(fn, state)
    for _ in range(ROUNDS):
        units = number(fn)
        graph = interference(fn, units, live_out(fn, units))
        _keep_uniform_apart(units, graph, state)
        free = {units.group_of[units.ids[key]] for key in state.temporaries if key in units.ids}
        plain = clusters(units, graph)
        merged = clusters(units, graph)
        coalesce(units, graph, merged)
        found = colour(units, graph, merged, bounds, reserved, {merged.of[units.groups[g][0]] for g in free})
        if found.failed and merged.members != plain.members:
            again = colour(units, graph, plain, bounds, reserved, free)
            if not again.failed or len(again.failed) <= len(found.failed):
                found, merged = again, plain
        if not found.failed:
            _apply(fn, units, found)
            fn.spill_bytes = (state.stores, state.loads)
            return
        spill(fn, _victims(fn, units, graph, merged, found, state), state)
    raise AllocationError(f"{fn.name}: registers cannot be allocated within {bounds[File.R] + 2}")


def _keep_uniform_apart(units: Units, graph: Interference, state: Spills) -> None:
    """Uniform registers that spilling made may be written where threads have parted: they may not touch what the others still need.

    Liveness follows one thread's path; the uniform file is shared by all paths of a warp. (The selector defines uniform values in convergent
    code alone.)
    """
    made = [units.ids[k] + i for k in state.temporaries if k[0] in (File.UR, File.UP) and k in units.ids for i in range(units.width(units.ids[k]))]
    if not made:
        return
    temporary = set(made)
    for a in made:
        for b in range(len(units.file)):
            if units.file[b] is units.file[a] and b not in temporary:
                graph.join(a, b)


def _victims(fn: Function, units: Units, graph: Interference, merged: Clusters, found: Colouring, state: Spills) -> set[tuple[File, int]]:
    """The groups to spill: those of clusters that found no place; for a short-lived one, the cheapest of its neighbours."""
    chosen: set[tuple[File, int]] = set()

    def group_key(unit: int) -> tuple[File, int] | None:
        group = units.group_of[unit]
        if group < 0:
            return None
        first = units.groups[group][0]
        key = (units.file[first], units.index[first])
        return None if key in state.temporaries else key

    for c in found.failed:
        members = [u for row in merged.members[c] for u in row]
        keys = {k for u in members if (k := group_key(u)) is not None and units.file[u] != File.B}
        if keys:
            chosen |= keys
            continue
        around = sorted({n for u in members for n in graph.lists[u]}, key=lambda n: (graph.cost[n], n))
        victim = next((k for n in around if (k := group_key(n)) is not None and k not in chosen), None)
        if victim is not None:
            chosen.add(victim)
    if not chosen:
        raise AllocationError(f"{fn.name}: an instruction needs more registers than the limit leaves")
    return chosen


def _force(fn: Function, state: Spills) -> None:
    """Spills every virtual R register or tuple that an instruction both can reload and store, for testing the spill code."""
    units = number(fn)
    chosen = {(units.file[first], units.index[first]) for first, _ in units.groups if units.file[first] == File.R}
    spill(fn, chosen, state)


def _apply(fn: Function, units: Units, found: Colouring) -> None:
    """Renames to physical registers, drops copies onto themselves and checks that nothing virtual is left."""
    names = {(units.file[u], units.index[u]): found.colour[u] for u in range(len(units.file))}
    highest = 0

    def new(file: File, index: int) -> int:
        if index < VIRTUAL:
            return index
        return names[file, index]

    for block in fn.blocks:
        kept = []
        for node in block.nodes:
            node.instruction = rename(node.instruction, new)
            pair = is_copy(node)
            if pair is None or pair[0].index != pair[1].index:
                kept.append(node)
        block.nodes = kept
    for u, k in enumerate(found.colour):
        if units.file[u] == File.R and k >= 0:
            highest = max(highest, k + 1)
    fn.registers_used = max(fn.registers_used, highest)
    renamed = fn.notes.get("renamed")
    if isinstance(renamed, dict):  # by coalescing before
        for key, index in renamed.items():
            if (key[0], index) in names:
                names[key] = names[key[0], index]
    fn.notes["registers"] = names
