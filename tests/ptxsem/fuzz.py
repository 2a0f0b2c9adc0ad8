"""Random differential tester: the PTX interpreter against the emulator on ptxas's and on our cubins. Every disagreement is reported minimised.

python tests/ptxsem/fuzz.py --seed 0 --count 200 --families int,float,memory [--chip sm_90a] [--engines ptxas-O1,ptxas-O3,own-O0,own-O3,own-spill]
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from generate import OUTPUTS, SLOT, THREADS, Block, Statement, module, program, text  # noqa: E402
from support.oracle import ptxas  # noqa: E402

from sassay.emu import emulate  # noqa: E402
from sassay.emu.ptx import emulate_ptx  # noqa: E402
from sassay.pipeline import CompileOptions, compile_ptx  # noqa: E402
from sassay.ptx.parser import parse  # noqa: E402

EDGES = np.array([
    0, 1, 2, 31, 32, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
    0x3F8000003F800000,
    0xBF80000000000001, 0x7F8000007FC00000, 0x3FF0000000000000, 0xBFF8000000000000, 0x7FF0000000000000, 0x7FF8000000000000, 0x0000000000800000,
    0x4B00000141000000, 0x40091EB8C2C80000,
], np.uint64)  # fmt: skip
Engine = Callable[[str, str], bytes]
ENGINES: dict[str, Engine] = {
    "ptxas-O1": lambda source, chip: ptxas(source, chip, "-O1"),
    "ptxas-O3": lambda source, chip: ptxas(source, chip, "-O3"),
    "own-O0": lambda source, chip: compile_ptx(source, chip, CompileOptions(level=0)).cubin,
    "own-O3": lambda source, chip: compile_ptx(source, chip).cubin,
    "own-spill": lambda source, chip: compile_ptx(source, chip, CompileOptions(force_spill=True)).cubin,
}


@dataclass
class Disagreement:
    """A minimised program on which an engine differs from the interpreter; `detail`: the first output that does, or the error."""

    seed: int
    engine: str
    detail: str
    statements: list[Statement]
    kernel: str


def inputs(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (THREADS, SLOT // 8)
    values = rng.integers(0, 1 << 64, shape, dtype=np.uint64)
    small = rng.integers(0, 70, shape, dtype=np.uint64) * np.uint64(0x100000001)
    floats = rng.normal(0, 100, (THREADS, SLOT // 4)).astype(np.float32).view(np.uint64)
    kind = rng.integers(0, 4, shape)
    return np.where(kind == 0, values, np.where(kind == 1, small, np.where(kind == 2, floats, rng.choice(EDGES, shape))))


def buffers(seed: int) -> list[np.ndarray]:
    return [inputs(seed), np.zeros((THREADS, len(OUTPUTS)), np.uint64), inputs(seed + 1)]


def differs(want: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> str:
    """The first difference in outputs, NaNs of float registers being equal, or in scratch memory."""
    for place, (letter, index) in enumerate(OUTPUTS):
        a, b = want[1][:, place], got[1][:, place]
        bad = a != b
        if letter in "fd":
            limit, mask = (0x7F800000, 0x7FFFFFFF) if letter == "f" else (0x7FF0000000000000, (1 << 63) - 1)
            bad &= ~(((a & np.uint64(mask)) > limit) & ((b & np.uint64(mask)) > limit))
        if bad.any():
            lane = int(bad.argmax())
            return f"%{letter}{index} of thread {lane}: PTX {int(a[lane]):#x}, cubin {int(b[lane]):#x}"
    return "" if np.array_equal(want[2], got[2]) else "scratch memory"


def interpret(source: str, kernel: str, seed: int) -> list[np.ndarray]:
    data = buffers(seed)
    emulate_ptx(parse(source), kernel, (1, 1, 1), (THREADS, 1, 1), data)
    return data


def run_cubin(cubin: bytes, kernel: str, seed: int) -> list[np.ndarray]:
    data = buffers(seed)
    emulate(cubin, kernel, (1, 1, 1), (THREADS, 1, 1), data, sanitize=False)
    return data


def check(statements: list[Statement], engine: str, chip: str, seed: int) -> str:
    """What is wrong with one program on one engine; empty when they agree."""
    source = module([text(statements)], chip)
    want = interpret(source, "k0", seed)
    try:
        return differs(want, run_cubin(ENGINES[engine](source, chip), "k0", seed))
    except Exception as error:  # whatever goes wrong is a finding
        return f"{type(error).__name__}: {error}".splitlines()[0]


def paths(statements: list[Statement]) -> Iterator[tuple[list[Statement], int]]:
    """Every statement's list and index, outer ones first."""
    for index, s in enumerate(statements):
        yield statements, index
        if isinstance(s, Block):
            yield from paths(s.body)
            yield from paths(s.other)


