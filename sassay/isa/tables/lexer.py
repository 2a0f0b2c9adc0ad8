"""Splits one line of nvdisasm's text into tokens, with every number lifted out.

A *skeleton* is the tuple of tokens with a placeholder `\\x00KIND` where a number stood; the numbers are returned beside it. Joining the tokens
gives the text back. KIND is a register prefix ("R", "UR", "P", "UP", "B", "SB", "gsb"), "x" (a hexadecimal integer) or "d" (a decimal one, or a
floating-point number, kept as text). RZ, URZ, PT and UPT have the number `SPECIAL`. `.reuse` is a matter of the control field: left out.
"""

from __future__ import annotations

import re
from typing import TypeAlias

SPECIAL = -1
MARK = "\x00"
Value: TypeAlias = "int | str"

_TOKEN = re.compile(
    r"(?P<reg>(?<![\w.])(?P<file>UR|R|UP|P|B|SB|gsb)(?P<num>\d+|Z(?!\w)|T(?!\w))(?!\w))"
    r"|(?P<hex>-?0x[0-9a-f]+)"
    r"|\{[\d,]*\}|\?{3}\d+"
    r"|(?P<dec>(?<![\w.?])[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|INF|QNAN|SNAN)(?!\w|\.\d))(?: (?=,|$|\.))?"
    r"|\.[\w?]+|[A-Za-z_][\w?]*|, | |."
)
_GUARD = re.compile(r"@(!?)(U?P)(\d|T) ")


def lex(text: str) -> tuple[tuple[str, ...], tuple[Value, ...]]:
    """Skeleton and numbers of one instruction's text (no trailing semicolon)."""
    tokens: list[str] = []
    values: list[Value] = []
    text = text.replace(".reuse", "")
    guard = _GUARD.match(text)
    if guard:
        tokens += ["@" + guard.group(1), MARK + guard.group(2), " "]
        values.append(SPECIAL if guard.group(3) == "T" else int(guard.group(3)))
        text = text[guard.end() :]
    mnemonic, space, rest = text.partition(" ")
    head, *modifiers = mnemonic.split(".")
    tokens.append(head)
    tokens += ["." + m for m in modifiers]
    if space:
        tokens.append(" ")
    for match in _TOKEN.finditer(rest):
        if match.group("reg"):
            tokens.append(MARK + match.group("file"))
            number = match.group("num")
            values.append(SPECIAL if number in "ZT" else int(number))
        elif match.group("hex"):
            tokens.append(MARK + "x")
            values.append(int(match.group("hex"), 16))
        elif match.group("dec"):
            tokens.append(MARK + "d")
            values.append(match.group("dec"))
        else:
            tokens.append(match.group())
    return tuple(tokens), tuple(values)
