"""The contenders of a benchmark: an op as each framework runs it, ours and its own.

What an op's peers are follows from its spec: `reference.torch` is run by eager torch, node by node into outputs given beforehand,
and compiled; `reference.onnx` is a one-node model for ONNX Runtime; NumPy runs what one would write by hand where that is known,
else the whole-array code opc derives from the op's body.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from opc.analysis.cost import Cost, cost
from opc.analysis.shape import ShapeEnv, infer
from opc.ir.dtypes import DType
from opc.ir.op import Family
from opc.testing.bench_timing import Contender, time_in_turn

ROW = 1024
"""The length of a row in ops that reduce along one."""


@dataclass(frozen=True)
class Problem:
    """One op at one size: float32 inputs, room for the outputs, and what the call costs at least."""

    family: Family
    package: Path
    size: int
    threads: int

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The inputs' shapes: as many elements as asked for, in rows of `ROW` where the op names an axis; optional ones too."""
        op = self.family.forward
        row = min(ROW, self.size)
        named = [d for o in op.inputs for d in o.dims if hasattr(d, "terms")]
        leading = (max(1, self.size // row),) if named else (self.size,)
        shapes: dict[str, tuple[int, ...]] = {}
        first = next(iter(_groups(self.family)), None)
        for operand in op.inputs:
            shape: tuple[int, ...] = ()
            for dim in operand.dims:
                # The axes before a row are one; those behind it are none, so that rows lie whole in memory.
                shape += (row,) if hasattr(dim, "terms") else leading if dim.name == first else ()
            shapes[operand.name] = shape
        return shapes

    @cached_property
    def env(self) -> ShapeEnv:
        """What the call binds."""
        return infer(self.family.forward, self.shapes, {})

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes' defaults, as given by a caller."""
        return {a.name: a.default for a in self.family.forward.attributes}

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The input arrays: numbers around zero."""
        rng = np.random.default_rng(0)
        return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in self.shapes.items()}

    def new_outputs(self) -> list[Any]:
        """Return arrays for the outputs, each page of them touched."""
        return [np.full(self.env.outputs[o.name], 1.0, np.float32) for o in self.family.forward.outputs]

    @property
    def cost(self) -> Cost:
        """What the call costs at least."""
        return cost(self.family.forward, self.env, {t.name: DType.FLOAT32 for t in self.family.forward.types})


def _groups(family: Family) -> list[str]:
    return [d.name for o in family.forward.inputs for d in o.dims if not hasattr(d, "terms")]


Call = tuple[Callable[[], object], tuple[Any, ...]]
"""What makes one call, and the arrays or tensors it writes to (none when it makes and returns them)."""


def attempt(name: str, make: Callable[[], Call]) -> Contender:
    """Return the contender, or one that says why it can't run here."""
    try:
        run, outputs = make()
        return Contender(name, run, outputs=outputs)
    except ImportError as error:
        return Contender(name, None, f"not here: {str(error).splitlines()[0]}")
    # A framework may refuse an op in any way it likes; that is its row, not the end of the benchmark.
    except Exception as error:
        return Contender(name, None, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:120]}")


def given_output(problem: Problem) -> list[Contender]:
    """Return every contender of an op whose outputs are given."""
    return [
        attempt("opc torch", lambda: opc_torch(problem)),
        attempt("opc onnxruntime", lambda: opc_onnxruntime(problem)),
        attempt("opc numpy", lambda: opc_numpy(problem)),
        attempt("torch", lambda: torch_eager(problem)),
        attempt("torch.compile", lambda: torch_compiled(problem)),
        attempt("onnxruntime", lambda: onnxruntime(problem)),
        attempt("numpy", lambda: numpy(problem)),
        attempt("memcpy", lambda: memcpy(problem.cost.bytes // 2, problem.threads)),
    ]


def fresh_output(problem: Problem) -> list[Contender]:
    """Return the contenders of an op that make their outputs."""

    def ours() -> Call:
        function, tensors = _torch_function(problem)
        return partial(function, *tensors, *problem.attributes.values()), ()

    def eager() -> Call:
        function, tensors = torch_reference(problem)
        return partial(function, *tensors), ()

    def our_numpy() -> Call:
        function = _numpy_function(problem)
        return partial(function, *problem.inputs.values(), *problem.attributes.values()), ()

    return [
        attempt("opc torch", ours),
        attempt("opc numpy", our_numpy),
        attempt("torch", eager),
    ]


# ---- ours ----


def _numpy_function(problem: Problem) -> Callable[..., Any]:
    from opc.backends import package

    return getattr(package.load(problem.package, "numpy"), problem.family.name)  # type: ignore[no-any-return]


def _torch_function(problem: Problem) -> tuple[Callable[..., Any], list[Any]]:
    import torch

    from opc.backends import package

    function = getattr(package.load(problem.package, "torch"), problem.family.name)
    return function, [torch.from_numpy(a) for a in problem.inputs.values()]


def opc_numpy(problem: Problem) -> Call:
    """Our op on NumPy arrays."""
    function, arrays, outputs = _numpy_function(problem), list(problem.inputs.values()), tuple(problem.new_outputs())
    out = outputs[0] if len(outputs) == 1 else outputs
    return lambda: function(*arrays, **problem.attributes, out=out), outputs


def opc_torch(problem: Problem) -> Call:
    """Our op on torch tensors."""
    import torch

    function, tensors = _torch_function(problem)
    outputs = tuple(torch.from_numpy(a) for a in problem.new_outputs())
    out = outputs[0] if len(outputs) == 1 else outputs
    return lambda: function(*tensors, **problem.attributes, out=out), outputs


def opc_onnxruntime(problem: Problem) -> Call:
    """Our op in ONNX Runtime."""
    op = problem.family.forward
    library = problem.package / "build" / f"lib{op.name}_ort.so"
    if not library.exists():
        raise ImportError(f"{library.name} is not built")
    return _session(problem, op.class_name, op.domain, op.version, str(library))


# ---- theirs ----


def onnxruntime(problem: Problem) -> Call:
    """The standard ONNX operator in ONNX Runtime."""
    import onnx

    name = problem.family.reference.onnx
    if name is None:
        raise ImportError("the op has no ONNX reference")
    return _session(problem, name, "", onnx.defs.get_schema(name).since_version, None)


def _session(problem: Problem, op_type: str, domain: str, version: int, library: str | None) -> Call:
    """Return a call of a one-node model whose inputs and outputs are bound to memory."""
    import onnx
    import onnxruntime as ort

    op = problem.family.forward
    schema = onnx.defs.get_schema(op_type) if library is None else None
    attributes = {n: v for n, v in problem.attributes.items() if schema is None or n in schema.attributes}
    outputs = op.outputs if schema is None else op.outputs[: max(1, schema.min_output)]
    float32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op_type, list(problem.inputs), [o.name for o in outputs], domain=domain, **attributes)],
        "bench",
        [onnx.helper.make_tensor_value_info(n, float32, a.shape) for n, a in problem.inputs.items()],
        [onnx.helper.make_tensor_value_info(o.name, float32, problem.env.outputs[o.name]) for o in outputs],
    )
    opsets = [onnx.helper.make_opsetid("", max(version, 18) if not domain else 18)]
    opsets += [onnx.helper.make_opsetid(domain, version)] if domain else []
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = problem.threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    if library is not None:
        options.register_custom_ops_library(library)
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    arrays = problem.new_outputs()[: len(outputs)]
    for name, array in problem.inputs.items():
        binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    for output, array in zip(outputs, arrays, strict=True):
        binding.bind_output(output.name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    # The binding knows addresses only: the arrays live as long as the problem and the contender.
    return lambda: session.run_with_iobinding(binding), tuple(arrays)


def torch_reference(problem: Problem) -> tuple[Any, list[Any]]:
    """Return the op's torch reference as a function of its inputs, traced to torch's own operators, and the inputs."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    from opc.testing.torch_expression import evaluate, parse

    text = problem.family.reference.torch
    if text is None:
        raise ImportError("the op has no torch reference")
    expression = parse(text)
    tensors = [torch.from_numpy(a) for a in problem.inputs.values()]
    attributes = problem.attributes
    names = list(problem.inputs)

    def function(*inputs: Any) -> Any:
        return evaluate(expression, {**attributes, **dict(zip(names, inputs, strict=True))})

    return make_fx(function)(*tensors), tensors


def torch_eager(problem: Problem) -> Call:
    """Eager torch: the reference's operators one after another, in the quicker of two ways.

    Each operator writes to memory it is given, or makes its own: some of torch's `out` overloads only copy what was made.
    """
    graph, tensors = torch_reference(problem)
    fresh = attempt("fresh", lambda: (lambda: graph(*tensors), ()))
    given = attempt("given", lambda: _torch_given(graph, tensors))
    timings = time_in_turn([given, fresh], rounds=3)
    best = min((t for t in timings if t.seconds), key=lambda t: min(t.seconds))
    assert best.contender.run is not None
    return best.contender.run, best.contender.outputs


def _torch_given(graph: Any, tensors: list[Any]) -> Call:
    """Return a run of a traced function in which every operator writes to memory it is given."""
    import torch

    nodes = graph.graph.nodes
    values: dict[Any, Any] = dict(zip((n for n in nodes if n.op == "placeholder"), tensors, strict=True))
    calls: list[tuple[Any, list[Any], dict[str, Any]]] = []

    def value(argument: Any) -> Any:
        return torch.fx.node.map_arg(argument, lambda n: values[n])

    for node in nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem:
            values[node] = values[node.args[0]][node.args[1]]
            continue
        arguments, keywords = list(value(node.args)), dict(value(node.kwargs))
        values[node] = result = node.target(*arguments, **keywords)
        if node.target.is_view:
            continue  # A view of memory that the calls before it write again.
        out = _out_overload(node.target)
        names = [a.name for a in out._schema.arguments if a.is_out]
        keywords |= dict(zip(names, _tuple(result), strict=True))
        calls.append((out, arguments, keywords))

    def run() -> None:
        for out, arguments, keywords in calls:
            out(*arguments, **keywords)

    (returned,) = (n for n in nodes if n.op == "output")
    return run, _tuple(value(returned.args[0]))


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _out_overload(overload: Any) -> Any:
    """Return the overload of a torch operator that writes to memory it is given.

    Raises:
        NotImplementedError: when it has none.
    """
    packet = overload._overloadpacket
    wanted = [(a.name, str(a.type)) for a in overload._schema.arguments]
    for name in packet.overloads():
        candidate = getattr(packet, name)
        arguments = candidate._schema.arguments
        if any(a.is_out for a in arguments) and [(a.name, str(a.type)) for a in arguments if not a.is_out] == wanted:
            return candidate
    raise NotImplementedError(f"{overload} can't write to memory it is given")


def torch_compiled(problem: Problem) -> Call:
    """torch.compile of the reference, writing to memory it is given."""
    import torch

    graph, tensors = torch_reference(problem)
    outputs = [torch.from_numpy(a) for a in problem.new_outputs()]

    def function(inputs: list[Any], outputs: list[Any]) -> None:
        for output, result in zip(outputs, _tuple(graph(*inputs)), strict=False):
            output.copy_(result)

    compiled = torch.compile(function, fullgraph=True, dynamic=False)
    return lambda: compiled(tensors, outputs), tuple(outputs)


def numpy(problem: Problem) -> Call:
    """NumPy: by hand with memory given, where that is known, else the code opc derives."""
    make = BY_HAND.get(problem.family.name)
    if make is not None:
        y = problem.new_outputs()[0]
        return make(problem.inputs, problem.attributes, y), (y,)
    from opc.emit.numpy import function_name, numpy_module

    scope: dict[str, Any] = {}
    # The text is opc's own.
    exec(compile(numpy_module(problem.family), f"<{problem.family.name} in NumPy>", "exec"), scope)
    function = scope[function_name(problem.family.forward)]
    arrays = list(problem.inputs.values())
    return lambda: function(*arrays, **problem.attributes), ()


def _leaky_relu(inputs: Mapping[str, Any], attributes: Mapping[str, Any], y: Any) -> Callable[[], object]:
    x, alpha, scaled = inputs["x"], np.float32(attributes["alpha"]), np.empty_like(y)
    return lambda: np.maximum(x, np.multiply(x, alpha, out=scaled), out=y)


def _relu(inputs: Mapping[str, Any], attributes: Mapping[str, Any], y: Any) -> Callable[[], object]:
    x, zero = inputs["x"], np.float32(0)
    return lambda: np.maximum(x, zero, out=y)


def _silu(inputs: Mapping[str, Any], attributes: Mapping[str, Any], y: Any) -> Callable[[], object]:
    x, one = inputs["x"], np.float32(1)
    return lambda: np.divide(x, np.add(np.exp(np.negative(x, out=y), out=y), one, out=y), out=y)


def _softmax(inputs: Mapping[str, Any], attributes: Mapping[str, Any], y: Any) -> Callable[[], object]:
    x, axis = inputs["x"], attributes["axis"]

    def run() -> None:
        np.exp(np.subtract(x, x.max(axis, keepdims=True), out=y), out=y)
        np.divide(y, y.sum(axis, keepdims=True), out=y)

    return run


def _layer_norm(inputs: Mapping[str, Any], attributes: Mapping[str, Any], y: Any) -> Callable[[], object]:
    x, w, b, epsilon = inputs["x"], inputs["w"], inputs["b"], np.float32(attributes["epsilon"])
    squares = np.empty_like(y)

    def run() -> None:
        np.subtract(x, x.mean(-1, keepdims=True), out=y)
        variance = np.multiply(y, y, out=squares).mean(-1, keepdims=True)
        np.divide(y, np.sqrt(variance + epsilon), out=y)
        np.add(np.multiply(y, w, out=y), b, out=y)

    return run


BY_HAND: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any], Any], Callable[[], object]]] = {
    "leaky_relu": _leaky_relu,
    "relu": _relu,
    "silu": _silu,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
}
"""Ops that are known well enough to be written in NumPy by hand, as someone who cares for speed would."""


def memcpy(nbytes: int, threads: int) -> Call:
    """A copy of so many bytes by C's memcpy on so many threads: what memory allows."""
    source, target = np.full(nbytes, 1, np.uint8), np.full(nbytes, 2, np.uint8)
    step = -(-nbytes // threads)
    parts = [(target.ctypes.data + i, source.ctypes.data + i, min(step, nbytes - i)) for i in range(0, nbytes, step)]
    pool = ThreadPoolExecutor(max(1, len(parts) - 1))

    def run(source: object = source) -> None:
        rest = [pool.submit(ctypes.memmove, *part) for part in parts[1:]]
        ctypes.memmove(*parts[0])
        for job in rest:
            job.result()

    return run, (target,)
