"""Function bodies: statements and operands, with names resolved and braces flattened."""

from __future__ import annotations

from sassay.errors import PtxError
from sassay.ptx.ast import (
    AddressOperand,
    BracketOperand,
    Function,
    Guard,
    Instruction,
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
    Statement,
    SymbolOperand,
    Variable,
    VectorOperand,
)  # fmt: skip
from sassay.ptx.cursor import Cursor, is_name
from sassay.ptx.declarations import LINKAGES, prototype, registers, variables
from sassay.ptx.instructions.checker import Checker
from sassay.ptx.scope import FunctionScope, Scope
from sassay.ptx.special import SPECIALS

_SPACES = frozenset({".global", ".shared", ".local", ".const", ".param"})
_BRANCHES = frozenset({"bra", "brx"})
MAX_ERRORS = 100


def line_mark(cursor: Cursor) -> LineMark:
    """`.loc 1 20 3, function_name $L__info_string0, inlined_at 1 30 5` with the cursor after `.loc`."""
    place = [cursor.integer_in_angles() for _ in range(3)]
    name, inlined = "", None
    while cursor.accept(","):
        word = cursor.name("function_name or inlined_at")
        if word == "function_name":
            name = cursor.name("a label")
            if cursor.accept("+"):
                name += f"+{cursor.integer_in_angles()}"
        elif word == "inlined_at":
            inlined = (cursor.integer_in_angles(), cursor.integer_in_angles(), cursor.integer_in_angles())
        else:
            cursor.i -= 1
            raise cursor.unexpected("function_name or inlined_at")
    return LineMark(place[0], place[1], place[2], name, inlined)


