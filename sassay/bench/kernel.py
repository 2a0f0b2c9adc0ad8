"""Measuring kernels: a snippet of SASS, put between the code that gives it operands and the code that stores what it left.

What a snippet finds, in every thread: R8 to R13 and UR6, UR7 hold operands, R2:R3 the address of the thread's output words, UR4:UR5 the global
descriptor; it may use R16 and up, P1 to P5, UR8 and up, UP1 to UP5, and leaves its results in R24 and up. The snippet runs `rounds` times,
so that the last round finds its code in the instruction cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sassay.cubin import KernelImage, Param, build
from sassay.cubin.assembler import assemble
from sassay.errors import SassError
from sassay.isa.target import Target
from sassay.isa.target import target as find_target
from sassay.sass.codec import decode

NAME = "measure"
WORD = 16
SAFE = 10
"""The largest stall that holds a warp for as many cycles whatever the yield flag says."""
SETTLE = 6
"""Empty instructions of `SAFE` cycles each: longer than any fixed latency."""
REGISTERS = 64


def bracket(stall: int = 1, wait: int = 0, write: int | None = None) -> str:
    """A control code: scoreboards waited for (a mask), the one taken, the stall."""
    bits = "".join(str(b) if wait >> b & 1 else "-" for b in range(6))
    return f"[B{bits}:R-:W{'-' if write is None else write}:-:S{stall:02}]"


def line(text: str, stall: int = 1, wait: int = 0, write: int | None = None) -> str:
    """One instruction as a line of assembler."""
    return f"{bracket(stall, wait, write)} {text} ;"


def settle(wait: int = 0x3F) -> list[str]:
    """Waits for all scoreboards and until no fixed-latency result is on its way."""
    return [line("NOP", SAFE, wait), *[line("NOP", SAFE)] * SETTLE]


def spaced(text: str, distance: int, write: int | None = None) -> list[str]:
    """An instruction, and empty ones behind it so that the next one issues `distance` cycles later."""
    steps = [SAFE] * (distance // SAFE) + ([distance % SAFE] if distance % SAFE else [])
    return [line(text, steps[0], write=write), *(line("NOP", step) for step in steps[1:])]


@dataclass
class Snippet:
    """Code to be measured: complete assembler lines. `setup` runs before each round's body and is settled; `outputs` registers are stored."""

    body: Sequence[str]
    setup: Sequence[str] = ()
    outputs: Sequence[int] = (24,)
    rounds: int = 3
    shared: int = 0
    once: Sequence[str] = field(default_factory=list)
    """Lines before the first round."""


def _prologue(chip: Target) -> list[str]:
    params, descriptor = chip.constants.params, chip.constants.global_descriptor
    uniform = "ULDC" if chip.has("uldc") else "LDCU"
    take = None if chip.has("uldc") else 0
    return [
        line(f"{uniform}.64 UR4, c[0x0][{descriptor:#x}]", SAFE, write=take),
        line(f"{uniform}.64 UR6, c[0x0][{params + 8:#x}]", SAFE, write=take),
        line(f"LDC.64 R2, c[0x0][{params:#x}]", 2, write=1),
        line(f"LDC.64 R8, c[0x0][{params + 8:#x}]", 2, write=1),
        line(f"LDC.64 R10, c[0x0][{params + 16:#x}]", 2, write=1),
        line(f"LDC.64 R12, c[0x0][{params + 24:#x}]", 2, write=1),
        line("S2R R0, SR_TID.X", 2, write=2),
        *settle(),
    ]


def source(chip: Target, snippet: Snippet) -> str:
    """Assembler text of a snippet's kernel."""
    lines = [f".target {chip.name}", *_prologue(chip)]
    lines += [line("IMAD R8, R0, 0x1, R8", SAFE), line(f"IMAD.WIDE.U32 R2, R0, {4 * len(snippet.outputs):#x}, R2", SAFE)]
    lines += [line(f"MOV R6, {snippet.rounds:#x}", SAFE), line("MOV R7, 0xffffffff", SAFE), *snippet.once, *settle(), ".round:"]
    lines += [*snippet.setup, *settle(), *snippet.body, *settle()]
    lines += [line("IMAD R6, R6, 0x1, R7", SAFE), line("ISETP.NE.AND P0, PT, R6, RZ, PT", SAFE), *settle(), line("@P0 BRA `(.round)", 5)]
    lines += [line(f"STG.E desc[UR4][R2.64+{4 * i:#x}], R{register}", 4) for i, register in enumerate(snippet.outputs)]
    lines += [line("EXIT", 5), ".end:", "[B------:R-:W-:Y:S00] BRA `(.end) ;"]
    return "\n".join(lines) + "\n"


def cubin(chip: str | Target, snippet: Snippet) -> bytes:
    """The snippet's kernel as a cubin: parameters are the output's address and three 64-bit operands."""
    where = find_target(chip) if isinstance(chip, str) else chip
    code = assemble(source(where, snippet), file="<snippet>")
    if len(code) % WORD:
        raise SassError("a snippet's code is not a whole number of words")
    exits = [WORD * i for i, instr in enumerate(decode(code, where)) if instr.opcode == "EXIT"]
    params = [Param(i, 8 * i, 8) for i in range(4)]
    image = KernelImage(NAME, code, REGISTERS, params, shared=snippet.shared, exits=exits)
    return build(where, [image])
