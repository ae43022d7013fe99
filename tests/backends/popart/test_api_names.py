"""What is generated for a version of Graphcore's SDK uses no name that came later, by the tables of the emulation's API."""

from __future__ import annotations

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
def used() -> Mapping[str, Mapping[str, str]]:
    """By backend, the names that the sources of any op have, each with a file that has it."""
    found: dict[str, dict[str, str]] = {name: dict.fromkeys(shared(name), "runtime") for name in BACKENDS}
    for spec in SPECS:
        family = load_family(spec)
        for name, backend in BACKENDS.items():
            for path, text in () if backend.requires(family) else backend.emit(family).items():
                for each in names(path, text):
                    found[name].setdefault(each, f"{family.name}/{path}")
    return found


def late(used: Mapping[str, str], sdk: str) -> Iterator[str]:
    """Yield the names that a version lacks."""
    yield from (f"{name} in {path}" for name, path in used.items() if numbers(since().get(name, "0")) > numbers(sdk))


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_names_are_in_the_tables(used: Mapping[str, Mapping[str, str]], backend: str) -> None:
    # As many as that are found at all.
    assert len(used[backend]) > 80
    unknown = {n for n in used[backend] if n not in since() and not n.rpartition(".")[2].startswith("_") and n not in UNTABLED}
    assert unknown == set()


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
