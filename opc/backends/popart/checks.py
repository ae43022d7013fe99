"""What PopART promises of an op beyond values and gradients, checked on the spec's examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends.base import Unsupported
from opc.backends.checks import Checks, Sample, assert_identical, check, misshapen, shapes
from opc.backends.derived import required_outputs
from opc.backends.popart.session import PopartSession
from opc.backends.poplar.classes import op_classes
from opc.backends.poplar.models import Model, import_popart, refusals
from opc.backends.poplar.values import held_arrays, held_attributes
from opc.ir.dtypes import DType
from opc.ir.op import Attribute, AttributeKind
from opc.records import replace

if TYPE_CHECKING:
    from opc.backends.base import Array


def goes_in_place(checks: PopartChecks) -> bool:
    """Whether the op has a variant in place."""
    return op_classes(checks.family)[0].in_place is not None


def has_numbers(checks: PopartChecks) -> bool:
    """Whether the op has attributes that are numbers, and examples to give them in."""
    return bool(checks.family.examples) and any(a.kind is AttributeKind.FLOAT for a in checks.op.attributes)


class PopartChecks(Checks[PopartSession]):
    """The checks of one family."""

    @property
    def samples(self) -> list[Sample]:
        """The spec's examples as calls, in float32 where the op has it."""
        return self.examples((DType.FLOAT32, DType.INT32))

    @property
    def has_shapes(self) -> bool:
        """Whether a Builder is told of the outputs' sizes as a node is added, and the spec has examples to see it on."""
        return bool(self.family.examples) and not op_classes(self.family)[0].gaps

    def model(self, given: Sample) -> tuple[Model, dict[str, str], dict[str, str]]:
        """Return a model of one node, its inputs and its outputs."""
        arrays = held_arrays(self.op, given.arrays, given.attributes)
        model = Model()
        tensors = {name: model.input(array) for name, array in arrays.items()}
        wanted = required_outputs(self.op, arrays, given.attributes, None)
        return model, tensors, model.node(self.op, tensors, held_attributes(self.op, given.attributes), wanted)

    def outputs(self, given: Sample) -> list[Array]:
        """Return the outputs of a call."""
        return list(self.session.call(self.op.name, given.arrays, given.attributes).values())

    @check("shapes in a Builder", lambda checks: checks.has_shapes)
    def builder_shapes(self) -> None:
        """A Builder knows the outputs' sizes as soon as the node is added."""
        for given in self.samples:
            model, _, made = self.model(given)
            expected = infer(self.op, shapes(given.arrays), given.attributes).outputs
            for name, tensor in made.items():
                found = tuple(model.builder.getTensorShape(tensor))
                assert found == expected[name], f"{name} has shape {found} in a Builder, not {expected[name]}"

    @check("refused in a Builder", lambda checks: checks.has_shapes and checks.bad_samples())
    def builder_refuses(self) -> None:
        """A node that does not fit is refused as it is added, with the message of every other framework."""
        for bad, expected in self.bad_samples():
            said = ""
            try:
                self.model(bad)
            except refusals() as error:
                said = str(error)
            assert expected in said, f"the message is {said or 'missing'}, not {expected}"

    def bad_samples(self) -> list[tuple[Sample, str]]:
        """Return examples with all operands of which one has two axes more, and the op's message."""
        whole = [s for s in self.samples if all(a is not None for a in s.arrays.values())]
        return [(bad, said) for given in whole for _, bad, said in misshapen(self.op, given)]

    @check("one node after the other")
    def twice(self) -> None:
        """Two calls in one model, which PopART may make one subgraph, give what each gives alone."""
        first = self.samples[0]
        others = [s for s in self.samples[1:] if shapes(s.arrays) == shapes(first.arrays)] or [first]
        for second in others:
            model, _, made = self.model(first)
            arrays = held_arrays(self.op, second.arrays, second.attributes)
            tensors = {name: model.input(array) for name, array in arrays.items()}
            wanted = required_outputs(self.op, arrays, second.attributes, None)
            again = model.node(self.op, tensors, held_attributes(self.op, second.attributes), wanted)
            found = model.run([*made.values(), *again.values()])
            for sample, names in ((first, made), (second, again)):
                assert_identical([found[n] for n in names.values()], self.held_outputs(sample), "beside another call")

    @check("outlined apart", lambda checks: checks.family.examples and checks.op.attributes)
    def outlined_apart(self) -> None:
        """Nodes that differ in one attribute, be it in the last digits of a number, are not made one subgraph."""
        given = self.samples[0]
        others = [*self.variants(given)]
        if not others:
            raise Unsupported("no attribute has another value that the example takes")
        model, tensors, made = self.model(given)
        arrays = held_arrays(self.op, given.arrays, given.attributes)
        nodes = [(given, made)]
        # Twice, for one node that reads the tensors may be made in place, and is outlined with no other then.
        for other in (*others, given, *others):
            wanted = required_outputs(self.op, arrays, other.attributes, None)
            nodes.append((other, model.node(self.op, tensors, held_attributes(self.op, other.attributes), wanted)))
        found = model.run([n for _, names in nodes for n in names.values()])
        for sample, names in nodes:
            said = f"beside {self.op.name} with other attributes than {dict(sample.attributes)}"
            assert_identical([found[n] for n in names.values()], self.held_outputs(sample), said)

    @check("numbers as text", has_numbers)
    def numbers_as_text(self) -> None:
        """A node may hold its numbers as text, as the operators of Paddle do that PopART's take the place of."""
        given = self.samples[0]
        arrays = held_arrays(self.op, given.arrays, given.attributes)
        values = {a.name: given.attributes.get(a.name, a.default) for a in self.op.attributes if a.kind is AttributeKind.FLOAT}
        texts = {n: [repr(float(x)) for x in v] if isinstance(v, list | tuple) else repr(float(v)) for n, v in values.items()}
        model = Model()
        tensors = {name: model.input(array) for name, array in arrays.items()}
        wanted = required_outputs(self.op, arrays, given.attributes, None)
        made = model.node(self.op, tensors, {**held_attributes(self.op, given.attributes), **texts}, wanted)
        found = model.run(list(made.values()))
        assert_identical([found[n] for n in made.values()], self.held_outputs(given), "with numbers as text")

    def variants(self, given: Sample) -> Iterator[Sample]:
        """Yield the call with another value of one attribute, for each that has one which the call can be made with."""
        for a in self.op.attributes:
            value = given.attributes.get(a.name, a.default)
            for other in _others(a, value):
                sample = replace(given, attributes={**given.attributes, a.name: other})
                try:
                    infer(self.op, shapes(given.arrays), sample.attributes)
                    held_attributes(self.op, sample.attributes)
                    self.held_outputs(sample)
                except (ShapeError, Unsupported):
                    continue
                except import_popart().poplar_runtime_error as refused:
                    # An index that is inside along one axis may be outside along another; nothing else may end the run.
                    if " is outside axis " not in str(refused):
                        raise
                    continue
                yield sample
                break

    def held_outputs(self, given: Sample) -> list[Array]:
        """Return the outputs of a call as PopART holds them."""
        model, _, made = self.model(given)
        found = model.run(list(made.values()))
        return [found[n] for n in made.values()]

    @check("in place", goes_in_place)
    def in_place(self) -> None:
        """A model where nothing else reads the input runs the variant in place, and gives the same."""
        given = self.samples[0]
        position = op_classes(self.family)[0].in_place
        name = self.op.inputs[position or 0].name
        arrays = held_arrays(self.op, given.arrays, given.attributes)
        model = Model()
        tensors = {n: model.input(a) for n, a in arrays.items()}
        tensors[name] = str(model.builder.aiOnnx.identity([tensors[name]]))
        made = model.node(self.op, tensors, held_attributes(self.op, given.attributes), [o.name for o in self.op.outputs])
        found = model.run(list(made.values()))
        assert_identical([found[n] for n in made.values()], self.held_outputs(given), "in place")
        ir: Any = getattr(model.session, "getIr", None)
        if ir is None:
            raise Unsupported("this PopART does not show the ops that it runs")
        types = [op.opType() for op in ir().getMainGraph().getOps()]
        assert f"{self.op.class_name}Inplace" in types, f"the model runs {', '.join(types)}"


def _others(a: Attribute, value: Any) -> Iterator[Any]:
    """Yield other values of an attribute, the nearest first: of a number one that its first six digits do not tell from it."""
    if a.length is not None:
        held = tuple(value) if isinstance(value, list | tuple) else ()
        for first in _others(replace(a, length=None), held[0]) if held else ():
            yield (first, *held[1:])
    elif a.kind is AttributeKind.FLOAT:
        number = 1e-7 if value is None else float(value)
        yield from (number * (1 + 2.0**-20) or 1e-8, number + 1)
    elif a.kind is AttributeKind.BOOL:
        yield not value
    elif a.kind is AttributeKind.STR:
        yield from (v for v in a.values if v != value)
    elif a.kind in (AttributeKind.INT, AttributeKind.AXIS):
        number = 0 if value is None else int(value)
        yield from (number + 1, number - 1)
