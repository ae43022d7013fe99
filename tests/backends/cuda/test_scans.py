"""Running sums and the like on a device, called in the emulation: every way in which lines are given to lanes and blocks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from opc.backends.base import Compile, Link
from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import CudaBackend
from opc.backends.cuda.session import CudaSession
from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text

ROOT = Path(__file__).parents[3]
SUMS = """\
op: sums
domain: opc.test
version: 1
doc: Running sums, products and greatest elements along an axis.
types: {T: [float16, float32, int64]}
inputs: {x: 'T[*A, N, *B]', w: 'T[N]'}
attributes:
  axis: {type: axis, dim: N, default: 0, doc: The axis.}
  exclusive: {type: bool, default: false, doc: Each sum leaves its own element out.}
outputs:
  up: T[*A, N, *B]
  down: T[*A, N, *B]
  turned: T[*A, N, *B]
  most: T[*A, N, *B]
  later: T[*A, N, *B]
  early: T[*A, N, *B]
kernel: |
  up[*A, i, *B] = cast(T, sum[k:i + (0 if exclusive else 1)](x[*A, k, *B]))
  down[*A, i, *B] = cast(T, sum[k:N - i - (1 if exclusive else 0)](x[*A, i + k + (1 if exclusive else 0), *B]))
  turned[*A, i, *B] = cast(T, sum[k:N - i](x[*A, N - 1 - k, *B] * w[k]))
  most[*A, i, *B] = max[k:i + 1](x[*A, k, *B] if w[k] > 0 else 0)
  later[*A, i, *B] = cast(T, sum[k:i - 4](x[*A, k, *B]))
  early[*A, i, *B] = cast(T, sum[k:i + 4](x[*A, k, *B] if k < N else 0))
gradient: none
"""
POSITIONS = {np.float16: 32, np.float32: 16, np.int64: 8}
"""Positions of a line that a thread has at once, by dtype."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> CudaSession:
    """Return the library of the op, compiled for the emulation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(toolkit.VARIABLE, toolkit.EMULATED)
        family = compile_text(SUMS, "sums.yaml")
        backend, folder = CudaBackend(), tmp_path_factory.mktemp(family.name)
        for path, text in {**kernel_files(family), **backend.emit(family)}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        for step in backend.build(family):
            match step:
                case Compile():
                    (folder / step.object).parent.mkdir(parents=True, exist_ok=True)
                    flags = ["-O0", f"-I{ROOT / 'runtime' / 'include'}"]
                    command = ["g++", *step.flags, *flags, "-c", step.source, "-o", step.object]
                case Link():
                    command = ["g++", "-shared", *step.objects, *step.flags, "-o", step.output]
            subprocess.run(command, check=True, cwd=folder)
        return CudaSession(family, folder)


def expected(
    x: npt.NDArray[np.generic], w: npt.NDArray[np.generic], axis: int, exclusive: bool
) -> dict[str, npt.NDArray[np.generic]]:
    """Return the outputs for integers of any dtype."""
    lines = np.moveaxis(x.astype(np.int64), axis, -1)
    own = lines if exclusive else 0 * lines
    up = np.cumsum(lines, -1) - own
    back = lines[..., ::-1]
    down = (np.cumsum(back, -1) - own[..., ::-1])[..., ::-1]
    weights = w.astype(np.int64)
    turned = np.cumsum(back * weights, -1)[..., ::-1]
    most = np.maximum.accumulate(np.where(weights > 0, lines, 0), -1)
    sums = np.cumsum(lines, -1)
    later = np.concatenate([0 * sums[..., :5], sums[..., : sums.shape[-1] - 5]], -1)[..., : sums.shape[-1]]
    early = np.concatenate([sums[..., 3:], *[sums[..., -1:]] * min(3, sums.shape[-1])], -1)
    found = {"early": early, "up": up, "down": down, "turned": turned, "most": most, "later": later}
    return {name: np.moveaxis(y, -1, axis).astype(x.dtype) for name, y in found.items()}


def check(session: CudaSession, x: npt.NDArray[np.generic], axis: int) -> None:
    """Compare what the kernels make of integers, whose sums are exact, with NumPy's."""
    w = np.random.default_rng(1).integers(-1, 2, x.shape[axis]).astype(x.dtype)
    for exclusive in (False, True):
        found = session.call("sums", {"x": x, "w": w}, {"axis": axis, "exclusive": exclusive})
        for name, y in expected(x, w, axis, exclusive).items():
            np.testing.assert_array_equal(found[name], y, err_msg=f"{name} of {x.shape} along {axis}, exclusive: {exclusive}")


def whole(shape: tuple[int, ...], dtype: type[np.generic]) -> npt.NDArray[np.generic]:
    """Return small integers, whose running sums are exact in a dtype."""
    return np.random.default_rng(0).integers(-1, 2, shape).astype(dtype)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
@pytest.mark.parametrize(("threads", "more"), [(0, 1), (1, 0), (1, 1), (32, -1), (32, 8), (64, 1), (256, -3), (256, 0), (256, 1)])
def test_lines_whose_elements_lie_together(session: CudaSession, threads: int, more: int, dtype: type[np.generic]) -> None:
    """As many positions as so many threads have, and some more."""
    check(session, whole((3, threads * POSITIONS[dtype] + more), dtype), 1)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((2, 1, 3), 1),
        ((5, 40, 3), 1),
        ((40, 33), 0),
        ((2, 130, 40), 1),
        ((1100, 9), 0),
        ((700, 17), 0),
        ((6, 5), 1),
        ((0, 5), 1),
        ((5, 0), 1),
    ],
)
def test_lines_side_by_side(session: CudaSession, shape: tuple[int, ...], axis: int) -> None:
    check(session, whole(shape, np.float32), axis)


def test_blocks_tell_each_other_what_groups_of_chunks_come_to(session: CudaSession) -> None:
    """More chunks than a group has, and more groups."""
    check(session, whole((33 * 256 * POSITIONS[np.int64] + 5,), np.int64), 0)
    check(session, whole((9 * 8 * POSITIONS[np.float32] * 8 + 130, 20), np.float32), 0)


def test_views(session: CudaSession) -> None:
    wide = whole((3, 256 * POSITIONS[np.float32] + 7), np.float32)
    check(session, wide[:, ::-1], 1)
    check(session, wide[:, ::2], 1)
    check(session, wide[:, 1:], 1)
    check(session, wide.T, 0)


def test_sums_depend_on_sizes_alone(session: CudaSession) -> None:
    """Where elements lie changes how they are read, and not how they are added up."""
    x = np.random.default_rng(0).standard_normal((2, 256 * POSITIONS[np.float32] + 100)).astype(np.float32)
    memory = np.zeros(x.size + 1, np.float32)
    memory[1:] = x.ravel()
    w = np.ones(x.shape[1], np.float32)
    found = session.call("sums", {"x": x, "w": w}, {"axis": 1, "exclusive": False})["up"]
    again = session.call("sums", {"x": memory[1:].reshape(x.shape), "w": w}, {"axis": 1, "exclusive": False})["up"]
    assert found.tobytes() == again.tobytes()
    np.testing.assert_allclose(found, np.cumsum(x.astype(np.float64), 1), atol=1e-3)
