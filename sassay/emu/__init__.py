"""Execution of cubins and of PTX over the one semantics: grids, CTAs, warps; also a sanitizer. `emulate` runs a kernel of a cubin."""

from sassay.emu.launch import EmulationResult, emulate, run_program
from sassay.emu.sanitizer import Finding

__all__ = ["EmulationResult", "Finding", "emulate", "run_program"]
