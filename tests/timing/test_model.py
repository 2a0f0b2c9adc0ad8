"""The timing tables: whole, consistent, and with no silent defaults."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from sassay.errors import SassError, UnsupportedError
from sassay.isa.timing import CHIPS, model
from sassay.sass.model import File, Instruction
from sassay.sass.text import parse_instruction as parse

VECTOR_ONLY = {"udp", "ufp", "umov", "uldc", "voteu", "elect", "ldcu", "s2ur", "depbar"}
"""Classes that read no vector registers."""


def test_every_pair_has_figures() -> None:
    for chip in CHIPS:
        timing = model(chip)
        wanted = {File.R: ("operand", "address"), File.UR: ("operand", "address"), File.P: ("operand", "guard"), File.UP: ("guard",)}
        for file, roles in wanted.items():
            for producer in timing._tables["raw"][file.name]:
                for consumer in timing.classes:
                    if file == File.R and consumer in VECTOR_ONLY:
                        continue
                    for role in roles:
                        schedule, accuse = timing.cell("raw", producer, consumer, file, role)
                        assert 1 <= accuse <= schedule <= 64, (chip, producer, consumer, file, role)
                    for kind in ("war", "waw"):
                        schedule, accuse = timing.cell(kind, producer.partition(".")[0], consumer, file, "")
                        assert 1 <= accuse <= schedule <= 64, (chip, kind, producer, consumer, file)


def test_every_row_names_its_source() -> None:
    for chip in CHIPS:
        section = ""
        for line in files("sassay.isa.timing").joinpath("data", f"{chip}.toml").read_text().splitlines():
            if line.startswith("["):
                section = line
            if re.match(r"\[(raw|war|waw)\.", section) and "=" in line and not line.startswith("#"):
                assert re.search(r'" # \S', line), (chip, section, line)


@pytest.mark.parametrize("chip", CHIPS)
def test_known_figures(chip: str) -> None:
    """Published and probed: 4 within a pipe, 5 across, 13 from a comparison to a guard, 13 out of R2UR."""
    m = model(chip)
    texts = ("LOP3.LUT R0, R1, R2, R3, 0xc0, !PT", "FFMA R0, R1, R2, R3", "ISETP.NE.AND P0, PT, R1, RZ, PT")
    lop, ffma, isetp = [m.classify(parse(text)) for text in texts]
    assert m.raw(lop, lop, File.R) == 4
    assert m.raw(ffma, ffma, File.R) == 4
    assert m.raw(lop, ffma, File.R) == m.raw(ffma, lop, File.R) == 5
    assert m.raw(isetp, ffma, File.P, "guard") == 13
    assert m.raw(isetp, isetp, File.P) == (5 if chip == "sm_120a" else 4)
    assert m.raw(m.classify(parse("R2UR UR4, R2")), m.classify(parse("UIADD3 UR4, UR5, UR6, URZ")), File.UR) == 13


def test_chips_differ_in_double_precision() -> None:
    dfma = parse("DFMA R0, R2, R4, R6")
    assert not model("sm_90a").needs_write_barrier(dfma)
    assert model("sm_90a").raw(model("sm_90a").classify(dfma), model("sm_90a").classify(dfma), File.R) == 8
    for chip in ("sm_100a", "sm_103a", "sm_120a"):
        assert model(chip).needs_write_barrier(dfma)


def test_roles() -> None:
    m = model("sm_90a")
    wide = parse("@P0 IMAD.WIDE R2, R4, R5, R6")
    assert [m.role(wide, p) for p in (-1, 1, 2, 3)] == ["guard", "operand", "operand", "addend"]
    assert m.role(parse("LDG.E R2, desc[UR4][R4.64]"), 1) == "address"
    assert m.role(parse("LDC R2, c[0x3][R4]"), 1) == "bank"
    assert m.cell("raw", "alu", "wide", File.R, "addend_hi") == (3, 3)


def test_nothing_is_guessed() -> None:
    with pytest.raises(UnsupportedError, match="sm_75"):
        model("sm_75")
    with pytest.raises(SassError, match="FROB"):
        model("sm_90a").classify(Instruction("FROB"))
    m = model("sm_90a")
    with pytest.raises(SassError, match="alu -> udp"):
        m.raw(m.classes["alu"], m.classes["udp"], File.R)
