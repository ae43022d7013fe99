"""Specs written out rather than drawn: what lowering and emission once got wrong, and its neighbours.

Each line is `inputs -> outputs`, derived dimensions (`X = ...`), requirements (`? ...`) and the statements of the body.
"""

from __future__ import annotations

HEAD = "domain: opc.test\nversion: 1\ndoc: One of the constructs.\n"

CONTRACTIONS = """
x[H, L], t[K], z[J] -> y[J, H]; ? K > 0; y[g, h] = sum[l](x[h, l]*t[g % K]) + 0*z[g]
x[H, L], t[K], z[J] -> y[H, J]; ? K > 0; y[h, g] = sum[l](x[h, l]*t[(g + 1) % K]) + 0*z[g]
x[H, L], t[K, L], z[J] -> y[J, H]; ? K > 0; y[g, h] = sum[l](x[h, l]*t[g % K, l])*z[g]
x[H, L], t[K, L], z[J] -> y[J, H]; ? K > 0; y[g, h] = sum[l](x[h, l]*t[K - 1 - g % K, l]) - z[g]
x[H, L], t[L, K], z[J] -> y[J, H]; ? K > 2; y[g, h] = sum[l](x[h, l]*t[l, (2*g + 1) % K]) + z[g]
x[H, L], t[K] -> y[J, H]; J = 3*K; y[g, h] = sum[l](x[h, l]*t[g // 3])
x[H, L], t[L, K] -> y[H, J]; J = 4*K; y[h, g] = sum[l](x[h, l]*t[l, (g + 2) // 4 % K])
x[H, L], t[K, L], z[J, L] -> y[H, J]; ? K > 0; y[h, g] = sum[l](x[h, l]*(t[g % K, l] + z[g, l]))
x[H, L], t[K, M], z[J] -> y[J, H]; ? K > 0, M > 0; y[g, h] = sum[l](x[h, l]*t[g % K, l % M])*z[g]
x[H, L], t[K, L] -> y[H, J]; J = 2*K; y[h, g] = sum[l](x[h, l]*t[g // 2, l]*(1 if l > g else 2))
x[H, L], t[K, P] -> y[H, J]; J = K + 3; ? P > 0; y[h, g] = sum[l](x[h, l]*pad(t[g - 2, l // 2 % P], 0))
a[N, K], b[K, M] -> y[P]; P = N*M; ? M > 0; y[p] = sum[k](a[p // M, k]*b[k, p % M])
a[N, K], b[K, M] -> y[P, N]; P = N*M; ? M > 0; y[p, n] = sum[k](a[n, k]*b[k, p % M])*a[p // M, 0] if K > 0 else 0
a[N, K], b[K, M] -> y[P, N]; P = N*M; ? M > 0; y[p, n] = sum[k](a[p // M, k]*b[k, p % M]*a[n, k])
a[N, Q], b[K, M] -> y[N, M]; ? Q == 2*K; y[n, m] = sum[k](a[n, 2*k]*b[k, m] + a[n, 2*k + 1]*b[K - 1 - k, m])
a[N, K], b[K, M] -> y[N, M]; ? N > 0, M > 0; y[n, m] = sum[k](a[N - 1 - n, k]*b[k, (m + n) % M])
a[N, K], b[M, K] -> y[N, M]; ? K > 0; y[n, m] = sum[k](a[n, k]*b[m, (k + 1) % K])
a[N, K], b[M, K] -> y[N, M]; ? K > 1; y[n, m] = sum[k](a[n, 0]*b[m, k] + a[n, k]*b[m, 1])
"""

