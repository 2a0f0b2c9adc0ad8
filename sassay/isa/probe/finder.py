"""Finds the fields of a class and what else decides its text: single bits, and special values of fields."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable

from sassay.isa.probe.parts import FREE_BITS, Answer, Asking, Feature, LearntField, Reading, hunks, last_hex
from sassay.isa.probe.reader import Reader
from sassay.isa.tables.lexer import MARK, SPECIAL, Value

GUARD = 7 << 12
FILE_BITS = {"R": 8, "P": 3, "UP": 3}
"""Widths of the fields of each register file, the same on every chip asked: a field found narrower has not been seen whole."""


class Finder(Reader):
    """The first half of the learning: words to look at, fields, features."""

    def gather(self) -> Generator[list[int], list[Answer], list[Reading]]:
        """Legal words around the seeds, texts without undefined enum values first, words with many visible numbers first."""
        words = list(self.seeds[:24])
        for _ in range(140):
            word = self.random.choice(self.seeds)
            density = self.random.choice((0.03, 0.1, 0.25, 0.5))
            for b in FREE_BITS:
                if self.random.random() < density:
                    word ^= 1 << b
            if self.random.random() < 0.5:
                word = (word & ~GUARD) | self.random.randrange(6) << 12
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
        steps: dict[int, Counter[int]] = defaultdict(Counter)
        for base, answers in flips:
            marks = [t[1:] for t in base.tokens if t.startswith(MARK)]
            movers: dict[int, list[int]] = defaultdict(list)
            for b, other in answers.items():
                if other is None or other.tokens != base.tokens:
                    continue
                moved = [k for k, (u, v) in enumerate(zip(base.values, other.values, strict=True)) if u != v]
                step = pair_step(base, other, moved)
                if step:
                    steps[b][step] += 1
                    moved = moved[:1]
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
            count = len(self.fields)
            self.add_field(bits, kinds, deltas, [s for b in bits for s in samples[b]])
            narrow = [f for f in self.fields[count:] if len(f.bits) != FILE_BITS.get(f.kind, len(f.bits))]
            if narrow:
                self.problem = f"a field {narrow[0].kind} of the bits {narrow[0].bits}"
            found = sum((steps[b] for b in bits), Counter[int]())
            for f in self.fields[count:] if found else ():
                self.fields.append(LearntField(f.kind, f.bits, f.weights, f.offset + found.most_common(1)[0][0]))

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
                if neighbour[k] != i and not f.paired:
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
        return sorted({5, 6, 0x11, (1 << n) - 2} | {(1 << j) - 1 for j in range(n + 1)} | {1 << j for j in range(n)})

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


def pair_step(base: Reading, other: Reading, moved: list[int]) -> int:
    """By how much the second of two registers that moved together stands above the first; 0 where that is not what happened."""
    if len(moved) != 2:
        return 0
    marks = [t[1:] for t in base.tokens if t.startswith(MARK)]
    a, b = moved
    u, v, x, y = base.values[a], base.values[b], other.values[a], other.values[b]
    if marks[a] != marks[b] or marks[a] not in ("R", "UR") or SPECIAL in (u, v, x, y):
        return 0
    assert isinstance(u, int) and isinstance(v, int) and isinstance(x, int) and isinstance(y, int)
    return v - u if v - u == y - x and 0 < v - u <= 8 else 0
