"""Single-instruction cases: instruction, inputs, expected result, source.

Expected values are literals from the ISA's text or come from `reference`; sources name the section of the PTX ISA they follow. Operands are %a, %b,
%c, %e, the result %d; values are the bits of their types; `nan` as an expected value means any NaN of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import number_formats as ref
from number_formats import FORMATS, clamp, encode, number, signed


@dataclass(frozen=True)
class Case:
    text: str
    result: str
    sources: tuple[str, ...]
    inputs: tuple[int, ...]
    expected: int | str
    source: str


Rows = Iterable[tuple[int, ...]]


def bits_of(type_: str) -> int:
    return {"pred": 1}.get(type_) or int("".join(ch for ch in type_.split("x")[0].replace("bf", "") if ch.isdigit())) * (2 if "x2" in type_ else 1)


def make(text: str, result: str, sources: str, rows: Rows, function: Callable[..., int | str], source: str) -> list[Case]:
    types, mask = tuple(sources.split()), (1 << bits_of(result)) - 1
    out = []
    for row in rows:
        inputs = tuple(v & ((1 << bits_of(t)) - 1) for v, t in zip(row, types, strict=True))
        value = function(*inputs)
        out.append(Case(text, result, types, inputs, value & mask if isinstance(value, int) else value, source))
    return out


def edges(w: int) -> list[int]:
    return [0, 1, (1 << w - 1) - 1, 1 << w - 1, (1 << w) - 1, 0x5A5A5A5A5A5A5A5A & (1 << w) - 1]


def pairs(w: int) -> list[tuple[int, int]]:
    low, high, ones = 1 << w - 1, (1 << w - 1) - 1, (1 << w) - 1
    return [(0, 0), (high, 1), (low, ones), (ones, ones), (low, 1), (3, low)]


def integer() -> list[Case]:
    out: list[Case] = []
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        w, is_signed = bits_of(t), t[0] == "s"
        v = (lambda x, w=w: signed(x, w)) if is_signed else (lambda x: x)
        two = f"{t} {t}"
        for name, f in (("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul.lo", lambda a, b: a * b)):
            out += make(f"{name}.{t} %d, %a, %b;", t, two, pairs(w)[1:4], f, f"Integer arithmetic: {name}, no saturation, wraps")
        out += make(f"mul.hi.{t} %d, %a, %b;", t, two, pairs(w), lambda a, b, v=v, w=w: v(a) * v(b) >> w, "mul: .hi, upper half")
        out += make(f"min.{t} %d, %a, %b;", t, two, pairs(w)[1:4], lambda a, b, v=v: min(v(a), v(b)), "min")
        out += make(f"max.{t} %d, %a, %b;", t, two, pairs(w)[1:4], lambda a, b, v=v: max(v(a), v(b)), "max")
        rows = [(7, 2), (7, (1 << w) - 2), ((1 << w) - 7, 2), ((1 << w - 1) + 1, 3), (1 << w - 1, 1)]
        out += make(f"div.{t} %d, %a, %b;", t, two, rows, lambda a, b, v=v: quotient(v(a), v(b)), "div: truncates")
        out += make(f"rem.{t} %d, %a, %b;", t, two, rows, lambda a, b, v=v: v(a) - v(b) * quotient(v(a), v(b)), "rem: follows div")
        amounts = [(1 << w - 1 | 5, n) for n in (0, 1, w - 1, w, w + 1, 255, 0x80000000)]
        out += make(f"shr.{t} %d, %a, %b;", t, f"{t} u32", amounts, lambda a, n, v=v, w=w: v(a) >> min(n, w), "shr: clamped, sign fill")
        if is_signed:
            out += make(f"abs.{t} %d, %a;", t, t, [(x,) for x in edges(w)], lambda a, v=v: abs(v(a)), "abs")
            out += make(f"neg.{t} %d, %a;", t, t, [(x,) for x in edges(w)], lambda a: -a, "neg")
    for t in ("u32", "s32", "u16", "s16"):
        w, to = bits_of(t), t[0] + str(2 * bits_of(t))
        v = (lambda x, w=w: signed(x, w)) if t[0] == "s" else (lambda x: x)
        out += make(f"mul.wide.{t} %d, %a, %b;", to, f"{t} {t}", pairs(w)[2:], lambda a, b, v=v: v(a) * v(b), "mul: .wide")
        out += make(
            f"mad.wide.{t} %d, %a, %b, %c;",
            to,
            f"{t} {t} {to}",
            [((1 << w) - 1, (1 << w) - 1, (1 << 2 * w) - 1), (1 << w - 1, 2, 5)],
            lambda a, b, c, v=v: v(a) * v(b) + c,
            "mad: .wide",
        )
    for t in ("u32", "s32"):
        v = (lambda x: signed(x, 32)) if t == "s32" else (lambda x: x)
        v24 = (lambda x: signed(x, 24)) if t == "s32" else (lambda x: x & 0xFFFFFF)
        rows = [(0xFFFFFF, 0xFFFFFF), (0x800000, 2), (0xFF123456, 0x10000)]
        out += make(f"mul24.lo.{t} %d, %a, %b;", t, f"{t} {t}", rows, lambda a, b, v=v24: v(a) * v(b), "mul24: low 32 of 48 bits")
        out += make(f"mul24.hi.{t} %d, %a, %b;", t, f"{t} {t}", rows, lambda a, b, v=v24: v(a) * v(b) >> 16, "mul24: high 32 of 48 bits")
        out += make(
            f"sad.{t} %d, %a, %b, %c;",
            t,
            f"{t} {t} {t}",
            [(1, 0xFFFFFFFF, 5), (0x80000000, 0, 1), (9, 4, 0xFFFFFFFF)],
            lambda a, b, c, v=v: c + abs(v(a) - v(b)),
            "sad",
        )
        out += make(
            f"mad.hi.{t} %d, %a, %b, %c;",
            t,
            f"{t} {t} {t}",
            [(0xFFFFFFFF, 0xFFFFFFFF, 7), (0x80000000, 0x80000000, 1)],
            lambda a, b, c, v=v: (v(a) * v(b) >> 32) + c,
            "mad: .hi",
        )
    s32 = lambda x: signed(x, 32)  # noqa: E731
    sat = lambda x: clamp(x, 32, True)  # noqa: E731
    out += make("add.sat.s32 %d, %a, %b;", "s32", "s32 s32", pairs(32), lambda a, b: sat(s32(a) + s32(b)), "add: .sat clamps to MININT..MAXINT")
    out += make("sub.sat.s32 %d, %a, %b;", "s32", "s32 s32", pairs(32), lambda a, b: sat(s32(a) - s32(b)), "sub: .sat")
    out += make(
        "mad.hi.sat.s32 %d, %a, %b, %c;",
        "s32",
        "s32 s32 s32",
        [(0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF), (0x80000000, 0x7FFFFFFF, 0x80000000)],
        lambda a, b, c: sat((s32(a) * s32(b) >> 32) + s32(c)),
        "mad: .hi.sat",
    )
    out += make(
        "add.u16x2 %d, %a, %b;",
        "b32",
        "b32 b32",
        [(0xFFFF0001, 0x0001FFFF), (0x80007FFF, 0x80000001)],
        lambda a, b: (a + b) & 0xFFFF | ((a >> 16) + (b >> 16) & 0xFFFF) << 16,
        "add: packed",
    )
    return out


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def carries() -> list[Case]:
    """Chains of two instructions: the flag of the first is only seen by the second."""
    rows = [(0, 0), (0xFFFFFFFF, 1), (0xFFFFFFFF, 0xFFFFFFFF), (1, 2), (0x80000000, 0x80000000)]
    ones = 0xFFFFFFFF
    return [
        *make("{.reg .u32 %x; add.cc.u32 %x, %a, %b; addc.u32 %d, 0, 0;}", "b32", "b32 b32", rows, lambda a, b: a + b >> 32, "add.cc: carry-out"),
        *make("{.reg .u32 %x; sub.cc.u32 %x, %a, %b; subc.u32 %d, 0, 0;}", "b32", "b32 b32", rows, lambda a, b: -(a < b), "sub.cc: borrow"),
        *make(
            "{.reg .u32 %x; sub.cc.u32 %x, %a, %b; addc.u32 %d, 0, 0;}",
            "b32",
            "b32 b32",
            rows,
            lambda a, b: int(a >= b),
            "the flag after sub.cc is the carry of a + ~b + 1, as ptxas's code has it",
        ),
        *make(
            "{.reg .u32 %x; add.cc.u32 %x, %a, %b; subc.u32 %d, 0, 0;}",
            "b32",
            "b32 b32",
            rows,
            lambda a, b: (a + b >> 32) - 1,
            "subc takes away what the carry lacks of 1, as in ptxas's code",
        ),
        *make(
            "{.reg .u32 %x; mad.lo.cc.u32 %x, %a, %b, %b; madc.hi.u32 %d, %a, %b, 0;}",
            "b32",
            "b32 b32",
            rows,
            lambda a, b: (a * b >> 32) + ((a * b & ones) + b >> 32),
            "mad.cc, madc",
        ),
        *make(
            "{.reg .u32 %x; add.cc.u32 %x, %a, %b; addc.cc.u32 %x, %a, %a; addc.u32 %d, %b, 0;}",
            "b32",
            "b32 b32",
            rows,
            lambda a, b: b + ((a + b >> 32) + 2 * a >> 32),
            "addc.cc: carry-in and carry-out",
        ),
    ]


def bitfields() -> list[Case]:
    out: list[Case] = []
    for w in (32, 64):
        t = f"b{w}"
        one = [(x,) for x in (*edges(w), 0x00F0)]
        out += make(f"popc.{t} %d, %a;", "u32", t, one, lambda a: a.bit_count(), "popc")
        out += make(f"clz.{t} %d, %a;", "u32", t, one, lambda a, w=w: w - a.bit_length(), "clz: of 0 is the width")
        out += make(f"brev.{t} %d, %a;", t, t, one, lambda a, w=w: int(f"{a:0{w}b}"[::-1], 2), "brev")
        for p in ("u", "s"):

            def lead(a: int, w: int = w, p: str = p) -> int:
                a = ~a & (1 << w) - 1 if p == "s" and a >> w - 1 else a
                return a.bit_length() - 1

            text = "bfind: no bit found is 0xffffffff"
            out += make(f"bfind.{p}{w} %d, %a;", "u32", t, one, lead, text)
            out += make(f"bfind.shiftamt.{p}{w} %d, %a;", "u32", t, one, lambda a, w=w, f=lead: w - 1 - f(a) if f(a) >= 0 else -1, text)
            rows = [
                (0x80000000F0F0F0F0 >> (64 - w), pos, n)
                for pos, n in ((0, 0), (4, 4), (4, 5), (w - 4, 8), (w - 1, 1), (w, 4), (255, 1), (0, w), (0, 255), (260, 264))
            ]
            out += make(
                f"bfe.{p}{w} %d, %a, %b, %c;",
                f"{p}{w}",
                f"{t} u32 u32",
                rows,
                lambda a, b, c, w=w, p=p: bfe(a, b, c, w, p == "s"),
                "bfe: pos and len modulo 256; sign is bit min(pos+len-1, msb)",
            )
        rows4 = [
            (0x123456789ABCDEF0, 0x5555555555555555, pos, n)
            for pos, n in ((0, 0), (4, 8), (w - 4, 8), (w, 8), (0, w), (0, 255), (255, 4), (260, 260))
        ]
        out += make(f"bfi.{t} %d, %a, %b, %c, %e;", t, f"{t} {t} u32 u32", rows4, lambda a, b, p, n, w=w: bfi(a, b, p & 255, n & 255, w), "bfi")
    for mode in ("clamp", "wrap"):
        limit = (lambda n: min(n, 32)) if mode == "clamp" else (lambda n: n & 31)
        rows = [(0xF0F0F0F0, n) for n in (0, 1, 5, 31, 32, 33, 64)]
        out += make(
            f"szext.{mode}.s32 %d, %a, %b;", "s32", "s32 u32", rows, lambda a, n, f=limit: signed(a & (1 << f(n)) - 1, f(n)) if f(n) else 0, "szext"
        )
        out += make(f"szext.{mode}.u32 %d, %a, %b;", "u32", "u32 u32", rows, lambda a, n, f=limit: a & (1 << f(n)) - 1, "szext")
        out += make(
            f"bmsk.{mode}.b32 %d, %a, %b;",
            "b32",
            "u32 u32",
            [(0, 0), (4, 8), (28, 8), (0, 32), (32, 4), (33, 33), (1, 31)],
            lambda a, b, f=limit: ((1 << f(b)) - 1) << f(a),
            "bmsk",
        )
        for direction in "lr":

            def funnel(a: int, b: int, n: int, f: Callable[[int], int] = limit, d: str = direction) -> int:
                both = b << 32 | a
                return both << f(n) >> 32 if d == "l" else both >> f(n)

            out += make(
                f"shf.{direction}.{mode}.b32 %d, %a, %b, %c;",
                "b32",
                "b32 b32 u32",
                [(0x89ABCDEF, 0x01234567, n) for n in (0, 1, 31, 32, 33, 255)],
                funnel,
                "shf",
            )
    for w in (16, 32, 64):
        out += make(
            f"shl.b{w} %d, %a, %b;",
            f"b{w}",
            f"b{w} u32",
            [(3, n) for n in (0, w - 1, w, w + 1, 0xFFFFFFFF)],
            lambda a, n: a << min(n, 64),
            "shl: clamped",
        )
        out += make(f"not.b{w} %d, %a;", f"b{w}", f"b{w}", [(0,), (5,)], lambda a: ~a, "not")
        out += make(f"cnot.b{w} %d, %a;", f"b{w}", f"b{w}", [(0,), (1,), (1 << w - 1,)], lambda a: int(a == 0), "cnot")
    for table in (0x96, 0xE8, 0xCA, 0x01, 0x80, 0x00, 0xFF):
        out += make(
            f"lop3.b32 %d, %a, %b, %c, {table};",
            "b32",
            "b32 b32 b32",
            [(0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA)],
            lambda a, b, c, t=table: int("".join(str(t >> i % 8 & 1) for i in range(31, -1, -1)), 2),
            "lop3: F(0xF0, 0xCC, 0xAA)",
        )
    return out


def bfe(a: int, pos: int, length: int, w: int, is_signed: bool) -> int:
    """The ISA's loop over bits."""
    pos, length, msb = pos & 255, length & 255, w - 1
    fill = 0 if not is_signed or length == 0 else a >> min(pos + length - 1, msb) & 1
    return sum((a >> pos + i & 1 if i < length and pos + i <= msb else fill) << i for i in range(w))


