"""Contractions: sums of products in which one factor varies along rows of the result and the other along columns.

Matrix products, linear layers, convolutions and their gradients are of this kind. `extract` makes each such sum a statement of
its own, or leaves it in one that only does something with the sum at each point; `contraction_stage` recognises these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opc.analysis.bounds.inside import ReadsInside
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, ElementType, ValueType, Weak, is_floating
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupIndex,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    conjuncts,
    free_groups,
    free_indices,
    has_reduction,
    reads,
    rewrite,
    walk,
    with_children,
)
from opc.ir.op import Assign, DimSpec, Group, Op, Operand
from opc.lower.alone import literals, of_statement
from opc.lower.contractions.factors import is_zero, window_of
from opc.lower.contractions.narrow import as_stored, magnitude, narrow
from opc.lower.contractions.terms import Shape, is_invariant, multiplicands, terms_of, two_groups
from opc.lower.loop_ir import ContractionStage, Pass, RowStage, RowStore, StageOperand, Term
from opc.records import dataclass, replace
from opc.transform.indices import Namer, bare, index_names, op_names, substitute


def extract(op: Op) -> Op:
    """Return the op with each contraction as a statement of its own, or one with an epilogue."""
    extractor = _Extractor(op)
    for assign in op.body:
        extractor.statement(assign)
    return replace(op, body=tuple(extractor.body), temporaries=(*op.temporaries, *extractor.temporaries))


def contraction_stage(op: Op, assign: Assign, name: str) -> ContractionStage | None:
    """Return a statement as a contraction with an epilogue, None when it is none."""
    if not has_reduction(assign.value):
        return None
    taken = {o.name for o in op.operands} | {a.name for a in op.attributes}
    found = _contraction(op, assign, Namer(taken).fresh(f"{assign.target}_sum"))
    return None if found is None else replace(found, name=name, epilogue=replace(found.epilogue, name=name))


@of_statement
def _contraction(op: Op, assign: Assign, total: str) -> ContractionStage | None:
    """Return a statement as a contraction without a name, whose sum is called `total`; None when it is none."""
    found = _sums(op, assign)
    if len(found) != 1:
        return None
    ((place, _, terms),) = found
    value = _replaced(assign.value, {id(place): Read(total, (), place.type)})
    body = _epilogue(op, assign, value, total)
    if body is None:
        return None
    value, others = body
    target = op.operand(assign.target)
    outputs = {o.name for o in op.outputs}
    inputs = {o.name for o in op.inputs}

    def operand(n: str, written: bool = False) -> StageOperand:
        kind = "input" if n in inputs else "output" if n in outputs else "temporary"
        return StageOperand(n, kind, op.operand(n).type, (), True, written)

    operands = (StageOperand(total, "sum", place.type, (), True), *(operand(n) for n in others), operand(assign.target, True))
    store = RowStore(assign.target, target.type, value, replace(assign, value=_named(assign.value, place, total)))
    epilogue = RowStage("", (), (), False, operands, (Pass((), (store,)),), (), {})
    places = (*others.items(), (assign.target, bare(assign.indices)))
    return ContractionStage("", assign, total, place.type, terms, epilogue, places)


@dataclass(slots=True)
class _Extractor:
    op: Op
    body: list[Assign]
    temporaries: list[Operand]
    namer: Namer
    made: dict[tuple[object, ...], str]
    """The factors that have been stored, by what they hold."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.body = []
        self.temporaries = []
        self.namer = Namer(op_names(op) | index_names(op))
        self.made = {}

    def statement(self, assign: Assign) -> None:
        """Append a statement, after those of its contractions."""
        if not has_reduction(assign.value):
            self.body.append(assign)
            return
        assign = replace(assign, value=self._stored(_merged(self.op, assign, assign.value), assign))
        assign = self._chosen(assign)
        if contraction_stage(self.op, assign, assign.target) is None:
            here: dict[int, Expr] = {}
            for place, invariant, _ in _sums(self.op, assign):
                name = self.namer.fresh(f"{assign.target}_sum")
                value: Expr = place
                for c in invariant:
                    value = Select(c, value, Const(0, Weak.INT), place.type, place.span)
                dims = self.op.operand(assign.target).dims
                self._append(Operand(name, _element(place.type), dims), replace(assign, target=name, value=value))
                here[id(place)] = Read(name, bare(assign.indices), place.type, span=place.span)
            assign = replace(assign, value=_replaced(assign.value, here))
        self.body.append(assign)

    def _chosen(self, assign: Assign) -> Assign:
        """Return a statement that has a contraction at some points only, such as those below a diagonal, as a choice between its
        values, which are computed first and at all points, and the others."""
        e = assign.value
        if not isinstance(e, Select) or is_invariant(e.cond):
            return assign
        sums = _sums(self.op, assign)
        then = e.then
        for c in _invariant_part(e.cond):
            then = Select(c, then, Const(0, Weak.INT), then.type, then.span)
        whole = replace(assign, value=then)
        if len(sums) != 1 or sums[0][0] not in walk(e.then) or contraction_stage(self.op, whole, assign.target) is None:
            return assign
        name = self.namer.fresh(f"{assign.target}_all")
        self._append(Operand(name, _element(e.type), self.op.operand(assign.target).dims), replace(whole, target=name))
        return replace(assign, value=replace(e, then=Read(name, bare(assign.indices), e.type)))

    def _append(self, operand: Operand, assign: Assign) -> None:
        self.temporaries.append(operand)
        self.body.append(assign)
        self.op = replace(self.op, temporaries=(*self.op.temporaries, operand))

    def _stored(self, e: Expr, assign: Assign) -> Expr:
        """Return `e` with the factors of its contractions that are no reads stored as temporaries first."""
        match e:
            case Reduce(kind="sum") if is_floating(e.type) or e.type is DType.INT64:
                before = (self.op, list(self.body), list(self.temporaries), dict(self.made))
                stored = self._stored_terms(e.body, Shape(self.op, assign, e.axes))
                new = e if stored is None else replace(e, body=stored)
                if stored is not None and terms_of(self.op, assign, new, ()) is not None:
                    return new
                self.op, self.body, self.temporaries, self.made = before
                return e
            case Select() if not is_invariant(e.cond):
                return e
            case Reduce():
                return e
            case _:
                return with_children(e, tuple(self._stored(c, assign) for c in children(e)))

    def _stored_terms(self, e: Expr, shape: Shape) -> Expr | None:
        """Return a sum of products with all factors reads; None when it is no such sum or stays better as it is."""
        match e:
            case Call(fn="add", args=(a, b)):
                left, right = self._stored_terms(a, shape), self._stored_terms(b, shape)
                return None if left is None or right is None else replace(e, args=(left, right))
            case Reduce(kind="sum"):
                inner = self._stored_terms(e.body, Shape(self.op, shape.assign, (*shape.axes, *e.axes)))
                return None if inner is None else replace(e, body=inner)
            case Select(other=Const(value=0)) if is_invariant(e.cond) or self._names_group(e.cond):
                then = self._stored_terms(e.then, shape)
                return None if then is None else replace(e, then=then)
            case Call(fn="mul"):
                groups = two_groups(list(multiplicands(e)), shape)
                if groups is None:
                    return None
                stored = []
                own = [frozenset[str]().union(*(free_indices(a) | free_groups(a) for a in atoms)) for atoms in groups]
                both = own[0] & own[1] - {a.index if isinstance(a, Axis) else a.name for a in shape.axes}
                for atoms in groups:
                    product = atoms[0]
                    for other in atoms[1:]:
                        product = replace(e, args=(product, other))
                    whole = not is_floating(e.type)
                    as_it_is = (narrow(self.op, product) if whole else as_stored(product)) is not None
                    read = product if as_it_is else self._stored_factor(product, e.type, shape, both)
                    if read is None:
                        return None
                    stored.append(read)
                return replace(e, args=tuple(stored))
            case Select():
                # Conditions on indices stand outside a product of reads, or it is no contraction.
                return e
            case _:
                return None

    def _names_group(self, e: Expr) -> bool:
        """Whether a condition says which group a point is in."""
        asked = e.args if isinstance(e, Call) and e.fn == "eq" else ()
        return any(isinstance(a, Read) and self.op.operand(a.operand).numbers for a in asked)

    def _stored_factor(self, e: Expr, product: ValueType, shape: Shape, both: frozenset[str]) -> Expr | None:
        """Return a read of a temporary that holds `e` along the loops it varies with, in the type of the product,
        or along the axes of what it reads by windows.

        Loops of the target that `both` factors run over come first, and then the others as they lie in what it reads.

        What is made of numbers and indices alone has no type of its own: it takes that of the other factor. What is read inside
        only where the other loops run is zero elsewhere; None where that does not bound it. Whole numbers are stored as int16,
        and None where they may not fit.
        """
        most = None if is_floating(product) else magnitude(self.op, e)
        if not is_floating(product) and most is None:
            return None
        kind = _element(product if isinstance(e.type, Weak) else e.type) if most is None else DType.INT16
        made = None if most is None else self._made_narrow(e, product, most, shape)
        if made is not None:
            return made
        value = e if most is None else Cast(e, kind)
        window = window_of(self.op, value, self.namer)
        if window is not None:
            # Each element is computed once, not for every window that it is in.
            name = self.namer.fresh("factor")
            self._append(Operand(name, kind, window.dims, most=most), Assign(name, window.names, window.value, shape.assign.span))
            read = Read(name, window.indices, kind)
            return read if most is None else Cast(read, product)
        own = free_indices(e)
        groups = free_groups(e)
        across = {a.name for a in shape.axes if isinstance(a, BroadcastAxis)}
        indices: list[str | GroupRef] = []
        dims: list[DimSpec] = []
        for index, dim in shape.loops:
            if (isinstance(index, GroupRef) and index.name in groups) or index in own:
                indices.append(index)
                # Inside a sum over broadcast axes the group is the one they all broadcast to.
                dims.append(Group(index.name) if isinstance(index, GroupRef) and index.name in across else dim)
        order = _order(e, [_name(i) for i in indices], both)
        indices, dims = [indices[n] for n in order], [dims[n] for n in order]
        places = {i: Affine.of(Index(f"at {n}")) for n, i in enumerate(indices) if isinstance(i, str)}
        groups_at = tuple((n, i) for n, i in enumerate(indices) if isinstance(i, GroupRef))
        same = kind, most, groups_at, tuple(dims), substitute(value, places), literals(value)
        if same in self.made:
            read = Read(self.made[same], bare(tuple(indices)), kind)
            return read if most is None else Cast(read, product)
        name = self.namer.fresh("factor")
        self._append(Operand(name, kind, tuple(dims), most=most), Assign(name, tuple(indices), value, shape.assign.span))
        if any(ReadsInside(self.op).outside(self.body[-1])):
            runs = [Call("gt", (IndexValue(d), Const(0, Weak.INT)), DType.BOOL) for d in shape.extents.values() if d not in dims]
            for c in runs:
                value = Select(c, value, Const(0, Weak.INT), value.type)
            self.body[-1] = replace(self.body[-1], value=value)
            if any(ReadsInside(self.op).outside(self.body[-1])):
                return None
        else:
            self.made[same] = name
        read = Read(name, bare(tuple(indices)), kind)
        return read if most is None else Cast(read, product)

    def _made_narrow(self, e: Expr, product: ValueType, most: int, shape: Shape) -> Expr | None:
        """Return a read of a temporary that holds, as int16, what another temporary holds wider, in the type of the product.

        None where `e` is no such read, or the other one is made of sums. Read elsewhere too or not, it stays as it is.
        """
        while isinstance(e, Cast):
            e = e.arg
        if not isinstance(e, Read) or e.operand not in self.op.assignments or not (e.pad is None or is_zero(e.pad)):
            return None
        definition = self.op.assignments[e.operand]
        if has_reduction(definition.value):
            return None
        name = self.namer.fresh("factor")
        wide = self.op.operand(e.operand)
        value = Cast(definition.value, DType.INT16)
        self._append(Operand(name, DType.INT16, wide.dims, most=most), Assign(name, definition.indices, value, shape.assign.span))
        return Cast(replace(e, operand=name, type=DType.INT16), product)


