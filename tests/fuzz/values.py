"""Draws expressions: functions, conditionals, reductions of every kind, over reads at what is in scope."""

from __future__ import annotations

from tests.fuzz.conditions import Conditions
from tests.fuzz.flavours import Scope, index_names, is_group

SMOOTH = (
    "sin({0})", "tanh({0})", "sigmoid({0})", "sqrt(1 + ({0}) ** 2)", "exp(-({0}) ** 2)", "abs({0})", "log1p(({0}) ** 2)",
    "({0}) ** 2", "({0}) ** 3", "-({0})", "rsqrt(1 + ({0}) ** 2)", "2 ** sin({0})", "stop_gradient({0})",
    "cos({0}) + stop_gradient(cos({0}))",
    "log(2 + sin({0}))", "floor({0})",
)  # fmt: skip
TWOFOLD = (
    "(sigmoid({0}) * erf({0}))", "(log1p(({0}) ** 2) + erfc({0}))", "(rsqrt(1 + ({0}) ** 2) * log(2 + sin({0})))",
    "(asinh({0}) / (1 + exp2(sin({0}))))", "(expm1(sin({0})) + log2(2 + cos({0})))", "(cosh(sin({0})) - log10(2 + cos({0})))",
    "(sinh(cos({0})) * atan({0}))", "(acos(0.9*sin({0})) + asin(0.9*cos({0})))", "(atanh(0.9*sin({0})) - acosh(2 + sin({0})))",
    "(tan(sin({0})) + sqrt(1 + cos({0})))", "(round({0}) + ceil({0}))", "(floor({0}) - trunc({0}))",
    "(cbrt(2 + sin({0})) * sinc({0}))", "(erfinv(0.9*sin({0})) + lgamma(2 + sin({0})))", "(hypot({0}, 1) - i0(sin({0})))",
    "(digamma(2 + cos({0})) * trigamma(2 + sin({0})))", "(i1(cos({0})) + atan2({0}, 2 + cos({0})))",
    "(sign({0}) * (0 if isnan({0}) else 1))", "({0}) * (0.5 if isinf({0}) else exp(sin({0})))",
)  # fmt: skip
"""Functions of what is short enough to be written twice."""

BINARY = ("({0} + {1})", "({0} - {1})", "({0}) * ({1})", "({0}) / (2 + ({1}) ** 2)", "maximum({0}, {1})", "minimum({0}, {1})")
UNTYPED = ("cos(0.3 * {0} * ({1} + 1))", "exp(-0.1 * {0}) * (0.5 + {1})", "(0.25 * {0} - {1})", "({0} + 2 * {1})")
"""What is made of numbers and indices alone."""

NUMBERS = ("alpha", "beta", "width", "stride", "big", "pads", "scales")

IGNORED = {"sum": "0", "prod": "1", "max": "-inf", "min": "inf"}
"""What each kind of reduction ignores."""


