"""The kernel functions of the C ABI: check the call, then describe each stage and run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opc.analysis.needs import outputs_that_need
from opc.analysis.shapes.plan import plan
from opc.emit.abi import kernel_prototype
from opc.emit.cpp.expressions import compute_types
from opc.emit.cpp.layout import ARGUMENTS, present_member, size_member, wrapped
from opc.emit.cpp.loops import KernelText, symbol_type
from opc.emit.cpp.scalars import CppScalarText
from opc.emit.cpp.text import message_literal
from opc.emit.cpp.values import axes_member
from opc.emit.kernel.asked import asked_for, written_by
from opc.emit.kernel.contraction import ContractionText
from opc.emit.kernel.native import call_struct, prepare_prototype
from opc.emit.kernel.nests import dtype_text, row_nest_lines
from opc.emit.kernel.slices import SliceText
from opc.emit.shapes.cpp import axis_member, definitions, dim_member, group_member, struct_name, type_member
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.dtypes import TypeVar
from opc.ir.expr import ELLIPSIS, has_reduction
from opc.ir.op import AttributeKind, Family, Group, Op
from opc.lower.loop_ir import (
    ContractionStage,
    GroupLoop,
    IndexLoop,
    Loop,
    NestStage,
    Refusal,
    RowStage,
    Stage,
    StageOperand,
    Temporary,
    joint,
)
from opc.lower.lower import SpecialisedProgram
from opc.lower.specialise import Equal


def by_point(text: KernelText) -> bool:
    """Whether a function goes point by point through operands as they are stored."""
    return text.kernel.form == "nest"


class EntryText:
    """Writes the kernel function of one op, given its programs and their tile functions by stage name."""

    def __init__(
        self,
        family: Family,
        op: Op,
        variants: tuple[SpecialisedProgram, ...],
        tiles: dict[str, KernelText],
        wide: tuple[TypeVar, ...] = (),
    ) -> None:
        self.family, self.op, self.variants, self.tiles = family, op, variants, tiles
        self.slices = SliceText(family, op, variants)
        self.wide = () if self.slices.used else wide
        """The types whose operands the loops take as int64."""
        self.scalar = CppScalarText(
            op,
            dim=self.slices.dim,
            group=lambda name: f"call.{group_member((name, None))}",
            axis=lambda name: f"call.{axis_member(name)}",
        )

    def text(self, members: Sequence[tuple[str, str]]) -> str:
        """Return the prologue and the kernel function; `members` are those of the arguments that the family's ops share."""
        op = self.op
        if not self.variants:
            return self._native()
        sliced = self.slices.used
        lines = [f"{kernel_prototype(self.family, op)} {{", f"  {struct_name(op)} call;"]
        begin = [
            f"  int32_t code = begin_{op.name}(inputs, outputs, attributes, call, context);",
            "  if (code != OPC_OK) return code;",
            *self._overlap(),
            f"  if (opc::nothing_wanted(outputs, {len(op.outputs)})) return OPC_OK;",
        ]
        if sliced:
            lines = [*self.slices.prologue(), "  int32_t code = OPC_OK;"]
        else:
            lines += [*begin, *self._widened()]
        lines += [
            f"  const {self.family.name}_loops::table &loops = {self.family.name}_loops::best();",
            *self._arguments(members),
            *self._indices(),
        ]
        for n, variant in enumerate(self.variants):
            body = [line for piece in self._program(variant) for line in piece.split("\n")]
            if len(self.variants) == 1:
                lines += body
            else:
                last = n == len(self.variants) - 1
                condition = " && ".join(self._conditions(variant))
                lines.append("  } else {" if last else f"  {'} else ' if n else ''}if ({condition}) {{")
                lines += [f"  {line}" if line else line for line in body]
        if len(self.variants) > 1:
            lines.append("  }")
        lines += ["  return code;", "}"]
        kernel = [
            f"{kernel_prototype(self.family, op)} {{",
            f"  {struct_name(op)} call;",
            *begin,
            *self.slices.call(self._leaving_out()),
            "}",
        ]
        text = _wrapped(lines)
        if sliced:
            return f"{definitions(self.family, op)}\n{text}\n\nOPC_EXPORT\n{_wrapped(kernel)}\n"
        prepare = f"\n{self.native()}\n" if op is self.family.forward and self.family.native_for("torch") else ""
        return f"{definitions(self.family, op)}{prepare}\nOPC_EXPORT\n{text}\n"

    def native(self) -> str:
        """Return the function that checks a call for native code, with what it needs, and binds what the code has by name."""
        op = self.op
        bound = [f"  bound.{type_member(t.name)} = call.{type_member(t.name)}.element;" for t in op.types]
        bound += [f"  bound.{dim_member(d)} = call.{dim_member(d)}.size;" for d in plan(op).dims]
        bound += [
            f"  bound.{axis_member(a.name)} = call.{axis_member(a.name)};" for a in op.attributes if a.kind is AttributeKind.AXIS
        ]
        lines = [
            f"{prepare_prototype(self.family, op)} {{",
            f"  {struct_name(op)} call;",
            f"  int32_t code = begin_{op.name}(inputs, outputs, attributes, call, context);",
            "  if (code != OPC_OK) return code;",
            *self._overlap(),
            *bound,
            f"  bound.nothing = opc::nothing_wanted(outputs, {len(op.outputs)});",
            "  return code;",
            "}",
        ]
        return "\n".join(wrapped(lines))

    def _native(self) -> str:
        """Return the kernel function of an op that is computed by native code alone."""
        op = self.op
        lines = [
            f"{kernel_prototype(self.family, op)} {{",
            f"  {call_struct(op)} call;",
            f"  const int32_t code = {op.name}_prepare(inputs, outputs, attributes, call, context);",
            "  if (code != OPC_OK || call.nothing) return code;",
            f"  return {op.name}_native(inputs, outputs, attributes, call, context);",
            "}",
        ]
        text = "\n".join(wrapped("\n".join(lines).split("\n")))
        return f"{definitions(self.family, op)}\n{self.native()}\n\nOPC_EXPORT\n{text}\n"

    def _conditions(self, variant: SpecialisedProgram) -> Iterator[str]:
        """Yield what holds in the calls that a program is for."""
        for name, value in variant.case.values:
            yield self._is(name, value)
        empty = " || ".join(f"{self.scalar.number(extent)} <= 0" for extent in variant.case.empty)
        if empty:
            yield f"({empty})" if variant.case.values and " || " in empty else empty

    def _is(self, name: str, value: int | bool | Equal) -> str:
        if isinstance(value, Equal):
            return f"attributes->{name} {value}"
        return f"attributes->{name} {'!=' if value is True else '=='} {0 if isinstance(value, bool) else value}"

    def _leaving_out(self) -> str:
        """Return the condition of the calls in which blocks of rows leave columns out, empty where there are none."""
        if all(v.program.columns is not None for v in self.variants):
            return "true"
        return " || ".join(" && ".join(self._conditions(v)) for v in self.variants if v.program.columns is not None)

    def _overlap(self) -> Iterator[str]:
        op = self.op
        names = ", ".join(message_literal(o.name) for o in (*op.inputs, *op.outputs))
        yield f"  static const char *const names[] = {{{names}}};"
        inputs = [o.name for o in op.inputs]
        outputs = [o.name for o in op.outputs]
        pairs = ", ".join(f"{{{outputs.index(o)}, {inputs.index(i)}}}" for o, i in op.inplace)
        if pairs:
            yield f"  static const opc::inplace_pair pairs[] = {{{pairs}}};"
        yield (
            f"  code = opc::check_overlap({message_literal(op.name)}, names, inputs, {len(inputs)}, outputs, {len(outputs)}, "
            f"{'pairs' if pairs else 'nullptr'}, {len(op.inplace)}, context);"
        )
        yield "  if (code != OPC_OK) return code;"

    def _widened(self) -> Iterator[str]:
        """Yield what copies operands as int64."""
        inputs = [n for n, o in enumerate(self.op.inputs) if o.type in self.wide]
        if not inputs:
            return
        message = message_literal(f"{self.op.name}: no memory for indices of int64")
        yield f"  opc::wide_inputs<{len(self.op.inputs)}> wide_inputs(inputs);"
        for n in inputs:
            yield f"  if (!wide_inputs.widen({n}, context)) return opc::fail(context, OPC_OUT_OF_MEMORY, {message});"
        yield "  inputs = wide_inputs.tensors;"

    def members(self) -> list[tuple[str, str]]:
        """Return the members of the arguments struct that this op fills, besides the attributes: C++ type and name."""
        found: dict[tuple[str, str], None] = {}
        for variant in self.variants:
            for s in variant.program.stages:
                for name in self.tiles[s.name].symbols:
                    found[(symbol_type(name), name)] = None
        return list(found)

    def _arguments(self, members: Sequence[tuple[str, str]]) -> Iterator[str]:
        values, own = ["attributes"] if self.op.attributes else [], set(self.members())
        inputs = [o.name for o in self.op.inputs]
        sizes = {size_member(Dim(name)): Affine.of(Dim(name)) for name in self._dims()}
        sizes |= {size_member(GroupSize(name)): Affine.of(GroupSize(name)) for name in self._groups()}
        if (rows := self.slices.rows) is not None:
            sizes[size_member(Dim(rows.first))] = Affine.of(Dim(rows.first))
        groups = {axes_member(name, of): group_member((name, of)) for name, of in self._own_groups()}
        for kind, name in members:
            if (kind, name) not in own:
                values.append("nullptr" if kind.endswith("*") else "0")
            elif kind == "int32_t":
                operand = next(i for i in inputs if present_member(i) == name)
                values.append(f"inputs[{inputs.index(operand)}] != nullptr")
            elif kind != "int64_t":
                values.append(f"&call.{groups[name]}")
            else:
                values.append(f"{self.scalar.integer(sizes[name], bare=True)}.value")
        yield f"  const {self.family.name}_loops::{ARGUMENTS} arguments = {{{', '.join(values)}}};"

    def _dims(self) -> set[str]:
        shapes = [d for o in (*self.op.inputs, *self.op.outputs) for d in o.dims if isinstance(d, Affine)]
        return {a.name for d in shapes for a in d.atoms() if isinstance(a, Dim)} | {name for name, _ in self.op.dims}

    def _indices(self) -> Iterator[str]:
        """Yield the positions of the bound types among those the functions are instantiated for."""
        functions = [self.tiles[s.name] for v in self.variants for s in v.program.stages]
        for t in self.op.types:
            element = "opc::dtype_int64" if t in self.wide else f"call.{type_member(t.name)}.element"
            computed = ", ".join(f"opc::dtype_{d}" for d in compute_types(t))
            if len(compute_types(t)) > 1 and any(t in f.types for f in functions if not by_point(f)):
                yield f"  const int32_t index_{t.name} = opc::type_index<{computed}>({element});"
            stored = ", ".join(f"opc::dtype_{d}" for d in t.dtypes)
            if len(t.dtypes) > 1 and any(t in f.types for f in functions if by_point(f)):
                yield f"  const int32_t stored_{t.name} = opc::stored_index<{stored}>({element});"

    def _own_groups(self) -> set[tuple[str, str | None]]:
        shapes = [d for o in (*self.op.inputs, *self.op.outputs, *self.op.temporaries) for d in o.dims]
        own = {(d.name, d.of) for d in shapes if isinstance(d, Group)}
        return own | {(name, None) for name, _ in own}

    def _groups(self) -> set[str]:
        return {d.name for o in (*self.op.inputs, *self.op.outputs) for d in o.dims if not isinstance(d, Affine)}

    def _program(self, variant: SpecialisedProgram) -> Iterator[str]:
        yield from self.slices.columns(variant.program.columns, self.scalar)
        for t in variant.program.temporaries:
            yield from self._temporary(t)
        several, lazy = len(variant.program.stages) > 1, asked_for(self.op, variant)
        for s in variant.program.stages:
            wanted = self._stage_condition(s, variant, lazy)
            body = list(self._one(s, variant.case.op))
            if wanted or several:
                opening = " && ".join([*(["code == OPC_OK"] if several and s is not variant.program.stages[0] else []), *wanted])
                yield f"  if ({opening}) {{" if opening else "  {"
                yield from (f"  {line}" for line in body)
                yield "  }"
            else:
                yield from body

    def _one(self, s: Stage, op: Op) -> Iterator[str]:
        """Yield the statements that describe a stage and run it."""
        match s:
            case RowStage():
                yield from self._stage(s, op)
            case ContractionStage():
                yield from ContractionText(op, s, self.scalar, dtype_text, self._function(s.name), *self.slices.kept(s)).lines()
            case _:
                yield from self._nest(s, op)

    def _function(self, stage: str) -> str:
        """Return the tile function of a stage for the call's types."""
        types = self.tiles[stage].types
        return f"loops.{stage}" + "".join(f"[index_{t.name}]" for t in types if len(compute_types(t)) > 1)

    def _wanted(self, outputs: Iterable[str]) -> str:
        """Return the condition that one of these outputs is wanted, empty when one always is."""
        names = list(outputs)
        return "" if any(not self.op.output(n).optional for n in names) else self._any_wanted(names)

    def _any_wanted(self, outputs: list[str]) -> str:
        index = {o.name: n for n, o in enumerate(self.op.outputs)}
        return " || ".join(f"opc::wanted(outputs[{index[n]}])" for n in outputs)

    def _stage_condition(self, stage: Stage, variant: SpecialisedProgram, lazy: set[str]) -> list[str]:
        if isinstance(stage, RowStage) and stage.optional:
            return []
        needed = {t.name: t.needed_by for t in variant.program.temporaries}
        products = written_by(stage)
        outputs = list(dict.fromkeys(n for name in products for n in needed.get(name, (name,))))
        condition = self._any_wanted(outputs) if lazy.issuperset(products) else self._wanted(outputs)
        return [f"({condition})" if " || " in condition else condition] if condition else []

    def _temporary(self, t: Temporary) -> Iterator[str]:
        if t.host is not None:
            yield f"  opc::temporary &{t.name} = {t.host};"
            return
        if not self.slices.used:
            yield f"  opc::temporary {t.name};"
        else:
            yield f"  opc::temporary &{t.name} = memory[{self.slices.position(t.name)}];"
        sizes = "".join(f", {self._extent(loop)}" for loop in t.loops)
        if not t.stored:
            yield f"  opc::describe({t.name}{sizes});"
            return
        allocate = f"!opc::allocate({t.name}, {dtype_text(t.type)}{sizes})"
        wanted = self._wanted(t.needed_by)
        if wanted:
            wanted = f"({wanted})" if " || " in wanted else wanted
            allocate = f"{wanted} && {allocate}"
        yield f"  if ({allocate}) {{"
        yield f'    return opc::fail(context, OPC_OUT_OF_MEMORY, "{self.op.name}: no memory for the temporary {t.name}");'
        yield "  }"

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
            loop = GroupLoop(d.name, d.of) if isinstance(d, Group) else IndexLoop(str(d), d)
            yield f"  opc::add_entry(nest, {self._extent(loop)});"
        inputs, outputs = [i.name for i in self.op.inputs], [o.name for o in self.op.outputs]
        for name in text.nest.operands:
            if name in inputs:
                yield f"  opc::add_tensor(nest, inputs[{inputs.index(name)}]);"
            elif name in outputs:
                yield f"  opc::add_tensor(nest, outputs[{outputs.index(name)}]);"
            else:
                yield f"  opc::add_temporary(nest, {name});"
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
        match o.kind:
            case "temporary":
                return f"  opc::add_temporary(stage, {role}, {along}, {o.name}, {dtype_text(o.type)}{places});"
            case "input":
                position = [i.name for i in self.op.inputs].index(o.name)
                return f"  opc::add_tensor(stage, {role}, {along}, inputs[{position}]{places});"
            case _:
                position = [i.name for i in self.op.outputs].index(o.name)
                return f"  opc::add_tensor(stage, {role}, {along}, outputs[{position}]{places});"

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
        needs = outputs_that_need(op) if s.refusals else {}
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


def _wrapped(lines: list[str]) -> str:
    return "\n".join(wrapped("\n".join(lines).split("\n")))


def _axes_of(loop: Loop, axes: dict[Loop, str]) -> str:
    """Return the stage's axes of a loop; an operand's own loop lies on the one it is broadcast along."""
    return axes[loop if loop in axes else joint(loop)]
