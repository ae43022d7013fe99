"""What is wrong with a spec: what `opc check` prints, editors underline and code hosts show."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opc.diagnostics import Diagnostic, Diagnostics, Severity, SpecError
from opc.ir.budget import within_depth
from opc.ir.op import Family, Op
from opc.pipeline import derived_family, forward_op
from opc.records import dataclass
from opc.spec.loader import Spec
from opc.spec.model import SpecModel
from opc.testing.references.names import check_operators

RULES: Mapping[str, str] = {
    "file": "What a spec file is: YAML, a mapping of keys to values.",
    **{name: field.description or "" for name, field in SpecModel.model_fields.items()},
}
"""What a mistake is against, by the key at the top of the spec that it stands under; `file` is for those outside of all."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in a spec, in the order that it was found in, and what could be made of it all the same.

    `op` is the typed op of a spec without mistakes in its body, `family` what is derived from it.
    """

    diagnostics: tuple[Diagnostic, ...]
    spec: Spec | None = None
    op: Op | None = None
    family: Family | None = None

    @property
    def is_good(self) -> bool:
        """Whether there is no mistake; warnings are none."""
        return not any(d.severity is Severity.ERROR for d in self.diagnostics)


@within_depth
def check(read: Callable[[], Spec], found: Diagnostics | None = None, derive: bool = True) -> Checked:
    """Check the spec that `read` returns, or says why it can't; `found` holds what is known already.

    Without `derive` the mistakes are not found that only a derivative has, which take most of the time.
    """
    found = Diagnostics() if found is None else found
    spec: Spec | None = None
    op: Op | None = None
    family: Family | None = None
    try:
        spec = read()
        check_operators(spec, found)
        op = forward_op(spec, found)
        family = derived_family(spec, op, found) if derive else None
        if family is not None and family.names:
            from opc.compiler import wrong_names

            found.extend(wrong_names(family))
    except SpecError as error:
        # The mistakes come with the warnings that were found before them.
        found.items = list(dict.fromkeys((*found.items, *error.diagnostics)))
    return Checked(tuple(found.items), spec, op, family)


def rule(diagnostic: Diagnostic) -> str:
    """Return which of RULES a diagnostic is about."""
    source = diagnostic.span.source
    if source is None:
        return "file"
    for line in reversed(source.text.split("\n")[: diagnostic.span.line]):
        key, colon, _ = line.partition(":")
        if colon and key.isidentifier():
            return key if key in RULES else "file"
    return "file"
