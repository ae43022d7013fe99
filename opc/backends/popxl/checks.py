"""What PopXL promises of an op beyond values and gradients, checked on the spec's examples."""

from __future__ import annotations

from opc.backends.checks import Checks, Sample, check, misshapen
from opc.backends.popxl.session import PopxlSession
from opc.ir.dtypes import DType


class PopxlChecks(Checks[PopxlSession]):
    """The checks of one family."""

    @property
    def samples(self) -> list[Sample]:
        """The spec's examples as calls, in float32 where the op has it."""
        return self.examples((DType.FLOAT32, DType.INT32))

    def bad_samples(self) -> list[tuple[Sample, str]]:
        """Return examples with an input that the op refuses when it has two axes more, and the op's message."""
        return [(bad, said) for given in self.samples for _, bad, said in misshapen(self.op, given)]

    @check("refused as it is added", lambda checks: checks.family.examples and checks.bad_samples())
    def refused(self) -> None:
        """The function refuses a call that does not fit before any session is made, with the op's message."""
        for bad, expected in self.bad_samples():
            said = self.session.refusal_of(bad.arrays, bad.attributes)
            assert expected in said, f"the message is {said or 'missing'}, not {expected}"

    @check("another graph's tensor", lambda checks: checks.op.inputs)
    def foreign_tensor(self) -> None:
        """The function takes no tensor of another graph."""
        said = self.session.refusal_of_foreign(self.samples[0].arrays, self.samples[0].attributes)
        assert "raph" in said, f"the message is {said or 'missing'}"
