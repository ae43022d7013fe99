"""A function is added by a row of the table alone: a made-up one runs on every target, gradients included.

docs/adding_a_function.md goes through this row.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import opc
from opc.diagnostics import SpecError
from opc.ir import functions
from opc.ir.function import Function
from opc.pipeline import compile_text
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Maker
from opc.testing.cases.sizes import Sizes
from opc.testing.oracle.tolerance import compare
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together
from tests.fuzz.proof import expected, reference, wrong_answer, wrong_kernel

TABLE: Any = functions.FUNCTIONS
PAGE = Path(__file__).parents[2] / "docs" / "adding_a_function.md"
SPEC = """
op: bumps
domain: opc.test
version: 1
doc: A bump of each element.
types: {T: floating}
inputs: {x: 'T[N]'}
attributes: {height: {type: float, default: 0.0, check: "bump(height) > 0.1"}}
outputs: {y: 'T[N]'}
reference: {torch: "torch.exp(-x * x) / (1 + x * x) + height"}
kernel: |
  y[n] = bump(x[n]) + height
"""


def row_of_the_page() -> Function:
    """Return the row that the page on adding a function adds."""
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    row = eval(text.strip().rstrip(","), vars(functions))
    assert isinstance(row, Function)
    return row


def add(row: Function, monkeypatch: pytest.MonkeyPatch) -> Function:
    monkeypatch.setitem(TABLE, row.name, row)
    for module in ("opc.analysis.elaborate.calls", "opc.analysis.elaborate.expression", "opc.analysis.elaborate.scope"):
        monkeypatch.setattr(f"{module}.CALLABLE", (*functions.CALLABLE, row.name))
    return row


@pytest.fixture
def bump(monkeypatch: pytest.MonkeyPatch) -> Function:
    return add(row_of_the_page(), monkeypatch)


def test_the_page_names_one_file() -> None:
    """Files of a function whose text is made of what is there; others have a header of their own."""
    section = PAGE.read_text().split("## The files")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE) == ["opc/ir/functions.py"]


def test_on_kernels_numpy_and_onnx(bump: Function, tmp_path: Path) -> None:
    family = compile_text(SPEC, "bumps")
    kernel = KernelLibrary(family, compile_together([family], tmp_path, "-O1"))
    refer, session = reference(family), load(family, tmp_path)
    assert len(family.ops) == 5
    found = []
    for op, parent in ((family.forward, None), (family.backward, family.forward)):
        assert op is not None
        maker = Maker(op, parent)
        for binding in maker.bindings:
            case = maker.make("bump", Sizes({"N": 300}, {}, {}), binding)
            assert case is not None
            want = expected(op, case)
            assert want is not None
            found += [f"kernel, {op.name}, {binding}: {m}" for m in wrong_kernel(kernel, op, case, want)]
            found += [f"numpy, {op.name}, {binding}: {m}" for m in wrong_answer(refer, op, case, want)]
            got = session.function_call(op.name, case.arrays(), case.attributes)
            found += [f"onnx, {op.name}: {c.message}" for n, a in got.items() if not (c := compare(n, a, want[n])).ok]
            assert isinstance(case.inputs["x"], TensorArg)
    assert not found, "\n".join(found)


def test_in_torch_and_onnxruntime(bump: Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OPC_VARIANT", "native")
    (tmp_path / "bumps.yaml").write_text(SPEC)
    op = opc.load(tmp_path / "bumps.yaml")
    x = torch.linspace(-3, 3, 61, dtype=torch.float64, requires_grad=True)
    want = torch.exp(-x * x) / (1 + x * x)
    torch.testing.assert_close(op(x), want)
    assert torch.autograd.gradcheck(op, (x,))
    assert torch.autograd.gradgradcheck(op, (x,))
    np.testing.assert_allclose(op(x.detach().numpy()), want.detach().numpy())
    with pytest.raises(RuntimeError, match="bump"):
        op(x, height=9.0)


def test_a_function_without_derivative_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # By another name: derivatives are remembered by the function's.
    add(replace(row_of_the_page(), name="hill", derivative=None), monkeypatch)
    with pytest.raises(SpecError) as refused:
        compile_text(SPEC.replace("bump(", "hill("), "bumps")
    (found,) = refused.value.diagnostics
    assert found.message == "the function table has no derivative of hill"
    assert found.span.source is not None
    assert found.span.source.line(found.span.line)[found.span.column - 1 :].startswith("hill(x[n])")
