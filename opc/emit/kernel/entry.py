"""The kernel functions of the C ABI: check the call, then describe each stage and run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from opc.analysis.shapes.plan import plan
from opc.emit.abi import kernel_prototype
from opc.emit.cpp.expressions import compute_types, written
from opc.emit.cpp.layout import ARGUMENTS, present_member, size_member, wrapped
from opc.emit.cpp.loops import KernelText, symbol_type
from opc.emit.cpp.scalars import CppScalarText
from opc.emit.cpp.text import message_literal
from opc.emit.cpp.values import axes_member
from opc.emit.kernel.asked import asked_for
from opc.emit.kernel.contraction import ContractionText
from opc.emit.kernel.native import call_struct, prepare_prototype
from opc.emit.kernel.nests import dtype_text, memory_text, step_nest_lines, tensor_text
from opc.emit.kernel.slices import SliceText
from opc.emit.kernel.stages import StageText, by_point
from opc.emit.shapes.cpp import axis_member, definitions, dim_member, group_member, listed_member, struct_name, type_member
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import TypeVar, candidates, half_types
from opc.ir.expr import Read
from opc.ir.op import AttributeKind, Family, Group, Op, Operand
from opc.lower.calls import Calls
from opc.lower.loop_ir import ContractionStage, NestStage, RowStage, RowStore, Stage, StepLoop, Temporary, written_by
from opc.lower.lower import SpecialisedProgram
from opc.lower.specialise import Among, Equal, GroupedSizes, RowSizes, Value


def has_small(op: Op) -> bool:
    """Whether an operand may be of integers of fewer than 8 bits."""
    return any(d.is_small for o in (*op.inputs, *op.outputs) for d in candidates(o.type))


class EntryText(StageText):
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
            dim=self._dim,
            group=lambda name: f"call.{group_member((name, None))}",
            axis=lambda name: f"call.{axis_member(name)}",
        )

    def _dim(self, name: str) -> str:
        """Return the size of a dimension where the stages are run; that of a step is a variable of its loop."""
        return name if name in self._step_names() else self.slices.dim(name)

    def _step_names(self) -> set[str]:
        return {loop.index for v in self.variants for loop in v.program.steps}

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
            *self._small(),
            *self.arranged(),
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
        lines += [*self._programs(), "  return code;", "}"]
        kernel = [
            f"{kernel_prototype(self.family, op)} {{",
            f"  {struct_name(op)} call;",
            *begin,
            *self.slices.call(self._leaving_out(), self.scalar),
            "}",
        ]
        text = _wrapped(lines)
        if sliced:
            return f"{definitions(self.family, op)}\n{text}\n\nOPC_EXPORT\n{_wrapped(kernel)}\n"
        prepare = f"\n{self.native()}\n" if op is self.family.forward and self.family.native_for("torch") else ""
        return f"{definitions(self.family, op)}{prepare}\nOPC_EXPORT\n{text}\n"

    def _programs(self) -> Iterator[str]:
        """Yield the statements of all programs, of which a call chooses one."""
        for n, variant in enumerate(self.variants):
            body = [line for piece in self._program(variant) for line in piece.split("\n")]
            if len(self.variants) == 1:
                yield from body
                return
            condition = " && ".join(self._conditions(variant))
            yield "  } else {" if n == len(self.variants) - 1 else f"  {'} else ' if n else ''}if ({condition}) {{"
            yield from (f"  {line}" if line else line for line in body)
        yield "  }"

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
        yield from map(self._pays, variant.case.pays)
        how = arrangement(self.op)
        if variant.case.across and how is not None:
            n, o = next((n, o) for n, o in enumerate(self.op.inputs) if how.is_mixed(o))
            rest, picked = (f"call.{group_member((name, None))}" for name in (how.rest, how.picked))
            first = "true" if how.picked_first(o) else "false"
            yield f"opc::lies_across(inputs[{n}], {rest}, {picked}, {first}, {'true' if variant.case.apart else 'false'})"

    def _pays(self, sizes: GroupedSizes | RowSizes) -> str:
        """Return the condition that a product is worth what it takes to put its points in order, or its rows together."""

        def listed(numbers: Iterable[Affine]) -> str:
            return f"{{{', '.join(map(self.scalar.number, numbers))}}}"

        if isinstance(sizes, RowSizes):
            return f"opc::rows_pay({listed(sizes.again)}, {listed(sizes.elements)})"
        return f"opc::groups_pay({listed(sizes.points)}, {self.scalar.number(sizes.count)}, {listed(sizes.elements)})"

    def _in(self, calls: Calls | None) -> list[str]:
        """Return the condition that a call is one of these, none where all are."""
        if calls is None:
            return []
        cases = []
        for case in calls.cases:
            each = [" || ".join(self._is(name, value) for value in values) for name, values in case]
            cases.append(" && ".join(f"({c})" if " || " in c else c for c in each))
        return [f"({' || '.join(f'({c})' if ' && ' in c else c for c in cases)})" if len(cases) > 1 else cases[0]]

    def _is(self, name: str, value: Value) -> str:
        if isinstance(value, Among):
            element = f"call.{type_member(name)}.element"
            found = " || ".join(f"{element} == opc::dtype_{d}" for d in value.dtypes)
            return f"({found})" if len(value.dtypes) > 1 else found
        if isinstance(value, Equal):
            return f"attributes->{name} {'==' if value.holds else '!='} {written(value.number)}"
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

    def arranged(self) -> Iterator[str]:
        """Yield what gives mixed and thinned operands the axes of their declarations."""
        how, op = arrangement(self.op), self.op
        if how is None:
            return
        made: list[str] = []

        def tensor(o: Operand, given: str) -> str:
            if not (how.is_mixed(o) or how.is_thinned(o)):
                return given
            made.append(o.name)
            values = f"arranged[{len(made) - 1}], {given}, call.{listed_member(how.axes)}"
            if how.is_mixed(o):
                return f"opc::arrange({values}, {'true' if how.picked_first(o) else 'false'})"
            return f"attributes->{how.keeps} == 0 ? {given} : opc::leave_out({values})"

        inputs = [tensor(o, f"inputs[{n}]") for n, o in enumerate(op.inputs)]
        outputs = [tensor(o, f"outputs[{n}]") for n, o in enumerate(op.outputs)]
        yield f"  opc::arranged arranged[{len(made)}];"
        yield f"  const DLTensor *const arranged_inputs[] = {{{', '.join(inputs)}}};"
        yield f"  DLTensor *const arranged_outputs[] = {{{', '.join(outputs)}}};"
        yield "  inputs = arranged_inputs;"
        yield "  outputs = arranged_outputs;"

    def _small(self) -> Iterator[str]:
        """Yield what copies operands of integers of fewer than 8 bits."""
        op = self.op
        if not has_small(op):
            return
        message = message_literal(f"{op.name}: no memory for integers of fewer than 8 bits")
        yield f"  const opc::small_integers<{len(op.inputs)}, {len(op.outputs)}> small_integers(inputs, outputs);"
        yield f"  if (small_integers.failed) return opc::fail(context, OPC_OUT_OF_MEMORY, {message});"
        yield "  inputs = small_integers.inputs;"
        yield "  outputs = const_cast<DLTensor *const *>(small_integers.outputs);"

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
        steps = {size_member(Dim(name)) for name in self._step_names()}
        if (rows := self.slices.rows) is not None:
            sizes |= {size_member(Dim(name)): Affine.of(Dim(name)) for name in rows.sizes}
        groups = {axes_member(name, of): group_member((name, of)) for name, of in self._own_groups()}
        for kind, name in members:
            if (kind, name) not in own:
                values.append("nullptr" if kind.endswith("*") else "0")
            elif kind == "int32_t":
                operand = next(i for i in inputs if present_member(i) == name)
                values.append(f"inputs[{inputs.index(operand)}] != nullptr")
            elif name in steps:
                values.append("0")
            elif kind != "int64_t":
                values.append(f"&call.{groups[name]}")
            else:
                values.append(f"{self.scalar.integer(sizes[name], bare=True)}.value")
        constant = "" if steps else "const "
        yield f"  {constant}{self.family.name}_loops::{ARGUMENTS} arguments = {{{', '.join(values)}}};"

    def _dims(self) -> set[str]:
        shapes = [d for o in (*self.op.inputs, *self.op.outputs) for d in o.dims if isinstance(d, Affine)]
        return {a.name for d in shapes for a in d.atoms() if isinstance(a, Dim)} | {name for name, _ in self.op.dims}

    def _indices(self, only: SpecialisedProgram | None = None) -> Iterator[str]:
        """Yield the positions of the bound types among those the functions are instantiated for.

        A program for some of a type's dtypes has positions of its own, and `only` yields these.
        """
        variants = self.variants if only is None else (only,)
        functions = [self.tiles[s.name] for v in variants for s in v.program.stages]
        for t in self.op.types if only is None else (t for t in only.case.op.types if t not in self.op.types):
            element = "opc::dtype_int64" if t in self.wide else f"call.{type_member(t.name)}.element"
            computed = ", ".join(f"opc::dtype_{d}" for d in compute_types(t))
            rows = [f for f in functions if not by_point(f) and t in f.types]
            if len(compute_types(t)) > 1 and any(f.kernel.converts != t for f in rows):
                yield f"  const int32_t index_{t.name} = opc::type_index<{computed}>({element});"
            if any(f.kernel.converts == t for f in rows):
                halves = ", ".join(f"opc::dtype_{d}" for d in half_types(t))
                yield f"  const int32_t row_{t.name} = opc::row_index<{computed}, {halves}>({element});"
            stored = ", ".join(f"opc::dtype_{d}" for d in t.dtypes)
            if len(t.dtypes) > 1 and any(t in f.types for f in functions if by_point(f)):
                yield f"  const int32_t stored_{t.name} = opc::stored_index<{stored}>({element});"

    def _own_groups(self) -> set[tuple[str, str | None]]:
        shapes = [d for o in self.op.operands for d in o.dims]
        own = {(d.name, d.of) for d in shapes if isinstance(d, Group)}
        return own | {(name, None) for name, _ in own}

    def _groups(self) -> set[str]:
        return {d.name for o in (*self.op.inputs, *self.op.outputs) for d in o.dims if not isinstance(d, Affine)}

    def _program(self, variant: SpecialisedProgram) -> Iterator[str]:
        yield from self._indices(variant)
        yield from self.slices.columns(variant.program.columns, self.scalar)
        for t in variant.program.temporaries:
            yield from self._temporary(t)
        several, lazy = len(variant.program.stages) > 1, asked_for(self.op, variant)
        loops = {loop.first: loop for loop in variant.program.steps}
        ends = {loop.end for loop in variant.program.steps if not loop.by_points}
        apart = {n for loop in variant.program.steps if loop.by_points for n in range(loop.first, loop.end)}
        for n, s in enumerate(variant.program.stages):
            if n in ends:
                yield "  }"
            if n in apart:
                if n in loops:
                    yield from self._by_points(loops[n], variant, lazy)
                continue
            if n in loops:
                yield from self._step(loops[n], variant)
            wanted = self._stage_condition(s, variant, lazy)
            body = list(self._one(s, variant.case.op))
            if wanted or several:
                opening = " && ".join([*(["code == OPC_OK"] if several and s is not variant.program.stages[0] else []), *wanted])
                yield f"  if ({opening}) {{" if opening else "  {"
                yield from (f"  {line}" for line in body)
                yield "  }"
            else:
                yield from body
        if len(variant.program.stages) in ends:
            yield "  }"
        yield from self.slices.redone(variant.program)

    def _step(self, loop: StepLoop, variant: SpecialisedProgram) -> Iterator[str]:
        """Yield the head of a loop over the steps of a recurrence, and what its stages need to know of the present step."""
        extent, index = self.scalar.number(loop.extent), loop.index
        head = f"{index} = {extent} - 1; {index} >= 0; --{index}" if loop.falls else f"{index} = 0; {index} < {extent}; ++{index}"
        yield f"  for (int64_t {head}) {{"
        yield "    if (code != OPC_OK) return code;"
        yield from self._given_to_loops(index)
        written = {name for s in variant.program.stages[loop.first : loop.end] for name in written_by(s)}
        for t in variant.program.temporaries:
            if t.part_of is not None and t.name in written:
                yield f"    const opc::one_step {memory_text(t.name)}({memory_text(t.part_of)}, {dtype_text(t.type)}, {index});"

    def _given_to_loops(self, index: str) -> Iterator[str]:
        """Yield what tells the functions of stages the present step."""
        if ("int64_t", size_member(Dim(index))) in self.members():
            yield f"    arguments.{size_member(Dim(index))} = {index};"

    def _by_points(self, loop: StepLoop, variant: SpecialisedProgram, lazy: set[str]) -> Iterator[str]:
        """Yield the description of nests whose steps threads take for some of their points at a time, and what runs them."""
        stages = variant.program.stages[loop.first : loop.end]
        parts = {t.name: t for t in variant.program.temporaries}
        conditions = [self._stage_condition(s, variant, lazy) for s in stages]
        wanted = next((c for c in conditions if c), [])
        first = [] if loop.first == 0 else ["code == OPC_OK"]
        opening = " && ".join([*first, *wanted])
        yield f"  if ({opening}) {{" if opening else "  {"
        arguments = f"{self.family.name}_loops::{ARGUMENTS}"
        tiles = [self.tiles[s.name] for s in stages]
        operands = sum(len(t.nest.operands) for t in tiles if t.nest is not None)
        yield f"    opc::step_loop<{len(stages)}, {operands}, {arguments}> loop;"
        for s in stages:
            assert isinstance(s, NestStage), "each statement of such steps is a nest"
            yield "    {"
            lines = step_nest_lines(self.op, s, self.tiles[s.name], self.scalar, parts[s.assign.target], loop.index)
            yield from (f"    {line}" for line in lines)
            yield "    }"
        step, extent = f"&{arguments}::{size_member(Dim(loop.index))}", self.scalar.number(loop.extent)
        yield f"    code = loop.run(context, arguments, {step}, {extent}, {'true' if loop.falls else 'false'});"
        yield "  }"

    def _one(self, s: Stage, op: Op) -> Iterator[str]:
        """Yield the statements that describe a stage and run it."""
        match s:
            case RowStage():
                yield from self._stage(s, op)
            case ContractionStage():
                yield from ContractionText(op, s, self.scalar, self._function(s.name), *self.slices.kept(s)).lines()
            case _:
                yield from self._nest(s, op)

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
        found = [f"({condition})" if " || " in condition else condition] if condition else []
        found += self._in(variant.program.when.get(stage.name))
        becoming = {t.name: t.becomes for t in variant.program.temporaries if t.becomes is not None}
        lent = [f"{memory_text(n)}.lent" for n in _copied(stage, becoming)]
        if lent:
            found.append(f"!({' && '.join(lent)})" if len(lent) > 1 else f"!{lent[0]}")
        return found

    def _temporary(self, t: Temporary) -> Iterator[str]:
        if t.part_of is not None:
            return  # the loop over the steps has it
        if t.host is not None:
            yield f"  opc::temporary &{memory_text(t.name)} = {memory_text(t.host)};"
            return
        if not self.slices.used:
            yield f"  opc::temporary {memory_text(t.name)};"
        else:
            yield f"  opc::temporary &{memory_text(t.name)} = memory[{self.slices.position(t.name)}];"
        sizes = "".join(f", {self._extent(loop)}" for loop in t.loops)
        if not t.stored:
            yield f"  opc::describe({memory_text(t.name)}{sizes});"
            return
        of = f"{memory_text(t.name)}, {dtype_text(t.type)}{sizes}"
        allocate = f"!opc::allocate({of})" if t.becomes is None else f"!opc::allocate_in({tensor_text(self.op, t.becomes)}, {of})"
        wanted = self._wanted(t.needed_by)
        found = [f"({wanted})" if " || " in wanted else wanted] if wanted else []
        allocate = " && ".join([*found, *self._in(t.when), allocate])
        yield f"  if ({allocate}) {{"
        yield f'    return opc::fail(context, OPC_OUT_OF_MEMORY, "{self.op.name}: no memory for the temporary {t.name}");'
        yield "  }"


def _copied(stage: Stage, becoming: Mapping[str, str]) -> list[str]:
    """Return the temporaries that a stage copies to the outputs they become, where it does nothing else."""
    if not isinstance(stage, RowStage):
        return []
    found = []
    for a in (a for p in stage.passes for a in (*p.prologue, *p.body)):
        if not (isinstance(a, RowStore) and isinstance(a.value, Read) and becoming.get(a.value.operand) == a.name):
            return []
        found.append(a.value.operand)
    return found


def _wrapped(lines: list[str]) -> str:
    return "\n".join(wrapped("\n".join(lines).split("\n")))
