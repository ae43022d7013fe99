"""Generated NumPy code computes what the oracle says, and is laid out as formatters do."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.emit.numpy import helpers
from opc.emit.numpy import reference as emitter
from opc.emit.numpy.reference import HELPERS, function_name, numpy_function, numpy_module
from opc.ir import scalar_functions
from opc.ir.functions import FUNCTIONS
from opc.pipeline import compile_text, load_family
from opc.testing.oracle import evaluation as oracle
from opc.testing.oracle import tolerance
from tests import ruff

SPECS = sorted((Path(__file__).parents[2] / "specs").glob("*.yaml"))
HEAD = "op: probe\ndoc: A test.\ndomain: opc.test\nversion: 1\n"

# Signature and kernel; what `specs/` does not have: other orders of axes, computed indices, groups in odd places.
KERNELS = {
    "transposed": ('x: "T[N, M]"', 'y: "T[M, N]"', "y[m, n] = x[n, m] * 2"),
    "between groups": ('x: "T[N, ...]", w: "T[N]"', 'y: "T[N, ...]"', "y[n, ...] = x[n, ...] * w[n]"),
    "outer product": ('x: "T[N]", z: "T[M]"', 'y: "T[N, M]"', "y[n, m] = x[n] * z[m]"),
    "matrix product": ('x: "T[..., K]", w: "T[M, K]"', 'y: "T[..., M]"', "y[..., m] = sum[k](x[..., k] * w[m, k])"),
    "negative product": ('x: "T[N, K]", w: "T[K, M]"', 'y: "T[N, M]"', "y[n, m] = sum[k](-(2 * x[n, k] * w[k, m]))"),
    "negative product of a part": (
        'x: "T[N, K]", w: "T[K, M]"',
        'y: "T[N, M]"',
        "y[n, m] = sum[k](-(k * (2 * x[n, k]) * w[k, m]) if k > 0 else 0)",
    ),
    "negative product with a place": (
        'x: "T[N, K]", w: "T[K, M]"',
        'y: "T[N, M]"',
        "y[n, m] = sum[k](-(n * x[n, k] * w[k, m])) - sum[k](-((m - 1) * x[n, k] * -w[k, m]))",
    ),
    "over a group": ('x: "T[..., D]"', 'y: "T[D]"', "y[d] = sum[...](x[..., d])"),
    "no axis left": ('x: "T[N, M]"', 'y: "T[]"', "y = max[n, m](x[n, m])"),
    "argmax of two axes": ('x: "T[..., N, M]"', 'y: "int64[...]"', "y[...] = argmax[n, m](x[..., n, m])"),
    "shifted": ('x: "T[N]"', 'y: "T[N]"', "y[n] = pad(x[n + 1], -1) - pad(x[n - 1], 1)"),
    "window": ('x: "T[..., N]"', 'y: "T[..., N]"', "y[..., n] = sum[p:3](pad(x[..., n + p - 1], 0))"),
    "halves": ('x: "T[..., D]"', 'y: "T[..., D]"', "y[..., d] = pad(x[..., d + D // 2], 0) if d < D // 2 else x[..., d]"),
    "positions": ('x: "T[N, M]"', 'y: "T[N, M]"', "y[n, m] = x[n, m] * n + m"),
    "constant": ('x: "T[N]"', 'y: "T[N]"', "y[n] = 1.5"),
    "count": ('x: "T[N, M]"', 'y: "T[N]"', "y[n] = sum[m](1 if x[n, m] > 0 else 0) + pad(x[n, 0], 0)"),
    "on part of an axis": ('x: "T[N]", w: "T[D]"', 'y: "T[N]"', "y[n] = x[n] + (w[n] if n < D else 0)"),
    "on more than an axis": ('x: "T[D]", w: "T[N]"', 'y: "T[D]"', "y[d] = x[d] + (w[d] if d < N else 0)"),
    "back in parts": ('x: "T[N]", z: "T[K]"', 'y: "T[K]"', "y[k] = pad(x[2 - (k + 1) % 3], 0) + pad(x[2 - k // 2], 0) * z[k]"),
    "products of nothing": ('x: "T[N]", z: "T[M]"', 'y: "T[M]"', "y[m] = sum[k:N - 3](x[k] * z[m])"),
    "less than nothing": ('z: "T[M]"', 'y: "T[M]"', "y[m] = sum[j:m - 8, k:M - 7](z[m]) + prod[j:M - 9](z[m])"),
    "scan over more": ('x: "T[K]", z: "T[M]"', 'y: "T[M]"', "y[m] = z[m] * sum[k:m + 3](pad(x[k], 0))"),
    "scan over fewer": ('x: "T[K]", z: "T[M]"', 'y: "T[M]"', "y[m] = z[m] * prod[k:m - 2](pad(x[k], 1))"),
    "scan down from more": ('x: "T[K]", z: "T[M]"', 'y: "T[M]"', "y[m] = z[m] * sum[k:K - m](x[k])"),
    "scan to the end": ('x: "T[K]", z: "T[M]"', 'y: "T[M]"', "y[m] = z[m] * sum[k:K - m](pad(x[m + k], 0))"),
    "scan to before the end": ('x: "T[D]", z: "T[M]"', 'y: "T[M]"', "y[m] = z[m] * sum[k:M - 1 - m](pad(x[m + k], 0))"),
    "unused axis": ('x: "T[N, M]"', 'y: "T[N]"', "y[n] = sum[m:M](pad(x[n, 0], 0)) / M"),
}


def evaluate(op: Any, module: str, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
    namespace: dict[str, Any] = {}
    exec(module, namespace)
    result: tuple[Any, ...] = namespace[function_name(op)](*inputs, **attributes)
    return result


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_kernels(name: str, dtype: str) -> None:
    inputs, outputs, kernel = KERNELS[name]
    text = f"{HEAD}types: {{T: floating}}\ninputs: {{{inputs}}}\noutputs: {{{outputs}}}\ngradient: none\nkernel: |\n  {kernel}\n"
    family = compile_text(text, "probe.yaml")
    op = family.forward
    rng = np.random.default_rng(5)
    sizes = {"N": 3, "M": 4, "K": 5, "D": 6}
    arrays = {
        o.name: rng.standard_normal([n for d in o.dims for n in ([2, 3] if str(d) == "..." else [sizes[str(d)]])]).astype(dtype)
        for o in op.inputs
    }
    results = evaluate(op, numpy_module(family), *arrays.values())
    for result, (output, want) in zip(results, oracle.evaluate(op, arrays).items(), strict=True):
        compared = tolerance.compare(output, np.asarray(result), want)
        assert compared.ok, compared.message


def test_an_axis_is_one_of_the_operand_with_groups() -> None:
    text = f"{HEAD}types: {{T: floating}}\ngradient: none\ninputs: {{w: 'T[N]', x: 'T[*A, N, *B]'}}\n"
    text += "outputs: {y: 'T[*A, N, *B]'}\nattributes: {axis: {type: axis, dim: N, default: -1}}\n"
    text += "kernel: |\n  y[*A, n, *B] = x[*A, n, *B] * w[n]\n"
    family = compile_text(text, "probe.yaml")
    w, x = np.arange(3.0), np.ones((2, 3, 4))
    (y,) = evaluate(family.forward, numpy_module(family), w, x, axis=-2)
    np.testing.assert_array_equal(y, x * w[:, None])


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "int64"])
def test_integers_wrap_in_their_own_dtype(dtype: str) -> None:
    text = (
        f'{HEAD}types: {{T: integer}}\ninputs: {{x: "T[N]"}}\noutputs: {{y: "T[N]", s: "acc(T)[]"}}\ngradient: none\nkernel: |\n'
    )
    family = compile_text(text + "  y[n] = x[n] * 100 - 300 + n\n  s = sum[n](x[n])\n", "probe.yaml")
    x = {"x": np.array([1, 2, 100], dtype)}
    results = evaluate(family.forward, numpy_module(family), *x.values())
    for result, (name, want) in zip(results, oracle.evaluate(family.forward, x).items(), strict=True):
        assert tolerance.compare(name, np.asarray(result), want).ok, name


@pytest.mark.parametrize("value", [-1e30, -128.9, -0.5, 0.5, 127.9, 1e30, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "bool"])
def test_casts_saturate(value: float, dtype: str) -> None:
    signature = f'inputs: {{x: "float64[N]"}}\noutputs: {{y: "{dtype}[N]"}}'
    text = f"{HEAD}{signature}\ngradient: none\nkernel: |\n  y[n] = cast({dtype}, x[n])\n"
    family = compile_text(text, "probe.yaml")
    x = {"x": np.array([value])}
    (result,) = evaluate(family.forward, numpy_module(family), *x.values())
    want = oracle.evaluate(family.forward, x)["y"]
    assert tolerance.compare("y", np.asarray(result), want).ok


def test_attributes_alone_follow_ieee_754() -> None:
    text = (
        f'{HEAD}types: {{T: floating}}\ninputs: {{x: "T[N]"}}\nattributes: {{a: {{type: float, default: 0.0}}}}\n'
        'outputs: {y: "T[N]"}\ngradient: none\nkernel: |\n  y[n] = x[n] * (1 / a)\n'
    )
    family = compile_text(text, "probe.yaml")
    (result,) = evaluate(family.forward, numpy_module(family), np.array([1.0, -1.0, 0.0], "float32"))
    np.testing.assert_array_equal(result, np.array([np.inf, -np.inf, np.nan], "float32"))


def test_a_number_in_an_absent_operand_s_place_is_divided_as_arrays_are() -> None:
    text = (
        f'{HEAD}types: {{T: floating}}\ninputs: {{x: "T[N, D]", "b?": "T[N]"}}\noutputs: {{y: "T[N]"}}\ngradient: none\n'
        "kernel: |\n  y[n] = (b[n] if present(b) else 0) / D + sum[d](x[n, d])\n"
    )
    family = compile_text(text, "probe.yaml")
    (result,) = evaluate(family.forward, numpy_module(family), np.zeros((2, 0), "float32"), None)
    np.testing.assert_array_equal(result, np.array([np.nan, np.nan], "float32"))


def test_outputs_that_are_not_wanted_are_not_made() -> None:
    family = load_family(next(p for p in SPECS if p.stem == "prelu"))
    assert family.backward is not None
    x, slope, d_y = (np.ones(3, "float32") for _ in range(3))
    d_x, d_slope = evaluate(family.backward, numpy_module(family), x, slope, d_y, wanted=("d_x",))
    assert d_slope is None
    np.testing.assert_array_equal(d_x, d_y)


def test_the_position_of_a_maximum_of_nothing_is_asked_for_by_elements_only() -> None:
    from opc.emit.numpy.helpers import some

    assert some(np.zeros((0, 0, 3)), 1, "max").shape == (0, 1, 3)
    assert some(np.zeros((2, 3)), -1, "max").shape == (2, 3)
    with pytest.raises(ValueError, match="max of nothing: its size is 0"):
        some(np.zeros((2, 0)), -1, "max")


def test_an_index_in_a_condition_is_asked_for_by_elements_too() -> None:
    text = HEAD + (
        "types: {T: [float64]}\ninputs: {x: 'T[..., N]', ids: 'int64[...]', z: 'T[..., K]'}\noutputs: {y: 'T[..., N, K]'}\n"
        "gradient: {ties: even}\nkernel: |\n  t = sin(x)\n  y[..., i, j] = max[k:K](sum[l:K](t[..., ids[...]]))\n"
    )
    family = compile_text(text, "spec.yaml")
    given = {"x": np.zeros((2, 0)), "ids": np.zeros(2, np.int64), "z": np.ones((2, 3)), "t_x": np.zeros((2, 0)), "t_z": None}
    assert family.jvp is not None
    (t_y,) = evaluate(family.jvp, numpy_module(family), *(given[o.name] for o in family.jvp.inputs), wanted=("t_y",))
    assert t_y.shape == (2, 0, 3)


def test_conditions_in_conditions_are_written_once() -> None:
    """Each index is looked up under a condition, which is one on an index that is looked up under another."""

    def length(depth: int) -> int:
        condition = "w[ids[i]] > 0"
        for k in range(depth):
            condition = f"(w[ids[i]] > {k} if {condition} else w[ids[i]] < {k})"
        text = (
            f'{HEAD}types: {{T: floating}}\nout_of_range: error\ninputs: {{x: "T[N]", w: "T[M]", ids: "int64[N]"}}\n'
            f'outputs: {{y: "T[N]"}}\ngradient: none\nkernel: |\n  y[i] = x[i] if {condition} else 0\n'
        )
        return len(numpy_module(compile_text(text, "probe.yaml")))

    short, long, longest = map(length, (0, 4, 8))
    assert longest - long < 4 * (long - short)


def test_a_module_carries_only_the_helpers_it_calls() -> None:
    module = numpy_module(load_family(next(p for p in SPECS if p.stem == "silu")))
    assert "def sigmoid(" in module
    assert not any(f"def {name}(" in module for name in HELPERS if name != "sigmoid")


def test_helpers_are_the_functions_of_their_module_in_order() -> None:
    found = []
    for module in (scalar_functions, helpers):
        text = Path(str(module.__file__)).read_text()
        functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        found += [(node.name, ast.get_source_segment(text, node)) for node in functions]
    assert list(HELPERS.items()) == found


@pytest.mark.parametrize("name", sorted(n for n, f in FUNCTIONS.items() if "np." not in f.numpy and "(" in f.numpy))
def test_helpers_of_the_function_table_can_be_imported(name: str) -> None:
    helper = FUNCTIONS[name].numpy.split("(")[0]
    assert callable(getattr(emitter, helper))


@pytest.mark.rotating
def test_layout(tmp_path: Path) -> None:
    for spec in SPECS:
        (tmp_path / f"{spec.stem}.py").write_text(numpy_module(load_family(spec)))
    ruff.accepts("format", "--diff", tmp_path)


def test_text_of_a_function() -> None:
    family = load_family(next(p for p in SPECS if p.stem == "softmax"))
    body = numpy_function(family.forward).split('"""')[-1]
    assert body.split("\n")[1:] == [
        "    dtype = x.dtype",
        "    compute = np.result_type(dtype, np.float32)",
        "    x = x.astype(compute)",
        "    axis = axis % x.ndim",
        "    m = np.max(some(x, axis), axis=axis)",
        "    e = np.exp(x - np.expand_dims(m, axis))",
        "    y_sum = np.sum(e, axis=axis)",
        "    y = e / np.expand_dims(y_sum, axis)",
        "    return (y.astype(dtype),)",
        "",
    ]


@pytest.mark.parametrize(
    ("name", "given"), [("reduce_mean", {"axes": [2]}), ("reduce_mean", {"axes": [-3]}), ("swap_axes", {"axis1": 2})]
)
def test_an_axis_that_there_is_not_is_refused(name: str, given: dict[str, Any]) -> None:
    family = load_family(next(p for p in SPECS if p.stem == name))
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    for x in (np.ones((2, 3)), np.float64(1)):
        with pytest.raises(IndexError):
            module[function_name(family.forward)](x, **given)
