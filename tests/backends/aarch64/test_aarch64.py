"""Kernels for aarch64 as the proof calls them: right, refusing, in vectors, and started anew after a crash."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from opc.backends import registry
from opc.backends.aarch64 import backend as aarch64
from opc.backends.aarch64.backend import AArch64Backend
from opc.backends.aarch64.session import OLDEST, AArch64Session
from opc.backends.base import OpError, Unsupported
from opc.backends.kernel.target import cross_compiler, emulator
from opc.build.builder import build_specs
from opc.build.toolchain import runtime_include
from opc.pipeline import load_family

SPEC = """
op: scaled_sum
domain: mine.ops
version: 1
doc: A number times x, and the sums of its rows.
types: {T: [float16, float32]}
inputs: {x: 'T[*A, N]'}
attributes: {factor: {type: float, default: 2.0}, shifts: {type: 'float[2]', default: [0.0, 1.0]}}
outputs: {y: 'T[*A, N]', s: 'T[*A]'}
gradient: none
kernel: |
  y[*A, n] = factor * x[*A, n] + shifts[1]
  s[*A] = sum[n](x[*A, n])
"""

# Each float16 there is, and for each of some float32 the nearest of these.
HALVES = """
#include <stdio.h>
#include "opc/rows/loops.h"
int main() {
  static opc::float16 narrow[65536], back[65536];
  static float wide[65536];
  for (int i = 0; i < 65536; ++i) narrow[i].bits = uint16_t(i);
  opc::widen_row<opc::float16>(wide, narrow, 65535);
  wide[65535] = opc::widen(narrow[65535]);
  fwrite(wide, 4, 65536, stdout);
  if (fread(wide, 4, 65536, stdin) != 65536) return 1;
  opc::narrow_row<opc::float16>(back, wide, 65535);
  back[65535] = opc::narrow<opc::float16>(wide[65535]);
  fwrite(back, 2, 65536, stdout);
}
"""


@pytest.fixture(scope="module")
def tools() -> None:
    found = AArch64Backend().probe()
    if not found.available:
        pytest.skip(f"{found.reason}; install it: {found.install}")


@pytest.fixture(scope="module")
def package(tools: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aarch64")
    (folder / "scaled_sum.yaml").write_text(SPEC)
    (built,) = build_specs([folder / "scaled_sum.yaml"], folder / "generated", ["aarch64"])
    assert built.package is not None, built.diagnostics
    return built.package


@pytest.fixture
def session(package: Path) -> AArch64Session:
    return AArch64Session(load_family(package.parents[1] / "scaled_sum.yaml"), package)


def test_the_proof_alone_knows_it_and_by_name_only() -> None:
    assert isinstance(registry.load("aarch64"), AArch64Backend)
    assert "aarch64" not in registry.names()
    assert not [b for b in registry.select() if isinstance(registry.companion(b), AArch64Backend)]


@pytest.mark.parametrize("missing", ["compiler", "emulator"])
def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(aarch64, "cross_compiler", lambda: () if missing == "compiler" else ("g++",))
    monkeypatch.setattr(aarch64, "emulator", lambda: None)
    monkeypatch.setattr(aarch64.platform, "machine", lambda: "x86_64")
    found = AArch64Backend().probe()
    assert not found.available
    assert found.reason == {"compiler": "there is no compiler for aarch64", "emulator": "qemu-aarch64 is not installed"}[missing]
    assert "sudo apt install" in (found.install or "")


@pytest.mark.rotating("file")
def test_answers_are_right_for_any_strides(session: AArch64Session) -> None:
    wide = np.arange(-60, 60).reshape(5, 24)
    for dtype in (np.float16, np.float32):
        for x in (wide.astype(dtype), wide.astype(dtype)[::-1, ::-2], wide.astype(dtype).T, np.zeros((0, 3), dtype)):
            made = session.call("scaled_sum", {"x": x}, {"factor": 0.5, "shifts": [7.0, 2.0]})
            assert made["y"].dtype == made["s"].dtype == dtype
            np.testing.assert_array_equal(made["y"], x * dtype(0.5) + dtype(2))
            np.testing.assert_array_equal(made["s"], x.sum(-1, dtype=np.float32).astype(dtype))


@pytest.mark.rotating("file")
def test_refusals_tell_why_and_a_program_that_ends_is_started_anew(session: AArch64Session) -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(OpError, match=r"^scaled_sum: x has dtype float64"):
        session.call("scaled_sum", {"x": x.astype(np.float64)}, {})
    with pytest.raises(OpError, match="shifts has 3 values, but must have 2"):
        session.call("scaled_sum", {"x": x}, {"shifts": [1.0, 2.0, 3.0]})
    with pytest.raises(Unsupported, match="complex64"):
        session.call("scaled_sum", {"x": x.astype(np.complex64)}, {})
    session.ops["other"] = session.ops["scaled_sum"]
    with pytest.raises(RuntimeError, match="the program ended with code 3: call_server: there is no such op"):
        session.call("other", {"x": x}, {})
    assert session.call("scaled_sum", {"x": x}, {})["s"].tolist() == [3.0, 3.0]


@pytest.mark.rotating("file")
def test_loops_are_in_vectors(package: Path) -> None:
    tool = shutil.which("aarch64-linux-gnu-objdump")
    if tool is None:
        pytest.skip("aarch64-linux-gnu-objdump is not installed")
    loops = package / "build/aarch64/kernel/scaled_sum_loops_baseline.o"
    code = subprocess.run([tool, "-d", "--no-show-raw-insn", loops], capture_output=True, text=True, check=True).stdout
    for operation in ("fmul\tv", "fadd\tv", "fcvtl\tv", "fcvtn\tv"):
        assert operation in code, operation


@pytest.mark.rotating("file")
def test_float16_is_converted_as_everywhere(tools: None, tmp_path: Path) -> None:
    """By the processor, and to the same numbers as by integer arithmetic; NaNs stay such."""
    (tmp_path / "halves.cpp").write_text(HALVES)
    program = tmp_path / "halves"
    flags = ["-std=c++17", "-O1", "-fopenmp-simd", "-static", f"-I{runtime_include()}", "-DOPC_VARIANT=baseline"]
    subprocess.run([*(cross_compiler() or ("g++",)), *flags, tmp_path / "halves.cpp", "-o", program], check=True)
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    bits = np.random.default_rng(3).integers(0, 2**32, 65536, dtype=np.uint32)
    exact = every.astype(np.float32).view(np.uint32)
    bits[:49152] = np.concatenate([exact[::4] + 0x1000, exact[1::4] + 0xFFF, exact[2::4] + 0x1001])  # ties, and beside them
    given = bits.view(np.float32)
    command = emulator() or ()
    done = subprocess.run(
        [*command, *(OLDEST if command else ()), program], input=given.tobytes(), capture_output=True, check=True
    )
    wide, narrow = np.frombuffer(done.stdout, np.float32, 65536), np.frombuffer(done.stdout, np.float16, -1, 4 * 65536)
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    with np.errstate(over="ignore"):
        nearest = given.astype(np.float16)
    number = ~np.isnan(given)
    np.testing.assert_array_equal(narrow[number].view(np.uint16), nearest[number].view(np.uint16))
    assert np.isnan(narrow[~number]).all()
    assert (~number).any()
