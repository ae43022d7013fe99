"""A brute-force evaluator of specs: every output point by point, in plain Python loops, from the text of the spec alone.

It is a second reading of docs/language.md, which shares nothing with opc: `tests.fuzz.reading` reads the spec, and each statement
becomes a Python expression whose conditionals, generators and integers are Python's. A read that the language promises to be
inside and is not raises `OutsideError`: such a spec should have been refused.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import product
from types import CodeType
from typing import Any

import numpy as np

from tests.fuzz import scalars
from tests.fuzz.reading import Call, Listing, Tensor, assigned, needed, read_spec, recurrent
from tests.fuzz.scalars import NoValueError
from tests.fuzz.translate import Frame, Made, OutsideError, Translator, entries

Output = tuple[str, tuple[int, ...], Tensor]
"""What is computed of an output: its dtype, shape and values."""


def tensor(array: Any, *, precise: bool) -> Tensor:
    """Return an array as a table of Python's numbers by position."""
    array = np.asarray(array)
    if str(array.dtype) in scalars.COMPUTED:
        array = array.astype(np.int8)  # NumPy takes them for no numbers of its own
    values = array.astype(np.float64) if array.dtype.kind not in "iub" or precise else array
    return dict(zip(np.ndindex(values.shape), values.reshape(-1).tolist(), strict=True))


class Tape:
    """Values of `stop_gradient`, kept from one evaluation to be given again in others: nothing changes with them.

    They are kept by statement and element, for another evaluation may choose other sides of conditions.
    """

    def __init__(self) -> None:
        self.kept: dict[tuple[str, tuple[int, ...], int], Any] = {}
        self.at_zeroth_power = False
        self.begin("", ())

    def begin(self, target: str, key: tuple[int, ...]) -> None:
        """Say which element is computed next."""
        self.place, self.count = (target, key), 0

    def stop(self, value: Any) -> Any:
        self.count += 1
        return self.kept.setdefault((*self.place, self.count), value)

    def power(self, x: float, y: float) -> float:
        """Return x ** y; that y was 0 is kept: the second derivative is specified there, and no limit (docs/functions.md)."""
        self.at_zeroth_power = self.at_zeroth_power or y == 0
        return scalars.power(x, y)


def evaluate(
    text: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any],
    tape: Tape | None = None,
    types: Mapping[str, str] | None = None,
) -> dict[str, Output]:
    """Return what is computed of every output; `types` says what type variables stand for where the inputs are of others.

    Raises:
        RefusedError: when the call breaks a rule of the spec.
        NoValueError: when the op has no value for these inputs.
        OutsideError: when a read that was promised to be inside is not.
    """
    arrays = {n: np.asarray(a) for n, a in inputs.items() if a is not None}
    listing = Listing(read_spec(text), arrays, attributes)
    arrays = {n: listing.declared(n, a) for n, a in arrays.items()}
    values = {n: tensor(a, precise=False) for n, a in arrays.items()}
    tape = tape or Tape()
    names = {**NAMES, "stop_": tape.stop, "power_": tape.power, "values_": values}
    result = {}
    program = _program(_Asked(text, _shapes(arrays), repr((dict(attributes), types)), arrays, attributes, listing, types or {}))
    stepping = recurrent(read_spec(text))
    made_later = {m.target: _Stepping(m, eval(code, names), tape) for m, code, _ in program if m.target in stepping}
    values.update(made_later)
    for made, code, is_output in program:
        found: Tensor = made_later[made.target] if made.target in stepping else {}
        function = eval(code, names)
        for point in product(*made.ranges):
            key = _key(point)
            if made.target in stepping:
                found.get(key)
                continue
            tape.begin(made.target, key)
            found[key] = function(*point)
        values[made.target] = found
        if is_output:
            # Other statements read an output of fewer than 8 bits before it wraps into its type.
            stored = {k: scalars.wrapped(v, made.dtype) for k, v in found.items()} if made.dtype in scalars.COMPUTED else found
            result[made.target] = (made.dtype, *listing.seen(made.target, made.shape, stored))
    return result


