"""ONNX functions: an op's body in standard ONNX operators, as Python source that writes the nodes.

A FunctionProto has no types, no optional values and no branches. So the generated source is a Python function over a `Body` (the
builder of the generated package, `onnx/builder.py`): `body.Add(a, b)` adds a node and returns the name of its output. What is
known when a model is made, which optional operands are given and the value of a string or bool attribute, is decided by Python's
own `if`; number attributes become references, so that one function serves all their values. Listed axes are known then too:
operands over both groups are transposed to their declarations and back, for standard operators transpose by constants. A
half-precision function brings its inputs to float32 and rounds its outputs once, as the kernel does.

Not every op can be said like that; then `function_body` returns the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from opc.analysis.patterns import own_entries
from opc.emit.arrays.boxes import neutral_of
from opc.emit.arrays.frames import ATOM, Frame, FrameScope, NotExpressible, Position, PythonText, missing_entries
from opc.emit.arrays.listed import rank_text
from opc.emit.dtypes import type_variable
from opc.emit.onnx.formulas import is_single, nested, texts_of
from opc.emit.onnx.sizes import BUILDER
from opc.emit.onnx.steps import OnnxSteps
from opc.emit.python.layout import laid_out
from opc.emit.python.text import WIDTH, docstring, quoted
from opc.ir.affine import Affine
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar, ValueType, Weak, candidates, is_bool, is_floating, is_integer
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, GroupIndex, GroupRef, Present, Reduce, Select, StrConst, TypeIs
from opc.ir.functions import FUNCTIONS
from opc.ir.narrow import declared
from opc.ir.node import remembered
from opc.ir.op import Assign, AttributeKind, Group, Op, Operand
from opc.records import dataclass, replace

_STATIC = (AttributeKind.STR, AttributeKind.BOOL)


@dataclass(frozen=True, slots=True)
class NoBody:
    """Why an op has no body in standard ONNX operators."""

    reason: str


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """An op's body: the Python source of the function that writes its nodes, what that function is called, and the functions,
    classes and methods of the table's texts that it names."""

    name: str
    source: str
    uses: frozenset[str] = frozenset()


def body_name(op: Op) -> str:
    """Return the name of the generated function that writes the nodes of an op: `write_leaky_relu`."""
    return f"write_{op.name}"


@remembered("_onnx")
def function_body(op: Op) -> FunctionBody | NoBody:
    """Return the source of the function that writes an op's nodes, or why there is none."""
    try:
        sizes = None if op.sizes is None else function_body(op.sizes)
        if isinstance(sizes, NoBody):
            return sizes
        emitter = _OnnxEmitter(op)
        source = emitter.function()
        return FunctionBody(body_name(op), source, frozenset(emitter.uses))
    except NotExpressible as reason:
        return NoBody(str(reason))


