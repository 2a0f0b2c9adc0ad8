"""Builds a chip's table from nothing: discover the classes, learn each, ask for legal control values, write.

Compiler output (cubins) serves for default bits, for the mark `seen` and as seeds; without any, a table can still be built.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sassay.isa.probe.canon import blank_setting, canonical, common_setting
from sassay.isa.probe.discover import discover
from sassay.isa.probe.learn import ClassLearner
from sassay.isa.probe.oracle import CHUNK, OPEX_BITS, OPEX_MASK, Oracle, OracleError
from sassay.isa.probe.parts import FREE_BITS, PAYLOAD, Answer, Asking
from sassay.isa.probe.write import write_table
from sassay.isa.tables.forms import Form
from sassay.isa.tables.lexer import MARK

TRIES = 8
Key = tuple[str, int]


@dataclass
class Builder:
    """`chip` as in targets ("sm_90a"); `seed` makes the random choices; `words` of compiler output, `sources` says in words whence."""

    chip: str
    seed: int
    words: Sequence[int] = ()
    sources: str = ""
    only: frozenset[str] = frozenset()
    oracle: Oracle = field(init=False)
    started: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.oracle = Oracle(self.chip.replace("sm_", "SM"))

    def log(self, message: str) -> None:
        print(f"{self.chip} {time.time() - self.started:5.0f}s {message}", flush=True)

    def build(self, path: Path) -> list[ClassLearner]:
        found = discover(self.oracle, self.words, self.seed, self.log).seeds
        keys = sorted(k for k in found if not self.only or k[0] in self.only)
        learners = self.learn({k: found[k] for k in keys})
        good = [x for x in learners if not x.problem and not x.mismatches]
        for x in learners:
            if x.problem or x.mismatches:
                self.log(f"{x.name}: {x.problem or f'{len(x.mismatches)} of {x.checked} wrong'}")
        self.log(f"{len(good)} of {len(learners)} classes learnt; {self.oracle.words} words asked")
        built = {"seed": self.seed, "compiler_output": {"words": len(self.words), "of": self.sources}}
        head = {"chip": self.chip, "tool": self.tool(), "built": built, "unlearnt": sorted(x.name for x in learners if x not in good)}
        write_table(path, head, self.forms(good))
        return learners

    def tool(self) -> dict[str, str]:
        return {"name": "nvdisasm", "version": self.oracle.version(), "sha256": self.oracle.digest(), "asked": self.oracle.chip}

    # -- learning --------------------------------------------------------------------------------------------------------------------------

    def learn(self, seeds: dict[Key, list[int]]) -> list[ClassLearner]:
        """Runs all learners in step, so that each round is one pass over nvdisasm. One that fails starts again with other random choices."""
        done: dict[Key, ClassLearner] = {}
        running: list[tuple[Key, int, ClassLearner, Asking, list[int]]] = []

        def start(key: Key, attempt: int) -> None:
            learner = ClassLearner(key[0], key[1], seeds[key], self.seed * 100 + attempt)
            asking = learner.run()
            running.append((key, attempt, learner, asking, next(asking)))

        for key in seeds:
            start(key, 0)
        round_ = 0
        while running:
            round_ += 1
            batch, running = running, []
            answers = iter(self.answers([w for *_, words in batch for w in words], [key[0] for key, *_, words in batch for _ in words]))
            for key, attempt, learner, asking, words in batch:
                reply = [next(answers) for _ in words]
                try:
                    running.append((key, attempt, learner, asking, asking.send(reply)))
                except (StopIteration, IndexError, KeyError, ValueError, AssertionError) as end:
                    if not isinstance(end, StopIteration):
                        learner.problem = f"{type(end).__name__} {end}"
                    failed = bool(learner.problem or learner.mismatches)
                    best = done.get(key)
                    if best is None or not failed or (not learner.problem and len(learner.mismatches) < len(best.mismatches)):
                        done[key] = learner
                    if failed and attempt + 1 < TRIES and learner.problem != "no legal word":
                        start(key, attempt + 1)
            if round_ % 5 == 0:
                self.log(f"round {round_}: {len(running)} classes at work")
        return [done[key] for key in sorted(done)]

    def answers(self, words: list[int], names: list[str]) -> list[Answer]:
        """The class of each word, and the text of those that are of the class named beside them."""
        out = [Answer(refusal.opclass, None, 0) for refusal in self.oracle.classes(words)]
        own = [i for i, answer in enumerate(out) if answer.opclass == names[i]]
        for place, (i, text) in enumerate(zip(own, self.oracle.texts([words[i] for i in own]), strict=True)):
            out[i] = Answer(names[i], text, 16 * (place % CHUNK))
        return out

    # -- the rest of a form ----------------------------------------------------------------------------------------------------------------

    def forms(self, learners: list[ClassLearner]) -> list[Form]:
        met: dict[str, list[int]] = defaultdict(list)
        for word, refusal in zip(self.words, self.oracle.classes(self.words), strict=True):
            met[refusal.opclass].append(word & PAYLOAD)
        defaults = {x.name: common_setting(x, met[x.name]) for x in learners if met.get(x.name)}
        habits = idle_habits(learners, defaults)
        control = self.control(learners)
        out = []
        for i, x in enumerate(learners):
            default = defaults[x.name] if x.name in defaults else blank_setting(x, habits)
            form = canonical(x, default, *control[i], len(met.get(x.name, ())))
            wrong = sum(not says_the_same(x, form, x.random_word()) for _ in range(60))
            if wrong:
                raise OracleError(f"{x.name}: the form disagrees with the learner on {wrong} of 60 words")
            out.append(form)
        return out

    def control(self, learners: list[ClassLearner]) -> list[tuple[int, tuple[int, int]]]:
        """For each class: the mask of its legal values of bits 105..109 and 122..124, and of its legal write and read barriers."""
        words = []
        for x in learners:
            assert x.base is not None
            base = x.base.word
            words += [(base & ~OPEX_MASK) | sum(((v >> i) & 1) << b for i, b in enumerate(OPEX_BITS)) for v in range(256)]
            words += [(base & ~(7 << 110)) | v << 110 for v in range(8)]
            words += [(base & ~(7 << 113)) | v << 113 for v in range(8)]
        legal = [t is not None for t in self.oracle.texts(words)]
        out = []
        for i in range(len(learners)):
            part = legal[272 * i : 272 * (i + 1)]
            out.append((mask(part[:256]), (mask(part[256:264]), mask(part[264:]))))
        return out


def says_the_same(learner: ClassLearner, form: Form, word: int) -> bool:
    """Whether form and learner give the same text, numbers in it compared by value."""
    mine, theirs = form.tokens(word), learner.predict(word)
    if mine is None or theirs is None:
        return mine is None and theirs is None

    def number(token: str) -> str:
        if token[0] == "$":
            f = form.fields[int(token[1:])]
            return f"{f.kind}{f.value(f.raw(word))}"
        if token[0] == MARK:
            g = learner.fields[int(token[1:])]
            return f"{g.kind}{g.raw(word) if g.is_float else g.value(g.raw(word))}"
        return token

    return list(map(number, mine)) == list(map(number, theirs))


def mask(flags: Sequence[bool]) -> int:
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def idle_habits(learners: Sequence[ClassLearner], defaults: dict[str, int]) -> dict[int, int]:
    """For each bit: its most frequent value in compiler output among the classes whose text it does not touch."""
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for x in learners:
        if x.name in defaults:
            owned = x.owned
            for b in FREE_BITS:
                if b not in owned:
                    votes[b][(defaults[x.name] >> b) & 1] += 1
    return {b: int(votes[b][1] > votes[b][0]) for b in FREE_BITS}
