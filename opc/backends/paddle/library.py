"""The C++ source of a family's Paddle library, over `runtime/include/opc/adapters/paddle.h`."""

from __future__ import annotations

from collections.abc import Sequence

from opc.backends.attribute_code import read_attribute
from opc.backends.derived import derivation, gradient_of
from opc.backends.paddle import tensorrt
from opc.backends.paddle.signature import MASK, attribute_type, has_mask, in_place_name, likes
from opc.backends.paddle_names import operator_name
from opc.backends.templates import Templates
from opc.emit.abi import attributes_type, function_name, header_path, infer_name
from opc.emit.cpp.layout import wrap
from opc.emit.cpp.text import WIDTH, string_literal
from opc.emit.cuda.files import refused
from opc.emit.shapes.output_axes import OutputAxes
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar, candidates
from opc.ir.op import AttributeKind, Family, Op, Operand, Role
from opc.records import dataclass, replace

templates = Templates("opc.backends.paddle")


@dataclass(frozen=True, slots=True)
class _Registration:
    """One use of Paddle's macros: `macro` with the operator's `name`, and what its calls take."""

    macro: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[str]
    op: str
    in_place: tuple[str, ...] = ()
    tensorrt: tuple[str, ...] = ()

    @property
    def calls(self) -> list[str]:
        """The calls that follow the macro."""
        lists: dict[str, Sequence[str]] = {"Inputs": self.inputs, "Outputs": self.outputs, "Attrs": self.attributes}
        lists |= {"SetInplaceMap": self.in_place} if self.in_place else {}
        kernel, shapes, types = f"kernel<{self.op}>", f"infer_shapes<{self.op}>", f"infer_types<{self.op}>"
        if self.in_place:
            kernel, shapes, types = f"kernel_in_place<{self.op}, in_place>", "no_shapes", "no_types"
        functions = {"SetKernelFn": kernel, "SetInferShapeFn": shapes, "SetInferDtypeFn": types}
        texts = [_list(method, items) for method, items in lists.items()]
        return [*texts, *(f"    .{method}(opc::pd::{function})" for method, function in functions.items())]

    @property
    def tensorrt_calls(self) -> list[str]:
        """The calls by which Paddle runs the operator inside TensorRT; none where it can't."""
        formats = [string_literal(text) for text in self.tensorrt]
        shapes = f"    .SetTrtInferShapeFn(opc::pd::tensorrt_sizes<{self.op}, expressions>)"
        return [shapes, _list("SetTrtSupportsFormatConfig", formats)] if formats else []


@dataclass(frozen=True, slots=True)
class _PaddleOperator:
    """One op of the family as the template sees it."""

    name: str
    inputs: int
    outputs: int
    mask: bool
    optional: str
    shapes: list[tuple[str, list[str]]]
    some_types: list[str]
    types: list[str]
    infer: str
    kernel: str


def library_source(family: Family) -> str:
    """Return the text of `paddle/<op>_paddle.cpp`."""
    op = family.forward
    return templates.render(
        "library.cpp.j2",
        family,
        header=header_path(family),
        attributes_type=attributes_type(family),
        choices=[(a.name, ", ".join(map(string_literal, a.values))) for a in op.attributes if a.values],
        attributes=[read_attribute(a, named=True) for a in op.attributes],
        attributed=_attributed(op),
        operators=[_operator(op) for op in family.ops],
        gradients=_gradient_ops(family),
        in_place=in_place_positions(op),
        registrations=_registrations(family),
        has_tensorrt=bool(tensorrt.formats(op)),
        tensorrt_operands=tensorrt.operands(op),
        tensorrt_sizes=[line for call in tensorrt.size_calls(op) for line in wrap(f"  {call}")],
    )


