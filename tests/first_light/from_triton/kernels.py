"""Triton kernels of first light and the PTX that Triton 3.9 makes of them: `python kernels.py` in an environment with Triton writes the PTX here."""

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / columns
    centred = tl.where(mask, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(weight + at, mask=mask).to(tl.float32)
    b = tl.load(bias + at, mask=mask).to(tl.float32)
    tl.store(out + row * columns + at, (centred * scale * w + b).to(tl.float16), mask=mask)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    keep = tl.rand(seed, at) > p
    v = tl.load(x + at, mask=mask)
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0), mask=mask)


@triton.jit
def running_sum(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * n + at, mask=at < n, other=0)
    tl.store(out + row * n + at, tl.cumsum(v, axis=0), mask=at < n)


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        left = tl.load(a + rows[:, None] * k + (start + inner)[None, :], mask=(rows[:, None] < m) & ((start + inner)[None, :] < k), other=0.0)
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :], mask=((start + inner)[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


KERNELS = (
    (softmax, {"x": "*fp32", "out": "*fp32", "stride": "i32", "columns": "i32", "BLOCK": "constexpr"}, {"BLOCK": 1024}),
    (
        layer_norm,
        {"x": "*fp16", "weight": "*fp16", "bias": "*fp16", "out": "*fp16", "columns": "i32", "eps": "fp32", "BLOCK": "constexpr"},
        {"BLOCK": 512},
    ),
    (dropout, {"x": "*fp32", "out": "*fp32", "n": "i32", "p": "fp32", "seed": "i32", "BLOCK": "constexpr"}, {"BLOCK": 512}),
    (running_sum, {"x": "*i32", "out": "*i32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256}),
    (
        matmul,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32", "k": "i32", "BM": "constexpr", "BN": "constexpr", "BK": "constexpr"},
        {"BM": 32, "BN": 32, "BK": 16},
    ),
)


def main() -> None:
    for kernel, signature, constants in KERNELS:
        for capability in (90, 100, 120):
            source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
            warps = 1 if kernel is matmul else 4
            done = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps, "num_stages": 1})
            text = done.asm["ptx"]
            head, _, _ = text.partition("\t.section\t.debug")
            lines = [s for s in head.splitlines() if not s.lstrip().startswith((".loc", ".file", "//", "$L__tmp", "$L__func"))]
            name = f"{kernel.fn.__name__}.sm_{capability}a.ptx"
            Path(__file__).with_name(name).write_text(f"// shared: {done.metadata.shared}\n" + "\n".join(lines).strip() + "\n")


if __name__ == "__main__":
    main()
