"""Specs in which something was wrong once, with others of their class, by what they have in common."""

HEAD = """\
op: {name}
domain: opc.test
version: 1
doc: A test.
types:
  T: [float64]
"""
"""What every op below has; a head that begins with two spaces goes on with types."""

ROW = "inputs: {x: 'T[N]', m: 'T[M]'}\noutputs: {y: 'T[N]'}\n"
ROWS = "inputs: {x: 'T[H, N]', m: 'T[M]'}\noutputs: {y: 'T[H, N]'}\n"
MATRICES = "inputs: {a: 'T[I, K]', b: 'T[K, J]', m: 'T[M]'}\noutputs: {y: 'T[I, J]'}\n"
OPTIONAL = "inputs: {a: 'T[I, K]', b: 'T[K, J]', 'c?': 'T[K, J]'}\noutputs: {y: 'T[I, J]'}\n"
SQUARE = "inputs: {a: 'T[I, I]', b: 'T[I, J]'}\noutputs: {y: 'T[I, J]'}\n"
ALONG = "inputs: {p: 'T[N, *S]'}\noutputs: {y: 'T[]'}\n"
PLANE = "inputs: {x: 'T[I, J]'}\noutputs: {y: 'T[I, J]'}\n"
LOOKED_UP = "out_of_range: error\ninputs: {x: 'T[N]', ids: 'int64[N]', w: 'T[M]'}\noutputs: {y: 'T[N]'}\n"
CHOSEN = LOOKED_UP.replace("x:", "p: 'bool[N]', x:")
FLAG = "attributes: {flag: {type: bool, default: true}}\n"
COUNT = "attributes: {c: {type: int, default: 1, check: c >= 0}}\n"
SIDE = "attributes: {side: {type: str, values: [left, right], default: left}}\n"

CONDITIONS = {
    "of_sizes": (ROW, "y[i] = pad(x[i + 1], 0) if N < M else pad(x[i - 1], 0)"),
    "of_sizes_in_an_index": (ROW, "y[i] = pad(x[i + 1 if N >= M else i - 1], 0)"),
    "of_remainders": (ROW, "y[i] = pad(x[i + 1], 0) if N % 3 == M % 2 else pad(x[i - 1], 0)"),
    "of_a_bool": (ROW + FLAG, "y[i] = pad(x[i + 1], 0) if flag else pad(x[i - 1], m[0] * 0) if M > 0 else 0"),
    "of_an_int": (ROW + COUNT, "y[i] = pad(x[i + 1], 0) if c > 1 else pad(x[i - 1], 0)"),
    "of_a_str": (ROW + SIDE, "y[i] = pad(x[i + 1], 0) if side == 'left' else pad(x[i - 1], 0)"),
    "nested": (ROW + FLAG, "y[i] = (pad(x[i + 1], 0) if N < M else pad(x[i - 1], 0)) if flag else (x[i] if M < 3 else 0)"),
    "in_a_window": (ROW, "y[i] = sum[p:3](pad(x[i + p], 0) if N < M else pad(x[i - p], 0))"),
    "of_a_row_in_a_window": (ROWS, "y[h, i] = sum[p:3](pad(x[h, i + p], 0) if h >= 2 else 0)"),
    "in_a_weighted_window": (ROWS, "y[h, i] = sum[p:3](pad(x[h, i + p], 0) * m[p] if M > 3 and h > 1 else 0)"),
    "in_a_maximum": (ROWS, "y[h, i] = max[p:3](pad(x[h + 1, i + p], -inf) if M > 3 else pad(x[h, i + p], -inf))"),
    "in_an_extent": (ROW, "y[i] = sum[k:i + 1](x[k] if N < M else x[i])"),
    "in_a_product": (MATRICES, "y[i, j] = sum[k](a[i, k] * b[k, j] if K < M else 0)"),
}
"""Conditions on what a call fixes: each counts, wherever it stands."""

