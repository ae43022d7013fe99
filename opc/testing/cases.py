"""Test calls of an op, made from the op alone: a deterministic table, random ones by hypothesis, and calls to be refused.

The table goes through element types, ranks and sizes, memory layouts, broadcasting, special values, attributes, optional inputs,
outputs nobody asked for, and one large call. Everything is seeded by the op's name, so that the same op gives the same cases.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opc.analysis.shape import ShapeError, infer, infer_types
from opc.ir.affine import Affine
from opc.ir.dtypes import ANY, DType, candidates, resolve
from opc.ir.op import AttributeKind, Op, Role
from opc.testing import samples
from opc.testing.arguments import LAYOUTS, TensorArg, mixed_values, random_values
from opc.testing.bounds import Array
from opc.testing.index_limits import index_limits, index_values, outside, special_indices
from opc.testing.sizes import Shape, Shapes, Sizes

Fill = Callable[[np.random.Generator, Shape, DType], Array]

FEW = 48
"""How many cases of the full table a derived op gets: its forward op has been through all of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One call of one op. `refused` says that every framework must refuse it; the reason is for people.

    `wanted` names the optional outputs asked for, None for all that may be.
    """

    name: str
    op: str
    inputs: Mapping[str, TensorArg | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    wanted: tuple[str, ...] | None = None
    refused: str = ""

    def arrays(self) -> dict[str, Array | None]:
        """Return the inputs as arrays in their layouts."""
        return {name: None if arg is None else arg.array() for name, arg in self.inputs.items()}


class _Maker:
    """Builds the cases of one op."""

    def __init__(self, op: Op, parent: Op | None) -> None:
        self.op = op
        self.seeds, self.owners = _seeds(op, parent), _owners(op, parent)
        self.rng = np.random.default_rng(zlib.crc32(op.name.encode()))
        self.limits, self.special = index_limits(op), special_indices(op)
        self.bindings = samples.bindings_of(op)
        self.count = 0

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
    ) -> Case | None:
        """Return a case of these sizes, or None when the op refuses them."""
        op, binding = self.op, binding or self.bindings[0]
        given = {**self.required(), **samples.axis_attributes(op, sizes, negative_axis), **(attributes or {})}
        for a in op.attributes:
            if a.kind is AttributeKind.DTYPE and a.binds is not None:
                given[a.name] = binding[a.binds].value
            elif a.name in given and not a.required and given[a.name] == a.default and not (attributes or {}).get(a.name):
                # Left to the default, so that defaults are tested too.
                del given[a.name]
        absent = absent | {seed for seed, of in self.seeds.items() if of in absent}
        try:
            shapes = samples.shapes_of(op, sizes, given, absent)
            env = infer(op, shapes, given)
        except ShapeError:
            return None
        inputs: dict[str, TensorArg | None] = {}
        for o in op.inputs:
            shape = shapes[o.name]
            if shape is None:
                inputs[o.name] = None
                continue
            dtype, data = resolve(o.type, binding), None
            if o.name in self.limits:
                data = index_values(self.rng, shape, dtype, self.limits[o.name], self.special.get(o.name, []), env)
            inputs[o.name] = TensorArg(fill(self.rng, shape, dtype) if data is None else data, layout)
        self.count += 1
        lost = [o.name for o in op.outputs if o.optional and self.owners.get(o.name) in absent]
        wanted = tuple(o.name for o in op.outputs if o.optional and o.name not in lost) if lost else None
        types = "-".join(d.value for d in binding.values())
        return Case(f"{op.name}/{self.count:03d}-{label}{f'-{types}' if types else ''}", op.name, inputs, given, wanted)

    def required(self) -> dict[str, Any]:
        """Return an accepted value for every attribute without default, dtypes and axes left out."""
        result: dict[str, Any] = {}
        for a in self.op.attributes:
            if a.required and a.kind not in (AttributeKind.AXIS, AttributeKind.DTYPE):
                good, _ = samples.attribute_samples(self.op, a)
                if good:
                    result[a.name] = good[0]
        return result

    # The table

    def table(self) -> Iterator[Case | None]:
        """Yield every deterministic case, the most telling of each kind first."""
        every = list(samples.table_sizes(self.op))
        for k, sizes in enumerate(every):
            yield self.make(f"sizes{_ranks(sizes)}", sizes, negative_axis=k % 2 == 1)
        middle = self.ordinary(every)
        for binding in self.bindings:
            for sizes in every[:8] if binding is not self.bindings[0] else []:
                yield self.make("dtype", sizes, binding)
        for layout, binding in itertools.product(LAYOUTS, self.bindings[:4]):
            yield self.make(layout, middle, binding, layout=layout)
        for sizes in samples.broadcast_variants(self.op):
            yield self.make("broadcast", sizes)
        for binding in self.bindings:
            for share in (0.9, 0.05):
                fill = _special(share)
                yield self.make("special" if share > 0.5 else "few-special", self.specials(middle), binding, fill=fill)
        yield from self.attributes(middle)
        yield from self.optional(middle)
        yield self.make("large", self.large(), negative_axis=True)

    def ordinary(self, every: list[Sizes]) -> Sizes:
        """Return sizes with at least two axes larger than 1 in every group and dimension."""
        groups = samples.groups_of(self.op)
        shapes = {g: (3, 5) if i == 0 else (2,) for i, g in enumerate(groups)}
        sizes = Sizes({d: 4 + 3 * i for i, d in enumerate(samples.dims_of(self.op))}, shapes, {})
        return sizes if self.fits(sizes) else next((s for s in every if self.fits(s)), every[0])

    def specials(self, middle: Sizes) -> Sizes:
        """Return sizes with room for special values: many short rows."""
        groups = samples.groups_of(self.op)
        if not groups:
            return middle
        count = 24 if samples.dims_of(self.op) else 300
        sizes = Sizes(middle.dims, {g: (count,) if i == 0 else () for i, g in enumerate(groups)}, {})
        return sizes if self.fits(sizes) else middle

    def large(self) -> Sizes:
        """Return sizes of about 100,000 elements, odd so that no vector width divides them."""
        groups, dims = samples.groups_of(self.op), samples.dims_of(self.op)
        total = 100_003 if not dims else 97
        shapes: dict[str, Shape] = {g: (total,) if i == 0 else () for i, g in enumerate(groups)}
        return Sizes({d: 1031 if i == 0 else 61 for i, d in enumerate(dims)}, shapes, {})

    def fits(self, sizes: Sizes) -> bool:
        """Whether the op takes these sizes with default attributes."""
        given = {**self.required(), **samples.axis_attributes(self.op, sizes)}
        try:
            infer(self.op, samples.shapes_of(self.op, sizes, given), given)
        except (ShapeError, KeyError, TypeError):
            return False
        return True

    def attributes(self, middle: Sizes) -> Iterator[Case | None]:
        """Yield every accepted sample of each attribute alone, every place of an axis, and some together."""
        good: dict[str, list[Any]] = {}
        for a in self.op.attributes:
            if a.kind in (AttributeKind.AXIS, AttributeKind.DTYPE):
                continue
            good[a.name], _ = samples.attribute_samples(self.op, a)
            for value in good[a.name]:
                yield self.make(f"attribute-{a.name}", middle, attributes={a.name: value})
                if a.values:
                    for binding in self.bindings[1:4]:
                        yield self.make(f"attribute-{a.name}", middle, binding, {a.name: value})
                    yield self.make(
                        f"attribute-{a.name}-special", self.specials(middle), None, {a.name: value}, fill=_special(0.9)
                    )
        if len([g for g in good.values() if g]) > 1:
            for _ in range(12):
                together = {name: g[int(self.rng.integers(len(g)))] for name, g in good.items() if g}
                yield self.make("attributes", middle, attributes=together)
        groups = samples.groups_of(self.op)
        if len(groups) > 1 and any(a.kind is AttributeKind.AXIS for a in self.op.attributes):
            for rank in range(1, 5):
                for first in range(rank):
                    shapes: dict[str, Shape] = dict.fromkeys(groups, ())
                    shapes[groups[0]], shapes[groups[1]] = (2, 3, 2, 1)[:first], (3, 2, 1, 2)[: rank - 1 - first]
                    for negative in (False, True):
                        yield self.make("axis", Sizes(middle.dims, shapes, {}), negative_axis=negative)

    def optional(self, middle: Sizes) -> Iterator[Case | None]:
        """Yield calls without each optional input, without all, and with some outputs unwanted."""
        names = [o.name for o in self.op.inputs if o.optional]
        subsets = [frozenset(c) for n in range(1, len(names) + 1) for c in itertools.combinations(names, n)]
        for absent in subsets if len(subsets) <= 15 else [*subsets[: len(names)], frozenset(names)]:
            yield self.make(f"without-{'-'.join(sorted(absent))}", middle, absent=absent)
        free = [o.name for o in self.op.outputs if o.optional]
        for name in free if len(self.op.outputs) > 1 else []:
            for wanted in dict.fromkeys([(name,), tuple(o for o in free if o != name)]):
                case = self.make(f"wanted-{'-'.join(wanted)}", middle)
                yield None if case is None else replace(case, wanted=wanted)

    # Random calls

    def random(self, count: int) -> list[Case | None]:
        """Return `count` random calls drawn by hypothesis: sizes, element types, layouts, values and attributes at once."""
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import strategies as st

        op, found = self.op, []
        dims, groups = samples.dims_of(op), samples.groups_of(op)
        plain = [a for a in op.attributes if a.kind not in (AttributeKind.AXIS, AttributeKind.DTYPE)]
        pools = {a.name: samples.attribute_samples(op, a)[0] for a in plain}
        size = st.integers(0, 9)
        drawn = st.fixed_dictionaries(
            {
                "dims": st.fixed_dictionaries(dict.fromkeys(dims, size)),
                "groups": st.fixed_dictionaries({g: st.lists(size, max_size=3).map(tuple) for g in groups}),
                "binding": st.sampled_from(self.bindings),
                "layout": st.sampled_from(("contiguous", *LAYOUTS)),
                "attributes": st.fixed_dictionaries({n: st.sampled_from(p) for n, p in pools.items() if p}),
                "absent": st.sets(st.sampled_from([o.name for o in op.inputs if o.optional])).map(frozenset)
                if any(o.optional for o in op.inputs)
                else st.just(frozenset()),
                "negative": st.booleans(),
                "share": st.sampled_from((0.0, 0.0, 0.1, 0.5)),
            }
        )

        @settings(
            max_examples=count,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(drawn)
        def collect(d: dict[str, Any]) -> None:
            found.append(d)

        collect()
        return [
            self.make(
                "random",
                Sizes(d["dims"], d["groups"], {}),
                d["binding"],
                d["attributes"],
                absent=d["absent"],
                layout=d["layout"],
                fill=_special(d["share"]) if d["share"] else random_values,
                negative_axis=d["negative"],
            )
            for d in found
        ]


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
    """Return for each output of a derived op the input it goes with: without that input, it is not asked for."""
    gradients = _gradients(parent)
    return {name: gradients.get(of, of) for name, of in _gradients(op).items()}


def _gradients(op: Op | None) -> dict[str, str]:
    if op is None or op.derivation is None:
        return {}
    return dict(zip((o.name for o in op.outputs), op.derivation.outputs, strict=True))


def _special(share: float) -> Fill:
    return lambda rng, shape, dtype: mixed_values(rng, shape, dtype, share)


def _ranks(sizes: Sizes) -> str:
    return "".join(f"-{'x'.join(map(str, s)) or 'scalar'}" for s in sizes.groups.values())


def accepted(op: Op, parent: Op | None = None, *, random: int = 60) -> list[Case]:
    """Return the calls of `op` that every backend must carry out, in a fixed order.

    A derived op gets a part of the table that keeps every kind of case; `parent` is the op it is derived from.
    """
    maker, derived = _Maker(op, parent), op.derivation is not None
    table = [c for c in maker.table() if c is not None]
    if derived and len(table) > FEW:
        kinds: dict[str, list[Case]] = {}
        for case in table:
            kind = case.name.split("-")[1]
            # Which operands are absent and which outputs unwanted matters as much as the kind.
            kinds.setdefault(case.name.split("-", 1)[1] if kind in ("wanted", "without") else kind, []).append(case)
        turns = itertools.zip_longest(*kinds.values())
        table = [c for turn in turns for c in turn if c is not None][:FEW]
    count = random // 4 if derived else random
    return table + [c for c in (maker.random(count) if count else []) if c is not None]


def refused(op: Op, parent: Op | None = None) -> list[Case]:
    """Return calls of `op` that every framework must refuse: element type, rank, size, missing operand, attribute, index."""
    maker = _Maker(op, parent)
    middle = maker.ordinary(list(samples.table_sizes(op)))
    base = maker.make("base", middle)
    if base is None:
        return []
    result = [*_bad_types(op, base), *_bad_shapes(op, base), *_bad_attributes(op, base, middle), *_bad_indices(op, base)]
    return [replace(c, name=f"{op.name}/bad{k:02d}-{c.name}") for k, c in enumerate(result)]


def _with(base: Case, label: str, reason: str, **inputs: TensorArg | None) -> Case:
    return replace(base, name=label, refused=reason, inputs={**base.inputs, **inputs})


def _bad_types(op: Op, base: Case) -> Iterator[Case]:
    for o in op.inputs:
        arg = base.inputs[o.name]
        if arg is None:
            continue
        own = DType(str(arg.data.dtype))
        labels = set()
        for dtype in [d for d in ANY if d is not own]:
            dtypes = {n: DType(str(a.data.dtype)) for n, a in base.inputs.items() if a is not None} | {o.name: dtype}
            try:
                infer_types(op, dtypes, base.attributes)
            except ShapeError as error:
                # One dtype that the operand never takes, or one that does not agree with another operand.
                label = "mixed" if dtype in candidates(o.type) else "foreign"
                if label not in labels:
                    labels.add(label)
                    changed = TensorArg(random_values(np.random.default_rng(1), arg.data.shape, dtype))
                    yield _with(base, f"dtype-{o.name}-{label}", str(error), **{o.name: changed})
        if not o.optional:
            yield _with(base, f"missing-{o.name}", f"the input {o.name} must be given", **{o.name: None})


def _bad_shapes(op: Op, base: Case) -> Iterator[Case]:
    shapes: Shapes = {n: None if a is None else a.data.shape for n, a in base.inputs.items()}
    for o in op.inputs:
        arg, shape = base.inputs[o.name], shapes[o.name]
        if arg is None or shape is None:
            continue
        fixed = sum(isinstance(d, Affine) for d in o.dims)
        tries: list[tuple[str, Shape]] = [("rank", (*shape, 1)), ("rank", shape[1:]), ("rank", (2,) * (fixed - 1))]
        tries += [("size", (*shape[:a], shape[a] + 1, *shape[a + 1 :])) for a in range(len(shape))]
        for label, changed in tries:
            if changed == shape or len(changed) < 0:
                continue
            try:
                infer(op, {**shapes, o.name: changed}, base.attributes)
            except ShapeError as error:
                data = np.resize(arg.data, changed) if arg.data.size else np.ones(changed, arg.data.dtype)
                yield _with(base, f"{label}-{o.name}", str(error), **{o.name: TensorArg(data)})


def _bad_attributes(op: Op, base: Case, middle: Sizes) -> Iterator[Case]:
    shapes: Shapes = {n: None if a is None else a.data.shape for n, a in base.inputs.items()}

    def refuse(label: str, **changed: Any) -> Iterator[Case]:
        attributes = {**base.attributes, **changed}
        try:
            infer(op, shapes, attributes)
        except ShapeError as error:
            yield replace(base, name=label, refused=str(error), attributes=attributes)

    for a in op.attributes:
        if a.kind is AttributeKind.AXIS and a.dim is not None:
            home = samples.shapes_of(op, middle, base.attributes)
            rank = max(len(s) for s in home.values() if s is not None)
            for value in (rank, -rank - 1, 2**40):
                yield from refuse(f"axis-{a.name}", **{a.name: value})
        elif a.kind is not AttributeKind.DTYPE:
            _, bad = samples.attribute_samples(op, a)
            for value in bad[:3]:
                yield from refuse(f"attribute-{a.name}", **{a.name: value})


def _bad_indices(op: Op, base: Case) -> Iterator[Case]:
    env = infer(op, {n: None if a is None else a.data.shape for n, a in base.inputs.items()}, base.attributes)
    for name, limits in index_limits(op).items():
        arg = base.inputs[name]
        if arg is None or not arg.data.size:
            continue
        for value in outside(limits, env):
            data = arg.data.copy()
            data.flat[-1] = value
            if int(data.flat[-1]) == value:
                yield _with(base, f"index-{name}", f"an index in {name} is {value}, outside its axis", **{name: TensorArg(data)})


__all__ = ["Case", "accepted", "refused"]
