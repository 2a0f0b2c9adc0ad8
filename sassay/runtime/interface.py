"""What a device, a module, a kernel and a buffer are, whichever device they live on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassay.cubin import Param, read
from sassay.errors import DeviceError

Dim = tuple[int, int, int]
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a loaded kernel needs: registers a thread, bytes of static shared memory, of local memory a thread, most threads a block."""

    registers: int
    shared_bytes: int
    local_bytes: int
    max_threads: int


class Buffer(ABC):
    """Memory on a device, in an array's shape and type. Passed to a launch it stays where it is, nothing is copied."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @abstractmethod
    def get(self) -> Array:
        """A copy of the contents."""

    @abstractmethod
    def set(self, values: Array) -> None:
        """Overwrites the contents with values of the same size in bytes."""

    @abstractmethod
    def free(self) -> None:
        """Gives the memory back; the buffer must not be used after."""


class Function(ABC):
    """One kernel of a loaded module."""

    def __init__(self, name: str, params: Sequence[Param]) -> None:
        self.name, self.params = name, tuple(params)

    @property
    @abstractmethod
    def attributes(self) -> Attributes: ...

    @abstractmethod
    def launch(self, grid: Dim, block: Dim, args: Sequence[Any], *, shared_bytes: int, cluster: Dim | None, stream: Any) -> None:
        """The launch itself; arguments and extents have been looked at."""

    @abstractmethod
    def milliseconds(
        self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, repeats: int = 20, shared_bytes: int = 0
    ) -> list[float]:
        """Time of each of `repeats` launches on buffers and scalars, by events; empty on a device that keeps no time."""

    def __call__(
        self, grid: Sequence[int] | int, block: Sequence[int] | int, args: Sequence[Any], *, shared_bytes: int = 0,
        cluster: Sequence[int] | None = None, stream: Any = None,
    ) -> None:  # fmt: skip
        """Runs the kernel and waits for it, unless a `stream` is given and no argument is an array.

        `args`, in order: numpy arrays are copied to the device and, if writeable, back; a `Buffer` or an object with
        `__cuda_array_interface__` is passed by address; scalars (numpy's, int, float, bytes) take their parameter's size.
        """
        if len(args) != len(self.params):
            raise DeviceError(f"{self.name} takes {len(self.params)} arguments, got {len(args)}")
        self.launch(extent(grid, "grid"), extent(block, "block"), args, shared_bytes=shared_bytes,
                    cluster=extent(cluster, "cluster") if cluster is not None else None, stream=stream)  # fmt: skip


class Module(Mapping[str, Function]):
    """A loaded cubin: its kernels by name. A context manager; `close` unloads it."""

    def __init__(self, data: bytes) -> None:
        self.cubin = read(data)
        self._entries = {kernel.name: kernel for kernel in self.cubin.kernels.values() if kernel.entry}
        self._functions: dict[str, Function] = {}

    @abstractmethod
    def function(self, name: str) -> Function:
        """Looks a kernel up on the device."""

    def close(self) -> None:
        """Unloads the module."""

    def __getitem__(self, name: str) -> Function:
        if name not in self._entries:
            raise DeviceError(f"no kernel '{name}'; there are {', '.join(self._entries) or 'none'}", "CUDA_ERROR_NOT_FOUND")
        if name not in self._functions:
            self._functions[name] = self.function(name)
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __enter__(self) -> Module:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Device(ABC):
    """Where cubins run. `name` is the card's (or "emulator"), `chip` such as "sm_90a" ("" where any cubin runs)."""

    name: str
    chip: str

    @abstractmethod
    def load(self, data: bytes) -> Module:
        """Loads a cubin."""

    @abstractmethod
    def buffer(self, values: Array) -> Buffer:
        """Device memory filled with an array's values."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Name, chip, driver and clocks, for the head of a results file."""


def extent(values: Sequence[int] | int, what: str) -> Dim:
    """x, y, z of a grid, block or cluster, ones filled in; DeviceError for anything else."""
    numbers = [values] if isinstance(values, int) else [int(v) for v in values]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise DeviceError(f"bad {what} {tuple(numbers)}", "CUDA_ERROR_INVALID_VALUE")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def scalar(value: Any, size: int, where: str) -> bytes:
    """A scalar argument as the bytes of its parameter; DeviceError if it does not fit."""
    if isinstance(value, (bytes, bytearray)):
        data = bytes(value)
    elif isinstance(value, (np.generic, np.ndarray)):
        data = value.tobytes()
    elif isinstance(value, float):
        data = np.array(value, {2: np.float16, 4: np.float32}.get(size, np.float64)).tobytes()
    elif isinstance(value, int):
        data = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    else:
        raise DeviceError(f"{where} is a {type(value).__name__}")
    if len(data) != size:
        raise DeviceError(f"{where} has {len(data)} bytes, its parameter {size}", "CUDA_ERROR_INVALID_VALUE")
    return data
