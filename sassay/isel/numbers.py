"""Arithmetic on constants, truth tables, and what is surely known of a value's bits."""

from __future__ import annotations

from sassay.isel.ir import Value

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF
LUT_A, LUT_B, LUT_C = 0xF0, 0xCC, 0xAA

NEGATED = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
SWAPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}


def signed(v: int, bits: int = 32) -> int:
    return v - (1 << bits) if v >> (bits - 1) & 1 else v


def compare(cmp: str, a: int, b: int) -> bool:
    return {"EQ": a == b, "NE": a != b, "LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b}[cmp]


def lut_apply(lut: int, a: int, b: int, c: int, bits: int = 32) -> int:
    """The bitwise function with truth table `lut` of three numbers."""
    full = (1 << bits) - 1
    out = 0
    for i in range(8):
        if lut >> i & 1:
            out |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return out & full


def lut_depends(lut: int, position: int) -> bool:
    """Whether the table depends on its operand 0, 1 or 2."""
    step = (4, 2, 1)[position]
    return any((lut >> i & 1) != (lut >> (i | step) & 1) for i in range(8) if not i & step)


def lut_fix(lut: int, position: int, value: int) -> int:
    """The table with one operand fixed to all zeros or all ones."""
    step = (4, 2, 1)[position]
    return sum((lut >> ((i & ~step) | (step if value else 0)) & 1) << i for i in range(8))


def lut_exchange(lut: int, i: int, j: int) -> int:
    """The table with operands i and j exchanged."""
    a, b = (4, 2, 1)[i], (4, 2, 1)[j]
    return sum((lut >> ((k & ~(a | b)) | (a if k & b else 0) | (b if k & a else 0)) & 1) << k for k in range(8))


def prmt_apply(a: int, b: int, selector: int) -> int:
    """What PRMT computes in its default mode."""
    pool = (b << 32) | a
    out = 0
    for i in range(4):
        nib = selector >> (4 * i) & 0xF
        byte = pool >> (8 * (nib & 7)) & 0xFF
        if nib & 8:
            byte = 0xFF if byte & 0x80 else 0
        out |= byte << (8 * i)
    return out


def is_sext(v: Value) -> bool:
    """Whether a 64-bit value is its low word sign-extended, by construction."""
    if v.op.name != "pack" or len(v.op.args) != 2:
        return False
    lo, hi = v.op.args
    return hi.op.name == "shr" and hi.op.attr == (True,) and hi.op.args[0] is lo and hi.op.args[1].const == 31


def known_zero(v: Value, depth: int = 4) -> int:
    """Bits of a 32-bit value that are surely zero."""
    if v.const is not None:
        return ~v.const & MASK32
    op = v.op
    if depth == 0 or op.guard is not None:
        return 0
    if op.name == "lop3":
        if op.attr == (0xC0,):
            return known_zero(op.args[0], depth - 1) | known_zero(op.args[1], depth - 1)
        if op.attr in ((0xFC,), (0x3C,)):
            return known_zero(op.args[0], depth - 1) & known_zero(op.args[1], depth - 1)
    if op.name == "shr" and op.attr == (False,) and op.args[1].const is not None:
        n = op.args[1].const
        return (known_zero(op.args[0], depth - 1) >> n) | (MASK32 & ~(MASK32 >> n))
    if op.name == "shl" and op.args[1].const is not None:
        n = op.args[1].const
        return ((known_zero(op.args[0], depth - 1) << n) | ((1 << n) - 1)) & MASK32
    if op.name == "sel":
        return known_zero(op.args[1], depth - 1) & known_zero(op.args[2], depth - 1)
    if op.name == "load" and op.mods and op.mods[-1] in ("U8", "U16"):
        return 0xFFFFFF00 if op.mods[-1] == "U8" else 0xFFFF0000
    if op.name == "sr":
        return {"SR_TID.X": 0xFFFFFC00, "SR_TID.Y": 0xFFFFFC00, "SR_TID.Z": 0xFFFFFFC0, "SR_LANEID": 0xFFFFFFE0}.get(str(op.attr[0]), 0)
    if op.name == "POPC":
        return 0xFFFFFFC0
    return 0


def known_signed(v: Value, bits: int) -> bool:
    """Whether a word is surely the sign extension of its low `bits`."""
    top = MASK32 & ~((1 << (bits - 1)) - 1)
    if known_zero(v) & top == top:
        return True
    op = v.op
    if op.name == "load" and op.mods and op.guard is None:
        return op.mods[-1] == "S8" or (op.mods[-1] == "S16" and bits == 16)
    if op.name == "PRMT" and op.args[2].const == 0:
        return op.args[1].const == 0x8880 or (op.args[1].const == 0x9910 and bits == 16)
    return False
