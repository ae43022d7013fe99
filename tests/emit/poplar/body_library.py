"""Runs the bodies of a family for Poplar by themselves: each call builds a graph, an engine and runs it on the emulation.

A small library is compiled around the header of the bodies, and called through ctypes; no PopART is in it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import opc
from opc.analysis.shapes.inference import infer, infer_types
from opc.emit.poplar.dtypes import carried
from opc.emit.poplar.files import poplar_files, reached
from opc.ir.dtypes import DType, TypeVar, numpy_dtype, resolve
from opc.ir.op import Attribute, AttributeKind, AttributeValue, Family, Op
from opc.lower.poplar.nodes import PoplarProgram
from opc.testing.oracle.evaluation import askable
from tests.emulation.sdk import sdk

Array = np.ndarray[Any, Any]
RUNTIME = Path(opc.__file__).parent.parent / "runtime"
EMULATION = RUNTIME / "emulation" / "poplar"
OPTIONS = (
    os.environ.get("CXX") or shutil.which("g++") or "g++", "-std=c++14", "-Wall", "-Wextra", "-Werror", "-O0", "-fPIC",
    f"-I{RUNTIME / 'include'}",
)  # fmt: skip
COMPILE = (*OPTIONS, f"-I{EMULATION / 'include'}")
"""A compiler's call with the emulation's headers alone, which define everything."""
TYPES = {
    DType.FLOAT32: "FLOAT", DType.FLOAT16: "HALF", DType.INT32: "INT", DType.UINT32: "UNSIGNED_INT", DType.INT16: "SHORT",
    DType.UINT16: "UNSIGNED_SHORT", DType.INT8: "SIGNED_CHAR", DType.UINT8: "UNSIGNED_CHAR", DType.BOOL: "BOOL",
}  # fmt: skip
TILES, BYTES = 16, 638976
LINKED = ("-lpoplin", "-lpopops", "-lpoputil", "-lpoplar", "-ldl")

HEAD = """\
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>

#include <cstring>
#include <map>

{included}

struct argument {{
  int type, rank;
  const std::size_t *sizes;
  void *data;
}};

static const std::vector<poplar::Type> types = {{{types}}};

