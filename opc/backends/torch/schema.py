"""The schemas of a family's operators in torch's registry, and the order of their arguments.

Every operator takes its inputs, its attributes, then `batch_axes` (where vmap needs it) and `output_mask` (where outputs may be
left out), with their defaults as far as torch's schema language can say them.
"""

from __future__ import annotations

import math
import re

from opc.backends.derived import chooses_outputs
from opc.ir.dtypes import TypeVar
from opc.ir.op import Attribute, AttributeKind, AttributeValue, Family, Op
from opc.names import registered
from opc.records import dataclass

_TYPES = {
    AttributeKind.INT: "int",
    AttributeKind.AXIS: "int",
    AttributeKind.FLOAT: "float",
    AttributeKind.BOOL: "bool",
    AttributeKind.STR: "str",
    AttributeKind.DTYPE: "ScalarType",
}


MAX_ARGUMENTS = 64
"""How many arguments torch takes in one schema, those that outputs are written to among them."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a schema; `default` is its text, None when the argument must be given."""

    type: str
    name: str
    default: str | None = None

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + ("" if self.default is None else f"={self.default}")


def namespace(family: Family) -> str:
    """Return the torch namespace of the family's domain: `opc.nn` -> `opc_nn`."""
    return re.sub(r"\W", "_", family.forward.domain)


def shared_type(op: Op) -> tuple[int, ...]:
    """Return the positions of the inputs that must have one floating dtype with another input; autocast brings them to one."""
    types = [x.type if isinstance(x.type, TypeVar) and any(d.is_floating for d in x.type.dtypes) else None for x in op.inputs]
    return tuple(i for i, t in enumerate(types) if t is not None and types.count(t) > 1)


def attribute_type(attribute: Attribute) -> str:
    """Return the schema type of an attribute: `float`, `int[]`; of listed axes `int[1]`, for which torch takes a number too."""
    if attribute.told:
        return "SymInt"  # which torch.compile and torch.export leave open
    several = "[]" if attribute.picks is None else "[1]"
    return _TYPES[attribute.kind] + ("" if attribute.length is None else several)


def _default(attribute: Attribute) -> str | None:
    """Return the schema text of an attribute's default, None when it has none or the schema language can't say it."""
    if attribute.required or attribute.default is None or attribute.kind is AttributeKind.DTYPE:
        return None
    values = attribute.default if isinstance(attribute.default, tuple) else (attribute.default,)
    texts = [_value(attribute, v) for v in values]
    if None in texts:
        return None
    inner = ", ".join(str(t) for t in texts)
    return inner if attribute.length is None else f"[{inner}]"


def _value(attribute: Attribute, value: AttributeValue) -> str | None:
    match attribute.kind:
        case AttributeKind.FLOAT if isinstance(value, int | float):
            return repr(float(value)) if math.isfinite(value) else None
        case AttributeKind.STR:
            return f"'{value}'" if re.fullmatch(r"[\w .-]*", str(value)) else None
        case AttributeKind.BOOL:
            return str(bool(value))
        case _:
            return str(value)


def arguments(op: Op, *, batched: bool) -> tuple[Argument, ...]:
    """Return the arguments of an operator; `batched` when the family's operators take `batch_axes`.

    An argument has its default only if all later ones have one too, as torch's schemas demand.
    """
    found = [Argument("Tensor?" if x.optional else "Tensor", x.name, "None" if x.optional else None) for x in op.inputs]
    found += [Argument(attribute_type(a), a.name, _default(a)) for a in op.attributes]
    if batched:
        found.append(Argument("int", "batch_axes", "0"))
    if chooses_outputs(op):
        found.append(Argument(f"bool[{len(op.outputs)}]", "output_mask"))
    last = max((i for i, a in enumerate(found) if a.default is None), default=-1)
    return tuple(Argument(a.type, a.name, a.default if i > last else None) for i, a in enumerate(found))


def schema(op: Op, *, batched: bool) -> str:
    """Return the schema that returns fresh outputs: `leaky_relu(Tensor x, float alpha=0.01) -> Tensor`."""
    returns = "Tensor" if len(op.outputs) == 1 else f"({', '.join(['Tensor'] * len(op.outputs))})"
    return f"{registered(op.name)}({', '.join(map(str, arguments(op, batched=batched)))}) -> {returns}"


def out_schema(op: Op) -> str:
    """Return the schema that writes to given outputs: `leaky_relu.out(Tensor x, float alpha=0.01, *, Tensor(a!) out) -> ()`.

    It returns nothing, because torch.compile only takes operators that do not return what they write to.
    """
    inputs = [a for a in arguments(op, batched=False) if a.name != "output_mask"]
    names = out_names(op)
    outputs = [f"Tensor({chr(ord('a') + i % 26)}{i // 26 or ''}!) {name}" for i, name in enumerate(names)]
    return f"{registered(op.name)}.out({', '.join([*map(str, inputs), '*', *outputs])}) -> ()"


def count_arguments(op: Op, *, batched: bool) -> int:
    """Return how many arguments the longer one of an operator's two schemas has."""
    taken = arguments(op, batched=batched)
    return max(len(taken), sum(a.name not in ("batch_axes", "output_mask") for a in taken) + len(op.outputs))


def out_names(op: Op) -> tuple[str, ...]:
    """Return the names of the out variant's outputs: `out` when there is one, else the outputs' own."""
    return ("out",) if len(op.outputs) == 1 else tuple(o.name for o in op.outputs)
