"""From the statements of an op to stages: regular statements together, every other one on its own.

Regular statements are fused as far as possible, so each is put off until a statement that runs on its own needs it. What a group
computes for statements outside it becomes a temporary in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from opc.ir.expr import operands_read
from opc.ir.op import Assign, Op, Operand
from opc.lower.alone import of_statement
from opc.lower.contractions.contraction import contraction_stage
from opc.lower.loop_ir import Loop, Program, RowStage, Stage, StageOperand, Temporary, loop_of
from opc.lower.nests.scatter import scatter_plan
from opc.lower.rematerialise import with_rematerialised_values
from opc.lower.rows.flatten import IrregularError, OperandsError, UnplacedError, counted, flatten
from opc.lower.rows.schedule import check_stages, schedule
from opc.lower.statement import lower_statement
from opc.records import dataclass, replace
from opc.transform.indices import op_names


def partition(op: Op, lazy: bool = False, alone: frozenset[str] = frozenset()) -> Program:
    """Return the stages of an op that is not regular as a whole, each after those whose results it reads.

    What is `lazy` is told by `flatten`. The statements with the targets `alone` run on their own if they are not regular.
    """
    plain = _Partition(op, lazy, alone)
    changed = with_rematerialised_values(op, plain.regular, plain.nests())
    chosen = plain if changed is op else _Partition(changed, lazy, alone)
    program = chosen.run()
    return partition(op, lazy, alone | chosen.left) if chosen.left else program


class _Partition:
    def __init__(self, op: Op, lazy: bool, alone: frozenset[str]) -> None:
        self.op, self.lazy = op, lazy
        self.reads = _waits(op)
        alive = self._needs(o.name for o in op.outputs)
        self.pending = [s for s in op.body if s.target in alive]
        self.memory: set[str] = set()
        self.stages: list[Stage] = []
        self.temporaries: list[Temporary] = []
        self.outputs_of = {o.name: self._needs([o.name]) for o in op.outputs}
        forms = {s.target: _form(op, s, lazy) for s in self.pending if not self._is_contraction(s)}
        self.regular = {name for name, form in forms.items() if form.regular}
        self.joining = self._joining(forms) - alone
        self.left = frozenset[str]()
        """The statements that were to join a row stage, and found none."""

    def _joining(self, forms: Mapping[str, _Form]) -> set[str]:
        """Return the statements that are not regular by themselves, but in a row stage with the reductions they are made of.

        Whether that stage has all else that they read is told by the schedule of the whole.
        """
        joining, reduced = set[str](), dict[str, frozenset[_Rows]]()
        for name, form in forms.items():  # what a statement reads comes before it
            behind = frozenset[_Rows]().union(*(reduced.get(n, ()) for n in self.reads[name]))
            if form.regular:
                reduced[name] = behind | form.reduced
            elif form.counted and form.counted <= behind:
                joining.add(name)
        return joining

    def _needs(self, names: Iterable[str]) -> set[str]:
        """Return every statement that the statements `names` need, themselves included, by target."""
        found, todo = set[str](), list(names)
        while todo:
            name = todo.pop()
            if name in self.reads and name not in found:
                found.add(name)
                todo += self.reads[name]
        return found

    def nests(self) -> set[str]:
        """Return the targets of the statements that run as loop nests of their own."""
        together = self.regular | self.joining
        return {s.target for s in self.pending if s.target not in together and not self._is_contraction(s)}

    def _is_contraction(self, s: Assign) -> bool:
        in_groups = any(self.op.operand(name).numbers for name in self.reads[s.target])
        return (in_groups or scatter_plan(self.op, s) is None) and contraction_stage(self.op, s, s.target) is not None

    def run(self) -> Program:
        """Return the program."""
        while self.pending:
            together = self.regular | self.joining
            alone = next((s for s in self.pending if s.target not in together and self._ready(s)), None)
            if alone is not None:
                self._single(alone)
                continue
            irregular = [s.target for s in self.pending if s.target not in self.regular]
            group = self._computable(self._needs(irregular) if irregular else {s.target for s in self.pending})
            assert group, f"{self.op.name}: {self.pending[0].target} waits for what is not computed"
            self._together(group)
        return Program(self.op.name, tuple(self.stages), tuple(self.temporaries))

    def _computable(self, wanted: set[str]) -> list[Assign]:
        """Return the statements among `wanted` that are computed together from what is in memory."""
        group: list[Assign] = []
        known, fits = set(self.memory), wanted & (self.regular | self.joining)
        for s in self.pending:
            if s.target in fits and self.reads[s.target] & self.reads.keys() <= known:
                group.append(s)
                known.add(s.target)
        return group

    def _ready(self, s: Assign) -> bool:
        return self.reads[s.target] & self.reads.keys() <= self.memory

    def _single(self, s: Assign) -> None:
        name = f"{self.op.name}_{s.target}"
        contraction = contraction_stage(self.op, s, name) if self._is_contraction(s) else None
        self.stages.append(contraction or lower_statement(self.op, s, name))
        self._store([s])

    def _store(self, done: Sequence[Assign]) -> None:
        """Record that the targets of `done` are in memory."""
        outputs = {o.name for o in self.op.outputs}
        gone = {s.target for s in done}
        self.pending = [s for s in self.pending if s.target not in gone]
        later = {name for s in self.pending for name in self.reads[s.target]}
        for s in done:
            if s.target in outputs:
                self.memory.add(s.target)
            elif s.target in later:
                self.memory.add(s.target)
                self.temporaries.append(temporary(self.op.operand(s.target), self._needed_by(s.target)))

    def _needed_by(self, name: str) -> tuple[str, ...]:
        return tuple(output for output, needed in self.outputs_of.items() if name in needed)

    def _together(self, statements: list[Assign]) -> None:
        """Append the row stages of a group of regular statements, or of its first where they don't go together.

        Where a stage would take too many operands, those of half the group: each part keeps what later ones read.
        """
        group = self._group(statements)
        try:
            taken = self._names()
            stages, temporaries = schedule(group, flatten(group, taken, self.lazy), taken)
        except IrregularError as error:
            if isinstance(error, OperandsError) and len(statements) > 1:
                half = len(statements) // 2
                while half < len(statements) - 1 and statements[half].target in self.joining:
                    half += 1
                self._together(statements[:half])
                self._together(statements[half:])
                return
            joining = {s.target for s in statements} & self.joining
            left = (isinstance(error, UnplacedError) and joining & error.targets) or joining
            self.joining -= left
            self.left |= left
            self._together([s for s in statements if s.target not in left] if left else statements[:1])
            return
        self.stages += [self._with_places(s) for s in stages]
        self.temporaries += [replace(t, needed_by=self._outputs_of(t.needed_by)) for t in temporaries]
        self._store(statements)

    def _names(self) -> frozenset[str]:
        """Return the names that the temporaries of a group must keep clear of."""
        return frozenset(op_names(self.op)) | {t.name for t in self.temporaries}

    def _outputs_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the outputs of the op that need one of `names`."""
        wanted = set(names)
        return tuple(output for output, needed in self.outputs_of.items() if needed & wanted)

    def _group(self, statements: list[Assign]) -> Op:
        """Return an op of these statements alone: what they read from memory are its inputs, what others need its outputs."""
        own = {s.target for s in statements}
        used = {name for s in statements for name in self.reads[s.target]} - own
        later = {name for s in self.pending if s.target not in own for name in self.reads[s.target]}
        outputs = {o.name: o for o in self.op.outputs}
        stored = [replace(o, optional=False) for o in (*self.op.temporaries, *self.op.outputs) if o.name in used]
        produced: list[Operand] = [o for o in self.op.outputs if o.name in own]
        for t in self.op.temporaries:
            if t.name in own and t.name in later:
                produced.append(replace(t, optional=all(outputs[n].optional for n in self._needed_by(t.name))))
        kept = {o.name for o in produced}
        temporaries = tuple(t for t in self.op.temporaries if t.name in own and t.name not in kept)
        return replace(
            self.op,
            name=f"{self.op.name}_{len(self.stages)}",
            inputs=(*self.op.inputs, *stored),
            outputs=tuple(produced),
            temporaries=temporaries,
            body=tuple(statements),
            inplace=tuple((y, x) for y, x in self.op.inplace if y in own),
        )

    def _with_places(self, stage: Stage) -> Stage:
        """Return a row stage of a group with each operand where it is in the whole op."""
        if not isinstance(stage, RowStage):
            return stage
        outputs = {o.name for o in self.op.outputs}
        temporaries = {t.name for t in self.op.temporaries}

        def place(o: StageOperand) -> StageOperand:
            return replace(o, kind="output" if o.name in outputs else "temporary" if o.name in temporaries else o.kind)

        operands = tuple(place(o) for o in stage.operands)
        once = None if stage.once is None else replace(stage.once, operands=tuple(place(o) for o in stage.once.operands))
        return replace(stage, operands=operands, once=once)


