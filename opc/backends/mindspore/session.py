"""A built package in live MindSpore, as the proof calls it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends import package as packages
from opc.backends.base import Check, OpError, Unsupported
from opc.backends.mindspore.operators import is_differentiable
from opc.backends.mindspore.values import attribute_values, message, scratch, to_mindspore, to_numpy
from opc.ir.op import Family, Op, Role

if TYPE_CHECKING:
    from opc.backends.base import Array

REFUSALS = (RuntimeError, ValueError, TypeError)
"""What MindSpore raises for a bad call."""


class MindSporeSession:
    """Calls the primitives of a built package, in PyNative mode."""

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package.

        Raises:
            ImportError: when it is not built.
        """
        # Refused calls are part of the proof: their messages are caught, and need not be logged as well.
        os.environ.setdefault("GLOG_v", "4")
        import mindspore

        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        self.family = family
        self.package = package
        self.module = packages.load(package, "mindspore")
        self.operators = packages.load(package, "mindspore.operators")
        self.support = packages.load(package, "mindspore.support")
        self.function = getattr(self.module, family.name)
        self._ops = {op.name: op for op in family.ops}

    @property
    def flushed_parts(self) -> int:
        """Of how many parts MindSpore adds up a second gradient: what comes back directly, and through each saved output.

        Threads that run its Add take denormal numbers for zero, so that twice 1e-39 may be 0; a test of this backend holds that.
        """
        backward = self.family.backward
        saved = () if backward is None or backward.derivation is None else backward.derivation.inputs
        return 1 + sum(role is Role.OUTPUT for role, _ in saved)

    def call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        described = self._ops[op]
        with scratch():
            tensors = {x.name: None if (a := inputs.get(x.name)) is None else to_mindspore(a) for x in described.inputs}
            values = attribute_values(described, attributes)
            try:
                if described is self.family.forward:
                    wanted = [o.name for o in described.outputs]
                    result = self.function(**tensors, **values)
                else:
                    wanted = self._wanted(described, tensors, values) if only is None else list(only)
                    result = self._derived(described, tensors, values, wanted)
                results = result if isinstance(result, tuple) else (result,)
                names = [o.name for o in described.outputs if o.name in wanted]
                made = {name: to_numpy(t) for name, t in zip(names, results, strict=True)}
            except REFUSALS as error:
                raise OpError(message(error)) from error
        return made if only is None else {name: made[name] for name in only}

    def _derived(self, op: Op, tensors: Mapping[str, Any], values: Mapping[str, Any], wanted: Sequence[str]) -> Any:
        """Call an op of which there is no function with defaults."""
        ranks = [self.support.rank_of(tensors[x.name]) for x in op.inputs]
        attributes = [values.get(a.name) for a in op.attributes]
        chosen = [o.name in wanted for o in op.outputs]
        return getattr(self.operators, op.name).primitive(ranks, chosen, attributes)(*tensors.values())

    @staticmethod
    def _wanted(op: Op, tensors: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
        """Return the outputs whose shape the inputs tell, but gradients of absent operands; all of them for a bad call."""
        try:
            shapes = infer(op, {n: None if t is None else tuple(t.shape) for n, t in tensors.items()}, values).outputs
        except (ShapeError, TypeError, ValueError, KeyError):
            return [o.name for o in op.outputs]
        if op.derivation is None:
            return list(shapes)
        roles = zip(op.derivation.inputs, op.inputs, strict=True)
        absent = {of for (role, of), x in roles if role is Role.INPUT and tensors[x.name] is None}
        pairs = zip(op.outputs, op.derivation.outputs, strict=True)
        return [o.name for o, of in pairs if o.name in shapes and of not in absent]

    def gradient(
        self, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], cotangents: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the gradients of the floating inputs through MindSpore's autograd, by input name."""
        with scratch():
            tensors, leaves = self._leaves(inputs)
            first = self._first(tensors, leaves, attributes, list(cotangents))
            found = first(*leaves.values(), *(to_mindspore(c) for c in cotangents.values()))
            return {name: to_numpy(g) for name, g in zip(leaves, found, strict=True)}

    def second_gradient(
        self,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        cotangents: Mapping[str, Array],
        second: Mapping[str, Array],
    ) -> dict[str, Array]:
        """Return the gradients of sum(gradient[x] * second[x]) for the inputs, and for the cotangents as `d_<output>`."""
        from mindspore import ops

        with scratch():
            tensors, leaves = self._leaves(inputs)
            seeds = {n: to_mindspore(c) for n, c in cotangents.items()}
            first = self._first(tensors, leaves, attributes, list(seeds))
            places = [i for i, name in enumerate(leaves) if name in second]

            def chosen(*arguments: Any) -> Any:
                found = first(*arguments)
                return tuple(found[i] for i in places)

            directions = tuple(to_mindspore(second[name]) for name in leaves if name in second)
            again = ops.GradOperation(get_all=True, sens_param=True)(chosen)
            found = again(*leaves.values(), *seeds.values(), directions)
            names = [*leaves, *(f"d_{n}" for n in seeds)]
            return {name: to_numpy(g) for name, g in zip(names, found, strict=True)}

    def _leaves(self, inputs: Mapping[str, Array | None]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the inputs as tensors, and those among them that a gradient is asked for."""
        tensors = {x.name: None if (a := inputs.get(x.name)) is None else to_mindspore(a) for x in self.family.forward.inputs}
        leaves = {
            x.name: tensors[x.name]
            for x in self.family.forward.inputs
            if (a := inputs.get(x.name)) is not None and is_differentiable(x) and a.dtype.kind not in "iub"
        }
        return tensors, leaves

    def _first(
        self, tensors: Mapping[str, Any], leaves: Mapping[str, Any], attributes: Mapping[str, Any], seeds: Sequence[str]
    ) -> Any:
        """Return the function from the leaves and the cotangents to the gradients of the leaves."""
        if self.family.backward is None:
            raise Unsupported("the spec says gradient: none")
        from mindspore import ops

        values = attribute_values(self.family.forward, attributes)
        outputs = [o.name for o in self.family.forward.outputs]

        def forward(*given: Any) -> Any:
            return self.function(**{**tensors, **dict(zip(leaves, given, strict=True))}, **values)

        gradient = ops.GradOperation(get_all=True, sens_param=True)(forward)
        whole = forward(*leaves.values())

        def first(*given: Any) -> Any:
            floats, arriving = given[: len(leaves)], dict(zip(seeds, given[len(leaves) :], strict=True))
            if not isinstance(whole, tuple):
                return gradient(*floats, arriving[outputs[0]])
            cotangents = tuple(arriving.get(name, ops.zeros_like(y)) for name, y in zip(outputs, whole, strict=True))
            return gradient(*floats, cotangents)

        return first

    def checks(self) -> Sequence[Check]:
        """Return what MindSpore promises of an op beyond values and gradients."""
        from opc.backends.mindspore.checks import checks

        return checks(self)
