"""Hints say what to write: each names the spelling that mends the mistake, and what it names is accepted where it is one spec."""

from __future__ import annotations

import pytest

from tests.diagnostics.body_cases import BOTH, CACHE, KINDS, MATRIX, MIXED, TABLE, VECTOR
from tests.diagnostics.harness import Case, case, kernel, unmark
from tests.diagnostics.test_positions import CASES, diagnose

OPTIONAL = "inputs: {x: 'T[N]', 'z?': 'T[M]'}\noutputs: {y: 'T[M]'}\nkernel: y[m] = x[0]"
CHECKED = "{a: {type: int, check: a > 0}, b: {type: int, check: b > 0}}"
HALF_CHECKED = "{a: {type: int, check: a > 0}, b: int}"
STEP = (
    "counts: {p: [1, 2], N: p, g: p}\ninputs: {p: 'T[N]', g: 'T[N]'}\noutputs: {total: 'T[]', q: 'T[%s]'}\ninplace: {q: %s}\n"
    "kernel: |\n  total[] = sum(*(g[0]))\n  q[i] = %s - g[0]"
)
"""A step of one parameter, where one of each is meant."""
FOR_EACH = "for a 'q' of each write counts: {q: p}"
AXES = (
    "ranks: {S: [1, 2]}\ninputs: {x: 'T[*S]'}\nattributes: {k: {type: 'int[*S]'%s}}\noutputs: {y: 'T[*S]'}\n"
    "kernel: 'y[*S] = x[*(S // k)]'"
)
TURNS = "counts: {x: [2, 3], N: x}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[3]'}\n%skernel: 'y[i] = sum(*(x[i %% N]))'"
HINTS: list[tuple[Case, str]] = [
    (case(AXES % ""), "add the check k > 0"),
    (case(TURNS % ""), "add require: [N > 0]"),
    (kernel("y(i) = x[i]", **VECTOR), "write y[i] = ..."),
    (kernel("y = x\n2 * y = x"), "write name[indices] = ..."),
    (kernel("y := x"), "`=` assigns"),
    (kernel("y[i] := x[i]", **VECTOR), "`=` assigns"),
    (kernel("y = x * (2 + 1 = 3)"), "`==` compares"),
    (case("require: [2 * N = 4]\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}"), "`==` compares"),
    (case("inputs: {x: 'T[N]]'}"), "delete it, or open one ahead of it"),
    (case("types: {T: float}"), "floating is all floating types, float32 one of them"),
    (case("types: {T: [Double]}"), "write float64"),
    (case("types: {T: float8_e4m3}"), "did you mean 'float8_e4m3"),
    (kernel("y[i] = x[i * 10 ** 20]", **VECTOR), "a power is whole with an exponent from 0 to 8"),
    (kernel("y[i] = x[i * 2.0]", **VECTOR), "write 2"),
    (kernel("y[i] = x[2 * (i / 2)]", **VECTOR), "`//` divides whole numbers"),
    (kernel("y[i] = x[exp(i)]", **VECTOR), "cast(int64, ...)"),
    (kernel("y[i] = cast(T, argmax[k](⟦x[k] > 0⟧))", **VECTOR), "the first that holds is argmax[k](cast(int64, x))"),
    (case("shape: {M: N / 2}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[M]'}\nkernel: y[i] = x[i]"), "`//` divides whole numbers"),
    (case("shape: {M: N + 10 ** 9}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[M]'}\nkernel: y[i] = x[i]"), "a power is whole with"),
    (case(STEP % ("⟦N⟧", "⟦p⟧", "⟦p⟧[i]")), FOR_EACH),
    (case((STEP % ("1", "q", "1")).replace("sum(*(g[0]))", "⟦g⟧[0]").replace("inplace: {q: q}\n", "")), "for a 'total' of each"),
    (kernel("y = x ^ 2", **MIXED), "convert with cast(int64, ...)"),
    (kernel("y = x ^ 2", **MIXED), "a power is x ** y"),
    (kernel("y[i] = x[i] > 0 ? x[i] : 0", **VECTOR), "a if condition else b"),
    (kernel("y[i] = x[i] if x[i] > 0 && x[i] < 1 else 0", **VECTOR), "`and` joins"),
    (kernel("y[i] = x[i] if x[i] > 0 || x[i] < 1 else 0", **VECTOR), "`or` joins"),
    (kernel("y[i] = x[i] if !(x[i] > 0) else 0", **VECTOR), "`not` negates"),
    (kernel("y[i] = x[i] if x[i] > 0 AND x[i] < 1 else 0", **VECTOR), "words are written small"),
    (kernel("y[i] = x[(i - 1) mod N]", **VECTOR), "`%` is the remainder"),
    (kernel("y[i] = sum[k](x[k] if k <= i)", **VECTOR), "a if condition else b"),
    (kernel("y[i] = sum[k=0:N](x[k])", **VECTOR), "k:extent"),
    (kernel("y[i] = sum[j, k=0:N](x[k])", **VECTOR), "k:extent"),
    (
        case(
            "types: {T: floating, M: [float32, bool]}\ninputs: {x: 'T[N]', m: 'M[N]'}\noutputs: {y: 'T[N]'}\n"
            "kernel: y[i] = x[i] if (m[i] if M in bool else m[i] > 0) else 0"
        ),
        "cast(bool, ...)",
    ),
    (kernel("y[i] = argsort(x)[i]", **VECTOR), "argsort[k](x[k])[i]"),
    (kernel("y[n] = sum[k](w[k] if ids[k] = n else 0) + x[0]", **TABLE), "`==` compares"),
    (kernel("y[i] = x[i] + b[i]", inputs="{x: 'T[N]', b: 'T[1]'}", outputs="{y: 'T[N]'}"), "0 in place of i"),
    (case("inputs: {x: 'T[N]', b?: 'T[N]'}"), "'b?'"),
    (case("attributes: {k: 'int[2]'}\nrequire: [k[0] > 1]"), "a text with brackets stands in quotes"),
    (case("attributes: {k: 'int[2]'}\nrequire: [1 + k[0] > 1]"), "a text with brackets stands in quotes"),
    (case("attributes: {k: 'int[2]'}\nshape: {M: 1 + k[0] * 2}"), "a text with brackets stands in quotes"),
    (case("attributes: {a: {type: float, value: 0.5}}"), "did you mean 'default'?"),
    (case("gradient: false"), "write gradient: none"),
    (case("gradient: true"), "write gradient: auto"),
    (case("inputs: {x: 'T[*K, *R]'}\nattributes: {a: {type: axes, group: R, default: 1}}"), "write [1]"),
    (case("attributes: {a: {type: 'int[3]', default: 2}}"), "write [2, 2, 2]"),
    (case("inputs: {x: 'T[N]'}\nshape: {M: ceil(N / 2)}\noutputs: {y: 'T[M]'}\nkernel: y[i] = x[i]"), "write (a + b - 1) // b"),
    (
        case(
            "attributes: {s: {type: int, check: s > 0}}\ninputs: {x: 'T[N]'}\nshape: {M: ceil(N / s)}\noutputs: {y: 'T[M]'}\n"
            "kernel: y[i] = x[i]"
        ),
        "write (N + s - 1) // s",
    ),
    (case("inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\ninplace: {x: y}\nkernel: y = x"), "the output here is y"),
    (kernel("y = math.sqrt(x)"), "sqrt(...)"),
    (kernel("y = np.exp(x)"), "exp(...)"),
    (kernel("y = x * x.shape[0]"), "the size of an axis is its dimension's name"),
    (kernel("y = x * pi"), "3.141592653589793"),
    (kernel("y = cumsum(x)"), "sum[k:i + 1](x[k])"),
    (kernel("y = softmax(x)"), "exp(x[i] - m[])"),
    (kernel("y[i] = x[i]\ny[0] = 0", **VECTOR), "y[i] = a if i == 0 else b"),
    (kernel("t[0] = x[0]\ny[i] = x[i]", **VECTOR), "t[i] = a if i == 0 else b"),
    (kernel("y[2*i] = x[i]", **VECTOR), "let the right side shift"),
    (kernel("y[ids[n]] = w[n] * x[0]", **TABLE), "y[k] = sum[n](x[n] if ids[n] == k else 0)"),
    (kernel("y[ids[n]] += w[n] * x[0]", **TABLE), "y[k] = sum[n](x[n] if ids[n] == k else 0)"),
    (kernel("y[i] = x[i] + pad(y[i - a], 0)", attributes="{a: int}", **VECTOR), "a: {type: int, check: a > 0}"),
    (kernel("y[n] = w[n] + pad(y[n - ids[n]], x[0])", **TABLE), "y[p[t]] if 0 <= p[t] and p[t] < t else 0"),
    (kernel("y[n, c] = x[n, c] + pad(y[n - 1, c], 0) + pad(y[n, c - 1], 0)", **MATRIX), "z[t, i] for y[i, t - i]"),
    (kernel("y[i] = x[i] + pad(y[i - 1], 0) + pad(y[i + 1], 0)", **VECTOR), "a recurrence reads what is behind it along one"),
    (kernel("y = x if random(i) > 0.5 else 0", **MIXED), "random(seed, i)"),
    (kernel("y = x if random(x, i) > 0.5 else 0", **MIXED), "declare it as an int attribute or an integer input"),
    (kernel("y = x * uniform(3, i)", **MIXED), "random(seed, i)"),
    (kernel("y = x ** x", **BOTH), "write `... if T in floating else ...`"),
    (kernel("y = x / 2", **BOTH), "write `... if T in floating else ...`"),
    (kernel("y = x ^ 2", **BOTH), "write `... if T in integer else ...`"),
    (kernel("y = exp(x) if T in floating else exp(x)", **BOTH), "convert with cast(U, ...)"),
    (kernel("y = ~x", **MIXED), "convert with cast(int64, ...)"),
    (case("require: [⟦N = 3⟧]\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}"), "`==` compares"),
    (kernel("y = x << i", **MIXED), "convert with cast(int64, ...)"),
    (kernel("y = x if i > 0 & x > 0 else 0", **MIXED), "(a > 0) & (b > 0)"),
    (kernel("y = x + cast(T, i >> -1)", **MIXED), "`>>` shifts the other way than `<<`"),
    (kernel("m[i] = x[0]\ny = x * m", **VECTOR), "m[i:N] = ..."),
    (kernel("m[i, n] = x[n]\ny[n] = m[0, n]", **VECTOR), "m[i:N, n] = ..."),
    (kernel("y[n] = sum[k](x[n])", **VECTOR), "sum[k:N](...)"),
    (kernel("m[b, s] = sum[d](kv[b, S - 1 - s, d])\ny[b, d] = kv[b, 0, d]", **CACHE), "m[b, s:S] = ..."),
    (kernel("y[b, d] = sum[s](kv[b, s // 2, d])", **CACHE), "sum[s:S](...)"),
    (kernel("t[c] = 2.0 * c\ny[n, c] = x[n, c] * t[c]", **MATRIX), "t[c:C]"),
    (kernel("t[n:N, k:2, c] = 2.0 * c\ny[n, c] = x[n, c] * t[n, 0, c]", **MATRIX), "t[n:N, k:2, c:C] = ..."),
    (kernel("t[j] = 2.0 * j\ny[i, j] = x[i, j] * t[j]", **MATRIX), "t[j:C]"),
    (kernel("t[j] = sum[p:2](pad(x[0, j + p], 0))\ny[n, c] = x[n, c] * t[c]", **MATRIX), "t[j:C]"),
    (kernel("a[c:3] = 1.5 * c\nt[c] = 2.0\ny[n, c] = x[n, c] * t[c] * a[2]", **MATRIX), "t[c:C]"),
    (kernel("y[b, d] = sum[s](kv[b, b + s, 0] + kv[0, 0, s + 1])", **CACHE), "sum[s:D](...)"),
    (kernel("y[b, d] = sum[s](kv[b, b + s, d])", **CACHE), "sum[s:S](...)"),
    (
        kernel("y[n] = sum[k](w[ids[k + 1]] * x[0])", inputs="{w: 'T[V]', ids: 'int64[N]', x: 'T[N]'}", outputs="{y: 'T[N]'}"),
        "sum[k:N]",
    ),
    (kernel("y[n] = sum[k](x[k, n] + x[n, k])", **{**MATRIX, "outputs": "{y: 'T[N]'}"}), "sum[k:N](...)"),
    (kernel("t[k, j] = x[k, j] + x[j, k]\ny[n, c] = t[n, c]", **MATRIX), "t[k:N, j] = ..."),
    (kernel("y[n] = w[n] * v[n]", inputs="{w: 'T[M]', v: 'T[N]'}", outputs="{y: 'T[N]'}"), "require: [N <= M]"),
    (kernel("t[n] = n if ids[n] > 0 else N\ny = w * cast(T, t)", **TABLE), "cast(int64, ...)"),
    (kernel("t[n] = 0.5 if ids[n] > 0 else 1.5\ny = w * t", **TABLE), "cast(T, ...)"),
    (case(OPTIONAL), "let 'z' always be given, with M = 0 where there is nothing, or write a spec of its own without it"),
    (case("attributes: {axis: {type: axis, dim: N}}"), "declare an input as T[*A, N, *B]"),
    (
        case(
            "inputs: {x: 'T[*A, *B]'}\noutputs: {y: 'T[*A, *B, D]'}\nshape: {D: 2}\nkernel: 'y[*A, *B, d] = x[*A, *B]'\n"
            "attributes: {axis: {type: axis, dim: D}}"
        ),
        "declare an input as T[*A, D, *B], or an output T[*A, D, *B] beside an input T[*A, *B]",
    ),
    (
        case(
            "inputs: {x: 'T[*A, *B, N]'}\noutputs: {y: 'T[*A, D, *B]'}\nshape: {D: 2}\n"
            "kernel: 'y[*A, d, *B] = sum[n](x[*A, *B, n])'\nattributes: {axis: {type: axis, dim: D}}"
        ),
        "declare one as T[*A, *B]",
    ),
    (
        case("inputs: {x: 'T[*A, N, *B]'}\noutputs: {y: 'T[*A, N, *B]'}\nattributes: {axis: {type: axis, dim: L}}"),
        "the inputs' dimensions are N",
    ),
    (kernel("y[n] = x[k]", **VECTOR), "sum[k](...)"),
    (kernel("y[n] = sum[i:N, j:i](x[j]) + x[n]", **VECTOR), "sum[i](sum[j:...](...))"),
    (kernel("y[n] = x[n*n]", **VECTOR), "cast(int64, ...)"),
    (kernel("y[n] = x[n] * x[-1]", **VECTOR), "N - 1 is counted from the end"),
    (kernel("y[n, c] = x[n, -2] + x[n, c]", **MATRIX), "C - 2 is counted from the end"),
    (kernel("y[n, c] = x[n][c]", **MATRIX), "all indices stand in one pair of brackets: x[i, j]"),
    (kernel("y = x + u", **MIXED), "cast(T, ...)"),
    (kernel("y = x + cast(T, i + 0.5)", **MIXED), "cast(T, ...)"),
    (kernel("y[i] = a[i] + b[i]", inputs="{a: 'int32[N]', b: 'int64[N]'}", outputs="{y: 'int64[N]'}"), "cast(int64, ...)"),
    (kernel("y[i] = a[i] * b[i]", inputs="{a: 'uint8[N]', b: 'float16[N]'}", outputs="{y: 'float16[N]'}"), "cast(float16, ...)"),
    (kernel("y[...] = x[0]", **VECTOR), "write y[n]"),
    (kernel("y = x + cast(T, i ** -2)", **MIXED), "convert it with cast(T, ...)"),
    (kernel("y[i] = sum[k:minimum(i + 1, a)](x[i - k])", **VECTOR, attributes="{a: int}"), "sum[k:a](... if k < i + 1 else 0)"),
    (kernel("y[i] = prod[k:minimum(N, a)](x[k])", **VECTOR, attributes="{a: int}"), "shape: {M: minimum(N, a)}"),
    (kernel("y = x * sum[j](f[j])", **KINDS), "make it an input, which an index reads: f: 'T[K]'"),
    (kernel("y = x * sum[j:2](cast(T, k[j]))", **KINDS), "make it an input, which an index reads: k: 'int64[K]'"),
    (case("attributes: {n: {type: int, default: 1.5}}"), "declare n: {type: float}"),
    (kernel("y = x + 1e999"), "infinity is written inf"),
    (kernel("y = x + 18446744073709551616"), "with a point, as in 1.0, a number is a floating one"),
    (case("require: N > 0\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}"), "write ['N > 0']"),
    (case("inputs: [x]"), "write inputs: {x: 'T[...]'}"),
    (case("attributes: {to: {type: dtype, binds: U}}"), "declare it: types: {U: floating}"),
    (case("attributes: {a: {type: float, default: inf}}"), "infinity is .inf"),
    (case("attributes: {a: {type: float, default: '1'}}"), "such as 0.5"),
    (case("outputs: {y: 'T[*A]'}"), "the inputs' groups are ..."),
    (kernel("y[i] = k[i] * 10 ** i", inputs="{k: 'int64[N]'}", outputs="{y: 'int64[N]'}"), "write its base as cast(int64, ...)"),
    (kernel("y[i] = x[i // a]", **VECTOR, attributes="{a: int}"), "add the check a > 0"),
    (kernel("y[i] = x[i // (a*b)]", **VECTOR, attributes=HALF_CHECKED), "add the check b > 0"),
    (kernel("y[i] = x[i // (a // b)]", **VECTOR, attributes=CHECKED), "add require: [a // b > 0]"),
    (kernel("y[i] = t[i]\nu[i:N] = pad(y[i - 1], 0)\nt[i:N] = u[i] + x[i]", **VECTOR), "write 'y' below 't'"),
    (kernel("y[i] = t[i]\nt[i:N] = pad(y[i - 1], y[i])", **VECTOR), "a recurrence reads what is behind it"),
]


