"""Semantics cells: one instruction at a time on many operands, on a device and in the emulator, compared bit for bit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sassay.bench.kernel import NAME, SAFE, Snippet, cubin, line
from sassay.errors import SassayError
from sassay.isa.target import Target
from sassay.isa.timing import model
from sassay.runtime import Device, open_device
from sassay.sass.text import parse_instruction

WORDS = 8
"""Operand words a thread: R8 to R15."""
BLOCK = 256
SPECIAL = np.array(
    [0, 1, 2, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0x3F800000, 0xBF800000,
     0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F000000, 0x4B000000,
     0x4F000000, 0xCF000000, 0x5F000000, 0x3C003C00, 0x7C00FC00, 0x7E000001, 0x3FF00000, 0x7FF00000, 0xFFF80000], np.uint32,
)  # fmt: skip
"""Integers, floats, halves and upper halves of doubles at which operations turn."""
ONE = (
    "IMAD R24, R8, R10, R12", "IMAD.HI.U32 R24, R8, R10, R12", "IMAD.HI R24, R8, R10, R12", "LOP3.LUT R24, R8, R10, R12, 0x96, !PT",
    "LOP3.LUT R24, R8, R10, R12, 0xe8, !PT", "SHF.L.U32 R24, R8, R10, R12", "SHF.R.U32.HI R24, R8, R10, R12", "SHF.R.S32.HI R24, R8, R10, R12",
    "SHF.L.W.U32.HI R24, R8, R10, R12", "PRMT R24, R8, R10, R12", "SGXT R24, R8, R10", "SGXT.U32 R24, R8, R10", "BMSK R24, R8, R10",
    "IABS R24, R8", "LEA R24, R8, R10, 0x3", "FADD R24, R8, R10", "FADD.FTZ R24, R8, R10", "FADD.RZ R24, R8, R10", "FADD.RM R24, R8, R10",
    "FADD.RP R24, R8, R10", "FMUL R24, R8, R10", "FMUL.FTZ R24, R8, R10", "FMUL.RZ R24, R8, R10", "FFMA R24, R8, R10, R12",
    "FFMA.FTZ R24, R8, R10, R12", "FFMA.SAT R24, R8, R10, R12", "FFMA.RM R24, R8, R10, R12", "FFMA.RP R24, R8, R10, R12", "FADD.SAT R24, R8, -R10",
    "FMNMX R24, R8, R10, PT", "FMNMX R24, R8, R10, !PT", "HADD2 R24, R8, R10", "HMUL2 R24, R8, R10", "HFMA2 R24, R8, R10, R12",
    "HADD2.F32 R24, -RZ, R8.H0_H0", "HFMA2.BF16_V2 R24, R8, R10, R12", "F2FP.F16.F32.PACK_AB R24, R8, R10", "F2FP.BF16.F32.PACK_AB R24, R8, R10",
    "I2FP.F32.S32 R24, R8", "I2FP.F32.U32 R24, R8", "F2I.TRUNC.NTZ R24, R8", "F2I.U32.TRUNC.NTZ R24, R8", "F2I.NTZ R24, R8", "FRND R24, R8",
    "FRND.FLOOR R24, R8", "FRND.TRUNC R24, R8", "POPC R24, R8", "FLO.U32 R24, R8", "FLO.U32.SH R24, R8", "FLO R24, R8", "BREV R24, R8",
    "MUFU.RCP R24, R8", "MUFU.RSQ R24, R8", "MUFU.SQRT R24, R8", "MUFU.EX2 R24, R8", "MUFU.LG2 R24, R8", "MUFU.SIN R24, R8", "MUFU.COS R24, R8",
    "MUFU.TANH R24, R8", "IDP.4A.S8.S8 R24, R8, R10, R12", "IDP.4A.U8.U8 R24, R8, R10, R12", "SHFL.BFLY PT, R24, R8, 0x5, 0x1f",
    "SHFL.IDX PT, R24, R8, R10, 0x1f", "I2F.S64 R24, R8", "F2F.F32.F64 R24, R8", "F2I.S64.F64.TRUNC R24, R8",
)  # fmt: skip
TWO = (
    "IMAD.WIDE.U32 R24, R8, R10, R12", "IMAD.WIDE R24, R8, R10, R12", "DADD R24, R8, R10", "DMUL R24, R8, R10", "DFMA R24, R8, R10, R12",
    "DADD.RZ R24, R8, -R10", "F2F.F64.F32 R24, R8", "I2F.F64 R24, R8", "I2F.F64.U32 R24, R8",
)  # fmt: skip
"""Results in R24, and in R24:R25."""


@dataclass
class Cell:
    """One instruction: how many results differ from the emulator's, the first of them, or why it was not tried."""

    text: str
    threads: int = 0
    different: int = 0
    first: dict[str, Any] | None = None
    note: str = ""


def operands(threads: int, seed: int = 1) -> np.ndarray[Any, Any]:
    """(threads, WORDS) uint32: half random, half from SPECIAL."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**32, (threads, WORDS), dtype=np.uint64).astype(np.uint32)
    chosen = rng.random((threads, WORDS)) < 0.5
    return np.where(chosen, rng.choice(SPECIAL, (threads, WORDS)), words).astype(np.uint32)


def snippet(chip: Target, text: str, outputs: tuple[int, ...]) -> Snippet:
    """Loads R8 to R15 of each thread from the second parameter, runs the instruction once."""
    load = [
        line(f"LDC.64 R18, c[0x0][{chip.constants.params + 8:#x}]", 2, write=1), *[line("NOP", SAFE, 0x3F)] * 2,
        line(f"IMAD.WIDE.U32 R18, R0, {4 * WORDS:#x}, R18", SAFE),
        *(line(f"LDG.E R{8 + k}, desc[UR4][R18.64+{4 * k:#x}]", 2, write=0) for k in range(WORDS)),
    ]  # fmt: skip
    slow = model(chip).needs_write_barrier(parse_instruction(text))
    return Snippet([line(text, SAFE, write=0 if slow else None)], [line("MOV R24, RZ", SAFE), line("MOV R25, RZ", SAFE)], outputs, 1, once=load)


def compare(device: Device, chip: Target, text: str, outputs: tuple[int, ...], threads: int) -> Cell:
    """One cell on `threads` (at most a block) threads; the emulator runs the same cubin."""
    cell = Cell(text, threads)
    try:
        data, values = cubin(chip, snippet(chip, text, outputs)), operands(threads)
        results = []
        for place in (device, open_device("emulator")):
            out = np.zeros((threads, len(outputs)), np.uint32)
            with place.load(data) as module:
                module[NAME](1, threads, [out, values.copy(), np.uint64(0), np.uint64(0)])
            results.append(out)
    except SassayError as error:
        cell.note = str(error)
        return cell
    wrong = np.flatnonzero((results[0] != results[1]).any(axis=1))
    cell.different = len(wrong)
    if wrong.size:
        at = int(wrong[0])
        cell.first = {"operands": [int(v) for v in values[at]], "device": results[0][at].tolist(), "emulator": results[1][at].tolist()}
    return cell


def run(device: Device, chip: Target, threads: int = BLOCK) -> list[dict[str, Any]]:
    """All cells as data."""
    everything = [(text, (24,)) for text in ONE] + [(text, (24, 25)) for text in TWO]
    return [asdict(compare(device, chip, text, outputs, threads)) for text, outputs in everything]
