"""Random PTX programs: the interpreter, ptxas's cubins and ours agree. The long sweeps are slow; `fuzz.py` runs any range of seeds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fuzz import ENGINES, check, minimise, run
from generate import Block, program
from miscompiles import MISCOMPILED
from support.oracle import needs_ptxas

KINDS = {"int": ("int",), "float": ("int", "float"), "memory": ("int", "memory"), "all": ("int", "float", "memory")}
OWN = [name for name in ENGINES if name.startswith("own")]
VENDOR = [name for name in ENGINES if name.startswith("ptxas")]


@pytest.mark.parametrize("kind", KINDS)
def test_own_cubins(kind: str) -> None:
    assert not run(range(8), KINDS[kind], "sm_90a", OWN)


@needs_ptxas
@pytest.mark.parametrize("kind", KINDS)
def test_vendor_cubins(kind: str) -> None:
    assert not run(range(12), KINDS[kind], "sm_90a", VENDOR)


@pytest.mark.parametrize("name", MISCOMPILED)
def test_programs_that_ptxas_miscompiles(name: str) -> None:
    seed, statements = MISCOMPILED[name]
    assert all(not check(statements, engine, "sm_90a", seed) for engine in OWN)


@needs_ptxas
@pytest.mark.parametrize("name", MISCOMPILED)
def test_ptxas_still_miscompiles(name: str) -> None:
    seed, statements = MISCOMPILED[name]
    assert all(check(statements, engine, "sm_90a", seed) for engine in VENDOR)


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", range(10_000, 10_500, 100))
def test_sweep(kind: str, chip: str, start: int) -> None:
    assert not run(range(start, start + 100), KINDS[kind], chip, list(ENGINES))


def test_minimising_keeps_only_what_matters() -> None:
    statements = [*program(5, KINDS["int"]), Block("if", 0, False, ["mov.b32 %r0, %r1;", "mov.b32 %r2, 77;"])]

    def fails(candidate: list[object]) -> bool:
        return "77" in str(candidate)

    assert minimise(statements, fails) == ["mov.b32 %r2, 77;"]


def test_a_wrong_engine_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ENGINES["own-O3"]
    monkeypatch.setitem(ENGINES, "broken", lambda source, chip: right(source.replace("add.u32 %r0", "sub.u32 %r0"), chip))
    assert check(["add.u32 %r0, %r1, %r2;"], "broken", "sm_90a", 0).startswith("%r0")
