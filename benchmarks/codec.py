"""Speed of the codec in CPU time, beside nvdisasm on the same words.

    python benchmarks/codec.py sm_90a DIR_OR_CUBIN... [--words N]
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sassay.cubin.assembler import assemble
from sassay.isa.probe.elf import code_words
from sassay.isa.probe.oracle import Oracle
from sassay.isa.target import Target, target
from sassay.sass.codec import decode, disassemble, encode, grouped
from sassay.sass.text import format_control

COMMAND = str(Path(sys.executable).with_name("sassay"))


def child_seconds(command: list[str]) -> float:
    """CPU seconds of a command, its output thrown away."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def arrays(data: bytes, chip: Target) -> None:
    """Every word's shape, and every field of it as an array."""
    for rows in grouped(data, chip).rows:
        for i in rows.shape.shown_fields:
            rows.values(i)


def timed(label: str, count: int, work: Callable[[], object]) -> None:
    start = time.process_time()
    work()
    spent = time.process_time() - start
    print(f"{label:44s} {spent:7.2f} s  {count / spent:12,.0f} a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chip")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--words", type=int, default=400_000)
    options = parser.parse_args()
    words: set[int] = set()
    for path in options.files:
        for cubin in sorted(path.rglob("*.cubin")) if path.is_dir() else [path]:
            words |= code_words(cubin.read_bytes())
    rng = random.Random(1)
    pool = sorted(words)
    n = options.words
    chosen = [rng.choice(pool) for _ in range(n)]
    data = b"".join(w.to_bytes(16, "little") for w in chosen)
    t = target(options.chip)
    print(f"{options.chip}: {n} words drawn from {len(pool)}; the first line of each pair meets every shape for the first time")
    for _ in range(2):
        timed("words to arrays", n, lambda: arrays(data, t))
    for _ in range(2):
        timed("words to text", n, lambda: disassemble(data, t))
    for _ in range(2):
        timed("words to instructions", n, lambda: decode(data, t))
    instructions = decode(data, t)
    for _ in range(2):
        timed("instructions to words", n, lambda: encode(instructions, t))
    assert encode(instructions, t) == data
    lines = [line for line in disassemble(data, t) if isinstance(line, str)]
    text = "".join(f"{format_control(i.control)} {line} ;\n" for i, line in zip(instructions, lines, strict=True))
    for _ in range(2):
        timed("lines of text with control codes to words", n, lambda: assemble(text, chip=options.chip))
    oracle = Oracle(options.chip.replace("sm_", "SM"))
    with tempfile.NamedTemporaryFile(suffix=".words") as file:
        file.write(data)
        file.flush()
        spent = child_seconds([oracle.tool, "--binary", oracle.chip, "-raw", file.name])
    print(f"{'nvdisasm -raw':44s} {spent:7.2f} s  {n / spent:12,.0f} a second")
    version = min(child_seconds([COMMAND, "--version"]) for _ in range(7))
    print(f"{'sassay --version':44s} {version:7.3f} s CPU, the whole process (best of 7)")
    with tempfile.NamedTemporaryFile("w", suffix=".sass") as one:
        one.write(f".target {options.chip}\nIMAD.WIDE.U32 R2, R7, 0x2, R2\n")
        one.flush()
        asm = min(child_seconds([COMMAND, "asm", one.name, "-o", "-"]) for _ in range(7))
    print(f"{'sassay asm of one instruction':44s} {asm:7.3f} s CPU, the whole process (best of 7)")


if __name__ == "__main__":
    main()
