"""Families of signatures that random specs have: operands with shapes, derived sizes, requirements, and shapes of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Scope = Mapping[str, str]
"""The extent of each index variable in scope, as it is written; an axis group in scope stands for itself."""


@dataclass(frozen=True)
class Tensor:
    """An operand or temporary that a body may read: its type and the dimension of each axis."""

    name: str
    type: str
    dims: tuple[str, ...]
    optional: bool = False

    def declaration(self) -> str:
        return f"  '{self.name}{'?' if self.optional else ''}': '{self.type}[{', '.join(self.dims)}]'\n"


@dataclass(frozen=True)
class Flavour:
    """A family of signatures. `facts` are the sizes known to be positive; `digits` are dimensions that are products of others."""

    name: str
    inputs: tuple[Tensor, ...]
    results: tuple[tuple[str, ...], ...]
    shape: Mapping[str, str] = field(default_factory=dict)
    require: tuple[str, ...] = ()
    digits: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    broadcast: bool = False
    axis: bool = False
    adds: bool = False
    axes: bool = False
    placed: bool = False
    permuted: bool = False

    @property
    def arranges(self) -> bool:
        """Whether attributes say where the axes of x stand."""
        return self.axes or self.placed or self.permuted

    @property
    def positive(self) -> tuple[str, ...]:
        """The dimensions that are required to be positive."""
        return tuple(r.removesuffix(" > 0") for r in self.require if r.endswith(" > 0"))

    @property
    def groups(self) -> tuple[str, ...]:
        """The axis groups of the operands."""
        return tuple(dict.fromkeys(d for t in self.inputs for d in t.dims if is_group(d)))

    @property
    def sizes(self) -> list[str]:
        """The named dimensions of the operands."""
        return sorted({d for t in self.inputs for d in t.dims if d.isidentifier()})


def is_group(dim: str) -> bool:
    return dim.startswith(("*", "..."))


def index_names(scope: Scope) -> list[str]:
    """Return the index variables in scope, without the groups."""
    return [n for n in scope if not is_group(n)]


def tensors(**shapes: str) -> tuple[Tensor, ...]:
    """Return operands: `x="T M N"`, of type T over M and N; `b="T? M"` is optional."""
    result = []
    for name, text in shapes.items():
        kind, _, dims = text.partition(" ")
        result.append(Tensor(name, kind.rstrip("?"), tuple(dims.split()), kind.endswith("?")))
    return tuple(result)


ADDED = Flavour(
    "added",
    tensors(
        x="T *A *B", z="T *A *B", w="T K", v="T N K", c="T N", b="T? *A *B", s="T", q="Q *A *B", ids="I *A *B", on="bool *A *B"
    ),
    (("*A", "K", "*B"), ("*A", "*B"), ("K",), ("N",), ("N", "*A", "*B")),
    shape={"K": "width"},
    adds=True,
)
"""An attribute places a new axis in an output; it is drawn in place of the flavour of one that inputs have."""

FLAVOURS = (
    Flavour(
        "matrix",
        tensors(x="T M N", z="T N M", w="T N", v="T N K", a="T M K", c="T K", b="T? M", s="T", q="Q M N", r="Q N", ids="I M",
                jds="I N K", on="bool M N"),
        (("M", "N"), ("M",), ("N",), ("M", "K"), ("N", "M"), (), ("M", "N", "K"), ("N", "2*K"), ("M + 1",)),
    ),
    Flavour(
        "square",
        tensors(x="T N N", z="T M N", p="T N N K", w="T N", c="T K", b="T? N N", s="T", q="Q N N", r="Q M", ids="I N",
                on="bool N N"),
        (("N", "N"), ("N",), ("N", "K"), ("M", "N"), (), ("N", "N", "K"), ("N", "N", "N")),
    ),
    Flavour(
        "squares",
        tensors(x="T ... N N", z="T ... N", w="T N", v="T N N K", c="T K", b="T? N", q="Q ... N", ids="I N"),
        (("...", "N"), ("...", "N", "N"), ("...",), ("...", "N", "K")),
    ),
    Flavour(
        "rows",
        tensors(x="T ... N", z="T ... K", w="T N", v="T N K", c="T K", b="T? N", s="T", q="Q ... N", ids="I ...",
                on="bool ... N"),
        (("...", "N"), ("...",), ("...", "K"), ("...", "N", "K"), ("...", "2*N")),
    ),
    Flavour(
        "splits",
        tensors(x="T M N", z="T M C", w="T H", v="T K", c="T G", b="T? C", q="Q N", r="Q C", ids="I N", on="bool C"),
        (("M", "C"), ("M", "N"), ("M", "H"), ("H",), ("M", "K"), ("M", "G"), ("C",), ("G", "K")),
        shape={"H": "N // 2", "K": "C // groups", "G": "groups"},
        require=("N % 2 == 0", "C % groups == 0", "C > 0"),
        digits={"C": ("G", "K"), "N": ("H", "2")},
    ),
    Flavour(
        "products",
        tensors(x="T M N", z="T K", w="T N", c="T M", v="T N K", b="T? M", q="Q M N", r="Q K", on="bool M N"),
        (("M*N",), ("N*K",), ("M", "N*K"), ("M", "N"), ("M", "P"), ("K",), ()),
        shape={"P": "N*K"},
        require=("K > 0", "N > 0"),
        digits={"M*N": ("M", "N"), "N*K": ("N", "K"), "P": ("N", "K")},
    ),
    Flavour(
        "derived",
        tensors(x="T M N", z="T N", w="T L", a="T P", c="T K", b="T? N", q="Q M N", r="Q K", ids="I M"),
        (("L",), ("M", "D"), ("P",), ("M", "N"), ("E",), ("N",)),
        shape={"L": "minimum(M, N)", "P": "maximum(N, width)", "D": "N if flag else M", "E": "(N + 2*width - 1) // stride + 1"},
        require=("K > 0",),
    ),
    Flavour(
        "axis",
        tensors(x="T *A N *B", z="T *A *B", a="T *A M *B", w="T N", b="T? N", s="T", q="Q *A N *B", on="bool *A N *B"),
        (("*A", "N", "*B"), ("*A", "*B"), ("N",), ("*A", "N + M", "*B"), ("*A", "2*N", "*B"), ("*A", "M", "*B")),
        axis=True,
    ),
    Flavour(
        "axes",
        tensors(x="T *K *R", z="T *K", w="T *R", v="T *R *K", b="T? *R", s="T", c="T N", q="Q *K *R", ids="I *K *R",
                on="bool *K *R"),
        (("*K", "*R"), ("*K",), ("*R",), (), ("*R", "*K")),
        axes=True,
    ),
    Flavour(
        "placed",
        tensors(x="T *K N M", z="T *K", w="T N", v="T M N", a="T *K M N", c="T M", b="T? M", s="T", q="Q *K N M", ids="I *K",
                on="bool *K N M"),
        (("*K", "M", "N"), ("*K", "N", "M"), ("*K",), ("N", "M"), ("*K", "M + N"), ("M",)),
        placed=True,
    ),
    Flavour(
        "permuted",
        tensors(x="T *R", z="T *R", v="T *R N", w="T N *R", b="T? *R", s="T", c="T N", q="Q *R", ids="I *R", on="bool *R"),
        (("*R",), ("*R", "N"), ("N", "*R"), (), ("N",)),
        permuted=True,
    ),
    Flavour(
        "groups",
        tensors(x="T N *S", z="T *S", w="T N", p="T N K", b="T? N", s="T", q="Q N *S", ids="I N", on="bool *S"),
        (("N", "*S"), ("N",), ("*S",), (), ("K", "*S"), ("N + 1", "*S")),
    ),
    Flavour(
        "image",
        tensors(x="T M C H", w="T K C 3", v="T C 3", b="T? K", c="T C", ids="I M", q="Q M C H"),
        (("M", "C", "H"), ("M", "K", "H"), ("M", "C", "H // 2"), ("M", "K"), ("M", "C", "2*H"), ("C",)),
    ),
    Flavour(
        "broadcast",
        tensors(x="T ...", z="T ...", b="T? ...", q="Q ...", on="bool ..."),
        (("...",),),
        broadcast=True,
    ),
    Flavour(
        "blanket",
        tensors(x="T ... N", z="T ... N", w="T N", v="T N K", b="T? ... N", q="Q ... N", on="bool ... K"),
        (("...", "N"), ("...",), ("...", "K"), ("...", "N", "N")),
        broadcast=True,
    ),
)  # fmt: skip
