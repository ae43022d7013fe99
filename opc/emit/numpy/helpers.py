"""Functions that generated NumPy code calls and carries along: those the function table names, and a few on arrays.

They are written as generated code is, without annotations and 88 columns wide.
"""
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

import functools
import math
import re

import numpy as np


def elementwise(function, x, *order):
    """Apply a function of Python's numbers to each element, in double."""
    x = np.asarray(x)
    values = [function(*order, float(v)) for v in x.ravel().tolist()]
    dtype = x.dtype if x.dtype.kind == "f" else np.float64
    return np.array(values, dtype).reshape(x.shape)


def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def floordiv(x, y):
    """Quotient rounded to minus infinity; NumPy's is -1 of a number by infinity."""
    if np.result_type(x, y).kind == "f":
        return np.floor(np.true_divide(x, y))
    return np.floor_divide(x, y)


def mod(x, y):
    """Remainder of the division that rounds to minus infinity: it has the sign of y."""
    return np.remainder(x, y)


def power(x, y):
    """X to the power of y, nan where that is not real."""
    return np.power(1.0 * x, y)


def integer_power(x, y):
    """X to the power of y, which wraps; to a negative power 1 over that, cut to a whole number."""
    dtype = np.result_type(x, y)
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    inverse = np.where(abs(x) == 1, np.where(y & 1, x, 1), 0)
    return np.where(y < 0, inverse, np.power(x, np.where(y < 0, 0, y))).astype(dtype)


def philox(seed, counter):
    """First words of blocks of Philox-4x32-10 (Salmon et al., 2011), as uint64."""
    seed, counter = np.asarray(seed, np.uint64), np.asarray(counter, np.uint64)
    word, half = np.uint64(2**32 - 1), np.uint64(32)
    a, b, c, d = counter & word, counter >> half, np.uint64(0), np.uint64(0)
    key, other = seed & word, seed >> half
    for _ in range(10):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, c = second >> half ^ b ^ key, first >> half ^ d ^ other
        b, d = second & word, first & word
        key = key + np.uint64(0x9E3779B9) & word
        other = other + np.uint64(0xBB67AE85) & word
    return a


def accumulator(dtype):
    """Element type that sums of a dtype are held in."""
    if np.dtype(dtype).kind not in "iub":
        return np.result_type(dtype, np.float32)
    return np.uint64 if dtype == np.uint64 else np.int64


def first(*arrays):
    """Return the first array that is given."""
    return next(x for x in arrays if x is not None)


