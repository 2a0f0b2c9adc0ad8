"""The memories of a launch: flat stores of 32-bit words that all lanes address at once.

An access is a one-dimensional array of byte positions in the store, one per active lane. Values travel as 32-bit words: a load of 16 bytes gives
four arrays. A `Fault` names the first lane at fault; the machine turns it into an error with kernel, offset and thread.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Words = tuple[Array, ...]

GLOBAL_BASE = 0x7F40_0000_0000
"""Address of the first byte of global memory (the emulator's own choice: hardware fixes none)."""
SHARED_WINDOW = 0x7F20_0000_0000
"""Generic address of shared memory: its low 32 bits are zero, so that SR_SWINHI is the upper half. The emulator's own choice."""
LOCAL_WINDOW = 0x7F10_0000_0000
"""Generic address of local memory. The emulator's own choice."""
ALLOCATION = 512
"""Allocations start at multiples of this, with at least as many bytes between them as a red zone."""


class Fault(Exception):
    """A bad access: `why` and the position, in the access's array, of the first bad lane."""

    def __init__(self, why: str, lane: int, address: int) -> None:
        super().__init__(why)
        self.why = why
        self.lane = lane
        self.address = address


class Store:
    """A flat store. Consecutive words of one access lie `stride` words apart (1, or the number of lanes in interleaved local memory)."""

    def __init__(self, size: int, stride: int = 1) -> None:
        self.resize(size)
        self.stride = stride

    def resize(self, size: int) -> None:
        """Makes the store `size` bytes, all zero."""
        self.words: Array = np.zeros((size + 3) // 4, np.uint32)
        self.halves: Array = self.words.view(np.uint16)
        self.bytes: Array = self.words.view(np.uint8)

    def load(self, at: Array, size: int) -> Words:
        """The words at byte positions `at`; one- and two-byte values are zero-extended."""
        if size == 4:
            return (self.words.take(at >> 2),)
        if size == 1:
            return (self.bytes.take(at).astype(np.uint32),)
        if size == 2:
            return (self.halves.take(at >> 1).astype(np.uint32),)
        first = at >> 2
        return tuple(self.words.take(first + k * self.stride) for k in range(size // 4))

    def store(self, at: Array, size: int, values: Words) -> None:
        """Writes words at byte positions `at`; of lanes that meet, the last one wins."""
        if size == 4:
            self.words[at >> 2] = values[0]
        elif size == 1:
            self.bytes[at] = values[0].astype(np.uint8)
        elif size == 2:
            self.halves[at >> 1] = values[0].astype(np.uint16)
        else:
            first = at >> 2
            for k in range(size // 4):
                self.words[first + k * self.stride] = values[k]


@dataclass(slots=True)
class Buffer:
    """One allocation of global memory: address and size in bytes."""

    name: str
    address: int
    size: int


class GlobalMemory(Store):
    """Global memory: allocations in rising order of address, each with a red zone behind it."""

    def __init__(self) -> None:
        super().__init__(0)
        self.buffers: list[Buffer] = []
        self.starts: list[int] = []
        self.top = GLOBAL_BASE

    def allocate(self, name: str, size: int) -> Buffer:
        """Reserves `size` bytes. Contents come after `commit`."""
        buffer = Buffer(name, self.top, size)
        self.buffers.append(buffer)
        self.starts.append(buffer.address)
        self.top += (size // ALLOCATION + 2) * ALLOCATION
        return buffer

    def commit(self) -> None:
        """Makes the store as large as the allocations so far; they read as zero."""
        self.resize(self.top - GLOBAL_BASE)
        self.start_array = np.array(self.starts, np.uint64)
        self.end_array = np.array([b.address + b.size for b in self.buffers], np.uint64)

    def write(self, buffer: Buffer, data: bytes | memoryview, offset: int = 0) -> None:
        """Copies host bytes into a buffer."""
        start = buffer.address - GLOBAL_BASE + offset
        self.bytes[start : start + len(data)] = np.frombuffer(data, np.uint8)

    def read(self, buffer: Buffer) -> bytes:
        """A buffer's bytes."""
        start = buffer.address - GLOBAL_BASE
        return self.bytes[start : start + buffer.size].tobytes()

    def locate(self, address: Array, size: int) -> Array:
        """Byte positions of 64-bit addresses, checked: each access lies within one allocation."""
        low, high = int(address.min()), int(address.max())
        index = bisect_right(self.starts, low) - 1
        if index < 0 or high + size > self.buffers[index].address + self.buffers[index].size:
            self._check_each(address, size)
        return (address - np.uint64(GLOBAL_BASE)).view(np.int64)

    def _check_each(self, address: Array, size: int) -> None:
        if not self.buffers:
            raise Fault("global access without any allocation", 0, int(address[0]))
        index = np.searchsorted(self.start_array, address, side="right") - 1
        bad = (index < 0) | (address + np.uint64(size) > self.end_array[np.maximum(index, 0)])
        if bad.any():
            lane = int(bad.argmax())
            at = int(address[lane])
            raise Fault(f"global access of {size} bytes out of bounds at {at:#x}{self._nearest(at)}", lane, at)

    def _nearest(self, address: int) -> str:
        index = bisect_right(self.starts, address) - 1
        if index < 0:
            return ""
        buffer = self.buffers[index]
        return f" ({address - buffer.address - buffer.size} bytes past the end of '{buffer.name}')"


def aligned(at: Array, size: int, space: str) -> None:
    """Raises a Fault unless every position is a multiple of `size` (16 at most)."""
    if size > 1:
        odd = at & (min(size, 16) - 1)
        if odd.any():
            lane = int((odd != 0).argmax())
            raise Fault(f"misaligned {space} access of {size} bytes", lane, int(at[lane]))
