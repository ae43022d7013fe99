"""Presence of tangents and cotangents stands outside the products of derived ops: what is absent contributes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import opc
from opc.diagnostics import SpecError
from opc.ir.expr import Call, Expr, Present, Reduce, Select, conjuncts, walk
from opc.ir.op import Family
from opc.ir.printer import format_assign, format_expr
from opc.pipeline import compile_text, load_family
from opc.testing.oracle.evaluation import evaluate
from opc.transform.scalar import is_zero
from tests.amounts import examples
from tests.fuzz.check import drawn
from tests.transform.language import spec_text

SPECS = sorted((Path(opc.__file__).parent.parent / "specs").glob("*.yaml"))
GROWN = sorted((Path(__file__).parent / "growth").glob("*.yaml"))


def factors(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Call(fn="mul"):
            return e.args
        case Call(fn="div"):
            return e.args[:1]
        case Reduce(kind="prod"):
            return (e.body,)
        case _:
            return ()


def inside_products(family: Family) -> Iterator[str]:
    """Yield the products in derived ops of a factor that is zero where a tangent or cotangent is absent."""
    given = {o.name for o in family.forward.inputs}
    for op in family.ops[1:]:
        seeds = {o.name for o in op.inputs} - given
        for s in op.body:
            for e in walk(s.value):
                for f in factors(e):
                    asked = conjuncts(f.cond) if isinstance(f, Select) and is_zero(f.other) else []
                    if any(isinstance(c, Present) and c.operand in seeds for c in asked):
                        yield f"{op.name}: {s.target}: {format_expr(e)}"


@pytest.mark.rotating
@pytest.mark.parametrize("path", [*SPECS, *GROWN], ids=lambda p: p.stem)
def test_presence_stands_outside_products(path: Path) -> None:
    assert list(inside_products(load_family(path))) == []


@pytest.mark.parametrize("number", range(examples(25, 400)))
def test_presence_stands_outside_products_of_drawn_specs(number: int) -> None:
    try:
        family = compile_text(drawn("absent", number), "drawn")
    except SpecError:
        return  # it has no gradient
    assert list(inside_products(family)) == []


CHOSEN = """inputs: {z: 'T[K]', p: 'T[N, K]'}
outputs: {y: 'T[N]'}
kernel: |
  y[i] = prod[k](sum[m:3]((0 if isnan(p[i, k]) else 1) * z[k]))
"""


def test_presence_is_put_outside_a_factor_that_is_a_choice() -> None:
    op = compile_text(spec_text("f", CHOSEN), "f").jvp
    assert op is not None
    (statement,) = [format_assign(s) for s in op.body if s.target == "t_y"]
    assert statement.startswith("t_y[i] = sum[k:K](")
    assert statement.endswith(" if present(t_z) else 0")


def test_an_absent_tangent_contributes_nothing_to_an_infinite_product() -> None:
    op = load_family(next(p for p in SPECS if p.stem == "sigmoid")).backward_jvp
    assert op is not None
    values = {"x": np.zeros(1), "d_y": np.full(1, np.inf), "t_x": None, "t_d_y": np.full(1, 4.0)}
    assert np.asarray(evaluate(op, values)["t_d_x"].value).tolist() == [1.0]
