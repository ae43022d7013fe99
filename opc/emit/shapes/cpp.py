"""The kernel's prologue in C++: checks a call, binds its sizes and types, and answers `opc_<op>_infer`.

For an op `softmax` with `x: T[*A, N, *B]` and an axis attribute `axis`, `definitions` writes

    struct softmax_call {
      opc::type type_T;                  // .element is the opc::dtype T is bound to
      opc::dim dim_N;                    // .size; derived dimensions too
      opc::group group_A, group_B;       // .rank and .size[]; `...` is group_ellipsis, x's own one group_ellipsis_of_x
      int64_t axis_axis = -1;            // counted from the front
    };                                   // of an attribute of axes, opc::listed_axes listed_axes
    static int32_t bind_softmax(inputs, attributes, softmax_call &call, opc_tensor_type *types, context);
    static int32_t begin_softmax(inputs, outputs, attributes, softmax_call &call, context);
    int32_t opc_softmax_infer(...);

A kernel calls `begin_softmax` first: after OPC_OK every input and output has been checked (dtype, rank, sizes, device,
attributes, contiguity of outputs; not overlap) and `call` is complete. The axes of an operand stand in the order of its
declaration, each group taking `.rank` axes. A dimension or group that only absent operands have is 0, or empty. An optional
output whose shape nothing given determines has `ndim` -1 in `opc_softmax_infer`.

The text needs "opc/core/shape.h", "opc/core/math.h" and the family's header, which declares the functions `extern "C"`; the steps
and their messages come from `opc.analysis.shapes.steps`.
"""

from __future__ import annotations

from collections.abc import Iterator

from opc.analysis.shapes.plan import plan
from opc.analysis.shapes.steps import (
    BindType,
    BroadcastGroup,
    CheckAttribute,
    CheckCondition,
    GroupKey,
    MatchDim,
    MatchGroup,
    MatchOperand,
    MatchType,
    ShapePlan,
    SizeOutput,
)
from opc.emit.abi import attributes_type, infer_prototype
from opc.emit.cpp.layout import wrapped
from opc.emit.cpp.text import WIDTH, message_literal
from opc.emit.shapes.cpp_steps import (
    StepText,
    as_bool,
    axis_member,
    dim_member,
    group_member,
    listed_member,
    struct_name,
    type_declaration,
    type_member,
    unless,
)
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import TypeVar
from opc.ir.op import AttributeKind, Family, Op

__all__ = [
    "axis_member",
    "checks",
    "definitions",
    "dim_member",
    "group_member",
    "listed_member",
    "rules",
    "struct_name",
    "type_member",
    "type_sets",
]


def definitions(family: Family, op: Op) -> str:
    """Return the struct, the functions `bind_<op>` and `begin_<op>`, and `opc_<op>_infer`, as file-scope C++ text."""
    emitter = _Emitter(family, op)
    return _joined(emitter.struct(), emitter.bind(), emitter.begin(), emitter.infer())


def checks(family: Family, op: Op) -> str:
    """Return the struct and the functions `bind_<op>` and `begin_<op>`: `definitions` without what the C ABI has of them."""
    emitter = _Emitter(family, op)
    return _joined(emitter.struct(), emitter.bind(), emitter.begin())


def rules(family: Family, op: Op) -> str:
    """Return the struct and `bind_<op>` alone, for hosts that check a call without the kernel, in C++14.

    The text needs "opc/core/shape.h" and the struct of the family's attributes.
    """
    emitter = _Emitter(family, op)
    return _joined(emitter.struct(), emitter.bind())


def _joined(*texts: str) -> str:
    return "\n".join(wrapped("\n\n".join(texts).split("\n"))) + "\n"


def type_sets(of: ShapePlan) -> Iterator[str]:
    """Yield the declaration of the dtypes each bound type variable may have, for the statements of its steps."""
    bound = [s.variable for s in of.steps if isinstance(s, BindType)]
    bound += [s.operand.type for s in of.steps if isinstance(s, MatchType) and isinstance(s.operand.type, TypeVar)]
    for variable in dict.fromkeys(bound):
        members = ", ".join(f"opc::dtype_{d}" for d in variable.dtypes)
        head = f"  constexpr uint32_t {variable.name}_types ="
        line = f"{head} opc::one_of({members});"
        yield line if len(line) <= WIDTH else f"{head}\n      opc::one_of({members});"


