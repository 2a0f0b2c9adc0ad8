"""Classes of operations for timing: which class an instruction belongs to."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from sassay.errors import SassError


def load(name: str) -> dict[str, object]:
    """One data file of `sassay/isa/timing/data`."""
    return tomllib.loads(files("sassay.isa.timing").joinpath("data", name).read_text(encoding="ascii"))


def _rules(table: dict[str, list[str]]) -> dict[str, list[tuple[frozenset[str], str]]]:
    """opcode -> [(modifiers wanted, class)], most modifiers first."""
    out: dict[str, list[tuple[frozenset[str], str]]] = {}
    for name, ops in table.items():
        for op in ops:
            opcode, *wanted = op.split("+")
            out.setdefault(opcode, []).append((frozenset(wanted), name))
    for rows in out.values():
        rows.sort(key=lambda row: -len(row[0]))
    return out


@cache
def _shared() -> dict[str, list[str]]:
    classes = load("classes.toml")["classes"]
    assert isinstance(classes, dict)
    return {name: row["ops"].split() for name, row in classes.items()}


class Classifier:
    """Names the class of an (opcode, modifiers) pair on one chip; `moved` maps a class to operations taken from the shared table."""

    def __init__(self, moved: dict[str, str]) -> None:
        table = {name: list(ops) for name, ops in _shared().items()}
        for target, ops in moved.items():
            for op in ops.split():
                for rows in table.values():
                    if op in rows:
                        rows.remove(op)
                table.setdefault(target, []).append(op)
        self.rules = _rules(table)
        self.names = tuple(table)

    def name(self, opcode: str, modifiers: tuple[str, ...]) -> str:
        """The class, or a SassError that names the operation."""
        for wanted, name in self.rules.get(opcode, ()):
            if wanted <= set(modifiers):
                return name
        raise SassError(f"no timing class for {'.'.join((opcode, *modifiers))}")
