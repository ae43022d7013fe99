"""What CI runs, and what a developer runs: `nox` for everything, `nox -s lint` or `nox -s tests` for a part."""

from pathlib import Path

import nox

nox.options.sessions = ["lint", "tests", "sanitize"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True

# libgomp's threads spin between parallel regions by default, which starves the other processes on shared cores.
QUIET = {"OMP_WAIT_POLICY": "passive"}

# Backends whose frameworks can't live beside the others; what goes into their environments, the extras of pyproject.toml say.
ENVIRONMENTS = ("mindspore", "rknn")


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint and strict types."""
    session.install("-e", ".[lint]")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """The proof of every op on every backend, then the project's own tests and those of the generated packages."""
    session.install("-e", ".[test]")
    session.run("opc", "env", "create", *ENVIRONMENTS)
    # proof.md is the page docs/proof.md is taken from.
    outcome = ("--report", "report.html", "--junit", "junit.xml", "--markdown", "proof.md")
    session.run("opc", "test", "specs", "specs/native", "--strict", *outcome, env=QUIET)
    session.run("opc", "build", "specs/leaky_relu.yaml", "specs/dual_residual.yaml", env=QUIET)
    session.run("pytest", "-n", "auto", "tests", "generated", *session.posargs, env=QUIET)
    # What was skipped there for want of MindSpore.
    python = ".opc/env/mindspore/venv/bin/python"
    generated = sorted(map(str, Path("generated").glob("*/tests/test_mindspore.py")))
    session.run(python, "-m", "pytest", "-n", "auto", *generated, env=QUIET, external=True)


@nox.session
def sanitize(session: nox.Session) -> None:
    """The kernels of every op under the address, undefined-behaviour and thread sanitizers."""
    session.install("-e", ".[test]")
    session.run("opc", "test", "specs", "--sanitize", "address,undefined")
    session.run("opc", "test", "specs", "--sanitize", "thread")


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random ops other than those the tests draw: `nox -s fuzz -- 2000 7` draws 2,000 with the seed 7."""
    session.install("-e", ".[test]")
    count, seed = [*session.posargs, *["200", "1"][len(session.posargs) :]][:2]
    session.run("python", "-m", "tests.fuzz", count, seed, env=QUIET)
