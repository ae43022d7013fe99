"""Random well-typed specs: every construct of the body language, in combinations nobody thought of.

A drawn body is right by construction: each read is provably inside, padded, or data dependent; no read is unguarded; types agree.
So a diagnostic on one is a mistake of the compiler, as is a wrong kernel or gradient.
"""

from __future__ import annotations

import random
import re

from tests.fuzz.asked import MIXED, Questions
from tests.fuzz.attributes import DECLARED, declarations
from tests.fuzz.flavours import ADDED, FLAVOURS, Flavour, Scope, Tensor, index_names, is_group
from tests.fuzz.values import BINARY, SMOOTH

FLOATS = (
    "float32", "float32", "float64", "float32, float64", "float16", "bfloat16, float32", "float8_e4m3fn", "float8_e5m2, float32",
    "float8_e4m3fnuz, float8_e5m2fnuz",
)  # fmt: skip
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "int4", "uint4, int2", "uint2, int4")
"""Without uint64, which mixes with no size and no index."""
RULES = {
    "tanh({0})": "1 - y0 * y0", "exp({0})": "y0", "sigmoid({0})": "y0 * (1 - y0)", "({0}) ** 3": "3 * x * x",
    "sin({0})": "cos(x)",
    "sqrt(1 + ({0}) ** 2)": "x / y0", "maximum({0}, 0)": "(1 if x > 0 else 0)",
}  # fmt: skip
"""Functions of x with their derivatives, in x and the output y0, for gradients written by hand."""


PLACING = frozenset({"axis", "axis1", "axis2", "axes", "keepdims", "perm", "place"})
"""The attributes that say where axes stand, which bodies do not name."""


