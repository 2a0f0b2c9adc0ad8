"""A place in a token stream, and what every part of the parser reads with: names, numbers, constant expressions."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from sassay.errors import Location, PtxError
from sassay.ptx.ast import FloatOperand, IntOperand
from sassay.ptx.lexer import Source

_NAME_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$%")
_U64 = (1 << 64) - 1
_PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_FLOAT = re.compile(r"[0-9]+(\.[0-9]*([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)\Z")


def is_name(token: str) -> bool:
    """Whether a token is an identifier (perhaps with dotted qualifiers)."""
    return token[:1] in _NAME_START and token != "%"


def literal(token: str) -> IntOperand | FloatOperand | None:
    """The number a token spells, or None."""
    first = token[:1]
    if not first.isdigit():
        return None
    kind = token[1:2]
    if first == "0" and len(token) > 1:
        if kind in "fF":
            return FloatOperand(int(token[2:], 16), False)
        if kind in "dD":
            return FloatOperand(int(token[2:], 16), True)
    if _FLOAT.match(token):
        return FloatOperand(struct.unpack("<Q", struct.pack("<d", float(token)))[0], True)
    digits = token.rstrip("U")
    if kind in ("x", "X"):
        value = int(digits[2:], 16)
    elif kind in ("b", "B") and first == "0":
        value = int(digits[2:], 2)
    elif first == "0" and len(digits) > 1:
        if not set(digits) <= set("01234567"):
            return None
        value = int(digits, 8)
    else:
        value = int(digits)
    return IntOperand(value) if value <= _U64 else None


class Cursor:
    """Reads tokens one by one. Errors carry the place of the token they complain of."""

    __slots__ = ("errors", "i", "source", "tokens")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens
        self.i = 0
        self.errors: list[PtxError] = []

    def location(self, index: int | None = None) -> Location:
        return self.source.location(self.i if index is None else index)

    def error(self, message: str, index: int | None = None) -> PtxError:
        at = min(self.i if index is None else index, len(self.tokens) - 1)
        return PtxError(message, self.source.location(at))

    def unexpected(self, wanted: str) -> PtxError:
        token = self.tokens[self.i]
        return self.error(f"expected {wanted}, found {repr(token[:40]) if token else 'end of file'}")

    def expect(self, token: str) -> None:
        if self.tokens[self.i] != token:
            raise self.unexpected(f"'{token}'")
        self.i += 1

    def accept(self, token: str) -> bool:
        if self.tokens[self.i] == token:
            self.i += 1
            return True
        return False

    def name(self, what: str = "a name") -> str:
        """An identifier without qualifiers."""
        token = self.tokens[self.i]
        if not is_name(token) or "." in token:
            raise self.unexpected(what)
        self.i += 1
        return token

    def string(self) -> str:
        token = self.tokens[self.i]
        if not token.startswith('"'):
            raise self.unexpected("a string")
        self.i += 1
        return token[1:-1]

    def integer(self, what: str = "an integer") -> int:
        """A constant integer expression."""
        at = self.i
        value = self.constant()
        if isinstance(value, FloatOperand):
            raise self.error(f"expected {what}, found a floating-point constant", at)
        return value.value

    def integer_in_angles(self) -> int:
        """The count of `%r<12>`."""
        at = self.i
        value = literal(self.tokens[at])
        if not isinstance(value, IntOperand) or not 0 <= value.value < 1 << 31:
            raise self.unexpected("a count")
        self.i += 1
        return value.value

    def constant_term(self, what: str, at: int) -> int:
        """One operand of a sum: an integer literal or an expression in parentheses."""
        value = self._unary(0)
        if isinstance(value, FloatOperand):
            raise self.error(f"expected {what}, found a floating-point constant", at)
        return value.value

    def constant(self) -> IntOperand | FloatOperand:
        """A constant expression: literals, parentheses, casts, unary and binary operators, `?:`."""
        return self._expression(0)

    def _expression(self, level: int) -> IntOperand | FloatOperand:
        if level > 40:
            raise self.error("constant expression nested too deeply")
        value = self._binary(1, level)
        if self.tokens[self.i] == "?":
            self.i += 1
            yes = self._expression(level + 1)
            self.expect(":")
            no = self._expression(level + 1)
            return yes if self._int(value) else no
        return value

    def _int(self, value: IntOperand | FloatOperand) -> int:
        if isinstance(value, FloatOperand):
            raise self.error("integer operator on a floating-point constant")
        return value.value

    def _binary(self, floor: int, level: int) -> IntOperand | FloatOperand:
        left = self._unary(level)
        while True:
            operator = self.tokens[self.i]
            rank = _PRECEDENCE.get(operator, 0)
            if rank < floor or not rank:
                return left
            at = self.i
            self.i += 1
            right = self._binary(rank + 1, level)
            left = self._apply(operator, left, right, at)

    def _apply(self, operator: str, left: IntOperand | FloatOperand, right: IntOperand | FloatOperand, at: int) -> IntOperand | FloatOperand:
        if isinstance(left, FloatOperand) or isinstance(right, FloatOperand):
            if isinstance(left, FloatOperand) and isinstance(right, FloatOperand) and operator in ("+", "-", "*", "/"):
                return self._apply_float(operator, left, right, at)
            raise self.error(f"operator '{operator}' cannot take a floating-point constant here", at)
        a, b = left.value, right.value
        if operator in ("/", "%"):
            if b == 0:
                raise self.error("division by zero in a constant expression", at)
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return IntOperand(_wrap(quotient if operator == "/" else a - quotient * b))
        if operator in ("<<", ">>"):
            if not 0 <= b < 64:
                raise self.error(f"shift by {b} in a constant expression", at)
            return IntOperand(_wrap(a << b if operator == "<<" else a >> b))
        return IntOperand(_wrap(_OPERATIONS[operator](a, b)))

    def _apply_float(self, operator: str, left: FloatOperand, right: FloatOperand, at: int) -> FloatOperand:
        a, b = _as_float(left), _as_float(right)
        if operator == "/" and b == 0:
            raise self.error("division by zero in a constant expression", at)
        value = {"+": a + b, "-": a - b, "*": a * b}[operator] if operator != "/" else a / b
        return FloatOperand(struct.unpack("<Q", struct.pack("<d", value))[0], True)

    def _unary(self, level: int) -> IntOperand | FloatOperand:
        if level > 40:
            raise self.error("constant expression nested too deeply")
        token = self.tokens[self.i]
        if token in ("-", "+", "~", "!"):
            self.i += 1
            value = self._unary(level + 1)
            if token == "+":
                return value
            if isinstance(value, FloatOperand):
                if token == "-":
                    return FloatOperand(value.bits ^ (1 << (63 if value.double else 31)), value.double)
                raise self.error(f"operator '{token}' cannot take a floating-point constant")
            return IntOperand(_wrap(-value.value if token == "-" else ~value.value if token == "~" else int(not value.value)))
        if token == "(":
            self.i += 1
            if self.tokens[self.i] in (".s64", ".u64"):
                signed = self.tokens[self.i] == ".s64"
                self.i += 1
                self.expect(")")
                value = self._unary(level + 1)
                number = self._int(value) & _U64
                return IntOperand(number - (1 << 64) if signed and number >> 63 else number)
            value = self._expression(level + 1)
            self.expect(")")
            return value
        if token == "WARP_SZ":
            self.i += 1
            return IntOperand(32)
        found = literal(token)
        if found is None:
            raise self.unexpected("a constant")
        self.i += 1
        return found


def _wrap(value: int) -> int:
    """Keep a constant within 64 bits: signed below zero, unsigned above the signed range."""
    if -(1 << 63) <= value <= _U64:
        return value
    value &= _U64
    return value


def _as_float(value: FloatOperand) -> float:
    if value.double:
        return float(struct.unpack("<d", struct.pack("<Q", value.bits))[0])
    return float(struct.unpack("<f", struct.pack("<I", value.bits))[0])


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "||": lambda a, b: int(bool(a) or bool(b)),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
}
