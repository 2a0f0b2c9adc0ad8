"""Cubins as text and back: byte identity on what ptxas makes of the test kernels and on given cubins, and damaged input.

    python benchmarks/cubins.py [--chips sm_90a,sm_120a] [--kernels N] [--vendor DIR] [--files N] [--mutants N]

Every test kernel (or N drawn from them) with each of the flags below on each chip, then N cubins of DIR: assemble(write(read(x))) == x, and how
many words the listing could not read. `--mutants N`: N damaged cubins, read and listed, and N damaged texts, assembled; anything but one of our
errors counts as a fault.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

from support import kernels, oracle  # noqa: E402
from support.mutants import mutate_bytes, mutate_text  # noqa: E402

from sassay.cubin import read  # noqa: E402
from sassay.cubin.assembler import assemble  # noqa: E402
from sassay.cubin.listing import write  # noqa: E402
from sassay.errors import SassayError  # noqa: E402

FLAGS = ((), ("-O0",), ("-O1",), ("-O2",), ("-O3",), ("-g",), ("-lineinfo",), ("-c",))


class Count:
    def __init__(self) -> None:
        self.same = self.different = self.unread = self.failed = 0

    def take(self, label: str, data: bytes) -> None:
        try:
            listing = write(read(data))
            self.unread += listing.text.count("    .instruction 0x")
            if assemble(listing.text) == data:
                self.same += 1
                return
            self.different += 1
        except SassayError as error:
            self.failed += 1
            print(f"    {label}: {str(error)[:160]}")
            return
        print(f"    {label}: not the same bytes")

    def __str__(self) -> str:
        return f"{self.same} cubins come back byte for byte, {self.different} differ, {self.failed} fail; {self.unread} words that no form takes"


def compiled(text: str, chip: str, flags: tuple[str, ...]) -> bytes | None:
    text = re.sub(r"(?m)^\.target\s+\S+", f".target {chip}", text, count=1)
    text = re.sub(r"(?m)^\.version\s+[78]\.\d+", ".version 9.0", text, count=1)
    try:
        return oracle.ptxas(text, chip, *flags)
    except RuntimeError:
        return None


def mutants(count: int) -> None:
    rng = random.Random(5)
    names = ("saxpy", "block_reduce", "switch_table", "constants_globals", "indirect_call")
    sources = [oracle.ptxas(kernels.ptx(name), chip, *flags) for name in names for chip, flags in (("sm_90a", ()), ("sm_120a", ("-lineinfo",)))]
    texts = [write(read(data)).text for data in sources]
    faults = taken = 0
    for _ in range(count):
        try:
            cubin = read(mutate_bytes(rng.choice(sources), rng))
            write(cubin)
            taken += 1
        except SassayError:
            pass
        except Exception as error:
            faults += 1
            print(f"    cubin: {type(error).__name__}: {error}")
    print(f"{count} damaged cubins: {taken} read all the same, {count - taken - faults} refused, {faults} faults")
    faults = taken = 0
    for _ in range(count):
        try:
            assemble(mutate_text(rng.choice(texts), rng))
            taken += 1
        except SassayError:
            pass
        except Exception as error:
            faults += 1
            print(f"    text: {type(error).__name__}: {error}")
    print(f"{count} damaged texts: {taken} assembled all the same, {count - taken - faults} refused, {faults} faults", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chips", default="sm_90a,sm_100a,sm_103a,sm_120a")
    parser.add_argument("--kernels", type=int, default=1 << 30)
    parser.add_argument("--vendor", type=Path)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--mutants", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(3)
    names = rng.sample(kernels.names(), min(options.kernels, len(kernels.names())))
    for chip in options.chips.split(",") if names else ():
        count, refused = Count(), 0
        for name in names:
            for flags in FLAGS:
                data = compiled(kernels.ptx(name), chip, flags)
                if data is None:
                    refused += 1
                else:
                    count.take(f"{chip} {name} {' '.join(flags)}", data)
        print(f"{chip}, {len(names)} kernels x {len(FLAGS)} settings: {count} (ptxas refuses {refused})", flush=True)
    if options.vendor is not None:
        files = sorted(options.vendor.rglob("*.cubin"))
        count = Count()
        for path in rng.sample(files, min(options.files, len(files))):
            count.take(path.name, path.read_bytes())
        print(f"{options.vendor}: {count}", flush=True)
    if options.mutants:
        mutants(options.mutants)
    print(f"{time.process_time():.0f} s CPU")


if __name__ == "__main__":
    main()
