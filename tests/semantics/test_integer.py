"""Integer operations against plain Python integers: each case is an instruction's text and the rule it must follow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassay.errors import SassError
from sassay.sass.meaning import Access
from semantics.run import compiled, run, words

M = 0xFFFFFFFF
M64 = (1 << 64) - 1


def s32(x: int) -> int:
    return x - (1 << 32) if x >> 31 & 1 else x


def s64(x: int) -> int:
    return x - (1 << 64) if x >> 63 & 1 else x


def sN(x: int, n: int) -> int:
    x &= (1 << n) - 1
    return x - (1 << n) if x >> (n - 1) else x


def lea_hi(a: int, c: int, n: int) -> int:
    return ((c << 32 | a) << n >> 32) & M


CASES: list[tuple[str, str, Callable[..., tuple[int, ...] | int]]] = [
    # text, widths of the sources (w: 32, d: 64, p: predicate), rule
    ("IADD3 R1, R2, R3, R4", "www", lambda a, b, c: (a + b + c) & M),
    ("IADD3 R1, P0, P1, R2, R3, R4", "www", lambda a, b, c: ((a + b + c) & M, a + b + c >= 1 << 32, a + b + c >= 2 << 32)),
    ("IADD3 R1, P0, R2, -R3, RZ", "ww", lambda a, b: ((a - b) & M, a >= b)),
    ("IADD3 R1, P0, RZ, -R3, RZ", "w", lambda b: (-b & M, b == 0)),
    ("IADD3 R1, P0, R2, -0x1, RZ", "w", lambda a: ((a - 1) & M, a != 0)),
    ("IADD3.X R1, R2, ~R3, RZ, P0, !PT", "wwp", lambda a, b, p: (a - b - 1 + p) & M),
    ("IADD3.X R1, P2, R2, R3, RZ, P0, !PT", "wwp", lambda a, b, p: ((a + b + p) & M, a + b + p > M)),
    ("IADD3.X R1, P2, P3, R2, R3, R4, !P0, P1", "wwwpp", lambda a, b, c, p, q: (
        (a + b + c + (not p) + q) & M, a + b + c + (not p) + q >= 1 << 32, a + b + c + (not p) + q >= 2 << 32)),
    ("IADD R1, R2, -R3", "ww", lambda a, b: (a - b) & M),
    ("IADD.X R1, R2, R3, P0", "wwp", lambda a, b, p: (a + b + p) & M),
    ("IADD.64 R2, R4, R6", "dd", lambda a, b: (a + b) & M64),
    ("IADD.64 R2, R4, -R6", "dd", lambda a, b: (a - b) & M64),
    ("UIADD3.64 UR2, UP0, UPT, UR4, UR6, URZ", "dd", lambda a, b: ((a + b) & M64, a + b > M64)),
    ("UIADD3 UR2, UPT, UPT, UR4, -UR6, URZ", "ww", lambda a, b: (a - b) & M),
    ("VIADD R1, R2, 0xfffffff", "w", lambda a: (a + 0xFFFFFFF) & M),
    ("IMAD R1, R2, R3, R4", "www", lambda a, b, c: (a * b + c) & M),
    ("IMAD R1, R2, -R3, R4", "www", lambda a, b, c: (c - a * b) & M),
    ("IMAD.IADD R1, R2, 0x1, -R4", "ww", lambda a, c: (a - c) & M),
    ("IMAD.MOV.U32 R1, RZ, RZ, R4", "w", lambda c: c),
    ("IMAD.MOV R1, RZ, RZ, -R4", "w", lambda c: -c & M),
    ("IMAD.SHL.U32 R1, R2, 0x8, RZ", "w", lambda a: a * 8 & M),
    ("IMAD.X R1, RZ, RZ, R4, P0", "wp", lambda c, p: (c + p) & M),
    ("IMAD.X R1, R2, 0x1, ~R4, P0", "wwp", lambda a, c, p: (a - c - 1 + p) & M),
    ("IMAD.WIDE R2, R4, R5, R6", "wwd", lambda a, b, c: (s32(a) * s32(b) + c) & M64),
    ("IMAD.WIDE.U32 R2, R4, R5, R6", "wwd", lambda a, b, c: (a * b + c) & M64),
    ("IMAD.WIDE.U32 R2, P0, R4, R5, R6", "wwd", lambda a, b, c: ((a * b + c) & M64, a * b + c > M64)),
    ("IMAD.WIDE.U32.X R2, P1, R4, R5, R6, P0", "wwdp", lambda a, b, c, p: ((a * b + c + p) & M64, a * b + c + p > M64)),
    ("IMAD.WIDE.U32 R2, R4, R5, RZ", "ww", lambda a, b: a * b),
    ("IMAD.HI.U32 R2, R4, R5, RZ", "ww", lambda a, b: a * b >> 32),
    ("IMAD.HI.U32 R2, R4, R5, R6", "wwd", lambda a, b, c: (a * b + c) >> 32 & M),
    ("IMAD.HI R2, R4, R5, R6", "wwd", lambda a, b, c: (s32(a) * s32(b) + c) >> 32 & M),
    ("LEA R1, P0, R2, R3, 0x4", "ww", lambda a, b: (((a << 4 & M) + b) & M, (a << 4 & M) + b > M)),
    ("LEA R1, -R2, R3, 0x4", "ww", lambda a, b: (b - (a << 4)) & M),
    ("LEA.HI R1, R2, R3, R4, 0x5", "www", lambda a, b, c: (lea_hi(a, c, 5) + b) & M),
    ("LEA.HI R1, -R2, R3, R4, 0x5", "www", lambda a, b, c: (-lea_hi(a, c, 5) + b) & M),
    ("LEA.HI R1, R2, R3, RZ, 0x1f", "ww", lambda a, b: ((a >> 1) + b) & M),
    ("LEA.HI.X R1, R2, R3, R4, 0x2, P0", "wwwp", lambda a, b, c, p: (lea_hi(a, c, 2) + b + p) & M),
    ("LEA.HI.X R1, R2, R3, RZ, 0x2, P0", "wwp", lambda a, b, p: ((a >> 30) + b + p) & M),
    ("LEA.HI.X.SX32 R1, R2, R3, 0x2, P0", "wwp", lambda a, b, p: ((s32(a) >> 30) + b + p) & M),
    ("LEA.HI.SX32 R1, R2, R3, 0x1b", "ww", lambda a, b: ((s32(a) >> 5) + b) & M),
    ("VIMNMX R1, R2, R3, PT", "ww", lambda a, b: min(a, b, key=s32)),
    ("VIMNMX R1, R2, R3, !PT", "ww", lambda a, b: max(a, b, key=s32)),
    ("VIMNMX.U32 R1, PT, PT, R2, R3, !PT", "ww", lambda a, b: max(a, b)),
    ("VIMNMX R1, R2, R3, P0", "wwp", lambda a, b, p: min(a, b, key=s32) if p else max(a, b, key=s32)),
    ("VIMNMX.S16x2 R1, R2, R3, PT", "ww", lambda a, b: (min(sN(a >> 16, 16), sN(b >> 16, 16)) << 16 & M) | (min(sN(a, 16), sN(b, 16)) & 0xFFFF)),
    ("IMNMX.S64 PT, PT, R4, R2, R6, PT, !PT", "dd", lambda a, b: min(a, b, key=s64)),
    ("VIMNMX3 R1, R2, R3, R4, PT", "www", lambda a, b, c: min(a, b, c, key=s32)),
    ("VIMNMX3.U32 R1, R2, R3, R4, !PT", "www", lambda a, b, c: max(a, b, c)),
    ("VIADDMNMX R1, R2, R3, R4, PT", "www", lambda a, b, c: min((a + b) & M, c, key=s32)),
    ("VIADDMNMX.U32 R1, R2, R3, R4, !PT", "www", lambda a, b, c: max((a + b) & M, c)),
    ("IABS R1, R2", "w", lambda a: abs(s32(a)) & M),
    ("IDP.4A.S8.U8 R1, R2, R3, R4", "www", lambda a, b, c: (c + sum(sN(a >> 8 * i, 8) * (b >> 8 * i & 255) for i in range(4))) & M),
    ("IDP.2A.HI.U16.S8 R1, R2, R3, R4", "www", lambda a, b, c: (c + sum((a >> 16 * i & 0xFFFF) * sN(b >> (16 + 8 * i), 8) for i in range(2))) & M),
    ("IDP.2A.LO.S16.U8 R1, R2, R3, R4", "www", lambda a, b, c: (c + sum(sN(a >> 16 * i, 16) * (b >> 8 * i & 255) for i in range(2))) & M),
    # shifts
    ("SHF.L.U32 R1, R2, R3, RZ", "ww", lambda a, n: a << n & M if n < 32 else 0),
    ("SHF.L.U32 R1, R2, 0x8, RZ", "w", lambda a: a << 8 & M),
    ("SHF.L.U32.HI R1, R2, R3, R4", "www", lambda lo, n, hi: (hi << 32 | lo) << min(n, 32) >> 32 & M),
    ("SHF.L.U64.HI R1, R2, R3, R4", "www", lambda lo, n, hi: (hi << 32 | lo) << min(n, 64) >> 32 & M),
    ("SHF.L.W.U32.HI R1, R2, R3, R4", "www", lambda lo, n, hi: (hi << 32 | lo) << (n & 31) >> 32 & M),
    ("SHF.R.W.U32 R1, R2, R3, R4", "www", lambda lo, n, hi: (hi << 32 | lo) >> (n & 31) & M),
    ("SHF.R.U32 R1, R2, R3, R4", "www", lambda lo, n, hi: (hi << 32 | lo) >> min(n, 32) & M),
    ("SHF.R.U64 R1, R2, R3, R4", "www", lambda lo, n, hi: (hi << 32 | lo) >> min(n, 64) & M),
    ("SHF.R.S64 R1, R2, R3, R4", "www", lambda lo, n, hi: s64(hi << 32 | lo) >> min(n, 64) & M),
    ("SHF.R.S32.HI R1, RZ, R3, R4", "ww", lambda n, hi: s32(hi) >> min(n, 32) & M),
    ("SHF.R.U32.HI R1, RZ, R3, R4", "ww", lambda n, hi: hi >> min(n, 32)),
    ("SHF.R.U32.HI R1, RZ, 0x7, R4", "w", lambda hi: hi >> 7),
    ("SHF.R.S64 R1, RZ, 0x1e, R4", "w", lambda hi: s64(hi << 32) >> 30 & M),
    # bits
    ("PRMT R1, R2, 0x7632, R3", "ww", lambda a, b: b & 0xFFFF0000 | a >> 16),
    ("PRMT R1, R2, 0x5410, R3", "ww", lambda a, b: (b & 0xFFFF) << 16 | a & 0xFFFF),
    ("PRMT R1, R2, 0x8880, RZ", "w", lambda a: (a & 255) | (0xFFFFFF00 if a & 0x80 else 0)),
    ("PRMT R1, R2, R3, R4", "www", lambda a, n, b: sum(
        ((255 if (b << 32 | a) >> (8 * (n >> 4 * i & 7) + 7) & 1 else 0) if n >> (4 * i + 3) & 1
         else (b << 32 | a) >> 8 * (n >> 4 * i & 7) & 255) << 8 * i
        for i in range(4))),
    ("PRMT.F4E R1, R2, R3, R4", "www", lambda a, n, b: (b << 32 | a) >> 8 * (n & 3) & M),
    ("PRMT.RC8 R1, R2, R3, R4", "www", lambda a, n, b: (a >> 8 * (n & 3) & 255) * 0x01010101),
    ("PRMT.RC16 R1, R2, R3, R4", "www", lambda a, n, b: (a >> 16 * (n & 1) & 0xFFFF) * 0x10001),
    ("BMSK R1, R2, R3", "ww", lambda a, b: ((1 << min(b, 32)) - 1) << min(a, 32) & M),
    ("BMSK.W R1, R2, R3", "ww", lambda a, b: ((1 << (b & 31)) - 1) << (a & 31) & M),
    ("SGXT R1, R2, R3", "ww", lambda a, n: 0 if n == 0 else sN(a, min(n, 32)) & M),
    ("SGXT.U32 R1, R2, R3", "ww", lambda a, n: a & ((1 << min(n, 32)) - 1)),
    ("SGXT.W.U32 R1, R2, R3", "ww", lambda a, n: a & ((1 << (n & 31)) - 1)),
    ("FLO.U32 R1, R2", "w", lambda a: a.bit_length() - 1 & M),
    ("FLO.U32.SH R1, R2", "w", lambda a: 32 - a.bit_length() if a else M),
    ("FLO R1, R2", "w", lambda a: ((~a & M) if a >> 31 else a).bit_length() - 1 & M),
    ("POPC R1, R2", "w", lambda a: a.bit_count()),
    ("BREV R1, R2", "w", lambda a: int(f"{a:032b}"[::-1], 2)),
    ("LOP3.LUT R1, R2, R3, R4, 0x96, !PT", "www", lambda a, b, c: a ^ b ^ c),
    ("LOP3.LUT R1, R2, R3, R4, 0xe8, !PT", "www", lambda a, b, c: a & b | a & c | b & c),
    ("LOP3.LUT R1, R2, R3, R4, 0xca, !PT", "www", lambda a, b, c: a & b | ~a & M & c),
    ("LOP3.LUT P0, R1, R2, 0xf, RZ, 0xc0, !PT", "w", lambda a: (a & 15 != 0, a & 15)),
    ("LOP3.LUT P0, RZ, R2, R3, RZ, 0xc0, P1", "wwp", lambda a, b, p: a & b != 0 or p),
    ("LOP3.LUT R1, R2, R3, RZ, 0x33, !PT", "ww", lambda a, b: ~b & M),
    ("PLOP3.LUT P0, P1, P2, P3, P4, 0x80, 0xfe", "ppp", lambda a, b, c: (a and b and c, a or b or c)),
    ("SEL R1, R2, 0x7, !P0", "wp", lambda a, p: 7 if p else a),
    ("MOV R1, 0x5", "", lambda: 5),
    # comparisons
    ("ISETP.LT.AND P0, PT, R2, R3, PT", "ww", lambda a, b: s32(a) < s32(b)),
    ("ISETP.LT.U32.AND P0, PT, R2, R3, P4", "wwp", lambda a, b, p: a < b and p),
    ("ISETP.GE.OR P0, P1, R2, R3, P4", "wwp", lambda a, b, p: (s32(a) >= s32(b) or p, s32(a) < s32(b) or p)),
    ("ISETP.NE.XOR P0, P1, R2, R3, !P4", "wwp", lambda a, b, p: ((a != b) ^ (not p), (a == b) ^ (not p))),
    ("ISETP.GE.AND.EX P0, PT, R2, R3, PT, P1", "wwp", lambda a, b, p: p if a == b else s32(a) >= s32(b)),
    ("ISETP.NE.U32.AND.EX P0, PT, R2, R3, PT, P1", "wwp", lambda a, b, p: a != b or p),
    ("ISETP.EQ.U32.AND.EX P0, PT, R2, R3, PT, P1", "wwp", lambda a, b, p: a == b and p),
    ("ISETP.GT.S64.AND P0, PT, R2, R4, PT", "dd", lambda a, b: s64(a) > s64(b)),
    ("UISETP.GE.U64.AND UP0, UPT, UR2, 0x2, UPT", "d", lambda a: a >= 2),
    ("P2R R1, PR, R2, 0x5", "pwp", None),
    ("R2P PR, R1, 0x6", "w", lambda a: (bool(a & 2), bool(a & 4))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kinds", "rule"), [c for c in CASES if c[2] is not None], ids=[c[0] for c in CASES if c[2] is not None])
def test_rule(text: str, kinds: str, rule: Callable[..., tuple[int, ...] | int]) -> None:
    widths = {"w": 32, "d": 64}
    sources = [words(10 + i, width=widths[k]) if k in widths else [i * 7 + j & 3 < 2 for j in range(800)] for i, k in enumerate(kinds)]
    sources = [[bool(v >> (i + 1) & 1) if kinds[i] == "p" else v for v in s] for i, s in enumerate(sources)]
    for i, k in enumerate(kinds):
        if k == "p":
            sources[i] = [bool((j * 2654435761 >> (13 + i)) & 1) for j in range(800)]
    # Equal operands and small amounts must occur too.
    if len(kinds) >= 2 and kinds[:2] in ("ww", "dd"):
        sources[1][::7] = sources[0][::7]
        if any(x in text for x in ("SHF", "BMSK", "SGXT")):
            sources[1][::2] = [v % 70 for v in sources[1][::2]]
    got = run(text, *sources)
    for j in range(len(sources[0]) if sources else 1):
        want = rule(*(s[j] for s in sources))
        want = want if isinstance(want, tuple) else (want,)
        assert tuple(g[j] for g in got) == want, (text, [hex(s[j]) for s in sources], [hex(g[j]) for g in got], [hex(w) for w in want])


def test_predicates_to_register() -> None:
    c = compiled("P2R R1, PR, R2, 0x5")
    assert c.reads == (Access(2, 32), Access(1, 1, 0), Access(1, 1, 2))
    assert run("P2R R1, PR, R2, 0x5", [0xFF00FF], [1], [0]) == [[0xFF00FB]]


@pytest.mark.parametrize("lut", range(256))
def test_every_truth_table(lut: int) -> None:
    a, b, c = 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA
    assert run(f"LOP3.LUT R1, R2, R3, R4, {lut:#x}, !PT", [a], [b], [c]) == [[lut * 0x01010101]]


@pytest.mark.parametrize("text", [
    "IADD3.FOO R1, R2, R3, R4", "FROB R1, R2", "IMAD R1, R2, ~R3, R4", "LOP3.LUT R1, -R2, R3, R4, 0x3c, !PT", "VIMNMX R1, P0, PT, R2, R3, PT",
    "ISETP.LT P0, PT, R2, R3, PT", "MUFU R1, R2", "LEA.HI.64 R2, R4, R6, R8, 0x2", "SHF.L R1, R2, R3, R4",
])  # fmt: skip
def test_unknown_is_an_error(text: str) -> None:
    with pytest.raises(SassError):
        compiled(text)
