"""The harness measures the emulator's timing mode, whose figures are known: it must find exactly those."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import oracle

from sassay.bench import measure, suites
from sassay.bench.kernel import Snippet, cubin, line
from sassay.bench.probes import Pair, pairs
from sassay.cli import cli
from sassay.errors import SassError
from sassay.isa.target import target
from sassay.isa.timing import model
from sassay.isa.timing.model import TimingModel
from sassay.runtime import open_device
from sassay.runtime.emulated import Emulator
from sassay.verify.hazards import check

CHIPS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")
TIMED = open_device("emulator:timing")


def some(chip: str, every: int) -> list[Pair]:
    return list(pairs(target(chip)))[::every]


@pytest.mark.parametrize("pair", [p for chip in CHIPS for p in some(chip, 9)], ids=lambda p: f"{p.chip.name} {p}")
def test_a_least_distance_is_the_tables_figure(pair: Pair) -> None:
    answer = measure.least_distance(TIMED, pair)
    assert answer.value == pair.figure(), answer.points


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
def test_all_least_distances(chip: str) -> None:
    results = suites.run(TIMED, target(chip), ["stalls"])
    assert len(results["answers"]) > 140
    assert all(answer["value"] is not None for answer in results["answers"])
    assert suites.differences(results) == []


def test_another_figure_is_found_where_the_device_has_one() -> None:
    """The harness measures the device and not the tables: a device with a slower multiplier shows."""
    slow = TimingModel("sm_90a")
    slow._tables["raw"]["R"]["fma"]["alu", ""] = (9, 9)
    pair = next(p for p in pairs(target("sm_90a")) if (p.producer.name, p.consumer.name) == ("IMAD", "LOP3"))
    assert measure.least_distance(Emulator(timing=slow), pair).value == 9 != pair.figure()


@pytest.mark.parametrize("chip", CHIPS)
def test_chains_show_the_stall(chip: str) -> None:
    results = suites.run(TIMED, target(chip), ["chains"])
    assert suites.differences(results) == []
    assert all(answer["r2"] == 1 for answer in results["answers"])


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", ["scoreboards", "throughput"])
def test_other_suites_run(chip: str, name: str) -> None:
    questions = list(suites.SUITES[name](TIMED, target(chip)))
    answers = [question() for question in questions[::4]]
    assert answers and all(answer.value is not None and answer.value >= 1 for answer in answers)


@pytest.mark.parametrize("chip", CHIPS)
def test_kernels_are_clean_and_readable(chip: str, tmp_path: Path) -> None:
    made = cubin(chip, Snippet([line("MOV R24, R8", 10)]))
    assert check(made) == []
    path = tmp_path / "k.cubin"
    path.write_bytes(made)
    if oracle.tool("cuobjdump") is not None:
        assert oracle.complaints(path) == []


def test_a_bad_snippet_is_an_error() -> None:
    with pytest.raises(SassError):
        cubin("sm_90a", Snippet([line("FROB R24, R8")]))


def test_rows_for_the_tables_read_back() -> None:
    answers = [measure.least_distance(TIMED, pair).to_dict() for pair in some("sm_90a", 25)]
    rows = suites.table_rows({"answers": answers})
    assert any(row.startswith("[raw.") for row in rows) and any("=" in row for row in rows)
    assert model("sm_90a").chip == "sm_90a"


def test_command_line(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    done = CliRunner().invoke(cli, ["bench", "chains", "--chip", "sm_90a", "--device", "emulator:timing", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "8 answers; 8 of the 8 that the tables know are theirs" in done.output
    results = json.loads(out.read_text())
    assert results["device"]["name"] == "emulator" and results["chip"] == "sm_90a"
    assert "throughput" in CliRunner().invoke(cli, ["bench", "--list"]).output
    assert CliRunner().invoke(cli, ["bench", "chain", "--device", "emulator"]).exit_code == 2
