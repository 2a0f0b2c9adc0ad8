"""Which operands an operation writes and how many registers each one covers, as a function of its modifiers. Data and small width rules.

A row is `opcode: (destinations, destination widths, source widths)`:

- destinations: a regular expression over operand kinds, matched at the start of the operand list, or one of the words `first`, `butlast`,
  `none`. Kinds are one letter each: R (R), U (UR), P (P), Q (UP), B, S (scoreboard), M (memory), C (constant), I, T, N (name), D (gdesc).
- widths: words separated by blanks, one for each register operand kind R or U among the destinations, and one for each source operand in
  order (immediates included, predicates too); the last word repeats. Predicates, barriers and scoreboards are always one wide.

A word is a number or the name of a rule in `WIDTH_RULES`, called with the modifiers.

Source: read off `nvdisasm -plr` (13.5.37) on ptxas output for sm_90a, sm_100a, sm_103a and sm_120a, and on single words of every encoding
class put into a cubin; fragment sizes follow from the shape (rows x columns x bits over 32 lanes of 32 bits).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sassay.errors import SassError

Modifiers = tuple[str, ...]

_INTEGER_64 = frozenset({"64", "S64", "U64"})
_ELEMENT_BITS = {
    "F64": 64, "F32": 32, "S32": 32, "TF32": 32, "F16": 16, "BF16": 16, "E4M3": 8, "E5M2": 8, "E3M2": 8, "E2M3": 8, "E2M1": 8, "S8": 8, "U8": 8,
    "S4": 4, "U4": 4,
}  # fmt: skip


def _data(mods: Modifiers) -> int:
    """Registers of a memory access's data."""
    if "128" in mods:
        return 4
    if "256" in mods:
        return 4  # two operands of four registers each
    if "96" in mods:
        return 3
    return 2 if "64" in mods else 1


