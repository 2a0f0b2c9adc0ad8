"""PTX text -> `ptx.ast.Module`."""

from __future__ import annotations

import re

from sassay.errors import ErrorList, PtxError, SassayError
from sassay.ptx.ast import Function, Module, Variable
from sassay.ptx.body import MAX_ERRORS, BodyParser, line_mark
from sassay.ptx.cursor import Cursor
from sassay.ptx.declarations import LINKAGES, attribute_list, merge_variable, parameters, same_signature, variables
from sassay.ptx.instructions.checker import Checker
from sassay.ptx.instructions.targets import compile_problem, target_problem
from sassay.ptx.lexer import Source
from sassay.ptx.scope import FunctionScope, Named

_SPACES = frozenset({".global", ".shared", ".const", ".local", ".param"})
_COUNTS = {  # directive of a function -> most values
    ".maxntid": 3, ".reqntid": 3, ".reqnctapercluster": 3, ".maxnreg": 1, ".minnctapersm": 1, ".maxnctapersm": 1, ".maxclusterrank": 1,
    ".abi_preserve": 1, ".abi_preserve_control": 1, ".minperctamemory": 1,
}  # fmt: skip
_FLAGS = frozenset({".noreturn", ".explicitcluster", ".blocksareclusters"})
_OPTIONS = frozenset({"texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"})
NEWEST = (9, 5)
_LAST_MINOR = {1: 5, 2: 3, 3: 2, 4: 3, 5: 0, 6: 5, 7: 8, 8: 8, 9: 5}
"""The last minor version of each major one."""


def parse(text: str, file: str = "<ptx>", target: str | None = None) -> Module:
    """The module a PTX text spells. Raises a PtxError, or an ErrorList when there are several.

    `target` is the chip to compile for ("sm_90a"); it must be able to run what the text's own `.target` asks for.
    """
    parser = _ModuleParser(Cursor(Source(text, file)), target)
    try:
        module = parser.parse()
    except PtxError as error:
        if not any(error is known for known in parser.cursor.errors):
            parser.cursor.errors.append(error)
        module = None
    errors: list[SassayError] = [*sorted(parser.cursor.errors, key=_place)]
    if len(errors) == 1:
        raise errors[0]
    if errors or module is None:
        raise ErrorList(errors)
    return module


def _place(error: PtxError) -> tuple[int, int]:
    return (error.location.line, error.location.column) if error.location is not None else (0, 0)


