"""Round trip and text of real code: every unique word of cubins against nvdisasm, and refusals on random words.

    python benchmarks/round_trip.py sm_90a DIR_OR_CUBIN... [--sample N] [--random N] [--per-form N]

For each word: our text is nvdisasm's, and encode(decode(word)) is the word. `--per-form N`: N random legal words of every form of the table.
`--random N`: random words, of which we must refuse exactly those that nvdisasm refuses (those it takes without printing any text are counted apart).
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sassay.errors import SassError
from sassay.isa.probe.elf import code_words
from sassay.isa.probe.oracle import CHUNK, CONTROL_MASK, GOOD_CONTROL, Oracle
from sassay.isa.tables import table
from sassay.isa.tables.forms import PAYLOAD, Form
from sassay.isa.target import target
from sassay.sass.codec import disassemble, encode_one, try_decode


def packed(words: Sequence[int]) -> bytes:
    return b"".join(w.to_bytes(16, "little") for w in words)


def compare(words: Sequence[int], chip: str, label: str) -> None:
    """Counts words that we refuse, whose text differs, and that do not come back."""
    t = target(chip)
    bad: Counter[str] = Counter()
    examples: dict[str, str] = {}
    texts = Oracle(chip.replace("sm_", "SM")).texts(words)
    checked = silent = 0
    for start in range(0, len(words), CHUNK):
        part = words[start : start + CHUNK]
        data = packed(part)
        for i, (got, line) in enumerate(zip(try_decode(data, t), disassemble(data, t), strict=True)):
            text = texts[start + i]
            if not text:
                silent += text == ""
                continue
            checked += 1
            if isinstance(got, SassError):
                key = f"refused: {text.split('.')[0]}"
            elif str(line).rstrip() != text:
                key = f"text: {got.form.partition('+')[0]}"
            else:
                try:
                    key = "" if encode_one(got, t, 16 * i) == part[i] else f"word: {got.form.partition('+')[0]}"
                except SassError as error:
                    key = f"encode: {got.form.partition('+')[0]} {str(error)[:40]}"
            if key:
                bad[key] += 1
                examples.setdefault(key, f"{part[i]:#034x} nvdisasm: {text} | we: {line}")
    print(f"{chip} {label}: {checked} words, {sum(bad.values())} wrong ({silent} legal words without text left out)")
    for key, count in bad.most_common(15):
        print(f"    {count} {key}: {examples[key]}")


def refusals(words: Sequence[int], chip: str, label: str) -> None:
    texts = Oracle(chip.replace("sm_", "SM")).texts(words)
    ours = try_decode(packed(words), target(chip))
    only_we = [w for w, x, g in zip(words, texts, ours, strict=True) if x and isinstance(g, SassError)]
    only_they = [w for w, x, g in zip(words, texts, ours, strict=True) if x is None and not isinstance(g, SassError)]
    silent = sum(x == "" for x in texts)
    print(
        f"{chip} {label}: {len(words)} words, nvdisasm refuses {sum(x is None for x in texts)}; we alone refuse {len(only_we)},"
        f" nvdisasm alone {len(only_they)}; {silent} it takes without text (we refuse those)"
    )
    for w in (*only_we[:4], *only_they[:4]):
        print(f"    {w:#034x}")


def legal_words(form: Form, rng: random.Random, count: int) -> list[int]:
    """Random words of the form: modifiers among its legal ones, numbers at random, idle bits at their default."""
    choices = [[j for j, o in enumerate(g.index) if o >= 0] for g in form.groups]
    out: list[int] = []
    for _ in range(count * 4):
        word = (form.default & PAYLOAD) | form.opcode_bits
        for f in form.fields:
            word = (word & ~f.mask) | f.spread(rng.getrandbits(len(f.bits)))
        for g, legal in zip(form.groups, choices, strict=True):
            for f, case in zip(g.features, g.cases(rng.choice(legal)), strict=True):
                if f.bit >= 0:
                    word = (word & ~(1 << f.bit)) | case << f.bit
                elif case:
                    raws = [r for r, c in f.cases.items() if c == case] or [4]
                    word = (word & ~form.fields[f.field].mask) | form.fields[f.field].spread(rng.choice(raws))
        if form.outcomes(word) is not None:
            out.append((word & ~CONTROL_MASK) | GOOD_CONTROL)
        if len(out) == count:
            break
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chip")
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--per-form", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(1)
    start = time.process_time()
    if options.files:
        words: set[int] = set()
        for path in options.files:
            for cubin in sorted(path.rglob("*.cubin")) if path.is_dir() else [path]:
                words |= code_words(cubin.read_bytes())
        chosen = sorted(words)
        if options.sample and options.sample < len(chosen):
            chosen = rng.sample(chosen, options.sample)
        compare(chosen, options.chip, f"{len(words)} unique words of real code")
    t = table(target(options.chip).chip)
    if options.per_form:
        made = [w for i in range(len(t.names)) for w in legal_words(t.form(i), rng, options.per_form)]
        compare(made, options.chip, f"random legal words of {len(t.names)} forms")
    if options.random:
        refusals([rng.getrandbits(128) for _ in range(options.random)], options.chip, "random words")
        near = []
        for _ in range(options.random):
            word = rng.choice(legal_words(t.form(rng.randrange(len(t.names))), rng, 1) or [0])
            for _ in range(rng.randrange(1, 6)):
                word ^= 1 << rng.randrange(128)
            near.append(word)
        refusals(near, options.chip, "words near legal ones")
    print(f"{time.process_time() - start:.1f} s CPU of ours")


if __name__ == "__main__":
    main()
