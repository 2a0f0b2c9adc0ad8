"""Real PTX from other compilers: our code is free of hazards, the vendor's tools read it, and it computes what ptxas's code computes."""

from __future__ import annotations

import argparse
import signal
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support import oracle

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from corpus import Runner, late

from sassay.pipeline import compile_ptx

FILES = tomllib.loads(Path(__file__).with_name("real_ptx.toml").read_text())["file"]
ROOT = oracle.corpus()
needs_corpus = pytest.mark.skipif(ROOT is None, reason="needs real PTX: set SASSAY_CORPUS")


def parameters() -> list[Any]:
    return [pytest.param(f, id=f["path"], marks=[pytest.mark.slow] if f.get("slow") else []) for f in FILES]


def test_there_are_enough() -> None:
    assert len({f["path"] for f in FILES}) >= 25
    assert {f["chip"] for f in FILES} == {"sm_90a", "sm_100a", "sm_120a"}


@needs_corpus
@oracle.needs_ptxas
@pytest.mark.parametrize("entry", parameters())
def test_computes_what_ptxas_code_does(entry: dict[str, Any]) -> None:
    assert ROOT is not None
    options = argparse.Namespace(chip=entry["chip"], tries=6, launches=1, steps=8000, seed=1, verbose=False, kernel="")
    runner, before = Runner(options), signal.signal(signal.SIGALRM, late)
    try:
        runner.file(ROOT / entry["path"])
    finally:
        signal.signal(signal.SIGALRM, before)
    figures = runner.figures
    assert figures.compiled == 1, dict(figures.refused)
    assert not figures.hazards and not figures.mismatches
    if entry.get("launched", True):
        assert figures.kernels == figures.launched > 0, dict(figures.unlaunched)


@needs_corpus
@oracle.needs_tools
@pytest.mark.parametrize("entry", parameters())
def test_vendor_tools_read_it(entry: dict[str, Any], tmp_path: Path) -> None:
    assert ROOT is not None
    path = tmp_path / "ours.cubin"
    path.write_bytes(compile_ptx((ROOT / entry["path"]).read_text(), entry["chip"]).cubin)
    assert oracle.complaints(path) == []
