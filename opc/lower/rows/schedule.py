"""From steps to row stages: which steps share one parallel loop, and in which order stages run.

A reduction whose result is used again wants its row whole: its kept loops become the points of a stage and the reduced ones its
row. Whatever else can be computed on the same points and rows joins that stage, sums over the points included. What is left runs
in stages without rows. Values that are no reduction are never stored between stages: computing them again costs less than memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import ValueType
from opc.ir.expr import reads
from opc.ir.op import Op
from opc.lower.loop_ir import GroupLoop, IndexLoop, Loop, Refusal, RowStage, Stage, StageOperand, Step, Temporary, joint
from opc.lower.rows.flatten import OperandsError, UnplacedError, counted, operand_loops
from opc.lower.rows.passes import build_passes
from opc.records import dataclass, replace
from opc.transform.indices import Namer, op_names, substitute

MOST_OPERANDS = 40
"""How many operands a stage can have: `max_operands` of `opc/core/stage.h`."""

MOST_COPIES = 3
"""Of how many products each gets loops that leave out the others."""


@dataclass(frozen=True, slots=True)
class _Key:
    """The loops of a candidate stage."""

    outer: frozenset[Loop]
    row: frozenset[Loop]
    whole: bool

    @property
    def full(self) -> frozenset[Loop]:
        return self.outer | self.row


@dataclass(slots=True)
class StagePlan:
    """What a stage computes: the steps it produces, and among the reductions those along its rows."""

    key: _Key
    produced: list[Step]
    reductions: set[str]

    @property
    def targets(self) -> set[str]:
        """The names of the steps that are produced."""
        return {s.target for s in self.produced}


def schedule(
    op: Op, steps: tuple[Step, ...], taken: Collection[str] = (), across: frozenset[Loop] = frozenset()
) -> tuple[tuple[Stage, ...], tuple[Temporary, ...]]:
    """Return the stages that compute a regular op, and the temporaries between them, whose new names are not in `taken`.

    The loops `across` lie along no last axis in memory.

    Raises:
        IrregularError: when some step fits no stage.
    """
    return _Scheduler(op, steps, taken, across).run()


def check_stages(op: Op, steps: tuple[Step, ...]) -> None:
    """As `schedule`, of which only the errors are wanted."""
    for _ in _Scheduler(op, steps).plans():
        pass


class _Scheduler:
    def __init__(
        self, op: Op, steps: tuple[Step, ...], taken: Collection[str] = (), across: frozenset[Loop] = frozenset()
    ) -> None:
        self.op, self.across = op, across
        self.outputs = {o.name for o in op.outputs}
        self.overwrites = dict(op.inplace)
        """The outputs that take the memory of an input."""
        self.step: Mapping[str, Step] = {s.target: s for s in steps}
        self.reads: Mapping[str, tuple[str, ...]] = {
            s.target: tuple(dict.fromkeys(r.operand for r in reads(s.value))) for s in steps
        }
        self.made_of = {name: [n for n in read if n in self.step] for name, read in self.reads.items()}
        """The steps that each step reads."""
        self.counted = {s.target: counted(s) for s in steps}
        self.domains = {s.target: _domain(s) for s in steps}
        namer = Namer({*op_names(op), *self.step, *taken})
        self.stored = {o.name: namer.fresh(f"{o.name}_value") for o in op.outputs if o.name in self.step}
        """The names of temporaries that hold outputs for later stages."""
        alive = self._closure(self.outputs)
        self.steps = [s for s in steps if s.target in alive]
        consumed = {name for s in self.steps for name in self.reads[s.target]}
        self.roots = [s for s in self.steps if s.target in self.outputs or (s.reduction is not None and s.target in consumed)]

    def _closure(self, names: Iterable[str], stop: Collection[str] = (), but: Collection[str] = ()) -> set[str]:
        """Return every step that the steps `names` need, themselves included, not looking past `stop`.

        Steps of `but`, with which all that they need has been found before, are left out.
        """
        found: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name in self.step and name not in found and name not in but:
                found.add(name)
                todo += [n for n in self.reads[name] if n not in stop]
        return found

    @cached_property
    def needed(self) -> dict[str, set[str]]:
        """The steps that each output needs."""
        return {o.name: self._closure([o.name]) for o in self.op.outputs}

    @cached_property
    def inputs(self) -> dict[str, set[str]]:
        """The inputs that each step is computed from, through whatever other steps."""
        found: dict[str, set[str]] = {}
        for name, read in self.reads.items():  # what a step reads comes before it
            found[name] = {n for n in read if n not in self.step}.union(*(found[n] for n in self.made_of[name]))
        return found

    def run(self) -> tuple[tuple[Stage, ...], tuple[Temporary, ...]]:
        stages: list[Stage] = []
        temporaries: list[Temporary] = []
        # Where some step fits no stage, none is made.
        for plan, kept, memory in list(self.plans()):
            stages.append(self._both(plan, kept, memory, f"{self.op.name}_{len(stages)}"))
            for target, name in kept.items():
                s = self.step[target]
                temporaries.append(Temporary(name, s.type, s.loops, self._needed_by(s)))
        if len(stages) == 1 and isinstance(stages[0], RowStage):
            stages = [replace(stages[0], name=self.op.name)]
        return tuple(stages), tuple(temporaries)

    def plans(self) -> Iterator[tuple[StagePlan, dict[str, str], dict[str, str]]]:
        """Yield what each stage computes, what of it is kept for later ones, and what is in memory before: targets of steps, and
        the names they have in memory."""
        memory: dict[str, str] = {}
        pending = list(self.roots)
        while pending:
            plan = self._next(memory, pending)
            if not plan.produced:
                what = f"{pending[0].target} mixes loops in a way that no row stage has"
                raise UnplacedError(what, frozenset(s.target for s in pending))
            plan.produced = self._in_time(self._fitting(plan, memory), memory, {s.target for s in pending})
            if not plan.produced:
                raise OperandsError(
                    f"{pending[0].target} is written where others still read, for which there are too many operands"
                )
            done = plan.targets
            pending = [s for s in pending if s.target not in done]
            kept = self._kept(plan, pending, frozenset(memory))
            yield plan, kept, memory
            memory = memory | kept

    def _fitting(self, plan: StagePlan, memory: Mapping[str, str]) -> list[Step]:
        """Return as much of what a plan produces as one stage has operands for.

        Raises:
            OperandsError: when a single value takes more.
        """
        chosen: list[Step] = []
        needed, read, written = set[str](), set[str](), 0
        for s in plan.produced:
            more = self._closure([s.target], memory, needed)
            reading = {n for t in more if t not in memory for n in self.reads[t] if n not in self.step or n in memory} - read
            # What is reduced may be an output and be kept for later stages.
            writing = written + 1 + (s.reduction is not None and s.target in self.outputs)
            if len(read) + len(reading) + writing <= MOST_OPERANDS:
                chosen.append(s)
                needed |= more
                read |= reading
                written = writing
        if not chosen:
            raise OperandsError(f"{plan.produced[0].target} takes more than {MOST_OPERANDS} operands")
        return chosen

    def _next(self, memory: Mapping[str, str], pending: list[Step]) -> StagePlan:
        """Return the plan of the next stage: the best, or one that lets more be done in passes along the rows of the best."""
        waiting = {s.target for s in pending}
        plans = sorted((self._plan(k, memory, waiting) for k in self._keys(pending)), key=self._merit, reverse=True)
        best, done = plans[0], plans[0].targets
        for other in plans[1:] if best.key.whole else ():
            if not other.produced or not done.isdisjoint(other.targets):
                continue
            gain = self._along(self._plan(best.key, _with(memory, other), waiting)) - self._along(best)
            later = self._plan(other.key, _with(memory, best), waiting)
            loss = len(later.targets - done) - len(other.produced)
            if gain > loss:
                return other
        return best

    def _in_time(self, produced: list[Step], memory: Collection[str], waiting: Collection[str]) -> list[Step]:
        """Return those of the products of a stage that may be written in it: no later stage reads what they overwrite.

        What is no reduction is computed anew by later stages, so that these read what it is made of.
        """
        while early := {s.target for s in produced} & self.overwrites.keys():
            done = {s.target for s in produced}
            stop = {*memory, *(s.target for s in produced if s.reduction is not None)}
            later = self._closure((n for n in waiting if n not in done), stop)
            read = {n for name in later for n in self.reads[name]}
            early = {n for n in early if self.overwrites[n] in read}
            if not early:
                break
            produced = [s for s in produced if s.target not in early]
        return produced

    def _along(self, plan: StagePlan) -> int:
        """Return how many values a plan writes at each point of its rows."""
        return sum(s.reduction is None and bool(set(s.loops) & plan.key.row) for s in plan.produced)

    def _needed_by(self, step: Step) -> tuple[str, ...]:
        return tuple(output for output, needed in self.needed.items() if step.target in needed)

    def _keys(self, pending: list[Step]) -> list[_Key]:
        """Return the candidate stages: for each pending step its rows, if it is a reduction over them, and its plain domain."""
        keys: dict[_Key, None] = {}
        for s in pending:
            if s.reduction is not None and s.loops and s.reduction.loops:
                keys[_Key(frozenset(s.loops), frozenset(s.reduction.loops), True)] = None
            keys[_Key(frozenset(), self.domains[s.target], False)] = None
        return list(keys)

    def _merit(self, plan: StagePlan) -> tuple[bool, bool, int, int, bool]:
        """Order plans: more work first, counted in loops, then more steps; between equals rows that are contiguous in the tensors
        read. Whole rows that lie across these come last, where sums over points do what they do, and before them rows in pieces
        that lie apart, unless a second pass over them is to find them in cache."""
        order = self._order(plan)
        row = plan.key.row
        apart = plan.key.whole and set(order[-1:]) <= row != set(order[len(order) - len(row) :])
        work = sum(len(self.domains[s.target]) for s in plan.produced)
        contiguous = plan.key.whole == (set(order[-1:]) <= row)
        first = not self._lies_across(plan) and (not apart or self._passes_again(plan))
        return bool(plan.produced), first, work, len(plan.produced), contiguous

    def _lies_across(self, plan: StagePlan) -> bool:
        """Whether whole rows lie along no last axis of what they are read from; a group behind them may have no axes."""
        if plan.key.whole and plan.key.row & self.across:
            return True
        read = dict.fromkeys(name for s in plan.produced for name in sorted(self.inputs[s.target]))
        found = [_operand_loops(self.op, name, plan.key.full) for name in read]
        last = [loops[-1] for loops in found if set(loops) & plan.key.row]
        return plan.key.whole and bool(last) and all(isinstance(x, IndexLoop) and x not in plan.key.row for x in last)

    def _passes_again(self, plan: StagePlan) -> bool:
        """Whether something along the rows needs what is folded along them."""
        behind = set[str]()
        for s in self.steps:  # what a step reads comes before it
            if any(n in plan.reductions or n in behind for n in self.made_of[s.target]):
                behind.add(s.target)
        along = [s for s in plan.produced if s.target in plan.reductions or set(s.loops) & plan.key.row]
        return any(s.target in behind for s in along)

    def _plan(self, key: _Key, memory: Mapping[str, str], waiting: Collection[str]) -> StagePlan:
        """Return what a stage with these loops can produce of what is waited for, given what is in memory."""
        available: set[str] = set(memory)
        plan = StagePlan(key, [], set())
        for s in self.steps:
            if s.target in memory or not available.issuperset(self.made_of[s.target]):
                continue
            if self.counted[s.target] and not (key.whole and len(key.row) == 1 and self.counted[s.target] == key.row):
                continue
            loops = frozenset(s.loops)
            if s.reduction is None:
                if all(x in key.full or joint(x) in key.full for x in s.loops):
                    available.add(s.target)
                if s.target in self.outputs and (loops == key.full or (key.whole and loops == key.outer)):
                    plan.produced.append(s)
            elif key.whole and s.reduction.broadcast is None and (loops, frozenset(s.reduction.loops)) == (key.outer, key.row):
                available.add(s.target)
                plan.reductions.add(s.target)
                plan.produced.append(s)
            elif self.domains[s.target] == key.full and not (key.whole and _lies_apart(s, key.row)):
                plan.produced.append(s)
        plan.produced = [s for s in plan.produced if s.target in waiting]
        plan.produced = self._in_time(plan.produced, memory, waiting)
        return plan

    def _kept(self, plan: StagePlan, pending: list[Step], memory: frozenset[str]) -> dict[str, str]:
        """Return the targets of the stage's reductions that later stages read, and the names of their temporaries."""
        produced = frozenset(s.target for s in plan.produced if s.reduction is not None)
        later = self._closure((s.target for s in pending), produced | memory)
        wanted = {n for name in later for n in self.reads[name]} & produced
        return {s.target: self.stored.get(s.target, s.target) for s in plan.produced if s.target in wanted}

    def _order(self, plan: StagePlan) -> tuple[Loop, ...]:
        """Return the loops of the stage in the order in which most tensors store them."""
        full = plan.key.full
        candidates = [s.loops for s in plan.produced if s.reduction is None]
        operands = [o.name for o in (*self.op.outputs, *self.op.inputs)]
        read: dict[str, None] = {}
        for s in plan.produced:
            if not self.inputs[s.target] <= read.keys():
                read |= dict.fromkeys(name for name in operands if name in self.inputs[s.target])
        candidates += [_operand_loops(self.op, name, full) for name in read]
        candidates += [s.loops for s in plan.produced]
        best = max(candidates, key=lambda loops: len(set(loops) & full), default=())
        found = [x if x in full else joint(x) for s in plan.produced for x in s.domain]
        rest = [loop for loop in found if loop in full and loop not in best]
        # A diagonal is stored along one of them twice.
        return (*dict.fromkeys(loop for loop in best if loop in full), *dict.fromkeys(rest))

    def _both(self, plan: StagePlan, kept: Mapping[str, str], memory: Mapping[str, str], name: str) -> RowStage:
        """Return the stage of a plan, with the form in which what lacks its last loop is there once a row.

        Groups behind that loop may turn out to have no axes, so it may be the last but these. Of a single loop, only what is
        reduced to one number lacks it: a row is then reduced in registers.
        """
        stage = self._stage(plan, kept, memory, name)
        if plan.key.whole or not stage.row:
            return stage
        for last in reversed(stage.row):
            key = _Key(plan.key.full - {last}, frozenset([last]), True)
            once = self._stage(replace(plan, key=key), kept, memory, name)
            if any(not o.along_row and (o.loops or o.reduction is not None) for o in once.operands):
                return replace(stage, once=once) if len(once.passes) <= 2 and not once.buffers else stage
            if not isinstance(last, GroupLoop):
                break
        return stage

    def _stage(self, plan: StagePlan, kept: Mapping[str, str], memory: Mapping[str, str], name: str) -> RowStage:
        order = self._order(plan)
        outer = tuple(loop for loop in order if loop in plan.key.outer)
        row = tuple(loop for loop in order if loop in plan.key.row)
        targets = [s.target for s in plan.produced]
        needed = self._closure(targets, frozenset(memory))
        body = [s for s in self.steps if s.target in needed and s.target not in memory]

        products: list[StageOperand] = []
        stores: list[tuple[str, Step]] = []
        for s in plan.produced:
            accumulates = s.reduction is not None and s.target not in plan.reductions
            along_row = not self._reduces_first(plan, s) if accumulates else bool(set(s.loops) & plan.key.row)
            kind = s.reduction.kind if accumulates and s.reduction is not None else None
            names: list[tuple[str, str, ValueType]] = []
            names += [(s.target, "output", self.op.output(s.target).type)] if s.target in self.outputs else []
            names += [(kept[s.target], "temporary", s.type)] if s.target in kept else []
            for product, where, stored in names:
                products.append(StageOperand(product, where, stored, s.loops, along_row, True, kind))
                stores.append((product, s))
        inputs = self._stage_inputs(body, memory, plan.key)
        here = {s.target: _seen_in(s, plan.key.full, row) for s in body}
        # What folds along these rows may serve steps of other stages alone.
        reductions = {n for n in plan.reductions if n in here} | {s.target for s in plan.produced if self._reduces_first(plan, s)}
        passes = build_passes(
            list(here.values()), reductions, plan.key.row, [(product, here[s.target]) for product, s in stores], memory,
            frozenset(self.overwrites),
        )  # fmt: skip
        optional = self._optional(products)
        return RowStage(
            name, outer, row, plan.key.whole, (*inputs, *products), passes, optional,
            self._needed(body, stores, optional, memory), refusals=_refusals(plan.produced),
        )  # fmt: skip

    def _reduces_first(self, plan: StagePlan, s: Step) -> bool:
        """Whether a reduction over points is one over whole rows too, so that a row is reduced first and then taken in."""
        r = s.reduction
        if r is None or s.target in plan.reductions or r.broadcast is not None:
            return False
        return plan.key.whole and plan.key.row <= set(r.loops)

    def _stage_inputs(self, body: list[Step], memory: Mapping[str, str], key: _Key) -> list[StageOperand]:
        read = dict.fromkeys(n for s in body for n in self.reads[s.target])
        found = []
        for o in self.op.inputs:
            if o.name in read:
                loops = _operand_loops(self.op, o.name, key.full)
                found.append(StageOperand(o.name, "input", o.type, loops, bool(set(loops) & key.row)))
        for n in read:
            if n in memory:
                s = self.step[n]
                # An operand's own group runs along the joint one, where a stage has that.
                along_row = bool(_seen_from(s.loops, key.full) & key.row)
                found.append(StageOperand(memory[n], "temporary", s.type, s.loops, along_row))
        return found

    def _optional(self, products: list[StageOperand]) -> tuple[str, ...]:
        """Return all products when there are several of which the caller may leave some out, and that shall save work.

        The price is a copy of the loops for each product. Where there are many, and in tangents, whose outputs are mostly wanted
        all together, what is not wanted is computed and dropped instead.
        """
        if len(products) > MOST_COPIES or (self.op.derivation is not None and self.op.derivation.kind == "jvp"):
            return ()
        optional = {o.name for o in self.op.outputs if o.optional}
        leaves = [p for p in products if p.name in optional or p.kind == "temporary"]
        return tuple(p.name for p in products) if len(products) > 1 and leaves and optional else ()

    def _needed(
        self, body: list[Step], stores: list[tuple[str, Step]], optional: tuple[str, ...], memory: Mapping[str, str]
    ) -> dict[str, frozenset[str]]:
        """Return for each step of the body the products it is there for, unless all need it."""
        if not optional:
            return {}
        closures = {name: self._closure([s.target], frozenset(memory)) for name, s in stores}
        every = frozenset(optional)
        needs = {s.target: frozenset(p for p, c in closures.items() if s.target in c) for s in body}
        return {name: n for name, n in needs.items() if n != every}


