"""Sessions of frameworks with tensors: what turns arrays to tensors and back, and gradients through a framework's autograd."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import package as packages
from opc.backends.base import OpError, Session, Unsupported
from opc.backends.derived import computable, cotangent, differentiable
from opc.ir.dtypes import DType
from opc.ir.op import AttributeKind, Family, Op

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

Function = Callable[..., Sequence[Any]]
"""A function from tensors to tensors."""


class TensorSession(Session):
    """Runs ops as functions on a framework's tensors."""

    subpackage: str
    """The part of the generated package that is called."""

    refusals: tuple[type[Exception], ...] = (RuntimeError, ValueError, TypeError)
    """What the framework raises for a bad call."""

    sequence: type = list
    """What attributes of several values are given as."""

    def __init__(self, family: Family, package: Path) -> None:
        """Import the part of the package.

        Raises:
            ImportError: when it is not built.
        """
        super().__init__(family, package)
        self.module = packages.load(package, self.subpackage)

    def context(self) -> AbstractContextManager[object]:
        """Return what calls and gradients run within."""
        return nullcontext()

    def tensor(self, array: Array) -> Any:
        """Return a tensor with the array's values, and its strides where the framework has them.

        Raises:
            Unsupported: when the framework has no such tensor.
        """
        return array

    def array(self, tensor: Any) -> Array:
        """Return an array with the tensor's values."""
        found: Array = tensor
        return found

    def dtype(self, name: str) -> Any:
        """Return the framework's dtype of that name; the name itself where it has none."""
        return name

    def message(self, error: Exception) -> str:
        """Return what a refusal says."""
        return str(error)

    @abstractmethod
    def run(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Call an op: return its outputs in order, None for one that is not computed; a single output comes as it is."""

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        described = self.ops[op]
        tensors = self.tensors(described, inputs)
        with self.context():
            try:
                results = as_tuple(self.run(described, tensors, attributes, only))
                made = {o.name: self.array(t) for o, t in zip(described.outputs, results, strict=True) if t is not None}
            except self.refusals as error:
                raise OpError(self.message(error)) from error
        return made if only is None else {name: made[name] for name in only}

    def tensors(self, op: Op, inputs: Inputs) -> dict[str, Any]:
        """Return every input of an op as a tensor, None for an absent one."""
        return {x.name: None if (a := inputs.get(x.name)) is None else self.tensor(a) for x in op.inputs}

    def values(self, op: Op, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return attributes as the framework's functions take them."""
        kinds = {a.name: a.kind for a in op.attributes}
        return {name: self._value(kinds.get(name), value) for name, value in attributes.items()}

    def _value(self, kind: AttributeKind | None, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return self.sequence(self._value(kind, v) for v in value)
        return self.dtype(str(value)) if kind is AttributeKind.DTYPE and isinstance(value, str | DType) else value

    def complete(self, op: Op, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return every attribute's value in the op's order, defaults included."""
        return op.complete(attributes)

    def wanted(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> list[bool]:
        """Return for each output whether a call is to compute it: the named ones, by default all that can be."""
        shapes = {n: None if t is None else t.shape for n, t in tensors.items()}
        names = computable(op, shapes, self.complete(op, attributes)) if only is None else only
        return [o.name in names for o in op.outputs]


class AutogradSession(TensorSession):
    """Runs ops that a framework with an autograd differentiates: a function for the op itself, operators for the derived ones.

    A subclass says how the framework differentiates (`vjp`) and calls a derived op (`derived`).
    """

    def __init__(self, family: Family, package: Path) -> None:
        """Import the part of the package, and find the op's function, as users call it.

        Raises:
            ImportError: when it is not built.
        """
        super().__init__(family, package)
        self.function: Callable[..., Any] = getattr(self.module, family.name)

    @cached_property
    def operators(self) -> Any:
        """The generated module of the operators, one for each op of the family."""
        return packages.load(self.package, f"{self.subpackage}.operators")

    def leaf(self, tensor: Any) -> Any:
        """Return a tensor that requires a gradient."""
        return tensor

    @abstractmethod
    def vjp(self, function: Function, leaves: Sequence[Any], cotangents: Sequence[Any], *, again: bool) -> Sequence[Any]:
        """Return for each leaf the gradient of the sum of `function(*leaves)` times the cotangents.

        With `again` the gradients are recorded, to be differentiated themselves. What a gradient does not reach is zeros.
        """

    @abstractmethod
    def derived(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], wanted: Sequence[bool]) -> Any:
        """Call a derived op, of which users have no function, for the outputs that are wanted; see `run`."""

    def run(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Call the op's function, or the operator of a derived op."""
        if op is self.family.forward:
            return self.function(**tensors, **self.values(op, attributes))
        every = self.values(op, self.complete(op, attributes))
        return self.derived(op, tensors, every, self.wanted(op, tensors, attributes, only))

    def gradient(self, inputs: Inputs, attributes: Attributes, cotangents: Mapping[str, Array]) -> dict[str, Array]:
        """Return the gradients of the floating inputs through the framework's autograd, by input name."""
        with self.context():
            leaves, function = self._differentiated(inputs, attributes, list(cotangents))
            found = self.vjp(function, list(leaves.values()), [self.tensor(c) for c in cotangents.values()], again=False)
            return {name: self.array(g) for name, g in zip(leaves, found, strict=True)}

    def second_gradient(
        self, inputs: Inputs, attributes: Attributes, cotangents: Mapping[str, Array], second: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the gradients of sum(gradient[x] * second[x]) for the inputs, and for the cotangents as `d_<output>`."""
        with self.context():
            leaves, function = self._differentiated(inputs, attributes, list(cotangents))
            seeds = {cotangent(n): self.leaf(self.tensor(c)) for n, c in cotangents.items()}

            def first(*arguments: Any) -> tuple[Any, ...]:
                found = self.vjp(function, arguments[: len(leaves)], arguments[len(leaves) :], again=True)
                return tuple(g for name, g in zip(leaves, found, strict=True) if name in second)

            targets = {**leaves, **seeds}
            directions = [self.tensor(second[name]) for name in leaves if name in second]
            found = self.vjp(first, list(targets.values()), directions, again=False)
            return {name: self.array(g) for name, g in zip(targets, found, strict=True)}

    def _differentiated(self, inputs: Inputs, attributes: Attributes, outputs: Sequence[str]) -> tuple[dict[str, Any], Function]:
        """Return the inputs that need a gradient, and the named outputs of the op as a function of them."""
        op = self.family.forward
        if self.family.backward is None:
            raise Unsupported("the spec says gradient: none")
        tensors, values = self.tensors(op, inputs), self.values(op, attributes)
        moving = [x.name for x in op.inputs if differentiable(x) and (a := inputs.get(x.name)) is not None and is_floating(a)]

        def function(*leaves: Any) -> tuple[Any, ...]:
            results = as_tuple(self.function(**{**tensors, **dict(zip(moving, leaves, strict=True))}, **values))
            named = dict(zip((o.name for o in op.outputs), results, strict=True))
            return tuple(named[name] for name in outputs)

        return {name: self.leaf(tensors[name]) for name in moving}, function


def as_tuple(result: Any) -> tuple[Any, ...]:
    """Return the outputs of a call as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def is_floating(array: Array) -> bool:
    """Whether an array holds floating-point numbers, those of `ml_dtypes` included."""
    return array.dtype.kind not in "iub" and "int" not in array.dtype.name
