"""The control-bit checker: does every instruction wait for what it reads and overwrites?

`check` takes a cubin's bytes, `check_instructions` a list of decoded instructions. Both follow all control flow to a fixed point and report
read-after-write, write-after-write and write-after-read hazards of fixed- and variable-latency operations, and control codes no chip
defines. Distances come from `sassay.isa.timing` in its accusing reading. Errors say that a result can be wrong; notes that something is odd.

Not modelled: hazards through memory, and what an unknown callee does (after such a call nothing is taken to be pending).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sassay.errors import Location, SassError
from sassay.isa.target import Target
from sassay.isa.timing import TimingModel, model
from sassay.sass.cfg import WORD, Cfg, build
from sassay.sass.model import Instruction
from sassay.verify.hazard_facts import Fact, FactMaker, register_name
from sassay.verify.hazard_flow import Hit, run

_MAX_YIELD_OFF_STALL = 11
_DRAINING = frozenset({"ERRBAR", "BRA", "NOP", "DEPBAR", "EXIT", "MEMBAR", "CGAERRBAR", "BPT"})
"""Operations on which ptxas writes the draining code (stall 0)."""


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
    facts = [_fact(maker, i, instr, kernel) for i, instr in enumerate(instructions)]
    return check_facts(instructions, facts, timing, kernel=kernel, tables=tables)


def check_facts(
    instructions: Sequence[Instruction],
    facts: Sequence[Fact],
    timing: TimingModel,
    *,
    kernel: str = "",
    tables: Mapping[int, Sequence[int]] | None = None,
) -> list[Finding]:
    """`check_instructions` for a caller that has the facts already."""
    cfg = build(instructions, tables, kernel=kernel)
    hits: dict[tuple[str, int, int, int], Hit] = {}

    def report(hit: Hit) -> None:
        key = (hit.kind, hit.producer, hit.consumer, hit.register)
        known = hits.get(key)
        if known is None or hit.found < known.found:
            hits[key] = hit

    run(facts, cfg, _edges(instructions, cfg), timing, report)
    findings = [_hazard(hit, instructions, facts, timing, kernel) for hit in hits.values()]
    findings.extend(_control_findings(instructions, kernel))
    findings.sort(key=lambda f: (f.offset, f.producer_offset, f.register))
    return findings


def _fact(maker: FactMaker, index: int, instr: Instruction, kernel: str) -> Fact:
    try:
        return maker.fact(index, instr)
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


def _hazard(hit: Hit, instructions: Sequence[Instruction], facts: Sequence[Fact], timing: TimingModel, kernel: str) -> Finding:
    producer, consumer = instructions[hit.producer], instructions[hit.consumer]
    register = register_name(hit.register)
    verb = {"raw": "reads", "waw": "overwrites", "war": "overwrites"}[hit.kind]
    did = "reads it late" if hit.kind == "war" and not hit.needed else "reads it" if hit.kind == "war" else "writes it"
    where = f"{producer.mnemonic} at {hit.producer * WORD:#x} {did}"
    if hit.needed:
        need = f"{hit.found} cycles after {where}, needs {hit.needed}"
        source = f"{timing.chip} {hit.kind} {facts[hit.producer].cls.name} -> {facts[hit.consumer].cls.name}"
    else:
        need = f"with no wait for a scoreboard since {where}"
        source = f"{timing.chip} {facts[hit.producer].cls.name}: variable latency"
    return Finding(
        hit.kind, "error", kernel, hit.consumer * WORD, f"{consumer.mnemonic} {verb} {register} {need}", register, hit.producer * WORD,
        producer.mnemonic, consumer.mnemonic, hit.found, hit.needed, source,
    )  # fmt: skip


def _control_findings(instructions: Sequence[Instruction], kernel: str) -> list[Finding]:
    """Control codes that no chip defines, and the draining code where compilers do not write it."""
    out = []
    for i, instr in enumerate(instructions):
        control = instr.control
        problem = ""
        severity = "error"
        if not control.yield_ and (control.stall == 0 or control.stall > _MAX_YIELD_OFF_STALL):
            problem = f"stall {control.stall} without yield is no legal scheduling code"
        elif control.stall == 0 and instr.opcode not in _DRAINING:
            problem, severity = "stall 0 drains the pipeline", "note"
        elif not 0 <= control.stall <= 15 or not 0 <= control.wait < 64 or (control.write or 0) > 5 or (control.read or 0) > 5:
            problem = "control field out of range"
        if problem:
            out.append(Finding("control", severity, kernel, i * WORD, f"{instr.mnemonic}: {problem}", consumer=instr.mnemonic))
    return out


__all__ = ["Finding", "check_facts", "check_instructions"]
