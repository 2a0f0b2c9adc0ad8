"""Cubins as text: byte identity, edits that move what points into code, names, errors with a place."""

from __future__ import annotations

import random
import re

import pytest
from support import kernels, oracle
from support.mutants import mutate_text

from sassay.cubin import read
from sassay.cubin.assembler import assemble
from sassay.cubin.listing import write, write_kernels
from sassay.errors import ErrorList, SassayError, SassError

pytestmark = oracle.needs_tools
FLAGS = [(), ("-O0",), ("-g",), ("-lineinfo",), ("-c",)]
NOP = "    [B------:R-:W-:-:S01]  NOP ;"


def cubin(name: str, *flags: str, chip: str = "sm_90a") -> bytes:
    return oracle.ptxas(kernels.ptx(name), chip, *flags)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_round_trip(flags: tuple[str, ...]) -> None:
    for name in ("saxpy", "block_reduce", "switch_table", "indirect_call"):
        data = cubin(name, *flags)
        listing = write(read(data))
        assert assemble(listing.text) == data, name
        assert assemble(write(read(data), "colon").text) == data, name


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a", "sm_103a", "sm_120a"])
def test_round_trip_of_every_kernel(chip: str) -> None:
    for name in kernels.names():
        for flags in FLAGS:
            data = cubin(name, *flags, chip=chip)
            listing = write(read(data))
            assert listing.complete, (name, flags, listing.warnings[:3])
            assert assemble(listing.text) == data, (name, flags)


def plain(text: str) -> list[str]:
    """A listing without what an insertion may change: address comments, blanks, labels' numbers, how a line table spells a long step."""
    steps: list[str] = []
    for line in re.sub(r"/\*[0-9a-f]+\*/", "", text).splitlines():
        words = line.split()
        if words[:1] == [".line_special"] and len(set(words[1].split("-"))) == 1 and steps[-1].startswith(".line_advance"):
            steps[-1] = f".line_special {steps[-1].split()[1]} {words[2]}"
        else:
            steps.append(" ".join(words))
    names: dict[str, str] = {}
    return re.sub(r"\.L\d+", lambda m: names.setdefault(m[0], f".N{len(names)}"), "\n".join(steps)).splitlines()


@pytest.mark.parametrize("name", ["switch_table", "indirect_call", "block_reduce"])
@pytest.mark.parametrize("flags", [(), ("-lineinfo",)], ids=str)
def test_insertion_moves_everything(name: str, flags: tuple[str, ...]) -> None:
    """Eight NOPs put in keep every reference: the new cubin's text differs from the old one's by them alone."""
    before = write(read(cubin(name, *flags))).text
    lines = before.splitlines()
    at = next(i for i, line in enumerate(lines) if "/*0050*/" in line)
    edited = "\n".join([*lines[:at], *[NOP] * 8, *lines[at:]])
    data = assemble(edited)
    after = read(data).kernel()
    old = read(cubin(name, *flags)).kernel()
    assert len(after.code) == len(old.code) + 128
    assert after.exits == tuple(offset + 128 if offset >= 0x50 else offset for offset in old.exits)
    assert [s.size for s in after.functions if s.name == name] == [len(after.code)]
    now = plain(write(read(data)).text)
    expected = plain(edited)
    first = next(i for i, (a, b) in enumerate(zip(now, expected, strict=True)) if a != b) if now != expected else -1
    assert now == expected, (now[first], expected[first])


def test_insertion_is_read_by_the_tools(tmp_path: oracle.Path) -> None:
    lines = write(read(cubin("switch_table", "-lineinfo"))).text.splitlines()
    at = next(i for i, line in enumerate(lines) if "/*0050*/" in line)
    path = tmp_path / "edited.cubin"
    path.write_bytes(assemble("\n".join([*lines[:at], NOP, *lines[at:]])))
    for tool, flag in (("nvdisasm", "-g"), ("nvdisasm", "-c"), ("cuobjdump", "-elf"), ("cuobjdump", "-res-usage")):
        done = oracle.run_tool(tool, flag, str(path))
        assert done.returncode == 0 and not done.stderr, done.stderr


