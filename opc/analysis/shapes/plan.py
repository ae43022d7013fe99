"""Plans how a call of an op is checked and its sizes are bound; `opc.analysis.shapes.steps` says what the steps are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from opc.analysis.shapes.steps import (
    Among,
    Around,
    AxisMatch,
    BindType,
    Bound,
    BroadcastGroup,
    CheckAttribute,
    CheckCondition,
    DeriveDim,
    GroupKey,
    GroupLength,
    MatchDim,
    MatchGroup,
    MatchOperand,
    MatchSize,
    MatchType,
    NeedOne,
    PlaceAxis,
    Rest,
    Same,
    ShapePlan,
    SizeOutput,
    SkipAxis,
    Step,
    TypeName,
    Unsure,
    UpTo,
    symbol_text,
)
from opc.ir.affine import Affine, AttrInt, Dim, GroupSize, Symbol
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar, Weak
from opc.ir.expr import AttrRef, Expr, IndexValue, walk
from opc.ir.node import remembered
from opc.ir.op import Attribute, AttributeKind, DimSpec, Group, Op, Operand
from opc.ir.placing import placing, splits


class UndeterminedError(ValueError):
    """Some of an op's sizes or types cannot be told from its inputs; `symbols` names them."""

    def __init__(self, op: Op, symbols: tuple[str, ...]) -> None:
        self.symbols = symbols
        super().__init__(f"{op.name}: the inputs do not determine {', '.join(symbols)}")


def group_key(group: Group) -> GroupKey:
    """Return the key of a group in an environment."""
    return group.name, group.of


@remembered("_symbols")
def symbols_of(e: Expr) -> frozenset[Symbol]:
    """Return the dimensions, group sizes and integer attributes that a condition's index values use."""
    return frozenset(s for node in walk(e) if isinstance(node, IndexValue) for s in node.value.atoms())


def shown_symbols(e: Expr) -> list[Symbol]:
    """Return the whole numbers that a condition compares, by name: a message that it fails shows their values."""
    attributes = {AttrInt(a.name, a.element) for a in walk(e) if isinstance(a, AttrRef) and a.type is Weak.INT}
    return sorted(symbols_of(e) | attributes, key=str)


def _needs_sizes(e: Expr) -> bool:
    return any(isinstance(s, Dim | GroupSize) for s in symbols_of(e))


def undetermined(op: Op) -> tuple[str, ...]:
    """Return the dimensions, groups and types that the op's inputs do not determine; empty for a well-formed op."""
    return _planned(op)[1]


def plan(op: Op) -> ShapePlan:
    """Return the steps that check a call of `op` and bind its sizes.

    Raises:
        UndeterminedError: when the inputs do not determine every size and type that the op's outputs and temporaries use.
    """
    result, missing = _planned(op)
    if missing:
        raise UndeterminedError(op, missing)
    return result


@remembered("_plan")
def _planned(op: Op) -> tuple[ShapePlan, tuple[str, ...]]:
    """Return the plan of an op and what it could not determine: every call asks for it, and so do all backends."""
    return _Planner(op).run()


