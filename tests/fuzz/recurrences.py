"""Draws recurrences: values along one index that are made from themselves, which go either way, alone or two together."""

from __future__ import annotations

import random

from tests.fuzz.flavours import Scope, Tensor, is_group
from tests.fuzz.values import Values

STEPS = (
    "0.5 * {0} + sin({1})", "tanh({0} + {1})", "sin({1}) * {0} + 1", "maximum({0}, sin({1}))", "minimum(0.5 * {0}, tanh({1}))",
    "({0} if {1} > 0 else sin({1}))", "sin({1}) - 0.25 * {0} * sigmoid({0})", "(tanh({1}) if {0} < 0.5 else sin({1}))",
)  # fmt: skip
"""What a value is made of: of that before, and of something else. None grows with the number of steps but slowly."""


class Recurrences(Values):
    """Adds a recurrence to a body that is drawn."""

    def recurrence(self, lines: list[str], outputs: list[Tensor]) -> tuple[list[str], list[Tensor]]:
        """Return the lines and outputs of a body with those of a recurrence behind them, or as they are.

        What is drawn for it depends on the lines alone, so that all else is drawn as it would be without.
        """
        before, self.rng = self.rng, random.Random("\n".join(lines))
        try:
            if self.chance(80):
                return lines, outputs
            shapes = [d for d in self.flavour.results if len(set(d)) == len(d) and any(n.isidentifier() for n in d)]
            if not shapes:
                return lines, outputs
            return self._drawn(lines, outputs, self.rng.choice(shapes))
        finally:
            self.rng = before

    def _drawn(self, lines: list[str], outputs: list[Tensor], dims: tuple[str, ...]) -> tuple[list[str], list[Tensor]]:
        scope = {d if is_group(d) else f"i{k}": d for k, d in enumerate(dims)}
        along = self.pick(*(n for n, d in scope.items() if d.isidentifier()))
        falls, kept = self.chance(40), self.chance(60)
        # Ranges are stated of what is no output.
        target = [n if is_group(n) or kept else f"{n}:{d}" for n, d in scope.items()]
        names = ["r0", "r1"] if self.chance(30) else ["r0"]
        found = []
        for n, name in enumerate(names):
            back = self.pick("1", "1", "1", "2", "width")
            if back == "width":
                self.attribute("width")
            others = [self.behind(other, scope, along, falls, back) for other in names]
            here = f"{names[0]}[{', '.join(scope)}]" if n else self.value(scope, 1)
            value = self.pick(*STEPS).format(others[n], here if len(names) == 1 else f"({others[1 - n]} + {here})")
            found.append(f"{name}[{', '.join(target)}] = {value}")
        made = [Tensor(name, "T", dims) for name in names]
        if not kept:
            at = ", ".join(scope)
            found.append(f"y9[{at}] = " + " + ".join(f"{n}[{at}]" for n in names))
            made = [Tensor("y9", "T", dims)]
        return [*lines, *found], [*outputs, *made]

    def behind(self, name: str, scope: Scope, along: str, falls: bool, back: str) -> str:
        """Return a read of what was made some steps before, at the same other indices, or summed over one of them."""
        at = f"{along} {'+' if falls else '-'} {back}"
        places = [at if n == along else n for n in scope]
        if self.chance(15):
            return self.all_behind(name, scope, along, falls)
        others = [n for n, d in scope.items() if n != along and d.isidentifier()]
        if others and self.chance(25):
            other = self.pick(*others)
            places = ["q0" if n == other else p for n, p in zip(scope, places, strict=True)]
            return f"(sum[q0:{scope[other]}](pad({name}[{', '.join(places)}], 0)) / ({scope[other]} + 1))"
        if self.chance(30):
            first = f"{along} + {back} < {scope[along]}" if falls else f"{along} >= {back}"
            return f"({name}[{', '.join(places)}] if {first} else {self.pick('0', '0.5', self.value(scope, 0))})"
        return f"pad({name}[{', '.join(places)}], {self.pick('0', '1', '0.5')})"

    def all_behind(self, name: str, scope: Scope, along: str, falls: bool) -> str:
        """Return the mean of all that was made before: of those that a loop reaches, or that a condition leaves."""
        size = scope[along]
        extent, at, inside = self.pick(
            (f"{size} - 1 - {along}", f"{size} - 1 - q1", "") if falls else (along, "q1", ""),
            (size, "q1", f" if q1 {'>' if falls else '<'} {along} else 0"),
            (size, "q1", f" if {along} - q1 {'< 0' if falls else '>= 1'} else 0"),
        )
        places = ", ".join(at if n == along else n for n in scope)
        return f"(sum[q1:{extent}]({name}[{places}]{inside}) / ({size} + 1))"
