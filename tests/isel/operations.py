"""One-operation kernels: their PTX text, edge-case inputs, and a run of the PTX against the cubin that we make of it."""

from __future__ import annotations

import numpy as np

from sassay.emu import emulate
from sassay.emu.ptx import emulate_ptx
from sassay.pipeline import compile_ptx
from sassay.ptx.parser import parse

THREADS = 64
EDGES = [
    0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000,
    0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF,
    0x3F800000, 0xBF800000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7E900000, 0x4B000001, 0xCF000000,
    0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x0001, 0x83FF, 0x7BFF,
    0x3FF0000000000000, 0xBFF0000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000,
    0xFFF0000000000000, 0x7FF8000000000000, 0x41EFFFFFFFE00000, 0xC3E0000000000000, 0x3FE8000000000000,
]  # fmt: skip

REGISTER = {"pred": "pred"}


def register_type(type_: str) -> str:
    bits = {"8": "b16"}.get(type_.lstrip("usbf"), "")
    if bits:
        return bits
    for size in ("64", "32", "16"):
        if type_.endswith(size) or type_ in ("f16x2", "bf16x2", "s16x2", "u16x2"):
            return f"b{size}" if type_.endswith(size) else "b32"
    return type_


def kernel(name: str, text: str, result: str, sources: tuple[str, ...]) -> str:
    """A kernel that reads its operands a, b, c, e from 64-bit slots, runs `text` into %d, and stores %d as 64 bits."""
    lines = [
        f".visible .entry {name}(.param .u64 in, .param .u64 out)", "{", ".reg .b64 %rd<8>; .reg .b32 %t; .reg .b16 %h; .reg .pred %p<4>;",
        f".reg .{register_type(result)} %d;",
    ]  # fmt: skip
    for letter, type_ in zip("abce", sources, strict=False):
        lines.append(f".reg .{register_type(type_)} %{letter};")
    lines += [
        "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %t, %tid.x;",
        "mul.wide.u32 %rd3, %t, 32; add.s64 %rd1, %rd1, %rd3; mul.wide.u32 %rd3, %t, 8; add.s64 %rd2, %rd2, %rd3;",
    ]
    for i, (letter, type_) in enumerate(zip("abce", sources, strict=False)):
        kind = register_type(type_)
        if kind == "pred":
            lines.append(f"ld.global.u32 %t, [%rd1+{8 * i}]; and.b32 %t, %t, 1; setp.ne.u32 %{letter}, %t, 0;")
        else:
            lines.append(f"ld.global.{kind} %{letter}, [%rd1+{8 * i}];")
    lines.append(text)
    kind = register_type(result)
    if kind == "pred":
        lines.append("selp.b64 %rd4, 1, 0, %d;")
    elif kind == "b64":
        lines.append("mov.b64 %rd4, %d;")
    else:
        lines.append(f"cvt.u64.u{kind[1:]} %rd4, %d;")
    lines += ["st.global.u64 [%rd2], %rd4;", "ret;", "}"]
    return "\n".join(lines)


def module(kernels: list[str], chip: str = "sm_90a") -> str:
    return f".version 8.8\n.target {chip}\n.address_size 64\n" + "\n".join(kernels) + "\n"


def inputs(seed: int) -> np.ndarray:
    """THREADS rows of four 64-bit slots: edge cases and random numbers, in both halves of a slot."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 64, (THREADS, 4), dtype=np.uint64)
    edges = np.array(EDGES, dtype=np.uint64)
    picked = edges[rng.integers(0, len(edges), (THREADS, 4))]
    small = values % np.uint64(70)
    kind = rng.integers(0, 8, (THREADS, 4))
    values = np.where(kind < 5, picked, values)
    values = np.where(kind == 5, small, values)
    return np.ascontiguousarray(values)


def compare(text: str, result: str, sources: tuple[str, ...], chip: str, seed: int = 0) -> list[str]:
    """Differences between the PTX and the cubin, as lines of text; empty when they agree."""
    source = module([kernel("k", text, result, sources)], chip)
    cubin = compile_ptx(source, chip).cubin
    data = inputs(seed)
    want, got = np.zeros(THREADS, np.uint64), np.zeros(THREADS, np.uint64)
    emulate_ptx(parse(source), "k", (1, 1, 1), (THREADS, 1, 1), [data.copy(), want])
    emulate(cubin, "k", (1, 1, 1), (THREADS, 1, 1), [data.copy(), got])
    out = []
    for i in range(THREADS):
        if want[i] != got[i] and not same_nan(int(want[i]), int(got[i]), result):
            row = " ".join(f"{int(v):#x}" for v in data[i][: len(sources)])
            out.append(f"{text} of {row}: PTX {int(want[i]):#x}, cubin {int(got[i]):#x}")
    return out


def same_nan(a: int, b: int, type_: str) -> bool:
    """Both are NaNs of a float type: PTX leaves the payload open."""
    limits = {"f32": 0x7F800000, "f64": 0x7FF0000000000000, "f16": 0x7C00, "bf16": 0x7F80}
    if type_ not in limits:
        return False
    sign = {"f32": 31, "f64": 63}.get(type_, 15)
    mask = (1 << sign) - 1
    return a & mask > limits[type_] and b & mask > limits[type_]
