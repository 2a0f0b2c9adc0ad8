"""How operations become instructions: operand layouts of SASS opcodes as data, and rules for the pseudo operations."""

from __future__ import annotations

from sassay.isel.emit import TRUE, Emitter, fail, rule
from sassay.isel.ir import Op, Value
from sassay.sass.model import R_ZERO, File, Imm, ImmKind, Operand, Reg

FORMS = {
    "FADD": "d a b", "FMUL": "d a b", "FFMA": "d a b c", "FMNMX": "d a b p", "FSETP": "P T a b p", "DADD": "d a b", "DMUL": "d a b",
    "DFMA": "d a b c", "DSETP": "P P a b p", "MUFU": "d a", "FCHK": "P a a", "FRND": "d a", "F2F": "d a", "F2I": "d a", "I2F": "d a",
    "I2FP": "d a", "F2FP": "d a b c", "POPC": "d a", "FLO": "d a", "BREV": "d a", "IABS": "d a", "SGXT": "d a b", "BMSK": "d a b",
    "PRMT": "d a b a", "SHF": "d a b a", "IDP": "d a b a", "HADD2": "d a b", "HMUL2": "d a b", "HFMA2": "d a b c", "HMNMX2": "d a b p",
    "HSETP2": "P P a b p", "HSET2": "d a b p", "VIADD": "d a a", "FMNMX3": "d a b c p", "FHADD": "d a a", "FHFMA": "d a a a",
    "FADD2": "d a a", "FMUL2": "d a a", "FFMA2": "d a a a", "HMMA": "d a a a", "IMMA": "d a a a", "DMMA": "d a a a", "IMAD": "d a b c",
    "SHFL": "P d a i i", "NANOSLEEP": "i", "ACQBULK": "", "PREEXIT": "", "ERRBAR": "", "CGAERRBAR": "", "MEMBAR": "", "FENCE": "",
    "LDGDEPBAR": "", "MOVM": "d a",
}  # fmt: skip
"""Operands in the order of nvdisasm's text. d, P: results (register, predicate); a: register; b, c: register, immediate or uniform, c only when b is
a register; i: register or immediate; p: predicate; T: PT. Corroborated by ptxas output for sm_90a, sm_100a and sm_120a."""

COMMUTATIVE = ("FADD", "FMUL", "FFMA", "FMNMX", "DADD", "DMUL", "DFMA", "HADD2", "HMUL2", "HFMA2", "IMAD", "HMNMX2")
KINDS = {"F": "f32", "D": "f64"}


def value_kind(op: Op) -> str:
    """How constants of the operation read: f32 for FADD and its like, f64 for DADD, integers else."""
    if op.name in ("FADD", "FMUL", "FFMA", "FMNMX", "FSETP", "FCHK"):
        return "f32"
    if op.name in ("DADD", "DMUL", "DFMA", "DSETP"):
        return "f64"
    if op.name in ("HSET2", "HADD2", "HMUL2", "HFMA2", "HMNMX2", "HSETP2"):
        return "half"
    return "int" if op.name == "IMAD" else "bits"


def fold_float_modifiers(op: Op) -> tuple[list[Value], list[str]]:
    """Arguments with negations and absolute values of f32 and f64 moved into the operand."""
    args, amods = list(op.args), list(op.amods)
    if op.name not in ("FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA", "FSETP", "DSETP", "FMNMX", "MUFU", "FCHK"):
        return args, amods
    no_abs = op.name in ("FFMA", "DFMA")
    for i, v in enumerate(args):
        while v.op.name in ("fneg", "fabs", "fneg64", "fabs64"):
            absolute = v.op.name.startswith("fabs")
            if absolute and no_abs:
                break
            if absolute:
                if "|" not in amods[i]:
                    amods[i] += "|"
            elif "|" not in amods[i]:
                amods[i] = amods[i].replace("-", "") if "-" in amods[i] else "-" + amods[i]
            v = v.op.args[0]
        args[i] = v
    return args, amods


