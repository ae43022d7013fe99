"""Reductions over a group of axes inside loops over the same group, where something was wrong once.

A derivative has both loops around each of its terms, under one name. Each body here keeps the inner reduction from being moved
out of its loops in its own way: by a range that depends on an index, a condition, a check, an operand that may be absent.
"""

X = "inputs: {x: 'T[*A, N]'}\n"
XV = "inputs: {x: 'T[*A, N]', 'v?': 'T[*A, N]'}\n"
IDS = "inputs: {x: 'T[N]', ids: 'int64[*A]', v: 'T[*A]', n: 'int64[N]'}\nout_of_range: error\n"
ROW = "outputs: {y: 'T[N]'}\n"
POINT = "outputs: {y: 'T[*A]'}\n"
ROWS = "outputs: {y: 'T[*A, N]'}\n"
SHARED = "broadcast: true\ninputs: {x: 'T[..., N]', v: 'T[..., N]', 'u?': 'T[..., N]'}\n"

SHADOWED = {
    "sum_in_a_triangle": (X + ROW, "y[i] = sum[k:i, *A](x[*A, k] * sum[*A](x[*A, k] * x[*A, i]))"),
    "sum_in_a_maximum": (X + ROW, "y[i] = max[k:i + 1, *A](x[*A, k] * sum[*A](x[*A, k] * sin(x[*A, i])))"),
    "maximum_in_a_product": (
        X + ROW,
        "y[i] = prod[k:i + 1](sum[*A](x[*A, k] * max[*A](x[*A, k] + x[*A, i]))) if size(A) > 0 else 0",
    ),
    "sum_at_each_point": (X + ROWS, "y[*A, i] = sum[k:i](x[*A, k] * sum[*A](x[*A, k] * x[*A, i]))"),
    "sum_of_what_a_range_tells_inside": (X + ROWS, "y[*A, i] = sum[k:i](x[*A, i] * sum[*A](x[*A, k + 1] * x[*A, i - k - 1]))"),
    "triangle_in_a_triangle": (
        X + ROWS,
        "y[*A, i] = sum[k:i](sum[j:k](x[*A, j] * sum[*A, l:j](x[*A, l] * x[*A, i - k] * x[*A, k - j])))",
    ),
    "range_of_a_quotient": (
        X + ROWS + "attributes: {c: {type: int, default: 1, check: c >= 0}}\n",
        "y[*A, i] = x[*A, i] * sum[k:c*i // 2 + 1](sum[*A](pad(x[*A, i - k], 0) * x[*A, i]) * x[*A, i])",
    ),
    "read_of_what_may_be_absent": (
        XV + ROWS,
        "y[*A, i] = sum[k:i + 1](x[*A, i] * sum[*A](x[*A, k] * (v[*A, i - k] if present(v) else 1)))",
    ),
    "absent_as_a_whole": (XV + ROWS, "y[*A, i] = sum[k:i + 1](x[*A, i] * sum[*A](x[*A, k] * v[*A, k])) if present(v) else 0"),
    "checked_read": (IDS + POINT, "y[*A] = x[ids[*A]] * sum[*A](x[ids[*A]] * v[*A])"),
    "checked_read_without_a_gradient": (IDS + POINT, "y[*A] = x[ids[*A]] * v[*A] * cast(T, sum[*A](n[ids[*A]] * position(*A)))"),
    "condition_on_a_place": (X + POINT, "y[*A] = sum[*A](x[*A, 0] * sum[*A](x[*A, N - 1])) if position(*A) < 2 and N > 0 else 0"),
    "conditions_alike": (
        X + POINT,
        "y[*A] = sum[k](x[*A, k] * sum[*A](x[*A, k] if x[*A, 0] > 0 else 1) if x[*A, 0] > 0 else sum[*A](position(*A)*x[*A, k]))",
    ),
    "one_of_all_operands": (SHARED + ROW, "y[i] = sum[k:i, ...](x[..., k] * sum[...](v[..., k] * x[..., i]))"),
    "sum_along_what_another_operand_has": (
        SHARED + "outputs: {y: 'T[N]', z: 'T[N]'}\n",
        "y[i] = sum[...](x[..., i])\n  z[i] = sum[...](x[..., i] * v[..., i] + (u[..., i] if present(u) else 0))",
    ),
}
"""Inputs, outputs and attributes with a body."""
