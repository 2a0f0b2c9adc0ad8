"""A stand-in for cuda-python's driver bindings: host memory plays the device's, and a Python function the kernel's part."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class Status(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_NOT_FOUND = 500


class FunctionAttribute(enum.IntEnum):
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class DeviceAttribute(enum.IntEnum):
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


class LaunchAttribute(enum.IntEnum):
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4


class FakeDriver:
    """Only what the runtime calls. `sizes`: bytes of the kernel's parameters; `kernel(values)` gets them as integers. `calls` records."""

    CUfunction_attribute, CUdevice_attribute, CUlaunchAttributeID = FunctionAttribute, DeviceAttribute, LaunchAttribute

    def __init__(self, sizes: list[int], kernel: Callable[[list[int]], None]) -> None:
        self.sizes, self.kernel = sizes, kernel
        self.memory: dict[int, Any] = {}
        self.calls: list[tuple[str, Any]] = []
        self.fail: dict[str, Status] = {}

    def CUlaunchConfig(self) -> SimpleNamespace:
        return SimpleNamespace(attrs=[])

    def CUlaunchAttribute(self) -> SimpleNamespace:
        return SimpleNamespace(id=None, value=SimpleNamespace(clusterDim=SimpleNamespace(x=0, y=0, z=0)))

    def CUstream(self, number: int) -> int:
        return number

    def cuMemAlloc(self, size: int) -> tuple[Any, ...]:
        block = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(block)] = block
        return self.done("cuMemAlloc", size), ctypes.addressof(block)

    def cuMemFree(self, pointer: int) -> tuple[Any, ...]:
        del self.memory[pointer]
        return (self.done("cuMemFree", pointer),)

    def cuMemcpyHtoD(self, to: int, source: int, size: int) -> tuple[Any, ...]:
        ctypes.memmove(to, source, size)
        return (self.done("cuMemcpyHtoD", size),)

    def cuMemcpyDtoH(self, to: int, source: int, size: int) -> tuple[Any, ...]:
        ctypes.memmove(to, source, size)
        return (self.done("cuMemcpyDtoH", size),)

    def cuLaunchKernelEx(self, config: Any, handle: Any, params: int, extra: int) -> tuple[Any, ...]:
        status = self.done("cuLaunchKernelEx", config)
        if status == 0:
            pointers = (ctypes.c_void_p * len(self.sizes)).from_address(params)
            self.kernel([int.from_bytes(ctypes.string_at(p, n), "little") for p, n in zip(pointers, self.sizes, strict=True)])
        return (status,)

    def cuFuncGetAttribute(self, attribute: FunctionAttribute, handle: Any) -> tuple[Any, ...]:
        return self.done("cuFuncGetAttribute", attribute), 100 + int(attribute)

    def cuDeviceGetAttribute(self, attribute: DeviceAttribute, device: Any) -> tuple[Any, ...]:
        values = {75: 9, 76: 0}
        return self.done("cuDeviceGetAttribute", attribute), values.get(int(attribute), 1)

    def cuGetErrorName(self, status: Status) -> tuple[Any, ...]:
        return Status.CUDA_SUCCESS, status.name.encode()

    def cuGetErrorString(self, status: Status) -> tuple[Any, ...]:
        return Status.CUDA_SUCCESS, b"what went wrong"

    def done(self, name: str, what: Any) -> Status:
        self.calls.append((name, what))
        return self.fail.get(name, Status.CUDA_SUCCESS)

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if not name.startswith("cu"):
            raise AttributeError(name)
        answers = {"cuDeviceGetName": b"Fake H200\0\0", "cuDriverGetVersion": 13000, "cuEventElapsedTime": 0.5, "cuModuleGetFunction": "function"}
        return lambda *arguments: (self.done(name, arguments), answers.get(name, 1))
