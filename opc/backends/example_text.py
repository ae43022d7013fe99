"""The generated test of a backend: the spec's examples as Python text, and what else the templates of tests have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from opc.backends.derived import differentiable
from opc.backends.templates import Templates
from opc.emit.onnx.types import used_variables
from opc.emit.python.text import Bracket, literal, quoted
from opc.ir.dtypes import DType, TypeVar, candidates, resolve
from opc.ir.node import cached_by_identity
from opc.ir.op import AttributeKind, Family, Operand

TESTED = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16)
"""The dtypes that examples are run in; an op that has none of them is run in the last of its own."""


Text = str | Bracket


def test_file(family: Family, templates: Templates, backend: str, **values: object) -> dict[str, str]:
    """Return the test of a backend by its path, made from `test_<backend>.py.j2`; none for a spec without examples.

    The template knows `values` beside what is the same for every backend.
    """
    if not family.examples:
        return {}
    values = {**_common(family), **values}
    return {f"tests/test_{backend}.py": templates.render(f"test_{backend}.py.j2", family, **values)}


@cached_by_identity()
def _common(family: Family) -> dict[str, object]:
    """Return what the templates of all backends know."""
    op = family.forward
    return {
        "op": op,
        "examples": examples(family),
        "types": types(family),
        "variables": several_variables(family),
        "dtype": _bindings(family)[0][0],
        "defaults": defaults(family),
        "outputs": names("OUTPUTS", [o.name for o in op.outputs]),
        "moving": names("MOVING", [x.name for x in op.inputs if differentiable(x)]),
        "standard": family.reference.standard,
        "gradient": family.backward is not None and any(map(differentiable, op.inputs)),
        "wrong_attribute": wrong_attribute(family),
    }


def names(constant: str, operands: Sequence[str]) -> str:
    """Return the assignment of a list of names."""
    return Bracket(f"{constant} = [", list(map(quoted, operands)), "]").render()


def examples(
    family: Family,
    *,
    module: str = "np",
    absent: bool = False,
    array: Callable[[Operand, Text], Text] = lambda _, number: number,
    attribute: Callable[[object], Text] | None = None,
) -> str:
    """Return the assignment of EXAMPLES: inputs, attributes and outputs of each.

    `module` has `nan` and `inf`. With `absent`, an absent input is listed as None. `array` makes an input of its numbers, and
    `attribute` writes an attribute's value.
    """
    rows = []
    op = family.forward
    for given in (dict(e.values) for e in family.examples):
        inputs = [x for x in op.inputs if absent or given.get(x.name) is not None]
        numbers = {x.name: "None" if (v := given.get(x.name)) is None else array(x, number(v, module)) for x in inputs}
        attributes = {a.name: given[a.name] for a in op.attributes if a.name in given}
        texts = {n: attribute(v) if attribute else number(v, module) for n, v in attributes.items()}
        outputs = {o.name: number(given[o.name], module) for o in op.outputs if o.name in given}
        rows.append(Bracket("(", [_dictionary(side) for side in (numbers, texts, outputs)], ")"))
    return Bracket("EXAMPLES = [", rows, "]").render()


def types(family: Family) -> str:
    """Return the assignment of TYPES: by a dtype, those of all inputs and of all outputs when the op computes in it."""
    rows = []
    for name, binding in _bindings(family):
        of = (Bracket("{", [f"{quoted(o.name)}: {quoted(_dtype(o, binding))}" for o in side], "}") for side in _sides(family))
        rows.append(Bracket(f"{quoted(name)}: (", list(of), ")"))
    return Bracket("TYPES = {", rows, "}").render()


def several_variables(family: Family) -> str:
    """Return the assignment of VARIABLES: by the same dtypes, what the type variables stand for; empty where there is one."""
    if len(used_variables(family.forward)) < 2:
        return ""
    rows = []
    for name, binding in _bindings(family):
        rows.append(Bracket(f"{quoted(name)}: {{", [f"{quoted(v)}: {quoted(d.value)}" for v, d in binding.items()], "}"))
    return Bracket("VARIABLES = {", rows, "}").render()


def _bindings(family: Family) -> list[tuple[str, dict[str, DType]]]:
    variables = used_variables(family.forward)
    every = tuple(dict.fromkeys(d for v in variables for d in v.dtypes))
    chosen = [d for d in TESTED if d in every] or list(every)[-1:]
    return [(d.value, bound(variables, d)) for d in chosen] or [("own", {})]


def bound(variables: Sequence[TypeVar], dtype: DType) -> dict[str, DType]:
    """Return type variables bound to a dtype, those that do not have it to the first of their own."""
    return {v.name: dtype if dtype in v.dtypes else v.dtypes[0] for v in variables}


def _sides(family: Family) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    return family.forward.inputs, family.forward.outputs


def _dtype(o: Operand, binding: Mapping[str, DType]) -> str:
    return resolve(o.type, binding).value


def _dictionary(texts: Mapping[str, Text]) -> Bracket:
    return Bracket("{", [entry(name, text) for name, text in texts.items()], "}")


def entry(name: str, text: Text) -> Text:
    """Return an entry of a dictionary under a name."""
    if isinstance(text, Bracket):
        return Bracket(f"{quoted(name)}: {text.head}", text.items, text.tail)
    return f"{quoted(name)}: {text}"


def precise(o: Operand) -> DType:
    """Return the dtype that holds an example's numbers of an operand best: float64, else the first of the operand's own."""
    dtypes = candidates(o.type)
    return DType.FLOAT64 if DType.FLOAT64 in dtypes else dtypes[0]


def number(value: object, module: str = "np") -> Text:
    """Return a number, string, or nested list of them."""
    if isinstance(value, list | tuple):
        return Bracket("[", [number(v, module) for v in value], "]")
    if isinstance(value, float) and not math.isfinite(value):
        return f"{module}.nan" if math.isnan(value) else f"{'-' if value < 0 else ''}{module}.inf"
    return literal(value)


def wrong_attribute(family: Family) -> str | None:
    """Return an attribute's name and a value of a type it does not take, as arguments; None for an op without attributes."""
    for a in family.forward.attributes:
        return f"{quoted(a.name)}, {'1.5' if a.kind is AttributeKind.STR else quoted('text')}"
    return None


def defaults(family: Family) -> str:
    """Return the assignment of DEFAULTS, the attributes' defaults."""
    items = [f"{quoted(a.name)}: {number(a.default)}" for a in family.forward.attributes if not a.required]
    return Bracket("DEFAULTS = {", items, "}").render()
