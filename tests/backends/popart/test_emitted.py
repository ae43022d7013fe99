"""What PopART, PopXL and PopRT want of an op's sources, held on what is emitted; no SDK is needed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opc.backends import environments
from opc.backends.base import Backend, Tool
from opc.backends.popart.backend import PopartBackend
from opc.backends.poplar.carried import carried
from opc.backends.poplar.classes import op_classes
from opc.backends.poplar.library import codelet_steps
from opc.backends.poplar.sdk import NAME, STAMP, Sdk
from opc.backends.poprt.backend import PoprtBackend
from opc.backends.popxl.backend import PopxlBackend
from opc.ir.op import Family
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parents[3] / "specs"
BACKENDS = (PopartBackend(), PopxlBackend(), PoprtBackend())

TWO_OUTPUTS = """
op: halves
doc: Two functions of a number.
domain: opc.test
version: 1
types: {T: [float32, float16]}
inputs: {x: 'T[...]'}
outputs: {a: 'T[...]', b: 'T[...]'}
kernel: |
  a = x * x
  b = sin(x)
"""


@pytest.fixture(scope="module")
def leaky_relu() -> Family:
    return load_family(SPECS / "leaky_relu.yaml")


@pytest.fixture(scope="module")
def files(leaky_relu: Family) -> dict[str, str]:
    return {path: text for b in BACKENDS for path, text in b.emit(leaky_relu).items()}


def test_ops_of_any_version_are_found_by_a_builder() -> None:
    """Its models import version 1 of every domain; one of ONNX imports the spec's."""
    family = compile_text(TWO_OUTPUTS.replace("version: 1", "version: 3"))
    found = {path: text for b in BACKENDS for path, text in b.emit(family).items()}
    for path in ("popart/halves_custom_op.cpp", "popxl/halves_op_impl.cpp"):
        assert '"opc.test", "Halves", 1, {1, 1}, 2' in found[path], path
    assert "opVersion=1," in found["popart/run_halves.py"]
    assert "\nVERSION = 1\n" in found["popart/__init__.py"]
    assert 'make_opsetid("opc.test", 3)' in found["poprt/create_onnx_with_custom_op.py"]


def test_names_of_a_spec_are_not_hidden() -> None:
    declared = "attributes: {check: float, settings: int, class: float}\noutputs: {a:"
    text = TWO_OUTPUTS.replace("outputs: {a:", declared).replace("{x: 'T[...]'}", "{x: 'T[...]', ctx: 'T[...]', load: 'T[...]'}")
    family = compile_text(text.replace("a = x * x", "a = ctx * load * check * class * settings"))
    found = {path: text for b in BACKENDS for path, text in b.emit(family).items()}
    (function,) = (n for n in ast.parse(found["popxl/halves_op.py"]).body if isinstance(n, ast.FunctionDef))
    parameters = {a.arg for a in function.args.args}
    assert {"ctx", "check", "settings", "class_"} < parameters
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    assert not parameters & stored
    assert "    opc_load()\n" in found["popart/__init__.py"]
    for path in ("popart/halves_custom_op.cpp", "popxl/halves_op_impl.cpp"):
        # Messages have the name of the spec, models that which the spec's became.
        assert re.search(r'params\.class_ = opc::ipu::number\(given, "halves", "class",\s+"class_"\);', found[path]), path
        assert "params.opc_check();" in found[path]


def test_popart_includes_what_it_needs_by_name(files: dict[str, str]) -> None:
    text = files["popart/leaky_relu_custom_op.cpp"]
    headers = ["op", "opmanager", "opserialiser", "operatoridentifier", "attributes", "datatype", "tensorinfo", "shapeinference"]
    for header in [*(f"popart/{h}" for h in headers), "popart/popx/opx", "popart/popx/opxmanager", "poplar/Tensor"]:
        assert f"#include <{header}.hpp>" in text
    assert "using namespace" not in text
    assert "namespace popart {" not in text


def test_popart_registers_every_op_that_autodiff_reaches(files: dict[str, str]) -> None:
    text = files["popart/leaky_relu_custom_op.cpp"]
    for name, public in (("LeakyRelu", "true"), ("LeakyReluBackward", "false"), ("LeakyReluBackwardBackward", "false")):
        assert f"popart::OpCreator<{name}Op>" in text
        assert f"popart::popx::OpxCreator<{name}Opx>" in text
        assert re.search(rf"make_unique<{name}Op>\(info\.opid, params, info\.settings\);\n    }},\n    {public}\);", text)
    assert text.count("popart::RegisterShapeInferenceFunction") == 3
    assert "{1, 0, popart::GradOpInType::GradOut}" in text


