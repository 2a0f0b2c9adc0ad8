"""Special registers: name, type, components, and the PTX version and chip that brought each.

Source: PTX ISA 9.3, chapter "Special Registers"; %locality_domain_id and %perctamemory* from ptxas 13.5's answers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Special:
    """`vector`: has .x .y .z (and .w) components; `type` is the type of the whole or of one component."""

    name: str
    type: str
    vector: bool = False
    version: tuple[int, int] = (1, 0)
    chip: int = 0


def _specials() -> dict[str, Special]:
    rows = [Special(name, "u32", True) for name in ("tid", "ntid", "ctaid", "nctaid")]
    rows += [Special(name, "u32") for name in ("laneid", "warpid", "nwarpid", "smid", "nsmid", "clock", "clock_hi")]
    rows += [Special("gridid", "u64"), Special("clock64", "u64"), Special("globaltimer", "u64")]
    rows += [Special(name, "u32") for name in ("globaltimer_lo", "globaltimer_hi")]
    rows += [Special(f"lanemask_{kind}", "u32") for kind in ("eq", "le", "lt", "ge", "gt")]
    rows += [Special(f"pm{i}", "u32") for i in range(8)] + [Special(f"pm{i}_64", "u64") for i in range(8)]
    rows += [Special(f"envreg{i}", "b32") for i in range(32)]
    rows += [Special(f"reserved_smem_offset_{kind}", "b32", False, (7, 6), 80) for kind in ("begin", "end", "cap", "0", "1")]
    rows += [Special("total_smem_size", "u32", False, (4, 1)), Special("dynamic_smem_size", "u32", False, (4, 1))]
    rows += [Special("aggr_smem_size", "u32", False, (8, 1), 90)]
    rows += [Special("is_explicit_cluster", "pred", False, (7, 8), 90)]
    rows += [Special(name, "u32", True, (7, 8), 90) for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")]
    rows += [Special(name, "u32", False, (7, 8), 90) for name in ("cluster_ctarank", "cluster_nctarank")]
    rows += [Special("current_graph_exec", "u64", False, (8, 0), 50)]
    rows += [Special("perctamemoryoffset", "u64", False, (9, 4), 80), Special("perctamemorysize", "u64", False, (9, 4), 80)]
    rows += [Special("locality_domain_id", "u32", False, (9, 5), 100)]
    return {row.name: row for row in rows}


SPECIALS: dict[str, Special] = _specials()
