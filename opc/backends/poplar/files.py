"""The files of `poplar/`, which the backends of PopART, PopXL and PopRT share: bodies in Poplar, and the rules of calls."""

from __future__ import annotations

from collections.abc import Iterator

from opc import config
from opc.backends.own import Own
from opc.backends.poplar.attributes import append_line, read_lines, rule_attributes
from opc.backends.poplar.carried import refusals
from opc.backends.poplar.classes import definitions, op_classes
from opc.backends.poplar.recent import of_family
from opc.backends.templates import Templates
from opc.diagnostics import Diagnostic
from opc.emit.abi import attributes_type, header_path
from opc.emit.cpp import layout
from opc.emit.numpy.reference import inexpressible, numpy_module
from opc.emit.poplar.files import poplar_files, refused
from opc.emit.shapes.cpp import rules
from opc.ir.op import Family, camel_case
from opc.records import replace

templates = Templates("opc.backends.poplar")


def requires(family: Family) -> Iterator[Diagnostic]:
    """Yield why no framework on Poplar can carry a family."""
    found = [*refusals(family, "Poplar")]
    yield from found
    # What has no tensors has no body either.
    if not found:
        yield from refused(family)
        yield from inexpressible(family.forward)


@of_family
def shared_files(family: Family) -> dict[str, str]:
    """Return the files of `poplar/` by path: bodies, rules, and the reference in NumPy that scripts compare with."""
    alone = replace(family, backward=None, backward_backward=None, jvp=None, backward_jvp=None)
    return {
        **bodies(family),
        f"poplar/{family.name}_checks.hpp": checks_source(family),
        f"poplar/{family.name}_reference.py": numpy_module(alone),
    }


@of_family
def bodies(family: Family) -> dict[str, str]:
    """Return the bodies of a family in Poplar by path, and the codelets that these place."""
    return poplar_files(family, sdk=config.load().sdk)


def codelets_path(family: Family) -> str:
    """Return the path of the codelets' source, which a package has where a stage needs some."""
    return f"poplar/{family.name}_codelets.cpp"


def has_codelets(family: Family) -> bool:
    """Whether a stage of the family needs codelets."""
    return codelets_path(family) in bodies(family)


def headers(family: Family) -> list[str]:
    """Return the headers that a library includes, relative to its folder."""
    return [f"../poplar/{family.name}_body.hpp", f"../poplar/{family.name}_checks.hpp", f"../{header_path(family)}"]


@of_family
def params_source(family: Family) -> str:
    """Return the text of the struct of attributes, in namespaces that know the body as `body` and the rules as `checks`."""
    op = family.forward
    return templates.render(
        "params.cpp.j2",
        family,
        own=Own(op),
        prefix=camel_case(op.name),
        attributes=bool(op.attributes),
        appended=[append_line(op, a) for a in op.attributes],
        read=[line for a in op.attributes for line in read_lines(family, a)],
        outputs=len(op.outputs),
    )


@of_family
def opx_source(family: Family) -> str:
    """Return the text of the ops' Opx and their registration, with those of the variant in place."""
    return templates.render("opx.cpp.j2", family, classes=op_classes(family), codelets=has_codelets(family))


@of_family
def in_place_regions(family: Family) -> dict[str, str]:
    """Return, by the op's name, the methods of a variant in place that say what it writes over."""
    return {c.name: templates.render("in_place.cpp.j2", family, c=c) for c in op_classes(family) if c.in_place is not None}


@of_family
def methods_source(family: Family) -> dict[str, str]:
    """Return, by the op's name, the methods that tell autodiff of an op, which are the last of its class."""
    return {c.name: templates.render("methods.cpp.j2", family, c=c) for c in op_classes(family)}


def definitions_source(family: Family, *, parameterized: bool) -> str:
    """Return the text that registers the ops with PopART; `parameterized` ones have a factory of their own."""
    classes = op_classes(family)
    return templates.render(
        "definitions.cpp.j2",
        family,
        classes=classes,
        prefix=camel_case(family.name),
        definitions=definitions(classes),
        parameterized=parameterized,
    )


def wrapped(text: str) -> str:
    """Return C++ with its long lines broken."""
    return "\n".join(layout.wrapped(text.split("\n")))


@of_family
def checks_source(family: Family) -> str:
    """Return the text of `poplar/<op>_checks.hpp`."""
    return wrapped(
        templates.render(
            "checks.hpp.j2",
            family,
            guard=f"{family.name.upper()}_CHECKS_HPP",
            header=header_path(family),
            attributes_type=attributes_type(family),
            own=Own(family.forward),
            conversion=rule_attributes(family),
            rules=[rules(family, c.op) for c in op_classes(family)],
        )
    )
