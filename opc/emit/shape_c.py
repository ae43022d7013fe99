"""The kernel's prologue in C++: checks a call, binds its sizes and types, and answers `opc_<op>_infer`.

For an op `softmax` with `x: T[*A, N, *B]` and an axis attribute `axis`, `definitions` writes

    struct softmax_call {
      opc::type type_T;                  // .element is the opc::dtype T is bound to
      opc::dim dim_N;                    // .size; derived dimensions too
      opc::group group_A, group_B;       // .rank and .size[]; `...` is group_ellipsis, x's own one group_ellipsis_of_x
      int64_t axis_axis = -1;            // counted from the front
    };
    static int32_t bind_softmax(inputs, attributes, softmax_call &call, opc_tensor_type *types, context);
    static int32_t begin_softmax(inputs, outputs, attributes, softmax_call &call, context);
    int32_t opc_softmax_infer(...);

A kernel calls `begin_softmax` first: after OPC_OK every input and output has been checked (dtype, rank, sizes, device,
attributes, contiguity of outputs; not overlap) and `call` is complete. The axes of an operand stand in the order of its
declaration, each group taking `.rank` axes: `axis_start` gives where an entry begins. A dimension or group that only absent
operands have is 0, or empty. An optional output whose shape nothing given determines has `ndim` -1 in `opc_softmax_infer`.

The text needs "opc/shape.h", "opc/math.h" and the family's header, which declares the functions `extern "C"`; the steps and their
messages come from `opc.analysis.shape_steps`.
"""

from __future__ import annotations

from collections.abc import Iterator

from opc.analysis.shape import names_whole_list
from opc.analysis.shape_plan import plan, symbols_of
from opc.analysis.shape_steps import (
    BindType,
    BroadcastGroup,
    CheckAttribute,
    CheckCondition,
    DeriveDim,
    GroupKey,
    GroupLength,
    MatchDim,
    MatchGroup,
    MatchOperand,
    MatchSize,
    MatchType,
    NeedOne,
    Rest,
    ShapePlan,
    SizeOutput,
    Step,
    TypeName,
    Unsure,
    UpTo,
    group_text,
    symbol_text,
)
from opc.emit.abi import attributes_type, infer_prototype
from opc.emit.c_text import WIDTH, string_literal
from opc.emit.scalar_c import ScalarText
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar
from opc.ir.expr import ELLIPSIS
from opc.ir.op import Attribute, AttributeKind, DimSpec, Family, Group, Op, Operand


def struct_name(op: Op) -> str:
    """Return the name of the struct that holds what a call of `op` binds."""
    return f"{op.name}_call"


def type_member(name: str) -> str:
    """Return the struct's member for a type variable."""
    return f"type_{name}"


def dim_member(name: str) -> str:
    """Return the struct's member for a dimension."""
    return f"dim_{name}"


def group_member(key: GroupKey) -> str:
    """Return the struct's member for an axis group."""
    name = "ellipsis" if key[0] == ELLIPSIS else key[0]
    return f"group_{name}" if key[1] is None else f"group_{name}_of_{key[1]}"


def axis_member(name: str) -> str:
    """Return the struct's member for an axis attribute's position, counted from the front."""
    return f"axis_{name}"


def axis_start(operand: Operand, entry: int, call: str = "call") -> str:
    """Return the C++ expression of the position of an operand's first axis that entry number `entry` of its dims describes."""
    before = operand.dims[:entry]
    ranks = [f"{call}.{group_member((d.name, d.of))}.rank" for d in before if isinstance(d, Group)]
    fixed = len(before) - len(ranks)
    return " + ".join([*ranks, *([str(fixed)] if fixed or not ranks else [])])


def definitions(family: Family, op: Op) -> str:
    """Return the struct, the functions `bind_<op>` and `begin_<op>`, and `opc_<op>_infer`, as file-scope C++ text."""
    emitter = _Emitter(family, op)
    return "\n\n".join([emitter.struct(), emitter.bind(), emitter.begin(), emitter.infer()]) + "\n"


