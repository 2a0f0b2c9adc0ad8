"""Guesses for a chip from another chip's table: most classes have the same fields, and a guess is cheaper to test than to find."""

from __future__ import annotations

from sassay.isa.probe.learn import Feature, LearntField, Prior
from sassay.isa.probe.oracle import GOOD_CONTROL
from sassay.isa.tables import Table
from sassay.isa.tables.forms import Form


def priors_of(tables: list[Table]) -> dict[tuple[str, int], Prior]:
    """Guesses by (class, opcode); earlier tables win."""
    out: dict[tuple[str, int], Prior] = {}
    for t in tables:
        for i in range(len(t.names)):
            form = t.form(i)
            if (form.name, form.opcode) not in out:
                out[form.name, form.opcode] = prior_of(form)
    return out


def prior_of(form: Form) -> Prior:
    features: list[Feature] = []
    groups: list[list[int]] = []
    for g in form.groups:
        groups.append([])
        for f in g.features:
            groups[-1].append(len(features))
            features.append(Feature(f.bit, f.field, dict(f.cases), f.power, f.size))
    order = {
        (groups[a][0], groups[b][0])
        for at, (a, i) in enumerate(form.order)
        for b, k in form.order[at + 1 :]
        if a != b and form.groups[a].spans[i][1] == form.groups[b].spans[k][0]
    }
    return Prior(
        word=form.default | form.opcode_bits | GOOD_CONTROL,
        relative=any(f.kind == "T" for f in form.fields),
        fields=[LearntField(f.kind, f.bits, f.weights, f.offset) for f in form.fields],
        features=features,
        groups=groups,
        order=order,
        hidden=hidden(form),
    )


def hidden(form: Form) -> dict[int, set[int]]:
    """Raw values at which a field leaves the text, for fields whose special case stands alone."""
    out: dict[int, set[int]] = {}
    for g in form.groups:
        if len(g.features) != 1 or g.features[0].bit >= 0:
            continue
        f = g.features[0]
        for case in range(1, f.size):
            outcome = g.index[case]
            if outcome >= 0 and g.index[0] >= 0:
                token = f"${f.field}"
                gone = any(token in part for part in g.outcomes[g.index[0]]) and not any(token in part for part in g.outcomes[outcome])
                if gone:
                    out.setdefault(f.field, set()).update(raw for raw, c in f.cases.items() if c == case)
    return out
