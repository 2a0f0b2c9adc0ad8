"""The codec against nvdisasm on random words: legal ones of every form, and uniformly random ones, which both must refuse alike.

    python benchmarks/random_words.py CHIP [--legal 200] [--random 1000000] [--seed 1]

A legal word counts as right when our text is nvdisasm's and encoding what we decoded gives the word back. Words with undefined enum values
(`???`, `INVALID`), which nobody is to write, count apart.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from sassay.errors import SassError  # noqa: E402
from sassay.isa.probe.oracle import CHUNK, GOOD_CONTROL, Oracle  # noqa: E402
from sassay.isa.tables import table  # noqa: E402
from sassay.isa.target import target  # noqa: E402
from sassay.sass.codec import disassemble, encode_one, try_decode  # noqa: E402
from sassay.sass.model import Instruction  # noqa: E402
from tests.tables.test_round_trip import legal_word  # noqa: E402


def packed(words: list[int]) -> bytes:
    return b"".join(w.to_bytes(16, "little") for w in words)


def legal(chip: str, oracle: Oracle, count: int, rng: random.Random) -> None:
    """`count` legal words of every form: text and round trip."""
    t, forms = target(chip), table(target(chip).chip)
    right, odd, wrong = 0, 0, Counter[str]()
    drawn = [(name, w) for i, name in enumerate(forms.names) for _ in range(count) if (w := legal_word(forms.form(i), rng)) is not None]
    for start in range(0, len(drawn), CHUNK):
        names, words = zip(*drawn[start : start + CHUNK], strict=True)
        texts = oracle.texts(words)
        data = packed(list(words))
        for k, (name, word, text, got, line) in enumerate(zip(names, words, texts, try_decode(data, t), disassemble(data, t), strict=True)):
            if text and ("???" in text or "INVALID" in text):
                odd += 1
                continue
            try:
                good = isinstance(got, Instruction) and str(line).rstrip() == text and encode_one(got, t, 16 * k) == word
            except SassError:
                good = False
            right += good
            if not good:
                wrong[name] += 1
    total = right + sum(wrong.values())
    print(f"{chip}: {total} legal words of {len(forms.names)} forms: {sum(wrong.values())} wrong, in {len(wrong)} forms; {odd} with undefined values")
    print("  " + ", ".join(f"{n} {c}" for n, c in wrong.most_common(12)))


def refusals(chip: str, oracle: Oracle, count: int, seed: int) -> None:
    """Uniformly random words, half of them with a legal control field: refused here and there."""
    rng = np.random.default_rng(seed)
    ours = theirs = neither = 0
    kinds: Counter[str] = Counter()
    for start in range(0, count, CHUNK):
        n = min(CHUNK, count - start)
        raw = rng.integers(0, 1 << 64, (n, 2), dtype=np.uint64)
        words = [int(a) | int(b) << 64 for a, b in raw.tolist()]
        words[::2] = [w & ~(0x1FFFFF << 105) | GOOD_CONTROL for w in words[::2]]
        for text, got in zip(oracle.texts(words), try_decode(packed(words), target(chip)), strict=True):
            refused = isinstance(got, SassError)
            if refused == (not text):
                neither += 1
            elif refused:
                theirs += 1
                kinds["undefined value" if text and ("???" in text or "INVALID" in text) else str(text).split(" ")[0 if text[0] != "@" else 1]] += 1
            else:
                ours += 1
    print(f"{chip}: {count} random words: {neither} alike, {theirs} that only nvdisasm takes, {ours} that only we take")
    print("  " + ", ".join(f"{n} {c}" for n, c in kinds.most_common(10)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chip")
    parser.add_argument("--legal", type=int, default=200)
    parser.add_argument("--random", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    oracle = Oracle(options.chip.replace("sm_", "SM"))
    legal(options.chip, oracle, options.legal, random.Random(options.seed))
    refusals(options.chip, oracle, options.random, options.seed)


if __name__ == "__main__":
    main()
