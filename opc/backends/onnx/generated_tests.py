"""The generated test of an op's ONNX subpackage."""

from __future__ import annotations

import re

from opc.backends import example_text
from opc.backends.onnx.emit import templates
from opc.emit.onnx.function import FunctionBody, function_body
from opc.ir.op import Family


def files(family: Family) -> dict[str, str]:
    """Return the test module, by path relative to the package directory; none for a spec without examples."""
    if not family.examples:
        return {}
    types = example_text.types(family)
    first = re.search(r'"(\w+)": \(', types)
    text = templates().get_template("test_onnx.py.j2").render(
        spec=family.source_name,
        name=family.name,
        op_type=family.forward.class_name,
        examples=example_text.examples(family),
        types=types,
        variables=example_text.several_variables(family),
        dtype=first.group(1) if first else "",
        defaults=example_text.defaults(family),
        standard=family.reference.standard,
        function=isinstance(function_body(family.forward), FunctionBody),
        wrong_attribute=example_text.wrong_attribute(family),
    )  # fmt: skip
    return {"tests/test_onnx.py": text}
