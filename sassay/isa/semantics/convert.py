"""Conversions between integers and floats and among floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sassay.isa.semantics.algebra import FloatOp, width_of
from sassay.isa.semantics.floating import rounding
from sassay.isa.semantics.shape import Function, Site, Source, operation, sign_steps

DOC = "documented"
SEEN = "corroborated"
_FLOATS = {"F16": "f16", "F32": "f32", "F64": "f64", "BF16": "bf16", "BF16_V2": "bf16"}
_INTEGERS = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")
_INTEGRAL = {"TRUNC": "RZ", "FLOOR": "RM", "CEIL": "RP", "ROUND": "RN", "RN": "RN", "RZ": "RZ", "RM": "RM", "RP": "RP"}


def _part(site: Site, s: Source, width: int) -> Callable[[Any], Any] | None:
    """From the 32-bit register to the narrow value that a suffix (B0..B3, H0_H0, H1_H1) or the type selects."""
    alg = site.alg
    if width >= 32:
        return None
    at = 0
    for word in s.suffix:
        if word in ("B0", "B1", "B2", "B3"):
            at = 8 * int(word[1])
        elif word in ("H1", "H1_H1"):
            at = 16
        elif word not in ("H0", "H0_H0", "H1_H0"):
            raise site.fail(f"suffix {word} not known here")
    return lambda v: alg.extract(v, at + width - 1, at, 32)


def _float_argument(site: Site, format_: str) -> None:
    s = site.peek()
    if s is None:
        raise site.fail("the source is missing")
    width = width_of(format_)
    if width >= 32:
        site.float(width)
        return
    part, sign = _part(site, s, width), sign_steps(site.alg, s, width)
    assert part is not None

    def take(v: Any) -> Any:
        x = part(v)
        return x if sign is None else sign(x)

    site.argument(32, take, s.value if s.kind == "imm" else None)


@operation(
    "F2I", "UF2I",
    evidence=[
        ("NTZ", DOC, "ptx cvt: NaN gives 0 in 32 bits; NTZ read as NaN to zero; lowering"),
        ("", DOC, "ptx cvt to integers: clamps; lowering"),
    ],
)  # fmt: skip
def f2i(site: Site) -> Function:
    """d = a rounded to an integer, clamped to the type."""
    alg = site.alg
    kind = site.choose(*_INTEGERS, default="S32")
    source = _FLOATS[site.choose(*_FLOATS, default="F32")]
    ftz, zero = site.flag("FTZ"), site.flag("NTZ")
    bits, signed = int(kind[1:]), kind[0] == "S"
    mode = _INTEGRAL[site.choose(*_INTEGRAL, default="RN")]
    site.write(max(bits, 32))
    _float_argument(site, source)
    f = alg.float_op(FloatOp("to_int", "s" if signed else "u", mode, ftz, source=source, bits=bits, signed=signed, nan_zero=zero))
    if bits >= 32:
        return lambda a: (f(a),)
    extend = alg.sext if signed else alg.zext
    return lambda a: (extend(f(a), bits, 32),)


@operation(
    "I2F", "UI2F", "I2FP", "UI2FP",
    evidence=[
        ("F16 BF16", DOC, "ptx cvt; upper half of the result taken as zero"),
        ("", DOC, "ptx cvt from integers: one rounding; lowering"),
    ],
)  # fmt: skip
def i2f(site: Site) -> Function:
    """d = an integer as a float, one rounding."""
    alg = site.alg
    target = _FLOATS[site.choose(*_FLOATS, default="F32")]
    kind = site.choose(*_INTEGERS, default="S32")
    mode = rounding(site)
    bits, signed = int(kind[1:]), kind[0] == "S"
    width = width_of(target)
    site.write(max(width, 32))
    s = site.peek()
    if bits >= 32:
        site.integer(bits)
    else:
        if s is None or s.neg or s.absolute or s.invert:
            raise site.fail("operand modifier not known here")
        site.argument(32, _part(site, s, bits), s.value if s.kind == "imm" else None)
    f = alg.float_op(FloatOp("from_int", target, mode, bits=bits, signed=signed))
    if width >= 32:
        return lambda a: (f(a),)
    return lambda a: (alg.zext(f(a), width, 32),)


@operation("FRND", "UFRND", evidence=[("", DOC, "ptx cvt.rni/rzi/rmi/rpi; lowering")])
def frnd(site: Site) -> Function:
    """d = a rounded to an integral value in its own format."""
    alg = site.alg
    format_ = _FLOATS[site.choose(*_FLOATS, default="F32")]
    site.choose(*_FLOATS)
    ftz = site.flag("FTZ")
    mode = _INTEGRAL[site.choose(*_INTEGRAL, default="RN")]
    width = width_of(format_)
    site.write(max(width, 32))
    _float_argument(site, format_)
    f = alg.float_op(FloatOp("round", format_, mode, ftz))
    if width >= 32:
        return lambda a: (f(a),)
    return lambda a: (alg.zext(f(a), width, 32),)


@operation(
    "F2F", "UF2F",
    evidence=[
        ("F16 BF16", DOC, "ptx cvt; upper half of the result taken as zero"),
        ("", DOC, "ptx cvt among floats; lowering"),
    ],
)  # fmt: skip
def f2f(site: Site) -> Function:
    """d = a in another format, one rounding. The first format named is the result's."""
    alg = site.alg
    target = _FLOATS[site.choose(*_FLOATS)]
    source = _FLOATS[site.choose(*_FLOATS)]
    ftz, mode, sat = site.flag("FTZ"), rounding(site), site.flag("SAT")
    width = width_of(target)
    site.write(max(width, 32))
    _float_argument(site, source)
    f = alg.float_op(FloatOp("convert", target, mode, ftz, saturate=sat, source=source))
    if width >= 32:
        return lambda a: (f(a),)
    return lambda a: (alg.zext(f(a), width, 32),)


