"""The functions of a library of kernels on a device, called in the emulation: results, refusals, and what the device finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opc.backends.base import DeviceLostError, OpError
from opc.backends.cuda.session import CudaSession
from opc.pipeline import compile_text

Loaded = Callable[..., CudaSession]
ADDED = """\
op: looked_up
domain: opc.test
version: 1
doc: Elements by number.
types: {T: [float16, float32, int64]}
inputs: {t: 'T[V, *D]', ids: 'int64[M, N]'}
outputs: {y: 'T[M, N, *D]'}
kernel: |
  y[m, n, *D] = t[ids[m, n], *D]
gradient: {scatter: atomic}
"""


@pytest.fixture(scope="module", params=["atomic", "deterministic"])
def adding(loaded: Loaded, request: pytest.FixtureRequest) -> CudaSession:
    return loaded(compile_text(ADDED.replace("atomic", request.param), "looked_up.yaml"), "backward")


def test_strided_rows_of_any_length(loaded: Loaded) -> None:
    session = loaded("softmax")
    random = np.random.default_rng(0)
    wide = random.standard_normal((5, 2, 3000)).astype(np.float32)
    arrays: list[tuple[Any, int]] = [(wide, -1), (wide[:, ::-1, ::3], 2), (wide[:, :, 5:8], 0), (wide[:0], 1)]
    for x, axis in arrays:
        found = session.call("softmax", {"x": x}, {"axis": axis})["y"]
        e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True, initial=-np.inf))
        np.testing.assert_allclose(found, e / e.sum(axis, keepdims=True), rtol=3e-6, atol=1e-7)


def test_calls_are_refused_as_on_a_cpu(loaded: Loaded) -> None:
    session = loaded("gather")
    data, indices = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([3, 0, -9], np.int64)
    np.testing.assert_array_equal(session.call("gather", {"data": data, "indices": indices[:2]}, {"axis": 0})["y"], data[[3, 0]])
    with pytest.raises(OpError, match=r"an index of data is -?\d+, outside axis 0 of size 4"):
        session.call("gather", {"data": data, "indices": indices}, {"axis": 0})
    with pytest.raises(OpError, match="gather: axis"):
        session.call("gather", {"data": data, "indices": indices}, {"axis": 7})


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("rows", "terms"), [(6, 40), (6, 0), (300, 2), (5000, 1)])
def test_terms_are_added_to_what_they_name(adding: CudaSession, dtype: str, rows: int, terms: int) -> None:
    random = np.random.default_rng(1)
    ids, d_y = random.integers(-1, rows + 1, (terms, 50)), random.integers(-2, 3, (terms, 50, 2, 3)).astype(dtype)
    t = np.zeros((rows, 2, 3), dtype)
    given = {"t": t, "ids": ids, "d_y": d_y}
    backward = adding.family.backward
    assert backward is not None
    found = adding.call(backward.name, {o.name: given[o.name] for o in backward.inputs}, {})["d_t"]
    expected = np.zeros(t.shape)
    inside = (ids >= 0) & (ids < rows)
    np.add.at(expected, ids[inside], d_y[inside].astype(float))
    np.testing.assert_array_equal(found.astype(float), expected)


@pytest.mark.parametrize(("rows", "terms"), [(3, 20), (200, 90)])
def test_many_terms_that_name_the_same_are_added_in_runs(adding: CudaSession, rows: int, terms: int) -> None:
    """Nearly all name one element, so that there are runs of terms between those that are added up one by one."""
    random = np.random.default_rng(2)
    ids, d_y = random.integers(-1, rows + 1, (terms, 50)), random.integers(-2, 3, (terms, 50, 2, 3)).astype(np.float32)
    ids[random.random(ids.shape) < 0.9] = 1
    t, backward = np.zeros((rows, 2, 3), np.float32), adding.family.backward
    assert backward is not None
    given: dict[str, Any] = {"t": t, "ids": ids, "d_y": d_y}
    found = adding.call(backward.name, {o.name: given[o.name] for o in backward.inputs}, {})["d_t"]
    inside = (ids >= 0) & (ids < rows)
    np.add.at(t, ids[inside], d_y[inside])
    np.testing.assert_array_equal(found, t)


@pytest.mark.rotating
def test_long_sums_of_products_are_taken_in_parts(loaded: Loaded) -> None:
    """Of two tiles there are four parts here, the last of which is short; small integers make sums exact."""
    random, session = np.random.default_rng(2), loaded("linear", "backward")
    numbers = [random.integers(-1, 2, (rows, 2100)) for rows in (3, 70)]
    for dtype in ("float16", "float32", "float64"):
        x, w = (each.astype(dtype) for each in numbers)
        found = session.call("linear", {"x": x, "w": w}, {})["y"]
        np.testing.assert_array_equal(found, (numbers[0] @ numbers[1].T).astype(dtype))


def test_a_tensor_of_the_cpu_is_refused(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    session = loaded("leaky_relu")
    monkeypatch.setattr("opc.backends.cuda.session._GPU", 1)
    with pytest.raises(OpError, match="leaky_relu: x is not in the GPU's memory"):
        session.call("leaky_relu", {"x": np.ones(3, np.float32)}, {})


def test_memory_that_there_is_none_of(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    session = loaded("mse_loss")
    x = np.ones(1 << 13, np.float32)
    assert session.call("mse_loss", {"x": x, "target": 3 * x}, {})["y"] == 4
    before = CudaSession._call

    def without(self: CudaSession, *arguments: Any) -> Any:
        import opc.backends.cuda.session as module

        kind = module._Context
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_Context", lambda stream, device, allocate, *rest: kind(stream, device, None, *rest))
            return before(self, *arguments)

    monkeypatch.setattr(CudaSession, "_call", without)
    with pytest.raises(OpError, match="mse_loss: no memory for parts of y"):
        session.call("mse_loss", {"x": x, "target": 3 * x}, {})


def test_a_process_whose_gpu_has_failed_is_not_used_again(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """No handler of what a call raises may take it: the worker ends, and another one makes the calls that are left."""
    session = loaded("leaky_relu")

    class Failed:
        def __getattr__(self, name: str) -> Any:
            return (lambda: 1) if name == "opc_array_wait" else getattr(library, name)

    library = session.library
    monkeypatch.setattr(session, "library", Failed())
    with pytest.raises(DeviceLostError, match="the kernels of leaky_relu failed on the GPU") as found:
        session.call("leaky_relu", {"x": np.ones(3, np.float32)}, {})
    assert not isinstance(found.value, Exception)