class Body(Questions):
    """Draws the statements of one spec."""

    def anchored(self, scope: Scope, text: str) -> str | None:
        """Return `text` with bare reads of every index, which give a temporary's indices their ranges; None if there are none."""
        missing = set(scope)
        for t in self.flavour.inputs:
            if t.type == "T" and not t.optional and missing:
                places = self.places(t, scope)
                if places is not None and missing & set(places):
                    self.used.add(t.name)
                    text = f"({text}) * {t.name}[{', '.join(places)}]"
                    missing -= set(places)
        return None if missing else text

    def temporary(self, name: str) -> str | None:
        """Return a statement that defines a temporary: with ranges stated, or taken from bare reads; or without indices."""
        dims = self.rng.choice(self.flavour.results)
        if self.chance(12):
            plain = [t for t in self.flavour.inputs if t.type == "T" and not t.optional and len(set(t.dims)) == len(t.dims)]
            t = self.rng.choice(plain)
            self.used.add(t.name)
            self.readable.append(Tensor(name, "T", t.dims))
            value = self.pick(*SMOOTH).format(t.name)
            return f"{name} = {self.by_type(value, f'{t.name} * 2', *MIXED[self.types]) if self.is_mixed else value}"
        scope = self.scope(dims)
        value = self.asked(scope, self.value(scope, 2), "T")
        if self.is_mixed or self.chance(50):
            target = [n if is_group(n) else f"{n}:{d}" for n, d in scope.items()]
        else:
            anchored = self.anchored(scope, value) if len(set(dims)) == len(dims) else None
            if anchored is None:
                return None
            value, target = anchored, list(scope)
        self.readable.append(Tensor(name, "T", dims))
        return f"{name}[{', '.join(target) or '()'}] = {value}"

    def scope(self, dims: tuple[str, ...]) -> dict[str, str]:
        """Return the indices of a target: a group is its own."""
        return {d if is_group(d) else f"i{k}": d for k, d in enumerate(dims)}

    def statements(self) -> tuple[list[str], list[Tensor]]:
        """Return the lines of the body and the outputs."""
        lines, outputs = [], []
        for n in range(self.rng.choice((0, 0, 1, 1, 2))):
            line = self.temporary(f"t{n}")
            lines += [] if line is None else [line]
        for n in range(self.rng.choice((1, 1, 2, 2, 3))):
            dims = self.flavour.results[0] if self.flavour.adds and n == 0 else self.rng.choice(self.flavour.results)
            scope = self.scope(dims)
            kind = "T" if n == 0 else self.pick("T", "T", "int64", "bool", "Q", "U")
            if kind == "Q" and not any(t.type == "Q" for t in self.flavour.inputs):
                kind = "int64"
            match kind:
                case "int64":
                    value = f"cast(int64, {self.integer(scope, 2)})"
                case "bool":
                    value = f"({self.condition(scope, 2)})"
                case "Q":
                    value = f"cast(Q, {self.integer(scope, 1)})"
                case "U":
                    self.attribute("to")
                    value = f"cast(U, {self.value(scope, 2)})"
                case _:
                    value = self.value(scope, 3)
            lines.append(f"y{n}[{', '.join(scope) or '()'}] = {self.asked(scope, value, kind)}")
            outputs.append(Tensor(f"y{n}", kind, dims))
            if kind == "T" and self.chance(40):
                self.readable.append(outputs[-1])
        return lines, outputs

    def pointwise(self) -> tuple[list[str], list[Tensor], str]:
        """Return an op whose output may take the place of x, element by element, or whose gradient is written by hand."""
        x = self.flavour.inputs[0]
        self.used.add("x")
        dims, scope = x.dims, self.scope(x.dims)
        read = f"x[{', '.join(scope)}]"
        if self.chance(50):
            rule = self.pick(*RULES)
            lines = [f"y0 = {rule.format('x')}"] if len(set(dims)) == len(dims) and self.chance(50) else []
            lines = lines or [f"y0[{', '.join(scope)}] = {rule.format(read)}"]
            saves = "  saves: [y0]\n" if "y0" in RULES[rule] else ""
            derivative = RULES[rule] if len(set(dims)) == len(dims) else RULES[rule].replace("y0", f"y0[{', '.join(scope)}]")
            derivative = derivative if len(set(dims)) == len(dims) else re.sub(r"\bx\b", read, derivative)
            left = ("d_x", "d_y0") if len(set(dims)) == len(dims) else tuple(f"{n}[{', '.join(scope)}]" for n in ("d_x", "d_y0"))
            tail = f"gradient:\n{saves}  body: |\n    {left[0]} = {left[1]} * ({derivative})\n"
        else:
            value = read
            for _ in range(self.rng.choice((1, 2, 3))):
                other = self.read("T", scope, bare=True) or read
                other = read if other.startswith("x[") else other
                value = self.pick(self.pick(*SMOOTH).format(value), self.pick(*BINARY).format(value, other),
                                  f"({value} if {read} > 0 else {other})")  # fmt: skip
            lines, tail = [f"y0[{', '.join(scope)}] = {value}"], "inplace: {y0: x}\n"
        return lines, [Tensor("y0", "T", dims)], tail


def _short(lines: list[str], flavour: Flavour) -> list[str]:
    """Return the statements with bare operands where those over `...` alone stand in nothing but a point of it.

    A statement that reads no operand so keeps its axes: nothing else tells them.
    """
    whole = [bool(re.search(r"= .*\[\.\.\.\]", x)) and not re.search(r"(sum|mean|max)\[\.\.\.\]|position", x) for x in lines]
    return [re.sub(r"(\w+)\[\.\.\.\]", r"\1", line) if short else line for line, short in zip(lines, whole, strict=True)]


