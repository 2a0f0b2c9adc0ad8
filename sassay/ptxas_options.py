"""The options of ptxas 13.0 and 13.5 as data: how each is spelt and what sassay-ptxas does about it; and the reading of command lines.

Names and spellings come from both versions' `--help`; the reading rules (what takes a value and how, which messages) were probed with 13.5.
`python -m sassay.ptxas_options` prints docs/ptxas-options.md.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

DONE, HINT, MET, REFUSED = "done", "no effect", "holds already", "refused"
EFFECTS = {
    DONE: "does what it says",
    HINT: "accepted; asks only for speed, size, comfort or silence, so results stay the same without it",
    MET: "accepted; our output is that way in any case",
    REFUSED: "refused by name (exit 255), since ignoring it would change what the output is or does",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `kind`: flag, bool (true or false), number, text, list (comma-separated), count (archmax, archmin or a number)."""

    long: str
    short: str
    kind: str
    effect: str
    what: str
    since: str = "13.0"
    allowed: tuple[str, ...] = ()
    """Values with an effect of their own kind: those of a refused option that ask for nothing we lack."""


OPTIONS = (
    Option("Ofast-compile", "Ofc", "text", HINT, "compile speed against code speed; 0, min, mid, max", allowed=("0", "min", "mid", "max")),
    Option("allow-expensive-optimizations", "allow-expensive-optimizations", "bool", HINT, "resources for optimisation"),
    Option("apply-controls", "apply-controls", "text", REFUSED, "a file of options for parts of ptxas", "13.5"),
    Option("compile-as-tools-patch", "astoolspatch", "flag", REFUSED, "patch code for CUDA tools"),
    Option("compile-only", "c", "flag", REFUSED, "relocatable object; accepted with -o /dev/null, where it only checks"),
    Option("compiler-annotations", "annotate", "flag", HINT, "notes for the compiler's makers in the output"),
    Option("def-load-cache", "dlcm", "text", REFUSED, "default cache operator of loads; `ca`, the default, is accepted", allowed=("ca",)),
    Option("def-store-cache", "dscm", "text", REFUSED, "default cache operator of stores; `wb`, the default, is accepted", allowed=("wb",)),
    Option("device-debug", "g", "flag", DONE, "level 0 and line tables from .loc; other debug sections are not written, and a warning says so"),
    Option("device-function-maxrregcount", "func-maxrregcount", "count", HINT, "only for -c; warns so, as ptxas does"),
    Option("device-stack-protector", "device-stack-protector", "bool", REFUSED, "stack canaries; `false` is accepted", allowed=("false",)),
    Option("disable-optimizer-constants", "disable-optimizer-consts", "flag", MET, "no constant bank made by the optimiser"),
    Option("disable-warnings", "w", "flag", DONE, "no warnings"),
    Option("dont-merge-basicblocks", "no-bb-merge", "flag", HINT, "blocks stay apart for debuggers"),
    Option("enable-func-clone-sc", "enable-func-clone-sc", "bool", HINT, "only for -c", "13.5"),
    Option("entry", "e", "list", DONE, "only these kernels"),
    Option("extensible-whole-program", "ewp", "flag", REFUSED, "output open to later linking"),
    Option("fmad", "fmad", "bool", MET, "mul and add are never contracted, whatever its value: each PTX operation rounds by itself"),
    Option("force-load-cache", "flcm", "text", REFUSED, "forced cache operator of loads"),
    Option("force-store-cache", "fscm", "text", REFUSED, "forced cache operator of stores"),
    Option("g-tensor-memory-access-check", "g-tmem-access-check", "flag", REFUSED, "checks around tensor memory accesses"),
    Option("generate-line-info", "lineinfo", "flag", DONE, "line tables from .loc"),
    Option("gno-fabric-access-check", "gno-fabric-access-check", "flag", MET, "no checks around fabric operations", "13.5"),
    Option("gno-tensor-memory-access-check", "gno-tmem-access-check", "flag", MET, "no checks around tensor memory accesses"),
    Option("gpu-name", "arch", "text", DONE, "the chip; compute_NN only checks; lto_NN and chips without tables are not defined"),
    Option("help", "h", "flag", DONE, "prints the options"),
    Option("input-as-string", "ias", "ptx", DONE, "PTX text as argument"),
    Option("jobserver", "jobserver", "flag", HINT, "make's job server; we run in one process", "13.5"),
    Option("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", "flag", MET, "no effect from sm_70 on, by ptxas's own text"),
    Option("list-arch", "arch-ls", "flag", DONE, "architectures we compile for", "13.5"),
    Option("list-version", "version-ls", "flag", DONE, "PTX versions we read"),
    Option("machine", "m", "text", DONE, "64 only"),
    Option("make-errors-visible-at-exit", "make-errors-visible-at-exit", "flag", REFUSED, "code at exits"),
    Option("maxntid", "maxntid", "list", DONE, "for kernels without .maxntid or .reqntid"),
    Option("maxrregcount", "maxrregcount", "count", DONE, "most registers a thread may use, at least 24"),
    Option("minnctapersm", "minnctapersm", "number", HINT, "occupancy wish"),
    Option("opt-level", "O", "level", DONE, "0: straight and serial; 1 to 3 (and above): all optimisations"),
    Option("optimize-float-atomics", "opt-fp-atomics", "flag", HINT, "permission to lose precision, not used"),
    Option("options-file", "optf", "list", DONE, "more options from files"),
    Option("output-file", "o", "text", DONE, "the cubin; elf.o by default"),
    Option("override-directive-values", "override-directive-values", "flag", DONE, "-maxntid before .maxntid"),
    Option("position-independent-code", "pic", "bool", HINT, "warns as ptxas does: no longer functional"),
    Option("preserve-relocs", "preserve-relocs", "flag", REFUSED, "relocations kept in the output"),
    Option("regAllocOptLevel", "regAllocOptLevel", "number", HINT, "not in --help; Triton passes it", "13.0, hidden"),
    Option("register-usage-level", "regUsageLevel", "number", HINT, "0 to 10; out of range: warns as ptxas does"),
    Option("return-at-end", "ret-end", "flag", HINT, "the last return stays for debuggers"),
    Option("sanitize", "sanitize", "text", REFUSED, "instrumented code"),
    Option("sp-bounds-check", "sp-bounds-check", "flag", REFUSED, "checks of the stack pointer"),
    Option("split-compile", "split-compile", "number", HINT, "threads of the compiler"),
    Option("suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning", "flag", MET, "no such warning"),
    Option("suppress-debug-info", "suppress-debug-info", "flag", DONE, "no line tables after all"),
    Option("suppress-double-demote-warning", "suppress-double-demote-warning", "flag", MET, "no such warning"),
    Option("suppress-position-independent-code-warning", "suppress-position-independent-code-warning", "flag", DONE, "silences -pic", "13.5"),
    Option("suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", "flag", MET, "no such advice"),
    Option("suppress-stack-size-warning", "suppress-stack-size-warning", "flag", MET, "no such warning"),
    Option("verbose", "v", "flag", DONE, "registers, stack, spills, barriers, shared memory of each kernel"),
    Option("verbose2", "v2", "flag", DONE, "-v, and the names of modules", "13.5"),
    Option("version", "V", "flag", DONE, "ours, with the release of ptxas that we stand in for"),
    Option("warn-on-double-precision-use", "warn-double-usage", "flag", DONE, "a warning for each line with an f64 operation"),
    Option("warn-on-local-memory-usage", "warn-lmem-usage", "flag", DONE, "a warning for kernels with a stack frame"),
    Option("warn-on-spills", "warn-spills", "flag", DONE, "a warning for kernels that spill"),
    Option("warning-as-error", "Werror", "flag", DONE, "warnings are errors"),
)
LONG = {option.long: option for option in OPTIONS}
SHORT = {option.short: option for option in OPTIONS}
COUNTS = ("archmax", "archmin")


