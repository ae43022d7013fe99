"""The sizes of an op's outputs as calls of a builder, for hosts whose sizes are expressions: TensorRT's `IExprBuilder`.

`Shapes` of `runtime/include/opc/adapters/tensorrt_shapes.h` in C++, and of a package's `tensorrt/support.py` in Python, have
these calls; their texts are the same but for how a language writes a truth value and a list. For `x: T[*A, N, *B]`, `softmax` has

    s.operand(0, 1, true)
    s.place("axis", attributes.axis, 0, 0)
    s.next_group("*A", s.up_to("axis", 0, 1))
    s.next_dim("N")
    s.next_group("*B", s.rest(0))
    s.start()
    s.append_group("*A")
    s.append(s.dim("N"))
    s.append_group("*B")

Every operator of sizes has a form here: a remainder is `a - a // b * b`, a greater size `a + b - min(a, b)`. What steps check
beyond the sizes themselves is left to the kernel, which checks a call when sizes are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from opc.analysis.shapes.plan import plan
from opc.analysis.shapes.steps import (
    Among,
    Around,
    BroadcastGroup,
    DeriveDim,
    GroupLength,
    MatchDim,
    MatchGroup,
    MatchOperand,
    Rest,
    Same,
    SizeOutput,
    UpTo,
    symbol_text,
)
from opc.emit.cpp.text import string_literal, whole_number
from opc.emit.python.text import quoted
from opc.emit.scalar.affine import AffineDialect, terms_of
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod, parts_of
from opc.ir.arrangement import arrangement
from opc.ir.op import Group, Op
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """How a language writes literals of texts and whole numbers, truth values, and what stands around the elements of a list."""

    text: Callable[[str], str]
    number: Callable[[int], str]
    true: str
    false: str
    brackets: str
    listed: str
    """How the elements of a list attribute are passed."""
    is_text: str
    """Whether a str attribute has a value, 1 or 0: it is compared with the text, or with its position among the values."""


CPP = Language(
    string_literal,
    whole_number,
    "true",
    "false",
    "{}",
    "attributes.{0}, attributes.{0}_length",
    "attributes.{name} == {position} ? 1 : 0",
)
PYTHON = Language(quoted, str, "True", "False", "()", "attributes.{0}", "int(attributes.{name} == {text})")


def builder_calls(op: Op, language: Language) -> list[str]:
    """Return the calls, without what ends a statement.

    Raises:
        opc.analysis.shapes.plan.UndeterminedError: when the inputs do not determine every size of the outputs.
    """
    return list(_BuilderCalls(op, language).calls())


class SizeText(AffineDialect):
    """Writes sizes as calls of the builder."""

    def __init__(self, op: Op, language: Language) -> None:
        self.op, self.language = op, language

    def literal(self, value: int, alone: bool) -> str:
        """Return a number as a size."""
        return f"s.number({self.language.number(value)})"

    def atom(self, atom: Atom, factor: bool) -> str:
        """Return a symbol or an operation.

        Raises:
            ValueError: for an index variable, which no size has.
        """
        match atom:
            case Dim():
                return f"s.dim({self.language.text(atom.name)})"
            case GroupSize():
                return f"s.points({self.language.text(symbol_text((atom.name, None)))})"
            case AttrInt():
                place = f"[{atom.element}]" if atom.element >= 0 else ""
                if atom.text is not None:
                    position, text = self.op.attribute(atom.name).values.index(atom.text), self.language.text(atom.text)
                    return f"s.number({self.language.is_text.format(name=atom.name, position=position, text=text)})"
                return f"s.number(attributes.{atom.name}{place})"
            case FloorDiv() | Mod() | Minimum():
                name = {FloorDiv: "floor_divide", Mod: "modulo", Minimum: "minimum"}[type(atom)]
                left, right = map(self.affine, parts_of(atom))
                return f"s.{name}({left}, {right})"
            case Index():
                raise ValueError(f"the index {atom.name} is no size")

    def times(self, left: str, right: str) -> str:
        """Return a product."""
        return f"s.multiply({left}, {right})"

    def first(self, term: str, negative: bool) -> str:
        """Return a sum that begins with a term."""
        return f"s.subtract(s.number(0), {term})" if negative else term

    def joined(self, total: str, term: str, negative: bool) -> str:
        """Return a sum with one more term."""
        return f"s.{'subtract' if negative else 'add'}({total}, {term})"

    def affine(self, value: Affine) -> str:
        """Return a size; what is added comes before what is taken away, so that nothing is taken from a 0."""
        terms = terms_of(value)
        if not terms or not terms[0].negative:
            return super().affine(value)
        ordered = sorted(terms, key=lambda t: t.negative)
        if ordered[0].negative:
            return super().affine(value)
        total = self.product(ordered[0], ordered[0].is_product)
        for term in ordered[1:]:
            total = self.joined(total, self.product(term, term.is_product), term.negative)
        return total


class _BuilderCalls:
    def __init__(self, op: Op, language: Language) -> None:
        self.op, self.language = op, language
        self.sizes = SizeText(op, language)

    def calls(self) -> Iterator[str]:
        text = self.language.text
        for step in plan(self.op).steps:
            match step:
                case MatchOperand():
                    yield from self._operand(step)
                case BroadcastGroup():
                    sources = self._list(map(symbol_text, step.sources))
                    yield f"s.broadcast({text(symbol_text((step.name, None)))}, {sources})"
                case DeriveDim():
                    yield f"s.derive({text(step.dim)}, {self.sizes.affine(step.size)})"
                case SizeOutput():
                    yield "s.start()"
                    how = arrangement(self.op)
                    if how is not None and how.slots and how.is_mixed(step.operand):
                        rest = text(symbol_text((how.rest, None)))
                        sizes = self._plain([f"s.dim({text(d)})" for d in how.slot_dims(step.operand)])
                        yield f"s.append_apart({rest}, {self._list(how.attributes)}, {sizes})"
                        continue
                    if how is not None and how.permutes and step.operand.permuted:
                        yield f"s.append_permuted({text(symbol_text((how.picked, None)))}, {text(how.axes)})"
                        continue
                    if how is not None and how.is_mixed(step.operand):
                        groups = [symbol_text((name, None)) for name in (how.rest, how.picked)]
                        yield f"s.append_mixed({', '.join(map(text, (*groups, how.axes)))})"
                        continue
                    if how is not None and how.is_thinned(step.operand):
                        rest = text(symbol_text((how.rest, None)))
                        yield f"s.append_around({rest}, {text(how.axes)}, attributes.{how.keeps})"
                        continue
                    for dim in step.operand.dims:
                        if isinstance(dim, Group):
                            yield f"s.append_group({text(symbol_text((dim.name, dim.of)))})"
                        else:
                            yield f"s.append({self.sizes.affine(dim)})"
                case _:
                    pass

    def _operand(self, step: MatchOperand) -> Iterator[str]:
        text = self.language.text
        more = self.language.false if step.exact else self.language.true
        yield f"s.operand({self.op.inputs.index(step.operand)}, {step.fixed}, {more})"
        for place in step.places:
            name = place.attribute.name
            adds = f", {self.language.true}" if place.adds else ""
            yield f"s.place({text(name)}, attributes.{name}, {place.first}, {place.last}{adds})"
        how = arrangement(self.op)
        slots = how.slots if how is not None and how.is_mixed(step.operand) else ()
        for name, _ in slots:
            yield f"s.place({text(name)}, attributes.{name}, 0, 0)"
        for axis in step.axes:
            match axis:
                case MatchGroup(length=Among()) if slots:
                    yield f"s.next_apart({text(symbol_text(axis.group))}, {self._list([name for name, _ in slots])})"
                case MatchDim(slot=int() as slot):
                    yield f"s.next_at({text(axis.dim)}, {text(slots[slot][0])})"
                case MatchGroup(length=Among() as among) if how is not None and how.permutes:
                    group, name = text(symbol_text(axis.group)), text(among.attribute)
                    yield f"s.permute({name}, {self.language.listed.format(among.attribute)})"
                    yield f"s.next_permuted({group}, {name})"
                case MatchGroup(length=Among() as among):
                    group, name = text(symbol_text(axis.group)), text(among.attribute)
                    if axis is step.axes[0]:
                        yield f"s.list({name}, {self.language.listed.format(among.attribute)})"
                    yield f"s.next_among({group}, {name}, {self.language.true if among.listed else self.language.false})"
                case MatchGroup(length=Around() as around):
                    group = text(symbol_text(axis.group))
                    yield f"s.next_around({group}, {text(around.attribute)}, attributes.{around.keeps})"
                case MatchDim():
                    yield f"s.next_dim({text(axis.dim)})"
                case MatchGroup():
                    name = symbol_text(axis.group)
                    yield f"s.next_group({text(name)}, {self._length(axis.length, name)})"
                case _:
                    yield "s.skip()"

    def _length(self, length: GroupLength, name: str) -> str:
        text = self.language.text
        match length:
            case Rest():
                behind = f", {self._list(map(symbol_text, length.groups))}" if length.groups else ""
                return f"s.rest({length.after}{behind})"
            case UpTo():
                return f"s.up_to({text(length.attribute)}, {length.before}, {length.after})"
            case Same():
                return f"s.same({text(name)}, {length.after})"
            case Among() | Around():
                raise TypeError("a list says how many axes these are")

    def _list(self, names: Iterable[str]) -> str:
        return self._plain([self.language.text(name) for name in names])

    def _plain(self, elements: Sequence[str]) -> str:
        comma = "," if len(elements) == 1 and self.language.brackets == "()" else ""
        return f"{self.language.brackets[0]}{', '.join(elements)}{comma}{self.language.brackets[1]}"
