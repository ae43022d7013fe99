"""Programs for Poplar: what a stage becomes, what goes to codelets, and what the verifier finds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opc.ir.dtypes import DType
from opc.ir.expr import Read
from opc.ir.op import Op
from opc.ir.printer import format_expr
from opc.lower.poplar.lower import poplar_program
from opc.lower.poplar.nodes import Along, Codelet, Convolution, Let, PoplarProgram, Product, Reduce, Step, Store, TensorStage
from opc.lower.poplar.printer import format_poplar
from opc.lower.poplar.verify import verify_program
from opc.pipeline import compile_text, load_family
from opc.records import replace

SPECS = Path(__file__).parents[2] / "specs"
GOLDEN = Path(__file__).parent / "golden" / "poplar"
HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\n"
FLOATS = HEAD + "types: {T: [float16, float32]}\ngradient: none\n"


def program(text: str) -> tuple[Op, PoplarProgram]:
    op = compile_text(text, "f.yaml").forward
    return op, poplar_program(op)


def steps(text: str) -> list[Step]:
    _, found = program(text)
    (case,) = found.cases
    return [step for stage in case.stages if isinstance(stage, TensorStage) for step in stage.steps]


GOLDENS = ("softmax", "layer_norm", "add", "matmul", "group_norm", "conv2d", "huber_loss", "causal_softmax", "rope")


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name: str) -> None:
    family = load_family(SPECS / f"{name}.yaml")
    text = "\n".join(format_poplar(poplar_program(op)) for op in (family.forward, family.backward) if op is not None)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


ELEMENTS = FLOATS + "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]', z: 'T[N]'}\nkernel: |\n  t[n] = exp(x[n])\n  y[n] = t[n] + 1\n"


@pytest.mark.parametrize(("rest", "kind"), [("t[n] * t[n]", "Map"), ("x[n]", "Let")])
def test_a_value_that_several_steps_use_is_kept(rest: str, kind: str) -> None:
    assert [type(s).__name__ for s in steps(f"{ELEMENTS}  z[n] = {rest}\n")] == [kind, "Store", "Store"]


def test_a_sum_over_rows_alone_counts_each_row_once() -> None:
    """A value of the row that is summed over rows has one point a row, however long that is."""
    family = load_family(SPECS / "instance_norm.yaml")
    assert family.backward is not None
    (case,) = poplar_program(family.backward).cases
    sums = [(stage, s) for stage in case.stages if isinstance(stage, TensorStage) for s in stage.steps if isinstance(s, Store)]
    over = {s.target.tensor: [str(stage.loops[n]) for n in s.over] for stage, s in sums if s.reduction is not None}
    assert over == {"d_scale_sum": ["n:N"], "sum_d_y": ["n:N"]}


def test_each_term_of_a_contraction_is_a_product_along_its_own_loops() -> None:
    text = (
        "inputs: {a: 'T[M, K]', b: 'T[K, N]', c: 'T[M, P]', d: 'T[P, N]'}\noutputs: {y: 'T[M, N]'}\n"
        "kernel: 'y[m, n] = sum[k](a[m, k] * b[k, n]) + sum[p](c[m, p] * d[p, n])'\n"
    )
    found = [s for s in steps(FLOATS + text) if isinstance(s, Product)]
    assert len(found) == 2
    assert len(set(found[0].over) | set(found[1].over)) == 2


@pytest.mark.parametrize(
    ("kernel", "transposed", "padded"),
    [
        ("y[n, o, i] = sum[c:C, p:P](w[o, c, p] * pad(x[n, c, 2*i + p - 1], 0))", False, True),
        ("y[n, o, i] = sum[c:C, p:P](w[o, c, p] * x[n, c, i + p])", False, False),
    ],
)
def test_windows_are_convolutions(kernel: str, transposed: bool, padded: bool) -> None:
    text = "inputs: {x: 'T[N, C, L]', w: 'T[O, C, P]'}\noutputs: {y: 'T[N, O, M]'}\nshape: {M: L // 2}\n"
    rest = "" if padded else "require: [L - P >= L // 2]\n"
    (found,) = [s for s in steps(f"{FLOATS}{text}{rest}kernel: '{kernel}'\n") if isinstance(s, Convolution)]
    (window,) = found.windows
    assert (window.transposed, window.padded) == (transposed, padded)


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("y[n] = lgamma(x[n])", "{x: 'T[N]'}"),
        ("y[n] = sum[k:3](pad(x[n + k], 0))", "{x: 'T[N]'}"),
        ("y[n] = sum[k:n + 1](x[k])", "{x: 'T[N]'}"),
        ("y[n] = x[n - n % 2]", "{x: 'T[N]'}"),
        ("y[n] = x[i[n]]", "{x: 'T[N]', i: 'int32[N]'}"),
    ],
)
def test_the_rest_goes_to_codelets(body: str, inputs: str) -> None:
    _, found = program(f"{FLOATS}inputs: {inputs}\noutputs: {{y: 'T[N]'}}\nkernel: '{body}'\n")
    assert all(isinstance(s, Codelet) for case in found.cases for s in case.stages)


@pytest.mark.parametrize(
    ("read", "step", "offset", "divisor"),
    [
        ("pad(x[n + 1], 0)", "1", "1", "1"),
        ("pad(x[n - 1], 2)", "1", "-1", "1"),
        ("x[N - 1 - n]", "-1", "N - 1", "1"),
        ("x[n // 2]", "1", "0", "2"),
        ("pad(x[3*n + k], 0)", "3", "k", "1"),
    ],
)
def test_one_index_is_a_view(read: str, step: str, offset: str, divisor: str) -> None:
    text = "inputs: {x: 'T[N]'}\nattributes: {k: {type: int, default: 1}}\noutputs: {y: 'T[N]'}\n"
    _, found = program(f"{FLOATS}{text}kernel: 'y[n] = 2 * {read}'\n")
    (stage,) = found.cases[0].stages
    assert isinstance(stage, TensorStage)
    (axis,) = stage.views[0].axes
    assert isinstance(axis, Along)
    assert axis.taken is not None
    assert (str(axis.taken.step), str(axis.taken.offset), str(axis.taken.divisor)) == (step, offset, divisor)
    assert axis.taken.fill == (2 if ", 2)" in read else 0)


def test_a_range_of_an_index_is_a_condition() -> None:
    text = "inputs: {x: 'T[N, N]'}\noutputs: {y: 'T[N]'}\nkernel: 'y[i] = max[k:i + 1](x[i, k])'\n"
    (reduced, _) = steps(FLOATS + text)
    assert isinstance(reduced, Reduce)
    assert format_expr(reduced.value) == "x[()] if k < i + 1 else -inf"


def test_whole_numbers_of_more_than_32_bits_go_to_codelets_where_they_count() -> None:
    head = f"{HEAD}inputs: {{x: 'int32[N]', z: 'int32[N]'}}\nattributes: {{k: {{type: int, default: 1}}}}\ngradient: none\n"
    _, counts = program(f"{head}outputs: {{y: 'bool[N]'}}\nkernel: 'y[n] = x[n] + k > z[n]'\n")
    assert any(isinstance(s, Codelet) for s in counts.cases[0].stages)
    _, wraps = program(f"{head}outputs: {{y: 'int32[N]'}}\nkernel: 'y[n] = x[n] + k * z[n]'\n")
    assert not any(isinstance(s, Codelet) for s in wraps.cases[0].stages)


SOFTMAX = FLOATS + (
    "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nkernel: |\n"
    "  s[...] = sum[k](x[..., k])\n  y[..., n] = x[..., n] / s[...]\n"
)


def _changed(found: PoplarProgram, change: Callable[[list[Step]], list[Step]]) -> PoplarProgram:
    (case,) = found.cases
    (stage,) = case.stages
    assert isinstance(stage, TensorStage)
    changed = replace(stage, steps=tuple(change(list(stage.steps))))
    return replace(found, cases=(replace(case, stages=(changed,)),))


def _reading(name: str) -> Callable[[list[Step]], list[Step]]:
    def change(before: list[Step]) -> list[Step]:
        first = before[0]
        assert isinstance(first, Reduce)
        return [Let("fresh", DType.FLOAT32, Read(name, (), DType.FLOAT32), first.source), *before]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_reading("nothing"), "reads nothing before it is defined"),
        (lambda before: [*before, before[-1]], "writes y twice"),
        (lambda before: before[:-1], "never writes"),
        (lambda before: [before[0], *before], "twice"),
    ],
)
def test_what_the_verifier_finds(change: Callable[[list[Step]], list[Step]], message: str) -> None:
    op, found = program(SOFTMAX)
    verify_program(op, found)
    with pytest.raises(AssertionError, match=message):
        verify_program(op, _changed(found, change))
