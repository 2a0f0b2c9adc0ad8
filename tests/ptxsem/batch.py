"""Many cases in few kernels: PTX text, inputs as a buffer of 64-bit slots, and what differs from the expected results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from instruction_cases import Case, bits_of

from sassay.emu import emulate
from sassay.emu.ptx import emulate_ptx
from sassay.ptx.parser import parse

PER_KERNEL = 48
ONE = (1, 1, 1)


def register(type_: str) -> str:
    return "pred" if type_ == "pred" else f"b{bits_of(type_)}"


def body(case: Case, index: int) -> list[str]:
    lines = ["{", f".reg .{register(case.result)} %d; .reg .b64 %o; .reg .b32 %z;"]
    for i, (letter, type_) in enumerate(zip("abce", case.sources, strict=False)):
        lines.append(f".reg .{register(type_)} %{letter}; ld.global.{register(type_)} %{letter}, [%in+{32 * index + 8 * i}];")
    lines.append(case.text)
    kind = register(case.result)
    convert = {"pred": "selp.b64 %o, 1, 0, %d;", "b64": "mov.b64 %o, %d;"}.get(kind, f"cvt.u64.u{kind[1:]} %o, %d;")
    return [*lines, convert, f"st.global.u64 [%out+{8 * index}], %o;", "}"]


def module(cases: Sequence[Case], chip: str = "sm_90a") -> str:
    """Kernels k0, k1, ..., each of PER_KERNEL cases."""
    lines = [f".version 8.8\n.target {chip}\n.address_size 64"]
    for k, start in enumerate(range(0, len(cases), PER_KERNEL)):
        lines += [
            f".visible .entry k{k}(.param .u64 in, .param .u64 out)",
            "{",
            ".reg .b64 %in, %out; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];",
        ]
        for index, case in enumerate(cases[start : start + PER_KERNEL]):
            lines += body(case, index)
        lines += ["ret;", "}"]
    return "\n".join(lines) + "\n"


def wrong(cases: Sequence[Case], launch: Callable[[str, list[np.ndarray]], object]) -> list[str]:
    """Launch each kernel by name with its buffers; one line for each case that gives another result than expected."""
    out = []
    for k, start in enumerate(range(0, len(cases), PER_KERNEL)):
        some = cases[start : start + PER_KERNEL]
        data, results = np.zeros((len(some), 4), np.uint64), np.zeros(len(some), np.uint64)
        for row, case in zip(data, some, strict=True):
            row[: len(case.inputs)] = case.inputs
        launch(f"k{k}", [data, results])
        for case, value in zip(some, results, strict=True):
            if not matches(case, int(value)):
                inputs = ", ".join(f"{v:#x}" for v in case.inputs)
                want = case.expected if isinstance(case.expected, str) else f"{case.expected:#x}"
                out.append(f"{case.text} of {inputs}: {int(value):#x}, not {want} ({case.source})")
    return out


def matches(case: Case, value: int) -> bool:
    if case.expected != "nan":
        return value == case.expected
    limit, mask = {"f32": (0x7F800000, 0x7FFFFFFF), "f64": (0x7FF0000000000000, (1 << 63) - 1)}[case.result]
    return value & mask > limit


def by_interpreter(cases: Sequence[Case], chip: str = "sm_90a") -> list[str]:
    parsed = parse(module(cases, chip))
    return wrong(cases, lambda kernel, buffers: emulate_ptx(parsed, kernel, ONE, ONE, buffers))


def by_cubin(cases: Sequence[Case], assembler: Callable[[str], bytes], chip: str = "sm_90a") -> list[str]:
    cubin = assembler(module(cases, chip))
    return wrong(cases, lambda kernel, buffers: emulate(cubin, kernel, ONE, ONE, buffers, sanitize=False))
