"""Line programs (DWARF .debug_line and .nv_debug_line_sass) as text whose addresses are labels, so that tables move along with code.

Only address steps are spelt out; everything else stays as bytes. Steps keep their opcode where it still fits. ptxas writes the operand of an
advance in signed LEB128 (64 takes two bytes), which `line_advance` does too; `line_advance_u` is the unsigned form.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from sassay.cubin.frames import sleb, uleb
from sassay.errors import CubinError

_MAX_ADVANCE = 1 << 40


@dataclass(frozen=True, slots=True)
class Shape:
    """What a line program's header says of its special opcodes."""

    minimum: int
    base: int
    range: int
    opcodes: int
    lengths: bytes


def _read_uleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise CubinError("a number runs past the line program")
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def _header(data: bytes, at: int) -> tuple[Shape, int, int]:
    """(shape, start of the program, end of the unit) of the unit at that offset."""
    length, version, header = struct.unpack_from("<IHI", data, at)
    end, start = at + 4 + length, at + 10 + header
    if not 2 <= version <= 3 or end > len(data) or start > end:
        raise CubinError("not a line program of DWARF 2 or 3")
    minimum, _, base, span, opcodes = struct.unpack_from("<BBbBB", data, at + 10)
    if not minimum or not span or not opcodes or at + 15 + opcodes - 1 > start:
        raise CubinError("a malformed line program header")
    return Shape(minimum, base, span, opcodes, data[at + 15 : at + 15 + opcodes - 1]), start, end


def to_text(data: bytes, bases: dict[int, str], label: Callable[[str, int], str]) -> list[str]:
    """The section as directives. `bases` maps the offset of a relocated address to the code section it points into; `label` names an offset of
    such a section. CubinError where the section is no chain of line programs."""
    out: list[str] = []
    at = 0
    while at < len(data):
        try:
            shape, start, end = _header(data, at)
        except struct.error:
            raise CubinError("a truncated line program header") from None
        out.append(f".lines {shape.minimum} {shape.base} {shape.range} {shape.opcodes}")
        out += _hex(data[at + 4 : start])
        out += _program(data, start, end, shape, bases, label)
        out.append(".end_lines")
        at = end
    return out


def _hex(data: bytes) -> list[str]:
    return [f".hex {data[i : i + 32].hex()}" for i in range(0, len(data), 32)]


def _program(data: bytes, at: int, end: int, shape: Shape, bases: dict[int, str], label: Callable[[str, int], str]) -> list[str]:
    out: list[str] = []
    plain = bytearray()
    section, address = "", 0

    def step(kind: str, delta: int, tail: str = "") -> None:
        nonlocal address
        out.extend(_hex(bytes(plain)))
        plain.clear()
        if section:
            out.append(f".{kind} {label(section, address + delta)}-{label(section, address)}{tail}")
        else:
            out.append(f".{kind} {delta:#x}{tail}")
        address += delta

    while at < end:
        op = data[at]
        if op >= shape.opcodes:
            ahead, line = divmod(op - shape.opcodes, shape.range)
            step("line_special", ahead * shape.minimum, f" {line + shape.base}")
            at += 1
        elif op == 0:
            size, body = _read_uleb(data, at + 1)
            if body + size > end or not size:
                raise CubinError("an extended opcode runs past the line program")
            if data[body] == 2:
                section, address = bases.get(body + 1, ""), 0
                if section and any(data[body + 1 : body + size]):
                    raise CubinError("a relocated address that is not zero")
            plain += data[at : body + size]
            at = body + size
        elif op == 2:
            value, after = _read_uleb(data, at + 1)
            if value > _MAX_ADVANCE or data[at + 1 : after] not in (sleb(value), uleb(value)):
                raise CubinError(f"an address step of a strange form at {at:#x}")
            step("line_advance" if sleb(value) == data[at + 1 : after] else "line_advance_u", value * shape.minimum)
            at = after
        elif op == 8:
            step("line_constant", (255 - shape.opcodes) // shape.range * shape.minimum)
            at += 1
        elif op == 9:
            raise CubinError("a fixed address step")
        else:
            after = at + 1
            for _ in range(shape.lengths[op - 1]):
                _, after = _read_uleb(data, after)
            plain += data[at:after]
            at = after
    out.extend(_hex(bytes(plain)))
    return out


def encode_step(kind: str, delta: int, line: int, shape: Shape) -> bytes:
    """The opcodes of a step of `delta` bytes (and, for a special one, `line` lines): the kind asked for where it fits."""
    if delta < 0 or delta % shape.minimum:
        raise CubinError(f"a line table cannot step by {delta} bytes")
    units = delta // shape.minimum
    advance = b"\x02" + (uleb(units) if kind == "line_advance_u" else sleb(units))
    if kind in ("line_advance", "line_advance_u"):
        return advance
    if kind == "line_constant":
        return b"\x08" if units == (255 - shape.opcodes) // shape.range else advance
    special = units * shape.range + line - shape.base + shape.opcodes
    if shape.opcodes <= special <= 255:
        return bytes((special,))
    in_place = line - shape.base + shape.opcodes
    if not shape.opcodes <= in_place <= 255:
        raise CubinError(f"no special opcode steps by {line} lines")
    return advance + bytes((in_place,))
