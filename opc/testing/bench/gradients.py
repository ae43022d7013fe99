"""The gradient of an op as each framework runs it: reverse mode from a forward call that was made before and is kept.

Every contender makes its outputs anew, as autograd does. ONNX Runtime has no gradients of its own here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opc.ir.op import Role
from opc.testing.bench import memory
from opc.testing.bench.onnxruntime import Call
from opc.testing.bench.peers import attempt, numpy_module_of, tensor, torch_function, torch_text
from opc.testing.bench.problem import Problem
from opc.testing.bench.timing import Contender


def contenders(problem: Problem) -> list[Contender]:
    """Return ours and the frameworks' gradients by `problem.active`."""
    return [
        attempt("opc torch", lambda: ours(problem)),
        attempt("opc numpy", lambda: ours_numpy(problem)),
        attempt("torch", lambda: eager(problem)),
        attempt("torch.compile", lambda: compiled(problem)),
    ]


def ours(problem: Problem) -> Call:
    """Our op through torch's autograd."""
    function, tensors = torch_function(problem)
    return _autograd(problem, lambda *given: function(*given, **problem.attributes), tensors)


def eager(problem: Problem) -> Call:
    """The spec's torch reference through autograd."""
    function, tensors = torch_text(problem)
    return _autograd(problem, function, tensors)


def compiled(problem: Problem) -> Call:
    """torch.compile of the reference through autograd."""
    import torch
    from torch._functorch import config

    # What the forward call saved is used again in every round.
    config.donated_buffer = False
    torch.compiler.reset()  # all references are one function to it, of which it compiles a limited number
    function, tensors = torch_text(problem)
    return _autograd(problem, torch.compile(function, fullgraph=True, dynamic=False), tensors)


def _autograd(problem: Problem, function: Any, tensors: list[Any]) -> Call:
    """Return a call that takes given gradients of the outputs that the reference has to those of the active inputs."""
    import torch

    names = [o.name for o in problem.family.forward.inputs]
    leaves = [t.requires_grad_(n in problem.active) if t is not None else None for n, t in zip(names, tensors, strict=True)]
    active = [t for t in leaves if t is not None and t.requires_grad]
    outputs = _tuple(function(*leaves))[: _output_count(problem)]
    given = [tensor(a) for a in _cotangents(problem)[: len(outputs)]]
    return lambda: torch.autograd.grad(outputs, active, given, retain_graph=True), ()


def _output_count(problem: Problem) -> int:
    """Return how many of the outputs the gradient is taken of: all where the reference has them, else the first."""
    function, tensors = torch_text(problem)
    return min(len(_tuple(function(*tensors))), len(_floating(problem)))


def _floating(problem: Problem) -> list[Any]:
    """Return arrays for the outputs that there are cotangents of."""
    return [o for o in problem.new_outputs() if o.dtype == problem.floating]


def _cotangents(problem: Problem) -> list[Any]:
    rng = np.random.default_rng(1)
    outputs = problem.family.forward.outputs
    shapes = [problem.env.outputs[o.name] for o in outputs]
    drawn = [np.asarray(rng.standard_normal(shape, dtype=np.float32)) for shape in shapes]
    return [memory.copy(a.astype(problem.floating)) for a in drawn]


def ours_numpy(problem: Problem) -> Call:
    """Our gradient op on NumPy arrays: what it saves of the forward call is computed before."""
    return _numpy_call(problem, _output_count(problem)), ()


def given_numpy(problem: Problem) -> Call:
    """Our gradient op on NumPy arrays, of all outputs, written each time to where the first call put it."""
    call = _numpy_call(problem, len(_floating(problem)))
    return partial(call, out=call()), ()


def _numpy_call(problem: Problem, count: int) -> Callable[..., Any]:
    """Return a call of our gradient op from so many of the outputs."""
    op, backward = problem.family.forward, problem.family.backward
    if backward is None or backward.derivation is None:
        raise ValueError(f"{op.name} has no gradient")
    module = numpy_module_of(problem)
    forward = [problem.inputs.get(o.name) for o in op.inputs]
    made = getattr(module, op.name)(*forward, **problem.attributes)
    outputs = dict(zip((o.name for o in op.outputs), _tuple(made), strict=True))
    asked = {o.name for o in op.outputs[:count]}
    cotangents = {o.name: a for o, a in zip(op.outputs, _cotangents(problem), strict=True) if o.name in asked}
    values: dict[Role, Any] = {Role.INPUT: problem.inputs, Role.OUTPUT: outputs, Role.COTANGENT: cotangents}
    arguments = [values[role].get(of) for role, of in backward.derivation.inputs]
    names = zip((o.name for o in backward.outputs), backward.derivation.outputs, strict=True)
    only = [name for name, of in names if of in problem.active]
    function = getattr(module, backward.name)
    choice = {"only": only} if len(only) < len(backward.outputs) else {}
    return partial(function, *arguments, **problem.attributes, **choice)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)