class _Planner:
    """Builds the plan of one op, keeping track of what is bound so far."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.steps: list[Step] = []
        self.dims: dict[str, Bound] = {}
        self.groups: dict[GroupKey, Bound] = {}
        self.types: dict[str, Bound] = {}
        self.placed: dict[str, Bound] = {}
        self.axes = {a.dim: a for a in op.attributes if a.kind is AttributeKind.AXIS and a.dim is not None and a.among is None}
        self.binders: dict[Unsure, list[str]] = {}
        self.derived = dict(op.dims)

    def run(self) -> tuple[ShapePlan, tuple[str, ...]]:
        """Return the plan and what it could not determine."""
        self._attributes()
        self._types()
        missing = self._operands()
        self._broadcast()
        missing += self._needed()
        self._derive()
        self._outputs()
        dims = (*self.dims, *self.derived)
        return ShapePlan(self.op, tuple(self.steps), dims, tuple(self.groups)), tuple(dict.fromkeys(missing))

    def _derive(self) -> None:
        """Derive sizes, and check each condition as soon as those it uses are known: it says more than that a size is below 0."""
        checks = [a for a in self.op.attributes if a.check is not None and _needs_sizes(a.check)]
        conditions = [CheckCondition(a.check, a.check_text, a) for a in checks if a.check is not None]
        conditions += [CheckCondition(r.condition, r.text) for r in self.op.require]
        unknown, texts = set(self.derived), dict(self.op.rules)
        for name, size in self.op.dims:
            conditions = self._check(conditions, unknown)
            self.steps.append(DeriveDim(name, size, texts.get(name, str(size))))
            unknown.discard(name)
        self._match_sizes()
        self._check(conditions, unknown)

    def _check(self, conditions: list[CheckCondition], unknown: Collection[str]) -> list[CheckCondition]:
        """Check the conditions that use none of the unknown sizes; return the others."""
        waiting = [c for c in conditions if any(isinstance(s, Dim) and s.name in unknown for s in symbols_of(c.condition))]
        self.steps += [c for c in conditions if c not in waiting]
        return waiting

    def _attributes(self) -> None:
        self.steps += [CheckAttribute(a) for a in self.op.attributes]
        for a in self.op.attributes:
            if a.check is not None and not _needs_sizes(a.check):
                self.steps.append(CheckCondition(a.check, a.check_text, a))

    def _types(self) -> None:
        variables = {t.name: t for t in self.op.types}
        for a in self.op.attributes:
            if a.binds is not None:
                self.steps.append(BindType(a, variables[a.binds]))
                self.types[a.binds] = Bound.YES
        for operand in self.op.inputs:
            if isinstance(operand.type, TypeVar):
                known = self.types.get(operand.type.name, Bound.NO)
                self.steps.append(MatchType(operand, known))
                self.types[operand.type.name] = _bound(known, operand)
                self.binders.setdefault(TypeName(operand.type.name), []).append(operand.name)
        for operand in self.op.inputs:
            if not isinstance(operand.type, TypeVar):
                name = _variable(operand.type)
                self.steps.append(MatchType(operand, Bound.YES if name is None else self.types.get(name, Bound.NO)))

    def _operands(self) -> list[str]:
        """Match the inputs in order, but an input whose groups' ranks a later one determines after that one.

        Those that tell in each call where listed axes stand come first.
        """
        how = arrangement(self.op)
        waiting = sorted(self.op.inputs, key=lambda o: how is None or o.optional or not how.is_mixed(o))
        while waiting:
            ready = next((o for o in waiting if self._lengths(o) is not None), None)
            if ready is None:
                return [f"the ranks of {o.name}'s groups" for o in waiting]
            waiting.remove(ready)
            self._operand(ready)
        return []

    def _lengths(self, operand: Operand) -> list[GroupLength] | None:
        """Return how many axes each group of the operand takes, or None when that is not known yet."""
        dims = operand.dims
        if (how := arrangement(self.op)) is not None and how.is_mixed(operand):
            return [Among(how.axes, d.name == how.picked) for d in dims if isinstance(d, Group)]
        if how is not None and how.keeps is not None and how.is_thinned(operand):
            return [Around(how.axes, how.keeps)]
        positions = [i for i, d in enumerate(dims) if isinstance(d, Group)]
        split = splits(self.op).get(operand)
        lengths: list[GroupLength] = []
        for n, i in enumerate(positions):
            following = positions[n + 1] if n + 1 < len(positions) else None
            if following is None:
                lengths.append(Rest(len(dims) - i - 1))
                continue
            placed = next((j for j in range(i + 1, following) if self._axis(dims[j]) is not None), None)
            after = sum(not isinstance(d, Group) for d in dims[i:])
            attribute = None if placed is None else self._axis(dims[placed])
            if split is not None and i < split[1] <= following:
                attribute, placed = split
            told = self.groups.get(group_key(_as_group(dims[i]))) is Bound.YES
            # Where the input is the first to tell where the axis stands, that is held against what is known of the group.
            if placed is not None and attribute is not None and (not told or self._counts(operand, attribute)):
                lengths.append(UpTo(attribute.name, placed - i - 1, after))
            elif told:
                lengths.append(Same(after))
            else:
                behind = tuple(group_key(_as_group(dims[j])) for j in positions[n + 1 :])
                if not all(self.groups.get(key) is Bound.YES for key in behind):
                    return None
                lengths.append(Rest(after, behind))
        return lengths

    def _counts(self, operand: Operand, attribute: Attribute) -> bool:
        """Whether an axis attribute is first counted among the axes of an input."""
        known = self.placed.get(attribute.name, Bound.NO)
        return known is not Bound.YES and any(place.operand is operand for place in placing(self.op, attribute))

    def _axis(self, dim: DimSpec) -> Attribute | None:
        """Return the axis attribute that places this dimension, if one does."""
        name = _dim_name(dim)
        return None if name is None else self.axes.get(name)

    def _operand(self, operand: Operand) -> None:
        lengths = self._lengths(operand) or []
        places = self._places(operand)
        axes: list[AxisMatch] = []
        how, slots = arrangement(self.op), iter(range(len(operand.dims)))
        slotted = how is not None and bool(how.slots) and how.is_mixed(operand)
        for dim in operand.dims:
            name = _dim_name(dim)
            if isinstance(dim, Group):
                key = group_key(dim)
                known = self.groups.get(key, Bound.NO)
                axes.append(MatchGroup(key, lengths.pop(0), known))
                self.groups[key] = _bound(known, operand)
                self.binders.setdefault(key, []).append(operand.name)
            elif name is not None and name not in self.derived:
                known = self.dims.get(name, Bound.NO)
                axes.append(MatchDim(name, known, next(slots) if slotted else None))
                self.dims[name] = _bound(known, operand)
                self.binders.setdefault(name, []).append(operand.name)
            else:
                axes.append(SkipAxis(dim))
        fixed = sum(not isinstance(d, Group) for d in operand.dims)
        exact = fixed == len(operand.dims)
        self.steps.append(MatchOperand(operand, fixed, exact, places, tuple(axes)))

    def _places(self, operand: Operand) -> tuple[PlaceAxis, ...]:
        places = []
        for attribute in self.axes.values():
            known = self.placed.get(attribute.name, Bound.NO)
            place = next((p for p in placing(self.op, attribute) if p.operand is operand), None)
            if place is None or known is Bound.YES:
                continue
            before, after = (sum(not isinstance(d, Group) for d in side) for side in (place.before, place.after))
            places.append((place.entry, PlaceAxis(attribute, before, after, known, place.adds)))
            self.placed[attribute.name] = _bound(known, operand)
        return tuple(place for _, place in sorted(places, key=lambda p: p[0]))

    def _broadcast(self) -> None:
        if not self.op.broadcast:
            return
        for name in dict.fromkeys(name for name, of in self.groups):
            sources = tuple(k for k in self.groups if k[0] == name and k[1] is not None)
            known = self.groups.get((name, None), Bound.NO)
            if sources:
                self.steps.append(BroadcastGroup(name, sources, known))
            if any(self.groups[s] is Bound.YES for s in sources):
                self.groups[(name, None)] = Bound.YES
            elif sources and known is Bound.NO:
                self.groups[(name, None)] = Bound.MAYBE

    def _needed(self) -> list[str]:
        """Ask for what rules and required outputs use; return what nothing binds."""
        entries: list[DimSpec] = [size for _, size in self.op.dims]
        conditions = [r.condition for r in self.op.require]
        conditions += [a.check for a in self.op.attributes if a.check is not None]
        entries += [Affine.of(s) for c in conditions for s in sorted(symbols_of(c), key=str)]
        used: list[Unsure] = [s for entry in entries for s in _symbols(entry)]
        used += [s for o in self.op.outputs if not o.optional for s in _operand_symbols(o)]
        self.steps += self._unsure(used)
        used += [s for o in (*self.op.outputs, *self.op.inputs, *self.op.temporaries) for s in _operand_symbols(o)]
        return [symbol_text(s) for s in dict.fromkeys(used) if self._known(s) is Bound.NO]

    def _unsure(self, symbols: Iterable[Unsure]) -> list[NeedOne]:
        """Return what must be given so that each of these symbols is bound."""
        unsure = [s for s in dict.fromkeys(symbols) if self._known(s) is Bound.MAYBE]
        needs = [NeedOne(s, tuple(dict.fromkeys(self._binders(s)))) for s in unsure]
        # The operands that tell a size tell the type too, most often.
        sized = {n.operands for n in needs if not isinstance(n.symbol, TypeName)}
        return [n for n in needs if not (isinstance(n.symbol, TypeName) and n.operands in sized)]

    def _binders(self, symbol: Unsure) -> list[str]:
        if isinstance(symbol, tuple) and symbol[1] is None:
            return [
                name for key, names in self.binders.items() if isinstance(key, tuple) and key[0] == symbol[0] for name in names
            ]
        return self.binders[symbol]

    def _known(self, symbol: Unsure) -> Bound:
        match symbol:
            case TypeName():
                only = any(t.name == symbol.name and len(t.dtypes) == 1 for t in self.op.types)
                return Bound.YES if only else self.types.get(symbol.name, Bound.NO)
            case str():
                return Bound.YES if symbol in self.derived else self.dims.get(symbol, Bound.NO)
            case _:
                return self.groups.get(symbol, Bound.NO)

    def _outputs(self) -> None:
        for operand in self.op.outputs:
            needs = self._unsure(_operand_symbols(operand)) if operand.optional else []
            self.steps.append(SizeOutput(operand, tuple(needs)))

    def _match_sizes(self) -> None:
        for operand in self.op.inputs:
            groups = [i for i, d in enumerate(operand.dims) if isinstance(d, Group)]
            for i, dim in enumerate(operand.dims):
                name = _dim_name(dim)
                if isinstance(dim, Group) or (name is not None and name not in self.derived):
                    continue
                before = [d for d in operand.dims[:i] if isinstance(d, Group)]
                if 0 < len(before) < len(groups):
                    keys = tuple(group_key(g) for g in before)
                    self.steps.append(MatchSize(operand, i - len(before), dim, keys))
                    continue
                # Counted from the end where a group stands before the axis.
                self.steps.append(MatchSize(operand, i - len(operand.dims) if before else i, dim))


def _bound(known: Bound, operand: Operand) -> Bound:
    """Return what is known of a symbol after `operand` used it."""
    return known if known is Bound.YES else Bound.MAYBE if operand.optional else Bound.YES


def _dim_name(dim: DimSpec) -> str | None:
    atom = None if isinstance(dim, Group) else dim.single
    return atom.name if isinstance(atom, Dim) else None


def _as_group(dim: DimSpec) -> Group:
    if not isinstance(dim, Group):
        raise TypeError(f"{dim} is no group")
    return dim


def _variable(t: ElementType) -> str | None:
    match t:
        case TypeVar():
            return t.name
        case Acc(of=TypeVar() as variable):
            return variable.name
        case Acc() | DType():
            return None


def _operand_symbols(operand: Operand) -> Iterator[Unsure]:
    """Yield the dimensions, groups and type variable that an operand's declaration uses."""
    for dim in operand.dims:
        yield from _symbols(dim)
    name = _variable(operand.type)
    if name is not None:
        yield TypeName(name)


def _symbols(entry: DimSpec) -> Iterator[str | GroupKey]:
    """Yield the dimensions and groups that one entry of a shape uses."""
    if isinstance(entry, Group):
        yield group_key(entry)
        return
    for atom in sorted(entry.atoms(), key=str):
        if isinstance(atom, Dim):
            yield atom.name
        elif isinstance(atom, GroupSize):
            yield atom.name, None
