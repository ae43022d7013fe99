"""The kernel of one statement on a device: a thread a point of its target, the loops of its reductions one after the other."""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.dtypes import Weak
from opc.loops.bind import bind_points
from opc.loops.nodes import Kernel
from opc.loops.values import Intrinsic, Word, call
from opc.lower.build.context import NEST, Nest
from opc.lower.build.points import PointLoops
from opc.records import replace


def point_kernel(nest: Nest) -> Kernel:
    """Return the function of a statement."""
    return _DevicePoints(nest).kernel()


class _DevicePoints(PointLoops):
    """Makes the loops of one statement, whose points all threads take in steps."""

    def kernel(self) -> Kernel:
        """Return the function."""
        plain = super().kernel()
        dims = self.nest.declared.dims
        flat = len(dims) if all(isinstance(d, Affine) for d in dims) else None
        return replace(plain, body=bind_points(plain.body, _located(flat)))


def _located(axes: int | None) -> Intrinsic | None:
    """Return what finds the position of a point, in a target of so many axes; None where it has none."""
    if axes == 0:
        return None
    if axes is None:
        return call("locate", NEST, Word("point"), Word("at"))
    return call("locate_in", NEST, Word("point"), Word("at"), type=Weak.INT, types=(axes,))
