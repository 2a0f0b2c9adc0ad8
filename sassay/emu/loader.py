"""From a cubin to a program that the emulator runs."""

from __future__ import annotations

import dataclasses

from sassay.cubin import Cubin, Kernel
from sassay.emu.program import Fixup, Parameter, Program, Variable
from sassay.errors import EmulationError, Location
from sassay.sass.codec import decode
from sassay.sass.model import Instruction, Target

ADDRESSES = frozenset({"R_CUDA_64", "R_CUDA_G64", "R_CUDA_FUNC_DESC_64"})
NO_LIMIT = 0xFFFFFFFF


def load_program(cubin: Cubin, kernel: str | None, instructions: list[Instruction] | None = None) -> Program:
    """The kernel's program. `instructions` stands in for decoding its code, for code that another disassembler has read."""
    found = cubin.kernel(kernel)
    if not found.entry:
        raise EmulationError(f"'{found.name}' is no kernel but a device function")
    if found.relocations:
        relocation = found.relocations[0]
        where = Location(kernel=found.name, offset=relocation.offset)
        raise EmulationError(f"the code needs a linker: {relocation.type} of '{relocation.symbol}'", where)
    listed = instructions if instructions is not None else decode(found.code, cubin.target)
    program = Program(found.name, cubin.target, [_absolute(i, instr) for i, instr in enumerate(listed)])
    program.parameters = [Parameter(p.offset, p.size) for p in found.params]
    program.shared_bytes = found.shared
    program.stack_bytes = None if found.stack == NO_LIMIT else max(found.stack, found.frame)
    program.functions = {symbol.name: symbol.value for symbol in found.functions}
    _data(cubin, found, program)
    return program


def _absolute(index: int, instr: Instruction) -> Instruction:
    """BRX prints, and the codec gives, a displacement from the next instruction; everything here counts from the start of the code."""
    if instr.opcode not in ("BRX", "BRXU"):
        return instr
    operands = tuple(
        Target(16 * index + 16 + o.to, o.suffix) if isinstance(o, Target) and isinstance(o.to, int) else o for o in instr.operands
    )
    return dataclasses.replace(instr, operands=operands)


def _data(cubin: Cubin, kernel: Kernel, program: Program) -> None:
    """Constant banks, `__device__` variables and the addresses to fill in."""
    for bank in (2, 3, 4):
        program.constants[bank] = cubin.constant_bank(bank, kernel.name)
        for name in (f".nv.constant{bank}.{kernel.name}", f".nv.constant{bank}"):
            program.fixups += [Fixup(bank, f.offset, f.symbol, f.addend) for f in cubin.relocations(name) if f.type in ADDRESSES]
    for section in (".nv.global.init", ".nv.global"):
        index = next((i for i, s in enumerate(cubin.elf.sections) if s.name == section), None)
        if index is None:
            continue
        data = cubin.section_data(section) or b""
        symbols = [s for s in cubin.symbols if s.section == index and s.size]
        for symbol in symbols:
            program.variables.append(Variable(symbol.name, data[symbol.value : symbol.value + symbol.size].ljust(symbol.size, b"\0")))
        for fixup in cubin.relocations(section):
            owner = next((s for s in symbols if s.value <= fixup.offset < s.value + s.size), None)
            if owner is not None and fixup.type in ADDRESSES:
                program.fixups.append(Fixup(owner.name, fixup.offset - owner.value, fixup.symbol, fixup.addend))
