"""Sums of products whose one factor is an exponential of scores, less what the greatest of their row gives: no score is stored.

A softmax between two sums of products, as in attention, is four statements: scores, the greatest of each row, exponentials and
their sum, and the sum of these times what is weighed. Where these are all that reads the scores, they become one statement, whose
tiles of rows pass over the columns once: exp(s - c) = exp(s - b) exp(b - c), so what has been added up is rescaled when a greater
maximum is found. The rule looks at what a statement says and asks for no op by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.affine import Affine, Index, Symbol
from opc.ir.dtypes import DType, TypeVar, ValueType, is_floating
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    GroupRef,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    free_names,
    outermost,
    reads,
    reductions,
    with_children,
)
from opc.ir.op import Assign, Op
from opc.loops.values import computed_as
from opc.lower.columns import gap
from opc.lower.cuda.products import HALVES, products_of, steps_of, stored_alike
from opc.lower.loop_ir import NestStage, Program, Stage, read_by, written_by
from opc.lower.nests.flat import is_positive
from opc.records import dataclass, replace
from opc.transform.indices import substitute
from opc.transform.normalize import placed, put

_MINUS_INFINITY = float("-inf")


@dataclass(frozen=True, slots=True)
class Needed:
    """Which columns of a row count: those at which `gap` is not negative. It `rises` with rows, or falls; columns count up to a
    point, or from it on where it `starts` them. Others add nothing where all elements of the operands `finite` are finite."""

    gap: Affine
    rises: bool
    starts: bool
    finite: tuple[str, ...]

    def bound(self, row: str, column: str, first: Affine, rows: Affine) -> Affine:
        """Return where columns end, or start, that some of these rows need."""
        best = first + rows - 1 if self.rises else first
        ends: Mapping[Symbol, Affine] = {Index(row): best, Index(column): Affine.of(0)}
        found = self.gap.substitute(ends.get)
        return found * -1 if self.starts else found + 1


def needed_where(condition: Expr, row: str, column: str, finite: tuple[str, ...]) -> Needed | None:
    """Return which columns of a row count where a condition drops the others, None where it is not of these two alone."""
    f = gap(condition)
    if f is None or f.indices() != {row, column}:
        return None
    by_row, by_column = f.coefficient(row), f.coefficient(column)
    rises = None if by_row is None else by_row.constant
    if not rises or by_column not in (Affine.of(-1), Affine.of(1)):
        return None
    return Needed(f, rises > 0, by_column == Affine.of(1), finite)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A sum of weighed elements in a statement's value.

    `row` and `across` are entries of the target, `batch` the others; `column` and `term` are the indices of the sum of what is
    weighed and of that of `products`, which scores are made of. `shift` is what scores are less of, in terms of `greatest`, and
    `sums` and `maxima` are the reductions in the value that are the sum of the weights, and the greatest score.
    """

    sum: Reduce
    weight: Call
    score: Expr
    products: Reduce
    factors: tuple[Read, Read]
    weighed: Read
    shift: Expr
    greatest: Reduce
    sums: tuple[Reduce, ...]
    maxima: tuple[Reduce, ...]
    batch: tuple[int, ...]
    row: int
    across: int
    stored: TypeVar | DType | None
    """The type of the elements of inputs or outputs that the factors and what is weighed are, where it is one."""
    needed: Needed | None

    @property
    def column(self) -> Axis:
        """The axis of the columns."""
        (axis,) = self.sum.axes
        assert isinstance(axis, Axis), "it is one index"
        return axis

    @property
    def term(self) -> Axis:
        """The axis of the terms of scores."""
        (axis,) = self.products.axes
        assert isinstance(axis, Axis), "it is one index"
        return axis

    def kinds(self, dtypes: Mapping[TypeVar, DType]) -> tuple[int, ...]:
        """Return which of the shapes of the runtime's `shape_of_weights` stand for each: others would be the same function."""
        return kinds_of(self.stored, self.sum.type, dtypes)

    def elements(self) -> tuple[Read, Read, Read]:
        """Return the two factors of scores, and what is weighed."""
        return (*self.factors, self.weighed)


def are_halves(stored: TypeVar | DType | None, dtypes: Mapping[TypeVar, DType]) -> bool:
    """Whether elements that are `stored` as one type are of 16 bits, as tensor cores multiply them."""
    return (dtypes.get(stored) if isinstance(stored, TypeVar) else stored) in HALVES


