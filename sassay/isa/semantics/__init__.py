"""What each operation computes, written once over an algebra of bit-vectors (`algebra`), with the evidence of every cell."""

from sassay.isa.semantics import bits, convert, exchange, floating, half, integer
from sassay.isa.semantics.shape import Access, Compiled, Evidence, Shape, Source, compile_shape, evidence, evidence_of

__all__ = [
    "Access",
    "Compiled",
    "Evidence",
    "Shape",
    "Source",
    "bits",
    "compile_shape",
    "convert",
    "evidence",
    "evidence_of",
    "exchange",
    "floating",
    "half",
    "integer",
]  # fmt: skip
