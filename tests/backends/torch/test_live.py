"""Built operators in live torch: torch's promises, calls that must be refused, threads, autocast, copies of a package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from opc.backends.base import OpError, Unsupported
from opc.backends.torch.backend import TorchBackend
from tests.narrow import narrow

from .conftest import Sessions


@pytest.mark.rotating
def test_checks(session: Sessions) -> None:
    """Of one op: the proof of every op of the covering set runs them."""
    failures = []
    for check in TorchBackend().checks(session("leaky_relu")):
        try:
            check.run()
        except Exception as error:
            failures.append(f"{check.name}: {error}")
    assert not failures, "\n".join(failures)


def test_every_kind_of_attribute_arrives(session: Sessions) -> None:
    x = np.array([[1.0, -2.0, 3.0]])
    w = np.array([1.0, 10.0, 100.0])
    attributes = {"scale": 2.0, "shift": [3, 1], "weights": [1.0], "flip": True, "mode": "square"}
    found = session("pantry").call("pantry", {"x": x, "w": w}, attributes)
    squares = -((2 * x + 2) ** 2)
    assert np.array_equal(found["y"], squares * w)
    assert np.array_equal(found["total"], squares.sum(-1))
    assert np.array_equal(session("pantry").call("pantry", {"x": x, "w": None}, {})["y"], x)


def test_a_dtype_is_given_by_itself_or_by_name(session: Sessions) -> None:
    function, x = session("bare").function, torch.ones(2)
    assert function(x).dtype is torch.float64
    for to in (torch.float32, "float32"):
        assert function(x, to=to).dtype is torch.float32
    assert torch.compile(lambda a: function(a, to="float32"), fullgraph=True, backend="eager")(x).dtype is torch.float32
    for to in (None, 6, "relu"):
        with pytest.raises(TypeError, match="bare: to must be dtype, got"):
            function(x, to=to)
    with pytest.raises(RuntimeError, match="bare: to has dtype int32, but U is one of float32, float64"):
        function(x, to="int32")


def test_bfloat16_goes_through(session: Sessions) -> None:
    import ml_dtypes

    x = np.array([[1.0, -2.0]], ml_dtypes.bfloat16)
    found = session("pantry").call("pantry", {"x": x}, {"scale": 0.5})
    assert found["y"].dtype == ml_dtypes.bfloat16
    assert found["y"].astype(np.float32).tolist() == [[0.5, -1.0]]
    assert found["total"].dtype == np.float32


@pytest.mark.parametrize(
    ("inputs", "attributes", "says"),
    [
        ({"x": np.zeros((2, 3)), "w": np.zeros(4)}, {}, "D is 3 in x, but 4 in w"),
        ({"x": np.zeros((2, 3)), "w": np.zeros(3, np.float32)}, {}, "float64"),
        ({"x": np.zeros((2, 3), np.complex64)}, {}, "dtype"),
        ({"x": np.zeros(())}, {}, "axis"),
        ({"x": np.zeros((2, 3))}, {"scale": -1.0}, "scale >= 0"),
        ({"x": np.zeros((2, 3))}, {"mode": "cube"}, "mode = 'cube' is not one of 'plain', 'square'"),
        ({"x": np.zeros((2, 3))}, {"shift": [1]}, "shift must have 2 elements, but has 1"),
        ({"x": np.zeros((2, 3))}, {"scale": "big"}, "scale"),
        ({"x": np.zeros((2, 3))}, {"size": 1}, "size"),
    ],
)
def test_bad_calls_get_torchs_error_with_the_kernels_message(
    inputs: dict[str, np.ndarray], attributes: dict[str, object], says: str, session: Sessions
) -> None:
    with pytest.raises(OpError) as caught:
        session("pantry").call("pantry", inputs, attributes)
    assert says in str(caught.value)


def test_a_gradient_that_is_the_cotangent_is_no_copy(session: Sessions) -> None:
    session("add")
    add = torch.ops.opc_nn.add
    a, b = (torch.rand(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    row = torch.rand(4, dtype=torch.float64, requires_grad=True)
    # Of whole numbers, whose sums are the same in any order.
    given = torch.randint(-9, 9, (3, 4)).double().requires_grad_()
    d_a, d_b = torch.autograd.grad(add(a, b), (a, b), given)
    assert d_a.data_ptr() == d_b.data_ptr() == given.data_ptr()
    d_a, d_row = torch.autograd.grad(add(a, row), (a, row), given)
    assert d_a.data_ptr() == given.data_ptr()
    assert torch.equal(d_row, given.sum(0))
    # Both of a leaf's gradients are one tensor, which is added to and may not change.
    before = given.detach().clone()
    add(a, a).backward(given)
    add(a, a).backward(given)
    assert torch.equal(a.grad, 4 * given)
    assert torch.equal(given, before)
    # Recorded, the gradient is computed: what is differentiated again is rounded once.
    d_a, d_b = torch.autograd.grad(add(a, b), (a, b), given, create_graph=True)
    assert d_a.data_ptr() != given.data_ptr()
    assert torch.equal(torch.autograd.grad((d_a, d_b), given, (a, b))[0], a + b)
    half = given.detach().to(torch.float16)
    d_a, d_b = torch.autograd.grad(add(a.half(), b.half()), (a, b), half)
    assert d_a.dtype == torch.float64


def test_what_is_absent_is_handed_no_cotangent(session: Sessions) -> None:
    session("residual")
    residual = torch.ops.opc_torch_test.residual
    x, z, b = (torch.rand(3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    given = torch.rand(3, dtype=torch.float64)
    for operands in ((x, z, b), (x, z, None)):
        d_x, d_z, *d_b = torch.autograd.grad(residual(*operands), [o for o in operands if o is not None], given)
        assert torch.equal(d_x, given * z)
        assert torch.equal(d_z, given * x)
        assert all(torch.equal(d, given) for d in d_b)
    fixed = b.detach()
    assert torch.equal(torch.autograd.grad(residual(x, z, fixed), x, given)[0], given * z)


def test_operands_and_results_of_integers_are_constants(session: Sessions) -> None:
    """They have no gradient, and those of others go past them, in both modes and both orders."""
    mix = session("mix").function
    a = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    for b in (torch.tensor([2, 3], dtype=torch.int32), torch.tensor([2.0, 3.0], dtype=torch.float64)):
        y, z = mix(a, b)
        assert (y.requires_grad, z.requires_grad, z.dtype) == (True, False, torch.int64)
        (d_a,) = torch.autograd.grad(y.sum(), a, create_graph=True)
        assert torch.equal(d_a, 2 * a * b)
        assert torch.equal(torch.autograd.grad(d_a.sum(), a)[0], (2 * b).double())
        assert torch.autograd.gradcheck(lambda a, b=b: mix(a, b)[0], a, check_forward_ad=True, check_batched_grad=True)
        assert torch.equal(torch.func.hessian(lambda a, b=b: mix(a, b)[0].sum())(a), torch.diag((2 * b).double()))
        pushed = torch.func.jvp(lambda a, b=b: mix(a, b), (a.detach(),), (a.detach(),))[1]
        assert torch.equal(pushed[0], 2 * a * a * b)
        with torch.autograd.forward_ad.dual_level():
            duals = mix(torch.autograd.forward_ad.make_dual(a.detach(), a.detach()), b)
            tangents = [torch.autograd.forward_ad.unpack_dual(o).tangent for o in duals]
        assert torch.equal(tangents[0], 2 * a * a * b)
        assert tangents[1] is None
        compiled = torch.compile(lambda a, b=b: mix(a, b)[0].sum(), fullgraph=True, backend="aot_eager")
        assert torch.equal(torch.autograd.grad(compiled(a), a)[0], d_a)
    y, z = mix(a, b, to="float32")
    assert torch.equal(torch.autograd.grad(z.sum(), a)[0], torch.ones_like(a))


def test_a_result_of_integers_has_no_tangent(session: Sessions) -> None:
    """Also where it is the only one, and the op has no derivative in the call."""
    chosen = session("chosen").function
    x = torch.tensor([2.0, 3.0], dtype=torch.float64)
    found, pushed = torch.func.jvp(chosen, (x,), (x,))
    assert (found.dtype, pushed.tolist()) == (torch.int64, [0, 0])
    assert torch.equal(torch.func.jvp(lambda x: chosen(x, to="float64"), (x,), (x,))[1], 2 * x * x)


def test_no_zeros_are_made_for_an_output_without_a_derivative(session: Sessions) -> None:
    session("peak")
    x = torch.tensor([[1.0, 3.0], [4.0, 2.0]], dtype=torch.float64, requires_grad=True)
    y, at = torch.ops.opc_torch_test.peak(x)
    assert at.tolist() == [1, 0]
    assert not at.requires_grad
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiled:
        (d_x,) = torch.autograd.grad(y, x, torch.ones_like(y))
    called = {event.key for event in profiled.key_averages()}
    assert torch.equal(d_x, torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64))
    assert "opc_torch_test::_peak_backward" in called
    assert called & {"aten::zeros", "aten::zeros_like", "aten::new_zeros"} == set()


def test_out_is_checked(session: Sessions) -> None:
    function = session("leaky_relu").function
    x = torch.randn(4, 3)
    for wrong in (
        torch.empty(3, 4),
        torch.empty(4, 3, dtype=torch.float64),
        torch.empty(3, 4).t(),
        torch.empty(1, 3).expand(4, 3),
    ):
        with pytest.raises(RuntimeError, match="leaky_relu"):
            function(x, out=wrong)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        function(x.requires_grad_(), out=torch.empty(4, 3))


def test_writing_to_a_saved_tensor_is_noticed(session: Sessions) -> None:
    x = torch.randn(4, requires_grad=True)
    y = x.exp()  # exp's gradient needs its result
    session("leaky_relu").function(torch.randn(4), out=y.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_none_is_refused_by_the_operand_s_name(session: Sessions) -> None:
    function, x = session("dual_residual").function, torch.ones(3)
    for given, missing in (((x, None), "y"), ((None, x), "x"), ((torch.ones(3, requires_grad=True), None), "y")):
        with pytest.raises(RuntimeError, match=f"dual_residual: the input {missing} must be given"):
            function(*given)


def test_tensors_elsewhere_are_refused(session: Sessions) -> None:
    function = session("leaky_relu").function
    assert function(torch.empty(2, 3, device="meta")).shape == (2, 3)
    with pytest.raises(RuntimeError):
        function(torch.eye(3).to_sparse())


def test_negative_bit_is_resolved(session: Sessions) -> None:
    z = torch.tensor([1 + 2j, 3 - 4j])
    lazy = z.conj().imag
    assert lazy.is_neg()
    assert torch.equal(session("leaky_relu").function(lazy, 0.5), torch.tensor([-1.0, 4.0]))


def test_no_gradient_says_so(session: Sessions) -> None:
    function = session("bare").function
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="bare has no derivative"):
        function(x).sum().backward()
    with pytest.raises(NotImplementedError, match="bare has no derivative"):
        torch.func.jvp(function, (torch.ones(3),), (torch.ones(3),))
    with pytest.raises(Unsupported):
        session("bare").gradient({"x": np.ones(3)}, {}, {"y": np.ones(3)})


def test_a_third_derivative_says_so(session: Sessions) -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    y = session("layer_norm").function(x)[0].pow(3).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.pow(3).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="layer_norm_backward_backward has no derivative"):
        second.sum().backward()


def test_autocast_brings_operands_to_one_dtype(session: Sessions) -> None:
    function = session("layer_norm").function
    x = torch.randn(2, 8, dtype=torch.bfloat16)
    w = torch.randn(8, requires_grad=True)
    with pytest.raises(RuntimeError, match="bfloat16"):
        function(x, w)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, mean, rstd = function(x, w)
        compiled = torch.compile(lambda a, b: function(a, b), fullgraph=True, backend="aot_eager")(x, w)
    assert y.dtype == mean.dtype == rstd.dtype == torch.float32
    assert torch.equal(compiled[0], y)
    y.sum().backward()
    assert w.grad is not None
    assert w.grad.dtype == torch.float32


def test_gradients_only_where_they_are_asked_for(session: Sessions) -> None:
    operators = session("layer_norm").operators
    x, w = torch.randn(4, 8), torch.randn(8)
    _, mean, rstd = operators.layer_norm.op(x, w)
    wanted = operators.layer_norm_backward.op(x, w, mean, rstd, torch.ones(4, 8), None, None, 1e-5, 0, [False, True, False])
    assert wanted[0] is None
    assert wanted[1].shape == (8,)
    assert wanted[2] is None


def test_batch_axes_must_agree(session: Sessions) -> None:
    op = session("layer_norm").operators.layer_norm.op
    with pytest.raises(RuntimeError, match="the same 1 batch axes in front"):
        op(torch.randn(3, 2, 8), torch.randn(2, 8), None, 1e-5, 1)


def test_empty_batches(session: Sessions) -> None:
    function = session("layer_norm").function
    y, mean, _ = torch.vmap(function)(torch.randn(0, 4, 8), torch.randn(0, 8))
    assert y.shape == (0, 4, 8)
    assert mean.shape == (0, 4)


def test_a_size_that_data_tells_is_given_under_vmap(session: Sessions) -> None:
    """Each example might have another; without vmap, data tells it."""
    function = session("select_rows").function
    x, mask = torch.arange(12.0).reshape(2, 3, 2), torch.tensor([[True, False, True], [False, True, True]])
    found = torch.vmap(lambda x, mask: function(x, mask, 2))(x, mask)
    assert found.tolist() == [function(*one).tolist() for one in zip(x, mask)]
    with pytest.raises(RuntimeError, match="vmap"):
        torch.vmap(function)(x, mask)


def test_calls_from_many_threads(session: Sessions) -> None:
    function = session("leaky_relu").function
    x = torch.randn(100_000)
    expected = torch.nn.functional.leaky_relu(x, 0.25)
    wrong = []

    def work() -> None:
        for _ in range(20):
            if not torch.equal(function(x, 0.25), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_documentation_comes_from_the_spec(session: Sessions) -> None:
    text = session("layer_norm").function.__doc__
    assert text.startswith("Each row brought to mean 0 and variance 1")
    assert "epsilon: Added to the variance. Must satisfy `epsilon >= 0`." in text
    assert "w: T[D], T one of bfloat16, float32, float64, or None. Scale, 1 when absent." in text


@pytest.mark.rotating
def test_copies_of_a_package(session: Sessions, tmp_path: Path) -> None:
    """A second copy uses the operators of the first; another version cannot be loaded beside it, and says so."""
    original = session("leaky_relu").package
    for name in ("one", "two"):
        shutil.copytree(original, tmp_path / name)
    path = tmp_path / "two" / "torch" / "operators.py"
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import torch
from one.torch import leaky_relu as one
from two.torch import leaky_relu as two
x = torch.tensor([-1.0, 2.0], requires_grad=True)
two(x, 0.5).sum().backward()
assert x.grad.tolist() == [0.5, 1.0]
assert torch.func.vmap(one)(torch.ones(3, 2)).shape == (3, 2)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    path.write_text(path.read_text().replace(session("leaky_relu").family.source_hash, "other"))
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "another opc_nn::leaky_relu is registered already" in failed.stderr


def test_a_package_that_is_not_built_says_so(session: Sessions, tmp_path: Path) -> None:
    shutil.copytree(session("leaky_relu").package, tmp_path / "unbuilt", ignore=shutil.ignore_patterns("build"))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import unbuilt.torch"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "build it with `opc build`" in failed.stderr


@pytest.mark.rotating(seconds=11)
def test_the_exporter_to_onnx_finds_ops_by_itself(tmp_path: Path) -> None:
    """In a new process: an op that only the exported call builds, beside one loaded before; a program exported before, too."""
    program = f"""
