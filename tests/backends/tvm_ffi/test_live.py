"""Libraries for tvm-ffi, called by its own module: declarations against its headers, and arguments of every kind."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.backends import package
from opc.build.builder import build_specs
from opc.build.toolchain import runtime_include

ROOT = Path(__file__).parents[3]

SPEC = """\
op: kinds
domain: opc.test
version: 1
doc: An attribute of every kind.
types: {T: [float32], S: [int32, float32, int4]}
inputs: {x: 'T[N]', 'w?': 'T[N]'}
attributes:
  scale: float
  shift: int
  flip: bool
  mode: {type: str, values: [plain, a mode of many letters]}
  to: {type: dtype, binds: S}
  two: 'float[2]'
  many: 'int[]'
outputs: {y: 'T[N]', rounded: 'S[N]'}
kernel: |
  v[n] = x[n] * scale + shift + two[0] - two[1] + (w[n] if present(w) else 0)
  y[n] = (-v[n] if flip else v[n]) + (100 if mode == 'a mode of many letters' else 0)
  rounded[n] = cast(S, y[n])
gradient: none
"""

LAYOUT = r"""
#define TVMFFIErrorSetRaisedFromCStr TheirErrorSetRaisedFromCStr
#define TVMFFITensorFromDLPackVersioned TheirTensorFromDLPackVersioned
#define TVMFFIFunctionGetGlobal TheirFunctionGetGlobal
#define TVMFFIFunctionCall TheirFunctionCall
#include <tvm/ffi/c_api.h>
#undef TVMFFIErrorSetRaisedFromCStr
#undef TVMFFITensorFromDLPackVersioned
#undef TVMFFIFunctionGetGlobal
#undef TVMFFIFunctionCall
#include <stddef.h>
#include <type_traits>
#include "opc/adapters/tvm_ffi_api.h"
/* Of the same form: so many arguments, pointers and numbers of the same size. */
using namespace opc::tvm;
#define SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs), #theirs)
#define PLACE(a, x, b, y) SAME(offsetof(a, x), offsetof(b, y))
SAME(none, kTVMFFINone); SAME(whole_number, kTVMFFIInt); SAME(truth, kTVMFFIBool); SAME(real_number, kTVMFFIFloat);
SAME(data_type, kTVMFFIDataType); SAME(tensor_pointer, kTVMFFIDLTensorPtr); SAME(raw_text, kTVMFFIRawStr);
SAME(small_text, kTVMFFISmallStr); SAME(text_object, kTVMFFIStr); SAME(shape_object, kTVMFFIShape);
SAME(tensor_object, kTVMFFITensor); SAME(array_object, kTVMFFIArray); SAME(list_object, kTVMFFIList);
SAME(big_number, kTVMFFIBigInt);
SAME(sizeof(Object), sizeof(TVMFFIObject)); PLACE(Object, kind, TVMFFIObject, type_index);
SAME(sizeof(Value), sizeof(TVMFFIAny)); PLACE(Value, kind, TVMFFIAny, type_index); PLACE(Value, length, TVMFFIAny, small_str_len);
PLACE(Value, whole, TVMFFIAny, v_int64);
SAME(sizeof(Bytes), sizeof(TVMFFIByteArray)); PLACE(Bytes, size, TVMFFIByteArray, size);
SAME(sizeof(Shape), sizeof(TVMFFIShapeCell)); PLACE(Shape, size, TVMFFIShapeCell, size);
PLACE(Sequence, data, TVMFFISeqCell, data); PLACE(Sequence, size, TVMFFISeqCell, size);
SAME(sizeof(Managed), sizeof(DLManagedTensorVersioned)); PLACE(Managed, version, DLManagedTensorVersioned, version);
PLACE(Managed, context, DLManagedTensorVersioned, manager_ctx); PLACE(Managed, deleter, DLManagedTensorVersioned, deleter);
PLACE(Managed, flags, DLManagedTensorVersioned, flags); PLACE(Managed, tensor, DLManagedTensorVersioned, dl_tensor);
int main() { return 0; }
"""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The function of `SPEC`, as tvm-ffi has it."""
    place = tmp_path_factory.mktemp("tvm_ffi")
    (place / "kinds.yaml").write_text(SPEC)
    built = build_specs([place / "kinds.yaml"], place, ["tvm_ffi"])
    assert [d.render() for b in built for d in b.diagnostics] == []
    return package.load(place / "kinds", "tvm_ffi.library").LIBRARY.get_function("kinds")


X = np.float32([1, 2])
GOOD = (X, None, 2.0, 1, False, "plain", "int32", (0.5, 0.25), (7, 8, 9))


def test_declarations_are_those_of_tvm_ffi(tmp_path: Path) -> None:
    from tvm_ffi import libinfo

    source = tmp_path / "layout.cpp"
    source.write_text(LAYOUT)
    folders = [f"-I{f}" for f in (runtime_include(), libinfo.find_include_path(), libinfo.find_dlpack_include_path())]
    done = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", *folders, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_functions_are_tvm_ffis() -> None:
    import ctypes
    import re

    from tvm_ffi import libinfo

    library = ctypes.CDLL(libinfo.find_libtvm_ffi())
    names = re.findall(r"^\w+ \**(TVMFFI\w+)\(", (runtime_include() / "opc/adapters/tvm_ffi_api.h").read_text(), re.MULTILINE)
    assert len(names) == 5
    assert [n for n in names if not hasattr(library, n)] == []


