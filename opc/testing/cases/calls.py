"""A test call of an op, made from the op alone, to sizes, element types, attributes and layouts that are asked for.

`opc.testing.cases.table` says which are made. Everything is seeded by the op's name, so that the same op gives the same cases.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import infer
from opc.ir.dtypes import DType, resolve
from opc.ir.op import AttributeKind, Op, Role
from opc.testing.cases import samples
from opc.testing.cases.arguments import TensorArg, random_values
from opc.testing.cases.fitting import POINTS, fit
from opc.testing.cases.index_limits import bordering_indices, index_limits, index_values, special_indices
from opc.testing.cases.sizes import (
    Shape,
    Shapes,
    Sizes,
    axis_attributes,
    dims_of,
    groups_of,
    shapes_of,
    windows_of,
)
from opc.testing.extent import Extent
from opc.testing.oracle.bounds import Array

Fill = Callable[[np.random.Generator, Shape, DType], Array]

SAMPLE = {
    "sizes": 4, "dtype": 2, "broadcast": 2, "axis": 4, "attributes": 3, "ends": 2, "steps": 2, "large": 1, "blocks": 2,
    "products": 2, "random": 5,
}  # fmt: skip
"""How many calls of a kind there are in a sample, one of each other kind; of kinds that differ by element type, one for each
type."""

BY_TYPE = ("dtype", "special", "few-special", "ties")
"""The kinds of calls that are about element types."""

TURNS = 8
"""How many combinations of attributes are tried for a call before it is given up."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One call of one op. `refused` says that every framework must refuse it; the reason is for people.

    `wanted` names the optional outputs to compute, None for all of them. `told` names the attributes that data tells: a framework
    that can is not given them. `place` says where the spec has the call, as
    `file:line`, if it has it.
    """

    name: str
    op: str
    inputs: Mapping[str, TensorArg | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    wanted: tuple[str, ...] | None = None
    refused: str = ""
    place: str = ""
    told: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The word behind the number in its name, such as `sizes` or `large`; empty where it has none."""
        return self.name.rpartition("/")[2].partition("-")[2].partition("-")[0]

    def arrays(self) -> dict[str, Array | None]:
        """Return the inputs as arrays in their layouts."""
        return {name: None if arg is None else arg.array() for name, arg in self.inputs.items()}


