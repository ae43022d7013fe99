"""What is said in standard operators, and the reasons where that is not possible."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnxruntime import InferenceSession

from opc.backends.base import Unsupported
from opc.backends.example_call import example_calls
from opc.backends.node_call import NodeCall
from opc.backends.onnxruntime.backend import OnnxRuntimeBackend
from opc.emit.numpy.reference import function_name, numpy_module
from opc.emit.onnx.function import FunctionBody, NoBody, function_body
from opc.pipeline import compile_text
from opc.testing.oracle import evaluation as oracle
from opc.testing.oracle import tolerance
from tests.backends.onnx.test_checks import load
from tests.emit.test_axes import LISTS, NORMALIZED, operands
from tests.emit.test_numpy import KERNELS as ARRAY_KERNELS
from tests.emit.test_placed_axes import PLACED, PLACES
from tests.emit.test_placed_axes import operands as placed_operands

HEAD = "op: probe\ndoc: A test.\ndomain: opc.test\nversion: 1\ntypes: {T: [float16, float32, float64]}\ngradient: none\n"


def body(inputs: str, outputs: str, kernel: str, more: str = "") -> FunctionBody | NoBody:
    text = f"{HEAD}inputs: {{{inputs}}}\noutputs: {{{outputs}}}\n{more}kernel: |\n  {kernel}\n"
    return function_body(compile_text(text, "probe.yaml").forward)


def lines(found: FunctionBody | NoBody) -> list[str]:
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


IMAGES, POOLED = "x: 'T[N, C, H, W]'", "y: 'T[N, C, OH, OW]'"
WINDOWS = {
    "convolution": (
        f"{IMAGES}, w: 'T[O, C, KH, KW]'",
        "y: 'T[N, O, OH, OW]'",
        "y[n, o, i, j] = sum[c, p, q](w[o, c, p, q] * pad(x[n, c, i*s[0] + p - b[0], j*s[1] + q - b[1]], 0))",
        "{OH: '(H + 2*b[0] - KH) // s[0] + 1', OW: '(W + 2*b[1] - KW) // s[1] + 1'}",
        'body.convolution(x, w, ([b_0, b_1], [b_0, b_1]), strides="s", dilations=[1, 1], group=1)',
    ),
    "convolution of another size": (
        f"{IMAGES}, w: 'T[O, C, KH, KW]'",
        "y: 'T[N, O, OH, OW]'",
        "y[n, o, i, j] = sum[c, p, q](w[o, c, p, q] * pad(x[n, c, i*s[0] + p, j*s[1] + q], 0))",
        "{OH: H, OW: 'b[0] + 1'}",
        'body.convolution(x, w, ([t1, t1], [t3, t5]), strides="s", dilations=[1, 1], group=1)',
    ),
    "max_pool": (
        IMAGES,
        POOLED,
        "y[n, c, i, j] = max[p:3, q:2](pad(x[n, c, i*s[0] + p - b[0], j*s[1] + q - b[1]], -inf))",
        "{OH: '(H + 2*b[0] - 3) // s[0] + 1', OW: '(W + 2*b[1] - 2) // s[1] + 1'}",
        'body.max_pool(x, ([b_0, b_1], [b_0, b_1]), strides="s", dilations=[1, 1], kernel_shape=[3, 2])',
    ),
    "average_pool": (
        IMAGES,
        POOLED,
        "y[n, c, i, j] = sum[p:3, q:2](pad(x[n, c, i*s[0] + p - b[0], j*s[1] + q - b[1]], 0)) / 6",
        "{OH: '(H + 2*b[0] - 3) // s[0] + 1', OW: '(W + 2*b[1] - 2) // s[1] + 1'}",
        'body.average_pool(x, ([b_0, b_1], [b_0, b_1]), strides="s", dilations=[1, 1], kernel_shape=[3, 2])',
    ),
}


@pytest.mark.parametrize(("inputs", "outputs", "kernel", "shape", "node"), WINDOWS.values(), ids=WINDOWS)
def test_windows_are_the_standard_operators(inputs: str, outputs: str, kernel: str, shape: str, node: str) -> None:
    attributes = "{s: {type: 'int[2]', default: [1, 1], check: s > 0}, b: {type: 'int[2]', default: [0, 0], check: b >= 0}}"
    found = "\n".join(lines(body(inputs, outputs, kernel, f"attributes: {attributes}\nshape: {shape}\n")))
    assert node.replace(" ", "") in "".join(found.split()).replace(",)", ")")


@pytest.mark.parametrize(
    ("name", "node"), [("conv2d", "convolution"), ("max_pool2d", "max_pool"), ("avg_pool2d", "average_pool")]
)
def test_windows_with_more_padding_on_one_side_are_the_standard_operators_too(name: str, node: str) -> None:
    spec = Path(__file__).parents[3] / "specs" / f"{name}.yaml"
    found = lines(function_body(compile_text(spec.read_text(), spec.name).forward))
    assert any(f"= body.{node}(" in line for line in found)


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
    assert isinstance(found, NoBody)
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


RANGES = [name for name in ARRAY_KERNELS if name.startswith("scan") or "nothing" in name or name.startswith("negative")]


@pytest.mark.parametrize("name", RANGES)
def test_ranges_of_reductions(name: str, tmp_path: Path) -> None:
    """Ranges that are empty, or longer than those of the index around them, and negative products, in both ONNX runtimes."""
    inputs, outputs, kernel = ARRAY_KERNELS[name]
    text = f"{HEAD}inputs: {{{inputs}}}\noutputs: {{{outputs}}}\nkernel: |\n  {kernel}\n"
    session = load(compile_text(text, "probe.yaml"), tmp_path)
    op = session.family.forward
    rng = np.random.default_rng(7)
    for sizes in ({"N": 3, "M": 4, "K": 5, "D": 6}, {"N": 2, "M": 6, "K": 3, "D": 1}, {"N": 5, "M": 10, "K": 1, "D": 12}):
        # Positive, as ONNX leaves the sign of a zero open.
        arrays = {o.name: rng.uniform(0.5, 2, [sizes[str(d)] for d in o.dims]) for o in op.inputs}
        (want,) = oracle.evaluate(op, arrays).values()
        model = NodeCall(op, arrays, {}, None).function_model(session.module).SerializeToString()
        ort = InferenceSession(model, providers=["CPUExecutionProvider"])
        for found in (session.function_call("probe", arrays, {})["y"], ort.run(None, arrays)[0]):
            compared = tolerance.compare("y", np.asarray(found), want)
            assert compared.ok, (sizes, compared.message)


SHORTER = (
    "y[m] = sum[k:M - (1 if open else 0)](x[k] * x[m])",
    "y[m] = sum[k:m + (0 if open else 1)](x[k])",
    "y[m] = prod[k:M - m - (1 if open else 0)](x[M - 1 - k])",
    "t[m, k:M - (1 if open else 0)] = x[m] - x[k]\n  y[m] = sum[k:M - (1 if open else 0)](t[m, k])",
)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("kernel", SHORTER, ids=["sum", "running sum", "running product", "rows"])
def test_a_range_that_a_flag_makes_shorter(kernel: str, is_open: bool, tmp_path: Path) -> None:
    """It is not taken for the whole axis, in NumPy nor in ONNX, though it is that where the flag is not set."""
    text = f"{HEAD}require: [M > 0]\nattributes: {{open: {{type: bool, default: false}}}}\n".replace("gradient: none\n", "")
    text += f"inputs: {{x: 'T[M]'}}\noutputs: {{y: 'T[M]'}}\nkernel: |\n  {kernel}\n"
    family = compile_text(text, "probe.yaml")
    session, attributes = load(family, tmp_path), {"open": is_open}
    names: dict[str, Any] = {}
    exec(numpy_module(family), names)
    assert family.backward is not None
    for op in (family.forward, family.backward):
        arrays = {o.name: np.random.default_rng(7).uniform(0.5, 2, 4) for o in op.inputs}
        (want,) = oracle.evaluate(op, arrays, attributes).values()
        name = op.outputs[0].name
        (in_numpy,) = names[function_name(op)](*arrays.values(), **attributes)
        for found in (in_numpy, session.function_call(op.name, arrays, attributes)[name]):
            compared = tolerance.compare(name, np.asarray(found), want)
            assert compared.ok, (op.name, compared.message)


def test_a_divisor_is_a_number_where_nothing_is_computed(tmp_path: Path) -> None:
    """A size that an index runs over divides: where it is 0, the index has no values and the division no meaning."""
    text = f"{HEAD}inputs: {{x: 'T[N, K]', z: 'T[N]'}}\noutputs: {{y: 'T[N]', s: 'T[N]'}}\nkernel: |\n"
    text += (
        "  t[n, k] = x[n, k] * sum[i:N // K](z[i])\n  y[n] = z[n] + sum[k:K](x[n, (n * K + k) % K] * t[n, k])\n  s[n] = z[n]\n"
    )
    session = load(compile_text(text, "probe.yaml"), tmp_path)
    op = session.family.forward
    for k in (0, 1, 2):
        arrays = {"x": np.arange(4.0 * k).reshape(4, k), "z": np.arange(4.0)}
        want = oracle.evaluate(op, arrays)
        for found in (session.call("probe", arrays, {}), session.function_call("probe", arrays, {})):
            for name, value in found.items():
                assert tolerance.compare(name, np.asarray(value), want[name]).ok, (k, name)


def test_whole_numbers_divided_by_nothing(tmp_path: Path) -> None:
    """Quotient and remainder by 0 are 0; literals that are not 0, and choices between such, are not looked at."""
    text = HEAD.replace("types: {T: [float16, float32, float64]}", "types: {I: [int32, int64]}")
    text += "inputs: {a: 'I[N]', b: 'I[N]'}\noutputs: {q: 'I[N]', r: 'I[N]', s: 'I[N]'}\nkernel: |\n"
    text += "  q = a // b\n  r = a % b\n  s = a % (3 if b > 0 else -4) // 2\n"
    session = load(compile_text(text, "probe.yaml"), tmp_path)
    arrays = {"a": np.array([-7, 7, -7, 7, 0, 5]), "b": np.array([2, -2, 0, 0, 0, 5])}
    for name, want in oracle.evaluate(session.family.forward, arrays).items():
        found = session.function_call("probe", arrays, {})[name]
        assert tolerance.compare(name, np.asarray(found), want).ok, name
    checked = [line.split(" = ")[0] for line in lines(function_body(session.family.forward)) if "_integer(" in line]
    assert checked == ["q", "r"]


def test_elements_of_a_list_of_bools_decide_indices_and_sizes(tmp_path: Path) -> None:
    text = HEAD.replace("gradient: none\n", "") + "inputs: {x: 'T[N, M]'}\nattributes: {flip: 'bool[2]'}\n"
    text += "shape: {P: 'M if flip[1] else N'}\noutputs: {y: 'T[N, M]', s: 'T[P]'}\nkernel: |\n"
    text += "  y[i, j] = x[N - 1 - i if flip[0] else i, M - 1 - j if flip[1] else j]\n"
    text += "  s[k:P] = sum[n:N, m:M](x[n, m] if m == k or flip[0] else 0)\n"
    session = load(compile_text(text, "probe.yaml"), tmp_path)
    arrays = {"x": np.arange(6.0).reshape(2, 3)}
    for flip in itertools.product((False, True), repeat=2):
        want = oracle.evaluate(session.family.forward, arrays, {"flip": flip})
        for name, found in session.function_call("probe", arrays, {"flip": flip}).items():
            assert tolerance.compare(name, np.asarray(found), want[name]).ok, (name, flip)


@pytest.mark.parametrize("kind", ["int8", "int16", "int64", "uint8", "Q"])
def test_extremes_of_integers(kind: str, tmp_path: Path) -> None:
    """The standard has no maximum of int16; what takes no part counts as the least number of its type, or the greatest."""
    text = HEAD.replace("types: {T: [float16, float32, float64]}", "types: {Q: [int16, int32]}" if kind == "Q" else "types: {}")
    text += f"inputs: {{x: '{kind}[N]'}}\noutputs: {{y: '{kind}[N]', z: '{kind}[N]', s: '{kind}[]'}}\nrequire: [N > 0]\n"
    text += "kernel: |\n  y[n] = max[k:n + 1](x[k])\n  z[n] = min[k:n + 1](x[k] + x[n])\n  s[()] = max[n](x[n])\n"
    session = load(compile_text(text, "probe.yaml"), tmp_path)
    for dtype in ("int16", "int32") if kind == "Q" else (kind,):
        arrays = {"x": np.array([5, 3, 9, 2], dtype)}
        arrays = arrays if dtype == "uint8" else {"x": -arrays["x"]}
        for name, want in oracle.evaluate(session.family.forward, arrays).items():
            found = session.function_call("probe", arrays, {})[name]
            assert tolerance.compare(name, np.asarray(found), want).ok, (dtype, name)


def test_the_axes_of_a_group_alone_are_reduced(tmp_path: Path) -> None:
    text = (
        HEAD.replace("gradient: none\n", "") + "inputs: {v: 'T[N, K]', i: 'int64[...]', w: 'T[N]'}\noutputs: {y: 'T[..., N]'}\n"
    )
    text += "out_of_range: clamp\nkernel: |\n  y[..., n] = w[n] * prod[k:3](pad(v[3*n + k - 1, i[...]], 0) + w[n])\n"
    session = load(compile_text(text, "probe.yaml"), tmp_path)
    op = session.family.backward
    assert op is not None
    for shape in ((), (3,), (2, 3)):
        arrays = {"v": np.ones((4, 5)), "i": np.ones(shape, np.int64), "w": np.arange(1.0, 5.0), "d_y": np.ones((*shape, 4))}
        want = oracle.evaluate(op, arrays)
        for name, found in session.function_call(op.name, arrays, {}).items():
            assert tolerance.compare(name, np.asarray(found), want[name]).ok, (shape, name)


def test_sizes_of_a_group_that_only_absent_inputs_share_are_those_it_is_broadcast_to(tmp_path: Path) -> None:
    text = HEAD.replace("gradient: none\n", "") + "broadcast: true\ninputs: {x: 'T[...]', z: 'T[...]'}\noutputs: {y: 'T[...]'}\n"
    session = load(compile_text(text + "kernel: |\n  t[...] = mean[...](z[...])\n  y[...] = t[...]\n", "probe.yaml"), tmp_path)
    op = session.family.backward_jvp
    assert op is not None
    arrays = {o.name: None if o.name == "t_d_y" else np.ones((2, 3)) for o in op.inputs}
    want = oracle.evaluate(op, arrays)
    for name, found in session.function_call(op.name, arrays, {}).items():
        assert tolerance.compare(name, np.asarray(found), want[name]).ok, name


def test_what_one_output_needs_is_written_where_that_is_wanted() -> None:
    """It may be of a type that nothing given has where the output is not asked for."""
    text = HEAD.replace("gradient: none\n", "").replace("float64]}", "float64], U: floating}") + (
        "inputs: {x: 'T[N, K]', w: 'T[N]'}\nattributes: {to: {type: dtype, binds: U}}\noutputs: {y: 'T[K]', z: 'U[N, K]'}\n"
        "kernel: |\n  y[k] = sum[n](x[n, k])\n  z[n, k] = cast(U, w[n] * sum[m:N](x[m, k] * w[m]))\n"
    )
    twice = compile_text(text, "probe.yaml").backward_backward
    assert twice is not None
    found = function_body(twice)
    assert isinstance(found, FunctionBody), found
    source = found.source.split("\n")
    (at,) = [k for k, line in enumerate(source) if line.strip().startswith("z_sum =")]
    under = next(line for line in reversed(source[:at]) if not line.startswith("        "))
    assert under == '    if "d_d_z" in wanted:'
    (cast,) = [line for line in source if 'body.cast(z_sum, body.like("U", d_z))' in line]
    assert cast.startswith("        ")


def test_a_type_that_is_one_dtype_needs_no_operand_to_tell_it(tmp_path: Path) -> None:
    text = HEAD.replace("gradient: none\n", "").replace("T: [float16, float32, float64]", "T: [float32], U: floating")
    text += "inputs: {q: 'int8[N]', s: 'T[]', w: 'T[]'}\nattributes: {to: {type: dtype, binds: U}}\n"
    text += "outputs: {y: 'T[N]', z: 'U[]'}\nkernel: |\n  y[i] = cast(T, q[i])\n  z[()] = cast(U, s[()] + w[()])\n"
    family = compile_text(text, "probe.yaml")
    assert family.jvp is not None
    given = {"q": np.ones(3, np.int8), "t_s": None, "t_w": None}
    inputs = {o.name: given[o.name] for o in family.jvp.inputs}
    with pytest.raises(Unsupported, match="no input has the type U"):
        load(family, tmp_path).function_call(family.jvp.name, inputs, {"to": "float64"}, ["t_y"])


@pytest.mark.parametrize(("attributes", "dtype"), [({}, "INT8"), ({"to": "int16"}, "INT16")])
def test_a_model_declares_the_type_that_an_attribute_binds(attributes: dict[str, str], dtype: str) -> None:
    """So it does where the operand of this type is absent."""
    text = HEAD.replace("types: {T: [float16, float32, float64]}", "types: {T: [float32], Q: [int8, int16]}")
    text += (
        "inputs: {x: 'T[N]', 'zero?': 'Q[N]'}\nattributes: {to: {type: dtype, binds: Q, default: int8}}\noutputs: {q: 'Q[N]'}\n"
    )
    text += "kernel: |\n  q[i] = cast(Q, x[i]) + (zero[i] if present(zero) else 0)\n"
    op = compile_text(text, "probe.yaml").forward
    (output,) = NodeCall(op, {"x": np.ones(2, np.float32), "zero": None}, attributes, None).model().graph.output
    assert output.type.tensor_type.elem_type == TensorProto.DataType.Value(dtype)


@pytest.mark.parametrize(("zero", "said"), [("zero", ""), ("'zero?'", " that is always given"), (None, "")])
def test_onnxruntime_takes_no_type_that_an_attribute_alone_may_tell(zero: str | None, said: str) -> None:
    """It takes the first type there is where the operand that has it is absent, and refused the model."""
    text = HEAD.replace("types: {T: [float16, float32, float64]}", "types: {T: [float32], Q: [int8, int16]}")
    more = "" if zero is None else f", {zero}: 'Q[]'"
    text += f"inputs: {{x: 'T[N]'{more}}}\nattributes: {{to: {{type: dtype, binds: Q}}}}\n"
    text += "outputs: {q: 'Q[N]'}\nkernel: |\n  q[i] = cast(Q, x[i])\n"
    refused = [d.message for d in OnnxRuntimeBackend().requires(compile_text(text, "probe.yaml"))]
    reason = f"probe: the type Q is not that of an input{said}, and ONNX Runtime chooses a custom op's types by its inputs"
    assert refused == ([] if zero == "zero" else [reason])


def test_an_example_has_the_type_that_its_attribute_says() -> None:
    text = HEAD.replace("types: {T: [float16, float32, float64]}", "types: {T: [float32], U: [float32, int32, bool]}")
    text += "inputs: {x: 'T[N]'}\nattributes: {to: {type: dtype, binds: U, default: int32}}\noutputs: {y: 'U[N]'}\n"
    text += "kernel: |\n  y = cast(U, x > 0)\nexamples:\n  - {x: [1.0], y: [1]}\n  - {x: [1.0], to: bool, y: [true]}\n"
    first, second = example_calls(compile_text(text, "probe.yaml"))
    assert [c.dtypes["U"] for c in (first, second)] == ["int32", "bool"]
    assert (first.given, second.given) == ({}, {"to": "bool"})


def listed_calls() -> Iterator[tuple[dict[str, np.ndarray], dict[str, object]]]:
    for axes, keepdims in itertools.product(LISTS, (False, True)):
        yield dict(zip("xw", operands(axes, "contiguous"))), {"axes": axes, "keepdims": keepdims}
    yield {"x": np.float32(2).reshape(()), "w": np.float32(3).reshape(())}, {"axes": [], "keepdims": True}


def placed_calls() -> Iterator[tuple[dict[str, np.ndarray], dict[str, object]]]:
    for others, (first, second) in PLACES[::3]:
        yield placed_operands(others, (first, second)), {"axis1": first, "axis2": second - others - 2}


@pytest.mark.parametrize(("text", "calls"), [(NORMALIZED, listed_calls), (PLACED, placed_calls)], ids=["listed", "placed"])
def test_bodies_take_axes_at_any_place(text: str, calls: Callable[[], Iterator[Any]], tmp_path: Path) -> None:
    """Those of the op and of all derived ones, where axes are dropped and where they are kept."""
    family = compile_text(text, "axes.yaml")
    session, wrong = load(family, tmp_path), []
    for given, attributes in calls():
        made = {**given, **session.call(family.name, given, attributes)}
        rng = np.random.default_rng(5)
        for op in family.ops:
            inputs = {}
            for o in op.inputs:
                like = made[o.name.replace("t_", "").replace("d_", "")]
                inputs[o.name] = made[o.name] if o.name in made else rng.normal(size=like.shape).astype(np.float32)
            found = session.function_call(op.name, inputs, attributes)
            for name, expected in session.call(op.name, inputs, attributes).items():
                assert found[name].shape == expected.shape
                if not np.allclose(found[name], expected, rtol=1e-4, atol=1e-4):
                    wrong.append((op.name, name, attributes))
    assert not wrong


def test_a_body_of_listed_axes_is_transposed_by_constants(tmp_path: Path) -> None:
    """Ranks and the list are known when it is made; without them there is none."""
    module = load(compile_text(NORMALIZED, "normalized.yaml"), tmp_path).module
    shapes = {"x": ["a", "b", "c"], "w": ["b"]}
    function = module.make_model("Normalized", shapes=shapes, function=True, axes=1).functions[0]
    perms = [list(a.ints) for node in function.node for a in node.attribute if node.op_type == "Transpose"]
    assert (perms[0], perms[-1]) == ([0, 2, 1], [1, 0, 2])
    with pytest.raises(ValueError, match="Normalized lists axes: say in ranks how many x has"):
        module.make_function("Normalized", {"T": "float32"}, axes=[1])
    with pytest.raises(ValueError, match=r"\[3\] lists no axes of 3"):
        module.make_function("Normalized", {"T": "float32"}, ranks={"x": 3, "w": 1}, axes=[3])
