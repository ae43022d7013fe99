"""Values that use the index of their row as a number: they join a stage of whole rows, and one point may be peeled."""

from __future__ import annotations

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32]}
"""


def loops(body: str) -> str:
    """Return the loops of an op with this body."""
    (variant,) = lower(compile_text(HEAD + body, "test").forward)
    return format_variant(variant)


def test_the_one_point_that_a_condition_names_is_peeled() -> None:
    text = loops(
        "inputs: {x: 'T[N, C]', t: 'int32[N]'}\n"
        "outputs: {y: 'T[N, C]'}\n"
        "kernel: |\n"
        "  e[n, c] = exp(x[n, c] - max[k:C](x[n, k]))\n"
        "  y[n, c] = e[n, c] / sum[k:C](e[n, k]) - (1 if c == t[n] else 0)\n"
    )
    assert "schedule: peel(c == cast(int64, t)), " in text
    assert text.endswith(
        "    for each point of the row\n"
        "      buffer e in y: T = exp(x - e_max)\n"
        "      accumulate y_sum: T = sum(e)\n"
        "    for each point of the row\n"
        "      store y: T = e / y_sum - (1 if c == cast(int64, t) else 0)\n"
    )


def test_what_holds_at_several_points_is_tested_at_each() -> None:
    text = loops(
        "inputs: {x: 'T[N, C]', t: 'int32[N]'}\n"
        "outputs: {y: 'T[N, C]'}\n"
        "kernel: 'y[n, c] = x[n, c] / sum[k:C](x[n, k]) if c < t[n] else 0'\n"
    )
    assert text.endswith("    for each point of the row\n      store y: T = x / y_sum if c < cast(int64, t) else 0\n")


def test_an_index_has_the_name_that_its_loop_has_in_the_stage() -> None:
    text = loops(
        "inputs: {x: 'T[N, C]'}\n"
        "outputs: {y: 'T[N, C]', z: 'T[N, C]'}\n"
        "kernel: |\n"
        "  y[n, c] = x[n, c] / sum[k:C](x[n, k]) + c\n"
        "  z[i, j] = x[i, j] - sum[k:C](x[i, k]) - j\n"
    )
    assert "store y: T = x / y_sum + c\n" in text
    assert "store z: T = x - y_sum - c\n" in text


def test_only_the_index_of_the_row_is_known() -> None:
    for used in ("n", "n + c"):
        text = loops(
            f"inputs: {{x: 'T[N, C]'}}\noutputs: {{y: 'T[N, C]'}}\nkernel: 'y[n, c] = x[n, c] / sum[k:C](x[n, k]) + {used}'\n"
        )
        assert "  parallel [n, c]: f_y\n    schedule: vectorise(c)\n" in text


def test_without_another_pass_along_the_row_a_loop_nest_counts() -> None:
    text = loops(
        "inputs: {x: 'T[N, C]', t: 'int32[N]'}\noutputs: {y: 'T[N, C]'}\nkernel: 'y[n, c] = x[n, c] if c == t[n] else 0'\n"
    )
    assert "  parallel [n, c]: f_y\n    schedule: vectorise(c)\n" in text


SUM_FIRST = """\
inputs: {x: 'T[N, C]', w: 'T[N]'}
outputs: {y: 'T[N, C]', z: 'T[N]'}
kernel: |
  e[n, c] = exp(x[n, c] - max[k:C](x[n, k]))
  z[n] = log(sum[k:C](e[n, k]))
  y[n, c] = e[n, c] / sum[k:C](e[n, k]) / sum[i:N](w[i])
"""


def test_what_a_pass_over_rows_waits_for_runs_first() -> None:
    text = loops(SUM_FIRST)
    assert text.index("store y_sum2: T = w") < text.index("accumulate e_max")
    assert text.count("exp(") == 1


def test_a_stage_that_would_lose_as_much_does_not_run_first() -> None:
    text = loops(
        "inputs: {x: 'T[N, C]', u: 'T[N, D]', t: 'int32[N]'}\n"
        "outputs: {y: 'T[N, C]', z: 'T[N, D]', v: 'T[N, D]'}\n"
        "kernel: |\n"
        "  s[n] = sum[k:C](exp(x[n, k]))\n"
        "  r[n] = sum[k:D](u[n, k])\n"
        "  z[n, d] = u[n, d] / s[n]\n"
        "  v[n, d] = z[n, D - 1 - d] / 2\n"
        "  y[n, c] = exp(x[n, c]) * r[n] / s[n] if c == t[n] else 0\n"
    )
    assert "  parallel [n, c]: f_y\n    schedule: vectorise(c)\n" in text
    assert text.count("read input u: ") == 1
