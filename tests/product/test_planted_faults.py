"""Faults planted in our own cubins must be refused by the hazard checker or by the prover.

`python tests/product/test_planted_faults.py [--all] [--chip sm_100a]` prints the figures.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "kernels"), str(Path(__file__).resolve().parent)]

import faults  # noqa: E402
import specs  # noqa: E402

import sassay  # noqa: E402
from sassay.errors import SassayError  # noqa: E402
from sassay.ptx.parser import parse  # noqa: E402

CHIP = "sm_90a"
QUICK = ("vector_add", "saxpy", "histogram", "block_reduce", "clamp_select", "matmul_tiled", "collatz", "dot_f64")
OUTCOMES = ("hazard", "refuted", "suspect", "open", "harmless", "missed")
MOST_SECONDS = 0.5
"""Kernels whose own proof takes longer are left out: each fault needs a proof."""


def campaign(names: list[str], count: int, seed: int, chip: str = CHIP) -> list[faults.Fault]:
    """`count` faults, kinds and kernels in turn, in kernels that are free of hazards and proved before."""
    rng = np.random.default_rng(seed)
    subjects = []
    for name in names:
        text = specs.SPECS[name].ptx
        try:
            result = sassay.compile(text, chip)
        except SassayError:
            continue
        module = parse(text, name)
        if sassay.check(result.cubin) == []:
            first = faults.proof(module, name, result.cubin, result, MOST_SECONDS)
            if first.verdict == "proved" and first.seconds < MOST_SECONDS:
                subjects.append((name, module, result, specs.SPECS[name].make(np.random.default_rng(1))))
    assert subjects
    makers = {(name, kind): faults.plant(name, result.cubin, kind, rng) for name, _, result, _ in subjects for kind in faults.KINDS}
    done: list[faults.Fault] = []
    turn = 0
    while len(done) < count:
        kind = faults.KINDS[turn % len(faults.KINDS)]
        name, module, result, launch = subjects[(turn // len(faults.KINDS)) % len(subjects)]
        fault = next(makers[name, kind], None)
        if fault is not None:
            done.append(faults.judge(fault, module, result, launch))
        turn += 1
    return done


def table(done: list[faults.Fault]) -> str:
    """Outcomes by kind."""
    lines = [f"{'kind':10} {'planted':>8}" + "".join(f"{outcome:>11}" for outcome in OUTCOMES)]
    for kind in (*faults.KINDS, "all"):
        counts = Counter(f.outcome for f in done if kind in (f.kind, "all"))
        lines.append(f"{kind:10} {sum(counts.values()):8}" + "".join(f"{counts[outcome]:11}" for outcome in OUTCOMES))
    lines.append(f"refused: {refused(done):.1%} of those that do harm; suspect and open are refused without a launch that shows the harm")
    return "\n".join(lines + [str(f) for f in done if f.outcome in ("missed", "open", "harmless")])


def refused(done: list[faults.Fault]) -> float:
    """Share refused of the faults that do harm."""
    harmful = [f for f in done if f.outcome != "harmless"]
    return sum(f.outcome != "missed" for f in harmful) / len(harmful)


def test_a_sample_of_planted_faults_is_refused() -> None:
    done = campaign(list(QUICK), 30, seed=11)
    assert refused(done) >= 0.9, table(done)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a", "sm_120a"])
def test_planted_faults_are_refused(chip: str) -> None:
    done = campaign(list(specs.SPECS), 200, seed=12, chip=chip)
    assert refused(done) >= 0.95, table(done)


if __name__ == "__main__":
    everything = "--all" in sys.argv
    where = sys.argv[sys.argv.index("--chip") + 1] if "--chip" in sys.argv else CHIP
    print(table(campaign(list(specs.SPECS) if everything else list(QUICK), 200 if everything else 30, 12, where)))
