"""Stages fused by rows: all stages of a program run on a block of rows before they run on the next one.

Attention is two contractions with a softmax between them. Its scores have a row for each query, and a row of the output needs
that row of the scores alone. So a few rows go through all stages while they are in the cache, and the scores as a whole are never
in memory. This is loop blocking and fusion across statements (tile-and-fuse), as in FlashAttention (Dao et al., 2022); a row of
scores is computed whole, so that no sum has to be rescaled when a greater maximum is found.

The rule asks for no op by name: every statement has the axis, and reads each operand that has it at the same point. Where a
statement uses the index as a number, it counts from the first row of the block; where it asks how many points there are, it is
told those of all blocks. Axes before it, such as batches and heads, are a group or have names: a block is at one point of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine, Dim, Index
from opc.ir.arrangement import arrangement
from opc.ir.expr import (
    BroadcastAxis,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    free_indices,
    has_reduction,
    operands_read,
    reads,
    walk,
)
from opc.ir.node import cached_by_identity
from opc.ir.op import Assign, AttributeKind, DimSpec, Group, Op, Operand
from opc.ir.verify import VerifyError
from opc.loops.schedule import Decisions, Override, active
from opc.lower.clamps import with_clamps, without_points
from opc.lower.columns import dropped_axis, needed_columns
from opc.lower.loop_ir import (
    ContractionStage,
    FusedRows,
    GroupLoop,
    IndexLoop,
    Loop,
    NestStage,
    Program,
    RowStage,
    Stage,
    read_by,
    written_by,
)
from opc.lower.lower import SpecialisedProgram, lower, lowered_across, staged
from opc.lower.memory import with_shared_memory
from opc.lower.named_products import with_named_products
from opc.lower.nest_plans import VectorPlan
from opc.lower.orders import with_orders
from opc.lower.places import Clamps, places_of
from opc.lower.row_numbers import counting_rows, from_first, whole
from opc.lower.runs import with_runs
from opc.lower.slices import stays_at_point
from opc.lower.summed import summed_of
from opc.lower.unswitch import with_unswitched_stages
from opc.records import replace
from opc.transform.indices import Namer, index_names, op_names


def cpu_programs(op: Op) -> tuple[SpecialisedProgram, ...]:
    """Return the programs of an op on a CPU, one for each case of its attributes.

    They are those of `opc.lower.lower.lower`, with their stages fused by rows where that is right for every case and pays. Before
    each stands the one for calls in which the axes that an attribute lists lie across memory.
    """
    return _fused_programs(op, active())


@cached_by_identity(512)
def _fused_programs(op: Op, overrides: tuple[Override, ...]) -> tuple[SpecialisedProgram, ...]:
    variants = _in_rows(op, overrides)
    products = tuple(map(with_named_products, variants))
    if any(products):
        variants = tuple(own for pair in zip(products, variants, strict=True) for own in pair if own is not None)
    scattered = tuple(with_runs(with_unswitched_stages(v)) for v in variants)
    return scattered if any(s is not v for s, v in zip(scattered, variants, strict=True)) else variants


def _in_rows(op: Op, overrides: tuple[Override, ...]) -> tuple[SpecialisedProgram, ...]:
    """Return the programs with their stages fused by rows where they are."""
    variants = lower(op)
    ordered = tuple(map(with_orders, variants))
    if any(o is not v for o, v in zip(ordered, variants, strict=True)):
        variants = ordered
    if arrangement(op) is not None:
        variants = tuple(found for v in variants for found in (lowered_across(v), v) if found is not None)
    if any(v.program.steps for v in variants):
        return variants  # a step reads what other steps have left
    names = frozenset[str]().union(*(op_names(v.case.op) | index_names(v.case.op) for v in variants))
    sliced, clamped = _as_slices(variants) or (variants, {})
    rows = _common(op, sliced, Namer(names), clamped)
    if rows is None and sliced is not variants:
        sliced, rows = variants, _common(op, variants, Namer(names), {})
    decisions = Decisions(op.name, overrides)
    if rows is None or not decisions.take("fuse", rows.dim):
        return variants
    fused = tuple(_fused(v, rows) for v in sliced)
    for v in fused:
        verify_fused(v.case.op, v.program)
    return tuple(replace(v, program=replace(v.program, schedule=decisions.schedule)) for v in fused)


def _as_slices(variants: tuple[SpecialisedProgram, ...]) -> tuple[tuple[SpecialisedProgram, ...], Clamps] | None:
    """Return the programs as slices along leading axes run them, None where that is as they are: see `opc.lower.clamps`."""
    ops = [v.case.op for v in variants]
    inputs = {o.name for o in ops[0].inputs}
    short = {s.target for o in ops for s in o.body if operands_read(s.value) <= inputs and not has_reduction(s.value)}
    shared = _shared([o.operand(s.target).dims for o in ops for s in o.body if s.target not in short])
    if len(shared) < 2:
        return None
    without = [without_points(o, shared[:-1]) for o in ops]
    found = with_clamps(without, shared[:-1])
    if found is None or all(a is b for a, b in zip(found[0], ops, strict=True)):
        return None
    return tuple(v if o is v.case.op else staged(v, o) for v, o in zip(variants, found[0], strict=True)), found[1]


def _common(op: Op, variants: tuple[SpecialisedProgram, ...], namer: Namer, clamped: Clamps) -> FusedRows | None:
    """Return the axis that the stages of all variants are fused along, None where there is none or nothing to gain.

    A call says where an axis is that an attribute places: such ops stay as they are.
    """
    if any(a.kind is AttributeKind.AXIS for a in op.attributes):
        return None
    ops = [v.case.op for v in variants]
    programs = [v.program for v in variants]
    rows = next((r for r in _candidates(ops, clamped) if _pays(ops, programs, r)), None)
    if rows is None:
        return None
    asked = {a.name: None for o in ops for a in _counted(o) if a == Dim(rows.dim)}
    for o in ops:
        counted = {a.name for a in _counted(o)}
        asked |= {d: None for d in (dropped_axis(o, rows),) if d is not None and d in counted}
    whole = tuple((namer.fresh(f"{d}_whole"), d) for d in asked)
    return replace(rows, first=namer.fresh(f"{rows.dim}_first"), whole=whole)


def _pays(ops: list[Op], programs: list[Program], rows: FusedRows) -> bool:
    """Whether all stages can go in blocks of these rows, and gain by it."""
    if not all(_stays(o, s, rows) for o in ops for s in o.body if rows.has(s.target)):
        return False
    for op, program in zip(ops, programs, strict=True):
        for stage in program.stages:
            if all(map(rows.has, written_by(stage))):
                # A statement that needs its own rows alone may still run across them, or along them as whole rows.
                if any(_strays(op, stage, rows)):
                    return False
            elif not _adds_up(stage, rows):
                return False
    return any(_gains(p, rows) for p in programs)


def _adds_up(stage: Stage, rows: FusedRows) -> bool:
    """Whether a stage stores nothing but addends of sums over rows, in the type of sums: what is converted as it is stored goes
    by the type that a tensor has, which is not so of nests that are evaluated point by point."""
    if any(map(rows.has, written_by(stage))):
        return False
    if isinstance(stage, NestStage):
        return stage.sum is None and bool(stage.plans) and all(isinstance(p, VectorPlan) for p in stage.plans)
    return True


def _candidates(ops: list[Op], clamped: Clamps) -> Iterator[FusedRows]:
    """Yield the axes that every statement may run over by itself, the one behind most leading axes first.

    Axes lead where an operand has one of them without the rows, as keys have heads: it is packed once for the blocks of a slice.
    Where none has, as where all rows meet the same weights, they would only make blocks shorter.
    """
    targets = [o.operand(s.target).dims for o in ops for s in o.body]
    groups = {d[0].name if d and isinstance(d[0], Group) else None for d in targets}
    if len(groups) != 1:
        return
    (group,) = groups
    shared = _shared([d[0 if group is None else 1 :] for d in targets])
    for n in reversed(range(1, len(shared) if group is None else 0)):
        leading, row = tuple(shared[:n]), Affine.of(Dim(shared[n]))
        places = places_of(ops, leading, clamped)
        without = (own for name, own in ({} if places is None else places.axes).items() if row not in ops[0].operand(name).dims)
        if any(Index(leading[-1]) in p.atoms() for own in without for p in own.values()):
            yield FusedRows(None, shared[n], "", leading, places)
    yield from _with_sums(ops, clamped)
    if shared and not clamped:
        yield FusedRows(group, shared[0], "")


def _shared(shapes: list[tuple[DimSpec, ...]]) -> list[str]:
    """Return the sizes that all shapes begin with, each a dimension of its own."""
    found: list[str] = []
    for dims in zip(*shapes, strict=False):
        size = dims[0].single if isinstance(dims[0], Affine) else None
        if not isinstance(size, Dim) or set(dims) != {Affine.of(size)} or size.name in found:
            break
        found.append(size.name)
    return found


def _with_sums(ops: list[Op], clamped: Clamps) -> Iterator[FusedRows]:
    """Yield the axes that every statement may run over by itself but for results that are sums over rows."""
    outputs = {o.name for o in ops[0].outputs}
    read = {r.operand for o in ops for s in o.body for r in reads(s.value)}
    shared = _shared([o.operand(s.target).dims for o in ops for s in o.body if s.target not in outputs])
    for n in reversed(range(1, len(shared))):
        leading, row = tuple(shared[:n]), shared[n]
        before = tuple(Affine.of(Dim(d)) for d in shared[: n + 1])
        apart = [o.name for o in ops[0].outputs if o.dims[: n + 1] != before and o.name not in read]
        inner = [o.with_body(tuple(s for s in o.body if s.target not in apart)) for o in ops]
        places = places_of(inner, leading, clamped) if apart else None
        summed = None if places is None else summed_of(ops, apart, leading, row, places)
        if places is not None and summed is not None:
            whole = replace(places, axes={**places.axes, **summed.axes})
            yield FusedRows(None, row, "", leading, whole, summed=summed)


def _counted(op: Op) -> Iterator[Dim]:
    """Yield the sizes that an op uses as numbers."""
    for s in op.body:
        for e in walk(s.value):
            if isinstance(e, IndexValue):
                yield from (a for a in e.value.atoms() if isinstance(a, Dim))


def _stays(op: Op, s: Assign, rows: FusedRows) -> bool:
    """Whether a statement needs, at one point of the axis, what operands have at that point."""
    row = s.indices[rows.at]
    if not isinstance(row, str) or not _has_once(op, s.target, rows):
        return False
    if rows.group is not None:
        group = GroupRef(rows.group)
        if not (s.indices[0] == group and stays_at_point(op, s.value, group)):
            return False
    return all(_reads_row(op, e, row, rows) for e in walk(s.value))


def _reads_row(op: Op, e: Expr, row: str, rows: FusedRows) -> bool:
    size = Dim(rows.dim)
    match e:
        case Read():
            places = _axes_with(op.operand(e.operand), size)
            if places and not (_has_once(op, e.operand, rows) and e.indices[places[0]] == Affine.of(Index(row))):
                return False
            others = (i for n, i in enumerate(e.indices) if n not in places)
            return all(size not in i.atoms() if isinstance(i, Affine) else isinstance(i, GroupRef) for i in others)
        case Reduce():
            extents = e.extents.values()
            bound = set(e.extents)
            across = any(isinstance(a, BroadcastAxis) for a in e.axes)
            return row not in bound and not across and all(_stays_outside(x, row, size) for x in extents)
        case _:
            return True


def _stays_outside(e: Affine, row: str, size: Dim) -> bool:
    return size not in e.atoms() and row not in e.indices()


def _axes_with(operand: Operand, size: Dim) -> list[int]:
    return [n for n, d in enumerate(operand.dims) if isinstance(d, Affine) and size in d.atoms()]


def _has_once(op: Op, name: str, rows: FusedRows) -> bool:
    """Whether an operand has the axis once: what is computed behind the leading axes, inputs first or behind the group, and where
    leading axes have names anywhere."""
    operand = op.operand(name)
    places = _axes_with(operand, Dim(rows.dim))
    if len(places) != 1 or operand.dims[places[0]] != Affine.of(Dim(rows.dim)):
        return False
    if rows.leading:
        return places == [rows.at] or name not in op.assignments
    leads = bool(operand.dims) and isinstance(operand.dims[0], Group) and operand.dims[0].name == rows.group
    return places == [int(leads)]


def _gains(program: Program, rows: FusedRows) -> bool:
    """Whether a contraction reads what stages before it compute of the results of another, for each row, and gives rows too."""
    stored = {t.name for t in program.temporaries if t.stored and any(_is(x, rows.dim) for x in t.loops)}
    made: set[str] = set()
    for stage in program.stages:
        if isinstance(stage, ContractionStage):
            if rows.has(stage.assign.target) and any(f.read.operand in made & stored for t in stage.terms for f in t.factors):
                return True
            made.add(stage.assign.target)
        elif made.intersection(read_by(stage)):
            made.update(written_by(stage))
    return False


def _is(loop: object, dim: str) -> bool:
    return isinstance(loop, IndexLoop) and loop.extent == Affine.of(Dim(dim))


def _fused(variant: SpecialisedProgram, rows: FusedRows) -> SpecialisedProgram:
    """Return a program whose stages run on a block of rows: the index of a row, used as a number, counts from the first row."""
    op = from_first(variant.case.op, rows)
    without = whole(op, rows, dropped_axis(op, rows))
    columns = needed_columns(without, rows)
    op = op if columns is None else without
    if op is not variant.case.op:
        variant = staged(variant, op)
    return replace(variant, program=replace(with_shared_memory(variant.program), fused=rows, columns=columns))


def verify_fused(op: Op, program: Program) -> None:
    """Check that the stages of a fused program can run on one block of rows after the other.

    Each stage writes the rows of its block and reads, of what has rows, those of its block. No stage reduces over rows, or takes
    rows apart that it needs whole. With leading axes no statement needs more of these than one point.

    Raises:
        VerifyError: with the stage and the operand.
    """
    rows = program.fused
    if rows is None:
        return
    if rows.leading:
        inner = op.with_body(tuple(s for s in op.body if rows.has(s.target)))
        found = None if rows.places is None else places_of((inner,), rows.leading, rows.places.clamped)
        if found is None or rows.places is None or not found.axes.items() <= rows.places.axes.items():
            raise VerifyError(f"{op.name} needs more than one point of its leading axes at a time")
        names = () if rows.summed is None else rows.summed.outputs
        if names and summed_of((op,), names, rows.leading, rows.dim, found) != rows.summed:
            raise VerifyError(f"{op.name} has results that are no sums over rows: {', '.join(names)}")
    for stage in program.stages:
        if not all(map(rows.has, written_by(stage))):
            if not _adds_up(stage, rows):
                raise VerifyError(f"{stage.name} stores a sum over rows as an output has it")
            continue
        for name in _strays(op, stage, rows):
            raise VerifyError(f"{stage.name} does not stay in its block of rows along {rows.dim}: {name}")
    for s in op.body:
        row = s.indices[rows.at] if rows.has(s.target) else None
        for e in reads(s.value) if isinstance(row, str) else ():
            for n in counting_rows(op, e, str(row), rows):
                index = e.indices[n]
                if not isinstance(index, Affine) or Dim(rows.first) not in index.atoms():
                    raise VerifyError(f"{s.target} reads {e.operand} at rows of a block, and that has all")
    for t in program.temporaries:
        if sum(_is(x, rows.dim) for x in t.loops) != 1:
            raise VerifyError(f"the temporary {t.name} does not have rows along {rows.dim}")


def _strays(op: Op, stage: Stage, rows: FusedRows) -> Iterator[str]:
    """Yield the operands that a stage has at other rows than those of a block."""
    size, counted = Dim(rows.dim), False
    before: list[Loop] = [] if rows.group is None else [GroupLoop(rows.group)]
    before += [IndexLoop("", Affine.of(Dim(d))) for d in rows.leading]
    match stage:
        case RowStage():
            yield from _strays_of_rows(stage, before, IndexLoop("", Affine.of(size)))
            return
        case ContractionStage():
            places = [(f.read.operand, f.read.indices) for t in stage.terms for f in t.factors]
            places += list(stage.operand_indices)
        case NestStage():
            places = [(r.operand, r.indices) for r in reads(stage.assign.value)]
            counted = True
            if stage.sum is not None:
                yield stage.sum
    row = stage.assign.indices[rows.at]
    if not isinstance(row, str) or not _has_once(op, stage.assign.target, rows):
        yield stage.assign.target
        return
    for name, indices in places:
        for index, dim in zip(indices, op.operand(name).dims, strict=True):
            if isinstance(dim, Affine) and size in dim.atoms():
                stays = dim == Affine.of(size) and index == Affine.of(Index(row))
            else:
                stays = isinstance(index, GroupRef) or row not in _indices(index) or (counted and isinstance(index, Affine))
            if not stays:
                yield name


def _indices(index: Affine | Expr) -> frozenset[str]:
    return index.indices() if isinstance(index, Affine) else free_indices(index)


def _strays_of_rows(stage: RowStage, before: list[Loop], axis: IndexLoop) -> Iterator[str]:
    loops = (*stage.outer, *stage.row)
    if loops[: len(before) + 1] != (*before, axis) or (stage.whole_rows and axis in stage.row):
        yield ", ".join(o.name for o in stage.products)
    for o in stage.operands:
        count = sum(x.extent == axis.extent or x.along == axis.extent for x in o.loops if isinstance(x, IndexLoop))
        if count > 1 or (o.written and (count != 1 or o.reduction is not None)):
            yield o.name
