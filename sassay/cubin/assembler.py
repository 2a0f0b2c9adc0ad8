"""Text back to bytes: whole cubins (as `listing.write` prints them, edited or not) and bare code.

Names: `.reg acc R[64:95]` makes `acc[3]` R67 and `acc` R64; `.const n c[0x0][0x228]` (or a number) makes `n` that operand; both hold to the end
of their section. Labels belong to the whole file. `.kernel "name"` begins another piece of bare code.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass, field, replace

from sassay.cubin import info
from sassay.cubin.elf import SHT_CUDA_COMPAT, SHT_REL, Elf, Layout, Relocation, Section, Segment, Symbol, write_relocations, write_symbols
from sassay.cubin.linetext import Shape, encode_step
from sassay.cubin.model import RELOCATION_NUMBERS
from sassay.errors import CubinError, ErrorList, Location, SassayError, SassError, UnsupportedError
from sassay.isa.target import Target as Chip
from sassay.isa.target import target as find_target
from sassay.sass.codec import encode_one
from sassay.sass.model import Instruction, Target
from sassay.sass.paused import collector_paused
from sassay.sass.text import parse_instruction

_LABEL = re.compile(r"\s*([.A-Za-z_$][\w.$]*):\s*$")
_DIRECTIVE = re.compile(r"\s*(\.[a-z_]+)(?:\s+(.*?))?\s*$")
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_HIDDEN = re.compile(r"\s*<([\w?]+\+0x[0-9a-f]+)>\s*;?\s*$")
_NAMED = re.compile(r"(?<![\w.$`(])([a-z_][a-z0-9_]*)(?:\[(\d+)\])?(?![\w\[])")
_REGISTERS = re.compile(r"(R|UR|P|UP|B)\[(\d+):(\d+)\]$|(R|UR|P|UP|B)(\d+)$")
_RESERVED = frozenset({"a", "c", "cx", "desc", "gdesc", "idesc", "tmem", "reuse", "gsb0"})
_MAX_ERRORS = 50


@dataclass(slots=True)
class _Line:
    """A directive or instruction of a section: where it stands and what it says."""

    number: int
    column: int
    words: list[str]
    instruction: Instruction | None = None
    raw: int | None = None


@dataclass(slots=True)
class _Piece:
    """A section (or a kernel of bare code) in the making."""

    number: int
    head: list[str]
    lines: list[_Line] = field(default_factory=list)
    code: list[_Line] = field(default_factory=list)


class _Assembler:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.text = text.split("\n")
        self.target: Chip | None = None
        self.cubin: dict[str, str] | None = None
        self.layout: list[str] | None = None
        self.gaps: list[tuple[int, bytes]] = []
        self.segments: list[Segment] | None = None
        self.pieces: list[_Piece] = []
        self.labels: dict[str, tuple[int, int]] = {}
        """Label to (piece, offset in its code)."""
        self.names: dict[str, tuple[str, int, int]] = {}
        """Name to (register prefix, first, last), or to (operand text, -1, -1)."""
        self.sections: dict[str, _Piece] = {}
        """Sections by name, once all are read."""
        self.errors: list[SassayError] = []

    # ---- reading ----

    def fail(self, message: str, line: int, column: int = 1) -> SassError:
        return SassError(message, Location(self.file, line, column))

    def read(self) -> None:
        for number, text in enumerate(self.text, 1):
            if not text or text.isspace():
                continue
            try:
                self.line(_uncomment(text), number)
            except SassayError as error:
                self.errors.append(error)
                if len(self.errors) >= _MAX_ERRORS:
                    break
        if self.errors:
            raise self.errors[0] if len(self.errors) == 1 else ErrorList(self.errors)

    def line(self, text: str, number: int) -> None:
        if not text or text.isspace():
            return
        if text.lstrip()[0] in "[@":
            self.piece(number).code.append(self.instruction(text, number))
            return
        label = _LABEL.match(text)
        if label is not None:
            piece = self.piece(number)
            if label[1] in self.labels:
                raise self.fail(f"label '{label[1]}' is defined twice", number, label.start(1) + 1)
            self.labels[label[1]] = (len(self.pieces) - 1, 16 * len(piece.code))
            return
        directive = _DIRECTIVE.match(text)
        if directive is not None:
            self.directive(directive[1], _WORD.findall(directive[2] or ""), number, directive.start(1) + 1)
            return
        self.piece(number).code.append(self.instruction(text, number))

    def piece(self, number: int) -> _Piece:
        if not self.pieces:
            if self.cubin is not None:
                raise self.fail("code before the first .section", number)
            self.pieces.append(_Piece(number, []))
        return self.pieces[-1]

    def instruction(self, text: str, number: int) -> _Line:
        column = len(text) - len(text.lstrip()) + 1
        form = ""
        hidden = _HIDDEN.search(text) if "<" in text else None
        if hidden is not None:
            form, text = hidden[1], text[: hidden.start()]
        if self.names:
            text = _NAMED.sub(lambda match: self.named(match, number), text)
        try:
            instr = parse_instruction(text)
        except SassError as error:
            at = error.location.column if error.location is not None else column
            raise self.fail(error.message, number, at) from None
        return _Line(number, column, [], replace(instr, form=form) if form else instr)

    def named(self, match: re.Match[str], number: int) -> str:
        known = self.names.get(match[1])
        if known is None:
            return match[0]
        text, first, last = known
        index = int(match[2]) if match[2] else 0
        if first < 0:
            if match[2]:
                raise self.fail(f"the constant '{match[1]}' takes no index", number, match.start() + 1)
            return text
        if first + index > last:
            raise self.fail(f"'{match[0]}' is past the end of {text}[{first}:{last}]", number, match.start() + 1)
        return f"{text}{first + index}"

    def directive(self, name: str, words: list[str], number: int, column: int) -> None:
        match name, words:
            case ".target", [chip]:
                try:
                    self.target = find_target(chip)
                except UnsupportedError as error:
                    raise self.fail(error.message, number, column) from None
            case ".cubin", _:
                self.cubin = self.keys(words, number)
            case ".layout", [_, _, _]:
                self.layout = words
            case ".gap", [offset, data]:
                self.gaps.append((self.number(offset, number), self.hexadecimal(data, number)))
            case ".segment", [_, _, _, _, _, _, _, _]:
                self.segments = [*(self.segments or []), Segment(*(self.number(word, number) for word in words))]
            case ".section", [_, _, *_]:
                if self.cubin is None:
                    raise self.fail(".section without .cubin", number, column)
                self.names = {}
                self.pieces.append(_Piece(number, words))
            case ".kernel", [_]:
                if self.cubin is not None:
                    raise self.fail(".kernel belongs to bare code, not to a cubin", number, column)
                self.names = {}
                self.pieces.append(_Piece(number, words))
            case ".reg", [alias, registers]:
                self.alias(alias, number, column)
                found = _REGISTERS.match(registers)
                if found is None:
                    raise self.fail(f"'{registers}' is no register range such as R[64:95]", number, column)
                low, high = int(found[2] or found[5]), int(found[3] or found[5])
                if not low <= high < 255:
                    raise self.fail(f"'{registers}' is an empty range", number, column)
                self.names[alias] = (found[1] or found[4], low, high)
            case ".const", [alias, value]:
                self.alias(alias, number, column)
                self.names[alias] = (value, -1, -1)
            case ".instruction", [word]:
                raw = self.number(word, number)
                if not 0 <= raw < 1 << 128:
                    raise self.fail("an instruction has 128 bits", number, column)
                self.piece(number).code.append(_Line(number, column, [], None, raw))
            case (".layout" | ".gap" | ".segment" | ".target" | ".section" | ".kernel" | ".reg" | ".const" | ".instruction"), _:
                raise self.fail(f"{name} takes other operands", number, column)
            case _:
                self.piece(number).lines.append(_Line(number, column, [name, *words]))

    def alias(self, alias: str, number: int, column: int) -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]*", alias) or alias in _RESERVED:
            raise self.fail(f"'{alias}' cannot be a name: lower-case letters, digits and _, none of {', '.join(sorted(_RESERVED))}", number, column)
        if alias in self.names:
            raise self.fail(f"'{alias}' is named twice", number, column)

    # ---- values ----

    def number(self, word: str, line: int) -> int:
        try:
            return int(word, 0)
        except ValueError:
            raise self.fail(f"'{word}' is no number", line) from None

    def hexadecimal(self, word: str, line: int) -> bytes:
        try:
            return bytes.fromhex(word)
        except ValueError:
            raise self.fail(f"'{word[:40]}' is no string of hexadecimal bytes", line) from None

    def string(self, word: str, line: int) -> str:
        try:
            value = json.loads(word)
        except ValueError:
            value = None
        if not isinstance(value, str):
            raise self.fail(f"{word[:40]} is no quoted string", line)
        return value

    def keys(self, words: list[str], line: int) -> dict[str, str]:
        out = {}
        for word in words:
            key, sign, value = word.partition("=")
            if not sign:
                raise self.fail(f"'{word}' is not of the form key=value", line)
            out[key] = value
        return out

    def key(self, keys: dict[str, str], name: str, line: int) -> int:
        if name not in keys:
            raise self.fail(f"{name}= is missing", line)
        return self.number(keys[name], line)

    def value(self, text: str, line: int) -> int:
        """An expression: numbers and labels with + and - between."""
        total = 0
        for sign, term in re.findall(r"([+-]?)([^+-]+)", text):
            at = self.labels[term][1] if term in self.labels else None
            if at is None and term.startswith("."):
                raise self.fail(f"label '{term}' is not defined", line)
            amount = at if at is not None else self.number(term, line)
            total += -amount if sign == "-" else amount
        return total

    def field(self, text: str, bits: int, line: int) -> bytes:
        value = self.value(text, line)
        if not -(1 << bits - 1) <= value < 1 << bits:
            raise self.fail(f"{text} does not fit {bits} bits", line)
        return (value & (1 << bits) - 1).to_bytes(bits // 8, "little")

    # ---- writing ----

    def code(self, at: int) -> bytes:
        """The words of a piece's code."""
        assert self.target is not None
        out = bytearray()
        for index, line in enumerate(self.pieces[at].code):
            if line.instruction is None:
                assert line.raw is not None
                out += line.raw.to_bytes(16, "little")
                continue
            try:
                out += encode_one(self.resolve(line.instruction, at, line), self.target, 16 * index).to_bytes(16, "little")
            except SassError as error:
                if error.location is not None and error.location.file == self.file:
                    self.errors.append(error)
                else:
                    self.errors.append(self.fail(error.message, line.number, line.column))
                out += bytes(16)
                if len(self.errors) >= _MAX_ERRORS:
                    break
        return bytes(out)

    def resolve(self, instr: Instruction, at: int, line: _Line) -> Instruction:
        last = instr.operands[-1] if instr.operands else None
        if not isinstance(last, Target) or isinstance(last.to, int):
            return instr
        place = self.labels.get(last.to)
        if place is None or place[0] != at:
            where = "not defined" if place is None else "in another section"
            raise self.fail(f"label '{last.to}' is {where}", line.number, line.column)
        return replace(instr, operands=(*instr.operands[:-1], Target(place[1], last.suffix)))

    def section(self, at: int) -> Section:
        piece = self.pieces[at]
        line = piece.number
        if self.number(piece.head[0], line) != at:
            raise self.fail(f"section {piece.head[0]} stands in the place of section {at}", line)
        keys = self.keys(piece.head[2:], line)
        get = {name: self.key(keys, name, line) for name in ("name", "type", "flags", "address", "link", "info", "align", "entry")}
        section = Section(self.string(piece.head[1], line), get["type"], get["flags"], get["address"], get["link"], get["info"], get["align"],
                          get["entry"], name_offset=get["name"])  # fmt: skip
        if "size" in keys:
            section.size = self.number(keys["size"], line)
        elif "alias" in keys:
            section.alias = self.number(keys["alias"], line)
        if piece.code:
            if piece.lines:
                raise self.fail("code and data in one section", piece.lines[0].number, piece.lines[0].column)
            section.data = self.code(at)
        else:
            section.data = self.content(section, at)
        if section.data and (section.fileless or section.alias is not None):
            raise self.fail("a section without bytes of its own has content", line)
        return section

    def content(self, section: Section, at: int) -> bytes:
        out = bytearray()
        units: list[tuple[int, Shape]] = []
        for line in self.pieces[at].lines:
            try:
                self.datum(section, line, out, units)
            except (CubinError, struct.error, IndexError) as error:
                message = error.message if isinstance(error, CubinError) else "operands are missing or out of range"
                raise self.fail(message, line.number, line.column) from None
        if units:
            raise self.fail(".lines without .end_lines", self.pieces[at].number)
        return bytes(out)

    def datum(self, section: Section, line: _Line, out: bytearray, units: list[tuple[int, Shape]]) -> None:
        n = line.number
        match line.words:
            case [".hex", data]:
                out += self.hexadecimal(data, n)
            case [".str", text]:
                out += self.string(text, n).encode() + b"\0"
            case [".word", text]:
                out += self.field(text, 32, n)
            case [".quad", text]:
                out += self.field(text, 64, n)
            case [".sym", name, text, value, size, *rest]:
                keys = self.keys(rest, n)
                kind, other, where = (self.key(keys, key, n) for key in ("info", "other", "section"))
                symbol = Symbol(self.string(text, n), self.value(value, n), self.value(size, n), kind, other, where, self.number(name, n))
                out += write_symbols([symbol])
            case [".rel", offset, name, symbol_number, addend]:
                number = RELOCATION_NUMBERS.get(name)
                entry = Relocation(self.value(offset, n), self.number(symbol_number, n), self.number(name, n) if number is None else number)
                entry.addend = None if section.type == SHT_REL else self.value(addend, n)
                out += write_relocations([entry])
            case [".attr", name, form, *values]:
                out += info.write_attributes([self.attribute(section, name, form, values, n)])
            case [".lines", minimum, base, span, opcodes]:
                units.append((len(out), Shape(self.number(minimum, n), self.number(base, n), self.number(span, n), self.number(opcodes, n), b"")))
                out += bytes(4)
            case [".end_lines"]:
                start, _ = units.pop()
                out[start : start + 4] = struct.pack("<I", len(out) - start - 4)
            case [".line_special" | ".line_advance" | ".line_advance_u" | ".line_constant" as step, delta, *rest]:
                lines = self.number(rest[0], n) if rest else 0
                shape = units[-1][1]
                if shape.minimum < 1 or shape.range < 1:
                    raise CubinError("malformed .lines")
                out += encode_step(step[1:], self.value(delta, n), lines, shape)
            case _:
                raise self.fail(f"unknown directive '{' '.join(line.words)[:60]}'", n, line.column)

    def attribute(self, section: Section, name: str, kind: str, values: list[str], line: int) -> info.Attribute:
        table = info.COMPAT_NUMBERS if section.type == SHT_CUDA_COMPAT else info.NUMBERS
        number = table[name] if name in table else self.number(name, line)
        if not 0 <= number < 256:
            raise self.fail(f"no attribute {name}", line)
        if kind in ("n", "b", "h") and len(values) == 1:
            return info.Attribute(number, "nbh".index(kind) + 1, self.field(values[0], 16, line))
        if kind != "s":
            raise self.fail(f"'{kind}' is no attribute format (n, b, h, s)", line)
        if values[:1] == ["bytes"]:
            return info.Attribute(number, info.SVAL, self.hexadecimal("".join(values[1:]), line))
        if values == ["exits"]:
            return info.Attribute(number, info.SVAL, b"".join(struct.pack("<I", offset) for offset in self.exits(section.name[9:], line)))
        return info.Attribute(number, info.SVAL, b"".join(self.field(value, 32, line) for value in values))

    def exits(self, kernel: str, line: int) -> list[int]:
        """Offsets of all EXIT instructions of the kernel's code."""
        if not self.sections:
            self.sections = {self.string(piece.head[1], piece.number): piece for piece in self.pieces if piece.head}
        piece = self.sections.get(f".text.{kernel}")
        if piece is not None:
            return [16 * i for i, entry in enumerate(piece.code) if entry.instruction is not None and entry.instruction.opcode == "EXIT"]
        raise self.fail(f"no code section of kernel {kernel}", line)

    def elf(self) -> Elf:
        assert self.cubin is not None
        keys = {name: self.key(self.cubin, name, 1) for name in ("abi", "version", "type", "elf", "entry", "flags", "names")}
        elf = Elf(keys["abi"], keys["version"], keys["type"], 190, keys["elf"], keys["entry"], keys["flags"], names=keys["names"])
        if "tail" in self.cubin:
            elf.ident_tail = self.hexadecimal(self.cubin["tail"], 1)
        for piece in self.pieces:
            if len(piece.head) < 2:
                raise self.fail("code of no .section in a cubin", piece.number)
        elf.sections = [self.section(at) for at in range(len(self.pieces))]
        for at, section in enumerate(elf.sections):
            if section.alias is not None:
                if not 0 <= section.alias < at:
                    raise self.fail(f"section {at} shares the bytes of section {section.alias}", self.pieces[at].number)
                section.data = elf.sections[section.alias].data
        elf.segments = self.segments
        if self.layout is not None:
            heads = [self.keys(piece.head[2:], piece.number) for piece in self.pieces]
            offsets = tuple(self.key(head, "offset", piece.number) for head, piece in zip(heads, self.pieces, strict=True))
            sizes = tuple(self.key(head, "was", piece.number) for head, piece in zip(heads, self.pieces, strict=True))
            headers, segments, size = (self.number(word, 1) for word in self.layout)
            if max((*offsets, headers, segments, size)) > 1 << 32 or min((*offsets, headers, segments, size)) < 0:
                raise self.fail("a .layout outside any file", 1)
            elf.layout = Layout(offsets, sizes, headers, segments, size, tuple(self.gaps))
        return elf


