"""Which instances of a function there are: one for each compute type, and for what is wanted of several optional outputs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from opc.emit.cpp.loops import KernelText
from opc.emit.dtypes import c_storage
from opc.emit.kernel.stages import by_point, row_types
from opc.ir.dtypes import DType, TypeVar
from opc.ir.op import Op
from opc.lower.loop_ir import RowStage, Stage
from opc.lower.lower import SpecialisedProgram

_MOST_OUTPUTS = 8
"""Of more optional outputs there are too many sets to ask for each."""


def combinations(tile: KernelText) -> list[list[DType]]:
    """Return the dtypes each type variable is instantiated for: those of rows, and stored types for nests of points."""
    return [list(t.dtypes if by_point(tile) else row_types(tile, t)) for t in tile.types]


def extents(tile: KernelText) -> str:
    """Return the array extents of a table entry: one a type variable with several compute types, one for wanted outputs."""
    sizes = [len(types) for types in combinations(tile) if len(types) > 1]
    if tile.kernel.flags:
        sizes.append(len(tile.kernel.flags) + 1)
    return "".join(f"[{n}]" for n in sizes)


def called_alone(op: Op, variant: SpecialisedProgram, stage: Stage) -> tuple[bool, ...]:
    """Return for each optional product of a stage whether a call asks for it, but for no more than half of them.

    `opc::run_wanted` then computes it by itself, else all of them together. What is needed of temporaries follows from which of
    the op's outputs are wanted.
    """
    if not isinstance(stage, RowStage):
        return ()
    needed = {t.name: frozenset(t.needed_by) for t in variant.program.temporaries}
    users = [needed.get(name, frozenset((name,))) for name in stage.optional]
    if sum(o.optional for o in op.outputs) > _MOST_OUTPUTS:
        return tuple(True for _ in users)
    found: set[int] = set()
    for wanted in _wanted(op):
        given = [i for i, names in enumerate(users) if names & wanted]
        if 2 * len(given) <= len(users):
            found.update(given)
    return tuple(i in found for i in range(len(users)))


def _wanted(op: Op) -> Iterator[frozenset[str]]:
    """Yield the sets of outputs that a call may want."""
    for answers in product(*((True, False) if o.optional else (True,) for o in op.outputs)):
        yield frozenset(o.name for o, wanted in zip(op.outputs, answers) if wanted)


def instances(function: str, tile: KernelText, alone: tuple[bool, ...], wide: tuple[TypeVar, ...]) -> str:
    """Return the initialiser of a table entry, the instances of a function.

    There are none of products that no call asks for `alone`, and of types whose operands are `wide` there is the one of int64.
    """
    count = len(tile.kernel.flags)
    flags: list[list[bool] | None] = [[True] * count]
    flags += [[i == n for i in range(count)] if alone[n] else None for n in range(count)]

    def build(types: list[str], rest: list[list[DType]], stored: tuple[str, ...] = ()) -> str:
        if rest:
            of = tile.types[len(types)]
            some = (DType.INT64,) if of in wide else rest[0]
            parts = []
            for d in rest[0]:
                converts = of == tile.kernel.converts and d.compute is not d
                computed = c_storage(d.compute if converts else d)
                own = (c_storage(d),) if converts else stored
                parts.append(build([*types, computed], rest[1:], own) if d in some else "{}")
            return _joined(parts)
        parts = []
        for wanted in flags:
            arguments = ", ".join([*types, *("true" if w else "false" for w in wanted or ()), *stored])
            parts.append("nullptr" if wanted is None else function + (f"<{arguments}>" if arguments else ""))
        return _joined(parts)

    return build([], combinations(tile))


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{{{', '.join(parts)}}}"
