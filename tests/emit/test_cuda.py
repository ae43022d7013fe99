"""Point and row stages as CUDA: the same loops through another schedule and printer.

They are run through an emulation, one thread a block, and compiled by nvcc where there is one. The driver, compiled by nvcc,
runs on a GPU as it is.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from opc.emit.cuda.files import cuda_source
from opc.emit.kernel.files import kernel_files
from opc.lower.build.context import UnsupportedForm
from opc.lower.cuda import cuda_kernel
from opc.lower.loop_ir import RowStage
from opc.lower.lower import lower
from opc.pipeline import load_family

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).parent / "cuda" / "driver.cpp"
Array = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """A kernel: its stage, the initialiser of its arguments, and the number of inputs."""

    op: str
    stage: str
    values: str
    inputs: int
    steps: str
    """One word an operand: `r` for a row, `1` for a value a row, `0` for a row that all share."""


CASES = (
    Case("leaky_relu", "leaky_relu", "{{0.25}}", 1, "rr"),
    Case("softmax", "softmax", "{}", 1, "rr"),
    Case("log_softmax", "log_softmax", "{}", 1, "rr"),
    Case("layer_norm", "layer_norm", "{{1e-5}, COLUMNS, 1, 1}", 3, "r0011r"),
    Case("softmax", "softmax_backward", "{}", 2, "rrr"),
)


def source(op: str, folder: Path) -> Path:
    """Write the CUDA source of an op and the header it includes."""
    family = load_family(ROOT / "specs" / f"{op}.yaml")
    (folder / f"{op}.h").write_text(kernel_files(family)[f"kernel/{op}.h"])
    path = folder / f"{op}.cu"
    path.write_text(cuda_source(family))
    return path


def flags(case: Case, path: Path, columns: int) -> list[str]:
    return [
        "-std=c++17",
        "-DOPC_VARIANT=cuda",
        f'-DSOURCE="{path.name}"',
        f"-DKERNEL=launch_{case.stage}_float",
        f"-DARGUMENTS={case.op}_cuda::call_arguments",
        f"-DVALUES={case.values.replace('COLUMNS', str(columns))}",
        f"-DOPERANDS={len(case.steps)}",
        f"-DINPUTS={case.inputs}",
        f"-I{ROOT / 'runtime' / 'include'}",
        f"-I{path.parent}",
    ]


def expected(case: Case, inputs: list[Array]) -> list[NDArray[np.float64]]:
    x = inputs[0].astype(np.float64)
    shifted = x - x.max(1, keepdims=True)
    match case.stage:
        case "leaky_relu":
            return [np.where(x >= 0, x, 0.25 * x)]
        case "softmax":
            return [np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)]
        case "log_softmax":
            return [shifted - np.log(np.exp(shifted).sum(1, keepdims=True))]
        case "softmax_backward":
            y, d_y = x, inputs[1].astype(np.float64)
            return [y * (d_y - (y * d_y).sum(1, keepdims=True))]
        case _:
            mean = x.mean(1, keepdims=True)
            rstd = 1 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)
            return [mean[:, 0], rstd[:, 0], (x - mean) * rstd * inputs[1] + inputs[2]]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.stage)
def test_kernels_compute_in_the_emulation(case: Case, tmp_path: Path) -> None:
    rows, columns = 3, 37
    path = source(case.op, tmp_path)
    program = tmp_path / "program"
    subprocess.run(["g++", "-x", "c++", *flags(case, path, columns), str(DRIVER), "-o", str(program)], check=True)
    random = np.random.default_rng(0)
    shapes = {"r": (rows, columns), "0": (1, columns), "1": (rows, 1)}
    inputs = [random.standard_normal(shapes[s]).astype(np.float32) for s in case.steps[: case.inputs]]
    steps = [{"r": str(columns), "0": "0", "1": "1"}[s] for s in case.steps]
    found = subprocess.run(
        [str(program), str(rows), str(columns), *steps],
        input=b"".join(i.tobytes() for i in inputs),
        capture_output=True,
        check=True,
    ).stdout
    results = np.frombuffer(found, np.float32)
    for wanted in expected(case, inputs):
        np.testing.assert_allclose(results[: wanted.size], wanted.ravel(), rtol=2e-5, atol=1e-6)
        results = results[wanted.size :]
    assert results.size == 0


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@pytest.mark.parametrize("op", ["leaky_relu", "layer_norm", "gelu"])
def test_nvcc_compiles_kernels(op: str, tmp_path: Path) -> None:
    path = source(op, tmp_path)
    include = f"-I{ROOT / 'runtime' / 'include'}"
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-DOPC_VARIANT=cuda", include, "-c", str(path)]
    subprocess.run([*command, "-o", str(tmp_path / "object")], check=True, capture_output=True)


def test_every_stage_of_rows_is_lowered_or_says_why_not() -> None:
    reasons = set()
    for op in ("layer_norm", "conv2d", "cross_entropy", "softmax"):
        for variant in lower(load_family(ROOT / "specs" / f"{op}.yaml").backward):
            for stage in variant.program.stages:
                try:
                    cuda_kernel(variant.case.op, stage)
                    assert isinstance(stage, RowStage)
                except UnsupportedForm as why:
                    reasons.add(str(why))
    assert reasons == {"it adds up over points", "it is no stage of points or rows"}
