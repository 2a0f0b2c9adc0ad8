"""Decoding of many words at once: numpy groups them by shape, Python touches each distinct operand once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sassay.errors import Location, SassError
from sassay.isa.tables.forms import FLOATS, PAYLOAD, Feature, Field
from sassay.sass.model import ALWAYS, RZ, Control, Instruction, Target
from sassay.sass.shapes import Opcode, Part, Shape
from sassay.sass.text import format_instruction, format_operand

if TYPE_CHECKING:
    from sassay.sass.codec import Codec

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
_ONE = np.uint64(1)
NOTHING = Instruction("?")


@dataclass
class Rows:
    """The words of one shape: their positions and halves."""

    shape: Shape
    at: I64
    low: U64
    high: U64

    def raw(self, f: Field) -> U64:
        return raw_array(f, self.low, self.high)

    def values(self, i: int) -> I64 | U64:
        """Field `i` of the form as the model has it, for every row."""
        f = self.shape.form.fields[i]
        values = value_array(f, self.raw(f))
        if f.kind in ("R", "UR") and f.top != RZ:
            values[values == f.top] = RZ
        elif f.kind == "T":
            values += 16 * self.at + 16
        return values


@dataclass
class Batch:
    """Words by shape. `errors` has the words that are not legal; `ids` says the shape of each word (-1: error), as an index into `rows`."""

    codec: Codec
    count: int
    ids: npt.NDArray[np.int32]
    rows: list[Rows] = field(default_factory=list)
    errors: dict[int, SassError] = field(default_factory=dict)
    controls: dict[int, list[Control]] = field(default_factory=dict)

    def instructions(self) -> list[Instruction]:
        """All instructions, in order; a placeholder where there is an error."""
        out: list[Instruction] = [NOTHING] * self.count
        for number, rows in enumerate(self.rows):
            shape = rows.shape
            guards = self.column(rows, shape.guard)
            columns = [self.column(rows, p) for p in shape.operands]
            operands = list(zip(*columns, strict=True)) if columns else [()] * len(rows.at)
            opcode, modifiers = shape.opcode, shape.modifiers
            for i, guard, ops, control, name in zip(
                rows.at.tolist(), guards, operands, self.controls[number], form_names(rows), strict=True
            ):
                out[i] = Instruction(opcode, modifiers, ops, guard, control, name)
            if shape.twin:
                for i, low, high in zip(rows.at.tolist(), rows.low.tolist(), rows.high.tolist(), strict=True):
                    plain = replace(out[i], form=shape.form.name)
                    residue = self.codec.residue(plain, low | high << 64, shape, 16 * i)
                    out[i] = replace(plain, form=f"{plain.form}+{residue:#x}") if residue else plain
        return out

    def texts(self) -> list[str]:
        """The text of each word; "" where there is an error."""
        out = [""] * self.count
        for rows in self.rows:
            shape = rows.shape
            if needs_formatter(shape):
                for i, text in zip(rows.at.tolist(), formatted(self, rows), strict=True):
                    out[i] = text
                continue
            head = ".".join((shape.opcode, *shape.modifiers))
            guard = shape.guard.make(*[0] * len(shape.guard.fields))
            if shape.guard.fields:
                mark = "@!" if guard.invert else "@"
                heads: Any = [f"{mark}{t.lstrip('!')} {head}" for t in self.text_column(rows, shape.guard)]
            elif guard != ALWAYS:
                heads = [f"@{format_operand(guard)} {head}"] * len(rows.at)
            else:
                heads = [head] * len(rows.at)
            columns = [self.text_column(rows, p) for p in shape.operands]
            if columns:
                lines = [f"{h} {', '.join(t)}" for h, t in zip(heads, zip(*columns, strict=True), strict=True)]
            else:
                lines = heads
            for i, line in zip(rows.at.tolist(), lines, strict=True):
                out[i] = line
        return out

    def keys(self, rows: Rows, part: Part) -> list[Any]:
        if len(part.fields) == 1:
            return list(rows.values(part.fields[0]).tolist())
        return list(zip(*[rows.values(i).tolist() for i in part.fields], strict=True))

    def column(self, rows: Rows, part: Part) -> list[Any]:
        """One operand of every row, each distinct one made once."""
        if not part.fields:
            return [part.make()] * len(rows.at)
        made = part.made
        keys = self.keys(rows, part)
        for key in set(keys).difference(made):
            made[key] = part.make(*key) if type(key) is tuple else part.make(key)
        return [made[k] for k in keys]

    def text_column(self, rows: Rows, part: Part) -> list[str]:
        if not part.fields:
            return [format_operand(part.make())] * len(rows.at)
        texts = part.texts
        keys = self.keys(rows, part)
        for key in set(keys).difference(texts):
            texts[key] = format_operand(part.make(*key) if type(key) is tuple else part.make(key))
        return [texts[k] for k in keys]


def needs_formatter(shape: Shape) -> bool:
    """Texts that are not the operands joined by commas: indexed branches, conversions with bars."""
    values = [0] * len(shape.form.fields)
    _, operands = shape.build(values)
    joined = ", ".join(map(format_operand, operands))
    whole = format_instruction(Instruction(shape.opcode, shape.modifiers, operands, ALWAYS))
    head = ".".join((shape.opcode, *shape.modifiers))
    return whole != (f"{head} {joined}" if operands else head) or any(isinstance(o, Target) and isinstance(o.to, str) for o in operands)


def formatted(batch: Batch, rows: Rows) -> Iterator[str]:
    guards = batch.column(rows, rows.shape.guard)
    columns = [batch.column(rows, p) for p in rows.shape.operands]
    operands = list(zip(*columns, strict=True)) if columns else [()] * len(rows.at)
    for guard, ops in zip(guards, operands, strict=True):
        yield format_instruction(Instruction(rows.shape.opcode, rows.shape.modifiers, ops, guard))


def form_names(rows: Rows) -> list[str]:
    """The form's name for each row, with the bits that no text shows where they are not the usual ones."""
    shape = rows.shape
    fixed = PAYLOAD & ~shape.shown
    low_mask, high_mask = np.uint64(fixed & (1 << 64) - 1), np.uint64(fixed >> 64)
    low = (rows.low ^ np.uint64(shape.base & (1 << 64) - 1)) & low_mask
    high = (rows.high ^ np.uint64(shape.base >> 64)) & high_mask
    high |= rows.high & np.uint64(7 << 61)
    names = [shape.form.name] * len(rows.at)
    for i in np.flatnonzero(low | high).tolist():
        names[i] = f"{names[i]}+{int(low[i]) | int(high[i]) << 64:#x}"
    return names


