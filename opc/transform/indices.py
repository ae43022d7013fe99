"""Index variables: fresh names, capture-avoiding substitution, and the loops around an expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from opc.ir.affine import Affine, Atom, Dim, FloorDiv, Index, Mod, Symbol
from opc.ir.dtypes import DType, Weak, is_floating
from opc.ir.expr import (
    NOTHING,
    REDUCTION,
    Axis,
    Call,
    Cast,
    Expr,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    ReduceAxis,
    asked_for,
    children,
    free_groups,
    free_indices,
    has_reduction,
    operands_read,
    rewrite,
    traits,
    with_children,
    with_indices,
)
from opc.ir.node import memoised, remembered
from opc.ir.op import Assign, DimSpec, Group, Op, Operand
from opc.records import replace
from opc.transform.scalar import COMPARES, index_value, raw

INDEX_NAMES = "ijklmnpqrstuvw"
"""Short names for index variables that a transformation introduces."""


class Namer:
    """Hands out names that nothing else in the op has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)

    def fresh(self, *wanted: str) -> str:
        """Return the first wanted name that is free, else the last one with a number, and take it."""
        for name in wanted:
            if name not in self.taken:
                self.taken.add(name)
                return name
        n = 2
        while f"{wanted[-1]}{n}" in self.taken:
            n += 1
        self.taken.add(f"{wanted[-1]}{n}")
        return f"{wanted[-1]}{n}"


@remembered("_names")
def op_names(op: Op) -> frozenset[str]:
    """Return every name an index variable or a new operand must keep clear of: operands, attributes, dimensions, types."""
    return _names(op, op.operands)


def _names(op: Op, operands: Sequence[Operand]) -> frozenset[str]:
    names = {o.name for o in operands}
    names |= {a.name for a in op.attributes} | {t.name for t in op.types} | {name for name, _ in op.dims}
    return frozenset(names).union(*(_dim_names(o.dims) for o in operands))


@memoised
def _dim_names(dims: tuple[DimSpec, ...]) -> frozenset[str]:
    """Return the names of the groups and dimensions in a shape."""
    sizes = [d.name for d in dims if isinstance(d, Group)]
    return frozenset(sizes).union(*([a.name for a in d.atoms() if isinstance(a, Dim)] for d in dims if isinstance(d, Affine)))


@remembered("_bound")
def bound_indices(e: Expr) -> frozenset[str]:
    """Return the index variables that reductions in `e` bind."""
    if not traits(e) & REDUCTION:
        return NOTHING
    own = [a.index for a in e.axes if isinstance(a, Axis)] if isinstance(e, Reduce) else ()
    return NOTHING.union(own, *map(bound_indices, children(e)))


def statement_indices(s: Assign) -> Set[str]:
    """Return every index variable of a statement, bound by the target or by a reduction."""
    return {i for i in s.indices if isinstance(i, str)} | bound_indices(s.value)


def statement_names(op: Op, s: Assign) -> frozenset[str]:
    """Return every name that something new in one statement must keep clear of, whatever stands around it."""
    operands = [op.operand(name) for name in (s.target, *operands_read(s.value), *asked_for(s.value))]
    return _names(op, operands) | statement_indices(s)


@remembered("_indices")
def index_names(op: Op) -> frozenset[str]:
    """Return every index variable of the op's body."""
    return NOTHING.union(*(statement_indices(s) for s in op.body))


def substitute(e: Expr, values: Mapping[str, Affine]) -> Expr:
    """Return `e` with free index variables replaced by affine expressions; what would capture them is renamed."""
    values = {name: v for name, v in values.items() if v.index != name}
    return _substituted(e, values) if values else e


