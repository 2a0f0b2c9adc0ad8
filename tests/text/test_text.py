"""Text of instructions and control codes: exact round trips, exact floats, errors with a place."""

from __future__ import annotations

import random
import re

import pytest
from support import oracle

from sassay.errors import SassError
from sassay.sass.model import ALWAYS, Const, Control, File, Imm, ImmKind, Mem, Name, Reg, Target
from sassay.sass.text import float_bits, format_control, format_float, format_instruction, parse_control, parse_instruction

LINES = """
NOP
@P0 EXIT
@!PT BRA 0x50
BRA.U !UP0, 0x17100
BRX R6 -0x550
RET.REL.NODEC R2 0x20d00
CALL.REL.NOINC `($__internal_0)
BSSY.RECONVERGENT B0, 0x16d40
WARPSYNC.COLLECTIVE R12, 0x120
WARPSYNC 0xffffffff
@!P0 IMAD.WIDE.U32 R2, R7.reuse, 0x2, R2
IADD3.X R202, P4, P5, R85, -0xf022032, ~R54, P2, P6
LDG.E.128.CONSTANT R4, desc[UR4][R2.64+0x10]
LDG.E.EL.EFL2.256 R8, R0, [R8.U32+UR145+-0x1016a0], 0x45
ATOMG.ADD.EF.128 P0, R36, [R128.U32+UR0+-0x70fbfe], R128
ATOMG.MIN.EF.STRONG.GPU P4, R173, [0x96198d], R97
FADD.FTZ R165, -R178, |cx[UR41][0xecc8]|
HADD2.FTZ.SAT R76, -R157, |cx[UR38] [0xa104].H1_H1|
HFMA2.BF16_V2 R193, R9.reuse, R0.reuse.H0_NH1, -|c[0x19] [-0x180c].H1_H1|
HFMA2 R10, -|R131|.reuse.H0_H0, R2, |UR20.H1_H1|
MUFU.SIN.F16 R0, -|R92.H1|
FSETP.NEU.FTZ.AND P2, PT, |R0|.reuse, +INF , PT
MUFU.RSQ R0, -QNAN , R1
HMUL2.FTZ R82, R96.H0_H0, -0.0 , 1.9073486328125e-06
HFMA2 R21, R12.reuse, 1, 1, R15
DFMA R1, R15, -1.80143985094819840000e+16, R0
FFMA2 R210, |R197|.F32x2.LO_HI.NP, -8.2948230556212365627e-05.NP, -R159.F32
DEPBAR.LE SB4, 0x26, {4,3,1,0}
DEPBAR {5}
HGMMA.64x8x16.F32 R24, gdesc[UR4].tnspB, R24, !UPT, gsb0
UTCHMMA.2CTA gdesc[UR65].A_REUSE.A_KEEP, gdesc[UR173].BUFFER1, tmem[UR0], tmem[UR14], idesc[UR15], UR197, UP2, 0x2
UTCSHIFT tmem[UR177+-0x3daea1c4]
S2R R0, SR_TID.X
LDC R0, c[0x0][RZ]
LDCU.U8 UR94, c[0x11][UR22+0x10]
TEX.SCR.LL R0, R2, R4, R6, UR4, 2D, 0x3
PLOP3.LUT P0, P4, P0, c[0x0] [0x108].SIGN, P1, 0x80, 0x98
FSWZADD.RP R2, R4, R0, PNPPPPPP
RPCMOV.32 Rpc.LO, R8
I2IP.U4.S32 R244, R92, R204, R153.24
@UP1 UTMALDG.1D [UR24], [UR32], UR2, desc[UR68]
@Pv3 IADD3 Rv0, Rv1, Rv2, RZ
""".strip("\n").split("\n")


@pytest.mark.parametrize("line", LINES)
def test_round_trip(line: str) -> None:
    assert format_instruction(parse_instruction(line)) == line


