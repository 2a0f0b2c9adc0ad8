"""A GPU as a device, through cuda-python's bindings of the driver. Every failed call is a DeviceError with the driver's name for it."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from sassay.errors import DeviceError
from sassay.runtime.interface import Array, Attributes, Buffer, Device, Dim, Function, Module, extent, scalar

PORTABLE_SHARED = 48 * 1024
"""Dynamic shared memory beyond this must be asked for (CUDA's documented limit)."""


def bindings() -> Any:
    """The driver bindings; DeviceError where they are not installed."""
    try:
        from cuda.bindings import driver
    except ImportError:
        raise DeviceError("launching on a GPU needs cuda-python: pip install 'sassay[gpu]'; or load on device='emulator'") from None
    return driver


class Driver:
    """The driver's calls, results checked: `driver("cuMemAlloc", n)` gives what the call returns behind its status."""

    def __init__(self, api: Any = None) -> None:
        self.api = bindings() if api is None else api

    def __call__(self, name: str, *arguments: Any) -> Any:
        try:
            status, *values = getattr(self.api, name)(*arguments)
        except RuntimeError as error:  # cuda-python's own: no driver library on this machine
            raise DeviceError(f"no NVIDIA driver: {error}", "CUDA_ERROR_STUB_LIBRARY") from None
        if int(status) != 0:
            raise self.error(name, status)
        return values[0] if len(values) == 1 else tuple(values) if values else None

    def error(self, call: str, status: Any) -> DeviceError:
        """The error that a status stands for, in the driver's own words."""
        words = []
        for ask in ("cuGetErrorName", "cuGetErrorString"):
            _, text = getattr(self.api, ask)(status)
            words.append(text.decode() if isinstance(text, bytes) else str(text))
        return DeviceError(f"{call}: {words[0]}: {words[1]}", words[0])


class GpuBuffer(Buffer):
    """Memory of a GPU."""

    def __init__(self, driver: Driver, values: Array) -> None:
        flat = np.ascontiguousarray(values)
        self.driver, self.shape, self.dtype, self.nbytes = driver, values.shape, values.dtype, flat.nbytes
        self.pointer = driver("cuMemAlloc", max(flat.nbytes, 1))
        self.set(flat)

    @property
    def address(self) -> int:
        return int(self.pointer)

    def get(self) -> Array:
        out = np.empty(self.shape, self.dtype)
        if self.nbytes:
            self.driver("cuMemcpyDtoH", out.ctypes.data, self.pointer, self.nbytes)
        return out

    def set(self, values: Array) -> None:
        flat = np.ascontiguousarray(values)
        if flat.nbytes != self.nbytes:
            raise DeviceError(f"{flat.nbytes} bytes for a buffer of {self.nbytes}", "CUDA_ERROR_INVALID_VALUE")
        if self.nbytes:
            self.driver("cuMemcpyHtoD", self.pointer, flat.ctypes.data, self.nbytes)

    def free(self) -> None:
        self.driver("cuMemFree", self.pointer)


class GpuFunction(Function):
    """A kernel on a GPU."""

    def __init__(self, gpu: Gpu, handle: Any, name: str, params: Sequence[Any]) -> None:
        super().__init__(name, params)
        self.gpu, self.driver, self.handle = gpu, gpu.driver, handle

    def _attribute(self, name: str) -> int:
        return int(self.driver("cuFuncGetAttribute", getattr(self.driver.api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}"), self.handle))

    @property
    def attributes(self) -> Attributes:
        names = ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES", "MAX_THREADS_PER_BLOCK")
        return Attributes(*(self._attribute(name) for name in names))

    def launch(self, grid: Dim, block: Dim, args: Sequence[Any], *, shared_bytes: int, cluster: Dim | None, stream: Any) -> None:
        self.gpu.activate()
        temporary: list[tuple[Array, GpuBuffer]] = []
        try:
            packed = [self._argument(i, value, temporary) for i, value in enumerate(args)]
            self._go(grid, block, packed, shared_bytes, cluster, stream)
            if temporary or stream is None:
                self.driver("cuStreamSynchronize", self._stream(stream))
            for array, buffer in temporary:
                if array.flags.writeable:
                    array[...] = buffer.get()
        finally:
            for _, buffer in temporary:
                buffer.free()

    def _stream(self, stream: Any) -> Any:
        return self.driver.api.CUstream(0 if stream is None else int(stream))

    def _argument(self, index: int, value: Any, temporary: list[tuple[Array, GpuBuffer]]) -> bytes:
        """The bytes of a parameter; arrays get memory that `temporary` keeps."""
        where, size = f"argument {index}", self.params[index].size
        if isinstance(value, np.ndarray) and value.ndim:
            temporary.append((value, GpuBuffer(self.driver, value)))
            return scalar(temporary[-1][1].address, size, where)
        if isinstance(value, GpuBuffer):
            return scalar(value.address, size, where)
        if isinstance(value, Buffer):
            raise DeviceError(f"{where} lives on another device")
        described = getattr(value, "__cuda_array_interface__", None)
        return scalar(value if described is None else int(described["data"][0]), size, where)

    def _go(self, grid: Dim, block: Dim, packed: Sequence[bytes], shared_bytes: int, cluster: Dim | None, stream: Any) -> None:
        api = self.driver.api
        if shared_bytes > PORTABLE_SHARED:
            self.driver("cuFuncSetAttribute", self.handle, api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes, config.hStream = shared_bytes, self._stream(stream)
        config.numAttrs = 0
        if cluster is not None:
            attribute = api.CUlaunchAttribute()
            attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            shape = attribute.value.clusterDim
            shape.x, shape.y, shape.z = cluster
            config.attrs, config.numAttrs = [attribute], 1
        storage = [ctypes.create_string_buffer(data, len(data)) for data in packed]
        pointers = (ctypes.c_void_p * max(len(storage), 1))(*(ctypes.addressof(one) for one in storage))
        self.driver("cuLaunchKernelEx", config, self.handle, ctypes.addressof(pointers), 0)

    def milliseconds(
        self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, repeats: int = 20, shared_bytes: int = 0
    ) -> list[float]:
        self.gpu.activate()
        if any(isinstance(value, np.ndarray) and value.ndim for value in args):
            raise DeviceError("time a launch on buffers: copies of arrays would count")
        packed = [self._argument(i, value, []) for i, value in enumerate(args)]
        stream, flags = self._stream(None), 0
        events = [self.driver("cuEventCreate", flags) for _ in range(2)]
        times = []
        for _ in range(repeats + 1):
            self.driver("cuEventRecord", events[0], stream)
            self._go(extent(grid, "grid"), extent(block, "block"), packed, shared_bytes, None, None)
            self.driver("cuEventRecord", events[1], stream)
            self.driver("cuEventSynchronize", events[1])
            times.append(float(self.driver("cuEventElapsedTime", *events)))
        for event in events:
            self.driver("cuEventDestroy", event)
        return times[1:]  # the first launch loads code


class GpuModule(Module):
    """A cubin on a GPU."""

    def __init__(self, gpu: Gpu, data: bytes) -> None:
        super().__init__(data)
        gpu.activate()
        self.gpu, self.handle = gpu, gpu.driver("cuModuleLoadData", data)

    def function(self, name: str) -> Function:
        return GpuFunction(self.gpu, self.gpu.driver("cuModuleGetFunction", self.handle, name.encode()), name, self._entries[name].params)

    def close(self) -> None:
        if self.handle is not None:
            self.gpu.activate()
            self.gpu.driver("cuModuleUnload", self.handle)
            self.handle = None


class Gpu(Device):
    """A GPU by number, with its primary context (the one that other libraries use as well)."""

    def __init__(self, number: int = 0, api: Any = None) -> None:
        self.driver = Driver(api)
        self.driver("cuInit", 0)
        self.handle = self.driver("cuDeviceGet", number)
        self.context = self.driver("cuDevicePrimaryCtxRetain", self.handle)
        self.activate()
        text = self.driver("cuDeviceGetName", 128, self.handle)
        self.name = (text.decode() if isinstance(text, bytes) else str(text)).rstrip("\0")
        major, minor = (self._ask(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
        self.chip = f"sm_{major}{minor}{'a' if major >= 9 else ''}"

    def _ask(self, name: str) -> int:
        attribute = getattr(self.driver.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.driver("cuDeviceGetAttribute", attribute, self.handle))

    def activate(self) -> None:
        """Makes the context current for the calling thread."""
        self.driver("cuCtxSetCurrent", self.context)

    def load(self, data: bytes) -> Module:
        return GpuModule(self, data)

    def buffer(self, values: Array) -> Buffer:
        self.activate()
        return GpuBuffer(self.driver, values)

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.name, "chip": self.chip, "driver": int(self.driver("cuDriverGetVersion")),
            "multiprocessors": self._ask("MULTIPROCESSOR_COUNT"), "clock_khz": self._ask("CLOCK_RATE"),
            "memory_clock_khz": self._ask("MEMORY_CLOCK_RATE"),
        }  # fmt: skip


def median(times: Sequence[float]) -> float | None:
    """Median of measured times, None if nothing was measured."""
    return statistics.median(times) if times else None
