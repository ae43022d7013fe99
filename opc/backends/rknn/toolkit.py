"""Models on the toolkit's x86 simulator, with whatever it prints held to be part of its answer.

The toolkit reports many errors only in its log: a function returns 0 and goes on. So its log is read, and an
error in it is an error here. Two loggers write it, a Python one and that of a C++ library, which writes to the process's standard
output; hence the redirection of file descriptors.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from opc.records import dataclass

if TYPE_CHECKING:
    from opc.backends.base import Array

PLATFORM = "rk3588"
"""The chip that models are built for."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ERROR = re.compile(r"^E (?!rknn-toolkit2 version)")
_ENTRY = re.compile(r"^[DEIW] ")


class ToolkitError(Exception):
    """The toolkit refused a model, or logged an error; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a model computed on the simulator: outputs in order of the graph, the .rknn file, and the log."""

    outputs: list[Array]
    rknn: bytes
    log: str


def simulate(
    model: Any,
    feeds: Sequence[Array],
    register: Callable[[Any], None],
    *,
    calibration: Sequence[Sequence[Array]] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Simulation:
    """Convert an `onnx.ModelProto`, build it, and run it on the simulator.

    `register` makes custom ops known to a toolkit object. With `calibration`, calls to choose scales by, the model is quantised
    to int8.

    Raises:
        ToolkitError: when a step fails, or the log holds an error.
    """
    with tempfile.TemporaryDirectory(prefix="opc-rknn-") as folder, contextlib.chdir(folder), _captured() as log:
        try:
            outputs, rknn = _run(model, feeds, register, calibration, config or {})
        except Exception as error:  # The toolkit raises ValueError with a traceback as its text, and others.
            raise ToolkitError(_reason(_read(log)) or str(error)) from error
        text = _read(log)
    if errors(text):
        raise ToolkitError("; ".join(errors(text)))
    return Simulation(outputs, rknn, text)


def simulate_isolated(model: Any, feeds: Sequence[Array], register: Callable[[Any], None]) -> Simulation:
    """Do the same in a child process, for models on which the toolkit's C++ library may crash.

    Raises:
        ToolkitError: also when the child crashes.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            answer: Simulation | str
            try:
                answer = simulate(model, feeds, register)
            except ToolkitError as error:
                answer = str(error)
            with os.fdopen(write, "wb") as out:
                pickle.dump(answer, out)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(child, 0)
    if status != 0 or not data:
        raise ToolkitError(f"the toolkit crashed with status {os.waitstatus_to_exitcode(status)}")
    answer = pickle.loads(data)
    if isinstance(answer, str):
        raise ToolkitError(answer)
    assert isinstance(answer, Simulation)
    return answer


def _run(
    model: Any,
    feeds: Sequence[Array],
    register: Callable[[Any], None],
    calibration: Sequence[Sequence[Array]] | None,
    config: Mapping[str, Any],
) -> tuple[list[Array], bytes]:
    import onnx
    from rknn.api import RKNN

    onnx.save(model, "model.onnx")
    toolkit = RKNN(verbose=False)
    try:
        _succeeds("config", toolkit.config(target_platform=PLATFORM, **config))
        register(toolkit)
        _succeeds("load_onnx", toolkit.load_onnx("model.onnx"))
        dataset = None if calibration is None else _dataset(calibration)
        _succeeds("build", toolkit.build(do_quantization=calibration is not None, dataset=dataset))
        _succeeds("export_rknn", toolkit.export_rknn("model.rknn"))
        _succeeds("init_runtime", toolkit.init_runtime(target=None))
        # Arrays of four axes would be taken for images, channels last.
        outputs = toolkit.inference(inputs=list(feeds), data_format=["nchw"] * len(feeds))
        if outputs is None:
            raise ToolkitError("inference gave nothing")
        return outputs, Path("model.rknn").read_bytes()
    finally:
        toolkit.release()


def _dataset(calibration: Sequence[Sequence[Array]]) -> str:
    """Write the calls that scales are chosen by, and the list of them that the toolkit reads."""
    import numpy as np

    lines = []
    for number, call in enumerate(calibration):
        names = [f"call{number}_{k}.npy" for k in range(len(call))]
        for name, array in zip(names, call, strict=True):
            np.save(name, array)
        lines.append(" ".join(names))
    Path("dataset.txt").write_text("\n".join(lines) + "\n")
    return "dataset.txt"


def _succeeds(step: str, code: int) -> None:
    if code != 0:
        raise ToolkitError(f"{step} returned {code}")


@contextlib.contextmanager
def _captured() -> Iterator[IO[bytes]]:
    """Send what the process prints to a file, C++ libraries included."""
    with tempfile.TemporaryFile() as log:
        sys.stdout.flush()
        sys.stderr.flush()
        kept = os.dup(1), os.dup(2)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            yield log
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in zip((1, 2), kept, strict=True):
                os.dup2(descriptor, number)
                os.close(descriptor)


def _read(log: IO[bytes]) -> str:
    sys.stdout.flush()
    sys.stderr.flush()
    log.seek(0)
    text = _COLOUR.sub("", log.read().decode("utf-8", "replace"))
    log.seek(0, os.SEEK_END)
    return text.replace("\r", "\n")


def errors(log: str) -> list[str]:
    """Return the errors in a log."""
    return [line for line in log.splitlines() if _ERROR.match(line)]


def _reason(log: str) -> str:
    """Return what the last error in a log says: of a traceback, what was raised."""
    said = ""
    entry: list[str] = []
    for line in [*log.splitlines(), "I "]:
        if not _ENTRY.match(line):
            entry.append(line)
            continue
        if entry and _ERROR.match(entry[0]):
            said = next(text.strip() for text in reversed(entry) if text.strip())
        entry = [line]
    return said
