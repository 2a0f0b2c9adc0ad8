"""Operations over the lanes of a warp, as functions of (active mask, values of all lanes), and matrix products.

Exchange names, params and arguments (the active mask always first):
  shfl (IDX|UP|DOWN|BFLY): (value, lane, clamp) -> (value, in range)
  vote (ANY|ALL|EQ): (p) -> (ballot of active lanes with p, any/all/equal)
  redux (AND|OR|XOR|SUM|MIN|MAX|MINABS|MAXABS, U32|S32|F32, NAN or ""): (value) -> (result)
  match_any (bits): (value) -> (mask of lanes with the same value);  match_all (bits): (value) -> (mask or 0, all equal)
  first: (value) -> (value of the lowest active lane);  elect: (p) -> (whether this is the lowest active lane with p, that lane's number)
  fswzadd (pattern, rounding, ftz): (a, b) -> (sum);  movm (16, T): (value) -> (transposed 8x8 halves)
  movm (U4TO8, ""): (value) -> (bytes of the row's nibbles 0..15, of 16..31)
  wmma (shape, types of d, a, b, c, registers of a, of b, satfinite): PTX only, see numpy_wmma
  mma (shape, d type, a type, b type, c type, options): (A parts, B parts, C parts) -> D parts, all as 32-bit registers (f64: 64-bit)
"""

from __future__ import annotations

import re
from typing import Any

from sassay.isa.semantics.algebra import Exchange
from sassay.isa.semantics.shape import Function, Site, operation

DOC = "documented"


@operation("SHFL", evidence=[("", DOC, "ptx shfl.sync pseudo-code; lowering")])
def shfl(site: Site) -> Function:
    """p, d = whether the source lane is in range, and its value (the lane's own where not)."""
    mode = site.choose("IDX", "UP", "DOWN", "BFLY")
    if not mode:
        raise site.fail("the mode is missing")
    site.lanes = True
    site.write_predicates(1)
    site.write()
    site.integer()
    site.integer()
    site.integer()
    f = site.alg.exchange(Exchange("shfl", (32, 1), (mode,)))

    def fn(active: Any, value: Any, lane: Any, clamp: Any) -> tuple[Any, ...]:
        d, p = f(active, value, lane, clamp)
        return p, d

    return fn


@operation("VOTE", "VOTEU", evidence=[("", DOC, "ptx vote.sync; lowering")])
def vote(site: Site) -> Function:
    """d = ballot; p = any, all or all equal, over the active lanes."""
    mode = site.choose("ANY", "ALL", "EQ")
    if not mode:
        raise site.fail("the mode is missing")
    site.lanes = True
    if site.is_predicate():
        site.keep.append(False)
        site.write(1)
    else:
        site.write()
        site.write_predicates(1)
    site.predicate()
    return site.alg.exchange(Exchange("vote", (32, 1), (mode,)))


@operation("REDUX", "CREDUX", evidence=[("F32", DOC, "ptx redux.sync.f32"), ("", DOC, "ptx redux.sync; lowering")])
def redux(site: Site) -> Function:
    """d = the reduction over the active lanes; a plain REDUX is AND."""
    mode = site.choose("AND", "OR", "XOR", "SUM", "MIN", "MAX", "MINABS", "MAXABS", default="AND")
    kind = site.choose("S32", "U32", "F32", default="U32")
    nan = "NAN" if site.flag("NAN") else ""
    site.lanes = True
    site.write()
    if kind == "F32":
        site.float(32)
    else:
        site.integer()
    return site.alg.exchange(Exchange("redux", (32,), (mode, kind, nan)))


@operation("MATCH", evidence=[("", DOC, "ptx match.sync; lowering")])
def match(site: Site) -> Function:
    """ANY: d = mask of the active lanes with this lane's value. ALL: p, d = whether all are equal, and their mask or 0."""
    mode = site.choose("ANY", "ALL")
    width = 64 if site.flag("U64") else 32
    site.lanes = True
    if mode == "ANY":
        site.write()
        site.integer(width)
        return site.alg.exchange(Exchange("match_any", (32,), (str(width),)))
    if mode != "ALL":
        raise site.fail("the mode is missing")
    site.write_predicates(1)
    site.write()
    site.integer(width)
    f = site.alg.exchange(Exchange("match_all", (32, 1), (str(width),)))

    def fn(active: Any, value: Any) -> tuple[Any, ...]:
        d, p = f(active, value)
        return p, d

    return fn


@operation(
    "R2UR",
    evidence=[("", "assumed", "lowering: values uniform over the warp move to the uniform file; the rest is a reading of ptxas's code for masks")],
)
def r2ur(site: Site) -> Function:
    """p = whether the active lanes have one value; d = the value of the lowest active lane."""
    site.lanes = True
    tested = any(site.write_predicates(1))
    site.write()
    site.integer()
    first = site.alg.exchange(Exchange("first", (32,)))
    if not tested:
        return lambda active, value: (None, *first(active, value))
    same = site.alg.exchange(Exchange("match_all", (32, 1), ("32",)))
    return lambda active, value: (same(active, value)[1], *first(active, value))


@operation("ELECT", evidence=[("", DOC, "ptx elect.sync: one lane of the mask; taken as the lowest")])
def elect(site: Site) -> Function:
    """p = whether this is the lowest active lane; d = its number."""
    site.lanes = True
    site.write_predicates(1)
    site.write()
    site.predicate()
    return site.alg.exchange(Exchange("elect", (1, 32)))


