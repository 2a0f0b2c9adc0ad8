"""Entries of the instruction table and how modifiers and operands are held against them.

A row of a chapter is `(name, modifiers, operands, needs, rules)`, all short texts:

- modifiers: `*` (any, perhaps after one of the words before it: forms whose spelling ptxas 13.5 did not let us find), `sat?` (optional
  word), `approx` (required word), `type=u32,s32` (one of), `rnd?=rn,rz` (optional). ptxas takes modifiers in any order as long as those
  that can fill several slots come in the order of the slots (measured: `add.s32.sat`), and so does `bind`.
- operands: `kind=type`, `?` at the end for optional ones, `?slot` for those that stand when the slot is filled. Kinds: d register
  written; w same, may be wider than the type; s register or immediate read; x same, may be wider; r register read; n as s, may be
  negated; m as s, or a symbol or special register; i integer immediate; p predicate read, may be negated; q predicate written, perhaps a
  pair; D register written, perhaps with a predicate after `|`; a address; B composite address or address; V registers in braces or one
  register; l label; c texture or sampler by name or handle; any. A leading `_` allows the sink. The type is a PTX type, the name of a
  slot, or `2*slot` (twice as wide); `@vec` asks for the number of elements that slot names.
- needs: `8.6 sm_100+` floors separated by `;`, each perhaps after `condition :`. A target is `sm_90+` (that and newer), `sm_90a`, `sm_100f` (family).
- rules: `condition > condition`; a condition is slots joined by `&`: `sat`, `-sat`, `type=u32,s32`.

Type rules are measured with ptxas 13.5: bit-size types take any register of the width, integers any integer or bit-size register of
the width, floats their own or the bit-size register of the width.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sassay.ptx.ast import TYPE_BITS
from sassay.ptx.instructions.targets import FAMILIES, number

Signature = str | tuple["Signature", ...]
Row = tuple[str, str, str, str, str]

_PACKED = {
    "f16x2": {"f16x2", "b32"}, "bf16": {"b16"}, "bf16x2": {"b32"}, "f32x2": {"b64"}, "tf32": {"b32", "f32"}, "pred": {"pred"},
}  # fmt: skip
_REGISTERS = {
    1: {"pred"}, 8: {"b8", "u8", "s8"}, 16: {"b16", "u16", "s16", "f16"}, 32: {"b32", "u32", "s32", "f32", "f16x2"},
    64: {"b64", "u64", "s64", "f64"}, 128: {"b128"},
}  # fmt: skip
_FLOATS = {"F": frozenset({"f32", "f64", "b32", "tf32", ""}), "D": frozenset({"f32", "f64", "b64", ""})}
_NO_INTEGERS = frozenset({"f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "f32x2"})
_COUNTS = {"v2": 2, "v4": 4, "v8": 8}
_TWICE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64", "b16": "b32", "b32": "b64", "u8": "u16", "s8": "s16", "b64": "b128"}
_SPACES = frozenset({"global", "shared", "local", "const", "param"})
_SPACED = frozenset({"ld", "st", "atom", "red"})


def _bits(type_: str) -> int:
    return 16 if type_ in ("s2f6x2", "ue5m3x2") else TYPE_BITS.get(type_, 32)


def _accepting(type_: str) -> frozenset[str]:
    """Register types an operand of that type takes."""
    if type_ in _PACKED:
        return frozenset(_PACKED[type_])
    bits = _bits(type_)
    same = _REGISTERS.get(bits if bits >= 8 else 32, set())
    if type_ in ("f16", "f32", "f64"):
        return frozenset({type_, f"b{bits}"})
    if type_[0] in "us" and type_.isalnum() and "x" not in type_:
        return frozenset(name for name in same if name[0] != "f")
    return frozenset(same) if type_[0] == "b" or "16x" in type_ or "8x4" in type_ else frozenset({f"b{bits}"})


_TAKES: dict[str, frozenset[str]] = {}


def takes(type_: str, register: str, wide: bool) -> bool:
    """Whether a register of one type may stand where the instruction has another ("" takes any)."""
    if not type_:
        return True
    found = _TAKES.get(type_)
    if found is None:
        found = _TAKES[type_] = _accepting(type_)
    if register in found:
        return True
    if not wide or register == "pred" or TYPE_BITS[register] <= _bits(type_):
        return False
    return register[0] == "b" or type_[0] == "b" or (type_[0] in "us" and register[0] in "us")


def runs_on(target: str, wanted: str) -> bool:
    """Whether a `.target` fulfils one alternative of a floor."""
    chip = number(target)
    if wanted.endswith("+"):
        return chip >= int(wanted[3:-1])
    if wanted.endswith("f"):
        return target[-1] in "af" and chip in FAMILIES.get(wanted, ())
    return target == wanted


@dataclass(frozen=True, slots=True)
class Slot:
    name: str
    words: frozenset[str]
    optional: bool


@dataclass(frozen=True, slots=True)
class Operand:
    kind: str
    type: str
    count: str
    optional: bool
    sink: bool
    condition: str  # slot that must be filled for the operand to stand


@dataclass(frozen=True, slots=True)
class Need:
    condition: str
    version: tuple[int, int]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an entry does not fit. `stage` grows with how far the match came."""

    stage: int
    kind: str
    text: str


