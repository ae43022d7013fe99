"""Draws what bodies ask of types: `T in floating`, with sides of which each fits the types that the answer leaves.

T is one of several floating types, of which bodies name some, or a floating type or an integer: there each value that is drawn
for floating types has one of integers beside it.
"""

from __future__ import annotations

from tests.fuzz.flavours import Scope
from tests.fuzz.orders import Orders

FLOATING = {
    "float32, float64": ("float32", "[float64]"),
    "bfloat16, float32": ("bfloat16",),
    "float16, float8_e4m3fnuz, float64": ("[float16, float64]", "float8", "floating"),
}
"""Floating types, and classes that have some of them."""

MIXED = {
    "float32, int32": ("floating", "float32"),
    "float64, uint8, int64": ("floating", "[floating, float8]"),
    "float16, float32, int4, int8": ("floating", "[float32, float16]"),
    "float8_e5m2fnuz, float64, uint2": ("[floating, float8]", "[float8_e5m2fnuz, float64]"),
}
"""Floating types and integers, and classes that have the floating ones."""

WHOLE = (
    "{0}", "{0} * {1}", "({0} + {1}) // 3", "{0} % 3", "maximum({0}, {1})", "abs({0}) - {1}", "(~{0} | {1}) ^ {0}",
    "({0} if {0} < {1} else {1} + 1)", "-{0} // 2",
)  # fmt: skip
"""Expressions of integers."""


class Questions(Orders):
    """Draws the sides of a body that asks what T is."""

    types = ""
    """The dtypes of T where the body asks, else nothing."""

    @property
    def is_mixed(self) -> bool:
        """Whether T may be an integer."""
        return self.types in MIXED

    def ask(self) -> None:
        """Have the body ask."""
        self.types = self.pick(*FLOATING, *MIXED)

    def asked(self, scope: Scope, value: str, kind: str) -> str:
        """Return a value that goes into an operand of a type beside what stands there for other types of T."""
        if not self.types or not (self.is_mixed or self.chance(60)):
            return value
        if not self.is_mixed:
            if kind == "T":
                return self.by_type(value, self.value(scope, 1), *FLOATING[self.types])
            if kind == "bool":
                return self.behind_type(value, *FLOATING[self.types])
            return value
        if kind == "T" and self.chance(20):
            return f"cast(T, {self.of_both(scope)})"
        classes, whole = MIXED[self.types], self.whole(scope)
        if kind == "bool":
            return self.behind_type(value, *classes) if self.chance(50) else self.by_type(value, f"{whole} > 2", *classes)
        return self.by_type(value, f"cast({kind}, {whole})", *classes)

    def by_type(self, first: str, second: str, *classes: str) -> str:
        """Return the first value where T is of a class, and the second elsewhere."""
        form = self.pick(
            "({0}) if T in {2} else ({1})", "({0}) if not T not in {2} else ({1})", "({1}) if T not in {2} else ({0})"
        )
        return f"({form.format(first, second, self.pick(*classes))})"

    def behind_type(self, condition: str, *classes: str) -> str:
        """Return a condition behind a question: it is asked where T is of a class."""
        return self.pick("(T in {0} and ({1}))", "(T not in {0} or ({1}))").format(self.pick(*classes), condition)

    def whole(self, scope: Scope) -> str:
        """Return a value of integers, of type T or computed in 64 bits."""
        one = self.number_read(scope)
        form = self.pick(*WHOLE).format(one, self.pick("1", "2", self.number_read(scope)))
        if self.types == "float64, uint8, int64" and self.chance(40):
            return f"({form} if T in uint8 else {self.number_read(scope)} + 1)"
        if self.flavour.name == "broadcast" or self.chance(60):
            return form
        name, extent = self.new_index(), self.extent(scope)
        body = self.number_read({**scope, name: self.covered(extent, scope)})
        return f"{self.pick('sum', 'max', 'min')}[{name}:{extent}]({body})"

    def of_both(self, scope: Scope) -> str:
        """Return a value that floating types and integers have alike, in a reduction or not."""
        form = self.pick("{0} * {1}", "{0} + {1}", "maximum({0}, {1})", "{0} - {1} * {0}", "({0} if {0} > {1} else {1})")
        inner, axes = scope, ""
        if self.flavour.name != "broadcast" and self.chance(60):
            name, extent = self.new_index(), self.extent(scope)
            inner, axes = {**scope, name: self.covered(extent, scope)}, f"{name}:{extent}"
        text = form.format(self.number_read(inner), self.number_read(inner))
        return f"{self.pick('sum', 'sum', 'prod', 'max')}[{axes}]({text})" if axes else text

    def number_read(self, scope: Scope) -> str:
        """Return a read of T with no fraction where it is padded, or a number."""
        found = self.read("T", scope)
        return "cast(T, 3)" if found is None else found.replace(", -0.5)", ", 1)")


__all__ = ["Questions"]
