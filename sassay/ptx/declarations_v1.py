"""Directives and declarations of PTX: at the top of a module and inside bodies."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from sassay.ptx.ast import TYPE_BITS, FloatOperand, Function, IntOperand, Prototype, Register, Variable
from sassay.ptx.cursor import is_name

if TYPE_CHECKING:
    from sassay.ptx.parser import Parser

SPACES = {".global": "global", ".shared": "shared", ".local": "local", ".const": "const", ".param": "param"}
LINKAGES = {".extern": "extern", ".visible": "visible", ".weak": "weak", ".common": "common"}
DIMENSIONS = {".maxntid", ".reqntid", ".reqnctapercluster"}
COUNTS = {".maxnreg", ".minnctapersm", ".maxnctapersm", ".maxclusterrank", ".abi_preserve", ".abi_preserve_control", ".minperctamemory"}
FLAGS = {".noreturn", ".explicitcluster", ".blocksareclusters", ".unique"}


def top_level(parser: Parser) -> None:
    """One declaration or directive of the module."""
    cursor, module = parser.cursor, parser.result
    token = cursor.tokens[cursor.i]
    if token == ".version":
        cursor.i += 1
        _version(parser)
    elif token == ".target":
        cursor.i += 1
        words = [cursor.name("a target")]
        while cursor.accept(","):
            words.append(cursor.name("a target option"))
        module.target, module.target_options = words[0], tuple(words[1:])
    elif token == ".address_size":
        cursor.i += 1
        module.address_size = cursor.integer()
        if module.address_size != 64:
            raise cursor.error("only 64-bit addresses are supported", cursor.i - 1)
    elif token == ".file":
        _file(parser)
    elif token == ".loc":
        cursor.i += 1
        parser.line_mark()
    elif token.startswith(".section"):
        cursor.i += 1
        name, _, body = token[len(".section") :].partition("{")
        module.sections.setdefault(name.split("//")[0].strip(), []).extend(body[:-1].splitlines())
    elif token == ".pragma":
        cursor.i += 1
        module.pragmas = (*module.pragmas, parser.pragma().text)
    elif token == ".alias":
        cursor.i += 1
        alias = cursor.name()
        cursor.expect(",")
        module.aliases[alias] = cursor.name()
        cursor.expect(";")
    elif token == ".language":
        cursor.i += 1
        cursor.string()
        cursor.accept(";")
    elif token == ";":
        cursor.i += 1
    else:
        _definition(parser)


def _version(parser: Parser) -> None:
    cursor = parser.cursor
    token = cursor.tokens[cursor.i]
    major, _, minor = token.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise cursor.unexpected("a version such as 8.7")
    parser.result.version = (int(major), int(minor))
    cursor.i += 1


def _file(parser: Parser) -> None:
    cursor = parser.cursor
    cursor.i += 1
    index = cursor.integer()
    parser.result.files[index] = cursor.string()
    while cursor.accept(","):
        cursor.integer()


def _definition(parser: Parser) -> None:
    """[linkage] .entry, .func or a variable."""
    cursor = parser.cursor
    linkage = ""
    while cursor.tokens[cursor.i] in LINKAGES:
        linkage = LINKAGES[cursor.tokens[cursor.i]]
        cursor.i += 1
    token = cursor.tokens[cursor.i]
    if token in (".entry", ".func"):
        _function(parser, linkage)
    elif token in SPACES:
        for variable in variables(parser, linkage):
            parser.result.variables.append(variable)
    else:
        raise cursor.unexpected("a declaration")


# functions


def _function(parser: Parser, linkage: str) -> None:
    cursor = parser.cursor
    location = cursor.location()
    is_entry = cursor.tokens[cursor.i] == ".entry"
    cursor.i += 1
    while cursor.tokens[cursor.i] == ".attribute":
        _attribute(parser)
    directives: dict[str, tuple[int, ...]] = {}
    returns = _parameters(parser) if not is_entry and cursor.tokens[cursor.i] == "(" else []
    at = cursor.i
    name = cursor.name("a function name")
    params = _parameters(parser) if cursor.tokens[cursor.i] == "(" else []
    pragmas = _function_directives(parser, directives)
    known = parser.globals.names.get(name)
    function = known if isinstance(known, Function) else None
    if function is not None and function.body is not None and cursor.tokens[cursor.i] == "{":
        raise cursor.error(f"function '{name}' is defined twice", at)
    if known is not None and function is None:
        raise cursor.error(f"'{name}' is defined twice", at)
    if function is None:
        function = Function(name, is_entry)
        parser.globals.names[name] = function
        parser.result.functions.append(function)
    function.returns, function.params, function.location = tuple(returns), tuple(params), location
    function.linkage = linkage or function.linkage
    function.directives = {**function.directives, **directives}
    function.pragmas = (*function.pragmas, *pragmas)
    if cursor.accept(";"):
        return
    function.registers = []
    for variable in (*returns, *params):
        if variable.space == "reg":
            register = Register(variable.name, variable.type, len(function.registers), variable.location)
            function.registers.append(register)
    parser.body(function, [*returns, *params])


def _function_directives(parser: Parser, directives: dict[str, tuple[int, ...]]) -> list[str]:
    cursor = parser.cursor
    pragmas: list[str] = []
    while True:
        token = cursor.tokens[cursor.i]
        if token in DIMENSIONS:
            cursor.i += 1
            numbers = [cursor.integer()]
            while cursor.accept(","):
                numbers.append(cursor.integer())
            directives[token[1:]] = (*numbers, *(1,) * (3 - len(numbers)))
        elif token in COUNTS:
            cursor.i += 1
            directives[token[1:]] = (cursor.integer(),)
        elif token in FLAGS:
            cursor.i += 1
            directives[token[1:]] = ()
        elif token == ".pragma":
            cursor.i += 1
            pragmas.append(parser.pragma().text)
        elif token == ".attribute":
            _attribute(parser)
        else:
            return pragmas


def _attribute(parser: Parser) -> list[str]:
    cursor = parser.cursor
    cursor.expect(".attribute")
    cursor.expect("(")
    words = []
    while not cursor.accept(")"):
        words.append(cursor.tokens[cursor.i])
        if not words[-1]:
            raise cursor.unexpected("')'")
        cursor.i += 1
    return words


def _parameters(parser: Parser) -> list[Variable]:
    cursor = parser.cursor
    cursor.expect("(")
    found: list[Variable] = []
    while not cursor.accept(")"):
        if found:
            cursor.expect(",")
        found.append(_parameter(parser))
    return found


def _parameter(parser: Parser) -> Variable:
    cursor = parser.cursor
    token = cursor.tokens[cursor.i]
    if token not in (".param", ".reg"):
        raise cursor.unexpected(".param or .reg")
    cursor.i += 1
    align, vector, type_ = _shape(parser)
    pointer_space, pointer_align = "", 0
    if cursor.accept(".ptr"):
        pointer_space = "generic"
        if cursor.tokens[cursor.i] in SPACES:
            pointer_space = SPACES[cursor.tokens[cursor.i]]
            cursor.i += 1
        pointer_align = cursor.integer() if cursor.accept(".align") else 1
    location = cursor.location()
    name = cursor.name("a parameter name") if is_name(cursor.tokens[cursor.i]) or cursor.tokens[cursor.i] == "_" else "_"
    dims = _dimensions(parser)
    size = _size(type_, vector, dims)
    space = "param" if token == ".param" else "reg"
    return Variable(
        name, space, type_, size, align or max(1, TYPE_BITS[type_] // 8) * vector, vector, dims, location=location,
        pointer_space=pointer_space, pointer_align=pointer_align,
    )  # fmt: skip


# variables and registers


def _shape(parser: Parser) -> tuple[int, int, str]:
    """[.align n] [.v2 or .v4] .type, in any order of the first two."""
    cursor = parser.cursor
    align, vector = 0, 1
    while True:
        token = cursor.tokens[cursor.i]
        if token == ".align":
            cursor.i += 1
            align = cursor.integer("an alignment")
            if align < 1 or align & (align - 1):
                raise cursor.error(f"alignment {align} is not a power of two", cursor.i - 1)
        elif token in (".v2", ".v4", ".v8"):
            cursor.i += 1
            vector = int(token[2:])
        elif token[:1] == "." and token[1:] in TYPE_BITS:
            cursor.i += 1
            return align, vector, token[1:]
        else:
            raise cursor.unexpected("a type")


def _dimensions(parser: Parser) -> tuple[int, ...]:
    cursor = parser.cursor
    dims: list[int] = []
    while cursor.accept("["):
        if cursor.accept("]"):
            dims.append(0)
            continue
        dims.append(cursor.integer("an array size"))
        if dims[-1] < 0:
            raise cursor.error("negative array size", cursor.i - 1)
        cursor.expect("]")
    return tuple(dims)


def _size(type_: str, vector: int, dims: tuple[int, ...]) -> int:
    size = max(1, TYPE_BITS[type_] // 8) * vector
    for d in dims:
        size *= d
    return size


def variables(parser: Parser, linkage: str) -> list[Variable]:
    """`.space [attributes] .type name[dims] [= init], ... ;`, entered in the scope."""
    cursor = parser.cursor
    space = SPACES[cursor.tokens[cursor.i]]
    cursor.i += 1
    attributes = tuple(_attribute(parser)) if cursor.tokens[cursor.i] == ".attribute" else ()
    if cursor.tokens[cursor.i].startswith("[") and space == "const":
        raise cursor.unexpected("a type")
    align, vector, type_ = _shape(parser)
    found: list[Variable] = []
    while True:
        at = cursor.i
        location = cursor.location()
        name = cursor.name("a variable name")
        names = _repeat(parser, name)
        dims = _dimensions(parser)
        init: bytes | None = None
        relocations: tuple[tuple[int, str, int, str], ...] = ()
        if cursor.accept("="):
            unit = max(1, TYPE_BITS[type_] // 8)
            image, fixups = _initialiser(parser, type_, unit)
            if dims and dims[0] == 0:
                dims = (len(image) // max(1, _size(type_, vector, dims[1:])), *dims[1:])
            size = _size(type_, vector, dims)
            if len(image) > size:
                raise cursor.error(f"'{name}' has more initial values than elements", at)
            init, relocations = bytes(image) + bytes(size - len(image)), tuple(fixups)
        natural = max(1, TYPE_BITS[type_] // 8) * vector
        for each in names:
            variable = Variable(
                each, space, type_, _size(type_, vector, dims), align or natural, vector, dims, linkage, init, relocations,
                attributes=attributes, location=location,
            )  # fmt: skip
            parser.declare(each, variable, at)
            found.append(variable)
        if not cursor.accept(","):
            break
    cursor.expect(";")
    return found


def _repeat(parser: Parser, name: str) -> list[str]:
    """`name<n>` declares name0 .. name(n-1)."""
    cursor = parser.cursor
    if not cursor.accept("<"):
        return [name]
    count = cursor.tokens[cursor.i]
    if not count.isdigit():
        raise cursor.unexpected("a count")
    cursor.i += 1
    cursor.expect(">")
    return [f"{name}{i}" for i in range(int(count))]


def _initialiser(parser: Parser, type_: str, unit: int) -> tuple[bytearray, list[tuple[int, str, int, str]]]:
    """The bytes of an initialiser and the addresses inside it."""
    cursor = parser.cursor
    image = bytearray()
    fixups: list[tuple[int, str, int, str]] = []
    depth = 0
    while True:
        while cursor.accept("{"):
            depth += 1
        token = cursor.tokens[cursor.i]
        if depth and token == "}":
            pass
        elif is_name(token) and token != "WARP_SZ":
            fixups.append((len(image), *_address(parser)))
            image += bytes(unit)
        else:
            image += _encode(parser, cursor.constant(), type_, unit)
        while depth and cursor.accept("}"):
            depth -= 1
        if depth == 0:
            return image, fixups
        cursor.expect(",")


def _address(parser: Parser) -> tuple[str, int, str]:
    """`symbol+offset` or `generic(symbol)+offset`: symbol, addend, kind."""
    cursor = parser.cursor
    name = cursor.name()
    kind = ""
    if name == "generic" and cursor.accept("("):
        kind = "generic"
        name = cursor.name("a variable")
        cursor.expect(")")
    if parser.scope.find(name) is None:
        raise cursor.error(f"unknown symbol '{name}'", cursor.i - 1)
    offset = 0
    if cursor.tokens[cursor.i] in ("+", "-"):
        sign = 1 if cursor.tokens[cursor.i] == "+" else -1
        cursor.i += 1
        offset = sign * cursor.integer("an offset")
    return name, offset, kind


def _encode(parser: Parser, value: IntOperand | FloatOperand, type_: str, unit: int) -> bytes:
    if isinstance(value, FloatOperand):
        if type_ not in ("f16", "f32", "f64", "b32", "b64"):
            raise parser.cursor.error(f"floating-point value for .{type_}", parser.cursor.i - 1)
        if unit == 8:
            bits = value.bits if value.double else struct.unpack("<Q", struct.pack("<d", _number(value)))[0]
            return int(bits).to_bytes(8, "little")
        return _narrow(value, unit)
    number = value.value
    if type_ in ("f32", "f64", "f16"):
        return struct.pack({4: "<f", 8: "<d", 2: "<e"}[unit], float(number))
    return (number & ((1 << (8 * unit)) - 1)).to_bytes(unit, "little")


def _number(value: FloatOperand) -> float:
    return float(struct.unpack("<d" if value.double else "<f", value.bits.to_bytes(8 if value.double else 4, "little"))[0])


def _narrow(value: FloatOperand, unit: int) -> bytes:
    if unit == 4 and not value.double:
        return value.bits.to_bytes(4, "little")
    return struct.pack("<f" if unit == 4 else "<e", _number(value))


# inside bodies


def in_body(parser: Parser) -> None:
    """A directive inside a function."""
    cursor, function = parser.cursor, parser.function
    assert function is not None and function.body is not None
    token = cursor.tokens[cursor.i]
    if token == ".reg":
        cursor.i += 1
        _registers(parser, function)
    elif token == ".loc":
        cursor.i += 1
        function.body.append(parser.line_mark())
    elif token == ".pragma":
        cursor.i += 1
        function.body.append(parser.pragma())
    elif token == ".file":
        _file(parser)
    elif token in SPACES or token in LINKAGES:
        linkage = ""
        while cursor.tokens[cursor.i] in LINKAGES:
            linkage = LINKAGES[cursor.tokens[cursor.i]]
            cursor.i += 1
        if cursor.tokens[cursor.i] not in SPACES:
            raise cursor.unexpected("a state space")
        function.variables.extend(variables(parser, linkage))
    elif token.startswith(".section"):
        cursor.i += 1
    else:
        raise cursor.unexpected("a directive that may stand in a body")


def _registers(parser: Parser, function: Function) -> None:
    cursor = parser.cursor
    _, vector, type_ = _shape(parser)
    while True:
        at = cursor.i
        location = cursor.location()
        names = _repeat(parser, cursor.name("a register name"))
        for name in names:
            register = Register(name, type_, len(function.registers), location, vector)
            function.registers.append(register)
            parser.declare(name, register, at)
        if not cursor.accept(","):
            break
    cursor.expect(";")


def target_list(parser: Parser, name: str) -> None:
    """`name: .branchtargets a, b;`, `.calltargets`, or `.callprototype (ret) _ (params);`."""
    cursor, function = parser.cursor, parser.function
    assert function is not None
    kind = cursor.tokens[cursor.i]
    cursor.i += 1
    if kind == ".callprototype":
        returns = _parameters(parser) if cursor.tokens[cursor.i] == "(" else []
        cursor.i += 1
        params = _parameters(parser) if cursor.tokens[cursor.i] == "(" else []
        directives: dict[str, tuple[int, ...]] = {}
        _function_directives(parser, directives)
        function.prototypes[name] = Prototype(tuple(returns), tuple(params), "noreturn" in directives)
        cursor.expect(";")
        return
    found = []
    while True:
        at = cursor.i
        word = cursor.name("a label")
        if kind == ".branchtargets":
            label = parser.scope.label(word)
            if label is None:
                raise cursor.error(f"unknown label '{word}'", at)
            word = label
        found.append(word)
        if not cursor.accept(","):
            break
    cursor.expect(";")
    (function.branch_targets if kind == ".branchtargets" else function.call_targets)[name] = tuple(found)
