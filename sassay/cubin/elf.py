"""ELF files of CUDA, read and written whole: every byte of the file is in the model, and an untouched model writes the same bytes.

Layout as ptxas 13.5 makes it (probed on its output for sm_90a to sm_120a): sections in order of index, each at the next multiple of its
alignment, section headers right behind, program headers last; capsule sections may share the bytes of an earlier section. Files laid out
otherwise keep their offsets as long as no size changes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from sassay.errors import CubinError, Location

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_REL = 0, 1, 2, 3, 4, 7, 8, 9
SHT_CUDA_INFO, SHT_CUDA_CALLGRAPH, SHT_CUDA_GLOBAL, SHT_CUDA_SHARED, SHT_CUDA_COMPAT = 0x70000000, 0x70000001, 0x70000007, 0x7000000A, 0x70000086
SHF_WRITE, SHF_ALLOC, SHF_EXEC, SHF_INFO, SHF_MERC = 1, 2, 4, 0x40, 0x10000000
_FILELESS = frozenset({SHT_NULL, SHT_NOBITS, SHT_CUDA_GLOBAL, SHT_CUDA_SHARED})
PT_LOAD, PT_PHDR = 1, 6

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_PHDR = struct.Struct("<IIQQQQQQ")
_SYM = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_REL = struct.Struct("<QQ")
_MAX_SIZE = 1 << 40


@dataclass(slots=True)
class Section:
    """One section. `data` is its file content (empty where it has none); `size` counts for sections without content only.

    `alias` is the index of an earlier section whose file bytes this one shares.
    """

    name: str
    type: int
    flags: int = 0
    address: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    entry_size: int = 0
    data: bytes = b""
    size: int = 0
    alias: int | None = None
    name_offset: int = 0

    @property
    def fileless(self) -> bool:
        """Whether the section takes no bytes in the file (NOBITS and its CUDA kin)."""
        return self.type in _FILELESS

    @property
    def length(self) -> int:
        return self.size if self.fileless else len(self.data)


@dataclass(slots=True)
class Symbol:
    """One symbol; `info` is binding<<4 | type, `other` CUDA's flags (0x10: kernel entry), `section` the index it stands in."""

    name: str
    value: int = 0
    size: int = 0
    info: int = 0
    other: int = 0
    section: int = 0
    name_offset: int = 0

    @property
    def type(self) -> int:
        return self.info & 15

    @property
    def binding(self) -> int:
        return self.info >> 4


@dataclass(slots=True)
class Relocation:
    """One relocation; `addend` is None in SHT_REL sections."""

    offset: int
    symbol: int
    type: int
    addend: int | None = 0


@dataclass(slots=True)
class Segment:
    """A program header as it stands."""

    type: int
    flags: int
    offset: int
    virtual: int
    physical: int
    file_size: int
    memory_size: int
    align: int


