"""No NVIDIA tool at run time: with none on PATH or among the Python packages everything still works, and no process is ever started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUARD = """
import sys

def refuse(event, arguments):
    if event in ("os.exec", "os.posix_spawn", "os.system", "subprocess.Popen") and "bitwuzla" not in str(arguments):
        raise SystemExit(f"a process was started: {arguments}")

sys.addaudithook(refuse)
sys.modules["nvidia"] = None
"""


def alone(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code with nothing on PATH, the vendor's packages hidden, and an end to whoever starts a process."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SASSAY_", "CUDA_", "LD_"))}
    env = kept | {"PATH": "/nonexistent", "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", GUARD + code, *arguments], env=env, capture_output=True, text=True, cwd=ROOT, timeout=300)


def test_the_walk_of_make_run(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    code = "import runpy; sys.argv[0] = 'first_light.py'; runpy.run_path('examples/first_light.py', run_name='__main__')"
    done = alone(code.replace("import runpy", "import runpy, sysconfig; sysconfig.get_path = lambda *_: '/nonexistent'"),
                 "--kernel", "saxpy", "--kernel", "block_reduce", "--json", str(out))  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    rows = json.loads(out.read_text())
    assert [(r["kernel"], r["chip"]) for r in rows] == [(k, c) for k in ("saxpy", "block_reduce") for c in ("sm_90a", "sm_100a", "sm_120a")]
    assert all(r["emulator"] == "= numpy" and r["hazards"] == 0 and r["proof"] == "proved" for r in rows)
    assert all(r["ptxas_instructions"] == "n/a" for r in rows)


def test_the_guard_would_notice() -> None:
    done = alone("import subprocess; subprocess.run(['/bin/true'])")
    assert done.returncode != 0 and "a process was started" in done.stderr


def test_the_command_line(tmp_path: Path) -> None:
    source, cubin = ROOT / "tests" / "kernels" / "saxpy.ptx", tmp_path / "saxpy.cubin"
    code = "from sassay.cli import main; main()"
    made = alone(code, "ptx-to-cubin", str(source), "-o", str(cubin), "--target", "sm_120a", "--prove")
    assert made.returncode == 0, made.stderr + made.stdout
    for command in (["check", str(cubin)], ["prove", str(source), str(cubin)], ["info", str(cubin)], ["disasm", str(cubin)]):
        done = alone(code, *command)
        assert done.returncode == 0, (command, done.stderr)
