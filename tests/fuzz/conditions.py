"""Draws conditions and conditionals: on data, sizes, attributes, places, operands that may be absent, and on what is known.

What stands in a conditional knows its condition, so that the same is asked again there, turned, or as a part of another: which
conditions are decided by others, and which still refuse a call, is nowhere else to be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.fuzz.flavours import Scope, index_names, is_group
from tests.fuzz.indices import Reads

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Conditions(Reads):
    """Draws conditions, by way of values: `Values` says which there are."""

    atom: Callable[[Scope], str]
    number: Callable[[Scope], str]
    extent: Callable[[Scope], str]
    covered: Callable[[str, Scope], str]
    value: Callable[[Scope, int], str]

    # Conditionals

    @contextmanager
    def under(self, condition: str, holds: bool) -> Iterator[None]:
        """Draw what is under it knowing whether a condition holds."""
        given = re.match(r"present\((\w+)\)$", condition) if holds else None
        self.known.append(condition)
        kept = self.given
        self.given = kept | {given[1]} if given else kept
        yield
        self.given = kept
        self.known.pop()

    def select(self, scope: Scope, depth: int) -> str:
        """Return a conditional of type T: its sides may be numbers alone, or one and the same."""
        condition = self.condition(scope, depth - 1)
        numbers = self.chance(20)
        with self.under(condition, True):
            first = self.plain(scope) if numbers else self.value(scope, depth - 1)
        with self.under(condition, False):
            kind = self.pick("value", "value", "value", "value", "zero", "same")
            second = (
                self.plain(scope) if numbers else "0" if kind == "zero" else first if kind == "same" and not self.given_in(first)
                else self.value(scope, depth - 1)
            )  # fmt: skip
        text = f"({first} if {condition} else {second})"
        return self.typed(text, scope) if numbers else text

    def chosen_again(self, scope: Scope) -> str:
        """Return a conditional between atoms on what the conditionals around it know; an atom where there is none."""
        condition = self.again(scope)
        if condition is None:
            return self.atom(scope)
        if self.chance(30):
            return self.typed(f"({self.plain(scope)} if {condition} else {self.plain(scope)})", scope)
        sides = [self.atom(scope), self.pick("0", "1", self.atom(scope))]
        self.rng.shuffle(sides)
        return f"({sides[0]} if {condition} else {sides[1]})"

    def plain(self, scope: Scope) -> str:
        """Return a number that has no type, or a conditional between such."""
        one = self.pick("0", "0", "1", "-1", "0.5", self.number(scope))
        condition = self.again(scope) if self.chance(25) else None
        return one if condition is None else f"({one} if {condition} else {self.pick('0', '1', '2')})"

    def typed(self, text: str, scope: Scope) -> str:
        """Return what has no type with the type T."""
        return self.pick("cast(T, {0})", "({0} + {1})", "({0} * {1})", "({1} - {0})").format(text, self.atom(scope))

    def given_in(self, text: str) -> bool:
        """Whether a text reads an operand that may be absent."""
        return any(t.optional and re.search(rf"\b{t.name}\[", text) for t in self.flavour.inputs)

    # Conditions

    def again(self, scope: Scope) -> str | None:
        """Return a condition made of one that is known here; None where there is none, or its indices are not in scope."""
        fitting = [c for c in self.known if self.closed(c, scope)]
        if not fitting:
            return None
        known = self.pick(*fitting)
        form = self.pick(
            "{0}", "(not {0})", "({0} and {1})", "({0} or {1})", "({1} and {0})", "({1} or {0})", "(not {0} and {1})",
            "({1} or not {0})", "turned", "turned", "({1} if {0} else {2})", "({0} if {1} else {2})",
        )  # fmt: skip
        if form == "turned":
            found = re.fullmatch(r"(\w+) (<=?|>=?|==|!=) (\w+)", known)
            if found:
                return f"{found[1]} {self.pick(*COMPARISONS)} {found[3]}"
            form = "{0}"
        everything, self.known = self.known, []  # what is drawn beside it is new, or known too
        others = [self.pick(*fitting) if self.chance(30) else self.condition(scope, 0) for _ in range(2)]
        self.known = everything
        return form.format(known, *others)

    def closed(self, condition: str, scope: Scope) -> bool:
        """Whether all indices and groups of a condition are in scope, or bound in it."""
        bound = {n for axes in re.findall(r"\b[a-z]+(\[[^\]]*\])\(", condition) for n in re.findall(r"\bk\d+(?=[:,\]])", axes)}
        names = set(re.findall(r"\b[ik]\d+\b", condition)) - bound
        groups = {g for g in self.flavour.groups if g in condition}
        return names | groups <= {*scope}

    def looked_up(self, scope: Scope) -> str | None:
        """Return a read of an operand at an index that is data, which may refuse the call."""
        place = self.data(scope)
        options = [t for t in self.readable if t.type == "T" and not t.optional and any(not is_group(d) for d in t.dims)]
        if place is None or not options:
            return None
        t = self.rng.choice(options)
        axis = self.rng.choice([n for n, d in enumerate(t.dims) if not is_group(d)])
        entries = []
        for n, d in enumerate(t.dims):
            own = (
                place
                if n == axis
                else self.pick(*([d] * (d in scope) if is_group(d) else [i for i in scope if scope[i] == d]) or [""])
            )
            if not own:
                return None
            entries.append(own)
        self.used.add(t.name)
        return f"{t.name}[{', '.join(entries)}]"

    def condition(self, scope: Scope, depth: int) -> str:
        kind = self.pick(
            "compare", "compare", "index", "parity", "flag", "any", "not", "and", "sizes", "attribute", "integer",
            "integer", "place", "again", "again", "given", "looked up", "most", "chosen",
        )  # fmt: skip
        names = index_names(scope)
        match kind:
            case "index" if len(names) > 1:
                return f"{self.pick(*names)} {self.pick('<', '<=', '==', '!=')} {self.pick(*names)}"
            case "parity" if names:
                return f"({self.pick(*names)} + {self.pick(*names)}) % 2 == 0"
            case "sizes" if self.flavour.sizes:
                size = self.pick(*self.flavour.sizes)
                return self.pick(
                    f"{size} < {self.pick(*self.flavour.sizes, '4')}", f"{size} % 2 == 0", f"{size} >= {self.attribute('width')}"
                )
            case "attribute":
                return self.pick(*(f"{t}" for t in self.switch()))
            case "integer":
                found = self.read("Q", scope)
                if found is not None:
                    other = self.pick(
                        "3", self.attribute("big"), self.attribute("width"), *self.flavour.sizes, *names, "-1", "100", "300"
                    )
                    sides = (found, other) if self.chance(70) else (other, found)
                    return f"{sides[0]} {self.pick('<', '<=', '>', '>=', '==', '!=')} {sides[1]}"
            case "place" if any(is_group(n) for n in scope):
                group = next(n for n in scope if is_group(n))
                return f"position({group}) % 2 {self.pick('==', '<')} {self.pick('0', '1')}"
            case "flag":
                found = self.read("bool", scope)
                if found is not None:
                    return found
            case "any" if self.flavour.name != "broadcast":
                name, extent = self.new_index(), self.extent(scope)
                inner = {**scope, name: self.covered(extent, scope)}
                return f"{self.pick('any', 'all')}[{name}:{extent}]({self.value(inner, 0)} > 0)"
            case "again" if self.known:
                found = self.again(scope)
                if found is not None:
                    return found
            case "given":
                for t in self.flavour.inputs:
                    if t.optional:
                        self.used.add(t.name)
                        return f"present({t.name})"
            case "looked up":
                found = self.looked_up(scope)
                if found is not None:
                    return f"{found} > {self.pick('0', '0.5', self.value(scope, 0))}"
            case "most" if self.flavour.name != "broadcast":
                name, extent = self.new_index(), self.extent(scope)
                inner = {**scope, name: self.covered(extent, scope)}
                return f"{self.pick('max', 'min')}[{name}:{extent}]({self.value(inner, 0)}) > 0"
            case "chosen" if depth > 0:
                return f"({self.condition(scope, 0)} if {self.condition(scope, 0)} else {self.condition(scope, 0)})"
            case "not":
                return f"(not {self.condition(scope, 0)})"
            case "and":
                return f"({self.condition(scope, 0)} {self.pick('and', 'or')} {self.condition(scope, 0)})"
        return f"{self.value(scope, min(depth, 1))} {self.pick('>', '<=', '>=')} {self.value(scope, 0)}"

    def switch(self) -> tuple[str, ...]:
        """Return a condition on an attribute, which is then declared."""
        name = self.attribute(self.pick("flag", "mode", "mode", "gates", "gates", "width", "alpha", "pads"))
        forms = {
            "flag": "flag", "mode": f"mode {self.pick('==', '!=')} '{self.pick('plain', 'scaled')}'", "gates": "gates[1]",
            "width": "width >= 2", "alpha": "alpha > 0.25", "pads": "pads[0] < pads[1]",
        }  # fmt: skip
        return (forms[name],)
