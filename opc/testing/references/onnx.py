"""Independent references from ONNX: the single-node test cases of the standard op that a spec names as its reference.

A test case's node is mapped to our op as the reference says: `LeakyRelu` alone maps inputs and outputs by position and
attributes by name; a call such as `y = Conv(x, w, b, strides=stride)` says which is which. What the node leaves out is at the
standard's default. Where the standard normalises over all axes from `axis` on and our op over its last axis, those axes are made
one; padding that the standard computes is given as numbers; a node that fits no reference is tried in its operator's plain form
(`onnx_forms`). What cannot be mapped is counted with its reason.
"""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.ir.affine import Affine
from opc.ir.dtypes import DTYPES, DType
from opc.ir.op import AttributeKind, Family, Group, Op
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import is_integer
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import DomainError, told_sizes
from opc.testing.references.onnx_forms import plain_form
from opc.testing.references.reference_call import ABSENT, Match, NotApplicableError, unmentioned
from opc.testing.references.torch_expression import evaluate as evaluate_text

Node = dict[str, Any]
"""One test case: name, op type, input and output arrays (None where absent), attributes."""


@dataclass(frozen=True, slots=True, eq=False)
class OnnxCase:
    """A test case as a call of our op: the standard's outputs by our names, and the node itself."""

    case: Case
    expected: Mapping[str, Array]
    op_type: str
    node: Node
    outputs: tuple[str | None, ...]

    def precise(self) -> dict[str, Array]:
        """Return the outputs as ONNX's own reference gives them for the same inputs in float64, in the order of `expected`.

        What the outputs of the test case differ from these by is the rounding of the standard's own formula.

        Raises:
            Exception: whatever the reference evaluator raises where it has no such computation.
        """
        from onnx import TensorProto, helper
        from onnx.reference import ReferenceEvaluator

        node = self.node
        names = [f"x{k}" if x is not None else "" for k, x in enumerate(node["inputs"])]
        made = [f"y{k}" for k in range(len(node["outputs"]))]
        graph = helper.make_graph(
            [helper.make_node(self.op_type, names, made, **node["attributes"])],
            "reference",
            [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in names if n],
            [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in made],
        )
        wide = {n: x if is_integer(x) else x.astype(np.float64) for n, x in zip(names, node["inputs"]) if x is not None}
        found = ReferenceEvaluator(helper.make_model(graph)).run(None, wide)
        results = {o: np.asarray(v) for o, v in zip(self.outputs, found) if o is not None}
        return {o: results[o].reshape(self.expected[o].shape) for o in self.expected}


@dataclass(frozen=True, slots=True)
class _OnnxCall:
    """A reference's call: operator, patterns of its inputs (None: by position) and attributes, our output for each of its own."""

    op_type: str
    inputs: tuple[ast.expr, ...] | None
    attributes: Mapping[str, ast.expr]
    outputs: tuple[str | None, ...] | None


def collect(op_types: Collection[str] | None = None) -> dict[str, list[Node]]:
    """Return the single-node test cases of these ONNX operators, by default of all, by op type.

    ONNX makes the cases of an operator when their module is imported; to import all takes seconds.

    Raises:
        ImportError: when onnx is not installed.
    """
    import onnx
    from onnx.backend.test.case import node as package

    if op_types is None:
        from onnx.backend.test.case.node import collect_testcases

        importing: Callable[[], object] = partial(collect_testcases, None)
    else:
        importing = partial(_import, package, op_types)
    found: dict[str, list[Node]] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        importing()
    for test in package._NodeTestCases:
        graph = test.model.graph
        if len(graph.node) != 1 or graph.node[0].domain not in ("", "ai.onnx") or graph.initializer:
            continue
        node = graph.node[0]
        if op_types is not None and node.op_type not in op_types:
            continue
        given = [i.name for i in graph.input]
        for data in test.data_sets:
            # Elements of types that NumPy itself lacks are given as ONNX stores them.
            inputs, outputs = (
                [onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in part] for part in data
            )
            if not all(isinstance(v, np.ndarray | np.generic) for v in (*inputs, *outputs)) or len(given) != len(inputs):
                continue
            by_name = {name: np.asarray(v) for name, v in zip(given, inputs)}
            produced = {o.name: np.asarray(v) for o, v in zip(graph.output, outputs)}
            found.setdefault(node.op_type, []).append(
                {
                    "name": test.name,
                    "inputs": [by_name.get(n) for n in node.input],
                    "outputs": [produced.get(n) for n in node.output],
                    "attributes": {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute},
                }
            )
    return found


def _import(package: ModuleType, op_types: Collection[str]) -> None:
    """Import the modules of ONNX's cases that name one of these operators."""
    named = re.compile("|".join(f'"{re.escape(name)}"' for name in op_types))
    for place in map(Path, package.__path__):
        for source in sorted(place.rglob("*.py")):
            if source.name != "__init__.py" and named.search(source.read_text(encoding="utf-8")):
                parts = source.relative_to(place).with_suffix("").parts
                importlib.import_module(".".join((package.__name__, *parts)))


