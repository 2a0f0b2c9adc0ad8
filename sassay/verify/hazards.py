"""The control-bit checker: does every instruction wait for what it reads and overwrites?

`check` takes a cubin's bytes, `check_instructions` a list of decoded instructions. Both follow all control flow to a fixed point and report
read-after-write, write-after-write and write-after-read hazards of fixed- and variable-latency operations, and control codes no chip
defines. Distances come from `sassay.isa.timing` in its accusing reading. Errors say that a result can be wrong; notes that something is odd.

Not modelled: hazards through memory; calls of code outside the function, which are stepped over.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sassay.cubin import Cubin, Kernel, read
from sassay.errors import Location, SassError
from sassay.isa.target import Target
from sassay.isa.timing import TimingModel, model
from sassay.sass.cfg import WORD, Cfg, build
from sassay.sass.codec import decode_one
from sassay.sass.model import Control, Instruction
from sassay.verify.hazard_facts import Fact, FactMaker, Touch, register_name
from sassay.verify.hazard_flow import Hit, run

_MAX_YIELD_OFF_STALL = 11
_CONTROL_SHIFT = 41
_MEANING = (1 << _CONTROL_SHIFT) - 1
"""The part of a word's high half below the control bits."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `kind`: raw, waw, war, control; `severity`: error or note. Offsets in bytes; `needed` 0 asks for a scoreboard."""

    kind: str
    severity: str
    kernel: str
    offset: int
    message: str
    register: str = ""
    producer_offset: int = -1
    producer: str = ""
    consumer: str = ""
    found: int = 0
    needed: int = 0
    source: str = ""

    def __str__(self) -> str:
        return f"{self.kernel}+{self.offset:#x}: {self.severity}: {self.message}"

    def to_dict(self) -> dict[str, object]:
        """All fields, for JSON."""
        return asdict(self)


def check(cubin: bytes | Cubin, kernel: str | None = None, *, notes: bool = False) -> list[Finding]:
    """Findings in a cubin, or in one of its functions; errors alone unless `notes`.

    SassError for a word that is no instruction or an operation whose timing is not known, UnsupportedError for a chip without timing data.
    """
    file = read(cubin) if isinstance(cubin, bytes) else cubin
    target = file.target
    checker = Checker(target)
    functions = file.kernels.values() if kernel is None else [file.kernel(kernel)]
    out: list[Finding] = []
    for function in functions:
        out.extend(checker.code(function.code, kernel=function.name, tables=branch_tables(function)))
    return out if notes else [f for f in out if f.severity == "error"]


def check_instructions(
    instructions: Sequence[Instruction],
    target: Target | str,
    *,
    kernel: str = "",
    tables: Mapping[int, Sequence[int]] | None = None,
) -> list[Finding]:
    """Findings in one function's instructions, which stand at byte offsets 0, 16, ...

    Branch targets are byte offsets. `tables` gives the targets of indirect branches by the branch's offset. SassError for an instruction whose
    effects or timing are not known, UnsupportedError for a chip without timing data.
    """
    timing = model(target)
    maker = FactMaker(timing)
    facts = [Fact(i, _touch(maker, i, instr, kernel), instr.control) for i, instr in enumerate(instructions)]
    return _findings(instructions, facts, timing, kernel, tables, [i.control for i in instructions])


class Checker:
    """Checks many functions of one chip; what a word touches is worked out once for all its occurrences."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.timing = model(target)
        self._maker = FactMaker(self.timing)
        self._known: dict[tuple[int, int], tuple[Instruction, Touch]] = {}
        self._controls: dict[int, Control] = {}

    def code(self, code: bytes, *, kernel: str = "", tables: Mapping[int, Sequence[int]] | None = None) -> list[Finding]:
        """Findings in the words of one function."""
        if len(code) % WORD:
            raise SassError(f"code of {len(code)} bytes is no whole number of instructions", Location(kernel=kernel))
        words = struct.unpack(f"<{len(code) // 8}Q", code)
        instructions: list[Instruction] = []
        facts: list[Fact] = []
        controls: list[Control] = []
        for i in range(len(words) // 2):
            low, high = words[2 * i], words[2 * i + 1]
            key = (low, high & _MEANING)
            known = self._known.get(key)
            bits = high >> _CONTROL_SHIFT
            control = self._controls.get(bits)
            if known is None or control is None or known[1].transfers:
                instr = self._decode(low | high << 64, i, kernel)
                if known is None:
                    known = self._known[key] = (instr, _touch(self._maker, i, instr, kernel))
                elif known[1].transfers:
                    known = (instr, known[1])
                if control is None:
                    control = self._controls[bits] = instr.control
            instructions.append(known[0])
            facts.append(Fact(i, known[1], control))
            controls.append(control)
        return _findings(instructions, facts, self.timing, kernel, tables, controls)

    def _decode(self, word: int, index: int, kernel: str) -> Instruction:
        try:
            return decode_one(word, self.target, index * WORD)
        except SassError as error:
            raise SassError(error.message, Location(kernel=kernel, offset=index * WORD)) from error


def branch_tables(function: Kernel) -> dict[int, tuple[int, ...]]:
    """Targets of indirect branches, by offset, as the function's attributes list them."""
    out: dict[int, tuple[int, ...]] = {}
    for attribute in function.attributes:
        if attribute.name == "INDIRECT_BRANCH_TARGETS":
            rest = attribute.words
            while len(rest) >= 3:
                offset, _, count, *rest_list = rest
                out[offset] = tuple(rest_list[:count])
                rest = tuple(rest_list[count:])
    return out


