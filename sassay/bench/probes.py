"""Instructions that write a register and instructions that read it: the pairs whose least safe distance is measured.

Each text names its place `{d}`. What a producer writes there must differ from the value that `reset` puts there. Which class and role of
`isa.timing` a pair belongs to is read off the instructions, as the checker does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sassay.bench.kernel import SAFE, line
from sassay.isa.target import Target
from sassay.isa.timing import model
from sassay.sass.model import File
from sassay.sass.text import parse_instruction


@dataclass(frozen=True, slots=True)
class Producer:
    """Writes `{d}`; `part` "lo" or "hi" where a wide result's half is read; `reset` lines put another value there."""

    name: str
    file: File
    text: str
    reset: str
    part: str = ""
    needs: str = ""
    """A target feature, `!` before it for its absence."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """Reads `{d}` in a role and leaves its result in R24."""

    name: str
    file: File
    text: str
    role: str = "operand"
    needs: str = ""
    odd: bool = False
    """Whether `{d}` must be the odd register of the pair R16:R17."""
    scoreboard: bool = False


R, P, UR, UP = File.R, File.P, File.UR, File.UP
_R, _UR = "MOV {d}, 0x2a2a2a2a", "UMOV {d}, 0x2a2a2a2a"
_P = "ISETP.NE.AND {d}, PT, RZ, RZ, PT"
PRODUCERS = (
    Producer("LOP3", R, "LOP3.LUT {d}, R8, R10, RZ, 0x3c, !PT", _R),
    Producer("SHF", R, "SHF.L.U32 {d}, R8, 0x3, RZ", _R),
    Producer("PRMT", R, "PRMT {d}, R8, 0x123, R10", _R),
    Producer("MOV", R, "MOV {d}, R8", _R),
    Producer("IMAD", R, "IMAD {d}, R8, R10, R11", _R),
    Producer("FFMA", R, "FFMA {d}, R8, R10, R11", _R),
    Producer("FADD", R, "FADD {d}, R8, R10", _R),
    Producer("IMAD.HI", R, "IMAD.HI.U32 {d}, R8, R10, RZ", _R),
    Producer("IMAD.WIDE", R, "IMAD.WIDE.U32 R16, R8, R10, R12", _R, "lo"),
    Producer("IMAD.WIDE", R, "IMAD.WIDE.U32 R16, R8, R10, R12", _R, "hi"),
    Producer("HFMA2", R, "HFMA2 {d}, R8, R10, R11", _R),
    Producer("HFMA2.MMA", R, "HFMA2.MMA {d}, R8, R10, R11", _R, needs="hfma2_mma"),
    Producer("CS2R", R, "CS2R.32 {d}, SRZ", _R),
    Producer("VOTE", R, "VOTE.ANY {d}, PT, PT", _R),
    Producer("ISETP", P, "ISETP.NE.AND {d}, PT, R8, RZ, PT", _P),
    Producer("FSETP", P, "FSETP.NEU.AND {d}, PT, R8, RZ, PT", _P),
    Producer("PLOP3", P, "PLOP3.LUT {d}, PT, PT, PT, PT, 0x80, 0x0", _P),
    Producer("ULOP3", UR, "ULOP3.LUT {d}, UR6, 0x1234, URZ, 0x3c, !UPT", _UR),
    Producer("USHF", UR, "USHF.L.U32 {d}, UR6, 0x3, URZ", _UR),
    Producer("UMOV", UR, "UMOV {d}, 0x1234567", _UR),
    Producer("R2UR", UR, "R2UR {d}, R10", _UR),
)
CONSUMERS = (
    Consumer("LOP3", R, "LOP3.LUT R24, {d}, R10, RZ, 0x3c, !PT"),
    Consumer("MOV", R, "MOV R24, {d}"),
    Consumer("IMAD", R, "IMAD R24, {d}, R12, RZ"),
    Consumer("FFMA", R, "FFMA R24, {d}, 1, RZ"),
    Consumer("IMAD.WIDE", R, "IMAD.WIDE.U32 R24, {d}, R12, RZ"),
    Consumer("IMAD.WIDE addend", R, "IMAD.WIDE.U32 R24, R8, R10, R16", "addend"),
    Consumer("IMAD.HI", R, "IMAD.HI.U32 R24, {d}, R10, RZ"),
    Consumer("HADD2", R, "HADD2 R24, {d}, R10"),
    Consumer("SHFL", R, "SHFL.IDX PT, R24, {d}, RZ, 0x1f", scoreboard=True),
    Consumer("MUFU", R, "MUFU.RCP R24, {d}", scoreboard=True),
    Consumer("SEL", P, "SEL R24, R8, R10, {d}"),
    Consumer("FSEL", P, "FSEL R24, R8, R10, {d}"),
    Consumer("guard", P, "@{d} MOV R24, R8", "guard"),
    Consumer("MOV", UR, "MOV R24, {d}"),
    Consumer("LOP3", UR, "LOP3.LUT R24, R8, {d}, RZ, 0x3c, !PT"),
    Consumer("IMAD", UR, "IMAD R24, R8, {d}, RZ"),
)
PLACES = {R: "R16", P: "P1", UR: "UR8", UP: "UP1"}


@dataclass(frozen=True, slots=True)
class Pair:
    """A producer and a consumer of the same register on one chip."""

    chip: Target
    producer: Producer
    consumer: Consumer

    @property
    def place(self) -> str:
        return "R17" if self.producer.part == "hi" else PLACES[self.producer.file]

    @property
    def texts(self) -> tuple[str, str]:
        return self.producer.text.format(d=self.place), self.consumer.text.format(d=self.place)

    @property
    def setup(self) -> list[str]:
        return [line(self.producer.reset.format(d=self.place), SAFE), line("MOV R24, RZ", SAFE), line("MOV R25, RZ", SAFE)]

    @property
    def classes(self) -> tuple[str, str]:
        """Names of the two classes in `isa.timing`."""
        first, second = (model(self.chip).classify(parse_instruction(text)) for text in self.texts)
        return first.name, second.name

    def figure(self) -> int:
        """The distance below which `isa.timing` accuses; SassError where it has none."""
        first, second = self.classes
        wide = first == "wide" and self.producer.part
        return model(self.chip).cell("raw", f"wide.{self.producer.part}" if wide else first, second, int(self.producer.file), self.consumer.role)[1]

    def __str__(self) -> str:
        part = f".{self.producer.part}" if self.producer.part else ""
        return f"{self.producer.name}{part} -> {self.consumer.name} ({self.producer.file.name})"


def pairs(chip: Target) -> Iterator[Pair]:
    """All pairs that a chip has."""

    def there(needs: str) -> bool:
        return not needs or chip.has(needs.lstrip("!")) != needs.startswith("!")

    for producer in PRODUCERS:
        for consumer in CONSUMERS:
            fits = producer.file is consumer.file and there(producer.needs) and there(consumer.needs)
            if fits and not (consumer.role == "addend" and producer.part == "hi"):
                yield Pair(chip, producer, consumer)
