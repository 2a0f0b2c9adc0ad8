"""Words to instructions and back, exactly.

`decode` gives what nvdisasm prints, parsed; `encode` the one word that prints so. Bits that nothing in the text shows are set as compilers set
them; a word where they differ keeps them in `Instruction.form`, as `name+0x...`, so that `encode(decode(w)) == w` for every legal word.
Anything else is a SassError: a word of no known form, undefined control bits, an instruction that no form prints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sassay.errors import Location, SassError
from sassay.isa.tables import Table, table
from sassay.isa.tables.forms import PAYLOAD, Form
from sassay.isa.tables.lexer import MARK, lex
from sassay.isa.target import Target as Chip
from sassay.sass.matching import Matcher, settle
from sassay.sass.model import PT, RZ, Const, Control, Imm, ImmKind, Instruction, Mem, Name, Operand, Reg, Target
from sassay.sass.paused import collector_paused
from sassay.sass.shapes import CODED_LIMIT, FILES, Opcode, Shape, make_shape, to_field, to_model
from sassay.sass.text import format_instruction, parse_instruction

if TYPE_CHECKING:
    import numpy.typing as npt

    from sassay.sass.bulk import U64, Batch

REUSE = (122, 123, 124)
TOP_BITS = 7 << 125
"""Bits that nvdisasm ignores and compilers leave zero."""


@collector_paused()
def decode(words: bytes | npt.NDArray[Any], target: Chip) -> list[Instruction]:
    """The instructions of a section: bytes, or an array of shape (n, 2) of little-endian 64-bit halves, low first. Instruction i stands at
    byte 16*i; branch targets are byte offsets from the section's start. SassError at the first word that is not legal."""
    batch = grouped(words, target)
    if batch.errors:
        raise batch.errors[min(batch.errors)]
    return batch.instructions()


@collector_paused()
def try_decode(words: bytes | npt.NDArray[Any], target: Chip) -> list[Instruction | SassError]:
    """As `decode`, with the error in place of each word that is not legal."""
    batch = grouped(words, target)
    out: list[Instruction | SassError] = list(batch.instructions())
    for i, error in batch.errors.items():
        out[i] = error
    return out


@collector_paused()
def disassemble(words: bytes | npt.NDArray[Any], target: Chip) -> list[str | SassError]:
    """The text of each word (no control code, no semicolon), or the error; faster than formatting what `decode` gives."""
    batch = grouped(words, target)
    out: list[str | SassError] = list(batch.texts())
    for i, error in batch.errors.items():
        out[i] = error
    return out


def decode_one(word: int, target: Chip, offset: int = 0) -> Instruction:
    return codec(target.chip).decode_one(word, offset)


def encode(instructions: Sequence[Instruction], target: Chip) -> bytes:
    """The words of a section: instruction i at byte 16*i. Branch targets must be byte offsets."""
    c = codec(target.chip)
    return b"".join(c.encode_one(instr, 16 * i).to_bytes(16, "little") for i, instr in enumerate(instructions))


def encode_one(instr: Instruction, target: Chip, offset: int = 0) -> int:
    return codec(target.chip).encode_one(instr, offset)


def grouped(words: bytes | npt.NDArray[Any], target: Chip) -> Batch:
    """The words by shape, with the fields of each shape's words as arrays: what the other bulk functions build on."""
    from sassay.sass.bulk import group  # numpy loads only where there is bulk

    return group(codec(target.chip), halves(words))


def halves(words: bytes | npt.NDArray[Any]) -> U64:
    import numpy as np

    if isinstance(words, (bytes, bytearray, memoryview)):
        if len(words) % 16:
            raise SassError(f"a section of {len(words)} bytes is no whole number of 16-byte instructions")
        return np.frombuffer(words, dtype="<u8").reshape(-1, 2)
    return np.ascontiguousarray(words, dtype=np.uint64).reshape(-1, 2)


@cache
def codec(chip: str) -> Codec:
    return Codec(chip)