def bfi(a: int, b: int, pos: int, length: int, w: int) -> int:
    for i in range(length):
        if pos + i < w:
            b = b & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return b


def permutes() -> list[Case]:
    a, b = 0x33221180, 0x776655F4
    source = [0x80, 0x11, 0x22, 0x33, 0xF4, 0x55, 0x66, 0x77]

    def plain(a: int, b: int, c: int) -> int:
        out = 0
        for i in range(4):
            nibble = c >> 4 * i & 15
            byte = source[nibble & 7]
            out |= ((0xFF if byte & 0x80 else 0) if nibble & 8 else byte) << 8 * i
        return out

    out = make(
        "prmt.b32 %d, %a, %b, %c;",
        "b32",
        "b32 b32 b32",
        [(a, b, c) for c in (0x3210, 0x7654, 0x0123, 0xC8C8, 0x9ABD, 0xFFFF0000, 0x5140)],
        plain,
        "prmt: generic form",
    )
    tables = {  # selected bytes d.b3 d.b2 d.b1 d.b0 for c[1:0] = 0..3, as the ISA's table lists them
        "f4e": "3210 4321 5432 6543",
        "b4e": "5670 6701 7012 0123",
        "rc8": "0000 1111 2222 3333",
        "ecl": "3210 3211 3222 3333",
        "ecr": "0000 1110 2210 3210",
        "rc16": "1010 3232 1010 3232",
    }
    for mode, table in tables.items():
        for c, row in enumerate(table.split()):
            value = int.from_bytes(bytes(source[int(digit)] for digit in row), "big")
            out += make(f"prmt.b32.{mode} %d, %a, %b, %c;", "b32", "b32 b32 b32", [(a, b, c)], lambda *_, v=value: v, "prmt: mode table")
    return out


