"""The command line: each command a thin call of the API. Errors read `file:line:col: error: message`; exit 1 for bad input, 2 for bad usage."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import click

import sassay
from sassay.errors import Location, SassayError, SassError

if TYPE_CHECKING:
    from sassay.cubin import Cubin


def read_input(path: str) -> bytes:
    """Content of a file, or of standard input for `-`."""
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as file:
        return file.read()


def read_text(path: str) -> str:
    """Content of a UTF-8 text file."""
    try:
        return read_input(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise SassayError(f"not UTF-8 text (byte {error.start})", Location(path, 1, 1)) from None


def write_output(path: str | None, data: bytes) -> None:
    """Write a file whole or not at all: a temporary file beside it, renamed. None or `-`: standard output."""
    if path is None or path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".sassay-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def located(error: SassayError, path: str) -> SassayError:
    """The error with the file's name where it names none."""
    if error.location is None:
        error.location = Location(path)
    elif error.location.file in ("cubin", "") and not error.location.kernel:
        error.location = Location(path, error.location.line, error.location.column, "", error.location.offset)
    return error


def open_cubin(path: str) -> Cubin:
    try:
        return sassay.read_cubin(read_input(path))
    except SassayError as error:
        raise located(error, path) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(sassay.__version__, prog_name="sassay", message="%(prog)s %(version)s")
def cli() -> None:
    """PTX to proved cubins, and cubins to text and back."""


@cli.command()
@click.argument("file")
@click.option("-o", "--output", help="Write here instead of to standard output.")
@click.option("--kernel", "kernels", multiple=True, help="Only this kernel's code (may be repeated).")
@click.option("--control", type=click.Choice(["bracket", "colon", "none"]), default="bracket", help="Form of the control codes.")
@click.option("--json", "as_json", is_flag=True, help="Instructions as JSON.")
@click.option("--raw", metavar="CHIP", help="FILE holds bare 16-byte words of this chip (sm_90a).")
def disasm(file: str, output: str | None, kernels: tuple[str, ...], control: str, as_json: bool, raw: str | None) -> None:
    """Cubin to text."""
    from sassay.cubin.listing import Listing, code_lines, write, write_kernels
    from sassay.isa.target import target

    try:
        if raw is not None:
            chip, codes = target(raw), {"": read_input(file)}
            lines, warnings = ([], []) if as_json else code_lines(codes[""], chip, control)
            listing = Listing("\n".join([f".target {raw}", *lines]) + "\n", warnings)
        else:
            cubin = open_cubin(file)
            chip, codes = cubin.target, {name: cubin.kernel(name).code for name in kernels or cubin.kernels}
            if as_json:
                listing = Listing("")
            else:
                listing = write_kernels(cubin, list(kernels), control) if kernels else write(cubin, control)
        if as_json:
            rows = {name: _instructions(code, chip) for name, code in codes.items()}
            bad = [f"{name}+{row['offset']:#x}: {row['error']}" for name in rows for row in rows[name] if "error" in row]
            listing = Listing(json.dumps(rows, indent=1) + "\n", bad)
    except SassayError as error:
        raise located(error, file) from None
    write_output(output, listing.text.encode())
    for warning in listing.warnings:
        click.echo(f"{file}: warning: {warning}", err=True)
    if not listing.complete or (as_json and listing.warnings):
        raise SystemExit(1)


def _instructions(data: bytes, chip: Any) -> list[dict[str, Any]]:
    from sassay.sass.codec import try_decode
    from sassay.sass.text import format_control, format_instruction

    out: list[dict[str, Any]] = []
    for at, item in enumerate(try_decode(data, chip)):
        row: dict[str, Any] = {"offset": 16 * at, "word": f"{int.from_bytes(data[16 * at : 16 * at + 16], 'little'):#034x}"}
        if isinstance(item, SassError):
            row["error"] = item.message
        else:
            row |= {"text": format_instruction(item, exact=True), "control": format_control(item.control), "opcode": item.opcode}
        out.append(row)
    return out


@cli.command()
@click.argument("file")
@click.option("-o", "--output", required=True, help="The cubin to write (or the raw words, for bare code).")
@click.option("--target", help="Target of bare code without .target.")
def asm(file: str, output: str, target: str | None) -> None:
    """Text to cubin."""
    write_output(output, sassay.assemble(read_text(file), file=file, target=target))


