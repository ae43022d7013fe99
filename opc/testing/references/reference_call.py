"""Calls of a reference as patterns: what a call of the reference makes of our op's inputs and attributes.

A reference says what it is called with in terms of our names, such as `strides=stride` or `pads=[padding[0], padding[1]]`.
Given values for its arguments, each part of such a pattern that is a name, or an element of one, is solved for; whatever else it
says is computed from what was found and must equal the value given. A sum is solved for its last part once the others are found,
and an integer that nothing else tells from what it is multiplied by, `start + count * delta`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opc.ir.op import Attribute, AttributeKind, Op

ABSENT = object()
"""The value of an argument that is not given and has no default."""


class NotApplicableError(Exception):
    """A call of the reference says something our op has no word for."""


@dataclass(slots=True)
class Match:
    """What is known of a call of our op: inputs by name, attributes whole or by element, and patterns still to be checked."""

    op: Op
    inputs: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    elements: dict[str, dict[int, Any]] = field(default_factory=dict)
    checks: list[tuple[str, ast.expr, Any]] = field(default_factory=list)

    def meet(self, label: str, pattern: ast.expr, value: Any) -> None:
        """Solve `pattern` for our names, given the value of the argument `label`.

        Raises:
            NotApplicableError: when the value can't be of that form.
        """
        value = value.decode() if isinstance(value, bytes) else value
        if isinstance(pattern, ast.IfExp) and isinstance(pattern.test, ast.Name) and value is not ABSENT:
            # Solved as if the attribute had its default, and checked when all is known.
            self.checks.append((label, pattern, value))
            chosen = {a.name: a.default for a in self.op.attributes}.get(pattern.test.id)
            pattern = pattern.body if chosen else pattern.orelse
        name = solved_name(pattern)
        if name is not None and name in {o.name for o in self.op.inputs}:
            self._bind(label, self.inputs, name, None if value is ABSENT else value)
        elif name is not None and name in {a.name for a in self.op.attributes}:
            # An argument left out has a default of its own, which ours is equal to.
            if value is not ABSENT and value is not None:
                self._bind(label, self.attributes, name, native(value, self.op.attribute(name)))
        elif isinstance(pattern, ast.Attribute) and pattern.attr in ("T", "mT") and hasattr(value, "swapaxes"):
            self.meet(label, pattern.value, value.swapaxes(-1, -2) if value.ndim > 1 else value)
        elif isinstance(pattern, ast.Subscript) and (place := self._element(pattern)) is not None:
            if value is not ABSENT:
                self._bind(label, self.elements.setdefault(place[0], {}), place[1], native(value))
        elif isinstance(pattern, ast.List | ast.Tuple) and value is not ABSENT and value is not None:
            parts = native(value)
            if not isinstance(parts, tuple):
                parts = (parts,) * len(pattern.elts)
            if len(parts) != len(pattern.elts):
                raise NotApplicableError(f"{label} = {shown(value)}, where {self.op.name} has {ast.unparse(pattern)}")
            try:
                for part, of in zip(parts, pattern.elts, strict=True):
                    self.meet(label, of, part)
            except NotApplicableError:
                raise NotApplicableError(f"{label} = {shown(value)}, where {self.op.name} has {ast.unparse(pattern)}") from None
        elif (
            isinstance(pattern, ast.BinOp)
            and isinstance(pattern.op, ast.Add)
            and (known := self._found(pattern.left)) is not None
        ):
            if value is not ABSENT:
                self.meet(label, pattern.right, native(value) - known)
        elif value is not ABSENT:
            self.checks.append((label, pattern, value))

    def _found(self, pattern: ast.expr) -> int | None:
        """Return the number that an integer attribute or an element of a list has been found to be."""
        if isinstance(pattern, ast.Subscript) and (place := self._element(pattern)) is not None:
            value = self.elements.get(place[0], {}).get(place[1])
        else:
            value = self.attributes.get(pattern.id) if isinstance(pattern, ast.Name) else None
        return value if isinstance(value, int) else None

    def _bind(self, label: str, known: dict[Any, Any], name: Any, value: Any) -> None:
        if name in known and not same(known[name], value):
            raise NotApplicableError(f"{label} = {shown(value)}, where {self.op.name} has {shown(known[name])} already")
        known[name] = value

    def _element(self, pattern: ast.Subscript) -> tuple[str, int] | None:
        index = pattern.slice.value if isinstance(pattern.slice, ast.Constant) else None
        if isinstance(pattern.value, ast.Name) and isinstance(index, int):
            name = pattern.value.id
            lists = [a.name for a in self.op.attributes if a.length is not None]
            return (name, index) if name in lists else None
        return None

    def solve(self, evaluate: Callable[[ast.expr, Mapping[str, Any]], Any]) -> None:
        """Find integers that are still unknown where what is to be checked grows by the same with each step of theirs.

        `evaluate` gives the value of a pattern with these inputs and attributes.
        """
        for _, pattern, value in self.checks:
            names = {n.id for n in ast.walk(pattern) if isinstance(n, ast.Name)}
            unknown = [
                a.name
                for a in self.op.attributes
                if a.name in names - self.attributes.keys() and a.kind is AttributeKind.INT and a.length is None
            ]
            known = {n: v for n, v in {**self.inputs, **self.attributes}.items() if v is not None}
            if len(unknown) != 1 or not names <= {*known, *unknown} or np.ndim(value):
                continue
            first, second = (float(evaluate(pattern, {**known, unknown[0]: n})) for n in (0, 1))
            if second != first:
                self.attributes[unknown[0]] = round((float(value) - first) / (second - first))

    def values(self) -> dict[str, Any]:
        """Return the attributes that were found, lists put together from their elements where the default has the rest.

        Raises:
            NotApplicableError: when only some elements of a list are known.
        """
        result = dict(self.attributes)
        for name, found in self.elements.items():
            attribute = self.op.attribute(name)
            rest = attribute.default if isinstance(attribute.default, tuple) else ()
            count = attribute.length if attribute.length is not None and attribute.length >= 0 else max(found) + 1
            whole = tuple(found.get(k, rest[k] if k < len(rest) else ABSENT) for k in range(count))
            if ABSENT in whole or not same(result.get(name, whole), whole):
                raise NotApplicableError(f"{name} = {shown(whole)} is not known whole")
            result[name] = native(whole, attribute)
        return result

    def verify(self, evaluate: Callable[[ast.expr], Any]) -> None:
        """Check what is neither a name nor an element, `evaluate` giving its value with what was found.

        Raises:
            NotApplicableError: when a value differs.
        """
        for label, pattern, value in self.checks:
            if not same(evaluate(pattern), value):
                raise NotApplicableError(f"{label} = {shown(value)}, where {self.op.name} has {ast.unparse(pattern)}")


def branches(pattern: ast.expr) -> Sequence[ast.expr]:
    """Return a pattern, or the two sides of a conditional one."""
    return (pattern.body, pattern.orelse) if isinstance(pattern, ast.IfExp) else (pattern,)


def solved_name(pattern: ast.expr) -> str | None:
    """Return the name in `x`, or in `x.long()`: a conversion of the whole."""
    if isinstance(pattern, ast.Call) and isinstance(pattern.func, ast.Attribute) and not pattern.args and not pattern.keywords:
        return solved_name(pattern.func.value) if pattern.func.attr in ("long", "contiguous", "clone") else None
    return pattern.id if isinstance(pattern, ast.Name) else None


def native(value: Any, attribute: Attribute | None = None) -> Any:
    """Return a value as attributes are given: plain numbers, texts and tuples; a single one repeated where a list is wanted."""
    if isinstance(value, bytes):
        value = value.decode()
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    elif hasattr(value, "tolist"):
        value = value.detach().tolist()
    if isinstance(value, list | tuple):
        value = tuple(native(v) for v in value)
    if attribute is None:
        return value
    if attribute.length is None and isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    if attribute.length is not None and attribute.length >= 0 and not isinstance(value, str):
        parts = value if isinstance(value, tuple) else (value,)
        value = parts * attribute.length if len(parts) == 1 else parts
    return tuple(_plain(v, attribute) for v in value) if isinstance(value, tuple) else _plain(value, attribute)


def _plain(value: Any, attribute: Attribute) -> Any:
    """Return a number as the attribute's kind has it: 1 as true, 2.0 as 2."""
    if attribute.kind is AttributeKind.BOOL and value in (0, 1):
        return bool(value)
    whole = attribute.kind is AttributeKind.INT and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value


