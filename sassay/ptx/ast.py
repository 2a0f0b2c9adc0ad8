"""The PTX module as typed values: what the parser gives and everything after it reads.

Names are resolved: a register operand is a `Register` object unique to its function (two of one name in nested scopes are two objects),
a variable is a `Variable`. Types are PTX's own spellings without the dot ("u32", "b64", "f16x2", "pred").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from sassay.errors import Location

TYPE_BITS: dict[str, int] = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "b32": 32, "u32": 32, "s32": 32,
    "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64, "f32x2": 64, "b128": 128,
    "u16x2": 32, "s16x2": 32, "u8x4": 32, "s8x4": 32, "e4m3": 8, "e5m2": 8, "e4m3x2": 16, "e5m2x2": 16, "ue8m0x2": 16,
    "e2m1x2": 8, "e2m3x2": 16, "e3m2x2": 16, "e8m0": 8, "u4": 4, "s4": 4, "b1": 1, "texref": 64, "samplerref": 64, "surfref": 64,
}  # fmt: skip
"""Width in bits of each type."""


@dataclass(eq=False, slots=True)
class Register:
    """A virtual register of a function. `name` keeps the source's spelling; `uid` is unique in the function, in order of declaration."""

    name: str
    type: str
    uid: int
    location: Location | None = None
    vector: int = 1  # elements of a `.v2`/`.v4` register

    @property
    def bits(self) -> int:
        return TYPE_BITS[self.type]


@dataclass(eq=False, slots=True)
class Variable:
    """A variable in a state space: "global", "shared", "local", "const", "param".

    `count` elements of `type` in groups of `vector`; `size` is the byte size (0 for an extern array without bounds); `align` in bytes.
    `init` is the initial image: bytes, with `relocations` (byte offset, symbol, addend, "generic" or "") inside it.
    """

    name: str
    space: str
    type: str
    size: int
    align: int
    vector: int = 1
    dims: tuple[int, ...] = ()
    linkage: str = ""  # "", "extern", "visible", "weak", "common"
    init: bytes | None = None
    relocations: tuple[tuple[int, str, int, str], ...] = ()
    pointer_space: str = ""  # for kernel parameters declared .ptr: "", "generic", "global", "shared", ...
    pointer_align: int = 0
    attributes: tuple[str, ...] = ()
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class RegOperand:
    register: Register
    negated: bool = False  # `!%p1`, `-%r1`
    component: str = ""  # ".x" of a vector register, or ".b0" of a video instruction, without the dot


@dataclass(frozen=True, slots=True)
class IntOperand:
    """An integer immediate; negative ones keep their sign, unsigned literals up to 2**64-1 are kept whole."""

    value: int


@dataclass(frozen=True, slots=True)
class FloatOperand:
    """A float immediate, held as the bits of an f64 (`double=True`: decimal or 0d) or an f32 (0f)."""

    bits: int
    double: bool


@dataclass(frozen=True, slots=True)
class SpecialOperand:
    """A special register: name without `%` ("tid"), component ("x" or "")."""

    name: str
    component: str = ""


@dataclass(frozen=True, slots=True)
class SymbolOperand:
    """The address of a variable or a function, plus an offset."""

    symbol: Variable | Function
    offset: int = 0


@dataclass(frozen=True, slots=True)
class AddressOperand:
    """`[base+offset]`: base is a register, a variable, or None for an absolute address."""

    base: Register | Variable | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class VectorOperand:
    """`{a, b, ...}`; a `_` element is None."""

    elements: tuple[PtxOperand | None, ...]


@dataclass(frozen=True, slots=True)
class PairOperand:
    """`d|p`: two destinations; either may be None for `_`."""

    first: PtxOperand | None
    second: PtxOperand | None


@dataclass(frozen=True, slots=True)
class LabelOperand:
    """A branch target, or the name of a .branchtargets/.calltargets/.callprototype list."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOperand:
    """Call arguments in parentheses."""

    elements: tuple[PtxOperand, ...]


@dataclass(frozen=True, slots=True)
class BracketOperand:
    """A composite address: `[tensorMap, {c0, c1}]` and texture operands `[tex, smp, {x, y}]`."""

    elements: tuple[PtxOperand, ...]


@dataclass(frozen=True, slots=True)
class SinkOperand:
    """`_` as a whole operand."""


PtxOperand: TypeAlias = (
    "RegOperand | IntOperand | FloatOperand | SpecialOperand | SymbolOperand | AddressOperand | VectorOperand | PairOperand"
    " | LabelOperand | ListOperand | BracketOperand | SinkOperand"
)


@dataclass(frozen=True, slots=True)
class Guard:
    register: Register
    negated: bool


@dataclass(eq=False, slots=True)
class Instruction:
    """One PTX instruction: `@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+8];`.

    `opcode` is the first word ("ld"); `modifiers` the rest without dots, in text order ("global", "v2", "u32").
    `key` names the entry of the instruction table it matched.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[PtxOperand, ...]
    guard: Guard | None
    location: Location
    key: str = ""

    @property
    def mnemonic(self) -> str:
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Label:
    name: str
    location: Location


@dataclass(frozen=True, slots=True)
class LineMark:
    """`.loc file line column`, with the inlining context when given."""

    file: int
    line: int
    column: int
    function_name: str = ""
    inlined_at: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class PragmaMark:
    """`.pragma` inside a body."""

    text: str


Statement: TypeAlias = Instruction | Label | LineMark | PragmaMark


@dataclass(frozen=True, slots=True)
class Prototype:
    """`.callprototype`: types of return values and parameters."""

    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]
    noreturn: bool = False


@dataclass(eq=False, slots=True)
class Function:
    """An .entry or .func. `body` is None for a declaration; blocks are flattened and labels made unique within it."""

    name: str
    is_entry: bool
    returns: tuple[Variable, ...] = ()
    params: tuple[Variable, ...] = ()
    body: list[Statement] | None = None
    registers: list[Register] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)  # .local, .shared, .param declared in the body
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    call_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)  # "maxntid": (x, y, z), "maxnreg": (n,), "noreturn": ()
    pragmas: tuple[str, ...] = ()
    linkage: str = ""
    location: Location | None = None


@dataclass(eq=False, slots=True)
class Module:
    version: tuple[int, int]
    target: str
    target_options: tuple[str, ...]
    address_size: int
    variables: list[Variable] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    sections: dict[str, list[str]] = field(default_factory=dict)  # .section bodies (debug), raw lines
    pragmas: tuple[str, ...] = ()
    location: Location | None = None
