"""Declarations: registers, variables with their initialisers, parameters, prototypes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from sassay.errors import PtxError
from sassay.ptx.ast import TYPE_BITS, FloatOperand, Function, Prototype, Variable
from sassay.ptx.cursor import Cursor, is_name
from sassay.ptx.scope import FunctionScope, Named

LINKAGES = frozenset({".extern", ".visible", ".weak", ".common"})
SPACES = frozenset({".global", ".shared", ".local", ".const", ".param", ".tex"})
OPAQUE = frozenset({"texref", "samplerref", "surfref"})
SCALARS = frozenset("b8 u8 s8 b16 u16 s16 f16 b32 u32 s32 f32 b64 u64 s64 f64 b128 f16x2 bf16 bf16x2 pred texref samplerref surfref".split())
REGISTER_TYPES = SCALARS - OPAQUE
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
_POINTER_SPACES = frozenset({".const", ".global", ".local", ".shared", ".generic", ".shared::cta", ".shared::cluster"})
_BYTES = frozenset(map(str, range(256)))
MAX_SIZE = 1 << 44


@dataclass(slots=True)
class Traits:
    """What stands before the names of a declaration."""

    type: str = ""
    vector: int = 1
    align: int = 0
    pointer: bool = False
    pointer_space: str = ""
    pointer_align: int = 0
    attributes: list[str] = field(default_factory=list)


def align_value(cursor: Cursor) -> int:
    at = cursor.i
    value = cursor.integer("an alignment")
    if value <= 0 or value & (value - 1) or value > 1 << 20:
        raise cursor.error(f"alignment must be a power of two, not {value}", at)
    return value


def traits(cursor: Cursor, types: frozenset[str]) -> Traits:
    """`.align 16 .v4 .f32`, `.u64 .ptr .global .align 8`, in any order the language allows."""
    found = Traits()
    tokens = cursor.tokens
    while tokens[cursor.i].startswith("."):
        token = tokens[cursor.i]
        word = token[1:]
        if token == ".align":
            cursor.i += 1
            if found.pointer:
                found.pointer_align = align_value(cursor)
            else:
                found.align = align_value(cursor)
        elif token in _VECTORS:
            cursor.i += 1
            found.vector = _VECTORS[token]
        elif token == ".attribute":
            cursor.i += 1
            found.attributes += attribute_list(cursor)
        elif token == ".ptr":
            if not found.type or found.pointer:
                raise cursor.unexpected("a type before .ptr")
            cursor.i += 1
            found.pointer, found.pointer_space = True, "generic"
        elif found.pointer and token in _POINTER_SPACES:
            cursor.i += 1
            found.pointer_space = word
        elif word in types and not found.type:
            cursor.i += 1
            found.type = word
        else:
            raise cursor.unexpected("a type")
    if not found.type:
        raise cursor.unexpected("a type")
    return found


def attribute_list(cursor: Cursor) -> list[str]:
    """`(.managed, .unified(1, 2))`."""
    cursor.expect("(")
    words: list[str] = []
    while True:
        token = cursor.tokens[cursor.i]
        if token not in (".managed", ".unified"):
            raise cursor.unexpected(".managed or .unified")
        cursor.i += 1
        if token == ".unified" and cursor.accept("("):
            first = cursor.integer()
            cursor.expect(",")
            second = cursor.integer()
            cursor.expect(")")
            words.append(f"unified({first},{second})")
        else:
            words.append(token[1:])
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return words


def registers(cursor: Cursor, scope: FunctionScope) -> None:
    """`.reg .b32 %r<12>, a, b;` with the cursor after `.reg`."""
    trait = traits(cursor, REGISTER_TYPES)
    if trait.type == "pred" and trait.vector > 1:
        raise cursor.error("vectors of predicates are not allowed")
    while True:
        at = cursor.i
        name = cursor.name("a register name")
        if cursor.accept("<"):
            count = cursor.integer_in_angles()
            cursor.expect(">")
            scope.declare_range(name, count, trait.type, trait.vector, cursor.location(at))
        else:
            place = cursor.location(at)
            scope.declare(name, scope.register(name, trait.type, trait.vector, place), place)
        if not cursor.accept(","):
            break
    cursor.expect(";")


def dimensions(cursor: Cursor) -> tuple[tuple[int, ...], bool]:
    """`[4][8]`, and whether the first is left open (`[]`)."""
    dims: list[int] = []
    is_open = False
    while cursor.accept("["):
        if cursor.tokens[cursor.i] == "]":
            if dims or is_open:
                raise cursor.error("only the first dimension of an array may be left open")
            is_open = True
            dims.append(0)
        else:
            at = cursor.i
            size = cursor.integer("an array size")
            if size < 0 or size >= MAX_SIZE:
                raise cursor.error(f"bad array size {size}", at)
            dims.append(size)
        cursor.expect("]")
    return tuple(dims), is_open


def variables(cursor: Cursor, space: str, linkage: str, names: dict[str, Named]) -> list[Variable]:
    """`.global .align 4 .u32 a[2] = {1, 2}, b;` with the cursor after the state space."""
    before = attribute_list(cursor) if cursor.accept(".attribute") else []
    trait = traits(cursor, SCALARS - {"pred"})
    trait.attributes = before + trait.attributes
    made: list[Variable] = []
    while True:
        made.append(_variable(cursor, space, linkage, trait, names))
        if not cursor.accept(","):
            break
    cursor.expect(";")
    return made


def _variable(cursor: Cursor, space: str, linkage: str, trait: Traits, names: dict[str, Named]) -> Variable:
    at = cursor.i
    name = cursor.name("a variable name")
    element = TYPE_BITS[trait.type] // 8 * trait.vector
    if cursor.accept("<"):
        raise cursor.error("a range of variables is allowed for registers only", at)
    dims, is_open = dimensions(cursor)
    size = element
    for dim in dims:
        size *= dim
    variable = Variable(name, space, trait.type, size, trait.align or element, trait.vector, dims, linkage, location=cursor.location(at))
    variable.attributes = tuple(trait.attributes)
    if size >= MAX_SIZE:
        raise cursor.error(f"variable '{name}' is too large", at)
    if cursor.accept("="):
        if space not in ("global", "const"):
            raise cursor.error(f"a .{space} variable cannot be initialised", at)
        if linkage == "extern":
            raise cursor.error("an .extern variable cannot be initialised", at)
        if trait.type in OPAQUE:
            _sampler_fields(cursor, variable)
        else:
            Initialiser(cursor, variable, is_open, names).read()
    elif is_open and linkage != "extern" and not (space == "shared" and linkage == "common"):
        raise cursor.error(f"array '{name}' needs a size", at)
    return variable


def _sampler_fields(cursor: Cursor, variable: Variable) -> None:
    """`{addr_mode_0 = wrap, filter_mode = linear}`; arrays of them in nested braces are kept as written."""
    cursor.expect("{")
    words: list[str] = []
    depth = 1
    while depth:
        token = cursor.tokens[cursor.i]
        if token in ("", ";"):
            raise cursor.unexpected("'}'")
        depth += (token == "{") - (token == "}")
        cursor.i += 1
        if depth:
            words.append(token)
    variable.attributes += ("init " + " ".join(words),)


class Initialiser:
    """Builds the initial image of a variable."""

    def __init__(self, cursor: Cursor, variable: Variable, is_open: bool, names: dict[str, Named]) -> None:
        self.cursor = cursor
        self.variable = variable
        self.is_open = is_open
        self.names = names
        self.element = TYPE_BITS[variable.type] // 8
        self.image = bytearray()
        self.relocations: list[tuple[int, str, int, str]] = []

    def read(self) -> None:
        variable = self.variable
        shape = list(variable.dims)
        if variable.vector > 1:
            shape.append(variable.vector)
        self._level(shape, variable.size if not self.is_open else 0)
        if self.is_open:
            outer = self.element
            for dim in shape[1:]:
                outer *= dim
            count = -(-len(self.image) // outer)
            self.image.extend(bytes(count * outer - len(self.image)))
            variable.dims = (count, *variable.dims[1:])
            variable.size = count * outer
        if len(self.image) > variable.size:
            raise self.cursor.error(f"too many initial values for '{variable.name}'")
        self.image.extend(bytes(variable.size - len(self.image)))
        variable.init = bytes(self.image)
        variable.relocations = tuple(self.relocations)

    def _level(self, shape: list[int], limit: int) -> None:
        """One brace level; a flat list may fill nested dimensions."""
        cursor = self.cursor
        if not cursor.accept("{"):
            self._value()
            return
        if not shape:
            self._value()
            cursor.expect("}")
            return
        start = len(self.image)
        inner = self.element
        for dim in shape[1:]:
            inner *= dim
        if cursor.accept("}"):
            return
        tokens, image, element, pack = cursor.tokens, self.image, self.element, self.variable.type[0] in "bus"
        while True:
            token = tokens[cursor.i]
            if pack and element == 1 and token in _BYTES and tokens[cursor.i + 1] in (",", "}"):
                image.append(int(token))
                cursor.i += 1
            elif token == "{":
                before = len(image)
                self._level(shape[1:], inner)
                image.extend(bytes(max(0, inner - (len(image) - before))))
            else:
                self._value()
            if tokens[cursor.i] == "," and tokens[cursor.i + 1] != "}":
                cursor.i += 1
                continue
            cursor.accept(",")
            cursor.expect("}")
            break
        if limit and len(image) - start > limit:
            raise cursor.error(f"too many initial values for '{self.variable.name}'")

    def _value(self) -> None:
        cursor = self.cursor
        token = cursor.tokens[cursor.i]
        if is_name(token) and token != "WARP_SZ":
            self._symbol(token)
            return
        at = cursor.i
        value = cursor.constant()
        if cursor.tokens[cursor.i] == "(" and not isinstance(value, FloatOperand):
            self._masked(value.value, at)
            return
        self.image += self._number(value.bits, value.double, at) if isinstance(value, FloatOperand) else self._integer(value.value, at)

    def _number(self, bits: int, double: bool, at: int) -> bytes:
        kind = self.variable.type
        if kind not in ("f64", "f32", "f16", "bf16"):
            if kind[0] in "bus" and TYPE_BITS[kind] == (64 if double else 32):
                return bits.to_bytes(self.element, "little")
            raise self.cursor.error(f"a floating-point value cannot initialise a .{kind} variable", at)
        value: float = struct.unpack("<d", struct.pack("<Q", bits))[0] if double else struct.unpack("<f", struct.pack("<I", bits))[0]
        if kind == "f64":
            return struct.pack("<Q", bits) if double else struct.pack("<d", value)
        if kind == "f32":
            return struct.pack("<I", bits if not double else round_to_f32(value))
        raise self.cursor.error(f"a .{kind} variable is initialised by integers of its bits", at)

    def _integer(self, value: int, at: int) -> bytes:
        kind = self.variable.type
        if kind in ("f64", "f32"):
            raise self.cursor.error(f"an integer cannot initialise a .{kind} variable", at)
        return (value & ((1 << 8 * self.element) - 1)).to_bytes(self.element, "little")

    def _target(self, name: str) -> None:
        item = self.names.get(name)
        if item is None:
            raise self.cursor.error(f"unknown symbol '{name}'")
        if isinstance(item, Variable) and item.space in ("param", "local"):
            raise self.cursor.error(f"the address of .{item.space} variable '{name}' is not a constant")

    def _symbol(self, token: str) -> None:
        """`name`, `name+4`, `generic(name)+4`."""
        cursor = self.cursor
        kind = ""
        cursor.i += 1
        if token == "generic" and cursor.accept("("):
            kind = "generic"
            token = cursor.name("a variable")
            addend = self._addend()
            cursor.expect(")")
        else:
            addend = 0
        cursor.i -= 1
        self._target(token)
        cursor.i += 1
        addend += self._addend()
        if self.element not in (4, 8):
            raise cursor.error(f"an address cannot initialise a .{self.variable.type} variable")
        self.relocations.append((len(self.image), token, addend, kind))
        self.image += bytes(self.element)

    def _addend(self) -> int:
        cursor = self.cursor
        total = 0
        while cursor.tokens[cursor.i] in ("+", "-"):
            sign = 1 if cursor.tokens[cursor.i] == "+" else -1
            cursor.i += 1
            token = cursor.i
            total += sign * (cursor.constant_term("an offset", token))
        return total

    def _masked(self, mask: int, at: int) -> None:
        """`0xff00(name)`: one byte of an address."""
        cursor = self.cursor
        cursor.expect("(")
        kind = f"mask:{mask:#x}"
        token = cursor.name("a variable")
        if token == "generic" and cursor.accept("("):
            kind += ":generic"
            token = cursor.name("a variable")
            addend = self._addend()
            cursor.expect(")")
        else:
            addend = self._addend()
        cursor.expect(")")
        self._target(token)
        shift = (mask & -mask).bit_length() - 1 if mask else 0
        if self.element != 1 or mask not in {0xFF << 8 * k for k in range(8)} or shift % 8:
            raise cursor.error("a mask of one byte is expected before '(' in the initialiser of a .b8/.u8 variable", at)
        self.relocations.append((len(self.image), token, addend, kind))
        self.image += bytes(1)


def round_to_f32(value: float) -> int:
    """Bits of the f32 nearest to a value; too large becomes infinity."""
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000


def parameter(cursor: Cursor, scope: FunctionScope | None, entry: bool) -> Variable:
    """One `.param .u64 .ptr .align 8 name` or, for functions, `.reg .b32 name`. A register parameter has the space "reg"."""
    space = cursor.tokens[cursor.i]
    if space not in (".param", ".reg") or (entry and space == ".reg"):
        raise cursor.unexpected("'.param'" if entry else "'.param' or '.reg'")
    cursor.i += 1
    trait = traits(cursor, REGISTER_TYPES if space == ".reg" else SCALARS)
    at = cursor.i
    name = cursor.name("a parameter name")
    element = TYPE_BITS[trait.type] // 8 * trait.vector
    dims, is_open = dimensions(cursor)
    size = element
    for dim in dims:
        size *= dim
    if is_open and entry:
        raise cursor.error(f"array parameter '{name}' needs a size", at)
    place = cursor.location(at)
    variable = Variable(name, space[1:], trait.type, size, trait.align or max(element, 1), trait.vector, dims, location=place)
    variable.attributes = tuple(trait.attributes)
    if trait.pointer:
        variable.pointer_space, variable.pointer_align = trait.pointer_space, trait.pointer_align or 4
    if name != "_" and scope is not None:
        item: Named = variable if space == ".param" else scope.register(name, trait.type, trait.vector, place)
        scope.declare(name, item, place)
    return variable


def parameters(cursor: Cursor, scope: FunctionScope | None, entry: bool = False) -> tuple[Variable, ...]:
    """A list in parentheses."""
    cursor.expect("(")
    made: list[Variable] = []
    if cursor.accept(")"):
        return ()
    while True:
        made.append(parameter(cursor, scope, entry))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(made)


def prototype(cursor: Cursor) -> Prototype:
    """`(.param .b32 _) _ (.param .b64 _);` with the cursor after `.callprototype`."""
    returns: tuple[Variable, ...] = ()
    if cursor.tokens[cursor.i] == "(":
        returns = parameters(cursor, None)
    cursor.expect("_")
    params = parameters(cursor, None) if cursor.tokens[cursor.i] == "(" else ()
    noreturn = False
    while cursor.tokens[cursor.i].startswith("."):
        token = cursor.tokens[cursor.i]
        cursor.i += 1
        if token == ".noreturn":
            noreturn = True
        elif token in (".abi_preserve", ".abi_preserve_control"):
            cursor.integer()
        else:
            cursor.i -= 1
            raise cursor.unexpected("';'")
    cursor.expect(";")
    return Prototype(returns, params, noreturn)


def merge_variable(old: Variable, new: Variable) -> None:
    """A second declaration of one variable: a definition completes an .extern one."""
    if old.space != new.space or old.type != new.type:
        raise PtxError(f"'{new.name}' was declared before with another type", new.location)
    if "extern" not in (old.linkage, new.linkage):
        raise PtxError(f"duplicate definition of '{new.name}'", new.location)
    if old.linkage == "extern":
        old.size, old.align, old.dims, old.linkage = new.size, new.align, new.dims, new.linkage
        old.init, old.relocations, old.attributes, old.location = new.init, new.relocations, new.attributes, new.location


def same_signature(old: Function, new: Function) -> bool:
    """Whether two declarations of a function agree in the shape of parameters and results."""

    def shape(items: tuple[Variable, ...]) -> list[tuple[str, str, int]]:
        return [(item.space, item.type, item.size) for item in items]

    return old.is_entry == new.is_entry and shape(old.params) == shape(new.params) and shape(old.returns) == shape(new.returns)
