"""The fixture that puts the make-believe backend in place of the real ones."""

import pytest

from tests.build.fakes import FakeBackend, install


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """The only registered backend, over the make-believe kernel."""
    return install(monkeypatch.setattr)
