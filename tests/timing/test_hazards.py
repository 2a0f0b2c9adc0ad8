"""The hazard checker on small programs whose hazards are known, on ptxas output, and on faults planted in it."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import oracle

from sassay.cli import cli
from sassay.cubin import read
from sassay.errors import SassError, UnsupportedError
from sassay.sass.model import Instruction
from sassay.sass.text import parse_control, parse_instruction
from sassay.verify.hazards import Finding, check, check_instructions
from timing import paths


def program(text: str) -> list[Instruction]:
    """Lines of `STALL[,wN][,rN][,bNN] instruction`; labels `L:` on lines of their own stand for offsets."""
    rows: list[str] = []
    labels: dict[str, int] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":"):
            labels[line[:-1]] = 16 * len(rows)
        else:
            rows.append(line)
    out = []
    for row in rows:
        control, _, body = row.partition(" ")
        for name, offset in labels.items():
            body = body.replace(f"`{name}", hex(offset))
        stall, *flags = control.split(",")
        fields = {"w": "-", "r": "-", "b": ""}
        for flag in flags:
            fields[flag[0]] = flag[1:]
        wait = "".join(str(i) if str(i) in fields["b"] else "-" for i in range(6))
        held = "Y" if int(stall) > 11 else "-"
        out.append(replace(parse_instruction(body), control=parse_control(f"[B{wait}:R{fields['r']}:W{fields['w']}:{held}:S{int(stall):02}]")))
    return out


def kinds(text: str, chip: str = "sm_90a") -> list[tuple[str, str, int]]:
    return [(f.kind, f.register, f.offset) for f in check_instructions(program(text), chip) if f.severity == "error"]


END = "\n5 EXIT\n"


def test_fixed_latency() -> None:
    assert kinds("4 FADD R0, R1, R2\n1 FFMA R3, R0, R0, R0" + END) == []
    assert kinds("3 FADD R0, R1, R2\n1 FFMA R3, R0, R1, R1" + END) == [("raw", "R0", 16)]
    assert kinds("2 FADD R0, R1, R2\n2 NOP\n1 FFMA R3, R0, R1, R1" + END) == []
    assert kinds("12 ISETP.NE.AND P0, PT, R0, RZ, PT\n1 @P0 FADD R3, R1, R2" + END) == [("raw", "P0", 16)]
    assert kinds("3 ISETP.NE.AND P0, PT, R0, RZ, PT\n1 SEL R3, R1, R2, P0" + END) == [("raw", "P0", 16)]


def test_finding_says_what_and_why() -> None:
    finding, = check_instructions(program("3 FADD R0, R1, R2\n1 FFMA R3, R0, R1, R1" + END), "sm_90a", kernel="k")
    assert isinstance(finding, Finding)
    assert (finding.found, finding.needed, finding.producer_offset, finding.producer, finding.consumer) == (3, 4, 0, "FADD", "FFMA")
    assert str(finding) == "k+0x10: error: FFMA reads R0 3 cycles after FADD at 0x0 writes it, needs 4"
    assert finding.source == "sm_90a raw fma -> fma"
    assert finding.to_dict()["register"] == "R0"


def test_widths_count() -> None:
    """The second register of a pair, the last of a quad."""
    assert kinds("1 IMAD.WIDE R2, R4, R5, R6\n1 LOP3.LUT R9, R3, R8, RZ, 0xc0, !PT" + END) == [("raw", "R3", 16)]
    load = "2,w0 LDG.E.128 R4, desc[UR4][R2.64]\n"
    assert kinds(load + "1 FADD R0, R7, R1" + END) == [("raw", "R7", 16)]
    assert kinds(load + "1,b0 FADD R0, R7, R1" + END) == []


def test_scoreboards() -> None:
    load = "2,w0 LDG.E R4, desc[UR4][R2.64]\n"
    assert kinds("2 LDG.E R4, desc[UR4][R2.64]\n1,b0 FADD R0, R4, R1" + END) == [("raw", "R4", 16)]
    assert kinds(load + "1,b1 FADD R0, R4, R1" + END) == [("raw", "R4", 16)]
    assert kinds(load + "2,w0 LDG.E R5, desc[UR4][R2.64]\n1,b0 FADD R0, R4, R5" + END) == []
    assert kinds("1,w0 LDG.E R4, desc[UR4][R2.64]\n1,b0 FADD R0, R4, R1" + END) == [("raw", "R4", 16)], "the wait comes before the count shows"
    assert kinds(load + "1 MOV R4, R1" + END) == [("waw", "R4", 16)]
    assert kinds("2 STG.E desc[UR4][R2.64], R4\n1 MOV R4, R1" + END) == [("war", "R4", 16)]
    assert kinds("2,r1 STG.E desc[UR4][R2.64], R4\n1,b1 MOV R4, R1" + END) == []
    assert kinds(load + "1,b0 MOV R2, R1" + END) == [], "what has written back has read its sources"


def test_partial_waits() -> None:
    loads = "2,w0 LDG.E R4, desc[UR4][R2.64]\n2,w0 LDG.E R5, desc[UR4][R2.64+0x4]\n4 DEPBAR.LE SB0, 0x1\n"
    assert kinds(loads + "1 FADD R0, R4, R1" + END) == []
    assert kinds(loads + "1 FADD R0, R5, R1" + END) == [("raw", "R5", 48)]


def test_issue_order_covers() -> None:
    """Shared loads come back in order, so the last one's scoreboard does for all; global loads do not."""
    pair = "2 {0} R4, {1}\n2,w0 {0} R5, {2}\n1,b0 FADD R0, R4, R5" + END
    assert kinds(pair.format("LDS", "[R2]", "[R2+0x4]")) == []
    assert kinds(pair.format("LDG.E", "desc[UR4][R2.64]", "desc[UR4][R2.64+0x4]")) == [("raw", "R4", 32)]


