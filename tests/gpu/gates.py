"""What nvcc makes of kernels, which needs no GPU: `python tests/gpu/gates.py OP...` prints what is amiss in those for float32.

No registers are spilled, no memory is a thread's own, nothing is computed in double precision, and stages of points and rows, and
scans, read and write 16 bytes at a time. Sums of products of bfloat16 are made by tensor cores, whose operands are copied
so.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import NAMESPACE
from opc.emit.cuda.files import cuda_files
from opc.emit.kernel.files import kernel_files
from opc.ir.op import Family, Op
from opc.loops.nodes import Kernel
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.scans import first_terms, scan_of
from opc.lower.cuda.stages import device_programs
from opc.lower.loop_ir import NestStage, RowStage, Stage
from opc.pipeline import load_family

ROOT = Path(__file__).parents[2]
ARCHITECTURE = "sm_90"

_FLOAT32 = re.compile(r"^_ZN\w*?I(?=[a-z]*f)[a-ce-z]+(?:Li\dE)?E")
"""The mangled name of an instance for float32, beside integers perhaps, and of a shape of tiles."""


def ptx(op: str, folder: Path) -> str:
    """Write the source of an op below a folder, compile it to PTX without a warning, and return that.

    Raises:
        RuntimeError: with what nvcc said.
    """
    return ptx_of(load_family(ROOT / "specs" / f"{op}.yaml"), folder)


def ptx_of(family: Family, folder: Path) -> str:
    """Write the source of a family below a folder, compile it to PTX without a warning, and return that.

    Raises:
        RuntimeError: with what nvcc said.
    """
    op = family.name
    for path, text in {**kernel_files(family), **cuda_files(family)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    made = folder / f"{op}.ptx"
    flags = ["-std=c++17", f"-arch={ARCHITECTURE}", "-Werror", "all-warnings", NAMESPACE, f"-I{toolkit.include()}"]
    _run([toolkit.nvcc() or "nvcc", *flags, "-ptx", str(folder / "kernel" / f"{op}.cu"), "-o", str(made)])
    return made.read_text()


def kernels(text: str) -> dict[str, str]:
    """Return the text of each kernel in PTX, by its mangled name."""
    parts = re.split(r"\.visible \.entry (\w+)\(", text)
    return dict(zip(parts[1::2], parts[2::2]))


def float32(text: str) -> dict[str, str]:
    """Return the kernels of PTX that are instances for float32."""
    return {name: body for name, body in kernels(text).items() if _FLOAT32.match(name)}


def spilled(op: str, folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the bytes of its stack, of spill stores and of spill loads, of each kernel of the PTX that `ptx` has left."""
    program = str(Path(toolkit.nvcc() or "nvcc").resolve().parent / "ptxas")
    said = _run([program, "-v", f"-arch={ARCHITECTURE}", str(folder / f"{op}.ptx"), "-o", str(folder / f"{op}.cubin")])
    pattern = r"Function properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    return {name: tuple(map(int, counts)) for name, *counts in re.findall(pattern, said)}


def mistakes(op: str, folder: Path) -> Iterator[str]:
    """Yield what is amiss in the float32 kernels of an op."""
    family = load_family(ROOT / "specs" / f"{op}.yaml")
    found = float32(ptx(op, folder))
    stages = [s for each in family.ops for v in device_programs(each) for s in v.program.stages]
    rows = [s for s in stages if isinstance(s, RowStage)]
    reading = {s.name for s in rows if any(o.along_row and not o.written for o in s.operands)}
    writing = {s.name for s in rows if any(o.along_row and o.written for o in s.operands)}
    scans = {
        s.name for s in stages if isinstance(s, NestStage) and (plan := scan_of(s)) is not None and first_terms(plan) is not None
    }
    reading, writing = reading | scans, writing | scans
    frames = spilled(op, folder)
    if not found:
        yield "no kernel for float32"
    for name, body in found.items():
        if any(frames[name]):
            yield f"{name}: {frames[name]} bytes of stack, spill stores and spill loads"
        if re.search(r"\.f64\b", body):
            yield f"{name}: computes in float64"
        if ".local" in body:
            yield f"{name}: has memory of its own for each thread"
        if _is_of(name, reading) and not re.search(r"ld\.global\S*\.v4\.(f32|u32|b32)", body):
            yield f"{name}: reads no 16 bytes at once"
        width = "4" if _is_of(name, scans) else "[24]"
        if _is_of(name, writing) and not re.search(rf"st\.global\S*\.v{width}\.", body):
            yield f"{name}: writes no 16 bytes at once"

    tensor = {s.name for each in family.ops for s, kernel in _kernels(each) if kernel.schedule.args("tensor")}
    for name, body in kernels((folder / f"{op}.ptx").read_text()).items():
        if not _is_of(name, tensor) or "bfloat16" not in name:
            continue
        if any(frames[name]) or ".local" in body:
            yield f"{name}: {frames[name]} bytes of stack, spill stores and spill loads"
        if "mma.sync.aligned.m16n8k16" not in body or "ldmatrix" not in body:
            yield f"{name}: uses no tensor cores"
        if "cp.async.cg.shared.global" not in body:
            yield f"{name}: copies no 16 bytes at once"


def _kernels(op: Op) -> Iterator[tuple[Stage, Kernel]]:
    return ((s, cuda_kernel(v.case.op, s)) for v in device_programs(op) for s in v.program.stages)


def _is_of(mangled: str, stages: Collection[str]) -> bool:
    return any(f"{len(stage)}{stage}I" in mangled for stage in stages)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr}")
    return done.stdout + done.stderr


if __name__ == "__main__":
    amiss = []
    for each in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as name:
            amiss += [f"{each}: {text}" for text in mistakes(each, Path(name))]
    print("\n".join(amiss) or "nothing is amiss")
    sys.exit(bool(amiss))