class Codec:
    """Both directions for one chip, with the shapes met so far."""

    def __init__(self, chip: str) -> None:
        self.chip = chip
        self.table: Table = table(chip)
        self._opcodes: dict[int, Opcode] = {}
        self._encoded: dict[Any, list[Shape]] = defaultdict(list)
        self._control_words: dict[tuple[int, int, int], tuple[Control, int]] = {}
        self._controls: dict[tuple[int, int, tuple[int, int], bool], Control | None] = {}

    # -- decoding --------------------------------------------------------------------------------------------------------------------------

    def opcode(self, number: int) -> Opcode:
        found = self._opcodes.get(number)
        if found is None:
            found = self._opcodes[number] = Opcode([self.table.form(i) for i in self.table.by_opcode.get(number, ())])
        return found

    def decode_one(self, word: int, offset: int = 0) -> Instruction:
        try:
            shape = self.shape_of(word)
            control = self.control(word, shape, offset)
        except SassError as error:
            error.location = Location(offset=offset)
            raise
        fields = shape.form.fields
        values: list[int] = [0] * len(fields)
        for i in shape.shown_fields:
            f = fields[i]
            values[i] = to_model(f, f.value(f.raw(word)), offset)
        guard, operands = shape.build(values)
        instr = Instruction(shape.opcode, shape.modifiers, operands, guard, control, shape.form.name)
        residue = self.residue(instr, word, shape, offset)
        return replace(instr, form=f"{instr.form}+{residue:#x}") if residue else instr

    def residue(self, instr: Instruction, word: int, shape: Shape, offset: int) -> int:
        """The bits by which `word` differs from what `instr`, decoded from it, is encoded to."""
        usual = shape.base & ~shape.shown | word & shape.shown
        if shape.twin:
            try:
                usual = self.payload(instr, shape.form.name, offset)[0]
            except SassError:
                pass  # text with undefined values, which decodes but is no one's to write
        return ((word ^ usual) & PAYLOAD) | (word & TOP_BITS)

    def shape_of(self, word: int) -> Shape:
        """The shape of a legal word, control legality left aside."""
        number = (word & 0xFFF) | ((word >> 91) & 1) << 12
        opcode = self.opcode(number)
        key = opcode.key(word)
        shape = opcode.shapes.get(key)
        if shape is None:
            shape = opcode.shapes[key] = self.new_shape(opcode, word)
        return shape

    def new_shape(self, opcode: Opcode, word: int) -> Shape:
        found = [(form, outcomes) for form in opcode.forms if (outcomes := form.outcomes(word)) is not None]
        if not found:
            raise SassError(f"{self.chip}: {word:#034x} is no legal instruction")
        if len(found) > 1:
            raise SassError(f"{self.chip}: {word:#034x} fits several forms: {', '.join(form.name for form, _ in found)}")
        form, outcomes = found[0]
        tokens = form.assemble(outcomes)
        shown = {int(t[1:]): 0 for t in tokens if t.startswith("$")}
        raws = {i: form.fields[i].raw(word) for i in shown}
        settled = settle(form, [{o} for o in outcomes], raws)
        assert settled is not None
        reuse = word & sum(1 << b for b in form.reuse) if (word >> 109) & 1 else 0
        return make_shape(form, outcomes, word, settled[0], reuse)

    def control(self, word: int, shape: Shape, offset: int) -> Control:
        found = self.control_of(word >> 105, shape)
        if found is None:
            raise self.bad_control(word, shape, offset)
        return found

    def control_of(self, bits: int, shape: Shape) -> Control | None:
        """The control field from the bits of the word from 105 up, None if the form does not allow it."""
        reusing = bool(shape.form.reuse) and bool((bits >> 4) & 1)
        key = (bits, shape.form.legal, shape.form.barriers, reusing)
        try:
            return self._controls[key]
        except KeyError:
            found = self._controls[key] = read_control(bits, shape.form, reusing)
            return found

    def bad_control(self, word: int, shape: Shape, offset: int) -> SassError:
        return SassError(f"{self.chip}: {word:#034x} has control bits that {shape.form.name} does not allow", Location(offset=offset))

    # -- encoding --------------------------------------------------------------------------------------------------------------------------

    def encode_one(self, instr: Instruction, offset: int = 0) -> int:
        name, _, residue = instr.form.partition("+")
        payload, shape = self.payload(instr, name, offset)
        if residue:
            payload ^= int(residue, 16)
        return payload | self.control_bits(instr, shape)

    def payload(self, instr: Instruction, name: str, offset: int) -> tuple[int, Shape]:
        """The word's payload, and its shape. `name`: the form to use, "" for whichever prints the instruction."""
        key = (shape_key(instr), name)
        for shape in self._encoded[key]:
            payload = shape.word(instr, offset)
            if payload is not None:
                return payload, shape
        payload, shape = self.find(instr, name, offset)
        if shape.word(instr, offset) == payload:
            self._encoded[key].append(shape)
        return payload, shape

    def find(self, instr: Instruction, name: str, offset: int, explain: bool = True) -> tuple[int, Shape]:
        """The payload of an instruction of no shape met before, by its text. `explain`: whether the error names the nearest spellings."""
        text = format_instruction(instr)
        tokens, values = lex(text)
        head = next(t for t in tokens if t[0].isupper())
        numbers = self.table.by_stem.get(head, [])
        if not numbers:
            from sassay.sass.nearest import stems

            near = stems(self.table, head)
            raise SassError(f"{self.chip} has no instruction '{head}'" + (f"; nearest: {', '.join(near)}" if near else ""))
        named = [i for i in numbers if self.table.names[i] == name]
        floats = [o.value for o in instr.operands if isinstance(o, Imm) and o.kind != ImmKind.INT]
        inexact: tuple[int, Shape] | None = None
        for i in named or numbers:
            form = self.table.form(i)
            for possible, binding in Matcher(form, tokens, values).matches():
                raws = self.raws(form, tokens, values, binding, floats, offset)
                settled = settle(form, possible, raws) if raws is not None else None
                if settled is None:
                    continue
                payload, exact = settled
                if not pairs_hold(form, payload, values, binding):
                    continue
                try:
                    shape = self.shape_of(payload | 1 << 105)
                except SassError:
                    continue
                if shape.form is not form or not same_but_numbers(instr, self.decode_payload(payload, shape, offset), exact):
                    continue
                if exact:
                    return payload, shape
                inexact = inexact or (payload, shape)
        if inexact is not None:
            return inexact
        raise SassError(f"{self.chip}: no form of {head} prints '{text}'" + (self.nearest(head, tokens, values, offset) if explain else ""))

    def nearest(self, head: str, tokens: tuple[str, ...], values: Sequence[Any], offset: int) -> str:
        """The end of the message about an instruction that nothing prints: the legal spellings nearest to it."""
        from sassay.sass.nearest import spellings  # needed for messages alone

        def legal(text: str) -> None:
            if text == "".join(tokens):
                raise SassError("the one that was refused")
            self.find(parse_instruction(text), "", offset, explain=False)

        found = spellings(self.table, head, tokens, values, legal)
        return f"; nearest: {', '.join(repr(t) for t in found)}" if found else ""

    def decode_payload(self, payload: int, shape: Shape, offset: int) -> Instruction:
        fields = shape.form.fields
        values = [to_model(f, f.value(f.raw(payload)), offset) for f in fields]
        guard, operands = shape.build(values)
        return Instruction(shape.opcode, shape.modifiers, operands, guard)

    def raws(
        self, form: Form, tokens: tuple[str, ...], values: Sequence[Any], binding: dict[int, int], floats: list[int], offset: int
    ) -> dict[int, int] | None:
        """Raw field values from the numbers of the text; float immediates from the instruction itself, in order."""
        kinds = [t[1:] for t in tokens if t.startswith(MARK)]
        out = {}
        for i, k in binding.items():
            f = form.fields[i]
            value = values[k]
            if f.paired:
                continue
            if kinds[k] == "d":
                value = floats[kinds[:k].count("d")]
            elif value == -1 and f.kind in FILES:
                value = f.top
            elif f.kind == "T":
                value = to_field(f, value, offset)
            raw = f.raw_of(value)
            if raw is None or (f.kind in ("R", "UR", "P", "UP") and (value == f.top) != (values[k] == -1)):
                return None
            out[i] = raw
        return out

    def control_bits(self, instr: Instruction, shape: Shape) -> int:
        reuse = reuse_bits(instr, shape)
        key = (id(instr.control), id(shape.form), reuse)
        hit = self._control_words.get(key)
        if hit is None or hit[0] is not instr.control:
            if len(self._control_words) >= CODED_LIMIT:
                self._control_words.clear()
            hit = self._control_words[key] = (instr.control, self.new_control(instr, shape.form, reuse))
        return hit[1]

    def new_control(self, instr: Instruction, form: Form, reuse: int) -> int:
        c = instr.control
        if reuse and c.yield_:
            raise SassError(f"{instr.mnemonic}: reuse flags need the yield flag off")
        if reuse and c.batch:
            raise SassError(f"{instr.mnemonic}: reuse flags and a batch value stand in the same bits")
        write, read = 7 if c.write is None else c.write, 7 if c.read is None else c.read
        bits = c.stall | (not c.yield_) << 4 | write << 5 | read << 8 | c.wait << 11 | c.batch << 17
        if not (0 <= c.stall <= 15 and 0 <= write <= 7 and 0 <= read <= 7 and 0 <= c.wait <= 63 and 0 <= c.batch <= 7):
            raise SassError(f"{instr.mnemonic}: control values out of range: {c}")
        if not (form.barriers[0] >> write) & 1 or not (form.barriers[1] >> read) & 1:
            raise SassError(f"{instr.mnemonic}: {form.name} does not take that write or read barrier")
        opex = (bits & 0x1F) | ((bits >> 17) & 7) << 5
        word = bits << 105 | reuse
        opex |= sum(((reuse >> b) & 1) << (b - 117) for b in REUSE)
        if not (form.legal >> opex) & 1:
            raise SassError(f"{instr.mnemonic}: stall {c.stall}, yield {c.yield_} and batch {c.batch} are not allowed together for {form.name}")
        return word


