"""Words to text and back, against nvdisasm: code that ptxas makes of our own kernels, and random words of every form."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sassay.errors import SassError
from sassay.isa.probe.elf import code_words
from sassay.isa.probe.oracle import CHUNK, GOOD_CONTROL, Oracle
from sassay.isa.tables import table
from sassay.isa.tables.forms import PAYLOAD, Form
from sassay.isa.target import TARGETS, target
from sassay.sass.codec import decode_one, disassemble, encode_one, try_decode
from sassay.sass.model import Instruction
from sassay.sass.text import format_instruction, parse_instruction
from tests.support.oracle import needs_nvdisasm, needs_ptxas, ptxas

CHIPS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")
UNLEARNT = ("BMOV", "DEPBAR", "F2FP", "UF2FP", "UTCQMMA", "UTCOMMA", "UTCIMMA", "UTCHMMA", "SYNCS")
"""Stems with forms that the tables lack (their headers list them)."""
KERNELS = sorted((Path(__file__).parents[1] / "kernels").glob("*.ptx"))


def oracle(chip: str) -> Oracle:
    return Oracle(chip.replace("sm_", "SM"))


@cache
def compiled_words(chip: str) -> list[int]:
    words: set[int] = set()
    for path in KERNELS[::3]:
        text = re.sub(r"(?m)^\.target\s+\S+", f".target {chip}", path.read_text(), count=1)
        text = re.sub(r"(?m)^\.version\s+[78]\.\S+", ".version 9.0", text, count=1)
        words |= code_words(ptxas(text, chip))
    return sorted(words)


def packed(words: list[int]) -> bytes:
    return b"".join(w.to_bytes(16, "little") for w in words)


def check(words: list[int], chip: str) -> None:
    """All words decode to nvdisasm's text and encode back, from the decoded value and from the text alone."""
    t = target(chip)
    texts = oracle(chip).texts(words)
    for i, (word, text, got, line) in enumerate(
        zip(words, texts, try_decode(packed(words), t), disassemble(packed(words), t), strict=True)
    ):
        if text and ("???" in text or "INVALID" in text):
            continue  # undefined enum values: legal to read, not for anyone to write
        assert isinstance(got, Instruction), f"{word:#034x} {text}: {got}"
        assert format_instruction(got).rstrip() == text == str(line).rstrip(), f"{word:#034x}"
        assert encode_one(got, t, 16 * (i % CHUNK)) == word, f"{word:#034x} {text}"


@needs_ptxas
@needs_nvdisasm
@pytest.mark.parametrize("chip", CHIPS)
def test_ptxas_output(chip: str) -> None:
    check(compiled_words(chip), chip)


@needs_ptxas
@pytest.mark.parametrize("chip", CHIPS)
def test_text_alone_is_enough(chip: str) -> None:
    t = target(chip)
    words = random.Random(1).sample(compiled_words(chip), 400)
    for word in words:
        first = decode_one(word, t)
        again = parse_instruction(format_instruction(first, exact=True))
        assert encode_one(again, t) & PAYLOAD == word & PAYLOAD, format_instruction(first)


def legal_word(form: Form, rng: random.Random) -> int | None:
    """A random word of the form: modifiers among its legal ones, numbers at random, idle bits at their default."""
    word = (form.default & PAYLOAD) | form.opcode_bits
    for f in form.fields:
        word = (word & ~f.mask) | f.spread(rng.getrandbits(len(f.bits)))
    for g in form.groups:
        joint = rng.choice([j for j, o in enumerate(g.index) if o >= 0])
        for f, case in zip(g.features, g.cases(joint), strict=True):
            if f.bit >= 0:
                word = (word & ~(1 << f.bit)) | case << f.bit
            else:
                field = form.fields[f.field]
                raws = [r for r in (*f.cases, *(rng.getrandbits(len(field.bits)) for _ in range(20))) if f.case(r) == case]
                if raws:
                    word = (word & ~field.mask) | field.spread(rng.choice(raws))
    return word | GOOD_CONTROL if form.outcomes(word) is not None else None


def random_legal(chip: str, per_form: int, every: int, seed: int) -> list[int]:
    t = table(target(chip).chip)
    rng = random.Random(seed)
    words = []
    for i in range(seed % every, len(t.names), every):
        words += [w for _ in range(per_form) if (w := legal_word(t.form(i), rng)) is not None]
    return words


