"""Encoding forms: the typed model of a chip's table.

A form is one encoding class. Its text is a row of tokens, the `base`, in which `$n` stands for the number that field n holds; groups of features
replace spans of the base. A feature is a bit of the word, or the special case a field is in (a register field that says RZ, an immediate that is
zero). A joint value of a group's features that has no outcome belongs to another form, or to none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Tokens = tuple[str, ...]
PAYLOAD = (1 << 105) - 1
"""All bits but those of the control field."""
FLOATS = frozenset({"F32", "F64", "F16", "BF16", "HALF", "WIDE"})


@dataclass(frozen=True, slots=True)
class Field:
    """A number in the word. `bits` from least to most significant; set bits add their `weights` to `offset`.

    `kind`: a register prefix ("R", "UR", "P", "UP", "B", "SB", "gsb"); "x" an integer printed in hexadecimal; "DEC" in decimal; "T" a branch
    displacement in bytes from the next instruction; "F32", "F16", "BF16" raw bits of a float; "F64" the high 32 bits of one; "HALF" F16, or BF16
    where a modifier says so; "WIDE" F32, or F64 where a modifier says 64H.
    """

    kind: str
    bits: tuple[int, ...]
    weights: tuple[int, ...]
    offset: int
    runs: tuple[tuple[int, int, int], ...]
    """The bits as contiguous runs, none across bit 64: (position in the word, mask, position in the field)."""

    top: int
    """The value that prints as RZ, URZ, PT or UPT: all bits set."""
    plain: bool
    """Whether the value is the raw bits as they stand."""
    paired: bool
    """Whether it is the second of two registers that the same bits name (`tmem[UR4], idesc[UR5]`): `offset` more, RZ where the first is."""

    def raw(self, word: int) -> int:
        total = 0
        for position, mask, shift in self.runs:
            total |= ((word >> position) & mask) << shift
        return total

    def spread(self, raw: int) -> int:
        """The word that has `raw` in this field and zeros elsewhere."""
        word = 0
        for position, mask, shift in self.runs:
            word |= ((raw >> shift) & mask) << position
        return word

    @property
    def mask(self) -> int:
        return self.spread(-1)

    def value(self, raw: int) -> int:
        if self.plain or (self.paired and raw == self.top):
            return raw
        return self.offset + sum(w for i, w in enumerate(self.weights) if (raw >> i) & 1)

    def raw_of(self, value: int) -> int | None:
        """The raw bits for a value, None if the field cannot hold it. Of a pair ask the first."""
        if self.plain:
            return value if 0 <= value <= self.top else None
        quotient, rest = divmod(value - self.offset, self.weights[0])
        raw = quotient & self.top
        return raw if rest == 0 and self.value(raw) == value else None


@dataclass(frozen=True, slots=True)
class Feature:
    """`bit` >= 0: that bit of the word. Else the case of field `field`: `cases` maps raw values to cases; other powers of two from 2 up are
    case `power` unless that is 0; anything else is case 0."""

    bit: int
    field: int
    cases: dict[int, int]
    power: int
    size: int

    def case(self, raw: int) -> int:
        found = self.cases.get(raw)
        if found is not None:
            return found
        return self.power if self.power and raw > 1 and raw & (raw - 1) == 0 else 0

    def representative(self, case: int) -> int | None:
        """A raw value in that case, None for the general case 0."""
        for raw, c in self.cases.items():
            if c == case:
                return raw
        return 4 if case and case == self.power else None


@dataclass(frozen=True, slots=True)
class Group:
    """`index[j]` is the outcome for the j-th joint value of the features (the first varies slowest), or -1; an outcome has one replacement
    for each span of the base."""

    features: tuple[Feature, ...]
    spans: tuple[tuple[int, int], ...]
    outcomes: tuple[tuple[Tokens, ...], ...]
    index: tuple[int, ...]

    def joint(self, word: int, fields: Sequence[Field]) -> int:
        j = 0
        for f in self.features:
            j = j * f.size + ((word >> f.bit) & 1 if f.bit >= 0 else f.case(fields[f.field].raw(word)))
        return j

    def cases(self, joint: int) -> list[int]:
        """The value of each feature in a joint value."""
        out = []
        for f in reversed(self.features):
            joint, case = divmod(joint, f.size)
            out.append(case)
        return out[::-1]


@dataclass(frozen=True, slots=True)
class Form:
    """One encoding class. `opcode` has bit 91 as its bit 12. `legal` is the mask of legal values of the control bits 105..109 and 122..124;
    `barriers` are masks of the legal values of the write and the read barrier (7 is none). `default` holds the bits that nothing in the text
    decides. `order`: all (group, span) in the order of the text. `reuse` maps control bits 122..124 to fields. `seen`: how many different words
    of it compiler output had."""

    name: str
    opcode: int
    legal: int
    barriers: tuple[int, int]
    seen: int
    base: Tokens
    fields: tuple[Field, ...]
    groups: tuple[Group, ...]
    order: tuple[tuple[int, int], ...]
    default: int
    reuse: dict[int, int]

    @property
    def opcode_bits(self) -> int:
        return (self.opcode & 0xFFF) | ((self.opcode >> 12) << 91)

    def outcomes(self, word: int) -> list[int] | None:
        """The outcome of each group, None if the word is not of this form."""
        out = []
        for g in self.groups:
            outcome = g.index[g.joint(word, self.fields)]
            if outcome < 0:
                return None
            out.append(outcome)
        return out

    def tokens(self, word: int) -> Tokens | None:
        """The text's tokens with `$n` for numbers, None if the word is not of this form."""
        outcomes = self.outcomes(word)
        return None if outcomes is None else self.assemble(outcomes)

    def assemble(self, outcomes: Sequence[int]) -> Tokens:
        out: list[str] = []
        at = 0
        for start, stop, g, k in self.pieces():
            out += self.base[at:start]
            out += self.groups[g].outcomes[outcomes[g]][k]
            at = stop
        return tuple(out + list(self.base[at:]))

    def pieces(self) -> list[tuple[int, int, int, int]]:
        """(start, stop, group, span number) of all spans in the order of the text."""
        return [(*self.groups[g].spans[k], g, k) for g, k in self.order]

    def feature_mask(self) -> int:
        """Bits that decide the outcomes, special cases of fields left aside."""
        return sum({1 << f.bit for g in self.groups for f in g.features if f.bit >= 0})


