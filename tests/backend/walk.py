"""A slow, plain check of control codes: walks random paths through finished code, cycle by cycle, and looks at every access."""

from __future__ import annotations

import random

from sassay.isa import timing
from sassay.sass.cfg import is_conditional
from sassay.sass.effects import effects
from sassay.sass.function import Function
from sassay.sass.model import File


def hazards(fn: Function, seed: int = 0, paths: int = 8, steps: int = 3000) -> list[str]:
    """Findings on `paths` random walks of at most `steps` instructions: an empty list for code that is right on them."""
    model = timing.model(fn.target)
    random.seed(seed)
    where = {b.label: b for b in fn.blocks}
    found: set[str] = set()
    for _ in range(paths):
        now, ready = 0, 0
        writes: dict[tuple[File, int], list[tuple[int, object]]] = {}
        reads: dict[tuple[File, int], list[tuple[int, object]]] = {}
        flying: dict[int, list[tuple[str, tuple[File, int]]]] = {k: [] for k in range(6)}
        loose: set[tuple[str, tuple[File, int]]] = set()
        set_at = [-9] * 6
        block, taken = fn.blocks[0], 0
        while block is not None and taken < steps:
            for node in block.nodes:
                i = node.instruction
                taken += 1
                now = ready
                kind = model.classify(i)
                seen = effects(i)
                for k in range(6):
                    if i.control.wait >> k & 1:
                        if set_at[k] >= 0 and now - set_at[k] < timing.SB_VISIBLE:
                            found.add(f"{i.mnemonic}: waits for SB{k} too soon")
                        flying[k] = []
                pending = {entry for row in flying.values() for entry in row} | loose
                uses = [
                    ((f, r), p)
                    for (f, first, w), p in zip(seen.uses, seen.use_positions, strict=True)
                    for r in range(first, first + w)
                    if f != File.SB
                ]
                halves = {(f, first + 1) for f, first, w in (*seen.uses, *seen.defs) if w == 2}
                defs = [(f, r) for f, first, w in seen.defs for r in range(first, first + w) if f != File.SB]
                for r, position in uses:
                    if ("write", r) in pending:
                        found.add(f"{i.mnemonic}: reads {r} in flight")
                    for when, producer in writes.get(r, ()):
                        role = model.role(i, position)
                        role = "addend_hi" if role == "addend" and r in halves else role
                        need = model.raw(producer[0], kind, r[0], role, producer[1])  # type: ignore[index]
                        if now - when < need:
                            found.add(f"{i.mnemonic}: reads {r} after {now - when} of {need}")
                for r in defs:
                    if ("write", r) in pending or ("read", r) in pending:
                        found.add(f"{i.mnemonic}: overwrites {r} in flight")
                    for when, producer in writes.get(r, ()):
                        if now - when < model.waw(producer[0], kind, r[0]):  # type: ignore[index]
                            found.add(f"{i.mnemonic}: overwrites {r} too soon after its write")
                    for when, reader in reads.get(r, ()):
                        if now - when < model.war(reader, kind, r[0]):  # type: ignore[arg-type]
                            found.add(f"{i.mnemonic}: overwrites {r} too soon after a read")
                partial = not i.guard.is_zero
                late = [r for r, position in uses if kind.read_sb and position >= 0 and r[0] in (File.R, File.UR)]
                for r, _ in uses:
                    if r not in late:
                        reads.setdefault(r, []).append((now, kind))
                for r in defs:
                    reads.pop(r, None)
                    if not partial:
                        writes[r] = []
                    if not kind.write_sb:
                        writes.setdefault(r, []).append((now, (kind, "" if kind.name != "wide" else "hi" if r in halves else "lo")))
                reading = [("read", r) for r in late]
                for k, entries in (
                    (i.control.write, [("write", r) for r in defs] + (reading if i.control.read is None else [])),
                    (i.control.read, reading),
                ):
                    if k is not None:
                        flying[k].extend(entries)
                        set_at[k] = now
                if kind.write_sb and defs and i.control.write is None:
                    loose.update(("write", r) for r in defs)
                if late and i.control.write is None and i.control.read is None:
                    loose.update(("read", r) for r in late)
                assert i.control.stall >= 1 or i.opcode == "BRA"
                if i.control.stall > 11 and not i.control.yield_:
                    found.add(f"{i.mnemonic}: stall {i.control.stall} with bit 109 set")
                ready = now + i.control.stall
            last = block.nodes[-1].instruction
            choices = list(block.successors)
            if last.opcode == "EXIT" and not is_conditional(last):
                choices = []
            block = where[random.choice(choices)] if choices else None  # type: ignore[assignment]
    return sorted(found)
