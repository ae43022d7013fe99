"""The checks of the proof see what they are there for: an op that PopART would outline with another, though the two differ.

The library is built by CMake; the pages build theirs by make.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.build.toolchain import runtime_include
from tests.backends.popart.package import generated
from tests.emulation.sdk import shell

SPEC = Path(__file__).parents[3] / "specs" / "leaky_relu.yaml"
SCRIPT = f"""
from pathlib import Path
from opc.backends.popart.backend import PopartBackend
from opc.pipeline import load_family

backend = PopartBackend()
for check in backend.checks(backend.session(load_family(Path({str(SPEC)!r})), Path("leaky_relu"))):
    try:
        check.run()
    except AssertionError:
        print("failed:", check.name)
    else:
        print("passed:", check.name)
"""


@pytest.mark.rotating
def test_numbers_that_lose_their_last_digits_are_seen(tmp_path: Path) -> None:
    package = generated(SPEC, "popart", tmp_path)
    source = package / "popart" / "leaky_relu_custom_op.cpp"
    # As PopART itself writes numbers for what it tells ops apart by.
    source.write_text(source.read_text().replace("opc::ipu::exact(alpha)", "alpha"))
    (tmp_path / "checks.py").write_text(SCRIPT)
    options = f"-DCMAKE_CXX_FLAGS=-O0 -DCMAKE_LIBRARY_OUTPUT_DIRECTORY={package}/build -DOPC_RUNTIME_INCLUDE={runtime_include()}"
    made = f"cmake -S leaky_relu/popart -B cmake {options} >made.txt && cmake --build cmake >>made.txt"
    said = shell(f"{made} && python checks.py", tmp_path).splitlines()
    assert [line for line in said if line.startswith("failed")] == ["failed: outlined apart"]
    assert "passed: numbers as text" in said
    assert "passed: in place" in said