def _order(e: Expr, names: Sequence[str], both: frozenset[str]) -> list[int]:
    """Return the positions of loops in the order in which a factor `e` is stored along them: so that what it is made of is read
    as it lies, which one operand at least is."""
    whole = max(reads(e), key=lambda r: len({_name(i) for i in r.indices} & set(names)), default=None)
    lies = [] if whole is None else [_name(i) for i in whole.indices]
    first = [n for n, name in enumerate(names) if name in both]
    rest = [n for n, name in enumerate(names) if name not in both]
    if all(names[n] in lies for n in rest):
        rest.sort(key=lambda n: lies.index(names[n]))
    return [*first, *rest]


def _name(index: object) -> str:
    return index.name if isinstance(index, GroupRef) else str(index)


def _element(t: ValueType) -> ElementType:
    """Return the type a floating value is stored as."""
    return DType.FLOAT64 if isinstance(t, Weak) else t


def _sums(op: Op, assign: Assign) -> list[tuple[Reduce, tuple[Expr, ...], tuple[Term, ...]]]:
    """Return the contractions in the value of a statement that run over all points of its target.

    With each come the conditions on the call under which it is needed.
    """
    found = []

    def visit(e: Expr, invariant: tuple[Expr, ...], lazy: bool) -> None:
        match e:
            case Reduce(kind="sum"):
                terms = terms_of(op, assign, e, invariant)
                if terms is not None and (not lazy or _reads_inside(op, assign, e, terms)):
                    found.append((e, invariant, terms))
            case Reduce():
                pass
            case Select() if is_invariant(e.cond):
                visit(e.then, (*invariant, e.cond), lazy)
                visit(e.other, (*invariant, Call("not", (e.cond,), DType.BOOL)), lazy)
            case Select():
                visit(e.then, (*invariant, *_invariant_part(e.cond)), True)
                visit(e.other, invariant, True)
            case _:
                for c in children(e):
                    visit(c, invariant, lazy)

    visit(assign.value, (), False)
    return found


