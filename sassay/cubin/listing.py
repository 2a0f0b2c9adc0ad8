"""A cubin as text that holds all of it: `assembler.assemble(write(read(data)).text) == data`.

Sections come in order of index. Code is instructions with control codes; everything that points into code (symbols, EXIT offsets and other
attributes, relocations, branch tables, line tables, frame ranges) names labels, so that code can be edited and grow.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sassay.cubin import info, linetext
from sassay.cubin.elf import SHF_MERC, SHT_CUDA_COMPAT, SHT_CUDA_INFO, SHT_REL, SHT_RELA, SHT_STRTAB, SHT_SYMTAB, Section, read_relocations
from sassay.cubin.model import RELOCATIONS, STT_FUNC, Cubin
from sassay.errors import CubinError, SassError
from sassay.isa.target import Target as Chip
from sassay.sass.codec import try_decode
from sassay.sass.model import Instruction, Target
from sassay.sass.paused import collector_paused
from sassay.sass.text import format_control, format_instruction


@dataclass(slots=True)
class Listing:
    """The text, and a warning for each word or part that could not be read."""

    text: str
    warnings: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every word of code was an instruction."""
        return "    .instruction 0x" not in self.text


@dataclass(slots=True)
class _Code:
    """A code section being listed: its instructions (or the raw word) and the labels that anything asks for."""

    section: int
    data: bytes
    items: list[Instruction | SassError]
    labels: dict[int, str] = field(default_factory=dict)


