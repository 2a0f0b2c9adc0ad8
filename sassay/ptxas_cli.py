"""`sassay-ptxas`: one executable in ptxas's place, with its options, messages (all on stderr) and exit codes, 0 and 255.

Environment: SASSAY_FALLBACK=/path/to/ptxas hands on what we cannot compile, with one line on stderr; SASSAY_PROVE=1 proves each kernel and
fails on a refutation; SASSAY_KEEP=DIR keeps PTX, cubin, certificate and a reproducing command of what fails.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sassay import __version__
from sassay.errors import ErrorList, PtxError, SassayError, UnsupportedError
from sassay.ptxas_options import COUNTS, CommandLine, RefusedError, UsageError, read, usage

if TYPE_CHECKING:
    from sassay.pipeline import CompileResult
    from sassay.ptx.ast import Function, Module, Variable
    from sassay.verify.prove import Proof

RELEASE = "13.5"
"""The release of ptxas whose options and messages these are; callers read it to choose a PTX version (9.5)."""
VERSION = f"""ptxas: sassay {__version__}, PTX to proved cubins, in the place of NVIDIA's ptxas
Not made by NVIDIA
Cuda compilation tools, release {RELEASE}, V{RELEASE}.0
Build sassay_{__version__}
"""
FAILURE = 255
LEAST_REGISTERS = 24
MOST_REGISTERS = 255
ABORTED = "Ptx assembly aborted due to errors"
WIDTH = {"warning": "warning ", "error": "error   ", "fatal": "fatal   ", "info": "info    "}


class Abort(Exception):
    """Ends the run with exit code 255; everything has been said."""


@dataclass(slots=True)
class Messages:
    """Messages in ptxas's forms."""

    quiet: bool = False
    strict: bool = False
    errors: int = 0
    text: list[str] = field(default_factory=list)

    def say(self, kind: str, text: str, file: str = "", line: int = 0) -> None:
        """`ptxas info    : text` or `ptxas FILE, line N; error   : text`; a `kind` of "" prints the text as it is."""
        if kind == "warning" and self.strict:
            kind = "error"
        elif kind == "warning" and self.quiet:
            return
        if kind in ("error", "fatal"):
            self.errors += 1
        place = f"{file}, line {line}; " if file else ""
        out = f"ptxas {place}{WIDTH[kind]}: {text}" if kind else text
        self.text.append(out)
        print(out, file=sys.stderr, flush=True)

    def report(self, error: SassayError) -> None:
        """One of our errors in ptxas's form, with its line if it has one."""
        for one in error.errors if isinstance(error, ErrorList) else [error]:
            where = one.location
            prefix = "" if isinstance(one, PtxError) else "sassay: "
            if where is not None and where.line:
                self.say("error", prefix + one.message, where.file, where.line)
            else:
                kernel = f"'{where.kernel}': " if where is not None and where.kernel else ""
                self.say("error", prefix + kernel + one.message)


@dataclass(slots=True)
class Run:
    """What one call works on: kept for the reproducing command."""

    line: CommandLine
    messages: Messages
    sources: list[tuple[str, str]] = field(default_factory=list)
    """(name, PTX text) of each input."""
    result: CompileResult | None = None
    proofs: list[Proof] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: exit code 0 or 255. Hands on to SASSAY_FALLBACK by replacing the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    messages = Messages()
    run: Run | None = None
    try:
        line = read(words, _options_file)
        done = _information(line) if words else usage()
        if done is not None:
            print(done, end="" if done.endswith("\n") else "\n")
            return 0
        messages.quiet, messages.strict = line.has("disable-warnings"), line.has("warning-as-error")
        run = Run(line, messages)
        _compile(run)
        return 0
    except UsageError as error:
        messages.say("fatal", str(error))
    except Abort:
        pass
    except (RefusedError, SassayError) as error:
        _fall_back(words, str(error) if isinstance(error, RefusedError) else error)
        if isinstance(error, SassayError):
            messages.report(error)
            messages.say("fatal", ABORTED)
        else:
            messages.say("fatal", str(error))
    except Exception as error:  # a bug of ours must look like a failed compilation to the callers
        _fall_back(words, f"internal error: {type(error).__name__}: {error}")
        messages.say("fatal", f"sassay: internal error: {type(error).__name__}: {error}")
        messages.text.append(traceback.format_exc())
    if run is not None:
        _keep(run)
    return FAILURE