def _substituted(e: Expr, values: Mapping[str, Affine]) -> Expr:
    if free_indices(e).isdisjoint(values):
        return e
    if isinstance(e, Reduce):
        inner = dict(values)
        incoming: set[str] = set().union(*(v.indices() for v in values.values()))
        namer = Namer(incoming | bound_indices(e) | free_indices(e) | values.keys())
        axes: list[ReduceAxis] = []
        for a in e.axes:
            if not isinstance(a, Axis):
                axes.append(a)
                continue
            inner.pop(a.index, None)
            name = namer.fresh(*INDEX_NAMES) if a.index in incoming else a.index
            if name != a.index:
                inner[a.index] = Affine.of(Index(name))
            # The extent may use variables bound outside, and axes of the same reduction before this one.
            axes.append(Axis(name, _replace(a.extent, inner)))
        return Reduce(e.kind, tuple(axes), substitute(e.body, inner), e.type, e.span)
    if isinstance(e, IndexValue):
        return IndexValue(_replace(e.value, values), e.span)
    rebuilt = with_children(e, tuple(_substituted(c, values) for c in children(e)))
    if isinstance(rebuilt, Read):
        return with_indices(rebuilt, tuple([_replace(i, values) if isinstance(i, Affine) else i for i in rebuilt.indices]))
    return rebuilt


def _replace(a: Affine, values: Mapping[str, Affine]) -> Affine:
    def value(symbol: Symbol) -> Affine | None:
        return values.get(symbol.name) if isinstance(symbol, Index) else None

    return a.substitute(value)


def store_values(e: Expr, values: Mapping[str, Expr]) -> Expr | None:
    """Return `e` with free index variables replaced by integer expressions that may depend on data.

    None where the notation has no place for them: in the extent of a reduction, in a condition of sizes, and as a value of
    arithmetic that is not of whole numbers.
    """
    if not values.keys() & free_indices(e):
        return e
    match e:
        case IndexValue():
            return None
        case Call(fn=fn) if fn in COMPARES:
            args = tuple(_value(a.value, values) if isinstance(a, IndexValue) else store_values(a, values) for a in e.args)
            known = tuple(a for a in args if a is not None)
            if len(known) < len(args):
                return None
            stored = any(isinstance(a, IndexValue) and a.value.indices() & values.keys() for a in e.args)
            return _compared(e, known) if stored else replace(e, args=known)
        case Cast(arg=IndexValue(value=value)):
            return replace(e, arg=_value(value, values))
        case Reduce():
            bound = set(e.extents)
            inner = {n: v for n, v in values.items() if n not in bound}
            rebound = {a.name for a in e.axes if not isinstance(a, Axis)}
            captured = any(bound & free_indices(v) or rebound & free_groups(v) for v in inner.values())
            if captured or any(isinstance(a, Axis) and a.extent.indices() & inner.keys() for a in e.axes):
                return None
            body = store_values(e.body, inner)
            return None if body is None else replace(e, body=body)
        case _:
            parts = tuple(store_values(c, values) for c in children(e))
            found = tuple(c for c in parts if c is not None)
            if len(found) < len(parts):
                return None
            e = with_children(e, found)
            if isinstance(e, Read):
                own = values.keys()
                indices = tuple(_value(i, values) if isinstance(i, Affine) and i.indices() & own else i for i in e.indices)
                e = replace(e, indices=indices)
            return e


def _compared(e: Call, args: tuple[Expr, ...]) -> Expr | None:
    """Return a comparison with data in place of an index, None beside a fraction without a type: data does not take one."""
    return None if any(a.type is Weak.FLOAT for a in args) else replace(e, args=comparable(args))


