"""The command `poprt`: converts an ONNX model, and runs it with `--run`."""

import argparse
import ctypes
import importlib.util
import logging
import sys
import time
from pathlib import Path

import popart  # before onnx, as PopART asks for

import numpy as np  # isort: skip
import onnx  # isort: skip

from poprt.converter import ConversionError, Converter
from poprt.passes import get_registered_passes

log = logging.getLogger("poprt")

# What the published command takes and the emulation can't do: they are refused by name, not passed over in silence.
REFUSED = (
    "calibration_loss_type",
    "checkpoints",
    "config_yaml",
    "data_preprocess",
    "export_popef",
    "fp8_params",
    "fp8_skip_op_names",
    "manual_sharding_config",
    "merge_matmul",
    "merge_matmul_add",
    "merge_moe",
    "num_of_layers_keep_fp16",
    "pack_args",
    "remap_mode",
    "remove_outputs",
    "serialize_matmul",
    "serialize_matmul_add",
)
# What changes only how fast or with how much memory an IPU runs: taken, and without effect here.
WITHOUT_EFFECT = (
    "available_memory_proportion",
    "max_tensor_size",
    "num_io_tiles",
    "ipu_version",
    "compiler_options",
    "popart_options",
)
KEY_VALUE = ("compiler_options", "popart_options", "pack_args", "serialize_matmul", "serialize_matmul_add")
SWITCHES = ("export_popef",)


