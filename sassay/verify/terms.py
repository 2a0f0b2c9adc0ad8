"""Hash-consed terms over bit-vectors, kept in a normal form as they are built.

Two equal terms are the same object, so that most obligations of a proof end at construction. The normal form:

- arithmetic: a linear combination `const + sum(c_i * t_i)` modulo 2**width, parts sorted, coefficients non-zero;
- bitwise logic: the algebraic normal form, an exclusive-or of `mask & product of leaves`, which is canonical for AND, OR, XOR, NOT with
  constants (so LOP3 and chains of two-input operations meet); it is cut into an opaque leaf past `MAX_MONOMIALS`;
- extracts, extensions and concatenations pushed towards the leaves; comparisons and selects with constant and shared parts folded.

Every rule here is sound for all values; tests check each against evaluation on random inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

MAX_MONOMIALS = 48


class Term:
    """An interned expression of `width` bits. `op` with `args` (terms) and `data` (immediate parameters) says what it computes."""

    __slots__ = ("__weakref__", "args", "data", "ident", "op", "width")

    def __init__(self, op: str, args: tuple[Term, ...], data: object, width: int, ident: int) -> None:
        self.op = op
        self.args = args
        self.data = data
        self.width = width
        self.ident = ident

    def __repr__(self) -> str:
        return render(self)

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    @property
    def value(self) -> int:
        """The number of a constant term."""
        assert isinstance(self.data, int)
        return self.data


Monomials = dict[frozenset[Term], int]
Linear = tuple[int, dict[Term, int]]


def render(term: Term, depth: int = 4) -> str:
    """Text for messages, cut at `depth`."""
    if term.op == "const":
        return f"{term.value:#x}:{term.width}"
    if term.op == "var":
        return str(term.data)
    if depth == 0:
        return "..."
    inner = ", ".join(render(a, depth - 1) for a in term.args)
    extra = "" if term.data is None else f"[{_data_text(term.data)}]"
    return f"{term.op}{extra}({inner}):{term.width}"


def _data_text(data: object) -> str:
    if isinstance(data, tuple):
        return ",".join(_data_text(d) for d in data)
    return hex(data) if isinstance(data, int) else str(data)


class Terms:
    """A table of interned terms and the normalising constructors over them. One per proof; not shared between threads."""

    def __init__(self) -> None:
        self._table: dict[tuple[str, tuple[Term, ...], object, int], Term] = {}
        self.rules: dict[Term, Term] = {}
        """Terms that stand for others by a lemma: whoever builds the key gets the value."""
        self._true = self.const(1, 1)
        self._false = self.const(0, 1)

    def __len__(self) -> int:
        return len(self._table)

    def make(self, op: str, args: tuple[Term, ...], data: object, width: int) -> Term:
        """The interned term as given, with no rewriting but the lemmas'."""
        key = (op, args, data, width)
        found = self._table.get(key)
        if found is None:
            found = Term(op, args, data, width, len(self._table))
            self._table[key] = found
        return self.rules.get(found, found) if self.rules else found

    # leaves

    def const(self, value: int, width: int) -> Term:
        return self.make("const", (), value & ((1 << width) - 1), width)

    def var(self, name: str, width: int) -> Term:
        """A free variable; equal names are equal variables."""
        return self.make("var", (), name, width)

    def opaque(self, name: str, args: Iterable[Term], width: int, data: object = None) -> Term:
        """An uninterpreted function application: equal arguments give equal values, nothing else is known."""
        return self.make("fn:" + name, tuple(args), data, width)

    # arithmetic

    def _linear(self, term: Term) -> Linear:
        if term.op == "const":
            return term.value, {}
        if term.op == "lin":
            const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
            return const, dict(zip(term.args, coefficients, strict=True))
        if term.op == "concat":
            return self._linear_concat(term)
        if term.op == "zext":
            return self._linear_zext(term)
        if (leaf := self._complemented(term)) is not None:
            const, parts = self._linear(leaf)
            return -1 - const, {t: -c for t, c in parts.items()}
        return 0, {term: 1}

    def _complemented(self, term: Term) -> Term | None:
        """x when `term` is ~x for a leaf x of more than one bit."""
        if term.op == "anf" and len(term.args) == 1 and term.width > 1:
            full = (1 << term.width) - 1
            if term.data == (((), (0,)), (full, full)):
                return term.args[0]
        return None

    def _linear_zext(self, term: Term) -> Linear:
        """zext(~x) is 2**k - 1 - zext(x), so that borrows meet carries."""
        inner = term.args[0]
        leaf = self._complemented(inner)
        if leaf is None:
            return 0, {term: 1}
        return (1 << inner.width) - 1, {self.zext(leaf, term.width): -1}

    def _linear_concat(self, term: Term) -> Linear:
        """A concatenation as a sum of its parts in their places; the top part may keep a sum, since its overflow is lost."""
        total: dict[Term, int] = {}
        const = 0
        position = term.width
        for index, part in enumerate(term.args):
            position -= part.width
            wide = self.widen(part, term.width) if index == 0 else self.zext(part, term.width)
            inner_const, parts = self._linear(wide)
            const += inner_const << position
            for t, c in parts.items():
                total[t] = total.get(t, 0) + (c << position)
        return const, total

    def widen(self, term: Term, width: int) -> Term:
        """A term of `width` bits whose low bits are `term`; what stands above them is left to convenience."""
        if term.op == "const":
            return self.const(term.value, width)
        if term.op == "lin" or self._complemented(term) is not None:
            const, parts = self._linear(term)
            total = self.const(const, width)
            for t, c in parts.items():
                total = self.add(total, self.scale(self.widen(t, width), c))
            return total
        if term.op == "prod":
            result = self.widen(term.args[0], width)
            for factor in term.args[1:]:
                result = self.mul(result, self.widen(factor, width))
            return result
        if term.op == "zext":
            return self.zext(term.args[0], width)
        if term.op == "extract" and term.data == 0 and term.args[0].width == width:
            return term.args[0]
        return self.zext(term, width)

    def _from_linear(self, const: int, parts: dict[Term, int], width: int) -> Term:
        mask = (1 << width) - 1
        const, parts = self._flatten(const, parts, width)
        const &= mask
        parts = self._shorten(parts, width)
        kept = sorted(((t, c & mask) for t, c in parts.items() if c & mask), key=lambda p: p[0].ident)
        if not kept:
            return self.const(const, width)
        if const == 0 and len(kept) == 1 and kept[0][1] == 1:
            return kept[0][0]
        return self.make("lin", tuple(t for t, _ in kept), (const, tuple(c for _, c in kept)), width)

    def _shorten(self, parts: dict[Term, int], width: int) -> dict[Term, int]:
        """Bitwise functions and selections times 2**s without their s top bits, which are shifted out."""
        mask = (1 << width) - 1
        out: dict[Term, int] = {}
        for t, c in parts.items():
            inner = t.args[0] if t.op == "zext" else t
            kept = width - ((c & mask & -(c & mask)).bit_length() - 1) if c & mask else width
            if inner.op in ("anf", "ite") and 1 < kept < inner.width:
                t = self.zext(self.extract(inner, kept - 1, 0), width)
                if t.op not in ("zext", inner.op):
                    return parts
            out[t] = out.get(t, 0) + c
        return out

    def _flatten(self, const: int, parts: dict[Term, int], width: int) -> tuple[int, dict[Term, int]]:
        """Open zext(sum) where its coefficient shifts out all bits that the extension clears."""
        mask = (1 << width) - 1
        for t, c in parts.items():
            c &= mask
            if t.op != "zext" or not c:
                continue
            inner = t.args[0]
            kept = width - ((c & -c).bit_length() - 1)
            opens = inner.op in ("lin", "prod") or (inner.op == "extract" and inner.data == 0 and inner.args[0].width >= kept)
            if not opens or inner.width < kept:
                continue
            if inner.op == "extract":
                source = inner.args[0]
                wide = self.zext(source, width) if source.width <= width else self.extract(source, width - 1, 0)
            else:
                wide = self.widen(inner, width)
            rest = {u: d for u, d in parts.items() if u is not t}
            more, opened = self._linear(wide)
            if t in opened:
                continue
            for u, d in opened.items():
                rest[u] = rest.get(u, 0) + c * d
            return self._flatten(const + c * more, rest, width)
        return const, parts

    def add(self, a: Term, b: Term) -> Term:
        return self._combine(a, b, 1)

    def sub(self, a: Term, b: Term) -> Term:
        return self._combine(a, b, -1)

    def neg(self, a: Term) -> Term:
        return self._combine(self.const(0, a.width), a, -1)

    def _combine(self, a: Term, b: Term, sign: int) -> Term:
        assert a.width == b.width, (a, b)
        if a.width == 1:
            return self.xor(a, b)
        const, parts = self._linear(a)
        const_b, parts_b = self._linear(b)
        parts = dict(parts)
        for term, coefficient in parts_b.items():
            parts[term] = parts.get(term, 0) + sign * coefficient
        return self._join_halves(const + sign * const_b, parts, a.width)

    def _join_halves(self, const: int, parts: dict[Term, int], width: int) -> Term:
        """Merge c * zext(x[k-1:0]) + c * 2**k * zext(x[m:k]) back into c * zext(x[m:0]), and so a sum and its carry out."""
        changed = True
        while changed and len(parts) > 1:
            changed = False
            for high in sorted(parts, key=lambda t: t.ident):
                joined = self._join_one(high, parts, width)
                if joined is not None:
                    extra, parts = joined
                    const += extra
                    changed = True
                    break
            if not changed and (carried := self._join_carry(parts, width)) is not None:
                parts = {t: c for t, c in carried.items() if not t.is_const and c & ((1 << width) - 1)}
                const += sum(c * t.value for t, c in carried.items() if t.is_const)
                changed = True
        return self._from_linear(const, parts, width)

    def _join_one(self, high: Term, parts: dict[Term, int], width: int) -> tuple[int, dict[Term, int]] | None:
        piece = high.args[0] if high.op == "zext" else high
        if piece.op in ("anf", "ite") and high.op == "zext":
            return self._join_logic(high, parts, width)
        if piece.op != "extract" or not isinstance(piece.data, int):
            return None
        mask = (1 << width) - 1
        base, k = piece.args[0], piece.data
        factor = parts[high] & mask
        if k == 0 or k >= width or factor & ((1 << k) - 1):
            return None
        low_const, low_parts = self._linear(self.zext(self.extract(base, k - 1, 0), width))
        scale = factor >> k
        if not low_parts or any(t not in parts for t in low_parts):
            return None
        # The factor is only known modulo 2**(width - k) here: take the low part's own coefficient where it fits.
        lead = next(iter(low_parts))
        scale = (parts[lead] * pow(low_parts[lead], -1, 1 << width)) & mask if low_parts[lead] & 1 else scale
        if (scale << k) & mask != factor or any((parts[t] - scale * c) & mask for t, c in low_parts.items()):
            return None
        whole = self._zext_sum(self.extract(base, k + piece.width - 1, 0), width)
        rest = {t: c for t, c in parts.items() if t is not high and t not in low_parts}
        whole_const, whole_parts = self._linear(whole)
        for t, c in whole_parts.items():
            rest[t] = rest.get(t, 0) + scale * c
        return scale * (whole_const - low_const), {t: c & mask for t, c in rest.items() if c & mask}

    def _join_logic(self, high: Term, parts: dict[Term, int], width: int) -> tuple[int, dict[Term, int]] | None:
        """c * zext(f(low parts)) + c * 2**k * zext(f(high parts)) is c * zext(f(wholes)), f bitwise or a selection and the low parts k bits."""
        mask = (1 << width) - 1
        factor = parts[high] & mask
        upper = high.args[0]
        for low, c in parts.items():
            lower = low.args[0] if low.op == "zext" else low
            if lower.op != upper.op or lower.width + upper.width > width or (c << lower.width) & mask != factor:
                continue
            fused = self._merge(upper, lower)
            if fused is not None and fused.op != "concat":
                rest = {t: d for t, d in parts.items() if t is not high and t is not low}
                const, more = self._linear(self.zext(fused, width))
                for t, d in more.items():
                    rest[t] = rest.get(t, 0) + c * d
                return c * const, {t: d & mask for t, d in rest.items() if d & mask}
        return None

    def _zext_sum(self, term: Term, width: int) -> Term:
        """zext(term), spread over a sum that cannot overflow its own width."""
        if term.op != "lin" or term.width >= width:
            return self.zext(term, width)
        const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
        bound = const
        for t, c in zip(term.args, coefficients, strict=True):
            bound += c * ((1 << (t.args[0].width if t.op == "zext" else t.width)) - 1)
        if bound >> term.width:
            # Terms with negative coefficients come from complements: const + zext(a) - zext(b) with const = 2**k - 1 or 2**k.
            bound = self._signed_bound(term)
            if bound < 0 or bound >> term.width:
                return self.zext(term, width)
            const, coefficients = self._centred(term)
        total = self.const(const, width)
        for t, c in zip(term.args, coefficients, strict=True):
            total = self._combine(total, self.scale(self.zext(t, width), c), 1)
        return total

    def _centred(self, term: Term) -> tuple[int, tuple[int, ...]]:
        const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
        return const, tuple(signed(c, term.width) for c in coefficients)

    def _signed_bound(self, term: Term) -> int:
        """The largest value of a sum read over the integers with signed coefficients, or -1 when it may be negative."""
        const, coefficients = self._centred(term)
        low = high = const
        for t, c in zip(term.args, coefficients, strict=True):
            top = (1 << (t.args[0].width if t.op == "zext" else t.width)) - 1
            low, high = (low + c * top, high) if c < 0 else (low, high + c * top)
        return high if low >= 0 else -1

    def scale(self, a: Term, factor: int) -> Term:
        const, parts = self._linear(a)
        return self._from_linear(const * factor, {t: c * factor for t, c in parts.items()}, a.width)

    def mul(self, a: Term, b: Term) -> Term:
        if a.is_const:
            return self.scale(b, a.value)
        if b.is_const:
            return self.scale(a, b.value)
        if a.width == 1:
            return self.and_(a, b)
        const_a, parts_a = self._linear(a)
        const_b, parts_b = self._linear(b)
        if len(parts_a) * len(parts_b) > 16:
            return self._product(a, b)
        total = self.scale(b, const_a) if const_a else self.const(0, a.width)
        for t, c in parts_a.items():
            if const_b:
                total = self.add(total, self.scale(t, c * const_b))
            for u, d in parts_b.items():
                total = self.add(total, self.scale(self._product(t, u), c * d))
        return total

    def _product(self, a: Term, b: Term) -> Term:
        if a.width == 64 and (self._splits(a) or self._splits(b)):
            return self.mul(self._limbs(a), self._limbs(b))
        if a.width == 128 and a.op == b.op == "zext" and max(a.args[0].width, b.args[0].width) <= 64:
            return self._wide_product(a.args[0], b.args[0])
        if 1 < a.width <= 32:
            return self._narrow_product(a, b)
        factors: list[Term] = []
        for f in (a, b):
            factors.extend(f.args if f.op == "prod" else (f,))
        factors.sort(key=lambda t: t.ident)
        return self.make("prod", tuple(factors), None, a.width)

    def _wide_product(self, a: Term, b: Term) -> Term:
        """The full product of two values of at most 64 bits, from those of their 32-bit limbs."""
        if a.width <= 32 and b.width <= 32:
            return self.zext(self.mul(self.zext(a, 64), self.zext(b, 64)), 128)
        total = self.const(0, 128)
        for x, i in self._limb_list(a):
            for y, j in self._limb_list(b):
                product = self.zext(self.mul(self.zext(x, 64), self.zext(y, 64)), 128)
                total = self.add(total, self.scale(product, 1 << (32 * (i + j))))
        return total

    def _limb_list(self, a: Term) -> list[tuple[Term, int]]:
        wide = self.zext(a, 64)
        return [(self.extract(wide, 31, 0), 0), (self.extract(wide, 63, 32), 1)]

    def _narrow_product(self, a: Term, b: Term) -> Term:
        """A product of at most 32 bits is the low part of one of 64, so that low halves, full and high products share their factors' term."""
        factors: list[Term] = []
        for f in (a, b):
            if f.op == "extract" and f.data == 0 and f.args[0].op == "prod" and f.args[0].width == 64:
                factors.extend(f.args[0].args)
            else:
                factors.append(self.zext(f, 64))
        wide = factors[0]
        for f in factors[1:]:
            wide = self.mul(wide, f)
        return self.extract(wide, a.width - 1, 0)

    def _splits(self, a: Term) -> bool:
        return a.op not in ("zext", "prod")

    def _limbs(self, a: Term) -> Term:
        """A 64-bit leaf as a sum of 32-bit limbs, so that products meet those built from IMAD.WIDE and IMAD."""
        if not self._splits(a):
            return a
        const = 0
        parts: dict[Term, int] = {}
        for limb, unit in ((self.extract(a, 31, 0), 1), (self.extract(a, 63, 32), 1 << 32)):
            if limb.is_const:
                const += limb.value * unit
            else:
                parts[self.zext(limb, 64)] = unit
        return self._from_linear(const, parts, 64)

    def udiv(self, a: Term, b: Term) -> Term:
        return self._divide("udiv", a, b)

    def urem(self, a: Term, b: Term) -> Term:
        return self._divide("urem", a, b)

    def sdiv(self, a: Term, b: Term) -> Term:
        return self._divide("sdiv", a, b)

    def srem(self, a: Term, b: Term) -> Term:
        return self._divide("srem", a, b)

    def _divide(self, op: str, a: Term, b: Term) -> Term:
        """Division as SMT-LIB defines it (x / 0 is all ones, x % 0 is x)."""
        if a.is_const and b.is_const:
            return self.const(divide(op, a.value, b.value, a.width), a.width)
        if b.is_const and b.value and b.value & (b.value - 1) == 0 and op in ("udiv", "urem"):
            if op == "udiv":
                return self.lshr(a, self.const(b.value.bit_length() - 1, a.width))
            return self.and_(a, self.const(b.value - 1, a.width))
        return self.make(op, (a, b), None, a.width)

    # bitwise logic in algebraic normal form

    def _monomials(self, term: Term) -> Monomials:
        if term.op == "const":
            return {frozenset(): term.value} if term.value else {}
        if term.op == "anf":
            rows, masks = cast("tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]", term.data)
            return {frozenset(term.args[i] for i in row): mask for row, mask in zip(rows, masks, strict=True)}
        return {frozenset((term,)): (1 << term.width) - 1}

    def _from_monomials(self, monomials: Monomials, width: int) -> Term:
        items = {s: m for s, m in monomials.items() if m and not (width == 1 and len(s) > 1 and self._contradicts(s))}
        full = (1 << width) - 1
        if not items:
            return self.const(0, width)
        if len(items) == 1:
            (leaves, mask), = items.items()
            if not leaves:
                return self.const(mask, width)
            if len(leaves) == 1 and mask == full:
                return next(iter(leaves))
        if width > 1 and (apart := self._disjoint_sum(items, width)) is not None:
            return apart
        atoms = sorted({t for s in items for t in s}, key=lambda t: t.ident)
        index = {t: i for i, t in enumerate(atoms)}
        rows = sorted((tuple(sorted(index[t] for t in s)), m) for s, m in items.items())
        return self.make("anf", tuple(atoms), (tuple(r for r, _ in rows), tuple(m for _, m in rows)), width)

    def _contradicts(self, leaves: frozenset[Term]) -> bool:
        """Whether predicates cannot hold together: two values equal, and one less than the other."""
        equal = {frozenset(t.args) for t in leaves if t.op == "eq"}
        return bool(equal) and any(t.op in ("ult", "slt") and frozenset(t.args) in equal for t in leaves)

    def bound(self, term: Term) -> int:
        """A number that the term does not exceed; at most 2**width - 1."""
        top = (1 << term.width) - 1
        if term.op == "const":
            return term.value
        if term.op == "zext":
            return self.bound(term.args[0])
        if term.op == "lin":
            const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
            total = const + sum(c * self.bound(t) for t, c in zip(term.args, coefficients, strict=True))
            return min(total, top)
        if term.op == "prod":
            total = 1
            for t in term.args:
                total *= self.bound(t)
            return min(total, top)
        if term.op == "anf" and len(term.args) == 1 and term.data == (((0,),), (cast("tuple[object, tuple[int]]", term.data)[1][0],)):
            return cast("tuple[object, tuple[int]]", term.data)[1][0]
        return top

    def support(self, term: Term) -> int:
        """A mask of the bits that may be set."""
        full = (1 << term.width) - 1
        if term.op == "const":
            return term.value
        if term.op == "zext":
            return self.support(term.args[0])
        if term.op == "lin":
            const, coefficients = cast("tuple[int, tuple[int, ...]]", term.data)
            c = coefficients[0]
            if const == 0 and len(coefficients) == 1 and c & (c - 1) == 0:
                return self.support(term.args[0]) * c & full
        return full

    def _disjoint_sum(self, items: Monomials, width: int) -> Term | None:
        """Values whose bits stand apart, or-ed: the same as their sum."""
        if len(items) < 2 or any(len(s) > 1 for s in items):
            return None
        used = 0
        total: list[Term] = []
        for leaves, mask in items.items():
            leaf = next(iter(leaves)) if leaves else self.const(mask, width)
            bits = self.support(leaf)
            if (leaves and bits & ~mask) or bits & used or (leaves and bits == (1 << width) - 1):
                return None
            used |= bits
            total.append(leaf)
        result = total[0]
        for t in total[1:]:
            result = self.add(result, t)
        return result

    def xor(self, a: Term, b: Term) -> Term:
        assert a.width == b.width, (a, b)
        total = self._monomials(a)
        for s, m in self._monomials(b).items():
            total[s] = total.get(s, 0) ^ m
        if len(total) > MAX_MONOMIALS:
            return self._sorted("xor", a, b)
        return self._from_monomials(total, a.width)

    def and_(self, a: Term, b: Term) -> Term:
        assert a.width == b.width, (a, b)
        left, right = self._monomials(a), self._monomials(b)
        if len(left) * len(right) > MAX_MONOMIALS:
            return self._sorted("and", a, b)
        total: Monomials = {}
        for s, m in left.items():
            for t, n in right.items():
                if m & n:
                    union = s | t
                    total[union] = total.get(union, 0) ^ (m & n)
        return self._from_monomials(total, a.width)

    def or_(self, a: Term, b: Term) -> Term:
        return self.xor(self.xor(a, b), self.and_(a, b))

    def not_(self, a: Term) -> Term:
        return self.xor(a, self.const(-1, a.width))

    def _sorted(self, op: str, a: Term, b: Term) -> Term:
        if a.ident > b.ident:
            a, b = b, a
        return self.make(op, (a, b), None, a.width)

    # shape

    def extract(self, a: Term, high: int, low: int) -> Term:
        """Bits high..low of `a`, both included."""
        width = high - low + 1
        assert 0 <= low <= high < a.width, (a, high, low)
        if width == a.width:
            return a
        if a.is_const:
            return self.const(a.value >> low, width)
        if a.op == "extract":
            base = a.data
            assert isinstance(base, int)
            return self.extract(a.args[0], high + base, low + base)
        if a.op == "concat":
            return self._extract_concat(a, high, low)
        if a.op == "zext":
            inner = a.args[0]
            if low >= inner.width:
                return self.const(0, width)
            if high < inner.width:
                return self.extract(inner, high, low)
            return self.zext(self.extract(inner, inner.width - 1, low), width)
        if a.op == "anf":
            parts = {s: (m >> low) & ((1 << width) - 1) for s, m in self._monomials(a).items()}
            total = self.const(0, width)
            for s, m in parts.items():
                if m:
                    product = self.const(m, width)
                    for leaf in sorted(s, key=lambda t: t.ident):
                        product = self.and_(product, self.extract(leaf, high, low))
                    total = self.xor(total, product)
            return total
        if a.op == "ite":
            return self.ite(a.args[0], self.extract(a.args[1], high, low), self.extract(a.args[2], high, low))
        if low == 0 and (a.op == "lin" or (a.op == "prod" and a.width != 64)):
            return self._truncate(a, width)
        if low and self.bound(a) >> low == 0:
            return self.const(0, width)
        if a.op == "lin" and a.width == 64 and low > 32 and (half := self.extract(a, 63, 32)).op != "extract":
            return self.extract(half, high - 32, low - 32)
        if a.op == "lin" and (upper := self._upper_sum(a, low)) is not None:
            return self.extract(upper, high - low, 0)
        if a.op == "lin" and low and a.width >= 64 and (pulled := self._pull_out(a, low)) is not None:
            rest, outside = pulled
            opaque = rest.op == "lin" and self.bound(rest) >> low
            inner = self.make("extract", (rest,), low, width) if opaque else self.extract(rest, high, low)
            return self.add(inner, self.extract(outside, width - 1, 0))
        return self.make("extract", (a,), low, width)

    def _upper_sum(self, a: Term, low: int) -> Term | None:
        """a >> low (in a.width - low bits) when the parts below bit `low` are one value that cannot carry into it."""
        const, parts = self._linear(a)
        unit = (1 << low) - 1
        below = [(t, c) for t, c in parts.items() if c & unit]
        if len(below) > 1 or (below and (below[0][1] != 1 or below[0][0].op != "zext" or below[0][0].args[0].width > low or const & unit)):
            return None
        width = a.width - low
        total = self.const(const >> low, width)
        for t, c in parts.items():
            if not c & unit:
                total = self.add(total, self.scale(self.extract(t, width - 1, 0), c >> low))
        return total

    def _pull_out(self, a: Term, low: int) -> tuple[Term, Term] | None:
        """a = rest + 2**low * outside: what is a multiple of 2**low adds above bit `low` without touching the carries below."""
        const, parts = self._linear(a)
        unit = (1 << low) - 1
        multiples = {t: c for t, c in parts.items() if not c & unit}
        if not multiples and not const >> low:
            return None
        width = a.width - low
        outside = self.const(const >> low, width)
        for t, c in multiples.items():
            outside = self.add(outside, self.scale(self.extract(t, width - 1, 0), c >> low))
        return self._from_linear(const & unit, {t: c for t, c in parts.items() if c & unit}, a.width), outside

    def _carry_as_upper(self, t: Term) -> Term | None:
        """zext(carry out of bit 32 of a sum that does not overflow), in 32 bits, as the upper word of the sum in 64."""
        if t.op != "zext" or t.width != 32 or t.args[0].op != "extract" or t.args[0].data != 32:
            return None
        total = t.args[0].args[0]
        if total.op != "lin" or total.width >= 64:
            return None
        bound = self._signed_bound(total)
        if bound < 0 or bound >> (32 + t.args[0].width):
            return None
        return self.extract(self._zext_sum(total, 64), 63, 32)

    def _join_carry(self, parts: dict[Term, int], width: int) -> dict[Term, int] | None:
        """upper(L) + B >> (32-s) is upper(L - 2**s * low + 2**s * B) when L holds 2**s * zext(low bits of B): a carry meets its upper word."""
        if width != 32:
            return None
        mask = (1 << 32) - 1
        for t, c in parts.items():
            upper = self._carry_as_upper(t)
            if upper is not None:
                rest = {u: d for u, d in parts.items() if u is not t}
                return self._added(rest, upper, c)
        ones = [t for t, c in parts.items() if c & mask == 1 and t.op == "extract" and t.data == 32]
        uppers = [t for t in ones if t.args[0].op == "lin" and t.args[0].width == 64]
        for e in uppers:
            const, inner = self._linear(e.args[0])
            for h, c in parts.items():
                sign = 1 if c & mask == 1 else -1 if c & mask == mask else 0
                if h is e or not sign or h.op != "extract" or h.args[0].width != 64 or not isinstance(h.data, int) or not 0 < h.data <= 32:
                    continue
                shift = 32 - h.data
                low = self.zext(self.extract(h.args[0], h.data - 1, 0), 64)
                low_const, low_parts = self._linear(low)
                factor = sign << shift
                full = (1 << 64) - 1
                if low_const or not low_parts or any((inner.get(u, 0) - factor * d) & full for u, d in low_parts.items()):
                    continue
                left = {u: d for u, d in inner.items() if u not in low_parts}
                whole = self._from_linear(const, left, 64)
                whole = self.add(whole, self.scale(h.args[0], factor))
                rest = {u: d for u, d in parts.items() if u is not h and u is not e}
                return self._added(rest, self.extract(whole, 63, 32), 1)
        return None

    def _added(self, parts: dict[Term, int], term: Term, factor: int) -> dict[Term, int]:
        """`parts` with factor * term added; a constant summand is entered under the constant one."""
        const, more = self._linear(term)
        total = dict(parts)
        for u, d in more.items():
            total[u] = total.get(u, 0) + factor * d
        if const:
            one = self.make("const", (), 1, term.width)
            total[one] = total.get(one, 0) + factor * const
        return total

    def _truncate(self, a: Term, width: int) -> Term:
        """The low bits of a sum or product depend on the low bits of its parts alone."""
        if a.op == "prod":
            result = self.extract(a.args[0], width - 1, 0)
            for factor in a.args[1:]:
                result = self.mul(result, self.extract(factor, width - 1, 0))
            return result
        const, parts = self._linear(a)
        result = self.const(const, width)
        for term, coefficient in parts.items():
            result = self.add(result, self.scale(self.extract(term, width - 1, 0), coefficient))
        return result

    def _extract_concat(self, a: Term, high: int, low: int) -> Term:
        pieces: list[Term] = []
        position = a.width
        for part in a.args:
            position -= part.width
            top, bottom = min(high, position + part.width - 1), max(low, position)
            if top >= bottom:
                pieces.append(self.extract(part, top - position, bottom - position))
        return self.concat(*pieces)

    def concat(self, *parts: Term) -> Term:
        """Parts from the most significant one down."""
        flat: list[Term] = []
        for part in parts:
            for piece in self._pieces(part):
                if flat and (merged := self._merge(flat[-1], piece)) is not None:
                    flat[-1] = merged
                else:
                    flat.append(piece)
        if len(flat) == 1:
            return flat[0]
        width = sum(p.width for p in flat)
        if flat[0].is_const and flat[0].value == 0:
            return self.zext(self.concat(*flat[1:]), width)
        if flat[-1].is_const and flat[-1].value == 0:
            return self.scale(self.zext(self.concat(*flat[:-1]), width), 1 << flat[-1].width)
        whole = self.make("concat", tuple(flat), None, width)
        return self._sum_of_parts(whole) if flat[0].op in ("lin", "prod") else whole

    def _pieces(self, part: Term) -> tuple[Term, ...]:
        if part.op == "concat":
            return part.args
        if part.op == "zext":
            return (self.const(0, part.width - part.args[0].width), *self._pieces(part.args[0]))
        return (part,)

    def _sum_of_parts(self, whole: Term) -> Term:
        """A concatenation whose top part is a sum, as one sum, when a carry or two halves join in it."""
        const, parts = self._linear(whole)
        joined = self._join_halves(const, parts, whole.width)
        count = len(self._linear(joined)[1])
        return joined if count < len(parts) else whole

    def _merge(self, high: Term, low: Term) -> Term | None:
        """One term for two adjacent pieces of the same value, or of constants."""
        width = high.width + low.width
        if high.is_const and low.is_const:
            return self.const(high.value << low.width | low.value, width)
        if high.op == "anf" and low.op == "anf" and high.width > 1 and low.width > 1:
            return self._merge_logic(high, low)
        if (bit := self._copies_of(high)) is not None and bit is self._copies_of(low):
            return self.neg(self.zext(bit, width))
        if high.op == "ite" and low.op == "ite" and high.args[0] is low.args[0]:
            yes, no = (self._whole(high.args[i], low.args[i]) for i in (1, 2))
            return None if yes is None or no is None else self.ite(high.args[0], yes, no)
        if high.op == "extract" and isinstance(high.data, int):
            base = high.args[0]
            start = low.data if low.op == "extract" and low.args[0] is base else None
            if isinstance(start, int) and start + low.width == high.data:
                return self.extract(base, start + width - 1, start)
            if high.data == low.width and width <= base.width and self.extract(base, low.width - 1, 0) is low:
                return self.extract(base, width - 1, 0)
        return None

    def _whole(self, high: Term, low: Term) -> Term | None:
        """Two parts of a value as one term, or None where that would leave a sum cut in two."""
        whole = self.concat(high, low)
        if whole.op == "concat" and any(t.op in ("lin", "prod") for t in whole.args):
            const, parts = self._linear(whole)
            whole = self._join_halves(const, parts, whole.width)
            if any(t.op == "zext" and t.args[0].op == "lin" for t in whole.args):
                return None
        return whole

    def _copies_of(self, a: Term) -> Term | None:
        """The bit that every bit of `a` is a copy of, or None."""
        if a.op != "lin" or a.data != (0, ((1 << a.width) - 1,)):
            return None
        wide = a.args[0]
        return wide.args[0] if wide.op == "zext" and wide.args[0].width == 1 else None

    def _merge_logic(self, high: Term, low: Term) -> Term | None:
        """The same bitwise function of the halves of several values, as that function of the whole values."""
        if len(high.args) != len(low.args) or len(high.args) > 6:
            return None
        whole: dict[Term, tuple[Term, Term]] = {}
        left = list(high.args)
        for atom in low.args:
            for other in left:
                fused = self._merge(other, atom)
                if fused is None and (other.op == "concat" or atom.op == "concat"):
                    fused = self.concat(other, atom)
                    fused = None if len(fused.args) >= len(self._pieces(other)) + len(self._pieces(atom)) else fused
                if fused is not None:
                    whole[atom] = (other, fused)
                    left.remove(other)
                    break
        single = [atom for atom in low.args if atom not in whole]
        if len(single) > 1:
            return None
        for atom, other in zip(single, left, strict=True):
            whole[atom] = (other, self.concat(other, atom))
        upper = {frozenset(leaves): mask for leaves, mask in self._monomials(high).items()}
        width, shift = high.width + low.width, low.width
        total = self.const(0, width)
        seen: set[frozenset[Term]] = set()
        for leaves, mask in self._monomials(low).items():
            partner = frozenset(whole[t][0] for t in leaves)
            seen.add(partner)
            product = self.const(upper.get(partner, 0) << shift | mask, width)
            for t in sorted(leaves, key=lambda t: t.ident):
                product = self.and_(product, whole[t][1])
            total = self.xor(total, product)
        back = {pair[0]: pair[1] for pair in whole.values()}
        for leaves, mask in upper.items():
            if leaves not in seen:
                product = self.const(mask << shift, width)
                for t in sorted(leaves, key=lambda t: t.ident):
                    product = self.and_(product, back[t])
                total = self.xor(total, product)
        return total

    def zext(self, a: Term, width: int) -> Term:
        if a.width == width:
            return a
        if a.is_const:
            return self.const(a.value, width)
        if a.op == "zext":
            a = a.args[0]
        if a.op == "lin" and (shift := self._common_shift(a)):
            narrow = self.extract(self.make("lin", a.args, self._shifted(a, shift), a.width), a.width - shift - 1, 0)
            return self.scale(self.zext(narrow, width), 1 << shift)
        return self.make("zext", (a,), None, width)

    def _common_shift(self, a: Term) -> int:
        """The power of two that divides a sum's constant and all its coefficients."""
        const, coefficients = cast("tuple[int, tuple[int, ...]]", a.data)
        every = const
        for c in coefficients:
            every |= c
        return (every & -every).bit_length() - 1

    def _shifted(self, a: Term, shift: int) -> tuple[int, tuple[int, ...]]:
        const, coefficients = cast("tuple[int, tuple[int, ...]]", a.data)
        return const >> shift, tuple(c >> shift for c in coefficients)

    def sext(self, a: Term, width: int) -> Term:
        if a.width == width:
            return a
        if a.is_const:
            return self.const(signed(a.value, a.width), width)
        if a.op == "zext":
            return self.zext(a.args[0], width)
        sign = self.zext(self.extract(a, a.width - 1, a.width - 1), width)
        return self.sub(self.zext(a, width), self.scale(sign, 1 << a.width))

    # shifts by any amount: at or past the width they give zero (or the sign)

    def shl(self, a: Term, n: Term) -> Term:
        if n.is_const:
            if n.value >= a.width:
                return self.const(0, a.width)
            return self.scale(a, 1 << n.value) if n.value else a
        return self.make("shl", (a, n), None, a.width)

    def lshr(self, a: Term, n: Term) -> Term:
        if n.is_const:
            if n.value >= a.width:
                return self.const(0, a.width)
            return self.zext(self.extract(a, a.width - 1, n.value), a.width)
        return self.make("lshr", (a, n), None, a.width)

    def ashr(self, a: Term, n: Term) -> Term:
        if n.is_const:
            return self.sext(self.extract(a, a.width - 1, min(n.value, a.width - 1)), a.width)
        return self.make("ashr", (a, n), None, a.width)

    # comparisons and selects

    def eq(self, a: Term, b: Term) -> Term:
        assert a.width == b.width, (a, b)
        if a is b:
            return self._true
        if a.width == 1:
            return self.not_(self.xor(a, b))
        if a.is_const and b.is_const:
            return self._false
        if a.op in ("zext", "lin") or b.op in ("zext", "lin"):
            simpler = self._simplify_eq(a, b)
            if simpler is not None:
                return simpler
        if a.width == 64:
            (high_a, low_a), (high_b, low_b) = self._halves(a), self._halves(b)
            return self.and_(self.eq(high_a, high_b), self.eq(low_a, low_b))
        if a.ident > b.ident:
            a, b = b, a
        return self.make("eq", (a, b), None, 1)

    def _halves(self, a: Term) -> tuple[Term, Term]:
        """The upper and the lower 32 bits of 64: comparisons are made of theirs, as hardware makes them."""
        return self.extract(a, 63, 32), self.extract(a, 31, 0)

    def _less_by_halves(self, less: Callable[[Term, Term], Term], a: Term, b: Term) -> Term:
        (high_a, low_a), (high_b, low_b) = self._halves(a), self._halves(b)
        return self.or_(less(high_a, high_b), self.and_(self.eq(high_a, high_b), self.ult(low_a, low_b)))

    def _simplify_eq(self, a: Term, b: Term) -> Term | None:
        if a.is_const:
            a, b = b, a
        if a.op == "zext" and b.is_const:
            inner = a.args[0]
            return self._false if b.value >> inner.width else self.eq(inner, self.const(b.value, inner.width))
        if a.op == "zext" and b.op == "zext" and a.args[0].width == b.args[0].width:
            return self.eq(a.args[0], b.args[0])
        difference = self.sub(a, b)
        if difference.is_const:
            return self.const(int(difference.value == 0), 1)
        return None

    def ult(self, a: Term, b: Term) -> Term:
        if a is b:
            return self._false
        if a.is_const and b.is_const:
            return self.const(int(a.value < b.value), 1)
        if b.is_const and b.value == 0:
            return self._false
        if b.is_const and b.value == 1:
            return self.eq(a, self.const(0, a.width))
        if a.width == 1:
            return self.and_(self.not_(a), b)
        if a.op == "zext" and b.op == "zext" and a.args[0].width == b.args[0].width:
            return self.ult(a.args[0], b.args[0])
        if a.width == 64:
            return self._less_by_halves(self.ult, a, b)
        return self.make("ult", (a, b), None, 1)

    def ule(self, a: Term, b: Term) -> Term:
        return self.not_(self.ult(b, a))

    def slt(self, a: Term, b: Term) -> Term:
        if a is b:
            return self._false
        if a.is_const and b.is_const:
            return self.const(int(signed(a.value, a.width) < signed(b.value, b.width)), 1)
        if b.is_const and b.value == 0:
            return self.extract(a, a.width - 1, a.width - 1)
        if a.width == 64:
            return self._less_by_halves(self.slt, a, b)
        return self.make("slt", (a, b), None, 1)

    def sle(self, a: Term, b: Term) -> Term:
        return self.not_(self.slt(b, a))

    def ite(self, condition: Term, a: Term, b: Term) -> Term:
        assert condition.width == 1 and a.width == b.width, (condition, a, b)
        if a is b:
            return a
        if condition.is_const:
            return a if condition.value else b
        if a.width == 1:
            return self.xor(b, self.and_(condition, self.xor(a, b)))
        if self.is_negated(condition):
            condition, a, b = self.not_(condition), b, a
        if a.op == "ite" and a.args[0] is condition:
            a = a.args[1]
        if b.op == "ite" and b.args[0] is condition:
            b = b.args[2]
        if a is b or (a.is_const and condition.op == "eq" and self._at_zero(condition, b) == a.value):
            return b
        return self.make("ite", (condition, a, b), None, a.width)

    def _at_zero(self, condition: Term, b: Term) -> int | None:
        """The value of `b`, a linear function of the leading zeros of x, where the condition is x == 0; None for anything else. Counting zeros
        by way of the leading one takes that case apart, and it needs none."""
        zero, x = condition.args if condition.args[0].is_const else condition.args[::-1]
        if not zero.is_const or zero.value:
            return None
        if b.op == "fn:clz":
            counted = b.args[0].args[0] if b.args[0].op == "zext" else b.args[0]
            return b.width if counted is x else None
        if b.op == "zext" or (b.op == "extract" and b.data == 0) or (b.op == "lin" and len(b.args) == 1):
            inner = self._at_zero(condition, b.args[0])
            if inner is None:
                return None
            const, factors = cast("tuple[int, tuple[int, ...]]", b.data) if b.op == "lin" else (0, (1,))
            return (const + factors[0] * inner) & ((1 << b.width) - 1)
        return None

    def constant_part(self, term: Term) -> int:
        """The constant that a bitwise term's normal form is flipped by; 0 for other terms."""
        if term.op != "anf":
            return 0
        rows, masks = cast("tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]", term.data)
        return masks[0] if rows and rows[0] == () else 0

    def is_negated(self, condition: Term) -> bool:
        """Whether a predicate's normal form carries a constant 1: exactly one of p and not p does."""
        if condition.op != "anf":
            return False
        rows, _ = cast("tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]", condition.data)
        return bool(rows) and rows[0] == ()


def signed(value: int, width: int) -> int:
    """The two's complement reading of `value`."""
    return value - (1 << width) if value >> (width - 1) & 1 else value


def divide(op: str, a: int, b: int, width: int) -> int:
    """udiv, urem, sdiv, srem on numbers, with SMT-LIB's results for a zero divisor."""
    mask = (1 << width) - 1
    if op == "udiv":
        return a // b if b else mask
    if op == "urem":
        return a % b if b else a
    x, y = signed(a, width), signed(b, width)
    if y == 0:
        return (a if op == "srem" else (1 if x < 0 else mask)) & mask
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return (quotient if op == "sdiv" else x - quotient * y) & mask
