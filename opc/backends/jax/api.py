"""The Python function of a family for JAX, and its documentation."""

from __future__ import annotations

from opc.backends.jax.library import templates
from opc.backends.python_api import PythonApi, documentation, eager_number, telling
from opc.emit.python.spelling import decorator, spells
from opc.emit.python.text import Bracket, docstring, literal, quoted, tuple_of
from opc.ir.dtypes import DType, ElementType, candidates
from opc.ir.op import AttributeKind, Family, Op, Operand

_API = PythonApi("DTypeLike", lambda dtype: quoted(dtype.value), tensor="ArrayLike", result="Array")

_NARROW = {DType.INT64: DType.INT32, DType.UINT64: DType.UINT32, DType.FLOAT64: DType.FLOAT32}
"""What JAX has in place of dtypes of 64 bits unless it is told to have them."""


def api_source(family: Family) -> str:
    """Return the text of `jax/__init__.py`."""
    op = family.forward
    passed: list[str | Bracket] = [tuple_of([x.name for x in op.inputs]), tuple_of([a.name for a in op.attributes])]
    wide = _wide(op)
    passed += [f"wide={literal(wide)}"] if wide is not None else []
    return templates.render(
        "init.py.j2",
        family,
        exported=Bracket("[", [quoted(n) for n in sorted(("EXPORT_CHECKS", family.name))], "]").render(0, 0, 10),
        signature=decorator(op) + _API.signature(op, family.name),
        spells=spells(op),
        doc=docstring(documentation(op, op.doc.strip(), _raised(op), wrap=True), 4),
        telling=_telling(op),
        call="    " + Bracket(f"return _operators.{op.name}.run(", passed, ")").render(4),
        lists=any(a.length is not None for a in op.attributes),
        dtypes=any(a.kind is AttributeKind.DTYPE for a in op.attributes),
    )


def _telling(op: Op) -> list[str]:
    """Return the statements that compute the sizes which data tells; nothing is differentiated through them."""
    if op.sizes is None:
        return []
    passed: list[str | Bracket] = [tuple_of([f"_stop_gradient({x.name})" for x in op.inputs])]
    passed.append(tuple_of(["0" if a.name in op.told else a.name for a in op.attributes]))
    wide = _wide(op.sizes)
    passed += [f"wide={literal(wide)}"] if wide is not None else []
    return telling(op, f"_operators.{op.sizes.name}.run", passed, number=eager_number(op))


def _raised(op: Op) -> list[str]:
    kind = ", or an attribute of another kind" if op.attributes else ""
    return [f"TypeError: when an operand is no array{kind}.", "ValueError: when one does not fit; the message says which."]


def _wide(op: Op) -> tuple[int, ...] | None:
    """Return the inputs that are of 64 bits only; None where nothing has 64 bits but what users make so."""
    wide = tuple(i for i, x in enumerate(op.inputs) if _only_wide(x.type))
    given = {t for x in op.inputs for t in (x.type,)}
    return wide if wide or any(_may_be_wide(o) and o.type not in given for o in op.outputs) else None


def _only_wide(t: ElementType) -> bool:
    """Whether a type has dtypes of 64 bits, and those of 32 bits in whose place they are not."""
    dtypes = candidates(t)
    return any(d in _NARROW and _NARROW[d] not in dtypes for d in dtypes)


def _may_be_wide(o: Operand) -> bool:
    return any(d in _NARROW for d in candidates(o.type))