def test_across_blocks() -> None:
    text = """
        2,w0 LDG.E R4, desc[UR4][R2.64]
        5 @P0 BRA `JOIN
        1,b0 FADD R0, R4, R1
        JOIN:
        1 FADD R6, R4, R1
        5 EXIT
    """
    assert kinds(text) == [("raw", "R4", 48)]
    loop = """
        4 MOV R4, RZ
        TOP:
        4 FADD R0, R4, R1
        2,w0 LDG.E R4, desc[UR4][R2.64]
        5 @P0 BRA `TOP
        5 EXIT
    """
    assert ("raw", "R4", 16) in kinds(loop)
    assert kinds(loop.replace("4 FADD", "4,b0 FADD").replace("4 MOV", "5 MOV")) == []


def test_through_calls() -> None:
    text = """
        2,w0 LDG.E R4, desc[UR4][R2.64]
        5 CALL.REL.NOINC `SUB
        1 FADD R0, R4, R1
        5 EXIT
        SUB:
        1{0} FADD R6, R7, R8
        5 RET.REL.NODEC R20 0x0
    """
    assert kinds(text.replace("{0}", "")) == [("raw", "R4", 32)]
    assert kinds(text.replace("{0}", ",b0")) == []


def test_opposite_guards_do_not_meet() -> None:
    text = "1 @P0 FADD R0, R1, R2\n1 @!P0 FADD R3, R0, R2" + END
    assert kinds(text) == []
    assert kinds(text.replace("!P0", "P0")) == [("raw", "R0", 16)]
    changed = "1 @P0 FADD R0, R1, R2\n1 ISETP.NE.AND P0, PT, R5, RZ, PT\n1 @!P0 FADD R3, R0, R2" + END
    assert ("raw", "R0", 32) in kinds(changed)


def test_draining_code() -> None:
    """ptxas -O0 puts stall 0 with yield on everything and sets no scoreboards."""
    drain = [replace(i, control=replace(i.control, stall=0, yield_=True)) for i in program("1 LDG.E R4, desc[UR4][R2.64]\n1 FADD R0, R4, R1" + END)]
    assert check_instructions(drain, "sm_90a") == []


def test_control_codes() -> None:
    bad = [replace(i, control=replace(i.control, stall=13, yield_=False)) for i in program("1 NOP")]
    assert [f.kind for f in check_instructions([*bad, *program("5 EXIT")], "sm_90a")] == ["control"]


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="sm_75"):
        check_instructions(program("5 EXIT"), "sm_75")
    with pytest.raises(SassError, match="FROB"):
        check_instructions([Instruction("FROB")], "sm_90a", kernel="k")


# ---- vendor code ---------------------------------------------------------------------------------------------------------------------

CHIPS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")


def vendor_kernels(
    count: int, seed: int, chips: tuple[str, ...] = CHIPS, levels: tuple[str, ...] = ("-O3",)
) -> list[tuple[str, str, list[Instruction]]]:
    """(description, chip, code) of the kernels of some corpus files as ptxas compiles them."""
    root = oracle.corpus()
    if root is None:
        pytest.skip("no corpus")
    files = sorted(p for p in root.glob("*/*.ptx") if p.stat().st_size < 60_000 and ".sm_90." in p.name and "_dbg" not in p.name)
    out = []
    for path in random.Random(seed).sample(files, count):
        for chip in chips:
            for level in levels:
                for name, code in oracle.vendor_disassemble(oracle.ptxas(path.read_text(), chip, level)).items():
                    out.append((f"{path.name} {chip} {level} {name}", chip, code))
    return out


def false_alarms(kernels: list[tuple[str, str, list[Instruction]]]) -> tuple[int, list[str]]:
    total, bad = 0, []
    for name, chip, code in kernels:
        total += len(code)
        bad += [f"{name}: {f}" for f in check_instructions(code, chip) if f.severity == "error"]
    return total, bad


@oracle.needs_tools
def test_vendor_code_is_clean() -> None:
    total, bad = false_alarms(vendor_kernels(2, seed=21))
    assert total > 1000
    assert not bad


