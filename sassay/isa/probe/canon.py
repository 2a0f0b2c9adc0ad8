"""From a learner's findings to a Form in canonical shape, so that the random choices made while learning leave no trace in the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from sassay.isa.probe.learn import ClassLearner
from sassay.isa.probe.parts import Group
from sassay.isa.tables.forms import Feature, Field, Form, Tokens, make_field
from sassay.isa.tables.forms import Group as FormGroup
from sassay.isa.tables.lexer import MARK

PAYLOAD = (1 << 105) - 1


def common_setting(learner: ClassLearner, words: Sequence[int]) -> int:
    """The most frequent word of compiler output with its numbers set to zero, then for each hidden field its most frequent value."""
    masks = Counter(learner.enum_part(w & PAYLOAD) for w in words)
    best = min(masks, key=lambda m: (-masks[m], m))
    for f in learner.fields:
        raws = Counter(f.raw(w) for w in words)
        best = f.put(best, min(raws, key=lambda r: (-raws[r], r)))
    return best


def blank_setting(learner: ClassLearner, habits: dict[int, int]) -> int:
    """A default for a class never seen in compiler output: the habits of other classes for idle bits, PT and RZ, the first legal modifiers
    without an undefined value."""
    owned = learner.owned
    word = (learner.opcode & 0xFFF) | ((learner.opcode >> 12) << 91)
    for b, value in habits.items():
        if b not in owned:
            word |= value << b
    for f in learner.fields:
        if f.is_register and f.kind in ("P", "UP", "R", "UR"):
            top = (1 << len(f.bits)) - 1
            word = f.put(word, next((r for r in (top, 0) if f.value(r) == top), 0))
    for g in learner.groups:
        joint = preferred(learner, g, word)
        for k, case in zip(g.features, cases_of(learner, g, joint), strict=True):
            feature = learner.features[k]
            if feature.bit >= 0:
                word = (word & ~(1 << feature.bit)) | (case << feature.bit)
    return word


def cases_of(learner: ClassLearner, g: Group, joint: int) -> list[int]:
    out = []
    for k in reversed(g.features):
        joint, case = divmod(joint, learner.features[k].size)
        out.append(case)
    return out[::-1]


def preferred(learner: ClassLearner, g: Group, default: int) -> int:
    """The joint value of a group to write the base in: the default's bits and no special case, if legal; else the first legal one."""

    def rank(joint: int) -> tuple[bool, int, int, int]:
        cases = cases_of(learner, g, joint)
        edit = g.edits[joint]
        assert edit is not None
        text = "".join(t for part in edit for t in part)
        special = distance = 0
        for k, case in zip(g.features, cases, strict=True):
            f = learner.features[k]
            if f.bit < 0:
                special += case != 0
            else:
                distance += case != (default >> f.bit) & 1
        return ("INVALID" in text or "?" in text, special, distance, joint)

    return min((j for j, e in enumerate(g.edits) if e is not None), key=rank)


def canonical(learner: ClassLearner, default: int, legal: int, barriers: tuple[int, int], seen: int) -> Form:
    order = sorted(range(len(learner.fields)), key=lambda i: learner.fields[i].bits[0])
    renamed = {old: new for new, old in enumerate(order)}
    rename = {f"{MARK}{old}": f"${new}" for old, new in renamed.items()}

    def tokens(ts: Tokens) -> Tokens:
        return tuple(rename.get(t, t) for t in ts)

    fields = tuple(convert_field(learner, i) for i in order)
    groups = learner.ranked()
    choice = [preferred(learner, g, default) for g in groups]
    base, places, pieces = rebase(learner, groups, choice)
    made = [convert_group(learner, g, spans, renamed, tokens) for g, spans in zip(groups, places, strict=True)]
    sequence = sorted(range(len(made)), key=lambda i: text_place(made[i][0], pieces, i, fields))
    at = {old: new for new, old in enumerate(sequence)}
    return Form(
        name=learner.name,
        opcode=learner.opcode,
        legal=legal,
        barriers=barriers,
        seen=seen,
        base=tokens(base),
        fields=fields,
        groups=tuple(made[i][0] for i in sequence),
        order=tuple((at[g], made[g][1].index(k)) for g, k in pieces if k in made[g][1]),
        default=default & PAYLOAD,
        reuse={bit: renamed[f] for bit, f in learner.reuse.items()},
    )


