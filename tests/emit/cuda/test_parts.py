"""Sources that are compiled in parts: each kernel is in one of them, and together they are the library that the whole is."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import nvcc_flags
from opc.emit.cuda import parts
from opc.emit.cuda.files import cuda_source
from opc.emit.kernel.files import kernel_files
from opc.pipeline import load_family
from tests.gpu import gates

SPECS = Path(__file__).parents[3] / "specs"


def test_a_part_has_its_share() -> None:
    weights = {"a": 40, "b": 20, "c": 20, "d": 10, "e": 1}
    found = parts.in_parts(weights)
    assert sorted(name for part in found for name in part) == sorted(weights)
    assert found[0] == ("a",)
    assert all(sum(weights[name] for name in part) <= 40 for part in found)
    assert not parts.in_parts({"a": parts.INSTANCES, "b": parts.INSTANCES})
    assert len(parts.in_parts(dict.fromkeys(map(str, range(1000)), 7))) == parts.MOST


@pytest.mark.parametrize("name", ["batch_norm", "attention", "matmul"])
def test_each_kernel_is_in_one_part(name: str) -> None:
    source = cuda_source(load_family(SPECS / f"{name}.yaml"))
    text = source.files[f"kernel/{name}.cu"]
    assert source.parts > 2
    begin, *found = re.split(r"#if OPC_HAS_PART\(\d+\)\n", text)
    assert len(found) == source.parts
    declared = re.findall(r"extern void \(\*const (\w+_kernels)\b", begin)
    defined = [name for part in found for name in re.findall(r"(?<!extern )void \(\*const (\w+_kernels)\b", part)]
    assert declared
    assert sorted(defined) == sorted(declared)
    kernels = [name for part in found for name in re.findall(r"^OPC_\w*KERNEL\(.*\) (\w+)\(OPC_PARAMETER", part, re.MULTILINE)]
    assert len(kernels) == len(set(kernels))
    assert {f"{kernel}_kernels" for kernel in kernels} <= set(declared)


def test_what_compiles_soon_is_one_source() -> None:
    source = cuda_source(load_family(SPECS / "leaky_relu.yaml"))
    assert source.parts == 1
    assert "OPC_HAS_PART" not in source.files["kernel/leaky_relu.cu"]


@pytest.mark.rotating(seconds=30)
@pytest.mark.skipif(toolkit.nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize("name", ["batch_norm", "linear_recurrence"])
def test_parts_are_the_whole(name: str, tmp_path: Path) -> None:
    """By nvcc: the same kernels as in the whole source, each once, and a library that lacks nothing."""
    family = load_family(SPECS / f"{name}.yaml")
    source = cuda_source(family)
    for path, text in {**kernel_files(family), **source.files}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    command = (toolkit.nvcc() or "nvcc", *nvcc_flags(("-arch=sm_90",)), "-Werror", "all-warnings", f"-I{toolkit.include()}")

    def made(number: int | None, kind: str) -> Path:
        path = (tmp_path / f"part_{number}").with_suffix({"-c": ".o", "-ptx": ".ptx"}[kind])
        part = () if number is None else (f"-DOPC_PART={number}",)
        subprocess.run([*command, *part, kind, str(tmp_path / f"kernel/{name}.cu"), "-o", str(path)], check=True)
        return path

    of_parts = [gates.kernels(made(n, "-ptx").read_text()) for n in range(source.parts)]
    whole = gates.kernels(made(None, "-ptx").read_text())
    assert sorted(kernel for part in of_parts for kernel in part) == sorted(whole)
    objects = [str(made(n, "-c")) for n in range(source.parts)]
    library = tmp_path / "library.so"
    linked = [command[0], "-arch=sm_90", "-shared", "-cudart=static", "-Xlinker", "--no-undefined", *objects, "-o", str(library)]
    subprocess.run([*linked, *toolkit.libraries(command[0])], check=True)
    loaded = ctypes.CDLL(str(library))
    assert all(hasattr(loaded, f"opc_{op.name}_cuda") for op in family.ops)
