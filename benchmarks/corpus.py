"""Our code against ptxas's on real PTX: compile, check hazards, run both in the emulator on the same random launches, compare every buffer.

    python benchmarks/corpus.py CHIP [--step 4] [--start 0] [--match TEXT] [--tries 6] [--launches 2] [--steps 8000] [--verbose] [--worst 10]

Reads `*.ptx` below the directory of SASSAY_CORPUS (../shared/corpus beside the repository by default) whose name ends in the chip. Arguments are
made from the parameter list: what the code uses as an address becomes a buffer of random values, integers are plausible sizes, floats random.
Values are compared with ptxas's code without contraction of products and sums (-fmad=false), which we do not do; counts with its default.
A launch that fails in both cubins for the same reason is tried again with other arguments. Instructions executed are counted by warp.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import oracle  # noqa: E402

from sassay.cubin import Cubin, read  # noqa: E402
from sassay.emu.launch import Record, run_program  # noqa: E402
from sassay.emu.loader import load_program  # noqa: E402
from sassay.errors import SassayError  # noqa: E402
from sassay.pipeline import compile_module  # noqa: E402
from sassay.ptx import ast as ptx  # noqa: E402
from sassay.ptx.parser import parse  # noqa: E402
from sassay.sass.codec import decode  # noqa: E402
from sassay.verify.hazards import check  # noqa: E402

LATER = re.compile(
    r"\b(wgmma|tcgen05|cp\.async\.bulk|mbarrier|fence\.proxy|tensormap|mapa|barrier\.cluster|setmaxnreg|clusterlaunchcontrol|multimem|st\.async|red\.async)\b"
)
"""Instructions of tensor kernels, which are measured elsewhere."""
SLOW = "too slow"
SECONDS = 4
"""Most wall time of one launch: what takes longer is tried with other arguments."""
BUFFER = 1 << 18
"""Bytes of each buffer."""
SIZES = (64, 16, 128, 32, 256, 8, 48, 33, 100, 4, 1, 2)
"""Integer arguments, the likelier first."""
Slot = tuple[int, int]
"""A place in the arguments: (parameter's index, byte offset)."""


@dataclass
class Figures:
    """What a run over the corpus found."""

    files: int = 0
    kernels: int = 0
    compiled: int = 0
    launched: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    hazards: list[str] = field(default_factory=list)
    unlaunched: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    mismatches: list[str] = field(default_factory=list)
    ratios: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))