def _attributed(op: Op) -> str:
    """Return the value of the `opc::Attributed` of a call; empty where no attribute says anything of axes."""
    axis = next((a.name for a in op.attributes if a.kind is AttributeKind.AXIS), None)
    how = arrangement(op)
    if how is not None and how.slots:
        return f"{{{{{', '.join(f'attributes.{name}' for name in how.attributes)}}}, true}}"
    if how is not None:
        keeps = "false" if how.keeps is None else f"attributes.{how.keeps} != 0"
        return f"{{attributes.{how.axes}, attributes.{how.axes}_length, {keeps}}}"
    return "" if axis is None else f"{{attributes.{axis}}}"


def _operator(op: Op) -> _PaddleOperator:
    axes = OutputAxes(op)
    optional = ["true" if x.optional and x.dims else "false" for x in op.inputs]
    binders = {a.binds: a.name for a in op.attributes if a.kind is AttributeKind.DTYPE and a.binds}
    return _PaddleOperator(
        name=op.name,
        inputs=len(op.inputs),
        outputs=len(op.outputs),
        mask=has_mask(op),
        optional="\n".join(wrap(f"constexpr bool {op.name}_optional[] = {_texts(optional)};")),
        shapes=[(o.name, axes.output(o)) for o in op.outputs],
        some_types=[f"inputs[{i}] = {_some_type(x.type, binders)};" for i, x in enumerate(op.inputs)],
        types=[f"outputs[{i}] = {_type(o.type, op, binders)};" for i, o in enumerate(op.outputs)],
        infer=infer_name(op),
        kernel=function_name(op),
    )


def _some_type(t: ElementType, binders: dict[str, str]) -> str:
    """Return one element type that an input may have, as C++."""
    match t:
        case TypeVar() if t.name in binders:
            return f"static_cast<opc::dtype>(attributes.{binders[t.name]})"
        case Acc():
            return f"opc::pd::acc({_some_type(t.of, binders)})"
        case _:
            return f"opc::dtype_{candidates(t)[0]}"


def _type(t: ElementType, op: Op, binders: dict[str, str]) -> str:
    """Return an output's element type as C++, from the inputs' or an attribute."""
    match t:
        case DType():
            return f"opc::dtype_{t}"
        case Acc():
            return f"opc::pd::acc({_type(t.of, op, binders)})"
        case _ if t.name in binders:
            return f"static_cast<opc::dtype>(attributes.{binders[t.name]})"
    having = [(i, x) for i, x in enumerate(op.inputs) if x.type == t]
    # One that is always given need not be followed by others.
    given = next((n for n, (_, x) in enumerate(having) if not x.optional), len(having))
    found = [f"inputs[{i}]" for i, _ in having[: given + 1]]
    return found[0] if len(found) == 1 else f"opc::pd::first({', '.join(found)})"


def _texts(items: Sequence[str]) -> str:
    return f"{{{', '.join(items)}}}"


def _list(method: str, items: Sequence[str]) -> str:
    """Return a call of the registration with a list, one item a line where it would be too long."""
    line = f"    .{method}({_texts(items)})"
    if len(line) <= WIDTH:
        return line
    rows = "".join(f"        {item},\n" for item in items)
    return f"    .{method}({{\n{rows}    }})"


def _registrations(family: Family) -> list[_Registration]:
    """Return every use of Paddle's macros.

    The forward op has its gradient and the gradient of that, for graphs. Each op of the family is an operator of its own too,
    which has none.
    """
    found = []
    for op in family.ops:
        plain = _plain(family, op)
        if op is family.forward:
            found.append(replace(plain, tensorrt=tensorrt.formats(op)))
            found += _gradients(family)
            if in_place_positions(op) is not None:
                found.append(_in_place(family))
        else:
            found.append(plain)
    return found


def _attributes(op: Op) -> list[str]:
    named = [string_literal(f"{a.name}: {attribute_type(a)}") for a in op.attributes]
    return [*named, *([string_literal(f"{MASK}: std::vector<int64_t>")] if has_mask(op) else [])]


