"""Reductions over runs that data tells, and sums into them: the places a loop visits, whatever numbers the data are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import NestStage
from opc.lower.lower import lower
from opc.lower.nest_plans import ScatterPlan
from opc.lower.printer import format_variant
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float32], U: [int8, int32, int64]}
inputs: {x: 'T[N, D]', a: 'U[B]', z: 'U[B]', w: 'T[B, D]'}
outputs: {y: '%s'}
require: [N > 0]
kernel: |
  %s
"""
Array = np.ndarray[Any, Any]
B, D, N = 23, 3, 9

CONDITIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "a[b] <= n and n < z[b]": lambda a, z, b, n: a <= n and n < z,
    "a[b] < n and n <= z[b]": lambda a, z, b, n: a < n and n <= z,
    "n >= a[b] and z[b] > n": lambda a, z, b, n: n >= a and z > n,
    "n > a[b] and z[b] >= n": lambda a, z, b, n: n > a and z >= n,
    "not n < a[b] and not z[b] <= n": lambda a, z, b, n: n >= a and n < z,
    "not (n < a[b] or n >= z[b])": lambda a, z, b, n: n >= a and n < z,
    "n + 2 >= a[b] and n - 1 < z[b]": lambda a, z, b, n: n + 2 >= a and n - 1 < z,
    "n + b >= a[b] and n < z[b] + 1 and a[b] != 3": lambda a, z, b, n: n + b >= a and n < z + 1 and a != 3,
}
REDUCED: dict[str, tuple[str, float, Callable[[list[Any]], Any]]] = {
    "sum": ("x[n, d]", 0, sum),
    "prod": ("x[n, d]", 1, lambda v: np.prod(v, dtype=float)),
    "max": ("x[n, d]", -np.inf, lambda v: max(v, default=-np.inf)),
    "min": ("x[n, d]", np.inf, lambda v: min(v, default=np.inf)),
    "any": ("x[n, d] > 1", False, any),
    "all": ("x[n, d] > 0", True, all),
}


def bounds(dtype: str) -> tuple[Array, Array]:
    """Return where runs begin and end: in and out of the range, the wrong way round, and as far out as the type goes."""
    most = np.iinfo(dtype)
    rng = np.random.default_rng(7)
    a, z = rng.integers(-3, N + 4, B), rng.integers(-3, N + 4, B)
    a[:6], z[:6] = [most.min, most.min, most.max, 0, most.max, most.min], [most.max, most.min, most.max, N, most.min, N - 1]
    return a.astype(dtype), z.astype(dtype)


@pytest.fixture(scope="module")
def values() -> dict[str, Array]:
    rng = np.random.default_rng(3)
    return {"x": rng.integers(-2, 4, (N, D)).astype("float32"), "w": rng.integers(-2, 4, (B, D)).astype("float32")}


def run(text: str, given: dict[str, Array], folder: Any) -> Array:
    family = compile_text(text, "f.yaml")
    library = KernelLibrary(family, compile_kernel(family, folder))
    result: Array = library.call(family.forward, {o.name: given[o.name] for o in family.forward.inputs}, {})["y"]
    return result


def holds(condition: str, a: Array, z: Array) -> list[tuple[int, int]]:
    """Return the pairs of b and n at which a condition holds; what is added to data wraps in its type."""
    with np.errstate(over="ignore"):
        return [(b, n) for b in range(B) for n in range(N) if CONDITIONS[condition](a[b], z[b], b, n)]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_each_condition_and_reduction(values: dict[str, Array], dtype: str, tmp_path: Any) -> None:
    """All conditions are one op each, and every reduction stands under one of them, all in one op to be compiled once."""
    a, z = bounds(dtype)
    pairs = [(c, list(REDUCED)[k % len(REDUCED)]) for k, c in enumerate([*CONDITIONS, *CONDITIONS])]
    kinds = ["bool" if kind in ("any", "all") else "T" for _, kind in pairs]
    outputs = ", ".join(f"y{k}: '{kind}[B, D]'" for k, kind in enumerate(kinds))
    lines = []
    for k, (condition, kind) in enumerate(pairs):
        term, nothing, _ = REDUCED[kind]
        lines.append(f"y{k}[b, d] = {kind}[n]({term} if {condition} else {nothing})")
    text = HEAD.replace("{y: '%s'}", f"{{{outputs}}}").replace("  %s", "\n".join(f"  {line}" for line in lines))
    family = compile_text(text, "f.yaml")
    loops = "\n".join(format_variant(v, loops=True) for v in cpu_programs(family.forward))
    assert loops.count("clip_from") == loops.count("clip_to") == len(pairs)
    library = KernelLibrary(family, compile_kernel(family, tmp_path))
    given = {**values, "a": a, "z": z}
    got = library.call(family.forward, {o.name: given[o.name] for o in family.forward.inputs}, {})
    for k, (condition, kind) in enumerate(pairs):
        inside = holds(condition, a, z)
        for b in range(B):
            for d in range(D):
                terms = [float(values["x"][n, d]) for c, n in inside if c == b]
                if kind in ("any", "all"):
                    terms = [t > (1 if kind == "any" else 0) for t in terms]
                assert got[f"y{k}"][b, d] == REDUCED[kind][2](terms), (condition, kind, b, d)