PRODUCTS = {
    "triangle": (SQUARE, "y[i, j] = sum[k:i + 1](a[i, k] * b[k, j])"),
    "other_triangle": (SQUARE, "y[i, j] = sum[k:I - i](a[i, k] * b[k, j])"),
    "triangle_of_three": (SQUARE, "y[i, j] = sum[k:i + 1](a[i, k] * b[k, j] * a[k, i])"),
    "triangle_and_all": (SQUARE, "y[i, j] = sum[k:i + 1](a[i, k] * b[k, j]) + sum[k](a[i, k] * b[k, j])"),
    "triangle_inside": (SQUARE, "y[i, j] = sum[k](sum[l:k + 1](a[i, l] * b[k, j]))"),
    "given_and_below": (OPTIONAL, "y[i, j] = sum[k](a[i, k] * c[k, j]) if present(c) and i <= j else 0"),
    "given_and_sizes": (OPTIONAL, "y[i, j] = sum[k](a[i, k] * c[k, j] if present(c) and I < J else a[i, k] * b[k, j])"),
    "shifted_in_part": (SQUARE, "y[i, j] = sum[k](a[i + 1, k] * b[k, j]) if i + 1 < I else 0"),
}
"""Products whose sums have extents of their own, or stand under conditions."""

TURNED = {
    "reflected": (ROW, "y[i] = prod[k:M](x[N - 1 - abs(N - 1 - 2*i)] * m[k]) + x[abs(N - 1 - 2*i)] ** 2"),
    "down_by_twos": (ROWS, "y[h, n] = prod[k:N](pad(x[H - 1 - 2*h, k], 1)) * x[h, n]"),
    "below_nothing": (ROW, "y[i] = pad(x[N + i // -2], 0) ** 2 * pad(x[1 - i % -3], 1)"),
    "by_a_size": (ROW, "y[i] = pad(x[1 - i % -N], 0) ** 2 * pad(m[M + i // -N], 1)"),
    "down_by_a_number": (
        ROW + "attributes: {s: {type: int, default: -2, check: s < 0 and s > -4}}\n",
        "y[i] = pad(x[N + s*i - 1], 0) ** 2",
    ),
}
"""Reads that go down, and divisors below nothing."""

SUMS = {
    "group_in_index": (ALONG, "y = mean[n](sum[*S](p[n, *S]))"),
    "index_in_group": (ALONG, "y = sum[*S](mean[n](p[n, *S]) ** 2)"),
    "group_in_maximum": (ALONG, "y = max[n](sum[*S](p[n, *S]))"),
    "sums_in_turn": (
        PLANE,
        """k = exp(x)
  u[i:I] = 1 / sum[j](k[i, j])
  v[j:J] = 1 / sum[i](k[i, j] * u[i])
  w[i:I] = 1 / sum[j](k[i, j] * v[j])
  y[i, j] = w[i] * k[i, j] * v[j]""",
    ),
    "temporary_in_several_sums": (
        PLANE,
        """k = exp(x)
  u[i:I] = max[j](k[i, j]) + sum[j](k[i, j])
  v[j:J] = sum[i](k[i, j] * u[i])
  y[i, j] = k[i, j] / (u[i] + v[j])""",
    ),
    "inside_of_others": (PLANE, "y[i, j] = sum[k:I](x[k, j] * sum[l:J](abs(x[i, l] - x[k, l])))"),
    "inside_along_the_last_axis": (
        PLANE,
        "y[i, j] = prod[k:J - 1](0.25 + exp(sum[l:I](abs(x[l, j] - x[i, k]))) if k < J else 1)",
    ),
}
"""Sums over groups and indices inside one another, and in turn along rows and columns."""