def kinds_of(stored: TypeVar | DType | None, of: ValueType, dtypes: Mapping[TypeVar, DType]) -> tuple[int, ...]:
    """Return which of the shapes of the runtime's `shape_of_weights` stand for each, of elements that are `stored` as one type,
    or else of sums of a type: of elements of 16 bits one for few columns and two for many, of float32 a third one, which needs
    little shared memory."""
    if are_halves(stored, dtypes):
        return 0, 1, 2
    of = computed_as(of)
    computed = dtypes.get(of) if isinstance(of, TypeVar) else of
    return (0, 1, 2) if isinstance(computed, DType) and computed.compute is DType.FLOAT32 else (0, 0, 0)


def weighed_of(op: Op, stage: NestStage) -> Weighed | None:
    """Return the weighed sum that a statement computes, None where it does anything else."""
    value, indices = stage.assign.value, stage.assign.indices
    for e in reductions(value):
        if e.kind == "sum" and (parts := _weighed_parts(e)) is not None:
            break
    else:
        return None
    weight, difference, weighed = parts
    score, shift = difference.args
    (axis,) = e.axes
    if not isinstance(axis, Axis) or axis.extent.indices() or not is_positive(op, axis.extent):
        return None
    greatest = _greatest(shift, score, axis)
    found = reductions(score)
    if greatest is None or len(found) != 1:
        return None
    (products,) = found
    if products.kind != "sum" or len({products.type, e.type, weight.type, greatest.type, stage.assign.value.type}) != 1:
        return None
    factors = _factors(products)
    (term,) = products.axes if len(products.axes) == 1 else (None,)
    if factors is None or not isinstance(term, Axis) or term.extent.indices() or not is_floating(e.type):
        return None
    sides = _sides(indices, factors, weighed, axis)
    if sides is None:
        return None
    factors, row, across = sides
    own = (str(indices[row]), axis.index, str(indices[across]))
    if any(
        steps_of(op, read, names) is None
        for read, names in ((factors[0], (own[0], term.index)), (factors[1], (own[1], term.index)), (weighed, (own[2], own[1])))
    ):
        return None
    others = [r for r in outermost(value) if r != e]
    sums = tuple(r for r in others if _sums_weights(r, weight, axis))
    maxima = tuple(r for r in others if _is_same(r, greatest))
    if len(sums) + len(maxima) != len(others) or own[2] in free_indices(score):
        return None
    batch = tuple(n for n in range(len(indices)) if n not in (row, across))
    stored = stored_alike(op, *factors)
    stored = stored if stored == stored_alike(op, factors[1], weighed) else None
    needed = _needed(op, score, own[0], axis, weighed)
    return Weighed(
        e, weight, score, products, factors, weighed, shift, greatest, sums, maxima, batch, row, across, stored, needed
    )


def _weighed_parts(e: Reduce) -> tuple[Call, Call, Read] | None:
    """Return the exponential, the difference that it is of, and the element of a sum over one axis of such products."""
    match e.body:
        case Call(fn="mul", args=(a, b)) if len(e.axes) == 1:
            for weight, other in ((a, b), (b, a)):
                match weight, other:
                    case Call(fn="exp", args=(Call(fn="sub") as difference,)), Read():
                        return weight, difference, other
    return None


def _greatest(shift: Expr, score: Expr, axis: Axis) -> Reduce | None:
    """Return the greatest score that a shift is where it is finite; None where it is anything else."""
    match shift:
        case Select(cond=Call(fn="isinf", args=(Reduce(kind="max") as asked,)), then=Const(), other=Reduce() as other):
            return other if asked == other and _runs_over(other, score, axis) else None
    return None


def _runs_over(e: Reduce, body: Expr, axis: Axis) -> bool:
    """Whether a reduction is over the values that a body has along an axis."""
    match e.axes:
        case (Axis(index=index, extent=extent),) if extent == axis.extent:
            return substitute(e.body, {index: Affine.of(Index(axis.index))}) == body
    return False


def _sums_weights(e: Reduce, weight: Call, axis: Axis) -> bool:
    return e.kind == "sum" and _runs_over(e, weight, axis)


def _is_same(e: Reduce, greatest: Reduce) -> bool:
    match greatest.axes:
        case (Axis() as axis,):
            return e.kind == "max" and _runs_over(e, greatest.body, axis)
    return False


def _factors(products: Reduce) -> tuple[Read, Read] | None:
    match products.body:
        case Call(fn="mul", args=(Read() as a, Read() as b)):
            return a, b
    return None


