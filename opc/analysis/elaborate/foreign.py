"""What people write from other languages, and what it is here."""

from __future__ import annotations

from collections.abc import Iterable

from opc.lang.tree import Item, Name, Subscript, parts

INSTEAD = {
    "max": "maximum(a, b) compares two values; max[k](...) runs over an axis",
    "min": "minimum(a, b) compares two values; min[k](...) runs over an axis",
    "pow": "write x ** y",
    "power": "write x ** y",
    "where": "write a if condition else b",
    "select": "write a if condition else b",
    "clip": "write minimum(maximum(x, low), high)",
    "clamp": "write minimum(maximum(x, low), high)",
    "relu": "write maximum(x, 0)",
    "len": "the size of an axis is its dimension's name",
    "float": "write cast(float32, x)",
    "int": "write cast(int64, x)",
    "bool": "write x != 0",
    "ln": "write log(x)",
    "rand": "write random(seed, i), which the counter i numbers",
    "uniform": "write random(seed, i), which the counter i numbers",
    "randint": "write random_bits(seed, i) % n, which the counter i numbers",
    "fabs": "write abs(x)",
    "arctan": "write atan(x)",
    "arcsin": "write asin(x)",
    "arccos": "write acos(x)",
    "cumsum": "write sum[k:i + 1](x[k])",
    "cumprod": "write prod[k:i + 1](x[k])",
    "roll": "write x[(i - shift) % N]",
    "flip": "write x[N - 1 - i]",
    "diff": "write x[i + 1] - x[i]",
    "softmax": "write exp(x[i] - m[]) / sum[k](exp(x[k] - m[])), where m = stop_gradient(max[k](x[k]))",
    "logsumexp": "write m[] + log(sum[k](exp(x[k] - m[]))), where m = stop_gradient(max[k](x[k]))",
    "dot": "write sum[k](a[i, k] * b[k, j])",
    "matmul": "write sum[k](a[i, k] * b[k, j])",
    "einsum": "write sum[k](a[i, k] * b[k, j])",
    "norm": "write sqrt(sum[k](x[k] ** 2))",
    "square": "write x ** 2",
    "mod": "write x % y",
    "fmod": "write x % y, which has the sign of y",
    "sort": "order positions in a statement of their own, p[i] = argsort[k](x[k])[i], and read x[p[i]]",
    "topk": "order positions in a statement of their own, p[i] = argsort[k](x[k], True)[i], and read x[p[i]]",
    "isfinite": "write not isinf(x) and not isnan(x)",
    "arange": "an index is a number too: t[i:N] = cast(float32, i)",
    "range": "an index says how far it runs: sum[k:N](...), t[i:N] = ...",
    "gather": "read at an index that is data: x[ids[i]]",
    "take": "read at an index that is data: x[ids[i]]",
    "scatter": "sum over those whose number is this place: y[k] = sum[n](x[n] if ids[n] == k else 0)",
    "scatter_add": "sum over those whose number is this place: y[k] = sum[n](x[n] if ids[n] == k else 0)",
    "shape": "the size of an axis is its dimension's name",
    "complex": "complex numbers are two tensors",
}
"""Functions of other languages, and what is written for them."""

NUMBERS = {"pi": "3.141592653589793", "tau": "6.283185307179586", "PI": "3.141592653589793"}
"""Constants of other languages."""

_SCATTER = "to add where a number says, sum over those whose number it is: {name}[k] = sum[n](x[n] if ids[n] == k else 0)"


def in_place_of(name: str, item: Item) -> str:
    """Return what to write for `name[item] = ...`, whose left side is no plain index."""
    reads = [node for node in _walk(item) if isinstance(node, Subscript)]
    names = [node for node in _walk(item) if isinstance(node, Name)]
    if reads:
        return _SCATTER.format(name=name)
    if not names:
        return f"one statement makes all elements: {name}[i] = a if i == 0 else b"
    return f"let the right side shift: {name}[i] = x[i + 1]"


def _walk(item: Item) -> Iterable[Item]:
    yield item
    for part in parts(item):
        yield from _walk(part)


__all__ = ["INSTEAD", "NUMBERS", "in_place_of"]