template <typename Body>
static int run(Body body, const argument *inputs, int input_count, const argument *outputs, int output_count, const int *wanted,
               const char *codelets, int tiles, int bytes, char *message) {{
  try {{
    poplar::IPUModel model;
    model.tilesPerIPU = tiles;
    model.memoryBytesPerTile = bytes;
    poplar::Device device = model.createDevice();
    poplar::Graph graph(device);
    if (codelets[0] != 0) graph.addCodelets(codelets);
    poplar::program::Sequence prog;
    std::vector<poplar::Tensor> given(input_count);
    for (int i = 0; i < input_count; ++i) {{
      if (inputs[i].data == nullptr) continue;
      const std::vector<std::size_t> sizes(inputs[i].sizes, inputs[i].sizes + inputs[i].rank);
      given[i] = graph.addVariable(types[inputs[i].type], sizes, "input" + std::to_string(i));
      poputil::mapTensorLinearly(graph, given[i]);
      if (given[i].numElements() > 0) graph.createHostWrite("in" + std::to_string(i), given[i]);
    }}
    std::vector<bool> asked(wanted, wanted + output_count);
    const std::vector<poplar::Tensor> made = body(graph, prog, given, asked);
    for (int i = 0; i < output_count; ++i) {{
      if (made[i].valid() != asked[i]) throw std::runtime_error("output " + std::to_string(i) + " is not what was wanted");
      if (!asked[i]) continue;
      const std::vector<std::size_t> sizes(outputs[i].sizes, outputs[i].sizes + outputs[i].rank);
      if (made[i].shape() != sizes) throw std::runtime_error("output " + std::to_string(i) + " has another shape");
      if (made[i].elementType() != types[outputs[i].type]) {{
        throw std::runtime_error("output " + std::to_string(i) + " has another type");
      }}
      if (made[i].numElements() > 0) graph.createHostRead("out" + std::to_string(i), made[i]);
    }}
    poplar::Engine engine(graph, prog);
    engine.load(device);
    const auto end = [&](const argument &a) {{
      std::size_t bytes = graph.getTarget().getTypeSize(types[a.type]);
      for (int i = 0; i < a.rank; ++i) bytes *= a.sizes[i];
      return static_cast<char *>(a.data) + bytes;
    }};
    for (int i = 0; i < input_count; ++i) {{
      if (!given[i].valid() || given[i].numElements() == 0) continue;
      engine.writeTensor("in" + std::to_string(i), inputs[i].data, end(inputs[i]));
    }}
    engine.run();
    for (int i = 0; i < output_count; ++i) {{
      if (asked[i] && made[i].numElements() > 0) engine.readTensor("out" + std::to_string(i), outputs[i].data, end(outputs[i]));
    }}
    return 0;
  }} catch (const std::exception &error) {{
    std::strncpy(message, error.what(), 4095);
    return 1;
  }}
}}
"""


class BodyError(Exception):
    """A body, or the emulation, refused the call, with this message."""


class Argument(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("rank", ctypes.c_int),
        ("sizes", ctypes.POINTER(ctypes.c_size_t)),
        ("data", ctypes.c_void_p),
    )


class BodyLibrary:
    """The bodies of a family, in a loaded library, and the file of its codelets where it has any."""

    def __init__(self, family: Family, library: ctypes.CDLL, codelets: Path | None) -> None:
        self.family, self.library, self.codelets = family, library, codelets

    def call(
        self,
        op: Op,
        arrays: Mapping[str, Array | None],
        attributes: Mapping[str, Any] | None = None,
        wanted: Collection[str] | None = None,
        tiles: int = TILES,
        bytes_per_tile: int = BYTES,
    ) -> dict[str, Array]:
        """Return the outputs of one call on an IPU of some tiles, those that are asked for.

        Raises:
            BodyError: when the call ends with an error.
        """
        given = {n: a for n, a in arrays.items() if a is not None}
        attributes = attributes or {}
        shapes = infer(op, {n: a.shape for n, a in given.items()}, attributes).outputs
        told = infer_types(op, {n: DType(str(a.dtype)) for n, a in given.items()}, attributes)
        binding = {t.name: told.get(t.name, t.dtypes[0]) for t in op.types}
        asked = [o.name for o in op.outputs if o.name in (askable(op, given) if wanted is None else wanted) and o.name in shapes]
        if wanted is not None:
            asked = [o.name for o in op.outputs if (not o.optional or o.name in wanted) and o.name in shapes]
        kinds = {n: resolve(op.output(n).type, binding) for n in asked}
        results = {n: np.zeros(shapes[n], numpy_dtype(_held(kinds[n]))) for n in asked}
        keep: list[Any] = []
        inputs = [self._argument(given.get(o.name), keep) for o in op.inputs]
        outputs = [self._argument(results.get(o.name), keep) for o in op.outputs]
        flags = (ctypes.c_int * len(op.outputs))(*(o.name in results for o in op.outputs))
        numbers, texts = _values(self.family.forward, attributes)
        message = ctypes.create_string_buffer(4096)
        function = getattr(self.library, f"run_{op.name}")
        failed = function(
            (Argument * max(1, len(inputs)))(*inputs), len(inputs),
            (Argument * max(1, len(outputs)))(*outputs), len(outputs), flags,
            str(self.codelets or "").encode(), (ctypes.c_double * max(1, len(numbers)))(*numbers),
            (ctypes.c_char_p * max(1, len(texts)))(*(t.encode() for t in texts)), tiles, bytes_per_tile, message,
        )  # fmt: skip
        if failed:
            raise BodyError(message.value.decode(errors="replace"))
        return {n: a.astype(numpy_dtype(kinds[n]), copy=False) for n, a in results.items()}

    def _argument(self, a: Array | None, keep: list[Any]) -> Argument:
        if a is None:
            return Argument(0, 0, None, None)
        dtype = DType(str(a.dtype))
        data = np.ascontiguousarray(a, numpy_dtype(_held(dtype)))
        if data.shape != a.shape:
            data = data.reshape(a.shape)
        if data is not a:
            keep.append(data)
        sizes = (ctypes.c_size_t * max(1, data.ndim))(*data.shape)
        keep.append(sizes)
        empty = ctypes.create_string_buffer(8)
        keep.append(empty)
        pointer = data.ctypes.data if data.size else ctypes.addressof(empty)
        return Argument([*TYPES].index(_held(dtype)), data.ndim, sizes, pointer)


def built() -> tuple[str, ...]:
    """Return a compiler's call with the headers of a built SDK, whose libraries have what these declare."""
    return (*OPTIONS, f"-I{sdk() / 'include'}")


def build(folder: Path, families: Mapping[str, tuple[Family, Mapping[str, PoplarProgram] | None]]) -> dict[str, BodyLibrary]:
    """Compile the bodies of families with different names into one library, and their codelets into one file.

    Headers take most of the time, which one library needs once. Programs of a family may be given.
    """
    codelets: list[str] = []
    for family, programs in families.values():
        for path, text in poplar_files(family, programs).items():
            (folder / Path(path).name).write_text(text, encoding="utf-8")
            codelets += [text] if path.endswith("_codelets.cpp") else []
    source, library = folder / "driver.cpp", folder / "driver.so"
    source.write_text(_driver([family for family, _ in families.values()]), encoding="utf-8")
    linked = [f"-L{sdk() / 'lib'}", f"-Wl,-rpath,{sdk() / 'lib'}", *LINKED]
    run([*built(), "-shared", f"-I{folder}", str(source), "-o", str(library), *linked])
    made = folder / "all_codelets.gp" if codelets else None
    if made is not None:
        joined = made.with_suffix(".cpp")
        joined.write_text("\n".join(codelets), encoding="utf-8")
        popc = str(EMULATION / "bin" / "popc")
        run([sys.executable, popc, "-O0", f"-I{RUNTIME / 'include'}", str(joined), "-o", str(made)])
    loaded = ctypes.CDLL(str(library))
    return {name: BodyLibrary(family, loaded, made) for name, (family, _) in families.items()}


