"""A cubin as its readers see it: kernels with their code, parameters and limits, module data, symbols, relocations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from sassay.cubin.elf import SHT_REL, SHT_RELA, Elf, Section, Symbol, read_elf, read_relocations, read_symbols
from sassay.cubin.info import Attribute, read_attributes
from sassay.errors import CubinError
from sassay.isa.target import TARGETS, Target

STO_ENTRY = 0x10
STT_OBJECT, STT_FUNC, STT_SECTION = 1, 2, 3

RELOCATIONS: dict[int, str] = {
    2: "R_CUDA_64", 4: "R_CUDA_G64", 35: "R_CUDA_FUNC_DESC_64", 55: "R_CUDA_ABS32_32", 56: "R_CUDA_ABS32_LO_32", 57: "R_CUDA_ABS32_HI_32",
    58: "R_CUDA_ABS47_34", 59: "R_CUDA_ABS16_32", 62: "R_CUDA_FUNC_DESC32_LO_32", 63: "R_CUDA_FUNC_DESC32_HI_32",
    64: "R_CUDA_CONST_FIELD19_40", 66: "R_CUDA_CONST_FIELD21_38", 68: "R_CUDA_YIELD_OPCODE9_0", 69: "R_CUDA_YIELD_CLEAR_PRED4_87",
    74: "R_CUDA_ABS24_40", 75: "R_CUDA_ABS55_16_34", 114: "R_CUDA_ABS56_16_34", 115: "R_CUDA_CONST_FIELD22_37",
}  # fmt: skip
"""Names of relocation types, from cuobjdump's listings and documents on module loading; unknown ones read as numbers."""
RELOCATION_NUMBERS = {name: number for number, name in RELOCATIONS.items()}


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter: `offset` from the parameter base, both in bytes; `space` and `align` (log2) of a pointer's target."""

    ordinal: int
    offset: int
    size: int
    space: int = 0
    log_align: int = 0


@dataclass(frozen=True, slots=True)
class Fixup:
    """A relocation with names: `type` is a key of RELOCATION_NUMBERS (or a number as text), `symbol` a symbol's name."""

    offset: int
    type: str
    symbol: str
    addend: int = 0


@dataclass(slots=True)
class Kernel:
    """One entry function, or a device function with a section of its own (`entry` False)."""

    name: str
    section: int
    symbol: int
    entry: bool
    code: bytes
    registers: int = 0
    params: tuple[Param, ...] = ()
    param_base: int = 0
    param_size: int = 0
    shared: int = 0
    """Static shared memory, bytes, with the reserved kilobyte that chips from sm_90 count in."""
    frame: int = 0
    """Stack frame in local memory, bytes a thread."""
    stack: int = 0
    """Least stack of the call tree; 0xffffffff where it has no bound."""
    barriers: int = 0
    max_threads: tuple[int, ...] = ()
    required_threads: tuple[int, ...] = ()
    cluster: tuple[int, ...] = ()
    exits: tuple[int, ...] = ()
    attributes: list[Attribute] = field(default_factory=list)
    relocations: tuple[Fixup, ...] = ()
    functions: tuple[Symbol, ...] = ()
    """Function symbols in the same section, the entry itself included; value is the code offset."""


