"""Random programs with arbitrary control flow: the cubin does what the PTX does."""

from __future__ import annotations

import numpy as np
import pytest
from programs import program, run_both


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed: int) -> None:
    want, got = run_both(seed, "sm_90a")
    assert np.array_equal(want, got), program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_90a", "sm_120a"])
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_more_random_programs(seed: int, chip: str) -> None:
    want, got = run_both(seed, chip)
    assert np.array_equal(want, got), program(seed)
