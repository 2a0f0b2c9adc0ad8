"""Errors that sassay reports to its users: what is wrong, where it stands, and a code that stays the same across releases."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A place in an input: a line and column (both from 1) of a text file, or a byte offset in a kernel."""

    file: str = ""
    line: int = 0
    column: int = 0
    kernel: str = ""
    offset: int = -1

    def __str__(self) -> str:
        if self.offset >= 0:
            return f"{self.kernel or self.file}+{self.offset:#x}"
        if self.line:
            return f"{self.file}:{self.line}:{self.column}"
        return self.file or self.kernel


class SassayError(Exception):
    """Base of all errors caused by an input. `code` is stable; `location` says where."""

    code = "E000"

    def __init__(self, message: str, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        prefix = f"{self.location}: " if self.location is not None and str(self.location) else ""
        return f"{prefix}error: {self.message}"


class PtxError(SassayError):
    """The PTX text breaks a rule of the language, or asks for something the target lacks."""

    code = "E100"


class UnsupportedError(SassayError):
    """Legal input that sassay cannot handle yet. Names the construct."""

    code = "E200"


class SassError(SassayError):
    """SASS text that names no legal instruction, or words that decode to none."""

    code = "E300"


class CubinError(SassayError):
    """A file that is not a well-formed cubin."""

    code = "E400"


class EmulationError(SassayError):
    """A launch that goes wrong: a bad access, a hang, a barrier deadlock."""

    code = "E500"


class ProofError(SassayError):
    """A proof that cannot be attempted, and why."""

    code = "E600"


class AllocationError(SassayError):
    """Registers cannot be allocated within the limits asked for."""

    code = "E700"


class DeviceError(SassayError):
    """A GPU that cannot be had, or a call of its driver that failed; `name` is the driver's name of the error."""

    code = "E800"

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class ErrorList(SassayError):
    """Several errors found in one run, in order of their place."""

    code = "E900"

    def __init__(self, errors: list[SassayError]) -> None:
        super().__init__("\n".join(str(e) for e in errors))
        self.errors = errors

    def __str__(self) -> str:
        return self.message
