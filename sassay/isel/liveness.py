"""Which PTX registers are live at the start of each block of a body: for the witness that the prover reads."""

from __future__ import annotations

from sassay.ptx import ast as ptx

NO_RESULT = frozenset(
    {"st", "red", "bra", "brx", "membar", "fence", "nanosleep", "prefetch", "ret", "exit", "trap", "cp", "stmatrix"},
)
"""Opcodes whose first operand is no destination."""


def registers(operand: object, out: set[ptx.Register]) -> None:
    """Adds the registers that an operand names."""
    if isinstance(operand, ptx.RegOperand):
        out.add(operand.register)
    elif isinstance(operand, ptx.AddressOperand):
        if isinstance(operand.base, ptx.Register):
            out.add(operand.base)
    elif isinstance(operand, (ptx.VectorOperand, ptx.ListOperand, ptx.BracketOperand)):
        for e in operand.elements:
            registers(e, out)
    elif isinstance(operand, ptx.PairOperand):
        registers(operand.first, out)
        registers(operand.second, out)


def written(body: list[ptx.Statement]) -> set[ptx.Register]:
    """Registers that some instruction of the range may write."""
    out: set[ptx.Register] = set()
    for s in body:
        if isinstance(s, ptx.Instruction) and s.opcode not in NO_RESULT and s.operands:
            registers(s.operands[0], out)
    return out


def loop_writes(
    body: list[ptx.Statement], blocks: list[tuple[int, int]], succs: dict[int, list[int]],
) -> dict[int, set[ptx.Register]]:  # fmt: skip
    """For each target of a back edge that all ways to the edge pass: the registers that its loop may write."""
    position = {at: i for i, (at, _) in enumerate(blocks)}
    preds: dict[int, list[int]] = {at: [] for at, _ in blocks}
    for at, _ in blocks:
        for n in succs[at]:
            preds[n].append(at)
    members: dict[int, set[int]] = {}
    for at, _ in blocks:
        for head in succs[at]:
            if position[head] <= position[at]:
                found = members.setdefault(head, {head})
                work = [at]
                while work:
                    x = work.pop()
                    if x not in found:
                        found.add(x)
                        work.extend(preds[x])
    writes = {at: written(body[at:end]) for at, end in blocks}
    entry = blocks[0][0] if blocks else -1
    return {head: set().union(*(writes[x] for x in found)) for head, found in members.items() if head == entry or entry not in found}


def effects(s: ptx.Instruction) -> tuple[set[ptx.Register], set[ptx.Register]]:
    """Registers surely written, and registers read."""
    defs: set[ptx.Register] = set()
    uses: set[ptx.Register] = set()
    has_result = s.opcode not in NO_RESULT and bool(s.operands) and not isinstance(s.operands[0], (ptx.AddressOperand, ptx.SymbolOperand))
    for i, operand in enumerate(s.operands):
        registers(operand, defs if i == 0 and has_result else uses)
    if s.guard is not None:
        uses.add(s.guard.register)
        uses |= defs
        defs = set()
    return defs, uses


def live_in(body: list[ptx.Statement], blocks: list[tuple[int, int]], succs: dict[int, list[int]]) -> dict[int, set[ptx.Register]]:
    """Live registers at the start of each block; blocks are (start, end) in reverse postorder."""
    gen: dict[int, set[ptx.Register]] = {}
    kill: dict[int, set[ptx.Register]] = {}
    for at, end in blocks:
        g: set[ptx.Register] = set()
        k: set[ptx.Register] = set()
        for s in reversed(body[at:end]):
            if isinstance(s, ptx.Instruction):
                defs, uses = effects(s)
                g = (g - defs) | uses
                k |= defs
        gen[at], kill[at] = g, k
    live = {at: set(gen[at]) for at, _ in blocks}
    changed = True
    while changed:
        changed = False
        for at, _ in reversed(blocks):
            out: set[ptx.Register] = set()
            for n in succs[at]:
                out |= live.get(n, set())
            new = gen[at] | (out - kill[at])
            if len(new) != len(live[at]):
                live[at] = new
                changed = True
    return live