class UsageError(Exception):
    """A command line that ptxas would not take either; the text is ptxas's."""


class RefusedError(Exception):
    """An option that only the real ptxas can follow."""


@dataclass(slots=True)
class CommandLine:
    """A command line read: options by long name (the last value counts), inputs in order, and warnings about the line itself."""

    values: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    refused: list[Option] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    """All words, those of options files in their place."""

    def has(self, name: str) -> bool:
        return name in self.values


def read(arguments: Sequence[str], read_file: Callable[[str], str]) -> CommandLine:
    """Reads a command line; UsageError for what ptxas would refuse as well. `read_file` gives the text of an options file."""
    line = CommandLine()
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            line.inputs.append(word)
            line.tokens.append(word)
            continue
        option, given = _option(word)
        if option.kind == "flag":
            if given is not None:
                raise UsageError(f"no argument expected after '{word.split('=')[0]}'")
            value = ""
        elif given is not None:
            value = given
        elif option.kind == "level" and word != "--opt-level":
            value = "3"
        elif words:
            value = words.pop(0)
        else:
            raise UsageError(f"argument expected after '{word}'")
        if option.long == "options-file":
            for name in value.split(","):
                words[:0] = split(read_file(name))
            continue
        line.tokens += [f"--{option.long}"] if option.kind == "flag" else [f"--{option.long}={value}"]
        _store(line, option, value)
    return line


