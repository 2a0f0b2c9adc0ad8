"""How to launch each kernel of this directory and what it must compute. Tests, benchmarks and examples share these.

Each kernel NAME has its PTX in NAME.ptx, made from NAME.cu or by `triton_build.py` where it is not written by hand, and its entry is called
NAME too. `SPECS[NAME].make(rng)` draws inputs and gives a `Launch`: the arguments in order (arrays are device buffers, scalars have the
parameter's type) and, by argument index, what each buffer must hold afterwards, from numpy. The spec_* modules register them.
"""

from __future__ import annotations

import spec_cooperative
import spec_first
import spec_handwritten
import spec_hashing
import spec_machine
import spec_numeric
import spec_sorting
import spec_tensor
from launches import SPECS, Launch, Spec

GROUPS = (spec_first, spec_machine, spec_sorting, spec_hashing, spec_numeric, spec_cooperative, spec_tensor, spec_handwritten)
"""The modules whose import fills SPECS."""

__all__ = ["GROUPS", "SPECS", "Launch", "Spec"]
