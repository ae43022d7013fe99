"""Independent truth from ONNX: the single-node test cases of the standard op that a spec names as its reference.

A test case's node is mapped to our op: inputs and outputs by position, attributes by name, those the node leaves out at the
standard's default. What cannot be mapped is counted with its reason.
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
from opc.ir.dtypes import ANY, DType
from opc.ir.op import AttributeKind, Family, Op
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
    inputs: dict[str, TensorArg | None] = {o.name: None for o in op.inputs}
    for o, array in zip(op.inputs, node["inputs"]):
        if array is not None and str(array.dtype) not in {d.value for d in ANY}:
            raise _NotApplicableError(f"{o.name} has dtype {array.dtype}")
        inputs[o.name] = None if array is None else TensorArg(array)
    attributes = _attributes(op, op_type, node["attributes"])
    shapes = {n: None if a is None else a.data.shape for n, a in inputs.items()}
    dtypes = {n: None if a is None else DType(str(a.data.dtype)) for n, a in inputs.items()}
    try:
        infer_types(op, dtypes, attributes)
        env = infer(op, shapes, attributes)
    except ShapeError as error:
        raise _NotApplicableError(str(error)) from None
    expected = {o.name: array for o, array in zip(op.outputs, node["outputs"]) if array is not None}
    for name, array in expected.items():
        if env.outputs.get(name) != array.shape:
            raise _NotApplicableError(f"{name} has shape {list(array.shape)}, where ours has {list(env.outputs.get(name, ()))}")
    if len(node["outputs"]) > len(op.outputs):
        raise _NotApplicableError(f"{len(node['outputs'])} outputs, where {op.name} has {len(op.outputs)}")
    return OnnxCase(Case(f"{op.name}/onnx-{node['name']}", op.name, inputs, attributes), expected, node["rtol"], node["atol"])


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
