"""Runs one SASS instruction, given as text, over arrays or numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from sassay.isa.semantics.numpy_algebra import NUMPY, dtype_of, quiet
from sassay.sass.meaning import Compiled, compile_instruction
from sassay.sass.text import parse_instruction

EDGES32 = [
    0, 1, 2, 3, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF,
]  # fmt: skip


def compiled(text: str) -> Compiled:
    return compile_instruction(parse_instruction(text + " ;"), NUMPY)


def run(text: str, *values: list[int]) -> list[list[int]]:
    """Results by destination, for lists of raw source values in the order of the text's reads."""
    c = compiled(text)
    assert len(values) == len(c.reads), (text, c.reads)
    args: list[Any] = [np.array(v, dtype_of(a.width)) for v, a in zip(values, c.reads, strict=True)]
    if c.lanes:
        args.insert(0, np.ones(32, bool))
    size = max((len(v) for v in values), default=1)
    with quiet():
        return [np.broadcast_to(r, (size,)).tolist() for r in c.run(*args)]


def words(seed: int, count: int = 400, width: int = 32) -> list[int]:
    """Edge values, then random ones of all lengths."""
    rng = random.Random(seed)
    edges = EDGES32 if width == 32 else [e | f << 32 for e in EDGES32[::3] for f in EDGES32[::3]]
    out = [rng.choice(edges) for _ in range(count)]
    return out + [rng.getrandbits(rng.randint(1, width)) for _ in range(count)]
