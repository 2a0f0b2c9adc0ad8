"""sassay: PTX to proved cubins for NVIDIA Hopper and Blackwell.

`compile`, `assemble`, `disassemble`, `read_cubin`, `check`, `prove`, `emulate`, `load`: each loads what it needs on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sassay.cubin import Cubin
    from sassay.pipeline import CompileOptions, CompileResult
    from sassay.verify.hazards import Finding
    from sassay.verify.prove import Proof

__version__ = "0.1.0"
__all__ = ["assemble", "check", "compile", "disassemble", "emulate", "load", "prove", "read_cubin"]

_ELSEWHERE = {"emulate": "sassay.emu", "load": "sassay.runtime"}
"""Names of the API that other packages define under the same name."""


def compile(ptx: str, target: str, options: CompileOptions | None = None, *, file: str = "<ptx>") -> CompileResult:
    """Compile PTX text for a target such as "sm_90a"; the result's `cubin` holds the bytes."""
    from sassay.pipeline import compile_ptx

    return compile_ptx(ptx, target, options, file=file)


def read_cubin(data: bytes) -> Cubin:
    """The typed model of a cubin file; `read_cubin(data).to_bytes() == data`."""
    from sassay.cubin import read

    return read(data)


def disassemble(data: bytes, kernel: str | None = None, *, control: str = "bracket") -> str:
    """Text of a cubin that `assemble` turns back into the same bytes, or of one kernel's code. `control`: "bracket", "colon" or "none".

    SassError for a word that is no instruction.
    """
    from sassay.cubin import read
    from sassay.cubin.listing import write, write_kernels
    from sassay.errors import SassError

    cubin = read(data)
    listing = write(cubin, control) if kernel is None else write_kernels(cubin, [kernel], control)
    if not listing.complete:
        raise SassError("\n".join(listing.warnings))
    return listing.text


def assemble(text: str, *, file: str = "<sass>", target: str | None = None) -> bytes:
    """A cubin from its text form; from bare instructions the raw words, for the text's `.target` or `target`."""
    from sassay.cubin.assembler import assemble as run

    return run(text, file, target)


def check(data: bytes | Cubin, kernel: str | None = None) -> list[Finding]:
    """Hazards that the control codes of a cubin (or of one kernel) leave open."""
    from sassay.verify.hazards import check as run

    return run(data, kernel)


def prove(
    ptx: str, data: bytes, kernel: str, *, file: str = "<ptx>", seconds: float = 60.0, blocks: Mapping[str, int] | None = None
) -> Proof:
    """Prove that a kernel of a cubin does what the PTX of that name says; the verdict says whether that succeeded, and why not.

    `blocks`: where the compiler says the PTX's labels stand in the code (byte offsets), to pair loops by; it need not be true.
    """
    import hashlib

    from sassay.ptx.parser import parse
    from sassay.verify.prove import Witness, prove_kernel

    witness = Witness(blocks=blocks) if blocks is not None else None
    proof = prove_kernel(parse(ptx, file), kernel, data, witness=witness, seconds=seconds)
    proof.ptx_hash = hashlib.sha256(ptx.encode()).hexdigest()
    return proof


def __getattr__(name: str) -> Any:
    home = _ELSEWHERE.get(name)
    if home is None:
        raise AttributeError(f"module 'sassay' has no attribute '{name}'")
    return getattr(importlib.import_module(home), name)