def command() -> None:
    """Entry point of the console script."""
    sys.exit(main())


def _information(line: CommandLine) -> str | None:
    """The text of --help, --version and the two lists, which end the run."""
    if line.has("help"):
        return usage()
    if line.has("version"):
        return VERSION
    if line.has("list-arch"):
        from sassay.isa.target import TARGETS

        return "\n".join(sorted({str(t.number) for t in TARGETS.values()}, key=int))
    if line.has("list-version"):
        from sassay.ptx.parser import _LAST_MINOR

        return "\n".join(f"{major}.{minor}" for major, last in _LAST_MINOR.items() for minor in range(last + 1))
    return None


def _options_file(name: str) -> str:
    try:
        return Path(name).read_text()
    except OSError:
        raise UsageError(f"Could not open options file '{name}'") from None


def _compile(run: Run) -> None:
    line, messages = run.line, run.messages
    for text in line.warnings:
        messages.say("warning", text)
    chip = _chip(line)
    output = line.values.get("output-file", "elf.o")
    for option in line.refused:
        if option.long != "compile-only" or output != os.devnull:
            raise RefusedError(f"sassay does not implement option '--{option.long}' (-{option.short}): {option.what}")
    limit = _register_limit(line, chip, messages)
    _advice(line, messages)
    _read_inputs(run)
    modules = [_parse(text, name, chip) for name, text in run.sources]
    module = modules[0] if len(modules) == 1 else merge(modules, run.sources)
    _choose_entries(module, line)
    _apply_directives(module, line)
    if line.has("warn-on-double-precision-use"):
        _doubles(modules, messages)
    if chip.startswith("compute_"):
        _stop_on_errors(messages)
        return
    run.result = _build(run, module, chip, limit)
    _statistics(run, module, chip, limit)
    if os.environ.get("SASSAY_PROVE", "") not in ("", "0"):
        _prove(run, module)
    _stop_on_errors(messages)
    _write(output, run.result.cubin)


def _stop_on_errors(messages: Messages) -> None:
    if messages.errors:
        messages.say("fatal", ABORTED)
        raise Abort


def _chip(line: CommandLine) -> str:
    """The chip or virtual architecture asked for."""
    from sassay.isa.target import TARGETS

    name = line.values.get("gpu-name", "sm_75")
    if name in TARGETS or re.fullmatch(r"compute_\d+[af]?", name):
        return name
    if re.fullmatch(r"(sm|lto)_\d+[af]?", name):
        raise RefusedError(f"Value '{name}' is not defined for option 'gpu-name'")
    raise UsageError(f"Value '{name}' is not defined for option 'gpu-name'")


def _register_limit(line: CommandLine, chip: str, messages: Messages) -> int | None:
    value = line.values.get("maxrregcount")
    if value is None:
        return None
    number = {"archmax": MOST_REGISTERS, "archmin": LEAST_REGISTERS}[value] if value in COUNTS else int(value)
    if number > MOST_REGISTERS + 1:
        messages.say("warning", f"Too big maxrregcount value specified {number}, will be ignored")
        return None
    if 0 < number < LEAST_REGISTERS:
        messages.say("warning", f"For profile {chip} adjusting per thread register count of {number} to lower bound of {LEAST_REGISTERS}")
    return max(number, LEAST_REGISTERS) if number else None


