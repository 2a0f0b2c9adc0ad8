"""What a launch of a test kernel is, the registry of kernels, and what their descriptions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
Dim = tuple[int, int, int]
F32, F64, I32, U32, I64, U64 = np.float32, np.float64, np.int32, np.uint32, np.int64, np.uint64


@dataclass
class Launch:
    """One launch. Results are compared bit for bit (NaNs equal NaNs) unless `rtol` or `atol` is set."""

    grid: Dim
    block: Dim
    args: list[Any]
    expected: dict[int, np.ndarray]
    shared_bytes: int = 0
    rtol: float = 0.0
    atol: float = 0.0

    def check(self, args: list[Any]) -> None:
        """Raises AssertionError where a buffer of `args` (the arguments after the launch) is not as expected."""
        for index, want in self.expected.items():
            got = args[index]
            if (self.rtol or self.atol) and want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, rtol=self.rtol, atol=self.atol, err_msg=f"argument {index}")
            else:
                np.testing.assert_array_equal(got, want, err_msg=f"argument {index}")


@dataclass
class Spec:
    """A kernel and how to launch it; `tags` name what it exercises ("f32", "shared", "shuffle", "calls" ...); "races": warps talk
    through plain shared memory, which a sanitizer must report."""

    name: str
    make: Callable[[np.random.Generator], Launch]
    tags: frozenset[str] = field(default_factory=frozenset)

    @property
    def ptx(self) -> str:
        """The kernel's PTX text."""
        return (HERE / f"{self.name}.ptx").read_text()


SPECS: dict[str, Spec] = {}


def spec(*tags: str) -> Callable[[Callable[[np.random.Generator], Launch]], Callable[[np.random.Generator], Launch]]:
    """Registers a function that makes a launch under the function's own name."""

    def register(make: Callable[[np.random.Generator], Launch]) -> Callable[[np.random.Generator], Launch]:
        SPECS[make.__name__] = Spec(make.__name__, make, frozenset(tags))
        return make

    return register


def ints(rng: np.random.Generator, n: int, low: int = -(2**31), high: int = 2**31) -> np.ndarray:
    return rng.integers(low, high, n, dtype=np.int64).astype(I32)


def words(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 2**32, n, dtype=np.uint64).astype(U32)


def floats(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal(n).astype(F32)


def fma32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Fused multiply-add in f32 (through extended precision: the product is exact there, double rounding is as good as impossible)."""
    return (a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)).astype(F32)


def wrap(x: int) -> int:
    """To a signed 32-bit integer."""
    return (x + 2**31) % 2**32 - 2**31
