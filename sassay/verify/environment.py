"""What both sides of a proof share from outside: parameters, special registers, addresses of variables, constant data."""

from __future__ import annotations

from dataclasses import dataclass, field

from sassay.errors import ProofError
from sassay.verify.terms import Term, Terms


@dataclass(slots=True)
class Environment:
    """Names for what a launch supplies. `shared` and `local` give byte offsets of variables in shared memory and in the stack frame."""

    terms: Terms
    shared: dict[str, int] = field(default_factory=dict)
    local: dict[str, int] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    local_ranges: list[tuple[int, int]] = field(default_factory=list)
    assumptions: set[str] = field(default_factory=set)

    def parameter(self, offset: int, size: int) -> Term:
        """`size` bytes of the parameter block at `offset`."""
        return self._words("param", offset, size)

    def constant(self, bank: int, offset: int, size: int) -> Term:
        """Bytes of a constant bank that no better name is known for."""
        return self._words(f"c{bank}", offset, size)

    def _words(self, name: str, offset: int, size: int) -> Term:
        first, last = offset // 4, (offset + size - 1) // 4
        words = [self.terms.var(f"{name}+{4 * i:#x}", 32) for i in range(first, last + 1)]
        whole = self.terms.concat(*reversed(words))
        low = 8 * (offset - 4 * first)
        return self.terms.extract(whole, low + 8 * size - 1, low)

    def special(self, name: str, width: int) -> Term:
        """A special register by PTX name with component ("tid.x")."""
        return self.terms.var(f"%{name}", width)

    def shared_base(self, width: int) -> Term:
        """Where this CTA's shared memory starts in the shared window: the rank in the cluster in bits 24 up, past the reserved KiB."""
        rank = self.special("cluster_ctarank", 32)
        base = self.terms.add(self.terms.shl(rank, self.terms.const(24, 32)), self.terms.const(0x400, 32))
        return self.terms.zext(base, width) if width > 32 else base

    def indexed_constant(self, bank: int, offset: Term, size: int) -> Term:
        """Bytes of a constant bank at a computed offset."""
        return self.terms.opaque(f"constant.{bank}", (offset,), 8 * size, size)

    def in_local(self, offset: int, size: int) -> bool:
        """Whether bytes at an offset from the stack pointer at entry belong to a local variable of the PTX."""
        offset = offset - (1 << 32) if offset >> 31 else offset
        return any(start < offset + size and offset < start + length for start, length in self.local_ranges)

    def address(self, symbol: str, space: str) -> Term:
        """The 64-bit address of a variable."""
        if space == "shared":
            if symbol not in self.shared:
                raise ProofError(f"no place is known for the shared variable '{symbol}'")
            return self.terms.add(self.shared_base(64), self.terms.const(self.shared[symbol], 64))
        if space == "const":
            if symbol not in self.constants:
                raise ProofError(f"no place is known for the constant '{symbol}'")
            return self.terms.add(self.constant_base(), self.terms.const(self.constants[symbol], 64))
        if space == "local":
            if symbol not in self.local:
                raise ProofError(f"no place is known for the local variable '{symbol}'")
            return self.terms.add(self.stack(64), self.terms.const(self.local[symbol], 64))
        return self.terms.var(f"&{symbol}", 64)

    def constant_base(self) -> Term:
        """The address where the module's constant bank starts, for PTX addresses of .const variables."""
        return self.terms.var("&bank3", 64)

    def load_constant(self, address: Term, size: int) -> Term:
        """Bytes of the module's constant bank at a PTX address, as the SASS side names them."""
        distance = self.terms.sub(address, self.constant_base())
        if distance.is_const:
            return self.constant(3, distance.value, size)
        return self.indexed_constant(3, self.terms.extract(distance, 31, 0), size)

    def stack(self, width: int) -> Term:
        """The stack pointer at entry, as a local address."""
        pointer = self.terms.var("stack", 32)
        return self.terms.zext(pointer, width) if width > 32 else pointer
