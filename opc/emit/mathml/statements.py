"""The statements of ops as formulas, one `math` element each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opc.emit.mathml.expressions import MathmlText, element, name, operator
from opc.ir.expr import GroupIndex, Reduce, walk
from opc.ir.op import Assign, Group, Op, Role, size_name
from opc.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula: the operand or size that it defines, and the `math` element on one line."""

    target: str
    mathml: str


def formulas(op: Op) -> tuple[Formula, ...]:
    """Return the formula of each statement of an op, in program order; none of an op without a body.

    In the gradient of a spec's op, the gradient with respect to an operand is that operand with a bar.
    """
    printer = MathmlText(_called(_barred(op)), is_elementwise(op))
    return tuple(Formula(s.target, _formula(printer, s)) for s in op.body)


def size_formulas(op: Op) -> tuple[Formula, ...]:
    """Return the formula of each derived dimension."""
    printer = MathmlText()
    return tuple(Formula(d, _equation(name(d), printer.affine(size))) for d, size in op.dims)


def told_formulas(op: Op) -> tuple[Formula, ...]:
    """Return the formulas of the sizes that data tells, and of what these are made of."""
    if op.sizes is None:
        return ()
    named = {size_name(name): name for name in op.told}
    body = tuple(replace(s, target=named.get(s.target, s.target)) for s in op.sizes.body)
    printer = MathmlText(_called({}), is_elementwise(op))
    return tuple(Formula(s.target, _formula(printer, s)) for s in body)


def condition_formulas(op: Op) -> tuple[Formula, ...]:
    """Return what must hold for sizes and attributes, each with its text in the spec as `target`."""
    printer = MathmlText()
    return tuple(Formula(r.text, element("math", printer.value(r.condition).text, display="inline")) for r in op.require)


def _formula(printer: MathmlText, s: Assign) -> str:
    return _equation(printer.subscripted(s.target, printer.indices(s.indices)), printer.value(s.value).text)


def _equation(left: str, right: str) -> str:
    return element("math", left, operator("="), right, display="block")


def _barred(op: Op) -> Mapping[str, str]:
    """Return what the operands that are gradients belong to."""
    told = op.derivation
    if told is None or told.kind != "vjp" or told.order != 1:
        return {}
    arriving = {o.name: of for o, (role, of) in zip(op.inputs, told.inputs, strict=True) if role is Role.COTANGENT}
    return arriving | {o.name: of for o, of in zip(op.outputs, told.outputs, strict=True)}


def _called(barred: Mapping[str, str]) -> Callable[[str], str]:
    """Return what gives an operand's name: that of its original with a bar, or its own."""
    bar = element("mo", "¯", stretchy="true")
    return lambda o: element("mover", name(barred[o]), bar, accent="true") if o in barred else name(o)


def is_elementwise(op: Op) -> bool:
    """Whether all operands have one group of axes or no axes, and nothing depends on a place in it."""
    shapes = {o.dims for o in op.operands} - {()}
    alone = all(len(dims) == 1 and isinstance(dims[0], Group) for dims in shapes)
    groups = {d.name for dims in shapes for d in dims if isinstance(d, Group)}
    moved = any(isinstance(e, Reduce | GroupIndex) for s in op.body for e in walk(s.value))
    return alone and len(groups) == 1 and not moved