def dots() -> list[Case]:
    out: list[Case] = []
    for x in "us":
        for y in "us":

            def part(value: int, i: int, w: int, k: str) -> int:
                piece = value >> w * i & (1 << w) - 1
                return signed(piece, w) if k == "s" else piece

            out += make(
                f"dp4a.{x}32.{y}32 %d, %a, %b, %c;",
                "b32",
                "b32 b32 b32",
                [(0x80FF7F01, 0xFF80017F, 5), (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)],
                lambda a, b, c, x=x, y=y: c + sum(part(a, i, 8, x) * part(b, i, 8, y) for i in range(4)),
                "dp4a",
            )
            for half, base in (("lo", 0), ("hi", 2)):
                out += make(
                    f"dp2a.{half}.{x}32.{y}32 %d, %a, %b, %c;",
                    "b32",
                    "b32 b32 b32",
                    [(0x8000FFFF, 0xFF80017F, 5)],
                    lambda a, b, c, x=x, y=y, k=base: c + sum(part(a, i, 16, x) * part(b, k + i, 8, y) for i in range(2)),
                    "dp2a",
                )
    return out


PATTERNS = {
    "f32": [0, 0x80000000, 1, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3F800001, 0x33800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001],
    "f64": [
        0,
        1 << 63,
        1,
        0x800FFFFFFFFFFFFF,
        0x0010000000000000,
        0x3FF0000000000000,
        0xBFF0000000000000,
        0x3FF0000000000001,
        0x3CA0000000000000,
        0x7FEFFFFFFFFFFFFF,
        0x7FF0000000000000,
        0xFFF0000000000000,
        0x7FF8000000000001,
    ],
    "f16": [0, 0x8000, 1, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x3C01, 0x1000, 0x7BFF, 0x7C00, 0xFC00, 0x7E01],
    "bf16": [0, 0x8000, 1, 0x807F, 0x0080, 0x3F80, 0xBF80, 0x3F81, 0x3B80, 0x7F7F, 0x7F80, 0xFF80, 0x7FC1],
}
ZERO, MZERO, TINY, SUB, MIN, ONE, MONE, NEXT, HALFULP, MAX, INF, MINF, NAN = range(13)
TWO = [
    (ONE, HALFULP),
    (NEXT, HALFULP),
    (MAX, MAX),
    (TINY, SUB),
    (ZERO, MZERO),
    (MZERO, MZERO),
    (ONE, MONE),
    (INF, MINF),
    (NAN, ONE),
    (MIN, TINY),
    (MONE, HALFULP),
]


