"""Targets: what differs between chips, as data. Nothing outside `isa` asks for a chip by its number.

Sources: constant bank and ABI figures read from ptxas 13.0 and 13.5 output (probed: sm_90a, sm_100a, sm_103a, sm_120a share the layout
named here for their generation).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sassay.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class ConstantLayout:
    """Byte offsets in constant bank 0. `cga_relative` ones are added to -0xa0 * SR_CgaSize by the code that reads them."""

    params: int
    stack_top: int
    ntid: int
    nctaid: int
    global_descriptor: int
    local_window: int
    nonglobal_bound: int
    param_window: int
    reserved_smem: int
    nsmid: int
    gridid: int
    dynamic_smem: int
    explicit_cluster: int
    cluster_shape: int
    cluster_count: int
    cluster_nctarank: int
    aggr_smem: int
    envreg: int
    cga_relative: bool


HOPPER = ConstantLayout(
    params=0x210, stack_top=0x28, ntid=0x0, nctaid=0xC, global_descriptor=0x208, local_window=0x20, nonglobal_bound=0xD0,
    param_window=0x198, reserved_smem=0x114, nsmid=0x10C, gridid=0x30, dynamic_smem=0x2C, explicit_cluster=0x140,
    cluster_shape=0x144, cluster_count=0x15C, cluster_nctarank=0x188, aggr_smem=0x13C, envreg=0x40, cga_relative=False,
)  # fmt: skip
BLACKWELL = ConstantLayout(
    params=0x380, stack_top=0x37C, ntid=0x360, nctaid=0x370, global_descriptor=0x358, local_window=0x2F8, nonglobal_bound=0x120,
    param_window=0x348, reserved_smem=0x16C, nsmid=0x2D0, gridid=0x140, dynamic_smem=0x2AC, explicit_cluster=0x36C,
    cluster_shape=0x2A0, cluster_count=0x2C0, cluster_nctarank=0x2CC, aggr_smem=0x2BC, envreg=0x250, cga_relative=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A compilation target. `chip` names the encoding table and timing data; `features` what selection may use."""

    name: str
    chip: str
    number: int
    constants: ConstantLayout
    uniform_registers: int
    urz_code: int
    accelerated: bool
    min_ptx: tuple[int, int]
    features: frozenset[str] = field(default_factory=frozenset)
    smem_reserved: int = 1024
    max_registers: int = 255

    def has(self, feature: str) -> bool:
        """Whether the chip has a named ability, such as "ldcu", "ffma2", "fmnmx3", "dfma_coupled"."""
        return feature in self.features


_HOPPER_FEATURES = frozenset({"uldc", "hfma2_mma", "dfma_coupled"})
_BLACKWELL_FEATURES = frozenset({"ldcu", "iadd64", "reconvergent", "iadd3_preds", "fhadd"})
_B100 = _BLACKWELL_FEATURES | {"ffma2", "fmnmx3", "dfma_coupled", "vimnmx_preds", "credux"}
_B103 = _BLACKWELL_FEATURES | {"ffma2", "fmnmx3", "mufu_packed", "vimnmx_preds", "credux"}
_B120 = _BLACKWELL_FEATURES | {"vimnmx_s32", "int64_alu"}


def _targets() -> dict[str, Target]:
    rows: list[tuple[str, str, int, ConstantLayout, int, int, tuple[int, int], frozenset[str]]] = [
        ("sm_90", "sm_90a", 90, HOPPER, 63, 63, (7, 8), _HOPPER_FEATURES),
        ("sm_90a", "sm_90a", 90, HOPPER, 63, 63, (8, 0), _HOPPER_FEATURES),
        ("sm_100", "sm_100a", 100, BLACKWELL, 80, 255, (8, 6), _B100),
        ("sm_100a", "sm_100a", 100, BLACKWELL, 80, 255, (8, 6), _B100),
        ("sm_100f", "sm_100a", 100, BLACKWELL, 80, 255, (8, 8), _B100),
        ("sm_103", "sm_103a", 103, BLACKWELL, 80, 255, (8, 8), _B103),
        ("sm_103a", "sm_103a", 103, BLACKWELL, 80, 255, (8, 8), _B103),
        ("sm_103f", "sm_103a", 103, BLACKWELL, 80, 255, (8, 8), _B103),
        ("sm_120", "sm_120a", 120, BLACKWELL, 80, 255, (8, 7), _B120),
        ("sm_120a", "sm_120a", 120, BLACKWELL, 80, 255, (8, 7), _B120),
        ("sm_120f", "sm_120a", 120, BLACKWELL, 80, 255, (8, 8), _B120),
        ("sm_121", "sm_120a", 121, BLACKWELL, 80, 255, (8, 8), _B120),
        ("sm_121a", "sm_120a", 121, BLACKWELL, 80, 255, (8, 8), _B120),
    ]
    return {
        name: Target(name, chip, number, layout, uniforms, urz, name.endswith("a"), ptx, features)
        for name, chip, number, layout, uniforms, urz, ptx, features in rows
    }


TARGETS: dict[str, Target] = _targets()


def target(name: str) -> Target:
    """The target of that name (`sm_90a`), or an UnsupportedError that lists the known ones."""
    try:
        return TARGETS[name]
    except KeyError:
        raise UnsupportedError(f"unknown target '{name}'; known: {', '.join(TARGETS)}") from None