def _refusals(steps: Iterable[Step]) -> tuple[Refusal, ...]:
    """Return when steps have no value: where a loop that is asked for is one of those reduced, they always have."""
    found = [
        Refusal(s.source.target, s.reduction.kind, s.reduction.loops, asked)
        for s in steps
        if s.reduction is not None
        for asked in s.asked
    ]
    return tuple(dict.fromkeys(found))


def _with(memory: Mapping[str, str], plan: StagePlan) -> Mapping[str, str]:
    """Return what is in memory once a plan has run."""
    return {**memory, **{s.target: s.target for s in plan.produced if s.reduction is not None}}


def _domain(step: Step) -> frozenset[Loop]:
    """Return the loops a step's value is computed over; a broadcast sum runs over the joint ones."""
    loops = step.domain
    if step.reduction is not None and step.reduction.broadcast is not None:
        loops = tuple(joint(x) for x in loops)
    return frozenset(loops)


def _lies_apart(step: Step, row: frozenset[Loop]) -> bool:
    """Whether a sum over points has an element for each of several pieces of a row: its terms would be stored to be added up."""
    return bool(row & set(step.loops)) and not row <= set(step.loops)


def _seen_in(step: Step, full: frozenset[Loop], row: tuple[Loop, ...]) -> Step:
    """Return a step where a stage runs over `full`, with an index that it uses as a number under its name there."""
    loops = tuple(_seen_from(step.loops, full))
    names = {x.index: Affine.of(Index(r.index)) for x in counted(step) for r in row if isinstance(r, IndexLoop) and r == x}
    return replace(step, loops=loops, value=substitute(step.value, names) if names else step.value)


def _seen_from(loops: tuple[Loop, ...], full: frozenset[Loop]) -> frozenset[Loop]:
    """Return the loops of a value where a stage runs over `full`: there, an operand's own group is part of the joint one."""
    return frozenset(x if x in full else joint(x) for x in loops)


def _operand_loops(op: Op, name: str, full: frozenset[Loop]) -> tuple[Loop, ...]:
    """Return the loops of an operand as loops of a stage: a broadcast operand's own are part of the joint ones there."""
    named = {x: x for x in full}
    loops = []
    for own in operand_loops(op, name):
        loop = own if own in full else joint(own)
        loops.append(named.get(loop, loop))
    return tuple(loops)