def _advice(line: CommandLine, messages: Messages) -> None:
    """Warnings that ptxas gives about options without effect, and ours."""
    if line.has("device-debug") and line.has("generate-line-info"):
        messages.say("warning", "Conflicting options --device-debug and --generate-line-info specified, ignoring --generate-line-info option")
    if line.has("device-debug") and not line.has("suppress-debug-info"):
        messages.say("warning", "sassay writes line tables, but no other debug information")
    if line.has("suppress-debug-info") and not (line.has("device-debug") or line.has("generate-line-info")):
        text = "Option suppress-debug-info requires option device-debug or lineinfo; ignoring since latter is not specified"
        messages.say("warning", text)
    if line.has("position-independent-code") and not line.has("suppress-position-independent-code-warning"):
        text = "'--position-independent-code' is a deprecated option and is no longer functional. It will be removed in a future release"
        messages.say("warning", text)
    if line.has("device-function-maxrregcount"):
        text = "Command line option 'device-function-maxrregcount' not supported for 'whole program compilation', will be ignored"
        messages.say("warning", text)
    level = int(line.values.get("register-usage-level", "5"))
    if not 0 <= level <= 10:
        messages.say("warning", f"Value of RegUsageLevel ({level}) is out of valid range {{0..10}}, option will be ignored")


def _read_inputs(run: Run) -> None:
    """All inputs, with a message for each that cannot be read."""
    for name in run.line.inputs:
        try:
            data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        except OSError:
            run.messages.say("fatal", f"Input file '{name}' could not be opened")
            continue
        run.sources.append(("<stdin>" if name == "-" else name, data.rstrip(b"\0").decode("utf-8", errors="surrogateescape")))
    run.sources += [(f"<string {i}>", text) for i, text in enumerate(run.line.lists.get("input-as-string", []), start=1)]
    _stop_on_errors(run.messages)
    if not run.sources:
        raise UsageError("No input files specified; use option --help for more information")


def _parse(text: str, file: str, chip: str) -> Module:
    """The module, after ptxas's own checks of .target against the chip, in ptxas's words."""
    from sassay.ptx.parser import parse

    name = chip.replace("compute_", "sm_")
    given = re.fullmatch(r"sm_(\d+)([af]?)", name)
    wanted = re.search(r"^\s*\.target\s+sm_(\d+)([af]?)\b", text, re.M)
    if wanted is not None and given is not None:
        number, here, suffix = int(wanted[1]), int(given[1]), wanted[2]
        if number > here:
            raise UsageError("SM version specified by .target is higher than default SM version assumed")
        in_family = number // 10 == here // 10 and given[2]
        if (suffix == "a" and (number, "a") != (here, given[2])) or (suffix == "f" and not in_family):
            raise UsageError(f"Program with .target 'sm_{number}{suffix}' cannot be compiled to future architecture")
    return parse(text, file, target=name)


def merge(modules: Sequence[Module], sources: Sequence[tuple[str, str]]) -> Module:
    """Several modules as one. Source files of .loc are numbered anew; a name defined twice is an error."""
    from sassay.ptx.ast import LineMark

    whole = modules[0]
    everything: list[Function | Variable] = [*whole.functions, *whole.variables]
    defined = {item.name: item for item in everything}
    for module, (file, _) in zip(modules[1:], sources[1:], strict=True):
        base = max(whole.files, default=0)
        whole.files |= {base + number: name for number, name in module.files.items()}
        new: list[Function | Variable] = [*module.functions, *module.variables]
        for item in new:
            known, line = defined.get(item.name), item.location
            if known is not None and _is_definition(known) and _is_definition(item):
                kind = "function" if item in module.functions else "variable"
                raise PtxError(f"Duplicate definition of {kind} '{item.name}'", line and replace(line, file=file))
            if known is not None and (_is_definition(known) or _is_definition(item)):
                raise UnsupportedError(f"'{item.name}' is declared in one input and defined in another", line)
            defined[item.name] = item
        for function in module.functions:
            if function.body is not None:
                function.body = [replace(s, file=s.file + base) if isinstance(s, LineMark) else s for s in function.body]
        whole.functions += module.functions
        whole.variables += module.variables
        whole.aliases |= module.aliases
    return whole


