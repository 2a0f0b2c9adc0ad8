"""Control transfers and barriers. A transfer moves the current group and says whether the scheduler must choose again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sassay.emu.machine import AT_BAR, AT_BSYNC, AT_WARPSYNC, EXITED, Array, Machine, Transfer, pack, unpack
from sassay.emu.values import Fetch, file_of, first_active, guard_of, spread, write_masked
from sassay.errors import EmulationError
from sassay.isa.semantics.events import BarrierOp, ControlOp
from sassay.sass.model import File, Imm, Instruction, Name, Operand, Reg, Target

NOTHING = frozenset({
    "NOP", "MEMBAR", "DEPBAR", "LDGDEPBAR", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "FENCE", "PMTRIG", "USETMAXREG", "PREEXIT", "ACQBULK",
    "UVIRTCOUNT",
})  # fmt: skip
"""Operations with no effect on a machine whose memory is coherent and in order."""
STEPS = frozenset({"BMOV", "B2R", "LEPC"})
"""Control and barrier operations that only move values."""


def value_of(machine: Machine, operand: Operand) -> Fetch:
    """A register or immediate as 32-bit numbers."""
    if isinstance(operand, Imm):
        number = np.array([[operand.value & 0xFFFFFFFF]], np.uint32)
        return lambda: number
    if isinstance(operand, Reg):
        registers, index = file_of(machine, operand.file), operand.index
        if operand.is_zero:
            number = np.array([[0xFFFFFFFF if operand.invert else 0]], np.uint32)
            return lambda: number
        return (lambda: ~registers[index]) if operand.invert else (lambda: registers[index])
    raise EmulationError("the operand is no number")


def target_of(instr: Instruction) -> int:
    """Instruction index of the branch target operand; 0 where none is given (register jumps)."""
    for operand in instr.operands:
        if isinstance(operand, Target):
            if not isinstance(operand.to, int):
                raise EmulationError(f"branch to a label '{operand.to}' without a place")
            return operand.to // 16
    return 0


def condition_of(machine: Machine, instr: Instruction, op: ControlOp) -> Fetch | None:
    """Guard and condition operand together, by lane; None when always true."""
    guard = guard_of(machine, instr.guard)
    extra: Fetch | None = None
    if op.condition >= 0:
        operand = instr.operands[op.condition]
        assert isinstance(operand, Reg)
        extra = guard_of(machine, operand)
    if guard is None or extra is None:
        return guard if extra is None else extra
    first, second = guard, extra
    return lambda: first() & second()


def conditional(machine: Machine, condition: Fetch | None, target: int) -> Transfer:
    """A jump to a known place where the condition holds."""
    m = machine
    if condition is None:
        return lambda: m.go(target)

    def jump() -> bool:
        taken = m.mask & condition()
        count = int(np.count_nonzero(taken))
        if count == 0:
            return m.go(m.pc + 1)
        if count == m.active:
            return m.go(target)
        return m.split(taken, target)

    return jump


def compile_control(machine: Machine, instr: Instruction, op: ControlOp | BarrierOp) -> Transfer:
    """A control or barrier instruction that may move lanes."""
    makers: dict[str, Callable[..., Transfer]] = {
        "BRA": _branch, "JMP": _branch, "CALL": _indirect, "BRX": _indirect, "BRXU": _indirect, "RET": _indirect, "JMX": _indirect, "JMXU": _indirect,
        "EXIT": _exit, "KILL": _exit, "BSSY": _bssy, "BSYNC": _bsync, "BREAK": _break, "YIELD": _yield, "NANOSLEEP": _yield, "BPT": _trap,
        "WARPSYNC": _warpsync, "ENDCOLLECTIVE": _end_collective, "BAR": _bar,
    }  # fmt: skip
    if op.name not in makers:
        raise EmulationError(f"no way to run {instr.mnemonic}")
    return makers[op.name](machine, instr, op)


def _branch(m: Machine, instr: Instruction, op: ControlOp) -> Transfer:
    target = target_of(instr)
    if "DIV" in op.modifiers or "CONV" in op.modifiers:
        return _divergence(m, instr, "DIV" in op.modifiers, target)
    return conditional(m, condition_of(m, instr, op), target)


def _divergence(m: Machine, instr: Instruction, when_diverged: bool, target: int) -> Transfer:
    """BRA.DIV, BRA.CONV: compares the lanes that run with the live ones of the mask operand, warp by warp."""
    wanted = value_of(m, next(o for o in instr.operands if isinstance(o, Reg) and o.file in (File.R, File.UR)))
    guard = guard_of(m, instr.guard)

    def condition() -> Array:
        mask = unpack(np.broadcast_to(first_active(m, wanted(), m.mask), (m.warps, 1)))
        missing = pack(mask & m.live() & ~m.mask)
        chosen: Array = (missing != 0) if when_diverged else (missing == 0)
        return chosen if guard is None else chosen & guard()

    return conditional(m, condition, target)


def _indirect(m: Machine, instr: Instruction, op: ControlOp) -> Transfer:
    """CALL, RET, BRX: a place from a register, relative to the target operand; code addresses are offsets in the kernel's section."""
    register = next((o for o in instr.operands if isinstance(o, Reg) and o.file in (File.R, File.UR)), None)
    condition = condition_of(m, instr, op)
    base = target_of(instr)
    if register is None:
        return conditional(m, condition, base)
    value = value_of(m, register)

    def jump() -> bool:
        places = (value().astype(np.int32) >> 4) + base
        taken = m.mask if condition is None else m.mask & condition()
        chosen = np.broadcast_to(places, m.mask.shape)[taken]
        if not chosen.size:
            return m.go(m.pc + 1)
        first = int(chosen[0])
        if chosen.size == m.active and (chosen == first).all():
            return m.go(first)
        return m.split(taken, np.broadcast_to(places, m.mask.shape))

    return jump