def code(value: ref.Number, t: str, mode: str = "rn", ftz: bool = False) -> int | str:
    return "nan" if value == "nan" and t == "f64" else encode(value, t, mode, ftz)


def arithmetic() -> list[Case]:
    out: list[Case] = []
    for t in ("f32", "f64", "f16", "bf16"):
        p = PATTERNS[t]
        rows = [(p[i], p[j]) for i, j in TWO]
        for mode in ("rn", "rz", "rm", "rp") if t in ("f32", "f64") else ("rn",):
            some = rows if mode == "rn" else rows[:5] + rows[6:7] + rows[9:]
            n = lambda x, t=t: number(x, t)  # noqa: E731
            out += make(
                f"add.{mode}.{t} %d, %a, %b;", t, f"{t} {t}", some, lambda a, b, n=n, m=mode, t=t: code(ref.add(n(a), n(b), m), t, m), "add: IEEE"
            )
            out += make(
                f"mul.{mode}.{t} %d, %a, %b;",
                t,
                f"{t} {t}",
                [*some[:4], (p[TINY], p[HALFULP]), (p[INF], p[ZERO])],
                lambda a, b, n=n, m=mode, t=t: code(ref.multiply(n(a), n(b)), t, m),
                "mul: IEEE",
            )
            out += make(
                f"fma.{mode}.{t} %d, %a, %b, %c;",
                t,
                f"{t} {t} {t}",
                [
                    (p[NEXT], p[NEXT], p[MONE]),
                    (p[MAX], p[MAX], p[MINF]),
                    (p[ONE], p[MONE], p[ONE]),
                    (p[TINY], p[TINY], p[ONE]),
                    (p[INF], p[ZERO], p[ONE]),
                ],
                lambda a, b, c, n=n, m=mode, t=t: code(ref.add(ref.multiply(n(a), n(b)), n(c), m), t, m),
                "fma: one rounding",
            )
            if t in ("f32", "f64"):
                three = encode(ref.Fraction(3), t)
                out += make(
                    f"div.{mode}.{t} %d, %a, %b;",
                    t,
                    f"{t} {t}",
                    [(p[ONE], three), (p[MONE], three), (p[MIN], three), (p[MAX], p[TINY]), (p[ZERO], p[ZERO]), (p[ONE], p[MZERO]), (p[ONE], p[INF])],
                    lambda a, b, n=n, m=mode, t=t: code(ref.divide(n(a), n(b)), t, m),
                    "div: IEEE",
                )
                out += make(
                    f"rcp.{mode}.{t} %d, %a;",
                    t,
                    t,
                    [(three,), (p[MAX],), (p[TINY],), (p[MZERO],), (p[MINF],)],
                    lambda a, n=n, m=mode, t=t: code(ref.divide(ref.Fraction(1), n(a)), t, m),
                    "rcp: IEEE",
                )
                out += make(
                    f"sqrt.{mode}.{t} %d, %a;",
                    t,
                    t,
                    [(three,), (p[TINY],), (p[MZERO],), (p[MONE],), (p[INF],), (p[MAX],)],
                    lambda a, n=n, m=mode, t=t: code(ref.root(n(a)), t, m),
                    "sqrt: IEEE",
                )
    p = PATTERNS["f32"]
    f = lambda x: number(ref.flush(x), "f32")  # noqa: E731
    rows = [(p[i], p[j]) for i, j in ((TINY, SUB), (SUB, SUB), (MIN, TINY), (MIN, SUB))]
    out += make("add.ftz.f32 %d, %a, %b;", "f32", "f32 f32", rows, lambda a, b: encode(ref.add(f(a), f(b)), "f32", ftz=True), "add: .ftz")
    out += make(
        "mul.ftz.f32 %d, %a, %b;",
        "f32",
        "f32 f32",
        [*rows, (0x00800000, 0xBF000000)],
        lambda a, b: encode(ref.multiply(f(a), f(b)), "f32", ftz=True),
        "mul: .ftz",
    )
    unit = lambda x: 0 if x == "nan" or ref.is_negative(x) or x == "-0" else encode(ref.Fraction(1) if x == "inf" or x > 1 else x, "f32")  # noqa: E731
    rows = [
        (p[ONE], p[ONE]),
        (p[MONE], p[ONE]),
        (p[MONE], p[ZERO]),
        (p[NAN], p[ONE]),
        (p[INF], p[ONE]),
        (p[MINF], p[ONE]),
        (0x3F000000, p[ZERO]),
        (p[MZERO], p[MZERO]),
    ]
    out += make(
        "add.sat.f32 %d, %a, %b;", "f32", "f32 f32", rows, lambda a, b: unit(ref.add(number(a, "f32"), number(b, "f32"))), "add: .sat, NaN gives +0"
    )
    return out