class _Writer:
    def __init__(self, cubin: Cubin, control: str) -> None:
        self.cubin = cubin
        self.control = control
        self.warnings: list[str] = []
        self.codes: dict[int, _Code] = {}
        self.by_name: dict[str, _Code] = {}
        self.count = 0
        for index, section in enumerate(cubin.elf.sections):
            if section.name.startswith(".text.") and not section.flags & SHF_MERC and len(section.data) % 16 == 0:
                code = self.codes[index] = _Code(index, section.data, try_decode(section.data, cubin.target))
                self.by_name[section.name[6:]] = code
                for at, item in enumerate(code.items):
                    if isinstance(item, SassError):
                        self.warnings.append(f"{section.name[6:]}+{16 * at:#x}: {item.message}")

    def label(self, code: _Code, offset: int) -> str:
        """The label of an offset, made on first use; the plain number where no instruction starts or ends."""
        if offset % 16 or not 0 <= offset <= len(code.data):
            return hex(offset)
        if offset not in code.labels:
            code.labels[offset] = f".L{self.count}"
            self.count += 1
        return code.labels[offset]

    # ---- sections ----

    def write(self) -> str:
        elf = self.cubin.elf
        bodies = [self.body(index, section) for index, section in enumerate(elf.sections)]
        for code in self.codes.values():
            for item in code.items:
                if isinstance(item, Instruction):
                    for operand in item.operands:
                        if isinstance(operand, Target) and isinstance(operand.to, int):
                            self.label(code, operand.to)
        lines = [f".target {self.cubin.target_name}", self.header()]
        if elf.layout is not None:
            lines.append(f".layout {elf.layout.section_headers:#x} {elf.layout.program_headers:#x} {elf.layout.size:#x}")
            lines += [f".gap {offset:#x} {data.hex()}" for offset, data in elf.layout.gaps]
        if elf.segments is not None:
            for s in elf.segments:
                numbers = (s.type, s.flags, s.offset, s.virtual, s.physical, s.file_size, s.memory_size, s.align)
                lines.append(".segment " + " ".join(hex(number) for number in numbers))
        for index, section in enumerate(elf.sections):
            lines += ["", self.section_header(index, section)]
            if index in self.codes:
                lines += self.instructions(self.codes[index])
            else:
                lines += ["    " + line for line in bodies[index]]
        return "\n".join(lines) + "\n"

    def header(self) -> str:
        e = self.cubin.elf
        tail = f" tail={e.ident_tail.hex()}" if any(e.ident_tail) else ""
        return (
            f".cubin abi={e.os_abi:#x} version={e.abi_version} type={e.type} elf={e.version} entry={e.entry:#x} flags={e.flags:#x} "
            f"names={e.names}{tail}"
        )

    def section_header(self, index: int, s: Section) -> str:
        extra = f" size={s.size:#x}" if s.fileless else f" alias={s.alias}" if s.alias is not None else ""
        layout = self.cubin.elf.layout
        if layout is not None:
            extra += f" offset={layout.offsets[index]:#x} was={layout.sizes[index]:#x}"
        return (
            f".section {index} {json.dumps(s.name)} name={s.name_offset:#x} type={s.type:#x} flags={s.flags:#x} address={s.address:#x} "
            f"link={s.link} info={s.info:#x} align={s.align} entry={s.entry_size}{extra}"
        )

    def body(self, index: int, section: Section) -> list[str]:
        """The content as directives, in the richest form that gives the same bytes back; hexadecimal where none does."""
        if section.fileless or section.alias is not None or index in self.codes:
            return []
        try:
            return self.rich(index, section)
        except CubinError as error:
            self.warnings.append(f"section {section.name} is carried as bytes: {error.message}")
            return _hex(section.data)

    def rich(self, index: int, section: Section) -> list[str]:
        if section.type == SHT_SYMTAB and index == _index_of(self.cubin, ".symtab"):
            return self.symbols()
        if section.type in (SHT_REL, SHT_RELA):
            return self.relocations(section)
        if section.type in (SHT_CUDA_INFO, SHT_CUDA_COMPAT):
            return self.attributes(section)
        if section.type == SHT_STRTAB:
            return _strings(section.data)
        if section.name in (".debug_line", ".nv_debug_line_sass"):
            return self.line_table(section)
        if section.name == ".debug_frame":
            return self.frames(section)
        if section.name.startswith(".nv.constant2.") and section.name[14:] in self.by_name:
            return self.branch_table(section)
        return _hex(section.data)

    def symbols(self) -> list[str]:
        out = []
        for s in self.cubin.symbols:
            code = self.codes.get(s.section)
            value, size = hex(s.value), hex(s.size)
            if code is not None and s.type == STT_FUNC:
                value = self.label(code, s.value)
                if s.size and value.startswith(".") and s.value + s.size <= len(code.data):
                    size = f"{self.label(code, s.value + s.size)}-{value}" if s.size % 16 == 0 else size
            out.append(f".sym {s.name_offset:#x} {json.dumps(s.name)} {value} {size} info={s.info:#x} other={s.other:#x} section={s.section}")
        return out

    def relocations(self, section: Section) -> list[str]:
        out = []
        own = self.codes.get(section.info)
        for r in read_relocations(section):
            if r.symbol >= len(self.cubin.symbols):
                raise CubinError(f"it names symbol {r.symbol} of {len(self.cubin.symbols)}")
            symbol = self.cubin.symbols[r.symbol]
            offset = hex(r.offset)
            if own is not None:
                start = self.label(own, r.offset - r.offset % 16)
                offset = f"{start}+{r.offset % 16:#x}" if r.offset % 16 and start.startswith(".") else start if not r.offset % 16 else offset
            addend = "none" if r.addend is None else hex(r.addend)
            code = self.codes.get(symbol.section)
            if code is not None and r.addend and symbol.type == STT_FUNC and r.addend % 16 == 0 and 0 <= symbol.value + r.addend <= len(code.data):
                addend = f"{self.label(code, symbol.value + r.addend)}-{self.label(code, symbol.value)}"
            kind = RELOCATIONS.get(r.type, str(r.type))
            out.append(f".rel {offset} {kind} {r.symbol} {addend} // {symbol.name}")
        return out

    def attributes(self, section: Section) -> list[str]:
        code = self.by_name.get(section.name.removeprefix(".nv.info."))
        compat = section.type == SHT_CUDA_COMPAT
        out = []
        for a in info.read_attributes(section.data, section.name):
            name = info.COMPAT_NAMES.get(a.number, f"{a.number:#04x}") if compat else a.name
            if a.format != info.SVAL:
                out.append(f".attr {name} {'nbh'[a.format - 1]} {int.from_bytes(a.payload, 'little'):#x}")
            elif len(a.payload) % 4:
                out.append(f".attr {name} s bytes {a.payload.hex()}")
            else:
                out.append(f".attr {name} s {' '.join(self.attribute_words(a, code))}".rstrip())
        return out

    def attribute_words(self, a: info.Attribute, code: _Code | None) -> list[str]:
        words = list(a.words)
        if code is None:
            return [hex(word) for word in words]
        if a.name == "EXIT_INSTR_OFFSETS" and words == [16 * i for i, item in enumerate(code.items) if _is_exit(item)]:
            return ["exits"]
        if a.name in info.OFFSET_LISTS:
            return [self.label(code, word) for word in words]
        if a.name == "INDIRECT_BRANCH_TARGETS":
            return [self.label(code, word) if role else hex(word) for word, role in _branch_words(words)]
        return [hex(word) for word in words]

    def branch_table(self, section: Section) -> list[str]:
        """A kernel's bank of compiler constants: the words that its indirect branches may go to are labels."""
        name = section.name[14:]
        code = self.by_name[name]
        targets: set[int] = set()
        for a in self.cubin.kernels[name].attributes:
            if a.name == "INDIRECT_BRANCH_TARGETS":
                targets |= {word for word, role in _branch_words(list(a.words)) if role == "target"}
        words = [int.from_bytes(section.data[i : i + 4], "little") for i in range(0, len(section.data) - 3, 4)]
        if not targets or not words or not all(word in targets for word in words) or len(section.data) % 4:
            return _hex(section.data)
        return [f".word {self.label(code, word)}" for word in words]

    def line_table(self, section: Section) -> list[str]:
        bases = {}
        for fixup in self.cubin.relocations(section.name):
            if fixup.symbol in self.by_name and fixup.addend == 0:
                bases[fixup.offset] = fixup.symbol
        return linetext.to_text(section.data, bases, lambda name, offset: self.label(self.by_name[name], offset))

    def frames(self, section: Section) -> list[str]:
        """Frames are bytes but for the size of each function, which stands behind its relocated address."""
        symbols = {s.name: s for s in self.cubin.symbols if s.type == STT_FUNC and s.section in self.codes}
        sizes: dict[int, str] = {}
        for fixup in self.cubin.relocations(section.name):
            symbol = symbols.get(fixup.symbol)
            if symbol is None:
                continue
            code = self.codes[symbol.section]
            start = symbol.value + fixup.addend
            size = int.from_bytes(section.data[fixup.offset + 8 : fixup.offset + 16], "little")
            if size and not size % 16 and not start % 16 and 0 <= start and start + size <= len(code.data):
                sizes[fixup.offset + 8] = f"{self.label(code, start + size)}-{self.label(code, start)}"
        out: list[str] = []
        at = 0
        for offset in sorted(sizes):
            if offset >= at:
                out += [*_hex(section.data[at:offset]), f".quad {sizes[offset]}"]
                at = offset + 8
        return out + _hex(section.data[at:])

    # ---- code ----

    def instructions(self, code: _Code) -> list[str]:
        out = []
        for at, item in enumerate(code.items):
            offset = 16 * at
            if offset in code.labels:
                out.append(f"{code.labels[offset]}:")
            if isinstance(item, SassError):
                out.append(f"    .instruction {int.from_bytes(code.data[offset : offset + 16], 'little'):#034x} // {item.message}")
            else:
                out.append("    " + format_line(item, offset, self.control, code.labels))
        if len(code.data) in code.labels:
            out.append(f"{code.labels[len(code.data)]}:")
        return out


