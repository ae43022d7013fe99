"""Ops that are called what C++, Python, frameworks or generated code keep for themselves."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opc
from opc.backends import registry
from opc.build.builder import build_specs
from opc.diagnostics import SpecError
from opc.names import FUNCTIONS, LANGUAGE, RESERVED, in_words, op_name, registered, spelled
from opc.pipeline import compile_text, load_family

ROOT = Path(__file__).parents[2]
HEADERS = sorted((ROOT / "runtime" / "include" / "opc").rglob("*.h"))
SPEC = """\
op: {name}
domain: probe.names
version: 1
doc: x, or a part of it where it is negative.
types: {{T: [float32]}}
inputs: {{x: 'T[...]'}}
attributes:
  alpha: {{type: float, default: 0.5, check: alpha >= 0}}
outputs: {{y: 'T[...]'}}
inplace: {{y: x}}
kernel: |
  y = x if x >= 0 else alpha * x
examples:
  - {{x: [1.0, -2.0], y: [1.0, -1.0]}}
"""
BUILT = ("class", "default", "int", "lambda", "none", "shape")
WORDS = (*BUILT, "self", "new", "char", "std", "main", "first", "template", "torch", "context", "rows", "derivative", "max")


@pytest.mark.rotating
@pytest.mark.parametrize("name", WORDS)
def test_every_backend_writes_what_compiles(name: str) -> None:
    family = compile_text(SPEC.format(name=name), f"{name}.yaml")
    assert family.name == op_name(name)
    assert in_words(family.name) == name
    for backend in map(registry.load, registry.names()):
        assert not backend.requires(family)
        for path, text in backend.emit(family).items():
            if path.endswith(".py"):
                compile(text, path, "exec")


def test_spellings_are_one_to_one() -> None:
    names = [*RESERVED, *FUNCTIONS, "first", "relu", "max", "out"]
    spellings = {op_name(name) for name in names}
    assert len(spellings) == len({*names})
    assert not spellings & (RESERVED | FUNCTIONS)
    assert all(spelled(op_name(name)) == name for name in names)
    assert not any(registered(spelling).endswith("_") for spelling in spellings)
    assert in_words("lambda__backward: d_y, in shape__backward_jvp, relu_backward") == (
        "lambda_backward: d_y, in shape_backward_jvp, relu_backward"
    )


@pytest.mark.parametrize("name", [*sorted(LANGUAGE - {"True", "False", "None", "true", "false"}), "lambda_", "shape_"])
def test_words_of_the_language_and_spellings_are_no_names(name: str) -> None:
    with pytest.raises(SpecError, match=f"'{name}' can't name an op"):
        compile_text(SPEC.format(name=name), "spec.yaml")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The packages of ops, by the names in their specs, built for the backends that live in one process."""
    folder = tmp_path_factory.mktemp("op_names")
    specs = [folder / f"{name}.yaml" for name in BUILT]
    for spec in specs:
        spec.write_text(SPEC.format(name=spec.stem))
    names = ["numpy", "onnx", "onnxruntime", "torch"]
    made = build_specs(specs, folder / "generated", names)
    assert all(b.ok and b.package == folder / "generated" / op_name(s.stem) for s, b in zip(specs, made, strict=True)), made
    assert all(b.fresh for b in build_specs(specs, folder / "generated", names))
    return {spec.stem: b.package for spec, b in zip(specs, made, strict=True) if b.package is not None}


@pytest.mark.rotating("file", seconds=13)
@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("backend", ["numpy", "onnx", "onnxruntime", "torch"])
def test_the_packages_work(built: dict[str, Path], name: str, backend: str) -> None:
    family = load_family(built[name].parents[1] / f"{name}.yaml")
    session = registry.load(backend).session(family, built[name])
    x = np.float32([[1.0, -2.0], [-3.0, 4.0]])
    np.testing.assert_array_equal(session.call(family.name, {"x": x}, {})["y"], [[1.0, -1.0], [-1.5, 4.0]])
    assert family.backward is not None
    found = session.call(family.backward.name, {"x": x, "d_y": x}, {"alpha": 0.25})
    np.testing.assert_array_equal(found["d_x"], [[1.0, -0.5], [-0.75, 4.0]])
    with pytest.raises(Exception, match=name) as refused:
        session.call(family.name, {"x": x}, {"alpha": -1.0})
    assert f"{name}_" not in str(refused.value)


@pytest.mark.rotating("file")
def test_torch_takes_none_for_an_op_that_writes_to_its_input(built: dict[str, Path]) -> None:
    for name in ("lambda", "shape"):
        family = load_family(built[name].parents[1] / f"{name}.yaml")
        checks = {c.name: c for c in registry.load("torch").checks(registry.load("torch").session(family, built[name]))}
        for check in ("opcheck", "torch.compile", "torch.compile gradient", "torch.export dynamic", "onnx export"):
            checks[check].run()


def test_opc_load_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "new.yaml").write_text(SPEC.format(name="new"))
    op = opc.load(tmp_path / "new.yaml")
    np.testing.assert_array_equal(op(np.float32([-2.0])), np.float32([-1.0]))


def _globals(text: str) -> Iterator[str]:
    """Yield the names a module has at its top, and those that its functions take from there or from Python itself."""
    tables = [symtable.symtable(text, "module", "exec")]
    yield from (s.get_name() for s in tables[0].get_symbols())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        yield from (s.get_name() for s in table.get_symbols() if s.is_global())


@pytest.mark.parametrize("spec", ["leaky_relu", "dual_residual", "layer_norm", "embedding", "quantize_linear"])
def test_what_stands_beside_functions_of_an_op_is_known_to_the_rule(spec: str) -> None:
    family = load_family(ROOT / "specs" / f"{spec}.yaml")
    own = re.compile(rf"_*{family.name}\w*|test_\w+")
    for backend in map(registry.load, registry.names()):
        for path, text in {} if backend.requires(family) else backend.emit(family).items():
            found = {*_globals(text)} if path.endswith(".py") and ast.parse(text) else set()
            if family.name in found:
                names = {n for n in found if re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", n) and not own.fullmatch(n)}
                assert names <= RESERVED | FUNCTIONS, path


def test_what_the_runtime_calls_like_kernels_is_known_to_the_rule() -> None:
    texts = [path.read_text() for path in HEADERS]
    texts += [p.read_text() for p in (ROOT / "opc" / "backends").rglob("*") if p.suffix in (".j2", ".c", ".h")]
    found = {name for text in texts for name in re.findall(r"\bopc_([a-z][a-z0-9_]*[a-z0-9])\b", text)}
    # Functions of Python and of native code's own, a field of plugins, and what is written in comments.
    found -= {"source", "translations", "torch_function", "in_graph", "softmax_infer", "stream", "nn", "format"}
    assert found <= RESERVED | FUNCTIONS, sorted(found - RESERVED - FUNCTIONS)
    written: Any = compile_text(SPEC.format(name="probe"), "probe.yaml")
    binding = registry.load("numpy").emit(written)["numpy/binding.h"]
    own = {n for n in re.findall(r"\bopc_([a-z][a-z0-9_]*[a-z0-9])\b", binding) if not n.startswith("probe")}
    assert own <= RESERVED | FUNCTIONS, sorted(own - FUNCTIONS)
