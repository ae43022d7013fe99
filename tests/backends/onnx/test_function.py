"""What is said in standard operators, and the reasons where that is not possible."""

import pytest

from opc.emit.onnx.function import FunctionBody, Refusal, function_body
from opc.pipeline import compile_text

HEAD = "op: probe\ndoc: A test.\ndomain: opc.test\nversion: 1\ntypes: {T: [float16, float32, float64]}\ngradient: none\n"


def body(inputs: str, outputs: str, kernel: str, more: str = "") -> FunctionBody | Refusal:
    text = f"{HEAD}inputs: {{{inputs}}}\noutputs: {{{outputs}}}\n{more}kernel: |\n  {kernel}\n"
    return function_body(compile_text(text, "probe.yaml").forward)


def lines(found: FunctionBody | Refusal) -> list[str]:
    assert isinstance(found, FunctionBody), found
    return [line.strip() for line in found.source.split("\n")[2:] if line.strip()]


def test_elementwise() -> None:
    found = body('x: "T[...]"', 'y: "T[...]"', "y = x if x > 0 else 2 * x")
    assert lines(found) == [
        'x = body.compute(x, "T")',
        "t1 = body.Greater(x, body.number(0, x))",
        "t2 = body.Where(t1, x, body.Mul(body.number(2, x), x))",
        'y = body.store(t2, "T")',
        "return (y,)",
    ]


@pytest.mark.parametrize(("dtype", "negated"), [("uint8", "body.Sub(body.number(0, "), ("int8", "body.Neg(x)")])
def test_unsigned_integers_are_negated_by_subtraction(dtype: str, negated: str) -> None:
    assert negated in "\n".join(lines(body(f'x: "{dtype}[N]", w: "T[N]"', f'y: "{dtype}[N]"', "y = -x")))


def test_a_reduction_over_the_last_axis_is_put_back() -> None:
    found = body('x: "T[..., D]"', 'y: "T[..., D]"', "y[..., d] = x[..., d] / sum[k](x[..., k])")
    assert "body.ReduceSum(x, body.vector(body.from_end(x, 1)), keepdims=0)" in "\n".join(lines(found))
    assert "body.Unsqueeze(" in "\n".join(lines(found))


def test_an_axis_attribute_is_counted_from_the_front_once() -> None:
    more = "attributes:\n  axis: {type: axis, dim: N, default: -1}\n"
    found = body('x: "T[*A, N, *B]"', 'y: "T[*A, *B]"', "y[*A, *B] = sum[n](x[*A, n, *B])", more)
    assert [line for line in lines(found) if "body.axis(" in line] == ['axis = body.axis("axis", x)']


def test_an_axis_attribute_counts_the_axes_of_the_operand_with_groups() -> None:
    more = "attributes:\n  axis: {type: axis, dim: N, default: -1}\n"
    found = body('w: "T[N]", x: "T[*A, N, *B]"', 'y: "T[*A, N, *B]"', "y[*A, n, *B] = x[*A, n, *B] * w[n]", more)
    assert [line for line in lines(found) if "body.axis(" in line] == ['axis = body.axis("axis", x)']


def test_a_maximum_keeps_nan() -> None:
    assert "body.reduce_max(" in "\n".join(lines(body('x: "T[N]"', 'y: "T[]"', "y = max[n](x[n])")))


def test_optional_inputs_and_strings_are_python_s_business() -> None:
    more = 'attributes:\n  mode: {type: str, values: ["a", "b"], default: "a"}\n'
    found = body('x: "T[...]", "w?": "T[...]"', 'y: "T[...]"', "y = x * (w if present(w) else 1) if mode == 'a' else x", more)
    text = "\n".join(lines(found))
    assert 'if mode == "a":' in text
    assert "w if w is not None else body.number(1, x)" in text


@pytest.mark.parametrize(
    ("inputs", "outputs", "kernel", "reason"),
    [
        ('x: "T[N]"', 'y: "T[N]"', "y[n] = max[k:n](pad(x[k], 0))", "a function can't refuse the max of nothing"),
        ('x: "T[...]"', 'y: "T[...]"', "y = x // 2.0", "no standard operator computes floordiv of floating numbers"),
    ],
)
def test_reasons(inputs: str, outputs: str, kernel: str, reason: str) -> None:
    found = body(inputs, outputs, kernel)
    assert isinstance(found, Refusal)
    assert reason in found.reason


KERNELS = {
    "linear": (('x: "T[..., K]", w: "T[O, K]"', 'y: "T[..., O]"', "y[..., o] = sum[k](x[..., k] * w[o, k])"), "MatMul(x, t1)"),
    "scores": (
        ('q: "T[B, I, E]", k: "T[B, J, E]"', 'y: "T[B, I, J]"', "y[b, i, j] = sum[e](q[b, i, e] * k[b, j, e])"),
        "body.products(",
    ),
    "embedding": (('x: "T[V, D]", i: "int64[...]"', 'y: "T[..., D]"', "y[..., d] = x[i[...], d]"), "body.Gather("),
    "running sum": (('x: "T[..., N]"', 'y: "T[..., N]"', "y[..., i] = sum[k:i + 1](x[..., k])"), "body.CumSum("),
    "scatter": (
        ('x: "T[N, D]", i: "int64[N]"', 'y: "T[V, D]"', "y[v, d] = sum[n](x[n, d] if i[n] == v else 0)"),
        "body.scatter_add(",
    ),
    "shift": (('x: "T[N]"', 'y: "T[N]"', "y[n] = pad(x[n + 1], 0)"), "body.pad_end("),
    "diagonal": (('x: "T[N, N]"', 'y: "T[N]"', "y[n] = x[n, n]"), "body.Gather("),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_has_an_operator_is_said_by_it(name: str) -> None:
    (inputs, outputs, kernel), wanted = KERNELS[name]
    more = "attributes:\n  rows: {type: int, check: rows > 0}\nshape: {V: rows}\n" if name == "scatter" else ""
    text = "\n".join(lines(body(inputs, outputs, kernel, more)))
    assert wanted in text, text
    if name not in ("shift", "scores"):
        assert "ReduceSum" not in text
