"""The generated test of an op's ONNX Runtime library."""

from __future__ import annotations

import re

from opc.backends import example_text
from opc.backends.onnxruntime.library import templates
from opc.ir.op import Family


def files(family: Family) -> dict[str, str]:
    """Return the test module, by path relative to the package directory; none for a spec without examples."""
    if not family.examples:
        return {}
    types = example_text.types(family)
    first = re.search(r'"(\w+)": \(', types)
    forward = family.forward
    text = templates().get_template("test_onnxruntime.py.j2").render(
        spec=family.source_name,
        name=family.name,
        op_type=forward.class_name,
        domain=forward.domain,
        version=forward.version,
        examples=example_text.examples(family),
        types=types,
        dtype=first.group(1) if first else "",
        defaults=example_text.defaults(family),
        standard=family.reference.standard,
        wrong_attribute=example_text.wrong_attribute(family),
        attribute=forward.attributes[0].name if forward.attributes else "",
    )  # fmt: skip
    return {"tests/test_onnxruntime.py": text}
