"""PTX text -> `ast.Module`: declarations, scopes, statements, operands. What an instruction may be is the instruction table's business."""

from __future__ import annotations

import re
from typing import Any

from sassay.errors import ErrorList, Location, PtxError
from sassay.ptx import declarations_v1 as declarations
from sassay.ptx.ast import (
    TYPE_BITS,
    AddressOperand,
    BracketOperand,
    FloatOperand,
    Function,
    Guard,
    Instruction,
    IntOperand,
    Label,
    LabelOperand,
    LineMark,
    ListOperand,
    Module,
    PairOperand,
    PragmaMark,
    PtxOperand,
    Register,
    RegOperand,
    SinkOperand,
    SpecialOperand,
    SymbolOperand,
    Variable,
    VectorOperand,
)
from sassay.ptx.cursor import Cursor, is_name
from sassay.ptx.lexer import Source
from sassay.ptx.special import SPECIALS

MAX_ERRORS = 20
_BEFORE_LABEL = frozenset({";", "{", "}", ":"})
"""What a label may follow, besides the column number of a .loc."""
_COMPONENTS = frozenset({"x", "y", "z", "w", "r", "g", "b", "a"})


def parse(text: str, file: str = "<ptx>", target: str | None = None) -> Module:
    """Parse a module. All errors found are raised together (ErrorList), or the only one (PtxError)."""
    parser = Parser(Source(text, file))
    module = parser.module()
    if target is not None and not module.target:
        module.target = target
    if parser.cursor.errors:
        raise parser.cursor.errors[0] if len(parser.cursor.errors) == 1 else ErrorList(list(parser.cursor.errors))
    return module


