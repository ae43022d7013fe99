"""The kernel of one statement on a device: a team of threads a point of its target, which takes the terms of reductions in turns.

A team may be a single thread. Where there are few points and many terms, several teams take a part of a point's terms each, and
the same function is run again to join what they found.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.dtypes import Weak
from opc.ir.expr import SEARCHES, Reduce
from opc.loops.bind import bind_points, to_threads
from opc.loops.nodes import Body, GroupPoints, Kernel, Loop, Statement, Store, Var
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Intrinsic, Local, Word, call, variable
from opc.lower.build.context import NEST, Nest
from opc.lower.build.points import PointLoops
from opc.records import replace


def point_kernel(nest: Nest) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DevicePoints(nest).kernel()


class _DevicePoints(PointLoops):
    """Makes the loops of one statement."""

    def __init__(self, nest: Nest) -> None:
        super().__init__(nest)
        self.within = 0
        """How many reductions there are around what is made."""
        self.shared: list[Reduce] = []
        """The reductions whose terms a team takes in turns."""
        self.counted = False
        """Whether terms are counted beside what they are reduced to."""

    def kernel(self) -> Kernel:
        """Return the function."""
        plain = super().kernel()
        dims = self.nest.declared.dims
        flat = len(dims) if all(isinstance(d, Affine) for d in dims) else None
        steps = [Transformation("bind", ("points to teams",) if self.shared else ("points to all threads",))]
        if self.shared:
            steps.append(Transformation("share", ("terms", *(("parts",) if in_parts(self.shared, self.counted) else ()))))
        return replace(plain, body=bind_points(plain.body, _located(flat), bool(self.shared)), schedule=Schedule(tuple(steps)))

    def loops_of(self, e: Reduce) -> tuple[Body, str]:
        """As `PointLoops` says: at each point that is asked for it whatever it holds, threads share the terms."""
        shares = bool(e.axes) and self.within == 0 and not self.conditional and e.kind not in SEARCHES
        self.within += 1
        body, result = super().loops_of(e)
        self.within -= 1
        if not shares:
            return body, result
        self.shared.append(e)
        variables = [s for s in body if isinstance(s, Var)]
        self.counted = self.counted or len(variables) > 1
        found: list[Statement] = []
        for s in body:
            if not isinstance(s, Loop | GroupPoints):
                found.append(s)
                continue
            found.append(to_threads(s))
            for v in variables:
                kind = e.kind if v.name == result else "sum"
                own = Local(v.name, v.kind)  # type: ignore[arg-type]  # it has the type of a value
                of = (f"opc::joins_{kind}", v.kind)
                found.append(Store(own, call("join_terms", NEST, variable("@work"), own, type=own.type, types=of)))
        return tuple(found), result


def in_parts(shared: list[Reduce], counted: bool) -> bool:
    """Whether several teams may take the terms of a point: of a single reduction, which nothing else is found beside."""
    return len(shared) == 1 and not counted


def _located(axes: int | None) -> Intrinsic | None:
    """Return what finds the position of a point, in a target of so many axes; None where it has none."""
    if axes == 0:
        return None
    if axes is None:
        return call("locate", NEST, Word("point"), Word("at"))
    return call("locate_in", NEST, Word("point"), Word("at"), type=Weak.INT, types=(axes,))
