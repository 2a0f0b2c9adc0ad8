"""Attributes of .nv.info and .nv.compat: format byte, number, value. Names as cuobjdump 13.5 prints them (probed one by one)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from sassay.errors import CubinError

NAMES: dict[int, str] = {
    0x00: "ERROR", 0x01: "PAD", 0x02: "IMAGE_SLOT", 0x03: "JUMPTABLE_RELOCS", 0x04: "CTAIDZ_USED", 0x05: "MAX_THREADS", 0x06: "IMAGE_OFFSET",
    0x07: "IMAGE_SIZE", 0x08: "TEXTURE_NORMALIZED", 0x09: "SAMPLER_INIT", 0x0A: "PARAM_CBANK", 0x0B: "SMEM_PARAM_OFFSETS",
    0x0C: "CBANK_PARAM_OFFSETS", 0x0D: "SYNC_STACK", 0x0E: "TEXID_SAMPID_MAP", 0x0F: "EXTERNS", 0x10: "REQNTID", 0x11: "FRAME_SIZE",
    0x12: "MIN_STACK_SIZE", 0x13: "SAMPLER_FORCE_UNNORMALIZED", 0x14: "BINDLESS_IMAGE_OFFSETS", 0x15: "BINDLESS_TEXTURE_BANK",
    0x16: "BINDLESS_SURFACE_BANK", 0x17: "KPARAM_INFO", 0x18: "SMEM_PARAM_SIZE", 0x19: "CBANK_PARAM_SIZE", 0x1A: "QUERY_NUMATTRIB",
    0x1B: "MAXREG_COUNT", 0x1C: "EXIT_INSTR_OFFSETS", 0x1D: "S2RCTAID_INSTR_OFFSETS", 0x1E: "CRS_STACK_SIZE", 0x1F: "NEED_CNP_WRAPPER",
    0x20: "NEED_CNP_PATCH", 0x21: "EXPLICIT_CACHING", 0x22: "ISTYPEP_USED", 0x23: "MAX_STACK_SIZE", 0x24: "SUQ_USED",
    0x25: "LD_CACHEMOD_INSTR_OFFSETS", 0x26: "LOAD_CACHE_REQUEST", 0x27: "ATOM_SYS_INSTR_OFFSETS", 0x28: "COOP_GROUP_INSTR_OFFSETS",
    0x29: "COOP_GROUP_MASK_REGIDS", 0x2B: "WMMA_USED", 0x2C: "HAS_PRE_V10_OBJECT", 0x2D: "ATOMF16_EMUL_INSTR_OFFSETS",
    0x2E: "ATOM16_EMUL_INSTR_REG_MAP", 0x2F: "REGCOUNT", 0x31: "INT_WARP_WIDE_INSTR_OFFSETS", 0x32: "SHARED_SCRATCH", 0x33: "STATISTICS",
    0x34: "INDIRECT_BRANCH_TARGETS", 0x36: "SW_WAR", 0x37: "CUDA_API_VERSION", 0x38: "NUM_MBARRIERS", 0x39: "MBARRIER_INSTR_OFFSETS",
    0x3A: "COROUTINE_RESUME_ID_OFFSETS", 0x3B: "SAM_REGION_STACK_SIZE", 0x3C: "PER_REG_TARGET_PERF_STATS", 0x3D: "CTA_PER_CLUSTER",
    0x3E: "EXPLICIT_CLUSTER", 0x3F: "MAX_CLUSTER_RANK", 0x40: "INSTR_REG_MAP", 0x41: "RESERVED_SMEM_USED", 0x42: "RESERVED_SMEM_0_SIZE",
    0x43: "UCODE_SECTION_DATA", 0x44: "UNUSED_LOAD_BYTE_OFFSET", 0x45: "KPARAM_INFO_V2", 0x46: "SYSCALL_OFFSETS", 0x48: "GRAPHICS_GLOBAL_CBANK",
    0x49: "SHADER_TYPE", 0x4A: "VRC_CTA_INIT_COUNT", 0x4B: "TOOLS_PATCH_FUNC", 0x4C: "NUM_BARRIERS", 0x4D: "TEXMODE_INDEPENDENT",
    0x4E: "PERF_STATISTICS", 0x4F: "AT_ENTRY_FRAGMENTS", 0x50: "SPARSE_MMA_MASK", 0x51: "TCGEN05_1CTA_USED", 0x52: "TCGEN05_2CTA_USED",
    0x53: "GEN_ERRBAR_AT_EXIT", 0x54: "REG_RECONFIG", 0x55: "ANNOTATIONS", 0x57: "STACK_CANARY_TRAP_OFFSETS", 0x58: "STUB_FUNCTION_KIND",
    0x59: "LOCAL_CTA_ASYNC_STORE_OFFSETS", 0x5B: "BLOCKS_ARE_CLUSTERS", 0x5C: "SANITIZE", 0x5D: "SYSCALLS_FALLBACK", 0x5E: "CUDA_REQ",
    0x61: "RTCORE_ENTRY", 0x62: "CLUSTER_LAUNCH_CONTROL_USED", 0x64: "MIN_PER_CTA_MEMORY_SIZE", 0x65: "IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS",
    0x66: "LANGUAGE", 0x68: "GRID_ATTRIBUTES", 0x69: "STACK_OFFSET", 0x6A: "RT_LIVESTATE_SASS_MAP", 0x6B: "NVSAL_SW_WAR", 0x6C: "INSTR_OFFSETS",
    0x6D: "PREEXIT_USED",
}  # fmt: skip
COMPAT_NAMES: dict[int, str] = {
    0x00: "ERROR", 0x01: "PAD", 0x02: "ISA_CLASS", 0x03: "INST_TENSORMAP_V1", 0x04: "INST_TCGEN05_MMA_DEPRECATED", 0x05: "INST_TCGEN05_MMA",
    0x06: "ENABLE_OPPORTUNISTIC_FINALIZATION", 0x09: "CUDA_ACCELERATOR_TARGET", 0x0A: "CUDA_DRIVER_VERSION", 0x0B: "CAN_FASTPATH_FINALIZE",
    0x0C: "CUDA_INTERNAL_TARGET", 0x0E: "FINALIZER_VERSION", 0x0F: "MIN_FINALIZER_VERSION_FOR_MVC", 0x10: "ERROR_LAST",
}  # fmt: skip
NUMBERS = {name: number for number, name in NAMES.items()}
COMPAT_NUMBERS = {name: number for number, name in COMPAT_NAMES.items()}

NVAL, BVAL, HVAL, SVAL = 1, 2, 3, 4
OFFSET_LISTS = frozenset({
    "EXIT_INSTR_OFFSETS", "S2RCTAID_INSTR_OFFSETS", "LD_CACHEMOD_INSTR_OFFSETS", "ATOM_SYS_INSTR_OFFSETS", "COOP_GROUP_INSTR_OFFSETS",
    "ATOMF16_EMUL_INSTR_OFFSETS", "INT_WARP_WIDE_INSTR_OFFSETS", "SYSCALL_OFFSETS", "STACK_CANARY_TRAP_OFFSETS",
    "LOCAL_CTA_ASYNC_STORE_OFFSETS", "IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS",
})  # fmt: skip
"""Attributes whose payload is a list of code offsets, a word each."""


@dataclass(slots=True)
class Attribute:
    """One attribute. `payload` is the value's bytes: two for formats 1 to 3 (a BVAL's second byte is padding), any number for SVAL."""

    number: int
    format: int
    payload: bytes

    @property
    def name(self) -> str:
        """cuobjdump's name, or the number in hexadecimal where it has none."""
        return NAMES.get(self.number, f"{self.number:#04x}")

    @property
    def words(self) -> tuple[int, ...]:
        """The payload as 32-bit words; a half word or byte as one number."""
        if self.format != SVAL:
            return (self.payload[0],) if self.format == BVAL else (int.from_bytes(self.payload, "little"),)
        return struct.unpack(f"<{len(self.payload) // 4}I", self.payload[: len(self.payload) // 4 * 4])


def read_attributes(data: bytes, name: str = ".nv.info") -> list[Attribute]:
    """The attributes of a section; CubinError where they do not fill it."""
    out = []
    at = 0
    while at < len(data):
        if at + 4 > len(data) or data[at] not in (NVAL, BVAL, HVAL, SVAL):
            raise CubinError(f"{name}: no attribute at offset {at:#x}")
        kind, number = data[at], data[at + 1]
        if kind == SVAL:
            size = data[at + 2] | data[at + 3] << 8
            if at + 4 + size > len(data):
                raise CubinError(f"{name}: the attribute at offset {at:#x} is longer than the section")
            out.append(Attribute(number, kind, data[at + 4 : at + 4 + size]))
            at += 4 + size
        else:
            out.append(Attribute(number, kind, data[at + 2 : at + 4]))
            at += 4
    return out


def write_attributes(attributes: list[Attribute]) -> bytes:
    """The section's bytes."""
    out = bytearray()
    for a in attributes:
        out += bytes((a.format, a.number))
        if a.format == SVAL:
            if len(a.payload) > 0xFFFF:
                raise CubinError(f"attribute {a.name} has {len(a.payload)} bytes; 65535 is the most")
            out += len(a.payload).to_bytes(2, "little")
        out += a.payload
    return bytes(out)


def words(name: str, *values: int) -> Attribute:
    """An SVAL attribute of 32-bit words."""
    return Attribute(NUMBERS[name], SVAL, struct.pack(f"<{len(values)}I", *values))


def half(name: str | int, value: int) -> Attribute:
    """An HVAL attribute."""
    return Attribute(NUMBERS[name] if isinstance(name, str) else name, HVAL, value.to_bytes(2, "little"))


def byte(name: str, value: int) -> Attribute:
    """A BVAL attribute."""
    return Attribute(NUMBERS[name], BVAL, bytes((value, 0)))
