"""cvt and cvt.pack (ISA section "Data Movement and Conversion Instructions: cvt")."""

from __future__ import annotations

from typing import Any

from sassay.isa.semantics.algebra import FloatOp, width_of
from sassay.ptx.ast import TYPE_BITS
from sassay.ptx.semantics.compiled import Context, Getter, Values, defines
from sassay.ptx.semantics.integer import is_float

_INTEGRAL = {"rni": "RN", "rzi": "RZ", "rmi": "RM", "rpi": "RP"}
_ROUND = {"rn": "RN", "rz": "RZ", "rm": "RM", "rp": "RP", "rna": "RA"}
_NARROW_PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "e4m3x2": "e4m3", "e5m2x2": "e5m2", "ue8m0x2": "ue8m0", "e2m3x2": "e2m3", "e3m2x2": "e3m2",
                 "e2m1x2": "e2m1"}  # fmt: skip


@defines("cvt")
def convert(c: Context) -> None:
    if "pack" in c.flags:
        _pack(c)
        return
    if len(c.types) < 2:
        raise c.unsupported("conversion types")
    to, source = c.types[0], c.types[1]
    if to in _NARROW_PAIRS or source in _NARROW_PAIRS:
        _pairs(c, to, source)
    elif is_float(to) and is_float(source):
        _float_to_float(c, to, source)
    elif is_float(to):
        operation = c.alg.float_op(
            FloatOp("from_int", to, _float_rounding(c), bits=TYPE_BITS[source], signed=source.startswith("s"), saturate="sat" in c.flags)
        )
        x = c.source(1, TYPE_BITS[source], signed=source.startswith("s"))
        c.result(lambda v: operation(x(v)), width=TYPE_BITS[to], signed=False)
    elif is_float(source):
        _float_to_int(c, to, source)
    else:
        _int_to_int(c, to, source)


def _float_rounding(c: Context) -> str:
    return _ROUND[c.pick(*_ROUND, default="rn")]


def _int_to_int(c: Context, to: str, source: str) -> None:
    """Cut or extend by the source's sign; .sat clamps to the destination's range."""
    alg, have, want = c.alg, TYPE_BITS[source], TYPE_BITS[to]
    signed = source.startswith("s")
    x = c.source(1, have)
    if "sat" not in c.flags:
        c.result(c.fit(x, have, want, signed), width=want, signed=to.startswith("s"))
        return
    wide = max(have, want) + 2
    extend = alg.sext if signed else alg.zext
    low = -(1 << (want - 1)) if to.startswith("s") else 0
    high = (1 << (want - 1)) - 1 if to.startswith("s") else (1 << want) - 1

    def value(v: Values) -> object:
        number = extend(x(v), have, wide)
        number = alg.ite(alg.slt(number, alg.const(low, wide), wide), alg.const(low, wide), number, wide)
        number = alg.ite(alg.slt(alg.const(high, wide), number, wide), alg.const(high, wide), number, wide)
        return alg.extract(number, want - 1, 0, wide)

    c.result(value, width=want, signed=to.startswith("s"))


def _float_to_int(c: Context, to: str, source: str) -> None:
    """Always clamped. NaN is 0 for sources of at most 32 bits into at most 32 bits, else 1 << (bits - 1)."""
    alg, bits = c.alg, TYPE_BITS[to]
    mode = _INTEGRAL[c.pick(*_INTEGRAL, default="rzi")]
    if "rna" in c.flags:
        mode = "RA"
    nan_zero = source != "f64" and bits <= 32
    operation = alg.float_op(
        FloatOp("to_int", "f32", mode, ftz="ftz" in c.flags, source=source, bits=bits, signed=to.startswith("s"), nan_zero=nan_zero)
    )
    x = c.source(1, TYPE_BITS[source], float_format=source)
    c.result(lambda v: operation(x(v)), width=bits, signed=to.startswith("s"))


