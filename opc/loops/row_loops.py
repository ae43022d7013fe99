"""Register tiling of reductions along a row, and non-temporal stores: vector loops along a row as calls of the runtime.

A loop that reduces keeps several vectors of partial results in registers: it becomes a function of the place and of these, which
`reduce_row` calls. One that only stores rows becomes a function of the place and of the elements there, which `store_row` calls:
where a call moves more memory than the caches hold, it stores them past these. With inner-invariant segments an operand that has
one value for each segment of the row is read once a segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from opc.ir.dtypes import DType, ValueType, is_floating
from opc.ir.expr import Call, Const, Expr, children, walk, with_children
from opc.loops.nodes import (
    Accumulate,
    Body,
    Do,
    If,
    Let,
    LocalFunction,
    Loop,
    PassGroup,
    Statement,
    Store,
    Var,
    bodies,
    own_values,
    values_of,
    with_bodies,
    with_own_values,
)
from opc.loops.values import As, Init, IntegerChoice, Lambda, Local, Named, ReferenceType, Word, call, ref, variable
from opc.records import dataclass, replace

NOTHING_AHEAD = Word("opc::nothing_ahead{}")


@dataclass(frozen=True, slots=True)
class NontemporalRows:
    """Which rows a stage may store past the caches: pointers to them with the type of an element and the flag, if any, that says
    whether it is wanted; `segments` are the pointers to operands with one value for each segment of the row. Where the loops
    convert elements, `converted` is the type that these are stored as, with what they read the rows of such inputs by."""

    rows: Mapping[str, tuple[ValueType, str]]
    segments: tuple[str, ...] = ()
    converted: tuple[ValueType, tuple[str, ...]] | None = None


def with_row_functions(
    body: Body, fresh: Callable[[str], str], slow: Callable[[Expr], bool], nontemporal: NontemporalRows | None
) -> Body:
    """Return a body whose loops along rows are calls of the runtime.

    `fresh` names new variables, `slow` says what takes longer than adding up; without `nontemporal` no store is non-temporal.
    """
    return _Rows(fresh, slow, nontemporal).body(body)


class _Rows:
    def __init__(self, fresh: Callable[[str], str], slow: Callable[[Expr], bool], nontemporal: NontemporalRows | None) -> None:
        self.fresh, self.slow, self.nontemporal = fresh, slow, nontemporal

    def body(self, body: Body) -> Body:
        found: list[Statement] = []
        for s in body:
            if isinstance(s, PassGroup):
                found.append(PassGroup(tuple(self._group(s.body))))
            else:
                found.append(with_bodies(s, tuple(map(self.body, bodies(s)))))
        return tuple(found)

    def _group(self, body: Body) -> Iterator[Statement]:
        reductions: dict[str, Accumulate] = {}
        for s in body:
            if isinstance(s, Loop):
                reductions = reductions_of(s)
        for s in body:
            if isinstance(s, Var) and s.name in reductions:
                continue
            if not isinstance(s, Loop):
                yield s
            elif reductions:
                yield from self._reduced(s, reductions)
            elif self.nontemporal is not None and (targets := self._stored(s)) is not None:
                yield from self._stores(s, targets)
            else:
                assert self.nontemporal is None or self.nontemporal.converted is None, "such a stage stores rows alone"
                yield s

    def _ahead(self, loop: Loop) -> Expr:
        if self.nontemporal is not None and self.nontemporal.converted is not None:
            return call("widened", *map(ref, self.nontemporal.converted[1]))
        return ref(loop.ahead) if loop.ahead else NOTHING_AHEAD

    def _reduced(self, loop: Loop, reductions: Mapping[str, Accumulate]) -> Iterator[Statement]:
        """Yield a loop that reduces, and the results."""
        lanes = call("count_lanes", types=tuple(dict.fromkeys(partial(f) for f in reductions.values())))
        names = {name: self.fresh(f"{name}_reduction") for name in reductions}
        for name, f in reductions.items():
            yield Var(names[name], reduction_type(f, lanes))
        step = self.fresh("step")
        params = tuple((parameter(f), name) for name, f in reductions.items())
        yield LocalFunction(step, (("int64_t", loop.index), *params), taken(loop.body, self.fresh), inlined=True)
        quick = () if any(self.slow(n) for v in values_of(loop.body) for n in walk(v)) else ("true",)
        args = loop.high, self._ahead(loop), ref(step), *(ref(n) for n in names.values())
        yield Do(call("reduce_row", *args, types=(lanes, *quick)))
        for name, f in reductions.items():
            of = f.target.type
            result = Local(names[name], of, None, "result()" if is_extreme(f) else "value")
            value: Expr = result
            if f.kind in ("max", "min") and not is_extreme(f):
                value = call("key_value", result, type=of, types=(of,))
            elif of is DType.BOOL:
                value = Call("ne", (replace(result, type=DType.UINT8), Const(0, DType.UINT8)), DType.BOOL)
            yield Let(name, of, value)

    def _stored(self, loop: Loop) -> dict[str, ValueType] | None:
        """Return the rows that a loop stores, with the types of their elements; None where it does anything else."""
        assert self.nontemporal is not None, "only for rows that are stored past the caches"
        found: dict[str, ValueType] = {}
        for s in loop.body:
            inner = s.then[0] if isinstance(s, If) and s.static and len(s.then) == 1 else s
            if isinstance(inner, Let):
                continue
            if not isinstance(inner, Store | Accumulate) or inner.target.name not in self.nontemporal.rows:
                return None
            if inner.target.index != variable(loop.index):
                return None
            found[inner.target.name] = inner.target.type
        return found or None

    def _stores(self, loop: Loop, targets: Mapping[str, ValueType]) -> Iterator[Statement]:
        """Yield a loop that stores rows."""
        assert self.nontemporal is not None, "only for rows that are stored past the caches"
        plain = {name: name.partition("#")[0].removesuffix("_row") for name in targets}
        here = {name: self.fresh(f"{plain[name]}_here") for name in targets}
        stores = {name: self.fresh(f"{plain[name]}_store") for name in targets}
        stored = () if self.nontemporal.converted is None else (self.nontemporal.converted[0],)
        for name, of in targets.items():
            flag = self.nontemporal.rows[name][1]
            yield Var(stores[name], Named("opc::row_store", (of, flag or "true", *stored)), Init((ref(name),)))

        def moved(e: Expr) -> Expr:
            if isinstance(e, Local) and e.name in here:
                return Local(here[e.name], e.type)
            return with_children(e, tuple(map(moved, children(e))))

        def changed(body: Body) -> Body:
            new = (with_own_values(s, tuple(map(moved, own_values(s)))) for s in body)
            return tuple(with_bodies(s, tuple(map(changed, bodies(s)))) for s in new)

        index = Named("opc::row_position", (next(iter(targets.values())), *stored)) if stored else "int64_t"
        params: tuple[tuple[Named | ReferenceType | str, str], ...] = (
            (index, loop.index),
            *((ReferenceType(of), here[name]) for name, of in targets.items()),
        )
        segments = [s for s in loop.body if isinstance(s, Let) and self._reads_segment(s)]
        inner = changed(tuple(s for s in loop.body if s not in segments))
        tile = Word("tile")
        last = tuple(ref(n) for n in stores.values())
        if not segments:
            step = self.fresh("step")
            yield LocalFunction(step, params, inner, inlined=True)
            yield Do(call("store_row", tile, self._ahead(loop), ref(step), *last))
            return
        step, segment = self.fresh("step_at"), self.fresh("segment")
        values = tuple(replace(s, value=at_index(s.value, segment)) for s in segments)
        yield LocalFunction(
            step, (("int64_t", segment),), values, Lambda(params, inner, tuple(s.name for s in segments)), inlined=True
        )
        yield Do(call("store_segments", tile, self._ahead(loop), ref(step), *last))

    def _reads_segment(self, s: Let) -> bool:
        assert self.nontemporal is not None, "only for rows that are stored past the caches"
        return any(isinstance(n, Local) and n.name in self.nontemporal.segments for n in walk(s.value))


def at_index(e: Expr, index: str) -> Expr:
    """Return the element that a value reads at another index."""
    if isinstance(e, Local) and e.index is not None:
        return replace(e, index=variable(index))
    return with_children(e, tuple(at_index(c, index) for c in children(e)))


# Reductions along a row.


def reductions_of(loop: Loop) -> dict[str, Accumulate]:
    """Return the accumulations of a loop into variables of the row, by name, in order."""
    return {s.target.name: s for s in loop.body if isinstance(s, Accumulate) and s.target.index is None}


def is_extreme(f: Accumulate) -> bool:
    """Whether a reduction is a maximum or minimum that looks for NaNs beside."""
    return f.kind in ("max", "min") and is_floating(f.target.type)


def partial(f: Accumulate) -> ValueType | Named:
    """Return the type of partial results: keys order all integers alike, so that a vector instruction compares them, and no
    compiler vectorises what is stored as `bool`."""
    of = f.target.type
    if of is DType.BOOL:
        return DType.UINT8
    return Named("opc::key", (of,)) if f.kind in ("max", "min") and not is_extreme(f) else of


def parameter(f: Accumulate) -> Named | ReferenceType:
    """Return the type of a partial result as a parameter of a step."""
    of = partial(f)
    return Named("opc::extreme", (f"opc::joins_{f.kind}", of)) if is_extreme(f) else ReferenceType(of)


def reduction_type(f: Accumulate, lanes: Expr) -> Named:
    """Return the type of a reduction with so many partial results."""
    return Named("opc::row_extreme" if is_extreme(f) else "opc::row_reduction", (f"opc::joins_{f.kind}", partial(f), lanes))


def taken(body: Body, fresh: Callable[[str], str]) -> Body:
    """Return the body of a loop whose reductions take values into partial results that are parameters."""
    found: list[Statement] = []
    for s in body:
        if not isinstance(s, Accumulate) or s.target.index is not None or s.kind in ("sum", "prod"):
            found.append(s)
        elif is_extreme(s):
            found.append(Do(call(f"{s.target.name}.take", As(s.value, s.target.type))))
        elif s.kind in ("any", "all"):
            found.append(replace(s, by="bits"))
        else:
            here, own = fresh(f"{s.target.name}_here"), ref(s.target.name)
            better = Call("gt" if s.kind == "max" else "lt", (ref(here), own), DType.BOOL)
            found.append(Let(here, Named("auto"), call(f"{s.kind}_key", As(s.value, s.target.type))))
            found.append(Store(own, IntegerChoice(better, ref(here), own)))
    return tuple(found)