def _sides(
    indices: tuple[str | GroupRef, ...], factors: tuple[Read, Read], weighed: Read, axis: Axis
) -> tuple[tuple[Read, Read], int, int] | None:
    """Return the factors, that of rows first, and which entries of the target are that of rows and that across."""
    left, right = factors if axis.index not in free_names(factors[0]) else factors[::-1]
    if axis.index in free_names(left) or axis.index not in free_names(right) or axis.index not in free_names(weighed):
        return None
    own = [i if isinstance(i, str) else i.name for i in indices]
    rows = [n for n, name in enumerate(own) if name in free_names(left) - free_names(right) - free_names(weighed)]
    acrosses = [n for n, name in enumerate(own) if name in free_names(weighed) - free_names(left) - free_names(right)]
    if len(rows) != 1 or len(acrosses) != 1 or not all(isinstance(indices[n], str) for n in (*rows, *acrosses)):
        return None
    return (left, right), rows[0], acrosses[0]


def _needed(op: Op, score: Expr, row: str, axis: Axis, weighed: Read) -> Needed | None:
    """Return which columns a condition leaves in a row: where it drops a score, that is -inf, and so its weight is 0.

    0 times what is weighed is 0 where that is finite, which is looked for in an input when the op runs.
    """
    if not isinstance(score, Select) or not isinstance(score.other, Const) or score.other.value != _MINUS_INFINITY:
        return None
    if all(i.name != weighed.operand or i.optional for i in op.inputs):
        return None
    found = needed_where(score.cond, row, axis.index, (weighed.operand,))
    return None if found is None or found.starts else found


def lies_along(read: Read, index: str) -> bool:
    """Whether neighbours along an index lie together."""
    return read.indices[-1] == Affine.of(Index(index))


def with_weighed_sums(op: Op, program: Program) -> Program:
    """Return a program whose stages make no scores that only weighed sums read: such a sum makes them as it goes."""
    stages = list(program.stages)
    for n, stage in enumerate(stages):
        if not isinstance(stage, NestStage) or (inner := weights_of(op, stage)) is None:
            continue
        name, inlined = inner
        found = replace(stage, assign=inlined, plans=())
        if weighed_of(op, found) is None:
            continue
        left = _needed_stages(op, [*stages[:n], found, *stages[n + 1 :]])
        if name not in {t for s in left for t in written_by(s)}:
            return with_weighed_sums(op, replace(program, stages=tuple(left)))
    return program


def weights_of(op: Op, stage: NestStage) -> tuple[str, Assign] | None:
    """Return the temporary that is one of two factors that a statement multiplies, and the statement without it, or what the
    temporary is made of."""
    if stage.plans or (products := products_of(op, stage)) is None:
        return None
    body = {s.target: s for s in op.body if s.target in {t.name for t in op.temporaries}}
    for f in products.factors:
        if isinstance(f, Read) and f.operand in body and body[f.operand].indices:
            made = _made_of(body, f.operand)
            summed = {r.operand for r in reads(stage.assign.value) if _adds_up(body.get(r.operand), f.operand)}
            inlined = {name: body[name] for name in (*made, *summed)}
            return f.operand, stage.assign.with_value(_inlined(stage.assign.value, inlined))
    return None


def is_sum_of_weights(body: Mapping[str, Assign], name: str) -> bool:
    """Whether a temporary, one of those in `body`, is a sum of exponentials of scores less what their greatest gives."""
    match body[name].value if name in body else None:
        case Reduce(kind="sum", axes=(Axis() as axis,), body=Read(operand=weight) as read) if weight in body and placed(read):
            match _inlined(read, {made: body[made] for made in _made_of(body, weight)}):
                case Call(fn="exp", args=(Call(fn="sub", args=(score, shift)),)):
                    return _greatest(shift, score, axis) is not None
    return False


def _made_of(body: Mapping[str, Assign], name: str) -> dict[str, None]:
    """Return the temporaries that one is made of, itself among them, up to sums of products and no further."""
    found = {name: None}
    value = body[name].value
    if not any(e.kind == "sum" for e in reductions(value)):
        for r in reads(value):
            if r.operand in body and placed(r):
                found |= _made_of(body, r.operand)
    return found


def _adds_up(s: Assign | None, name: str) -> bool:
    match s.value if s is not None else None:
        case Reduce(kind="sum", body=Read(operand=operand)):
            return operand == name
    return False


def _inlined(e: Expr, values: Mapping[str, Assign]) -> Expr:
    if isinstance(e, Read):
        s = values.get(e.operand)
        return e if s is None or e.pad is not None or not placed(e) else _inlined(put(s, e), values)
    return with_children(e, tuple(_inlined(c, values) for c in children(e)))


def _needed_stages(op: Op, stages: list[Stage]) -> list[Stage]:
    """Return the stages that write an output, or what a later one of them reads."""
    needed = {o.name for o in op.outputs}
    left: list[Stage] = []
    for s in reversed(stages):
        if needed.intersection(written_by(s)):
            left.insert(0, s)
            needed.update(read_by(s))
    return left
