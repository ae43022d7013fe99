"""Which instances of a kernel's function there are: one for each combination of stored types, or one for several of them.

Each instance costs time to compile. What training seldom calls, second derivatives and forward mode, has one for float16,
bfloat16 and float32, and reads and writes elements by the dtype that a call has. Indices of either width have one everywhere.
What has instances for small nests has the others as if it were seldom called.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from opc.emit.cuda.text import CudaText
from opc.emit.dtypes import c_storage
from opc.ir.dtypes import DType, TypeVar
from opc.lower.cuda.forms import Tiled
from opc.lower.cuda.products import Products
from opc.lower.wide import index_types

_FLOATS = frozenset((DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32))


class Instances:
    """The instances of one function; `tiled` is what it makes in tiles, if anything; one called `seldom` has the smallest."""

    def __init__(self, name: str, text: CudaText, tiled: Tiled | None, *, seldom: bool) -> None:
        self.name, self.text, self.tiled = name, text, tiled
        self.seldom = seldom
        self._merged = {t: _merged(text, t, seldom or text.may_be_small) for t in text.types}
        self._small = {t: _merged(text, t, seldom) for t in text.types}
        self._elements = {text.op.operand(o).type for o in text.kernel.operands if o not in text.temporaries}

    def stored(self, t: TypeVar, dtype: DType, *, small: bool = False) -> str:
        """Return the C++ type of elements where a type variable is a dtype: what it computes in where it has none."""
        if dtype not in (self._small if small else self._merged)[t]:
            return c_storage(dtype if t in self._elements else dtype.compute)
        return "opc::any_float" if dtype in _FLOATS else "opc::any_int"

    def of_types(self, types: tuple[DType, ...], *, small: bool = False) -> list[str]:
        """Return the instances for the dtypes of the type variables: one, or one for each shape of tiles, or for plain rows and
        for others."""
        stored = [self.stored(t, d, small=small) for t, d in zip(self.text.types, types, strict=True)]
        stored += [self.text.description(small=small)] if self.text.may_be_small else []
        if self.text.is_packed:
            # Where memory would make what is done slow, an instance goes along plain rows alone.
            kinds = ("false", "false") if self.seldom else ("true", "false")
            return [f"{self.name}<{', '.join([*stored, kind])}>" for kind in kinds]
        if not self.text.is_tiled:
            return [self.name + (f"<{', '.join(stored)}>" if stored else "")]
        assert self.tiled is not None, "it is made in tiles"
        small = self.seldom and isinstance(self.tiled, Products)
        shapes = (0, 0, 0) if small else self.tiled.kinds(dict(zip(self.text.types, types, strict=True)))
        return [f"{self.name}<{', '.join([*stored, str(shape)])}>" for shape in shapes]

    def first(self, *, small: bool = False) -> str:
        """Return one of them."""
        return self.of_types(tuple(t.dtypes[0] for t in self.text.types), small=small)[0]

    def table(self, *, small: bool = False) -> str:
        """Return the initialiser of the table of instances, by the positions of dtypes among those of each type variable, and by
        the shape of tiles or whether rows are plain."""

        def build(types: tuple[DType, ...]) -> str:
            if len(types) < len(self.text.types):
                parts = [build((*types, d)) for d in self.text.types[len(types)].dtypes]
                return parts[0] if len(parts) == 1 else f"{{{', '.join(parts)}}}"
            found = self.of_types(types, small=small)
            return f"{{{', '.join(found)}}}" if self.text.instances > 1 else found[0]

        return build(())

    def of(self, dtypes: frozenset[DType]) -> Iterator[str]:
        """Yield each instance once whose type variables are some of these dtypes, or the first that they may be."""
        types = [tuple(d for d in t.dtypes if d in dtypes) or t.dtypes[:1] for t in self.text.types]
        for small in (False, True) if self.text.may_be_small else (False,):
            yield from dict.fromkeys(found for chosen in product(*types) for found in self.of_types(chosen, small=small))


def _merged(text: CudaText, t: TypeVar, seldom: bool) -> frozenset[DType]:
    """Return the dtypes of a type variable that share an instance."""
    floats = _FLOATS.intersection(t.dtypes)
    # Tiles, scans and copies know their elements by the pointers that they are given.
    if text.is_tiled or any(map(text.kernel.schedule.args, ("scan", "move"))):
        return frozenset()
    if seldom and len(floats) > 1:
        return floats
    return frozenset(t.dtypes) if t in index_types(text.op) else frozenset()
