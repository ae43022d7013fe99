"""How the entry function of an op describes a stage and runs it."""

from __future__ import annotations

from collections.abc import Iterator

from opc.analysis.needs import outputs_that_need
from opc.emit.cpp.expressions import compute_types
from opc.emit.cpp.loops import KernelText
from opc.emit.cpp.scalars import CppScalarText
from opc.emit.cpp.text import message_literal
from opc.emit.kernel.nests import dtype_text, memory_text, row_nest_lines, tensor_text
from opc.emit.shapes.cpp import dim_member, group_member, type_member
from opc.ir.affine import Dim
from opc.ir.dtypes import DType, TypeVar, half_types
from opc.ir.expr import ELLIPSIS, has_reduction
from opc.ir.op import Group, Op
from opc.lower.loop_ir import GroupLoop, IndexLoop, Loop, NestStage, Refusal, RowStage, StageOperand, joint, loop_of
from opc.lower.lower import SpecialisedProgram
from opc.records import replace


def by_point(text: KernelText) -> bool:
    """Whether a function goes point by point through operands as they are stored."""
    return text.kernel.form == "nest"


def row_types(tile: KernelText, of: TypeVar) -> tuple[DType, ...]:
    """Return the dtypes that a function of rows is instantiated for: compute types, and behind them those that it converts."""
    return (*compute_types(of), *(half_types(of) if tile.kernel.converts == of else ()))


