"""ONNX's own tools on ops of `specs/`: checker, inference, function, inliner, text; and the generated test as it stands."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from opc.backends.base import OpError
from opc.backends.onnx.backend import OnnxBackend
from opc.backends.onnx.session import OnnxSession
from opc.emit.shapes import python as shape_python
from opc.ir.op import Family
from opc.pipeline import compile_text, load_family
from opc.testing.oracle import evaluation as oracle
from opc.testing.oracle import tolerance
from tests import ruff

SPECS = sorted((Path(__file__).parents[3] / "specs").glob("*.yaml"))


def load(family: Family, out: Path) -> OnnxSession:
    """Write the ONNX part of a package, which is plain Python, and load it."""
    package = out / family.name
    header = {"__init__.py": "", "shape.py": shape_python.emit(family), "manifest.json": family.source_hash}
    for path, text in {**header, **OnnxBackend().emit(family)}.items():
        place = package / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    session = OnnxBackend().session(family, package)
    assert isinstance(session, OnnxSession)
    return session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], OnnxSession]:
    out = tmp_path_factory.mktemp("onnx")

    return cache(lambda spec: load(load_family(spec), out))


@pytest.mark.parametrize("name", ["leaky_relu", "layer_norm", "reduce_mean"])
def test_checks(session: Callable[[Path], OnnxSession], name: str) -> None:
    """Of three ops: `opc test` runs them, and all calls, of the covering set."""
    for check in OnnxBackend().checks(session(next(p for p in SPECS if p.stem == name))):
        check.run()


# Every attribute kind in one op, with what no example of `specs/` has.
KINDS = """
op: kinds
doc: A test.
domain: opc.test
version: 2
types: {T: [float32, float64], I: [int8, int32]}
inputs: {x: "T[N, M]", i: "I[N, M]"}
attributes:
  scale: {type: float, default: 0.1}
  shift: {type: int, default: 3}
  flip: {type: bool, default: false}
  mode: {type: str, values: ["plain", "double"], default: "plain"}
  pair: {type: "int[2]", default: [1, 2]}
outputs: {y: "T[N, M]", j: "I[N, M]", a: "acc(I)[N]", k: "int64[N]"}
gradient: none
kernel: |
  t[n, m] = x[n, m] * scale + shift
  y[n, m] = (-t[n, m] if flip else t[n, m]) * (2 if mode == 'double' else 1)
  j[n, m] = i[n, m] * pair[0] + pair[1]
  a[n] = sum[m](i[n, m])
  k[n] = argmax[m](x[n, m])
