"""Contractions as matrix products, with what is done with the sum as a part of the same stage."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine
from opc.ir.dtypes import is_floating
from opc.ir.expr import Axis, BroadcastAxis, Call, Cast, Const, Expr, GroupAxis, GroupRef, Read, rewrite
from opc.ir.op import Group, Op
from opc.lower.build.context import UnsupportedForm
from opc.lower.contractions.factors import AxisIndex, Factor, GroupNumber
from opc.lower.loop_ir import ContractionStage, GroupLoop, IndexLoop, Loop, RowLet, RowStore, Term
from opc.lower.poplar.convolutions import convolution
from opc.lower.poplar.needs import Needs
from opc.lower.poplar.nodes import Along, Let, Product, Step, Store, TensorStage, View
from opc.lower.poplar.views import check_value, multiplies
from opc.transform.indices import Namer, op_names


def contraction_steps(op: Op, stage: ContractionStage, needs: Needs) -> TensorStage:
    """Return a contraction as products of its factors.

    Raises:
        UnsupportedForm: when a factor is no plain view of a tensor.
    """
    return _Contraction(op, stage, needs).steps()


class _Contraction:
    def __init__(self, op: Op, stage: ContractionStage, needs: Needs) -> None:
        self.op, self.stage, self.needs = op, stage, needs
        self.namer = Namer(op_names(op))
        self.places: dict[str, int] = {}
        """The position of each index and group among the loops."""
        self.loops: list[Loop] = []
        self.views: dict[tuple[str, tuple[Along, ...]], View] = {}
        self.target = op.operand(stage.assign.target)
        for entry, dim in zip(stage.assign.indices, self.target.dims, strict=True):
            self._add(str(entry), GroupLoop(dim.name) if isinstance(dim, Group) else IndexLoop(str(entry), dim))
        self.kept = tuple(
            Along(self.places[str(entry)], GroupLoop(dim.name, dim.of) if isinstance(dim, Group) and dim.of else None)
            for entry, dim in zip(stage.assign.indices, self.target.dims, strict=True)
        )

    def steps(self) -> TensorStage:
        """Return the stage."""
        stage, needed = self.stage, self.needs.of((self.stage.assign.target,))
        if not multiplies(stage.type):
            raise UnsupportedForm("poplin multiplies floating matrices alone")
        steps: list[Step] = []
        names = []
        for n, term in enumerate(stage.terms):
            names.append(stage.total if len(stage.terms) == 1 else self.namer.fresh(f"{stage.total}_{n + 1}"))
            steps.append(self._term(names[-1], term, needed))
        if len(names) != 1:
            total: Expr = Const(0, stage.type)
            for n, name in enumerate(names):
                read = Read(name, (), stage.type)
                total = read if n == 0 else Call("add", (total, read), stage.type)
            steps.append(Let(stage.total, stage.type, total, stage.assign, needed))
        steps += self._epilogue(needed)
        return TensorStage(stage.name, tuple(self.loops), tuple(self.views.values()), (), tuple(steps))

    def _term(self, name: str, term: Term, needed: tuple[str, ...]) -> Step:
        """Return a term of the sum as a matrix product, or where that has windows as a convolution."""
        source, kind = self.stage.assign, self.stage.type
        if any(f.guards or any(isinstance(a, AxisIndex) and len(a.parts) > 1 for a in f.axes) for f in term.factors):
            if any(is_floating(kind) and not is_floating(f.read.type) for f in term.factors):
                raise UnsupportedForm("integers are read in windows as floats")
            return convolution(self.op, source, term, name, kind, needed)
        left, right = (self._factor(f, term) for f in term.factors)
        return Product(name, kind, left, right, self.kept, self._over(term), term.conditions, source, needed)

    def _add(self, name: str, loop: Loop) -> None:
        if name in self.places:
            known = self.loops[self.places[name]]
            if isinstance(known, IndexLoop) and isinstance(loop, IndexLoop) and known.extent != loop.extent:
                raise UnsupportedForm(f"{name} runs over different sizes")
            return
        self.places[name] = len(self.loops)
        self.loops.append(loop)

    def _factor(self, f: Factor, term: Term) -> Expr:
        for axis in term.axes:
            match axis:
                case Axis():
                    self._add(axis.index, IndexLoop(axis.index, axis.extent))
                case GroupAxis():
                    self._add(str(axis), GroupLoop(axis.name))
                case BroadcastAxis():
                    if str(GroupRef(axis.name)) not in self.places:
                        raise UnsupportedForm(f"a sum over the axes that {axis.operand} lacks, of no result")
        value = self._read(f.read, [self._index(f, a) for a in f.axes if not isinstance(a, GroupNumber)])
        return value if is_floating(value.type) or not is_floating(self.stage.type) else Cast(value, self.stage.type)

    def _over(self, term: Term) -> tuple[int, ...]:
        names = (a.index if isinstance(a, Axis) else str(a) for a in term.axes if not isinstance(a, BroadcastAxis))
        return tuple(self.places[n] for n in names)

    def _index(self, f: Factor, a: AxisIndex | GroupRef) -> str:
        """Return the index or group along which an axis of a factor lies, where it does along one whole loop."""
        if isinstance(a, GroupRef):
            return str(a)
        one, zero = Affine.of(1), Affine.of(0)
        if len(a.parts) != 1 or a.guarded or a.offset != zero or a.divisor != one:
            raise UnsupportedForm(f"{f.read.operand} is read in windows")
        (part,) = a.parts
        if (part.times, part.scale, part.shift, part.divisor) != (one, one, zero, one):
            raise UnsupportedForm(f"{f.read.operand} is read in steps")
        return part.index

    def _read(self, read: Read, names: list[str]) -> Expr:
        """Return the value of a tensor whose axes lie along the indices and groups of these names."""
        declared = self.op.operand(read.operand)
        axes = []
        for name, dim in zip(names, declared.dims, strict=True):
            if name not in self.places:
                raise UnsupportedForm(f"{name} is no loop of the stage")
            place = self.places[name]
            loop = self.loops[place]
            if isinstance(dim, Group):
                axes.append(Along(place, GroupLoop(dim.name, dim.of) if dim.of else None))
            else:
                assert isinstance(loop, IndexLoop), "indices run along single axes"
                axes.append(Along(place, part=loop.extent != dim))
        if len({a.loop for a in axes}) < len(axes):
            raise UnsupportedForm(f"{read.operand} is read along a diagonal")
        key = read.operand, tuple(axes)
        if key not in self.views:
            taken = {v.name for v in self.views.values()}
            name = self.namer.fresh(read.operand) if read.operand in taken else read.operand
            self.views[key] = View(name, read.operand, key[1])
        return Read(self.views[key].name, (), read.type)

    def _epilogue(self, needed: tuple[str, ...]) -> Iterator[Step]:
        stage = self.stage
        places = dict(stage.operand_indices)
        local = {stage.total}

        def named(e: Expr) -> Expr:
            if not isinstance(e, Read) or e.operand in local:
                return e
            return self._read(e, [str(i) for i in places[e.operand]])

        (one,) = stage.epilogue.passes
        for action in (*one.prologue, *one.body):
            check_value(action.value)
            value = rewrite(action.value, named)
            match action:
                case RowLet():
                    local.add(action.name)
                    yield Let(action.name, action.type, value, stage.assign, needed)
                case RowStore():
                    target = View(self.target.name, self.target.name, self.kept)
                    yield Store(target, self.target.type, value, stage.assign, needed=needed)
                case _:
                    raise UnsupportedForm("what is done with the sum keeps values")
