"""Predicates kept in registers are not fetched again while the predicate still holds them. Works on allocated code, block by block."""

from __future__ import annotations

from sassay.sass.effects import effects
from sassay.sass.function import Function
from sassay.sass.model import File
from sassay.sass.units import predicate_home


def drop_reloads(fn: Function) -> None:
    """Drops `ISETP.NE.AND P, PT, R, RZ, PT` where P already says whether R is zero: by the same test before, or a SEL of P into R. In place."""
    for block in fn.blocks:
        known: dict[int, int] = {}  # predicate -> register that is 1 or 0 as it is true or false
        kept = []
        for node in block.nodes:
            instr = node.instruction
            fact = predicate_home(instr)
            if fact is not None and instr.opcode == "ISETP" and known.get(fact[0]) == fact[1]:
                continue
            kept.append(node)
            for file, first, width in effects(instr).defs:
                if file == File.P:
                    for p in range(first, first + width):
                        known.pop(p, None)
                elif file == File.R:
                    known = {p: r for p, r in known.items() if not first <= r < first + width}
            if fact is not None:
                known[fact[0]] = fact[1]
        block.nodes = kept
