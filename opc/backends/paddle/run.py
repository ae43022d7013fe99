"""Runs a saved Paddle model that holds custom ops in Paddle Inference: what `opc run` does with such a file.

The ops come from specs, whose packages the caller builds: the build system lies above the backends. The model is read here, since
Paddle's own message about an operator that it does not know says nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import environments
from opc.backends.array_files import OutputFile, load_array, load_families, load_inputs, save_array
from opc.backends.paddle_names import operator_name
from opc.diagnostics import Diagnostic, Diagnostics, SpecError, did_you_mean
from opc.records import dataclass

if TYPE_CHECKING:
    from opc.backends.base import Array

Build = Callable[[Sequence[Path]], Sequence[Path]]
"""Builds the packages of specs for Paddle and returns their folders, in order; SpecError when it can't."""

CUSTOM = "3"
"""The dialect of custom operators, as Paddle numbers it in a saved model."""

PROGRAM = Path(__file__).with_name("predict.py")


@dataclass(frozen=True, slots=True)
class _Input:
    """An input that a model declares; -1 is a size that is not known."""

    name: str
    dtype: str
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join('?' if s < 0 else str(s) for s in self.sizes)}]"


def run_model(model: Path, specs: Sequence[Path], inputs: Mapping[str, Path], out: Path, build: Build) -> tuple[OutputFile, ...]:
    """Run a saved model (`model.json`, beside it `model.pdiparams`) on .npy files; write its outputs to the folder `out`.

    Only the specs whose ops the model holds are built.

    Raises:
        SpecError: with every mistake found in the model and the inputs, or Paddle's refusal.
    """
    program = _load_model(model)
    used = _specs_used(program, model, specs)
    declared = _inputs(program)
    texts = {name: str(value) for name, value in declared.items()}
    feeds = load_inputs(model, texts, inputs, lambda name, file, found: _load_input(declared[name], file, found))
    packages = build(list(used.values())) if used else ()
    libraries = [folder / "build" / f"lib{family}_paddle.so" for family, folder in zip(used, packages, strict=True)]
    results = _run(model, libraries, feeds)
    return tuple(save_array(name, array, out, results) for name, array in results.items())


def _refused(message: str, hint: str | None = None) -> SpecError:
    return SpecError([Diagnostic(message, hint=hint)])


def _load_model(path: Path) -> Any:
    try:
        program = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _refused(f"can't read the model {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise _refused(f"{path} is not a saved Paddle model: {error}") from error
    if not isinstance(program, dict) or not isinstance(program.get("program"), dict):
        raise _refused(f"{path} is not a saved Paddle model: it holds no program")
    return program["program"]


def _operations(node: Any) -> Iterator[Any]:
    """Yield the operations of a program, those of its inner blocks included."""
    if isinstance(node, list):
        for item in node:
            yield from _operations(item)
    elif isinstance(node, dict):
        if "I" in node and "O" in node:
            yield node
        for key, item in node.items():
            if key not in ("I", "O", "A", "OA"):
                yield from _operations(item)


def _attribute(operation: Any, name: str) -> Any:
    return next((a["AT"]["D"] for a in operation.get("A", ()) if a.get("N") == name), None)


def _inputs(program: Any) -> dict[str, _Input]:
    """Return the inputs a model declares, in order."""
    found = {}
    for operation in _operations(program):
        if re.fullmatch(r"\d+\.data", str(operation["#"])):
            name, sizes = _attribute(operation, "name"), _attribute(operation, "shape")
            found[name] = _Input(name, str(_attribute(operation, "dtype")), tuple(sizes or ()))
    return found


def _specs_used(program: Any, path: Path, specs: Sequence[Path]) -> dict[str, Path]:
    """Return the specs whose ops the model holds, by the name of the family.

    Raises:
        SpecError: when a spec is wrong, or a custom op of the model has no spec.
    """
    found = Diagnostics()
    owners = {operator_name(family, op): (family, spec) for family, spec in load_families(specs) for op in family.ops}
    used: dict[str, Path] = {}
    for name in dict.fromkeys(_custom_names(program)):
        known = owners.get(name) or owners.get(name.removesuffix("_in_place"))
        if known is not None:
            used[known[0].name] = known[1]
        else:
            hint = did_you_mean(name, owners) or "give the op's spec with --spec"
            found.error(f"{path} holds the custom op {name}, of which no spec was given", hint=hint)
    found.raise_errors()
    return used


def _custom_names(program: Any) -> Iterator[str]:
    """Yield the names of the custom operators in a program; a gradient is its operator's."""
    for operation in _operations(program):
        dialect, _, name = str(operation["#"]).partition(".")
        if dialect == CUSTOM:
            yield re.sub(r"(_grad)+$", "", name)


def _load_input(declared: _Input, file: Path, found: Diagnostics) -> Array | None:
    """Return one input, or None after recording what is wrong with it."""
    array = load_array(declared.name, file, declared.dtype, found)
    if array is None:
        return None
    fits = len(array.shape) == len(declared.sizes)
    if not fits or any(want not in (-1, size) for want, size in zip(declared.sizes, array.shape, strict=True)):
        found.error(f"the input '{declared.name}' must be {declared}, but {file} has shape {list(array.shape)}")
        return None
    return array


def _run(model: Path, libraries: Sequence[Path], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs by name, from a process of the interpreter that has Paddle."""
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="opc-run-") as scratch:
        folder = Path(scratch)
        files = {name: str(folder / f"input_{i}.npy") for i, name in enumerate(feeds)}
        for name, array in feeds.items():
            np.save(files[name], array.view(np.uint16) if array.dtype.name == "bfloat16" else array)
        task = {
            "libraries": [str(p.absolute()) for p in libraries],
            "model": str(model.absolute()),
            "inputs": files,
            "folder": scratch,
        }
        python = environments.interpreter("paddle_inference")
        done = subprocess.run(
            [str(python), str(PROGRAM)], input=json.dumps(task), capture_output=True, text=True, check=False,
            env={**os.environ, "GLOG_minloglevel": "2"},
        )  # fmt: skip
        answer = _answer(done)
        if "error" in answer:
            raise _refused(f"Paddle can't run {model}: {_message(answer['error'])}")
        results: dict[str, Array] = {}
        for i, (name, dtype) in enumerate(answer["outputs"]):
            array = np.load(folder / f"{i}.npy")
            if dtype == "bfloat16":
                from ml_dtypes import bfloat16

                array = array.view(bfloat16)
            results[name] = array
        return results


def _answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return what the process answered; an error when it ended without an answer."""
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer
    words = [line for line in done.stderr.splitlines() if line.strip()]
    return {"error": f"its process ended with code {done.returncode}{': ' + words[-1] if words else ''}"}


def _message(text: str) -> str:
    """Return the line of Paddle's message that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = next(
        (line for line in lines if re.match(r"\(?\w+(Error|Argument)\b", line)), lines[-1] if lines else "no reason given"
    )
    return re.sub(r"^(InvalidArgumentError: |\(InvalidArgument\) )| \(at [^)]*\)$", "", told)
