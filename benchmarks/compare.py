"""What changed between two files of run_all.py: `python benchmarks/compare.py OLD NEW [--noise 0.1]`.

Counts are shown when they differ at all; times and speeds, which vary from run to run, when they differ by more than `--noise`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
NOISY = re.compile(r"second|/s|_s$|\bs\b|CPU|wall|speed|MB", re.I)


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """(path, number) of every figure; in lines of text the numbers, named by the rest of the line."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield name, float(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "machine":
                yield from leaves(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            label = str(item.get("file", i)) if isinstance(item, dict) else str(i)
            yield from leaves(item, f"{name}[{label}]" if not isinstance(item, str) else name)
    elif isinstance(value, str) and name.endswith(".lines"):
        skeleton = " ".join(NUMBER.sub("#", value).split())
        for i, text in enumerate(NUMBER.findall(value)):
            yield f"{name}: {skeleton} ({i})", float(text.replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--noise", type=float, default=0.1, help="relative change of times that counts as noise")
    options = parser.parse_args()
    old, new = (json.loads(path.read_text()) for path in (options.old, options.new))
    for key in ("cpu", "cores", "python"):
        if old["machine"].get(key) != new["machine"].get(key):
            print(f"machines differ in {key}: {old['machine'].get(key)} -> {new['machine'].get(key)}")
    before, after = dict(leaves(old)), dict(leaves(new))
    shown = 0
    for name in sorted(before.keys() | after.keys()):
        a, b = before.get(name), after.get(name)
        if a is None or b is None:
            print(f"{'gone' if b is None else 'new':>8}  {name}: {a if b is None else b:g}")
        elif a != b:
            change = (b - a) / abs(a) if a else float("inf")
            if NOISY.search(name) and abs(change) <= options.noise:
                continue
            print(f"{change:+8.1%}  {name}: {a:g} -> {b:g}")
        else:
            continue
        shown += 1
    print(f"{shown} changes among {len(before.keys() | after.keys())} figures")


if __name__ == "__main__":
    main()
