"""The generated test of an op in Paddle."""

from __future__ import annotations

import re

from opc.backends import example_text
from opc.backends.paddle.library import templates
from opc.ir.op import Family


def test_files(family: Family) -> dict[str, str]:
    """Return the test module, by path relative to the package directory; none for a spec without examples."""
    if not family.examples:
        return {}
    types = example_text.types(family)
    first = re.search(r'"(\w+)": \(', types)
    text = templates().get_template("test_paddle.py.j2").render(
        source=family.source_name,
        family=family.name,
        examples=example_text.examples(family),
        types=types,
        dtype=first.group(1) if first else "",
    )  # fmt: skip
    return {"tests/test_paddle.py": text}
