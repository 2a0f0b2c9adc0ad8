"""Random PTX programs: straight lines, branches and bounded loops over integers, floats, global and shared memory.

A program is a tree of statements, so that any of them can be left out: registers are set at the start and all are stored at the end. What PTX leaves
open is avoided: divisors are odd, floats never become integers but by conversion or comparison, roundings are spelled, NaNs compare equal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

THREADS = 64
COUNTS = {"h": 3, "r": 5, "w": 4, "f": 4, "d": 3, "p": 3}
SLOT = 128
"""Bytes of input, of scratch in global memory, and of shared memory, of each thread."""
OUTPUTS = [*(("h", i) for i in range(3)), *(("r", i) for i in range(5)), *(("w", i) for i in range(4)), *(("f", i) for i in range(4)),
           *(("d", i) for i in range(3)), *(("p", i) for i in range(3))]  # fmt: skip


@dataclass
class Block:
    """`kind` "if" (on predicate `number`, perhaps `negated`) or "loop" (`number` rounds) around statements."""

    kind: str
    number: int
    negated: bool
    body: list[Statement]
    other: list[Statement] = field(default_factory=list)


Statement = str | Block
INTEGERS = ["0", "1", "-1", "2", "7", "31", "255", "0x7fff", "-128"]
WORDS = [*INTEGERS, "0x7fffffff", "-2147483648", "65535", "0x12345678"]
FLOATS = ["0f00000000", "0f3F800000", "0fBF800000", "0f7F800000", "0f00000001", "0f4B800000", "0f7F7FFFFF"]
DOUBLES = ["0d0000000000000000", "0d3FF0000000000000", "0dBFF8000000000000", "0d7FF0000000000000", "0d0000000000000001"]
UNGUARDED = ("testp", "cvt.sat")
"""Instructions that ptxas miscompiles under a guard (`miscompiles`)."""
CLASS = {16: "h", 32: "r", 64: "w"}


class Maker:
    """Makes statements from a seeded generator. `families` of "int", "float", "memory"."""

    def __init__(self, seed: int, families: tuple[str, ...]) -> None:
        self.rng = random.Random(seed)
        table: dict[str, list[Callable[[], str]]] = {
            "int": [self.two, self.two, self.logic, self.shift, self.multiply, self.divide, self.field, self.convert, self.compare, self.select,
                    self.odd,
                    self.predicate, self.carry],
            "float": [self.float_two, self.float_two, self.float_fma, self.float_convert, self.float_compare, self.float_misc, self.float_select],
            "memory": [self.memory, self.memory, self.atomic],
        }  # fmt: skip
        self.kinds = [kind for name in families for kind in table[name]]

    def reg(self, letter: str) -> str:
        return f"%{letter}{self.rng.randrange(COUNTS[letter])}"

    def value(self, width: int, constants: float = 0.25) -> str:
        if self.rng.random() < constants:
            return self.rng.choice(INTEGERS if width == 16 else WORDS)
        return self.reg(CLASS[width])

    def pick(self, *names: str) -> str:
        return self.rng.choice(names)

    # integers

    def two(self) -> str:
        w = self.rng.choice([16, 32, 32, 64])
        d, a, b = self.reg(CLASS[w]), self.reg(CLASS[w]), self.value(w)
        name = self.pick("add", "sub", "min", "max", "mul.lo", "mul.hi", "sad", "abs", "neg", "mad.lo")
        sign = self.pick("u", "s")
        if name in ("abs", "neg"):
            return f"{name}.s{w} {d}, {a};"
        if name in ("sad", "mad.lo"):
            return f"{name}.{sign}{w} {d}, {a}, {b}, {self.reg(CLASS[w])};"
        return f"{name}.{sign}{w} {d}, {a}, {b};"

    def logic(self) -> str:
        w = self.rng.choice([16, 32, 64])
        r = lambda: self.reg(CLASS[w])  # noqa: E731
        if self.rng.random() < 0.3:
            return f"lop3.b32 {self.reg('r')}, {self.reg('r')}, {self.value(32)}, {self.reg('r')}, {self.rng.randrange(256)};"
        if self.rng.random() < 0.2:
            return f"{self.pick('not', 'cnot')}.b{w} {r()}, {r()};"
        return f"{self.pick('and', 'or', 'xor')}.b{w} {r()}, {r()}, {self.value(w)};"

    def shift(self) -> str:
        w = self.rng.choice([16, 32, 64])
        amount = str(self.rng.randrange(w + 8)) if self.rng.random() < 0.6 else self.reg("r")
        if self.rng.random() < 0.2:
            return f"shf.{self.pick('l', 'r')}.{self.pick('wrap', 'clamp')}.b32 {self.reg('r')}, {self.reg('r')}, {self.reg('r')}, {amount};"
        return f"{self.pick(f'shl.b{w}', f'shr.u{w}', f'shr.s{w}')} {self.reg(CLASS[w])}, {self.reg(CLASS[w])}, {amount};"

    def multiply(self) -> str:
        sign = self.pick("u", "s")
        choice = self.rng.randrange(4)
        if choice == 0:
            return f"mul.wide.{sign}32 {self.reg('w')}, {self.reg('r')}, {self.value(32)};"
        if choice == 1:
            return f"mad.wide.{sign}32 {self.reg('w')}, {self.reg('r')}, {self.value(32)}, {self.reg('w')};"
        if choice == 2:
            return f"mul.wide.{sign}16 {self.reg('r')}, {self.reg('h')}, {self.value(16)};"
        return f"{self.pick('mul24.lo', 'mul24.hi')}.{sign}32 {self.reg('r')}, {self.reg('r')}, {self.value(32)};"

    def divide(self) -> str:
        w = self.rng.choice([16, 32, 32, 64])
        d, a = self.reg(CLASS[w]), self.reg(CLASS[w])
        kind = f"{self.pick('div', 'rem')}.{self.pick('u', 's')}{w}"
        if self.rng.random() < 0.6:
            return f"{kind} {d}, {a}, {self.rng.choice([1, 3, 5, 7, 10, 16, 100, 641, 1000, 32767])};"
        return f"{{ .reg .b{w} %t; or.b{w} %t, {self.reg(CLASS[w])}, 1; {kind} {d}, {a}, %t; }}"

    def field(self) -> str:
        w = self.rng.choice([32, 64])
        x, p, n = self.reg(CLASS[w]), self.rng.randrange(w + 4), self.rng.randrange(w + 4)
        choice = self.rng.randrange(6)
        if choice == 0:
            return f"bfi.b{w} {self.reg(CLASS[w])}, {x}, {self.reg(CLASS[w])}, {p}, {n};"
        if choice == 1:
            return f"bfe.{self.pick('u', 's')}{w} {self.reg(CLASS[w])}, {x}, {p}, {n};"
        if choice == 2:
            return f"bfe.{self.pick('u', 's')}32 {self.reg('r')}, {self.reg('r')}, {self.reg('r')}, {self.reg('r')};"
        if choice == 3:
            return f"{self.pick('popc', 'clz')}.b{w} {self.reg('r')}, {x};"
        if choice == 4:
            return f"bfind{self.pick('', '.shiftamt')}.{self.pick('u', 's')}{w} {self.reg('r')}, {x};"
        return f"brev.b{w} {self.reg(CLASS[w])}, {x};"

    def convert(self) -> str:
        to, source = self.rng.choice([16, 32, 64]), self.rng.choice([16, 32, 64])
        a, b = self.rng.choice([8, to]), self.rng.choice([8, source])
        x, y = self.pick("u", "s"), self.pick("u", "s")
        saturate = ".sat" if self.rng.random() < 0.3 and (a, x) != (b, y) else ""
        if saturate and (a > b or (a == b and x == y)):
            saturate = ""
        return f"cvt{saturate}.{x}{a}.{y}{b} {self.reg(CLASS[to])}, {self.reg(CLASS[source])};"

    def compare(self) -> str:
        w = self.rng.choice([16, 32, 64])
        kind = f"setp.{self.pick('lt', 'le', 'gt', 'ge', 'eq', 'ne')}"
        target = self.reg("p") if self.rng.random() < 0.7 else f"{self.reg('p')}|%q"
        if self.rng.random() < 0.3:
            logic = f"{self.pick('and', 'or', 'xor')}.{self.pick('u', 's')}{w}"
            return f"{kind}.{logic} {target}, {self.reg(CLASS[w])}, {self.value(w)}, {self.pick('', '!')}{self.reg('p')};"
        return f"{kind}.{self.pick('u', 's')}{w} {target}, {self.reg(CLASS[w])}, {self.value(w)};"

    def select(self) -> str:
        w = self.rng.choice([16, 32, 64])
        if self.rng.random() < 0.25:
            return f"slct.b{w}.s32 {self.reg(CLASS[w])}, {self.reg(CLASS[w])}, {self.value(w)}, {self.reg('r')};"
        return f"selp.b{w} {self.reg(CLASS[w])}, {self.value(w)}, {self.value(w)}, {self.reg('p')};"

    def odd(self) -> str:
        d, a, b, c = (self.reg("r") for _ in range(4))
        return self.rng.choice([
            f"prmt.b32{self.pick('', '', '.f4e', '.rc8', '.ecl')} {d}, {a}, {b}, {self.value(32)};",
            f"dp4a.{self.pick('u', 's')}32.{self.pick('u', 's')}32 {d}, {a}, {b}, {c};",
            f"{self.pick('add', 'sub')}.sat.s32 {d}, {a}, {self.value(32)};",
            f"bmsk.{self.pick('clamp', 'wrap')}.b32 {d}, {a}, {b};",
            f"szext.{self.pick('clamp', 'wrap')}.{self.pick('u', 's')}32 {d}, {a}, {b};",
            f"mov.b64 {self.reg('w')}, {{{a}, {b}}};", f"mov.b64 {{{d}, _}}, {self.reg('w')};", f"mov.b32 {d}, {{{self.reg('h')}, {self.reg('h')}}};",
            f"mad.hi.{self.pick('u', 's')}32 {d}, {a}, {b}, {c};", f"set.{self.pick('lt', 'ge')}.u32.s32 {d}, {a}, {b};",
            f"{self.pick('add', 'min', 'max')}.{self.pick('u', 's')}16x2 {d}, {a}, {b};",
        ])  # fmt: skip

    def predicate(self) -> str:
        if self.rng.random() < 0.2:
            return f"not.pred {self.reg('p')}, {self.reg('p')};"
        return f"{self.pick('and', 'or', 'xor')}.pred {self.reg('p')}, {self.reg('p')}, {self.reg('p')};"

    def carry(self) -> str:
        r = lambda: self.reg("r")  # noqa: E731
        if self.rng.random() < 0.5:
            return f"add.cc.u32 {r()}, {r()}, {r()}; addc.cc.u32 {r()}, {r()}, {r()}; addc.u32 {r()}, {r()}, {self.value(32)};"
        return f"sub.cc.u32 {r()}, {r()}, {r()}; subc.u32 {r()}, {r()}, {r()};"

    # floats

    def real(self, letter: str) -> str:
        if self.rng.random() < 0.2:
            return self.rng.choice(FLOATS if letter == "f" else DOUBLES)
        return self.reg(letter)

    def float_two(self) -> str:
        letter = self.pick("f", "f", "d")
        t = "f32" if letter == "f" else "f64"
        name = self.pick("add", "sub", "mul", "min", "max")
        mode = f".{self.pick('rn', 'rn', 'rz', 'rm', 'rp')}" if name in ("add", "sub", "mul") else ""
        options = self.pick("", "", ".ftz") if t == "f32" else ""
        if name in ("add", "sub", "mul") and t == "f32":
            options += self.pick("", "", "", ".sat")
        return f"{name}{mode}{options}.{t} {self.reg(letter)}, {self.reg(letter)}, {self.real(letter)};"

    def float_fma(self) -> str:
        letter = self.pick("f", "d")
        t = "f32" if letter == "f" else "f64"
        mode = self.pick("rn", "rn", "rz", "rm", "rp")
        return f"fma.{mode}.{t} {self.reg(letter)}, {self.reg(letter)}, {self.real(letter)}, {self.reg(letter)};"

    def float_convert(self) -> str:
        mode = self.pick("rn", "rz", "rm", "rp")
        f, d, r, w = (self.reg(x) for x in "fdrw")
        sign = self.pick("u", "s")
        return self.rng.choice([
            f"cvt.rn.f32.{sign}32 {f}, {r};", f"cvt.rn.f64.{sign}32 {d}, {r};", f"cvt.{mode}i.{sign}32.f32 {r}, {f};",
            f"cvt.{mode}i.{sign}32.f64 {r}, {d};",
            f"cvt.f64.f32 {d}, {f};", f"cvt.{mode}.f32.f64 {f}, {d};", f"cvt.rn.f32.{sign}64 {f}, {w};", f"cvt.{mode}i.{sign}64.f32 {w}, {f};",
            f"cvt.{mode}i.f32.f32 {f}, {self.reg('f')};", f"cvt.{mode}.f64.{sign}64 {d}, {w};", f"cvt.rzi.{sign}16.f32 {self.reg('h')}, {f};",
        ])  # fmt: skip

    def float_compare(self) -> str:
        letter = self.pick("f", "d")
        t = "f32" if letter == "f" else "f64"
        kind = self.pick("lt", "le", "gt", "ge", "eq", "ne", "ltu", "leu", "gtu", "geu", "equ", "neu", "num", "nan")
        return f"setp.{kind}.{t} {self.reg('p')}, {self.reg(letter)}, {self.real(letter)};"

    def float_misc(self) -> str:
        letter = self.pick("f", "d")
        t = "f32" if letter == "f" else "f64"
        d, a, b = self.reg(letter), self.reg(letter), self.reg(letter)
        return self.rng.choice([
            f"neg.{t} {d}, {a};", f"abs.{t} {d}, {a};", f"div.rn.{t} {d}, {a}, {b};", f"sqrt.rn.{t} {d}, {a};", f"rcp.rn.{t} {d}, {a};",
            f"testp.{self.pick('finite', 'number', 'subnormal', 'normal')}.{t} {self.reg('p')}, {a};",
        ])  # fmt: skip

    def float_select(self) -> str:
        letter = self.pick("f", "d")
        t = "f32" if letter == "f" else "f64"
        return f"selp.{t} {self.reg(letter)}, {self.real(letter)}, {self.reg(letter)}, {self.reg('p')};"

    # memory

    def memory(self) -> str:
        size = self.rng.choice([8, 16, 32, 64])
        space = self.pick("global", "shared")
        base = "%gp" if space == "global" else "%sp"
        letter = CLASS.get(size) or self.pick("h", "r")
        type_ = f"{self.pick('u', 's')}{size}"
        if self.rng.random() < 0.25:
            at = 8 * self.rng.randrange(SLOT // 8)
            pair = f"{{{self.reg('r')}, {self.reg('r')}}}"
            if len(set(pair.strip("{}").split(", "))) == 2:
                return self.pick(f"ld.{space}.v2.b32 {pair}, [{base}+{at}];", f"st.{space}.v2.b32 [{base}+{at}], {pair};")
        at = size // 8 * self.rng.randrange(SLOT * 8 // size)
        if self.rng.random() < 0.3:
            index = f"and.b32 %x, {self.reg('r')}, {SLOT - size // 8};"
            add = "cvt.u64.u32 %y, %x; add.u64 %y, %y, %gp;" if space == "global" else "add.u32 %x, %x, %sp;"
            address = "%y" if space == "global" else "%x"
            access = self.pick(f"ld.{space}.{type_} {self.reg(letter)}, [{address}];", f"st.{space}.{type_} [{address}], {self.reg(letter)};")
            return f"{{ .reg .b32 %x; .reg .b64 %y; {index} {add} {access} }}"
        return self.pick(f"ld.{space}.{type_} {self.reg(letter)}, [{base}+{at}];", f"st.{space}.{type_} [{base}+{at}], {self.reg(letter)};")

    def atomic(self) -> str:
        space = self.pick("global", "shared")
        base = "%gp" if space == "global" else "%sp"
        at = 4 * self.rng.randrange(SLOT // 4)
        name = self.pick("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "exch.b32", "inc.u32", "dec.u32", "min.u32", "max.s32")
        if self.rng.random() < 0.2:
            return f"atom.{space}.cas.b32 {self.reg('r')}, [{base}+{at}], {self.value(32)}, {self.reg('r')};"
        if self.rng.random() < 0.3 and not name.startswith("exch"):
            return f"red.{space}.{name} [{base}+{at}], {self.value(32)};"
        return f"atom.{space}.{name} {self.reg('r')}, [{base}+{at}], {self.value(32)};"

    def statements(self, count: int, depth: int = 0) -> list[Statement]:
        out: list[Statement] = []
        for _ in range(count):
            if depth < 3 and self.rng.random() < 0.12:
                kind = self.pick("if", "if", "loop")
                number = self.rng.randrange(3) if kind == "if" else self.rng.randint(1, 3)
                other = self.statements(self.rng.randrange(4), depth + 1) if self.rng.random() < 0.4 else []
                body = self.statements(self.rng.randint(1, 5), depth + 1)
                out.append(Block(kind, number, self.rng.random() < 0.5, body, other if kind == "if" else []))
                continue
            text = self.rng.choice(self.kinds)()
            guarded = self.rng.random() < 0.1 and "{ " not in text and text.count(";") == 1 and not text.startswith(UNGUARDED)
            out.append(f"@{self.pick('', '!')}{self.reg('p')} {text}" if guarded else text)
        return out


def program(seed: int, families: tuple[str, ...]) -> list[Statement]:
    maker = Maker(seed, families)
    return maker.statements(maker.rng.randint(4, 30))


def text(statements: list[Statement], name: str = "k0") -> str:
    """The kernel `name(in, out, scratch)` of a program."""
    lines = [
        f".visible .entry {name}(.param .u64 in, .param .u64 out, .param .u64 scratch)", "{", f".shared .align 8 .b8 {name}_s[{SLOT * THREADS}];",
        ".reg .b16 %h<3>; .reg .b32 %r<5>, %f<4>, %sp, %t; .reg .b64 %w<4>, %d<3>, %in, %out, %gp, %o; .reg .pred %p<3>, %q;",
        "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u64 %gp, [scratch]; mov.u32 %t, %tid.x;",
        f"mul.wide.u32 %o, %t, {SLOT}; add.u64 %in, %in, %o; add.u64 %gp, %gp, %o; mul.wide.u32 %o, %t, {8 * len(OUTPUTS)}; add.u64 %out, %out, %o;",
        f"mov.u32 %sp, {name}_s; mad.lo.u32 %sp, %t, {SLOT}, %sp;",
    ]  # fmt: skip
    lines += [f"st.shared.u64 [%sp+{8 * i}], 0;" for i in range(SLOT // 8)]
    lines += [f"ld.global.b64 %w{i}, [%in+{8 * i}];" for i in range(4)] + [f"ld.global.b32 %r{i}, [%in+{32 + 4 * i}];" for i in range(5)]
    lines += [f"ld.global.b16 %h{i}, [%in+{52 + 2 * i}];" for i in range(3)] + [f"ld.global.b32 %f{i}, [%in+{60 + 4 * i}];" for i in range(4)]
    lines += [f"ld.global.b64 %d{i}, [%in+{80 + 8 * i}];" for i in range(3)]
    lines += [f"setp.lt.s32 %p{i}, %r{i}, 0;" for i in range(3)]
    labels = iter(range(1 << 20))
    _emit(statements, lines, labels)
    for place, (letter, i) in enumerate(OUTPUTS):
        wide = {"h": f"cvt.u64.u16 %o, %h{i};", "r": f"cvt.u64.u32 %o, %r{i};", "f": f"cvt.u64.u32 %o, %f{i};", "p": f"selp.b64 %o, 1, 0, %p{i};"}
        lines.append(f"{wide.get(letter, f'mov.b64 %o, %{letter}{i};')} st.global.b64 [%out+{8 * place}], %o;")
    return "\n".join([*lines, "ret;", "}"])


def _emit(statements: list[Statement], lines: list[str], labels: object) -> None:
    for s in statements:
        if isinstance(s, str):
            lines.append(s)
            continue
        n = next(labels)  # type: ignore[call-overload]
        if s.kind == "if":
            lines.append(f"@{'' if s.negated else '!'}%p{s.number} bra L{n}else;")
            _emit(s.body, lines, labels)
            lines += [f"bra L{n}end;", f"L{n}else:"]
            _emit(s.other, lines, labels)
            lines.append(f"L{n}end:")
        else:
            lines += [f"{{ .reg .b32 %n{n}; .reg .pred %more{n}; mov.u32 %n{n}, {s.number};", f"L{n}loop:"]
            _emit(s.body, lines, labels)
            lines.append(f"sub.u32 %n{n}, %n{n}, 1; setp.ne.u32 %more{n}, %n{n}, 0; @%more{n} bra L{n}loop; }}")


def module(kernels: list[str], chip: str) -> str:
    return f".version 8.8\n.target {chip}\n.address_size 64\n" + "\n".join(kernels) + "\n"
