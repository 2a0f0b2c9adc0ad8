"""Who may import whom, read off the sources, and what must not load before it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "sassay"

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "isa": set(),
    "sass": {"isa"},
    "ptx": {"isa"},
    "cubin": {"sass", "isa"},
    "isel": {"sass", "ptx", "isa"},
    "regalloc": {"sass", "ptx", "isa"},
    "sched": {"sass", "ptx", "isa"},
    "emu": {"cubin", "sass", "ptx", "isa"},
    "verify": {"cubin", "sass", "ptx", "isa", "emu"},
    "runtime": {"cubin", "emu", "isa"},
    "bench": {"runtime", "sass", "cubin", "isa"},
    "pipeline": {"isel", "sched", "regalloc", "cubin", "sass", "ptx", "isa"},
    "sassay": {"pipeline", "cubin", "verify", "emu", "runtime", "ptx", "isa"},
    "cli": {"sassay", "pipeline", "cubin", "sass", "isa", "runtime", "bench"},
    "ptxas_options": set(),
    "ptxas_cli": {"sassay", "pipeline", "ptxas_options", "ptx", "verify", "isa"},
}
"""Packages each package may import, itself and `errors` aside. `cli` also asks the parts it prints."""

LAZY = {"z3", "bitwuzla", "networkx", "cuda", "matplotlib", "rich"}
"""Modules that may load only inside functions."""


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py"))


def room(path: Path) -> str:
    """The package a source file belongs to: the first name under sassay/."""
    relative = path.relative_to(ROOT)
    return "sassay" if relative.name == "__init__.py" and len(relative.parts) == 1 else relative.parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    """Dotted names that any import statement, at any depth, asks for."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {f"{node.module}.{alias.name}" if node.module == "sassay" else node.module for alias in node.names}
    return names


def at_import_time(tree: ast.Module) -> set[str]:
    """Modules imported when the module itself is, TYPE_CHECKING blocks left out."""
    names: set[str] = set()
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ClassDef)):
            todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_layers(path: Path) -> None:
    tree = ast.parse(path.read_text())
    here = room(path)
    assert here in ALLOWED, f"{here} has no place in the layering"
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.ImportFrom) and node.level), "relative imports hide layers"
    for name in imported(tree):
        parts = name.split(".")
        if parts[0] != "sassay":
            continue
        other = parts[1] if (len(parts) > 1 and (ROOT / parts[1]).exists()) or (len(parts) > 1 and (ROOT / f"{parts[1]}.py").exists()) else "sassay"
        if other == here or other == "errors" or (other == "sassay" and here == "bench"):
            continue
        assert other in ALLOWED[here], f"{here} may not import {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_heavy_modules_are_lazy(path: Path) -> None:
    heavy = {name.split(".")[0] for name in at_import_time(ast.parse(path.read_text()))} & LAZY
    if room(path) in ("sass", "sched") and heavy == {"networkx"}:
        pytest.skip("the graph modules are themselves loaded on demand")
    assert not heavy


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT.parent, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("statement", ["import sassay", "import sassay.cli"])
def test_start_up_loads_little(statement: str) -> None:
    assert not loaded_by(statement) & (LAZY | {"numpy"})


def test_reading_cubins_loads_no_solver() -> None:
    assert not loaded_by("import sassay.cubin, sassay.sass.text") & (LAZY | {"numpy"})
