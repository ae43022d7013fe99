"""What Paddle promises of an operator beyond values and gradients in dynamic graphs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.base import Unsupported
from opc.backends.checks import (
    Checks,
    Sample,
    assert_asks_for_sizes,
    assert_identical,
    check,
    has_gradient,
    has_second_gradient,
    leaves_sizes,
)
from opc.backends.derived import differentiable
from opc.backends.dtypes import require_dtype
from opc.backends.paddle.graphs import predictor, static_graph
from opc.backends.paddle.library import in_place_positions
from opc.backends.paddle.session import PaddleSession
from opc.backends.paddle.values import to_numpy, to_paddle
from opc.backends.sessions import as_tuple

if TYPE_CHECKING:
    from opc.backends.base import Array


class PaddleChecks(Checks[PaddleSession]):
    """The checks of one family."""

    def _sample(self, seed: int, times: int, examples: Sequence[Sample]) -> Sample:
        """Return a call with random numbers; Unsupported where Paddle's graphs lack a dtype of it."""
        given = super()._sample(seed, times, examples)
        for array in given.given.values():
            require_dtype(array, "a graph of Paddle", lambda d: d.row.paddle_graphs)
        return given

    def arguments(self, given: Sample, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a function of the op: an optional input before a required one has no default."""
        return {**{x.name: tensors.get(x.name) for x in self.op.inputs}, **self.session.values(self.op, given.attributes)}

    def tensors(self, given: Sample) -> dict[str, Any]:
        """Return the inputs that are given as tensors."""
        return {n: to_paddle(a) for n, a in given.given.items()}

    def call(self, given: Sample, tensors: Mapping[str, Any]) -> tuple[Any, ...]:
        """Call the op's function."""
        return as_tuple(self.session.function(**self.arguments(given, tensors)))

    def expected(self, given: Sample) -> list[Array]:
        """Return the outputs in a dynamic graph."""
        return [to_numpy(t) for t in self.call(given, self.tensors(given))]

    def leaves(self, given: Sample) -> tuple[dict[str, Any], list[Any]]:
        """Return the inputs, and those among them that have a gradient."""
        tensors = self.tensors(given)
        found = []
        for name in self.moving:
            if name in tensors:
                tensors[name].stop_gradient = False
                found.append(tensors[name])
        return tensors, found

    def gradients(self, outputs: Sequence[Any], leaves: Sequence[Any]) -> list[Array]:
        """Return the gradients of the sum of all floating outputs."""
        import paddle

        return [to_numpy(g) for g in paddle.grad([o for o in outputs if not o.stop_gradient], list(leaves))]

    def expected_gradients(self, given: Sample) -> list[Array]:
        """Return the gradients in a dynamic graph."""
        tensors, leaves = self.leaves(given)
        return self.gradients(self.call(given, tensors), leaves)

    def graph(self, given: Sample, sizes: Callable[[Array], list[int]]) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Return the inputs and outputs of a call in the static graph being built."""
        import paddle

        fed = {}
        for name, array in given.given.items():
            fed[name] = paddle.static.data(name, sizes(array), array.dtype.name)
            fed[name].stop_gradient = name not in self.moving
        return fed, self.call(given, fed)

    def run(self, program: Any, given: Sample, fetched: Sequence[Any]) -> list[Array]:
        """Run a static graph."""
        import paddle

        executor = paddle.static.Executor(paddle.CPUPlace())
        found: list[Array] = executor.run(program, feed=given.given, fetch_list=list(fetched))
        return found

    @check("static graph")
    def static_graph(self) -> None:
        """A static graph gives what a dynamic one gives, and knows its shapes and dtypes before it runs."""
        given = self.sample()
        expected = self.expected(given)
        with static_graph() as program:
            _, outputs = self.graph(given, lambda a: list(a.shape))
            told = [(tuple(o.shape), str(o.dtype)) for o in outputs]
            found = self.run(program, given, outputs)
        assert_identical(found, expected, "the static graph")
        shapes = [(e.shape, f"paddle.{e.dtype.name}") for e in expected]
        assert told == shapes, f"the graph was told {told}, but the outputs are {shapes}"

    @check("sizes that data tells", leaves_sizes)
    def told(self) -> None:
        """A static graph is told to be given a size that data tells."""
        given = self.without_sizes(self.sample())
        with static_graph():
            assert_asks_for_sizes(lambda: self.graph(given, lambda a: list(a.shape)))

    @check("static graph, open sizes")
    def open_sizes(self) -> None:
        """A static graph with all sizes unknown runs on two sets of sizes, and infers the number of axes."""
        given, longer = self.sample(), self.sample(times=2)
        expected = self.expected(given)
        with static_graph() as program:
            _, outputs = self.graph(given, lambda a: [-1] * a.ndim)
            told = [len(o.shape) for o in outputs]
            found = self.run(program, given, outputs)
            again = self.run(program, longer, outputs)
        assert_identical(found, expected, "the static graph")
        assert_identical(again, self.expected(longer), "the static graph on other sizes")
        assert told == [e.ndim for e in expected], f"the graph was told {told} axes"

    def _differentiated(self) -> Sample:
        """Return the sample of a static graph that is differentiated.

        Raises:
            Unsupported: when Paddle has no such gradient.
        """
        given = self.differentiated_sample()
        if any(self.op.input(n).optional and a.ndim == 0 for n, a in given.given.items()):
            raise Unsupported("where a static graph is differentiated, Paddle takes an optional operand without axes for missing")
        return given

    @check("gradient in a static graph", has_gradient)
    def static_gradient(self) -> None:
        """A static graph has the gradients of a dynamic one."""
        import paddle

        given = self._differentiated()
        expected = self.expected_gradients(given)
        with static_graph() as program:
            fed, outputs = self.graph(given, lambda a: [-1] * a.ndim)
            floating = [o for o, d in zip(outputs, self.op.outputs, strict=True) if differentiable(d)]
            leaves = [fed[n] for n in self.moving if n in fed]
            found = self.run(program, given, paddle.static.gradients(floating, leaves))
        assert_identical(found, expected, "the static gradient")

    @check("gradient by Paddle's own node", has_gradient)
    def own_gradient(self) -> None:
        """Paddle's own node of the operator, of which each output alone is used, has the same gradients."""
        given = self.differentiated_sample()
        operator = getattr(self.session.operators, self.op.name)
        attributes = self.session.values(self.op, self.session.complete(self.op, given.attributes))
        for i, output in enumerate(self.op.outputs):
            if not differentiable(output):
                continue
            tensors, leaves = self.leaves(given)
            results = operator.compute([tensors.get(x.name) for x in self.op.inputs], list(attributes.values()))
            found = self.gradients([results[i]], leaves)
            tensors, leaves = self.leaves(given)
            assert_identical(
                found, self.gradients([self.call(given, tensors)[i]], leaves), f"Paddle's own gradient of {output.name}"
            )

    @check("unused outputs", lambda c: has_gradient(c) and len(c.op.outputs) > 1)
    def unused_outputs(self) -> None:
        """Where only one output is used, the others count as having a gradient of zeros."""
        import paddle

        given = self.differentiated_sample()
        floating = [i for i, o in enumerate(self.op.outputs) if differentiable(o)]
        for used in floating:
            tensors, leaves = self.leaves(given)
            found = self.gradients([self.call(given, tensors)[used]], leaves)
            tensors, leaves = self.leaves(given)
            results = self.call(given, tensors)
            seeds = [paddle.ones_like(results[i]) if i == used else paddle.zeros_like(results[i]) for i in floating]
            zeros = [to_numpy(g) for g in paddle.grad([results[i] for i in floating], leaves, seeds)]
            assert_identical(found, zeros, f"the gradient of {self.op.outputs[used].name} alone")

    @check("gradients of some inputs", has_second_gradient)
    def some_gradients(self) -> None:
        """The gradient of one input alone is the same as among those of all, in the first order and the second."""
        import paddle

        given = self.differentiated_sample()
        tensors, leaves = self.leaves(given)
        outputs = [o for o in self.call(given, tensors) if not o.stop_gradient]
        first = paddle.grad(outputs, leaves, create_graph=True)
        for targets, what in ((outputs, "gradient"), ([g for g in first if not g.stop_gradient], "second gradient")):
            if not targets:
                continue
            together = paddle.grad(targets, leaves, retain_graph=True, allow_unused=True)
            for leaf, expected in zip(leaves, together, strict=True):
                (alone,) = paddle.grad(targets, [leaf], retain_graph=True, allow_unused=True)
                known = [to_numpy(paddle.zeros_like(leaf) if g is None else g) for g in (alone, expected)]
                assert_identical(known[:1], known[1:], f"the {what} of one input alone")

    @check("in place", lambda c: in_place_positions(c.op) is not None)
    def in_place(self) -> None:
        """The function in place writes to its inputs, and refuses where a gradient would be lost."""
        given = self.sample()
        expected = self.expected(given)
        function = getattr(self.session.module, f"{self.op.name}_")
        tensors = self.tensors(given)
        results = as_tuple(function(**self.arguments(given, tensors)))
        written = [tensors[dict(self.op.inplace)[o.name]] for o in self.op.outputs]
        assert_identical([to_numpy(r) for r in results], expected, "the results")
        assert_identical([to_numpy(t) for t in written], expected, "the tensors written to")
        tensors, leaves = self.leaves(given)
        if not leaves:
            return
        with suppress(RuntimeError):
            function(**self.arguments(given, tensors))
            raise AssertionError("a call in place was accepted where a gradient is recorded")

    def _layer(self, given: Sample) -> tuple[Any, list[Any]]:
        """Return a layer that is one call, and the description of its argument, a list of tensors: all sizes open. That of an op
        without tensors has no argument."""
        import paddle

        @paddle.jit.not_to_static  # type: ignore[untyped-decorator]  # Paddle is untyped here
        def call(arguments: Sequence[Any]) -> Any:
            return self.call(given, dict(zip(given.given, arguments, strict=True)))

        class Layer(paddle.nn.Layer):  # type: ignore[misc]  # Paddle is untyped here
            def forward(self, arguments: Sequence[Any]) -> Any:
                return call(arguments)

        class Source(paddle.nn.Layer):  # type: ignore[misc]  # Paddle is untyped here
            def forward(self) -> Any:
                return call(())

        if not given.given:
            return Source(), []
        return Layer(), [[paddle.static.InputSpec([-1] * a.ndim, a.dtype.name, n) for n, a in given.given.items()]]

    @check("jit.save")
    def saved(self) -> None:
        """A layer goes through paddle.jit.save and comes back by paddle.jit.load; it runs on two sets of sizes."""
        import paddle

        given, longer = self.sample(), self.sample(times=2)
        layer, described = self._layer(given)
        with tempfile.TemporaryDirectory(prefix="opc-paddle-") as folder:
            path = str(Path(folder, "model"))
            paddle.jit.save(layer, path, input_spec=described)
            loaded = paddle.jit.load(path)
            for case in (given, longer):
                found = as_tuple(loaded(*self.tensors(case).values()))
                assert_identical([to_numpy(r) for r in found], self.expected(case), "the loaded model")

    @check("jit.save, Paddle Inference")
    def inference(self) -> None:
        """What paddle.jit.save wrote runs in Paddle Inference, all passes over its graph included."""
        import paddle

        given = self.sample()
        layer, described = self._layer(given)
        with tempfile.TemporaryDirectory(prefix="opc-paddle-") as folder:
            path = Path(folder, "model")
            paddle.jit.save(layer, str(path), input_spec=described)
            model = predictor(path, optimized=True)
            found = model.run([to_paddle(given.given[n]) for n in model.get_input_names()])
        assert_identical([to_numpy(r) for r in found], self.expected(given), "Paddle Inference")

    @check("jit.to_static, gradient", has_gradient)
    def to_static(self) -> None:
        """A layer under paddle.jit.to_static has the gradients of the plain function."""
        import paddle

        given = self._differentiated()
        layer, described = self._layer(given)
        traced = paddle.jit.to_static(layer, input_spec=described, full_graph=True)
        tensors, leaves = self.leaves(given)
        results = as_tuple(traced(list(tensors.values())))
        assert_identical(self.gradients(results, leaves), self.expected_gradients(given), "the traced gradient")
