"""What PopXL promises of an op beyond values and gradients, checked on the spec's examples."""

from __future__ import annotations

from collections.abc import Iterator

from opc.backends.checks import Checks, Sample, assert_identical, check, misshapen
from opc.backends.derived import derivation
from opc.backends.poplar.classes import op_classes
from opc.backends.popxl.session import PopxlSession
from opc.ir.dtypes import DType
from opc.ir.op import Op, Role


def goes_in_place(checks: PopxlChecks) -> bool:
    """Whether the op has a variant in place."""
    return op_classes(checks.family)[0].in_place is not None


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

    @check("set up again")
    def set_up_again(self) -> None:
        """`setup()` of each op gives what it gave before: PopART calls it whenever it has changed something around the op."""
        for op, given in self.calls():
            first, second = self.session.infos(op, given.arrays, given.attributes)
            assert first == second, f"{op.name} has the outputs {first}, and {second} when it is set up again"

    def calls(self) -> Iterator[tuple[Op, Sample]]:
        """Yield the op, and its gradient where it has one, each with a call."""
        given = self.samples[0]
        yield self.op, given
        backward = self.family.backward
        if backward is None:
            return
        made = self.session.call(self.op.name, given.arrays, given.attributes)
        of = {Role.INPUT: given.arrays, Role.OUTPUT: made, Role.COTANGENT: made}
        roles = zip(backward.inputs, derivation(backward).inputs, strict=True)
        yield backward, Sample({x.name: of[role].get(name) for x, (role, name) in roles}, given.attributes)

    @check("in place", goes_in_place)
    def in_place(self) -> None:
        """The function in place gives what the other does, and leaves it in the variable that it is called with."""
        name = self.op.inputs[op_classes(self.family)[0].in_place or 0].name
        for given in self.samples:
            (expected,) = self.session.call(self.op.name, given.arrays, given.attributes).values()
            made, left = self.session.in_place(name, given.arrays, given.attributes)
            assert_identical([made, left], [expected, expected], "in place")

    @check("another graph's tensor", lambda checks: checks.op.inputs)
    def foreign_tensor(self) -> None:
        """The function takes no tensor of another graph."""
        said = self.session.refusal_of_foreign(self.samples[0].arrays, self.samples[0].attributes)
        assert "raph" in said, f"the message is {said or 'missing'}"
