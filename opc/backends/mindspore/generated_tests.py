"""The generated test of an op's MindSpore function."""

from __future__ import annotations

from opc.backends import example_text
from opc.backends.mindspore.library import templates
from opc.backends.mindspore.operators import is_differentiable
from opc.emit.python.text import Bracket, quoted
from opc.ir.op import Family


def files(family: Family) -> dict[str, str]:
    """Return the test by its path; empty for an op without examples."""
    if not family.examples:
        return {}
    op = family.forward
    dtypes = [f"{quoted(x.name)}: {quoted(example_text.precise(x).value)}" for x in op.inputs]
    moving = [quoted(x.name) for x in op.inputs if is_differentiable(x)]
    text = templates().get_template("test_mindspore.py.j2").render(
        source=family.source_name,
        family=family.name,
        examples=example_text.examples(family),
        dtypes=Bracket("DTYPES = {", dtypes, "}").render(),
        gradient=family.backward is not None and bool(moving),
        moving=Bracket("MOVING = [", moving, "]").render(),
        first=op.inputs[0].name,
        wrong_attribute=example_text.wrong_attribute(family),
        attribute=op.attributes[0].name if op.attributes else "",
    )  # fmt: skip
    return {"tests/test_mindspore.py": text}