@dataclass(slots=True)
class Layout:
    """Where things stand in the file: section offsets and sizes by index, both header tables, the file's size, bytes that nothing covers."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    section_headers: int
    program_headers: int
    size: int
    gaps: tuple[tuple[int, bytes], ...] = ()


@dataclass(slots=True)
class Elf:
    """An ELF file. `layout` and `segments` are None where the rules of this module produce them."""

    os_abi: int = 0x41
    abi_version: int = 8
    type: int = 2
    machine: int = 190
    version: int = 1
    entry: int = 0
    flags: int = 0
    ident_tail: bytes = bytes(7)
    names: int = 1
    sections: list[Section] = field(default_factory=list)
    layout: Layout | None = None
    segments: list[Segment] | None = None

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def index(self, section: Section) -> int:
        return next(i for i, other in enumerate(self.sections) if other is section)

    def to_bytes(self) -> bytes:
        """The file. Sections that kept their sizes keep their places; otherwise all are laid out again."""
        layout = self.layout
        if layout is None or not self._fits(layout):
            if layout is not None and self.segments is not None:
                raise CubinError("cannot lay the file out again: its program headers follow no known rule")
            layout = automatic_layout(self)
        segments = self.segments if self.segments is not None else automatic_segments(self, layout)
        out = bytearray(layout.size)
        for offset, data in layout.gaps:
            out[offset : offset + len(data)] = data
        for index, section in enumerate(self.sections):
            start = layout.offsets[index]
            if not section.fileless and section.alias is None:
                out[start : start + len(section.data)] = section.data
            header = _SHDR.pack(section.name_offset, section.type, section.flags, section.address, start, section.length, section.link,
                                section.info, section.align, section.entry_size)  # fmt: skip
            out[layout.section_headers + 64 * index : layout.section_headers + 64 * index + 64] = header
        for index, segment in enumerate(segments):
            at = layout.program_headers + 56 * index
            out[at : at + 56] = _PHDR.pack(segment.type, segment.flags, segment.offset, segment.virtual, segment.physical, segment.file_size,
                                           segment.memory_size, segment.align)  # fmt: skip
        ident = b"\x7fELF\x02\x01\x01" + bytes((self.os_abi, self.abi_version)) + self.ident_tail
        out[:64] = _EHDR.pack(ident, self.type, self.machine, self.version, self.entry, layout.program_headers, layout.section_headers, self.flags,
                              64, 56 if segments or layout.program_headers else 0, len(segments), 64, len(self.sections), self.names)  # fmt: skip
        return bytes(out)

    def _fits(self, layout: Layout) -> bool:
        """Whether every section still has the size the layout was made for."""
        return layout.sizes == tuple(section.length for section in self.sections)


def _align(value: int, to: int) -> int:
    return (value + to - 1) // to * to if to > 1 else value


def automatic_layout(elf: Elf) -> Layout:
    """The layout ptxas 13.5 uses."""
    offsets: list[int] = []
    cursor = 64
    for section in elf.sections:
        if section.type == SHT_NULL:
            offsets.append(0)
        elif section.alias is not None:
            offsets.append(offsets[section.alias])
        else:
            at = _align(cursor, section.align)
            offsets.append(at)
            cursor = at + len(section.data)
    headers = cursor
    segments = headers + 64 * len(elf.sections)
    count = len(_segment_groups(elf)) + 2 if elf.segments is None and elf.type == 2 else len(elf.segments or ())
    return Layout(tuple(offsets), tuple(s.length for s in elf.sections), headers, segments if count else 0, segments + 56 * count)


def _segment_groups(elf: Elf) -> list[list[int]]:
    """Runs of loaded sections with equal permissions, capsule sections left out; each becomes a LOAD segment."""
    groups: list[list[int]] = []
    last = -1
    for index, section in enumerate(elf.sections):
        if not section.flags & SHF_ALLOC or section.flags & SHF_MERC:
            continue
        rights = section.flags & 7
        if not groups or rights != last:
            groups.append([])
        groups[-1].append(index)
        last = rights
    return groups


def automatic_segments(elf: Elf, layout: Layout) -> list[Segment]:
    """The program headers ptxas 13.5 writes: the table itself twice, then one LOAD for each run of sections with equal permissions."""
    if elf.type != 2:
        return []
    groups = _segment_groups(elf)
    table = 56 * (len(groups) + 2)
    at = layout.program_headers
    out = [Segment(PT_PHDR, 4, at, 0, 0, table, table, 8), Segment(PT_LOAD, 4, at, 0, 0, table, table, 8)]
    for group in groups:
        sections = [elf.sections[index] for index in group]
        rights = sections[0].flags
        start = layout.offsets[group[0]]
        end = max(layout.offsets[i] + len(elf.sections[i].data) for i in group)
        memory = 0
        for index in group:
            section = elf.sections[index]
            memory = (layout.offsets[index] - start if not section.fileless else _align(memory, section.align)) + section.length
        flags = 4 | (2 if rights & SHF_WRITE else 0) | (1 if rights & SHF_EXEC else 0)
        out.append(Segment(PT_LOAD, flags, start, 0, 0, end - start, memory, 8))
    return out


# ---- reading -------------------------------------------------------------------------------------------------------------------------


def _error(message: str, offset: int) -> CubinError:
    return CubinError(message, Location("cubin", offset=offset))


def _string(table: bytes, offset: int, where: int) -> str:
    end = table.find(b"\0", offset)
    if offset > len(table) or end < 0:
        raise _error("a name lies outside its string table", where)
    try:
        return table[offset:end].decode("utf-8")
    except UnicodeDecodeError:
        return table[offset:end].decode("latin-1")


def read_elf(data: bytes) -> Elf:
    """Parse a 64-bit little-endian ELF file of machine 190. CubinError with the byte offset for anything out of place."""
    if len(data) < 64 or data[:4] != b"\x7fELF":
        raise _error("not an ELF file", 0)
    if data[4:7] != b"\x02\x01\x01":
        raise _error("not a 64-bit little-endian ELF file of version 1", 4)
    (ident, kind, machine, version, entry, phoff, shoff, flags, ehsize, phentsize, phnum, shentsize, shnum, names) = _EHDR.unpack_from(data)
    if machine != 190:
        raise _error(f"machine {machine} is not NVIDIA CUDA (190)", 18)
    if ehsize != 64 or shentsize != 64 or (phnum and phentsize != 56):
        raise _error("header sizes are not those of a 64-bit ELF file", 52)
    if shoff + 64 * shnum > len(data) or phoff + 56 * phnum > len(data) or not shnum:
        raise _error("header tables lie outside the file", 32)
    elf = Elf(ident[7], ident[8], kind, machine, version, entry, flags, ident[9:], names)
    headers = [_SHDR.unpack_from(data, shoff + 64 * i) for i in range(shnum)]
    offsets = tuple(header[4] for header in headers)
    for index, header in enumerate(headers):
        elf.sections.append(_read_section(data, index, header, shoff))
    if names >= shnum or elf.sections[names].type != SHT_STRTAB:
        raise _error("no section name table", 62)
    for index, section in enumerate(elf.sections):
        section.name = _string(elf.sections[names].data, section.name_offset, shoff + 64 * index)
    _find_aliases(elf, offsets)
    elf.segments = [Segment(*_PHDR.unpack_from(data, phoff + 56 * i)) for i in range(phnum)]
    sizes = tuple(section.length for section in elf.sections)
    elf.layout = Layout(offsets, sizes, shoff, phoff, len(data), _gaps(data, elf, offsets, shoff, phoff, phnum))
    if (phentsize == 56) != bool(phnum or phoff):
        raise _error("size of program headers without program headers", 54)
    _forget_the_automatic(elf)
    return elf


def _read_section(data: bytes, index: int, header: tuple[int, ...], shoff: int) -> Section:
    name, kind, flags, address, offset, size, link, info, align, entry = header
    where = shoff + 64 * index
    if kind in _FILELESS:
        if size > _MAX_SIZE or offset > _MAX_SIZE:
            raise _error("a section is larger than any memory", where + 32)
        content = b""
    else:
        if offset + size > len(data):
            raise _error(f"section {index} lies outside the file", where + 24)
        content = data[offset : offset + size]
    if align > 1 << 16:
        raise _error(f"section {index} has alignment {align}", where + 48)
    return Section("", kind, flags, address, link, info, align, entry, content, size if kind in _FILELESS else 0, None, name)


def _find_aliases(elf: Elf, offsets: tuple[int, ...]) -> None:
    seen: dict[tuple[int, int], int] = {}
    for index, section in enumerate(elf.sections):
        if section.fileless or not section.data:
            continue
        first = seen.setdefault((offsets[index], len(section.data)), index)
        if first != index:
            section.alias = first


def _gaps(data: bytes, elf: Elf, offsets: tuple[int, ...], shoff: int, phoff: int, phnum: int) -> tuple[tuple[int, bytes], ...]:
    """File bytes outside every section and table that are not zero."""
    ranges = [(0, 64), (shoff, shoff + 64 * len(elf.sections)), (phoff, phoff + 56 * phnum)]
    ranges += [(offsets[i], offsets[i] + len(section.data)) for i, section in enumerate(elf.sections) if not section.fileless]
    gaps: list[tuple[int, bytes]] = []
    end = 0
    for start, stop in [*sorted(ranges), (len(data), len(data))]:
        if start > end and data.count(0, end, start) != start - end:
            gaps.append((end, data[end:start]))
        end = max(end, stop)
    return tuple(gaps)


def _forget_the_automatic(elf: Elf) -> None:
    """Drop layout and segments where the rules give the same, so that an edited file follows the rules."""
    assert elf.layout is not None
    segments = elf.segments
    elf.segments = None
    layout = automatic_layout(elf)
    if segments != automatic_segments(elf, layout if layout == elf.layout else elf.layout):
        elf.segments = segments
        layout = automatic_layout(elf)
    if layout == elf.layout:
        elf.layout = None


def read_symbols(elf: Elf, section: Section) -> list[Symbol]:
    """The entries of a symbol table."""
    if len(section.data) % 24:
        raise CubinError(f"size of {section.name} is no multiple of 24")
    if section.link >= len(elf.sections):
        raise CubinError(f"{section.name} links to no string table")
    strings = elf.sections[section.link].data
    out = []
    for at, (name, info, other, index, value, size) in enumerate(_SYM.iter_unpack(section.data)):
        out.append(Symbol(_string(strings, name, 24 * at), value, size, info, other, index, name))
    return out


def write_symbols(symbols: list[Symbol]) -> bytes:
    return b"".join(_SYM.pack(s.name_offset, s.info, s.other, s.section, s.value, s.size) for s in symbols)


def read_relocations(section: Section) -> list[Relocation]:
    """The entries of a RELA or REL section (or of a capsule section with the same content)."""
    if section.type == SHT_REL:
        if len(section.data) % 16:
            raise CubinError(f"size of {section.name} is no multiple of 16")
        return [Relocation(offset, info >> 32, info & 0xFFFFFFFF, None) for offset, info in _REL.iter_unpack(section.data)]
    if len(section.data) % 24:
        raise CubinError(f"size of {section.name} is no multiple of 24")
    return [Relocation(offset, info >> 32, info & 0xFFFFFFFF, addend) for offset, info, addend in _RELA.iter_unpack(section.data)]


def write_relocations(relocations: list[Relocation]) -> bytes:
    out = []
    for r in relocations:
        info = r.symbol << 32 | r.type
        out.append(_REL.pack(r.offset, info) if r.addend is None else _RELA.pack(r.offset, info, r.addend))
    return b"".join(out)


def copy_elf(elf: Elf) -> Elf:
    """A copy whose sections can be changed without touching the original."""
    return replace(elf, sections=[replace(section) for section in elf.sections])
