"""What CI runs, and what a developer runs: `nox` for the quick tier, `nox -s types` or `nox -s tests` for a part of it.

`nox -s proof` is the full tier: every op on every backend, and under every sanitizer. docs/testing.md tells what each proves.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "cover", "tests_and_sanitizers"]

# libgomp's threads spin between parallel regions by default, which starves the other processes on shared cores.
QUIET = {"OMP_WAIT_POLICY": "passive"}
# Kernels for this machine's instruction set alone take a third of the time to compile.
QUICK = {**QUIET, "OPC_VARIANT": "native"}

# What the project's own tests build is about packages; the proof runs their kernels as they are shipped.
BUILDING = {**QUICK, "OPC_OPTIMIZE": "0"}

# What g++ has compiled for an op's proof or a test and is asked to compile for another: the same sources, in folders of their
# own. Such a cache knows the headers that a compiler names, and these leave out those of the system: each run begins with an
# empty one.
COMPILED = Path(".nox", "compiled")
CACHED = {"CCACHE_DEPEND": "1", "CCACHE_NOCOMPRESS": "1"}

# The cache that a session of this run has emptied.
BEGUN: set[Path] = set()

# Backends whose frameworks can't live beside the others; what goes into their environments, the extras of pyproject.toml say.
ENVIRONMENTS = ("mindspore", "popart", "rknn")

# Those that a session of this run has made, or found to be up to date.
MADE: set[str] = set()

SANITIZERS = "address,undefined,thread"
# The kernels of what changed, and by turns of the covering set.
SANITIZED = ("test", "specs", "--cover", "--sanitize", SANITIZERS)

SPECS = ("specs", "specs/native")
# What CHANGELOG.md promises to keep: the modules, and the command line, which the site has a reference of.
DESCRIBED = ("opc", "opc.backends.base", "opc.backends.sessions", "opc.build.hooks", "opc.cli.main:app")

# Generated packages that are kept in the repository, and the backends whose tests in them can run in the environments below.
KEPT = ("leaky_relu", "dual_residual")
RUN_IN_THEM = ("jax", "mindspore", "numpy", "onnx", "onnxruntime", "paddle", "rknn", "torch")

# A file's tests run in one process, so that what they share is built once; files keep their order, for few tests may take long.
# A crash ends the run: another worker would begin with the same test, and at the end all may wait for each other.
SPREAD = ("-n", "auto", "--max-worker-restart", "0", "--dist", "loadfile", "--no-loadscope-reorder")

# Tests that draw at random or run at many points, of which `nox -s fuzz` takes more.
DRAWING = (
    "analysis",
    "backends/cuda/test_rematerialised.py",
    "backends/cuda/test_weighed_sums.py",
    "backends/popart/test_warnings.py",
    "diagnostics",
    "emit/test_runtime.py",
    "emit/test_shape_c.py",
    "emit/test_shape_python.py",
    "emulation/test_poplar.py",
    "fuzz/test_classes.py",
    "fuzz/test_device.py",
    "fuzz/test_written.py",
    "ir/test_function_derivatives.py",
    "ir/test_functions.py",
    "spec",
    "testing/test_gradcheck.py",
    "transform",
)


def installed(session: nox.Session) -> Path:
    """Return the folder of programs of the one environment that all sessions share, made and installed when it must be."""
    # Hundreds of processes import PyTorch: in 2 s where byte code is kept, in 8 s where the shell that nox runs in forbids it.
    session.env["PYTHONDONTWRITEBYTECODE"] = ""
    root = Path(".nox", "opc")
    stamp, state = root / "installed", hashlib.sha256(Path("pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()
    programs = root.absolute() / "bin"
    if not stamp.exists() or stamp.read_text() != state:
        session.run(sys.executable, "-m", "venv", "--clear", str(root), external=True)
        session.run(programs / "pip", "install", "-q", "--no-compile", "uv", success_codes=range(256), external=True)
        # By uv, or by pip where uv can't be had.
        session.run(programs / "python", "-m", "opc.build.installer", "-q", "-e", ".[test]", external=True)
        stamp.write_text(state)
    session.env["PATH"] = f"{programs}:{os.environ['PATH']}"
    return programs


def compiling_once(session: nox.Session, programs: Path) -> dict[str, str]:
    """Return the environment in which g++ and gcc are asked through ccache, an empty one; none where it is not installed."""
    if not (programs / "ccache").exists():
        return {}
    links = COMPILED.absolute() / "bin"
    if COMPILED not in BEGUN:
        shutil.rmtree(COMPILED, ignore_errors=True)
        links.mkdir(parents=True)
        BEGUN.add(COMPILED)
        for name in ("g++", "gcc", "c++", "cc"):
            if shutil.which(name) is not None:
                (links / name).symlink_to(programs / "ccache")
    return {**CACHED, "CCACHE_DIR": str(links.parent / "kept"), "PATH": f"{links}:{session.env['PATH']}"}


@contextmanager
def meanwhile(session: nox.Session, *command: str | Path, env: Mapping[str, str] = {}) -> Iterator[None]:
    """Run a command beside what is done under it, which leaves a core idle at times; then show what it printed."""
    settings = {**os.environ, **{name: value for name, value in session.env.items() if value is not None}, **env}
    with tempfile.TemporaryFile() as printed:
        try:
            with subprocess.Popen(command, env=settings, stdout=printed, stderr=subprocess.STDOUT) as running:
                yield
        finally:  # also where what is done under it fails
            printed.seek(0)
            session.log(" ".join(map(str, command)))
            print(printed.read().decode(errors="replace"), flush=True)
        if running.returncode != 0:
            session.error(f"{Path(command[0]).name} failed")


def frameworks(session: nox.Session) -> Path:
    """Return the shared environment's programs, with the environments of the frameworks that can't live in it."""
    programs = installed(session)
    if not MADE:
        session.run(programs / "opc", "env", "create", *ENVIRONMENTS, external=True)
        MADE.update(ENVIRONMENTS)
    return programs


def turn() -> str:
    """Return the turn of what does not run each time: another one at the next commit, the same one at this."""
    counted = subprocess.run(("git", "rev-list", "--count", "HEAD"), capture_output=True, text=True, check=False)
    return counted.stdout.strip() or "0"


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Format and lint."""
    programs = installed(session)
    session.run(programs / "ruff", "format", "--check", ".", external=True)
    session.run(programs / "ruff", "check", ".", external=True)


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Strict types. The environments of frameworks are made meanwhile, and what `cover` asks first is found out on one core."""
    programs = installed(session)
    with meanwhile(session, programs / "opc", "env", "create", *ENVIRONMENTS):
        session.run(programs / "mypy", external=True)
        session.run(programs / "opc", "cover", *SPECS, external=True)
    MADE.update(ENVIRONMENTS)


@nox.session(venv_backend="none")
def cover(session: nox.Session) -> None:
    """The proof of the covering set and of what has changed on every backend, of the other ops by turns on NumPy."""
    programs = frameworks(session)
    command = ("test", *SPECS, "--cover", "--turn", turn(), "--strict", "--report", "report.html", "--junit", "junit.xml")
    session.run(programs / "opc", *command, env={**QUICK, **compiling_once(session, programs)}, external=True)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """All of the project's own tests, and those of two packages, which stand for what all packages' tests are made from."""
    suite(session, frameworks(session))


def suite(session: nox.Session, programs: Path, *options: str) -> None:
    """Run the tests, those that need MindSpore beside the others."""
    specs = [f"specs/{name}.yaml" for name in KEPT]
    backends = [part for name in RUN_IN_THEM for part in ("--backend", name)]
    env = {**BUILDING, **compiling_once(session, programs)}
    session.run(programs / "opc", "build", *specs, *backends, env=env, external=True)
    generated = [f"generated/{name}" for name in KEPT]
    # What is skipped in the tests for want of MindSpore, which takes longer to import than to test.
    python = ".opc/env/mindspore/venv/bin/python"
    skipped = [f"{package}/tests/test_mindspore.py" for package in generated]
    with meanwhile(session, python, "-m", "pytest", "-p", "no:cacheprovider", *skipped, env=BUILDING):
        # What these import, JAX among it, stays in a process: the tests of opc fork theirs.
        session.run(programs / "pytest", *SPREAD, *generated, env=env, external=True)
        session.run(programs / "pytest", *SPREAD, *options, "tests", *session.posargs, env=env, external=True)


@nox.session(venv_backend="none")
def sanitize(session: nox.Session) -> None:
    """The kernels of the covering set and of what has changed under the address, undefined-behaviour and thread sanitizers."""
    session.run(installed(session) / "opc", *SANITIZED, env=QUICK, external=True)


@nox.session(venv_backend="none")
def tests_and_sanitizers(session: nox.Session) -> None:
    """Of `sanitize` and of `tests` what has its turn.

    The sanitizers take the processors' time that the tests leave, and then all of it.
    """
    programs = frameworks(session)
    now = "--turn", turn()
    with meanwhile(session, "nice", "-n", "15", programs / "opc", *SANITIZED, *now, env=QUICK):
        suite(session, programs, *now)


@nox.session(venv_backend="none")
def proof(session: nox.Session) -> None:
    """Everything, with libraries as they are shipped: `nox -s proof`, or `nox -s proof -- 2/5` for the second of five parts.

    Results lie in .opc/proof; when all parts are there, they are joined into proof.md, which docs/proof.md is taken from.
    """
    programs = frameworks(session)
    part = session.posargs[0] if session.posargs else "1/1"
    folder = Path(".opc", "proof")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{part.replace('/', '-of-')}.json"
    session.run(
        programs / "opc", "test", *SPECS, "--strict", "--again", "--part", part, "--results", str(made), env=QUIET, external=True
    )
    session.run(programs / "opc", "test", "specs", "--part", part, "--sanitize", SANITIZERS, env=QUIET, external=True)
    if part.startswith("1/"):
        # What nvcc makes of kernels; without one it says so. What clang++ makes of them for systems that are not here.
        session.run(programs / "python", "-m", "tests.gpu.gates", env=QUIET, external=True)
        session.run(programs / "python", "-m", "tests.systems", env=QUIET, external=True)
    parts = sorted(folder.glob(f"*-of-{part.partition('/')[2]}.json"))
    if len(parts) == int(part.partition("/")[2]):
        parts += sorted(folder.glob("aarch64.json"))
        page = ("--markdown", "proof.md", "--made-by", f"opc test {' '.join(SPECS)}")
        session.run(programs / "opc", "report", *map(str, parts), *page, env=QUIET, external=True)


@nox.session(venv_backend="none")
def aarch64(session: nox.Session) -> None:
    """Every op's kernels for aarch64, as they are shipped, run under qemu: `nox -s aarch64`, or with some specs behind `--`.

    Results of all specs join those that `nox -s proof` makes its page of.
    """
    programs = installed(session)
    missing = [
        tool for tool in ("aarch64-linux-gnu-g++", "qemu-aarch64") if not (shutil.which(tool) or shutil.which(f"{tool}-static"))
    ]
    if missing:
        session.skip(f"{' and '.join(missing)} not installed: sudo apt install g++-aarch64-linux-gnu qemu-user")
    folder = Path(".opc", "proof")
    folder.mkdir(parents=True, exist_ok=True)
    kept = () if session.posargs else ("--results", str(folder / "aarch64.json"))
    specs = session.posargs or SPECS
    session.run(programs / "opc", "test", *specs, "--backend", "aarch64", "--strict", "--again", *kept, env=QUIET, external=True)


@nox.session(venv_backend="none")
def clang(session: nox.Session) -> None:
    """Every op's kernels as clang++ makes them, as they are shipped: `nox -s clang`, or with some specs behind `--`."""
    programs = installed(session)
    env = {**QUIET, "CXX": f"{programs / 'python'} -m opc.build.zig"}
    specs, out = session.posargs or SPECS, Path(".opc", "clang")
    session.run(programs / "opc", "test", *specs, "--backend", "numpy", "--again", "-o", str(out), env=env, external=True)


