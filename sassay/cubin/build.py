"""Cubins made from finished kernels, in the container that ptxas 13.5 writes (facts/probed: section order, symbol order, attributes).

No capsule sections are written: they describe another instruction stream than .text's.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from sassay.cubin import info
from sassay.cubin.elf import (
    SHF_ALLOC,
    SHF_EXEC,
    SHF_INFO,
    SHF_WRITE,
    SHT_CUDA_CALLGRAPH,
    SHT_CUDA_COMPAT,
    SHT_CUDA_INFO,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_PROGBITS,
    SHT_RELA,
    SHT_STRTAB,
    SHT_SYMTAB,
    Elf,
    Relocation,
    Section,
    Symbol,
    write_relocations,
    write_symbols,
)
from sassay.cubin.frames import debug_frame
from sassay.cubin.lines import LineRow, debug_line
from sassay.cubin.model import RELOCATION_NUMBERS, STO_ENTRY, STT_FUNC, STT_OBJECT, STT_SECTION, Fixup, Param
from sassay.errors import CubinError
from sassay.isa.container import API_VERSION, Container, container
from sassay.isa.target import Target

_LOCAL, _GLOBAL, _WEAK = 0, 0x10, 0x20
_RESERVED_ALIAS = 0xA0
_MAX_KPARAM_SIZE = 0x3FFF
_NOTE_OWNER = b"NVIDIA Corp\0"
_NOTE_TKINFO, _NOTE_CUINFO = 2000, 1000


@dataclass(slots=True)
class KernelImage:
    """A finished kernel. `registers` is what REGCOUNT declares (highest register + 3); `shared` the user's static bytes, without the reserved
    kilobyte; offsets are byte offsets in `code`; sizes are bytes."""

    name: str
    code: bytes
    registers: int
    params: Sequence[Param] = ()
    param_size: int | None = None
    """Bytes of parameter space; by default where the last parameter ends."""
    shared: int = 0
    shared_align: int = 16
    frame: int = 0
    stack: int | None = None
    """Least stack; by default the frame. 0xffffffff where recursion leaves it open."""
    barriers: int = 0
    exits: Sequence[int] = ()
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    max_registers: int = 0xFF
    relocations: Sequence[Fixup] = ()
    constant2: bytes = b""
    constant2_relocations: Sequence[Fixup] = ()
    functions: Sequence[tuple[str, int, int]] = ()
    """Device functions inside the code: (name, offset, size)."""
    coop_offsets: Sequence[int] = ()
    """Offsets of warp-wide exchanges (SHFL and kin), each with a mask register unknown."""
    indirect_targets: Sequence[tuple[int, Sequence[int]]] = ()
    """(offset of a BRX, its possible targets)."""
    uses_calls: bool = False
    """Whether it branches through the call stack (BSSY, CALL): declares CRS_STACK_SIZE."""
    extra: Sequence[info.Attribute] = ()
    lines: Sequence[LineRow] = ()
    entry: bool = True


@dataclass(slots=True)
class Variable:
    """A module variable. `data` None: zeros, in .nv.global; `constant`: in bank 3. Relocations are offsets within the variable."""

    name: str
    size: int
    align: int = 4
    data: bytes | None = None
    constant: bool = False
    exported: bool = True
    relocations: Sequence[Fixup] = ()


@dataclass(slots=True)
class ModuleImage:
    """What a module has besides kernels."""

    variables: Sequence[Variable] = ()
    address_table: Sequence[str] = ()
    """Symbols whose 64-bit addresses fill constant bank 4, eight bytes each in this order."""
    externals: Sequence[str] = ()
    """Undefined functions that the driver provides (vprintf, malloc, ...)."""
    files: Sequence[str] = ()
    """Source files that line rows name, from 1."""


class _Strings:
    """A string table under construction."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self.at: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self.at:
            self.at[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self.at[text]


@dataclass(slots=True)
class _Builder:
    target: Target
    facts: Container
    sections: list[Section] = field(default_factory=lambda: [Section("", 0, align=0)])
    symbols: list[Symbol] = field(default_factory=lambda: [Symbol("")])
    numbers: dict[str, int] = field(default_factory=dict)
    """Symbol numbers by name; section symbols are not in it."""

    def section(
        self,
        name: str,
        kind: int,
        flags: int = 0,
        *,
        link: int = 0,
        info: int = 0,
        align: int = 1,
        entry_size: int = 0,
        data: bytes = b"",
        size: int = 0,
    ) -> int:
        """Append a section; its index."""
        self.sections.append(Section(name, kind, flags, 0, link, info, align, entry_size, data, size))
        return len(self.sections) - 1

    def symbol(self, symbol: Symbol) -> int:
        number = len(self.symbols)
        self.symbols.append(symbol)
        if symbol.type != STT_SECTION:
            if symbol.name in self.numbers:
                raise CubinError(f"symbol '{symbol.name}' is defined twice")
            self.numbers[symbol.name] = number
        return number

    def resolve(self, fixups: Sequence[Fixup], where: str) -> bytes:
        out = []
        for fixup in fixups:
            number = self.numbers.get(fixup.symbol)
            kind = RELOCATION_NUMBERS.get(fixup.type)
            if number is None:
                raise CubinError(f"{where}: relocation names the unknown symbol '{fixup.symbol}'")
            if kind is None:
                raise CubinError(f"{where}: unknown relocation type '{fixup.type}'")
            out.append(Relocation(fixup.offset, number, kind, fixup.addend))
        return write_relocations(out)


def build(
    target: Target, kernels: Sequence[KernelImage], module: ModuleImage | None = None, *, tool: str = "sassay", version: str = "", arguments: str = ""
) -> bytes:
    """A cubin of these kernels and module data. Deterministic: equal arguments give equal bytes. CubinError names what does not fit."""
    module = module if module is not None else ModuleImage()
    b = _Builder(target, container(target))
    _check(kernels)
    strings_at, names_at = 2, 1
    b.section(".shstrtab", SHT_STRTAB)
    b.section(".strtab", SHT_STRTAB)
    symtab = b.section(".symtab", SHT_SYMTAB, link=strings_at, align=8, entry_size=24)
    frame = b.section(".debug_frame", SHT_PROGBITS)
    line = b.section(".debug_line", SHT_PROGBITS) if module.files else 0
    notes = _notes(b, tool, version, arguments or f"-arch {target.name} ")
    module_info = b.section(".nv.info", SHT_CUDA_INFO, link=symtab, align=4)
    b.section(".nv.compat", SHT_CUDA_COMPAT, align=4, data=_compat(b.facts))
    infos = [b.section(f".nv.info.{k.name}", SHT_CUDA_INFO, SHF_INFO, link=symtab, align=4) for k in kernels]
    graph = b.section(".nv.callgraph", SHT_CUDA_CALLGRAPH, link=symtab, align=4, entry_size=8)
    relocations = _relocation_sections(b, kernels, module, symtab)
    places = _loaded_sections(b, kernels, module)
    for index in (*notes, *places.texts, frame, *((line,) if line else ()), graph):
        b.symbol(Symbol(b.sections[index].name, info=STT_SECTION, section=index))
    _module_symbols(b, module, places)
    _function_symbols(b, kernels, module, places)
    _fill_code(b, kernels, places, infos)
    b.sections[module_info].data = info.write_attributes(_module_attributes(b, kernels))
    b.sections[graph].data = struct.pack("<iiiiiiii", 0, -1, 0, -2, 0, -3, 0, -4)
    b.sections[frame].data, frame_fixups = debug_frame([(k.name, len(k.code)) for k in kernels])
    line_fixups: list[Fixup] = []
    if line:
        b.sections[line].data, line_fixups = debug_line(module.files, [(k.name, len(k.code), k.lines) for k in kernels])
    _fill_relocations(b, relocations, {".debug_frame": (frame, frame_fixups), ".debug_line": (line, line_fixups)}, kernels, module, places)
    _fill_strings(b, symtab, strings_at, names_at)
    return Elf(flags=notes[1] << 24 | b.facts.elf_flags, names=names_at, sections=b.sections).to_bytes()


def _check(kernels: Sequence[KernelImage]) -> None:
    for kernel in kernels:
        if not kernel.code or len(kernel.code) % 16:
            raise CubinError(f"kernel {kernel.name}: code of {len(kernel.code)} bytes is no sequence of 16-byte words")
        if not 0 <= kernel.registers <= 255:
            raise CubinError(f"kernel {kernel.name}: {kernel.registers} registers")
        for offset in kernel.exits:
            if offset % 16 or not 0 <= offset < len(kernel.code):
                raise CubinError(f"kernel {kernel.name}: no instruction at the exit offset {offset:#x}")


def _note(owner_type: int, payload: bytes) -> bytes:
    return struct.pack("<III", len(_NOTE_OWNER), len(payload), owner_type) + _NOTE_OWNER + payload


def _notes(b: _Builder, tool: str, version: str, arguments: str) -> tuple[int, int]:
    """The two notes: who made the file, and for what. Strings of the first stand behind six words that give their offsets."""
    strings = bytearray(b"\0")
    offsets = []
    for text in (tool, version, "", arguments):
        offsets.append(len(strings))
        strings += text.encode() + b"\0"
    strings += bytes(-len(strings) % 4)
    tkinfo = b.section(".note.nv.tkinfo", SHT_NOTE, 0x2000000, align=4, data=_note(_NOTE_TKINFO, struct.pack("<6I", 2, 0, *offsets) + strings))
    payload = struct.pack("<HHHH", 2, b.target.number, API_VERSION, 0)
    cuinfo = b.section(".note.nv.cuinfo", SHT_NOTE, 0x1000040, link=tkinfo, info=tkinfo + 3, align=4, data=_note(_NOTE_CUINFO, payload))
    return tkinfo, cuinfo


def _compat(facts: Container) -> bytes:
    out = []
    for number, value in facts.compat:
        if isinstance(value, bytes):
            out.append(info.Attribute(number, info.HVAL, value))
        elif isinstance(value, tuple):
            out.append(info.Attribute(number, info.SVAL, struct.pack("<II", *value)))
        else:
            out.append(info.Attribute(number, info.BVAL, bytes((value, 0))))
    return info.write_attributes(out)


@dataclass(slots=True)
class _Places:
    """Section indices by role; 0 where there is none."""

    texts: list[int]
    constant0: list[int]
    constant2: list[int]
    constant3: int = 0
    constant4: int = 0
    init: int = 0
    zero: int = 0
    reserved: int = 0
    offsets: dict[str, int] = field(default_factory=dict)


def _relocation_sections(b: _Builder, kernels: Sequence[KernelImage], module: ModuleImage, symtab: int) -> dict[str, int]:
    """Empty relocation sections for what has any, by the name of the section they apply to."""
    wanted = [f".nv.constant2.{k.name}" for k in kernels if k.constant2_relocations]
    wanted += [f".text.{k.name}" for k in kernels if k.relocations]
    if module.address_table:
        wanted.append(".nv.constant4")
    for constant, section in ((True, ".nv.constant3"), (False, ".nv.global.init")):
        if any(v.relocations and v.constant == constant for v in module.variables):
            wanted.append(section)
    if module.files:
        wanted.append(".debug_line")
    wanted.append(".debug_frame")
    return {name: b.section(f".rela{name}", SHT_RELA, SHF_INFO, link=symtab, align=8, entry_size=24) for name in wanted}


def _place(variables: Sequence[Variable], offsets: dict[str, int]) -> tuple[int, int, bytes]:
    """Lay variables out one behind the other: (size, alignment, content)."""
    size, align = 0, 4
    content = bytearray()
    for v in variables:
        size = (size + v.align - 1) // v.align * v.align
        offsets[v.name] = size
        if v.data is not None:
            if len(v.data) != v.size:
                raise CubinError(f"variable {v.name}: {len(v.data)} bytes for a size of {v.size}")
            content += bytes(size - len(content)) + v.data
        size += v.size
        align = max(align, v.align)
    return size, align, bytes(content)


def _loaded_sections(b: _Builder, kernels: Sequence[KernelImage], module: ModuleImage) -> _Places:
    places = _Places([], [], [])
    constants = [v if v.data is not None else _zeroed(v) for v in module.variables if v.constant]
    data = [v for v in module.variables if not v.constant and v.data is not None]
    zeros = [v for v in module.variables if not v.constant and v.data is None]
    if constants:
        _, align, content = _place(constants, places.offsets)
        places.constant3 = b.section(".nv.constant3", SHT_PROGBITS, SHF_ALLOC, align=align, data=content)
    if module.address_table:
        places.constant4 = b.section(".nv.constant4", SHT_PROGBITS, SHF_ALLOC, align=8, data=bytes(8 * len(module.address_table)))
    for k in kernels:
        places.constant2.append(
            b.section(f".nv.constant2.{k.name}", SHT_PROGBITS, SHF_ALLOC | SHF_INFO, align=4, data=k.constant2) if k.constant2 else 0
        )
    for k in kernels:
        places.texts.append(b.section(f".text.{k.name}", SHT_PROGBITS, SHF_ALLOC | SHF_EXEC, link=3, align=128, data=k.code))
    if data:
        _, align, content = _place(data, places.offsets)
        places.init = b.section(".nv.global.init", SHT_PROGBITS, SHF_WRITE | SHF_ALLOC, align=align, data=content)
    for k, text in zip(kernels, places.texts, strict=True):
        if k.shared:
            b.section(
                f".nv.shared.{k.name}", SHT_NOBITS, SHF_WRITE | SHF_ALLOC | SHF_INFO, info=text, align=max(k.shared_align, 16),
                size=b.target.smem_reserved + (k.shared + 15) // 16 * 16,
            )  # fmt: skip
    places.reserved = b.section(".nv.shared.reserved.0", SHT_NOBITS, SHF_WRITE | SHF_ALLOC, align=1, size=b.facts.reserved_shared)
    if zeros:
        size, align, _ = _place(zeros, places.offsets)
        places.zero = b.section(".nv.global", SHT_NOBITS, SHF_WRITE | SHF_ALLOC, align=align, size=size)
    for k, text in zip(kernels, places.texts, strict=True):
        size = b.target.constants.params + _param_size(k)
        places.constant0.append(b.section(f".nv.constant0.{k.name}", SHT_PROGBITS, SHF_ALLOC | SHF_INFO, info=text, align=4, data=bytes(size)))
    for index, text in zip(places.constant2, places.texts, strict=True):
        if index:
            b.sections[index].info = text
    return places


def _zeroed(v: Variable) -> Variable:
    return Variable(v.name, v.size, v.align, bytes(v.size), v.constant, v.exported, v.relocations)


def _param_size(kernel: KernelImage) -> int:
    if kernel.param_size is not None:
        return kernel.param_size
    return max((p.offset + p.size for p in kernel.params), default=0)


def _module_symbols(b: _Builder, module: ModuleImage, places: _Places) -> None:
    for index in (places.constant3, places.constant4, places.init, places.zero):
        if index:
            b.symbol(Symbol(b.sections[index].name, info=STT_SECTION, section=index))
    for v in module.variables:
        index = places.constant3 if v.constant else places.init if v.data is not None else places.zero
        binding = _GLOBAL if v.exported else _LOCAL
        b.symbol(Symbol(v.name, places.offsets[v.name], v.size, binding | STT_OBJECT, 0, index))


def _function_symbols(b: _Builder, kernels: Sequence[KernelImage], module: ModuleImage, places: _Places) -> None:
    for k, text in zip(kernels, places.texts, strict=True):
        for name, offset, size in k.functions:
            b.symbol(Symbol(name, offset, size, _LOCAL | STT_FUNC, 0, text))
    for k, text in zip(kernels, places.texts, strict=True):
        number = b.symbol(Symbol(k.name, 0, len(k.code), _GLOBAL | STT_FUNC, STO_ENTRY if k.entry else 0, text))
        b.sections[text].info = number
    reserved = b.facts.reserved_shared
    b.symbol(Symbol(".nv.reservedSmem.offset0", reserved, 4, _WEAK | STT_OBJECT))
    b.symbol(Symbol("__nv_reservedSMEM_offset_0_alias", reserved, 0, _WEAK, _RESERVED_ALIAS, places.reserved))
    for name in module.externals:
        b.symbol(Symbol(name, info=_GLOBAL | STT_FUNC))


def _fill_code(b: _Builder, kernels: Sequence[KernelImage], places: _Places, infos: list[int]) -> None:
    """Constant bank symbols, and each kernel's attributes, which name them."""
    for k, text, bank, own in zip(kernels, places.texts, places.constant0, infos, strict=True):
        symbol = b.symbol(Symbol(b.sections[bank].name, info=STT_SECTION, section=bank))
        b.sections[own].info = text
        b.sections[own].data = info.write_attributes(_kernel_attributes(b, k, symbol))


def _param_attribute(p: Param, wide: bool) -> info.Attribute:
    if wide:
        payload = struct.pack("<IHHHBB", 0, p.ordinal, p.offset, p.size, p.log_align, p.space)
        return info.Attribute(info.NUMBERS["KPARAM_INFO_V2"], info.SVAL, payload)
    return info.words("KPARAM_INFO", 0, p.offset << 16 | p.ordinal, p.size << 18 | 0x1F << 12 | p.space << 8 | p.log_align)


def _kernel_attributes(b: _Builder, k: KernelImage, bank: int) -> list[info.Attribute]:
    """In the order ptxas 13.5 writes them."""
    size = _param_size(k)
    wide = size > 4096
    if size > 0xFFFF or (not wide and any(p.size > _MAX_KPARAM_SIZE for p in k.params)):
        raise CubinError(f"kernel {k.name}: parameters of {size} bytes")
    out = [info.words("LANGUAGE", 3), info.words("CUDA_API_VERSION", API_VERSION)]
    out += [_param_attribute(p, wide) for p in sorted(k.params, key=lambda p: -p.ordinal)]
    if k.cluster is not None:
        out.append(info.words("CTA_PER_CLUSTER", *k.cluster))
    out += [info.half("SPARSE_MMA_MASK", 0), info.half("MAXREG_COUNT", k.max_registers)]
    if k.barriers:
        out.append(info.byte("NUM_BARRIERS", k.barriers))
    out.append(info.half(0x5F, 0x0101))
    if k.coop_offsets:
        out.append(info.words("COOP_GROUP_MASK_REGIDS", *(0xFFFFFFFF for _ in k.coop_offsets)))
        out.append(info.words("COOP_GROUP_INSTR_OFFSETS", *k.coop_offsets))
    if b.facts.cta_init_count:
        out.append(info.byte("VRC_CTA_INIT_COUNT", 0))
    if k.exits:
        out.append(info.words("EXIT_INSTR_OFFSETS", *k.exits))
    if k.required_threads is not None:
        out.append(info.words("REQNTID", *k.required_threads))
    elif k.max_threads is not None:
        out.append(info.words("MAX_THREADS", *k.max_threads))
    if k.indirect_targets:
        rows = [word for offset, targets in k.indirect_targets for word in (offset, 0, len(targets), *targets)]
        out.append(info.words("INDIRECT_BRANCH_TARGETS", *rows))
    if k.uses_calls:
        out.append(info.words("CRS_STACK_SIZE", 0xFFFFFFFF if k.stack == 0xFFFFFFFF else 0))
    out.append(info.half("CBANK_PARAM_SIZE", size))
    out.append(info.words("PARAM_CBANK", bank, size << 16 | b.target.constants.params))
    out.append(info.words("SW_WAR", b.facts.sw_war))
    out += k.extra
    out += [info.half("NVSAL_SW_WAR", 1), info.byte("PREEXIT_USED", 0)]
    return out


def _module_attributes(b: _Builder, kernels: Sequence[KernelImage]) -> list[info.Attribute]:
    out = []
    for k in kernels:
        out.append(info.words("REGCOUNT", b.numbers[k.name], k.registers))
        out += [info.words("FRAME_SIZE", b.numbers[name], 0) for name, _, _ in k.functions]
        out.append(info.words("FRAME_SIZE", b.numbers[k.name], k.frame))
    for k in kernels:
        out.append(info.words("MIN_STACK_SIZE", b.numbers[k.name], k.frame if k.stack is None else k.stack))
    return out


def _fill_relocations(
    b: _Builder,
    sections: dict[str, int],
    debug: dict[str, tuple[int, list[Fixup]]],
    kernels: Sequence[KernelImage],
    module: ModuleImage,
    places: _Places,
) -> None:
    work: list[tuple[str, int, Sequence[Fixup]]] = []
    for k, text, bank in zip(kernels, places.texts, places.constant2, strict=True):
        work += [(f".text.{k.name}", text, k.relocations), (f".nv.constant2.{k.name}", bank, k.constant2_relocations)]
    table = [Fixup(8 * i, "R_CUDA_64", name) for i, name in enumerate(module.address_table)]
    work.append((".nv.constant4", places.constant4, table))
    for constant, index in ((True, places.constant3), (False, places.init)):
        moved = [
            Fixup(places.offsets[v.name] + r.offset, r.type, r.symbol, r.addend)
            for v in module.variables if v.constant == constant for r in v.relocations
        ]  # fmt: skip
        work.append((".nv.constant3" if constant else ".nv.global.init", index, moved))
    work += [(name, index, fixups) for name, (index, fixups) in debug.items()]
    for name, index, fixups in work:
        if fixups:
            b.sections[sections[name]].info = index
            b.sections[sections[name]].data = b.resolve(fixups, name)


def _fill_strings(b: _Builder, symtab: int, strings_at: int, names_at: int) -> None:
    strings = _Strings()
    for symbol in b.symbols:
        symbol.name_offset = strings.add(symbol.name)
    b.sections[symtab].data = write_symbols(b.symbols)
    b.sections[symtab].info = len(b.symbols)
    b.sections[strings_at].data = bytes(strings.data)
    names = _Strings()
    for section in b.sections:
        section.name_offset = names.add(section.name)
    b.sections[names_at].data = bytes(names.data)
