"""The steps of a call's check as C++ statements; `opc.emit.shapes.cpp` puts them into functions."""

from __future__ import annotations

from collections.abc import Iterator

from opc.analysis.shapes.plan import shown_symbols
from opc.analysis.shapes.steps import (
    Among,
    Around,
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
    Same,
    SizeOutput,
    Step,
    TypeName,
    Unsure,
    UpTo,
    group_text,
    symbol_text,
)
from opc.emit.cpp.scalars import CppScalarText
from opc.emit.cpp.text import WIDTH, message_literal, string_literal
from opc.ir.affine import Affine, Dim, Symbol
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar
from opc.ir.expr import ELLIPSIS
from opc.ir.op import Attribute, AttributeKind, DimSpec, Group, Op, Operand


def struct_name(op: Op) -> str:
    """Return the name of the struct that holds what a call of `op` binds."""
    return f"{op.name}_call"


def type_member(name: str) -> str:
    """Return the struct's member for a type variable."""
    return f"type_{name}"


def type_declaration(t: TypeVar) -> str:
    """Return the declaration of the member for a type variable, which holds its dtype from the start where it has one alone."""
    return f"opc::type {type_member(t.name)}{f' = {{opc::dtype_{t.dtypes[0]}}}' if len(t.dtypes) == 1 else ''};"


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


def listed_member(name: str) -> str:
    """Return the struct's member for the axes that an attribute lists."""
    return f"listed_{name}"


