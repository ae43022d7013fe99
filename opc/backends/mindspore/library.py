"""The C++ source of a family's MindSpore library, over `runtime/include/opc/adapters/mindspore.h`."""

from __future__ import annotations

from collections.abc import Iterator

from opc.backends.attribute_code import read_packed
from opc.backends.derived import title
from opc.backends.templates import Templates
from opc.emit.abi import attributes_type, function_name, header_path, infer_name
from opc.emit.cuda.files import refused
from opc.emit.kernel.native import header_path as native_header_path
from opc.emit.kernel.native import torch_function
from opc.emit.shapes.cpp_types import types_definition, types_name
from opc.emit.shapes.output_axes import OutputAxes
from opc.ir.dtypes import Acc, DType, ElementType
from opc.ir.op import Family, Native, Op
from opc.records import dataclass

MAX_OPERANDS = 32
"""`opc::mindspore::max_operands`."""


templates = Templates("opc.backends.mindspore")


@dataclass(frozen=True, slots=True)
class _Shape:
    """The array that describes one output's axes, and its entries."""

    name: str
    entries: list[str]


@dataclass(frozen=True, slots=True)
class _Op:
    """One op of the family as the template sees it.

    `symbol` is the function MindSpore calls; an op with `several` outputs declared returns a tuple, also of one that is wanted.
    """

    name: str
    symbol: str
    title: str
    inputs: int
    outputs: int
    several: bool
    types: str
    types_name: str
    sample: list[str]
    shapes: list[_Shape]
    axis: str | None
    kernel: str
    infer: str

    @property
    def margin(self) -> str:
        """The indent of the parameters of the function that infers types."""
        return " " * len(f"OPC_EXPORT int32_t {self.symbol}Types(")

    @property
    def run_margin(self) -> str:
        """The blanks below the parameters of the function that computes."""
        return " " * len(f"OPC_EXPORT int {self.symbol}(")


@dataclass(frozen=True, slots=True)
class _Init:
    """One op of the family as the template of the library for GPUs sees it."""

    name: str
    symbol: str


def symbol(op: Op) -> str:
    """Return the name of the function that computes an op for MindSpore: `LeakyRelu`."""
    return op.class_name


def is_several(op: Op) -> bool:
    """Whether the op returns a tuple: it has more than one output declared."""
    return len(op.outputs) > 1


def native_code(family: Family) -> Native | None:
    """Return the code on at::Tensor that MindSpore's library runs in place of the kernel, None where there is none.

    C++ code of the spec's author needs no other framework, and goes first.
    """
    return None if family.native_for("cpp") else family.native_for("torch")


def library_source(family: Family) -> str:
    """Return the text of `mindspore/<op>_mindspore.cpp`."""
    native = native_code(family) is not None
    return templates.render(
        "library.cpp.j2",
        family,
        header=native_header_path(family) if native else header_path(family),
        attributes_type=attributes_type(family),
        attributes=[read_packed(a) for a in family.forward.attributes],
        ops=[_op(family, op, torch_function(op) if native and op is family.forward else function_name(op)) for op in family.ops],
    )


def cuda_files(family: Family) -> dict[str, str]:
    """Return the library for GPUs, by its path in the package; nothing for a family that has no kernels there."""
    if refused(family):
        return {}
    ops = [_Init(op.name, symbol(op)) for op in family.ops]
    return {f"mindspore/{family.name}_mindspore.cu": templates.render("library.cu.j2", family, ops=ops)}


def threads_source(family: Family) -> str:
    """Return the text of `mindspore/threads.c`."""
    return templates.render("threads.c.j2", family)


def _op(family: Family, op: Op, kernel: str) -> _Op:
    axes = OutputAxes(op)
    return _Op(
        name=op.name,
        symbol=symbol(op),
        title=title(family, op),
        inputs=len(op.inputs),
        outputs=len(op.outputs),
        several=is_several(op),
        types=types_definition(family, op),
        types_name=types_name(op),
        sample=list(_sample(op)),
        shapes=[_Shape(f"{op.name}_{o.name}_axes", axes.output(o)) for o in op.outputs],
        axis=axes.axis.name if axes.axis else None,
        kernel=kernel,
        infer=infer_name(op),
    )


def _sample(op: Op) -> Iterator[str]:
    """Yield the statements that give each input a dtype that fits."""
    bound = {a.binds: f"static_cast<opc::dtype>(attributes.{a.name})" for a in op.attributes if a.binds is not None}

    def element(t: ElementType) -> str:
        match t:
            case DType():
                return f"opc::dtype_{t}"
            case Acc():
                return f"opc::accumulator_dtype({element(t.of)})"
            case _:
                return bound.get(t.name) or f"opc::dtype_{t.dtypes[0]}"

    for i, o in enumerate(op.inputs):
        yield f"types[{i}] = {element(o.type)};"
