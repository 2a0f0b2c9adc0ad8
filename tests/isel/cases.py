"""One-operation cases for the differential tests: (PTX text, result type, source types)."""

from __future__ import annotations

Case = tuple[str, str, tuple[str, ...]]
INTS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
ROUNDINGS = ("rn", "rz", "rm", "rp")


def wide_register(type_: str) -> str:
    return "b64" if type_[1:] == "64" else "b32" if type_[1:] == "32" else "b16"


def arithmetic() -> list[Case]:
    out: list[Case] = []
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        out += [(f"{op}.{t} %d, %a, %b;", t, (t, t)) for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max")]
        out += [(f"mad.lo.{t} %d, %a, %b, %c;", t, (t, t, t)), (f"shr.{t} %d, %a, %b;", t, (t, "u32")), (f"shr.{t} %d, %a, 3;", t, (t,))]
        out += [(f"max.{t} %b, %b, 1; {op}.{t} %d, %a, %b;", t, (t, t)) for op in ("div", "rem")]
        out += [(f"setp.{c}.{t} %d, %a, %b;", "pred", (t, t)) for c in ("eq", "ne", "lt", "le", "gt", "ge")]
        out += [
            (f"setp.lt.and.{t} %d, %a, %b, %c;", "pred", (t, t, "pred")), (f"setp.ge.or.{t} %d, %a, %b, !%c;", "pred", (t, t, "pred")),
            (f"setp.gt.xor.{t} %d, %a, 7, %c;", "pred", (t, t, "pred")),
        ]  # fmt: skip
    for t in ("u32", "s32"):
        w = t[0] + "64"
        out += [(f"mul.wide.{t} %d, %a, %b;", w, (t, t)), (f"mad.wide.{t} %d, %a, %b, %c;", w, (t, t, w))]
        out.append((f"mad.hi.{t} %d, %a, %b, %c;", t, (t, t, t)))
        out += [(f"mul24.{p}.{t} %d, %a, %b;", t, (t, t)) for p in ("lo", "hi")] + [(f"sad.{t} %d, %a, %b, %c;", t, (t, t, t))]
        out += [(f"{op}.sat.s32 %d, %a, %b;", "s32", ("s32", "s32")) for op in ("add", "sub")]
    out += [(f"mul.wide.{t} %d, %a, %b;", t[0] + "32", (t, t)) for t in ("u16", "s16")]
    out += [(f"{op}.{t} %d, %a;", t, (t,)) for t in ("s16", "s32", "s64") for op in ("abs", "neg")]
    out += [
        ("{.reg .u32 %x, %y; add.cc.u32 %x, %a, %b; addc.cc.u32 %y, %a, %c; addc.u32 %x, %x, %y; mov.b32 %d, %x;}", "b32", ("b32",) * 3),
        ("{.reg .u32 %x, %y; sub.cc.u32 %x, %a, %b; subc.cc.u32 %y, %a, %c; subc.u32 %x, %x, %y; mov.b32 %d, %x;}", "b32", ("b32",) * 3),
        ("{.reg .u32 %x, %y; mad.lo.cc.u32 %x, %a, %b, %c; madc.hi.u32 %y, %a, %b, %c; xor.b32 %d, %x, %y;}", "b32", ("b32",) * 3),
        ("{.reg .u64 %x, %y; sub.cc.u64 %x, %a, %b; subc.u64 %y, %a, %c; xor.b64 %d, %x, %y;}", "b64", ("b64",) * 3),
        ("@%c add.s32 %d, %a, %b; @!%c mov.b32 %d, %b;", "s32", ("s32", "s32", "pred")),
        ("{.reg .b64 %x, %y; shl.b64 %x, %a, 8; shr.u64 %y, %a, 56; sub.s64 %d, %x, %y;}", "b64", ("b64",)),
        ("{.reg .b32 %x; mov.b32 %x, 0x10001; add.s16x2 %x, %a, %x; and.b32 %d, %x, 0xffff;}", "b32", ("b32",)),
        ("{.reg .s32 %x; neg.s32 %x, %a; max.s32 %x, %x, %a; max.s32 %d, %x, %b;}", "s32", ("s32", "s32")),
    ]  # fmt: skip
    return out


def division_by_constants() -> list[Case]:
    out: list[Case] = []
    for d in (1, 2, 3, 5, 7, 10, 14, 28, 641, 65535, 65536, 1000000007, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF):
        out += [(f"{op}.u32 %d, %a, {d};", "u32", ("u32",)) for op in ("div", "rem")]
    for d in (1, -1, 2, -2, 3, -3, 7, -7, 10, 641, 65536, -65536, 1000000007, 0x7FFFFFFF, -2147483648, -2147483647):
        out += [(f"{op}.s32 %d, %a, {d};", "s32", ("s32",)) for op in ("div", "rem")]
    for d in (1, 3, 8, 1000, 1 << 32, (1 << 32) + 1, 1 << 63, 0xFFFFFFFFFFFFFFFF):
        out += [(f"{op}.u64 %d, %a, {d};", "u64", ("u64",)) for op in ("div", "rem")]
    for d in (-1, 3, -8, -1000, 1 << 40):
        out += [(f"{op}.s64 %d, %a, {d};", "s64", ("s64",)) for op in ("div", "rem")]
    return out


def bits() -> list[Case]:
    out: list[Case] = []
    for t in ("b16", "b32", "b64"):
        out += [(f"{op}.{t} %d, %a, %b;", t, (t, t)) for op in ("and", "or", "xor")] + [(f"{op}.{t} %d, %a;", t, (t,)) for op in ("not", "cnot")]
        out += [(f"shl.{t} %d, %a, %b;", t, (t, "u32")), (f"shl.{t} %d, %a, 5;", t, (t,)), (f"selp.{t} %d, %a, %b, %c;", t, (t, t, "pred"))]
    out += [(f"{op} %d, %a, {n};", op[-3:], (op[-3:],)) for op in ("shl.b64", "shr.s64", "shr.u64") for n in (32, 37, 64)]
    for t in ("b32", "b64"):
        out += [(f"popc.{t} %d, %a;", "u32", (t,)), (f"clz.{t} %d, %a;", "u32", (t,)), (f"brev.{t} %d, %a;", t, (t,))]
        out += [(f"bfi.{t} %d, %a, %b, {p}, {n};", t, (t, t)) for p, n in ((5, 9), (28, 12), (0, 0))]
        out.append((f"bfi.{t} %d, %a, %b, %c, %e;", t, (t, t, "u32", "u32")))
    for t in ("u32", "s32", "u64", "s64"):
        out += [(f"bfind.{t} %d, %a;", "u32", (t,)), (f"bfind.shiftamt.{t} %d, %a;", "u32", (t,)), (f"bfe.{t} %d, %a, %b, %c;", t, (t, "u32", "u32"))]
        out += [(f"bfe.{t} %d, %a, {p}, {n};", t, (t,)) for p, n in ((28, 8), (40, 4), (5, 7), (0, 0), (0, 32))]
    out += [(f"prmt.b32{m} %d, %a, %b, %c;", "b32", ("b32",) * 3) for m in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")]
    out += [(f"lop3.b32 %d, %a, %b, %c, {lut};", "b32", ("b32",) * 3) for lut in (0x96, 0xE8, 0xCA, 0x1B, 0x80)]
    out += [(f"shf.{d}.{m}.b32 %d, %a, %b, {n};", "b32", ("b32", "b32", "u32")) for d in "lr" for m in ("wrap", "clamp") for n in ("%c", "7")]
    out += [(f"dp4a.{x}32.{y}32 %d, %a, %b, %c;", "s32", ("b32",) * 3) for x in "us" for y in "us"]
    out += [(f"dp2a.{h}.{x}32.{y}32 %d, %a, %b, %c;", "s32", ("b32",) * 3) for h in ("lo", "hi") for x in "us" for y in "us"]
    out += [(f"bmsk.{m}.b32 %d, %a, %b;", "b32", ("u32", "u32")) for m in ("clamp", "wrap")]
    out += [(f"{op}.{t} %d, %a, %b;", t, (t, t)) for t in ("s16x2", "u16x2") for op in ("add", "min", "max")]
    out += [(f"{op}.pred %d, %a, %b;", "pred", ("pred", "pred")) for op in ("and", "or", "xor")] + [("not.pred %d, %a;", "pred", ("pred",))]
    out += [
        ("{.reg .b16 %x, %y; mov.b32 {%x, %y}, %a; add.s16 %x, %x, %y; mov.b32 %d, {%y, %x};}", "b32", ("b32",)),
        ("{.reg .b16 %x, %y; mov.b32 {%x, %y}, %a; max.s16 %x, %x, %y; cvt.s32.s16 %d, %x;}", "s32", ("b32",)),
        ("{.reg .b32 %x, %y; mov.b64 {%x, %y}, %a; xor.b32 %x, %x, %y; mov.b64 %d, {%y, %x};}", "b64", ("b64",)),
    ]  # fmt: skip
    return out


def conversions() -> list[Case]:
    out: list[Case] = []
    for a in INTS:
        for b in INTS:
            if a != b:
                out.append((f"cvt.{a}.{b} %d, %a;", wide_register(a), (b,)))
            out.append((f"cvt.sat.{a}.{b} %d, %a;", wide_register(a), (b,)))
        for f in ("f32", "f64", "f16"):
            rounds = ("rni", "rzi", "rmi", "rpi") if a in ("s32", "u64") else ("rzi",)
            out += [(f"cvt.{r}.{a}.{f} %d, %a;", wide_register(a), (f,)) for r in rounds]
            out += [(f"cvt.{r}.{f}.{a} %d, %a;", f, (a,)) for r in ("rn", "rz") if f != "f16" or r == "rn"]
    out += [(f"cvt.{r}.{a}.{b} %d, %a;", a, (b,)) for a, b in (("f32", "f64"), ("f16", "f32"), ("f16", "f64"), ("bf16", "f32")) for r in ("rn", "rz")]
    out += [(f"cvt.{a}.{b} %d, %a;", a, (b,)) for a, b in (("f64", "f32"), ("f32", "f16"), ("f64", "f16"), ("f32", "bf16"))]
    out += [(f"cvt.{r}.{f}.{f} %d, %a;", f, (f,)) for f in ("f32", "f64") for r in ("rni", "rzi", "rmi", "rpi")]
    out += [("cvt.sat.f32.f32 %d, %a;", "f32", ("f32",)), ("cvt.ftz.f32.f32 %d, %a;", "f32", ("f32",))]
    out += [("cvt.rna.tf32.f32 %d, %a;", "f32", ("f32",))]
    out += [(f"cvt.rn.{t}.f32 %d, %a, %b;", "b32", ("f32", "f32")) for t in ("f16x2", "bf16x2")]
    return out


def floats() -> list[Case]:
    out: list[Case] = []
    for t in ("f32", "f64"):
        for r in ("", *(f".{x}" for x in ROUNDINGS)):
            out += [(f"{op}{r}.{t} %d, %a, %b;", t, (t, t)) for op in ("add", "sub", "mul")]
        out += [(f"fma.{r}.{t} %d, %a, %b, %c;", t, (t,) * 3) for r in ROUNDINGS]
        out += [(f"{op}.{t} %d, %a;", t, (t,)) for op in ("neg", "abs", "rcp.rn", "sqrt.rn")]
        out += [(f"copysign.{t} %d, %a, %b;", t, (t, t)), (f"div.rn.{t} %d, %a, %b;", t, (t, t)), (f"selp.{t} %d, %a, %b, %c;", t, (t, t, "pred"))]
        out += [(f"testp.{k}.{t} %d, %a;", "pred", (t,)) for k in ("infinite", "finite", "number", "notanumber", "normal", "subnormal")]
    for m in (".ftz", ".sat", ".ftz.sat"):
        out += [(f"{op}{m}.f32 %d, %a, %b;", "f32", ("f32", "f32")) for op in ("add", "mul")]
        out.append((f"fma.rn{m}.f32 %d, %a, %b, %c;", "f32", ("f32",) * 3))
    out += [(f"{op}{m}.f32 %d, %a, %b;", "f32", ("f32", "f32")) for op in ("min", "max") for m in ("", ".ftz", ".NaN", ".ftz.NaN")]
    out += [(f"{op}.f64 %d, %a, %b;", "f64", ("f64", "f64")) for op in ("min", "max")]
    out += [(f"{op}.rn.ftz.f32 %d, %a;", "f32", ("f32",)) for op in ("rcp", "sqrt")] + [("div.rn.ftz.f32 %d, %a, %b;", "f32", ("f32", "f32"))]
    for t in ("f16", "bf16", "f16x2", "bf16x2"):
        out += [(f"{op}.{t} %d, %a, %b;", t, (t, t)) for op in ("add", "sub", "mul", "min", "max", "min.NaN", "max.NaN")]
        out += [(f"fma.rn{m}.{t} %d, %a, %b, %c;", t, (t,) * 3) for m in ("", ".relu")] + [(f"{op}.{t} %d, %a;", t, (t,)) for op in ("neg", "abs")]
    relations = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    out += [(f"setp.{c}.{t} %d, %a, %b;", "pred", (t, t)) for t in ("f32", "f64", "f16", "bf16") for c in relations]
    out += [
        ("setp.lt.and.f32 %d, %a, %b, !%c;", "pred", ("f32", "f32", "pred")), ("setp.gt.ftz.f32 %d, %a, %b;", "pred", ("f32", "f32")),
        ("{.reg .pred %q; setp.lt.and.f32 %d|%q, %a, %b, %c; xor.pred %d, %d, %q;}", "pred", ("f32", "f32", "pred")),
        ("{.reg .pred %q; setp.lt.or.s32 %d|%q, %a, %b, %c; and.pred %d, %d, %q;}", "pred", ("s32", "s32", "pred")),
        ("set.lt.u32.f32 %d, %a, %b;", "u32", ("f32", "f32")), ("set.gt.f32.s32 %d, %a, %b;", "f32", ("s32", "s32")),
        ("slct.f32.s32 %d, %a, %b, %c;", "f32", ("f32", "f32", "s32")), ("slct.b64.f32 %d, %a, %b, %c;", "b64", ("b64", "b64", "f32")),
    ]  # fmt: skip
    return out


FAMILIES = {"arithmetic": arithmetic, "division": division_by_constants, "bits": bits, "conversions": conversions, "floats": floats}
