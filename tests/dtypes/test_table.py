"""The table of dtypes: what it says of frameworks is so, and what is made from it is fresh."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opc.emit import dtypes
from opc.ir.dtypes import DTYPES, TYPE_SETS, DType, numpy_dtype

RUNTIME = Path(__file__).parents[2] / "runtime" / "include" / "opc"


def test_the_header_is_fresh() -> None:
    """`python -m opc.emit.dtypes` writes it."""
    assert dtypes.HEADER.read_text() == dtypes.header()


def test_closed_sets_do_not_grow() -> None:
    """Packages of specs that name them stay what they are, and so do the numbers of their dtypes in calls."""
    names = ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
    assert [d.value for d in TYPE_SETS["any"]] == names == [d.value for d in DTYPES[: len(names)]]
    assert [d.value for d in TYPE_SETS["floating"]] == names[:4]
    assert [d.value for d in TYPE_SETS["integer"]] == names[4:9]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy(dtype: DType) -> None:
    import ml_dtypes

    kind = numpy_dtype(dtype)
    assert (kind.name, kind.itemsize) == (dtype.value, dtype.itemsize)
    assert hasattr(np, dtype.value if dtype is not DType.BOOL else "bool_") == (dtype.row.numpy == "numpy")
    if not dtype.is_floating:
        limits = None if dtype is DType.BOOL else ml_dtypes.iinfo(kind)
        info = (False, True) if limits is None else (int(limits.min), int(limits.max))
        assert (dtype.least, dtype.most) == info
        return
    info = ml_dtypes.finfo(kind)
    if dtype.row.minifloat is not None:
        form = dtype.row.minifloat
        assert (form.fraction, 1 - form.bias) == (info.nmant, info.minexp)
        with np.errstate(all="ignore"):
            beyond = float(np.asarray(1e39).astype(kind))
        assert {"ieee": beyond == np.inf, "nan": beyond != beyond, "finite": beyond != beyond}[form.top]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.row.onnx is not None], ids=str)
def test_onnx(dtype: DType) -> None:
    from onnx import TensorProto, helper

    name, number = dtype.row.onnx or ("", 0)
    assert TensorProto.DataType.Value(name) == number
    assert np.dtype(helper.tensor_dtype_to_np_dtype(number)) == numpy_dtype(dtype)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.row.torch is not None], ids=str)
def test_torch(dtype: DType) -> None:
    import torch

    name, cpp = dtype.row.torch or ("", "")
    kind = getattr(torch, name)
    assert (kind.itemsize, kind.is_floating_point) == (dtype.itemsize, dtype.is_floating)
    header = Path(torch.__path__[0]) / "include" / "torch" / "headeronly" / "core" / "ScalarType.h"
    assert re.search(rf", {cpp}\)", header.read_text())


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.row.paddle is not None], ids=str)
def test_paddle(dtype: DType) -> None:
    import paddle

    assert dtype.row.paddle in paddle.base.core.DataType.__members__
    assert paddle.to_tensor([1.0]).astype(getattr(paddle, dtype.value)).element_size() == dtype.itemsize


def test_numbers_of_xla() -> None:
    """Those of its C API for foreign functions, each read off the header by its name."""
    from importlib.util import find_spec

    spec = find_spec("jaxlib")
    assert spec is not None
    assert spec.origin is not None
    header = (Path(spec.origin).parent / "include" / "xla" / "ffi" / "api" / "c_api.h").read_text()
    numbers = {name: int(number) for name, number in re.findall(r"XLA_FFI_DataType_(\w+) = (\d+)", header)}
    short = {"float": "F", "bfloat": "BF", "int": "S", "uint": "U", "bool": "PRED"}
    for dtype in DTYPES:
        name = re.sub("^[a-z]+", lambda match: short[match[0]], dtype.value).replace("_", "").upper()
        # XLA packs several integers of fewer than 8 bits in a byte.
        assert dtype.row.xla == (None if dtype.is_small else numbers[name]), dtype


def test_numbers_of_mindspore() -> None:
    """Those of its header, counted from its first number, 30."""
    environment = Path(__file__).parents[2] / ".opc" / "env" / "mindspore"
    found = next(iter(environment.glob("venv/lib/python*/site-packages/mindspore/include/mindapi/base/type_id.h")), None)
    if found is None:
        pytest.skip("MindSpore's environment is not made")
    names = re.findall(r"^  kNumberType(\w+),", found.read_text().partition("kNumberTypeBegin")[2], re.MULTILINE)
    numbers = {name.lower(): 30 + n for n, name in enumerate(names)}
    told = {d: d.row.mindspore for d in DTYPES if d.row.mindspore is not None}
    assert told == {d: numbers[d.value] for d in told}


def test_numbers_of_rknn() -> None:
    numbers = {
        n: int(v)
        for n, v in re.findall(
            r"RKNN_TENSOR_(\w+) = (\d+)", (RUNTIME / "adapters" / "rknn_api.h").read_text().partition("_format")[0]
        )
    }
    assert {d.value.upper(): d.row.rknn for d in DTYPES if d.row.rknn is not None} == numbers


def test_no_other_place_lists_dtypes() -> None:
    """A list of dtypes by name outside of the table would have to be known to whoever adds one."""
    root = Path(__file__).parents[2]
    named = re.compile(r"\b(?:u?int(?:8|16|32|64)|b?float(?:16|32|64))\b")
    suffixes = {".py", ".j2", ".h"}
    files = [
        p
        for folder in ("opc", "runtime/include")
        for p in (root / folder).rglob("*")
        if p.suffix in suffixes and p.stem != "dtypes"
    ]
    found = []
    for path in files:
        lines = [set(named.findall(line.lower().split("#")[0])) for line in path.read_text().splitlines()]
        found += [f"{path.relative_to(root)}:{n + 1}" for n in range(len(lines)) if len(set().union(*lines[n : n + 8])) >= 7]
    assert found == []
