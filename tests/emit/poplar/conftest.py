"""What all tests that compile bodies and codelets share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emit.poplar.body_library import precompiled


@pytest.fixture(scope="session")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers of bodies, compiled ahead."""
    return precompiled(tmp_path_factory.mktemp("headers"))