def _input_name(x: Operand) -> str:
    return f"paddle::Optional({string_literal(x.name)})" if x.optional else string_literal(x.name)


def _plain(family: Family, op: Op) -> _Registration:
    return _Registration(
        macro="PD_BUILD_OP",
        name=operator_name(family, op),
        inputs=[_input_name(x) for x in op.inputs],
        outputs=[string_literal(o.name) for o in op.outputs],
        attributes=_attributes(op),
        op=f"{op.name}_op",
    )


def in_place_positions(op: Op) -> str | None:
    """Return the position of the input each output is written to, None when not all outputs may be written in place."""
    pairs = dict(op.inplace)
    names = [x.name for x in op.inputs]
    if not pairs or set(pairs) != {o.name for o in op.outputs}:
        return None
    return ", ".join(str(names.index(pairs[o.name])) for o in op.outputs)


def _in_place(family: Family) -> _Registration:
    """Return the operator that writes to its inputs."""
    op = family.forward
    pairs = tuple(_texts([string_literal(i), string_literal(o)]) for o, i in op.inplace)
    return replace(_plain(family, op), name=in_place_name(family), in_place=pairs)


def gradient_names(op: Op, gradient: Op, of: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the C++ expressions for the names of a gradient's inputs and outputs in Paddle's convention.

    `of` gives the expression of each operand of the differentiated op.
    """
    inputs, outputs = [], []
    for role, name in derivation(gradient).inputs:
        inputs.append(f"paddle::Grad({of[name]})" if role is Role.COTANGENT else of[name])
    for name in derivation(gradient).outputs:
        # Paddle gives the second gradient with respect to a forward operand a name of its own.
        fresh = f"paddle::New({of[name]})" if op.derivation is not None and "Grad(" not in of[name] else of[name]
        outputs.append(f"paddle::Grad({fresh})")
    return inputs, outputs


def _gradients(family: Family) -> list[_Registration]:
    """Return the registrations of the gradient and the second gradient of the forward op."""
    op, name = family.forward, operator_name(family, family.forward)
    of = {o.name: string_literal(o.name) for o in op.outputs}
    of |= {x.name: _input_name(x) for x in op.inputs}
    found = []
    for macro, base in (("PD_BUILD_GRAD_OP", op), ("PD_BUILD_DOUBLE_GRAD_OP", family.backward)):
        gradient = None if base is None else gradient_of(family, base)
        if base is None or gradient is None:
            break
        inputs, outputs = gradient_names(base, gradient, of)
        found.append(_Registration(macro, name, inputs, outputs, _attributes(op), f"{gradient.name}_gradient"))
        pairs = zip(gradient.inputs, inputs, strict=True)
        backward = zip(gradient.outputs, outputs, strict=True)
        of = {x.name: text for x, text in pairs} | {o.name: text for o, text in backward}
    return found


@dataclass(frozen=True, slots=True)
class _Gradient:
    """An op of the family as the gradient of another: `likes` are the positions of `opc::pd::Op::like`, None for no array."""

    name: str
    likes: str | None


def _gradient_ops(family: Family) -> list[_Gradient]:
    found = []
    for op in (family.forward, family.backward):
        gradient = None if op is None else gradient_of(family, op)
        if op is None or gradient is None:
            break
        names = [x.name for x in gradient.inputs]
        positions = [-1 if like is None else names.index(like) for like in likes(op, gradient)]
        found.append(_Gradient(gradient.name, ", ".join(map(str, positions)) if max(positions) >= 0 else None))
    return found


def cuda_files(family: Family) -> dict[str, str]:
    """Return the library for GPUs, by its path in the package; nothing for a family that has no kernels there."""
    return {} if refused(family) else {f"paddle/{family.name}_paddle.cu": templates.render("library.cu.j2", family)}


def threads_source(family: Family) -> str:
    """Return the text of `paddle/threads.c`."""
    return templates.render("threads.c.j2", family)
