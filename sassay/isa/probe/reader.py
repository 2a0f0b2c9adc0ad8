"""What a learner knows of its class: reads answers, names numbers in texts by their fields, sets fields and features, predicts texts."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Generator, Sequence

from sassay.isa.probe.oracle import GOOD_CONTROL
from sassay.isa.probe.parts import (
    FREE_BITS,
    PAYLOAD,
    Answer,
    Feature,
    Group,
    LearntField,
    Reading,
    Tokens,
    apply,
    literal,
    second_format,
)
from sassay.isa.tables.lexer import MARK, lex


class Reader:
    """State of the learning of one class. `problem` is "" or says what could not be learnt."""

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
        pair = [g for g in self.fields if g.bits == f.bits]
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
            if f.is_register and any(g.value(raw) == 0 or g.value(raw) >= f.top for g in pair):
                continue
            if all((g.kind, g.value(raw)) not in taken for g in pair):
                break
        taken |= {(g.kind, g.value(raw)) for g in pair}
        return raw

    def spread(self, word: int) -> int:
        """`word` with every field at a generic value, all different within a kind."""
        taken: set[tuple[str, int]] = set()
        for f in self.fields:
            if not f.paired:
                word = f.put(word, self.generic(f, taken))
        return word

    def enum_part(self, word: int) -> int:
        for f in self.fields:
            word = f.put(word, 0)
        return word

    @property
    def owned(self) -> set[int]:
        return {b for f in self.fields for b in f.bits} | {f.bit for f in self.features if f.bit >= 0}

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

    def without_clash(self, word: int, i: int) -> int:
        """`word` with fields that have the value of field `i` moved to another, so that numbers in the text can be told apart."""
        mine = self.fields[i]
        values = {f.value(f.raw(word)) for f in self.fields if f.bits == mine.bits}
        for g in self.fields:
            if g.bits != mine.bits and g.lexed == mine.lexed and len(g.bits) > 1 and g.value(g.raw(word)) in values:
                if mine.raw(word) == mine.raw_top() and mine.is_register:
                    continue
                taken = {(h.kind, h.value(h.raw(word))) for h in self.fields}
                word = g.put(word, self.generic(g, taken))
        return word

    def told_apart(self, word: int, g: Group) -> int:
        """`word` with the fields outside the group moved away from the numbers of those in it, which the text must tell apart."""
        of_group = {self.fields[self.features[k].field].bits for k in g.features if self.features[k].field >= 0}
        inside = {i for i, f in enumerate(self.fields) if f.bits in of_group}
        taken = {(self.fields[i].kind, self.fields[i].value(self.fields[i].raw(word))) for i in inside}
        for j, f in enumerate(self.fields):
            if j not in inside and f.is_register and len(f.bits) > 1 and (f.kind, f.value(f.raw(word))) in taken:
                if f.raw(word) != f.raw_top():
                    word = f.put(word, self.generic(f, taken))
        return word

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