def _invariant_part(cond: Expr) -> tuple[Expr, ...]:
    """Return the conditions on the call without which a condition does not hold."""
    return tuple(c for c in conjuncts(cond) if is_invariant(c))


def _reads_inside(op: Op, assign: Assign, e: Reduce, terms: tuple[Term, ...]) -> bool:
    """Whether the factors of a sum can be read at all points, also where a condition on these does not hold.

    What is padded or checked is read where it is needed alone.
    """
    if all(_is_plain(op, assign, t) for t in terms):
        return True
    asks = any(f.read.pad is not None or f.read.checked for t in terms for f in t.factors)
    return not asks and not any(ReadsInside(op).outside(replace(assign, value=e)))


def _is_plain(op: Op, assign: Assign, term: Term) -> bool:
    """Whether the factors of a term are read by the indices of the loops alone."""
    extents = Shape(op, assign, term.axes).extents
    return all(
        isinstance(i, GroupRef) or (isinstance(i, Affine) and i.index is not None and extents.get(i.index) == dim)
        for f in term.factors
        for i, dim in zip(f.read.indices, op.operand(f.read.operand).dims, strict=True)
    )


def _merged(op: Op, assign: Assign, e: Expr) -> Expr:
    """Return `e` with sums of two contractions as one contraction of both."""

    match e:
        case Call(fn="add"):
            rest: list[Expr] = []
            sums: list[Expr] = []
            for a in _addends(e):
                a = _merged(op, assign, a)
                alone = _pure_sum(a) and terms_of(op, assign, Reduce("sum", (), a, e.type), ()) is not None
                (sums if alone else rest).append(a)
            if len(sums) < 2:
                return e
            both = Reduce("sum", (), _total(e, sums), e.type, e.span)
            return _total(e, [*rest, both]) if terms_of(op, assign, both, ()) is not None else e
        case Reduce():
            return e
        case _:
            return with_children(e, tuple(_merged(op, assign, c) for c in children(e)))


