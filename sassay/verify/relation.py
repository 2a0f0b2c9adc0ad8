"""What holds between PTX values and SASS locations at a cut point, inferred and then proved by induction.

Every PTX register live at the cut is cut into pieces of at most 32 bits. A piece is a variable of the cut, or an expression of other pieces and
of what a launch supplies. Every live SASS location is an expression of those, or unknown. Expressions are guessed from the first
arrival at the cut, most informative first; an arrival that breaks a guess strikes it out, until all arrivals agree (the method known as
signal correspondence, or Houdini). Nothing is believed: the surviving relation is what every arrival was proved to establish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sassay.ptx.ast import Register
from sassay.verify.equality import rewrite
from sassay.verify.evaluate import evaluate, postorder, random_value
from sassay.verify.regions import Key, State, label
from sassay.verify.terms import Term, Terms

_LAUNCH = re.compile(r"param\+|c\d+\+|&|%(?!clock|globaltimer)|stack$")
"""Names of variables that a launch fixes."""
LIKENESS_SAMPLES = 6
MAX_EXPRESSION = 400
"""Guessed expressions larger than this (in terms) are not tried."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bits low.. of a PTX register, `width` of them."""

    register: Register
    low: int
    width: int

    def __str__(self) -> str:
        suffix = "" if self.width == self.register.bits else f"[{self.low + self.width - 1}:{self.low}]"
        return f"{self.register.name}{suffix}"


def pieces_of(register: Register) -> list[Piece]:
    """A register's pieces, lowest first."""
    bits = register.bits
    return [Piece(register, low, min(32, bits - low)) for low in range(0, bits, 32)]


@dataclass(slots=True)
class Guess:
    """Expressions that a location may equal, best first; the last one is its own variable and always holds."""

    candidates: list[Term]
    variable: Term

    @property
    def current(self) -> Term:
        return self.candidates[0]


@dataclass(slots=True)
class Relation:
    """The relation at one cut point. `variables` are the pieces' own variables."""

    name: str
    pieces: dict[Piece, Guess] = field(default_factory=dict)
    places: dict[Key, Guess] = field(default_factory=dict)

    def resolved(self, terms: Terms) -> dict[Term, Term]:
        """What each piece's variable is under the current guesses; guesses speak of pieces before them only."""
        known: dict[Term, Term] = {}
        for guess in self.pieces.values():
            known[guess.variable] = guess.current if guess.current is guess.variable else rewrite(terms, guess.current, known)
        return known

    def ptx_state(self, terms: Terms) -> State:
        """The PTX side's state on leaving the cut."""
        state = State(terms, f"undefined@{self.name}")
        known = self.resolved(terms)
        for register in dict.fromkeys(p.register for p in self.pieces):
            state.values[register] = terms.concat(*(known[self.pieces[p].variable] for p in reversed(pieces_of(register))))
        return state

    def sass_state(self, terms: Terms) -> State:
        known = self.resolved(terms)
        return State(terms, f"sass@{self.name}", {key: rewrite(terms, guess.current, known) for key, guess in self.places.items()})


def immutable(term: Term) -> bool:
    """Whether a term depends on nothing but what a launch fixes for a thread: parameters, constants, special registers."""
    for t in postorder((term,)):
        if t.op == "var" and not _LAUNCH.match(str(t.data)):
            return False
        if t.op.startswith("fn:") and not t.op.startswith(("fn:float", "fn:opaque", "fn:clz", "fn:popcount")):
            return False
    return True


