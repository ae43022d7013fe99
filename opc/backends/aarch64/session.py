"""A built program as the proof calls it: one process that answers calls over pipes."""

from __future__ import annotations

import struct
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from opc.backends import call_bytes
from opc.backends.aarch64 import PROGRAM
from opc.backends.base import OpError, Session, Unsupported
from opc.backends.derived import asked_outputs
from opc.backends.kernel.target import emulator
from opc.ir.dtypes import DTYPES, numpy_dtype
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

OLDEST = ("-cpu", "cortex-a53")
"""A processor with what every aarch64 has and no more: what kernels use beyond that is an illegal instruction."""

_BY_CODE = {(d.row.dlpack, d.bits): numpy_dtype(d) for d in DTYPES}


class AArch64Session(Session):
    """Calls the ops of a built program. A program that ends in a call is started anew for the next one."""

    no_autograd = "NumPy has no autograd; the gradients are functions of their own"

    def __init__(self, family: Family, package: Path) -> None:
        """Find the program.

        Raises:
            ImportError: when it is not built.
        """
        super().__init__(family, package)
        self.program = package / PROGRAM
        if not self.program.is_file():
            raise ImportError(f"{self.program} has not been built")
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: IO[bytes] | None = None

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`.

        Raises:
            OpError: when the kernel refuses the call.
            RuntimeError: when the program ends in it, with what it said.
        """
        described = self.ops[op]
        for a in described.attributes:
            value = attributes.get(a.name, a.default)
            if a.length is not None and a.length >= 0 and len(value) != a.length:
                raise OpError(f"{op}: {a.name} has {len(value)} values, but must have {a.length}")
        names = asked_outputs(described, inputs, attributes, only)
        try:
            operands = b"".join(call_bytes.operand(inputs.get(x.name)) for x in described.inputs)
        except ValueError as error:
            raise Unsupported(f"kernels have no tensors of a dtype: {error}") from error
        head = call_bytes.text(op) + call_bytes.numbers(len(described.inputs), len(described.outputs))
        wanted = call_bytes.numbers(*(o.name in names for o in described.outputs))
        made = self._answer(head + operands + wanted + call_bytes.attributes(self.family, attributes), len(described.outputs))
        return {o.name: array for o, array in zip(described.outputs, made, strict=True) if array is not None}

    def _answer(self, request: bytes, outputs: int) -> list[Array | None]:
        """Return the outputs of a call, None for those that were not computed."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            code, size = _numbers(process.stdout, 2)
            message = _read(process.stdout, size).decode(errors="replace")
            if code != 0:
                raise OpError(message)
            return [_output(process.stdout) for _ in range(outputs)]
        except (BrokenPipeError, EOFError) as error:
            raise RuntimeError(self._ended(process)) from error

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            command = emulator()
            if command is None:
                raise Unsupported("there is nothing to run the program on")
            self.errors = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
            self.process = subprocess.Popen(
                [*command, *(OLDEST if command else ()), str(self.program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
            )
            weakref.finalize(self, _end, self.process)
        return self.process

    def _ended(self, process: subprocess.Popen[bytes]) -> str:
        """Return what a program that has ended said last."""
        self.process = None
        _end(process)
        said = ""
        if self.errors is not None:
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace").strip()
            self.errors.close()
        return f"the program ended with code {process.returncode}: {said}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program, which does so by itself when no more calls can come."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _read(pipe: IO[bytes], size: int) -> bytes:
    found = pipe.read(size)
    if len(found) != size:
        raise EOFError
    return found


def _numbers(pipe: IO[bytes], count: int) -> tuple[int, ...]:
    return struct.unpack(f"={count}q", _read(pipe, 8 * count))


def _output(pipe: IO[bytes]) -> Array | None:
    (made,) = _numbers(pipe, 1)
    if not made:
        return None
    code, bits, rank = _numbers(pipe, 3)
    shape, (size,) = _numbers(pipe, rank), _numbers(pipe, 1)
    return np.frombuffer(bytearray(_read(pipe, size)), _BY_CODE[code, bits]).reshape(shape)


__all__ = ["OLDEST", "AArch64Session"]
