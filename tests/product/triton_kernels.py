"""Run by an interpreter that has Triton: compiles two kernels for each compute capability and writes PTX and cubins into the folder given."""

import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=at < columns)


SIGNATURES = {
    vector_add: {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    softmax: {"x": "*fp32", "out": "*fp32", "stride": "i32", "columns": "i32", "BLOCK": "constexpr"},
}


def main(folder: Path) -> None:
    for capability in (90, 100, 120):
        for kernel, signature in SIGNATURES.items():
            source = ASTSource(fn=kernel, signature=signature, constexprs={"BLOCK": 1024})
            done = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4})
            stem = f"{kernel.fn.__name__}-sm_{capability}a"
            (folder / f"{stem}.cubin").write_bytes(done.asm["cubin"])
            (folder / f"{stem}.ptx").write_text(done.asm["ptx"])
            (folder / f"{stem}.txt").write_text(f"{done.metadata.name} {done.metadata.shared}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