def format_line(instr: Instruction, offset: int, control: str = "bracket", labels: dict[int, str] | None = None) -> str:
    """One line of code: control code, offset, instruction; hidden bits that differ from the usual stand in angle brackets."""
    if labels:
        operands = tuple(
            Target(labels[o.to], o.suffix) if isinstance(o, Target) and isinstance(o.to, int) and o.to in labels else o for o in instr.operands
        )
        instr = replace(instr, operands=operands)
    hidden = f" <{instr.form}>" if "+" in instr.form else ""
    head = "" if control == "none" else format_control(instr.control, control) + "  "
    return f"{head}/*{offset:04x}*/  {format_instruction(instr, exact=True)}{hidden} ;"


def _is_exit(item: Instruction | SassError) -> bool:
    return isinstance(item, Instruction) and item.opcode == "EXIT"


def _branch_words(words: list[int]) -> list[tuple[int, str]]:
    """The words of INDIRECT_BRANCH_TARGETS with their roles: rows of (offset, 0, count, targets), "" for what is no code offset."""
    out: list[tuple[int, str]] = []
    at = 0
    while at + 3 <= len(words):
        count = words[at + 2]
        out += [(words[at], "branch"), (words[at + 1], ""), (count, "")]
        out += [(word, "target") for word in words[at + 3 : at + 3 + count]]
        at += 3 + count
    return out + [(word, "") for word in words[at:]]


