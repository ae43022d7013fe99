"""Writes the functions of a generated `shape.py`; see `opc.emit.shapes.python`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from opc.analysis.shapes.plan import plan, shown_symbols, symbols_of
from opc.analysis.shapes.steps import (
    Among,
    Around,
    BindType,
    Bound,
    BroadcastGroup,
    CheckAttribute,
    CheckCondition,
    DeriveDim,
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
    symbol_text,
)
from opc.emit.python.layout import bracketed, tupled, unless_any
from opc.emit.python.scalars import PythonScalarText
from opc.emit.python.text import WIDTH, Bracket, docstring, literal, quoted, tuple_of
from opc.emit.shapes.python_listed import ListedAxes, said
from opc.ir.affine import Affine, Dim, GroupSize, Symbol
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar
from opc.ir.expr import AttrRef, walk
from opc.ir.op import Attribute, AttributeKind, Group, Op, Operand
from opc.names import spelled


class ShapeFunctions(ListedAxes):
    """Writes the two functions of one op."""

    def __init__(self, op: Op, sets: Mapping[TypeVar, str]) -> None:
        self.op, self.sets = op, sets
        self.plan: ShapePlan = plan(op)
        self.names: dict[str, str] = {}
        self.methods: set[str] = set()
        """The methods of a call that the text has used."""
        self.defined: set[str] = set()
        self.taken = {o.name for o in op.inputs} | {a.name for a in op.attributes} | {"math", "re"}
        self.own = self._local("call")
        self.begin_listed()
        self.scalar = PythonScalarText(
            dim=lambda name: self._local(name),
            points=lambda name: self._local(f"points_{name}".replace("...", "all")),
            present=lambda name: f"{name} is not None",
        )

    def _call(self, method: str) -> str:
        """Return the begin of a call's method being called, which the text needs from here on."""
        self.methods.add(method)
        return f"{self.own}.{method}("

    def _local(self, wanted: str) -> str:
        """Return the local variable of a symbol, one that no parameter has."""
        if wanted not in self.names:
            name = wanted
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self.names[wanted] = name
        return self.names[wanted]

    def _signature(self, name: str, kind: str, attributes: list[Attribute], result: str) -> str:
        last = max((i for i, o in enumerate(self.op.inputs) if not o.optional), default=-1)
        parameters = [
            f"{o.name}: {kind}{' | None' if o.optional else ''}{' = None' if i > last else ''}"
            for i, o in enumerate(self.op.inputs)
        ]
        if attributes:
            ordered = sorted(attributes, key=lambda a: not a.required or a.name in self.op.told)
            parameters += ["*", *(_parameter(a, a.name in self.op.told) for a in ordered)]
        return bracketed(f"def {name}(", parameters, f") -> {result}:", 0)

    # ---- shapes ----

    def shapes(self) -> str:
        """Return `infer_shapes_<op>`."""
        op = self.op
        result = _result("Shape", op)
        signature = self._signature(f"infer_shapes_{op.name}", "Any", list(op.attributes), result)
        lines = [signature, docstring(f"Return the {_shapes_of(op)}.", 4), f"    {self.own} = _Call({said(op.name)})"]
        if self.told is Bound.MAYBE:
            lines.append(f"    {self.listed} = None")
        for step in self.plan.steps:
            lines += self._step(step)
        lines += self._results()
        return "\n".join(lines) + "\n"

    def _step(self, step: Step) -> Iterator[str]:
        match step:
            case CheckAttribute():
                yield from self._length(step.attribute)
                yield from self._choice(step.attribute)
            case CheckCondition():
                yield from self._condition(step)
            case MatchOperand():
                yield from self._operand(step)
            case NeedOne():
                yield from self._need(step)
            case BroadcastGroup():
                sources = [said(symbol_text(s)) for s in step.sources]
                text = f"({', '.join(sources)}{',' if len(sources) == 1 else ''})"
                group = said(symbol_text((step.name, None)))
                if step.known is Bound.MAYBE:
                    yield f"    if {group} in {self.own}.groups:"
                    yield bracketed(self._call("expand"), [group, text], indent=8)
                    yield "    else:"
                    yield bracketed(self._call("broadcast"), [group, text], indent=8)
                else:
                    method = "broadcast" if step.known is Bound.NO else "expand"
                    yield bracketed(self._call(method), [group, text])
            case DeriveDim():
                yield from self._uses(step.size)
                yield self._derived(f"{self.own}.dims[{said(step.dim)}] = ", said(step.dim), step.size, written=step.text)
            case MatchSize():
                yield from self._match_size(step)
            case SizeOutput() | BindType() | MatchType():
                pass

    def _length(self, attribute: Attribute) -> Iterator[str]:
        if attribute.length is not None and attribute.length >= 0:
            yield bracketed(
                self._call("length"),
                [said(attribute.name), attribute.name, str(attribute.length), quoted(attribute.kind.value)],
            )

    def _choice(self, attribute: Attribute, margin: int = 4) -> Iterator[str]:
        if not attribute.values:
            return
        values = f"({', '.join(quoted(v) for v in attribute.values)}{',' if len(attribute.values) == 1 else ''})"
        name = said(attribute.name)
        if attribute.length is None:
            yield bracketed(self._call("choice"), [name, attribute.name, values], indent=margin)
        else:
            yield f"    for element in {attribute.name}:"
            yield bracketed(self._call("choice"), [name, "element", values], indent=8)

    def _condition(self, step: CheckCondition) -> Iterator[str]:
        attribute, rule = step.attribute, self.scalar.condition(step.condition)
        if attribute is not None and not any(isinstance(s, Dim | GroupSize) for s in symbols_of(step.condition)):
            name, text = said(attribute.name), said(step.text)
            arguments = [name, attribute.name, text, f"lambda {attribute.name}: {rule}"]
            named = {s.name for s in symbols_of(step.condition)}
            named |= {e.name for e in walk(step.condition) if isinstance(e, AttrRef)}
            unknown = sorted(named & set(self.op.told))
            if unknown:
                yield f"    if {' and '.join(f'{n} is not None' for n in unknown)}:"
            yield bracketed(self._call("check"), arguments, indent=8 if unknown else 4)
            return
        symbols = shown_symbols(step.condition)
        for symbol in symbols:
            yield from self._uses(Affine.of(symbol))
        values = self._values(frozenset(symbols))
        yield bracketed(self._call("require"), [said(step.text), values, f"lambda: {rule}"])

    def _values(self, symbols: frozenset[Symbol]) -> Bracket:
        """Return the dictionary of the values of a rule's names."""
        return Bracket("{", [f"{said(str(s))}: {self.scalar.size(Affine.of(s))}" for s in sorted(symbols, key=str)], "}")

    def _uses(self, size: Affine) -> Iterator[str]:
        """Yield the statements that give the sizes an expression uses their local names, where they have none yet."""
        for symbol in sorted(size.atoms(), key=str):
            text = self.scalar.size(Affine.of(symbol))
            if text in self.defined:
                continue
            self.defined.add(text)
            if isinstance(symbol, Dim):
                yield f"    {text} = {self.own}.dims[{said(symbol.name)}]"
            elif isinstance(symbol, GroupSize):
                yield f"    {text} = {self._call('points')}{said(symbol_text((symbol.name, None)))})"

    def _derived(self, target: str, name: str, size: Affine, indent: int = 4, written: str | None = None) -> str:
        """Return what computes a derived size; messages have its rule as it is `written` in the spec."""
        rule = f"lambda: {self.scalar.size(size)}"
        arguments: list[str | Bracket] = [name, said(str(size)), self._values(size.atoms()), rule]
        arguments += [] if written in (None, str(size)) else [f"written={said(written)}"]
        return bracketed(f"{target}{self._call('size')}", arguments, indent=indent)

    def _operand(self, step: MatchOperand) -> Iterator[str]:
        operand = step.operand
        margin = 4
        if operand.optional:
            yield f"    if {operand.name} is not None:"
            margin = 8
        arguments = [said(operand.name), operand.name, str(step.fixed), *([] if step.exact else ["at_least=True"])]
        yield bracketed(f"{operand.name} = {self._call('operand')}", arguments, indent=margin)
        for place in step.places:
            name = place.attribute.name
            arguments = [said(name), name, said(operand.name), operand.name, str(place.first), str(place.last)]
            arguments += ["adds=True"] if place.adds else []
            yield bracketed(f"{name} = {self._call('axis')}", arguments, indent=margin)
        yield from self._placed(step, margin)
        at = _Position("", 0)
        for axis in step.axes:
            if not isinstance(axis, MatchGroup):
                if isinstance(axis, MatchDim) and axis.slot is not None:
                    arguments = [said(axis.dim), said(operand.name), f"{operand.name}[{self.listed}[{axis.slot}]]"]
                    yield bracketed(self._call("dim"), arguments, indent=margin)
                    continue
                if isinstance(axis, MatchDim):
                    arguments = [said(axis.dim), said(operand.name), f"{operand.name}[{at}]"]
                    yield bracketed(self._call("dim"), arguments, indent=margin)
                at = at.plus(1)
                continue
            if isinstance(axis.length, Among | Around):
                yield from self._arranged(axis, axis.length, operand, margin, first=axis is step.axes[0])
                continue
            match axis.length:
                case Rest() if axis.length.groups:
                    split = self._local(f"split_{operand.name}")
                    self.names.pop(f"split_{operand.name}")
                    behind = [f" - len({self.own}.groups[{quoted(symbol_text(g))}])" for g in axis.length.groups]
                    room = f"len({operand.name})" + (f" - {axis.length.after}" if axis.length.after else "") + "".join(behind)
                    yield bracketed(f"{split} = max(", [str(at), room], indent=margin)
                    following, stop = _Position(split, 0), split
                case Rest():
                    stop = f"-{axis.length.after}" if axis.length.after else ""
                    following = _Position("", -axis.length.after)
                case UpTo():
                    following = _Position(axis.length.attribute, -axis.length.before)
                    stop = str(following)
                case _:
                    split = self._local(f"split_{operand.name}")
                    self.names.pop(f"split_{operand.name}")
                    ranks = f"len({self.own}.groups[{said(symbol_text(axis.group))}])"
                    wanted = ranks if str(at) == "0" else f"{at} + {ranks}"
                    room = f"len({operand.name})" + (f" - {axis.length.after}" if axis.length.after else "")
                    # The spec may have an attribute that is called `min`.
                    yield bracketed(f"{split} = {self._call('least')}", [wanted, room], indent=margin)
                    following, stop = _Position(split, 0), split
            start = "" if str(at) == "0" else str(at)
            piece = operand.name if not start and not stop else f"{operand.name}[{_slice(start, stop)}]"
            arguments = [said(symbol_text(axis.group)), said(operand.name), piece]
            yield bracketed(self._call("group"), arguments, indent=margin)
            at = following

    def _need(self, step: NeedOne, margin: int = 4) -> Iterator[str]:
        given = " or ".join(f"{o} is not None" for o in step.operands)
        what = said(symbol_text(step.symbol))
        yield bracketed(self._call("need"), [what, given, said(" or ".join(step.operands))], indent=margin)

    def _match_size(self, step: MatchSize) -> Iterator[str]:
        operand = step.operand
        margin = 8 if operand.optional else 4
        name = said(operand.name)
        ranks = [f"len({self.own}.groups[{said(symbol_text(g))}])" for g in step.before]
        axis = str(step.axis) if step.axis >= 0 else f"len({operand.name}) - {-step.axis}"
        axis = " + ".join([*ranks, *([axis] if step.axis or not ranks else [])])
        yield from self._uses(step.size)
        atom = step.size.single
        if operand.optional:
            yield f"    if {operand.name} is not None:"
        if step.size.constant is not None or isinstance(atom, Dim):
            expected = self.scalar.size(step.size)
        else:
            expected = self._local(f"expected_{operand.name}")
            number = axis.replace('"', "'")  # before Python 3.12, a quote ends the text around it
            place = (
                f'f"axis {{{number}}} of {spelled(operand.name)}"'
                if step.axis < 0 or ranks
                else said(f"axis {axis} of {operand.name}")
            )
            yield self._derived(f"{expected} = ", place, step.size, margin)
        at = axis if ranks else str(step.axis)
        arguments = [name, axis, f"{operand.name}[{at}]", said(str(step.size)), expected]
        yield bracketed(self._call("has_size"), arguments, indent=margin)

    def _bound(self, symbol: Unsure) -> str:
        match symbol:
            case TypeName():
                return ""
            case str():
                return f"{said(symbol)} in {self.own}.dims"
            case _:
                return f"{said(symbol_text(symbol))} in {self.own}.groups"

    def _results(self) -> Iterator[str]:
        outputs = [s for s in self.plan.steps if isinstance(s, SizeOutput)]
        if outputs and all(s.needs for s in outputs):
            conditions = [self._given(s) for s in outputs]
            yield unless_any(list(dict.fromkeys(conditions)))
            for need in dict.fromkeys(need for s in outputs for need in s.needs):
                yield from self._need(need, 8)
        entries = []
        for step in outputs:
            if self.arrangement is not None and self.arrangement.is_mixed(step.operand):
                given = self._given(step) if step.needs else ""
                yield from self._list(step.operand.name, self.arranged_rank(), 4, given)
                yield from self._lists(step.operand.name, given)
            entries.append(self._shape(step.operand))
            for i, dim in enumerate(step.operand.dims):
                if not isinstance(dim, Group) and dim.constant is None and not isinstance(dim.single, Dim):
                    yield from self._uses(dim)
                    local = self._local(_size_name(step.operand, i))
                    yield self._derived(f"{local} = ", said(f"a size of {step.operand.name}"), dim)
            groups = [d for d in step.operand.dims if isinstance(d, Group)]
            if step.needs and len(groups) == len(step.operand.dims) == 1 and "*" not in entries[-1]:
                entries[-1] = entries[-1].replace("[", ".get(").replace("]", ")")
            elif step.needs:
                parts = [entries[-1], f"if {self._given(step)}", "else None"]
                one = " ".join(parts)
                entries[-1] = one if len(one) + 9 <= WIDTH else "\n        ".join(parts)
        yield tupled("return ", entries)

    def _given(self, step: SizeOutput) -> str:
        """Return the condition under which an optional output's shape and type are determined."""
        conditions = [self._bound(n.symbol) for n in step.needs if not isinstance(n.symbol, TypeName)]
        types = [n for n in step.needs if isinstance(n.symbol, TypeName)]
        if not conditions:
            conditions = [" or ".join(f"{o} is not None" for n in types for o in n.operands)]
        return " and ".join(dict.fromkeys(conditions))

    def _shape(self, operand: Operand) -> str:
        listed = self._mixed(operand)
        if listed is not None:
            return listed
        items = [self._entry(operand, i, dim) for i, dim in enumerate(operand.dims)]
        if len(items) == 1 and items[0].startswith("*"):
            return items[0][1:]
        return tuple_of(items).render(8, 1)

    def _entry(self, operand: Operand, number: int, dim: Affine | Group) -> str:
        if isinstance(dim, Group):
            return f"*{self.own}.groups[{said(symbol_text((dim.name, dim.of)))}]"
        atom = dim.single
        if isinstance(atom, Dim):
            return f"{self.own}.dims[{said(atom.name)}]"
        if dim.constant is not None:
            return str(dim.constant)
        return self._local(_size_name(operand, number))

    # ---- types ----

    def types(self) -> str:
        """Return `infer_types_<op>`."""
        op = self.op
        binding = [a for a in op.attributes if a.kind is AttributeKind.DTYPE and a.binds is not None]
        signature = self._signature(f"infer_types_{op.name}", "str", binding, _result("str", op))
        lines = [signature, docstring(f"Return the {_shapes_of(op).replace('shape', 'dtype')}.", 4)]
        lines.append(f"    {self.own} = _Call({said(op.name)})")
        for step in self.plan.steps:
            if isinstance(step, BindType):
                name = step.attribute.name
                arguments = [said(step.variable.name), self.sets[step.variable], said(name), name]
                lines.append(bracketed(self._call("type"), arguments))
            elif isinstance(step, MatchType):
                name, t = step.operand.name, step.operand.type
                if isinstance(t, TypeVar):
                    lines.append(bracketed(self._call("type"), [said(t.name), self.sets[t], said(name), name]))
                else:
                    lines.append(
                        bracketed(self._call("has_type"), [said(name), name, self._dtype(t, step.known is not Bound.YES)])
                    )
        results = []
        for output in (s for s in self.plan.steps if isinstance(s, SizeOutput)):
            t = output.operand.type
            results.append(self._dtype(t, self.plan.may_be_unbound(t.of if isinstance(t, Acc) else t)))
        lines.append(tupled("return ", results))
        return "\n".join(lines) + "\n"

    def _dtype(self, t: ElementType, unsure: bool) -> str:
        match t:
            case DType():
                return quoted(t.value)
            case TypeVar() if len(t.dtypes) == 1:
                return quoted(t.dtypes[0].value)
            case TypeVar():
                return f"{self.own}.types.get({said(t.name)})" if unsure else f"{self.own}.types[{said(t.name)}]"
            case Acc(of=DType() as dtype):
                return quoted(dtype.accumulator.value)
            case Acc():
                inner = self._dtype(t.of, unsure)
                return f'_ACCUMULATOR.get({inner} or "")' if unsure else f"_ACCUMULATOR[{inner}]"


