"""Encoding tables, one data file a chip, loaded form by form when asked for.

A table file has a header line (JSON: chip, tool and its hash, and an index of the forms) and one line of JSON for each form.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path

from sassay.errors import UnsupportedError
from sassay.isa.tables.forms import Form, form_from_json

DIRECTORY = Path(__file__).parent


class Table:
    """The forms of one chip. `by_opcode` and `by_stem` give form numbers, `by_stem` those that compilers use most first. `form(i)` parses a form
    on first use."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        end = data.index(b"\n")
        self.header = json.loads(data[:end])
        self._data = memoryview(data)[end + 1 :]
        self._forms: dict[int, Form] = {}
        self.names: list[str] = []
        self.by_opcode: dict[int, list[int]] = defaultdict(list)
        self.by_stem: dict[str, list[int]] = defaultdict(list)
        self._places: list[tuple[int, int]] = []
        seen: list[int] = []
        for i, (name, opcode, stems, offset, length, count) in enumerate(self.header["forms"]):
            seen.append(count)
            self.names.append(name)
            self.by_opcode[opcode].append(i)
            for stem in stems:
                self.by_stem[stem].append(i)
            self._places.append((offset, length))
        for numbers in self.by_stem.values():
            numbers.sort(key=lambda i: -seen[i])

    def form(self, i: int) -> Form:
        found = self._forms.get(i)
        if found is None:
            offset, length = self._places[i]
            found = self._forms[i] = form_from_json(bytes(self._data[offset : offset + length]))
        return found


@cache
def table(chip: str) -> Table:
    """The table of a chip (`Target.chip`, such as "sm_90a")."""
    path = DIRECTORY / f"{chip}.jsonl"
    if not path.exists():
        raise UnsupportedError(f"no encoding table for {chip}; `make tables CHIP={chip}` builds one")
    return Table(path)
