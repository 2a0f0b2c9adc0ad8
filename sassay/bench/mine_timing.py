"""Mines issue distances from compiled code: for each pair of operation classes the smallest ever seen, and how often.

    python -m sassay.bench.mine_timing FILE.cubin ... [--json OUT.json] [--worse 5]

Only straight runs of instructions count, and of those only results without a scoreboard: there the compiler relies on the distance alone.
The report sets what is found beside `sassay.isa.timing`: figures that vendor code undercuts (the accusing side is wrong), and pairs seen
often that never came as close as a schedule may (nothing corroborates them).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import click

from sassay.cubin import read
from sassay.errors import SassayError, SassError
from sassay.isa.timing import TimingModel, model
from sassay.sass.cfg import ENDS
from sassay.sass.codec import try_decode
from sassay.sass.effects import effects
from sassay.sass.model import PT, File, Instruction

Pair: TypeAlias = tuple[str, str, str, str, str]
"""(kind, register file, producer class with part, consumer class, role)."""
Register: TypeAlias = tuple[File, int]
_LOOK_BACK = 64
"""Cycles after which no fixed latency is pending."""


class Miner:
    """Distances of one chip. `distances[pair]` counts how often each distance was seen."""

    def __init__(self, timing: TimingModel) -> None:
        self.timing = timing
        self.distances: dict[Pair, Counter[int]] = defaultdict(Counter)
        self.instructions = 0
        self.unknown: Counter[str] = Counter()

    def function(self, code: Sequence[Instruction | SassError]) -> None:
        """Adds the runs of one function; an instruction that is not known ends a run and is counted."""
        now = 0
        writers: dict[Register, tuple[int, Instruction, str]] = {}
        readers: dict[Register, list[tuple[int, Instruction]]] = {}
        for item in code:
            self.instructions += 1
            if isinstance(item, SassError) or not self._known(item):
                writers, readers = {}, {}
                if isinstance(item, SassError):
                    self.unknown[item.message] += 1
                continue
            if not (item.guard.index == PT and item.guard.invert):
                self._instruction(item, now, writers, readers)
            now += item.control.stall if item.control.stall > 1 else 2 if item.control.yield_ else 1
            drains = item.control.stall == 0 and item.control.yield_
            if drains or (item.opcode in ENDS and item.guard.is_zero):
                writers, readers = {}, {}

    def _known(self, instr: Instruction) -> bool:
        try:
            self.timing.classify(instr)
            effects(instr)
        except SassError as error:
            self.unknown[error.message] += 1
            return False
        return True

    def _instruction(
        self,
        instr: Instruction,
        now: int,
        writers: dict[Register, tuple[int, Instruction, str]],
        readers: dict[Register, list[tuple[int, Instruction]]],
    ) -> None:
        cls = self.timing.classify(instr)
        seen = effects(instr)
        for (file, first, width), position in zip(seen.uses, seen.use_positions, strict=True):
            role = self.timing.role(instr, position)
            for part in range(width):
                found = writers.get((file, first + part))
                if found is not None:
                    self._add("raw", file, found[2], cls.name, "addend_hi" if role == "addend" and part else role, found, instr, now)
        for file, first, width in seen.defs:
            for part in range(width):
                key = (file, first + part)
                old = writers.get(key)
                if old is not None:
                    self._add("waw", file, old[2].partition(".")[0], cls.name, "", old, instr, now)
                for time, reader in readers.pop(key, ()):
                    if reader.control.read is None and reader.control.write is None:
                        self._add("war", file, self.timing.classify(reader).name, cls.name, "", (time, reader, ""), instr, now)
                split = (".hi" if part else ".lo") if cls.name == "wide" and file == File.R else ""
                writers[key] = (now, instr, cls.name + split)
        for file, first, width in seen.uses:
            for part in range(width):
                readers.setdefault((file, first + part), []).append((now, instr))

    def _add(
        self, kind: str, file: File, producer: str, consumer: str, role: str, first: tuple[int, Instruction, str], second: Instruction, now: int
    ) -> None:
        time, instr, _ = first
        guard, other = instr.guard, second.guard
        opposite = guard.file == other.file and guard.index == other.index and guard.invert != other.invert
        boarded = instr.control.write is not None and kind != "war"
        if now - time > _LOOK_BACK or boarded or opposite or self.timing.classify(instr).write_sb:
            return
        self.distances[kind, file.name, producer, consumer, role][now - time] += 1

    def undercut(self) -> Iterable[tuple[Pair, int, int, int]]:
        """(pair, smallest distance, times, accusing figure) of pairs that come closer than the checker allows."""
        for pair, counts in sorted(self.distances.items()):
            least = min(counts)
            try:
                accuse = self._figures(pair)[1]
            except SassError:
                continue
            if least < accuse:
                yield pair, least, counts[least], accuse

    def missing(self) -> Iterable[Pair]:
        """Pairs seen in code for which there is no figure."""
        for pair in sorted(self.distances):
            try:
                self._figures(pair)
            except SassError:
                yield pair

    def loose(self, often: int) -> Iterable[tuple[Pair, int, int, int]]:
        """(pair, smallest distance, times, schedule figure) of pairs seen at least `often` times and never that close."""
        for pair, counts in sorted(self.distances.items()):
            least = min(counts)
            try:
                schedule = self._figures(pair)[0]
            except SassError:
                continue
            if least > schedule and counts.total() >= often:
                yield pair, least, counts.total(), schedule

    def _figures(self, pair: Pair) -> tuple[int, int]:
        kind, file, producer, consumer, role = pair
        return self.timing.cell(kind, producer, consumer, int(File[file]), role)


def mine(paths: Iterable[Path]) -> dict[str, Miner]:
    """Miners by chip, over the functions of cubins; files for chips without data are left out and named on stderr."""
    miners: dict[str, Miner] = {}
    for path in paths:
        cubin = read(path.read_bytes())
        try:
            target = cubin.target
            miner = miners.setdefault(target.chip, Miner(model(target)))
        except SassayError as error:
            click.echo(f"{path}: {error}", err=True)
            continue
        for kernel in cubin.kernels.values():
            miner.function(try_decode(kernel.code, target))
    return miners


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write all distances seen.")
@click.option("--worse", default=50, show_default=True, help="List uncorroborated figures of pairs seen at least this often.")
def main(files: tuple[Path, ...], out: Path | None, worse: int) -> None:
    """Mine issue distances from cubins and compare them with the timing data."""
    result = {}
    for chip, miner in sorted(mine(files).items()):
        click.echo(f"{chip}: {miner.instructions} instructions, {len(miner.distances)} pairs")
        for what, count in miner.unknown.most_common(10):
            click.echo(f"  not known, {count} times: {what}")
        for pair in miner.missing():
            click.echo(f"  no figure: {' '.join(pair)}")
        for pair, least, times, accuse in miner.undercut():
            click.echo(f"  undercut: {' '.join(pair)} at {least}, {times} times; accused below {accuse}")
        for pair, least, times, schedule in miner.loose(worse):
            click.echo(f"  not corroborated: {' '.join(pair)} never below {least} in {times}; schedule uses {schedule}")
        result[chip] = {" ".join(pair): dict(sorted(counts.items())) for pair, counts in sorted(miner.distances.items())}
    if out is not None:
        out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
