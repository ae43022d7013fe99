"""Attributes at the ends of 64 bits, beside indices: what a loop runs over has no more than there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.classes import HEAD
from tests.fuzz.kernels import compile_together

LEAST, GREATEST = -(2**63), 2**63 - 1
ENDS = (LEAST, LEAST + 1, -3, 0, 2, GREATEST - 1, GREATEST)
SIZE = 5

CONDITIONS = (
    *("i <= n", "i < n", "i > n", "i >= n", "n == i", "i - 3 < n", "i + 3 > n", "2*i < n", "N - 1 - i >= n", "i + N < n"),
    *("i // 2 < n", "i < n and i > m", "i < n or i >= m", "n < m", "i > n // 2", "i < 9223372036854775807"),
)
READS = (
    "i + n // 2",
    "i - n // 2",
    "n // 2 - i",
    "n // 4 - 2*i",
    "i*(n // 8)",
    "n // 8 * i + 1",
    "i*(n // 8) + m // 8",
    "N - 1 - i + n // 2",
)


@pytest.mark.rotating
def test_beside_indices(tmp_path: Path) -> None:
    """In a choice of each element, in a sum, in a maximum; and as reads that may fall outside, in a row and in a window."""
    head = "inputs: {x: 'T[N]'}\nattributes: {n: int, m: int}\nrequire: [N > 0]\n"
    forms = {
        "chosen": ("T[N]", "{0}[i] = x[i] if {1} else 0", CONDITIONS),
        "summed": ("T[]", "{0} = sum[i](x[i] if {1} else 0)", CONDITIONS),
        "kept": ("T[N]", "{0}[j] = x[j] + max[i](x[i] if {1} else 0)", CONDITIONS),
        "read": ("T[N]", "{0}[i] = pad(x[{1}], 0)", READS),
        "windows": ("T[N]", "{0}[j] = sum[i:3](pad(x[{1} + j], 0))", READS),
    }
    families = []
    for name, (shape, form, texts) in forms.items():
        outputs = ", ".join(f"y{k}: '{shape}'" for k in range(len(texts)))
        body = "\n  ".join(form.format(f"y{k}", text) for k, text in enumerate(texts))
        text = f"{HEAD.format(name=name)}{head}outputs: {{{outputs}}}\nkernel: |\n  {body}\n"
        families.append(compile_text(text, name))
    library = compile_together(families, tmp_path, "-O0")
    x = np.array([1.0, -2.0, 4.0, -8.0, 16.0])
    wrong = []
    for one, (name, (_, _, texts)) in zip(families, forms.items(), strict=True):
        kernel = KernelLibrary(one, library)
        assert one.backward is not None
        for n in ENDS:
            for m in ENDS:
                attributes = {"n": n, "m": m}
                outputs = [o.name for o in one.forward.outputs]
                got = kernel.call(one.forward, {"x": x}, attributes, outputs)
                for output, text in zip(outputs, texts, strict=True):
                    want = EXPECTED[name](x.tolist(), text, n, m)
                    if got[output].tolist() != want:
                        wrong.append(f"{name}: {text}, n = {n}, m = {m}: {got[output].tolist()}, not {want}")
                if name == "kept":
                    continue
                # What is linear in x is the sum of what its gradient is times x.
                for output, text in zip(outputs, texts, strict=True):
                    known = {"x": x} | {f"d_{o}": np.full_like(got[o], o == output) for o in outputs}
                    known = {o.name: known[o.name] for o in one.backward.inputs}
                    gradient = kernel.call(one.backward, known, attributes, ["d_x"])["d_x"]
                    if float(gradient @ x) != float(got[output].sum()):
                        wrong.append(f"{name}: {text}, n = {n}, m = {m}: the gradient is {gradient.tolist()}")
    assert "\n".join(wrong) == ""


def said(text: str, i: int, n: int, m: int) -> int:
    """Return what an expression or a condition says in numbers without end."""
    return int(eval(text, {"i": i, "n": n, "m": m, "N": SIZE}))


def inside(x: list[float], at: int) -> float:
    return x[at] if 0 <= at < len(x) else 0.0


EXPECTED = {
    "chosen": lambda x, c, n, m: [v if said(c, i, n, m) else 0.0 for i, v in enumerate(x)],
    "summed": lambda x, c, n, m: sum(v if said(c, i, n, m) else 0.0 for i, v in enumerate(x)),
    "kept": lambda x, c, n, m: [w + max(v if said(c, i, n, m) else 0.0 for i, v in enumerate(x)) for w in x],
    "read": lambda x, e, n, m: [inside(x, said(e, i, n, m)) for i in range(SIZE)],
    "windows": lambda x, e, n, m: [sum(inside(x, said(e, i, n, m) + j) for i in range(3)) for j in range(SIZE)],
}
