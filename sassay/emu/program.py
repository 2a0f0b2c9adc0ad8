"""A kernel ready to run: decoded instructions and what the launch must set up. Made from a cubin by `load_program`."""

from __future__ import annotations

from dataclasses import dataclass, field

from sassay.isa.target import Target
from sassay.sass.model import Instruction


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter: byte offset from the start of the parameters, and size in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A `__device__` variable: its bytes (initial contents; zeros where none are given)."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Fixup:
    """A 64-bit address to fill in before the launch.

    `where` is a constant bank number or the name of a variable; at `offset` stands the address of `symbol` (a variable, or a function
    in the kernel's own code: then its byte offset in the section) plus `addend`.
    """

    where: int | str
    offset: int
    symbol: str
    addend: int


@dataclass(slots=True)
class Program:
    """One kernel: `instructions[i]` stands at byte offset 16 * i. `shared_bytes` is static shared memory with the reserved part."""

    kernel: str
    target: Target
    instructions: list[Instruction]
    parameters: list[Parameter] = field(default_factory=list)
    shared_bytes: int = 0
    stack_bytes: int | None = None
    """Local memory per thread that the code asks for; None when it is unknown (recursion)."""
    constants: dict[int, bytes] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    functions: dict[str, int] = field(default_factory=dict)
    """Byte offsets of functions in the kernel's section."""
    fixups: list[Fixup] = field(default_factory=list)
    lines: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Source file and line by instruction offset, where known."""
