"""Finds the words of a form whose text has given tokens: the form's base with its spans matched by backtracking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sassay.isa.tables.forms import FLOATS, Feature, Form, Group, Tokens
from sassay.isa.tables.lexer import MARK, SPECIAL, Value

Binding = dict[int, int]
"""Field -> number of the placeholder (counted from the left) that shows it."""


def literal(kind: str, value: Value) -> str:
    """The text of a number where the form has plain text."""
    if kind == "x":
        return hex(int(value))
    if kind == "d":
        return str(value)
    if value == SPECIAL:
        return kind + ("T" if kind in ("P", "UP") else "Z")
    return f"{kind}{value}"


def lexed_kind(kind: str) -> str:
    return "d" if kind in FLOATS or kind == "DEC" else "x" if kind == "T" else kind


class Matcher:
    """Matches one skeleton against one form. `matches` yields (possible outcomes of each group, binding)."""

    def __init__(self, form: Form, tokens: Tokens, values: Sequence[Value]) -> None:
        self.form = form
        self.tokens = tokens
        self.values = values
        self.numbers = []
        count = 0
        for t in tokens:
            self.numbers.append(count)
            count += t.startswith(MARK)
        self.pieces = form.pieces()

    def token(self, mine: str, at: int, binding: Binding) -> bool:
        if at >= len(self.tokens):
            return False
        seen = self.tokens[at]
        if not seen.startswith(MARK):
            return mine == seen
        k = self.numbers[at]
        if not mine.startswith("$"):
            return mine == literal(seen[1:], self.values[k])
        i = int(mine[1:])
        if lexed_kind(self.form.fields[i].kind) != seen[1:]:
            return False
        bound = binding.setdefault(i, k)
        return bound == k or self.values[bound] == self.values[k]

    def row(self, row: Tokens, at: int, binding: Binding) -> bool:
        return all(self.token(t, at + j, binding) for j, t in enumerate(row))

    def matches(self) -> Iterator[tuple[list[set[int]], Binding]]:
        everything = [set(range(len(g.outcomes))) for g in self.form.groups]
        yield from self._from(0, 0, 0, everything, {})

    def _from(
        self, piece: int, base_at: int, at: int, possible: list[set[int]], binding: Binding
    ) -> Iterator[tuple[list[set[int]], Binding]]:
        base = self.form.base
        stop = self.pieces[piece][0] if piece < len(self.pieces) else len(base)
        binding = dict(binding)
        if not self.row(base[base_at:stop], at, binding):
            return
        at += stop - base_at
        if piece == len(self.pieces):
            if at == len(self.tokens):
                yield possible, binding
            return
        _, after, g, k = self.pieces[piece]
        choices: dict[Tokens, set[int]] = {}
        for o in possible[g]:
            choices.setdefault(self.form.groups[g].outcomes[o][k], set()).add(o)
        for row, outcomes in choices.items():
            trial = dict(binding)
            if not self.row(row, at, trial):
                continue
            narrowed = list(possible)
            narrowed[g] = outcomes
            yield from self._from(piece + 1, after, at + len(row), narrowed, trial)


def settle(form: Form, possible: Sequence[set[int]], raws: dict[int, int]) -> tuple[int, bool] | None:
    """The payload for the outcomes and field values of a match, and whether its special cases are as the text says.

    Fields that the text does not show take their default, or what the case asked for needs. Among values that read alike those nearest to
    the default win. Where the text ignores a special case that the numbers are in (IMAD by 4, which reads IMAD.SHL), the general case stands
    for it and the second result is False.
    """
    word = form.default
    for i, raw in raws.items():
        word = (word & ~form.fields[i].mask) | form.fields[i].spread(raw)
    exact = True
    for g, outcomes in zip(form.groups, possible, strict=True):
        best = nearest(form, g, outcomes, raws, word)
        if best is None:
            best = nearest(form, g, outcomes, raws, word, general=True)
            exact = False
        if best is None:
            return None
        for f, case in zip(g.features, best, strict=True):
            if f.bit >= 0:
                word = (word & ~(1 << f.bit)) | (case << f.bit)
            elif f.field not in raws and f.case(form.fields[f.field].raw(word)) != case:
                typical = f.representative(case)
                raw = general_value(form, f) if typical is None else typical
                word = (word & ~form.fields[f.field].mask) | form.fields[f.field].spread(raw)
    return word | form.opcode_bits, exact


def general_value(form: Form, feature: Feature) -> int:
    """The least raw value of a field that is no special case."""
    return next(raw for raw in range(1 << len(form.fields[feature.field].bits)) if feature.case(raw) == 0)


def nearest(
    form: Form, g: Group, outcomes: set[int], raws: dict[int, int], word: int, general: bool = False
) -> list[int] | None:
    """The joint value with one of those outcomes that fits the shown fields and differs least from `word`."""
    best: list[int] | None = None
    least = 1 << 30
    for joint, outcome in enumerate(g.index):
        if outcome not in outcomes:
            continue
        cases = g.cases(joint)
        distance = 0
        for f, case in zip(g.features, cases, strict=True):
            if f.bit >= 0:
                distance += ((word >> f.bit) & 1) != case
            elif f.field in raws:
                if case != (0 if general else f.case(raws[f.field])):
                    distance = -1
                    break
            elif case == 0 and len(f.cases) == 1 << len(form.fields[f.field].bits):
                distance = -1  # every value is a case of its own
                break
            else:
                distance += f.case(form.fields[f.field].raw(word)) != case
        if 0 <= distance < least:
            best, least = cases, distance
    return best
