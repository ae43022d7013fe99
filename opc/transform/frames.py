"""Adjoints of frames: what goes to each element of each frame is summed before frames that overlap are added up.

A signal `x[i*hop + j]` in frames, each times several filters `w[o, j]`, has the gradient

    d_x[n] = sum over o, j of (w[o, j] * d_y[o, (n - j) // hop] if (n - j) % hop == 0 ...)

No index of the target is one of the filters alone, so that this is no matrix product, and the filters, which may be formulas
such as those of a Fourier transform, are looked up or computed for each element of the signal. The sum over `o` alone is one:

    t[i, j] = sum over o of (w[o, j] * d_y[o, i])
    d_x[n] = sum over j of (t[(n - j) // hop, j] if (n - j) % hop == 0 ...)

Frames side by side, at a distance of 1, stay as they are: there `t` would be as many times the signal as a frame has elements.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.expr import Expr, GroupRef, Read, Reduce, free_groups, free_indices
from opc.records import replace
from opc.transform.domain import Domain
from opc.transform.extract import Extractor


def summed_first(
    read: Read, domain: Domain, factors: tuple[Expr, Expr], value: Expr, name: str, extractor: Extractor
) -> tuple[Domain, Expr]:
    """Return the loops around a read of a frame and its adjoint `value`, after the sum over the loops that the read has not.

    `factors` are what the adjoint is a product of. What reads no frames is returned as it is.
    """
    used = free_indices(read)
    free = tuple(a for a in domain.axes if a.index not in used)
    summed = {a.index for a in free}
    if not free or any(a.extent.indices() for a in domain.axes) or not all(free_indices(f) & summed for f in factors):
        return domain, value
    if not any(_is_filter(f, read, {a.index for a in domain.axes}) for f in factors):
        return domain, value
    left = replace(domain, axes=tuple(a for a in domain.axes if a.index in used))
    total = extractor.extract(Reduce("sum", free, value, value.type), left, name)
    return (domain, value) if total is None else (left, total)


def _is_filter(factor: Expr, read: Read, loops: set[str]) -> bool:
    """Whether a read goes over frames at some distance, and a factor over their elements alone."""
    own = free_indices(factor)
    if free_groups(factor) or not all(isinstance(i, Affine | GroupRef) for i in read.indices):
        return False
    frames = [i for i in read.indices if isinstance(i, Affine) and len(i.indices() & loops) > 1]
    elements = {
        name for i in frames if any(map(_is_apart, _steps(i).values())) for name, c in _steps(i).items() if not _is_apart(c)
    }
    return bool(own & elements) and not own & (free_indices(read) - elements)


def _steps(i: Affine) -> dict[str, Affine | None]:
    """Return by how much an index moves with each of its variables."""
    return {name: i.coefficient(name) for name in i.indices()}


def _is_apart(step: Affine | None) -> bool:
    """Whether a step is more than 1, or what a call says."""
    return step is not None and step.constant not in (1, -1)
