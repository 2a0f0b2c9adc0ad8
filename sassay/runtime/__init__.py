"""Loading and launching cubins: on a GPU through cuda-python's driver bindings, or in the emulator, behind one interface."""

from __future__ import annotations

from pathlib import Path

from sassay.errors import DeviceError
from sassay.runtime.interface import Attributes, Buffer, Device, Function, Module

__all__ = ["Attributes", "Buffer", "Device", "Function", "Module", "load", "open_device"]


def open_device(which: int | str | None = None) -> Device:
    """A device: a GPU's number, "emulator", "emulator:timing" (control codes count), or None for GPU 0.

    DeviceError where there is no driver or no such GPU.
    """
    if which is None or isinstance(which, int):
        from sassay.runtime.driver import Gpu

        return Gpu(which or 0)
    if which in ("emulator", "emulator:timing"):
        from sassay.runtime.emulated import Emulator

        return Emulator(timing=which.endswith(":timing"))
    raise DeviceError(f"no device '{which}'; there are GPUs by number, 'emulator' and 'emulator:timing'")


def load(cubin: bytes | str | Path, device: Device | int | str | None = None) -> Module:
    """Loads a cubin (its bytes, or the path of a file) on a device: `load(cubin, "emulator")["saxpy"](grid, block, [a, x, y, n])`.

    Without `device`: GPU 0. CubinError for bytes that are no cubin, DeviceError where the driver refuses it.
    """
    data = cubin if isinstance(cubin, bytes) else Path(cubin).read_bytes()
    return (device if isinstance(device, Device) else open_device(device)).load(data)
