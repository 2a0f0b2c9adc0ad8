"""The kernels of first light on three chips: vendor tools read our cubins, numbers are numpy's, no hazard, and a proof or the reason for none."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import oracle

import sassay
from sassay.ptx.parser import parse
from sassay.verify.prove import Witness, prove_kernel

sys.path.insert(0, str(Path(__file__).parent.parent / "kernels"))
from specs import SPECS

CHIPS = ("sm_90a", "sm_100a", "sm_120a")
KERNELS = {
    "vector_add": "vector add",
    "saxpy": "grid-stride saxpy",
    "strided_copy": "strided copy with a tail",
    "hash64": "hashing: 64-bit multiplies, rotates",
    "histogram": "global atomics",
    "block_reduce": "shared memory and shuffles",
    "row_softmax": "ex2 and division",
    "layer_norm": "two reductions, rsqrt",
    "matmul_tiled": "shared memory and bar.sync",
    "collatz": "a loop with data-dependent exit",
    "nested_branches": "divergence",
    "clamp_select": "selections",
    "dot_f64": "f64 arithmetic",
    "bit_twiddle": "popc, clz, brev, bfe, prmt, lop3",
    "conversions": "integers to floats and back",
}
OPEN = {"hash64": "chains of wide products"}
"""Kernels whose proof stays open, and why."""
everywhere = [pytest.mark.parametrize("chip", CHIPS), pytest.mark.parametrize("name", KERNELS)]


def on_all(test: object) -> object:
    for mark in everywhere:
        test = mark(test)
    return test


@cache
def compiled(name: str, chip: str) -> sassay.CompileResult:
    return sassay.compile(SPECS[name].ptx, chip, file=f"{name}.ptx")


def run(name: str, cubin: bytes) -> None:
    launch = SPECS[name].make(np.random.default_rng(17))
    result = sassay.emulate(cubin, name, launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes)
    launch.check(launch.args)
    assert not result.findings


@on_all
def test_computes_what_numpy_does(name: str, chip: str) -> None:
    run(name, compiled(name, chip).cubin)


@oracle.needs_ptxas
@on_all
def test_ptxas_code_does_so_too(name: str, chip: str) -> None:
    run(name, oracle.ptxas(SPECS[name].ptx, chip))


@on_all
def test_no_hazard(name: str, chip: str) -> None:
    assert sassay.check(compiled(name, chip).cubin) == []


@oracle.needs_tools
@on_all
def test_vendor_tools_read_it(name: str, chip: str, tmp_path: Path) -> None:
    path = tmp_path / "ours.cubin"
    path.write_bytes(compiled(name, chip).cubin)
    assert oracle.complaints(path) == []


@on_all
def test_proof(name: str, chip: str) -> None:
    result = compiled(name, chip)
    blocks = result.kernels[name].witness["blocks"]
    assert isinstance(blocks, dict)
    seconds, each = (2, 1) if name in OPEN else (300, 60)  # wall time: machines that run tests are busy
    proof = prove_kernel(parse(SPECS[name].ptx), name, result.cubin, witness=Witness(blocks=blocks), seconds=seconds, per_query=each)
    if name in OPEN:
        assert proof.verdict not in ("refuted", "suspect", "unsupported")
    else:
        assert proof.verdict == "proved" or (proof.verdict == "conditional" and proof.lemmas), proof.reason
