"""From an ONNX model to one that PopART takes: opset, shapes, precision, passes."""

import logging

import onnx
import onnx.version_converter

from poprt.passes.base import PASSES
from poprt.passes.half import FloatToHalf
from poprt.passes.shapes import ShapeInference, missing

log = logging.getLogger("poprt")


class ConversionError(Exception):
    """A model that can't be converted, with the reason."""


class Converter:
    """Converts models.

    Arguments:
        input_shape: sizes of inputs, by their names.
        convert_version: the version of ai.onnx that the model is converted to.
        precision: "fp32" or "fp16".
        fp16_skip_op_types: a list of op types, or one string with commas between them, that keep computing in float32.
        used_passes: names of registered passes, or one string with commas between them, that run after the conversion.
        infer_shape_ahead: shapes are inferred before the opset is converted, too.
        batch_size: the size of each input along `batch_axis`.
        batch_axis: an axis.
    """

    def __init__(
        self,
        input_shape=None,
        convert_version: int = 11,
        precision: str = "fp32",
        fp16_skip_op_types=None,
        used_passes=None,
        infer_shape_ahead: bool = False,
        batch_size: int | None = None,
        batch_axis: int = 0,
        skip_passes=None,
    ) -> None:
        if precision not in ("fp32", "fp16"):
            raise ConversionError(f"The emulation has no precision {precision}: use fp32 or fp16.")
        self.input_shape = dict(input_shape or {})
        self.convert_version = convert_version
        self.precision = precision
        self.fp16_skip_op_types = _names(fp16_skip_op_types)
        skipped = _names(skip_passes)
        self.used_passes = [name for name in _names(used_passes) if name not in skipped]
        self.infer_shape_ahead = infer_shape_ahead
        self.batch_size, self.batch_axis = batch_size, batch_axis
        for name in self.used_passes:
            if name not in PASSES:
                raise ConversionError(f"There is no pass named {name}. Those there are: {', '.join(sorted(PASSES))}.")

    def convert(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """The converted model; `model` stays as it is.

        Raises:
            ConversionError: an input that the model doesn't have, an opset that it can't be converted to, or a shape that nothing
                infers.
        """
        made = onnx.ModelProto()
        made.CopyFrom(model)
        self._set_shapes(made)
        if self.infer_shape_ahead:
            made = ShapeInference().run(made)
        made = self._convert_opset(made)
        made = ShapeInference().run(made)
        unknown = missing(made)
        if unknown:
            raise ConversionError(
                f"The shape or dtype of {', '.join(unknown)} can't be inferred. For an op that ONNX doesn't know, write a "
                "function with @register_shape_func and give its file to --custom_shape_inference."
            )
        if self.precision == "fp16":
            made = FloatToHalf(self.fp16_skip_op_types).run(made)
        for name in self.used_passes:
            made = PASSES[name]().run(made)
        return made

    def _set_shapes(self, model: onnx.ModelProto) -> None:
        initializers = {tensor.name for tensor in model.graph.initializer}
        inputs = {info.name: info for info in model.graph.input if info.name not in initializers}
        for name, shape in self.input_shape.items():
            if name not in inputs:
                raise ConversionError(f"The model has no input {name}. Those it has: {', '.join(inputs)}.")
            dims = inputs[name].type.tensor_type.shape.dim
            if len(dims) != len(shape):
                raise ConversionError(f"Input {name} has {len(dims)} axes, but {len(shape)} sizes are given.")
            for dim, size in zip(dims, shape):
                if dim.HasField("dim_value") and dim.dim_value not in (size, 0):
                    log.info("Input %s: size %s becomes %s", name, dim.dim_value, size)
                dim.Clear()
                dim.dim_value = size
        if self.input_shape or self.batch_size is not None:
            # What was known of other tensors held for the old sizes.
            del model.graph.value_info[:]
            for output in model.graph.output:
                output.type.tensor_type.ClearField("shape")
        if self.batch_size is not None:
            for info in inputs.values():
                if info.name not in self.input_shape and info.type.tensor_type.shape.dim:
                    info.type.tensor_type.shape.dim[self.batch_axis].dim_value = self.batch_size

    def _convert_opset(self, model: onnx.ModelProto) -> onnx.ModelProto:
        versions = {opset.domain: opset.version for opset in model.opset_import}
        if versions.get("", versions.get("ai.onnx")) == self.convert_version:
            return model
        try:
            return onnx.version_converter.convert_version(model, self.convert_version)
        except Exception as error:  # the converter raises RuntimeError and others of its own
            raise ConversionError(
                f"The model can't be converted to version {self.convert_version} of ai.onnx: {error}"
            ) from error


def _names(value) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else value or []
    return [part.strip() for part in parts if part.strip()]
