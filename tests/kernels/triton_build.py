"""Compiles these Triton kernels to the PTX committed beside this file: `python tests/kernels/triton_build.py` with an interpreter that has Triton.

They are made for compute capability 8.0, whose PTX serves every target here. Triton adds two pointer parameters behind the declared ones.
"""

import re
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).resolve().parent


@triton.jit
def triton_softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def triton_matmul(a, b, c, k, BLOCK: tl.constexpr):
    i, j, step = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, BLOCK)
    rows, columns = tl.program_id(0) * 64 + i, tl.program_id(1) * 64 + j
    total = tl.zeros((64, 64), tl.float32)
    width = 64 * tl.num_programs(1)
    for start in range(0, k, BLOCK):
        x = tl.load(a + rows[:, None] * k + start + step[None, :])
        y = tl.load(b + (start + step)[:, None] * width + columns[None, :])
        total += tl.dot(x, y)
    tl.store(c + rows[:, None] * width + columns[None, :], total)


@triton.jit
def triton_layer_norm(x, gain, bias, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, v - tl.sum(v, axis=0) / n, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + 1e-5)
    result = centred * scale * tl.load(gain + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + row * n + at, result.to(tl.bfloat16), mask=inside)


@triton.jit
def triton_dropout(x, out, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    keep = tl.randint(seed, at).to(tl.int32, bitcast=True) > 0
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask=inside) * 2, 0), mask=inside)


@triton.jit
def triton_sort_scan(x, out, sums, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.sort(tl.load(x + at))
    tl.store(out + at, v)
    tl.store(sums + at, tl.cumsum(v, axis=0))


KERNELS = (
    (triton_softmax, {"x": "*fp32", "out": "*fp32", "stride": "i32", "columns": "i32", "BLOCK": "constexpr"}, 512),
    (triton_matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "k": "i32", "BLOCK": "constexpr"}, 32),
    (triton_layer_norm, {"x": "*bf16", "gain": "*fp32", "bias": "*fp32", "out": "*bf16", "n": "i32", "BLOCK": "constexpr"}, 256),
    (triton_dropout, {"x": "*i32", "out": "*i32", "seed": "i32", "n": "i32", "BLOCK": "constexpr"}, 256),
    (triton_sort_scan, {"x": "*i32", "out": "*i32", "sums": "*i32", "BLOCK": "constexpr"}, 128),
)
"""Kernel, its signature, its BLOCK."""


def main() -> None:
    for kernel, signature, block in KERNELS:
        source = ASTSource(fn=kernel, signature=signature, constexprs={"BLOCK": block})
        done = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": 4, "num_stages": 2})
        text = re.sub(r"^\s*(\.loc|\.file)\b.*\n", "", done.asm["ptx"], flags=re.M)
        text = re.sub(r"\n\s*\.section\s+\.debug.*?\n\s*\}", "", text, flags=re.S)
        lines = [line.rstrip() for line in text.splitlines() if not line.startswith("//")]
        (HERE / f"{kernel.fn.__name__}.ptx").write_text("\n".join(lines).strip("\n") + "\n")
        print(kernel.fn.__name__, "shared bytes", done.metadata.shared)


if __name__ == "__main__":
    main()
