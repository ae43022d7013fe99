"""Recognises convolutions and pooling, and splits indices that count groups: what `opc.analysis.patterns` is too small for.

| pattern | in the body |
|---|---|
| `Convolution` | `sum[c, p, q](w[o, c, p, q] * pad(x[n, c, i*s + p*d - a, j*s + q*d - a], 0))`, also with groups of channels |
| `Pooling` | `max[p:k, q:k](pad(x[n, c, i*s + p*d - a, j*s + q*d - a], -inf))`, also of a sum |

An index `o // D` or `o % D` counts groups of D; where D divides the range of `o`, `split` writes it as `g*D + r`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opc.analysis.patterns import Entry, factors
from opc.ir.affine import Affine, Atom, Dim, FloorDiv, Index, Mod
from opc.ir.expr import Axis, Expr, Read, Reduce, ReduceAxis, affines, free_indices, map_affine
from opc.records import dataclass, replace

# ---- windows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of an operand that is read at `out*stride + tap*dilation - padding`; `taps` is the range of `tap`."""

    axis: int
    out: str
    tap: str
    stride: Affine
    dilation: Affine
    padding: Affine
    taps: Affine

    def size(self, length: Affine) -> Affine:
        """Return how many windows fit on an axis of some length with `padding` on each side."""
        return (length + self.padding * 2 - self.dilation * (self.taps - 1) - 1) // self.stride + 1

    def reach(self, count: Affine) -> Affine:
        """Return the length of so many windows together, from the beginning of the first to the end of the last."""
        return (count - 1) * self.stride + self.dilation * (self.taps - 1) + 1


def window(axis: int, index: Affine, outer: Sequence[Entry], taps: Mapping[str, Affine]) -> Window | None:
    """Return what an index says of a window: one index of the result and one of the reduction's, each once."""
    names = index.indices()
    outs, inner = [i for i in names if i in outer], [i for i in names if i in taps]
    if len(outs) != 1 or len(inner) != 1 or len(names) != 2:
        return None
    stride, dilation = index.coefficient(outs[0]), index.coefficient(inner[0])
    if stride is None or dilation is None or stride.indices() or dilation.indices():
        return None
    rest = index - stride * Index(outs[0]) - dilation * Index(inner[0])
    return None if rest.indices() else Window(axis, outs[0], inner[0], stride, dilation, -rest, taps[inner[0]])


@dataclass(frozen=True, slots=True)
class Convolution:
    """A cross-correlation of images `x` with filters `w`, whose axes are batch, channel, then those of the windows.

    `groups` is the number of groups of channels, 1 for one.
    """

    x: Read
    w: Read
    batch: str
    channel: str
    windows: tuple[Window, ...]
    groups: Affine

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the result, in the order in which a convolution has them."""
        return (self.batch, self.channel, *(v.out for v in self.windows))

    @property
    def filters(self) -> tuple[str, ...]:
        """The indices of `w`, in the order of its axes."""
        return tuple(i.index or "" for i in self.w.indices if isinstance(i, Affine))

    def group_start(self, filters: Affine, depth: Affine) -> Affine:
        """Return the first channel of `x` that the filter `channel` reads, one of so many filters of a depth in channels."""
        if self.groups == Affine.of(1):
            return Affine.of(0)
        return Affine.of(Index(self.channel)) // (filters // self.groups) * depth


def convolution(e: Reduce) -> Convolution | None:
    """Return a sum of products as a convolution; None when it is none, or its operands have their axes in another order."""
    axes = {a.index: a.extent for a in e.axes if isinstance(a, Axis) and not a.extent.indices()}
    parts = factors(e.body)
    if e.kind != "sum" or len(axes) < len(e.axes) or len(parts) != 2:
        return None
    for image, filters in (parts, parts[::-1]):
        if isinstance(image, Read) and isinstance(filters, Read):
            found = _convolution(axes, image, filters)
            if found is not None:
                return found
    return None


def _convolution(axes: Mapping[str, Affine], x: Read, w: Read) -> Convolution | None:
    order = [i.index if isinstance(i, Affine) else None for i in w.indices]
    rank = len(x.indices) - 2
    if rank < 1 or len(order) != rank + 2 or None in order or w.pad is not None or not all(i in axes for i in order[1:]):
        return None
    out, channel, *taps = (str(i) for i in order)
    if out in axes or len(axes) != rank + 1:
        return None
    affine = [i for i in x.indices if isinstance(i, Affine)]
    if len(affine) != rank + 2 or affine[0].index is None or affine[0].index in (*axes, out):
        return None
    batch = affine[0].index
    outer = [i for i in sorted(free_indices(x)) if i not in axes and i not in (batch, out)]
    found = [window(k, affine[k], outer, {taps[k - 2]: axes[taps[k - 2]]}) for k in range(2, rank + 2)]
    windows = tuple(v for v in found if v is not None)
    groups = _groups(affine[1], channel, out)
    if groups is None or len(windows) < rank or len({v.out for v in windows}) < rank:
        return None
    return Convolution(x, w, batch, out, windows, groups)


def _groups(index: Affine, channel: str, out: str) -> Affine | None:
    """Return the number of groups that a channel's index `o // (O // groups) * I + c` says; None for another index."""
    rest = index - Index(channel)
    if rest == Affine.of(0):
        return Affine.of(1)
    if len(rest.terms) != 1 or rest.terms[0][1] != 1:
        return None
    divisions = [a for a in rest.terms[0][0] if isinstance(a, FloorDiv)]
    others = [a for a in rest.terms[0][0] if not isinstance(a, FloorDiv)]
    if len(divisions) != 1 or len(others) != 1 or not isinstance(others[0], Dim) or divisions[0].numerator.index != out:
        return None
    size = divisions[0].denominator.single
    return size.denominator if isinstance(size, FloorDiv) and isinstance(size.numerator.single, Dim) else None


