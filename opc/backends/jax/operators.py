"""The Python side of a family for JAX: its primitives, and how each is differentiated."""

from __future__ import annotations

from opc.analysis.constants import constants
from opc.analysis.pointwise import is_pointwise
from opc.analysis.sharding import Sharding, shardings
from opc.backends.attribute_code import python_attribute
from opc.backends.batching import batching
from opc.backends.cuts import listing, permuting, placing, shape_words, way_items
from opc.backends.derivatives import DerivativeRule, FamilyCall, Given, rules
from opc.backends.jax.library import templates
from opc.emit.python.text import Bracket, literal, quoted, tuple_of
from opc.ir.dtypes import DTYPES
from opc.ir.op import AttributeKind, Family, Op, Operand

MODULES = ("attributes", "derivatives", "dispatch", "sharding")
"""The modules that are the same for every family."""


def shared_sources(family: Family) -> dict[str, str]:
    """Return the modules that are the same for every family, by their paths."""
    dtypes = Bracket("DTYPES = (", [quoted(d.value) for d in DTYPES], ")").render()
    lacking = Bracket("LACKING = {", [quoted(d.value) for d in DTYPES if d.row.xla is None], "}").render()
    return {f"jax/{name}.py": templates.render(f"{name}.py.j2", family, dtypes=dtypes, lacking=lacking) for name in MODULES}


def operators_source(family: Family) -> str:
    """Return the text of `jax/operators.py`."""
    known = {rule.op.name: rule for rule in rules(family)}
    operators = [_operator(op) for op in family.ops]
    derivatives = [text for op in family.ops for text in _define(family, op, known)]
    return templates.render(
        "operators.py.j2",
        family,
        source_hash=family.source_hash,
        domain=family.forward.domain,
        attributes=Bracket("ATTRIBUTES = Table(", [python_attribute(a) for a in family.forward.attributes], ")").render(),
        has_attributes=bool(family.forward.attributes),
        operators=operators,
        cut=any("rule=Rule(" in text for text in operators),
        derivatives=derivatives,
        imported=[name for name in ("Call", "Linear", "define") if any(f"{name}(" in text for text in derivatives)],
    )


def _names(operands: tuple[Operand, ...]) -> Bracket:
    return tuple_of([quoted(o.name) for o in operands])


def _flags(name: str, values: list[bool]) -> Bracket:
    return Bracket(f"{name}=(", [str(v) for v in values], ")", single=True)


def _operator(op: Op) -> str:
    """Return the statement that makes an op's primitive; what has its default is left out."""
    how = batching(op)
    inputs, outputs = [x.name for x in op.inputs], [o.name for o in op.outputs]
    items: list[str | Bracket] = ["LIBRARY", quoted(op.name), _names(op.inputs), _names(op.outputs)]
    items += [f"shapes=shape.infer_shapes_{op.name}", f"types=shape.infer_types_{op.name}"]
    binding = [quoted(a.name) for a in op.attributes if a.kind is AttributeKind.DTYPE and a.binds is not None]
    items += [Bracket("type_attributes=(", binding, ")", single=True)] if binding else []
    items += [_flags("required", [not x.optional for x in op.inputs])] if any(x.optional for x in op.inputs) else []
    items += [_flags("optional", [o.optional for o in op.outputs])] if any(o.optional for o in op.outputs) else []
    items += [_flags("grouped", list(how.grouped))] if any(how.grouped) else []
    items += [] if how.joins_group else ["joins_group=False"]
    items += ["equal_ranks=True"] if how.equal_ranks and not how.always else []
    axes = [quoted(op.attributes[i].name) for i in how.axes]
    items += [Bracket("axes=(", axes, ")", single=True)] if axes else []
    items += [f"ranked={how.ranked}"] if how.ranked is not None else []
    items += ["permutes=True"] if how.permutes else []
    aliases = [f"({inputs.index(i)}, {outputs.index(o)})" for o, i in op.inplace]
    items += [Bracket("aliases=(", aliases, ")", single=True)] if aliases else []
    ways = shardings(op)
    items += [_rule(op, ways)] if ways else []
    return Bracket(f"{op.name} = Operator(", items, ")").render()


def _rule(op: Op, ways: tuple[Sharding, ...]) -> Bracket:
    """Return the argument that says how an op may be cut over devices."""
    names = [x.name for x in op.inputs]
    sides = (tuple_of([quoted(shape_words(o, op)) for o in side]) for side in (op.inputs, op.outputs))
    items: list[str | Bracket] = [*sides, tuple_of([Bracket("Way(", way_items(s, names), ")") for s in ways])]
    items += ["broadcast=True"] if op.broadcast else []
    between = [a for a in op.attributes if a.kind is AttributeKind.AXIS and a.among is None]
    axes = [tuple_of([quoted(a.name), quoted(str(a.dim))]) for a in between]
    items += [Bracket("axes=(", axes, ")", single=True)] if axes else []
    listed = listing(op, quoted)
    items += [Bracket("listed=(", listed, ")")] if listed else []
    placed = placing(op, quoted)
    items += [Bracket("placed=(", placed, ")")] if placed else []
    permuted = permuting(op, quoted)
    items += [Bracket("permuted=(", permuted, ")")] if permuted else []
    return Bracket("rule=Rule(", items, ")")


def _define(family: Family, op: Op, known: dict[str, DerivativeRule]) -> list[str]:
    """Return the statement that says how an op is differentiated."""
    rule = known[op.name]
    # JAX differentiates by all that varies, and knows no derivative by cotangents alone.
    last = op is family.backward_backward or (op.derivation is not None and op.derivation.kind == "jvp")
    if last or (not rule.vjp and rule.jvp is None):
        return [f"define({op.name}, None)"]
    items: list[str | Bracket] = [op.name, *_calls(rule)]
    pushed = known.get(family.jvp.name) if op is family.forward and family.jvp else None
    # What a linear op pushes forward does not depend on where.
    if pushed is not None and pushed.vjp:
        again = next((c for c in pushed.vjp if family.backward_jvp and c.op.name == family.backward_jvp.name), None)
        if again:
            how = ['of="t_"', *(["pointwise=True"] if is_pointwise(op) and is_pointwise(again.op) else [])]
            items.append(Bracket("again=Linear(", [op.name, _call("reverse=", again), *how], ")"))
        items.append("known=True")
    held = [f"{quoted(name)}: {quoted(dtype.value)}" for name, dtype in constants(op).items()]
    stand_ins = [Bracket("constants={", held, "}")] if held else []
    return [Bracket("define(", [op.name, Bracket("Linear(", items, ")"), *stand_ins], ")").render()]


def _calls(rule: DerivativeRule) -> list[str | Bracket]:
    forward = [_call("forward=", rule.jvp)] if rule.jvp else []
    return [*forward, *(_call("reverse=", call) for call in rule.vjp)]


def _call(head: str, call: FamilyCall) -> Bracket:
    given = tuple_of([_given(g) for g in call.given])
    return Bracket(f"{head}Call(", [call.op.name, given, tuple_of([literal(r) for r in call.results])], ")")


def _given(given: Given) -> Bracket:
    return tuple_of([literal(given.name), literal(given.like)])
