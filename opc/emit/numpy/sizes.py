"""Sizes, places and element types in generated NumPy code: what a function computes at its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opc.emit.arrays.frames import ATOM, PRODUCT, SUM, UNARY, FrameScope, Position, PythonText
from opc.emit.arrays.lines import LIMIT
from opc.emit.arrays.statements import StatementEmitter
from opc.emit.dtypes import type_variable
from opc.emit.python.text import WIDTH, quoted
from opc.emit.scalar.affine import AffineDialect, AffineTerm, terms_of
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import (
    Acc,
    DType,
    ElementType,
    TypeVar,
    ValueType,
    Weak,
    accumulated,
    candidates,
)
from opc.ir.expr import GroupRef
from opc.ir.narrow import declared
from opc.ir.op import AttributeKind, Group, Op, Operand
from opc.ir.placing import placing


class NumpySizes(StatementEmitter):
    """The part of the NumPy emitter that names dtypes, sizes and axes. Each is computed once, before the body."""

    def __init__(self, op: Op, reserved: Sequence[str]) -> None:
        super().__init__(op, reserved)
        self.prologue: dict[object, str] = {}
        self.prologue_names: dict[object, str] = {}

    def once(self, key: object, wanted: str, value: str) -> str:
        """Return the local name of a value computed at the start of the function."""
        if key not in self.prologue_names:
            name = self.names.fresh(wanted)
            self.prologue_names[key] = name
            self.prologue[key] = f"{name} = {value}"
        return self.prologue_names[key]

    def dtype(self, t: ElementType) -> str:
        """Return the text of the NumPy dtype of an element type."""
        t = declared(self.op, t)
        match t:
            case DType():
                package = "np" if t.row.numpy == "numpy" else self.using(t.row.numpy)
                return f"{package}.{t.value}" if t is not DType.BOOL else "np.bool_"
            case Acc(of=of):
                kind = accumulated(of)
                return self.dtype(kind) if isinstance(kind, DType) else f"{self.using('accumulator')}({self.held(of)})"
            case TypeVar():
                if len(t.dtypes) == 1:
                    return self.dtype(t.dtypes[0])
                bound = next((a for a in self.op.attributes if a.binds == t.name), None)
                if bound is not None:
                    return f"np.dtype({self.attribute_local[bound.name]})"
                sources = sorted((o for o in self.op.inputs if o.type == t), key=lambda o: o.optional)
                alone = len([v for v in self.op.types if len(v.dtypes) > 1]) == 1
                # An input that is absent with all others of its type is of no use to what is wanted.
                given = f"{self.first(sources)}.dtype" if not sources[0].optional else self.of_given("dtype_of", sources)
                return self.once(t, "dtype" if alone else f"dtype_{t.name}", given)

    def held(self, t: ElementType) -> str:
        """Return the text of the NumPy dtype that values of an element type are held in where it may be an integer."""
        if isinstance(t, DType):
            return self.dtype(t.compute if t.is_small else t)
        small = not isinstance(t, Acc) and any(d.is_small for d in t.dtypes)
        return f"{self.using('computed')}({self.dtype(t)})" if small else self.dtype(t)

    def compute(self, t: ValueType) -> str:
        """Return the text of the NumPy dtype that values of a floating type are computed in."""
        variable = type_variable(t) if not isinstance(t, Weak) else None
        if isinstance(t, Weak):
            return "np.int64" if t is Weak.INT else "np.float64"
        dtypes = {d.compute for d in candidates(t)}
        if variable is None or len(dtypes) == 1:
            return self.dtype(dtypes.pop())
        bound = self.dtype(variable)
        if all(d.compute is d for d in variable.dtypes):
            return bound
        wanted = "compute" + bound.removeprefix("dtype") if bound.startswith("dtype") else "compute"
        return self.once(("compute", variable), wanted, f"np.result_type({bound}, np.float32)")

    def of_given(self, function: str, sources: Sequence[Operand]) -> str:
        """Return a helper's call on some optional inputs, all of which may be absent."""
        return f"{self.using(function)}({', '.join(self.local[o.name] for o in sources)})"

    def first(self, sources: Sequence[Operand]) -> str:
        """Return the text of the first given of some inputs."""
        if not sources[0].optional or len(sources) == 1:
            return self.local[sources[0].name]
        return self.of_given("first", sources)

    def axis_attribute(self) -> tuple[str, Position] | None:
        """Return the name of the normalised axis attribute and the position it denotes."""
        for a in self.op.attributes:
            if a.kind is not AttributeKind.AXIS or a.among is not None:
                continue
            places = sorted(placing(self.op, a), key=lambda p: p.operand.optional)
            for place in places:
                groups = tuple(d.name for d in place.before if isinstance(d, Group))
                local = self.attribute_local[a.name]
                if a not in self.prologue_names:
                    self.prologue_names[a] = local
                    own = [self.local[p.operand.name] for p in places]
                    counted = [f"{local} % {f'({o}.ndim + 1)' if p.adds else f'{o}.ndim'}" for o, p in zip(own, places)]
                    given = [f"{text} if {o} is not None else " for text, o in zip(counted, own)]
                    self.prologue[a] = f"{local} = {''.join(given) + local if place.operand.optional else counted[0]}"
                return local, Position(len(place.before) - len(groups), groups)
        return None

    def position(self, p: Position) -> str:
        """Return the text of an axis number."""
        if p.end:
            return str(-p.fixed)
        if not p.groups:
            return str(p.fixed)
        axis = self.axis_attribute()
        if axis and axis[1].groups == p.groups:
            return axis[0] + _plus(p.fixed - axis[1].fixed)
        ranks = " + ".join(f"len({self.group(g)})" for g in p.groups)
        return ranks + _plus(p.fixed)

    def place(self, o: Operand, k: int, after: bool = False) -> str | None:
        """Return the bound of a slice at entry `k` of an operand's shape; empty at its start and (with `after`) at its end."""
        dims = o.dims
        if (
            self.arrangement is not None
            and not self.arrangement.slots
            and not self.arrangement.permutes
            and self.is_mixed(o)
            and k == 1
        ):
            listed = f"len({self.attribute_local[self.arrangement.axes]})"
            return listed if self.arrangement.picked_first(o) else f"{self.local[o.name]}.ndim - {listed}"
        if not any(isinstance(d, Group) for d in dims[:k]):
            return str(k) if k else ""
        if not any(isinstance(d, Group) for d in dims[k:]):
            return "" if k == len(dims) and after else str(k - len(dims))
        axis = self.axis_attribute()
        groups = tuple(d.name for d in dims[:k] if isinstance(d, Group))
        behind = tuple(d.name for d in dims[k:] if isinstance(d, Group))
        if axis and axis[1].groups == groups:
            return axis[0] + _plus(k - len(groups) - axis[1].fixed)
        if self.is_told(groups):
            return " + ".join(f"len({self.group(g)})" for g in groups) + _plus(k - len(groups))
        if self.is_told(behind):
            ranks = "".join(f" - len({self.group(g)})" for g in behind)
            return f"{self.local[o.name]}.ndim{ranks}{_plus(len(behind) - len(dims) + k)}"
        return None

    def group(self, name: str) -> str:
        """Return the local name of a group's sizes, a tuple."""
        if ("group", name) in self.prologue_names:
            return self.prologue_names["group", name]
        wanted = "lead" if name == "..." else name
        if self.is_broadcast(Group(name)):
            # Any of them may be the only one that is as large, and absent.
            shapes = [self.own_group(group, "()") for group in self.sharing(name)]
            return self.once(("group", name), wanted, spread("np.broadcast_shapes", shapes, 4 + len(wanted) + 4))
        return self.once(("group", name), wanted, self.own_group(Group(name)))

    def group_in(self, entry: GroupRef, scope: FrameScope) -> str:
        """Return the text of the sizes that a group has in a frame, which may be one operand's own."""
        group = scope.group(entry)
        return self.group(group.name) if group.of is None else self.own_group(group)

    def own_group(self, group: Group, absent: str | None = None) -> str:
        """Return the text of a group's sizes, from the first given operand that has it; `absent` where none is."""
        sources = [o for o in self.op.inputs if group in o.dims]
        sources.sort(key=lambda o: (o.optional, not self.is_told([group.name]) or not self.tells(o, group.name)))
        if not sources[0].optional:
            return self.slice_of(sources[0], group)
        locals_ = [self.local[o.name] for o in sources]
        slices = [self.slice_of(o, group).removeprefix(f"{local}.shape") for o, local in zip(sources, locals_, strict=True)]
        if len(set(slices)) == 1 and (absent is None or len(sources) == 1):
            return self.of_given("shape_of", sources) + slices[0]
        texts = [f"{local}.shape{part} if {local} is not None else " for local, part in zip(locals_, slices, strict=True)]
        return "".join(texts) + (absent or "()")

    def slice_of(self, o: Operand, group: Group) -> str:
        """Return the text of the part of an operand's shape that a group is."""
        k = o.dims.index(group)
        start, stop = self.place(o, k), self.place(o, k + 1, after=True)
        return f"{self.local[o.name]}.shape" + ("" if not start and not stop else _slice(start or "", stop or ""))

    def dim(self, name: str) -> str:
        """Return the local name of a dimension's size."""
        if ("dim", name) in self.prologue_names:
            return self.prologue_names["dim", name]
        derived = dict(self.op.dims)
        if name in derived:
            return self.once(("dim", name), name, self.affine(derived[name]).text)
        sources = [o for o in sorted(self.op.inputs, key=lambda o: o.optional) if Affine.of(Dim(name)) in o.dims]
        required = [o for o in sources if not o.optional and self.place(o, o.dims.index(Affine.of(Dim(name)))) is not None][:1]
        required = required or [o for o in sources if not o.optional][:1] or sources
        places = [self.place(o, o.dims.index(Affine.of(Dim(name)))) or "0" for o in required]
        if not required[0].optional:
            return self.once(("dim", name), name, f"{self.first(required)}.shape[{places[0]}]")
        locals_ = [self.local[o.name] for o in required]
        texts = [f"{local}.shape[{at}] if {local} is not None else " for local, at in zip(locals_, places, strict=True)]
        return self.once(("dim", name), name, "".join(texts) + "0")

    def shape(self, dims: Sequence[object]) -> str:
        """Return the text of a shape."""
        for o in self.op.inputs:
            if tuple(dims) == o.dims and not o.optional:
                return f"{self.local[o.name]}.shape"
        parts = []
        for d in dims:
            if isinstance(d, Group):
                if d.of is None:
                    parts.append(f"*{self.group(d.name)}")
                else:
                    own = self.own_group(d)
                    parts.append(f"*({own})" if " if " in own else f"*{own}")
            elif isinstance(d, Affine):
                text = self.affine(d).text
                parts.append(text if self.boxes.is_size(d) else f"max({text}, 0)")
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def affine(self, value: Affine, index: Mapping[str, PythonText] | None = None) -> PythonText:
        """Return an affine expression, with the given texts for its index variables."""
        text, terms = _NumpyForm(self, index or {}).affine(value), list(terms_of(value))
        support = frozenset[str]().union(*(t.support for t in (index or {}).values()))
        strength = SUM if len(terms) > 1 else UNARY if text.startswith("-") else PRODUCT if " " in text else ATOM
        return PythonText(text, strength, support)

    def atom(self, a: object, index: Mapping[str, PythonText], factor: bool) -> str:
        """Return one atom of an affine expression."""
        match a:
            case Index():
                return index[a.name].at(PRODUCT if factor else SUM)
            case Dim():
                return self.dim(a.name)
            case GroupSize():
                return f"{self.using('math')}.prod({self.group(a.name)})"
            case AttrInt():
                name = self.attribute_local[a.name]
                if self.op.attribute(a.name).kind is AttributeKind.AXIS:
                    self.axis_attribute()
                name = name if a.element < 0 else f"{name}[{a.element}]"
                return f"int({name} == {quoted(a.text)})" if a.text is not None else name
            case FloorDiv() | Mod():
                sign = "//" if isinstance(a, FloorDiv) else "%"
                numerator, denominator = self.affine(a.numerator, index), self.affine(a.denominator, index)
                if len(numerator.text) > LIMIT // 2:
                    name = self.named_once(numerator.text) if index else self.once(("of", a.numerator), "span", numerator.text)
                    numerator = PythonText(name)
                if len(denominator.text) > LIMIT // 2 and not a.denominator.indices():
                    denominator = PythonText(self.once(("of", a.denominator), "step", denominator.text))
                if not a.denominator.indices() and not self.boxes.is_divisor(a.denominator):
                    least = ("least", -1) if self.boxes.is_downward(a.denominator) else ("most", 1)
                    denominator = PythonText(f"{self.using(least[0])}({denominator.text}, {least[1]})")
                text = f"{numerator.at(PRODUCT)} {sign} {denominator.at(UNARY)}"
                return self.named_once(text) if factor and index and len(text) > LIMIT // 4 else f"({text})" if factor else text
            case Minimum():
                return f"{self.using('least')}({self.affine(a.left, index).text}, {self.affine(a.right, index).text})"
            case _:
                raise TypeError(f"{a} is no atom")


