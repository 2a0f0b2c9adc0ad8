"""Text of single instructions and control codes, in nvdisasm's spelling, both ways.

`format_instruction(parse_instruction(text)) == text` for every line nvdisasm 13.5 prints (without its ` ;`), blanks included. What
nvdisasm prints for a NaN does not tell its bits; `exact=True` adds them (`+QNAN:0x7fc00001`) where they differ from the plain NaN.
Control codes read and print in brackets, `[B--2---:R0:W1:Y:S04]`, with `:T5` behind for a batch value, or in maxas form `04:1:2:Y:4`.
Barrier 6, which no compiler uses, reads and prints like the rest: some words have it.
"""

from __future__ import annotations

import re
import struct

from sassay.errors import Location, SassError
from sassay.sass.model import ALWAYS, PT, RZ, VIRTUAL, Const, Control, File, Imm, ImmKind, Instruction, Mem, Name, Operand, Reg, Target

_HALF_OPS = frozenset({"HADD2", "HFMA2", "HMUL2", "HSET2", "HSETP2", "HMNMX2", "VHMNMX", "HADD2_32I", "HFMA2_32I", "HMUL2_32I"})
_DOUBLE_OPS = frozenset({"DADD", "DFMA", "DMUL", "DSETP", "DMNMX"})
_CONVERT_OPS = frozenset({"F2F", "F2I", "FRND", "MUFU", "UF2F", "UF2I", "UFRND"})
"""Their immediate has the source's type, the last float type among the modifiers; and they print a half select inside bars."""
_SINGLE_OPS = frozenset({
    "FADD", "FADD2", "FADD32I", "FCHK", "FFMA", "FFMA2", "FFMA32I", "FHADD", "FHFMA", "FMNMX", "FMNMX3", "FMUL", "FMUL2", "FMUL32I", "FSEL",
    "FSET", "FSETP", "FSWZADD", "F2FP", "F2IP", "UFADD", "UFFMA", "UFHADD", "UFHFMA", "UFMNMX", "UFMUL", "UFSEL", "UFSET", "UFSETP", "UF2FP",
    "UF2IP",
})  # fmt: skip
_FLOAT_TYPES = {"F16": ImmKind.F16, "BF16": ImmKind.BF16, "F32": ImmKind.F32, "F64": ImmKind.F64, "RCP64H": ImmKind.F64, "RSQ64H": ImmKind.F64}

_BRANCH_OPS = frozenset({"BRA", "BRX", "BRXU", "CALL", "JMP", "JMX", "JMXU", "RET", "BSSY", "LEPC", "ULEPC", "WARPSYNC"})
_INDEXED_BRANCHES = frozenset({"BRX", "BRXU", "CALL", "JMX", "JMXU", "RET"})
"""Branches that print a register and the target with a blank between: `BRX R2 -0x670`."""

_PREFIX = {File.R: "R", File.UR: "UR", File.P: "P", File.UP: "UP", File.B: "B", File.SB: "SB"}
_FILES = {name: file for file, name in _PREFIX.items()}

_REG = re.compile(r"(?:(UR|R)(Z|v?\d+)|(UP|P)(T|v?\d+)|(SB|B)(\d+))$")
_SIGNS = re.compile(r"([-!~]?)(\|?)")
_HEX = re.compile(r"(-?)0x([0-9a-f]+)((?:\.[A-Z?][\w?]*)*)$")
_DECIMAL = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)((?:\.[A-Z?][\w?]*)*)$")
_SPECIAL = re.compile(r"([+-])(INF|QNAN|SNAN|0\.0)(?::0x([0-9a-f]+))? ?((?:\.[A-Z?][\w?]*)*)$")
_CONST = re.compile(r"(c|cx)\[([^\]\[]+)\]( ?)\[([^\]\[]+)\]((?:\.[\w?]+)*)$")
_MEM = re.compile(r"([a-z]*)\[([^\]\[]*)\](?:\[([^\]\[]*)\])?((?:\.[\w?]+)*)$")
_LABEL = re.compile(r"`\(([^()]+)\)$|([.A-Za-z_$][\w.$]*)$")
_NAME = re.compile(r"(?!(?:U?[RP]|S?B)v?\d+(?:\.|$))[\w.?$]+$|\{[0-9,]*\}$")
_INDEXED = re.compile(r"(\S+) (\S+)$")
_LINE = re.compile(r"\s*(?:/\*[0-9a-f]+\*/\s*)?(?:@(!?)(UP|P)(T|v?\d+)\s+)?([A-Z][\w.?]*)(?:\s+(.*?))?\s*;?\s*$")
_LEADING_CONTROL = re.compile(r"\s*(\[B[^\]]*\]|[-0-9a-fA-F]{2}:[-1-7]:[-1-7]:[-yY]:[-0-9a-fA-F]+(?::T\d)?(?=\s))\s*")


