"""The Python side of a family's ops: their primitives, and the functions MindSpore calls for gradients."""

from __future__ import annotations

from collections.abc import Iterator

from opc.analysis.constants import constants
from opc.backends.attribute_code import python_attribute
from opc.backends.derived import derivation, differentiable, gradient_of
from opc.backends.mindspore.api import dtype_name
from opc.backends.mindspore.library import symbol, templates
from opc.emit.python.layout import laid_out
from opc.emit.python.text import Bracket, quoted
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import DTYPES, DType
from opc.ir.op import Family, Group, Op, Role
from opc.records import dataclass

_RESERVED = {"out", "dout", "found", "gradient", "gradient_of", "in_floating", "inputs", "mindspore", "outputs", "zero", "bprop"}
"""What a `bprop` calls things by; an operand of such a name gets an underscore."""


@dataclass(frozen=True, slots=True)
class _MindSporeOperator:
    """One op of the family as the template sees it: finished texts, empty where there is none."""

    name: str
    definition: str
    rule: str


def operators_source(family: Family) -> str:
    """Return the text of `mindspore/operators.py`."""
    op = family.forward
    # A rule names the op that computes the gradient, which therefore stands before it.
    operators = [_operator(family, op) for op in reversed(family.ops)]
    kinds = {"Op", "constant"} | ({"Attribute"} if op.attributes else set())
    kinds |= {"Rule"} if family.backward is not None else set()
    text = "".join(o.rule for o in operators)
    kinds |= {name for name in ("gradient_of", "in_floating", "zero") if f"{name}(" in text}
    return templates.render(
        "operators.py.j2",
        family,
        imported=sorted(kinds),
        dtypes=any("mindspore." in f"{o.rule}{o.definition}" for o in operators),
        attributes=Bracket("ATTRIBUTES = (", [python_attribute(a) for a in op.attributes], ")", single=True).render()
        if op.attributes
        else "",
        operators=operators,
    )


def support_source(family: Family) -> str:
    """Return the text of `mindspore/support.py`, which is the same for every family."""
    names = ["None" if d.row.mindspore is None else f"mindspore.{dtype_name(d)}" for d in DTYPES]
    lacking = Bracket("LACKING = (", [quoted(d.value) for d in DTYPES if d.row.mindspore is None], ")")
    return templates.render("support.py.j2", family, dtypes=Bracket("DTYPES = (", names, ")").render(), lacking=lacking.render())


def _operator(family: Family, op: Op) -> _MindSporeOperator:
    gradient = gradient_of(family, op)
    items: list[str | Bracket] = ["LIBRARY", quoted(op.name), quoted(symbol(op))]
    items.append(Bracket("inputs=(", [quoted(x.name) for x in op.inputs], ")", single=True))
    items.append(Bracket("outputs=(", [quoted(o.name) for o in op.outputs], ")", single=True))
    items += ["attributes=ATTRIBUTES"] if op.attributes else []
    scalar = _scalar(op)
    items += [f"scalar={scalar}"] if scalar is not None else [Bracket("axes=(", _axes(op), ")", single=True)]
    rule = ""
    if gradient is not None:
        items.append(_rule_of(op, gradient))
        rule = "\n".join(_bprop(op, gradient))
    elif op is family.forward and not any(differentiable(o) for o in op.outputs):
        items.append(f"zeros=_{op.name}_zeros")
        rule = "\n".join(_zeros(op))
    return _MindSporeOperator(op.name, Bracket(f"{op.name} = Op(", items, ")").render(), rule)


def _scalar(op: Op) -> bool | None:
    """Return whether some output has rank 0, None where that depends on the inputs' ranks."""
    how = arrangement(op)
    # Where a list says which axes an output lacks, it may lack all of them.
    if any(not o.dims or (how is not None and not how.permutes and len(o.dims) == 1) for o in op.outputs):
        return True
    return None if any(all(isinstance(d, Group) for d in o.dims) for o in op.outputs) else False


