"""Codelets under sanitizers: compiled with them by the emulation's popc, and run in sessions of PopART on calls of the proof.

The libraries of the ops are those that the proof builds; what runs on tiles alone is compiled anew. The address sanitizer sees
what lies beyond a vertex' fields, which have memory of exactly their size; the thread sanitizer workers of a vertex that meet.
"""

from __future__ import annotations

import os
import pickle
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from opc import config
from opc.backends import environments
from opc.backends.popart.backend import PopartBackend
from opc.backends.poplar import sdk
from opc.backends.poplar.carried import carries, reached
from opc.backends.poplar.files import bodies, codelets_path, has_codelets
from opc.backends.poplar.library import library_path
from opc.build import imports, toolchain
from opc.build.builder import build_specs
from opc.diagnostics import SpecError
from opc.ir.dtypes import DType
from opc.ir.expr import may_refuse
from opc.ir.op import Family, Op
from opc.pipeline import load_family
from opc.testing.call_file import KernelCall
from opc.testing.cases.calls import Case
from opc.testing.cases.ends import FAR
from opc.testing.cases.table import accepted
from opc.testing.codelet_calls import Calls
from opc.testing.extent import Extent
from opc.testing.plan import expected
from opc.testing.results import Column, Report, Result, Status
from opc.testing.sanitize import OPTIONS, narrowed, result_of, sanitizer_flags, some, together, verdicts

MOST = {"forward": 6, "derived": 3, "refused": 2}
"""How many calls of an op are run, and how many of those beside them that it refuses for what is in their data."""
SECONDS = 600.0
"""How long all calls may take."""
_PRELOADED = {"address": "libasan.so", "undefined": "libubsan.so", "thread": "libtsan.so"}
"""What has to be in a process before it loads code that was compiled for a sanitizer."""


def sanitize_codelets(
    report: Report, specs: Sequence[Path], sanitizers: Sequence[str], out: Path, jobs: int | None = None
) -> None:
    """Run the codelets of specs under sanitizers and add what these reported, in a column for those that go together.

    The ops' libraries are built below `out`, where they are not. Nothing is added where no op has codelets; where there is no
    emulation, columns say why.
    """
    start = time.monotonic()
    families = {spec: family for spec in specs if (family := _carried(spec)) is not None and has_codelets(family)}
    if not families:
        return
    found = sdk.find()
    reason = "" if found is not None and found.emulated else "codelets run under sanitizers on the emulation of Poplar alone"
    names = {f"codelets {'+'.join(group)}": group for group in together(sanitizers)}
    report.backends |= {name: Column(name, "" if found is None else found.version, reason=reason) for name in names}
    if found is None or reason:
        return
    with tempfile.TemporaryDirectory(prefix="opc-codelets-") as scratch, imports.links([PopartBackend()]) as path:
        libraries = {}
        for built in build_specs([*families], out, ["popart"], jobs=jobs):
            if built.package is None:
                report.mistakes[built.name] = "; ".join(d.message for d in built.diagnostics)
            else:
                libraries[built.name] = built.package
        # Elements are counted, not their bytes, so that one type stands for all.
        kept = [narrowed(f, 1) for f in families.values() if f.name in libraries]
        for name, group in names.items():
            folders = {f.name: Path(scratch, name.replace(" ", "_"), f.name) for f in kept}
            mistakes = _compile(kept, folders, libraries, found, group, jobs)
            report.add([_failed(op, name, text) for op, text in mistakes.items()])
            tasks = [Calls(f, folders[f.name], tuple(_calls(f))) for f in kept if f.name not in mistakes]
            report.add(_run(tasks, name, group, Path(scratch), path))
    report.seconds += time.monotonic() - start


def _carried(spec: Path) -> Family | None:
    """Return the family of a spec; None where Poplar carries none, or the spec has mistakes, which kernels report."""
    try:
        family = load_family(spec)
    except SpecError:
        return None
    return None if PopartBackend().requires(family) else family


def _failed(op: str, backend: str, message: str) -> Result:
    return Result(op, backend, "build", op, Status.FAILED, float("inf"), message=message)


