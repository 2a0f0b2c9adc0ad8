"""The command line: results, exit codes, error lines, whole-or-nothing output, start-up time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import kernels, oracle


def sassay(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    here = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run([sys.executable, "-m", "sassay.cli", *arguments], capture_output=True, text=True, cwd=cwd, env=here)


@pytest.fixture()
def cubin(tmp_path: Path) -> Path:
    if oracle.tool("ptxas") is None:
        pytest.skip("needs ptxas")
    path = tmp_path / "saxpy.cubin"
    path.write_bytes(oracle.ptxas(kernels.ptx("saxpy"), "sm_90a"))
    return path


def test_version_and_start_up() -> None:
    before = os.times()
    done = [sassay("--version") for _ in range(5)]
    after = os.times()
    assert all(d.stdout == "sassay 0.1.0\n" and d.returncode == 0 for d in done)
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent / 5 < 0.12, "sixty milliseconds on an idle machine"


def test_disasm_and_asm(cubin: Path, tmp_path: Path) -> None:
    text, back = tmp_path / "k.sass", tmp_path / "back.cubin"
    assert sassay("disasm", str(cubin), "-o", str(text)).returncode == 0
    assert sassay("asm", str(text), "-o", str(back)).returncode == 0
    assert back.read_bytes() == cubin.read_bytes()
    shown = sassay("disasm", str(cubin), "--kernel", "saxpy", "--control", "colon").stdout
    assert "--:-:-:-:1  /*0000*/  LDC R1, c[0x0][0x28] ;" in shown
    rows = json.loads(sassay("disasm", str(cubin), "--json").stdout)["saxpy"]
    assert rows[0]["text"] == "LDC R1, c[0x0][0x28]" and rows[1]["offset"] == 16


def test_raw(tmp_path: Path) -> None:
    source, words = tmp_path / "a.sass", tmp_path / "a.bin"
    source.write_text(".target sm_90a\n[B------:R-:W-:-:S05] EXIT ;\n")
    assert sassay("asm", str(source), "-o", str(words)).returncode == 0
    assert "EXIT ;" in sassay("disasm", "--raw", "sm_90a", str(words)).stdout
    words.write_bytes(b"\xff" * 16)
    done = sassay("disasm", "--raw", "sm_90a", str(words))
    assert done.returncode == 1 and "warning" in done.stderr and "0xffffffff" in done.stdout
    words.write_bytes(b"123")
    assert sassay("disasm", "--raw", "sm_90a", str(words)).returncode == 1


def test_info(cubin: Path) -> None:
    report = json.loads(sassay("info", "--json", str(cubin)).stdout)
    kernel = report["kernels"][0]
    assert report["target"] == "sm_90a" and kernel["name"] == "saxpy" and kernel["registers"] > 0 and kernel["parameters"]
    assert "kernel saxpy" in sassay("info", str(cubin)).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("info", "absent.cubin"), "absent.cubin: error: No such file or directory"),
        (("info", "bad.cubin"), "bad.cubin+0x0: error: not an ELF file"),
        (("asm", "bad.sass", "-o", "out"), "bad.sass:2:10: error: "),
        (("asm", "binary.sass", "-o", "out"), "binary.sass:1:1: error: not UTF-8"),
        (("disasm", "--raw", "sm_1", "bad.sass"), "error: unknown target 'sm_1'"),
    ],
)
def test_errors(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.cubin").write_bytes(b"nothing of the kind" * 10)
    (tmp_path / "bad.sass").write_text(".target sm_90a\nMOV R0,  R1!\n")
    (tmp_path / "binary.sass").write_bytes(b"\xff\xfe")
    done = sassay(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".sassay-*"))


def test_usage_errors_exit_2() -> None:
    assert sassay("asm").returncode == 2
    assert sassay("nonsense").returncode == 2


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sassay import cli

    target = tmp_path / "x.cubin"
    target.write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(cli.os, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        cli.write_output(str(target), b"new")
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]


def test_completion_scripts_name_the_command() -> None:
    from sassay.cli import cli

    for shell in ("bash", "zsh", "fish"):
        done = CliRunner().invoke(cli, ["completion", shell])
        assert done.exit_code == 0 and "sassay" in done.output and "_SASSAY_COMPLETE" in done.output
