"""What NumPy users expect of an op beyond values, checked on the spec's first example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opc.backends.base import Unsupported
from opc.backends.checks import Checks, check
from opc.backends.dtypes import foreign
from opc.backends.numpy.session import NumpySession
from opc.backends.sessions import as_tuple
from opc.backends.shipped.examples import assert_answers
from opc.backends.told_examples import told_example
from opc.ir.dtypes import DType

if TYPE_CHECKING:
    from opc.backends.base import Array


class NumpyChecks(Checks[NumpySession]):
    """The checks of one session's family."""

    @property
    def description(self) -> Any:
        """What the generated module knows of the op."""
        return getattr(self.session.module, f"_{self.family.name}")

    def run(self, inputs: Mapping[str, Any], attributes: Mapping[str, Any], out: Any = None) -> tuple[Array, ...]:
        """Call the op's function."""
        return as_tuple(getattr(self.session.module, self.family.name)(**inputs, **attributes, out=out))

    def example(self) -> tuple[Mapping[str, Array | None], Mapping[str, Any]]:
        """Return inputs and attributes of the spec's first example, in the dtypes that hold its numbers best."""
        given = self.examples((DType.FLOAT64,))[0]
        return given.arrays, given.attributes

    @check("examples", when=lambda checks: checks.family.examples)
    def answers(self) -> None:
        """The function answers as every example says: a project's test asks an installed wheel for the same."""
        function = getattr(self.session.module, self.family.name)
        for number, example in enumerate(self.family.examples):
            try:
                assert_answers(function, [o.name for o in self.op.outputs], told_example(self.op, example))
            except AssertionError as error:
                raise AssertionError(f"{example.span.place or f'example {number}'}: {error}") from error

    @check("fast way")
    def fast_way(self) -> None:
        """A repeated call, which goes the fast way, answers the same bytes as the first, and keeps its plan."""
        inputs, attributes = self.example()
        first = self.run(inputs, attributes)
        plans = len(self.description.plans)
        assert plans > 0, "the first call left no plan"
        for a, b in zip(first, self.run(inputs, attributes), strict=True):
            assert a.tobytes() == b.tobytes(), "the second call answers differently"
        assert len(self.description.plans) == plans, "the second call did not use the plan of the first"

    @check("out")
    def out(self) -> None:
        """`out` is written to and is what is returned, on the first call and on later ones."""
        inputs, attributes = self.example()
        expected = self.run(inputs, attributes)
        for _ in range(2):
            out = tuple(array.copy() for array in expected)
            for array in out:
                array.view("u1" if array.ndim else array.dtype).fill(0)
            got = self.run(inputs, attributes, out=out[0] if len(out) == 1 else out)
            for g, o, e in zip(got, out, expected, strict=True):
                assert g is o, "the array returned is not the array given as out"
                assert o.tobytes() == e.tobytes(), "out holds other values than a fresh output"

    @check("read-only out")
    def read_only(self) -> None:
        """A read-only `out` is refused and stays as it was."""
        inputs, attributes = self.example()
        out = tuple(array.copy() for array in self.run(inputs, attributes))
        before = [array.tobytes() for array in out]
        for array in out:
            array.flags.writeable = False
        try:
            self.run(inputs, attributes, out=out[0] if len(out) == 1 else out)
        except ValueError as error:
            if "writable" not in str(error):
                raise
        else:
            raise AssertionError("a read-only out was accepted")
        assert [array.tobytes() for array in out] == before, "a read-only out was written to"

    @check("dlpack")
    def dlpack(self) -> None:
        """An object that only offers DLPack is taken like the array behind it."""
        inputs, attributes = self.example()
        for own in filter(None, (foreign(a) for a in inputs.values() if a is not None)):
            raise Unsupported(f"NumPy knows no {own} and takes none through DLPack")
        wrapped = {name: value if value is None else _OnlyDlpack(value) for name, value in inputs.items()}
        for a, b in zip(self.run(wrapped, attributes), self.run(inputs, attributes), strict=True):
            assert a.tobytes() == b.tobytes(), "a DLPack input answers differently"


class _OnlyDlpack:
    """An array that shows nothing but the DLPack protocol."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()
