"""For an instruction that no form prints: the legal spellings nearest to it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

from sassay.errors import SassError
from sassay.isa.tables import Table
from sassay.isa.tables.forms import Form, Tokens
from sassay.isa.tables.lexer import MARK, SPECIAL, Value
from sassay.sass.matching import lexed_kind, literal

MOST_OUTCOMES = 4096
"""Groups with more outcomes than that stay at their usual one: no time for a message."""
_FIRST: dict[str, Value] = {"R": 0, "UR": 4, "P": 0, "UP": 0, "x": 16, "d": "1"}


def stems(table: Table, head: str) -> list[str]:
    """Instructions of the chip spelt most like `head`."""
    return difflib.get_close_matches(head, sorted(table.by_stem), 4, 0.6)


def spellings(table: Table, head: str, tokens: Tokens, values: Sequence[Value], legal: Callable[[str], object]) -> list[str]:
    """Up to three texts with the first word `head` nearest to `tokens`, each of which `legal` takes without a SassError."""
    found: dict[str, float] = {}
    for number in table.by_stem.get(head, ()):
        form = table.form(number)
        row = nearest_row(form, tokens)
        asked = [t for t in marked(tokens) if t.strip()]
        ratio = difflib.SequenceMatcher(None, asked, [placeholder(form, t) for t in row if t.strip()], autojunk=False).ratio()
        text = fill(form, row, tokens, values)
        found[text] = max(found.get(text, 0.0), ratio)
    out: list[str] = []
    for text in sorted(found, key=lambda t: (-found[t], t))[:12]:
        try:
            legal(text)
        except SassError:
            continue
        out.append(text)
        if len(out) == 3:
            break
    return out


def placeholder(form: Form, token: str) -> str:
    if not token.startswith("$"):
        return token
    f = form.fields[int(token[1:])]
    return ("@" if f.bits[0] == 12 else MARK) + lexed_kind(f.kind)


def marked(tokens: Tokens) -> Tokens:
    """The tokens with the guard's number told from the others."""
    return (tokens[0], "@" + tokens[1][1:], *tokens[2:]) if tokens[0].startswith("@") else tokens


def nearest_row(form: Form, tokens: Tokens) -> Tokens:
    """The form's text with each group at the outcome that shares most tokens with `tokens` and adds fewest others."""
    spans = [(start, stop) for start, stop, _, _ in form.pieces()]
    fixed = Counter(placeholder(form, t) for at, t in enumerate(form.base) if not any(s <= at < e for s, e in spans))
    wanted = Counter(marked(tokens)) - fixed
    loose = [t for t in wanted if t.startswith(".")]
    usual = form.outcomes(form.default | form.opcode_bits)
    chosen = []
    for k, g in enumerate(form.groups):
        legal = sorted({o for o in g.index if o >= 0})
        first = usual[k] if usual is not None else legal[0]

        def score(o: int, outcomes: tuple[tuple[Tokens, ...], ...] = g.outcomes, first: int = first) -> tuple[float, bool, int]:
            mine = Counter(placeholder(form, t) for part in outcomes[o] for t in part)
            points = 2.0 * sum((mine & wanted).values()) - sum(mine.values())
            for t in mine - wanted:
                if "???" in t or "INVALID" in t:
                    points -= 9
                elif t.startswith(".") and loose:
                    points += 1.9 * max(similar(t, w) for w in loose)
            return (points, o == first, -o)

        chosen.append(max(legal, key=score) if len(legal) <= MOST_OUTCOMES else first)
    return form.assemble(chosen)


@cache
def similar(a: str, b: str) -> float:
    ratio = difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
    return ratio if ratio > 0.6 else 0.0


def fill(form: Form, row: Tokens, tokens: Tokens, values: Sequence[Value]) -> str:
    """The row as text, with the numbers of `values` in the places of their kind, in order."""
    pools: dict[str, list[Value]] = {}
    marks = [t[1:] for t in tokens if t.startswith(MARK)]
    guarded = bool(tokens) and tokens[0].startswith("@")
    for k, kind in enumerate(marks):
        pools.setdefault("@" + kind if guarded and k == 0 else kind, []).append(values[k])
    out = []
    for at, token in enumerate(row):
        if not token.startswith("$"):
            out.append(token)
            continue
        f = form.fields[int(token[1:])]
        kind = lexed_kind(f.kind)
        pool = pools.get("@" + kind if at == 1 and row[0].startswith("@") else kind)
        value = pool.pop(0) if pool else _FIRST.get(kind, 0)
        if kind == "x" and isinstance(value, int) and f.kind != "T" and f.raw_of(value) is None:
            value = f.value(1)
        out.append(literal(kind, value if value != SPECIAL or kind in ("R", "UR", "P", "UP") else 0))
    return "".join(out).rstrip()
