"""Specs of conditionals, in others or beside what is 0, in which something was wrong once, with others of their class."""

from tests.fuzz.classes import CHOSEN, FLAG, LOOKED_UP, SIDE

PADDED = "inputs: {x: 'T[N]', 'b?': 'T[M]'}\noutputs: {y: 'T[N]'}\n"
SENT = """\
out_of_range: error
inputs: {p: 'bool[N]', x: 'T[N]', ids: 'int64[N]', jds: 'int64[N]', w: 'T[M]', v: 'T[K]'}
outputs: {y: 'T[K]'}
"""
TAKEN = SENT.replace("y: 'T[K]'", "y: 'T[N]'")
FIXED = """\
inputs: {x: 'T[N]', 'b?': 'T[N]'}
attributes:
  flag: {type: bool, default: true}
  gate: {type: bool, default: false}
  gates: 'bool[2]'
  mode: {type: str, values: [one, two]}
  n: int
outputs: {y: 'T[N]'}
"""
NUMBERS = PADDED.replace("outputs", "attributes: {flag: {type: bool, default: true}, c: int}\noutputs")

BOUNDS = """\
inputs: {x: 'T[...]', 'lo?': 'T[...]', 'hi?': 'T[...]', 'w?': 'T[...]'}
attributes: {flag: {type: bool, default: true}}
outputs: {y: 'T[...]'}
"""
IGNORED = """\
inputs: {x: 'T[N, C]', target: 'int64[N]', weight: 'T[C]'}
attributes: {gamma: {type: float, default: 2.0, check: gamma >= 1}, ignore: {type: int, default: -100}}
outputs: {loss: 'T[]'}
"""

BEHIND = """\
out_of_range: error
inputs: {x: 'T[N]', w: 'T[M]', 'v?': 'T[M]', 'ids?': 'int64[N]'}
outputs: {y: 'T[N]', z: 'bool[N]', u: 'T[M]', t: 'T[N]'}
"""

JOINED = """\
inputs: {x: 'T[N]', v: 'T[M]', w: 'T[K]', u: 'T[Q]'}
outputs: {y: 'T[L]'}
shape: {L: N + M + K + Q}
attributes: {c: int}
"""
OF_ALL = JOINED.replace("y: 'T[L]'", "y: 'T[]', k: 'int64[]'").replace("shape: {L: N + M + K + Q}\n", "")

