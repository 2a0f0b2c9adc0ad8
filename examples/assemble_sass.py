"""A kernel written in SASS with named registers, assembled, put into a cubin, checked and run: y[i] = popc(x[i]) ^ key."""

from __future__ import annotations

import numpy as np

import sassay
from sassay.cubin import KernelImage, Param, build
from sassay.isa.target import target
from sassay.sass.codec import decode

CHIP = target("sm_90a")
PARAMS = [Param(0, 0, 8), Param(1, 8, 8), Param(2, 16, 4)]  # x, y, key
CODE = """
.target sm_90a
.reg index R[0:0]
.reg x R[2:3]
.reg y R[4:5]
.reg value R[8:8]
.reg memory UR[4:5]
.const px c[0x0][0x210]
.const py c[0x0][0x218]
.const key c[0x0][0x220]
[B------:R-:W0:-:S02]  S2R index, SR_TID.X ;
[B------:R-:W-:-:S01]  ULDC.64 memory, c[0x0][0x208] ;
[B------:R-:W1:-:S02]  LDC.64 x, px ;
[B------:R-:W2:-:S02]  LDC.64 y, py ;
[B01----:R-:W-:-:S01]  IMAD.WIDE.U32 x, index, 0x4, x ;
[B--2---:R-:W-:-:S04]  IMAD.WIDE.U32 y, index, 0x4, y ;
[B------:R-:W0:-:S02]  LDG.E value, desc[memory][x.64] ;
[B0-----:R-:W0:-:S02]  POPC value, value ;
[B0-----:R-:W-:-:S05]  LOP3.LUT value, value, key, RZ, 0x3c, !PT ;
[B------:R-:W-:-:S01]  STG.E desc[memory][y.64], value ;
[B------:R-:W-:-:S05]  EXIT ;
"""


def main() -> None:
    code = sassay.assemble(CODE, file="popc.sass")
    exits = [16 * i for i, instr in enumerate(decode(code, CHIP)) if instr.opcode == "EXIT"]
    cubin = build(CHIP, [KernelImage("popc_key", code, registers=12, params=PARAMS, exits=exits)])
    print("hazards:", [str(finding) for finding in sassay.check(cubin)])
    x, y = np.arange(64, dtype=np.uint32) * np.uint32(2654435761), np.zeros(64, np.uint32)
    sassay.load(cubin, "emulator:timing")["popc_key"](1, 64, [x, y, np.uint32(0x5A)])
    want = np.array([bin(int(v)).count("1") for v in x], np.uint32) ^ np.uint32(0x5A)
    print("as numpy says:", bool((y == want).all()))


if __name__ == "__main__":
    main()
