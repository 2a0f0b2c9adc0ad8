"""Shapes: what all words of a form with the same modifiers, operand kinds and special cases have in common.

A shape knows the instruction without its numbers and where each number stands, so that building an instruction from field values, or reading
the values back out of one, needs no text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sassay.errors import SassError
from sassay.isa.tables.forms import FLOATS, PAYLOAD, Feature, Field, Form
from sassay.sass.model import RZ, Const, File, Imm, Instruction, Mem, Name, Operand, Reg, Target
from sassay.sass.text import float_value, parse_instruction

FILES = {"R": File.R, "UR": File.UR, "P": File.P, "UP": File.UP, "B": File.B, "SB": File.SB}
CODED_LIMIT = 1 << 16
Slots = tuple[int, ...]
Maker = Callable[..., Any]


@dataclass(slots=True)
class Part:
    """One operand (or the guard): the field of each number in it, and how to make it from them. `read` gives the numbers back, in order."""

    fields: Slots
    make: Maker
    read: Callable[[Any], tuple[int, ...]]
    made: dict[Any, Any]
    texts: dict[Any, str] = field(default_factory=dict)
    coded: dict[int, tuple[Any, int | None]] = field(default_factory=dict)
    """Operands met and their bits, by identity: parsed operands are shared, and hashing one costs more than encoding it."""


@dataclass(slots=True)
class Shape:
    """`base` has all bits that the shape decides, `shown` those of the fields it shows. `checks`: (field, feature, case) that must hold."""

    form: Form
    opcode: str
    modifiers: tuple[str, ...]
    guard: Part
    operands: tuple[Part, ...]
    shown_fields: tuple[int, ...]
    shown: int
    base: int
    checks: tuple[tuple[int, Feature, int], ...]
    reuse_at: tuple[tuple[int, int, int], ...]
    """(operand, register within an address or 0, control bit) of each reuse flag."""
    alone: bool
    """Whether each operand's bits follow from that operand alone: no field stands in two of them, nor as an offset from the instruction."""
    twin: bool = False
    """Whether a register of a kind that it shows is hidden too: the same text may then be of another shape (UIADD3 with one carry out of two)."""

    def build(self, values: Sequence[int]) -> tuple[Reg, tuple[Operand, ...]]:
        """Guard and operands from the value of every field of the form (hidden ones are ignored)."""
        return (
            self.guard.make(*[values[i] for i in self.guard.fields]),
            tuple(p.make(*[values[i] for i in p.fields]) for p in self.operands),
        )

    def word(self, instr: Instruction, offset: int) -> int | None:
        """The payload of an instruction of this shape; None if a number does not fit its field or is in another special case."""
        if not self.alone:
            return self.joint_word(instr, offset)
        word = self.base
        for part, operand in ((self.guard, instr.guard), *zip(self.operands, instr.operands, strict=True)):
            hit = part.coded.get(id(operand))
            if hit is None or hit[0] is not operand:
                raws = self.raws(part, operand, offset)
                bits = None
                if raws is not None:
                    bits = 0
                    for i, raw in raws:
                        bits |= self.form.fields[i].spread(raw)
                if len(part.coded) >= CODED_LIMIT:
                    part.coded.clear()
                hit = part.coded[id(operand)] = (operand, bits)
            if hit[1] is None:
                return None
            word |= hit[1]
        return word

    def joint_word(self, instr: Instruction, offset: int) -> int | None:
        """As `word`, where operands share fields."""
        seen: dict[int, int] = {}
        fields = self.form.fields
        word = self.base
        for part, operand in ((self.guard, instr.guard), *zip(self.operands, instr.operands, strict=True)):
            raws = self.raws(part, operand, offset)
            if raws is None or any(seen.setdefault(i, raw) != raw for i, raw in raws):
                return None
        for i, raw in seen.items():
            word |= fields[i].spread(raw)
        for part, operand in zip(self.operands, instr.operands, strict=True):
            for i, value in zip(part.fields, part.read(operand), strict=True) if part.fields else ():
                if fields[i].paired and to_model(fields[i], fields[i].value(fields[i].raw(word)), offset) != value:
                    return None
        return word

    def raws(self, part: Part, operand: Any, offset: int) -> list[tuple[int, int]] | None:
        """(field, raw) for the numbers of one operand; second registers of pairs are left to the first."""
        if not part.fields:
            if isinstance(operand, (Imm, Const, Mem)) and operand != part.make():
                return None
            return None if isinstance(operand, Reg) and operand.index != part.make().index else []
        if isinstance(operand, Const) and part.make(*part.read(operand)) != operand:
            return None
        out: list[tuple[int, int]] = []
        for i, value in zip(part.fields, part.read(operand), strict=True):
            f = self.form.fields[i]
            if f.paired:
                continue
            raw = f.raw_of(to_field(f, value, offset))
            if raw is None or any(feature.case(raw) != case for n, feature, case in self.checks if n == i):
                return None
            out.append((i, raw))
        return out


