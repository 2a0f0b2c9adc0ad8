"""Scheduling: the order of instructions, twice (over virtual registers with pressure in view, over physical ones with exact distances), and
their control codes."""

from __future__ import annotations

from collections.abc import Sequence

from sassay.isa import timing
from sassay.isa.timing import TimingClass, TimingModel
from sassay.sass import dag
from sassay.sass.effects import Effects, effects
from sassay.sass.function import Function, Node
from sassay.sass.model import File
from sassay.sass.units import Units, live_out, number
from sassay.sched import controls, lists

PRESSURE = {File.R: 24, File.UR: 24, File.P: 6, File.UP: 4}
"""Live registers at which scheduling over virtual registers turns from latency to pressure, unless the given order needs more."""
HEADROOM = 16
"""R registers that a block may use beside those that only live through it."""
SLACK = 2
"""Registers by which a new order may exceed its limit; past that the order given stays."""
MARGIN = 6
"""Registers kept below a launch limit for what allocation adds (alignment of tuples)."""


def _latencies(model: TimingModel, kinds: Sequence[TimingClass], nodes: Sequence[Node]) -> dag.Latency:
    """Edge latencies for ordering: exact distances for fixed operations, expected ones for those under a scoreboard."""
    cache: dict[tuple[int, int, str, File, str], int] = {}

    def latency(i: int, j: int, what: str, file: File, position: int) -> int:
        producer, consumer = kinds[i], kinds[j]
        if what == "raw" and producer.write_sb:
            return producer.latency
        if what == "waw" and producer.write_sb:
            return producer.latency
        if what == "war" and producer.read_sb and position >= 0 and file in (File.R, File.UR):
            return 2
        role = model.role(nodes[j].instruction, position) if what == "raw" else "operand"
        key = (id(producer), id(consumer), what, file, role)
        found = cache.get(key)
        if found is None:
            found = cache[key] = controls.distance(model, what, producer, consumer, file, role)
        return found

    return latency


def _block_dag(model: TimingModel, nodes: list[Node], seen: list[Effects]) -> tuple[dag.Dag, list[int]]:
    kinds = [model.classify(n.instruction) for n in nodes]
    graph = dag.build(nodes, _latencies(model, kinds, nodes), seen)
    return graph, graph.heights([k.latency if k.write_sb else 1 for k in kinds])


def schedule_virtual(fn: Function, max_registers: int | None = None) -> None:
    """Reorders every block for latency, keeping the number of live registers near what the given order needs. In place.

    `max_registers`: a limit on R registers per thread, as the launch counts them, beside the function's own.
    """
    model = timing.model(fn.target)
    units = number(fn)
    outs = live_out(fn, units)
    limit = min(fn.target.max_registers, fn.max_registers or 255, max_registers or 255) - 2 - MARGIN
    for b, (block, out) in enumerate(zip(fn.blocks, outs, strict=True)):
        if len(block.nodes) < 3:
            continue
        seen = [effects(n.instruction) for n in block.nodes]
        graph, heights = _block_dag(model, block.nodes, seen)
        entering = out
        for access in reversed(units.accesses[b]):
            for d in access.kills:
                entering &= ~(1 << d)
            for u in access.uses:
                entering |= 1 << u
        pressures = []
        bounds = []
        for file, usual in PRESSURE.items():
            ends, starts = _members(units, out, file), _members(units, entering, file)
            p = lists.pressure_of(file, seen, starts, ends, 0)
            needed = _peak(p, starts)
            wanted = max(usual, len(starts & ends) + HEADROOM) if file == File.R else usual
            if file == File.R:
                wanted = min(wanted, limit)
            pressures.append(lists.pressure_of(file, seen, starts, ends, wanted))
            bounds.append((file, starts, ends, max(wanted, needed)))
        order = lists.order(graph, heights, pressures)
        moved = [seen[i] for i in order]
        if all(_peak(lists.pressure_of(f, moved, starts, ends, 0), starts) <= most + SLACK for f, starts, ends, most in bounds):
            block.nodes = [block.nodes[i] for i in order]


def _members(units: Units, mask: int, file: File) -> set[int]:
    out: set[int] = set()
    files, index = units.file, units.index
    while mask:
        low = mask & -mask
        u = low.bit_length() - 1
        mask ^= low
        if files[u] is file:
            out.add(index[u])
    return out


def _peak(p: lists.Pressure, live: set[int]) -> int:
    """The most registers of the file live at once in the given order; spends `p`."""
    most = len(live)
    for i in range(len(p.defs)):
        p.take(i)
        most = max(most, len(p.live))
    return most


def schedule_final(fn: Function, serial: bool = False, reorder: bool = True) -> None:
    """Orders blocks over physical registers and gives every instruction its control code. `serial`: program order, each waiting for all before."""
    model = timing.model(fn.target)
    if reorder and not serial:
        for block in fn.blocks:
            if len(block.nodes) > 2:
                seen = [effects(n.instruction) for n in block.nodes]
                graph, heights = _block_dag(model, block.nodes, seen)
                block.nodes = [block.nodes[i] for i in lists.order(graph, heights)]
    controls.assign(fn, model, serial)
