"""Prove that a cubin's kernel computes what a PTX entry says, starting from the cubin's bytes.

The pairing of cut points may come from a compiler's witness (PTX label -> SASS byte offset); it is only a suggestion: a wrong one makes the proof
fail. Without one, loop headers are paired in order of their appearance.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sassay.cubin import Cubin, Kernel, read
from sassay.errors import ProofError, SassayError
from sassay.ptx.ast import Function, Module, Variable
from sassay.sass.codec import decode
from sassay.sass.model import Instruction, Name
from sassay.verify.environment import Environment
from sassay.verify.equality import Budget
from sassay.verify.hazards import check
from sassay.verify.liveness import ptx_liveness, sass_liveness
from sassay.verify.ptx_side import ENTRY, PtxSide
from sassay.verify.regions import EXIT, Side
from sassay.verify.replay import Difference, replay
from sassay.verify.sass_side import SassSide
from sassay.verify.simulation import Obligation, Pairing, Simulation
from sassay.verify.solver import available
from sassay.verify.terms import Terms

VERDICTS = ("proved", "conditional", "refuted", "suspect", "unknown", "unsupported")
"""`conditional`: every obligation holds, given lemmas that were sampled rather than proved. `refuted`: the two sides differ on a launch that was run
on both. `suspect`: an obligation fails on some values, but no launch was found that shows it; the relation may be too weak instead."""


@dataclass(slots=True)
class Proof:
    """The outcome for one kernel. `reason` says why it is not proved; `failures` are the obligations left open or refuted."""

    kernel: str
    verdict: str
    reason: str = ""
    failures: list[Obligation] = field(default_factory=list)
    obligations: int = 0
    methods: dict[str, int] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)
    lemmas: list[str] = field(default_factory=list)
    hazards: list[str] = field(default_factory=list)
    """What the control codes leave open; a proof assumes execution in order, so it needs none."""
    cuts: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    seconds: float = 0.0
    solver_seconds: float = 0.0
    difference: Difference | None = None
    """The launch that refutes, with the first differing value."""
    ptx_hash: str = ""
    cubin_hash: str = ""

    @property
    def proved(self) -> bool:
        return self.verdict == "proved"

    def certificate(self) -> dict[str, Any]:
        """The outcome as JSON data: what was compared (by hash), the verdict, what it leans on, and what is open."""
        difference = None
        if self.difference is not None:
            difference = {
                "block": list(self.difference.block), "parameter": self.difference.parameter, "word": self.difference.index,
                "expected": self.difference.expected, "got": self.difference.got,
            }  # fmt: skip
        return {
            "kernel": self.kernel, "verdict": self.verdict, "reason": self.reason, "cubin_sha256": self.cubin_hash, "ptx_sha256": self.ptx_hash,
            "cuts": self.cuts, "rounds": self.rounds, "obligations": self.obligations, "methods": self.methods, "lemmas": self.lemmas,
            "assumptions": self.assumptions, "hazards": self.hazards, "difference": difference, "solvers": available(),
            "open": [{"cut": o.cut, "what": o.what, "status": o.result.status, "reason": o.result.reason} for o in self.failures],
            "seconds": round(self.seconds, 3), "solver_seconds": round(self.solver_seconds, 3),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Witness:
    """What a compiler says of its own work: PTX label -> byte offset of the block in the kernel; places of variables."""

    blocks: Mapping[str, int] = field(default_factory=dict)
    shared: Mapping[str, int] = field(default_factory=dict)
    local: Mapping[str, int] = field(default_factory=dict)


def prove_kernel(
    module: Module, kernel: str, cubin: bytes, *, witness: Witness | None = None, seconds: float = 60.0, per_query: float = 2.0
) -> Proof:
    """Prove one kernel. Never raises for what a proof cannot handle: the verdict is then "unsupported" or "unknown", with the reason."""
    start = time.process_time()
    budget = Budget(per_query=per_query, total=seconds)
    proof = Proof(kernel, "unknown", cubin_hash=hashlib.sha256(cubin).hexdigest())
    try:
        _attempt(module, kernel, read(cubin), witness, budget, proof)
        if proof.verdict == "unknown" and any(o.result.status == "different" for o in proof.failures):
            _replay(module, kernel, cubin, proof)
    except SassayError as error:
        proof.verdict = "unknown" if isinstance(error, ProofError) else "unsupported"
        proof.reason = str(error)
    except RecursionError:
        proof.verdict, proof.reason = "unknown", "terms nested too deeply"
    proof.methods, proof.solver_seconds = dict(budget.methods), budget.spent
    proof.seconds = time.process_time() - start
    return proof


def _attempt(module: Module, name: str, cubin: Cubin, witness: Witness | None, budget: Budget, proof: Proof) -> None:
    function = next((f for f in module.functions if f.name == name and f.body is not None), None)
    if function is None:
        raise ProofError(f"the PTX has no entry '{name}'")
    kernel = cubin.kernel(name)
    terms = Terms()
    environment = _environment(terms, module, function, kernel, witness)
    instructions = decode(kernel.code, cubin.target)
    ptx = PtxSide(function, environment)
    leaders = set(witness.blocks.values()) if witness is not None else set()
    sass = SassSide(instructions, cubin.target, environment, _symbols(cubin, name), extra_leaders=leaders)
    pairing = _pair(ptx, sass, instructions, witness)
    outcome = Simulation(terms, ptx, sass, pairing, budget).run()
    proof.cuts, proof.rounds = dict(pairing.cuts), outcome.rounds
    proof.obligations = len(outcome.obligations)
    proof.failures = [o for o in outcome.obligations if o.result.status != "equal"]
    proof.assumptions = sorted(environment.assumptions)
    proof.lemmas = list(dict.fromkeys(str(lemma) for lemma in outcome.lemmas))
    hazards = check(cubin, name)
    proof.hazards = [str(h) for h in hazards]
    if not proof.failures and hazards:
        proof.reason = f"the code is right only if it runs in order, and its control codes do not see to that: {hazards[0]}"
        return
    if not proof.failures:
        proof.verdict = "conditional" if outcome.lemmas else "proved"
        return
    first = proof.failures[0]
    proof.reason = f"{first.what} from {first.cut}: {first.result.status} ({first.result.reason or first.result.method})"


def _replay(module: Module, name: str, cubin: bytes, proof: Proof) -> None:
    """Run what looks like a miscompile on both sides: only a difference that shows there refutes."""
    function = next(f for f in module.functions if f.name == name)
    failure = next(o for o in proof.failures if o.result.status == "different")
    proof.difference = replay(module, function, cubin, failure.result.witness)
    if proof.difference is not None:
        proof.verdict = "refuted"
        proof.reason = str(proof.difference)
    else:
        proof.verdict = "suspect"


def _symbols(cubin: Cubin, kernel: str) -> dict[tuple[int, int], tuple[str, int]]:
    """Places in constant bank 4 that hold addresses: what they are the address of."""
    found = {}
    for section in (".nv.constant4", f".nv.constant4.{kernel}"):
        for fixup in cubin.relocations(section):
            found[4, fixup.offset] = (fixup.symbol, fixup.addend)
    return found


def _environment(terms: Terms, module: Module, function: Function, kernel: Kernel, witness: Witness | None) -> Environment:
    environment = Environment(terms)
    environment.shared.update(_shared_layout(module, function))
    offset = 0
    for variable in (*module.variables, *function.variables):
        if variable.space == "const":
            offset = (offset + variable.align - 1) // variable.align * variable.align
            environment.constants[variable.name] = offset
            offset += variable.size
    frame = 0
    for variable in function.variables:
        if variable.space == "local":
            frame = (frame + variable.align - 1) // variable.align * variable.align
            environment.local[variable.name] = frame - kernel.frame
            frame += variable.size
    if witness is not None:
        environment.shared.update(witness.shared)
        environment.local.update(witness.local)
    sizes = {v.name: v.size for v in function.variables if v.space == "local"}
    environment.local_ranges = [(environment.local[n], size) for n, size in sizes.items()]
    _check_layout(environment, module, function)
    return environment


def _shared_variables(module: Module, function: Function) -> list[Variable]:
    return [v for v in (*module.variables, *function.variables) if v.space == "shared"]


def _shared_layout(module: Module, function: Function) -> dict[str, int]:
    """Static shared variables in order of declaration at their alignment, the extern array after them."""
    offset = 0
    layout: dict[str, int] = {}
    dynamic = []
    for variable in _shared_variables(module, function):
        if variable.linkage == "extern":
            dynamic.append(variable)
            continue
        offset = (offset + variable.align - 1) // variable.align * variable.align
        layout[variable.name] = offset
        offset += variable.size
    for variable in dynamic:
        layout[variable.name] = (offset + max(16, variable.align) - 1) // max(16, variable.align) * max(16, variable.align)
    return layout


def _check_layout(environment: Environment, module: Module, function: Function) -> None:
    """Any layout is right whose variables do not overlap and keep their alignment."""
    placed = [(environment.shared[v.name], v) for v in _shared_variables(module, function)]
    spans = sorted(((at, at + v.size, v) for at, v in placed if v.size), key=lambda s: s[0])
    for (_, end, first), (start, _, second) in itertools.pairwise(spans):
        if start < end:
            raise ProofError(f"shared variables '{first.name}' and '{second.name}' overlap")
    for at, v in placed:
        if at % v.align:
            raise ProofError(f"shared variable '{v.name}' is misaligned")


def _pair(ptx: PtxSide, sass: SassSide, instructions: list[Instruction], witness: Witness | None) -> Pairing:
    headers = loop_headers(ptx, ENTRY)
    cuts: dict[str, str] = {}
    if witness is not None and witness.blocks:
        for label in headers:
            if label not in witness.blocks:
                raise ProofError(f"the witness has no place for the loop header {label}")
            cuts[label] = str(witness.blocks[label])
    else:
        others = loop_headers(sass, "0")
        others = [o for o in others if not _is_trailing_loop(sass, o)]
        if len(headers) != len(others):
            raise ProofError(f"{len(headers)} loops in the PTX against {len(others)} in the SASS: they cannot be paired")
        cuts = dict(zip(headers, others, strict=True))
    ptx_live, sass_live = ptx_liveness(ptx), sass_liveness(sass, instructions)
    return Pairing({**cuts, ENTRY: "0"}, lambda c: ptx_live[c], lambda c: sass_live[c], "0")


def _is_trailing_loop(sass: SassSide, label: str) -> bool:
    """The branch to itself that ends a kernel's code and is never reached."""
    block = sass.blocks[label]
    first = sass.instructions[block[0]]
    return first.opcode == "BRA" and label in set(sass.successors(label)) and not any(isinstance(o, Name) for o in first.operands)


def loop_headers(side: Side, entry: str) -> list[str]:
    """Targets of back edges of a depth-first walk, in the order in which the walk first meets them."""
    found: list[str] = []
    status: dict[str, int] = {entry: 1}
    order: dict[str, int] = {entry: 0}
    stack: list[tuple[str, list[str]]] = [(entry, _following(side, entry))]
    while stack:
        label, rest = stack[-1]
        if not rest:
            status[label] = 2
            stack.pop()
            continue
        following = rest.pop(0)
        if status.get(following) == 1:
            if following not in found:
                found.append(following)
        elif following not in status:
            status[following] = 1
            order[following] = len(order)
            stack.append((following, _following(side, following)))
    return sorted(found, key=lambda label: order[label])


def _following(side: Side, label: str) -> list[str]:
    found: Iterable[str] = side.successors(label)
    return [s for s in dict.fromkeys(found) if s != EXIT]
