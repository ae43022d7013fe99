"""Random well-typed specs, drawn by hypothesis: every construct of the body language, in combinations nobody thought of.

A drawn body is right by construction: each read is provably inside, padded, or data dependent; no read is unguarded; types agree.
So a diagnostic on one is a mistake of the compiler, as is a wrong kernel or gradient.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

Scope = Mapping[str, str]
"""The extent of each index variable in scope, as it is written."""


@dataclass(frozen=True)
class Tensor:
    """An operand or temporary that a body may read: its type and the dimension of each axis."""

    name: str
    type: str
    dims: tuple[str, ...]
    optional: bool = False

    def declaration(self) -> str:
        return f"  '{self.name}{'?' if self.optional else ''}': '{self.type}[{', '.join(self.dims)}]'\n"


@dataclass(frozen=True)
class Flavour:
    """A family of signatures: operands, and the shapes results may have. `lead` is the group all of a body's points carry."""

    name: str
    inputs: tuple[Tensor, ...]
    results: tuple[tuple[str, ...], ...]
    head: str = ""
    lead: tuple[str, ...] = ()
    broadcast: bool = False


def _tensors(**shapes: str) -> tuple[Tensor, ...]:
    result = []
    for name, text in shapes.items():
        kind, _, dims = text.partition(" ")
        result.append(Tensor(name, kind.rstrip("?"), tuple(dims.split()), kind.endswith("?")))
    return tuple(result)


FLAVOURS = (
    Flavour(
        "matrix",
        _tensors(x="T M N", z="T N M", w="T N", v="T N K", a="T M K", c="T K", b="T? M", s="T", q="Q M N", r="Q N",
                 ids="I M", jds="I N K", on="bool M N"),
        (("M", "N"), ("M",), ("N",), ("M", "K"), ("N", "M"), (), ("M", "N", "K"), ("N", "2*K"), ("M + 1",)),
    ),
    Flavour(
        "rows",
        _tensors(x="T ... N", z="T ... K", w="T N", v="T N K", c="T K", b="T? N", s="T", q="Q ... N", ids="I ...",
                 on="bool ... N"),
        (("...", "N"), ("...",), ("...", "K"), ("...", "N", "K"), ("...", "2*N")),
        lead=("...",),
    ),
    Flavour(
        "axis",
        _tensors(x="T *A N *B", z="T *A *B", w="T N", b="T? N", s="T", q="Q *A N *B", on="bool *A N *B"),
        (("*A", "N", "*B"), ("*A", "*B")),
        head="attributes:\n  axis: {type: axis, dim: N, default: -1}\n",
        lead=("*A", "*B"),
    ),
    Flavour(
        "image",
        _tensors(x="T M C H", w="T K C 3", v="T C 3", b="T? K", c="T C", ids="I M", q="Q M C H"),
        (("M", "C", "H"), ("M", "K", "H"), ("M", "C", "H // 2"), ("M", "K"), ("M", "C", "2*H"), ("C",)),
    ),
    Flavour(
        "broadcast",
        _tensors(x="T ...", z="T ...", b="T? ...", q="Q ...", on="bool ..."),
        (("...",),),
        lead=("...",),
        broadcast=True,
    ),
)  # fmt: skip

SMOOTH = (
    "sin({0})", "tanh({0})", "sigmoid({0})", "atan({0})", "erf({0})", "sqrt(1 + ({0}) ** 2)", "exp(-({0}) ** 2)", "abs({0})",
    "log1p(({0}) ** 2)", "({0}) ** 2", "({0}) ** 3", "-({0})", "rsqrt(1 + ({0}) ** 2)", "floor({0})", "2 ** sin({0})",
)  # fmt: skip
BINARY = ("({0} + {1})", "({0} - {1})", "({0}) * ({1})", "({0}) / (2 + ({1}) ** 2)", "maximum({0}, {1})", "minimum({0}, {1})")
FLOATS = ("float32", "float32", "float64", "float32, float64", "float16", "bfloat16, float32")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16")