def slots(function: ptx.Function) -> dict[Slot, str]:
    """How each slot that the code loads is used: "pointer", or the type of the load."""
    index = {id(p): i for i, p in enumerate(function.params)}
    loads: dict[int, list[tuple[Slot, str]]] = defaultdict(list)
    origins: dict[int, list[Any]] = defaultdict(list)
    roots: list[Any] = []
    found: dict[Slot, str] = {}
    for s in function.body or ():
        if not isinstance(s, ptx.Instruction) or not s.operands:
            continue
        if s.opcode == "ld" and "param" in s.modifiers and isinstance(s.operands[1], ptx.AddressOperand) and id(s.operands[1].base) in index:
            kind, place = s.modifiers[-1], (index[id(s.operands[1].base)], s.operands[1].offset)
            targets = s.operands[0].elements if isinstance(s.operands[0], ptx.VectorOperand) else (s.operands[0],)
            for k, target in enumerate(targets):
                slot = (place[0], place[1] + k * ptx.TYPE_BITS[kind] // 8)
                found.setdefault(slot, kind)
                if isinstance(target, ptx.RegOperand):
                    loads[target.register.uid].append((slot, kind))
            continue
        address = [o for o in s.operands if isinstance(o, ptx.AddressOperand)]
        if s.opcode not in ("mov", "cvta") and "shared" not in "".join(s.modifiers[:3]):
            roots += [a.base.uid for a in address if isinstance(a.base, ptx.Register)]
        first = s.operands[0]
        if isinstance(first, ptx.RegOperand) and first.register.bits == 64:
            position = {"mad": (3,), "selp": (1, 2), "mov": (1,), "cvta": (1,), "add": (1, 2), "sub": (1,), "and": (1,)}.get(s.opcode, ())
            origins[first.register.uid] += [o.register.uid for o in map(s.operands.__getitem__, position) if isinstance(o, ptx.RegOperand)]
    seen: set[int] = set()
    while roots:
        uid = roots.pop()
        if uid not in seen:
            seen.add(uid)
            roots += origins[uid]
            found.update({slot: "pointer" for slot, kind in loads[uid] if ptx.TYPE_BITS[kind] == 64})
    for i, p in enumerate(function.params):
        if p.pointer_space:
            found[i, 0] = "pointer"
    return found


def buffer(rng: np.random.Generator) -> np.ndarray:
    """Random content of a plausible element type, as bytes."""
    kind, count = rng.choice(["f32", "f32", "i32", "f16", "f64", "i64", "u8"]), BUFFER
    if kind[0] == "f":
        width = int(kind[1:]) // 8
        return (rng.standard_normal(count // width) * 2).astype({2: np.float16, 4: np.float32, 8: np.float64}[width]).view(np.uint8)
    data = {"i32": np.int32, "i64": np.int64, "u8": np.uint8}[kind]
    return rng.integers(0, 64, count // np.dtype(data).itemsize).astype(data).view(np.uint8)


def scalar(kind: str, size: int, rng: np.random.Generator, attempt: int) -> bytes:
    """A scalar's bytes: floats of ordinary size, integers from SIZES, smaller ones in later attempts."""
    if kind[0] == "f":
        return np.array(rng.uniform(0.1, 2), {2: np.float16, 4: np.float32, 8: np.float64}[size]).tobytes()
    if kind == "b32" and rng.integers(0, 3) == 0:
        return np.float32(rng.uniform(0.1, 2)).tobytes()
    allowed = SIZES[:3] if attempt == 0 else SIZES[1:6] if attempt < 3 else SIZES[-6:]
    return int(rng.choice(allowed)).to_bytes(8, "little")[:size]


def arguments(function: ptx.Function, uses: dict[Slot, str], rng: np.random.Generator, attempt: int) -> list[Any]:
    """Arguments of one launch: arrays, bytes and records."""
    out: list[Any] = []
    for i, p in enumerate(function.params):
        own = {offset: kind for (index, offset), kind in uses.items() if index == i}
        if own.get(0) == "pointer" and p.size == 8:
            out.append(buffer(rng))
            continue
        data = bytearray(p.size)
        pointers = {offset: buffer(rng) for offset, kind in own.items() if kind == "pointer"}
        for offset, kind in own.items():
            if kind != "pointer":
                size = ptx.TYPE_BITS[kind] // 8
                data[offset : offset + size] = scalar(p.type if p.type[0] == "f" and size == p.size else kind, size, rng, attempt)
        out.append(Record(bytes(data), pointers) if pointers else bytes(data))
    return out


def copied(args: list[Any]) -> list[Any]:
    """Arguments with buffers of their own."""

    def one(a: Any) -> Any:
        return Record(a.data, {k: v.copy() for k, v in a.pointers.items()}) if isinstance(a, Record) else a.copy() if isinstance(a, np.ndarray) else a

    return [one(a) for a in args]


def arrays(args: list[Any]) -> list[np.ndarray]:
    return [b for a in args for b in (a.pointers.values() if isinstance(a, Record) else [a] if isinstance(a, np.ndarray) else [])]


def different(x: np.ndarray, y: np.ndarray) -> list[int]:
    """Positions of the words that differ; a NaN equals a NaN of the same width at the same place."""
    bad = np.nonzero(x.view(np.uint32) != y.view(np.uint32))[0]
    if not len(bad):
        return []

    def nan(kind: Any) -> np.ndarray:
        width = np.dtype(kind).itemsize
        both = np.isnan(x.view(kind)) & np.isnan(y.view(kind))
        return (np.repeat(both, width // 4) if width >= 4 else (both | (x.view(np.uint16) == y.view(np.uint16))).reshape(-1, 2).all(1))[bad]

    return [int(k) for k in bad[~(nan(np.float32) | nan(np.float64) | nan(np.float16))]]


def shape(function: ptx.Function, attempt: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Grid and block of one attempt, within the kernel's own limits."""
    required, most = function.directives.get("reqntid"), function.directives.get("maxntid")
    limit = math.prod(most) if most else 128
    block = required or [(min(limit, 128), 1, 1), (min(limit, 32), max(1, min(limit // 32, 4)), 1)][attempt % 2]
    return ((2, 1, 1), (2, 2, 1), (1, 1, 1))[attempt % 3], tuple(block)


def reason(error: SassayError) -> str:
    return re.sub(r"'[^']*'|0x[0-9a-f]+|\d+", "_", error.message)


def instructions(cubin: Cubin, name: str) -> int:
    """Static instructions without the padding behind the last EXIT and its self-branch."""
    code = decode(cubin.kernel(name).code, cubin.target)
    return next(i for i in range(len(code), 0, -1) if code[i - 1].opcode != "NOP")


class Runner:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.figures = Figures()

    def file(self, path: Path) -> None:
        """Compiles a file both ways and launches its kernels."""
        f, chip = self.figures, self.options.chip
        f.files += 1
        text = path.read_text()
        vendor, plain = read(oracle.ptxas(text, chip)), read(oracle.ptxas(text, chip, "-fmad=false"))
        try:
            module = parse(text, path.name, target=chip)
            result = compile_module(module, chip)
        except SassayError as error:
            f.refused[f"{reason(error)[:110]} ({path.name})"] += 1
            return
        except Exception as error:  # a crash of the compiler counts like a refusal, with its type
            f.refused[f"{type(error).__name__}: {str(error)[:90]} ({path.name})"] += 1
            return
        ours = read(result.cubin)
        f.compiled += 1
        try:
            f.hazards += [f"{path.name}: {h}" for h in check(ours)]
        except SassayError as error:
            f.hazards.append(f"{path.name}: not checked: {error}")
        for function in module.functions:
            if function.is_entry and function.body is not None and self.options.kernel in function.name:
                f.kernels += 1
                self.kernel(f"{path.parent.name}/{path.name}:{function.name[:60]}", function, ours, vendor, plain, text)

    def launch(self, program: Any, grid: Any, block: Any, args: list[Any], shared: int) -> tuple[int, str, str]:
        """(warp instructions, what went wrong without its numbers, the whole message) of one launch."""
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            run = run_program(program, grid, block, args, shared_bytes=shared, sanitize=False, max_steps=self.options.steps)
            return run.warp_instructions, "", ""
        except SassayError as error:
            return 0, reason(error), str(error)
        except TimeoutError:
            return 0, SLOW, SLOW
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def kernel(self, title: str, function: ptx.Function, ours: Cubin, vendor: Cubin, plain: Cubin, text: str) -> None:
        f, name = self.figures, function.name
        mine, theirs = ours.kernel(name), vendor.kernel(name)
        f.ratios["registers"][title] = mine.registers / theirs.registers
        try:
            f.ratios["static"][title] = instructions(ours, name) / instructions(vendor, name)
            programs = [load_program(plain, name), load_program(ours, name)]
            fused = None if plain.kernel(name).code == theirs.code else load_program(vendor, name)
        except SassayError as error:
            f.unlaunched[reason(error)].append(title)
            return
        uses, done, why = slots(function), 0, ""
        shared = 65536 if re.search(r"\.extern\s+\.shared", text) else 0
        counts = [0, 0]
        for attempt in range(self.options.tries):
            rng = np.random.default_rng([attempt, self.options.seed])
            args = arguments(function, uses, rng, attempt)
            grid, block = shape(function, attempt)
            both, errors, executed = [copied(args), copied(args)], ["", ""], [0, 0]
            for side in (0, 1):
                executed[side], errors[side], message = self.launch(programs[side], grid, block, both[side], shared)
                why = message or why
                if message == SLOW:
                    break
            if self.options.verbose:
                print(f"  {title} try {attempt} {grid} {block}: {errors} {executed}", flush=True)
            if errors[0] or errors[1]:
                slow = any(e == SLOW or "no end after" in e for e in errors)
                if not slow and bool(errors[0]) != bool(errors[1]):
                    f.mismatches.append(f"{title} try {attempt} {grid} {block}: ptxas's {errors[0] or 'runs'}, ours {errors[1] or 'runs'}: {why}")
                    return
                continue
            done += 1
            if fused is not None:
                executed[0] = self.launch(fused, grid, block, copied(args), shared)[0] or executed[0]
            counts = [counts[0] + executed[0], counts[1] + executed[1]]
            wrong = []
            for i, (x, y) in enumerate(zip(arrays(both[0]), arrays(both[1]), strict=True)):
                if words := different(x, y):
                    shown = ", ".join(f"{k}: {x.view(np.uint32)[k]:#x} {y.view(np.uint32)[k]:#x}" for k in words[:3])
                    wrong.append(f"buffer {i}: {len(words)} words ({shown})")
            if wrong:
                f.mismatches.append(f"{title} try {attempt} {grid} {block}: {'; '.join(wrong)}")
                return
            if done == self.options.launches:
                break
        if done:
            f.launched += 1
            f.ratios["executed"][title] = counts[1] / max(1, counts[0])
        else:
            f.unlaunched[why].append(title)


def late(*_: Any) -> None:
    """Ends a launch whose time is up."""
    raise TimeoutError


def mean(values: dict[str, float]) -> float:
    return math.exp(sum(map(math.log, values.values())) / len(values)) if values else math.nan


def report(f: Figures, worst: int) -> None:
    """Prints the figures."""
    print(f"CPU {time.process_time():.0f} s")
    print(f"{f.compiled} of {f.files} files compiled, {f.kernels} kernels, {f.launched} compared by launches")
    for line, count in f.refused.most_common():
        print(f"not compiled, {count}: {line}")
    for line in f.mismatches:
        print(f"mismatch: {line}")
    print(f"{len(f.mismatches)} mismatches, {len(f.hazards)} hazards")
    for line in f.hazards[:20]:
        print(f"hazard: {line}")
    for why, titles in f.unlaunched.items():
        print(f"not launched, {len(titles)}: {why} ({titles[0]})")
    for name, values in f.ratios.items():
        print(f"{name}, ours / ptxas: geometric mean {mean(values):.3f} of {len(values)}")
        for title in sorted(values, key=lambda t: -values[t])[:worst]:
            print(f"  {values[title]:.2f} {title}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chip")
    for name, default in {"step": 4, "start": 0, "tries": 6, "launches": 2, "steps": 8_000, "seed": 1, "worst": 10}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--match", default="", help="part of the file's path")
    parser.add_argument("--kernel", default="", help="part of the kernel's name")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no file after this many")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    root = Path(os.environ.get("SASSAY_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not root.is_dir():
        sys.exit(f"no corpus at {root}: set SASSAY_CORPUS")
    if oracle.tool("ptxas") is None:
        sys.exit("no ptxas: install the test extra")
    plain = options.chip.rstrip("af")
    paths = sorted(p for p in root.glob("*/*.ptx") if p.stem.rsplit(".", 1)[-1].rstrip("af") == plain and options.match in str(p))
    signal.signal(signal.SIGALRM, late)
    runner, start = Runner(options), time.monotonic()
    for path in paths[options.start :: options.step]:
        if time.monotonic() - start > options.seconds:
            print("stopped: out of time")
            break
        if not LATER.search(path.read_text()):
            if options.verbose:
                print(f"{time.monotonic() - start:.0f} s {path.name}", flush=True)
            runner.file(path)
    report(runner.figures, options.worst)


if __name__ == "__main__":
    main()
