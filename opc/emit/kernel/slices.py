"""Entry functions of ops that are run one slice at a time: see opc/core/slices.h."""

from __future__ import annotations

from collections.abc import Iterator

from opc.emit.abi import attributes_type
from opc.emit.cpp.scalars import CppScalarText
from opc.emit.kernel.nests import dtype_text, memory_text
from opc.emit.shapes.cpp import axis_member, dim_member, group_member, struct_name
from opc.ir.affine import Affine, Dim, Index, Symbol, minimum
from opc.ir.op import Family, Group, Op, Operand
from opc.lower.loop_ir import ContractionStage, FusedRows, IndexLoop, NeededColumns, Program, Temporary
from opc.lower.lower import SpecialisedProgram
from opc.lower.slices import sliced_group
from opc.lower.summed import Summed

MOST_SLICED = 64
"""How many temporaries a slice can have: `most_sliced` of `opc/core/slices.h`."""

MOST_KEPT = 8
"""How many stages keep something from one block of rows to the next: `most_kept` of `opc/core/slices.h`."""


class SliceText:
    """Writes how an op is sliced: along `group`, None for an op that is not, and in blocks of `rows`, None where these are not
    fused."""

    def __init__(self, family: Family, op: Op, variants: tuple[SpecialisedProgram, ...]) -> None:
        self.family, self.op = family, op
        self.temporaries = [list(v.program.temporaries) for v in variants]
        self.names = list(dict.fromkeys(t.name for ts in self.temporaries for t in ts))
        self.rows = next((v.program.fused for v in variants), None)
        self.needed = [v.program.columns for v in variants]
        groups = {sliced_group(v.case.op, v.program) for v in variants} if self.rows is None else {self.rows.group}
        few = len(self.names) <= MOST_SLICED and not any(v.program.steps for v in variants)
        self.group = groups.pop() if len(groups) == 1 and few else None
        self.rows = self.rows if few else None
        self.keeping: dict[str, int] = {}
        for v in variants if self.rows is not None else ():
            contractions = [s.name for s in v.program.stages if isinstance(s, ContractionStage)]
            self.keeping |= {name: n for n, name in enumerate(contractions[:MOST_KEPT])}

    @property
    def used(self) -> bool:
        """Whether the op is run one slice at a time."""
        return self.group is not None or self.rows is not None

    def position(self, temporary: str) -> int:
        """Return the position of a temporary among those of all programs: each program has others, by the same names or not."""
        return self.names.index(temporary)

    def kept(self, stage: ContractionStage) -> tuple[FusedRows | None, int]:
        """Return the axis whose blocks a contraction is computed in, and the place of what it keeps for the next block.

        The axis is None where it keeps nothing.
        """
        return (None, 0) if stage.name not in self.keeping else (self.rows, self.keeping[stage.name])

    def dim(self, name: str) -> str:
        """Return the size of a dimension inside the function that runs the stages."""
        if self.rows is None or name not in self.rows.sizes:
            return f"call.{dim_member(name)}"
        axis = self.rows.sizes[name]
        return "rows.first" if axis is None else f"whole.{dim_member(axis)}"

    def prologue(self) -> Iterator[str]:
        """Yield the head of the function that runs the stages on one slice or on everything."""
        op = self.op
        rows = "" if self.rows is None else "rows"
        yield from self._place()
        yield f"static int32_t run_{op.name}(const void *sizes, const opc::row_block &{rows},"
        yield "    const DLTensor *const *inputs, DLTensor *const *outputs, const void *values, const opc_context *context,"
        yield "    opc::temporary *memory) {"
        if self.rows is None:
            yield f"  const {struct_name(op)} &call = *static_cast<const {struct_name(op)} *>(sizes);"
        else:
            yield f"  {struct_name(op)} call = *static_cast<const {struct_name(op)} *>(sizes);"
            if self.rows.whole:
                yield f"  const {struct_name(op)} &whole = *static_cast<const {struct_name(op)} *>(sizes);"
            yield f"  call.{dim_member(self.rows.dim)}.size = rows.count;"
        if op.attributes:
            kind = attributes_type(self.family)
            yield f"  const {kind} *attributes = static_cast<const {kind} *>(values);"
        else:
            yield "  static_cast<void>(values);"

    def _placed(self) -> Iterator[tuple[int, int, Affine, Affine | None]]:
        """Yield the axes of operands of which a slice has one element, by their positions, its place, and the size of an axis
        along which it is the last one where that is less, None for others."""
        if self.rows is None or self.rows.places is None:
            return
        for n, o in enumerate((*self.op.inputs, *self.op.outputs)):
            for axis, place in self.rows.places.of(self.op, o.name, self.rows.leading).items():
                clamped = axis in self.rows.places.clamped.get(o.name, ())
                size = o.dims[axis]
                yield n, axis, place, size if clamped and isinstance(size, Affine) else None

    def _clamped(self) -> set[str]:
        """Return the sizes of axes of operands along which places are clamped: one of no points stays empty in a slice."""
        return {str(size) for _, _, _, size in self._placed() if size is not None}

    def _place(self) -> Iterator[str]:
        """Yield the function that computes these places at a point of the leading axes."""
        if self.rows is None or not self.rows.leading:
            return
        at: dict[Symbol, Affine] = {Index(name): Affine.of(Dim(f"at[{n}]")) for n, name in enumerate(self.rows.leading)}
        scalar = CppScalarText(
            self.op,
            dim=lambda name: name if name.startswith("at[") else f"call.{dim_member(name)}",
            group=lambda name: f"call.{group_member((name, None))}",
            axis=lambda name: f"call.{axis_member(name)}",
        )
        lines = []
        for n, (_, _, p, size) in enumerate(self._placed()):
            place = p.substitute(at.get)
            lines.append(f"  places[{n}] = {scalar.number(place if size is None else minimum(place, size - 1))};")
        known = any("call." in line for line in lines)
        yield f"static void place_{self.op.name}(const void *{'sizes' if known else ''}, const int64_t *at, int64_t *places) {{"
        if known:
            yield f"  const {struct_name(self.op)} &call = *static_cast<const {struct_name(self.op)} *>(sizes);"
        yield from lines
        yield "}"
        yield ""

    def columns(self, needed: NeededColumns | None, scalar: CppScalarText) -> Iterator[str]:
        """Yield what lets the stages of a program do without the columns that a block of rows does not need."""
        if needed is None or self.rows is None or len(needed.finite) > MOST_KEPT:
            return
        size = f"call.{dim_member(needed.dim)}.size"
        inputs = [o.name for o in self.op.inputs]
        finite = [
            f"opc::all_finite(rows.kept[{n}], *inputs[{inputs.index(name)}], loops.sums, loops.rows)"
            for n, name in enumerate(needed.finite)
        ]
        if needed.after:
            yield f"  const int64_t all_columns = {size};"
        yield "  if (rows.kept != nullptr) {"
        yield f"    const int64_t needed = {scalar.number(needed.count)};"
        yield f"    if ({' && '.join([f'needed < {size}', *finite])}) {{"
        yield f"      {size} = needed > 0 ? needed : 1;"
        yield "    }"
        yield "  }"
        if self.rows.summed is not None:
            yield f"  if (rows.columns != nullptr) *rows.columns = {size};"

    def redone(self, program: Program) -> Iterator[str]:
        """Yield what computes all columns where the stages of a program have found that not all can be left out."""
        needed = program.columns
        if needed is None or not needed.after or self.rows is None or len(needed.finite) > MOST_KEPT:
            return
        kinds = {t.name: t.type for t in program.temporaries}
        after = {memory_text(name): dtype_text(kinds[name]) for name in needed.after}
        missing = " || ".join(f"!opc::all_finite({memory}, loops.sums, {kind})" for memory, kind in after.items())
        yield f"  if (code == OPC_OK && call.{dim_member(needed.dim)}.size < all_columns && ({missing})) {{"
        values = "values" if self.op.attributes else "nullptr"
        again = "{rows.first, rows.count, nullptr, rows.columns}"
        yield f"    return run_{self.op.name}(sizes, {again}, inputs, outputs, {values}, context, memory);"
        yield "  }"

    def call(self, leaving_out: str, scalar: CppScalarText) -> Iterator[str]:
        """Yield the calls of that function, slice by slice where that pays.

        `leaving_out` is the condition of the calls whose blocks of rows need fewer columns the earlier they come.
        """
        if not self.used:
            return
        op = self.op
        leading = () if self.rows is None else self.rows.leading
        joint = "leading" if leading else "alone" if self.group is None else f"call.{group_member((self.group, None))}"
        operands = (*op.inputs, *op.outputs)
        count = len(self.names)
        elements = self._all_elements()
        attributes = "attributes" if op.attributes else "nullptr"
        if leading:
            sizes = ", ".join(f"call.{dim_member(name)}.size" for name in leading)
            yield f"  const opc::extents leading = {{{len(leading)}, {{{sizes}}}}};"
        elif self.group is None:
            yield "  const opc::extents alone = {};"
        own = "nullptr" if leading else "own"
        if not leading:
            yield f"  const opc::extents *const own[] = {{{', '.join(self._own(o) for o in operands)}}};"
        yield f"  const int64_t elements = {elements};"
        everything, blocks, rows = "{}", "", ""
        if self.rows is not None:
            size = f"call.{dim_member(self.rows.dim)}.size"
            if leading:
                yield from self._parts()
            else:
                has = ", ".join("true" if self._row_axis(o) >= 0 else "false" for o in operands)
                yield f"  const bool in_rows[] = {{{has}}};"
            if self.rows.summed is not None or self._clamped():
                leaving_out = "true"  # several temporaries have columns, or calls of one slice go in blocks, too
            if leading:
                leaving_out = f"{leaving_out or 'false'}, opc::least_rows"
            fewer = f", {leaving_out}" if leaving_out else ""
            yield f"  const int64_t block = opc::block_of_rows({size}, elements{fewer});"
            everything, blocks, rows = (
                f"{{0, {size}, nullptr}}",
                f", opc::blocks_of_rows({size}, block)",
                f", {'nullptr' if leading else 'in_rows'}, {size}, block",
            )
        counts = f"{len(op.inputs)}, outputs, {len(op.outputs)}"
        clamped = self._clamped()
        if clamped:  # a statement reads what a slice has
            yield f"  if (opc::count(leading) == 0 || {size} == 0) {{"
        else:
            yield f"  if (!opc::pays_to_slice({joint}, {own}, {counts}, elements{blocks})) {{"
        yield f"    opc::temporary memory[{count}];"
        yield f"    return run_{op.name}(&call, {everything}, inputs, outputs, {attributes}, context, memory);"
        yield "  }"
        groups = dict.fromkeys(group_member((d.name, d.of)) for o in operands for d in o.dims if isinstance(d, Group))
        ours = [name for name in groups if self._is_ours(name)]
        several = bool(ours) and (self.rows is None or self.rows.summed is None)
        yield f"  {struct_name(op)} slice = call{', rest = call' if several else ''};"
        if not several:
            yield from (f"  slice.{name}.rank = 0;" for name in ours)
        if self.rows is not None and self.rows.places is not None:
            for name in sorted(self.rows.places.sizes):
                some = f"call.{dim_member(name)}.size > 0 ? 1 : 0" if name in clamped else "1"
                yield f"  slice.{dim_member(name)}.size = {some};"
        yield (
            f"  opc::slicing slices = {{context, &{joint}, inputs, outputs, {len(op.inputs)}, {len(op.outputs)}, {own}, "
            f"&slice, {attributes}, run_{op.name}, OPC_OK{rows}}};"
        )
        if leading:
            yield "  slices.parts = &parts;"
        if several:
            yield "  const int64_t points = slices.points = opc::points_of_slice(slices, elements);"
            yield "  const int64_t left = opc::points_of_rest(slices);"
            for name in ours:
                yield f"  opc::keep_points(slice.{name}, points, points);"
                yield f"  opc::keep_points(rest.{name}, points, left);"
            yield "  slices.rest = &rest;"
        if self.rows is None or self.rows.summed is None:
            yield "  return opc::run_slices(slices);"
        else:
            yield from self._run_summed(self.rows.summed, scalar)

    def _run_summed(self, summed: Summed, scalar: CppScalarText) -> Iterator[str]:
        """Yield what runs blocks whose results are added up."""
        places = {o.name: n for n, o in enumerate(self.op.outputs)}
        columns = {c.dim for c in self.needed if c is not None}
        types: list[str] = []
        for o in map(self.op.output, summed.outputs):
            axis = next((n for n, d in enumerate(o.dims) if isinstance(d, Affine) and str(d) in columns), -1)
            absent = sum(1 << n for n in summed.absent.get(o.name, ()))
            types.append(f"{{{places[o.name]}, {axis}, {dtype_text(o.type)}, {absent}}}")
        yield f"  const opc::summed_output summed[] = {{{', '.join(types)}}};"
        yield f"  const int64_t members = {scalar.number(summed.members)};"
        yield f"  return opc::run_summed(slices, summed, {len(types)}, members, {self.family.name}_loops::best().rows);"

    def _parts(self) -> Iterator[str]:
        """Yield which axes of operands have one element in a slice, and which have rows."""
        placed = [f"{{{n}, {axis}}}" for n, axis, _, _ in self._placed()]
        rows = [str(self._row_axis(o)) for o in (*self.op.inputs, *self.op.outputs)]
        yield f"  static const opc::placed_axis placed[] = {{{', '.join(placed)}}};"
        yield f"  static const int32_t row_axis[] = {{{', '.join(rows)}}};"
        yield f"  const opc::slice_parts parts = {{placed, {len(placed)}, place_{self.op.name}, &call, row_axis}};"

    def _is_ours(self, member: str) -> bool:
        groups = {(d.name, d.of) for o in (*self.op.inputs, *self.op.outputs) for d in o.dims if isinstance(d, Group)}
        return member in {group_member(g) for g in groups if g[0] == self.group}

    def _own(self, o: Operand) -> str:
        group = next((d for d in o.dims if isinstance(d, Group) and d.name == self.group), None)
        return "nullptr" if group is None else f"&call.{group_member((group.name, group.of))}"

    def _row_axis(self, o: Operand) -> int:
        """Return the position of the axis of which a block has some points, -1 where an operand has none."""
        row = None if self.rows is None else Affine.of(Dim(self.rows.dim))
        return next((n for n, d in enumerate(o.dims) if d == row), -1)

    def _all_elements(self) -> str:
        """Return the number of elements that the temporaries of a slice have. Of several that are as large one counts: most take
        the memory of each other, but not those of which blocks make sums."""
        if self.rows is None or self.rows.summed is None:
            return " + ".join(dict.fromkeys(self._elements(t) for ts in self.temporaries for t in ts))
        own = [[t for t in ts if t.host is None] for ts in self.temporaries]
        return " + ".join(self._elements(t) for t in max(own, key=len))

    def _elements(self, t: Temporary) -> str:
        """Return the number of elements a temporary has in one slice, as far as its axes are dimensions."""
        leading = () if self.rows is None else self.rows.leading
        sizes = [x.extent.single for x in t.loops if isinstance(x, IndexLoop)]
        own = [s.name for s in sizes if isinstance(s, Dim) and s.name not in leading]
        return " * ".join(f"call.{dim_member(name)}.size" for name in own) or "1"
