"""Runs a model that holds custom ops on ONNX Runtime: what `opc run` does.

The ops come from specs, whose packages the caller builds: the build system lies above the backends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import package as packages
from opc.backends.array_files import OutputFile, load_array, load_families, load_inputs, save_array
from opc.backends.onnxruntime.values import run
from opc.diagnostics import Diagnostic, Diagnostics, SpecError, did_you_mean

if TYPE_CHECKING:
    from opc.backends.base import Array

STANDARD = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "ai.onnx.preview", "com.microsoft")
"""The domains whose ops ONNX Runtime itself may have."""

Build = Callable[[Sequence[Path]], Sequence[Path]]
"""Builds the packages of specs for ONNX Runtime and returns their folders, in order; SpecError when it can't."""


def run_model(model: Path, specs: Sequence[Path], inputs: Mapping[str, Path], out: Path, build: Build) -> tuple[OutputFile, ...]:
    """Run a model on .npy files and write its outputs as .npy files to the folder `out`, which is made if it is missing.

    Only the specs whose ops the model holds are built.

    Raises:
        SpecError: with every mistake found in the model and the inputs, or ONNX Runtime's refusal.
    """
    proto = _load_model(model)
    used = _specs_used(proto, model, specs)
    feeds = _load_inputs(proto, model, inputs)
    results = _run(model, build(used) if used else (), feeds)
    return tuple(save_array(name, array, out, results) for name, array in results.items())


def _refused(message: str, hint: str | None = None) -> SpecError:
    return SpecError([Diagnostic(message, hint=hint)])


def _load_model(path: Path) -> Any:
    import onnx

    try:
        model = onnx.load(path)
    except OSError as error:
        raise _refused(f"can't read the model {path}: {error.strerror or error}") from error
    except Exception as error:  # Protocol buffers' own error, which only their package could name.
        raise _refused(f"{path} is not an ONNX model: {error}") from error
    if not model.graph.node and not model.graph.output:
        raise _refused(f"{path} is not an ONNX model: it has no graph")
    return model


def _nodes(nodes: Sequence[Any]) -> Iterator[Any]:
    """Yield nodes, those of subgraphs included."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _nodes(graph.node)


def _specs_used(model: Any, path: Path, specs: Sequence[Path]) -> list[Path]:
    """Return the specs whose ops the model holds.

    Raises:
        SpecError: when a spec is wrong, or a custom op of the model has neither a spec nor a function in the model.
    """
    found = Diagnostics()
    owners = {(op.domain, op.class_name): spec for family, spec in load_families(specs) for op in family.ops}
    functions = {(f.domain, f.name) for f in model.functions}
    used: dict[Path, None] = {}
    missing: dict[tuple[str, str], str] = {}
    bodies = [node for f in model.functions if (f.domain, f.name) not in owners for node in f.node]
    for node in _nodes([*model.graph.node, *bodies]):
        key = (node.domain, node.op_type)
        if key in owners:
            used[owners[key]] = None
        elif node.domain not in STANDARD and key not in functions:
            missing.setdefault(key, node.name)
    for (domain, op_type), name in missing.items():
        node = f"the node '{name}'" if name else "a node"
        known = {f"{d}.{t}" for d, t in owners}
        found.error(
            f"{path}: {node} is a {domain}.{op_type}, of which no spec was given",
            hint=did_you_mean(f"{domain}.{op_type}", known) or "give the op's spec with --spec",
        )
    found.raise_errors()
    return list(used)


def _load_inputs(model: Any, path: Path, files: Mapping[str, Path]) -> dict[str, Array]:
    """Return the arrays of the model's inputs; see `load_inputs`."""
    inputs = {i.name: i for i in model.graph.input}
    sizes: dict[str, tuple[int, str]] = {}

    def load(name: str, file: Path, found: Diagnostics) -> Array | None:
        return _load_array(name, file, inputs[name], sizes, found)

    texts = {name: _type_text(value) for name, value in inputs.items()}
    return load_inputs(path, texts, files, load, [i.name for i in model.graph.initializer])


def _type_text(value: Any) -> str:
    """Return an input's type as messages write it: `float32 [N, 4]`."""
    tensor = value.type.tensor_type
    shape = [d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in tensor.shape.dim]
    sizes = f" [{', '.join(shape)}]" if tensor.HasField("shape") else " of any shape"
    return _dtype_name(tensor.elem_type) + sizes


def _dtype_name(element: int) -> str:
    from onnx import helper

    return str(helper.tensor_dtype_to_np_dtype(element).name)


def _load_array(name: str, file: Path, value: Any, sizes: dict[str, tuple[int, str]], found: Diagnostics) -> Array | None:
    """Return one input, or None after recording what is wrong with it. `sizes` holds what symbolic sizes are, and where."""
    if not value.type.HasField("tensor_type"):
        found.error(f"the input '{name}' is no tensor, and only tensors can be given")
        return None
    tensor = value.type.tensor_type
    array = load_array(name, file, _dtype_name(tensor.elem_type), found)
    if array is None:
        return None
    if tensor.HasField("shape") and not _fits(name, file, array.shape, tensor.shape.dim, sizes, found):
        return None
    return array


def _fits(
    name: str,
    file: Path,
    shape: tuple[int, ...],
    dims: Sequence[Any],
    sizes: dict[str, tuple[int, str]],
    found: Diagnostics,
) -> bool:
    if len(shape) != len(dims):
        found.error(f"the input '{name}' must have {len(dims)} axes, but {file} has shape {list(shape)}")
        return False
    for axis, (size, dim) in enumerate(zip(shape, dims, strict=True)):
        if dim.HasField("dim_value") and dim.dim_value != size:
            found.error(f"axis {axis} of the input '{name}' must have size {dim.dim_value}, but {file} has shape {list(shape)}")
            return False
        if dim.dim_param:
            known, origin = sizes.setdefault(dim.dim_param, (size, name))
            if known != size:
                found.error(f"{dim.dim_param} is {known} in the input '{origin}', but {size} in '{name}'")
                return False
    return True


def _run(path: Path, built: Sequence[Path], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs by name."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    for folder in built:
        packages.load(folder, "onnxruntime").session_options(options)
    try:
        # By its path: data that lies outside of the model is found relative to it.
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return dict(zip((o.name for o in session.get_outputs()), run(session, feeds), strict=True))
    except Exception as error:  # ONNX Runtime's errors share no base class.
        raise _refused(f"ONNX Runtime can't run {path}: {_message(error)}") from error


def _message(error: Exception) -> str:
    """Return ONNX Runtime's message without its prefix of codes."""
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error))
