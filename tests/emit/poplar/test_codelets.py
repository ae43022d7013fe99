"""Codelets on the emulated Poplar: every statement of an op as one, on few tiles, against the oracle."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from opc.emit.poplar.codelets import codelet_classes
from opc.ir.dtypes import DType
from opc.ir.op import Family, Op
from opc.lower.lower import lower
from opc.lower.poplar.codelets import codelet_stage
from opc.lower.poplar.nodes import Case, Codelet, PoplarProgram, Tensor
from opc.pipeline import compile_text, load_family
from opc.testing.cases.calls import Case as Call
from opc.testing.cases.ends import FAR
from opc.testing.cases.table import accepted
from opc.testing.extent import Extent
from opc.testing.oracle.evaluation import DomainError, evaluate
from opc.testing.oracle.tolerance import compare
from tests.emit.poplar.body_library import BodyError, BodyLibrary, build, can_carry
from tests.rotation import asked

SPECS = Path(__file__).parents[3] / "specs"
GOLDEN = Path(__file__).parent / "golden"
HEAD = "op: {name}\ndomain: opc.test\nversion: 1\ndoc: A test.\n"
OPS = ("max_pool2d", "gather", "scatter_add", "cumsum", "causal_softmax", "prelu", "nll_loss")
"""Windows and searches, data-dependent reads, scatters, scans, extents of their own, broadcast sums, refusals and options."""

WIDE = HEAD + "types: {{T: [float16, float32]}}\ngradient: none\ninputs: {{x: 'T[N, M]'}}\noutputs: {{y: 'T[M]'}}\n"
NOT_ASKED = (
    HEAD.format(name="not_asked")
    + "types: {T: [float32]}\ngradient: none\ninputs: {x: 'T[N]', i: 'int32[M]', z: 'T[M, K]'}\noutputs: {y: 'T[M, K]'}\n"
    "kernel: |\n  a[m] = x[i[m]]\n  y[m, k] = exp(z[m, k] - a[m]) / sum[j](exp(z[m, j] - a[m]))\n"
)
LONG_SUM = WIDE.format(name="long_sum") + "kernel: 'y[m] = sum[n](x[n, m] * x[n, m])'\n"
STEPS = (
    WIDE.format(name="steps")
    + "attributes: {step: {type: int, default: 1}}\nkernel: 'y[m] = sum[n](pad(x[n, m + step * n], 0))'\n"
)
OWN = (NOT_ASKED, LONG_SUM, STEPS)


def all_codelets(family: Family) -> dict[str, PoplarProgram]:
    """Return programs in which each statement is a codelet, and all are computed."""
    return {op.name: _all_codelets(op) for op in (family.forward, family.backward, family.backward_backward) if op is not None}


def _all_codelets(op: Op) -> PoplarProgram:
    cases = []
    for v in lower(op):
        own = v.case.op
        tensors = tuple(Tensor(o.name, o.type, o in op.outputs) for o in (*op.outputs, *own.temporaries))
        stages = tuple(Codelet(codelet_stage(own, s, f"{op.name}_{s.target}{v.case.suffix}")) for s in own.body)
        cases.append(Case(v.case, tensors, stages))
    return PoplarProgram(op.name, tuple(cases))


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, BodyLibrary]:
    """The ops of this file by name, those whose turn it is, in one library, each statement of them a codelet."""
    families = [
        *map(of_spec, dict.fromkeys(["gather", *asked(request, "name")])),
        *(compile_text(text, "own.yaml") for text in OWN),
    ]
    return build(tmp_path_factory.mktemp("codelets"), {f.name: (f, all_codelets(f)) for f in families})


@cache
def of_spec(name: str) -> Family:
    return load_family(SPECS / f"{name}.yaml")


def calls(op: Op, parent: Op | None) -> Iterator[Call]:
    """Yield calls that Poplar carries, in which everything is wanted."""
    for case in accepted(op, parent, random=4, extent=Extent.SAMPLE):
        if case.wanted is None and case.kind != "large" and can_carry(op, case.arrays(), case.attributes):
            yield case


def wrong(built: BodyLibrary, op: Op, case: Call, tiles: int) -> str:
    """Return what is wrong with what comes of a call; nothing where that is as the oracle has it."""
    want = None
    with contextlib.suppress(DomainError):
        want = evaluate(op, case.arrays(), case.attributes)
    try:
        got = built.call(op, case.arrays(), case.attributes, tiles=tiles)
    except BodyError as why:
        if "tiles count in 32 bits" in str(why) and case.kind in FAR:
            return ""
        return "" if want is None else f"{case.name}: {why}"
    if want is None:
        return f"{case.name} must be refused"
    held = {n: a.astype(np.int64) if want[n].dtype is DType.INT64 else a for n, a in got.items()}
    found = [compare(n, held[n], want[n]).message for n in held]
    return "; ".join(f"{case.name}: {m}" for m in found if m)


@pytest.mark.rotating
@pytest.mark.parametrize("name", OPS)
def test_all_statements_as_codelets(name: str, built: dict[str, BodyLibrary]) -> None:
    library, family = built[name], built[name].family
    found, count = [], 0
    for op, parent in ((family.forward, None), (family.backward, family.forward), (family.backward_backward, family.backward)):
        for case in () if op is None else calls(op, parent):
            assert op is not None
            count += 1
            found += [m for m in (wrong(library, op, case, tiles) for tiles in (3, 16)) if m]
    assert count > 10
    assert not found, "\n".join(found[:5])


def test_an_index_outside_ends_the_run(built: dict[str, BodyLibrary]) -> None:
    library, family = built["gather"], built["gather"].family
    data, indices = np.zeros((2, 3, 2), np.float32), np.array([0, 7, 1], np.int32)
    with pytest.raises(BodyError, match=r"gather: an index of data is outside axis 1 of size 3[\s\S]*7"):
        library.call(family.forward, {"data": data, "indices": indices}, {"axis": 1})
    indices[1] = -3
    assert library.call(family.forward, {"data": data, "indices": indices}, {"axis": 1})["y"].shape == (2, 3, 2)


def test_an_index_that_no_output_asks_for_is_not_looked_at(built: dict[str, BodyLibrary]) -> None:
    """A value between stages has points where the outputs that it takes part in have none."""
    library, family = built["not_asked"], built["not_asked"].family
    given = {"x": np.zeros(0, np.float32), "i": np.zeros(2, np.int32), "z": np.zeros((2, 0), np.float32)}
    assert library.call(family.forward, given)["y"].shape == (2, 0)
    with pytest.raises(BodyError, match=r"not_asked: an index of x is outside axis 0 of size 0[\s\S]*0"):
        library.call(family.forward, {**given, "z": np.zeros((2, 1), np.float32)})


def test_a_long_sum_is_computed_in_parts(built: dict[str, BodyLibrary]) -> None:
    """The operand of a sum to few elements fits no tile, but its parts do; rounded once."""
    library, family = built["long_sum"], built["long_sum"].family
    x = np.random.default_rng(1).standard_normal((3000, 3)).astype(np.float32)
    with pytest.raises(BodyError, match=r"long_sum_y: a tile would need \d+ bytes and has 6000"):
        library.call(family.forward, {"x": x}, tiles=2, bytes_per_tile=6000)
    for dtype, rtol in ((np.float32, 1e-5), (np.float16, 1e-3)):
        y = library.call(family.forward, {"x": x.astype(dtype)}, tiles=32, bytes_per_tile=8000)["y"]
        np.testing.assert_allclose(y, (x.astype(dtype).astype(np.float64) ** 2).sum(0), rtol)


def test_what_counts_beyond_32_bits_is_refused(built: dict[str, BodyLibrary]) -> None:
    library, family = built["steps"], built["steps"].family
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(library.call(family.forward, {"x": x}, {"step": 2})["y"], [2, 2, 1, 1])
    with pytest.raises(BodyError, match="tiles count in 32 bits"):
        library.call(family.forward, {"x": x}, {"step": 1 << 40})


def text_of(op: Op, *targets: str, sdk: str = "3.4") -> str:
    """Return the codelets of some statements for a version of the SDK."""
    v = lower(op)[0]
    stages = [codelet_stage(v.case.op, s, f"{op.name}_{s.target}") for s in v.case.op.body if s.target in targets]
    return codelet_classes("specs", stages, sdk)[0]


@pytest.mark.parametrize(("name", "targets"), [("max_pool2d", ("y",)), ("gather", ("y",)), ("nll_loss", ("loss_partial",))])
def test_text(name: str, targets: tuple[str, ...]) -> None:
    family = load_family(SPECS / f"{name}.yaml")
    golden = GOLDEN / f"{name}_codelets.cpp"
    text = text_of(family.forward, *targets)
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def test_classes_are_compiled_for_the_dtypes_that_poplar_has() -> None:
    text = text_of(load_family(SPECS / "gather.yaml").forward, "y")
    assert re.findall(r"^template class (.*);$", text, re.MULTILINE) == [
        f"gather_y<{t}, int>" for t in ("half", "float", "signed char", "short", "int", "unsigned char", "bool")
    ]


@pytest.mark.parametrize(("sdk", "returned"), [("2.6", "bool"), ("3.0", "void"), ("3.4", "void")])
def test_compute_returns_what_the_sdk_has_it_return(sdk: str, returned: str) -> None:
    text = text_of(load_family(SPECS / "nll_loss.yaml").forward, "loss_partial", sdk=sdk)
    assert re.findall(r"(\w+) compute\(", text) == [returned]
    assert ("    return true;\n  }\n};" in text) == (returned == "bool")
    assert ("return true;" in text) == (returned == "bool")