def test_values() -> None:
    instr = parse_instruction("[B0-2---:R1:W-:Y:S04] /*0010*/ @!P1 LDG.E R4, desc[UR4][R2.64+-0x10] ;")
    assert (instr.opcode, instr.modifiers) == ("LDG", ("E",))
    assert instr.guard == Reg(File.P, 1, invert=True)
    assert instr.operands == (Reg(File.R, 4), Mem((Reg(File.R, 2, ("64",)),), -16, "desc", Reg(File.UR, 4)))
    assert instr.control == Control(stall=4, yield_=True, write=None, read=1, wait=0b101)
    assert parse_instruction("BRA `(.L_x_1)").operands == (Target(".L_x_1"),)
    assert parse_instruction("BRX R2 0x40").operands == (Reg(File.R, 2), Target(0x40))
    assert parse_instruction("MOV R1, c[0x0][0x28]").operands[1] == Const(0, 0x28)
    assert parse_instruction("CS2R R2, SRZ").operands[1] == Name("SRZ")
    assert parse_instruction("NOP").guard is ALWAYS


def test_float_kinds() -> None:
    def imm(text: str) -> tuple[ImmKind, int]:
        operand = parse_instruction(text).operands[-1]
        assert isinstance(operand, Imm)
        return operand.kind, operand.value

    assert imm("FADD R0, R1, 1") == (ImmKind.F32, 0x3F800000)
    assert imm("DADD R0, R2, 1") == (ImmKind.F64, 0x3FF00000)
    assert imm("HADD2 R0, R1, 1, 0.5") == (ImmKind.F16, 0x3800)
    assert imm("HADD2.BF16_V2 R0, R1, 1, 0.5") == (ImmKind.BF16, 0x3F00)
    assert imm("F2F.F32.F64 R0, 1") == (ImmKind.F64, 0x3FF00000)
    assert imm("F2I.U32.F16.NTZ R0, -4") == (ImmKind.F16, 0xC400)
    assert imm("FADD R0, R1, -INF") == (ImmKind.F32, 0xFF800000)
    assert imm("FADD R0, R1, +QNAN:0x7fc00123 ") == (ImmKind.F32, 0x7FC00123)
    assert imm("FADD R0, R1, 1e-45") == (ImmKind.F32, 1)


@pytest.mark.parametrize("kind", [ImmKind.F32, ImmKind.F64, ImmKind.F16, ImmKind.BF16])
def test_every_kind_of_bits_survives(kind: ImmKind) -> None:
    rng = random.Random(int(kind))
    width = 16 if kind in (ImmKind.F16, ImmKind.BF16) else 32
    edges = [0, 0x80000000, 1, 0x7FF00001, 0x7F800001, 0xFFFFFFFF]
    samples = range(0, 1 << 16, 3) if width == 16 else [rng.getrandbits(32) for _ in range(15000)] + edges
    opcodes = {ImmKind.F32: "FADD R0, R1,", ImmKind.F64: "DADD R0, R2,", ImmKind.F16: "HADD2 R0, R1, 1,", ImmKind.BF16: "HADD2.BF16_V2 R0, R1, 1,"}
    opcode = opcodes[kind]
    for bits in samples:
        text = f"{opcode} {format_float(bits, kind, exact=True)}"
        if bits % 7:
            text = text.strip()
        assert parse_instruction(text).operands[-1] == Imm(bits, kind), text


def test_rounding_to_nearest_even() -> None:
    assert float_bits(1 + 2.0**-21, ImmKind.F64) == 0x3FF00000
    assert float_bits(1 + 3 * 2.0**-21, ImmKind.F64) == 0x3FF00002
    assert float_bits(1 + 2.0**-8, ImmKind.BF16) == 0x3F80
    with pytest.raises(OverflowError):
        float_bits(1e39, ImmKind.F32)


