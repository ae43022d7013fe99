"""What Paddle promises of an operator beyond values and gradients in dynamic graphs, checked on a session."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends.base import Check, Unsupported
from opc.backends.paddle.inference import predictor, static_graph
from opc.backends.paddle.library import in_place_positions
from opc.backends.paddle.signature import differentiable
from opc.backends.paddle.values import attribute_values, to_numpy, to_paddle
from opc.ir.dtypes import DType, candidates
from opc.ir.op import Operand

if TYPE_CHECKING:
    from opc.backends.base import Array
    from opc.backends.paddle.session import PaddleSession


@dataclass(frozen=True, slots=True)
class Sample:
    """The arguments of one call: arrays by the name of a given input, attributes by name."""

    arrays: Mapping[str, Array]
    attributes: Mapping[str, Any]


def checks(session: PaddleSession) -> tuple[Check, ...]:
    """Return the checks of a family's operators; those that need a gradient only where there is one."""
    maker = _Checks(session)
    found = [
        Check("static graph", maker.static_graph),
        Check("static graph, open sizes", maker.open_sizes),
        Check("jit.save", maker.saved),
        Check("jit.save, Paddle Inference", maker.inference),
    ]
    if in_place_positions(session.family.forward) is not None:
        found.append(Check("in place", maker.in_place))
    if session.family.backward is not None:
        found += [
            Check("gradient in a static graph", maker.static_gradient),
            Check("gradient by Paddle's own node", maker.own_gradient),
            Check("jit.to_static, gradient", maker.to_static),
        ]
        if len(session.family.forward.outputs) > 1:
            found.append(Check("unused outputs", maker.unused_outputs))
        if session.family.backward_backward is not None:
            found.append(Check("gradients of some inputs", maker.some_gradients))
    return tuple(found)


