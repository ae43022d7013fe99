"""Shape analysis of one op: what a call binds, what its outputs look like, and why a call is refused.

`plan` says how (see `opc.analysis.shapes.plan`), `infer` does it for one call on concrete sizes, `infer_types` for element types.
The messages are the same here, in the generated `shape.py` and in the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opc.analysis.shapes.attributes import ShapeError, fill
from opc.analysis.shapes.environment import Shape, ShapeEnv
from opc.analysis.shapes.plan import UndeterminedError, plan, shown_symbols, undetermined
from opc.analysis.shapes.steps import (
    Among,
    Around,
    BroadcastGroup,
    CheckCondition,
    DeriveDim,
    GroupKey,
    GroupLength,
    MatchDim,
    MatchGroup,
    MatchOperand,
    MatchSize,
    NeedOne,
    PlaceAxis,
    Rest,
    Same,
    ShapePlan,
    SizeOutput,
    UpTo,
    group_text,
    symbol_text,
)
from opc.ir.affine import Affine
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar, resolve
from opc.ir.op import AttributeKind, AttributeValue, Group, Op

__all__ = [
    "GroupKey",
    "ShapeEnv",
    "ShapeError",
    "ShapePlan",
    "UndeterminedError",
    "check_attributes",
    "infer",
    "infer_types",
    "plan",
    "undetermined",
]


def infer(op: Op, shapes: Mapping[str, Sequence[int] | None], attributes: Mapping[str, Any] | None = None) -> ShapeEnv:
    """Return what a call of `op` on inputs of these shapes binds. An absent or None shape is an absent operand.

    Raises:
        ShapeError: when the op refuses the call; the message names the operands and sizes.
    """
    return _Run(plan(op), shapes, attributes or {}).run()


def check_attributes(op: Op, attributes: Mapping[str, Any]) -> None:
    """Check attributes as far as that takes no sizes.

    Raises:
        ShapeError: when the op refuses every call with them.
    """
    run = _Run(plan(op), {}, attributes)
    for step in run.plan.steps:
        if isinstance(step, MatchOperand):
            break
        if isinstance(step, CheckCondition):
            run.condition(step)


class _Run:
    """One run of a plan. `origin` tells which operand bound each symbol, for the messages."""

    def __init__(self, plan: ShapePlan, shapes: Mapping[str, Sequence[int] | None], attributes: Mapping[str, Any]) -> None:
        self.op, self.plan = plan.op, plan
        self.shapes = {name: tuple(shape) for name, shape in shapes.items() if shape is not None}
        names = {o.name for o in self.op.inputs}
        for name in self.shapes:
            if name not in names:
                raise self.error(f"there is no input '{name}'")
        self.env = ShapeEnv(self.op, fill(self.op, attributes), frozenset(self.shapes))
        self.origin: dict[str | GroupKey, str] = {}
        self.placed: set[str] = set()

    def error(self, message: str) -> ShapeError:
        """Return the error with the op's name in front."""
        return ShapeError(f"{self.op.name}: {message}")

    def run(self) -> ShapeEnv:
        """Carry out every step."""
        for step in self.plan.steps:
            match step:
                case CheckCondition():
                    self.condition(step)
                case MatchOperand():
                    self.operand(step)
                case NeedOne():
                    self.need(step)
                case BroadcastGroup():
                    self.broadcast(step)
                case DeriveDim():
                    self.env.dims[step.dim] = self.size(step.dim, step.size, step.text)
                case MatchSize():
                    self.match_size(step)
                case SizeOutput():
                    self.output(step)
        if self.op.outputs and not self.env.outputs:
            for step in self.plan.steps:
                for need in step.needs if isinstance(step, SizeOutput) else ():
                    self.need(need)
        return self.env

    def condition(self, step: CheckCondition) -> None:
        """Evaluate a condition."""
        if self.env.holds(step.condition):
            return
        if step.attribute is not None:
            value = self.env.attributes[step.attribute.name]
            raise self.error(f"{step.attribute.name} = {format_value(value)} violates its check: {step.text}")
        values = ", ".join(f"{s} = {self.env.symbol(s)}" for s in shown_symbols(step.condition))
        raise self.error(f"requires {step.text}{f', but {values}' if values else ''}")

    def operand(self, step: MatchOperand) -> None:
        """Check the rank of one input and match its axes."""
        name = step.operand.name
        shape = self.shapes.get(name)
        if shape is None:
            if not step.operand.optional:
                raise self.error(f"the input {name} must be given")
            return
        if len(shape) < step.fixed or (step.exact and len(shape) != step.fixed):
            least = "" if step.exact else "at least "
            raise self.error(f"{name} must have {least}{axes(step.fixed)}, but has shape {format_shape(shape)}")
        for place in step.places:
            self.place(place, name, len(shape))
        at = 0
        for axis in step.axes:
            if isinstance(axis, MatchGroup) and isinstance(axis.length, Among | Around):
                self.group(axis.group, name, self.arranged(axis.length, name, shape))
                continue
            if isinstance(axis, MatchGroup):
                length = self.length(axis.length, axis.group, at, len(shape))
                self.group(axis.group, name, shape[at : at + length] if length >= 0 else None)
                at += max(length, 0)
                continue
            if isinstance(axis, MatchDim) and axis.slot is not None:
                self.dim(axis.dim, name, shape[self.places(name, shape)[axis.slot]])
                continue
            if isinstance(axis, MatchDim):
                self.dim(axis.dim, name, shape[at])
            at += 1

    def place(self, step: PlaceAxis, operand: str, rank: int) -> None:
        """Normalise an axis attribute, once."""
        name = step.attribute.name
        if name in self.placed:
            return
        self.placed.add(name)
        whole = rank + step.adds
        self.env.attributes[name] = self.counted(name, operand, whole, step.first, whole - step.last - 1, step.adds)

    def counted(self, name: str, operand: str, rank: int, low: int, high: int, adds: bool = False) -> int:
        """Return an axis attribute counted from the front, where it is in range of so many axes; `adds`: one of them is new."""
        given = int(self.env.attribute(name))
        axis = given + rank if given < 0 else given
        if not low <= axis <= high:
            span = f"from {low - rank} to {high - rank} or " if low == 0 and high == rank - 1 else ""
            span = f"from {-rank} to {rank - 1}" if span else f"from {low} to {high}"
            own = f"{axes(rank - 1)} beside the new one" if adds else axes(rank)
            raise self.error(f"{name} = {given} is out of range: {operand} has {own}, so it must be {span}")
        return axis

    def arranged(self, length: Among | Around, operand: str, shape: Shape) -> Shape:
        """Return the sizes of a group's axes in a mixed or thinned operand, whose rank tells first which axes are listed."""
        if isinstance(length, Around) and not self.env.attributes[length.keeps]:
            return shape
        listed = self.places(operand, shape)
        if isinstance(length, Among):
            return tuple(shape[a] for a in listed) if length.listed else among(shape, listed)
        for a, size in enumerate(shape):
            if a in listed and size != 1:
                raise self.error(f"axis {a} of {operand} must have size 1, but has {size}")
        return among(shape, listed)

    def places(self, operand: str, shape: Shape) -> tuple[int, ...]:
        """Return the axes of a mixed or thinned operand that attributes list or place."""
        self.place_listed(operand, len(shape))
        how = arrangement(self.op)
        assert how is not None, "it has an attribute of axes"
        if (how.slots or how.permutes) and len(shape) != self.env.rank:
            raise self.error(f"{operand} must have {axes(self.env.rank)}, but has shape {format_shape(shape)}")
        listed = self.env.attributes[how.axes]
        return tuple(int(self.env.attribute(name)) for name in how.attributes) if how.slots else listed  # type: ignore[return-value]  # axes are a list of ints

    def place_listed(self, operand: str, rank: int) -> None:
        """Count the axes that attributes list or place from the front, once."""
        how = arrangement(self.op)
        assert how is not None, "it has an attribute of axes"
        if how.axes in self.placed:
            return
        self.placed.add(how.axes)
        self.env.rank = rank
        if not how.slots:
            self.env.attributes[how.axes] = self.listed(how.axes, operand, rank)
            return
        taken: set[int] = set()
        for name in how.attributes:
            axis = self.counted(name, operand, rank, 0, rank - 1)
            if axis in taken:
                given = self.env.attribute(name)
                raise self.error(f"{name} = {given} is an axis of {operand} that another attribute places")
            taken.add(axis)
            self.env.attributes[name] = axis

    def listed(self, name: str, operand: str, rank: int) -> tuple[int, ...]:
        """Return the axes that an attribute lists, counted from the front, in order."""
        given = self.env.attributes[name]
        assert isinstance(given, tuple), "axes are a list"
        try:
            return self.env.picked(rank)
        except ValueError:
            text = f"{name} = {format_value(given)}"
        if all(-rank <= a < rank for a in given):
            if len({a % rank for a in given}) == len(given):
                raise self.error(f"{text} does not name all {axes(rank)} of {operand}")
            raise self.error(f"{text} names an axis of {operand} twice")
        must = f", so each must be from {-rank} to {rank - 1}" if rank else ""
        raise self.error(f"{text} is out of range: {operand} has {axes(rank)}{must}")

    def length(self, length: GroupLength, group: GroupKey, at: int, rank: int) -> int:
        """Return how many axes from `at` on a group takes."""
        match length:
            case Rest():
                behind = sum(len(self.env.groups[g]) for g in length.groups)
                return max(0, rank - length.after - behind - at) if length.groups else rank - length.after - at
            case UpTo():
                return min(int(self.env.attribute(length.attribute)) - length.before, rank - length.after) - at
            case Same():
                return min(len(self.env.groups[group]), rank - length.after - at)
            case Among() | Around():
                raise TypeError("a list says how many axes these are")

    def dim(self, dim: str, operand: str, size: int) -> None:
        """Bind or check a named dimension."""
        bound = self.env.dims.setdefault(dim, size)
        origin = self.origin.setdefault(dim, operand)
        if bound != size:
            raise self.error(f"{dim} is {bound} in {origin}, but {size} in {operand}")

    def group(self, key: GroupKey, operand: str, sizes: Shape | None) -> None:
        """Bind or check a group."""
        bound = self.env.groups.setdefault(key, sizes or ())
        origin = self.origin.setdefault(key, operand)
        if bound != sizes:
            text = "fewer axes" if sizes is None else format_shape(sizes)
            raise self.error(f"{group_text(key)} is {format_shape(bound)} in {origin}, but {text} in {operand}")

    def need(self, step: NeedOne) -> None:
        """Refuse the call when nothing given binds a symbol."""
        symbol = step.symbol
        operands = [o for o in step.operands if o in self.shapes]
        if not operands:
            raise self.error(f"{symbol_text(symbol)} is unknown: give {' or '.join(step.operands)}")

    def broadcast(self, step: BroadcastGroup) -> None:
        """Bind a group to what the operands' own groups broadcast to."""
        key: GroupKey = (step.name, None)
        bound = self.env.groups.get(key)
        origins = [] if bound is None else [self.origin[key]]
        result: Shape = bound or ()
        for source in (s for s in step.sources if s in self.env.groups):
            sizes, name = self.env.groups[source], self.origin[source]
            merged = broadcast_shapes(result, sizes)
            if merged is None or (bound is not None and merged != bound):
                verb = "broadcast with" if bound is None else "expand to"
                raise self.error(f"{name} {format_shape(sizes)} does not {verb} {format_shape(result)} of {', '.join(origins)}")
            result = merged
            origins += [] if bound is not None or name in origins else [name]
        if origins:
            self.env.groups[key] = result

    def size(self, name: str, size: Affine, text: str) -> int:
        """Return the value of a derived size, in messages by the text of its rule."""
        try:
            value = self.env.value(size)
        except ZeroDivisionError:
            raise self.error(f"{name} = {text} divides by zero") from None
        if not 0 <= value < 2**63:
            raise self.error(f"{name} = {text} {f'would be {value}' if -(2**63) <= value < 0 else 'is beyond 64 bits'}")
        return value

    def match_size(self, step: MatchSize) -> None:
        """Compare one axis of an input with an expression."""
        name = step.operand.name
        shape = self.shapes.get(name)
        if shape is None:
            return
        axis = step.axis if step.axis >= 0 else step.axis + len(shape)
        axis += sum(len(self.env.groups[g]) for g in step.before)
        expected = self.size(f"axis {axis} of {name}", step.size, str(step.size))
        if shape[axis] != expected:
            source = "" if step.size.constant is not None else f"{step.size} = "
            raise self.error(f"axis {axis} of {name} must have size {source}{expected}, but has {shape[axis]}")

    def output(self, step: SizeOutput) -> None:
        """Work out the shape of one output."""
        if any(not self.bound(need) for need in step.needs):
            return
        for dim in step.operand.dims:
            if not isinstance(dim, Group):
                self.size(f"a size of {step.operand.name}", dim, str(dim))
        how = arrangement(self.op)
        if how is not None and how.is_mixed(step.operand):
            # Where no input has told it.
            self.place_listed(step.operand.name, len(self.env.shape_of(step.operand)))
            listed, own = self.env.attributes[how.axes], self.env.groups.get((how.picked, None), ())
            if how.is_untold(self.op) and isinstance(listed, tuple) and len(listed) != len(own):
                raise self.error(f"{how.axes} lists {axes(len(listed))} of {step.operand.name}, but *{how.picked} has {len(own)}")
        self.env.outputs[step.operand.name] = self.env.seen_shape_of(step.operand)

    def bound(self, need: NeedOne) -> bool:
        """Whether something given binds the symbol."""
        return any(o in self.shapes for o in need.operands)