def _key(point: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the index of an element: that in each axis of a group stands for itself."""
    key: tuple[int, ...] = ()
    for k in point:
        key += k if isinstance(k, tuple) else (k,)
    return key


class _Stepping(dict[tuple[int, ...], Any]):
    """The elements of a recurrence, each made when it is first asked for."""

    def __init__(self, made: Made, function: Callable[..., Any], tape: Tape) -> None:
        super().__init__()
        self.target, self.function, self.tape = made.target, function, tape
        self.points = {_key(point): point for point in product(*made.ranges)}

    def get(self, key: tuple[int, ...], default: Any = None) -> Any:
        if key in self.points and key not in self:
            before = self.tape.place, self.tape.count
            self.tape.begin(self.target, key)
            self[key] = self.function(*self.points[key])
            self.tape.place, self.tape.count = before
        return super().get(key, default)


def _shapes(arrays: Mapping[str, Any]) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    return tuple((n, str(a.dtype), a.shape) for n, a in arrays.items())


@dataclass(frozen=True)
class _Asked:
    """A call by all that its statements are translated from; the values of its operands are not among that."""

    text: str
    shapes: tuple[tuple[str, str, tuple[int, ...]], ...]
    given: str
    inputs: Mapping[str, Any] = field(compare=False)
    attributes: Mapping[str, Any] = field(compare=False)
    listing: Listing = field(compare=False)
    types: Mapping[str, str] = field(compare=False)


@lru_cache(maxsize=64)
def _program(asked: _Asked) -> list[tuple[Made, CodeType, bool]]:
    """Return the statements of a call ready to run, with whether what they make is an output."""
    call = Call(read_spec(asked.text), asked.inputs, asked.attributes, asked.listing, asked.types)
    operands = {n: (call.dtype(kind), dims) for n, (kind, dims) in call.spec.inputs.items()}
    given: dict[str, Any] = dict(call.inputs)
    program = []
    ahead = {n: s for n, s in assigned(call.spec).items() if n in recurrent(call.spec)}
    for name, statement in ahead.items():
        target = statement.targets[0]
        assert isinstance(target, ast.Subscript)
        if name in call.spec.outputs:
            kind, dims = call.spec.outputs[name]
            operands[name] = call.dtype(kind), dims
        else:
            # What a temporary is made of tells its shape; it is taken for a floating one.
            plain = Translator(call, Frame(operands, given))
            operands[name] = "f", tuple(plain.range_of(i, statement.value) for i in entries(target.slice))
        given[name] = statement
    for statement in needed(call.spec):
        made = Translator(call, Frame(operands, dict(given))).statement(statement)
        code = compile(f"lambda {', '.join(made.names)}: {made.code}", "body", "eval")
        program.append((made, code, made.target in call.spec.outputs))
        assert made.target not in ahead or operands[made.target][0] == made.dtype, f"{made.target} is {made.dtype}"
        operands[made.target], given[made.target] = (made.dtype, made.dims), made
    return program


def outside(name: str, index: tuple[int, ...]) -> Any:
    raise OutsideError(f"{name}{list(index)} is outside")


def _read(values: Mapping[str, Tensor], name: str, index: tuple[int, ...]) -> Any:
    found = values[name].get(index, _NONE)
    return outside(name, index) if found is _NONE else found


def _padded(values: Mapping[str, Tensor], name: str, index: tuple[int, ...], fill: Any) -> Any:
    found = values[name].get(index, _NONE)
    return fill() if found is _NONE else found


def _checked(index: int, size: int, rule: str) -> int:
    """Return an index that is data, as `out_of_range` has it."""
    if 0 <= index < size:
        return index
    if rule == "clamp":
        return min(max(index, 0), size - 1)  # outside an axis that has none
    raise NoValueError(f"an index is {index} on an axis of {size}")


def _aligned(index: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, ...]:
    """Return the point of an operand that broadcasts, at a point of the common shape."""
    return tuple(0 if size == 1 else i for i, size in zip(index[len(index) - len(own) :], own, strict=True))


def _position(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    place = 0
    for i, size in zip(index, shape, strict=True):
        place = place * size + i
    return place


_NONE = object()
NAMES: dict[str, Any] = {
    "read_": _read, "padded_": _padded, "checked_": _checked, "aligned_": _aligned, "position_": _position, "inf_": math.inf,
    "nan_": math.nan, "product_": product, "total_": scalars.total, "prod_": math.prod, "max_": scalars.greatest,
    "min_": scalars.least, "place_": scalars.place_of, "div_": scalars.div, "mod_": scalars.floor_mod,
    "floordiv_": scalars.floor_div, "wrap_": scalars.computed, "toint_": scalars.cast_to_int, "maximum_": scalars.maximum,
    "minimum_": scalars.minimum, "whole_power_": scalars.whole_power, "random_": scalars.random_word,
    "left_": partial(scalars.shift, left=True), "right_": partial(scalars.shift, left=False), "isnan_": math.isnan,
    "isinf_": math.isinf, "float": float, "any": any, "all": all,
    "order_": scalars.order_of, "range": range, "int": int, "max": max, "True": True, "False": False,
    **{f"fn_{n}": f for n, f in (scalars.FUNCTIONS | scalars.TWO).items()},
}  # fmt: skip
"""What the code of a statement may name."""
