"""What is generated compiles without warnings against the declarations of each version, and says what the spec says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from opc.backends.tensorrt import files
from opc.backends.tensorrt.backend import declarations
from opc.backends.tensorrt.library import signature
from opc.backends.tensorrt.names import plugin_names
from opc.backends.tensorrt.paths import VERSIONS
from tests.ruff import accepts

from .built import INCLUDE, ROOT, family_of, written

REPRESENTATIVE = ("depth_to_space", "max_pool2d")
"""A choice among texts; lists of numbers, flags and derived sizes."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    for op in REPRESENTATIVE:
        written(family_of(op), folder)
    return folder


@pytest.mark.parametrize("version", ["8.6", "11"])
def test_plugins_compile_without_warnings(package: Path, version: str) -> None:
    """In one file: the plugins of an op stand in a namespace of their own but for what they export."""
    op = REPRESENTATIVE[VERSIONS.index(version) % len(REPRESENTATIVE)]
    flags = ("-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}", "-I.")
    command = ["g++", *flags, *declarations(version), f"tensorrt/{op}_tensorrt.cpp"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_are_those_that_paddle_looks_up() -> None:
    names = plugin_names(family_of("leaky_relu"))
    assert (names.static, names.dynamic) == (
        "opc_nn_leaky_relu_paddle_trt_plugin",
        "opc_nn_leaky_relu_paddle_trt_dynamic_plugin",
    )
    assert (names.third, names.namespace) == ("LeakyRelu", "")


def test_signature_differs_by_attributes() -> None:
    assert len({signature(family_of(op)) for op in ("relu", "leaky_relu", "softmax", "conv2d")}) == 4


def test_python_is_well_formatted(package: Path) -> None:
    made = sorted((package / "tensorrt").glob("*.py"))
    assert len(made) == 3
    accepts("check", *made)
    accepts("format", "--check", package / "tensorrt" / "support.py")


def test_headers_of_tensorrt_are_not_part_of_a_package() -> None:
    made = files.files(family_of("softmax"))
    assert not any("NvInfer" in path for path in made)
    assert "emulation" not in "".join(made.values())


def test_declarations_are_those_of_the_table() -> None:
    """The virtual functions of each interface, in order, in each version: the table was made from the public headers."""
    folder = ROOT / "runtime" / "emulation" / "tensorrt"
    table = yaml.safe_load((folder / "api" / "tensorrt.yaml").read_text())
    for version in VERSIONS:
        command = ["g++", "-E", "-P", "-x", "c++", *declarations(version), "-"]
        text = subprocess.run(command, input='#include "NvInferRuntime.h"\n', capture_output=True, text=True, check=True).stdout
        found = _interfaces(text)
        expected = {name: versions[version] for name, versions in table["interfaces"].items() if version in versions}
        assert {name: functions for name, functions in found.items() if functions} == expected, version


def _interfaces(text: str) -> dict[str, list[str]]:
    """Return the virtual functions that each class declares first, in order; `~` is the destructor of one without a base."""
    found: dict[str, list[str]] = {}
    text = text[text.index("namespace nvinfer1") :]
    for match in re.finditer(r"class (\w+)( : public [\w:]+)?\s*\{", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        names = re.findall(r"virtual\s+[^;{()]*?(~?\w+)\s*\(", text[match.end() : at])
        # A second version of an interface adds to the first.
        found.setdefault(match[1], ["~" if n[0] == "~" else n for n in names if not (match[2] and n[0] == "~")])
    return found