def raw_array(f: Field, low: U64, high: U64) -> U64:
    total: Any = 0
    for position, mask, shift in f.runs:
        source = low if position < 64 else high
        part = (source >> np.uint64(position & 63)) & np.uint64(mask)
        total = total | (part << np.uint64(shift)) if shift else total | part
    return np.asarray(total, dtype=np.uint64)


def value_array(f: Field, raw: U64) -> I64 | U64:
    if f.plain and len(f.bits) == 64:
        return raw
    values = raw.astype(np.int64)
    if f.kind in FLOATS:
        return values
    n, first = len(f.bits), f.weights[0]
    if f.weights[-1] * first < 0:
        values -= (values >> (n - 1)) << n
    if first != 1:
        values *= first
    if f.offset:
        values += f.offset
    if f.paired:
        values[raw == f.top] = f.top
    return values


def case_array(f: Field, feature: Feature, low: U64, high: U64) -> U64:
    raw = raw_array(f, low, high)
    n = len(f.bits)
    if n <= 12:
        table = np.array([feature.case(r) for r in range(1 << n)], dtype=np.uint64)
        return table[raw.astype(np.int64)]
    out = np.zeros(len(raw), dtype=np.uint64)
    if feature.power:
        out[(raw & (raw - _ONE) == 0) & (raw > _ONE)] = feature.power
    values = np.array(list(feature.cases), dtype=np.uint64)
    cases = np.array(list(feature.cases.values()), dtype=np.uint64)
    order = np.argsort(values)
    values, cases = values[order], cases[order]
    place = np.minimum(np.searchsorted(values, raw), len(values) - 1)
    hit = values[place] == raw
    out[hit] = cases[place[hit]]
    return out


