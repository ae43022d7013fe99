"""What MindSpore promises of an op beyond values and gradients, checked on the spec's examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends.base import Check, Unsupported
from opc.backends.mindspore.nets import gradient_of, graph_mode, net_of
from opc.backends.mindspore.operators import is_differentiable
from opc.backends.mindspore.values import attribute_values, message, scratch, to_mindspore, to_numpy
from opc.ir.dtypes import DType, candidates, numpy_dtype
from opc.ir.op import Example, Operand

if TYPE_CHECKING:
    from opc.backends.base import Array
    from opc.backends.mindspore.session import MindSporeSession


def checks(session: MindSporeSession) -> tuple[Check, ...]:
    """Return the checks of a family's primitives; those that need a gradient only where there is one."""
    run = Checks(session)
    found = [
        Check("non-contiguous inputs", run.strides),
        Check("graph mode", run.graph),
        Check("ms.jit", run.jit),
        Check("dynamic shape", partial(run.dynamic, False)),
        Check("dynamic rank", partial(run.dynamic, True)),
        Check("MindIR", run.mindir),
        Check("dynamic MindIR", run.dynamic_mindir),
        Check("no files left", run.no_files),
    ]
    if run.bad_samples():
        found.append(Check("refused in graph mode", run.refused))
    if session.family.backward is not None:
        found.append(Check("gradient in graph mode", partial(run.gradient, 1)))
    if session.family.backward_backward is not None:
        found.append(Check("second gradient in graph mode", partial(run.gradient, 2)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Sample:
    """An example as a call: its inputs in order, None for an absent one, and the attributes."""

    inputs: dict[str, Array | None]
    attributes: dict[str, Any]

    @property
    def tensors(self) -> list[Any]:
        """The inputs as MindSpore's tensors."""
        return [None if a is None else to_mindspore(a) for a in self.inputs.values()]


def results(made: Any) -> list[Array]:
    """Return what an op gave as arrays."""
    return [to_numpy(t) for t in (made if isinstance(made, tuple | list) else (made,))]


def assert_same(got: Any, expected: Any, what: str) -> None:
    """Compare two ways to run the same kernels: equal to the bit."""
    a, b = results(got), results(expected)
    assert len(a) == len(b), f"{what}: {len(a)} results, not {len(b)}"
    for x, y in zip(a, b, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), f"{what}: {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        assert x.tobytes() == y.tobytes(), f"{what}: {x} instead of {y}"


class Checks:
    """The checks of one session's family."""

    def __init__(self, session: MindSporeSession) -> None:
        self.session = session
        self.family = session.family
        self.op = session.family.forward

    def samples(self) -> Iterator[Sample]:
        """Yield the spec's examples as calls, the first of them in each set of operands that are given.

        Raises:
            Unsupported: when there is none.
        """
        seen = set()
        for example in self.family.examples:
            sample = self._sample(example)
            given = tuple(a is None for a in sample.inputs.values())
            if given not in seen:
                seen.add(given)
                yield sample
        if not seen:
            raise Unsupported("the spec has no example to check this on")

    def _sample(self, example: Example) -> Sample:
        values = dict(example.values)
        inputs = {x.name: None if values.get(x.name) is None else _array(x, values[x.name]) for x in self.op.inputs}
        given = {a.name: values[a.name] for a in self.op.attributes if a.name in values}
        return Sample(inputs, attribute_values(self.op, given))

    def call(self, sample: Sample) -> Any:
        """Run a sample in PyNative mode."""
        return self.session.function(*sample.tensors, **sample.attributes)

    def net(self, sample: Sample) -> Any:
        """Return a network of the op alone."""
        return net_of(self.session.function, sample.attributes)

    def strides(self) -> None:
        """Transposed inputs and every second element give what contiguous ones give."""
        from mindspore import ops

        for sample in self.samples():
            expected = self.call(sample)
            layouts: dict[str, Callable[[Any], Any]] = {
                "every second element": lambda t: ops.stack([t, t], -1).reshape(*t.shape[:-1], -1)[..., ::2] if t.ndim else t,
                "transposed": lambda t: t.swapaxes(-1, -2).contiguous().swapaxes(-1, -2) if t.ndim > 1 else t,
            }
            for name, layout in layouts.items():
                moved = [None if t is None or t.dtype == _bool() else layout(t) for t in sample.tensors]
                moved = [t if m is None else m for t, m in zip(sample.tensors, moved, strict=True)]
                assert_same(self.session.function(*moved, **sample.attributes), expected, name)

    def graph(self) -> None:
        """A network compiled as a graph gives what PyNative mode gives."""
        for sample in self.samples():
            expected = self.call(sample)
            with graph_mode(), scratch():
                assert_same(self.net(sample)(*sample.tensors), expected, "graph mode")

    def jit(self) -> None:
        """So does a function compiled by `ms.jit`."""
        import mindspore

        for sample in self.samples():
            net = self.net(sample)

            @mindspore.jit
            def compiled(*tensors, net=net):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
                return net(*tensors)

            with scratch():
                assert_same(compiled(*sample.tensors), self.call(sample), "ms.jit")

    def dynamic(self, rank: bool) -> None:
        """A network compiled once, for inputs of any sizes (`rank`: also of any rank), runs on examples of several."""
        with graph_mode(), scratch():
            for sample in self.samples():
                net = self.net(sample)
                net.set_inputs(*(_any(t, rank) for t in sample.tensors))
                for other in self._alike(sample, rank):
                    assert_same(net(*other.tensors), self._pynative(other), "compiled for any sizes")

    def _alike(self, sample: Sample, rank: bool) -> Iterator[Sample]:
        """Yield the examples that fit a network compiled for one of them."""
        for example in self.family.examples:
            other = self._sample(example)
            if other.attributes != sample.attributes or _kinds(other) != _kinds(sample):
                continue
            if rank or _ranks(other) == _ranks(sample):
                yield other

    def _pynative(self, sample: Sample) -> Any:
        import mindspore

        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        try:
            return self.call(sample)
        finally:
            mindspore.set_context(mode=mindspore.GRAPH_MODE)

    def mindir(self) -> None:
        """An exported network, loaded again, gives the same."""
        for sample in self.samples():
            expected = self.call(sample)
            with graph_mode(), scratch():
                assert_same(self._reloaded(sample, sample.tensors)(*_given(sample)), expected, "MindIR")

    def dynamic_mindir(self) -> None:
        """So does one exported for inputs of any sizes, on sizes it has not seen."""
        for sample in self.samples():
            if any(a is not None and a.ndim == 0 for a in sample.inputs.values()) or any(
                r.ndim == 0 for r in results(self.call(sample))
            ):
                raise Unsupported("of outputs of rank 0 MindSpore asks Python for the type, which a loaded MindIR has not")
        with graph_mode(), scratch():
            for sample in self.samples():
                net = self._reloaded(sample, [_any(t, False) for t in sample.tensors])
                for other in self._alike(sample, False):
                    assert_same(net(*_given(other)), self._pynative(other), "MindIR for any sizes")

    def _reloaded(self, sample: Sample, tensors: Sequence[Any]) -> Any:
        import mindspore

        net = net_of(self.session.function, sample.attributes, [a is not None for a in sample.inputs.values()])
        file = Path.cwd() / "net.mindir"
        mindspore.export(net, *(t for t in tensors if t is not None), file_name=str(file), file_format="MINDIR")
        return mindspore.nn.GraphCell(mindspore.load(str(file)))

    def refused(self) -> None:
        """A call that does not fit is refused while the graph is compiled, with the kernel's message."""
        for sample, expected in self.bad_samples():
            said = ""
            with graph_mode(), scratch():
                try:
                    self.net(sample)(*sample.tensors)
                except (RuntimeError, ValueError, TypeError) as error:
                    said = message(error)
            assert expected in said, f"the message is {said or 'missing'}, not {expected}"

    def bad_samples(self) -> list[tuple[Sample, str]]:
        """Return examples with an input that the op refuses when it has two axes more, and the op's message."""
        found = []
        for sample in self.samples() if self.family.examples else ():
            for name, array in sample.inputs.items():
                if array is None:
                    continue
                inputs = {**sample.inputs, name: np.ones((7, *array.shape, 7), array.dtype)}
                try:
                    infer(self.op, {n: None if a is None else a.shape for n, a in inputs.items()}, sample.attributes)
                except ShapeError as error:
                    found.append((Sample(inputs, sample.attributes), str(error)))
        return found

    def no_files(self) -> None:
        """Importing and running the package leaves nothing in the current folder."""
        sample = next(self.samples())
        with scratch() as folder:
            self.call(sample)
            assert not list(folder.iterdir()), f"left {[p.name for p in folder.iterdir()]}"

    def _floats(self, sample: Sample) -> tuple[int, ...]:
        """Return the places of the inputs that a gradient is asked for."""
        given = [(i, x) for i, x in enumerate(self.op.inputs) if sample.inputs[x.name] is not None]
        found = tuple(i for i, x in given if is_differentiable(x) and _array_of(sample, x).dtype.kind == "f")
        if not found or any(r.dtype.kind != "f" for r in results(self.call(sample))[:1]):
            raise Unsupported("the examples have nothing that a gradient is asked for")
        return found

    def gradient(self, order: int) -> None:
        """The gradient of a graph is that of PyNative mode, and so is, of `order` 2, the gradient of that."""
        for sample in self.samples():
            among = self._floats(sample)
            net = net_of(self.session.function, sample.attributes, squares=True)
            given = tuple(i for i, a in enumerate(sample.inputs.values()) if a is not None)
            for _ in range(order):
                net = gradient_of(net, given)
            expected = net(*sample.tensors)
            with graph_mode(), scratch():
                got = net(*sample.tensors)
            places = [given.index(i) for i in among]
            assert_same([got[i] for i in places], [expected[i] for i in places], "gradient in graph mode")


def _array_of(sample: Sample, x: Operand) -> Array:
    array = sample.inputs[x.name]
    if array is None:
        raise KeyError(x.name)
    return array


def _bool() -> Any:
    import mindspore

    return mindspore.bool_


def _array(x: Operand, value: object) -> Array:
    dtypes = candidates(x.type)
    dtype = DType.FLOAT32 if DType.FLOAT32 in dtypes else dtypes[-1]
    return np.asarray(value, dtype=numpy_dtype(dtype))


def _any(tensor: Any, rank: bool) -> Any:
    """Return a stand-in for tensors of any sizes."""
    import mindspore

    if tensor is None or (tensor.ndim == 0 and not rank):
        return tensor
    return mindspore.Tensor(shape=None if rank else [None] * tensor.ndim, dtype=tensor.dtype)


def _kinds(sample: Sample) -> list[Any]:
    return [None if a is None else a.dtype for a in sample.inputs.values()]


def _ranks(sample: Sample) -> list[int | None]:
    return [None if a is None else a.ndim for a in sample.inputs.values()]


def _given(sample: Sample) -> list[Any]:
    return [t for t in sample.tensors if t is not None]
