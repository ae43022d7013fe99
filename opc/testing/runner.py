"""`opc test`: every op on every backend, each in processes of its own, side by side.

Stages: build what is out of date; make each family's plan (calls and the oracle's answers) in a worker; run the plans on the
backends' workers (`opc.testing.schedule`). The first workers start before the first compiler: frameworks take seconds to import.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from opc import config
from opc.backends import environments
from opc.backends.base import Backend
from opc.testing.memory import Memory
from opc.testing.process import PATIENCE, Workers
from opc.testing.results import BUILD, IDLE, ORACLE, Column, Report, Result, Status
from opc.testing.schedule import BuiltPackage, Progress, Scheduler, entry, start_ahead
from opc.testing.tiers import SAMPLED, THINNED, Tiers, compiled

Build = Callable[[Sequence[Path], Sequence[Backend]], list[BuiltPackage]]
"""Brings packages up to date for some backends."""


def run_tests(
    specs: Sequence[Path],
    backends: Sequence[str] | None = None,
    out: Path | None = None,
    jobs: int | None = None,
    *,
    tiers: Tiers | None = None,
    again: bool = False,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
    patience: float = PATIENCE,
) -> Report:
    """Prove the ops of `specs` on `backends` (names, None for all) and return what was found.

    Packages are generated and built below `out`, by default `generated`. `jobs` is the number of workers at once, by default one
    for each processor. A backend whose framework is not installed is reported with the line that installs it.
    What passed before on the same bytes is not run, unless `again` is given; `opc.testing.memory` says what counts.
    With `tiers`, the backends that are not in `EVERY_OP` run the chosen specs only, or of these, where they wrap the kernel
    or another backend, those that are said. EVERY_OP runs a sample of the calls of the other ops. Of the chosen ones all calls
    are run, or only of those that are said. Kernels for this machine alone are compiled without optimisation but for those of
    the ops that together have every form of loops.

    Raises:
        SpecError: when nothing can be run at all: an unknown backend, no compiler, an output folder that can't be written.
    """
    from opc.backends import registry
    from opc.build import imports
    from opc.build.headers import LEAST

    start = time.monotonic()
    report = Report()
    every, broken = registry.load_all() if backends is None else (registry.select(backends), ())
    if backends is None:
        every = (*every, *(beside for b in every if (beside := registry.companion(b)) is not None))
    chosen = _usable(report, every)
    report.backends |= {b.name: Column(b.name, reason=b.diagnostic.message) for b in broken}
    report.cpu = dict.fromkeys((BUILD, ORACLE, *(b.name for b in chosen)), 0.0)
    before = _cpu()
    folder, jobs = out or Path("generated"), jobs or os.cpu_count() or 1
    with imports.links(chosen) as path, Workers(path, patience) as workers:
        ahead = partial(start_ahead, workers, chosen, jobs)
        many = [b.name for b in chosen if tiers is not None and sum(tiers.runs(spec, b) for spec in specs) >= LEAST]
        build = partial(_build, report, out=folder, say=say, jobs=jobs, ahead=ahead, many=many)
        tasks = build(specs, chosen) if tiers is None else _build_in_tiers(report, specs, chosen, tiers, build)
        report.spend(BUILD, _cpu() - before)
        memory = Memory(folder)
        keys = _keys(memory, tasks, chosen)
        if not again:
            tasks = _unknown(report, memory, tasks, keys)
        if tasks:
            with tempfile.TemporaryDirectory(prefix="opc-test-") as scratch:
                wanted = {name for package in tasks for name in package.backends}
                start_ahead(workers, [b for b in chosen if b.name in wanted], jobs)
                Scheduler(report, tasks, Path(scratch), chosen, progress, workers).run(jobs)
    _keep(report, memory, tasks, keys)
    report.seconds = time.monotonic() - start
    return report


def _cpu() -> float:
    """Return the seconds of processor time of this process and of those it has waited for."""
    return sum(os.times()[:4])


def _keys(memory: Memory, packages: Sequence[BuiltPackage], backends: Sequence[Backend]) -> dict[tuple[str, str], str | None]:
    """Return what the outcomes of each op on each backend, and on the oracle, are kept under."""
    entries = {b.name: entry(b) for b in backends}
    found = {
        (p.op, name): memory.key(p.package, name, python, entries[name], p.extent)
        for p in packages
        for name, python in p.backends.items()
    }
    return found | {(p.op, ORACLE): memory.key(p.package, ORACLE, sys.executable, "", p.extent) for p in packages}


def _unknown(
    report: Report, memory: Memory, packages: Sequence[BuiltPackage], keys: Mapping[tuple[str, str], str | None]
) -> list[BuiltPackage]:
    """Return what is to be run: the packages with the backends that have not passed on the same bytes. Report the others."""
    left: list[BuiltPackage] = []
    for package in packages:
        known = {name: memory.recall(package.op, name, keys[package.op, name]) for name in (*package.backends, ORACLE)}
        missing = {name: python for name, python in package.backends.items() if known[name] is None}
        if missing or known[ORACLE] is None:
            # The plan is made again, and with it what the oracle proves.
            left.append(replace(package, backends=missing))
            known[ORACLE] = None
        for name, found in known.items():
            if found is not None:
                version, results = found
                report.add(results)
                report.remembered += sum(r.count for r in results if r.status not in IDLE)
                if name in report.backends:
                    report.backends[name] = replace(report.backends[name], version=version)
    return left


def _keep(report: Report, memory: Memory, packages: Sequence[BuiltPackage], keys: Mapping[tuple[str, str], str | None]) -> None:
    """Keep what passed."""
    found: dict[tuple[str, str], list[Result]] = {}
    for r in report.results:
        if r.message not in (SAMPLED, THINNED):
            found.setdefault((r.op, r.backend), []).append(r)
    for package in packages:
        for name in (*package.backends, ORACLE):
            column = report.backends.get(name)
            pair = package.op, name
            memory.keep(*pair, keys[pair], column.version if column else "", found.get(pair, ()))


def _usable(report: Report, backends: Sequence[Backend]) -> list[Backend]:
    """Return the backends whose frameworks are here, and give each its column: first those that run beside opc."""
    chosen: list[Backend] = []
    settings = config.load()
    for backend in sorted(backends, key=lambda b: (b.environment is not None, b.title.casefold())):
        found = backend.probe()
        # A backend that looks for its framework only here may well find it where the user says.
        if found.available or backend.runs_as in settings.python:
            chosen.append(backend)
            report.backends[backend.name] = Column(backend.title, found.version or "")
        else:
            reason = "; ".join(t for t in (found.reason, f"install with: {found.install}" if found.install else None) if t)
            report.backends[backend.name] = Column(backend.title, reason=reason or "its framework is not installed")
    return chosen


def _build_in_tiers(
    report: Report, specs: Sequence[Path], backends: Sequence[Backend], tiers: Tiers, build: Build
) -> list[BuiltPackage]:
    """Bring the packages up to date, each for the backends that run it; say of each what is not run."""
    groups: dict[tuple[str, tuple[bool, ...]], list[Path]] = {}
    for spec in specs:
        runs = tuple(tiers.runs(spec, b) for b in backends)
        groups.setdefault((tiers.optimised(spec) or "", runs), []).append(spec)
    found: list[BuiltPackage] = []
    # First those that take longest to compile.
    order = ("", "1", "0")
    for (optimised, runs), group in sorted(groups.items(), key=lambda g: (order.index(g[0][0]), [not own for own in g[0][1]])):
        wanted = [b for b, own in zip(backends, runs, strict=True) if own]
        with compiled(optimised or None):
            built = build(group, wanted) if wanted else []
        found += [replace(package, extent=tiers.extent(package.spec)) for package in built]
    for package in found:
        report.add(
            Result(package.op, name, "op", package.op, Status.NOT_RUN, message=why)
            for name, why in tiers.left_out(package.spec, backends, package.backends)
        )
    built_for_some = {package.spec for package in found}
    for spec, op in tiers.waiting.items():
        if spec not in built_for_some:
            report.add(
                Result(op, name, "op", op, Status.NOT_RUN, message=why) for name, why in tiers.left_out(spec, backends, ())
            )
    return found


def _build(
    report: Report,
    specs: Sequence[Path],
    backends: Sequence[Backend],
    *,
    out: Path,
    say: Callable[[str], None] | None,
    jobs: int,
    ahead: Callable[[], None],
    many: Sequence[str],
) -> list[BuiltPackage]:
    """Bring the packages up to date, and record the specs and backends that fall out; `ahead` is called if anything is built.

    `many` are the backends that many packages are built for, in all calls together.
    """
    if not specs:
        return []
    from opc.build import manifest
    from opc.build.builder import build_specs

    names = [b.name for b in backends]
    packages: list[BuiltPackage] = []
    for spec, built in zip(specs, build_specs(specs, out, names, strict=False, ahead=ahead, say=say, jobs=jobs, many=many)):
        if built.package is None or not built.ok:
            report.mistaken(spec, built.diagnostics)
            continue
        run_on: dict[str, str] = {}
        for backend in backends:
            reasons = built.skipped.get(backend.name)
            execution = backend.execution
            if reasons:
                refused = built.generated is not None and backend.name in built.generated.skipped
                status = Status.REFUSED if refused else Status.NOT_RUN
                why = "; ".join(d.message for d in reasons)
                report.add([Result(built.name, backend.name, "build", built.name, status, message=why)])
            elif execution == "compiled":
                report.add([Result(built.name, backend.name, "build", built.name, Status.COMPILED)])
            else:
                run_on[backend.name] = str(environments.interpreter(backend.runs_as))
        report.sources[built.name] = manifest.read(built.package).spec_hash
        packages.append(BuiltPackage(built.name, spec, built.package, run_on))
    return packages


__all__ = ["Progress", "run_tests"]