class Values(Conditions):
    """Draws expressions."""

    # Values

    def value(self, scope: Scope, depth: int) -> str:
        """Return an expression of type T."""
        if depth == 0:
            return self.chosen_again(scope) if self.chance(25) else self.atom(scope)
        kind = self.pick(
            "atom", "smooth", "binary", "binary", "binary", "select", "select", "reduce", "reduce", "contract", "window", "scan",
            "scan", "scatter", "optional", "integer", "integer", "nested", "same", "random",
        )  # fmt: skip
        match kind:
            case "smooth":
                return self.pick(*(TWOFOLD if depth == 1 else SMOOTH)).format(self.value(scope, depth - 1))
            case "binary":
                first = self.value(scope, depth - 1)
                return self.pick(*BINARY).format(first, self.value(scope, depth - 1))
            case "same":
                one = self.value(scope, depth - 1)
                return f"({one}) * sin({one})"
            case "select":
                return self.select(scope, depth)
            case "reduce" | "nested":
                return self.reduce(scope, depth, self.pick("sum", "sum", "mean", "max", "min", "prod"))
            case "contract":
                return self.contract(scope)
            case "window":
                return self.window(scope)
            case "scan":
                return self.scan(scope, depth)
            case "scatter":
                return self.scatter(scope)
            case "optional":
                return self.optional(scope, depth)
            case "random":
                return f"cast(T, {self.random(scope)})"
            case "integer":
                return f"cast(T, {self.integer(scope, depth - 1)})"
        return self.atom(scope)

    def atom(self, scope: Scope) -> str:
        if self.chance(85):
            found = self.read("T", scope)
            if found is not None:
                return found
        if self.chance(30):
            self.attributes.add("alpha")
            return "alpha * s[()]" if self.name_read("s") else "cast(T, alpha)"
        return f"cast(T, {self.number(scope)})"

    def number(self, scope: Scope) -> str:
        """Return a number: a literal, an attribute, a size, an index, or what is computed of whole ones."""
        every, groups = index_names(scope), [n for n in scope if is_group(n)]
        sizes = self.flavour.sizes
        kind = self.pick("literal", "index", "index", "attribute", "size", "group", "whole", "whole")
        match kind:
            case "index" if every:
                return self.pick(*every)
            case "attribute":
                name = self.attribute(self.pick(*NUMBERS))
                return f"{name}[{self.pick('0', '1')}]" if name in ("pads", "scales") else name
            case "size" if sizes:
                return self.pick(*sizes, *self.flavour.shape)
            case "group" if groups:
                return self.pick(f"position({self.pick(*groups)})", f"size({self.pick(*groups)})")
            case "whole" if every:
                i, j = self.pick(*every), self.pick(*every)
                other = self.pick("2", "3", self.attribute("width"), *([scope[i]] if scope[i].isidentifier() else []))
                form = self.pick(
                    "({0} ^ {1})", "({0} << 1 | {1} & 3) >> 1", "({0} + {1}) // {2}", "({0} + {1}) % {2}", "({0} // {2}) % 2",
                    "abs({0} - {1})", "minimum({0}, {1} + 1)", "({0} if {1} % 2 == 0 else {1})", "maximum({0} - {1}, {1})",
                )  # fmt: skip
                return form.format(i, j, other)
        return self.pick("1", "0.25", "-0.5", "2.5e-1")

    def name_read(self, name: str) -> bool:
        if any(t.name == name for t in self.flavour.inputs):
            self.used.add(name)
            return True
        return False

    def extent(self, scope: Scope) -> str:
        """Return the extent of a new reduction index."""
        dims = self.flavour.sizes
        kind = self.pick("dim", "dim", "dim", "dim", "small", "small", "triangle", "rest", "attribute", "product", "derived")
        every = [n for n in index_names(scope) if scope[n].isidentifier()]
        if kind == "triangle" and every:
            return f"{self.pick(*every)} + 1"
        if kind == "rest" and every:
            index = self.pick(*every)
            return f"{scope[index]} - {index}"
        if kind == "attribute":
            return self.attribute("width")
        if kind == "product" and self.flavour.digits:
            return self.pick(*(d for d in self.flavour.digits))
        if kind == "derived" and self.flavour.shape:
            return self.pick(*self.flavour.shape)
        if not dims or kind == "small":
            return self.pick("2", "3")
        return self.pick(*dims)

    def reduce(self, scope: Scope, depth: int, kind: str) -> str:
        loose = [g for g in self.flavour.groups if g not in scope or self.chance(15)]  # a loop over it may stand around
        if loose and self.chance(60 if self.flavour.name == "groups" else 25):
            # Over a whole group: what is inside carries the group, what is outside does not.
            axes = loose if self.chance(30) else [self.pick(*loose)]
            kind = self.pick("sum", "sum", "mean", "max")
            return f"{kind}[{', '.join(axes)}]({self.value({**scope, **{g: g for g in axes}}, depth - 1)})"
        if self.flavour.name == "broadcast":
            return self.atom(scope)
        axes, inner = [], dict(scope)
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            extent = self.extent(scope)
            name = self.new_index()
            axes.append(f"{name}:{extent}")
            inner[name] = self.covered(extent, scope)
        return f"{kind}[{', '.join(axes)}]({self.value(inner, depth - 1)})"

    def covered(self, extent: str, scope: Scope) -> str:
        """Return the dimension a new index stays inside of, for reads at it: i + 1 of N stays inside N."""
        for name, dim in scope.items():
            if extent in (f"{name} + 1", f"{dim} - {name}") and dim.isidentifier():
                return dim
        return extent

    def contract(self, scope: Scope) -> str:
        """Return a sum of products over an axis that two operands share."""
        floats = [t for t in self.readable if t.type == "T" and not t.optional and t.dims]
        dims = sorted({d for t in floats for d in t.dims if d.isidentifier()})
        if not dims:
            return self.atom(scope)
        dim, name = self.pick(*dims), self.new_index()
        inner = {**scope, name: dim}
        factors = [f"({self.value(inner, self.rng.choice((0, 0, 0, 1)))})" for _ in range(2)]
        alone = False
        if self.chance(25):
            # Of no type of its own, alone or beside another factor.
            alone = self.chance(50)
            factors[not alone :] = [self.pick(*UNTYPED).format(name, self.pick(*index_names(inner)))]
            self.rng.shuffle(factors)
        text = f"sum[{name}:{dim}]({' * '.join(factors)})"
        if alone:  # the sum has no type either
            return f"{text} {self.pick('+', '*')} {self.atom(scope)}"
        return f"{text} + {self.atom(scope)}" if self.chance(30) else text

    def window(self, scope: Scope) -> str:
        """Return a reduction over a window of an operand, padded at the border."""
        floats = [t for t in self.readable if t.type == "T" and not t.optional and all(d in scope for d in t.dims if is_group(d))]
        spaced = [t for t in floats if any(d in scope.values() for d in t.dims if not is_group(d))]
        if not spaced:
            return self.atom(scope)
        t = self.rng.choice(spaced)
        kind = self.pick("sum", "max", "min", "mean")
        fill = IGNORED.get(kind, "0")
        p, step, inner = self.new_index(), self.pick("1", "2", "stride"), dict(scope)
        if step == "stride":
            self.attribute("stride")
        back = self.pick("0", "1", "2", "pads[0]", "pads[1]")
        if "pads" in back:
            self.attribute("pads")
        inner[p] = "3"
        entries, slid = [], False
        for d in t.dims:
            own = [n for n, extent in scope.items() if extent == d]
            if is_group(d):
                entries.append(d)
            elif own and not slid:
                dilation = self.pick("", "2*")
                entries.append(f"{step}*{self.pick(*own)} + {dilation}{p} - {back}")
                slid = True
            elif own:
                entries.append(self.pick(*own))
            elif d == "3":
                entries.append(p)
            else:
                entries.append(self.pick("0", "1"))
        self.used.add(t.name)
        inside = f"pad({t.name}[{', '.join(entries)}], {fill})"
        if kind in ("sum", "mean") and self.chance(60):
            inside = f"{inside} * {self.atom(inner)}"
        return f"{kind}[{p}:3]({inside})"

    def scan(self, scope: Scope, depth: int) -> str:
        """Return a reduction up to, or from, an outer index."""
        every = [n for n in index_names(scope) if scope[n].isidentifier()]
        if not every:
            return self.atom(scope)
        outer, name = self.pick(*every), self.new_index()
        inner = {n: e for n, e in scope.items() if n != outer or self.chance(30)} | {name: scope[outer]}
        if self.chance(25):
            # Over more elements than the outer index has, or fewer; no axis is known to have them all.
            dim = self.pick(*sorted({scope[n] for n in every}))
            extent = self.pick(f"{outer} + 3", f"{outer} - 2", f"{dim} - {outer}", f"{dim} - 3 - {outer}", f"{dim} - 2")
            inner[name] = extent
            return f"{self.pick('sum', 'sum', 'prod')}[{name}:{extent}]({self.value(inner, min(depth - 1, 1))})"
        extent = self.pick(f"{outer} + 1", f"{outer} + 1", outer)
        kind = self.pick("sum", "sum", "prod") if extent == outer else self.pick("sum", "sum", "max", "min", "prod")
        return f"{kind}[{name}:{extent}]({self.value(inner, min(depth - 1, self.pick(1, 1, 2)))})"

    def scatter(self, scope: Scope) -> str:
        """Return a reduction of what an integer operand, or an expression of its indices, sends to an index."""
        if index_names(scope) and self.chance(30):
            return self.solved(scope)
        senders = [t for t in self.readable if t.type == "I" and not any(map(is_group, t.dims))]
        if not senders or not index_names(scope):
            return self.atom(scope)
        t = self.rng.choice(senders)
        names = [self.new_index() for _ in t.dims]
        inner = dict(zip(names, t.dims))
        self.used.add(t.name)
        target = self.pick(*index_names(scope))
        kept = {n: e for n, e in scope.items() if n != target} | inner
        condition = f"{t.name}[{', '.join(names)}] == {target}"
        axes = ", ".join(f"{n}:{d}" for n, d in inner.items())
        kind = self.pick("sum", "sum", "prod", "max", "min")
        nothing = IGNORED[kind]
        value = f"{kind}[{axes}]({self.value(kept, 1)} if {condition} else {nothing})"
        return f"minimum(maximum({value}, -8), 8)" if "inf" in nothing else value

    def solved(self, scope: Scope) -> str:
        """Return a sum over two indices under a condition on what they add up to."""
        one, two = self.new_index(), self.new_index()
        axes = {one: self.extent(scope), two: self.extent(scope)}
        inner = {**scope, **{name: self.covered(extent, scope) for name, extent in axes.items()}}
        factor = self.pick("1", "2", "-1", self.attribute("width"))
        left = f"{one}*{factor} + {two}" + self.pick("", " - 1", "")
        right = self.pick(*index_names(scope)) + self.pick("", " + 1", "")
        sides = (left, right) if self.chance(50) else (right, left)
        more = f" and {self.condition(inner, 0)}" if self.chance(25) else ""
        return f"sum[{one}:{axes[one]}, {two}:{axes[two]}]({self.value(inner, 1)} if {' == '.join(sides)}{more} else 0)"

    def optional(self, scope: Scope, depth: int) -> str:
        other = self.value(scope, depth - 1)
        for t in self.flavour.inputs:
            if t.optional:
                places = self.places(t, scope)
                if places is not None:
                    self.used.add(t.name)
                    return f"({t.name}[{', '.join(places)}] if present({t.name}) else {other})"
        return other

    def random(self, scope: Scope) -> str:
        """Return a random number, of a counter and a seed that are whole numbers of several kinds."""
        counter = self.pick(*index_names(scope), *(f"position({n})" for n in scope if is_group(n)), self.read("Q", scope) or "7")
        seed = self.pick("5", self.attribute("big"), self.read("Q", scope) or "1")
        form = self.pick("random({0}, {1})", "cast(int64, random_bits({0}, {1}) % 5)", "cast(int64, philox({0}, {1}) >> 27)")
        return form.format(seed, counter)

    def integer(self, scope: Scope, depth: int) -> str:
        """Return an expression of an integer type."""
        if depth > 0 and self.flavour.name != "broadcast" and self.chance(40):
            name, extent = self.new_index(), self.extent(scope)
            inner = {**scope, name: self.covered(extent, scope)}
            if self.chance(60):
                return f"{self.pick('argmax', 'argmin')}[{name}:{extent}]({self.value(inner, depth - 1)})"
            kind, body = self.pick("sum", "max", "min", "prod"), self.read("Q", inner)
            if body is not None:
                return f"{kind}[{name}:{extent}]({body})"
        one = self.read("Q", scope)
        if one is None:
            return f"cast(int64, {self.value(scope, 0)})"
        two = self.pick(
            "2", "3", "5", self.attribute("big"), *index_names(scope), *self.flavour.sizes, *([self.read("Q", scope) or one] * 3)
        )
        form = self.pick(
            "{0}", "{0} * {1}", "({0} + {1}) // 3", "{0} % 3", "maximum({0}, {1})", "minimum({1}, {0})", "abs({0}) - {1}",
            "-{0} // 2",
            "({0} if {0} < {1} else {1})", "{0} + {1}", "sign({0}) * {1}", "({0} & {1})", "(~{0} | {1}) ^ {0}",
            "({0}) ** 3", "({0}) ** ({0} & 3)", "({0} << ({1} & 7))", "({0} >> {1})",
        )  # fmt: skip
        return form.format(one, two)
