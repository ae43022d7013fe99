"""Torch's OpInfo samples of the functions in a spec's torch reference, as calls of the op.

A sample is what OpInfo calls a function with. Its own wrapper decides how, so it is run with the function watched, and the
arguments that arrive are matched with the call in the reference.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.ir.dtypes import DType, numpy_dtype
from opc.ir.op import Family, Op
from opc.testing.cases import samples
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Case
from opc.testing.oracle.evaluation import DomainError, told_sizes
from opc.testing.references.reference_call import ABSENT, Match, NotApplicableError, branches, shown, solved_name, unmentioned
from opc.testing.references.torch import tensor, wide
from opc.testing.references.torch_expression import evaluate as evaluate_text
from opc.testing.references.torch_expression import function_path, parse, resolve_function

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_WITHOUT_EFFECT: Mapping[str, frozenset[str]] = {
    # By which formula; the answers differ by their rounding.
    "cdist": frozenset({"compute_mode"}),
    # Which rows have a gradient, how it is scaled and stored.
    "nn.functional.embedding": frozenset({"padding_idx", "scale_grad_by_freq", "sparse"}),
    # How running statistics are kept. Whether they are used is an argument of its own: `training`, `use_input_stats`.
    "nn.functional.batch_norm": frozenset({"momentum"}),
    "nn.functional.instance_norm": frozenset({"running_mean", "running_var", "momentum"}),
}
"""Arguments by the path of their function that do not change what it computes, whatever they are."""


def opinfo_cases(family: Family) -> tuple[list[Case], list[tuple[str, str]]]:
    """Return the OpInfo samples of the functions in the reference as calls of the op, and those that do not apply with reasons.

    Raises:
        ImportError: when torch or what its OpInfos need is not installed.
    """
    op = family.forward
    if family.reference.torch is None:
        return [], []
    from torch.testing._internal.common_methods_invocations import op_db

    calls = _calls(op, parse(family.reference.torch), op_db)
    if not calls:
        return [], [("OpInfo", "the reference calls no torch function on the op's own operands that has an OpInfo")]
    cases: list[Case] = []
    others: list[tuple[str, str]] = []
    done: set[str] = set()
    for path in dict.fromkeys(c.path for c in calls):
        same = [c for c in calls if c.path == path]
        for info in same[0].infos:
            for dtype in _dtypes(op, info):
                for number, sample in enumerate(info.sample_inputs("cpu", dtype)):
                    variant = f"-{info.variant_test_name}" if info.variant_test_name else ""
                    label = f"opinfo-{info.name}{variant}-{str(dtype).removeprefix('torch.')}-{number:02d}"
                    if label in done:
                        continue
                    done.add(label)
                    found = _first_fit(op, same, label, info, sample)
                    if isinstance(found, Case):
                        cases.append(found)
                    else:
                        others.append((label, found))
    return cases, others


@dataclass(frozen=True, slots=True, eq=False)
class _OpInfoCall:
    """A call in the reference, the path of its function, and the OpInfos of that."""

    node: ast.Call
    path: str
    infos: Sequence[Any]


def _calls(op: Op, tree: ast.expr, op_db: Sequence[Any]) -> list[_OpInfoCall]:
    """Return the calls in the reference that take all operands the op must have as they are, and have OpInfos.

    Where there are such calls, those that only prepare an argument of another are left out.
    """
    own = {o.name for o in op.inputs if not o.optional}
    found: list[_OpInfoCall] = []
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        path = function_path(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and path is not None:
            inner |= {part for a in (*node.args, *(k.value for k in node.keywords)) for part in ast.walk(a)}
        if isinstance(node, ast.Call) and path is not None and node.args:
            names = {path, path.removeprefix("special.")}
            infos = [i for i in op_db if names & {i.name, *(a.name for a in i.aliases)}]
            if infos and own <= {solved_name(a) for p in (*node.args, *(k.value for k in node.keywords)) for a in branches(p)}:
                found.append(_OpInfoCall(node, path, infos))
    return [c for c in found if c.node not in inner] or found


def _dtypes(op: Op, info: Any) -> Iterator[Any]:
    import torch

    named = {d.value: getattr(torch, d.value) for binding in samples.bindings_of(op) for d in binding.values()}
    yield from (t for t in named.values() if t in info.dtypes)


def _first_fit(op: Op, calls: Sequence[_OpInfoCall], label: str, info: Any, sample: Any) -> Case | str:
    """Return the sample as a call of the op by the first call in the reference it fits, else the reason of the last."""
    args, kwargs = _arguments(calls[0].path, info, sample)
    reason = ""
    for call in calls:
        try:
            return _translate(op, call, label, args, kwargs)
        except NotApplicableError as error:
            reason = str(error)
    return reason


def _arguments(path: str, info: Any, sample: Any) -> Arguments:
    """Return what the function at `path` is called with when OpInfo runs the sample; the sample's own where it is not seen."""
    import torch

    function = resolve_function(path)
    seen: list[Arguments] = []

    class Watch(torch.overrides.TorchFunctionMode):  # type: ignore[misc]  # torch is untyped here
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is function:
                seen.append((args, dict(kwargs or {})))
            return func(*args, **(kwargs or {}))

    own = (sample.input, *sample.args), dict(sample.kwargs)
    if info.op is function:
        return own
    try:
        with Watch(), torch.no_grad():
            info.op(*own[0], **own[1])
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
        return own
    return seen[0] if seen else own


