"""Small ops that use one construct of the language each, for tests of derivatives."""

from __future__ import annotations

HEAD = "op: {name}\ndomain: test\nversion: 1\ndoc: A test.\n"
TYPES = "types: {T: [float32, float64]}\n"

OPS = {
    # A temporary of type acc(T) that a derived op replaces by values of type T.
    "accumulated_mean": (
        "types: {T: floating}\ninputs: {x: 'T[N, D]', 'w?': 'T[D]'}\noutputs: {y: 'T[N]', m: 'acc(T)[N]'}\nkernel: |\n"
        "  m[i] = mean[j](cast(acc(T), x[i, j]))\n  y[i] = m[i] * (sum[j](w[j]) if present(w) else 1)\n"
    ),
    "diagonal": "inputs: {x: 'T[N, N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[i] = x[i, i] * x[i, 0]\n",
    "constants": "inputs: {x: 'T[N, 3]'}\noutputs: {y: 'T[]'}\nkernel: |\n  y[()] = sum[i](x[i, 2] * x[i, 1])\n",
    "transposed": "inputs: {x: 'T[M, N]', z: 'T[N]'}\noutputs: {y: 'T[N, M]'}\nkernel: |\n  y[j, i] = x[i, j] * z[j]\n",
    "shifted": "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[i] = pad(x[i + 1], 0) - x[i] * pad(x[i - 1], 0)\n",
    "reversed": "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[i] = x[N - 1 - i] * x[i]\n",
    "row_max": "inputs: {x: 'T[..., D]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = max[j](x[..., j] ** 2)\n",
    "all_min": "inputs: {x: 'T[M, D]'}\noutputs: {y: 'T[]'}\nkernel: |\n  y[()] = min[i, j](x[i, j])\n",
    "row_prod": "inputs: {x: 'T[..., D]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = prod[j](x[..., j])\n",
    "affine": (
        "inputs: {x: 'T[..., K]', w: 'T[O, K]', 'b?': 'T[O]'}\noutputs: {y: 'T[..., O]'}\nkernel: |\n"
        "  y[..., o] = sum[k](x[..., k] * w[o, k]) + (b[o] if present(b) else 0)\n"
    ),
    "avg_pool": (
        "inputs: {x: 'T[N, L]'}\n"
        "attributes: {k: {type: int, default: 2, check: k > 0}, s: {type: int, default: 2, check: s > 0}}\n"
        "shape: {M: (L - k) // s + 1}\nrequire: [L >= k]\noutputs: {y: 'T[N, M]'}\nkernel: |\n"
        "  y[n, i] = sum[p:k](pad(x[n, i*s + p], 0)) / k\n"
    ),
    "max_pool": (
        "inputs: {x: 'T[N, L]'}\n"
        "attributes: {k: {type: int, default: 2, check: k > 0}, s: {type: int, default: 2, check: s > 0}}\n"
        "shape: {M: (L - k) // s + 1}\nrequire: [L >= k]\noutputs: {y: 'T[N, M]'}\nkernel: |\n"
        "  y[n, i] = max[p:k](pad(x[n, i*s + p], -inf))\n"
    ),
    "repeated": (
        "inputs: {x: 'T[N]'}\nattributes: {s: {type: int, default: 2, check: s > 0}}\nshape: {M: N*s}\n"
        "outputs: {y: 'T[M]'}\nkernel: |\n  y[i] = x[i // s] * x[i // s]\n"
    ),
    "tiled": (
        "inputs: {x: 'T[N]'}\nattributes: {s: {type: int, default: 2, check: s > 0}}\nshape: {M: N*s}\n"
        "outputs: {y: 'T[M]'}\nkernel: |\n  y[i] = x[i % N] ** 2\n"
    ),
    "lookup": (
        "inputs: {table: 'T[V, D]', ids: 'int64[...]'}\noutputs: {y: 'T[..., D]'}\nkernel: |\n"
        "  y[..., d] = table[ids[...], d] ** 2\n"
    ),
    "running_sum": (
        "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nkernel: |\n  y[..., i] = sum[p:i + 1](x[..., p] ** 2)\n"
    ),
    "lazy": "inputs: {x: 'T[...]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  t = log(x)\n  y = t * t if x > 0 else 0\n",
    "whole": (
        "inputs: {x: 'T[...]', c: 'T[]'}\noutputs: {y: 'T[...]', s: 'T[]'}\nkernel: |\n"
        "  s[()] = sum[...](x[...] * c[()])\n  y[...] = x[...] / s[()]\n"
    ),
    "broadcast": (
        "broadcast: true\ninputs: {x: 'T[...]', w: 'T[...]', 'b?': 'T[...]'}\noutputs: {y: 'T[...]'}\nkernel: |\n"
        "  y = x * w * w + (b if present(b) else 0)\n"
    ),
    "integers": (
        "inputs: {x: 'T[N]', k: 'int32[N]'}\noutputs: {y: 'T[N]', z: 'int32[N]'}\nkernel: |\n"
        "  y[i] = x[i] * cast(T, k[i])\n  z[i] = k[i] + 1\n"
    ),
    "nested": (
        "inputs: {x: 'T[M, N]'}\noutputs: {y: 'T[M, N]'}\nkernel: |\n"
        "  y[i, j] = x[i, j] * sum[k](x[i, k] / (1 + sum[q](x[q, k] ** 2)))\n"
    ),
    "deviation": (
        "inputs: {x: 'T[..., D]'}\noutputs: {y: 'T[...]'}\nkernel: |\n"
        "  y[...] = sqrt(mean[j]((x[..., j] - mean[k](x[..., k])) ** 2) + 1)\n"
    ),
    "two_types": (
        "types: {T: [float32, float64], U: [float16, float32]}\ninputs: {x: 'T[N]', z: 'U[N]'}\noutputs: {y: 'T[N]'}\n"
        "kernel: |\n  y[i] = x[i] * cast(T, z[i] * z[i])\n"
    ),
    "powers": "inputs: {x: 'T[...]', y: 'T[...]'}\noutputs: {z: 'T[...]'}\nkernel: |\n  z = abs(x) ** y + x ** 3\n",
    "rotated": (
        "inputs: {x: 'T[..., S, D]', c: 'T[S, D]', s: 'T[S, D]'}\noutputs: {y: 'T[..., S, D]'}\nrequire: [D % 2 == 0]\n"
        "kernel: |\n"
        "  y[..., t, d] = x[..., t, d] * c[t, d] + s[t, d] * (\n"
        "      -pad(x[..., t, d + D//2], 0) if d < D//2 else pad(x[..., t, d - D//2], 0))\n"
    ),
    "shift_free": (
        "inputs: {x: 'T[*A, N, *B]'}\nattributes: {axis: {type: axis, dim: N, default: -1}}\noutputs: {y: 'T[*A, N, *B]'}\n"
        "kernel: |\n  m[*A, *B] = max[n](x[*A, n, *B])\n  e[*A, n, *B] = exp(x[*A, n, *B] - m[*A, *B])\n"
        "  y[*A, n, *B] = e[*A, n, *B] / sum[k](e[*A, k, *B])\n"
    ),
}  # fmt: skip


def spec_text(name: str, body: str | None = None) -> str:
    """Return the whole spec of one of these ops, or of an op with the given body."""
    text = OPS[name] if body is None else body
    return HEAD.format(name=name) + ("" if "types:" in text else TYPES) + text
