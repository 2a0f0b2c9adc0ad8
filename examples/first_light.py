"""First light: kernels from PTX to proved cubins, for three chips, in one table. `make run` runs this.

Each kernel is compiled, its control codes are checked for hazards, the cubin runs in the emulator against numpy, and the prover compares the
cubin's bytes with the PTX. ptxas stands beside us where one is installed; nothing here needs it. Exit status 1 if any answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "kernels")]

import numpy as np  # noqa: E402
from first_launches import LAUNCHES, ptx  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import sassay  # noqa: E402
from sassay.errors import SassayError  # noqa: E402

CHIPS = ("sm_90a", "sm_100a", "sm_120a")
NA = "n/a"
SEED = 2026
WARPS = 8
"""Warps on the modelled sub-core."""


@dataclass
class Row:
    """What became of one kernel on one chip; "n/a" where a piece could not be had, with the reason in `notes`."""

    kernel: str
    chip: str
    instructions: int | str = NA
    registers: int | str = NA
    cycles: int | str = NA
    emulator: str = NA
    hazards: int | str = NA
    proof: str = NA
    seconds: float = 0.0
    wrong: bool = False
    notes: list[str] = field(default_factory=list)
    executed: int | str = NA
    ptxas_instructions: int | str = NA
    ptxas_registers: int | str = NA
    ptxas_executed: int | str = NA


def find_ptxas() -> str | None:
    """NVIDIA's ptxas, for the comparison: from the Python packages, else from PATH."""
    for folder in sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin"), reverse=True):
        if os.access(folder / "ptxas", os.X_OK):
            return str(folder / "ptxas")
    return shutil.which("ptxas")


def figures(cubin: bytes, kernel: str) -> tuple[int, int, int | str]:
    """Instructions (padding left out), registers, and modelled cycles of `WARPS` warps of a kernel in a cubin."""
    from sassay.sass.codec import decode

    model = sassay.read_cubin(cubin)
    instructions = decode(model.kernel(kernel).code, model.target)
    while instructions and instructions[-1].opcode == "NOP":
        instructions.pop()
    try:
        from sassay.sched.model import simulate

        cycles: int | str = simulate(instructions, model.target, warps=WARPS).cycles
    except (ImportError, SassayError):
        cycles = NA
    return len(instructions), model.kernel(kernel).registers, cycles


def compile_with_ptxas(tool: str, text: str, chip: str) -> bytes | None:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(text)
        done = subprocess.run([tool, f"-arch={chip}", "-O3", str(source), "-o", str(out)], capture_output=True, check=False)
        return out.read_bytes() if done.returncode == 0 else None


def one(kernel: str, chip: str, tool: str | None) -> Row:
    """Compiles, checks, runs and proves one kernel."""
    row, text = Row(kernel, chip), ptx(kernel)
    start = time.process_time()
    try:
        result = sassay.compile(text, chip, file=f"{kernel}.ptx")
    except SassayError as error:
        row.notes.append(f"compile: {error}")
    else:
        row.instructions, row.registers, row.cycles = figures(result.cubin, kernel)
        check_hazards(row, result.cubin)
        emulate(row, result.cubin)
        prove(row, text, result)
    row.seconds = time.process_time() - start
    theirs = compile_with_ptxas(tool, text, chip) if tool else None
    if theirs is not None:
        try:
            row.ptxas_instructions, row.ptxas_registers, _ = figures(theirs, kernel)
            row.ptxas_executed, bad = launch(theirs, kernel)
            if bad:
                row.notes.append(f"ptxas's cubin in the emulator: {bad} elements differ from numpy")
        except SassayError as error:
            row.notes.append(f"ptxas's cubin: {error}")
    return row


def launch(cubin: bytes, kernel: str) -> tuple[int, int]:
    """Runs a kernel in the emulator: instructions issued by all warps, and how many elements of its results numpy contradicts."""
    with np.errstate(all="ignore"):
        run = LAUNCHES[kernel](np.random.default_rng(SEED))
    result = sassay.emulate(cubin, kernel, run.grid, run.block, run.args, shared_bytes=run.shared_bytes)
    return result.warp_instructions, run.wrong()


def check_hazards(row: Row, cubin: bytes) -> None:
    try:
        findings = sassay.check(cubin, row.kernel)
    except SassayError as error:
        row.notes.append(f"hazards: {error}")
        return
    row.hazards = len(findings)
    row.wrong |= bool(findings)
    row.notes += [f"hazard: {finding}" for finding in findings[:1]]


