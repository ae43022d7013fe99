"""Random well-typed bodies: every derived op of each is proved against differences."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opc.pipeline import compile_text
from opc.testing.references.gradcheck import check_family
from opc.transform.scalar import unguarded
from tests.amounts import examples
from tests.transform.language import small_points, spec_text

SIGNATURE = """types: {T: [float32, float64]}
inputs: {x: 'T[M, N]', w: 'T[N]', 'b?': 'T[M]', s: 'T[]'}
attributes: {alpha: {type: float, default: 0.5}}
outputs: {y: 'T[M, N]', z: 'T[M]'}
kernel: |
"""
KINDS = ["atom", "atom", "sum", "product", "quotient", "call", "select", "extreme", "square", "reduce", "optional"]
SMOOTH = ("sin", "cos", "tanh", "sigmoid", "atan", "erf")


class Body:
    """Draws a body: statements over what is defined so far."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.full = ["x[{i}, {j}]", "w[{j}]", "s[()]"]
        self.rows = ["s[()]"]
        self.lines: list[str] = []

    def pick(self, options: list[str]) -> str:
        return self.draw(st.sampled_from(options))

    def expression(self, atoms: list[str], depth: int, i: str, j: str) -> str:
        """Return an expression at the indices i and j; nested reductions use their own."""
        kind = self.pick(KINDS)
        if depth == 0 or kind == "atom":
            atom = self.pick([*atoms, "alpha", "2", "0.25"])
            return atom.format(i=i, j=j)
        one = self.expression(atoms, depth - 1, i, j)
        match kind:
            case "call":
                return f"{self.pick(list(SMOOTH))}({one})"
            case "square":
                return f"({one}) ** {self.pick(['2', '3'])}"
            case "reduce":
                inner = "k" if j == "j" else "l"
                if i == "" or inner == "l":
                    return one
                body = self.expression(self.full, depth - 1, i, inner)
                return f"{self.pick(['sum', 'mean', 'max', 'min'])}[{inner}]({body} * x[{i}, {inner}])"
            case "optional":
                return f"(b[{i}] if present(b) else {one})"
        two = self.expression(atoms, depth - 1, i, j)
        match kind:
            case "sum":
                return f"({one} {self.pick(['+', '-'])} {two})"
            case "product":
                return f"({one}) * ({two})"
            case "quotient":
                return f"({one}) / (2 + ({two}) ** 2)"
            case "extreme":
                return f"{self.pick(['maximum', 'minimum'])}({one}, {two} + 0 * s[()])"
            case _:
                condition = f"{self.expression(atoms, 0, i, j)} {self.pick(['>', '<='])} {self.expression(atoms, 0, i, j)}"
                return f"({one} if {condition} else {two})"

    def text(self) -> str:
        for n in range(self.draw(st.integers(0, 2))):
            if self.draw(st.booleans()):
                self.lines.append(f"t{n}[i, j] = {self.expression(self.full, 2, 'i', 'j')} * x[i, j]")
                self.full.append(f"t{n}[{{i}}, {{j}}]")
            else:
                body = self.expression(self.full, 2, "i", "k")
                self.lines.append(f"t{n}[i] = {self.pick(['sum', 'max', 'mean', 'prod'])}[k]({body} * x[i, k])")
                self.rows.append(f"t{n}[{{i}}]")
                self.full.append(f"t{n}[{{i}}]")
        self.lines.append(f"y[i, j] = {self.expression(self.full, 2, 'i', 'j')}")
        self.lines.append(f"z[i] = {self.expression(self.rows, 2, 'i', 'j')}")
        return "".join(f"  {line}\n" for line in self.lines)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    return Body(draw).text()


@settings(max_examples=examples(6, 12), deadline=None, suppress_health_check=list(HealthCheck))
@given(bodies())
def test_derivatives_of_random_bodies(body: str) -> None:
    family = compile_text(spec_text("f", SIGNATURE + body), "f")
    for op in family.ops:
        optional = {o.name for o in op.inputs if o.optional}
        assert not any(unguarded(s.value) & optional for s in op.body), "an operand is read where it may be absent"
    for result in check_family(family, small_points(family.forward)):
        assert result.ok or "no point was sharp enough" in result.message, f"{result}\n{body}"
