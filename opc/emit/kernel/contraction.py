"""Contractions as C++: what the entry function says of loops, factors and operands. The loops themselves are the runtime's."""

from __future__ import annotations

from collections.abc import Iterator

from opc.emit.cpp.scalars import CppScalarText
from opc.emit.cpp.text import message_literal
from opc.emit.kernel.nests import dtype_text, memory_text, tensor_text
from opc.emit.shapes.cpp import group_member
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import DType, Weak, candidates, is_floating
from opc.ir.expr import Axis, BroadcastAxis, Call, Const, GroupAxis, GroupRef, Present, Read, Select, free_indices, walk
from opc.ir.op import Group, Op
from opc.lower.contractions.factors import AxisIndex, Factor, GroupNumber, Part
from opc.lower.loop_ir import ContractionStage, FusedRows, PointGroups, RowStore, Term

_ANY_SIZE = "opc::any_size"


class ContractionText:
    """Writes the call of one contraction inside an entry function.

    `function` is the epilogue's tile function.
    `rows` is the axis of which the contraction computes a block, None where it computes everything; `kept` is then the place of
    what it keeps for the next block.
    """

    def __init__(
        self,
        op: Op,
        stage: ContractionStage,
        scalar: CppScalarText,
        function: str,
        rows: FusedRows | None = None,
        kept: int = 0,
    ) -> None:
        self.op, self.stage, self.scalar, self.function = op, stage, scalar, function
        self.rows, self.kept = rows, kept
        self.inputs = [o.name for o in op.inputs]
        self.axes: dict[str | GroupRef, str] = {}
        self.names: set[str] = set()
        self.across: dict[str, str] = {}

    def lines(self) -> Iterator[str]:
        """Yield the statements that describe the contraction and run it."""
        s = self.stage
        target = self.op.operand(s.assign.target)
        yield f"  opc::operand operands[{len(s.epilogue.operands)}];"
        yield "  opc::stage stage;"
        yield "  opc::start(stage, context, operands);"
        for entry, dim in zip(s.assign.indices, target.dims, strict=True):
            name = self._axis(entry)
            if isinstance(dim, Group):
                yield f"  const opc::axes {name} = opc::add_axes(stage, call.{group_member((dim.name, dim.of))});"
            else:
                yield f"  const opc::axes {name} = opc::add_axis(stage, {self._size(dim)});"
        yield f"  const opc::dtype computed = {dtype_text(s.type)};"
        yield "  opc::add_sum(stage, computed);"
        for operand, (name, indices) in zip(s.epilogue.operands[1:], s.operand_indices, strict=True):
            yield self._operand(name, indices, operand.written)
        yield f"  opc::term terms[{len(s.terms)}];"
        yield "  opc::contraction sum;"
        yield "  opc::start(sum, stage, terms);"
        if s.groups is not None:
            yield "  opc::point_groups groups;"
            yield f"  opc::start(groups, {self._size(s.groups.count)});"
            if s.groups.batch is None:
                yield from self._in_groups(s.groups)
        if self.rows is not None:
            yield f"  if (rows.kept != nullptr) sum.kept = rows.kept + {self.kept};"
        if self.rows is not None or DType.BFLOAT16 in candidates(target.type):
            yield from self._scaled()
        for term in s.terms:
            condition = " && ".join(self._condition(c) for c in self._conditions(term))
            yield f"  if ({condition}) {{" if condition else "  {"
            yield from (f"  {line}" for line in self._term(term))
            yield "  }"
        sums = "loops.sums[computed == opc::dtype_float64]" if is_floating(s.type) else "loops.whole_sums"
        run = f"opc::run(sum, {sums}, loops.rows, computed, {self.function}, &arguments)"
        if s.groups is None:
            yield f"  code = {run};"
        else:
            yield "  opc::find_by_place(sum, groups);"
            yield f"  if (code == OPC_OK) code = {run};"

    def _scaled(self) -> Iterator[str]:
        """Yield what says that results are sums times a number of the call, where no optional operand is added to them.

        What stands for such an operand is a zero: that of a sum changes -0, and -0 changes nothing.
        """
        store = self.stage.epilogue.passes[-1].body[-1]
        if not isinstance(store, RowStore) or store.source is None:
            return
        value, added = store.source.value, "-0.0"
        missing: str | None = None
        match value:
            case Call(fn="add", args=(product, Select(cond=Present() as given, then=Read(), other=Const(value=0)))):
                value, added, missing = product, "0.0", given.operand
        match value:
            case Call(fn="mul", args=(number, Read() as total)) | Call(fn="mul", args=(Read() as total, number)):
                scale = None if any(isinstance(e, Read) for e in walk(number)) or free_indices(number) else number
            case Read() as total:
                scale = Const(1.0, Weak.FLOAT)
            case _:
                return
        if scale is None or total.operand != self.stage.total or scale.type is not Weak.FLOAT:
            return
        absent = "" if missing is None else f"if (inputs[{self.inputs.index(missing)}] == nullptr) "
        yield f"  {absent}opc::scale(sum, {self.scalar.condition(scale)}, {added});"

    def _axis(self, entry: str | GroupRef) -> str:
        wanted = "axes" if isinstance(entry, GroupRef) and entry.name == "..." else f"axis_{getattr(entry, 'name', entry)}"
        name, count = wanted, 2
        while name in self.names:
            name, count = f"{wanted}_{count}", count + 1
        self.names.add(name)
        self.axes[entry] = name
        return name

    def _size(self, e: Affine) -> str:
        return str(e.constant) if e.constant is not None else self.scalar.number(e)

    def _conditions(self, term: Term) -> list[str]:
        return [self.scalar.condition(c) for c in term.conditions]

    @staticmethod
    def _condition(text: str) -> str:
        return f"({text})" if "||" in text else text

    def _operand(self, name: str, indices: tuple[Affine | GroupRef, ...], written: bool) -> str:
        places = "".join(f", {self.axes[i if isinstance(i, GroupRef) else str(i)]}" for i in indices)
        role = "opc::role_output" if written else "opc::role_input"
        if (tensor := tensor_text(self.op, name)) is not None:
            return f"  opc::add_tensor(stage, {role}, opc::in_rows, {tensor}{places});"
        computed = dtype_text(self.op.operand(name).type)
        return f"  opc::add_temporary(stage, {role}, opc::in_rows, {memory_text(name)}, {computed}{places});"

    def _term(self, term: Term) -> Iterator[str]:
        outer, names = dict(self.axes), set(self.names)
        self.across = {}
        yield "  opc::term &term = opc::add_term(sum);"
        for axis in term.axes:
            match axis:
                case Axis():
                    yield f"  const opc::axes {self._axis(axis.index)} = opc::add_inner(sum, {self._size(axis.extent)});"
                case GroupAxis():
                    group = group_member((axis.name, None))
                    yield f"  const opc::axes {self._axis(GroupRef(axis.name))} = opc::add_inner(sum, call.{group});"
                case BroadcastAxis():
                    own = next(d for d in self.op.operand(axis.operand).dims if isinstance(d, Group) and d.name == axis.name)
                    groups = f"call.{group_member((axis.name, None))}, call.{group_member((own.name, own.of))}"
                    self.across[axis.name] = "across"
                    yield f"  const opc::axes across = opc::add_broadcast(sum, {groups});"
        if term.groups is not None and term.groups.batch is not None:
            yield from self._in_groups(term.groups)
        for n, factor in enumerate(term.factors):
            yield from self._factor(n, factor)
        self.axes, self.names = outer, names

    def _in_groups(self, groups: PointGroups) -> Iterator[str]:
        """Yield what puts the points of loops in the order of their groups."""
        yield from (f"  opc::add_loops(groups, {self.axes[loop]});" for loop in groups.loops)
        if groups.batch is not None:
            yield f"  groups.batch = {self.axes[groups.batch]}.first;"
        numbers = f"static_cast<const int64_t *>({memory_text(groups.numbers)}.data)"
        what, axis = (message_literal(groups.of[0]), groups.of[1]) if groups.of is not None else ("nullptr", 0)
        yield f"  code = opc::put_in_order(groups, sum, {numbers}, {what}, {axis});"

    def _factor(self, position: int, f: Factor) -> Iterator[str]:
        name = f.read.operand
        local = ("left", "right")[position]
        slot = f"term.factors[{position}]"
        tensor = tensor_text(self.op, name)
        of = f"{slot}, {tensor}" if tensor else f"{slot}, {memory_text(name)}, {dtype_text(self.op.operand(name).type)}"
        yield f"  opc::factor_axes {local} = opc::{'tensor' if tensor else 'temporary'}_factor({of});"
        if self.rows is not None and name in self.inputs and Affine.of(Dim(self.rows.dim)) not in self.op.operand(name).dims:
            yield f"  {slot}.stays = true;"
        for axis, dim in zip(f.axes, self.op.operand(name).dims, strict=True):
            if isinstance(axis, GroupRef):
                assert isinstance(dim, Group), "a group is indexed by a group"
                across = f", {self.across[axis.name]}" if axis.name in self.across else ""
                yield f"  opc::add_group({local}, {self.axes[axis]}, call.{group_member((dim.name, dim.of))}{across});"
            elif isinstance(axis, GroupNumber):
                yield f"  opc::add_number(opc::add_index({local}, 0, 1, opc::inside), groups);"
            else:
                guard = "opc::skipped" if axis.skips else "opc::padded" if axis.guarded else "opc::inside"
                numbers = f"{self._size(axis.offset)}, {self._size(axis.divisor)}"
                yield from self._index(f"opc::add_index({local}, {numbers}, {guard})", axis)
        for condition in f.guards:
            size = _ANY_SIZE if condition.size is None else self._size(condition.size)
            yield from self._index(f"opc::add_guard({local}, {size}, {self._size(condition.offset)})", condition)

    def _index(self, start: str, axis: AxisIndex) -> Iterator[str]:
        text = start
        for part in axis.parts:
            text = f"opc::add_part({text}, {self._part(part)})"
        yield f"  {text};"

    def _part(self, part: Part) -> str:
        texts = [self.axes[part.index], self._size(part.times)]
        if part.divisor != Affine.of(1) or part.scale != Affine.of(1) or part.shift != Affine.of(0):
            texts += [self._size(part.scale), self._size(part.shift), self._size(part.divisor)]
        return ", ".join(texts)
