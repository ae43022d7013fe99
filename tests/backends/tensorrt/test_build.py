"""build.sh of a package, with nvcc: the library for a GPU, compiled against declarations in place of an SDK, and not run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from opc.backends.cuda import toolkit
from opc.pipeline import load_family
from tests.narrow import only

from .built import INCLUDE, ROOT, written

DECLARATIONS = ROOT / "runtime" / "emulation" / "tensorrt"

SPEC = """\
op: copied
domain: opc.test
version: 1
doc: The operand as it is.
types: {T: [int32]}
inputs: {x: "T[...]"}
outputs: {y: "T[...]"}
kernel: |
  y = x
"""

QUICK = """\
#!/bin/sh
for a in "$@"; do
  shift
  case $a in -O?) a=-O0 ;; esac
  set -- "$@" "$a"
done
exec {} "$@"
"""
"""Nvcc that does not optimise: nobody runs what it makes here."""


def packed(folder: Path) -> Path:
    """Write a package of few kernels, and return its folder."""
    spec = folder / "copied.yaml"
    spec.write_text(SPEC)
    return written(only(load_family(spec)), folder / "copied")


def environment(**own: str | Path) -> dict[str, str]:
    return {**os.environ, "OPC_RUNTIME_INCLUDE": str(INCLUDE), **{name: str(value) for name, value in own.items()}}


@pytest.mark.rotating
def test_build_makes_a_library_for_a_gpu(tmp_path: Path) -> None:
    nvcc = toolkit.nvcc()
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    package, sdk = packed(tmp_path), tmp_path / "sdk" / "include"
    sdk.mkdir(parents=True)
    shutil.copytree(DECLARATIONS / "include", sdk, dirs_exist_ok=True)
    shutil.copy(DECLARATIONS / "10" / "NvInferVersion.h", sdk)
    quick = tmp_path / "nvcc"
    quick.write_text(QUICK.format(nvcc))
    quick.chmod(0o755)
    command = ["sh", str(package / "tensorrt" / "build.sh")]
    asked = environment(TENSORRT_ROOT=sdk.parent, NVCC=quick, OPC_CUDA_ARCH="sm_80")
    done = subprocess.run(command, env=asked, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    library = package / "tensorrt" / "build" / "libcopied_tensorrt.so"
    undefined = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in undefined.splitlines()]
    assert [n for n in names if "@" not in n and not n.startswith(("_ITM", "__gmon"))] == ["getPluginRegistry"]
    defined = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in defined.splitlines()}
    assert {"getCreators", "setLoggerFinder", "opc_copied_register_tensorrt", "opc_copied_tensorrt_status"} <= exported
    assert all(name in ("getCreators", "setLoggerFinder") or name.startswith("opc_") for name in exported)


def test_build_says_what_it_needs(tmp_path: Path) -> None:
    package = packed(tmp_path)
    command = ["sh", str(package / "tensorrt" / "build.sh")]
    without = {name: value for name, value in environment().items() if name != "TENSORRT_ROOT"}
    done = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "TENSORRT_ROOT: is the folder of a TensorRT SDK" in done.stderr
    done = subprocess.run(command, env=environment(TENSORRT_ROOT=tmp_path), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"build.sh: there is no NvInferRuntime.h below {tmp_path}\n")