def _index_of(cubin: Cubin, name: str) -> int:
    return next((i for i, s in enumerate(cubin.elf.sections) if s.name == name), -1)


def _hex(data: bytes) -> list[str]:
    return [f".hex {data[i : i + 32].hex()}" for i in range(0, len(data), 32)]


def _strings(data: bytes) -> list[str]:
    if not data or data[-1] or not all(byte == 0 or 32 <= byte < 127 for byte in data):
        return _hex(data)
    out = []
    for part in data[:-1].split(b"\0"):
        out.append(f".str {json.dumps(part.decode())}")
    return out


@collector_paused()
def write(cubin: Cubin, control: str = "bracket") -> Listing:
    """The whole cubin as text."""
    writer = _Writer(cubin, control)
    text = writer.write()
    return Listing(text, writer.warnings)


def write_kernels(cubin: Cubin, kernels: list[str], control: str = "bracket") -> Listing:
    """The code of some kernels alone, for reading."""
    lines, warnings = [f".target {cubin.target_name}"], []
    for name in kernels:
        data = cubin.kernel(name).code
        lines += ["", f".kernel {json.dumps(name)}"]
        body, bad = code_lines(data, cubin.target, control)
        lines += body
        warnings += [f"{name}{warning}" for warning in bad]
    return Listing("\n".join(lines) + "\n", warnings)


def code_lines(data: bytes, target: Chip, control: str = "bracket", label: Callable[[int], str] = ".L{}".format) -> tuple[list[str], list[str]]:
    """Lines of raw code with labels for branch targets, and warnings that begin with the offset."""
    items = try_decode(data, target)
    targets = sorted({
        o.to for i in items if isinstance(i, Instruction) for o in i.operands
        if isinstance(o, Target) and isinstance(o.to, int) and o.to % 16 == 0 and 0 <= o.to <= len(data)
    })  # fmt: skip
    labels = {offset: label(number) for number, offset in enumerate(targets)}
    lines, warnings = [], []
    for at, item in enumerate(items):
        if 16 * at in labels:
            lines.append(labels[16 * at] + ":")
        if isinstance(item, SassError):
            warnings.append(f"+{16 * at:#x}: {item.message}")
            lines.append(f"    .instruction {int.from_bytes(data[16 * at : 16 * at + 16], 'little'):#034x} // {item.message}")
        else:
            lines.append("    " + format_line(item, 16 * at, control, labels))
    if len(data) in labels:
        lines.append(labels[len(data)] + ":")
    return lines, warnings
