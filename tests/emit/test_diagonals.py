"""A dimension twice in one read is a diagonal: kernels, NumPy references, ONNX bodies and gradients of each form."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.analysis.shapes.inference import infer
from opc.backends.onnx.session import OnnxSession
from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.dtypes import DType
from opc.ir.op import Family, Op
from opc.pipeline import compile_text
from opc.testing.cases.calls import Case, Maker
from opc.testing.cases.fitting import volume
from opc.testing.cases.sizes import Sizes, dims_of, groups_of
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.tolerance import compare
from opc.testing.references.gradcheck import check_family, points
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary, odd_parallel_for
from tests.fuzz.kernels import Libraries
from tests.rotation import asked

# Inputs, outputs and kernel; every statement form with an index in several axes of what it reads.
FORMS = {
    "last two": ("x: 'T[..., N, N]'", "y: 'T[..., N]'", "y[..., n] = x[..., n, n]"),
    "first two": ("x: 'T[N, N, J]'", "y: 'T[N, J]'", "y[n, j] = x[n, n, j]"),
    "around another": ("x: 'T[N, C, N]'", "y: 'T[N, C]'", "y[n, c] = x[n, c, n]"),
    "around a group": ("x: 'T[N, *A, N]'", "y: 'T[*A, N]'", "y[*A, n] = x[n, *A, n]"),
    "three times": ("x: 'T[N, N, N]'", "y: 'T[N]'", "y[n] = x[n, n, n] * 2"),
    "two pairs": ("x: 'T[N, M, N, M]'", "y: 'T[M, N]'", "y[m, n] = x[n, m, n, m]"),
    "and all of it": ("x: 'T[N, N]'", "y: 'T[N, N]'", "y[i, j] = x[i, j] - x[i, i] * x[j, j]"),
    "trace": ("x: 'T[..., N, N]'", "y: 'T[...]'", "y[...] = sum[n](x[..., n, n])"),
    "maximum": ("x: 'T[N, N]'", "y: 'T[]'", "y = max[n](x[n, n])"),
    "mean": ("x: 'T[J, N, N]'", "y: 'T[J]'", "y[j] = mean[n](x[j, n, n] ** 2)"),
    "weighed": ("x: 'T[K, K]', w: 'T[K]'", "y: 'T[]'", "y = sum[k](x[k, k] * w[k])"),
    "row and diagonal": ("x: 'T[N, N]'", "y: 'T[N]'", "y[i] = sum[k](x[i, k] * x[k, k])"),
    "rows of a factor": ("x: 'T[N, N, K]', w: 'T[N, K, M]'", "y: 'T[N, M]'", "y[n, m] = sum[k](x[n, n, k] * w[n, k, m])"),
    "columns of a factor": ("x: 'T[N, K]', w: 'T[M, K, M]'", "y: 'T[N, M]'", "y[n, m] = sum[k](x[n, k] * w[m, k, m])"),
    "batch of both": ("x: 'T[B, N, B, K]', w: 'T[K, B, B, M]'", "y: 'T[N, B, M]'",
                      "y[n, b, m] = sum[k](x[b, n, b, k] * w[k, b, b, m])"),
    "beside a product": ("x: 'T[N, K]', w: 'T[K, N]', b: 'T[N, N]'", "y: 'T[N, N]'",
                         "y[i, j] = sum[k](x[i, k] * w[k, j]) + b[j, j]"),
    "softmax": ("x: 'T[..., N, N]'", "y: 'T[..., N]'",
                "e[..., n] = exp(x[..., n, n] - stop_gradient(max[k](x[..., k, k])))\n"
                "  y[..., n] = e[..., n] / sum[k](e[..., k])"),
    "of a temporary": ("x: 'T[N, K]'", "y: 'T[N]'", "t[i, j] = sum[k](x[i, k] * x[j, k])\n  y[i] = t[i, i]"),
    "shifted": ("x: 'T[N, N]'", "y: 'T[N]'", "y[n] = pad(x[n + 1, n], 0) + pad(x[n, n + 1], 1)"),
    "other diagonal": ("x: 'T[N, N]'", "y: 'T[N]'", "y[n] = x[n, N - 1 - n] * x[n, n]"),
    "window over it": ("x: 'T[C, N, N]'", "y: 'T[C, N]'", "y[c, n] = max[p:2](pad(x[c, n + p, n + p], -inf)) if N > 0 else 0"),
    "running": ("x: 'T[N, N]'", "y: 'T[N]'", "y[n] = sum[k:n + 1](x[k, k])"),
    "looked up": ("x: 'T[N, V, N]', ids: 'int64[N]'", "y: 'T[N]'", "y[n] = x[n, ids[n] % V, n] if V > 0 else 0"),
    "looked up twice": ("x: 'T[V, V]', ids: 'int64[N]'", "y: 'T[N]'", "y[n] = x[ids[n] % V, ids[n] % V] if V > 0 else 0"),
    "of a computed tensor": ("x: 'T[N, N]'", "y: 'T[]'", "t[i, j:N] = exp(x[i, N - 1 - j])\n  y = sum[n](t[n, n])"),
    "with broadcasting": ("x: 'T[..., N, N]', z: 'T[..., N]'", "y: 'T[..., N]'", "y[..., n] = x[..., n, n] * z[..., n]",
                          "broadcast: true"),
    "one or as many": ("x: 'T[S, N]', z: 'T[N]'", "y: 'T[N]'", "y[n] = x[n % S, n] * z[n]", "require: [S > 0, S == 1 or S == N]"),
    "in parts": ("x: 'T[C, C]'", "y: 'T[C]'", "m[g:groups] = sum[k:K](x[g*K + k, g*K + k])\n  y[c] = x[c, c] - m[c // K]",
                 "attributes: {groups: {type: int, check: groups > 0}}\nshape: {K: C // groups}\n"
                 "require: [C % groups == 0, C > 0]"),
}  # fmt: skip


SIZES = (4, 7, 2, 3)
"""Of the dimensions of a form, in order."""

SEVERAL = (37, 5, 18, 3)

POINTS = 1000
"""Of the largest loop of a call whose gradient is held against differences."""


def text_of(form: str, number: int) -> str:
    inputs, outputs, kernel, *more = FORMS[form]
    return "\n".join([
        f"op: diagonal_{number}", "domain: opc.test", "version: 1", "doc: A test.", "types: {T: [float32, float64]}",
        f"inputs: {{{inputs}}}", f"outputs: {{{outputs}}}", *more, f"kernel: |\n  {kernel}\n",
    ])  # fmt: skip


@cache
def family_of(form: str) -> Family:
    return compile_text(text_of(form, list(FORMS).index(form)), "diagonal.yaml")


def cases(op: Op, parent: Op | None) -> list[Case]:
    """Return calls of an op: of either type, contiguous and not, of few elements, more than a vector and one a dimension."""
    maker = Maker(op, parent)

    def sizes(dims: tuple[int, ...], group: tuple[int, ...]) -> Sizes:
        groups = {g: group if k == 0 else group[:1] for k, g in enumerate(groups_of(op))}
        return Sizes(dict(zip(dims_of(op), dims)), groups, {})

    made = (
        maker.make("few", sizes(SIZES, (2, 3)), {"T": DType.FLOAT32}),
        maker.make("reversed", sizes(SIZES, (3, 2)), {"T": DType.FLOAT64}, layout="negative"),
        maker.make("several", sizes(SEVERAL, (2,)), {"T": DType.FLOAT32}, layout="strided"),
        maker.make("repeated", sizes(SEVERAL, ()), {"T": DType.FLOAT64}, layout="broadcast"),
        maker.make("transposed", sizes(SEVERAL[::-1], (2, 2)), {"T": DType.FLOAT32}, layout="transposed"),
        maker.make("one", sizes((1, 1, 1, 1), (1,)), {"T": DType.FLOAT64}),
    )
    return [c for c in made if c is not None]


@cache
def calls(form: str) -> list[tuple[Op, Case, dict[str, Bounded]]]:
    """Return calls of all ops of a family with what they must give."""
    family = family_of(form)
    found = []
    for op in family.ops:
        parent = None if op is family.forward else family.forward
        if op in (family.backward_backward, family.backward_jvp):
            parent = family.backward
        found += [(op, c, evaluate(op, c.arrays(), c.attributes, wanted=c.wanted)) for c in cases(op, parent)]
    return found


def points_of(op: Op, case: Case) -> int:
    """Return the number of points of the largest loop of a call."""
    return volume(op, infer(op, {n: a.data.shape for n, a in case.inputs.items() if a}, case.attributes))


def wrong(case: Case, got: dict[str, Array], want: dict[str, Bounded]) -> list[str]:
    return [f"{case.name}: {c.message}" for n in want if not (c := compare(n, np.asarray(got[n]), want[n])).ok]


@pytest.mark.parametrize("form", FORMS)
def test_every_op_of_a_family_is_called(form: str) -> None:
    found = [op.name for op, _, _ in calls(form)]
    assert all(found.count(op.name) >= 5 for op in family_of(form).ops)


@pytest.fixture(scope="module")
def libraries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    return Libraries(asked(request, "form"), family_of, tmp_path_factory.mktemp("diagonals"))


@pytest.mark.rotating
@pytest.mark.parametrize("form", FORMS)
def test_kernels(form: str, libraries: Libraries) -> None:
    kernel = KernelLibrary(family_of(form), libraries.of(form), odd_parallel_for)
    for op, case, want in calls(form):
        assert wrong(case, kernel.call(op, case.arrays(), case.attributes, list(want)), want) == []


@pytest.mark.parametrize("form", FORMS)
def test_references(form: str) -> None:
    module: dict[str, Any] = {}
    exec(numpy_module(family_of(form)), module)
    for op, case, want in calls(form):
        wanted = {"wanted": list(want)} if any(o.optional for o in op.outputs) else {}
        arrays = case.arrays()
        found = module[function_name(op)](*(arrays[o.name] for o in op.inputs), **case.attributes, **wanted)
        assert wrong(case, dict(zip((o.name for o in op.outputs), found, strict=True)), want) == []


@pytest.mark.rotating
@pytest.mark.parametrize("form", FORMS)
def test_functions(form: str, tmp_path: Path) -> None:
    session: OnnxSession = load(family_of(form), tmp_path)
    for op, case, want in calls(form):
        got = session.function_call(op.name, case.arrays(), case.attributes, list(want))
        # ONNX leaves open what a sum starts with, so that the sign of a zero is not held.
        got = {n: np.where((a == 0) & (want[n].value == 0), want[n].value, a).astype(a.dtype) for n, a in got.items()}
        assert wrong(case, got, want) == []


@pytest.mark.rotating
@pytest.mark.parametrize("form", FORMS)
def test_gradients(form: str) -> None:
    family = family_of(form)
    results = check_family(family, [c for c in points(family.forward) if points_of(family.forward, c) < POINTS])
    assert results
    assert [f"{r.name}: {r.message}" for r in results if not r.ok and "no point was sharp enough" not in r.message] == []
