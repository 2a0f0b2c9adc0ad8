"""Names within a module and a function: nested scopes, and registers declared by range (`%r<100>`), made when first used."""

from __future__ import annotations

from sassay.errors import Location, PtxError
from sassay.ptx.ast import Function, PtxOperand, Register, Variable

Named = Register | Variable | Function


class Scope:
    """One pair of braces. `cache` keeps the operand a plain name stands for; `labels` maps a label to its unique name."""

    __slots__ = ("cache", "labels", "names", "parent", "ranges")

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.names: dict[str, Named] = {}
        self.ranges: dict[str, tuple[int, str, int, Location]] = {}  # prefix -> count, type, vector, place
        self.cache: dict[str, PtxOperand] = {}
        self.labels: dict[str, str] = {}


class FunctionScope:
    """The scopes open at one point of a function, and the function whose registers they fill."""

    __slots__ = ("current", "function")

    def __init__(self, function: Function, module_names: dict[str, Named]) -> None:
        self.function = function
        outer = Scope(None)
        outer.names = module_names
        self.current = Scope(outer)

    def push(self) -> None:
        self.current = Scope(self.current)

    def pop(self) -> None:
        parent = self.current.parent
        assert parent is not None
        self.current = parent

    @property
    def depth(self) -> int:
        """Number of braces open inside the body."""
        depth, scope = -2, self.current
        while scope.parent is not None:
            depth, scope = depth + 1, scope.parent
        return depth + 1

    def declare(self, name: str, item: Named, place: Location) -> None:
        """Add a variable or register to the innermost scope."""
        scope = self.current
        if name in scope.names or name in scope.labels:
            raise PtxError(f"duplicate definition of '{name}'", place)
        scope.names[name] = item
        scope.cache.pop(name, None)

    def declare_range(self, prefix: str, count: int, type_: str, vector: int, place: Location) -> None:
        """`prefix<count>`: registers prefix0 to prefix(count-1)."""
        if prefix in self.current.ranges:
            raise PtxError(f"duplicate definition of '{prefix}<{self.current.ranges[prefix][0]}>'", place)
        self.current.ranges[prefix] = (count, type_, vector, place)
        self.current.cache.clear()

    def register(self, name: str, type_: str, vector: int, place: Location | None) -> Register:
        """A new register of the function."""
        registers = self.function.registers
        item = Register(name, type_, len(registers), place, vector)
        registers.append(item)
        return item

    def find(self, name: str) -> Named | None:
        """What a name stands for here, innermost scope first."""
        splits = _splits(name)
        scope: Scope | None = self.current
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            if scope.ranges:
                for head, index in splits:
                    declared = scope.ranges.get(head)
                    if declared is not None and index < declared[0]:
                        item = self.register(name, declared[1], declared[2], declared[3])
                        scope.names[name] = item
                        return item
            scope = scope.parent
        return None


def _splits(name: str) -> list[tuple[str, int]]:
    """Ways to read a name as a range's prefix and an index without leading zeros: `a10` is `a`<10> or `a1`<0>."""
    stem = len(name.rstrip("0123456789"))
    return [(name[:k], int(name[k:])) for k in range(max(stem, len(name) - 10), len(name)) if name[k] != "0" or k == len(name) - 1]