def comparable(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the arguments of a comparison in which data may stand in place of an index: it is cast to the type of a fraction
    beside it, which an index takes by itself; beside a fraction without a type, to float64."""
    floating = next((DType.FLOAT64 if a.type is Weak.FLOAT else a.type for a in args if is_floating(a.type)), None)
    if floating is None:
        return args
    return tuple(a if isinstance(a.type, Weak) or is_floating(a.type) else Cast(a, floating) for a in args)


def _value(a: Affine, values: Mapping[str, Expr]) -> Expr:
    """Return an integer expression as a value, with index variables replaced."""
    plain, total = Affine.of(0), None
    for monomial, coefficient in a.terms:
        if not Affine(((monomial, 1),)).indices() & values.keys():
            plain = plain + Affine(((monomial, coefficient),))
            continue
        term: Expr | None = None
        rest = Affine.of(abs(coefficient))
        for atom in monomial:
            factor = _atom(atom, values)
            if factor is None:
                rest = rest * atom
            else:
                term = factor if term is None else raw("mul", term, factor)
        if term is None:
            raise AssertionError("the term holds an index that is replaced")
        if rest != Affine.of(1):
            term = raw("mul", term, index_value(rest))
        if total is None:
            total = term if coefficient > 0 else raw("neg", term)
        else:
            total = raw("add" if coefficient > 0 else "sub", total, term)
    if total is None:
        return index_value(plain)
    if plain.constant == 0:
        return total
    if all(c < 0 for _, c in plain.terms):
        return raw("sub", total, index_value(-plain))
    return raw("add", total, index_value(plain))


def _atom(atom: Atom, values: Mapping[str, Expr]) -> Expr | None:
    """Return an atom as a value where it holds an index that is replaced, else None."""
    if isinstance(atom, FloorDiv | Mod):
        if not Affine.of(atom).indices() & values.keys():
            return None
        fn = "floordiv" if isinstance(atom, FloorDiv) else "mod"
        return raw(fn, _value(atom.numerator, values), _value(atom.denominator, values))
    return values.get(atom.name) if isinstance(atom, Index) else None


def rename(e: Expr, names: Mapping[str, str]) -> Expr:
    """Return `e` with free index variables renamed."""
    return substitute(e, {old: Affine.of(Index(new)) for old, new in names.items()})


def rename_bound(e: Expr, namer: Namer) -> Expr:
    """Return `e` with every index variable that a reduction binds given a name `namer` has not handed out yet."""
    free = free_indices(e)
    namer.taken |= free
    return _renamed(e, namer, free | bound_indices(e))


def _renamed(e: Expr, namer: Namer, used: frozenset[str]) -> Expr:
    """As `rename_bound`; a new name must not be one of `used` either, since a reduction around `e` may bind that."""
    if not has_reduction(e):
        return e
    new = with_children(e, tuple(_renamed(c, namer, used) for c in children(e)))
    if not isinstance(new, Reduce):
        return new
    names: dict[str, str] = {}
    for a in new.axes:
        if isinstance(a, Axis):
            wanted = a.index if a.index not in namer.taken else Namer(namer.taken | used).fresh(*INDEX_NAMES)
            namer.taken.add(wanted)
            names[a.index] = wanted
    values = {old: Affine.of(Index(n)) for old, n in names.items()}
    axes = tuple(Axis(names[a.index], _replace(a.extent, values)) if isinstance(a, Axis) else a for a in new.axes)
    return Reduce(new.kind, axes, substitute(new.body, values), new.type, new.span)


def with_operands(e: Expr, names: Mapping[str, str]) -> Expr:
    """Return `e` with other operands, of the same types and axes, read in place of some, which `names` has by name."""
    if operands_read(e).isdisjoint(names):
        return e
    return rewrite(e, lambda x: replace(x, operand=names[x.operand]) if isinstance(x, Read) and x.operand in names else x)


def rename_operands(op: Op, names: Mapping[str, str]) -> Op:
    """Return the op with operands renamed in declarations and in the body; no new name may be in use."""
    if not names:
        return op

    def rule(e: Expr) -> Expr:
        match e:
            case Read() | Present():
                return replace(e, operand=names.get(e.operand, e.operand))
            case _:
                return e

    def operands(group: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(replace(o, name=names.get(o.name, o.name)) for o in group)

    body = tuple(replace(s, target=names.get(s.target, s.target), value=rewrite(s.value, rule)) for s in op.body)
    return replace(op, inputs=operands(op.inputs), outputs=operands(op.outputs), temporaries=operands(op.temporaries), body=body)


def bare(indices: Iterable[str | GroupRef]) -> tuple[Affine | GroupRef, ...]:
    """Return the indices of an assignment's target as the indices of a read."""
    return tuple(Affine.of(Index(i)) if isinstance(i, str) else i for i in indices)
