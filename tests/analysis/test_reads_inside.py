"""Which reads are proved inside their operand, from what a spec says of its sizes, and which are refused."""

from __future__ import annotations

import pytest

from opc.analysis.elaborate.typing import elaborate
from opc.diagnostics import SpecError
from opc.spec.loader import loads

HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: floating}\n"
GROUPED = "attributes: {group: {type: int, default: 2, check: group >= 1}}\n"


def spec(kernel: str, inputs: str, output: str, require: str = "", more: str = "") -> str:
    required = f"require: [{require}]\n" if require else ""
    return f"{HEAD}inputs: {{{inputs}}}\n{more}{required}outputs: {{y: '{output}'}}\nkernel: |\n  {kernel}\n"


def mistakes(text: str) -> list[str]:
    """Return the messages of a spec's mistakes."""
    try:
        elaborate(loads(text, "spec.yaml"))
    except SpecError as error:
        return [d.message for d in error.diagnostics]
    return []


def quantized(require: str, more: str = "") -> str:
    kernel = "y[n] = sum[k](x[n, k]*w[n, k // 2]*s[n, k // group])"
    return spec(kernel, "x: 'T[N, K]', w: 'T[N, P]', s: 'T[N, G]'", "T[N]", require, GROUPED + more)


PLACED = "attributes: {p: int}\n"
WINDOWED = (
    "attributes: {h: int, w: int, k: {type: int, check: k >= 1}, s: {type: int, check: s >= 1}}\n"
    "shape: {P: (h - 2*(k - 1) - 1) // s + 1, Q: (w - s*(k - 1) - 1) // s + 1}\n"
)
DERIVED = "shape: {P: K // 2, G: K // group}\n"
VECTOR = "x: 'T[D]'"
BETWEEN = "shape: {{S: {}}}\n"


