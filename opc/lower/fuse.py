"""Stages fused by rows: all stages of a program run on a block of rows before they run on the next one.

Attention is two contractions with a softmax between them. Its scores have a row for each query, and a row of the output needs
that row of the scores alone. So a few rows go through all stages while they are in the cache, and the scores as a whole are never
in memory. This is loop blocking and fusion across statements (tile-and-fuse), as in FlashAttention (Dao et al., 2022); a row of
scores is computed whole, so that no sum has to be rescaled when a greater maximum is found.

The rule asks for no op by name: every statement has the axis, reads each operand that has it at the same point, and does not ask
how many points there are. Where a statement uses the index as a number, it counts from the first row of the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from opc.ir.affine import Affine, Dim, Index, Symbol
from opc.ir.arrangement import arrangement
from opc.ir.expr import Axis, BroadcastAxis, Expr, GroupRef, IndexValue, Read, Reduce, free_indices, reads, rewrite, walk
from opc.ir.op import Assign, AttributeKind, Group, Op, Operand
from opc.ir.verify import VerifyError
from opc.loops.schedule import Decisions, Override, active
from opc.lower.columns import needed_columns
from opc.lower.loop_ir import ContractionStage, FusedRows, GroupLoop, IndexLoop, NestStage, Program, RowStage, Stage
from opc.lower.lower import SpecialisedProgram, lower, lowered_across, staged
from opc.lower.memory import read_by, with_shared_memory, written_by
from opc.lower.orders import with_orders
from opc.lower.runs import with_runs
from opc.lower.slices import stays_at_point
from opc.records import dataclass, replace
from opc.transform.indices import Namer, index_names, op_names


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """An op by what it is, not by what it says, as `opc.lower.lower` tells them apart."""

    op: Op

    def __hash__(self) -> int:
        return id(self.op)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.op is other.op


def cpu_programs(op: Op) -> tuple[SpecialisedProgram, ...]:
    """Return the programs of an op on a CPU, one for each case of its attributes.

    They are those of `opc.lower.lower.lower`, with their stages fused by rows where that is right for every case and pays. Before
    each stands the one for calls in which the axes that an attribute lists lie across memory.
    """
    return _programs(_Same(op), active())


@lru_cache(maxsize=512)
def _programs(same: _Same, overrides: tuple[Override, ...]) -> tuple[SpecialisedProgram, ...]:
    variants = _in_rows(same, overrides)
    scattered = tuple(map(with_runs, variants))
    return scattered if any(s is not v for s, v in zip(scattered, variants, strict=True)) else variants


def _in_rows(same: _Same, overrides: tuple[Override, ...]) -> tuple[SpecialisedProgram, ...]:
    """Return the programs with their stages fused by rows where they are."""
    variants = lower(same.op)
    ordered = tuple(map(with_orders, variants))
    if any(o is not v for o, v in zip(ordered, variants, strict=True)):
        variants = ordered
    if arrangement(same.op) is not None:
        variants = tuple(found for v in variants for found in (lowered_across(v), v) if found is not None)
    if any(v.program.steps for v in variants):
        return variants  # a step reads what other steps have left
    names = frozenset[str]().union(*(op_names(v.case.op) | index_names(v.case.op) for v in variants))
    rows = _common(same.op, variants, Namer(names))
    decisions = Decisions(same.op.name, overrides)
    if rows is None or not decisions.take("fuse", rows.dim):
        return variants
    fused = tuple(_fused(v, rows) for v in variants)
    for v in fused:
        verify_fused(v.case.op, v.program)
    return tuple(replace(v, program=replace(v.program, schedule=decisions.schedule)) for v in fused)


def _common(op: Op, variants: tuple[SpecialisedProgram, ...], namer: Namer) -> FusedRows | None:
    """Return the axis that the stages of all variants are fused along, None where there is none or nothing to gain.

    A call says where an axis is that an attribute places: such ops stay as they are.
    """
    if any(a.kind is AttributeKind.AXIS for a in op.attributes):
        return None
    found = {_rows_of(v.case.op) for v in variants}
    if len(found) != 1 or (only := found.pop()) is None or not any(_gains(v.program, only[1]) for v in variants):
        return None
    group, dim = only
    return FusedRows(group, dim, namer.fresh(f"{dim}_first"))


def _rows_of(op: Op) -> tuple[str | None, str] | None:
    """Return the group and the axis behind it, by its size, that every statement of an op runs over by itself."""
    place: tuple[str | None, str] | None = None
    for s in op.body:
        dims = op.operand(s.target).dims
        group = dims[0].name if dims and isinstance(dims[0], Group) else None
        own = dims[0 if group is None else 1 :]
        size = own[0].single if own and isinstance(own[0], Affine) else None
        if not isinstance(size, Dim) or place not in (None, (group, size.name)):
            return None
        place = (group, size.name)
        if not _stays(op, s, group, size):
            return None
    return place


def _stays(op: Op, s: Assign, group: str | None, size: Dim) -> bool:
    """Whether a statement needs, at one point of the axis, what operands have at that point, and no count of points."""
    at = 0 if group is None else 1
    row = s.indices[at]
    if not isinstance(row, str) or not _has_once(op.operand(s.target), group, size):
        return False
    if group is not None and not (s.indices[0] == GroupRef(group) and stays_at_point(op, s.value, GroupRef(group))):
        return False
    return all(_reads_row(op, e, row, group, size) for e in walk(s.value))


def _reads_row(op: Op, e: Expr, row: str, group: str | None, size: Dim) -> bool:
    match e:
        case Read():
            operand = op.operand(e.operand)
            places = [n for n, d in enumerate(operand.dims) if isinstance(d, Affine) and size in d.atoms()]
            if places and not (_has_once(operand, group, size) and e.indices[places[0]] == Affine.of(Index(row))):
                return False
            others = (i for n, i in enumerate(e.indices) if n not in places)
            return all(_stays_outside(i, row, size) if isinstance(i, Affine) else isinstance(i, GroupRef) for i in others)
        case Reduce():
            extents = [a.extent for a in e.axes if isinstance(a, Axis)]
            bound = {a.index for a in e.axes if isinstance(a, Axis)}
            across = any(isinstance(a, BroadcastAxis) for a in e.axes)
            return row not in bound and not across and all(_stays_outside(x, row, size) for x in extents)
        case IndexValue():
            return size not in e.value.atoms()
        case _:
            return True


def _stays_outside(e: Affine, row: str, size: Dim) -> bool:
    return size not in e.atoms() and row not in e.indices()


def _has_once(operand: Operand, group: str | None, size: Dim) -> bool:
    """Whether an operand has the axis once, first or behind the group."""
    dims = [d.atoms() if isinstance(d, Affine) else None for d in operand.dims]
    places = [n for n, atoms in enumerate(dims) if atoms is not None and size in atoms]
    leads = bool(dims) and isinstance(operand.dims[0], Group) and operand.dims[0].name == group
    return places == [int(leads)] and operand.dims[places[0]] == Affine.of(size)


def _gains(program: Program, dim: str) -> bool:
    """Whether a contraction reads what stages before it compute of the results of another, for each row."""
    stored = {t.name for t in program.temporaries if t.stored and any(_is(x, dim) for x in t.loops)}
    made: set[str] = set()
    for stage in program.stages:
        if isinstance(stage, ContractionStage):
            if any(f.read.operand in made & stored for t in stage.terms for f in t.factors):
                return True
            made.add(stage.assign.target)
        elif made.intersection(read_by(stage)):
            made.update(written_by(stage))
    return False


def _is(loop: object, dim: str) -> bool:
    return isinstance(loop, IndexLoop) and loop.extent == Affine.of(Dim(dim))


def _fused(variant: SpecialisedProgram, rows: FusedRows) -> SpecialisedProgram:
    """Return a program whose stages run on a block of rows: the index of a row, used as a number, counts from the first row."""
    op = variant.case.op
    body = tuple(_from_first(s, rows) for s in op.body)
    if any(a is not b for a, b in zip(op.body, body, strict=True)):
        variant = staged(variant, op.with_body(body))
    columns = needed_columns(variant.case.op, rows)
    return replace(variant, program=replace(with_shared_memory(variant.program), fused=rows, columns=columns))


def _from_first(s: Assign, rows: FusedRows) -> Assign:
    row = s.indices[0 if rows.group is None else 1]
    assert isinstance(row, str), "a row has one index"
    if not any(isinstance(e, IndexValue) and row in e.value.indices() for e in walk(s.value)):
        return s

    def place(symbol: Symbol) -> Affine | None:
        return Affine.of(symbol) + Dim(rows.first) if symbol == Index(row) else None

    def rule(e: Expr) -> Expr:
        return replace(e, value=e.value.substitute(place)) if isinstance(e, IndexValue) else e

    return s.with_value(rewrite(s.value, rule))


def verify_fused(op: Op, program: Program) -> None:
    """Check that the stages of a fused program can run on one block of rows after the other.

    Each stage writes the rows of its block and reads, of what has rows, those of its block. No stage reduces over rows, or takes
    rows apart that it needs whole.

    Raises:
        VerifyError: with the stage and the operand.
    """
    rows = program.fused
    if rows is None:
        return
    for stage in program.stages:
        for name in _strays(op, stage, rows):
            raise VerifyError(f"{stage.name} does not stay in its block of rows along {rows.dim}: {name}")
    for t in program.temporaries:
        if sum(_is(x, rows.dim) for x in t.loops) != 1:
            raise VerifyError(f"the temporary {t.name} does not have rows along {rows.dim}")


def _strays(op: Op, stage: Stage, rows: FusedRows) -> Iterator[str]:
    """Yield the operands that a stage has at other rows than those of a block."""
    size = Dim(rows.dim)
    leading = ([] if rows.group is None else [GroupLoop(rows.group)], IndexLoop("", Affine.of(size)))
    match stage:
        case RowStage():
            yield from _strays_of_rows(stage, *leading)
            return
        case ContractionStage():
            places = [(f.read.operand, f.read.indices) for t in stage.terms for f in t.factors]
            places += list(stage.operand_indices)
        case NestStage():
            places = [(r.operand, r.indices) for r in reads(stage.assign.value) if isinstance(r, Read)]
            if stage.sum is not None:
                yield stage.sum
    at = 0 if rows.group is None else 1
    row = stage.assign.indices[at]
    if not isinstance(row, str) or not _has_once(op.operand(stage.assign.target), rows.group, size):
        yield stage.assign.target
        return
    for name, indices in places:
        for index, dim in zip(indices, op.operand(name).dims, strict=True):
            if isinstance(dim, Affine) and size in dim.atoms():
                stays = dim == Affine.of(size) and index == Affine.of(Index(row))
            else:
                stays = isinstance(index, GroupRef) or row not in _indices(index)
            if not stays:
                yield name


def _indices(index: Affine | Expr) -> frozenset[str]:
    return index.indices() if isinstance(index, Affine) else free_indices(index)


def _strays_of_rows(stage: RowStage, group: list[GroupLoop], axis: IndexLoop) -> Iterator[str]:
    loops = (*stage.outer, *stage.row)
    if loops[: len(group) + 1] != (*group, axis) or (stage.whole_rows and axis in stage.row):
        yield ", ".join(o.name for o in stage.products)
    for o in stage.operands:
        count = sum(x.extent == axis.extent or x.along == axis.extent for x in o.loops if isinstance(x, IndexLoop))
        if count > 1 or (o.written and (count != 1 or o.reduction is not None)):
            yield o.name
