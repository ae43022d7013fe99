"""Integer arithmetic of the oracle: exact, wrapping in its own dtype; sets where an operand is uncertain."""

from __future__ import annotations

import numpy as np

from opc.ir.dtypes import DType, numpy_dtype
from opc.ir.functions import FUNCTIONS
from opc.testing.oracle.bounds import Array, Bounds, held
from opc.testing.oracle.enclosures import numpy_function


def wrap(values: Array, dtype: DType) -> Array:
    """Return whole numbers reduced modulo two to the power of the dtype's bits."""
    return values.astype(numpy_dtype(dtype)).astype(held(dtype))


def _set(point: Array, sure: Array, ends: list[Array], rough: list[Array], dtype: DType) -> Bounds:
    """Return `point` where `sure`, else the hull of `ends`, or every value of the dtype where one of them overflows.

    `rough` are the ends as floating numbers, which distinguish the limits of 64 bits from what is beyond only far from them.
    """
    least, most = dtype.least, dtype.most
    value = wrap(point, dtype)
    if bool(np.all(sure)):
        return Bounds(value, value, np.zeros(value.shape, np.bool_))
    over = np.zeros(value.shape, np.bool_)
    lower, upper = (least / 2, 2.0 ** (dtype.bits - 2)) if dtype.bits == 64 else (least, most)
    for r in rough:
        over = over | (r < lower) | (r > upper)
    low, high = ends[0], ends[0]
    for e in ends[1:]:
        low, high = np.minimum(low, e), np.maximum(high, e)
    low = np.where(sure, value, np.where(over, least, low))
    high = np.where(sure, value, np.where(over, most, high))
    return Bounds(low, high, np.zeros(low.shape, np.bool_))


def binary(name: str, a: Bounds, b: Bounds, dtype: DType) -> Bounds:
    """Return an operator of the table on integers; a division by zero has no value, so any is right."""
    fn = numpy_function(FUNCTIONS[name].numpy)
    sure = a.point & b.point
    if name in ("floordiv", "mod"):
        sure = sure & (b.low != 0)
        divisor = np.where(b.low == 0, 1, b.low)
        return _set(fn(a.low, divisor), sure, _divided(name, a, divisor, b.point & (b.low > 0), dtype), [], dtype)
    if FUNCTIONS[name].types == "integer":
        return _set(fn(a.low, b.low), sure, _of_bits(name, a, b, dtype), [], dtype)
    if name == "pow":
        value = numpy_function("integer_power({0}, {1})")(a.low, b.low)
        return _set(value, sure, [np.full_like(value, dtype.least), np.full_like(value, dtype.most)], [], dtype)
    ends = [fn(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if name in ("maximum", "minimum"):
        return _set(ends[0], sure, ends, [], dtype)
    rough = [fn(x.astype(np.longdouble), y.astype(np.longdouble)) for x in (a.low, a.high) for y in (b.low, b.high)]
    return _set(ends[0], sure, ends, rough, dtype)


def _divided(name: str, a: Bounds, divisor: Array, known: Array, dtype: DType) -> list[Array]:
    """Return the ends of a quotient or remainder where the divisor is `known` and positive; elsewhere anything may come out."""
    if name == "floordiv":
        low, high = a.low // divisor, a.high // divisor
    else:
        low, high = a.low % divisor, a.high % divisor
        # Within one period the remainder grows with the value.
        whole = a.low // divisor != a.high // divisor
        low, high = np.where(whole, 0, low), np.where(whole, divisor - 1, high)
    least, most = dtype.least, dtype.most
    return [np.where(known, low, least), np.where(known, high, most)]


def _of_bits(name: str, a: Bounds, b: Bounds, dtype: DType) -> list[Array]:
    """Return the ends of an operator on bits of which one side at least is uncertain.

    A shift down keeps the order of what is shifted, and no bit is set that a certain number without a sign does not have.
    """
    least, most = (np.asarray(end, held(dtype)) for end in (dtype.least, dtype.most))
    if name == "shift_right":
        ends = [np.right_shift(end, b.low) for end in (a.low, a.high)]
        return [np.where(b.point, ends[0], least), np.where(b.point, ends[1], most)]
    if name == "bit_and":
        low, high = least, most
        for one in (a, b):
            masks = one.point & (one.low >= 0)
            low, high = np.where(masks, 0, low), np.where(masks, np.minimum(high, one.low), high)
        return [low, high]
    return [least, most]


def unary(name: str, a: Bounds, dtype: DType) -> Bounds:
    """Return a function of the table of one integer argument, which is monotone between its turns."""
    row = FUNCTIONS[name]
    fn = numpy_function(row.numpy)
    ends = [fn(a.low), fn(a.high)]
    if row.types == "integer":
        return _set(ends[0], a.point, [wrap(end, dtype) for end in ends], [], dtype)
    for turn in map(int, row.turns):
        ends.append(np.where((a.low <= turn) & (a.high >= turn), fn(np.asarray(turn, held(dtype))), ends[0]))
    return _set(ends[0], a.point, ends, [fn(x.astype(np.longdouble)) for x in (a.low, a.high)], dtype)


def fold(kind: str, a: Bounds, axes: tuple[int, ...], dtype: DType) -> Bounds:
    """Return the sum or product over axes, wrapping."""
    reduce = np.add.reduce if kind == "sum" else np.multiply.reduce
    point = np.asarray(reduce(a.low, axis=axes, dtype=held(dtype)))
    sure = np.all(a.point, axis=axes)
    if bool(np.all(sure)):
        return _set(point, sure, [point], [], dtype)
    least, most = dtype.least, dtype.most
    ends = [np.asarray(reduce(v, axis=axes, dtype=held(dtype))) for v in (a.low, a.high)]
    if kind == "prod":
        ends = [np.full(point.shape, least, held(dtype)), np.full(point.shape, most, held(dtype))]
    rough = [np.asarray(reduce(v.astype(np.longdouble), axis=axes)) for v in (a.low, a.high)]
    return _set(point, sure, ends, rough, dtype)
