"""No pass of lowering may lose a condition that bounds a read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opc.ir.expr import Select
from opc.ir.op import Op
from opc.ir.verify import VerifyError
from opc.lower.bounded import verify_bounded
from opc.pipeline import compile_text

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\n"


def op_of(inputs: str, outputs: str, kernel: str) -> Op:
    return compile_text(f"{HEAD}inputs: {{{inputs}}}\noutputs: {{{outputs}}}\nkernel: |\n  {kernel}\n", "test").forward


def test_a_lost_condition_is_seen() -> None:
    op = op_of("x: 'T[N]'", "y: 'T[N]'", "y[i] = x[i + 1] if i + 1 < N else 0")
    verify_bounded(op, op)
    (s,) = op.body
    assert isinstance(s.value, Select)
    lost = replace(op, body=(replace(s, value=s.value.then),))
    with pytest.raises(VerifyError, match=r"f: y: x\[i \+ 1\] may fall outside"):
        verify_bounded(op, lost)
    # What was not proved before is no fault of a pass.
    verify_bounded(lost, lost)


@pytest.mark.parametrize(("last", "bounded"), [("w[j]", True), ("t[j] * w[j]", False)], ids=["one output", "both"])
def test_a_temporary_is_computed_where_an_output_that_needs_it_has_elements(last: str, bounded: bool) -> None:
    kernel = f"t[j:M] = exp(x[0, j]) if N > 0 else 0\n  y[i, j] = x[i, j] - t[j]\n  z[j] = {last}"
    op = op_of("x: 'T[N, M]', w: 'T[M]'", "y: 'T[N, M]', z: 'T[M]'", kernel)
    (s, *others) = op.body
    assert isinstance(s.value, Select)
    always = replace(op, body=(replace(s, value=s.value.then), *others))
    if bounded:
        verify_bounded(op, always)
    else:
        with pytest.raises(VerifyError, match="may fall outside"):
            verify_bounded(op, always)
