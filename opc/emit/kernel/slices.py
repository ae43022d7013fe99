"""Entry functions of ops that are run one slice at a time: see opc/core/slices.h."""

from __future__ import annotations

from collections.abc import Iterator

from opc.emit.abi import attributes_type
from opc.emit.shapes.cpp import dim_member, group_member, struct_name
from opc.ir.affine import Dim
from opc.ir.op import Family, Group, Op, Operand
from opc.lower.loop_ir import IndexLoop, Temporary
from opc.lower.lower import SpecialisedProgram
from opc.lower.slices import sliced_group

MOST_SLICED = 64
"""How many temporaries a slice can have: `most_sliced` of `opc/core/slices.h`."""


class SliceText:
    """Writes how an op is sliced; `group` is the group that it is sliced along, None for an op that is not."""

    def __init__(self, family: Family, op: Op, variants: tuple[SpecialisedProgram, ...]) -> None:
        self.family, self.op = family, op
        groups = {sliced_group(v.case.op, v.program) for v in variants}
        self.temporaries = [list(v.program.temporaries) for v in variants]
        self.names = list(dict.fromkeys(t.name for ts in self.temporaries for t in ts))
        self.group = groups.pop() if len(groups) == 1 and len(self.names) <= MOST_SLICED else None

    def position(self, temporary: str) -> int:
        """Return the position of a temporary among those of all programs: each program has others, by the same names or not."""
        return self.names.index(temporary)

    def prologue(self) -> Iterator[str]:
        """Yield the head of the function that runs the stages on one slice or on everything."""
        op = self.op
        yield f"static int32_t run_{op.name}(const void *sizes, const DLTensor *const *inputs, DLTensor *const *outputs,"
        yield "    const void *values, const opc_context *context, opc::temporary *memory) {"
        yield f"  const {struct_name(op)} &call = *static_cast<const {struct_name(op)} *>(sizes);"
        if op.attributes:
            kind = attributes_type(self.family)
            yield f"  const {kind} *attributes = static_cast<const {kind} *>(values);"
        else:
            yield "  static_cast<void>(values);"

    def call(self) -> Iterator[str]:
        """Yield the calls of that function, slice by slice where that pays."""
        if self.group is None:
            return
        op, joint = self.op, f"call.{group_member((self.group, None))}"
        operands = (*op.inputs, *op.outputs)
        own = ", ".join(self._own(o) for o in operands)
        count = len(self.names)
        elements = " + ".join(dict.fromkeys(self._elements(t) for ts in self.temporaries for t in ts))
        attributes = "attributes" if op.attributes else "nullptr"
        yield f"  const opc::extents *const own[] = {{{own}}};"
        yield f"  const int64_t elements = {elements};"
        yield f"  if (!opc::pays_to_slice({joint}, own, {len(op.inputs)}, outputs, {len(op.outputs)}, elements)) {{"
        yield f"    opc::temporary memory[{count}];"
        yield f"    return run_{op.name}(&call, inputs, outputs, {attributes}, context, memory);"
        yield "  }"
        yield f"  {struct_name(op)} slice = call;"
        for name in dict.fromkeys(group_member((d.name, d.of)) for o in operands for d in o.dims if isinstance(d, Group)):
            if self._is_ours(name):
                yield f"  slice.{name}.rank = 0;"
        yield (
            f"  opc::slicing slices = {{context, &{joint}, inputs, outputs, {len(op.inputs)}, {len(op.outputs)}, own, "
            f"&slice, {attributes}, run_{op.name}, OPC_OK}};"
        )
        yield "  return opc::run_slices(slices);"

    def _is_ours(self, member: str) -> bool:
        groups = {(d.name, d.of) for o in (*self.op.inputs, *self.op.outputs) for d in o.dims if isinstance(d, Group)}
        return member in {group_member(g) for g in groups if g[0] == self.group}

    def _own(self, o: Operand) -> str:
        group = next((d for d in o.dims if isinstance(d, Group) and d.name == self.group), None)
        return "nullptr" if group is None else f"&call.{group_member((group.name, group.of))}"

    def _elements(self, t: Temporary) -> str:
        """Return the number of elements a temporary has in one slice, as far as its axes are dimensions."""
        sizes = [x.extent.single for x in t.loops if isinstance(x, IndexLoop)]
        return " * ".join(f"call.{dim_member(s.name)}.size" for s in sizes if isinstance(s, Dim)) or "1"
