"""What nvcc makes of kernels, which needs no GPU: `python -m tests.gpu.gates [OP...]` prints what is amiss in those of all ops.

In those for float32 nothing is computed in double precision, and stages of points and rows, and scans, read and write 16 bytes at
a time; no registers are spilled in forward ops and gradients, and no memory is a thread's own. Sums of products of bfloat16 are
made by tensor cores, whose operands are copied so.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import NAMESPACE
from opc.emit.cuda.files import cuda_files, kernels_alone, refused
from opc.emit.kernel.files import kernel_files
from opc.ir.dtypes import DType
from opc.ir.op import Family, Op
from opc.loops.nodes import Kernel
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.scans import first_terms
from opc.lower.cuda.stages import device_programs
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage, RowStage, Stage
from opc.lower.nest_plans import ScanPlan
from opc.pipeline import load_family

ROOT = Path(__file__).parents[2]
OWN_SHARED = 8 << 10
"""Bytes of shared memory that a kernel may have by itself: opc/cuda/device.h asks for more from 40 KiB of further memory on."""

ARCHITECTURE = "sm_90"


KNOWN = {
    "attention_y_not_is_causal: spills (8, 4, 4) bytes of stack, stores and loads, for bfloat16": "one register of 128",
    **dict.fromkeys(
        (
            "conv_integer_y: spills (24, 24, 24)",
            "depthwise_conv2d_y: spills (8, 4, 4)",
            "embedding_bag_backward_d_table_sum2_sum: spills (8, 4, 8)",
            "embedding_bag_backward_d_table_sum2_mean: spills (8, 4, 8)",
            "top1_routing_backward_y_sum: spills (16, 92, 92)",
            "varlen_attention_first_is_causal: spills (8, 8, 8)",
            "varlen_attention_s_is_causal: spills (16, 60, 60)",
        ),
        "not of registers, of which half and more are left: loops and conditions stand too deep in each other",
    ),
}
"""What is amiss and is let pass, with why; it is printed all the same."""


def ptx(op: str, folder: Path, dtypes: Collection[DType] = (DType.FLOAT32, DType.BFLOAT16)) -> str:
    """Write the kernels of an op below a folder, compile them to PTX for some types without a warning, and return that.

    Raises:
        RuntimeError: with what nvcc said.
    """
    return ptx_of(load_family(ROOT / "specs" / f"{op}.yaml"), folder, dtypes)


def ptx_of(
    family: Family,
    folder: Path,
    dtypes: Collection[DType] = (DType.FLOAT32, DType.BFLOAT16),
    architecture: str = ARCHITECTURE,
) -> str:
    """Write the kernels of a family below a folder, compile them to PTX for some types without a warning, and return that.

    Raises:
        RuntimeError: with what nvcc said.
    """
    op = family.name
    for path, text in {**kernel_files(family), **cuda_files(family)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    source, made = folder / "kernel" / f"{op}_alone.cu", folder / f"{op}.ptx"
    source.write_text(kernels_alone(family, dtypes)[0])
    flags = ["-std=c++17", f"-arch={architecture}", "-Werror", "all-warnings", NAMESPACE, f"-I{toolkit.include()}"]
    _run([toolkit.nvcc() or "nvcc", *flags, "-ptx", str(source), "-o", str(made)])
    return made.read_text()


def kernels(text: str) -> dict[str, str]:
    """Return the text of each kernel in PTX, by its mangled name."""
    parts = re.split(r"(?:\.visible )?\.entry (\w+)\(", text)
    return dict(zip(parts[1::2], parts[2::2]))


def float32(text: str) -> dict[str, str]:
    """Return the kernels of PTX that are for float32: their elements may have other types beside it, but no other floats."""
    return {name: body for name, body in kernels(text).items() if not _is_of_other_floats(_arguments(name))}


def _is_of_other_floats(arguments: str) -> bool:
    """Whether an instance of these arguments is for float16, bfloat16 or float64."""
    return "float16" in arguments or "d" in re.sub(r"N3opc\w+?E", "", arguments)


def _arguments(mangled: str) -> str:
    """Return the mangled arguments of an instance, nothing of a function without any."""
    name = _name(mangled)
    rest = mangled[mangled.index(f"{len(name)}{name}") + len(f"{len(name)}{name}") :]
    return rest[: rest.index("Ev") + 1] if rest.startswith("I") else ""


def _name(mangled: str) -> str:
    """Return the name of the function that a mangled name is of: of a namespace within another, or of one."""
    rest, name = mangled.removeprefix("_ZN"), ""
    while (found := re.match(r"\d+", rest)) is not None:
        length = int(found[0])
        name, rest = rest[found.end() : found.end() + length], rest[found.end() + length :]
    return name


def assembled(op: str, folder: Path, architecture: str = ARCHITECTURE) -> str:
    """Return what ptxas says of the kernels of the PTX that `ptx` has left."""
    program = str(Path(toolkit.nvcc() or "nvcc").resolve().parent / "ptxas")
    return _run([program, "-v", f"-arch={architecture}", str(folder / f"{op}.ptx"), "-o", str(folder / f"{op}.cubin")])


def spilled(said: str) -> dict[str, tuple[int, ...]]:
    """Return the bytes of its stack, of spill stores and of spill loads, of each kernel that ptxas has told of."""
    pattern = r"Function properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    return {name: tuple(map(int, counts)) for name, *counts in re.findall(pattern, said)}


def own_shared(said: str) -> dict[str, int]:
    """Return the bytes of shared memory that each kernel has by itself, of those that have some."""
    pattern = r"Function properties for (\w+)\s+[^\n]*\n[^\n]*?(\d+) bytes smem"
    return {name: int(count) for name, count in re.findall(pattern, said)}


def mistakes(op: str, folder: Path) -> Iterator[str]:
    """Yield what is amiss in the float32 kernels of an op, and in those of its products of bfloat16."""
    family = load_family(ROOT / "specs" / f"{op}.yaml")
    made = [*(pair for each in family.ops for pair in _kernels(each))]
    tensor = {s.name for s, kernel in made if kernel.schedule.args("tensor")}
    halves = (DType.BFLOAT16,) if tensor else ()
    text = ptx(op, folder, (DType.FLOAT32, *halves))
    found = float32(text)
    packed = {s.name for s, kernel in made if isinstance(s, NestStage) and (_is_scan(s) or kernel.schedule.args("pack"))}
    reading = packed | {s.name for s, _ in made if isinstance(s, RowStage) and _goes_along(s, written=False)}
    writing = packed | {s.name for s, _ in made if isinstance(s, RowStage) and _goes_along(s, written=True)}
    scans = {s.name for s, _ in made if _is_scan(s)}
    often = {s.name for each in family.ops if runs_often(each) for s, _ in _kernels(each)}
    said = assembled(op, folder)
    frames = spilled(said)
    # Copies get no further memory.
    moved = {s.name for s, kernel in made if kernel.schedule.args("move")}
    for mangled, count in own_shared(said).items():
        if count > OWN_SHARED and _name(mangled) not in moved:
            yield f"{_name(mangled)}: has {count} bytes of shared memory of its own, and is not asked for more than it may have"
    if not found:
        yield "no kernel for float32"
    for mangled, body in found.items():
        name = _name(mangled)
        if name in often and any(frames[mangled]):
            yield f"{name}: spills {frames[mangled]} bytes of stack, stores and loads"
        if re.search(r"\.f64\b", body):
            yield f"{name}: computes in float64"
        if name in often and re.search(r"\.local\b", body):
            yield f"{name}: has memory of its own for each thread"
        # Integers of 8 bits and truth values have fewer bytes beside what is wider.
        words = r"(v4\.\w32|v2\.\w64|v[24]\.\w+)"
        if name in reading and not re.search(rf"ld\.global\S*\.{words}", body):
            yield f"{name}: reads no 16 bytes at once"
        width = r"(v4\.\w32|v2\.\w64)" if name in scans else r"v[24]\."
        if name in writing and not re.search(rf"st\.global\S*\.{width}", body):
            yield f"{name}: writes no 16 bytes at once"
    for mangled, body in kernels(text).items():
        name = _name(mangled)
        if name not in tensor or "bfloat16" not in mangled:
            continue
        if any(frames[mangled]) or re.search(r"\.local\b", body):
            yield f"{name}: spills {frames[mangled]} bytes of stack, stores and loads, for bfloat16"
        if "mma.sync.aligned.m16n8k16" not in body or "ldmatrix" not in body:
            yield f"{name}: uses no tensor cores"
        if "cp.async.cg.shared.global" not in body:
            yield f"{name}: copies no 16 bytes at once"


def _kernels(op: Op) -> Iterator[tuple[Stage, Kernel]]:
    return ((s, cuda_kernel(v.case.op, s)) for v in device_programs(op) for s in v.program.stages)


def _is_scan(s: Stage) -> bool:
    """Whether a stage is a scan in one pass."""
    plan = s.plans[0] if isinstance(s, NestStage) and s.plans else None
    return isinstance(plan, ScanPlan) and first_terms(plan) is not None


def _goes_along(s: RowStage, *, written: bool) -> bool:
    """Whether the rows of a stage have elements that it reads, or writes."""
    return any(o.along_row and o.written == written for o in s.operands)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr}")
    return done.stdout + done.stderr


def _all_of(op: str) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        try:
            return [f"{op}: {text}" for text in mistakes(op, Path(name))]
        except RuntimeError as e:
            return [f"{op}: {e}"]


def known(mistake: str) -> str | None:
    """Return why a mistake is let pass, None where it is not."""
    return next((why for text, why in KNOWN.items() if mistake.startswith(text)), None)


def main(ops: list[str]) -> int:
    """Print what is amiss in the kernels of some ops, or of all, and return whether anything is."""
    if toolkit.nvcc() is None:
        print("skipped: there is no nvcc, of which kernels' code is asked")
        return 0
    chosen = ops or [path.stem for path in sorted((ROOT / "specs").glob("*.yaml")) if not refused(load_family(path))]
    count, seen = 0, set[str]()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for op, found in zip(chosen, pool.map(_all_of, chosen), strict=True):
            for text in found:
                why = known(text.removeprefix(f"{op}: "))
                print(f"{text} ({why})" if why else text, flush=True)
                count += why is None
                seen.update(k for k in KNOWN if text.startswith(f"{op}: {k}"))
            if not found:
                print(f"{op}: nothing is amiss", flush=True)
    if not ops and (gone := KNOWN.keys() - seen):
        print("\n".join(f"{text}: no more, let it not be known" for text in sorted(gone)))
        count += len(gone)
    return bool(count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
