"""PTX text -> tokens. One compiled expression finds every token; a token is its text, its kind is plain from the first character.

A name keeps its dotted qualifiers ("ld.global.v2.u32", "%tid.x") as one token, a directive is one token a dot (".reg", ".b32"), a debug
section with its braces is one token, a quoted string keeps its quotes. Positions stand in a parallel array.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from sassay.errors import Location, PtxError

_TOKEN = re.compile(
    r"""
    (?: [ \t\r\n\f\v]++ | //[^\n]*+ | /\*.*?\*/ )*+
    (
      [A-Za-z_$%][A-Za-z0-9_$]*+ (?: \.[A-Za-z0-9_]++ (?: ::[A-Za-z0-9_]++ )*+ )*+
    | 0[fF][0-9a-fA-F]{8}(?![0-9a-zA-Z_$.]) | 0[dD][0-9a-fA-F]{16}(?![0-9a-zA-Z_$.])
    | 0[xX][0-9a-fA-F]++U?+ | 0[bB][01]++U?+
    | [0-9]++ (?: \.[0-9]*+ (?: [eE][+-]?[0-9]++ )?+ | [eE][+-]?[0-9]++ | U )?+
    | \.section [ \t\r\n]++ \.[A-Za-z_]\w*+ [ \t\r\n]*+ (?: //[^\n]*+\n [ \t\r\n]*+ )?+ \{ (?: [^{}/"]++ | //[^\n]*+ | "[^"\n]*+" | /(?!/) )*+ \}
    | \.[A-Za-z0-9_]++ (?: ::[A-Za-z0-9_]++ )*+
    | "[^"\n]*+"
    | && | \|\| | << | >> | == | != | <= | >= | @@
    | [,;\[\]{}()+\-!|@:<>=*/%&^~?]
    | \Z
    )
    """,
    re.VERBOSE | re.DOTALL,
)


class Source:
    """A PTX text, its tokens, and the places they stand at. `tokens` ends with one empty token."""

    __slots__ = ("_lines", "file", "positions", "text", "tokens")

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self._lines: list[int] = []
        self.tokens: list[str] = []
        self.positions: list[int] = []
        self._split()

    def _split(self) -> None:
        text = self.text
        tokens: list[str] = []
        positions: list[int] = []
        end = 0
        for match in _TOKEN.finditer(text):
            if match.start() != end:
                break
            end = match.end()
            start = match.start(1)
            positions.append(start)
            tokens.append(text[start:end])
            if start == end:
                break
        if not tokens or tokens[-1]:
            raise self._bad_character(end)
        self.tokens = tokens
        self.positions = positions

    def _bad_character(self, end: int) -> PtxError:
        text = self.text
        space = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL).match(text, end)
        at = space.end() if space else end
        if text.startswith("/*", at):
            return PtxError("comment without end", self.location_at(at))
        if text.startswith('"', at):
            return PtxError("string without end", self.location_at(at))
        return PtxError(f"unexpected character {text[at : at + 1]!r}", self.location_at(at))

    def location_at(self, position: int) -> Location:
        """Line and column of a character position."""
        lines = self._lines
        if not lines:
            lines.append(0)
            lines.extend(match.end() for match in re.finditer("\n", self.text))
        line = bisect_right(lines, position)
        return Location(self.file, line, position - lines[line - 1] + 1)

    def location(self, index: int) -> Location:
        """Line and column of a token."""
        return self.location_at(self.positions[index])
