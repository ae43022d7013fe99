"""The three published chains, with LeakyRelu written by hand: what a user of the SDK runs, file by file, and what is refused."""

import shutil
from pathlib import Path

import pytest

from tests.emulation.sdk import SAMPLES, shell

LIBRARY = "--custom_library_so_paths build/custom_ops.so"
WITH_SHAPES = f"poprt -i custom_op_test.onnx {LIBRARY} --custom_shape_inference custom_shape_inference.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples, and with what `make` makes of them."""
    folder = tmp_path_factory.mktemp("chains") / "samples"
    shutil.copytree(SAMPLES, folder)
    printed = shell("make && python create_onnx_with_custom_op.py", folder)
    assert "warning" not in printed
    return folder


SAYS = "popart: emulated on the CPU, no IPU is used"


def lines(printed: str) -> dict[str, str]:
    """What a script printed, by the words before the first colon, but for what says once that it is emulated."""
    assert printed.splitlines().count(SAYS) == 1
    return dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line and line != SAYS)


@pytest.mark.rotating
def test_popart(folder: Path) -> None:
    said = lines(shell("python run_sample_popart.py", folder))
    assert said["attribute"] == "LeakyRelu: alpha must not be negative, it is -1"
    assert said["numpy attribute"] == "Invalid type provided in custom op attribute 'alpha'"
    assert said["texts attribute"] == "Invalid or mismatched python list type provided in custom op attribute 'alpha'"
    assert said["dtype"] == "LeakyRelu: x must be FLOAT or FLOAT16, not int32"
    assert "User provided : DOUBLE and expected : FLOAT" in said["fed dtype"]
    assert "not c-contiguous" in said["fed order"]
    assert "nothing" in said["unknown tensor"]
    assert said["no model"] == "Failed to parse the model: its bytes are no ONNX ModelProto"
    assert said["no file"] == "Failed to open file nothing.onnx"
    assert float(said["milliseconds"]) < 50


@pytest.mark.rotating
def test_popxl(folder: Path) -> None:
    said = lines(shell("python run_sample_popxl.py", folder))
    assert "Unable to provide required gradient" in said["second order by x"]
    assert said["dtype"] == "LeakyRelu: x must be FLOAT or FLOAT16, not int32"
    assert "is not in the current Graph" in said["other graph"]
    assert said["no tensor"].startswith("The input `lhs` is not a Tensor")
    assert "no graph has been selected" in said["outside"]
    assert said["stream dtype"].startswith("dtype of stream")
    assert said["not attached"].startswith("Must be attached to device")
    assert said["other shape"].startswith("Shape mismatch for input stream")
    assert said["no input"] == "Unexpected/Missing input."
    assert said["device"] == "The emulation has no device 'ipu_hw': use 'ipu_model' or 'cpu'."
    assert float(said["milliseconds"]) < 50


@pytest.mark.rotating
def test_poprt(folder: Path) -> None:
    printed = shell(f"{WITH_SHAPES} --run", folder)
    assert "Ran on the emulated device: LeakyRelu(sample.ops), Mul(ai.onnx), Relu(ai.onnx)" in printed
    assert "Output Z: float32 [4, 2]" in printed
    assert "Latency" in printed


def test_poprt_in_half_precision(folder: Path) -> None:
    printed = shell(f"{WITH_SHAPES} --precision fp16 --output_model half.onnx --run", folder)
    assert "Clip W to range" in printed
    assert "Output Z: float16 [4, 2]" in printed
    assert (folder / "half.onnx").is_file()
    printed = shell(f"{WITH_SHAPES} --precision fp16 --fp16_skip_op_types LeakyRelu,Relu --run", folder)
    assert "Cast(ai.onnx), LeakyRelu(sample.ops), Cast(ai.onnx), Mul(ai.onnx), Cast(ai.onnx), Relu(ai.onnx)" in printed


def test_poprt_takes_sizes(folder: Path) -> None:
    assert "Output Z: float32 [9, 2]" in shell(f"{WITH_SHAPES} --input_shape X=9,2 --run", folder)
    assert "Output Z: float32 [3, 7, 2]" in shell(f"{WITH_SHAPES} --batch_size 7 --batches_per_step 3 --run", folder)


