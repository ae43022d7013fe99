"""The contenders of a benchmark in Paddle: an op of ours, and Paddle's own."""

from __future__ import annotations

from functools import partial
from typing import Any

from opc.backends import package as packages
from opc.testing.bench.problem import Problem
from opc.testing.bench.timing import Contender


def contenders(problem: Problem) -> list[Contender]:
    """Return ours and Paddle's own, both in a dynamic graph, making their output, for the ops that Paddle has by name."""
    import paddle

    ours = getattr(packages.load(problem.package, "paddle"), problem.family.name)
    tensors = [paddle.to_tensor(a, place=paddle.CPUPlace()) for a in problem.inputs.values()]
    own: dict[str, Any] = {
        "leaky_relu": lambda x: paddle.nn.functional.leaky_relu(x, problem.attributes["alpha"]),
        "softmax": lambda x: paddle.nn.functional.softmax(x, problem.attributes["axis"]),
    }
    return [
        Contender("opc paddle", partial(ours, *tensors, *problem.attributes.values())),
        Contender("paddle", partial(own[problem.family.name], *tensors)),
    ]
