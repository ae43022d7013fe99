"""The Python side of a family for Paddle: the function people call, and the operators it is made of."""

from __future__ import annotations

from opc.analysis.constants import constants
from opc.backends.derived import cotangent, derivation, differentiable, gradient_of
from opc.backends.paddle.library import in_place_positions, templates
from opc.backends.paddle.signature import has_mask, in_place_name, likes
from opc.backends.paddle_names import operator_name
from opc.backends.python_api import PythonApi, documentation, eager_number, telling
from opc.emit.python.spelling import decorator, spells
from opc.emit.python.text import Bracket, docstring, literal, quoted, tuple_of
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand, Role
from opc.records import dataclass

_API = PythonApi("paddle.dtype", lambda dtype: f"paddle.{dtype}")
_CONVERT = {
    AttributeKind.INT: "dispatch.integer",
    AttributeKind.AXIS: "dispatch.integer",
    AttributeKind.FLOAT: "dispatch.number_text",
    AttributeKind.BOOL: "dispatch.flag",
    AttributeKind.STR: "dispatch.text",
    AttributeKind.DTYPE: "dispatch.dtype_name",
}
_ELEMENTS = _CONVERT | {AttributeKind.BOOL: "dispatch.integer"}


@dataclass(frozen=True, slots=True)
class _Function:
    """One function of the package."""

    signature: str
    doc: str
    telling: list[str]
    call: str


def dispatch_source(family: Family) -> str:
    """Return the text of `paddle/dispatch.py`, which is the same for every family."""
    return templates.render("dispatch.py.j2", family)


def operators_source(family: Family) -> str:
    """Return the text of `paddle/operators.py`."""
    names = [quoted(operator_name(family, op)) for op in family.ops]
    names += [quoted(in_place_name(family))] if in_place_positions(family.forward) is not None else []
    attributes = [tuple_of([quoted(a.name), _convert(a)]) for a in family.forward.attributes]
    return templates.render(
        "operators.py.j2",
        family,
        open=Bracket("dispatch.open_library(", ["LIBRARY", Bracket("[", names, "]"), quoted(family.source_hash)], ")").render(),
        attributes=Bracket("_ATTRIBUTES = (", attributes, ")", single=True).render() if attributes else "",
        operators=[_operator(family, op) for op in family.ops],
        gradients=[text for op in family.ops if (text := _gradient(family, op))],
    )


def _convert(attribute: Attribute) -> str:
    """Return what makes an attribute's value one that Paddle carries."""
    if attribute.length is None:
        return _CONVERT[attribute.kind]
    if attribute.picks is not None:
        return "dispatch.axes"
    # There are no lists of bool; they are passed as integers.
    return f"dispatch.list_of({_ELEMENTS[attribute.kind]})"


def _names(operands: tuple[Operand, ...] | list[Operand]) -> Bracket:
    return tuple_of([quoted(o.name) for o in operands])


def _operator(family: Family, op: Op) -> str:
    floating = [o for o in op.outputs if differentiable(o)]
    passed: list[str | Bracket] = [quoted(operator_name(family, op)), _names(op.inputs), _names(op.outputs)]
    passed += ["_ATTRIBUTES"] if op.attributes else ["()"] if floating or has_mask(op) else []
    passed += [_names(floating)] if floating else ["()"] if has_mask(op) else []
    passed += ["masked=True"] if has_mask(op) else []
    made = Bracket(f"{op.name} = Operator(", passed, ")").render()
    if op is family.forward and in_place_positions(op) is not None:
        # In Python, Paddle marks what writes to its operands by an underscore.
        made += "\n" + Bracket(f"{op.name}_ = Operator(", [quoted(in_place_name(family)), *passed[1:]], ")").render()
    return made


def _gradient(family: Family, op: Op) -> str | None:
    """Return the statement that registers the gradient of an operator."""
    gradient = gradient_of(family, op)
    if gradient is None:
        return None
    given = [quoted(cotangent(n) if role is Role.COTANGENT else n) for role, n in derivation(gradient).inputs]
    names = {x.name: n for x, (_, n) in zip(gradient.inputs, derivation(gradient).inputs, strict=True)}
    like = [literal(None if n is None else names[n]) for n in likes(op, gradient)]
    passed: list[str | Bracket] = [
        gradient.name,
        tuple_of(given),
        tuple_of(like),
        tuple_of([quoted(n) for n in derivation(gradient).outputs]),
    ]
    held = [tuple_of([quoted(name), quoted(dtype.value)]) for name, dtype in constants(op).items()]
    passed += [Bracket("constants=(", held, ")", single=True)] if held else []
    return Bracket(f"{op.name}.gradient = Gradient(", passed, ")").render()


def api_source(family: Family) -> str:
    """Return the text of `paddle/__init__.py`."""
    op = family.forward
    in_place = _in_place(op) if in_place_positions(op) is not None else None
    return templates.render(
        "init.py.j2",
        family,
        exported=[quoted(n) for n in ("LIBRARY", family.name, *((f"{family.name}_",) if in_place else ()))],
        lists=any(a.length is not None for a in op.attributes),
        dtypes=any(a.kind is AttributeKind.DTYPE for a in op.attributes),
        spells=spells(op),
        functions=[_function(op), *((in_place,) if in_place else ())],
    )


def _function(op: Op) -> _Function:
    """Return the op's function."""
    return _documented(op, op.name, op.doc.strip(), op.name)


def _in_place(op: Op) -> _Function:
    """Return the function that writes to its inputs."""
    written = ", ".join(f"{o} to {i}" for o, i in op.inplace)
    doc = f"{op.name} in place, where no gradient is recorded: writes {written}."
    return _documented(op, f"{op.name}_", doc, f"{op.name}_.in_place")


def _documented(op: Op, name: str, doc: str, function: str) -> _Function:
    inputs = tuple_of([x.name for x in op.inputs])
    attributes = tuple_of([a.name for a in op.attributes])
    last = "[0]" if len(op.outputs) == 1 else ""
    raised = "Exception: Paddle's own, when an operand or attribute does not fit; the message says which."
    return _Function(
        signature=decorator(op) + _API.signature(op, name),
        doc=docstring(documentation(op, doc, [raised]), 4),
        telling=_telling(op),
        call="    " + Bracket(f"return _operators.{function}(", [inputs, attributes], f"){last}").render(4),
    )


def _telling(op: Op) -> list[str]:
    """Return the statements that compute the sizes which data tells."""
    if op.sizes is None:
        return []
    attributes = tuple_of(["0" if a.name in op.told else a.name for a in op.attributes])
    passed = [tuple_of([x.name for x in op.inputs]), attributes]
    return telling(op, f"_operators.{op.sizes.name}", passed, "[0]" if len(op.told) == 1 else "", eager_number(op))
