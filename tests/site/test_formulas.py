"""Formulas of ops: well-formed MathML of every spec, which says what the body says."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from opc.emit.mathml.statements import condition_formulas, formulas, size_formulas
from opc.ir.op import Op
from opc.pipeline import compile_text, load_family
from opc.spec.files import each

ROOT = Path(__file__).parents[2]
SPECS = each(sorted((ROOT / "specs").rglob("*.yaml")))

TOKENS = {"mi", "mn", "mo", "mtext"}
# How many elements stand in those that have a fixed number.
PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "mroot": 2, "msqrt": 1}
INSIDE = {"mtable": {"mtr"}, "mtr": {"mtd"}}


def read(e: ElementTree.Element) -> str:
    """Return a formula on one line, as somebody would read it aloud; check that it is MathML Core on the way."""
    below = list(e)
    if e.tag in TOKENS:
        assert e.text, "an empty token"
        assert not below
        return e.text.replace("\N{FUNCTION APPLICATION}", "").replace("\N{NO-BREAK SPACE}", " ")
    assert e.tag in {*PARTS, *INSIDE, "math", "mrow", "mtd"}, e.tag
    assert not (e.text or "").strip(), f"text outside of a token: {e.text}"
    assert not any((c.tail or "").strip() for c in below), "text outside of a token"
    assert len(below) == PARTS.get(e.tag, len(below)) > 0, e.tag
    assert {c.tag for c in below} <= INSIDE.get(e.tag, {c.tag for c in below})
    texts = [read(c) for c in below]
    match e.tag:
        case "mfrac":
            return f"<{texts[0]} / {texts[1]}>"
        case "msqrt":
            return f"√<{texts[0]}>"
        case "msub" | "munder":
            return f"{texts[0]}_<{texts[1]}>"
        case "msup":
            return f"{texts[0]}^<{texts[1]}>"
        case "mover":
            return f"{texts[0]}{texts[1]}"
        case "mtr":
            return f"{' '.join(texts)}; "
    return "".join(texts)


def spoken(op: Op) -> list[str]:
    return [read(ElementTree.fromstring(f.mathml)) for f in formulas(op)]


@pytest.mark.rotating
@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_the_formulas_of_a_spec_are_mathml(path: Path) -> None:
    family = load_family(path)
    for op in family.ops[:2]:
        assert len(spoken(op)) == len(op.body)
        for f in (*size_formulas(op), *condition_formulas(op)):
            assert read(ElementTree.fromstring(f.mathml))


def body(statement: str, types: str = "floating") -> list[str]:
    text = f"""op: some
domain: docs
version: 1
doc: Some.
types: {{T: {types}}}
inputs: {{a: 'T[N]', b: 'T[N]', c: 'T[N]', w: 'T[N, N]'}}
attributes: {{alpha: {{type: float, default: 1.0}}, steps: {{type: int, default: 1}}}}
outputs: {{y: 'T[N]'}}
kernel: {statement}
"""
    return spoken(compile_text(text).forward)


@pytest.mark.parametrize(
    ("written", "formula"),
    [
        ("a[i] * (b[i] + c[i])", "a_<i>⋅(b_<i>+c_<i>)"),
        ("a[i] - (b[i] - c[i])", "a_<i>−(b_<i>−c_<i>)"),
        ("a[i] - b[i] - c[i]", "a_<i>−b_<i>−c_<i>"),
        ("-(a[i] + b[i])", "−(a_<i>+b_<i>)"),
        ("a[i] * -b[i]", "−a_<i>⋅b_<i>"),
        ("(a[i] + b[i]) / (a[i] * c[i])", "<a_<i>+b_<i> / a_<i>⋅c_<i>>"),
        ("(a[i] / b[i]) ** 2", "<a_<i> / b_<i>>^<2>"),
        ("(a[i] + b[i]) ** (c[i] + 1)", "(a_<i>+b_<i>)^<c_<i>+1>"),
        ("(a[i] ** b[i]) ** c[i]", "(a_<i>^<b_<i>>)^<c_<i>>"),
        ("exp(a[i]) ** 2", "(e^<a_<i>>)^<2>"),
        ("sqrt(a[i]) * abs(b[i]) + floor(c[i])", "√<a_<i>>⋅|b_<i>|+⌊c_<i>⌋"),
        ("sum[k](w[i, k] * b[k]) + c[i]", "∑_<k<N>w_<i,k>⋅b_<k>+c_<i>"),
        ("sum[k](w[i, k] - abs(b[k])) * c[i]", "(∑_<k<N>(w_<i,k>−|b_<k>|))⋅c_<i>"),
        ("c[i] + max[k](w[i, k])", "c_<i>+max_<k<N>(w_<i,k>)"),
        ("a[i] if b[i] > 0 and c[i] != 1 else -inf", "{a_<i> if b_<i>>0∧c_<i>≠1; −∞ otherwise; "),
        ("(a[i] if b[i] > 0 else 0) + c[i]", "({a_<i> if b_<i>>0; 0 otherwise; )+c_<i>"),
        ("pad(a[i - steps], 0)", "pad_<0>(a_<i−steps>)"),
        ("a[N - 1 - i]", "a_<N−i−1>"),
        ("a[(i + 1) // 2]", "a_<⌊(i+1)/2⌋>"),
        ("0.7978845608028654 * a[i]", "√<<2 / π>>⋅a_<i>"),
        ("0.79788456 * a[i] + alpha", "0.79788456⋅a_<i>+α"),
        ("(2e-20 * a[i]) ** 2", "(2⋅10^<−20>⋅a_<i>)^<2>"),
        ("1e-20 * a[i]", "10^<−20>⋅a_<i>"),
    ],
)
def test_a_formula_says_what_the_body_says(written: str, formula: str) -> None:
    assert body(f"'y[i] = {written}'") == [f"y_<i>={formula}"]


def test_gradients_have_a_bar_and_elementwise_ops_no_subscript() -> None:
    family = load_family(ROOT / "specs" / "leaky_relu.yaml")
    assert spoken(family.forward) == ["y={x if x≥0; α⋅x otherwise; "]
    assert family.backward is not None
    assert spoken(family.backward) == ["x¯={y¯ if x≥0; α⋅y¯ otherwise; "]
