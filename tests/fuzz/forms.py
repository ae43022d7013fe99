"""Specs in which something was wrong once, each of a form of its own: they are no members of a class that is drawn."""

FORMS = {
    "divided_by_what_only_terms_read": (
        "inputs: {x: 'T[K]', c: 'T[K]', w: 'T[N]'}\noutputs: {y: 'T[]', u: 'T[N]'}\n",
        "y = sum[k](x[k] / c[0])\n  u[n] = sum[k:N - 2](w[k] * sin(w[n]) / w[2])",
    ),
    "group_that_only_tangents_tell": (
        "inputs: {w: 'T[N]', q: 'int64[*A, N, *B]', x: 'T[*A, N, *B]'}\noutputs: {y: 'T[N]', z: 'T[N]'}\n"
        "attributes: {axis: {type: axis, dim: N, default: -1}}\n",
        "y[n] = sum[*A](w[n]*w[n])\n  z[n] = prod[*B](w[n])",
    ),
    "first_group_told": (
        "inputs: {x: 'T[*A, N, *B]', w: 'T[*A]'}\noutputs: {y: 'T[*A, N, *B]', z: 'T[*A, *B]'}\n",
        "y[*A, n, *B] = x[*A, n, *B] * w[*A]\n  z[*A, *B] = max[n](x[*A, n, *B]) if N > 0 else 0",
    ),
    "last_group_told": (
        "inputs: {x: 'T[*A, N, *B]', w: 'T[*B]', m: 'T[M]'}\noutputs: {y: 'T[*A, N, *B]', z: 'T[*A, *B]'}\n",
        "y[*A, n, *B] = x[*A, n, *B] * w[*B]\n  z[*A, *B] = sum[n](x[*A, n, *B]) + (m[0] if M > 0 else 0)",
    ),
    "axis_of_nothing": (
        "inputs: {x: 'T[M, N, K]', w: 'T[M, K, 3]'}\noutputs: {y: 'T[M, N]'}\n"
        "attributes: {width: {type: int, default: 2, check: width > 0}}\n",
        "y[i, j] = sum[k:K](w[i, minimum(maximum(k - width, 0), K - 1), 1] * x[i, j, k])",
    ),
    "type_that_only_cotangents_have": (
        "  U: [float32, float64]\nattributes: {to: {type: dtype, binds: U}}\n"
        "inputs: {x: 'T[N]', v: 'T[N]'}\noutputs: {y: 'T[N]', z: 'U[N]', u: 'U[N]'}\n",
        "y[n] = x[n] * v[n]\n  z[n] = cast(U, x[n])\n  u[n] = cast(U, exp(v[n]))",
    ),
    "steps_that_lists_and_conditions_say": (
        "inputs: {x: 'T[N]'}\n"
        "attributes: {lag: {type: 'int[2]', default: [1, 2], check: lag >= 0}, gap: {type: int, default: 1}}\n"
        "require: ['gap + lag[0] > 0']\noutputs: {y: 'T[N]', z: 'T[N]'}\n",
        """y[t] = x[t] + pad(y[t - lag[1] - 1], 0.5) * 0.5
  z[t] = sin(x[t]) + pad(z[t + gap + lag[0]], 0) * 0.25""",
    ),
    "looked_up_in_less_than_nothing": (
        "inputs: {x: 'T[..., N]', ids: 'int64[N]', w: 'T[K]'}\noutputs: {y: 'T[...]', z: 'T[N]'}\n",
        """y[...] = sum[k:N - 4](sum[n:N](x[..., n] * 2 if ids[n] == k else 0))
  t[j:N - 4, k:K - 4] = w[k] * (1 + j)
  z[n] = pad(t[ids[n], ids[n] + 1], 0) if K > 0 else 0""",
    ),
    "powers_of_sums_into_places": (
        "inputs: {x: 'T[M, C]', c: 'T[K]', ids: 'int64[N]'}\noutputs: {y: 'T[M, C]', z: 'T[M, C]'}\n",
        """y[i, j] = sum[n:N](c[ids[n]] if ids[n] == i else 0) ** 2
  z[i, j] = exp(sum[n:N](pad(c[ids[n] + 1], 0) if ids[n] == i else 0)) * x[i, j]""",
    ),
    "greatest_of_what_sums_without_terms_ask_for": (
        "inputs: {x: 'T[N]', w: 'T[N]', v: 'T[K]'}\noutputs: {y: 'T[N]', z: 'T[N]', u: 'T[N]'}\n",
        """y[n] = sum[p:n](max[j:n](x[j]) * w[p])
  z[n] = prod[k:n + 1](max[j:k + 1](prod[i:j](pad(w[minimum(k + 1, N)], 0))))
  u[n] = sum[p:n](max[k](v[k]) * w[p])""",
    ),
    "running_sums_of_what_is_looked_up": (
        "inputs: {x: 'T[N]', a: 'T[N, M]', ids: 'int64[N]', c: 'bool[N]'}\n"
        "outputs: {y: 'T[N]', z: 'T[N]', u: 'T[N]'}\n",
        """y[i] = sum[k:i](a[k, ids[k]]) if c[i] else 0.25
  z[i] = x[i] if c[N - 1 - i] else prod[k:N - i](a[k + i, ids[k + i]] * x[k + i])
  u[i] = sum[k:i + 1](a[k, ids[k]]) * x[i] if pad(c[i + 1], False) and x[i] > 0 else x[i]""",
    ),
    "gradients_of_numbers": (
        "inputs: {x: 'T[*A]', v: 'T[N]', s: 'T[]'}\noutputs: {y: 'T[N, *A]', z: 'T[N]'}\n"
        "attributes: {alpha: {type: float, default: 0.5}}\n",
        """y[i, *A] = maximum(alpha * s[()], maximum(x[*A], s[()])) ** 2
  z[i] = minimum(minimum(alpha * N, v[i]) * alpha, alpha * i) ** 3""",
    ),
    "literals_beside_attributes_alone": (
        "inputs: {x: 'T[M, N]'}\noutputs: {y: 'T[M, N]', z: 'T[M]'}\nattributes: {alpha: {type: float, default: 0.5}}\n",
        """t[i] = max[k:N + 1](sin(alpha) * pad(x[i, k], 0))
  u[i] = max[k:N + 1](pad(x[i, k], 0)) if alpha > 2 else 3
  y[i, j] = x[i, j] if 2 > 0.25 else t[i] + u[i] * alpha
  z[i] = u[i] * alpha""",
    ),
    "running_sums_over_less_than_nothing": (
        "inputs: {z: 'T[..., N]', x: 'T[..., N, N]'}\noutputs: {y: 'T[..., N, N]', u: 'T[..., N, N]'}\n",
        """y[..., i, j] = sum[k:i](sum[l:k](sum[m:l](z[..., j])))
  u[..., i, j] = prod[k:i](sum[l:j](z[..., k]))""",
    ),
    "products_of_what_is_padded_twice": (
        "inputs: {v: 'T[N, K]', z: 'T[..., K]'}\noutputs: {y: 'T[..., N, K]'}\n"
        "attributes: {width: {type: int, default: 2, check: width > 0}}\n",
        """t[..., i] = pad(v[1, abs(i - 1)], 1) * sin(pad(v[1, minimum(abs(i - 1), K - 1)], 1)) * z[..., i]
  y[..., i, j] = t[..., j // width]""",
    ),
    "scatters_under_conditions": (
        "inputs: {v: 'T[C, 3]', x: 'T[M, K]', ids: 'int64[M, K]'}\noutputs: {y: 'T[M, K]', z: 'T[M, K]', u: 'T[M]'}\n",
        """y[m, k] = pad(v[k - 1, (m + k) % 3], 0) * x[m, k]
  z[m, k] = pad(v[k - 1, ids[m, k] % 3], 0) * x[m, k]
  p[m, k] = argmax[j:3](x[m, k] * j)
  u[m] = sum[k](pad(v[k - 2, p[m, k]], 0) * x[m, k])""",
    ),
    "reductions_to_places": (
        "inputs: {x: 'T[N, D]', h: 'int32[N, D]', ids: 'int64[N]', at: 'int64[N]'}\n"
        "outputs: {lo: 'T[K, D]', pr: 'T[K, D]', u: 'T[K]', v: 'bool[K, D]', g: 'T[K, D]', s: 'T[N, D]', i: 'int32[K, D]', "
        "a: 'int64[K]', b: 'int64[K, J]'}\n"
        "attributes: {classes: {type: int, default: 3, check: classes > 0}}\nshape: {K: classes, J: classes}\n",
        """lo[k, d] = min[n](2*x[n, d] if ids[n] == k and x[n, d] > 0 else inf) if N > 0 else 1
  pr[k, d] = prod[n](x[n, d] if ids[n] + 1 == k else 1)
  u[k] = cast(T, any[n, d](ids[n] == k and x[n, d] > 0))
  v[k, d] = all[n](x[n, d] > 0 if ids[n] == k else True)
  g[k, d] = (max[n](x[n, d] if ids[n] == k else -inf) if N > 0 else 3) + 1
  m[k:K, d] = stop_gradient(max[n](x[n, d] if ids[n] == k else -inf) if N > 0 else 0)
  e[n, d] = exp(x[n, d] - pad(m[ids[n], d], 0))
  t[k:K, d] = sum[n](e[n, d] if ids[n] == k else 0)
  s[n, d] = e[n, d] / pad(t[ids[n], d], 1)
  i[k, d] = max[n](h[n, d] if ids[n] == k else -2147483648) if N > 0 else 7
  a[k] = argmin[n, d](x[n, d] if ids[n] == k else inf) if N > 0 and D > 0 else -1
  b[k, j] = argmax[n](ids[n] * at[n] if ids[n] == k and at[n] // 2 == j else -9223372036854775808) if N > 0 else -1""",
    ),
    "steps_that_data_names": (
        "inputs: {x: 'T[N, M]', up: 'int64[N]', 'on?': 'int64[N]', at: 'int64[M, N]', w: 'T[M]'}\n"
        "outputs: {y: 'T[N, M]', z: 'T[N, M]', u: 'T[N]', s: 'T[N, M]'}\nrequire: [M > 0]\n",
        """y[t, c] = sin(x[t, c] + sum[k:N](w[c] * y[k, c] if up[k] == t and k < t else 0))
  z[t, c] = sin(x[t, c]) + (w[c] * z[up[t] - 1, c] if up[t] >= 1 and up[t] <= t else 0)
  r[t:N] = sum[k:N](h[k, 0] if t < k and up[k] // 2 == t else 0)
  h[t:N, c:M] = sin(x[t, c] + (h[at[c, t], c] if at[c, t] > t and at[c, t] < N else 0) - r[t])
  u[t] = sum[c](h[t, c] * y[t, c])
  p[t:N] = sin(u[t]) + sum[k:N](p[k] if k < t and k > 0 and up[k - 1] == t else 0)
  q[t:N] = sum[k:N](cos(q[k]) if k < t and (present(on) and on[k] == t) else 0) + u[t]
  v[t:N] = up[t] % 3 + N + (v[t - 1] if t > 0 else 0)
  j[t:N] = q[t] + p[t] - sum[k:N](j[k] if k < t and v[k] - N == t else 0)
  s[t, c] = x[t, c] + j[t] * sum[k:N, d](s[k, d] * x[k, c] if k < t and at[c, k] + 1 == t and x[k, d] > w[c] else 0) + 1""",
    ),
    "steps_of_what_is_shared": (
        "inputs: {x: 'T[N]', m: 'T[M]'}\noutputs: {y: 'T[N]', z: 'T[N]'}\n",
        """q[t:N] = sum[k:N](cos(q[k]) if k < t else 0) + x[t]
  y[t] = q[t] * x[t]
  p[t:N] = sum[k:N](exp(-p[k] * x[t]) / (1 + p[k] ** 2) if k > t else 0) + sin(x[t]) * cos(p[t + 1] if t + 1 < N else 0)
  z[t] = p[t] / (1 + p[t] ** 2) + cos(q[t])""",
    ),
    "running_sums_of_what_is_ordered": (
        "inputs: {x: 'T[..., N]', w: 'T[..., N]', 'm?': 'T[..., N]'}\noutputs: {y: 'T[..., N]', z: 'T[..., N]'}\n"
        "require: [N > 0]\n",
        """p[..., i:N] = argsort[k](x[..., k])[i]
  y[..., i] = sum[j:i + 1](w[..., p[..., j]]) * x[..., i]
  c[..., i:N] = sum[j:i + 1](m[..., p[..., j]]) if present(m) else 0
  z[..., i] = c[..., i] * x[..., i] - (0.5 * m[..., p[..., i]] if present(m) else 0)""",
    ),
    "running_sums_of_what_data_picks": (
        "out_of_range: zero\ninputs: {w: 'T[C, M]', x: 'T[N]', ids: 'int64[N]', at: 'int64[N, N]'}\n"
        "outputs: {y: 'T[N, M]', z: 'T[N]', u: 'T[N]', s: 'T[N]', t: 'T[N]'}\n"
        "attributes: {lag: {type: int, default: 1, check: lag >= 0}}\nrequire: [N > 1, M > 0, C > 0]\n",
        """y[i, c] = sum[j:i + 1](w[ids[j], c] * x[i]) + sum[k:N - i](w[ids[k], c])
  z[i] = sum[j:i](exp(w[ids[j], 0] * x[i])) + sum[k:i - lag](w[ids[k], 0] * x[k])
  u[i] = sum[j:i + 1](w[at[i, j], 0] * x[j]) + sum[k:N - i, l:2](w[at[k, i], 0])
  s[i] = sum[j:i + 1](w[ids[j], 0] * w[ids[i], M - 1]) + sum[j:i + 2](w[ids[j % N], 0])
  t[i] = sum[j:i + 1, c](x[j] if ids[j] > 0 and ids[j] == c else w[ids[j], c]) + sum[k:N - 1 - i](w[ids[k + 1], 0])""",
    ),
    "sums_where_indices_add_up": (
        "inputs: {v: 'T[R, W]', x: 'T[N]', ids: 'int64[R]'}\n"
        "outputs: {y: 'T[N]', z: 'T[N]', u: 'T[N]', s: 'T[N, R]', t: 'T[]', d: 'T[]'}\n"
        "attributes: {hop: {type: int, default: 2, check: hop > 0}, step: {type: int, default: 2}}\nrequire: [R > 0]\n",
        """y[n] = sum[r, k](v[r, k] * x[(n + 1) % N] if r*hop + k == n else 0)
  z[n] = sum[r, k](v[r, k] if r*step + k == n + 1 and v[r, k] > -1 and ids[r] > 0 else 0)
  u[n] = sum[r:R, k](pad(v[r + 1, k], 2) if n - k == r + step else 0) + sum[k:W](v[k % R, k] if n == 2*k + 1 else 0)
  s[n, q] = sum[r:R, k:n + 1](pad(v[r, k], x[n]) if q + k == 2*r + 1 and n + r == 4 else 0)
  t[] = sum[r, k](v[r, k] if r + k == step else 0) + sum[n, k:N](x[n] * x[(n + 1) % N] if n + k == 3 else 0)
  d[] = sum[n, r](x[n] * s[n, r] if n == N - 1 - r else 0)""",
    ),
    "sums_in_sums_of_products": (
        "broadcast: true\ninputs: {z: 'T[..., N]', q: 'T[..., N]', v: 'T[N, K]'}\noutputs: {y: 'T[..., K]', u: 'T[..., K]'}\n",
        """y[..., i] = sum[k:N](sum[l:N](z[..., k] * maximum(v[k, i], 0.5)))
  u[..., i] = sum[k:N](sum[l:N](z[..., k] * exp(v[k, i])) + sum[l:N](exp(q[..., l]) * v[l, i]))""",
    ),
    "tangents_in_ranges_that_vary": (
        "inputs: {x: 'T[N]', v: 'T[K]', q: 'T[M]'}\nrequire: [K > 0]\noutputs: {y: 'T[N]'}\n",
        "y[i] = max[k:M, l:i](sum[m:l](v[k % K]))",
    ),
    "factors_of_what_is_broadcast": (
        "broadcast: true\ninputs: {x: 'T[..., N]', q: 'T[..., N]'}\nattributes: {alpha: float}\noutputs: {y: 'T[..., N, N]'}\n",
        """t[...] = cast(T, alpha)
  u[..., i] = t[...] * x[..., i]
  y[..., i, j] = sum[k:N](exp(k) * u[..., k])""",
    ),
    "the_same_lookups_twice": (
        "out_of_range: error\ninputs: {ids: 'int64[N]', x: 'T[M, N]'}\noutputs: {y: 'T[M]'}\n",
        "y[i] = sum[k](x[i, k] * x[i, ids[k]]) ** 2",
    ),
    "sizes_that_a_cotangent_tells": (
        "inputs: {ids: 'int64[N]', z: 'T[*S]', 'b?': 'T[N]'}\noutputs: {y: 'T[N, *S]', u: 'T[N, *S]'}\n",
        "y[i, *S] = z[*S]\n  u[i, *S] = round(z[*S])",
    ),
    "factors_read_where_others_run": (
        "inputs: {v: 'T[N, N, K]', q: 'T[M, N]', w: 'T[K, M]'}\noutputs: {y: 'T[M, N, N]', u: 'T[N, N]'}\n",
        """y[l, i, j] = sum[k:K](v[i, j, i % K] * exp(q[l, j]))
  u[i, j] = sum[k:K](sum[m:M](exp(v[i, i % N, k % K]) * w[j % K, k % M] * q[m, j]))""",
    ),
    "numbers_beside_products": (
        "inputs: {x: 'T[N]', a: 'T[N, M]', 'b?': 'T[N]'}\noutputs: {y: 'T[N]', z: 'T[N]', u: 'T[N]'}\n",
        """y[i] = sum[k:M](cast(T, k)*x[i] + 2)
  z[i] = sum[k:M](a[i, k]*x[i] + k)
  u[i] = sum[k:M](a[i, k]*b[k % N] + (1 if M > 2 else 2) if present(b) and N > 0 else k)""",
    ),
    "cotangents_tell": (
        "inputs: {x: 'T[..., N]', v: 'T[N, K]', s: 'T[]'}\noutputs: {y: 'T[..., 2*N]', z: 'T[..., N]'}\n",
        "y[..., i] = s\n  t[..., k:K] = sum[j:k + 1](v[0, j] if N > 0 else 0)\n  z[..., i] = sum[k:K](v[i, k] * t[..., k]) + s",
    ),
    "extent_that_an_absent_input_tells": (
        "inputs: {w: 'T[K, C, 3]', c: 'T[C]', 'b?': 'T[K]'}\noutputs: {y: 'T[C]'}\n",
        "y[i] = sum[k:K](b[k] if present(b) else c[i])",
    ),
    "dividend_that_an_absent_input_tells": (
        "inputs: {z: 'T[M, N]', v: 'T[R]', 's?': 'T[N]'}\noutputs: {t: 'T[M, R]'}\n"
        "attributes: {groups: {type: int, default: 2, check: groups > 0 and groups < 4}}\n"
        "shape: {R: N // groups}\nrequire: [N % groups == 0, N > 0]\n",
        "t[i, j] = min[k:N](s[k] if present(s) else v[k % R])",
    ),
    "gradient_within_its_gradient": (
        "inputs: {z: 'T[M, C]', q: 'int64[N]', w: 'T[H]', c: 'T[G]'}\noutputs: {y: 'T[M, H]'}\n"
        "attributes: {groups: {type: int, default: 2, check: groups > 0}}\nshape: {H: N // 2, G: groups}\n"
        "require: [N % 2 == 0, C % groups == 0, C > 0]\n",
        "y[i, j] = w[j] / (2 + sum[k:j](pad(c[k], 0)))",
    ),
    "sizes_of_what_has_no_gradient": (
        "inputs: {q: 'int32[M, C]', c: 'T[C]'}\noutputs: {y: 'T[M, C]', z: 'T[C]'}\n",
        "y[i, j] = cast(T, q[i, j])\n  z[i] = 2",
    ),
    "ranks_that_a_gradient_of_the_gradient_needs": (
        "inputs: {z: 'T[*A, *B]', s: 'T[]', q: 'int32[*A, N, *B]'}\noutputs: {y: 'T[*A, N, *B]', u: 'T[*A, N, *B]'}\n"
        "attributes: {axis: {type: axis, dim: N, default: 0}}\n",
        "y[*A, i, *B] = s[()]\n  u[*A, i, *B] = cast(T, q[*A, i, *B])",
    ),
    "groups_of_none": (
        "inputs: {q: 'T[H, S, D]', k: 'T[G, D, L]'}\noutputs: {y: 'T[H, S, L]'}\nshape: {R: H // G}\n"
        "require: [G > 0, H % G == 0]\n",
        "y[h, i, j] = sum[d](q[h, i, d] * k[h // R, d, j])",
    ),
    "position_for_an_output_that_is_not_wanted": (
        "inputs: {z: 'T[*S]', w: 'T[I, J, K]'}\noutputs: {y: 'T[*S]', m: 'T[]', u: 'T[I, J, K]'}\n",
        "y[*S] = z[*S]\n  m[()] = max[*S](sin(y[*S]))\n  u[i, j, k] = w[i, j, k] * 2",
    ),
    "extent_over_a_size_of_nothing": (
        "inputs: {v: 'T[C, 3]', x: 'T[M, C, H]'}\noutputs: {y: 'T[M, C, 2*H]'}\n",
        "t[i:M, j:C, k:2*H] = pad(v[j, 1], 1)\n  y[i, j, k] = sum[l:j](t[l % M, l, k])",
    ),
    "axis_of_tangents_alone": (
        "inputs: {w: 'T[N]', x: 'T[*A, N, *B]', z: 'T[*A, N, *B]'}\noutputs: {y: 'T[N]', u: 'T[N]'}\n"
        "attributes: {axis: {type: axis, dim: N, default: -1}}\n",
        "y[i] = pad(w[2], 0)\n  u[i] = mean[k:N](cast(T, k))",
    ),
    "index_beside_a_size_of_nothing": (
        "inputs: {c: 'T[K]', ids: 'int64[N]', x: 'T[K, N]'}\noutputs: {y: 'T[N, K]', z: 'T[N, K]'}\n",
        "y[n, k] = c[ids[n]] * 2\n  z[n, k] = x[ids[n], n] + c[k]",
    ),
    "indices_in_sums_of_their_own": (
        "inputs: {s: 'T[]', x: 'T[M, N]'}\noutputs: {y: 'T[N]', z: 'T[]'}\n",
        "y[i] = sum[k:N](s[()] * k)\n  z[()] = mean[j:M](sum[k](x[M - 1, k] * j))",
    ),
    "powers_of_sums_of_what_is_looked_up": (
        "inputs: {x: 'T[M, C]', ids: 'int64[N]'}\noutputs: {y: 'T[C]', z: 'T[C]'}\nrequire: [M > 0]\n",
        "y[c] = sum[k](x[ids[k], c]) ** 2\n  z[c] = exp(sum[k](x[ids[k], c])) / (1 + max[k](x[ids[k], c] * 2) ** 2)"
        " if N > 0 else 0",
    ),
    "joined_along_an_axis": (
        "inputs: {x: 'T[*A, N, *B]', z: 'T[*A, M, *B]'}\nattributes: {axis: {type: axis, dim: N, default: 0}}\n"
        "outputs: {y: 'T[*A, N + M, *B]', u: 'T[*A, P, *B]'}\nshape: {P: 2*M}\n",
        "y[*A, i, *B] = x[*A, i, *B] if i < N else z[*A, i - N, *B]\n  u[*A, i, *B] = z[*A, i // 2, *B]",
    ),
    "masked_products": (
        "inputs: {a: 'T[I, K]', b: 'T[K, J]', mask: 'bool[I, K]', keep: 'bool[K, J]'}\n"
        "outputs: {y: 'T[I, J]', z: 'T[I, J]', t: 'T[I, J]'}\n",
        """y[i, j] = sum[k](a[i, k] * b[k, j] if mask[i, k] else 0)
  z[i, j] = sum[k]((a[i, k] if mask[i, k] else 0) * (b[k, j] if keep[k, j] else 0))
  t[i, j] = sum[k](a[i, k] * b[k, j] if i <= k and keep[k, j] else 0)""",
    ),
    "numbers_of_two_kinds": (
        "inputs: {s: 'T[]', x: 'T[N]'}\nattributes: {alpha: {type: float, default: 0.5}}\noutputs: {y: 'T[N]', z: 'T[N]'}\n",
        "y[i] = x[i] * minimum(s[()], alpha * s[()])\n  z[i] = (1 if s[()] > alpha else alpha) * x[i]",
    ),
    "sizes_in_indices": (
        "inputs: {r: 'int64[K]', x: 'T[M, N]'}\noutputs: {y: 'T[M, N]'}\nrequire: [K > 0]\n",
        "y[i, j] = x[i // K, j]",
    ),
    "product_with_one_element": (
        "inputs: {q: 'T[..., N]', v: 'T[N, N, K]'}\noutputs: {y: 'T[..., N, K]', z: 'T[..., N, K]'}\n",
        """t[...] = 2*q[..., 0] if N > 0 else 1
  y[..., i, j] = sum[k:K](t[...] * v[i, i, j])
  z[..., i, j] = sum[k:K](t[...] * v[i, i, k])""",
    ),
    "position_in_no_group": (
        "inputs: {x: 'T[N, *S]'}\noutputs: {y: 'bool[N, *S]', z: 'int64[N, *S]'}\n",
        "y[i, *S] = position(*S) % 2 == 0\n  z[i, *S] = minimum(position(*S), i) + abs(position(*S) - 2) // 3",
    ),
    "presence_behind_conditions": (
        "inputs: {x: 'T[..., N, N]', z: 'T[..., N]', v: 'T[N, K]', 'w?': 'T[..., K]'}\noutputs: {y: 'T[..., K]'}\n",
        "y[..., k] = sum[n](0 if n + 1 < N else x[..., n, n] * w[..., k] * v[n, k] if present(w) else 0)",
    ),
    "sums_that_end_before_they_begin": (
        "inputs: {w: 'T[N]', v: 'T[N, K]', x: 'T[M, N]'}\noutputs: {y: 'T[M, K]', z: 'T[M]', u: 'T[M]'}\n",
        """y[i, j] = sum[k:N - 2](x[i, k] * v[k, j])
  z[i] = sum[k:N - 2](-1.5)
  u[i] = sum[k:N - 2](w[0]) + sum[k:K - 3, n:N](v[n, k])""",
    ),
    "quotients_by_a_size_of_nothing": (
        "inputs: {x: 'T[N, N]', s: 'T[]', z: 'T[M, N]', p: 'T[N, N, K]'}\noutputs: {t: 'T[N, N, K]', y: 'T[N, K]'}\n",
        "t[i, j, k] = s[()] * s[()]\n  y[i, j] = max[k:N](sum[m:M](x[k, i] * t[j % N, N - 1, j]))",
    ),
    "bools_by_index": (
        "inputs: {c: 'T[K]', ids: 'int64[N]', o: 'bool[K]'}\noutputs: {y: 'T[N]', z: 'bool[N]'}\nrequire: [K > 0]\n",
        """p[n] = ids[n] % K
  y[n] = 0 if not (n <= p[n] and not o[p[n]]) else c[p[n]]
  z[n] = not (n < 2 and not o[p[n]])""",
    ),
    "axis_of_one_part": (
        "inputs: {v: 'T[N, K]', q: 'uint8[..., N]'}\noutputs: {y: 'T[..., K]'}\n",
        "y[..., k] = sum[n](cast(T, q[..., n]) * v[n, k % K])",
    ),
    "positions_nobody_asks_for": (
        "inputs: {x: 'T[M, N]'}\noutputs: {y: 'int64[M]', z: 'int64[M]'}\n",
        "y[m] = argmax[n](x[m, n])\n  z[m] = argmin[n](x[m, n])",
    ),
    "positions_in_ranges_that_vary": (
        "inputs: {x: 'T[M, N]'}\noutputs: {y: 'int64[M, N]', z: 'int64[M, N]'}\n",
        """y[m, n] = argmax[k:M, l:n + 1](x[k, l])
  z[m, n] = argmin[k:N - n, l:m + 1, j:N](x[l, k] * x[m, j])""",
    ),
    "temporary_of_no_output": (
        "inputs: {ids: 'int64[N]', c: 'T[K]', x: 'T[N]'}\noutputs: {y: 'T[N]'}\n",
        "t[i:N] = c[ids[i]] + max[k](c[k])\n  y[i] = sin(x[i])",
    ),
    "list_of_nothing": (
        "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nattributes: {some: {type: 'float[]', default: []}}\n",
        "y[i] = sin(x[i])",
    ),
    "list_of_bools": (
        "inputs: {x: 'T[N]'}\noutputs: {y: 'bool[N]', z: 'T[N]'}\n"
        "attributes: {gates: {type: 'bool[2]', default: [true, false]}}\n",
        "y[i] = gates[1]\n  z[i] = x[i] if gates[0] and x[i] > 0 else 0",
    ),
    "places_that_reductions_find": (
        "inputs: {x: 'T[M, N, K]', t: 'T[N, K]', w: 'T[M, K]', q: 'int64[M, N, K]', ids: 'int64[N]'}\n"
        "outputs: {y: 'T[M, K]', z: 'T[M, K]', u: 'T[M]', a: 'T[N]', b: 'T[N, K]'}\n",
        """y[m, k] = t[argmax[n](x[m, n, k]), k] if N > 0 else 0
  z[m, k] = pad(t[abs(sum[n](q[m, n, k])) // (N + 1), k], 0) * w[m, k]
  u[m] = sum[k](t[argmin[n](x[m, n, k]), k] if N > 0 else 0)
  a[n] = sum[m:M, k:K](w[m, k] if sum[l:N](q[m, ids[l], k]) == n else 0)
  b[n, k] = sum[m:M](w[m, k] if argmax[j:M](sum[l:N](x[m, ids[l], k] * j)) == n else 0)""",
    ),
    "places_where_they_are_asked_for": (
        "inputs: {x: 'T[M, N, K]'}\noutputs: {y: 'T[K]'}\n",
        "y[k] = max[m:k](max[n:N](max[l:k](x[m, n, l]))) if k > 0 and M >= K and N > 0 else 0",
    ),
    "extremes_of_nothing_at_places": (
        "inputs: {p: 'T[N, N, K]', ids: 'int64[N]', w: 'T[N, M]'}\noutputs: {y: 'T[N, N]', z: 'T[N, M]', u: 'T[N]'}\n",
        """y[i, j] = sum[k:i + 1](sum[m:N](max[q:N - j, l:K](p[m, q, l]) if ids[m] - N == k else 0))
  z[i, j] = sum[k:N](max[l:K](p[i, k, l]) * w[k, j] if ids[k] + N == i else 0)
  u[i] = sum[k:N](min[l:K](p[k, k, l]) if ids[k] - N == i else 0)""",
    ),
    "places_under_a_condition": (
        "inputs: {x: 'T[M, C, H]', ids: 'int64[N, H]', a: 'int64[N, H]'}\n"
        "outputs: {y: 'T[N, 5, H]', z: 'T[N, H]', u: 'T[N, H]'}\nrequire: [M > 0, C > 0]\n",
        """y[n, j, h] = x[ids[n + j, h], 0, h] * 2 if j + n < N and N > 2 else pad(x[j, a[n - 1, h], h], 1) if n > 0 else 0
  z[n, h] = sum[m:M](x[m, a[n + 3, h], h] if n + 3 < N and m > n else 0)
  u[n, h] = (x[ids[n, h], a[n + 1, h], h] if n + 1 < N else 3) * x[ids[n, h] // 2, a[n, h], h]""",
    ),
    "nearest_of_nothing": (
        "inputs: {x: 'T[M, H]', ids: 'int64[M]'}\noutputs: {y: 'T[M]', z: 'T[M]'}\nout_of_range: clamp\n",
        """t[n:M, h:H // 2] = x[n, h] * x[n, 2*h]
  y[n] = t[n, ids[n]] + 1
  z[n] = x[ids[n], H - 1] if H > 0 else x[n, ids[n]]""",
    ),
    "extremes_of_nothing_in_factors": (
        "inputs: {a: 'T[A, M]', x: 'T[A, N]'}\noutputs: {y: 'T[A, N]'}\ngradient: {ties: even}\n",
        "y[h, i] = prod[j:i](max[k:j + 1](pad(a[h, j + 1], 1)))",
    ),
    "products_at_some_lanes_of_sums": (
        "inputs: {x: 'T[N]', w: 'T[N]', c: 'bool[N]'}\noutputs: {y: 'T[N]', z: 'T[N]', u: 'T[N]'}\n",
        """y[i] = sum[k](w[k] * prod[j:k](x[i + j]) if i + k <= N else 0)
  z[i] = sum[k](w[k] * prod[j:k](x[i + j]) if c[i] and i + k <= N else 0)
  u[i] = sum[k:N - i](w[k] * prod[j:k](x[i + j + 1]))""",
    ),
    "running_products_at_one_number_of_two_axes": (
        "inputs: {x: 'T[C, C]', c: 'T[C]', ids: 'int64[]'}\noutputs: {y: 'T[C]'}\n",
        """t[i:C, h:C - 1] = c[i]
  y[i] = sum[k:C](x[i, k] * prod[j:k](t[ids[()], ids[()]]))""",
    ),
    "rows_of_halves_that_are_copied": (
        "  U: [bfloat16]\ninputs: {x: 'U[N, N, K]', ids: 'int64[N]', w: 'T[N]'}\n"
        "outputs: {y: 'U[N, K]', z: 'U[N, N, K]', u: 'U[K]'}\n",
        """s[n:N, k:K] = sum[m:N](x[m, n, k])
  y[n, k] = s[ids[n], k] if w[n] < 9 else 0
  r[n:N, k:K] = s[ids[n], k]
  t[n:N, k:K] = x[n, ids[n], k]
  z[m, n, k] = r[m, k] * t[n, k]
  u[k] = sum[n:N](s[n, k] if ids[n] == n else 0) + max[n:N](t[n, k])""",
    ),
    "searches_of_nothing_in_gradients": (
        "inputs: {w: 'T[M, K]', x: 'T[M, N]', v: 'T[N]'}\noutputs: {y: 'T[N, K]', z: 'T[N]'}\n",
        """y[n, k] = sum[m:M](w[m, k] if argmax[j:N](x[m, j]) == n else 0)
  z[n] = sum[m:M, k:K](w[m, k] * max[j:N](x[m, j])) * v[n]""",
    ),
    "conditions_that_decide_nothing_but_refuse": (
        "inputs: {x: 'T[N, M]', s: 'T[]', ids: 'int64[N]'}\noutputs: {y: 'T[N]', z: 'T[N]'}\n",
        """y[n] = s[()] * (s[()] if s[()] <= x[n, ids[n]] else s[()])
  z[n] = sum[k:M](x[n, k]) if max[k:M](x[n, k]) > 0 else sum[k:M](x[n, k])""",
    ),
    "running_sums_of_what_a_condition_bounds": (
        "inputs: {ids: 'int64[M]', v: 'T[N, K]', x: 'T[N]'}\noutputs: {y: 'T[N, M]', z: 'T[N, K]'}\n",
        """y[i, j] = sum[k:i](sum[l:M](pad(v[k, l], 0) if ids[l] == j else 0))
  z[n, k] = sum[l:n + 1](v[l, k + 2] * x[l]) if k + 2 < K else sum[l:3](pad(v[n, k + l], 1))""",
    ),
    "steps_down": (
        "inputs: {x: 'T[N]', z: 'T[M]'}\noutputs: {y: 'T[N]', u: 'T[M]'}\n"
        "attributes: {s: {type: int, default: -2, check: s < 0 and s > -4}}\n",
        """y[i] = x[N - 1 - abs(N - 1 - 2*i)] * x[i]
  u[m] = pad(z[m*s + M], 1) * sum[k:3](pad(x[m*s + N + k], 0))""",
    ),
}  # fmt: skip
"""Shapes whose groups other operands tell, and elements of lists as values."""
