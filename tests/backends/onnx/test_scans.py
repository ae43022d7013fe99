"""Recurrences in ONNX's standard operators: a Scan that carries along what steps read of those before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto
from onnxruntime import InferenceSession

from opc.backends.node_call import NodeCall
from opc.emit.onnx.function import FunctionBody, function_body
from opc.ir.affine import Affine
from opc.ir.op import Op
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from tests.backends.onnx.test_checks import load
from tests.fuzz.written import DISTANT_STEPS, RECURRENCES, specs

CARRIED = [text.replace("T: [float32]", "T: [float64]") for text in specs("recurrence", RECURRENCES + DISTANT_STEPS)]


def arrays(op: Op, n: int) -> dict[str, np.ndarray]:
    rng, sizes = np.random.default_rng(5), {"N": n, "D": 3, "B": 2, "K": 2, "J": 3}
    found = {}
    for o in op.inputs:
        shape = [2 if not isinstance(d, Affine) else sizes[str(d)] if d.constant is None else d.constant for d in o.dims]
        found[o.name] = rng.integers(0, 5, size=shape) if str(o.type) == "int64" else rng.normal(size=shape)
    return found


@pytest.mark.parametrize("text", CARRIED, ids=lambda t: t.split()[1])
def test_values(text: str, tmp_path: Path) -> None:
    """ONNX's reference implementation finds what is right, also where there is no step."""
    family = compile_text(text)
    session = load(family, tmp_path)
    assert family.backward is not None
    for op in (family.forward, family.backward):
        for n in (4, 0) if "N > 0" not in text else (4,):
            given = arrays(op, n)
            want = evaluate(op, given)
            for name, got in session.function_call(op.name, given, {}).items():
                bounds = want[name].bounds
                assert np.all((got >= bounds.low) & (got <= bounds.high)), (op.name, name, n)


def test_nothing_of_all_steps_is_computed_in_each(tmp_path: Path) -> None:
    """What does not change from step to step stands before the Scan, so that a call takes time with the number of its steps."""
    family = compile_text(CARRIED[3])
    session = load(family, tmp_path)
    call = NodeCall(family.forward, arrays(family.forward, 4), {}, None)
    model = call.function_model(session.module)
    scans = [n for f in model.functions for n in _nodes(f.node) if n.op_type == "Scan"]
    assert scans
    for scan in scans:
        (body,) = (a.g for a in scan.attribute if a.name == "body")
        changing = {i.name for i in body.input}
        for node in body.node:
            assert node.op_type == "Identity" or changing & set(node.input), node
            changing |= set(node.output)


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for n in nodes:
        yield n
        for a in n.attribute:
            yield from _nodes(a.g.node)


@pytest.mark.parametrize("text", specs("recurrence", DISTANT_STEPS), ids=lambda t: t.split()[1])
def test_steps_that_are_no_fixed_number_away_are_carried_whole(text: str) -> None:
    family = compile_text(text.replace("T: [float64]", "T: [float32, float64]"))
    for op in (family.forward, family.backward, family.backward_backward, family.jvp, family.backward_jvp):
        assert op is not None
        body = function_body(op)
        assert isinstance(body, FunctionBody), body
        assert "body.scan(" in body.source
        assert "body.put(" in body.source


@pytest.mark.parametrize("text", specs("recurrence", RECURRENCES + DISTANT_STEPS), ids=lambda t: t.split()[1])
def test_onnxruntime_runs_the_steps(text: str, tmp_path: Path) -> None:
    family = compile_text(text)
    session = load(family, tmp_path)
    assert family.backward is not None
    for op in (family.forward, family.backward):
        for n in (4, 0) if "N > 0" not in text else (4,):
            given = arrays(op, n)
            given = {k: v.astype(np.float32) if v.dtype == np.float64 and "[float32]" in text else v for k, v in given.items()}
            model = NodeCall(op, given, {}, None).function_model(session.module)
            runtime = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            want = evaluate(op, given)
            for o, got in zip(runtime.get_outputs(), runtime.run(None, given), strict=True):
                bounds = want[o.name].bounds
                assert np.all((got >= bounds.low) & (got <= bounds.high)), (op.name, o.name, n)


def test_a_step_is_a_scan() -> None:
    body = function_body(compile_text(CARRIED[0]).forward)
    assert isinstance(body, FunctionBody)
    assert "t1.carry(" in body.source
    assert "body.scan(t1, " in body.source
