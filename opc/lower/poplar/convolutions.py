"""Sums of products over windows, as convolutions: which axis of which factor is a batch, a channel or a field.

Three forms are one here. A convolution reads its input at `step * i + dilation * p + offset`; the gradient of its kernel is one
too, in which the batch is summed over and the channels are not, so that the two indices change places; that of its input, and a
transposed convolution, divide by the step.
"""

from __future__ import annotations

from typing import TypeAlias

from opc.ir.affine import Affine
from opc.ir.dtypes import ValueType
from opc.ir.expr import Axis
from opc.ir.op import Assign, Group, Op
from opc.lower.build.context import UnsupportedForm
from opc.lower.contractions.factors import AxisIndex, Factor, Part
from opc.lower.loop_ir import Term
from opc.lower.poplar.nodes import AxisRole, Convolution, Window

_ONE, _ZERO = Affine.of(1), Affine.of(0)
_Groups: TypeAlias = tuple[str, Affine]
"""The index of the result that runs through the groups, and how many of its points each has."""


def convolution(op: Op, assign: Assign, term: Term, name: str, kind: ValueType, needed: tuple[str, ...]) -> Convolution:
    """Return a term of a sum as a convolution.

    Raises:
        UnsupportedForm: when it is none.
    """
    found: UnsupportedForm | None = None
    for one, other in (term.factors, term.factors[::-1]):
        try:
            return _Convolution(op, assign, term, one, other).node(name, kind, needed)
        except UnsupportedForm as why:
            found = found or why
    assert found is not None, "there are two factors"
    raise found


