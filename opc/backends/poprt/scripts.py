"""The files of a family for PopRT: shape inference, a model with the op, and how it is built and run."""

from __future__ import annotations

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends.poplar.carried import carried_family
from opc.backends.poplar.files import has_codelets, headers
from opc.backends.poplar.python_side import onnx_numbers
from opc.backends.poplar.sample_call import SampleCall, sample_call
from opc.backends.templates import Templates
from opc.emit.python.text import Bracket, literal, quoted
from opc.emit.shapes import python as shape_python
from opc.ir.dtypes import DType, candidates
from opc.ir.op import Attribute, AttributeKind, Family, Group, Operand

templates = Templates("opc.backends.poprt")

_CONVERT = {
    AttributeKind.INT: "int",
    AttributeKind.AXIS: "int",
    AttributeKind.BOOL: "bool",
    AttributeKind.FLOAT: "float",
    AttributeKind.STR: "text",
    AttributeKind.DTYPE: "DTYPES.get",
}


def files(family: Family) -> dict[str, str]:
    """Return the files of `poprt/` by path. PopRT runs inference alone: what is derived from the op stays out."""
    alone = carried_family(family)
    codelets = has_codelets(family)
    return {
        "poprt/custom_shape_inference.py": _shape_inference(alone),
        f"poprt/{family.name}_shapes.py": shape_python.emit(alone),
        "poprt/create_onnx_with_custom_op.py": _model(alone),
        "poprt/run_poprt.sh": templates.render("run_poprt.sh.j2", family),
        "poprt/Makefile": templates.render("Makefile.j2", family, codelets=codelets, headers=headers(family)),
    }


def _shape_inference(family: Family) -> str:
    op = family.forward
    chosen = [quoted(a.name) for a in op.attributes if a.kind is AttributeKind.DTYPE]
    converters = [f"{quoted(a.name)}: {_CONVERT[a.kind]}" for a in op.attributes]
    return templates.render(
        "custom_shape_inference.py.j2",
        family,
        ranks=Bracket("(", [str(least_rank(x)) for x in op.inputs], ")", single=True).render(before=len("RANKS = ")),
        numbers=onnx_numbers(),
        converters=Bracket("ATTRIBUTES = {", converters, "}").render(),
        chosen=Bracket("(", chosen, ")", single=True).render(before=len("CHOSEN = ")) if chosen else "",
        op_type=quoted(op.class_name),
        class_name=op.class_name,
    )


def least_rank(x: Operand) -> int:
    """Return the fewest axes that an operand may have."""
    return sum(not isinstance(d, Group) for d in x.dims)


def _model(family: Family) -> str:
    op = family.forward
    call = sample_call(family)
    infos = [_info(n, *given) for n in call.given if (given := call.shapes[n]) is not None]
    return templates.render(
        "create_onnx_with_custom_op.py.j2",
        family,
        op_type=quoted(op.class_name),
        domain=quoted(op.domain),
        version=op.version,
        inputs=Bracket("[", [quoted(n if call.shapes[n] is not None else "") for n in call.given], "]").render(8),
        outputs=Bracket("[", [quoted(o.name) for o in op.outputs], "]").render(8),
        attributes=[
            f"{a.name}={_node_value(a, call.values[a.name])}" for a in op.attributes if call.values[a.name] not in ((), [])
        ],
        infos=infos,
        results=[_result(family, call, o) for o in op.outputs],
    )


def _info(name: str, dtype: DType, shape: tuple[int, ...]) -> str:
    number = "UNDEFINED" if dtype.row.onnx is None else dtype.row.onnx[0]
    return f"helper.make_tensor_value_info({quoted(name)}, onnx.TensorProto.{number}, {literal(shape)})"


def _result(family: Family, call: SampleCall, output: Operand) -> str:
    """Return the declaration of an output of the model; without sizes where the call's are not known."""
    op = family.forward
    dtype = next((given[0] for x in op.inputs if x.type == output.type and (given := call.shapes[x.name]) is not None), None)
    found = candidates(output.type)
    dtype = dtype or (DType.FLOAT32 if DType.FLOAT32 in found else found[0])
    shapes = {n: None if given is None else given[1] for n, given in call.shapes.items()}
    try:
        sizes = infer(op, shapes, {n: v for n, v in call.values.items() if v is not None}).outputs.get(output.name)
    except ShapeError:
        sizes = None
    number = "UNDEFINED" if dtype.row.onnx is None else dtype.row.onnx[0]
    shape = "None" if sizes is None else literal(tuple(sizes))
    return f"helper.make_tensor_value_info({quoted(output.name)}, onnx.TensorProto.{number}, {shape})"


def _node_value(a: Attribute, value: object) -> str:
    """Return the literal of an attribute as a node holds it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_node_value(a, v) for v in value)}]"
    if a.kind is AttributeKind.DTYPE:
        number = DType(str(value)).row.onnx
        return "0" if number is None else str(number[1])
    if a.kind is AttributeKind.FLOAT and isinstance(value, int | float):
        return literal(float(value))
    return literal(int(value) if isinstance(value, bool) else value)
