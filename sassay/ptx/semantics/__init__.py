"""What each PTX instruction computes, over the same algebra as SASS operations: values here, effects as events in `events`."""

from sassay.ptx.semantics.compiled import Compiled, compile_instruction

__all__ = ["Compiled", "compile_instruction"]