REFUSED = {
    "--precision bf16": "argument --precision: invalid choice: 'bf16'",
    "--ipu_version ipu3": "argument --ipu_version: invalid choice: 'ipu3'",
    "--precisio": "argument --precision: expected one argument",
    "--nothing": "unrecognized arguments: --nothing",
    "--precision fp8": "The emulation doesn't do --precision fp8.",
    "--pack_args a=b": "The emulation doesn't do --pack_args.",
    "--run": "The shape or dtype of Y, M can't be inferred.",
    "--passes nothing": "There is no pass named nothing.",
    "--custom_shape_inference nothing.py": "There is no file nothing.py.",
    "--input_shape X=1,2,3": "Input X has 2 axes, but 3 sizes are given.",
    "--input_shape Q=1": "The model has no input Q.",
}


def test_poprt_refuses(folder: Path) -> None:
    (folder / "options.txt").write_text("\n".join(REFUSED))
    said = lines(shell("python run_refused_poprt.py options.txt build/custom_ops.so", folder))
    assert said.keys() == REFUSED.keys()
    for options, message in REFUSED.items():
        assert message in said[options], options


def test_poprt_runs_own_passes(folder: Path) -> None:
    (folder / "double.py").write_text(
        "from poprt.passes import Pass, register\n\n\n@register('mul_to_add')\nclass MulToAdd(Pass):\n"
        "    def run_transform(self, graph, is_main_graph):\n        for node in graph.node:\n"
        "            if node.op_type == 'Mul':\n                node.op_type = 'Add'\n        return graph\n\n"
        "    def run(self, onnx_model):\n"
        "        onnx_model.graph.CopyFrom(self.traverse_graph(onnx_model.graph, self.run_transform))\n"
        "        return onnx_model\n"
    )
    assert "mul_to_add" in shell("poprt --list_all_passes --custom_pass_config double.py", folder).split()
    printed = shell(f"{WITH_SHAPES} --custom_pass_config double.py --passes mul_to_add --run", folder)
    assert "LeakyRelu(sample.ops), Add(ai.onnx), Relu(ai.onnx)" in printed


WRONG = {
    "Right": "[-1.0, -1.0, -1.0, -1.0, -1.0, -1.0]",
    "WritesInput": "popart_exception: Op Op(101, wrong.ops.WritesInput:1, inputs=[input], outputs=[WritesInput:0]) claims",
    "ReturnsInput": "popart_exception: Op Op(101, wrong.ops.ReturnsInput:1, inputs=[input], outputs=[ReturnsInput:0]) claims",
    "OtherShape": "popart_exception: Op(101, wrong.ops.OtherShape:1, inputs=[input], outputs=[OtherShape:0]) sets its output 0",
    "OtherType": "popart_exception: Op(101, wrong.ops.OtherType:1, inputs=[input], outputs=[OtherType:0]) sets its output 0",
    "NoPoplarType": "popart_exception: Is there a poplar type for INT64?",
    "Unmapped": "poplar_exception: getTileMapping: no tile mapping",
    "Unwritten": "poplar_exception: Copy of stream 'd2h_Unwritten:0': reads element 0",
    "NoOutput": "popart_exception: The Opx of Op(101, wrong.ops.NoOutput:1, inputs=[input], outputs=[NoOutput:0]) did not set",
    "SelectsConstants": "poplibs_exception: Error inferring types in expression",
    "NoOpx": "popart_exception: Could not create opx for",
    "Unknown": "popart_exception: No class for wrong.ops.Unknown:1",
}


def test_wrong_ops_are_caught(folder: Path) -> None:
    shell("g++ -std=c++14 -fPIC -O0 -DONNX_NAMESPACE=onnx wrong_ops.cpp -shared -lpopart -o libwrong.so", folder)
    said = lines(shell("python run_wrong_ops.py ./libwrong.so", folder))
    assert said.keys() == WRONG.keys()
    for op, message in WRONG.items():
        assert said[op].startswith(message), op


def test_onnx_comes_after_popart(tmp_path: Path) -> None:
    assert "popart must be imported before onnx" in shell("python -c 'import onnx, popart'", tmp_path, check=False)
    shell("python -c 'import popart, onnx'", tmp_path)
