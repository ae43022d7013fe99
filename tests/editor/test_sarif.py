"""`opc check --format sarif`: what code hosts need of it, and edits that mend what they are said to mend."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from opc.diagnostics import Severity
from opc.editor.checks import RULES, Checked, check, rule
from opc.editor.fixes import fixes
from opc.spec.loader import loads
from opc.spec.model import SpecModel
from tests.cli.conftest import BAD, Outcome, opc, spec, write
from tests.diagnostics.body_cases import CASES as BODIES
from tests.diagnostics.harness import Case, unmark
from tests.diagnostics.signature_cases import CASES as SIGNATURES
from tests.diagnostics.spec_cases import CASES as FORMS

__all__ = ["opc"]  # the fixture

TEXT = {"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}, "required": ["text"]}
NUMBER = {"type": "integer", "minimum": 1}
PLACES = ("startLine", "startColumn", "endLine", "endColumn")
REGION = {"type": "object", "properties": dict.fromkeys(PLACES, NUMBER), "required": list(PLACES), "additionalProperties": False}
ARTIFACT = {"type": "object", "properties": {"uri": {"type": "string", "format": "uri-reference"}}, "required": ["uri"]}
LOCATION = {
    "type": "object",
    "properties": {
        "message": TEXT,
        "physicalLocation": {
            "type": "object",
            "properties": {"artifactLocation": ARTIFACT, "region": REGION},
            "required": ["artifactLocation", "region"],
        },
    },
    "required": ["physicalLocation"],
}
REPLACEMENT = {
    "type": "object",
    "properties": {"deletedRegion": REGION, "insertedContent": TEXT},
    "required": ["deletedRegion"],
    "additionalProperties": False,
}
CHANGE = {
    "type": "object",
    "properties": {"artifactLocation": ARTIFACT, "replacements": {"type": "array", "items": REPLACEMENT, "minItems": 1}},
    "required": ["artifactLocation", "replacements"],
}
FIX = {
    "type": "object",
    "properties": {"description": TEXT, "artifactChanges": {"type": "array", "items": CHANGE, "minItems": 1}},
    "required": ["artifactChanges"],
}
RESULT = {
    "type": "object",
    "properties": {
        "ruleId": {"enum": list(RULES)},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["error", "warning", "note"]},
        "message": TEXT,
        "locations": {"type": "array", "items": LOCATION, "maxItems": 1},
        "relatedLocations": {"type": "array", "items": LOCATION, "minItems": 1},
        "fixes": {"type": "array", "items": FIX, "minItems": 1},
    },
    "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
    "additionalProperties": False,
}
RULE = {"type": "object", "properties": {"id": {"type": "string"}, "shortDescription": TEXT}, "required": ["id"]}
DRIVER = {
    "type": "object",
    "properties": {"name": {"const": "opc"}, "version": {"type": "string"}, "rules": {"type": "array", "items": RULE}},
    "required": ["name", "version", "rules"],
}
# The parts of the standard's schema that opc writes, each with what the standard says of it.
SARIF = {
    "type": "object",
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "tool": {"type": "object", "properties": {"driver": DRIVER}, "required": ["driver"]},
                    "columnKind": {"const": "unicodeCodePoints"},
                    "results": {"type": "array", "items": RESULT},
                },
                "required": ["tool", "columnKind", "results"],
            },
        },
    },
    "required": ["$schema", "version", "runs"],
}


def test_a_run_on_good_and_bad_specs(opc: Callable[..., Outcome], tmp_path: Path) -> None:
    spec(tmp_path)
    write(tmp_path / "a b" / "bad.yaml", "# é\U0001f600\n" + BAD + "kernel: |\n  y = expp(x) + xx  # \U0001f600\n")
    write(tmp_path / "broken.yaml", "op: [\n")
    write(tmp_path / "twice.yaml", BAD + "kernel: y = x\nkernel: y = x\n")
    done = opc("check", "leaky_relu.yaml", "a b", "broken.yaml", "twice.yaml", "--format", "sarif")
    assert (done.code, done.err) == (1, "")
    log = json.loads(done.out)
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    first, second, third, *of_twice = run["results"]
    assert [r["id"] for r in run["tool"]["driver"]["rules"]][first["ruleIndex"]] == first["ruleId"] == "kernel"
    assert first["message"]["text"] == "unknown function 'expp'\nhint: did you mean 'exp'?"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b/bad.yaml"}
    assert place["region"] == {"startLine": 10, "startColumn": 7, "endLine": 10, "endColumn": 11}
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [{"deletedRegion": place["region"], "insertedContent": {"text": "exp"}}]
    assert second["message"]["text"].startswith("unknown name 'xx'")
    assert third["message"]["text"].startswith("not valid YAML")
    assert [(r["ruleId"], r["message"]["text"].split("\n")[0]) for r in of_twice] == [
        ("op", "a b/bad.yaml describes an op 'broken' too"),
        ("kernel", "'kernel' stands here twice; first on line 8"),
    ]


def test_no_mistakes_no_results(opc: Callable[..., Outcome], tmp_path: Path) -> None:
    spec(tmp_path)
    done = opc("check", "leaky_relu.yaml", "--format", "sarif")
    assert done.code == 0
    assert json.loads(done.out)["runs"][0]["results"] == []
    assert json.loads(opc("check", "leaky_relu.yaml", "--format", "json").out) == []


def test_rules_are_the_keys_of_a_spec() -> None:
    assert list(RULES) == ["file", *SpecModel.model_fields]
    assert all(RULES.values())


def mistakes(checked: Checked) -> list[str]:
    return [d.message for d in checked.diagnostics if d.severity is Severity.ERROR]


def checked_text(text: str) -> Checked:
    return check(lambda: loads(text, "x.yaml", whole=False))


@pytest.mark.parametrize("cases", [BODIES, SIGNATURES, FORMS], ids=["bodies", "signatures", "forms"])
def test_what_mends_a_mistake_mends_it(cases: list[Case]) -> None:
    """Every mistake of the catalogue: its place has a rule, and each of its edits leaves fewer mistakes and no new one."""
    mended = 0
    for case in cases:
        text, _ = unmark(case.text)
        checked = checked_text(text)
        for diagnostic in checked.diagnostics:
            assert rule(diagnostic) in RULES
            for fix in fixes(diagnostic, checked):
                left = mistakes(checked_text(fix.apply(text)))
                assert len(left) < len(mistakes(checked))
                assert set(left) <= {*mistakes(checked)}
                mended += 1
    assert mended >= 6


@pytest.mark.parametrize(
    ("mistake", "titles", "mended"),
    [
        ("y = expp(x)", ["Change to 'exp'"], "y = exp(x)"),
        ("y = x > 0", ["Write cast(T, x > 0)"], "y = cast(T, x > 0)"),
        ("y = exp", ["Write exp(x)"], "y = exp(x)"),
        ("y = x if x else 0", ["Write x != 0"], "y = x if x != 0 else 0"),
        ("y = x[0]", [], ""),
    ],
)
def test_edits_of_a_body(mistake: str, titles: list[str], mended: str) -> None:
    text = BAD + f"kernel: |\n  {mistake}\n"
    checked = checked_text(text)
    found = [fix for d in checked.diagnostics for fix in fixes(d, checked)]
    assert [fix.title for fix in found] == titles
    assert [fix.apply(text) for fix in found] == [text.replace(mistake, mended)] * len(titles)


def test_edits_of_values() -> None:
    text = BAD.replace("doc: x.", "doc: no") + "attributes: {a: {type: str, default: 1}}\nkernel: |\n  y = x\n"
    checked = checked_text(text)
    found = {fix.title: fix.new for d in checked.diagnostics for fix in fixes(d, checked)}
    assert found == {"Write 'no' in quotes": "'no'", "Write '1' in quotes": "'1'"}
