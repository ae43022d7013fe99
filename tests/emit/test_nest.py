"""Kernels of bodies whose accesses are not bare indices, against the oracle, with their gradients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.pipeline import compile_text
from opc.testing.cases.table import accepted
from tests.emit.kernel_library import KernelError, KernelLibrary, compile_kernel, odd_parallel_for
from tests.emit.test_kernel import judge, wrong

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32, float64]}\n"
MOST_ELEMENTS = 1 << 20
"""Cases beyond this size are left to faster kernels: the oracle would need gigabytes for a window of theirs."""

BODIES = {
    "shift": "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nkernel: |\n  y[..., i] = pad(x[..., i + 1], 0) + x[..., i]\n",
    "cumsum": "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nkernel: |\n  y[..., i] = sum[j:i + 1](x[..., j])\n",
    "lower triangle": "inputs: {x: 'T[N, N]'}\noutputs: {y: 'T[N, N]'}\nkernel: |\n  y[i, j] = x[i, j] * i if j <= i else 0\n",
    "names of the generated code": """\
inputs: {x: 'T[...]'}
attributes: {call: {type: float, default: 2.0}, tile: {type: float, default: 3.0}, row: {type: float, default: 4.0}}
outputs: {y: 'T[...]'}
kernel: |
  y = x * call + tile / row
""",
    "names of a nest's code": """\
inputs: {x: 'T[N]'}
attributes: {call: {type: float, default: 2.0}, at: {type: float, default: 3.0}, point: {type: float, default: 4.0}}
outputs: {y: 'T[N]'}
kernel: |
  y[i] = x[N - 1 - i] * call + at / point
""",
    "argmax": """\
gradient: none
inputs: {x: 'T[*A, N, *B]'}
attributes: {axis: {type: axis, dim: N, default: -1}}
outputs: {y: 'int64[*A, *B]'}
kernel: |
  y[*A, *B] = argmax[n](x[*A, n, *B])
""",
    # Its tangents read one another, and each may be wanted alone; the maximum runs across the rows of the other outputs.
    "outputs of each other": """\
inputs: {x: 'T[N, D]'}
outputs: {y: 'T[N, D]', m: 'T[N]', v: 'T[D]'}
kernel: |
  m[i] = mean[j](x[i, j])
  y[i, j] = x[i, j] - m[i]
  v[j] = max[i](x[i, j])
""",
    "window": """\
gradient: none
inputs: {x: 'T[N, C, H, W]'}
attributes:
  k: {type: 'int[2]', default: [2, 3], check: k >= 1}
  s: {type: 'int[2]', default: [2, 1], check: s >= 1}
  p: {type: 'int[2]', default: [1, 0], check: p >= 0}
outputs: {y: 'T[N, C, OH, OW]'}
shape: {OH: '(H + 2*p[0] - k[0]) // s[0] + 1', OW: '(W + 2*p[1] - k[1]) // s[1] + 1'}
kernel: |
  y[n, c, i, j] = max[a:k[0], b:k[1]](pad(x[n, c, i*s[0] + a - p[0], j*s[1] + b - p[1]], -inf))
""",
}

GATHER = """\
gradient: none
inputs: {t: 'T[V, D]', ids: 'int64[...]'}
outputs: {y: 'T[..., D]'}
kernel: |
  y[..., d] = t[ids[...], d]
"""


@pytest.mark.rotating
@pytest.mark.parametrize("body", list(BODIES))
def test_cases(body: str, tmp_path: Path) -> None:
    family = compile_text(HEAD + BODIES[body], "f.yaml")
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), odd_parallel_for)
    for op in family.ops:
        parent = family.backward if op in (family.backward_backward, family.backward_jvp) else None
        cases = [
            c for c in accepted(op, parent, random=8) if all(a is None or a.data.size < MOST_ELEMENTS for a in c.inputs.values())
        ]
        assert cases
        assert wrong(kernel, judge(op, cases)) == []


def test_an_index_outside_is_an_error(tmp_path: Path) -> None:
    family = compile_text(HEAD + GATHER, "f.yaml")
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path))
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    got = kernel.call(family.forward, {"t": table, "ids": np.array([2, 0])}, {})
    np.testing.assert_array_equal(got["y"], table[[2, 0]])
    for index in (3, -1):
        with pytest.raises(KernelError, match=f"an index of t is {index}, outside axis 0 of size 3") as error:
            kernel.call(family.forward, {"t": table, "ids": np.array([0, index])}, {})
        assert error.value.code == 2
