"""What holds for all tests: kernels are compiled for this machine alone. Tests of the other variants ask for them.

As in `opc.__main__`, garbage is looked for seldom: what is imported and compiled stays, and most of the rest goes without.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from opc.testing.touched import changed_files
from tests.rotation import of_turn

os.environ.setdefault("OPC_VARIANT", "native")
gc.set_threshold(100_000)
# A shared machine may stand still for seconds: how long a case takes to draw or to run says nothing of a test.
settings.register_profile("opc", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("opc")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--turn", type=int, help="of the tests marked `rotating`, run those of this turn; without it all")


def pytest_configure(config: pytest.Config) -> None:
    line = "rotating('file', seconds=10): runs in one of the turns (tests/rotation.py), with its file, and takes as long"
    config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    turn = config.getoption("--turn")
    if turn is not None:
        found = changed_files(Path(__file__).parent)
        items[:], left = of_turn(items, turn, () if found is None else found[1])
        config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Import the test modules in one worker after the other: in a fresh clone, what the first compiles the others read."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    lock = Path(__file__).parents[1] / ".pytest_cache" / "collection.lock"
    lock.parent.mkdir(exist_ok=True)
    with FileLock(lock):
        return (yield)


def pytest_collection_finish() -> None:
    """Leave out what all test modules import when garbage is asked for in full, as torch's compiler and pytest's end do."""
    gc.freeze()