def to_model(f: Field, value: int, offset: int) -> int:
    """A field's value as the model has it: 255 for URZ whatever the field's width, targets from the section's start."""
    if f.kind in ("R", "UR"):
        return RZ if value == f.top else value
    return value + offset + 16 if f.kind == "T" else value


def to_field(f: Field, value: int, offset: int) -> int:
    if f.kind in ("R", "UR"):
        return f.top if value == RZ else -1 if value == f.top else value
    return value - offset - 16 if f.kind == "T" else value


def probe_text(form: Form, tokens: Sequence[str]) -> tuple[str, dict[int, int]]:
    """The text of `tokens` with a different number in every field, and those numbers as the model has them."""
    numbers: dict[int, int] = {}
    counts: dict[str, int] = {}
    out = []
    for token in tokens:
        if not token.startswith("$"):
            out.append(token)
            continue
        i = int(token[1:])
        kind = form.fields[i].kind
        if i not in numbers:
            group = "d" if kind in FLOATS or kind == "DEC" else "x" if kind == "T" else kind
            n = counts[group] = counts.get(group, -1) + 1
            numbers[i] = {"R": 20 + 7 * n, "UR": 10 + 3 * n, "x": 0x1001 + 0x111 * n, "d": 2 + n}.get(group, n)
        n = numbers[i]
        out.append(hex(n) if kind in ("x", "T") else str(n) if kind in FLOATS or kind == "DEC" else f"{kind}{n}")
    return "".join(out), numbers


def make_shape(form: Form, outcomes: Sequence[int], word: int, canonical: int, reuse_bits: int) -> Shape:
    """The shape of `word`, a word of `form` with those outcomes. `canonical` is the payload to encode it with."""
    tokens = form.assemble(outcomes)
    text, numbers = probe_text(form, tokens)
    proto = parse_instruction(text)
    reused = {form.reuse[b] for b in (122, 123, 124) if (reuse_bits >> b) & 1 and b in form.reuse}
    finder = Finder(form, numbers, reused)
    guard = finder.part(proto.guard, -1)
    operands = tuple(finder.part(o, k) for k, o in enumerate(proto.operands))
    missing = set(numbers) - finder.found
    if missing:
        raise SassError(f"{form.name}: the number of field {sorted(missing)} is not found in '{text}'")
    shown = 0
    for i in numbers:
        shown |= form.fields[i].mask
    checks = []
    for g in form.groups:
        for f, case in zip(g.features, g.cases(g.joint(word, form.fields)), strict=True):
            if f.bit < 0:
                checks.append((f.field, f, case))
    kinds = {form.fields[i].kind for i in numbers if i not in guard.fields} & {"R", "UR", "P", "UP"}
    idle = {i for i, f in enumerate(form.fields) if f.kind in kinds} - set(numbers)
    places = [i for p in (guard, *operands) for i in p.fields]
    alone = len(set(places)) == len(places) and not any(form.fields[i].paired or form.fields[i].kind == "T" for i in places)
    return Shape(
        form=form,
        opcode=proto.opcode,
        modifiers=proto.modifiers,
        guard=guard,
        operands=operands,
        shown_fields=tuple(sorted(numbers)),
        shown=shown,
        base=canonical & ~shown & PAYLOAD,
        checks=tuple(checks),
        reuse_at=tuple(finder.reuse_at),
        alone=alone,
        twin=bool(idle),
    )


