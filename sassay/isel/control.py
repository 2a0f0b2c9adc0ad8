"""Control transfers of PTX: branches, returns, switches by comparison trees, and calls of functions with bodies (inlined)."""

from __future__ import annotations

from sassay.isel.build import Lowering, Scope, rule
from sassay.isel.ir import Block, Value
from sassay.ptx import ast as ptx


def lower_transfer(lo: Lowering, scope: Scope, s: ptx.Instruction, following: Block | None) -> bool:
    """Ends the current block with a transfer. Returns False when control surely falls through and the block is still open."""
    b = lo.b
    if s.opcode == "brx":
        lower_switch(lo, scope, s, following)
        return True
    if s.opcode == "bra":
        target: Block | None = lo.label_block(scope, s)
    elif s.opcode == "ret" and scope.exit is not None:
        target = scope.exit
    else:
        target = None
    uniform = "uni" in s.modifiers
    if s.guard is None:
        leave(lo, scope, target, s)
        return True
    p = lo.read(s.guard.register)
    if p.const is not None:
        if bool(p.const) == s.guard.negated:
            return False
        leave(lo, scope, target, s)
        return True
    here = b.block
    taken = target
    if taken is None:
        taken = b.new_block("leave")
        b.block = taken
        leave(lo, scope, None, s)
        b.block = here
    rest = following
    if rest is None:
        rest = b.new_block("end")
        b.block = rest
        lo.finish_body(scope)
        b.block = here
    if s.guard.negated:
        b.branch(p, rest, taken)
    else:
        b.branch(p, taken, rest)
    here.uniform = uniform
    if target is None:
        lo.seal(taken)
    if following is None:
        lo.seal(rest)
    return True


def leave(lo: Lowering, scope: Scope, target: Block | None, s: ptx.Instruction) -> None:
    """Goes to `target`, or out of the function."""
    if target is not None:
        lo.b.jump(target)
        return
    lo.b.block.term = "exit" if s.opcode == "exit" or lo.function.is_entry else "ret"
    lo.b.block.line, lo.b.block.source = lo.b.line, lo.b.source


def lower_switch(lo: Lowering, scope: Scope, s: ptx.Instruction, following: Block | None) -> None:
    """brx.idx as a balanced tree of comparisons: needs no table of code addresses, and few cases are common."""
    b = lo.b
    names = lo.brx_targets(scope, s)
    if s.guard is not None:
        raise lo.unsupported("guarded brx")
    targets = [scope.labels[n] for n in names]
    index = lo.src(s.operands[0], "u32")

    def tree(low: int, high: int) -> None:
        if all(t is targets[low] for t in targets[low:high]):
            b.jump(targets[low])
            return
        middle = (low + high) // 2
        cond = b.icmp("LT", index, b.const(middle), False)
        left, right = b.new_block("case"), b.new_block("case")
        b.branch(cond, left, right)
        lo.start(left)
        tree(low, middle)
        lo.start(right)
        tree(middle, high)

    for t in targets:  # The tree may reach a target by several edges: seal such blocks when all exist.
        lo.defer(t)
    tree(0, len(targets))


@rule("call")
def lower_call(lo: Lowering, s: ptx.Instruction) -> None:
    """Direct calls of functions with bodies are inlined."""
    operands = list(s.operands)
    results: list[ptx.PtxOperand] = []
    if operands and isinstance(operands[0], ptx.ListOperand):
        results = list(operands[0].elements)
        operands = operands[1:]
    callee = operands.pop(0)
    arguments: list[ptx.PtxOperand] = list(operands[0].elements) if operands and isinstance(operands[0], ptx.ListOperand) else []
    if not isinstance(callee, ptx.SymbolOperand) or not isinstance(callee.symbol, ptx.Function):
        raise lo.unsupported("indirect call")
    f = callee.symbol
    if f.body is None:
        f = next((g for g in lo.module.functions if g.name == f.name and g.body is not None), f)
    if f.body is None:
        raise lo.unsupported(f"call of external function '{f.name}'")
    if f in lo.inlining:
        raise lo.unsupported("recursive call")
    inline(lo, f, arguments, results)


def inline(lo: Lowering, f: ptx.Function, arguments: list[ptx.PtxOperand], results: list[ptx.PtxOperand]) -> None:
    b = lo.b
    scope = Scope(f, lo.scopes, parent=lo.scope)
    lo.scopes += 1
    moved: list[tuple[object, Value]] = []
    for formal, actual in zip(f.params, arguments, strict=True):
        moved += bind(lo, formal, actual)
    entry, exit_ = b.new_block(f"{f.name}.call"), b.new_block(f"{f.name}.return")
    b.jump(entry)
    lo.start(entry)
    outer = lo.scope
    lo.scope = scope
    for key, v in moved:
        lo.write(key, v)
    scope.exit = exit_
    lo.inlining.append(f)
    saved = lo.instruction, b.line
    lo.body(scope)
    lo.instruction, b.line = saved
    lo.inlining.pop()
    lo.start(exit_)
    for formal, actual in zip(f.returns, results, strict=True):
        lo.scope = scope
        pairs = [(key, lo.read_slot(key, width)) for key, width in slots(lo, formal)]
        lo.scope = outer
        variable = argument_variable(lo, actual)
        for key, v in pairs:
            offset, size = key[2], key[3]
            lo.write(("slot", variable, offset, size), v)
            note_slot(lo, variable, offset, size)
    lo.scope = outer


def argument_variable(lo: Lowering, operand: ptx.PtxOperand) -> object:
    if isinstance(operand, ptx.SymbolOperand):
        return operand.symbol
    if isinstance(operand, ptx.RegOperand):
        return operand.register
    raise lo.unsupported("call argument")


def note_slot(lo: Lowering, variable: object, offset: int, size: int) -> None:
    lo.slots.setdefault(variable, {})[offset] = size


def slots(lo: Lowering, v: ptx.Variable) -> list[tuple[tuple[str, ptx.Variable, int, int], int]]:
    """The pieces in which a parameter variable has been stored: slot key and width in words."""
    return [(("slot", v, offset, size), max(1, size // 4)) for offset, size in sorted(lo.slots.get(v, {}).items())]


def bind(lo: Lowering, formal: ptx.Variable, actual: ptx.PtxOperand) -> list[tuple[object, Value]]:
    """Values of an argument under the names of the formal parameter."""
    if isinstance(actual, (ptx.IntOperand, ptx.FloatOperand)) or (isinstance(actual, ptx.RegOperand)):
        v = lo.src(actual, formal.type)
        note_slot(lo, formal, 0, formal.size)
        return [(("slot", formal, 0, formal.size), v)]
    variable = argument_variable(lo, actual)
    out: list[tuple[object, Value]] = []
    for offset, size in sorted(lo.slots.get(variable, {}).items()):
        v = lo.read_slot(("slot", variable, offset, size), max(1, size // 4))
        note_slot(lo, formal, offset, size)
        out.append((("slot", formal, offset, size), v))
    return out


@rule("trap")
def lower_trap(lo: Lowering, s: ptx.Instruction) -> None:
    lo.b.effect("BPT", [], (), "barrier", mods=("TRAP",), attr=(1,))


@rule("brkpt")
def lower_breakpoint(lo: Lowering, s: ptx.Instruction) -> None:
    lo.b.effect("BPT", [], (), "barrier", mods=("TRAP",), attr=(1,))
