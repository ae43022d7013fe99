"""specs/onnx: attention gives what ONNX's reference evaluator computes, for more calls than the standard has cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.pipeline import load_family
from opc.testing.oracle.evaluation import evaluate
from opc.testing.plan import Item, hold_standard
from opc.testing.references.onnx import Node, onnx_cases
from opc.testing.results import Status

SPECS = Path(__file__).parents[2] / "specs/onnx"


def drawn(rng: np.random.Generator, beside: bool, past: bool) -> dict[str, Any]:
    """Return inputs, in the standard's order, and attributes of a call; `beside`, heads stand beside each other in three axes."""

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    batch, length, new, size, width, groups, members, before = rng.integers(1, [4, 5, 6, 4, 4, 3, 4, 5])
    heads, keys = groups * members, new + before * past
    q, k, v = normal(batch, heads, length, size), normal(batch, groups, new, size), normal(batch, groups, new, width)
    if beside:
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(batch, x.shape[2], -1) for x in (q, k, v))
    # The evaluator takes a mask with one row for one query where it is causal, so masks have all rows.
    shape = [rng.choice([1, batch]), rng.choice([1, heads]), length, rng.integers(1, keys + 1)]
    mask = [None, np.where(rng.random(shape) < 0.2, -np.inf, normal(*shape)), rng.random(shape) < 0.7][rng.integers(3)]
    caches = [normal(batch, groups, before, size), normal(batch, groups, before, width)] if past else [None, None]
    lengths = rng.integers(0, new + 1, batch) if not past and rng.random() < 0.5 else None
    softcap = float(rng.choice([0.0, 1.5]))
    attributes = {
        "is_causal": int(rng.integers(2)),
        "left_window_size": int(rng.integers(-1, 3)),
        "right_window_size": int(rng.integers(-1, 2)),
        # Their roots, by which the evaluator multiplies, are rounded in no type.
        "scale": float(rng.choice([0.25, 4.0])),
        "softcap": softcap,
        # The evaluator gives capped scores where the standard says, and ONNX Runtime gives, those that are not capped.
        "qk_matmul_output_mode": int(rng.integers(softcap > 0, 4)),
    }
    if beside:
        attributes |= {"q_num_heads": int(heads), "kv_num_heads": int(groups)}
    return {"inputs": [q, k, v, mask, *caches, lengths], "attributes": attributes}


def computed(name: str, inputs: list[Any], attributes: dict[str, Any]) -> Node:
    """Return a test case: the call of the standard's operator, and what the reference evaluator computes for it."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    given = {f"x{n}": x for n, x in enumerate(inputs) if x is not None}
    names, made = [f"x{n}" if x is not None else "" for n, x in enumerate(inputs)], ["y", "key", "value", "scores"]
    graph = helper.make_graph(
        [helper.make_node("Attention", names, made, **attributes)],
        name,
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in given],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in made],
    )
    with np.errstate(all="ignore"):
        outputs = ReferenceEvaluator(helper.make_model(graph)).run(None, given)
    return {"name": name, "inputs": inputs, "outputs": list(outputs), "attributes": attributes}


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("name", "beside", "past"),
    [
        ("attention", False, False),
        ("attention_with_past", False, True),
        ("attention_3d", True, False),
        ("attention_3d_with_past", True, True),
    ],
)
def test_attention_gives_what_the_reference_evaluator_does(name: str, beside: bool, past: bool) -> None:
    rng = np.random.default_rng(len(name))
    family = load_family(SPECS / f"{name}.yaml")
    nodes = [computed(f"drawn-{n}", **drawn(rng, beside, past)) for n in range(40)]
    cases, others = onnx_cases(family, {"Attention": nodes})
    assert others == []
    for case in cases:
        expected = evaluate(family.forward, case.case.arrays(), case.case.attributes)
        result = hold_standard(family, Item("drawn", case.case, expected), case)
        assert result.status is Status.PASSED, (result.message, case.case.attributes)