def _exit(m: Machine, instr: Instruction, op: ControlOp) -> Transfer:
    condition = condition_of(m, instr, op)

    def leave() -> bool:
        gone = m.mask if condition is None else m.mask & condition()
        count = int(np.count_nonzero(gone))
        if count == 0:
            return m.go(m.pc + 1)
        m.park(m.pc + 1)
        m.status[gone] = EXITED
        m.live_count -= count
        m.check_waits()
        return True

    return leave


def _barrier_register(instr: Instruction) -> int:
    return next(o.index for o in instr.operands if isinstance(o, Reg) and o.file is File.B)


def _bssy(m: Machine, instr: Instruction, op: ControlOp) -> Transfer:
    number = _barrier_register(instr)
    guard = guard_of(m, instr.guard)

    def enter() -> bool:
        mask = m.mask if guard is None else m.mask & guard()
        members = m.B[number]
        m.B[number] = mask if members is None else members | mask
        return m.go(m.pc + 1)

    return enter


def _bsync(m: Machine, instr: Instruction, op: ControlOp) -> Transfer:
    number = _barrier_register(instr)
    guard = guard_of(m, instr.guard)

    def meet() -> bool:
        members = m.B[number]
        if guard is None and members is m.mask:  # all that entered are here
            m.B[number] = None
            return m.go(m.pc + 1)
        if members is None:
            return m.go(m.pc + 1)
        m.park(m.pc + 1)
        waits = m.mask & members if guard is None else m.mask & members & guard()
        m.status[waits] = AT_BSYNC
        m.waiting_for[waits] = number
        m.release_bsync(number)
        return True

    return meet


def _break(m: Machine, instr: Instruction, op: ControlOp) -> Transfer:
    number = _barrier_register(instr)
    condition = condition_of(m, instr, op)

    def leave() -> bool:
        gone = m.mask if condition is None else m.mask & condition()
        members = m.B[number]
        if members is None or not gone.any():
            return m.go(m.pc + 1)
        left = members & ~gone
        m.B[number] = left if left.any() else None
        m.park(m.pc + 1)
        m.release_bsync(number)
        return True

    return leave


def _yield(m: Machine, instr: Instruction, op: ControlOp) -> Transfer:
    def give_way() -> bool:
        if m.active == m.live_count:
            return m.go(m.pc + 1)
        m.park(m.pc + 1)
        m.yielded = m.mask
        return True

    return give_way


