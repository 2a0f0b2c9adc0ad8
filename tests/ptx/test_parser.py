"""The parser: how syntax lands in the module, what it refuses and where, and that damaged text gives nothing but our own errors."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from sassay.errors import ErrorList, PtxError, SassayError
from sassay.ptx.ast import (
    AddressOperand,
    BracketOperand,
    FloatOperand,
    Instruction,
    IntOperand,
    LabelOperand,
    ListOperand,
    Module,
    PairOperand,
    RegOperand,
    SymbolOperand,
    VectorOperand,
)  # fmt: skip
from sassay.ptx.parser import parse

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
CORPUS = Path(os.environ.get("SASSAY_CORPUS", Path(__file__).parents[2] / "../shared/corpus"))


def instructions(module: Module, name: str = "k") -> list[Instruction]:
    body = next(f.body for f in module.functions if f.name == name)
    return [s for s in body or [] if isinstance(s, Instruction)]


def body(text: str) -> list[Instruction]:
    registers = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<9>; .reg .v4 .f32 v;"
    return instructions(parse(f"{HEADER}.entry k(.param .u64 x) {{ {registers}\n{text} }}"))


def test_operands() -> None:
    pair, vector, address, negated, tensor = body(
        "setp.lt.and.s32 %p1|%p2, %r1, -3, !%p3; mov.b64 {%r1, _}, %rd1; ld.global.u32 %r1, [%rd2+-8]; mov.f32 v.x, 0f3F800000;"
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];"
    )
    assert isinstance(pair.operands[0], PairOperand) and pair.operands[2] == IntOperand(-3)
    assert isinstance(pair.operands[3], RegOperand) and pair.operands[3].negated
    assert pair.modifiers == ("lt", "and", "s32")
    assert isinstance(vector.operands[0], VectorOperand) and vector.operands[0].elements[1] is None
    assert isinstance(address.operands[1], AddressOperand) and address.operands[1].offset == -8
    assert negated.operands[1] == FloatOperand(0x3F800000, False)
    assert isinstance(negated.operands[0], RegOperand) and negated.operands[0].component == "x"
    assert isinstance(tensor.operands[0], BracketOperand) and len(tensor.operands[0].elements) == 2


def test_constant_expressions() -> None:
    texts = ("(1+2)*3", "010", "0x10", "0b11", "-(7/2)", "1<<4|1", "WARP_SZ")
    values = [i.operands[1] for i in body("".join(f"mov.b32 %r1, {text};" for text in texts))]
    assert values == [IntOperand(v) for v in (9, 8, 16, 3, -3, 17, 32)]


def test_inner_scopes_have_their_own_registers_and_labels() -> None:
    outer, inner, branch, last = body("L: mov.b32 %r1, 1; { .reg .b32 %r1; L: mov.b32 %r1, 2; bra L; } bra L;")
    assert isinstance(outer.operands[0], RegOperand) and isinstance(inner.operands[0], RegOperand)
    assert outer.operands[0].register is not inner.operands[0].register
    assert branch.operands != last.operands and last.operands == (LabelOperand("L"),)


def test_a_name_can_end_in_digits_of_a_range() -> None:
    first, second = body(".reg .b32 a1<3>, a<20>; mov.b32 a10, 1; mov.b32 a19, 1;")
    assert isinstance(first.operands[0], RegOperand) and first.operands[0].register.name == "a10"
    assert isinstance(second.operands[0], RegOperand)


def test_calls_keep_the_order_of_the_text() -> None:
    text = f"""{HEADER}.func (.param .b32 r) f(.param .b32 a);
    .entry k() {{ .reg .b64 %rd1; .param .b32 p, q; proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (q), f, (p); call (q), %rd1, (p), proto; mov.u64 %rd1, f; }}"""
    direct, indirect, address = instructions(parse(text))
    assert [type(o) for o in direct.operands] == [ListOperand, SymbolOperand, ListOperand]
    assert [type(o) for o in indirect.operands] == [ListOperand, RegOperand, ListOperand, LabelOperand]
    assert isinstance(address.operands[1], SymbolOperand)


def test_initialisers() -> None:
    module = parse(f"""{HEADER}
    .global .align 8 .u16 a[2][3] = {{ {{1, 2}}, {{-1}} }};
    .global .f32 f[2] = {{1.5, 0f40000000}};
    .global .u64 p[2] = {{a+2, generic(a)+4}};
    .const .b8 open[] = {{1, 2, 3}};
    .global .b8 bytes[2] = {{0xff(a), 0xff00(a)}};""")
    a, f, p, opened, masked = module.variables
    assert a.init == bytes([1, 0, 2, 0, 0, 0, 255, 255, 0, 0, 0, 0]) and a.align == 8
    assert f.init == bytes.fromhex("0000c03f00000040")
    assert p.relocations == ((0, "a", 2, ""), (8, "a", 4, "generic"))
    assert opened.size == 3 and opened.dims == (3,)
    assert masked.relocations == ((0, "a", 0, "mask:0xff"), (1, "a", 0, "mask:0xff00"))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("mov.b32 %r99, 1;", 5, "unknown symbol '%r99'"),
        ("bra nowhere;", 5, "undefined label 'nowhere'"),
        ("@%r1 ret;", 5, "not a predicate"),
        ("mov.b32 %r1 1;", 5, "expected ',' or ';'"),
        ("L: L: ret;", 5, "duplicate definition of 'L'"),
        (".reg .b32 %r<9>;", 5, "duplicate definition"),
        (".bogus 3;", 5, "unknown directive '.bogus'"),
        ("mov.b32 %r1, 1/0;", 5, "division by zero"),
        ("call nothing;", 5, "unknown symbol 'nothing'"),
        ("mov.b32 %r1, %tid.q;", 5, "no component"),
    ],
)
def test_errors_name_the_place(text: str, line: int, words: str) -> None:
    with pytest.raises(PtxError, match=re.escape(words)) as caught:
        parse(f"{HEADER}.entry k() {{ .reg .b32 %r<9>;\n{text} }}", "a.ptx")
    assert caught.value.location is not None and caught.value.location.line == line
    assert str(caught.value).startswith(f"a.ptx:{line}:")


def test_several_errors_in_one_run_in_order() -> None:
    with pytest.raises(ErrorList) as caught:
        parse(f"{HEADER}.entry k() {{ bra away;\n mov.b32 %r1, 1;\n ret; }}\n.bogus;\n")
    assert [e.location.line for e in caught.value.errors if e.location] == [4, 5, 7]


@pytest.mark.parametrize(
    "text",
    ["", ".version 9.6\n.target sm_90", ".version 8.0\n.target gfx90", ".target sm_90", HEADER + ".entry k() {", HEADER + "/*", HEADER + "`"],
)
def test_broken_modules(text: str) -> None:
    with pytest.raises(PtxError):
        parse(text)


def corpus_files(step: int) -> list[Path]:
    files = sorted(CORPUS.glob("**/*.ptx"))
    if not files:
        pytest.skip("no corpus")
    return files[::step]


def test_corpus_sample_is_accepted() -> None:
    for path in corpus_files(25):
        parse(path.read_text(), str(path))


@pytest.mark.slow
def test_corpus_is_accepted() -> None:
    for path in corpus_files(1):
        parse(path.read_text(), str(path))


INSERTS = [*"{}[]();:,.@%|!-+<>\"'\\0129xUfd_ \n", "::", ".reg", "99999999999999999999", "0f", "\x00", "\u00e9"]


def mutate(text: str, rng: random.Random) -> str:
    """Some small damage: characters, tokens or spans dropped, doubled, swapped or replaced."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(text)), rng.choice((1, 1, 2, 5, 40))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + text[at + length :]
        elif kind == 1:
            text = text[:at] + text[at : at + length] * 2 + text[at + length :]
        elif kind == 2:
            text = text[:at] + rng.choice(INSERTS) + text[at + 1 :]
        else:
            other = rng.randrange(len(text))
            text = text[:at] + text[other : other + length] + text[at:]
    return text or " "


def run_fuzz(count: int, seed: int) -> None:
    rng = random.Random(seed)
    sources = [path.read_text() for path in corpus_files(6)]
    sources = [text for text in sources if len(text) < 20_000]
    for _ in range(count):
        try:
            parse(mutate(rng.choice(sources), rng))
        except SassayError as error:
            assert str(error)


def test_damaged_text_gives_only_our_errors() -> None:
    run_fuzz(150, 1)


@pytest.mark.slow
def test_damaged_text_gives_only_our_errors_at_length() -> None:
    run_fuzz(int(os.environ.get("SASSAY_FUZZ", "2000")), 2)
