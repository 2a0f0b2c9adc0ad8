"""Makes operations in the current block, folding what is already known: constants, identities, masks of masks.

Values are words: 8- and 16-bit PTX values sit in the low bits of a 32-bit word whose upper bits mean nothing; who needs them extends them.
"""

from __future__ import annotations

from sassay.isel.ir import Attr, Block, Graph, Op, Value, link
from sassay.isel.numbers import (
    LUT_A,
    LUT_B,
    LUT_C,
    MASK32,
    NEGATED,
    SWAPPED,
    compare,
    is_sext,
    known_signed,
    known_zero,
    lut_apply,
    lut_depends,
    lut_fix,
    prmt_apply,
    signed,
)
from sassay.sass.function import MemoryFact


class Builder:
    """Appends operations to `block`. `guard` applies to operations with effects made while it is set."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.block: Block = graph.block("entry")
        self.entry = self.block
        self.line: tuple[int, int, int] | None = None
        self.source = -1
        self.guard: tuple[Value, bool] | None = None
        self._numbers: dict[tuple[object, ...], Value] = {}
        self._numbers_block: Block | None = None

    # Plain construction ----------------------------------------------------------------------------------------------------------------

    def const(self, value: int, width: int = 1) -> Value:
        return self.graph.const(value, width)

    def add(self, op: Op) -> Op:
        op.block = self.block
        op.line = self.line
        op.source = self.source
        self.block.ops.append(op)
        return op

    def ops(
        self, name: str, args: list[Value], widths: tuple[int, ...], mods: tuple[str, ...] = (), amods: list[str] | None = None, attr: Attr = (),
    ) -> list[Value]:  # fmt: skip
        """A pure operation with several results."""
        return self.add(self.graph.make(name, mods, args, amods, widths, attr)).results

    def op(
        self, name: str, args: list[Value], width: int = 1, mods: tuple[str, ...] = (), amods: list[str] | None = None, attr: Attr = (),
    ) -> Value:  # fmt: skip
        """A pure operation with one result; repeated ones in a block are shared."""
        if self._numbers_block is not self.block:
            self._numbers = {}
            self._numbers_block = self.block
        key = (name, width, mods, tuple(a.uid for a in args), tuple(amods) if amods else (), attr)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self.add(self.graph.make(name, mods, args, amods, (width,), attr)).results[0]
        return found

    def effect(
        self, name: str, args: list[Value], widths: tuple[int, ...], kind: str, mods: tuple[str, ...] = (), amods: list[str] | None = None,
        attr: Attr = (), memory: MemoryFact | None = None, tied: list[Value] | None = None,
    ) -> Op:  # fmt: skip
        """An operation that stays where it is, under the current guard; `tied` are its results when the guard is false."""
        op = self.graph.make(name, mods, args, amods, widths, attr)
        op.effect = kind
        op.memory = memory
        if self.guard is not None:
            op.guard = self.guard
            op.tied = tied if tied is not None else [self.graph.leaf("undef", w) for w in widths]
        return self.add(op)

    def new_block(self, hint: str) -> Block:
        return self.graph.block(hint)

    def jump(self, to: Block) -> None:
        self.block.term = "jump"
        link(self.block, to)

    def branch(self, cond: Value, yes: Block, no: Block, likely: bool | None = None) -> None:
        b = self.block
        b.term, b.cond, b.negated, b.likely = "cond", cond, False, likely
        b.line, b.source = self.line, self.source
        link(b, yes)
        link(b, no)

    def phi(self, values: list[Value]) -> Value:
        """A phi at the start of the current block, one value for each predecessor in order."""
        op = self.graph.make("phi", (), values, None, (values[0].width,))
        op.block = self.block
        self.block.phis.append(op)
        return op.results[0]

    # Words -----------------------------------------------------------------------------------------------------------------------------

    def pack(self, *parts: Value) -> Value:
        """Words side by side, the first one lowest."""
        if len(parts) == 1:
            return parts[0]
        width = sum(p.width for p in parts)
        if width <= 2 and all(p.const is not None for p in parts):
            total, shift = 0, 0
            for p in parts:
                total |= (p.const or 0) << shift
                shift += 32 * p.width
            return self.const(total, width)
        first = parts[0].op
        if first.name == "part" and first.args[0].width == width:
            at = 0
            for p in parts:
                if p.op.name != "part" or p.op.args[0] is not first.args[0] or p.op.attr != (at,):
                    break
                at += p.width
            else:
                return first.args[0]
        return self.op("pack", list(parts), width)

    def part(self, v: Value, word: int, width: int = 1) -> Value:
        """`width` words of a value, from word `word`."""
        if v.width == width and word == 0:
            return v
        if v.const is not None:
            return self.const(v.const >> (32 * word), width)
        name = v.op.name
        if name == "param":
            bank, offset = v.op.attr
            return self.graph.leaf("param", width, bank, offset + 4 * word)  # type: ignore[operator]
        if name == "undef":
            return self.graph.leaf("undef", width)
        if name == "pack":
            at = 0
            for p in v.op.args:
                if at <= word and word + width <= at + p.width:
                    return self.part(p, word - at, width)
                at += p.width
        if name == "part":
            return self.part(v.op.args[0], v.op.attr[0] + word, width)  # type: ignore[operator]
        return self.op("part", [v], width, attr=(word,))

    def lo(self, v: Value) -> Value:
        return self.part(v, 0)

    def hi(self, v: Value) -> Value:
        return self.part(v, 1)

    def zext(self, v: Value) -> Value:
        return self.pack(v, self.const(0))

    def sext(self, v: Value) -> Value:
        if v.const is not None:
            return self.const(signed(v.const), 2)
        return self.pack(v, self.shr(v, self.const(31), True))

    # 32-bit integers -------------------------------------------------------------------------------------------------------------------

    def iadd(self, a: Value, b: Value) -> Value:
        if a.const is not None:
            a, b = b, a
        if b.const is not None:
            if a.const is not None:
                return self.const(a.const + b.const)
            if b.const == 0:
                return a
            if a.op.name == "iadd" and a.op.args[1].const is not None and a.op.amods == ["", ""]:
                return self.iadd(a.op.args[0], self.const(a.op.args[1].const + b.const))
        if b.op.name == "ineg":
            return self.isub(a, b.op.args[0])
        if a.op.name == "ineg":
            return self.isub(b, a.op.args[0])
        return self.op("iadd", [a, b])

    def isub(self, a: Value, b: Value) -> Value:
        if b.const is not None:
            return self.iadd(a, self.const(-b.const))
        if a is b:
            return self.const(0)
        if a.const == 0:
            return self.ineg(b)
        if b.op.name == "ineg":
            return self.iadd(a, b.op.args[0])
        return self.op("iadd", [a, b], amods=["", "-"])

    def ineg(self, a: Value) -> Value:
        if a.const is not None:
            return self.const(-a.const)
        if a.op.name == "ineg":
            return a.op.args[0]
        return self.op("ineg", [a])

    def imul(self, a: Value, b: Value) -> Value:
        if a.const is not None:
            a, b = b, a
        if b.const is not None:
            if a.const is not None:
                return self.const(a.const * b.const)
            if b.const == 0:
                return b
            if b.const == 1:
                return a
            if b.const & (b.const - 1) == 0:
                return self.shl(a, self.const(b.const.bit_length() - 1))
        return self.op("imul", [a, b])

    def mulw(self, a: Value, b: Value, sign: bool) -> Value:
        """Full 64-bit product."""
        if a.const is not None:
            a, b = b, a
        if a.const is not None and b.const is not None:
            return self.const(signed(a.const) * signed(b.const) if sign else a.const * b.const, 2)
        if b.const == 0:
            return self.const(0, 2)
        if b.const == 1:
            return self.sext(a) if sign else self.zext(a)
        return self.op("mulw", [a, b], 2, attr=(sign,))

    def mulhi(self, a: Value, b: Value, sign: bool) -> Value:
        if a.const is not None:
            a, b = b, a
        if a.const is not None and b.const is not None:
            return self.const((signed(a.const) * signed(b.const) if sign else a.const * b.const) >> 32)
        return self.op("mulhi", [a, b], attr=(sign,))

    def shl(self, a: Value, n: Value) -> Value:
        """Left shift; amounts of 32 and more give 0."""
        if n.const is not None:
            if n.const == 0:
                return a
            if n.const > 31:
                return self.const(0)
            if a.const is not None:
                return self.const(a.const << n.const)
            if a.op.name == "shl" and a.op.args[1].const is not None:
                return self.shl(a.op.args[0], self.const(min(a.op.args[1].const + n.const, 32)))
        return self.op("shl", [a, n])

    def shr(self, a: Value, n: Value, sign: bool) -> Value:
        """Right shift; amounts of 32 and more give 0, or copies of the sign."""
        if n.const is not None:
            if n.const == 0:
                return a
            if n.const > 31:
                if not sign:
                    return self.const(0)
                n = self.const(31)
            assert n.const is not None
            if a.const is not None:
                return self.const(signed(a.const) >> n.const if sign else a.const >> n.const)
            if a.op.name == "shr" and a.op.attr == (sign,) and a.op.args[1].const is not None:
                total = a.op.args[1].const + n.const
                return self.shr(a.op.args[0], self.const(min(total, 31 if sign else 32)), sign)
        return self.op("shr", [a, n], attr=(sign,))

    def funnel(self, direction: str, kind: str, lo: Value, n: Value, hi: Value, wrap: bool, high: bool) -> Value:
        """SHF: shifts the pair hi:lo by n. `kind` U32, S32, U64, S64; `high` returns the upper word."""
        mods = [direction]
        if wrap:
            mods.append("W")
        mods.append(kind)
        if high:
            mods.append("HI")
        return self.op("SHF", [lo, n, hi], mods=tuple(mods))

    def lop3(self, a: Value, b: Value, c: Value, lut: int) -> Value:
        """Bitwise function of three words with the truth table `lut` (a 0xf0, b 0xcc, c 0xaa)."""
        args = [a, b, c]
        if all(x.const is not None for x in args):
            return self.const(lut_apply(lut, a.const or 0, b.const or 0, c.const or 0))
        for i in range(3):
            v = args[i].const
            if v in (0, MASK32) and lut_depends(lut, i):
                lut = lut_fix(lut, i, 1 if v else 0)
        for i in range(3):
            for j in range(i + 1, 3):
                if args[i] is args[j] and lut_depends(lut, i) and lut_depends(lut, j):
                    si, sj = (4, 2, 1)[i], (4, 2, 1)[j]
                    lut = sum((lut >> ((k & ~sj) | (sj if k & si else 0)) & 1) << k for k in range(8))
        live = [i for i in range(3) if lut_depends(lut, i)]
        if not live:
            return self.const(MASK32 if lut & 1 else 0)
        if len(live) == 1:
            i = live[0]
            if lut == (LUT_A, LUT_B, LUT_C)[i]:
                return args[i]
        order = sorted(live, key=lambda i: args[i].const is not None)
        if len(order) < 3:
            order = [i for i in order if args[i].const is None] + [i for i in order if args[i].const is not None]
        new = 0
        for k in range(8):
            old = 0
            for slot, i in enumerate(order):
                if k & (4, 2, 1)[slot]:
                    old |= (4, 2, 1)[i]
            new |= (lut >> old & 1) << k
        picked = [args[i] for i in order] + [self.const(0)] * (3 - len(order))
        if len(live) == 2 and new == 0xC0 and picked[1].const is not None:
            x, m = picked[0], picked[1].const
            if x.op.name == "lop3" and x.op.attr == (0xC0,) and x.op.args[1].const is not None:
                return self.lop3(x.op.args[0], self.const(m & x.op.args[1].const), self.const(0), 0xC0)
            if known_zero(x) | m == MASK32:
                return x
        return self.op("lop3", picked, attr=(new,))

    def and_(self, a: Value, b: Value) -> Value:
        return self.lop3(a, b, self.const(0), LUT_A & LUT_B)

    def or_(self, a: Value, b: Value) -> Value:
        return self.lop3(a, b, self.const(0), LUT_A | LUT_B)

    def xor(self, a: Value, b: Value) -> Value:
        return self.lop3(a, b, self.const(0), LUT_A ^ LUT_B)

    def not_(self, a: Value) -> Value:
        return self.lop3(a, self.const(0), self.const(0), 0x0F)

    def prmt(self, a: Value, selector: Value | int, b: Value) -> Value:
        """Byte permute: nibble i of the selector picks byte i of the result from b:a, its bit 3 replicates the sign."""
        if isinstance(selector, int):
            selector = self.const(selector)
        s = selector.const
        if s is not None:
            if s & 0xFFFF == 0x3210:
                return a
            if s & 0xFFFF == 0x7654:
                return b
            if a.const is not None and b.const is not None:
                return self.const(prmt_apply(a.const, b.const, s))
        return self.op("PRMT", [a, selector, b])

    def zext_bits(self, v: Value, bits: int) -> Value:
        """The low `bits` (8, 16, ...) of a word, zero above."""
        return v if bits >= 32 else self.and_(v, self.const((1 << bits) - 1))

    def sext_bits(self, v: Value, bits: int) -> Value:
        """The low `bits` of a word, sign-extended."""
        if bits >= 32:
            return v
        if v.const is not None:
            return self.const(signed(v.const & ((1 << bits) - 1), bits))
        if known_signed(v, bits):
            return v
        if bits == 16:
            return self.prmt(v, 0x9910, self.const(0))
        if bits == 8:
            return self.prmt(v, 0x8880, self.const(0))
        return self.op("SGXT", [v, self.const(bits)])

    def extend(self, v: Value, bits: int, sign: bool) -> Value:
        return self.sext_bits(v, bits) if sign else self.zext_bits(v, bits)

    def minmax(self, a: Value, b: Value, sign: bool, largest: bool) -> Value:
        if a.const is not None and b.const is not None:
            x, y = (signed(a.const), signed(b.const)) if sign else (a.const, b.const)
            return self.const(max(x, y) if largest else min(x, y))
        if a.const is not None:
            a, b = b, a
        return a if a is b else self.op("minmax", [a, b], attr=(sign, largest))

    # Predicates ------------------------------------------------------------------------------------------------------------------------

    def true(self) -> Value:
        return self.const(1, 0)

    def false(self) -> Value:
        return self.const(0, 0)

    def plop(self, p: Value, q: Value, r: Value, lut: int) -> Value:
        """Boolean function of three predicates."""
        args = [p, q, r]
        for i in range(3):
            if args[i].const is not None and lut_depends(lut, i):
                lut = lut_fix(lut, i, args[i].const or 0)
        if not any(lut_depends(lut, i) for i in range(3)):
            return self.true() if lut & 1 else self.false()
        for i in range(3):
            if lut == (LUT_A, LUT_B, LUT_C)[i]:
                return args[i]
            if lut == (LUT_A, LUT_B, LUT_C)[i] ^ 0xFF:
                inner = args[i].op
                if inner.name == "plop" and inner.attr == (0x0F,):
                    return inner.args[0]
                if inner.name == "icmp" and len(inner.args) == 2:
                    cmp, sign, _ = inner.attr
                    return self.op("icmp", list(inner.args), 0, attr=(NEGATED[str(cmp)], sign, "AND"))
                return self.op("plop", [args[i], self.true(), self.true()], 0, attr=(0x0F,))
        args = [a if lut_depends(lut, i) else self.true() for i, a in enumerate(args)]
        return self.op("plop", args, 0, attr=(lut,))

    def pnot(self, p: Value) -> Value:
        return self.plop(p, self.true(), self.true(), 0x0F)

    def pand(self, p: Value, q: Value) -> Value:
        return self.plop(p, q, self.true(), 0xC0)

    def por(self, p: Value, q: Value) -> Value:
        return self.plop(p, q, self.true(), 0xFC)

    def pxor(self, p: Value, q: Value) -> Value:
        return self.plop(p, q, self.true(), 0x3C)

    def icmp(self, cmp: str, a: Value, b: Value, sign: bool) -> Value:
        if a.const is not None and b.const is not None:
            x, y = (signed(a.const), signed(b.const)) if sign else (a.const, b.const)
            return self.const(int(compare(cmp, x, y)), 0)
        if a.const is not None:
            a, b, cmp = b, a, SWAPPED[cmp]
        if b.const == 0 and cmp in ("EQ", "NE"):
            known = a.op
            if known.name == "sel" and known.args[1].const is not None and known.args[2].const is not None:
                yes, no = known.args[1].const != 0, known.args[2].const != 0
                if yes != no:
                    return known.args[0] if yes == (cmp == "NE") else self.pnot(known.args[0])
        if b.const == 0 and not sign and cmp in ("GE", "LT"):
            return self.true() if cmp == "GE" else self.false()
        return self.op("icmp", [a, b], 0, attr=(cmp, sign, "AND"))

    def icmp64(self, cmp: str, a: Value, b: Value, sign: bool) -> Value:
        if a.const is not None and b.const is not None:
            x, y = (signed(a.const, 64), signed(b.const, 64)) if sign else (a.const, b.const)
            return self.const(int(compare(cmp, x, y)), 0)
        if a.const is not None:
            a, b, cmp = b, a, SWAPPED[cmp]
        return self.op("icmp64", [a, b], 0, attr=(cmp, sign, "AND"))

    def sel(self, p: Value, a: Value, b: Value) -> Value:
        """a if p else b; any width."""
        if p.const is not None:
            return a if p.const else b
        if a is b:
            return a
        if a.width == 0:
            return self.plop(p, a, b, (LUT_A & LUT_B) | (~LUT_A & LUT_C & 0xFF))
        if a.width > 1:
            return self.pack(*(self.sel(p, self.part(a, i), self.part(b, i)) for i in range(a.width)))
        if p.op.name == "plop" and p.op.attr == (0x0F,):
            return self.sel(p.op.args[0], b, a)
        return self.op("sel", [p, a, b])

    # 64-bit integers -------------------------------------------------------------------------------------------------------------------

    def add64(self, a: Value, b: Value) -> Value:
        if a.const is not None:
            a, b = b, a
        if b.const is not None:
            if a.const is not None:
                return self.const(a.const + b.const, 2)
            if b.const == 0:
                return a
            if a.op.name == "add64" and a.op.args[1].const is not None and a.op.amods == ["", ""]:
                return self.add64(a.op.args[0], self.const(a.op.args[1].const + b.const, 2))
        return self.op("add64", [a, b], 2)

    def sub64(self, a: Value, b: Value) -> Value:
        if b.const is not None:
            return self.add64(a, self.const(-b.const, 2))
        if a is b:
            return self.const(0, 2)
        return self.op("add64", [a, b], 2, amods=["", "-"])

    def mul64(self, a: Value, b: Value) -> Value:
        """Low 64 bits of the product of two 64-bit numbers."""
        if a.const is not None:
            a, b = b, a
        if b.const is not None:
            if a.const is not None:
                return self.const(a.const * b.const, 2)
            if b.const == 0:
                return b
            if b.const == 1:
                return a
            if b.const & (b.const - 1) == 0:
                return self.shl64(a, self.const(b.const.bit_length() - 1))
        ah, bh = self.hi(a), self.hi(b)
        if ah.const == 0 and bh.const == 0:
            return self.mulw(self.lo(a), self.lo(b), False)
        if is_sext(a) and (is_sext(b) or (b.const is not None and signed(b.const, 64) == signed(b.const & MASK32))):
            return self.mulw(self.lo(a), self.lo(b), True)
        low = self.mulw(self.lo(a), self.lo(b), False)
        high = self.hi(low)
        if bh.const != 0:
            high = self.iadd(self.imul(self.lo(a), bh), high)
        if ah.const != 0:
            high = self.iadd(self.imul(ah, self.lo(b)), high)
        return self.pack(self.lo(low), high)

    def bit64(self, a: Value, b: Value, lut: int) -> Value:
        return self.pack(self.lop3(self.lo(a), self.lo(b), self.const(0), lut), self.lop3(self.hi(a), self.hi(b), self.const(0), lut))

    def shl64(self, a: Value, n: Value) -> Value:
        lo, hi = self.lo(a), self.hi(a)
        if n.const is not None:
            if n.const >= 64:
                return self.const(0, 2)
            if n.const >= 32:
                return self.pack(self.const(0), self.shl(lo, self.const(n.const - 32)))
            if n.const == 0:
                return a
            if a.const is not None:
                return self.const(a.const << n.const, 2)
            if hi.const == 0:
                return self.mulw(lo, self.const(1 << n.const), False)
            if is_sext(a) and n.const < 31:
                return self.mulw(lo, self.const(1 << n.const), True)
            return self.pack(self.shl(lo, n), self.funnel("L", "U64", lo, n, hi, False, True))
        # SHF.L.U64.HI clamps at 64 and above; the low word is lo << n for n < 32 and 0 after.
        return self.pack(self.shl(lo, n), self.funnel("L", "U64", lo, n, hi, False, True))

    def shr64(self, a: Value, n: Value, sign: bool) -> Value:
        lo, hi = self.lo(a), self.hi(a)
        kind = "S64" if sign else "U64"
        if n.const is not None:
            if a.const is not None:
                return self.const(signed(a.const, 64) >> min(n.const, 63) if sign else a.const >> n.const if n.const < 64 else 0, 2)
            if n.const == 0:
                return a
            if n.const >= 64:
                return self.pack(*[self.shr(hi, self.const(31), True)] * 2) if sign else self.const(0, 2)
            if n.const >= 32:
                low = self.shr(hi, self.const(n.const - 32), sign)
                return self.pack(low, self.shr(hi, self.const(31), True) if sign else self.const(0))
        return self.pack(self.funnel("R", kind, lo, n, hi, False, False), self.shr(hi, n, sign))