@pytest.mark.parametrize(
    "text",
    [
        quantized("K % 2 == 0, K % group == 0", DERIVED),
        quantized("K % group == 0, K % 2 == 0", DERIVED),
        quantized("K % (2*group) == 0", DERIVED),
        quantized("K % 2 == 0 == K % group", DERIVED),
        quantized("K % group == K % 2 == 0", DERIVED),
        quantized("0 == K % group, K % 2 < 1", DERIVED),
        quantized("K % group + K % 2 <= 0", DERIVED),
        quantized("'not (K % group > 0 or K % 2 > 0)'", DERIVED),
        quantized("K % group == 0, K // group % 2 == 0", DERIVED),
        quantized("K % 2 == 0, K % group == 0, P == K // 2, G == K // group"),
        quantized("2*P == K, G*group == K"),
        quantized("K <= 2*P, K <= group*G"),
        spec("y[d] = x[d]*c[d // 2] if d < 2*R else x[d]", f"{VECTOR}, c: 'T[R]'", "T[D]"),
        spec("y[d] = c[d // 2] if d <= 2*R - 1 and d > 0 else x[d]", f"{VECTOR}, c: 'T[R]'", "T[D]"),
        spec("y[d] = x[d] if d >= 2*R else c[d // 2]", f"{VECTOR}, c: 'T[R]'", "T[D]"),
        spec("y[d] = x[d]*c[d // group] if d < group*R else x[d]", f"{VECTOR}, c: 'T[R]'", "T[D]", more=GROUPED),
        spec("y[d] = x[d]*c[d] if d // 2 < R else x[d]", f"{VECTOR}, c: 'T[S]', r: 'T[R]'", "T[D]", "S == 2*R"),
        spec("y[d] = x[d + 1 - 2*(d % 2)]", VECTOR, "T[D]", "D % 2 == 0"),
        # A condition on a distance or an extreme holds of what it is made of.
        spec("y[d] = x[abs(d - p)] if abs(d - p) < D else 0", VECTOR, "T[D]", more=PLACED),
        spec("y[d] = x[abs(p - d)] if not D <= abs(p - d) else 0", VECTOR, "T[D]", more=PLACED),
        spec("y[d] = x[maximum(d, p)] if maximum(d, p) < D else 0", VECTOR, "T[D]", more=PLACED),
        spec("y[d] = x[d]*r[d + p] if minimum(d + p, R - 1 - d - p) >= 0 else 0", f"{VECTOR}, r: 'T[R]'", "T[D]", more=PLACED),
        # What is required of derived sizes by name, whatever their rules are, and whether they are sizes of axes or not.
        spec("y[i, j] = x[i*Q + j]", VECTOR, "T[P, Q]", "D == P*Q, P >= 1, Q >= 1", WINDOWED),
        spec("y = sum[i:P, j:Q](x[i*Q + j])", VECTOR, "T[]", "D == P*Q, P >= 1, Q >= 1", WINDOWED),
        spec("y[d] = x[d + 2 - 4*((d // 2) % 2)]", VECTOR, "T[D]", "D % 4 == 0"),
        spec("y[d] = x[d // group*group + group - 1 - d % group]", VECTOR, "T[D]", "D % group == 0", GROUPED),
        spec("y[i] = x[i]", "x: 'T[N]', z: 'T[M]'", "T[M]", "M <= N"),
        spec("y[i] = x[i]*z[i]", "x: 'T[N]', z: 'T[M]'", "T[M]", "M < N"),
        spec("y[i, j] = x[i, j]*z[i]", "x: 'T[N, 4]', z: 'T[M]'", "T[M, 3]", "2*M <= N"),
        spec("y[i] = x[i]", "x: 'T[N]'", "T[M]", more="attributes: {count: int}\nshape: {M: 'minimum(N, count)'}\n"),
        spec("y[i] = x[i]", "x: 'T[N]'", "T[M]", more="shape: {M: N // 2}\n"),
        spec("y[i] = sum[k:M](x[k]*z[k])*z[i]", "x: 'T[N]', z: 'T[M]'", "T[M]", "M <= N"),
        spec("y[i] = pad(x[i + 1], z[i])", "x: 'T[N]', z: 'T[N]'", "T[N]"),
        spec("y[i] = pad(x[i + 1], pad(x[i - 1], z[i]))", "x: 'T[N]', z: 'T[N]'", "T[N]"),
        spec("y[i] = x[i - 1] if i != 0 else x[i]", "x: 'T[N]'", "T[N]"),
        spec("y[i] = x[i] if i == 0 else x[i - 1]", "x: 'T[N]'", "T[N]"),
        spec("y[i] = x[i] if i < M or i < N else 0", "x: 'T[N]', z: 'T[M]', u: 'T[K]'", "T[K]", "M <= N"),
        spec("y[i] = pad(x[i + 1], x[i - 1] if N > 1 else 0)", "x: 'T[N]'", "T[N]", "N > 0"),
        spec("y[i] = z[i] if present(z) and i < M else x[i]", "x: 'T[N]', 'z?': 'T[M]'", "T[N]"),
        spec("y[i] = x[i] if not present(z) or i >= M else z[i]", "x: 'T[N]', 'z?': 'T[M]'", "T[N]"),
        spec("y[i] = pad(x[i + 1], z[i] if present(z) and (i < M and x[i] > 0) else 0)", "x: 'T[N]', 'z?': 'T[M]'", "T[N]"),
        spec("y[i] = 1 if i < M and z[i] > 0 else x[i]", "x: 'T[N]', z: 'T[M]'", "T[N]"),
        spec("y[i] = 1 if i >= M or z[i] > 0 else x[i]", "x: 'T[N]', z: 'T[M]'", "T[N]"),
        spec("y[i] = x[k[i]] if i < M else 0", "x: 'T[N]', k: 'int64[M]', z: 'T[K]'", "T[K]"),
        spec("y[i] = 0 if i >= M else x[k[i] + 1]", "x: 'T[N]', k: 'int64[M]', z: 'T[K]'", "T[K]"),
        spec("y[i] = 1 if i < M and x[k[i]] > 0 else 0", "x: 'T[N]', k: 'int64[M]', z: 'T[K]'", "T[K]"),
        spec("y[i] = pad(x[k[i]], 0) if i < M else 0", "x: 'T[N]', k: 'int64[M]', z: 'T[K]'", "T[K]"),
        spec("y[i] = 1 if i > 0 and x[i - 1] > x[i] and x[0] > 0 else 0", "x: 'T[N]'", "T[N]"),
        spec("y[i] = any[k:N](k < i and x[k + N - i] > 0)", "x: 'T[N]'", "bool[N]"),
        spec("y[d] = x[d + 1] if d % 2 == 0 else x[d - 1]", VECTOR, "T[D]", "D % 2 == 0"),
        spec("y[d] = x[d + 1 - 2*(d % 2)]*c[d // 2] if d < 2*R else x[d]", f"{VECTOR}, c: 'T[R]'", "T[D]", "2*R <= D"),
        spec("y[d] = x[2*(d // 2) + 1]*c[d // 2] if d < 2*R else x[d]", f"{VECTOR}, c: 'T[R]'", "T[D]", "2*R <= D"),
        spec("y[s] = x[s // 2] if s % 2 == 1 else 0", VECTOR, "T[S]", more=BETWEEN.format("2*D + 1")),
        spec("y[s] = x[s // 3] if s % 3 == 2 else 0", VECTOR, "T[S]", more=BETWEEN.format("3*D + 2")),
        spec("y[s] = x[s // 2] + (x[s // 2 + 1] if s % 2 == 1 else 0)", VECTOR, "T[S]", "D > 0", BETWEEN.format("2*D - 1")),
        spec("y[i, j] = 0 if i < j or i == j else x[i - j - 1]", VECTOR, "T[D, D]"),
        spec("y[i, j] = x[i - j - 1] if i >= j and i != j else 0", VECTOR, "T[D, D]"),
        spec("y[d] = x[d // group*group]*c[d // group] if d < group*R else 0", f"{VECTOR}, c: 'T[R]'", "T[D]", more=GROUPED),
    ],
)
def test_what_is_known_to_be_inside_is_accepted(text: str) -> None:
    assert mistakes(text) == []