def _findings(
    instructions: Sequence[Instruction],
    facts: Sequence[Fact],
    timing: TimingModel,
    kernel: str,
    tables: Mapping[int, Sequence[int]] | None,
    controls: Sequence[Control],
) -> list[Finding]:
    cfg = build(instructions, tables, kernel=kernel)
    hits: dict[tuple[str, int, int, int], Hit] = {}

    def report(hit: Hit) -> None:
        key = (hit.kind, hit.producer, hit.consumer, hit.register)
        known = hits.get(key)
        if known is None or hit.found < known.found:
            hits[key] = hit

    run(facts, cfg, _edges(instructions, cfg), timing, report)
    findings = [_hazard(hit, facts, timing, kernel) for hit in hits.values()]
    findings.extend(_control_findings(facts, controls, kernel))
    findings.sort(key=lambda f: (f.offset, f.producer_offset, f.register))
    return findings


def _touch(maker: FactMaker, index: int, instr: Instruction, kernel: str) -> Touch:
    try:
        return maker.touch(instr)
    except SassError as error:
        raise SassError(error.message, Location(kernel=kernel, offset=index * WORD)) from error


def _edges(instructions: Sequence[Instruction], cfg: Cfg) -> list[list[int]]:
    """Successors of each block: a call inside the function goes to its callee, and the callee's returns to what follows its calls."""
    edges = [list(block.successors) for block in cfg.blocks]
    returns: dict[int, list[int]] = {}
    for call, to in cfg.calls.items():
        block = cfg.block_of[call]
        after = [s for s in edges[block] if cfg.blocks[s].start == call + 1]
        if to < 0:
            continue
        callee = cfg.block_of[to]
        returns.setdefault(callee, []).extend(after)
        conditional = not instructions[call].guard.is_zero
        edges[block] = [*dict.fromkeys([callee, *(edges[block] if conditional else [s for s in edges[block] if s not in after])])]
    for callee, after in returns.items():
        for block in _body(callee, instructions, cfg):
            if instructions[cfg.blocks[block].end - 1].opcode == "RET":
                edges[block] = [*dict.fromkeys([*edges[block], *after])]
    return edges


def _body(callee: int, instructions: Sequence[Instruction], cfg: Cfg) -> set[int]:
    """Blocks of a callee: reached from its entry, stepping over calls."""
    seen: set[int] = set()
    todo = [callee]
    while todo:
        block = todo.pop()
        if block not in seen:
            seen.add(block)
            todo.extend(cfg.blocks[block].successors)
    return seen


def _hazard(hit: Hit, facts: Sequence[Fact], timing: TimingModel, kernel: str) -> Finding:
    producer, consumer = facts[hit.producer], facts[hit.consumer]
    first, second = producer.touch.mnemonic, consumer.touch.mnemonic
    register = register_name(hit.register)
    verb = "reads" if hit.kind == "raw" else "overwrites"
    did = "writes it" if hit.kind != "war" else "reads it" if hit.needed else "reads it late"
    where = f"{first} at {hit.producer * WORD:#x} {did}"
    if hit.needed:
        need = f"{hit.found} cycles after {where}, needs {hit.needed}"
        source = f"{timing.chip} {hit.kind} {producer.cls.name} -> {consumer.cls.name}"
    else:
        need = f"with no wait for a scoreboard since {where}"
        source = f"{timing.chip} {producer.cls.name}: variable latency"
    return Finding(
        hit.kind, "error", kernel, hit.consumer * WORD, f"{second} {verb} {register} {need}", register, hit.producer * WORD, first, second,
        hit.found, hit.needed, source,
    )  # fmt: skip


def _control_findings(facts: Sequence[Fact], controls: Sequence[Control], kernel: str) -> list[Finding]:
    """Control codes that no chip defines."""
    out = []
    for fact, control in zip(facts, controls, strict=True):
        problem = ""
        if not control.yield_ and (control.stall == 0 or control.stall > _MAX_YIELD_OFF_STALL):
            problem = f"stall {control.stall} without yield is no legal scheduling code"
        elif not 0 <= control.stall <= 15 or not 0 <= control.wait < 64 or (control.write or 0) > 5 or (control.read or 0) > 5:
            problem = "control field out of range"
        if problem:
            name = fact.touch.mnemonic
            out.append(Finding("control", "error", kernel, fact.index * WORD, f"{name}: {problem}", consumer=name))
    return out


__all__ = ["Checker", "Finding", "branch_tables", "check", "check_instructions"]
