"""Specs of operands that broadcast in which something was wrong once, with others of their class; `classes` has the rest."""

SHARED = "broadcast: true\ninputs: {z: 'T[..., N]', x: 'T[..., N]', 'b?': 'T[..., N]', q: 'int16[..., N]'}\n"

BROADCAST = {
    "sums_of_one_operand_beside_others": (
        "broadcast: true\ninputs: {x: 'T[..., N]', q: 'T[..., N]', w: 'T[N]'}\n"
        "outputs: {y: 'T[..., N]', z: 'T[..., N]'}\n",
        "y[..., i] = q[..., i]\n  z[..., i] = sum[k:N](w[i] - x[..., k])",
    ),
    "sums_of_an_own_group": (
        "broadcast: true\ninputs: {z: 'T[..., N]', o: 'bool[..., K]', v: 'T[N, K]'}\noutputs: {y: 'T[..., K]', u: 'T[..., N]'}\n",
        """y[..., i] = sum[k:3, n:N](z[..., n])
  s[..., n] = sum[m:n + 1](z[..., m] * v[n, 0] if K > 0 else z[..., m])
  u[..., n] = max[m](s[..., m]) + s[..., n]""",
    ),
    "places_in_an_own_group": (
        SHARED.replace("z: 'T[..., N]'", "z: 'T[..., N]', v: 'T[N, N]', ids: 'int64[M]'")
        + "outputs: {y: 'T[..., N]', p: 'T[..., N]'}\n",
        """a[..., n:N] = pad(z[..., n - 1], 0.5) * z[..., n // 2]
  c[..., n] = sum[m](z[..., m] * v[m, n])
  d[..., n:N] = sum[m:N](a[..., m] if (2*m) % N == n else 0) if N > 0 else 0
  e[..., n:N] = max[m:n + 1](z[..., m] * v[n, m])
  f[..., n:N] = sum[m:M](pad(z[..., ids[m]], 0) if m < N else 0)
  g[..., n] = sum[m](v[m, n]) + (c[..., n] if n > 0 else 1)
  y[..., n] = a[..., n] * c[..., n] + d[..., N - 1 - n] * e[..., n]
  p[..., n] = f[..., n] * sin(g[..., n]) + x[..., n]""",
    ),
    "read_in_part": (
        SHARED + "outputs: {y: 'T[..., N]', m: 'T[..., N]', a: 'T[...]', p: 'int64[...]'}\n",
        """y[..., i] = x[..., N - 1 - i]
  m[..., i] = max[k:3](pad(x[..., 2*i + k - 1], -inf))
  a[...] = pad(z[..., 1], 1)
  p[...] = position(...)""",
    ),
    "chosen_places": (
        SHARED + "outputs: {y: 'T[..., N, N]'}\n",
        "y[..., i, j] = z[..., j] if q[..., N - 1 - i] > 0 else x[..., N - 1 - j]",
    ),
    "through_temporaries": (
        SHARED + "outputs: {y: 'T[...]', p: 'T[..., N]'}\n",
        """s[...] = sum[k:3](pad(x[..., k - 1], 1))
  t[..., i] = (z[..., i] - s[...]) * z[..., i]
  y[...] = pad(t[..., 1], 0)
  p[..., i] = sum[k:i](s[...] * pad(t[..., k - 1], 2))""",
    ),
    "given_or_not": (
        SHARED + "outputs: {y: 'T[...]', p: 'T[..., N]'}\n",
        """y[...] = sum[k]((b[..., k] if present(b) else x[..., k]) * 2)
  p[..., i] = prod[k:2](sum[l:i](pad(x[..., l + k - 1], 0.5)))""",
    ),
    "products_of_shared": (
        SHARED.replace("z: 'T[..., N]'", "z: 'T[..., N, N]', v: 'T[..., N, N]'")
        + "outputs: {y: 'T[..., N, N]', p: 'T[N]', r: 'T[..., N, N]'}\n",
        """y[..., i, j] = sum[k](x[..., k] * pad(x[..., k + i - j], 0))
  p[i] = sum[...](pad(x[..., i - 1], 0) * z[..., i, 0] if N > 0 else 0)
  r[..., i, j] = sum[k](z[..., i, k] * v[..., k, j])""",
    ),
}  # fmt: skip
"""The axes that operands share are what all of them broadcast to, whichever of them the body reads and however."""
