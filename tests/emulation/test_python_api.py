"""The Python packages of the emulation and the tables of their API say the same."""

from pathlib import Path

import pytest

from tests.emulation.sdk import EMULATION, shell


@pytest.mark.parametrize("package", ["popart", "popxl", "poprt"])
def test_table(package: str, tmp_path: Path) -> None:
    # Nothing is printed but that it is emulated.
    printed = shell(f"python {EMULATION / 'api' / 'python_declarations.py'} {package}", tmp_path)
    assert printed == "popart: emulated on the CPU, no IPU is used\n"
