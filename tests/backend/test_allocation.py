"""Register allocation: no two live values share a register, tuples stay whole and aligned, spilled code computes the same."""

from __future__ import annotations

import pytest
from made import VECTOR_ADD, function

from sassay.errors import AllocationError
from sassay.regalloc import AllocationOptions, allocate
from sassay.regalloc.copies import fold_guarded_copies
from sassay.regalloc.graph import interference
from sassay.sass.effects import effects
from sassay.sass.function import Function
from sassay.sass.model import VIRTUAL, File, Reg
from sassay.sass.units import live_out, number


def evaluate(fn: Function) -> list[int]:
    """Runs straight code of MOV, IADD3, SEL, ISETP.NE and spill instructions over integers; the values that STG stores."""
    registers: dict[tuple[File, int], int] = {}
    frame: dict[int, int] = {}
    stored: list[int] = []

    def value(operand: object) -> int:
        if isinstance(operand, Reg):
            if operand.is_zero:
                return 1 if operand.file == File.P else 0
            got = registers[operand.file, operand.index]
            return 1 - got if operand.invert else got
        return operand.value  # type: ignore[attr-defined, no-any-return]

    for block in fn.blocks:
        for node in block.nodes:
            i = node.instruction
            ops = i.operands
            if not i.guard.is_zero and not value(i.guard):
                continue
            width = {"64": 2, "128": 4}.get(i.modifiers[-1] if i.modifiers else "", 1)
            match i.opcode:
                case "MOV" | "UMOV" | "R2UR":
                    registers[ops[0].file, ops[0].index] = value(ops[1])
                case "IADD3":
                    registers[ops[0].file, ops[0].index] = sum(value(o) for o in ops[1:]) & 0xFFFFFFFF
                case "SEL":
                    registers[ops[0].file, ops[0].index] = value(ops[1]) if value(ops[3]) else value(ops[2])
                case "ISETP":
                    registers[ops[0].file, ops[0].index] = int(value(ops[2]) != value(ops[3]))
                case "STL":
                    for k in range(width):
                        frame[ops[0].offset + 4 * k] = registers[File.R, ops[1].index + k]
                case "LDL":
                    for k in range(width):
                        registers[File.R, ops[0].index + k] = frame[ops[1].offset + 4 * k]
                case "STG":
                    stored += [registers[File.R, ops[1].index + k] for k in range(width)]
                case "EXIT":
                    return stored
                case other:
                    raise AssertionError(other)
    return stored


def many(count: int) -> str:
    """`count` values alive at once, then their sums with the neighbours, stored; predicates too."""
    lines = [f"MOV R{70000 + i}, {i + 3:#x}" for i in range(count)]
    lines += [f"ISETP.NE.AND P{70000 + i}, PT, R{70000 + i}, 0x5, PT" for i in range(9)]
    lines += [f"IADD3 R{71000 + i}, R{70000 + i}, R{70000 + (i * 7 + 1) % count}, RZ" for i in range(count)]
    lines += [f"SEL R{72000 + i}, R{71000 + i}, 0x11, P{70000 + i}" for i in range(9)]
    lines += [f"STG.E desc[UR4][R2.64], R{71000 + i}" for i in range(count)] + [f"STG.E desc[UR4][R2.64], R{72000 + i}" for i in range(9)]
    return "\n".join([*lines, "EXIT"])


def tuples(count: int) -> str:
    lines = []
    for i in range(count):
        first = 70000 + 4 * i
        lines += [f".tuple R{first} 4"] + [f"MOV R{first + k}, {5 * i + k:#x}" for k in range(4)]
    lines += [f"STG.E.128 desc[UR4][R2.64], R{70000 + 4 * i}" for i in range(count)]
    return "\n".join([*lines, "EXIT"])


def check_physical(fn: Function, limit: int) -> None:
    for block in fn.blocks:
        for node in block.nodes:
            seen = effects(node.instruction)
            for file, first, width in (*seen.defs, *seen.uses):
                assert first < VIRTUAL
                if file == File.R:
                    assert first + width <= limit
                    assert width == 1 or first % (2 if width == 2 else 4) == 0


@pytest.mark.parametrize(("count", "limit"), [(10, 255), (40, 255), (40, 24), (40, 18)])
def test_values_survive_allocation_and_spilling(count: int, limit: int) -> None:
    want = evaluate(function(many(count)))
    fn = function(many(count))
    allocate(fn, AllocationOptions(limit))
    check_physical(fn, limit)
    assert evaluate(fn) == want
    assert (fn.spill_bytes[0] > 0) == (limit < 40)


def test_tuples_are_spilled_whole() -> None:
    want = evaluate(function(tuples(8)))
    fn = function(tuples(8))
    allocate(fn, AllocationOptions(24))
    check_physical(fn, 24)
    assert evaluate(fn) == want
    assert any(n.instruction.mnemonic == "LDL.128" for b in fn.blocks for n in b.nodes)


def test_forced_spilling_keeps_values() -> None:
    want = evaluate(function(many(12)))
    fn = function(many(12))
    allocate(fn, AllocationOptions(force_spill=True))
    assert fn.spill_bytes[0] >= 12 * 4
    assert evaluate(fn) == want