class Cubin:
    """A cubin file. `elf` is the whole content; the properties are views computed on first use."""

    def __init__(self, elf: Elf) -> None:
        self.elf = elf

    def to_bytes(self) -> bytes:
        """The file's bytes, unchanged ones if nothing was changed."""
        return self.elf.to_bytes()

    @cached_property
    def sm(self) -> int:
        """The chip number, 90 for sm_90, from the ELF flags of either ABI generation."""
        flags = self.elf.flags
        return flags >> 8 & 0xFF if self.elf.os_abi == 0x41 else flags & 0xFF

    @cached_property
    def accelerated(self) -> bool:
        """Whether it was made for the `a` target: .nv.compat says so since CUDA 13, bit 3 of the flags before."""
        section = self.elf.section(".nv.compat")
        if section is not None:
            for attribute in read_attributes(section.data, section.name):
                if attribute.number == 9:
                    return attribute.payload[:1] == b"\x01"
        return bool(self.elf.flags & 8) if self.elf.os_abi == 0x41 else False

    @cached_property
    def target_name(self) -> str:
        return f"sm_{self.sm}{'a' if self.accelerated else ''}"

    @property
    def target(self) -> Target:
        """The target; CubinError for chips without tables."""
        try:
            return TARGETS[self.target_name]
        except KeyError:
            raise CubinError(f"no tables for {self.target_name}") from None

    @cached_property
    def symbols(self) -> list[Symbol]:
        section = self.elf.section(".symtab")
        return read_symbols(self.elf, section) if section is not None else []

    def section_data(self, name: str) -> bytes | None:
        """Content of the section of that name (zeros for one without file content), None if there is none."""
        section = self.elf.section(name)
        if section is None:
            return None
        if section.fileless and section.size > 1 << 28:
            raise CubinError(f"{name} has {section.size} bytes")
        return bytes(section.size) if section.fileless else section.data

    def constant_bank(self, bank: int, kernel: str = "") -> bytes:
        """Initial content of a constant bank: a kernel's own section, else the module's; empty if neither is there."""
        own = self.section_data(f".nv.constant{bank}.{kernel}") if kernel else None
        return own if own is not None else self.section_data(f".nv.constant{bank}") or b""

    def relocations(self, name: str) -> tuple[Fixup, ...]:
        """Relocations that apply to the section of that name."""
        out: list[Fixup] = []
        for section in self.elf.sections:
            if section.type in (SHT_REL, SHT_RELA) and section.name in (f".rela{name}", f".rel{name}"):
                for r in read_relocations(section):
                    if r.symbol >= len(self.symbols):
                        raise CubinError(f"{section.name} names symbol {r.symbol} of {len(self.symbols)}")
                    symbol = self.symbols[r.symbol]
                    label = symbol.name
                    if not label and symbol.section < len(self.elf.sections):
                        label = self.elf.sections[symbol.section].name
                    out.append(Fixup(r.offset, RELOCATIONS.get(r.type, str(r.type)), label, r.addend or 0))
        return tuple(out)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """Functions with a code section of their own, by name, in order of section."""
        module = self.elf.section(".nv.info")
        attributes = read_attributes(module.data) if module is not None else []
        out: dict[str, Kernel] = {}
        for index, section in enumerate(self.elf.sections):
            if section.name.startswith(".text.") and not section.flags & 0x10000000:
                name = section.name[6:]
                out[name] = self._kernel(name, index, section, attributes)
        return out

    def kernel(self, name: str | None = None) -> Kernel:
        """The kernel of that name, or the only entry if no name is given."""
        if name is None:
            entries = [kernel for kernel in self.kernels.values() if kernel.entry]
            if len(entries) != 1:
                raise CubinError(f"name one of the {len(entries)} kernels: {', '.join(k.name for k in entries)}")
            return entries[0]
        found = self.kernels.get(name)
        if found is None:
            raise CubinError(f"no kernel '{name}'; there are {', '.join(self.kernels) or 'none'}")
        return found

    def _kernel(self, name: str, index: int, section: Section, module: list[Attribute]) -> Kernel:
        functions = tuple(symbol for symbol in self.symbols if symbol.section == index and symbol.type == STT_FUNC)
        number = next((i for i, s in enumerate(self.symbols) if s.section == index and s.type == STT_FUNC and s.name == name), 0)
        entry = bool(self.symbols[number].other & STO_ENTRY) if self.symbols else False
        kernel = Kernel(name, index, number, entry, section.data, functions=functions, relocations=self.relocations(section.name))
        kernel.registers = section.info >> 24
        for attribute in module:
            values = attribute.words
            if len(values) == 2 and values[0] == number:
                if attribute.name == "REGCOUNT":
                    kernel.registers = values[1]
                elif attribute.name == "FRAME_SIZE":
                    kernel.frame = values[1]
                elif attribute.name == "MIN_STACK_SIZE":
                    kernel.stack = values[1]
        shared = self.elf.section(f".nv.shared.{name}")
        kernel.shared = shared.length if shared is not None else 0
        own = self.elf.section(f".nv.info.{name}")
        if own is not None:
            kernel.attributes = read_attributes(own.data, own.name)
            _apply(kernel)
        return kernel

    @cached_property
    def not_understood(self) -> list[str]:
        """Parts carried byte for byte without being understood, one line each."""
        out = []
        for section in self.elf.sections:
            if section.flags & 0x10000000 or section.name.startswith((".nv.capmerc", ".nv.merc")):
                out.append(f"section {section.name}: capsule data, {section.length} bytes")
            elif not _known(section.name):
                out.append(f"section {section.name}: type {section.type:#x}, {section.length} bytes")
        for kernel in self.kernels.values():
            unnamed = sorted({a.name for a in kernel.attributes if a.name.startswith("0x")})
            if unnamed:
                out.append(f"kernel {kernel.name}: attributes {', '.join(unnamed)}")
        return out


_KNOWN_PREFIXES = (
    ".shstrtab", ".strtab", ".symtab", ".debug_", ".note.nv.", ".nv.info", ".nv.compat", ".nv.callgraph", ".rela.", ".rel.", ".nv.constant",
    ".text.", ".nv.global", ".nv.shared", ".nv_debug", ".nv.rel.action", ".rela",
)  # fmt: skip


def _known(name: str) -> bool:
    return not name or name.startswith(_KNOWN_PREFIXES)


def _apply(kernel: Kernel) -> None:
    """Take what a kernel's attributes say."""
    params: list[Param] = []
    for attribute in kernel.attributes:
        values = attribute.words
        match attribute.name:
            case "KPARAM_INFO" if len(values) == 3:
                word = values[2]
                params.append(Param(values[1] & 0xFFFF, values[1] >> 16, word >> 18, word >> 8 & 15, word & 0xFF))
            case "KPARAM_INFO_V2" if len(values) == 3:
                params.append(Param(values[1] & 0xFFFF, values[1] >> 16, values[2] & 0xFFFF, values[2] >> 24, values[2] >> 16 & 0xFF))
            case "EXIT_INSTR_OFFSETS":
                kernel.exits = values
            case "CBANK_PARAM_SIZE":
                kernel.param_size = values[0]
            case "PARAM_CBANK" if len(values) == 2:
                kernel.param_base = values[1] & 0xFFFF
            case "NUM_BARRIERS":
                kernel.barriers = values[0]
            case "MAX_THREADS":
                kernel.max_threads = values
            case "REQNTID":
                kernel.required_threads = values
            case "CTA_PER_CLUSTER":
                kernel.cluster = values
    kernel.params = tuple(sorted(params, key=lambda p: p.ordinal))


def read(data: bytes) -> Cubin:
    """Read a cubin; CubinError for anything that is not a well-formed one. `read(data).to_bytes() == data`."""
    cubin = Cubin(read_elf(data))
    _ = cubin.kernels, cubin.target_name  # reports malformed symbols, attributes and relocations now and not on first use
    return cubin
