"""ONNX Runtime as a contender: models of one node, ours or the standard operator that a spec's reference names."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opc.testing.bench.problem import Problem
from opc.testing.references.torch_expression import evaluate

Call = tuple[Callable[[], object], tuple[Any, ...]]
"""What makes one call, and the arrays it writes to."""

LOWEST_OPSET = 18
"""The opset of a model whose operators are all older."""

FUNCTIONS = "opc.bench"
"""The domain of standard operators that a model brings along as functions."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node to be run: its inputs are names of the problem's, "" for one left out, or constants.

    `outputs` are the names of the op's that it makes, "" for one that is left out. `function` is the body of a standard operator
    that the runtime doesn't know by itself, `version` then the opset of that.
    """

    op_type: str
    domain: str
    version: int
    inputs: tuple[str | np.ndarray[Any, Any], ...]
    attributes: dict[str, Any]
    outputs: tuple[str, ...]
    function: Any = None


def ours(problem: Problem) -> Call:
    """Our op in ONNX Runtime."""
    op = problem.family.forward
    library = problem.package / "build" / f"lib{op.name}_ort.so"
    if not library.exists():
        raise ImportError(f"{library.name} is not built")
    inputs = tuple(o.name if o.name in problem.inputs else "" for o in op.inputs)
    attributes = {n: v for n, v in problem.attributes.items() if v is not None}
    outputs = tuple(o.name for o in op.outputs)
    return session(problem, GraphNode(op.class_name, op.domain, op.version, inputs, attributes, outputs), str(library))


def theirs(problem: Problem) -> Call:
    """The standard operator in ONNX Runtime."""
    return session(problem, reference_node(problem), None)


def reference_node(problem: Problem) -> GraphNode:
    """Return the node that a spec's reference in ONNX describes, of several the first that takes all inputs that are given.

    Raises:
        ImportError: when the spec has none.
    """
    import onnx

    references = problem.family.reference.onnx
    if not references:
        raise ImportError("the op has no ONNX reference")
    statements = [ast.parse(text.strip()).body[0] for text in references]
    statement = next((s for s in statements if problem.inputs.keys() <= _names(s)), statements[0])
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    op = problem.family.forward
    operator = value.func if isinstance(value, ast.Call) else value
    assert isinstance(operator, ast.Name), "the form of references is checked when a spec is read"
    schema, function = _standard(operator.id)
    every = tuple(o.name for o in op.outputs)
    if isinstance(value, ast.Call):
        names = {**{o.name: problem.inputs.get(o.name) for o in op.inputs}, **problem.attributes}
        inputs = tuple(_argument(problem, schema, n, a, names) for n, a in enumerate(value.args))
        attributes = {
            str(k.arg): k.value.value if isinstance(k.value, ast.Constant) else evaluate(k.value, names)
            for k in value.keywords
            # What the reference leaves open is left to the standard; what an older operator lacks shows in what it computes.
            if k.arg in schema.attributes and not _is_open(k.value)
        }
        outputs = _targets(statement) or every[:1]
    else:
        inputs = tuple(o.name if o.name in problem.inputs else "" for o in op.inputs)
        defaults = {a.name: a.default for a in op.attributes}
        # What has our default is left to the standard's own, which is the same or means the same.
        attributes = {n: v for n, v in problem.attributes.items() if n in schema.attributes and v != defaults[n]}
        if "keepdims" in schema.attributes and "keepdims" not in defaults:
            # The sizes show whether a reduced axis is kept with size 1.
            attributes["keepdims"] = int(len(problem.new_outputs()[0].shape) == len(problem.shapes[op.inputs[0].name]))
        outputs = every[: max(1, schema.min_output)]
    if function is None:
        return GraphNode(operator.id, "", schema.since_version, inputs, attributes, outputs)
    given = {n: onnx.helper.get_attribute_value(a.default_value) for n, a in schema.attributes.items() if a.default_value.name}
    return GraphNode(operator.id, FUNCTIONS, function.opset_import[0].version, inputs, given | attributes, outputs, function)


def _names(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}


def _is_open(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "_"


def _targets(statement: ast.stmt) -> tuple[str, ...]:
    """Return the names that a reference gives several outputs, "" for one that it leaves out."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    entries = target.elts if isinstance(target, ast.Tuple) else []
    return tuple("" if _is_open(e) else e.id for e in entries if isinstance(e, ast.Name))