# ---- numbers -------------------------------------------------------------------------------------------------------------------------


def float_kind(opcode: str, modifiers: tuple[str, ...]) -> ImmKind | None:
    """The kind a decimal immediate has in such an instruction, or None where the operation takes no floats."""
    if opcode in _SINGLE_OPS:
        return ImmKind.F32
    if opcode in _DOUBLE_OPS:
        return ImmKind.F64
    if opcode in _HALF_OPS:
        return ImmKind.BF16 if "BF16_V2" in modifiers else ImmKind.F16
    if opcode in _CONVERT_OPS:
        for modifier in reversed(modifiers):
            if modifier in _FLOAT_TYPES:
                return _FLOAT_TYPES[modifier]
        return ImmKind.F32
    return None


_EXPONENT = {ImmKind.F32: 0x7F800000, ImmKind.F64: 0x7FF00000, ImmKind.F16: 0x7C00, ImmKind.BF16: 0x7F80}
_QUIET = {ImmKind.F32: 0x400000, ImmKind.F64: 0x80000, ImmKind.F16: 0x200, ImmKind.BF16: 0x40}
_SIGN = {ImmKind.F32: 1 << 31, ImmKind.F64: 1 << 31, ImmKind.F16: 1 << 15, ImmKind.BF16: 1 << 15}


def float_bits(value: float, kind: ImmKind) -> int:
    """The bits of the number of that kind nearest to `value`, ties to even. F64 gives the high word. OverflowError if out of range."""
    if kind == ImmKind.F16:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    if kind == ImmKind.F32:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    drop = 16 if kind == ImmKind.BF16 else 32
    wide = struct.unpack("<I", struct.pack("<f", value))[0] if drop == 16 else struct.unpack("<Q", struct.pack("<d", value))[0]
    bits = (wide + (1 << (drop - 1)) - 1 + (wide >> drop & 1)) >> drop
    if bits & _EXPONENT[kind] == _EXPONENT[kind]:
        raise OverflowError
    return int(bits)


def float_value(bits: int, kind: ImmKind) -> float:
    """The number that an immediate of that kind stands for."""
    if kind == ImmKind.F16:
        return float(struct.unpack("<e", struct.pack("<H", bits))[0])
    if kind == ImmKind.F64:
        return float(struct.unpack("<d", struct.pack("<Q", bits << 32))[0])
    return float(struct.unpack("<f", struct.pack("<I", bits << 16 if kind == ImmKind.BF16 else bits))[0])


def format_float(bits: int, kind: ImmKind, exact: bool = False) -> str:
    """A float as nvdisasm prints it: %.20g, %.20e from 1e9 up (probed), a blank after the spellings that begin with a sign."""
    magnitude = bits & (_SIGN[kind] - 1)
    sign = "-" if bits & _SIGN[kind] else "+"
    exponent = _EXPONENT[kind]
    if magnitude > exponent:
        quiet = magnitude & _QUIET[kind]
        plain = exponent | _QUIET[kind] if quiet else exponent | 1
        payload = f":{bits:#x}" if exact and magnitude != plain else ""
        return f"{sign}{'QNAN' if quiet else 'SNAN'}{payload} "
    if magnitude == exponent:
        return f"{sign}INF "
    if bits == _SIGN[kind]:
        return "-0.0 "
    value = float_value(bits, kind)
    return f"{value:.20e}" if abs(value) >= 1e9 else f"{value:.20g}"