def _axes(op: Op) -> list[str]:
    """Return for each input how many axes it has beside its groups, -1 where it has no group."""
    counts = [(sum(isinstance(d, Group) for d in x.dims), len(x.dims)) for x in op.inputs]
    return [str(every - groups) if groups else "-1" for groups, every in counts]


def _rule_of(op: Op, gradient: Op) -> Bracket:
    inputs = [x.name for x in op.inputs]
    outputs = [o.name for o in op.outputs]
    places = []
    for role, name in derivation(gradient).inputs:
        side = int(role is not Role.INPUT)
        places.append(f"({side}, {(outputs if side else inputs).index(name)})")
    of = [str(inputs.index(name)) for name in derivation(gradient).outputs]
    items: list[str | Bracket] = [gradient.name]
    items += [Bracket("(", places, ")", single=True), Bracket("(", of, ")", single=True), f"_{op.name}_bprop"]
    chosen = {a.name for a in op.attributes}
    held = [f"{quoted(n)}: {_dtype(d)}" for n, d in constants(op).items() if n in chosen]
    items += [Bracket("{", held, "}")] if held else []
    return Bracket("rule=Rule(", items, ")")


def _dtype(dtype: DType) -> str:
    return f"mindspore.{dtype_name(dtype)}"


def _local(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def _bprop(op: Op, gradient: Op) -> Iterator[str]:
    """Yield the lines of the function that makes an op's `bprop`."""
    names = [_local(x.name) for x in op.inputs]
    yield f"def _{op.name}_bprop(gradient, inputs, outputs):"
    yield f'    """Return the `bprop` of {op.name}."""'
    yield ""
    yield Bracket("def bprop(", [*names, "out", "dout"], "):").render(4).join(("    ", ""))
    yield laid_out(f"        found = gradient({', '.join(_arguments(op, gradient))})")
    yield Bracket("return (", list(_gradients(op, gradient)), ")", single=True).render(8).join(("        ", ""))
    yield ""
    yield "    return bprop"


def _arguments(op: Op, gradient: Op) -> Iterator[str]:
    """Yield what a gradient is called with."""
    held = constants(op)
    for (_, name), value in zip(derivation(gradient).inputs, _values(op, gradient), strict=True):
        yield f"in_floating({value}, {_dtype(held[name])})" if name in held else value


def _values(op: Op, gradient: Op) -> Iterator[str]:
    """Yield what is known of a call that a gradient is called with."""
    outputs = [o.name for o in op.outputs]
    for role, name in derivation(gradient).inputs:
        if role is Role.INPUT:
            yield _local(name)
            continue
        source = "out" if role is Role.OUTPUT else "dout"
        if len(outputs) == 1:
            yield source
        elif op.output(name).optional:
            place = f"outputs[{outputs.index(name)}]"
            yield f"{source}[{place}] if {place} >= 0 else None"
        else:
            yield f"{source}[{outputs.index(name)}]"


def _gradients(op: Op, gradient: Op) -> Iterator[str]:
    """Yield what `bprop` returns for each input."""
    of = derivation(gradient).outputs
    held = constants(op)
    for i, x in enumerate(op.inputs):
        name = _local(x.name)
        if x.name not in of:
            yield f"zero({name})"
            continue
        found = "found" if len(of) == 1 else f"found[inputs[{i}]]"
        if x.name in held:
            found = f"gradient_of({name}, {found})"
        yield f"{name} if inputs[{i}] < 0 else {found}" if x.optional else found


def _zeros(op: Op) -> Iterator[str]:
    """Yield the lines of the `bprop` of an op whose outputs are integers, so that nothing flows back through it."""
    names = [_local(x.name) for x in op.inputs]
    yield Bracket(f"def _{op.name}_zeros(", [*names, "out", "dout"], "):").render()
    yield f'    """Return the gradients of {op.name}, whose outputs are no floating-point numbers."""'
    yield Bracket("return (", [f"zero({name})" for name in names], ")", single=True).render(4).join(("    ", ""))
