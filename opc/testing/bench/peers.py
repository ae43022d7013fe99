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
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from opc.ir.dtypes import DType, numpy_dtype
from opc.testing.bench import memory
from opc.testing.bench import onnxruntime as bench_onnxruntime
from opc.testing.bench.onnxruntime import Call
from opc.testing.bench.problem import Problem
from opc.testing.bench.timing import Contender, time_in_turn


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
        *frameworks(problem),
        attempt("numpy", lambda: numpy(problem)),
        attempt("memcpy", lambda: memcpy(problem.cost.bytes // 2, problem.threads)),
    ]


def frameworks(problem: Problem, *, compiled_into: bool = True) -> list[Contender]:
    """Return ours and the frameworks' own on an op whose outputs are given, where they take such.

    With `compiled_into`, what torch.compile makes writes to memory it is given, which costs nothing where the loop is its own.
    """
    return [
        attempt("opc torch", lambda: opc_torch(problem)),
        attempt("opc onnxruntime", lambda: bench_onnxruntime.ours(problem)),
        attempt("opc numpy", lambda: opc_numpy(problem)),
        attempt("torch", lambda: torch_eager(problem)),
        attempt("torch.compile", lambda: torch_compiled(problem) if compiled_into else torch_compiled_fresh(problem)),
        attempt("onnxruntime", lambda: bench_onnxruntime.theirs(problem)),
    ]


def fresh_output(problem: Problem) -> list[Contender]:
    """Return the contenders of an op that make their outputs."""

    def ours() -> Call:
        function, tensors = torch_function(problem)
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


def tensor(array: Any) -> Any:
    """Return a torch tensor in an array's memory."""
    import torch

    if array.dtype.name == "bfloat16":  # a type that NumPy and torch do not hand each other
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array(values: Any) -> Any:
    """Return a NumPy array in the memory of what a contender returned; of a tensor that requires a gradient, its values."""
    if str(getattr(values, "dtype", "")) == "torch.bfloat16":
        import torch

        return values.detach().view(torch.uint16).numpy().view(numpy_dtype(DType.BFLOAT16))
    return np.asarray(values.detach() if hasattr(values, "detach") else values)


# ---- ours ----


def numpy_module_of(problem: Problem) -> ModuleType:
    """Return our functions on NumPy arrays."""
    from opc.backends import package

    return package.load(problem.package, "numpy")


def _numpy_function(problem: Problem) -> Callable[..., Any]:
    return getattr(numpy_module_of(problem), problem.family.name)  # type: ignore[no-any-return]  # generated module


def torch_function(problem: Problem) -> tuple[Callable[..., Any], list[Any]]:
    """Return our function on torch tensors and the inputs; None where one is absent."""

    from opc.backends import package

    function = getattr(package.load(problem.package, "torch"), problem.family.name)
    arrays = [problem.inputs.get(o.name) for o in problem.family.forward.inputs]
    return function, [None if a is None else tensor(a) for a in arrays]


def opc_numpy(problem: Problem) -> Call:
    """Our op on NumPy arrays."""
    function, outputs = _numpy_function(problem), tuple(problem.new_outputs())
    arrays = [problem.inputs.get(o.name) for o in problem.family.forward.inputs]
    out = outputs[0] if len(outputs) == 1 else outputs
    return lambda: function(*arrays, **problem.attributes, out=out), outputs


def opc_torch(problem: Problem) -> Call:
    """Our op on torch tensors."""

    function, tensors = torch_function(problem)
    outputs = tuple(tensor(a) for a in problem.new_outputs())
    out = outputs[0] if len(outputs) == 1 else outputs
    return lambda: function(*tensors, **problem.attributes, out=out), outputs


# ---- theirs ----


def torch_reference(problem: Problem) -> tuple[Any, list[Any]]:
    """Return the op's torch reference as a function of its inputs, traced to torch's own operators, and the inputs."""
    from torch.fx.experimental.proxy_tensor import make_fx

    function, tensors = torch_text(problem)
    given = [t for t in tensors if t is not None]
    places = [i for i, t in enumerate(tensors) if t is not None]

    def some(*present: Any) -> Any:
        every = [None] * len(tensors)
        for i, t in zip(places, present, strict=True):
            every[i] = t
        return function(*every)

    return make_fx(some)(*given), given


def torch_text(problem: Problem) -> tuple[Callable[..., Any], list[Any]]:
    """Return the op's torch reference as a function of its inputs, and the inputs; None where one is absent."""

    names = [o.name for o in problem.family.forward.inputs]
    return reference(problem), [tensor(problem.inputs[n]) if n in problem.inputs else None for n in names]


def reference(problem: Problem) -> Callable[..., Any]:
    """Return what torch computes as a function of the op's inputs: what the problem says, else the op's reference.

    Raises:
        ImportError: when there is none.
    """
    from opc.testing.references.torch_expression import evaluate, parse

    text, attributes = problem.torch or problem.family.reference.torch, problem.attributes
    if text is None:
        raise ImportError("the op has no torch reference")
    if callable(text):
        return partial(text, **attributes)
    expression = parse(text)
    names = [o.name for o in problem.family.forward.inputs]

    def function(*inputs: Any) -> Any:
        return evaluate(expression, {**attributes, **dict(zip(names, inputs, strict=True))})

    return function


def torch_eager(problem: Problem) -> Call:
    """Eager torch: the reference's operators one after another, in the quicker of two ways.

    Each operator writes to memory it is given, or makes its own: some of torch's `out` overloads only copy what was made.
    """
    graph, tensors = torch_reference(problem)
    fresh = attempt("fresh", lambda: (lambda: graph(*tensors), ()))
    given = attempt("given", lambda: _torch_given(graph, tensors))
    timings = time_in_turn([given, fresh], rounds=3, before=memory.evict)
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
        made = tuple(tensor(memory.copy(array(t))) if t.is_contiguous() else t for t in _tuple(result))
        values[node] = result = made if isinstance(result, tuple | list) else made[0]
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
    outputs = [tensor(a) for a in problem.new_outputs()]

    def function(inputs: list[Any], outputs: list[Any]) -> None:
        for output, result in zip(outputs, _tuple(graph(*inputs)), strict=False):
            output.copy_(result)

    torch.compiler.reset()  # all references are one function to it, of which it compiles a limited number
    compiled = torch.compile(function, fullgraph=True, dynamic=False)
    return lambda: compiled(tensors, outputs), tuple(outputs)


def torch_compiled_fresh(problem: Problem) -> Call:
    """torch.compile of the reference, making its outputs."""
    import torch

    function, tensors = torch_reference(problem)
    torch.compiler.reset()  # all references are one function to it, of which it compiles a limited number
    compiled = torch.compile(function, fullgraph=True, dynamic=False)
    return lambda: compiled(*tensors), ()


def numpy(problem: Problem) -> Call:
    """NumPy: by hand with memory given, where that is known, else the code opc derives."""
    make = BY_HAND.get(problem.family.name)
    if make is not None:
        y = problem.new_outputs()[0]
        return make(problem.inputs, problem.attributes, y), (y,)
    from opc.emit.numpy.reference import function_name, numpy_module

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
    source, target = (memory.full((nbytes,), value, np.uint8) for value in (1, 2))
    step = -(-nbytes // threads)
    parts = [(target.ctypes.data + i, source.ctypes.data + i, min(step, nbytes - i)) for i in range(0, nbytes, step)]
    pool = ThreadPoolExecutor(max(1, len(parts) - 1))

    def run(source: object = source) -> None:
        rest = [pool.submit(ctypes.memmove, *part) for part in parts[1:]]
        ctypes.memmove(*parts[0])
        for job in rest:
            job.result()

    return run, (target,)
