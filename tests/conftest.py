"""Makes `support`, and the package of this checkout, importable from every test directory."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent), str(Path(__file__).parent / "kernels")]