def half_immediate(v: Value, bf16: bool) -> list[Operand]:
    """A packed constant: two immediates, high half first."""
    c = v.const or 0
    kind = ImmKind.BF16 if bf16 else ImmKind.F16
    return [Imm(c >> 16, kind), Imm(c & 0xFFFF, kind)]


def is_leaf_operand(e: Emitter, v: Value) -> bool:
    return v.const is not None or e.is_uniform_leaf(v)


def emit_form(e: Emitter, op: Op) -> None:
    """An operation whose opcode has a layout."""
    if op.name not in FORMS:
        raise fail(op, "no rule")
    kind = value_kind(op)
    args, amods = fold_float_modifiers(op)
    if op.name in COMMUTATIVE and len(args) >= 2 and args[0].width and "F32" not in op.mods:
        if is_leaf_operand(e, args[0]) and not is_leaf_operand(e, args[1]):
            args[0], args[1] = args[1], args[0]
            amods[0], amods[1] = amods[1], amods[0]
    operands: list[Operand] = []
    results = iter(op.results)
    k = 0
    taken = False
    for letter in FORMS[op.name].split():
        if letter in "dP":
            r = next(results, None)
            operands.append((TRUE if letter == "P" else R_ZERO) if r is None else e.dest(r))
            continue
        if letter == "T":
            operands.append(TRUE)
            continue
        if k >= len(args):
            break
        v, mod = args[k], amods[k]
        k += 1
        if letter == "p":
            operands.append(e.pred(v, mod == "!"))
        elif letter == "i":
            operands.append(Imm(v.const) if v.const is not None and v.const else e.reg(v))
        elif letter in "bc" and kind == "half":
            if v.const and not taken:
                if "-" in mod:
                    v = e.graph.const(v.const ^ 0x80008000)
                operands.extend(half_immediate(v, "BF16_V2" in op.mods))
                taken = True
            else:
                operands.append(e.a(v, mod))
        elif letter == "b" or (letter == "c" and not taken):
            o = e.flexible(v, mod, kind) if v.width <= (2 if kind == "f64" else 1) else e.a(v, mod)
            taken = taken or not (isinstance(o, Reg) and o.file is File.R)
            operands.append(o)
        else:
            operands.append(e.a(v, mod))
    e.ins(op.name, op.mods, operands, op.memory)


# Floats without an operation of their own ----------------------------------------------------------------------------------------------------


@rule("fneg", "fabs")
def emit_fneg(e: Emitter, op: Op) -> None:
    mod = "-" if op.name == "fneg" else "|"
    x = op.args[0]
    if x.op.name == "fabs" and op.name == "fneg":
        x, mod = x.op.args[0], "-|"
    e.ins("FADD", (), [e.dest(op.results[0]), e.a(x, mod), e.modified(R_ZERO, "-")])


@rule("fneg64", "fabs64")
def emit_fneg64(e: Emitter, op: Op) -> None:
    e.ins("DADD", (), [e.dest(op.results[0]), e.modified(R_ZERO, "-"), e.a(op.args[0], "-" if op.name == "fneg64" else "|")])


# Tuples --------------------------------------------------------------------------------------------------------------------------------------


@rule("pack")
def emit_pack(e: Emitter, op: Op) -> None:
    """Words are made in place where this is their only use and they have no register yet; others are copied."""
    file, base = e.home(op.results[0])
    at = 0
    for v in op.args:
        fresh = v.op.name not in (*SHARED, "part") and e.count.get(v, 0) == 1 and v not in e.place and v.width in (1, 2) and not aligned_badly(v, at)
        if fresh and v.op.guard is None and len(v.op.results) == 1:
            e.place[v] = (file, base + at)
            e.wanted.add(v)
        else:
            for word in range(v.width):
                e.ins("MOV", (), [Reg(File.R, base + at + word), e.word_operand(v, word)])
        at += v.width


SHARED = ("const", "param", "undef", "sr", "sp", "phi")


def aligned_badly(v: Value, at: int) -> bool:
    return v.width == 2 and at % 2 == 1


@rule("part")
def emit_part(e: Emitter, op: Op) -> None:
    e.home(op.args[0])
