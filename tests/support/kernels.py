"""The test kernels' PTX, for tests that only need some real code."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).resolve().parents[1] / "kernels"


def ptx(name: str) -> str:
    """PTX text of one test kernel."""
    return (DIRECTORY / f"{name}.ptx").read_text()


def names() -> list[str]:
    return sorted(path.stem for path in DIRECTORY.glob("*.ptx"))
