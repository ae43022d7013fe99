"""What MindSpore promises of an op beyond values and gradients, checked on the spec's examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.base import Unsupported
from opc.backends.checks import Checks, Sample, assert_identical, check, has_gradient, has_second_gradient, misshapen
from opc.backends.mindspore.nets import gradient_of, graph_mode, net_of
from opc.backends.mindspore.session import MindSporeSession
from opc.backends.mindspore.values import message, scratch, to_numpy
from opc.backends.sessions import as_tuple
from opc.ir.dtypes import DType

if TYPE_CHECKING:
    from opc.backends.base import Array


def results(made: Any) -> list[Array]:
    """Return what an op gave as arrays."""
    return [to_numpy(t) for t in as_tuple(made)]


def assert_same(got: Any, expected: Any, what: str) -> None:
    """Assert that two ways to run the same kernels gave the same bits."""
    assert_identical(results(got), results(expected), what)


class MindSporeChecks(Checks[MindSporeSession]):
    """The checks of one session's family."""

    @cached_property
    def every(self) -> list[Sample]:
        """The spec's examples as calls, in float32 where the op has it."""
        return self.examples((DType.FLOAT32,))

    @property
    def samples(self) -> list[Sample]:
        """The first example for each set of operands that are given."""
        first: dict[tuple[str, ...], Sample] = {}
        for sample in self.every:
            first.setdefault(tuple(sample.given), sample)
        return list(first.values())

    def tensors(self, sample: Sample) -> list[Any]:
        """Return the inputs as MindSpore's tensors, None for an absent one."""
        return list(self.session.tensors(self.op, sample.arrays).values())

    def attributes(self, sample: Sample) -> dict[str, Any]:
        """Return every attribute as MindSpore's functions take it."""
        return self.session.values(self.op, self.session.complete(self.op, sample.attributes))

    def call(self, sample: Sample) -> Any:
        """Run a sample in PyNative mode."""
        return self.session.function(*self.tensors(sample), **self.attributes(sample))

    def present(self, sample: Sample) -> list[Any]:
        """Return the inputs that are given as MindSpore's tensors."""
        return [t for t in self.tensors(sample) if t is not None]

    def net(self, sample: Sample) -> Any:
        """Return a network of the op alone."""
        return net_of(self.session.function, self.attributes(sample))

    @check("non-contiguous inputs")
    def strides(self) -> None:
        """Transposed inputs and every second element give what contiguous ones give."""
        from mindspore import ops

        for sample in self.samples:
            expected = self.call(sample)
            layouts: dict[str, Callable[[Any], Any]] = {
                "every second element": lambda t: ops.stack([t, t], -1).reshape(*t.shape[:-1], -1)[..., ::2] if t.ndim else t,
                "transposed": lambda t: t.swapaxes(-1, -2).contiguous().swapaxes(-1, -2) if t.ndim > 1 else t,
            }
            for name, layout in layouts.items():
                moved = [None if t is None or t.dtype == _bool() else layout(t) for t in self.tensors(sample)]
                moved = [t if m is None else m for t, m in zip(self.tensors(sample), moved, strict=True)]
                assert_same(self.session.function(*moved, **self.attributes(sample)), expected, name)

    @check("graph mode")
    def graph(self) -> None:
        """A network compiled as a graph gives what PyNative mode gives."""
        for sample in self.samples:
            expected = self.call(sample)
            with graph_mode(), scratch():
                assert_same(self.net(sample)(*self.tensors(sample)), expected, "graph mode")

    @check("ms.jit")
    def jit(self) -> None:
        """So does a function compiled by `ms.jit`."""
        import mindspore

        for sample in self.samples:
            net = self.net(sample)

            @mindspore.jit
            def compiled(*tensors, net=net):  # type: ignore[no-untyped-def]  # MindSpore is untyped, and reads the source
                return net(*tensors)

            with scratch():
                assert_same(compiled(*self.tensors(sample)), self.call(sample), "ms.jit")

    @check("dynamic shape")
    def dynamic_shape(self) -> None:
        """A network compiled once, for inputs of any sizes, runs on examples of several."""
        self._dynamic(False)

    @check("dynamic rank")
    def dynamic_rank(self) -> None:
        """So does one compiled for inputs of any rank."""
        self._dynamic(True)

    def _dynamic(self, rank: bool) -> None:
        with graph_mode(), scratch():
            for sample in self.samples:
                net = self.net(sample)
                net.set_inputs(*(_any(t, rank) for t in self.tensors(sample)))
                for other in self._alike(sample, rank):
                    assert_same(net(*self.tensors(other)), self._pynative(other), "compiled for any sizes")

    def _alike(self, sample: Sample, rank: bool) -> Iterator[Sample]:
        """Yield the examples that fit a network compiled for one of them."""
        for other in self.every:
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

    @check("MindIR")
    def mindir(self) -> None:
        """An exported network, loaded again, gives the same."""
        for sample in self.samples:
            expected = self.call(sample)
            with graph_mode(), scratch():
                assert_same(self._reloaded(sample, self.tensors(sample))(*self.present(sample)), expected, "MindIR")

    @check("dynamic MindIR")
    def dynamic_mindir(self) -> None:
        """So does one exported for inputs of any sizes, on sizes it has not seen."""
        for sample in self.samples:
            if any(a is not None and a.ndim == 0 for a in sample.arrays.values()) or any(
                r.ndim == 0 for r in results(self.call(sample))
            ):
                raise Unsupported("of outputs of rank 0 MindSpore asks Python for the type, which a loaded MindIR has not")
        with graph_mode(), scratch():
            for sample in self.samples:
                net = self._reloaded(sample, [_any(t, False) for t in self.tensors(sample)])
                for other in self._alike(sample, False):
                    assert_same(net(*self.present(other)), self._pynative(other), "MindIR for any sizes")

    def _reloaded(self, sample: Sample, tensors: Sequence[Any]) -> Any:
        import mindspore

        net = net_of(self.session.function, self.attributes(sample), [a is not None for a in sample.arrays.values()])
        file = Path.cwd() / "net.mindir"
        mindspore.export(net, *(t for t in tensors if t is not None), file_name=str(file), file_format="MINDIR")
        return mindspore.nn.GraphCell(mindspore.load(str(file)))

    @check("refused in graph mode", lambda checks: checks.family.examples and checks.bad_samples())
    def refused(self) -> None:
        """A call that does not fit is refused while the graph is compiled, with the kernel's message."""
        for sample, expected in self.bad_samples():
            said = ""
            with graph_mode(), scratch():
                try:
                    self.net(sample)(*self.tensors(sample))
                except self.session.refusals as error:
                    said = message(error)
            assert expected in said, f"the message is {said or 'missing'}, not {expected}"

    def bad_samples(self) -> list[tuple[Sample, str]]:
        """Return examples with an input that the op refuses when it has two axes more, and the op's message."""
        return [(bad, said) for sample in self.samples for _, bad, said in misshapen(self.op, sample)]

    @check("no files left")
    def no_files(self) -> None:
        """Importing and running the package leaves nothing in the current folder."""
        sample = self.samples[0]
        with scratch() as folder:
            self.call(sample)
            assert not list(folder.iterdir()), f"left {[p.name for p in folder.iterdir()]}"

    def _floats(self, sample: Sample) -> tuple[int, ...]:
        """Return the positions of the inputs that need a gradient."""
        kinds = {n: a.dtype.kind for n, a in sample.given.items()}
        found = tuple(i for i, x in enumerate(self.op.inputs) if x.name in self.moving and kinds.get(x.name) == "f")
        if not found or any(r.dtype.kind != "f" for r in results(self.call(sample))[:1]):
            raise Unsupported("the examples have nothing that a gradient is asked for")
        return found

    @check("gradient in graph mode", has_gradient)
    def first_gradient(self) -> None:
        """The gradient of a graph is that of PyNative mode."""
        self._gradient(1)

    @check("second gradient in graph mode", has_second_gradient)
    def second_gradient(self) -> None:
        """So is the gradient of that."""
        self._gradient(2)

    def _gradient(self, order: int) -> None:
        for sample in self.samples:
            among = self._floats(sample)
            net = net_of(self.session.function, self.attributes(sample), squares=True)
            given = tuple(i for i, a in enumerate(sample.arrays.values()) if a is not None)
            for _ in range(order):
                net = gradient_of(net, given)
            expected = net(*self.tensors(sample))
            with graph_mode(), scratch():
                got = net(*self.tensors(sample))
            places = [given.index(i) for i in among]
            assert_same([got[i] for i in places], [expected[i] for i in places], "gradient in graph mode")


def _bool() -> Any:
    import mindspore

    return mindspore.bool_


def _any(tensor: Any, rank: bool) -> Any:
    """Return a stand-in for tensors of any sizes."""
    import mindspore

    if tensor is None or (tensor.ndim == 0 and not rank):
        return tensor
    return mindspore.Tensor(shape=None if rank else [None] * tensor.ndim, dtype=tensor.dtype)


def _kinds(sample: Sample) -> list[Any]:
    return [None if a is None else a.dtype for a in sample.arrays.values()]


def _ranks(sample: Sample) -> list[int | None]:
    return [None if a is None else a.ndim for a in sample.arrays.values()]
