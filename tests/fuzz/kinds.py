"""Types of the brute-force evaluator's values: what integers wrap in.

"f" is a float, "b" a bool, and an integer's type is its dtype. "w" is a whole number over sizes, indices and attributes, which
has 64 bits; "w3" is the literal 3 and "w3|-1" a choice between two, which take the dtype they are combined with where it fits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import add, and_, floordiv, lshift, mod, mul, or_, rshift, sub, xor

from tests.fuzz.scalars import BITS, wrapped

LITERAL = {
    "add": add, "sub": sub, "mul": mul, "floordiv": floordiv, "mod": mod, "and": and_, "or": or_, "xor": xor, "left": lshift,
    "right": rshift,
}  # fmt: skip
"""What makes a literal of literals."""


def is_whole(kind: str) -> bool:
    """Whether a type is that of whole numbers which are no operand's."""
    return kind.startswith("w")


def values_of(kind: str) -> list[int]:
    """Return what a literal may be, nothing for what is none."""
    return [int(v) for v in kind[1:].split("|")] if is_whole(kind) and kind != "w" else []


def arithmetic(op: str, a: str, b: str) -> str:
    """Return the type of an operation on whole numbers: a literal where both are."""
    if op in LITERAL and len(values_of(a)) == len(values_of(b)) == 1:
        return f"w{LITERAL[op](values_of(a)[0], values_of(b)[0])}"
    return "w"


def join(a: str, b: str, listed: Mapping[str, Collection[str]]) -> str:
    """Return the type of an operation on both: a number without dtype takes the other's, and what it does not hold is int64.

    A type variable holds what each of its integer dtypes does: `listed` has these by what it stands for.
    """
    if a == b or b == "b":
        return a
    if "f" in (a, b):
        return "f"
    if a == "b":
        return b
    if is_whole(a) and is_whole(b):
        return "w" if "w" in (a, b) else f"{a}|{b[1:]}"
    number, dtype = (a, b) if is_whole(a) else (b, a)
    values = values_of(number)
    return dtype if values and all(v == wrapped(v, d) for v in values for d in (dtype, *listed.get(dtype, ()))) else "int64"


def as_type(code: str, kind: str, wanted: str) -> str:
    """Return the code of a value taken as another type."""
    return f"float({code})" if wanted == "f" and kind != "f" else code


def wrap(code: str, kind: str) -> str:
    """Return the code of an integer operation whose result wraps in its dtype."""
    return f"wrap_({code}, '{kind}')" if kind in BITS else code
