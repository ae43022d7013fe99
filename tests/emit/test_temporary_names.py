"""Temporaries may be called as the variables of generated functions are: neither hides the other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opc.backends.cuda.backend import CudaBackend
from opc.backends.kernel.backend import KernelBackend
from opc.lower.fuse import cpu_programs
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel, split_everywhere

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32]}
inputs: {x: 'T[N, D]', w: 'T[D, D]', m: 'T[E, D, D]', e: 'int64[N]'}
outputs: {y: 'T[N, D]'}
kernel: |
  NAME0[n:N, d:D] = sum[k:n](x[k, d])
  NAME1[d:D, k:D] = w[d, k] + sum[j:D](w[j, k])
  NAME2[n:N, d] = sum[k](NAME0[n, k] * NAME1[k, d])
  NAME3[n:N, d:D] = sum[k](NAME2[n, k] * m[e[n], k, d])
  NAME4[n:N, d:D] = NAME3[n, d] + (NAME4[n - 1, d] if n > 0 else 0)
  NAME5[i:N, d:D] = sum[n:N](NAME4[n, d] if i == e[n] else 0)
  NAME6[n:N] = sum[d](NAME5[n, d] * NAME5[N - 1 - n, d])
  y[n, d] = NAME6[n] + NAME5[n, d] * exp(x[n, d] - max[k](x[n, k]))
"""
NAMES = (
    ("stage", "terms", "operands", "sum_", "term", "left", "right"),
    ("nest", "copies", "fault", "group", "groups", "loops", "code"),
    ("call", "context", "inputs", "outputs", "attributes", "arguments", "memory"),
    ("axis_n", "axes_0", "loop", "computed", "lent", "described", "types"),
    ("memory_group", "product", "index_T", "names", "pairs", "step", "plan"),
)


def text_of(names: tuple[str, ...]) -> str:
    return re.sub(r"NAME(\d)", lambda m: names[int(m[1])], SPEC)


@pytest.mark.parametrize("backend", [KernelBackend(), CudaBackend()], ids=["cpu", "cuda"])
def test_no_other_variable_begins_as_the_memory_of_a_temporary(backend: KernelBackend | CudaBackend) -> None:
    family = compile_text(text_of(NAMES[0]))
    found = {}
    for text in backend.emit(family).values():
        # A word, and a name behind it that is declared, or given a value.
        for kind, name in re.findall(r"([\w:]+) [*&]*(memory_\w+) ?[;(=\[]", text):
            found.setdefault(name, set()).add(kind)
    assert {f"memory_{n}" for n in NAMES[0]} <= found.keys()
    assert set().union(*found.values()) <= {"opc::temporary", "opc::one_step", "opc::device_temporary", "opc::device_step"}


# Its second gradient sums up one value before the steps and behind them.
AROUND_STEPS = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32]}
inputs: {w: 'T[N]', s: 'T[]', q: 'T[K, *S]'}
attributes: {alpha: {type: float, default: 0.5}}
outputs: {y: 'T[]', z: 'T[K, *S]'}
kernel: |
  y[()] = sum[k:N](s[()] * sum[j:3](pad(w[2*k + j - 1], 0) * w[k]))
  r[i:K, *S] = (r[i + 2, *S] if i + 2 < K else alpha * s[()]) if s[()] > 0 else sin(s[()])
  z[i, *S] = r[i, *S] + q[i, *S]
"""


def test_stages_around_steps_have_temporaries_of_their_own() -> None:
    for op in compile_text(AROUND_STEPS).ops:
        for variant in cpu_programs(op):
            names = [t.name for t in variant.program.temporaries]
            assert len(set(names)) == len(names), f"{op.name}: {names}"


@pytest.mark.rotating
@pytest.mark.parametrize("names", NAMES)
def test_kernels_of_any_names(names: tuple[str, ...], tmp_path: Path) -> None:
    family = compile_text(text_of(names))
    library = KernelLibrary(family, compile_kernel(family, tmp_path), split_everywhere)
    rng = np.random.default_rng(7)
    n, d = 90, 60
    given = {
        "x": rng.integers(-1, 2, (n, d)).astype(np.float32),
        "w": rng.integers(-1, 2, (d, d)).astype(np.float32),
        "m": (rng.integers(-1, 2, (3, d, d)) / 64).astype(np.float32),
        "e": rng.integers(0, 3, n),
    }
    x, w, m = (given[k].astype(np.float64) for k in "xwm")
    running = np.cumsum(x, 0) - x
    products = np.einsum("nk,nkd->nd", running @ (w + w.sum(0)), m[given["e"]])
    added = np.zeros((n, d))
    np.add.at(added, given["e"], np.cumsum(products, 0))
    exact = (added * added[::-1]).sum(1)[:, None] + added * np.exp(x - x.max(1, keepdims=True))
    found = library.call(family.forward, given, {})["y"]
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max())