def test_no_op_is_copied_and_every_virtual_method_says_so(files: dict[str, str]) -> None:
    for path in ("popart/leaky_relu_custom_op.cpp", "popxl/leaky_relu_op_impl.cpp"):
        text = files[path]
        assert re.search(r"auto op = getOp", text) is None
        assert "const auto &op = getOp<LeakyReluOp>();" in text
        methods = ("clone", "setup", "grow", "getGradOps", "gradInputInfo", "gradOutToNonGradIn", "appendOutlineAttributes")
        for line in text.splitlines():
            if re.match(rf"  \S.*\b({'|'.join(methods)})\([^;]*\) (const )?", line) and line.rstrip().endswith("{"):
                assert " final " in line or " override " in line, line


def test_popxl_is_what_cppimport_takes(files: dict[str, str]) -> None:
    text = files["popxl/leaky_relu_op_impl.cpp"]
    assert text.splitlines()[0] == "// cppimport"
    assert "PYBIND11_MODULE(leaky_relu_op_impl, m)" in text
    assert text.rstrip().endswith("%>\n*/")
    assert "setup_pybind11(cfg)" in text
    # cppimport reads the file as a template of Mako.
    assert re.findall(r"^\s*(?:%(?!>)|##).*|\$\{", text, re.MULTILINE) == []


def block_of(text: str) -> str:
    """Return the Python that cppimport runs of a source."""
    return text.partition("<%\n")[2].partition("%>")[0]


def test_builds_without_opc_say_what_they_lack(files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "opc is not installed here: say in OPC_RUNTIME_INCLUDE where its headers are"
    monkeypatch.delenv("OPC_RUNTIME_INCLUDE", raising=False)
    monkeypatch.setitem(sys.modules, "opc.build.toolchain", None)
    with pytest.raises(RuntimeError, match=said):
        exec(block_of(files["popxl/leaky_relu_op_impl.cpp"]), {"cfg": {}})
    gather = load_family(SPECS / "gather.yaml")
    for path, text in {p: t for b in BACKENDS for p, t in b.emit(gather).items()}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    for target in ("popart", "poprt"):
        call = ["make", "-C", target, "-B", "OPC_RUNTIME_INCLUDE="]
        assert said in subprocess.run([*call, "-o", "../kernel/gather.h"], cwd=tmp_path, capture_output=True, text=True).stderr
        assert subprocess.run([*call, "clean"], cwd=tmp_path, capture_output=True).returncode == 0


def test_popxl_is_built_as_its_block_says_however_long_the_name_is() -> None:
    name = "halves_of_an_op_whose_name_is_as_long_as_a_line_is"
    emitted = PopxlBackend().emit(compile_text(TWO_OUTPUTS.replace("op: halves", f"op: {name}")))
    ((_, text),) = ((path, text) for path, text in emitted.items() if path.endswith(".cpp"))
    cfg: dict[str, list[str]] = {}
    exec(block_of(text), {"cfg": cfg, "setup_pybind11": lambda _: None})
    includes = re.findall(r'#include "(\.\./\S+)"', text + emitted[f"poplar/{name}_checks.hpp"])
    assert {include for include in includes if include not in cfg["dependencies"]} == set()
    assert len(includes) == 3


def test_popxl_has_the_op_in_place(files: dict[str, str]) -> None:
    text = files["popxl/leaky_relu_op_impl.cpp"]
    assert "class LeakyReluInplaceOp final" in text
    assert 'makeParameterizedOpBindings<LeakyReluInplaceOp>(m, "LeakyReluInplace")' in text
    assert "def leaky_relu_(x: Tensor, alpha: float = 0.01) -> Tensor:" in files["popxl/leaky_relu_op.py"]
    assert '__all__ = ["leaky_relu", "leaky_relu_"]' in files["popxl/__init__.py"]
    # Of an op of which the spec does not say so there is none.
    clamp = PopxlBackend().emit(load_family(SPECS / "clamp.yaml"))
    assert "Inplace" not in "".join(clamp.values())
    assert '__all__ = ["clamp"]' in clamp["popxl/__init__.py"]


def test_numbers_are_told_apart_and_read_with_all_digits(files: dict[str, str]) -> None:
    for path in ("popart/leaky_relu_custom_op.cpp", "popxl/leaky_relu_op_impl.cpp"):
        assert 'os.appendAttribute("alpha", opc::ipu::exact(alpha));' in files[path]
        assert 'params.alpha = opc::ipu::number(given, "leaky_relu", "alpha");' in files[path]


def test_ops_that_leave_out_operands_in_front_have_no_function_of_shapes() -> None:
    # With one, a Builder asks for the size of an operand that is left out, and refuses the node.
    files = PopartBackend().emit(load_family(SPECS / "layer_norm.yaml"))
    assert "RegisterShapeInferenceFunction" not in files["popart/layer_norm_custom_op.cpp"]
    assert 'inputs = ["" if x is None else x for x in inputs]' in files["popart/__init__.py"]
    linear = PopartBackend().emit(load_family(SPECS / "linear.yaml"))
    assert "RegisterShapeInferenceFunction linear_shapes(" in linear["popart/linear_custom_op.cpp"]
    assert '"" if x is None' not in linear["popart/__init__.py"]


def test_popxl_wrapper_tells_the_context(files: dict[str, str]) -> None:
    text = files["popxl/leaky_relu_op.py"]
    assert "@op_debug_context\ndef leaky_relu(" in text
    assert "check_in_graph(graph, x=x)" in text
    assert "ctx._op_created(op)" in text


def test_poprt_has_the_published_command(files: dict[str, str]) -> None:
    text = files["poprt/run_poprt.sh"]
    for option in ("--input_model", "--custom_library_so_paths", "--custom_shape_inference", "--run"):
        assert option in text
    assert '@register_shape_func(["LeakyRelu"])' in files["poprt/custom_shape_inference.py"]


@pytest.mark.parametrize(
    "name", ["attention", "clamp", "cross_entropy", "dequantize_linear", "gather", "leaky_relu", "max_pool2d"]
)
def test_python_files_parse(name: str) -> None:
    family = load_family(SPECS / f"{name}.yaml")
    for backend in BACKENDS:
        assert backend.requires(family) == ()
        for path, text in backend.emit(family).items():
            if path.endswith(".py"):
                ast.parse(text, path)


def test_backends_share_files_of_equal_text(leaky_relu: Family) -> None:
    shared = [{p: t for p, t in b.emit(leaky_relu).items() if p.startswith("poplar/")} for b in BACKENDS]
    assert shared[0] == shared[1] == shared[2]
    assert set(shared[0]) == {f"poplar/leaky_relu_{end}" for end in ("body.hpp", "checks.hpp", "reference.py")}


def test_int64_indices_are_held_in_32_bits() -> None:
    op = carried(load_family(SPECS / "gather.yaml").forward)
    types = {t.name: [d.value for d in t.dtypes] for t in op.types}
    assert types["I"] == ["int32"]
    assert "int64" not in types["T"]
    assert "float64" not in types["T"]


def test_gradients_that_must_be_there_and_do_not_arrive_are_zeros() -> None:
    family = load_family(SPECS / "top1_routing.yaml")
    gradient = op_classes(family)[1]
    assert len(family.forward.outputs) > 1
    ((position, output),) = gradient.cotangents
    text = PopartBackend().emit(family)["popart/top1_routing_custom_op.cpp"]
    assert f"if (forward.hasOutput({output})) cotangents_.emplace({position}, forward.outInfo({output}));" in text
    assert "op.cotangents()" in text


def test_gradients_of_outputs_that_are_left_out_are_not_asked_for() -> None:
    twice = op_classes(load_family(SPECS / "clamp.yaml"))[2]
    assert twice.partial
    text = PopartBackend().emit(load_family(SPECS / "clamp.yaml"))["popart/clamp_custom_op.cpp"]
    assert "opc::ipu::keep_connected(grad_inputs_, forward);" in text


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b.name)
def test_domains_of_popart_itself_are_refused(backend: Backend) -> None:
    family = compile_text(TWO_OUTPUTS.replace("opc.test", "ai.graphcore"))
    (why,) = backend.requires(family)
    assert why.message == "the domain ai.graphcore is that of PopART's own ops, and ops of users need another"