def argsort(x, axis, descending):
    """Return the places of the elements in order; equal ones stay in theirs, and NaN is the greatest."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    behind = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(behind, axis)


def shape_of(*arrays):
    """Return the shape of the first array that is given, that of a scalar where none is."""
    return next((x.shape for x in arrays if x is not None), ())


def dtype_of(*arrays):
    """Return the dtype of the first array that is given, None where none is."""
    return next((x.dtype for x in arrays if x is not None), None)


def widen(x):
    """Return x in the type it is computed in: half types in float32, others in their own."""
    return x if x.dtype.kind in "iub" else x.astype(np.result_type(x, np.float32))


def widened(x):
    """Return x in the type it is computed in: half types in float32, integers below 8 bits in int8."""
    return x.astype(computed(x.dtype))


def computed(dtype):
    """Return the type a dtype is computed in: half types in float32, integers below 8 bits in int8."""
    dtype = np.dtype(dtype)
    if dtype.kind == "V" and "int" in dtype.name:
        return np.dtype(np.int8)
    return dtype if dtype.kind in "iub" else np.result_type(dtype, np.float32)


def convert(x, dtype):
    """Return x as a dtype; float to int truncates and saturates, and nan gives 0."""
    x, dtype = np.asarray(x), np.dtype(dtype)
    if dtype.kind == "b":
        return x != 0
    if dtype.kind not in "iu":
        return x.astype(np.result_type(dtype, np.float32))
    if x.dtype.kind in "iub":
        return x.astype(dtype)
    low, high = (dtype.type(n) for n in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    whole = np.trunc(np.where(np.isnan(x), 0.0, x))
    inside = (whole > float(low)) & (whole < float(high))
    bound = np.where(whole > 0, high, low)
    return np.where(inside, np.where(inside, whole, 0.0).astype(dtype), bound)


def sum_to(x, shape):
    """Sum over the axes along which an array of `shape` was broadcast to that of x."""
    lead = x.ndim - len(shape)
    ones = tuple(lead + i for i, n in enumerate(shape) if n == 1)
    return np.sum(x, axis=(*range(lead), *ones)).reshape(shape)


def some(x, axis, what=None):
    """Return x; ValueError where nothing is reduced, since `what` has no value then.

    Where nobody asks for the result, or it has no element, x gets one along each axis,
    which NumPy needs.
    """
    axes = np.arange(x.ndim) if axis is None else np.atleast_1d(axis) % x.ndim
    if all(x.shape[a] != 0 for a in axes):
        return x
    rest = [1 if i in axes else n for i, n in enumerate(x.shape)]
    if what is not None and 0 not in rest:
        raise ValueError(f"{what} of nothing: its size is 0")
    return np.zeros(rest, x.dtype)


def _listed(axes, rank):
    """Return the axes that a list names, counted from the front, in order; all where it names none.

    None of them where the rank is not known: nothing has these axes. IndexError for an axis that there is not.
    """
    if rank is None:
        return ()
    return tuple(sorted(range(rank)[a] for a in axes)) or tuple(range(rank))


def _permutation(axes, rank):
    """Return axes counted from the front, in order; all in reverse where none is given.

    None of them where the rank is not known: nothing has these axes. IndexError for an axis that
    there is not, ValueError for one that stands twice or is missing.
    """
    if rank is None:
        return ()
    counted = tuple(range(rank)[a] for a in axes) or tuple(reversed(range(rank)))
    if sorted(counted) != list(range(rank)):
        raise ValueError(f"{tuple(axes)} is no permutation of {rank} axes")
    return counted


def _placed(axes, rank):
    """Return axes counted from the front, none of an unknown rank; IndexError for one that there is not."""
    return () if rank is None else tuple(range(rank)[a] for a in axes)


def _arranged(x, axes, ahead):
    """Return x with some axes before or behind the others."""
    rest = [a for a in range(x.ndim) if a not in axes]
    return x.transpose([*axes, *rest] if ahead else [*rest, *axes])


def _restored(x, axes, ahead):
    """Return an array whose axes were arranged with each in its own place."""
    rest = [a for a in range(x.ndim) if a not in axes]
    order = np.array([*axes, *rest] if ahead else [*rest, *axes], np.int64)
    return x.transpose(np.argsort(order)).copy()


def grid(sizes, trailing):
    """Return the indices along each of some axes, followed by `trailing` more axes."""
    rank = len(sizes)
    shapes = [(n,) + (1,) * (rank - i - 1 + trailing) for i, n in enumerate(sizes)]
    return [np.arange(n).reshape(shape) for n, shape in zip(sizes, shapes)]


def not_empty(count, what, points=1, where=True):
    """Refuse a reduction over nothing: ValueError where a count is 0 or less at a point that is asked for."""
    if points > 0 and np.any((np.asarray(count) <= 0) & where):
        raise ValueError(f"{what} of nothing: its size is 0")


def flatten(x, count):
    """Return x with its last `count` axes as one."""
    kept = x.ndim - count
    return x.reshape(*x.shape[:kept], math.prod(x.shape[kept:]))


def inside(index, size, what, points=1, where=True):
    """Refuse an index outside of its axis: IndexError where one that is asked for is."""
    index = np.asarray(index)
    wrong = ((index < 0) | (index >= size)) & where
    if points > 0 and np.any(wrong):
        first = np.broadcast_to(index, wrong.shape)[wrong][0]
        raise IndexError(f"{what} is {first}, outside an axis of size {size}")


def take(x, indices, pad=0):
    """Return x at arrays of indices, `pad` outside."""
    if x.dtype == np.bool_:
        pad = np.asarray(pad, np.bool_)  # with a number the result would be one
    within = np.bool_(True)
    clipped = []
    for index, size in zip(indices, x.shape):
        within = within & (np.asarray(index) >= 0) & (np.asarray(index) < size)
        clipped.append(np.clip(index, 0, max(size - 1, 0)))
    if x.size == 0:
        shape = np.broadcast_shapes(np.shape(pad), *(np.shape(i) for i in clipped))
        return np.broadcast_to(pad, shape).astype(x.dtype)
    return np.where(within, x[tuple(clipped)], pad)


def contract(equation, factors, ranks=(), where=()):
    """Return a sum of products of arrays, "n k, k m -> n m".

    "..." and "*A" stand for as many axes as `ranks` says; without it, one such group has
    as many as the factor has that has most beside its other axes, and the others' axes are
    its last. Only terms count where the conditions `where`, over the axes of the factors, hold.
    """
    names = [term.split() for term in re.split(",|->", equation)]
    lengths = [dict(ranks) for _ in names]
    if not ranks:
        for term, x, found in zip(names, factors, lengths):
            found |= {n: x.ndim - len(term) + 1 for n in term if n[0] in ".*"}
        groups = [n for n in names[-1] if n[0] in ".*"]
        lengths[-1] = {n: max(found.get(n, 0) for found in lengths) for n in groups}
    # Axes of a group are counted from its last one, where those of broadcast factors meet.
    parts = []
    for term, found in zip(names, lengths):
        parts.append([(n, -i) for n in term for i in range(found.get(n, 1), 0, -1)])
    *terms, result = parts
    axes = list(dict.fromkeys([*result, *(axis for term in terms for axis in term)]))
    numbers = [[axes.index(axis) for axis in term] for term in terms]
    masked = list(factors)
    for i, condition in enumerate(where):
        if condition is not None:
            masked[i] = np.where(condition, factors[i], 0)
    bound = math.prod([float(np.max(np.abs(x), initial=1)) for x in masked])
    if bound * max(x.size for x in masked) < np.finfo(np.result_type(*masked)).max:
        pairs = [part for pair in zip(masked, numbers) for part in pair]
        # A sum starts at 0, so -0 alone gives 0; einsum multiplies what it has summed, nothing too.
        total = np.einsum(*pairs, list(range(len(result))), optimize=True)
        return np.asarray(total + 0)

    # BLAS may keep more digits of a product than are stored, and then sums what overflows.

    def spread(x, own):
        order = sorted(range(len(own)), key=lambda i: own[i])
        sizes = dict(zip(own, x.shape))
        return x.transpose(order).reshape([sizes.get(i, 1) for i in range(len(axes))])

    product = functools.reduce(np.multiply, map(spread, factors, numbers))
    for condition, own, x in zip(where, numbers, factors):
        if condition is not None:
            holds = spread(np.broadcast_to(condition, x.shape), own)
            product = np.where(holds, product, 0)
    return np.sum(product, axis=tuple(range(len(result), len(axes))))


def scatter(shape, indices, values, join=np.add, start=0):
    """Return an array of a shape that takes values in at arrays of indices; what falls outside is left out."""
    total = np.full(shape, start, values.dtype)
    *indices, values = np.broadcast_arrays(*indices, values)
    within = np.ones(values.shape, np.bool_)
    for index, size in zip(indices, shape):
        within = within & (index >= 0) & (index < size)
    join.at(total, tuple(i[within] for i in indices), values[within])
    return total


def least(*sizes):
    """Return the least of some sizes, of an op that may have an attribute called `min`."""
    return min(sizes)


def most(*sizes):
    """Return the greatest of some sizes, of an op that may have an attribute called `max`."""
    return max(sizes)