def minimum() -> list[Case]:
    out: list[Case] = []
    for t in ("f32", "f64", "f16", "bf16"):
        p = PATTERNS[t]
        for name in ("min", "max"):
            for nan_wins in [False] if t == "f64" else [False, True]:

                def value(a: int, b: int, t: str = t, name: str = name, wins: bool = nan_wins) -> int | str:
                    x, y = number(a, t), number(b, t)
                    if "nan" in (x, y):
                        return code("nan", t) if wins or x == y else b if x == "nan" else a
                    key = lambda v: (_order(v), not ref.is_negative(v))  # noqa: E731
                    first = key(x) <= key(y)
                    return a if first == (name == "min") else b

                rows = [
                    (p[i], p[j])
                    for i, j in ((ONE, MONE), (ZERO, MZERO), (MZERO, ZERO), (NAN, ONE), (ONE, NAN), (NAN, NAN), (MINF, MAX), (TINY, ZERO))
                ]
                out += make(
                    f"{name}{'.NaN' if nan_wins else ''}.{t} %d, %a, %b;",
                    t,
                    f"{t} {t}",
                    rows,
                    value,
                    f"{name}: +0 > -0; NaN loses, or wins with .NaN",
                )
    p = PATTERNS["f32"]
    rows = [(p[i], p[j]) for i, j in ((MONE, NEXT), (MONE, MZERO), (MINF, MAX), (ONE, SUB), (MONE, MONE))]
    for name, pick in (("min", min), ("max", max)):
        out += make(
            f"{name}.xorsign.abs.f32 %d, %a, %b;",
            "f32",
            "f32 f32",
            rows,
            lambda a, b, pick=pick: pick(a & 0x7FFFFFFF, b & 0x7FFFFFFF) | (a ^ b) & 0x80000000,
            f"{name}: .xorsign.abs, magnitude and product of signs",
        )
    return out


