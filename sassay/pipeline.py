"""The compiler's passes in order, from PTX text to a cubin, with one place that dumps the program after each."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sassay.cubin.build import KernelImage, ModuleImage, Variable, build
from sassay.cubin.lines import LineRow
from sassay.cubin.model import Fixup, Param
from sassay.errors import UnsupportedError
from sassay.isa.target import Target, target
from sassay.ptx import ast as ptx
from sassay.regalloc import AllocationOptions, allocate
from sassay.regalloc.copies import coalesce_copies, fold_guarded_copies
from sassay.regalloc.reloads import drop_reloads
from sassay.sass.cfg import WORD
from sassay.sass.codec import encode
from sassay.sass.function import Function, Node
from sassay.sass.model import ALWAYS, R_ZERO, UR_ZERO, Const, File, Imm, Instruction, Reg
from sassay.sass.text import format_control, format_instruction
from sassay.sched import schedule_final, schedule_virtual
from sassay.sched.layout import Layout, drop_empty, flatten, merge_chains

ADDRESS_BANK = 4
PASSES = ("isel", "schedule", "allocate", "finish", "layout")
"""Names that `dump_after` takes."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """`level`: 0 (straight and serial) or 3; `serial`: program order, every instruction waits; `force_spill`: registers live in local memory."""

    level: int = 3
    serial: bool = False
    force_spill: bool = False
    max_registers: int | None = None
    line_info: bool = False
    """Write a line table from the PTX's .loc directives."""
    dump_after: frozenset[str] = frozenset()
    dump: Callable[[str], None] | None = None
    """Takes the text of a dump; standard error by default."""


@dataclass(slots=True)
class KernelReport:
    """What became of one kernel. `registers` as the launch counts them; `seconds`: CPU time per pass."""

    name: str
    instructions: int = 0
    registers: int = 0
    spill_bytes: tuple[int, int] = (0, 0)
    frame: int = 0
    shared: int = 0
    barriers: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    witness: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class CompileResult:
    """The cubin's bytes, reports by kernel name, and CPU seconds of the passes over the whole module."""

    cubin: bytes
    target: Target
    kernels: dict[str, KernelReport]
    seconds: dict[str, float]


class _Clock:
    """Adds up CPU time by pass name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._at = time.process_time()

    def lap(self, name: str) -> None:
        now = time.process_time()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._at
        self._at = now


def compile_ptx(text: str, target_name: str, options: CompileOptions | None = None, *, file: str = "<ptx>") -> CompileResult:
    """Compiles PTX text. SassayError subclasses report what is wrong with it, or cannot be handled."""
    from sassay.ptx.parser import parse

    target(target_name)
    clock = _Clock()
    module = parse(text, file, target=target_name)
    clock.lap("parse")
    result = compile_module(module, target_name, options)
    result.seconds = clock.seconds | result.seconds
    return result


def compile_module(module: ptx.Module, target_name: str, options: CompileOptions | None = None) -> CompileResult:
    """`compile_ptx` for a module already parsed, or made by a program."""
    options = options or CompileOptions()
    chip = target(target_name)
    clock = _Clock()
    images: list[KernelImage] = []
    reports: dict[str, KernelReport] = {}
    addresses: dict[tuple[str, int], int] = {}
    for function in module.functions:
        if function.is_entry and function.body is not None:
            image, report = _kernel(module, function, chip, options, addresses)
            images.append(image)
            reports[report.name] = report
            for name, seconds in report.seconds.items():
                clock.seconds[name] = clock.seconds.get(name, 0.0) + seconds
    clock.lap("kernels")
    clock.seconds.pop("kernels")
    whole = module_image(module, addresses)
    if options.line_info and any(image.lines for image in images):
        whole.files = [module.files[number] for number in sorted(module.files)]
    data = build(chip, images, whole, arguments=f"-arch {target_name}")
    clock.lap("cubin")
    return CompileResult(data, chip, reports, clock.seconds)


def module_image(module: ptx.Module, table: dict[tuple[str, int], int]) -> ModuleImage:
    """Module variables, and the table of addresses (symbol, addend) -> offset in bank 4 that the kernels asked for."""
    variables = []
    for v in module.variables:
        if v.space in ("global", "const") and v.linkage != "extern":
            fixups = [Fixup(offset, "R_CUDA_64", symbol, addend) for offset, symbol, addend, _ in v.relocations]
            data = v.init if v.init is None or len(v.init) == v.size else v.init + bytes(v.size - len(v.init))
            variables.append(Variable(v.name, v.size, v.align, data, v.space == "const", v.linkage in ("visible", "weak", "common"), fixups))
    for name, addend in table:
        if addend:
            raise UnsupportedError(f"the address of {name} plus {addend} in the table of addresses")
    return ModuleImage(variables=variables, address_table=[name for name, _ in table])


def _rebase_addresses(fn: Function, table: dict[tuple[str, int], int]) -> None:
    """Moves a function's own slots in the table of addresses (bank 4) to those of the module's, in place."""
    own = fn.notes.get("address_table")
    if not isinstance(own, dict):
        return
    moved = {offset: table.setdefault(key, 8 * len(table)) for key, offset in own.items()}
    if all(a == b for a, b in moved.items()):
        return
    for block in fn.blocks:
        for node in block.nodes:
            new = [
                replace(o, offset=moved[o.offset & ~7] + (o.offset & 7)) if isinstance(o, Const) and o.bank == ADDRESS_BANK else o
                for o in node.instruction.operands
            ]
            node.instruction = replace(node.instruction, operands=tuple(new))


_CONSTANT_LOADS = {"LDC": R_ZERO, "LDCU": UR_ZERO}


def _spell_constant_loads(fn: Function) -> None:
    """nvdisasm's spelling of LDC and LDCU: the index register, where there is none, shows (as RZ) exactly when the offset is zero. In place."""
    for block in fn.blocks:
        for node in block.nodes:
            zero = _CONSTANT_LOADS.get(node.instruction.opcode)
            if zero is None:
                continue
            operands = tuple(
                [
                    replace(o, base=None if o.offset else zero) if isinstance(o, Const) and (o.base is None or o.base.is_zero) else o
                    for o in node.instruction.operands
                ]
            )
            node.instruction = replace(node.instruction, operands=operands)


