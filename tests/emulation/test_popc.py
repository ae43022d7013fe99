"""popc: which classes of a source are vertices, what their fields are, and what it says of a source that isn't one."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulation.sdk import EMULATION

POPC = EMULATION / "bin" / "popc"

spec = importlib.util.spec_from_loader("popc", importlib.machinery.SourceFileLoader("popc", str(POPC)))
assert spec is not None
assert spec.loader is not None
popc = importlib.util.module_from_spec(spec)
sys.modules["popc"] = popc  # Its dataclasses look there for their module.
sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
spec.loader.exec_module(popc)
sys.dont_write_bytecode = before

SMALL = """
#include <poplar/Vertex.hpp>
class Copy : public poplar::Vertex {
public:
  poplar::Input<poplar::Vector<float>> x;
  poplar::Output<poplar::Vector<float>> y;
  void compute() { for (unsigned i = 0; i < x.size(); ++i) y[i] = x[i]; }
};
"""


def found(source: str) -> list[tuple[str, list[str], list[str]]]:
    """Return name, fields and instances of each vertex of a source."""
    return [(c.name, c.fields, c.instances) for c in popc.parse(source)]


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(POPC), *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_fields_are_the_data_of_the_class() -> None:
    source = """
    struct A final : Vertex {
      using T = float;
      typedef int I;
      static const int k = 3;
      static constexpr unsigned n[2] = {1, 2};
      enum E { ONE, TWO };
      struct Inner { int z; };
      A();
      Input<Vector<float, VectorLayout::SPAN, 8>> x;
      Vector<Output<Vector<int>>> rows;
      const unsigned size;
      unsigned short last;
      template <class U> U twice(U u) { return u + u; }
      bool inside(int i) const { if (i) { return true; } return false; }
      void compute() {}
    };
    """
    assert found(source) == [("A", ["x", "rows", "size", "last"], [])]


def test_templates_are_what_they_are_instantiated_for() -> None:
    source = """
    namespace a { namespace b {
    template <typename T, unsigned N, bool On> class V : public poplar::MultiVertex { public: Input<T> x; };
    template class V<unsigned, 3, true>;
    template class V<std::uint16_t, 0x4, false>;
    } }
    template class a::b::V<half, 1, true>;
    template class Other<float>;
    """
    assert found(source) == [("a::b::V", ["x"], ["unsigned int,3,true", "unsigned short,0x4,false", "half,1,true"])]


def test_what_is_no_vertex() -> None:
    source = """
    // class Comment : public Vertex { int x; };
    /* class Comment : public Vertex { int x; }; */
    #define MACRO class Macro : public Vertex { int x; };
    const char *text = "class Text : public Vertex { int x; };";
    class Forward;
    class Plain { int x; };
    class Derived : public Plain { int y; };
    enum class E : unsigned char { ONE };
    template <class T> struct Base { T x; };
    """
    assert found(source) == []


@pytest.mark.parametrize("declaration", ["float a[3];", "int a = 3;", "int a, b;"])
def test_fields_that_the_device_has_not(declaration: str) -> None:
    with pytest.raises(popc.CodeletError, match="a field is one edge, vector or scalar"):
        popc.parse("class A : public Vertex { " + declaration + " };")


def test_a_codelet_file_is_made_beside_its_source(tmp_path: Path) -> None:
    (tmp_path / "small.cpp").write_text(SMALL)
    assert run("-Wall", "-Wextra", "-Werror", "small.cpp", cwd=tmp_path).returncode == 0
    assert run("--target", "ipu2", "-o", "other.gp", "small.cpp", cwd=tmp_path).returncode == 0
    assert {p.name for p in tmp_path.iterdir()} == {"small.cpp", "small.gp", "other.gp"}


def test_mistakes_are_messages_and_leave_no_file(tmp_path: Path) -> None:
    cases = {
        "template.cpp": ("template <class T> class A : public Vertex {};", "popc: A: a vertex template needs"),
        "none.cpp": ("int x;", "popc: no class derives from poplar::Vertex"),
        "open.cpp": ("class A : public Vertex {", "popc: '{' isn't closed"),
        "wrong.cpp": (SMALL.replace("y[i] = x[i]", "y[i] = nothing"), "nothing"),
        "constant.cpp": (SMALL.replace("y[i] = x[i]", "x[i] = 1"), "read-only"),
        "double.cpp": (SMALL.replace("<float>", "<double>"), "ElementName"),
    }
    for name, (source, message) in cases.items():
        (tmp_path / name).write_text(source)
        done = run("-o", "out.gp", name, cwd=tmp_path)
        assert done.returncode == 1
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert "popc: " in run("absent.cpp", cwd=tmp_path).stderr
    assert {p.name for p in tmp_path.iterdir()} == set(cases)


def test_a_result_is_kept_by_content(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    (tmp_path / "small.cpp").write_text(SMALL)
    first = run("--cached", "small.cpp", cwd=tmp_path, POPC_CACHE=cache).stdout
    kept = Path(first.strip())
    time = kept.stat().st_mtime_ns
    assert run("--cached", "small.cpp", cwd=tmp_path, POPC_CACHE=cache).stdout == first
    assert kept.stat().st_mtime_ns == time
    assert run("--cached", "small.cpp", cwd=tmp_path, POPC_CACHE=cache, POPC_FLAGS="-DX").stdout != first
    (tmp_path / "small.cpp").write_text(SMALL.replace("x[i];", "2 * x[i];"))
    assert run("--cached", "small.cpp", cwd=tmp_path, POPC_CACHE=cache).stdout != first
