"""Operators in live Paddle, in a process of the interpreter that has it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import opc
from opc.backends import environments

SCRIPT = Path(__file__).with_name("in_paddle.py")
TESTS = (
    "every_attribute_arrives",
    "wrong_attributes_are_refused",
    "strided_inputs",
    "gradients_of_some_inputs",
    "integers_are_constants",
    "nothing_is_recorded_without_gradients",
    "both_modes_of_to_static",
    "third_order_is_refused",
    "another_library_is_refused",
)


@pytest.mark.rotating(seconds=10)
def test_in_paddle(package: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(opc.__file__).parents[1]), "OMP_WAIT_POLICY": "passive"}
    command = [str(environments.interpreter("paddle")), "-W", "ignore", str(SCRIPT), str(package), *TESTS]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {}
