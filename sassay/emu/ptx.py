"""A PTX interpreter: runs an entry function's grid over the PTX semantics, CTA by CTA, all of a CTA's lanes at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sassay.emu.memory import Buffer, GlobalMemory
from sassay.emu.ptx_access import Array
from sassay.emu.ptx_cta import Cta, Dim, Program, PtxResult, Step
from sassay.emu.ptx_layout import Layout, lay_out
from sassay.errors import EmulationError, Location, SassayError, UnsupportedError
from sassay.isa.semantics.numpy_algebra import NUMPY, quiet
from sassay.ptx.ast import Function, Instruction, Label, LabelOperand, Module, Variable
from sassay.ptx.semantics import compile_instruction
from sassay.ptx.semantics.events import event_of

__all__ = ["PtxResult", "emulate_ptx"]

FUNCTION_BASE = 0x7F00_0000_0000
"""Addresses of functions start here, 16 bytes apart: the interpreter's own choice."""


def emulate_ptx(
    module: Module, kernel: str, grid: Dim, block: Dim, args: Sequence[Any], *, shared_bytes: int = 0, max_steps: int = 50_000_000
) -> PtxResult:
    """Run an entry of `module`. `args` as for `sassay.emulate`: arrays are device buffers (changed in place), scalars are by value.

    `max_steps` bounds the instructions issued to groups of lanes. EmulationError for bad accesses, deadlocks and traps; UnsupportedError names an
    instruction without semantics when one is reached.
    """
    function = next((f for f in module.functions if f.name == kernel and f.is_entry and f.body is not None), None)
    if function is None:
        raise EmulationError(f"no entry '{kernel}' in the PTX")
    with quiet():
        return _Launch(module, function, grid, block, args, shared_bytes, max_steps).run()


class _Launch:
    """Memory, parameters and program of one launch."""

    def __init__(
        self, module: Module, function: Function, grid: Dim, block: Dim, args: Sequence[Any], shared_bytes: int, max_steps: int
    ) -> None:
        self.function = function
        self.memory = GlobalMemory()
        self.layout: Layout = lay_out(module, function, shared_bytes)
        self.buffers: list[tuple[Buffer, Array]] = []
        parameters = self._parameters(args)
        self.variables = {v: self.memory.allocate(v.name, max(v.size, 1)) for v in self.layout.globals}
        self.functions = {f: FUNCTION_BASE + 16 * i for i, f in enumerate(module.functions) if not f.is_entry}
        self.memory.commit()
        for buffer, array in self.buffers:
            self.memory.write(buffer, np.ascontiguousarray(array).view(np.uint8).reshape(-1).tobytes())
        self._initialise()
        self.program = Program(grid, block, self.memory, self.layout, parameters, max_steps)
        self.program.addresses = {v: b.address for v, b in self.variables.items()} | self.functions
        self._resolve(module)

    def run(self) -> PtxResult:
        grid = self.program.grid
        for z in range(grid[2]):
            for y in range(grid[1]):
                for x in range(grid[0]):
                    Cta(self.program, (x, y, z)).run()
        for buffer, array in self.buffers:
            array[...] = np.frombuffer(self.memory.read(buffer), array.dtype)[: array.size].reshape(array.shape)
        return self.program.result

    def _parameters(self, args: Sequence[Any]) -> bytes:
        if len(args) != len(self.function.params):
            raise EmulationError(f"'{self.function.name}' takes {len(self.function.params)} arguments, not {len(args)}")
        data = bytearray(self.layout.parameter_bytes)
        for variable, value in zip(self.function.params, args, strict=True):
            offset = self.layout.parameters[variable]
            if isinstance(value, np.ndarray) and value.ndim:
                buffer = self.memory.allocate(variable.name, value.nbytes)
                self.buffers.append((buffer, value))
                raw = buffer.address.to_bytes(8, "little")
            else:
                raw = _scalar(variable, value)
            data[offset : offset + len(raw)] = raw
        return bytes(data)

    def _initialise(self) -> None:
        symbols: dict[str, int] = {v.name: b.address for v, b in self.variables.items()} | {f.name: a for f, a in self.functions.items()}
        for v, buffer in self.variables.items():
            if v.init is None:
                continue
            image = bytearray(v.init)
            for offset, symbol, addend, kind in v.relocations:
                if symbol not in symbols or kind.startswith("mask"):
                    raise UnsupportedError(f"'{symbol}' in the initial value of '{v.name}'", v.location)
                image[offset : offset + 8] = (symbols[symbol] + addend).to_bytes(8, "little")
            self.memory.write(buffer, bytes(image))

    def _resolve(self, module: Module) -> None:
        """Lay all functions' instructions one after the other, the entry's first."""
        program = self.program
        program.functions = {a: f for f, a in self.functions.items()}
        for function in [self.function, *(f for f in module.functions if not f.is_entry and f.body is not None)]:
            program.entries[function] = len(program.steps)
            labels = self._steps(function)
            for step in program.steps[program.entries[function] :]:
                operand = step.instruction.operands[-1] if step.instruction.opcode in ("bra", "brx") else None
                if isinstance(operand, LabelOperand):
                    table = function.branch_targets.get(operand.name, ()) if step.instruction.opcode == "brx" else (operand.name,)
                    step.targets = [labels[n] for n in table]
            program.steps.append(Step(_RETURN, event_of(_RETURN), None, function))

    def _steps(self, function: Function) -> dict[str, int]:
        labels: dict[str, int] = {}
        for statement in function.body or ():
            if isinstance(statement, Label):
                labels[statement.name] = len(self.program.steps)
            elif isinstance(statement, Instruction):
                step = Step(statement, None, None, function)
                try:
                    step.event = event_of(statement)
                    step.compiled = compile_instruction(statement, NUMPY) if step.event is None else None
                except SassayError as error:
                    step.error = error
                self.program.steps.append(step)
        return labels


_RETURN = Instruction("ret", (), (), None, Location(), "ret")
"""The return at a body's end."""


def _scalar(variable: Variable, value: Any) -> bytes:
    kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16}.get(variable.type)
    if isinstance(value, bytes):
        return value
    if kind is not None:
        return np.array([value], kind).tobytes()
    if isinstance(value, float | np.floating):
        return np.array([value], np.float32 if variable.size == 4 else np.float64).tobytes()
    return (int(value) & ((1 << (8 * variable.size)) - 1)).to_bytes(variable.size, "little")