@cli.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def info(file: str, as_json: bool) -> None:
    """Kernels, registers, memory, parameters and attributes of a cubin."""
    cubin = open_cubin(file)
    rows = [_kernel_info(kernel) for kernel in cubin.kernels.values()]
    if as_json:
        report = {"file": file, "target": cubin.target_name, "abi": [cubin.elf.os_abi, cubin.elf.abi_version], "kernels": rows,
                  "sections": [{"name": s.name, "type": s.type, "size": s.length} for s in cubin.elf.sections],
                  "not_understood": cubin.not_understood}  # fmt: skip
        click.echo(json.dumps(report, indent=1))
        return
    click.echo(f"{file}: {cubin.target_name}, ABI {cubin.elf.os_abi:#x}/{cubin.elf.abi_version}, {len(cubin.elf.sections)} sections")
    for row in rows:
        click.echo(f"\n{'kernel' if row['entry'] else 'function'} {row['name']}")
        for key in ("instructions", "registers", "shared", "frame", "stack", "barriers", "max_threads", "required_threads", "cluster"):
            if row[key]:
                click.echo(f"  {key:17} {row[key]}")
        for p in row["parameters"]:
            click.echo(f"  parameter {p['ordinal']:<7} offset {p['offset']:#06x}, {p['size']} bytes")
        for name, words in row["attributes"]:
            click.echo(f"  {name:30} {' '.join(hex(word) for word in words[:8])}{' ...' if len(words) > 8 else ''}")
    for line in cubin.not_understood:
        click.echo(f"not understood: {line}")


def _kernel_info(kernel: Any) -> dict[str, Any]:
    return {
        "name": kernel.name, "entry": kernel.entry, "instructions": len(kernel.code) // 16, "registers": kernel.registers,
        "shared": kernel.shared, "frame": kernel.frame, "stack": kernel.stack, "barriers": kernel.barriers,
        "max_threads": list(kernel.max_threads), "required_threads": list(kernel.required_threads), "cluster": list(kernel.cluster),
        "parameter_bytes": kernel.param_size, "exits": list(kernel.exits),
        "parameters": [{"ordinal": p.ordinal, "offset": p.offset, "size": p.size} for p in kernel.params],
        "attributes": [(a.name, list(a.words)) for a in kernel.attributes],
        "relocations": [{"offset": r.offset, "type": r.type, "symbol": r.symbol, "addend": r.addend} for r in kernel.relocations],
    }  # fmt: skip


@cli.command("ptx-to-cubin")
@click.argument("file")
@click.option("-o", "--output", required=True, help="The cubin to write.")
@click.option("--target", default="sm_90a", show_default=True, help="Chip to compile for.")
@click.option("-O", "level", type=click.IntRange(0, 3), default=3, help="Optimisation level.")
@click.option("--max-registers", "--maxrregcount", type=int, help="Most registers a thread may use.")
@click.option("--serial", is_flag=True, help="Program order, every instruction waits for the one before it.")
@click.option("--force-spill", is_flag=True, help="Keep every value in local memory, to tell allocation bugs from others.")
@click.option("--dump-after", multiple=True, metavar="PASS", help="Print the program after a pass: isel, schedule, allocate, finish, layout.")
@click.option("--prove", "wants_proof", is_flag=True, help="Prove each kernel; nothing is written if one is refuted.")
@click.option("-v", "--verbose", is_flag=True, help="Print registers, spills, stack, shared memory, barriers and time per pass.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def ptx_to_cubin(
    file: str, output: str, target: str, level: int, max_registers: int | None, serial: bool, force_spill: bool,
    dump_after: tuple[str, ...], wants_proof: bool, verbose: bool, as_json: bool,
) -> None:  # fmt: skip
    """Compile PTX."""
    text = read_text(file)
    from sassay.pipeline import PASSES, CompileOptions

    unknown = [name for name in dump_after if name not in PASSES]
    if unknown:
        raise click.BadParameter(f"no pass '{unknown[0]}'; there are {', '.join(PASSES)}", param_hint="--dump-after")
    options = CompileOptions(
        level=level, serial=serial, force_spill=force_spill, max_registers=max_registers, dump_after=frozenset(dump_after)
    )
    result = sassay.compile(text, target, options, file=file)
    certificates = _proofs(text, file, result) if wants_proof else {}
    refuted = [name for name, c in certificates.items() if c["verdict"] == "refuted"]
    if not refuted:
        write_output(output, result.cubin)
    rows = [{**_report(kernel), "proof": certificates.get(name)} for name, kernel in result.kernels.items()]
    if as_json:
        click.echo(json.dumps({"file": file, "target": target, "seconds": result.seconds, "kernels": rows}, indent=1))
    else:
        _print_reports(rows, result.seconds if verbose else None, verbose)
    if refuted:
        raise SassayError(f"{file}: {', '.join(refuted)}: the code does not do what the PTX says; nothing was written")