def _is_definition(item: object) -> bool:
    return getattr(item, "linkage", "") != "extern" and getattr(item, "body", True) is not None


def _choose_entries(module: Module, line: CommandLine) -> None:
    wanted = line.lists.get("entry")
    if wanted is None:
        return
    entries = {f.name for f in module.functions if f.is_entry}
    for name in wanted:
        if name not in entries:
            raise UsageError(f"Unknown function {name}")
    module.functions = [f for f in module.functions if not f.is_entry or f.name in wanted]


def _apply_directives(module: Module, line: CommandLine) -> None:
    """-maxntid, for kernels that say nothing themselves (or for all, by -override-directive-values); -maxrregcount switches it off."""
    values = line.lists.get("maxntid")
    if values is None or line.has("maxrregcount"):
        return
    if len(values) > 3 or not all(v.isdecimal() and int(v) for v in values):
        raise UsageError(f"Invalid value '{','.join(values)}' for option 'maxntid'")
    threads = tuple(int(v) for v in (*values, "1", "1")[:3])
    for function in module.functions:
        silent = "maxntid" not in function.directives and "reqntid" not in function.directives
        if function.is_entry and (silent or line.has("override-directive-values")):
            function.directives["maxntid"] = threads


def _doubles(modules: Sequence[Module], messages: Messages) -> None:
    from sassay.ptx.ast import Instruction

    for module in modules:
        for function in module.functions:
            for item in function.body or ():
                if isinstance(item, Instruction) and "f64" in item.modifiers:
                    messages.say("warning", "Program is doing double precision computations.", item.location.file, item.location.line)


def _build(run: Run, module: Module, chip: str, limit: int | None) -> CompileResult:
    from sassay.pipeline import CompileOptions, compile_module

    line = run.line
    debug = line.has("device-debug")
    lines = (debug or line.has("generate-line-info")) and not line.has("suppress-debug-info")
    level = min(max(int(line.values.get("opt-level", "3")), 0), 3)
    return compile_module(module, chip, CompileOptions(level=0 if debug else level, max_registers=limit, line_info=lines))


def _statistics(run: Run, module: Module, chip: str, limit: int | None) -> None:
    """The lines of -v, and the warnings about spills and local memory."""
    line, messages, result = run.line, run.messages, run.result
    assert result is not None
    verbose = line.has("verbose") or line.has("verbose2")
    if verbose:
        for name in result.kernels if limit is not None else ():
            messages.say("info", f"Overriding maximum register limit 256 for '{name}' with  {limit} of maxrregcount option")
        if line.has("verbose2"):
            for name, _ in run.sources:
                messages.say("info", f"Processing {Path(name).stem}")
        size = sum(v.size for v in module.variables if v.space == "global" and v.linkage != "extern")
        messages.say("info", f"{size} bytes gmem")
    for name, kernel in result.kernels.items():
        stores, loads = kernel.spill_bytes
        if verbose:
            messages.say("info", f"Compiling entry function '{name}' for '{chip}'")
            messages.say("info", f"Function properties for {name}")
            messages.say("", f"    {kernel.frame} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads")
            used = f"Used {kernel.registers} registers, used {kernel.barriers} barriers"
            used += f", {kernel.frame} bytes cumulative stack size" if kernel.frame else ""
            messages.say("info", used + (f", {kernel.shared} bytes smem" if kernel.shared else ""))
            messages.say("info", f"Compile time = {1000 * sum(kernel.seconds.values()):.3f} ms")
        if line.has("warn-on-spills") and stores + loads:
            text = f"Registers are spilled to local memory in function '{name}', {stores} bytes spill stores, {loads} bytes spill loads"
            messages.say("warning", text)
        if line.has("warn-on-local-memory-usage") and kernel.frame:
            messages.say("warning", f"Local memory used for function '{name}', size of stack frame: {kernel.frame} bytes")


