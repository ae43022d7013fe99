"""The extension for VS Code: a grammar made of the language's tables, which colours as the server does, and a client of that."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from opc.analysis.elaborate.scope import CONSTANTS, DTYPE_NAMES, FORMS
from opc.editor.colours import LEGEND, tokens
from opc.editor.grammar import grammar_text
from opc.editor.occurrences import outline
from opc.ir.expr import REDUCTIONS
from opc.ir.functions import CALLABLE
from opc.lang.tree import ORDER

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "editor" / "vscode"
FILE = FOLDER / "syntaxes" / "opc.tmLanguage.json"
PACKAGE = json.loads((FOLDER / "package.json").read_text())
SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
# What the grammar calls the kinds of the server; names are told apart by the server alone.
SAME = {
    "comment": "comment.line.number-sign.opc",
    "string": "string.quoted.single.opc",
    "number": "constant.numeric.opc",
    "operator": "keyword.operator.opc",
    "function": "support.function.opc",
    "keyword": "keyword.control.opc",
    "type": "support.type.dtype.opc",
    "macro": "support.function.form.opc",
}


def grammar() -> dict:
    return json.loads(FILE.read_text())


def test_the_grammar_is_made_of_the_tables() -> None:
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        FILE.write_text(grammar_text())
    assert FILE.read_text() == grammar_text(), "OPC_UPDATE_GOLDEN=1 pytest tests/editor/test_vscode.py writes it anew"


def scopes(line: str) -> Iterator[tuple[int, int, str]]:
    """Yield the stretches that the grammar names in a line of a body: at each place the first rule of those that match first."""
    rules = [(rule["name"], re.compile(rule["match"])) for rule in grammar()["repository"]["body"]["patterns"]]
    at = 0
    while at < len(line):
        found = [(m.start(), i, m.end(), name) for i, (name, rule) in enumerate(rules) if (m := rule.search(line, at))]
        if not found:
            return
        start, _, end, name = min(found)
        yield start, end, name
        at = max(end, at + 1)


@pytest.mark.parametrize("path", [p for p in SPECS if "\nkernel: |\n" in p.read_text()], ids=lambda p: p.stem)
def test_the_grammar_and_the_server_agree(path: Path) -> None:
    text = path.read_text()
    names = outline(text)
    body = names.bodies["kernel"]
    first, last = body.positions[0], body.positions[-1]
    served = {(start, end): LEGEND.token_types[kind] for start, end, kind in tokens(text, names) if first <= start <= last}
    at = text.rindex("\n", 0, first) + 1
    named: dict[tuple[int, int], str] = {}
    for line in text[at : last + 1].split("\n"):
        named |= {(at + start, at + end): name for start, end, name in scopes(line)}
        at += len(line) + 1
    assert named.keys() == served.keys()
    for place, kind in served.items():
        word = text[slice(*place)]
        expected = SAME.get(kind, "variable.other.opc")
        if word in (*REDUCTIONS, ORDER) and kind == "macro":
            expected = "keyword.operator.reduction.opc"
        if word in CONSTANTS or word in ("True", "False"):
            expected = "constant.language.opc"
        assert (word, named[place]) == (word, expected)


def test_every_word_of_the_language_has_a_scope() -> None:
    for words, before, behind, name in (
        (CALLABLE, "y = ", "(x)", "support.function.opc"),
        (FORMS, "y = 2 * ", "(x)", "support.function.form.opc"),
        ((*REDUCTIONS, ORDER), "y = -", "[i](x)", "keyword.operator.reduction.opc"),
        (DTYPE_NAMES, "y = cast(", ", x)", "support.type.dtype.opc"),
        (CONSTANTS, "y = ", "", "constant.language.opc"),
        (("if", "else", "and", "or", "not"), "y = a ", " b", "keyword.control.opc"),
    ):
        for word in words:
            line = f"{before}{word}{behind}"
            assert (len(before), len(before) + len(word), name) in list(scopes(line)), line
    assert ("x1exp", "variable.other.opc") in [("x1exp"[s:e], n) for s, e, n in scopes("x1exp")]


def test_a_body_begins_and_ends_with_its_text() -> None:
    (body,) = grammar()["patterns"]
    begin = re.compile(body["begin"])
    for line, margin in (("kernel: |", ""), ("  body: |-  # why", "  "), ("kernel:  |2", "")):
        found = begin.search(line)
        assert found is not None
        assert found[1] == margin
        inside = re.compile(body["while"].replace("\\1", margin))
        assert inside.match(f"{margin}  y = x")
        assert inside.match("")
        assert not inside.match(f"{margin}reference: x")
    assert not begin.search("kernel: y = x")
    assert not begin.search("mykernel: |")


def test_what_the_package_names_is_there() -> None:
    contributes = PACKAGE["contributes"]
    paths = [
        PACKAGE["main"],
        *(g["path"] for g in contributes["grammars"]),
        *(c["configuration"] for c in contributes["languages"]),
    ]
    assert all((FOLDER / path).is_file() for path in paths)
    (entry,) = contributes["grammars"]
    assert entry["scopeName"] == grammar()["scopeName"]
    assert set(entry["embeddedLanguages"]) == {grammar()["patterns"][0]["contentName"]}
    assert {*entry["embeddedLanguages"].values()} == {c["id"] for c in contributes["languages"]}
    json.loads((FOLDER / "language-configuration.json").read_text())
    used = set(re.findall(r'settings\.get\("(\w+)"\)', (FOLDER / "extension.js").read_text()))
    assert {f"opc.{name}" for name in used} == set(contributes["configuration"]["properties"])
    assert PACKAGE["license"] == "Apache-2.0"
    page = (ROOT / "docs" / "editor.md").read_text()
    for name, setting in contributes["configuration"]["properties"].items():
        default = setting["default"]
        assert re.search(
            rf"^\| `{name}` \|.*`{re.escape(default if isinstance(default, str) else json.dumps(default))}`", page, re.MULTILINE
        )


STUBS = """
const Module = require("module");
const calls = [];
const settings = JSON.parse(process.argv[2]);
const stubs = {
  vscode: { workspace: { getConfiguration: (name) => ({ get: (key) => settings[`${name}.${key}`].default }) } },
  "vscode-languageclient/node": {
    LanguageClient: class {
      constructor(...args) { calls.push(args); }
      async start() { calls.push("start"); }
      async stop() { calls.push("stop"); }
    },
  },
};
const load = Module._load;
Module._load = (name, ...rest) => stubs[name] ?? load(name, ...rest);
const extension = require(process.argv[1]);
extension.activate().then(() => extension.deactivate()).then(() => console.log(JSON.stringify(calls)));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="the client of the extension runs in Node.js")
def test_the_client_starts_the_server_and_stops_it() -> None:
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    command = ["node", "-e", STUBS, str(FOLDER / "extension.js"), json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    made, *rest = json.loads(done.stdout)
    assert made[2] == {"command": "opc", "args": ["lsp"]}
    assert made[3] == {"documentSelector": [{"scheme": "file", "language": "yaml", "pattern": "**/specs/**/*.yaml"}]}
    assert rest == ["start", "stop"]