@nox.session(venv_backend="none")
def fuzz(session: nox.Session) -> None:
    """Random ops other than those the tests draw: `nox -s fuzz -- 2000 7` draws 2,000 with the seed 7, and 1,000 mutants."""
    programs = installed(session)
    count, seed = [*session.posargs, *["200", "1"][len(session.posargs) :]][:2]
    drawing = [f"tests/{place}" for place in DRAWING]
    session.run(programs / "pytest", *SPREAD, *drawing, env={**QUIET, "OPC_FUZZ": "all"}, external=True)
    session.run(programs / "python", "-m", "tests.fuzz", count, seed, env=QUIET, external=True)
    session.run(programs / "python", "-m", "tests.fuzz", str(int(count) // 2), seed, "--mutants", env=QUIET, external=True)
    session.run(programs / "python", "-m", "tests.fuzz", str(int(count) // 4), seed, "--device", env=QUIET, external=True)


@nox.session(venv_backend="none")
def gpu(session: nox.Session) -> None:
    """The kernels of a GPU, on one: `nox -s gpu -- softmax matmul` proves these ops, with nvcc and a GPU at hand."""
    programs = installed(session)
    session.run("tests/gpu/run.sh", *session.posargs, env={**QUIET, "PATH": f"{programs}:{os.environ['PATH']}"}, external=True)


@nox.session(venv_backend="none")
def site(session: nox.Session) -> None:
    """The site of the documentation and the gallery of all ops, looked at page by page in Chromium, which must be on PATH.

    The HTML is in site/html, pictures of some pages are in site/shots.
    """
    programs = installed(session)
    session.run(programs / "python", "-m", "opc.build.installer", "-q", "-e", ".[browser]", external=True)
    measured = [part for page in ("benchmarks", "gpu_benchmarks") for part in ("--bench", f"docs/{page}.json")]
    described = [part for name in DESCRIBED for part in ("--api", name)]
    made = ("--docs", "docs", "--title", "opc", "--proof", "docs/proof.md", *measured, *described, *session.posargs)
    session.run(programs / "opc", "site", *SPECS, *made, env=QUIET, external=True)
    session.run(programs / "python", "-m", "tests.site.browser", "site/html", "site/shots", external=True)


@nox.session(venv_backend="none")
def faults(session: nox.Session) -> None:
    """Faults and load: mutated and hostile specs, killed builds, threads, large tensors: `nox -s faults -- kills --kills 50`.

    The parts that are named, or all; what was counted, and what shows each fault again, is in .opc/faults.
    """
    session.run(installed(session) / "python", "-m", "tests.faults", *session.posargs, env=QUICK, external=True)
