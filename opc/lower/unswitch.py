"""Stages that only some calls need: loop unswitching of statements, and no work on what the chosen part does not read.

`sum[p:2](...) if mode == 'bilinear' else sum[p:4](...)` is one statement. Where an op has more attributes than there are cases
of (`opc.lower.specialise`), each sum becomes a stage of its own, which runs in the calls that choose it, in the form that suits
it, and may write its terms out. A stage whose results only such stages read runs in their calls only. All other stages are
shared: there is one of each, whatever the number of modes. This is for a CPU, whose calls choose between functions as they run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from opc.ir.affine import Affine
from opc.ir.expr import Expr, GroupRef, Read, Reduce, walk
from opc.ir.op import Attribute, Op
from opc.lower.alone import literals
from opc.lower.calls import Values, calls_of, put, values_of
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage, Program, Stage, read_by, written_by
from opc.lower.lower import SpecialisedProgram
from opc.lower.nest_plans import OrderPlan
from opc.lower.nests.unroll import written_out
from opc.lower.specialise import asked, decided
from opc.lower.statement import lower_statement
from opc.records import replace

_MOST = 8
"""The most combinations of attributes' values that are told apart."""

_Some = frozenset[Values]


def with_unswitched_stages(variant: SpecialisedProgram) -> SpecialisedProgram:
    """Return a program with a nest for each choice of a nest between reductions, or between reads at computed places, and whose
    stages run where they are needed; itself where no attribute chooses so, where steps are repeated, where blocks of rows go
    through all stages, or where training seldom calls the op: more functions take longer to compile.
    """
    op, program = variant.case.op, variant.program
    if program.steps or program.fused is not None or not runs_often(op):
        return variant
    attributes = _choosing(op, program)
    every = frozenset(values_of(attributes))
    taken = {s.name for s in program.stages}
    parts = [part for s in program.stages for part in _parts(op, s, attributes, taken)]
    if len(parts) == len(program.stages):
        return variant
    needed: dict[str, _Some] = {o.name: every for o in op.outputs}
    run: list[tuple[Stage, _Some]] = []
    for stage, chosen in reversed(parts):
        own = chosen.intersection(frozenset[Values]().union(*(needed.get(n, ()) for n in _written(stage))))
        for name in read_by(stage):
            needed[name] = needed.get(name, frozenset()) | own
        if own:
            run.insert(0, (stage, own))
    written: dict[str, _Some] = {}
    for stage, own in run:
        for name in _written(stage):
            written[name] = written.get(name, frozenset()) | own
    when = {s.name: calls for s, own in run if (calls := calls_of(attributes, own)) is not None}
    temporaries = tuple(replace(t, when=calls_of(attributes, written[t.name])) for t in program.temporaries if t.name in written)
    return replace(variant, program=replace(program, stages=tuple(s for s, _ in run), temporaries=temporaries, when=when))


def _written(stage: Stage) -> Iterator[str]:
    yield from written_by(stage)
    if isinstance(stage, NestStage) and stage.sum is not None:
        yield stage.sum


def _choosing(op: Op, program: Program) -> tuple[Attribute, ...]:
    """Return the attributes that choose between the work of nests, those that choose between most of it first, as far as there
    are few combinations of their values."""
    chosen: Counter[str] = Counter()
    for s in program.stages:
        for name, work in _choices(op, s):
            chosen[name] += work
    found: tuple[Attribute, ...] = ()
    for name in sorted(chosen, key=lambda n: (-chosen[n], n)):
        more = (*found, op.attribute(name))
        if len(values_of(more)) <= _MOST:
            found = more
    return found


def _choices(op: Op, stage: Stage) -> Iterator[tuple[str, int]]:
    """Yield the attributes that choose between the work of a nest, with how much each chooses between."""
    if not isinstance(stage, NestStage) or stage.sum is not None or any(isinstance(p, OrderPlan) for p in stage.plans):
        return
    value = stage.assign.value
    for name in sorted(asked(op, value)) if _work(value) else ():
        own = (op.attribute(name),)
        left = [_work(decided(value, put(own, values))) for values in values_of(own)]
        if len(set(left)) > 1:
            yield name, sum(map(len, left))


def _work(e: Expr) -> tuple[Expr, ...]:
    """Return what of a value takes long: its reductions, and the reads of elements at places that data or numbers find."""
    return tuple(n for n in walk(e) if isinstance(n, Reduce) or (isinstance(n, Read) and not all(map(_is_plain, n.indices))))


def _is_plain(index: Expr | Affine | GroupRef) -> bool:
    return isinstance(index, Affine | GroupRef)


def _parts(op: Op, stage: Stage, attributes: Sequence[Attribute], taken: set[str]) -> Iterator[tuple[Stage, _Some]]:
    """Yield the stages that compute what a stage does, each with the values of attributes for which it does."""
    every = values_of(attributes)
    own = {name for name, _ in _choices(op, stage)} & {a.name for a in attributes}
    if not isinstance(stage, NestStage) or not own:
        yield stage, frozenset(every)
        return
    used = [a for a in attributes if a.name in own]
    places = [n for n, a in enumerate(attributes) if a.name in own]
    found: dict[tuple[Expr, tuple[str, ...]], set[Values]] = {}
    for values in values_of(used):
        value = decided(stage.assign.value, put(used, values))
        found.setdefault((value, literals(value)), set()).add(values)
    for n, ((value, _), some) in enumerate(found.items()):
        calls = calls_of(used, some)
        word = "" if calls is None else calls.words(op)
        name = f"{stage.name}_{word or n}"
        while name in taken:
            name += "_"
        taken.add(name)
        yield _stage(op, stage, value, name), frozenset(v for v in every if tuple(v[p] for p in places) in some)


def _stage(op: Op, stage: NestStage, value: Expr, name: str) -> Stage:
    """Return the stage that computes a value for a nest's target."""
    return lower_statement(op, written_out(op, replace(stage.assign, value=value)), name)