def test_constants_are_repeated_rather_than_stored() -> None:
    fn = function(many(40))
    for node in fn.blocks[0].nodes:
        node.remat = node.instruction.opcode == "MOV"
    want = evaluate(function(many(40)))
    allocate(fn, AllocationOptions(50 - 10))
    assert evaluate(fn) == want
    assert sum(n.instruction.opcode == "MOV" for n in fn.blocks[0].nodes) > 40


def test_copies_are_coalesced() -> None:
    fn = function("LDG.E R70000, desc[UR4][R2.64]\nMOV R70001, R70000\nSTG.E desc[UR4][R2.64], R70001\nEXIT")
    allocate(fn)
    assert [n.instruction.opcode for n in fn.blocks[0].nodes] == ["LDG", "STG", "EXIT"]


def test_a_copy_into_a_tuple_is_coalesced() -> None:
    text = ".tuple R70010 2\nLDG.E R70000, desc[UR4][R2.64]\nLDG.E R70001, desc[UR4][R2.64]\nMOV R70010, R70000\nMOV R70011, R70001\n"
    fn = function(text + "STG.E.64 desc[UR4][R2.64], R70010\nEXIT")
    allocate(fn)
    assert [n.instruction.opcode for n in fn.blocks[0].nodes] == ["LDG", "LDG", "STG", "EXIT"]


def test_loop_copies_of_a_swap_are_kept_apart() -> None:
    fn = function(
        """
        MOV R70000, 0x1
        MOV R70001, 0x2
        loop:
        MOV R70002, R70000
        MOV R70000, R70001
        MOV R70001, R70002
        ISETP.NE.AND P0, PT, R70000, R70001, PT
        @P0 BRA `(loop)
        done:
        STG.E desc[UR4][R2.64], R70000
        EXIT
        """
    )
    allocate(fn)
    assert sum(n.instruction.opcode == "MOV" for n in fn.blocks[1].nodes) == 3


def test_pressure_is_the_number_of_registers_for_single_values() -> None:
    fn = function(VECTOR_ADD)
    units = number(fn)
    graph = interference(fn, units, live_out(fn, units))
    allocate(fn)
    assert fn.registers_used <= graph.pressure[File.R] + 2


def test_an_instruction_too_wide_for_the_limit_is_refused() -> None:
    fn = function(tuples(3))
    with pytest.raises(AllocationError):
        allocate(fn, AllocationOptions(6))


def test_predicate_copies_are_coalesced() -> None:
    fn = function(
        """
        ISETP.NE.AND P70000, PT, R2, R3, PT
        PLOP3.LUT P70001, PT, P70000, PT, PT, 0x80, 0x8
        @P70001 STG.E desc[UR4][R2.64], R3
        EXIT
        """
    )
    allocate(fn)
    assert [n.instruction.opcode for n in fn.blocks[0].nodes] == ["ISETP", "STG", "EXIT"]


def alive_at_entry(text: str) -> set[str]:
    fn = function(text)
    units = number(fn)
    live = live_out(fn, units)[0]
    for access in reversed(units.accesses[0]):
        for d in access.kills:
            live &= ~(1 << d)
        for u in access.uses:
            live |= 1 << u
    return {f"{units.file[u].name}{units.index[u]}" for u in range(len(units.file)) if live >> u & 1 and units.index[u] >= VIRTUAL}


def test_values_made_and_used_under_one_guard_are_not_alive_before() -> None:
    text = "@P0 IADD3 R70000, P70000, PT, R2, R3, RZ\n@P0 IADD3.X R70001, R2, R3, RZ, P70000, !PT\n@P0 STG.E desc[UR4][R2.64], R70001\nEXIT"
    assert alive_at_entry(text) == set()
    assert alive_at_entry("@P0 MOV R70000, R2\nSTG.E desc[UR4][R2.64], R70000\nEXIT") == {"R70000"}
    assert alive_at_entry("@P0 MOV R70000, R2\n@!P0 MOV R70000, R3\nSTG.E desc[UR4][R2.64], R70000\nEXIT") == set()
    changed = "@P0 MOV R70000, R2\nISETP.NE.AND P0, PT, R2, R3, PT\n@!P0 MOV R70000, R3\nSTG.E desc[UR4][R2.64], R70000\nEXIT"
    assert alive_at_entry(changed) == {"R70000"}


def test_copies_under_the_guard_of_their_source_are_folded() -> None:
    fn = function("@!P0 FADD R70000, R2, R3\n@!P0 MOV R70001, R70000\n@P0 MOV R70001, R2\nSTG.E desc[UR4][R2.64], R70001\nEXIT")
    fold_guarded_copies(fn)
    assert [n.instruction.opcode for n in fn.blocks[0].nodes] == ["FADD", "MOV", "STG", "EXIT"]
    other = function("@!P0 FADD R70000, R2, R3\n@P0 MOV R70001, R70000\n@!P0 MOV R70001, R2\nSTG.E desc[UR4][R2.64], R70001\nEXIT")
    fold_guarded_copies(other)
    assert len(other.blocks[0].nodes) == 5
