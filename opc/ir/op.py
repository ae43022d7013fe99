"""The typed IR of one op: operands, attributes, dimensions, rules, and a body of assignments in index notation.

An `Op` is what the front end makes from a spec, what `transform` makes from another op (a gradient is an op like any other), and
what lowering, the oracle and the backends read. It knows no framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any, TypeAlias

from opc.diagnostics import NO_SPAN, Source, Span
from opc.ir.affine import Affine, GroupSize, Index
from opc.ir.budget import check_size
from opc.ir.dtypes import DType, ElementType, TypeVar
from opc.ir.expr import Expr, GroupRef
from opc.ir.node import OpNode, interned, remembered, remembering
from opc.names import CLASSES
from opc.records import dataclass, replace


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class Group:
    """A group of axes in an operand's shape: `...` or `*A`; any number of axes, none included.

    In an op with `broadcast`, every operand has a group of its own: `of` names the input whose group this is, and None means the
    shape all of them broadcast to by NumPy's rules. Without `broadcast`, `of` is None and all uses of a group have equal sizes.
    """

    name: str
    of: str | None = None

    def __str__(self) -> str:
        text = "..." if self.name == "..." else f"*{self.name}"
        return text if self.of is None else f"{text}@{self.of}"


DimSpec: TypeAlias = Affine | Group
"""One entry of a shape. An input's entry is a bare dimension or a number; an output's may be any expression over these."""


def size_of(dim: DimSpec) -> Affine:
    """Return the size of an entry of a shape, that of a group as the number of its points."""
    return dim if isinstance(dim, Affine) else Affine.of(GroupSize(dim.name))


@dataclass(frozen=True, slots=True)
class Operand:
    """An input, output or temporary: name, element type and shape.

    An optional input may be absent. An optional output may be left out by the caller: it is then not computed. A temporary that
    is `copied` holds elements of an input as they are stored there, in another order; one of whole numbers may say how large
    their magnitudes are at `most`, or that they are `numbers` of the groups that points are in, see `opc.lower.grouped`. The axes
    of a `permuted` input or output are permuted where its callers have it, see
    `opc.ir.arrangement`.
    """

    name: str
    type: ElementType
    dims: tuple[DimSpec, ...]
    optional: bool = False
    doc: str = ""
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    copied: bool = False
    most: int | None = None
    permuted: bool = False
    numbers: bool = False

    @property
    def sizes(self) -> tuple[Affine, ...]:
        """The size of each entry of the shape, that of a group as the number of its points."""
        return tuple(map(size_of, self.dims))

    def is_shaped_like(self, other: Operand) -> bool:
        """Whether two operands have one shape in every call, where both are given, for callers too."""
        return self.dims == other.dims and self.permuted == other.permuted


class AttributeKind(Enum):
    """The type of an attribute or of the elements of a list attribute."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    STR = "str"
    DTYPE = "dtype"
    AXIS = "axis"


AttributeValue: TypeAlias = int | float | bool | str | tuple[int, ...] | tuple[float, ...] | tuple[bool, ...] | None


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: fixed when the op is called, the same for all points.

    `length` is None for a scalar, a number for `int[2]`, and -1 for `float[]`. `required` attributes have no default. `values`
    lists the strings an enumeration admits. An `axis` places the dimension `dim`; a `dtype` binds the type variable `binds`.
    An axis with `among` places one among the axes of that group: the first one of an operand where the number is 0. A list of
    ints with `picks` names axes: those of the first group among the axes of both groups, see `opc.ir.arrangement`. A bool with
    `keeps` says whether operands without that group have axes of size 1 in its place. A list of ints that `permutes` a group says
    in which order operands have its axes. An int with `told` is a size of outputs that data tells where a caller does not.
    """

    name: str
    kind: AttributeKind
    length: int | None = None
    required: bool = True
    default: AttributeValue = None
    values: tuple[str, ...] = ()
    dim: str | None = None
    binds: str | None = None
    picks: tuple[str, str] | None = None
    keeps: str | None = None
    among: tuple[str, int] | None = None
    permutes: str | None = None
    told: bool = False
    check: Expr | None = None
    check_text: str = ""
    doc: str = ""
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def python_kind(self) -> str:
        """What tables of generated Python call the kind of value: `axes` where a number stands for a list of this one."""
        return self.kind.value if self.picks is None else "axes"


@dataclass(frozen=True, slots=True)
class Assign:
    """`target[indices] = value` at every point of the target's shape; each entry of `indices` is a bare index name or a group."""

    target: str
    indices: tuple[str | GroupRef, ...]
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    def with_value(self, value: Expr) -> Assign:
        """Return the statement with another value; itself where that is the one it has."""
        return self if value is self.value else Assign(self.target, self.indices, value, self.span)


