"""Golden tests of the transformations of loops: the loops before and after each, printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opc.ir.dtypes import DType
from opc.ir.op import Op
from opc.loops.batch import BatchOperand, batch
from opc.loops.bind import bind
from opc.loops.conditions import propagate
from opc.loops.expand import expand
from opc.loops.hoist import hoist
from opc.loops.interleave import interleave
from opc.loops.nodes import Body, PassGroup
from opc.loops.packs import PackedRow, with_packs
from opc.loops.printer import format_body
from opc.loops.row_loops import NontemporalRows, with_row_functions
from opc.loops.schedule import overridden, overrides
from opc.loops.values import call
from opc.loops.version import version
from opc.lower.build.context import Nest
from opc.lower.build.row_kernel import row_kernel
from opc.lower.build.row_stage import RowLoops
from opc.lower.build.rows import row_nest
from opc.lower.loop_ir import NestStage, RowStage, Stage
from opc.lower.lower import lower
from opc.pipeline import compile_text

GOLDEN = Path(__file__).parent / "golden"
ABOUT = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\n"
HEAD = f"{ABOUT}types: {{T: [float32, float64]}}\n"

SHIFTED = "inputs: {x: 'T[N, W]', w: 'T[N]'}\noutputs: {y: 'T[N, W]'}\nkernel: 'y[n, i] = w[n] * pad(x[n, i - 1], 0)'\n"
OPTIONAL = """\
inputs:
  x: T[N, W]
  b?: T[N, W]
outputs: {y: 'T[N, W]'}
kernel: 'y[n, i] = x[n, i] + (sum[k:W](b[n, k] * pad(x[n, i + k], 0)) if present(b) else 0)'
"""
STRIDED = """\
inputs: {x: 'T[N, W]'}
attributes: {stride: {type: int, default: 1, check: stride > 0}}
outputs: {y: 'T[N, O]'}
shape: {O: (W - 1) // stride + 1}
kernel: 'y[n, o] = x[n, o*stride]'
"""
SUMMED = "inputs: {x: 'T[N, W]'}\noutputs: {y: 'T[N]'}\nkernel: 'y[n] = sum[i:W - 1](x[n, i] * x[n, i + 1])'\n"
HALVES = """\
types: {T: [float16, float32]}
inputs: {x: 'T[...]', y: 'T[...]'}
outputs: {z: 'T[...]'}
kernel: 'z[...] = x[...] + y[...]'
"""
SOFTMAX = """\
inputs: {x: 'T[..., D]'}
outputs: {y: 'T[..., D]'}
kernel: |
  e[..., i] = exp(x[..., i] - max[k](x[..., k]))
  y[..., i] = e[..., i] / sum[k](e[..., k])
"""


def stage_of(spec: str) -> tuple[Op, Stage]:
    (variant,) = lower(compile_text((ABOUT if "types:" in spec else HEAD) + spec, "f.yaml").forward)
    return variant.case.op, variant.program.stages[0]


def nest_of(spec: str) -> tuple[Nest, Body]:
    """Return the loops of the first statement of a spec as they are built."""
    op, stage = stage_of(spec)
    assert isinstance(stage, NestStage)
    nest = Nest(op, stage)
    return nest, row_nest(nest).body


def rows_of(spec: str) -> tuple[RowLoops, RowStage, Body]:
    """Return the plain loops of the row stage of a spec."""
    op, stage = stage_of(spec)
    assert isinstance(stage, RowStage)
    rows = RowLoops(op, stage)
    return rows, stage, (rows.loop(),)


def hoisted(nest: Nest, body: Body) -> Body:
    return hoist(body, nest.fresh, nest.positive)


def conditions_case() -> tuple[Body, Body]:
    _, body = nest_of(OPTIONAL)
    return body, propagate(body)


def hoist_case() -> tuple[Body, Body]:
    nest, body = nest_of(SHIFTED)
    return body, hoisted(nest, body)


def version_case() -> tuple[Body, Body]:
    nest, body = nest_of(STRIDED)
    body = hoisted(nest, body)
    return body, version(body, nest.fresh, True)


def expand_case() -> tuple[Body, Body]:
    nest, body = nest_of(SUMMED)
    body = hoisted(nest, body)
    return body, expand(body, nest.fresh)


def split_case() -> tuple[Body, Body]:
    with overridden(overrides(["-split"])):
        op, stage = stage_of(SHIFTED)
        assert isinstance(stage, NestStage)
        plain = row_nest(Nest(op, stage, overrides(["-split"]))).body
    return plain, nest_of(SHIFTED)[1]


def interleave_case() -> tuple[Body, Body]:
    rows, _, body = rows_of(SOFTMAX)
    return body, interleave(body[0], rows.fresh, True)


def row_functions_case() -> tuple[Body, Body]:
    rows, stage, body = rows_of(SOFTMAX)
    nontemporal = NontemporalRows({rows.pointer(o): (o.type, "") for o in stage.operands if o.written})
    return body, with_row_functions(body, rows.fresh, lambda e: False, nontemporal)


def convert_case() -> tuple[Body, Body]:
    def body_of(*changes: str) -> Body:
        with overridden(overrides(changes)):
            op, stage = stage_of(HALVES)
            assert isinstance(stage, RowStage)
            return row_kernel(op, stage).body

    return body_of("-convert"), body_of()


def batch_case() -> tuple[Body, Body]:
    rows, stage, body = rows_of(SOFTMAX)
    groups = [s for s in body[0].body if isinstance(s, PassGroup)]
    operands = [BatchOperand(rows.pointer(o), o.type, k, True, o.written) for k, o in enumerate(stage.operands)]
    lanes = call("count_lanes", types=(stage.operands[0].type,))
    return body, batch(groups, operands, [], rows.fresh, lanes, 3)


def bind_case() -> tuple[Body, Body]:
    _, _, body = rows_of(SOFTMAX)
    return body, (bind(body[0]),)


def packs_case() -> tuple[Body, Body]:
    rows, _, body = rows_of(SOFTMAX)
    before = (bind(body[0]),)
    pointers = {"x_row#0": PackedRow(0, False), "y_row#0": PackedRow(1, True)}
    return before, with_packs(before, pointers, {"e_kept#0": DType.FLOAT32}, rows.fresh).body


CASES: dict[str, Callable[[], tuple[Body, Body]]] = {
    "conditions": conditions_case,
    "split": split_case,
    "hoist": hoist_case,
    "version": version_case,
    "expand": expand_case,
    "interleave": interleave_case,
    "row_functions": row_functions_case,
    "convert": convert_case,
    "batch": batch_case,
    "bind": bind_case,
    "packs": packs_case,
}


@pytest.mark.parametrize("name", CASES)
def test_transformation(name: str) -> None:
    before, after = map(format_body, CASES[name]())
    assert before != after
    text = f"before {name}:\n{before}\nafter:\n{after}"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_every_transformation_has_a_golden_test() -> None:
    folder = Path(__file__).parents[2] / "opc" / "loops"
    nodes = {"kinds", "nodes", "statements", "value_nodes", "values"}
    others = {"__init__", "intrinsics", "names", "printer", "schedule", "verify", *nodes}
    own = {p.stem for p in folder.glob("*.py")} - others
    renamed = {"row_loops": "row_functions"}
    assert {renamed.get(n, n) for n in own} == set(CASES) - {"split", "convert"}
