"""Independent truth from torch: the expression a spec names as its reference, on our cases and on torch's OpInfo samples.

The expression is evaluated in float64 and must lie in the set the oracle gives when it computes in float64 too. Since every
backend is held to the oracle's sets, the oracle agreeing with torch makes them all agree with it. The OpInfo samples of the
function in the expression are run through the session under test as well.

Two correct formulas may differ in the sign of a zero, and where one of them overflows on the way: there nothing is asked.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opc.analysis.shape import ShapeError, infer, infer_types
from opc.ir.dtypes import DType
from opc.ir.expr import Expr, GroupRef, Read, Reduce, walk
from opc.ir.op import Family, Op
from opc.testing import samples
from opc.testing.arguments import TensorArg
from opc.testing.bounds import Array, numpy_dtype
from opc.testing.cases import Case
from opc.testing.oracle import Bounded, DomainError, evaluate
from opc.testing.tolerance import Comparison, compare
from opc.testing.torch_expression import ReferenceTextError, function_path, parse, resolve_function
from opc.testing.torch_expression import evaluate as evaluate_text


def check_reference(family: Family, case: Case) -> Comparison | None:
    """Compare the reference's expression on a case with the oracle, both in float64; None where the op has no value.

    Raises:
        ReferenceTextError: when the expression uses something references may not use.
    """
    op = family.forward
    arrays = case.arrays()
    try:
        sets = evaluate(
            op,
            {n: None if a is None else _wide(a) for n, a in arrays.items()},
            case.attributes,
            binding=_wide_binding(op, case),
            precise=True,
        )
        env = infer(op, {n: None if a is None else a.shape for n, a in arrays.items()}, case.attributes)
    except DomainError:
        return None
    names: dict[str, Any] = {n: None if a is None else _tensor(_wide(a)) for n, a in arrays.items()}
    result = evaluate_text(parse(family.reference.torch or ""), {**names, **env.attributes})
    results = result if isinstance(result, tuple) else (result,)
    worst = Comparison(0.0)
    extreme = _extreme(op, {n: a for n, a in arrays.items() if a is not None})
    for (name, want), value in zip(sets.items(), results):
        got = value.numpy()
        if want.dtype.is_floating:
            bounds = want.bounds
            free = (got == 0) & (bounds.low <= 0) & (bounds.high >= 0)
            if extreme.any() and got.shape == want.shape:
                near = np.broadcast_to(extreme, got.shape) if extreme.ndim <= got.ndim else np.full(got.shape, True)
                free |= near & ~(np.isfinite(got) & np.isfinite(bounds.low) & np.isfinite(bounds.high))
            got = np.where(free, want.value, got)
            want = Bounded(bounds, DType.FLOAT64)
        found = compare(name, got, want)
        worst = max(worst, found, key=lambda c: (not c.ok, c.ratio))
    return worst


def _extreme(op: Op, arrays: Mapping[str, Array]) -> Array:
    """Where an input is so large that its square overflows: at that element in a pointwise op, else anywhere."""
    large = [np.abs(a.astype(np.float64)) > 2.0**511 for a in arrays.values() if a.dtype.kind not in "iub"]
    if not large:
        return np.asarray(False)
    if all(_stays_in_place(e) for s in op.body for e in walk(s.value)):
        try:
            return np.asarray(np.any(np.broadcast_arrays(*large), axis=0))
        except ValueError:
            pass
    return np.asarray(any(bool(v.any()) for v in large))


def _stays_in_place(e: Expr) -> bool:
    """Whether an expression combines only elements at the same place: no reduction, no index but the group of all axes."""
    return not isinstance(e, Reduce) and not (isinstance(e, Read) and any(not isinstance(i, GroupRef) for i in e.indices))


def _wide(a: Array) -> Array:
    return a if a.dtype.kind in "iub" else a.astype(np.float64)


def _wide_binding(op: Op, case: Case) -> Mapping[str, DType]:
    dtypes = {n: None if a is None else DType(str(a.data.dtype)) for n, a in case.inputs.items()}
    return infer_types(op, dtypes, case.attributes)


def _tensor(a: Array) -> Any:
    import torch

    return torch.from_numpy(np.array(a))


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    default: Any


_UNKNOWN = object()


def opinfo_cases(family: Family) -> tuple[list[Case], list[tuple[str, str]]]:
    """Return the OpInfo samples of the function in the reference as calls of the op, and those that do not apply with reasons.

    Raises:
        ImportError: when torch or what its OpInfos need is not installed.
    """
    op = family.forward
    if family.reference.torch is None:
        return [], []
    from torch.testing._internal.common_methods_invocations import op_db

    call, infos = _find_call(op, parse(family.reference.torch), op_db)
    if call is None:
        return [], [("OpInfo", "the reference calls no torch function on the op's own operands that has an OpInfo")]
    cases: list[Case] = []
    others: list[tuple[str, str]] = []
    for info in infos:
        for dtype in _dtypes(op, info):
            for number, sample in enumerate(info.sample_inputs("cpu", dtype)):
                variant = f"-{info.variant_test_name}" if info.variant_test_name else ""
                label = f"opinfo-{info.name}{variant}-{str(dtype).removeprefix('torch.')}-{number:02d}"
                try:
                    cases.append(_translate(op, call, label, (sample.input, *sample.args), sample.kwargs))
                except _NotApplicableError as reason:
                    others.append((label, str(reason)))
    return cases, others


class _NotApplicableError(Exception):
    """A sample says something our op has no word for."""


def _find_call(op: Op, tree: ast.expr, op_db: Sequence[Any]) -> tuple[ast.Call | None, list[Any]]:
    """Return the call in the reference that takes the op's operands as they are, and the OpInfos of its function."""
    own = {o.name for o in op.inputs}
    for node in ast.walk(tree):
        path = function_path(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and path is not None and node.args:
            first = node.args[0]
            infos = [
                i for i in op_db if path in (i.name, *(a.name for a in i.aliases)) or i.name == path.removeprefix("special.")
            ]
            if isinstance(first, ast.Name) and first.id in own and infos:
                return node, infos
    return None, []


def _dtypes(op: Op, info: Any) -> Iterator[Any]:
    import torch

    named = {d.value: getattr(torch, d.value) for binding in samples.bindings_of(op) for d in binding.values()}
    yield from (t for t in named.values() if t in info.dtypes)


def _translate(op: Op, call: ast.Call, label: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Case:
    parameters = _parameters(str(function_path(call.func)), len(args), kwargs)
    given = {p.name: value for p, value in zip(parameters, args)} | dict(kwargs)
    nodes = {p.name: node for p, node in zip(parameters, call.args)} | {str(k.arg): k.value for k in call.keywords}
    defaults = {p.name: p.default for p in parameters}
    values: dict[str, Any] = {}
    for name, node in nodes.items():
        value = given.get(name, defaults.get(name, _UNKNOWN))
        if isinstance(node, ast.Name) and value is not _UNKNOWN:
            values[node.id] = value
    for name, value in given.items():
        if name not in nodes and not _same(value, defaults.get(name, _UNKNOWN)):
            raise _NotApplicableError(f"{name} = {_show(value)}, which {op.name} does not have")
    inputs: dict[str, TensorArg | None] = {}
    for o in op.inputs:
        inputs[o.name] = _argument(o.name, values.get(o.name), values)
    attributes = {}
    for a in op.attributes:
        value = values.get(a.name)
        if isinstance(value, tuple | list) and a.length is None and len(value) == 1:
            value = value[0]
        if value is not None:
            attributes[a.name] = value
    case = Case(f"{op.name}/{label}", op.name, inputs, attributes)
    try:
        dtypes = {n: None if a is None else DType(str(a.data.dtype)) for n, a in inputs.items()}
        infer_types(op, dtypes, attributes)
        env = infer(op, {n: None if a is None else a.data.shape for n, a in inputs.items()}, attributes)
    except ShapeError as error:
        raise _NotApplicableError(str(error)) from None
    names = {n: None if a is None else _tensor(_wide(a.data)) for n, a in inputs.items()} | env.attributes
    for name, node in nodes.items():
        if not isinstance(node, ast.Name) and name in given and not _same(given[name], evaluate_text(node, names)):
            raise _NotApplicableError(f"{name} = {_show(given[name])}, where {op.name} has {ast.unparse(node)}")
    return case


def _argument(name: str, value: Any, values: Mapping[str, Any]) -> TensorArg | None:
    import torch

    if value is None:
        return None
    if isinstance(value, int | float):
        first = next(v for v in values.values() if isinstance(v, torch.Tensor))
        value = torch.tensor(value, dtype=first.dtype)
    if not isinstance(value, torch.Tensor):
        raise _NotApplicableError(f"{name} = {_show(value)}")
    value = value.detach()
    if value.dtype == torch.bfloat16:
        return TensorArg(value.float().numpy().astype(numpy_dtype(DType.BFLOAT16)))
    return TensorArg(np.array(value.numpy()))


def _parameters(path: str, count: int, kwargs: Mapping[str, Any]) -> list[_Parameter]:
    """Return the parameters of a torch function: from its signature, or the schema of the overload that takes this call."""
    import torch

    function = resolve_function(path)
    try:
        found = inspect.signature(function).parameters.values()
        return [_Parameter(p.name, _UNKNOWN if p.default is p.empty else p.default) for p in found]
    except ValueError:
        pass
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{path.rpartition('.')[2]}"):
        names = [a.name for a in schema.arguments]
        if count <= len(names) and set(kwargs) <= set(names) and not any(a.is_out for a in schema.arguments):
            return [_Parameter(a.name, a.default_value if a.has_default_value() else _UNKNOWN) for a in schema.arguments]
    raise _NotApplicableError(f"the parameters of torch.{path} are not known")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return tuple(a) == tuple(b)
    return (
        a is b or (type(a) is type(b) and bool(a == b)) or (isinstance(a, int | float) and isinstance(b, int | float) and a == b)
    )


def _show(value: Any) -> str:
    return f"a tensor of shape {list(value.shape)}" if hasattr(value, "shape") else repr(value)


__all__ = ["ReferenceTextError", "check_reference", "opinfo_cases"]
