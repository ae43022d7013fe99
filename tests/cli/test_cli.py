"""The command line: what each command answers, its exit code, and how it meets mistakes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from opc.cli.console import WrongUse, find_specs
from tests.cli.conftest import BAD, Outcome, spec, write
from tests.narrow import narrow

Opc = Callable[..., Outcome]
COMMANDS = ("generate", "build", "test", "check", "new", "show", "backends", "env", "run", "bench", "schema", "cover", "report")


def test_help_names_every_command(opc: Opc) -> None:
    done = opc("--help")
    assert done.code == 0
    assert all(f" {name} " in done.out for name in COMMANDS)
    for name in COMMANDS:
        assert opc(name, "--help").code == 0


def test_version(opc: Opc) -> None:
    from opc import __version__

    assert opc("--version").out == f"opc {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check",), "there is no folder specs here"),
        (("check", "nothing.yaml"), "there is no file nothing.yaml"),
        (("generate", "empty"), "there are no specs (*.yaml) in the folder empty"),
        (("build", "nothing.yaml"), "there is no file nothing.yaml"),
        (("show", "empty"), "empty is a folder"),
        (("show", "nothing.yaml"), "there is no file nothing.yaml"),
    ],
)
def test_wrong_paths_are_wrong_use(opc: Opc, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "empty").mkdir()
    done = opc(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("arguments", [("frobnicate",), ("generate", "--frobnicate"), ("new",), ("build", "-j", "none")])
def test_wrong_use_of_the_command_itself(opc: Opc, arguments: tuple[str, ...]) -> None:
    done = opc(*arguments)
    assert done.code == 2
    assert "Usage: opc" in done.err


def test_unknown_backend(opc: Opc, tmp_path: Path) -> None:
    for command in ("generate", "build"):
        done = opc(command, spec(tmp_path), "--backend", "numpi")
        assert done.code == 1
        assert "there is no backend 'numpi'" in done.err
        assert "did you mean 'numpy'?" in done.err


def test_check(opc: Opc, tmp_path: Path) -> None:
    good, bad = spec(tmp_path), write(tmp_path / "bad.yaml", BAD + "kernel: |\n  y = z + exq(x)\n")
    done = opc("check", good)
    assert (done.code, done.out, done.err) == (0, "1 spec: no mistakes\n", "")
    done = opc("check", good, bad)
    assert done.code == 1
    assert done.out == "2 specs: 1 with mistakes\n"
    # Relative path, line, column, source line and caret, for every mistake of the file.
    assert "bad.yaml:9:7: error:" in done.err
    assert "bad.yaml:9:11: error:" in done.err
    assert "\n    y = z + exq(x)\n        ^\n" in done.err


def test_check_sees_two_ops_of_one_name(opc: Opc, tmp_path: Path) -> None:
    one = spec(tmp_path)
    twin = write(tmp_path / "twin.yaml", one.read_text())
    done = opc("check", one, twin)
    assert done.code == 1
    assert done.out == "2 specs: 1 with mistakes\n"
    assert re.search(r"twin.yaml:\d+:5: error: .*describes an op '\w+' too", done.err)


def test_check_does_not_compare_names_that_are_mistakes(opc: Opc, tmp_path: Path) -> None:
    bad = [write(tmp_path / f"{n}.yaml", spec(tmp_path).read_text().replace("op: ", "op: Bad", 1)) for n in range(2)]
    done = opc("check", *bad)
    assert done.code == 1
    assert done.err.count("can't name an op") == 2
    assert "describes an op" not in done.err


@pytest.mark.parametrize("reference", ["Reluu", "[Relu, Reluu(x)]", "y = Reluu(x)"])
def test_check_knows_the_operators_of_onnx(opc: Opc, tmp_path: Path, reference: str) -> None:
    path = write(tmp_path / "bad.yaml", BAD + f"kernel: y = x\nreference: {{onnx: {reference}}}\n")
    done = opc("check", path)
    assert done.code == 1
    line = next(n for n, text in enumerate(path.read_text().split("\n"), 1) if "Reluu" in text)
    column = path.read_text().split("\n")[line - 1].index("Reluu") + 1
    assert f":{line}:{column}: error: ONNX has no operator 'Reluu'\n" in done.err
    assert "hint: did you mean 'Relu'?" in done.err


def test_check_as_json(opc: Opc, tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.yaml", BAD + "kernel: |\n  y = z\n")
    done = opc("check", bad, "--json")
    assert (done.code, done.err) == (1, "")
    (mistake,) = json.loads(done.out)
    assert (mistake["severity"], mistake["line"], mistake["column"]) == ("error", 9, 7)
    assert json.loads(opc("check", spec(tmp_path), "--json").out) == []


def test_a_spec_that_is_not_text(opc: Opc, tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00op")
    done = opc("check", tmp_path / "binary.yaml")
    assert done.code == 1
    assert "binary.yaml" in done.err


def test_generate_and_its_check(opc: Opc, tmp_path: Path) -> None:
    one = spec(tmp_path)
    assert opc("generate", one, "--check").code == 1
    assert not (tmp_path / "generated").exists()
    done = opc("generate", one, "--backend", "numpy")
    assert done.code == 0
    assert done.out.startswith("generated/leaky_relu: ")
    assert done.out.endswith(" files written\n")
    assert opc("generate", one, "--backend", "numpy").out.endswith("nothing changed\n")
    assert opc("generate", one, "--backend", "numpy", "--check").out == "generated/leaky_relu: fresh\n"
    shape = tmp_path / "generated/leaky_relu/shape.py"
    shape.write_text(shape.read_text() + "# mine\n")
    done = opc("generate", one, "--backend", "numpy", "--check")
    assert done.code == 1
    assert "generated/leaky_relu/shape.py: changed\n" in done.out
    assert "-# mine\n" in done.out
    assert "run opc generate leaky_relu.yaml" in done.err
    done = opc("generate", one, "--backend", "numpy")
    assert "shape.py had been edited; it was written anew" in done.err
    assert "# mine" not in shape.read_text()


def test_one_spec_with_mistakes_does_not_stop_the_others(opc: Opc, tmp_path: Path) -> None:
    bad = write(tmp_path / "a_bad.yaml", BAD + "kernel: |\n  y = z\n")
    done = opc("generate", bad, spec(tmp_path), "--backend", "numpy", "-o", "out")
    assert done.code == 1
    assert "a_bad.yaml:9:7: error:" in done.err
    assert (tmp_path / "out/leaky_relu/manifest.json").exists()


def test_new_makes_a_spec_that_checks(opc: Opc, tmp_path: Path) -> None:
    done = opc("new", "my_op")
    assert done.code == 0
    assert done.out.startswith("wrote specs/my_op.yaml\n")
    assert (tmp_path / "specs/opc.schema.json").exists()
    assert opc("check").out == "1 spec: no mistakes\n"
    again = opc("new", "my_op")
    assert again.code == 1
    assert "specs/my_op.yaml exists already" in again.err
    for name in ("My Op", "../escape", "class_", ""):
        done = opc("new", name)
        assert done.code == 1
        assert "can't name an op" in done.err
    assert [p.name for p in (tmp_path / "specs").glob("*.yaml")] == ["my_op.yaml"]


def test_schema(opc: Opc, tmp_path: Path) -> None:
    printed = opc("schema")
    assert printed.code == 0
    assert json.loads(printed.out)["$schema"].startswith("https://json-schema.org/")
    assert opc("schema", "--output", "s.json").out == "wrote s.json\n"
    assert (tmp_path / "s.json").read_text() == printed.out


def test_show(opc: Opc, tmp_path: Path) -> None:
    one = spec(tmp_path, "softmax")
    ir = opc("show", one)
    assert ir.code == 0
    assert "  y[*A, n, *B] = e[*A, n, *B] / y_sum[*A, *B]\n" in ir.out
    assert "ONNX function body of softmax: " in ir.out
    assert opc("show", one, "--ir").out == ir.out
    gradient = opc("show", one, "--gradient").out
    assert "gradient:\n  saves: [y]\n  body: |\n    s[*A, *B] = sum[k:N](d_y[*A, k, *B] * y[*A, k, *B])\n" in gradient
    assert "it gathers only, and is deterministic.\n" in gradient
    assert "  softmax: 5.37 GFLOP, 8.59 GB, 0.62 FLOP/B\n    FLOP: 5*N*size(A)*size(B)\n" in gradient
    assert "  softmax: 41.9 MFLOP, 67.1 MB," in opc("show", one, "--gradient", "--size", "N=8").out
    assert "softmax has no size or int attribute 'K'; it has N" in opc("show", one, "--gradient", "--size", "K=8").err
    assert "write a whole number, as in N=8" in opc("show", one, "--gradient", "--size", "N").err
    assert "Saved for the gradient: output y.\n" in gradient
    assert "FLOP/B" in gradient
    loops = opc("show", one, "--loops").out
    assert "program softmax\n  parallel whole rows of [*A, *B] along [n:N]" in loops
    assert "accumulate m: T = max(x)" in loops
    assert "    schedule: interleave, prefetch, batch(4, whole)\n" in loops
    assert "          reduce_row<count_lanes<T>()>(tile.columns, ahead, step, y_sum_reduction)\n" in loops
    c = opc("show", one, "--c").out
    assert "int32_t opc_softmax(" in c


def test_show_of_other_schedules_and_targets(opc: Opc, tmp_path: Path) -> None:
    one = spec(tmp_path, "softmax")
    other = opc("show", one, "--loops", "--schedule", "softmax: -interleave, batch(2)").out.split("\n\n")
    assert "    schedule: batch(2)\n" in other[0]
    assert "interleave" in other[1]
    assert "opc::interleaved_rows" not in opc("show", one, "--c", "--schedule", "-interleave").out
    assert "no stage is called 'soft'; there are softmax, " in opc("show", one, "--loops", "--schedule", "soft: -batch").err
    assert "there is no transformation 'bach'" in opc("show", one, "--loops", "--schedule", "-bach").err
    assert "which --loops and --c show" in opc("show", one, "--schedule", "-batch").err
    assert "m = team_reduce<opc::joins_max, T>(tile, m)" in opc("show", one, "--loops", "--target", "cuda").out
    assert "OPC_KERNEL(opc::threads_a_block) softmax(" in opc("show", one, "--c", "--target", "cuda").out
    assert "    reduce m: T = max[n:N](x)\n" in opc("show", one, "--loops", "--target", "poplar").out
    assert "// poplar/softmax_body.hpp\n" in opc("show", one, "--c", "--target", "poplar").out


@pytest.mark.parametrize(
    ("place", "order", "verdict"),
    [
        ("ids[n]", "deterministic", "in a fixed order, so it is deterministic"),
        ("ids[n]", "atomic", "by atomic additions in no fixed order"),
        # What is searched for goes to places in a window: these are found again by whom they belong to.
        ("argmax[k:2](pad(x[n + k], 0)) + n", "atomic", "in a fixed order, so it is deterministic"),
    ],
)
def test_show_tells_in_what_order_a_gradient_adds(opc: Opc, tmp_path: Path, place: str, order: str, verdict: str) -> None:
    text = f"""\
