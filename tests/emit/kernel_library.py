"""Builds a family's kernel with g++ alone and calls it through ctypes, with NumPy arrays as DLPack tensors."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

import opc
from opc.analysis.shapes.inference import infer, infer_types
from opc.backends.base import Compile
from opc.backends.kernel.backend import VARIANT, KernelBackend, instruction_sets
from opc.emit import abi
from opc.ir.dtypes import DType, numpy_dtype, resolve
from opc.ir.op import AttributeKind, Family, Op
from opc.testing.oracle.evaluation import askable

Array = np.ndarray[Any, Any]
INCLUDE = Path(opc.__file__).parent.parent / "runtime" / "include"


class KernelError(Exception):
    """The kernel refused the call, with this message."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


RANGE_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, RANGE_BODY, ctypes.c_void_p)


class Context(ctypes.Structure):
    _fields_ = (
        ("parallel_for", PARALLEL_FOR),
        ("pool", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("message_size", ctypes.c_int64),
    )


CHEAP = {"-O2": "-O1", "-O1": "-O0"}
"""How far kernels are optimised here: loops are vectorised where pragmas say so. The proof runs them as they are shipped."""

KEPT = Path(opc.__file__).parent.parent / ".pytest_cache" / "kernels"
"""Libraries by the hash of all they are made from, which workers and later runs take instead of compiling again."""

MOST_KEPT = 2000
"""How many libraries are kept; those made first go first."""


def compile_kernel(family: Family, directory: Path, *extra: str) -> Path:
    """Emit, compile and link the kernel with further flags, and return the shared library.

    Only one instruction-set variant is compiled: this machine's, or the one that `-DOPC_FORCE_VARIANT` in the flags names.
    """
    backend = KernelBackend()
    forced = [f.partition("=")[2] for f in extra if f.startswith("-DOPC_FORCE_VARIANT=")]
    variant = forced[0] if forced else instruction_sets()[0]
    texts = backend.emit(family)
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIANT, variant)
        steps = [s for s in backend.build(family) if isinstance(s, Compile)]
    compiles = [(s.source, s.object, [CHEAP.get(f, f) for f in s.flags]) for s in steps]
    link = [*extra, *backend.link_flags(family)]
    key = hashlib.sha256(json.dumps([texts, compiles, link, extra, shared_inputs()]).encode()).hexdigest()
    library, kept = directory / f"lib{family.name}.so", KEPT / f"{key}.so"
    KEPT.mkdir(parents=True, exist_ok=True)
    # A worker waits for another that compiles the same.
    with FileLock(KEPT / f"{key}.lock"):
        if not kept.exists():
            for _, made, _ in compiles:
                (directory / made).parent.mkdir(parents=True, exist_ok=True)

            def run(step: tuple[str, str, list[str]]) -> None:
                source, made, flags = step
                include = [f"-I{INCLUDE}", f"-I{directory}"]
                subprocess.run(["g++", *flags, *include, *extra, "-c", directory / source, "-o", directory / made], check=True)

            with ThreadPoolExecutor(2) as pool:
                list(pool.map(run, compiles))
            objects = [directory / made for _, made, _ in compiles]
            subprocess.run(["gcc", "-shared", "-o", library, *objects, *link], check=True)
            shutil.copyfile(library, partial := KEPT / f"{key}.{os.getpid()}")
            partial.replace(kept)
            for old in sorted(KEPT.glob("*.so"), key=lambda f: f.stat().st_mtime)[:-MOST_KEPT]:
                old.unlink(missing_ok=True)
                old.with_suffix(".lock").unlink(missing_ok=True)
        # A copy, for a process loads a file once, and tests change what a library holds.
        shutil.copyfile(kept, library)
    return library


