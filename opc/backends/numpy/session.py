"""The NumPy functions of a family as the proof calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import example_text
from opc.backends import package as packages
from opc.backends.base import Check, OpError, Unsupported, WithoutAutograd
from opc.backends.dtypes import foreign
from opc.backends.numpy.face import has_choice
from opc.ir.dtypes import DType, numpy_dtype
from opc.ir.op import Example, Family

if TYPE_CHECKING:
    from opc.backends.base import Array


class NumpySession(WithoutAutograd):
    """Calls the functions of a built package."""

    no_autograd = "NumPy has no autograd; the gradients are functions of their own"

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package's NumPy functions.

        Raises:
            ImportError: when the package is not built.
        """
        self._family = family
        self._ops = {op.name: op for op in family.ops}
        self._module = packages.load(package, "numpy")

    def call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        described = self._ops[op]
        values = {o.name: inputs.get(o.name) for o in described.inputs}
        given = {name: value.value if isinstance(value, DType) else value for name, value in attributes.items()}
        if only is not None and has_choice(described):
            given["only"] = tuple(only)
        try:
            result = getattr(self._module, op)(**values, **given)
        except (TypeError, ValueError, IndexError) as error:
            raise OpError(str(error)) from error
        results = result if isinstance(result, tuple) else (result,)
        made = {o.name: value for o, value in zip(described.outputs, results) if value is not None}
        return made if only is None else {name: made[name] for name in only}

    def checks(self) -> Sequence[Check]:
        """Return what NumPy users expect beyond values, on the spec's first example."""
        return (
            Check("fast way", self._check_fast_way),
            Check("out", self._check_out),
            Check("read-only out", self._check_read_only),
            Check("dlpack", self._check_dlpack),
        )

    def _check_fast_way(self) -> None:
        """A repeated call, which goes the fast way, answers the same bytes as the first, and keeps its plan."""
        inputs, attributes = self._example()
        first = self._run(inputs, attributes)
        plans = len(self._description.plans)
        assert plans > 0, "the first call left no plan"
        for a, b in zip(first, self._run(inputs, attributes), strict=True):
            assert a.tobytes() == b.tobytes(), "the second call answers differently"
        assert len(self._description.plans) == plans, "the second call did not use the plan of the first"

    def _check_out(self) -> None:
        """`out` is written to and is what is returned, on the first call and on later ones."""
        inputs, attributes = self._example()
        expected = self._run(inputs, attributes)
        for _ in range(2):
            out = tuple(array.copy() for array in expected)
            for array in out:
                array.view("u1" if array.ndim else array.dtype).fill(0)
            got = self._run(inputs, attributes, out=out[0] if len(out) == 1 else out)
            for g, o, e in zip(got, out, expected, strict=True):
                assert g is o, "the array returned is not the array given as out"
                assert o.tobytes() == e.tobytes(), "out holds other values than a fresh output"

    def _check_read_only(self) -> None:
        """A read-only `out` is refused and stays as it was."""
        inputs, attributes = self._example()
        out = tuple(array.copy() for array in self._run(inputs, attributes))
        before = [array.tobytes() for array in out]
        for array in out:
            array.flags.writeable = False
        try:
            self._run(inputs, attributes, out=out[0] if len(out) == 1 else out)
        except ValueError as error:
            if "writable" not in str(error):
                raise
        else:
            raise AssertionError("a read-only out was accepted")
        assert [array.tobytes() for array in out] == before, "a read-only out was written to"

    def _check_dlpack(self) -> None:
        """An object that only offers DLPack is taken like the array behind it."""
        inputs, attributes = self._example()
        for own in filter(None, (foreign(a) for a in inputs.values() if a is not None)):
            raise Unsupported(f"NumPy knows no {own} and takes none through DLPack")
        wrapped = {name: value if value is None else _OnlyDlpack(value) for name, value in inputs.items()}
        for a, b in zip(self._run(wrapped, attributes), self._run(inputs, attributes), strict=True):
            assert a.tobytes() == b.tobytes(), "a DLPack input answers differently"

    @property
    def _description(self) -> Any:
        return getattr(self._module, f"_{self._family.name}")

    def _run(self, inputs: Mapping[str, Any], attributes: Mapping[str, Any], out: Any = None) -> tuple[Array, ...]:
        result = getattr(self._module, self._family.name)(**inputs, **attributes, out=out)
        return result if isinstance(result, tuple) else (result,)

    def _example(self) -> tuple[dict[str, Array | None], dict[str, Any]]:
        """Return inputs and attributes of the spec's first example."""
        if not self._family.examples:
            raise Unsupported("the spec has no example to check this on")
        return arguments(self._family, self._family.examples[0])


class _OnlyDlpack:
    """An array that shows nothing but the DLPack protocol."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def arguments(family: Family, example: Example) -> tuple[dict[str, Array | None], dict[str, Any]]:
    """Return an example's inputs as arrays of the dtypes that hold its numbers best, and its attributes."""
    import numpy as np

    values = dict(example.values)
    inputs = {
        o.name: None if values.get(o.name) is None else np.asarray(values[o.name], dtype=numpy_dtype(example_text.precise(o)))
        for o in family.forward.inputs
    }
    return inputs, {a.name: values[a.name] for a in family.forward.attributes if a.name in values}
