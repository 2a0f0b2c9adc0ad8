"""Functions from text, for the back end's tests: registers numbered 70000 and up are virtual; a tuple is written `.tuple R70010 2`."""

from __future__ import annotations

from sassay.isa.target import target
from sassay.sass.cfg import is_conditional
from sassay.sass.function import Block, Function, Node
from sassay.sass.model import File, Target
from sassay.sass.text import parse_instruction

FILES = {"R": File.R, "UR": File.UR, "P": File.P, "UP": File.UP, "B": File.B}


def function(text: str, chip: str = "sm_90a") -> Function:
    fn = Function("test", target(chip))
    block = Block("entry")
    fn.blocks.append(block)
    for line in text.strip().splitlines():
        line = line.split("//")[0].strip()
        if not line:
            continue
        if line.startswith(".tuple"):
            _, name, width = line.split()
            file = name.rstrip("0123456789")
            fn.tuples[FILES[file], int(name[len(file) :])] = int(width)
        elif line.endswith(":"):
            if block.nodes or len(fn.blocks) > 1:
                block = Block(line[:-1])
                fn.blocks.append(block)
            else:
                block.label = line[:-1]
        else:
            block.nodes.append(Node(parse_instruction(line)))
    for i, b in enumerate(fn.blocks):
        last = b.nodes[-1].instruction
        label = next((o.to for o in last.operands if isinstance(o, Target) and last.opcode == "BRA"), None)
        b.successors = [str(label)] if label else []
        if last.opcode not in ("BRA", "EXIT") or is_conditional(last):
            b.successors.append(fn.blocks[i + 1].label)
    fn.next_virtual = dict.fromkeys(File, 80000)
    return fn


VECTOR_ADD = """
S2R R70000, SR_TID.X
S2R R70001, SR_CTAID.X
ULDC UR70000, c[0x0][0x0]
IMAD R70002, R70001, UR70000, R70000
LDC R70003, c[0x0][0x228]
ISETP.GE.AND P70000, PT, R70002, R70003, PT
@P70000 EXIT
main:
.tuple R70010 2
.tuple R70012 2
.tuple R70014 2
.tuple R70016 2
.tuple R70018 2
.tuple R70020 2
.tuple UR70002 2
LDC.64 R70010, c[0x0][0x210]
LDC.64 R70012, c[0x0][0x218]
LDC.64 R70014, c[0x0][0x220]
IMAD.WIDE R70016, R70002, 0x4, R70010
IMAD.WIDE R70018, R70002, 0x4, R70012
IMAD.WIDE R70020, R70002, 0x4, R70014
ULDC.64 UR70002, c[0x0][0x208]
LDG.E R70022, desc[UR70002][R70016.64]
LDG.E R70023, desc[UR70002][R70018.64]
FADD R70024, R70022, R70023
STG.E desc[UR70002][R70020.64], R70024
EXIT
"""
