"""A family's PopART library, which PopRT's models load too: its source and how it is built.

The source is over `runtime/include/opc/adapters/popart.h`.
"""

from __future__ import annotations

from opc.backends.base import BuildStep, Compile, Link, Tool
from opc.backends.poplar import sdk
from opc.backends.poplar.classes import op_classes
from opc.backends.poplar.files import (
    codelets_path,
    definitions_source,
    has_codelets,
    in_place_regions,
    methods_source,
    opx_source,
    params_source,
    templates,
    wrapped,
)
from opc.backends.poplar.recent import of_family
from opc.ir.op import Family, camel_case

FLAGS = ("-std=c++14", "-Wall", "-Wextra", "-DONNX_NAMESPACE=onnx")
"""What libraries are compiled with beside the SDK's own arguments."""

HEADER = "opc/adapters/popart.h"
"""What a library's source includes first."""

ALSO = tuple(f"opc/poplar/{name}.h" for name in ("convolution", "placing", "codelets_file"))
"""What some sources include later."""


def source_path(family: Family) -> str:
    """Return the path of the library's source, relative to the package directory."""
    return f"popart/{family.name}_custom_op.cpp"


def library_path(family: Family) -> str:
    """Return the path of the built library, relative to the package directory."""
    return f"build/lib{family.name}_popart.so"


def build_steps(family: Family) -> tuple[BuildStep, ...]:
    """Return the steps that make the library, and its codelets where it has some.

    Raises:
        SpecError: when there is no SDK.
    """
    used = sdk.need()
    compiled = compile_step(family, used)
    return (compiled, Link((compiled.object,), library_path(family), used.link), *codelet_steps(family, used))


def compile_step(family: Family, used: sdk.Sdk) -> Compile:
    """Return the step that compiles the library's source."""
    return Compile(
        source_path(family),
        f"build/{family.name}_popart.o",
        (*FLAGS, *used.flags),
        glue=True,
        header=HEADER,
        kept=used.kept,
        also=ALSO,
        inlined=used.include,
    )


def codelet_steps(family: Family, used: sdk.Sdk) -> tuple[BuildStep, ...]:
    """Return the step that compiles the codelets, which lie beside the library; none where the family needs none."""
    if not has_codelets(family):
        return ()
    include = sdk.runtime() / "include"
    reads = tuple(str(path) for path in sorted((include / "opc" / "poplar").glob("codelet*.h")))
    # The emulation runs small calls, which optimising would take longer than it saves.
    command = (used.popc, "-O0" if used.emulated else "-O3", f"-I{include}")
    return (Tool(command, codelets_path(family), f"build/{family.name}_codelets.gp", reads),)


@of_family
def library_source(family: Family) -> str:
    """Return the text of `popart/<op>_custom_op.cpp`."""
    classes = op_classes(family)
    text = templates.render(
        "custom_op.cpp.j2",
        family,
        prefix=camel_case(family.name),
        classes=classes,
        forward=classes[0],
        inferring=not all(c.gaps for c in classes),
        codelets=has_codelets(family),
        params=params_source(family),
        opx=opx_source(family),
        in_place_regions=in_place_regions(family),
        methods=methods_source(family),
        definitions=definitions_source(family, parameterized=False),
    )
    return wrapped(text)
