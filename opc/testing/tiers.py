"""What the quick tier runs of each op: on which backends, how much of its proof, and how its kernels are compiled."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from opc.backends.base import Backend
from opc.backends.kernel.backend import OPTIMIZE
from opc.testing.extent import EVERY_CHOSEN, EVERY_OP, Extent

THINNED = "a part of the calls was run, for the op is in the covering set and has not changed; without --cover all of them are"
"""What is said of an op of the covering set on every backend."""

UNCHECKED = (
    "a part of the calls and no checks were run, for the op is in the covering set for its loops and has not changed; "
    "without --cover all of them are"
)
"""What is said of an op of the covering set on backends that call its kernel, where others of the set have its signature."""

SAMPLED = "a sample of the calls and checks was run, for the op is outside the covering set; without --cover all of them are"
"""What is said of an op outside the covering set on the backends that run every op."""

WAITING = "outside the covering set, and it has its turn in another run; without --turn it runs"
"""Why an op was not run on the backends that run every op."""

ALTERNATING = "in the covering set, and it has its turn in the next run; without --turn it runs"
"""Why an unchanged op of the covering set was not run."""

OUTSIDE = "outside the covering set, which this backend is run on; without --cover it runs"
"""Why an op was not run on a backend."""


@dataclass(frozen=True, slots=True)
class Tiers:
    """The specs of the covering set, and some of these; None for all.

    Attributes:
        chosen: The specs of the covering set.
        interface: Those for backends that wrap the kernel.
        signature: Those for backends that wrap another one; all backends that wrap run the checks of these alone.
        loops: Those for the thread sanitizer, whose kernels are compiled as they are shipped.
        bodies: Those for backends that are made from the body.
        memory: Those for the other sanitizers.
        device: Those for backends whose kernels run on a device.
        expressions: Those for backends whose framework computes with sizes as expressions.
        on_gpu: Those for frameworks that call kernels on a device.
        whole: Those of which all is run.
        waiting: Specs outside the covering set that `EVERY_OP` runs in another turn, each with the name of its op.
        resting: Specs of the covering set that have not changed, which the sanitizers see in another turn.
        alternating: Specs of the covering set, or for backends on a device, that have not changed, which run in the next turn.
    """

    chosen: Collection[Path]
    interface: Collection[Path] | None = None
    signature: Collection[Path] | None = None
    loops: Collection[Path] | None = None
    bodies: Collection[Path] | None = None
    memory: Collection[Path] | None = None
    device: Collection[Path] | None = None
    expressions: Collection[Path] | None = None
    on_gpu: Collection[Path] | None = None
    whole: Collection[Path] | None = None
    waiting: Mapping[Path, str] = field(default_factory=dict)
    resting: Collection[Path] = ()
    alternating: Collection[Path] = ()

    def runs(self, spec: Path, backend: Backend) -> bool:
        """Whether a backend runs a spec, now."""
        return self._covers(spec, backend) and not self._rests(spec, backend)

    def _rests(self, spec: Path, backend: Backend) -> bool:
        """Whether a spec has its turn in the next run; those that `EVERY_OP` alone would run have turns of their own there."""
        return spec in self.alternating and (spec in self.chosen or backend.name not in EVERY_OP)

    def _covers(self, spec: Path, backend: Backend) -> bool:
        some = self.signature if backend.library_of else self.interface if backend.wraps else self.bodies
        some = self.device if backend.on_device else self.expressions if backend.size_expressions else some
        some = self.on_gpu if backend.parts else some
        chosen = self.chosen if some is None or backend.name in EVERY_CHOSEN else some
        return spec in chosen or (backend.name in EVERY_OP and spec not in self.waiting)

    def extent(self, spec: Path) -> Extent:
        """Return how much of the proof of a spec is run."""
        if spec not in self.chosen:
            return Extent.SAMPLE
        if self.whole is None or spec in self.whole:
            return Extent.WHOLE
        return Extent.COVER if self.signature is None or spec in self.signature else Extent.LOOPS

    def optimised(self, spec: Path) -> str | None:
        """Return how the kernels of a spec are compiled, as `OPC_OPTIMIZE` says it; None for as they are shipped.

        Those of all ops together that have every form of loops are optimised, but for what training seldom calls.
        """
        if spec not in (self.chosen if self.loops is None else self.loops):
            return "0"
        return None if self.extent(spec) is Extent.WHOLE else "1"

    def left_out(self, spec: Path, backends: Iterable[Backend], ran: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the backends that run a spec in part or not at all, and why; a backend that refuses it is not in `ran`."""
        extent = self.extent(spec)
        for backend in backends:
            if not self.runs(spec, backend):
                outside = WAITING if backend.name in EVERY_OP else OUTSIDE
                yield backend.name, ALTERNATING if self._covers(spec, backend) else outside
            elif extent is not Extent.WHOLE and backend.name in ran:
                thinned = THINNED if extent.checks(backend.wraps) else UNCHECKED
                yield backend.name, SAMPLED if extent is Extent.SAMPLE else thinned


@contextmanager
def compiled(optimised: str | None) -> Iterator[None]:
    """Compile the kernels of libraries for this machine alone with less optimisation, unless there is none already."""
    before = os.environ.get(OPTIMIZE)
    if optimised is not None and before != "0":
        os.environ[OPTIMIZE] = optimised
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(OPTIMIZE, None)
        else:
            os.environ[OPTIMIZE] = before