def run(command: list[str]) -> None:
    """Run a command.

    Raises:
        RuntimeError: when it fails, with what it says.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[:4000]}")


def can_carry(op: Op, arrays: Mapping[str, Array | None], attributes: Mapping[str, Any]) -> bool:
    """Whether Poplar has the dtypes of a call."""
    binding = infer_types(op, {n: DType(str(a.dtype)) for n, a in arrays.items() if a is not None}, attributes)
    for o in op.inputs:
        array = arrays.get(o.name)
        if array is not None and _held(DType(str(array.dtype))) not in TYPES:
            return False
    known = {t.name: t for t in op.types}
    # Indices of int64 are int32 there.
    return all(
        d in carried(known[n]) or (d is DType.INT64 and DType.INT32 in carried(known[n]) and _is_index(known[n]))
        for n, d in binding.items()
    )


def _is_index(t: TypeVar) -> bool:
    return set(t.dtypes) <= {DType.INT64, DType.INT32}


def _held(dtype: DType) -> DType:
    return DType.INT32 if dtype is DType.INT64 else dtype


def _driver(families: Sequence[Family]) -> str:
    types = ", ".join(f"poplar::{name}" for name in TYPES.values())
    included = "\n".join(f'#include "{family.name}_body.hpp"' for family in families)
    head = HEAD.format(included=included, types=types)
    return "\n".join([head, *(line for f in families for op in reached(f) for line in _function(f, op))]) + "\n"


def _function(family: Family, op: Op) -> Iterator[str]:
    yield (
        f'extern "C" int run_{op.name}(const argument *inputs, int input_count, const argument *outputs, int output_count, '
        "const int *wanted, const char *codelets, const double *numbers, const char *const *texts, int tiles, int bytes, "
        "char *message) {"
    )
    yield f"  {family.name}_body::attributes attributes;"
    yield "  int n = 0, t = 0;"
    yield "  static_cast<void>(numbers); static_cast<void>(texts);"
    for a in family.forward.attributes:
        yield from _set(a)
    yield "  static_cast<void>(n); static_cast<void>(t);"
    yield (
        "  return run([&](poplar::Graph &graph, poplar::program::Sequence &prog, const std::vector<poplar::Tensor> &given, "
        f"const std::vector<bool> &asked) {{ return {family.name}_body::{op.name}(graph, prog, given, asked, attributes, "
        f'{{"{op.name}"}}); }}, inputs, input_count, outputs, output_count, wanted, codelets, tiles, bytes, message);'
    )
    yield "}"


def _set(a: Attribute) -> Iterator[str]:
    own = f"attributes.{a.name}"
    if a.kind is AttributeKind.DTYPE:
        yield f"  {own} = types[static_cast<int>(numbers[n++])];"
    elif a.length is None:
        yield f"  {own} = {_one(a, f'decltype({own})')};"
    else:
        one = _one(a, f"decltype({own})::value_type")
        yield f"  {own}.resize(static_cast<std::size_t>(numbers[n++]));"
        yield f"  for (auto &element : {own}) element = {one};"


def _one(a: Attribute, kind: str) -> str:
    """Return the next value of a kind: a double does not have all integers of 64 bits."""
    if a.kind is AttributeKind.STR:
        return "texts[t++]"
    return f"static_cast<{kind}>({'std::stoll(texts[t++])' if a.kind is AttributeKind.INT else 'numbers[n++]'})"


def _values(op: Op, attributes: Mapping[str, Any]) -> tuple[list[float], list[str]]:
    """Return the numbers and texts that the driver sets attributes from, in order."""
    numbers: list[float] = []
    texts: list[str] = []

    def put(a: Attribute, value: AttributeValue) -> None:
        if a.kind in (AttributeKind.STR, AttributeKind.INT):
            texts.append(str(value))
        elif a.kind is AttributeKind.DTYPE:
            numbers.append([*TYPES].index(DType(str(value))))
        else:
            numbers.append(float(value))

    for a in op.attributes:
        value = attributes.get(a.name, a.default)
        if a.length is None:
            put(a, value if value is not None else ("" if a.kind is AttributeKind.STR else 0))
        else:
            elements = value if isinstance(value, tuple | list) else ()
            numbers.append(len(elements))
            for element in elements:
                put(a, element)
    return numbers, texts
