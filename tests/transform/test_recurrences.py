"""Gradients and tangents of recurrences, and those of gradients, against differences of what they are derived from.

They are computed by the references in NumPy, in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, candidates, is_floating
from opc.ir.op import Family, Op, Operand, Role
from opc.ir.recurrence import recurrences
from opc.pipeline import compile_text
from tests.fuzz.written import THEMES, specs

Arrays = dict[str, Any]
SPECS = [text.replace("T: [float32]", "T: [float64]") for text in specs("recurrence", THEMES["recurrence"])]
SIZES = {"N": 4, "D": 3, "B": 2, "K": 2, "J": 3}
STEP = 1e-5


class Functions:
    """The functions of a family, and random arrays for them."""

    def __init__(self, family: Family, steps: int) -> None:
        self.random, self.sizes = np.random.default_rng(7), {**SIZES, "N": steps}
        self.names: dict[str, Any] = {}
        exec(numpy_module(family), self.names)

    def array(self, o: Operand) -> Any:
        shape: list[int] = []
        for d in o.dims:
            shape += [2] if not isinstance(d, Affine) else [self.sizes[str(d)] if d.constant is None else d.constant]
        if not is_floating(o.type):
            assert candidates(o.type)[0] is DType.INT64
            return self.random.integers(0, self.sizes["N"] + 1, size=shape)
        return self.random.normal(size=shape)

    def run(self, op: Op, values: Mapping[str, Any]) -> Arrays:
        optional = tuple(o.name for o in op.outputs if o.optional)
        wanted = {"wanted": optional} if optional else {}
        found = self.names[function_name(op)](*(values.get(o.name) for o in op.inputs), **wanted)
        return dict(zip((o.name for o in op.outputs), found, strict=True))

    def check(self, op: Op, derived: Op, values: Arrays) -> Arrays:
        """Compare a derived op with differences of its source; return what it was called with."""
        moving = {o.name: self.random.normal(size=values[o.name].shape) for o in op.inputs if is_floating(o.type)}
        base = self.run(op, values)
        ahead, behind = (self.run(op, values | {n: values[n] + sign * STEP * v for n, v in moving.items()}) for sign in (1, -1))
        changes = {o.name: (ahead[o.name] - behind[o.name]) / (2 * STEP) for o in op.outputs if is_floating(o.type)}
        arriving = {n: self.random.normal(size=change.shape) for n, change in changes.items()}
        assert derived.derivation is not None
        sources = {Role.INPUT: values, Role.OUTPUT: base, Role.COTANGENT: arriving, Role.TANGENT: moving}
        pairs = zip(derived.inputs, derived.derivation.inputs, strict=True)
        given = {o.name: sources[role].get(of) for o, (role, of) in pairs}
        found = self.run(derived, given)
        results = list(zip(derived.outputs, derived.derivation.outputs, strict=True))
        if derived.derivation.kind == "jvp":
            for o, of in results:
                np.testing.assert_allclose(found[o.name], changes[of], rtol=1e-5, atol=1e-6, err_msg=f"{derived.name}: {o.name}")
        else:
            total = sum(np.sum(found[o.name] * moving[of]) for o, of in results)
            want = sum(np.sum(arriving[n] * change) for n, change in changes.items())
            np.testing.assert_allclose(total, want, rtol=1e-5, atol=1e-6, err_msg=derived.name)
        return given


@pytest.mark.parametrize("steps", [4, 1, 0])
@pytest.mark.parametrize("text", SPECS, ids=[f"recurrence_{n}" for n in range(len(SPECS))])
def test_derivatives(text: str, steps: int) -> None:
    if steps == 0 and "require" in text:
        return
    family = compile_text(text)
    assert family.backward is not None
    assert family.jvp is not None
    assert family.backward_backward is not None
    assert family.backward_jvp is not None
    functions = Functions(family, steps)
    values = {o.name: functions.array(o) for o in family.forward.inputs}
    given = functions.check(family.forward, family.backward, values)
    functions.check(family.forward, family.jvp, values)
    functions.check(family.backward, family.backward_backward, given)
    functions.check(family.backward, family.backward_jvp, given)


def test_the_gradient_goes_the_other_way() -> None:
    family = compile_text(SPECS[0])
    assert family.backward is not None
    (rising,), (falling,) = recurrences(family.forward), recurrences(family.backward)
    assert (rising.falls, falling.falls) == (False, True)