@dataclass(frozen=True, slots=True)
class Pooling:
    """A reduction `kind` over windows of images `x`, whose first two axes are batch and channel."""

    kind: str
    x: Read
    batch: tuple[str, str]
    windows: tuple[Window, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the result, in the order in which pooling has them."""
        return (*self.batch, *(v.out for v in self.windows))


def pooling(e: Reduce, frame: Sequence[Entry]) -> Pooling | None:
    """Return a reduction of an operand over windows as pooling; `frame` is what stands around it."""
    x = e.body
    if e.kind not in ("max", "min", "sum") or not isinstance(x, Read) or len(x.indices) < 3 or len(e.axes) != len(x.indices) - 2:
        return None
    taps = {a.index: a.extent for a in e.axes if isinstance(a, Axis) and not a.extent.indices()}
    affine = [i for i in x.indices if isinstance(i, Affine)]
    if len(taps) < len(e.axes) or len(affine) < len(x.indices):
        return None
    batch = (affine[0].index, affine[1].index)
    if batch[0] is None or batch[1] is None or batch[0] == batch[1] or {*batch} & taps.keys():
        return None
    outer = [i for i in frame if i not in batch]
    windows = tuple(v for k in range(2, len(affine)) if (v := window(k, affine[k], outer, taps)) is not None)
    if len(windows) < len(taps) or [v.tap for v in windows] != list(taps) or len({v.out for v in windows}) < len(taps):
        return None
    return Pooling(e.kind, x, (batch[0], batch[1]), windows)


# ---- indices that count groups -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Split:
    """An index of range `count * size` that is written `group*size + member`."""

    index: str
    group: str
    member: str
    count: Affine
    size: Affine


def divisor(e: Expr, index: str) -> Affine | None:
    """Return D where an expression holds `index // D` or `index % D` and no other division of the index; None without one."""
    found: list[Affine] = []

    def look(value: Affine) -> None:
        for monomial, _ in value.terms:
            for atom in monomial:
                if isinstance(atom, FloorDiv | Mod):
                    if atom.numerator.index == index and not atom.denominator.indices():
                        found.append(atom.denominator)
                    else:
                        look(atom.numerator)

    for value in affines(e):
        look(value)
    return found[0] if found and all(d == found[0] for d in found) else None


def split_value(e: Expr, split: Split) -> Expr:
    """Return an expression with an index written as group and member, and its divisions by the size as those."""

    def change(atom: Atom) -> Affine:
        match atom:
            case FloorDiv() | Mod() if atom.numerator.index == split.index and atom.denominator == split.size:
                return Affine.of(Index(split.group if isinstance(atom, FloorDiv) else split.member))
            case FloorDiv():
                return atom.numerator.map_atoms(change) // atom.denominator.map_atoms(change)
            case Mod():
                return atom.numerator.map_atoms(change) % atom.denominator.map_atoms(change)
            case Index() if atom.name == split.index:
                return split.size * Index(split.group) + Index(split.member)
            case _:
                return Affine.of(atom)

    return map_affine(e, lambda a: a.map_atoms(change))


def split_reduction(e: Reduce, split: Split) -> Reduce:
    """Return a reduction with an index split; one of its own axes becomes two."""
    axes = list[ReduceAxis]()
    for a in e.axes:
        if isinstance(a, Axis) and a.index == split.index:
            axes += [Axis(split.group, split.count), Axis(split.member, split.size)]
        else:
            axes.append(a)
    return replace(e, axes=tuple(axes), body=split_value(e.body, split))