def _trap(m: Machine, instr: Instruction, op: ControlOp) -> Transfer:
    guard = guard_of(m, instr.guard)

    def stop() -> bool:
        mask = m.mask if guard is None else m.mask & guard()
        if mask.any():
            raise m.fail(m.pc, f"{instr.mnemonic}: the kernel traps", int(mask.reshape(-1).argmax()))
        return m.go(m.pc + 1)

    return stop


def _warpsync(m: Machine, instr: Instruction, op: BarrierOp) -> Transfer:
    collective = target_of(instr) if "COLLECTIVE" in op.modifiers else -1
    operand = next((o for o in instr.operands if isinstance(o, (Reg, Imm)) and not (isinstance(o, Reg) and o.file in (File.P, File.UP))), None)
    wanted = value_of(m, Imm(-1) if operand is None or "ALL" in op.modifiers else operand)
    guard = guard_of(m, instr.guard)

    def meet() -> bool:
        masks = wanted()
        alike = masks.shape[-1] == 1 or bool((masks == masks[:, :1]).all())
        if alike and m.party is None and guard is None and m.free and (m.live_count == m.mask.size or not (masks & pack(m.live() & ~m.mask)).any()):
            if collective >= 0:
                m.collective = np.where(m.mask, collective, m.collective)
            return m.go(m.pc + 1)
        m.park(m.pc + 1)
        waits = m.mask if guard is None else m.mask & guard()
        m.status[waits] = AT_WARPSYNC
        m.waiting_for[waits] = spread(m, masks)[waits]
        if collective >= 0:
            m.collective = np.where(waits, collective, m.collective)
        m.release_warpsync()
        return True

    return meet


def _end_collective(m: Machine, instr: Instruction, op: BarrierOp) -> Transfer:
    def leave() -> bool:
        places = m.collective[m.mask]
        if (places < 0).any():
            raise m.fail(m.pc, "ENDCOLLECTIVE outside a collective region")
        m.collective = np.where(m.mask, -1, m.collective)
        first = int(places[0])
        if (places == first).all():
            return m.go(first)
        back = np.zeros(m.mask.shape, np.int32)
        back[m.mask] = places
        return m.split(m.mask, back)

    return leave


def _bar(m: Machine, instr: Instruction, op: BarrierOp) -> Transfer:
    """BAR.SYNC, BAR.ARV, BAR.RED: number, optional thread count, for RED a predicate."""
    words = set(op.modifiers)
    if not words & {"SYNC", "ARV", "RED"}:
        raise EmulationError(f"no way to run {instr.mnemonic}")
    named = [o for o in instr.operands if isinstance(o, Imm) or (isinstance(o, Reg) and o.file in (File.R, File.UR))]
    numbers = [value_of(m, o) for o in named]
    # number in bits 0 to 3; a count beside a number in registers stands in bits 16 and up (ptxas 13.5 packs both into one register)
    shift = np.uint32(16 if len(named) > 1 and all(isinstance(o, Reg) for o in named) else 0)
    flags = [o for o in instr.operands if isinstance(o, Reg) and o.file in (File.P, File.UP)]
    vote = (guard_of(m, flags[0]) or (lambda: np.ones((1, 1), np.bool_))) if flags and "RED" in words else None
    kind = next((w for w in ("POPC", "AND", "OR") if w in words), "")
    guard = guard_of(m, instr.guard)
    waits = "ARV" not in words

    def meet() -> bool:
        mask = m.mask if guard is None else m.mask & guard()
        number = numbers[0]() & np.uint32(0xF)
        if waits and vote is None and guard is None and m.free and len(numbers) == 1 and number.size == 1 and not m.arrived:
            everyone = np.ones(m.warps, np.bool_)
            for hook in m.barrier_passed:
                hook(everyone, everyone)
            return m.go(m.pc + 1)
        m.park(m.pc + 1)
        _arrive(m, mask, spread(m, number), spread(m, numbers[1]() >> shift) if len(numbers) > 1 else None, vote, kind, waits)
        m.release_barriers()
        return True

    return meet


