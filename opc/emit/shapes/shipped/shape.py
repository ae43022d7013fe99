"""The fixed part of a generated `shape.py`.

A file takes of it the methods of a call and the functions that it uses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

Size = Any
"""An int, a symbolic int that computes like one, a symbolic size's name, or None."""
if TYPE_CHECKING:  # Python 3.8, with which PopRT runs, can't evaluate it
    Shape = tuple[Size, ...]


class ShapeError(ValueError):
    """A call is refused; the message names the operands and sizes that do not fit."""


def _known(size: Size) -> bool:
    """Whether a size can be computed with: it is neither a name nor None."""
    return size is not None and not isinstance(size, str)


def _differ(a: Size, b: Size) -> bool:
    """Whether two sizes are known to differ."""
    return _known(a) and _known(b) and a is not b and bool(a != b)


def _sharper(a: Size, b: Size) -> Size:
    """Return the one of two equal sizes that says more: a number, a name, None."""
    return b if a is None or (_known(b) and not _known(a)) else a


def _text(shape: Shape) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


class _Call:
    """What a call of an op has bound so far, and which operand bound it."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.types: dict[str, str] = {}
        self.dims: dict[str, Size] = {}
        self.groups: dict[str, Shape] = {}
        self.origin: dict[str, str] = {}

    def error(self, message: str) -> ShapeError:
        """Return the error with the op's name in front."""
        return ShapeError(f"{self.op}: {message}")

    def choice(self, attribute: str, value: str, choices: tuple[str, ...]) -> None:
        """An attribute is one of the values it may have."""
        if value not in choices:
            names = ", ".join(f"'{choice}'" for choice in choices)
            raise self.error(f"{attribute} = '{value}' is not one of {names}")

    def length(self, attribute: str, value: Any, length: int, kind: str) -> None:
        """A list attribute has as many elements as it is declared with."""
        if len(value) != length:
            raise self.error(
                f"{attribute} must be a list of {length} {kind}s,"
                f" but is {_value(value)}"
            )

    def check(self, attribute: str, value: Any, text: str, rule: Any) -> None:
        """An attribute passes its check."""
        if not _holds(rule, value):
            raise self.error(
                f"{attribute} = {_value(value)} violates its check: {text}"
            )

    def type(
        self, name: str, choices: tuple[str, ...], operand: str, dtype: str | None
    ) -> None:
        """Bind a type variable, or compare it with what it is bound to."""
        if dtype is None:
            return
        if dtype not in choices:
            names = ", ".join(choices)
            raise self.error(
                f"{operand} has dtype {dtype}, but {name} is one of {names}"
            )
        bound = self.types.setdefault(name, dtype)
        origin = self.origin.setdefault(f"type {name}", operand)
        if bound != dtype:
            raise self.error(f"{name} is {bound} in {origin}, but {dtype} in {operand}")

    def has_type(self, operand: str, dtype: str | None, expected: str | None) -> None:
        """An operand has a certain dtype."""
        if None not in (dtype, expected) and dtype != expected:
            raise self.error(f"{operand} has dtype {dtype}, but must have {expected}")

    def operand(
        self, name: str, shape: Any, axes: int, *, at_least: bool = False
    ) -> Shape:
        """Return the shape of an input, which has so many axes."""
        if shape is None:
            raise self.error(f"the input {name} must be given")
        sizes: Shape = tuple(shape)
        if len(sizes) < axes or (not at_least and len(sizes) != axes):
            count = f"{axes} {'axis' if axes == 1 else 'axes'}"
            least = "at least " if at_least else ""
            raise self.error(
                f"{name} must have {least}{count}, but has shape {_text(sizes)}"
            )
        return sizes

    def axis(
        self,
        attribute: str,
        given: int,
        operand: str,
        shape: Shape,
        first: int,
        last: int,
        *,
        adds: bool = False,
    ) -> int:
        """Return an axis counted from the front, with room for the axes beside it.

        Where it adds one to an operand's axes, this is counted too.
        """
        rank = len(shape) + adds
        axis = given + rank if given < 0 else given
        high = rank - last - 1
        if first <= axis <= high:
            return axis
        low = -rank if first == last == 0 else first
        raise self.error(
            f"{attribute} = {given} is out of range: {operand} has {len(shape)}"
            f" {'axis' if len(shape) == 1 else 'axes'}{' beside the new one' * adds},"
            f" so it must be from {low} to {high}"
        )

    def list(
        self, attribute: str, given: Any, operand: str, rank: int
    ) -> tuple[int, ...]:
        """Return the axes that are listed counted from the front, in order."""
        counted = [axis + rank if axis < 0 else axis for axis in given]
        if not all(0 <= axis < rank for axis in counted):
            must = f", so each must be from {-rank} to {rank - 1}" if rank else ""
            raise self.error(
                f"{attribute} = {_value(given)} is out of range: {operand} has {rank}"
                f" {'axis' if rank == 1 else 'axes'}{must}"
            )
        if len(set(counted)) < len(counted):
            raise self.error(
                f"{attribute} = {_value(given)} names an axis of {operand} twice"
            )
        return tuple(sorted(counted)) or tuple(range(rank))

    def lists(
        self, attribute: str, listed: Any, operand: str, group: str, own: Shape
    ) -> None:
        """Refuse a list of other than as many axes as a group has."""
        if len(listed) != len(own):
            axes = "axis" if len(listed) == 1 else "axes"
            raise self.error(
                f"{attribute} lists {len(listed)} {axes} of {operand}, but {group} has"
                f" {len(own)}"
            )

    def permute(
        self, attribute: str, given: Any, operand: str, rank: int
    ) -> tuple[int, ...]:
        """Return the axes of a permutation counted from the front, in its order."""
        if 0 < len(self.list(attribute, given, operand, rank)) < rank:
            raise self.error(
                f"{attribute} = {_value(given)} does not name all {rank} axes of"
                f" {operand}"
            )
        counted = (axis + rank if axis < 0 else axis for axis in given)
        return tuple(counted) or tuple(reversed(range(rank)))

    def permuted(self, shape: Shape, listed: Any) -> Shape:
        """Return the sizes of axes in the order of a permutation."""
        return tuple(shape[axis] for axis in listed)

    def restored(self, shape: Shape, listed: Any) -> Shape:
        """Return sizes in the order of a permutation with each in its own place."""
        return tuple(shape[listed.index(axis)] for axis in range(len(listed)))

    def places(self, given: dict[str, int], operand: str, rank: int) -> tuple[int, ...]:
        """Return the axes that attributes place, counted from the front."""
        shape = (None,) * rank
        found: tuple[int, ...] = ()
        for name, value in given.items():
            axis = self.axis(name, value, operand, shape, 0, 0)
            if axis in found:
                raise self.error(
                    f"{name} = {value} is an axis of {operand} that another attribute"
                    " places"
                )
            found += (axis,)
        return found

    def ranked(self, operand: str, shape: Shape, group: str, placed: int) -> None:
        """Refuse a shape without the rank that the operand had which told a group."""
        if group in self.groups:
            self.operand(operand, shape, len(self.groups[group]) + placed)

    def among(self, shape: Shape, listed: Any, own: bool) -> Shape:
        """Return the sizes of the axes that are listed, or of the others."""
        return tuple(s for axis, s in enumerate(shape) if (axis in listed) == own)

    def around(self, operand: str, shape: Shape, listed: Any) -> Shape:
        """Return the sizes of the axes that are not listed; the others are 1."""
        for axis, size in enumerate(shape):
            if axis in listed and _differ(size, 1):
                raise self.error(
                    f"axis {axis} of {operand} must have size 1, but has {size}"
                )
        return self.among(shape, listed, False)

    def mixed(self, rest: Shape, own: Shape, listed: Any) -> Shape:
        """Return the sizes of two groups' axes, the second's where listed."""
        others, mine = iter(rest), dict(zip(listed, own))
        axes = range(len(rest) + len(own))
        return tuple(mine[a] if a in mine else next(others) for a in axes)

    def spread(self, rest: Shape, listed: Any) -> Shape:
        """Return the sizes of a group's axes, with 1 at the places listed."""
        return self.mixed(rest, (1,) * len(listed), listed)

    def dim(self, name: str, operand: str, size: Size) -> None:
        """Bind a dimension, or compare it with what it is bound to."""
        if name not in self.dims:
            self.dims[name], self.origin[name] = size, operand
            return
        bound, origin = self.dims[name], self.origin[name]
        if _differ(bound, size):
            raise self.error(f"{name} is {bound} in {origin}, but {size} in {operand}")
        self.dims[name] = _sharper(bound, size)

    def least(self, *counts: int) -> int:
        """Return the least of some counts of axes."""
        return min(counts)

    def group(self, name: str, operand: str, sizes: Shape) -> None:
        """Bind a group of axes, or compare it with what it is bound to."""
        if name not in self.groups:
            self.groups[name], self.origin[name] = sizes, operand
            return
        bound, origin = self.groups[name], self.origin[name]
        if len(bound) != len(sizes) or any(map(_differ, bound, sizes)):
            raise self.error(
                f"{name.split(' ')[0]} is {_text(bound)} in {origin},"
                f" but {_text(sizes)} in {operand}"
            )
        self.groups[name] = tuple(map(_sharper, bound, sizes))

    def broadcast(self, name: str, sources: tuple[str, ...]) -> None:
        """Bind a group to what other groups broadcast to, by NumPy's rules."""
        result: Shape = ()
        origins: list[str] = []
        for source in sources:
            if source not in self.groups:
                continue
            sizes, origin = self.groups[source], self.origin[source]
            rank = max(len(result), len(sizes))
            left = (1,) * (rank - len(result)) + result
            right = (1,) * (rank - len(sizes)) + sizes
            pairs = zip(left, right)
            if any(
                not _is_one(a) and not _is_one(b) and _differ(a, b) for a, b in pairs
            ):
                raise self.error(
                    f"{origin} {_text(sizes)} does not broadcast with {_text(result)}"
                    f" of {', '.join(origins)}"
                )
            result = tuple(map(_broadcast_size, left, right))
            origins += [] if origin in origins else [origin]
        if origins:
            self.groups[name] = result

    def expand(self, name: str, sources: tuple[str, ...]) -> None:
        """Other groups broadcast to a group that an operand has bound."""
        bound, origin = self.groups[name], self.origin[name]
        for source in sources:
            sizes = self.groups.get(source, ())
            behind = bound[len(bound) - len(sizes) :]
            fits = len(sizes) <= len(bound)
            if not fits or any(
                not _is_one(b) and _differ(a, b) for a, b in zip(behind, sizes)
            ):
                raise self.error(
                    f"{self.origin[source]} {_text(sizes)} does not expand to"
                    f" {_text(bound)} of {origin}"
                )

    def need(self, what: str, given: bool, operands: str) -> None:
        """One of the optional operands that tell a size is there."""
        if not given:
            raise self.error(f"{what} is unknown: give {operands}")

    def size(
        self,
        name: str,
        text: str,
        values: dict[str, Size],
        rule: Any,
        written: str = "",
    ) -> Size:
        """Return a derived size: a number, or its rule over names, or None.

        The rule is `text`, in messages as it is `written` in the spec.
        """
        if any(value is None for value in values.values()):
            return None
        if not all(map(_known, values.values())):
            names = "|".join(map(re.escape, sorted(values, key=len, reverse=True)))
            pattern = rf"(?<!\w)(?:{names})(?!\w)"
            return re.sub(pattern, lambda match: _term(values[match[0]]), text)
        try:
            size = rule()
        except ZeroDivisionError:
            raise self.error(f"{name} = {written or text} divides by zero") from None
        # A symbolic size is left alone: asking for its sign would fix its range.
        if isinstance(size, int) and not 0 <= size < 2**63:
            problem = "is beyond 64 bits"
            if -(2**63) <= size < 0:
                problem = f"would be {size}"
            raise self.error(f"{name} = {written or text} {problem}")
        return size

    def has_size(
        self, operand: str, axis: int, size: Size, text: str, expected: Size
    ) -> None:
        """An axis of an input has a derived size."""
        if _differ(size, expected):
            rule = "" if text == str(expected) else f"{text} = "
            raise self.error(
                f"axis {axis} of {operand} must have size {rule}{expected},"
                f" but has {size}"
            )

    def points(self, name: str) -> Size:
        """Return the number of points of a group, None when a size is unknown."""
        total: Size = 1
        for size in self.groups[name]:
            if not _known(size):
                return None
            total = total * size
        return total

    def require(self, text: str, values: dict[str, Size], rule: Any) -> None:
        """A condition on sizes holds; the kernel checks symbolic sizes."""
        concrete = all(isinstance(value, int) for value in values.values())
        if concrete and not _holds(rule):
            shown = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise self.error(f"requires {text}{f', but {shown}' if shown else ''}")


def _value(value: Any) -> str:
    """Return an attribute's value as messages write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(element) for element in value)}]"
    return str(value)


def _holds(rule: Any, *values: Any) -> bool:
    """Whether a condition is true; one that divides by zero is not."""
    try:
        return bool(rule(*values))
    except ZeroDivisionError:
        return False


def _is_one(size: Size) -> bool:
    return _known(size) and bool(size == 1)


def _broadcast_size(a: Size, b: Size) -> Size:
    """Return what two sizes broadcast to; a name and another may be either."""
    if _is_one(a) or _is_one(b):
        return b if _is_one(a) else a
    if _known(a) or _known(b):
        return a if _known(a) else b
    return a if a == b else None


def _term(size: Size) -> str:
    text = str(size)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _lesser(x: Any, y: Any) -> Any:
    """Return the lesser of two sizes; where one is symbolic, which is not asked."""
    first, second = (y, x) if isinstance(x, int) else (x, y)
    if isinstance(first, int):
        return min(x, y)
    # Of PyTorch's symbols it is asked by this name, of JAX's by the other.
    lesser = getattr(first, "__sym_min__", None) or first.min
    return lesser(second)