def _addends(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Call) and e.fn == "add":
        for a in e.args:
            yield from _addends(a)
    else:
        yield e


def _total(e: Call, addends: list[Expr]) -> Expr:
    total = addends[0]
    for a in addends[1:]:
        total = replace(e, args=(total, a))
    return total


def _pure_sum(e: Expr) -> bool:
    """Whether `e` is a sum, or one where a condition on the call holds and else 0."""
    match e:
        case Reduce(kind="sum"):
            return True
        case Select(other=Const(value=0)) if is_invariant(e.cond):
            return _pure_sum(e.then)
        case _:
            return False


def _replaced(e: Expr, new: dict[int, Expr]) -> Expr:
    """Return `e` with the nodes of these ids replaced."""
    if id(e) in new:
        return new[id(e)]
    return with_children(e, tuple(_replaced(c, new) for c in children(e)))


def _named(e: Expr, place: Reduce, total: str) -> Expr:
    """Return the value of an epilogue as it is printed: the sum by its name."""
    return _replaced(e, {id(place): Read(total, (), place.type)})


def _epilogue(op: Op, assign: Assign, value: Expr, total: str) -> tuple[Expr, dict[str, tuple[Affine | GroupRef, ...]]] | None:
    """Return the value of a statement with bare reads, and where each operand stands; None when it is not that simple."""
    shape = dict(zip(assign.indices, op.operand(assign.target).dims, strict=True))
    places: dict[str, tuple[Affine | GroupRef, ...]] = {}
    for node in walk(value):
        if isinstance(node, Reduce | GroupIndex) or (isinstance(node, IndexValue) and node.value.indices()):
            return None
        if not isinstance(node, Read) or node.operand == total:
            continue
        if node.pad is not None or node.checked or node.operand == assign.target:
            return None
        indices = tuple(i for i in node.indices if isinstance(i, Affine | GroupRef))
        for index, dim in zip(node.indices, op.operand(node.operand).dims, strict=True):
            if isinstance(index, GroupRef):
                own = shape.get(index)
                if not isinstance(own, Group) or (own.of is not None and own != dim):
                    return None
            elif not isinstance(index, Affine) or index.index is None or shape.get(index.index) != dim:
                return None
        if places.setdefault(node.operand, indices) != indices:
            return None
    return rewrite(value, lambda n: replace(n, indices=()) if isinstance(n, Read) else n), places
