"""Finished code back into a function over virtual registers: every web of definitions and uses gets registers of its own."""

from __future__ import annotations

from dataclasses import replace

from sassay.isa.target import Target
from sassay.sass import cfg
from sassay.sass.effects import effects, shape, slot_register
from sassay.sass.function import Block, Function, Node
from sassay.sass.model import VIRTUAL, Control, File, Instruction, Reg
from sassay.sass.model import Target as Label
from sassay.sass.rename import rename_slots

FILES = (File.R, File.UR, File.P, File.UP)
TAIL = ("NOP",)


class Webs:
    """Union-find with the physical register of each web."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.register: list[tuple[File, int]] = []

    def new(self, register: tuple[File, int]) -> int:
        self.parent.append(len(self.parent))
        self.register.append(register)
        return len(self.parent) - 1

    def find(self, x: int) -> int:
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def join(self, a: int, b: int) -> None:
        self.parent[self.find(a)] = self.find(b)


def _plain(instr: Instruction) -> Instruction:
    operands = tuple([replace(o, reuse=False) if isinstance(o, Reg) else o for o in instr.operands])
    return Instruction(instr.opcode, instr.modifiers, operands, instr.guard, Control())


def virtualise(name: str, instructions: list[Instruction], target: Target) -> Function:
    """`instructions` are a whole kernel's; R1 stays physical."""
    end = next(i for i in range(len(instructions) - 1, -1, -1) if instructions[i].opcode not in TAIL)
    if instructions[end].opcode == "BRA" and instructions[end].operands == (Label(16 * end),):
        end -= 1
    body = [_plain(i) for i in instructions[: end + 1]]
    flow = cfg.build(body)
    webs = Webs()
    keep = {(File.R, 1)}

    def parts(access: tuple[File, int, int]) -> list[tuple[File, int]]:
        return [(access[0], i) for i in range(access[1], access[1] + access[2])]

    seen = [effects(i) for i in body]
    def_web: dict[tuple[int, tuple[File, int]], int] = {}
    for n, e in enumerate(seen):
        for a in e.defs:
            for r in parts(a):
                if r[0] in FILES and r not in keep:
                    def_web[n, r] = webs.new(r)
    entries: list[dict[tuple[File, int], set[int]]] = [{} for _ in flow.blocks]
    use_web: dict[tuple[int, tuple[File, int]], int] = {}

    def walk(b: int) -> dict[tuple[File, int], set[int]]:
        state = {r: set(s) for r, s in entries[b].items()}
        block = flow.blocks[b]
        for n in range(block.start, block.end):
            for a in seen[n].uses:
                for r in parts(a):
                    if r[0] in FILES and r not in keep:
                        if r not in state:
                            state[r] = {webs.new(r)}  # never written: any value will do
                        reach = list(state[r])
                        for other in reach[1:]:
                            webs.join(reach[0], other)
                        use_web[n, r] = reach[0]
            guarded = not body[n].guard.is_zero or body[n].guard.invert
            for a in seen[n].defs:
                for r in parts(a):
                    if (n, r) in def_web:
                        web = def_web[n, r]
                        if guarded and r in state:
                            for other in state[r]:
                                webs.join(other, web)
                        state[r] = {web}
        return state

    work = list(range(len(flow.blocks)))
    while work:
        b = work.pop(0)
        state = walk(b)
        for s in flow.blocks[b].successors:
            grown = False
            for r, reach in state.items():
                known = entries[s].setdefault(r, set())
                if not reach <= known:
                    known |= reach
                    grown = True
            if grown and s not in work:
                work.append(s)
    groups = Webs()
    group_of: dict[int, int] = {}

    def group(web: int) -> int:
        root = webs.find(web)
        if root not in group_of:
            group_of[root] = groups.new(webs.register[root])
        return group_of[root]

    widest: dict[int, list[int]] = {}
    for n, e in enumerate(seen):
        for table, accesses in ((def_web, e.defs), (use_web, e.uses)):
            for a in accesses:
                found = [group(table[n, r]) for r in parts(a) if (n, r) in table]
                for other in found[1:]:
                    groups.join(found[0], other)
    for g in range(len(groups.parent)):
        widest.setdefault(groups.find(g), []).append(groups.register[g][1])
    fn = Function(name, target)
    base: dict[int, int] = {}
    for root, indices in widest.items():
        file = groups.register[root][0]
        low, high = min(indices), max(indices)
        width = high - low + 1
        if width > 1:
            align = 2 if width == 2 and low % 2 == 0 else 4
            low = low // align * align
            width = high - low + 1
            width = width if width <= 4 else -(-width // 4) * 4
        first = fn.new(file, width)
        base[root] = first - low

    def new(table: dict[tuple[int, tuple[File, int]], int], n: int, r: Reg) -> int | None:
        key = (n, (r.file, r.index))
        return None if key not in table else r.index + base[groups.find(group(table[key]))]

    labels = {block.start * 16: f"L{b}" for b, block in enumerate(flow.blocks)}
    for b, block in enumerate(flow.blocks):
        out = Block(f"L{b}", successors=[f"L{s}" for s in block.successors])
        for n in range(block.start, block.end):
            instr = body[n]
            shaped = shape(instr)
            renames: dict[tuple[int, int], int] = {}
            for table, slots in ((use_web, shaped.uses), (def_web, shaped.defs)):
                for slot in slots:
                    reg = slot_register(instr, slot)
                    if reg is not None and not reg.is_zero and (index := new(table, n, reg)) is not None:
                        renames[slot.operand, slot.part] = index
            if not instr.guard.is_zero and (index := new(use_web, n, instr.guard)) is not None:
                renames[-1, -1] = index
            instr = rename_slots(instr, renames)
            operands = tuple([Label(labels.get(o.to, o.to), o.suffix) if isinstance(o, Label) else o for o in instr.operands])  # type: ignore[arg-type]
            out.nodes.append(Node(Instruction(instr.opcode, instr.modifiers, operands, instr.guard)))
        fn.blocks.append(out)
    for file in FILES:
        fn.next_virtual.setdefault(file, VIRTUAL)
    return fn