def op_types(family: Family) -> tuple[str, ...]:
    """Return the ONNX operators that the references of a family name."""
    return tuple(dict.fromkeys(_parsed(text).op_type for text in family.reference.onnx))


def onnx_cases(family: Family, nodes: Mapping[str, list[Node]]) -> tuple[list[OnnxCase], list[tuple[str, str]]]:
    """Return the calls the references' test cases become, and the names of the others with the reason each does not apply.

    A case that several references name is a call by the first one it fits.
    """
    calls = [_parsed(text) for text in family.reference.onnx]
    cases: list[OnnxCase] = []
    others: list[tuple[str, str]] = []
    for op_type in dict.fromkeys(c.op_type for c in calls):
        if op_type not in nodes:
            others.append((op_type, f"ONNX has no single-node test case of {op_type}"))
        for node in nodes.get(op_type, []):
            reasons: list[str] = []
            for call in (c for c in calls if c.op_type == op_type):
                try:
                    cases.append(_translated(family.forward, call, node))
                    break
                except NotApplicableError as reason:
                    reasons.append(str(reason))
            else:
                others.append((str(node["name"]), reasons[0]))
    return cases, others


def _parsed(text: str) -> _OnnxCall:
    statement = ast.parse(text.strip()).body[0]
    outputs: tuple[str | None, ...] | None = None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        outputs = tuple(None if ast.unparse(n) == "_" else ast.unparse(n) for n in names)
    value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
    if isinstance(value, ast.Call):
        return _OnnxCall(ast.unparse(value.func), tuple(value.args), {str(k.arg): k.value for k in value.keywords}, outputs)
    return _OnnxCall(text.strip() if value is None else ast.unparse(value), None, {}, outputs)


def _translated(op: Op, call: _OnnxCall, node: Node) -> OnnxCase:
    """Return the call that a node becomes as it is, or else in its plain form."""
    try:
        return _translate(op, call, node)
    except NotApplicableError:
        form = plain_form(op, call.op_type, node)
        if form is None:
            raise
        case = _translate(op, call, {**node, "inputs": form[0], "attributes": form[1]})
        return replace(case, node=node)


def _translate(op: Op, call: _OnnxCall, node: Node) -> OnnxCase:
    given, defaults = _numbers_for_windows(call.op_type, node)
    arrays: list[Array | None] = list(node["inputs"])
    axis = given.get("axis")
    if axis is not None and _normalises_last_axis(op, call.op_type):
        del given["axis"]
        arrays = _with_last_axes_joined(op, arrays, int(axis))
    match = Match(op)
    _inputs(match, call, arrays)
    _attributes(match, call, given, defaults)
    match.solve(evaluate_text)
    tensors = {o.name: _fitting(op, o.name, match.inputs.get(o.name)) for o in op.inputs}
    inputs = {n: None if a is None else TensorArg(a) for n, a in tensors.items()}
    attributes = match.values()
    for name, array in tensors.items():
        if array is not None and str(array.dtype) not in {d.value for d in DTYPES}:
            raise NotApplicableError(f"{name} has dtype {array.dtype}")
    try:
        attributes = {**attributes, **told_sizes(op, tensors, attributes)}
        infer_types(op, {n: None if a is None else DType(str(a.dtype)) for n, a in tensors.items()}, attributes)
        env = infer(op, {n: None if a is None else a.shape for n, a in tensors.items()}, attributes)
    except (ShapeError, DomainError) as error:
        raise NotApplicableError(str(error)) from None
    names = {**tensors, **env.attributes}
    match.verify(lambda e: e.value if isinstance(e, ast.Constant) else evaluate_text(e, names))
    outputs = call.outputs or tuple(o.name for o in op.outputs)
    expected = {name: array for name, array in zip(outputs, node["outputs"]) if array is not None and name is not None}
    for name, array in expected.items():
        shape = env.outputs.get(name, ())
        # The standard keeps reduced axes with size 1; ours drops them, or they have been joined.
        if array.size != int(np.prod(shape)):
            raise NotApplicableError(f"{name} has shape {list(array.shape)}, where ours has {list(shape)}")
        expected[name] = array.reshape(shape)
    if not expected:
        raise NotApplicableError(f"it has none of the outputs {', '.join(o.name for o in op.outputs)}")
    case = Case(f"{op.name}/onnx-{node['name']}", op.name, inputs, attributes, told=op.told)
    return OnnxCase(case, expected, call.op_type, node, outputs)


