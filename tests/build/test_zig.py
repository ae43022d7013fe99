"""ziglang's clang++ takes GCC's arguments."""

from __future__ import annotations

import pytest

from opc.build import toolchain, zig
from opc.config import Config


def test_arguments_are_spelled_as_zig_does() -> None:
    given = ["-c", "-march=x86-64-v3", "-mprefer-vector-width=512", "-o", "a-b.o"]
    assert zig.translated(given)[-5:] == ["-c", "-march=x86_64_v3", *given[2:]]


def test_another_links() -> None:
    assert zig.translated(["-shared", "a.o", "-o", "a.so"]) == ["g++", "-shared", "a.o", "-o", "a.so"]


def test_it_is_a_compiler_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", " ".join(zig.COMMAND))
    found = toolchain.find(Config())
    assert "clang version" in found.identity
    assert not found.precompiles