@pytest.mark.rotating
@pytest.mark.parametrize("condition", CONDITIONS)
def test_sums_into_runs(values: dict[str, Array], condition: str, tmp_path: Any) -> None:
    a, z = bounds("int64")
    text = HEAD % ("T[N, D]", f"y[n, d] = sum[b](w[b, d] * x[n, d] if {condition} else 0)")
    want = np.zeros((N, D))
    for b, n in holds(condition, a, z):
        want[n] += values["w"][b].astype(float) * values["x"][n]
    got = run(text, {**values, "a": a, "z": z}, tmp_path)
    np.testing.assert_array_equal(got, want)


def scatters(body: str, target: str = "T[N, D]") -> list[bool]:
    """Return which stages on a CPU are sums into runs."""
    op = compile_text(HEAD % (target, body), "f.yaml").forward
    stages = [s for v in cpu_programs(op) for s in v.program.stages if isinstance(s, NestStage)]
    return [any(isinstance(p, ScatterPlan) and p.run is not None for p in s.plans) for s in stages]


def test_which_sums_are_scatters_into_runs() -> None:
    condition = "a[b] <= n and n < z[b]"
    assert scatters(f"y[n, d] = sum[b](w[b, d] if {condition} else 0)") == [True]
    assert scatters(f"y[n, d] = x[n, d] + sum[b](w[b, d] if {condition} and w[b, d] > 0 else 0)")[0]
    # One end alone leaves as many places as there are, half of them on average; and a maximum is looked for at each place.
    assert not any(scatters("y[n, d] = sum[b](w[b, d] if a[b] <= n else 0)"))
    assert not any(scatters(f"y[n, d] = max[b](w[b, d] if {condition} else -inf)"))
    # What is known of the place before it is looked up is no run of it.
    assert not any(scatters("y[b, d] = sum[n](x[n, d] if a[b] <= n and n < z[b] else 0)", "T[B, D]"))


def test_other_targets_sum_place_by_place() -> None:
    op = compile_text(HEAD % ("T[N, D]", "y[n, d] = sum[b](w[b, d] if a[b] <= n and n < z[b] else 0)"), "f.yaml").forward
    plans = [p for v in lower(op) for s in v.program.stages if isinstance(s, NestStage) for p in s.plans]
    assert plans
    assert not any(isinstance(p, ScatterPlan) for p in plans)


@pytest.mark.rotating
@pytest.mark.parametrize(
    "condition",
    [
        "n < cast(int64, x[0, 0])",  # a fraction that is cut is no number known to be one
        "b > 0 and pad(a[b - 1], 0) <= n",
        "b > 0 and a[b - 1] <= n",  # it is read where b > 0 alone
        "n * 2 < a[b]",
    ],
)
def test_what_stays_a_test_at_each_place_or_is_looked_up_safely(values: dict[str, Array], condition: str, tmp_path: Any) -> None:
    a, z = bounds("int64")
    text = HEAD % ("T[B, D]", f"y[b, d] = sum[n](x[n, d] if {condition} else 0)")
    x = values["x"]
    rules: dict[str, Callable[[int, int], bool]] = {
        "n < cast(int64, x[0, 0])": lambda b, n: n < int(x[0, 0]),
        "b > 0 and pad(a[b - 1], 0) <= n": lambda b, n: b > 0 and int(a[b - 1]) <= n,
        "b > 0 and a[b - 1] <= n": lambda b, n: b > 0 and int(a[b - 1]) <= n,
        "n * 2 < a[b]": lambda b, n: n * 2 < int(a[b]),
    }
    want = np.array([[sum(float(x[n, d]) for n in range(N) if rules[condition](b, n)) for d in range(D)] for b in range(B)])
    np.testing.assert_array_equal(run(text, {**values, "a": a, "z": z}, tmp_path), want)


@pytest.mark.parametrize("target", ["N", "B"])
def test_an_end_that_differs_from_lane_to_lane(values: dict[str, Array], target: str, tmp_path: Any) -> None:
    a, z = bounds("int64")
    index, other = ("n", "b") if target == "N" else ("b", "n")
    body = f"y[{index}, d] = sum[{other}](w[b, d] * x[n, d] if n + d >= a[b] and n < z[b] else 0)"
    want = np.zeros((len(values["x" if target == "N" else "w"]), D))
    for b, n, d in np.ndindex(B, N, D):
        if n + d >= a[b] and n < z[b]:
            want[n if target == "N" else b, d] += float(values["w"][b, d]) * float(values["x"][n, d])
    np.testing.assert_array_equal(run(HEAD % (f"T[{target}, D]", body), {**values, "a": a, "z": z}, tmp_path), want)
