"""`opc init`: the files of a project whose package is made of specs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from opc import __version__
from opc.backends import registry
from opc.backends.shipped import examples
from opc.backends.templates import environment
from opc.build import files
from opc.build.wheels import make
from opc.build.wheels.project import Project, checked
from opc.diagnostics import Diagnostic, SpecError
from opc.distribution import NAME, install
from opc.pipeline import compile_text
from opc.spec.schema import FILE_NAME, schema_text
from opc.spec.template import new_spec
from opc.spec.text import domain_problem

FIRST_OP = "leaky_relu"
"""The op that a new project has."""

CIBUILDWHEEL = "cibuildwheel==4.3.5"

PLACES = {
    "pyproject.toml": "pyproject.toml.j2",
    "README.md": "README.md.j2",
    ".gitignore": "gitignore.j2",
    ".pre-commit-config.yaml": "pre-commit-config.yaml.j2",
    ".github/workflows/ops.yml": "ops.yml.j2",
    "tests/test_ops.py": "test_ops.py.j2",
}
"""The template of each file."""


def project_files(name: str, wanted: Sequence[str], *, generated: bool = False) -> dict[str, str]:
    """Return the files of a project by path: a first spec, tests, what builds, checks and proves.

    `wanted` are the backends of the wheel beside NumPy's. With `generated`, the packages that opc writes are
    kept in the repository.

    Raises:
        SpecError: when no distribution can be called so, or no wheel carries ops for a backend.
    """
    made = checked(Project(name, "0.1.0"), make.taken(registry.select(None)))
    module = made.module
    problem = domain_problem(module)
    if problem is not None:
        hint = f"{problem}, and '{module}' is to be the domain of the project's ops"
        raise SpecError([Diagnostic(f"a project of ops can't be called '{name}'", hint=hint)])
    spec = new_spec(FIRST_OP, module)
    numpy, *others = make.choose(wanted, [compile_text(spec, f"{FIRST_OP}.yaml")])
    backends = (numpy, *others)
    known = metadata.metadata(NAME).get_all("Provides-Extra") or []
    # Frameworks that have an environment of their own are those that libraries are compiled against.
    built = ",".join(b.name for b in others if b.environment is not None and b.name in known)
    extras = ",".join(["prove", *(b.name for b in others if b.name in known)])
    values = {
        "name": made.name,
        "module": module,
        "distribution": NAME,
        "op": FIRST_OP,
        "backends": [b.name for b in others],
        "options": "".join(f" --backend {b.name}" for b in backends),
        "opc": f"{NAME}~={__version__}",
        "opc_fmt": f"{NAME}[fmt]~={__version__}",
        "builder": f"{NAME}[{built}]~={__version__}" if built else f"{NAME}~={__version__}",
        "install_opc": install(f'"{NAME}[{extras}]~={__version__}"'),
        "install_cibuildwheel": install(CIBUILDWHEEL),
        "generated": generated,
        "functions": _functions(),
    }
    templates = environment("opc.build.wheels")
    texts = {path: templates.get_template(template).render(values) for path, template in PLACES.items()}
    return {**texts, f"specs/{FIRST_OP}.yaml": spec, f"specs/{FILE_NAME}": schema_text()}


def _functions() -> str:
    """Return the functions that run an example, which the proof runs them by too."""
    text = Path(examples.__file__).read_text(encoding="utf-8")
    return text[text.index("def ") :]


def write(folder: Path, made: dict[str, str]) -> None:
    """Write the files of a project to a folder, which may hold others.

    Raises:
        SpecError: when one of the files is there already, or the file system refuses.
    """
    present = [path for path in made if (folder / path).exists()]
    if present:
        mistakes = [Diagnostic(f"{folder / path} exists already", hint="choose another folder") for path in present]
        raise SpecError(mistakes)
    places = files.inside(folder, made)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.failure("write", folder, error) from error
    for path, text in made.items():
        files.write(places[path], text, folder)