OUTSIDE = "the read may fall outside"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (quantized("K % 2 == 0", DERIVED), OUTSIDE),
        (quantized("2*P == K, G*group <= K"), OUTSIDE),
        (spec("y[d] = x[d]*c[d // 2] if d <= 2*R else x[d]", f"{VECTOR}, c: 'T[R]'", "T[D]"), OUTSIDE),
        (spec("y[d] = x[d] if d < 2*R else c[d // 2]", f"{VECTOR}, c: 'T[R]'", "T[D]"), OUTSIDE),
        (spec("y[d] = x[d + 1 - 2*(d % 2)]", VECTOR, "T[D]"), OUTSIDE),
        (spec("y[d] = x[d + 2 - 4*((d // 2) % 2)]", VECTOR, "T[D]", "D % 2 == 0"), OUTSIDE),
        (spec("y[s] = x[s // 2] if s % 2 == 0 else 0", VECTOR, "T[S]", more=BETWEEN.format("2*D + 1")), OUTSIDE),
        (spec("y[s] = x[s // 2] if s % 2 == 1 else 0", VECTOR, "T[S]", more=BETWEEN.format("2*D + 2")), OUTSIDE),
        (spec("y[i, j] = x[i - j - 1] if i >= j and i != j + 1 else 0", VECTOR, "T[D, D]"), OUTSIDE),
        (spec("y[i] = x[i]*z[i]", "x: 'T[N]', z: 'T[M]'", "T[M]", "N <= M"), "the index 'i' runs over M and over N"),
        (spec("y[i] = x[i]", "x: 'T[N]'", "T[M]", more="shape: {M: N // 2 + 1}\n"), "the index 'i' runs over M and over N"),
        (spec("y[i] = x[i - 1] if i != 1 else x[i]", "x: 'T[N]'", "T[N]"), OUTSIDE),
        (spec("y[i] = x[i - 1] if i > 0 or N > 3 else x[i]", "x: 'T[N]'", "T[N]"), OUTSIDE),
        (spec("y[i] = pad(x[i + 1], x[i - 1])", "x: 'T[N]'", "T[N]"), OUTSIDE),
        (spec("y[i] = z[i] if present(z) and i <= M else x[i]", "x: 'T[N]', 'z?': 'T[M]'", "T[N]"), OUTSIDE),
        (spec("y[i] = z[i] if present(z) or i < M else x[i]", "x: 'T[N]', 'z?': 'T[M]'", "T[N]"), "may be absent"),
        (spec("y[i] = 1 if i < M or z[i] > 0 else x[i]", "x: 'T[N]', z: 'T[M]'", "T[N]"), OUTSIDE),
        (spec("y[i] = pad(x[k[i]], 0)", "x: 'T[N]', k: 'int64[M]', z: 'T[K]'", "T[K]"), "the index 'i' runs over K and over M"),
        (
            spec("y[i] = 1 if z[i] > 0 and i < M else x[i]", "x: 'T[N]', z: 'T[M]'", "T[N]"),
            "the index 'i' runs over N and over M",
        ),
        (spec("y[d] = x[d + 1] if d % 2 == 0 else x[d - 1]", VECTOR, "T[D]"), OUTSIDE),
        (spec("y[d] = x[d + 1 - 2*(d % 2)] if d <= 2*R else x[d]", f"{VECTOR}, c: 'T[R]'", "T[D]", "2*R <= D"), OUTSIDE),
    ],
)
def test_what_may_fall_outside_is_refused(text: str, message: str) -> None:
    assert any(message in m for m in mistakes(text)), mistakes(text)


@pytest.mark.parametrize(
    "equal", ["N == M + 1", "M + 1 == N", "M == N - 1", "N - M == 1", "N == M + K + 1", "N == 2*M + 1", "M*K + 1 == N"]
)
def test_an_equality_tells_no_less_than_its_inequalities(equal: str) -> None:
    text = "y = x[0] + x[N - 1] + sum[k](z[k]) + sum[k](u[k])", "x: 'T[N]', z: 'T[M]', u: 'T[K]'", "T[]"
    for relation in (">=", "=="):
        if "M ==" not in equal or relation == "==":  # else the inequality is the other one
            assert mistakes(spec(*text, equal.replace("==", relation) if not equal.endswith("N") else equal)) == []
    assert any(OUTSIDE in m for m in mistakes(spec(*text, "N == M")))


@pytest.mark.parametrize("known", ["D > 0", "D >= 3", "D + R > R"])
def test_what_divides_a_size_that_is_not_zero_goes_into_it_at_least_once(known: str) -> None:
    text = "y = x[0] + sum[g:G](x[g*group]) + w[G - 1] + sum[r](c[r])", f"{VECTOR}, w: 'T[G]', c: 'T[R]'", "T[]"
    more = GROUPED + "shape: {G: D // group}\n"
    assert mistakes(spec(*text, f"D % group == 0, {known}", more)) == []
    assert any(OUTSIDE in m for m in mistakes(spec(*text, "D % group == 0", more)))
    assert any(OUTSIDE in m for m in mistakes(spec(*text, known, more)))