def _arrive(m: Machine, mask: Array, number: Array, count: Array | None, vote: Fetch | None, kind: str, waits: bool) -> None:
    cta = np.broadcast_to(m.cta_of_warp, mask.shape)
    says = spread(m, vote()) if vote is not None else None
    for key in np.unique((cta[mask].astype(np.int64) << 8) | number[mask]):
        here = mask & (cta == key >> 8) & (number == (key & 0xFF))
        at = (int(key >> 8), int(key & 0xFF))
        expected = int(count[here][0]) if count is not None else 0
        if m.expected.setdefault(at, expected) != expected:
            raise m.fail(m.pc, f"barrier {at[1]} is used with thread counts {m.expected[at]} and {expected} at once")
        m.arrived[at] = m.arrived.get(at, 0) + int(here.sum())
        m.came[at] = here.any(axis=1) | m.came.get(at, False)
        if says is not None:
            yes = int((says & here).sum())
            total = m.votes.setdefault(at, [{"POPC": 0, "AND": 0xFFFFFFFF, "OR": 0}[kind]])
            if kind == "POPC":
                total[0] += yes
            elif kind == "OR":
                total[0] |= 0xFFFFFFFF if yes else 0
            elif yes != int(here.sum()):
                total[0] = 0
        if waits:
            m.status[here] = AT_BAR
            m.waiting_for[here] = at[1]


def compile_move(m: Machine, instr: Instruction, index: int) -> Callable[[], None]:
    """BMOV, B2R, LEPC: values in and out of convergence barriers, barrier results, the program counter."""
    if instr.opcode == "BMOV":
        return _bmov(m, instr)
    guard = guard_of(m, instr.guard)
    if instr.opcode == "LEPC":
        low = next(o for o in instr.operands if isinstance(o, Reg))
        place = target_of(instr) if any(isinstance(o, Target) for o in instr.operands) else index + 1
        value, zero = np.array([[16 * place]], np.uint32), np.zeros((1, 1), np.uint32)

        def lepc() -> None:
            condition = guard() if guard is not None else None
            write_masked(m, (m.R, low.index), value, condition)
            write_masked(m, (m.R, low.index + 1), zero, condition)

        return lepc
    if "RESULT" not in instr.modifiers:
        raise EmulationError(f"no way to run {instr.mnemonic}")
    outputs = [o for o in instr.operands if isinstance(o, Reg) and not o.is_zero]

    def b2r() -> None:
        condition = guard() if guard is not None else None
        for out in outputs:
            value = m.barrier_result.copy()
            write_masked(m, (file_of(m, out.file), out.index), value != 0 if out.file is File.P else value, condition)

    return b2r


def _bmov(m: Machine, instr: Instruction) -> Callable[[], None]:
    to, source = instr.operands[0], instr.operands[1]
    guard = guard_of(m, instr.guard)
    clear = "CLEAR" in instr.modifiers
    if isinstance(to, Reg) and to.file is File.B:
        value, number = value_of(m, source), to.index

        def write() -> None:
            mask = m.mask if guard is None else m.mask & guard()
            rows = mask.any(axis=1, keepdims=True)
            new = unpack(np.broadcast_to(first_active(m, value(), mask), (m.warps, 1)))
            old = m.B[number]
            m.B[number] = np.where(rows, new, old if old is not None else False)
            m.release_bsync(number)

        return write
    if not isinstance(to, Reg) or not (isinstance(source, Reg) and source.file is File.B) or isinstance(source, Name):
        raise EmulationError(f"no way to run {instr.mnemonic} with these operands")
    index = source.index

    def read() -> None:
        mask = m.mask if guard is None else m.mask & guard()
        members = m.B[index]
        value = pack(members) if members is not None else np.zeros((1, 1), np.uint32)
        write_masked(m, (m.R, to.index), value, guard() if guard is not None else None)
        if clear and members is not None:
            left = members & ~mask
            m.B[index] = left if left.any() else None
            m.release_bsync(index)

    return read
