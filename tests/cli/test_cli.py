"""The command line: what each command answers, its exit code, and how it meets mistakes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.main

from opc.cli.console import WrongUse, find_specs
from opc.cli.main import app
from tests.cli.conftest import BAD, SPECS, Outcome, spec, write

Opc = Callable[..., Outcome]
COMMANDS = (
    "generate",
    "build",
    "package",
    "test",
    "check",
    "init",
    "new",
    "show",
    "backends",
    "env",
    "run",
    "bench",
    "schema",
    "cover",
    "report",
)


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
    commands = typer.main.get_group(app).commands
    taking = [name for name, c in commands.items() if any("--backend" in p.opts for p in c.params)]
    assert {*taking} >= {"generate", "build", "test", "package", "init"}
    for command in taking:
        done = opc(command, "a-name" if command == "init" else spec(tmp_path), "--backend", "numpi")
        assert (done.code, done.out) == (2, "")
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


def test_backends_that_lack_the_same_are_told_once(opc: Opc, tmp_path: Path) -> None:
    one = write(
        tmp_path / "steps.yaml",
        BAD.replace("broken", "steps").replace("...", "N") + "gradient: none\nkernel: |\n  y[n] = x[n] + pad(y[n - 1], 0)\n",
    )
    arguments = ("--backend", "popart", "--backend", "popxl", "--backend", "numpy")
    for _ in range(2):  # the second time nothing has changed
        done = opc("generate", one, *arguments)
        assert done.code == 1
        assert done.err.count("left out") == 1
        assert "error: steps: left out backends popart, popxl\n" in done.err
        assert done.err.count("is not repeated step by step") == 1


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


TWIN = """\
op: leaky_relu
domain: other
version: 1
doc: Nothing but its name.
types: {T: floating}
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: y = x
"""


@pytest.mark.parametrize("command", ["build", "generate", "generate --check", "package", "test"])
def test_specs_of_one_name_in_several_folders_are_refused(opc: Opc, tmp_path: Path, command: str) -> None:
    """Also where one of them was built before, of whose package nothing would be left."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = spec(tmp_path / "a")
    (tmp_path / "b/other.yaml").write_text(TWIN)
    out = ("--backend", "numpy")
    assert opc("build", "a", *out).code == 0
    made = (tmp_path / "generated/leaky_relu/numpy/__init__.py").read_text()
    more = ("--name", "twins") if command == "package" else ()
    done = opc(*command.split(), "a", "b", *more, *out)
    assert done.code == 1, done.out
    assert f"two specs describe an op 'leaky_relu': a/{first.name} and b/other.yaml\n  hint: rename one of the ops" in done.err
    assert (tmp_path / "generated/leaky_relu/numpy/__init__.py").read_text() == made


@pytest.mark.parametrize("name", ["unpack_int4", "onnx/lstm", "onnx/split2", "onnx/squeeze", "fused/linear_int4"])
def test_gradients_are_shown_where_sizes_have_to_fit_together(opc: Opc, name: str) -> None:
    shown = opc("show", SPECS / f"{name}.yaml", "--gradient")
    assert shown.code == 0, shown.err
    assert "\ngradient:\n" in shown.out
    assert f"Cost: 1024 along every axis is refused: {Path(name).name}: requires " in shown.out


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
    assert "OPC_ROW_KERNEL(opc::most_threads_a_row, 2) softmax(" in opc("show", one, "--c", "--target", "cuda").out
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