class Maker:
    """Builds the cases of one op. `limit` is the number of points the largest loop of an ordinary case may have.

    Of less than the whole `extent` it makes as many calls of each kind as follows from `SAMPLE` and no others. `written` are the
    ops whose bodies the spec has, without which a derived op has no calls with attributes at the ends of 64 bits.
    """

    def __init__(
        self,
        op: Op,
        parent: Op | None = None,
        limit: int = POINTS,
        *,
        extent: Extent = Extent.WHOLE,
        written: Sequence[Op] = (),
    ) -> None:
        self.op, self.limit, self.extent = op, limit, extent
        self.written = written or ((op,) if op.derivation is None else ())
        self.made: Counter[tuple[str, tuple[DType, ...]]] = Counter()
        self.seeds, self.owners = _seeds(op, parent), _owners(op, parent)
        self.rng = np.random.default_rng(zlib.crc32(op.name.encode()))
        self.limits, self.special, self.bordering = index_limits(op), special_indices(op), bordering_indices(op)
        self.bindings = samples.bindings_of(op)
        plain = [
            a
            for a in op.attributes
            if a.kind not in (AttributeKind.AXIS, AttributeKind.DTYPE) and a.picks is None and a.permutes is None
        ]
        both = {a.name: samples.attribute_samples(op, a) for a in plain}
        self.good = {name: good for name, (good, _) in both.items()}
        # In a model -1 stands for a size that data tells.
        self.bad = {name: [-2] if name in op.told else bad for name, (_, bad) in both.items()}
        self.count, self.turn = 0, 0

    def make(
        self,
        label: str,
        sizes: Sizes,
        binding: Mapping[str, DType] | None = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        absent: frozenset[str] = frozenset(),
        layout: str = "contiguous",
        fill: Fill = random_values,
        negative_axis: bool = False,
        limit: int | None = None,
        keep: Collection[str] = (),
    ) -> Case | None:
        """Return a case of about these sizes, or None when the op refuses them.

        Attributes without default that are not among `attributes` take turns through their samples, until the op accepts them.
        """
        absent = absent | {seed for seed, of in self.seeds.items() if of in absent}
        binding, chosen = binding or self.bindings[0], attributes or {}
        if self.enough(label, binding):
            return None
        for _ in range(TURNS if self.turning(chosen) else 1):
            given = {**self.required(), **axis_attributes(self.op, sizes, negative_axis), **chosen}
            given = self.given(given, chosen, binding)
            self.turn += 1
            fitted = fit(self.op, sizes, given, absent, limit=limit or self.limit, keep=keep)
            if fitted is not None:
                return self.case(label, shapes_of(self.op, fitted, given, absent), given, binding, absent, layout, fill)
        return None

    def enough(self, label: str, binding: Mapping[str, DType]) -> bool:
        """Whether there are as many calls of this kind as wanted; otherwise count one more."""
        kind = "sizes" if label.startswith("sizes") else label
        types = tuple(binding.values()) if kind in BY_TYPE else ()
        self.made[kind, types] += 1
        most = self.extent.limit(SAMPLE.get(kind, 1))
        return most is not None and self.made[kind, types] > most

    def case(
        self,
        label: str,
        shapes: Shapes,
        given: Mapping[str, Any],
        binding: Mapping[str, DType],
        absent: frozenset[str],
        layout: str,
        fill: Fill,
    ) -> Case:
        """Return the case with these shapes and attributes, filled."""
        op, env = self.op, infer(self.op, shapes, given)
        inputs: dict[str, TensorArg | None] = {}
        for o in op.inputs:
            shape = shapes[o.name]
            if shape is None:
                inputs[o.name] = None
                continue
            dtype, data = resolve(o.type, binding), None
            if o.name in self.limits:
                special, bordering = self.special.get(o.name, []), self.bordering.get(o.name, ())
                data = index_values(self.rng, shape, dtype, self.limits[o.name], special, env, bordering)
            inputs[o.name] = TensorArg(fill(self.rng, shape, dtype) if data is None else data, layout)
        self.count += 1
        lost = [o.name for o in op.outputs if o.optional and self.owners.get(o.name) in absent]
        wanted = tuple(o.name for o in op.outputs if o.optional and o.name not in lost) if lost else None
        types = "-".join(d.value for d in binding.values())
        return Case(f"{op.name}/{self.count:03d}-{label}{f'-{types}' if types else ''}", op.name, inputs, given, wanted)

    def given(self, every: Mapping[str, Any], chosen: Mapping[str, Any], binding: Mapping[str, DType]) -> dict[str, Any]:
        """Return the attributes to call with: `every` with the dtypes of the binding, without what equals its default.

        What was `chosen` and is not zero stays; the rest is left to the default, so that defaults are tested too.
        """
        result = dict(every)
        for a in self.op.attributes:
            if a.kind is AttributeKind.DTYPE and a.binds is not None:
                result[a.name] = binding[a.binds].value
            elif a.name in result and not a.required and result[a.name] == a.default and not chosen.get(a.name):
                del result[a.name]
        return result

    def turning(self, chosen: Mapping[str, Any]) -> list[str]:
        """Return the attributes without default that a call leaves to take turns."""
        return [a.name for a in self.op.attributes if a.required and len(self.good.get(a.name, [])) > 1 and a.name not in chosen]

    def required(self) -> dict[str, Any]:
        """Return an accepted value for every attribute without default, dtypes and axes left out; others each turn."""
        required = [a.name for a in self.op.attributes if a.required and self.good.get(a.name)]
        return {name: self.good[name][self.turn % len(self.good[name])] for name in required}

    def ordinary(self) -> Sizes:
        """Return sizes with at least two axes larger than 1 in every group and dimension."""
        shapes = {g: (3, 5) if i == 0 else (2,) for i, g in enumerate(groups_of(self.op))}
        windows = windows_of(self.op)
        return Sizes({d: 3 if d in windows else 4 + 3 * i for i, d in enumerate(dims_of(self.op))}, shapes, {})

    def specials(self, middle: Sizes) -> Sizes:
        """Return sizes with room for special values: many short rows."""
        groups = groups_of(self.op)
        count = 24 if middle.dims else 300
        return Sizes(middle.dims, {g: (count,) if i == 0 else () for i, g in enumerate(groups)}, {}) if groups else middle

    def with_attribute(self, name: str, value: Any, sizes: Sizes) -> Case | None:
        """Return a call with a value of one attribute, or None when the op refuses it."""
        return self.make(f"attribute-{name}", sizes, attributes={name: value})


def _seeds(op: Op, parent: Op | None) -> dict[str, str]:
    """Return for each cotangent and tangent input the input it goes with: without that input, it is not given either.

    The cotangent of a backward op's output `d_x` goes with `x`; `parent` is that backward op.
    """
    if op.derivation is None:
        return {}
    gradients = _gradients(parent)
    roles = zip(op.inputs, op.derivation.inputs, strict=True)
    return {o.name: gradients.get(of, of) for o, (role, of) in roles if o.optional and role in (Role.COTANGENT, Role.TANGENT)}


def _owners(op: Op, parent: Op | None) -> dict[str, str]:
    """Return for each output of a derived op the input it goes with: without that input, it is not computed."""
    gradients = _gradients(parent)
    return {name: gradients.get(of, of) for name, of in _gradients(op).items()}


def _gradients(op: Op | None) -> dict[str, str]:
    if op is None or op.derivation is None:
        return {}
    return dict(zip((o.name for o in op.outputs), op.derivation.outputs, strict=True))


def with_inputs(base: Case, label: str, reason: str, /, **inputs: TensorArg | None) -> Case:
    """Return a call to be refused, which differs from `base` in these inputs."""
    return replace(base, name=label, refused=reason, inputs={**base.inputs, **inputs})
