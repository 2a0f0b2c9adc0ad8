"""Where a PTX module's variables lie when the interpreter runs one of its entries."""

from __future__ import annotations

from dataclasses import dataclass, field

from sassay.ptx.ast import Function, Module, Variable


@dataclass(slots=True)
class Layout:
    """Byte offsets of parameters, shared and local variables; variables that live in global memory (.global and .const)."""

    parameters: dict[str, int] = field(default_factory=dict)
    parameter_bytes: int = 0
    shared: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    dynamic_bytes: int = 0
    local: dict[str, int] = field(default_factory=dict)
    local_bytes: int = 0
    globals: list[Variable] = field(default_factory=list)


def lay_out(module: Module, function: Function, dynamic_bytes: int) -> Layout:
    """In order of declaration, each at its alignment; extern shared arrays start after the static ones."""
    layout = Layout(dynamic_bytes=dynamic_bytes)
    for parameter in function.params:
        layout.parameter_bytes = _place(layout.parameters, parameter, layout.parameter_bytes)
    variables = [*module.variables, *function.variables]
    for other in module.functions:
        if other is not function:
            variables += [v for v in other.variables if v.space in ("shared", "global", "const")]
    dynamic: list[Variable] = []
    for variable in variables:
        if variable.space == "shared" and variable.linkage == "extern":
            dynamic.append(variable)
        elif variable.space == "shared":
            layout.shared_bytes = _place(layout.shared, variable, layout.shared_bytes)
        elif variable.space == "local":
            layout.local_bytes = _place(layout.local, variable, layout.local_bytes)
        elif variable.space in ("global", "const"):
            layout.globals.append(variable)
    start = (layout.shared_bytes + 15) // 16 * 16
    for variable in dynamic:
        layout.shared[variable.name] = start
    layout.shared_bytes = start + dynamic_bytes if dynamic else layout.shared_bytes
    return layout


def _place(table: dict[str, int], variable: Variable, offset: int) -> int:
    offset = (offset + variable.align - 1) // variable.align * variable.align
    table[variable.name] = offset
    return offset + variable.size