@oracle.needs_tools
@pytest.mark.slow
def test_vendor_code_is_clean_at_all_levels() -> None:
    total, bad = false_alarms(vendor_kernels(25, seed=22, levels=("-O0", "-O1", "-O2", "-O3")))
    assert total > 50_000
    assert not bad


def faults(code: list[Instruction], rng: random.Random) -> list[tuple[str, int, Instruction]]:
    """Single changes of control codes: (kind, place, instruction as changed)."""
    out = []
    for at, instr in enumerate(code):
        c = instr.control
        out += [("wait cleared", at, replace(instr, control=replace(c, wait=c.wait & ~(1 << b)))) for b in range(6) if c.wait >> b & 1]
        if c.write is not None:
            out.append(("write barrier removed", at, replace(instr, control=replace(c, write=None))))
            out.append(("scoreboard swapped", at, replace(instr, control=replace(c, write=(c.write + rng.randrange(1, 6)) % 6))))
        if c.read is not None:
            out.append(("read barrier removed", at, replace(instr, control=replace(c, read=None))))
        if c.stall >= 3:
            out.append(("stall shortened", at, replace(instr, control=replace(c, stall=1, yield_=False))))
    return out


def plant(kernels: list[tuple[str, str, list[Instruction]]], each: int, seed: int) -> tuple[Counter[str], Counter[str], list[str]]:
    """(found, harmless, missed) of planted faults; what no walk can tell from correct code counts as harmless."""
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    harmless: Counter[str] = Counter()
    missed = []
    for name, chip, code in kernels:
        by_kind: dict[str, list[tuple[str, int, Instruction]]] = {}
        for fault in faults(code, rng):
            by_kind.setdefault(fault[0], []).append(fault)
        for kind, rows in by_kind.items():
            for _, at, changed in rng.sample(rows, min(each, len(rows))):
                mutant = [*code[:at], changed, *code[at + 1 :]]
                if any(f.severity == "error" for f in check_instructions(mutant, chip)):
                    found[kind] += 1
                elif paths.hazards(mutant, chip, walks=4, seed=at):
                    missed.append(f"{name}: {kind} at {16 * at:#x}")
                else:
                    harmless[kind] += 1
    return found, harmless, missed


@oracle.needs_tools
def test_planted_faults_are_found() -> None:
    found, harmless, missed = plant(vendor_kernels(2, seed=31, chips=("sm_90a", "sm_120a")), each=2, seed=1)
    assert not missed
    assert set(found) >= {"wait cleared", "write barrier removed", "stall shortened", "scoreboard swapped"}
    assert sum(found.values()) > sum(harmless.values())


@oracle.needs_tools
@pytest.mark.slow
def test_planted_faults_are_found_widely() -> None:
    found, _, missed = plant(vendor_kernels(15, seed=32), each=6, seed=2)
    assert len(missed) <= sum(found.values()) // 100


@oracle.needs_tools
def test_walks_find_nothing_in_vendor_code() -> None:
    for name, chip, code in vendor_kernels(2, seed=41, chips=("sm_90a",)):
        assert not paths.hazards(code, chip, walks=2), name


# ---- from bytes ----------------------------------------------------------------------------------------------------------------------

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 a;
  .reg .f32 x, y;
  ld.param.u64 a, [p];
  ld.global.f32 x, [a];
  ld.global.f32 y, [a+4];
  add.f32 x, x, y;
  st.global.f32 [a], x;
  ret;
}
"""


def without_waits(cubin: bytes, opcode: str) -> bytes:
    """The cubin with the wait mask of the first instruction of an opcode cleared."""
    code = read(cubin).kernel("k").code
    at = next(i for i, instr in enumerate(oracle.vendor_disassemble(cubin)["k"]) if instr.opcode == opcode)
    word = int.from_bytes(code[16 * at : 16 * at + 16], "little") & ~(63 << 116)
    start = cubin.index(code) + 16 * at
    return cubin[:start] + word.to_bytes(16, "little") + cubin[start + 16 :]


@oracle.needs_tools
def test_cubin_bytes() -> None:
    cubin = oracle.ptxas(PTX, "sm_90a")
    assert check(cubin) == []
    finding, *_ = check(without_waits(cubin, "FADD"), "k")
    assert (finding.kind, finding.kernel, finding.consumer, finding.needed) == ("raw", "k", "FADD", 0)


@oracle.needs_tools
def test_command_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.cubin", tmp_path / "bad.cubin"
    good.write_bytes(oracle.ptxas(PTX, "sm_90a"))
    bad.write_bytes(without_waits(good.read_bytes(), "FADD"))
    assert CliRunner().invoke(cli, ["check", str(good)]).exit_code == 0
    text = CliRunner().invoke(cli, ["check", str(bad)])
    assert text.exit_code == 1
    assert "FADD reads" in text.output
    rows = json.loads(CliRunner().invoke(cli, ["check", "--json", str(bad)]).output)
    assert rows[0]["kind"] == "raw"
    assert rows[0]["producer"].startswith("LDG")
