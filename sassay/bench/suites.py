"""Suites of measurements, and their results as data, as tables' rows and as pictures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from sassay.bench import measure
from sassay.bench.kernel import SAFE, line
from sassay.bench.measure import Answer
from sassay.bench.probes import pairs
from sassay.errors import SassayError
from sassay.isa.target import Target
from sassay.isa.timing import model
from sassay.runtime import Device
from sassay.sass.text import parse_instruction

Measurement = Callable[[], Answer]
CHAINS = (
    "LOP3.LUT R16, R16, R10, RZ, 0x3c, !PT", "IMAD R16, R16, R10, R11", "FFMA R16, R16, R10, R11", "FADD R16, R16, R10", "MOV R16, R16",
    "HFMA2 R16, R16, R10, R11", "SHF.L.U32 R16, R16, 0x1, R16", "IMAD.HI.U32 R16, R16, R10, RZ",
)  # fmt: skip
VARIABLE = ("MUFU.RCP R16, R16", "MUFU.EX2 R16, R16", "SHFL.BFLY PT, R16, R16, 0x1, 0x1f", "POPC R16, R16", "I2F.U32.RP R16, R16")
STREAMS = {
    "FFMA": ["FFMA R{}, R8, R10, R11"], "IMAD": ["IMAD R{}, R8, R10, R11"], "LOP3": ["LOP3.LUT R{}, R8, R10, R11, 0x96, !PT"],
    "FFMA and LOP3": ["FFMA R{}, R8, R10, R11", "LOP3.LUT R{}, R8, R10, R11, 0x96, !PT"], "HFMA2": ["HFMA2 R{}, R8, R10, R11"],
    "one register bank": ["FFMA R{}, R8, R10, R12"], "one bank, reuse": ["FFMA R{}, R8.reuse, R10.reuse, R12"],
}  # fmt: skip


def stalls(device: Device, chip: Target) -> Iterator[Measurement]:
    """The least safe distance of every pair, by fault injection."""
    for pair in pairs(chip):
        yield lambda pair=pair: measure.least_distance(device, pair)  # type: ignore[misc]


def chains(device: Device, chip: Target) -> Iterator[Measurement]:
    """Chains of fixed latency at the stall that the tables call safe: the clock must agree."""
    tables = model(chip)
    for text in CHAINS:
        cls = tables.classify(parse_instruction(text))
        stall = tables.cell("raw", cls.name, cls.name, 0, "operand")[0]

        def one(text: str = text, stall: int = stall) -> Answer:
            answer = measure.chain(device, chip, text, stall, setup=[line("MOV R16, R8", SAFE)])
            answer.about = {"kind": "chain", "model": stall}
            return answer

        yield one


def scoreboards(device: Device, chip: Target) -> Iterator[Measurement]:
    """Latencies that only a scoreboard can tell; the emulator's timing mode does not know them."""
    for text in VARIABLE:
        yield lambda text=text: measure.scoreboard(device, chip, text, setup=[line("MOV R16, R8", SAFE)])  # type: ignore[misc]


def throughput(device: Device, chip: Target) -> Iterator[Measurement]:
    """Issue intervals of independent instructions, one warp and many; register banks and the reuse cache."""
    for texts in STREAMS.values():
        several = [texts[i % len(texts)].format(26 + 2 * i) for i in range(8)]
        for warps in (1, 4, 16):
            yield lambda several=several, warps=warps: measure.interval(device, chip, several, warps)  # type: ignore[misc]


SUITES: dict[str, Callable[[Device, Target], Iterator[Measurement]]] = {
    "stalls": stalls, "chains": chains, "scoreboards": scoreboards, "throughput": throughput,
}  # fmt: skip


def run(device: Device, chip: Target, names: Iterable[str], step: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Runs suites; a dictionary with the device's facts, the date and every answer. `step` is told of each measurement."""
    answers: list[Answer] = []
    for name in names:
        for question in SUITES[name](device, chip):
            try:
                answers.append(question())
            except SassayError as error:
                answers.append(Answer(name, chip.name, "", None, note=str(error)))
            step(f"{name}: {answers[-1].subject}")
    return {"device": device.facts(), "chip": chip.name, "date": time.strftime("%Y-%m-%d"), "answers": [a.to_dict() for a in answers]}


def differences(results: dict[str, Any]) -> list[str]:
    """Answers that differ from the figures of `isa.timing`, a line each."""
    rows = [a for a in results["answers"] if "model" in a["about"] and a["value"] is not None]
    return [
        f"{a['question']}: {a['subject']}: measured {a['value']:g}, tables {a['about']['model']}" for a in rows if a["value"] != a["about"]["model"]
    ]


def lines(results: dict[str, Any]) -> list[str]:
    """The answers as text: those that differ from the tables, those without a value, and how many there are."""
    answers = results["answers"]
    fitted = [f"{a['question']}: {a['subject']}: {a['value']:g} cycles, R2 {a['r2']:.4f}" for a in answers if a["r2"] is not None]
    silent = [f"{a['question']}: {a['subject']}: no answer: {a['note']}" for a in answers if a["value"] is None]
    known = sum("model" in a["about"] and a["value"] is not None for a in answers)
    other = differences(results)
    return [*fitted, *silent, *other, f"{len(answers)} answers; {known - len(other)} of the {known} that the tables know are theirs"]


def table_rows(results: dict[str, Any]) -> list[str]:
    """Measured distances as rows for `isa/timing/data`: `[raw.FILE]` and `producer = "consumer:role=figure ..."`."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for answer in results["answers"]:
        about = answer["about"]
        if about.get("kind") != "raw" or answer["value"] is None:
            continue
        producer = f'"{about["producer"]}.{about["part"]}"' if about["part"] else about["producer"]
        cell = about["consumer"] + ("" if about["role"] == "operand" else f":{about['role']}")
        row = found.setdefault(about["file"], {}).setdefault(producer, {})
        row[cell] = max(row.get(cell, 0), answer["value"])
    out = []
    for file, rows in found.items():
        out.append(f"[raw.{file}]")
        out += [f'{producer} = "{" ".join(f"{cell}={value:g}" for cell, value in row.items())}"' for producer, row in rows.items()]
    return out


def plot(results: dict[str, Any], path: Path) -> None:
    """A picture of all fitted lines and of the least distances beside the tables' figures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(14, 7))
    for answer in results["answers"]:
        if answer["r2"] is not None:
            x, y = zip(*answer["points"], strict=True)
            left.plot(x, y, marker="o", label=f"{answer['subject'][:40]}: {answer['value']:g}")
    left.set(xlabel="instructions", ylabel="cycles", title=f"{results['device']['name']}, {results['chip']}")
    if left.lines:
        left.legend(fontsize=6)
    known = [a for a in results["answers"] if a["about"].get("kind") == "raw" and a["value"] is not None]
    right.scatter([a["about"]["model"] for a in known], [a["value"] for a in known], alpha=0.4)
    top = max([1.0, *(a["value"] for a in known), *(float(a["about"]["model"]) for a in known)])
    right.plot([0, top], [0, top], linewidth=0.5)
    right.set(xlabel="tables, cycles", ylabel="measured, cycles", title="least safe distances")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