def _float_to_float(c: Context, to: str, source: str) -> None:
    alg = c.alg
    x = c.source(1, TYPE_BITS[source], float_format=source)
    integral = c.pick(*_INTEGRAL)
    ftz = "ftz" in c.flags and source != "f16"  # only f32 subnormals are flushed; halves never become any
    modes: dict[str, Any] = {"ftz": ftz, "saturate": "sat" in c.flags, "relu": "relu" in c.flags, "finite": "satfinite" in c.flags}
    if integral:
        rounded = alg.float_op(FloatOp("round", source, _INTEGRAL[integral], ftz=modes["ftz"]))
        value: Getter = lambda v: rounded(x(v))  # noqa: E731
        if to != source or modes["saturate"]:
            final = alg.float_op(FloatOp("convert", to, "RN", source=source, **modes))
            c.result(lambda v: final(value(v)), width=TYPE_BITS[to], signed=False)
            return
        c.result(value, width=TYPE_BITS[to], signed=False)
        return
    if to == source and not any(modes.values()):
        c.result(x, width=TYPE_BITS[to], signed=False)
        return
    if (to, source) == ("f32", "bf16") and not any(modes.values()):
        # A plain shift, NaNs included: what ptxas 13.5 emits; the ISA leaves the NaN open.
        c.result(lambda v: alg.concat(x(v), alg.const(0, 16), 16, 16), width=32, signed=False)
        return
    operation = alg.float_op(FloatOp("convert", to, _float_rounding(c), source=source, **modes))
    c.result(lambda v: operation(x(v)), width=TYPE_BITS[to], signed=False)


def _pairs(c: Context, to: str, source: str) -> None:
    """Packed conversions: `cvt.f16x2.f32 d, a, b` puts a in the upper half; one packed source widens or narrows lane by lane."""
    alg = c.alg
    if "rs" in c.flags or "scaled" in "".join(c.flags):
        raise c.unsupported("stochastic or scaled conversion")
    modes: dict[str, Any] = {"relu": "relu" in c.flags, "finite": "satfinite" in c.flags}
    target = _NARROW_PAIRS.get(to)
    if target is None:
        raise c.unsupported(f".{to}.{source}")
    width = TYPE_BITS[to]
    part = 4 if target == "e2m1" else width // 2
    if source in _NARROW_PAIRS:
        inner = _NARROW_PAIRS[source]
        have = 4 if inner == "e2m1" else TYPE_BITS[source] // 2
        whole = c.source(1, TYPE_BITS[source])
        operation = alg.float_op(FloatOp("convert", target, _float_rounding(c), source=inner, **modes))

        def half(i: int) -> Getter:
            return lambda v: operation(_container(c, alg.extract(whole(v), (i + 1) * have - 1, i * have, TYPE_BITS[source]), have, inner))

        results: list[Getter] = [half(0), half(1)]
    else:
        operation = alg.float_op(FloatOp("convert", target, _float_rounding(c), source=source, **modes))
        upper, lower = c.source(1, TYPE_BITS[source], float_format=source), c.source(2, TYPE_BITS[source], float_format=source)
        results = [lambda v: operation(lower(v)), lambda v: operation(upper(v))]
    box = width_of(target)
    cut = [r if box == part else c.fit(r, box, part) for r in results]
    c.result(lambda v: alg.concat(cut[1](v), cut[0](v), part, part), width=width, signed=False)


def _container(c: Context, value: object, have: int, format_: str) -> object:
    return value if width_of(format_) == have else c.alg.zext(value, have, width_of(format_))


def _pack(c: Context) -> None:
    """cvt.pack.sat: two clamped integers packed low in the destination, above them the third operand's low bits."""
    alg = c.alg
    to, source = c.types[0], c.types[1]
    want = TYPE_BITS[to]
    low = -(1 << (want - 1)) if to.startswith("s") else 0
    high = (1 << (want - 1)) - 1 if to.startswith("s") else (1 << want) - 1
    extend = alg.sext if source.startswith("s") else alg.zext

    def clamp(x: Getter) -> Getter:
        def value(v: Values) -> object:
            number = extend(x(v), 32, 34)
            number = alg.ite(alg.slt(number, alg.const(low, 34), 34), alg.const(low, 34), number, 34)
            number = alg.ite(alg.slt(alg.const(high, 34), number, 34), alg.const(high, 34), number, 34)
            return alg.extract(number, want - 1, 0, 34)

        return value

    a, b = clamp(c.source(1, 32)), clamp(c.source(2, 32))
    both: Getter = lambda v: alg.concat(a(v), b(v), want, want)  # noqa: E731
    if 2 * want == 32:
        c.result(both, width=32, signed=False)
        return
    if len(c.operands) != 4:
        c.result(lambda v: alg.zext(both(v), 2 * want, 32), width=32, signed=False)
        return
    rest = c.source(3, 32)
    c.result(lambda v: alg.concat(alg.extract(rest(v), 31 - 2 * want, 0, 32), both(v), 32 - 2 * want, 2 * want), width=32, signed=False)