class _Emitter:
    """Writes the prologue of one op."""

    def __init__(self, family: Family, op: Op) -> None:
        self.family, self.op = family, op
        self.plan: ShapePlan = plan(op)
        self.steps = StepText(op)

    def struct(self) -> str:
        """Return the struct of what a call binds."""
        members = [type_declaration(t) for t in self.op.types]
        members += [f"opc::dim {dim_member(d)};" for d in self.plan.dims]
        members += [f"opc::group {group_member(g)};" for g in self._groups()]
        between = [a for a in self.op.attributes if a.kind is AttributeKind.AXIS and a.among is None]
        members += [f"int64_t {axis_member(a.name)} = -1;" for a in between]
        how = arrangement(self.op)
        members += [] if how is None else [f"opc::listed_axes {listed_member(how.axes)};"]
        body = "".join(f"  {m}\n" for m in members)
        return f"/* What a call of {self.op.name} binds. */\nstruct {struct_name(self.op)} {{\n{body}}};"

    def _groups(self) -> tuple[GroupKey, ...]:
        broadcast = [(s.name, None) for s in self.plan.steps if isinstance(s, BroadcastGroup)]
        return tuple(dict.fromkeys((*self.plan.groups, *broadcast)))

    def _signature(self, name: str, parameters: str) -> str:
        head = f"static int32_t {name}("
        lines = parameters.replace("\n", "\n" + " " * len(head))
        return f"{head}{lines}) {{"

    def bind(self) -> str:
        """Return the function that checks inputs and attributes and infers the outputs' types."""
        op = self.op
        parameters = (
            f"const DLTensor *const *inputs, const {attributes_type(self.family)} *attributes,\n"
            f"{struct_name(op)} &call, opc_tensor_type *types, const opc_context *context"
        )
        lines = [
            f"/* Checks the inputs and attributes of a call of {op.name} and says what its outputs must look like. */",
            self._signature(f"bind_{op.name}", parameters),
            *type_sets(self.plan),
            f"  opc::matcher match({message_literal(op.name)}, context);",
        ]
        steps = self.plan.steps
        first = next((i for i, s in enumerate(steps) if not isinstance(s, CheckAttribute | CheckCondition)), len(steps))
        body = [line for step in steps[:first] for line in self.steps.step(step)]
        body.append("  if (inputs == nullptr) return OPC_OK; /* asked without tensors */")
        body += [line for step in steps[first:] for line in self.steps.step(step)]
        text = "\n".join(body)
        if op.attributes:
            lines += unless('match.given("the attributes", attributes)')
        unused = {"attributes": "attributes" in text or bool(op.attributes), "call": "call." in text, "types": "types[" in text}
        lines += [f"  static_cast<void>({name});" for name, used in unused.items() if not used]
        body += self._nothing_to_compute()
        body += [f"  opc::settle(call.{member});" for member in self._unsure()]
        unbound = [t for t in op.types if self.plan.may_be_unbound(t)]
        body += [f"  opc::settle(call.{type_member(t.name)}, opc::dtype_{t.dtypes[0]});" for t in unbound]
        return "\n".join([*lines, *body, "  return OPC_OK;", "}"])

    def _nothing_to_compute(self) -> Iterator[str]:
        """Yield the refusal of a call that determines none of the outputs."""
        outputs = [s for s in self.plan.steps if isinstance(s, SizeOutput)]
        if not outputs or not all(s.needs for s in outputs):
            return
        yield f"  if ({' && '.join(f'types[{i}].ndim < 0' for i in range(len(outputs)))}) {{"
        for need in dict.fromkeys(need for s in outputs for need in s.needs):
            yield from self.steps.need(need, margin="    ")
        yield "  }"

    def _unsure(self) -> Iterator[str]:
        """Yield the members that stay unbound when every operand that has them is absent."""
        axes = [(a, s.operand.optional) for s in self.plan.steps if isinstance(s, MatchOperand) for a in s.axes]
        for dim in self.plan.dims:
            uses = [optional for a, optional in axes if isinstance(a, MatchDim) and a.dim == dim]
            if uses and all(uses):
                yield dim_member(dim)
        for group in self._groups():
            uses = [optional for a, optional in axes if isinstance(a, MatchGroup) and a.group == group]
            if all(uses):
                yield group_member(group)

    def begin(self) -> str:
        """Return the function that checks a whole call, outputs included."""
        op = self.op
        parameters = (
            "const DLTensor *const *inputs, DLTensor *const *outputs,\n"
            f"const {attributes_type(self.family)} *attributes, {struct_name(op)} &call, const opc_context *context"
        )
        checks = " &&\n                 ".join(
            f"match.output({message_literal(o.name)}, outputs[{i}], types[{i}], {as_bool(o.optional)})"
            for i, o in enumerate(op.outputs)
        )
        return "\n".join(
            [
                f"/* Checks a call of {op.name}, its outputs too, and binds its sizes and types. */",
                self._signature(f"begin_{op.name}", parameters),
                f"  opc_tensor_type types[{max(1, len(op.outputs))}];",
                f"  const int32_t code = bind_{op.name}(inputs, attributes, call, types, context);",
                "  if (code != OPC_OK) return code;",
                f"  opc::matcher match({message_literal(op.name)}, context);",
                f"  return {checks}",
                "             ? OPC_OK",
                "             : match.code;",
                "}",
            ]
        )

    def infer(self) -> str:
        """Return the definition of the family's `opc_<op>_infer`."""
        return "\n".join(
            [
                "/* Says what the outputs of a call must look like; see opc/abi.h. */",
                f"OPC_EXPORT\n{infer_prototype(self.family, self.op)} {{",
                f"  {struct_name(self.op)} call;",
                f"  return bind_{self.op.name}(inputs, attributes, call, outputs, context);",
                "}",
            ]
        )