def _order(x: ref.Number) -> ref.Fraction:
    return ref.Fraction(2) ** 2000 * (1 if x == "inf" else -1) if x in ("inf", "-inf") else ref.finite(x)


def comparisons() -> list[Case]:
    out: list[Case] = []
    p = PATTERNS["f32"]
    rows = [(p[ONE], p[NEXT]), (p[ZERO], p[MZERO]), (p[NAN], p[ONE]), (p[NAN], p[NAN]), (p[MINF], p[INF])]
    tests: dict[str, Callable[[object, object], bool]] = {
        "eq": lambda x, y: x == y,
        "ne": lambda x, y: x != y,
        "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y,
        "gt": lambda x, y: x > y,
        "ge": lambda x, y: x >= y,
    }
    for name, test in tests.items():
        for suffix in ("", "u"):

            def value(a: int, b: int, test: Callable[[object, object], bool] = test, u: str = suffix) -> int:
                x, y = number(a, "f32"), number(b, "f32")
                return int(bool(u)) if "nan" in (x, y) else int(test(_order(x), _order(y)))

            out += make(f"setp.{name}{suffix}.f32 %d, %a, %b;", "pred", "f32 f32", rows, value, "setp: ordered are false, unordered true, on NaN")
        for t in ("s32", "u32", "s64"):
            w = bits_of(t)
            v = (lambda x, w=w: signed(x, w)) if t[0] == "s" else (lambda x: x)
            out += make(
                f"setp.{name}.{t} %d, %a, %b;", "pred", f"{t} {t}", pairs(w)[1:4], lambda a, b, f=test, v=v: int(f(v(a), v(b))), "setp: integers"
            )
    for name in ("num", "nan"):
        out += make(
            f"setp.{name}.f32 %d, %a, %b;",
            "pred",
            "f32 f32",
            rows,
            lambda a, b, n=name: int(("nan" in (number(a, "f32"), number(b, "f32"))) == (n == "nan")),
            "setp: num, nan",
        )
    out += make(
        "set.gt.u32.f32 %d, %a, %b;",
        "u32",
        "f32 f32",
        [*rows[:3], (p[NEXT], p[ONE])],
        lambda a, b: -1 if (a, b) == (p[NEXT], p[ONE]) else 0,
        "set: all ones",
    )
    out += make(
        "set.le.f32.s32 %d, %a, %b;",
        "f32",
        "s32 s32",
        [(0xFFFFFFFF, 0), (1, 0)],
        lambda a, b: 0x3F800000 if signed(a, 32) <= signed(b, 32) else 0,
        "set: 1.0f",
    )
    out += make(
        "slct.b32.f32 %d, %a, %b, %c;",
        "b32",
        "b32 b32 f32",
        [(1, 2, c) for c in (p[ONE], p[MONE], p[MZERO], p[NAN], p[TINY], p[SUB])],
        lambda a, b, c: a if number(c, "f32") != "nan" and _order(number(c, "f32")) >= 0 else b,
        "slct: -0 is >= 0, NaN takes b",
    )
    out += make("slct.ftz.b32.f32 %d, %a, %b, %c;", "b32", "b32 b32 f32", [(1, 2, p[SUB])], lambda a, b, c: a, "slct: .ftz flushes c to -0")
    out += make(
        "slct.b64.s32 %d, %a, %b, %c;", "b64", "b64 b64 s32", [(1, 2, c) for c in (0, 5, 0xFFFFFFFF)], lambda a, b, c: b if c >> 31 else a, "slct"
    )
    kinds = {
        "finite": (0, 1, 1, 0, 0),
        "infinite": (0, 0, 0, 1, 0),
        "number": (0, 1, 1, 1, 0),
        "notanumber": (1, 0, 0, 0, 0),
        "normal": (0, 1, 0, 0, 1),
        "subnormal": (0, 0, 1, 0, 0),
    }
    for name, (isnan, one, sub, inf, _) in kinds.items():
        zero = {"finite": 1, "number": 1, "normal": 1}.get(name, 0)
        for t in ("f32", "f64"):
            q = PATTERNS[t]
            table = {q[NAN]: isnan, q[ONE]: one, q[SUB]: sub, q[MINF]: inf, q[MZERO]: zero}
            out += make(f"testp.{name}.{t} %d, %a;", "pred", t, [(k,) for k in table], lambda a, d=table: d[a], "testp: zeros count as normal")
    for t in ("f32", "f64"):
        w, q = bits_of(t), PATTERNS[t]
        out += make(
            f"copysign.{t} %d, %a, %b;",
            t,
            f"{t} {t}",
            [(q[MONE], q[NEXT]), (q[ZERO], q[MINF])],
            lambda a, b, w=w: a & 1 << w - 1 | b & (1 << w - 1) - 1,
            "copysign",
        )
        out += make(f"neg.{t} %d, %a;", t, t, [(q[ONE],), (q[ZERO],), (q[MINF],)], lambda a, w=w: a ^ 1 << w - 1, "neg: sign bit")
        out += make(f"abs.{t} %d, %a;", t, t, [(q[MONE],), (q[MZERO],), (q[MINF],)], lambda a, w=w: a & (1 << w - 1) - 1, "abs: sign bit")
    return out