"""


@pytest.mark.parametrize(
    "attributes",
    [{}, {"scale": 0.5}, {"shift": -1}, {"flip": True}, {"mode": "double"}, {"pair": [3, 100]}],
    ids=str,
)
@pytest.mark.parametrize("integer", ["int8", "int32"])
def test_attributes_of_every_kind(tmp_path: Path, attributes: dict[str, Any], integer: str) -> None:
    family = compile_text(KINDS, "kinds.yaml")
    session = load(family, tmp_path)
    inputs = {"x": np.array([[1, np.nan], [2, 3]], "float32"), "i": np.array([[1, 2], [60, 70]], integer)}
    got = session.call("kinds", inputs, attributes)
    for name, want in oracle.evaluate(family.forward, inputs, attributes).items():
        assert tolerance.compare(name, got[name], want).ok, name
    models = session.module
    model = models.make_model(
        "Kinds", dtypes={"T": "float32", "I": integer}, shapes={"x": [2, 2], "i": [2, 2]}, function=True, **attributes
    )
    for (name, value), result in zip(got.items(), ReferenceEvaluator(model).run(None, inputs), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-6, err_msg=name)
        assert result.dtype == value.dtype, name


def test_an_output_without_elements_asks_for_nothing(session: Callable[[Path], OnnxSession]) -> None:
    """A maximum of nothing has no value, but where there is no output element, nobody asks for it."""
    softmax = session(next(p for p in SPECS if p.stem == "softmax"))
    assert softmax.call("softmax", {"x": np.zeros((2, 0), "float32")}, {})["y"].shape == (2, 0)
    logsumexp = session(next(p for p in SPECS if p.stem == "logsumexp"))
    assert logsumexp.call("logsumexp", {"x": np.zeros((0, 0), "float16")}, {})["y"].dtype == "float16"
    with pytest.raises(OpError, match="logsumexp: max over n of nothing"):
        logsumexp.call("logsumexp", {"x": np.zeros((2, 0), "float32")}, {})


@pytest.mark.rotating
def test_layout(tmp_path: Path) -> None:
    for spec in SPECS:
        for path, text in OnnxBackend().emit(load_family(spec)).items():
            place = tmp_path / spec.stem / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    ruff.accepts("format", "--diff", tmp_path)


def test_files_are_the_same_every_time() -> None:
    for spec in SPECS[:4]:
        assert OnnxBackend().emit(load_family(spec)) == OnnxBackend().emit(load_family(spec))


@pytest.mark.parametrize("name", ["input", "run_params", "run", "domain", "outputs", "first", "take", "body", "dtypes"])
def test_attributes_called_like_what_the_generated_modules_need(name: str, tmp_path: Path) -> None:
    """In models their names have one more underscore."""
    family = compile_text(KINDS.replace("scale", name), "kinds.yaml")
    assert OnnxBackend().requires(family) == ()
    session = load(family, tmp_path)
    inputs = {"x": np.array([[1, np.nan], [2, 3]], "float32"), "i": np.array([[1, 2], [60, 70]], "int8")}
    given = {f"{name}_": 0.5}
    got = session.call("kinds", inputs, given)
    for output, want in oracle.evaluate(family.forward, inputs, given).items():
        assert tolerance.compare(output, got[output], want).ok, output
    model = session.module.make_model(
        "Kinds", dtypes={"T": "float32", "I": "int8"}, shapes={"x": [2, 2], "i": [2, 2]}, function=True, **given
    )
    for (output, value), result in zip(got.items(), ReferenceEvaluator(model).run(None, inputs), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-6, err_msg=output)


def test_a_model_needs_the_types_of_its_own_operands_alone(tmp_path: Path) -> None:
    """Without tangents nothing tells T, and of the outputs only that is asked for which has another type."""
    family = compile_text(
        "op: probe\ndomain: opc.test\nversion: 1\ndoc: A test.\n"
        "types: {T: [float32, float64], U: [float32, float64]}\nattributes: {to: {type: dtype, binds: U}}\n"
        "inputs: {h: 'bool[N]', s: 'T[]', x: 'T[N]'}\noutputs: {y: 'T[N]', u: 'U[N]'}\n"
        "kernel: |\n  y[n] = s[()] + (x[n] if h[n] else 0)\n  u[n] = cast(U, y[n])\n",
        "probe.yaml",
    )
    make = load(family, tmp_path).module.make_model
    model = make("ProbeJvp", dtypes={"U": "float64"}, absent=["t_s", "t_x"], outputs=["t_u"], to="float64")
    assert [(o.name, o.type.tensor_type.elem_type) for o in model.graph.output] == [("t_u", TensorProto.DOUBLE)]


def test_standard_operators_look_up_an_index_that_no_element_asks_for(tmp_path: Path) -> None:
    family = compile_text(
        "op: looked_up\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\n"
        "inputs: {x: 'T[N, D]', ids: 'int64[M]'}\noutputs: {y: 'T[M, D]'}\nkernel: |\n  y[m, d] = x[ids[m], d]\n",
        "looked_up.yaml",
    )
    session, inputs = load(family, tmp_path), {"x": np.zeros((2, 0), "float32"), "ids": np.array([5, 1])}
    assert oracle.evaluate(family.forward, inputs)["y"].value.shape == (2, 0)
    assert session.call("looked_up", inputs, {})["y"].shape == (2, 0)
    with pytest.raises(OpError):
        session.function_call("looked_up", inputs, {})
