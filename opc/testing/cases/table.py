"""The test calls of an op: a deterministic table, and random ones by hypothesis.

The table goes through element types, ranks and sizes, memory layouts, broadcasting, special values, attributes, optional inputs,
outputs that are not wanted, and large calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opc.analysis.shapes.inference import infer
from opc.ir.affine import Dim
from opc.ir.arrangement import arrangement
from opc.ir.expr import EXTREMES, Reduce, walk
from opc.ir.op import AttributeKind, Op
from opc.ir.recurrence import recurrences
from opc.testing.cases import samples
from opc.testing.cases.arguments import LAYOUTS, few_values, mixed_values, random_values
from opc.testing.cases.calls import SAMPLE, TURNS, Case, Fill, Maker
from opc.testing.cases.ends import far_attributes, far_steps, fits_in
from opc.testing.cases.pairs import choices_of, missing_pairs, pairs_in
from opc.testing.cases.sizes import (
    Shape,
    Sizes,
    broadcast_variants,
    dims_of,
    groups_of,
    in_blocks,
    of_products,
    table_sizes,
    windows_of,
)
from opc.testing.extent import Extent

FEW = 54
"""How many cases of the full table a derived op gets: its forward op has been through all of it."""

LARGE = 2_000_000
"""The number of points the largest loop of a large case may have; of a derived op half as many."""

LARGE_OF_FEW = 600_000
"""The same where there are few calls of each kind: more than one thread's share, block of rows or panel of a product."""


