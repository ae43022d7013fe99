"""Reductions, searches and additions of vector loops in terms of plain statements and the runtime's intrinsics.

A value that a whole loop adds to is carried by a variable of the loop's own, which the compiler keeps one of for each lane.
"""

from __future__ import annotations

from collections.abc import Callable

from opc.ir.dtypes import DType, ValueType, Weak
from opc.ir.expr import Call, Const, Expr, Select
from opc.loops.nodes import (
    Accumulate,
    Body,
    Do,
    How,
    If,
    Let,
    LocalFunction,
    Loop,
    Search,
    Statement,
    Store,
    Var,
    bodies,
    with_bodies,
)
from opc.loops.values import Address, Construct, IntegerChoice, Load, Local, Named, Product, Word, call, ref
from opc.records import replace

_START: dict[str, int | bool] = {"sum": 0, "prod": 1, "any": False, "all": True}


def expand(body: Body, fresh: Callable[[str], str]) -> Body:
    """Return a body in which every loop carries out its reductions; `fresh` names new variables."""
    found: list[Statement] = []
    for s in body:
        if isinstance(s, Loop) and len(s.body) == 1 and isinstance(s.body[0], Accumulate | Search):
            found += _loop(s, s.body[0], fresh)
        elif isinstance(s, Accumulate) and s.by == "atomic":
            found.append(If(_SHARED, (_atomic(s),), (replace(s, by=""),)))
        else:
            found.append(with_bodies(s, tuple(expand(b, fresh) for b in bodies(s))))
    return tuple(found)


_SHARED = Word("nest.shared")
"""Whether several threads add to the same elements."""


def _atomic(s: Accumulate) -> Do:
    return Do(call("add_shared", s.target, Construct(s.target.type, s.value)))


def _loop(loop: Loop, take: Accumulate | Search, fresh: Callable[[str], str]) -> Body:
    if isinstance(take, Search):
        return _search(loop, take, fresh)
    if take.by == "products":
        return (_products(loop, take),)
    if take.by == "atomic":
        alone = replace(loop, body=(replace(take, by=""),))
        return (If(_SHARED, (replace(loop, how=How.LANES, body=(_atomic(take),)),), (alone,)),)
    if take.target.index is not None or loop.how is How.LANES:
        return (loop,)
    return _reduction(loop, take, fresh)


def _reduction(loop: Loop, take: Accumulate, fresh: Callable[[str], str]) -> Body:
    """Return a loop that takes all its values into one variable."""
    kind, of, part = take.kind, take.target.type, fresh("part")
    carried = replace(loop, how=How.REDUCTION, carried=part, carried_kind=kind)
    if kind not in ("max", "min"):
        own = Local(part, of)
        inner = replace(carried, body=(Accumulate(own, kind, take.value),))
        return Var(part, of, Const(_START[kind], of)), inner, Accumulate(take.target, kind, own)
    # Keys order all values, NaN among them, as integers, which a vector instruction compares.
    key, auto = fresh("key"), Named("auto")
    better = Call("gt" if kind == "max" else "lt", (ref(key), ref(part)), DType.BOOL)
    body: Body = (
        Let(key, auto, call(f"{kind}_key", Construct(of, take.value))),
        Store(Local(part, Weak.INT), IntegerChoice(better, ref(key), ref(part))),
    )
    found = call("key_value", ref(part), type=of, types=(of,))
    return (
        Var(part, auto, call(f"{kind}_identity", types=(of,))),
        replace(carried, body=body),
        Accumulate(take.target, kind, found),
    )


def _products(loop: Loop, take: Accumulate) -> Statement:
    """Return the adding of products of elements of two rows; of other values, where counterparts are padded, there are few."""
    match take.value:
        case Call(fn="mul", args=(Load() as a, Load() as b)):
            args = (x for e in (a, b) for x in (Address(e.view, e.offset), _step(e)))
            return Do(call("add_products", ref(take.target.name), *args, loop.low, loop.high))
        case _:
            rest = Accumulate(replace(take.target, member="rest"), "sum", take.value)
            return replace(loop, how=How.LANES, body=(rest,))


def _step(e: Load) -> Expr:
    """Return how far apart the elements of neighbouring lanes are."""
    match e.along:
        case Product(factors=(_, step)):
            return step
        case _:
            return call("constant", types=("1",))


def _is_better(kind: str, here: Expr, best: Expr) -> Expr:
    """Return whether a value comes before the best, which NaN does once."""
    no_better = Call("le" if kind == "max" else "ge", (here, best), DType.BOOL)
    number_so_far = Call("eq", (best, best), DType.BOOL)
    return Call("and", (Call("not", (no_better,), DType.BOOL), number_so_far), DType.BOOL)


def _search(loop: Loop, s: Search, fresh: Callable[[str], str]) -> Body:
    of, position = s.best.type, Named("position")
    if s.best.index is None:
        return _search_row(loop, s, fresh, of)
    here, better = fresh("here"), fresh("better")
    value, is_better = Local(here, of), Local(better, DType.BOOL)
    body: Body = (
        Let(here, of, s.value),
        Let(better, DType.BOOL, _is_better(s.kind, value, s.best)),
        Store(s.best, Select(is_better, value, s.best, of)),
        *(Store(p, IntegerChoice(is_better, Construct(position, n), p)) for p, n in zip(s.positions, s.numbers, strict=True)),
    )
    return (replace(loop, body=body),)


def _search_row(loop: Loop, s: Search, fresh: Callable[[str], str], of: ValueType) -> Body:
    """Return the search of a row, whose values and their positions are functions of the lane."""
    numbers, values, better = fresh("number_of"), fresh("value_of"), fresh("is_better")
    here, best = fresh("here"), fresh("best")
    lane = ("int64_t", loop.index)
    (number_here,) = s.numbers
    (found,) = s.positions
    compared = _is_better(s.kind, Local(here, of), Local(best, of))
    args = loop.low, loop.high, ref(s.best.name), ref(found.name), ref(numbers), ref(values), ref(better)
    return (
        LocalFunction(numbers, (lane,), (), number_here),
        LocalFunction(values, (lane,), (), s.value, of),
        LocalFunction(better, ((of, here), (of, best)), (), compared),
        Do(call("search_row", *args, types=(of, Named("position")))),
    )
