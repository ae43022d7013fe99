"""Specs that TensorRT can't carry are refused when they are generated, with the place in the spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.backends.tensorrt.backend import TensorRTBackend
from opc.backends.tensorrt.names import plugin_names
from opc.pipeline import load_family

SPEC = """\
op: sample
domain: opc.test
version: 1
doc: The operand as it is.
types: {{T: [{dtypes}]}}
inputs:
  x: T[...]
outputs:
  y: T[...]
kernel: |
  y = x
"""


def reasons(tmp_path: Path, dtypes: str) -> list[str]:
    spec = tmp_path / "sample.yaml"
    spec.write_text(SPEC.format(dtypes=dtypes))
    return [d.message for d in TensorRTBackend().requires(load_family(spec))]


@pytest.mark.parametrize("dtypes", ["float64", "int16, uint8", "bool", "uint32, float8_e5m2"])
def test_dtypes_that_tensorrt_lacks(tmp_path: Path, dtypes: str) -> None:
    assert reasons(tmp_path, dtypes) == [f"x of sample is {dtypes}, which TensorRT has no tensors of"]


@pytest.mark.parametrize("dtypes", ["float32", "float64, float16", "int64", "int8, int32"])
def test_one_dtype_is_enough(tmp_path: Path, dtypes: str) -> None:
    assert reasons(tmp_path, dtypes) == []


def test_a_spec_names_the_plugin_of_version_3(tmp_path: Path) -> None:
    spec = tmp_path / "sample.yaml"
    spec.write_text(SPEC.format(dtypes="float32") + "names: {tensorrt: 'vendor::Own'}\n")
    names = plugin_names(load_family(spec))
    assert (names.third, names.namespace) == ("Own", "vendor")
    assert names.static == "opc_test_sample_paddle_trt_plugin"
