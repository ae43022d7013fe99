"""What a wheel says of its ops: the spec that each is of, and its examples as calls of the Python function."""

from __future__ import annotations

import json
from collections.abc import Iterable

from opc.backends.told_examples import told_example
from opc.ir.op import Family
from opc.names import spelled

FILE = "ops.json"
"""The file in the module."""


def text(ops: Iterable[tuple[str, Family]]) -> str:
    """Return the JSON that tells of each op, by its name in Python; `ops` has each family behind the name of its spec's file.

    Infinities and NaN stand as Python's `json` writes and reads them.
    """
    found = {family.forward.name: _described(spec, family) for spec, family in ops}
    rows = [f"{json.dumps(name)}: {json.dumps(told)}" for name, told in sorted(found.items())]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _described(spec: str, family: Family) -> dict[str, object]:
    op = family.forward
    return {
        "spec": spec,
        "op": spelled(op.name),
        "outputs": [o.name for o in op.outputs],
        "examples": [told_example(op, example) for example in family.examples],
    }
