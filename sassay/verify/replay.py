"""Replay of a suspected miscompile: the same launch through the PTX interpreter and, as SASS, through the emulator.

Arguments are made from the parameter list: 64-bit parameters are device buffers of random content, others random numbers of all sizes, first with
the values of the counterexample where it names a parameter. A difference in any buffer is a miscompile shown; none is no proof of anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassay.emu import emulate
from sassay.emu.ptx import emulate_ptx
from sassay.errors import SassayError
from sassay.ptx.ast import AddressOperand, Function, Instruction, Module, Register, Variable
from sassay.verify.liveness import registers_in
from sassay.verify.ptx_side import parameter_offsets
from sassay.verify.terms import Term

BUFFER_BYTES = 1 << 14
TRIES = 8
STEPS = 50_000
"""Instructions that a replayed launch may issue: enough for 32 threads of a small kernel, few enough that a hang ends soon."""


@dataclass(slots=True)
class Difference:
    """A launch on which the two sides differ: arguments before it, and the first differing 32-bit word of a buffer."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: list[Any] = field(default_factory=list)
    parameter: str = ""
    index: int = 0
    expected: int = 0
    got: int = 0

    def __str__(self) -> str:
        return f"buffer '{self.parameter}', word {self.index}: PTX gives {self.expected:#x}, the cubin {self.got:#x}"


def replay(module: Module, function: Function, cubin: bytes, witness: dict[Term, int] | None) -> Difference | None:
    """The first launch found on which PTX and cubin differ, or None after `TRIES` launches that agree or cannot run."""
    block = _block(function)
    pointers = _pointers(function)
    for attempt in range(TRIES):
        rng = np.random.default_rng(attempt)
        arguments = [_argument(p, offset, p.name in pointers, rng, witness if attempt < 2 else None) for p, offset in parameter_offsets(function)]
        difference = _compare(module, function, cubin, block, arguments)
        if difference is not None:
            return difference
    return None


def _block(function: Function) -> tuple[int, int, int]:
    wanted = function.directives.get("reqntid")
    if wanted:
        x, y, z = (*wanted, 1, 1)[:3]
        return x, y, z
    return 32, 1, 1


def _pointers(function: Function) -> set[str]:
    """Parameters whose value reaches an address or a cvta, by copies and additions."""
    origin: dict[Register, set[str]] = {}
    found = {p.name for p in function.params if p.pointer_space}
    body = [s for s in function.body or [] if isinstance(s, Instruction)]
    for _ in range(3):
        for instruction in body:
            if instruction.opcode in ("ld", "ldu") and "param" in instruction.modifiers:
                where = instruction.operands[1]
                if isinstance(where, AddressOperand) and isinstance(where.base, Variable):
                    for register in registers_in(instruction.operands[0]):
                        origin.setdefault(register, set()).add(where.base.name)
                continue
            for operand in instruction.operands:
                if isinstance(operand, AddressOperand) and isinstance(operand.base, Register):
                    found |= origin.get(operand.base, set())
            if instruction.opcode in ("mov", "add", "sub", "cvta", "mad", "selp") and instruction.operands:
                sources = {name for o in instruction.operands[1:] for r in registers_in(o) for name in origin.get(r, set())}
                for register in registers_in(instruction.operands[0]):
                    origin.setdefault(register, set()).update(sources)
                if instruction.opcode == "cvta":
                    found |= sources
    return found


def _argument(parameter: Variable, offset: int, pointer: bool, rng: np.random.Generator, witness: dict[Term, int] | None) -> Any:
    if pointer and parameter.size == 8:
        return _interesting(rng, BUFFER_BYTES // 4)
    if parameter.size not in (1, 2, 4, 8):
        raise SassayError(f"no argument can be made for parameter '{parameter.name}' of {parameter.size} bytes")
    words = {str(t.data): v for t, v in (witness or {}).items() if t.op == "var"}
    halves = [words.get(f"param+{(offset & ~3) + 4 * i:#x}", int(_interesting(rng, 1)[0])) for i in range(2)]
    value = halves[0] | halves[1] << 32
    value = (value >> (8 * (offset & 3))) & ((1 << (8 * parameter.size)) - 1)
    if parameter.type == "f32":
        return np.array([value], np.uint32).view(np.float32)[0]
    if parameter.type == "f64":
        return np.array([value], np.uint64).view(np.float64)[0]
    return {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[parameter.size](value)


def _interesting(rng: np.random.Generator, count: int) -> NDArray[np.uint32]:
    """Words of all sizes, with extreme ones among them."""
    words = rng.integers(0, 1 << 32, count, dtype=np.uint64)
    kind = rng.integers(0, 5, count)
    words = np.where(kind == 0, words & np.uint64(0xFF), words)
    words = np.where(kind == 1, words | np.uint64(0xFFFF8000), words)
    words = np.where(kind == 2, np.uint64(1) << (words & np.uint64(31)), words)
    return words.astype(np.uint32)


def _compare(
    module: Module, function: Function, cubin: bytes, block: tuple[int, int, int], arguments: list[Any]
) -> Difference | None:
    sides: list[list[Any]] = []
    for run in range(2):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        try:
            if run == 0:
                emulate_ptx(module, function.name, (1, 1, 1), block, copies, max_steps=STEPS)
            else:
                emulate(cubin, function.name, (1, 1, 1), block, copies, sanitize=False, max_steps=STEPS)
        except SassayError:
            return None
        sides.append(copies)
    for parameter, expected, got in zip(function.params, *sides, strict=True):
        if isinstance(expected, np.ndarray):
            different = np.flatnonzero(expected != got)
            if different.size:
                at = int(different[0])
                return Difference((1, 1, 1), block, arguments, parameter.name, at, int(expected[at]), int(got[at]))
    return None