class Body:
    """Draws the statements of one spec."""

    def __init__(self, draw: st.DrawFn, flavour: Flavour) -> None:
        self.draw, self.flavour = draw, flavour
        self.readable = list(flavour.inputs)
        self.used: set[str] = set()
        self.fresh = 0
        self.attributes: set[str] = set()

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def new_index(self) -> str:
        self.fresh += 1
        return f"k{self.fresh}"

    # Reads

    def index(self, dim: str, scope: Scope, *, bare: bool = False) -> tuple[str, bool] | None:
        """Return an index along `dim` and whether it needs a pad; None when nothing in scope fits."""
        own = [n for n, extent in scope.items() if extent == dim]
        every = list(scope)
        if bare or (own and self.chance(60)):
            return (self.pick(*own), False) if own else None
        kind = self.pick("flip", "half", "mod", "shift", "data", "window", "constant")
        if kind == "flip" and own:
            return f"{dim} - 1 - {self.pick(*own)}", False
        if kind == "half" and own:
            return f"{self.pick(*own)} // {self.pick('2', '3')}", False
        if kind == "mod" and own and dim.isidentifier():
            return f"({self.pick(*every)} + {self.pick('0', '1')}) % {dim}", False
        if kind == "shift" and every:
            return f"{self.pick(*every)} {self.pick('+', '-')} {self.pick('1', '2')}", True
        if kind == "window" and every:
            return f"{self.pick('2', '3')}*{self.pick(*every)} + {self.pick(*every)} - 1", True
        if kind == "data":
            found = self.data(scope)
            if found is not None:
                return found, False
        if kind == "constant":
            return self.pick("0", "1"), True
        return (self.pick(*own), False) if own else None

    def data(self, scope: Scope) -> str | None:
        """Return a data-dependent index whose value lies between 0 and the size, or is caught."""
        options = []
        for t in self.readable:
            if t.type == "I":
                places = [[n for n, extent in scope.items() if extent == d] for d in t.dims if d not in self.flavour.lead]
                if all(places):
                    options.append((t, places))
        if not options:
            return None
        t, places = self.draw(st.sampled_from(options))
        self.used.add(t.name)
        chosen = iter([self.pick(*p) for p in places])
        return f"{t.name}[{', '.join(d if d in self.flavour.lead else next(chosen) for d in t.dims)}]"

    def read(self, kind: str, scope: Scope, *, bare: bool = False) -> str | None:
        """Return a read of an operand of a type at indices in scope."""
        options = [t for t in self.readable if t.type == kind and (not t.optional)]
        for t in self.draw(st.permutations(options)):
            entries, padded = [], False
            for d in t.dims:
                if d in self.flavour.lead:
                    entries.append(d)
                    continue
                found = self.index(d, scope, bare=bare)
                if found is None:
                    break
                entries.append(found[0])
                padded |= found[1]
            else:
                self.used.add(t.name)
                text = f"{t.name}[{', '.join(entries) or '()'}]"
                return f"pad({text}, {'False' if kind == 'bool' else self.pick('0', '0', '1')})" if padded else text
        return None

    # Values

    def value(self, scope: Scope, depth: int) -> str:
        """Return an expression of type T."""
        if depth == 0:
            return self.atom(scope)
        kind = self.pick(
            "atom", "smooth", "binary", "binary", "binary", "select", "reduce", "reduce", "contract", "window", "scan", "scan",
            "scatter", "optional", "integer", "integer", "nested", "same",
        )  # fmt: skip
        match kind:
            case "smooth":
                return self.pick(*SMOOTH).format(self.value(scope, depth - 1))
            case "binary":
                first = self.value(scope, depth - 1)
                return self.pick(*BINARY).format(first, self.value(scope, depth - 1))
            case "same":
                one = self.value(scope, depth - 1)
                return f"({one}) * sin({one})"
            case "select":
                first, second = self.value(scope, depth - 1), self.value(scope, depth - 1)
                return f"({first} if {self.condition(scope, depth - 1)} else {second})"
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
        return f"cast(T, {self.pick('1', '0.25', '-0.5', *scope)})"

    def name_read(self, name: str) -> bool:
        if any(t.name == name for t in self.flavour.inputs):
            self.used.add(name)
            return True
        return False

    def extent(self, scope: Scope) -> str:
        """Return the extent of a new reduction index."""
        dims = sorted({d for t in self.flavour.inputs for d in t.dims if d.isidentifier() and d not in self.flavour.lead})
        kind = self.pick("dim", "dim", "dim", "small", "small", "triangle", "rest", "attribute")
        every = [n for n, extent in scope.items() if extent.isidentifier()]
        if kind == "triangle" and every:
            return f"{self.pick(*every)} + 1"
        if kind == "rest" and every:
            index = self.pick(*every)
            return f"{scope[index]} - {index}"
        if kind == "attribute":
            self.attributes.add("width")
            return "width"
        if not dims or kind == "small":
            return self.pick("2", "3")
        return self.pick(*dims)

    def reduce(self, scope: Scope, depth: int, kind: str) -> str:
        if self.flavour.broadcast or (self.flavour.lead and len(self.flavour.lead) == 1 and self.chance(10)):
            # Over the whole group: what is inside carries the group, what is outside does not need to.
            kind = self.pick("sum", "mean")  # max and prod over a group have no gradient in the language
            return f"{kind}[{', '.join(self.flavour.lead)}]({self.value(scope, depth - 1)})"
        axes, inner = [], dict(scope)
        for _ in range(self.draw(st.sampled_from((1, 1, 1, 2)))):
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
        dims = sorted({d for t in floats for d in t.dims if d.isidentifier() and d not in self.flavour.lead})
        if not dims:
            return self.atom(scope)
        dim, name = self.pick(*dims), self.new_index()
        inner = {**scope, name: dim}
        factors = [f"({self.value(inner, self.draw(st.sampled_from((0, 0, 0, 1))))})" for _ in range(2)]
        text = f"sum[{name}:{dim}]({' * '.join(factors)})"
        return f"{text} + {self.atom(scope)}" if self.chance(30) else text

    def window(self, scope: Scope) -> str:
        """Return a reduction over a window of an operand, padded at the border."""
        floats = [t for t in self.readable if t.type == "T" and not t.optional]
        spaced = [t for t in floats if any(d in scope.values() for d in t.dims if d not in self.flavour.lead)]
        if not spaced:
            return self.atom(scope)
        t = self.draw(st.sampled_from(spaced))
        kind = self.pick("sum", "max", "min", "mean")
        fill = {"max": "-inf", "min": "inf"}.get(kind, "0")
        p, step, inner = self.new_index(), self.pick("1", "2", "stride"), dict(scope)
        if step == "stride":
            self.attributes.add("stride")
        inner[p] = "3"
        entries, slid = [], False
        for d in t.dims:
            own = [n for n, extent in scope.items() if extent == d]
            if d in self.flavour.lead:
                entries.append(d)
            elif own and not slid:
                dilation = self.pick("", "2*")
                entries.append(f"{step}*{self.pick(*own)} + {dilation}{p} - {self.pick('0', '1', '2')}")
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
        every = [n for n, extent in scope.items() if extent.isidentifier()]
        if not every:
            return self.atom(scope)
        outer, name = self.pick(*every), self.new_index()
        inner = {n: e for n, e in scope.items() if n != outer or self.chance(30)} | {name: scope[outer]}
        if self.chance(25):
            # Over more elements than the outer index has, or fewer; no axis is known to have them all.
            dim = self.pick(*sorted({e for e in scope.values() if e.isidentifier()}))
            extent = self.pick(f"{outer} + 3", f"{outer} - 2", f"{dim} - {outer}", f"{dim} - 3 - {outer}", f"{dim} - 2")
            inner[name] = extent
            return f"{self.pick('sum', 'sum', 'prod')}[{name}:{extent}]({self.value(inner, min(depth - 1, 1))})"
        extent = self.pick(f"{outer} + 1", f"{outer} + 1", outer)
        kind = self.pick("sum", "sum", "prod") if extent == outer else self.pick("sum", "sum", "max", "min", "prod")
        return f"{kind}[{name}:{extent}]({self.value(inner, min(depth - 1, 1))})"

    def scatter(self, scope: Scope) -> str:
        """Return a sum of what an integer operand sends to an index."""
        senders = [t for t in self.readable if t.type == "I" and not set(t.dims) & set(self.flavour.lead)]
        if not senders or not scope:
            return self.atom(scope)
        t = self.draw(st.sampled_from(senders))
        names = [self.new_index() for _ in t.dims]
        inner = dict(zip(names, t.dims))
        self.used.add(t.name)
        target = self.pick(*scope)
        kept = {n: e for n, e in scope.items() if n != target} | inner
        condition = f"{t.name}[{', '.join(names)}] == {target}"
        axes = ", ".join(f"{n}:{d}" for n, d in inner.items())
        return f"sum[{axes}]({self.value(kept, 1)} if {condition} else 0)"

    def optional(self, scope: Scope, depth: int) -> str:
        other = self.value(scope, depth - 1)
        for t in self.flavour.inputs:
            if t.optional:
                places = [d if d in self.flavour.lead else next((n for n, e in scope.items() if e == d), None) for d in t.dims]
                if None not in places:
                    self.used.add(t.name)
                    return f"({t.name}[{', '.join(map(str, places))}] if present({t.name}) else {other})"
        return other

    def condition(self, scope: Scope, depth: int) -> str:
        kind = self.pick("compare", "compare", "index", "parity", "flag", "any", "not", "and")
        names = list(scope)
        match kind:
            case "index" if len(names) > 1:
                return f"{self.pick(*names)} {self.pick('<', '<=', '==', '!=')} {self.pick(*names)}"
            case "parity" if names:
                return f"({self.pick(*names)} + {self.pick(*names)}) % 2 == 0"
            case "flag":
                found = self.read("bool", scope)
                if found is not None:
                    return found
            case "any" if not self.flavour.broadcast:
                name, extent = self.new_index(), self.extent(scope)
                inner = {**scope, name: self.covered(extent, scope)}
                return f"{self.pick('any', 'all')}[{name}:{extent}]({self.value(inner, 0)} > 0)"
            case "not":
                return f"(not {self.condition(scope, 0)})"
            case "and":
                return f"({self.condition(scope, 0)} {self.pick('and', 'or')} {self.condition(scope, 0)})"
        return f"{self.value(scope, min(depth, 1))} {self.pick('>', '<=', '>=')} {self.value(scope, 0)}"

    def integer(self, scope: Scope, depth: int) -> str:
        """Return an expression of an integer type."""
        if depth > 0 and not self.flavour.broadcast and self.chance(40):
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
        two = self.pick("2", "3", "5", *([self.read("Q", scope) or one] * 2))
        form = self.pick("{0}", "{0} * {1}", "({0} + {1}) // 3", "{0} % 3", "maximum({0}, {1})", "abs({0}) - {1}", "-{0} // 2")
        return form.format(one, two)

    # Statements

    def anchored(self, scope: Scope, text: str) -> str | None:
        """Return `text` with bare reads of every index, which give a temporary's indices their ranges; None if there are none."""
        missing = set(scope)
        for t in self.flavour.inputs:
            if t.type == "T" and not t.optional and missing:
                own = {d: n for n, d in scope.items()}
                if missing & {own.get(d, "") for d in t.dims} and all(d in own or d in self.flavour.lead for d in t.dims):
                    self.used.add(t.name)
                    text = f"({text}) * {t.name}[{', '.join(own.get(d, d) for d in t.dims)}]"
                    missing -= {own.get(d, "") for d in t.dims}
        return None if missing else text

    def statements(self) -> tuple[list[str], list[Tensor]]:
        """Return the lines of the body and the outputs."""
        lines, outputs = [], []
        for n in range(self.draw(st.sampled_from((0, 0, 1, 1, 2)))):
            dims = self.draw(
                st.sampled_from([r for r in self.flavour.results if all(d.isidentifier() or d in self.flavour.lead for d in r)])
            )
            scope = {f"i{k}": d for k, d in enumerate(dims) if d not in self.flavour.lead}
            if len(set(dims)) != len(dims):
                continue
            value = self.anchored(scope, self.value(scope, 2))
            if value is None:
                continue
            lines.append(f"t{n}[{self.target(dims)}] = {value}")
            self.readable.append(Tensor(f"t{n}", "T", dims))
        for n in range(self.draw(st.sampled_from((1, 1, 1, 2, 3)))):
            dims = self.draw(st.sampled_from(self.flavour.results))
            scope = {f"i{k}": d for k, d in enumerate(dims) if d not in self.flavour.lead}
            kind = "T" if n == 0 else self.pick("T", "int64", "bool")
            value = {
                "T": lambda s=scope: self.value(s, 3),
                "int64": lambda s=scope: f"cast(int64, {self.integer(s, 2)})",
                "bool": lambda s=scope: f"({self.condition(s, 2)})",
            }[kind]()
            lines.append(f"y{n}[{self.target(dims)}] = {value}")
            outputs.append(Tensor(f"y{n}", kind, dims))
            if kind == "T" and all(d.isidentifier() or d in self.flavour.lead for d in dims) and self.chance(30):
                self.readable.append(outputs[-1])
        return lines, outputs

    def target(self, dims: tuple[str, ...]) -> str:
        return ", ".join(d if d in self.flavour.lead else f"i{k}" for k, d in enumerate(dims)) or "()"