def _translate(op: Op, call: _OpInfoCall, label: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Case:
    parameters = _parameters(call.path, len(args), kwargs)
    given = {name: value for (name, _), value in zip(parameters, args)} | dict(kwargs)
    defaults = dict(parameters)
    if "kernel_size" in given and "stride" in defaults and not given.get("stride"):
        # By default torch's windows do not overlap.
        given["stride"] = given["kernel_size"]
    patterns = {name: node for (name, _), node in zip(parameters, call.node.args)}
    patterns |= {str(k.arg): k.value for k in call.node.keywords}
    match = Match(op)
    for name, pattern in patterns.items():
        match.meet(name, pattern, given.get(name, defaults.get(name, ABSENT)))
    rest = {n: v for n, v in given.items() if n not in patterns and not _without_effect(op, call.path, n, given)}
    unmentioned(match, rest, defaults)
    inputs = {o.name: _argument(o.name, match.inputs.get(o.name), match.inputs) for o in op.inputs}
    attributes = match.values()
    try:
        arrays = {n: None if a is None else a.data for n, a in inputs.items()}
        attributes = {**attributes, **told_sizes(op, arrays, attributes)}
        infer_types(op, {n: None if a is None else DType(str(a.data.dtype)) for n, a in inputs.items()}, attributes)
        env = infer(op, {n: None if a is None else a.data.shape for n, a in inputs.items()}, attributes)
    except (ShapeError, DomainError) as error:
        raise NotApplicableError(str(error)) from None
    names = {n: None if a is None else tensor(wide(a.data)) for n, a in inputs.items()} | env.attributes
    match.verify(lambda e: e.value if isinstance(e, ast.Constant) else evaluate_text(e, names))
    own = {o.name: match.inputs.get(o.name) for o in op.inputs} | env.attributes
    left = [n for n, pattern in patterns.items() if given.get(n) is None and solved_name(pattern) not in match.inputs]
    if left and not _same_answer(lambda: _first_output(call.path)(*args, **kwargs), lambda: evaluate_text(call.node, own)):
        raise NotApplicableError(f"what it leaves to torch's defaults is not what {op.name} has by default")
    return Case(f"{op.name}/{label}", op.name, inputs, attributes, told=op.told)


def _without_effect(op: Op, path: str, name: str, given: Mapping[str, Any]) -> bool:
    """Whether an argument of the function at `path` changes no value of the op; an attribute of the op by that name does.

    That is so of those in `_WITHOUT_EFFECT`; of those that only ask for more outputs than the first, such as `return_indices`; of
    a reduced axis kept with size 1; of where samples live anyway; and of the dtype that all operands and the result have anyway.
    """
    import torch

    value = given[name]
    if name in {a.name for a in op.attributes}:
        return False
    if name in _WITHOUT_EFFECT.get(path, ()) or name in ("keepdim", _dispatched(path).get("arg_name")):
        return True
    if name == "dtype":
        one = len({o.type for o in (*op.inputs, *op.outputs)}) == 1
        return one and all(v.dtype == value for v in given.values() if isinstance(v, torch.Tensor))
    return name == "device" and str(value) == "cpu"


def _dispatched(path: str) -> Mapping[str, Any]:
    """Return what torch knows of a function that is two in one, of which `arg_name` chooses; nothing for any other.

    With it true, `if_true` returns further outputs after the one that `if_false` returns. Both have the parameters of both.
    """
    import torch

    found: Mapping[str, Any] = getattr(torch._jit_internal, "boolean_dispatched", {}).get(resolve_function(path), {})
    return found


def _first_output(path: str) -> Callable[..., Any]:
    """Return the function at a path, or of two in one that which returns the first output alone."""
    function: Callable[..., Any] = _dispatched(path).get("if_false", resolve_function(path))
    return function


def _same_answer(first: Callable[[], Any], second: Callable[[], Any]) -> bool:
    """Whether two calls of torch give equal tensors; where one is refused, there is nothing to compare."""
    import torch

    try:
        a, b = first(), second()
    except (RuntimeError, ValueError, IndexError, NotImplementedError):
        return True
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return True
    # Our ops drop the axis they reduce, so one that is kept with size 1 does not count.
    return a.numel() == b.numel() and bool(torch.allclose(a.reshape(b.shape), b, rtol=0.0, atol=0.0, equal_nan=True))


def _argument(name: str, value: Any, values: Mapping[str, Any]) -> TensorArg | None:
    import torch

    if value is None:
        return None
    if isinstance(value, int | float):
        first = next(v for v in values.values() if isinstance(v, torch.Tensor))
        value = torch.tensor(value, dtype=first.dtype)
    if not isinstance(value, torch.Tensor):
        raise NotApplicableError(f"{name} = {shown(value)}")
    value = value.detach()
    if str(value.dtype).removeprefix("torch.") not in {d.value for d in DType}:
        raise NotApplicableError(f"{name} has dtype {value.dtype}")
    if value.dtype == torch.bfloat16:
        return TensorArg(value.float().numpy().astype(numpy_dtype(DType.BFLOAT16)))
    return TensorArg(np.array(value.numpy()))


def _parameters(path: str, count: int, kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return names and defaults of a function's parameters: its signature's, or those of the schema that takes this call."""
    import torch

    try:
        found = inspect.signature(_first_output(path)).parameters.values()
        return [(p.name, ABSENT if p.default is p.empty else p.default) for p in found]
    except ValueError:
        pass
    schemas = [
        s for n in (path.rpartition(".")[2], path.replace(".", "_")) for s in torch._C._jit_get_schemas_for_operator(f"aten::{n}")
    ]
    for schema in schemas:
        names = [a.name for a in schema.arguments]
        if count <= len(names) and set(kwargs) <= set(names) and not any(a.is_out for a in schema.arguments):
            return [(a.name, a.default_value if a.has_default_value() else ABSENT) for a in schema.arguments]
    raise NotApplicableError(f"the parameters of torch.{path} are not known")