class Table(Maker):
    """Builds the calls of one op that its proof goes through."""

    def table(self) -> Iterator[Case | None]:
        """Yield every deterministic case, the most informative of each kind first."""
        every = list(table_sizes(self.op))
        for k, sizes in enumerate(every):
            yield self.make(f"sizes{_ranks(sizes)}", sizes, negative_axis=k % 2 == 1)
        middle = self.ordinary()
        for binding in self.bindings:
            for sizes in every[:8] if binding is not self.bindings[0] else []:
                yield self.make("dtype", sizes, binding)
        for layout, binding in itertools.product(LAYOUTS, self.bindings[:4]):
            yield self.make(layout, middle, binding, layout=layout)
        for sizes in broadcast_variants(self.op):
            yield self.make("broadcast", sizes)
        for binding in self.bindings:
            for share in (0.9, 0.05):
                fill = _special(share)
                yield self.make("special" if share > 0.5 else "few-special", self.specials(middle), binding, fill=fill)
        if any(isinstance(e, Reduce) and e.kind in EXTREMES for s in self.op.body for e in walk(s.value)):
            for binding in self.bindings[:4]:
                yield self.make("ties", middle, binding, fill=few_values)
        yield from self.attributes(middle)
        yield from self.ends(middle)
        yield from self.steps(middle)
        yield from self.optional(middle)
        most = LARGE if self.extent is Extent.WHOLE else LARGE_OF_FEW
        limit = most if self.op.derivation is None else most // 2
        flags = {a.name: not a.default for a in self.op.attributes if a.kind is AttributeKind.BOOL}
        optional = frozenset(o.name for o in self.op.inputs if o.optional and o.name not in self.seeds)
        for (sizes, keep), alone in itertools.product(in_blocks(self.op), (False, True)):
            absent = optional if alone else frozenset[str]()
            yield self.make("blocks", sizes, None, {} if alone else flags, absent=absent, limit=LARGE, keep=keep)
        for sizes in of_products(self.op):
            for binding in self.bindings:
                yield self.make("products", sizes, binding, limit=LARGE)
        for sizes, keep in self.large():
            yield self.make("large", sizes, negative_axis=True, limit=limit, keep=keep)

    def large(self) -> Iterator[tuple[Sizes, tuple[str, ...]]]:
        """Yield large sizes, odd so that no vector width divides them: about 100,000 elements of an op along one axis or none.

        Of an op with several dimensions, each in turn is long and the others as large as the limit allows, then all alike; the
        second of each pair is the dimension to keep long.
        """
        groups, windows = groups_of(self.op), windows_of(self.op)
        # Steps are computed one after the other here too: many of them take long, and are like a few.
        stepping = {a.name for r in recurrences(self.op) for a in r.extent.atoms() if isinstance(a, Dim)}
        dims = [d for d in dims_of(self.op) if d not in windows and d not in stepping]
        small = dict.fromkeys(windows, 3) | dict.fromkeys(sorted(stepping), 17)
        if len(dims) <= 1:
            total = 97 if dims else 5_881 if stepping else 100_003
            shapes: dict[str, Shape] = {g: (total,) if i == 0 else () for i, g in enumerate(groups)}
            yield Sizes(dict.fromkeys(dims, 1031) | small, shapes, {}), ()
            return
        shapes = {g: (61,) if i == 0 else () for i, g in enumerate(groups)}
        for d in dims[:1] if self.op.derivation is not None else dims:
            yield Sizes(dict.fromkeys(dims, 61) | {d: 1031} | small, shapes, {}), (d,)
        yield Sizes(dict.fromkeys(dims, 211) | small, shapes, {}), ()

    def attributes(self, middle: Sizes) -> Iterator[Case | None]:
        """Yield every accepted sample of each attribute alone, every place of an axis, and some together."""
        good = {name: values for name, values in self.good.items() if values}
        for name, values in good.items():
            for value in values:
                yield self.with_attribute(name, value, middle)
                if self.op.attribute(name).values:
                    for binding in self.bindings[1:4]:
                        yield self.make(f"attribute-{name}", middle, binding, {name: value})
                    yield self.make(f"attribute-{name}-special", self.specials(middle), None, {name: value}, fill=_special(0.9))
        made = []
        for _ in range(6 * len(good) if len(good) > 1 else 0):
            made += self._together(middle, good, {})
        # What the numbers left out by chance.
        choices, defaults = choices_of(self.op, good), {a.name: a.default for a in self.op.attributes}
        for pair in missing_pairs([defaults | {**c.attributes} for c in made], choices):
            if not any(pairs_in(pair, choices) <= pairs_in(defaults | {**c.attributes}, choices) for c in made):
                made += self._together(middle, good, pair)
        yield from made
        groups = groups_of(self.op)
        for a in self.op.attributes:
            if a.picks is not None:
                for sizes, values in _listings(middle, a.picks):
                    yield self.make("axis", sizes, attributes={a.name: values})
            for rank in range(5 if a.permutes is not None else 0):
                shape = (2, 3, 2, 4)[:rank]
                orders = [[], *map(list, itertools.permutations(range(rank)))] if rank < 4 else [[], [0, 2, 1, 3], [-1, 2, -4, 1]]
                for order in orders:
                    listed = [shape[k] for k in order] if order else shape[::-1]
                    sizes = Sizes(middle.dims, {**middle.groups, a.permutes or "": tuple(listed)}, {})
                    yield self.make("axis", sizes, attributes={a.name: order})
        how = arrangement(self.op)
        if how is not None and how.slots:
            for rank in range(3):
                shape = (2, 3)[:rank]
                for placed in itertools.permutations(range(rank + len(how.slots)), len(how.slots)):
                    chosen = dict(zip(how.attributes, placed))
                    yield self.make("axis", Sizes(middle.dims, {**middle.groups, how.rest: shape}, {}), attributes=chosen)
        if len(groups) > 1 and any(a.kind is AttributeKind.AXIS for a in self.op.attributes):
            for rank in range(1, 5):
                for first in range(rank):
                    shapes: dict[str, Shape] = dict.fromkeys(groups, ())
                    shapes[groups[0]], shapes[groups[1]] = (2, 3, 2, 1)[:first], (3, 2, 1, 2)[: rank - 1 - first]
                    for negative in (False, True):
                        yield self.make("axis", Sizes(middle.dims, shapes, {}), negative_axis=negative)

    def ends(self, middle: Sizes) -> Iterator[Case | None]:
        """Yield calls with int attributes at the ends of 64 bits, where the spec's own sums fit."""
        for chosen in far_attributes(self.op, self.written) if self.written else ():
            if samples.accepts(self.op, {**self.required(), **chosen}):
                yield self.make("ends", middle, attributes=chosen)

    def steps(self, middle: Sizes) -> Iterator[Case | None]:
        """Yield calls with int attributes at the ends of 64 bits, where the spec's own sums fit at the points of these calls."""
        for chosen in far_steps(self.op, self.written) if self.written else ():
            given = {**self.required(), **chosen}
            if samples.accepts(self.op, given) and (case := self.make("steps", middle, attributes=chosen)) is not None:
                shapes = {name: None if a is None else a.data.shape for name, a in case.inputs.items()}
                env = infer(self.op, shapes, case.attributes)
                if all(fits_in(o, env) for o in self.written):
                    yield case

    def _together(self, middle: Sizes, good: Mapping[str, Sequence[Any]], given: Mapping[str, Any]) -> list[Case]:
        """Return a call with some value for each attribute, those that are `given` among them; none where the op refuses all."""
        for _ in range(TURNS):  # not every choice is allowed beside every other
            together = {name: g[int(self.rng.integers(len(g)))] for name, g in good.items()}
            if (case := self.make("attributes", middle, attributes={**together, **given})) is not None:
                return [case]
        return []

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
        dims, groups = dims_of(op), groups_of(op)
        size, window, windows = st.integers(0, 9), st.integers(1, 4), windows_of(op)
        drawn = st.fixed_dictionaries(
            {
                "dims": st.fixed_dictionaries({d: window if d in windows else size for d in dims}),
                "products": st.fixed_dictionaries({g: st.lists(size, max_size=3).map(tuple) for g in groups}),
                "binding": st.sampled_from(self.bindings),
                "layout": st.sampled_from(("contiguous", *LAYOUTS)),
                "attributes": st.fixed_dictionaries({n: st.sampled_from(p) for n, p in self.good.items() if p}),
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
                Sizes(d["dims"], d["products"], {}),
                d["binding"],
                d["attributes"],
                absent=d["absent"],
                layout=d["layout"],
                fill=_special(d["share"]) if d["share"] else random_values,
                negative_axis=d["negative"],
            )
            for d in found
        ]