@st.composite
def specs(draw: st.DrawFn, name: str = "fuzz") -> str:
    """Draw the text of a spec."""
    flavour = draw(st.sampled_from(FLAVOURS))
    body = Body(draw, flavour)
    lines, outputs = body.statements()
    needed = {d for o in outputs for d in " ".join(o.dims).replace("*", " * ").split() if d.isidentifier()}
    # An axis attribute is placed by the operand that has its dimension.
    kept = [t for t in flavour.inputs if t.name in body.used or (t.name == "x" and flavour.name in ("axis", "broadcast"))]
    for t in (x for x in flavour.inputs if not x.optional):
        # What is written must take its size and type from somewhere.
        text = "\n".join(lines)
        have = {d for k in kept for d in k.dims if not k.optional}
        wanted = needed | {d for d in t.dims if d.isidentifier() and any(mark in text for mark in (f":{d}]", f":{d},", f" {d}"))}
        untyped = {"T", *(o.type for o in outputs)} - {k.type for k in kept if not k.optional}
        if t not in kept and ((wanted | set(flavour.lead)) & set(t.dims) - have or t.type in untyped):
            kept.append(t)
    # In an order of the body's own: the first operand with a dimension or a type is asked for it.
    kept.sort(key=lambda t: zlib.crc32("\n".join([t.name, *lines]).encode()))
    types = {
        "T": draw(st.sampled_from(FLOATS)),
        "Q": draw(st.sampled_from(INTEGERS)),
        "I": draw(st.sampled_from(("int32", "int64"))),
    }
    written = {t.type for t in (*kept, *outputs)} | {"T"}
    attributes = {
        "alpha": "  alpha: {type: float, default: 0.5}\n",
        "width": "  width: {type: int, default: 2, check: width > 0 and width < 5}\n",
        "stride": "  stride: {type: int, default: 2, check: stride > 0 and stride < 4}\n",
    }
    own = "".join(attributes[a] for a in sorted(body.attributes))
    head = flavour.head or ("attributes:\n" if own else "")
    return (
        f"op: {name}\ndomain: test\nversion: 1\ndoc: Drawn at random.\n"
        f"types: {{{', '.join(f'{t}: [{d}]' for t, d in types.items() if t in written)}}}\n"
        + ("broadcast: true\n" if flavour.broadcast else "")
        + (f"out_of_range: {draw(st.sampled_from(('error', 'clamp', 'zero')))}\n" if "I" in written else "")
        + f"inputs:\n{''.join(t.declaration() for t in kept)}"
        + head
        + own
        + f"outputs:\n{''.join(t.declaration() for t in outputs)}"
        + f"kernel: |\n{''.join(f'  {line}' + chr(10) for line in lines)}"
    )
