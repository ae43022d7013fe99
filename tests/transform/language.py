"""Small ops that use one construct of the language each, for tests of derivatives."""

from __future__ import annotations

from collections.abc import Iterable

from opc.ir.op import Op
from opc.testing.cases.calls import Case
from opc.testing.references.gradcheck import points
from tests.amounts import MANY

FEW_ELEMENTS = 40
"""How many elements inputs have together where derivatives are proved: rules know no sizes, and `opc test` takes larger ones."""


def of_each_kind(points: Iterable[Case]) -> list[Case]:
    """Return those calls that differ in more than sizes: in attributes, in what is absent, in ranks; with OPC_FUZZ all."""
    kept: dict[object, Case] = {}
    for number, case in enumerate(points):
        ranks = [(n, None if a is None else a.data.ndim) for n, a in case.inputs.items()]
        kept.setdefault(number if MANY else repr((sorted(case.attributes.items()), ranks)), case)
    return [*kept.values()]


def small_points(op: Op) -> list[Case]:
    """Return the calls to differentiate an op at that are small, at least two, and without OPC_FUZZ one of each kind beside."""

    def elements(case: Case) -> int:
        return sum(a.data.size for a in case.inputs.values() if a is not None)

    found = sorted(points(op), key=elements)
    few = of_each_kind(c for c in found if elements(c) <= FEW_ELEMENTS)
    return [*found[:2], *(c for c in few if not any(c is known for known in found[:2]))]


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
    "block_prod": (
        "inputs: {x: 'T[N, P, Q]', w: 'T[Q]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[n] = prod[p, q](x[n, p, q] * w[q] + 1)\n"
    ),
    "group_max": (
        "inputs: {x: 'T[*A, N]', w: 'T[N]'}\noutputs: {y: 'T[N]', z: 'T[]'}\nkernel: |\n"
        "  y[n] = max[*A](x[*A, n] * w[n])\n  z[()] = min[*A, n](x[*A, n] ** 2 - w[n])\n"
    ),
    "group_prod": (
        "inputs: {x: 'T[*A, N]', w: 'T[N]'}\noutputs: {y: 'T[N]', z: 'T[]'}\nkernel: |\n"
        "  y[n] = prod[*A](x[*A, n] * w[n])\n  z[()] = prod[*A, n](x[*A, n] + w[n])\n"
    ),
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
    "window_max": (
        "inputs: {x: 'T[N, H, W]'}\n"
        "attributes: {k: {type: 'int[2]', default: [2, 2], check: k > 0}, s: {type: 'int[2]', default: [1, 2], check: s > 0}}\n"
        "shape: {OH: '(H - k[0]) // s[0] + 1', OW: '(W - k[1]) // s[1] + 1'}\nrequire: ['H >= k[0]', 'W >= k[1]']\n"
        "outputs: {y: 'T[N, OH, OW]'}\nkernel: |\n"
        "  y[n, i, j] = max[p:k[0], q:k[1]](pad(x[n, i*s[0] + p, j*s[1] + q], -inf) ** 2)\n"
    ),
    "grouped": (
        "inputs: {x: 'T[C, L]', w: 'T[O, I, K]'}\nattributes: {g: {type: int, default: 2, check: g > 0}}\n"
        "shape: {M: L - K + 1}\nrequire: [O % g == 0, C == I*g, O > 0, L >= K]\noutputs: {y: 'T[O, M]'}\nkernel: |\n"
        "  y[o, i] = sum[c, p](x[o // (O // g) * I + c, i + p] * w[o, c, p])\n"
    ),
    "shuffled": (
        "inputs: {x: 'T[C, N]'}\nattributes: {r: {type: int, default: 2, check: r > 0}}\nshape: {O: C // r, M: N*r}\n"
        "require: [C % r == 0]\noutputs: {y: 'T[O, M]'}\nkernel: |\n  y[c, i] = x[c*r + i % r, i // r] ** 2\n"
    ),
    "nearest": (
        "inputs: {x: 'T[N]'}\nattributes: {m: {type: int, default: 5, check: m > 0}}\nrequire: [N > 0]\nshape: {M: m}\n"
        "outputs: {y: 'T[M]'}\nkernel: |\n  y[i] = x[i*N // M] ** 2\n"
    ),
    "stretched": (
        "inputs: {x: 'T[N]'}\nattributes: {m: {type: int, default: 5, check: m > 1}}\nrequire: [N > 0]\nshape: {M: m}\n"
        "outputs: {y: 'T[M]'}\nkernel: |\n  y[i] = sum[p:2](pad(x[i*(N - 1) // (M - 1) + p], 0) ** 2 * (p + 1))\n"
    ),
    "reflected": (
        "inputs: {x: 'T[N]'}\nattributes: {p: {type: int, default: 2, check: p >= 0}}\nrequire: [N > p]\n"
        "outputs: {y: 'T[N + 2*p]'}\nkernel: |\n  y[i] = x[N - 1 - abs(N - 1 - abs(i - p))] ** 2\n"
    ),
    "transposed_by_flag": (
        "inputs: {x: 'T[P, Q]', z: 'T[Q]'}\nattributes: {t: {type: bool, default: true}}\n"
        "shape: {M: Q if t else P, K: P if t else Q}\noutputs: {y: 'T[M]'}\nkernel: |\n"
        "  y[i] = sum[k:K]((x[k, i] if t else x[i, k]) ** 2) * (z[i] if t else 1)\n"
    ),
    "summed_before": (
        "inputs: {x: 'T[N]'}\nattributes: {reverse: {type: bool, default: true}, own: {type: bool, default: false}}\n"
        "outputs: {y: 'T[N]'}\nkernel: |\n"
        "  y[i] = (sum[k:N - i - (0 if own else 1)](x[i + k + (0 if own else 1)] ** 2) if reverse\n"
        "          else sum[k:i + (1 if own else 0)](x[k] ** 2))\n"
    ),
    "clamped_lookup": (
        "out_of_range: clamp\ninputs: {table: 'T[V, D]', ids: 'int64[N]'}\nrequire: [V > 0]\noutputs: {y: 'T[N, D]'}\n"
        "kernel: |\n  y[n, d] = table[ids[n], d] ** 2\n"
    ),
    "lenient_lookup": (
        "out_of_range: zero\ninputs: {table: 'T[V, D]', ids: 'int64[N]'}\noutputs: {y: 'T[N, D]'}\n"
        "kernel: |\n  y[n, d] = table[ids[n], d] ** 2\n"
    ),
    "scattered": (
        "inputs: {x: 'T[V, D]', ids: 'int64[N]', src: 'T[N, D]'}\noutputs: {y: 'T[V, D]'}\nkernel: |\n"
        "  y[v, d] = x[v, d] * sum[n](src[n, d] ** 2 if ids[n] == v else 0)\n"
    ),
    "picked": (
        "inputs: {x: 'T[N, D]'}\nrequire: [D > 0]\noutputs: {y: 'T[N]', k: 'int64[N]', some: 'bool[N]'}\nkernel: |\n"
        "  k[n] = argmax[d](x[n, d])\n  some[n] = any[d](x[n, d] > 1) and not all[d](x[n, d] > 0)\n"
        "  y[n] = x[n, k[n]] * (x[n, argmin[d](x[n, d])] if some[n] else 2)\n"
    ),
    "warped": (
        "inputs: {x: 'T[H]', at: 'T[M]'}\noutputs: {y: 'T[M]'}\nkernel: |\n  lo[m] = cast(int64, floor(at[m]))\n"
        "  f[m] = at[m] - floor(at[m])\n  y[m] = pad(x[lo[m]], 0) * (1 - f[m]) + pad(x[lo[m] + 1], 0) * f[m]\n"
    ),
    "triangle": (
        "inputs: {x: 'T[N, N]', z: 'T[N]'}\noutputs: {y: 'T[]'}\nkernel: |\n"
        "  y[()] = sum[i:N](z[i] * sum[j:i + 1](x[i, j] * x[j, i]))\n"
    ),
    # In the gradient, what a condition of the op asks is asked where a further condition tells that its reads are inside.
    "chosen_cyclic": (
        "inputs: {x: 'T[M]', v: 'T[K]'}\nrequire: [K > 0]\noutputs: {y: 'T[M]'}\nkernel: |\n"
        "  y[i] = v[i % K] ** 2 if sin(x[i]) * cos(sin(x[i])) >= 0.1 else x[i]\n"
    ),
    "max_of_rows_before": (
        "inputs: {z: 'T[N, M]'}\noutputs: {y: 'T[M, N]'}\nkernel: |\n"
        "  y[i, j] = sin(max[k:j + 1](pad(z[i + 1, 2*k + j - 1], 1)))\n"
    ),
    "chosen_diagonal": (
        "inputs: {x: 'T[M, K]', v: 'T[N, K]'}\noutputs: {y: 'T[M, K]'}\nkernel: |\n"
        "  y[i, j] = pad(v[i - 1, i % K], 1) * x[i, j] if sum[k:K](sin(x[i, k])) * cos(sin(x[i, j])) >= 0.1 else 0\n"
    ),
    "ranged": (
        "inputs: {x: 'T[C]'}\nattributes: {g: {type: int, default: 2, check: g > 0}}\nrequire: [C % g == 0, C > 0]\n"
        "outputs: {y: 'T[C]'}\nkernel: |\n  m[i:g] = sum[k:C // g](x[i*(C // g) + k])\n  y[c] = x[c] * m[c // (C // g)]\n"
    ),
    # Sizes with several divisors, residues, and a quotient that a condition bounds.
    "quantized": (
        "inputs: {x: 'T[N, K]', w: 'T[N, P]', s: 'T[N, G]'}\nattributes: {group: {type: int, default: 4, check: group >= 1}}\n"
        "shape: {P: K // 2, G: K // group}\nrequire: [K % 2 == 0, K % group == 0]\noutputs: {y: 'T[N]'}\nkernel: |\n"
        "  y[n] = sum[k](x[n, k]*w[n, k // 2]*s[n, k // group])\n"
    ),
    "neighbours_exchanged": (
        "inputs: {x: 'T[D]'}\nrequire: [D % 2 == 0]\noutputs: {y: 'T[D]'}\nkernel: |\n  y[d] = x[d] * x[d + 1 - 2*(d % 2)]\n"
    ),
    "pairs_rotated": (
        "inputs: {x: 'T[D]', c: 'T[R]'}\noutputs: {y: 'T[D]'}\nkernel: |\n  y[d] = x[d] * c[d // 2] ** 2 if d < 2*R else x[d]\n"
    ),
    "head": (
        "inputs: {x: 'T[N]', z: 'T[M]'}\nrequire: [M <= N]\noutputs: {y: 'T[M]'}\nkernel: |\n  y[i] = x[i] * z[i] ** 2\n"
    ),
    "padded_by_data": (
        "inputs: {x: 'T[N]', z: 'T[N]', ids: 'int64[N]'}\noutputs: {y: 'T[N]', u: 'T[N]'}\nkernel: |\n"
        "  y[i] = pad(x[i + 1], z[i] ** 2) * z[i]\n  u[i] = sin(pad(x[ids[i] - 1], pad(z[i - 2], 3*x[i])))\n"
    ),
}  # fmt: skip


def spec_text(name: str, body: str | None = None) -> str:
    """Return the whole spec of one of these ops, or of an op with the given body."""
    text = OPS[name] if body is None else body
    return HEAD.format(name=name) + ("" if "types:" in text else TYPES) + text
