"""`opc init`: from the first command to ops in an environment without opc; what the project says to others is true."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from packaging.requirements import Requirement

from opc import __version__
from opc.cli.main import app
from tests.packaging.conftest import Opc
from tests.packaging.environments import ROOT, install, lend, make, run
from tests.packaging.scaled import LIGHT, SPEC, proof_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.rotating
def test_committing_yaml_adds_an_op(opc: Opc, tmp_path: Path) -> None:
    code, out, err = opc(tmp_path, "init", "my-ops", "--backend", "numpy")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "next: cd my-ops && opc test"
    project = tmp_path / "my-ops"
    # The one file that is committed.
    (project / "specs/scaled.yaml").write_text(LIGHT)
    assert opc(project, "check") == (0, "2 specs: no mistakes\n", "")
    (project / "proof.json").write_text(proof_of(project / "specs"))
    # What `pip wheel .` does when opc can be installed into an environment for the build.
    quiet = {"OMP_WAIT_POLICY": "passive", "OPC_VARIANT": "native", "OPC_OPTIMIZE": "0", "PYTHONPATH": str(ROOT)}
    options = ("--no-build-isolation", "--no-index", "--no-deps", "-q", "--config-settings", "proof=proof.json")
    run(sys.executable, "-m", "pip", "wheel", ".", *options, "-w", tmp_path, cwd=project, environment=quiet)
    (wheel,) = tmp_path.glob("my_ops-0.1.0-cp311-abi3-*.whl")
    site = make(tmp_path / "fresh")
    lend(site, "numpy", "cffi", "pycparser", "pytest", "pluggy", "iniconfig", "packaging", "pygments")
    python = tmp_path / "fresh/bin/python"
    install(wheel, python)
    program = "import importlib.util, my_ops; print(importlib.util.find_spec('opc'), my_ops.scaled([1.0]))"
    alone = {"PATH": str(tmp_path), "PYTHONPATH": "", "PYTEST_ADDOPTS": ""}
    assert run(python, "-c", program, cwd=tmp_path, environment=alone) == "None [2.]\n"
    passed = run(python, "-m", "pytest", "-p", "no:cacheprovider", project / "tests", cwd=tmp_path, environment=alone)
    assert re.search(r"\b3 passed\b", passed)


def test_the_build_backend_tells_mistakes(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/scaled.yaml").write_text(SPEC.replace("factor * x", "factr * x"))
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "my-ops"\nversion = "1"\n')
    program = "from opc.build import hooks; hooks.build_wheel('.')"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1
    assert "scaled.yaml:10:13: error: " in done.stderr
    assert "did you mean 'factor'?" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module", params=[(), ("--generated", "-b", "paddle", "-b", "torch")], ids=["plain", "generated"])
def project(request: pytest.FixtureRequest, opc: Opc, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("projects")
    assert opc(folder, "init", "some-ops", *request.param)[0] == 0
    return folder / "some-ops"


def workflow(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((project / ".github/workflows/ops.yml").read_text())
    return found


def runs(project: Path) -> list[str]:
    """Return every command that the project has others run: the workflow's, the hooks', and those of the README."""
    steps = [step for job in workflow(project)["jobs"].values() for step in job["steps"]]
    hooks = yaml.safe_load((project / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    shell = re.findall(r"^```sh\n(.*?)^```", (project / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in shell for part in block.splitlines() for line in part.partition("#")[0].split("&&")]
    return [*(step["run"] for step in steps if "run" in step), *(hook["entry"] for hook in hooks), *(s.strip() for s in lines)]


def test_the_workflow_is_well_formed(project: Path) -> None:
    found = workflow(project)
    # YAML 1.1 reads the key `on` as a boolean.
    assert found.keys() == {"name", True, "permissions", "jobs"}
    for job in found["jobs"].values():
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else {*needs} <= found["jobs"].keys()
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)
    assert found["jobs"]["wheels"]["strategy"]["matrix"]["runner"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]
    sent = {s["with"]["name"] for s in found["jobs"]["prove"]["steps"] if s.get("uses", "").startswith("actions/upload")}
    taken = {s["with"]["name"] for s in found["jobs"]["wheels"]["steps"] if s.get("uses", "").startswith("actions/download")}
    assert taken <= sent


def test_commands_are_real(project: Path) -> None:
    group = typer.main.get_command(app)
    words = [shlex.split(line) for line in runs(project)]
    of_opc = [rest for first, *rest in words if first == "opc"]
    assert {rest[0] for rest in of_opc} >= {"check", "fmt", "test", "new"}
    for name, *arguments in of_opc:
        # Reads them without running the command.
        group.commands[name].make_context(name, list(arguments))
    assert {first for first, *_ in words} == {"opc", "pip", "git", "cibuildwheel"}


def test_requirements_are_real(project: Path) -> None:
    built = tomllib.loads((project / "pyproject.toml").read_text())["build-system"]
    hooks = yaml.safe_load((project / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    asked = [*built["requires"], *(text for hook in hooks for text in hook["additional_dependencies"])]
    asked += [text for line in runs(project) if line.startswith("pip install") for text in shlex.split(line)[2:]]
    own = [r for r in map(Requirement, asked) if r.name == PROJECT["name"]]
    assert len(own) >= 4
    assert all(r.specifier.contains(__version__) and r.extras <= PROJECT["optional-dependencies"].keys() for r in own)
    module, _, function = f"{built['build-backend']}.build_wheel".rpartition(".")
    source = ROOT / f"{module.replace('.', '/')}.py"
    assert function in {n.name for n in ast.parse(source.read_text()).body if isinstance(n, ast.FunctionDef)}


def test_the_first_spec_is_laid_out(opc: Opc, project: Path) -> None:
    code, printed = opc(project, "fmt", "--check", "specs")[:2]
    assert code == 0, printed


def test_generated_packages_are_kept_fresh(opc: Opc, project: Path) -> None:
    checks = [line for line in runs(project) if line.startswith("opc generate --check")]
    ignored = (project / ".gitignore").read_text().splitlines()
    assert bool(checks) == ("/generated/" not in ignored)
    for line in {*checks}:
        arguments = shlex.split(line)[1:]
        assert opc(project, *arguments)[0] == 1
        assert opc(project, *(a for a in arguments if a != "--check"))[0] == 0
        assert opc(project, *arguments)[0] == 0


def test_a_folder_in_use_is_left_alone(opc: Opc, tmp_path: Path) -> None:
    (tmp_path / "my-ops").mkdir()
    (tmp_path / "my-ops/README.md").write_text("mine")
    code, out, err = opc(tmp_path, "init", "my-ops")
    assert (code, out) == (1, "")
    assert "README.md exists already" in err
    assert [p.name for p in (tmp_path / "my-ops").iterdir()] == ["README.md"]
    code, _, err = opc(tmp_path, "init", "json")
    assert code == 1
    assert "'json' is a module of Python" in err
    assert not (tmp_path / "json").exists()
