"""A call that `opc bench` measures, and the groups of such calls.

The figures are ratios of times, ours over the best of eager torch, torch.compile and ONNX Runtime. A group without a figure is
measured and promises nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opc.testing.bench.draws import Draw

BACKWARD = 1.2
"""What the gradient of a case may take at most, for the groups that promise something."""


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """Cases of one kind: `limit` is what the forward op may take at most, None where nothing is promised."""

    title: str
    limit: float | None


GROUPS: Mapping[str, CaseGroup] = {
    "elementwise": CaseGroup("elementwise", 1.0),
    "rows": CaseGroup("row reductions", 1.0),
    "norms": CaseGroup("normalisations", 1.0),
    "losses": CaseGroup("losses", 1.0),
    "pooling": CaseGroup("pooling", 1.0),
    "depthwise": CaseGroup("depthwise convolutions", 1.0),
    "embedding": CaseGroup("embeddings", 1.0),
    "upsampling": CaseGroup("upsampling", 1.0),
    "contractions": CaseGroup("matrix products, convolutions, attention", 1.25),
    "fused": CaseGroup("fused ops beside torch's formula of them", 1.2),
    "others": CaseGroup("gathers, scatters, scans, rearrangements", None),
}


@dataclass(frozen=True, slots=True)
class BenchCase:
    """One call: shapes of the inputs in float32, attributes.

    Inputs in `below` are int64 indices below a number, those in `positive` are above zero, those in `masks` are bools, those in
    `small` whole numbers of a byte. What is drawn for an input in `scale` is multiplied by that. What `drawn` has for an input
    draws it in another way. `wrt` are the inputs whose gradients are computed, by default every float one. `domain` is that of
    the op, where another op is called so too. `torch` is what one writes in torch for a call of an op whose spec has no
    reference of it, or one that covers more: an expression, as references are, or a function of the inputs and attributes.
    """

    name: str
    op: str
    group: str
    shapes: Mapping[str, tuple[int, ...]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    below: Mapping[str, int] = field(default_factory=dict)
    positive: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    wrt: tuple[str, ...] = ()
    scale: Mapping[str, float] = field(default_factory=dict)
    drawn: Mapping[str, Draw] = field(default_factory=dict)
    domain: str = ""
    torch: str | Callable[..., Any] = ""

    @property
    def limit(self) -> float | None:
        """What the forward op may take at most."""
        return GROUPS[self.group].limit


def case(name: str, group: str, shapes: Mapping[str, tuple[int, ...]], **more: Any) -> BenchCase:
    """Return a case; what follows a slash in its name distinguishes it from others of the same op."""
    return BenchCase(name, name.partition("/")[0], group, shapes, **more)
