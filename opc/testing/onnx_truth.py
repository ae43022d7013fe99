"""Independent truth from ONNX: the single-node test cases of the standard op that a spec names as its reference.

A test case's node is mapped to our op: inputs and outputs by position, attributes by name, those the node leaves out at the
standard's default. Where the standard normalises over all axes from `axis` on and our op over its last axis, those axes are
made one. What cannot be mapped is counted with its reason.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opc.analysis.shape import ShapeError, infer, infer_types
from opc.ir.affine import Affine
from opc.ir.dtypes import ANY, DType
from opc.ir.op import AttributeKind, Family, Group, Op
from opc.testing.arguments import TensorArg
from opc.testing.bounds import Array
from opc.testing.cases import Case

Node = dict[str, Any]
"""One test case: name, op type, input and output arrays (None where absent), attributes, tolerances of the standard."""


@dataclass(frozen=True, slots=True, eq=False)
class OnnxCase:
    """A test case as a call of our op: the standard's outputs by our names, and the tolerance the standard gives it."""

    case: Case
    expected: Mapping[str, Array]
    rtol: float
    atol: float


def collect(path: Path) -> dict[str, list[Node]]:
    """Return the single-node test cases of ONNX by op type, from the file `path`, which is written when it is missing.

    Making the cases takes seconds, and every worker of a run needs them.

    Raises:
        ImportError: when onnx is not installed.
    """
    from filelock import FileLock

    with FileLock(f"{path}.lock"):
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.write_bytes(pickle.dumps(_collect()))
            partial.replace(path)
    nodes: dict[str, list[Node]] = pickle.loads(path.read_bytes())
    return nodes


def _collect() -> dict[str, list[Node]]:
    import onnx
    from onnx.backend.test.case.node import collect_testcases

    found: dict[str, list[Node]] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        every = collect_testcases(None)
    for test in every:
        graph = test.model.graph
        if len(graph.node) != 1 or graph.node[0].domain not in ("", "ai.onnx") or graph.initializer:
            continue
        node = graph.node[0]
        given = [i.name for i in graph.input]
        for inputs, outputs in test.data_sets:
            if not all(isinstance(v, np.ndarray) for v in (*inputs, *outputs)) or len(given) != len(inputs):
                continue
            by_name = dict(zip(given, inputs))
            produced = dict(zip((o.name for o in graph.output), outputs))
            found.setdefault(node.op_type, []).append(
                {
                    "name": test.name,
                    "inputs": [by_name.get(n) for n in node.input],
                    "outputs": [produced.get(n) for n in node.output],
                    "attributes": {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute},
                    "rtol": test.rtol,
                    "atol": test.atol,
                }
            )
    return found


def onnx_cases(family: Family, nodes: Mapping[str, list[Node]]) -> tuple[list[OnnxCase], list[tuple[str, str]]]:
    """Return the calls the reference's test cases become, and the names of the others with the reason each does not apply."""
    if family.reference.onnx is None:
        return [], []
    op_type = family.reference.onnx
    cases: list[OnnxCase] = []
    others: list[tuple[str, str]] = []
    if op_type not in nodes:
        return [], [(op_type, f"ONNX has no single-node test case of {op_type}")]
    for node in nodes[op_type]:
        try:
            cases.append(_translate(family.forward, op_type, node))
        except _NotApplicableError as reason:
            others.append((str(node["name"]), str(reason)))
    return cases, others


class _NotApplicableError(Exception):
    """A test case says something our op has no word for."""


def _translate(op: Op, op_type: str, node: Node) -> OnnxCase:
    if len(node["inputs"]) > len(op.inputs):
        raise _NotApplicableError(f"{len(node['inputs'])} inputs, where {op.name} has {len(op.inputs)}")
    if len(node["outputs"]) > len(op.outputs):
        raise _NotApplicableError(f"{len(node['outputs'])} outputs, where {op.name} has {len(op.outputs)}")
    arrays = {o.name: a for o, a in zip(op.inputs, node["inputs"]) if a is not None}
    for name, array in arrays.items():
        if str(array.dtype) not in {d.value for d in ANY}:
            raise _NotApplicableError(f"{name} has dtype {array.dtype}")
    given = dict(node["attributes"])
    axis = given.get("axis")
    if axis is not None and _normalises_last_axis(op, op_type):
        del given["axis"]
        arrays = _with_last_axes_joined(op, arrays, int(axis))
    inputs = {o.name: TensorArg(arrays[o.name]) if o.name in arrays else None for o in op.inputs}
    attributes = _attributes(op, op_type, given)
    try:
        infer_types(op, {n: DType(str(a.dtype)) for n, a in arrays.items()}, attributes)
        env = infer(op, {n: a.shape for n, a in arrays.items()}, attributes)
    except ShapeError as error:
        raise _NotApplicableError(str(error)) from None
    expected = {o.name: array for o, array in zip(op.outputs, node["outputs"]) if array is not None}
    for name, array in expected.items():
        shape = env.outputs.get(name, ())
        # The standard keeps reduced axes with size 1; ours drops them, or they have been joined.
        if array.size != int(np.prod(shape)):
            raise _NotApplicableError(f"{name} has shape {list(array.shape)}, where ours has {list(shape)}")
        expected[name] = array.reshape(shape)
    return OnnxCase(Case(f"{op.name}/onnx-{node['name']}", op.name, inputs, attributes), expected, node["rtol"], node["atol"])


def _normalises_last_axis(op: Op, op_type: str) -> bool:
    """Whether the standard op takes all axes from `axis` on and ours the last one: `T[..., D]` with no attribute `axis`."""
    dims = op.inputs[0].dims
    last = len(dims) == 2 and isinstance(dims[0], Group) and isinstance(dims[1], Affine)
    return last and op_type in ("LayerNormalization", "RMSNormalization") and "axis" not in {a.name for a in op.attributes}


def _with_last_axes_joined(op: Op, arrays: Mapping[str, Array], axis: int) -> dict[str, Array]:
    """Return the inputs with all axes from `axis` on made one; those without a group are a single such axis."""
    result = {}
    for o in op.inputs:
        if o.name in arrays:
            array = arrays[o.name]
            kept = array.shape[:axis] if isinstance(o.dims[0], Group) else ()
            result[o.name] = array.reshape((*kept, -1))
    return result


def _attributes(op: Op, op_type: str, given: Mapping[str, Any]) -> dict[str, Any]:
    import onnx

    own = {a.name: a for a in op.attributes}
    result: dict[str, Any] = {}
    schema = onnx.defs.get_schema(op_type)
    for name, attribute in schema.attributes.items():
        default = onnx.helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
        value = given.get(name, default)
        if name in own and value is not None:
            result[name] = _native(value, own[name].kind)
        elif name not in own and name in given and given[name] != default:
            raise _NotApplicableError(f"attribute {name} = {_native(given[name], None)!r}, which {op.name} does not have")
    return result


def _native(value: Any, kind: AttributeKind | None) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if kind is AttributeKind.BOOL:
        return bool(value)
    return tuple(value) if isinstance(value, list) else value
