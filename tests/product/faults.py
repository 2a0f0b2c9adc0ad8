"""Faults planted in finished cubins: one instruction changed at a time, in what it computes or in how it waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from specs import Launch

import sassay
from sassay.errors import SassayError
from sassay.isa.target import Target as Chip
from sassay.pipeline import CompileResult
from sassay.ptx.ast import Module
from sassay.sass.codec import decode, encode_one
from sassay.sass.effects import destinations
from sassay.sass.model import File, Imm, Instruction, Reg
from sassay.sass.text import format_control, format_instruction
from sassay.verify.prove import Proof, Witness, prove_kernel

KINDS = ("operand", "immediate", "stall", "wait", "predicate")
WORD = 16
CONTROL_FLOW = frozenset({"BRA", "EXIT", "BSYNC", "BSSY", "NOP", "RET", "CALL", "WARPSYNC", "YIELD", "BRX"})


@dataclass
class Fault:
    """One planted fault and what became of it. `outcome`: hazard, refuted (a launch shows it), suspect, open (no proof), harmless, missed."""

    kernel: str
    kind: str
    offset: int
    before: str
    after: str
    cubin: bytes
    outcome: str = ""

    def __str__(self) -> str:
        return f"{self.kernel}+{self.offset:#x} {self.kind}: {self.before} -> {self.after}: {self.outcome}"


def plant(kernel: str, cubin: bytes, kind: str, rng: np.random.Generator) -> Iterator[Fault]:
    """Endless faults of one kind at random places that execution can reach; none if the kernel has no place for that kind."""
    model = sassay.read_cubin(cubin)
    code, chip = model.kernel(kernel).code, model.target
    start = cubin.index(code)
    instructions = decode(code, chip)
    last = max(i for i, instr in enumerate(instructions) if instr.opcode == "EXIT")
    places = [i for i in range(last + 1) if (instructions[i].opcode != "NOP" and _changes(instructions, i, kind, rng))]
    while places:
        i = int(rng.choice(places))
        changes = _changes(instructions, i, kind, rng)
        if not changes:
            continue
        changed = changes[0]
        word = _word(changed, chip, i)
        if word is None or word == code[WORD * i : WORD * (i + 1)]:
            continue
        at = start + WORD * i
        yield Fault(kernel, kind, WORD * i, _text(instructions[i]), _text(changed), cubin[:at] + word + cubin[at + WORD :])


def _text(instr: Instruction) -> str:
    return f"{format_control(instr.control)} {format_instruction(instr)}"


def _word(instr: Instruction, chip: Chip, index: int) -> bytes | None:
    try:
        return encode_one(replace(instr, form=""), chip, WORD * index).to_bytes(WORD, "little")
    except SassayError:
        return None


def _changes(instructions: list[Instruction], i: int, kind: str, rng: np.random.Generator) -> list[Instruction]:
    """One random change of this kind to an instruction, or nothing where it has no place for one."""
    instr = instructions[i]
    control = instr.control
    if kind == "stall":
        if control.stall < 2 or instr.opcode in CONTROL_FLOW:
            return []
        return [replace(instr, control=replace(control, stall=1, yield_=False))]
    if kind == "wait":
        bits = [b for b in range(6) if control.wait >> b & 1]
        return [replace(instr, control=replace(control, wait=control.wait & ~(1 << int(rng.choice(bits)))))] if bits else []
    if kind == "predicate":
        return _predicate(instr, rng)
    written = set(destinations(instr))
    if kind == "immediate":
        found = [p for p, o in enumerate(instr.operands) if isinstance(o, Imm) and p not in written and instr.opcode not in CONTROL_FLOW]
        if not found:
            return []
        p = int(rng.choice(found))
        old = instr.operands[p]
        assert isinstance(old, Imm)
        return [_with(instr, p, replace(old, value=old.value ^ (1 << int(rng.integers(0, 4)))))]
    sources = [p for p, o in enumerate(instr.operands) if isinstance(o, Reg) and o.file == File.R and o.index != 255 and p not in written]
    if not sources:
        return []
    p = int(rng.choice(sources))
    old_register = instr.operands[p]
    assert isinstance(old_register, Reg)
    known = {o.index for one in instructions for o in one.operands if isinstance(o, Reg) and o.file == File.R and o.index != 255}
    others = sorted(r for r in known if r != old_register.index and r % 2 == old_register.index % 2)
    return [_with(instr, p, replace(old_register, index=int(rng.choice(others))))] if others else []


def _predicate(instr: Instruction, rng: np.random.Generator) -> list[Instruction]:
    written = set(destinations(instr))
    sources = [p for p, o in enumerate(instr.operands) if isinstance(o, Reg) and o.file == File.P and o.index != 7 and p not in written]
    guard = instr.guard
    if guard is not None and guard.index != 7 and (not sources or rng.random() < 0.5):
        return [replace(instr, guard=replace(guard, invert=not guard.invert))]
    if not sources:
        return []
    p = int(rng.choice(sources))
    old = instr.operands[p]
    assert isinstance(old, Reg)
    return [_with(instr, p, replace(old, invert=not old.invert))]


def _with(instr: Instruction, position: int, operand: object) -> Instruction:
    return replace(instr, operands=tuple(operand if p == position else o for p, o in enumerate(instr.operands)))


def proof(module: Module, kernel: str, cubin: bytes, result: CompileResult, seconds: float) -> Proof:
    blocks = result.kernels[kernel].witness.get("blocks")
    return prove_kernel(module, kernel, cubin, witness=Witness(blocks=blocks if isinstance(blocks, dict) else {}), seconds=seconds, per_query=1.0)


def harmless(fault: Fault, launch: Launch) -> bool:
    """Whether a changed stall or wait does no harm: the emulator's timing mode, a second opinion, sees no early read and the results are right.

    What orders memory waits for more than registers, which neither opinion knows: never called harmless.
    """
    if fault.kind not in ("stall", "wait") or any(name in fault.before for name in ("BAR", "CCTL", "FENCE")):
        return False
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in launch.args]
    try:
        result = sassay.emulate(fault.cubin, fault.kernel, launch.grid, launch.block, args, shared_bytes=launch.shared_bytes, timing=True)
        launch.check(args)
    except (SassayError, AssertionError):
        return False
    return not any(f.kind == "stale read" for f in result.findings)


def judge(fault: Fault, module: Module, result: CompileResult, launch: Launch, seconds: float = 2.0) -> Fault:
    """Lets the checker look at a fault, then the prover."""
    try:
        findings = len(sassay.check(fault.cubin, fault.kernel))
    except SassayError:
        findings = 1
    if findings:
        fault.outcome = "hazard"
        return fault
    verdict = proof(module, fault.kernel, fault.cubin, result, seconds).verdict
    if verdict in ("proved", "conditional"):
        fault.outcome = "harmless" if harmless(fault, launch) else "missed"
    else:
        fault.outcome = verdict if verdict in ("refuted", "suspect") else "open"
    return fault
