"""Random bodies that read what data picks: no derived op goes through all places for each term, nor keeps a value of both.

Each is proved against differences too.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opc.analysis.cost import cost
from opc.analysis.shapes.inference import infer
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import DType
from opc.ir.op import Op
from opc.pipeline import compile_text
from opc.testing.references.gradcheck import check_family
from tests.amounts import examples
from tests.transform.language import small_points, spec_text

SIGNATURE = """types: {T: [float32, float64]}
inputs: {w: 'T[G]', v: 'T[G]', x: 'T[P]', o: 'int64[N]'}
outputs: {y: 'T[P]'}
kernel: |
"""
SIZES = {"G": 5, "P": 3, "N": 4}
PICKED = ["w[o[n]]", "v[o[n]]", "x[p]", "(w[o[n - 1]] if n > 0 else 1)", "(v[o[n + 1]] if n + 1 < N else 0.5)"]
FORMS = (
    "{a} * {b}",
    "{a} * {b} + {c}",
    "sin({a}) * exp(-{b} * {b})",
    "minimum({a} * exp(-{b} * {b}), 0.9) * {c}",
    "({a} * exp({b} * {c}) if {b} > {c} else {b} * {c})",
    "exp(-0.5 * ({a} * {b} ** 2 + {c} * {a} ** 2)) * (1 - {b} * {c})",
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    def term(*also: str) -> str:
        a, b, c = (draw(st.sampled_from([*PICKED, *also])) for _ in range(3))
        return draw(st.sampled_from(FORMS)).format(a=a, b=b, c=c)

    lines = [f"a[p:P, n:N] = {term()}"]
    if draw(st.booleans()):
        lines.append("t[p:P, n:N] = t[p, n - 1] * (1 - a[p, n - 1]) if n > 0 else 1")
        lines.append(f"y[p] = sum[n](a[p, n] * t[p, n] * {draw(st.sampled_from(PICKED))})")
    else:
        lines.append(f"y[p] = sum[n](a[p, n] * ({term('a[p, n]')}))")
    return "".join(f"  {line}\n" for line in lines)


def of_both(op: Op) -> list[str]:
    """Return the parts of an op's work, and its temporaries, that have the places and the terms of its source as factors."""
    places, terms = Affine.of(Dim("G")), Affine.of(Dim("N"))
    shapes = {o.name: tuple(SIZES[str(d)] for d in o.dims if isinstance(d, Affine)) for o in op.inputs}
    work = cost(op, infer(op, shapes, {}), {"T": DType.FLOAT32}).work
    parts = [" * ".join(str(s) for s, _ in powers) for powers, _ in work.terms if {places, terms} <= {s for s, _ in powers}]
    return parts + [t.name for t in op.temporaries if {places, terms} <= set(t.dims)]


@settings(max_examples=examples(8, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(bodies())
def test_derived_ops_go_through_the_terms_or_the_places(body: str) -> None:
    family = compile_text(spec_text("f", SIGNATURE + body), "f")
    for op in family.ops:
        assert of_both(op) == [], f"{op.name}\n{body}"
    for result in check_family(family, small_points(family.forward)):
        assert result.ok or "no point was sharp enough" in result.message, f"{result}\n{body}"
