"""Loading a spec again: the same family while its text is the same."""

from pathlib import Path

from opc.diagnostics import Diagnostics
from opc.pipeline import load_family

TEXT = """\
op: twice
domain: test
version: 1
doc: Twice x.
types: {T: [float32]}
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: |
  y = 2*x
"""


def test_a_spec_is_compiled_again_when_its_text_changes(tmp_path: Path) -> None:
    spec = tmp_path / "twice.yaml"
    spec.write_text(TEXT)
    first = load_family(spec)
    assert load_family(spec) is first
    spec.write_text(TEXT.replace("2*x", "3*x"))
    assert load_family(spec).forward != first.forward
    spec.write_text(TEXT)
    assert load_family(spec, Diagnostics()) == first
