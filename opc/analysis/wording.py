"""Words for messages: types, counts, shapes and reads as the user writes them."""

from __future__ import annotations

from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import ValueType, Weak
from opc.ir.expr import GroupRef
from opc.ir.op import DimSpec, Operand


def type_text(t: ValueType) -> str:
    """Return a value type in words; weak types are what they look like in the body."""
    return {Weak.INT: "a whole number", Weak.FLOAT: "a fraction"}[t] if isinstance(t, Weak) else str(t)


def article(word: str) -> str:
    """Return `word` with its indefinite article."""
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def count(n: int, one: str, many: str) -> str:
    """Return `n` with the noun in singular or plural."""
    return f"{n} {one if n == 1 else many}"


def dim_text(dim: DimSpec) -> str:
    """Return one entry of a shape as the spec writes it."""
    return str(dim) if isinstance(dim, Affine) else str(GroupRef(dim.name))


def shape_text(dims: tuple[DimSpec, ...]) -> str:
    """Return a shape as the spec writes it: `[..., D]`."""
    return f"[{', '.join(dim_text(d) for d in dims)}]"


def indexed(operand: Operand) -> str:
    """Return a read of an operand as an example: `x[..., d]`."""
    names: list[str] = []
    for dim in operand.dims:
        if not isinstance(dim, Affine):
            names.append(dim_text(dim))
            continue
        atom = dim.single
        name = atom.name.lower()[:1] if isinstance(atom, Dim) else "k"
        while name in names:
            name = chr(ord(name) + 1) if name < "z" else "a"
        names.append(name)
    return f"{operand.name}[{', '.join(names)}]"
