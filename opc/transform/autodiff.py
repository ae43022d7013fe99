"""Reverse mode: the op that takes the gradients of an op's outputs to those of its inputs.

Statements are visited backwards. The adjoint of a statement's target is multiplied by the partial derivative of the value with
respect to each access, and the access is transposed; the contributions to an operand are summed in one statement of its gradient.
The adjoints of a recurrence are a recurrence that goes the other way: transposing the reads makes it that.
The result is an op in the same notation, so that it can be printed, lowered, and differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence

from opc.analysis.bounds.knowledge import knowledge_of
from opc.ir.affine import Affine
from opc.ir.dtypes import Weak, is_floating
from opc.ir.expr import Expr, GroupRef, Present, Read, reads
from opc.ir.op import Assign, Group, Op, Operand, Role
from opc.ir.recurrence import recurrent, segments
from opc.transform import algebra, scalar
from opc.transform.derived import Draft, finish, participants, prepare, sunken
from opc.transform.domain import Domain
from opc.transform.extract import Extractor
from opc.transform.frames import summed_first
from opc.transform.indices import INDEX_NAMES, Namer, bare, index_names, op_names, rename_operands
from opc.transform.needed import Needed, chosen_alone, guarded
from opc.transform.normalize import chosen_outside, hoist_from, hoist_positions, leading_conditions
from opc.transform.partials import Differentiator
from opc.transform.scalar import ZERO
from opc.transform.transpose import transpose


def gradient_name(op: Op, operand: Operand) -> str:
    """Return the name of the gradient of an input: `d_x`, but `d_saved_y` for an output that a backward op takes as input.

    A backward op that takes both `y` and its cotangent `d_y` would otherwise have two meanings for `d_y`.
    """
    roles = {} if op.derivation is None else dict(zip((o.name for o in op.inputs), op.derivation.inputs, strict=True))
    role = roles.get(operand.name)
    return f"d_saved_{operand.name}" if role is not None and role[0] is Role.OUTPUT else f"d_{operand.name}"


def vjp(op: Op) -> Op | None:
    """Return the vector-Jacobian product of `op`, named `<op>_backward`, or None when nothing in it is differentiable.

    Raises:
        SpecError: when the body holds something whose gradient the language can't express; the diagnostic points at it.
    """
    sunk = sunken(op)
    source = prepare(sunk)
    inputs, outputs = participants(source)
    if not inputs or not outputs:
        return None
    gradients = {o.name: gradient_name(op, o) for o in inputs}
    several = len(outputs) > 1
    seeds = {
        o.name: Operand(f"d_{o.name}", o.type, o.dims, several, f"Gradient of {o.name}.", permuted=o.permuted) for o in outputs
    }
    # Of a backward op, an output d_x may itself be needed as a value, next to the new gradient d_x.
    names = _clear(source, set(gradients.values()))
    source = rename_operands(source, names)
    reverse = _Reverse(source, {names.get(n, n): s for n, s in seeds.items()}, gradients, chosen_outside(sunk))
    return finish(source, reverse.draft())


def _clear(op: Op, taken: set[str]) -> dict[str, str]:
    namer = Namer(op_names(op) | index_names(op) | taken)
    return {o.name: namer.fresh(f"{o.name}_value") for o in op.outputs if o.name in taken}


class _Reverse:
    """One run of reverse mode over the statements of an op."""

    def __init__(self, op: Op, seeds: dict[str, Operand], gradients: dict[str, str], asked: bool) -> None:
        self.op = op
        self.seeds = seeds
        self.gradients = gradients
        self.namer = Namer(op_names(op) | index_names(op) | {s.name for s in self.seeds.values()} | set(self.gradients.values()))
        self.differentiator = Differentiator(self._active, self.namer, op.ties)
        self.targets = self._targets()
        self.contributions: dict[str, list[Expr]] = {}
        self.extractor = Extractor(op, self.namer)
        self.knowledge = knowledge_of(op)
        self.statements: list[Assign] = self.extractor.statements
        self.fresh: list[Operand] = self.extractor.temporaries
        self.unasked = chosen_alone(op)
        self.stepping = recurrent(op)
        self.needed = Needed(op, self.namer, self.knowledge, self.statements, self.fresh, asked)

    def _active(self, name: str) -> bool:
        return is_floating(self.op.operand(name).type)

    def _targets(self) -> dict[str, tuple[str | GroupRef, ...]]:
        """Return the index names of each operand's gradient: its own statement's, or for an input those it is read with."""
        own: dict[str, tuple[str | GroupRef, ...]] = {s.target: s.indices for s in self.op.body}
        return own | {o.name: input_indices(self.op, o) for o in self.op.inputs}

    def draft(self) -> Draft:
        """Run, and return the statements of the gradients."""
        for recurrence, statements in reversed(segments(self.op)):
            if recurrence is not None:
                self._step_back(statements)
                continue
            for s in reversed(statements):
                adjoint = self._adjoint(s)
                if adjoint is not None:
                    self._pass_on(s, adjoint)
        outputs = []
        for o in (self.op.input(name) for name in self.gradients):
            total = algebra.total(self.contributions.get(o.name, []))
            name = self.gradients[o.name]
            self.statements.append(Assign(name, self.targets[o.name], total))
            outputs.append((Operand(name, o.type, o.dims, True, f"Gradient of {o.name}.", permuted=o.permuted), o.name))
        return Draft(
            "vjp",
            self.op.name,
            f"{self.op.name}_backward",
            f"Gradient of {self.op.name}.",
            tuple(self.statements),
            tuple(self.fresh),
            tuple((seed, seed.name.removeprefix("d_")) for seed in self.seeds.values()),
            tuple(outputs),
        )

    def _pass_on(self, s: Assign, adjoint: Expr) -> None:
        """Add what the adjoint of a statement's target contributes to the gradients of what the statement reads."""
        domain = Domain.of(s, self.op.operand(s.target))
        need = self.needed.where(s)
        for access, factor in self.differentiator.partials_of(s, self.op.operand(s.target)).items():
            operand = self.op.operand(access.read.operand)
            inside = domain.inside(access.loops)
            asked = s.target not in self.unasked
            conditions = leading_conditions(factor)
            factor = hoist_positions(factor, inside, s.target, self.extractor, asked=asked)
            read = hoist_positions(access.read, inside, s.target, self.extractor, conditions, asked)
            factor = hoist_from(factor, inside, s.target, self.extractor)
            part = guarded(scalar.cast_to(operand.type, algebra.mul(factor, adjoint)), need)
            if operand.optional:
                # The gradient of an operand that is absent is never asked for; only its values must not be read.
                part = scalar.assume(part, Present(operand.name), True)
                if operand.name in scalar.unguarded(part):
                    part = scalar.select(Present(operand.name), part, ZERO)
            target = self.targets[operand.name]
            if not isinstance(read, Read):
                raise AssertionError("a read stays a read")
            around = inside
            if s.target not in self.stepping:
                frames = f"d_{operand.name}_frames"
                around, part = summed_first(read, inside, (factor, adjoint), part, frames, self.extractor)
            moved = transpose(read, around, part, target, operand.dims, self.knowledge)
            self.contributions.setdefault(operand.name, []).append(moved)
            self.needed.read(read, inside, need, factor, target)

    def _step_back(self, statements: Sequence[Assign]) -> None:
        """Pass the adjoints of a recurrence on: they are one that goes the other way.

        What a value contributes to itself at other indices is known only when all statements have been visited. So its adjoint is
        a temporary from the start, and gets its statement in the end.
        """
        arriving = {s.target for s in statements if s.target in self.seeds or self.contributions.get(s.target)}
        waiting = [s for s in statements if s.target in arriving]
        own = {s.target: s for s in statements if self._active(s.target)}
        while waiting:
            s = waiting.pop()
            read = {a.read.operand for a in self.differentiator.partials_of(s, self.op.operand(s.target))}
            waiting += [own[name] for name in sorted(read & own.keys() - arriving)]
            arriving |= read
        reached = [s for s in reversed(statements) if s.target in arriving & own.keys()]
        suffixes = {s.target: "_total" if s.target in self.seeds else "" for s in reached}
        names = {name: self.namer.fresh(f"d_{name}{suffix}") for name, suffix in suffixes.items()}
        self.needed.step(reached, lambda s: self.differentiator.partials_of(s, self.op.operand(s.target)))
        for s in reached:
            self._pass_on(s, Read(names[s.target], bare(s.indices), self.op.operand(s.target).type))
        self.needed.stepped(reached)
        for s in reached:
            operand = self.op.operand(s.target)
            total = algebra.total(self._arriving(s))
            self.fresh.append(Operand(names[s.target], operand.type, operand.dims))
            self.statements.append(Assign(names[s.target], s.indices, total))

    def _arriving(self, s: Assign) -> list[Expr]:
        """Return the parts of the adjoint of a statement's target at its own indices, that of the op's caller first."""
        parts = list(self.contributions.get(s.target, []))
        seed = self.seeds.get(s.target)
        if seed is not None:
            arriving: Expr = Read(seed.name, bare(s.indices), seed.type)
            parts.insert(0, scalar.select(Present(seed.name), arriving, ZERO) if seed.optional else arriving)
        return parts

    def _adjoint(self, s: Assign) -> Expr | None:
        """Return the adjoint of a statement's target at its own indices; None when no gradient arrives there."""
        parts = self._arriving(s)
        seed = self.seeds.get(s.target)
        if seed is not None and len(parts) == 1:
            return parts[0]
        if not parts:
            return None
        total = algebra.total(parts)
        operand = self.op.operand(s.target)
        if scalar.is_zero(total):
            return None
        if scalar.is_leaf(total) and isinstance(total.type, Weak):
            return total
        name = self.namer.fresh(f"d_{s.target}" if seed is None else f"d_{s.target}_total")
        self.fresh.append(Operand(name, operand.type, operand.dims))
        self.statements.append(Assign(name, s.indices, total))
        return Read(name, bare(s.indices), operand.type)


def input_indices(op: Op, o: Operand) -> tuple[str | GroupRef, ...]:
    """Return the index names of an input's gradient: those it is read with where they are bare and distinct, else new ones."""
    fixed = sum(not isinstance(d, Group) for d in o.dims)
    for s in op.body:
        for r in reads(s.value):
            bare_names = [i.index for i in r.indices if isinstance(i, Affine)]
            if r.operand == o.name and None not in bare_names and len(set(bare_names)) == fixed:
                names = iter(n for n in bare_names if n is not None)
                return tuple(GroupRef(d.name) if isinstance(d, Group) else next(names) for d in o.dims)
    namer = Namer(op_names(op))
    return tuple(GroupRef(d.name) if isinstance(d, Group) else namer.fresh(*INDEX_NAMES) for d in o.dims)