@pytest.mark.parametrize(("row", "hint"), HINTS, ids=[h for _, h in HINTS])
def test_hint_says_what_to_write(row: Case, hint: str) -> None:
    found = diagnose(unmark(row.text)[0])
    assert any(hint in (d.hint or "") for d in found), "\n".join(d.render() for d in found)


MENDED = [
    case(AXES % ", check: k > 0"),
    case(TURNS % "require: [N > 0]\n"),
    kernel("u[i:N] = pad(y[i - 1], 0)\nt[i:N] = u[i] + x[i]\ny[i] = t[i]", **VECTOR),
    kernel("y[i] = x[i // (a*b)]", **VECTOR, attributes=CHECKED),
    kernel("y[i] = x[i // (a // b)]", **VECTOR, attributes=CHECKED, require="[a // b > 0]"),
    kernel("m[i:N] = x[0] if N > 0 else 0\ny = x * m", **VECTOR),
    kernel("y[n] = sum[k:N](x[n])", **VECTOR),
    kernel("m[b, s:S] = sum[d](kv[b, S - 1 - s, d])\ny[b, d] = sum[s](kv[b, s, d] * m[b, s])", **CACHE),
    kernel("y[n] = w[n] * v[n]\n", inputs="{w: 'T[M]', v: 'T[N]'}", outputs="{y: 'T[N]'}", require="[N <= M]"),
    kernel(
        "t[n] = cast(int64, n if ids[n] > 0 else N)\ny = w * cast(T, t)", **{**TABLE, "inputs": "{ids: 'int64[N]', w: 'T[N]'}"}
    ),
    kernel("y[n] = x[cast(int64, n*n)]", **VECTOR),
    kernel("y[n] = w[n] + cast(T, ids[n] * cast(int64, 10) ** n)", **{**TABLE, "inputs": "{ids: 'int64[N]', w: 'T[N]'}"}),
    kernel("y = x + cast(T, i // 8 % 2 + i % 8 - i - 1)", **MIXED),
    kernel("y[i] = sum[k:a](x[i - k] if k < i + 1 else 0)", **VECTOR, attributes="{a: {type: int, check: a > 0}}"),
    kernel("y[i] = prod[k:M](x[k])", **VECTOR, attributes="{a: {type: int, check: a > 0}}", shape="{M: 'minimum(N, a)'}"),
    kernel("y = x * sum[j](f[j])", inputs="{x: 'T[...]', f: 'T[K]'}"),
    kernel("y = x + 18446744073709551616.0 + cast(T, 9223372036854775808)"),
    kernel("y = x" + " + x" * 199),
    kernel("y[i] = x[i] + pad(y[i - a], 0)", attributes="{a: {type: int, check: a > 0}}", **VECTOR),
    kernel("y[n] = w[n] + (y[ids[n]] if 0 <= ids[n] and ids[n] < n else x[0])", **TABLE, require="[V > 0]"),
    kernel(
        "z[t:L, i:N] = pad(z[t - 1, i - 1], 0) + pad(z[t - 1, i], 0) + x[i, t - i] if t >= i and t - i < C else 0\n"
        "y[i, j] = z[i + j, i]",
        **MATRIX,
        shape="{L: N + C - 1}",
        require="[N > 0, C > 0]",
    ),
    kernel("m[] = stop_gradient(max[k](x[k]))\ny[i] = exp(x[i] - m[]) / sum[k](exp(x[k] - m[]))", require="[N > 0]", **VECTOR),
]


@pytest.mark.parametrize("row", MENDED)
def test_what_a_hint_says_is_accepted(row: Case) -> None:
    assert [d.message for d in diagnose(row.text) if d.severity.value == "error"] == []


SAID = (
    "invalid syntax",
    "was never closed",
    "unknown name",
    "there is no axis group",
    "is no input",
    "is an index of this",
    "a place of argsort is a whole number",
    "a dimension is a whole number",
    "can't name a",
    "can't name an op",
    "can't be a domain",
    "can't be a name",
    "can't be the name",
    "can't be included",
    "gradient is auto, none, or a mapping",
    "not valid YAML",
)
"""What diagnostics without a hint say: Python's and YAML's own words, and those that say what to write themselves. A name is
unknown without a hint where none is like it and many are known."""


def test_each_mistake_has_a_hint_or_says_what_to_write() -> None:
    lacking: set[str] = set()
    for row in CASES:
        errors = [d for d in diagnose(unmark(row.text)[0]) if d.severity.value == "error"]
        lacking |= {d.message for d in errors if not d.hint and not any(said in d.message for said in SAID)}
    assert sorted(lacking) == []
