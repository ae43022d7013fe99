"""`opc test --sanitize`: clean kernels pass, and what a sanitizer sees fails the call it came in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from opc import config
from opc.backends.kernel.backend import KernelBackend
from opc.build import toolchain
from opc.ir.op import Family
from opc.ir.verify import verify
from opc.pipeline import compile_text, load_family
from opc.testing import sanitize
from opc.testing.call_file import KernelCall, call_file
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Case
from opc.testing.results import Result, Status
from opc.testing.sanitize import calls_of, check_family, narrowed, run_sanitized, verdicts
from tests.narrow import only

SPECS = Path(__file__).parents[2] / "specs"

NATIVE = """
op: beyond
domain: test
version: 1
doc: A copy whose native code does something that C++ does not allow.
types: {T: [float32]}
inputs: {x: 'T[N]'}
outputs: {y: 'T[N]'}
gradient: none
kernel: |
  y[i] = x[i]
native:
  cpp:
    include: [thread]
    code: |-
      CODE
"""

ASKED = """
op: asked
domain: test
version: 1
doc: Half of a number, and of an integer what is left when it is cut.
types: {T: [floating, integer]}
inputs: {x: 'T[N]', w: 'T[N]'}
outputs: {y: 'T[N]'}
kernel: |
  t[i] = x[i] / 2 if T in floating else x[i] // 2
  y[i] = t[i] * w[i]
"""

BEYOND = "for (int64_t i = 0; i <= N; i++) y(i < N ? i : 0) = x(i);"


@pytest.mark.rotating(seconds=8)
def test_clean_kernels() -> None:
    report = run_sanitized([SPECS / "relu.yaml"], ("address", "thread", "undefined"), 2)
    assert report.ok, [r.message for r in report.results if r.status is Status.FAILED]
    assert list(report.backends) == ["address+undefined", "thread"]
    for name in report.backends:
        assert {r.kind for r in report.results if r.backend == name} == {"forward", "derived", "refused"}


@pytest.mark.rotating
def test_threads_are_looked_at_where_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize, "calls_of", lambda family: islice(calls_of(family), 3))  # any will do
    specs = [SPECS / f"{name}.yaml" for name in ("relu", "clamp")]
    report = run_sanitized(specs, ("thread",), 2, threaded=specs[:1])
    assert report.ok
    assert {(r.op, r.backend) for r in report.results} == {("relu", "thread")}


def test_pointers_are_looked_at_where_all_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [SPECS / f"{name}.yaml" for name in ("relu", "clamp", "add")]
    asked: list[tuple[str, bool]] = []

    def check(family: Family, *_: object, pointers: bool, **__: object) -> Iterator[Result]:
        asked.append((family.name, pointers))
        return iter(())

    monkeypatch.setattr(sanitize, "check_family", check)
    run_sanitized(specs, ("address",), 1)
    assert asked == [("relu", True), ("clamp", True), ("add", True)]
    asked.clear()
    run_sanitized(specs, ("address",), 1, memory=specs[:2], threaded=[], whole=specs[1:2])
    assert asked[:2] == [("relu", False), ("clamp", True)]
    flags = [sanitize.sanitizer_flags(("address", "undefined"), pointers)[-1] for pointers in (True, False)]
    assert flags == ["-fno-sanitize=vptr", "-fno-sanitize=vptr,null,alignment,pointer-overflow"]
    assert sanitize.sanitizer_flags(("thread",), True) == sanitize.sanitizer_flags(("thread",), False)


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("code", "sanitizers", "said"),
    [
        (BEYOND, ("address",), "heap-buffer-overflow"),
        (
            "static volatile int count; std::thread other([] { count = 1; }); count = 2; other.join(); y(0) = x(0);",
            ("thread",),
            "data race",
        ),
        ("volatile int shift = 40; y(0) = x(0) + (1 << shift);", ("undefined",), "runtime error: shift exponent 40"),
    ],
    ids=["address", "thread", "undefined"],
)
def test_what_is_reported(tmp_path: Path, code: str, sanitizers: tuple[str, ...], said: str) -> None:
    spec = tmp_path / "beyond.yaml"
    spec.write_text(NATIVE.replace("CODE", code))
    family = narrowed(load_family(spec))
    x = TensorArg(np.ones(3, np.float32))
    calls = [KernelCall(family.forward, Case("one", family.name, {"x": x}))]
    found = list(check_family(family, tmp_path, toolchain.find(config.load()).command, sanitizers, calls))
    assert [r.status for r in found] == [Status.FAILED]
    assert said in found[0].message


@pytest.mark.rotating
def test_the_report_has_what_is_reported(tmp_path: Path) -> None:
    spec = tmp_path / "beyond.yaml"
    spec.write_text(NATIVE.replace("CODE", BEYOND))
    report = run_sanitized([spec], ("address", "undefined"), 1)
    assert not report.mistakes
    failed = [r for r in report.results if r.status is Status.FAILED]
    assert failed
    assert any("heap-buffer-overflow" in r.message for r in failed), [r.message for r in failed]


SHARED = """
op: looked_up
domain: test
version: 1
doc: Elements by number; threads add to the same few elements of the gradient.
types: {T: [float32, int32]}
inputs: {t: 'T[V, D]', ids: 'int64[N]'}
outputs: {y: 'T[N, D]'}
kernel: |
  y[n, d] = t[ids[n], d]
