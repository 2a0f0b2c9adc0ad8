"""Learns one encoding class from nvdisasm's answers.

The text of a class is taken to be a fixed row of tokens (the base) in which *fields* drive numbers and *groups* of features drive everything
else. A feature is a single bit, or the special case a field is in (a register field that says RZ, an immediate that is a power of two). Each
group edits spans of the base as a function of its own features alone, or makes the word illegal for the class. What interacts is found by
changing features one and two at a time, then by counterexamples among random words; groups are enumerated in full.

`ClassLearner.run` is a generator: it yields lists of words and is sent back their answers, so that one pass over nvdisasm serves all classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence
from itertools import product

from sassay.isa.probe.finder import Finder
from sassay.isa.probe.parts import Answer, Asking, Group, Hunks, Reading, Tokens, apply, hunks, overlap
from sassay.isa.tables.lexer import MARK, lex

MAX_GROUP = 1 << 17


class ClassLearner(Finder):
    """Learns one class; after `run` is exhausted, `problem` is "" or says what could not be learnt."""

    def run(self) -> Asking:
        pool = yield from self.gather()
        if not pool:
            self.problem = "no legal word"
            return
        flips = yield from self.flip(pool)
        self.find_fields(flips)
        if self.problem:
            return
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
