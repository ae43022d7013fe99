"""`opc package --target`: a wheel for another machine, whose libraries are that machine's, and are loaded under qemu."""

from __future__ import annotations

import io
import subprocess
import zipfile
from pathlib import Path

import pytest
from auditwheel.architecture import Architecture
from auditwheel.libc import Libc
from auditwheel.wheel_abi import analyze_wheel_abi
from elftools.elf.elffile import ELFFile

from opc.backends.kernel.target import AARCH64, INSTALL, cross_compiler, emulator, target
from tests.packaging.conftest import Opc
from tests.packaging.scaled import LIGHT

LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments) {
  void *library = dlopen(arguments[1], RTLD_NOW);
  printf("%s\\n", library != NULL && dlsym(library, arguments[2]) != NULL ? "loaded" : dlerror());
}
"""


@pytest.mark.rotating
def test_a_wheel_for_aarch64(opc: Opc, tmp_path: Path) -> None:
    if target().machine == AARCH64:
        pytest.skip("aarch64 is no other machine here")
    if not cross_compiler():
        pytest.skip(f"there is no compiler for {AARCH64}; install it: {INSTALL}")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/scaled.yaml").write_text(LIGHT)
    code, _, err = opc(tmp_path, "package", "--name", "my-ops", "-b", "onnxruntime", "--target", AARCH64)
    assert code == 0, err
    # All kernels for aarch64 are of one kind, which is no reason to warn.
    assert "warning" not in err
    assert not [*tmp_path.glob("generated/scaled/build/*.so")]
    (wheel,) = tmp_path.glob("dist/*.whl")
    assert wheel.name == "my_ops-0.1.0-cp311-abi3-manylinux_2_17_aarch64.whl"
    with zipfile.ZipFile(wheel) as held:
        libraries = {name: held.read(name) for name in held.namelist() if name.endswith(".so")}
    assert {ELFFile(io.BytesIO(data)).get_machine_arch() for data in libraries.values()} == {"AArch64"}
    found = analyze_wheel_abi(
        Libc.GLIBC, Architecture(AARCH64), wheel, frozenset(), disable_isa_ext_check=False, allow_graft=True
    )
    assert found.overall_policy.name == "manylinux_2_17_aarch64"

    runs = emulator()
    if runs is None:
        pytest.skip(f"its libraries were not loaded, since qemu-{AARCH64} is not installed; install it: {INSTALL}")
    (data,) = (data for name, data in libraries.items() if name.endswith("_ort.so"))
    (tmp_path / "library.so").write_bytes(data)
    compiler = (*cross_compiler(), "-x", "c", "-", "-ldl")
    subprocess.run([*compiler, "-o", tmp_path / "loader"], input=LOADER, text=True, check=True)
    # The libraries of that machine, which the cross compiler has brought.
    libc = subprocess.run([*cross_compiler(), "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True).stdout
    root = Path(libc.strip()).resolve().parents[1]
    call = [*runs, "-L", root, tmp_path / "loader", tmp_path / "library.so", "RegisterCustomOps"]
    assert subprocess.run(call, capture_output=True, text=True, check=True).stdout == "loaded\n"


def test_sources_are_for_no_machine(opc: Opc, tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/scaled.yaml").write_text(LIGHT)
    named = ("package", "--name", "my-ops", "-b", "onnxruntime")
    code, _, err = opc(tmp_path, *named, "--sdist", "--target", AARCH64)
    assert code == 2
    assert "--target is for wheels" in err
    code, _, err = opc(tmp_path, *named, "--target", "riscv64")
    assert code == 1
    assert "there is no target 'riscv64'\n  hint: the targets are x86_64, aarch64" in err
    assert not (tmp_path / "dist").exists()