def _compile(
    families: Sequence[Family],
    folders: Mapping[str, Path],
    libraries: Mapping[str, Path],
    used: sdk.Sdk,
    sanitizers: Sequence[str],
    jobs: int | None,
) -> dict[str, str]:
    """Compile the codelets of families into folders, beside copies of their libraries; return what popc refused, by op."""
    # As the kernels: without optimisation, so that no access is optimised away before it is looked at.
    flags = ["-O0", "-w", *sanitizer_flags(sanitizers)]
    compiler = toolchain.find(config.load()).command

    def compile_one(family: Family) -> tuple[str, str]:
        folder = folders[family.name] / "build"
        folder.mkdir(parents=True)
        shutil.copy2(libraries[family.name] / library_path(family), folders[family.name] / library_path(family))
        source = folder / Path(codelets_path(family)).name
        source.write_text(bodies(family)[codelets_path(family)])
        command = [used.popc, f"-I{sdk.runtime() / 'include'}", str(source), "-o", str(source.with_suffix(".gp"))]
        env = {**os.environ, "CXX": shlex.join(compiler), "POPC_FLAGS": shlex.join(flags)}
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env)
        return family.name, done.stderr.strip() or "popc failed" if done.returncode != 0 else ""

    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        return {name: text for name, text in pool.map(compile_one, families) if text}


def _calls(family: Family) -> Iterator[KernelCall]:
    """Yield some calls of every op that autodiff reaches, those that Poplar has the dtypes of."""
    for op in reached(family):
        parent = None if op is family.forward else family.forward if op is family.backward else family.backward
        kind = "forward" if op is family.forward else "derived"
        cases = [c for c in accepted(op, parent, random=0, extent=Extent.SAMPLE, written=family.written) if _fits(c)]
        yield from (KernelCall(op, case) for case in _computing(op, cases, MOST[kind]))


def _computing(op: Op, cases: Sequence[Case], most: int) -> Iterator[Case]:
    """Yield so many of an op's calls that compute something, and some of those on the way that it refuses for their data."""
    if not any(may_refuse(s.value) for s in op.body):
        yield from some(op, cases, most)
        return
    computed = refused = 0
    for case in some(op, cases, len(cases)):
        item = expected(op, "", case)
        if item.expected is not None:
            computed += 1
        elif item.undecided or refused == MOST["refused"]:
            continue
        else:
            refused += 1
        yield item.case
        if computed == most:
            return


def _fits(case: Case) -> bool:
    """Whether Poplar has tensors of the dtypes of a call, and tiles its numbers: a vertex counts in 32 bits."""
    return case.kind not in FAR and all(carries(DType(a.data.dtype.name)) for a in case.inputs.values() if a is not None)


def _run(tasks: Sequence[Calls], name: str, sanitizers: Sequence[str], scratch: Path, path: Path) -> Iterator[Result]:
    """Run the calls of all families in one process, and in another those behind one that it ended in."""
    file = scratch / "calls"
    file.write_bytes(pickle.dumps([*tasks]))
    every = [(t.family, call) for t in tasks for call in t.calls]
    first = 0
    while first < len(every):
        start = time.perf_counter()
        output, errors, code = _process(file, first, sanitizers, path)
        statuses = [int(line.split()[1]) for line in output.splitlines()]
        rest = every[first : first + len(statuses) + (code != 0)]
        if not statuses and "@@" not in errors:
            yield _failed(rest[0][0].name, name, f"the process ended with {code}: {errors.strip()[-2000:]}")
            return
        seconds = (time.perf_counter() - start) / len(rest)
        found = verdicts([call for _, call in rest], output, errors, code)
        for (family, call), verdict in zip(rest, found, strict=True):
            yield result_of(family, call, name, verdict, Status.EMULATED, seconds)
        first += len(rest)


def _process(file: Path, first: int, sanitizers: Sequence[str], path: Path) -> tuple[str, str, int]:
    """Run the calls of a file from a number on; return what the process wrote, and what it ended with."""
    compiler = toolchain.find(config.load()).command
    preloaded = [
        subprocess.run(
            [*compiler, f"-print-file-name={_PRELOADED[s]}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for s in sanitizers
    ]
    # What Python keeps to its end is no leak of a codelet.
    options = {**OPTIONS, "ASAN_OPTIONS": OPTIONS["ASAN_OPTIONS"].replace("detect_leaks=1", "detect_leaks=0")}
    given = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH"), str(path)) if p)
    env = {**os.environ, **options, "PYTHONPATH": given, "LD_PRELOAD": " ".join(preloaded)}
    command = [str(environments.interpreter(sdk.NAME)), "-m", "opc.testing.codelet_calls", str(file), str(first)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env, timeout=SECONDS)
    except subprocess.TimeoutExpired as expired:
        return _text(expired.stdout), _text(expired.stderr), -1
    return done.stdout, done.stderr, done.returncode


def _text(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