class _Convolution:
    def __init__(self, op: Op, assign: Assign, term: Term, field: Factor, kernel: Factor) -> None:
        self.op, self.assign, self.term, self.field, self.kernel = op, assign, term, field, kernel
        if field.guards or kernel.guards:
            raise UnsupportedForm("a factor is zero at some points")
        self.target: dict[str, Affine] = {}
        for entry, dim in zip(assign.indices, op.operand(assign.target).dims, strict=True):
            if isinstance(dim, Group):
                raise UnsupportedForm(f"a window beside {dim}")
            self.target[str(entry)] = dim
        self.summed: dict[str, Affine] = {}
        for axis in term.axes:
            if not isinstance(axis, Axis):
                raise UnsupportedForm(f"a window summed over {axis}")
            self.summed[axis.index] = axis.extent
        self.roles: dict[str, AxisRole] = {}
        """The role of each index."""
        self.counts = dict.fromkeys(("batch", "channel", "out", "field"), 0)
        self.groups: _Groups | None = None
        self.windows: list[Window] = []

    def node(self, name: str, kind: ValueType, needed: tuple[str, ...]) -> Convolution:
        """Return the convolution."""
        # Windows first: they tell what the indices of the kernel are.
        own = {n: self._window(a) for n, a in enumerate(self.field.axes) if isinstance(a, AxisIndex) and _is_window(a)}
        if not own:
            raise UnsupportedForm(f"{self.field.read.operand} is not read in windows")
        kernel = {i for a in self.kernel.axes if isinstance(a, AxisIndex) for i in (p.index for p in a.parts)}
        field = [own.get(n) or self._field_axis(a, n, kernel) for n, a in enumerate(self.field.axes)]
        taps = [self._kernel_axis(a, n) for n, a in enumerate(self.kernel.axes)]
        missing = {*self.target, *self.summed} - self.roles.keys()
        if missing:
            raise UnsupportedForm(f"a product that does not vary with {', '.join(sorted(missing))}")
        groups = (_ONE, _ONE) if self.groups is None else (self.target[self.groups[0]], self.groups[1])
        if any(self.roles[i].role not in ("batch", "out", "field") for i in self.target):
            raise UnsupportedForm("a channel that stays")
        if self.groups is not None and (self.counts["out"] != 1 or not self.roles[self.groups[0]].grouped):
            raise UnsupportedForm("groups along several axes")
        result = tuple(self.roles[i] for i in self.target)
        return Convolution(
            name, kind, self.field.read.operand, tuple(field), self.kernel.read.operand, tuple(taps), tuple(self.windows), groups,
            result, self.term.conditions, self.assign, needed,
        )  # fmt: skip

    def _role(self, index: str, role: str, grouped: bool = False) -> AxisRole:
        """Return the role of an index, which it has in both factors."""
        known = self.roles.get(index)
        if known is None:
            known = AxisRole(role, self.counts[role], grouped)
            self.counts[role] += 1
            self.roles[index] = known
        if known.role != role:
            raise UnsupportedForm(f"{index} is {known.role} and {role}")
        return AxisRole(role, known.place, grouped)

    def _window(self, a: AxisIndex) -> AxisRole:
        """Return the role of a field, and note the window that an index of the result and one of the kernel make."""
        first, second = a.parts
        result, tap = (first, second) if first.index in self.target else (second, first)
        if result.index not in self.target or tap.index not in self.summed:
            raise UnsupportedForm("a window of two indices of the result")
        skips = not a.guarded or a.skips
        if a.divisor == _ONE:
            window = Window(result.times, tap.times, a.offset, False, not skips)
        elif result.times == _ONE:
            window = Window(a.divisor, -tap.times, a.offset, True, not skips)
        else:
            raise UnsupportedForm("a window in steps that are divided")
        self.windows.append(window)
        self._role(result.index, "field")
        return self._role(tap.index, "field") if tap.index in self.roles else self._tap(tap.index)

    def _tap(self, index: str) -> AxisRole:
        """Note that an index runs along the kernel's side of the newest field."""
        self.roles[index] = AxisRole("field", len(self.windows) - 1)
        return self.roles[index]

    def _field_axis(self, a: object, n: int, kernel: set[str]) -> AxisRole:
        """Return the role of another axis of the input."""
        index, grouped = self._own(self.field, a, n)
        if index in self.summed:
            return self._role(index, "channel", grouped)
        if index in kernel:
            raise UnsupportedForm(f"{index} is an axis of the result and of both factors")
        return self._role(index, "batch", grouped)

    def _kernel_axis(self, a: object, n: int) -> AxisRole:
        assert isinstance(a, AxisIndex), "groups of axes are refused"
        known = self.roles.get(a.parts[0].index) if len(a.parts) == 1 else None
        if known is not None and known.role == "field":
            self._own(self.kernel, a, n)
            return known
        within = self._within(a)
        if within is not None:
            role = self._role(within, "out", True)
            return AxisRole("out", role.place)
        index, grouped = self._own(self.kernel, a, n)
        if index in self.summed:
            return self._role(index, "channel", grouped)
        return self._role(index, "out", self.groups is not None and self.groups[0] == index)

    def _within(self, a: AxisIndex) -> str | None:
        """Return the index that an axis counts within each group, `j % size`."""
        if len(a.parts) != 2 or a.parts[0].index != a.parts[1].index:
            return None
        whole, step = sorted(a.parts, key=lambda p: p.divisor != _ONE)
        if not _is_plain(whole) or a.offset != _ZERO or a.divisor != _ONE:
            return None
        if step.times != -step.divisor or (step.scale, step.shift) != (_ONE, _ZERO):
            return None
        self._group(whole.index, step.divisor)
        return whole.index

    def _own(self, f: Factor, a: object, n: int) -> tuple[str, bool]:
        """Return the index along which an axis lies, and whether it lies in the group that the index of another one tells."""
        if not isinstance(a, AxisIndex) or a.offset != _ZERO or a.divisor != _ONE:
            raise UnsupportedForm(f"{f.read.operand} is read at an offset")
        if len(a.parts) == 1 and _is_plain(a.parts[0]):
            index = a.parts[0].index
            extent = self.target.get(index) or self.summed[index]
            if a.guarded or extent != self.op.operand(f.read.operand).dims[n]:
                raise UnsupportedForm(f"{f.read.operand} is read in part")
            return index, False
        if len(a.parts) == 2:
            own, group = sorted(a.parts, key=lambda p: p.divisor != _ONE)
            size = self.target.get(own.index) or self.summed.get(own.index)
            plain = _is_plain(own) and (group.scale, group.shift) == (_ONE, _ZERO)
            if plain and group.index in self.target and group.times == size:
                self._group(group.index, group.divisor)
                return own.index, True
        raise UnsupportedForm(f"{f.read.operand} is read in steps")

    def _group(self, index: str, size: Affine) -> None:
        if self.groups not in (None, (index, size)):
            raise UnsupportedForm("groups of two kinds")
        self.groups = index, size


def _is_plain(p: Part) -> bool:
    return (p.times, p.scale, p.shift, p.divisor) == (_ONE, _ONE, _ZERO, _ONE)


def _is_window(a: AxisIndex) -> bool:
    """Whether an index adds up from two others, without rounding either."""
    if len(a.parts) != 2 or a.parts[0].index == a.parts[1].index:
        return False
    return all((p.scale, p.shift, p.divisor) == (_ONE, _ZERO, _ONE) for p in a.parts)