@needs_nvdisasm
@pytest.mark.parametrize("chip", CHIPS)
def test_random_legal_words(chip: str) -> None:
    check(random_legal(chip, 3, 4, 7), chip)


@needs_nvdisasm
@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
def test_random_legal_words_of_every_form(chip: str) -> None:
    check(random_legal(chip, 200, 1, 5), chip)


@needs_nvdisasm
@pytest.mark.parametrize("chip", CHIPS)
def test_refusals_are_nvdisasms(chip: str) -> None:
    """Random words, half of them near legal ones: we refuse what nvdisasm refuses. It takes some words without printing any text; those we
    refuse."""
    rng = random.Random(11)
    words = [rng.getrandbits(128) for _ in range(2000)]
    for word in random_legal(chip, 2, 4, 3):
        for _ in range(rng.randrange(1, 5)):
            word ^= 1 << rng.randrange(128)
        words.append(word)
    texts = oracle(chip).texts(words)
    for word, text, got in zip(words, texts, try_decode(packed(words), target(chip)), strict=True):
        if isinstance(got, SassError) and text and ("???" in text or "INVALID" in text or text.split(".")[0].split(" ")[-1] in UNLEARNT):
            continue
        assert isinstance(got, SassError) == (not text), f"{word:#034x} nvdisasm: {text!r}, we: {got}"


@pytest.mark.parametrize("chip", CHIPS)
def test_table_says_where_it_comes_from(chip: str) -> None:
    header = table(chip).header
    assert header["tool"]["name"] == "nvdisasm" and len(header["tool"]["sha256"]) == 64
    assert header["chip"] == chip


def test_every_target_has_a_table() -> None:
    assert {t.chip for t in TARGETS.values()} == set(CHIPS)


def test_array_input_and_bad_lengths() -> None:
    t = target("sm_90a")
    word = encode_one(parse_instruction("IMAD R1, R2, R3, R4"), t)
    array = np.array([[word & (1 << 64) - 1, word >> 64]], dtype=np.uint64)
    assert disassemble(array, t) == ["IMAD R1, R2, R3, R4"]
    with pytest.raises(SassError):
        disassemble(b"123", t)


@pytest.mark.parametrize(
    "text",
    ["IMAD R1, R2, R3", "IMAD.NOPE R1, R2, R3, R4", "FROB R1", "FADD R1, R2, R3, R4", "ISETP.GT R1, R2, R3", "MOV R1, 0x123456789"],
)
def test_no_form_is_an_error(text: str) -> None:
    with pytest.raises(SassError):
        encode_one(parse_instruction(text), target("sm_90a"))


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("IMAD.WIDE.U33 R2, R7, 0x2, R2", "'IMAD.WIDE.U32 R2, R7, 0x2, R2'"),
        ("FADD R1, R2, R3, R4", "'FADD R1, R2, R3'"),
        ("@!P3 ISETP.GT P0, PT, R1, R2, PT", "'@!P3 ISETP.GT.AND P0, PT, R1, R2, PT'"),
        ("IADD R1, R2, R3", "IADD3"),
    ],
)
def test_errors_name_the_nearest_spellings(text: str, near: str) -> None:
    with pytest.raises(SassError) as caught:
        encode_one(parse_instruction(text), target("sm_90a"))
    assert near in str(caught.value)


def test_aliases_read_both_ways() -> None:
    t = target("sm_90a")
    plain = encode_one(parse_instruction("IMAD R1, R2, 0x4, RZ"), t)
    assert format_instruction(decode_one(plain, t)) == "IMAD.SHL R1, R2, 0x4, RZ"
    assert encode_one(parse_instruction("IMAD.SHL R1, R2, 0x4, RZ"), t) == plain


def test_special_cases_do_not_leak_between_shapes() -> None:
    """RZ as an index is a form of its own; the encoder's memory of shapes must keep them apart."""
    t = target("sm_90a")
    for text in ("LDC R0, c[0x0][RZ]", "LDC R0, c[0x0][R2]", "LDS R1, [R2]", "LDS R1, [R2+0x10]", "LDS R1, [RZ]", "LDS R1, [0x10]"):
        try:
            word = encode_one(parse_instruction(text), t)
        except SassError:
            continue
        assert format_instruction(decode_one(word, t)) == text
