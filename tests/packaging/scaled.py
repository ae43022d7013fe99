"""The op that users of an installed opc describe here, and a proof of it."""

import hashlib
import json
from pathlib import Path

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

LIGHT = SPEC.replace("[float32, float64]", "[float32]")
"""The same op for one element type, which takes less time to compile."""


def proof(sources: dict[str, str], *failed: str) -> str:
    """Return what `opc test --results` writes of ops, as far as a wheel reads it; `sources` has the SHA-256 of their specs."""
    results = [{"op": op, "status": "failed" if op in failed else "passed"} for op in sources]
    return json.dumps({"sources": sources, "results": results, "mistakes": {}})


def proof_of(folder: Path) -> str:
    """Return the proof of the specs in a folder."""
    return proof({path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.yaml"))})