def test_every_kind_of_argument(kinds: Any) -> None:
    y, rounded = kinds(*GOOD)
    assert (np.from_dlpack(y).tolist(), np.from_dlpack(rounded).dtype) == ([3.25, 5.25], np.int32)
    other = (X, X, 2, 1, True, "a mode of many letters", "float32", [1, 2], [])
    y, rounded = kinds(*other)
    assert np.from_dlpack(y).tolist() == [97.0, 94.0] == np.from_dlpack(rounded).tolist()


def test_outputs_as_the_caller_wants_them(kinds: Any) -> None:
    import torch

    x, out = torch.ones(2), torch.zeros(2)
    y, rounded = kinds(x, *GOOD[1:-3], torch.int32, *GOOD[-2:], out, True)
    assert y is None
    assert (out.tolist(), rounded.dtype, rounded.tolist()) == ([3.25, 3.25], torch.int32, [3, 3])
    with pytest.raises(ValueError, match="kinds: the output y must be given"):
        kinds(*GOOD, None, None)


@pytest.mark.parametrize(
    ("place", "value", "kind", "message"),
    [
        (0, 3, TypeError, "kinds: x must be a tensor"),
        (0, None, ValueError, "kinds: the input x must be given"),
        (0, np.ones(2, np.complex64), ValueError, "kinds: x has dtype complex64, but T is one of float32"),
        (0, np.ones((2, 2), np.float32), ValueError, r"kinds: x must have 1 axis, but has shape \[2, 2\]"),
        (1, np.ones(3, np.float32), ValueError, "kinds: N is 2 in x, but 3 in w"),
        (2, "2", TypeError, "kinds: scale must be a number"),
        (3, 1.5, TypeError, "kinds: shift must be an integer"),
        (3, 1 << 70, ValueError, "kinds: shift does not fit 64 bits"),
        (4, 1, TypeError, "kinds: flip must be True or False"),
        (5, "none of many letters", ValueError, "kinds: mode = 'none of many letters' is not one of"),
        (5, 1, TypeError, "kinds: mode must be a text"),
        (6, "int33", ValueError, "kinds: to must be a dtype that opc knows, not 'int33'"),
        (6, "int4", TypeError, "kinds: to is int4, which tvm-ffi has no tensors of"),
        (6, "int8", ValueError, "kinds: to has dtype int8, but S is one of float32, int32"),
        (7, (1.0,), ValueError, "kinds: two must have 2 elements, but has 1"),
        (7, 1.0, TypeError, "kinds: two must be a sequence"),
        (8, (1, "a"), TypeError, "kinds: many must be an integer"),
    ],
)
def test_what_does_not_fit_is_refused(kinds: Any, place: int, value: Any, kind: type, message: str) -> None:
    given = list(GOOD)
    given[place] = value
    with pytest.raises(kind, match=message):
        kinds(*given)


def test_a_wrong_number_of_arguments_is_refused(kinds: Any) -> None:
    message = "kinds: takes 2 inputs, 7 attributes, and 2 outputs or none of these, but was given 10 arguments"
    with pytest.raises(TypeError, match=message):
        kinds(*GOOD, None)


def test_results_keep_their_memory(kinds: Any) -> None:
    """A result outlives the call, and gives its memory back with its last user."""
    kept = [np.from_dlpack(kinds(np.full(1 << 18, i, np.float32), *GOOD[1:])[0]) for i in range(4)]
    assert [float(k[-1]) for k in kept] == [2 * i + 1.25 for i in range(4)]
    assert all(k.ctypes.data % 64 == 0 for k in kept)


def test_types_that_numpy_has_not(kinds: Any) -> None:
    import torch

    y, _ = kinds(torch.ones(2, dtype=torch.float32), *GOOD[1:])
    assert isinstance(y, torch.Tensor)
    with pytest.raises(ValueError, match="kinds: x has dtype bfloat16"):
        kinds(torch.ones(2, dtype=torch.bfloat16), *GOOD[1:])


@pytest.mark.rotating
def test_a_wheel_says_where_its_library_is(tmp_path: Path) -> None:
    (tmp_path / "kinds.yaml").write_text(SPEC)
    command = [sys.executable, "-m", "opc", "package", "kinds.yaml", "-b", "tvm_ffi", "--name", "my-ops", "--version", "1.0"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = (
        "import my_ops, numpy, tvm_ffi\n"
        "kinds = tvm_ffi.load_module(my_ops.tvm_ffi_library()).kinds\n"
        "y, _ = kinds(numpy.ones(1, 'float32'), None, 2.0, 1, False, 'plain', 'int32', (0.5, 0.25), ())\n"
        "print(numpy.from_dlpack(y))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "site", capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "[3.25]\n"), found.stderr
