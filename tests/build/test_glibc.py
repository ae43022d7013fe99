"""Which glibc libraries need: what they name is read, and it is old."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from opc.build import glibc
from opc.build.builder import build_specs
from opc.cli.build import libraries
from tests.emit.test_runtime import UNARY

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this system has another C library")

SPEC = """
op: {name}
domain: tests
version: 1
doc: Functions of the language.
types: {{T: floating}}
inputs: {{x: 'T[...]'}}
outputs: {{y: 'T[...]'}}
gradient: none
kernel: |
  y = {value}
"""


@pytest.mark.parametrize(
    ("name", "value", "newest"),
    [
        ("own", " + ".join(f"{f}(x)" for f in (*UNARY, "sqrt", "rsqrt", "floor", "round", "abs")) + " + abs(x) ** x", (2, 17)),
        ("waves", "sin(x) + cos(x)", (2, 22)),
    ],
)
def test_libraries_load_on_old_systems(
    name: str, value: str, newest: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPC_VARIANT", "native")
    spec = tmp_path / f"{name}.yaml"
    spec.write_text(SPEC.format(name=name, value=value))
    (built,) = build_specs([spec], tmp_path, ["numpy", "onnxruntime"])
    assert built.package is not None
    found = libraries(built.package)
    assert len(found) == 2
    needs = glibc.needed(found)
    assert needs is not None
    assert (2, 0) < tuple(map(int, needs.split("."))) <= newest
    told = "".join(subprocess.run(["objdump", "-p", *found], check=True, capture_output=True, text=True).stdout)
    assert f"GLIBC_{needs}\n" in told


def test_what_is_no_library_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "short.so").write_bytes(b"\x7fELF\x02\x01")
    (tmp_path / "text.so").write_text("no library")
    assert glibc.needed([*tmp_path.iterdir(), tmp_path / "absent.so"]) is None
