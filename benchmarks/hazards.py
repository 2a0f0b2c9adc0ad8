"""The hazard checker: speed, false alarms on compiled code, and planted faults.

    python benchmarks/hazards.py FILE.cubin ... [--faults 4] [--seed 1] [--limit 200000]

Prints, per chip, instructions checked, findings, instructions a CPU second (decoding apart), and for single planted faults how many were
found, harmless (no random walk through the changed code meets a hazard) and missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from timing import test_hazards as planting  # noqa: E402

from sassay.cubin import read  # noqa: E402
from sassay.errors import SassayError  # noqa: E402
from sassay.sass.codec import decode  # noqa: E402
from sassay.sass.model import Instruction  # noqa: E402
from sassay.verify.hazards import Checker, branch_tables  # noqa: E402


def functions(paths: list[Path], limit: int) -> Iterator[tuple[str, object, bytes, dict[int, tuple[int, ...]]]]:
    """(name, target, code, branch tables) of each function, up to `limit` instructions a chip."""
    counts: Counter[str] = Counter()
    for path in paths:
        cubin = read(path.read_bytes())
        for kernel in cubin.kernels.values():
            if counts[cubin.target_name] < limit:
                counts[cubin.target_name] += len(kernel.code) // 16
                yield f"{path.name}:{kernel.name}", cubin.target, kernel.code, branch_tables(kernel)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--faults", type=int, default=0, help="faults of each kind to plant in each function")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=200_000, help="instructions a chip")
    options = parser.parse_args()
    checkers: dict[str, Checker] = {}
    checked: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    findings: dict[str, list[str]] = defaultdict(list)
    first: dict[str, float] = defaultdict(float)
    again: dict[str, float] = defaultdict(float)
    planted: list[tuple[str, str, list[Instruction]]] = []
    for name, target, code, tables in functions(options.files, options.limit):
        chip = target.chip  # type: ignore[attr-defined]
        checker = checkers.setdefault(chip, Checker(target))  # type: ignore[arg-type]
        start = time.process_time()
        try:
            found = checker.code(code, kernel=name, tables=tables)
        except SassayError as error:
            refused[f"{chip}: {error.message}"] += 1
            continue
        middle = time.process_time()
        checker.code(code, kernel=name, tables=tables)
        again[chip] += time.process_time() - middle
        first[chip] += middle - start
        checked[chip] += len(code) // 16
        findings[chip] += [str(f) for f in found if f.severity == "error"]
        if options.faults and not tables and 60 < len(code) // 16 < 2500:
            planted.append((name, chip, decode(code, target)))  # type: ignore[arg-type]
    for chip, count in sorted(checked.items()):
        speeds = f"{count / first[chip]:.0f} a second with decoding, {count / again[chip]:.0f} without"
        print(f"{chip}: {count} instructions, {len(findings[chip])} findings; {speeds}")
        for line in findings[chip][:10]:
            print(f"  {line}")
    for message, count in refused.most_common(10):
        print(f"refused, {count} functions: {message}")
    if options.faults:
        random.Random(options.seed).shuffle(planted)
        found_, harmless, missed = planting.plant(planted, each=options.faults, seed=options.seed)
        for kind in sorted({*found_, *harmless}):
            lost = sum(kind in m for m in missed)
            share = 100 * found_[kind] / max(1, found_[kind] + lost)
            print(f"{kind}: {found_[kind]} found, {harmless[kind]} harmless, {lost} missed: {share:.1f} %")
        for line in missed[:10]:
            print(f"  missed: {line}")


if __name__ == "__main__":
    main()
