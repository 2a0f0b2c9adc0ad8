"""Random PTX programs with arbitrary control flow, for differential tests: every block may branch to every other; a fuel counter ends them."""

from __future__ import annotations

import random

import numpy as np
from operations import module

from sassay.emu import emulate
from sassay.emu.ptx import emulate_ptx
from sassay.pipeline import compile_ptx
from sassay.ptx.parser import parse

REGISTERS, WIDE, PREDICATES = 5, 3, 3


def statement(rng: random.Random) -> str:
    """One instruction over the program's registers, sometimes guarded."""
    r = lambda: f"%r{rng.randrange(REGISTERS)}"  # noqa: E731
    w = lambda: f"%w{rng.randrange(WIDE)}"  # noqa: E731
    p = lambda: f"%p{rng.randrange(PREDICATES)}"  # noqa: E731
    v = lambda: r() if rng.random() < 0.7 else str(rng.choice([0, 1, 3, 7, 31, 255, -1, 0x1234]))  # noqa: E731
    kinds = [
        lambda: f"{rng.choice(['add', 'sub', 'mul.lo', 'min', 'max'])}.{rng.choice('us')}32 {r()}, {r()}, {v()};",
        lambda: f"{rng.choice(['and', 'or', 'xor'])}.b32 {r()}, {r()}, {v()};",
        lambda: f"{rng.choice(['shl.b32', 'shr.u32', 'shr.s32'])} {r()}, {r()}, {rng.randrange(40)};",
        lambda: f"setp.{rng.choice(['lt', 'ge', 'eq', 'ne'])}.{rng.choice('us')}32 {p()}, {r()}, {v()};",
        lambda: f"{rng.choice(['and', 'or', 'xor'])}.pred {p()}, {p()}, {p()};",
        lambda: f"selp.b32 {r()}, {r()}, {v()}, {p()};",
        lambda: f"{rng.choice(['add', 'sub', 'mul.lo'])}.u64 {w()}, {w()}, {w()};",
        lambda: f"mad.wide.{rng.choice('us')}32 {w()}, {r()}, {v()}, {w()};",
        lambda: f"cvt.u32.u64 {r()}, {w()};",
        lambda: f"cvt.{rng.choice('us')}64.{rng.choice('us')}32 {w()}, {r()};",
        lambda: f"shr.u64 {w()}, {w()}, {rng.randrange(70)};",
        lambda: f"mov.b32 {r()}, {v()};",
        lambda: f"st.global.u32 [%out+{4 * rng.randrange(4)}], {r()};",
        lambda: f"ld.global.u32 {r()}, [%out+{4 * rng.randrange(4)}];",
        lambda: f"mad.lo.s32 {r()}, {r()}, {v()}, {r()};",
        lambda: f"lop3.b32 {r()}, {r()}, {r()}, {r()}, {rng.randrange(256)};",
    ]
    text = rng.choice(kinds)()
    if rng.random() < 0.25:
        text = f"@{'!' if rng.random() < 0.5 else ''}{p()} {text}"
    return text


def program(seed: int) -> str:
    """A kernel that stores all its registers at the end."""
    rng = random.Random(seed)
    blocks = rng.randint(2, 9)
    lines = [
        ".visible .entry k(.param .u64 out)", "{",
        f".reg .b32 %r<{REGISTERS}>, %fuel, %t; .reg .b64 %w<{WIDE}>, %out, %o; .reg .pred %p<{PREDICATES}>, %done;",
        "ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 64; add.s64 %out, %out, %o; mov.u32 %fuel, 12;",
    ]  # fmt: skip
    lines += [f"mad.lo.u32 %r{i}, %t, {rng.randrange(1, 99)}, {rng.randrange(9)};" for i in range(REGISTERS)]
    lines += [f"mul.wide.u32 %w{i}, %r{i}, 77777;" for i in range(WIDE)]
    lines += [f"setp.gt.u32 %p{i}, %r{i}, {rng.randrange(2000)};" for i in range(PREDICATES)]
    for b in range(blocks):
        lines.append(f"B{b}:")
        lines += [statement(rng) for _ in range(rng.randint(0, 6))]
        lines.append("sub.u32 %fuel, %fuel, 1; setp.eq.u32 %done, %fuel, 0; @%done bra OUT;")
        kind = rng.random()
        if kind < 0.65:
            lines.append(f"@{'!' if rng.random() < 0.5 else ''}%p{rng.randrange(PREDICATES)} bra B{rng.randrange(blocks)};")
        elif kind < 0.75:
            lines.append(f"bra B{rng.randrange(blocks)};")
        elif kind < 0.8:
            lines.append(f"@%p{rng.randrange(PREDICATES)} ret;")
    lines.append("OUT:")
    lines += [f"st.global.u32 [%out+{16 + 4 * i}], %r{i};" for i in range(REGISTERS)]
    lines += [f"st.global.u64 [%out+{40 + 8 * i}], %w{i};" for i in range(WIDE)]
    return "\n".join([*lines, "ret;", "}"])


def run_both(seed: int, chip: str) -> tuple[np.ndarray, np.ndarray]:
    """The output buffers of the PTX interpreter and of our cubin."""
    source = module([program(seed)], chip)
    want, got = np.zeros(64 * 16, np.uint32), np.zeros(64 * 16, np.uint32)
    emulate_ptx(parse(source), "k", (1, 1, 1), (64, 1, 1), [want])
    emulate(compile_ptx(source, chip).cubin, "k", (1, 1, 1), (64, 1, 1), [got])
    return want, got