def own_indices(statement: Assign) -> tuple[Affine | GroupRef, ...]:
    """Return the indices of a read at the point that a statement assigns."""
    return tuple(Affine.of(Index(i)) if isinstance(i, str) else i for i in statement.indices)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on dimensions and attributes that must hold, with its source text for the error message.

    One of a `step` holds within the loop that counts it, and is not known elsewhere: the loop may have no steps.
    """

    condition: Expr
    text: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    step: str = ""


class Role(Enum):
    """What an input of a derived op stands for in the op it was derived from."""

    INPUT = "input"
    """An input of the original op, saved."""
    OUTPUT = "output"
    """An output of the original op, saved."""
    COTANGENT = "cotangent"
    """The gradient arriving at an output of the original op."""
    TANGENT = "tangent"
    """The tangent of an input of the original op."""


class Ties(Enum):
    """To which of several equal elements the gradient of a max or min goes."""

    FIRST = "first"
    """To the first, in row-major order."""
    EVEN = "even"
    """To all of them, in equal shares."""


class ScatterMode(Enum):
    """How the sums of a scatter may be computed."""

    DETERMINISTIC = "deterministic"
    """In an order that does not change from call to call."""
    ATOMIC = "atomic"
    """In any order, by atomic additions."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a derived op came about: `kind` is "vjp" or "jvp", `order` how many derivations it is away from the op of the spec.

    `inputs` tells for every input of the derived op, in order, its role and the operand of the original op it belongs to.
    `outputs` tells for every output the operand it is the gradient of (vjp: an input; jvp: an output).
    """

    kind: str
    of: str
    inputs: tuple[tuple[Role, str], ...]
    outputs: tuple[str, ...]
    order: int = 1


@remembering
@dataclass(frozen=True, slots=True)
class Op(OpNode):
    """One op. Statement order is program order; every temporary and output is assigned once.

    `dims` holds the derived dimensions of `shape:` in order; the other dimensions are bound by the inputs. `inplace` maps an
    output to the input whose memory it may reuse, already proved legal. An op with native code and no body names what computes
    the same (`stands_for`). `sizes` computes, of the same inputs, the int attributes that a caller may leave to data: each is
    an output of it, an int64 scalar called `size_name(attribute)`. `ties` tells how the op and those derived from it are
    differentiated, `scatter` how sums over data-dependent positions may be computed. `onnx_name` is empty where the op type
    follows from the name. `rules` has the text under `shape:` of each derived dimension, for messages.
    """

    name: str
    domain: str
    version: int
    doc: str
    types: tuple[TypeVar, ...]
    inputs: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[Operand, ...]
    temporaries: tuple[Operand, ...]
    dims: tuple[tuple[str, Affine], ...]
    require: tuple[Requirement, ...]
    body: tuple[Assign, ...]
    broadcast: bool = False
    inplace: tuple[tuple[str, str], ...] = ()
    derivation: Derivation | None = None
    stands_for: Reference | None = None
    sizes: Op | None = None
    ties: Ties = Ties.FIRST
    scatter: ScatterMode = ScatterMode.DETERMINISTIC
    onnx_name: str = ""
    rules: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_size(self.name, self.body)

    def with_body(self, body: tuple[Assign, ...]) -> Op:
        """Return the op with another body; itself, with all that is remembered of it, where that is the one it has."""
        same = len(body) == len(self.body) and all(a is b for a, b in zip(body, self.body))
        return self if same else replace(self, body=body)

    @property
    def opaque(self) -> bool:
        """Whether nothing is known of the op but its signature: it has native code and no body."""
        return not self.body

    @property
    def class_name(self) -> str:
        """The ONNX op type: what the spec says, else the name of Python classes that are made of the op."""
        return self.onnx_name or self.python_class

    @property
    def python_class(self) -> str:
        """The name in CamelCase: `leaky_relu` -> `LeakyRelu`, and `none` -> `NoneOp`, for `None` is kept for something else."""
        own = camel_case(self.name)
        return f"{own}Op" if own in CLASSES else own

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The inputs, the outputs and the temporaries."""
        return (*self.inputs, *self.outputs, *self.temporaries)

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of each attribute in the op's order, the default of one that is not given."""
        return {a.name: given.get(a.name, a.default) for a in self.attributes}

    def input(self, name: str) -> Operand:
        """Return the input of that name; KeyError when there is none."""
        return _named(self.inputs, name)

    def output(self, name: str) -> Operand:
        """Return the output of that name; KeyError when there is none."""
        return _named(self.outputs, name)

    @property
    def told(self) -> tuple[str, ...]:
        """The names of the int attributes that data tells where a caller does not give them."""
        return () if self.sizes is None else tuple(o.name.removeprefix(_SIZE_OF) for o in self.sizes.outputs)

    def operand(self, name: str) -> Operand:
        """Return the input, output or temporary of that name; KeyError when there is none."""
        return _operands(self)[name]

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of that name; KeyError when there is none."""
        for a in self.attributes:
            if a.name == name:
                return a
        raise KeyError(name)

    @property
    def sharing(self) -> frozenset[str]:
        """The names of the inputs that have a group of their own: all of them together tell what they broadcast to."""
        own = (o for o in self.inputs if any(isinstance(d, Group) and d.of is not None for d in o.dims))
        return frozenset(o.name for o in own)

    @property
    def assignments(self) -> Mapping[str, Assign]:
        """The statement that defines each temporary and output."""
        return _assignments(self)


_SIZE_OF = "size_of_"


def size_name(attribute: str) -> str:
    """Return what the op of the sizes that data tells calls its output for an attribute."""
    return f"{_SIZE_OF}{attribute}"


def camel_case(name: str) -> str:
    """Return a snake_case name in CamelCase."""
    return "".join(part.capitalize() for part in name.split("_"))


@remembered("_assignments", often=True)
def _assignments(op: Op) -> Mapping[str, Assign]:
    return {s.target: s for s in op.body}


@remembered("_declared", often=True)
def _operands(op: Op) -> Mapping[str, Operand]:
    return {o.name: o for o in op.operands}


def _named(operands: tuple[Operand, ...], name: str) -> Operand:
    return {o.name: o for o in operands}[name]


@dataclass(frozen=True, slots=True)
class Example:
    """One worked example of a spec: values of inputs, attributes and outputs by name, as nested lists and scalars.

    Of the attributes, those in `told` are sizes that the outputs show, and that data is to tell.
    """

    values: tuple[tuple[str, object], ...]
    told: tuple[str, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """Independent references: operators of the default ONNX domain, or calls of them, and a torch expression over the op's
    names."""

    onnx: tuple[str, ...] = ()
    torch: str | None = None

    @property
    def standard(self) -> str | None:
        """The ONNX operator whose inputs, outputs and attributes are the op's own, in order and by name; None without one."""
        return self.onnx[0] if len(self.onnx) == 1 and self.onnx[0].isalnum() else None


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line of native code and where it stands in the spec: 1-based line and column of its first character."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Native:
    """Code of the spec's author that runs in place of an op's body, or that is all there is of it.

    `target` is the compiler it is for: cpp, torch (C++ on at::Tensor) or cuda. `code` are statements, `declarations` what stands
    before the function they are in. `include` are headers; `link` are libraries; `packages` are the distributions and
    `pkg_config` the modules that bring them. `source` is the spec, `span` where it has the code's key.
    """

    target: str
    code: tuple[CodeLine, ...]
    declarations: tuple[CodeLine, ...] = ()
    include: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    pkg_config: tuple[str, ...] = ()
    source: Source | None = field(default=None, compare=False, repr=False)
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BackendName:
    """What one backend calls the op: `name` or `domain::name`."""

    backend: str
    name: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Family:
    """Everything opc knows of one spec: the op and the ops derived from it.

    `backward` is None for an op without gradient. `backward_backward` is the vjp of `backward`; `jvp` and `backward_jvp` push
    tangents through `forward` and `backward`. `explicit_backward` is True when the spec gave the gradient's body. `surrogates`
    are the names of ops whose vjp is not their derivative but another one in its place, as the spec says.
    `native` is the code that computes the forward op in place of its body, where the spec has some; an op without a body has
    some for every compiled backend, and no `jvp`. `names` are what single backends call the op. `source_hash` is the SHA-256 of
    the spec's text.
    """

    forward: Op
    backward: Op | None = None
    backward_backward: Op | None = None
    jvp: Op | None = None
    backward_jvp: Op | None = None
    explicit_backward: bool = False
    surrogates: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    reference: Reference = Reference()
    native: tuple[Native, ...] = ()
    names: tuple[BackendName, ...] = ()
    source_hash: str = ""
    source_name: str = ""

    @property
    def name(self) -> str:
        """The name of the forward op."""
        return self.forward.name

    @property
    def gradient_origin(self) -> str:
        """Where the gradient is from, in words."""
        where = "given by the spec" if self.explicit_backward else "derived"
        return f"{where}, a surrogate of the derivative" if self.name in self.surrogates else where

    @property
    def written(self) -> tuple[Op, ...]:
        """The ops whose bodies the spec has: the forward op, and the backward op where its body is given."""
        return (self.forward, self.backward) if self.explicit_backward and self.backward is not None else (self.forward,)

    def name_for(self, backend: str) -> str | None:
        """Return what the spec says that a backend calls the op, `name` or `domain::name`; None where it says nothing."""
        return next((n.name for n in self.names if n.backend == backend), None)

    def native_for(self, target: str) -> Native | None:
        """Return the forward op's native code for a compiler, None when there is none."""
        return next((n for n in self.native if n.target == target), None)

    @property
    def ops(self) -> tuple[Op, ...]:
        """The forward op, every derived op there is, and the op of the forward op's sizes; forward first."""
        derived = (self.backward, self.backward_backward, self.jvp, self.backward_jvp)
        every = (self.forward, *derived, self.forward.sizes)
        return tuple(op for op in every if op is not None)


__all__ = [
    "Assign",
    "Attribute",
    "AttributeKind",
    "AttributeValue",
    "BackendName",
    "CodeLine",
    "DType",
    "Derivation",
    "DimSpec",
    "Example",
    "Family",
    "Group",
    "Native",
    "Op",
    "Operand",
    "Reference",
    "Requirement",
    "Role",
    "ScatterMode",
    "Ties",
    "camel_case",
    "size_name",
]
