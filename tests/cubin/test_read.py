"""Reading cubins: byte identity, typed views against cuobjdump, both ABI generations, malformed files."""

from __future__ import annotations

import random
import re
import struct

import pytest
from support import kernels, oracle
from support.mutants import mutate_bytes

from sassay.cubin import read
from sassay.cubin.elf import automatic_layout, copy_elf
from sassay.errors import CubinError, SassayError

pytestmark = oracle.needs_tools
CHIPS = ["sm_90a", "sm_100a", "sm_103a", "sm_120a"]
FLAGS = [(), ("-O0",), ("-g",), ("-lineinfo",), ("-c",)]
SOME = ["block_reduce", "constants_globals", "indirect_call"]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_bytes_survive(chip: str, flags: tuple[str, ...]) -> None:
    for name in SOME[:: 1 if chip == "sm_90a" else 2]:
        data = oracle.ptxas(kernels.ptx(name), chip, *flags)
        cubin = read(data)
        assert cubin.to_bytes() == data
        assert cubin.elf.layout is None and cubin.elf.segments is None, "the layout rules are ptxas's"
        assert cubin.target_name == chip


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
def test_bytes_survive_everywhere(chip: str) -> None:
    for name in kernels.names():
        for flags in FLAGS:
            data = oracle.ptxas(kernels.ptx(name), chip, *flags)
            assert read(data).to_bytes() == data


@pytest.mark.parametrize("chip", CHIPS[::3])
def test_views_agree_with_cuobjdump(chip: str, tmp_path: oracle.Path) -> None:
    for name in SOME:
        path = tmp_path / f"{name}.cubin"
        path.write_bytes(oracle.ptxas(kernels.ptx(name), chip))
        usage = oracle.run_tool("cuobjdump", "-res-usage", str(path)).stdout
        kernel = read(path.read_bytes()).kernel(name)
        row = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) .*CONSTANT\[0\]:(\d+)", usage)
        assert row is not None
        assert kernel.registers == int(row[1])
        assert kernel.frame == int(row[2])
        assert kernel.shared == int(row[3])
        assert kernel.param_base + kernel.param_size == int(row[4])
        assert kernel.entry and kernel.exits and len(kernel.params) == len(re.findall(r"\.param \.[\w .]+ " + name, kernels.ptx(name)))


def test_module_views() -> None:
    cubin = read(oracle.ptxas(kernels.ptx("constants_globals"), "sm_90a"))
    names = {symbol.name for symbol in cubin.symbols}
    assert {"weights", "bias", "total", "constants_globals"} <= names
    assert {fixup.symbol for fixup in cubin.relocations(".nv.constant4")} == {"bias", "total"}
    assert struct.unpack("<4I", cubin.section_data(".nv.global.init") or b"") == (10, 20, 30, 40)
    assert len(cubin.constant_bank(3)) == 64 and len(cubin.constant_bank(0, "constants_globals")) > 0x210
    functions = read(oracle.ptxas(kernels.ptx("indirect_call"), "sm_90a")).kernel().functions
    assert len(functions) == 4


def test_capsule_sections_are_carried_and_listed() -> None:
    cubin = read(oracle.ptxas(kernels.ptx("saxpy"), "sm_120a"))
    assert any("capmerc" in line for line in cubin.not_understood)


def test_older_abi() -> None:
    """OSABI 0x33, ABI 7 keeps the chip in the low byte of the flags."""
    data = bytearray(oracle.ptxas(kernels.ptx("saxpy"), "sm_90a"))
    data[7], data[8] = 0x33, 7
    struct.pack_into("<I", data, 48, 0x005A055A)
    cubin = read(bytes(data))
    assert cubin.sm == 90 and cubin.to_bytes() == data


def test_layout_moves_everything_behind_a_grown_section() -> None:
    data = oracle.ptxas(kernels.ptx("saxpy"), "sm_90a")
    cubin = read(data)
    elf = copy_elf(cubin.elf)
    text = elf.section(".text.saxpy")
    assert text is not None
    text.data += text.data[-128:]
    grown = read(elf.to_bytes())
    assert grown.kernel().code == text.data and grown.to_bytes() == elf.to_bytes()
    assert automatic_layout(elf).size == len(data) + 128


def test_malformed_files_are_errors() -> None:
    data = oracle.ptxas(kernels.ptx("saxpy"), "sm_90a")
    for bad in (b"", b"\x7fELF", data[:100], data[:-1], b"MZ" + data[2:], data[:18] + b"\x3e" + data[19:]):
        with pytest.raises(CubinError):
            read(bad)


def fuzz(count: int, seed: int) -> tuple[int, int]:
    """(read, refused) of that many mutants; anything but our own errors fails."""
    rng = random.Random(seed)
    sources = [oracle.ptxas(kernels.ptx(name), chip) for name, chip in (("constants_globals", "sm_90a"), ("saxpy", "sm_120a"), ("scan", "sm_90a"))]
    taken = refused = 0
    for _ in range(count):
        data = mutate_bytes(rng.choice(sources), rng)
        try:
            cubin = read(data)
            _ = cubin.not_understood, cubin.target_name, cubin.constant_bank(3)
            assert cubin.to_bytes() == data
            taken += 1
        except SassayError:
            refused += 1
    return taken, refused


def test_mutants() -> None:
    taken, refused = fuzz(2000, 1)
    assert taken > 100 and refused > 100


@pytest.mark.slow
def test_many_mutants() -> None:
    fuzz(20000, 2)