op: f
domain: test
version: 1
doc: A test.
types: {{T: [float32]}}
inputs: {{x: 'T[N]', ids: 'int64[N]'}}
outputs: {{y: 'T[N]'}}
kernel: |
  y[n] = x[{place}]
gradient: {{scatter: {order}}}
"""
    assert f"it scatters into d_x, {verdict}.\n" in opc("show", str(write(tmp_path / "f.yaml", text)), "--gradient").out


def test_show_of_an_op_without_gradient(opc: Opc, tmp_path: Path) -> None:
    one = write(tmp_path / "flip.yaml", BAD.replace("broken", "flip") + "kernel: |\n  y = -x\ngradient: none\n")
    assert opc("show", one, "--gradient").out == "flip has no gradient\n"


def test_backends(opc: Opc) -> None:
    done = opc("backends")
    assert done.code == 0
    assert done.out.startswith("numpy ") or "\nnumpy " in done.out
    data = {row["name"]: row for row in json.loads(opc("backends", "--json").out)}
    assert data["numpy"]["available"] is True
    assert data["numpy"]["interpreter"] == sys.executable
    assert data["numpy"]["refused"] == {}


def test_backends_say_what_they_refuse(opc: Opc, tmp_path: Path) -> None:
    text = BAD.replace("broken", "flip").replace("floating", "[float64]")
    one = write(tmp_path / "wide.yaml", text + "kernel: |\n  y = -x\ngradient: none\n")
    done = opc("backends", one)
    assert done.code == 0
    assert "refuses flip: x of flip is float64, which RKNN has no tensors of" in done.out
    assert "carries 0 of 1 ops" in done.out
    assert "carries 1 of 1 ops" in done.out
    refused = {row["name"]: row["refused"] for row in json.loads(opc("backends", one, "--json").out)}
    assert refused["onnx"] == {}
    assert refused["rknn"]["flip"][0]["line"] > 0
    done = opc("backends", write(tmp_path / "bad.yaml", BAD))
    assert done.code == 1
    assert "numpy " in done.out
    assert "error: " in done.err


def test_a_folder_that_can_not_be_written(opc: Opc, tmp_path: Path) -> None:
    write(tmp_path / "blocked", "a file where a folder should be")
    done = opc("generate", spec(tmp_path), "--backend", "numpy", "-o", "blocked")
    assert done.code == 1
    assert "blocked" in done.err
    done = opc("schema", "--output", "missing/s.json")
    assert done.code == 1
    assert "missing/s.json: No such file or directory" in done.err


def test_find_specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("specs/b.yaml", "specs/a.yml", "specs/notes.txt", "other/c.yaml"):
        write(tmp_path / name, "")
    assert find_specs(None) == [Path("specs/a.yml"), Path("specs/b.yaml")]
    assert find_specs([Path("other"), Path("specs/b.yaml"), Path("other/c.yaml")]) == [Path("other/c.yaml"), Path("specs/b.yaml")]
    with pytest.raises(WrongUse):
        find_specs([Path("gone")])


def test_environments(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_ENVIRONMENTS", str(tmp_path / "env"))
    assert opc("env", "list").out == "there are no environments in env\n"
    assert json.loads(opc("env", "list", "--json").out) == []
    (tmp_path / "env/rknn").mkdir(parents=True)
    (tmp_path / "env/rknn/lock").touch()
    assert "rknn: not finished; opc env create rknn begins anew" in opc("env", "list").out
    assert opc("env", "remove", "rknn").out == "rknn: removed\n"
    done = opc("env", "remove", "rknn")
    assert done.code == 1
    assert "there is no environment 'rknn'" in done.err
    done = opc("env", "create", "numpy")
    assert done.code == 1
    assert "'numpy' needs no environment of its own" in done.err
    assert opc("env", "create").code == 2


def test_the_proof_is_reported(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opc.testing import runner
    from opc.testing.results import Column, Report, Result, Status

    asked: list[object] = []

    def run_tests(specs: object, backends: object, out: object, jobs: object, **_: object) -> Report:
        asked.append((specs, backends, out, jobs))
        failed = Result("leaky_relu", "numpy", "forward", "case 7", Status.FAILED, 3.0, 0.1, "y differs")
        passed = Result("leaky_relu", "numpy", "forward", "case 6", Status.PASSED, 0.5, 0.1)
        columns = {"numpy": Column("NumPy", "2.0"), "rknn": Column("RKNN", reason="not installed")}
        return Report(columns, [passed] if backends else [passed, failed], {}, 1.0)

    monkeypatch.setattr(runner, "run_tests", run_tests)
    one = spec(tmp_path)
    done = opc("test", one, "-b", "numpy", "-j", "1", "--report", "r.html", "--junit", "r.xml")
    assert done.code == 0
    assert asked == [([one], ["numpy"], Path("generated"), 1)]
    assert "leaky_relu" in done.out
    assert done.err == "wrote r.html\nwrote r.xml\n"
    assert "<testsuite" in (tmp_path / "r.xml").read_text()
    assert "leaky_relu" in (tmp_path / "r.html").read_text()
    done = opc("test", one, "-b", "numpy", "--strict", "--markdown", "r.md")
    assert done.code == 1
    assert "error: RKNN could not be run" in done.err
    assert "| NumPy | 1 op, NumPy 2.0 |" in (tmp_path / "r.md").read_text()
    done = opc("test", one)
    assert done.code == 1
    assert "y differs" in done.out
    data = json.loads(opc("test", one, "--json").out)
    assert (data["ok"], data["totals"]) == (False, {"forward": 2})
    asked.clear()
    done = opc("test", one, "--report", "gone/r.html")
    assert (done.code, asked) == (2, [])
    assert "there is no folder gone to write r.html to" in done.err


def make_model(path: Path) -> None:
    import onnx

    helper = onnx.helper
    float32 = onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("LeakyRelu", ["x"], ["y"], domain="opc.nn", alpha=0.5),
        helper.make_node("Neg", ["y"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", float32, ["n"])],
        [helper.make_tensor_value_info("z", float32, ["n"])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("opc.nn", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def test_run_of_a_model_with_custom_ops(opc: Opc, tmp_path: Path) -> None:
    import numpy as np

    make_model(tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.array([-2.0, 4.0], np.float32))
    one = spec(tmp_path)
    done = opc("run", "model.onnx", "--spec", one, "--input", "x=x.npy", "--output", "results")
    assert (done.code, done.out) == (0, "z: float32 [2], wrote results/z.npy\n"), done.err
    assert np.load(tmp_path / "results/z.npy").tolist() == [1.0, -4.0]
    done = opc("run", "model.onnx", "--input", "x=x.npy")
    assert done.code == 1
    assert "opc.nn.LeakyRelu" in done.err
    done = opc("run", "model.onnx", "--spec", one)
    assert done.code == 1
    assert "the input 'x' is missing" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--input", "x"), "--input takes NAME=FILE.npy, not 'x'"),
        (("--input", "x=a.npy", "--input", "x=b.npy"), "the input 'x' is given twice"),
        (("--spec", "gone.yaml"), "there is no file gone.yaml"),
    ],
)
def test_wrong_use_of_run(opc: Opc, arguments: tuple[str, ...], message: str) -> None:
    done = opc("run", "model.onnx", *arguments)
    assert done.code == 2
    assert message in done.err


def test_bench(opc: Opc) -> None:
    done = opc("bench", "--list")
    assert done.code == 0
    sections = [line.split()[0] for line in done.out.splitlines()]
    assert sections == [
        "ops", "backward", "large", "fresh", "frameworks", "tiny", "compilers", "schedules", "build", "commands", "compiler",
        "gpu", "gpu-backward", "gpu-tiny", "growth",
    ]  # fmt: skip
    done = opc("bench", "--section", "huge")
    assert done.code == 2
    assert f"there is no section 'huge'; the sections are {', '.join(sections)}" in done.err


def test_bench_of_commands(opc: Opc, tmp_path: Path) -> None:
    done = opc("bench", spec(tmp_path), "--section", "commands", "--json")
    assert done.code == 0
    data = json.loads(done.out)
    assert [row["op"] for row in data["rows"]] == ["opc --help", "opc generate leaky_relu.yaml"]
    assert all(row["seconds"] > 0 for row in data["rows"])
    assert [target["limit"] for target in data["targets"]] == [0.2, 0.5]


def test_bench_of_a_schedule(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment is built apart, and is called in turn with what opc makes, which it does not change."""
    from opc.testing.bench import side_by_side

    one = narrow("leaky_relu", tmp_path)
    change = ("--schedule", "leaky_relu: -nontemporal")
    seen: list[dict[str, Path]] = []
    monkeypatch.setattr(side_by_side, "compare", lambda found, section, folders, *_: seen.append(folders))
    assert opc("bench", one, *change).code == 0
    own, experiment = (folder / "leaky_relu/kernel/leaky_relu_loops.cpp" for folder in seen[0].values())
    assert own.is_relative_to(tmp_path / "generated" / "leaky_relu")
    assert "opc::row_store<T, true>" in own.read_text()
    assert "opc::row_store<T, true> y_store" not in experiment.read_text()
    assert "opc::row_store<T, true> d_x_store" in experiment.read_text()  # another stage's is as it was
    before = own.read_text()
    assert opc("bench", one, *change).code == 0
    assert own.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--schedule", "nosuch: -interleave"), "no stage is called 'nosuch'; there are leaky_relu, leaky_relu_backward"),
        (("--schedule", "leaky_relu: -unroll"), "there is no transformation 'unroll'"),
        (("--schedule", "-nontemporal", "--section", "tiny"), "--schedule measures the section 'schedules' alone"),
        (("--section", "schedules"), "the section 'schedules' measures what --schedule asks for: give it"),
    ],
)
def test_wrong_use_of_bench(opc: Opc, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = opc("bench", spec(tmp_path), *arguments)
    assert done.code == 2
    assert message in done.err


def test_a_named_backend_that_is_absent_is_a_failure(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opc.testing import runner
    from opc.testing.results import Column, Report, Result, Status

    def run_tests(specs: list[Path], backends: object, *_: object, **__: object) -> Report:
        columns = {"numpy": Column("NumPy", "2.0"), "torch": Column("PyTorch", reason="install with: pip install torch")}
        return Report(columns, [Result("leaky_relu", "numpy", "forward", "case 6", Status.PASSED)], {}, 1.0)

    monkeypatch.setattr(runner, "run_tests", run_tests)
    one = spec(tmp_path)
    assert opc("test", one).code == 0
    assert opc("test", one, "--backend", "numpy").code == 0
    done = opc("test", one, "--backend", "numpy", "--backend", "torch")
    assert done.code == 1
    assert "error: PyTorch could not be run: install with: pip install torch" in done.err
    assert "all that ran is right; nothing ran on PyTorch" in done.out


def test_parts_of_a_proof(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opc.testing import runner
    from opc.testing.results import Column, Report, Result, Status

    def run_tests(specs: list[Path], *_: object, **__: object) -> Report:
        return Report(
            {"numpy": Column("NumPy")}, [Result(s.stem, "numpy", "forward", "a", Status.PASSED) for s in specs], {}, 1.0
        )

    monkeypatch.setattr(runner, "run_tests", run_tests)
    specs = [spec(tmp_path, name) for name in ("add", "leaky_relu", "relu")]
    assert opc("test", *specs, "--part", "1/2", "--results", "one.json").code == 0
    assert opc("test", *specs, "--part", "2/2", "--results", "two.json").code == 0
    done = opc("report", "one.json", "two.json", "--markdown", "page.md", "--made-by", "opc test specs")
    assert done.code == 0
    page = (tmp_path / "page.md").read_text()
    assert "Made by `opc test specs`: 3 outcomes of 3 ops." in page
    assert opc("report", "one.json", "one.json").code == 2
    for wrong in ("0/2", "3/2", "2", "a/b"):
        assert opc("test", *specs, "--part", wrong).code == 2


def test_the_covering_set_is_printed(opc: Opc, tmp_path: Path) -> None:
    done = opc("cover", spec(tmp_path, "relu"))
    assert done.code == 0
    assert done.out.startswith("1 of 1 ops have all ")
    assert "\nrelu: " in done.out
    assert done.out.endswith("Changed: none.\nWritten otherwise by opc: none.\n")
