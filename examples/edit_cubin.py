"""Edit a finished cubin as text, see that it still is free of hazards, and let the prover and a launch say what the edit did."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sassay

PTX = (Path(__file__).parent / "kernels" / "saxpy.ptx").read_text()


def main() -> None:
    original = sassay.compile(PTX, "sm_90a").cubin
    text = sassay.disassemble(original)
    assert sassay.assemble(text) == original  # unedited text gives the same bytes back

    line = next(line for line in text.splitlines() if " FFMA " in line)
    edited = sassay.assemble(text.replace(line, line.replace(" FFMA ", " FFMA.RZ ")))
    print("edited:", line.strip().split("*/")[-1].strip(), "-> FFMA.RZ")
    print("hazards:", len(sassay.check(edited)))
    print("original:", sassay.prove(PTX, original, "saxpy").verdict)
    print("edited:", sassay.prove(PTX, edited, "saxpy").verdict)

    x, results = np.linspace(0, 1, 1000, dtype=np.float32), []
    for cubin in (original, edited):
        y = np.ones(1000, np.float32)
        sassay.load(cubin, "emulator")["saxpy"](4, 256, [np.float32(0.1), x, y, np.uint32(1000)])
        results.append(y)
    print("elements that differ:", int((results[0] != results[1]).sum()))


if __name__ == "__main__":
    main()
