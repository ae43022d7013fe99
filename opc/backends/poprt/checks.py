"""What PopRT promises of an op beyond values, checked on the spec's examples."""

from __future__ import annotations

import numpy as np

from opc.backends.base import Unsupported
from opc.backends.checks import Checks, assert_identical, check
from opc.backends.derived import differentiable
from opc.backends.poplar.values import held_arrays, held_attributes
from opc.backends.poprt.session import PoprtSession, model_of
from opc.ir.dtypes import DType, candidates


class PoprtChecks(Checks[PoprtSession]):
    """The checks of one family."""

    @check("fp16 conversion", lambda checks: any(map(differentiable, checks.op.inputs)))
    def half(self) -> None:
        """A model in float32 that PopRT converts to float16 gives what a call in float16 gives."""
        if any(differentiable(x) and DType.FLOAT16 not in candidates(x.type) for x in self.op.inputs):
            raise Unsupported("the op has an input that is never float16")
        for given in self.examples((DType.FLOAT32, DType.INT32)):
            arrays = held_arrays(self.op, given.arrays, given.attributes)
            model = model_of(self.op, arrays, held_attributes(self.op, given.attributes))
            narrow = {n: a.astype(np.float16) for n, a in arrays.items() if a.dtype == np.float32}
            found = self.session.run(self.session.converted(model, "fp16"), {**arrays, **narrow})
            # An index may be an int64 for the op, which a model holds as an int32.
            expected = self.session.call(self.op.name, {**given.arrays, **narrow}, given.attributes)
            held = {n: a.astype(np.int32) if a.dtype == np.int64 else a for n, a in expected.items()}
            assert_identical([found[n] for n in held], list(held.values()), "converted to fp16")
