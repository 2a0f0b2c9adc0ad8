"""Launching: one interface over the emulator and over the driver, whose calls a fake takes here."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sassay
from sassay.errors import DeviceError, EmulationError, SassayError
from sassay.runtime import open_device
from sassay.runtime.driver import Gpu

sys.path.insert(0, str(Path(__file__).parent))
from fake_driver import FakeDriver, Status

ROOT = Path(__file__).resolve().parents[2]
SAXPY = (ROOT / "tests" / "kernels" / "saxpy.ptx").read_text()
N = 300


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return sassay.compile(SAXPY, "sm_90a").cubin


def play_saxpy(values: list[int]) -> None:
    """What the kernel does, on the fake's memory."""
    alpha, x, y, n = values
    xs, ys = ((ctypes.c_float * n).from_address(p) for p in (x, y))
    a = np.uint32(alpha).view(np.float32)
    for i in range(n):
        ys[i] = a * np.float32(xs[i]) + np.float32(ys[i])


@pytest.fixture
def fake() -> FakeDriver:
    return FakeDriver([4, 8, 8, 4], play_saxpy)


@pytest.fixture(params=["emulator", "emulator:timing", "gpu"])
def device(request: pytest.FixtureRequest, fake: FakeDriver) -> Any:
    return Gpu(0, fake) if request.param == "gpu" else open_device(request.param)


def test_arrays_in_and_out(device: Any, cubin: bytes) -> None:
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    with sassay.load(cubin, device) as module:
        assert list(module) == ["saxpy"]
        module["saxpy"]((2, 1, 1), 64, [np.float32(2), x, y, np.uint32(N)])
    np.testing.assert_array_equal(y, 2 * np.arange(N, dtype=np.float32) + 1)


def test_buffers_stay_on_the_device(device: Any, cubin: bytes) -> None:
    x, y = device.buffer(np.ones(N, np.float32)), device.buffer(np.zeros(N, np.float32))
    kernel = device.load(cubin)["saxpy"]
    for _ in range(2):
        kernel(2, 64, [1.5, x, y, N])
    np.testing.assert_array_equal(y.get(), np.full(N, 3, np.float32))
    y.set(np.zeros(N, np.float32))
    assert not y.get().any()
    kernel.milliseconds(2, 64, [1.5, x, y, N], repeats=3)
    y.free()


def test_a_read_only_array_is_not_written(device: Any, cubin: bytes) -> None:
    y = np.ones(N, np.float32)
    y.flags.writeable = False
    device.load(cubin)["saxpy"](2, 64, [1.0, np.ones(N, np.float32), y, N])
    assert (y == 1).all()


def test_attributes(cubin: bytes, fake: FakeDriver) -> None:
    ours = sassay.load(cubin, "emulator")["saxpy"].attributes
    assert ours.registers == sassay.read_cubin(cubin).kernel().registers and ours.shared_bytes == 0
    theirs = Gpu(0, fake).load(cubin)["saxpy"].attributes
    assert (theirs.registers, theirs.shared_bytes, theirs.local_bytes, theirs.max_threads) == (104, 101, 103, 100)


@pytest.mark.parametrize("arguments", [[1.0], [1.0, 2, 3, np.float64(1)], [1.0, 2, 3, "four"]])
def test_bad_arguments_have_names(device: Any, cubin: bytes, arguments: list[Any]) -> None:
    with pytest.raises(DeviceError, match="argument"):
        device.load(cubin)["saxpy"](1, 32, arguments)


def test_bad_extents_and_kernels(device: Any, cubin: bytes) -> None:
    module = device.load(cubin)
    with pytest.raises(DeviceError, match="grid"):
        module["saxpy"]((0, 1), 32, [1.0, 1, 1, 1])
    with pytest.raises(DeviceError, match="no kernel 'sax'; there are saxpy"):
        module["sax"]


def test_clusters_shared_memory_and_streams_reach_the_driver(cubin: bytes, fake: FakeDriver) -> None:
    kernel = Gpu(0, fake).load(cubin)["saxpy"]
    x = np.ones(4, np.float32)
    kernel((4, 2, 1), (32, 2), [1.0, x, x.copy(), 4], cluster=(2, 1, 1), stream=77, shared_bytes=100_000)
    config = next(what for name, what in fake.calls if name == "cuLaunchKernelEx")
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (4, 2, 1) and (config.blockDimX, config.blockDimY) == (32, 2)
    assert config.sharedMemBytes == 100_000 and config.hStream == 77 and config.numAttrs == 1
    shape = config.attrs[0].value.clusterDim
    assert (shape.x, shape.y, shape.z) == (2, 1, 1)
    assert any(name == "cuFuncSetAttribute" and what[2] == 100_000 for name, what in fake.calls)
    assert not fake.memory


def test_memory_is_freed_when_a_launch_fails(cubin: bytes, fake: FakeDriver) -> None:
    fake.fail["cuLaunchKernelEx"] = Status.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(DeviceError, match="cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE: what went wrong") as caught:
        Gpu(0, fake).load(cubin)["saxpy"](1, 32, [1.0, np.ones(4, np.float32), np.ones(4, np.float32), 4])
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE" and not fake.memory


def test_a_refused_cubin(cubin: bytes, fake: FakeDriver) -> None:
    fake.fail["cuModuleLoadData"] = Status.CUDA_ERROR_INVALID_IMAGE
    with pytest.raises(DeviceError) as caught:
        Gpu(0, fake).load(cubin)
    assert caught.value.name == "CUDA_ERROR_INVALID_IMAGE"


def test_facts_of_a_card(fake: FakeDriver) -> None:
    facts = Gpu(0, fake).facts()
    assert facts["name"] == "Fake H200" and facts["chip"] == "sm_90a" and facts["driver"] == 13000


def test_a_bad_access_is_an_error_in_the_emulator(cubin: bytes) -> None:
    with pytest.raises(EmulationError):
        sassay.load(cubin, "emulator")["saxpy"](1, 32, [1.0, np.ones(4, np.float32), np.ones(4, np.float32), 400])


def test_no_clusters_in_the_emulator(cubin: bytes) -> None:
    with pytest.raises(DeviceError, match="clusters"):
        sassay.load(cubin, "emulator")["saxpy"](2, 32, [1.0, 1, 1, 0], cluster=(2, 1, 1))


def test_an_unknown_device(cubin: bytes) -> None:
    with pytest.raises(DeviceError, match="no device 'tpu'"):
        sassay.load(cubin, "tpu")


def test_without_a_gpu_the_error_says_what_to_do(cubin: bytes, tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin)
    code = f"import sys; sys.modules['cuda'] = None\nimport sassay\nsassay.load({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "DeviceError" in done.stderr and "pip install 'sassay[gpu]'" in done.stderr
    assert issubclass(DeviceError, SassayError)