def approximations() -> list[Case]:
    """The ISA's tables of special inputs; results that are exact."""
    ninf, nzero, sub, nsub, inf, one, nan = 0xFF800000, 0x80000000, 0x00000001, 0x80000001, 0x7F800000, 0x3F800000, 0x7FFFFFFF
    tables: dict[str, dict[int, int]] = {
        "rcp.approx.ftz": {ninf: nzero, nsub: ninf, nzero: ninf, 0: inf, sub: inf, inf: 0, 0x7FC00000: nan},
        "rcp.approx": {ninf: nzero, nzero: ninf, 0: inf, inf: 0, 0x7FC00000: nan},
        "sqrt.approx.ftz": {ninf: nan, 0xBF800000: nan, nsub: nzero, nzero: nzero, 0: 0, sub: 0, inf: inf, 0x7FC00000: nan},
        "sqrt.approx": {ninf: nan, 0xBF800000: nan, nzero: nzero, 0: 0, inf: inf, 0x7FC00000: nan},
        "rsqrt.approx.ftz": {ninf: nan, 0xBF800000: nan, nsub: ninf, nzero: ninf, 0: inf, sub: inf, inf: 0, 0x7FC00000: nan},
        "rsqrt.approx": {ninf: nan, 0xBF800000: nan, nzero: ninf, 0: inf, inf: 0, 0x7FC00000: nan},
        "sin.approx.ftz": {ninf: nan, nsub: nzero, nzero: nzero, 0: 0, sub: 0, inf: nan, 0x7FC00000: nan},
        "cos.approx.ftz": {ninf: nan, nsub: one, nzero: one, 0: one, sub: one, inf: nan, 0x7FC00000: nan},
        "lg2.approx.ftz": {ninf: nan, 0xBF800000: nan, nsub: ninf, nzero: ninf, 0: ninf, sub: ninf, inf: inf, one: 0, 0x7FC00000: nan},
        "lg2.approx": {ninf: nan, 0xBF800000: nan, nzero: ninf, 0: ninf, inf: inf, one: 0, 0x7FC00000: nan},
        "ex2.approx.ftz": {ninf: 0, nsub: one, nzero: one, 0: one, sub: one, inf: inf, 0x7FC00000: nan},
        "ex2.approx": {ninf: 0, nzero: one, 0: one, inf: inf, 0x7FC00000: nan},
        "tanh.approx": {ninf: 0xBF800000, nzero: nzero, 0: 0, inf: one, 0x7FC00000: nan},
    }
    out: list[Case] = []
    for name, table in tables.items():
        out += make(
            f"{name}.f32 %d, %a;", "f32", "f32", [(k,) for k in table], lambda a, d=table: "nan" if d[a] == nan else d[a], "table of special values"
        )
    return out


