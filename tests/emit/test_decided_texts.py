"""A str attribute that decides sizes and indices, in the texts of targets: what Python runs is right, C++ compares positions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from opc.backends import registry
from opc.compiler import compile_spec
from opc.emit.numpy.reference import function_name, numpy_module
from opc.emit.shapes.builder import CPP, PYTHON, builder_calls
from opc.pipeline import compile_text

TEXT = """\
op: smooth
domain: tests
version: 1
doc: Sums of windows.
types: {T: [float32]}
inputs: {x: 'T[N]', w: 'T[K]'}
attributes: {mode: {type: str, values: [same, full, valid], default: valid}}
outputs: {y: 'T[M]'}
shape: {M: "N if mode == 'same' else N + K - 1 if mode == 'full' else N - K + 1"}
require: [K % 2 == 1, N >= K]
kernel: |
  y[i] = sum[k](pad(x[i + k - (K // 2 if mode == 'same' else K - 1 if mode == 'full' else 0)], 0) * w[k])
"""


@pytest.mark.parametrize("mode", ["same", "full", "valid"])
def test_the_numpy_text_is_right(mode: str) -> None:
    family = compile_text(TEXT)
    x, w = np.arange(1, 6, dtype=np.float32), np.ones(3, np.float32)
    namespace: dict[str, Any] = {}
    exec(numpy_module(family), namespace)
    (found,) = namespace[function_name(family.forward)](x, w, mode=mode)
    assert found.tolist() == np.convolve(x, w, cast(Any, mode)).tolist()


def test_a_builder_of_sizes_asks_for_the_text_or_its_position() -> None:
    op = compile_text(TEXT).forward
    assert "s.number(int(attributes.mode == 'same'))" in "".join(builder_calls(op, PYTHON)).replace('"', "'")
    assert "s.number(attributes.mode == 1 ? 1 : 0)" in "".join(builder_calls(op, CPP))


def test_texts_of_graphs_ask_for_the_text(tmp_path: Any) -> None:
    spec = tmp_path / "smooth.yaml"
    spec.write_text(TEXT)
    files = compile_spec(spec, [registry.load(name) for name in ("onnx", "popart")]).package.files
    function = next(text for path, text in files.items() if path.endswith("function.py"))
    assert 'int(mode == "same")' in function
    host = next(text for path, text in files.items() if path.endswith("_body.hpp"))
    assert '== "same" ? 1 : 0)' in host
