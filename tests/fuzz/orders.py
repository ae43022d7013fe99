"""Draws orders: an axis of an operand sorted, either way, with the places as an output or not."""

from __future__ import annotations

import random

from tests.fuzz.flavours import Tensor, is_group
from tests.fuzz.recurrences import Recurrences


class Orders(Recurrences):
    """Adds an order to a body that is drawn."""

    def order(self, lines: list[str], outputs: list[Tensor]) -> tuple[list[str], list[Tensor]]:
        """Return the lines and outputs of a body with those of an order behind them, or as they are.

        What is drawn for it depends on the lines alone, so that all else is drawn as it would be without.
        """
        before, self.rng = self.rng, random.Random("\n".join(["order", *lines]))
        try:
            given = [t for t in self.flavour.inputs if not t.optional and len(set(t.dims)) == len(t.dims)]
            keys = [t for t in given if t.type in ("T", "Q", "I") and any(d.isidentifier() for d in t.dims)]
            if self.chance(82) or self.flavour.broadcast or not keys:
                return lines, outputs
            return self._ordered(lines, outputs, self.rng.choice(keys))
        finally:
            self.rng = before

    def _ordered(self, lines: list[str], outputs: list[Tensor], key: Tensor) -> tuple[list[str], list[Tensor]]:
        scope = {d if is_group(d) else f"i{k}": d for k, d in enumerate(key.dims)}
        along = self.pick(*(n for n, d in scope.items() if d.isidentifier()))
        size, kept = scope[along], self.chance(50)
        self.used.add(key.name)
        place = self.pick(along, along, along, f"{size} - 1 - {along}")
        stated = [
            n if is_group(n) or (n == along == place) or (n != along and self.chance(50)) else f"{n}:{d}"
            for n, d in scope.items()
        ]
        target = list(scope) if kept else stated
        read = ", ".join("q9" if n == along else n for n in scope)
        axis = self.pick("q9", f"q9:{size}")
        turned = self.pick("", ", True", ", False")
        at = ", ".join(scope)
        taken = ", ".join(f"p9[{at}]" if n == along else n for n in scope)
        found = [
            f"p9[{', '.join(target)}] = argsort[{axis}]({key.name}[{read}]{turned})[{place}]",
            f"y8[{at}] = {key.name}[{taken}]",
        ]
        made = [Tensor("y8", key.type, key.dims), *([Tensor("p9", "int64", key.dims)] if kept else [])]
        return [*lines, *found], [*outputs, *made]