EXTREMES = """
x[B, E], z[E, D] -> y[B, D]; ? E > 0; y[b, d] = max[e](x[b, e]*z[e, d])
x[E, B], z[D, E] -> y[B, D]; ? E > 0; y[b, d] = min[e](abs(x[e, b] - z[d, e]))
x[E, B], z[E, D] -> y[B, D]; ? E > 0; y[b, d] = min[e](x[e, b] + z[e, d])
x[B, E], z[D, E] -> y[D, B]; ? E > 0; y[d, b] = max[e](x[b, e] - z[d, e])
x[B, E], z[E, D] -> y[D, B]; ? E > 0; y[d, b] = max[e](x[b, e]*z[e, d])
x[B, E], z[E, D], w[B, D] -> y[B]; ? E > 0, D > 0; y[b] = max[e, d](x[b, e]*z[e, d] + w[b, d])
x[B, E], z[E, D] -> y[B]; ? E > 0, D > 0; y[b] = sum[d](max[e](x[b, e]*z[e, d]))
x[B, E], z[E, D] -> y[D]; ? E > 0, B > 0; y[d] = min[b](max[e](x[b, e]*z[e, d]))
x[B, E], z[E, D] -> y[B, D]; y[b, d] = prod[e](1 + x[b, e]*z[e, d]/8)
x[B, E], z[D, E] -> y[B, D]; y[b, d] = prod[e:3](1 + pad(x[b, e], 0)*pad(z[d, e], 1)/4)
x[B, E], z[E, D] -> y[B, D], i int64[B, D]; ? E > 0; y[b, d] = max[e](x[b, e]*z[e, d]); i[b, d] = argmax[e](x[b, e]*z[e, d])
x[B, E], z[E, D] -> y[B, D]; ? E > 0; k[b, d] = argmin[e](x[b, e]*z[e, d]); y[b, d] = z[k[b, d], d]*x[b, k[b, d]]
x[B, E], z[E, D], w[E] -> y[B, D]; ? E > 0; y[b, d] = max[e](x[b, e]*z[e, d]*w[e])
x[B, E], z[E, D], w[D] -> y[B, D]; ? E > 0; y[b, d] = max[e](x[b, e]*z[e, d])*w[d]
x[B, E], z[E, D] -> y[B, D]; ? E > 0; y[b, d] = max[e](x[b, E - 1 - e]*z[e, d]) - min[e](x[b, e]*z[e, d])
x[B, E], z[E, D] -> y[B, D]; ? E > 0; y[b, d] = max[e](x[b, e // 2]*z[e, d])
x[B, E], z[F, D] -> y[B, D]; ? E > 0, F > 0; y[b, d] = max[e](x[b, e]*z[e % F, d])
x[B, E], z[E, D] -> y[B, D]; ? E > 0; y[b, d] = max[e](x[b, e] if z[e, d] > 0 else z[e, d])
x[A, B, E], z[A, E, D] -> y[A, B, D]; ? E > 0; y[a, b, d] = max[e](x[a, b, e]*z[a, e, d])
x[E], z[E, D] -> y[D]; ? E > 0; y[d] = max[e](x[e]*z[e, d])
x[B, E], z[E] -> y[B]; ? E > 0; y[b] = min[e](x[b, e]*z[e])
x[..., E], z[E, D] -> y[..., D]; ? E > 0; y[..., d] = max[e](x[..., e]*z[e, d])
x[B, E], z[E, D] -> y[B, D]; ? E > 0; y[b, d] = max[e](pad(x[b, e - 1], 0)*z[e, d])
"""

