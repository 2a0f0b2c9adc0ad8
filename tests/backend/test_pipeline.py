"""PTX to cubin and back through the emulator, in every mode: the numbers that numpy gives, and no finding of the hazard checker."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from support import oracle

from sassay import cubin
from sassay.emu import emulate
from sassay.errors import UnsupportedError
from sassay.pipeline import CompileOptions, compile_ptx
from sassay.sass import codec
from sassay.verify.hazards import check_instructions

sys.path.insert(0, str(Path(__file__).parent.parent / "kernels"))
from specs import SPECS

NAMES = (
    "vector_add", "saxpy", "strided_copy", "hash64", "block_reduce", "row_softmax", "layer_norm", "matmul_tiled", "nested_branches", "collatz",
    "clamp_select", "dot_f64", "conversions", "histogram", "scan", "transpose", "local_array", "cp_async", "mma_f16", "switch_table", "spin_lock",
)  # fmt: skip
MODES = {
    "fast": CompileOptions(),
    "level 0": CompileOptions(level=0),
    "serial": CompileOptions(serial=True),
    "spilled": CompileOptions(force_spill=True),
    "24 registers": CompileOptions(max_registers=24),
}


def launch(name: str, data: bytes) -> None:
    made = SPECS[name].make(np.random.default_rng(5))
    emulate(data, name, made.grid, made.block, made.args, shared_bytes=made.shared_bytes)
    made.check(made.args)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_kernels_compute_what_numpy_does(name: str, mode: str) -> None:
    result = compile_ptx(SPECS[name].ptx, "sm_90a", MODES[mode])
    launch(name, result.cubin)
    kernel = cubin.read(result.cubin).kernels[name]
    instructions = codec.decode(kernel.code, result.target)
    assert [f for f in check_instructions(instructions, result.target, kernel=name) if f.severity == "error"] == []
    if mode == "24 registers":
        assert kernel.registers <= 24
    if mode == "spilled":
        assert result.kernels[name].spill_bytes[0] > 0


def test_equal_input_gives_equal_bytes() -> None:
    one, two = (compile_ptx(SPECS["row_softmax"].ptx, "sm_90a").cubin for _ in range(2))
    assert one == two


def test_reports_say_what_was_made() -> None:
    result = compile_ptx(SPECS["vector_add"].ptx, "sm_90a")
    report = result.kernels["vector_add"]
    assert report.instructions > 10 and report.registers >= 8 and report.spill_bytes == (0, 0)
    assert {"isel", "schedule", "allocate", "finish", "encode"} <= set(report.seconds)
    assert report.witness["blocks"]


def test_dumps_come_after_the_named_passes() -> None:
    seen: list[str] = []
    compile_ptx(SPECS["vector_add"].ptx, "sm_90a", CompileOptions(dump_after=frozenset({"isel", "finish"}), dump=seen.append))
    assert [s.splitlines()[0] for s in seen] == ["// after isel", "// after finish"]
    assert "LDG.E" in seen[1]


@oracle.needs_tools
def test_the_vendor_reads_our_cubins() -> None:
    data = compile_ptx(SPECS["matmul_tiled"].ptx, "sm_90a").cubin
    listing = oracle.vendor_disassemble(data)["matmul_tiled"]
    ours = codec.decode(cubin.read(data).kernels["matmul_tiled"].code, compile_ptx(SPECS["matmul_tiled"].ptx, "sm_90a").target)
    assert [(i.mnemonic, i.operands, i.guard, i.control) for i in listing] == [(i.mnemonic, i.operands, i.guard, i.control) for i in ours]


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        compile_ptx(SPECS["vector_add"].ptx, "sm_75")
