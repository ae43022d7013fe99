"""What is generated of all specs: no name that is newer than the SDK it is for, by the tables of the emulation's API, and no
Python that the interpreters of the SDKs don't know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from opc import config
from opc.backends.base import Backend
from opc.backends.popart.backend import PopartBackend
from opc.backends.poprt.backend import PoprtBackend
from opc.backends.popxl.backend import PopxlBackend
from opc.pipeline import load_family
from tests.backends.popart.api_names import names, numbers, shared, since
from tests.backends.popart.old_python import beyond

SPECS = sorted((Path(__file__).parents[3] / "specs").glob("*.yaml"))
BACKENDS = {b.name: b for b in (PopartBackend(), PopxlBackend(), PoprtBackend())}
# Private names, which the tables leave out, and parameters of macros.
UNTABLED = (
    "popart::DataType::popart_name",
    "poplar::poplar_name",
    "popops::expr::BinaryOpType::op",
    "popops::expr::UnaryOpType::op",
)


@pytest.fixture(scope="module")
def sources() -> Mapping[str, Mapping[str, str]]:
    """By backend, the texts of the files of all ops that it carries."""
    found: dict[str, dict[str, str]] = {name: {} for name in BACKENDS}
    for spec in SPECS:
        family = load_family(spec)
        # For the newest SDK, what one refuses all refuse.
        if BACKENDS["popart"].requires(family):
            continue
        for name, backend in BACKENDS.items():
            found[name] |= {f"{family.name}/{path}": text for path, text in backend.emit(family).items()}
    return found


@pytest.fixture(scope="module")
def used(sources: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
    """By backend, the names that the sources of any op have, each with a file that has it."""
    found: dict[str, dict[str, str]] = {name: dict.fromkeys(shared(name), "runtime") for name in BACKENDS}
    for name, files in sources.items():
        for path, text in files.items():
            for each in names(path, text):
                found[name].setdefault(each, path)
    return found


def late(used: Mapping[str, str], sdk: str) -> Iterator[str]:
    """Yield the names that a version lacks."""
    yield from (f"{name} in {path}" for name, path in used.items() if numbers(since().get(name, "0")) > numbers(sdk))


@pytest.mark.rotating
@pytest.mark.parametrize("backend", BACKENDS)
def test_all_names_are_in_the_tables(used: Mapping[str, Mapping[str, str]], backend: str) -> None:
    # As many as that are found at all.
    assert len(used[backend]) > 80
    unknown = {n for n in used[backend] if n not in since() and not n.rpartition(".")[2].startswith("_") and n not in UNTABLED}
    assert unknown == set()


@pytest.mark.rotating
@pytest.mark.parametrize("sdk", config.SDKS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_names_are_as_old_as_the_sdk(
    used: Mapping[str, Mapping[str, str]], backend: str, sdk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.opc.popart]\nsdk = "{sdk}"\n')
    monkeypatch.chdir(tmp_path)
    chosen: Backend = BACKENDS[backend]
    if not chosen.requires(load_family(SPECS[0])):
        assert [*late(used[backend], sdk)] == []


def test_what_is_refused_is_what_came_later(used: Mapping[str, Mapping[str, str]]) -> None:
    assert any(n.startswith("popart::ParameterizedOp in ") for n in late(used["popxl"], "2.5"))
    assert [*late(used["popart"], "2.5")] == []


def test_cppimport_finds_no_template_in_the_code(sources: Mapping[str, Mapping[str, str]]) -> None:
    modules = {path: text for path, text in sources["popxl"].items() if path.endswith("_op_impl.cpp")}
    assert len(modules) > 50
    for path, text in modules.items():
        # It reads the file as a template of Mako; only the block at the end is one.
        assert re.findall(r"^\s*(?:%(?!>)|##).*|\$\{|\\\n", text, re.MULTILINE) == [], path


def test_python_is_that_of_the_sdks(sources: Mapping[str, Mapping[str, str]]) -> None:
    files = {path: text for found in sources.values() for path, text in found.items() if path.endswith(".py")}
    assert len(files) > 500
    assert {path: found for path, text in files.items() if (found := [*beyond(text)])} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from functools import cache",
        "import tomllib",
        "zip(a, b, strict=True)",
        "name.removeprefix('a')",
        "Shape = tuple[int, ...]",
        "from collections.abc import Sequence\nValues = Sequence[int]",
        "def f(x: int | None = None): ...",
        "def f() -> list[int]: ...",
        "x: dict[str, int] = {}",
        "match x:\n    case 1: pass",
        "isinstance(x, int | float)",
    ],
)
def test_newer_python_is_seen(text: str) -> None:
    assert [*beyond(text)]


def test_annotations_may_be_newer_where_nothing_evaluates_them() -> None:
    text = "from collections.abc import Sequence\ndef f(x: Sequence[int] | None) -> tuple[int, ...]:\n    y: list[int] = [*x]\n"
    assert [*beyond(text)]
    assert [*beyond("from __future__ import annotations\n" + text)] == []