def spec(rng: random.Random, name: str = "fuzz") -> str:
    """Draw the text of a spec."""
    flavour = rng.choice(FLAVOURS)
    if flavour.axis and rng.random() < 0.4:
        flavour = ADDED
    body, tail = Body(rng, flavour), ""
    if rng.random() < 0.12:
        body.ask()
        lines, outputs = body.statements()
        tail = rng.choice(("", "", "gradient: {ties: even}\n", "gradient: none\n"))
    elif rng.random() < 0.1 and not (flavour.broadcast or flavour.shape or flavour.axis or flavour.arranges):
        lines, outputs, tail = body.pointwise()
    else:
        lines, outputs = body.order(*body.recurrence(*body.statements()))
        if flavour.name == "broadcast" and rng.random() < 0.5:
            lines = _short(lines, flavour)
        if rng.random() < 0.3:
            tail = f"gradient: {rng.choice(('{ties: even}', '{scatter: atomic}', '{ties: even, scatter: atomic}', 'none'))}\n"
    kept = _kept(body, lines, outputs)
    rng.shuffle(kept)  # the first operand with a dimension or a type is asked for it
    types = {
        "T": body.types or rng.choice(FLOATS), "Q": rng.choice(INTEGERS), "I": rng.choice(("int32", "int64", "uint16", "uint4")),
        "U": rng.choice(("float32, float64", "float16, float32", "float32, bfloat16")),
    }  # fmt: skip
    written = {t.type for t in (*kept, *outputs)} | {"T"}
    attributes = set(body.attributes)
    text = "\n".join([*lines, *flavour.shape.values(), *flavour.require])
    attributes = {a for a in attributes if re.search(rf"\b{a}\b", text) or a in PLACING or (a == "to" and "U" in written)}
    if "U" in written and "float32" not in types["U"]:
        attributes.add("to")
    for extra in ("extras", "beta"):
        if rng.random() < 0.05:
            attributes.add(extra)
    shape = "".join(f"  {n}: '{e}'\n" for n, e in flavour.shape.items())
    return (
        f"op: {name}\ndomain: test\nversion: 1\ndoc: Drawn at random.\n"
        f"types: {{{', '.join(f'{t}: [{d}]' for t, d in types.items() if t in written)}}}\n"
        + ("broadcast: true\n" if flavour.broadcast else "")
        + (f"out_of_range: {rng.choice(('error', 'clamp', 'zero'))}\n" if "I" in written else "")
        + f"inputs:\n{''.join(t.declaration() for t in kept)}"
        + declarations(rng, attributes & DECLARED.keys())
        + (f"shape:\n{shape}" if shape else "")
        + (f"require: [{', '.join(flavour.require)}]\n" if flavour.require else "")
        + f"outputs:\n{''.join(t.declaration() for t in outputs)}"
        + f"kernel: |\n{''.join(f'  {line}' + chr(10) for line in lines)}"
        + tail
    )


def _kept(body: Body, lines: list[str], outputs: list[Tensor]) -> list[Tensor]:
    """Return the operands that a spec declares: those that are read, and those its sizes, groups and types are known by."""
    flavour = body.flavour
    text = "\n".join([*lines, *flavour.shape.values(), *flavour.require, *(d for o in outputs for d in o.dims)])
    kept = [t for t in flavour.inputs if t.name in body.used and re.search(rf"\b{t.name}\b", text)]
    wanted = {d for d in flavour.sizes if re.search(rf"\b{d}\b", text)} | {d for t in kept for d in t.dims if d.isidentifier()}
    wanted |= {d for o in outputs for d in o.dims if is_group(d)} | {d for t in kept for d in t.dims if is_group(d)}
    wanted |= {g for g in flavour.groups if g in text}
    for t in flavour.inputs:
        if t.optional or t in kept:
            continue
        have = {d for k in kept for d in k.dims if not k.optional}
        untyped = {"T", *(o.type for o in outputs)} - {k.type for k in kept if not k.optional}
        # An axis attribute is placed by the operand that has its dimension; a broadcast op has at least one operand.
        if (
            (wanted & set(t.dims)) - have
            or t.type in untyped
            or (t.name == "x" and (flavour.axis or flavour.adds or flavour.arranges or flavour.broadcast))
        ):
            kept.append(t)
    return kept


__all__ = ["index_names", "spec"]
