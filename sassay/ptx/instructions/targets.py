"""Targets a module may name, the PTX version that brought each, and which chips can run which.

Source: measured with ptxas 13.5 (its "does not support", "cannot be compiled to future architecture" and "higher than" answers); floors of
Blackwell targets as documented.
"""

from __future__ import annotations

FLOORS: dict[str, tuple[int, int]] = {
    "sm_30": (3, 0), "sm_32": (4, 0), "sm_35": (3, 1), "sm_37": (4, 1), "sm_50": (4, 0), "sm_52": (4, 1), "sm_53": (4, 2), "sm_60": (5, 0),
    "sm_61": (5, 0), "sm_62": (5, 0), "sm_70": (6, 0), "sm_72": (6, 1), "sm_75": (6, 3), "sm_80": (7, 0), "sm_82": (6, 3), "sm_86": (7, 1),
    "sm_87": (7, 4), "sm_88": (9, 0), "sm_89": (7, 8), "sm_90": (7, 8), "sm_90a": (8, 0), "sm_100": (8, 6), "sm_100a": (8, 6), "sm_100f": (8, 8),
    "sm_101": (8, 6), "sm_101a": (8, 6), "sm_101f": (8, 8), "sm_103": (8, 8), "sm_103a": (8, 8), "sm_103f": (8, 8), "sm_107": (9, 4),
    "sm_107a": (9, 4), "sm_107f": (9, 4), "sm_110": (9, 0), "sm_110a": (9, 0), "sm_110f": (9, 0), "sm_120": (8, 7), "sm_120a": (8, 7),
    "sm_120f": (8, 8), "sm_121": (8, 8), "sm_121a": (8, 8), "sm_121f": (8, 8),
}  # fmt: skip
FAMILIES: dict[str, tuple[int, ...]] = {
    "sm_100f": (100, 103, 107), "sm_101f": (101, 110), "sm_103f": (103, 107), "sm_107f": (107,), "sm_110f": (110,), "sm_120f": (120, 121),
    "sm_121f": (121,),
}  # fmt: skip


def number(target: str) -> int:
    """90 of "sm_90a"."""
    return int(target[3:].rstrip("af"))


def target_problem(target: str, version: tuple[int, int]) -> str:
    """Why a `.target` cannot stand in a module of that version ("" when it can)."""
    floor = FLOORS.get(target)
    if floor is None:
        return f"unknown target '{target}'"
    if version < floor:
        return f"target {target} needs PTX version {floor[0]}.{floor[1]} or newer, found {version[0]}.{version[1]}"
    return ""


def compile_problem(wanted: str, chip: str) -> str:
    """Why PTX for one target cannot be compiled for a chip ("" when it can)."""
    if wanted == chip or chip not in FLOORS:
        return ""
    if wanted.endswith("a"):
        return f"PTX for {wanted} runs on {wanted} only and cannot be compiled for {chip}"
    if wanted.endswith("f"):
        return "" if number(chip) in FAMILIES[wanted] else f"PTX for the family {wanted} cannot be compiled for {chip}"
    return "" if number(wanted) <= number(chip) else f"PTX for {wanted} cannot be compiled for the older {chip}"