import numpy as np
import onnxruntime
import torch
import opc

late, early = (opc.load(path) for path in {[str(narrow(name, tmp_path)) for name in ("leaky_relu", "dual_residual")]})
early(torch.ones(2), torch.ones(2))


class Model(torch.nn.Module):
    def forward(self, x, y):
        u, v = early(x, y, alpha=0.5)
        return late(u, alpha=0.1) + v


def run(model, x, y):
    options = onnxruntime.SessionOptions()
    for op in (late, early):
        options.register_custom_ops_library(str(library(op)))
    session = onnxruntime.InferenceSession(model.model_proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {{i.name: t.numpy() for i, t in zip(session.get_inputs(), (x, y))}})[0]


def library(op):
    from opc.build import builder, cache

    builder.build_specs([op._spec], op._out, ["onnxruntime"])
    return op._package / "build" / f"lib{{op.__name__}}_ort.so"


x, y = torch.randn(3, 4), torch.randn(3, 4)
batch = torch.export.Dim("batch", min=1, max=100)
shapes = ({{0: batch}}, {{0: batch}})
exported = torch.onnx.export(Model(), (x, y), dynamo=True, dynamic_shapes=shapes, verbose=False)
nodes = [(n.domain, n.op_type) for n in exported.model_proto.graph.node if n.domain]
assert nodes == [("opc.nn", "DualResidual"), ("opc.nn", "LeakyRelu")], nodes
again = torch.onnx.export(torch.export.export(Model(), (x, y), dynamic_shapes=shapes), dynamo=True, verbose=False)
for model in (exported, again):
    for size in (3, 1, 17):
        x, y = torch.randn(size, 4), torch.randn(size, 4)
        assert np.array_equal(run(model, x, y), Model()(x, y).numpy())
"""
    environment = {**os.environ, "OPC_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
