"""Networks that MindSpore compiles in checks of the proof. It reads their source, so they are written in what it understands."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    """Compile networks as graphs, and go back to PyNative mode."""
    import mindspore

    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    try:
        yield
    finally:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


def net_of(
    function: Callable[..., Any], attributes: Mapping[str, Any], given: Sequence[bool] | None = None, *, squares: bool = False
) -> Any:
    """Return a network that calls `function` on its inputs and these attributes.

    With `given`, its inputs are only those that are given. With `squares`, it returns the square of the function's first result.
    """
    from mindspore import nn, ops

    class Net(nn.Cell):  # type: ignore[misc]  # MindSpore is untyped, and reads the source
        """The op alone."""

        def construct(self, *tensors):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
            return function(*tensors, **attributes)

    class Part(nn.Cell):  # type: ignore[misc]  # MindSpore is untyped, and reads the source
        """The op alone, without the inputs that are not given."""

        def construct(self, *tensors):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
            operands = []
            place = 0
            for there in given:  # type: ignore[union-attr]  # `Part` is made of some alone
                if there:
                    operands.append(tensors[place])
                    place = place + 1
                else:
                    operands.append(None)
            return function(*operands, **attributes)

    class Squares(nn.Cell):  # type: ignore[misc]  # MindSpore is untyped, and reads the source
        """The square of the op's first result."""

        def construct(self, *tensors):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
            made = function(*tensors, **attributes)
            first = made[0] if isinstance(made, tuple) else made
            return ops.mul(first, first)

    return Squares() if squares else Net() if given is None or all(given) else Part()


def gradient_of(net: Callable[..., Any], among: tuple[int, ...]) -> Callable[..., Any]:
    """Return the gradients of the sum of what a network returns, for its arguments at the places `among`."""
    import mindspore

    grad = mindspore.grad(net, grad_position=among)

    def gradient(*tensors):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
        return grad(*tensors)

    return gradient
