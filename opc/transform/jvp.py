"""Forward mode: the op that pushes tangents of an op's inputs through to its outputs.

Each statement's tangent is the sum over its accesses of partial derivative times tangent read, in the statement's own loops.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from opc.ir.dtypes import ElementType, is_floating
from opc.ir.expr import Expr, Present, Read, ReduceAxis, conjuncts, may_refuse
from opc.ir.op import Assign, Op, Operand
from opc.ir.recurrence import circles, recurrent
from opc.records import replace
from opc.transform import algebra, scalar
from opc.transform.derived import Draft, finish, participants, prepare, sunken
from opc.transform.domain import Domain
from opc.transform.extract import Extractor
from opc.transform.indices import Namer, index_names, op_names
from opc.transform.needed import chosen_alone, support
from opc.transform.normalize import hoist_positions, leading_conditions
from opc.transform.partials import Differentiator, ReadSite
from opc.transform.scalar import ZERO
from opc.transform.sums import sum_over


def jvp(op: Op) -> Op | None:
    """Return the Jacobian-vector product of `op`, named `<op>_jvp`, or None when nothing in it is differentiable.

    Its inputs are the values it needs and a tangent `t_<input>` for each floating input, optional where there are several (an
    absent one is zero); its outputs are `t_<output>` for each floating output.

    Raises:
        SpecError: when the body holds something that has no derivative in the language.
    """
    source = prepare(sunken(op))
    inputs, outputs = participants(source)
    if not inputs or not outputs:
        return None
    return finish(source, _Forward(source, inputs, outputs).draft())


def _within(part: Expr, conditions: Sequence[Expr], known: Collection[Expr]) -> Expr:
    """Return a part under conditions of which some are `known` to lead it, each of them asked only where those before it hold."""
    for at in range(len(conditions) - 1, -1, -1):
        if any(c not in known for c in conditions[at:]):
            part = scalar.select(conditions[at], part, ZERO)
    return part


def _tangent(o: Operand, optional: bool) -> Operand:
    return Operand(f"t_{o.name}", o.type, o.dims, optional, f"Tangent of {o.name}.", permuted=o.permuted)


class _Forward:
    """One run of forward mode over the statements of an op."""

    def __init__(self, op: Op, inputs: tuple[Operand, ...], outputs: tuple[Operand, ...]) -> None:
        self.op = op
        self.seeds = {o.name: self._seed(o, len(inputs) > 1) for o in inputs}
        self.results = {o.name: _tangent(o, True) for o in outputs}
        names = {o.name for o in (*self.seeds.values(), *self.results.values())}
        self.namer = Namer(op_names(op) | index_names(op) | names)
        self.differentiator = Differentiator(lambda name: is_floating(op.operand(name).type), self.namer, op.ties)
        self.extractor = Extractor(op, self.namer)
        self.unasked = chosen_alone(op)
        self.tangents: dict[str, Operand] = dict(self.seeds)

    @staticmethod
    def _seed(o: Operand, several: bool) -> Operand:
        return _tangent(o, several or o.optional)

    def draft(self) -> Draft:
        """Run, and return the statements of the tangents."""
        statements: list[Assign] = []
        fresh: list[Operand] = []
        stepping = recurrent(self.op)
        for s in self.op.body:
            operand = self.op.operand(s.target)
            if s.target in stepping and is_floating(operand.type) and s.target not in self.tangents:
                fresh += self._step(next(c for c in circles(self.op) if s.target in c))
            total = self._tangent(self.differentiator.partials_of(s, operand), operand.type, s)
            statements += self.extractor.statements
            self.extractor.statements.clear()
            result = self.results.get(s.target) or (self.tangents.get(s.target) if s.target in stepping else None)
            if result is None:
                if scalar.is_zero(total):
                    continue
                result = replace(operand, name=self.namer.fresh(f"t_{s.target}"))
                fresh.append(result)
            self.tangents[s.target] = result
            statements.append(Assign(result.name, s.indices, total))
        return Draft(
            "jvp",
            self.op.name,
            f"{self.op.name}_jvp",
            f"Tangent of {self.op.name}.",
            tuple(statements),
            (*fresh, *self.extractor.temporaries),
            tuple((seed, of) for of, seed in self.seeds.items()),
            tuple((result, of) for of, result in self.results.items()),
        )

    def _step(self, targets: Sequence[str]) -> list[Operand]:
        """Declare the tangents of a recurrence, which is one itself; return those that are temporaries."""
        fresh = []
        for name in targets:
            operand = self.op.operand(name)
            if name in self.results:
                self.tangents[name] = self.results[name]
            elif is_floating(operand.type):
                self.tangents[name] = replace(operand, name=self.namer.fresh(f"t_{name}"))
                fresh.append(self.tangents[name])
        return fresh

    def _tangent(self, partials: dict[ReadSite, Expr], kind: ElementType, s: Assign) -> Expr:
        """Return the sum of the products of partial derivatives and tangents, one reduction for each set of loops."""
        domain = Domain.of(s, self.op.operand(s.target))
        by_loops: dict[tuple[ReduceAxis, ...], list[Expr]] = {}
        for access, factor in partials.items():
            tangent = self.tangents.get(access.read.operand)
            if tangent is not None:
                inside = domain.inside(access.loops)
                asked = s.target not in self.unasked
                factor = hoist_positions(factor, inside, s.target, self.extractor, asked=asked)
                tangent_read, guards = self._read(tangent, access.read), leading_conditions(factor)
                moved = hoist_positions(tangent_read, inside, s.target, self.extractor, guards, asked)
                part = algebra.mul(factor, scalar.cast_to(kind, moved))
                if may_refuse(moved):
                    # Where every term of the factor is nothing, so that it was not read there, the tangent is not read either.
                    part = _within(part, conjuncts(support(factor)), guards)
                if tangent.optional:
                    # A tangent is never given without the operand it belongs to; only that must not be read where it is absent.
                    operand = access.read.operand
                    part = scalar.assume(part, Present(operand), True)
                    if self.op.operand(operand).optional and operand in scalar.unguarded(part):
                        part = scalar.select(Present(operand), part, ZERO)
                by_loops.setdefault(access.loops, []).append(part)
        return algebra.total(sum_over(loops, algebra.total(parts)) for loops, parts in by_loops.items())

    def _read(self, tangent: Operand, read: Read) -> Expr:
        pad = None if read.pad is None else ZERO
        moved: Expr = replace(read, operand=tangent.name, type=tangent.type, pad=pad)
        optional = tangent.optional and read.operand in self.seeds
        return scalar.select(Present(tangent.name), moved, ZERO) if optional else moved