CODES = [Control(), Control(15, True, 5, 0, 63, 5), Control(0, True), Control(4, False, None, 3, 4), Control(11, False, 0, None, 0, 1)]


@pytest.mark.parametrize("control", CODES)
@pytest.mark.parametrize("style", ["bracket", "colon"])
def test_control_round_trip(control: Control, style: str) -> None:
    assert parse_control(format_control(control, style)) == control


def test_control_spelling() -> None:
    assert format_control(Control(1, False, 2)) == "[B------:R-:W2:-:S01]"
    assert format_control(Control(1, False, 2), "colon") == "--:-:3:-:1"
    assert parse_instruction("--:-:3:-:1 S2R R0, SR_TID.X;").control == Control(1, False, 2)


BAD = ["", "IADD3 R0, R1 R2, R3", "IADD3 R256, RZ, RZ, RZ", "MOV R0, c[R1][0x0]", "FADD R0, |R1, R2", "IADD3 R0, 1.5, R1, RZ", "@P9 EXIT",
       "LDG R0, [R2+0x10+R3]", "FADD R0, R1, 1e39", "FADD R0, R1, +QNAN:0x7f800000", "[B1-----:R-:W-:-:S01] NOP", "[B------:R7:W-:-:S01] NOP",
       "[B------:R-:W-:-:S16] NOP", "LDG R0, desc[R300][R2]", "lower R0"]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_errors(text: str) -> None:
    with pytest.raises(SassError):
        parse_instruction(text)


def test_error_column() -> None:
    with pytest.raises(SassError) as caught:
        parse_instruction("IADD3 R0, R1, R2!, R3")
    assert caught.value.location is not None and caught.value.location.column == 15


@oracle.needs_tools
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a", "sm_120a"])
def test_compiled_code(chip: str) -> None:
    """Each line nvdisasm prints of compiled kernels reads and prints the same."""
    ptx = [path.read_text() for path in sorted((oracle.Path(__file__).parents[1] / "kernels").glob("*.ptx"))[::4]]
    count = 0
    for text in ptx:
        for name, words in oracle.sections(oracle.ptxas(text, chip)).items():
            if name.startswith(".text."):
                for line in oracle.disassemble_words(words, chip.replace("sm_", "SM")):
                    assert format_instruction(parse_instruction(line)) == line
                    count += 1
    assert count > 500


@oracle.needs_nvdisasm
@pytest.mark.parametrize("chip", ["SM90a", "SM100a", "SM120a"])
def test_random_words(chip: str) -> None:
    """The same for random words that nvdisasm accepts, undefined register names aside."""
    rng = random.Random(5)
    words = []
    for opcode in range(int(chip[2:-1]) % 5, 8192, 5):
        low = rng.getrandbits(64) & ~0xFFF | opcode & 0xFFF
        high = rng.getrandbits(41) & ~(1 << 27) | opcode >> 12 << 27 | 1 << 41 | 1 << 45 | 7 << 46 | 7 << 49 | rng.getrandbits(3) << 58
        words.append((high << 64 | low).to_bytes(16, "little"))
    for _ in range(5):
        try:
            lines = oracle.disassemble_words(b"".join(words), chip)
            break
        except RuntimeError:
            words = _without_bad(words, chip)
    else:
        pytest.fail("nvdisasm refused every batch")
    checked = 0
    for line in lines:
        if line and "[???" not in line and not re.search(r"FRND\S*\?\?\?", line):
            assert format_instruction(parse_instruction(line)) == line
            checked += 1
    assert checked > 30


def _without_bad(words: list[bytes], chip: str) -> list[bytes]:
    with oracle.tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"".join(words))
        file.flush()
        done = oracle.run_tool("nvdisasm", "--binary", chip, "-raw", file.name)
    bad = {int(address, 16) // 16 for address in re.findall(r"address (0x[0-9a-f]+)", done.stderr)}
    return [word for at, word in enumerate(words) if at not in bad]