def read_control(bits: int, form: Form, reusing: bool) -> Control | None:
    """Control bits (the word from bit 105 up), None if undefined for a form."""
    opex = (bits & 0x1F) | ((bits >> 17) & 7) << 5
    write, read = (bits >> 5) & 7, (bits >> 8) & 7
    if not (form.legal >> opex) & 1 or not (form.barriers[0] >> write) & 1 or not (form.barriers[1] >> read) & 1:
        return None
    return Control(
        stall=bits & 15,
        yield_=not (bits >> 4) & 1,
        write=None if write == 7 else write,
        read=None if read == 7 else read,
        wait=(bits >> 11) & 63,
        batch=0 if reusing else (bits >> 17) & 7,
    )


def pairs_hold(form: Form, payload: int, values: Sequence[Any], binding: dict[int, int]) -> bool:
    """Whether the second registers of pairs, which the first decide, are as the text says (-1: RZ)."""
    for i, k in binding.items():
        f = form.fields[i]
        if f.paired and f.value(f.raw(payload)) != (f.top if values[k] == -1 else values[k]):
            return False
    return True


def operand_key(o: Operand) -> Any:
    if type(o) is Reg:
        return (o.file, o.suffix, o.neg, o.absolute, o.invert)
    if type(o) is Imm:
        return (o.kind + 10, o.suffix, o.neg, o.absolute, o.invert)
    if type(o) is Mem:
        parts = [(r.file, r.suffix, r.neg, r.invert, r.index == RZ) for r in o.parts]
        return (o.prefix, o.suffix, o.descriptor is None, o.offset == 0, *parts)
    if type(o) is Const:
        bank = o.bank.file if isinstance(o.bank, Reg) else -1
        base = None if o.base is None else (o.base.file, o.base.suffix, o.base.index == RZ)
        return (bank, o.suffix, o.neg, o.absolute, o.invert, base)
    if type(o) is Target:
        return ("target", o.suffix)
    assert type(o) is Name
    return "gsb" if o.text.startswith("gsb") else o.text


