"""Bodies for Poplar: their text, that all of it compiles, and what they compute on the emulation against the oracle."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from opc.backends.poplar.files import requires
from opc.emit.poplar.files import body_header, poplar_files, reached, refused
from opc.ir.functions import CALLABLE, FUNCTIONS
from opc.ir.op import Family
from opc.lower.poplar.lower import poplar_program
from opc.lower.poplar.views import FUNCTIONS as EXPRESSED
from opc.pipeline import compile_text, load_family
from opc.testing.cases.table import accepted
from opc.testing.extent import Extent
from opc.testing.oracle.evaluation import DomainError, evaluate
from opc.testing.oracle.tolerance import compare
from tests.emit.poplar.body_library import COMPILE, BodyError, BodyLibrary, build, can_carry, run

SPECS = Path(__file__).parents[3] / "specs"
GOLDEN = Path(__file__).parent / "golden"
HEAD = "op: {name}\ndomain: opc.test\nversion: 1\ndoc: A test.\n"
F = HEAD.format(name="f")
OPS = ("softmax", "instance_norm", "matmul", "conv2d")
"""Optional operands and outputs, sums over rows, broadcast products, groups of channels."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BodyLibrary]:
    """The ops of this file by name, in one library."""
    families = [*map(of_spec, OPS), functions(), *(compile_text(text, "own.yaml") for text in (INTEGERS, UNSIGNED, MAXIMUM))]
    return build(tmp_path_factory.mktemp("bodies"), {f.name: (f, None) for f in families})


@cache
def of_spec(name: str) -> Family:
    return load_family(SPECS / f"{name}.yaml")


def functions() -> Family:
    """Return an op that calls every function that expressions have, and uses every operator."""
    outputs: dict[str, tuple[str, str]] = {}
    for name in CALLABLE:
        if name in EXPRESSED:
            kind = "bool" if FUNCTIONS[name].types == "test" else "T"
            outputs[f"y_{name}"] = kind, f"{name}(x{', z' if FUNCTIONS[name].arity == 2 else ''})"
    arithmetic = ("x + z", "x - z", "x * z", "x / z", "x // z", "x % z", "x ** z", "x ** 3", "x ** -2", "-x", "0 - x")
    conditions = ("x < z", "x <= z", "x > z", "x >= z", "x == z", "x != z", "(x < z and x > 0) or not z > 1")
    outputs |= {f"a_{n}": ("T", e) for n, e in enumerate(arithmetic)}
    outputs |= {f"c_{n}": ("bool", e) for n, e in enumerate(conditions)}
    outputs |= {"i": ("int32", "cast(int32, x * z)"), "j": ("int8", "cast(int8, x * z)")}
    outputs |= {"k": ("T", "cast(T, cast(int32, x) // 3)"), "l": ("T", "x if x > z else 2 * z")}
    declared = "".join(f"  {n}: '{kind}[...]'\n" for n, (kind, _) in outputs.items())
    body = "".join(f"  {n} = {e}\n" for n, (_, e) in outputs.items())
    types = "types: {T: [float16, float32]}\ninputs: {x: 'T[...]', z: 'T[...]'}\n"
    return compile_text(f"{HEAD.format(name='functions')}{types}outputs:\n{declared}gradient: none\nkernel: |\n{body}", "f.yaml")


INTEGERS = (
    HEAD.format(name="integers")
    + """\
types: {I: [int8, int16, int32, uint8]}
inputs: {x: 'I[...]', z: 'I[...]'}
attributes: {n: {type: int, default: 200}}
outputs: {a: 'I[...]', b: 'I[...]', c: 'I[...]', d: 'I[...]', e: 'I[...]', g: 'I[...]', h: 'bool[...]', i: 'I[...]', j: 'I[...]'}
gradient: none
kernel: |
  a = x + z
  b = x - z * n
  c = x // z
  d = x % z
  e = maximum(x, z)
  j = -abs(x)
  g = sign(x) * z
  h = x < z
  i = cast(I, cast(float32, x) / 2)
"""
)

UNSIGNED = (
    HEAD.format(name="naturals")
    + """\
types: {I: [uint8, uint16, uint32]}
inputs: {x: 'I[...]', z: 'I[...]'}
outputs: {a: 'I[...]', b: 'I[...]', c: 'I[...]', d: 'I[...]', e: 'I[...]', g: 'I[...]', h: 'bool[...]'}
gradient: none
kernel: |
  a = x + z
  b = x - z
  c = x // z
  d = x % z
  e = maximum(x, z)
  g = x * z
  h = x < z
"""
)

MAXIMUM = (
    HEAD.format(name="maximum")
    + """\
types: {T: [float32]}
inputs: {x: 'T[*A, N]'}
outputs: {y: 'T[*A]', z: 'T[*A, N]'}
gradient: none
kernel: |
  y[*A] = max[n](x[*A, n])
  z[*A, n] = x[*A, n] - y[*A]
"""
)


def wrong(family: Family, built: BodyLibrary, extent: Extent = Extent.SAMPLE) -> tuple[int, list[str]]:
    """Return how many calls were run, and what is wrong with what came of them."""
    count, found = 0, []
    parents = (None, family.forward, family.backward)
    for op, parent in zip(reached(family), parents):
        for case in accepted(op, parent, random=4, extent=extent):
            arrays = case.arrays()
            if case.kind == "large" or not can_carry(op, arrays, case.attributes):
                continue
            try:
                want = evaluate(op, arrays, case.attributes, wanted=None)
            except DomainError:
                with pytest.raises(BodyError, match=op.name):
                    built.call(op, arrays, case.attributes, case.wanted)
                continue
            got = built.call(op, arrays, case.attributes, case.wanted)
            count += 1
            found += [f"{case.name}: {m}" for n in got if n in want and (m := compare(n, got[n], want[n]).message)]
    return count, found