def _special_bits(sign: str, word: str, payload: str | None, kind: ImmKind) -> int:
    if payload is not None:
        bits = int(payload, 16)
        told = (bool(bits & _QUIET[kind]), bool(bits & _SIGN[kind]))
        if bits >> 1 >= _SIGN[kind] or bits & (_SIGN[kind] - 1) <= _EXPONENT[kind] or told != (word == "QNAN", sign == "-"):
            raise SassError(f"{payload} are not the bits of a {sign}{word} of kind {kind.name}")
        return bits
    magnitude = {"INF": _EXPONENT[kind], "QNAN": _EXPONENT[kind] | _QUIET[kind], "SNAN": _EXPONENT[kind] | 1, "0.0": 0}[word]
    return magnitude | (_SIGN[kind] if sign == "-" else 0)


# ---- operands ------------------------------------------------------------------------------------------------------------------------


def _suffixes(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")[1:]) if text else ()


def _register(text: str) -> Reg | None:
    """A register with its suffixes but no signs, or None if the text names none."""
    head, _, rest = text.partition(".")
    match = _REG.match(head)
    if match is None:
        return None
    if match[1]:
        index = RZ if match[2] == "Z" else _index(match[2])
        file = File.UR if match[1] == "UR" else File.R
    elif match[3]:
        index = PT if match[4] == "T" else _index(match[4])
        file = File.UP if match[3] == "UP" else File.P
    else:
        index, file = int(match[6]), _FILES[match[5]]
    if index < VIRTUAL and index > (PT if file in (File.P, File.UP) else 15 if file == File.B else 255):
        return None
    if not rest:
        return Reg(file, index)
    suffix = rest.split(".")
    reuse = suffix[0] == "reuse"
    return Reg(file, index, tuple(suffix[1:] if reuse else suffix), reuse=reuse)


def _index(text: str) -> int:
    return VIRTUAL + int(text[1:]) if text[0] == "v" else int(text)


def _number(text: str) -> int | None:
    match = _HEX.match(text)
    if match is None or match[3]:
        return None
    value = int(match[2], 16)
    return -value if match[1] else value


def _sum(text: str) -> tuple[tuple[Reg, ...], int]:
    """The registers and the offset in brackets: `R2.64+UR4+-0x10`."""
    registers: list[Reg] = []
    offset = 0
    seen = False
    for term in text.split("+"):
        register = _register(term)
        if register is not None and not seen:
            registers.append(register)
            continue
        number = _number(term)
        if number is None or seen:
            raise SassError(f"'{term}' cannot stand in an address")
        offset, seen = number, True
    return tuple(registers), offset


def _const(match: re.Match[str], neg: bool, absolute: bool, invert: bool) -> Const:
    bank: int | Reg | None = _register(match[2]) if match[1] == "cx" else _number(match[2])
    if bank is None:
        raise SassError(f"'{match[2]}' names no constant bank")
    registers, offset = _sum(match[4])
    if len(registers) > 1:
        raise SassError(f"more than one index register in '{match[0]}'")
    return Const(bank, offset, registers[0] if registers else None, _suffixes(match[5]), neg, absolute, invert, bool(match[3]))


def _mem(match: re.Match[str]) -> Mem:
    descriptor = None
    inner = match[2]
    if match[3] is not None:
        descriptor = _register(match[2])
        if descriptor is None:
            raise SassError(f"'{match[2]}' is no descriptor register")
        inner = match[3]
    registers, offset = _sum(inner)
    return Mem(registers, offset, match[1], descriptor, _suffixes(match[4]))


def _plain(text: str, kind: ImmKind | None) -> Operand | None:
    """A literal without signs of its own in front, or None."""
    match = _HEX.match(text)
    if match is not None:
        value = int(match[2], 16)
        return Imm(-value if match[1] else value, ImmKind.INT, suffix=_suffixes(match[3]))
    match = _DECIMAL.match(text)
    if match is not None:
        if kind is None:
            if not match[1].lstrip("-").isdigit():
                raise SassError(f"a float immediate '{text}' where the instruction takes none")
            return Imm(int(match[1]), ImmKind.DEC, suffix=_suffixes(match[2]))
        try:
            return Imm(float_bits(float(match[1]), kind), kind, suffix=_suffixes(match[2]))
        except OverflowError:
            raise SassError(f"'{text}' is out of range for {kind.name}") from None
    match = _SPECIAL.match(text)
    if match is not None:
        if kind is None:
            raise SassError(f"a float immediate '{text}' where the instruction takes none")
        return Imm(_special_bits(match[1], match[2], match[3], kind), kind, suffix=_suffixes(match[4]))
    return None


def _signed(text: str) -> tuple[bool, bool, bool, str]:
    """Leading sign and bars: (neg, absolute, invert, the rest with a suffix behind the bars moved inside)."""
    match = _SIGNS.match(text)
    assert match is not None
    rest = text[match.end() :]
    if match[2]:
        inside, bar, outside = rest.rpartition("|")
        if not bar or "|" in inside:
            raise SassError(f"unbalanced bars in '{text}'")
        rest = inside + outside
    return match[1] == "-", bool(match[2]), match[1] in ("!", "~"), rest


def _parse_operand(text: str, kind: ImmKind | None, branch: bool) -> Operand:
    register = _register(text)
    if register is not None:
        return register
    if branch:
        number = _number(text)
        if number is not None:
            return Target(number)
        label = _LABEL.match(text)
        if label is not None:
            return Target(label[1] or label[2])
    literal = _plain(text, kind)
    if literal is not None:
        return literal
    neg, absolute, invert, rest = _signed(text)
    register = _register(rest)
    if register is not None:
        return Reg(register.file, register.index, register.suffix, neg, absolute, invert, register.reuse)
    match = _CONST.match(rest)
    if match is not None:
        return _const(match, neg, absolute, invert)
    match = _MEM.match(rest)
    if match is not None and rest == text:
        return _mem(match)
    if rest == text and _NAME.match(text):
        return Name(text)
    raise SassError(f"cannot read the operand '{text}'")


_cache: dict[tuple[str, ImmKind | None, bool], Operand] = {}
_CACHE_LIMIT = 1 << 17


def parse_operand(text: str, kind: ImmKind | None = None, branch: bool = False) -> Operand:
    """One operand. `kind` is the kind of a decimal literal (`float_kind`); in a branch a number or bare word is a target."""
    key = (text, kind, branch)
    operand = _cache.get(key)
    if operand is None:
        operand = _parse_operand(text, kind, branch)
        if len(_cache) >= _CACHE_LIMIT:
            _cache.clear()
        _cache[key] = operand
    return operand


def _sign(operand: Reg | Const | Imm) -> str:
    if operand.neg:
        return "-"
    if operand.invert:
        return "!" if isinstance(operand, Reg) and operand.file in (File.P, File.UP) else "~"
    return ""


def register_name(file: File, index: int) -> str:
    """`R5`, `URZ`, `PT`, or `Rv12` for the virtual register 12."""
    if index >= VIRTUAL:
        return f"{_PREFIX[file]}v{index - VIRTUAL}"
    if file in (File.P, File.UP) and index == PT:
        return _PREFIX[file] + "T"
    if file in (File.R, File.UR) and index == RZ:
        return _PREFIX[file] + "Z"
    return f"{_PREFIX[file]}{index}"


def _format_register(reg: Reg, bars_inside: bool) -> str:
    name = register_name(reg.file, reg.index)
    suffix = "".join("." + part for part in reg.suffix)
    reuse = ".reuse" if reg.reuse else ""
    if not reg.absolute:
        return f"{_sign(reg)}{name}{reuse}{suffix}"
    if bars_inside or reg.file == File.UR:
        return f"{_sign(reg)}|{name}{reuse}{suffix}|"
    return f"{_sign(reg)}|{name}|{reuse}{suffix}"


def _format_sum(registers: tuple[Reg, ...], offset: int) -> str:
    terms = [_format_register(reg, False) for reg in registers]
    if offset or not terms:
        terms.append(hex(offset))
    return "+".join(terms)


def format_operand(operand: Operand, *, bars_inside: bool = False, exact: bool = False) -> str:
    """One operand; `bars_inside` puts a register's suffix before the closing bar, as conversions print it."""
    match operand:
        case Reg():
            return _format_register(operand, bars_inside)
        case Imm():
            text = _format_immediate(operand, exact)
            return f"{_sign(operand)}|{text}|" if operand.absolute else _sign(operand) + text
        case Const():
            bank = f"c[{operand.bank:#x}]" if isinstance(operand.bank, int) else f"cx[{_format_register(operand.bank, False)}]"
            inner = _format_sum((operand.base,) if operand.base is not None else (), operand.offset)
            text = f"{bank}{' ' if operand.spaced else ''}[{inner}]" + "".join("." + part for part in operand.suffix)
            return f"{_sign(operand)}|{text}|" if operand.absolute else _sign(operand) + text
        case Mem():
            descriptor = f"[{_format_register(operand.descriptor, False)}]" if operand.descriptor is not None else ""
            suffix = "".join("." + part for part in operand.suffix)
            return f"{operand.prefix}{descriptor}[{_format_sum(operand.parts, operand.offset)}]{suffix}"
        case Target():
            suffix = "".join("." + part for part in operand.suffix)
            return (hex(operand.to) if isinstance(operand.to, int) else f"`({operand.to})") + suffix
        case Name():
            return operand.text


def _format_immediate(imm: Imm, exact: bool) -> str:
    if imm.kind == ImmKind.INT:
        text = hex(imm.value)
    elif imm.kind == ImmKind.DEC:
        text = str(imm.value)
    else:
        text = format_float(imm.value, imm.kind, exact)
    return text + "".join("." + part for part in imm.suffix)


# ---- instructions --------------------------------------------------------------------------------------------------------------------

_mnemonics: dict[str, tuple[str, tuple[str, ...], ImmKind | None, bool]] = {}


def _mnemonic(text: str) -> tuple[str, tuple[str, ...], ImmKind | None, bool]:
    known = _mnemonics.get(text)
    if known is None:
        opcode, *rest = text.split(".")
        modifiers = tuple(rest)
        branch = opcode in _BRANCH_OPS and (opcode != "WARPSYNC" or "COLLECTIVE" in modifiers)
        known = _mnemonics[text] = (opcode, modifiers, float_kind(opcode, modifiers), branch)
    return known


def split_operands(text: str) -> list[str]:
    """Operand texts, split at commas outside braces."""
    parts = text.split(", ")
    if "," not in "".join(parts):
        return [part.strip() for part in parts]
    out: list[str] = []
    depth = 0
    start = 0
    for at, char in enumerate(text):
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
        elif char == "," and depth == 0:
            out.append(text[start:at].strip())
            start = at + 1
    out.append(text[start:].strip())
    return out


def parse_instruction(text: str) -> Instruction:
    """One instruction in nvdisasm's spelling. A leading control code, an address comment and a final `;` may stand or not.

    Raises SassError whose location has the column (line 1).
    """
    control = Control()
    start = 0
    leading = _LEADING_CONTROL.match(text)
    if leading is not None:
        control = parse_control(leading[1])
        start = leading.end()
    match = _LINE.match(text, start)
    if match is None:
        raise _at(f"cannot read the instruction '{text[start:].strip()}'", start + 1)
    guard = ALWAYS
    if match[2]:
        index = PT if match[3] == "T" else _index(match[3])
        if PT < index < VIRTUAL:
            raise _at(f"'{match[2]}{match[3]}' is no predicate register", match.start(2) + 1)
        guard = Reg(_FILES[match[2]], index, invert=bool(match[1]))
    opcode, modifiers, kind, branch = _mnemonic(match[4])
    operands: list[Operand] = []
    if match[5]:
        for part in split_operands(match[5]):
            try:
                operands.append(parse_operand(part, kind, branch))
            except SassError as error:
                pair = _INDEXED.match(part) if opcode in _INDEXED_BRANCHES else None
                if pair is None:
                    raise _at(error.message, max(text.find(part, match.start(5)), 0) + 1) from None
                operands += (parse_operand(pair[1]), parse_operand(pair[2], None, True))
    return Instruction(opcode, modifiers, tuple(operands), guard, control)


def _at(message: str, column: int) -> SassError:
    return SassError(message, Location("<sass>", 1, column))


def format_instruction(instr: Instruction, *, exact: bool = False) -> str:
    """The instruction in nvdisasm's spelling, without control code and without ` ;`. `exact` spells out the bits of NaNs."""
    guard = ""
    if instr.guard.index != PT or instr.guard.invert:
        guard = f"@{'!' if instr.guard.invert else ''}{register_name(instr.guard.file, instr.guard.index)} "
    head = guard + instr.mnemonic
    if not instr.operands:
        return head
    inside = instr.opcode in _CONVERT_OPS
    texts = [format_operand(operand, bars_inside=inside, exact=exact) for operand in instr.operands]
    if instr.opcode in _INDEXED_BRANCHES and len(texts) > 1 and isinstance(instr.operands[-1], Target):
        before = instr.operands[-2]
        if isinstance(before, Reg) and before.file in (File.R, File.UR):
            texts[-2:] = [f"{texts[-2]} {texts[-1]}"]
    return f"{head} {', '.join(texts)}"


# ---- control codes -------------------------------------------------------------------------------------------------------------------

_BRACKET = re.compile(r"\[B([-0-5]{6}):R([-0-6]):W([-0-6]):([-Y]):S(\d\d?)(?::T([0-7]))?\]$")
_COLON = re.compile(r"(--|[0-3][0-9a-fA-F]):([-1-7]):([-1-7]):([-yY]):([0-9a-fA-F])(?::T([0-7]))?$")


def format_control(control: Control, style: str = "bracket") -> str:
    """A control code as `[B--2---:R0:W1:Y:S04]` (barriers from 0; `:T5` for a batch value) or, with "colon", `04:1:2:Y:4` (from 1)."""
    batch = f":T{control.batch}" if control.batch else ""
    if style == "colon":
        wait = f"{control.wait:02x}" if control.wait else "--"
        read = "-" if control.read is None else str(control.read + 1)
        write = "-" if control.write is None else str(control.write + 1)
        return f"{wait}:{read}:{write}:{'Y' if control.yield_ else '-'}:{control.stall:x}{batch}"
    wait = "".join(str(i) if control.wait >> i & 1 else "-" for i in range(6))
    read = "-" if control.read is None else str(control.read)
    write = "-" if control.write is None else str(control.write)
    return f"[B{wait}:R{read}:W{write}:{'Y' if control.yield_ else '-'}:S{control.stall:02d}{batch}]"


_controls: dict[str, Control] = {}


def parse_control(text: str) -> Control:
    """A control code in either form; SassError if malformed."""
    known = _controls.get(text)
    if known is None:
        known = _controls[text] = _parse_control(text)
    return known


def _parse_control(text: str) -> Control:
    match = _BRACKET.match(text)
    if match is not None:
        wait = 0
        for place, char in enumerate(match[1]):
            if char != "-":
                if int(char) != place:
                    raise SassError(f"barrier {char} stands in the place of barrier {place} in '{text}'")
                wait |= 1 << place
        read, write, stall, first = match[2], match[3], int(match[5]), 0
    else:
        match = _COLON.match(text)
        if match is None:
            raise SassError(f"malformed control code '{text}'; it looks like [B------:R-:W2:-:S01] or --:-:3:-:1")
        wait = 0 if match[1] == "--" else int(match[1], 16)
        read, write, stall, first = match[2], match[3], int(match[5], 16), 1
    if stall > 15:
        raise SassError(f"stall count {stall} in '{text}' is above 15")
    return Control(
        stall,
        match[4] in "yY",
        None if write == "-" else int(write) - first,
        None if read == "-" else int(read) - first,
        wait,
        int(match[6]) if match[6] else 0,
    )
