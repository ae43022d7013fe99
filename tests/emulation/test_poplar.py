"""The emulated poplar, popops, poputil and poplin: small C++ cases, compiled as a user's program is."""

import functools
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import opc
from tests.amounts import MANY
from tests.emulation.sdk import EMULATION, sdk, shell

CASES = Path(__file__).parent / "poplar"
PARTS = ("tensors", "expressions", "reductions", "products", "vertices", "programs")
NAMES = [name for part in PARTS for name in re.findall(r"^CASE\((\w+)\)", (CASES / f"{part}.cpp").read_text(), flags=re.M)]
WARNINGS = "-std=c++14 -Wall -Wextra -Werror"
INCLUDED = "".join(p.read_text() for p in (Path(opc.__file__).parents[1] / "runtime/include/opc/adapters").glob("pop*.h"))
SANITIZERS = "-fsanitize=address,undefined -g"
HEADERS = sorted(
    str(header.relative_to(EMULATION / "include"))
    for library in ("poplar", "popops", "poputil", "poplin")
    for header in (EMULATION / "include" / library).glob("*.hpp")
)
# Those that packages include; `nox -s fuzz` takes all, of which one alone takes as long to read as all together.
STANDING = HEADERS if MANY else [h for h in HEADERS if f"#include <{h}>" in INCLUDED]


@functools.cache
def build() -> Path:
    """Compile the cases and their codelets; return the folder."""
    folder = sdk().parent / "cases"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shell(f"popc {WARNINGS} -O0 -o codelets.gp {CASES}/codelets.cpp", folder)
    # As one, since reading headers takes most of the time.
    (folder / "cases.cpp").write_text("".join(f'#include "{CASES}/{part}.cpp"\n' for part in ("main", *PARTS)))
    shell(f"g++ {WARNINGS} -O0 cases.cpp -o cases -lpoplin -lpopops -lpoputil -lpoplar", folder)
    return folder


def run(prefix: str = "") -> Mapping[str, str]:
    """Return what the cases say, by name."""
    lines = shell(f"CODELETS=codelets.gp {prefix} ./cases", build()).splitlines()
    return dict(line.split("\t", 1) for line in lines if "\t" in line)


@functools.cache
def results() -> Mapping[str, str]:
    return run()


@pytest.mark.rotating
@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    assert results()[name] == "ok"


@pytest.mark.rotating
def test_every_header_of_a_built_sdk_stands_alone(tmp_path: Path) -> None:
    assert len(STANDING) > 4
    for i, header in enumerate(STANDING):
        (tmp_path / f"header{i}.cpp").write_text(f"#include <{header}>\n")
    shell(f"g++ {WARNINGS} -fsyntax-only *.cpp", tmp_path)


@pytest.mark.rotating
def test_headers_alone_define_everything(tmp_path: Path) -> None:
    (tmp_path / "all.cpp").write_text(
        "".join(f"#include <{header}>\n" for header in HEADERS)
        + "void use(poplar::Graph &g, poplar::Tensor t, poplar::program::Sequence &s) {\n"
        "  t = popops::map(g, popops::expr::Exp(popops::expr::_1), {t}, s);\n"
        "  t = poplin::matMul(g, t, t, s);\n  popops::reduce(g, t, {0}, popops::Operation::ADD, s);\n}\n"
        "int main() {\n  poplar::Graph g(poplar::IPUModel().createDevice());\n  poplar::program::Sequence s;\n"
        "  poplar::Tensor t = g.addVariable(poplar::FLOAT, {2, 2});\n  g.setTileMapping(t, 0);\n  use(g, t, s);\n"
        "  poplar::Engine engine(g, s);\n  return 0;\n}\n"
    )
    shell(f"g++ {WARNINGS} -O0 -I{EMULATION}/include all.cpp -o all -ldl && ./all", tmp_path)


def test_sanitizers_see_what_goes_beyond_a_field() -> None:
    folder = build()
    shell(f"POPC_FLAGS='{SANITIZERS}' popc -o sanitized.gp {CASES}/codelets.cpp", folder)
    libraries = '"$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)"'
    preload = f"LD_PRELOAD={libraries} ASAN_OPTIONS=detect_leaks=0 CODELETS=sanitized.gp"
    clean = shell(f"{preload} ./cases", folder)
    assert clean.count("\tok") == len(NAMES)
    assert "runtime error" not in clean
    report = shell(f"RAW=1 {preload} ./cases", folder, check=False)
    assert "heap-buffer-overflow" in report
    assert "Beyond::compute" in report
