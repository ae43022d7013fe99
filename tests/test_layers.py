"""Imports go down the layers of the architecture; the core knows no framework; backends do not know each other."""

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "opc"

# From the top down. A module may import from its own layer and from those after it.
LAYERS = (
    ("cli",),
    ("site",),
    ("editor",),
    ("api", "overloads"),
    ("testing",),
    ("build",),
    ("compiler",),
    ("backends",),
    ("emit",),
    ("lower",),
    ("loops",),
    ("pipeline",),
    ("transform",),
    ("analysis",),
    ("ir",),
    ("lang",),
    ("spec",),
    ("config",),
    ("distribution",),
    ("diagnostics",),
    ("names",),
    ("macros",),
    ("ir.dtypes",),
    ("ir.node",),
    ("records",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
FRAMEWORKS = {
    "torch",
    "jax",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "paddle",
    "mindspore",
    "rknn",
    "popart",
    "popxl",
    "poprt",
    "tensorrt",
    "tvm_ffi",
}
# The only places that may import a framework at all, and then inside a function (see `test_frameworks_are_imported_late`).
FRAMEWORK_FOLDERS = {"backends", "testing", "api", "emit"}

MODULES = sorted(p for p in PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(p) for p in MODULES}


@functools.cache
def imports(path: Path) -> tuple[tuple[str, int, bool], ...]:
    """Return (imported module, line, whether at module level and outside TYPE_CHECKING) for every import of a file."""
    return (*_imports(path),)


def _imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    tree = ast.parse(path.read_text())
    late = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) not in late
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno, id(node) not in late


def layer(module: str) -> int | None:
    parts = module.split(".")
    if parts[0] != "opc" or len(parts) == 1:
        return None
    # The table of dtypes and what it is made with are read everywhere.
    return RANK.get(".".join(parts[1:3]), RANK.get(parts[1]))


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_down(path: Path) -> None:
    own = layer(module_name(path))
    for target, line, _ in imports(path):
        if own is None or not target.startswith("opc."):
            continue
        other = layer(target)
        if other is not None:
            assert other >= own, f"{path}:{line}: {module_name(path)} imports {target}, which is above it"


def test_every_module_has_a_layer() -> None:
    unknown = [module_name(p) for p in MODULES if layer(module_name(p)) is None and module_name(p) not in ("opc", "opc.__main__")]
    assert unknown == []


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_frameworks_are_imported_late_and_only_by_who_needs_them(path: Path) -> None:
    folder = module_name(path).split(".")[1] if "." in module_name(path) else ""
    for target, line, early in imports(path):
        if target.split(".")[0] in FRAMEWORKS:
            assert folder in FRAMEWORK_FOLDERS, f"{path}:{line}: {target} imported in the core"
            assert not early, f"{path}:{line}: {target} imported at module level"


def test_the_page_lists_the_layers_in_order() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `opc/")]
    paths = [
        path.removesuffix("/NAME/").removesuffix("/").removesuffix(".py")
        for c in cells
        for path in re.findall(r"`opc/([^`]+)`", c)
    ]
    assert [path.replace("/", ".") for path in paths] == ["__main__", *(name for names in LAYERS for name in names)]


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other in circles."""
    reached = {name: {name} for name in edges}
    waiting = [(name, target) for name, targets in edges.items() for target in targets]
    while waiting:
        name, target = waiting.pop()
        if target not in reached[name]:
            reached[name].add(target)
            waiting += [(name, further) for further in edges[target]]
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in edges}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def imported(path: Path, *, late: bool) -> set[str]:
    """Return the modules of opc that a module imports; `late` counts imports in functions and for type checking as well."""
    targets = {(t, t.rpartition(".")[0]) for t, _, early in imports(path) if early or late}
    return {next((n for n in names if n in NAMES), "opc") for names in targets if names[0].startswith("opc.")} - {
        module_name(path)
    }


def test_no_cycles_of_modules() -> None:
    assert cycles({module_name(p): imported(p, late=False) for p in MODULES}) == []


def test_no_cycles_in_backends_by_imports_of_functions_and_types() -> None:
    edges = {module_name(p): imported(p, late=True) for p in MODULES if p.is_relative_to(PACKAGE / "backends")}
    assert len(edges) > 60
    assert cycles({name: targets & edges.keys() for name, targets in edges.items()}) == []


def test_cycles_are_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [["a", "b", "c"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("path", [p for p in MODULES if p.is_relative_to(PACKAGE / "backends")], ids=module_name)
def test_backends_do_not_import_each_other(path: Path) -> None:
    parts = module_name(path).split(".")
    if len(parts) < 3 or parts[2] == "registry":
        return
    # Modules beside the backends' folders are shared by them.
    shared = {p.stem for p in (PACKAGE / "backends").glob("*.py")}
    for target, line, _ in imports(path):
        other = target.split(".")
        if other[:2] == ["opc", "backends"] and len(other) > 2:
            assert other[2] in (parts[2], "kernel", "poplar", "cuda", "shipped", *shared), f"{path}:{line}: imports {target}"
