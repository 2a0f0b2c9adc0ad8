"""Memory as ordered events: what a load sees, and when two histories of stores are the same.

Each address space holds a base token (all that happened before, opaque) and the accesses since. Weak accesses commute when they cannot
touch the same bytes or cannot both happen; strong ones (volatile, relaxed, atomic) also keep their order among themselves; a fence or
barrier folds everything into a new token. A history's canonical order is the least linear extension by interned identity, so that two
schedules of the same accesses give the same token. Aliasing is decided by intervals over a common base; different bases may alias.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sassay.verify.terms import Term, Terms

TOKEN_BITS = 64
"""Width of the terms that stand for histories; only their identity matters."""


@dataclass(frozen=True, slots=True)
class Access:
    """A store, or an atomic update, under `guard`. `kind` and `extra` tell kinds apart ("store", "atom.add.u32", ...)."""

    kind: str
    guard: Term
    address: Term
    size: int
    values: tuple[Term, ...]
    strong: bool

    @property
    def key(self) -> tuple[object, ...]:
        return (self.address.ident, self.guard.ident, self.kind, self.size, tuple(v.ident for v in self.values))


@dataclass(slots=True)
class Space:
    token: Term
    pending: list[Access] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Logged:
    """An access as it happened: its space, how many fences came before it, and the term that stands for it in histories."""

    space: str
    segment: int
    access: Access
    event: Term


class Memory:
    """The memory of one side of a proof within a region. `log` holds every access, in program order."""

    def __init__(self, terms: Terms, spaces: tuple[str, ...] = ("global", "shared", "local", "generic", "const")) -> None:
        self.terms = terms
        self.spaces = {name: Space(terms.var(f"memory.{name}", TOKEN_BITS)) for name in spaces}
        self.log: list[Logged] = []
        self.segment = 0

    # asking

    def disjoint(self, a: Term, a_size: int, b: Term, b_size: int) -> bool:
        """Whether [a, a+a_size) and [b, b+b_size) cannot meet: one base, offsets apart."""
        difference = self.terms.sub(a, b)
        if not difference.is_const:
            return False
        distance = difference.value
        return b_size <= distance <= (1 << a.width) - a_size

    def exclusive(self, a: Term, b: Term) -> bool:
        """Whether two guards cannot both hold."""
        both = self.terms.and_(a, b)
        return both.is_const and both.value == 0

    def commute(self, a: Access, b: Access) -> bool:
        """Whether two accesses of one space may change places unseen."""
        if self.exclusive(a.guard, b.guard):
            return True
        if a.strong and b.strong:
            return False
        return self.disjoint(a.address, a.size, b.address, b.size)

    # acting

    def store(
        self, space: str, guard: Term, address: Term, size: int, values: tuple[Term, ...], *, kind: str = "store", strong: bool = False
    ) -> None:
        """Append a store of `size` bytes in all; `values` are its parts from the lowest address up."""
        words = tuple(self.terms.extract(v, low + 31, low) if v.width > 32 else v for v in values for low in range(0, v.width, 32))
        if not (guard.is_const and guard.value == 0):
            self._append(space, Access(kind, guard, address, size, words, strong))

    def _append(self, space: str, access: Access) -> None:
        self.spaces[space].pending.append(access)
        self.log.append(Logged(space, self.segment, access, self.event(access)))

    def event(self, access: Access) -> Term:
        """The term that stands for an access in histories."""
        return self.terms.opaque(f"event.{access.kind}", (access.guard, access.address, *access.values), TOKEN_BITS, access.size)

    def load(self, space: str, guard: Term, address: Term, size: int) -> Term:
        """The `size` bytes at `address` as one term, when `guard` holds; wide loads are made of words, as stores are."""
        if size > 4:
            step = self.terms.const(4, address.width)
            rest = self.load(space, guard, self.terms.add(address, step), size - 4)
            return self.terms.concat(rest, self.load(space, guard, address, 4))
        state = self.spaces[space]
        relevant = [a for a in state.pending if not self.exclusive(a.guard, guard) and not self.disjoint(a.address, a.size, address, size)]
        if relevant:
            forwarded = self._forward(relevant[-1], guard, address, size)
            if forwarded is not None:
                return forwarded
        token = self._fold(state.token, relevant) if relevant else state.token
        return self.terms.opaque(f"load.{space}", (token, address), 8 * size, size)

    def _forward(self, last: Access, guard: Term, address: Term, size: int) -> Term | None:
        """The stored value when the last access that may matter covers the whole load and surely happened."""
        if last.kind != "store" or self.terms.and_(last.guard, guard) is not guard:
            return None
        distance = self.terms.sub(address, last.address)
        if not distance.is_const or distance.value + size > last.size:
            return None
        whole = self.terms.concat(*reversed(last.values)) if last.values[1:] else last.values[0]
        return self.terms.extract(whole, 8 * (distance.value + size) - 1, 8 * distance.value)

    def atomic(self, space: str, guard: Term, address: Term, size: int, operands: tuple[Term, ...], kind: str) -> Term:
        """An atomic update: its old value, as an opaque function of the history that it sees."""
        state = self.spaces[space]
        relevant = [
            a for a in state.pending
            if not self.exclusive(a.guard, guard) and (a.strong or not self.disjoint(a.address, a.size, address, size))
        ]  # fmt: skip
        token = self._fold(state.token, relevant) if relevant else state.token
        result = self.terms.opaque(f"old.{space}.{kind}", (token, address, *operands), 8 * size)
        self._append(space, Access(kind, guard, address, size, operands, True))
        return result

    def fence(self, name: str, guard: Term, operands: tuple[Term, ...] = (), spaces: tuple[str, ...] = ("global", "shared")) -> Term:
        """A barrier or fence: everything before it is folded; the new tokens depend on all of it. Returns its token."""
        self.segment += 1
        before = tuple(self.token(s) for s in spaces)
        token = self.terms.opaque(f"fence.{name}", (*before, guard, *operands), TOKEN_BITS)
        for s in spaces:
            self.spaces[s] = Space(self.terms.opaque(f"after.{s}", (token,), TOKEN_BITS))
        return token

    def token(self, space: str) -> Term:
        """One term for the whole history of a space."""
        state = self.spaces[space]
        return self._fold(state.token, state.pending) if state.pending else state.token

    def _fold(self, base: Term, accesses: list[Access]) -> Term:
        token = base
        for a in self._canonical(accesses):
            token = self.terms.opaque("access", (token, self.event(a)), TOKEN_BITS)
        return token

    def _canonical(self, accesses: list[Access]) -> list[Access]:
        """The least order, by interned identity, that keeps every pair that does not commute."""
        count = len(accesses)
        if count < 2:
            return list(accesses)
        blockers = [{i for i in range(j) if not self.commute(accesses[i], accesses[j])} for j in range(count)]
        left = set(range(count))
        order: list[Access] = []
        while left:
            ready = [j for j in left if not blockers[j] & left]
            chosen = min(ready, key=lambda j: accesses[j].key)
            left.remove(chosen)
            order.append(accesses[chosen])
        return order