class BodyParser:
    """Reads one body. `module_names` are the names that stand outside."""

    def __init__(self, cursor: Cursor, module: Module, function: Function, scope: FunctionScope, checker: Checker) -> None:
        self.cursor = cursor
        self.module = module
        self.function = function
        self.scope = scope
        self.body: list[Statement] = []
        self.references: list[tuple[int, int, str, Scope, int]] = []  # statement, operand, label, scope, token
        self.lists: list[tuple[dict[str, tuple[str, ...]], str, tuple[str, ...], Scope, int]] = []
        self.label_names: set[str] = set()
        self.checker = checker
        self.mnemonics: dict[str, tuple[str, tuple[str, ...]]] = {}

    def parse(self) -> list[Statement]:
        """The statements between braces, with the cursor after the `{`."""
        cursor, tokens, scope = self.cursor, self.cursor.tokens, self.scope
        depth = 1
        while depth:
            token = tokens[cursor.i]
            try:
                if token == "{":
                    cursor.i += 1
                    scope.push()
                    depth += 1
                elif token == "}":
                    cursor.i += 1
                    depth -= 1
                    if depth:
                        scope.pop()
                elif token == "":
                    raise cursor.unexpected("'}'")
                else:
                    self._statement(token)
            except PtxError as error:
                cursor.errors.append(error)
                if tokens[cursor.i] == "" or len(cursor.errors) >= MAX_ERRORS:
                    raise
                self._recover()
        self._resolve_labels()
        return self.body

    def _recover(self) -> None:
        """Go on after the next `;`, or at a brace."""
        cursor = self.cursor
        while cursor.tokens[cursor.i] not in (";", "{", "}", ""):
            cursor.i += 1
        cursor.accept(";")

    def _statement(self, token: str) -> None:
        cursor = self.cursor
        first = token[0]
        if first == "@" or is_name(token):
            if cursor.tokens[cursor.i + 1] == ":" and first != "@":
                self._label(token)
            else:
                self._instruction()
        elif first == ".":
            self._directive(token)
        elif first == ";":
            cursor.i += 1
        else:
            raise cursor.unexpected("an instruction or a directive")

    def _label(self, name: str) -> None:
        cursor = self.cursor
        at = cursor.i
        if "." in name:
            raise cursor.unexpected("a label")
        cursor.i += 2
        token = cursor.tokens[cursor.i]
        scope = self.scope.current
        if token == ".branchtargets":
            cursor.i += 1
            self.lists.append((self.function.branch_targets, name, self._names(), scope, at))
        elif token == ".calltargets":
            cursor.i += 1
            self.function.call_targets[name] = self._names()
        elif token == ".callprototype":
            cursor.i += 1
            self.function.prototypes[name] = prototype(cursor)
        else:
            if name in scope.labels or name in scope.names:
                raise cursor.error(f"duplicate definition of '{name}'", at)
            unique, n = name, 1
            while unique in self.label_names:
                unique, n = f"{name}.{n}", n + 1
            self.label_names.add(unique)
            scope.labels[name] = unique
            self.body.append(Label(unique, cursor.location(at)))

    def _names(self) -> tuple[str, ...]:
        cursor = self.cursor
        names = [cursor.name("a label")]
        while cursor.accept(","):
            names.append(cursor.name("a label"))
        cursor.expect(";")
        return tuple(names)

    def _directive(self, token: str) -> None:
        cursor = self.cursor
        at = cursor.i
        cursor.i += 1
        if token == ".loc":
            self.body.append(line_mark(cursor))
        elif token == ".reg":
            registers(cursor, self.scope)
        elif token == ".pragma":
            self.body.append(PragmaMark(cursor.string()))
            while cursor.accept(","):
                self.body.append(PragmaMark(cursor.string()))
            cursor.expect(";")
        elif token in _SPACES or token in LINKAGES:
            linkage = ""
            if token in LINKAGES:
                linkage, token = token[1:], cursor.tokens[cursor.i]
                if token not in _SPACES:
                    raise cursor.unexpected("a state space")
                cursor.i += 1
            for variable in variables(cursor, token[1:], linkage, self._visible_names()):
                assert variable.location is not None
                self.scope.declare(variable.name, variable, variable.location)
                self.function.variables.append(variable)
        else:
            cursor.i = at
            raise cursor.error(f"unknown directive '{token}' in a function body")

    def _visible_names(self) -> dict[str, Register | Variable | Function]:
        chain = []
        scope: Scope | None = self.scope.current
        while scope is not None:
            chain.append(scope.names)
            scope = scope.parent
        merged: dict[str, Register | Variable | Function] = {}
        for names in reversed(chain):
            merged.update(names)
        return {name: item for name, item in merged.items() if not isinstance(item, Register)}

    def _instruction(self) -> None:
        cursor, tokens = self.cursor, self.cursor.tokens
        start = cursor.i
        guard = None
        if tokens[start] == "@":
            cursor.i += 1
            guard = self._guard()
        at = cursor.i
        word = tokens[at]
        if not is_name(word):
            raise cursor.unexpected("an instruction")
        cursor.i += 1
        while tokens[cursor.i].startswith("."):  # blanks may stand before a dot
            word += tokens[cursor.i]
            cursor.i += 1
        pieces = self.mnemonics.get(word)
        if pieces is None:
            parts = word.split(".")
            pieces = self.mnemonics[word] = (parts[0], tuple(parts[1:]))
        opcode, modifiers = pieces
        operands: list[PtxOperand] = []
        if opcode == "call":
            operands = self._call()
        elif opcode in _BRANCHES:
            operands = self._branch()
        elif tokens[cursor.i] != ";":
            operand = self._operand
            operands.append(operand())
            while tokens[cursor.i] == ",":
                cursor.i += 1
                operands.append(operand())
        if tokens[cursor.i] != ";":
            raise cursor.unexpected("',' or ';'")
        cursor.i += 1
        location = cursor.source.location(at)
        entry = self.checker.check(opcode, modifiers, operands, word)
        if not isinstance(entry, str):  # the statement was read whole: go on after it
            cursor.errors.append(PtxError(f"'{word}': {entry.text}", location))
            if len(cursor.errors) >= MAX_ERRORS:
                raise cursor.errors.pop()
            return
        self.body.append(Instruction(opcode, modifiers, tuple(operands), guard, location, entry))

    def _guard(self) -> Guard:
        cursor = self.cursor
        negated = cursor.accept("!")
        at = cursor.i
        name = cursor.name("a predicate register")
        item = self.scope.find(name)
        if not isinstance(item, Register) or item.type != "pred":
            raise cursor.error(f"'{name}' is not a predicate register", at)
        return Guard(item, negated)

    def _refer(self, operand_index: int) -> LabelOperand:
        cursor = self.cursor
        at = cursor.i
        name = cursor.name("a label")
        self.references.append((len(self.body), operand_index, name, self.scope.current, at))
        return LabelOperand(name)

    def _branch(self) -> list[PtxOperand]:
        """`bra L` and `brx.idx index, list`."""
        cursor = self.cursor
        if cursor.tokens[cursor.i + 1] == ",":
            index = self._operand()
            cursor.expect(",")
            at = cursor.i
            name = cursor.name("a list of branch targets")
            if name not in self.function.branch_targets and all(name != row[1] for row in self.lists):
                raise cursor.error(f"unknown list of branch targets '{name}'", at)
            return [index, LabelOperand(name)]
        return [self._refer(0)]

    def _call(self) -> list[PtxOperand]:
        """As written: results (a list) when given, the callee, arguments (a list) when given, prototype or targets when given."""
        cursor = self.cursor
        operands: list[PtxOperand] = []
        if cursor.tokens[cursor.i] == "(":
            operands.append(self._list())
            cursor.expect(",")
        at = cursor.i
        callee = self._simple()
        if not (isinstance(callee, SymbolOperand) and isinstance(callee.symbol, Function)) and not isinstance(callee, RegOperand):
            raise cursor.error("a call needs a function or a register", at)
        operands.append(callee)
        signed = False
        if cursor.accept(","):
            if cursor.tokens[cursor.i] != "(":
                operands.append(self._signature())
                signed = True
            else:
                operands.append(self._list())
                if cursor.accept(","):
                    operands.append(self._signature())
                    signed = True
        if isinstance(callee, RegOperand) and not signed:
            raise cursor.error("an indirect call needs a prototype or a list of targets")
        return operands

    def _signature(self) -> LabelOperand:
        cursor = self.cursor
        at = cursor.i
        name = cursor.name("a prototype or a list of targets")
        if name not in self.function.prototypes and name not in self.function.call_targets:
            raise cursor.error(f"unknown prototype or list of targets '{name}'", at)
        return LabelOperand(name)

    def _list(self) -> ListOperand:
        cursor = self.cursor
        cursor.expect("(")
        elements: list[PtxOperand] = []
        if not cursor.accept(")"):
            elements.append(self._operand())
            while cursor.accept(","):
                elements.append(self._operand())
            cursor.expect(")")
        return ListOperand(tuple(elements))

    def _operand(self) -> PtxOperand:
        cursor, tokens = self.cursor, self.cursor.tokens
        token = tokens[cursor.i]
        cached = self.scope.current.cache.get(token)
        first: PtxOperand
        if cached is not None and tokens[cursor.i + 1] in ",;":
            cursor.i += 1
            return cached
        if token == "{":
            first = self._vector()
        elif token == "[":
            first = self._address()
        else:
            first = self._simple()
        if tokens[cursor.i] == "|" and not isinstance(first, (VectorOperand, AddressOperand)):
            cursor.i += 1
            second = self._simple()
            return PairOperand(None if isinstance(first, SinkOperand) else first, None if isinstance(second, SinkOperand) else second)
        return first

    def _simple(self) -> PtxOperand:
        """A register, symbol, special register, immediate or `_`."""
        cursor, tokens = self.cursor, self.cursor.tokens
        token = tokens[cursor.i]
        if token in ("!", "-") and is_name(tokens[cursor.i + 1]):
            cursor.i += 1
            at = cursor.i
            inner = self._simple()
            if not isinstance(inner, RegOperand):
                raise cursor.error(f"'{token}' needs a register", at)
            return RegOperand(inner.register, True, inner.component)
        if not is_name(token) or token == "WARP_SZ":
            return cursor.constant()
        if token == "_":
            cursor.i += 1
            return SinkOperand()
        cached = self.scope.current.cache.get(token)
        if cached is None:
            cached = self._named(token)
            self.scope.current.cache[token] = cached
        cursor.i += 1
        if isinstance(cached, SymbolOperand):
            offset = self._offset()
            if offset:
                return SymbolOperand(cached.symbol, offset)
        return cached

    def _named(self, token: str) -> PtxOperand:
        name, _, component = token.partition(".")
        item = self.scope.find(name)
        if isinstance(item, Register):
            return RegOperand(item, False, component)
        if item is None and name[0] == "%":
            special = SPECIALS.get(name[1:])
            if special is not None:
                if component and (not special.vector or component not in ("x", "y", "z", "w")):
                    raise self.cursor.error(f"special register '{name}' has no component '.{component}'")
                return SpecialOperand(name[1:], component)
        if item is None or component:
            raise self.cursor.error(f"unknown symbol '{token}'")
        return SymbolOperand(item)

    def _offset(self) -> int:
        cursor = self.cursor
        total = 0
        while cursor.tokens[cursor.i] in ("+", "-"):
            sign = 1 if cursor.tokens[cursor.i] == "+" else -1
            cursor.i += 1
            total += sign * cursor.constant_term("an offset", cursor.i)
        return total

    def _vector(self) -> VectorOperand:
        cursor = self.cursor
        cursor.i += 1
        elements: list[PtxOperand | None] = []
        while True:
            element = self._operand()
            elements.append(None if isinstance(element, SinkOperand) else element)
            if not cursor.accept(","):
                break
        cursor.expect("}")
        return VectorOperand(tuple(elements))

    def _address(self) -> AddressOperand | BracketOperand:
        """`[base+offset]`, or several elements of a composite address."""
        cursor = self.cursor
        cursor.i += 1
        elements = [self._element()]
        while cursor.accept(","):
            elements.append(self._element())
        cursor.expect("]")
        if len(elements) > 1:
            return BracketOperand(tuple(elements))
        only = elements[0]
        if isinstance(only, AddressOperand):
            return only
        if isinstance(only, RegOperand) and not only.negated and not only.component:
            return AddressOperand(only.register)
        if isinstance(only, SymbolOperand) and isinstance(only.symbol, Variable):
            return AddressOperand(only.symbol, only.offset)
        if isinstance(only, VectorOperand):
            return BracketOperand((only,))
        raise cursor.error("not an address", cursor.i - 1)

    def _element(self) -> PtxOperand:
        cursor = self.cursor
        token = cursor.tokens[cursor.i]
        if token == "{":
            return self._vector()
        if not is_name(token) or token == "WARP_SZ":
            return AddressOperand(None, cursor.integer("an address"))
        base = self._simple()
        if isinstance(base, RegOperand):
            if cursor.tokens[cursor.i] in ("+", "-"):
                return AddressOperand(base.register, self._offset())
            return base
        if isinstance(base, SymbolOperand) and cursor.accept("["):
            index = cursor.integer("an index")
            cursor.expect("]")
            symbol = base.symbol
            if not isinstance(symbol, Variable) or not symbol.dims:
                raise cursor.error("only an array can be indexed")
            stride = symbol.size // symbol.dims[0] if symbol.dims[0] else 0
            return SymbolOperand(symbol, base.offset + index * stride)
        return base

    def _resolve_labels(self) -> None:
        cursor = self.cursor
        for statement, operand, name, scope, at in self.references:
            unique = self._find_label(name, scope)
            if unique is None:
                cursor.errors.append(cursor.error(f"undefined label '{name}'", at))
            elif unique != name:
                instruction = self.body[statement]
                assert isinstance(instruction, Instruction)
                operands = list(instruction.operands)
                operands[operand] = LabelOperand(unique)
                instruction.operands = tuple(operands)
        for table, name, labels, scope, at in self.lists:
            found = []
            for label in labels:
                unique = self._find_label(label, scope)
                if unique is None:
                    cursor.errors.append(cursor.error(f"undefined label '{label}'", at))
                else:
                    found.append(unique)
            table[name] = tuple(found)

    def _find_label(self, name: str, scope: Scope | None) -> str | None:
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None