_PACKED = {
    "F16": "f16", "BF16": "bf16", "TF32": "tf32", "F32": "f32", "E4M3": "e4m3", "E5M2": "e5m2", "E2M3": "e2m3", "E3M2": "e3m2", "E2M1": "e2m1",
    "E8M0": "ue8m0", "UE8M0": "ue8m0", "E6M2": "", "E8": "ue8m0",
}  # fmt: skip
_SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0")


@operation(
    "F2FP", "UF2FP",
    evidence=[("SATFINITE", DOC, "ptx cvt.satfinite; fp8 measured by others on L4, L40S, sm_120"), ("", DOC, "ptx cvt to packed formats; lowering")],
)  # fmt: skip
def f2fp(site: Site) -> Function:
    """Packed conversions: two values to a pair (.PACK_AB: a high, b low), one (.PACK_B), or a pair unpacked (.UNPACK_B)."""
    how = site.choose("PACK_AB", "PACK_B", "PACK_AB_MERGE_C", "MERGE_C", "UNPACK_B", "UNPACK_B_MERGE_C")
    target = _PACKED.get(site.choose(*_PACKED), "")
    source = _PACKED.get(site.choose(*_PACKED), "f32")
    if not how or not target:
        raise site.fail("packing or format is missing")
    op = FloatOp("convert", target, rounding(site), relu=site.flag("RELU"), finite=site.flag("SATFINITE"), source=source)
    site.write()
    if how == "UNPACK_B":
        return _unpack(site, op)
    if source != "f32":
        return _repack(site, op, how)
    return _pack(site, op, how)


def _merged(site: Site, pack: Callable[[Any, Any], Any], bits: int) -> Callable[[Any, Any, Any], Any]:
    """Take operand c: a pair of bytes goes below c's low half (.H1: high half); for other sizes only c = RZ is known."""
    alg = site.alg
    s = site.peek()
    if s is None or (bits != 16 and not site.is_zero()):
        raise site.fail("merging this size is not known")
    if s.neg or s.absolute or s.invert or s.suffix not in ((), ("H0",), ("H1",)):
        raise site.fail(f"operand {site.at}: modifier not known here")
    at = 16 if s.suffix == ("H1",) else 0
    site.argument(32, None, s.value if s.kind == "imm" else None)
    if bits != 16:
        return lambda a, b, c: alg.zext(pack(a, b), bits, 32)
    return lambda a, b, c: alg.concat(alg.extract(c, at + 15, at, 32), pack(a, b), 16, 16)


def _pairing(site: Site, op: FloatOp) -> tuple[Callable[[Any, Any], Any], int]:
    """(high, low) -> both converted, side by side; and the pair's width. Four-bit formats make a byte."""
    alg = site.alg
    f = alg.float_op(op)
    if op.format == "e2m1":
        return lambda a, b: alg.concat(alg.extract(f(a), 3, 0, 8), alg.extract(f(b), 3, 0, 8), 4, 4), 8
    width = width_of(op.format)
    return lambda a, b: alg.concat(f(a), f(b), width, width), 2 * width


def _pack(site: Site, op: FloatOp, how: str) -> Function:
    """From f32. A pair takes the low end of d, the merged operand moves up."""
    alg = site.alg
    width = width_of(op.format)
    if how in ("PACK_B", "MERGE_C"):
        f = alg.float_op(op)
        site.float(32)
        if how == "MERGE_C":
            if not site.is_zero():
                raise site.fail("merging this size is not known")
            site.skip()
        return lambda b: (f(b) if width == 32 else alg.zext(f(b), width, 32),)
    if how not in ("PACK_AB", "PACK_AB_MERGE_C"):
        raise site.fail("this packed conversion is not known")
    site.float(32)
    site.float(32)
    pack, bits = _pairing(site, op)
    if how == "PACK_AB":
        return lambda a, b: (pack(a, b) if bits == 32 else alg.zext(pack(a, b), bits, 32),)
    merge = _merged(site, pack, bits)
    return lambda a, b, c: (merge(a, b, c),)


