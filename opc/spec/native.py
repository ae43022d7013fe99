"""What must go together when a spec has native code: the checks that need no language."""

from __future__ import annotations

from collections.abc import Callable

from opc.diagnostics import Diagnostics, Span
from opc.spec.model import SpecModel

TARGETS = ("cpp", "torch", "cuda")
"""The compilers native code may be for."""


def check_native(model: SpecModel, key_span: Callable[[tuple[str | int, ...]], Span], found: Diagnostics) -> None:
    """Record what is missing or contradicts itself; `key_span` gives the place of a key of the file."""
    native = model.native
    if native is None:
        if model.kernel is None:
            hint = "an op without one has native code and a torch reference"
            found.error("the key 'kernel' is missing", key_span(("op",)), hint)
        return
    given = [(name, code) for name in TARGETS if (code := getattr(native, name)) is not None]
    if not given:
        found.error("there is no native code in 'native'", key_span(("native",)), f"the keys here are {', '.join(TARGETS)}")
    for name, code in given:
        for key, text in (("declarations", code.declarations), ("code", code.code)):
            if text is not None and not text.strip():
                found.error("the code is empty", key_span(("native", name, key)), "write the code, or leave the key out")
    if model.inplace and (native.cpp is not None or native.torch is not None):
        found.error(
            "native code can't be proved to leave its input alone until it is read",
            key_span(("inplace",)),
            "an op with native code has no outputs in place",
        )
    if model.kernel is None and given:
        _alone(model, key_span, found)


def _alone(model: SpecModel, key_span: Callable[[tuple[str | int, ...]], Span], found: Diagnostics) -> None:
    """Check what an op without kernel owes: code that every backend can run, a reference to test it against, its gradient."""
    if model.native is not None and model.native.cpp is None:
        found.error("the key 'cpp' is missing in 'native'", key_span(("native",)), "without a kernel, backends run that")
    if model.reference is None or model.reference.torch is None:
        hint = "name what computes the same: reference: {torch: ...}"
        found.error("an op without a kernel has a torch reference to be tested against", key_span(("native",)), hint)
    if model.gradient.mode == "auto":
        hint = "give it a body in index notation, or say gradient: none"
        found.error("the gradient of native code can't be derived", key_span(("native",)), hint)
