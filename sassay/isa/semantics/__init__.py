"""What each operation computes, written once over an algebra of bit-vectors (`algebra`), with the evidence of every cell."""

from sassay.isa.semantics import bits, convert, exchange, floating, half, integer
from sassay.isa.semantics.shape import Access, Compiled, Shape, Source, compile_shape

__all__ = ["Access", "Compiled", "Shape", "Source", "bits", "compile_shape", "convert", "exchange", "floating", "half", "integer"]