def text_place(g: FormGroup, pieces: Sequence[tuple[int, int]], number: int, fields: Sequence[Field]) -> tuple[int, int]:
    """Groups in the order of the text; those that only decide legality behind, by their first bit."""
    first = g.features[0]
    bit = first.bit if first.bit >= 0 else fields[first.field].bits[0]
    return (next(n for n, (i, _) in enumerate(pieces) if i == number), 0) if g.spans else (len(pieces), bit)


def convert_field(learner: ClassLearner, i: int) -> Field:
    f = learner.fields[i]
    return make_field(f.kind, f.bits, f.weights, f.offset)


def rebase(
    learner: ClassLearner, groups: Sequence[Group], choice: Sequence[int]
) -> tuple[Tokens, list[list[tuple[int, int]]], list[tuple[int, int]]]:
    """The base with every group at its chosen value, where each group's spans then lie, and all (group, span) in text order."""
    pieces = sorted(
        ((s, e, g, k) for g, group in enumerate(groups) for k, (s, e) in enumerate(group.spans)), key=lambda p: (p[0], p[1])
    )
    places: list[list[tuple[int, int]]] = [[(0, 0)] * len(g.spans) for g in groups]
    out: list[str] = []
    at = 0
    for start, stop, g, k in pieces:
        out += learner.base_tokens[at:start]
        edit = groups[g].edits[choice[g]]
        assert edit is not None
        places[g][k] = (len(out), len(out) + len(edit[k]))
        out += edit[k]
        at = stop
    return tuple(out + list(learner.base_tokens[at:])), places, [(g, k) for _, _, g, k in pieces]


def convert_group(
    learner: ClassLearner, g: Group, spans: list[tuple[int, int]], renamed: dict[int, int], tokens: object
) -> tuple[FormGroup, list[int]]:
    """The group in canonical shape, and which of its spans are left: those that every outcome fills alike are part of the base."""
    convert = tokens
    assert callable(convert)
    edits: list[tuple[Tokens, ...] | None] = [None if e is None else tuple(convert(part) for part in e) for e in g.edits]
    kept: list[tuple[int, int]] = []
    numbers: list[int] = []
    columns: list[list[Tokens]] = []
    for k, (start, stop) in enumerate(spans):
        column = [e[k] for e in edits if e is not None]
        head, tail = shared(column)
        if all(len(c) == head + tail for c in column):
            continue
        kept.append((start + head, stop - tail))
        numbers.append(k)
        columns.append([c[head : len(c) - tail] for c in column])
    rows = iter(list(zip(*columns, strict=True)) if columns else [()] * len(edits))
    by_joint: list[tuple[Tokens, ...] | None] = [None if e is None else tuple(next(rows)) for e in edits]

    def key(k: int) -> tuple[int, int]:
        f = learner.features[k]
        return (0, f.bit) if f.bit >= 0 else (1, renamed[f.field])

    sequence = sorted(range(len(g.features)), key=lambda i: key(g.features[i]))
    sizes = [learner.features[k].size for k in g.features]
    strides = [1] * len(sizes)
    for i in range(len(sizes) - 2, -1, -1):
        strides[i] = strides[i + 1] * sizes[i + 1]
    outcomes: dict[tuple[Tokens, ...], int] = {}
    index = []
    for cases in product(*(range(sizes[i]) for i in sequence)):
        value = by_joint[sum(c * strides[i] for c, i in zip(cases, sequence, strict=True))]
        index.append(-1 if value is None else outcomes.setdefault(value, len(outcomes)))
    features = []
    for i in sequence:
        f = learner.features[g.features[i]]
        features.append(Feature(f.bit, renamed[f.field] if f.bit < 0 else -1, dict(sorted(f.cases.items())), f.power, f.size))
    return FormGroup(tuple(features), tuple(kept), tuple(outcomes), tuple(index)), numbers


def shared(column: Sequence[Tokens]) -> tuple[int, int]:
    """Lengths of the longest prefix and (of the rest) suffix that all have in common."""
    shortest = min(map(len, column))
    head = 0
    while head < shortest and len({c[head] for c in column}) == 1:
        head += 1
    tail = 0
    while tail < shortest - head and len({c[-1 - tail] for c in column}) == 1:
        tail += 1
    return head, tail
