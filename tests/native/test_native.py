"""Native code from the spec to the call: where its lines land, what it has by name, its errors, its libraries, its proof."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest

from opc.backends import package as packages
from opc.backends.kernel import libraries
from opc.build import builder
from opc.diagnostics import SpecError
from opc.emit.kernel.native import native_files
from opc.ir.op import Native
from opc.pipeline import compile_text
from opc.testing.results import Status
from opc.testing.runner import run_tests

ROOT = Path(__file__).parents[2]

# Everything native code has by name; `kernel` says what it must compute.
EVERYTHING = """\
op: everything
domain: tests
version: 1
doc: Every kind of operand and attribute.
types: {T: floating, I: [int32, int64]}
inputs: {x: 'T[*A, N, *B]', 'w?': 'T[N]', at: 'I[N]'}
attributes:
  kind: {type: str, values: [plain, twice], default: plain}
  label: {type: str, default: ''}
  scale: float
  weights: {type: 'float[2]', default: [1.0, 2.0]}
  flag: {type: bool, default: false}
  axis: {type: axis, dim: N, default: -1}
  offset: {type: 'int', default: 0}
outputs: {y: 'T[*A, N, *B]', total: 'acc(T)[N]', where: 'I[N]', half: 'T[H]'}
shape: {H: N // 2}
kernel: |
  s = scale * weights[0] * (2 if kind == 'twice' else 1) + (weights[1] if flag else 0)
  y[*A, n, *B] = x[*A, n, *B] * s * (w[n] if present(w) else 1)
  total[n] = sum[*A, *B](x[*A, n, *B])
  where[n] = at[n] + n + offset
  half[h] = 0
gradient: none
native:
  cpp:
    include: [cmath, string]
    declarations: |
      int unused_here(int value);
    code: |
      const double s = scale * weights[0] * (kind == "twice" ? 2 : 1) + (flag ? weights[1] : 0);
      OPC_CHECK(label != "refuse", "the label is %s", std::string(label).c_str());
      if (label == "throw") throw std::out_of_range("thrown");
      if (label == "strange") throw 3;
      int64_t inner = 1;
      for (int32_t i = axis + 1; i < x.rank(); ++i) inner *= x.size(i);
      opc_host.parallel_for(x.count(), 1024, [&](int64_t begin, int64_t end) {
        if (label == "threads") throw opc::error("thrown on a thread");
        for (int64_t i = begin; i < end; ++i) {
          const opc::compute_t<T> factor = s * (w ? w(i / inner % N) : T(1));
          y[i] = x[i] * factor;
        }
      });
      for (int64_t n = 0; n < N; ++n) total[n] = 0;
      const auto elements = x.contiguous();
      for (int64_t i = 0; i < x.count(); ++i) total(i / inner % N) += elements[i];
      for (int64_t n = 0; n < N; ++n) where(n) = at(n) + n + offset;
      for (int64_t h = 0; h < H; ++h) half[h] = 0;
"""


def build(text: str, folder: Path, backend: str = "numpy") -> builder.Built:
    """Write a spec to a folder and build it there."""
    spec = folder / f"{re.match('op: (.*)', text)[1]}.yaml"
    spec.write_text(text)
    (built,) = builder.build_specs([spec], folder / "out", [backend])
    return built


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    built = build(EVERYTHING, tmp_path_factory.mktemp("everything"))
    assert built.package is not None
    assert built.ok, built.diagnostics[0].render()
    return packages.load(built.package, "numpy")


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_operands_attributes_and_sizes_have_their_names(everything: ModuleType, dtype: type) -> None:
    x = np.arange(2 * 3 * 5 * 700, dtype=np.float64).reshape(2, 3, 5, 700) % 7 - 3
    x = x[:, ::-1].swapaxes(2, 3).astype(dtype)  # negative and exchanged strides
    w, at = np.array([1, 2, 4], dtype), np.array([10, 20, 30], np.int32)
    y, total, where, half = everything.everything(
        x, w, at, scale=0.5, weights=(3.0, 0.25), kind="twice", flag=True, axis=1, offset=5
    )
    np.testing.assert_array_equal(y, (x * 3.25 * w[:, None, None]).astype(dtype))
    np.testing.assert_array_equal(total, x.astype(np.float64).sum((0, 2, 3)).astype(total.dtype))
    assert total.dtype == (np.float64 if dtype is np.float64 else np.float32)
    assert where.tolist() == [15, 26, 37]
    assert where.dtype == np.int32
    assert half.shape == (1,)
    y, *_ = everything.everything(x, None, at, scale=2.0, axis=1)
    np.testing.assert_array_equal(y, (x * 2.0).astype(dtype))


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("refuse", "everything: the label is refuse"),
        ("throw", "everything: thrown"),
        ("threads", "everything: thrown on a thread"),
        ("strange", "everything: the native code threw something that is no std::exception"),
    ],
)
def test_what_the_code_throws_is_the_frameworks_error(everything: ModuleType, label: str, message: str) -> None:
    x, at = np.ones((4, 5000), np.float32), np.zeros(4, np.int64)
    with pytest.raises(ValueError, match=re.escape(message)):
        everything.everything(x, None, at, scale=1.0, label=label, axis=0)


def test_calls_are_checked_before_the_code_runs(everything: ModuleType) -> None:
    at = np.zeros(4, np.int64)
    with pytest.raises(ValueError, match="N is 4 in x, but 3 in at"):
        everything.everything(np.ones((4, 2)), None, at[:3], scale=1.0, axis=0)
    y, total, *_ = everything.everything(np.ones((0, 4)), None, at, scale=1.0)
    assert y.shape == (0, 4)
    assert total.tolist() == [0, 0, 0, 0]


def test_lines_of_code_stand_where_the_spec_has_them() -> None:
    text = EVERYTHING + "  cuda: {code: 'launch<<<1, 2>>>(x.data());', include: [cuda_fp16.h]}\n"
    family = compile_text(text, "folder/everything.yaml")
    lines = text.split("\n")
    for target in ("cpp", "cuda"):
        ((path, source),) = native_files(family, target).items()
        name, line, code = "", 0, []
        for emitted in source.split("\n"):
            if match := re.fullmatch(r'#line (\d+) "(.*)"', emitted):
                line, name = int(match[1]) - 1, match[2]
            elif name == "everything.yaml" and emitted:
                column = len(emitted) - len(emitted.lstrip())
                assert lines[line - 1][column:].startswith(emitted.strip())
                code.append(emitted)
            elif name and emitted:
                assert source.split("\n")[line - 1] == emitted, path
            line += 1
        native = family.native_for(target)
        assert native is not None
        assert len(code) == len(native.code) + len(native.declarations)
    assert path == "cuda/everything_native.cu"
    assert "No backend of this version of opc compiles this file" in source
    assert "#include <cuda_fp16.h>" in source


SMALL = """\
op: small
domain: tests
version: 1
doc: A copy.
types: {T: [float32, float64]}
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: y = x
gradient: none
native:
  cpp:
    include: [vector]
    code: |
      for (int64_t i = 0; i < x.count(); ++i) {
        y[i] = x[i];
      }
"""


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("y[i] = x[i];", "y[i] = z[i];", (15, 16, "z"), "‘z’ was not declared"),
        ("x.count()", "x.cuont()", (14, 33, "c"), "has no member named ‘cuont’"),
        ("y[i] = x[i];", "std::vector<int &> v; y[i] = x[i];", (15, 28, "v"), "forming pointer to reference type"),
    ],
)
def test_compiler_errors_point_into_the_spec(
    tmp_path: Path, old: str, new: str, place: tuple[int, int, str], message: str
) -> None:
    text = SMALL.replace(old, new)
    built = build(text, tmp_path)
    first, line = built.diagnostics[0], text.split("\n")[place[0] - 1]
    assert (first.span.line, first.span.column) == place[:2], first.render()
    assert first.span.source is not None
    assert first.span.source.name == str(tmp_path / "small.yaml")
    assert message in first.message
    assert f"small.yaml:{place[0]}:{place[1]}: error: the compiler says: " in first.render()
    shown = first.render().split("\n")
    assert shown[1] == f"  {line}"
    assert line[shown[2].index("^") - 2] == place[2]
    # A template says the same for float and double; once is enough.
    assert len(built.diagnostics) == len({d.span for d in built.diagnostics})


def test_a_missing_package_is_told_with_how_to_install_it(tmp_path: Path) -> None:
    built = build(SMALL.replace("include: [vector]", "packages: [no-such-package-opc]"), tmp_path)
    assert built.diagnostics[0].message == "the package no-such-package-opc, which the native code needs, is not installed"
    assert built.diagnostics[0].hint == "pip install no-such-package-opc"
    assert built.diagnostics[0].render().startswith(f"{tmp_path / 'small.yaml'}:11:3: error: ")


def test_a_header_that_the_package_lacks_is_told(tmp_path: Path) -> None:
    built = build(SMALL.replace("include: [vector]", "packages: [cmeel-eigen]\n    include: [Eigen/None]"), tmp_path)
    assert built.diagnostics[0].message == "none of the headers Eigen/None is in the package cmeel-eigen"


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is not installed")
def test_an_unknown_module_of_pkg_config_is_told(tmp_path: Path) -> None:
    built = build(SMALL.replace("include: [vector]", "pkg_config: [no-such-module-opc]"), tmp_path)
    assert "pkg-config does not know no-such-module-opc" in built.diagnostics[0].message


def test_missing_pkg_config_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SpecError, match="pkg-config, which the native code asks for its libraries, is not installed"):
        libraries.find(Native("cpp", (), pkg_config=("some",)))


def test_headers_and_libraries_of_a_package_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("some_lib/include/deep/some.h", "some_lib/vendored/include/deep/some.h", "some_lib/lib/libsome.so"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    info = tmp_path / "some_lib-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-lib\nVersion: 1.0\n")
    files = [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*")) if p.is_file()]
    (info / "RECORD").write_text("".join(f"{f},,\n" for f in [*files, "some_lib-1.0.dist-info/RECORD"]))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    found = libraries.find(Native("cpp", (), include=("deep/some.h",), link=("some", "m"), packages=("some-lib",)))
    folder = tmp_path.resolve() / "some_lib"
    assert found.compile == ("-isystem", str(folder / "include"))
    assert found.link == (str(folder / "lib/libsome.so"), f"-Wl,-rpath,{folder / 'lib'}", "-lm")
    assert found.files == (info / "RECORD",)


@pytest.mark.rotating
def test_native_code_that_is_wrong_fails_its_proof(tmp_path: Path) -> None:
    spec = tmp_path / "small.yaml"
    spec.write_text(SMALL.replace("y[i] = x[i];", "y[i] = x[i] * (1 + 1e-6);"))
    report = run_tests([spec], ["numpy"], tmp_path / "out", 1)
    failures = report.cell("small", "numpy").failures
    assert {f.kind for f in failures} == {"forward"}
    assert "error over bound" in failures[0].message


@pytest.mark.rotating
def test_an_op_without_kernel_is_held_to_its_reference(tmp_path: Path) -> None:
    text = """\
op: NAME
domain: tests
version: 1
doc: x * z, and the sum of z.
types: {T: [float32, float64]}
inputs: {x: 'T[N]', z: 'T[N]'}
outputs: {y: 'T[N]'}
native:
  cpp:
    code: |
      for (int64_t i = 0; i < N; ++i) y(i) = x(i) * z(i) + ERROR;
gradient:
  body: |
    d_x[i] = d_y[i] * z[i]
    d_z[i] = d_y[i] * SLOPE * x[i]
reference: {torch: x * z}
"""
    variants = {
        "right": ("0", "1", set()),
        "wrong": ("T(0.001) * x(i)", "1", {"forward"}),
        "steep": ("0", "1.001", {"gradient"}),
    }
    specs = []
    for name, (error, slope, _) in variants.items():
        specs.append(tmp_path / f"{name}.yaml")
        specs[-1].write_text(text.replace("NAME", name).replace("ERROR", error).replace("SLOPE", slope))
    report = run_tests(specs, ["numpy"], tmp_path / "out", 1)
    for name, (_, _, wrong) in variants.items():
        failed = {r.kind.split()[0] for r in report.results if r.op == name and r.status is Status.FAILED}
        assert wrong <= failed <= wrong | {"second", "jvp"}, failed
        assert wrong or report.cell(name, "numpy").kinds["forward"] > 20
        assert report.cell(name, "numpy").kinds["derived"] > 20


def test_other_peoples_code_is_not_differentiated_by_accident() -> None:
    family = compile_text((ROOT / "specs" / "native" / "inverse.yaml").read_text(), "inverse.yaml")
    assert family.forward.opaque
    assert [op.name for op in family.ops] == [
        f"inverse{end}" for end in ("", "_backward", "_backward_backward", "_jvp", "_backward_jvp")
    ]
