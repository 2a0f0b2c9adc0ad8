"""The table of single instructions: the PTX interpreter, ptxas's cubin and ours in the emulator all give the expected results."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from batch import by_cubin, by_interpreter
from instruction_cases import FAMILIES, OWN_REFUSES, Case, own_cases, vendor_cases
from support.oracle import needs_ptxas, ptxas

from sassay.errors import UnsupportedError
from sassay.pipeline import CompileOptions, compile_ptx

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
    assert not by_cubin(vendor_cases(FAMILIES[family]()), lambda text: ptxas(text, "sm_90a", level))


@needs_ptxas
def test_known_vendor_deviations_still_deviate() -> None:
    cases = FAMILIES["bitfields"]()
    odd = [c for c in cases if c not in vendor_cases(cases)]
    assert len(odd) == 3
    assert len(by_cubin(odd, lambda text: ptxas(text, "sm_90a", "-O3"))) == 3


@families
@pytest.mark.parametrize("options", [CompileOptions(), CompileOptions(level=0), CompileOptions(force_spill=True)], ids=["O3", "O0", "spill"])
def test_own_cubin(family: str, options: CompileOptions) -> None:
    assert not by_cubin(own_cases(FAMILIES[family]()), lambda text: compile_ptx(text, "sm_90a", options).cubin)


@pytest.mark.parametrize("name", sorted(OWN_REFUSES))
def test_refusals_name_the_instruction(name: str) -> None:
    t = name.split(".")[-1]
    text = f"{name} %d, %a, %b;" if name.startswith("div") else f"{name} %d, %a;"
    case = Case(text, t, (t, t), (1, 1), 0, "")
    with pytest.raises(UnsupportedError, match=name):
        by_cubin([case], lambda source: compile_ptx(source, "sm_90a").cubin)


def test_a_wrong_expectation_is_found() -> None:
    case = FAMILIES["integer"]()[0]
    assert len(by_interpreter([case, replace(case, expected=12345)])) == 1
