"""What ONNX's own tools promise of a generated op, checked on the spec's examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import infer
from opc.backends.base import Unsupported
from opc.backends.checks import Checks, assert_alike, check, misshapen, shapes
from opc.backends.example_call import ExampleCall, example_calls
from opc.backends.onnx.session import OnnxSession
from opc.emit.onnx.function import NoBody, function_body
from opc.emit.onnx.types import used_variables
from opc.ir.dtypes import DType

if TYPE_CHECKING:
    from opc.backends.base import Array


class OnnxChecks(Checks[OnnxSession]):
    """The checks of one op."""

    @property
    def module(self) -> Any:
        """The package's ONNX module."""
        return self.session.module

    @property
    def halves(self) -> list[DType]:
        """The dtypes of the op that are computed in a wider one."""
        return list(dict.fromkeys(d for v in used_variables(self.op) for d in v.dtypes if d.compute is not d))

    @check("checker")
    def checker(self) -> None:
        """ONNX's checker accepts a model by the registered schema, whose defaults are the spec's."""
        import onnx
        from onnx import defs

        self.module.register()
        self.module.register()
        for op in self.family.ops:
            schema = defs.get_schema(op.class_name, domain=op.domain)
            assert [p.name for p in schema.inputs] == [o.name for o in op.inputs]
            assert [p.name for p in schema.outputs] == [o.name for o in op.outputs]
            for a in op.attributes:
                assert schema.attributes[a.name].required == (a.required and a.name not in self.op.told), a.name
        for call in example_calls(self.family):
            onnx.checker.check_model(call.model(self.module, shapes=call.shapes()), full_check=True)

    def _inferred(self, model: Any) -> dict[str, Any]:
        """Return the tensor types that strict shape inference finds for the outputs."""
        import onnx

        self.module.register()
        found = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        return {o.name: o.type.tensor_type for o in found.graph.output}

    def one_axis(self) -> None:
        """A model is the same of a number as of a list of this one."""
        for axis, name, given in self.of_one_axis():
            absent = [x.name for x in self.op.inputs if x.name not in given.given]
            made = [
                self.module.make_model(
                    self.op.class_name,
                    dtypes=next(iter(self.halves or [DType.FLOAT32])).value,
                    shapes={n: a.shape for n, a in given.given.items()},
                    absent=absent,
                    **{**given.attributes, name: value},
                )
                for value in (axis, [axis])
            ]
            assert made[0] == made[1], f"{name}={axis} makes another model than [{axis}]"

    @check("shape inference")
    def shape_inference(self) -> None:
        """Sizes that are numbers give the outputs' sizes."""
        for call in example_calls(self.family):
            expected = infer(self.op, shapes(call.feeds), call.given)
            inferred = self._inferred(call.model(self.module, shapes=call.shapes()))
            for name, shape in expected.outputs.items():
                sizes = [d.dim_value for d in inferred[name].shape.dim]
                assert sizes == list(shape), f"{name} is {sizes}, not {list(shape)}"

    @check("symbolic sizes")
    def symbolic_sizes(self) -> None:
        """Sizes that are names, or unknown, give as many axes, and a name where the size is an input's."""
        for call in example_calls(self.family):
            expected = infer(self.op, shapes(call.feeds), call.given)
            named = self._inferred(call.model(self.module, shapes=call.shapes(symbolic=True)))
            unknown = self._inferred(call.model(self.module, shapes={n: [None] * len(s) for n, s in call.shapes().items()}))
            sizes = {f"size_{size}" for shape in call.shapes().values() for size in shape}
            for name, shape in expected.outputs.items():
                assert len(named[name].shape.dim) == len(unknown[name].shape.dim) == len(shape), name
                # ONNX itself names sizes that are unknown, and those it computes from others: `size_3 // 2`.
                found = {d.dim_param for d in named[name].shape.dim if not d.dim_param.startswith("unk__")}
                names = set(re.findall(r"[A-Za-z_]\w*", " ".join(found))) - {"True", "False", "minimum"}
                assert names <= sizes, f"{name} has sizes of {sorted(names - sizes)}, which no input has"

    @check("unknown rank")
    def unknown_rank(self) -> None:
        """Inputs of unknown rank give the outputs' types."""
        for call in example_calls(self.family):
            inferred = self._inferred(call.model(self.module))
            for o in self.op.outputs:
                assert inferred[o.name].elem_type, o.name

    @check("wrong type")
    def wrong_type(self) -> None:
        """An element type the op does not take is refused, and so is one that disagrees with another input's."""
        from onnx import TensorProto

        for call in example_calls(self.family):
            for index in range(len(call.feeds)):
                model = call.model(self.module, shapes=call.shapes())
                model.graph.input[index].type.tensor_type.elem_type = TensorProto.COMPLEX64
                self._assert_refused(model, f"complex64 for {model.graph.input[index].name}")

    @check("wrong shape")
    def wrong_shape(self) -> None:
        """A shape that the op refuses is refused by shape inference."""
        from onnx.onnx_pb import TensorShapeProto

        dimension = TensorShapeProto.Dimension
        for call in example_calls(self.family):
            for name, wrong, _ in misshapen(self.op, call.sample):
                model = call.model(self.module, shapes=call.shapes())
                for value in model.graph.input:
                    if value.name == name:
                        value.type.tensor_type.shape.dim.add().dim_value = 7
                        value.type.tensor_type.shape.dim.insert(0, dimension(dim_value=7))
                self._assert_refused(model, f"shape {wrong.given[name].shape} for {name}")

    def _assert_refused(self, model: Any, what: str) -> None:
        from onnx.checker import ValidationError
        from onnx.shape_inference import InferenceError

        try:
            self._inferred(model)
        except (InferenceError, ValidationError, ValueError):
            return
        raise AssertionError(f"{what} is accepted")

    def _functions(self, dtype: str | None = None) -> Iterator[tuple[ExampleCall, Any]]:
        """Yield each example with its model that holds the function."""
        body = function_body(self.op)
        if isinstance(body, NoBody):
            raise Unsupported(f"no function in standard operators: {body.reason}")
        for call in example_calls(self.family, dtype):
            try:
                model = call.model(self.module, function=True, shapes=call.shapes())
            except NotImplementedError as reason:
                raise Unsupported(str(reason)) from reason
            yield call, model

    def _evaluated(self, model: Any, call: ExampleCall, ops: Sequence[Any] = ()) -> dict[str, Array]:
        from onnx.reference import ReferenceEvaluator

        names = [o.name for o in model.graph.output]
        return dict(zip(names, ReferenceEvaluator(model, new_ops=list(ops)).run(None, call.feeds), strict=True))

    @check("function")
    def function(self) -> None:
        """The function computes what the reference op does, and ONNX's checker accepts it."""
        import onnx

        for call, model in self._functions():
            onnx.checker.check_model(model)
            assert_alike(self._evaluated(model, call), self._evaluated(call.model(self.module), call, self.module.OPS))

    @check("half function", lambda checks: checks.halves)
    def half_function(self) -> None:
        """In a half type the function computes in float32 and rounds once, as the op does."""
        for dtype in self.halves:
            for call, model in self._functions(dtype.value):
                expected = self._evaluated(call.model(self.module), call, self.module.OPS)
                assert_alike(self._evaluated(model, call), expected)

    @check("inliner")
    def inliner(self) -> None:
        """ONNX's inliner leaves standard operators only, which compute the same."""
        import numpy as np
        import onnx.inliner

        for call, model in self._functions():
            inlined = onnx.inliner.inline_local_functions(model)
            assert all(not node.domain for node in inlined.graph.node), "a node of another domain is left"
            for name, value in self._evaluated(inlined, call).items():
                np.testing.assert_array_equal(value, self._evaluated(model, call)[name], err_msg=name)

    @check("text format")
    def text_format(self) -> None:
        """The model survives being written as text and read again."""
        import numpy as np
        import onnx.parser
        import onnx.printer

        for call, model in self._functions():
            again = onnx.parser.parse_model(onnx.printer.to_text(model))
            for name, value in self._evaluated(again, call).items():
                np.testing.assert_array_equal(value, self._evaluated(model, call)[name], err_msg=name)