class _Emitter:
    """Writes the prologue of one op."""

    def __init__(self, family: Family, op: Op) -> None:
        self.family, self.op = family, op
        self.plan: ShapePlan = plan(op)
        self.scalar = ScalarText(op, dim=self._dim, group=lambda name: f"call.{group_member((name, None))}", axis=self._axis)

    def _dim(self, name: str) -> str:
        return f"call.{dim_member(name)}"

    def _axis(self, name: str) -> str:
        return f"call.{axis_member(name)}"

    def struct(self) -> str:
        """Return the struct of what a call binds."""
        members = [f"opc::type {type_member(t.name)};" for t in self.op.types]
        members += [f"opc::dim {dim_member(d)};" for d in self.plan.dims]
        members += [f"opc::group {group_member(g)};" for g in self._groups()]
        members += [f"int64_t {axis_member(a.name)} = -1;" for a in self.op.attributes if a.kind is AttributeKind.AXIS]
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
            *self._type_sets(),
            f"  opc::matcher match({string_literal(op.name)}, context);",
        ]
        steps = self.plan.steps
        first = next((i for i, s in enumerate(steps) if not isinstance(s, CheckAttribute | CheckCondition)), len(steps))
        body = [line for step in steps[:first] for line in self._step(step)]
        body.append("  if (inputs == nullptr) return OPC_OK; /* asked without tensors */")
        body += [line for step in steps[first:] for line in self._step(step)]
        text = "\n".join(body)
        if op.attributes:
            lines += _unless('match.given("the attributes", attributes)')
        unused = {"attributes": "attributes" in text or bool(op.attributes), "call": "call." in text, "types": "types[" in text}
        lines += [f"  static_cast<void>({name});" for name, used in unused.items() if not used]
        body += self._nothing_to_compute()
        body += [f"  opc::settle(call.{member});" for member in self._unsure()]
        return "\n".join([*lines, *body, "  return OPC_OK;", "}"])

    def _nothing_to_compute(self) -> Iterator[str]:
        """Yield the refusal of a call that determines none of the outputs."""
        outputs = [s for s in self.plan.steps if isinstance(s, SizeOutput)]
        if not outputs or not all(s.needs for s in outputs):
            return
        yield f"  if ({' && '.join(f'types[{i}].ndim < 0' for i in range(len(outputs)))}) {{"
        for need in dict.fromkeys(need for s in outputs for need in s.needs):
            yield from self._need(need, margin="    ")
        yield "  }"

    def _type_sets(self) -> Iterator[str]:
        """Yield the declaration of the dtypes each bound type variable may stand for."""
        bound = [s.variable for s in self.plan.steps if isinstance(s, BindType)]
        bound += [s.operand.type for s in self.plan.steps if isinstance(s, MatchType) and isinstance(s.operand.type, TypeVar)]
        for variable in dict.fromkeys(bound):
            members = ", ".join(f"opc::dtype_{d}" for d in variable.dtypes)
            head = f"  constexpr uint32_t {variable.name}_types ="
            line = f"{head} opc::one_of({members});"
            yield line if len(line) <= WIDTH else f"{head}\n      opc::one_of({members});"

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
            f"match.output({string_literal(o.name)}, outputs[{i}], types[{i}], {_bool(o.optional)})"
            for i, o in enumerate(op.outputs)
        )
        return "\n".join(
            [
                f"/* Checks a call of {op.name}, its outputs too, and binds its sizes and types. */",
                self._signature(f"begin_{op.name}", parameters),
                f"  opc_tensor_type types[{max(1, len(op.outputs))}];",
                f"  const int32_t code = bind_{op.name}(inputs, attributes, call, types, context);",
                "  if (code != OPC_OK) return code;",
                f"  opc::matcher match({string_literal(op.name)}, context);",
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

    def _step(self, step: Step) -> Iterator[str]:
        match step:
            case CheckAttribute():
                yield from self._attribute(step.attribute)
            case CheckCondition():
                yield from self._condition(step)
            case BindType():
                yield from self._bind_type(step)
            case MatchType():
                yield from self._match_type(step)
            case MatchOperand():
                yield from self._operand(step)
            case NeedOne():
                yield from self._need(step)
            case BroadcastGroup():
                yield from self._broadcast(step)
            case DeriveDim():
                name, text = string_literal(step.dim), string_literal(str(step.size))
                yield f"  const opc::integer size_{step.dim} = {self.scalar.integer(step.size, bare=True)};"
                yield from _unless(f"match.derive({self._dim(step.dim)}, {name}, {text}, size_{step.dim})")
            case MatchSize():
                yield from self._match_size(step)
            case SizeOutput():
                yield from self._output(step)

    def _attribute(self, attribute: Attribute) -> Iterator[str]:
        name, value = string_literal(attribute.name), f"attributes->{attribute.name}"
        if attribute.length == -1:
            yield from _unless(f"match.list({name}, {value}_length, {value})")
        if attribute.kind is AttributeKind.DTYPE:
            choices, count = "the dtypes", len(DType)
        elif attribute.values:
            choices, count = ", ".join(f"'{v}'" for v in attribute.values), len(attribute.values)
        else:
            return
        check = "match.choice({}, {}, {}, {})"
        if attribute.length is None:
            yield from _unless(check.format(name, value, count, string_literal(choices)))
        else:
            yield self._loop(attribute)
            yield from _unless(check.format(name, f"{value}[i]", count, string_literal(choices)), margin="    ")
            yield "  }"

    def _loop(self, attribute: Attribute) -> str:
        count = f"attributes->{attribute.name}_length" if attribute.length == -1 else str(attribute.length)
        return f"  for (int64_t i = 0; i < {count}; ++i) {{"

    def _condition(self, step: CheckCondition) -> Iterator[str]:
        attribute, text = step.attribute, step.text
        if attribute is not None and attribute.length is not None and names_whole_list(step.condition, attribute.name):
            specifier, value = _printed(attribute, f"attributes->{attribute.name}[i]")
            yield self._loop(attribute)
            yield f"    if (!({self.scalar.condition(step.condition, element='i')})) {{"
            message = f"{attribute.name} has {specifier}, which violates its check: %s"
            yield f"      match.refuse({string_literal(message)}, {value}, {string_literal(text)});"
            yield from ("      return match.code;", "    }", "  }")
            return
        yield f"  if (!({self.scalar.condition(step.condition)})) {{"
        if attribute is not None and attribute.length is None and attribute.kind is not AttributeKind.STR:
            specifier, value = _printed(attribute, f"attributes->{attribute.name}")
            message = f"{attribute.name} = {specifier} violates its check: %s"
            yield f"    match.refuse({string_literal(message)}, {value}, {string_literal(text)});"
        elif attribute is not None:
            yield f'    match.refuse("%s violates its check: %s", {string_literal(attribute.name)}, {string_literal(text)});'
        else:
            symbols = sorted(symbols_of(step.condition), key=str)
            values = ", ".join(f"{s} = %lld" for s in symbols)
            message = f"requires %s{f', but {values}' if values else ''}"
            numbers = "".join(f", static_cast<long long>({self.scalar.integer(Affine.of(s))}.value)" for s in symbols)
            yield f"    match.refuse({string_literal(message)}, {string_literal(text)}{numbers});"
        yield from ("    return match.code;", "  }")

    def _bind_type(self, step: BindType) -> Iterator[str]:
        name = step.attribute.name
        element = f"static_cast<opc::dtype>(attributes->{name})"
        yield from _unless(self._bind_call(step.variable, name, element))

    def _bind_call(self, variable: TypeVar, operand: str, element: str) -> str:
        name = string_literal(variable.name)
        member, allowed = f"call.{type_member(variable.name)}", f"{variable.name}_types"
        return f"match.bind({member}, {name}, {allowed}, {string_literal(operand)}, {element})"

    def _match_type(self, step: MatchType) -> Iterator[str]:
        operand = step.operand
        tensor = self._input(operand)
        guard = f"{tensor} != nullptr" if operand.optional else None
        name = string_literal(operand.name)
        calls = [] if operand.optional else [f"match.given({string_literal(f'the input {operand.name}')}, {tensor})"]
        if isinstance(operand.type, TypeVar):
            calls.append(self._bind_call(operand.type, operand.name, f"opc::dtype_of(*{tensor})"))
        else:
            calls.append(f"match.has_type({self._dtype(operand.type)}, {name}, *{tensor})")
        yield from _unless(*calls, guard=guard)

    def _dtype(self, t: ElementType) -> str:
        match t:
            case DType():
                return f"opc::dtype_{t}"
            case TypeVar():
                return f"call.{type_member(t.name)}.element"
            case Acc(of=DType() as dtype):
                return f"opc::dtype_{dtype.accumulator}"
            case Acc():
                return f"opc::accumulator_dtype({self._dtype(t.of)})"

    def _input(self, operand: Operand) -> str:
        return f"inputs[{self.op.inputs.index(operand)}]"

    def _operand(self, step: MatchOperand) -> Iterator[str]:
        operand = step.operand
        tensor = self._input(operand)
        calls = [f"match.input({string_literal(operand.name)}, {tensor}, {step.fixed}, {_bool(not step.exact)})"]
        for place in step.places:
            name = place.attribute.name
            calls.append(
                f"match.place({self._axis(name)}, {string_literal(name)}, attributes->{name}, {place.first}, {place.last})"
            )
        for axis in step.axes:
            match axis:
                case MatchDim():
                    calls.append(f"match.next({self._dim(axis.dim)}, {string_literal(axis.dim)})")
                case MatchGroup():
                    member, text = f"call.{group_member(axis.group)}", string_literal(group_text(axis.group))
                    calls.append(f"match.next({member}, {text}, {self._length(axis.length, member)})")
                case _:
                    calls.append("match.skip()")
        yield from _unless(*calls, guard=f"{tensor} != nullptr" if operand.optional else None)

    def _length(self, length: GroupLength, member: str) -> str:
        match length:
            case Rest():
                return f"match.rest({length.after})"
            case UpTo():
                return f"match.up_to({self._axis(length.attribute)}, {length.before}, {length.after})"
            case _:
                return f"match.same({member}, {length.after})"

    def _is_bound(self, symbol: Unsure) -> str:
        match symbol:
            case TypeName():
                return f"call.{type_member(symbol.name)}.element != opc::dtype_unknown"
            case str():
                return f"{self._dim(symbol)}.size >= 0"
            case _:
                return f"call.{group_member(symbol)}.rank >= 0"

    def _need(self, step: NeedOne, margin: str = "  ") -> Iterator[str]:
        message = f"{symbol_text(step.symbol)} is unknown: give {' or '.join(step.operands)}"
        yield from _unless(f'{self._is_bound(step.symbol)} || match.refuse("%s", {string_literal(message)})', margin=margin)

    def _broadcast(self, step: BroadcastGroup) -> Iterator[str]:
        array = f"{group_member((step.name, None))}_sources"
        sources = ", ".join(f"&call.{group_member(s)}" for s in step.sources)
        yield f"  const opc::group *const {array}[] = {{{sources}}};"
        yield from _unless(f"match.broadcast(call.{group_member((step.name, None))}, {array}, {len(step.sources)})")

    def _match_size(self, step: MatchSize) -> Iterator[str]:
        operand = step.operand
        tensor = self._input(operand)
        name, text = string_literal(operand.name), string_literal(str(step.size))
        yield from _unless(
            f"match.has_size({name}, *{tensor}, {step.axis}, {text}, {self.scalar.integer(step.size)})",
            guard=f"{tensor} != nullptr" if operand.optional else None,
        )

    def _output(self, step: SizeOutput) -> Iterator[str]:
        operand = step.operand
        index = self.op.outputs.index(operand)
        margin = "  "
        if step.needs:
            bound = " && ".join(self._is_bound(need.symbol) for need in step.needs)
            yield f"  types[{index}].ndim = -1;"
            yield f"  if ({bound}) {{"
            margin = "    "
        yield f"{margin}opc::start_type(types[{index}], {self._dtype(operand.type)});  // {operand.name}"
        yield from _unless(*(self._append(operand, dim, f"types[{index}]") for dim in operand.dims), margin=margin)
        if step.needs:
            yield "  }"

    def _append(self, operand: Operand, dim: DimSpec, target: str) -> str:
        if isinstance(dim, Group):
            return f"match.append({target}, call.{group_member((dim.name, dim.of))})"
        atom = dim.single
        if isinstance(atom, Dim):
            return f"match.append({target}, {self._dim(atom.name)})"
        name, text = string_literal(f"a size of {operand.name}"), string_literal(str(dim))
        return f"match.append({target}, {name}, {text}, {self.scalar.integer(dim, bare=True)})"


def _unless(*calls: str, margin: str = "  ", guard: str | None = None) -> Iterator[str]:
    """Yield the statement that returns when one of the calls is false; they are made only where `guard` holds."""
    if not calls:
        return
    condition = ""
    for separator in (" && ", f" &&\n{margin}      "):
        joined = separator.join(calls)
        negated = f"!{joined}" if len(calls) == 1 and "||" not in joined else f"!({joined})"
        condition = negated if guard is None else f"{guard} && {negated}"
        if guard is not None and "\n" in negated:
            condition = f"{guard} &&\n{margin}    {negated}"
        if "\n" not in condition and len(margin) + len(condition) + 24 <= WIDTH:
            yield f"{margin}if ({condition}) return match.code;"
            return
    yield f"{margin}if ({condition}) {{"
    yield f"{margin}  return match.code;"
    yield f"{margin}}}"


def _printed(attribute: Attribute, value: str) -> tuple[str, str]:
    """Return how printf writes a value of the attribute: the conversion and the argument."""
    match attribute.kind:
        case AttributeKind.FLOAT:
            return "%g", value
        case AttributeKind.BOOL:
            return "%s", f'{value} ? "true" : "false"'
        case _:
            return "%lld", f"static_cast<long long>({value})"


def _bool(value: bool) -> str:
    return "true" if value else "false"
