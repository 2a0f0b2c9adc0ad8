"""The emulator as a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sassay.cubin import Kernel
from sassay.emu import emulate
from sassay.errors import DeviceError
from sassay.isa.target import target
from sassay.isa.timing.model import TimingModel
from sassay.runtime.interface import Array, Attributes, Buffer, Device, Dim, Function, Module, scalar

MOST_THREADS = 1024


class EmulatedBuffer(Buffer):
    """An array of the host's."""

    def __init__(self, values: Array) -> None:
        self.values = np.array(values, copy=True, order="C")
        self.shape, self.dtype = self.values.shape, self.values.dtype

    def get(self) -> Array:
        return self.values.copy()

    def set(self, values: Array) -> None:
        self.values[...] = np.ascontiguousarray(values).view(self.dtype).reshape(self.shape)

    def free(self) -> None:
        self.values = np.zeros(0, self.dtype)


class EmulatedFunction(Function):
    """A kernel run by the emulator. `findings` are the last launch's."""

    def __init__(self, kernel: Kernel, data: bytes, timing: TimingModel | bool, reserved: int) -> None:
        super().__init__(kernel.name, kernel.params)
        self._kernel, self._data, self._timing, self._reserved = kernel, data, timing, reserved
        self.findings: list[Any] = []

    @property
    def attributes(self) -> Attributes:
        kernel = self._kernel
        threads = int(np.prod(kernel.max_threads or kernel.required_threads or (MOST_THREADS,)))
        return Attributes(kernel.registers, max(kernel.shared - self._reserved, 0), kernel.frame, threads)

    def launch(self, grid: Dim, block: Dim, args: Sequence[Any], *, shared_bytes: int, cluster: Dim | None, stream: Any) -> None:
        if cluster not in (None, (1, 1, 1)):
            raise DeviceError("the emulator has no clusters", "CUDA_ERROR_NOT_SUPPORTED")
        given = [self._argument(i, value) for i, value in enumerate(args)]
        self.findings = []
        result = emulate(self._data, self.name, grid, block, given, shared_bytes=shared_bytes, timing=self._timing)
        self.findings = list(result.findings)

    def _argument(self, index: int, value: Any) -> Any:
        if isinstance(value, EmulatedBuffer):
            return value.values
        if isinstance(value, Buffer) or hasattr(value, "__cuda_array_interface__"):
            raise DeviceError(f"argument {index} lives on another device")
        if isinstance(value, np.ndarray) and value.ndim:
            return value
        return scalar(value, self.params[index].size, f"argument {index}")

    def milliseconds(
        self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, repeats: int = 20, shared_bytes: int = 0
    ) -> list[float]:
        return []


class EmulatedModule(Module):
    """A cubin in the emulator."""

    def __init__(self, data: bytes, timing: TimingModel | bool) -> None:
        super().__init__(data)
        self._data, self._timing = data, timing

    def function(self, name: str) -> Function:
        return EmulatedFunction(self._entries[name], self._data, self._timing, target(self.cubin.target_name).smem_reserved)


class Emulator(Device):
    """Runs cubins of every chip that has tables. With `timing` (True, or the tables to use) control codes count as they do on silicon."""

    def __init__(self, timing: TimingModel | bool = False) -> None:
        self.name, self.chip, self.timing = "emulator", "", timing

    def load(self, data: bytes) -> Module:
        return EmulatedModule(data, self.timing)

    def buffer(self, values: Array) -> Buffer:
        return EmulatedBuffer(values)

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "chip": self.chip, "driver": "", "timing": bool(self.timing)}
