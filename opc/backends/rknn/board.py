"""The C++ side for boards: build steps for this machine and for aarch64, and runs of both on an emulation of RKNN's runtime.

A board's processor is an aarch64. Its library is made by a cross compiler where there is one, and its program runs on qemu's user
mode where that is installed; on an aarch64 machine neither is needed.
"""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.base import BuildStep, Compile, Link, OpError, Unsupported
from opc.backends.kernel.backend import COMMON_FLAGS, KernelBackend
from opc.backends.kernel.target import AARCH64, INSTALL, cross_compiler, emulator
from opc.backends.rknn.graph import AcceptedCall
from opc.ir.dtypes import DTYPES, DType
from opc.ir.op import Family
from opc.records import dataclass, replace

if TYPE_CHECKING:
    from opc.backends.base import Array

MACHINE = AARCH64
"""What boards have."""

MAX_OPERANDS = 32
"""`opc::rknn::max_operands`."""

ROOT = "RKNN_API_ROOT"
"""Environment variable that names the folder with the vendor's headers, where they are to be built with."""

_TYPES: Mapping[DType, int] = {d: d.row.rknn for d in DTYPES if d.row.rknn is not None}
"""`rknn_tensor_type` of each dtype."""


def machines() -> tuple[str, ...]:
    """Return the machines that programs are built for: this one, and boards."""
    own = platform.machine()
    return (own,) if own == MACHINE or not cross_compiler() else (own, MACHINE)


def steps(family: Family) -> Iterator[BuildStep]:
    """Yield the steps that make, for each machine, the library for RKNN's runtime and the program on the emulation of it."""
    kernel = KernelBackend()
    for machine in machines():
        own = machine == platform.machine()
        compiler = () if own else cross_compiler()
        made = kernel.build(family) if own else kernel.build_for(machine, compiler, family)
        folder = f"build/rknn/{machine}"
        adapter = (
            Compile(f"rknn/{family.name}_rknn.cpp", f"{folder}/adapter.o", _flags(), compiler=compiler, glue=True),
            Compile("rknn/threads.c", f"{folder}/threads.o", language="c", compiler=compiler, glue=True),
        )
        main = Compile("rknn/emulated.cpp", f"{folder}/main.o", _flags(), compiler=compiler, glue=True)
        objects = (*(s.object for s in (*made, *adapter) if isinstance(s, Compile)),)
        # A program for another machine is static, for the libraries of that one are not here.
        threads = adapter[1] if own else replace(adapter[1], object=f"{folder}/static_threads.o", flags=("-DOPC_STATIC",))
        flags = (*kernel.link_flags(family), "-lpthread") if own else ("-static-libstdc++", "-static-libgcc", "-lm", "-lpthread")
        yield from () if own else made
        yield from (*adapter, main, *(() if own else (threads,)))
        yield Link(objects, f"{folder}/lib{family.name}_rknn.so", flags, compiler=compiler)
        parts = (main.object, *(o for o in objects if o != adapter[1].object), threads.object)
        static = () if own else ("-static",)
        yield Link(parts, program_path(machine), (*static, *flags), program=True, compiler=compiler)


def program_path(machine: str) -> str:
    """Return the path of a machine's program, relative to the package directory."""
    return f"build/rknn/{machine}/emulated"


def _flags() -> tuple[str, ...]:
    root = os.environ.get(ROOT)
    return COMMON_FLAGS if not root else (*COMMON_FLAGS, "-DOPC_RKNN_HEADERS", "-isystem", root)


@dataclass(frozen=True, slots=True)
class Board:
    """A package's op on the emulation of RKNN's runtime, as built for one machine."""

    package: Path
    machine: str

    def run(self, calls: Sequence[AcceptedCall]) -> list[dict[str, Array] | OpError]:
        """Return for each call its outputs, or how the op refused it.

        Raises:
            Unsupported: when there is no program for the machine, or nothing to run it on.
        """
        import numpy as np

        answers, said = self._run(b"".join(map(_request, calls)))
        results: list[dict[str, Array] | OpError] = []
        at = 0
        for call in calls:
            (code,) = struct.unpack_from("<i", answers, at)
            at += 4
            outputs = {}
            for name, (dtype, shape) in call.outputs.items():
                count = int(np.prod(shape))
                outputs[name] = np.frombuffer(answers, dtype.value, count, at).reshape(shape).copy()
                at += count * dtype.itemsize
            results.append(OpError(said.strip() or f"the callback returned {code}") if code else outputs)
        return results

    def _run(self, request: bytes) -> tuple[bytes, str]:
        program = self.package / program_path(self.machine)
        command: tuple[str, ...] | None = () if self.machine == platform.machine() else emulator()
        if not program.is_file():
            raise Unsupported(f"there is no compiler for {self.machine}; install it: {INSTALL}")
        if command is None:
            raise Unsupported(
                f"compiled for {self.machine}, not executed, since qemu-{self.machine} is not installed; install it: {INSTALL}"
            )
        with tempfile.TemporaryDirectory(prefix="opc-rknn-") as folder:
            calls, answers = Path(folder, "calls"), Path(folder, "answers")
            calls.write_bytes(request)
            done = subprocess.run([*command, str(program), str(calls), str(answers)], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"the emulation ended with code {done.returncode}: {done.stderr.strip()}")
            return answers.read_bytes(), done.stderr


def _request(call: AcceptedCall) -> bytes:
    """Return a call as `opc/adapters/rknn_emulation.h` reads it."""
    parts = [struct.pack("<I", len(call.attributes))]
    parts += [_attribute(name, value) for name, value in call.attributes.items()]
    given = [o.name for o in call.op.inputs if o.name in call.feeds]
    parts.append(struct.pack("<I", len(given)))
    parts += [_tensor(DType(call.feeds[n].dtype.name), call.feeds[n].shape, call.feeds[n].tobytes()) for n in given]
    parts.append(struct.pack("<I", len(call.outputs)))
    parts += [_tensor(dtype, shape, b"") for dtype, shape in call.outputs.values()]
    return b"".join(parts)


def _attribute(name: str, value: Any) -> bytes:
    """Return an attribute as RKNN's runtime holds it: int64, float32, or the bytes of a text."""
    head = name.encode().ljust(256, b"\0")
    if isinstance(value, str):
        data = value.encode() + b"\0"
        return head + struct.pack("<III", _TYPES[DType.UINT8], len(data), len(data)) + data
    values: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    floating = any(isinstance(v, float) for v in values)
    data = struct.pack(f"<{len(values)}{'f' if floating else 'q'}", *values)
    return head + struct.pack("<III", _TYPES[DType.FLOAT32 if floating else DType.INT64], len(values), len(data)) + data


def _tensor(dtype: DType, shape: Sequence[int], data: bytes) -> bytes:
    """Return a tensor; RKNN has none without axes, so that such an output has one of size 1."""
    sizes = tuple(shape) or (1,)
    head = struct.pack(f"<II{len(sizes)}II", _TYPES[dtype], len(sizes), *sizes, len(data))
    return head + data