class Entry:
    """One syntax shape."""

    __slots__ = ("name", "needs", "open", "operands", "rules", "slots", "words")

    def __init__(self, row: Row) -> None:
        self.name = row[0]
        self.open = row[1].endswith("*")
        self.slots = tuple(_slot(word) for word in row[1].rstrip("*").split())
        self.operands = tuple(_operand(word) for word in row[2].split())
        self.needs = tuple(_need(text) for text in row[3].split(";") if text.strip())
        self.rules = tuple(tuple(part.strip() for part in text.split(">")) for text in row[4].split(";") if text.strip())
        self.words = frozenset(word for slot in self.slots for word in slot.words)

    def bind(self, modifiers: tuple[str, ...]) -> dict[str, str] | Problem:
        """Slot values, or the first modifier that has no place."""
        values: dict[str, str] = {}
        if self.open and not self.slots:
            return values
        if self.open:
            first = modifiers[0] if modifiers else ""
            return values if first in self.words else Problem(0, "unknown modifier", f"unknown modifier '.{first}'")
        for at, modifier in enumerate(modifiers):
            for slot in self.slots:
                if modifier in slot.words and slot.name not in values:
                    values[slot.name] = modifier
                    break
            else:
                text = f"modifier '.{modifier}' does not belong here" if modifier in self.words else f"unknown modifier '.{modifier}'"
                return Problem(at, "unknown modifier", text)
        for slot in self.slots:
            if not slot.optional and slot.name not in values:
                wanted = ", ".join(sorted("." + word for word in slot.words)[:12])
                return Problem(len(modifiers), "missing modifier", f"expected one of {wanted}")
        for condition, wanted in self.rules:
            if holds(condition, values) and not holds(wanted, values):
                return Problem(50, "modifier combination", f"modifiers do not go together: {condition} needs {wanted}")
        return values

    def fit(self, values: dict[str, str], operands: tuple[Signature, ...]) -> Problem | None:
        """Hold operands against the entry."""
        wanting = [operand for operand in self.operands if not operand.condition or operand.condition in values]
        least = sum(not operand.optional for operand in wanting)
        if not least <= len(operands) <= len(wanting):
            wanted = str(least) if least == len(wanting) else f"{least} to {len(wanting)}"
            return Problem(60, "operand count", f"expected {wanted} operands, found {len(operands)}")
        skip = len(wanting) - len(operands)
        place = 0
        for at, operand in enumerate(wanting):
            if skip and operand.optional:
                rest = len(operands) - place
                if rest <= sum(not later.optional for later in wanting[at + 1 :]):
                    skip -= 1
                    continue
            if place == len(operands):
                break
            type_ = _type(operand.type, values)
            count = _COUNTS.get(values.get(operand.count, ""), 0)
            problem = match(operand, type_, count, operands[place])
            if problem:
                text = f"operand {place + 1}: expected {describe(operand, type_, count)}, found {spell(operands[place])}"
                return Problem(61 + place, problem, text)
            place += 1
        return self._space(values, operands)

    def _space(self, values: dict[str, str], operands: tuple[Signature, ...]) -> Problem | None:
        """A variable as address must stand in the state space the instruction names."""
        wanted = values.get("space", "").partition("::")[0]
        if not wanted or self.name.partition(".")[0] not in _SPACED:
            return None
        for operand in operands:
            if isinstance(operand, str) and operand[1:] in _SPACES and operand[0] == "[" and operand[1:] != wanted:
                return Problem(90, "state space", f"address: expected a .{wanted} variable, found a .{operand[1:]} one")
        return None

    def missing(self, values: dict[str, str], version: tuple[int, int], target: str) -> Problem | None:
        """The floor a use of this entry breaks, if any."""
        for need in self.needs:
            if need.condition and not holds(need.condition, values):
                continue
            if version < need.version:
                return Problem(98, "version", f"needs PTX version {need.version[0]}.{need.version[1]} or newer, found {version[0]}.{version[1]}")
            if need.targets and not any(runs_on(target, wanted) for wanted in need.targets):
                return Problem(99, "target", f"needs target {' or '.join(need.targets)}, found {target}")
        return None


