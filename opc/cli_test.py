"""`opc test`: the proof, its table and its reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from opc.cli_console import FAILED, OK, WrongUse, fail, find_specs, note, progress_line, say, shown


def test(
    given: Sequence[Path] | None,
    out: Path,
    backends: Sequence[str] | None,
    jobs: int | None,
    html: Path | None,
    junit: Path | None,
    markdown: Path | None,
    as_json: bool,
    sanitize: str | None,
    strict: bool,
) -> int:
    """Build and prove the ops of specs; print the table and write the reports asked for."""
    specs = find_specs(given)
    for path in (html, junit, markdown):
        if path is not None and not path.parent.is_dir():
            raise WrongUse(f"there is no folder {shown(path.parent)} to write {path.name} to")
    from opc.testing import report as reports
    from opc.testing.results import as_json as data
    from opc.testing.runner import run_tests
    from opc.testing.sanitize import run_sanitized

    kinds = _sanitizers(sanitize, backends)
    with progress_line() as progress:
        if kinds:
            report = run_sanitized(specs, kinds, jobs, progress=progress)
        else:
            report = run_tests(specs, backends, out, jobs, progress=progress, say=note)
    if as_json:
        say(json.dumps(data(report), indent=2))
    else:
        from rich.console import Console

        reports.print_report(report, Console())
    if html is not None:
        reports.write_html(report, html)
        note(f"wrote {shown(html)}")
    if junit is not None:
        reports.write_junit(report, junit)
        note(f"wrote {shown(junit)}")
    if markdown is not None:
        from opc.testing.markdown import markdown as page

        chosen = "".join(f" --backend {b}" for b in backends or ())
        command = " ".join(("opc test", *(shown(path) for path in given or ()))) + chosen
        markdown.write_text(page(report, command), encoding="utf-8")
        note(f"wrote {shown(markdown)}")
    missing = [column.title for column in report.backends.values() if column.reason] if strict else []
    if missing:
        fail(f"{', '.join(missing)} could not be run", hint="opc backends tells how to install what is missing")
    return OK if report.ok and not missing else FAILED


def _sanitizers(text: str | None, backends: Sequence[str] | None) -> tuple[str, ...]:
    """Return the sanitizers asked for."""
    if text is None:
        return ()
    from opc.testing.sanitize import SANITIZERS

    kinds = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    unknown = [kind for kind in kinds if kind not in SANITIZERS]
    if unknown:
        raise WrongUse(f"'{unknown[0]}' is no sanitizer: there are {', '.join(SANITIZERS)}")
    if "thread" in kinds and len(kinds) > 1:
        raise WrongUse("the thread sanitizer goes with no other: give --sanitize thread alone")
    if backends:
        raise WrongUse("--sanitize runs the kernels without a framework: give no --backend with it")
    return kinds
