"""The C++ source of a family's PopART library, over `runtime/include/opc/adapters/popart.h`."""

from __future__ import annotations

from opc.backends.poplar.classes import op_classes
from opc.backends.poplar.files import definitions_source, methods_source, opx_source, params_source, wrapped
from opc.backends.templates import Templates
from opc.ir.op import Family, camel_case

templates = Templates("opc.backends.popart")


def library_source(family: Family) -> str:
    """Return the text of `popart/<op>_custom_op.cpp`."""
    classes = op_classes(family)
    text = templates.render(
        "custom_op.cpp.j2",
        family,
        prefix=camel_case(family.name),
        classes=classes,
        forward=classes[0],
        params=params_source(family),
        opx=opx_source(family, in_place=True),
        methods=methods_source(family),
        definitions=definitions_source(family, parameterized=False),
    )
    return wrapped(text)