QUOTIENTS = """
x[I], w[G, W], v[G] -> y[G]; ? I > 0, W > 0; y[g] = x[g % I]*w[g, 0]*v[g]
x[I], w[W, G], v[G] -> y[G]; ? I > 0, W > 0; y[g] = x[g % I]*w[0, g]*v[g]
x[I, J], w[G, W] -> y[G]; ? I > 0, J > 0, W > 1; y[g] = x[g % I, 0]*w[g, 1] + x[0, g % J]
x[I], w[G, W] -> y[G, W]; ? I > 0; y[g, j] = x[(g + j) % I]*w[g, j]
x[I], w[G, W] -> y[W, G]; ? I > 0; y[j, g] = x[(g + 2*j) % I]*w[g, j]
x[I], w[G, W] -> y[G]; ? I > 0; y[g] = sum[j](x[(g*W + j) % I]*w[g, j])
x[I], w[G, W] -> y[]; ? I > 0; y[()] = sum[g, j](x[g % I]*w[g, j])
x[I, J], v[G] -> y[G]; ? J > 0; y[g] = pad(x[g // J, g % J], 1)*v[g]
x[I, J], v[G, 3] -> y[G]; ? J > 0; y[g] = pad(x[g // J, g % J], 0)*v[g, 2] - v[g, 0]
x[N, D] -> y[M, D]; M = 3*N; y[i, d] = x[i // 3, d]*(i % 3)
x[N, D] -> y[D, M]; M = 2*N; y[d, i] = x[i // 2, d] - x[i % N, D - 1 - d]
x[N, D], w[N, W] -> y[N, D]; ? D > 0, W > 0; y[n, d] = x[n, d]*w[n, d % W]
x[N, D], w[N, W] -> y[N]; ? W > 0; y[n] = sum[d](x[n, d]*w[n, d % W])
x[N, D], w[N, W] -> y[N]; ? W > 0; y[n] = sum[d](x[n, d]*w[n, 0]*w[d % N, d % W])
x[N, D], w[W] -> y[N, D]; ? W > 0; y[n, d] = x[n, d]*w[(n*D + d) % W]*w[0]
x[N, 4], w[N, W], v[N] -> y[N]; ? W > 0; y[n] = x[n, n % 4]*w[n, n % W]*v[n]
x[N, C], w[C] -> y[N, C]; ? C % 2 == 0, C > 0; y[n, c] = pad(x[n, c + 1 - 2*(c % 2)], 0)*w[c // 2]
x[N, C], w[C] -> y[N, C]; ? C > 0; y[n, c] = x[n, (c*2) % C]*w[c] + x[0, c] if N > 0 else 0
x[I], w[G, W], v[G] -> y[G], u[G, W]; ? I > 0, W > 0; y[g] = x[g % I]*w[g, 0]*v[g]; u[g, j] = y[g]*w[g, W - 1 - j]
"""

PRODUCTS = """
x[M, Z] -> y[P], u[P]; P = M*Z; ? Z > 0; s[j:M*Z] = x[j // Z, j % Z]*2; y[j] = s[j]*s[j]; u[j] = s[j] + 1
x[M, Z] -> y[P]; P = M*Z; ? Z > 0; s[j:M*Z] = x[j // Z, j % Z]*2; y[j] = s[j]*s[M*Z - 1 - j]
x[M, Z] -> y[]; ? Z > 0; s[j:M*Z] = x[j // Z, j % Z]*2; y[()] = sum[j](s[j]*s[M*Z - 1 - j])
x[M, Z] -> y[M, Z]; ? Z > 0, M > 0; s[j:M*Z] = x[j // Z, j % Z]*2; y[m, z] = s[m*Z + z]*s[z*M + m]
x[M, Z] -> y[M]; ? Z > 0; s[j:M*Z] = exp(x[j // Z, j % Z]); y[m] = sum[k:Z](s[m*Z + k]*s[k])
x[M, Z], w[K, Z] -> y[K]; ? Z > 0; s[j:2*Z] = sum[m](x[m, j % Z]) + j; y[k] = sum[j:2*Z](s[j]*w[k, j // 2])
x[M, Z], w[Z, K] -> y[P, K]; P = M*Z; ? Z > 0; s[j:M*Z, k:K] = x[j // Z, 0]*w[j % Z, k]; y[j, k] = s[j, k]*s[M*Z - 1 - j, k]
x[M], z[Z] -> y[P]; P = M*Z; ? Z > 0; s[j:M*Z] = x[j // Z]*z[j % Z]; y[j] = s[j] + s[j // 2]
x[M, Z] -> y[M]; ? Z > 0; s[m, k:2*Z] = x[m, k // 2]*(k % 2 + 1); y[m] = max[k:2*Z](s[m, k])
x[M, Z] -> y[M, Z]; ? M > 0; s[i:M + Z] = sum[k](x[i % M, k]); y[m, z] = s[m + z]*x[m, z]
x[M, Z], w[K, Z] -> y[P, K]; P = M*Z; ? Z > 0; s[j:M*Z] = sin(x[j // Z, j % Z]); y[j, k] = sum[z](s[j]*w[k, z]) + s[j]
x[M, Z], w[K, L] -> y[M, K]; ? Z > 0, L == 2*Z; s[m, j:2*Z] = x[m, j % Z] - j; y[m, k] = sum[j:2*Z](s[m, j]*w[k, j])
x[M, Z] -> y[Z]; ? Z > 0; s[j:M*Z] = x[j // Z, j % Z]*2; t[z:Z] = sum[m:M](s[m*Z + z]); y[z] = t[z]/(1 + t[Z - 1 - z]**2)
x[M, Z], z[] -> y[P]; P = M*Z + 1; ? Z > 0; s[j:M*Z] = x[j // Z, j % Z]*z[()]; y[j] = pad(s[j], 0) + pad(s[j - 1], 1)
x[M, Z] -> y[A, B]; A = 2*M; B = 3*Z; s[i:2*M, j:3*Z] = x[i // 2, j // 3]; y[i, j] = s[i, j]*s[2*M - 1 - i, 3*Z - 1 - j]
x[M, N], z[N, K] -> y[P]; P = M*K; ? K > 0; s[p:M*K] = sum[n](x[p // K, n]*z[n, p % K]); y[p] = s[p]*s[p] + s[M*K - 1 - p]
"""

