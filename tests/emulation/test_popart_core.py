"""The C++ of the emulated PopART: what ops, Opxs, graphs, gradients and sessions do, and what they refuse.

`popart/main.cpp` is compiled once; each case is a run of it that prints values, or the error that it ended with.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.emulation.sdk import sdk, shell

SOURCES = Path(__file__).parent / "popart"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("popart")
    libraries = "-lpopart -lpoplin -lpopops -lpoputil -lpoplar -ldl -pthread"
    flags = "-std=c++14 -O0 -Wall -Wextra -Werror -fvisibility=hidden -DONNX_NAMESPACE=onnx"
    shell(f"g++ {flags} {SOURCES / 'main.cpp'} {libraries} -o {folder / 'program'}", folder)
    return folder / "program"


def run(program: Path, case: str, status: int, layout: str) -> str:
    """What the case prints; it must end with `status`: 0, or 3 where it ends with an error."""
    libraries = str(sdk() / "lib")
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "POPART_EMULATION_LAYOUT": layout}
    done = subprocess.run([program, case], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


RESULTS = {
    "scale right": "Scale:0: 2 4 6",
    "scale seed": "Scale:0: 102 104 106",
    "layout created": "Scale:0: 1 2 3\non tile 7: 1, contiguous: 1",
    "layout unwound": "Scale:0/1: 1 2 3\non tile 7: 1, contiguous: 0",
    "anchor all": " 2 4 6 8",
    "anchor final": " 8",
    "anchor everyn": " 4 8",
    "anchor sum": " 20",
    "npOut": "FLOAT (2, 4, 3)",
    "npReductionAxis": "0 2 ",
    "empty": "Gradient___input:\nGradient___input/1:",
    "batches": "Scale:0: 2 4 6 8 10 12",
    "inference": "FLOAT (2, 3)",
    # What an op without a function gives, and what a function makes of that.
    "inference of unknown": "UNDEFINED ()\nUNDEFINED ()",
    # Ops whose outline attributes are equal share one body: one that forgets an attribute computes with another's.
    "outline equal": "Scale:0: 2 4\nScale:0/1: 20 40",
    "outline different": "Scale:0: 2 4\nScale:0/1: 30 60",
    "outline forgets": "Scale:0: 2 4\nScale:0/1: 20 40",
    # x^3 + 4x, weighted with g: what two readers of x give is summed.
    "train": "Gradient___input: 7 1600\nGradient___input/1: 5 16",
    "split both": "Gradient___input: 1 1\nGradient___input/1: 2 2\nGradient___input/2: 1 1",
    "split third absent": "Gradient___input: 1 1\nGradient___input/1: 2 2",
    "split one gradient": "Gradient___input: 1 1\nGradient___input/1: 0 0\nGradient___input/2: 1 1",
    "inplace alone": "Scale:0: 3 6\nin place",
    "inplace read before": "Add:0: 2 4\nScale:0: 3 6\nin place",
    "inplace read after": "Add:0: 4 8",
    "inplace excluded": "Scale:0: 3 6",
    "inplace anchored": "Scale:0: 3 6\nIdentity:0: 1 2",
    "inplace twice": "Scale:0: 3 6\nScale:0/1: 5 10\nin place",
    "variable": "IdentityLoss:0: 50\n -4 -8",
    "many": "100 sessions",
}

REFUSED = {
    "scale clone loses": "has other attributes",
    "scale clone info": "gives output 0 the info FLOAT (3, 1), not FLOAT (3)",
    "scale setup changes": "gave output 0 the info FLOAT (3), and FLOAT (3, 1) when called again",
    "scale no info": "did not set the info of output 0",
    "scale refuses": "Scale takes rank 1, not 1",
    "scale attributes change": "are written in two ways",
    "scale writes input": "modified its input 0, which it does not say it modifies",
    "scale no output": "did not set output 0",
    "scale two outputs": "share elements",
    "scale other output": "sets output 1, which the op lacks",
    "scale output shape": "sets its output 0 as a tensor of shape [1,3], not [3]",
    "scale output type": "sets its output 0 as a tensor of type int, not float",
    "scale output unmapped": "no tile mapping",
    "scale output is input": "claims input 0 -> output 0 do not contain aliases, but the Poplar tensors disagree.",
    "scale output unwritten": "which nothing has written",
    "scale writes constant": "writes a constant",
    "split one gradient strict": "No input found for input 1 of",
    "number of inputs": "Split has invalid number of inputs 1. Must be between 2..3",
    "absent input with inference": "is not an known tensor",
    "anchor unknown": "Invalid anchor return type ID supplied: SOME",
    # As in PopART, which so refuses most operators on empty tensors; an op that takes them sizes its output itself.
    "npOut of size 0": "np broadcasting failed on 'x', frames [2, 0] and [1, 0] are not aligned",
}

TYPES = {"FLOAT", "FLOAT16", "INT32", "UINT32"}
NO_POPLAR_TYPE = {"INT64", "UINT64", "DOUBLE", "BFLOAT16", "COMPLEX64", "COMPLEX128", "STRING", "UNDEFINED"}


@pytest.mark.rotating
@pytest.mark.parametrize("layout", ["linear", "shuffled"])
@pytest.mark.parametrize("case", RESULTS)
def test_results(program: Path, case: str, layout: str) -> None:
    assert run(program, case, 0, layout) == f"{RESULTS[case]}\n"


@pytest.mark.parametrize("case", REFUSED)
def test_refused(program: Path, case: str) -> None:
    assert REFUSED[case] in run(program, case, 3, "linear")


@pytest.mark.parametrize("strategy", ["recompute", "outputs"])
def test_second_order(program: Path, strategy: str) -> None:
    # y = (x^3)^3, so dy/dx is 9 x^8, and its derivative 72 x^7; x is 1 and 2, the cotangents g are 1 and 10.
    printed = run(program, f"second order {strategy}", 0, "shuffled").splitlines()
    of = [line.removeprefix("of ") for line in printed if line.startswith("of ")]
    first, *second = [line.rpartition(": ")[2] for line in printed[len(of) :]]
    assert first == "9 23040"
    gradients = dict(zip(of, second, strict=True))
    assert gradients["g"] == "9 2304"
    # Where x^3 is an input of the backward graph, the derivative comes in two parts: with x^3 held, and through it.
    assert gradients["x"] == ("72 92160" if strategy == "recompute" else "18 23040")
    assert (gradients.get("called_forward/h") == "18 5760") is (strategy == "outputs")


@pytest.mark.parametrize("name", sorted(NO_POPLAR_TYPE))
def test_types_that_poplar_lacks(program: Path, name: str) -> None:
    assert run(program, f"type {name}", 3, "linear") == f"Is there a poplar type for {name}?\n"


@pytest.mark.parametrize("name", sorted(TYPES))
def test_types_of_arithmetic(program: Path, name: str) -> None:
    assert run(program, f"type {name}", 0, "linear") == "lowered\n"


def test_arrays_of_int64_are_narrowed_on_the_way_in_only(program: Path) -> None:
    first, second = run(program, "array of INT64", 3, "linear").splitlines()
    assert first == "1 -2 3"
    assert second.startswith("Type discrepancy for tensor Identity:0. User provided : INT64 and expected : INT32.")


def test_floats_are_outlined_by_six_digits(program: Path) -> None:
    """As in PopART, whose serialiser writes floats so: ops that must tell more digits apart write them themselves."""
    assert run(program, "outline seventh digit", 0, "linear") == "Scale:0: 2 4\nScale:0/1: 20 40\n"


@pytest.mark.parametrize(
    "header", ["popart/op.hpp", "popart/graph.hpp", "popart/popx/opx.hpp", "popart/ir.hpp", "popart/session.hpp"]
)
def test_onnx_namespace_is_asked_for(tmp_path: Path, header: str) -> None:
    (tmp_path / "x.cpp").write_text(f"#include <{header}>\n")
    said = shell("g++ -std=c++14 -fsyntax-only -Wfatal-errors x.cpp", tmp_path, check=False)
    assert "PopART's headers want -DONNX_NAMESPACE=onnx" in said


GIVEN = {"Int": "0", "Ints": "{}", "Float": "0.5f", "String": '""'}


def attributes(*lines: str) -> str:
    """A program that reads attributes."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"#include <popart/attributes.hpp>\nint main() {{\n  popart::Attributes attributes;\n{body}}}\n"


def test_attributes_have_a_default_for_four_kinds(tmp_path: Path) -> None:
    command = "g++ -std=c++14 -DONNX_NAMESPACE=onnx x.cpp -lpopart -o x"
    read = "if (attributes.hasAttribute(name)) attributes.getAttribute<popart::Attributes::{0}>({1});"
    lines = [read.format(kind, f"name, popart::Attributes::{kind}({default})") for kind, default in GIVEN.items()]
    lines += [read.format(kind, "name") for kind in (*GIVEN, "Floats", "Strings")]
    (tmp_path / "x.cpp").write_text(attributes('const std::string name = "x";', *lines))
    shell(f"{command} && ./x", tmp_path)
    lines = [read.format(kind, f"name, popart::Attributes::{kind}({{}})") for kind in ("Floats", "Strings")]
    (tmp_path / "x.cpp").write_text(attributes('const std::string name = "x";', *lines))
    said = shell(command, tmp_path, check=False)
    for kind in ("float", "std::string|std::__cxx11::basic_string<char[^\n]*"):
        assert re.search(rf"undefined reference to [^\n]*getAttribute<std::vector<(?:{kind})", said), kind
