"""`opc run`: a model that holds custom ops, on ONNX Runtime or in Paddle Inference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli import completion
from opc.cli.console import OK, WrongUse, fail, find_specs, need, say, shown
from opc.cli.options import GENERATED, Out

if TYPE_CHECKING:
    from opc.backends.array_files import OutputFile
    from opc.backends.base import Backend


def run(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The model: x.onnx, or x.json as Paddle saves it.", show_default=False)
    ],
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            "--spec", "-s", metavar="SPEC", help="Spec of a custom op in it; may be repeated.", autocompletion=completion.specs
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=FILE.npy", help="An input; may be repeated.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="Folder the outputs are written to.")] = Path(),
    out: Out = GENERATED,
) -> int:
    """Run a model with custom ops on ONNX Runtime or in Paddle Inference."""
    files = _inputs(inputs or ())
    known = find_specs(spec) if spec else []
    from opc.cli.build import build_packages
    from opc.diagnostics import SpecError, Told

    backend, run_model = _runner(model)
    probe = backend.probe()
    if not probe.available:
        return fail(f"{backend.title} can't be used: {probe.reason}", hint=probe.install and f"install it: {probe.install}")

    def build(used: Sequence[Path]) -> Sequence[Path]:
        results = build_packages(used, out, [backend.name])
        told = Told()
        mistakes = [d for r in results for d in told.new(r.diagnostics)]
        if mistakes:
            raise SpecError(mistakes)
        return [r.package for r in results if r.package is not None]

    for made in run_model(model, known, files, output, build):
        say(f"{made.name}: {made.dtype} {list(made.shape)}, wrote {shown(made.path)}")
    return OK


def _runner(model: Path) -> tuple[Backend, Callable[..., Iterable[OutputFile]]]:
    """Return the backend that runs a model, and its function for that: a saved Paddle model ends in .json."""
    if model.suffix == ".json":
        from opc.backends.paddle.backend import PaddleInferenceBackend
        from opc.backends.paddle.run import run_model as run_paddle

        return PaddleInferenceBackend(), run_paddle
    need("opc run on an ONNX model", "onnxruntime", "onnx")
    from opc.backends.onnxruntime.backend import OnnxRuntimeBackend
    from opc.backends.onnxruntime.run import run_model

    return OnnxRuntimeBackend(), run_model


def _inputs(given: Sequence[str]) -> dict[str, Path]:
    """Return the files of `NAME=FILE.npy` arguments by name.

    Raises:
        WrongUse: when an argument has another form or names an input a second time.
    """
    files: dict[str, Path] = {}
    for text in given:
        name, separator, path = text.partition("=")
        if not (name and separator and path):
            raise WrongUse(f"--input takes NAME=FILE.npy, not '{text}'")
        if name in files:
            raise WrongUse(f"the input '{name}' is given twice")
        files[name] = Path(path)
    return files