def _prove(run: Run, module: Module) -> None:
    from sassay.verify.prove import Witness, prove_kernel

    assert run.result is not None
    for name, kernel in run.result.kernels.items():
        blocks = kernel.witness.get("blocks")
        witness = Witness(blocks=blocks) if isinstance(blocks, dict) else None
        proof = prove_kernel(module, name, run.result.cubin, witness=witness)
        run.proofs.append(proof)
        if proof.verdict == "refuted":
            run.messages.say("error", f"sassay: the code of '{name}' does not do what its PTX says: {proof.reason}")
        else:
            run.messages.say("info", f"(sassay) '{name}': {proof.verdict}{f' ({proof.reason})' if proof.reason else ''}")


def _write(path: str, data: bytes) -> None:
    """The output whole or not at all; devices and pipes are written in place."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            Path(path).write_bytes(data)
            return
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".sassay-")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except OSError:
        raise UsageError(f"Output file '{path}' could not be opened") from None


def _fall_back(words: list[str], reason: str | SassayError) -> None:
    """Becomes SASSAY_FALLBACK's ptxas, if that is set and the reason is a limit of ours. Errors in the PTX are no reason."""
    tool = os.environ.get("SASSAY_FALLBACK")
    if not tool or isinstance(reason, PtxError) or (isinstance(reason, ErrorList) and all(isinstance(e, PtxError) for e in reason.errors)):
        return
    text = str(reason).replace("\n", "; ")
    print(f"ptxas info    : (sassay) handing on to {tool}: {text}", file=sys.stderr, flush=True)
    try:
        os.execv(tool, [tool, *words])
    except OSError as error:
        print(f"ptxas fatal   : (sassay) SASSAY_FALLBACK: {tool}: {error.strerror}", file=sys.stderr)


def _keep(run: Run) -> None:
    """PTX, cubin, certificate, messages and a reproducing command, in a folder of their own under SASSAY_KEEP."""
    home = os.environ.get("SASSAY_KEEP")
    if not home or not run.sources:
        return
    digest = hashlib.sha256("\0".join([*run.line.tokens, *(text for _, text in run.sources)]).encode(errors="surrogateescape")).hexdigest()
    folder = Path(home, f"{Path(run.sources[0][0].strip('<>')).stem}-{digest[:12]}")
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for i, (_, text) in enumerate(run.sources):
        names.append(f"input{i}.ptx")
        (folder / names[-1]).write_text(text, errors="surrogateescape")
    if run.result is not None:
        (folder / "output.cubin").write_bytes(run.result.cubin)
    if run.proofs:
        proofs = [proof.certificate() for proof in run.proofs]
        (folder / "certificate.json").write_text(json.dumps(proofs, indent=1) + "\n")
    (folder / "messages.txt").write_text("\n".join(run.messages.text) + "\n")
    dropped: Callable[[str], bool] = lambda word: word in run.line.inputs or word.startswith(("--output-file=", "--input-as-string="))  # noqa: E731
    words = ["sassay-ptxas", *(word for word in run.line.tokens if not dropped(word)), *names, "-o", "again.cubin"]
    prefix = "".join(f"{name}={shlex.quote(os.environ[name])} " for name in ("SASSAY_PROVE",) if name in os.environ)
    script = folder / "command.sh"
    script.write_text(f'#!/bin/sh\n# {time.strftime("%Y-%m-%d %H:%M:%S")}\ncd "$(dirname "$0")" && {prefix}{shlex.join(words)}\n')
    script.chmod(0o755)
    print(f"ptxas info    : (sassay) kept in {folder}", file=sys.stderr)


if __name__ == "__main__":
    command()