class _ModuleParser:
    def __init__(self, cursor: Cursor, target: str | None) -> None:
        self.cursor = cursor
        self.target = target
        self.names: dict[str, Named] = {}
        self.module = Module((0, 0), "", (), 64)
        self.checker = Checker((0, 0), "")

    def parse(self) -> Module:
        cursor = self.cursor
        self._header()
        while cursor.tokens[cursor.i]:
            start = cursor.i
            try:
                self._item()
            except PtxError as error:
                if not any(error is known for known in cursor.errors):
                    cursor.errors.append(error)
                if len(cursor.errors) >= MAX_ERRORS or not cursor.tokens[cursor.i]:
                    break
                self._recover(start)
        return self.module

    def _recover(self, start: int) -> None:
        """After an error outside a body: go on after `;` or after the braces that open first."""
        cursor = self.cursor
        cursor.i = max(cursor.i, start + 1)
        depth = 0
        while token := cursor.tokens[cursor.i]:
            cursor.i += 1
            depth += (token == "{") - (token == "}")
            if depth <= 0 and token in (";", "}"):
                return

    def _header(self) -> None:
        cursor = self.cursor
        if not cursor.accept(".version"):
            raise cursor.unexpected("'.version'")
        token = cursor.tokens[cursor.i]
        found = re.fullmatch(r"(\d+)\.(\d+)", token)
        if found is None or len(token) > 10:
            raise cursor.unexpected("a version such as 8.7")
        self.module.version = (int(found[1]), int(found[2]))
        if self.module.version[1] > _LAST_MINOR.get(self.module.version[0], -1):
            raise cursor.error(f"PTX version {token} is not supported; the newest known is {NEWEST[0]}.{NEWEST[1]}")
        cursor.i += 1
        if not cursor.accept(".target"):
            raise cursor.unexpected("'.target'")
        options = []
        place = cursor.i
        while True:
            at = cursor.i
            word = cursor.name("a target")
            if re.fullmatch(r"sm_\d+[af]?", word) and not self.module.target:
                self.module.target = word
            elif word in _OPTIONS:
                options.append(word)
            else:
                raise cursor.error(f"unknown target '{word}'", at)
            if not cursor.accept(","):
                break
        if not self.module.target:
            raise cursor.error("'.target' names no sm_NN")
        problem = target_problem(self.module.target, self.module.version)
        if problem:
            raise cursor.error(problem, place)
        problem = compile_problem(self.module.target, self.target) if self.target else ""
        if problem:
            raise cursor.error(problem, place)
        self.module.target_options = tuple(options)
        self.checker = Checker(self.module.version, self.module.target)

    def _item(self) -> None:
        cursor = self.cursor
        token = cursor.tokens[cursor.i]
        if token.startswith(".section"):
            self._section(token)
            return
        if token == "@@":
            self._dwarf()
            return
        if not token.startswith("."):
            raise cursor.unexpected("a directive")
        cursor.i += 1
        if token == ".address_size":
            size = cursor.integer()
            if size not in (32, 64):
                raise cursor.error(f"address size {size} is neither 32 nor 64", cursor.i - 1)
            self.module.address_size = size
        elif token == ".file":
            self._file()
        elif token == ".pragma":
            self.module.pragmas += tuple(self._strings())
        elif token == ".alias":
            name = cursor.name()
            cursor.expect(",")
            self.module.aliases[name] = cursor.name()
            cursor.expect(";")
        elif token == ".loc":
            line_mark(cursor)
        else:
            self._declaration(token)

    def _strings(self) -> list[str]:
        found = [self.cursor.string()]
        while self.cursor.accept(","):
            found.append(self.cursor.string())
        self.cursor.expect(";")
        return found

    def _file(self) -> None:
        cursor = self.cursor
        index = cursor.integer_in_angles()
        self.module.files[index] = cursor.string()
        if cursor.accept(","):
            cursor.integer()
            cursor.expect(",")
            cursor.integer()

    def _section(self, token: str) -> None:
        cursor = self.cursor
        found = re.match(r"\.section\s+(\.\w+)\s*(?://[^\n]*)?\s*\{(.*)\}\Z", token, re.DOTALL)
        if found is None:
            cursor.i += 1
            raise cursor.unexpected("a section name and its lines in braces")
        lines = [line.partition("//")[0].strip() for line in found[2].split("\n")]
        self.module.sections[found[1]] = [line for line in lines if line]
        cursor.i += 1

    def _dwarf(self) -> None:
        """`@@dwarf ...`, one line of the old form of debug data."""
        cursor = self.cursor
        line = cursor.location().line
        start = cursor.source.positions[cursor.i]
        while cursor.tokens[cursor.i] and cursor.location().line == line:
            cursor.i += 1
        text = cursor.source.text[start : cursor.source.positions[cursor.i]].strip()
        if not text[2:].lower().startswith("dwarf"):
            raise cursor.error("unknown directive after '@@'")
        self.module.sections.setdefault("@@dwarf", []).append(text)

    def _declaration(self, token: str) -> None:
        cursor = self.cursor
        linkage = ""
        while token in LINKAGES or token == ".attribute":
            if token == ".attribute" or linkage:
                cursor.i -= 1
                raise cursor.unexpected("a state space, .entry or .func")
            linkage = token[1:]
            token = cursor.tokens[cursor.i]
            cursor.i += 1
        if token in (".entry", ".func"):
            self._function(token == ".entry", linkage)
        elif token in _SPACES:
            for variable in variables(cursor, token[1:], linkage, self.names):
                self._add_variable(variable)
        else:
            cursor.i -= 1
            raise cursor.error(f"unknown directive '{token}'")

    def _add_variable(self, variable: Variable) -> None:
        old = self.names.get(variable.name)
        if isinstance(old, Variable):
            merge_variable(old, variable)
            return
        if old is not None:
            raise PtxError(f"duplicate definition of '{variable.name}'", variable.location)
        self.names[variable.name] = variable
        self.module.variables.append(variable)

    def _function(self, is_entry: bool, linkage: str) -> None:
        cursor = self.cursor
        function = Function("", is_entry, linkage=linkage)
        scope = FunctionScope(function, self.names)
        if cursor.accept(".attribute"):
            attribute_list(cursor)
        if not is_entry and cursor.tokens[cursor.i] == "(":
            function.returns = parameters(cursor, scope)
        at = cursor.i
        function.name = cursor.name("a function name")
        function.location = cursor.location(at)
        if cursor.tokens[cursor.i] == "(":
            function.params = parameters(cursor, scope, is_entry)
        self._directives(function)
        kept = self._add_function(function)
        if cursor.accept(";"):
            return
        if cursor.tokens[cursor.i] != "{":
            raise cursor.unexpected("'{' or ';'")
        if linkage == "extern":
            raise cursor.error(f"'.extern' function '{function.name}' has a body")
        if kept.body is not None:
            raise cursor.error(f"duplicate definition of '{function.name}'", at)
        cursor.i += 1
        scope.function = kept
        kept.registers, kept.params, kept.returns, kept.directives = function.registers, function.params, function.returns, function.directives
        kept.body = []
        kept.body = BodyParser(cursor, self.module, kept, scope, self.checker).parse()

    def _add_function(self, function: Function) -> Function:
        old = self.names.get(function.name)
        if old is None:
            self.names[function.name] = function
            self.module.functions.append(function)
            return function
        if not isinstance(old, Function):
            raise PtxError(f"duplicate definition of '{function.name}'", function.location)
        if not same_signature(old, function):
            raise PtxError(f"'{function.name}' was declared before with other parameters", function.location)
        old.pragmas += function.pragmas
        if old.body is None:
            old.linkage, old.location = function.linkage or old.linkage, function.location
        return old

    def _directives(self, function: Function) -> None:
        cursor = self.cursor
        while (token := cursor.tokens[cursor.i]).startswith("."):
            cursor.i += 1
            if token == ".pragma":
                function.pragmas += tuple(self._strings())
            elif token == ".attribute":
                attribute_list(cursor)
            elif token in _FLAGS:
                function.directives[token[1:]] = ()
            elif token in _COUNTS:
                values = [cursor.integer()]
                while len(values) < _COUNTS[token] and cursor.accept(","):
                    values.append(cursor.integer())
                values += [1] * (_COUNTS[token] - len(values))
                function.directives[token[1:]] = tuple(values)
            else:
                cursor.i -= 1
                raise cursor.error(f"unknown directive '{token}' of a function")
