"""The text of kernels on a device: what nvcc makes of it, and what no kernel may hold."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from opc.backends.cuda.backend import NAMESPACE
from opc.emit.cuda.files import cuda_files, refused
from opc.emit.kernel.files import kernel_files
from opc.pipeline import load_family

ROOT = Path(__file__).parents[3]
NVCC = shutil.which("nvcc")


def written(op: str, folder: Path) -> Path:
    """Write the source of an op and the headers that it includes."""
    family = load_family(ROOT / "specs" / f"{op}.yaml")
    files = {**cuda_files(family), f"kernel/{op}.h": kernel_files(family)[f"kernel/{op}.h"]}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder / "kernel" / f"{op}.cu"


def nvcc(source: Path, *flags: str) -> str:
    """Compile for sm_90 without a warning, and return what the compiler said."""
    include = [f"-I{ROOT / 'runtime' / 'include'}", f"-I{source.parent}"]
    command = [str(NVCC), "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", NAMESPACE, *include, *flags, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def entries(ptx: str) -> dict[str, str]:
    """Return the text of each kernel in PTX, by its mangled name."""
    parts = re.split(r"\.visible \.entry (\w+)\(", ptx)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
@pytest.mark.parametrize("op", ["leaky_relu", "softmax"])
def test_ptx_of_contiguous_stages(op: str, tmp_path: Path) -> None:
    source = written(op, tmp_path)
    nvcc(source, "-ptx", "-o", str(tmp_path / "ptx"))
    kernels = entries((tmp_path / "ptx").read_text())
    floats = {name: text for name, text in kernels.items() if f"{op}If" in name or "backwardIf" in name or "jvpIf" in name}
    assert floats
    for name, text in floats.items():
        assert "ld.global.v4.f32" in text, name
        assert "st.global.v4.f32" in text, name
        assert not re.search(r"\.f64\b", text), name
        assert ".local" not in text, name
    halves = [text for name, text in kernels.items() if "float16" in name]
    assert halves
    assert all("ld.global.v4.u32" in text for text in halves)


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_no_kernel_of_points_spills(tmp_path: Path) -> None:
    said = nvcc(written("leaky_relu", tmp_path), "-Xptxas", "-v", "-c", "-o", str(tmp_path / "object"))
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", said)
    assert frames
    assert {n for frame in frames for n in frame} == {"0"}


def test_every_spec_has_kernels() -> None:
    for path in sorted((ROOT / "specs").glob("*.yaml"))[::4]:
        family = load_family(path)
        assert not refused(family)
        text = cuda_files(family)[f"kernel/{family.name}.cu"]
        assert text == cuda_files(load_family(path))[f"kernel/{family.name}.cu"]
        for op in family.ops:
            assert f"int32_t opc_{op.name}_cuda(const DLTensor *const *inputs" in text


def test_the_checks_are_those_of_the_cpu() -> None:
    family = load_family(ROOT / "specs" / "layer_norm.yaml")
    host, device = kernel_files(family)["kernel/layer_norm.cpp"], cuda_files(family)["kernel/layer_norm.cu"]
    for op in family.ops:
        begin = host[host.index(f"struct {op.name}_call {{") : host.index(f"int32_t opc_{op.name}_infer(")]
        own = begin[: begin.index("/* Says what the outputs of a call must look like")]
        assert own in device
