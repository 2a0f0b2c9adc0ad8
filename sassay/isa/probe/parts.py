"""What a class's description is made of while it is learnt, and how texts differ: fields, features, groups; edits of rows of tokens."""

from __future__ import annotations

import difflib
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from functools import lru_cache

from sassay.isa.probe.numbers import reads_as
from sassay.isa.tables.lexer import MARK, SPECIAL, Value

PAYLOAD = (1 << 105) - 1
OPCODE_BITS = (*range(12), 91)
FREE_BITS = tuple(b for b in range(12, 105) if b != 91)
MIXED = {"HALF": ("F16", "BF16"), "WIDE": ("F32", "F64")}
"""Float fields in one of two formats: the second where a modifier says BF16 or 64H."""
Tokens = tuple[str, ...]
Hunks = tuple[tuple[int, int, Tokens], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """nvdisasm's answer for one word: class and text (None: refused), and the address it stood at."""

    opclass: str
    text: str | None
    address: int


Asking = Generator[list[int], list[Answer], None]


@dataclass(frozen=True, slots=True)
class Reading:
    """A legal word of the class with its lexed text."""

    word: int
    tokens: Tokens
    values: tuple[Value, ...]


@dataclass
class LearntField:
    """A number in the text: `bits` from least to most significant with the `weights` they add. `kind` as in the lexer, "T" for branch
    displacements, or a float kind for "d"."""

    kind: str
    bits: tuple[int, ...]
    weights: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        self.is_float = self.kind in ("F32", "F64", "F16", "BF16", *MIXED)
        self.is_register = self.kind in ("R", "UR", "P", "UP", "B", "SB", "gsb")
        self.paired = self.is_register and self.offset > 0
        """Whether it is the second of two registers that one field names (`tmem[UR4], idesc[UR5]`): a number more, RZ with RZ."""
        self.lexed = "d" if self.is_float or self.kind == "DEC" else "x" if self.kind == "T" else self.kind
        self.top = (1 << len(self.bits)) - 1
        first, n = self.weights[0], len(self.bits)
        self.wrap = 0
        self.regular = list(self.weights) == [first << i for i in range(n)]
        if list(self.weights) == [*(first << i for i in range(n - 1)), -first << (n - 1)] and n > 1:
            self.regular, self.wrap = True, first << n
        self.runs: list[tuple[int, int, int]] = []
        start = 0
        for i in range(1, n + 1):
            if i == n or self.bits[i] != self.bits[i - 1] + 1:
                self.runs.append((self.bits[start], (1 << (i - start)) - 1, start))
                start = i

    def raw(self, word: int) -> int:
        total = 0
        for position, mask, shift in self.runs:
            total |= ((word >> position) & mask) << shift
        return total

    def put(self, word: int, raw: int) -> int:
        for position, mask, shift in self.runs:
            word = (word & ~(mask << position)) | ((raw >> shift) & mask) << position
        return word

    def value(self, raw: int) -> int:
        if self.paired and raw == self.top:
            return raw
        if self.regular:
            return self.offset + self.weights[0] * raw - (self.wrap if raw > self.top >> 1 else 0)
        return self.offset + sum(w for i, w in enumerate(self.weights) if (raw >> i) & 1)

    def raw_top(self) -> int:
        """The raw value that prints as RZ or PT in a register field."""
        return self.top if self.value(self.top) == self.top else 0

    def shows(self, raw: int, value: Value, second: bool | None = None) -> bool:
        """Whether `value` is how the field's `raw` prints; `second` says which format a field of two (MIXED) is in, None: either."""
        if self.is_register:
            mine = self.value(raw)
            return mine == (self.top if value == SPECIAL else value) and (value == SPECIAL) == (mine == self.top)
        if not isinstance(value, str):
            return self.value(raw) == value
        if self.kind in MIXED:
            kinds = MIXED[self.kind]
            return any(reads_as(k, raw, value) for k in (kinds if second is None else kinds[1:] if second else kinds[:1]))
        if self.is_float:
            return reads_as(self.kind, raw, value)
        return value.lstrip("+-").isdigit() and int(value) == self.value(raw)


@dataclass
class Feature:
    """Something a word has one of `size` values of. `bit` >= 0: that bit. Else the special case of field `field`: `cases` maps raw values to
    cases; powers of two from 2 up are case `power` when that is not zero; all else is case 0."""

    bit: int = -1
    field: int = -1
    cases: dict[int, int] = default(default_factory=dict)
    power: int = 0
    size: int = 2

    def of(self, word: int, fields: Sequence[LearntField]) -> int:
        if self.bit >= 0:
            return (word >> self.bit) & 1
        raw = fields[self.field].raw(word)
        case = self.cases.get(raw)
        if case is not None:
            return case
        return self.power if self.power and raw & (raw - 1) == 0 and raw > 1 else 0

    def representatives(self, case: int) -> list[int]:
        found = [raw for raw, c in self.cases.items() if c == case]
        if case and case == self.power:
            found += [4, 0x100]
        return found


@dataclass
class Group:
    """Features that act together. `edits[i]` for the i-th joint value (first feature slowest): None if illegal, else one replacement for
    each of `spans`."""

    features: list[int]
    spans: list[tuple[int, int]] = default(default_factory=list)
    edits: list[tuple[Tokens, ...] | None] = default(default_factory=list)


@lru_cache(maxsize=1 << 18)
def hunks(base: Tokens, other: Tokens) -> Hunks:
    """The edits that turn `base` into `other`."""
    start = 0
    while start < min(len(base), len(other)) and base[start] == other[start]:
        start += 1
    stop = 0
    while stop < min(len(base), len(other)) - start and base[-1 - stop] == other[-1 - stop]:
        stop += 1
    a, b = base[start : len(base) - stop], other[start : len(other) - stop]
    if not a and not b:
        return ()
    if not a or not b:
        return ((start, start + len(a), b),)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return tuple((start + i1, start + i2, b[j1:j2]) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal")


def apply(base: Tokens, edits: Iterable[tuple[int, int, Tokens]]) -> Tokens:
    """`base` with non-overlapping edits made; edits at one place in the order given."""
    out: list[str] = []
    at = 0
    for start, stop, new in sorted(edits, key=lambda e: (e[0], e[1])):
        out += base[at:start]
        out += new
        at = stop
    return tuple(out + list(base[at:]))


def overlap(a: Hunks, b: Hunks) -> bool:
    return any(max(i1, k1) < min(i2, k2) or (i1 < k1 == k2 < i2) or (k1 < i1 == i2 < k2) for i1, i2, _ in a for k1, k2, _ in b)


def second_format(tokens: Tokens) -> bool:
    """Whether a float field of two formats (MIXED) is in the second: with 64H, or where the last half type, which is the source's, is BF16."""
    halves = [t for t in tokens if t.startswith((".F16", ".BF16"))]
    return any("64H" in t for t in tokens) or (bool(halves) and halves[-1].startswith(".BF16"))


def last_hex(tokens: Tokens) -> int:
    marks = [t for t in tokens if t.startswith(MARK)]
    return max((k for k, t in enumerate(marks) if t == MARK + "x"), default=-1)


def literal(kind: str, value: Value) -> str:
    """The text of a number that no field explains."""
    if kind == "x":
        return hex(int(value))
    if kind == "d":
        return str(value)
    if value == SPECIAL:
        return kind + ("T" if kind in ("P", "UP") else "Z")
    return f"{kind}{value}"