class Finder:
    """Finds the numbers of a probe text in the parsed operands."""

    def __init__(self, form: Form, numbers: dict[int, int], reused: set[int]) -> None:
        self.form = form
        self.numbers = numbers
        self.reused = reused
        self.found: set[int] = set()
        self.bits = {f: b for b, f in form.reuse.items()}
        self.reuse_at: list[tuple[int, int, int]] = []

    def register(self, reg: Reg) -> int | None:
        """The field that gives the register's index."""
        for i, n in self.numbers.items():
            if FILES.get(self.form.fields[i].kind) == reg.file and n == reg.index:
                self.found.add(i)
                return i
        return None

    def integer(self, value: int) -> int | None:
        for i, n in self.numbers.items():
            if self.form.fields[i].kind in ("x", "T", "DEC") and n == value:
                self.found.add(i)
                return i
        return None

    def float(self, imm: Imm) -> int | None:
        for i, n in self.numbers.items():
            if self.form.fields[i].kind in FLOATS and float_value(imm.value, imm.kind) == n:
                self.found.add(i)
                return i
        return None

    def part(self, operand: Operand, position: int) -> Part:
        match operand:
            case Reg():
                return self.reg_part(operand, position)
            case Imm():
                i = self.integer(operand.value) if operand.kind in (0, 5) else self.float(operand)
                if i is not None:
                    imm = operand
                    return Part((i,), lambda v: replace(imm, value=v), lambda o: (o.value,), {})
            case Target():
                i = self.integer(operand.to) if isinstance(operand.to, int) else None
                if i is not None:
                    target = operand
                    return Part((i,), lambda v: replace(target, to=v), read_target, {})
            case Const():
                return self.const_part(operand)
            case Mem():
                return self.mem_part(operand, position)
            case Name():
                for i, n in self.numbers.items():
                    if self.form.fields[i].kind == "gsb" and operand.text == f"gsb{n}":
                        self.found.add(i)
                        return Part((i,), lambda v: Name(f"gsb{v}"), lambda o: (int(o.text[3:]),), {})
        return Part((), lambda: operand, lambda o: (), {})

    def reg_part(self, reg: Reg, position: int) -> Part:
        i = self.register(reg)
        if i in self.bits and position >= 0:
            self.reuse_at.append((position, 0, self.bits[i]))
        if i in self.reused:
            reg = replace(reg, reuse=True)
        if i is None:
            return Part((), lambda: reg, lambda o: (), {})
        return Part((i,), lambda v: replace(reg, index=v), lambda o: (o.index,), {})

    def const_part(self, const: Const) -> Part:
        slots: list[tuple[str, int]] = []
        if isinstance(const.bank, Reg):
            bank = self.register(const.bank)
        else:
            bank = self.integer(const.bank)
        if bank is not None:
            slots.append(("bank", bank))
        base = self.register(const.base) if const.base is not None else None
        if base is not None:
            slots.append(("base", base))
        offset = self.integer(const.offset)
        if offset is not None:
            slots.append(("offset", offset))
        names = [name for name, _ in slots]

        def make(*values: int) -> Const:
            changes: dict[str, Any] = {}
            for name, v in zip(names, values, strict=True):
                old = getattr(const, name)
                changes[name] = replace(old, index=v) if isinstance(old, Reg) else v
            return replace(const, **changes)

        def read(o: Const) -> tuple[int, ...]:
            got = [getattr(o, name) for name in names]
            return tuple(g.index if isinstance(g, Reg) else g for g in got)

        return Part(tuple(i for _, i in slots), make, read, {})

    def mem_part(self, mem: Mem, position: int) -> Part:
        slots: list[tuple[int, int]] = []
        for k, reg in enumerate(mem.parts):
            i = self.register(reg)
            if i is not None:
                slots.append((k, i))
                if i in self.bits:
                    self.reuse_at.append((position, k, self.bits[i]))
        if mem.descriptor is not None and (i := self.register(mem.descriptor)) is not None:
            slots.append((-1, i))
        if (i := self.integer(mem.offset)) is not None:
            slots.append((-2, i))
        reused = {k for k, i in slots if i in self.reused}
        mem = replace(mem, parts=tuple(replace(r, reuse=True) if k in reused else r for k, r in enumerate(mem.parts)))
        places = [k for k, _ in slots]

        def make(*values: int) -> Mem:
            parts = list(mem.parts)
            descriptor, offset = mem.descriptor, mem.offset
            for k, v in zip(places, values, strict=True):
                if k >= 0:
                    parts[k] = replace(parts[k], index=v)
                elif k == -1:
                    assert descriptor is not None
                    descriptor = replace(descriptor, index=v)
                else:
                    offset = v
            return replace(mem, parts=tuple(parts), descriptor=descriptor, offset=offset)

        def read(o: Mem) -> tuple[int, ...]:
            return tuple(
                o.parts[k].index if k >= 0 else o.descriptor.index if k == -1 and o.descriptor is not None else o.offset for k in places
            )

        return Part(tuple(i for _, i in slots), make, read, {})


def read_target(target: Target) -> tuple[int]:
    if isinstance(target.to, str):
        raise SassError(f"label '{target.to}' has no offset yet")
    return (target.to,)


class Opcode:
    """The forms of one 13-bit opcode, what of a word decides its shape, and the shapes met so far by that key."""

    def __init__(self, forms: list[Form]) -> None:
        self.forms = forms
        self.shapes: dict[Any, Shape] = {}
        self.numbers: dict[Any, int] = {}
        self.specials: list[tuple[Field, Feature]] = []
        mask = reuse = 0
        seen = set()
        for form in forms:
            mask |= form.feature_mask()
            reuse |= sum(1 << b for b in form.reuse)
            for g in form.groups:
                for f in g.features:
                    if f.bit < 0:
                        name = (form.fields[f.field].bits, f.power, tuple(f.cases.items()))
                        if name not in seen:
                            seen.add(name)
                            self.specials.append((form.fields[f.field], f))
        self.mask = mask
        self.reuse = reuse

    def key(self, word: int) -> tuple[Any, ...]:
        return (
            word & self.mask,
            word & self.reuse if (word >> 109) & 1 else 0,
            *[feature.case(field.raw(word)) for field, feature in self.specials],
        )
