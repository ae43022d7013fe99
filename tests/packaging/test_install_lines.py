"""Every line that the docs or opc tell a user to install with is run by pip against a local index, as in a fresh environment.

The index holds the project's wheel, that of the guide's third-party backend, and empty wheels of what these require. A line fails
that names a distribution nobody requires, an extra that the wheel lacks, or extras whose pins contradict each other.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from opc import distribution
from tests.backends import guide
from tests.backends.guide import write_package
from tests.docs.pages import PAGES, page_id
from tests.packaging.environments import ROOT, run
from tests.packaging.index import make_index, requirements, without_files
from tests.packaging.pip_calls import Pip
from tests.packaging.scaled import SPEC

SOURCES = [p for p in sorted((ROOT / "opc").rglob("*")) if p.is_file() and p.suffix != ".pyc"]
MAKER = re.compile(r"\binstall(_extra)?\(")
LINE = re.compile(r"pip install ([^`\n&|]+)")
# The parts of opc that hold such a line as text: where lines are made, and what is copied into packages, which run without opc.
WRITERS = {"opc/distribution.py", "opc/backends/numpy/shipped/support.py"}


def lines(text: str) -> Iterator[str]:
    """Yield what stands behind each `pip install` of a text."""
    # A page installs the wheel that it has built itself.
    yield from (found.strip() for found in LINE.findall(text) if ".whl" not in found)


def documented() -> list[tuple[str, str]]:
    """Return (page, arguments) of every line in README and the docs."""
    return [(page_id(page), line) for page in PAGES for line in lines(page.read_text())]


def written() -> list[tuple[str, str]]:
    """Return (file, arguments) of every line that stands in opc's sources or is made there of literals."""
    found = []
    for path in SOURCES:
        name = path.relative_to(ROOT).as_posix()
        if name == "opc/backends/numpy/shipped/support.py":
            found += [(name, line) for line in lines(path.read_text())]
        if path.suffix != ".py" or not MAKER.search(text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("install", "install_extra"):
                module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
                maker = getattr(module, node.func.id, None) or getattr(distribution, node.func.id)
                if maker in (distribution.install, distribution.install_extra) and all(
                    isinstance(a, ast.Constant) for a in node.args
                ):
                    found += [(name, line) for line in lines(maker(*(ast.literal_eval(a) for a in node.args)))]
    return found


# Where each line stands first: it is run once.
KNOWN = {line: place for place, line in reversed(documented() + written())}


@pytest.fixture(scope="module")
def third_party(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the guide's backend."""
    folder = tmp_path_factory.mktemp("third-party")
    source = write_package(folder / guide.NAME)
    run(sys.executable, "-m", "pip", "wheel", source, "--no-deps", "--no-build-isolation", "-w", folder, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def index(wheel: Path, third_party: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    told = without_files(wheel, tmp_path_factory.mktemp("told"))  # the wheel itself is installed into `bare`
    return make_index(tmp_path_factory.mktemp("index"), [told, third_party])


def meant(argument: str) -> str:
    """Return the requirement that an argument of pip means: a path in the docs is that of a project that is kept here."""
    path, bracket, extras = argument.partition("[")
    if not path.startswith("."):
        return argument
    if path == f"./{guide.NAME}":
        return guide.NAME
    folder = ROOT / path
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"] + bracket + extras


@pytest.fixture(scope="module")
def pip() -> Iterator[Pip]:
    found = Pip()
    yield found
    found.end()


def try_line(pip: Pip, index: str, line: str, folder: Path) -> None:
    """Run `pip install LINE` into an empty folder; what it asks for must be there afterwards."""
    arguments = [meant(a) for a in shlex.split(line) if a != "-e"]
    # With a target folder pip disregards what is installed, so it resolves as in a fresh environment.
    options = ["--target", str(folder), "--index-url", index, "--no-cache-dir", "--no-compile"]
    options += ["--no-warn-conflicts"]  # looking through all that is installed here takes most of the time
    status, printed = pip.run(folder.parent, "install", *options, *arguments)
    assert status == 0, f"pip install {line}\n{printed}"
    assert "does not provide the extra" not in printed, f"pip install {line}\n{printed}"
    for wanted in (Requirement(a) for a in arguments if not a.startswith("-")):
        (found,) = folder.glob(f"{re.sub('[-.]', '_', wanted.name)}-*.dist-info")
        assert found.name.split("-")[0] != "opc"
        if wanted.name == distribution.NAME:
            assert (folder / "bin/opc").exists()


def test_there_are_lines_to_try() -> None:
    assert len({line for _, line in documented()}) >= 6
    assert len({line for _, line in written()}) >= 4


@pytest.mark.rotating
@pytest.mark.parametrize("line", KNOWN, ids=[f"{place}: {line}" for line, place in KNOWN.items()])
def test_line_installs_what_it_names(pip: Pip, index: str, tmp_path: Path, line: str) -> None:
    try_line(pip, index, line, tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('"opc-compiler[tensorflow]"', "does not provide the extra 'tensorflow'"),
        ("opc", "No matching distribution found for opc"),
        ('"opc-compiler[mindspore,rknn]"', "conflicting dependencies"),
    ],
)
def test_a_line_that_is_not_true_fails(pip: Pip, index: str, tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        try_line(pip, index, line, tmp_path)


def test_lines_are_made_in_one_place() -> None:
    holders = {p.relative_to(ROOT).as_posix() for p in SOURCES if re.search(r"pip install\b", p.read_text(errors="replace"))}
    assert holders == WRITERS


@pytest.mark.rotating
def test_what_opc_prints_where_nothing_else_is_installed(pip: Pip, bare: Path, wheel: Path, index: str, tmp_path: Path) -> None:
    (tmp_path / "scaled.yaml").write_text(SPEC)
    (tmp_path / "model.onnx").write_bytes(b"")
    extras = {extra for r in requirements(wheel) if r.marker for extra in re.findall(r'extra == "([^"]+)"', str(r.marker))}

    def opc(*arguments: str) -> str:
        done = subprocess.run([str(bare / "bin/opc"), *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    backends = {b["name"]: b for b in json.loads(opc("backends", "--json"))}
    assert [name for name, b in backends.items() if b["available"]] == ["cuda", "numpy", "tensorrt"]  # a GPU is emulated
    printed = []
    for backend in backends.values():
        if backend["available"]:
            continue
        making = re.fullmatch(r"opc env create (\w+)", backend["install"])
        if making is None:
            printed += [*lines(backend["install"])]
            continue
        program = f"from opc.build import environments; print(*environments.wanted({making[1]!r}).requirements)"
        assert run(bare / "bin/python", "-c", program, cwd=tmp_path).strip()
    native = "\n".join(str(p) for p in sorted((ROOT / "specs/native").glob("*.yaml")))
    program = f"""
from pathlib import Path
from opc.backends.kernel import libraries
from opc.diagnostics import SpecError
from opc.pipeline import load_family
for path in {native!r}.splitlines():
    for native in load_family(Path(path)).native:
        try:
            libraries.find(native)
        except SpecError as error:
            print(*(d.hint for d in error.diagnostics), sep="\\n")
"""
    printed += [*lines(run(bare / "bin/python", "-c", program, cwd=tmp_path))]
    printed += [*lines(opc("test", "scaled.yaml", "--backend", "numpy")), *lines(opc("run", "model.onnx"))]
    assert {"cmeel-eigen", *(f'"{distribution.NAME}[{e}]"' for e in ("torch", "onnx", "onnxruntime", "prove"))} <= {*printed}
    assert {"all", "test", "mindspore", "rknn"} <= extras
    for number, line in enumerate({*printed} - KNOWN.keys()):
        try_line(pip, index, line, tmp_path / str(number))