EXTREMES = {
    "if_a_number": (
        "inputs: {x: 'T[M, K]'}\noutputs: {y: 'T[M]'}\nattributes: {z: {type: int, default: 0}}\n",
        "y[m] = max[k](x[m, k]) if z > 0 else 0",
    ),
    "if_data": ("inputs: {x: 'T[M, K]', w: 'T[M]'}\noutputs: {y: 'T[M]'}\n", "y[m] = max[k](x[m, k]) if w[m] > 9 else 0"),
    "if_there_are_any": (
        "inputs: {x: 'T[M, K]', w: 'T[M]'}\noutputs: {y: 'T[M]', i: 'int64[M]'}\n",
        "i[m] = argmax[k](x[m, k]) if K > 0 else 0\n  y[m] = max[k](x[m, k]) - w[m] if K > 0 else 0",
    ),
    "of_a_group": (
        "inputs: {x: 'T[*A]', w: 'T[M]'}\noutputs: {y: 'T[M]', z: 'bool[M]'}\n",
        "y[m] = max[*A](x[*A]) * w[m] if w[m] > 1 else w[m]\n  z[m] = w[m] > 1 and min[*A](x[*A]) > 0",
    ),
    "of_masked_rows": (
        "inputs: {x: 'T[*A, N]', mask: 'bool[*A, N]'}\noutputs: {y: 'T[*A, N]'}\n",
        "y[*A, n] = exp(x[*A, n] - max[k](x[*A, k] if mask[*A, k] else -inf)) if mask[*A, n] else 0",
    ),
    "of_no_result": ("inputs: {x: 'T[N]'}\noutputs: {y: 'bool[2*N]'}\n", "y[i] = min[k:N](x[k]) > 0"),
    "of_no_matrix": ("inputs: {x: 'T[N, M]'}\noutputs: {y: 'T[M*N]'}\n", "y[i] = max[k:N](x[k, 0] if M > 0 else 0)"),
    "of_no_output": (
        "inputs: {x: 'T[N]', w: 'T[J]', v: 'T[M]'}\noutputs: {y: 'T[M]', z: 'T[J]', u: 'T[M]'}\n",
        "z[j] = max[k](x[k]) * w[j]\n  y[m] = v[m] * 2\n  s[m:M] = max[j](w[j])\n  u[m] = sum[k](s[m] * x[k])",
    ),
    "of_nothing_wanted": (
        "inputs: {x: 'T[N]', w: 'T[K]'}\noutputs: {y: 'T[N]', p: 'int64[K]', q: 'T[K]'}\n",
        """y[n] = x[n] * 2
  p[i] = argmax[k:K](pad(x[1], 0))
  q[i] = max[k:K](pad(x[k + 1], 0)) * w[i] + min[k:K, l:2](pad(x[2*k + l], 1))""",
    ),
    "of_no_term": (
        "inputs: {x: 'T[M, N]', w: 'T[M, J]'}\noutputs: {y: 'T[M]', z: 'T[M, J]', p: 'T[M, N]'}\n",
        """y[m] = sum[j](max[k](x[m, k]) * w[m, j])
  z[m, j] = w[m, j] - max[k](w[m, k])
  e[m, n] = exp(x[m, n] - max[k](x[m, k]))
  p[m, n] = e[m, n] / sum[k](e[m, k])""",
    ),
    "of_those_before": (
        "inputs: {w: 'T[K, C, 3]', x: 'T[M, H]'}\noutputs: {y: 'T[M, C, 2*H]'}\n",
        "y[i, c, h] = max[k:i](pad(w[i, c, 0 if k == 0 else 1], 0))",
    ),
    "in_several_programs": (
        "inputs: {x: 'T[*A, N]', w: 'T[*A]', mask: 'bool[*A, N]'}\n"
        "attributes: {flag: {type: bool, default: true}, c: {type: int, default: 1}}\n"
        "outputs: {y: 'T[*A, N]', z: 'T[*A]', i: 'int64[*A]'}\n",
        """y[*A, n] = exp(x[*A, n] - max[k](x[*A, k] if mask[*A, k] else -inf)) if mask[*A, n] else 0
  z[*A] = max[n](x[*A, n]) if flag else min[n](x[*A, n]) if c > 2 and w[*A] > 0 else w[*A]
  i[*A] = argmax[n](x[*A, n]) if w[*A] > 0 or c > 3 else argmin[n](x[*A, n]) if N > 1 else 0""",
    ),
}
"""The greatest of nothing is refused where it is asked for, and only there."""
