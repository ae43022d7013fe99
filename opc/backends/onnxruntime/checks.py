"""What ONNX Runtime users expect of a generated library beyond values, checked on the spec's examples."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import infer
from opc.backends import package as packages
from opc.backends.base import Unsupported
from opc.backends.checks import Checks, assert_alike, check, misshapen
from opc.backends.dtypes import foreign
from opc.backends.example_call import ExampleCall, example_calls
from opc.backends.node_call import IR_VERSION, OPSET
from opc.backends.onnxruntime.session import OnnxRuntimeSession
from opc.backends.onnxruntime.values import inference_session, run, to_value
from opc.emit.onnx.types import used_variables
from opc.ir.dtypes import DTYPES, DType, candidates

if TYPE_CHECKING:
    from opc.backends.base import Array
    from opc.ir.op import Op


def type_to_refuse(op: Op) -> tuple[str, int]:
    """Return the name and ONNX's number of a type that no operand takes or, where there is none, one that the fewest take.

    Raises:
        Unsupported: when every operand takes every type.
    """
    taken = [frozenset(candidates(o.type)) for o in (*op.inputs, *op.outputs)]
    numbers = {d: d.row.onnx[1] for d in (DType.UINT64, *DTYPES) if d.row.onnx is not None}
    fewest = min(numbers, key=lambda d: sum(d in some for some in taken))
    if all(fewest in some for some in taken):
        raise Unsupported("every operand takes every element type")
    return fewest.value, numbers[fewest]


class OnnxRuntimeChecks(Checks[OnnxRuntimeSession]):
    """The checks of one op."""

    by_python = False

    def _models(self) -> Any:
        try:
            return packages.load(self.session.package, "onnx")
        except ImportError as error:
            missing = not (self.session.package / "onnx").is_dir()
            raise Unsupported("the package has no part for ONNX, which makes the models" if missing else str(error)) from error

    def _session(self, model: Any, *, library: bool = True, optimized: Path | None = None) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        if optimized is not None:
            options.optimized_model_filepath = str(optimized)
        if library:
            self.session.runtime.session_options(options)
        return inference_session(model, options)

    def _run(self, session: Any, feeds: Mapping[str, Array]) -> dict[str, Array]:
        return dict(zip((o.name for o in session.get_outputs()), run(session, feeds), strict=True))

    def _calls(self) -> Iterator[tuple[ExampleCall, Any]]:
        """Yield each example with the model of its one node, inputs of any rank."""
        models = self._models()
        for call in example_calls(self.family):
            yield call, call.model(models)

    @check("shape inference")
    def shape_inference(self) -> None:
        """While a model loads, sizes that are numbers give the outputs' sizes, and names stay names."""
        for call, model in self._calls():
            expected = infer(self.op, {n: a.shape for n, a in call.feeds.items()}, call.attributes)
            if not all(a.ndim for a in call.feeds.values()):
                continue  # ONNX Runtime shows an op a scalar and an unknown rank alike, so nothing is said of them.
            for symbolic in (False, True):
                for value in model.graph.input:
                    value.type.tensor_type.shape.Clear()
                    for size in call.shapes(symbolic)[value.name]:
                        dim = value.type.tensor_type.shape.dim.add()
                        dim.dim_param, dim.dim_value = (size, 0) if symbolic else ("", size)
                        dim.ClearField("dim_value" if symbolic else "dim_param")
                inferred = {o.name: o.shape for o in self._session(model).get_outputs()}
                names = {size for shape in call.shapes(symbolic=True).values() for size in shape}
                for name, shape in expected.outputs.items():
                    if not symbolic:
                        assert inferred[name] == list(shape), f"{name} is {inferred[name]}, not {list(shape)}"
                    elif inferred[name]:
                        assert len(inferred[name]) == len(shape), name
                        assert all(isinstance(n, int) or n in names for n in inferred[name]), inferred[name]

    @check("attribute defaults", lambda checks: any(not a.required for a in checks.op.attributes))
    def attribute_defaults(self) -> None:
        """A node without attributes computes as one that writes the defaults out."""
        defaults = self._models().SCHEMAS[self.op.class_name].attributes
        for call, model in self._calls():
            implicit = self._run(self._session(model), call.feeds)
            given = {a.name for a in model.graph.node[0].attribute}
            for name, attribute in defaults.items():
                if name not in given and not attribute.required:
                    model.graph.node[0].attribute.append(attribute.default_value)
            for name, value in self._run(self._session(model), call.feeds).items():
                assert value.tobytes() == implicit[name].tobytes(), name

    @check("refused attribute", lambda checks: checks.op.attributes)
    def refused_attribute(self) -> None:
        """An attribute of the wrong type is refused when the model loads, by name."""
        from onnx import helper

        for _, model in self._calls():
            for a in self.op.attributes:
                node = model.graph.node[0]
                given = list(node.attribute)
                del node.attribute[:]
                node.attribute.extend(other for other in given if other.name != a.name)
                # What has several texts, it reads as a list of no numbers.
                any_length = a.length is not None and a.length < 0
                node.attribute.append(helper.make_attribute(a.name, "wrong" if any_length else [b"wrong", b"type"]))
                self._assert_refused(lambda model=model: self._session(model), a.name)
                del node.attribute[:]
                node.attribute.extend(given)

    @check("refused shape", lambda checks: checks.refuses_shapes())
    def refused_shape(self) -> None:
        """Inputs whose shapes do not fit are refused when the node runs, with the op's message."""
        models = self._models()
        for call in example_calls(self.family):
            for _, wrong, message in misshapen(self.op, call.sample):
                session = self._session(call.model(models))
                self._assert_refused(lambda s=session, w=wrong.given: self._run(s, w), message)

    def refuses_shapes(self) -> bool:
        """Whether the op refuses an example in which an input has two axes more."""
        calls = example_calls(self.family) if self.family.examples else []
        return any(True for call in calls for _ in misshapen(self.op, call.sample))

    @check("refused type")
    def refused_type(self) -> None:
        """An element type that the op does not take is refused when the model loads."""
        name, number = type_to_refuse(self.op)
        for _, model in self._calls():
            for value in (*model.graph.input, *model.graph.output):
                value.type.tensor_type.elem_type = number
            self._assert_refused(lambda model=model: self._session(model), name.replace("_", ""))

    def _assert_refused(self, run: Any, message: str) -> None:
        answer = "nothing"
        try:
            run()
        except Exception as error:  # ONNX Runtime's errors share no base class.
            answer = str(error)
        assert message in answer, f"expected a refusal with '{message}', got {answer}"

    @check("I/O binding")
    def io_binding(self) -> None:
        """Bound outputs are written in place."""
        import numpy as np

        for call, model in self._calls():
            session = self._session(model)
            expected = self._run(session, call.feeds)
            outputs = {name: np.full_like(array, 0) for name, array in expected.items()}
            binding = session.io_binding()
            for name, array in call.feeds.items():
                binding.bind_ortvalue_input(name, to_value(array))
            for name, array in outputs.items():
                own = foreign(array)
                kind = array.dtype if own is None or own.row.onnx is None else own.row.onnx[1]
                binding.bind_output(name, "cpu", 0, kind, array.shape, array.ctypes.data)
            session.run_with_iobinding(binding)
            for name, array in outputs.items():
                assert array.tobytes() == expected[name].tobytes(), name

    @check("several dtypes in one session", lambda checks: [len(v.dtypes) > 1 for v in used_variables(checks.op)] == [True])
    def several_dtypes(self) -> None:
        """One session runs the op in every dtype."""
        from onnx import helper

        (variable,) = used_variables(self.op)
        models = self._models()
        merged: list[Any] = []
        feeds: dict[str, Array] = {}
        expected: dict[str, Array] = {}
        for dtype in variable.dtypes:
            call = example_calls(self.family, dtype.value)[0]
            model = call.model(models)
            alone = self._run(self._session(model), call.feeds)
            feeds |= {f"{n}_{dtype}": a for n, a in call.feeds.items()}
            expected |= {f"{n}_{dtype}": a for n, a in alone.items()}
            for part in (*model.graph.input, *model.graph.output):
                part.name += f"_{dtype}"
            node = model.graph.node[0]
            for names in (node.input, node.output):
                names[:] = [n and f"{n}_{dtype}" for n in names]
            merged.append(model.graph)
        graph = helper.make_graph(
            [g.node[0] for g in merged], "dtypes", [i for g in merged for i in g.input], [o for g in merged for o in g.output]
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(self.op.domain, self.op.version)]
        together = self._run(self._session(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)), feeds)
        for name, array in together.items():
            assert array.tobytes() == expected[name].tobytes(), name

    @check("registered twice")
    def registered_twice(self) -> None:
        """Registering the library again changes nothing."""
        for call, model in self._calls():
            session = inference_session(model, self.session.runtime.session_options(self.session.runtime.session_options()))
            assert self._run(session, call.feeds).keys() == self._run(self._session(model), call.feeds).keys()

    def _functions(self) -> Iterator[tuple[ExampleCall, Any]]:
        """Yield each example with its model that holds the function."""
        models = self._models()
        for call in example_calls(self.family):
            try:
                yield call, call.model(models, function=True, shapes=call.shapes())
            except NotImplementedError as reason:
                raise Unsupported(str(reason)) from reason

    @check("function without the library")
    def function_alone(self) -> None:
        """A model that holds the function runs without the library and computes the same."""
        import onnxruntime

        for call, model in self._functions():
            try:
                alone = self._session(model, library=False)
            except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as reason:
                raise Unsupported(str(reason).split(" : ")[-1]) from reason
            assert_alike(self._run(alone, call.feeds), self._run(self._session(model), call.feeds))

    @check("library over the function")
    def library_over_function(self) -> None:
        """With the library, the node stays one node and calls the kernel."""
        import onnx

        for _, model in self._functions():
            with tempfile.TemporaryDirectory() as folder:
                kept = Path(folder) / "optimized.onnx"
                self._session(model, optimized=kept)
                nodes = [node.op_type for node in onnx.load(kept).graph.node]
            assert nodes == [self.op.class_name], f"the graph became {nodes}"