CONSTANTS = """
x[N, D], w[D, 2] -> y[N, D]; y[n, d] = x[n, d]*w[d, 0] + w[d, 1]
x[N, D], w[2, D] -> y[N, D]; y[n, d] = x[n, d]*w[1, d] + w[0, D - 1 - d]
x[N, D], w[N, 2] -> y[N, D]; y[n, d] = x[n, d]*w[n, 0] + w[N - 1 - n, 1]
x[N, D], w[N, D, 2] -> y[N]; y[n] = sum[d](x[n, d]*w[n, d, 0])/(1 + abs(w[n, 0, 1])) if D > 0 else 0
x[N, D, 3] -> y[N, D]; y[n, d] = x[n, d, 0]*x[n, d, 1] - x[n, d, 2]
x[N, D], w[K, 2, D] -> y[N, K]; y[n, k] = sum[d](x[n, d]*w[k, 1, d]) + sum[d](x[n, d]*w[k, 0, D - 1 - d])
x[N, D], w[D, K] -> y[N, K]; ? N > 0; y[n, k] = sum[d](x[0, d]*w[d, k])*x[n, 0] if D > 0 else 0
x[N, D] -> y[N, D]; ? D > 0; y[n, d] = x[n, d] - x[n, 0] - max[e](x[e, 0])
x[..., N], w[N, 2] -> y[..., N]; y[..., n] = x[..., n]*w[n, 0] + w[N - 1 - n, 1]
x[..., D], w[2, D] -> y[...]; y[...] = sum[d](x[..., d]*w[0, d]*w[1, D - 1 - d])
"""

NAMED = """
x[V, D], b[V, D], s int64[N], t int64[N] -> y[V]; y[v] = sum[n](exp(sum[d](x[s[n], d]*b[t[n], d])/8) if t[n] == v else 0)
x[V, D], b[V, D], s int64[N], t int64[N] -> y[V]; y[v] = sum[n](tanh(sum[d](x[s[n], d]*b[v, d])) if t[n] == v and s[n] > 0 else 0)
x[N, D], w[K, D], t int64[N] -> y[V, K]; V = K + 2; y[v, k] = sum[n](max[d](x[n, d]*w[k, d]) if t[n] == v else 0); ? D > 0
x[V, D], w[D, K], s int64[N] -> y[N, K]; y[n, k] = sum[d](x[s[n], d]*w[d, k])
x[N, D], w[K, D, J], e int64[N] -> y[N, J]; y[n, j] = sum[d](x[n, d]*w[e[n], d, j])
x[V, D], w[K, D, J], e int64[N], s int64[N], t int64[N] -> y[V, J]; m[n:N, j:J] = sum[d](x[s[n], d]*w[e[n], d, j]); \
y[v, j] = sum[n](m[n, j] if t[n] == v else 0)
"""


def _operands(text: str) -> str:
    """Return operands such as `x[N], i int64[N]` as the entries of a YAML mapping."""
    entries, depth, start = [], 0, 0
    for n, character in enumerate(f"{text},"):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            entries.append(text[start:n].strip())
            start = n + 1
    found = []
    for entry in entries:
        name, _, dims = entry.partition("[")
        name, _, kind = name.partition(" ")
        found.append(f"'{name}': '{kind or 'T'}[{dims}'")
    return f"{{{', '.join(found)}}}"


