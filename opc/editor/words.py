"""What the words of the language mean, in a line each, for hover and completion."""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.functions import FUNCTIONS

ABOUT_REDUCTIONS: Mapping[str, str] = {
    "sum": "The sum over the axes in brackets, 0 over nothing.",
    "prod": "The product over the axes in brackets, 1 over nothing.",
    "max": "The greatest value over the axes in brackets; over nothing an error.",
    "min": "The least value over the axes in brackets; over nothing an error.",
    "mean": "The sum over the axes in brackets, divided by the number of points.",
    "any": "Whether one of the values over the axes in brackets is true.",
    "all": "Whether all values over the axes in brackets are true.",
    "argmax": "The first position of the greatest value along the axes in brackets.",
    "argmin": "The first position of the least value along the axes in brackets.",
    "argsort": (
        "`argsort[k](x[..., k])[i]`: the position of the element at place i of the sorted axis; equal ones stay in their order, "
        "and NaN is the greatest. `argsort[k](x[..., k], True)[i]` is descending."
    ),
}
"""Each reduction by name, and what orders an axis, which is written like one."""

ABOUT_FORMS: Mapping[str, str] = {
    "cast": "`cast(type, x)`: x converted; a fraction is cut and saturates as a whole number, whole numbers wrap.",
    "present": "`present(b)`: whether the optional input b was given.",
    "pad": "`pad(x[...], v)`: a read that may fall outside, and then is v.",
    "size": "`size(*A)`: the number of points of a group of axes; `size(S, k)`: the size of axis k of one of several ranks.",
    "position": "`position(*A)`: which point of a group of axes this is, row by row from 0.",
    "random": "`random(seed, i)`: a float32 from 0 to below 1, the one that the counter i has under the seed.",
    "random_bits": "`random_bits(seed, i)`: a uint32 whose bits are random, those that the counter i has under the seed.",
    "rank": "`rank(S)`: how many axes a group of several ranks has.",
    "axis": "`axis(S)`: the number of the axis, from 0, in an expression of each axis of a group.",
    "unravel": "`unravel(S, p)`: the index along the axis of the point that `position(*S)` numbers p.",
    "count": "`count(x)`: how many operands x there are.",
    "number": "`number(x)`: the number of the operand, from 0, in what is made of each.",
    "before": "`before(N)`: the sum of the dimensions N of the operands ahead, in what is made of each.",
    "acc": "`acc(T)`: the type that sums over T are kept in.",
}
"""What is called like a function and is none, by name."""


def about_function(name: str) -> str:
    """Return a function's signature and its derivatives, as the table of functions has them."""
    function = FUNCTIONS[name]
    arguments = ("x", "y")[: function.arity]
    lines = [f"`{name}({', '.join(arguments)})`"]
    if function.derivative is None:
        lines.append("It has no derivative.")
    elif all(text == "0" for text in function.derivative):
        lines.append("Its derivative is 0.")
    else:
        lines += [f"d/d{a} = `{text}`" for a, text in zip(arguments, function.derivative)]
        if any("r" in _names(text) for text in function.derivative):
            lines.append(f"r is the result, `{name}({', '.join(arguments)})`.")
    return "\n\n".join(lines)


def _names(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
