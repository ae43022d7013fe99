"""Adjoints of frames of a signal: a product of matrices, and frames added up; those of others stay as they are."""

from __future__ import annotations

import pytest

from opc.ir.expr import reductions
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.references.gradcheck import check_family
from tests.transform.language import small_points, spec_text


def framed(inputs: str, value: str, outputs: str) -> Family:
    shapes = (
        f"inputs: {{{inputs}}}\nattributes: {{hop: {{type: int, default: 2, check: hop > 0}}}}\nshape: {{F: (N - K) // hop + 1}}"
    )
    require = "require: [N >= K, K > 0]"
    return compile_text(spec_text("framed", f"{shapes}\n{require}\noutputs: {{{outputs}}}\nkernel: |\n  {value}\n"))


FRAMES = {
    "filters": framed("x: 'T[B, N]', w: 'T[O, K]'", "y[b, o, f] = sum[k](x[b, f*hop + k] * w[o, k])", "y: 'T[B, O, F]'"),
    "formulas": framed(
        "x: 'T[..., N]', w: 'T[K]'",
        "y[..., f, o] = sum[k](x[..., f*hop + k] * w[k] * cos(cast(T, o * k)))",
        "y: 'T[..., F, K]'",
    ),
    "a gradient by filters": framed(
        "x: 'T[B, N]', v: 'T[K]', w: 'T[B, O, F]'", "y[o, k] = v[k] * sum[b, f](x[b, f*hop + k] * w[b, o, f])", "y: 'T[O, K]'"
    ),
}
OTHERS = {
    "filters of channels": framed(
        "x: 'T[B, C, N]', w: 'T[O, C, K]'", "y[b, o, f] = sum[c, k](x[b, c, f*hop + k] * w[o, c, k])", "y: 'T[B, O, F]'"
    ),
    "filters of channels of one signal": framed(
        "x: 'T[C, N]', w: 'T[O, C, K]'", "y[o, f] = sum[c, k](x[c, f*hop + k] * w[o, c, k])", "y: 'T[O, F]'"
    ),
    "one filter": framed("x: 'T[B, N]', w: 'T[K]'", "y[b, f] = sum[k](x[b, f*hop + k] * w[k])", "y: 'T[B, F]'"),
}


def axes(f: Family) -> list[int]:
    """Return over how many axes each sum in the gradient of `x` goes."""
    assert f.backward is not None
    body = [s for s in f.backward.body if s.target.startswith("d_x")]
    return sorted(len(e.axes) for s in body for e in reductions(s.value))


@pytest.mark.parametrize("f", FRAMES.values(), ids=FRAMES)
def test_what_goes_to_frames_is_a_product_of_its_own(f: Family) -> None:
    assert axes(f) == [1, 1]


@pytest.mark.parametrize("f", OTHERS.values(), ids=OTHERS)
def test_others_are_one_sum(f: Family) -> None:
    assert len(axes(f)) == 1


@pytest.mark.parametrize("f", {**FRAMES, **OTHERS}.values(), ids={**FRAMES, **OTHERS})
def test_they_have_the_gradients_of_differences(f: Family) -> None:
    assert [r.message for r in check_family(f, small_points(f.forward)) if not r.ok] == []
