"""The native code of a spec, line by line with the places that a compiler's messages must lead back to."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.op import CodeLine, Native
from opc.spec.loader import Spec
from opc.spec.native import TARGETS
from opc.spec.text import SourceText


def natives_of(spec: Spec) -> tuple[Native, ...]:
    """Return the native code of a spec by compiler; empty when it has none."""
    if spec.model.native is None:
        return ()
    found = []
    for target in TARGETS:
        model = getattr(spec.model.native, target)
        if model is not None:
            keys = ("code", "declarations")
            code, declarations = (tuple(_lines(spec.text("native", target, k))) if getattr(model, k) else () for k in keys)
            needs = (tuple(model.include), tuple(model.link), tuple(model.packages), tuple(model.pkg_config))
            found.append(Native(target, code, declarations, *needs, spec.source, spec.key_span("native", target)))
    return tuple(found)


def _lines(code: SourceText) -> Iterator[CodeLine]:
    at = 0
    for text in code.value.rstrip().split("\n"):
        # Leading spaces of a folded line stand nowhere in the file: the first other character tells where the line is.
        indent = len(text) - len(text.lstrip())
        span = code.span(at + indent, at + indent + 1)
        yield CodeLine(text.lstrip(), span.line, span.column)
        at += len(text) + 1
