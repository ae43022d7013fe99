"""Sizes that are called like variables of a kernel: each is what the call says, wherever it is read."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opc.analysis.elaborate.scope import WORDS
from opc.emit.kernel.files import kernel_files
from opc.names import RESERVED
from opc.pipeline import compile_text
from opc.spec.text import name_problem
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz import device
from tests.fuzz.kernels import compile_together

BODIES = {
    "points": "y[i, j] = x[i, j] * {a} + {b}",
    "sums": "y[i, j] = sum[q:{b}](x[i, q]) * {a} + {b} + x[i, j] * {a}",
    "rows": (
        "top[i] = max[q](x[i, q])\n  s[i] = sum[q](exp(x[i, q] - top[i]))\n  y[i, j] = exp(x[i, j] - top[i]) / s[i] * {b} + {a}"
    ),
    "windows": "y[i, j] = sum[q:3](pad(x[i, j + q - 1], 0) * {b}) + {a}",
    "ranges": "y[i, j] = sum[q:{b}](x[i, q] if q <= j else 0) + {a}",
}
"""Kernels whose loops read the sizes {a} and {b} in their values."""

TAKEN = {"x", "y", "i", "j", "q", "s", "T", "top", *WORDS}


def spec(form: str, number: int, a: str, b: str) -> str:
    return (
        f"op: {form}{number}\ndomain: opc.test\nversion: 1\ndoc: Sizes in values.\ntypes: {{T: [float32]}}\n"
        f"inputs: {{x: 'T[{a}, {b}]'}}\nrequire: ['{b} > 0']\noutputs: {{y: 'T[{a}, {b}]'}}\n"
        f"kernel: |\n  {BODIES[form].format(a=a, b=b)}\n"
    )


def variables(form: str) -> list[str]:
    """Return the names that the kernels of a form declare, and that a spec may give a size."""
    text = "".join(t for path, t in kernel_files(compile_text(spec(form, 0, "M", "N"), "probe.yaml")).items() if "_loops" in path)
    found = re.findall(r"\b(?:int64_t|auto|cursor|T|bool|int32_t) (?:\*?const )?[*&]?([a-z]\w*)\b(?! *\()", text)
    return sorted(n for n in set(found) - TAKEN - RESERVED if name_problem(n) is None)


def wrong(form: str, pairs: list[tuple[str, str]], folder: Path) -> list[str]:
    families = [compile_text(spec(form, n, a, b), "probe.yaml") for n, (a, b) in enumerate(pairs)]
    library = compile_together(families, folder, "-O0")
    x, found = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32), []
    for family, pair in zip(families, pairs, strict=True):
        want = evaluate(family.forward, {"x": x}, {})["y"]
        compared = compare("y", KernelLibrary(family, library).call(family.forward, {"x": x}, {})["y"], want)
        found += [] if compared.ok else [f"{pair}: {compared.message}"]
    return found


@pytest.mark.rotating(seconds=20)
@pytest.mark.parametrize("form", BODIES)
def test_sizes_called_like_variables(form: str, tmp_path: Path) -> None:
    names = variables(form)
    assert len(names) > (0 if form == "points" else 5)
    assert wrong(form, [*zip(names, [*names[1:], names[0]], strict=True)], tmp_path) == []


@pytest.mark.parametrize("form", ["windows", "ranges"])
def test_sizes_called_like_what_the_runtime_knows_by_name(form: str, tmp_path: Path) -> None:
    assert wrong(form, [("offset", "count"), ("begin", "end"), ("axes_1", "has_x"), ("size_a", "dim_b")], tmp_path) == []


@pytest.mark.rotating
@pytest.mark.parametrize(
    "pair", [("begin", "end"), ("offset", "count"), ("described", "whole"), ("axes_1", "has_x")], ids="-".join
)
def test_on_a_device(pair: tuple[str, str]) -> None:
    text = spec("ranges", 0, *pair)
    assert device.check(text, "sizes") == []
