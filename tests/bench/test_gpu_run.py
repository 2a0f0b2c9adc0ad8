"""`make gpu`, as far as it goes without a GPU: the same script on the emulator, and cells that differ are seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sassay.bench import cells
from sassay.isa.target import target
from sassay.runtime import open_device
from sassay.runtime.emulated import Emulator
from sassay.runtime.interface import Module

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("chip", ["sm_90a", "sm_120a"])
def test_the_whole_run(chip: str, tmp_path: Path) -> None:
    words = ["--device", "emulator:timing", "--chip", chip, "--kernel", "saxpy", "--suite", "chains", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks" / "gpu.py"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "kernels.json").read_text())
    assert rows["device"]["name"] == "emulator" and rows["chip"] == chip
    assert all(row["numpy"] == row["emulator"] == "equal" for row in rows["kernels"])
    tried = json.loads((tmp_path / "cells.json").read_text())["cells"]
    assert len(tried) > 60 and not any(cell["different"] for cell in tried)
    assert sum(not cell["note"] for cell in tried) >= 60, [cell for cell in tried if cell["note"]]
    assert (tmp_path / "chains.json").exists()


class Wrong(Emulator):
    """A device whose adder's last bit is stuck."""

    def load(self, data: bytes) -> Module:
        module = super().load(data)
        kernel = module["measure"]
        launch = kernel.launch

        def stuck(grid, block, args, **options):  # type: ignore[no-untyped-def]
            launch(grid, block, args, **options)
            args[0] |= np.uint32(1)

        kernel.launch = stuck  # type: ignore[method-assign]
        return module


def test_a_difference_is_seen() -> None:
    cell = cells.compare(Wrong(), target("sm_90a"), "IMAD R24, R8, R10, R12", (24,), 64)
    assert cell.different > 10 and cell.first is not None
    assert cells.compare(open_device("emulator"), target("sm_90a"), "IMAD R24, R8, R10, R12", (24,), 64).different == 0
