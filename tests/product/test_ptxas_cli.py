"""sassay-ptxas: options, messages and exit codes as ptxas's callers know them."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import oracle

import sassay
from sassay import ptxas_cli, ptxas_options

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests" / "kernels"
ADD, LOCAL, DOT = (str(KERNELS / f"{name}.ptx") for name in ("vector_add", "local_array", "dot_f64"))


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the command in a folder of its own: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    for name in ("SASSAY_FALLBACK", "SASSAY_PROVE", "SASSAY_KEEP"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> tuple[int, str, str]:
        code = ptxas_cli.main(list(words))
        done = capsys.readouterr()
        return code, done.out, done.err

    return run


def help_options(tool: str) -> set[tuple[str, str]]:
    text = subprocess.run([tool, "--help"], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"^--(\S+).*\(-(\S+)\)", text, re.M))


@oracle.needs_ptxas
def test_every_option_of_ptxas_is_in_the_table() -> None:
    known = {(option.long, option.short) for option in ptxas_options.OPTIONS}
    listed = help_options(str(oracle.tool("ptxas")))
    assert len(listed) > 50
    assert listed <= known


def test_the_table_in_the_documentation_is_up_to_date() -> None:
    assert (ROOT / "docs" / "ptxas-options.md").read_text() == ptxas_options.document()


@pytest.mark.parametrize(
    "words",
    [
        ["-arch=sm_90a", ADD, "-o", "x"], ["-arch", "sm_90a", ADD, "-o=x"], ["--gpu-name", "sm_90a", ADD, "--output-file", "x"],
        ["--gpu-name=sm_90a", "--output-file=x", "--opt-level=3", ADD], ["-m64", "-O3", "-arch=sm_90a", "-o", "x", ADD],
        ["-lineinfo", "-v", "--gpu-name=sm_90a", ADD, "-o", "x"], [ADD, "-o", "x", "-arch=sm_90a", "--warn-on-spills", "-fmad", "false"],
        ["-m64", "-g", "--dont-merge-basicblocks", "--return-at-end", "--gpu-name", "sm_90a", "--output-file", "x", ADD],
        ["-lineinfo", "-suppress-debug-info", "--fmad=false", "-v", "--opt-level", "0", "--regAllocOptLevel=2", "--gpu-name=sm_90a", ADD, "-o", "x"],
    ],
)  # fmt: skip
def test_command_lines_of_known_callers(call, words: list[str]) -> None:
    code, _, err = call(*words)
    assert code == 0, err
    cubin = sassay.read_cubin(Path("x").read_bytes())
    assert cubin.target_name == "sm_90a" and list(cubin.kernels) == ["vector_add"]


def test_verbose_lines_are_what_parsers_look_for(call) -> None:
    code, out, err = call("-v", "-arch=sm_90a", LOCAL, "-o", "x")
    assert (code, out) == (0, "")
    assert "ptxas info    : Compiling entry function 'local_array' for 'sm_90a'\n" in err
    assert "ptxas info    : Function properties for local_array\n    64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n" in err
    used = re.search(r"ptxas info    : Used (\d+) registers, used 0 barriers, 64 bytes cumulative stack size\n", err)
    assert used and int(used[1]) == sassay.read_cubin(Path("x").read_bytes()).kernel("local_array").registers


def test_version_reads_as_a_release(call) -> None:
    code, out, _ = call("--version")
    assert code == 0 and "sassay" in out
    assert re.search(r".*release (\d+\.\d+).*", out)[1] == "13.5"
    assert re.search(r"V(\d+)\.(\d+)\.(\d+)", out)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--bogus", ADD], "ptxas fatal   : Unknown option '-bogus'"),
        (["-arch=sm_99", ADD], "ptxas fatal   : Value 'sm_99' is not defined for option 'gpu-name'"),
        (["-arch=sm_90a", "missing.ptx"], "ptxas fatal   : Input file 'missing.ptx' could not be opened\nptxas fatal   : Ptx assembly aborted"),
        (["-arch=sm_90a", "-o"], "ptxas fatal   : argument expected after '-o'"),
        (["-arch=sm_90a", "-v=true", ADD], "ptxas fatal   : no argument expected after '-v'"),
        (["-arch=sm_90a", "--fmad=maybe", ADD], "ptxas fatal   : 'maybe': expected true or false"),
        (["-arch=sm_90a", "-maxrregcount=abc", ADD], "ptxas fatal   : Invalid value 'abc' for option 'maxrregcount'"),
        (["-arch=sm_90a", "-m=32", ADD], "ptxas fatal   : Value '32' is not defined for option 'machine'"),
        (["-arch=sm_90a", "-e", "nope", ADD], "ptxas fatal   : Unknown function nope"),
        (["-arch=sm_90a", "-optf", "missing"], "ptxas fatal   : Could not open options file 'missing'"),
        (["-arch=compute_80", ADD], "ptxas fatal   : SM version specified by .target is higher than default SM version assumed"),
        (["-arch=sm_90a", "-o", "/nonexistent/x", ADD], "ptxas fatal   : Output file '/nonexistent/x' could not be opened"),
        (["-arch=sm_90a", ADD, ADD], "error   : Duplicate definition of function 'vector_add'"),
    ],
)  # fmt: skip
def test_errors_in_ptxas_words(call, words: list[str], text: str) -> None:
    code, _, err = call(*words)
    assert code == 255
    assert text in err
    assert not Path("elf.o").exists()


@pytest.mark.parametrize("option", [o for o in ptxas_options.OPTIONS if o.effect == ptxas_options.REFUSED], ids=lambda o: o.long)
def test_refused_options_are_named(call, option: ptxas_options.Option) -> None:
    value = {"flag": "", "bool": "=true", "text": "=memcheck" if option.long == "sanitize" else "=cg"}[option.kind]
    code, _, err = call("-arch=sm_90a", f"--{option.long}{value}", ADD)
    assert code == 255
    assert f"'--{option.long}' (-{option.short})" in err


def test_errors_in_the_ptx_have_their_line(call) -> None:
    Path("bad.ptx").write_text(Path(ADD).read_text().replace("add.f32 \t%f3", "add.f32 \t%f3 %f9"))
    code, _, err = call("-arch=sm_90a", "bad.ptx")
    assert code == 255
    assert re.search(r"^ptxas bad.ptx, line \d+; error   : ", err, re.M)
    assert err.endswith("ptxas fatal   : Ptx assembly aborted due to errors\n")


def test_virtual_architectures_check_only(call) -> None:
    assert call("-arch=compute_90", "-m64", ADD) == (0, "", "")
    assert not Path("elf.o").exists()


def test_several_inputs_make_one_cubin(call) -> None:
    assert call("-arch=sm_90a", ADD, DOT)[0] == 0
    assert set(sassay.read_cubin(Path("elf.o").read_bytes()).kernels) == {"vector_add", "dot_f64"}


def test_entries_can_be_chosen(call) -> None:
    assert call("-arch=sm_90a", ADD, DOT, "-e", "dot_f64")[0] == 0
    assert list(sassay.read_cubin(Path("elf.o").read_bytes()).kernels) == ["dot_f64"]


def test_options_files(call) -> None:
    Path("options").write_text('-arch=sm_90a -v\n-o "with blank.cubin"\n')
    code, _, err = call("--options-file", "options", ADD)
    assert code == 0 and "Used" in err
    assert Path("with blank.cubin").exists()


def test_registers_are_limited_and_the_limit_has_a_floor(call) -> None:
    code, _, err = call("-arch=sm_90a", "-maxrregcount", "10", "-v", str(KERNELS / "layer_norm.ptx"))
    assert code == 0 and "adjusting per thread register count of 10 to lower bound of 24" in err
    assert int(re.search(r"Used (\d+) registers", err)[1]) <= 24


def test_warnings_can_be_errors_or_silent(call) -> None:
    code, _, err = call("-arch=sm_90a", "-warn-double-usage", DOT)
    assert code == 0 and "; warning : Program is doing double precision computations." in err
    assert call("-arch=sm_90a", "-warn-double-usage", "-w", DOT) == (0, "", "")
    code, _, err = call("-arch=sm_90a", "-warn-double-usage", "-Werror", "-o", "y", DOT)
    assert code == 255 and "; error   : Program is doing double" in err and not Path("y").exists()


def test_line_tables(call) -> None:
    text = Path(ADD).read_text().replace("\tmov.u32 \t%r3", '\t.loc 3 77 1\n\tmov.u32 \t%r3') + '\n.file 3 "/src/add.cu"\n'
    Path("in.ptx").write_text(text)
    assert call("-arch=sm_90a", "-lineinfo", "in.ptx", "-o", "with")[0] == 0
    assert call("-arch=sm_90a", "in.ptx", "-o", "without")[0] == 0
    assert b"/src/add.cu" in Path("with").read_bytes()
    assert b"/src/add.cu" not in Path("without").read_bytes()


def test_standard_input_and_strings(call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(ADD).read_bytes())))
    assert call("-arch=sm_90a", "-", "-o", "x")[0] == 0
    assert call("-arch=sm_90a", "-ias", Path(ADD).read_text(), "-o", "y")[0] == 0
    assert Path("x").read_bytes() == Path("y").read_bytes()


def test_proving(call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASSAY_PROVE", "1")
    code, _, err = call("-arch=sm_90a", ADD)
    assert code == 0 and "'vector_add': proved" in err


def test_a_failure_is_kept(call, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bad.ptx").write_text(Path(ADD).read_text().replace("add.f32 \t", "add.nonsense \t"))
    monkeypatch.setenv("SASSAY_KEEP", "kept")
    assert call("-arch=sm_90a", "-O2", "bad.ptx", "-o", "x")[0] == 255
    (folder,) = Path("kept").iterdir()
    assert (folder / "input0.ptx").read_text() == Path("bad.ptx").read_text()
    assert "sassay-ptxas --gpu-name=sm_90a --opt-level=2 input0.ptx -o again.cubin" in (folder / "command.sh").read_text()
    assert "error" in (folder / "messages.txt").read_text()


def test_falling_back_happens_only_when_asked_for_and_says_so(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text('#!/bin/sh\necho "other: $*"\nexit 7\n')
    other.chmod(0o755)
    base = [sys.executable, "-m", "sassay.ptxas_cli", "-arch=sm_80", ADD]
    alone = subprocess.run(base, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stdout) == (255, "")
    done = subprocess.run(base, cwd=ROOT, capture_output=True, text=True, check=False, env={"SASSAY_FALLBACK": str(other)})
    assert (done.returncode, done.stdout) == (7, f"other: -arch=sm_80 {ADD}\n")
    assert done.stderr.startswith(f"ptxas info    : (sassay) handing on to {other}: ") and done.stderr.count("\n") == 1