def _proofs(text: str, file: str, result: Any) -> dict[str, dict[str, Any]]:
    return {
        name: sassay.prove(text, result.cubin, name, file=file, blocks=kernel.witness.get("blocks")).certificate()
        for name, kernel in result.kernels.items()
    }


def _report(kernel: Any) -> dict[str, Any]:
    return {
        "kernel": kernel.name, "instructions": kernel.instructions, "registers": kernel.registers, "spill_stores": kernel.spill_bytes[0],
        "spill_loads": kernel.spill_bytes[1], "stack": kernel.frame, "shared": kernel.shared, "barriers": kernel.barriers,
        "seconds": kernel.seconds,
    }  # fmt: skip


def _print_reports(rows: list[dict[str, Any]], seconds: dict[str, float] | None, verbose: bool) -> None:
    for row in rows:
        if verbose:
            click.echo(
                f"{row['kernel']}: {row['instructions']} instructions, {row['registers']} registers, {row['stack']} bytes stack, "
                f"{row['spill_stores']} bytes spill stores, {row['spill_loads']} bytes spill loads, {row['shared']} bytes shared, "
                f"{row['barriers']} barriers"
            )
        if row["proof"] is not None:
            reason = row["proof"]["reason"]
            click.echo(f"{row['kernel']}: {row['proof']['verdict']}{f': {reason}' if reason else ''}")
    if seconds is not None:
        click.echo("seconds: " + ", ".join(f"{name} {value:.3f}" for name, value in seconds.items()))


@cli.command()
@click.argument("file")
@click.option("--kernel", help="Which kernel, where there are several.")
@click.option("--grid", default="1", help="Blocks, x or x,y,z.")
@click.option("--block", default="32", help="Threads a block, x or x,y,z.")
@click.option("--shared", default=0, help="Dynamic shared memory, bytes.")
@click.option("--arg", "arguments", multiple=True, help="uint32=5, float32=1.5, or an array: float32[1024]=zeros (ones, iota).")
def run(file: str, kernel: str | None, grid: str, block: str, shared: int, arguments: tuple[str, ...]) -> None:
    """Run a kernel in the emulator and print its arrays."""
    data = read_input(file)
    name = kernel or open_cubin(file).kernel().name
    values = [_argument(text) for text in arguments]
    try:
        sassay.emulate(data, name, _extent(grid), _extent(block), values, shared_bytes=shared)
    except SassayError as error:
        raise located(error, file) from None
    import numpy as np

    for number, value in enumerate(values):
        if isinstance(value, np.ndarray):
            click.echo(f"argument {number}: {np.array2string(value, threshold=64)}")


