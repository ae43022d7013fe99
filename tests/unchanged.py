"""What the default run of `nox` leaves out of the tests: files and pages for which nothing has changed that they are made of.

A file is made of what it imports, directly or not, within functions too, with the data beside it; of the shared fixtures; and of
what is said to be read besides, with all that modules there import. What opc loads by name no import tells: a file that has a
backend build or run something, or follows a page that does, names it here, and files that run commands of opc on all backends are
not listed. What has changed, git tells; where it does not know, nothing is left out.

`python -m tests.unchanged` prints the arguments of pytest for that.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from opc.testing.touched import changed_files

ROOT = Path(__file__).parents[1]

ALWAYS = ("noxfile.py", "pyproject.toml", "specs", "tests/conftest.py")
"""What all tests depend on: how they are run, what versions are installed, and the specs that many read."""


def adapters(*names: str) -> tuple[str, ...]:
    """Return headers that libraries for frameworks include."""
    return tuple(f"runtime/include/opc/adapters/{name}.h" for name in names)


KERNELS = tuple(f"runtime/include/opc/{name}" for name in ("abi.h", "contraction", "core", "nests", "rows"))
"""What kernels include on a CPU."""

POPLAR = (
    *adapters("popart", "popxl"),
    "runtime/include/opc/poplar",
    "runtime/emulation/poplar",
    "tests/emulation",
)
"""What ops for Poplar include, and what they are run on."""

GPU = (
    *KERNELS,
    *(f"runtime/{name}" for name in ("include/opc/adapters", "include/opc/cuda", "emulation/cuda", "emulation/tensorrt")),
)
"""What kernels on GPUs and calls of these include, and what they are run on."""

RKNN = (*KERNELS, *adapters("rknn", "rknn_api", "rknn_emulation"))
"""What is read for RKNN."""

TORCH = adapters("native_torch", "torch", "torch_arguments", "torch_shim")
"""What is read for PyTorch on a CPU."""

READ: dict[str, tuple[str, ...]] = {
    "tests/backends/cuda": ("opc/backends/cuda", *GPU),
    "tests/backends/cuda/test_frameworks.py": ("opc/backends", "opc/testing", *GPU),
    "tests/backends/mindspore/test_cuda.py": ("opc/backends/mindspore", *GPU),
    "tests/backends/onnxruntime/test_cuda.py": (*(f"opc/backends/{name}" for name in ("cuda", "onnx", "onnxruntime")), *GPU),
    "tests/backends/paddle/test_cuda.py": ("opc/backends/paddle", *GPU),
    "tests/backends/popart": (*(f"opc/backends/{name}" for name in ("popart", "popxl", "poprt")), "opc/cli/generate.py", *POPLAR),
    "tests/backends/rknn": (*(f"opc/backends/{name}" for name in ("rknn", "torch")), *RKNN),
    "tests/backends/tensorrt": ("opc/backends/paddle", "opc/backends/tensorrt", *GPU),
    "tests/backends/test_load_in_kind.py": (
        *(f"opc/{name}" for name in ("backends", "build", "emit", "lower")),
        *KERNELS,
        *adapters("mindspore", "native", "numpy", "paddle", "paddle_arguments"),
    ),
    "tests/backends/torch/test_cuda.py": ("opc/backends/torch", *GPU),
    "tests/emit": KERNELS,
    "tests/emit/cuda": ("opc/backends/cuda", *GPU),
    "tests/emit/poplar": POPLAR,
    "tests/emit/test_shape_builder.py": (*KERNELS, "runtime/include/opc/adapters", "runtime/emulation"),
    "tests/emulation": POPLAR,
    "tests/fuzz": KERNELS,
    "tests/fuzz/test_device.py": GPU,
    "tests/ir/test_functions.py": KERNELS,
    "tests/testing/test_gradcheck.py": (),
    "tests/testing/test_orders.py": (),
    "tests/testing/test_references.py": (),
    "tests/testing/test_sanitize.py": (*KERNELS, "opc/testing/templates"),
    "tests/testing/test_sanitize_codelets.py": (*POPLAR, *KERNELS, "opc/testing/templates"),
    "tests/testing/test_torch_references.py": (),
    "tests/transform": (),
}
"""The files that may be left out, or all that lie in a folder itself, and what each reads beside what it imports."""


CONSOLE = "tests/docs/test_console.py"
FOLLOWED = (CONSOLE, "tests/docs/pages.py", "opc/build", *KERNELS)
"""What it depends on that a page can be followed."""

PAGES: dict[str, tuple[str, ...]] = {
    "docs/first_op.md": ("opc", "runtime"),
    "docs/max_pool2d.md": ("opc", "runtime"),
    "docs/mindspore.md": ("opc/backends/mindspore", "opc/backends/torch", *adapters("mindspore", "native"), *TORCH),
    "docs/paddle.md": ("opc/backends/paddle", *adapters("paddle", "paddle_arguments")),
    "docs/popart.md": READ["tests/backends/popart"],
    "docs/rknn.md": (*READ["tests/backends/rknn"], *TORCH),
}
"""The pages that may be left out, and what each reads: the backends that it shows and the adapters of these."""


@cache
def touched() -> tuple[str, frozenset[Path]] | None:
    """Return the commit that the change at hand began at, and what differs since; None where that is not known."""
    return changed_files(ROOT)


def reads(path: Path) -> tuple[str, ...] | None:
    """Return what a test file is said to read besides; None for one that is never left out."""
    name = path.relative_to(ROOT).as_posix()
    return READ.get(name, READ.get(name.rpartition("/")[0]))


def left_out(path: Path) -> bool:
    """Whether nothing has changed that a test file is made of, and it may be left out for that."""
    besides = reads(path) if _is_test(path) and path.is_relative_to(ROOT) else None
    change = touched()
    return besides is not None and change is not None and not depends(made_of(path), besides, change[1])


def depends(own: Collection[Path], besides: Collection[str], changed: Collection[Path]) -> bool:
    """Whether what is made of some modules, and of what is read besides, depends on one of the files that changed."""
    places = [ROOT / place for place in (*ALWAYS, *besides)]
    named = (m for place in besides if place.startswith("opc/") for m in (ROOT / place, *(ROOT / place).rglob("*.py")))
    every = {*own, *(p for module in named if module.is_file() for p in made_of(module))}
    folders = {p.parent for p in every} - {ROOT, ROOT / "opc", ROOT / "tests"}
    scripts = {p.parent for p in every if _is_test(p)}

    def counts(path: Path) -> bool:
        # What a test runs in another process lies beside it.
        beside = path.suffix == ".py" and not _is_test(path) and path.parent in scripts
        return path in every or beside or _home(path) in folders or any(path.is_relative_to(place) for place in places)

    return any(map(counts, changed))


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") and path.suffix == ".py"


def _home(path: Path) -> Path | None:
    """Return the folder of the code that a file of data is for: the nearest that has modules. Modules are known by imports."""
    if path.suffix == ".py":
        return None
    return next((folder for folder in path.parents if folder.is_relative_to(ROOT) and any(folder.glob("*.py"))), None)


@cache
def made_of(path: Path) -> frozenset[Path]:
    """Return a test file, the shared fixtures that it has, and all modules of the project that these import, directly or not."""
    found: set[Path] = set()
    left = [path, *(p for folder in path.parents if (p := folder / "conftest.py").is_file() and p.is_relative_to(ROOT))]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += imported(one)
    return frozenset(found)


@cache
def imported(path: Path) -> frozenset[Path]:
    """Return the modules of the project that a module imports anywhere in it, and the packages that these lie in."""
    return frozenset(file for name in _names(ast.parse(path.read_text(encoding="utf-8"))) for file in _modules(name))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # What is imported from a package may be a module.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _modules(name: str) -> Iterator[Path]:
    parts = name.split(".")
    if parts[0] in ("opc", "tests"):
        for k in range(1, len(parts) + 1):
            place = ROOT.joinpath(*parts[:k])
            yield from (p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file())


def arguments() -> Iterator[str]:
    """Yield the arguments of pytest that leave out what may be left out."""
    yield from (f"--ignore={p.relative_to(ROOT)}" for p in sorted((ROOT / "tests").rglob("test_*.py")) if left_out(p))
    change = touched()
    for page in () if change is None else PAGES:
        if not shows(page, change[1]):
            yield f"--deselect={CONSOLE}::test_page_can_be_followed[{page}]"


def shows(page: str, changed: Collection[Path]) -> bool:
    """Whether what a page of `PAGES` shows depends on one of the files that changed."""
    return depends((), (page, *FOLLOWED, *PAGES[page]), changed)


if __name__ == "__main__":
    print("\n".join(arguments()))
