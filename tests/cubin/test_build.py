"""Cubins that we build: NVIDIA's tools read them, and so do we."""

from __future__ import annotations

import pytest
from support import kernels, oracle

from sassay.cubin import Fixup, KernelImage, ModuleImage, Param, Variable, build, read
from sassay.cubin.lines import LineRow
from sassay.errors import CubinError
from sassay.isa.target import TARGETS, target

pytestmark = oracle.needs_tools


def image(name: str, chip: str) -> KernelImage:
    kernel = read(oracle.ptxas(kernels.ptx(name), chip)).kernel()
    return KernelImage(name, kernel.code, kernel.registers, kernel.params, shared=max(0, kernel.shared - 1024), frame=kernel.frame,
                       barriers=kernel.barriers, exits=kernel.exits, lines=[LineRow(0, 1, 3), LineRow(32, 1, 9)])  # fmt: skip


MODULE = ModuleImage(
    [
        Variable("table", 16, 8, bytes(16), relocations=[Fixup(8, "R_CUDA_64", "zeros")]),
        Variable("zeros", 100, 16),
        Variable("limits", 12, 4, b"abcdefghijkl", constant=True),
    ],
    ["table", "zeros"], ["vprintf"], ["/src/kernel.cu"],
)  # fmt: skip


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a", "sm_103a", "sm_120a"])
def test_tools_accept_it(chip: str, tmp_path: oracle.Path) -> None:
    data = build(target(chip), [image("block_reduce", chip), image("saxpy", chip)], MODULE, version="0.1.0")
    path = tmp_path / "built.cubin"
    path.write_bytes(data)
    for tool, *flags in (["nvdisasm"], ["nvdisasm", "-g"], ["cuobjdump", "-elf"], ["cuobjdump", "-sass"], ["cuobjdump", "-res-usage"]):
        done = oracle.run_tool(tool, *flags, str(path))
        assert done.returncode == 0 and not done.stderr, (tool, flags, done.stderr)
    listing = oracle.run_tool("cuobjdump", "-elf", str(path)).stdout
    assert "Tool Name: sassay" in listing and f"sm={chip[3:]}, toolkit=13.5" in listing and "R_CUDA_64" in listing
    assert "SHARED:1152" in oracle.run_tool("cuobjdump", "-res-usage", str(path)).stdout
    assert "kernel.cu" in oracle.run_tool("nvdisasm", "-g", str(path)).stdout


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_target_reads_back(name: str) -> None:
    chip = target(name)
    kernel = KernelImage("k", bytes(32), 24, [Param(0, 0, 8), Param(1, 8, 4)], shared=100, frame=16, barriers=2, exits=[16], cluster=(2, 1, 1))
    data = build(chip, [kernel])
    cubin = read(data)
    back = cubin.kernel("k")
    assert cubin.to_bytes() == data == build(chip, [kernel])
    assert cubin.target_name == name.replace("f", "")
    assert (back.code, back.registers, back.shared, back.frame, back.barriers) == (bytes(32), 24, 1024 + 112, 16, 2)
    assert back.params == (Param(0, 0, 8), Param(1, 8, 4)) and back.param_base == chip.constants.params
    assert back.exits == (16,) and back.cluster == (2, 1, 1)


def test_same_headers_as_ptxas() -> None:
    """ELF flags and .nv.compat are byte for byte those of ptxas for each target it knows."""
    source = kernels.ptx("saxpy")
    for name in TARGETS:
        theirs, ours = read(oracle.ptxas(source, name)), read(build(target(name), [KernelImage("k", bytes(16), 8)]))
        assert ours.elf.flags == theirs.elf.flags, name
        assert ours.section_data(".nv.compat") == theirs.section_data(".nv.compat"), name
        assert ours.section_data(".note.nv.cuinfo")[:24] == theirs.section_data(".note.nv.cuinfo")[:24], name  # type: ignore[index]


def test_large_parameters_use_the_wide_form() -> None:
    data = build(target("sm_90a"), [KernelImage("k", bytes(16), 8, [Param(0, 0, 8), Param(1, 16, 8000), Param(2, 8016, 8, 4, 4)])])
    assert read(data).kernel().params[1:] == (Param(1, 16, 8000), Param(2, 8016, 8, 4, 4))


@pytest.mark.parametrize(
    "kernel",
    [
        KernelImage("k", b"123", 8),
        KernelImage("k", bytes(16), 300),
        KernelImage("k", bytes(16), 8, exits=[32]),
        KernelImage("k", bytes(16), 8, relocations=[Fixup(0, "R_CUDA_64", "nobody")]),
        KernelImage("k", bytes(16), 8, [Param(0, 0, 70000)]),
        KernelImage("k", bytes(16), 8, functions=[("k", 0, 16)]),
    ],
)
def test_what_does_not_fit_is_an_error(kernel: KernelImage) -> None:
    with pytest.raises(CubinError):
        build(target("sm_90a"), [kernel])