def make_field(kind: str, bits: Sequence[int], weights: Sequence[int] | None = None, offset: int = 0) -> Field:
    runs: list[list[int]] = []
    for i, b in enumerate(bits):
        if runs and b == runs[-1][0] + runs[-1][1] and b != 64:
            runs[-1][1] += 1
        else:
            runs.append([b, 1, i])
    if weights is None:
        weights = [1 << i for i in range(len(bits))]
    plain = kind in FLOATS or (offset == 0 and all(w == 1 << i for i, w in enumerate(weights)))
    paired = kind in ("R", "UR") and offset > 0
    places = tuple((p, (1 << n) - 1, s) for p, n, s in runs)
    return Field(kind, tuple(bits), tuple(weights), offset, places, (1 << len(bits)) - 1, plain, paired)


def form_to_json(form: Form) -> str:
    """One line of compact JSON."""

    def feature(f: Feature) -> Any:
        if f.bit >= 0:
            return f.bit
        return {"f": f.field, "c": sorted(f.cases.items()), "p": f.power, "n": f.size}

    def runs(index: Sequence[int]) -> list[int]:
        flat: list[int] = []
        for value in index:
            if flat and flat[-2] == value:
                flat[-1] += 1
            else:
                flat += [value, 1]
        return flat

    def field(f: Field) -> Any:
        plain = [1 << i for i in range(len(f.bits))]
        first: list[Any] = [f.kind, list(f.bits) if len(f.runs) > 1 else [f.bits[0], -len(f.bits)]]
        return first if list(f.weights) == plain and f.offset == 0 else [*first, list(f.weights), f.offset]

    data = {
        "name": form.name,
        "opcode": form.opcode,
        "legal": hex(form.legal),
        "barriers": form.barriers,
        "seen": form.seen,
        "base": list(form.base),
        "fields": [field(f) for f in form.fields],
        "groups": [
            {"x": [feature(f) for f in g.features], "p": g.spans, "o": g.outcomes, "i": runs(g.index)} for g in form.groups
        ],
        "order": form.order,
        "default": hex(form.default),
        "reuse": sorted(form.reuse.items()),
    }
    return json.dumps(data, separators=(",", ":"))


def form_from_json(text: str | bytes) -> Form:
    data = json.loads(text)

    def feature(x: Any) -> Feature:
        if isinstance(x, int):
            return Feature(x, -1, {}, 0, 2)
        return Feature(-1, x["f"], dict(x["c"]), x["p"], x["n"])

    def runs(flat: list[int]) -> tuple[int, ...]:
        index: list[int] = []
        for value, count in zip(flat[::2], flat[1::2], strict=True):
            index += [value] * count
        return tuple(index)

    def field(x: list[Any]) -> Field:
        bits = x[1] if len(x[1]) != 2 or x[1][1] >= 0 else range(x[1][0], x[1][0] - x[1][1])
        return make_field(x[0], list(bits), *x[2:])

    return Form(
        name=data["name"],
        opcode=data["opcode"],
        legal=int(data["legal"], 16),
        barriers=tuple(data.get("barriers", (255, 255))),
        seen=data["seen"],
        base=tuple(data["base"]),
        fields=tuple(map(field, data["fields"])),
        groups=tuple(
            Group(
                tuple(map(feature, g["x"])),
                tuple((s, e) for s, e in g["p"]),
                tuple(tuple(map(tuple, o)) for o in g["o"]),
                runs(g["i"]),
            )
            for g in data["groups"]
        ),
        order=tuple((g, k) for g, k in data["order"]) if "order" in data else _old_order(data["groups"]),
        default=int(data["default"], 16),
        reuse=dict(data["reuse"]),
    )


def _old_order(groups: list[Any]) -> tuple[tuple[int, int], ...]:
    found = [(s, e, g, k) for g, group in enumerate(groups) for k, (s, e) in enumerate(group["p"])]
    return tuple((g, k) for _, _, g, k in sorted(found, key=lambda p: (p[0], p[1])))
