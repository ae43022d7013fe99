"""The contenders of a benchmark in MindSpore: an op of ours, and MindSpore's own, in PyNative mode and as graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opc.backends import package as packages
from opc.testing.bench.problem import Problem
from opc.testing.bench.timing import Contender


def contenders(problem: Problem) -> list[Contender]:
    """Return ours and MindSpore's own in PyNative mode, making their output."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    return [Contender(name, _waiting(function, problem)) for name, function in _functions(problem, "")]


def graph_contenders(problem: Problem) -> list[Contender]:
    """Return ours and MindSpore's own as networks compiled to graphs, making their output."""
    import mindspore
    from mindspore import nn

    mindspore.set_context(mode=mindspore.GRAPH_MODE)

    def net_of(function: Callable[..., Any]) -> Any:
        class Net(nn.Cell):  # type: ignore[misc]  # MindSpore is untyped, and reads the source
            """One function as a network."""

            def construct(self, *tensors):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
                return function(*tensors)

        return Net()

    return [Contender(name, _waiting(net_of(function), problem)) for name, function in _functions(problem, " graph")]


def _functions(problem: Problem, ending: str) -> list[tuple[str, Callable[..., Any]]]:
    """Return our function and MindSpore's own, of tensors alone, for the ops that MindSpore has by name."""
    from mindspore import ops

    ours = getattr(packages.load(problem.package, "mindspore"), problem.family.name)
    values = tuple(problem.attributes.values())
    theirs = getattr(ops, problem.family.name)

    def opc(*tensors):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
        return ours(*tensors, *values)

    def own(*tensors):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
        return theirs(*tensors, *values)

    return [(f"opc mindspore{ending}", opc), (f"mindspore{ending}", own)]


def _waiting(function: Callable[..., Any], problem: Problem) -> Callable[[], Any]:
    """Return a call that comes back when the result is there: MindSpore computes behind the caller's back."""
    import mindspore

    tensors = [mindspore.Tensor(a) for a in problem.inputs.values()]
    wait = mindspore.runtime.synchronize

    def call() -> Any:
        made = function(*tensors)
        wait()
        return made

    return call
