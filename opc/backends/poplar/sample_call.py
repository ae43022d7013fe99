"""The call that the scripts of a package make: the spec's first example, or sizes that fit the op's signature."""

from __future__ import annotations

from opc.analysis.shapes.samples import sample
from opc.backends.example_text import entry, number
from opc.backends.poplar.carried import carried
from opc.emit.python.text import Bracket, literal, quoted
from opc.ir.dtypes import DType, candidates
from opc.ir.op import Family, Operand
from opc.records import dataclass

AXES = (2, 3)
SIZES = (4, 6, 8)


@dataclass(frozen=True, slots=True)
class SampleCall:
    """A call as Python text.

    Attributes:
        inputs: The assignment of INPUTS, arrays by name, those alone that are given.
        attributes: The assignment of ATTRIBUTES, all that a node takes.
        shapes: The dtype and sizes of each input, None for one that is left out.
        given: The inputs by name in order, without those left out at the end.
        values: Every attribute with its value.
    """

    inputs: str
    attributes: str
    shapes: dict[str, tuple[DType, tuple[int, ...]] | None]
    given: list[str]
    values: dict[str, object]

    @property
    def gap(self) -> bool:
        """Whether an input is left out in front of one that is given."""
        return any(self.shapes[name] is None for name in self.given)


def sample_call(family: Family) -> SampleCall:
    """Return the call of a family's op."""
    op = carried(family.forward)
    chosen = dict(family.examples[0].values) if family.examples else {}
    texts: dict[str, str | Bracket] = {}
    shapes: dict[str, tuple[DType, tuple[int, ...]] | None] = {}
    if family.examples:
        values = op.complete(chosen)
        for x in op.inputs:
            value = chosen.get(x.name)
            shapes[x.name] = None if value is None else (_dtype(x), _shape(value))
            if value is not None:
                texts[x.name] = Bracket("np.array(", [number(value), quoted(_dtype(x).value)], ")")
    else:
        sizes, attributes = sample(op, AXES, SIZES)
        values = op.complete(attributes)
        for x in op.inputs:
            shape = sizes[x.name]
            shapes[x.name] = None if shape is None else (_dtype(x), tuple(shape))
            if shape is not None:
                texts[x.name] = _random(x, tuple(shape))
    rows: list[str | Bracket] = [entry(n, t) for n, t in texts.items()]
    attributes_text: list[str | Bracket] = [f"{quoted(a.name)}: {literal(_plain(values[a.name]))}" for a in op.attributes]
    given = [x.name for x in op.inputs]
    while given and shapes[given[-1]] is None:
        given.pop()
    return SampleCall(
        Bracket("INPUTS = {", rows, "}").render(),
        Bracket("ATTRIBUTES = {", attributes_text, "}").render(),
        shapes,
        given,
        values,
    )


def _random(x: Operand, shape: tuple[int, ...]) -> str:
    dtype = _dtype(x)
    values = f"np.random.default_rng(0).standard_normal({literal(shape)})" if dtype.is_floating else f"np.zeros({literal(shape)})"
    return f"{values}.astype({quoted(dtype.value)})"


def _dtype(x: Operand) -> DType:
    found = candidates(x.type)
    return DType.FLOAT32 if DType.FLOAT32 in found else found[0]


def _shape(value: object) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        return ()
    return (len(value), *(_shape(value[0]) if value else ()))


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value.value if isinstance(value, DType) else value