def main(arguments: list[str] | None = None) -> int:
    """The command: returns its exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(filename)s:%(lineno)d] %(message)s", stream=sys.stdout)
    log.setLevel(options.logging_level)
    refused = [name for name in REFUSED if getattr(options, name)]
    try:
        if refused:
            raise ConversionError(f"The emulation doesn't do --{', --'.join(refused)}.")
        _work(options)
    except (ConversionError, popart.popart_exception, popart.poplar_exception, popart.poplibs_exception) as error:
        log.error("%s", error)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("poprt", description="Emulated PopRT: converts ONNX models and runs them on the CPU.")
    add = parser.add_argument
    add("-i", "--input_model", help="the ONNX file")
    add("--output_model", help="where the converted model is written; it is not written without this option")
    add("--output_dir", default="./", help="the folder of --output_model")
    add("--framework", default="onnx", choices=["onnx"])
    add("--convert_version", type=int, default=11, help="the version of ai.onnx to convert to (11)")
    add("--precision", default="fp32", choices=["fp32", "fp16", "fp8", "fp8_weight"])
    add("--fp16_skip_op_types", help="op types that stay in float32, with commas between them")
    add("--input_shape", nargs="+", metavar="INPUT_NAME=SHAPE", help="sizes of inputs: x=1,3,224,224 y=1")
    add("--infer_shape_ahead", action="store_true", help="infer shapes before the opset is converted, too")
    add("--batch_size", type=int)
    add("--batch_axis", type=int, default=0)
    add("--batches_per_step", type=int, default=1)
    add("--custom_library_so_paths", nargs="+", default=[], help="libraries of custom ops")
    add("--custom_shape_inference", default="", help="files of shape functions, with commas between them")
    add("--custom_pass_config", default="", help="files of passes, with commas between them")
    add("--passes", default="", help="passes to run, with commas between them")
    add("--skip_passes", default="", help="passes not to run, with commas between them")
    add("--list_all_passes", action="store_true", help="print the names of the passes")
    add("--run", action="store_true", help="run the converted model with random inputs")
    add("--logging_level", default="INFO", choices=["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
    for name in (*REFUSED, *WITHOUT_EFFECT):
        if name in SWITCHES:
            add(f"--{name}", action="store_true", help=argparse.SUPPRESS)
        elif name in KEY_VALUE:
            add(f"--{name}", nargs="+", metavar="KEY=VAL", help=argparse.SUPPRESS)
        else:
            choices = ["ipu2", "ipu21"] if name == "ipu_version" else None
            add(f"--{name}", choices=choices, help=argparse.SUPPRESS)
    return parser


def _work(options: argparse.Namespace) -> None:
    for path in options.custom_library_so_paths:
        _load_library(path)
    for path in _paths(options.custom_shape_inference) + _paths(options.custom_pass_config):
        _import(path)
    if options.list_all_passes:
        print("\n".join(get_registered_passes()))
        return
    if not options.input_model:
        raise ConversionError("Which model? Say --input_model FILE.")
    if not Path(options.input_model).is_file():
        raise ConversionError(f"There is no file {options.input_model}.")
    if options.precision not in ("fp32", "fp16"):
        raise ConversionError(f"The emulation doesn't do --precision {options.precision}.")
    converter = Converter(
        input_shape=_shapes(options.input_shape or []),
        convert_version=options.convert_version,
        precision=options.precision,
        fp16_skip_op_types=options.fp16_skip_op_types,
        used_passes=options.passes,
        skip_passes=options.skip_passes,
        infer_shape_ahead=options.infer_shape_ahead,
        batch_size=options.batch_size,
        batch_axis=options.batch_axis,
    )
    model = converter.convert(onnx.load(options.input_model))
    if options.output_model:
        path = Path(options.output_dir) / options.output_model
        onnx.save(model, path)
        log.info("Saved %s", path)
    if options.run:
        run(model, options.batches_per_step)


def run(model: onnx.ModelProto, batches_per_step: int = 1) -> dict[str, np.ndarray]:
    """Runs a converted model on the emulated device with random inputs, and logs what ran; returns the outputs."""
    inputs = {name: _random(info, batches_per_step) for name, info in _inputs(model).items()}
    outputs = [output.name for output in model.graph.output]
    flow = popart.DataFlow(batches_per_step, {name: popart.AnchorReturnType("All") for name in outputs})
    device = popart.DeviceManager().createIpuModelDevice({})
    session = popart.InferenceSession(model.SerializeToString(), flow, device)
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    started = time.perf_counter()
    session.run(popart.PyStepIO(inputs, anchors))
    seconds = time.perf_counter() - started
    log.info(
        "Ran on the emulated device: %s", ", ".join(f"{node.op_type}({node.domain or 'ai.onnx'})" for node in model.graph.node)
    )
    for kind, arrays in (("Input", inputs), ("Output", anchors)):
        for name, array in arrays.items():
            log.info("%s %s: %s %s", kind, name, array.dtype, list(array.shape))
    sizes = [info.shape.dim for info in _inputs(model).values()]
    batch = max((size[0].dim_value for size in sizes if size), default=1)
    log.info("Bs: %s", batch)
    log.info("Latency: %.2fms", seconds * 1e3)
    log.info("Tput: %d", batch * batches_per_step / seconds)
    return anchors


def _inputs(model: onnx.ModelProto) -> dict:
    initializers = {tensor.name for tensor in model.graph.initializer}
    return {info.name: info.type.tensor_type for info in model.graph.input if info.name not in initializers}


def _random(info, batches: int) -> np.ndarray:
    shape = [dim.dim_value for dim in info.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.elem_type)
    shape = [batches, *shape] if batches > 1 else shape
    values = np.random.default_rng(0).standard_normal(shape)
    # Small whole numbers: an input may be an index.
    return np.asarray(values if dtype.kind == "f" else values > 0).astype(dtype)


def _load_library(path: str) -> None:
    try:
        ctypes.cdll.LoadLibrary(str(Path(path).absolute()))
    except OSError as error:
        raise ConversionError(f"Can't load --custom_library_so_paths {path}: {error}") from error


def _import(path: str) -> None:
    if not Path(path).is_file():
        raise ConversionError(f"There is no file {path}.")
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


def _paths(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _shapes(values: list[str]) -> dict[str, list[int]]:
    shapes = {}
    for value in values:
        name, separator, sizes = value.rpartition("=")
        try:
            shapes[name] = [int(size) for size in sizes.split(",") if size]
        except ValueError:
            separator = ""
        if not separator:
            raise ConversionError(f"--input_shape {value}: write NAME=SIZE,SIZE.")
    return shapes


if __name__ == "__main__":
    sys.exit(main())