def _uncomment(text: str) -> str:
    """The line without its // comment; quotes protect."""
    at = text.find("//")
    if at < 0:
        return text
    quoted = False
    for index, char in enumerate(text):
        if char == '"' and (not index or text[index - 1] != "\\"):
            quoted = not quoted
        elif char == "/" and not quoted and text.startswith("//", index):
            return text[:index]
    return text


@collector_paused()
def assemble(text: str, file: str = "<sass>", chip: str | None = None) -> bytes:
    """A cubin from its text form, or the raw words of bare code (`.target` and instructions). `chip` names the target where the text does not.

    SassError (ErrorList for several) with file, line and column.
    """
    worker = _Assembler(text, file)
    worker.read()
    if worker.target is None:
        if chip is None:
            raise SassError("no .target", Location(file, 1, 1))
        worker.target = find_target(chip)
    try:
        if worker.cubin is None:
            data = b"".join(worker.code(at) for at in range(len(worker.pieces)))
        else:
            elf = worker.elf()
            data = elf.to_bytes() if not worker.errors else b""
    except (struct.error, OverflowError, MemoryError) as error:
        raise SassError(f"a number is out of range: {error}", Location(file, 1, 1)) from None
    if worker.errors:
        raise worker.errors[0] if len(worker.errors) == 1 else ErrorList(worker.errors)
    return data