class _Checks:
    """The checks of one family; each raises AssertionError where it does not hold."""

    def __init__(self, session: PaddleSession) -> None:
        self.session = session
        self.family = session.family
        self.op = session.family.forward
        self.moving = [x.name for x in self.op.inputs if differentiable(x)]

    def sample(self, times: int = 1) -> Sample:
        """Return random arrays shaped like the spec's first example, its axes `times` as long where the op allows that.

        Raises:
            Unsupported: when the spec has no example.
        """
        if not self.family.examples:
            raise Unsupported("the spec has no example to check this on")
        values = dict(self.family.examples[0].values)
        attributes = {a.name: values[a.name] for a in self.op.attributes if a.name in values}
        given = {x.name: np.asarray(values[x.name]) for x in self.op.inputs if values.get(x.name) is not None}
        longer = {n: np.tile(a, [times if s > 1 else 1 for s in a.shape]) for n, a in given.items()}
        try:
            infer(self.op, {x.name: longer[x.name].shape if x.name in longer else None for x in self.op.inputs}, attributes)
        except ShapeError:
            longer = given
        generator = np.random.default_rng(0)
        return Sample({n: _random(self.op.input(n), a, generator) for n, a in longer.items()}, attributes)

    def arguments(self, given: Sample, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a function of the op: an optional input before a required one has no default."""
        return {**{x.name: tensors.get(x.name) for x in self.op.inputs}, **attribute_values(self.op, given.attributes)}

    def call(self, given: Sample, tensors: Mapping[str, Any]) -> tuple[Any, ...]:
        """Call the op's function."""
        result = self.session.function(**self.arguments(given, tensors))
        return result if isinstance(result, tuple) else (result,)

    def expected(self, given: Sample) -> list[Array]:
        """Return the outputs in a dynamic graph."""
        return [to_numpy(t) for t in self.call(given, {n: to_paddle(a) for n, a in given.arrays.items()})]

    def leaves(self, given: Sample) -> tuple[dict[str, Any], list[Any]]:
        """Return the inputs, and those among them that have a gradient."""
        tensors = {n: to_paddle(a) for n, a in given.arrays.items()}
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
        for name, array in given.arrays.items():
            fed[name] = paddle.static.data(name, sizes(array), array.dtype.name)
            fed[name].stop_gradient = name not in self.moving
        return fed, self.call(given, fed)

    def run(self, program: Any, given: Sample, fetched: Sequence[Any]) -> list[Array]:
        """Run a static graph."""
        import paddle

        executor = paddle.static.Executor(paddle.CPUPlace())
        found: list[Array] = executor.run(program, feed=dict(given.arrays), fetch_list=list(fetched))
        return found

    def static_graph(self) -> None:
        """A static graph gives what a dynamic one gives, and knows its shapes and dtypes before it runs."""
        given = self.sample()
        expected = self.expected(given)
        with static_graph() as program:
            _, outputs = self.graph(given, lambda a: list(a.shape))
            told = [(tuple(o.shape), str(o.dtype)) for o in outputs]
            found = self.run(program, given, outputs)
        _equal(found, expected, "the static graph")
        shapes = [(e.shape, f"paddle.{e.dtype.name}") for e in expected]
        assert told == shapes, f"the graph was told {told}, but the outputs are {shapes}"

    def open_sizes(self) -> None:
        """A static graph whose sizes are all open runs on two sets of sizes, and is told the number of axes."""
        given, longer = self.sample(), self.sample(2)
        expected = self.expected(given)
        with static_graph() as program:
            _, outputs = self.graph(given, lambda a: [-1] * a.ndim)
            told = [len(o.shape) for o in outputs]
            found = self.run(program, given, outputs)
            again = self.run(program, longer, outputs)
        _equal(found, expected, "the static graph")
        _equal(again, self.expected(longer), "the static graph on other sizes")
        assert told == [e.ndim for e in expected], f"the graph was told {told} axes"

    def _differentiated(self) -> Sample:
        """Return the sample of a static graph that is differentiated.

        Raises:
            Unsupported: when Paddle has no such gradient.
        """
        given = self.sample()
        if any(self.op.input(n).optional and a.ndim == 0 for n, a in given.arrays.items()):
            raise Unsupported("where a static graph is differentiated, Paddle takes an optional operand without axes for missing")
        return given

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
        _equal(found, expected, "the static gradient")

    def own_gradient(self) -> None:
        """Paddle's own node of the operator, of which each output alone is used, has the same gradients."""
        given = self.sample()
        operator = getattr(self.session.operators, self.op.name)
        attributes = attribute_values(self.op, {a.name: given.attributes.get(a.name, a.default) for a in self.op.attributes})
        for i, output in enumerate(self.op.outputs):
            if not differentiable(output):
                continue
            tensors, leaves = self.leaves(given)
            results = operator.compute([tensors.get(x.name) for x in self.op.inputs], list(attributes.values()))
            found = self.gradients([results[i]], leaves)
            tensors, leaves = self.leaves(given)
            _equal(found, self.gradients([self.call(given, tensors)[i]], leaves), f"Paddle's own gradient of {output.name}")

    def unused_outputs(self) -> None:
        """Where only one output is used, the others count as having a gradient of zeros."""
        import paddle

        given = self.sample()
        floating = [i for i, o in enumerate(self.op.outputs) if differentiable(o)]
        for used in floating:
            tensors, leaves = self.leaves(given)
            found = self.gradients([self.call(given, tensors)[used]], leaves)
            tensors, leaves = self.leaves(given)
            results = self.call(given, tensors)
            seeds = [paddle.ones_like(results[i]) if i == used else paddle.zeros_like(results[i]) for i in floating]
            zeros = [to_numpy(g) for g in paddle.grad([results[i] for i in floating], leaves, seeds)]
            _equal(found, zeros, f"the gradient of {self.op.outputs[used].name} alone")

    def some_gradients(self) -> None:
        """The gradient of one input alone is the same as among those of all, in the first order and the second."""
        import paddle

        given = self.sample()
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
                _equal(known[:1], known[1:], f"the {what} of one input alone")

    def in_place(self) -> None:
        """The function in place writes to its inputs, and refuses where a gradient would be lost."""
        given = self.sample()
        expected = self.expected(given)
        function = getattr(self.session.module, f"{self.op.name}_")
        tensors = {n: to_paddle(a) for n, a in given.arrays.items()}
        result = function(**self.arguments(given, tensors))
        results = result if isinstance(result, tuple) else (result,)
        written = [tensors[dict(self.op.inplace)[o.name]] for o in self.op.outputs]
        _equal([to_numpy(r) for r in results], expected, "the results")
        _equal([to_numpy(t) for t in written], expected, "the tensors written to")
        tensors, leaves = self.leaves(given)
        if not leaves:
            return
        with suppress(RuntimeError):
            function(**self.arguments(given, tensors))
            raise AssertionError("a call in place was accepted where a gradient is recorded")

    def _layer(self, given: Sample) -> tuple[Any, list[Any]]:
        """Return a layer that is one call, and the description of its argument, a list of tensors: all sizes open."""
        import paddle

        @paddle.jit.not_to_static  # type: ignore[untyped-decorator]  # Paddle is untyped here
        def call(arguments: Sequence[Any]) -> Any:
            return self.call(given, dict(zip(given.arrays, arguments, strict=True)))

        class Layer(paddle.nn.Layer):  # type: ignore[misc]  # Paddle is untyped here
            def forward(self, arguments: Sequence[Any]) -> Any:
                return call(arguments)

        return Layer(), [[paddle.static.InputSpec([-1] * a.ndim, a.dtype.name, n) for n, a in given.arrays.items()]]

    def saved(self) -> None:
        """A layer goes through paddle.jit.save and comes back by paddle.jit.load; it runs on two sets of sizes."""
        import paddle

        given, longer = self.sample(), self.sample(2)
        layer, described = self._layer(given)
        with tempfile.TemporaryDirectory(prefix="opc-paddle-") as folder:
            path = str(Path(folder, "model"))
            paddle.jit.save(layer, path, input_spec=described)
            loaded = paddle.jit.load(path)
            for case in (given, longer):
                found = loaded(*map(to_paddle, case.arrays.values()))
                results = found if isinstance(found, list | tuple) else (found,)
                _equal([to_numpy(r) for r in results], self.expected(case), "the loaded model")

    def inference(self) -> None:
        """What paddle.jit.save wrote runs in Paddle Inference, all passes over its graph included."""
        import paddle

        given = self.sample()
        layer, described = self._layer(given)
        with tempfile.TemporaryDirectory(prefix="opc-paddle-") as folder:
            path = Path(folder, "model")
            paddle.jit.save(layer, str(path), input_spec=described)
            model = predictor(path, optimized=True)
            found = model.run([to_paddle(given.arrays[n]) for n in model.get_input_names()])
        _equal([to_numpy(r) for r in found], self.expected(given), "Paddle Inference")

    def to_static(self) -> None:
        """A layer under paddle.jit.to_static has the gradients of the plain function."""
        import paddle

        given = self._differentiated()
        layer, described = self._layer(given)
        traced = paddle.jit.to_static(layer, input_spec=described, full_graph=True)
        tensors, leaves = self.leaves(given)
        found = traced(list(tensors.values()))
        results = found if isinstance(found, list | tuple) else (found,)
        _equal(self.gradients(results, leaves), self.expected_gradients(given), "the traced gradient")


def _random(operand: Operand, like: Array, generator: np.random.Generator) -> Array:
    """Return a random float64 array of the shape of `like`; of another dtype, the values of `like` where there is no float64.

    Where `like` has nothing negative, such as probabilities and variances, the random values are magnitudes.
    """
    dtypes = candidates(operand.type)
    if DType.FLOAT64 not in dtypes:
        if not dtypes[0].row.paddle_graphs:
            raise Unsupported(f"a graph of Paddle has no tensors of {dtypes[0]}")
        return like.astype(dtypes[0].value)
    values: Array = np.asarray(generator.standard_normal(like.shape))
    return np.abs(values) if np.all(like >= 0) else values


def _equal(found: Sequence[Array], expected: Sequence[Array], what: str) -> None:
    """Assert that the same kernels gave the same numbers."""
    assert len(found) == len(expected), f"{what}: {len(found)} results instead of {len(expected)}"
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{what}: {a.dtype} {a.shape} instead of {b.dtype} {b.shape}"
        assert np.array_equal(a, b, equal_nan=a.dtype.kind not in "iub"), f"{what}: {a} instead of {b}"
