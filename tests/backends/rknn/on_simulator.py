"""What users of RKNN's toolkit do with dual_residual, run by the interpreter that has it.

`python on_simulator.py PACKAGE NAME ...` runs each of them in a fork of a process that has imported it, what it prints in a file.

Every answer is held to the oracle's sets for what the op was given, which a watched twin of the op records; and what the op was
given is held to what the toolkit rounds to: float16, or the quantised grid. Convolutions have weights and inputs that are small
integers, and so are exact in float16, whatever the order of their sums.
"""

import importlib
import os
import sys
import traceback
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from opc.backends import package as packages
from opc.backends.rknn.toolkit import PLATFORM, ToolkitError, simulate
from opc.ir.dtypes import DType
from opc.pipeline import load_family
from opc.testing.oracle.bounds import Bounds
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.rounding import rounded
from opc.testing.oracle.tolerance import compare

SPEC = Path(__file__).parents[3] / "specs" / "dual_residual.yaml"
FAMILY = load_family(SPEC)
ALPHA = 0.3


def watched(package):
    """Return the package's op under another name, with a list of what each call of it was given and made."""
    custom_op = packages.load(package, "rknn.custom_op")
    calls = []

    class Watched(custom_op.CstDualResidual):
        op_type = "cstWatched"

        def compute(self, node, inputs):
            outputs = super().compute(node, inputs)
            calls.append(([np.array(a) for a in inputs], [np.array(a) for a in outputs]))
            return outputs

    def register(rknn):
        assert rknn.reg_custom_op(Watched()) == 0

    return register, calls


def graph(nodes, inputs, outputs, constants=()):
    """Return a model whose inputs and outputs are float32 of these shapes."""
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (*inputs.items(), *outputs.items())]
    made = helper.make_graph(nodes, "test", info[: len(inputs)], info[len(inputs) :], list(constants))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("rknn_cst", 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8)


def node(inputs, outputs, op_type="cstWatched", alpha=ALPHA):
    return helper.make_node(op_type, inputs, outputs, domain="rknn_cst", alpha=alpha)


def oracle(x, y, alpha=ALPHA):
    """Return the sets of right outputs; a model holds alpha in single precision."""
    return evaluate(FAMILY.forward, {"x": x, "y": y}, {"alpha": float(np.float32(alpha))})


def hold(name, got, want, storage=DType.FLOAT16):
    """Assert that an output lies within its set, as stored."""
    found = compare(name, got, Bounded(rounded(want.bounds, storage), want.dtype))
    assert found.ok, found.message


def random(shape, seed):
    return np.random.default_rng(seed).uniform(-3, 5, shape).astype(np.float32)


def exported(package):
    """A torch module becomes a model by either exporter, and that runs on the simulator with the generated class."""
    import torch

    op = packages.load(package, "torch")
    module = packages.load(package, "rknn")

    class Model(torch.nn.Module):
        def forward(self, x, y):
            return op.dual_residual(x, y, ALPHA)

    x, y = random((2, 3, 8, 8), 1), random((2, 3, 8, 8), 2)
    arguments = (torch.from_numpy(x), torch.from_numpy(y))
    # The toolkit knows ONNX up to version 19.
    names = {"input_names": ["x", "y"], "output_names": ["u", "v"], "opset_version": 19}
    torch.onnx.export(
        Model(), arguments, "new.onnx", dynamo=True, custom_translation_table=op.custom_translation_table(), **names
    )
    op.register_onnx_symbolic()
    torch.onnx.export(Model(), arguments, "old.onnx", dynamo=False, custom_opsets={"opc.nn": 1}, **names)
    for path in ("new.onnx", "old.onnx"):
        model = module.convert(onnx.load(path))
        (only,) = model.graph.node
        assert (only.domain, only.op_type) == ("rknn_cst", "cstDualResidual")
        outputs = simulate(model, [x, y], module.register).outputs
        for name, got in zip("uv", outputs, strict=True):
            hold(name, got, oracle(x, y)[name])


def several_outputs(package):
    """Two outputs, both used by another node of the op: what is between them is rounded to float16."""
    register, calls = watched(package)
    nodes = [node(["x", "y"], ["a", "b"]), node(["b", "a"], ["u", "v"], alpha=2.0)]
    x, y = random((1, 4, 5, 6), 3), random((1, 4, 5, 6), 4)
    shapes = dict.fromkeys("abuv", x.shape)
    outputs = simulate(graph(nodes, {"x": x.shape, "y": y.shape}, shapes), [x, y], register).outputs
    (first, _), ((b, a), _) = calls[-2:]
    assert all(np.array_equal(given, fed) for given, fed in zip(first, (x, y), strict=True)), "inputs reach the op as they are"
    for name, got, want in zip("ab", (a, b), oracle(x, y).values(), strict=True):
        hold(name, got, want)
    for name, got, want in zip("abuv", outputs, (*oracle(x, y).values(), *oracle(b, a, 2.0).values()), strict=True):
        hold(name, got, want)


