"""Loads, stores, atomics, asynchronous copies, and the matrix loads."""

from __future__ import annotations

from sassay.isel.addresses import address, space_of
from sassay.isel.build import Lowering, rule
from sassay.isel.ir import Value
from sassay.isel.lower_int import bits_of, is_signed
from sassay.ptx import ast as ptx
from sassay.sass.function import MemoryFact

SCOPES = {"cta": "SM", "cluster": "GPU", "gpu": "GPU", "sys": "SYS"}


def scope_of(s: ptx.Instruction, default: str = "gpu") -> str:
    return SCOPES[next((m for m in s.modifiers if m in SCOPES), default)]


def vector_count(s: ptx.Instruction) -> int:
    return next((int(m[1:]) for m in s.modifiers if m in ("v2", "v4", "v8")), 1)


def width_modifiers(bits: int, type_: str, vector: int) -> tuple[str, ...]:
    if bits >= 32:
        return () if bits == 32 else (str(bits),)
    return (("S" if is_signed(type_) and vector == 1 else "U") + str(bits),)


EVICTION = (("cs", "EF"), ("lu", "LU"), ("L1::evict_first", "EF"), ("L1::evict_last", "EL"), ("L1::no_allocate", "NA"), ("L1::evict_unchanged", "EU"))
PREFETCH = (("L2::64B", "LTC64B"), ("L2::128B", "LTC128B"), ("L2::256B", "LTC256B"))
"""Cache operators and hints with their spelling in SASS (read from ptxas output)."""


