"""A call whose temporaries no memory holds is refused, also where their bytes are beyond 64 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelError, KernelLibrary
from tests.fuzz.isolated import isolated
from tests.fuzz.kernels import compile_together

HEAD = "op: {}\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {{T: [float32, float64]}}\ninputs: {{x: 'T[N]', w: 'T[N]'}}\n"
SIZED = "attributes: {k: {type: int, check: k > 0}, m: {type: int, default: 1, check: m > 0}}\noutputs: {y: 'T[N]'}\n"
BODIES = {
    "stepped": "u[i:k, n] = pad(u[i - 1, n], w[n]) * x[n]\n  y[n] = u[k - 1, n]",
    "several": "u[i:k, j:m, n] = pad(u[i - 1, j, n], w[n]) * x[n] + j\n  y[n] = u[k - 1, m - 1, n]",
    "sorted": "t[i:k] = sin(x[i % N])\n  p[i:k] = argsort[j](t[j])[i]\n  y[n] = w[n] * cast(T, p[k - 1])",
}
# Their elements, times 3 and 8, are beyond 64 bits, some by a power of two: what is left of them is 0, small or negative.
COUNTS = (2**58, 2**60, 2**61, 2**62, 2**63 - 1, (2**64 + 8) // 24)


@pytest.mark.parametrize("name", BODIES)
def test_what_no_memory_holds_is_refused(name: str, tmp_path: Path) -> None:
    one = compile_text(f"{HEAD.format(name)}{SIZED}require: [N > 0]\nkernel: |\n  {BODIES[name]}\n", name)
    library = compile_together([one], tmp_path, "-O0")
    assert one.backward is not None
    inputs = {n: np.arange(1.0, 4.0) for n in ("x", "w", "y", "d_y")}

    def run() -> list[str]:
        found = []
        for op, wanted in ((one.forward, ["y"]), (one.backward, ["d_w"])):
            assert op is not None
            given = {o.name: inputs[o.name] for o in op.inputs}
            for count in COUNTS:
                for many in (1, 2**33) if name == "several" else (1,):
                    try:
                        KernelLibrary(one, library).call(op, given, {"k": count, "m": many}, wanted)
                        found.append(f"{op.name}: k = {count}, m = {many} is taken")
                    except KernelError as error:
                        found += [] if "no memory for" in str(error) else [f"{op.name}: k = {count}: {error}"]
        return found

    assert isolated(run, 60) == []
