"""Plugins of an op on opc's host and on TensorRT's own registry, whose library the extra `tensorrt` installs."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from opc.backends.tensorrt.paths import VERSIONS, library_path
from opc.ir.op import Family
from opc.pipeline import load_family
from tests.narrow import narrow, only

from .built import build, family_of, run_apart, written

pytestmark = pytest.mark.rotating("file", seconds=11)

CALLS = """
import ctypes, sys
from pathlib import Path
import numpy as np
from opc.backends.base import OpError
from opc.backends.tensorrt.paths import library_path
from opc.backends.tensorrt.names import plugin_names
from opc.backends.tensorrt.session import Host
from opc.pipeline import load_family

spec, package, built, version, real = sys.argv[1:]
if real:
    library = ctypes.CDLL(real, mode=ctypes.RTLD_GLOBAL)
    print("TensorRT", library.getInferLibVersion())
family = load_family(Path(spec))
host = Host(Path(built), Path(package) / library_path(family, version), version)
names = plugin_names(family)
kind, integer = host.integer
x = np.random.default_rng(0).standard_normal((4, 3, 5)).astype(np.float32)
for number, name in enumerate((names.static, names.dynamic, names.third)[: 2 if version == "8.6" else 3]):
    for axis in (0, -1):
        y = host.run(number, name, [("axis", kind, np.array([axis], integer))], [x], 1)[0]
        e = np.exp(x - x.max(axis, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(axis, keepdims=True), rtol=1e-5)
    y = host.run(number, name, [("axis", 3, np.array([0], np.int8))], [x.astype(np.float16)], 1)[0]
    assert y.dtype == np.float16
    print("ran", number)
    for field in (("axis", kind, np.array([7], integer)), ("axis", 1, np.array([0.5], np.float32)),
                  ("axis", kind, np.array([0, 1], integer))):
        try:
            host.run(number, name, [field], [x], 1)
        except OpError as error:
            print("refused", error)
# A batch of four samples, whose sizes the plugin for static shapes does not see.
y = host.run(0, names.static, [("axis", kind, np.array([0], integer))], [x], 1, batch=4)[0]
e = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
print("again", host.functions.emulation_load(str(Path(package) / library_path(family, version)).encode()))
"""

PYTHON = """
import sys
from pathlib import Path
import numpy as np
import tensorrt_dispatch_bindings as trt

# This module is without a builder, and lacks what belongs to one.
if not hasattr(trt, "TensorFormat"):
    trt.TensorFormat = type("TensorFormat", (), {"LINEAR": 0})
sys.modules["tensorrt"] = trt
package, library = map(Path, sys.argv[1:])
sys.path.insert(0, str(package / "tensorrt"))
import softmax_plugin

creator = softmax_plugin.SoftmaxPluginCreator(library)
registry = trt.get_plugin_registry()
assert registry.register_creator(creator, "")
assert registry.get_creator("Softmax", "1", "") is creator
field = trt.PluginField("axis", np.array([1], np.int64), trt.PluginFieldType.INT64)
plugin = creator.create_plugin("own", trt.PluginFieldCollection([field]), trt.TensorRTPhase.BUILD)
assert plugin.attributes.axis == 1
assert plugin.get_output_data_types([trt.DataType.HALF]) == [trt.DataType.HALF]


class Desc:
    def __init__(self, dims):
        self.type, self.dims, self.format = trt.DataType.FLOAT, dims, trt.TensorFormat.LINEAR


class Varying:
    def __init__(self, dims):
        self.desc, self.max = Desc([-1] * len(dims)), dims


dims = [2, 3, 2]
both = [Varying(dims), Varying(dims)]
assert plugin.supports_format_combination(1, both, 1)
both[1].desc.type = trt.DataType.HALF
assert not plugin.supports_format_combination(1, both, 1)
both[1].desc.type = trt.DataType.FLOAT
plugin.configure_plugin(both[:1], both[1:])
assert plugin.get_workspace_size(both[:1], both[1:]) >= 0
saved = creator.create_plugin("own", plugin.get_fields_to_serialize(), trt.TensorRTPhase.RUNTIME)
run = saved.attach_to_context(None)
assert run.attributes.axis == 1
x = np.arange(12, dtype=np.float32)
y = np.zeros_like(x)
run.on_shape_change([Desc(dims)], [Desc(dims)])
run.enqueue([Desc(dims)], [Desc(dims)], [x.ctypes.data], [y.ctypes.data], 0, 0)
e = np.exp(x.reshape(dims) - x.reshape(dims).max(1, keepdims=True))
np.testing.assert_allclose(y.reshape(dims), e / e.sum(1, keepdims=True), rtol=1e-5)
for wrong in ({"axis": 5}, {"axis": 0.5}):
    value = np.array([wrong["axis"]])
    kind = trt.PluginFieldType.INT64 if value.dtype == np.int64 else trt.PluginFieldType.FLOAT64
    fields = trt.PluginFieldCollection([trt.PluginField("axis", value, kind)])
    try:
        made = creator.create_plugin("own", fields, trt.TensorRTPhase.BUILD)
        made.on_shape_change([Desc(dims)], [Desc(dims)])
    except ValueError as error:
        print("refused", error)
"""

SEVERAL = """
import ctypes
import sys
import tensorrt_dispatch_bindings as trt

sys.modules["tensorrt"] = trt
sys.path[:0] = sys.argv[1:]
import gather_plugin
import softmax_plugin


def loaded(path):
    print(path)
    raise OSError


ctypes.CDLL = loaded
for module, kind in ((softmax_plugin, "Softmax"), (gather_plugin, "Gather")):
    try:
        getattr(module, kind + "Plugin")()
    except OSError:
        pass
"""

REFUSED = """\
refused softmax: axis = 7 is out of range: x has 3 axes, so it must be from -3 to 2
refused softmax: the field axis must be a whole number
refused softmax: the field axis has 2 values, but must have 1
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return narrow("softmax", tmp_path_factory.mktemp("specs"), "float32, float16")


@pytest.fixture(scope="module")
def family(spec: Path) -> Family:
    """The op alone, which is what plugins run."""
    return only(load_family(spec))


@pytest.fixture(scope="module")
def package(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(family, tmp_path_factory.mktemp("package"))


def real_library(version: str) -> str:
    """Return the path of TensorRT's library of a major version, whose registry is the real one: the extra `tensorrt` has it."""
    found = find_spec("tensorrt_dispatch_libs")
    assert found is not None
    paths = [Path(folder, f"libnvinfer_dispatch.so.{version}") for folder in found.submodule_search_locations or ()]
    return next(str(path) for path in paths if path.exists())


@pytest.mark.parametrize("version", ["8.6", "11"])  # the proof runs 10
def test_every_kind_of_plugin_on_the_emulated_registry(spec: Path, family: Family, package: Path, version: str) -> None:
    host = build(family, package, version)
    kinds = range(2 if version == "8.6" else 3)
    assert run_apart(CALLS, spec, package, host, version, "") == "".join(f"ran {k}\n{REFUSED}" for k in kinds) + "again 0\n"


@pytest.mark.parametrize("version", ["10", "11"])
def test_every_kind_of_plugin_on_the_real_registry(spec: Path, family: Family, package: Path, version: str) -> None:
    """Creators, plugins and their vtables are held against the library; it gives messages to a logger of its own."""
    library = real_library(version)
    host = build(family, package, version)
    found = run_apart(CALLS, spec, package, host, version, library)
    assert found.startswith(f"TensorRT {version}")
    assert [line for line in found.splitlines() if line.startswith(("ran", "again"))] == ["ran 0", "ran 1", "ran 2", "again 0"]


def test_a_library_needs_nothing_of_tensorrt_but_its_registry(family: Family, package: Path) -> None:
    build(family, package, "11")
    library = package / library_path(family, "11")
    undefined = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in undefined.splitlines()]
    own = [n for n in names if "@" not in n and not n.startswith(("_ITM", "__gmon"))]
    assert own == ["getPluginRegistry"]
    defined = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in defined.splitlines()}
    assert {"getCreators", "setLoggerFinder", "opc_softmax_register_tensorrt", "opc_softmax_tensorrt_status"} <= exported


def test_the_plugin_class_on_tensorrts_python(family: Family, package: Path) -> None:
    build(family, package, "10")
    library = package / library_path(family, "10")
    assert run_apart(PYTHON, package, library).splitlines() == [
        "refused softmax: axis = 5 is out of range: x has 3 axes, so it must be from -3 to 2",
        "refused softmax: the field axis must be a whole number",
    ]


def test_plugin_classes_of_several_ops_load_a_library_each(tmp_path: Path) -> None:
    folders = [tmp_path / name / "tensorrt" for name in ("softmax", "gather")]
    for folder in folders:
        written(family_of(folder.parent.name), folder.parent)
    loaded = [str(f / "build" / f"lib{f.parent.name}_tensorrt.so") for f in folders]
    assert run_apart(SEVERAL, *folders).splitlines() == loaded


def test_versions_have_declarations() -> None:
    assert VERSIONS == ("8.6", "10", "11")
