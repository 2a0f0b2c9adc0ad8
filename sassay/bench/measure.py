"""Questions to a chip, each answered by small kernels: the least safe distance of a pair, the cycles of a chain, throughput."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sassay.bench.kernel import Snippet, cubin, line, spaced
from sassay.bench.probes import Pair
from sassay.errors import DeviceError
from sassay.isa.target import Target
from sassay.runtime import Device

OPERANDS = (0x3F9D_70A4_3F8C_CCCD, 0x3FB3_3333_3FA6_6667, 0x4049_0FDB_3FC0_0001)
"""Bits of the three 64-bit operands: ordinary numbers as integers, f32, f64 and pairs of f16."""
LONGEST = 48
"""A distance that no fixed latency reaches."""
THREADS = 32


@dataclass
class Answer:
    """One measurement. `value` in cycles (None: no answer, `note` says why); `r2` of the fitted line, where one was fitted."""

    question: str
    chip: str
    subject: str
    value: float | None
    r2: float | None = None
    note: str = ""
    points: list[tuple[float, float]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    """What the tables of `isa.timing` call it: kind, file, producer, consumer, role, and their own figure."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def run(device: Device, chip: Target, snippet: Snippet, warps: int = 1) -> np.ndarray[Any, Any]:
    """Output words by thread: (threads, outputs) of uint32."""
    out = np.zeros((THREADS * warps, len(snippet.outputs)), np.uint32)
    with device.load(cubin(chip, snippet)) as module:
        module["measure"](1, THREADS * warps, [out, *(np.uint64(v) for v in OPERANDS)])
    return out


def least_distance(device: Device, pair: Pair) -> Answer:
    """Faults injected on purpose: the consumer issued 1, 2, 3 ... cycles after the producer, until its result is right and stays so.

    "Right" is what it computes when it comes very late; the value before the producer must give another result.
    """
    producer, consumer = pair.texts
    write = 0 if pair.consumer.scoreboard else None

    def result(distance: int, with_producer: bool = True) -> bytes:
        first = spaced(producer if with_producer else "NOP", distance)
        return run(device, pair.chip, Snippet([*first, line(consumer, 10, write=write)], pair.setup, (24,))).tobytes()

    kind = {"kind": "raw", "file": pair.producer.file.name, "part": pair.producer.part, "role": pair.consumer.role}
    about = kind | dict(zip(("producer", "consumer"), pair.classes, strict=True)) | {"model": pair.figure()}
    right = result(LONGEST)
    if result(LONGEST, with_producer=False) == right:
        return Answer("least distance", pair.chip.name, str(pair), None, note="the old value gives the same result", about=about)
    points: list[tuple[float, float]] = []
    for distance in range(1, LONGEST):
        points.append((distance, float(result(distance) == right)))
        if len(points) >= 3 and all(good for _, good in points[-3:]):
            break
    wrong = [int(d) for d, good in points if not good]
    return Answer("least distance", pair.chip.name, str(pair), float(max(wrong, default=0) + 1), points=points, about=about)


def clocked(body: Sequence[str], wait: int = 0) -> list[str]:
    """Code between two readings of the clock; R24 gets the first, R25 the second."""
    return [line("CS2R.32 R24, SR_CLOCKLO", 10), *body, line("NOP", 1, wait), line("CS2R.32 R25, SR_CLOCKLO", 10)]


def slope(
    device: Device, chip: Target, question: str, subject: str, body: Callable[[int], list[str]], lengths: Sequence[int], *,
    warps: int = 1, wait: int = 0, setup: Sequence[str] = (),
) -> Answer:  # fmt: skip
    """Cycles for each further piece of code: the slope over several lengths, of the slowest warp."""
    if len(set(lengths)) < 3:
        raise DeviceError("a line needs three lengths at least")
    points = []
    for n in lengths:
        words = run(device, chip, Snippet(clocked(body(n), wait), setup, (24, 25)), warps).astype(np.int64)
        points.append((float(n), float(((words[:, 1] - words[:, 0]) % 2**32).max())))
    x, y = np.array(points).T
    gradient, offset = np.polyfit(x, y, 1)
    spread = float(((y - y.mean()) ** 2).sum())
    r2 = 1.0 - float(((y - gradient * x - offset) ** 2).sum()) / spread if spread else 1.0
    return Answer(question, chip.name, subject, round(float(gradient), 4), round(r2, 6), points=points)


def chain(
    device: Device, chip: Target, text: str, stall: int, lengths: Sequence[int] = (16, 32, 48, 64), setup: Sequence[str] = ()
) -> Answer:
    """Cycles a link of a chain of one fixed-latency instruction on itself, at a stall that is known to be safe."""
    return slope(device, chip, "chain", f"{text} at stall {stall}", lambda n: spaced(text, stall) * n, lengths, setup=setup)


def scoreboard(device: Device, chip: Target, text: str, lengths: Sequence[int] = (8, 16, 24, 32), setup: Sequence[str] = ()) -> Answer:
    """Cycles a link of a chain of one variable-latency instruction, each waiting for the last by scoreboard 0."""
    return slope(device, chip, "scoreboard latency", text, lambda n: [line(text, 2, wait=1, write=0)] * n, lengths, wait=1, setup=setup)


def interval(device: Device, chip: Target, texts: Sequence[str], warps: int = 1, lengths: Sequence[int] = (32, 64, 96, 128)) -> Answer:
    """Cycles between independent instructions issued as fast as they go, `warps` warps of one block together."""

    def body(n: int) -> list[str]:
        return [line(texts[i % len(texts)], 1) for i in range(n)]

    return slope(device, chip, "issue interval", f"{' / '.join(texts)}, {warps} warps", body, lengths, warps=warps)
