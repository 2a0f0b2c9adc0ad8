"""Learns one encoding class from nvdisasm's answers.

The text of a class is taken to be a fixed row of tokens (the base) in which *fields* drive numbers and *groups* of features drive everything
else. A feature is a single bit, or the special case a field is in (a register field that says RZ, an immediate that is a power of two). Each
group edits spans of the base as a function of its own features alone, or makes the word illegal for the class. What interacts is found by
changing features one and two at a time, then by counterexamples among random words; groups are enumerated in full.

`ClassLearner.run` is a generator: it yields lists of words and is sent back their answers, so that one pass over nvdisasm serves all classes.
"""

from __future__ import annotations

import difflib
import random
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from functools import lru_cache
from itertools import product

from sassay.isa.probe.numbers import reads_as
from sassay.isa.probe.oracle import GOOD_CONTROL
from sassay.isa.tables.lexer import MARK, SPECIAL, Value, lex

PAYLOAD = (1 << 105) - 1
OPCODE_BITS = (*range(12), 91)
FREE_BITS = tuple(b for b in range(12, 105) if b != 91)
MAX_GROUP = 1 << 17
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


@dataclass
class Prior:
    """A guess at a class: another chip's findings. `word` is a legal word there with no field in a special case."""

    word: int
    relative: bool
    fields: list[LearntField]
    features: list[Feature]
    groups: list[list[int]]
    order: set[tuple[int, int]]
    hidden: dict[int, set[int]]


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