CONDITIONALS = {
    "sizes_that_data_tells": (
        "inputs: {x: 'T[N]', p: 'bool[N]', v: 'T[M]', 'w?': 'T[N]'}\nattributes: {few: size, many: size, c: int}\n"
        "outputs: {y: 'T[few]', z: 'T[N, L]'}\nshape: {L: many + M}\n",
        """above[n:N] = cast(int64, x[n] > c and (w[n] > 0 if present(w) else True))
  few = sum[n](above[n])
  rank[n:N] = sum[m:n](above[m])
  many = sum[n](cast(int64, p[n])) // 2
  y[k] = sum[n](x[n] ** 2 if above[n] == 1 and rank[n] == k else 0)
  z[n, l] = (x[n] * v[l] if l < M else x[n]) + (y[l] if l < few else 0) if p[n] else many""",
    ),
    "indices_beside_fractions": (
        JOINED,
        """t[i:L] = pad(x[i], 0) if i < 2.5 else 2 * pad(v[i], c)
  a[i:L] = sum[k:N](x[k] if k < i - 0.5 and k >= 0.5 else 0) + sum[k:Q](u[k] if i <= k + 0.5 and k > 0.5 else 0)
  y[i] = t[i] * a[i] + sum[k:M](v[k] if k == 1.5 else 0) + sum[k:K](w[k] if k == 1.0 else 0)""",
    ),
    "places_that_floating_numbers_say": (
        "inputs: {x: 'T[N]', at: 'T[N]', v: 'T[M]'}\noutputs: {y: 'T[K]', z: 'T[N]'}\n"
        "attributes: {count: {type: int, check: count >= 0}, a: {type: float, default: 1.5}}\nshape: {K: count}\n",
        """y[k] = sum[n](x[n] if k == at[n] else 0)
  z[i] = x[i] + sum[k](v[k] if k == a else v[k] ** 2 if a * 2 == k else 0) + sum[k](v[k] if at[i] == k else 0)""",
    ),
    "places_taken_beside_fractions": (
        "inputs: {x: 'T[N]', at: 'T[N]', v: 'T[M]', ids: 'int64[N]'}\noutputs: {y: 'T[N]', z: 'T[N]'}\n"
        "attributes: {a: {type: float, default: 0.5}}\n",
        """y[i] = max[k](v[k] if k < at[i] and k - 0.5 < a else -1) * min[j, k](x[j] * v[k] if 2*k - j <= at[i] or j == a else 4)
  z[i] = sum[k](v[k] * (1 if k <= at[i] else 2 if not a < k and k != 0.5 else 3) if k == ids[i] else 0)""",
    ),
    "joined_rows": (JOINED, "y[i] = pad(x[i], pad(v[i - N], pad(w[i - N - M], u[i - N - M - K]))) * (1 + c)"),
    "joined_rows_in_reverse": (
        JOINED,
        "y[i] = pad(u[L - 1 - i], pad(w[L - 1 - i - Q], pad(v[L - 1 - i - Q - K], x[N - 1 - i]))) * (1 + c)",
    ),
    "rows_cut_at_any_place": (
        JOINED,
        "y[i] = pad(x[i + c], pad(v[c - i], 0.5) if i >= c else pad(w[i - 2], 2) if i < N + 1 else pad(u[i], 3))",
    ),
    "bounds_on_one_side_and_both": (
        JOINED,
        """t[i:L] = pad(x[i], 1) if i >= 2 else 3
  y[i] = t[i] + (pad(v[i], 1) if i < 3 else pad(w[i], 2) if i < 5 and i >= c else pad(u[i], 4))""",
    ),
    "the_first_of_joined_rows": (
        OF_ALL,
        """t[i:N + M + K] = pad(x[i], pad(v[i - N], w[i - N - M])) + pad(u[c], 0)
  y = max[i:N + M](pad(x[i], v[i - N] * 2))
  k = argmax[i:N + M + K](pad(w[i], pad(x[i - K], v[i - N - K]))) + argmin[i](t[i])""",
    ),
    "read_behind_and_or": (
        BEHIND,
        """y[i] = x[i] if i < M and w[i] > 0 else (x[i - 1] if i > 0 and x[i - 1] > x[i] else 2)
  z[i] = i >= M or w[i] > x[i]
  u[k] = sum[n](x[n] if present(ids) and ids[n] == k else 0) + (sum[n:N](x[n]) if not present(v) or v[k] > 0 else v[k])
  t[i] = x[i] * (v[i] if present(v) and i < M else 1) + (x[i] if not present(v) or i >= M else v[i] ** 2)""",
    ),
    "taken_for_several_terms": (
        IGNORED,
        """m[n] = max[c](x[n, c])
  lse[n] = log(sum[c](exp(x[n, c] - stop_gradient(m[n])))) + stop_gradient(m[n])
  l[n] = x[n, target[n]] - lse[n] if target[n] != ignore else 0
  w[n] = weight[target[n]] if target[n] != ignore else 0
  p[n] = exp(l[n])
  loss = sum[n](-w[n] * (1 - p[n]) ** gamma * l[n]) / sum[n](w[n])""",
    ),
    "kinks_of_what_is_guarded": (
        TAKEN,
        """t[n:N] = maximum(x[n], w[ids[n]]) if ids[n] >= 0 and ids[n] < M else x[n]
  u[n:N] = abs(v[jds[n]] - t[n]) + minimum(v[jds[n]], 2) * x[n] if 0 <= jds[n] and jds[n] < K and p[n] else t[n] ** 2
  y[n] = u[n] * (minimum(maximum(w[ids[n]], x[n]), 3) if p[n] and ids[n] >= 0 and ids[n] < M else 1)""",
    ),
    "present_where_that_is_known": (
        BOUNDS,
        """c = maximum(x, lo) if present(lo) else x
  d = minimum(c, hi) if present(hi) else c
  e = 2 * d if not present(lo) else d
  y = e * e if flag else sin(e)""",
    ),
    "one_number_or_another": (CHOSEN, "y[i] = (1 if p[i] else x[i]) if p[i] else 2"),
    "numbers_alone_in_a_sum": (CHOSEN, "y[i] = sum[k:3]((x[i] if x[i] > 0 and p[i] else 1) if not p[i] else 2)"),
    "asked_before_what_is_known": (CHOSEN, "y[i] = (x[i] if w[ids[i]] > 0 and p[i] else 1) if not p[i] else 2"),
    "asked_before_what_is_known_to_hold": (CHOSEN, "y[i] = (x[i] if w[ids[i]] > 0 or p[i] else 1) if p[i] else 2"),
    "asked_between_equals": (CHOSEN, "y[i] = ((x[i] if p[i] else 2) if w[ids[i]] > 0 else x[i]) if p[i] else 3 * x[i]"),
    "asked_between_equal_numbers": (CHOSEN, "y[i] = x[i] + (1 if w[ids[i]] > 0 else 1)"),
    "asked_before_what_is_so": (LOOKED_UP, "y[i] = x[i] if w[ids[i]] > 0 or (i + i) % 2 == 0 else 1"),
    "asked_before_what_the_loop_tells": (LOOKED_UP, "y[i] = x[i] * sum[k:2](1 if w[ids[i]] > k and k < 0 else 3)"),
    "asked_before_an_attribute": (LOOKED_UP + FLAG, "y[i] = x[i] if not (w[ids[i]] > 0 and flag) else x[i] ** 2"),
    "asked_before_a_choice": (LOOKED_UP + SIDE, "y[i] = x[i] if w[ids[i]] > 0 and side == 'left' else x[i] ** 2"),
    "numbers_of_both_kinds": (CHOSEN, "y[i] = 1 if x[i] <= 0.5 else 0.5 if x[i] <= 0.5 else 0"),
    "an_index_or_a_number": (CHOSEN, "y[i] = x[i] * ((i if p[i] else i + 1 if not p[i] else 0.5) // 2 % 3) / (i if p[i] else 2)"),
    "an_attribute_or_a_number": (NUMBERS, "y[i] = x[i] - ((0.5 if not x[i] > 0 else 0) if x[i] > 0 else c)"),
    "a_choice_from_nothing": (PADDED, "y[i] = pad(x[i + 1], 0) - (0.5 if present(b) else 0)"),
    "an_index_from_nothing": (PADDED, "y[i] = pad(x[i - 1], 0) - i"),
    "a_number_from_nothing": (NUMBERS, "y[i] = (0 if flag else x[i]) - (c if x[i] > 0 else i)"),
    "an_attribute_or_an_index_from_nothing": (NUMBERS, "y[i] = pad(x[i - 2], 0) - (i % 2 if present(b) else c * 0.5)"),
    "a_number_beside_an_edge": (NUMBERS, "t[i:N] = 0 if flag else x[i]\n  y[i] = x[i] * pad(t[i - 1], 0.5)"),
    "a_number_in_a_minimum": (
        "broadcast: true\ninputs: {x: 'T[..., N]'}\noutputs: {y: 'T[...]'}\n",
        "y[...] = minimum(size(...), 1 if cast(T, 0.25) >= pad(x[..., 1], 0) else cast(T, 0))",
    ),
    "asked_of_a_temporary": (CHOSEN, "t[i:N] = w[ids[i]]\n  y[i] = x[i] if t[i] > 0 else x[i]"),
    "divided_by_nothing": (NUMBERS, "y[i] = 1/(x[i] * (0.0 - i)) + 1/((0 if flag else x[i]) - c // 5)"),
    "divided_by_a_choice": (NUMBERS, "y[i] = 1/((0 if flag else x[i]) - abs(i - 1)) + 1/(0.0 - abs(i - 1))"),
    "asked_on_a_side_ruled_out": (CHOSEN + FLAG, "t[i:N] = w[ids[i]]\n  y[i] = x[i] if flag or t[i] > 0 else 2 * t[i]"),
    "asked_of_nothing_on_a_side_ruled_out": (CHOSEN + FLAG, "t[i:N] = max[k](w[k])\n  y[i] = t[i] if flag else x[i]"),
    "asked_between_others": (CHOSEN, "y[i] = (x[i] if (w[ids[i]] > 0 or not p[i]) and i < 1 else 1) if p[i] else 2"),
    "asked_before_the_last": (CHOSEN, "y[i] = (x[i] if i < 2 and w[ids[i]] > 0 and i < 1 else 1) if p[i] else 2"),
    "asked_for_nothing": (CHOSEN + FLAG, "y[i] = (x[i] if w[ids[i]] > 0 and flag else 0) if p[i] else 0"),
    "asked_for_nothing_but_zeros": (CHOSEN, "y[i] = (0 if w[ids[i]] > 0 else x[i] if not p[i] else 0) if p[i] else x[i]"),
    "asked_for_a_gradient": (CHOSEN + FLAG, "y[i] = x[i] ** 2 if w[ids[i]] > 0 and flag else 0"),
    "asked_before_a_range": (CHOSEN, "y[i] = sum[k](x[k] if w[ids[k]] > 0 and k < i else 0)"),
    "asked_around_a_range": (CHOSEN, "y[i] = sum[k](((pad(x[k - i], 0) if k < 2 else 0) if w[ids[k]] > 0 and p[k] else 0))"),
    "asked_around_what_is_sent": (SENT, "y[j] = sum[k]((x[k] if ids[k] == j else 0) if w[jds[k]] > 0 and p[k] else 0)"),
    "asked_where_something_is_sent": (SENT, "y[j] = sum[k](x[k] if j < 2 and ids[k] == j and w[jds[k]] > 0 else 0)"),
    "asked_in_a_sum_of_nothing": (TAKEN, "y[i] = sum[k]((w[k] if v[jds[i]] > w[k] and k == ids[i] else 0) * exp(v[jds[i]]))"),
    "divided_by_the_number_of_none": (
        "inputs: {x: 'T[N]', v: 'T[K]'}\noutputs: {y: 'T[N]'}\n",
        "y[i] = x[i] * sum[k:i](mean[j:N - k](pad(v[k], 0.5)))",
    ),
    "divided_beside_a_sum_of_nothing": (PADDED, "t[i:N] = cast(T, 1 / i)\n  y[i] = sum[k:i](x[i] * x[k] * t[i]) + x[i]"),
    "asked_before_what_is_taken": (TAKEN, "y[i] = sum[k](w[k] if w[ids[i]] > 0 and k == jds[i] else 0)"),
    "negative_zero": (CHOSEN + FLAG, "y[i] = (1/(x[i]*0.0) if p[i] else 1/(x[i]*-0.0)) + 1/(-0.0 if flag and p[i] else 0.0)"),
    "a_choice_of_attributes": (FIXED, "y[i] = x[i] if (gate if flag else n == 0) else cast(T, (gate if flag else n > 2))"),
    "an_attribute_for_what_is_absent": (FIXED, "y[i] = x[i] * cast(T, not (x[0] <= b[i] if present(b) else gates[1]))"),
    "either_attribute_is_like_another": (FIXED, "y[i] = x[i] if (flag or gate) == (mode == 'one') else 1"),
    "attributes_alike_or_not": (
        FIXED,
        "y[i] = (x[i] if (flag == gate) == (mode == 'one') else 1) * (2 if present(b) == flag else 1)",
    ),
    "absent_where_nothing_counts": (FIXED, "y[i] = sum[k]((0 if b[k] > 0 else x[k]) if present(b) and k < N - 1 else 0)"),
}
"""What conditions decide of others, and which still may refuse a call; and `0 - x`, which is not `-x` where x is 0."""