def infer_types(op: Op, dtypes: Mapping[str, DType | None], attributes: Mapping[str, Any] | None = None) -> dict[str, DType]:
    """Return the dtype each type variable is bound to by inputs of these dtypes; None is an absent operand.

    A variable of one dtype needs no input.

    Raises:
        ShapeError: when an input has a dtype the op does not take.
    """
    values = fill(op, attributes or {})
    binding = {t.name: t.dtypes[0] for t in op.types if len(t.dtypes) == 1}
    origin: dict[str, str] = {}

    def match_type(name: str, t: ElementType, dtype: DType) -> None:
        if isinstance(t, TypeVar):
            if dtype not in t.dtypes:
                raise ShapeError(f"{op.name}: {name} has dtype {dtype}, but {t} is one of {', '.join(map(str, t.dtypes))}")
            bound, first = binding.setdefault(t.name, dtype), origin.setdefault(t.name, name)
            if bound is not dtype:
                raise ShapeError(f"{op.name}: {t} is {bound} in {first}, but {dtype} in {name}")
        elif isinstance(t, Acc) and isinstance(t.of, TypeVar) and t.of.name not in binding:
            return
        elif resolve(t, binding) is not dtype:
            raise ShapeError(f"{op.name}: {name} has dtype {dtype}, but must have {resolve(t, binding)}")

    variables = {t.name: t for t in op.types}
    for attribute in op.attributes:
        if attribute.kind is AttributeKind.DTYPE and attribute.binds is not None:
            match_type(attribute.name, variables[attribute.binds], DType(values[attribute.name]))
    for operand in sorted(op.inputs, key=lambda o: not isinstance(o.type, TypeVar)):
        dtype = dtypes.get(operand.name)
        if dtype is not None:
            match_type(operand.name, operand.type, dtype)
    return binding


def broadcast_shapes(a: Shape, b: Shape) -> Shape | None:
    """Return what two shapes broadcast to by NumPy's rules, or None when they do not."""
    rank = max(len(a), len(b))
    result = []
    for x, y in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if x != y and 1 not in (x, y):
            return None
        result.append(y if x == 1 else x)
    return tuple(result)


def among(shape: Shape, listed: Sequence[int]) -> Shape:
    """Return the sizes of the axes that are not listed, in order."""
    return tuple(size for a, size in enumerate(shape) if a not in listed)


def axes(count: int) -> str:
    """Return `1 axis` or `3 axes`."""
    return f"{count} {'axis' if count == 1 else 'axes'}"


def format_shape(shape: Iterable[int]) -> str:
    """Return a shape as messages write it: `[2, 3]`."""
    return f"[{', '.join(map(str, shape))}]"


def format_value(value: AttributeValue) -> str:
    """Return an attribute's value as messages write it, as C's `%g` has it for floats."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case tuple():
            return f"[{', '.join(format_value(v) for v in value)}]"
        case str():
            return f"'{value}'"
        case _:
            return str(value)