class ClassLearner:
    """State of the learning of one class; after `run` is exhausted, `problem` is "" or says what could not be learnt."""

    def __init__(self, name: str, opcode: int, seeds: Sequence[int], seed: int) -> None:
        self.name = name
        self.opcode = opcode
        self.seeds = [(w & PAYLOAD) | GOOD_CONTROL for w in seeds]
        self.random = random.Random(f"{name}/{seed}")
        self.problem = ""
        self.relative = False
        self.fields: list[LearntField] = []
        self.features: list[Feature] = []
        self.groups: list[Group] = []
        self.base: Reading | None = None
        self.base_tokens: Tokens = ()
        self.order: set[tuple[int, int]] = set()
        self.field_order: dict[int, int] = {}
        self.mismatches: list[tuple[int, str]] = []
        self.checked = 0
        self.legal_checked = 0
        self.reuse: dict[int, int] = {}
        self.notes: list[str] = []
        self.hidden: dict[int, set[int]] = defaultdict(set)
        """Raw values at which a field is not shown, whatever the setting, as far as seen."""

    # -- asking ---------------------------------------------------------------------------------------------------------------------------

    def read(self, word: int, answer: Answer) -> Reading | None:
        if answer.opclass != self.name or not answer.text:
            return None
        tokens, values = lex(answer.text)
        if self.relative:
            at = [i for i, t in enumerate(tokens) if t.startswith(MARK)]
            last = max((k for k, i in enumerate(at) if tokens[i] == MARK + "x"), default=-1)
            if last >= 0:
                target = int(values[last]) - answer.address - 16
                target = (target + (1 << 63)) % (1 << 64) - (1 << 63)
                values = (*values[:last], target, *values[last + 1 :])
        return Reading(word, tokens, values)

    def ask(self, words: list[int]) -> Generator[list[int], list[Answer], list[Reading | None]]:
        answers = yield words
        return [self.read(w, a) for w, a in zip(words, answers, strict=True)]

    # -- the whole ------------------------------------------------------------------------------------------------------------------------

    def run(self) -> Asking:
        pool = yield from self.gather()
        if not pool:
            self.problem = "no legal word"
            return
        flips = yield from self.flip(pool)
        self.find_fields(flips)
        bases = yield from self.find_bases(pool)
        if not bases:
            self.problem = "no base"
            return
        self.base = bases[0]
        self.base_tokens = self.label(bases[0])
        self.find_bits(flips)
        yield from self.find_cases(bases)
        links = yield from self.find_links(bases)
        for round_ in range(12):
            self.make_groups(links)
            if self.problem:
                return
            yield from self.enumerate_groups(links)
            if self.problem:
                return
            extra = yield from self.validate(400 if round_ < 11 else 1500)
            if not extra and not self.mismatches and round_ < 11:
                extra = yield from self.validate(1500)
            if not extra:
                break
            before = len(links)
            links |= extra
            if len(links) == before:
                break
        yield from self.find_reuse()

    def run_with(self, prior: Prior) -> Asking:
        """Takes fields, features and their grouping from the same class of another chip as a guess: asks for all outcomes anew and tests them
        on random words. A guess that fails shows as `problem` or `mismatches`."""
        self.relative, self.order = prior.relative, prior.order
        self.fields, self.features = prior.fields, prior.features
        self.hidden.update(prior.hidden)
        self.groups = [Group(list(g)) for g in prior.groups]
        words = [self.spread(prior.word) for _ in range(6)]
        found = [r for r in (yield from self.ask(words)) if r is not None]
        if not found:
            self.problem = "the other chip's base word is not legal here"
            return
        self.base = found[0]
        self.base_tokens = self.label(self.base)
        yield from self.enumerate_groups(set())
        yield from self.validate(300)
        yield from self.find_reuse()

    def gather(self) -> Generator[list[int], list[Answer], list[Reading]]:
        """Legal words around the seeds, texts without undefined enum values first, words with many visible numbers first."""
        words = list(self.seeds[:24])
        for _ in range(140):
            word = self.random.choice(self.seeds)
            density = self.random.choice((0.03, 0.1, 0.25, 0.5))
            for b in FREE_BITS:
                if self.random.random() < density:
                    word ^= 1 << b
            words.append(word)
        answers = yield words + words[:16] + words[-16:]
        first, second = answers[: len(words)], answers[len(words) :]
        self.relative = any(a.text is not None and a.text != b.text for a, b in zip(first[:16] + first[-16:], second, strict=True))
        pool = [r for r in map(self.read, words, first) if r is not None]
        self.random.shuffle(pool)

        def rank(r: Reading) -> tuple[bool, int]:
            text = "".join(r.tokens)
            return ("INVALID" in text or "?" in text, sum(v == SPECIAL for v in r.values) - len(r.values))

        return sorted(pool, key=rank)

    def flip(self, pool: list[Reading]) -> Generator[list[int], list[Answer], list[tuple[Reading, dict[int, Reading | None]]]]:
        """Each free bit flipped in a few words of the pool: the best ones and some others."""
        chosen = pool[:3] + self.random.sample(pool[3:], min(4, len(pool) - 3)) if len(pool) > 3 else pool
        words = [r.word ^ (1 << b) for r in chosen for b in FREE_BITS]
        answers = yield from self.ask(words)
        n = len(FREE_BITS)
        return [(r, dict(zip(FREE_BITS, answers[i * n : (i + 1) * n], strict=True))) for i, r in enumerate(chosen)]

    # -- fields ---------------------------------------------------------------------------------------------------------------------------

    def find_fields(self, flips: list[tuple[Reading, dict[int, Reading | None]]]) -> None:
        """Bits that move a number and nothing else, joined when they move the same number."""
        parent: dict[int, int] = {}

        def find(b: int) -> int:
            while parent[b] != b:
                b = parent[b]
            return b

        kinds: dict[int, str] = {}
        deltas: dict[int, Counter[int]] = defaultdict(Counter)
        samples: dict[int, list[tuple[int, Value]]] = defaultdict(list)
        for base, answers in flips:
            marks = [t[1:] for t in base.tokens if t.startswith(MARK)]
            movers: dict[int, list[int]] = defaultdict(list)
            for b, other in answers.items():
                if other is None or other.tokens != base.tokens:
                    continue
                moved = [k for k, (u, v) in enumerate(zip(base.values, other.values, strict=True)) if u != v]
                if not moved or len({(marks[k], base.values[k], other.values[k]) for k in moved}) != 1:
                    continue
                u, v = base.values[moved[0]], other.values[moved[0]]
                kinds[b] = marks[moved[0]] if not (self.relative and moved[0] == last_hex(base.tokens)) else "T"
                parent.setdefault(b, b)
                movers[moved[0]].append(b)
                samples[b] += [(base.word, u), (other.word, v)]
                if kinds[b] in ("P", "UP"):
                    u, v = (7 if x == SPECIAL else x for x in (u, v))
                if isinstance(u, int) and isinstance(v, int) and SPECIAL not in (u, v):
                    deltas[b][(v - u) if not (base.word >> b) & 1 else (u - v)] += 1
                elif isinstance(u, str) and isinstance(v, str) and u.lstrip("+-").isdigit() and v.lstrip("+-").isdigit():
                    deltas[b][(int(v) - int(u)) if not (base.word >> b) & 1 else (int(u) - int(v))] += 1
            for bits in movers.values():
                for b in bits[1:]:
                    parent[find(b)] = find(bits[0])
        sets: dict[int, list[int]] = defaultdict(list)
        for b in sorted(parent):
            sets[find(b)].append(b)
        for bits in sets.values():
            self.add_field(bits, kinds, deltas, [s for b in bits for s in samples[b]])

    def add_field(self, bits: list[int], kinds: dict[int, str], deltas: dict[int, Counter[int]], samples: list[tuple[int, Value]]) -> None:
        kind = Counter(kinds[b] for b in bits).most_common(1)[0][0]
        if kind == "d":
            for name in ("F32", "F64", "F16", "BF16", "HALF", "WIDE"):
                candidate = LearntField(name, tuple(bits), tuple(1 << i for i in range(len(bits))))
                width = 32 if name in ("F32", "F64", "WIDE") else 16
                if len(bits) == width and all(isinstance(v, str) and candidate.shows(candidate.raw(w), v) for w, v in samples):
                    self.fields.append(candidate)
                    return
            kind = "DEC"
        weights = {b: deltas[b].most_common(1)[0][0] for b in bits if deltas[b]}
        loose = [b for b in bits if b not in weights or len(deltas[b]) > 1]
        if loose:
            self.notes.append(f"bits {loose} of a {kind} field have no one weight: {[dict(deltas[b]) for b in loose][:3]}")
            bits = [b for b in bits if b not in loose]
        if bits:
            bits.sort(key=lambda b: abs(weights[b]))
            f = LearntField(kind, tuple(bits), tuple(weights[b] for b in bits))
            offsets = Counter(int(v) - f.value(f.raw(w)) for w, v in samples if v != SPECIAL and str(v).lstrip("+-").isdigit())
            if offsets:
                f.offset = offsets.most_common(1)[0][0]
            self.fields.append(f)

    def label(self, r: Reading) -> Tokens:
        """Tokens with each placeholder naming the field it shows; a number that no field explains becomes literal text."""
        raws = [f.raw(r.word) for f in self.fields]
        by_kind: dict[str, list[int]] = defaultdict(list)
        for i, f in enumerate(self.fields):
            if raws[i] not in self.hidden[i]:
                by_kind[f.lexed].append(i)
        used: set[int] = set()
        out: list[str] = []
        k = 0
        for token in r.tokens:
            if not token.startswith(MARK):
                out.append(token)
                continue
            value = r.values[k]
            k += 1
            guard = k == 1 and r.tokens[0].startswith("@")
            fits = [
                i for i in by_kind[token[1:]] if self.fields[i].shows(raws[i], value) and (self.fields[i].bits[0] == 12) == guard
            ]
            fresh = [i for i in fits if i not in used] or fits
            if fresh:
                best = min(fresh, key=lambda i: self.field_order.get(i, 99))
                used.add(best)
                out.append(f"{MARK}{best}")
            else:
                out.append(literal(token[1:], value))
        return tuple(out)

    def generic(self, f: LearntField, taken: set[tuple[str, int]]) -> int:
        """A raw value that is no special case and differs from those of the other fields of its kind."""
        n = len(f.bits)
        for _ in range(50):
            if f.is_float:
                sign = self.random.getrandbits(1) << (n - 1)
                raw = {"F32": 0x3F8A1357, "F64": 0x3FF31357, "F16": 0x3D57, "BF16": 0x3F97, "HALF": 0x3D57, "WIDE": 0x3F8A1357}[f.kind] ^ sign
                raw ^= self.random.getrandbits(5) << 2
            else:
                raw = self.random.getrandbits(n)
                if n > 3 and raw & (raw - 1) == 0:
                    continue
            if raw in (0, (1 << n) - 1) and n > 1:
                continue
            if f.is_register and f.value(raw) in (0, (1 << n) - 1):
                continue
            if (f.kind, f.value(raw)) not in taken:
                break
        taken.add((f.kind, f.value(raw)))
        return raw

    def spread(self, word: int) -> int:
        """`word` with every field at a generic value, all different within a kind."""
        taken: set[tuple[str, int]] = set()
        for f in self.fields:
            word = f.put(word, self.generic(f, taken))
        return word

    def find_bases(self, pool: list[Reading]) -> Generator[list[int], list[Answer], list[Reading]]:
        words = [self.spread(r.word) for r in pool[:30] for _ in range(6)]
        readings = [r for r in (yield from self.ask(words)) if r is not None]
        if not readings:
            readings = pool

        def rank(r: Reading) -> tuple[bool, int, int]:
            tokens = self.label(r)
            text = "".join(r.tokens)
            shown = len({t for t in tokens if t.startswith(MARK)})
            return ("INVALID" in text or "?" in text, -shown, len(tokens))

        readings.sort(key=rank)
        best = readings[0]
        for token in self.label(best):
            if token.startswith(MARK):
                self.field_order.setdefault(int(token[1:]), len(self.field_order))
        bases = [best]
        masks = {self.enum_part(best.word)}
        bases += [r for r in (yield from self.ask([best.word ^ (1 << 15)])) if r is not None]
        masks |= {self.enum_part(r.word) for r in bases}
        for r in readings[1:]:
            if len(bases) < 6 and self.enum_part(r.word) not in masks:
                masks.add(self.enum_part(r.word))
                bases.append(r)
        return bases

    def enum_part(self, word: int) -> int:
        for f in self.fields:
            word = f.put(word, 0)
        return word

    # -- features -------------------------------------------------------------------------------------------------------------------------

    def find_bits(self, flips: list[tuple[Reading, dict[int, Reading | None]]]) -> None:
        """Single bits outside the fields that change the text or the legality of some word."""
        owned = {b for f in self.fields for b in f.bits}
        for b in FREE_BITS:
            if b in owned:
                continue
            for base, answers in flips:
                other = answers[b]
                if other is None or other.tokens != base.tokens or other.values != base.values:
                    self.features.append(Feature(bit=b))
                    break

    def find_cases(self, bases: list[Reading]) -> Asking:
        """Special values of every field: all values of short fields, telling ones of long fields, in the first base; a few in the other
        bases and next to each register field that says RZ or PT (IMAD.SHL wants a power of two and RZ)."""
        vanished = yield from self.find_vanished(bases[0])
        thorough = {0: set(range(len(self.fields)))} | {len(bases) + n: {i} for n, (i, _) in enumerate(vanished)}
        bases = bases + [r for _, r in vanished]
        registers = [i for i, f in enumerate(self.fields) if f.is_register and len(f.bits) > 1]
        special = yield from self.ask([self.fields[i].put(bases[0].word, self.fields[i].raw_top()) for i in registers])
        neighbour = [-1] * len(bases) + [i for i, r in zip(registers, special, strict=True) if r is not None]
        contexts = bases + [r for r in special if r is not None]
        asked: list[tuple[int, int, int]] = []
        words: list[int] = []
        for k, base in enumerate(contexts):
            for i, f in enumerate(self.fields):
                if neighbour[k] != i:
                    values = list(self.telling_values(f, i in thorough.get(k, ())))
                    asked += [(k, i, raw) for raw in values]
                    words += [self.without_clash(f.put(base.word, raw), i) for raw in values]
        answers = yield from self.ask(words)
        more = self.unusual(contexts[0], asked, answers)
        if more:
            asked += [(0, i, raw) for i, raw in more]
            extra = [self.without_clash(self.fields[i].put(contexts[0].word, raw), i) for i, raw in more]
            answers += yield from self.ask(extra)
        self.find_hidden(bases, zip(asked, answers, strict=True))
        outcomes: dict[int, dict[int, list[object]]] = defaultdict(lambda: defaultdict(lambda: [()] * len(contexts)))
        labels = [self.label(c) for c in contexts]
        for (k, i, raw), r in zip(asked, answers, strict=True):
            outcomes[i][raw][k] = None if r is None else hunks(labels[k], self.label(r))
        for by_raw in list(outcomes.values()):
            for row in list(by_raw.values()):
                for k in range(len(bases), len(contexts)):
                    if row[k] != row[0] and row[k] != ():
                        outcomes[neighbour[k]][self.fields[neighbour[k]].raw_top()][k] = "beside others"
        for i, by_raw in outcomes.items():
            self.add_cases(i, by_raw)

    def find_vanished(self, base: Reading) -> Generator[list[int], list[Answer], list[tuple[int, Reading]]]:
        """Short fields that a single bit turns into words (BMOV's B6 into ATEXIT_PC): each with a reading in which it is one. There every
        value has a text of its own."""
        bits = [f.bit for f in self.features]
        answers = yield from self.ask([base.word ^ (1 << b) for b in bits])
        marks = {t for t in self.label(base) if t.startswith(MARK)}
        found: dict[int, Reading] = {}
        for r in answers:
            gone = marks - set(self.label(r)) if r is not None else set()
            for i in sorted(int(t[1:]) for t in gone):
                if r is not None and 1 < len(self.fields[i].bits) <= 5:
                    found.setdefault(i, r)
        return sorted(found.items())

    def unusual(
        self, base: Reading, asked: list[tuple[int, int, int]], answers: list[Reading | None]
    ) -> list[tuple[int, int]]:
        """All other values of the middle-sized fields that have more special values than the first and the last."""
        usual = self.label(base)
        odd: Counter[int] = Counter()
        done: dict[int, set[int]] = defaultdict(set)
        for (k, i, raw), r in zip(asked, answers, strict=True):
            if k == 0 and 5 < len(self.fields[i].bits) <= 8:
                done[i].add(raw)
                odd[i] += r is None or self.label(r) != usual
        return [(i, raw) for i in done if odd[i] > 2 for raw in range(1 << len(self.fields[i].bits)) if raw not in done[i]]

    def find_hidden(self, bases: list[Reading], asked: Iterable[tuple[tuple[int, int, int], Reading | None]]) -> None:
        """Fields that leave the text at some value in every base that shows them."""
        shown: dict[tuple[int, int], list[bool]] = defaultdict(list)
        usual = [set(self.label(b)) for b in bases]
        for (k, i, raw), r in asked:
            if k < len(bases) and r is not None and f"{MARK}{i}" in usual[k]:
                shown[i, raw].append(f"{MARK}{i}" in self.label(r))
        for (i, raw), seen in shown.items():
            if not any(seen):
                self.hidden[i].add(raw)

    def telling_values(self, f: LearntField, thorough: bool) -> Iterable[int]:
        n = len(f.bits)
        if f.is_float:
            return [0, 1 << (n - 1), 1, (1 << n) - 1]
        if n <= 8:
            last, half = (1 << n) - 1, 1 << (n - 1)
            if not thorough:
                return sorted({0, 1, last, last - 1, half})
            return range(1 << n) if n <= 5 else sorted({*range(10), *range(half - 2, half + 3), *range(last - 4, last + 1), 21, 22, 23, 44})
        return sorted({0, 1, (1 << n) - 1, 3, 5, 7, 6, 0x11, (1 << (n - 1)) - 1, (1 << n) - 2} | {1 << j for j in range(n)})

    def without_clash(self, word: int, i: int) -> int:
        """`word` with fields that have the value of field `i` moved to another, so that numbers in the text can be told apart."""
        mine = self.fields[i]
        for g in self.fields:
            if g is not mine and g.lexed == mine.lexed and len(g.bits) > 1 and g.value(g.raw(word)) == mine.value(mine.raw(word)):
                if mine.raw(word) == mine.raw_top() and mine.is_register:
                    continue
                taken = {(h.kind, h.value(h.raw(word))) for h in self.fields}
                word = g.put(word, self.generic(g, taken))
        return word

    def add_cases(self, i: int, by_raw: dict[int, list[object]]) -> None:
        keys = {raw: repr(o) for raw, o in by_raw.items()}
        normal = repr([()] * len(next(iter(by_raw.values()))))
        n = len(self.fields[i].bits)
        numbers: dict[str, int] = {normal: 0}
        cases: dict[int, int] = {}
        powers = {keys[1 << j] for j in range(2, n) if 1 << j in keys} if n > 8 else set()
        power_key = next(iter(powers)) if len(powers) == 1 else ""
        if power_key == normal:
            power_key = ""
        for _, key in sorted(keys.items()):
            numbers.setdefault(key, len(numbers))
        power = numbers[power_key] if power_key else 0
        for raw, key in sorted(keys.items()):
            is_power = raw > 1 and raw & (raw - 1) == 0
            expected = power if is_power and power else 0
            if numbers[key] != expected:
                cases[raw] = numbers[key]
        if not cases and not power:
            return
        if len(numbers) > 24:
            self.notes.append(f"field {i} {self.fields[i].kind} has {len(numbers)} special cases")
            return
        self.features.append(Feature(field=i, cases=cases, power=power, size=len(numbers)))

    def set_feature(self, word: int, k: int, case: int, cautious: bool = False) -> int:
        """`word` with feature `k` at `case`; a generic field value for case 0."""
        feature = self.features[k]
        if feature.bit >= 0:
            return (word & ~(1 << feature.bit)) | (case << feature.bit)
        f = self.fields[feature.field]
        if case == 0:
            if feature.of(word, self.fields) == 0:
                return word
            for _ in range(200):
                taken: set[tuple[str, int]] = {(g.kind, g.value(g.raw(word))) for g in self.fields if g is not f}
                candidate = f.put(word, self.generic(f, taken))
                if feature.of(candidate, self.fields) == 0:
                    return candidate
            return candidate
        return f.put(word, self.random.choice(feature.representatives(case)))

    # -- interactions ---------------------------------------------------------------------------------------------------------------------

    def changes(self, base: Reading) -> list[tuple[int, int]]:
        """(feature, case) for every single change of a feature away from what `base` has; at most three cases of a special value."""
        out = []
        for k, feature in enumerate(self.features):
            now = feature.of(base.word, self.fields)
            cases = [c for c in range(feature.size) if c != now and (c == 0 or feature.bit >= 0 or feature.representatives(c))]
            out += [(k, c) for c in cases[:3]]
        return out

    def find_links(self, bases: list[Reading]) -> Generator[list[int], list[Answer], set[tuple[int, int]]]:
        """Pairs of features whose joint effect is not the two effects put together."""
        links: set[tuple[int, int]] = set()
        plans = []
        words: list[int] = []
        for base in bases[:2]:
            single = self.changes(base)
            ones = [self.set_feature(base.word, k, c) for k, c in single]
            pairs = [(a, b) for a in range(len(single)) for b in range(a + 1, len(single)) if single[a][0] != single[b][0]]
            if len(pairs) > 4000:
                pairs = self.random.sample(pairs, 4000)
            twos = [self.set_feature(ones[a], *single[b]) for a, b in pairs]
            plans.append((base, single, pairs, len(words), len(ones)))
            words += ones + twos
        answers = yield from self.ask(words)
        for number, (base, single, pairs, start, count) in enumerate(plans):
            tokens = self.label(base)
            ones_read = [None if r is None else hunks(tokens, self.label(r)) for r in answers[start : start + count]]
            for j, (a, b) in enumerate(pairs):
                r = answers[start + count + j]
                both = None if r is None else self.label(r)
                ka, kb = single[a][0], single[b][0]
                if not self.compatible(tokens, ones_read[a], ones_read[b], both, (ka, kb), number == 0):
                    links.add((min(ka, kb), max(ka, kb)))
        return links

    def compatible(self, base: Tokens, one: Hunks | None, two: Hunks | None, both: Tokens | None, pair: tuple[int, int], keep_order: bool) -> bool:
        if one is None or two is None:
            return both is None
        if both is None or overlap(one, two):
            return False
        forward = apply(base, [*one, *two]) == both
        backward = apply(base, [*two, *one]) == both
        if keep_order and forward != backward:
            self.order.add(pair if forward else pair[::-1])
        return forward or backward

    def make_groups(self, links: set[tuple[int, int]]) -> None:
        parent = list(range(len(self.features)))

        def find(k: int) -> int:
            while parent[k] != k:
                k = parent[k]
            return k

        for a, b in links:
            parent[find(a)] = find(b)
        members: dict[int, list[int]] = defaultdict(list)
        for k in range(len(self.features)):
            members[find(k)].append(k)
        self.groups = [Group(m) for m in members.values()]
        for g in self.groups:
            if self.size(g) > MAX_GROUP:
                names = [f"b{self.features[k].bit}" if self.features[k].bit >= 0 else f"f{self.features[k].field}" for k in g.features]
                self.problem = f"group too large: {self.size(g)} {names}"

    def size(self, g: Group) -> int:
        size = 1
        for k in g.features:
            size *= self.features[k].size
        return size

    def enumerate_groups(self, links: set[tuple[int, int]]) -> Asking:
        assert self.base is not None
        words: list[int] = []
        for g in self.groups:
            for cases in product(*(range(self.features[k].size) for k in g.features)):
                word = self.base.word
                for k, case in zip(g.features, cases, strict=True):
                    word = self.set_feature(word, k, case)
                words.append(self.told_apart(word, g))
        answers = yield from self.ask(words)
        at = 0
        for g in self.groups:
            n = self.size(g)
            self.fill_group(g, answers[at : at + n])
            at += n
        for x, g in enumerate(self.groups):
            for h in self.groups[x + 1 :]:
                if any(max(a, c) < min(b, d) or (a < c == d < b) or (c < a == b < d) for a, b in g.spans for c, d in h.spans):
                    links.add((g.features[0], h.features[0]))
                    self.notes.append("overlapping groups joined")

    def told_apart(self, word: int, g: Group) -> int:
        """`word` with the fields outside the group moved away from the numbers of those in it, which the text must tell apart."""
        inside = {self.features[k].field for k in g.features} - {-1}
        taken = {(self.fields[i].kind, self.fields[i].value(self.fields[i].raw(word))) for i in inside}
        for j, f in enumerate(self.fields):
            if j not in inside and f.is_register and len(f.bits) > 1 and (f.kind, f.value(f.raw(word))) in taken:
                if f.raw(word) != f.raw_top():
                    word = f.put(word, self.generic(f, taken))
        return word

    def fill_group(self, g: Group, answers: Sequence[Reading | None]) -> None:
        diffs = [None if r is None else hunks(self.base_tokens, self.label(r)) for r in answers]
        spans = sorted({(i, j) for d in diffs if d for i, j, _ in d})
        merged: list[tuple[int, int]] = []
        for i, j in spans:
            if merged and (i < merged[-1][1] or i == merged[-1][0]):
                merged[-1] = (merged[-1][0], max(j, merged[-1][1]))
            else:
                merged.append((i, j))
        g.spans = merged
        g.edits = [None if d is None else tuple(self.within(d, s, e) for s, e in merged) for d in diffs]

    def within(self, d: Hunks, start: int, stop: int) -> Tokens:
        """What the span [start, stop) of the base becomes under the hunks that lie in it."""
        inside = [(i, j, new) for i, j, new in d if start <= i and j <= stop and not (i == j == stop and start < stop)]
        out: list[str] = []
        at = start
        for i, j, new in inside:
            out += self.base_tokens[at:i]
            out += new
            at = j
        return tuple(out + list(self.base_tokens[at:stop]))

    # -- prediction -----------------------------------------------------------------------------------------------------------------------

    def joint(self, g: Group, word: int) -> int:
        index = 0
        for k in g.features:
            index = index * self.features[k].size + self.features[k].of(word, self.fields)
        return index

    def ranked(self) -> list[Group]:
        """Groups in an order that respects what was seen about insertions at the same place."""
        before: dict[int, set[int]] = {i: set() for i in range(len(self.groups))}
        of = {k: i for i, g in enumerate(self.groups) for k in g.features}
        for a, b in self.order:
            if of[a] != of[b]:
                before[of[b]].add(of[a])
        out: list[int] = []
        while len(out) < len(self.groups):
            ready = [i for i in before if i not in out and before[i] <= set(out)]
            out.append(ready[0] if ready else next(i for i in before if i not in out))
        return [self.groups[i] for i in out]

    def predict(self, word: int) -> Tokens | None:
        edits: list[tuple[int, int, Tokens]] = []
        for g in self.ranked():
            outcome = g.edits[self.joint(g, word)]
            if outcome is None:
                return None
            edits += [(s, e, new) for (s, e), new in zip(g.spans, outcome, strict=True) if new != self.base_tokens[s:e] or s == e]
        return apply(self.base_tokens, edits)

    def agrees(self, word: int, r: Reading | None) -> bool:
        tokens = self.predict(word)
        if tokens is None or r is None:
            return tokens is None and r is None
        second = second_format(tokens)
        if len(tokens) != len(r.tokens):
            return False
        k = 0
        for mine, seen in zip(tokens, r.tokens, strict=True):
            if seen.startswith(MARK):
                value = r.values[k]
                k += 1
                if mine.startswith(MARK):
                    f = self.fields[int(mine[1:])]
                    if f.lexed != seen[1:] or not f.shows(f.raw(word), value, second):
                        return False
                elif mine != literal(seen[1:], value):
                    return False
            elif mine != seen:
                return False
        return True

    def random_word(self) -> int:
        """A random word of the class as far as known: features at mostly legal values, fields at random values."""
        assert self.base is not None
        word = self.spread(self.base.word)
        owned = self.owned
        for b in FREE_BITS:
            if b not in owned and self.random.random() < 0.1:
                word ^= 1 << b
        for f in self.fields:
            if not f.is_float and self.random.random() < 0.1:
                word = f.put(word, self.random.choice((0, 1, (1 << len(f.bits)) - 1)))
        for g in self.groups:
            legal = [i for i, e in enumerate(g.edits) if e is not None]
            if self.random.random() < 0.1 or not legal:
                index = self.random.randrange(len(g.edits))
            else:
                index = self.random.choice(legal)
            for k in reversed(g.features):
                index, case = divmod(index, self.features[k].size)
                word = self.set_feature(word, k, case)
        return word

    @property
    def owned(self) -> set[int]:
        return {b for f in self.fields for b in f.bits} | {f.bit for f in self.features if f.bit >= 0}

    def validate(self, count: int) -> Generator[list[int], list[Answer], set[tuple[int, int]]]:
        """Random words against the prediction. For those that fail: which features interact, by walking from the base to the word."""
        words = [self.random_word() for _ in range(count)] + self.random.sample(self.seeds, min(40, len(self.seeds)))
        answers = yield from self.ask(words)
        wrong = [(w, r) for w, r in zip(words, answers, strict=True) if not self.agrees(w, r)]
        self.checked = len(words)
        self.legal_checked = sum(r is not None for r in answers)
        self.mismatches = [(w, "".join(r.tokens) if r else "refused") for w, r in wrong]
        return (yield from self.explain([w for w, _ in wrong[:12]]))

    def explain(self, words: Sequence[int]) -> Generator[list[int], list[Answer], set[tuple[int, int]]]:
        """Which features interact in words that were predicted wrongly: each is walked to from the base, one feature at a time; where the
        prediction first fails, the steps before are undone one by one."""
        assert self.base is not None
        walks = [self.walk(w) for w in words]
        answers = yield from self.ask([w for _, path in walks for w in path])
        trials: list[int] = []
        owners: list[tuple[int, int]] = []
        at = 0
        for steps, path in walks:
            read = answers[at : at + len(path)]
            at += len(path)
            first = next((i for i, (w, r) in enumerate(zip(path, read, strict=True)) if not self.agrees(w, r)), None)
            if first:
                culprit = steps[first - 1]
                trials += [self.copy_feature(path[first], self.base.word, k) for k in steps[: first - 1]]
                owners += [(min(k, culprit), max(k, culprit)) for k in steps[: first - 1]]
        answers = yield from self.ask(trials)
        return {pair for pair, w, r in zip(owners, trials, answers, strict=True) if self.agrees(w, r)}

    def walk(self, word: int) -> tuple[list[int], list[int]]:
        assert self.base is not None
        path = [self.base.word]
        steps: list[int] = []
        for k, feature in enumerate(self.features):
            if feature.of(word, self.fields) != feature.of(self.base.word, self.fields):
                steps.append(k)
                path.append(self.copy_feature(path[-1], word, k))
        return steps, path

    def copy_feature(self, word: int, source: int, k: int) -> int:
        feature = self.features[k]
        if feature.bit >= 0:
            return (word & ~(1 << feature.bit)) | (source & (1 << feature.bit))
        f = self.fields[feature.field]
        return f.put(word, f.raw(source))

    # -- control --------------------------------------------------------------------------------------------------------------------------

    def find_reuse(self) -> Asking:
        """Which field's operand prints `.reuse` for each of bits 122 to 124, with bit 109 set."""
        assert self.base is not None
        words = [self.base.word | (1 << 109) | (1 << b) for b in (122, 123, 124)]
        answers = yield words
        for b, a in zip((122, 123, 124), answers, strict=True):
            if a.text is None or ".reuse" not in a.text:
                continue
            r = self.read(self.base.word, a)
            if r is None:
                continue
            before = a.text.partition(".reuse")[0]
            count = sum(t.startswith(MARK) for t in lex(before)[0])
            places = [i for i, t in enumerate(r.tokens) if t.startswith(MARK)]
            token = self.label(r)[places[count - 1]] if 0 < count <= len(places) else ""
            if token.startswith(MARK):
                self.reuse[b] = int(token[1:])
            else:
                self.notes.append(f"bit {b} prints .reuse where no field stands: {a.text}")


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