def _repack(site: Site, op: FloatOp, how: str) -> Function:
    """From a pair of f16 or bf16 in one register to a pair of bytes."""
    alg = site.alg
    if op.source not in ("f16", "bf16") or op.format not in _SMALL or how != "UNPACK_B_MERGE_C":
        raise site.fail("this packed conversion is not known")
    pack, bits = _pairing(site, op)
    site.integer(negate=False)
    merge = _merged(site, pack, bits)
    return lambda b, c: (merge(alg.extract(b, 31, 16, 32), alg.extract(b, 15, 0, 32), c),)


def _unpack(site: Site, op: FloatOp) -> Function:
    """A pair of bytes (suffix .H1: the register's high half) or of nibbles to a pair of 16-bit floats."""
    alg = site.alg
    if op.source not in _SMALL or op.format not in ("f16", "bf16"):
        raise site.fail("this unpacking is not known")
    f = alg.float_op(op)
    s = site.peek()
    if s is None or s.neg or s.absolute or s.suffix not in ((), ("H0",), ("H1",), ("H0_H0",), ("H1_H1",)):
        raise site.fail("operand modifier not known here")
    size = 4 if op.source == "e2m1" else 8
    at = 16 if s.suffix and s.suffix[0].startswith("H1") else 0
    if at and size == 4:
        raise site.fail("operand modifier not known here")
    site.argument(32, None, s.value if s.kind == "imm" else None)

    def part(v: Any, low: int) -> Any:
        x = alg.extract(v, low + size - 1, low, 32)
        return f(alg.zext(x, size, 8) if size < 8 else x)

    return lambda b: (alg.concat(part(b, at + size), part(b, at), 16, 16),)


_CLAMPS = {"U8": (0, 255), "S8": (-128, 127), "U16": (0, 65535), "S16": (-32768, 32767)}


def _clamp(site: Site, target: str, signed: bool) -> Callable[[Any], Any]:
    """A 32-bit integer clamped to a narrow type, as 32 bits."""
    alg = site.alg
    low, high = (alg.const(x, 32) for x in _CLAMPS[target])
    if not signed:
        return lambda a: alg.ite(alg.ult(high, a, 32), high, a, 32)
    return lambda a: alg.ite(alg.slt(a, low, 32), low, alg.ite(alg.slt(high, a, 32), high, a, 32), 32)


@operation("I2I", evidence=[("", DOC, "ptx cvt.sat between integers; lowering")])
def i2i(site: Site) -> Function:
    """d = a clamped to a narrower type, extended by its own sign."""
    target = site.choose(*_CLAMPS)
    source = site.choose("S32", "U32")
    if not target or not source or not site.flag("SAT"):
        raise site.fail("only .SAT from 32 bits is known")
    site.write()
    site.integer()
    f = _clamp(site, target, source == "S32")
    return lambda a: (f(a),)


@operation("I2IP", evidence=[("", DOC, "ptx cvt.pack.sat; lowering")])
def i2ip(site: Site) -> Function:
    """a and b clamped to a narrow type, a above b; bytes stand below c's low half."""
    alg = site.alg
    target = site.choose(*_CLAMPS)
    source = site.choose("S32", "U32")
    if not target or not source or not site.flag("SAT"):
        raise site.fail("only .SAT from 32 bits is known")
    bits = int(target[1:])
    site.write()
    site.integer()
    site.integer()
    f = _clamp(site, target, source == "S32")

    def pack(a: Any, b: Any) -> Any:
        return alg.concat(alg.extract(f(a), bits - 1, 0, 32), alg.extract(f(b), bits - 1, 0, 32), bits, bits)

    if bits == 16:
        if not site.is_zero():
            raise site.fail("merging halves is not known")
        site.skip()
        return lambda a, b: (pack(a, b),)
    merge = _merged(site, pack, 16)
    return lambda a, b, c: (merge(a, b, c),)


@operation("F2IP", evidence=[("", DOC, "lowering of cvt.u8.f32 and of packed byte conversions")])
def f2ip(site: Site) -> Function:
    """Two f32 to a pair of bytes, a's above b's, in the low half; the third operand's low half moves up."""
    alg = site.alg
    kind = site.choose("U8", "S8")
    site.choose("F32")
    ftz, zero = site.flag("FTZ"), site.flag("NTZ")
    mode = _INTEGRAL[site.choose(*_INTEGRAL, default="RN")]
    f = alg.float_op(FloatOp("to_int", "s" if kind == "S8" else "u", mode, ftz, source="f32", bits=8, signed=kind == "S8", nan_zero=zero))
    site.write()
    site.float(32)
    site.float(32)
    if site.rest():
        site.integer()
    else:
        site.constant(0, 32)
    return lambda a, b, c: (alg.concat(alg.extract(c, 15, 0, 32), alg.concat(f(a), f(b), 8, 8), 16, 16),)
