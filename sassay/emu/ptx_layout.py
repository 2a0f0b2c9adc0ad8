"""Where a PTX module's variables lie when the interpreter runs one of its entries."""

from __future__ import annotations

from dataclasses import dataclass, field

from sassay.ptx.ast import Function, Instruction, Module, Variable

CALL_STACK = 16384
"""Bytes of local memory a lane gets beyond the entry's own variables where it may call functions or allocate on the stack."""


@dataclass(slots=True)
class Layout:
    """Byte offsets of the entry's parameters, of shared variables, and of local variables in their function's frame."""

    parameters: dict[Variable, int] = field(default_factory=dict)
    parameter_bytes: int = 0
    shared: dict[Variable, int] = field(default_factory=dict)
    shared_bytes: int = 0
    dynamic_bytes: int = 0
    local: dict[Variable, int] = field(default_factory=dict)
    frames: dict[Function, int] = field(default_factory=dict)
    """Bytes of each function's local variables."""
    local_bytes: int = 0
    """Bytes of local memory of one lane."""
    globals: list[Variable] = field(default_factory=list)
    """Variables that live in global memory (.global and .const)."""


def lay_out(module: Module, function: Function, dynamic_bytes: int) -> Layout:
    """In order of declaration, each at its alignment; extern shared arrays start after the static ones."""
    layout = Layout(dynamic_bytes=dynamic_bytes)
    for parameter in function.params:
        layout.parameter_bytes = _place(layout.parameters, parameter, layout.parameter_bytes)
    functions = [function, *(f for f in module.functions if not f.is_entry and f.body is not None)]
    dynamic: list[Variable] = []
    for variable in [*module.variables, *(v for f in functions for v in f.variables)]:
        if variable.space == "shared" and variable.linkage == "extern":
            dynamic.append(variable)
        elif variable.space == "shared":
            layout.shared_bytes = _place(layout.shared, variable, layout.shared_bytes)
        elif variable.space in ("global", "const"):
            layout.globals.append(variable)
    start = (layout.shared_bytes + 15) // 16 * 16
    for variable in dynamic:
        layout.shared[variable] = start
    layout.shared_bytes = start + dynamic_bytes if dynamic else layout.shared_bytes
    _local(layout, module, function, functions)
    return layout


def _local(layout: Layout, module: Module, entry: Function, functions: list[Function]) -> None:
    """Local variables: the module's and the entry's first, other functions' from the start of their frames."""
    for function in functions:
        variables = [*module.variables, *function.variables] if function is entry else function.variables
        size = 0
        for variable in variables:
            if variable.space == "local":
                size = _place(layout.local, variable, size)
        layout.frames[function] = (size + 15) // 16 * 16
    grows = any(s.opcode in ("call", "alloca") for f in functions for s in f.body or () if isinstance(s, Instruction))
    layout.local_bytes = layout.frames[entry] + (CALL_STACK if grows else 0)


def _place(table: dict[Variable, int], variable: Variable, offset: int) -> int:
    offset = (offset + variable.align - 1) // variable.align * variable.align
    table[variable] = offset
    return offset + variable.size
