"""The algebra that every operation is written over: bit-vectors, IEEE floats by name, opaque operations, warp exchanges.

An operation's definition calls these methods and nothing else, so that one text serves the emulator (numpy arrays over lanes), plain integers and the
prover (terms). Rules:

- A value `V` is a bit-vector. Its width is never read from it: it is passed where a method needs it (`w`, always last), so that an interpreter may
  keep a value in any container at least as wide, with the unused high bits zero. Predicates are values of width 1.
- Nothing here has side effects, and no definition branches in Python on a value; it may branch on modifiers and widths.
- Methods that take a specification (`float_op`, `opaque`, `exchange`) return a callable: resolve it once per static instruction, call it per
  execution. The specifications are frozen and hashable: the prover may use them as names of uninterpreted functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class FloatOp:
    """An IEEE operation by name: one rounding from the exact result. All arguments and the result are bit patterns.

    `name`:
      add(a, b), sub(a, b), mul(a, b), fma(a, b, c): in `format`; `mul` with `scale` multiplies the exact product by 2**scale before rounding;
      fma with `source` f16 or bf16: factors in `source`, addend and result in `format`;
      div(a, b), sqrt(a): for PTX;
      min(a, b), max(a, b): -0 < +0; one NaN gives the other operand, `nan_wins` makes it the canonical NaN;
      compare(a, b): width 1; `relation` is one of F LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU T;
      convert(a): from `source` format to `format`; round(a): to an integral value in `format`, mode `rounding`;
      to_int(a): from `source` to a `bits`-bit integer, `signed` or not, clamped, NaN by `nan_zero` (else 1 << (bits-1));
      from_int(a): from a `bits`-bit integer, `signed` or not, to `format`.
    `format`, `source`: f16 bf16 tf32 f32 f64 e4m3 e5m2 e2m3 e3m2 e2m1 ue8m0. Values of a format are as wide as `width_of` says.
    `rounding`: RN (to even) RZ RM (down) RP (up) RA (to nearest, ties away). `ftz`: subnormal inputs and results become zeros of their
    sign. `saturate`: clamp to [0, 1], NaN to +0. `relu`: negative and -0 to +0, NaN canonical. `finite`: overflow to the largest finite number (and
    infinities too in formats without them). NaN results are canonical, except in f64, where see numpy_float's notes.
    """

    name: str
    format: str
    rounding: str = "RN"
    ftz: bool = False
    saturate: bool = False
    relu: bool = False
    finite: bool = False
    source: str = ""
    relation: str = ""
    bits: int = 0
    signed: bool = False
    nan_zero: bool = False
    nan_wins: bool = False
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Opaque:
    """A named per-lane function that proofs leave uninterpreted: hardware approximations. `widths` are those of its results."""

    name: str
    widths: tuple[int, ...]
    params: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A named function of all lanes of a warp: votes, shuffles, reductions, matrix products.

    The callable takes the mask of active lanes (width 1 per lane), then the arguments; results hold for active lanes. Concretely the last axis is
    the 32 lanes. `params` says the variant; `widths` those of the results.
    """

    name: str
    widths: tuple[int, ...]
    params: tuple[str, ...] = ()


WIDTHS = {
    "f64": 64, "f32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 8, "ue8m0": 8,
}  # fmt: skip
"""Container width of each float format (six- and four-bit formats sit in the low bits of a byte)."""


def width_of(format_: str) -> int:
    """Container width of a float format in bits."""
    return WIDTHS[format_]


class Algebra(Protocol[V]):
    """What an interpreter offers. Shift amounts and both sides of a comparison have the width given; results too unless said otherwise."""

    def const(self, value: int, w: int) -> V:
        """The number `value` modulo 2**w."""
        ...

    def add(self, a: V, b: V, w: int) -> V: ...
    def sub(self, a: V, b: V, w: int) -> V: ...
    def neg(self, a: V, w: int) -> V: ...
    def mul(self, a: V, b: V, w: int) -> V: ...

    def and_(self, a: V, b: V, w: int) -> V: ...
    def or_(self, a: V, b: V, w: int) -> V: ...
    def xor(self, a: V, b: V, w: int) -> V: ...
    def not_(self, a: V, w: int) -> V: ...

    def shl(self, a: V, n: V, w: int) -> V:
        """Left shift; zero for n >= w."""
        ...

    def lshr(self, a: V, n: V, w: int) -> V:
        """Logical right shift; zero for n >= w."""
        ...

    def ashr(self, a: V, n: V, w: int) -> V:
        """Arithmetic right shift; the sign's fill for n >= w."""
        ...

    def extract(self, a: V, high: int, low: int, w: int) -> V:
        """Bits high..low of a `w`-bit value, high - low + 1 bits wide."""
        ...

    def concat(self, high: V, low: V, high_width: int, low_width: int) -> V:
        """high * 2**low_width + low."""
        ...

    def zext(self, a: V, w: int, to: int) -> V: ...
    def sext(self, a: V, w: int, to: int) -> V: ...

    def eq(self, a: V, b: V, w: int) -> V:
        """Width 1, as all comparisons."""
        ...

    def ult(self, a: V, b: V, w: int) -> V: ...
    def ule(self, a: V, b: V, w: int) -> V: ...
    def slt(self, a: V, b: V, w: int) -> V: ...
    def sle(self, a: V, b: V, w: int) -> V: ...

    def ite(self, p: V, a: V, b: V, w: int) -> V:
        """a where p (width 1), else b."""
        ...

    def clz(self, a: V, w: int) -> V:
        """Number of leading zeros, w bits wide; w for zero."""
        ...

    def popcount(self, a: V, w: int) -> V:
        """Number of ones, w bits wide."""
        ...

    def reverse(self, a: V, w: int) -> V:
        """Bits in reverse order."""
        ...

    def udiv(self, a: V, b: V, w: int) -> V:
        """Unsigned quotient; all ones for b = 0 (SMT-LIB). No SASS operation needs it, PTX does."""
        ...

    def urem(self, a: V, b: V, w: int) -> V:
        """Unsigned remainder; a for b = 0."""
        ...

    def float_op(self, op: FloatOp) -> Callable[..., V]: ...
    def opaque(self, op: Opaque) -> Callable[..., tuple[V, ...]]: ...
    def exchange(self, op: Exchange) -> Callable[..., tuple[V, ...]]: ...


AnyAlgebra = Algebra[Any]
