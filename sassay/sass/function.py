"""A SASS function under construction: blocks of nodes over virtual or physical registers. Passes change it in place.

Virtual registers. Each index from `model.VIRTUAL` up is one 32-bit register (one predicate, in the predicate files). A tuple of `w` registers
takes `w` consecutive indices and is entered as `tuples[file, first] = w`; an operand names a tuple by its first index, a part of it by the
part's own index. So every 32-bit part is a value of its own and the tuple is an adjacency (and alignment) constraint on them: tuples of
2 start at even registers, of 3 and 4 at multiples of four, of 8 at multiples of four (checked by the encoder's tables where more is needed).
Indices below VIRTUAL are physical and stay as they are.

No phis: the selector leaves SSA with parallel copies (MOVs) that the allocator coalesces. A register may be written more than once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sassay.isa.target import Target
from sassay.sass.model import VIRTUAL, File, Instruction


@dataclass(frozen=True, slots=True)
class MemoryFact:
    """What is known of a memory access, for ordering.

    `space`: "global", "shared", "local", "const", "param", "generic". `base` names the address base (equal bases differ by offsets alone; it is
    an SSA value's identity, or a variable's name); None when unknown. `size` in bytes. `strong` accesses (volatile, relaxed, acquire, release,
    atomic, async) keep their order among themselves; a `fence` keeps everything on its side. `readonly`: no store in this kernel aliases it.
    """

    space: str
    reads: bool
    writes: bool
    base: str | None = None
    offset: int = 0
    size: int = 0
    strong: bool = False
    fence: bool = False
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class Relocation:
    """A field of the instruction that the linker or loader fills: R_CUDA name ("R_CUDA_ABS32_LO_32"), symbol, addend."""

    kind: str
    symbol: str
    addend: int = 0


@dataclass(slots=True)
class Node:
    """An instruction in a block, with what the passes know of it beyond its text."""

    instruction: Instruction
    memory: MemoryFact | None = None
    relocation: Relocation | None = None
    line: tuple[int, int, int] | None = None
    """Source file index, line and column (.loc), for line tables."""
    source: int = -1
    """Index of the PTX statement in its function's body, or -1."""
    remat: bool = False
    """Cheap and pure: may be repeated at its uses rather than kept in a register."""


@dataclass(slots=True)
class Block:
    """A basic block. `successors` in order (branch targets, then the fall-through block); labels are unique in the function.

    A block ends with its control transfer, if any; a block without one falls through to its only successor, which is next in layout.
    """

    label: str
    nodes: list[Node] = field(default_factory=list)
    successors: list[str] = field(default_factory=list)
    loop_depth: int = 0


@dataclass(slots=True)
class Function:
    """A kernel or device function on its way to bytes. `blocks` stand in layout order; the first is the entry."""

    name: str
    target: Target
    blocks: list[Block] = field(default_factory=list)
    tuples: dict[tuple[File, int], int] = field(default_factory=dict)
    next_virtual: dict[File, int] = field(default_factory=dict)
    is_entry: bool = True
    params_size: int = 0
    """Bytes of kernel parameters in constant bank 0."""
    params: list[tuple[int, int, int]] = field(default_factory=list)
    """(offset, size, log2 alignment) of each kernel parameter."""
    frame_size: int = 0
    """Bytes of local stack frame, spills included."""
    shared_size: int = 0
    """Static shared memory of the kernel in bytes, without the reserved part."""
    barriers: int = 0
    """Number of named barriers used (highest index + 1)."""
    max_registers: int | None = None
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None
    min_ctas: int | None = None
    callees: list[str] = field(default_factory=list)
    registers_used: int = 0
    """Highest physical R index + 1; set by the allocator."""
    spill_bytes: tuple[int, int] = (0, 0)
    """Bytes of spill stores and loads, static count."""
    notes: dict[str, object] = field(default_factory=dict)

    def new(self, file: File, width: int = 1) -> int:
        """A fresh virtual register, or tuple of `width`: its first index."""
        first = self.next_virtual.get(file, VIRTUAL)
        if width > 1:
            align = 2 if width == 2 else 4
            first = (first + align - 1) // align * align
            self.tuples[file, first] = width
        self.next_virtual[file] = first + width
        return first
