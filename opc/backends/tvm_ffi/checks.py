"""What callers of tvm-ffi expect of an op beyond values, checked on a call shaped like the spec's first example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opc.backends.base import Unsupported
from opc.backends.checks import Checks, assert_identical, check
from opc.backends.dtypes import foreign
from opc.backends.sessions import as_tuple
from opc.backends.tvm_ffi.session import TvmFfiSession

if TYPE_CHECKING:
    from opc.backends.base import Array


class TvmFfiChecks(Checks[TvmFfiSession]):
    """The checks of one session's family."""

    def call(self, given: dict[str, Any], attributes: dict[str, Any], outputs: list[Any]) -> Any:
        """Call the op's function as tvm-ffi has it: inputs, attributes, and what the caller says of outputs."""
        values = self.session.values(self.op, self.session.complete(self.op, attributes))
        inputs = [given.get(x.name) for x in self.op.inputs]
        return self.session.functions[self.op.name](*inputs, *values.values(), *outputs)

    def made(self, given: dict[str, Any], attributes: dict[str, Any]) -> list[Any]:
        """Return the outputs that a call makes when nothing is said of them."""
        found = self.call(given, attributes, [])
        return list(found) if len(self.op.outputs) > 1 else [found]

    @check("given outputs")
    def given_outputs(self) -> None:
        """Tensors given as outputs are written to, and nothing is returned; None is not computed, True is made."""
        import torch

        sample = self.sample(times=2)
        given = {n: self.session.tensor(a) for n, a in sample.given.items()}
        made = self.made(given, dict(sample.attributes))
        expected = [None if t is None else self.session.array(t).copy() for t in made]
        for t in made:
            if t is not None:
                torch.from_dlpack(t).zero_()
        assert self.call(given, dict(sample.attributes), made) is None, "a call that makes nothing returns something"
        assert_identical(*_present(self, made, expected), "given outputs")
        wished = self.call(given, dict(sample.attributes), [None if t is None else True for t in made])
        assert_identical(
            *_present(self, as_tuple(wished if len(self.op.outputs) == 1 else list(wished)), expected), "outputs asked for"
        )

    @check("numpy")
    def numpy(self) -> None:
        """Arrays of NumPy's, which it takes through DLPack, give the same bits."""
        import numpy as np

        sample = self.sample(times=2)
        for own in filter(None, map(foreign, sample.given.values())):
            raise Unsupported(f"NumPy knows no {own} and gives none through DLPack")
        tensors = {n: self.session.tensor(a) for n, a in sample.given.items()}
        expected = [None if t is None else self.session.array(t) for t in self.made(tensors, dict(sample.attributes))]
        found = self.made(dict(sample.given), dict(sample.attributes))
        pairs = [(np.from_dlpack(f), e) for f, e in zip(found, expected, strict=True) if e is not None]
        assert_identical([f for f, _ in pairs], [e for _, e in pairs], "NumPy's arrays")


def _present(checks: TvmFfiChecks, found: Any, expected: list[Array | None]) -> tuple[list[Array], list[Array]]:
    """Return the outputs that are computed, and what they are to be."""
    pairs = [(checks.session.array(f), e) for f, e in zip(found, expected, strict=True) if e is not None]
    return [f for f, _ in pairs], [e for _, e in pairs]
