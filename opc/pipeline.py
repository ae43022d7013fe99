"""From a spec to its op family: load, elaborate, normalise, differentiate.

These are the first two stages of `opc.compiler`. Everything after them (lowering, emitters, backends, the proof) takes a
`Family`. The verifier runs after every pass.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import overload

from opc.analysis.elaborate.native import natives_of
from opc.analysis.elaborate.typing import elaborate, elaborate_gradient, examples_of, reference_of
from opc.diagnostics import Diagnostic, Diagnostics, SpecError
from opc.ir.budget import within_depth
from opc.ir.expr import holds_back
from opc.ir.op import BackendName, Family, Op, ScatterMode, Ties, camel_case
from opc.ir.recurrence import NotSteppingError, recurrent
from opc.ir.verify import StepsVerifyError, verify
from opc.records import dataclass, replace
from opc.spec.loader import Spec, load, loads
from opc.transform.autodiff import vjp
from opc.transform.decide import decide
from opc.transform.guard import guarded
from opc.transform.jvp import jvp
from opc.transform.jvp_of_vjp import jvp_of_vjp
from opc.transform.normalize import hoist, prune
from opc.transform.simplify import erase, simplify
from opc.transform.whole_ranges import decide_remainders


def load_family(path: Path | str, diagnostics: Diagnostics | None = None) -> Family:
    """Return the op family of the spec in a file; of a file that has not changed since, the same one again.

    Warnings are recorded in `diagnostics` where one is given.

    Raises:
        SpecError: with every mistake found in the spec, or when the file can't be read.
    """
    return family_of(load(path, whole=False), diagnostics)


def compile_text(text: str, name: str = "<text>", diagnostics: Diagnostics | None = None) -> Family:
    """Return the op family of a spec given as text; `name` is what diagnostics call it. As `load_family` otherwise."""
    return family_of(loads(text, name, whole=False), diagnostics)


def family_of(spec: Spec, diagnostics: Diagnostics | None = None) -> Family:
    """Return the op family of a loaded spec. As `load_family` otherwise."""
    return derived_family(spec, forward_op(spec, diagnostics), diagnostics)


def forward_op(spec: Spec, diagnostics: Diagnostics | None = None) -> Op:
    """Return the op that a spec describes, normalised. As `load_family` otherwise."""
    body = spec.key_span("kernel")
    if diagnostics is None:
        return within_depth(_forward, body)(_SpecIdentity(spec))
    return within_depth(_elaborated, body)(spec, diagnostics)


def derived_family(spec: Spec, forward: Op, diagnostics: Diagnostics | None = None) -> Family:
    """Return the family of a spec's `forward_op`: what the spec says of the gradient, or what is derived from the op.

    As `load_family` otherwise.
    """
    body = spec.key_span(*("gradient", "body") if spec.model.gradient.mode == "body" else ("kernel",))
    if diagnostics is None:
        return within_depth(_family, body)(_SpecIdentity(spec))
    return within_depth(_derived, body)(spec, forward, diagnostics)


@dataclass(frozen=True, slots=True)
class _SpecIdentity:
    """A spec by the name of its file and its text, of which ops and families are remembered."""

    spec: Spec = field(compare=False)
    name: str = field(init=False)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.spec.source.name)
        object.__setattr__(self, "hash", self.spec.hash)


@lru_cache(maxsize=128)
def _forward(same: _SpecIdentity) -> Op:
    return _elaborated(same.spec, None)


@lru_cache(maxsize=128)
def _family(same: _SpecIdentity) -> Family:
    return _derived(same.spec, _forward(same), None)


def _elaborated(spec: Spec, diagnostics: Diagnostics | None) -> Op:
    op = _checked(elaborate(spec, diagnostics))
    try:
        sizes = None if op.sizes is None else normalise(op.sizes)
        return replace(normalise(op), ties=Ties(spec.model.gradient.ties), sizes=sizes)
    except (NotSteppingError, StepsVerifyError) as error:
        # A condition that always holds is none any more, and may have been what told where steps read.
        reason = error.__cause__ if isinstance(error, StepsVerifyError) else str(error).partition(": ")[2]
        raise SpecError([Diagnostic(str(reason), next(s.span for s in op.body if s.target in recurrent(op)))]) from error


def _derived(spec: Spec, forward: Op, diagnostics: Diagnostics | None) -> Family:
    mode = spec.model.gradient.mode
    backward: Op | None = None
    if mode == "body":
        backward = normalise(_checked(elaborate_gradient(spec, forward, diagnostics)))
    elif mode == "auto":
        backward = auto_backward(forward)
    second = jvp_forward = jvp_backward = None
    surrogates: tuple[str, ...] = ()
    if backward is not None:
        second, jvp_backward = vjp(backward), jvp(backward)
        surrogates = _surrogates(spec, forward, backward)
        # Forward mode goes with reverse mode, where that is not the body's derivative too.
        stated = forward.opaque or (mode == "body" and bool(surrogates))
        jvp_forward = jvp_of_vjp(forward, backward) if stated else jvp(forward)
    scatter = ScatterMode(spec.model.gradient.scatter)
    return Family(
        forward=_final(forward, spec),
        backward=_final(backward, spec, scatter),
        backward_backward=_final(second, spec, scatter),
        jvp=_final(jvp_forward, spec, scatter),
        backward_jvp=_final(jvp_backward, spec, scatter),
        explicit_backward=mode == "body",
        surrogates=surrogates,
        examples=examples_of(spec),
        reference=reference_of(spec),
        native=natives_of(spec),
        names=tuple(BackendName(key, name, spec.key_span("names", key)) for key, name in spec.model.names.items()),
        source_hash=spec.hash,
        source_name="".join(c if c.isprintable() else "_" for c in Path(spec.source.name).name),
    )


def _surrogates(spec: Spec, forward: Op, backward: Op) -> tuple[str, ...]:
    """Return the names of the ops whose vjp is a surrogate: where the spec says so, what it states, or what holds a part back."""
    if not spec.model.gradient.surrogate:
        return ()
    held = [op.name for op in (forward, backward) if any(holds_back(s.value) for s in op.body)]
    return tuple(dict.fromkeys((forward.name, *held)))


def auto_backward(forward: Op) -> Op | None:
    """Return the gradient op that reverse mode derives, whatever the spec says; None when nothing is differentiable.

    Raises:
        SpecError: when the body holds something whose gradient the language can't express.
    """
    derived = vjp(forward)
    return None if derived is None else _checked(derived)


def normalise(op: Op) -> Op:
    """Return the op simplified, without what no output needs, and with no reduction computed more often than it has results."""
    needed = decide_remainders(decide(prune(op, [o.name for o in op.outputs]), exact=True))
    return _checked(hoist(_checked(simplify(needed, exact=True)), exact=True))


@overload
def _final(op: Op, spec: Spec, scatter: ScatterMode = ...) -> Op: ...
@overload
def _final(op: None, spec: Spec, scatter: ScatterMode = ...) -> None: ...
def _final(op: Op | None, spec: Spec, scatter: ScatterMode = ScatterMode.DETERMINISTIC) -> Op | None:
    """Return the op with its op type, no read that is not proved inside, and without `stop_gradient`, which means nothing once
    everything is differentiated."""
    if op is None:
        return None
    name = spec.model.onnx_name
    onnx_name = f"{name}{camel_case(op.name.removeprefix(spec.model.op))}" if name else ""
    sizes = _final(op.sizes, spec)
    return _checked(guarded(replace(erase(op), scatter=scatter, onnx_name=onnx_name, sizes=sizes)))


def _checked(op: Op) -> Op:
    verify(op)
    return op
