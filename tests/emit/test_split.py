"""An axis in parts against NumPy: rows long enough that what is repeated in them is staged once for several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.pipeline import load_family
from tests.emit.kernel_library import KernelLibrary, compile_kernel
from tests.narrow import narrow, only


@pytest.mark.parametrize("backwards", [False, True])
def test_group_norm_of_long_rows(tmp_path: Path, backwards: bool) -> None:
    family = only(load_family(narrow("group_norm", tmp_path / "specs", "float64")), "backward")
    assert family.backward is not None
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), None)
    rng = np.random.default_rng(5)
    turn = slice(None, None, -1 if backwards else 1)
    x, d_y = (rng.standard_normal((3, 8, 33, 40))[turn, turn, turn, turn] for _ in range(2))
    scale, bias = (rng.standard_normal(16)[::2][turn] for _ in range(2))
    groups = x.reshape(3, 2, -1)
    mean, rstd = groups.mean(2), 1 / np.sqrt(groups.var(2) + 1e-5)
    h = ((groups - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    values = {"num_groups": 2, "epsilon": 1e-5}
    got = kernel.call(family.forward, {"x": x, "scale": scale, "bias": bias}, values, None)
    np.testing.assert_allclose(got["y"], h * scale[:, None, None] + bias[:, None, None], atol=1e-12)
    given = {"x": x, "scale": scale, "mean": mean, "rstd": rstd, "d_y": d_y, "d_mean": None, "d_rstd": None}
    got = kernel.call(family.backward, given, values, None)
    np.testing.assert_allclose(got["d_bias"], d_y.sum((0, 2, 3)), atol=1e-10)
    np.testing.assert_allclose(got["d_scale"], (d_y * h).sum((0, 2, 3)), atol=1e-10)
    d_h, n = (d_y * scale[:, None, None]).reshape(groups.shape), h.reshape(groups.shape)
    want = rstd[..., None] * (d_h - d_h.mean(2, keepdims=True) - n * (d_h * n).mean(2, keepdims=True))
    np.testing.assert_allclose(got["d_x"], want.reshape(x.shape), atol=1e-9)