def infer(terms: Terms, name: str, registers: Iterable[Register], keys: Iterable[tuple[Key, int]], ptx: State, sass: State) -> Relation:
    """Guess the relation at a cut from the states of one arrival. `registers` and `keys` (with widths) are those live there."""
    relation = Relation(name)
    known: dict[Term, Term] = {}
    values = {p: terms.extract(ptx.read(p.register, p.register.bits), p.low + p.width - 1, p.low) for r in registers for p in pieces_of(r)}
    sizes = {p: len(postorder((t,))) for p, t in values.items()}
    holders: dict[Term, list[Term]] = {}
    for piece in sorted(values, key=lambda p: (sizes[p], p.register.uid, p.low)):
        value = values[piece]
        variable = terms.var(f"@{name}:{label(piece.register)}.{piece.low}", piece.width)
        guesses = _expressions(terms, value, known)
        relation.pieces[piece] = Guess([*guesses, variable], variable)
        holders.setdefault(value, []).append(variable)
        if not value.is_const and not immutable(value):
            known.setdefault(value, variable)
            _learn_whole(terms, piece, values, relation, ptx, known)
    for key, width in keys:
        value = sass.read(key, width)
        variable = terms.var(f"@{name}:sass.{label(key)}", width)
        guesses = _place_guesses(terms, value, holders, known)
        relation.places[key] = Guess([*dict.fromkeys(guesses), variable], variable)
    own = {guess.variable for guess in relation.pieces.values()}
    orphans = {
        key: sass.read(key, width) for key, width in keys
        if not sass.read(key, width).is_const and not own & set(relation.places[key].candidates)
    }  # fmt: skip
    for key, found in _alike(terms, values, relation, orphans).items():
        relation.places[key].candidates[:0] = found
    return relation


def _learn_whole(terms: Terms, piece: Piece, values: dict[Piece, Term], relation: Relation, ptx: State, known: dict[Term, Term]) -> None:
    """Once all pieces of a register have variables, let its whole value stand for their concatenation in expressions."""
    parts = pieces_of(piece.register)
    if len(parts) > 1 and all(p in relation.pieces for p in parts):
        whole = ptx.read(piece.register, piece.register.bits)
        if not whole.is_const and all(not values[p].is_const for p in parts):
            known.setdefault(whole, terms.concat(*(relation.pieces[p].variable for p in reversed(parts))))


def _expressions(terms: Terms, value: Term, known: dict[Term, Term]) -> list[Term]:
    """Expressions of variables and launch inputs that equal `value`."""
    if value.is_const or immutable(value):
        return [value]
    if not known:
        return []
    rewritten = rewrite(terms, value, known)
    if len(postorder((rewritten,))) > MAX_EXPRESSION:
        return []
    return [rewritten] if _closed(rewritten, set(known.values())) else []


def _closed(term: Term, variables: set[Term]) -> bool:
    allowed = {v for whole in variables for v in postorder((whole,)) if v.op == "var"}
    return all(
        t in allowed if t.op == "var" and not _LAUNCH.match(str(t.data)) else not t.op.startswith(("fn:load", "fn:old"))
        for t in postorder((term,))
    )


def _place_guesses(terms: Terms, value: Term, holders: dict[Term, list[Term]], known: dict[Term, Term]) -> list[Term]:
    guesses: list[Term] = list(holders.get(value, []))
    if value.width == 1:
        guesses += [terms.not_(v) for v in holders.get(terms.not_(value), [])]
    if value.is_const or immutable(value):
        guesses.append(value)
    for narrow in (16, 8):
        if value.width == 32:
            low = terms.extract(value, narrow - 1, 0)
            for v in holders.get(low, []):
                guesses += [terms.zext(v, 32), terms.sext(v, 32)]
    if value.width == 32 and value.op == "zext" and value.args[0].width == 1:
        guesses += [terms.zext(v, 32) for v in holders.get(value.args[0], [])]
    guesses += _expressions(terms, value, known)
    return guesses


def _alike(terms: Terms, values: dict[Piece, Term], relation: Relation, orphans: dict[Key, Term]) -> dict[Key, list[Term]]:
    """Pieces that agree on samples with places for which no expression was found: equal values in another shape."""
    if not orphans:
        return {}
    roots = (*values.values(), *orphans.values())
    runs = [evaluate(roots, lambda t, salt=s: random_value(t.data, salt, t.width)) for s in range(LIKENESS_SAMPLES)]  # type: ignore[misc]
    by_signature: dict[tuple[int, ...], list[Term]] = {}
    for piece, value in values.items():
        if not value.is_const:
            by_signature.setdefault((value.width, *(run[value] for run in runs)), []).append(relation.pieces[piece].variable)
    return {key: by_signature.get((value.width, *(run[value] for run in runs)), []) for key, value in orphans.items()}