def test_edit_in_place() -> None:
    data = cubin("saxpy")
    text = write(read(data)).text
    assert "S2R R0, SR_CTAID.X" in text
    changed = read(assemble(text.replace("S2R R0, SR_CTAID.X", "S2R R0, SR_CTAID.Y"))).kernel().code
    original = read(data).kernel().code
    different = [at for at in range(0, len(original), 16) if original[at : at + 16] != changed[at : at + 16]]
    assert len(changed) == len(original) and len(different) == 1


def test_names() -> None:
    head = ".target sm_90a\n"
    named = head + ".reg acc R[64:95]\n.reg tid R5\n.const n c[0x0][0x228]\n.const four 0x4\nIMAD acc[3], tid, four, acc\nLDC acc[1], n\n"
    assert assemble(named) == assemble(head + "IMAD R67, R5, 0x4, R64\nLDC R65, c[0x0][0x228]\n")
    for bad in (".reg acc R[64:95]\nIMAD acc[32], RZ, RZ, RZ", ".reg c R5", ".reg x R[9:3]", ".reg x R1\n.reg x R2", ".const n 0x5\nMOV R0, n[1]"):
        with pytest.raises(SassError):
            assemble(head + bad)


def test_bare_code_and_labels() -> None:
    data = assemble(".target sm_90a\nstart:\n[B------:R-:W-:Y:S05] BRA `(start) ;\n[B------:R-:W-:-:S05] EXIT ;\n")
    assert len(data) == 32
    assert "BRA 0x0" in oracle.disassemble_words(data, "SM90a")[0]


def test_kernel_only_listing() -> None:
    data = cubin("saxpy")
    listing = write_kernels(read(data), ["saxpy"])
    assert assemble(listing.text) == read(data).kernel().code


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (".target sm_90a\n\n  IADD3 R0, R1, R2!, R3 ;", 3, 17),
        (".target sm_90a\nNOP\nBRA `(nowhere)", 3, 1),
        (".target sm_90a\nx:\nx:\nNOP", 3, 1),
        (".target sm_1", 1, 1),
        ("NOP", 1, 1),
        (".target sm_90a\n.section 0 \"\"", 2, 1),
        (".target sm_90a\n.cubin abi=1\nNOP", 3, 1),
    ],
)
def test_errors_name_their_place(text: str, line: int, column: int) -> None:
    with pytest.raises(SassayError) as caught:
        assemble(text, "k.sass")
    assert str(caught.value).startswith(f"k.sass:{line}:{column}: error: ")


def test_several_errors_at_once() -> None:
    with pytest.raises(ErrorList) as caught:
        assemble(".target sm_90a\nFOO!\nNOP\nBAR!\n", "k.sass")
    assert [error.location.line for error in caught.value.errors if error.location] == [2, 4]


def test_a_word_that_is_no_instruction_is_kept_and_reported() -> None:
    data = bytearray(cubin("saxpy"))
    code = read(bytes(data)).kernel().code
    at = bytes(data).index(code)
    data[at + 16 : at + 32] = b"\xff" * 15 + b"\x00"
    listing = write(read(bytes(data)))
    assert not listing.complete and "saxpy+0x10" in listing.warnings[0]
    assert assemble(listing.text) == data


def fuzz(count: int, seed: int) -> tuple[int, int]:
    rng = random.Random(seed)
    sources = [write(read(cubin(name, *flags))).text for name, flags in (("saxpy", ()), ("saxpy", ("-lineinfo",)), ("vector_add", ()))]
    made = refused = 0
    for _ in range(count):
        try:
            assemble(mutate_text(rng.choice(sources), rng))
            made += 1
        except SassayError:
            refused += 1
    return made, refused


def test_mutated_texts() -> None:
    made, refused = fuzz(400, 1)
    assert made > 10 and refused > 10


@pytest.mark.slow
def test_many_mutated_texts() -> None:
    fuzz(20000, 2)
