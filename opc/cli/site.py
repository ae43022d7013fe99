"""`opc site`: a gallery of a project's ops, with its documentation, as HTML."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli.console import FAILED, OK, WrongUse, find_specs, need, note, say, shown
from opc.cli.options import Specs

if TYPE_CHECKING:
    from opc.site.gallery import Proof, Shown
    from opc.testing.bench.benchmark import Benchmark


def site(
    specs: Specs = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the site; its HTML is in DIR/html.")] = Path(
        "site"
    ),
    docs: Annotated[
        Path | None,
        typer.Option(
            "--docs",
            metavar="DIR",
            help="Folder of Markdown pages to show too, with the README.md beside it.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", help="What the site is called; by default as the folder it is made in.")
    ] = None,
    proof: Annotated[
        list[Path] | None,
        typer.Option(
            "--proof",
            metavar="FILE",
            help="What `opc test` wrote by --results (.json) or --markdown (.md), shown with each op; may be repeated.",
        ),
    ] = None,
    api: Annotated[
        list[str] | None,
        typer.Option(
            "--api",
            metavar="NAME",
            help="A reference of a Python module, or of MODULE:NAME, a command line made with Typer or click; may be repeated.",
        ),
    ] = None,
    bench: Annotated[
        list[Path] | None,
        typer.Option(
            "--bench", metavar="FILE.json", help="What `opc bench --json` printed, drawn with each op; may be repeated."
        ),
    ] = None,
    pages: Annotated[bool, typer.Option("--pages", help="Write the pages and mkdocs.yml alone, no HTML.")] = False,
) -> int:
    """Make a site of the ops: formulas, gradients, plots, costs, backends."""
    found = find_specs(specs)
    if docs is not None and not docs.is_dir():
        raise WrongUse(f"there is no folder {shown(docs)}")
    if not pages:
        need("opc site", "site", "material")
    if api:
        need("opc site --api", "site", "griffe")
    from opc.backends import registry
    from opc.site.docs import pages_of
    from opc.site.gallery import FOLDER, gallery
    from opc.site.project import CONFIGURATION, HTML, project_files

    ops = _ops(found)
    _check_folder(out)
    backends, _ = registry.load_all()
    written = gallery(list(ops.values()), backends, None if not proof else _proof(proof), None if not bench else _bench(bench))
    for name in api or ():
        written |= _reference(name)
    below = ""
    if docs is not None:
        root = docs.resolve().parent
        places = {path.resolve(): op.path for path, op in ops.items()}
        folders = {path.parent: str(FOLDER / "index.md") for path in places if path.parent != root}
        written |= pages_of(root, docs.resolve(), {**folders, **places})
        below = docs.resolve().name
    _write(out, project_files(title or Path.cwd().name, written, below))
    note(f"{shown(out)}: {len(written)} pages, {len(ops)} of them of ops")
    if pages:
        return OK
    # The theme says at each run what else its authors make.
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    call = (sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(out / CONFIGURATION))
    done = subprocess.run(call, env=quiet, check=False)
    if done.returncode == 0:
        say(shown(out / HTML / "index.html"))
    return OK if done.returncode == 0 else FAILED


def _ops(paths: Iterable[Path]) -> Mapping[Path, Shown]:
    """Return the ops of spec files.

    Raises:
        SpecError: with the mistakes of all specs, or when two have one name.
    """
    from opc.diagnostics import Diagnostic, SpecError, Told
    from opc.pipeline import load_family
    from opc.site.gallery import Shown
    from opc.spec.loader import read

    found: dict[Path, Shown] = {}
    mistakes: list[Diagnostic] = []
    told = Told()
    named: dict[str, Path] = {}
    for path in paths:
        try:
            family = load_family(path)
        except SpecError as error:
            mistakes += told.new(error.diagnostics)
            continue
        other = named.setdefault(family.name, path)
        if other != path:
            mistakes.append(Diagnostic(f"{shown(path)} and {shown(other)} both describe {family.name}"))
        found[path] = Shown(family, read(path))
    if mistakes:
        raise SpecError(mistakes)
    return found


def _proof(paths: Iterable[Path]) -> Proof:
    """Return what results, or pages that were made of them, say of each op on each backend."""
    import json

    from opc.testing import keeping, markdown
    from opc.testing.report import columns_of, short_text

    found: dict[tuple[str, str], str] = {}
    results = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".md":
                found |= markdown.proved(text)
            else:
                results.append(keeping.from_data(json.loads(text)))
        except (ValueError, KeyError, TypeError) as error:
            raise WrongUse(f"{shown(path)}: these are no results of opc test: {error}") from error
    try:
        whole = keeping.joined(results)
    except ValueError as error:
        raise WrongUse(f"these are no results of opc test: {error}") from error
    columns = columns_of(whole)
    return found | {(op, columns[name].title): " ".join(short_text(cell).split()) for (op, name), cell in whole.cells().items()}


def _reference(name: str) -> dict[str, str]:
    """Return the page of a module or of a command line, by its path.

    Raises:
        SpecError: when it is not there.
        WrongUse: when a name stands for no command line.
    """
    from importlib import import_module

    from opc.site import reference

    module, _, program = name.partition(":")
    if not program:
        return {reference.path_of(name): reference.module_page(name)}
    import typer.main

    try:
        found = getattr(import_module(module), program)
    except (ImportError, AttributeError) as error:
        raise WrongUse(f"there is no {name}: {error}") from error
    command = typer.main.get_command(found) if isinstance(found, typer.Typer) else found
    # Typer has brought click's classes along in a module of its own, so that their names tell nothing.
    if not hasattr(command, "get_params"):
        raise WrongUse(f"{name} is no command line made with Typer or click")
    return {reference.path_of(name): reference.program_page(module.partition(".")[0], command)}


def _bench(paths: Iterable[Path]) -> Benchmark:
    import json

    from opc.testing.bench.benchmark import Benchmark

    whole = Benchmark()
    for path in paths:
        try:
            part = Benchmark.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise WrongUse(f"{shown(path)}: {error}") from error
        whole.machine |= part.machine
        whole.rows += part.rows
    return whole


def _check_folder(out: Path) -> None:
    """Refuse a folder that holds something else than a site of opc."""
    from opc.site.project import CONFIGURATION, MARK

    made = out / CONFIGURATION
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (made.is_file() and made.read_text().startswith(MARK)))):
        raise WrongUse(f"{shown(out)} holds something else than a site that opc made: choose another folder with --out")


def _write(out: Path, written: Mapping[str, str]) -> None:
    """Write the files; pages of an earlier run that are none of them go."""
    from opc.build import files
    from opc.site.project import PAGES

    out.mkdir(parents=True, exist_ok=True)
    places = files.inside(out, written)
    for old in (out / PAGES).rglob("*"):
        if old.is_file() and old not in places.values():
            old.unlink()
    for path, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write(place, written[path], out)