def test_dtypes_that_poplar_lacks_are_refused() -> None:
    family = compile_text(TWO_OUTPUTS.replace("[float32, float16]", "[float64, bfloat16]"))
    (why,) = PopartBackend().requires(family)
    assert why.message == "x of halves is float64, bfloat16, which Poplar has no tensors of"


@pytest.mark.parametrize(("sdk", "refused"), [("2.5", {"popxl", "poprt"}), ("2.6", {"poprt"}), ("3.0", set()), ("3.4", set())])
def test_what_an_older_sdk_lacks_is_refused(
    sdk: str, refused: set[str], leaky_relu: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.opc.popart]\nsdk = "{sdk}"\n')
    monkeypatch.chdir(tmp_path)
    assert {b.name for b in BACKENDS if b.requires(leaky_relu)} == refused


def test_codelets_are_optimised_where_they_run_on_an_ipu() -> None:
    family = load_family(SPECS / "gather.yaml")

    def level(root: Path | None) -> str:
        (step,) = codelet_steps(family, Sdk(root, "3.4"))
        assert isinstance(step, Tool)
        return next(flag for flag in step.command if flag.startswith("-O"))

    assert (level(None), level(Path("emulation"))) == ("-O3", "-O0")


def test_headers_are_kept_with_the_emulation_of_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environments.VARIABLE, str(tmp_path))
    folder = tmp_path / NAME
    (folder / environments.MADE).mkdir(parents=True)
    (folder / environments.MADE / STAMP).touch()
    data = {"backends": [NAME], "requirements": [], "identity": "x", "made": "y"}
    (folder / environments.RECORD).write_text(environments.as_json(data))
    assert Sdk(folder / environments.MADE, "3.4").kept == str(folder / environments.HEADERS)
    # Not beside an SDK that somebody has built elsewhere, nor a real one.
    assert Sdk(tmp_path / "sdk", "3.4").kept == ""
    assert Sdk(None, "3.4").kept == ""
