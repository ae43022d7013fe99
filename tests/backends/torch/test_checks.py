"""The checks of operators in torch stumble over nothing that an op's example allows, and find leaks."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch

from opc.backends.base import Unsupported
from opc.backends.checks import Sample
from opc.backends.torch import memory
from opc.backends.torch.backend import TorchBackend
from opc.backends.torch.checks import TorchChecks
from opc.backends.torch.session import TorchSession
from opc.pipeline import compile_text

from .conftest import COUNTED, Sessions

CALLED = {
    "counted": ("opcheck", "gradcheck", "hessian", "torch.compile gradient"),
    "chosen": ("gradcheck", "vmap of grad", "jvp", "torch.compile gradient"),
    "placed": ("vmap of grad", "torch.compile gradient"),
    "spread": ("hessian",),
}
"""Checks of ops.

The first has an integer result in front of the floating one, and no elements in its example; the second has integer results
unless another type is chosen; the third has indices among its floating numbers; the second derivatives of the fourth are the rest
of large terms.
"""

PAIRS = """op: pairs
domain: tests
version: 1
doc: Differences of products.
types: {T: [float64]}
inputs: {x: 'T[*A, N, *B]', 'w?': 'T[N]'}
attributes: {axis: {type: axis, dim: N, default: 0}}
outputs: {y: 'T[*A, *B]'}
kernel: |
  pairs[*A, i, j, *B] = exp(x[*A, i, *B] * x[*A, j, *B])
  y[*A, *B] = max[i, j](pairs[*A, i, j, *B]) - min[i, j](pairs[*A, i, j, *B])
"""


@pytest.mark.rotating
@pytest.mark.parametrize(("name", "check"), [(name, check) for name, checks in CALLED.items() for check in checks])
def test_a_check_runs(name: str, check: str, session: Sessions) -> None:
    (found,) = (c for c in TorchBackend().checks(session(name)) if c.name == check)
    found.run()


class Unbuilt(TorchChecks):
    """The checks of an op of which there are no kernels, on one tensor."""

    def __init__(self, text: str, function: Callable[..., object], given: Sample) -> None:
        family = compile_text(text, "unbuilt")
        session = SimpleNamespace(family=family, function=function, values=lambda _, a: dict(a), tensors=lambda _, a: a)
        super().__init__(cast(TorchSession, session))
        self.given = given

    def sample(self, seed: int = 0, times: int = 1) -> Sample:
        return self.given

    def differentiated_sample(self, seed: int = 0, times: int = 1) -> Sample:
        return self.given

    def tensors(self, given: Sample) -> dict[str, torch.Tensor | None]:
        return {n: None if a is None else torch.from_numpy(a) for n, a in given.arrays.items()}


def calls(forgotten: int = 0, temporary: int = 0) -> Callable[..., object]:
    """A function that keeps so many bytes of each call, and needs so many while it runs."""
    held: list[torch.Tensor] = []

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if x.is_complex():
            raise RuntimeError("counted: x has dtype complex64")
        if forgotten:
            held.append(torch.ones(forgotten, dtype=torch.uint8))
        torch.ones(temporary, dtype=torch.uint8)
        return (x > 0).sum(), (x * x).sum()

    return function


@pytest.mark.rotating
@pytest.mark.parametrize("forgotten", [1, 64, 1 << 20])
def test_a_leak_is_found_however_little_leaks(forgotten: int) -> None:
    found = Unbuilt(COUNTED, calls(forgotten), Sample({"x": np.ones(2)}, {}))
    with pytest.raises(AssertionError, match="bytes behind"):
        found.leak()


@pytest.mark.rotating
def test_what_a_call_needs_while_it_runs_is_no_leak() -> None:
    # A call writes more than the process ever held; where Linux can, it forgets what that was in the tests before this one.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    temporary = memory.most() - resident + (64 << 20)
    Unbuilt(COUNTED, calls(temporary=temporary), Sample({"x": np.ones(2)}, {})).leak()


@pytest.mark.parametrize(("axis", "w", "length"), [(0, None, 2), (-1, None, 1 << 17), (-1, np.ones(2), 1 << 17)])
def test_large_calls_have_an_axis_more_unless_memory_grows_with_its_square(axis: int, w: np.ndarray | None, length: int) -> None:
    given = Sample({"x": np.ones(2), "w": w}, {"axis": axis})
    found = Unbuilt(PAIRS, calls(), given)._large(given)
    assert found["x"] is not None
    assert found["x"].shape[0] == length
    assert found["w"] is None or found["w"].shape == (2,)


def test_no_hessian_is_asked_of_no_elements() -> None:
    with pytest.raises(Unsupported, match="fails where there is none"):
        Unbuilt(COUNTED, calls(), Sample({"x": np.ones(0)}, {})).hessian()
