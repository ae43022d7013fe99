"""CI, the workflow and the hooks run what README and CONTRIBUTING tell a reader to run."""

import ast
import configparser
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import PAGES, ROOT, page_id

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = ("docs", "opc", "runtime", "specs", "generated/leaky_relu", "generated/dual_residual")
# What people write; the tests' own texts hold what is wrong on purpose.
WRITTEN = [
    *ROOT.glob("*.md"),
    *ROOT.glob("*.py"),
    *(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.*")),
]
SUFFIXES = {".c", ".cpp", ".cu", ".h", ".j2", ".json", ".md", ".py", ".yaml"}


def read_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def test_ci_runs_the_test_command_of_the_readme() -> None:
    section = (ROOT / "README.md").read_text().split("## Two commands")[1].split("\n## ")[0]
    commands = re.findall(r"^```sh\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == commands[1]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_workflow_runs_ci_and_nothing_else() -> None:
    workflow = read_yaml(".github/workflows/ci.yml")
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    # YAML 1.1 reads the key `on` as a boolean.
    assert workflow[True].keys() == {"push", "pull_request"}
    (setup,) = (step for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python@"))
    assert f">={setup['with']['python-version']}" == PROJECT["project"]["requires-python"]


def test_hooks_are_programs_of_the_project_itself() -> None:
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = {hook["id"]: hook for hook in repository["hooks"]}
    entries = [hook["entry"].split()[:2] for hook in hooks.values()]
    assert entries == [["ruff", "format"], ["ruff", "check"], ["mypy"], ["opc", "check"], ["opc", "fmt"]]
    specs = [p.relative_to(ROOT).as_posix() for p in (ROOT / "specs").rglob("*.yaml")]
    assert all(re.search(hooks["opc-check"]["files"], path) for path in specs)
    tools = {re.split(r"[=><]", r)[0] for extra in ("test", "lint", "dev") for r in _extra(extra)}
    assert {"ruff", "mypy", "pre-commit", "nox"} <= tools


def test_the_style_of_headers_is_a_file_that_clang_format_reads() -> None:
    style = read_yaml(".clang-format")
    assert style["BasedOnStyle"] == "Google"
    assert style["ColumnLimit"] >= PROJECT["tool"]["ruff"]["line-length"]


def _extra(name: str) -> list[str]:
    return [str(r) for r in PROJECT["project"]["optional-dependencies"][name]]


def test_the_changelog_has_this_version() -> None:
    import opc

    versions = re.findall(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert opc.__version__ in versions
    assert versions[1:] == sorted(versions[1:], key=lambda v: [int(n) for n in v.split(".")], reverse=True)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_sessions_of_nox_that_are_named_are_there(page: Path) -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    sessions = {
        n.name for n in tree.body if isinstance(n, ast.FunctionDef) and any("session" in ast.unparse(d) for d in n.decorator_list)
    }
    assert {*re.findall(r"nox -s (\w+)", page.read_text())} <= sessions


def test_editors_are_told_what_the_formatters_do() -> None:
    settings = configparser.ConfigParser()
    settings.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
    assert settings["*.py"].getint("max_line_length") == PROJECT["tool"]["ruff"]["line-length"]
    assert settings["*"]["charset"] == "utf-8"
    for path in WRITTEN:
        if path.suffix in SUFFIXES and path.is_file() and not {"build", "__pycache__"} & {*path.relative_to(ROOT).parts}:
            text = path.read_bytes().decode("utf-8")
            assert "\r" not in text, path
            assert not text or text.endswith("\n"), path
            assert not re.search(r"[ \t]$", text, re.MULTILINE), path
