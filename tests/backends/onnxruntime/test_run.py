"""`run_model`: a model with custom ops and .npy files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from opc.backends.array_files import load_array
from opc.backends.onnxruntime.run import run_model
from opc.diagnostics import Diagnostics, SpecError

SPEC = """
op: scaled
doc: A test.
domain: opc.test
version: 1
types: {T: [float32, float64]}
inputs: {x: "T[N, M]", z: "T[M]"}
outputs: {y: "T[N, M]"}
gradient: none
kernel: |
  y[i, j] = x[i, j] * z[j]
"""


def build(specs: Sequence[Path]) -> Sequence[Path]:
    raise AssertionError(f"{specs} should not be built")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "scaled.yaml"
    path.write_text(SPEC)
    return path


def save(tmp_path: Path, op_type: str = "Scaled", domain: str = "opc.test", functions: Sequence[Any] = ()) -> Path:
    node = helper.make_node(op_type, ["x", "z"], ["y"], name="first", domain=domain)
    graph = helper.make_graph(
        [node, helper.make_node("Neg", ["y"], ["out/../../y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, ["N", 3]), helper.make_tensor_value_info("z", 1, [3])],
        [helper.make_tensor_value_info("out/../../y", 1, ["N", 3])],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("opc.test", 1)]
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=functions), path)
    return path


def npy(tmp_path: Path, name: str, array: Any) -> Path:
    path = tmp_path / f"{name}.npy"
    np.save(path, array)
    return path


def refusal(tmp_path: Path, spec: Path, model: Path, **inputs: Any) -> str:
    files = {n: a if isinstance(a, Path) else npy(tmp_path, n, a) for n, a in inputs.items()}
    with pytest.raises(SpecError) as caught:
        run_model(model, [spec], files, tmp_path / "out", build)
    return "\n".join(d.render() for d in caught.value.diagnostics)


X, Z = np.ones((2, 3), "float32"), np.ones(3, "float32")


def test_inputs_are_checked_all_at_once(tmp_path: Path, spec: Path) -> None:
    model = save(tmp_path)
    text = refusal(tmp_path, spec, model, xx=X, z=np.ones(4, "float32"))
    assert "has no input 'xx'" in text
    assert "did you mean 'x'?" in text
    assert "the input 'x' is missing" in text
    assert "--input x=FILE.npy: float32 [N, 3]" in text
    assert "axis 0 of the input 'z' must have size 3" in text


def test_dtype_rank_and_file(tmp_path: Path, spec: Path) -> None:
    model = save(tmp_path)
    assert "must be float32, but" in refusal(tmp_path, spec, model, x=X.astype("float64"), z=Z)
    assert "must have 2 axes, but" in refusal(tmp_path, spec, model, x=X[0], z=Z)
    assert "can't read" in refusal(tmp_path, spec, model, x=tmp_path / "none.npy", z=Z)
    broken = tmp_path / "broken.npy"
    broken.write_text("no array")
    assert "is no .npy file of numbers" in refusal(tmp_path, spec, model, x=broken, z=Z)
    objects = npy(tmp_path, "objects", np.array([{}], dtype=object))
    assert "is no .npy file of numbers" in refusal(tmp_path, spec, model, x=objects, z=Z)


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    """Archives, files cut short, and headers in which bytes are others: each is an array or a mistake, and no traceback."""
    np.savez(archive := tmp_path / "z.npz", x=X)
    whole = npy(tmp_path, "x", X).read_bytes()
    random = np.random.default_rng(0)
    texts = [archive.read_bytes(), b"", *(whole[:n] for n in range(len(whole)))]
    for _ in range(2000):
        changed = bytearray(whole)
        for k in random.integers(0, len(changed) - X.nbytes, random.integers(1, 5)):
            changed[k] = random.choice([*b"(){'\"\n 9,L", random.integers(0, 256)])
        texts.append(bytes(changed))
    read = 0
    for text in texts:
        (tmp_path / "x.npy").write_bytes(text)
        found = Diagnostics()
        array = load_array("x", tmp_path / "x.npy", "float32", found)
        assert (array is None) == found.has_errors
        read += array is not None
    assert 0 < read < len(texts) / 2


def test_an_op_without_spec(tmp_path: Path, spec: Path) -> None:
    text = refusal(tmp_path, spec, save(tmp_path, "Scaleb"), x=X, z=Z)
    assert "the node 'first' is a opc.test.Scaleb, of which no spec was given" in text
    assert "did you mean 'opc.test.Scaled'?" in text


def test_a_file_that_is_no_model(tmp_path: Path, spec: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"not a model at all")
    assert "is not an ONNX model" in refusal(tmp_path, spec, path)
    path.write_bytes(b"")
    assert "is not an ONNX model" in refusal(tmp_path, spec, path)
    assert "can't read the model" in refusal(tmp_path, spec, tmp_path / "none.onnx")


def test_a_model_without_custom_ops_builds_nothing(tmp_path: Path, spec: Path) -> None:
    model = save(tmp_path, "Mul", "")
    files = {"x": npy(tmp_path, "x", X * 2), "z": npy(tmp_path, "z", Z * 3)}
    (output,) = run_model(model, [spec], files, tmp_path / "out", build)
    assert (output.name, output.dtype, output.shape) == ("out/../../y", "float32", (2, 3))
    assert output.path.parent == tmp_path / "out"
    np.testing.assert_array_equal(np.load(output.path), X * -6)


def test_a_model_with_a_custom_op(tmp_path: Path, built: Any) -> None:
    spec = tmp_path / "scaled.yaml"
    spec.write_text(SPEC.replace("T[N, M]", "T[...]").replace("T[M]", "T[...]").replace("x[i, j] * z[j]", "x * z")
                    .replace("y[i, j]", "y").replace("gradient: none", "broadcast: true"))  # fmt: skip
    files = {"x": npy(tmp_path, "x", X * 2), "z": npy(tmp_path, "z", Z * 3)}
    asked: list[Path] = []

    def build_scaled(specs: Sequence[Path]) -> Sequence[Path]:
        asked.extend(specs)
        return [built["scaled"][1]]

    (output,) = run_model(save(tmp_path), [spec], files, tmp_path / "out", build_scaled)
    assert asked == [spec]
    np.testing.assert_array_equal(np.load(output.path), X * -6)


def test_the_runtime_s_refusal(tmp_path: Path, spec: Path) -> None:
    text = refusal(tmp_path, spec, save(tmp_path, "NoSuchOperator", ""), x=X, z=Z)
    assert "ONNX Runtime can't run" in text
    assert "NoSuchOperator" in text
