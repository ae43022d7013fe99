"""The op that users of an installed opc describe here."""

SPEC = """
op: scaled
domain: mine.ops
version: 1
doc: A number times x.
types: {T: [float32, float64]}
inputs: {x: 'T[...]'}
attributes: {factor: {type: float, default: 2.0}}
outputs: {y: 'T[...]'}
kernel: y = factor * x
examples:
  - {x: [1.0, -2.0], y: [2.0, -4.0]}
"""
