"""The sizes of outputs as calls of a builder: for every op the shapes that shape analysis tells, in both languages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from opc.backends.tensorrt.backend import declarations
from opc.backends.tensorrt.library import templates
from opc.emit.abi import attribute_fields, attributes_type, encode
from opc.emit.abi_defaults import number
from opc.emit.kernel.described import attribute_struct
from opc.emit.shapes.builder import CPP, PYTHON, builder_calls
from opc.emit.shapes.tests import ShapeCall, calls
from opc.ir.op import AttributeKind, Family
from opc.pipeline import load_family

ROOT = Path(__file__).parents[2]
SPECS = sorted((ROOT / "specs").glob("*.yaml"))


@cache
def families() -> dict[str, Family]:
    return {path.stem: load_family(path) for path in SPECS}


class Known:
    """A size that nothing computes with but the builder."""

    def __init__(self, value: int) -> None:
        self.value = value


class Builder:
    """Computes what is made of sizes."""

    def constant(self, value: int) -> Known:
        return Known(value)

    def operation(self, name: str, a: Known, b: Known) -> Known:
        functions = {
            "SUM": lambda: a.value + b.value,
            "SUB": lambda: a.value - b.value,
            "PROD": lambda: a.value * b.value,
            "MIN": lambda: min(a.value, b.value),
            "EQUAL": lambda: int(a.value == b.value),
            "FLOOR_DIV": lambda: a.value // b.value,
        }
        return Known(functions[name]())


@cache
def support() -> dict[str, Any]:
    """Return what a package's `tensorrt/support.py` defines, on a stand-in for TensorRT's module that has names alone."""
    trt: Any = ModuleType("tensorrt")
    fields = ("FLOAT32", "FLOAT64", "INT8", "INT16", "INT32", "INT64", "CHAR")
    trt.PluginFieldType = SimpleNamespace(**{name: name for name in fields})
    names = ("SUM", "SUB", "PROD", "MIN", "EQUAL", "FLOOR_DIV")
    trt.DimensionOperation = SimpleNamespace(**{name: name for name in names})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tensorrt", trt)
        defined: dict[str, Any] = {"__name__": "support", "__file__": "support.py"}
        exec(templates.render("support.py.j2", families()["add"]), defined)
    return defined


def values(family: Family, call: ShapeCall) -> dict[str, Any]:
    return {a.name: call.attributes.get(a.name, a.default) for a in family.forward.attributes}


def accepted(family: Family) -> Iterator[ShapeCall]:
    yield from (call for call in calls(family.forward, family.examples) if not isinstance(call.answer, str))


@pytest.mark.rotating
@pytest.mark.parametrize("name", [path.stem for path in SPECS])
def test_python_gives_the_shapes_of_shape_analysis(name: str) -> None:
    family = families()[name]
    code = "\n".join(builder_calls(family.forward, PYTHON))
    told = 0
    for call in accepted(family):
        attributes = SimpleNamespace(**values(family, call))
        for wrap in (int, Known):
            inputs = [None if shape is None else [wrap(n) for n in shape] for shape in call.shapes]
            s = support()["Shapes"](inputs, Builder())
            exec(code, {"s": s, "attributes": attributes})
            found = tuple(tuple(s.expression(n).value for n in sizes) for sizes in s.outputs)
            assert found == tuple(call.answer), (call, wrap)
            told += 1
    assert told >= 4, f"{name} has calls with sizes as numbers and as expressions"


def struct_values(family: Family, call: ShapeCall) -> tuple[list[str], list[str]]:
    """Return arrays that lists point to, and the initialisers of the attribute struct."""
    arrays, members = [], []
    for field in attribute_fields(family):
        a = family.forward.attribute(field.attribute)
        value = encode(a, values(family, call)[a.name])
        if field.is_length:
            members.append(str(len(value)))
        elif isinstance(value, tuple):
            text = f"{{{', '.join(map(number, value))}}}"
            if field.count is not None and field.count < 0:
                arrays.append(f"    static const {field.c_type} {field.name}_list[] = {text};")
                text = f"{field.name}_list"
            members.append(text)
        else:
            members.append(f'"{value}"' if isinstance(value, str) else number(value or 0))
    return arrays, members or ["0"]


@pytest.mark.rotating
def test_cpp_gives_the_shapes_of_shape_analysis(tmp_path: Path) -> None:
    """All ops in one program: each call with sizes as numbers and as expressions that hide their values."""
    text = ['#include "opc/adapters/tensorrt_shapes.h"', '#include "emulation/sizes.h"', HARNESS]
    count = 0
    for name, family in families().items():
        op = family.forward
        text += [f"namespace {name}_op {{", attribute_struct(family)]
        text.append(f"static void shapes(opc::trt::Shapes &s, const {attributes_type(family)} &attributes) {{")
        text += ["  static_cast<void>(attributes);", *(f"  {line};" for line in builder_calls(op, CPP)), "}"]
        names = ", ".join(f'{{"{x.name}", false, -1, false, 1}}' for x in op.inputs)
        text.append(f"static const opc::trt::Operand operands[] = {{{names}}};")
        text.append("static void check() {")
        for call in accepted(family):
            arrays, members = struct_values(family, call)
            shapes = ", ".join("absent" if s is None else f"known({{{', '.join(map(str, s))}}})" for s in call.shapes)
            answer = ", ".join(f"{{{', '.join(map(str, s or ()))}}}" for s in call.answer)
            text += ["  {", *arrays, f"    const {attributes_type(family)} attributes = {{{', '.join(members)}}};"]
            text.append(f'    compare("{name}", operands, shapes, attributes, {{{shapes}}}, {{{answer}}});')
            text.append("  }")
            count += 1
        text += ["}", "}"]
    text += [
        "int main() {",
        *(f"  {name}_op::check();" for name in families()),
        '  printf("%d\\n", checked);',
        "  return 0;",
        "}",
    ]
    source = tmp_path / "shapes.cpp"
    source.write_text("\n".join(text) + "\n")
    include = (f"-I{ROOT / 'runtime' / 'include'}", *declarations("10"))
    command = ["g++", "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", *include, str(source), "-o", str(tmp_path / "shapes")]
    subprocess.run(command, check=True)
    done = subprocess.run([str(tmp_path / "shapes")], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(2 * count)], done.stdout + done.stderr
    assert count > 2 * len(SPECS)


HARNESS = """
#include <cstdio>

