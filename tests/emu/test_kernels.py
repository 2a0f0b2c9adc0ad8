"""ptxas's own cubins of the test kernels give numpy's numbers in the emulator, and the sanitizer finds nothing in them."""

from __future__ import annotations

import numpy as np
import pytest
from support import oracle
from support.emulation import SPECS, program

from sassay.emu import emulate, run_program

CHIPS = ("sm_90a", "sm_100a", "sm_120a")


def check(name: str, chip: str, level: int, seed: int) -> None:
    spec = SPECS[name]
    code = program(oracle.ptxas(spec.ptx, chip, f"-O{level}"), name)
    launch = spec.make(np.random.default_rng(seed))
    result = run_program(code, launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes, max_steps=2_000_000)
    launch.check(launch.args)
    kinds = {f.kind for f in result.findings}
    assert kinds == ({"shared race"} if "races" in spec.tags else set()), [str(f) for f in result.findings]
    assert result.thread_instructions >= result.warp_instructions > 0
    assert sum(result.opcodes.values()) == result.thread_instructions


@oracle.needs("ptxas", "nvdisasm")
@pytest.mark.parametrize("name", sorted(SPECS))
def test_optimised(name: str) -> None:
    check(name, "sm_90a", 3, 11)


@pytest.mark.slow
@oracle.needs("ptxas", "nvdisasm")
@pytest.mark.parametrize("level", (0, 3))
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", sorted(SPECS))
def test_every_chip(name: str, chip: str, level: int) -> None:
    check(name, chip, level, 3)


@oracle.needs("ptxas")
def test_bytes_in_numbers_out() -> None:
    spec = SPECS["block_reduce"]
    launch = spec.make(np.random.default_rng(0))
    emulate(oracle.ptxas(spec.ptx, "sm_90a"), "block_reduce", launch.grid, launch.block, launch.args)
    launch.check(launch.args)
