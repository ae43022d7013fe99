"""That a recurrence has a step is known in its steps alone: beside them, a reduction of nothing is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelError, KernelLibrary, compile_kernel

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {{T: [float32]}}
inputs: {{z: 'T[M, N]'}}
attributes: {{width: {{type: int, default: 2, check: width > 0}}}}
outputs: {{y: 'T[M]', r: 'T[M, N]'}}
gradient: none
kernel: |
  y[m] = cast(T, {kind}[k:N](pad(z[m, maximum(k - 1, width - 2)], -0.5)))
  r[m, i] = 0.5 * pad(r[m, i - width], 0) + z[m, i]
"""


@pytest.mark.parametrize("kind", ["argmax", "max"])
def test_a_reduction_of_nothing_is_refused(kind: str, tmp_path: Path) -> None:
    family = compile_text(SPEC.format(kind=kind))
    library = KernelLibrary(family, compile_kernel(family, tmp_path))
    with pytest.raises(KernelError, match=f"{kind} over k of nothing"):
        library.call(family.forward, {"z": np.zeros((3, 0), np.float32)}, {"width": 1})