gradient: {scatter: atomic}
"""


def test_threads_that_add_to_the_same_elements_do_not_race(tmp_path: Path) -> None:
    family = narrowed(only(compile_text(SHARED, "looked_up.yaml"), "backward"))
    assert family.backward is not None
    # So many terms that several threads share them.
    rows, columns = 200_000, 1
    inputs = {
        "t": TensorArg(np.zeros((5, columns), np.float32)),
        "ids": TensorArg(np.arange(rows) % 5),
        "d_y": TensorArg(np.ones((rows, columns), np.float32)),
    }
    given = {o.name: inputs[o.name] for o in family.backward.inputs}
    calls = [KernelCall(family.backward, Case(f"many {n}", family.backward.name, given)) for n in range(4)]
    compiler = toolchain.find(config.load()).command
    found = list(check_family(family, tmp_path, compiler, ("thread",), calls))
    assert len(found) == len(calls)
    assert [r.message for r in found if r.status is Status.FAILED] == []


def call(name: str, refused: str = "") -> KernelCall:
    op = load_family(SPECS / "relu.yaml").forward
    return KernelCall(op, Case(name, op.name, {"x": TensorArg(np.ones(3, np.float32))}, refused=refused))


def test_verdicts() -> None:
    calls = [call("a"), call("b", refused="bad"), call("c")]

    def found_in(output: str, errors: str, code: int) -> list[str]:
        return [v.message for v in verdicts(calls, output, errors, code)]

    found = list(verdicts(calls, "0 0\n1 1\n2 0\n", "\n@@ 0\n\n@@ 1\n\n@@ 2\n\n@@ end\n", 0))
    assert [(v.message, v.refused) for v in found] == [("", False), ("", True), ("", False)]
    found = found_in("0 1\n1 1\n2 0\n", "\n@@ 0\nno\n@@ 1\n\n@@ 2\n\n@@ end\n", 0)
    assert found == ["was refused, but must be accepted: no", "", ""]
    found = found_in("0 0\n1 0\n2 0\n", "\n@@ 0\nx.cpp:1: runtime error: y\n\n@@ 1\n\n@@ 2\n\n@@ end\n", 0)
    assert found == ["x.cpp:1: runtime error: y", "was accepted, but must be refused: bad", ""]
    found = found_in("0 0\n", "\n@@ 0\n\n@@ 1\nERROR: SEGV\n", 1)
    assert found == ["", "the process ended with 1 in this call: ERROR: SEGV", "not reached: the process ended before"]
    found = found_in("0 0\n1 1\n2 0\n", "\n@@ 0\n\n@@ 1\n\n@@ 2\n\n@@ end\nleak\n", 23)
    assert found == ["", "", "at the end of the process, which returned 23: leak"]


def test_operands_are_written_as_they_lie_in_memory() -> None:
    family = load_family(SPECS / "relu.yaml")
    x = np.arange(6, dtype=np.float32)
    arg = TensorArg(x, "negative")
    data = call_file(family, [KernelCall(family.forward, Case("n", "relu", {"x": arg}))])
    # One axis of 6 elements, stride -1, the first element 20 bytes into a block of 24 bytes that holds them backwards.
    numbers = np.array([1, 2, 32, 1, 6, -1, 20, 24], np.int64).tobytes()
    assert numbers + x[::-1].tobytes() in data


def test_two_element_types_are_kept() -> None:
    family = narrowed(load_family(SPECS / "relu.yaml"))
    assert [str(d) for d in family.forward.types[0].dtypes] == ["float16", "float32"]
    assert family.backward is not None
    assert family.backward.inputs[0].type == family.forward.types[0]


def test_element_types_are_kept_for_each_answer_of_a_body() -> None:
    """`T in floating` has a side for each kind of type: kernels of both are run, as of a spec with fewer types."""
    path = Path(__file__).parents[1] / "dtypes" / "specs" / "asked_types.yaml"
    family = narrowed(load_family(path))
    kept = {t.name: [str(d) for d in t.dtypes] for t in family.forward.types}
    assert kept == {"T": ["float16", "float64", "int8", "int64", "bool"], "U": ["float32", "uint8", "float8_e5m2"]}
    one = narrowed(load_family(path), 1)
    assert {t.name: [str(d) for d in t.dtypes] for t in one.forward.types}["T"] == ["float16", "int64", "bool"]
    few = narrowed(compile_text(ASKED, "asked"))
    assert [str(d) for d in few.forward.types[0].dtypes] == ["float16", "float32", "int8", "int64"]
    for found in (family, one, few):
        for op in found.ops:
            verify(op)
        assert KernelBackend().emit(found)