_operand_keys: dict[int, tuple[Operand, Any]] = {}
"""Keys of operands met, by identity."""


def shape_key(instr: Instruction) -> Any:
    """Everything about an instruction but its numbers, reuse flags and control."""
    guard = instr.guard
    key = [instr.opcode, instr.modifiers, guard.file, guard.invert, guard.index == PT]
    for o in instr.operands:
        hit = _operand_keys.get(id(o))
        if hit is None or hit[0] is not o:
            if len(_operand_keys) >= CODED_LIMIT:
                _operand_keys.clear()
            hit = _operand_keys[id(o)] = (o, operand_key(o))
        key.append(hit[1])
    return tuple(key)


def same_but_numbers(asked: Instruction, got: Instruction, exact: bool) -> bool:
    """Whether two instructions differ in numbers only; without `exact` also in modifiers that only name a special case."""
    if not exact:
        asked = replace(asked, modifiers=())
        got = replace(got, modifiers=())
    return bool(shape_key(asked) == shape_key(got))


def reuse_bits(instr: Instruction, shape: Shape) -> int:
    """Bits 122 to 124 for the operands marked for reuse."""
    marked = 0
    for o in instr.operands:
        if type(o) is Reg:
            marked += o.reuse
        elif type(o) is Mem:
            for r in o.parts:
                marked += r.reuse
    if not marked:
        return 0
    bits = 0
    for position, part, bit in shape.reuse_at:
        o = instr.operands[position]
        if (isinstance(o, Reg) and o.reuse) or (isinstance(o, Mem) and o.parts[part].reuse):
            bits |= 1 << bit
            marked -= 1
    if marked:
        raise SassError(f"{instr.mnemonic}: a reuse flag on an operand that has none")
    return bits
