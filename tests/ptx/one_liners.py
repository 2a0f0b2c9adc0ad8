"""PTX one-liners with the verdict of ptxas 13.5 on each, and the script that asks it: `python -m tests.ptx.one_liners` rewrites the verdicts.

`data/one_liners.tsv` has a line each: PTX version, target, verdict, instruction. The verdict is "ok" or the kind of reason for refusing.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.oracle import tool

DATA = Path(__file__).parent / "data" / "one_liners.tsv"
Row = tuple[str, str, str, str]
_REGISTERS = """.reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .u16 %us<4>; .reg .s16 %ss<4>;
.reg .f16 %hf<4>; .reg .f16x2 %hx<4>; .reg .u32 %u<9>; .reg .s32 %s<9>; .reg .u64 %ud<9>; .reg .s64 %sd<9>; .reg .f32 %f<20>; .reg .f64 %fd<9>;
"""
_KINDS = (  # kind of reason, what ptxas says, what we say; the first that fits counts
    ("undefined symbol", r"Unknown symbol", r"unknown symbol"),
    ("unknown opcode", r"Not a name of any known instruction", r"unknown instruction"),
    ("version", r"requires PTX ISA \.version|PTX \.version", r"needs PTX version"),
    ("target", r"requires \.target|not supported on \.target", r"needs target"),
    ("state space", r"State space mismatch", r"address: expected"),
    ("modifier", r"odifier|qualifier|Unexpected instruction types|rounding|does not apply", r"modifier|expected one of"),
    ("operand", r"Arguments mismatch|Argument \d|perand|Result|must be|allowed for|Illegal|Incorrect", r"operand"),
)


def module(row: Row) -> str:
    """A module around one instruction."""
    version, target, _, line = row
    wide = ".reg .b128 %q<9>;" if "%q" in line else ""
    return f""".version {version}
.target {target}, texmode_independent
.address_size 64
.global .align 16 .b8 gv[64]; .shared .align 16 .b8 sv[64]; .const .align 16 .b8 cv[64];
.global .texref tx; .global .samplerref sm; .global .surfref sf;
.func fn0() {{ ret; }}
.func (.param .b32 fr) fn1(.param .b32 fa) {{ st.param.b32 [fr], 1; ret; }}
.entry k(.param .u64 kp) {{ {_REGISTERS} {wide} .local .align 16 .b8 lv[64]; .param .b32 pa, pb;
L0:
{line}
ret; }}
"""


def rows() -> list[Row]:
    """The recorded lines."""
    found = []
    for text in DATA.read_text().splitlines():
        version, target, verdict, line = text.split("\t")
        found.append((version, target, verdict, line))
    return found


def kind(message: str, ours: bool) -> str:
    """The kind of reason a message gives."""
    for name, theirs, mine in _KINDS:
        if re.search(mine if ours else theirs, message):
            return name
    return "other"


def ask(row: Row) -> str:
    """What ptxas says of a line now."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as source:
        source.write(module(row))
        source.flush()
        command = [str(tool("ptxas")), f"-arch={row[1]}", "-c", "-O0", source.name, "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True)
    return "ok" if done.returncode == 0 else kind(done.stdout + done.stderr, False)


def ask_all(found: list[Row]) -> list[str]:
    """What ptxas says of many lines."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(ask, found))


def main() -> None:
    found = rows()
    verdicts = ask_all(found)
    DATA.write_text("".join(f"{row[0]}\t{row[1]}\t{verdict}\t{row[3]}\n" for row, verdict in zip(found, verdicts, strict=True)))


if __name__ == "__main__":
    main()
