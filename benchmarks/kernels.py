"""What becomes of tests/kernels: compiled, right in the emulator, free of hazards, and the prover's verdicts.

    python benchmarks/kernels.py [--chip sm_90a ...] [--seconds 5]
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "kernels")]
specs = importlib.import_module("specs")

import sassay  # noqa: E402
from sassay.errors import SassayError  # noqa: E402
from sassay.ptx.parser import parse  # noqa: E402
from sassay.verify.prove import Witness, prove_kernel  # noqa: E402


def one(name: str, chip: str, seconds: float, counts: Counter[str]) -> str:
    """Puts one kernel through everything; a line about it."""
    spec = specs.SPECS[name]
    try:
        result = sassay.compile(spec.ptx, chip)
    except SassayError as error:
        return f"not compiled: {str(error)[:100]}"
    counts["compiled"] += 1
    try:
        findings: int | str = len(sassay.check(result.cubin))
    except SassayError as error:
        findings = str(error)
    counts["free of hazards"] += findings == 0
    launch = spec.make(np.random.default_rng(1))
    try:
        sassay.emulate(result.cubin, name, launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes)
        launch.check(launch.args)
        outcome = "right"
    except (SassayError, AssertionError) as error:
        outcome = f"wrong: {str(error)[:80]}"
    counts["right in the emulator"] += outcome == "right"
    blocks = result.kernels[name].witness.get("blocks")
    witness = Witness(blocks=blocks) if isinstance(blocks, dict) else None
    proof = prove_kernel(parse(spec.ptx, name), name, result.cubin, witness=witness, seconds=seconds)
    counts[proof.verdict] += 1
    return f"{outcome}, hazards {findings}, {proof.verdict} in {proof.seconds:.2f} s {proof.reason[:120]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", action="append")
    parser.add_argument("--seconds", type=float, default=5.0, help="solver time for each kernel")
    options = parser.parse_args()
    for chip in options.chip or ["sm_90a", "sm_100a", "sm_120a"]:
        counts: Counter[str] = Counter()
        start = time.process_time()
        for name in specs.SPECS:
            print(f"{chip} {name:20} {one(name, chip, options.seconds, counts)}", flush=True)
        totals = ", ".join(f"{key} {value}" for key, value in counts.items())
        print(f"{chip}: {len(specs.SPECS)} kernels: {totals}; {time.process_time() - start:.1f} s CPU", flush=True)


if __name__ == "__main__":
    main()