@operation(
    "MOVM",
    evidence=[("U4TO8", "assumed", "lowering of mma for single bits: 8 rows of 32 nibbles to bytes as IMMA takes them"), ("", DOC, "ptx movmatrix")],
)
def movm(site: Site) -> Function:
    """d = an 8x8 matrix of 16-bit values, spread over the warp, transposed; .U4TO8: 8 rows of 32 nibbles as two registers of bytes."""
    site.lanes = True
    if site.flag("U4TO8"):
        if not site.flag("M832"):
            raise site.fail("only .U4TO8.M832 is known")
        site.write(32, 2)
        site.integer()
        return site.alg.exchange(Exchange("movm", (32, 32), ("U4TO8", "")))
    if not site.flag("16") or not site.flag("MT88"):
        raise site.fail("only .16.MT88 and .U4TO8.M832 are known")
    site.write()
    site.integer()
    return site.alg.exchange(Exchange("movm", (32,), ("16", "T")))


_ROWS_COLUMNS_DEPTH = {
    "16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "16832": (16, 8, 32), "8816": (8, 8, 16), "8832": (8, 8, 32), "16864": (16, 8, 64),
    "8x8x4": (8, 8, 4), "16x8x4": (16, 8, 4), "16x8x8": (16, 8, 8), "16x8x16": (16, 8, 16),
}  # fmt: skip
_BITS = {
    "F64": 64, "F32": 32, "S32": 32, "TF32": 32, "F16": 16, "BF16": 16, "E4M3": 8, "E5M2": 8, "E3M2": 8, "E2M3": 8, "E2M1": 8, "S8": 8, "U8": 8,
}  # fmt: skip


def _matrix(site: Site, d: str, a: str, b: str, options: tuple[str, ...]) -> Function:
    """Fetch the fragments: operands d, a, b, c; suffixes ROW and COL say what is always so."""
    shape = next((m for m in site.left if re.fullmatch(r"\d+(x\d+x\d+)?", m)), "")
    if shape not in _ROWS_COLUMNS_DEPTH:
        raise site.fail("the shape is not known")
    site.left.remove(shape)
    rows, columns, depth = _ROWS_COLUMNS_DEPTH[shape]
    unit = 64 if d == "F64" else 32
    counts = [rows * columns * _BITS[d] // 32 // unit, rows * depth * _BITS[a] // 32 // unit, columns * depth * _BITS[b] // 32 // unit]
    site.lanes = True
    site.write(unit, max(counts[0], 1))
    for count, layout in ((counts[1], "ROW"), (counts[2], "COL"), (counts[0], "")):
        s = site.peek()
        if s is None or s.neg or s.absolute or s.invert or s.suffix not in ((), (layout,)):
            raise site.fail(f"operand {site.at}: modifier not known here")
        at = site.at
        site.skip()
        for part in range(count):
            site.raw(unit, part, operand=at)
    for _ in range(site.rest()):
        raise site.fail("further operands are not known")
    op = Exchange("mma", (unit,) * counts[0], (shape, d, a, b, d, *options))
    return site.alg.exchange(op)


@operation(
    "HMMA",
    evidence=[
        ("", DOC, "published model: products and C aligned, truncated to 25 bits, summed, cut; measured by others on H100, H200, B200"),
    ],
)  # fmt: skip
def hmma(site: Site) -> Function:
    """D = A * B + C with f16, bf16 or tf32 factors."""
    d = site.choose("F32", "F16", default="F16")
    a = site.choose("BF16", "TF32", default="F16")
    return _matrix(site, d, a, a, ())


@operation("QMMA", evidence=[("", DOC, "published model: 32 products and C aligned, truncated to 25 bits; measured by others on RTX PRO 6000")])
def qmma(site: Site) -> Function:
    """D = A * B + C with 8-bit float factors."""
    d = site.choose("F32", "F16")
    kinds = ("E4M3", "E5M2", "E3M2", "E2M3", "E2M1")
    a = site.choose(*kinds)
    b = site.choose(*kinds)
    if not d or not a or not b:
        raise site.fail("a type is missing")
    return _matrix(site, d, a, b, ())


@operation(
    "IMMA",
    evidence=[
        ("SAT", "assumed", "ptx: clamps; that it does so once, at the end, is assumed"),
        ("", DOC, "ptx mma for integers: wraps"),
    ],
)  # fmt: skip
def imma(site: Site) -> Function:
    """D = A * B + C with 8-bit integer factors."""
    a = site.choose("S8", "U8")
    b = site.choose("S8", "U8")
    sat = ("SAT",) if site.flag("SAT") else ()
    if not a or not b:
        raise site.fail("a type is missing")
    return _matrix(site, "S32", a, b, sat)


@operation("BMMA", evidence=[("", DOC, "ptx mma for single bits: popcount of the conjunction (or difference), wraps")])
def bmma(site: Site) -> Function:
    """D = popcount(A and B) + C over bits; .XOR in place of the conjunction."""
    mode = site.choose("AND", "XOR")
    if not site.flag("POPC") or not site.flag("168256") or not mode:
        raise site.fail("only .168256.AND.POPC and .XOR are known")
    site.lanes = True
    site.write(32, 4)
    for count, layout in ((4, "ROW"), (2, "COL"), (4, "")):
        s = site.peek()
        if s is None or s.suffix not in ((), (layout,)):
            raise site.fail(f"operand {site.at}: modifier not known here")
        at = site.at
        site.skip()
        for part in range(count):
            site.raw(32, part, operand=at)
    return site.alg.exchange(Exchange("mma", (32,) * 4, ("168256", "S32", "B1", "B1", "S32", mode)))


@operation("DMMA", evidence=[("", DOC, "published model: a chain of IEEE multiply-adds from C in order of k")])
def dmma(site: Site) -> Function:
    """D = A * B + C in f64."""
    mode = site.choose("RN", "RZ", "RM", "RP", default="RN")
    return _matrix(site, "F64", "F64", "F64", (mode,))
