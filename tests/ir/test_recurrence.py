"""Which statements step together, along which index, and in which order they are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from opc.analysis.elaborate.recurring import Recurring
from opc.diagnostics import SpecError
from opc.ir.expr import Expr, Read, rewrite
from opc.ir.op import Op, Operand
from opc.ir.recurrence import NoRecurrence, circles, recurrences, recurrent, segments, stepping
from opc.ir.verify import VerifyError, verify
from opc.lang.tree import Statement
from opc.pipeline import compile_text

HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\n"


def op(inputs: str, outputs: str, *body: str) -> Op:
    lines = "".join(f"  {line}\n" for line in body)
    return compile_text(f"{HEAD}inputs: {inputs}\noutputs: {outputs}\nkernel: |\n{lines}").forward


LINEAR = op("{a: 'T[N, D]', s: 'T[D]'}", "{h: 'T[N, D]'}", "h[t, d] = a[t, d] * pad(h[t - 1, d], s[d])")


def test_a_value_made_from_itself() -> None:
    (found,) = recurrences(LINEAR)
    assert (found.targets, found.axes, str(found.extent), found.falls) == (("h",), (0,), "N", False)
    assert found.index_of(LINEAR.body[0]) == "t"


def test_it_falls_and_steps_along_any_axis() -> None:
    (found,) = recurrences(op("{a: 'T[D, N]'}", "{h: 'T[D, N]'}", "h[d, t] = a[d, t] * pad(h[d, t + 2], 1)"))
    assert (found.axes, found.falls) == ((1,), True)


def test_values_step_together_along_their_own_axes() -> None:
    body = (
        "z[t:N, d:D] = sum[k](r[d, k] * pad(h[k, t - 1], 0))",
        "c[d, t] = tanh(z[t, d]) + pad(c[d, t - 1], 0)",
        "h[d, t] = c[d, t] * x[d, t]",
        "y[d] = sum[t](h[d, t])",
    )
    both = op("{x: 'T[D, N]', r: 'T[D, D]'}", "{y: 'T[D]'}", *body)
    (found,) = recurrences(both)
    assert (found.targets, found.axes) == (("z", "c", "h"), (0, 1, 1))
    assert recurrent(both) == {"z", "c", "h"}


def test_segments_come_in_an_order_of_computing() -> None:
    body = (
        "p[t, d] = exp(x[t, d])",
        "f[t, d] = p[t, d] + pad(f[t - 1, d], 0)",
        "q[t, d] = f[t, d] * p[t, d]",
        "g[t, d] = q[t, d] + pad(g[t + 1, d], 0)",
        "y[t, d] = g[t, d] * f[t, d]",
    )
    parts = segments(op("{x: 'T[N, D]'}", "{y: 'T[N, D]'}", *body))
    assert [[s.target for s in statements] for _, statements in parts] == [["p"], ["f"], ["q"], ["g"], ["y"]]
    assert [r is not None for r, _ in parts] == [False, True, False, True, False]


def test_an_op_without_is_one_segment() -> None:
    plain = op("{x: 'T[N]'}", "{y: 'T[N]'}", "y = x * x")
    assert recurrences(plain) == () == circles(plain)
    assert segments(plain) == ((None, plain.body),)


def test_the_verifier_refuses_circles_that_are_none() -> None:
    ahead = compile_text(
        f"{HEAD}inputs: {{a: 'T[N]'}}\noutputs: {{h: 'T[N]'}}\nkernel: |\n  h[t] = a[t] * pad(h[t - 1], 0)\n"
    ).forward
    other = op("{a: 'T[N]'}", "{h: 'T[N]'}", "h[t] = a[t] * pad(a[t - 1], 0) * pad(a[t + 1], 0)")
    rule = {"a": "h"}
    both = replace(other, body=tuple(s.with_value(_renamed(s.value, rule)) for s in other.body))
    assert isinstance(stepping(both, ("h",)), NoRecurrence)
    verify(ahead)
    with pytest.raises(VerifyError, match="'h' is read before it is assigned: 'h' is read at t"):
        verify(both)


def _renamed(e: Expr, names: Mapping[str, str]) -> Expr:
    return rewrite(e, lambda n: replace(n, operand=names.get(n.operand, n.operand)) if isinstance(n, Read) else n)


def test_a_temporary_may_have_a_type_that_its_statement_casts_to() -> None:
    found = op(
        "{a: 'int8[N]', b: 'T[N]'}",
        "{h: 'int32[N]', c: 'T[N]'}",
        "c[t] = b[t]",
        "q[t:N] = cast(int32, a[t]) if t == 0 else 0 - q[t - 1]",
        "h[t] = q[t]",
    )
    assert [str(s.value.type) for s in found.body if s.target == "q"] == ["int32"]


BEHIND = [
    "y[t] = x[t] + (y[(t - 1) // 2] if t > 0 else 0)",
    "y[t] = x[t] + (y[t // 2] if t > 0 else 0)",
    "y[t] = x[t] + sum[k:t - 1](y[k + 1])",
    "y[t] = x[t] + sum[k:N](y[k] if not (k >= t or q[k] > 1) else 0)",
    "y[t] = x[t] + (y[q[t]] if q[t] >= 0 and q[t] < t else 0)",
    "y[t] = x[t] + (y[q[t] + 1] if q[t] >= 0 and q[t] + 1 < t else 0)",
    "y[t] = x[t] + (y[N - 1 - t] if t > N - 1 - t else 0)",
]


@pytest.mark.parametrize("body", BEHIND)
def test_what_loops_and_conditions_put_behind(body: str) -> None:
    (found,) = recurrences(op("{x: 'T[N]', q: 'int64[N]'}", "{y: 'T[N]'}", body))
    assert not found.falls


LAGS = [
    ("{type: 'int[2]', check: lag >= 0}", "N >= 0", "lag[1] + 1"),
    ("{type: 'int[2]', check: lag > 0}", "N >= 0", "lag[0]*lag[1]"),
    ("{type: int}", "lag > 0", "lag"),
    ("{type: int, check: lag >= 0}", "lag > N", "lag"),
    ("{type: 'int[2]'}", "lag[0] + lag[1] > 2", "lag[0] - lag[1] - -2*lag[1]"),
]


@pytest.mark.parametrize(("attribute", "require", "lag"), LAGS)
def test_what_checks_and_conditions_of_calls_put_behind(attribute: str, require: str, lag: str) -> None:
    head = f"{HEAD}inputs: {{x: 'T[N]'}}\nattributes: {{lag: {attribute}}}\nrequire: ['{require}']\noutputs: {{y: 'T[N]'}}\n"
    one = compile_text(f"{head}kernel: |\n  y[t] = x[t] + pad(y[t - ({lag})], 0)\n")
    assert one.backward is not None
    assert [[r.falls for r in recurrences(o)] for o in (one.forward, one.backward)] == [[False], [True]]


@pytest.mark.parametrize("require", ["lag[1] > 0", "lag[0] >= 0", "N > 0", "lag[0] + lag[1] > 0"])
def test_what_they_do_not(require: str) -> None:
    head = f"{HEAD}inputs: {{x: 'T[N]'}}\nattributes: {{lag: 'int[2]'}}\nrequire: ['{require}']\noutputs: {{y: 'T[N]'}}\n"
    with pytest.raises(SpecError, match=r"read at t - lag\[0\], where it is"):
        compile_text(f"{head}kernel: |\n  y[t] = x[t] + pad(y[t - lag[0]], 0)\n")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "y[t] = x[t] + (y[3*t // 4] if t > 0 else 0)",
            r"the derivative of this recurrence has no order that is known: 'd_y_total' is read at .*, which is not known to lie",
        ),
        # The second condition always holds, and is none any more once that is known.
        (
            "y[t] = x[t] + (y[t - t % 4 - 1] if t > t % 4 and t - t % 4 - 1 < t else 0)",
            r"'y' is read at t - \(t % 4\) - 1, which is not known to lie behind t",
        ),
        ("y[t] = x[t] + (y[q[t]] if q[t] >= 0 and cast(int32, q[t]) < t else 0)", "read at an index that is data"),
        ("y[t] = x[t] + (y[q[t]] if q[t] >= 0 and q[t] <= t else 0)", "read at an index that is data, which is not known to lie"),
    ],
)
def test_what_has_no_known_order_is_refused_at_its_statement(body: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as raised:
        op("{x: 'T[N]', q: 'int64[N]'}", "{y: 'T[N]'}", body)
    assert all(d.span.line == 9 for d in raised.value.diagnostics)


def test_what_a_condition_says_of_data_it_says_of_the_same_group() -> None:
    """Inside a sum over the group, the data are those of other points."""
    shapes = ("{x: 'T[N, *A]', q: 'int64[*A]'}", "{y: 'T[N, *A]'}")
    (found,) = recurrences(op(*shapes, "y[t, *A] = x[t, *A] + (y[q[*A], *A] if q[*A] >= 0 and q[*A] < t else 0)"))
    assert found.targets == ("y",)
    with pytest.raises(SpecError, match="read at an index that is data, which is not known to lie"):
        op(*shapes, "y[t, *A] = x[t, *A] + (sum[*A](y[q[*A], *A]) if q[*A] >= 0 and q[*A] < t else 0)")


MIXED = {
    "a position and a number": (
        "n[t:N, j:N] = pad(n[t - 1, j], 9) * (x[j] - x[i[t - 1]]) if t > 0 else x[j]",
        "i[t:N] = argmax[j:N](n[t, j])",
        "y[t] = n[t, i[t]]",
    ),
    "a number and a flag": (
        "up[t:N] = x[t] > pad(m[t - 1], 0) or pad(up[t - 1], False)",
        "m[t:N] = maximum(x[t], pad(m[t - 1], 0)) if up[t] else x[t]",
        "y[t] = m[t]",
    ),
    "a flag, a count and a number": (
        "c[t:N] = pad(c[t - 1], 0) + cast(int64, pad(up[t - 1], True))",
        "up[t:N] = x[t] > pad(m[t - 1], 0)",
        "m[t:N] = x[t] / cast(T, c[t])",
        "y[t] = m[t] if up[t] else x[minimum(maximum(c[t], 0), N - 1)]",
    ),
    "a position that is read first": (
        "y[t] = x[i[t]]",
        "i[t:N] = minimum(maximum(pad(i[t - 1], 0) + cast(int64, x[t] > pad(m[t - 1], 0)), 0), N - 1)",
        "m[t:N] = x[i[t]] + x[pad(i[t - 1], 0)]",
    ),
}
"""Temporaries of several types that step together, of which each needs the types of the others."""


@pytest.mark.parametrize("name", MIXED)
def test_values_of_several_types_step_together(name: str) -> None:
    body = sorted(MIXED[name], key=lambda line: line.startswith("y"))
    found = op("{x: 'T[N]'}", "{y: 'T[N]'}", *body)
    types = {o.name: str(o.type) for o in found.temporaries}
    assert {n: t for n, t in types.items() if n in "im"} == {n: "int64" if n == "i" else "T" for n in types if n in "im"}


def test_a_mistake_among_values_that_step_together_is_told_alone() -> None:
    lines = ("n[t:N] = pad(n[t - 1], 0) + x[i[t - 1]] if t > 0 else x[t]", "i[t:N] = argmax[j:N](n[t] + z[j])", "y[t] = n[t]")
    with pytest.raises(SpecError) as caught:
        op("{x: 'T[N]'}", "{y: 'T[N]'}", *lines)
    assert [d.message for d in caught.value.diagnostics] == ["unknown name 'z'"]


BEHIND = [
    "h[t] = x[t] + (h[p[t]] if 0 <= p[t] and p[t] < t else 0)",
    "h[t] = x[t] + (h[p[t]] if t < p[t] and p[t] < N else 0)",
    "h[t] = x[t] + (h[p[t] - 1] if 1 <= p[t] and p[t] <= t else 0)",
    "h[t] = x[t] + (h[pad(p[t - 1], 0)] if not (pad(p[t - 1], 0) < 0 or pad(p[t - 1], 0) >= t) else 0)",
]


@pytest.mark.parametrize("rule", ["error", "clamp", "zero"])
@pytest.mark.parametrize("body", BEHIND)
def test_a_place_that_conditions_tell_lies_behind_whatever_is_made_of_others(body: str, rule: str) -> None:
    text = f"{HEAD}inputs: {{x: 'T[N]', p: 'int64[N]'}}\noutputs: {{h: 'T[N]'}}\nout_of_range: {rule}\nkernel: |\n  {body}\n"
    family = compile_text(text)
    (found,) = recurrences(family.forward)
    assert found.falls == ("t < p" in body)
    assert all(recurrences(other) for other in family.ops if other is not family.forward)


def test_a_place_that_is_cut_to_the_axis_alone_is_not_known_to_lie_behind() -> None:
    for condition in ("p[t] < t", "t < p[t]", "0 <= p[t]", "x[p[t]] > 0"):
        body = f"h[t] = x[t] + (h[p[t]] if {condition} else 0)"
        text = f"{HEAD}inputs: {{x: 'T[N]', p: 'int64[N]'}}\noutputs: {{h: 'T[N]'}}\nout_of_range: clamp\nkernel: |\n  {body}\n"
        with pytest.raises(SpecError, match="not known to lie behind"):
            compile_text(text)


def test_no_guess_of_the_types_is_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor waits for the mistake: where no types mend it, all of them are guessed."""
    text = (Path(__file__).parents[2] / "specs/onnx/lstm.yaml").read_text().replace("tanh(z[", "tanhh(z[")
    tried: list[tuple[str, ...]] = []
    types_of = Recurring._types_of

    def counted(self: Recurring, circle: Sequence[Statement], given: Mapping[str, Operand]) -> object:
        tried.append(tuple(str(o.type) for o in given.values()))
        return types_of(self, circle, given)

    monkeypatch.setattr(Recurring, "_types_of", counted)
    with pytest.raises(SpecError, match="unknown function 'tanhh'"):
        compile_text(text)
    assert 20 < len(tried) == len(set(tried))
