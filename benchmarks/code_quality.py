"""Our code beside ptxas's: static instructions, registers, CPU time, over tests/kernels and, where SASSAY_CORPUS names a folder, a sample of its PTX.

    python benchmarks/code_quality.py [--chip sm_90a] [--sample 40] [--json]

Static counts leave out padding. A kernel that ptxas unrolls counts more instructions there: see `executed` in examples/first_light.py. CPU time
of ptxas is that of its process, ours that of `compile` in a warm one, by pass as well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from first_light import find_ptxas  # noqa: E402

import sassay  # noqa: E402
from sassay.errors import SassayError  # noqa: E402
from sassay.sass.codec import try_decode  # noqa: E402


def count(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Instructions, without padding, and registers of each kernel."""
    model = sassay.read_cubin(cubin)
    out = {}
    for name, kernel in model.kernels.items():
        if kernel.entry:
            code = try_decode(kernel.code, model.target)
            while code and not isinstance(code[-1], SassayError) and code[-1].opcode == "NOP":
                code.pop()
            out[name] = (len(code), kernel.registers)
    return out


def ours(text: str, chip: str, passes: Counter[str]) -> tuple[dict[str, tuple[int, int]], float]:
    start = time.process_time()
    result = sassay.compile(text, chip)
    seconds = time.process_time() - start
    passes.update(result.seconds)
    return count(result.cubin), seconds


def theirs(tool: str, text: str, chip: str) -> tuple[dict[str, tuple[int, int]], float] | None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "k.ptx").write_text(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [tool, f"-arch={chip}", "-O3", f"{folder}/k.ptx", "-o", f"{folder}/k.cubin"]
        done = subprocess.run(words, capture_output=True, check=False, timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            return None
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return count(Path(folder, "k.cubin").read_bytes()), seconds


def runs_on(path: Path, chip: str) -> bool:
    """Whether a PTX file's .target lets it run on the chip."""
    found = re.search(r"^\s*\.target\s+sm_(\d+)([af]?)", path.read_text(errors="replace"), re.M)
    number = int(re.sub(r"\D", "", chip))
    return found is not None and (f"sm_{found[1]}{found[2]}" == chip if found[2] else int(found[1]) <= number)


def sources(sample: int, chip: str) -> list[tuple[str, Path]]:
    """(set, file): all of tests/kernels and a fixed sample of the corpus."""
    files = [("kernels", path) for path in sorted((ROOT / "tests" / "kernels").glob("*.ptx"))]
    corpus = os.environ.get("SASSAY_CORPUS")
    if corpus and sample:
        runnable = [path for path in Path(corpus).rglob("*.ptx") if runs_on(path, chip)]
        found = sorted(runnable, key=lambda path: hashlib.sha256(path.name.encode()).digest())
        files += [("corpus", path) for path in found[:sample]]
    return files


def mean(ratios: list[float]) -> float | None:
    return round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 4) if ratios else None


def measure(chip: str, sample: int) -> dict[str, Any]:
    tool = find_ptxas()
    passes: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    for group, path in sources(sample, chip):
        text = path.read_text(errors="replace")
        other = theirs(tool, text, chip) if tool else None
        row: dict[str, Any] = {"set": group, "file": path.name}
        try:
            mine, row["seconds"] = ours(text, chip, passes)
            row["kernels"] = {name: {"instructions": n, "registers": r} for name, (n, r) in mine.items()}
        except (SassayError, RecursionError) as error:
            row["error"] = str(error).splitlines()[0][:200]
        if other is not None:
            row["ptxas_seconds"] = other[1]
            row["ptxas"] = {name: {"instructions": n, "registers": r} for name, (n, r) in other[0].items()}
        rows.append(row)
    return {"chip": chip, "ptxas": bool(tool), "summary": {g: summary([r for r in rows if r["set"] == g]) for g in {r["set"] for r in rows}},
            "seconds_by_pass": {name: round(value, 4) for name, value in passes.items()}, "files": rows}  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    good = [row for row in rows if "kernels" in row]
    pairs = [(row["kernels"][n], row["ptxas"][n]) for row in good for n in row["kernels"] if n in row.get("ptxas", {})]
    total = sum(k["instructions"] for row in good for k in row["kernels"].values())
    seconds = sum(row["seconds"] for row in good)
    return {
        "files": len(rows), "compiled": len(good), "kernels": sum(len(row["kernels"]) for row in good), "instructions": total,
        "instructions_ratio": mean([a["instructions"] / b["instructions"] for a, b in pairs]),
        "registers_ratio": mean([a["registers"] / b["registers"] for a, b in pairs]),
        "seconds": round(seconds, 3), "ptxas_seconds": round(sum(row.get("ptxas_seconds", 0) for row in good), 3),
        "instructions_per_second": round(total / seconds) if seconds else 0,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--sample", type=int, default=40, help="files of the corpus")
    parser.add_argument("--json", action="store_true", help="all figures as JSON")
    options = parser.parse_args()
    figures = measure(options.chip, options.sample)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    print(f"{'file':40} {'instructions':>16} {'registers':>12} {'CPU s':>14}   (ours/ptxas)")
    for row in figures["files"]:
        if "error" in row:
            print(f"{row['file']:40} {row['error']}")
        for name, kernel in row.get("kernels", {}).items():
            other = row.get("ptxas", {}).get(name, {"instructions": "-", "registers": "-"})
            left, right = f"{kernel['instructions']}/{other['instructions']}", f"{kernel['registers']}/{other['registers']}"
            print(f"{name[:40]:40} {left:>16} {right:>12} {row['seconds']:7.3f}/{row.get('ptxas_seconds', 0):.3f}")
    for group, values in figures["summary"].items():
        print(f"{group}: {values}")
    print(f"CPU seconds by pass: {figures['seconds_by_pass']}")


if __name__ == "__main__":
    main()
