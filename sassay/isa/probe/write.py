"""Writes a chip's table file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sassay.isa.tables.forms import Form, form_to_json


def stems(form: Form) -> list[str]:
    """Every first word that the form's text can have: the token behind the guard."""
    found: set[str] = set()
    heads = [t for t in form.base if t[0].isupper()]
    for g in form.groups:
        for (start, stop), column in zip(g.spans, zip(*g.outcomes, strict=True), strict=True):
            del start, stop
            for part in column:
                heads += [t for t in part if t[0].isupper()]
    first = heads[0]
    found.add(first)
    for i, token in enumerate(form.base):
        if token != first:
            continue
        for g in form.groups:
            for k, (start, stop) in enumerate(g.spans):
                if start <= i < stop:
                    found |= {next((t for t in o[k] if t[0].isupper()), first) for o in g.outcomes}
        break
    return sorted(found)


def write_table(path: Path, head: dict[str, Any], forms: Sequence[Form]) -> None:
    """`head`: chip, tool and how the table was built; the index of the forms is added to it."""
    lines = []
    index = []
    offset = 0
    for form in sorted(forms, key=lambda f: (f.opcode, f.name)):
        line = form_to_json(form).encode()
        index.append([form.name, form.opcode, stems(form), offset, len(line), form.seen])
        lines.append(line)
        offset += len(line) + 1
    header = json.dumps({**head, "forms": index}, separators=(",", ":")).encode()
    path.write_bytes(header + b"\n" + b"\n".join(lines) + b"\n")
