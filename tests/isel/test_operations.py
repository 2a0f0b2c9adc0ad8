"""Every operation family: our cubin of a one-operation kernel, emulated, against the PTX interpreter, on edge cases and random numbers."""

from __future__ import annotations

import pytest
from cases import FAMILIES, Case
from operations import compare

from sassay.errors import SassError

CASES = [(family, case) for family, make in FAMILIES.items() for case in make()]


def check(case: Case, seed: int) -> None:
    text, result, sources = case
    try:
        differences = compare(text, result, sources, "sm_90a", seed)
    except SassError as error:
        if "no form of" in error.message or "has no instruction" in error.message:
            pytest.skip(f"encoding table: {error.message[:80]}")
        raise
    assert not differences, "\n".join(differences[:5])


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning", "ignore:divide:RuntimeWarning")
@pytest.mark.parametrize(("family", "case"), CASES, ids=[f"{family}-{case[0]}" for family, case in CASES])
def test_operation(family: str, case: Case) -> None:
    check(case, seed=len(family))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning", "ignore:divide:RuntimeWarning")
@pytest.mark.parametrize("seed", range(10, 18))
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_family_on_more_inputs(family: str, seed: int) -> None:
    for case in FAMILIES[family]():
        try:
            check(case, seed)
        except pytest.skip.Exception:
            continue