def emulate(row: Row, cubin: bytes) -> None:
    try:
        row.executed, bad = launch(cubin, row.kernel)
    except SassayError as error:
        row.emulator, row.wrong = "error", True
        row.notes.append(f"emulator: {error}")
        return
    row.emulator, row.wrong = ("= numpy" if bad == 0 else f"{bad} wrong"), row.wrong or bad > 0


def prove(row: Row, text: str, result: sassay.CompileResult) -> None:
    from sassay.ptx.parser import parse
    from sassay.verify.prove import Witness, prove_kernel

    blocks = result.kernels[row.kernel].witness.get("blocks")
    witness = Witness(blocks=blocks) if isinstance(blocks, dict) else None
    proof = prove_kernel(parse(text, f"{row.kernel}.ptx"), row.kernel, result.cubin, witness=witness, seconds=20)
    row.proof = proof.verdict
    row.wrong |= proof.verdict == "refuted"
    if not proof.proved:
        row.notes.append(f"proof: {proof.verdict}: {proof.reason or '; '.join(f'given that {lemma}' for lemma in proof.lemmas)}")


def render(rows: list[Row], tool: str | None) -> Table:
    """The table of all rows; ptxas's figures in brackets."""
    table = Table(title="PTX to proved cubins" + (" (in brackets: ptxas -O3)" if tool else ""))
    for name in ("kernel", "chip"):
        table.add_column(name, no_wrap=True)
    for name in ("instructions", "executed", "registers", "cycles"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("emulator", "hazards", "proof", "seconds"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("hazards", "seconds") else "left")
    last, several = "", len({row.chip for row in rows}) > 1
    for row in rows:
        if last and row.kernel != last and several:
            table.add_section()
        shown = row.kernel if row.kernel != last else ""
        last = row.kernel
        beside = lambda ours, theirs: f"{ours} ({theirs})" if tool else str(ours)  # noqa: E731
        table.add_row(
            shown, row.chip, beside(row.instructions, row.ptxas_instructions), beside(row.executed, row.ptxas_executed),
            beside(row.registers, row.ptxas_registers), str(row.cycles), _colour(row.emulator, "= numpy"), _colour(str(row.hazards), "0"),
            _colour(row.proof, "proved"), f"{row.seconds:.2f}",
        )  # fmt: skip
    return table


def ratio(rows: list[Row], what: str) -> float:
    """Geometric mean of ours over ptxas's, 0 where there is nothing to compare."""
    pairs = [(getattr(row, what), getattr(row, f"ptxas_{what}")) for row in rows]
    both = [ours / theirs for ours, theirs in pairs if isinstance(ours, int) and isinstance(theirs, int)]
    return float(np.exp(np.mean(np.log(both)))) if both else 0.0


def _colour(text: str, good: str) -> str:
    style = "green" if text == good else "yellow" if text in (NA, "conditional", "suspect", "unknown", "unsupported") else "bold red"
    return f"[{style}]{text}[/]"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chip", action="append", help=f"only this chip (may be repeated); default {', '.join(CHIPS)}")
    parser.add_argument("--kernel", action="append", choices=list(LAUNCHES), help="only this kernel (may be repeated)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows here")
    options = parser.parse_args()
    tool, console = find_ptxas(), Console()
    rows: list[Row] = []
    with console.status("compiling, running, proving") as status:
        for kernel in options.kernel or LAUNCHES:
            for chip in options.chip or CHIPS:
                status.update(f"{kernel} for {chip}")
                rows.append(one(kernel, chip, tool))
    if not console.is_terminal:
        console.width = 132
    console.print(render(rows, tool))
    legend = f"executed: instructions issued by all warps of the launch; cycles: model, {WARPS} warps of one sub-core, 8 trips of each loop"
    console.print(legend, style="dim")
    notes: dict[str, list[Row]] = {}
    for row in rows:
        for note in row.notes:
            notes.setdefault(note, []).append(row)
    for note, where in notes.items():
        names = ", ".join(f"{row.kernel} {row.chip}" for row in where)
        console.print(f"{names}: {note}", style="red" if any(row.wrong for row in where) else "yellow", markup=False, highlight=False)
    given = sum(r.proof == "conditional" for r in rows)
    proved, right = sum(r.proof == "proved" for r in rows), sum(r.emulator == "= numpy" for r in rows)
    clean = sum(r.hazards == 0 for r in rows)
    console.print(f"{len(rows)} compilations: {right} right in the emulator, {clean} without hazards, {proved} proved, {given} given sampled lemmas.")
    if tool:
        parts = [f"{what} x{ratio(rows, what):.2f}" for what in ("instructions", "executed", "registers") if ratio(rows, what)]
        console.print(f"Against ptxas, geometric means: {', '.join(parts)}.")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
