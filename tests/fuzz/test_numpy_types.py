"""Temporaries of NumPy references keep the type they are computed in: in a wider one, what overflows would not."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from opc.analysis.shapes.inference import infer
from opc.diagnostics import SpecError
from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.dtypes import candidates, is_floating
from opc.ir.op import Family
from opc.pipeline import compile_text
from tests.amounts import MANY
from tests.fuzz.calls import draw, parents
from tests.fuzz.check import drawn

DRAWN = range(400 if MANY else 24)
FIXED = {
    "sum_of_numbers": "sum[k:N](0.3) * x[i]",
    "sums_of_indices": "prod[k:i](sum[j:N](2 * j) + x[k]) + x[i]",
    "functions_of_numbers": "x[i] - abs(minimum(N, 3) - 5)",
    "choice": "x[i] if x[i] > 0 else i * 0.5",
}
HEAD = "op: probe\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"


def wide(family: Family, seed: int) -> Iterator[str]:
    """Yield the temporaries of calls whose arrays are of a wider type than they are computed in."""
    kept: list[dict[str, Any]] = []
    module: dict[str, Any] = {"_kept": kept}  # no name of an op begins so
    exec(re.sub(r"^(    )(return )", r"\1_kept.append(dict(locals()))\n\1\2", numpy_module(family), flags=re.MULTILINE), module)
    above, rng = parents(family), random.Random(seed)
    for op in family.ops:
        for case in draw(op, above.get(id(op)), rng, 1, small=True):
            arrays, attributes = case.arrays(), dict(case.attributes)
            if any(o.optional for o in op.outputs):
                shapes = {n: None if a is None else a.shape for n, a in arrays.items()}
                attributes["wanted"] = list(infer(op, shapes, attributes).outputs)
            kept.clear()
            try:
                module[function_name(op)](*(arrays[o.name] for o in op.inputs), **attributes)
            except (IndexError, ValueError):
                continue  # refused
            for t in op.temporaries:
                single = is_floating(t.type) and all(d.compute.bits == 32 for d in candidates(t.type))
                value = kept[-1].get(t.name)
                if single and isinstance(value, np.ndarray | np.generic) and value.dtype == np.float64:
                    yield f"{t.name} of {case.name} is float64"


@pytest.mark.parametrize("name", FIXED)
def test_numbers_take_the_type_of_what_they_meet(name: str) -> None:
    text = f"{HEAD}inputs: {{x: 'T[N]'}}\noutputs: {{y: 'T[N]'}}\nkernel: |\n  t[i] = {FIXED[name]}\n  y[i] = sin(t[i])\n"
    assert list(wide(compile_text(text, name), 1)) == []


@pytest.mark.rotating
@pytest.mark.parametrize("number", DRAWN)
def test_drawn(number: int) -> None:
    try:
        family = compile_text(drawn("types", number), "drawn")
    except SpecError:
        return
    assert list(wide(family, number)) == []