class _Position:
    """A position among an operand's axes: a number, counted from the end when negative, or a variable and an offset."""

    def __init__(self, base: str, offset: int) -> None:
        self.base, self.offset = base, offset

    def plus(self, count: int) -> _Position:
        """Return the position `count` axes later."""
        return _Position(self.base, self.offset + count)

    def __str__(self) -> str:
        if not self.base:
            return str(self.offset)
        sign = "+" if self.offset > 0 else "-"
        return f"{self.base} {sign} {abs(self.offset)}" if self.offset else self.base


def _size_name(operand: Operand, number: int) -> str:
    return f"size_{number}_of_{operand.name}"


def _slice(start: str, stop: str) -> str:
    """Return a slice as formatters write it: spaces around the colon when a bound is an expression."""
    complex_bound = any(re.search(r"\w \S \w", bound) for bound in (start, stop))
    if not complex_bound:
        return f"{start}:{stop}"
    return f"{start} :{f' {stop}' if stop else ''}" if start else f": {stop}"


def _parameter(attribute: Attribute, told: bool) -> str:
    if told:
        return f"{attribute.name}: Any = None"
    if attribute.required:
        return f"{attribute.name}: Any"
    return f"{attribute.name}: Any = {literal(attribute.default)}"


def _result(kind: str, op: Op) -> str:
    """Return the annotation of a function that answers one entry an output."""
    entries = [f"{kind} | None" if o.optional else kind for o in op.outputs]
    if len(entries) > 2 and len(set(entries)) == 1:
        return f"tuple[{entries[0]}, ...]"
    return f"tuple[{', '.join(entries)}]"


def _shapes_of(op: Op) -> str:
    names = [o.name for o in op.outputs]
    if len(names) == 1:
        return f"shape of {names[0]}"
    return f"shapes of {', '.join(names[:-1])} and {names[-1]}"
