"""Runs the benchmarks and writes one JSON with all figures and the machine's description: `python benchmarks/run_all.py [-o FILE]`.

Without -o the file is out/bench-DATE.json. `benchmarks/compare.py OLD NEW` shows what changed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "benchmarks"
sys.path.insert(0, str(ROOT))
LIMIT = 900
"""Seconds a script may take."""


def _tools() -> str:
    """Why scripts that compare with NVIDIA's tools cannot run, or ""."""
    return "" if (Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / "ptxas").exists() else "NVIDIA's tools are not installed"


def _corpus() -> str:
    return _tools() or ("" if os.environ.get("SASSAY_CORPUS") else "SASSAY_CORPUS is not set")


NEEDS = {"codec": _tools, "round_trip": _tools, "emulator": _tools, "corpus": _corpus}


def machine() -> dict[str, Any]:
    cpu = ""
    if Path("/proc/cpuinfo").exists():
        cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    versions = {}
    for name in ("numpy", "networkx", "z3-solver", "bitwuzla"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = ""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S"), "cpu": cpu or platform.processor(), "cores": os.cpu_count(), "load": list(os.getloadavg()),
        "system": platform.platform(), "python": platform.python_version(), "packages": versions, "commit": commit,
    }  # fmt: skip


def our_cubins(folder: Path, chip: str) -> list[str]:
    """The test kernels compiled by us, for the benchmarks that read cubins."""
    import sassay
    from sassay.errors import SassayError

    paths = []
    for source in sorted((ROOT / "tests" / "kernels").glob("*.ptx")):
        try:
            cubin = sassay.compile(source.read_text(), chip).cubin
        except SassayError:
            continue
        paths.append(str(folder / f"{source.stem}.cubin"))
        Path(paths[-1]).write_bytes(cubin)
    return paths


def script(words: list[str]) -> dict[str, Any]:
    """One script's figures: its JSON if it prints that, else its lines; and what went wrong, if anything did."""
    start = time.monotonic()
    try:
        done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT)
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, err = 124, "", f"more than {LIMIT} s"
    result: dict[str, Any] = {"exit": code, "wall_seconds": round(time.monotonic() - start, 2)}
    try:
        result["figures"] = json.loads(out)
    except ValueError:
        result["lines"] = out.splitlines()
    if code:
        result["stderr"] = err.splitlines()[-5:]
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "out" / f"bench-{time.strftime('%Y%m%d-%H%M%S')}.json")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--only", action="append", help="only this script (may be repeated)")
    options = parser.parse_args()
    everything: dict[str, Any] = {"machine": machine(), "benchmarks": {}}
    with tempfile.TemporaryDirectory() as folder:
        cubins = our_cubins(Path(folder), options.chip)
        texts = [str(path) for path in sorted((ROOT / "tests" / "kernels").glob("*.ptx"))]
        arguments = {
            "code_quality": ["--chip", options.chip, "--json"], "codec": [options.chip, *cubins], "emulator": [], "hazards": cubins,
            "corpus": [options.chip, "--step", "8", "--seconds", "300"], "parser": texts, "round_trip": [options.chip, *cubins],
        }  # fmt: skip
        for path in sorted(HERE.glob("*.py")):
            if path.stem in ("run_all", "compare", "results", "gpu") or (options.only and path.stem not in options.only):
                continue
            lacking = NEEDS.get(path.stem, lambda: "")()
            if lacking:
                everything["benchmarks"][path.stem] = {"exit": 0, "wall_seconds": 0.0, "skipped": lacking}
                print(f"{path.stem}: skipped, {lacking}")
                continue
            print(f"{path.stem} ...", end=" ", flush=True)
            result = script([str(path), *arguments.get(path.stem, [])])
            everything["benchmarks"][path.stem] = result
            print(f"exit {result['exit']}, {result['wall_seconds']} s")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(everything, indent=1) + "\n")
    print(f"written: {options.output}")
    return 1 if any(result["exit"] for result in everything["benchmarks"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
