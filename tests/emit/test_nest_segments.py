"""Rows whose lanes are alike in runs, such as weights of a group with one scale: run by run where these are long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.lower.fuse import cpu_programs
from opc.lower.printer import format_variant
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32]}
inputs: {x: 'T[O, I]', s: 'T[O, G]', "z?": 'T[O, G]'}
attributes: {group: {type: int, default: 32, check: group > 0}}
outputs: {y: 'T[O, I]'}
require: [I <= group * G]
gradient: none
kernel: |
"""

SCALED = "  y[o, i] = (x[o, i] - (z[o, i // group] if present(z) else 8)) * s[o, i // group]\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(HEAD + SCALED)
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("runs")))


@pytest.mark.rotating
@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize(
    ("rows", "columns", "group"),
    [
        (3, 96, 32),
        (3, 90, 32),  # the last run is cut
        (2, 2500, 16),  # a row in several pieces, which begin within a run or not
        (1, 5000, 1250),  # runs longer than a piece
        (2, 1037, 17),
        (2, 60, 15),  # lanes that far apart
        (2, 7, 1),
        (4, 5, 100),
        (0, 5, 32),
        (2, 0, 32),
    ],
)
def test_a_scale_for_each_group(library: KernelLibrary, rows: int, columns: int, group: int, zeros: bool) -> None:
    rng = np.random.default_rng(columns)
    groups = -(-columns // group)
    x = rng.integers(0, 16, (rows, columns)).astype(np.float32)
    s, z = (rng.integers(-9, 9, (rows, groups)).astype(np.float32) for _ in range(2))
    where = np.arange(columns) // group
    expected = (x - (z[:, where] if zeros else 8)) * s[:, where]
    path = Path(library.library._name)
    for way in (None, odd_parallel_for, split_everywhere):
        called = KernelLibrary(library.family, path, way)
        found = called.call(called.family.forward, {"x": x, "s": s, "z": z if zeros else None}, {"group": group})
        np.testing.assert_array_equal(found["y"], expected)


@pytest.mark.parametrize(
    ("value", "runs"),
    [
        ("x[o, i] * s[o, i // group]", True),
        ("x[o, i] * s[o, i // 64]", True),
        ("x[o, i] * s[o, i // 2]", False),  # less than a vector
        ("x[o, i // group] * s[o, i % group]", True),  # goes through a row in each run
        ("pad(x[i // group, i % group], 0) * pad(s[o, i // 32], 0)", False),  # of two lengths
        ("x[o, i] * s[o, i // group] * (i % group)", False),  # changes in a run
        ("pad(x[i % group, o], 0) * s[o, i // group]", False),  # jumps in a run
        ("x[o, i] * pad(s[o, (i + 1) // group], 0)", False),  # begins before the row or within it
    ],
)
def test_which_rows_have_runs(value: str, runs: bool) -> None:
    op = compile_text(HEAD.replace("I <= group * G", "I <= group * G, I <= 2 * G, group <= G") + f"  y[o, i] = {value}\n").forward
    (variant,) = cpu_programs(op)
    text = format_variant(variant, loops=True)
    assert ("for run in " in text) == runs


REPEATED = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32]}
inputs: {a: 'T[M, N]', b: 'T[M, Q]'}
outputs: {y: 'T[M, S]'}
shape: {S: N * Q}
require: [Q > 0]
gradient: none
kernel: y[i, j] = a[i, j // Q] * b[i, j % Q]
"""


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(REPEATED)
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("repeated")))


@pytest.mark.rotating
@pytest.mark.parametrize(("count", "length"), [(3, 16), (5, 17), (2, 5000), (200, 31), (4, 3), (7, 1), (0, 20)])
def test_a_row_gone_through_in_each_run(repeated: KernelLibrary, count: int, length: int) -> None:
    rng = np.random.default_rng(length)
    a, b = (rng.integers(-9, 9, (2, n)).astype(np.float32) for n in (count, length))
    expected = (a[:, :, None] * b[:, None, :]).reshape(2, -1)
    path = Path(repeated.library._name)
    for way in (None, odd_parallel_for, split_everywhere):
        called = KernelLibrary(repeated.family, path, way)
        found = called.call(called.family.forward, {"a": a, "b": b}, {})
        np.testing.assert_array_equal(found["y"], expected)
