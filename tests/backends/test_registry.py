"""Backends are found by entry points; mistakes among them cost a diagnostic and nothing else."""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from opc.backends import registry
from opc.backends.base import Backend
from opc.diagnostics import SpecError


class Good(Backend):
    name = "good"
    title = "Good"
    companion = "thirdparty:Beside"

    def probe(self) -> Any: ...
    def emit(self, family: Any) -> Any: ...
    def session(self, family: Any, package: Path) -> Any: ...


class Beside(Good):
    name = "good_cuda"
    title = "Good CUDA"
    parts = ("good",)
    companion = ""


class Partial(Backend):
    name = "partial"
    title = "Partial"


class Nameless(Backend):
    def probe(self) -> Any: ...
    def emit(self, family: Any) -> Any: ...
    def session(self, family: Any, package: Path) -> Any: ...


class Structural:
    """Has the members of a backend, but not their defaults."""

    name = "structural"
    title = "Structural"

    def probe(self) -> Any: ...
    def requires(self, family: Any) -> Any: ...
    def emit(self, family: Any) -> Any: ...
    def build(self, family: Any) -> Any: ...
    def session(self, family: Any, package: Path) -> Any: ...


def entry(name: str, value: str, distribution: str) -> EntryPoint:
    made = EntryPoint(name, value, "opc.backends")
    # How importlib.metadata itself ties an entry point to its distribution.
    return cast(Any, made)._for(cast(Distribution, SimpleNamespace(name=distribution)))


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    module = ModuleType("thirdparty")
    for backend in (Good, Beside, Partial, Nameless, Structural):
        setattr(module, backend.__name__, backend)
    monkeypatch.setitem(sys.modules, "thirdparty", module)
    found = [entry("good", "thirdparty:Good", "third-party")]
    monkeypatch.setattr(registry, "entry_points", lambda group: found if group == "opc.backends" else [])
    return found


def test_opc_registers_its_own() -> None:
    assert set(registry.names()) >= {"numpy", "onnx", "onnxruntime", "torch"}
    assert isinstance(registry.load("numpy"), Backend)


def test_third_party_backend_is_found(entries: list[EntryPoint]) -> None:
    assert registry.names() == ("good",)
    assert isinstance(registry.load("good"), Good)
    assert [b.name for b in registry.select()] == ["good"]
    assert [b.name for b in registry.select(["good", "good"])] == ["good"]


def test_what_the_proof_alone_runs_is_found_by_name_only(entries: list[EntryPoint]) -> None:
    found = registry.load("good_cuda")
    assert type(found) is Beside
    assert found.runs_as == "good"
    assert registry.load("good").runs_as == "good"
    assert type(registry.companion(registry.load("good"))) is Beside
    assert registry.companion(found) is None
    assert [b.name for b in registry.select()] == ["good"]
    for name in ("good_cuda_cuda", "other_cuda"):
        with pytest.raises(SpecError, match=f"there is no backend '{name}'"):
            registry.load(name)


def test_listing_imports_nothing(entries: list[EntryPoint]) -> None:
    entries.append(entry("absent", "no_such_module:Backend", "broken-dist"))
    assert registry.names() == ("absent", "good")


def test_metadata_of_distributions_is_not_read_without_need(entries: list[EntryPoint]) -> None:
    class Costly:
        @property
        def name(self) -> str:
            raise AssertionError("the name of a distribution was read")

    entries[:] = [cast(Any, EntryPoint("good", "thirdparty:Good", "opc.backends"))._for(Costly())]
    assert registry.names() == ("good",)
    assert isinstance(registry.load("good"), Good)


def test_unknown_name_is_a_diagnostic_with_a_suggestion(entries: list[EntryPoint]) -> None:
    with pytest.raises(SpecError, match=r"there is no backend 'godo'\n  hint: did you mean 'good'\?"):
        registry.load("godo")
    with pytest.raises(SpecError, match="the backends are good"):
        registry.load("tensorflow")


def test_two_distributions_with_one_name_are_refused(entries: list[EntryPoint]) -> None:
    entries.append(entry("good", "thirdparty:Partial", "other"))
    with pytest.raises(
        SpecError, match=r"backend 'good' is registered twice: as thirdparty:Good by third-party and as .* by other"
    ):
        registry.names()
    entries[1] = entry("good", "thirdparty:Good", "other")
    with pytest.raises(SpecError, match="registered twice"):
        registry.select()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_module:Backend", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("thirdparty:Missing", "AttributeError"),
        ("thirdparty:Partial", "TypeError: Can't instantiate abstract class Partial with abstract methods? .*emit"),
        ("thirdparty:Structural", "it is no subclass of opc.backends.base.Backend"),
        ("thirdparty:Nameless", "it has no name and no title"),
        ("thirdparty:Good", "it calls itself 'good'"),
    ],
)
def test_broken_backend_costs_only_itself(entries: list[EntryPoint], value: str, why: str) -> None:
    entries.append(entry("broken", value, "broken-dist"))
    with pytest.raises(SpecError, match=why) as caught:
        registry.load("broken")
    assert "reinstall broken-dist" in str(caught.value)
    backends, broken = registry.load_all()
    assert [b.name for b in backends] == ["good"]
    assert [b.name for b in broken] == ["broken"]
    assert [b.name for b in registry.select()] == ["good"]
    with pytest.raises(SpecError, match="'broken' can't be loaded"):
        registry.select(["broken", "good"])


def test_owner_is_the_backend_whose_tensor_a_value_is(entries: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Good, "tensor", "some_framework.Tensor", raising=False)

    class Tensor: ...

    class Parameter(Tensor): ...

    class Other: ...

    # Nothing is a tensor of a framework that is not loaded, which is not imported to find out.
    assert registry.owner(Other()) is None
    assert not Good().owns(Tensor())
    framework = ModuleType("some_framework")
    monkeypatch.setitem(sys.modules, "some_framework", framework)
    assert not Good().owns(Tensor())
    monkeypatch.setattr(framework, "Tensor", Tensor, raising=False)
    entries.append(entry("absent", "no_such_module:Backend", "broken-dist"))
    for value in (Tensor(), Parameter(), Parameter()):
        assert isinstance(registry.owner(value), Good)
    assert registry.owner(Other()) is None


def test_backends_own_nothing_by_default(entries: list[EntryPoint]) -> None:
    assert not Good().owns(object())