def cache_modifiers(lo: Lowering, s: ptx.Instruction, space: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands before the width (eviction, prefetch size) and after it (strength), for global and generic accesses."""
    before: list[str] = []
    after: list[str] = []
    m = s.modifiers
    if space not in ("global", "generic"):
        return (), ()
    before += [spelling for word, spelling in (*EVICTION, *PREFETCH) if word in m]
    if "volatile" in m or "cv" in m or "wt" in m:
        after += ["STRONG", "SYS"]
    elif "cg" in m:
        after += ["STRONG", "GPU"]
    elif "relaxed" in m or "acquire" in m or "release" in m:
        after += ["STRONG", scope_of(s)]
    elif "nc" in m:
        after.append("CONSTANT")
    return tuple(before), tuple(after)


def fact_of(s: ptx.Instruction, space: str, reads: bool, writes: bool, size: int) -> MemoryFact:
    strong = any(m in ("volatile", "relaxed", "acquire", "release") for m in s.modifiers)
    return MemoryFact(space, reads, writes, size=size, strong=strong, readonly="nc" in s.modifiers or space in ("const", "param"))


@rule("createpolicy")
def lower_createpolicy(lo: Lowering, s: ptx.Instruction) -> None:
    """L2 policies are hints: accesses that carry one are made without, and the policy itself is never looked at."""
    lo.dst(s.operands[0], lo.b.const(0, 2))


@rule("ld", "ldu")
def lower_ld(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    target, where = s.operands[0], s.operands[1]
    space = space_of(lo, s.modifiers, where)
    count = vector_count(s)
    bits = bits_of(type_) * count
    if space == "param" and load_slot(lo, s, type_, count):
        return
    base, offset = address(lo, where, space)
    if space in ("param", "const"):
        loaded = load_constant(lo, base, offset, 0 if space == "param" else 3, type_, count)
        for e, part in loaded_elements(lo, loaded, type_, target):
            lo.dst(e, part)
        return
    if "mmio" in s.modifiers:
        raise lo.unsupported()
    width = (bits + 31) // 32
    before, after = cache_modifiers(lo, s, space)
    extended = ("E",) if space in ("global", "generic") else ()
    size = width_modifiers(bits, type_, count)
    mods = (*extended, *before, *size, *after)
    if bits == 256:
        load_wide(lo, s, target, base, offset, (*extended, *before, "ENL2", "256", *after), type_)
        return
    tied = [lo.old(target, width)] if not isinstance(target, ptx.VectorOperand) else [old_vector(lo, target, bits_of(type_), width)]
    plain = not any(m in ("volatile", "acquire") for m in s.modifiers)
    fact = fact_of(s, space, True, False, bits // 8)
    op = b.effect("load", [base], (width,), "read" if plain else "order", mods=mods, attr=(space, offset), memory=fact, tied=tied)
    v = op.results[0]
    if "acquire" in s.modifiers and space in ("global", "generic"):
        b.effect("CCTL", [], (), "fence", mods=("IVALL",), memory=MemoryFact(space, True, True, fence=True))
    if b.guard is not None and not isinstance(target, ptx.VectorOperand) and isinstance(target, ptx.RegOperand):
        write_tied(lo, target, widen_loaded(lo, v, type_, target))
    elif b.guard is not None and isinstance(target, ptx.VectorOperand):
        for e, part in loaded_elements(lo, v, type_, target):
            write_tied(lo, e, part)
    else:
        for e, part in loaded_elements(lo, v, type_, target):
            lo.dst(e, part)


def load_wide(lo: Lowering, s: ptx.Instruction, target: ptx.PtxOperand, base: Value, offset: int, mods: tuple[str, ...], type_: str) -> None:
    """256 bits come as two quads, the upper one first."""
    if lo.b.guard is not None or not isinstance(target, ptx.VectorOperand):
        raise lo.unsupported("guarded 256-bit load")
    op = lo.b.effect("load", [base], (4, 4), "read", mods=mods, attr=("global", offset), memory=fact_of(s, "global", True, False, 32))
    bits = bits_of(type_)
    half = len(target.elements) // 2
    for i, quad in enumerate((op.results[1], op.results[0])):
        for e, part in zip(target.elements[half * i : half * (i + 1)], lo.split(quad, bits, half), strict=True):
            lo.dst(e, widen_loaded(lo, part, type_, e))


def loaded_elements(
    lo: Lowering, v: Value, type_: str, target: ptx.PtxOperand | None
) -> list[tuple[ptx.PtxOperand | None, Value]]:
    """Each destination of a load with its value; elements narrower than their register fill it by their sign."""
    if not isinstance(target, ptx.VectorOperand):
        return [(target, widen_loaded(lo, v, type_, target))]
    bits = bits_of(type_)
    found: list[tuple[ptx.PtxOperand | None, Value]] = []
    for e, part in zip(target.elements, lo.split(v, bits, len(target.elements)), strict=True):
        if isinstance(e, ptx.RegOperand) and bits < min(32, e.register.bits):
            part = lo.b.extend(part, bits, is_signed(type_))
        found.append((e, widen_loaded(lo, part, type_, e)))
    return found


def widen_loaded(lo: Lowering, v: Value, type_: str, target: ptx.PtxOperand | None) -> Value:
    """A narrow integer load fills a wider register by its sign."""
    if isinstance(target, ptx.RegOperand) and target.register.bits == 64 and bits_of(type_) < 64:
        return lo.b.sext(v) if is_signed(type_) else lo.b.zext(v)
    return v


def write_tied(lo: Lowering, target: ptx.PtxOperand | None, v: Value) -> None:
    """Sets a destination whose old value the operation itself keeps under a false guard."""
    guard, lo.b.guard = lo.b.guard, None
    lo.dst(target, v)
    lo.b.guard = guard


def old_vector(lo: Lowering, target: ptx.VectorOperand, bits: int, width: int) -> Value:
    if lo.b.guard is None:
        return lo.graph.leaf("undef", width)
    parts = [lo.old(e, max(1, bits // 32)) for e in target.elements]
    if all(p.op.name == "undef" for p in parts):
        return lo.graph.leaf("undef", width)
    return lo.join(parts, bits)


def load_slot(lo: Lowering, s: ptx.Instruction, type_: str, count: int) -> bool:
    """ld.param of a call's result, or of the parameter of an inlined function: values, not memory."""
    where = s.operands[1]
    if not isinstance(where, ptx.AddressOperand) or not isinstance(where.base, ptx.Variable) or where.base in lo.param_offsets:
        return False
    size = bits_of(type_) // 8
    parts: list[Value] = []
    for i in range(count):
        parts.append(read_slot(lo, where.base, where.offset + i * size, size))
    targets = list(s.operands[0].elements) if isinstance(s.operands[0], ptx.VectorOperand) else [s.operands[0]]
    for t, v in zip(targets, parts, strict=True):
        lo.dst(t, widen_loaded(lo, v, type_, t))
    return True


def read_slot(lo: Lowering, variable: ptx.Variable, offset: int, size: int) -> Value:
    known = lo.slots.get(variable, {})
    if known.get(offset) == size:
        return lo.read_slot(("slot", variable, offset, size), max(1, size // 4))
    if size == 8 and known.get(offset) == 4 and known.get(offset + 4) == 4:
        return lo.b.pack(*(lo.read_slot(("slot", variable, offset + i, 4), 1) for i in (0, 4)))
    if size == 4 and known.get(offset) == 8:
        return lo.b.lo(lo.read_slot(("slot", variable, offset, 8), 2))
    if size == 4 and known.get(offset - 4) == 8:
        return lo.b.hi(lo.read_slot(("slot", variable, offset - 4, 8), 2))
    if size in (1, 2):
        for at, held in known.items():
            if at <= offset and offset + size <= at + held:
                word = lo.b.part(lo.read_slot(("slot", variable, at, held), max(1, held // 4)), (offset - at) // 4)
                return lo.b.extend(lo.b.shr(word, lo.b.const(8 * ((offset - at) % 4)), False), 8 * size, False)
    raise lo.unsupported(f"parameter '{variable.name}' read at {offset} in another shape than written")


def load_constant(lo: Lowering, base: Value, offset: int, bank: int, type_: str, count: int) -> Value:
    """A load from a constant bank: a leaf where the place is known."""
    b = lo.b
    bits = bits_of(type_) * count
    if base.const is not None:
        at = base.const + offset
        if bits >= 32 and at % 4 == 0:
            if bits <= 64:
                return lo.graph.leaf("param", bits // 32, bank, at)
            return b.pack(*(lo.graph.leaf("param", 1, bank, at + 4 * i) for i in range(bits // 32)))
        word = lo.graph.leaf("param", 1, bank, at & ~3)
        return b.extend(b.shr(word, b.const(8 * (at & 3)), False), bits, is_signed(type_))
    mods = width_modifiers(bits, type_, count)
    if bits == 128:
        return b.pack(b.op("LDC", [base], 2, mods=("64",), attr=(bank, offset)), b.op("LDC", [base], 2, mods=("64",), attr=(bank, offset + 8)))
    return b.op("LDC", [base], (bits + 31) // 32, mods=mods, attr=(bank, offset))


@rule("st")
def lower_st(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    where, source = s.operands[0], s.operands[1]
    space = space_of(lo, s.modifiers, where)
    count = vector_count(s)
    bits = bits_of(type_) * count
    elements: list[ptx.PtxOperand | None] = list(source.elements) if isinstance(source, ptx.VectorOperand) else [source]
    if space == "param":
        store_slot(lo, s, type_, elements)
        return
    v = lo.join([lo.src(e, type_) for e in elements], bits_of(type_)) if count > 1 else lo.src(elements[0], type_)
    base, offset = address(lo, where, space)
    before, after = cache_modifiers(lo, s, space)
    if "release" in s.modifiers and space in ("global", "generic"):
        fence(lo, "ALL", scope_of(s))
    extended = ("E",) if space in ("global", "generic") else ()
    size = width_modifiers(bits, "u8", count) if bits >= 32 else (f"U{bits}",)
    if v.op.name == "half":
        v = b.shr(v.op.args[0], b.const(16), False)
    data = [v]
    if bits == 256:
        size = ("ENL2", "256")
        data = [b.part(v, 0, 4), b.part(v, 4, 4)]
    fact = fact_of(s, space, False, True, bits // 8)
    b.effect("store", [base, *data], (), "write", mods=(*extended, *before, *size, *after), attr=(space, offset), memory=fact)


def store_slot(lo: Lowering, s: ptx.Instruction, type_: str, elements: list[ptx.PtxOperand | None]) -> None:
    where = s.operands[0]
    if not isinstance(where, ptx.AddressOperand) or not isinstance(where.base, ptx.Variable):
        raise lo.unsupported("parameter address")
    size = bits_of(type_) // 8
    for i, e in enumerate(elements):
        offset = where.offset + i * size
        lo.slots.setdefault(where.base, {})[offset] = size
        lo.write(("slot", where.base, offset, size), lo.src(e, type_))


def fence(lo: Lowering, kind: str, scope: str) -> None:
    """A memory fence as ptxas builds it."""
    b = lo.b
    fact = MemoryFact("generic", True, True, fence=True)
    b.effect("MEMBAR", [], (), "fence", mods=(kind, "CTA" if scope == "SM" else scope), memory=fact)
    if scope != "SM":
        b.effect("ERRBAR", [], (), "fence", memory=fact)
        b.effect("CGAERRBAR", [], (), "fence", memory=fact)


@rule("membar", "fence")
def lower_fence(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    fact = MemoryFact("generic", True, True, fence=True)
    m = s.modifiers
    if s.opcode == "fence" and m[0] == "proxy":
        if m[1] == "async" or m[1].startswith("async"):
            b.effect("FENCE", [], (), "fence", mods=("VIEW", "ASYNC", "S") if len(m) < 3 or m[2] != "global" else ("VIEW", "ASYNC"), memory=fact)
            return
        raise lo.unsupported()
    if s.opcode == "fence" and m[0] not in ("acq_rel", "sc"):
        raise lo.unsupported()
    scope = {"cta": "SM", "gl": "GPU", "sys": "SYS", "gpu": "GPU", "cluster": "GPU"}[m[-1]]
    kind = "SC" if s.opcode == "membar" or m[0] == "sc" else "ALL"
    if scope == "SM" and kind == "ALL":
        b.effect("MEMBAR", [], (), "fence", mods=("ALL", "CTA"), memory=fact)
        return
    fence(lo, kind, scope)
    if scope != "SM":
        b.effect("CCTL", [], (), "fence", mods=("IVALL",), memory=fact)


ATOMIC_OPS = {op: op.upper() for op in ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas")}


@rule("atom", "red")
def lower_atom(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    type_ = s.modifiers[-1]
    result = s.opcode == "atom"
    operands = list(s.operands[1:] if result else s.operands)
    space = space_of(lo, s.modifiers, operands[0])
    kind = next((m for m in s.modifiers if m in ATOMIC_OPS), None)
    count = vector_count(s)
    if kind is None or (count > 1 and (type_ != "f32" or space == "shared")):
        raise lo.unsupported()
    data = operands[1:3] if kind == "cas" else operands[1:2]
    values = [elements_value(lo, o, type_) for o in data]
    base, offset = address(lo, operands[0], space)
    target = s.operands[0] if result else None
    wanted = result and not isinstance(target, ptx.SinkOperand)
    if any(m in ("release", "acq_rel") for m in s.modifiers) and space != "shared":
        fence(lo, "ALL", scope_of(s))
    if space == "shared":
        v = shared_atomic(lo, s, kind, type_, base, offset, values, target, wanted)
    else:
        v = global_atomic(lo, s, space, kind, type_, base, offset, values, target, wanted)
    if any(m in ("acquire", "acq_rel") for m in s.modifiers) and space != "shared":
        b.effect("CCTL", [], (), "fence", mods=("IVALL",), memory=MemoryFact(space, True, True, fence=True))
    if wanted and v is not None:
        if b.guard is not None and v.op.guard is not None:
            write_tied(lo, target, v)
        else:
            lo.dst(target, v)


def elements_value(lo: Lowering, operand: ptx.PtxOperand, type_: str) -> Value:
    if isinstance(operand, ptx.VectorOperand):
        return lo.join([lo.src(e, type_) for e in operand.elements], bits_of(type_))
    return lo.src(operand, type_)


def atomic_type(kind: str, type_: str) -> tuple[str, ...]:
    """The type as ATOM and RED spell it: .S32/.64/.S64 for integers, .F32.FTZ.RN and the like for floats."""
    floats = {"f32": ("F32", "FTZ", "RN"), "f64": ("F64", "RN"), "f16x2": ("F16x2", "RN"), "bf16x2": ("BF16x2", "RN")}
    if type_ in floats:
        return floats[type_]
    if bits_of(type_) == 64:
        return ("S64",) if is_signed(type_) and kind in ("min", "max") else ("64",)
    return ("S32",) if is_signed(type_) and kind in ("min", "max") else ()


def global_atomic(
    lo: Lowering, s: ptx.Instruction, space: str, kind: str, type_: str, base: Value, offset: int, values: list[Value],
    target: ptx.PtxOperand | None, wanted: bool,
) -> Value | None:  # fmt: skip
    b = lo.b
    if bits_of(type_) == 16 or bits_of(type_) > 64:
        raise lo.unsupported()
    strong = ("STRONG", scope_of(s))
    memory = MemoryFact(space, True, True, size=bits_of(type_) * vector_count(s) // 8, strong=True)
    count = vector_count(s)
    width = bits_of(type_) // 32 * count
    named = (f"F32x{count}", "FTZ", "RN") if count > 1 else atomic_type(kind, type_)
    mods = ("E", ATOMIC_OPS[kind], *named, *strong)
    if kind == "cas":
        data = b.pack(*values)
        op = b.effect("atomic", [base, data], (width,), "order", mods=mods, attr=(space, offset, "cas"), memory=memory, tied=[lo.old(target, width)])
        return op.results[0]
    if not wanted and kind != "exch":
        b.effect("reduce", [base, values[0]], (), "order", mods=mods, attr=(space, offset), memory=memory)
        return None
    op = b.effect("atomic", [base, values[0]], (width,), "order", mods=mods, attr=(space, offset, kind), memory=memory, tied=[lo.old(target, width)])
    return op.results[0]


def shared_atomic(
    lo: Lowering, s: ptx.Instruction, kind: str, type_: str, base: Value, offset: int, values: list[Value],
    target: ptx.PtxOperand | None, wanted: bool,
) -> Value | None:  # fmt: skip
    """ATOMS where the hardware has the operation; a compare-and-swap loop where it has not (floats, most 64-bit ones)."""
    b = lo.b
    bits = bits_of(type_)
    width = max(1, bits // 32)
    memory = MemoryFact("shared", True, True, size=bits // 8, strong=True)
    native = type_[0] in "bus" and bits in (32, 64) and (bits == 32 or kind in ("exch", "cas"))
    if native:
        mods = (ATOMIC_OPS[kind], *atomic_type(kind, type_))
        tied = [lo.old(target, width)]
        op = b.effect("ATOMS", [base, *values], (width,), "order", mods=mods, attr=("shared", offset), memory=memory, tied=tied)
        return op.results[0]
    if bits == 16:
        raise lo.unsupported()
    return shared_loop(lo, kind, type_, base, offset, values, memory)


def shared_loop(lo: Lowering, kind: str, type_: str, base: Value, offset: int, values: list[Value], memory: MemoryFact) -> Value:
    b = lo.b
    guard, b.guard = b.guard, None
    width = max(1, bits_of(type_) // 32)
    size = ("64",) if width == 2 else ()
    before, loop, after = b.block, b.new_block("atomic"), b.new_block("after")
    if guard is not None:
        p, negated = guard
        if negated:
            b.branch(p, after, loop)
        else:
            b.branch(p, loop, after)
    else:
        b.jump(loop)
    lo.start(loop, sealed=False)
    fact = MemoryFact("shared", True, False, size=4 * width, strong=True)
    op = b.effect("load", [base], (width,), "order", mods=size, attr=("shared", offset), memory=fact)
    old = op.results[0]
    new = atomic_value(lo, kind, type_, old, values[0])
    swapped = b.effect("ATOMS", [base, old, new], (width,), "order", mods=("CAS", *size), attr=("shared", offset), memory=memory).results[0]
    # Bits, not numbers, are compared: a NaN in memory must not spin for ever.
    done = b.icmp64("EQ", swapped, old, False) if width == 2 else b.icmp("EQ", swapped, old, False)
    b.branch(done, after, loop)
    lo.seal(loop)
    lo.start(after)
    b.guard = guard
    if guard is None:
        return old
    return b.phi([lo.graph.leaf("undef", width) if p is before else old for p in after.preds])


def atomic_value(lo: Lowering, kind: str, type_: str, old: Value, v: Value) -> Value:
    b = lo.b
    if type_ == "f32" and kind == "add":
        return b.op("FADD", [old, v])
    if type_ == "f64" and kind == "add":
        return b.op("DADD", [old, v], 2)
    if type_ == "f16x2" and kind == "add":
        return b.op("HADD2", [old, v])
    if type_ == "bf16x2" and kind == "add":
        return b.op("HADD2", [old, v], mods=("BF16_V2",))
    if bits_of(type_) == 64 and type_[0] in "bus":
        sign = is_signed(type_)
        if kind == "add":
            return b.add64(old, v)
        if kind in ("min", "max"):
            return b.sel(b.icmp64("GT" if kind == "max" else "LT", v, old, sign), v, old)
        if kind in ("and", "or", "xor"):
            return b.bit64(old, v, {"and": 0xC0, "or": 0xFC, "xor": 0x3C}[kind])
    raise lo.unsupported()


@rule("prefetch", "prefetchu")
def lower_prefetch(lo: Lowering, s: ptx.Instruction) -> None:
    if ("global" not in s.modifiers and "L2" not in s.modifiers and "L1" not in s.modifiers) or "tensormap" in s.modifiers:
        raise lo.unsupported()
    base, offset = address(lo, s.operands[0], "global")
    level = "PF1" if "L1" in s.modifiers else "PF2"
    lo.b.effect("CCTL", [base], (), "order", mods=("E", level), attr=("global", offset), memory=MemoryFact("global", False, False))


@rule("cp")
def lower_cp(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    m = s.modifiers
    if m[0] != "async" or (len(m) > 1 and m[1] in ("bulk", "mbarrier", "reduce")):
        raise lo.unsupported()
    fact = MemoryFact("shared", True, True, strong=True)
    if "commit_group" in m:
        b.effect("LDGDEPBAR", [], (), "order", memory=fact)
        return
    if "wait_group" in m or "wait_all" in m:
        if "wait_all" in m:
            b.effect("LDGDEPBAR", [], (), "order", memory=fact)
        n = lo.src(s.operands[0], "u32").const if s.operands else 0
        if n is None:
            raise lo.unsupported("group number")
        b.effect("DEPBAR", [], (), "fence", mods=("LE",), attr=("SB0", n), memory=MemoryFact("shared", True, True, fence=True))
        return
    copy_async(lo, s, fact)


def copy_async(lo: Lowering, s: ptx.Instruction, fact: MemoryFact) -> None:
    b = lo.b
    m = s.modifiers
    size = lo.src(s.operands[2], "u32").const
    sizes: dict[int | None, tuple[str, ...]] = {4: (), 8: ("64",), 16: ("128",)}
    if size not in sizes:
        raise lo.unsupported("copy size")
    to, to_offset = address(lo, s.operands[0], "shared")
    of, of_offset = address(lo, s.operands[1], "global")
    before: tuple[str, ...] = ("BYPASS",) if "cg" in m else ()
    before += tuple(spelling for word, spelling in PREFETCH if word in m)
    args = [to, of]
    mods = ("E", *before, *sizes[size])
    if len(s.operands) > 3:
        mods += ("ZFILL",)
        p, of = fill_predicate(lo, s.operands[3], size or 0, of)
        args = [to, of, p]
    b.effect("LDGSTS", args, (), "order", mods=mods, attr=(to_offset, of_offset), memory=fact)


def fill_predicate(lo: Lowering, operand: ptx.PtxOperand, size: int, of: Value) -> tuple[Value, Value]:
    """When anything is read, and the source address. For a partial size ptxas moves the address on by what is missing (read from its output)."""
    b = lo.b
    if isinstance(operand, ptx.RegOperand) and operand.register.type == "pred":
        return b.pnot(lo.src(operand, "pred")), of
    n = lo.src(operand, "u32")
    p = b.icmp("NE", n, b.const(0), False)
    whole = n.op.name == "sel" and {n.op.args[1].const, n.op.args[2].const} <= {0, size}
    if not whole and n.const not in (0, size):
        of = b.add64(of, b.zext(b.and_(b.isub(b.const(size), n), b.const(size - 1))))
    return p, of


@rule("ldmatrix", "stmatrix")
def lower_matrix(lo: Lowering, s: ptx.Instruction) -> None:
    b = lo.b
    m = s.modifiers
    if "m8n8" not in m or "b16" not in m:
        raise lo.unsupported()
    count = next(int(x[1:]) for x in m if x in ("x1", "x2", "x4"))
    load = s.opcode == "ldmatrix"
    where, vector = (s.operands[1], s.operands[0]) if load else (s.operands[0], s.operands[1])
    base, offset = address(lo, where, "shared")
    mods = ("16", "MT88" if "trans" in m else "M88", *(() if count == 1 else (str(count),)))
    fact = MemoryFact("shared", load, not load, size=0)
    if load:
        op = b.effect("LDSM", [base], (count,), "read", mods=mods, attr=("shared", offset), memory=fact)
        elements = vector.elements if isinstance(vector, ptx.VectorOperand) else (vector,)
        for e, v in zip(elements, lo.split(op.results[0], 32, count), strict=True):
            write_tied(lo, e, v)
    else:
        elements = vector.elements if isinstance(vector, ptx.VectorOperand) else (vector,)
        v = b.pack(*(lo.src(e, "b32") for e in elements))
        b.effect("STSM", [base, v], (), "write", mods=mods, attr=("shared", offset), memory=fact)
