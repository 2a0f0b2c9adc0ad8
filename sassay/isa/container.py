"""What a cubin's headers say about its chip, by target. Probed: read off ptxas 13.5.37 output for each target (flags, .nv.compat, .nv.info)."""

from __future__ import annotations

from dataclasses import dataclass

from sassay.errors import UnsupportedError
from sassay.isa.target import Target


@dataclass(frozen=True, slots=True)
class Container:
    """ELF facts of one target. `compat` is .nv.compat as (attribute, value): an int below 256 one byte, a tuple of two ints a pair of words,
    a `bytes` a half word."""

    elf_flags: int
    """The low three bytes of e_flags; the high one is the index of the section .note.nv.cuinfo (probed: cuobjdump finds the note by it)."""
    compat: tuple[tuple[int, int | tuple[int, int] | bytes], ...]
    sw_war: int
    """EIATTR_SW_WAR of each kernel."""
    reserved_shared: int
    """Size of .nv.shared.reserved.0, and the value of its symbols."""
    cta_init_count: bool
    """Whether kernels carry EIATTR_VRC_CTA_INIT_COUNT."""


_ACCELERATOR, _INTERNAL, _CLASS, _TENSORMAP, _TCGEN05, _FASTPATH, _FINALIZER = 9, 0x0C, 2, 3, 5, 0x0B, 0x0E


def _row(number: int, low: int, accelerated: bool, fastpath: int, war: int, extra: bool, tcgen05: bool = False) -> Container:
    compat: list[tuple[int, int | tuple[int, int] | bytes]] = [(_ACCELERATOR, int(accelerated)), (_INTERNAL, 0), (_CLASS, 1)]
    if tcgen05:
        compat.append((_TCGEN05, 5))
    compat.append((0x0D, b"\x01\x01"))
    if extra:
        compat.append((0x07, b"\x01\x01"))
    compat += [(_TENSORMAP, 0), (_FASTPATH, (fastpath, 0)), (_FINALIZER, b"\x40\x04")]
    return Container(number << 8 | low, tuple(compat), war, 0x40 if low == 2 else 0, low == 2)


_TABLE: dict[str, Container] = {
    "sm_90": _row(90, 4, False, 0, 8, False),
    "sm_90a": _row(90, 4, True, 0, 8, False),
    "sm_100": _row(100, 2, False, 9, 8, True),
    "sm_100a": _row(100, 2, True, 9, 8, True, tcgen05=True),
    "sm_100f": _row(100, 2, False, 9, 8, True),
    "sm_103": _row(103, 2, False, 0, 8, False),
    "sm_103a": _row(103, 2, True, 0, 8, False),
    "sm_103f": _row(103, 2, False, 0, 8, False),
    "sm_120": _row(120, 2, False, 0x50, 0, True),
    "sm_120a": _row(120, 2, True, 0x10, 0, True),
    "sm_120f": _row(120, 2, False, 0x50, 0, True),
    "sm_121": _row(121, 2, False, 0, 0, False),
    "sm_121a": _row(121, 2, True, 0, 0, False),
}
API_VERSION = 0x87
"""CUDA 13.5."""


def container(target: Target) -> Container:
    """The container facts of a target."""
    try:
        return _TABLE[target.name]
    except KeyError:
        raise UnsupportedError(f"no cubin header facts for {target.name}") from None