class StepText:
    """Writes the steps of one op."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.scalar = CppScalarText(op, dim=self._dim, group=lambda name: f"call.{group_member((name, None))}", axis=self._axis)

    def _dim(self, name: str) -> str:
        return f"call.{dim_member(name)}"

    def _axis(self, name: str) -> str:
        return f"call.{axis_member(name)}"

    def step(self, step: Step) -> Iterator[str]:
        """Yield the statements of one step."""
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
                yield from self.need(step)
            case BroadcastGroup():
                yield from self._broadcast(step)
            case DeriveDim():
                name, text = message_literal(step.dim), message_literal(step.text)
                yield f"  const opc::integer size_{step.dim} = {self.scalar.integer(step.size, bare=True)};"
                yield from unless(f"match.derive({self._dim(step.dim)}, {name}, {text}, size_{step.dim})")
            case MatchSize():
                yield from self._match_size(step)
            case SizeOutput():
                yield from self._output(step)

    def _attribute(self, attribute: Attribute) -> Iterator[str]:
        name, value = message_literal(attribute.name), f"attributes->{attribute.name}"
        if attribute.length == -1:
            yield from unless(f"match.list({name}, {value}_length, {value})")
        if attribute.kind is AttributeKind.DTYPE:
            choices, count = "the dtypes", "opc::dtype_count"
        elif attribute.values:
            choices, count = ", ".join(f"'{v}'" for v in attribute.values), str(len(attribute.values))
        else:
            return
        check = "match.choice({}, {}, {}, {})"
        if attribute.length is None:
            yield from unless(check.format(name, value, count, string_literal(choices)))
        else:
            yield self._loop(attribute)
            yield from unless(check.format(name, f"{value}[i]", count, string_literal(choices)), margin="    ")
            yield "  }"

    def _loop(self, attribute: Attribute) -> str:
        count = f"attributes->{attribute.name}_length" if attribute.length == -1 else str(attribute.length)
        return f"  for (int64_t i = 0; i < {count}; ++i) {{"

    def _condition(self, step: CheckCondition) -> Iterator[str]:
        attribute, text = step.attribute, message_literal(step.text)
        yield f"  if (!({self.scalar.condition(step.condition)})) {{"
        if attribute is None:
            symbols = shown_symbols(step.condition)
            shown = ", ".join(f"{s} = %lld" for s in symbols)
            message = f"requires %s{f', but {shown}' if shown else ''}"
            numbers = [self._number(s) for s in symbols]
        else:
            values = _names(attribute)
            if values:
                yield f"    const char *const {attribute.name}_names[] = {{{values}}};"
            specifier, numbers = _printed(attribute)
            message = f"{attribute.name} = {specifier} violates its check: %s"
            numbers = [*numbers, text]
            text = ""
        arguments = ", ".join([message_literal(message), *([text] if text else []), *numbers])
        yield from (f"    match.refuse({arguments});", "    return match.code;", "  }")

    def _number(self, symbol: Symbol) -> str:
        """Return the argument by which printf's %lld shows a size."""
        match symbol:
            case Dim():
                return f"static_cast<long long>({self._dim(symbol.name)}.size)"
            case _:
                return f"static_cast<long long>({self.scalar.integer(Affine.of(symbol))}.value)"

    def _bind_type(self, step: BindType) -> Iterator[str]:
        name = step.attribute.name
        element = f"static_cast<opc::dtype>(attributes->{name})"
        yield from unless(self._bind_call(step.variable, name, element))

    def _bind_call(self, variable: TypeVar, operand: str, element: str) -> str:
        name = message_literal(variable.name)
        member, allowed = f"call.{type_member(variable.name)}", f"{variable.name}_types"
        return f"match.bind({member}, {name}, {allowed}, {message_literal(operand)}, {element})"

    def _match_type(self, step: MatchType) -> Iterator[str]:
        operand = step.operand
        tensor = self._input(operand)
        guard = f"{tensor} != nullptr" if operand.optional else None
        name = message_literal(operand.name)
        calls = [] if operand.optional else [f"match.given({message_literal(f'the input {operand.name}')}, {tensor})"]
        if isinstance(operand.type, TypeVar):
            calls.append(self._bind_call(operand.type, operand.name, f"opc::dtype_of(*{tensor})"))
        else:
            calls.append(f"match.has_type({self.element(operand.type)}, {name}, *{tensor})")
        yield from unless(*calls, guard=guard)

    def element(self, t: ElementType) -> str:
        """Return the expression of the opc::dtype of a type."""
        match t:
            case DType():
                return f"opc::dtype_{t}"
            case TypeVar():
                return f"call.{type_member(t.name)}.element"
            case Acc(of=DType() as dtype):
                return f"opc::dtype_{dtype.accumulator}"
            case Acc():
                return f"opc::accumulator_dtype({self.element(t.of)})"

    def _input(self, operand: Operand) -> str:
        return f"inputs[{self.op.inputs.index(operand)}]"

    def _operand(self, step: MatchOperand) -> Iterator[str]:
        operand = step.operand
        tensor = self._input(operand)
        calls = [f"match.input({message_literal(operand.name)}, {tensor}, {step.fixed}, {as_bool(not step.exact)})"]
        for place in step.places:
            name = place.attribute.name
            calls.append(
                f"match.place({self._axis(name)}, {message_literal(name)}, attributes->{name}, {place.first}, {place.last}"
                f"{', true' if place.adds else ''})"
            )
        for axis in step.axes:
            match axis:
                case MatchDim(slot=int() as slot):
                    calls += self._slot(axis, slot, operand, first=axis is step.axes[0])
                case MatchDim():
                    calls.append(f"match.next({self._dim(axis.dim)}, {message_literal(axis.dim)})")
                case MatchGroup(length=(Among() | Around()) as length):
                    calls += self._arranged(axis, length, operand, first=axis is step.axes[0])
                case MatchGroup():
                    member, text = f"call.{group_member(axis.group)}", message_literal(group_text(axis.group))
                    calls.append(f"match.next({member}, {text}, {self._length(axis.length, member)})")
                case _:
                    calls.append("match.skip()")
        yield from unless(*calls, guard=f"{tensor} != nullptr" if operand.optional else None)

    def _arranged(self, axis: MatchGroup, length: Among | Around, operand: Operand, first: bool) -> Iterator[str]:
        """Yield what matches a group of a mixed or thinned operand."""
        name, member, text = length.attribute, f"call.{group_member(axis.group)}", message_literal(group_text(axis.group))
        counted = self._listed(name, operand, f"{self._input(operand)}->ndim")
        axes = f"call.{listed_member(name)}"
        if isinstance(length, Among):
            yield from [counted] if first else []
            yield f"match.next({member}, {text}, {axes}, {as_bool(length.listed)})"
            return
        keeps = f"attributes->{length.keeps} != 0"
        around, whole = f"match.next_around({member}, {text}, {axes})", f"match.next({member}, {text}, match.rest(0))"
        yield f"({keeps} ? {counted} && {around} : {whole})"

    def _slot(self, axis: MatchDim, slot: int, operand: Operand, first: bool) -> Iterator[str]:
        """Yield what matches a dimension of a mixed operand that an attribute places."""
        how = arrangement(self.op)
        assert how is not None, "it has attributes that place axes"
        yield from [self._listed(how.axes, operand, f"{self._input(operand)}->ndim")] if first else []
        yield f"match.next({self._dim(axis.dim)}, {message_literal(axis.dim)}, call.{listed_member(how.axes)}, {slot})"

    def _listed(self, name: str, operand: Operand, rank: str) -> str:
        """Return the calls that count listed axes from the front, or those that attributes place."""
        how = arrangement(self.op)
        if how is not None and how.slots:
            axes, of, last = f"call.{listed_member(name)}", message_literal(operand.name), len(how.slots) - 1
            given = [f"{n}, {message_literal(a)}, attributes->{a}" for n, a in enumerate(how.attributes)]
            placed = [f"match.place({axes}, {text}, {of}, {rank}, {as_bool(n == last)})" for n, text in enumerate(given)]
            return " && ".join(placed)
        values = f"attributes->{name}, attributes->{name}_length"
        step = "permute" if how is not None and how.permutes else "list"
        own, of = f"call.{listed_member(name)}, {message_literal(name)}", message_literal(operand.name)
        return f"match.{step}({own}, {values}, {of}, {rank})"

    def _length(self, length: GroupLength, member: str) -> str:
        match length:
            case Rest():
                behind = " + ".join(f"call.{group_member(g)}.rank" for g in length.groups)
                return f"match.rest({length.after}, {behind})" if behind else f"match.rest({length.after})"
            case UpTo():
                return f"match.up_to({self._axis(length.attribute)}, {length.before}, {length.after})"
            case Same():
                return f"match.same({member}, {length.after})"
            case Among() | Around():
                raise TypeError("a list says how many axes these are")

    def _is_bound(self, symbol: Unsure) -> str:
        match symbol:
            case TypeName():
                return f"call.{type_member(symbol.name)}.element != opc::dtype_unknown"
            case str():
                return f"{self._dim(symbol)}.size >= 0"
            case _:
                return f"call.{group_member(symbol)}.rank >= 0"

    def need(self, step: NeedOne, margin: str = "  ") -> Iterator[str]:
        """Yield the refusal of a call that leaves a symbol unbound."""
        message = f"{symbol_text(step.symbol)} is unknown: give {' or '.join(step.operands)}"
        yield from unless(f'{self._is_bound(step.symbol)} || match.refuse("%s", {message_literal(message)})', margin=margin)

    def _broadcast(self, step: BroadcastGroup) -> Iterator[str]:
        array = f"{group_member((step.name, None))}_sources"
        sources = ", ".join(f"&call.{group_member(s)}" for s in step.sources)
        yield f"  const opc::group *const {array}[] = {{{sources}}};"
        yield from unless(f"match.broadcast(call.{group_member((step.name, None))}, {array}, {len(step.sources)})")

    def _match_size(self, step: MatchSize) -> Iterator[str]:
        operand = step.operand
        tensor = self._input(operand)
        name, text = message_literal(operand.name), message_literal(str(step.size))
        axis = " + ".join(
            [*(f"call.{group_member(g)}.rank" for g in step.before), *([str(step.axis)] if step.axis or not step.before else [])]
        )
        yield from unless(
            f"match.has_size({name}, *{tensor}, {axis}, {text}, {self.scalar.integer(step.size)})",
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
        yield f"{margin}opc::start_type(types[{index}], {self.element(operand.type)});  // {operand.name}"
        yield from unless(*self._shape(operand, f"types[{index}]"), margin=margin)
        if step.needs:
            yield "  }"

    def _shape(self, operand: Operand, target: str) -> Iterator[str]:
        """Yield the calls that make the shape of an output."""
        how = arrangement(self.op)
        if how is not None and (how.is_mixed(operand) or how.is_thinned(operand)):
            rest, own = (f"call.{group_member((name, None))}" for name in (how.rest, how.picked))
            axes = f"call.{listed_member(how.axes)}"
            if how.permutes:
                yield self._listed(how.axes, operand, f"{own}.rank")
                yield f"match.append_permuted({target}, {own}, {axes})"
                return
            if how.slots:
                yield self._listed(how.axes, operand, f"{rest}.rank + {len(how.slots)}")
                yield f"match.append_around({target}, {rest}, {axes})"
                for slot, dim in enumerate(how.slot_dims(operand)):
                    yield f"match.put({target}, {axes}, {slot}, {self._dim(dim)})"
                return
            if how.is_mixed(operand):
                yield self._listed(how.axes, operand, f"{rest}.rank + {own}.rank")
                if how.is_untold(self.op):
                    names = ", ".join(map(message_literal, (how.axes, operand.name, f"*{how.picked}")))
                    yield f"match.lists({axes}, {names}, {own}.rank)"
                yield f"match.append({target}, {rest}, {own}, {axes})"
            else:
                around = f"match.append_around({target}, {rest}, {axes})"
                yield f"(attributes->{how.keeps} != 0 ? {around} : match.append({target}, {rest}))"
            return
        yield from (self._append(operand, dim, target) for dim in operand.dims)

    def _append(self, operand: Operand, dim: DimSpec, target: str) -> str:
        if isinstance(dim, Group):
            return f"match.append({target}, call.{group_member((dim.name, dim.of))})"
        atom = dim.single
        if isinstance(atom, Dim):
            return f"match.append({target}, {self._dim(atom.name)})"
        name, text = message_literal(f"a size of {operand.name}"), message_literal(str(dim))
        return f"match.append({target}, {name}, {text}, {self.scalar.integer(dim, bare=True)})"


def unless(*calls: str, margin: str = "  ", guard: str | None = None) -> Iterator[str]:
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


def _names(attribute: Attribute) -> str:
    """Return the initialiser of the array of an attribute's values by position; empty where it has none."""
    return ", ".join(string_literal(v) for v in attribute.values)


def _printed(attribute: Attribute) -> tuple[str, list[str]]:
    """Return how printf writes the value of an attribute, a scalar or a fixed list: the conversions and the arguments."""
    places = [""] if attribute.length is None else [f"[{i}]" for i in range(attribute.length)]
    values = [f"attributes->{attribute.name}{place}" for place in places]
    match attribute.kind:
        case AttributeKind.FLOAT:
            one, arguments = "%g", values
        case AttributeKind.BOOL:
            one, arguments = "%s", [f'{value} ? "true" : "false"' for value in values]
        case AttributeKind.STR:
            one, arguments = "'%s'", [f"{attribute.name}_names[{v}]" if attribute.values else v for v in values]
        case AttributeKind.DTYPE:
            one, arguments = "'%s'", [f"opc::dtype_name(static_cast<opc::dtype>({value}))" for value in values]
        case _:
            one, arguments = "%lld", [f"static_cast<long long>({value})" for value in values]
    text = ", ".join([one] * len(places))
    return text if attribute.length is None else f"[{text}]", arguments


def as_bool(value: bool) -> str:
    """Return a C++ literal."""
    return "true" if value else "false"
