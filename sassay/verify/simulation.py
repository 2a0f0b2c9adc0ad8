"""The proof that two programs do the same: regions between paired cut points, and a relation at each that every arrival establishes.

From the entry and from every cut, both sides are executed to the next cuts over shared inputs. Obligations: the same cuts are reached under
the same conditions; the memory histories and the barriers and warp exchanges are the same; the relation holds at every cut reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from sassay.errors import ProofError
from sassay.ptx.ast import Register
from sassay.verify.equality import Budget, Result, equal, rewrite
from sassay.verify.evaluate import postorder
from sassay.verify.lemmas import Lemma, find, name_of
from sassay.verify.memory import Access, Logged, Memory
from sassay.verify.ptx_side import ENTRY, PtxSide
from sassay.verify.regions import EXIT, Exit, Key, Region, Side, State, execute
from sassay.verify.relation import Relation, infer
from sassay.verify.term_algebra import unsettled
from sassay.verify.terms import Term, Terms

MAX_ROUNDS = 30
MAX_CANDIDATES = 4
"""How many PTX accesses a SASS access is compared with before it is left alone."""


@dataclass(frozen=True, slots=True)
class Obligation:
    """One thing to show in one region, and how it went."""

    cut: str
    what: str
    result: Result


@dataclass(slots=True)
class Outcome:
    """All obligations of the last round, the relation per cut and how many rounds it took. `proved` when every one holds."""

    obligations: list[Obligation] = field(default_factory=list)
    relations: dict[str, Relation] = field(default_factory=dict)
    rounds: int = 0
    lemmas: list[Lemma] = field(default_factory=list)

    @property
    def proved(self) -> bool:
        return all(o.result.status == "equal" for o in self.obligations)


@dataclass(slots=True)
class Pairing:
    """Cut points of the two sides: PTX label to SASS label, entry first; and what is live at each."""

    cuts: dict[str, str]
    ptx_live: Callable[[str], Iterable[Register]]
    sass_live: Callable[[str], Iterable[tuple[Key, int]]]
    sass_entry: str


class Simulation:
    """The proof of one kernel."""

    def __init__(self, terms: Terms, ptx: PtxSide, sass: Side, pairing: Pairing, budget: Budget) -> None:
        self.terms = terms
        self.ptx = ptx
        self.sass = sass
        self.pairing = pairing
        self.budget = budget
        self.cuts = frozenset(pairing.cuts)
        self.sass_cuts = frozenset(pairing.cuts.values())
        self.relations: dict[str, Relation] = {}
        self._answers: dict[tuple[Term, Term, Term], Result] = {}
        self._merged: dict[Term, Term] = {}
        self.lemmas: list[Lemma] = []

    def run(self) -> Outcome:
        """Infer the relations, then discharge every obligation."""
        for number in range(1, MAX_ROUNDS + 1):
            changed, obligations = self._round()
            if not changed:
                return Outcome(obligations, self.relations, number, self.lemmas)
        raise ProofError(f"the relation did not settle in {MAX_ROUNDS} rounds")

    def _round(self) -> tuple[bool, list[Obligation]]:
        changed = False
        obligations: list[Obligation] = []
        queue, seen = [ENTRY], {ENTRY}
        while queue:
            cut = queue.pop(0)
            ptx, sass = self._execute(cut)
            while self._learn(ptx, sass):
                ptx, sass = self._execute(cut)
            self._merge(ptx, sass)
            obligations += self._effects(cut, ptx, sass)
            for target in sorted(set(ptx.exits) | set(self._back(sass))):
                pair = self._arrival(target, ptx, sass)
                if pair is None or target == EXIT:
                    continue
                changed |= self._establish(target, *pair)
                if target not in seen:
                    seen.add(target)
                    queue.append(target)
        return changed, obligations

    def _learn(self, ptx: Region, sass: Region) -> bool:
        """Look for expansions of division and roots; whether any was found, so that the region is worth executing again."""
        theirs = _terms_of(ptx)
        if not any(name_of(t) for t in postorder(tuple(theirs))):
            return False
        found = find(self.terms, theirs, _terms_of(sass), self.terms.rules)
        for lemma in found:
            self.terms.rules[lemma.expansion] = lemma.operation
        self.lemmas += found
        return bool(found)

    def _merge(self, ptx: Region, sass: Region) -> None:
        """Pair the SASS side's accesses and warp exchanges with PTX ones of the same effect, so that what follows of them become the same terms.

        In the order in which the terms were made, so that the arguments of each are settled before it. What an exchange gives depends on all
        lanes' arguments: a SASS exchange without a PTX partner gives something of its own."""
        self._merged = {}
        free: dict[tuple[str, int, str, int], list[Logged]] = {}
        for item in ptx.memory.log:
            free.setdefault((item.space, item.segment, item.access.kind, item.access.size), []).append(item)
        partners = _exchanges(ptx)
        steps: list[tuple[int, Logged | Term]] = [(item.event.ident, item) for item in sass.memory.log]
        steps += [(t.ident, t) for t in _exchanges(sass)]
        for _, step in sorted(steps, key=lambda s: s[0]):
            if isinstance(step, Logged):
                self._pair_access(step, free.get((step.space, step.segment, step.access.kind, step.access.size), []))
            else:
                partner = next((t for t in partners if self._same_exchange(t, step)), None)
                self._merged[step] = self.terms.var(f"unpaired {step.op}.{step.ident}", step.width) if partner is None else partner

    def _pair_access(self, item: Logged, candidates: list[Logged]) -> None:
        for position, candidate in enumerate(candidates[:MAX_CANDIDATES]):
            if self._same_access(candidate.access, item.access):
                self._merged[item.event] = candidate.event
                del candidates[position]
                break

    def _same_exchange(self, a: Term, b: Term) -> bool:
        """Whether two results are of the same operation, with the same lanes taking part, each of which gives the same. The first argument says
        whether the lane takes part; the others count only where it does."""
        if a is b:
            return True
        if a.op != b.op or a.data != b.data or len(a.args) != len(b.args):
            return False
        if self.equal(a.args[0], b.args[0], self.terms.const(1, 1)).status != "equal":
            return False
        return all(self.equal(x, y, a.args[0]).status == "equal" for x, y in zip(a.args[1:], b.args[1:], strict=True))

    def _same_access(self, a: Access, b: Access) -> bool:
        """Whether two accesses happen under the same condition and then do the same."""
        if self.equal(a.guard, b.guard, self.terms.const(1, 1)).status != "equal" or len(a.values) != len(b.values):
            return False
        pairs = [(a.address, b.address), *zip(a.values, b.values, strict=True)]
        return all(self.equal(x, y, a.guard).status == "equal" for x, y in pairs)

    def _translate(self, term: Term) -> Term:
        """A term of the SASS side with its accesses and exchanges replaced by the PTX ones they were paired with."""
        return rewrite(self.terms, term, self._merged) if self._merged else term

    def _back(self, sass: Region) -> dict[str, Exit]:
        """SASS exits under the PTX names of their cuts."""
        names = {s: p for p, s in self.pairing.cuts.items()} | {EXIT: EXIT}
        return {names[label]: found for label, found in sass.exits.items()}

    def _execute(self, cut: str) -> tuple[Region, Region]:
        if cut == ENTRY:
            starts = State(self.terms, "undefined"), State(self.terms, "sass")
        else:
            relation = self.relations[cut]
            starts = relation.ptx_state(self.terms), relation.sass_state(self.terms)
        start = self.pairing.sass_entry if cut == ENTRY else self.pairing.cuts[cut]
        ptx = execute(self.terms, self.ptx, cut, self.cuts, starts[0], Memory(self.terms))
        sass = execute(self.terms, self.sass, start, self.sass_cuts, starts[1], Memory(self.terms))
        return ptx, sass

    def _arrival(self, target: str, ptx: Region, sass: Region) -> tuple[Exit, Exit] | None:
        theirs = self._back(sass).get(target)
        mine = ptx.exits.get(target)
        return None if mine is None or theirs is None else (mine, theirs)

    def equal(self, a: Term, b: Term, condition: Term) -> Result:
        """`verify.equality.equal` of a PTX and a SASS term, remembered."""
        b = self._translate(b)
        key = (a, b, condition)
        found = self._answers.get(key)
        if found is None:
            found = equal(self.terms, a, b, condition, self.budget)
            if found.status != "equal":
                found = self._equal_but_for_nan(a, b, condition) or found
            self._answers[key] = found
        return found

    def _equal_but_for_nan(self, a: Term, b: Term, condition: Term) -> Result | None:
        """The PTX side with neg and abs as plain changes of the sign bit: the ISA leaves the NaN they give open, and both readings are right."""
        plain = {t: rest for t in postorder((a,)) if (rest := unsettled(t)) is not None}
        other = rewrite(self.terms, a, plain)
        if other is a:
            return None
        result = equal(self.terms, other, b, condition, self.budget)
        return result if result.status == "equal" else None

    def _effects(self, cut: str, ptx: Region, sass: Region) -> list[Obligation]:
        """Same exits under the same conditions, same memory, same barriers and exchanges."""
        true, false = self.terms.const(1, 1), self.terms.const(0, 1)
        found = []
        theirs = self._back(sass)
        for target in sorted(set(ptx.exits) | set(theirs)):
            a = ptx.exits[target].condition if target in ptx.exits else false
            b = theirs[target].condition if target in theirs else false
            found.append(Obligation(cut, f"condition of reaching {target}", self.equal(a, b, true)))
        for space in ("global", "shared", "generic", "local"):
            found.append(Obligation(cut, f"{space} memory", self._same_history(ptx.memory.token(space), sass.memory.token(space))))
        found.append(self._same_events(cut, ptx, sass))
        return found

    def _same_history(self, a: Term, b: Term) -> Result:
        """Two histories event by event: same kinds in the same order, under the same guards, at the same addresses, with the same values."""
        pairs = [(a, self._translate(b))]
        seen: set[tuple[Term, Term]] = set()
        while pairs:
            a, b = pairs.pop()
            if a is b or (a, b) in seen:
                continue
            seen.add((a, b))
            if a.op != b.op or a.data != b.data or len(a.args) != len(b.args) or not a.op.startswith("fn:"):
                return Result("unknown", "histories", reason=f"{history_name(a)} against {history_name(b)}")
            is_access = a.op.startswith("fn:event.")
            condition = a.args[0] if is_access else self.terms.const(1, 1)
            for position, (x, y) in enumerate(zip(a.args, b.args, strict=True)):
                if is_history(x) or is_history(y):
                    pairs.append((x, y))
                    continue
                result = self.equal(x, y, condition if position else self.terms.const(1, 1))
                if result.status != "equal":
                    return replace(result, reason=f"{history_name(a)}, argument {position}: {result.reason or result.method}")
        return Result("equal", "histories")

    def _same_events(self, cut: str, ptx: Region, sass: Region) -> Obligation:
        ours, theirs = ptx.trace.events, sass.trace.events
        if len(ours) != len(theirs):
            reason = f"{len(ours)} barriers or exchanges against {len(theirs)}"
            return Obligation(cut, "barriers and exchanges", Result("unknown", "events", reason=reason))
        true = self.terms.const(1, 1)
        for (name, guard, operands), (other, other_guard, other_operands) in zip(ours, theirs, strict=True):
            if name != other or len(operands) != len(other_operands):
                return Obligation(cut, "barriers and exchanges", Result("unknown", "events", reason=f"{name} against {other}"))
            pairs = [(guard, other_guard), *zip(operands, other_operands, strict=True)]
            for a, b in pairs:
                result = self.equal(a, b, true)
                if result.status != "equal":
                    return Obligation(cut, f"operands of {name}", result)
        return Obligation(cut, "barriers and exchanges", Result("equal", "events"))

    def _establish(self, target: str, ptx: Exit, sass: Exit) -> bool:
        """Make or weaken the relation at `target` so that this arrival establishes it; whether it changed."""
        if target not in self.relations:
            registers = list(self.pairing.ptx_live(target))
            keys = list(self.pairing.sass_live(self.pairing.cuts[target]))
            place = State(self.terms, sass.state.name, {k: self._translate(sass.state.read(k, width)) for k, width in keys})
            self.relations[target] = infer(self.terms, target, registers, keys, ptx.state, place)
            return True
        relation = self.relations[target]
        actual = {
            guess.variable: self.terms.extract(ptx.state.read(p.register, p.register.bits), p.low + p.width - 1, p.low)
            for p, guess in relation.pieces.items()
        }
        changed = False
        for guess in relation.pieces.values():
            changed |= self._weaken(guess.candidates, guess.variable, actual[guess.variable], actual, ptx.condition)
        for key, guess in relation.places.items():
            value = sass.state.read(key, guess.variable.width)
            changed |= self._weaken(guess.candidates, guess.variable, value, {**actual, guess.variable: value}, ptx.condition)
        return changed

    def _weaken(self, candidates: list[Term], own: Term, value: Term, actual: dict[Term, Term], condition: Term) -> bool:
        """Strike out candidates that this arrival does not establish."""
        changed = False
        while candidates[0] is not own:
            expected = rewrite(self.terms, candidates[0], actual)
            if self.equal(expected, value, condition).status == "equal":
                break
            candidates.pop(0)
            changed = True
        return changed


def _terms_of(region: Region) -> list[Term]:
    """Every term that a region's result speaks of."""
    found: dict[Term, None] = {}
    for exit_ in region.exits.values():
        found[exit_.condition] = None
        found.update(dict.fromkeys(exit_.state.values.values()))
    for item in region.memory.log:
        found.update(dict.fromkeys((item.access.guard, item.access.address, *item.access.values)))
    return list(found)


def _exchanges(region: Region) -> list[Term]:
    """Results of warp exchanges that a region's result depends on, in the order in which they were made."""
    roots = [*_terms_of(region), *(t for _, guard, operands in region.trace.events for t in (guard, *operands))]
    roots += [region.memory.token(space) for space in ("global", "shared", "generic", "local")]
    return sorted((t for t in postorder(tuple(roots)) if t.op.startswith("fn:exchange.")), key=lambda t: t.ident)


def is_history(term: Term) -> bool:
    """Whether a term stands for a history of memory."""
    return term.op.startswith(("fn:access", "fn:event.", "fn:after.", "fn:fence.")) or (term.op == "var" and str(term.data).startswith("memory."))


def history_name(term: Term) -> str:
    """The last event of a history, for messages."""
    return term.op.removeprefix("fn:") if term.op != "var" else "no event"