@functools.cache
def _known() -> Mapping[str, int]:
    """Return the standard operators that this ONNX Runtime knows, with the opset of the newest version of each."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found: dict[str, int] = {}
    for schema in state.get_all_operator_schema():
        if not schema.domain:
            found[schema.name] = max(schema.since_version, found.get(schema.name, 0))
    return found


def _standard(name: str) -> tuple[Any, Any]:
    """Return the newest schema of a standard operator that the runtime knows; the newest and a function's body if it knows none.

    The body is taken as written in the newest opset that the runtime has of its operators.

    Raises:
        ImportError: when the runtime can't run it either way.
    """
    import onnx

    known = _known()
    if name in known:
        return onnx.defs.get_schema(name, known[name]), None
    schema = onnx.defs.get_schema(name)
    if not schema.has_function or any(n.op_type not in known for n in schema.function_body.node):
        raise ImportError(f"this ONNX Runtime does not know {name}")
    function = onnx.FunctionProto()
    function.CopyFrom(schema.function_body)
    function.domain = FUNCTIONS
    newest = max(LOWEST_OPSET, *(known[n.op_type] for n in function.node))
    function.opset_import[0].version = newest
    return schema, function


def _argument(problem: Problem, schema: Any, position: int, node: ast.expr, names: dict[str, Any]) -> str | np.ndarray[Any, Any]:
    """Return an input of the node: the name of ours, "" for one left out, or the value of a constant."""
    if isinstance(node, ast.Name) and node.id in problem.inputs:
        return node.id
    value = evaluate(node, names)
    if value is None:
        return ""
    wanted = schema.inputs[position].types
    whole = np.asarray(value).dtype.kind == "i" and "tensor(int64)" in wanted
    return np.asarray(value, np.int64 if whole else problem.floating)


def session(problem: Problem, node: GraphNode, library: str | None) -> Call:
    """Return a call of a one-node model whose inputs and outputs are bound to memory."""
    import onnx
    import onnxruntime as ort

    every = zip(problem.family.forward.outputs, problem.new_outputs(), strict=True)
    made, arrays = zip(*((o, a) for o, a in every if o.name in node.outputs), strict=True)
    constants = {f"constant_{n}": x for n, x in enumerate(node.inputs) if not isinstance(x, str)}
    inputs = [x if isinstance(x, str) else f"constant_{n}" for n, x in enumerate(node.inputs)]
    while inputs and not inputs[-1]:
        inputs.pop()
    used = {n: a for n, a in problem.inputs.items() if n in inputs}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(node.op_type, inputs, list(node.outputs), domain=node.domain, **node.attributes)],
        "bench",
        [_value(onnx, n, a) for n, a in used.items()],
        [_value(onnx, o.name, a) for o, a in zip(made, arrays, strict=True)],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    ours = node.domain and node.function is None
    opsets = [onnx.helper.make_opsetid("", LOWEST_OPSET if ours else max(node.version, LOWEST_OPSET))]
    opsets += [onnx.helper.make_opsetid(node.domain, node.version)] if node.domain else []
    functions = [] if node.function is None else [node.function]
    model = onnx.helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = problem.threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    if library is not None:
        options.register_custom_ops_library(library)
    running = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = running.io_binding()
    for name, array in used.items():
        binding.bind_input(name, "cpu", 0, _element(onnx, array), array.shape, array.ctypes.data)
    for output, array in zip(made, arrays, strict=True):
        binding.bind_output(output.name, "cpu", 0, _element(onnx, array), array.shape, array.ctypes.data)
    # The binding knows addresses only: the arrays live as long as the problem and the contender.
    return lambda: running.run_with_iobinding(binding), tuple(arrays)


def _value(onnx: Any, name: str, array: np.ndarray[Any, Any]) -> Any:
    return onnx.helper.make_tensor_value_info(name, _element(onnx, array), array.shape)


def _element(onnx: Any, array: np.ndarray[Any, Any]) -> int:
    """Return an array's element type as ONNX numbers it."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