class Scope:
    """Names of one pair of braces: registers, variables and labels (by their name unique in the function)."""

    __slots__ = ("labels", "names", "parent")

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.names: dict[str, Any] = {}
        self.labels: dict[str, str] = {}

    def find(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def label(self, name: str) -> str | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None


class Parser:
    """One module's parse: the cursor, the module so far, and the function and scope being read."""

    def __init__(self, source: Source) -> None:
        self.cursor = Cursor(source)
        self.globals = Scope(None)
        self.scope = self.globals
        self.result = Module((0, 0), "", (), 64)
        self.function: Function | None = None
        self._labels: set[str] = set()
        self._operands: dict[str, RegOperand] = {}

    # module

    def module(self) -> Module:
        cursor = self.cursor
        while cursor.tokens[cursor.i]:
            start = cursor.i
            try:
                declarations.top_level(self)
            except PtxError as error:
                self._note(error)
                self.scope, self.function = self.globals, None
                self._skip_to_declaration(start)
        if not self.result.version[0]:
            cursor.errors.insert(0, PtxError("missing .version directive", cursor.location(0)))
        return self.result

    def _note(self, error: PtxError) -> None:
        self.cursor.errors.append(error)
        if len(self.cursor.errors) >= MAX_ERRORS:
            raise ErrorList(list(self.cursor.errors))

    def _skip_to_declaration(self, start: int) -> None:
        cursor = self.cursor
        cursor.i = max(cursor.i, start + 1)
        while cursor.tokens[cursor.i] and cursor.tokens[cursor.i] not in (".visible", ".entry", ".func", ".global", ".extern", ".weak"):
            cursor.i += 1

    # bodies

    def body(self, function: Function, parameters: list[Variable]) -> None:
        """Read `{ ... }` into the function."""
        self.function = function
        function.body = []
        self._labels = set()
        outer = self.scope
        self.scope = Scope(outer)
        for parameter in parameters:
            self.scope.names[parameter.name] = parameter
        self.block()
        self.scope = outer
        self.function = None

    def block(self) -> None:
        """Statements between braces, with a scope of their own."""
        cursor = self.cursor
        cursor.expect("{")
        outer = self.scope
        self.scope = Scope(outer)
        saved, self._operands = self._operands, {}
        self._collect_labels()
        tokens = cursor.tokens
        while tokens[cursor.i] != "}":
            if not tokens[cursor.i]:
                raise cursor.unexpected("'}'")
            start = cursor.i
            try:
                self.statement()
            except PtxError as error:
                self._note(error)
                self._skip_statement(start)
        cursor.i += 1
        self.scope, self._operands = outer, saved

    def _skip_statement(self, start: int) -> None:
        cursor, tokens = self.cursor, self.cursor.tokens
        cursor.i = max(cursor.i, start)
        while tokens[cursor.i] not in (";", "}", ""):
            cursor.i += 1
        if tokens[cursor.i] == ";":
            cursor.i += 1

    def _collect_labels(self) -> None:
        """Labels of this scope, so that branches may name them before they stand."""
        tokens, i, depth = self.cursor.tokens, self.cursor.i, 0
        while True:
            token = tokens[i]
            if token == "{":
                depth += 1
            elif token == "}":
                if depth == 0:
                    return
                depth -= 1
            elif not token:
                return
            elif token == ":" and depth == 0 and is_name(tokens[i - 1]) and (tokens[i - 2] in _BEFORE_LABEL or tokens[i - 2].isdigit()):
                name = tokens[i - 1]
                if name in self.scope.labels:
                    self._note(self.cursor.error(f"label '{name}' is defined twice", i - 1))
                unique, number = name, 1
                while unique in self._labels:
                    unique, number = f"{name}.{number}", number + 1
                self._labels.add(unique)
                self.scope.labels[name] = unique
            i += 1

    def statement(self) -> None:
        cursor = self.cursor
        token = cursor.tokens[cursor.i]
        assert self.function is not None and self.function.body is not None
        if token == "{":
            self.block()
        elif token == ";":
            cursor.i += 1
        elif token[0] == ".":
            declarations.in_body(self)
        elif token != "@" and cursor.tokens[cursor.i + 1] == ":":
            self._label(token)
        else:
            self.function.body.append(self.instruction())

    def _label(self, token: str) -> None:
        cursor = self.cursor
        location = cursor.location()
        cursor.i += 2
        assert self.function is not None and self.function.body is not None
        name = self.scope.labels.get(token, token)
        if cursor.tokens[cursor.i] in (".branchtargets", ".calltargets", ".callprototype"):
            declarations.target_list(self, name)
            return
        self.function.body.append(Label(name, location))

    def line_mark(self) -> LineMark:
        """`.loc file line column [, function_name label [+ offset], inlined_at file line column]`; the directive has been read."""
        cursor = self.cursor
        file, line, column = cursor.integer(), cursor.integer(), cursor.integer()
        name, inlined = "", None
        while cursor.accept(","):
            word = cursor.name("function_name or inlined_at")
            if word == "function_name":
                name = cursor.tokens[cursor.i]
                cursor.i += 1
                if cursor.accept("+"):
                    name += f"+{cursor.integer()}"
            elif word == "inlined_at":
                inlined = (cursor.integer(), cursor.integer(), cursor.integer())
            else:
                raise cursor.error(f"unknown .loc attribute '{word}'", cursor.i - 1)
        return LineMark(file, line, column, name, inlined)

    def pragma(self) -> PragmaMark:
        texts = [self.cursor.string()]
        while self.cursor.accept(","):
            texts.append(self.cursor.string())
        self.cursor.expect(";")
        return PragmaMark("; ".join(texts))

    # instructions

    def instruction(self) -> Instruction:
        cursor = self.cursor
        guard = self._guard() if cursor.tokens[cursor.i] == "@" else None
        token = cursor.tokens[cursor.i]
        location = cursor.location()
        if not is_name(token) or token[0] == "%":
            raise cursor.unexpected("an instruction")
        cursor.i += 1
        opcode, *modifiers = token.split(".")
        operands: list[PtxOperand] = []
        if not cursor.accept(";"):
            operands.append(self.operand())
            while not cursor.accept(";"):
                cursor.expect(",")
                operands.append(self.operand())
        return Instruction(opcode, tuple(modifiers), tuple(operands), guard, location, opcode)

    def _guard(self) -> Guard:
        cursor = self.cursor
        cursor.i += 1
        negated = cursor.accept("!")
        at = cursor.i
        name = cursor.name("a predicate")
        found = self.scope.find(name)
        if not isinstance(found, Register) or found.type != "pred":
            raise cursor.error(f"'{name}' is not a predicate register", at)
        return Guard(found, negated)

    def operand(self) -> PtxOperand:
        cursor = self.cursor
        token = cursor.tokens[cursor.i]
        known = self._operands.get(token)
        if known is not None:
            cursor.i += 1
            return self._after_register(known) if cursor.tokens[cursor.i] == "|" else known
        if token == "[":
            return self._brackets()
        if token == "{":
            return self._vector()
        if token == "(":
            return self._list() if self._is_list() else cursor.constant()
        if token == "_":
            cursor.i += 1
            return self._after_register(SinkOperand()) if cursor.tokens[cursor.i] == "|" else SinkOperand()
        if token in ("!", "-") and is_name(cursor.tokens[cursor.i + 1]):
            cursor.i += 1
            inner = self.operand()
            if not isinstance(inner, RegOperand):
                raise cursor.error(f"'{token}' needs a register", cursor.i - 1)
            return RegOperand(inner.register, not inner.negated, inner.component)
        if is_name(token) and token != "WARP_SZ":
            return self._named(token)
        return cursor.constant()

    def _after_register(self, first: PtxOperand) -> PairOperand:
        self.cursor.expect("|")
        second = self.operand()
        return PairOperand(None if isinstance(first, SinkOperand) else first, None if isinstance(second, SinkOperand) else second)

    def _named(self, token: str) -> PtxOperand:
        cursor = self.cursor
        cursor.i += 1
        base, _, component = token.partition(".")
        found = self.scope.find(token) if not component else self.scope.find(base)
        if isinstance(found, Register):
            operand = RegOperand(found, False, component)
            if not component:
                self._operands[token] = operand
            return self._after_register(operand) if cursor.tokens[cursor.i] == "|" else operand
        if token[0] == "%" and base[1:] in SPECIALS:
            return self._special(base[1:], component)
        if isinstance(found, Variable | Function):
            return SymbolOperand(found, self._offset())
        label = self.scope.label(token)
        if label is not None:
            return LabelOperand(label)
        raise cursor.error(f"unknown symbol '{token}'", cursor.i - 1)

    def _special(self, name: str, component: str) -> SpecialOperand:
        special = SPECIALS[name]
        if component and (not special.vector or component not in _COMPONENTS):
            raise self.cursor.error(f"%{name} has no component .{component}", self.cursor.i - 1)
        if special.vector and not component:
            component = ""
        return SpecialOperand(name, component)

    def _offset(self) -> int:
        cursor = self.cursor
        sign = cursor.tokens[cursor.i]
        if sign not in ("+", "-"):
            return 0
        cursor.i += 1
        value = cursor.integer("an offset")
        return value if sign == "+" else -value

    def _vector(self) -> VectorOperand:
        cursor = self.cursor
        cursor.expect("{")
        elements: list[PtxOperand | None] = []
        while True:
            inner = self.operand()
            elements.append(None if isinstance(inner, SinkOperand) else inner)
            if cursor.accept("}"):
                return VectorOperand(tuple(elements))
            cursor.expect(",")

    def _is_list(self) -> bool:
        """Whether parentheses here hold call arguments rather than a constant expression."""
        cursor = self.cursor
        following = cursor.tokens[cursor.i + 1]
        return following == ")" or (is_name(following) and following != "WARP_SZ") or following in ("_",) or self._in_call()

    def _in_call(self) -> bool:
        i = self.cursor.i
        tokens = self.cursor.tokens
        while i and tokens[i - 1] not in (";", "{", "}", ":"):
            i -= 1
        return any(re.match(r"call\b", t) for t in tokens[i : i + 4])

    def _list(self) -> ListOperand:
        cursor = self.cursor
        cursor.expect("(")
        elements: list[PtxOperand] = []
        if cursor.accept(")"):
            return ListOperand(())
        while True:
            elements.append(self.operand())
            if cursor.accept(")"):
                return ListOperand(tuple(elements))
            cursor.expect(",")

    def _brackets(self) -> AddressOperand | BracketOperand:
        """`[base+offset]`, or several operands between brackets."""
        cursor = self.cursor
        cursor.expect("[")
        at = cursor.i
        token = cursor.tokens[cursor.i]
        if not is_name(token) or token == "WARP_SZ":
            if token == "{":
                return self._composite([])
            offset = cursor.integer("an address")
            cursor.expect("]")
            return AddressOperand(None, offset)
        first = self.operand()
        base: Register | Variable | None
        if isinstance(first, RegOperand) and not first.negated and not first.component:
            base, offset = first.register, self._offset()
        elif isinstance(first, SymbolOperand) and isinstance(first.symbol, Variable):
            base, offset = first.symbol, first.offset
        else:
            raise cursor.error(f"'{token}' cannot be an address", at)
        if cursor.tokens[cursor.i] == ",":
            cursor.i += 1
            return self._composite([first if not offset else AddressOperand(base, offset)])
        cursor.expect("]")
        return AddressOperand(base, offset)

    def _composite(self, elements: list[PtxOperand]) -> BracketOperand:
        cursor = self.cursor
        while True:
            elements.append(self.operand())
            if cursor.accept("]"):
                return BracketOperand(tuple(elements))
            cursor.expect(",")

    # shared with declarations

    def declare(self, name: str, thing: Register | Variable | Function, index: int) -> None:
        """Enter a name in the current scope."""
        known = self.scope.names.get(name)
        if known is not None and not isinstance(thing, Function):
            if isinstance(known, Variable) and isinstance(thing, Variable) and "extern" in (known.linkage, thing.linkage):
                self.scope.names[name] = known if thing.linkage == "extern" else thing
                return
            raise self.cursor.error(f"'{name}' is defined twice", index)
        self._operands.pop(name, None)
        self.scope.names[name] = thing

    def location(self) -> Location:
        return self.cursor.location()


def type_name(parser: Parser) -> str:
    """A `.type` token."""
    token = parser.cursor.tokens[parser.cursor.i]
    if token[:1] != "." or token[1:] not in TYPE_BITS:
        raise parser.cursor.unexpected("a type")
    parser.cursor.i += 1
    return token[1:]


def number(parser: Parser) -> IntOperand | FloatOperand:
    return parser.cursor.constant()