@cache
def shared_inputs() -> str:
    """Return a hash of what every kernel is made from: the runtime's headers and the compiler."""
    total = hashlib.sha256(subprocess.run(["g++", "-v"], capture_output=True, check=True).stderr)
    for path in sorted(INCLUDE.rglob("*.h")):
        total.update(f"{path.relative_to(INCLUDE)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def odd_parallel_for(pool: object, count: int, grain: int, body: Any, argument: Any) -> None:
    """Split a range unevenly, as no thread pool would, and run the pieces last first."""
    cuts = sorted({0, count, *(min(count, max(1, grain) * k + k % 3) for k in range(1, 40))})
    for begin, end in reversed(list(pairwise(cuts))):
        body(argument, begin, end)


def split_everywhere(pool: object, count: int, grain: int, body: Any, argument: Any) -> None:
    """Run every unit of work on its own."""
    for k in range(count):
        body(argument, k, k + 1)


class KernelLibrary:
    """The loaded kernel of a family."""

    def __init__(self, family: Family, library: Path, parallel_for: Any = None) -> None:
        self.family = family
        self.library = ctypes.CDLL(str(library))
        self.parallel_for = PARALLEL_FOR(parallel_for) if parallel_for else PARALLEL_FOR()
        self.message = ctypes.create_string_buffer(1024)
        self.context = Context(self.parallel_for, None, ctypes.addressof(self.message), len(self.message))

    def call(
        self,
        op: Op,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        wanted: Collection[str] | None = None,
        outputs: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Call the kernel and return its outputs; `outputs` gives memory for some of them.

        Raises:
            KernelError: when the kernel refuses.
        """
        given = {n: a for n, a in inputs.items() if a is not None}
        names = list(askable(op, given) if wanted is None else wanted)
        try:
            env = infer(op, {n: a.shape for n, a in given.items()}, attributes)
            binding = infer_types(op, {n: DType(str(a.dtype)) for n, a in given.items()}, attributes)
            dtypes = {n: numpy_dtype(resolve(op.output(n).type, binding)) for n in names}
            made = {n: np.full(env.outputs[n], 77, dtypes[n]) for n in names if n in env.outputs}
        except Exception:  # the kernel must refuse it too: give it outputs of any shape
            made = {n: np.zeros((), np.float32) for n in names}
        made |= outputs or {}
        keep: list[Any] = []
        ins = [_tensor(inputs.get(o.name), keep) for o in op.inputs]
        outs = [_tensor(made.get(o.name), keep) for o in op.outputs]
        function = getattr(self.library, abi.function_name(op))
        code = function(
            (ctypes.POINTER(Tensor) * max(1, len(ins)))(*ins),
            (ctypes.POINTER(Tensor) * max(1, len(outs)))(*outs),
            ctypes.byref(_attributes(self.family, attributes, keep)),
            ctypes.byref(self.context),
        )
        if code != 0:
            raise KernelError(code, self.message.value.decode())
        return made


def _tensor(array: Array | None, keep: list[Any]) -> Any:
    if array is None:
        return ctypes.POINTER(Tensor)()
    dtype = DType(str(array.dtype))
    shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    strides = (ctypes.c_int64 * max(1, array.ndim))(*(s // array.itemsize for s in array.strides))
    tensor = Tensor(array.ctypes.data, 1, 0, array.ndim, DataType(dtype.row.dlpack, dtype.bits, 1), shape, strides, 0)
    keep += [array, shape, strides, tensor]
    return ctypes.pointer(tensor)


_CTYPES = {"double": ctypes.c_double, "int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "const char *": ctypes.c_char_p}


def _attributes(family: Family, given: Mapping[str, Any], keep: list[Any]) -> ctypes.Structure:
    fields: list[tuple[str, Any]] = []
    values: dict[str, Any] = {}
    declared = {a.name: a for a in family.forward.attributes}
    for f in abi.attribute_fields(family):
        a = declared[f.attribute]
        value = given.get(a.name, a.default)
        if value is None and a.name in family.forward.told:
            value = 0  # the op that finds it in data is not given it
        kind = _CTYPES[f.c_type]
        if a.kind is AttributeKind.STR and isinstance(value, str):
            value = a.values.index(value) if value in a.values else 99
        if a.kind is AttributeKind.DTYPE:
            value = abi.encode(a, value)
        if f.is_length:
            fields.append((f.name, kind))
            values[f.name] = len(value)
        elif f.count is None:
            fields.append((f.name, kind))
            values[f.name] = value
        elif f.count < 0:
            array = (kind * max(1, len(value)))(*value)
            keep.append(array)
            fields.append((f.name, ctypes.POINTER(kind)))
            values[f.name] = ctypes.cast(array, ctypes.POINTER(kind))
        else:
            fields.append((f.name, kind * f.count))
            values[f.name] = (kind * f.count)(*value)
    structure = type("Attributes", (ctypes.Structure,), {"_fields_": fields or [("unused", ctypes.c_char)]})
    return structure(**values)