def _atomic(mods: Modifiers) -> int:
    """Registers of an atomic's data: .64, .128, 64-bit types, and packed vectors of 16- and 32-bit floats."""
    if "128" in mods:
        return 4
    if any(m in mods for m in ("64", "S64", "U64", "F64")):
        return 2
    for mod in mods:
        found = re.fullmatch(r"(F32|F16|BF16|F16x2|BF16x2)[xX](2|4|8)", mod) or re.fullmatch(r"(F16|BF16|F32)_V(2|4|8)", mod)
        if found:
            bits = 32 if found.group(1) in ("F32", "F16x2", "BF16x2") else 16
            return max(1, bits * int(found.group(2)) // 32)
    return 1


def _int64(mods: Modifiers) -> int:
    return 2 if _INTEGER_64 & set(mods) else 1


def _wide(mods: Modifiers) -> int:
    return 2 if "WIDE" in mods else 1


def _wide_addend(mods: Modifiers) -> int:
    """IMAD's addend is 64 bits wide for .WIDE and .HI, except with .X forms of .HI, which keep the pair too."""
    return 2 if "WIDE" in mods or "HI" in mods else 1


def _cs2r(mods: Modifiers) -> int:
    return 1 if "32" in mods else 2


def _matrix_count(mods: Modifiers) -> int:
    """LDSM, STSM, MOVM: the trailing count of matrices."""
    if "U4TO8" in mods:
        return 2
    return int(mods[-1]) if mods and mods[-1] in ("2", "4") else 1


def _f2f_dst(mods: Modifiers) -> int:
    return 2 if mods and "F64" in mods and mods.index("F64") <= _first_type(mods) else 1


def _first_type(mods: Modifiers) -> int:
    for position, mod in enumerate(mods):
        if mod in ("F64", "F32", "F16", "BF16", "S64", "U64"):
            return position
    return -1


def _convert_types(mods: Modifiers) -> tuple[str, str]:
    """(destination, source) types of a conversion; the last two type words, the sole one being the non-default side."""
    kinds = [m for m in mods if m in _CONVERT_BITS]
    if len(kinds) >= 2:
        return kinds[-2], kinds[-1]
    return (kinds[0], "") if kinds else ("", "")


_CONVERT_BITS = {
    "F64": 64, "S64": 64, "U64": 64, "F32": 32, "S32": 32, "U32": 32, "F16": 16, "BF16": 16, "S16": 16, "U16": 16, "S8": 8, "U8": 8,
    "TF32": 32,
}  # fmt: skip


def _f2f_d(mods: Modifiers) -> int:
    return 2 if _convert_types(mods)[0] == "F64" else 1


def _f2f_s(mods: Modifiers) -> int:
    return 2 if _convert_types(mods)[1] == "F64" else 1


def _f2i_d(mods: Modifiers) -> int:
    return 2 if "S64" in mods or "U64" in mods else 1


def _f2i_s(mods: Modifiers) -> int:
    return 2 if "F64" in mods else 1


def _i2f_d(mods: Modifiers) -> int:
    return 2 if "F64" in mods else 1


def _i2f_s(mods: Modifiers) -> int:
    return 2 if "S64" in mods or "U64" in mods else 1


def _frnd(mods: Modifiers) -> int:
    return 2 if "F64" in mods else 1


_SHAPE = re.compile(r"(16|8)x?8x?(\d+)")


def _shape(mods: Modifiers) -> tuple[int, int, int]:
    """(m, n, k) of a warp-level MMA's shape modifier: 16816, 1688, 16x8x16, 8x8x4, 8816."""
    for mod in mods:
        found = _SHAPE.fullmatch(mod)
        if found:
            return int(found.group(1)), 8, int(found.group(2))
    raise SassError(f"no matrix shape among the modifiers {'.'.join(mods)}")


def _input_bits(mods: Modifiers, which: int) -> int:
    """Bits of an element of A (0) or B (1)."""
    kinds = [m for m in mods if m in _ELEMENT_BITS and m not in ("F32", "S32", "F64")]
    if len(kinds) > 1 and kinds[0] == "F16" and kinds[1] in ("E4M3", "E5M2", "E3M2", "E2M3", "E2M1"):
        kinds = kinds[1:]  # F16 names the accumulator
    if not kinds:
        return 16
    return _ELEMENT_BITS[kinds[min(which, len(kinds) - 1)]]


def _fragment(elements: int, bits: int) -> int:
    return max(1, elements * bits // 1024)


def _mma_bits(mods: Modifiers, which: int) -> int:
    _, _, k = _shape(mods)
    if "AND" in mods or "XOR" in mods:
        return 1
    bits = _input_bits(mods, which)
    if "E2M1" in mods and k >= 64 and "SP" not in mods:
        return 4  # packed fp4 (OMMA)
    if "E2M1" in mods and k >= 128:
        return 4
    return bits


def _mma_a(mods: Modifiers) -> int:
    m, _, k = _shape(mods)
    return _fragment(m * k // (2 if "SP" in mods else 1), _mma_bits(mods, 0))


def _mma_b(mods: Modifiers) -> int:
    _, n, k = _shape(mods)
    return _fragment(n * k, _mma_bits(mods, 1))


def _mma_c(mods: Modifiers) -> int:
    m, n, _ = _shape(mods)
    return _fragment(m * n, 16 if "F16" in mods and "F32" not in mods else 32)


def _dmma(mods: Modifiers, which: str) -> int:
    m, n, k = _shape(mods)
    return {"a": m * k, "b": n * k, "c": m * n}[which] * 64 // 1024


def _gmma_shape(mods: Modifiers) -> tuple[int, int, int]:
    for mod in mods:
        found = re.fullmatch(r"(\d+)x(\d+)x(\d+)", mod)
        if found:
            return int(found.group(1)), int(found.group(2)), int(found.group(3))
    raise SassError(f"no matrix shape among the modifiers {'.'.join(mods)}")


def _gmma_c(mods: Modifiers) -> int:
    """Accumulators of a warpgroup MMA: m x n over 128 lanes; f16 ones packed by two."""
    m, n, _ = _gmma_shape(mods)
    return m * n // 128 // (2 if "F16" in mods and "F32" not in mods else 1)


def _tmem(mods: Modifiers) -> int:
    """Registers of a tensor-memory load or store: shape's lanes x bits, times the repeat count."""
    count = 1
    for mod in mods:
        found = re.fullmatch(r"x(\d+)", mod)
        if found:
            count = int(found.group(1))
    unit = 1
    if any(m.startswith("16dp256bit") for m in mods):
        unit = 4
    elif any(m.startswith("16dp128bit") for m in mods):
        unit = 2
    return count * unit


WIDTH_RULES: dict[str, Callable[[Modifiers], int]] = {
    "data": _data,
    "atomic": _atomic,
    "int64": _int64,
    "wide": _wide,
    "addend": _wide_addend,
    "cs2r": _cs2r,
    "matrices": _matrix_count,
    "f2f_d": _f2f_d,
    "f2f_s": _f2f_s,
    "f2i_d": _f2i_d,
    "f2i_s": _f2i_s,
    "i2f_d": _i2f_d,
    "i2f_s": _i2f_s,
    "frnd": _frnd,
    "mma_a": _mma_a,
    "mma_b": _mma_b,
    "mma_c": _mma_c,
    "dmma_a": lambda mods: _dmma(mods, "a"),
    "dmma_b": lambda mods: _dmma(mods, "b"),
    "dmma_c": lambda mods: _dmma(mods, "c"),
    "gmma_c": _gmma_c,
    "tmem": _tmem,
    "sync": lambda mods: 2 if "TRANS64" in mods or "64" in mods else 1,
    "sync_data": lambda mods: 2 if "64" in mods else 1,
}

def _tensor_dimensions(mods: Modifiers) -> int:
    for mod in mods:
        if re.fullmatch(r"[1-5]D", mod) and "IM2COL" not in mods:
            return int(mod[0])
    raise SassError(f"coordinates of a tensor copy with modifiers {'.'.join(mods)} are not known")


def address_widths(opcode: str, mods: Modifiers) -> tuple[int, ...] | None:
    """Uniform registers behind each memory operand of the bulk and tensor copies, in order; None for other operations.

    A bulk copy into shared memory names its buffer and mbarrier by a pair, global addresses are pairs. A tensor copy's coordinates follow:
    a load has buffer, mbarrier and coordinates, a store buffer and coordinates; the tensor map's address is a pair.
    """
    if opcode in ("UBLKCP", "UBLKRED"):
        return (2, 2) if mods[:2] == ("S", "G") else (2, 1)
    if opcode == "UTMALDG":
        return 2 + _tensor_dimensions(mods), 2
    if opcode in ("UTMASTG", "UTMAREDG"):
        return 1 + _tensor_dimensions(mods), 2
    if opcode.startswith("UTC") and opcode.endswith("MMA"):
        return 2, 2, 1, 1, 1
    return None


Row = tuple[str, str, str]


def _same(names: str, row: Row) -> dict[str, Row]:
    return dict.fromkeys(names.split(), row)


ROWS: dict[str, Row] = {
    # single-width arithmetic, one destination
    **_same(
        "FADD FMUL FFMA FSEL FMNMX FMNMX3 FSWZADD FHADD FHFMA HADD2 HMUL2 HFMA2 HMNMX2 VHMNMX HADD2_32I HFMA2_32I HMUL2_32I FADD32I FMUL32I "
        "FFMA32I IABS IADD32I BREV FLO POPC SGXT BMSK PRMT VIADD VIMNMX VIMNMX3 VIADDMNMX VABSDIFF VABSDIFF4 IDP IDP4A I2I I2FP F2IP "
        "I2IP MUFU MOV32I F2FP UF2FP UI2FP UFADD UFMUL UFFMA UFSEL UFMNMX UFRND UVIADD UVIMNMX UIABS UBREV UFLO UPOPC USGXT UBMSK UPRMT "
        "UF2I UI2I UIDP UI2F UF2F UF2IP UI2IP",
        ("[RU]", "1", "1"),
    ),
    **_same("FADD2 FMUL2 FFMA2 FMNMX2", ("R", "2", "2")),
    **_same("DADD DMUL DFMA DMNMX", ("R", "2", "2")),
    **_same("MOV UMOV SEL USEL", ("[RU]", "int64", "int64")),
    **_same("IADD UIADD IADD3 UIADD3", ("[RU][PQ]*", "int64", "int64")),
    **_same("LEA ULEA", ("[RU][PQ]*", "1", "1")),
    **_same("LOP3 ULOP3", ("[PQ]?[RU]", "1", "1")),
    "PLOP3": ("PP", "", "1"),
    "UPLOP3": ("QQ", "", "1"),
    **_same("SHF USHF SHL SHR USHL USHR", ("[RU]", "1", "1")),
    **_same("IMAD UIMAD", ("[RU][PQ]*", "wide", "1 1 addend 1")),
    **_same("IMUL IMAD32I", ("R", "wide", "1")),
    **_same("ISETP UISETP", ("[PQ]{2}", "", "int64")),
    **_same("FSETP HSETP2 UFSETP UHSETP2 PSETP UPSETP CSETP LSETP", ("[PQ]{2}", "", "1")),
    "DSETP": ("PP", "", "2"),
    **_same("IMNMX UIMNMX", ("[PQ]{0,2}[RU]", "int64", "int64")),
    "FSET": ("R", "1", "1"),
    "HSET2": ("R", "1", "1"),
    "DSET": ("R", "1", "2"),
    "FCHK": ("P", "", "1"),
    "F2F": ("R", "f2f_d", "f2f_s"),
    "F2I": ("R", "f2i_d", "f2i_s"),
    "I2F": ("R", "i2f_d", "i2f_s"),
    "FRND": ("R", "frnd", "frnd"),
    # moves between files
    "S2R": ("R", "1", "1"),
    "S2UR": ("U", "1", "1"),
    "CS2R": ("R", "cs2r", "1"),
    "CS2UR": ("U", "cs2r", "1"),
    "P2R": ("R", "1", "1"),
    "R2P": ("N", "", "1"),
    "UP2UR": ("U", "1", "1"),
    "UR2UP": ("N", "", "1"),
    "R2UR": ("[PQ]?U", "1", "1"),
    "R2B": ("B", "", "1"),
    "B2R": ("RP?", "1", "1"),
    **_same("BMOV RPCMOV", ("[RBN]", "int64", "int64")),
    "LEPC": ("R", "2", "1"),
    "PRMT2": ("R", "1", "1"),
    # warp
    "QSPC": ("PR", "1", "1"),
    "SHFL": ("PR", "1", "1"),
    **_same("VOTE VOTEU", ("butlast", "1", "1")),
    "MATCH": ("P?R", "1", "int64"),
    "REDUX": ("U", "1", "1"),
    "CREDUX": ("U", "1", "1"),
    "ELECT": ("[PQ]?U?", "1", "1"),
    "MOVM": ("R", "matrices", "1"),
    # matrix
    "HMMA": ("R", "mma_c", "mma_a mma_b mma_c 1"),
    "IMMA": ("R", "mma_c", "mma_a mma_b mma_c 1"),
    "BMMA": ("R", "mma_c", "mma_a mma_b mma_c 1"),
    "QMMA": ("R", "mma_c", "mma_a mma_b mma_c 1"),
    "OMMA": ("R", "mma_c", "mma_a mma_b mma_c 1"),
    "DMMA": ("R", "dmma_c", "dmma_a dmma_b dmma_c 1"),
    **_same("HGMMA IGMMA QGMMA BGMMA", ("R", "gmma_c", "4 gmma_c gmma_c 1")),
    # memory
    **_same("LDG LD LDS LDL", ("P?RR?", "data data", "1")),
    **_same("LDC LDCU ULDC", ("[RU]", "data", "1")),
    **_same("STG ST STS STL", ("none", "", "1 data data")),
    "LDSM": ("R", "matrices", "1"),
    "STSM": ("none", "", "1 matrices"),
    "LDGSTS": ("none", "", "1"),
    **_same("ATOMG ATOM ATOMS", ("P?R?", "atomic", "1 atomic")),
    **_same("REDG RED REDS REDAS", ("none", "", "1 atomic")),
    "SYNCS": ("[PQ]?[RU]?", "sync", "1 sync_data"),
    "UTCATOMSWS": ("Q?U", "1", "1"),
    "LDTM": ("R", "tmem", "1"),
    "STTM": ("none", "", "1 tmem"),
    "CCTL": ("none", "", "2"),
    "CCTLL": ("none", "", "1"),
    "CCTLT": ("none", "", "1"),
    # control
    **_same(
        "BAR BRA BSYNC EXIT NOP WARPSYNC YIELD NANOSLEEP DEPBAR ERRBAR CGAERRBAR MEMBAR FENCE LDGDEPBAR KILL BPT RTT PREEXIT "
        "WARPGROUP WARPGROUPSET ACQBULK ENDCOLLECTIVE PMTRIG UCGABAR_ARV UCGABAR_WAIT UTMACMDFLUSH UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED "
        "USETMAXREG ARRIVES ACQSHMINIT UTCBAR UVIRTCOUNT COLLECTIVE STAS UTCHMMA UTCIMMA UTCQMMA UTCOMMA",
        ("none", "", "1"),
    ),
    **_same("CALL RET JMP JMX BRX", ("none", "", "2")),
    **_same("BRXU JMXU", ("none", "", "2")),
    "BSSY": ("B", "", "1"),
    "BREAK": ("none", "", "1"),
}  # fmt: skip
"""Rows of the operations whose registers are known. An operation that is not here has no effects anyone may assume."""
