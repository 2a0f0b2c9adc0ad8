"""NVIDIA's tools as oracles for tests: where they are, cached runs, and their disassembly as our own values.

The tools come from the Python packages of the test extra and not from PATH, whose versions differ. Everything here skips or returns None
when they are absent.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from sassay.sass.model import Control, Instruction, Reg
from sassay.sass.text import parse_instruction

VERSION = "13.5.37"
_CACHE = Path(tempfile.gettempdir()) / f"sassay-oracle-{os.getuid()}-{VERSION}"


def tool(name: str) -> Path | None:
    """Path of ptxas, nvdisasm, cuobjdump or nvcc of the pinned packages, or None."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(root) / "cu13" / "bin" / name
        if path.exists():
            return path
    return None


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip marker for tests that need these tools."""
    missing = [name for name in names if tool(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)} {VERSION}")


needs_ptxas = needs("ptxas")
needs_nvdisasm = needs("nvdisasm")
needs_tools = needs("ptxas", "nvdisasm", "cuobjdump")


def corpus() -> Path | None:
    """Directory of real PTX files: SASSAY_CORPUS, else ../shared/corpus beside the repository, or None."""
    root = Path(__file__).resolve().parents[2]
    path = Path(os.environ.get("SASSAY_CORPUS", root.parent / "shared" / "corpus"))
    return path if path.is_dir() else None


def run_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a tool; the caller looks at the return code."""
    path = tool(name)
    if path is None:
        pytest.skip(f"no {name}")
    return subprocess.run([str(path), *arguments], capture_output=True, text=True)


def complaints(cubin: Path) -> list[str]:
    """What NVIDIA's readers find wrong with a cubin: nonzero exits and anything on their error output."""
    found = []
    for name, *flags in (["nvdisasm", "-g"], ["cuobjdump", "-elf", "-sass", "-res-usage"]):
        done = run_tool(name, *flags, str(cubin))
        if done.returncode or done.stderr.strip():
            found.append(f"{name} {' '.join(flags)}: exit {done.returncode}: {done.stderr[:300]}")
    return found


def ptxas(text: str, chip: str, *flags: str) -> bytes:
    """The cubin ptxas makes of PTX text, cached by content. RuntimeError with its messages where it refuses."""
    key = hashlib.sha256("\0".join((VERSION, chip, *flags, text)).encode()).hexdigest()
    cached = _CACHE / f"{key}.cubin"
    if cached.exists():
        return cached.read_bytes()
    _CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as work:
        source, out = Path(work) / "in.ptx", Path(work) / "out.cubin"
        source.write_text(text)
        done = run_tool("ptxas", f"-arch={chip}", *flags, str(source), "-o", str(out))
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        data = out.read_bytes()
        out.rename(cached)
    return data


def sections(cubin: bytes) -> dict[str, bytes]:
    """Section contents by name (the last of equal names), read with as little code as will do."""
    shoff, = struct.unpack_from("<Q", cubin, 40)
    size, count, strings = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, shoff + i * size) for i in range(count)]
    base = headers[strings][4]
    out = {}
    for name, kind, _, _, offset, length, *_ in headers:
        end = cubin.index(b"\0", base + name)
        out[cubin[base + name : end].decode()] = b"" if kind == 8 else cubin[offset : offset + length]
    return out


def sm_of(cubin: bytes) -> str:
    """nvdisasm's name of the chip, from the ELF flags of either ABI. The `a` chips decode what the plain ones do."""
    flags, = struct.unpack_from("<I", cubin, 48)
    number = flags >> 8 & 0xFF if cubin[7] == 0x41 else flags & 0xFF
    return f"SM{number}a"


def disassemble_words(words: bytes, chip: str) -> list[str]:
    """nvdisasm's text of raw 128-bit words, one entry each without the final ` ;`; a branch target counts from the first word."""
    if not words:
        return []
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(words)
        file.flush()
        done = run_tool("nvdisasm", "--binary", chip, "-raw", file.name)
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])
    texts = [""] * (len(words) // 16)
    for address, text in re.findall(r"^\s*/\*([0-9a-f]+)\*/\s+(.*?) ?;\s*$", done.stdout, re.M):
        texts[int(address, 16) // 16] = text
    return texts


def decode_control(word: int, reuse_shown: bool) -> Control:
    """Control bits of a 128-bit word. Bits 122 to 124 are a batch value unless the text shows them as reuse flags."""
    write, read = word >> 110 & 7, word >> 113 & 7
    return Control(
        stall=word >> 105 & 15,
        yield_=not word >> 109 & 1,
        write=None if write == 7 else write,
        read=None if read == 7 else read,
        wait=word >> 116 & 63,
        batch=0 if reuse_shown else word >> 122 & 7,
    )


def decode_words(words: bytes, chip: str) -> list[Instruction]:
    """Raw words as instructions, by nvdisasm's text."""
    out = []
    for at, text in enumerate(disassemble_words(words, chip)):
        instr = parse_instruction(text)
        word = int.from_bytes(words[16 * at : 16 * at + 16], "little")
        reuse = any(isinstance(operand, Reg) and operand.reuse for operand in instr.operands)
        out.append(Instruction(instr.opcode, instr.modifiers, instr.operands, instr.guard, decode_control(word, reuse)))
    return out


def vendor_disassemble(cubin: bytes) -> dict[str, list[Instruction]]:
    """Instructions of each function of a cubin by nvdisasm, control codes from the words. The instruction i stands at offset 16*i.

    Relocated fields read as they stand in the file.
    """
    chip = sm_of(cubin)
    return {name[6:]: decode_words(data, chip) for name, data in sections(cubin).items() if name.startswith(".text.")}
