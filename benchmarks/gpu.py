"""Everything that needs a GPU, in one call of less than ten minutes; results as data in one folder. `make gpu` runs this.

    python benchmarks/gpu.py [--device 0] [--out DIR] [--seconds 540] [--kernel NAME ...]

Test kernels: our cubin and ptxas's (where there is one) on the device against numpy and, bit for bit, against the emulator, with times by
events; single instructions against the emulator; the microbenchmark suites. Each part writes its own file as soon as it is done, and what
the time did not allow is listed. `--device emulator:timing --chip sm_90a` tries all of it without a GPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / part) for part in (".", "examples", "tests/kernels")]
specs = importlib.import_module("specs")
first_light = importlib.import_module("first_light")

import sassay  # noqa: E402
from sassay.bench import cells, suites  # noqa: E402
from sassay.errors import SassayError  # noqa: E402
from sassay.isa.target import target  # noqa: E402
from sassay.runtime import Device, open_device  # noqa: E402

SUITES = ("chains", "scoreboards", "throughput", "stalls")


def buffers(device: Device, args: list[Any]) -> list[Any]:
    return [device.buffer(a) if isinstance(a, np.ndarray) and a.ndim else a for a in args]


def one(device: Device, name: str, data: bytes) -> dict[str, Any]:
    """A cubin on the device: against numpy, against the emulator, and its times."""
    row: dict[str, Any] = {"kernel": name, "numpy": "", "emulator": "", "milliseconds": None}
    make = specs.SPECS[name].make
    launch, model = make(np.random.default_rng(1)), make(np.random.default_rng(1))
    try:
        with device.load(data) as module:
            kernel = module[name]
            given = buffers(device, launch.args)
            kernel(launch.grid, launch.block, given, shared_bytes=launch.shared_bytes)
            args = [b.get() if hasattr(b, "get") else b for b in given]
            times = kernel.milliseconds(launch.grid, launch.block, given, shared_bytes=launch.shared_bytes)
            row["milliseconds"] = statistics.median(times) if times else None
        launch.check(args)
        row["numpy"] = "equal"
    except (SassayError, AssertionError) as error:
        row["numpy"] = str(error).strip().splitlines()[0]
        return row
    try:
        sassay.emulate(data, name, model.grid, model.block, model.args, shared_bytes=model.shared_bytes)
        pairs = [(a, b) for a, b in zip(args, model.args, strict=True) if isinstance(b, np.ndarray) and b.ndim]
        different = sum(int((a.view(np.uint8) != b.view(np.uint8)).sum()) for a, b in pairs)
        row["emulator"] = f"{different} bytes differ" if different else "equal"
    except SassayError as error:
        row["emulator"] = str(error).splitlines()[0]
    return row


def kernels(device: Device, chip: str, names: list[str], until: float) -> list[dict[str, Any]]:
    """All test kernels, ours and ptxas's; a row says so where the time did not allow one."""
    tool, rows = first_light.find_ptxas(), []
    for name in names:
        if time.monotonic() > until:
            rows.append({"kernel": name, "code": "", "numpy": "not run: out of time"})
            continue
        text = specs.SPECS[name].ptx
        makers = {"ours": lambda text=text: sassay.compile(text, chip).cubin}
        if tool:
            makers["ptxas"] = lambda text=text: first_light.compile_with_ptxas(tool, text, chip)
        for code, make in makers.items():
            try:
                data = make()
            except SassayError as error:
                rows.append({"kernel": name, "code": code, "numpy": f"not compiled: {error.message}"})
                continue
            if data is not None:
                rows.append({"code": code, **one(device, name, data)})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="0", help="a GPU's number, or emulator:timing")
    parser.add_argument("--chip", help="by default the device's own")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / f"gpu-{time.strftime('%Y%m%d-%H%M%S')}")
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--kernel", action="append", choices=sorted(specs.SPECS))
    parser.add_argument("--suite", action="append", choices=SUITES)
    options = parser.parse_args()
    start = time.monotonic()
    device = open_device(int(options.device) if options.device.isdigit() else options.device)
    chip = options.chip or device.chip
    options.out.mkdir(parents=True, exist_ok=True)

    def write(name: str, data: Any) -> None:
        head = {"device": device.facts(), "chip": chip, "date": time.strftime("%Y-%m-%dT%H:%M:%S"), "sassay": sassay.__version__}
        (options.out / f"{name}.json").write_text(json.dumps(head | {"seconds": round(time.monotonic() - start, 1), name: data}, indent=1) + "\n")

    rows = kernels(device, chip, options.kernel or list(specs.SPECS), start + 0.6 * options.seconds)
    write("kernels", rows)
    right = sum(row["numpy"] == "equal" for row in rows)
    same = sum(row.get("emulator") == "equal" for row in rows)
    print(f"kernels: {len(rows)} cubins, {right} as numpy says, {same} equal the emulator in every byte")
    tried = cells.run(device, target(chip))
    write("cells", tried)
    print(f"cells: {len(tried)} instructions, {sum(not c['different'] and not c['note'] for c in tried)} equal the emulator, "
          f"{sum(bool(c['note']) for c in tried)} not tried")  # fmt: skip
    left: list[str] = []
    for suite in options.suite or SUITES:
        if time.monotonic() - start > options.seconds:
            left.append(suite)
            continue
        results = suites.run(device, target(chip), [suite])
        write(suite, results["answers"])
        print(f"{suite}: {suites.lines(results)[-1]}", flush=True)
    if left:
        print(f"not run, out of time: {', '.join(left)}")
    print(f"written: {options.out}, {time.monotonic() - start:.0f} s")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