def _spec(name: str, line: str, dtype: str) -> str:
    head, *rest = (part.strip() for part in line.split(";"))
    inputs, outputs = head.split(" -> ")
    sizes = [r for r in rest if r[:1].isupper()]
    required = [r[1:].strip() for r in rest if r.startswith("?")]
    body = [r for r in rest if r not in sizes and not r.startswith("?")]
    text = f"op: {name}\n{HEAD}types: {{T: [{dtype}]}}\ninputs: {_operands(inputs)}\noutputs: {_operands(outputs)}\n"
    if sizes:
        text += f"shape: {{{', '.join(s.replace(' = ', ': ') for s in sizes)}}}\n"
    if required:
        text += f"require: [{', '.join(required)}]\n"
    return f"{text}kernel: |\n" + "".join(f"  {statement}\n" for statement in body)


def specs(theme: str, lines: str) -> list[str]:
    """Return the specs of a theme, named by it, of one element type each by turns."""
    written = filter(None, lines.splitlines())
    return [_spec(f"{theme}_{n}", line, ("float64", "float32")[n % 2]) for n, line in enumerate(written)]


RECURRENCES = """
a[N, D], b[N, D], s[D] -> h[N, D]; h[t, d] = a[t, d]*pad(h[t - 1, d], s[d]) + b[t, d]
x[N, B, K], w[K, K], s[B, K] -> h[N, B, K]; z[t:N, b, k:K] = sum[j](w[k, j]*pad(h[t - 1, b, j], s[b, j])); \
h[t, b, k] = tanh(z[t, b, k]/K + x[t, b, k])
x[D, N], w[D] -> y[D]; p[d, t] = x[d, t]*pad(p[d, t + 1], 1)/2; y[d] = w[d]*sum[t](p[d, t])
x[..., N], a[2] -> y[..., N]; y[..., t] = x[..., t] - a[0]*pad(y[..., t - 1], 0)/4 - a[1]*pad(y[..., t - 2], 0)/4
x[N, K], q[N, K], v[N, J] -> y[N, J]; u[t, j] = v[t, j] - sum[k:K](x[t, k]*pad(s[t - 1, k, j], 0))/K; \
s[t, k, j] = pad(s[t - 1, k, j], 0) + x[t, k]*u[t, j]/K; y[t, j] = sum[k:K](q[t, k]*s[t, k, j])
x[N, D] -> f[N, D], g[D], n int64[N]; f[t, d] = maximum(x[t, d], f[t - 1, d] if t > 0 else x[0, d]); \
g[d] = sum[t](f[t, d]*pad(f[t - 1, d], 1)); n[t] = pad(n[t - 1], 0) + 1 if t % 3 > 0 else 0
x[N, B], e[B, D], l int64[B] -> y[B, D]; ? N > 0; p[t:N, b:B, d:D] = pad(h[t - 1, b, d], 0.5); \
h[t:N, b, d:D] = tanh(x[t, b] + e[b, d]*p[t, b, d]) if t < l[b] else p[t, b, d]; y[b, d] = h[N - 1, b, d]
v[N, 3], x[B, N, D] -> y[B, N, D]; y[b, t, j] = pad(y[b, t - 1, j], 0.5)/2 \
+ sin(x[b, t, j] + sum[k:t](pad(v[N - 1 - abs(N - 1 - 2*k), j + 1], 1)))
x[N, D], s[D] -> h[N, D]; h[t, d] = pad(h[t - 1, d], 0)/2 + (x[t, d] - sum[k:t + 1](s[d]))/N
x[N] -> y[N]; h[i:N] = pad(g[i - 1], 0)/2 + x[i]; \
g[i:N] = sin(pad(g[i - 1], 0)) if pad(h[i - 2], 4) < 3 else x[i]; y[i] = h[i]*g[i]
x[N, D] -> y[N, D]; p[t:N, d:D] = sin(pad(p[t + 1, d], 1)) if pad(q[t + 1, d], 0) < 1 else x[t, d]; \
q[t:N, d:D] = x[t, d]**2 if pad(p[t + 2, d], 1) > 0 else pad(p[t + 1, d], 0)/2; y[t, d] = p[t, d]*q[t, d]
"""