def key_array(opcode: Opcode, low: U64, high: U64) -> tuple[U64, bool]:
    """One integer for each word that decides its shape; False when it does not fit 64 bits and shapes must be found word by word."""
    reusing = (high >> np.uint64(45)) & _ONE
    total = np.zeros(len(low), dtype=np.uint64)
    used = 0
    for mask, flag in ((opcode.mask, False), (opcode.reuse, True)):
        for position, width in runs_of(mask):
            source = low if position < 64 else high
            part = (source >> np.uint64(position & 63)) & np.uint64((1 << width) - 1)
            if flag:
                part = part * reusing
            total |= part << np.uint64(used)
            used += width
            if used > 63:
                return total, False
    for f, feature in opcode.specials:
        width = max(feature.size - 1, 1).bit_length()
        if used + width > 63:
            return total, False
        total |= case_array(f, feature, low, high) << np.uint64(used)
        used += width
    return total, True


def runs_of(mask: int) -> list[tuple[int, int]]:
    """Contiguous bits of a mask as (position, width), none across bit 64."""
    out: list[tuple[int, int]] = []
    for b in range(mask.bit_length()):
        if (mask >> b) & 1:
            if out and b == out[-1][0] + out[-1][1] and b != 64:
                out[-1] = (out[-1][0], out[-1][1] + 1)
            else:
                out.append((b, 1))
    return out


def group(codec: Codec, words: U64) -> Batch:
    """Words (n, 2) by shape."""
    low, high = np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])
    batch = Batch(codec, len(low), np.full(len(low), -1, dtype=np.int32))
    numbers = ((low & np.uint64(0xFFF)) | (((high >> np.uint64(27)) & _ONE) << np.uint64(12))).astype(np.int64)
    for number, at in split(numbers):
        opcode = codec.opcode(number)
        part_low, part_high = low[at], high[at]
        keys, whole = key_array(opcode, part_low, part_high)
        if not whole:
            keys = np.array([hash_of(opcode, a | b << 64) for a, b in zip(part_low.tolist(), part_high.tolist(), strict=True)], dtype=np.int64)
        for _, inner in split(keys):
            rows_at = at[inner]
            add_rows(batch, rows_at, part_low[inner], part_high[inner])
    return batch


def hash_of(opcode: Opcode, word: int) -> int:
    """A small number for the word's shape key, the same for equal keys and for no others."""
    return opcode.numbers.setdefault(opcode.key(word), len(opcode.numbers))


def split(keys: npt.NDArray[Any]) -> Iterator[tuple[int, I64]]:
    """(key, positions in order) for each distinct key."""
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    stops = np.append(starts[1:], len(keys))
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        yield int(ordered[start]), order[start:stop]


def add_rows(batch: Batch, at: I64, low: U64, high: U64) -> None:
    word = int(low[0]) | int(high[0]) << 64
    try:
        shape = batch.codec.shape_of(word)
    except SassError as error:
        for i, a, b in zip(at.tolist(), low.tolist(), high.tolist(), strict=True):
            text = error.message.replace(f"{word:#034x}", f"{a | b << 64:#034x}")
            batch.errors[i] = SassError(text, Location(offset=16 * i))
        return
    bits = (high >> np.uint64(41)).tolist()
    controls = {b: batch.codec.control_of(b, shape) for b in set(bits)}
    if None in controls.values():
        good = np.array([controls[b] is not None for b in bits])
        for i, a, b in zip(at[~good].tolist(), low[~good].tolist(), high[~good].tolist(), strict=True):
            batch.errors[i] = batch.codec.bad_control(a | b << 64, shape, 16 * i)
        at, low, high = at[good], low[good], high[good]
        bits = [b for b in bits if controls[b] is not None]
        if not bits:
            return
    batch.ids[at] = len(batch.rows)
    batch.controls[len(batch.rows)] = [c for b in bits if (c := controls[b]) is not None]
    batch.rows.append(Rows(shape, at, low, high))