def table(text: str) -> dict[str, tuple[Row, ...]]:
    """Rows by opcode from lines `name | modifiers | operands | needs | rules`; `$NAME = words` lines name what later lines repeat."""
    names: dict[str, str] = {}
    rows: dict[str, list[Row]] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("$"):
            name, _, value = line.partition(" = ")
            names[name] = _replace(value, names)
            continue
        parts = [part.strip() for part in _replace(line, names).split("|")]
        parts += [""] * (5 - len(parts))
        rows.setdefault(parts[0].partition(".")[0], []).append((parts[0], parts[1], parts[2], parts[3], parts[4]))
    return {opcode: tuple(found) for opcode, found in rows.items()}


def _replace(text: str, names: dict[str, str]) -> str:
    return re.sub(r"\$\w+", lambda found: names[found[0]], text) if "$" in text else text


def holds(condition: str, values: dict[str, str]) -> bool:
    for part in condition.split("&"):
        part = part.strip()
        if part[:1] == "-":
            if part[1:] in values:
                return False
            continue
        name, _, wanted = part.partition("=")
        found = values.get(name)
        if found is None or (wanted and found not in wanted.split(",")):
            return False
    return True


def _slot(text: str) -> Slot:
    name, _, words = text.partition("=")
    optional = name.endswith("?")
    name = name.rstrip("?")
    return Slot(name, frozenset(words.split(",")) if words else frozenset({name}), optional)


def _operand(text: str) -> Operand:
    text, mark, condition = text.partition("?")
    optional, sink = bool(mark) and not condition, text[0] == "_"
    kind, _, type_ = text.lstrip("_").partition("=")
    type_, _, count = type_.partition("@")
    return Operand(kind, type_, count, optional, sink, condition)


def _need(text: str) -> Need:
    condition, colon, floor = text.rpartition(" : ")
    version, *targets = floor.split()
    major, _, minor = version.partition(".")
    return Need(condition.strip() if colon else "", (int(major), int(minor)), tuple(targets))


def _type(text: str, values: dict[str, str]) -> str:
    if text.startswith("2*"):
        base = values.get(text[2:], text[2:])
        return _TWICE.get(base, base)
    return values.get(text, text)


def match(operand: Operand, type_: str, count: int, found: Signature) -> str:
    """The kind of problem an operand has ("" for none)."""
    kind = operand.kind
    if kind == "n":
        kind = "s"
        found = found.lstrip("!") if isinstance(found, str) else found
    if kind == "any":
        return ""
    if found == "_":
        return "" if operand.sink or kind in "qD" else "operand kind"
    if isinstance(found, tuple):
        return _match_tuple(operand, type_, count, found)
    if kind == "B" or kind == "a":
        return "operand kind" if found[0] != "[" else "type mismatch" if found in ("[f32", "[f64", "[f16", "[f16x2", "[pred") else ""
    if kind == "l":
        return "" if found in ("L", "&") else "operand kind"
    if count and found[-2:] != f"v{count}":
        return "operand kind"
    if kind == "v":
        return "operand kind"
    if kind == "c":
        return "" if found == "&" or found == "b64" or found == "u64" else "operand kind"
    first = found[0]
    if first == "[" or found == "L":
        return "operand kind"
    if kind in "dwqDV" and (first in "iFDS&" or first == "!"):
        return "operand kind"
    return _match_scalar(kind, type_, found)


