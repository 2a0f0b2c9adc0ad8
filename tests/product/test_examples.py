"""The examples run and say what their readers are told they say; the wheel works in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def example(name: str) -> str:
    words = [sys.executable, str(ROOT / "examples" / f"{name}.py")]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_editing_a_cubin() -> None:
    out = example("edit_cubin")
    assert "hazards: 0" in out and "original: proved" in out and "edited: refuted" in out
    assert int(out.rsplit(maxsplit=1)[1]) > 100


def test_assembling_sass() -> None:
    out = example("assemble_sass")
    assert "hazards: []" in out and "as numpy says: True" in out


@pytest.mark.slow
def test_the_wheel_works_elsewhere(tmp_path: Path) -> None:
    """Built, installed with its dependencies left to this interpreter's, used from another folder."""
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(source)], check=True)
    made = subprocess.run([*pip, "wheel", "--no-deps", "-w", str(tmp_path), str(source)], capture_output=True, text=True, cwd=tmp_path, check=False)
    if "No matching distribution" in made.stderr:
        pytest.skip("the build tools cannot be fetched")
    assert made.returncode == 0, made.stderr
    wheel = next(tmp_path.glob("*.whl"))
    subprocess.run([*pip, "install", "--no-deps", "--target", str(tmp_path / "site"), str(wheel)], check=True)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}

    def sassay(*words: str) -> str:
        command = [sys.executable, "-m", "sassay.cli", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "ptx-to-cubin" in sassay("--help")
    sassay("ptx-to-cubin", str(ROOT / "examples" / "kernels" / "saxpy.ptx"), "-o", "k.cubin", "--target", "sm_120a")
    arguments = ["--arg", "float32=1.5", "--arg", "float32[4]=iota", "--arg", "float32[4]=ones", "--arg", "uint32=4"]
    assert "[1.  2.5 4.  5.5]" in sassay("run", "k.cubin", *arguments)