def _extent(text: str) -> tuple[int, int, int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{text}' is no x,y,z") from None
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise click.BadParameter(f"'{text}' is no x,y,z")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _argument(text: str) -> Any:
    import numpy as np

    kind, _, value = text.partition("=")
    base, bracket, count = kind.partition("[")
    try:
        dtype = np.dtype(base)
        if not bracket:
            return dtype.type(value)
        size = int(count.removesuffix("]"))
        fill = {"": np.zeros, "zeros": np.zeros, "ones": np.ones, "iota": np.arange}[value]
        return fill(size, dtype=dtype)  # type: ignore[operator]
    except (TypeError, ValueError, KeyError):
        raise click.BadParameter(f"'{text}' is no argument such as uint32=5 or float32[1024]=zeros") from None


@cli.command()
@click.argument("suites", nargs=-1)
@click.option("--chip", help="Chip to make kernels for; by default the device's own.")
@click.option("--device", default="0", show_default=True, help="A GPU's number, or emulator:timing to measure the model itself.")
@click.option("-o", "--output", help="Write the results here as JSON.")
@click.option("--plot", metavar="FILE", help="Draw the results (needs matplotlib).")
@click.option("--rows", is_flag=True, help="Print measured distances as rows for the timing tables.")
@click.option("--list", "wants_list", is_flag=True, help="Print the suites' names.")
def bench(
    suites: tuple[str, ...], chip: str | None, device: str, output: str | None, plot: str | None, rows: bool, wants_list: bool
) -> None:  # fmt: skip
    """Measure a chip: least safe distances, chains, scoreboard latencies, throughput. SUITES: which (all of them by default)."""
    from pathlib import Path

    from sassay.bench import suites as made
    from sassay.isa.target import target
    from sassay.runtime import open_device

    if wants_list:
        for name, suite in made.SUITES.items():
            click.echo(f"{name:12} {(suite.__doc__ or '').splitlines()[0]}")
        return
    unknown = [name for name in suites if name not in made.SUITES]
    if unknown:
        raise click.BadParameter(f"no suite '{unknown[0]}'; there are {', '.join(made.SUITES)}", param_hint="SUITES")
    place = open_device(int(device) if device.isdigit() else device)
    name = chip or place.chip
    if not name:
        raise click.UsageError("the emulator has no chip of its own: name one with --chip")
    results = made.run(place, target(name), suites or made.SUITES)
    if output:
        write_output(output, (json.dumps(results, indent=1) + "\n").encode())
    if plot:
        made.plot(results, Path(plot))
    for line in made.table_rows(results) if rows else made.lines(results):
        click.echo(line)


@cli.command()
@click.argument("file")
@click.option("--kernel", help="Only this kernel.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as a JSON list.")
def check(file: str, kernel: str | None, as_json: bool) -> None:
    """Look for hazards in the control codes of a cubin; exit 1 if there are any."""
    try:
        findings = sassay.check(open_cubin(file), kernel)
    except SassayError as error:
        raise located(error, file) from None
    if as_json:
        click.echo(json.dumps([finding.to_dict() for finding in findings], indent=1))
    else:
        for finding in findings:
            click.echo(f"{file}: {finding}")
        click.echo(f"{file}: {len(findings)} findings")
    if findings:
        raise SystemExit(1)


@cli.command()
@click.argument("ptx")
@click.argument("file")
@click.option("--kernel", help="Only this kernel.")
@click.option("--seconds", default=60.0, show_default=True, help="Solver time for each kernel.")
@click.option("--accept-sampled", is_flag=True, help="Count a verdict of 'conditional' (lemmas sampled, not proved) as proved.")
@click.option("--json", "as_json", is_flag=True, help="Print certificates as a JSON list.")
def prove(ptx: str, file: str, kernel: str | None, seconds: float, accept_sampled: bool, as_json: bool) -> None:
    """Prove that a cubin does what its PTX says.

    Exit 0 if all kernels are proved, 1 if one is refuted, 2 if one is undecided or unsupported.
    """
    text, data, cubin = read_text(ptx), read_input(file), open_cubin(file)
    names = [kernel] if kernel else [k.name for k in cubin.kernels.values() if k.entry]
    proofs = [sassay.prove(text, data, name, file=ptx, seconds=seconds) for name in names]
    if as_json:
        click.echo(json.dumps([proof.certificate() for proof in proofs], indent=1))
    else:
        for proof in proofs:
            click.echo(f"{proof.kernel}: {proof.verdict}{f': {proof.reason}' if proof.reason else ''}")
            for lemma in proof.lemmas:
                click.echo(f"  given that {lemma}")
    good = {"proved", "conditional"} if accept_sampled else {"proved"}
    if any(proof.verdict == "refuted" for proof in proofs):
        raise SystemExit(1)
    if any(proof.verdict not in good for proof in proofs):
        raise SystemExit(2)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes sassay's commands in a shell: eval "$(sassay completion bash)"."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(cli, {}, "sassay", "_SASSAY_COMPLETE").source())


def main() -> None:
    """Entry point: our own errors and missing files print one line each and exit 1."""
    try:
        cli.main(standalone_mode=True)
    except SassayError as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    except OSError as error:
        click.echo(f"{error.filename or 'sassay'}: error: {error.strerror or error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
