"""Inner-invariant operands of whole rows: the same answers in every layout, and which stages take them so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.backends.kernel.backend import instruction_sets
from opc.emit.kernel.files import kernel_files
from opc.ir.op import Family
from opc.lower.loop_ir import RowStage
from opc.lower.lower import lower
from opc.pipeline import compile_text, load_family
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere
from tests.emit.test_rows import HEAD
from tests.narrow import narrow, only

EVERYWHERE = "-DOPC_CACHE_BYTES=1"
"""Has a kernel store past the caches whatever it can, however small."""

SCALED = """\
types: {T: [float16, float32, float64], I: [int32, int64]}
inputs: {x: 'T[N, C, *S]', 'w?': 'T[C]', mask: 'bool[C]', shift: 'I[N, C]'}
outputs: {y: 'T[N, C, *S]', z: 'T[N, C, *S]'}
kernel: |
  m[n] = max[c, *S](x[n, c, *S])
  y[n, c, *S] = (x[n, c, *S] - m[n]) * (w[c] if present(w) else 2) + (cast(T, shift[n, c]) if mask[c] else 0)
  z[n, c, *S] = -x[n, c, *S] if mask[c] else m[n]
"""

SHAPES = (
    (1, 1, 64),
    (3, 5, 64),
    (2, 7, 65),
    (2, 3, 100),
    (4, 1, 63),
    (3, 4, 7, 11),
    (2, 3, 13, 5),
    (2, 3, 1),
    (2, 3),
    (2, 0, 70),
    (0, 3, 70),
)

Array = np.ndarray[Any, Any]


def expected(x: Array, w: Array | None, mask: Array, shift: Array) -> dict[str, Array]:
    wide = x.astype(np.float64)
    m = wide.reshape(len(x), -1).max(1).reshape(-1, *[1] * (x.ndim - 1))
    last = (Ellipsis, *[None] * (x.ndim - 2))
    scale = np.float64(2) if w is None else w.astype(np.float64)[last]
    y = (wide - m) * scale + np.where(mask, shift, 0)[last]
    return {"y": y, "z": np.where(mask[last], -wide, m)}


def laid_out(rng: np.random.Generator, layout: str, shape: tuple[int, ...], dtype: str) -> Array:
    """Return an array whose axes merge, leave gaps, or lie the other way round in memory."""
    if layout == "gaps":
        return rng.standard_normal((*shape[:-1], 2 * shape[-1])).astype(dtype)[..., ::2]
    if layout == "turned":
        return rng.standard_normal(shape[::-1]).astype(dtype).T
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.rotating
@pytest.mark.parametrize("variant", instruction_sets())
@pytest.mark.parametrize("nontemporal", [True, False])
def test_every_layout(tmp_path: Path, variant: str, nontemporal: bool) -> None:
    forced = (f"-DOPC_FORCE_VARIANT={variant}",)
    family = compile_text(HEAD + SCALED, Path("f.yaml"))
    library = compile_kernel(family, tmp_path, *forced, *([EVERYWHERE] if nontemporal else []))
    rng = np.random.default_rng(11)
    for dtype, integer, bound in (("float32", "int64", 1e-6), ("float64", "int32", 1e-15), ("float16", "int32", 1e-3)):
        for shape in SHAPES:
            for layout in ("merges", "gaps", "turned"):
                x, channels = laid_out(rng, layout, shape, dtype), shape[1]
                w = laid_out(rng, layout, (channels,), dtype)
                mask, shift = rng.random(channels) < 0.5, rng.integers(-9, 9, shape[:2]).astype(integer)
                if 0 in shape[1:] and shape[0] > 0:
                    continue  # the maximum of nothing, which is refused
                for parallel_for in (None, odd_parallel_for, split_everywhere):
                    kernel = KernelLibrary(family, library, parallel_for)
                    for given in (w, None):
                        inputs = {"x": x, "mask": mask, "shift": shift} | ({} if given is None else {"w": given})
                        got = kernel.call(family.forward, inputs, {})
                        for name, want in expected(x, given, mask, shift).items() if shape[0] else ():
                            message = f"{variant} {dtype} {shape} {layout} {name}"
                            error = np.abs(got[name].astype(np.float64) - want) / (1 + np.abs(want))
                            assert got[name].shape == want.shape, message
                            assert (error <= 8 * bound).all(), message


def test_group_norm_without_what_lies_between(tmp_path: Path) -> None:
    """The last outputs' rows lie in memory that is larger: nothing beside them is touched, wherever they begin."""
    family = only(load_family(narrow("group_norm", tmp_path / "specs")))
    library = compile_kernel(family, tmp_path, EVERYWHERE)
    rng = np.random.default_rng(2)
    for points, offset in ((64, 0), (70, 3), (129, 16)):
        x = rng.standard_normal((2, 6, points)).astype(np.float32)
        scale, bias = (rng.standard_normal(6).astype(np.float32) for _ in range(2))
        memory = np.full(x.size + 64, 7, np.float32)
        y = memory[offset : offset + x.size].reshape(x.shape)
        attributes = {"num_groups": 3, "epsilon": 1e-5}
        kernel = KernelLibrary(family, library, split_everywhere)
        kernel.call(family.forward, {"x": x, "scale": scale, "bias": bias}, attributes, outputs={"y": y})
        wide = x.astype(np.float64).reshape(2, 3, -1)
        normal = (wide - wide.mean(2, keepdims=True)) / np.sqrt(wide.var(2, keepdims=True) + 1e-5)
        np.testing.assert_allclose(y, normal.reshape(x.shape) * scale[:, None] + bias[:, None], rtol=1e-5, atol=1e-5)
        assert (memory[:offset] == 7).all()
        assert (memory[offset + x.size :] == 7).all()


def inner_invariant(family: Family) -> list[tuple[str, ...]]:
    return [s.schedule.args("segments") for v in lower(family.forward) for s in v.program.stages if isinstance(s, RowStage)]


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        ("  m[n] = max[c, *S](x[n, c, *S])\n  y[n, c, *S] = (x[n, c, *S] - m[n]) * w[c]", [("w",)]),
        ("  m[n] = max[c, *S](x[n, c, *S] * w[c])\n  y[n, c, *S] = (x[n, c, *S] - m[n]) * w[c]", [()]),
        ("  y[n, c, *S] = x[n, c, *S] * w[c]", [()]),
        ("  m[n, c] = max[*S](x[n, c, *S])\n  y[n, c, *S] = (x[n, c, *S] - m[n, c]) * w[c]", [()]),
    ],
    ids=["put only", "folded too", "no whole rows", "rows without the axis"],
)
def test_which_stages_do(kernel: str, found: list[tuple[str, ...]]) -> None:
    head = "types: {T: [float32]}\ninputs: {x: 'T[N, C, *S]', w: 'T[C]'}\noutputs: {y: 'T[N, C, *S]'}\nkernel: |\n"
    assert inner_invariant(compile_text(HEAD + head + kernel + "\n", Path("f.yaml"))) == found


def test_the_loop_over_a_segment_has_one_value_of_it() -> None:
    files = kernel_files(compile_text(HEAD + SCALED, Path("f.yaml")))
    (loops,) = [text for name, text in files.items() if name.endswith("_loops.cpp")]
    function = loops[loops.rindex("void f(") :]
    assert "opc::store_segments(" in function
    inner = function[function.index("return [&, w, mask, shift](") :]
    assert "w_row[" not in inner
    assert "x_row[i]" in inner