class _NumpyForm(AffineDialect):
    """Writes affine forms with texts for their index variables; what is long and holds one is computed once."""

    literal_first = False

    def __init__(self, sizes: NumpySizes, index: Mapping[str, PythonText]) -> None:
        self.sizes, self.index = sizes, index

    def literal(self, value: int, alone: bool) -> str:
        return str(value)

    def atom(self, atom: Atom, factor: bool) -> str:
        return self.sizes.atom(atom, self.index, factor)

    def product(self, term: AffineTerm, factor: bool) -> str:
        text = super().product(term, factor)
        return self.sizes.named_once(text) if self.index and len(text) > LIMIT // 2 else text


def spread(function: str, arguments: Sequence[str], used: int) -> str:
    """Return a call of so many characters' indent on one line, or else with one argument a line."""
    one = f"{function}({', '.join(arguments)})"
    if used + len(one) <= WIDTH:
        return one
    return "\n".join([f"{function}(", *(f"        {a}," for a in arguments), "    )"])


def _plus(n: int) -> str:
    return "" if n == 0 else f" + {n}" if n > 0 else f" - {-n}"


def _slice(start: str, stop: str) -> str:
    """Return a slice as `ruff format` spaces it: blanks around the colon where a bound is an expression."""
    complex_bound = " " in start or " " in stop
    if not complex_bound:
        return f"[{start}:{stop}]"
    return f"[{start}{' ' if start else ''}:{' ' if stop else ''}{stop}]"