def split(text: str) -> list[str]:
    """Words of an options file: blanks between, double quotes around, a backslash before any character."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.quotes, lexer.escape = True, "", '"', "\\"
    return list(lexer)


def _option(word: str) -> tuple[Option, str | None]:
    attached = re.fullmatch(r"-(O|m)(\d+)", word)
    if attached:
        return SHORT[attached[1]], attached[2]
    name, equals, value = word.partition("=")
    option = LONG.get(name[2:]) if name.startswith("--") else SHORT.get(name[1:])
    if option is None:
        raise UsageError(f"Unknown option '{name[1:]}'")
    return option, value if equals else None


def _store(line: CommandLine, option: Option, value: str) -> None:
    name = option.long
    _check(option, value)
    if option.kind in ("list", "ptx"):
        line.lists.setdefault(name, []).extend(value.split(",") if option.kind == "list" else [value])
    elif option.kind != "flag" and line.values.get(name, value) != value:
        line.warnings.append(f"incompatible redefinition for option '{name}', the last value of this option was used")
    line.values[name] = value
    if option.effect == REFUSED and value not in option.allowed:
        line.refused.append(option)


def _check(option: Option, value: str) -> None:
    name = option.long
    if option.kind == "bool" and value not in ("true", "false"):
        raise UsageError(f"'{value}': expected true or false")
    if option.kind in ("number", "level") and not re.fullmatch(r"-?\d+", value):
        raise UsageError(f"'{value}': expected a number")
    if option.kind == "count" and value not in COUNTS and not value.isdecimal():
        raise UsageError(f"Invalid value '{value}' for option '{name}'")
    if name == "machine" and value != "64":
        raise UsageError(f"Value '{value}' is not defined for option 'machine'")
    if name == "Ofast-compile" and value not in option.allowed:
        raise UsageError(f"Invalid value for --Ofast-compile/-Ofc ({value}), is not 'max', 'mid', 'min', or '0'")
    if name == "sanitize" and value not in ("memcheck", "threadsteer"):
        raise UsageError(f"Value '{value}' is not defined for option 'sanitize'")


_SHOWN = {"flag": "", "bool": " <true|false>", "number": " <N>", "level": " <N>", "text": " <value>", "list": " <value>,...", "ptx": " <ptx>",
          "count": " <archmax/archmin/N>"}  # fmt: skip


def usage() -> str:
    """The text of --help."""
    lines = ["", "Usage  : sassay-ptxas [options] <ptx file>,...", "", "Options", "=======", ""]
    for option in OPTIONS:
        lines += [f"{'--' + option.long + _SHOWN[option.kind]:<52}(-{option.short})", f"        {option.effect}: {option.what}.", ""]
    lines += [
        "Environment", "===========", "",
        "SASSAY_FALLBACK=/path/to/ptxas   hands on, with one line on stderr, what sassay cannot compile; off unless set.",
        "SASSAY_PROVE=1                   proves each kernel and fails on a refutation.",
        "SASSAY_KEEP=DIR                  keeps PTX, cubin, certificate and a reproducing command of what fails.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def document() -> str:
    """docs/ptxas-options.md."""
    lines = [
        "# What sassay-ptxas does with each option of ptxas", "",
        "Made from the table in `sassay/ptxas_options.py` by `python -m sassay.ptxas_options`; a test compares it with the `--help`",
        "of ptxas where one is installed.", "",
        *(f"- **{name}**: {text}." for name, text in EFFECTS.items()), "",
        "Spellings as ptxas reads them: `--long`, `--long=value`, `--long value`, `-short`, `-short=value`, `-short value`; `-m64`, `-O2`,",
        "`-O=2` (but not `-O 2`). An unknown option is an error. Exit status: 0, or 255 after any error.", "",
        "| option | short | what we do | what it is | since |", "|---|---|---|---|---|",
        *(f"| `--{o.long}` | `-{o.short}` | {o.effect} | {o.what} | {o.since} |" for o in OPTIONS), "",
    ]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    print(document(), end="")
