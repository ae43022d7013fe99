"""The C++ source of a family's JAX library, over `runtime/include/opc/adapters/jax.h`."""

from __future__ import annotations

from opc.backends.attribute_code import read_packed
from opc.backends.derived import title
from opc.backends.templates import Templates
from opc.emit.abi import attributes_type, function_name, header_path
from opc.emit.cuda.files import refused
from opc.ir.op import Family, Op
from opc.names import in_words
from opc.records import dataclass

MAX_OPERANDS = 32
"""`opc::jax::max_operands`."""

templates = Templates("opc.backends.jax")


@dataclass(frozen=True, slots=True)
class _Op:
    """One op of the family as the template sees it."""

    name: str
    words: str
    title: str
    symbol: str
    inputs: int
    outputs: int
    kernel: str


def symbol(op: Op) -> str:
    """Return the name of an op's handler."""
    return f"opc_jax_{op.name}"


def library_source(family: Family) -> str:
    """Return the text of `jax/<op>_jax.cpp`."""
    return templates.render(
        "library.cpp.j2",
        family,
        header=header_path(family),
        attributes_type=attributes_type(family),
        attributes=[read_packed(a) for a in family.forward.attributes],
        ops=[_op(family, op) for op in family.ops],
        on_cuda=not refused(family),
        source_hash=family.source_hash,
    )


def _op(family: Family, op: Op) -> _Op:
    words, about = in_words(op.name), title(family, op)
    return _Op(op.name, words, about, symbol(op), len(op.inputs), len(op.outputs), function_name(op))
