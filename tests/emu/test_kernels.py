"""ptxas's own cubins of the test kernels give numpy's numbers in the emulator, and the sanitizer finds nothing in them."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from support import oracle

from sassay.cubin import read
from sassay.emu import emulate, run_program
from sassay.emu.loader import load_program
from sassay.emu.program import Program
from sassay.errors import SassayError
from sassay.sass.codec import decode
from sassay.sass.model import Instruction, Target

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
import specs

CHIPS = ("sm_90a", "sm_100a", "sm_120a")


def absolute(index: int, instr: Instruction) -> Instruction:
    """nvdisasm prints BRX's displacement from the next instruction; the codec gives the place it is relative to."""
    if instr.opcode != "BRX":
        return instr
    operands = tuple(
        Target(16 * index + 16 + o.to) if isinstance(o, Target) and isinstance(o.to, int) and o.to <= 0 else o for o in instr.operands
    )
    return dataclasses.replace(instr, operands=operands)


def program(data: bytes, name: str) -> Program:
    """The program by our own decoder; by nvdisasm where the chip's tables do not hold all of it yet."""
    cubin = read(data)
    try:
        return load_program(cubin, name, decode(cubin.kernel(name).code, cubin.target))
    except SassayError:
        listed = oracle.vendor_disassemble(data)[name]
        return load_program(cubin, name, [absolute(i, instr) for i, instr in enumerate(listed)])


def check(name: str, chip: str, level: int, seed: int) -> None:
    spec = specs.SPECS[name]
    code = program(oracle.ptxas(spec.ptx, chip, f"-O{level}"), name)
    launch = spec.make(np.random.default_rng(seed))
    result = run_program(code, launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes, max_steps=2_000_000)
    launch.check(launch.args)
    assert not result.findings, [str(f) for f in result.findings]
    assert result.thread_instructions >= result.warp_instructions > 0
    assert sum(result.opcodes.values()) == result.thread_instructions


@oracle.needs("ptxas", "nvdisasm")
@pytest.mark.parametrize("name", sorted(specs.SPECS))
def test_optimised(name: str) -> None:
    check(name, "sm_90a", 3, 11)


@pytest.mark.slow
@oracle.needs("ptxas", "nvdisasm")
@pytest.mark.parametrize("level", (0, 3))
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", sorted(specs.SPECS))
def test_every_chip(name: str, chip: str, level: int) -> None:
    check(name, chip, level, 3)


@oracle.needs("ptxas")
def test_bytes_in_numbers_out() -> None:
    spec = specs.SPECS["block_reduce"]
    launch = spec.make(np.random.default_rng(0))
    emulate(oracle.ptxas(spec.ptx, "sm_90a"), "block_reduce", launch.grid, launch.block, launch.args)
    launch.check(launch.args)
