"""What the MindSpore backend writes, without MindSpore."""

import subprocess
from pathlib import Path

import pytest

from opc.backends.mindspore.backend import MindSporeBackend
from opc.backends.mindspore.library import MAX_OPERANDS
from opc.build.builder import build_specs
from opc.ir.op import Family
from opc.pipeline import compile_text, load_family

ROOT = Path(__file__).parents[3]
SPECS = ROOT / "specs"
BACKEND = MindSporeBackend()


def family(inputs: str = "x: 'T[...]'", attributes: str = "", kernel: str = "y = x") -> Family:
    text = f"""
op: thing
domain: opc.test
version: 1
doc: A test.
types: {{T: floating}}
inputs: {{{inputs}}}
{f"attributes: {{{attributes}}}" if attributes else ""}
outputs: {{y: 'T[...]'}}
gradient: none
kernel: |
  {kernel}
"""
    return compile_text(text, "thing.yaml")


def test_every_spec_is_carried() -> None:
    for path in sorted(SPECS.glob("*.yaml")):
        assert BACKEND.requires(load_family(path)) == (), path.name


def test_too_many_operands_are_refused() -> None:
    names = [f"x{i}" for i in range(MAX_OPERANDS + 1)]
    found = BACKEND.requires(family(", ".join(f"{n}: 'T[...]'" for n in names), kernel=f"y = {' + '.join(names)}"))
    assert [d.message for d in found] == [f"thing has {MAX_OPERANDS + 1} inputs; MindSpore's adapter takes {MAX_OPERANDS}"]


def test_a_gradient_names_what_it_saves() -> None:
    text = BACKEND.emit(load_family(SPECS / "layer_norm.yaml"))["mindspore/operators.py"]
    assert "found = gradient(x, w, out[1], out[2], dout[0], dout[1], dout[2])" in text
    assert "b if inputs[2] < 0 else found[inputs[2]]," in text


def test_ops_of_integers_have_gradients_of_zero() -> None:
    text = BACKEND.emit(load_family(SPECS / "argmax.yaml"))["mindspore/operators.py"]
    assert "return (zero(x),)" in text


@pytest.mark.parametrize(
    ("op", "scalar"), [("conv2d", "scalar=False,"), ("mse_loss", "scalar=True,"), ("leaky_relu", "axes=(0,),")]
)
def test_outputs_of_rank_zero_are_known(op: str, scalar: str) -> None:
    text = BACKEND.emit(load_family(SPECS / f"{op}.yaml"))["mindspore/operators.py"]
    assert scalar in text[text.index(f"\n{op} = Op(") :]


def test_the_library_exports_what_mindspore_looks_for(tmp_path: Path) -> None:
    (built,) = build_specs([SPECS / "dual_residual.yaml"], tmp_path, ["mindspore"])
    assert built.package is not None
    assert built.diagnostics == ()
    library = built.package / "build" / "libdual_residual_mindspore.so"
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.split()
    for ending in ("", "InferShape", "InferType", "Types"):
        assert f"DualResidual{ending}" in symbols
        assert f"DualResidualBackward{ending}" in symbols
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "mindspore" not in needed.split("Dynamic section")[1].lower().replace("libdual_residual_mindspore", "")