def _listings(middle: Sizes, picks: tuple[str, str]) -> Iterator[tuple[Sizes, list[int]]]:
    """Yield lists of axes in front, in the middle and at the end of tensors of some ranks, and all axes, with sizes that fit."""
    picked, rest = picks
    for rank, listed in (
        (1, [0]),
        (3, [1]),
        (3, [0, -1]),
        (4, [2, 0]),
        (4, [-3, 2]),
        (3, [0]),
        (2, []),
        (4, [3, 1, 0]),
        (2, [1, 0]),
    ):
        shape = (2, 3, 2, 4)[:rank]
        own = {a % rank for a in listed} or set(range(rank))
        groups = {picked: tuple(shape[a] for a in sorted(own)), rest: tuple(s for a, s in enumerate(shape) if a not in own)}
        yield Sizes(middle.dims, {**middle.groups, **groups}, {}), listed


def _special(share: float) -> Fill:
    return lambda rng, shape, dtype: mixed_values(rng, shape, dtype, share)


def _ranks(sizes: Sizes) -> str:
    return "".join(f"-{'x'.join(map(str, s)) or 'scalar'}" for s in sizes.groups.values())


def accepted(
    op: Op, parent: Op | None = None, *, random: int = 60, extent: Extent = Extent.WHOLE, written: Sequence[Op] = ()
) -> list[Case]:
    """Return the calls of `op` that every backend must carry out, in a fixed order.

    A derived op gets a part of the table that keeps every kind of case; `parent` is the op it is derived from, `written` are the
    ops of its family whose bodies the spec has. Less than the whole `extent` has few calls of each kind.
    """
    maker, derived = Table(op, parent, extent=extent, written=written), op.derivation is not None
    few, drawn = extent.most(FEW, 4), extent.limit(2 * SAMPLE["random"])
    random = random if drawn is None else min(random, drawn)
    table = [c for c in maker.table() if c is not None]
    if derived and len(table) > few:
        kinds: dict[str, list[Case]] = {}
        for case in table:
            kind = case.name.split("-")[1]
            # Which operands are absent, which outputs unwanted and which attribute is set matters as much as the kind.
            named = kind in ("wanted", "without", "attribute")
            kinds.setdefault(case.name.split("-", 1)[1] if named else kind, []).append(case)
        turns = itertools.zip_longest(*kinds.values())
        table = [c for turn in turns for c in turn if c is not None][:few]
    count = random // 4 if derived else random
    return table + [c for c in (maker.random(count) if count else []) if c is not None]