using Input = std::pair<bool, std::vector<int64_t>>;
static const Input absent{false, {}};
static Input known(std::vector<int64_t> sizes) { return {true, sizes}; }
static int checked = 0;

template <typename Attributes>
static void compare(const char *name, const opc::trt::Operand *operands, void (*shapes)(opc::trt::Shapes &, const Attributes &),
                    const Attributes &attributes, const std::vector<Input> &inputs,
                    const std::vector<std::vector<int64_t>> &answer) {
  for (const bool hidden : {false, true}) {
    emulation::Builder builder;
    std::vector<opc::trt::Sizes> sizes(inputs.size());
    std::vector<const opc::trt::Sizes *> given(inputs.size() + 1);
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (const int64_t n : inputs[i].second) {
        sizes[i].push_back(hidden ? opc::trt::Size{builder.unknown(n), 0} : opc::trt::Size{nullptr, n});
      }
      given[i] = inputs[i].first ? &sizes[i] : nullptr;
    }
    opc::trt::ShapeBuilder s(name, operands, given.data(), hidden ? &builder : nullptr);
    shapes(s, attributes);
    std::vector<std::vector<int64_t>> found;
    for (const opc::trt::Sizes &own : s.outputs) {
      found.emplace_back();
      for (const opc::trt::Size &size : own) {
        found.back().push_back(size.known() ? size.number : static_cast<const emulation::Expr *>(size.expression)->value);
      }
    }
    if (!s.ok || found != answer) printf("%s differs, hidden %d\\n", name, hidden);
    checked += s.ok && found == answer;
  }
}
"""


def test_texts_of_operators() -> None:
    """A remainder, a minimum and a flag are written as calls, and what is taken away comes last."""
    from opc.emit.shapes.builder import SizeText
    from opc.ir.affine import Affine, AttrInt, Dim, minimum

    n, k = Affine.of(Dim("N")), Affine.of(AttrInt("k"))
    text = SizeText(families()["add"].forward, CPP).affine
    assert text(n % 4) == 's.modulo(s.dim("N"), s.number(4))'
    assert text(minimum(n, k)) in (
        's.minimum(s.dim("N"), s.number(attributes.k))',
        's.minimum(s.number(attributes.k), s.dim("N"))',
    )
    assert text(n - k) == 's.subtract(s.dim("N"), s.number(attributes.k))'
    assert text(k - n) == 's.subtract(s.number(attributes.k), s.dim("N"))'
    assert text(-n) == 's.subtract(s.number(0), s.dim("N"))'


def test_attribute_kinds_are_those_of_the_struct() -> None:
    from opc.backends.tensorrt.library import KINDS

    assert {a.kind for f in families().values() for a in f.forward.attributes} - set(KINDS) <= {
        AttributeKind.STR,
        AttributeKind.DTYPE,
    }