def _waits(op: Op) -> dict[str, frozenset[str]]:
    """Return what each statement waits for: what it reads, and where it takes the memory of an input, all else that reads it."""
    found = {s.target: operands_read(s.value) for s in op.body}
    for output, source in op.inplace:
        fed = {output}
        for s in op.body:
            if found[s.target] & fed:
                fed.add(s.target)
        found[output] |= {name for name, read in found.items() if source in read and name not in fed}
    return found


_Rows: TypeAlias = tuple[frozenset[Loop], frozenset[Loop]]
"""The loops of the points that own a row each, and those along the row."""


@dataclass(frozen=True, slots=True)
class _Form:
    """What a statement is by itself.

    It is `regular` when stages compute it from what it reads. `reduced` are the rows that its reductions fold, `counted` those
    along which it uses an index as a number where all else is regular.
    """

    regular: bool
    reduced: frozenset[_Rows] = frozenset()
    counted: frozenset[_Rows] = frozenset()


@of_statement
def _form(op: Op, s: Assign, lazy: bool) -> _Form:
    """Return what a statement is by itself."""
    used = operands_read(s.value) - {s.target}
    stored = (replace(o, optional=False) for o in (*op.temporaries, *op.outputs) if o.name in used)
    target = replace(op.operand(s.target), optional=False)
    alone = replace(op, inputs=(*op.inputs, *stored), outputs=(target,), temporaries=(), body=(s,), inplace=())
    try:
        steps = flatten(alone, lazy=lazy)
    except IrregularError:
        return _Form(False)
    reduced = frozenset((frozenset(t.loops), frozenset(t.reduction.loops)) for t in steps if t.reduction is not None)
    along = frozenset((frozenset(t.loops) - row, row) for t in steps if (row := frozenset[Loop](counted(t))))
    try:
        check_stages(alone, steps)
    except IrregularError:
        return _Form(False, reduced, along)
    return _Form(True, reduced, along)


def temporary(o: Operand, needed_by: tuple[str, ...]) -> Temporary:
    """Return the memory of a tensor between stages, which is there for some outputs."""
    loops = tuple(map(loop_of, o.dims))
    return Temporary(o.name, o.type, loops, needed_by)