def _kernel(
    module: ptx.Module, function: ptx.Function, chip: Target, options: CompileOptions, addresses: dict[tuple[str, int], int]
) -> tuple[KernelImage, KernelReport]:
    from sassay.isel import select
    from sassay.isel.build import Options as SelectOptions

    clock = _Clock()
    serial = options.serial or options.level == 0
    fn = select(module, function, chip, SelectOptions(level=options.level))
    _rebase_addresses(fn, addresses)
    _spell_constant_loads(fn)
    clock.lap("isel")
    _dump(fn, "isel", options)
    drop_empty(fn)
    if not serial:
        merge_chains(fn)
        fold_guarded_copies(fn)
        coalesce_copies(fn)
        schedule_virtual(fn, options.max_registers)
        _dump(fn, "schedule", options)
    clock.lap("schedule")
    allocate(fn, AllocationOptions(options.max_registers, options.force_spill))
    drop_reloads(fn)
    clock.lap("allocate")
    add_prologue(fn)
    drop_empty(fn)
    _dump(fn, "allocate", options)
    schedule_final(fn, serial=serial)
    clock.lap("finish")
    _dump(fn, "finish", options)
    layout = flatten(fn)
    code = encode(layout.instructions, chip)
    clock.lap("encode")
    image = _image(fn, layout, code)
    if options.line_info:
        image.lines = _line_rows(layout, module)
    count = sum(1 for n in layout.nodes if n is not None)
    report = KernelReport(
        fn.name, count, image.registers, fn.spill_bytes, fn.frame_size, fn.shared_size, fn.barriers, clock.seconds,
        {"blocks": layout.starts, "registers": fn.notes.get("registers"), "values": fn.notes.get("witness")},
    )  # fmt: skip
    return image, report


def add_prologue(fn: Function) -> None:
    """R1 as the top of the stack less the frame, at the very start of kernels that have one, whether or not the selector has set it up already."""
    if not fn.is_entry or not fn.frame_size:
        return
    fn.frame_size = (fn.frame_size + 15) // 16 * 16
    stack = Reg(File.R, 1)
    nodes = [n for n in fn.blocks[0].nodes if n.instruction.operands[:1] != (stack,)]
    load = Node(Instruction("LDC", (), (stack, Const(0, fn.target.constants.stack_top))))
    preds = (ALWAYS, ALWAYS) if fn.target.has("iadd3_preds") else ()
    adjust = Node(Instruction("IADD3", (), (stack, *preds, stack, Imm(-fn.frame_size), R_ZERO)))
    fn.blocks[0].nodes = [load, adjust, *nodes]
    fn.registers_used = max(fn.registers_used, 2)


def _image(fn: Function, layout: Layout, code: bytes) -> KernelImage:
    fixups = [
        Fixup(16 * i, n.relocation.kind, n.relocation.symbol, n.relocation.addend)
        for i, n in enumerate(layout.nodes)
        if n is not None and n.relocation is not None
    ]
    coop = [16 * i for i, instr in enumerate(layout.instructions) if instr.opcode == "SHFL"]
    params = [Param(i, offset, size) for i, (offset, size, _) in enumerate(fn.params)]
    return KernelImage(
        fn.name, code, min(255, max(fn.registers_used, 2) + 2), params, fn.params_size or None, shared=fn.shared_size, frame=fn.frame_size,
        barriers=fn.barriers, exits=layout.exits, max_threads=fn.max_threads, required_threads=fn.required_threads, relocations=fixups,
        coop_offsets=coop, uses_calls=any(i.opcode in ("BSSY", "CALL") for i in layout.instructions),
    )  # fmt: skip


def _line_rows(layout: Layout, module: ptx.Module) -> list[LineRow]:
    """Where the source line changes. Files are numbered in order of their numbers in the PTX, from 1."""
    numbers = {number: index for index, number in enumerate(sorted(module.files), start=1)}
    rows: list[LineRow] = []
    for i, node in enumerate(layout.nodes):
        if node is not None and node.line is not None and node.line[0] in numbers:
            row = LineRow(WORD * i, numbers[node.line[0]], node.line[1])
            if not rows or (rows[-1].file, rows[-1].line) != (row.file, row.line):
                rows.append(row)
    return rows


def dump(fn: Function) -> str:
    """The program as text: blocks with labels, every instruction behind its control code."""
    lines = [f"// {fn.name}: {fn.registers_used} registers, frame {fn.frame_size}"]
    for block in fn.blocks:
        lines.append(f"{block.label}:  // -> {', '.join(block.successors)}")
        lines.extend(f"  {format_control(n.instruction.control)} {format_instruction(n.instruction)};" for n in block.nodes)
    return "\n".join(lines) + "\n"


def _dump(fn: Function, name: str, options: CompileOptions) -> None:
    if name in options.dump_after:
        text = f"// after {name}\n{dump(fn)}"
        if options.dump is not None:
            options.dump(text)
        else:
            sys.stderr.write(text)


def check_passes(names: frozenset[str]) -> None:
    """UnsupportedError for a pass that `dump_after` does not know."""
    unknown = sorted(names - set(PASSES))
    if unknown:
        raise UnsupportedError(f"no pass named {', '.join(unknown)}; there are {', '.join(PASSES)}")
