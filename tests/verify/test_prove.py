"""Proofs of whole kernels: our compiler's output, ptxas's output, and code that was changed on purpose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import specs
from support import oracle

import sassay
from sassay.cubin import read
from sassay.errors import SassayError
from sassay.sass.codec import decode, encode_one
from sassay.sass.model import Imm, Reg
from sassay.verify.prove import Proof
from sassay.verify.term_algebra import TermAlgebra
from sassay.verify.terms import Terms

CHIPS = ("sm_90a", "sm_100a", "sm_120a")
PROVED = (
    "vector_add", "saxpy", "strided_copy", "histogram", "block_reduce", "matmul_tiled", "collatz", "clamp_select", "dot_f64", "conversions",
    "local_array", "scan", "bitonic_sort", "transpose", "constants_globals", "global_atomics", "stencil2d", "spin_lock",
)  # fmt: skip
"""Kernels of tests/kernels whose proofs need nothing but rules and solvers."""
CONDITIONAL = ("int_div", "layer_norm", "nested_branches", "float_div_sqrt", "switch_table")
"""Kernels with expansions of division or roots: proved given sampled lemmas."""
VENDOR = ("vector_add", "saxpy", "strided_copy", "histogram", "block_reduce", "collatz", "clamp_select", "local_array")


def ours(name: str, chip: str) -> tuple[bytes, Proof]:
    text = specs.SPECS[name].ptx
    result = sassay.compile(text, chip)
    return result.cubin, sassay.prove(text, result.cubin, name, blocks=result.kernels[name].witness["blocks"])


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", PROVED)
def test_our_kernels_are_proved(name: str, chip: str) -> None:
    _, proof = ours(name, chip)
    assert (proof.verdict, proof.reason) == ("proved", "")
    assert proof.obligations > 0 and not proof.lemmas


@pytest.mark.parametrize("name", CONDITIONAL)
def test_expansions_are_proved_given_sampled_lemmas(name: str) -> None:
    _, proof = ours(name, "sm_90a")
    assert proof.verdict == "conditional", proof.reason
    assert proof.lemmas and all("not proved" in lemma for lemma in proof.lemmas)


@oracle.needs_ptxas
@pytest.mark.parametrize("name", VENDOR)
def test_vendor_code_is_proved_without_a_witness(name: str) -> None:
    text = specs.SPECS[name].ptx
    proof = sassay.prove(text, oracle.ptxas(text, "sm_90a", "-O1"), name)
    assert (proof.verdict, proof.reason) == ("proved", "")


def mutants(name: str, chip: str, rng: np.random.Generator, count: int) -> list[tuple[str, bytes]]:
    """Cubins with one operand, immediate or modifier changed in an instruction that computes."""
    data = sassay.compile(specs.SPECS[name].ptx, chip).cubin
    cubin = read(data)
    code = cubin.kernel(name).code
    start = data.index(code)
    instructions = decode(code, cubin.target)
    found: list[tuple[str, bytes]] = []
    while len(found) < count:
        index = int(rng.integers(0, len(instructions)))
        instruction = instructions[index]
        positions = [i for i, o in enumerate(instruction.operands) if isinstance(o, Imm) or (isinstance(o, Reg) and not o.is_zero)]
        if instruction.opcode in ("NOP", "BRA", "BSSY", "BSYNC", "EXIT", "BAR") or not positions:
            continue
        at = int(rng.choice(positions))
        operand = instruction.operands[at]
        new = replace(operand, value=operand.value ^ 1) if isinstance(operand, Imm) else replace(operand, index=operand.index ^ 1)
        operands = (*instruction.operands[:at], new, *instruction.operands[at + 1 :])
        try:
            word = encode_one(replace(instruction, operands=operands, form=""), cubin.target, 16 * index)
        except SassayError:
            continue
        place = start + 16 * index
        changed = data[:place] + word.to_bytes(16, "little") + data[place + 16 :]
        if changed != data:
            found.append((f"{index:#x} operand {at}", changed))
    return found


@pytest.mark.parametrize("name", ["saxpy", "clamp_select"])
def test_no_mutant_is_proved_that_the_emulator_can_tell_apart(name: str) -> None:
    """A changed instruction may be harmless (a dead value, a masked bit): a proof then agrees with the emulator."""
    rng = np.random.default_rng(5)
    text = specs.SPECS[name].ptx
    blocks = sassay.compile(text, "sm_90a").kernels[name].witness["blocks"]
    refused = 0
    for what, data in mutants(name, "sm_90a", rng, 8):
        proof = sassay.prove(text, data, name, blocks=blocks, seconds=5)
        if proof.verdict not in ("proved", "conditional"):
            refused += 1
            continue
        launch = specs.SPECS[name].make(np.random.default_rng(1))
        sassay.emulate(data, name, launch.grid, launch.block, launch.args, sanitize=False)
        launch.check(launch.args)
        assert what
    assert refused >= 6


def test_a_wrong_addition_is_refuted_with_a_launch_that_shows_it() -> None:
    text = specs.SPECS["vector_add"].ptx
    wrong = sassay.compile(text.replace("add.f32", "sub.f32"), "sm_90a").cubin
    proof = sassay.prove(text, wrong, "vector_add")
    assert proof.verdict == "refuted"
    assert proof.difference is not None and proof.difference.expected != proof.difference.got
    assert proof.certificate()["verdict"] == "refuted"


def test_a_missing_wait_keeps_a_proof_from_being_given() -> None:
    data = sassay.compile(specs.SPECS["vector_add"].ptx, "sm_90a").cubin
    cubin = read(data)
    code = cubin.kernel("vector_add").code
    start = data.index(code)
    instructions = decode(code, cubin.target)
    index = next(i for i, x in enumerate(instructions) if x.opcode == "FADD")
    bare = replace(instructions[index], control=replace(instructions[index].control, wait=0))
    place = start + 16 * index
    changed = data[:place] + encode_one(bare, cubin.target, 16 * index).to_bytes(16, "little") + data[place + 16 :]
    proof = sassay.prove(specs.SPECS["vector_add"].ptx, changed, "vector_add")
    assert proof.verdict == "unknown" and proof.hazards


FLOAT_RULES = ("f16", "f32")


@pytest.mark.parametrize("format_", FLOAT_RULES)
def test_float_rewrites_hold_on_random_bits(format_: str) -> None:
    """Every rewrite of the term algebra against the concrete interpreter, on patterns that include NaNs, zeros and infinities."""
    from sassay.isa.semantics.algebra import FloatOp
    from sassay.isa.semantics.numpy_algebra import NUMPY
    from sassay.verify.arrays import dtype_of, evaluate_arrays

    width = 32 if format_ == "f32" else 16
    rng = np.random.default_rng(3)
    special = [0, 1 << (width - 1), 0x7F800000 >> (32 - width), 0x7FC00001 >> (32 - width), 0xFFC00000 >> (32 - width), 0x3F800000 >> (32 - width)]
    terms = Terms()
    algebra = TermAlgebra(terms)
    a, b, c = (terms.var(n, width) for n in "abc")
    sign = terms.const(1 << (width - 1), width)

    def sample() -> np.ndarray:
        values = rng.integers(0, 1 << width, 4000, dtype=np.uint64)
        return np.where(rng.integers(0, 3, 4000) == 0, rng.choice(special, 4000), values).astype(dtype_of(width))

    samples = {a: sample(), b: sample(), c: sample()}
    add, sub, mul, fma = (algebra.float_op(FloatOp(n, format_)) for n in ("add", "sub", "mul", "fma"))
    minus_b = terms.xor(b, sign)
    built = {
        "sub": (sub(a, b), NUMPY.float_op(FloatOp("sub", format_))(samples[a], samples[b])),
        "add": (add(b, a), NUMPY.float_op(FloatOp("add", format_))(samples[b], samples[a])),
        "mul": (mul(a, minus_b), NUMPY.float_op(FloatOp("mul", format_))(samples[a], samples[b] ^ dtype_of(width)(1 << (width - 1)))),
        "fma": (fma(minus_b, a, c), NUMPY.float_op(FloatOp("fma", format_))(samples[b] ^ dtype_of(width)(1 << (width - 1)), samples[a], samples[c])),
        "settled": (mul(add(a, sign), b), NUMPY.float_op(FloatOp("mul", format_))(samples[a], samples[b])),
    }
    saturated = algebra.float_op(FloatOp("convert", format_, source=format_, saturate=True))(fma(a, b, c))
    built["saturated"] = (saturated, NUMPY.float_op(FloatOp("fma", format_, saturate=True))(samples[a], samples[b], samples[c]))
    for relation in ("LT", "LE", "GT", "GE", "EQ", "NE", "LTU", "LEU", "GTU", "GEU", "EQU", "NEU", "NUM", "NAN"):
        op = FloatOp("compare", format_, relation=relation)
        built[relation] = (algebra.float_op(op)(b, a), NUMPY.float_op(op)(samples[b], samples[a]))
    for name, (term, want) in built.items():
        got = evaluate_arrays((term,), samples)[term]
        assert np.array_equal(np.broadcast_to(got, want.shape), want), name


@pytest.mark.parametrize(
    ("chip", "old", "new"),
    [("sm_120a", "LEA R0, R4, R0, 0x2", "LEA R0, R4, R0, 0x6"), ("sm_90a", "ISETP.GT.U32.AND P2, PT, R4, 0x1f", "ISETP.GT.U32.AND P2, PT, R4, 0x17")],
    ids=["another lane gives something else", "some lanes take no part"],
)
def test_what_other_lanes_give_to_an_exchange_counts(chip: str, old: str, new: str) -> None:
    """Only thread 0 stores what the shuffles brought: the fault shows in no value of its own."""
    text = specs.SPECS["block_reduce"].ptx
    made = sassay.compile(text, chip)
    listing = sassay.disassemble(made.cubin)
    assert listing.count(old) == 1
    blocks = made.kernels["block_reduce"].witness["blocks"]
    assert sassay.prove(text, made.cubin, "block_reduce", blocks=blocks).verdict == "proved"
    assert sassay.prove(text, sassay.assemble(listing.replace(old, new)), "block_reduce", blocks=blocks).verdict not in ("proved", "conditional")
