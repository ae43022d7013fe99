"""Whatever the text, the front end answers with an op or with diagnostics, never with another exception, and soon."""

from __future__ import annotations

import re
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opc.analysis.elaborate.typing import elaborate, elaborate_gradient
from opc.diagnostics import Diagnostic, SpecError
from opc.ir.verify import verify
from opc.pipeline import compile_text
from opc.spec.loader import loads
from tests.amounts import examples
from tests.faults import mutations

SPECS = [path.read_text() for path in sorted((Path(__file__).parents[2] / "specs").glob("*.yaml"))]
GRADIENT = """
op: squash
domain: tests
version: 1
doc: Tanh.
types: {T: floating, U: [int32, int64]}
inputs: {x: 'T[*A, N, *B]', ids: 'U[*A]', 'w?': 'acc(T)[N]'}
attributes:
  axis: {type: axis, dim: N, default: -1}
  k: {type: 'int[2]', default: [1, 2], check: k > 0}
  mode: {type: str, values: [a, b], default: a}
shape:
  M: (N + k[0]) // k[1]
require: [N % 2 == 0]
outputs: {y: 'T[*A, N, *B]', z: 'T[*A, M]'}
kernel: |
  y[*A, n, *B] = tanh(x[*A, n, *B]) if mode == 'a' else x[*A, n, *B] * cast(T, w[n] if present(w) else 1)
  z[*A, m] = cast(T, ids[*A]) + mean[n:2, *B](pad(x[*A, n*k[0] + m, *B], -inf))
gradient:
  saves: [y]
  body: |
    d_x[*A, n, *B] = d_y[*A, n, *B] * (1 - y[*A, n, *B] ** 2) + sum[m:M](d_z[*A, m])
    d_w[n] = sum[*A, *B](d_y[*A, n, *B])
"""
PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
BLOCKS = [text for page in PAGES for text in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)]
IN_DOCS = [text for text in BLOCKS if re.search(r"^op: (?!wrong)", text, re.MULTILINE)]
SEEDS = (*SPECS, *IN_DOCS, GRADIENT)
REWORDED = (*IN_DOCS, GRADIENT)
PIECES = st.sampled_from(mutations.PIECES)
RANDOM = st.randoms(use_true_random=False)


def check(text: str) -> None:
    """Compile a text; every diagnostic must stand in it and render."""
    start = time.monotonic()
    diagnostics: tuple[Diagnostic, ...] = ()
    try:
        spec = loads(text, "fuzz.yaml", whole=False)
        op = elaborate(spec)
        verify(op)
        if spec.model.gradient.mode == "body":
            elaborate_gradient(spec, op)
    except SpecError as error:
        diagnostics = error.diagnostics or (Diagnostic(""),)
    for d in diagnostics:
        assert_placed(d, text)
    assert time.monotonic() - start < 60, "hangs"


def assert_placed(d: Diagnostic, text: str) -> None:
    """Check that a diagnostic stands inside the text."""
    assert d.message
    assert d.render()
    lines = text.split("\n")
    assert 1 <= d.span.line <= len(lines)
    assert 1 <= d.span.column <= len(lines[d.span.line - 1]) + 1
    assert (d.span.end_line, d.span.end_column) >= (d.span.line, d.span.column)
    assert d.span.end_line <= len(lines)


@settings(max_examples=examples(60, 400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RANDOM.map(lambda random: mutations.mutated(random, SEEDS)))
def test_mutations_of_good_specs(text: str) -> None:
    check(text)


@settings(max_examples=examples(50, 150), deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    check(text)


@settings(max_examples=examples(60, 250), deadline=None)
@given(st.lists(PIECES | st.sampled_from(["x[...]", "y", " = ", " + ", "x", "i", "N"]), max_size=15).map("".join))
def test_any_kernel(body: str) -> None:
    text = SPECS[0].split("kernel:")[0] + "kernel: |\n" + "".join(f"  {line}\n" for line in body.split("\n"))
    check(text)


@settings(max_examples=examples(20, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RANDOM.map(lambda random: mutations.reworded(random, REWORDED)))
def test_gradients_of_reworded_specs(text: str) -> None:
    diagnostics: tuple[Diagnostic, ...] = ()
    try:
        compile_text(text, "fuzz.yaml")
    except SpecError as error:
        diagnostics = error.diagnostics
    for d in diagnostics:
        assert_placed(d, text)


def test_seeds_are_good() -> None:
    for text in SEEDS:
        spec = loads(text, "seed.yaml")
        elaborate(spec)
