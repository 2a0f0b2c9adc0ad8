"""Cubin files: `read` and `Cubin.to_bytes`, and `build` from finished kernels."""

from sassay.cubin.build import KernelImage, ModuleImage, Variable, build
from sassay.cubin.model import Cubin, Fixup, Kernel, Param, read

__all__ = ["Cubin", "Fixup", "Kernel", "KernelImage", "ModuleImage", "Param", "Variable", "build", "read"]
