"""Draws reads: operands at indices that are provably inside, padded, or data. What is drawn is right by construction."""

from __future__ import annotations

import random

from tests.fuzz.flavours import Flavour, Scope, Tensor, index_names, is_group


class Reads:
    """The state of a spec that is being drawn, and what draws its reads."""

    def __init__(self, rng: random.Random, flavour: Flavour) -> None:
        self.rng, self.flavour = rng, flavour
        self.readable = list(flavour.inputs)
        self.used: set[str] = set()
        self.fresh = 0
        self.attributes: set[str] = set()
        self.known: list[str] = []
        """The conditions of the conditionals around what is drawn."""
        self.given: frozenset[str] = frozenset()
        """The optional operands that are known to be there."""
        for text in (*flavour.shape.values(), *flavour.require):
            self.attributes |= {a for a in ("width", "stride", "groups", "flag") if a in text}
        if flavour.axis:
            self.attributes.add("axis")
        if flavour.adds:
            self.attributes.add("place")
        if flavour.placed:
            self.attributes |= {"axis1", "axis2"}
        if flavour.permuted:
            self.attributes.add("perm")
        if flavour.axes:
            self.attributes |= {"axes", *(["keepdims"] if rng.random() < 0.5 else [])}

    def pick(self, *options: str) -> str:
        return self.rng.choice(options)

    def chance(self, percent: int) -> bool:
        return self.rng.random() * 100 < percent

    def new_index(self) -> str:
        self.fresh += 1
        return f"k{self.fresh}"

    def attribute(self, name: str) -> str:
        """Return an attribute's name, which is then declared."""
        self.attributes.add(name)
        return name

    # Indices

    def index(self, dim: str, scope: Scope, *, bare: bool = False) -> tuple[str, bool] | None:
        """Return an index along `dim` and whether it needs a pad; None when nothing in scope fits."""
        every = index_names(scope)
        own = [n for n in every if scope[n] == dim]
        if bare or (own and self.chance(50)):
            return (self.pick(*own), False) if own else None
        kind = self.pick(
            "flip", "half", "mod", "shift", "data", "window", "constant", "clamp", "mirror", "choose", "choose", "digit", "digit",
            "remainder", "quotient", "padded",
        )  # fmt: skip
        known = bool(own) or dim in self.flavour.positive or dim.isdecimal()
        match kind:
            case "flip" if own:
                return f"{dim} - 1 - {self.pick(*own)}" if dim.isidentifier() else f"({dim}) - 1 - {self.pick(*own)}", False
            case "half" if own:
                return f"{self.pick(*own)} // {self.pick('2', '3')}", False
            case "quotient" if own:
                return f"{self.pick(*own)} // {self.pick(self.attribute('width'), *(p for p in self.flavour.positive))}", False
            case "mod" | "remainder" if known and every and (dim.isidentifier() or dim.isdecimal()):
                inside = self.pick(*every) if kind == "mod" else f"{self.pick(*every)}*2 + {self.pick(*every)}"
                return f"({inside} + {self.pick('0', '1', self.attribute('width'))}) % {dim}", False
            case "shift" if every:
                return f"{self.pick(*every)} {self.pick('+', '-')} {self.pick('1', '2', self.attribute('width'))}", True
            case "window" if every:
                return f"{self.pick('2', '3')}*{self.pick(*every)} + {self.pick(*every)} - 1", True
            case "padded" if every:
                return self.piece(self.pick(*every), dim if dim.isidentifier() else "2", scope), True
            case "clamp" if own:
                return self.clamped(self.pick(*own), dim), False
            case "mirror" if own:
                i, whole = self.pick(*own), f"({dim}) - 1"
                middle = f"abs({whole} - 2*{i})"
                return self.pick(middle, f"{whole} - {middle}", f"minimum(abs({i} - 1), {whole})"), False
            case "choose" if own:
                return self.chosen(self.pick(*own), dim, scope), False
            case "data":
                found = self.data(scope)
                if found is not None:
                    return found, False
            case "constant":
                return ("0", False) if dim in self.flavour.positive else (self.pick("0", "1"), True)
            case "digit":
                found = self.digits(dim, scope)
                if found is not None:
                    return found, False
        return (self.pick(*own), False) if own else None

    def clamped(self, i: str, dim: str) -> str:
        """Return an index near `i` that is kept on the axis."""
        return self.pick(
            f"minimum({i} + 1, {dim} - 1)", f"maximum({i} - 1, 0)",
            f"minimum(maximum({i} - {self.attribute('width')}, 0), {dim} - 1)",
            f"minimum(2*{i}, {dim} - 1)", f"maximum({dim} - 1 - 2*{i}, 0)",
        )  # fmt: skip

    def chosen(self, i: str, dim: str, scope: Scope) -> str:
        """Return an index that a condition chooses, on both sides inside."""
        back = f"({dim}) - 1 - {i}"
        sizes = self.flavour.sizes
        options = [
            f"{i} + 1 if {i} + 1 < {dim} else 0", f"{i} - 1 if {i} > 0 else ({dim}) - 1", f"{i} - 1 if {i} >= 1 else {i}",
            f"{i} if {self.attribute('flag')} else {back}", f"{i} if {self.attribute('width')} > 2 else {back}",
            f"{i} if {self.attribute('gates')}[0] else {back}",
        ]  # fmt: skip
        if len(sizes) > 1:
            options.append(f"{i} if {self.pick(*sizes)} {self.pick('<', '>=', '==')} {self.pick(*sizes)} else {back}")
        if self.chance(40):
            found = self.read("Q", scope, bare=True)
            if found is not None:
                options = [f"{i} if {found} > {self.pick('0', '2')} else {back}"]
        return self.pick(*options)

    def piece(self, i: str, size: str, scope: Scope) -> str:
        """Return an index in pieces that may fall outside."""
        return self.pick(
            f"{i} + 1 if {i} % 2 == 0 else {i} - 1", f"abs({i} - {self.attribute('width')})", f"minimum({i} + 1, {size})",
            f"{i} + 1 if {size} >= {self.pick(*self.flavour.sizes, '3')} else {i} - 1",
            f"maximum({i} - 1, {self.attribute('width')} - 2)",
        )  # fmt: skip

    def digits(self, dim: str, scope: Scope) -> str | None:
        """Return an index along a product of two sizes, or along a factor of one."""
        every = index_names(scope)
        options = []
        for whole, (high, low) in self.flavour.digits.items():
            wholes = [n for n in every if scope[n] == whole]
            highs, lows = ([n for n in every if scope[n] == d] for d in (high, low))
            if dim == whole and highs and (lows or low == "2"):
                options.append(f"{self.pick(*highs)}*{low} + {self.pick(*lows) if lows else self.pick('0', '1')}")
            if dim == high and wholes:
                options.append(f"{self.pick(*wholes)} // {low}")
            if dim == low and wholes:
                options.append(f"{self.pick(*wholes)} % {low}")
            if dim == whole == "N" and highs:
                options += [f"{self.pick(*highs)} + {high}", f"2*{self.pick(*highs)} + 1"]
        return self.pick(*options) if options else None

    def data(self, scope: Scope) -> str | None:
        """Return a data-dependent index whose value lies between 0 and the size, or is caught."""
        options = []
        for t in self.readable:
            if t.type == "I":
                places = [[n for n, extent in scope.items() if extent == d] for d in t.dims]
                if all(places):
                    options.append((t, places))
        if not options:
            return None
        t, places = self.rng.choice(options)
        self.used.add(t.name)
        return f"{t.name}[{', '.join(self.pick(*p) for p in places) or '()'}]"

    # Reads

    def read(self, kind: str, scope: Scope, *, bare: bool = False) -> str | None:
        """Return a read of an operand of a type at indices in scope."""
        options = [t for t in self.readable if t.type == kind and (not t.optional or t.name in self.given)]
        self.rng.shuffle(options)
        for t in options:
            entries, padded = [], False
            for d in t.dims:
                found = ((d, False) if d in scope else None) if is_group(d) else self.index(d, scope, bare=bare)
                if found is None:
                    break
                entries.append(found[0])
                padded |= found[1]
            else:
                self.used.add(t.name)
                text = f"{t.name}[{', '.join(entries) or '()'}]"
                return f"pad({text}, {self.fill(kind)})" if padded else text
        return None

    def fill(self, kind: str) -> str:
        return "False" if kind == "bool" else self.pick("0", "0", "1") if kind != "T" else self.pick("0", "0", "1", "-0.5")

    def places(self, t: Tensor, scope: Scope) -> list[str] | None:
        """Return for each axis of an operand an index that runs over it."""
        found = [next((n for n, extent in scope.items() if extent == d), None) for d in t.dims]
        return None if None in found else [str(n) for n in found]
