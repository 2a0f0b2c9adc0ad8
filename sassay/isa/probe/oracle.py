"""Questions to a stock nvdisasm, many words at a time.

nvdisasm 13.5 refuses a file of raw words when any word in it is illegal, but names every illegal word's address first. So a pass drops the
addresses named and asks again: two passes whatever the number of illegal words. A few are refused without an address; a pass with a word
known to be illegal after each suspect finds them.

With an undefined control field the refusal names the word's encoding class, which gives the class of a legal word without reading its text.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

OPEX_BITS = (105, 106, 107, 108, 109, 122, 123, 124)
OPEX_MASK = sum(1 << b for b in OPEX_BITS)
CONTROL_MASK = ((1 << 128) - 1) ^ ((1 << 105) - 1)
GOOD_CONTROL = (7 << 110) | (7 << 113) | (1 << 105)
"""Stall 1, no barriers, no wait, no reuse: legal for every class seen."""
BAD_CONTROL = (7 << 110) | (7 << 113) | (0x1F << 105)
"""Stall 15 with bit 109 set: undefined for every class."""
SENTINEL = (0xFFF).to_bytes(16, "little")
CHUNK = 100_000

_ADDRESS = re.compile(rb"at address 0x([0-9a-f]+)")
_OPCLASS = re.compile(rb"Opclass '([^']*)', undefined value (\S+) for table '([^']*)'")
_LINE = re.compile(rb"\s+/\*([0-9a-f]+)\*/(.*)$")


class OracleError(Exception):
    """nvdisasm is missing, or answered in a way that this module does not understand."""


def find_nvdisasm() -> str:
    """Path of the nvdisasm to ask: $SASSAY_NVDISASM, the one installed beside this Python, or the one on PATH."""
    named = os.environ.get("SASSAY_NVDISASM")
    if named:
        return named
    try:
        import nvidia  # type: ignore[import-untyped]

        for root in nvidia.__path__:
            candidate = Path(root) / "cu13" / "bin" / "nvdisasm"
            if candidate.exists():
                return str(candidate)
    except ImportError:
        pass
    found = shutil.which("nvdisasm")
    if found is None:
        raise OracleError("nvdisasm not found: install nvidia-cuda-nvdisasm or set SASSAY_NVDISASM")
    return found


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a word was refused: the class and legality table when only the control field is undefined, else both empty."""

    opclass: str = ""
    table: str = ""


@dataclass
class Oracle:
    """One nvdisasm and one chip (`SM90a`). `words` and `seconds` count what was asked."""

    chip: str
    tool: str = field(default_factory=find_nvdisasm)
    words: int = 0

    def version(self) -> str:
        out = subprocess.run([self.tool, "--version"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"V(\d+\.\d+\.\d+)", out)
        return found.group(1) if found else out.strip().splitlines()[-1]

    def digest(self) -> str:
        return hashlib.sha256(Path(self.tool).read_bytes()).hexdigest()

    def texts(self, words: Sequence[int]) -> list[str | None]:
        """The text of each word at byte address 16*i, None where nvdisasm refuses it, "" where it is accepted without text."""
        out: list[str | None] = [None] * len(words)
        self.words += len(words)
        for start in range(0, len(words), CHUNK):
            self._texts(words, start, min(start + CHUNK, len(words)), out)
        return out

    def classes(self, words: Sequence[int]) -> list[Refusal]:
        """The class of each word, whatever its control field; an empty class where no class takes it."""
        out = [Refusal()] * len(words)
        self.words += len(words)
        probes = [(w & ~CONTROL_MASK) | BAD_CONTROL for w in words]
        for start in range(0, len(words), CHUNK):
            part = probes[start : start + CHUNK]
            result = self._run(b"".join(w.to_bytes(16, "little") for w in part))
            for line in result.stderr.split(b"\n"):
                opclass = _OPCLASS.search(line)
                address = _ADDRESS.search(line)
                if opclass and address:
                    out[start + int(address.group(1), 16) // 16] = Refusal(opclass.group(1).decode(), opclass.group(3).decode())
        return out

    def _run(self, data: bytes) -> subprocess.CompletedProcess[bytes]:
        directory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        with tempfile.NamedTemporaryFile(dir=directory, suffix=".words") as file:
            file.write(data)
            file.flush()
            return subprocess.run([self.tool, "--binary", self.chip, "-raw", file.name], capture_output=True)

    def _texts(self, words: Sequence[int], start: int, stop: int, out: list[str | None]) -> None:
        """Illegal words are replaced by a NOP-like legal filler, not dropped, so that addresses stay those of the caller."""
        packed = [words[i].to_bytes(16, "little") for i in range(start, stop)]
        live = set(range(len(packed)))
        filler = self._filler()
        for _ in range(4):
            result = self._run(b"".join(packed))
            if result.returncode == 0:
                break
            bad = self._refused(result.stderr, packed)
            for k in bad:
                packed[k] = filler
            live -= bad
        else:
            raise OracleError(f"nvdisasm keeps refusing: {result.stderr[:300]!r}")
        for k in live:
            out[start + k] = ""
        for line in result.stdout.split(b"\n"):
            match = _LINE.match(line)
            if match:
                k = int(match.group(1), 16) // 16
                if k in live:
                    out[start + k] = match.group(2).decode("latin1").strip().rstrip(";").rstrip()

    def _refused(self, stderr: bytes, packed: list[bytes]) -> set[int]:
        bad = set()
        unnamed = 0
        for line in stderr.split(b"\n"):
            address = _ADDRESS.search(line)
            if address:
                bad.add(int(address.group(1), 16) // 16)
                unnamed -= b"Unrecognized operation" in line
            elif b"Illegal instruction found" in line:
                unnamed += 1
        if bad and unnamed == 0:
            return bad
        found = self._refused_by_sentinel(packed, bad)
        if not found:
            raise OracleError(f"nvdisasm refuses no word that can be found: {stderr[:300]!r}")
        return found

    def _refused_by_sentinel(self, packed: list[bytes], known: set[int]) -> set[int]:
        order = [k for k in range(len(packed)) if k not in known]
        result = self._run(b"".join(packed[k] + SENTINEL for k in order))
        bad = set(known)
        last, pending = -1, False
        for line in result.stderr.split(b"\n"):
            address = _ADDRESS.search(line)
            if address:
                last, pending = int(address.group(1), 16) // 32, True
            elif b"Illegal instruction found" in line:
                if not pending:
                    bad.add(order[last + 1])
                pending = False
        return bad

    _filler_word: bytes = b""

    def _filler(self) -> bytes:
        """A legal word: 0x918 is NOP on every chip asked so far; the answer is checked, not trusted."""
        if not self._filler_word:
            word = (0x918 | GOOD_CONTROL).to_bytes(16, "little")
            if self._run(word).returncode != 0:
                raise OracleError(f"{self.chip}: 0x918 is refused, no filler word known")
            self._filler_word = word
        return self._filler_word
