"""Finds the encoding classes of a chip and some legal words of each, by asking for the class of many words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sassay.isa.probe.oracle import Oracle
from sassay.isa.probe.parts import FREE_BITS, PAYLOAD

KEEP = 48
"""Seeds kept a class."""
_BYTES = ((16, 8), (24, 8), (32, 8), (40, 8), (64, 8), (72, 8), (77, 4), (81, 3), (84, 3), (87, 3), (12, 3), (54, 5))


def opcode_bits(opcode: int) -> int:
    return (opcode & 0xFFF) | ((opcode >> 12) << 91)


def opcode_of(word: int) -> int:
    return (word & 0xFFF) | ((word >> 91) & 1) << 12


FREE_MASK = sum(1 << b for b in FREE_BITS)


@dataclass
class Discovery:
    """Classes found: seeds of each by (name, opcode). `asked` counts words."""

    oracle: Oracle
    random: random.Random
    seeds: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    asked: int = 0

    def add(self, words: Sequence[int]) -> int:
        """Asks for the classes of `words`, keeps seeds, and returns how many classes are new."""
        new = 0
        self.asked += len(words)
        for word, refusal in zip(words, self.oracle.classes(words), strict=True):
            if not refusal.opclass:
                continue
            key = (refusal.opclass, opcode_of(word))
            found = self.seeds.get(key)
            if found is None:
                found = self.seeds[key] = []
                new += 1
            if len(found) < KEEP:
                found.append(word & PAYLOAD)
            elif self.random.random() < 0.05:
                found[self.random.randrange(KEEP)] = word & PAYLOAD
        return new

    def fill(self) -> int:
        """Random free bits: uniform, sparse, dense, or with register-like fields at all ones or zero."""
        r = self.random
        word = r.getrandbits(105)
        kind = r.random()
        if kind < 0.2:
            return word & FREE_MASK
        if kind < 0.4:
            word &= r.getrandbits(105)
        elif kind < 0.5:
            word &= r.getrandbits(105) & r.getrandbits(105)
        elif kind < 0.55:
            word |= r.getrandbits(105)
        for low, n in _BYTES:
            z = r.random()
            if z < 0.35:
                word |= ((1 << n) - 1) << low
            elif z < 0.6:
                word &= ~(((1 << n) - 1) << low)
        return word & FREE_MASK

    def plain(self) -> int:
        """Zero but for register-like and mode-like fields, each at zero, all ones or random."""
        r = self.random
        word = 7 << 12
        for low, n in (*_BYTES, (68, 3), (72, 4), (76, 1), (90, 1), (59, 3), (62, 2)):
            word &= ~(((1 << n) - 1) << low)
            word |= r.choice((0, 0, (1 << n) - 1, (1 << n) - 1, r.getrandbits(n))) << low
        return word & FREE_MASK

    def transplant(self, count: int) -> int:
        """Seeds of each class under every opcode one bit away."""
        by_opcode: dict[int, list[int]] = {}
        for (_, opcode), seeds in self.seeds.items():
            by_opcode.setdefault(opcode, []).extend(seeds)
        words = []
        for opcode, seeds in by_opcode.items():
            for b in range(13):
                other = opcode_bits(opcode ^ (1 << b))
                picked = self.random.sample(seeds, min(count, len(seeds)))
                words += [(w & FREE_MASK) | other for w in picked]
        return self.add(words)

    def sweep(self, opcodes: Iterable[int], count: int) -> int:
        fills = (self.fill, self.plain)
        return self.add([opcode_bits(o) | fills[k & 1]() for o in opcodes for k in range(count)])

    def neighbours(self, keys: Iterable[tuple[str, int]], seeds: int, extra: int) -> int:
        """Single flips of some seeds of each class, and words that mix two or three changes."""
        words = []
        for key in keys:
            pool = self.seeds[key]
            for word in self.random.sample(pool, min(seeds, len(pool))):
                words += [word ^ (1 << b) for b in FREE_BITS]
                for _ in range(extra):
                    other = word
                    for _ in range(self.random.randrange(2, 7)):
                        other ^= 1 << self.random.choice(FREE_BITS)
                    words.append(other)
                    low, n = self.random.choice(_BYTES)
                    low2, n2 = self.random.choice(_BYTES)
                    words.append((word | ((1 << n) - 1) << low | ((1 << n2) - 1) << low2) & FREE_MASK | word & ~FREE_MASK)
        return self.add(words)


def discover(oracle: Oracle, known: Sequence[int], seed: int, log: Callable[[str], None]) -> Discovery:
    """All classes that can be found: known words first (compiler output), then sweeps of all opcodes, then the neighbourhood of every class
    until two rounds bring nothing new."""
    d = Discovery(oracle, random.Random(f"{oracle.chip}/{seed}"))
    d.add(known)
    log(f"{len(d.seeds)} classes in compiler output")
    for _ in range(2):
        new = d.sweep(range(8192), 30)
        log(f"sweep: {new} new, {len(d.seeds)} classes, {len({o for _, o in d.seeds})} opcodes")
    quiet = 0
    fresh = set(d.seeds)
    d.transplant(12)
    alive = {o for _, o in d.seeds}
    new = d.sweep((o for o in range(8192) if o not in alive), 160)
    log(f"transplants and dead opcodes: {new} new, {len(d.seeds)} classes, {len({o for _, o in d.seeds})} opcodes")
    for _ in range(12):
        before = set(d.seeds)
        alive = {o for _, o in d.seeds}
        new = d.sweep(alive, 150)
        new += d.neighbours(sorted(fresh), 6, 60)
        poor = [k for k, v in d.seeds.items() if len(v) < 12]
        new += d.neighbours(sorted(poor), 4, 40)
        new += d.transplant(6)
        fresh = set(d.seeds) - before
        log(f"neighbours: {new} new, {len(d.seeds)} classes, {len({o for _, o in d.seeds})} opcodes, {len(poor)} with few seeds")
        quiet = 0 if new else quiet + 1
        if quiet == 2:
            break
    return d