def smaller(statements: list[Statement]) -> Iterator[list[Statement]]:
    """Programs with something left out: halves, single statements, and blocks replaced by what is in them."""
    half = len(statements) // 2
    if half:
        yield copy.deepcopy(statements[:half])
        yield copy.deepcopy(statements[half:])
    for number in range(len(list(paths(statements)))):
        for flatten in (False, True):
            copied = copy.deepcopy(statements)
            where, index = list(paths(copied))[number]
            found = where[index]
            if flatten and not isinstance(found, Block):
                continue
            where[index : index + 1] = found.body + found.other if flatten and isinstance(found, Block) else []
            yield copied


def minimise(statements: list[Statement], fails: Callable[[list[Statement]], bool]) -> list[Statement]:
    """Leave statements out as long as the failure stays."""
    while True:
        found = next((s for s in smaller(statements) if fails(s)), None)
        if found is None:
            return statements
        statements = found


def run(seeds: Sequence[int], families: tuple[str, ...], chip: str, engines: Sequence[str], batch: int = 20) -> list[Disagreement]:
    """All disagreements of the programs of some seeds. Instructions that our compiler refuses by name are not counted."""
    out: list[Disagreement] = []
    for start in range(0, len(seeds), batch):
        some = seeds[start : start + batch]
        programs = {f"k{i}": program(seed, families) for i, seed in enumerate(some)}
        source = module([text(p, name) for name, p in programs.items()], chip)
        parsed = parse(source)
        wants = {}
        for (name, _), seed in zip(programs.items(), some, strict=True):
            wants[name] = buffers(seed)
            emulate_ptx(parsed, name, (1, 1, 1), (THREADS, 1, 1), wants[name])
        for engine in engines:
            try:
                cubin: bytes | None = ENGINES[engine](source, chip)
            except Exception:  # one of the programs: each by itself then
                cubin = None
            for (name, p), seed in zip(programs.items(), some, strict=True):
                try:
                    bad = check(p, engine, chip, seed) if cubin is None else differs(wants[name], run_cubin(cubin, name, seed))
                except Exception as error:  # whatever goes wrong is a finding
                    bad = f"{type(error).__name__}: {error}"
                if bad:
                    out.append(reduce(p, engine, chip, seed, bad))
    return out


def reduce(p: list[Statement], engine: str, chip: str, seed: int, bad: str) -> Disagreement:
    kind = bad.split(":")[0] if "Error" in bad.split(":")[0] else ""

    def fails(candidate: list[Statement]) -> bool:
        found = check(candidate, engine, chip, seed)
        return bool(found) and (not kind or found.startswith(kind)) and (bool(kind) or "Error" not in found.split(":")[0])

    least = minimise(p, fails) if fails(p) else p
    return Disagreement(seed, engine, check(least, engine, chip, seed) or bad, least, text(least))


def main() -> int:
    arguments = argparse.ArgumentParser(description="random PTX: interpreter against emulated cubins")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--count", type=int, default=100)
    arguments.add_argument("--families", default="int,float,memory")
    arguments.add_argument("--chip", default="sm_90a")
    arguments.add_argument("--engines", default=",".join(ENGINES))
    options = arguments.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    found = run(seeds, tuple(options.families.split(",")), options.chip, options.engines.split(","))
    for d in found:
        print(f"seed {d.seed}, {d.engine}: {d.detail}\n   ", "\n    ".join(map(str, d.statements)))
    print(f"{options.count} programs, {len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