def same(a: Any, b: Any) -> bool:
    """Whether two values of arguments are equal: tensors and lists element by element, numbers by value."""
    if a is b:
        return True
    if hasattr(a, "shape") or hasattr(b, "shape"):
        if a is None or b is None or isinstance(a, str) or isinstance(b, str):
            return False
        left, right = np.asarray(native(a)), np.asarray(native(b))
        return left.shape == right.shape and bool(np.array_equal(left, right))
    if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str | bytes) and not isinstance(b, str | bytes):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    for number, many in ((a, b), (b, a)):
        # One number for all axes may be given as a list of it.
        if isinstance(number, int | float) and isinstance(many, list | tuple):
            return bool(many) and all(same(number, m) for m in many)
    return type(a) is type(b) and bool(a == b)


def shown(value: Any) -> str:
    """Return a value for a message: tensors by shape, the rest as written."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"a tensor of shape {list(shape)}"
    plain = native(value) if value is not ABSENT else "nothing"
    return str(list(plain)) if isinstance(plain, tuple) else repr(plain)


def unmentioned(match: Match, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Take arguments that a reference does not mention: attributes of our op by the same name, else nothing but the default.

    Raises:
        NotApplicableError: when one is given that our op does not have.
    """
    own = {a.name: a for a in match.op.attributes}
    for name, value in given.items():
        if name in own:
            if value is not None and value is not ABSENT and name not in match.attributes:
                match.attributes[name] = native(value, own[name])
        elif not same(native(value), native(defaults.get(name, ABSENT))):
            raise NotApplicableError(f"{name} = {shown(value)}, which {match.op.name} does not have")