class _OnnxEmitter(OnnxSteps):
    """Writes one op as calls of the builder."""

    REPEAT = f"{BUILDER}.Expand"

    def __init__(self, op: Op) -> None:
        super().__init__(op, (BUILDER, "wanted", "ranks", "TensorProto", "first"))
        self._likes: dict[ValueType, str] = {}

    # ---- the function --------------------------------------------------------------------------------------------------

    def function(self) -> str:
        """Return the whole function."""
        for segment in self.segmented.segments:
            if segment.steps is not None:
                self.step(segment, segment.steps)
                continue
            for s in segment.op.body:
                self.assign(s.target)
        placing = () if self.arrangement is None else self.arrangement.attributes
        known = [a for a in self.op.attributes if (a.kind in _STATIC and a.length is None) or a.name in placing]
        static = [*(self.attribute_local[a.name] for a in known), *(["ranks"] if self.arrangement is not None else [])]
        parameters = [BUILDER, *(self.local[o.name] for o in self.op.inputs), *(["*"] if static else []), *static]
        if any(o.optional for o in self.op.outputs):
            parameters += [*([] if static else ["*"]), "wanted"]
        one = f"def {body_name(self.op)}({', '.join(parameters)}):"
        definition = [one] if len(one) <= WIDTH else [f"def {body_name(self.op)}(", *(f"    {p}," for p in parameters), "):"]
        returned = self.returned([self.result(o) for o in self.op.outputs])
        lines = [*self.reading(), *self.arranging(), *self.prologue.values(), *self.lines, returned]
        title = docstring(f"Write the nodes of {self.op.class_name}; return the names of its outputs.", 4)
        return "\n".join([*definition, title, *(laid_out(f"    {line}") for line in lines)]) + "\n"

    def reading(self) -> list[str]:
        """Return the lines that bring inputs to the type they are computed in."""
        lines = []
        for o in self.op.inputs:
            local = self.local[o.name]
            if isinstance(o.type, TypeVar) and any(d.compute is not d for d in o.type.dtypes):
                lines.append(f"{local} = {BUILDER}.compute({local}, {quoted(o.type.name)})")
            elif isinstance(o.type, DType) and o.type.compute is not o.type:
                lines.append(f"{local} = {BUILDER}.cast({local}, {self.onnx_type(o.type.compute)})")
        return lines

    def arranging(self) -> list[str]:
        """Return the lines that give mixed and thinned inputs the axes of their declarations."""
        how = self.arrangement
        if how is None or not how.is_seen(self.op):
            return []
        axes, keeps = (self.attribute_local.get(name or "", "") for name in (how.axes, how.keeps))
        rank = rank_text(self.op, how, self.local, keeps, axes, lambda o: f"ranks[{quoted(o.name)}]")
        lines = [f"{BUILDER}.list_axes({axes}, {rank})"]
        if how.permutes:
            lines = [f"{BUILDER}.permute_axes({axes}, {rank})"]
        if how.slots:
            lines = [f"{BUILDER}.place_axes(({', '.join(self.attribute_local[name] for name in how.attributes)}), {rank})"]
        for o in self.op.inputs:
            x = self.local[o.name]
            if how.is_mixed(o):
                lines.append(f"{x} = {BUILDER}.arranged({x}, {how.picked_first(o)})")
            elif how.is_thinned(o):
                lines.append(f"{x} = {BUILDER}.thinned({x}, {keeps})")
        return lines

    def seen(self, value: str, o: Operand) -> str:
        """Return an output as callers see it."""
        how = self.arrangement
        if how is not None and how.is_mixed(o):
            return f"{BUILDER}.restored({value}, {how.picked_first(o)})"
        if how is not None and how.keeps is not None and how.is_thinned(o):
            return f"{BUILDER}.spread({value}, {self.attribute_local[how.keeps]})"
        return value

    def assign(self, target: str) -> None:
        """Write one statement, under a condition where only optional outputs need it."""
        s = self.op.assignments[target]
        operand = self.operands[target]
        name = self.local[target]
        output = next((o for o in self.op.outputs if o.name == target), None)
        condition = self.asked_for(target)
        if condition == "" and (output is None or self.is_read(target)):
            self.line(f"{name} = {self.statement(s).text}")
            return
        whole = output is None or self.is_read(target)
        lines, value = self.capture(lambda: self.statement(s) if whole else self.stored(self.statement(s), operand.type))
        self.put([*lines, f"{name} = {value.text}"], condition, None if output is None else name)

    def result(self, o: Operand) -> str:
        """Return the text of one output as it is returned."""
        name = self.local[o.name]
        if not self.is_read(o.name):
            return self.seen(name, o)
        stored = self.seen(self.stored(PythonText(name), o.type).text, o)
        return f"{stored} if {quoted(o.name)} in wanted else None" if o.optional else stored

    def stored(self, value: PythonText, t: ElementType) -> PythonText:
        """Return an output in the type it is stored as: a type variable's name, or an ONNX type."""
        variable = type_variable(t)
        if variable is None:
            kind = self.onnx_type(candidates(t)[0])
        else:
            kind = quoted(variable.name) if t is variable else quoted(f"acc({variable.name})")
        return self.composed([value], lambda parts: PythonText(f"{BUILDER}.store({parts[0].text}, {kind})"))

    # ---- types ---------------------------------------------------------------------------------------------------------

    def like(self, t: ValueType) -> str:
        """Return the text of something that has the type values of `t` are computed in: a tensor's name, or an ONNX type."""
        found = self._likes.get(t)
        if found is None:
            found = self._likes[t] = self._like(t)
        return found

    def _like(self, t: ValueType) -> str:
        if isinstance(t, Weak):
            return self.onnx_type(DType.INT64 if t is Weak.INT else DType.FLOAT64)
        t = declared(self.op, t)
        variable = type_variable(t)
        if variable is None:
            return self.onnx_type(candidates(t)[0].compute)
        if isinstance(t, Acc) and not is_floating(variable):
            return f"{BUILDER}.accumulator({self.like(variable)}, {quoted(variable.name)})"
        same = [o for o in self.op.inputs if type_variable(o.type) == variable and (o.type == variable or is_floating(variable))]
        given = [o for o in same if not o.optional]
        if given:
            return self.local[given[0].name]
        if not same:
            raise NotExpressible(f"no input has the type {variable}")
        return f"{BUILDER}.like({quoted(variable.name)}, {', '.join(self.local[o.name] for o in same)})"

    def fit(self, e: Expr, t: ValueType, scope: FrameScope) -> PythonText:
        """Return a value in the type `t`, where its own is weak: a literal, size or attribute takes the type of what it meets."""
        if not isinstance(e.type, Weak) or e.type is t or t is Weak.INT:
            return self.expr(e, scope)
        like = self.like(t)
        if isinstance(e, Const):
            return PythonText(f"{BUILDER}.number({self.literal(e.value)}, {like})")
        if isinstance(e, AttrRef):
            return self.typed_attribute(e, like)
        value = self.expr(e, scope)
        return replace(value, text=f"{BUILDER}.cast({value.text}, {like})")

    def argument(self, argument: Expr, e: Call, scope: FrameScope) -> PythonText:
        return self.fit(argument, self.meeting(e), scope)

    def meeting(self, e: Call) -> ValueType:
        """Return the type that the arguments of a function are brought to."""
        strong = next((a.type for a in e.args if not isinstance(a.type, Weak)), None)
        if strong is not None:
            return strong
        floating = FUNCTIONS[e.fn].types == "float" or any(a.type is Weak.FLOAT for a in e.args)
        return DType.FLOAT64 if floating else Weak.INT

    def side(self, side: Expr, e: Select, scope: FrameScope) -> PythonText:
        return self.fit(side, e.type, scope)

    def reduced(self, e: Reduce, scope: FrameScope) -> PythonText:
        return self.fit(e.body, e.type, scope)

    def assigned(self, s: Assign, target: Operand, scope: FrameScope) -> PythonText:
        return self.fit(s.value, target.type, scope)

    # ---- leaves --------------------------------------------------------------------------------------------------------

    def literal(self, value: float | bool) -> str:
        """Return the text of a number."""
        if isinstance(value, float) and (value != value or abs(value) == float("inf")):
            return f'float("{value}")'
        return repr(value)

    def constant(self, e: Const) -> PythonText:
        kind = e.type
        if not isinstance(kind, Weak) and not is_floating(kind) and abs(e.value) == float("inf"):
            variable, like = type_variable(kind), self.like(kind)
            if variable is not None:
                return PythonText(f"{BUILDER}.extreme({quoted(variable.name)}, {1 if e.value > 0 else -1}, {like})")
            (dtype,) = candidates(kind)
            return PythonText(f"{BUILDER}.number({dtype.most if e.value > 0 else dtype.least}, {like})")
        return PythonText(f"{BUILDER}.number({self.literal(e.value)}, {self.like(e.type)})")

    def attribute(self, e: AttrRef) -> PythonText:
        return self.typed_attribute(e, self.like(e.type))

    def typed_attribute(self, e: AttrRef, like: str) -> PythonText:
        """Return an attribute's value in some type."""
        if self.op.attribute(e.name).kind is AttributeKind.BOOL and e.element < 0:
            return PythonText(f"{BUILDER}.number(int({self.attribute_local[e.name]}), {self.onnx_type(DType.BOOL)})")
        # An element of a list of bools is one of a list of integers to ONNX.
        if self.op.attribute(e.name).kind is AttributeKind.STR:
            raise NotExpressible(f"the attribute {e.name} is used as a value")
        element = "" if e.element < 0 else f", element={e.element}"
        return PythonText(f"{BUILDER}.attribute({quoted(e.name)}, {like}{element})")

    def index(self, name: str, scope: FrameScope) -> PythonText:
        """Return the values of an index variable, along its axis of the frame."""
        # ONNX Runtime makes slices of such ranges, in which less than nothing counts from the end.
        text = f"{BUILDER}.arange({self.size(scope.extents[name])})"
        missing = missing_entries(scope.frame, (name,))
        return PythonText(self.expand(text, missing) if missing else text, ATOM, frozenset((name,)))

    def place_of(self, e: GroupIndex, scope: FrameScope) -> PythonText:
        entry = GroupRef(e.group)
        text = self.unflatten(f"{BUILDER}.arange({self.flat_size(entry, scope)})", (entry,), scope)
        missing = missing_entries(scope.frame, (entry,))
        return PythonText(self.expand(text, missing) if missing else text, ATOM, frozenset(self.full(entry)))

    # ---- operations ----------------------------------------------------------------------------------------------------

    def call(self, e: Call, arguments: Sequence[PythonText]) -> PythonText:
        t = self.meeting(e)
        if e.fn == "pow" and is_integer(e.type):
            return self.integer_power(arguments[0], e)
        args = [a.text for a in arguments]
        row = FUNCTIONS[e.fn]
        unsigned = not isinstance(t, Weak) and any(d.is_integer and d.least == 0 for d in candidates(t))
        nonzero = is_integer(t) and len(e.args) == 2 and never_zero(e.args[1])
        kinds = (("bool", is_bool(t)), ("unsigned", unsigned), ("nonzero", nonzero), ("integer", is_integer(t)))
        names = [*(f"{e.fn}_{kind}" for kind, holds in kinds if holds), e.fn]
        texts = texts_of(e.fn)
        name = next((n for n in names if n in texts), None)
        if name is None:
            of = " of floating numbers" if row.onnx_of else ""
            raise NotExpressible(f"no standard operator computes {e.fn}{of}")
        text = texts[name]
        if not is_single(text):
            return PythonText(f"{BUILDER}.{self.using(name)}({', '.join(args)})")
        return PythonText(
            nested(text, dict(zip("xy", args)), BUILDER, lambda literal: f"{BUILDER}.number({literal}, {self.like(t)})")
        )

    def integer_power(self, base: PythonText, e: Call) -> PythonText:
        """Return a whole number to a fixed power, by repeated squaring: runtimes compute that of integers as floating numbers."""
        exponent = e.args[1]
        if not isinstance(exponent, Const):
            raise NotExpressible("no standard operator computes a power of integers whose exponent is no literal")
        rest, factor, found = int(exponent.value), self.named(base).text, ""
        while rest:
            if rest & 1:
                found = f"{BUILDER}.Mul({found}, {factor})" if found else factor
            rest >>= 1
            factor = self.named(PythonText(f"{BUILDER}.Mul({factor}, {factor})")).text if rest else factor
        # Of the base's shape too.
        one = f"{BUILDER}.Add({BUILDER}.Sub({factor}, {factor}), {BUILDER}.number(1, {self.like(e.type)}))"
        return PythonText(found or one)

    def where(self, condition: PythonText, then: PythonText, other: PythonText, e: Select) -> PythonText:
        if is_bool(e.type):
            return PythonText(f"{BUILDER}.where_bool({condition.text}, {then.text}, {other.text})")
        return PythonText(f"{BUILDER}.Where({condition.text}, {then.text}, {other.text})")

    def cast(self, e: Cast, argument: PythonText) -> PythonText:
        if is_integer(e.type) and is_floating(e.arg.type):
            variable = None if isinstance(e.type, Weak) else type_variable(e.type)
            kind = DType.INT64 if isinstance(e.type, Weak) else candidates(e.type)[0]
            dtype = (
                f"{BUILDER}.element_type({quoted(variable.name)})" if e.type is variable and variable else self.onnx_type(kind)
            )
            return PythonText(f"{BUILDER}.truncate({argument.text}, {dtype})")
        floats = is_floating(e.arg.type) or _may_be(e.arg.type, "is_floating")
        if isinstance(e.type, DType | TypeVar) and _may_be(e.type, "is_integer") and floats:
            to = quoted(e.type.name) if isinstance(e.type, TypeVar) else self.onnx_type(e.type)
            return PythonText(
                f"{BUILDER}.convert({argument.text}, {self.computes_floating(e.arg.type)}, {to}, {self.like(e.type)})"
            )
        return PythonText(f"{BUILDER}.cast({argument.text}, {self.like(e.type)})")

    def transpose(self, text: str, order: tuple[int, ...]) -> str:
        return f"{BUILDER}.Transpose({text}, perm={list(order)})"

    def expand(self, text: str, positions: Sequence[tuple[Position, str | None]]) -> str:
        return f"{BUILDER}.Unsqueeze({text}, {self.axes(positions)})"

    def reduce(
        self, e: Reduce, body: PythonText, axes: Sequence[tuple[Position, str | None]], scope: FrameScope, lazy: bool
    ) -> str:
        nan = "" if is_floating(e.body.type) else f", nan={self.computes_floating(e.body.type)}"
        if e.kind in ("argmax", "argmin"):
            (p, group), *more = axes
            if not more and not lazy and group is None and (p.end or not p.groups):
                return f"{BUILDER}.{e.kind}({body.text}, {self.place(p)}{nan})"
            rest, flat = self.as_rows(e, body, scope, lazy)
            return self.unflatten(f"{BUILDER}.{e.kind}({flat}, {len(rest)}{nan})", rest, scope)
        value = body.text
        if e.kind in ("sum", "prod") and not is_floating(e.body.type):
            value = self.accumulated(value, e.body.type)
        kind = e.body.type
        narrow = e.kind in ("max", "min") and _has_16_bits(kind)
        if narrow:
            variable = None if isinstance(kind, Weak) else type_variable(kind)
            value = (
                f"{BUILDER}.cast({body.text}, {self.onnx_type(DType.INT64)})"  # The standard has no maximum of 16-bit integers.
            )
            if variable is not None and len(variable.dtypes) > 1:
                value = f"{BUILDER}.ordered({body.text}, {quoted(variable.name)})"
        if lazy:
            rest, flat = self.as_rows(e, PythonText(value), scope, lazy)
            found = f"{BUILDER}.reduce_{e.kind}({flat}, {BUILDER}.vector({len(rest)}){nan})"
            return self.unflatten(f"{BUILDER}.cast({found}, {body.text})" if narrow else found, rest, scope)
        arguments = [value]
        if len(axes) < len(scope.frame):
            ends = [p for p, group in axes if p.end and group is None]
            grouped = any(isinstance(i, GroupRef) for i in scope.frame)
            if ends and grouped:
                arguments = [self.named(PythonText(value)).text]
            arguments.append(self.axes([(self.from_front(p, scope), g) for p, g in axes], arguments[0] if grouped else None))
        if e.kind in ("max", "min"):
            found = f"{BUILDER}.reduce_{e.kind}({', '.join(arguments)}{nan})"
            return f"{BUILDER}.cast({found}, {body.text})" if narrow else found
        if e.kind in ("any", "all"):
            return f"{BUILDER}.reduce_{e.kind}({', '.join(arguments)})"
        # A group may have no axes, and over no axes means over all to a runtime.
        noop = ", noop_with_empty_axes=1" if len(arguments) > 1 and all(group for _, group in axes) else ""
        return f"{BUILDER}.Reduce{e.kind.capitalize()}({', '.join(arguments)}, keepdims=0{noop})"

    def as_rows(self, e: Reduce, body: PythonText, scope: FrameScope, lazy: bool) -> tuple[Frame, str]:
        """Return what a reduction keeps of its frame, and its elements as rows along one axis behind that.

        If `lazy`, each row has one element more, which changes no result, so that none is empty.
        """
        own = own_entries(e)
        rest = tuple(i for i in scope.frame if i not in own)
        flat = self.permuted(self.flatten(self.named(body).text, scope.frame, scope), scope.frame, (*rest, *own))
        if len(own) > 1:
            sizes = [self.flat_size(i, scope) for i in own]
            flat = self.reshaped(flat, [*(self.flat_size(i, scope) for i in rest), self.product(sizes)])
        if lazy:
            flat = self.named(PythonText(flat)).text
            neutral = self.constant(neutral_of(e.kind, e.body.type)).text
            axis, neutral = len(rest), f"{BUILDER}.cast({neutral}, {flat})"
            flat = self.named(PythonText(f"{BUILDER}.pad_end({flat}, {axis + 1}, [{axis}], {neutral})")).text
        return rest, flat

    def is_lazy(self, e: Reduce, scope: FrameScope) -> bool:
        lazy = super().is_lazy(e, scope)
        # All points are computed, but those of another branch of Python's.
        known = replace(scope, guards=tuple(g for g in scope.guards if self.is_static(g)))
        empty = bool(self.maybe_empty(e, known, scope.extents))
        if e.kind not in ("argmax", "argmin"):
            return (self.is_guarded(scope) or bool(scope.guards)) and empty
        # Where the result has no elements, runtimes accept an empty maximum, but no empty argmax.
        if not empty and self.maybe_empty(e, known, {}):
            return True
        return (lazy or bool(scope.guards)) and empty

    def from_front(self, p: Position, scope: FrameScope) -> Position:
        """Return a position counted from the front where the frame has a known number of axes."""
        if not p.end or any(isinstance(i, GroupRef) for i in scope.frame):
            return p
        return Position(len(scope.frame) - p.fixed)

    def check_not_empty(self, e: Reduce, extent: Affine, scope: FrameScope) -> None:
        raise NotExpressible(f"a function can't refuse the {e.kind} of nothing")

    def sum_to(self, body: PythonText, own: Group, scope: FrameScope) -> str:
        sizes = [own if isinstance(d, Group) and d.name == own.name else d for d in scope.dims(scope.frame)]
        return f"{BUILDER}.sum_to({body.text}, {self.shape(sizes)})"

    # ---- conditions Python decides -------------------------------------------------------------------------------------

    def is_static(self, condition: Expr) -> bool:
        match condition:
            case Present() | StrConst() | TypeIs():
                return True
            case Const():
                return isinstance(condition.value, bool)
            case AttrRef():
                return self.op.attribute(condition.name).kind in _STATIC and condition.element < 0
            case Call(fn="and" | "or" | "not" | "eq" | "ne"):
                return all(self.is_static(a) for a in condition.args)
            case _:
                return False

    def lacking(self, reason: NotExpressible) -> PythonText:
        return PythonText(f"{BUILDER}.lacks({quoted(str(reason))})")

    def type_is(self, e: TypeIs) -> str:
        return f"{BUILDER}.is_among({quoted(e.variable)}, {', '.join(quoted(str(d)) for d in e.dtypes)})"

    def truth(self, e: Expr) -> PythonText:
        return PythonText(f"{BUILDER}.number(int({self.static(e)}), {self.onnx_type(DType.BOOL)})")


def _has_16_bits(t: ValueType) -> bool:
    return not isinstance(t, Weak) and any(d.is_integer and d.bits == 16 for d in candidates(t))


def _may_be(t: ValueType, what: str) -> bool:
    """Whether one of the dtypes of a type that is not weak is so: "is_floating", "is_integer"."""
    return not isinstance(t, Weak) and any(getattr(d, what) for d in candidates(t))


def never_zero(e: Expr) -> bool:
    """Whether `e` is a literal other than 0, or a choice between such."""
    match e:
        case Const():
            return e.value != 0
        case Select():
            return never_zero(e.then) and never_zero(e.other)
        case _:
            return False