class StageText:
    """Writes the stages of one op inside its entry function, given their tile functions by stage name."""

    op: Op
    variants: tuple[SpecialisedProgram, ...]
    tiles: dict[str, KernelText]
    scalar: CppScalarText

    def _function(self, stage: str) -> str:
        """Return the tile function of a stage for the call's types."""
        tile = self.tiles[stage]
        positions = [
            f"[{'row' if t == tile.kernel.converts else 'index'}_{t.name}]" for t in tile.types if len(row_types(tile, t)) > 1
        ]
        return f"loops.{stage}{''.join(positions)}"

    def _extent(self, loop: Loop) -> str:
        if isinstance(loop, GroupLoop):
            return f"call.{group_member((loop.name, loop.of))}"
        return self._loop_size(loop)

    def _loop_size(self, loop: Loop) -> str:
        if isinstance(loop, GroupLoop):
            return f"opc::count(call.{group_member((loop.name, loop.of))})"
        atom = loop.extent.single
        if isinstance(atom, Dim):
            return f"call.{dim_member(atom.name)}.size"
        return self.scalar.number(loop.extent)

    def _stage(self, s: RowStage, op: Op) -> Iterator[str]:
        yield from self._described(s, op)
        if s.once is not None:
            positions = [n for n, o in enumerate(s.once.operands) if not o.along_row]
            yield f"  opc::mark_inner_invariant(stage, {{{', '.join(map(str, positions))}}});"
        if invariant := s.schedule.args("segments"):
            positions = [n for n, o in enumerate(s.operands) if o.name in invariant]
            yield f"  opc::mark_inner_invariant(stage, {{{', '.join(map(str, positions))}}});"
        if "nontemporal" in s.schedule:
            yield "  stage.nontemporal = true;"
        if (of := self.tiles[s.name].kernel.converts) is not None:
            stored = ", ".join(f"opc::dtype_{d}" for d in half_types(of))
            yield f"  opc::convert_in_loops<{stored}>(stage, call.{type_member(of.name)}.element);"
        function = self._function(s.name)
        if s.optional:
            positions = [n for n, o in enumerate(s.operands) if o.written]
            yield f"  const int32_t optional[] = {{{', '.join(map(str, positions))}}};"
            yield f"  code = opc::run_wanted(stage, loops.rows, {function}, &arguments, optional);"
        else:
            yield f"  code = opc::run(stage, loops.rows, {function}, &arguments);"

    def _described(self, s: RowStage, op: Op) -> Iterator[str]:
        """Yield the lines that describe the axes and the operands of a stage."""
        yield from self._nonempty(s, op)
        yield f"  opc::operand operands[{len(s.operands)}];"
        yield "  opc::stage stage;"
        yield "  opc::start(stage, context, operands);"
        axes: dict[Loop, str] = {}
        for loop in s.outer:
            yield self._add_axis(loop, axes)
        if s.whole_rows:
            yield f"  opc::begin_row(stage, {len(s.buffers)});"
        for loop in s.row:
            yield self._add_axis(loop, axes)
        for o in s.operands:
            yield self._add_operand(o, axes, op)

    def _nest(self, s: NestStage, op: Op) -> Iterator[str]:
        text = self.tiles[s.name]
        assert text.nest is not None, "a nest stage has the text of a nest"
        if not by_point(text):
            yield from row_nest_lines(self.op, s, text, self.scalar)
            return
        yield f"  opc::nest_operand operands[{len(text.nest.operands)}];"
        yield "  opc::nest_fault fault;"
        yield "  opc::nest nest;"
        yield "  opc::start(nest, context, operands, fault);"
        for d in op.operand(s.assign.target).dims:
            loop = loop_of(d)
            yield f"  opc::add_entry(nest, {self._extent(loop)});"
        for name in text.nest.operands:
            tensor = tensor_text(self.op, name)
            yield f"  opc::add_tensor(nest, {tensor});" if tensor else f"  opc::add_temporary(nest, {memory_text(name)});"
        index = "".join(f"[stored_{t.name}]" for t in text.types if len(t.dtypes) > 1)
        grain = 64 if has_reduction(s.assign.value) else 4096
        yield f"  code = opc::run(nest, loops.{s.name}{index}, &arguments, {grain});"

    def _add_axis(self, loop: Loop, axes: dict[Loop, str]) -> str:
        if isinstance(loop, GroupLoop):
            name = "axes" if loop.name == ELLIPSIS else f"axes_{loop.name}"
            axes[loop] = name if name not in axes.values() else f"{name}_{len(axes)}"
            return f"  const opc::axes {axes[loop]} = opc::add_axes(stage, call.{group_member((loop.name, loop.of))});"
        axes[loop] = f"axis_{loop.index}" if f"axis_{loop.index}" not in axes.values() else f"axis_{loop.index}_{len(axes)}"
        return f"  const opc::axes {axes[loop]} = opc::add_axis(stage, {self._loop_size(loop)});"

    def _add_operand(self, o: StageOperand, axes: dict[Loop, str], op: Op) -> str:
        places = "".join(f", {text}" for text in self._places(o, axes, op))
        role = f"opc::role_{o.reduction or ('output' if o.written else 'input')}"
        along = "opc::in_rows" if o.along_row else "opc::once_a_row"
        if (tensor := tensor_text(self.op, o.name)) is not None:
            return f"  opc::add_tensor(stage, {role}, {along}, {tensor}{places});"
        return f"  opc::add_temporary(stage, {role}, {along}, {memory_text(o.name)}, {dtype_text(o.type)}{places});"

    def _places(self, o: StageOperand, axes: dict[Loop, str], op: Op) -> Iterator[str]:
        """Yield the axes of the stage along which those of an operand lie: one that is split in the lowered op along two."""
        loops = [_axes_of(loop, axes) for loop in o.loops]
        if o.kind == "temporary":
            yield from loops
            return
        dims = list(op.operand(o.name).dims)
        for own in self.op.operand(o.name).dims:
            if dims.pop(0) == own:
                yield loops.pop(0)
            else:
                dims.pop(0)
                yield f"opc::split_axis(stage, {loops.pop(0)}, {loops.pop(0)})"

    def _nonempty(self, s: RowStage, op: Op) -> Iterator[str]:
        """Yield the refusals of a maximum over nothing."""
        needs = self._needs(op) if s.refusals else {}
        for refusal in s.refusals:
            some = "".join(f" && {self._loop_size(x)} {_POSITIVE[_is_size(x)]}" for x in dict.fromkeys(refusal.asked))
            some += self._with_elements(needs[refusal.target], refusal)
            for loop in refusal.loops:
                # Along an empty axis nothing is used.
                if self._loop_size(loop) in map(self._loop_size, refusal.asked):
                    continue
                name = loop.index if isinstance(loop, IndexLoop) else str(loop)
                message = message_literal(f"{self.op.name}: {refusal.kind} over {name} of nothing: its size is 0")
                empty = f"{self._loop_size(loop)} {_EMPTY[_is_size(loop)]}{some}"
                yield f"  if ({empty}) return opc::fail(context, OPC_INVALID_ARGUMENT, {message});"

    def _needs(self, op: Op) -> dict[str, set[str]]:
        """Return the outputs that need each statement's target, by way of the steps of recurrences too."""
        parts = {t.name: t.needed_by for v in self.variants for t in v.program.temporaries if t.part_of is not None}
        own = tuple(t for t in op.temporaries if t.name in parts)
        found = outputs_that_need(replace(op, outputs=(*op.outputs, *own)))
        return {name: {o for user in users for o in parts.get(user, (user,))} for name, users in found.items()}

    def _with_elements(self, names: set[str], refusal: Refusal) -> str:
        """Return the condition that one of the outputs that need something has elements; empty where it is known."""
        own = {d for x in refusal.asked for d in ([Group(x.name, x.of)] if isinstance(x, GroupLoop) else [x.extent])}
        users = [n for n, o in enumerate(self.op.outputs) if o.name in names]
        if len(users) == len(self.op.outputs) or any(set(self.op.outputs[n].dims) <= own for n in users):
            return ""
        return f" && !({' && '.join(f'opc::nothing_wanted(outputs + {n}, 1)' for n in users)})"


_POSITIVE = {True: "!= 0", False: "> 0"}
_EMPTY = {True: "== 0", False: "<= 0"}
"""Tests of a size, and of an extent that may be negative."""


def _is_size(loop: Loop) -> bool:
    return isinstance(loop, GroupLoop) or isinstance(loop.extent.single, Dim)


def _axes_of(loop: Loop, axes: dict[Loop, str]) -> str:
    """Return the stage's axes of a loop; an operand's own loop lies on the one it is broadcast along."""
    return axes[loop if loop in axes else joint(loop)]