def conversions() -> list[Case]:
    out: list[Case] = []
    halves = {
        "f32": [0x3F000000, 0xBF000000, 0x3FC00000, 0x40200000, 0xC0200000, 0x3EFFFFFF, 0x7FC00000, 0x7F800000, 0xFF800000, 0x4F000000, 0xCF000001]
    }
    halves["f64"] = [encode(number(x, "f32"), "f64") if number(x, "f32") != "nan" else 0x7FF8000000000000 for x in halves["f32"]]
    for t, values in halves.items():
        for mode in ("rn", "rz", "rm", "rp"):
            for to in ("s32", "u32"):
                out += make(
                    f"cvt.{mode}i.{to}.{t} %d, %a;",
                    to,
                    t,
                    [(x,) for x in values],
                    lambda a, t=t, m=mode, to=to: ref.to_integer(a, t, m, 32, to == "s32"),
                    "cvt: clamped; NaN",
                )
        for to in ("s64", "u64"):
            out += make(
                f"cvt.rzi.{to}.{t} %d, %a;",
                to,
                t,
                [(x,) for x in values],
                lambda a, t=t, to=to: ref.to_integer(a, t, "rz", 64, to == "s64"),
                "cvt: NaN to 64 bits",
            )
    for t in ("s32", "u32", "s64", "u64"):
        w = bits_of(t)
        v = (lambda x, w=w: signed(x, w)) if t[0] == "s" else (lambda x: x)
        for mode in ("rn", "rz", "rm", "rp"):
            rows = [(x,) for x in (0, (1 << w) - 1, (1 << w - 1) - 1, 16777217, 16777219, 1 << w - 1)]
            out += make(
                f"cvt.{mode}.f32.{t} %d, %a;", "f32", t, rows, lambda a, v=v, m=mode: encode(ref.Fraction(v(a)), "f32", m), "cvt: integer to float"
            )
    for to, source in (("f16", "f32"), ("bf16", "f32"), ("f32", "f64")):
        p = PATTERNS[source]
        big = encode(ref.Fraction(65520), source)
        for mode in ("rn", "rz"):
            rows = [(p[i],) for i in (ZERO, MZERO, TINY, MIN, ONE, NEXT, MAX, INF, MINF)] + [(big,), (encode(ref.Fraction(4097, 4096), source),)]
            out += make(
                f"cvt.{mode}.{to}.{source} %d, %a;",
                to,
                source,
                rows,
                lambda a, s=source, to=to, m=mode: encode(number(a, s), to, m),
                "cvt: float to float",
            )
    for to, source in (("f32", "f16"), ("f64", "f32"), ("f32", "bf16"), ("f64", "f16")):
        p = PATTERNS[source]
        out += make(
            f"cvt.{to}.{source} %d, %a;", to, source, [(x,) for x in p[:12]], lambda a, s=source, to=to: encode(number(a, s), to), "cvt: exact"
        )
    p = PATTERNS["f16"]
    out += make("cvt.ftz.f32.f16 %d, %a;", "f32", "f16", [(p[TINY],), (p[SUB],)], lambda a: encode(number(a, "f16"), "f32"), "cvt: .ftz is for f32")
    out += make("cvt.rn.ftz.f32.f64 %d, %a;", "f32", "f64", [(0x3690000000000000,)], lambda a: 0, "cvt: .ftz flushes an f32 result")
    for mode in ("rn", "rz", "rm", "rp"):

        def whole(a: int, m: str = mode) -> int:
            x = number(a, "f32")
            if isinstance(x, str):
                return encode(x, "f32")
            value = ref.integral(x, m, x < 0)
            return encode(ref.Fraction(value), "f32") | a & 0x80000000

        out += make(
            f"cvt.{mode}i.f32.f32 %d, %a;",
            "f32",
            "f32",
            [(x,) for x in (*halves["f32"][:6], 0x7F800000, 0x80000000)],
            whole,
            "cvt: to an integral float, sign kept",
        )
    for to, w in (("s8", 8), ("u8", 8), ("s16", 16), ("u16", 16)):
        out += make(
            f"cvt.sat.{to}.s32 %d, %a;",
            "s32" if to[0] == "s" else "u32",
            "s32",
            [(x,) for x in (0, 127, 128, 255, 256, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 65535)],
            lambda a, w=w, to=to: clamp(signed(a, 32), w, to[0] == "s"),
            "cvt: .sat",
        )
    for to, source in (("s32", "s8"), ("u32", "u8"), ("s64", "s32"), ("u64", "u32"), ("s64", "s16"), ("u32", "s8")):
        w = bits_of(source)
        out += make(
            f"cvt.{to}.{source} %d, %a;",
            to,
            f"b{max(w, 16)}",
            [(x,) for x in (0x7F, 0x80, 0xFF, (1 << w) - 1, 1 << w - 1)],
            lambda a, w=w, s=source: signed(a, w) if s[0] == "s" else a & (1 << w) - 1,
            "cvt: extension",
        )
    return out


FAMILIES: dict[str, Callable[[], list[Case]]] = {
    "integer": integer,
    "carries": carries,
    "bitfields": bitfields,
    "permutes": permutes,
    "dots": dots,
    "arithmetic": arithmetic,
    "minimum": minimum,
    "comparisons": comparisons,
    "approximations": approximations,
    "conversions": conversions,
}
assert set(FORMATS) == set(PATTERNS)

VENDOR_DEVIATES = {
    ("bfe.u64 %d, %a, %b, %c;", 0x104),
    ("bfe.s64 %d, %a, %b, %c;", 0x104),
    ("bfi.b64 %d, %a, %b, %c, %e;", 0x104),
}
"""Text and position operand of cases where the code of ptxas 13.5 does not do what the ISA says: 64-bit field instructions, which it expands, do
not take positions and lengths modulo 256."""

OWN_REFUSES = {f"{op}.{mode}.{t}" for op in ("div", "rcp", "sqrt") for mode in ("rz", "rm", "rp") for t in ("f64",)}
"""Instructions that our selection refuses by name."""


def vendor_cases(cases: list[Case]) -> list[Case]:
    return [c for c in cases if not any((c.text, v) in VENDOR_DEVIATES for v in c.inputs)]


def own_cases(cases: list[Case]) -> list[Case]:
    return [c for c in cases if c.text.split()[0] not in OWN_REFUSES]