def _match_scalar(kind: str, type_: str, found: str) -> str:
    if kind in "pq":
        plain = found.lstrip("!")
        return "" if plain == "pred" or (kind == "p" and found == "i") else "type mismatch"
    if found == "i":
        return "" if kind in "sxmi" and type_ not in _NO_INTEGERS else "operand kind" if kind not in "sxm" else "type mismatch"
    if kind == "i":
        return "operand kind"
    if found in ("F", "D"):
        return "" if kind in "sxm" and type_ in _FLOATS[found] else "type mismatch"
    if found[0] in "&S":
        return "" if kind == "m" else "operand kind"
    if found[0] == "!":
        return "operand kind" if found != "!pred" or type_ != "pred" else ""
    base = found.partition("v")[0].partition(".")[0]
    if "." in found:
        return ""
    return "" if takes(type_, base, kind in "wx") else "type mismatch"


def _match_tuple(operand: Operand, type_: str, count: int, found: tuple[Signature, ...]) -> str:
    kind = operand.kind
    if found[0] == "|":
        if kind not in "qD":
            return "operand kind"
        second = found[2] in ("pred", "_")
        first = found[1] == "_" or (found[1] == "pred" if kind == "q" else isinstance(found[1], str) and takes(type_, found[1], False))
        return "" if first and second else "type mismatch"
    if found[0] == "[]":
        return "" if kind == "B" else "operand kind"
    if kind not in "vVdwsxrm" or found[0] != "{}":
        return "operand kind"
    elements = found[1:]
    if kind in "Vvm":
        return _elements(type_ if kind == "V" else "", elements, False)
    if len(elements) != (count or 1):
        return "operand kind"
    return _elements(type_, elements, kind in "wx")


def _elements(type_: str, elements: tuple[Signature, ...], wide: bool) -> str:
    for element in elements:
        if not isinstance(element, str) or element in ("L", "&") or element[0] == "[":
            return "operand kind"
        if element in ("_", "i", "F", "D") or not type_ or element[0] == "S":
            continue
        if not takes(type_, element.lstrip("!").partition(".")[0], wide):
            return "type mismatch"
    return ""


_KINDS = {
    "d": "a register", "w": "a register", "s": "a register or constant", "n": "a register or constant", "x": "a register or constant",
    "r": "a register", "i": "an integer constant",
    "m": "a register, constant, symbol or special register", "p": "a predicate", "q": "a predicate register", "D": "a register", "a": "an address",
    "B": "an address", "V": "registers in braces", "v": "registers in braces", "l": "a label",
    "c": "a texture, surface or sampler", "any": "an operand",
}  # fmt: skip


def describe(operand: Operand, type_: str, count: int) -> str:
    """What an operand should be, for messages."""
    text = _KINDS[operand.kind]
    if count:
        text = f"{count} elements in braces"
    return f"{text} of type .{type_}" if type_ else text


_SPELLINGS = {
    "i": "an integer constant", "F": "a floating-point constant", "D": "a floating-point constant", "&": "a symbol", "L": "a label", "_": "'_'",
}  # fmt: skip


def spell(found: Signature) -> str:
    """What an operand is, for messages."""
    if isinstance(found, tuple):
        return {"|": "a pair", "{}": f"{len(found) - 1} elements in braces", "[]": "a composite address", "()": "a list"}[str(found[0])]
    if found in _SPELLINGS:
        return _SPELLINGS[found]
    if found[0] == "[":
        return "an address"
    if found[0] == "S":
        return "a special register"
    return f"a .{found.lstrip('!')} register"
