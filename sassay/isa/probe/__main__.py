"""`python -m sassay.isa.probe CHIP`: builds the encoding table of a chip.

Options: `--seed N`; `--out FILE`; `--cubins DIR` compiler output for default bits and seeds (any number of times); `--ptx DIR` PTX files to make
such output of with ptxas ($SASSAY_PTXAS or the one beside nvdisasm); by default the PTX of the repository's test kernels.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import subprocess
import tempfile
from pathlib import Path

from sassay.isa.probe.build import Builder
from sassay.isa.probe.elf import words_of_files
from sassay.isa.probe.oracle import find_nvdisasm
from sassay.isa.tables import DIRECTORY


def compile_ptx(sources: list[Path], chip: str, into: Path) -> list[Path]:
    """Cubins of those sources that ptxas accepts for the chip."""
    ptxas = os.environ.get("SASSAY_PTXAS") or str(Path(find_nvdisasm()).with_name("ptxas"))
    made = []
    for i, source in enumerate(sources):
        text = re.sub(r"(?m)^\.target\s+\S+", f".target {chip}", source.read_text(), count=1)
        text = re.sub(r"(?m)^\.version\s+[78]\.\S+", ".version 9.0", text, count=1)
        given, out = into / f"{i}.ptx", into / f"{i}.cubin"
        given.write_text(text)
        if subprocess.run([ptxas, f"-arch={chip}", str(given), "-o", str(out)], capture_output=True).returncode == 0:
            made.append(out)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sassay.isa.probe", description=__doc__)
    parser.add_argument("chip")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cubins", type=Path, action="append", default=[])
    parser.add_argument("--ptx", type=Path, action="append", default=[])
    options = parser.parse_args()
    gc.disable()  # the learners keep millions of small objects and make no cycles: walking them doubles the time
    directories = options.ptx or [Path(__file__).parents[3] / "tests" / "kernels"]
    with tempfile.TemporaryDirectory() as scratch:
        found = [c for d in options.cubins for c in sorted(d.rglob("*.cubin"))]
        made = compile_ptx([p for d in directories for p in sorted(d.rglob("*.ptx"))], options.chip, Path(scratch))
        words = words_of_files(found + made)
    sources = f"ptxas output of {len(made)} PTX files and {len(found)} cubins given"
    builder = Builder(options.chip, options.seed, words, sources)
    builder.log(f"{len(words)} words of compiler output of {sources}")
    builder.build(options.out or DIRECTORY / f"{options.chip}.jsonl")
    builder.log("written")


if __name__ == "__main__":
    main()
