"""Special registers and other values that a kernel finds at its start."""

from __future__ import annotations

from sassay.isel.build import Lowering
from sassay.isel.ir import Value
from sassay.ptx import ast as ptx

SYSTEM = {
    "laneid": "SR_LANEID", "lanemask_eq": "SR_EQMASK", "lanemask_le": "SR_LEMASK", "lanemask_lt": "SR_LTMASK", "lanemask_ge": "SR_GEMASK",
    "lanemask_gt": "SR_GTMASK", "smid": "SR_VIRTUALSMID", "cluster_ctarank": "SR_CgaCtaId",
}  # fmt: skip
"""Special registers that S2R reads as they are (corroborated by ptxas output)."""


def system_register(lo: Lowering, name: str) -> Value:
    """S2R of a register that stays the same while the kernel runs: read once, at the start."""
    return lo.graph.leaf("sr", 1, name)


def clock_read(lo: Lowering, name: str, width: int) -> Value:
    mods = () if width == 2 else ("32",)
    op = lo.b.effect("CS2R", [], (width,), "order", mods=mods, attr=(name,))
    op.guard, op.tied = None, []
    return op.results[0]


def bank0(lo: Lowering, offset: int, width: int = 1) -> Value:
    return lo.graph.leaf("param", width, 0, offset)


def cluster_word(lo: Lowering, offset: int) -> Value:
    """A bank 0 word about the cluster; on Blackwell its place depends on SR_CgaSize (minus 0xa0 times it)."""
    if not lo.target.constants.cga_relative:
        return bank0(lo, offset)
    b = lo.b
    size = b.op("CS2R", [], 1, mods=("32",), attr=("SR_CgaSize",))
    return b.op("LDC", [b.imul(size, b.const(-0xA0))], 1, attr=(0, offset))


def read_special(lo: Lowering, operand: ptx.SpecialOperand) -> Value:
    """The value of a special register."""
    b = lo.b
    c = lo.target.constants
    name, comp = operand.name, operand.component
    axis = {"x": 0, "y": 1, "z": 2, "w": 3}.get(comp, 0)
    if name in ("tid", "ctaid"):
        return b.const(0) if axis == 3 else system_register(lo, f"SR_{name.upper()}.{'XYZ'[axis]}")
    if name in ("ntid", "nctaid"):
        if axis == 3:
            return b.const(1)
        fixed = lo.function.directives.get("reqntid") if name == "ntid" else None
        if fixed is not None:
            return b.const(fixed[axis] if axis < len(fixed) else 1)
        return bank0(lo, (c.ntid if name == "ntid" else c.nctaid) + 4 * axis)
    if name in SYSTEM:
        return system_register(lo, SYSTEM[name])
    if name in ("clock", "clock_hi", "clock64"):
        return {
            "clock": lambda: clock_read(lo, "SR_CLOCKLO", 1), "clock_hi": lambda: clock_read(lo, "SR_CLOCKHI", 1),
            "clock64": lambda: clock_read(lo, "SR_CLOCKLO", 2),
        }[name]()  # fmt: skip
    if name.startswith("globaltimer"):
        v = clock_read(lo, "SR_GLOBALTIMERLO", 2)
        return v if name == "globaltimer" else b.part(v, 1 if name.endswith("hi") else 0)
    if name == "warpid":
        return b.and_(b.shr(system_register(lo, "SR_VIRTID"), b.const(8), False), b.const(0x7F))
    if name == "nwarpid":
        return b.and_(b.shr(system_register(lo, "SR_VIRTCFG"), b.const(8), False), b.const(0xFF))
    if name == "nsmid":
        return bank0(lo, c.nsmid)
    if name == "gridid":
        return bank0(lo, c.gridid, 2)
    if name == "dynamic_smem_size":
        return cluster_word(lo, c.dynamic_smem)
    if name == "total_smem_size":
        return b.isub(system_register(lo, "SR_SMEMSZ"), bank0(lo, c.reserved_smem))
    if name == "is_explicit_cluster":
        return b.icmp("NE", bank0(lo, c.explicit_cluster), b.const(0), False)
    if name in ("envreg1", "envreg2"):
        return cluster_word(lo, c.envreg + 4 * int(name[-1]))
    if name == "cluster_nctarank":
        return cluster_word(lo, c.cluster_nctarank)
    if name == "cluster_nctaid" and axis < 3:
        return cluster_word(lo, c.cluster_shape + 4 * axis)
    if name == "nclusterid" and axis < 3:
        return cluster_word(lo, c.cluster_count + 4 * axis)
    raise lo.unsupported(f"special register %{name}{'.' + comp if comp else ''}")