def _inputs(match: Match, call: _OnnxCall, arrays: Sequence[Array | None]) -> None:
    patterns: Sequence[ast.expr] = call.inputs or ()
    if call.inputs is None:
        patterns = [ast.Name(o.name) for o in match.op.inputs]
    for k, array in enumerate(arrays):
        if k < len(patterns):
            match.meet(f"input {k}", patterns[k], array)
        elif array is not None:
            raise NotApplicableError(f"{len(arrays)} inputs, where {match.op.name} has {len(patterns)}")


def _attributes(match: Match, call: _OnnxCall, given: Mapping[str, Any], windows: Mapping[str, Any]) -> None:
    import onnx

    defaults = {
        name: onnx.helper.get_attribute_value(a.default_value) if a.default_value.name else ABSENT
        for name, a in onnx.defs.get_schema(call.op_type).attributes.items()
    } | dict(windows)
    # The sizes show whether a reduced axis is kept with size 1: nothing else depends on it.
    values = {n: v for n, v in {**defaults, **given}.items() if n != "keepdims"}
    dtypes = {a.name for a in match.op.attributes if a.kind is AttributeKind.DTYPE}
    for name, pattern in call.attributes.items():
        value = values.get(name, ABSENT)
        if isinstance(pattern, ast.Name) and pattern.id == "_":
            # What it says changes no value of our op.
            continue
        if isinstance(value, int) and isinstance(pattern, ast.Name) and pattern.id in dtypes:
            # The standard numbers dtypes.
            value = str(onnx.helper.tensor_dtype_to_np_dtype(value))
        match.meet(name, pattern, value)
    unmentioned(match, {n: v for n, v in values.items() if n not in call.attributes}, defaults)


def _fitting(op: Op, name: str, array: Array | None) -> Array | None:
    """Return an input's array; where ours has one axis, a scalar as its only element, and leading axes of size 1 left out.

    Where ours has a fixed number of axes and the standard's fewer, as operands that broadcast may have, it gets leading ones of
    size 1.
    """
    dims = op.input(name).dims
    if array is None or not all(isinstance(d, Affine) for d in dims):
        return array
    if len(dims) == 1 and set(array.shape[:-1]) <= {1}:
        return array.reshape(-1)
    return array.reshape((*(1,) * (len(dims) - array.ndim), *array.shape))


def _numbers_for_windows(op_type: str, node: Node) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes with padding as numbers, and what operators with windows take for granted: strides, dilations, pads.

    Defaults and the padding of `auto_pad` are those of the standard's pages of Conv and of the pooling operators.
    """
    import onnx

    given: dict[str, Any] = dict(node["attributes"])
    known = onnx.defs.get_schema(op_type).attributes
    x = node["inputs"][0] if node["inputs"] else None
    if not {"strides", "kernel_shape"} <= set(known) or x is None:
        return given, {}
    rank = x.ndim - 2
    defaults = {"strides": [1] * rank, "dilations": [1] * rank, "pads": [0] * (2 * rank)}
    defaults = {name: value for name, value in defaults.items() if name in known}
    if op_type.startswith("Conv"):
        # What the filters say already.
        given.pop("kernel_shape", None)
    how, kernel = given.get("auto_pad", b"NOTSET"), given.get("kernel_shape")
    if kernel is None:
        kernel = list(node["inputs"][1].shape[2:]) if len(node["inputs"]) > 1 else [1] * rank
    if how in (b"SAME_UPPER", b"SAME_LOWER") and op_type != "ConvTranspose":
        strides, dilations = (given.get(n, [1] * rank) for n in ("strides", "dilations"))
        totals = [
            max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0) for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations)
        ]
        less, more = [t // 2 for t in totals], [t - t // 2 for t in totals]
        given["pads"] = [*less, *more] if how == b"SAME_UPPER" else [*more, *less]
    if how in (b"SAME_UPPER", b"SAME_LOWER", b"VALID") and op_type != "ConvTranspose":
        del given["auto_pad"]
    return given, defaults


def _normalises_last_axis(op: Op, op_type: str) -> bool:
    """Whether the standard op takes all axes from `axis` on and ours the last one: `T[..., D]` with no attribute `axis`."""
    dims = op.inputs[0].dims
    last = len(dims) == 2 and isinstance(dims[0], Group) and isinstance(dims[1], Affine)
    return last and op_type in ("LayerNormalization", "RMSNormalization") and "axis" not in {a.name for a in op.attributes}


def _with_last_axes_joined(op: Op, arrays: Sequence[Array | None], axis: int) -> list[Array | None]:
    """Return the inputs with all axes from `axis` on made one; those without a group are a single such axis."""

    def joined() -> Iterator[Array | None]:
        for o, array in zip(op.inputs, arrays):
            kept = array.shape[:axis] if array is not None and isinstance(o.dims[0], Group) else ()
            yield None if array is None else array.reshape((*kept, -1))

    return list(joined())