DISTANT_STEPS = """
x[N, D], a[K] -> y[N, D]; ? K > 0; y[t, d] = x[t, d] - sum[k](a[k]*pad(y[t - 1 - k, d], 0))/(2*K)
e[N, N], s[N] -> y[N]; o[k:N] = argsort[n](s[n])[k]; \
a[k:N] = 0 if any[q:k](a[k - 1 - q] > 0 and e[o[k - 1 - q], o[k]] > 0) else s[o[k]]; y[n] = sum[k](a[k] if o[k] == n else 0)
a[N, N], x[N] -> y[N]; y[j] = x[j] - sum[k:j](a[j, k]*y[k])/N
a[N, N], x[B, N, D] -> y[B, N, D]; y[b, j, d] = x[b, j, d] - sum[k:N](a[j, k]*y[b, k, d] if k > j else 0)/N
a[N, N] -> l[N, N]; s[j:N, i:N] = a[i, j] - sum[k:j](t[k, i]*t[k, j]); \
t[j:N, i:N] = 0 if i < j else s[j, i]/(2 + s[j, j]**2); l[i, j] = t[j, i]
w[D], a[N, N], x[N, D] -> y[N, D]; y[j, d] = x[j, d] - sum[k:N](a[j, k]*tanh(sum[e](w[e]*y[k, e])) if j - k >= 1 else 0)/N
w[N], x[N, D] -> y[N, D]; z[t:N, d:D] = tanh(x[t, d] + pad(y[t - 1, d], 0)); y[t, d] = sum[k:t + 1](w[t - k]*z[k, d])/N
x[N, D] -> y[N, D]; y[t, d] = x[t, d] + (max[k:t](y[k, d])/2 if t > 0 else 0)
x[N] -> y[N]; y[t] = x[t] + (max[k:N](y[k] if k < t else -inf)/2 if t > 0 else 1)
x[N], q int64[N] -> y[N]; y[t] = x[t] + sum[k:t](y[k] if q[k] == t else 0)/2
x[N, D], q int64[N] -> y[N, D]; y[t, d] = x[t, d] + sum[k:N](y[k, d]*x[k, 0] if k < t and q[t] == k else 0)/2
x[N, D] -> y[N, D]; y[t, d] = x[t, d] + (y[(t - 1)//2, d] if t > 0 else 0)/2
x[N], w[2] -> y[N]; y[t] = x[t] + sum[k](w[k]*pad(y[2*t + 1 + k], 0))/3
"""
"""Recurrences whose steps read others that are no fixed number of steps away, of which ONNX's Scan carries along all steps."""

ORDERS = """
x[N, D] -> y[N, D]; p[i:N, d] = argsort[k](x[k, d])[i]; y[i, d] = x[p[i, d], d]*x[i, d]
x[..., N] -> y[..., M]; M = (N + 1) // 2; p[..., i:M] = argsort[k](x[..., k], True)[i]; y[..., i] = x[..., p[..., i]]**2
x[N, D], w[D] -> y[N], i int64[N]; ? D > 0; t[n, d] = sin(x[n, d])*w[d]; p[n] = argsort[d](t[n, d])[D // 2]; \
y[n] = x[n, p[n]]*t[n, p[n]]; i[n] = p[n]*2
x[N], q int64[N] -> y[N]; p[i:N] = argsort[n](q[n], True)[N - 1 - i]; y[i] = x[p[i]]*x[0]
x[N, D] -> y[D, N]; p[d:D, i:N] = argsort[k:N](x[N - 1 - k, d])[i]; y[d, i] = x[N - 1 - p[d, i], d] + x[i, d]
"""

THEMES = {
    "contraction": CONTRACTIONS,
    "extreme": EXTREMES,
    "quotient": QUOTIENTS,
    "product": PRODUCTS,
    "constant": CONSTANTS,
    "recurrence": RECURRENCES + DISTANT_STEPS,
    "order": ORDERS,
    "named": NAMED,
}