def between_convolutions(package):
    """The op stands between convolutions, whose layouts and float16 the toolkit converts from and to."""
    register, calls = watched(package)
    rng = np.random.default_rng(5)
    x = rng.integers(-4, 5, (1, 3, 8, 8)).astype(np.float32)
    first, second = (rng.integers(-2, 3, (4, 3, 3, 3)).astype(np.float32) for _ in range(2))
    last = np.zeros((4, 4, 1, 1), np.float32)
    last[[0, 1, 2, 3], [2, 0, 3, 1]] = 2.0  # exchanges channels and doubles, which is exact
    constants = [numpy_helper.from_array(w, n) for n, w in (("p", first), ("q", second), ("r", last))]
    nodes = [
        helper.make_node("Conv", ["x", "p"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["x", "q"], ["b"], pads=[1, 1, 1, 1]),
        node(["a", "b"], ["c", "d"]),
        helper.make_node("Conv", ["c", "r"], ["u"]),
        helper.make_node("Conv", ["d", "r"], ["v"]),
    ]
    model = graph(nodes, {"x": x.shape}, dict.fromkeys("uv", (1, 4, 8, 8)), constants)
    outputs = simulate(model, [x], register).outputs
    (a, b), _ = calls[-1]
    for given, weights in ((a, first), (b, second)):
        assert np.array_equal(given, convolved(x, weights)), "small integers are exact"
    for name, got, want in zip("uv", outputs, oracle(a, b).values(), strict=True):
        stored = rounded(want.bounds, DType.FLOAT16)
        moved = stored.map(lambda part: part[:, [2, 0, 3, 1]])
        doubled = Bounded(Bounds(moved.low * 2, moved.high * 2, moved.nan), want.dtype)
        hold(name, got, doubled)


def convolved(x, weights):
    """Return the convolution of one image with a border of one zero."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weights)


def quantised(package):
    """Quantised to int8: the op is given the grid's nearest values, and its outputs go to the grids of their own ranges."""
    register, calls = watched(package)
    x, y = random((1, 4, 16, 16), 6), random((1, 4, 16, 16), 7)
    model = graph([node(["x", "y"], ["u", "v"])], {"x": x.shape, "y": y.shape}, dict.fromkeys("uv", x.shape))
    outputs = simulate(model, [x, y], register, calibration=[[x, y]]).outputs
    given, _ = calls[-1]
    for array, original in zip(given, (x, y), strict=True):
        step = grid(original)
        assert len(np.unique(array)) > 200, "the grid has 256 values"
        assert np.abs(array - original).max() <= step / 2 + slack(original)
    calibrated = [made for seen, made in calls if np.array_equal(seen[0], x)]
    assert calibrated, "scales are chosen by what the op makes of the calibration's inputs"
    for name, got, want, made in zip("uv", outputs, oracle(*given).values(), calibrated[-1], strict=True):
        step, bounds = grid(made), want.bounds
        # A value beyond the calibrated range becomes the end of the grid, which lies within half a step of the range's.
        low = np.minimum(bounds.low, made.max() - step / 2) - step / 2 - slack(made)
        high = np.maximum(bounds.high, made.min() + step / 2) + step / 2 + slack(made)
        found = compare(name, got, Bounded(Bounds(low, high, bounds.nan), want.dtype))
        assert found.ok, found.message
        assert np.abs(got - made).max() > 2.0**-11 * np.abs(made).max(), "this is no float16"


def grid(values):
    """Return the step of int8's grid over the range of values, which holds 0."""
    return (max(float(values.max()), 0.0) - min(float(values.min()), 0.0)) / 255


def slack(values):
    """Return what computing scale and value in float32 may add: three roundings of numbers no larger than the largest."""
    return 3 * 2.0**-24 * float(np.abs(values).max())


def refused(package):
    """The toolkit shows the op's own message when it refuses a model."""
    module = packages.load(package, "rknn")
    model = graph([node(["x", "y"], ["u", "v"], "cstDualResidual")], {"x": (2, 3), "y": (2, 4)}, dict.fromkeys("uv", (2, 3)))
    said = failure(model, [np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)], module.register)
    assert "dual_residual: ... is [2, 3] in x, but [2, 4] in y" in said, said


def logged(package):
    """An error that the toolkit only logs is one: a node that leaves out an input and gives one behind it."""

    class Second:
        op_type = "cstSecond"

        def shape_infer(self, node, in_shapes, in_dtypes):
            return [in_shapes[-1]], [in_dtypes[-1]]

        def compute(self, node, inputs):
            return [inputs[-1] * 1]

    model = graph([helper.make_node("cstSecond", ["", "x"], ["y"], domain="rknn_cst")], {"x": (2,)}, {"y": (2,)})
    said = failure(model, [np.ones(2, np.float32)], lambda rknn: rknn.reg_custom_op(Second()))
    assert "E RKNN" in said, said


def failure(model, feeds, register):
    """Return what the toolkit says instead of running a model."""
    try:
        simulate(model, feeds, register)
    except ToolkitError as error:
        return str(error)
    raise AssertionError("was accepted")


def forked(name, package):
    """Run one of these in a fork, whose output goes into a file of its name; return its exit status."""
    child = os.fork()
    if child != 0:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        with open(f"{name}.log", "w") as printed:
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
        globals()[name](package)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    assert PLATFORM == "rk3588"
    importlib.import_module("rknn.api")  # takes longer than what is done with it
    for chosen in sys.argv[2:]:
        print(chosen, forked(chosen, Path(sys.argv[1])), flush=True)
