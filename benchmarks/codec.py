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

from sassay.isa.probe.elf import code_words
from sassay.isa.probe.oracle import Oracle
from sassay.isa.target import target
from sassay.sass.bulk import group
from sassay.sass.codec import codec, decode, disassemble, encode, halves

START_UP = """
import time
from sassay.sass.codec import encode_one
from sassay.sass.text import parse_instruction
from sassay.isa.target import target
encode_one(parse_instruction("IMAD.WIDE.U32 R2, R7, 0x2, R2"), target("{chip}"))
print(time.process_time())
"""


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
        timed("words to arrays", n, lambda: group(codec(t.chip), halves(data)))
    for _ in range(2):
        timed("words to text", n, lambda: disassemble(data, t))
    for _ in range(2):
        timed("words to instructions", n, lambda: decode(data, t))
    instructions = decode(data, t)
    for _ in range(2):
        timed("instructions to words", n, lambda: encode(instructions, t))
    assert encode(instructions, t) == data
    oracle = Oracle(options.chip.replace("sm_", "SM"))
    with tempfile.NamedTemporaryFile(suffix=".words") as file:
        file.write(data)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([oracle.tool, "--binary", oracle.chip, "-raw", file.name], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{'nvdisasm -raw':44s} {spent:7.2f} s  {n / spent:12,.0f} a second")
    script = START_UP.format(chip=options.chip)
    runs = [float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    print(f"{'one instruction from nothing':44s} {min(runs):7.3f} s CPU, the whole Python process (best of 5)")


if __name__ == "__main__":
    main()
