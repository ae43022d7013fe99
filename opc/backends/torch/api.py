"""The Python function of a family for torch, and its documentation."""

from __future__ import annotations

from opc.backends.python_api import PythonApi, documentation, telling, tensors
from opc.backends.torch.library import templates
from opc.backends.torch.schema import out_names, shared_type
from opc.emit.python.layout import bracketed, tupled
from opc.emit.python.spelling import decorator, spells
from opc.emit.python.text import Bracket, docstring, quoted
from opc.ir.dtypes import DTYPES
from opc.ir.op import AttributeKind, Family, Op

API = PythonApi("torch.dtype | str", lambda dtype: f"torch.{dtype}")


def api_source(family: Family) -> str:
    """Return the text of `torch/__init__.py`."""
    op = family.forward
    count = len(op.outputs)
    passed = [*(x.name for x in op.inputs), *(a.name for a in op.attributes)]
    exported = ("check_gpu", "custom_translation_table", family.name, "register_onnx_symbolic")
    given = ["out=out"] if count == 1 else [f"{name}=out[{i}]" for i, name in enumerate(out_names(op))]
    return templates.render(
        "init.py.j2",
        family,
        exported=tupled("__all__ = ", sorted(map(quoted, exported)), 0),
        spells=spells(op),
        signature=decorator(op) + API.signature(op, family.name, [f"out: {tensors(op)} | None = None"]),
        doc=docstring(_document(op), 4),
        telling=_telling(op),
        write=bracketed("_out(", [*passed, *given], ")", 8),
        inputs=", ".join(x.name for x in op.inputs),
        single=op.inputs[0].name if len(op.inputs) == 1 else None,
        tracked=bracketed("return _op(", passed, ")", 8),
        raw=bracketed("return _raw(", passed, ")", 4),
        lists=any(a.length is not None for a in op.attributes),
        dtypes=[a.name for a in op.attributes if a.kind is AttributeKind.DTYPE],
        lacking=Bracket("_LACKING = (", [quoted(d.value) for d in DTYPES if d.row.torch is None], ")").render(),
        autocast=bool(shared_type(op)),
    )


def _telling(op: Op) -> list[str]:
    """Return the statements that compute the sizes which data tells; a compiler takes them for sizes from there on."""
    if op.sizes is None:
        return []
    passed = [*(f"_detached({x.name})" for x in op.inputs), *("0" if a.name in op.told else a.name for a in op.attributes)]
    checks = [f"        torch._check({name} >= 0)" for name in op.told]
    return [*telling(op, f"_operators.{op.sizes.name}.op", passed, number="{}.item()".format), *checks]


def _document(op: Op) -> str:
    """Return the documentation of the op's function."""
    several = "s" if len(op.outputs) > 1 else ""
    out = f"out: Contiguous tensor{several} to write to, where no gradient is recorded."
    raised = "RuntimeError: when an operand or attribute does not fit; the message says which."
    return documentation(op, op.doc.strip(), [raised], [out])
