"""What torch promises of an operator beyond values and gradients."""

from __future__ import annotations

import io
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends.base import Check
from opc.backends.batching import batching
from opc.backends.checks import Sample, assert_refused_alike, check, has_gradient, leaves_sizes
from opc.backends.sessions import as_tuple
from opc.backends.torch import memory
from opc.backends.torch.gradient_checks import GradientChecks
from opc.backends.torch.limits import where_torch_computes
from opc.backends.torch.samples import assert_equal, assert_refused, check_operator, loop, operator_calls, single

if TYPE_CHECKING:
    import torch
    from torch import Tensor

HUGE = 1 << 18
"""Elements of the outputs that the leak check makes: large enough for pages of their own."""

LARGEST = 64 * HUGE
"""Elements that no operand of such a call may have: an axis in front may also be one that others grow with the square of."""

CALLS = 48
"""How many of them it makes: forgotten, they would be far more memory than anything else the check uses."""

ROUNDS = 3
"""How often memory is measured on the way."""

LEFT = 64
"""Bytes that a call may leave, less than a forgotten tensor has: lists of the interpreter's and torch's grow now and then."""


class TorchChecks(GradientChecks):
    """The checks of one session's family."""

    def all(self) -> tuple[Check, ...]:
        """Return the checks that the op has."""
        return tuple(Check(c.name, where_torch_computes()(c.run)) for c in super().all())

    @check("non-contiguous inputs")
    def strides(self) -> None:
        """Strided, transposed and expanded inputs give what contiguous ones give."""
        import torch

        function, tensors = self.on(self.sample(times=2))
        expected = function(*tensors)
        layouts: dict[str, Callable[[Tensor], Tensor]] = {
            "every second element": lambda t: torch.stack([t, t], -1).flatten(-2)[..., ::2] if t.ndim else t,
            "transposed": lambda t: t.mT.contiguous().mT if t.ndim > 1 else t,
            "offset": lambda t: torch.cat([t.new_zeros(1), t.flatten()])[1:].view(t.shape),
        }
        for name, layout in layouts.items():
            moved = [layout(t) for t in tensors]
            assert_equal(function(*moved), expected, name)
        one = [t[:1].expand(t.shape) if t.ndim else t for t in tensors]
        try:
            expected = function(*(t.contiguous() for t in one))
        except RuntimeError:
            # Equal slices may be what an op has no value for: a singular matrix.
            assert_refused(lambda: function(*one), "the expanded input")
        else:
            assert_equal(function(*one), expected, "expanded")

    @check("out")
    def out(self) -> None:
        """`out` is written to, and the results are those of a fresh call; wrong outputs and gradients are refused."""
        import torch

        given = self.sample(times=2)
        function, tensors = self.on(given)
        expected = as_tuple(function(*tensors))
        call, operands = self.function(given.attributes), self.tensors(given)
        made = tuple(torch.full_like(o, 7) for o in expected)
        call(**operands, out=made if len(made) > 1 else made[0])
        assert_equal(made, expected, "out")
        wrong = tuple(o.new_empty((*o.shape, 2)) for o in expected)
        assert_refused(lambda: call(**operands, out=wrong if len(wrong) > 1 else wrong[0]), "an out of a wrong shape")

    @check("sizes that data tells", leaves_sizes)
    def told(self) -> None:
        """torch.compile, in one graph, and torch.export leave a size to data: it may be another in the next call."""
        import torch

        calls = [self.without_sizes(self.sample(seed)) for seed in (0, 1, 2)]
        function, tensors = self.on(calls[0])

        class Called(torch.nn.Module):  # type: ignore[misc]  # torch is untyped here
            def forward(self, *present: Tensor) -> Any:
                return function(*present)

        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
            exported = torch.export.export(Called(), tuple(tensors)).module()
            for given in calls:
                tensors = self.on(given)[1]
                expected = function(*tensors)
                assert_equal(compiled(*tensors), expected, "torch.compile")
                assert_equal(exported(*tensors), expected, "torch.export")

    @check("no leak")
    def leak(self) -> None:
        """Large fresh outputs and refused calls leave no memory behind."""
        import torch

        given = self.sample(times=2)
        call, large = self.function(given.attributes), self._large(given)
        bad = {n: t if t is None else t.to(torch.complex64) for n, t in self.tensors(given).items()}

        def calls(count: int) -> None:
            for _ in range(count):
                call(**large)
            for _ in range(count):
                assert_refused(lambda: call(**bad), "complex numbers")

        # The first calls bring what is allocated once, and have all temporaries that a call has at a time.
        calls(4)
        resident, held = memory.most(), [memory.allocated()]
        for _ in range(ROUNDS):
            calls(CALLS // ROUNDS)
            held.append(memory.allocated())
        grown = memory.most() - resident
        # A leak is in every round; what the interpreter or torch keeps, or gives back of what was before, in one of them.
        left = sorted(after - before for before, after in itertools.pairwise(held))[ROUNDS // 2]
        assert left < LEFT * CALLS // ROUNDS, f"{CALLS // ROUNDS} calls and as many refused ones left {left} bytes behind"
        size = sum(o.numel() * o.element_size() for o in as_tuple(call(**large)))
        assert grown < 8 * size + (16 << 20), (
            f"{CALLS} calls with {size >> 20} MiB of outputs grew the process by {grown >> 20} MiB"
        )

    def _large(self, given: Sample) -> dict[str, Tensor | None]:
        """Return the sample with an axis more in front, a long one, where the op takes that in as much more memory."""
        tensors, how = self.tensors(given), batching(self.op)
        length = HUGE // max(1, *(a.size for a in given.given.values()))
        joins = [grouped or not how.joins_group for grouped in how.grouped]
        longer = {
            n: None if a is None else (*[length] * j, *a.shape) for (n, a), j in zip(given.arrays.items(), joins, strict=True)
        }
        try:
            env = infer(self.op, longer, given.attributes)
        except ShapeError:
            return tensors
        made = (math.prod(env.shape_of(o)) for o in (*self.op.temporaries, *self.op.outputs))
        if max(made) > LARGEST:
            return tensors
        return {n: None if t is None else t.expand(longer[n]).contiguous() for n, t in tensors.items()}

    @check("opcheck")
    def opcheck(self) -> None:
        """torch's own test of custom operators passes, on every operator of the family."""
        import torch

        given = self.sample(times=2)
        for op, arguments in operator_calls(self.session, given):
            operator = getattr(self.session.operators, op)
            check_operator(operator.op, arguments)
            check_operator(operator.raw, tuple(a.detach() if isinstance(a, torch.Tensor) else a for a in arguments))

    @check("vmap")
    def vmap(self) -> None:
        """vmap gives what a loop gives, for every choice of batched tensors, also nested."""
        import torch

        items = [self.sample(seed, 2) for seed in range(3)]
        function, tensors = self.on(items[0])
        stacked = [torch.stack(column) for column in zip(*(self.on(s)[1] for s in items), strict=True)]
        for batched in itertools.product((True, False), repeat=len(tensors)):
            if not any(batched):
                continue
            dims = tuple(0 if b else None for b in batched)
            arguments = [s if b else t for s, t, b in zip(stacked, tensors, batched, strict=True)]
            expected = loop(function, arguments, dims)
            assert_equal(torch.vmap(function, dims)(*arguments), expected, f"vmap over {dims}")
        last = [s.movedim(0, -1) for s in stacked]
        every = (0,) * len(stacked)
        assert_equal(torch.vmap(function, -1)(*last), loop(function, stacked, every), "vmap over the last axis")
        twice = [torch.stack([s, s]) for s in stacked]
        expected = loop(lambda *a: loop(function, a, every), twice, every)
        assert_equal(torch.vmap(torch.vmap(function))(*twice), expected, "nested vmap")
        for given in self.with_axes(items[0]):
            one, given_tensors = self.on(given)
            batch = [torch.stack([t, t]) for t in given_tensors]
            assert_refused_alike(self.op.name, partial(one, *given_tensors), partial(torch.vmap(one), *batch), given.attributes)

    @check("torch.compile")
    def compile(self) -> None:
        """torch.compile with fullgraph takes the op."""
        import torch._functorch.config
        import torch._inductor.config

        # What is kept of calls of an operator is known by its name, and outlives a change of what it takes.
        with (
            torch._inductor.config.patch(fx_graph_cache=False),
            torch._functorch.config.patch(enable_autograd_cache=False),
        ):
            self._compile("inductor", None)

    @check("torch.compile dynamic")
    def compile_dynamic(self) -> None:
        """With dynamic sizes it does so for other sizes without compiling again."""
        self._compile("aot_eager", True)

    def _compile(self, backend: str, dynamic: bool | None) -> None:
        import torch
        import torch._dynamo.testing

        torch._dynamo.reset()
        given = self.sample(times=2)
        function, tensors = self.on(given)
        counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
        compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend=counter)
        assert_equal(compiled(*tensors), function(*tensors), "compiled")
        count = counter.frame_count
        if dynamic:
            _, longer = self.on(self.sample(times=3))
            if [t.shape for t in longer] != [t.shape for t in tensors]:
                assert_equal(compiled(*longer), function(*longer), "compiled, other sizes")
                assert counter.frame_count == count, "other sizes made torch compile again"

    @check("torch.compile gradient", has_gradient)
    def compile_gradient(self) -> None:
        """A compiled function has the gradients of the plain one, and so has one that `torch.jit.trace` has traced."""
        import torch

        torch._dynamo.reset()
        given = self.differentiated_sample(times=2)
        total, tensors = self.scalar(given)
        leaves = self.leaves(given)

        def gradients(function: Callable[..., Tensor]) -> tuple[Tensor, ...]:
            arguments = [t.detach().clone().requires_grad_(i in leaves) for i, t in enumerate(tensors)]
            found: tuple[Tensor, ...] = torch.autograd.grad(function(*arguments), [arguments[i] for i in leaves])
            return found

        compiled = torch.compile(total, fullgraph=True, backend="aot_eager")
        assert_equal(gradients(compiled), gradients(total), "compiled gradient")
        self._traced_gradient()

    def _traced_gradient(self) -> None:
        """A traced function has the gradients of the plain one, whether or not they were recorded when it was traced."""
        import torch

        total, tensors = self.scalar(self.differentiated_sample(times=2))
        leaves = self.leaves(self.differentiated_sample(times=2))

        def arguments(recorded: bool = True) -> tuple[Tensor, ...]:
            return tuple(t.detach().clone().requires_grad_(recorded and i in leaves) for i, t in enumerate(tensors))

        def gradients(function: Callable[..., Tensor]) -> tuple[Tensor, ...]:
            given = arguments()
            found: tuple[Tensor, ...] = torch.autograd.grad(function(*given), [given[i] for i in leaves])
            return found

        for recorded in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                traced = torch.jit.trace(total, arguments(recorded))
            assert_equal(gradients(traced), gradients(total), "traced gradient")

    def _module(self, given: Sample) -> tuple[torch.nn.Module, tuple[Tensor, ...]]:
        import torch

        function, tensors = self.on(given)

        class Model(torch.nn.Module):  # type: ignore[misc]  # torch is untyped here
            def forward(self, *arguments: Tensor) -> Any:
                return function(*arguments)

        return Model(), tuple(tensors)

    @check("torch.export dynamic")
    def export(self) -> None:
        """torch.export takes the op with every axis dynamic that may be, and the program runs on other sizes."""
        import torch

        model, tensors = self._module(self.sample(times=2))
        program = torch.export.export(model, tensors, dynamic_shapes=_every_axis(tensors))
        assert_equal(program.module()(*tensors), model(*tensors), "exported")
        _, longer = self._module(self.sample(times=3))
        if [t.shape for t in longer] != [t.shape for t in tensors]:
            assert_equal(program.module()(*longer), model(*longer), "exported, other sizes")

    @check("onnx export")
    def onnx(self) -> None:
        """The exporter on torch.export makes one node of our domain, with dynamic sizes."""
        import onnx
        import torch

        model, tensors = self._module(single(self.sample(times=2)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(model, tensors, dynamo=True, dynamic_shapes=_every_axis(tensors), verbose=False)
        _, longer = self._module(single(self.sample(times=3)))
        self._check_model(onnx.load_from_string(program.model_proto.SerializeToString()), model, [tensors, longer])

    @check("onnx export, torchscript")
    def onnx_torchscript(self) -> None:
        """The older exporter makes the same node."""
        import onnx
        import torch

        model, tensors = self._module(single(self.sample(times=2)))
        self.session.module.register_onnx_symbolic(17)
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model, tensors, file, dynamo=False, opset_version=17, custom_opsets={self.op.domain: self.op.version}
            )
        self._check_model(onnx.load_from_string(file.getvalue()), model, [tensors])

    def _check_model(self, proto: Any, model: torch.nn.Module, calls: Sequence[Sequence[Tensor]]) -> None:
        """Look for the node, and run the model on calls where the ONNX Runtime library of the package is built."""
        import torch

        nodes = [n for n in proto.graph.node if n.domain == self.op.domain]
        assert [n.op_type for n in nodes] == [self.op.class_name], (
            f"the model's nodes are {[n.op_type for n in proto.graph.node]}"
        )
        library = self.session.package / "build" / f"lib{self.family.name}_ort.so"
        try:
            import onnxruntime
        except ImportError:
            return
        if not library.exists():
            return
        options = onnxruntime.SessionOptions()
        # One thread: others would wait for it by spinning.
        options.intra_op_num_threads = 1
        options.register_custom_ops_library(str(library))
        runtime = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [i.name for i in runtime.get_inputs()]
        for tensors in calls:
            found = runtime.run(None, dict(zip(names, (t.numpy() for t in tensors), strict=True)))
            # ONNX Runtime's uint64 is C's `long long`, which torch does not know by that name.
            tensors_found = [torch.from_numpy(f.view(f.dtype.name)) for f in found]
            assert_equal(tensors_found, list(as_tuple(model(*tensors))), "ONNX Runtime")


def _every_axis(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """Return the dynamic shapes of a model's arguments: every axis longer than 1 may vary, as far as the op lets it."""
    import torch

    shapes = tuple({i: torch.export.Dim.AUTO for i, s in enumerate(t.shape) if s > 1} for t in tensors)
    return (shapes,)
