"""Writes docs/results.md: the kernels of first light on three chips beside ptxas, and what became of faults planted in our cubins.

    python benchmarks/results.py [--chip sm_90a ...] [--seconds 20] [--faults 200]
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / p) for p in (".", "examples", "tests", "tests/kernels", "tests/first_light", "tests/product", "benchmarks")]
first_light = importlib.import_module("first_light")
kernels = importlib.import_module("test_first_light").KERNELS
planted = importlib.import_module("test_planted_faults")
specs = importlib.import_module("specs")
run_all = importlib.import_module("run_all")

import sassay  # noqa: E402
from sassay.errors import SassayError  # noqa: E402

CHIPS = ("sm_90a", "sm_100a", "sm_120a")
COLUMNS = ("kernel", "chip", "instructions", "executed", "registers", "cycles", "emulator", "hazards", "proof", "why not, or given what")


@dataclass
class Result:
    """One kernel on one chip; pairs are ours and ptxas's (0 where there is no ptxas)."""

    kernel: str
    chip: str
    instructions: tuple[int, int]
    registers: tuple[int, int]
    cycles: tuple[Any, Any]
    executed: tuple[int, int]
    emulator: str
    hazards: int
    proof: str
    reason: str = ""
    lemmas: list[str] = field(default_factory=list)


def launched(cubin: bytes, name: str) -> tuple[int, str]:
    """Instructions that all warps issued, and whether numpy agrees with the results."""
    launch = specs.SPECS[name].make(np.random.default_rng(17))
    try:
        done = sassay.emulate(cubin, name, launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes)
        launch.check(launch.args)
    except (SassayError, AssertionError) as error:
        return 0, f"wrong: {str(error).splitlines()[0]}"
    return done.warp_instructions, "= numpy"


def one(name: str, chip: str, seconds: float, tool: str | None) -> Result:
    text = specs.SPECS[name].ptx
    compiled = sassay.compile(text, chip, file=f"{name}.ptx")
    ours, (executed, emulator) = first_light.figures(compiled.cubin, name), launched(compiled.cubin, name)
    theirs, their_count = (0, 0, 0), 0
    other = first_light.compile_with_ptxas(tool, text, chip) if tool else None
    if other is not None:
        try:
            theirs, (their_count, verdict) = first_light.figures(other, name), launched(other, name)
        except SassayError as error:
            verdict = f"not read: {error.message}"
        if verdict != "= numpy":
            emulator += f" (ptxas's code {verdict})"
    proof = sassay.prove(text, compiled.cubin, name, seconds=seconds, blocks=compiled.kernels[name].witness["blocks"])  # type: ignore[arg-type]
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True)]
    return Result(
        name, chip, *pairs, (executed, their_count), emulator, len(sassay.check(compiled.cubin)), proof.verdict,  # type: ignore[arg-type]
        proof.reason, list(proof.lemmas),
    )  # fmt: skip


def row(result: Result) -> str:
    def both(pair: tuple[Any, Any]) -> str:
        return f"{pair[0]} ({pair[1]})" if pair[1] else str(pair[0])

    why = result.reason or "; ".join(result.lemmas)
    cells = [result.kernel, result.chip, *(both(p) for p in (result.instructions, result.executed, result.registers, result.cycles)),
             result.emulator, str(result.hazards), result.proof, why.replace("|", "\\|")[:160]]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def ratio(results: list[Result], what: str) -> str:
    pairs = [getattr(r, what) for r in results]
    both = [a / b for a, b in pairs if isinstance(a, int) and isinstance(b, int) and a and b]
    return f"{np.exp(np.mean(np.log(both))):.2f}" if both else "n/a"


def summary(results: list[Result], chip: str) -> str:
    these = [r for r in results if r.chip == chip]
    verdicts = ", ".join(f"{n} {v}" for v, n in Counter(r.proof for r in these).most_common())
    right, clean = sum(r.emulator.startswith("= numpy") for r in these), sum(r.hazards == 0 for r in these)
    ratios = " | ".join(ratio(these, what) for what in ("instructions", "executed", "registers", "cycles"))
    return f"| {chip} | {right} of {len(these)} | {clean} | {verdicts} | {ratios} |"


def fault_pages(chips: list[str], count: int) -> list[str]:
    """A table of planted faults for each chip, in kernels that prove quickly."""
    lines: list[str] = []
    for chip in chips:
        done = planted.campaign(list(planted.QUICK), count, 12, chip)
        print(f"{chip}: {count} faults, {planted.refused(done):.1%} of the harmful refused", flush=True)
        lines += ["", f"### {chip}", "", "```", planted.table(done), "```"]
    return lines


def page(results: list[Result], faults: list[str], chips: list[str], options: argparse.Namespace) -> str:
    here = run_all.machine()
    lines = [
        "# Results", "", f"Written by `python benchmarks/results.py` on {here['date'][:10]} ({here['cpu']}, {here['cores']} shared cores, Python "
        f"{here['python']}). In brackets: ptxas 13.5 -O3 on the same PTX.", "",
        "*executed*: instructions issued by all warps of a launch in the emulator; *cycles*: a model for comparing schedules, not silicon. "
        f"Proofs have {options.seconds:g} s of solver time each. Nothing here ran on a GPU.", "",
        "## In short", "",
        "| chip | right | free of hazards | proofs | instructions | executed | registers | cycles |", "|---|---|---|---|---|---|---|---|",
        *(summary(results, chip) for chip in chips), "", "Ratios are geometric means of ours over ptxas's.", "",
        "## Each kernel", "", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS), *(row(r) for r in results),
    ]  # fmt: skip
    if faults:
        lines += [
            "", "## Planted faults", "", f"{options.faults} a chip, in turn by kind and kernel, in {', '.join(planted.QUICK)}. "
            "Over all kernels that prove within half a second: `python tests/product/test_planted_faults.py --all --chip CHIP` (long).", *faults,
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", action="append")
    parser.add_argument("--seconds", type=float, default=20.0, help="solver time for each proof")
    parser.add_argument("--faults", type=int, default=200, help="planted faults a chip; 0: none")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results.md")
    options = parser.parse_args()
    chips, tool = options.chip or list(CHIPS), first_light.find_ptxas()
    results = []
    for name in kernels:
        for chip in chips:
            start = time.process_time()
            results.append(one(name, chip, options.seconds, tool))
            print(f"{name} {chip}: {results[-1].emulator}, {results[-1].proof}, {time.process_time() - start:.1f} s", flush=True)
    options.output.write_text(page(results, [], chips, options))
    if options.faults:
        options.output.write_text(page(results, fault_pages(chips, options.faults), chips, options))


if __name__ == "__main__":
    main()