def test_text() -> None:
    family = load_family(SPECS / "leaky_relu.yaml")
    text = body_header(family, {op.name: poplar_program(op) for op in reached(family)})
    golden = GOLDEN / "leaky_relu_body.hpp"
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.rotating(seconds=10)
def test_all_specs_compile_without_a_warning(tmp_path: Path) -> None:
    """The bodies of all specs in one file, and their codelets in another: as C++14, with -Wall -Wextra."""
    names, codelets = [], []
    for spec in sorted(SPECS.glob("*.yaml")):
        family = load_family(spec)
        if [*requires(family)]:
            continue
        for path, text in poplar_files(family).items():
            (tmp_path / Path(path).name).write_text(text)
            codelets += [text] if path.endswith("_codelets.cpp") else []
        names.append(f"{family.name}_body.hpp")
    (tmp_path / "all.cpp").write_text("".join(f'#include "{name}"\n' for name in names))
    (tmp_path / "codelets.cpp").write_text("\n".join(codelets))
    for source in ("all.cpp", "codelets.cpp"):
        run([*COMPILE, "-fsyntax-only", f"-I{tmp_path}", str(tmp_path / source)])
    assert len(names) > 60
    assert len(codelets) > 20


@pytest.mark.rotating
def test_functions_and_operators(built: dict[str, BodyLibrary]) -> None:
    count, found = wrong(built["functions"].family, built["functions"])
    assert count > 10
    assert not found, "\n".join(found[:10])


@pytest.mark.rotating
def test_integers_without_a_sign(built: dict[str, BodyLibrary]) -> None:
    count, found = wrong(built["naturals"].family, built["naturals"])
    assert count > 10
    assert not found, "\n".join(found[:10])


def test_integers(built: dict[str, BodyLibrary]) -> None:
    count, found = wrong(built["integers"].family, built["integers"])
    assert count > 10
    assert not found, "\n".join(found[:10])


@pytest.mark.parametrize("name", OPS)
def test_calls(name: str, built: dict[str, BodyLibrary]) -> None:
    count, found = wrong(built[name].family, built[name])
    assert count > 30
    assert not found, "\n".join(found[:10])


def test_zeros_around_an_image_without_rows_are_multiplied(built: dict[str, BodyLibrary]) -> None:
    library, family = built["conv2d"], built["conv2d"].family
    w = np.full((5, 1, 1, 2), np.inf, np.float32)
    images = {"x": np.zeros((1, 5, 0, 3), np.float32), "w": w, "b": np.ones(5, np.float32)}
    attributes = {"padding": [1, 0], "groups": 5, "dilation": [1, 2]}
    y = library.call(family.forward, images, attributes)["y"]
    assert y.shape == (1, 5, 2, 1)
    assert np.isnan(y).all()
    images["x"] = np.zeros((1, 0, 0, 3), np.float32)
    images["w"] = w[:, :0]
    np.testing.assert_array_equal(library.call(family.forward, images, attributes)["y"], np.ones((1, 5, 2, 1)))


def test_a_maximum_of_nothing_is_refused_where_it_is_used(built: dict[str, BodyLibrary]) -> None:
    library, family = built["maximum"], built["maximum"].family
    with pytest.raises(BodyError, match="maximum: max over n of nothing: its size is 0"):
        library.call(family.forward, {"x": np.zeros((2, 0), np.float32)})
    assert library.call(family.forward, {"x": np.zeros((0, 0), np.float32)})["z"].shape == (0, 0)
    softmax = built["softmax"]
    assert softmax.call(softmax.family.forward, {"x": np.zeros((2, 0), np.float32)})["y"].shape == (2, 0)


def test_what_poplar_has_no_type_for_is_refused_with_its_place() -> None:
    text = f"{F}types: {{T: [float32]}}\ninputs: {{x: 'T[N]'}}\noutputs: {{y: 'T[N]'}}\ngradient: none\n"
    family = compile_text(f"{text}kernel: 'y[n] = cast(T, cast(float64, x[n]) * 2)'\n", "f.yaml")
    (reason,) = refused(family)
    assert reason.message == "f computes in float64, which Poplar has no type for"
    assert reason.span.line == 9


def test_attributes_have_their_defaults() -> None:
    text = (
        f"{F}types: {{T: [float32]}}\ninputs: {{x: 'T[N]'}}\nattributes:\n  a: {{type: 'float[2]', default: [0.5, 2.0]}}\n"
        "  b: {type: str, values: [sum, mean], default: mean}\n  c: {type: bool, default: true}\n  d: int\n"
        "outputs: {y: 'T[N]'}\ngradient: none\nkernel: \"y[n] = x[n] * a[0] + (d if b == 'sum' and c else a[1])\"\n"
    )
    family = compile_text(text, "f.yaml")
    header = body_header(family, {"f": poplar_program(family.forward)})
    for line in (
        "std::vector<float> a = {0.5f, 2.0f};", 'std::string b = "mean";', "int64_t c = 1;", "int64_t d = 0;",
        'if (attributes.b == "sum" && attributes.c != 0) {',
    ):  # fmt: skip
        assert f"  {line}\n" in header
