"""The test that `opc init` writes holds of an installed package of whatever the language allows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging.conftest import Opc
from tests.packaging.environments import ROOT, install, lend, make, run

BLOCKS = re.findall(r"^```yaml\n(op: .*?)^```", (ROOT / "docs/language.md").read_text(), re.MULTILINE | re.DOTALL)
KINDS = {
    "several ranks": "average_pool",
    "several operands": "concatenate",
    "several outputs": "cut",
    "names that Python keeps": "scale",
    "whole numbers of 8 bits": "pack_pairs",
    "whole numbers of 4 bits": "four_bits",
    "floating numbers of 8 bits": "quantised_product",
    "sizes that data tells": "positive",
    "a dtype that the call names": "indicator",
}
"""Blocks of the language's page, by what a Python program can't see in their YAML."""
ONE_TYPE = {"floating": "[float64]", "float8": "[float8_e5m2]"}

ROUNDED = """
op: rounded
domain: tests
version: 1
doc: What float16 makes of 0.3 is below it, and what it makes of whole numbers is them; some are infinite, one is no number.
types: {T: [float16]}
inputs: {x: 'T[N]'}
attributes: {by: {type: float, default: .inf}}
outputs: {count: 'int32[N]', y: 'T[N]'}
gradient: none
kernel: |
  count = cast(int32, x >= 0.3)
  y = minimum(x, by)
examples:
  - {x: [0.3, 2.0], count: [1, 1], y: [0.3, 2.0]}
  - {x: [.inf, .nan, -.inf, 3.0], by: 2.5, count: [1, 0, 0, 1], y: [2.5, .nan, -.inf, 2.5]}
"""


def specs() -> dict[str, str]:
    """Return specs of every kind by file name, each for few element types: they are compiled."""
    found = {op: block for block in BLOCKS if (op := block.split()[1]) in KINDS.values()}
    assert {*found} == {*KINDS.values()}
    for op, text in found.items():
        for several, one in ONE_TYPE.items():
            text = text.replace(f"T: {several}", f"T: {one}")
        found[op] = text
    return {f"{op}.yaml": text for op, text in (found | {"rounded": ROUNDED}).items()}


def members(spec: dict[str, Any]) -> int:
    """Return of how many ops a spec is."""
    (numbers,) = [v for v in (spec.get("ranks") or spec.get("counts") or {"": [0]}).values() if isinstance(v, list)]
    return len(numbers)


@pytest.mark.rotating
def test_the_written_test_holds_of_every_kind(opc: Opc, tmp_path: Path) -> None:
    assert opc(tmp_path, "init", "my-ops", "--backend", "numpy")[0] == 0
    project, written = tmp_path / "my-ops", specs()
    for name, text in written.items():
        (project / "specs" / name).write_text(text)
    code, _, err = opc(project, "package")
    assert code == 0, err
    (wheel,) = (project / "dist").glob("*.whl")
    python = tmp_path / "fresh/bin/python"
    site = make(tmp_path / "fresh")
    lend(site, "numpy", "ml_dtypes", "cffi", "pycparser", "pytest", "pluggy", "iniconfig", "packaging", "pygments")
    install(wheel, python)
    alone = {"PATH": str(tmp_path), "PYTHONPATH": "", "PYTEST_ADDOPTS": ""}
    found = run(python, "-m", "pytest", "-p", "no:cacheprovider", "-v", project / "tests", cwd=tmp_path, environment=alone)
    every = [yaml.safe_load(text) for text in written.values()]
    # The first op of the project has an example too.
    assert len(re.findall(r"test_example\S* PASSED", found)) == 1 + sum(len(spec["examples"]) for spec in every)
    assert "test_every_op_is_there PASSED" in found
    # What is told of the ops is looked at, and so is what they answer: a package that answers otherwise fails.
    ops = run(python, "-c", "import my_ops; print(len(my_ops.__all__))", cwd=tmp_path, environment=alone)
    assert int(ops) == 1 + sum(map(members, every))
    (site / "my_ops/_ops/four_bits/numpy/__init__.py").write_text(
        "def four_bits(x, steps):\n    return x, x\n\n\ndef set_num_threads(count):\n    pass\n"
    )
    arguments = ["-q", "-p", "no:cacheprovider", "-k", "four", str(project / "tests")]
    command = f"import sys, pytest; sys.exit(pytest.main({arguments}) != 1)"
    assert "1 failed" in run(python, "-c", command, cwd=tmp_path, environment=alone)
