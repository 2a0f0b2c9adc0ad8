"""The table of single instructions: the PTX interpreter, ptxas's cubin and ours in the emulator all give the expected results."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from batch import by_cubin, by_interpreter  # noqa: E402
from cases import FAMILIES  # noqa: E402
from support.oracle import needs_ptxas, ptxas  # noqa: E402

from sassay.pipeline import compile_ptx  # noqa: E402

families = pytest.mark.parametrize("family", FAMILIES)


def test_size_of_the_table() -> None:
    cases = [case for make in FAMILIES.values() for case in make()]
    assert len({(c.text, c.inputs) for c in cases}) >= 500


@families
def test_interpreter(family: str) -> None:
    assert not by_interpreter(FAMILIES[family]())


@needs_ptxas
@families
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_vendor_cubin(family: str, level: str) -> None:
    assert not by_cubin(FAMILIES[family](), lambda text: ptxas(text, "sm_90a", level))


@families
def test_own_cubin(family: str) -> None:
    assert not by_cubin(FAMILIES[family](), lambda text: compile_ptx(text, "sm_90a").cubin)
